"""Whole builds: same bytes for the same input, nothing half-written, what was dropped is counted."""

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from places import SHARED
from rich.console import Console

import perse
from perse.data.build import (
    PairwiseOptions,
    PointwiseOptions,
    Summary,
    build_pairwise,
    build_pointwise,
    dropped_lines,
    summary_table,
)
from perse.data.dataset.folder import DATA_SET, DataSet, folder_digest, is_data_folder, load_folder
from perse.data.examples_file import read_examples
from perse.data.per_mpst import PerMpstOptions, build_per_mpst
from perse.data.rewriting.plots import RewriteOptions
from perse.errors import BadInput, RunMismatch
from perse.files.replacing import claimed
from perse.identity import pair_key
from perse.records import PairwiseExample, PointwiseExample, Split, example_lines


def pointwise(raw: Path, out: Path, **changes: Any) -> Summary:
    options: dict[str, Any] = {"reviews": raw / "reviews.jsonl", "items": raw / "items.jsonl", "out": out} | changes
    return build_pointwise(PointwiseOptions(**options))


def pairwise(raw: Path, out: Path, **changes: Any) -> Summary:
    options: dict[str, Any] = {"pairs": raw / "pairs.jsonl", "out": out} | changes
    return build_pairwise(PairwiseOptions(**options))


BUILDS = {"pointwise": pointwise, "pairwise": pairwise}


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def printed(summary: Summary, width: int = 80) -> str:
    console = Console(width=width, record=True, file=Path("/dev/null").open("w"))  # noqa: SIM115
    console.print(summary_table(summary))
    return console.export_text()


@pytest.mark.parametrize("kind", BUILDS)
def test_the_same_input_gives_the_same_bytes_and_another_seed_does_not(raw: Path, tmp_path: Path, kind: str) -> None:
    first, second = BUILDS[kind](raw, tmp_path / "one"), BUILDS[kind](raw, tmp_path / "deep" / "two")
    assert content(tmp_path / "one") == content(tmp_path / "deep" / "two")
    assert first.digest == second.digest == load_folder(tmp_path / "one").digest
    # Under names, so that it is the draws that differ and not the pseudonyms alone.
    for seed in (0, 1):
        BUILDS[kind](raw, tmp_path / f"seed{seed}", seed=seed, keep_names=True)
    assert content(tmp_path / "seed0")["examples.parquet"] != content(tmp_path / "seed1")["examples.parquet"]


@pytest.mark.parametrize("kind", BUILDS)
def test_no_name_and_no_path_and_no_salt_is_in_the_folder(raw: Path, tmp_path: Path, kind: str) -> None:
    BUILDS[kind](raw, tmp_path / "set", salt="my secret salt")
    data = load_folder(tmp_path / "set")
    assert all(row.reviewer_id.startswith("r") and len(row.reviewer_id) == 13 for row in data.rows)
    texts = content(tmp_path / "set")
    plain = texts["manifest.json"] + texts["README.md"]
    assert b"Annotator " not in plain and b"Reviewer " not in plain
    assert b"my secret salt" not in plain and str(tmp_path).encode() not in plain and str(raw).encode() not in plain


def test_examples_are_whole_and_sides_share_no_reviewer(raw: Path, tmp_path: Path) -> None:
    summary = pointwise(raw, tmp_path / "set", max_queries=5)
    data = load_folder(tmp_path / "set")
    train, valid = data.examples("train"), data.examples("valid")
    assert [part.examples for part in summary.parts] == [len(train), len(valid)] == [22 * 5, 2 * 5]
    assert not {one.reviewer_id for one in train} & {one.reviewer_id for one in valid}
    for one in [*train, *valid]:
        assert isinstance(one, PointwiseExample) and one.reference is not None
        assert len(one.profile) == 3 and one.item_id not in {past.item_id for past in one.profile}
        assert [past.time or "" for past in one.profile] == sorted(past.time or "" for past in one.profile)


def test_the_stricter_split_shares_no_item_and_counts_what_it_lost(raw: Path, tmp_path: Path) -> None:
    summary = pointwise(raw, tmp_path / "set", split="reviewer_item", k=2, valid=0.3, valid_items=0.4, max_queries=10)
    items: dict[str, set[str | None]] = {"train": set(), "valid": set()}
    for split, seen in items.items():
        for one in load_folder(tmp_path / "set").examples(split):  # type: ignore[arg-type]
            assert isinstance(one, PointwiseExample)
            seen |= {one.item_id, *(past.item_id for past in one.profile)}
    assert items["train"] and items["valid"] and not items["train"] & items["valid"]
    assert summary.dropped["examples"]["crossing the split"] == 240 - sum(part.examples for part in summary.parts) > 0


def test_readers_are_held_apart_in_training_where_the_sides_share_no_item(raw: Path, tmp_path: Path) -> None:
    """What a training that watches some of its readers asks for: the others, and all of theirs."""
    pointwise(raw, tmp_path / "set", split="reviewer_item", k=2, valid=0.3, valid_items=0.4, max_queries=10)
    data = load_folder(tmp_path / "set")
    whole = data.examples("train")
    apart = {whole[0].reviewer_id}
    assert data.examples("train", without=apart) == [one for one in whole if one.reviewer_id not in apart] != whole


@pytest.mark.parametrize("folds", [None, 3])
def test_no_epoch_shows_training_a_pair_of_the_validation_side(tmp_path: Path, folds: int | None) -> None:
    samples = Path(perse.__file__).parent / "samples"
    pairwise(samples, tmp_path / "set", items=samples / "items.jsonl", folds=folds, profiles="per_reviewer_epoch")
    data = load_folder(tmp_path / "set")

    def pairs(split: Split, fold: int | None, epoch: int = 0) -> set[str]:
        examples = [one for one in data.examples(split, fold, epoch=epoch) if isinstance(one, PairwiseExample)]
        assert examples
        return {pair_key(each.text_a, each.text_b) for one in examples for each in (one.query, *one.profile)}

    for fold in [None] if folds is None else range(folds):
        for epoch in range(4):
            assert pairs("train", fold, epoch).isdisjoint(pairs("valid", fold))


@pytest.mark.parametrize("folds", [None, 3])
def test_pairs_share_neither_annotators_nor_pairs(chained: Path, tmp_path: Path, folds: int | None) -> None:
    pairwise(chained.parent, tmp_path / "set", folds=folds)
    data = load_folder(tmp_path / "set")
    for fold in [None] if folds is None else range(folds):
        seen: dict[str, set[str]] = {}
        for split in ("train", "valid"):
            examples = data.examples(split, fold)  # type: ignore[arg-type]
            assert examples
            for one in examples:
                assert isinstance(one, PairwiseExample) and one.reference is not None and len(one.profile) == 1
                pairs = {pair_key(shown.text_a, shown.text_b) for shown in (one.query, one.profile[0])}
                seen.setdefault(split, set()).update({one.reviewer_id, *pairs})
        assert not seen["train"] & seen["valid"]


def texts_of(data: DataSet, split: Split, fold: int | None = None) -> set[str]:
    """The numbers of the stories of `chained` that one side shows: all that tells its texts apart when normalised."""
    shown = [pair for one in data.examples(split, fold) for pair in (one.query, *one.profile)]
    return {text.split()[1] for pair in shown for text in (pair.text_a, pair.text_b)}  # type: ignore[union-attr]


def test_validation_texts_that_training_shows_in_other_pairs_are_counted_and_told(chained: Path, tmp_path: Path) -> None:
    summary = pairwise(chained.parent, tmp_path / "set")
    data = load_folder(tmp_path / "set")
    train, valid = summary.parts
    assert train.texts_in_training is None
    spelled = {text for row in data.rows if row.split == "valid" for one in (row.query_id, *row.profile_ids)
               for text in (data.comparisons[one].text_a, data.comparisons[one].text_b)}  # fmt: skip
    known = texts_of(data, "train")
    assert texts_of(data, "valid") - known and texts_of(data, "valid") & known
    assert valid.texts_in_training == sum(text.split()[1] in known for text in spelled) < valid.texts == len(spelled)
    note = f"{valid.texts_in_training} of {valid.texts} validation texts also stand in training, in other pairs"
    assert summary.notes[0] == note
    assert data.manifest["counts"]["parts"][1]["texts_in_training"] == valid.texts_in_training
    assert f"\n{note}.\n" in (tmp_path / "set" / "README.md").read_text("utf-8")


def test_the_count_of_shared_texts_says_what_the_split_keeps_apart(raw: Path, chained: Path, tmp_path: Path) -> None:
    loose, *_ = pairwise(chained.parent, tmp_path / "loose", split="reviewer").notes
    assert loose.endswith("validation texts also stand in training")
    folded = pairwise(chained.parent, tmp_path / "folded", folds=3)
    for fold, part in enumerate(folded.parts):
        assert f"Fold {fold}: {part.texts_in_training} of {part.texts}" in folded.notes[0]
    assert folded.notes[0].startswith("validation texts that also stand in training, in other pairs: Fold 0: ")
    # In this table every text stands in one pair only.
    apart = pairwise(raw, tmp_path / "apart")
    assert apart.notes[0] == f"0 of {apart.parts[1].texts} validation texts also stand in training"
    assert not any("validation texts" in note for note in pointwise(raw, tmp_path / "critics").notes)


@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize("kind", BUILDS)
def test_profiles_of_all_others_say_what_they_share_and_those_held_apart_share_nothing(
    raw: Path, tmp_path: Path, kind: str, folds: int | None
) -> None:
    """Counted by hand: of the first k entries of a profile, which alone are shown."""
    loose = BUILDS[kind](raw, tmp_path / "loose", folds=folds)
    rows = load_folder(tmp_path / "loose").rows
    asked = {row.query_id for row in rows}
    shown = {one for row in rows for one in row.profile_ids[: loose.k]}
    show = sum(bool(asked & {*row.profile_ids[: loose.k]}) for row in rows)
    stand = sum(row.query_id in shown for row in rows)
    (note,) = (note for note in loose.notes if "held apart" in note or "holds them apart" in note)
    assert show > len(rows) / 2 < stand
    assert note.startswith(f"of {len(rows):,} examples {show:,} ({show / len(rows):.0%}) show a query of another example")
    assert f"and {stand:,} ({stand / len(rows):.0%}) ask what stands answered" in note
    for parts in (json.loads(loose.model_dump_json())["parts"], load_folder(tmp_path / "loose").manifest["counts"]["parts"]):
        assert (sum(part["show_queries"] for part in parts), sum(part["queries_shown"] for part in parts)) == (show, stand)
    assert note[1:] in (tmp_path / "loose" / "README.md").read_text("utf-8")
    for way in ("per_example_apart", "per_reviewer_epoch"):
        apart = BUILDS[kind](raw, tmp_path / way, folds=folds, profiles=way)
        assert not any("holds them apart" in note for note in apart.notes)
        rows = load_folder(tmp_path / way).rows
        assert rows and {row.query_id for row in rows}.isdisjoint(one for row in rows for one in row.profile_ids)


def test_every_reviewer_validates_in_exactly_one_fold(raw: Path, tmp_path: Path) -> None:
    pointwise(raw, tmp_path / "set", folds=5)
    data = load_folder(tmp_path / "set")
    valid = [{one.reviewer_id for one in data.examples("valid", fold)} for fold in range(5)]
    assert sum(map(len, valid)) == len(set.union(*valid)) == 24
    for fold in range(5):
        assert {one.reviewer_id for one in data.examples("train", fold)} == set.union(*valid) - valid[fold]
    for fold, expected in ((None, "say which one validates, from 0 to 4"), (5, "no fold 5")):
        with pytest.raises(BadInput, match=expected):
            data.examples("train", fold)


def test_a_fold_of_a_plain_split_is_an_error(raw: Path, tmp_path: Path) -> None:
    pointwise(raw, tmp_path / "set")
    with pytest.raises(BadInput, match="has no folds, found fold 1"):
        load_folder(tmp_path / "set").examples("valid", 1)


@pytest.mark.parametrize("kind", BUILDS)
def test_exported_lines_are_read_back_as_the_same_examples(raw: Path, tmp_path: Path, kind: str) -> None:
    BUILDS[kind](raw, tmp_path / "set")
    data = load_folder(tmp_path / "set")
    (tmp_path / "valid.jsonl").write_text("".join(example_lines(data.examples("valid"))), "utf-8")
    assert read_examples(tmp_path / "valid.jsonl") == data.examples("valid")


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")).map(str.strip).filter(bool),
        min_size=8,
        max_size=8,
    )
)
def test_any_text_survives_the_folder(tmp_path: Path, texts: list[str]) -> None:
    rows = [
        {"reviewer_id": f"p{who}", "item_id": f"i{n}", "score": 5, "review": texts[n], "text": f"{n} {texts[n]}"}
        for who in range(2)
        for n in range(8)
    ]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    build_pointwise(PointwiseOptions(reviews=tmp_path / "r.jsonl", out=tmp_path / "set", overwrite=True))
    found = {(one.text, one.review) for one in load_folder(tmp_path / "set").reviews.values()}
    assert found == {(row["text"], row["review"]) for row in rows}


def test_a_taken_target_is_refused_and_a_data_set_replaced_only_on_request(raw: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(BadInput, match="is no data set, so it is not overwritten"):
            pointwise(raw, mine, overwrite=overwrite)
    assert content(mine) == {"thesis.txt": b"years of work"} and not is_data_folder(mine)
    with pytest.raises(BadInput, match="found a file"):
        pointwise(raw, mine / "thesis.txt")
    pointwise(raw, tmp_path / "set")
    before = content(tmp_path / "set")
    with pytest.raises(BadInput, match="already holds a data set; give another --out, or --overwrite"):
        pointwise(raw, tmp_path / "set", seed=1)
    assert content(tmp_path / "set") == before
    pointwise(raw, tmp_path / "set", seed=1, overwrite=True)
    assert content(tmp_path / "set") != before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "set"]


def test_nothing_is_left_of_a_failed_build(raw: Path, tmp_path: Path) -> None:
    bad = tmp_path / "raw" / "reviews.jsonl"
    bad.parent.mkdir()
    bad.write_text((raw / "reviews.jsonl").read_text("utf-8") + '{"reviewer_id": "x"}\n', "utf-8")
    with pytest.raises(BadInput, match=r"line 289: no column for field 'item_id'"):
        pointwise(raw, tmp_path / "out" / "set", reviews=bad)
    assert not (tmp_path / "out").exists()


def test_filters_say_what_they_left_out(raw: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (raw / "reviews.jsonl").read_text("utf-8").splitlines()]
    extra = [rows[0] | {"reviewer_id": "rare"}, rows[0] | {"item_id": "i39", "review": "short"}, rows[0] | {"score": 99}]
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *extra]), "utf-8")
    summary = pointwise(raw, tmp_path / "set", reviews=mixed, on_error="skip", min_review_chars=10, max_reviewers=20)
    assert summary.dropped == {
        "rows": {"score off the scale": 1},
        "reviews": {"shorter than 10 characters": 1},
        "reviewers": {"with fewer than 6 reviews": 1, "beyond the 20 asked for": 4},
    }
    assert load_folder(tmp_path / "set").manifest["dropped"] == summary.dropped
    assert "left out, rows: 1 score off the scale" in dropped_lines(summary)
    assert summary.reviewers == 20 == len({row.reviewer_id for row in load_folder(tmp_path / "set").rows})


def test_no_reviewer_left_says_how_many_reviews_there_were(raw: Path, tmp_path: Path) -> None:
    expected = "no reviewer has 13 usable reviews: of 24 reviewers, 24 have the most, 12; lower --min-reviews"
    with pytest.raises(BadInput, match=expected):
        pointwise(raw, tmp_path / "set", min_reviews=13)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"min_reviews": 3}, "min_reviews is 3, expected more than k = 3"),
        ({"valid": 1.0}, "valid is 1, expected a share"),
        ({"folds": 1}, "folds is 1, expected 2 or more"),
        ({"folds": 25}, "24 reviewers left after the filters, fewer than the 25 folds"),
        ({"folds": 3, "split": "reviewer_item"}, "give split reviewer, or no folds"),
        ({"scale": (5, 1)}, "scale is 5-1, expected the lowest"),
        ({"profiles": "best"}, "profiles is 'best', expected per_example or per_example_apart or per_reviewer_epoch"),
        ({"keep_names": True, "salt": "x"}, "exclude each other"),
        ({"salt": ""}, "the salt is empty"),
        ({"k": -1, "valid": 2}, "k is -1, expected 0 or more; valid is 2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(raw: Path, tmp_path: Path, changes: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInput, match=expected):
        pointwise(raw, tmp_path / "set", **changes)


def test_reviews_without_a_date_are_counted_among_those_that_cannot_be_put_in_order(raw: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (raw / "reviews.jsonl").read_text("utf-8").splitlines()]
    dates = ["2018-11-10", "November 10, 2018", ""]
    blank = tmp_path / "blank.jsonl"
    blank.write_text("".join(json.dumps(row | {"date": dates[at % 3]}) + "\n" for at, row in enumerate(rows)), "utf-8")
    [note] = [note for note in pointwise(raw, tmp_path / "set", reviews=blank).notes if "oldest first" in note]
    assert f"{len(rows) // 3} of {len(rows)} are so; those profiles keep the order drawn" in note
    never = tmp_path / "never.jsonl"
    never.write_text("".join(json.dumps(row | {"date": ""}) + "\n" for row in rows), "utf-8")
    assert not any("oldest first" in note for note in pointwise(raw, tmp_path / "never", reviews=never).notes)


def test_a_missing_date_is_not_said_of_reviewers_who_are_left_out(raw: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (raw / "reviews.jsonl").read_text("utf-8").splitlines()]
    seldom = {"reviewer_id": "seldom", "date": ""}
    dated = tmp_path / "dated.jsonl"
    dated.write_text("".join(json.dumps(row) + "\n" for row in [{**rows[0], **seldom}, *rows]), "utf-8")
    assert not any("oldest first" in note for note in pointwise(raw, tmp_path / "set", reviews=dated).notes)


def test_a_scale_that_looks_forgotten_is_noted(raw: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (raw / "reviews.jsonl").read_text("utf-8").splitlines()]
    stars = tmp_path / "stars.jsonl"
    stars.write_text(
        "".join(json.dumps(row | {"score": 1 + row["score"] % 5, "date": "May 1"}) + "\n" for row in rows), "utf-8"
    )
    _, scale, dates = pointwise(raw, tmp_path / "set", reviews=stars).notes
    assert "no score is above 5 on the scale 1-10; if it ends there, give --scale 1-5" in scale
    assert f"{len(rows)} of {len(rows)} are so, such as 'May 1'; those profiles keep the order drawn" in dates
    seven = tmp_path / "seven.jsonl"
    seven.write_text("".join(json.dumps(row | {"score": 1 + row["score"] % 7}) + "\n" for row in rows), "utf-8")
    assert any("no score is above 7 on" in note for note in pointwise(raw, tmp_path / "seven", reviews=seven).notes)
    assert len(pointwise(raw, tmp_path / "right", reviews=stars, scale=(1, 5), k=1).notes) == 1


def test_the_table_fits_a_narrow_terminal_whole(raw: Path, tmp_path: Path) -> None:
    critics, endings = pointwise(raw, tmp_path / "critics"), pairwise(raw, tmp_path / "endings", folds=3)
    for summary, names in ((critics, ("Train", "Valid", "Scores 1 to 10")), (endings, ("Fold 2", "Surprise: ", "To train on"))):
        text = printed(summary)
        assert "…" not in text and all(name in text for name in names)


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        (lambda folder: (folder / "manifest.json").unlink(), "found no data set"),
        (lambda folder: (folder / "reviews.parquet").unlink(), "no such file"),
        (lambda folder: (folder / "reviews.parquet").write_bytes(b"PAR1"), "cannot be read as Parquet"),
        (lambda folder: (folder / "examples.parquet").write_bytes((folder / "reviews.parquet").read_bytes()), "found columns"),
        (lambda folder: (folder / "manifest.json").write_text('{"kind": "pointwise", "schema": 99}'), "schema 99"),
    ],
)
def test_a_damaged_folder_is_one_clear_sentence(raw: Path, tmp_path: Path, damage: Any, expected: str) -> None:
    pointwise(raw, tmp_path / "set")
    damage(tmp_path / "set")
    with pytest.raises(BadInput, match=expected):
        load_folder(tmp_path / "set")


def test_the_digest_tells_data_sets_apart_and_not_where_they_lie(raw: Path, tmp_path: Path) -> None:
    pointwise(raw, tmp_path / "one")
    before = folder_digest(tmp_path / "one", kind="pointwise")
    (tmp_path / "one").rename(tmp_path / "moved")
    assert load_folder(tmp_path / "moved").digest == before
    assert pointwise(raw, tmp_path / "other", k=2).digest != before


def test_the_digest_of_equal_data_is_the_same_in_every_version_of_perse(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = pointwise(raw, tmp_path / "one").digest
    monkeypatch.setattr(perse, "__version__", "99.0")
    assert pointwise(raw, tmp_path / "two").digest == before
    manifest = load_folder(tmp_path / "two").manifest
    assert manifest["perse"] == "99.0"
    reviews = (raw / "reviews.jsonl").read_bytes()
    assert manifest["sources"]["reviews"]["sha256"] == hashlib.sha256(reviews).hexdigest()
    (tmp_path / "two" / "manifest.json").write_text(json.dumps(dict(manifest) | {"dropped": {"rows": {"torn": 1}}}), "utf-8")
    assert load_folder(tmp_path / "two").digest != before


@pytest.mark.slow
@pytest.mark.skipif(not (SHARED / "movie_critics").is_dir(), reason=f"{SHARED}/movie_critics is not here")
def test_movie_critics_can_be_built(tmp_path: Path) -> None:
    critics = SHARED / "movie_critics"
    summary = pointwise(
        critics,
        tmp_path / "set",
        reviews=critics / "reviews.jsonl.gz",
        items=critics / "items.jsonl.gz",
        on_error="skip",
        min_review_chars=20,
    )
    assert summary.reviewers == 794  # as data/README.md counts them
    assert [part.reviewers for part in summary.parts] == [715, 79]
    assert len(load_folder(tmp_path / "set").examples("valid")) == summary.parts[1].examples == 741


@pytest.mark.skipif(not (SHARED / "story_endings").is_dir(), reason=f"{SHARED}/story_endings is not here")
def test_story_endings_can_be_built(tmp_path: Path) -> None:
    columns = {"text_a": "story_a+ending_a", "text_b": "story_b+ending_b"}
    summary = pairwise(SHARED / "story_endings", tmp_path / "set", columns=columns)
    assert summary.reviewers == 28
    assert summary.records + summary.dropped["comparisons"]["of pairs of the other side"] == 689
    assert [part.reviewers for part in summary.parts] == [25, 3]


def test_the_hubs_library_reads_the_folder(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    pointwise(raw, tmp_path / "set")
    data = load_folder(tmp_path / "set")
    examples = datasets.load_dataset(str(tmp_path / "set"), cache_dir=str(tmp_path / "cache"))["rows"]
    reviews = datasets.load_dataset(str(tmp_path / "set"), "reviews", cache_dir=str(tmp_path / "cache"))["rows"]
    assert (examples.num_rows, reviews.num_rows) == (len(data.rows), len(data.reviews))
    assert examples[0]["example_id"] == data.rows[0].example_id


def test_skipped_rows_are_listed_by_file_line_and_field_without_what_stood_there(raw: Path, tmp_path: Path) -> None:
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_text((raw / "reviews.jsonl").read_text("utf-8") + '{"reviewer_id": "Ann Bad", "score": 99}\n{oops\n', "utf-8")
    summary = pointwise(raw, tmp_path / "set", reviews=mixed, on_error="skip")
    count = len((raw / "reviews.jsonl").read_text("utf-8").splitlines())
    listed = [json.loads(line) for line in (tmp_path / "set" / "skipped.jsonl").read_text("utf-8").splitlines()]
    assert [(one["file"], one["line"]) for one in listed] == [("mixed.jsonl", count + 1), ("mixed.jsonl", count + 2)]
    assert listed[1] == {"file": "mixed.jsonl", "line": count + 2, "field": None, "reason": "not JSON"}
    assert sum(summary.dropped["rows"].values()) == 2
    assert b"Ann Bad" not in (tmp_path / "set" / "skipped.jsonl").read_bytes()


def test_building_anew_keeps_what_a_user_put_into_the_folder_and_refuses_an_input_that_lies_there(
    raw: Path, tmp_path: Path
) -> None:
    out = tmp_path / "set"
    pointwise(raw, out)
    (out / "runs").mkdir()
    for name in ("notes.md", "runs/judgements.jsonl", "reviews.jsonl"):
        (out / name).write_bytes((raw / "reviews.jsonl").read_bytes())
    pointwise(raw, out, seed=1, overwrite=True)
    for name in ("notes.md", "runs/judgements.jsonl", "reviews.jsonl"):
        assert (out / name).read_bytes() == (raw / "reviews.jsonl").read_bytes()
    before = load_folder(out).digest
    with pytest.raises(BadInput, match="is an input and lies in .*set, which is to be written"):
        pointwise(raw, out, reviews=out / "reviews.jsonl", overwrite=True)
    assert load_folder(out).digest == before and (out / "reviews.jsonl").exists()


def test_a_manifest_that_was_edited_is_kept_when_its_set_is_replaced(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "set"
    pointwise(raw, out)
    pointwise(raw, out, seed=1, overwrite=True)
    assert not list(out.glob("*.kept-*"))
    edited = (out / "manifest.json").read_text("utf-8").replace('"seed": 1', '"seed": 7')
    (out / "manifest.json").write_text(edited, "utf-8")
    for _ in range(2):
        pointwise(raw, out, seed=2, overwrite=True)
    assert [one.name for one in out.glob("*.kept-*")] == ["manifest.kept-1.json"]
    assert (out / "manifest.kept-1.json").read_text("utf-8") == edited


def test_a_second_build_of_a_folder_is_refused_before_anything_is_read_or_paid_for(tmp_path: Path) -> None:
    absent, out = tmp_path / "absent.jsonl", tmp_path / "set"
    plain = PointwiseOptions(reviews=absent, items=absent, out=out)
    writer = RewriteOptions(writer="openai:http://127.0.0.1:9/v1#paid", cache=tmp_path / "answers.sqlite")
    with claimed(out, DATA_SET, overwrite=False):
        with pytest.raises(RunMismatch, match="set is being written by another process; wait for it"):
            build_pointwise(plain)
        with pytest.raises(RunMismatch, match="set is being written by another process; wait for it"):
            build_per_mpst(PerMpstOptions(plots=absent, build=plain, rewriting=writer))
    assert list(tmp_path.iterdir()) == []
