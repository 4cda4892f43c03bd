from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from kgds_builders import benchmark, bits, put, write_benchmark_file, write_released

from perse.errors import BadInput
from perse.kgds.benchmark import read_benchmark
from perse.kgds.outcomes import ErrorType, Outcomes
from perse.kgds.released.layout import is_released
from perse.kgds.released.reader import read_released
from perse.kgds.scoring.metrics import results
from perse.kgds.scoring.results import Results, Scores


@pytest.fixture
def outputs(tmp_path: Path) -> Path:
    return write_released(tmp_path)


def read(outputs: Path) -> list[Outcomes]:
    return read_released(outputs, benchmark())


def one(outcomes: list[Outcomes], model: str, pattern: str, paradigm: str = "structured") -> Outcomes:
    return next(found for found in outcomes if (found.model, found.pattern, found.paradigm) == (model, pattern, paradigm))


def row(found: Results, model: str, pattern: str, paradigm: str) -> Scores:
    return next(s for s in found.scores if (s.model, s.pattern, s.paradigm) == (model, pattern, paradigm))


# What the fixture scores, by hand; a / b is sample 1 / sample 2, the table's value their mean in percent.
#
# ebs-aos       R          P          F1           CAO         OP                              extracted
# alpha, str.   1 / 1      1 / 1/2    1 / 2/3      2/3 / 1/2   sqrt(2/3) / sqrt(1/3)           2/4 / 2/2
# alpha, refl.  1/2 / 0    1/2 / 0    1/2 / 0      1 / 0       sqrt(1/2) / 0                   2/4 / 0, and one paragraph 9
# beta, str.    failed: 0 / 1 in all                                                           0 / 1/2
# beta, refl.   1/2 / 0    1 / 0      2/3 / 0      2/3 / 1/2   2/3 / 0                         1/4 / 1/2
#
# abs-aos       R          P          F1           CAO         OP
# alpha, str.   2/4 / 1    2/3 / 1    4/7 / 1      1/3 / 1     sqrt(4/21) / 1
# alpha, refl.  0 / 1/2    0 / 1/2    0 / 1/2      1/3 / 1     0 / sqrt(1/2)
# beta, str.    1 / 0      1 / 0      1 / 0        1 / 0       1 / 0
# beta, refl.   3/4 / 1    3/6 / 2/3  3/5 / 4/5    2/3 / 1/2   sqrt(2/5) / sqrt(2/5)
TABLE_1 = {
    ("alpha", "ebs-aos", "structured"): (100, 75, 83.33, 58.33, 69.69, 75),
    ("alpha", "ebs-aos", "reflection"): (25, 25, 25, 50, 35.36, 25),
    ("beta", "ebs-aos", "structured"): (50, 50, 50, 50, 50, 25),
    ("beta", "ebs-aos", "reflection"): (25, 50, 33.33, 58.33, 33.33, 37.5),
    ("alpha", "abs-aos", "structured"): (75, 83.33, 78.57, 66.67, 71.82),
    ("alpha", "abs-aos", "reflection"): (25, 25, 25, 66.67, 35.36),
    ("beta", "abs-aos", "structured"): (50, 50, 50, 50, 50),
    ("beta", "abs-aos", "reflection"): (87.5, 58.33, 70, 58.33, 63.25),
}


def test_the_released_layout_gives_the_rows_of_table_1(outputs: Path) -> None:
    found = results(benchmark(), read(outputs), resamples=100)
    rows = {(s.model, s.pattern, s.paradigm): tuple(estimate.value for estimate in s.values.values()) for s in found.scores}
    assert rows == TABLE_1
    assert {s.failed for s in found.scores if s.model == "alpha"} == {0}
    # beta's first summary extracts nothing that can be read; its opinions were verified all the same.
    assert row(found, "beta", "ebs-aos", "structured").failed == 0
    assert any("of sample 1 what was verified stands" in note for note in found.notes)
    assert row(found, "alpha", "ebs-aos", "reflection").strange == 1
    # Supporting paragraphs: 2 of 4 and 1 of 2.
    assert (found.samples, found.supporting_share, found.left_out) == ((1, 2), 50, {})


def test_the_released_layout_gives_the_rows_of_table_2(outputs: Path) -> None:
    found = results(benchmark(), read(outputs), resamples=100)

    def shares(model: str, pattern: str, paradigm: str) -> list[float]:
        errors = row(found, model, pattern, paradigm).errors
        assert errors is not None and errors.shares is not None
        return list(errors.shares.values())

    # In the order OFI OSD IRU IRIC OM, which the authors number 5 4 3 2 1.
    assert shares("alpha", "ebs-aos", "structured") == [0, 0, 50, 0, 50]
    assert shares("alpha", "ebs-aos", "reflection") == [0, 0, 50, 50, 0]
    assert shares("beta", "ebs-aos", "structured") == [0, 0, 66.67, 33.33, 0]
    assert shares("alpha", "abs-aos", "structured") == [0, 0, 100, 0, 0]
    assert shares("alpha", "abs-aos", "reflection") == [50, 50, 0, 0, 0]
    assert shares("beta", "abs-aos", "structured") == [0, 0, 0, 50, 50]
    changed = next(delta for delta in found.deltas if (delta.model, delta.pattern) == ("alpha", "ebs-aos"))
    assert changed.errors is not None and list(changed.errors.values()) == [0, 0, 0, 50, -50]


def test_deltas_gaps_and_means_are_those_of_the_tables(outputs: Path) -> None:
    found = results(benchmark(), read(outputs), resamples=100)
    delta = next(delta for delta in found.deltas if (delta.model, delta.pattern) == ("alpha", "ebs-aos"))
    assert [estimate.value for estimate in delta.values.values()] == [-75, -50, -58.33, -8.33, -34.33, -50]
    # 69.69 - 71.82, and (69.69 + 71.82) / 2 = 70.755.
    across = {(each.model, each.paradigm): (each.gap.value, each.mean.value) for each in found.across}
    assert across["alpha", "structured"] == (-2.13, 70.76)
    assert across["alpha", "reflection"] == (0, 35.36)


def test_ten_comes_after_nine_and_facts_are_in_their_order(outputs: Path) -> None:
    read_back = read(outputs)
    assert one(read_back, "alpha", "ebs-aos").samples[1].opinions == bits("110")
    assert one(read_back, "alpha", "abs-aos", "reflection").samples[1].opinions == bits("001")
    assert one(read_back, "alpha", "abs-aos").samples[1].facts == bits("101 101 10 01")
    assert one(read_back, "beta", "abs-aos", "reflection").samples[2].facts == bits("11 1")


def test_models_come_by_name_with_patterns_and_prompts_in_order(outputs: Path) -> None:
    order = [(found.model, found.pattern, found.paradigm) for found in read(outputs)]
    ways = [(pattern, paradigm) for pattern in ("ebs-aos", "abs-aos") for paradigm in ("structured", "reflection")]
    assert order == [(model, *way) for model in ("alpha", "beta") for way in ways]
    assert {found.model for found in read_released(outputs, benchmark(), models=["beta"])} == {"beta"}
    with pytest.raises(BadInput, match="has no model 'gamma'; it has alpha, beta"):
        read_released(outputs, benchmark(), models=["gamma"])


def test_the_folder_may_hold_outputs_or_be_it(outputs: Path) -> None:
    assert read_released(outputs.parent, benchmark()) == read(outputs)
    assert is_released(outputs) and is_released(outputs.parent) and not is_released(outputs.parent.parent / "elsewhere")
    with pytest.raises(BadInput, match="is not the authors' release"):
        read_released(outputs / "paradigms" / "ebs-aos", benchmark())


FACTS = "verification/fact/abs-aos/structured-prompt/alpha"
OPINIONS = "verification/opinion/ebs-aos/structured-prompt/alpha"
DETECTED = "detection/opinion/ebs-aos/structured-prompt/alpha"
SUMMARIES = "paradigms/ebs-aos/structured-prompt/alpha"
YES = {"Inference_Conclusion": "knowable"}


def test_only_knowable_is_covered(outputs: Path) -> None:
    path = outputs / "verification/opinion/ebs-aos/structured-prompt/alpha/8.ebs-aos-1_1.result.json"
    for conclusion in ("unknowable", "not knowable"):
        put(path, {"Inference_Conclusion": conclusion})
        assert one(read(outputs), "alpha", "ebs-aos").samples[1].opinions == bits("010")


@pytest.mark.parametrize("conclusion", ["Knowable", "partly knowable", "", None, True, ["knowable"]])
def test_an_unknown_verification_label_is_refused_or_not_covered_as_published(outputs: Path, conclusion: object) -> None:
    put(outputs / OPINIONS / "8.ebs-aos-1_1.result.json", {"Inference_Conclusion": conclusion})
    refused = one(read(outputs), "alpha", "ebs-aos").refused
    assert refused is not None and 'expected "knowable" or "unknowable"' in refused and "--as-published" in refused
    published = read_released(outputs, benchmark(), as_published=True)
    assert one(published, "alpha", "ebs-aos").samples[1].opinions == bits("010")


def test_an_empty_extraction_scores_0_and_has_not_failed(outputs: Path) -> None:
    outcome = one(read(outputs), "alpha", "ebs-aos", "reflection").samples[2]
    assert (outcome.cited, outcome.failed) == (frozenset(), None)


UNREADABLE = [
    ("Sure! Here is the summary", "not JSON"),
    ("[1, 2]", "no JSON object"),
    ("{}", "no list Extractive_Background_Summary"),
    ('{"Extractive_Background_Summary": "<Paragraph_1>"}', "no list Extractive_Background_Summary"),
    ('{"Extractive_Background_Summary": null}', "no list Extractive_Background_Summary"),
    ("[" * 100_000, "not JSON"),
    ('{"Extractive_Background_Summary": [1' + "0" * 5000 + "]}", "not JSON"),
]
KINDS = ["words", "a list", "an empty object", "no list", "null", "brackets alone", "a long number"]


@pytest.mark.parametrize(("content", "why"), UNREADABLE, ids=KINDS)
def test_a_summary_that_cannot_be_read_nor_was_verified_has_failed_and_says_why(outputs: Path, content: str, why: str) -> None:
    (outputs / SUMMARIES / "2.ebs-aos.result.json").write_text(content)
    for path in (outputs / OPINIONS).glob("*aos-2_*"):
        path.unlink()
    outcome = one(read(outputs), "alpha", "ebs-aos").samples[2]
    assert outcome.failed is not None and why in outcome.failed
    assert outcome.cited == frozenset()


@pytest.mark.parametrize(("content", "why"), UNREADABLE, ids=KINDS)
def test_verified_opinions_stand_beside_an_extraction_that_cannot_be_read(outputs: Path, content: str, why: str) -> None:
    (outputs / SUMMARIES / "2.ebs-aos.result.json").write_text(content)
    found = one(read(outputs), "alpha", "ebs-aos")
    assert (found.samples[2].failed, found.samples[2].cited, found.samples[2].opinions) == (None, frozenset(), bits("10"))
    assert any("of sample 2 what was verified stands" in note and why in note for note in found.notes)
    # Sample 1: 2/3 of the opinions; sample 2: 1/2. Its F1 is 0, and so OP.
    values = row(results(benchmark(), [found], resamples=100), "alpha", "ebs-aos", "structured").values
    assert (values["cao"].value, values["f1"].value, values["op"].value) == (58.33, 50, 40.82)


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ("Paragraphs 4-6", '"Paragraphs 4-6"'),
        ("None", '"None"'),
        (True, "true"),
        ("\ud800", '"\\ud800"'),
        (["<Paragraph_1>"], r'["<Paragraph_1>"]'),
    ],
    ids=["a range", "none", "a truth value", "half a character", "a list in the list"],
)
def test_an_odd_tag_is_dropped_and_zeroes_no_verified_sample(outputs: Path, odd: object, told: str) -> None:
    put(
        outputs / SUMMARIES / "1.ebs-aos.result.json",
        {"Extractive_Background_Summary": ["<Paragraph_1>", odd, "<Paragraph_3>"]},
    )
    found = one(read(outputs), "alpha", "ebs-aos")
    assert (found.samples[1].cited, found.samples[1].odd, found.samples[1].failed) == ({1, 3}, 1, None)
    assert f"1 extracted tag names no paragraph (sample 1), such as {told}" in found.notes
    compared = row(results(benchmark(), read(outputs), resamples=100), "alpha", "ebs-aos", "structured")
    assert tuple(estimate.value for estimate in compared.values.values()) == TABLE_1["alpha", "ebs-aos", "structured"]
    assert (compared.odd, compared.strange, compared.failed) == (1, 0, 0)
    # As published it is extracted and wrong: P of sample 1 is 2/3, its F1 4/5; (2/3 + 1/2) / 2 and (4/5 + 2/3) / 2.
    published = results(benchmark(), read_released(outputs, benchmark(), as_published=True), as_published=True, resamples=100)
    values = row(published, "alpha", "ebs-aos", "structured").values
    assert (values["recall"].value, values["precision"].value, values["f1"].value) == (100, 58.33, 73.33)


def test_paragraphs_are_named_as_our_own_runs_may_name_them(outputs: Path) -> None:
    put(
        outputs / "paradigms/ebs-aos/structured-prompt/alpha/1.ebs-aos.result.json",
        {"Extractive_Background_Summary": [" <Paragraph_1> ", "Paragraph 2", 4]},
    )
    outcome = one(read(outputs), "alpha", "ebs-aos").samples[1]
    assert (outcome.cited, outcome.failed) == ({1, 2, 4}, None)


def test_an_abstractive_summary_that_is_not_json_has_failed_unless_it_was_verified(outputs: Path) -> None:
    (outputs / "paradigms/abs-aos/structured-prompt/alpha/2.abs-aos.result.json").write_text("I cannot do that.")
    outcome = one(read(outputs), "alpha", "abs-aos").samples[2]
    assert (outcome.failed, outcome.facts, outcome.opinions) == (None, bits("11 0"), bits("11"))
    for folder in (FACTS, OPINIONS.replace("ebs", "abs")):
        for path in (outputs / folder).glob("*-2_*"):
            path.unlink()
    outcome = one(read(outputs), "alpha", "abs-aos").samples[2]
    assert (outcome.failed, outcome.cited) == ("the model's answer is not JSON", None)


@pytest.mark.parametrize(
    ("path", "content", "message"),
    [
        (
            f"{FACTS}/8.abs-1_2.result.json",
            [YES, YES],
            r"8.abs-1_2.result.json: sample 1, paragraph 3: 2 facts are verified of 3; .* is fact 3, 'The library will be open on Sundays.'",
        ),
        (f"{FACTS}/8.abs-1_2.result.json", [YES] * 4, "sample 1, paragraph 3: 4 facts are verified, but the benchmark has 3"),
        (f"{FACTS}/8.abs-1_2.result.json", YES, "sample 1: found an object, expected a list"),
        (
            f"{FACTS}/8.abs-1_2.result.json",
            [YES, YES, {"Conclusion": 1}],
            "sample 1, fact 3: expected .* Inference_Conclusion",
        ),
        (f"{FACTS}/99.abs-2_9.result.json", [YES], "99.abs-2_9.*: sample 2 has 3 files for 2 paragraphs with facts"),
        (f"{FACTS}/99.abs-3_1.result.json", [YES], "there is no sample 3 in KGDS.json, which has 2"),
        (f"{FACTS}/99.abs-x_1.result.json", [YES], "the name tells no sample; expected its number"),
        (f"{FACTS}/first.abs-1_1.result.json", [YES], "begins with 'first'; expected a number before the first dot"),
        (f"{OPINIONS}/99.ebs-aos-2_3.result.json", YES, "sample 2 has 3 files for 2 opinions"),
        (f"{OPINIONS}/8.ebs-aos-1_1.result.json", [YES], "sample 1: expected an object with Inference_Conclusion, found"),
        (f"{DETECTED}/9.ebs-aos-1_1.result.json", {"Type": 1}, "expected an object with Detection_Conclusion"),
        (f"{DETECTED}/99.ebs-aos-7_1.result.json", {"Detection_Conclusion": "Error Type1"}, "there is no sample 7"),
        (f"{SUMMARIES}/1.again.result.json", {}, "sample 1 has another summary in the same folder"),
    ],
    ids=lambda value: None if not isinstance(value, str) or "/" not in value else Path(value).name,
)
def test_what_does_not_fit_is_refused_by_file_and_sample(outputs: Path, path: str, content: object, message: str) -> None:
    put(outputs / path, content)
    found = read(outputs)
    [why] = [row.refused for row in found if row.refused]
    assert re.search(message, why) and str(outputs) in why and "\n" not in why
    assert len(found) == 8, "one row is refused, and not the table"


def test_one_refused_row_leaves_the_table_as_it_is(outputs: Path) -> None:
    (outputs / OPINIONS / "10.ebs-aos-1_3.result.json").unlink()
    found = results(benchmark(), read(outputs), resamples=100)
    rows = {(s.model, s.pattern, s.paradigm): tuple(estimate.value for estimate in s.values.values()) for s in found.scores}
    assert rows == {key: values for key, values in TABLE_1.items() if key != ("alpha", "ebs-aos", "structured")}
    assert [(one.model, one.pattern, one.paradigm) for one in found.refused] == [("alpha", "ebs-aos", "structured")]
    assert "2 files for 3 opinions" in found.refused[0].why
    assert found.notes[0] == "left out, for the reason in the table: alpha (ebs-aos, structured)"


@pytest.mark.parametrize("folder", ["SUMMARIES", "OPINIONS", "FACTS", "DETECTED"])
def test_an_empty_folder_refuses_one_row(outputs: Path, folder: str) -> None:
    empty = outputs / {"SUMMARIES": SUMMARIES, "OPINIONS": OPINIONS, "FACTS": FACTS, "DETECTED": DETECTED}[folder]
    for path in empty.iterdir():
        path.unlink()
    found = results(benchmark(), read(outputs), resamples=100)
    assert len(found.scores) == 7 and len(found.refused) == 1 and found.samples == (1, 2)
    assert found.refused[0].why == f"{empty} has no files *result.json; download it again"


def test_where_no_row_can_be_read_the_first_reason_is_said(outputs: Path) -> None:
    (outputs / OPINIONS / "10.ebs-aos-1_3.result.json").unlink()
    alone = [one(read(outputs), "alpha", "ebs-aos")]
    with pytest.raises(BadInput, match="2 files for 3 opinions"):
        results(benchmark(), alone, resamples=100)


def test_a_summary_of_a_sample_that_the_benchmark_lacks_refuses_all(outputs: Path) -> None:
    put(outputs / SUMMARIES / "3.ebs-aos.result.json", {})
    with pytest.raises(BadInput, match="there is no sample 3 in KGDS.json, which has 2; give the benchmark"):
        read(outputs)


def test_a_missing_file_is_named_by_what_it_would_verify(outputs: Path) -> None:
    (outputs / FACTS / "12.abs-2_2.result.json").unlink()
    why = one(read(outputs), "alpha", "abs-aos").refused or ""
    assert re.search("sample 2 has 1 files for 2 paragraphs .* is paragraph 1, whose first fact is 'The ferry was", why)


def test_a_missing_opinion_is_named(outputs: Path) -> None:
    (outputs / OPINIONS / "10.ebs-aos-1_3.result.json").unlink()
    why = one(read(outputs), "alpha", "ebs-aos").refused or ""
    assert re.search("sample 1 has 2 files for 3 opinions; .* is 'Person2 thinks that longer evenings", why)


@pytest.mark.parametrize("content", ["{", "[" * 100_000, "1" + "0" * 5000], ids=["torn", "brackets alone", "a long number"])
def test_a_verification_that_is_not_json_is_refused(outputs: Path, content: str) -> None:
    (outputs / OPINIONS / "8.ebs-aos-1_1.result.json").write_text(content)
    why = one(read(outputs), "alpha", "ebs-aos").refused or ""
    assert re.search(r"8.ebs-aos-1_1.result.json is not JSON \(.*\); download it again$", why)


def test_parts_that_are_missing_are_none_and_noted(outputs: Path) -> None:
    shutil.rmtree(outputs / "verification")
    shutil.rmtree(outputs / "detection")
    found = one(read(outputs), "alpha", "ebs-aos")
    assert found.samples[1].opinions is None and found.samples[1].errors is None and found.samples[1].cited == {1, 3}
    assert found.notes == (
        "there is no verification/opinion/ebs-aos/structured-prompt/alpha",
        "there is no detection/opinion/ebs-aos/structured-prompt/alpha",
    )
    scores = row(results(benchmark(), read(outputs), resamples=100), "alpha", "ebs-aos", "structured")
    assert list(scores.values) == ["recall", "precision", "f1", "retrieved"] and scores.errors is None


def test_a_sample_without_its_verification_is_not_compared(outputs: Path) -> None:
    for path in (outputs / OPINIONS).glob("*aos-2_*"):
        path.unlink()
    assert one(read(outputs), "alpha", "ebs-aos").samples[2].opinions is None
    compared = results(benchmark(), read(outputs), resamples=100)
    assert (compared.samples, compared.left_out) == ((1,), {"alpha": (2,)})


def test_a_sample_without_summary_is_not_compared(outputs: Path) -> None:
    (outputs / SUMMARIES / "1.ebs-aos.result.json").unlink()
    assert list(one(read(outputs), "alpha", "ebs-aos").samples) == [2]
    compared = results(benchmark(), read(outputs), resamples=100)
    assert (compared.samples, compared.left_out) == ((2,), {"alpha": (1,)})


def test_verification_alone_is_enough_for_abstractive_summaries(outputs: Path) -> None:
    shutil.rmtree(outputs / "paradigms")
    found = results(benchmark(), [one(read(outputs), "alpha", "abs-aos")], resamples=100)
    assert tuple(estimate.value for estimate in found.scores[0].values.values()) == TABLE_1["alpha", "abs-aos", "structured"]


@pytest.mark.parametrize(
    ("conclusion", "kind"),
    [
        ("Error Type1", ErrorType.OM),
        ("Error Type2", ErrorType.IRIC),
        ("error type 3: the reference is not clear", ErrorType.IRU),
        ("It is Error Type4, yes, Error Type4.", ErrorType.OSD),
        ("Error Type5", ErrorType.OFI),
        ("Error Type6", None),
        ("Error Type12", None),
        ("Error Type1 or Error Type2", None),
        ("no error", None),
        (None, None),
    ],
)
def test_a_conclusion_must_name_exactly_one_type(outputs: Path, conclusion: str | None, kind: ErrorType | None) -> None:
    put(outputs / DETECTED / "9.ebs-aos-1_1.result.json", {"Detection_Conclusion": conclusion})
    found = one(read(outputs), "alpha", "ebs-aos")
    outcome = found.samples[1]
    assert outcome.errors == (() if kind is None else (kind,))
    assert outcome.unanswered == 0, "it is no question about what is covered"
    assert any("1 detection names none" in note for note in found.notes) == (kind is None)


def test_errors_without_a_sample_are_matched_with_the_opinions_not_covered(outputs: Path) -> None:
    # alpha, structured: opinion 3 of sample 1 and opinion 2 of sample 2 are not covered; a third file has nowhere to go.
    shutil.rmtree(outputs / DETECTED)
    for running, kind in ((9, 1), (10, 2), (11, 3)):
        put(outputs / DETECTED / f"{running}.result.json", {"Detection_Conclusion": f"Error Type{kind}"})
    found = one(read(outputs), "alpha", "ebs-aos")
    assert found.samples[1].errors == (ErrorType.OM,)
    assert found.samples[2].errors == (ErrorType.IRIC, ErrorType.IRU)
    assert any("tell no sample" in note for note in found.notes)


def test_only_results_are_read_as_the_authors_glob(outputs: Path) -> None:
    before = read(outputs)
    for folder, name in ((OPINIONS, "8.ebs-aos-1_1.prompt.json"), (FACTS, "notes.json"), (SUMMARIES, "1.log.json")):
        put(outputs / folder / name, {"usage": 1})
    assert read(outputs) == before


def renamed(outputs: Path, marker: str, names: dict[str, str]) -> None:
    """Every verification's and error's name, with another part between marker and `_`."""
    for path in [*outputs.glob("verification/**/*.json"), *outputs.glob("detection/**/*.json")]:
        for old, new in names.items():
            if f"{marker}{old}_" in path.name:
                path.rename(path.with_name(path.name.replace(f"{marker}{old}_", f"{marker}{new}_")))
                break


@pytest.mark.parametrize("names", [{"1": "first", "2": "second"}, {"1": "0", "2": "1"}], ids=["words", "counted from 0"])
def test_names_that_only_group_are_matched_in_order(outputs: Path, names: dict[str, str]) -> None:
    before = read(outputs)
    renamed(outputs, "aos-", names)
    renamed(outputs, "abs-", names)
    for old, new in zip(before, read(outputs), strict=True):
        if new.pattern == "ebs-aos":
            assert new.samples == old.samples
        else:
            assert [each.facts for each in new.samples.values()] == [each.facts for each in old.samples.values()]
        assert any("tell no samples and are matched in order with the summaries" in note for note in new.notes)


def test_facts_whose_names_go_on_with_the_pattern_are_grouped(outputs: Path) -> None:
    before = one(read(outputs), "alpha", "abs-aos")
    for path in (outputs / FACTS).iterdir():
        path.rename(path.with_name(path.name.replace(".abs-", ".abs-aos-")))
    assert one(read(outputs), "alpha", "abs-aos").samples == before.samples


def test_groups_that_are_not_as_many_as_summaries_refuse_the_row(outputs: Path) -> None:
    renamed(outputs, "aos-", {"1": "0"})
    put(outputs / OPINIONS / "99.ebs-aos-5_1.result.json", YES)
    assert "there is no sample 0" in (one(read(outputs), "alpha", "ebs-aos").refused or "")


def test_a_file_for_a_paragraph_without_facts_is_no_matter(outputs: Path) -> None:
    before = one(read(outputs), "alpha", "abs-aos")
    put(outputs / FACTS / "99.abs-2_3.result.json", [])
    assert one(read(outputs), "alpha", "abs-aos") == before


def test_files_that_archives_leave_behind_are_no_matter(outputs: Path) -> None:
    before = read(outputs)
    (outputs / OPINIONS / "._8.ebs-aos-1_1.result.json").write_bytes(b"\x00\x05")
    (outputs / OPINIONS / ".DS_Store").write_bytes(b"\x00")
    (outputs / "paradigms" / "ebs-aos" / "structured-prompt" / ".DS_Store").write_bytes(b"\x00")
    assert read(outputs) == before


def test_the_benchmarks_file_and_the_released_files_go_together(tmp_path: Path, outputs: Path) -> None:
    on_disk = read_benchmark(write_benchmark_file(tmp_path))
    assert read_released(outputs, on_disk) == read(outputs)
    again = results(on_disk, read(outputs), resamples=100)
    assert again.model_dump_json() == results(on_disk, read(outputs), resamples=100).model_dump_json()
    assert json.loads(again.model_dump_json())["benchmark"] == on_disk.digest
