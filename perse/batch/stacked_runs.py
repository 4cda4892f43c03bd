"""Scoring runs of one judge as the material of a stacking: what it was asked and answered, whose weights it has, and where it lies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from perse.batch.comparing import OWN, refuse_twice
from perse.batch.judged_by import judge_places, judged_by, weights_of
from perse.batch.scored import ScoredRun, read_run
from perse.data.dataset.folder import is_data_folder, load_folder
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.files.runlog import read_manifest
from perse.judgement import Judgement
from perse.records import Example
from perse.stacking.file import STACKING, StackedData, StackedJudge, home


@dataclass(frozen=True)
class Judged:
    """Runs, read: folds with their training sides, and all answers; `judge`, `question` and `place` are None where no judge was asked."""

    folds: list[Fold]
    judgements: list[Judgement] | None
    judge: StackedJudge | None
    question: str | None
    data: StackedData | None
    """None: several folds, each of which has a judge of its own."""
    place: Path | None
    """Where a stacking of the judge lies; None: the judge is no folder of this machine."""
    notes: tuple[str, ...] = ()


def read_judged(folders: Sequence[Path], train_data: Path | None = None) -> Judged:
    """Runs of one judge; of a data set with folds, one run a fold.

    Args:
        train_data: the data set folder for the training side; by default the one that was scored.
    Raises:
        BadInput: runs of several judges, questions or data sets; of profiles that are not the readers' own; one that is not finished; an
            example that was asked twice; or no training side.
    """
    refuse_twice(folders)
    runs = [(folder, read_run(folder)) for folder in folders]
    for folder, run in runs:
        _refuse_others_profiles(folder)
        _refuse_unfinished(folder, run)
    asked = [(folder, run, judge_of(folder, run)) for folder, run in runs]
    numbers = dict.fromkeys(run.fold for _, run, _ in asked)
    for fold in numbers:
        _refuse_several([(folder, run, judge) for folder, run, judge in asked if run.fold == fold])
    _refuse_twice(runs)
    folds, digests = [], []
    for fold in numbers:
        mine = [run for _, run in runs if run.fold == fold]
        train, digest = _training_side(mine[0], train_data)
        folds.append(Fold([example for run in mine for example in run.examples], train))
        digests.append(StackedData(sha256=digest, fold=fold))
    first, _, judge = asked[0]
    questions = {one.question for _, run in runs for one in run.judgements}
    if len(questions) > 1:
        raise BadInput(f"the runs ask different questions ({', '.join(sorted(questions))}); give those of one")
    return Judged(
        folds,
        [judgement for _, run in runs for judgement in run.judgements],
        judge,
        next(iter(questions), None),
        digests[0] if len(digests) == 1 else None,
        place_of_stacking(first),
        tuple(f"{folder.name}: {run.caution}" for folder, run in runs if run.caution),
    )


def read_unjudged(folder: Path) -> Judged:
    """The validation readers of a data set, all folds together, whom no judge was asked about.

    Raises:
        BadInput: it is no data set folder.
    """
    if not is_data_folder(folder):
        raise BadInput(f"{folder} is no data set folder; give one that `perse data` wrote")
    data = load_folder(folder)
    numbers: list[int | None] = [None] if data.folds is None else [*range(data.folds)]
    folds = [
        Fold(load_examples(folder, split="valid", fold=fold).examples, load_examples(folder, split="train", fold=fold).examples)
        for fold in numbers
    ]
    return Judged(folds, None, None, None, None, None)


def judge_of(folder: Path, run: ScoredRun) -> StackedJudge:
    """Who judged, by digest where the run tells one."""
    if not run.judgements:
        raise BadInput(f"{folder} holds no answer; run `perse score` again with the same command")
    first = run.judgements[0]
    return StackedJudge(model=first.model, adapter=first.adapter, sha256=weights_of(judged_by(folder)) or "")


def _is_judge(folder: Path) -> bool:
    """Whether a model, an adapter or a training run is there: a run that somebody else made names any folder as its judge."""
    return any(
        (folder / part / name).is_file()
        for part in ("", "merged", "adapter")
        for name in ("config.json", "adapter_config.json")
    )


def place_of_stacking(folder: Path) -> Path | None:
    """Where a stacking of the run's judge lies: beside its adapter or, without one, its model."""
    places = judge_places(folder)
    known = [place for place in places if _is_judge(place)]
    return home(known[-1]) / STACKING if known and len(known) == len(places) else None


def _refuse_others_profiles(folder: Path) -> None:
    if (profile := read_manifest(folder).get("context", {}).get("profile", OWN)) != OWN:
        raise BadInput(f"{folder} shows profiles that are not the readers' own ({profile}); give a run of --profile own")


def _refuse_unfinished(folder: Path, run: ScoredRun) -> None:
    """What was fitted on a part would stand beside the judge as if it were of all."""
    if len(run.judgements) < len(run.examples):
        raise BadInput(
            f"{folder} is not finished: {len(run.judgements)} of {len(run.examples)} examples judged; run `perse score` again with the "
            "same command"
        )


def _refuse_several(asked: Sequence[tuple[Path, ScoredRun, StackedJudge]]) -> None:
    first, run, judge = asked[0]
    for folder, other, another in asked[1:]:
        if judge.differs(another):
            raise BadInput(f"{folder} is of another judge ({another}) than {first} ({judge}); a stacking belongs to one")
        if other.data_digest != run.data_digest:
            raise BadInput(f"{folder} is of another data set than {first}; give runs of one")


def _refuse_twice(runs: Sequence[tuple[Path, ScoredRun]]) -> None:
    known: dict[str, Path] = {}
    for folder, run in runs:
        for example in run.examples:
            if (other := known.setdefault(example.id, folder)) is not folder:
                raise BadInput(f"example '{example.id}' is in {other} and in {folder}; give runs of different examples")


def _training_side(run: ScoredRun, train_data: Path | None) -> tuple[Sequence[Example], str]:
    if train_data is not None:
        loaded = load_examples(train_data, split="train", fold=run.fold)
        return loaded.examples, loaded.digest
    train, reason = run.training_side()
    if train is None:
        raise BadInput(f"the numbers are of the training side, and {reason}")
    return train, run.data_digest
