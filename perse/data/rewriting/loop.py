"""Ask until the answer is good: check each, ask again with the reason, count whatever went wrong.

All jobs go in waves, first every first try, then every second one, so that the engine always has whole batches; and every
batch is kept before the next is asked, so that a kill loses at most one. What is asked depends on the message and the
earlier answers alone, never on ids, order or batch size: equal texts get equal answers, and are asked once.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from perse.data.identity import draw
from perse.data.rewriting.cache import AnswerCache, answer_key
from perse.data.rewriting.writer import Unwritable, Writer, Written
from perse.engines.base import Failure, Sampling
from perse.errors import BadInput, EngineLost

Value = TypeVar("Value")

SHOWN = 600
"""Characters of a bad answer that are shown to the model again: enough to see what it did, no invitation to go on."""


_DECLINING = re.compile(
    r"(?:(?:i'm |i am )?(?:very |so )?sorry,? (?:but )?|i apologi[sz]e,? (?:but )?|unfortunately,? )?"
    r"(?:i (?:cannot|can't|won't|will not|must decline|(?:am|'m) (?:unable|not able))|i'm (?:unable|not able))\b"
    r"|(?:i'm |i am )?sorry, but i\b|as an? (?:large |ai )*language model\b",
    re.IGNORECASE,
)
"""How answers begin that are none."""


class Kind(StrEnum):
    """What became of one try."""

    OK = "ok"
    SURVIVORS = "survivors"
    """A mapping that is right in itself, but original names are still in the text."""
    BAD_JSON = "bad_json"
    MISSING_KEY = "missing_key"
    """A name that the text does not have."""
    CHAINED = "chained"
    """A new name that is itself to be replaced."""
    MERGED = "merged"
    """Two names with one new name."""
    BAD_MAPPING = "bad_mapping"
    """Any other fault of a mapping, such as a family torn apart."""
    REFUSED = "refused"
    ENGINE = "engine"
    """No answer: a timeout, a lost connection, a server's or the engine's error."""
    TOO_LONG = "too_long"
    EMPTY = "empty"
    TRUNCATED = "truncated"
    COPIED = "copied"
    NAMED = "named"
    """An original name, or the title, in a summary."""
    ECHOED = "echoed"
    """Words of the instruction, or a remark about the answer, in a summary."""


@dataclass(frozen=True)
class Good(Generic[Value]):
    """An answer that stands."""

    value: Value


@dataclass(frozen=True)
class Fair(Generic[Value]):
    """An answer that would do: it is asked for once more, and the one with the lower `rank` stands, the earlier on a tie."""

    value: Value
    kind: Kind
    reason: str
    rank: int


@dataclass(frozen=True)
class Bad:
    """An answer that cannot be used; `reason` is a sentence that the model is sent."""

    kind: Kind
    reason: str


@dataclass(frozen=True)
class Attempt:
    """One try; `reason` is empty when it is ok."""

    kind: Kind
    reason: str = ""


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """What all tries at one job came to. `value` is None when none was any good."""

    value: Value | None
    attempts: tuple[Attempt, ...]

    @property
    def kind(self) -> Kind:
        """`ok` where there is a value, else what the last try was."""
        return Kind.OK if self.value is not None else self.attempts[-1].kind

    @property
    def reason(self) -> str:
        """Why there is no value; empty where there is one."""
        return "" if self.value is not None else self.attempts[-1].reason


Check = Callable[[str, str], "Good[Value] | Fair[Value] | Bad"]
"""Of a job's id and the text of an answer. Pure: it is called again for answers that were kept."""


def counts(tried: Iterable[tuple[Attempt, ...]]) -> Counter[str]:
    """How often each kind of try occurred, bad ones that a later try put right included."""
    return Counter(str(attempt.kind) for attempts in tried for attempt in attempts)


@dataclass
class _Job(Generic[Value]):
    """A job on its way."""

    id: str
    first: str
    """The message of the first try, to which later ones add."""
    message: str
    who: str
    """What its seeds are drawn for: the first message, so that equal messages get equal answers."""
    attempts: list[Attempt] = field(default_factory=list)
    answered: int = 0
    """Tries with an answer. Seeds count these only, so that a server's bad moment changes no result."""
    fair: Fair[Value] | None = None
    value: Value | None = None
    over: bool = False


def ask_until_good(
    writer: Writer,
    messages: Mapping[str, str],
    check: Check[Value],
    *,
    cache: AnswerCache,
    again: Callable[[str, str], str],
    sampling: Sampling,
    seed: int,
    purpose: str,
    tries: int = 3,
    progress: Callable[[int], None] = lambda settled: None,
) -> dict[str, Outcome[Value]]:
    """The outcome of every job, by id, in the order given.

    Args:
        messages: id -> the first message; untrusted text in it is neutralised already.
        check: says whether an answer is good.
        again: (the bad answer, shortened and neutralised; the reason) -> what is added to the first message.
        purpose: keeps the seeds of one kind of task apart from another's.
        tries: at most so many for each job; a try that the engine failed at is one.
        progress: called with how many jobs have come to an end since the last call.
    Raises:
        EngineLost: the engine failed at every message of the first wave, or is gone for good.
        BadInput: no tries, a server that cannot be asked, or a cache that cannot be used.
    """
    if tries < 1:
        raise BadInput(f"{tries} tries for each text: expected 1 or more")
    jobs: list[_Job[Value]] = [
        _Job(name, message, message, hashlib.sha256(message.encode()).hexdigest()) for name, message in messages.items()
    ]
    for wave in range(tries):
        going = [job for job in jobs if not job.over]
        failed: list[Failure] = []
        for some, answers in _answered(writer, going, cache, sampling=sampling, seed=seed, purpose=purpose):
            for job in some:
                said = answers[job.id]
                if isinstance(said, Failure) and _failure_kind(said) is Kind.ENGINE:
                    failed.append(said)
                _settle(job, said, check)
                job.over = job.over or wave == tries - 1
                if not job.over and isinstance(said, Written):
                    job.message = _next_message(writer, job, said, again, sampling)
            progress(sum(job.over for job in some))
        if wave == 0 and failed and len(failed) == len(going):
            raise EngineLost(
                f"the engine failed at every one of {len(failed)} prompts, at the first because {failed[0].reason}; look "
                "after it; the same command continues"
            )
    return {job.id: _outcome(job) for job in jobs}


def _answered(
    writer: Writer, jobs: list[_Job[Value]], cache: AnswerCache, *, sampling: Sampling, seed: int, purpose: str
) -> Iterator[tuple[list[_Job[Value]], dict[str, Written | Failure]]]:
    """Jobs with their answers: first those that were kept, then batch after batch, each kept before it is given out."""
    asked: dict[str, tuple[str, int]] = {}
    waiting: dict[str, list[_Job[Value]]] = {}
    for job in jobs:
        number = draw(seed, job.who, f"{purpose} {job.answered}").getrandbits(63)
        key = answer_key(writer, job.message, sampling, number)
        asked[key] = (job.message, number)
        waiting.setdefault(key, []).append(job)
    known = cache.known(list(asked))
    if known:
        yield _given(waiting, known)
    rest = [key for key in asked if key not in known]
    for start in range(0, len(rest), writer.batch):
        keys = rest[start : start + writer.batch]
        said = writer.write([asked[key][0] for key in keys], sampling, seeds=[asked[key][1] for key in keys])
        fresh = dict(zip(keys, said, strict=True))
        kept = cache.keep({key: one for key, one in fresh.items() if isinstance(one, Written)})
        yield _given(waiting, fresh | kept)


def _given(
    waiting: Mapping[str, list[_Job[Value]]], answers: Mapping[str, Written | Failure]
) -> tuple[list[_Job[Value]], dict[str, Written | Failure]]:
    some = [job for key in answers for job in waiting[key]]
    return some, {job.id: answers[key] for key in answers for job in waiting[key]}


def _settle(job: _Job[Value], said: Written | Failure, check: Check[Value]) -> None:
    """Note what came of a try, and whether it was the last."""
    if isinstance(said, Failure):
        job.attempts.append(Attempt(_failure_kind(said), said.reason))
        job.over = isinstance(said, Unwritable)  # the same message would fail the same way
        return
    job.answered += 1
    judged = _judged(job.id, said, check)
    second = job.fair is not None
    if isinstance(judged, Good):
        job.attempts.append(Attempt(Kind.OK))
        job.value, job.over = judged.value, True
        return
    job.attempts.append(Attempt(judged.kind, judged.reason))
    if isinstance(judged, Fair) and (job.fair is None or judged.rank < job.fair.rank):
        job.fair = judged
    job.over = second


def _judged(name: str, written: Written, check: Check[Value]) -> Good[Value] | Fair[Value] | Bad:
    if written.refused or _DECLINING.match(written.text.replace("\u2019", "'")):
        return Bad(Kind.REFUSED, f"no answer was given, but a refusal: {written.text[:200] or written.finish_reason}")
    if written.finish_reason == "length":
        return Bad(Kind.TRUNCATED, "the answer was too long and was cut off; give a shorter one that is complete")
    if not written.text:
        return Bad(Kind.EMPTY, "the answer was empty")
    return check(name, written.text)


def _failure_kind(failure: Failure) -> Kind:
    return Kind.TOO_LONG if isinstance(failure, Unwritable) and failure.too_long else Kind.ENGINE


def _next_message(writer: Writer, job: _Job[Value], said: Written, again: Callable[[str, str], str], sampling: Sampling) -> str:
    """The first message with the bad answer and what is wrong with it; without them where they do not fit."""
    shown = said.text if len(said.text) <= SHOWN else said.text[:SHOWN] + " ..."
    # Both hold words of the model, which it may have from the plot: as untrusted as that.
    added = again(writer.neutralise(shown), writer.neutralise(job.attempts[-1].reason))
    longer = f"{job.first}\n{added}"
    return job.first if writer.excess(longer, sampling) else longer


def _outcome(job: _Job[Value]) -> Outcome[Value]:
    value = job.value if job.value is not None or job.fair is None else job.fair.value
    return Outcome(value, tuple(job.attempts))
