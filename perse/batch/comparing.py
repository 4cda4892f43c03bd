"""Scoring runs for one table: judges of the same examples side by side, folds of one data set together.

Runs of the same examples are judges to compare. Runs of different folds are one cross-fitted judge; where every fold comes
several times, the first run of each fold is the first judge, and so on. Examples are the same if their ids, queries and true
answers are: what was shown of the reviewer may differ (none, fewer, another order), and a note says so. Runs may have been
asked different parts of a data set; the table is then of what they share.
"""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from os.path import commonprefix
from pathlib import Path
from typing import Any

from perse.batch.scored import ScoredRun, read_run
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.files.belongings import resolved
from perse.files.runlog import read_manifest
from perse.judgement import Judgement, Prices
from perse.records import ChoiceReference, Example, Pair, PairwiseExample, PointwiseExample, ProfileReview, VerbatimExample
from perse.scale import stands_as
from perse.secrets import without_keys

IN_PROMPT = "as prompted"
"""The aspect of pairs whose prompt alone names it."""
NOT_OWN = "not the readers' own"
_SHUFFLED = "shuffled"
_OTHERS = {_SHUFFLED: "the readers' own reviews behind the wrong texts"}
OWN = "own"
"""The name in a run's manifest of profiles that are the readers' own (`perse.data.variants.profile_variants`)."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Gathered:
    """Runs, read and ordered."""

    judges: dict[str, list[Judgement]]
    runs: dict[str, tuple[ScoredRun, ...]]
    """Of each judge, one a fold."""
    folds: list[Fold]
    """All examples that a run was asked, each once, with the fullest profile that a run showed: baselines read it."""
    missing: list[str]
    """Why training sides are not available."""
    notes: tuple[str, ...]
    """Which run showed which profiles, if they differ; and of which readers some chose a judge's weights."""


@dataclass(frozen=True)
class _Named:
    name: str
    folder: Path
    run: ScoredRun
    profile: str
    """What was shown in the place of a profile, as far as the manifest tells (see `data.variants.profile_variants`)."""

    @property
    def own(self) -> bool:
        """Whether readers were shown their own profiles."""
        return self.profile == OWN

    @property
    def own_scores(self) -> bool:
        """Whether the scores in the profiles are the readers' own, if behind other texts."""
        return self.profile in (OWN, _SHUFFLED)


def judges_and_folds(
    folders: Sequence[Path], train_data: Path | None = None
) -> tuple[dict[str, list[Judgement]], list[Fold], list[str]]:
    """Judgements by judge, the parts they were made of, and why training sides are missing; notes are logged. See `gather`."""
    gathered = gather(folders, train_data)
    for note in gathered.notes:
        log.info(note)
    return gathered.judges, gathered.folds, gathered.missing


def gather(folders: Sequence[Path], train_data: Path | None = None) -> Gathered:
    """Read runs as judges of the same items.

    Args:
        folders: that `perse score` wrote.
        train_data: the data set folder for the training side; by default the one that was scored.
    Raises:
        BadInput: a run given twice; runs without a common example, or of examples with the same id that differ; or judges that
            were not scored on the same folds.
    """
    refuse_twice(folders)
    by_fold: dict[int | None, list[tuple[Path, ScoredRun]]] = defaultdict(list)
    for folder in folders:
        run = read_run(folder)
        by_fold[run.fold].append((folder, run))
    counts = {len(runs) for runs in by_fold.values()}
    if len(counts) != 1:
        shown = ", ".join(f"fold {fold}: {len(runs)}" for fold, runs in by_fold.items())
        raise BadInput(f"every judge must be scored on the same folds; found runs of {shown or 'nothing'}")
    names: list[str] = []
    for nth in range(counts.pop()):
        names.append(_name([runs[nth][0] for runs in by_fold.values()], folders, taken=names))
    folds: list[Fold] = []
    missing: list[str] = []
    notes: list[str] = []
    for fold, runs in by_fold.items():
        named = [_Named(name, folder, run, shown_in(folder)) for name, (folder, run) in zip(names, runs, strict=True)]
        examples, found, own_scores = _merged(named)
        found += [f"{one.name}: {one.run.caution}" for one in named if one.run.caution]
        notes += [note if fold is None else f"fold {fold}: {note}" for note in found]
        train, reason = _training_side([run for _, run in runs], train_data)
        folds.append(Fold(_answered(examples), None if train is None else _answered(train), own_scores))
        missing += [reason] if reason and reason not in missing else []  # folds of one data set have the same reason
    scales = {run.own_scale for runs in by_fold.values() for _, run in runs}
    notes += [told for scale in scales if scale is not None and (told := stands_as(scale))] if len(scales) == 1 else []
    of_judges = {name: tuple(runs[nth][1] for runs in by_fold.values()) for nth, name in enumerate(names)}
    judges = {name: [judgement for run in own for judgement in run.judgements] for name, own in of_judges.items()}
    return Gathered(judges, of_judges, folds, missing, tuple(notes))


def refuse_twice(folders: Sequence[Path]) -> None:
    """Before any is read: runs may be many.

    Raises:
        BadInput: a run is given twice, in whatever words.
    """
    seen: set[Path] = set()
    for folder in folders:
        place = resolved(folder)
        if place in seen:
            raise BadInput(f"{folder} is given twice; give each run once")
        seen.add(place)


def shown_in(folder: Path) -> str:
    """What a run was shown in the place of a profile: `OWN`, or whose, as far as its manifest tells."""
    return str(read_manifest(folder).get("context", {}).get("profile", OWN))


def _merged(runs: Sequence[_Named]) -> tuple[list[Example], list[str], bool]:
    """All examples of the runs, each as shown by the run with the fullest profiles; what the others showed; and whether the scores in those profiles
    are the readers' own."""
    known: dict[str, tuple[_Named, Example]] = {}
    for named in runs:
        _check_same(named, known)
        for example in named.run.examples:
            known.setdefault(example.id, (named, example))
    fullest = max(
        runs, key=lambda named: (named.own, named.own_scores, _profile_size(named.run.examples))
    )  # the first of equals
    chosen = {one: example for one, (_, example) in known.items()} | {e.id: e for e in fullest.run.examples}
    return list(chosen.values()), _of_profiles(fullest, runs), fullest.own_scores


def _check_same(named: _Named, known: Mapping[str, tuple[_Named, Example]]) -> None:
    common = [(example, *known[example.id]) for example in named.run.examples if example.id in known]
    if known and named.run.examples and not common:
        first, _ = next(iter(known.values()))
        raise BadInput(
            f"{named.folder} was asked none of the examples of {first.folder}, the first '{named.run.examples[0].id}'; "
            "give runs of the same data set"
        )
    for example, other, same in common:
        field = _differing(example, same)
        if field:
            raise BadInput(
                f"example '{example.id}' has another {field} in {named.folder} than in {other.folder}; "
                "give runs of the same data set"
            )


def _differing(one: Example, other: Example) -> str | None:
    """The first field that differs, of those that make an example what it is: all except what is shown beside the query."""
    if one == other:
        return None
    if type(one) is not type(other):
        return "kind"
    left, right = (example.model_dump(exclude={"profile", "reviews", "evidence", "own_scale"}) for example in (one, other))
    return next((field for field in left if left[field] != right[field]), None)


def _profile_size(examples: Sequence[Example]) -> float:
    """Mean number of profile entries."""
    return sum(len(example.profile) for example in examples) / max(1, len(examples))


def _of_profiles(fullest: _Named, runs: Sequence[_Named]) -> list[str]:
    """What each run showed, if any run showed anything else than the one with the fullest profiles."""
    known = {example.id: _as_shown(example) for example in fullest.run.examples}
    others = []
    for named in runs:
        pairs = [(_as_shown(example), known[example.id]) for example in named.run.examples if example.id in known]
        if all(own == other for own, other in pairs):
            continue
        reordered = all(Counter(map(repr, own)) == Counter(map(repr, other)) for own, other in pairs)
        others.append(f"{named.name} {'the same in another order' if reordered else _entries(named)}")
    if not others and fullest.own:
        return []
    if not any(example.profile for named in runs for example in named.run.examples):
        return ["no profile was shown; baselines of profiles have none to read"]
    shown = ", ".join([f"{fullest.name} showed {_entries(fullest)}", *others])
    return [f"{'profiles differ: ' if others else ''}{shown}; baselines read those of {fullest.name}"]


def _as_shown(example: Example) -> tuple[object, ...]:
    """The entries of its profile without what evidence adds to them, which is there or not by when an example was scored."""
    return tuple(
        one.model_copy(update={"estimate": None}) if isinstance(one, ProfileReview) else one for one in example.profile
    )


def _entries(named: _Named) -> str:
    """How many entries the profiles have, on average where they differ."""
    sizes = {len(example.profile) for example in named.run.examples}
    if sizes == {0}:
        return "no profile"
    number = f"{_profile_size(named.run.examples):.1f} on average" if len(sizes) > 1 else str(*sizes)
    return number if named.own else f"{number}, {_OTHERS.get(named.profile, NOT_OWN)}"


def _training_side(runs: Sequence[ScoredRun], train_data: Path | None) -> tuple[Sequence[Example] | None, str | None]:
    """Of the first run that has it, else why the first run has not."""
    if train_data is not None:
        return load_examples(train_data, split="train", fold=runs[0].fold).examples, None
    reasons = []
    for run in runs:
        train, reason = run.training_side()
        if train is not None:
            return train, None
        reasons.append(reason)
    return None, reasons[0]


def _answered(examples: Sequence[Example]) -> list[Example]:
    """The examples, with prompts replaced by their parsed questions, by which answers are compared.

    A prompt without reviewer counts as a reviewer of its own. Its profile and aspect are not told.
    """
    chosen = any(isinstance(example.reference, ChoiceReference) for example in examples)
    return [_asked(example, chosen) if isinstance(example, VerbatimExample) else example for example in examples]


def _asked(example: VerbatimExample, chosen: bool) -> Example:
    reviewer = example.reviewer_id or example.id
    common: dict[str, Any] = {"id": example.id, "reviewer_id": reviewer, "profile": (), "reference": example.reference}
    if chosen:
        return PairwiseExample(**common, aspect=IN_PROMPT, query=Pair(text_a=example.prompt, text_b=""))
    return PointwiseExample(**common, item_id=example.id, query=example.prompt)


def _name(own: Sequence[Path], folders: Sequence[Path], *, taken: Sequence[str]) -> str:
    """A run's folder name, or the common beginning of its folds' names; the whole path, or all of them, if that is too short or another's. No key that a
    folder is called by is repeated: tables are sent into files."""
    name = own[0].name if len(own) == 1 else commonprefix([folder.name for folder in own]).rstrip("-_. ")  # noqa: RUF071 (characters are meant, not parts of a path)
    alike = [folder for folder in folders if folder.name == own[0].name]
    others = (str(own[0]), " + ".join(map(str, own)), f"judge {len(taken) + 1}")
    names = map(without_keys, (name, *others) if name and len(alike) <= 1 else others)
    return next(one for one in names if one not in taken)


def run_costs(runs: Mapping[str, Sequence[ScoredRun]]) -> tuple[dict[str, Prices], dict[str, float]]:
    """Prices and seconds by judge, of those whose runs (one a fold) all kept them. Conflicting prices are dropped."""
    prices: dict[str, Prices] = {}
    seconds: dict[str, float] = {}
    for name, own in runs.items():
        first = own[0].prices
        if first is not None and all(run.prices == first for run in own):
            prices[name] = first
        times = [run.seconds for run in own if run.seconds is not None]
        if len(times) == len(own):
            seconds[name] = fsum(times)
    return prices, seconds
