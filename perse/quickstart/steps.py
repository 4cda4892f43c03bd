"""The way from two files to a report: build, train within a budget, judge readers who were not trained on, fit, evaluate, report.

Each step is a command that a person could type. How many steps to train and how many examples to judge follow from the budget and from how
fast this machine trains, which is measured as by `perse plan`.
"""

from __future__ import annotations

import shlex
import time
from dataclasses import replace

from perse.data.load import load_examples
from perse.errors import BadInput
from perse.quickstart.journal import Journal
from perse.quickstart.understanding import Understood

QUESTION = "pointwise_score"
"""The score alone: to write a review takes many times as long."""
TRAINING, JUDGING = 0.6, 0.25
"""Shares of the budget; the rest is for building, evaluating, and what a busy machine takes longer."""
MOST_PASSES = 3.0
"""Over the training side: more are learned by heart."""
FEWEST_STEPS, FEWEST_JUDGED = 5, 30


def walk(understood: Understood, journal: Journal, *, model: str, dtype: str, embedding_model: str | None) -> None:
    """Runs all commands but those that were run before.

    Raises:
        BadInput: one failed.
    """
    data, judge, scored, report = (str(journal.folder / name) for name in ("data", "judge", "scored", "report"))
    journal.once(*understood.build, "--out", data, makes="data/manifest.json")
    settings = (
        f"model.path={model}",
        f"model.dtype={dtype}",
        f"data.path={data}",
        f"data.question={QUESTION}",
        f"output={judge}",
    )
    recipe = ("--config", "embedded_lora", *settings)
    held_out = len(load_examples(data, split="valid").examples)
    if journal.kept.steps is None or journal.kept.judged is None:
        from perse.training.planning.telling import time_words

        journal.say(f"\n$ perse plan {shlex.join(recipe)}\ntiming a short row on this machine")
        began = time.monotonic()
        steps, judged, takes = within(journal.kept.minutes * 60, settings, held_out=held_out)
        journal.say(
            f"{steps} steps of training and {judged} judged examples take about {time_words(takes / 3600)} (--minutes {journal.kept.minutes:g})"
        )
        journal.keep(steps=steps, judged=judged, planning=round(time.monotonic() - began, 1))
    journal.once("train", *recipe, f"train.steps={journal.kept.steps}", makes="judge/merged/config.json")
    fewer = ("--limit", str(journal.kept.judged)) if (journal.kept.judged or held_out) < held_out else ()
    asked = ("--examples", data, "--judge", judge, "--question", QUESTION, "--dtype", dtype, *fewer)
    journal.once("score", *asked, "--out", scored, makes="scored/judgements.jsonl")
    journal.once(
        "fit", scored, makes="judge/stacking.json", into="fit.txt", needed=False
    )  # of few readers, or of constant scores, nothing can be learned
    embedded = () if embedding_model is None else ("--embedding-model", embedding_model)
    journal.once("evaluate", scored, *embedded, into="evaluation.txt")
    journal.once("report", scored, *embedded, "--out", report, makes="report/report.html")


def within(seconds: float, settings: tuple[str, ...], *, held_out: int) -> tuple[int, int, float]:
    """Steps of training, and examples to judge of those held out, that take so long on this machine, and the seconds that they take: a few are
    planned at least, though they take longer.

    An example is taken to be judged as fast as it is trained on: forward alone, but read without its neighbours.

    Raises:
        BadInput: what `perse plan` refuses; a machine whose speed cannot be measured.
    """
    from perse.settings.training import load_config
    from perse.training.planning.plan import plan
    from perse.training.planning.speed import device_here

    timed = replace(device_here(), bfloat16=None, float32=None)  # small models reach little of what a data sheet says
    config = load_config("embedded_lora", list(settings))
    found = plan(config, device=timed, measure=True)
    hours = found.hours_with(checkpointing=config.train.gradient_checkpointing)
    if hours is None:
        raise BadInput("the model does not fit this machine, so that no time is known; give a smaller one as --model")
    a_step = hours * 3600 / found.steps
    an_example = hours * 3600 / (found.examples * found.epochs)
    steps = min(seconds * TRAINING / a_step, MOST_PASSES * found.steps / found.epochs)
    trained, judged = (
        max(FEWEST_STEPS, round(steps)),
        min(held_out, max(FEWEST_JUDGED, int(seconds * JUDGING / an_example))),
    )
    return trained, judged, trained * a_step + judged * an_example
