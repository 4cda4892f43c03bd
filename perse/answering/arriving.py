"""Judgements as they arrive: a kill loses only what is in flight.

An engine that answers calls side by side is given each example in a call of its own. The embedded engine reads labels prompt by prompt,
and writes some texts together: that is then what is in flight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from perse.engines.base import Capabilities, Failure, none_answered
from perse.engines.calls import as_they_come
from perse.judgement import Judgement

Example = TypeVar("Example")
Answer = Callable[[Sequence[Example], Callable[[Failure], None]], Iterable[list[Judgement]]]
"""Gets examples and a callback for failures; yields judgements as they are ready."""


def arriving(
    answer: Answer[Example], examples: Sequence[Example], able: Capabilities, *, written: bool
) -> Iterator[list[Judgement]]:
    """The judgements of all examples, those together that arrive together.

    Args:
        written: the engine writes before it reads.
    Raises:
        BadInput, EngineLost: the server answers nothing any more (see `none_answered`), neither to anything that was asked, nor to
            the last `batch` examples. These failures are not reported, so that they are asked again.
    """
    if not able.at_once:
        size = able.batch if written and able.accepts_token_ids else 1
        for start in range(0, len(examples), size):
            yield from answer(examples[start : start + size], lambda failure: None)
        return

    def work(one: Example) -> Iterator[tuple[list[Judgement], Failure | None]]:
        failures: list[Failure] = []
        for judgements in answer([one], failures.append):
            yield judgements, failures.pop() if failures else None

    failed: list[tuple[list[Judgement], Failure]] = []
    answered = False
    for judgements, failure in as_they_come(work, examples, able.at_once):
        if failure is None:
            answered = True
            yield from (held for held, _ in failed)
            failed = []
            yield judgements
            continue
        failed.append((judgements, failure))
        if len(failed) >= able.batch:
            none_answered([each for _, each in failed], len(failed))
            yield from (held for held, _ in failed)
            failed = []
    if not answered:
        none_answered([each for _, each in failed], len(failed))
    yield from (held for held, _ in failed)
