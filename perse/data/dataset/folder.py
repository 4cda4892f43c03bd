"""The data set folder: what a build writes and everything after it reads (DESIGN.md, section 3).

    reviews.parquet | comparisons.parquet    the records, each once
    examples.parquet                         query and profile by record id, with the side of the split
    evidence.parquet                         what the training side says of each text, where it was asked for (`perse data evidence`)
    skipped.jsonl, rewriting.jsonl           the bad rows that were left out, what was done to each text; where there is any
    manifest.json                            how it was made, from what, how much was dropped and why
    README.md                                the data card

The same inputs and options give the same bytes: no times, no absolute paths. A folder is there whole or not at all, and what lies
in it beside these files is never touched (`perse.files.replacing`). Parquet files are streamed from the records and into them (`data.parquet`); the records
and rows themselves are in memory, each text once.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from perse.data.dataset.card import data_card
from perse.data.dataset.parquet import read_parquet, write_parquet
from perse.data.evidence.guard import check_evidence
from perse.data.evidence.table import EvidenceMade, EvidenceRow
from perse.data.leaks import check_leaks
from perse.data.profiles.epochs import redrawn
from perse.data.profiles.profiles import ExampleRow
from perse.data.profiles.splits import sides, uncrossed
from perse.data.profiles.views import View, asked_alone
from perse.errors import BadInput
from perse.files.belongings import Belongings, kind_of, manifest_of
from perse.files.replacing import ITSELF, Claim, reading
from perse.files.runlog import file_digest
from perse.formats.json_text import read_object, shortened
from perse.formats.plain_files import open_own
from perse.records import (
    ChoiceReference,
    Comparison,
    Evidence,
    Kind,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    Review,
    ReviewReference,
    Split,
    explain,
)
from perse.scale import OwnScale
from perse.secrets import without_keys

SCHEMA = 2
"""Version of the folder's layout; a folder of another one is refused."""

DATA_SET = Belongings(
    what="data set",
    kinds=get_args(Kind),
    names=(
        *("reviews.parquet", "comparisons.parquet", "examples.parquet", "evidence.parquet"),
        *("skipped.jsonl", "rewriting.jsonl", "README.md"),
    ),
)
"""The files of a data set folder."""

EVIDENCE = "evidence.parquet"

DEFAULT_VIEW = View()

Record = TypeVar("Record", Review, Comparison)


@dataclass(frozen=True)
class DataSet:
    """A data set folder in memory. `reviews` and `comparisons` are by id; those of the other kind are empty."""

    path: Path
    manifest: Mapping[str, Any]
    reviews: Mapping[str, Review]
    comparisons: Mapping[str, Comparison]
    rows: tuple[ExampleRow, ...]
    digest: str
    """Of `folder_digest`: equal for equal data sets, wherever they lie and whichever perse built them."""
    evidence: Mapping[tuple[int | None, str], EvidenceRow] = field(default_factory=dict)
    """By fold and review; none where it was not made."""

    @property
    def kind(self) -> Kind:
        """ "pointwise" (reviews) or "pairwise" (comparisons)."""
        kind: Kind = self.manifest["kind"]
        return kind

    @property
    def k(self) -> int:
        """How many profile entries the plain view shows."""
        k: int = self.manifest["options"]["k"]
        return k

    @property
    def max_k(self) -> int:
        """How many profile entries are kept, so the largest k of a view."""
        k: int = self.manifest["options"]["max_k"]
        return k

    @property
    def redrawn(self) -> bool:
        """Whether every epoch of training has profiles of its own."""
        return bool(self.manifest["options"]["profiles"] == "per_reviewer_epoch")

    @property
    def folds(self) -> int | None:
        """The number of folds, or None for a plain split."""
        folds: int | None = self.manifest["options"]["folds"]
        return folds

    def examples(
        self,
        split: Split,
        fold: int | None = None,
        *,
        view: View = DEFAULT_VIEW,
        epoch: int = 0,
        without: Collection[str] = (),
    ) -> list[PointwiseExample] | list[PairwiseExample]:
        """The self-contained examples of one side, in the order of examples.parquet.

        With folds, `fold` (from 0) is the validation side and the others are for training.

        Args:
            view: how the profiles are shown.
            epoch: of `per_reviewer_epoch`: which draw of profiles and queries; 0 is the one in the folder.
            without: reviewers to leave out; where sides share no pair of texts, also all that touches a pair of theirs. Single texts
                of theirs stay, if others reviewed them.
        Raises:
            BadInput: no fold given for a data set with folds, one given for a data set without, or no such fold; a view of
                more entries than the folder keeps; an epoch of a data set that is not drawn by epoch.
        """
        if self.folds is None and fold is not None:
            raise BadInput(f"{self.path} has no folds, found fold {fold}; leave the fold out, or build with --folds")
        if self.folds is not None and fold is None:
            raise BadInput(f"{self.path} has {self.folds} folds; say which one validates, from 0 to {self.folds - 1} (--fold)")
        if self.folds is not None and fold is not None and not 0 <= fold < self.folds:
            raise BadInput(f"{self.path} has no fold {fold}; its folds go from 0 to {self.folds - 1}")
        if view.k is not None and view.k > self.max_k:
            raise BadInput(f"{self.path} keeps profiles of {self.max_k}, found k = {view.k}; build it with --max-k {view.k}")
        apart = self.comparisons if self.kind == "pairwise" and _disjoint_items(self.manifest) else None
        train, valid = sides(self.rows, fold, apart=apart)
        rows = train if split == "train" else valid
        theirs = [row for row in rows if row.reviewer_id in without]
        if epoch:
            rows = redrawn(rows, self.reviews, self.comparisons, self.manifest["options"], epoch)
            if split == "train" and fold is not None and apart is not None:
                rows = uncrossed(rows, valid, apart)
        if theirs:
            rows = [row for row in rows if row.reviewer_id not in without]
            rows = rows if apart is None else uncrossed(rows, theirs, apart)
        return [self._pointwise(row, view, fold) if row.aspect is None else self._pairwise(row, view) for row in rows]  # type: ignore[return-value]

    @property
    def own_scale(self) -> OwnScale | None:
        """Of the raw scores, where it is another than 1 to 10."""
        low, high = self.manifest["options"].get("scale") or (1, 10)
        return None if (low, high) == (1, 10) else (float(low), float(high))

    def _pointwise(self, row: ExampleRow, view: View, fold: int | None) -> PointwiseExample:
        query = self.reviews[row.query_id]
        past = view.shown([self.reviews[one] for one in row.profile_ids], k=self.k, example_id=row.example_id)
        return PointwiseExample(
            id=row.example_id,
            reviewer_id=row.reviewer_id,
            item_id=query.item_id,
            profile=tuple(
                ProfileReview(
                    text=one.text,
                    review=one.review if view.review_text else None,
                    score=one.score,
                    item_id=one.item_id,
                    time=one.time,
                    estimate=known.estimate if (known := self.evidence.get((fold, one.review_id))) else None,
                )
                for one in past
            ),
            query=query.text,
            evidence=_stated(self.evidence.get((fold, row.query_id))),
            own_scale=self.own_scale,
            reference=ReviewReference(review=query.review, score=query.score),
        )

    def _pairwise(self, row: ExampleRow, view: View) -> PairwiseExample:
        query = self.comparisons[row.query_id]
        assert row.aspect is not None, row
        past = view.shown([self.comparisons[one] for one in row.profile_ids], k=self.k, example_id=row.example_id)
        example = PairwiseExample(
            id=row.example_id,
            reviewer_id=row.reviewer_id,
            aspect=row.aspect,
            profile=tuple(
                ProfileComparison(text_a=one.text_a, text_b=one.text_b, premise=one.premise, preference=one.preference)
                for one in past
            ),
            query=Pair(text_a=query.text_a, text_b=query.text_b, premise=query.premise),
            reference=ChoiceReference(preference=query.preference[row.aspect]),
        )
        return asked_alone(example) if view.profile_aspects == "asked" else example


def write_folder(
    place: Claim,
    records: Sequence[Review] | Sequence[Comparison],
    *,
    kind: Kind,
    rows: Sequence[ExampleRow],
    manifest: Mapping[str, Any],
    files: Mapping[str, str] = MappingProxyType({}),
    also: Mapping[str, bytes] = MappingProxyType({}),
    keep_edited: bool = True,
) -> None:
    """Writes a data set folder, after checking it for leaks.

    Args:
        place: the folder, of `claimed(out, DATA_SET, ...)`.
        manifest: the manifest without schema and kind: `perse`, `options` (with `split` and `folds`), `sources`,
            `counts`, `dropped`.
        files: name -> text of other files in the folder: `skipped.jsonl`, `rewriting.jsonl`.
        also, keep_edited: as `Claim.fill`.
    Raises:
        BadInput: a leak (see `check_leaks`), or the folder cannot be written.
    """
    whole = {"schema": SCHEMA, "kind": kind, **manifest}
    reviews = {one.review_id: one for one in records if isinstance(one, Review)}
    comparisons = {one.comparison_id: one for one in records if isinstance(one, Comparison)}
    check_leaks(rows, reviews, comparisons, disjoint_items=_disjoint_items(whole), repeats=_repeats(whole))

    def write(fresh: Path) -> None:
        write_parquet(fresh / _records_file(kind), records)
        write_parquet(fresh / "examples.parquet", rows)
        (fresh / "README.md").write_text(without_keys(data_card(whole)), "utf-8")
        for name, text in files.items():
            (fresh / name).write_text(without_keys(text), "utf-8")

    place.fill(write, whole, also=also, keep_edited=keep_edited)


def is_data_folder(path: Path) -> bool:
    """Whether `path` is a folder with the manifest of a perse data set."""
    return kind_of(path) in get_args(Kind)


def other_schema(path: Path) -> str | None:
    """That a data set folder is one of another schema, which this perse does not read, in a sentence; None where it is not."""
    return _other_schema(manifest_of(path) or {})


def _other_schema(manifest: Mapping[str, Any]) -> str | None:
    schema = manifest.get("schema")
    if schema == SCHEMA:
        return None
    return f"the data set has schema {shortened(schema)}, this perse reads {SCHEMA}; build it again"


def load_folder(path: Path, *, evidence: bool = True) -> DataSet:
    """The data set in a folder, checked for leaks.

    Args:
        evidence: read what the training side says of texts, where the folder has it.
    Raises:
        BadInput: no data set folder, one of another schema, a file that is absent or damaged, or a leak.
    """
    with reading(path):
        return _load(path, evidence=evidence)


def _load(path: Path, *, evidence: bool) -> DataSet:
    manifest = _read_manifest(path)
    reviews: dict[str, Review] = {}
    comparisons: dict[str, Comparison] = {}
    source = path / _records_file(manifest["kind"])
    if manifest["kind"] == "pointwise":
        reviews = _records(source, Review, key="review_id")
    else:
        comparisons = _records(source, Comparison, key="comparison_id")
    rows = tuple(ExampleRow(**row) for row in read_parquet(path / "examples.parquet"))
    _check_rows(path / "examples.parquet", rows, manifest, comparisons)
    check_leaks(rows, reviews, comparisons, disjoint_items=_disjoint_items(manifest), repeats=_repeats(manifest))
    known = _evidence(path, manifest, reviews, rows) if evidence and "evidence" in manifest else {}
    return DataSet(path, manifest, reviews, comparisons, rows, folder_digest(path, kind=manifest["kind"]), known)


def training_readers(rows: Sequence[ExampleRow], fold: int | None) -> frozenset[str]:
    """The readers of the training side."""
    return frozenset(row.reviewer_id for row in sides(rows, fold, apart=None)[0])


def new_texts(manifest: Mapping[str, Any]) -> bool:
    """Whether validation asks about texts of which training knows none, so that evidence must be made as for such."""
    return _disjoint_items(manifest)


def evidence_of(path: Path) -> str:
    """sha256 over what the evidence of a folder is made of: its reviews and examples."""
    return sha256("".join(file_digest(path / name) for name in ("reviews.parquet", "examples.parquet")).encode()).hexdigest()


def _evidence(
    path: Path, manifest: Mapping[str, Any], reviews: Mapping[str, Review], rows: Sequence[ExampleRow]
) -> dict[tuple[int | None, str], EvidenceRow]:
    """The evidence of a folder, which is as it was made, of this very data, and without a leak.

    Raises:
        BadInput: it is not.
    """
    again = "make it again with perse data evidence"
    folds: list[int | None] = [None] if manifest["options"]["folds"] is None else [*range(manifest["options"]["folds"])]
    try:
        said = EvidenceMade.model_validate(manifest["evidence"])
    except ValidationError as error:
        raise BadInput(f"{path / 'manifest.json'}: evidence, {explain(error)}; {again}") from None
    if len(said.penalties) != len(folds):
        raise BadInput(
            f"{path / 'manifest.json'}: evidence has penalties of {len(said.penalties)} folds, expected {len(folds)}; {again}"
        )
    if said.made_of != evidence_of(path):
        raise BadInput(f"{path / EVIDENCE}: was made of other reviews or examples than lie beside it; {again}")
    if not (path / EVIDENCE).is_file() or said.sha256 != file_digest(path / EVIDENCE):
        raise BadInput(f"{path / EVIDENCE}: is absent or was changed since it was made; {again}")
    known = [EvidenceRow(**row) for row in read_parquet(path / EVIDENCE)]
    for fold in folds:
        mine = [row for row in known if row.fold == fold]
        check_evidence(mine, reviews, training_readers(rows, fold), new_texts=new_texts(manifest))
    return {(row.fold, row.review_id): row for row in known}


def _stated(row: EvidenceRow | None) -> Evidence | None:
    """A row as an example shows it."""
    if row is None:
        return None
    return Evidence(others=row.others, mean=row.mean, spread=row.spread, estimate=row.estimate, shrinkage=row.shrinkage)


def folder_digest(path: Path, *, kind: Kind) -> str:
    """sha256 over the names and bytes of the Parquet files and what the manifest says, without the perse version, the list
    of files and its own digest."""
    manifest = read_object(path / "manifest.json", remedy="build the data set again")
    said = {name: value for name, value in manifest.items() if name not in ("perse", "files", ITSELF)}
    digest = sha256()
    for name in (_records_file(kind), "examples.parquet"):
        with open_own(path / name) as file:
            digest.update(f"{name} {os.fstat(file.fileno()).st_size}\n".encode())
            while piece := file.read(1 << 20):
                digest.update(piece)
    content = json.dumps(said, sort_keys=True).encode()
    digest.update(f"manifest.json {len(content)}\n".encode() + content)
    return digest.hexdigest()


def _records_file(kind: Kind) -> str:
    return "reviews.parquet" if kind == "pointwise" else "comparisons.parquet"


def _disjoint_items(manifest: Mapping[str, Any]) -> bool:
    return bool(manifest["options"]["split"] == "reviewer_item")


def _repeats(manifest: Mapping[str, Any]) -> bool:
    """Whether profiles may show a review that says the same as the query's, as all folders of an older perse may."""
    return bool(manifest["options"].get("keep_repeats", True))


def _read_manifest(path: Path) -> dict[str, Any]:
    if not is_data_folder(path):
        raise BadInput(f"{path}: found no data set (a folder with manifest.json); build one with `perse data`")
    manifest = read_object(path / "manifest.json", remedy="build the data set again")
    if told := _other_schema(manifest):
        raise BadInput(f"{path}: {told}")
    options, needed = manifest.get("options"), ("folds", "k", "max_k", "split")
    if not isinstance(options, dict) or not options.keys() >= {*needed}:
        raise BadInput(f"{path}/manifest.json: 'options' lacks one of {', '.join(needed)}; build the data set again")
    for name, needless in (("k", False), ("max_k", False), ("folds", True)):
        if type(options[name]) is not int and not (needless and options[name] is None):
            raise BadInput(
                f"{path}/manifest.json: option '{name}' is {shortened(options[name])}, expected a whole number; build the data set again"
            )
    return manifest


def _records(path: Path, model: type[Record], *, key: str) -> dict[str, Record]:
    checked = TypeAdapter(model)
    records: dict[str, Record] = {}
    for number, row in enumerate(read_parquet(path), start=1):
        try:
            if "preference" in row:
                row["preference"] = json.loads(row["preference"])
            record = checked.validate_python(row)
        except ValidationError as error:
            raise BadInput(f"{path}, row {number}: {explain(error)}; build the data set again") from None
        except ValueError as error:
            raise BadInput(f"{path}, row {number}: field 'preference': not JSON, {error}; build the data set again") from None
        if records.setdefault(row[key], record) is not record:
            raise BadInput(f"{path}, row {number}: {key} '{row[key]}' stands there twice; build the data set again")
    return records


def _check_rows(
    path: Path, rows: Sequence[ExampleRow], manifest: Mapping[str, Any], comparisons: Mapping[str, Comparison]
) -> None:
    """Checks that every row is on a side of the manifest and asks an aspect that the comparison answers."""
    folds = manifest["options"]["folds"]
    for number, row in enumerate(rows, start=1):
        if folds is None and (row.split not in ("train", "valid") or row.fold is not None):
            raise BadInput(f"{path}, row {number}: found split '{row.split}' and fold {row.fold}, expected train or valid")
        if folds is not None and (row.split is not None or row.fold is None or not 0 <= row.fold < folds):
            raise BadInput(f"{path}, row {number}: found split '{row.split}' and fold {row.fold}, expected 0 to {folds - 1}")
        if manifest["kind"] == "pointwise" and row.aspect is not None:
            raise BadInput(f"{path}, row {number}: found aspect '{row.aspect}', expected none in a data set of reviews")
        query = comparisons.get(row.query_id)
        if query is not None and row.aspect not in query.preference:
            raise BadInput(f"{path}, row {number}: aspect '{row.aspect}' is not judged by comparison '{row.query_id}'")
