"""Score examples with one judge on this machine, resumable: examples + judge -> run folder of judgements.

A run folder holds manifest.json, examples.jsonl (what was asked, so that the run can be evaluated by itself),
judgements.jsonl, which grows with every answer (see `perse.judging.loop`), and timing.jsonl, when they came. The same command after a kill asks
only what has no judgement yet.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from perse.data.dataset.folder import is_data_folder
from perse.data.examples_file import read_examples
from perse.data.load import LoadedExamples, load_examples
from perse.data.profiles.views import ProfileAspects
from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.runlog import (
    MANIFEST,
    RunLog,
    make_folder,
    read_lines,
    read_manifest,
    refuse_other_run,
    refuse_strangers,
    what_it_is,
)
from perse.formats.json_text import shortened
from perse.identity import reader_key
from perse.judgement import Judgement, Prices, Status, parse_judgement
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loading import parse_judge
from perse.judging.loop import JUDGEMENTS, TIMING, answer_all, read_timing
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.records import Example, example_lines, explain

EXAMPLES = "examples.jsonl"


def score(
    judge: Judge,
    question: Question,
    loaded: LoadedExamples,
    out: Path,
    *,
    settings: JudgeSettings,
    prices: Prices | None = None,
    on_progress: OnProgress = unseen,
) -> Path:
    """Judge every example that `out` has no judgement of yet; `on_progress` is told how many have one.

    `prices` are kept in the manifest, for the tables that show what a judge costs.

    Raises:
        RunMismatch: `out` holds judgements of other examples, of another judge or with other settings.
    """
    identity = _asked(question, loaded, settings) | {
        "prompts_sha256": judge.prompt_digest(question, loaded.examples[:32], settings),
        "judge": {**asdict(judge.identity.portable), **judge.engine.settings, "context": judge.renderer.context},
    }
    context = {
        "data_folder": str(loaded.folder.resolve()) if loaded.folder else None,
        "data_digest": loaded.digest,
        "profile": loaded.profile,
        "prices": prices and prices.model_dump(),
        "judge": {"model": _place(judge.identity.model), "adapter": _place(judge.identity.adapter)},
        "chosen_by": chosen_by(judge, loaded.examples),
    }
    with RunLog(out, identity, lines=JUDGEMENTS, context=context) as runlog:
        if not (out / EXAMPLES).exists():
            write_whole(out / EXAMPLES, "".join(example_lines(loaded.examples)))
        answer_all(judge, [(question, loaded.examples)], runlog, settings=settings, on_progress=on_progress)
    return out


def _asked(question: Question, loaded: LoadedExamples, settings: JudgeSettings) -> dict[str, Any]:
    """What identifies a run, whichever judge is asked."""
    lines = list(example_lines(loaded.examples))
    return {
        "kind": "score",
        "question": question.name,
        "examples": {"count": len(lines), "sha256": hashlib.sha256("".join(lines).encode()).hexdigest()},
        "fold": loaded.fold,
        "settings": asdict(settings),
    }


def check_out(out: Path, question: Question, loaded: LoadedExamples, settings: JudgeSettings) -> None:
    """Look whether `score` may write to `out`, as far as it is known before the judge is loaded, which may take minutes.

    Raises:
        BadInput: it is no folder.
        RunMismatch: it holds something else, or a run of other examples or with other settings.
    """
    if not out.exists():
        return
    make_folder(out)
    refuse_strangers(out, JUDGEMENTS)
    if (out / MANIFEST).exists():
        run = read_manifest(out).get("run", {})
        refuse_other_run(out, run | _asked(question, loaded, settings))


def _place(name: str | None) -> str | None:
    """Where a model lies, if it is a folder of this machine."""
    folder = Path(name).expanduser() if name else None
    return str(folder.resolve()) if folder and folder.is_dir() else None


def check_unseen(judge: str, loaded: LoadedExamples) -> None:
    """Refuse a judge that was trained on another fold of the very data set it is to be scored on.

    Raises:
        BadInput: every reader of this fold was in its training data.
    """
    for folder, manifest in _trainings(parse_judge(judge).folders):
        if loaded.fold is None or manifest["run"].get("data_digest") != loaded.digest:
            continue
        fold = manifest["run"].get("config", {}).get("data", {}).get("fold")
        if fold != loaded.fold:
            raise BadInput(
                f"{folder} was trained for fold {fold} of this data set and has seen the readers of fold {loaded.fold}; score --fold {fold}"
            )


def trained_aspects(judge: str) -> ProfileAspects | None:
    """What a profile entry showed of its aspects when the judge was trained; None where that is not known here, as of a server.

    Which view a judge was trained on belongs to it: asked with another, it answers prompts of a kind that it never saw.
    """
    for _, manifest in _trainings(parse_judge(judge).folders):
        kept = manifest["run"].get("config", {}).get("data", {}).get("profile_aspects")
        return "asked" if kept == "asked" else "all"
    return None


def _trainings(judge: Sequence[Path]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """The training runs that a judge's folders are, or that lie around its merged model or adapter, with their manifests."""
    for folder in judge:
        for place in (folder, *([folder.resolve().parent] if folder.name in ("merged", "adapter") else [])):
            manifest = read_manifest(place) if (place / MANIFEST).exists() else {}
            if manifest.get("run", {}).get("kind") == "train":
                yield place, manifest


def chosen_by(judge: Judge, examples: Sequence[Example]) -> int:
    """How many of the examples are of readers whose answers chose the judge's weights while it was trained, as far as its training
    run is on this machine. On these the judge looks a little better than on others."""
    names = (judge.identity.model, judge.identity.adapter)
    folders = [Path(place) for place in map(_place, names) if place is not None]
    told = [manifest.get("context", {}).get("choosers") for _, manifest in _trainings(folders)]
    choosers = {one for each in told if isinstance(each, list) for one in each if isinstance(one, str)}
    return sum(reader_key(one.reviewer_id or one.id) in choosers for one in examples)


def sample(loaded: LoadedExamples, limit: int | None, *, seed: int) -> LoadedExamples:
    """At most `limit` of the examples, drawn by seed, in their order."""
    if limit is None or limit >= len(loaded.examples):
        return loaded
    kept = sorted(random.Random(seed).sample(range(len(loaded.examples)), limit))
    return replace(loaded, examples=[loaded.examples[i] for i in kept])


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

    @property
    def caution(self) -> str | None:
        """What stands beside the numbers of a judge that some of these very readers chose."""
        if not self.chosen_by:
            return None
        return (
            f"{self.chosen_by} of {len(self.examples)} examples are of readers on whom the judge's weights were chosen while it was "
            "trained: on these it looks better than it is"
        )

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
                f"{self.data_folder} was rebuilt since it was scored; score again, or name the data set with --train-data",
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
    judgements = _one_each(folder / JUDGEMENTS)
    place, fold = context.get("data_folder"), run.get("fold")
    if fold is not None and (type(fold) is not int or fold < 0):
        raise BadInput(f"{folder / MANIFEST}: fold is {shortened(fold)}, expected a whole number or null; score again")
    examples = read_examples(folder / EXAMPLES)
    return ScoredRun(
        examples=examples,
        judgements=judgements,
        data_folder=Path(place) if isinstance(place, str) and place else None,
        data_digest=str(context.get("data_digest")),
        fold=fold,
        prices=_prices(folder, context.get("prices")),
        seconds=_seconds(folder, judged=len(judgements)),
        chosen_by=_chosen_by(context.get("chosen_by"), asked=len(examples)),
    )


def _chosen_by(told: object, *, asked: int) -> int:
    """0 where it is not known, as of a run of an older perse."""
    return told if isinstance(told, int) and not isinstance(told, bool) and 0 <= told <= asked else 0


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
