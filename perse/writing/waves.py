"""One wave: a prompt of one kind about many things at once, so that the engine always has a full batch.

Prompts are macros of a packaged template, and whatever comes from outside is made safe as it is put in: here, for everybody. Prompts that begin alike are
asked side by side, since an engine shares what they begin with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from perse.engines.base import Sampling
from perse.errors import EngineLost
from perse.progress import OnProgress, unseen
from perse.prompts import macros
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Fair, Good, Kind, Outcome, ask_until_good
from perse.writing.writer import Writer

Value = TypeVar("Value")

Wording = Callable[[Callable[[str], str]], str]
"""A prompt, given what makes a text from outside safe."""


def worded(template: str, macro: str, **texts: Any) -> Wording:
    """The prompt of a template's macro; every text in `texts`, also in lists, is made safe, and numbers are left as they are."""

    def made(safe: Callable[[str], str]) -> str:
        def clean(value: Any) -> Any:
            return (
                safe(value)
                if isinstance(value, str)
                else [clean(one) for one in value]
                if isinstance(value, list | tuple)
                else value
            )

        wording: Any = getattr(macros(template), macro)
        whole: str = wording(**{name: clean(value) for name, value in texts.items()})
        return whole

    return made


def message_of(writer: Writer, wording: Wording) -> str:
    """The prompt as this writer gets it: each text from outside is neutralised, and one line."""
    return wording(lambda text: " ".join(writer.neutralise(text).split()))


def fits(writer: Writer, wording: Wording, wanted: Sampling) -> bool:
    """Whether the writer's context has room for the prompt and its answer."""
    return writer.excess(message_of(writer, wording), wanted) is None


def ask_wave(
    writer: Writer,
    wordings: Mapping[str, Wording],
    read: Callable[[str], Good[Value] | Fair[Value] | Bad],
    *,
    template: str,
    cache: AnswerCache,
    sampling: Sampling,
    seed: int,
    consumer: str,
    step: str,
    tries: int,
    skip_failed: bool,
    on_progress: OnProgress = unseen,
) -> dict[str, Outcome[Value]]:
    """What the writer answers to each prompt, by its name, in the order given.

    Args:
        template: whose macro `again` asks again.
        consumer, step: who asks, and for what: they keep the seeds of one wave apart from another's; people read the step.
        skip_failed: go on without what the engine failed at.
    Raises:
        EngineLost: the engine is gone, or failed at some of the prompts, unless these may be skipped.
        BadInput: as `ask_until_good`.
    """
    if not wordings:
        return {}
    wording: Any = macros(template)
    prompts = {name: message_of(writer, each) for name, each in wordings.items()}
    found = ask_until_good(
        writer,
        dict(sorted(prompts.items(), key=lambda one: one[1])),
        lambda _, answer: read(answer),
        cache=cache,
        again=wording.again,
        sampling=sampling,
        seed=seed,
        purpose=f"{consumer} {step}",
        tries=tries,
        on_progress=on_progress,
    )
    failed = [outcome for outcome in found.values() if outcome.kind == Kind.ENGINE]
    if failed and not skip_failed:
        raise EngineLost(
            f"the engine failed at {len(failed)} of {len(found)} answers of '{step}' ({failed[0].reason}); the same "
            "command asks for these again, and with --skip-failed goes on without them"
        )
    return {name: found[name] for name in wordings}
