"""A scoring run read back: what was asked and what was answered, whether one process judged it or many workers in shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perse.batch.judged_by import judged_by
from perse.batch.local import EXAMPLES, chosen_by, stacked_on
from perse.batch.sharded.adapters import Adapter
from perse.batch.sharded.reading import is_sharded, read_sharded
from perse.data.dataset.folder import is_data_folder
from perse.data.examples_file import read_examples
from perse.data.load import load_examples
from perse.errors import BadInput
from perse.files.runlog import MANIFEST, read_lines, read_manifest, what_it_is
from perse.formats.json_text import shortened
from perse.judgement import Judgement, Prices, Status, parse_judgement
from perse.judging.loading import parse_judge
from perse.judging.loop import JUDGEMENTS, TIMING, read_timing
from perse.records import Example, explain
from perse.scale import OwnScale
from perse.stacking.beside import stacking_beside


@dataclass(frozen=True)
class ScoredRun:
    """A scoring run read back: what was asked, what was answered, and where the data it came from lay."""

    examples: list[Example]
    judgements: list[Judgement]
    data_folder: Path | None
    data_digest: str
    fold: int | None
    prices: Prices | None = None
    """Of the server, where they were given."""
    seconds: float | None = None
    """Wall time of all judgements, loading left out; None for a run that was not timed throughout."""
    chosen_by: int = 0
    """How many of the examples are of readers whose answers chose the judge's weights."""
    stacked_on: int = 0
    """How many are of readers whose answers the judge's stacking was fitted on."""

    @property
    def own_scale(self) -> OwnScale | None:
        """The scale that the readers' scores came on, where all have one."""
        scales = {getattr(example, "own_scale", None) for example in self.examples}
        return scales.pop() if len(scales) == 1 else None

    @property
    def caution(self) -> str | None:
        """What stands beside the numbers of a judge that some of these very readers chose, or on whom its stacking was fitted."""
        asked, said = len(self.examples), []
        if self.chosen_by:
            said.append(
                f"{self.chosen_by} of {asked} examples are of readers on whom the judge's weights were chosen while it was trained: on these "
                "it looks better than it is"
            )
        if self.stacked_on:
            said.append(
                f"{self.stacked_on} of {asked} examples are of readers on whom the stacking was fitted: what perse fit printed is of others, "
                "and what is stacked here looks better than it is"
            )
        if held := sum(one.not_stacked is not None for one in self.judgements):
            said.append(f"{held} of {asked} examples have nothing stacked (not_stacked says why)")
        return "; ".join(said) or None

    def training_side(self) -> tuple[Sequence[Example] | None, str | None]:
        """The training examples of the scored data set, or None and why they are not available."""
        if self.data_folder is None:
            return None, "the scored examples came from a file; name their data set with --train-data"
        if not is_data_folder(self.data_folder):
            return None, f"{self.data_folder} is no longer there; name the data set with --train-data"
        try:
            loaded = load_examples(self.data_folder, split="train", fold=self.fold)
        except BadInput as error:  # of an older perse, or damaged since: the answers stand, with fewer baselines beside them
            return None, f"{error}; or name the data set with --train-data"
        if loaded.digest != self.data_digest:
            return (
                None,
                f"{self.data_folder} is not as it was when it was scored (rebuilt, or given evidence); score again, or name the data set with --train-data",
            )
        return loaded.examples, None


def read_run(folder: Path) -> ScoredRun:
    """A scoring run's examples and judgements.

    Raises:
        BadInput: no such run, a file of it that is damaged, or an example with two different answers.
    """
    manifest = read_manifest(folder)
    run, context = manifest.get("run", {}), manifest.get("context", {})
    if run.get("kind") != "score":
        raise BadInput(f"{folder} holds {what_it_is(manifest)}, not of perse score; give a folder that `perse score` wrote")
    place, fold = context.get("data_folder"), run.get("fold")
    if fold is not None and (type(fold) is not int or fold < 0):
        raise BadInput(f"{folder / MANIFEST}: fold is {shortened(fold)}, expected a whole number or null; score again")
    if is_sharded(manifest):
        examples, judgements = read_sharded(folder)
        seconds, chosen, stacked = None, *_chosen_of(folder, context, examples, judgements)
    else:
        examples, judgements = read_examples(folder / EXAMPLES), _one_each(folder / JUDGEMENTS)
        seconds, chosen = _seconds(folder, judged=len(judgements)), context.get("chosen_by")
        # a stacking of another question than was asked says nothing
        stacked = context.get("stacked_on") if any(one.stacked is not None for one in judgements) else 0
    return ScoredRun(
        examples=examples,
        judgements=judgements,
        data_folder=Path(place) if isinstance(place, str) and place else None,
        data_digest=str(context.get("data_digest")),
        fold=fold,
        prices=_prices(folder, context.get("prices")),
        seconds=seconds,
        chosen_by=_count(chosen, asked=len(examples)),
        stacked_on=_count(stacked, asked=len(examples)),
    )


def _count(told: object, *, asked: int) -> int:
    """0 where it is not known, as of a run of an older perse."""
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= asked else 0


def _chosen_of(
    folder: Path, context: Mapping[str, Any], examples: Sequence[Example], judgements: Sequence[Judgement]
) -> tuple[int, int]:
    """Both of a run in shards, whose plan does not look into the judge: counted when it is read, as far as the judge is still there."""
    if not isinstance(judge := context.get("judge"), str):
        return 0, 0
    parts = parse_judge(judge)
    stacking = stacking_beside(parts.folders)
    if stacking is not None and judged_by(folder).get("stacking") != stacking.digest:
        stacking = None  # the run's workers were told by another, or by none
    told = {one.id for one in judgements if one.stacked is not None}
    stacked = stacked_on(stacking, [one for one in examples if one.id in told]) if stacking else 0
    named = {name: Adapter(**one).folder for name, one in (context.get("adapters") or {}).items()}  # of rows that name theirs
    adapters = {one.id: named.get(one.adapter or "", parts.adapter) for one in judgements}
    chosen = sum(
        chosen_by(parts.model, adapter, [one for one in examples if adapters.get(one.id) == adapter])
        for adapter in {*adapters.values()}
    )
    return chosen, stacked


def _prices(folder: Path, told: object) -> Prices | None:
    try:
        return Prices.model_validate(told) if told else None
    except ValidationError as error:
        raise BadInput(f"{folder / MANIFEST}: prices, {explain(error)}; score again with --prices") from None


def _seconds(folder: Path, *, judged: int) -> float | None:
    """The chunk that a kill cut off may be judged without having been timed: one in a hundred may be missing."""
    timed, seconds = read_timing(folder / TIMING)
    return None if timed < 0.99 * judged else seconds


def _one_each(path: Path) -> list[Judgement]:
    """The answer to each example. What the engine failed at was asked again, so an answer counts before a failure."""
    found: dict[str, tuple[int, Judgement]] = {}
    for line, row in enumerate(read_lines(path), start=1):
        judgement = parse_judgement(row, f"{path}, line {line}")
        earlier = found.get(judgement.id)
        if earlier is None or earlier[1].status is Status.ENGINE_ERROR:
            found[judgement.id] = (line, judgement)
        elif judgement.status is not Status.ENGINE_ERROR and _answer(judgement) != _answer(earlier[1]):
            raise BadInput(
                f"{path}, lines {earlier[0]} and {line}: example '{judgement.id}' has two different answers; "
                "an example is judged once: remove one of the lines"
            )
    return [judgement for _, judgement in found.values()]


def _answer(judgement: Judgement) -> tuple[object, ...]:
    """Identifies an answer, without its cost."""
    return judgement.status, judgement.label, judgement.distribution, judgement.text
