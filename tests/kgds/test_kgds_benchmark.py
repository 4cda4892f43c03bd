from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kgds_builders import RawSample, facts, paragraphs, sample, two_samples, write_benchmark_file

from perse.errors import BadInput
from perse.kgds.benchmark import read_benchmark, write_benchmark


def test_samples_are_numbered_by_their_place_in_the_file(tmp_path: Path) -> None:
    found = read_benchmark(write_benchmark_file(tmp_path))
    assert list(found.samples) == [1, 2]
    assert found.samples[2].paragraph(1) == "The ferry to Skarholm was built in 1987."
    assert found.samples[1].supporting_indices == {1, 3}


def test_facts_are_asked_of_supporting_paragraphs_first_then_of_the_others() -> None:
    placed = [(fact.paragraph, fact.at, fact.type) for fact in sample(1).facts]
    assert placed[:6] == [(1, 1, 1), (1, 2, 1), (1, 3, 2), (3, 1, 1), (3, 2, 1), (3, 3, 3)]
    assert placed[6:] == [(2, 1, 0), (2, 2, 0), (4, 1, 0), (4, 2, 4)]


def test_the_first_samples_keep_number_and_digest(tmp_path: Path) -> None:
    found = read_benchmark(write_benchmark_file(tmp_path))
    assert list(found.first(1).samples) == [1] and found.first(1).digest == found.digest
    assert found.first(None) == found and list(found.first(9).samples) == [1, 2]


def test_what_is_written_reads_as_it_was(tmp_path: Path) -> None:
    found = read_benchmark(write_benchmark_file(tmp_path))
    again = tmp_path / "again.json"
    again.write_text(write_benchmark(list(found.samples.values())), encoding="utf-8")
    assert read_benchmark(again).samples == found.samples
    assert json.loads(again.read_text(encoding="utf-8")) == two_samples()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[{", "is not JSON"),
        ("\xff", "is not JSON"),
        ("[" * 100_000, r"is not JSON \(lists or objects are nested more than 100 deep\); give the benchmark's JSON file$"),
        (
            "[1" + "0" * 5000 + "]",
            r"is not JSON \(a number has 5001 digits, expected at most 4300\); give the benchmark's JSON file$",
        ),
        ('[{"KGD": "a", "KGD": "b"}]', r'is not JSON \("KGD" is given twice in one object\); give'),
        ("{}", "holds no samples; expected a JSON list"),
        ("[]", "holds no samples; expected a JSON list"),
        ('["text"]', "sample 1: expected a JSON object, found a text"),
    ],
    ids=["torn", "no UTF-8", "brackets alone", "a long number", "a name twice", "an object", "empty", "a text"],
)
def test_a_file_that_is_no_list_of_samples_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "KGDS.json"
    path.write_text(content, encoding="latin-1")
    with pytest.raises(BadInput, match=message):
        read_benchmark(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot read .*KGDS.json: No such file"):
        read_benchmark(tmp_path / "KGDS.json")


Change = Callable[[RawSample], object]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw.pop("CAO"), "sample 2: field 'CAO': field required"),
        (lambda raw: raw.update(notes="x"), "sample 2: field 'notes': extra inputs are not permitted"),
        (lambda raw: raw.update(number=2), "sample 2: field 'number': extra inputs are not permitted"),
        (
            lambda raw: raw["BSPAF"][0].update(facts(2, (2, "The ferry is white."), (4, "Diesel is dear."))),
            r"sample 2: field 'BSPAF': no fact has type 1 \(key\), and a sample needs one .*; annotate one, or take the sample out$",
        ),
        (lambda raw: raw["BSPAF"].clear(), "sample 2: field 'BSPAF': no fact has type 1"),
        (lambda raw: raw.update(CAO=[]), "sample 2: field 'CAO': found an empty list, expected at least 1 entry"),
        (lambda raw: raw["CAO"].append(""), "sample 2: field 'CAO': opinion 3 is empty; write it, or take it out$"),
        (lambda raw: raw["CAO"].insert(0, " \n"), "sample 2: field 'CAO': opinion 1 is empty"),
        (lambda raw: raw["CAO"].append("** **"), "sample 2: field 'CAO': opinion 3 is empty"),
        (lambda raw: raw.update(SBK=[]), "sample 2: field 'SBK'"),
        (lambda raw: raw.update(KGD=[]), "sample 2: field 'KGD'"),
        (lambda raw: raw.update(BSP=[]), "sample 2: field 'BSP'"),
        (lambda raw: raw["KGD"][1].update(utterance=""), r"sample 2: field 'KGD.1.utterance': found an empty text"),
        (
            lambda raw: raw["SBK"][0].update(paragraph_text=7),
            r"sample 2: field 'SBK.0.paragraph_text': input should be a valid string",
        ),
        (
            lambda raw: raw["BSPAF"][0]["atomic_facts"][1].update(type=7),
            r"field 'BSPAF.0.atomic_facts.1.type': .* less than or equal to 6",
        ),
        (lambda raw: raw["SBK"].reverse(), "sample 2: SBK numbers its paragraph 1 as 2; expected 1 to 2, in order$"),
        (lambda raw: raw["SBK"][1].update(paragraph_index=3), "sample 2: SBK numbers its paragraph 2 as 3; expected 1 to 2"),
        (lambda raw: raw["BSP"].append(raw["BSP"][0]), "sample 2: BSP lists paragraph 2 twice; expected each once$"),
        (lambda raw: raw["BSP"].extend(paragraphs("a", "b", "c")[2:]), "BSP lists paragraph 3; the article has 2"),
        (lambda raw: raw["BNPAF"].append(facts(5, (0, "It floats."))), "BNPAF lists paragraph 5; the article has 2"),
        (lambda raw: raw["BSPAF"].append(raw["BSPAF"][0]), "BSPAF lists paragraph 2 twice"),
        (lambda raw: raw["BSPAF"][0].update(paragraph_index=1), "BSPAF and BSP list different paragraphs"),
        (lambda raw: raw["BNPAF"].clear(), "BNPAF must list every paragraph that BSP does not"),
        (lambda raw: raw["BNPAF"].append(facts(2, (0, "It floats."))), "BNPAF must list every paragraph that BSP does not"),
        (
            lambda raw: raw["BNPAF"][0]["atomic_facts"][0].update(type=1),
            'sample 2: BNPAF has a fact of type 1, which no fact there has: "The ferry was built in 1987."; correct its type',
        ),
        (
            lambda raw: raw["BSPAF"][0]["atomic_facts"][1].update(type=0),
            'sample 2: BSPAF has a fact of type 0, which no fact there has: "The fewer sailings begin in June."; correct its type',
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_sample_that_does_not_fit_together_is_refused_by_number_and_field(
    tmp_path: Path, change: Change, message: str
) -> None:
    raw = two_samples()
    change(raw[1])
    path = write_benchmark_file(tmp_path, raw)
    with pytest.raises(BadInput, match=message) as refused:
        read_benchmark(path)
    assert str(refused.value).startswith(f"{path}, sample 2: ") and "\n" not in str(refused.value)


@pytest.mark.parametrize("kind", ["1", 1.0, True, None], ids=["a text", "a fraction", "a truth value", "nothing"])
def test_the_type_of_a_fact_is_a_whole_number_and_nothing_like_it(tmp_path: Path, kind: object) -> None:
    raw = two_samples()
    raw[1]["BSPAF"][0]["atomic_facts"][1]["type"] = kind
    with pytest.raises(BadInput, match="sample 2: field 'BSPAF.0.atomic_facts.1.type'"):
        read_benchmark(write_benchmark_file(tmp_path, raw))


def test_a_sample_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    raw = [*two_samples(), two_samples()[0]]
    with pytest.raises(BadInput, match="sample 3: article and discussion are those of sample 1; take one of the two out$"):
        read_benchmark(write_benchmark_file(tmp_path, raw))


def test_a_long_sample_is_refused_in_a_short_sentence(tmp_path: Path) -> None:
    for change in (
        lambda raw: raw.update(SBK=paragraphs(*(f"Paragraph {n}." for n in range(2000)))[::-1]),
        lambda raw: raw["BNPAF"][0]["atomic_facts"][0].update(atomic_fact="long " * 5000, type=1),
    ):
        raw = two_samples()
        change(raw[1])
        path = tmp_path / "KGDS.json"
        path.write_text(json.dumps(raw), encoding="utf-8")
        with pytest.raises(BadInput) as refused:
            read_benchmark(path)
        said = str(refused.value).removeprefix(str(path))
        assert len(said) < 200 and "'value'" not in said
