"""The page as a text: everything in it, nothing from elsewhere, nothing that breaks out; samples packed and found again."""

from __future__ import annotations

import base64
import gzip
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from page_builders import (
    BREAKOUT,
    LABELS,
    SCRIPT,
    figure,
    made_page,
    pair_answers,
    pair_examples,
    score_answers,
    score_examples,
)

from perse.errors import BadInput
from perse.judgement import Status, judgement_line
from perse.records import PointwiseExample, SummaryExample, SummaryReference, VerbatimExample, example_lines
from perse.reporting.page import render_page
from perse.reporting.report import write_report
from perse.reporting.samples import Samples, chosen, pack_samples


class _Elements(HTMLParser):
    """Every element of a page, and the text of its inert blocks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def unpacked(chunks: tuple[str, ...]) -> list[Any]:
    return [row for chunk in chunks for row in json.loads(gzip.decompress(base64.b64decode(chunk)))]


def packed(count: int, **options: Any) -> Samples:
    examples = score_examples(count)
    return pack_samples(examples, {"one": score_answers(examples)}, labels=LABELS, **{"most": 100, "seed": 0, **options})


@pytest.mark.parametrize("pairs", [False, True], ids=["scores", "pairs"])
def test_a_page_fetches_nothing(pairs: bool) -> None:
    elements = _Elements(render_page(made_page(pairs=pairs))).found
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed", "base")]
    addresses = [
        value for _, given in elements for name, value in given.items() if name in ("src", "href", "action", "xlink:href")
    ]
    assert addresses
    assert all(value and value.startswith(("#", "data:text/csv")) for value in addresses)
    policy = next(given["content"] for tag, given in elements if given.get("http-equiv") == "Content-Security-Policy")
    assert policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy.partition("script-src")[2].partition(";")[0]


@pytest.mark.parametrize("pairs", [False, True], ids=["scores", "pairs"])
@pytest.mark.parametrize("spice", [SCRIPT, BREAKOUT], ids=["script", "breakout"])
def test_texts_make_no_elements(spice: str, pairs: bool) -> None:
    def counted(page: str) -> dict[str, int]:
        tags = [tag for tag, _ in _Elements(page).found]
        return {tag: tags.count(tag) for tag in sorted(set(tags))}

    spiced, plain = (render_page(made_page(spice=one, pairs=pairs)) for one in (spice, ""))
    assert counted(spiced) == counted(plain)
    assert "<script>window" not in spiced
    assert "onerror" not in {name for _, given in _Elements(spiced).found for name in given}


def test_the_same_data_give_the_same_page() -> None:
    assert render_page(made_page(spice=BREAKOUT)) == render_page(made_page(spice=BREAKOUT))


def test_half_a_surrogate_pair_breaks_nothing() -> None:
    assert render_page(made_page(spice="\ud83d")).encode()


def test_an_undefined_cell_says_why_and_a_missing_interval_too() -> None:
    page = render_page(made_page())
    assert "undefined<small>constant</small>" in page
    assert "1.50<small>no interval: few reviewers</small>" in page
    assert "nan" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL).lower().split()


def test_every_plot_carries_its_words_and_its_numbers() -> None:
    page = render_page(made_page())
    assert page.count('aria-label="A square."') == 2
    given = base64.b64decode(re.findall(r'download="scores.csv" href="data:text/csv;charset=utf-8;base64,([^"]+)"', page)[0])
    assert given.decode() == figure().csv


def test_a_profile_that_repeats_is_packed_once() -> None:
    samples = packed(16)  # two readers, three past reviews each
    texts = unpacked(samples.texts)
    details = unpacked(samples.items)
    assert len(texts) == len(set(texts)) == 2 * 3 * 2 + 16 * (1 + 1 + 1) + 1  # and the error of the one that could not be read
    assert details[0]["profile"] == details[7]["profile"] != details[8]["profile"]


def test_a_sample_is_found_again_whole() -> None:
    examples = score_examples(8)
    answers = score_answers(examples)
    samples = pack_samples(examples, {"one": answers}, labels=LABELS, most=10, seed=0)
    texts, details = unpacked(samples.texts), unpacked(samples.items)
    for example, detail in zip(examples, details, strict=True):
        assert isinstance(example, PointwiseExample)
        assert example.reference
        assert texts[detail["query"][0][1]] == example.query
        assert texts[detail["review"]] == example.reference.review
        assert [texts[part[1]] for part in detail["profile"][0]["parts"]] == [
            example.profile[0].text,
            example.profile[0].review,
        ]
        assert texts[detail["answers"][0]["text"]] == answers[example.id].text


def test_text_chunks_begin_where_the_head_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perse.reporting.samples.TEXT_CHUNK", 2000)
    samples = packed(16)
    lengths = [len(unpacked((chunk,))) for chunk in samples.texts]
    assert len(lengths) > 2
    assert samples.head["textStarts"] == [sum(lengths[:n]) for n in range(len(lengths))]


def test_failures_are_kept_before_others_and_the_order_stays() -> None:
    examples = score_examples(200)
    answers = score_answers(examples)
    kept = chosen(examples, {"one": answers}, most=20, seed=1)
    failed = [example for example in examples if answers[example.id].status is not Status.OK]
    assert len(failed) == 4
    assert set(failed) < set(kept)
    assert kept == [example for example in examples if example in set(kept)]
    assert chosen(examples, {"one": answers}, most=20, seed=1) == kept != chosen(examples, {"one": answers}, most=20, seed=2)


def test_what_a_page_leaves_out_it_says() -> None:
    samples = packed(200, most=20)
    assert (samples.shown, samples.judged) == (20, 200)


def test_an_example_that_one_judge_was_not_asked_stays() -> None:
    examples = score_examples(8)
    answers = score_answers(examples)
    fewer = {key: value for key, value in answers.items() if key != examples[0].id}
    samples = pack_samples(examples, {"one": answers, "two": fewer}, labels=LABELS, most=10, seed=0)
    assert samples.head["answers"][1]["status"][0] is None
    assert unpacked(samples.items)[0]["answers"][1] is None


def test_pairs_carry_the_probability_of_a() -> None:
    examples = pair_examples()
    head = pack_samples(examples, {"one": pair_answers(examples)}, labels=("A", "B"), most=10, seed=0).head
    assert head["pairs"]
    assert head["answers"][0]["value"] == [0.9, 0.6, 0.3, None]
    assert head["gold"] == ["A"] * 4


def test_summaries_and_prompts_open_too() -> None:
    summary = SummaryExample(
        id="s", reviewer_id="p", reviews=("one", "two"), summary="both", reference=SummaryReference(score=2.5)
    )
    prompt = VerbatimExample(id="v", prompt="as it is")
    answers = {key: next(iter(score_answers(score_examples(1)).values())) for key in ("s", "v")}
    for example, words in ((summary, ["both", "one", "two"]), (prompt, ["as it is"])):
        samples = pack_samples([example], {"one": answers}, labels=LABELS, most=10, seed=0)
        assert unpacked(samples.texts)[: len(words)] == words


def test_no_samples_are_no_crash() -> None:
    assert packed(0).shown == 0


def scored_run(folder: Path, *, seed: int, spice: str = "") -> Path:
    """A run as `perse score` leaves it, of a file of examples."""
    examples = score_examples(96, spice=spice)
    folder.mkdir(parents=True)
    (folder / "examples.jsonl").write_text("".join(example_lines(examples)))
    (folder / "judgements.jsonl").write_text(
        "".join(map(judgement_line, score_answers(examples, seed=seed, spice=spice).values()))
    )
    manifest = {
        "run": {"kind": "score", "fold": None, "judge": {"name": "made", "sha256": "0" * 64}, "settings": {"temperature": 0.8}},
        "context": {"data_folder": None, "data_digest": "d" * 64},
        "environment": {"started": "2026-01-02T03:04:05+00:00"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.mark.integration
def test_a_report_is_whole_and_the_same_when_made_again(tmp_path: Path) -> None:
    runs = [scored_run(tmp_path / "before", seed=1), scored_run(tmp_path / "after", seed=2)]
    page = write_report(runs, out=tmp_path / "report", resamples=100)
    files = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert {"report.html", "evaluation.json", "manifest.json"} <= {path.name for path in files}
    stems = {path.stem for path in files if path.parent.name == "figures"}
    assert all(
        tmp_path.joinpath("report", "figures", stem + end).exists() for stem in stems for end in (".svg", ".png", ".csv")
    )
    words = page.read_text()
    assert "2026-01-02" in words
    assert "not shown to be better than" in words or "worse than" in words or "better than" in words
    (tmp_path / "report" / "figures" / "stale.svg").write_text("of an earlier report")
    write_report(runs, out=tmp_path / "report", resamples=100)
    again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert again == files


@pytest.mark.integration
def test_names_that_are_scripts_stay_names_in_tables_and_plots(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "<script>window.hacked=1", seed=1, spice=BREAKOUT)
    page = write_report([run], out=tmp_path / "out", resamples=100, title=BREAKOUT).read_text()
    elements = _Elements(page).found
    assert [given.get("type") for tag, given in elements if tag == "script" and not given.get("class")] == [
        "application/json",
        None,
    ]
    assert not [tag for tag, _ in elements if tag == "img"]
    assert not [name for _, given in elements for name in given if name.startswith("on")]
    assert "&lt;script&gt;window.hacked=1" in page


def test_a_report_does_not_overwrite_a_run(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    with pytest.raises(BadInput, match="holds a run of `perse score`"):
        write_report([run], out=run)
    assert json.loads((run / "manifest.json").read_text())["run"]["kind"] == "score"


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    with pytest.raises(BadInput, match="is not empty and holds no report"):
        write_report([run], out=tmp_path)


def test_a_folder_without_a_study_is_named(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    (tmp_path / "study").mkdir()
    with pytest.raises(BadInput, match="study holds no finished study"):
        write_report([run], studies=[tmp_path / "study"], out=tmp_path / "out")
    (tmp_path / "study" / "study.json").write_text("{}")
    with pytest.raises(BadInput, match="no result of a study, field"):
        write_report([run], studies=[tmp_path / "study"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_two_studies_of_one_kind_keep_their_plots_apart(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text(made_page().studies[0].result.model_dump_json())
    page = write_report([run], studies=[tmp_path / "one", tmp_path / "two"], out=tmp_path / "out", resamples=100)
    assert (tmp_path / "out" / "figures" / "k-curve-kendall-2.csv").exists()
    own_ids = re.findall(r' id="([^"]+)"', page.read_text())
    assert len(own_ids) == len(set(own_ids))
