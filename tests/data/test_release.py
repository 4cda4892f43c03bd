"""Released files: read as they are, the target never shown, aspects brought together, written as a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import SHARED
from released_rows import Row, entry, mpst_row

from perse.data.examples_file import read_examples
from perse.data.forgetting.forget import forget
from perse.data.release import build_release
from perse.data.sources.faults import Faults
from perse.data.sources.release import (
    NOT_PARSED,
    Released,
    aspect_named,
    aspect_of,
    merge_aspects,
    read_release,
    unwrapped,
)
from perse.errors import BadInput
from perse.records import PairwiseExample, PointwiseExample, ReviewReference

SHARED = SHARED / "perse_release"
MPST, DOC = SHARED / "PerMPST.k3.sample.jsonl", SHARED / "PerDOC.I.sample.jsonl"
needs_real = pytest.mark.skipif(not MPST.exists(), reason="the released samples are not at hand")


def two_reviews(idx: int = 1, *, reviewer: str = "Nora Quill") -> Row:
    past = [
        entry(1, plot="A ferry sinks.", review='I "liked" it.', score=7, reviewer=reviewer),
        entry(2, plot="A ferry\n\nreturns.", review="Slow.", score=3, reviewer=reviewer),
    ]
    return mpst_row(idx, past, entry(9, plot=f"Ghost {idx} sells tickets.", review="Funny ghost.", score=9, reviewer=reviewer))


def doc_row(idx: int, past: Sequence[tuple[str, str, str]], query: tuple[str, str], choice: str, worker: str = "W1") -> Row:
    def pair(a: str, b: str) -> str:
        return f"[The Start of Plot A]\n{a}\n[The End of Plot A]\n[The Start of Plot B]\n{b}\n[The End of Plot B]\n"

    shown = "".join(
        f'[The Start of User Preference]\n{pair(a, b)}In JSON.```json\n{{\n  "Choice": "Plot {said}",\n}}\n```\n\n[The End of User Preference]\n\n'
        for a, b, said in past
    )
    prompt = f'[User Question] Two plots.\n\n{shown}Compare:\n\n{pair(*query)}\nAs:\n```json\n{{\n  "Choice": <"Plot A" or "Plot B">,\n}}\n```\n [Response]'
    return {
        "idx": idx,
        "review_id": worker,
        "prompt": [prompt],
        "completion": f'```json\n{{\n  "Choice": "Plot {choice}",\n}}\n```',
    }


def write(path: Path, *rows: Row) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def read_one(path: Path, **more: Any) -> Released:
    [one] = read_release([path], Faults(), **more)
    return one


def test_a_permpst_row_becomes_a_prompt_and_an_example_without_its_target(tmp_path: Path) -> None:
    one = read_one(write(tmp_path / "PerMPST.jsonl", two_reviews()))
    assert one.verbatim.id == "permpst-1-0" and one.verbatim.reviewer_id == "Nora Quill"
    assert one.verbatim.prompt.startswith("Read these.") and one.verbatim.prompt.endswith("\n[Review] In Json: ")
    assert "<|" not in one.verbatim.prompt and "</s>" not in one.verbatim.prompt
    assert one.verbatim.reference == ReviewReference(review="Funny ghost.", score=9)
    example = one.example
    assert isinstance(example, PointwiseExample)
    assert (example.item_id, example.query, example.reference) == ("tt009", "Ghost 1 sells tickets.", one.verbatim.reference)
    assert [(past.item_id, past.text, past.review, past.score) for past in example.profile] == [
        ("tt001", "A ferry sinks.", 'I "liked" it.', 7),
        ("tt002", "A ferry\n\nreturns.", "Slow.", 3),
    ]
    assert one.title == "The Ferry 9" and "Ferry 9" not in example.model_dump_json()


def test_a_perdoc_row_becomes_a_comparison_on_the_aspect_of_its_file(tmp_path: Path) -> None:
    path = write(tmp_path / "PerDOC.S.train.jsonl", doc_row(5, [("a", "b", "B")], ("c", "d"), "A"))
    one = read_one(path)
    assert one.verbatim.id == "perdoc-S-5" and one.verbatim.prompt.endswith(" [Response]")
    example = one.example
    assert isinstance(example, PairwiseExample) and example.reference is not None
    assert (example.aspect, example.query.text_a, example.query.text_b) == ("Surprise", "c", "d")
    assert example.reference.preference == "A" and example.reviewer_id == "W1"
    assert [(past.text_a, past.text_b, past.preference) for past in example.profile] == [("a", "b", {"Surprise": "B"})]


@pytest.mark.parametrize(
    ("completion", "review", "score"),
    [
        ('```json\n{\n  "Review": "Fine.",\n  "Score": 7,\n}\n```', "Fine.", 7),
        ('{"Review": "Fine.", "Score": "7"}', "Fine.", 7),
        ('{"Review": "He said "no", then left.", "Score": 10}', 'He said "no", then left.', 10),
        ('{"Review": "A \\"set\\"\\nof two.", "Score": 1}', 'A "set"\nof two.', 1),
        ('{"Review": "A score of 3: "bad".",  "Score": 4}```', 'A score of 3: "bad".', 4),
    ],
)
def test_completions_that_are_nearly_json_are_read(tmp_path: Path, completion: str, review: str, score: int) -> None:
    row = two_reviews()
    row["examples"][-1] |= {"clean_review": review, "score": score}
    one = read_one(write(tmp_path / "m.jsonl", row | {"completion": completion}))
    assert one.verbatim.reference == ReviewReference(review=review, score=score)


def changed(**fields: Any) -> Row:
    return two_reviews() | fields


def with_entry(at: int, **fields: Any) -> Row:
    row = two_reviews()
    row["examples"][at] |= fields
    return row


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            changed(completion="I would not say."),
            "line 1: field 'completion': found \"I would not say.\", expected an answer with",
        ),
        (
            changed(completion='{"Review": "Funny ghost.", "Score": 11}'),
            "field 'completion': found score \"11\", expected a whole",
        ),
        (changed(prompt=[]), r"field 'prompt': found \[\], expected a text, or a list of one"),
        (changed(examples=[]), r"field 'examples': found \[\], expected a list that ends with"),
        (with_entry(0, movie_id=None), "field 'examples.0.movie_id'"),
        (with_entry(1, summ_plot=" \n"), "field 'examples.1.summ_plot': found .* expected a value"),
        (with_entry(0, score=6), "field 'prompt': found score 7 and .* as in 'examples'"),
        (with_entry(1, clean_review="Quick."), 'field \'prompt\': found score 3 and "Slow.", expected 3 and "Quick."'),
        (with_entry(1, summ_plot="Another."), "field 'prompt': plot 1 is not that of 'examples'"),
        (with_entry(-1, summ_plot="Another."), "field 'prompt': the new plot is not that of the last"),
        (with_entry(-1, clean_review="Dull."), "field 'completion': found score 9"),
        (with_entry(-1, movie_id="tt001"), "the new plot stands in the profile"),
        (with_entry(0, reviewer_name="Somebody"), "found several reviewers beside 'Nora Quill'"),
        ({"idx": 1, "prompt": "x"}, "found idx, prompt, expected idx, prompt, completion and examples"),
        (changed(examples=two_reviews()["examples"][1:]), "shows 2 reviews where 'examples' has 1"),
    ],
)
def test_a_row_that_contradicts_itself_is_named_by_line_and_field(tmp_path: Path, row: Row, message: str) -> None:
    path = write(tmp_path / "m.jsonl", row, two_reviews(2))
    with pytest.raises(BadInput, match=message):
        read_release([path], Faults())
    faults = Faults("skip")
    assert [one.verbatim.id for one in read_release([path], faults)] == ["permpst-2-0"]
    assert len(faults.rows) == 1 and faults.rows[0].line == 1


def test_a_pair_that_stands_in_its_own_profile_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "PerDOC.E.jsonl", doc_row(1, [("a", "b", "A")], ("B", "a"), "A"))
    with pytest.raises(BadInput, match="the new pair stands in the profile"):
        read_release([path], Faults())


def test_files_of_several_k_are_read_together_under_ids_of_their_own(tmp_path: Path) -> None:
    one, two = write(tmp_path / "k1.jsonl", two_reviews()), write(tmp_path / "k3.jsonl", two_reviews())
    summary = build_release([one, two], tmp_path / "out")
    for name in ("verbatim", "examples"):
        found = read_examples(tmp_path / "out" / f"{name}.jsonl")
        assert [row.id for row in found] == ["permpst-1-0", "permpst-1-0-2"]
    assert "1 row has the idx of a row before: the id then ends in -2, -3 and so on" in summary.lines()


def test_rows_of_one_idx_and_annotator_are_all_read_under_ids_of_their_own(tmp_path: Path) -> None:
    rows = [doc_row(5, [(a, "z", "A")], ("c", "d"), "A") for a in ("a", "b", "a")]
    path = write(tmp_path / "PerDOC.I.jsonl", *rows)
    found = merge_aspects(read_release([path], Faults())).released
    assert [one.verbatim.id for one in found] == ["perdoc-I-5", "perdoc-I-5-2", "perdoc-I-5-3"]
    examples = [one.example for one in found]
    assert [one.id for one in examples if one] == [one.verbatim.id for one in found]
    assert [one.profile[0].text_a for one in examples if isinstance(one, PairwiseExample)] == ["a", "b", "a"]


def test_a_prompt_of_another_shape_is_kept_verbatim_and_has_no_example(tmp_path: Path) -> None:
    mpst = write(tmp_path / "m.jsonl", changed(prompt="Write what Nora would: Ghost 1 sells tickets."))
    doc = write(tmp_path / "PerDOC.I.jsonl", doc_row(1, [], ("a", "b"), "A") | {"prompt": ["Which one?"]})
    assert read_one(mpst).example is None and read_one(mpst).verbatim.prompt.startswith("Write what")
    assert read_one(doc).example is None


@pytest.mark.parametrize(
    ("name", "aspect"),
    [
        ("PerDOC.I.sample.jsonl", "Interestingness"),
        ("per_doc_s.jsonl.gz", "Surprise"),
        ("perdoc-adaptability.jsonl", "Adaptability"),
        ("PerDOC.CharacterDevelopment.jsonl", "Character Development"),
        ("doc.C.jsonl", "Character Development"),
        ("E.jsonl", "Ending"),
    ],
)
def test_a_file_name_tells_the_aspect(name: str, aspect: str) -> None:
    assert aspect_of(Path(name)) == aspect


def test_an_aspect_that_is_not_told_must_be_given(tmp_path: Path) -> None:
    path = write(tmp_path / "doc.jsonl", doc_row(5, [("a", "b", "B")], ("c", "d"), "A"))
    with pytest.raises(BadInput, match="the name tells no aspect; give the aspect"):
        read_release([path], Faults())
    with pytest.raises(BadInput, match="tells Ending and Surprise"):
        aspect_of(Path("S.E.jsonl"))
    assert read_one(path, aspect="character").verbatim.id == "perdoc-C-5"
    with pytest.raises(BadInput, match="aspect 'Z' is none of Per-DOC's"):
        aspect_named("Z")


def test_aspects_of_one_comparison_share_query_and_profile(tmp_path: Path) -> None:
    """Interestingness as given; in Surprise both the query and the profile pair stand the other way round."""
    one = write(tmp_path / "PerDOC.I.jsonl", doc_row(5, [("a", "b", "B")], ("c", "d"), "A"))
    two = write(tmp_path / "PerDOC.S.jsonl", doc_row(5, [("b", "a", "B")], ("d", "c"), "A"))
    merged = merge_aspects(read_release([one, two], Faults()))
    first, second = (released.example for released in merged.released)
    assert isinstance(first, PairwiseExample) and isinstance(second, PairwiseExample)
    assert first.query == second.query and merged.conflicts == {}
    assert first.reference and second.reference and (first.reference.preference, second.reference.preference) == ("A", "B")
    assert first.profile[0].preference == {"Interestingness": "B", "Surprise": "A"}
    assert second.profile[0].preference == {"Interestingness": "A", "Surprise": "B"} and second.profile[0].text_a == "b"


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        (doc_row(5, [("a", "b", "A")], ("c", "d"), "A", worker="W2"), "an idx with several annotators"),
        (doc_row(5, [("a", "b", "A")], ("c", "e"), "A"), "an idx with several pairs"),
    ],
)
def test_what_is_not_one_comparison_stays_apart_and_is_counted(tmp_path: Path, other: Row, reason: str) -> None:
    one = write(tmp_path / "PerDOC.I.jsonl", doc_row(5, [("a", "b", "B")], ("c", "d"), "A"))
    released = read_release([one, write(tmp_path / "PerDOC.S.jsonl", other)], Faults())
    merged = merge_aspects(released)
    assert merged.conflicts == {reason: 1} and merged.released == tuple(released)


def test_two_answers_for_one_profile_pair_are_counted_and_each_row_keeps_its_own(tmp_path: Path) -> None:
    row = doc_row(5, [("a", "b", "B"), ("b", "a", "B")], ("c", "d"), "A")
    merged = merge_aspects(read_release([write(tmp_path / "PerDOC.I.jsonl", row)], Faults()))
    [one] = merged.released
    assert merged.conflicts == {"a profile pair with two answers": 1}
    assert isinstance(one.example, PairwiseExample)
    assert [past.preference for past in one.example.profile] == [{"Interestingness": "B"}] * 2


# Texts that hold none of the marks of a prompt; a quote may not end a string early, which no reader could tell apart.
plain = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "Zs"), exclude_characters='"\\`[]{}<>'), min_size=1)
texts = plain.map(lambda text: " ".join(text.split())).filter(bool)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    plots=st.lists(texts, min_size=1, max_size=5, unique_by=lambda text: " ".join(text.casefold().split())),
    review=texts,
    scores=st.lists(st.integers(1, 10), min_size=5, max_size=5),
)
def test_what_is_rendered_as_released_is_read_back(tmp_path: Path, plots: list[str], review: str, scores: list[int]) -> None:
    entries = [entry(n, plot=f"{n} {plot}", review=review, score=scores[n]) for n, plot in enumerate(plots)]
    one = read_one(write(tmp_path / "m.jsonl", mpst_row(3, entries[:-1], entries[-1])))
    assert one.verbatim.reference == ReviewReference(review=review, score=scores[len(plots) - 1])
    assert isinstance(one.example, PointwiseExample) and one.example.query == entries[-1]["summ_plot"]
    assert [(past.text, past.review, past.score) for past in one.example.profile] == [
        (one["summ_plot"], one["clean_review"], one["score"]) for one in entries[:-1]
    ]


@pytest.mark.parametrize(
    ("prompt", "plain"),
    [
        ("<|prompter|>Ask.\n</s><|assistant|>[Review] ", "Ask.\n[Review] "),
        ("<|prompter|>Ask.</s>", "Ask."),
        ("Ask of <|prompter|>.", "Ask of <|prompter|>."),
        ("<|prompter|>Ask.<|assistant|>", "Ask."),
    ],
)
def test_the_marks_of_turns_are_taken_off(prompt: str, plain: str) -> None:
    assert unwrapped(prompt) == plain


def test_the_folder_is_byte_identical_and_its_lines_are_examples(tmp_path: Path) -> None:
    source = write(tmp_path / "m.jsonl", two_reviews(1), two_reviews(2, reviewer="Ada Moor"), changed(idx=3, completion="?"))
    folders = [tmp_path / "one", tmp_path / "two"]
    summaries = [build_release([source], out, on_error="skip") for out in folders]
    contents = [{path.name: path.read_bytes() for path in out.iterdir()} for out in folders]
    assert contents[0] == contents[1]
    assert contents[0].keys() == {"verbatim.jsonl", "examples.jsonl", "manifest.json", "README.md", "skipped.jsonl"}
    verbatim, examples = (read_examples(folders[0] / f"{name}.jsonl") for name in ("verbatim", "examples"))
    assert [one.id for one in verbatim] == [one.id for one in examples] == ["permpst-1-0", "permpst-2-0"]
    assert len({one.reviewer_id for one in verbatim}) == 2
    assert all(name not in text.decode() for name in ("Nora Quill", "Ada Moor") for text in contents[0].values())
    skipped = json.loads(contents[0]["skipped.jsonl"])
    assert (skipped["file"], skipped["line"], skipped["field"]) == ("m.jsonl", 3, "completion")
    shown = "\n".join(summaries[0].lines())
    assert "2 prompts of 2 reviewers" in shown and "left out: 1 row, no answer" in shown


def test_another_salt_gives_other_names_and_kept_names_stay(tmp_path: Path) -> None:
    source = write(tmp_path / "m.jsonl", two_reviews())
    more: list[Row] = [{}, {"salt": "s"}, {"keep_names": True}]
    for n, options in enumerate(more):
        build_release([source], tmp_path / str(n), **options)
    names = [read_examples(tmp_path / str(n) / "verbatim.jsonl")[0].reviewer_id for n in range(3)]
    assert len(set(names)) == 3 and names[2] == "Nora Quill"


def test_names_that_survive_in_prompts_are_a_warning(tmp_path: Path) -> None:
    row = two_reviews()
    told = "Nora Quill on The Ferry 9:"
    row["prompt"] = [row["prompt"][0].replace("Read these.", told)]
    lines = build_release([write(tmp_path / "m.jsonl", row)], tmp_path / "out").lines()
    assert "warning: the title of what is asked about stands in 1 prompt" in lines
    assert "warning: the reviewer's name stands in 1 prompt" in lines
    assert "the reviewer's name stands in 1 prompt" in (tmp_path / "out" / "README.md").read_text()


def test_what_was_counted_before_a_person_left_is_not_said_of_the_prompts_that_stay(tmp_path: Path) -> None:
    titled = two_reviews(reviewer="Ben Bold")
    titled["prompt"] = [titled["prompt"][0].replace("Read these.", "Of The Ferry 9:")]
    build_release([write(tmp_path / "m.jsonl", titled, two_reviews(2))], tmp_path / "out", keep_names=True)
    card = tmp_path / "out" / "README.md"
    assert "Found as written:\n" in card.read_text() and "Not taken apart, or not merged:\n" in card.read_text()
    forget("Ben Bold", [tmp_path / "out"])
    assert "holds 1 prompt of 1 reviewer," in card.read_text()
    assert (
        "Found as written, of all prompts before anybody left:\n\n- the title of what is asked about stands in 1 prompt"
        in card.read_text()
    )
    assert "Not taken apart, or not merged, of all prompts before anybody left:\n" in card.read_text()


def test_a_limit_draws_rows_by_the_seed(tmp_path: Path) -> None:
    source = write(tmp_path / "m.jsonl", *(two_reviews(n) for n in range(1, 30)))
    drawn = []
    for seed in (0, 0, 1):
        summary = build_release([source], tmp_path / "out", limit=5, seed=seed, overwrite=True)
        drawn.append([one.id for one in read_examples(tmp_path / "out" / "verbatim.jsonl")])
        assert summary.manifest["dropped"] == {"beyond the 5 asked for": 24}
    assert drawn[0] == drawn[1] != drawn[2] and all(len(ids) == 5 for ids in drawn)


def test_prompts_without_an_example_are_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "m.jsonl", changed(prompt="Write as Nora."), two_reviews(2))
    summary = build_release([source], tmp_path / "out")
    assert summary.manifest["not_parsed"] == {NOT_PARSED: 1}
    assert summary.manifest["counts"]["prompts"] == 2 and summary.manifest["counts"]["examples"] == 1


def test_a_build_that_makes_no_sense_writes_nothing(tmp_path: Path) -> None:
    mpst = write(tmp_path / "m.jsonl", two_reviews())
    doc = write(tmp_path / "PerDOC.I.jsonl", doc_row(1, [("a", "b", "A")], ("c", "d"), "A"))
    bad = write(tmp_path / "bad.jsonl", changed(completion="?"))
    wrong: list[tuple[list[Path], Row, str]] = [
        ([], {}, "no file is given"),
        ([mpst, doc], {}, "Per-MPST and Per-DOC rows together; build a folder of each"),
        ([mpst], {"limit": 0}, "limit is 0, expected 1 or more"),
        ([mpst], {"keep_names": True, "salt": "s"}, "keep_names and a salt exclude each other"),
        ([mpst], {"salt": ""}, "the salt is empty, which keeps no name secret"),
        ([bad], {"on_error": "skip"}, "no usable row; the first: .*bad.jsonl, line 1"),
    ]
    for paths, options, message in wrong:
        with pytest.raises(BadInput, match=message):
            build_release(paths, tmp_path / "out", **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["PerDOC.I.jsonl", "bad.jsonl", "m.jsonl"]


def test_only_such_a_folder_is_overwritten(tmp_path: Path) -> None:
    source = write(tmp_path / "m.jsonl", two_reviews())
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "thesis.txt").write_text("mine")
    with pytest.raises(BadInput, match="is no folder of released data, so it is not overwritten"):
        build_release([source], taken, overwrite=True)
    build_release([source], tmp_path / "out")
    with pytest.raises(BadInput, match="already holds a folder of released data"):
        build_release([source], tmp_path / "out")
    build_release([source], tmp_path / "out", overwrite=True)
    with pytest.raises(BadInput, match="found a file"):
        build_release([source], source)


@needs_real
def test_the_released_samples_are_read_whole(tmp_path: Path) -> None:
    for path, kind in ((MPST, PointwiseExample), (DOC, PairwiseExample)):
        summary = build_release([path], tmp_path / path.name)
        assert summary.manifest["counts"]["prompts"] == summary.manifest["counts"]["examples"] == 4
        assert all(isinstance(one, kind) for one in read_examples(tmp_path / path.name / "examples.jsonl"))
        assert len(read_examples(tmp_path / path.name / "verbatim.jsonl")) == 4


@needs_real
def test_no_word_of_a_real_target_is_in_its_profile() -> None:
    for one in read_release([MPST], Faults()):
        assert isinstance(one.example, PointwiseExample) and one.example.reference is not None
        profile = " ".join(past.text + str(past.review) for past in one.example.profile)
        assert len(one.example.profile) == 3 and one.example.item_id not in {past.item_id for past in one.example.profile}
        assert one.example.reference.review not in profile and one.example.query not in profile


def test_a_row_whose_profile_nearly_shows_the_query_stays_verbatim_only_and_is_counted(tmp_path: Path) -> None:
    plot = " ".join(f"word{n}" for n in range(60))
    near = mpst_row(
        3, [entry(1, plot=plot.replace("word30", "other"), review="r", score=2)], entry(2, plot=plot, review="s", score=3)
    )
    summary = build_release([write(tmp_path / "PerMPST.jsonl", two_reviews(), near)], tmp_path / "out")
    assert summary.manifest["counts"]["prompts"] == 2 and summary.manifest["counts"]["examples"] == 1
    assert summary.manifest["not_parsed"] == {"the profile shows the query, or nearly": 1}
    shared = doc_row(4, [("the same plot", "b", "A")], ("the same plot", "d"), "B")
    paired = build_release(
        [write(tmp_path / "PerDOC.I.jsonl", doc_row(5, [("a", "b", "B")], ("c", "d"), "A"), shared)], tmp_path / "doc"
    )
    assert paired.manifest["counts"]["examples"] == 1


@pytest.mark.parametrize("idx", [None, {"a": "Nora Quill"}, True, "x"])
def test_a_row_without_an_index_is_refused(tmp_path: Path, idx: object) -> None:
    path = write(tmp_path / "PerMPST.jsonl", two_reviews() | {"idx": idx})
    with pytest.raises(BadInput, match="line 1: field 'idx': found .*, expected a whole number"):
        read_release([path], Faults())


def test_the_hubs_library_reads_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    build_release([write(tmp_path / "PerMPST.jsonl", two_reviews())], tmp_path / "out")
    for name in ("verbatim", "examples"):
        found = datasets.load_dataset(str(tmp_path / "out"), name, cache_dir=str(tmp_path / "cache"))
        assert found["rows"].num_rows == 1
