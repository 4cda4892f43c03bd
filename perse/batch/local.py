"""Score examples with one judge on this machine, resumable: examples + judge -> run folder of judgements.

A run folder holds manifest.json, examples.jsonl (what was asked, so that the run can be evaluated by itself),
judgements.jsonl, which grows with every answer (see `perse.judging.loop`), and timing.jsonl, when they came. The same command after a kill asks
only what has no judgement yet.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from perse.data.load import LoadedExamples
from perse.data.profiles.views import ProfileAspects
from perse.errors import BadInput
from perse.files.disk import write_whole
from perse.files.path_names import place_named
from perse.files.runlog import (
    MANIFEST,
    RunLog,
    make_folder,
    read_manifest,
    refuse_other_run,
    refuse_strangers,
)
from perse.identity import reader_key
from perse.judgement import Prices
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loading import parse_judge
from perse.judging.loop import JUDGEMENTS, answer_all
from perse.judging.trained import trainings
from perse.progress import OnProgress, unseen
from perse.questions import Question
from perse.records import Example, example_lines
from perse.stacking.file import STACKING, Stacking

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
        BadInput: the judge's stacking is of another data set.
    """
    if judge.stacking is not None and loaded.folder is not None:
        judge.stacking.data.refuse_other(STACKING, sha256=loaded.digest, fold=loaded.fold)
    identity = _asked(question, loaded, settings) | {
        "prompts_sha256": judge.prompt_digest(question, loaded.examples[:32], settings),
        "judge": judge.for_manifest,
    }
    context = {
        "data_folder": str(loaded.folder.resolve()) if loaded.folder else None,
        "data_digest": loaded.digest,
        "profile": loaded.profile,
        "prices": prices and prices.model_dump(),
        "judge": {"model": place_of(judge.identity.model), "adapter": place_of(judge.identity.adapter)},
        "chosen_by": chosen_by(judge.identity.model, judge.identity.adapter, loaded.examples),
        **({"stacked_on": stacked_on(judge.stacking, loaded.examples)} if judge.stacking else {}),
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


def place_of(name: str | None) -> str | None:
    """Where a model lies, if it is a folder of this machine."""
    folder = place_named(name) if name else None
    return str(folder.resolve()) if folder and folder.is_dir() else None


def check_unseen(judge: str, loaded: LoadedExamples) -> None:
    """Refuse a judge that was trained on another fold of the very data set it is to be scored on.

    Raises:
        BadInput: every reader of this fold was in its training data.
    """
    for folder, manifest in trainings(parse_judge(judge).folders):
        run = manifest["run"]
        if loaded.fold is None or loaded.digest not in (run.get("data_digest"), *str(run.get("mixed_digests", "")).split()):
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
    folders = parse_judge(judge).folders
    return aspects_of(folders[-1]) if folders else None  # an adapter has its own, whatever its base was trained on


def aspects_of(folder: Path) -> ProfileAspects | None:
    """As `trained_aspects`, of the judge whose model, or adapter, lies in this folder. What else has a manifest there says nothing of it."""
    try:
        for _, manifest in trainings([folder]):
            kept = manifest["run"].get("config", {}).get("data", {}).get("profile_aspects")
            return "asked" if kept == "asked" else "all"
    except BadInput:
        return None
    return None


def chosen_by(model: str, adapter: str | None, examples: Iterable[Example]) -> int:
    """How many of the examples are of readers whose answers chose the judge's weights while it was trained, as far as its training
    run is on this machine. On these the judge looks a little better than on others."""
    names = (model, adapter)
    folders = [Path(place) for place in map(place_of, names) if place is not None]
    told = [manifest.get("context", {}).get("choosers") for _, manifest in trainings(folders)]
    choosers = {one for each in told if isinstance(each, list) for one in each if isinstance(one, str)}
    return sum(reader_key(one.reviewer_id or one.id) in choosers for one in examples)


def stacked_on(stacking: Stacking, examples: Iterable[Example]) -> int:
    """How many of the examples are of readers whose answers the stacking was fitted on. On these it looks better than on others."""
    known = {*stacking.readers}
    return sum(reader_key(one.reviewer_id or one.id) in known for one in examples)


def sample(loaded: LoadedExamples, limit: int | None, *, seed: int) -> LoadedExamples:
    """At most `limit` of the examples, drawn by seed, in their order."""
    if limit is None or limit >= len(loaded.examples):
        return loaded
    kept = sorted(random.Random(seed).sample(range(len(loaded.examples)), limit))
    return replace(loaded, examples=[loaded.examples[i] for i in kept])
