"""Ask until the answer is good: check each, ask again with the reason, count the failures.

All jobs go in waves, first every first try, then every second one, so that the engine always has enough to do; and every
answer is kept the moment it arrives, so that a kill loses only what was in flight. What is asked depends on the message and
the earlier answers alone, never on ids, order, batch size or time: equal texts get equal answers, and are asked once.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, TypeVar

from perse.engines.base import Failure, Sampling, Turns, was_cut
from perse.errors import BadInput, EngineLost
from perse.identity import draw
from perse.judgement import Tokens
from perse.progress import OnProgress, unseen
from perse.writing.cache import AnswerCache, answer_key
from perse.writing.writer import Unreachable, Unwritable, Writer, Written

Value = TypeVar("Value")

SHOWN = 600
"""Characters of a bad answer that are shown to the model again: enough to see the fault, too few to continue it."""

UNREACHED = 8
"""Requests in a row that did not reach the server, after which it is gone."""

FRUITLESS = 64
"""Messages in a row that failed for any reason, after which the engine is blamed: a proxy may answer for a dead server."""

_DECLINING = re.compile(
    r"(?:(?:i'm |i am )?(?:very |so )?sorry,? (?:but )?|i apologi[sz]e,? (?:but )?|unfortunately,? )?"
    r"(?:i (?:cannot|can't|won't|will not|must decline|(?:am|'m) (?:unable|not able))|i'm (?:unable|not able))\b"
    r"|(?:i'm |i am )?sorry, but i\b|as an? (?:large |ai )*language model\b",
    re.IGNORECASE,
)
"""Beginnings of refusals."""


class Kind(StrEnum):
    """Outcomes of one try; a check adds kinds of its own."""

    OK = "ok"
    BAD_JSON = "bad_json"
    REFUSED = "refused"
    ENGINE = "engine"
    """No answer: a timeout, a lost connection, a server's or the engine's error."""
    TOO_LONG = "too_long"
    EMPTY = "empty"
    TRUNCATED = "truncated"


@dataclass(frozen=True)
class Good(Generic[Value]):
    """A good answer."""

    value: Value


@dataclass(frozen=True)
class Fair(Generic[Value]):
    """A usable answer: it is asked for once more, and the one with the lower `rank` is kept, the earlier on a tie."""

    value: Value
    kind: StrEnum
    reason: str
    rank: int


@dataclass(frozen=True)
class Bad:
    """An answer that cannot be used; `reason` is a sentence that the model is sent."""

    kind: StrEnum
    reason: str


@dataclass(frozen=True)
class Attempt:
    """One try; `reason` is empty when it is ok."""

    kind: StrEnum
    reason: str = ""


@dataclass(frozen=True)
class Outcome(Generic[Value]):
    """The outcome of all tries at one job. `value` is None if none was usable."""

    value: Value | None
    attempts: tuple[Attempt, ...]
    tokens: Tokens | None = field(default=None, compare=False)
    """What all answered tries took; None if that is not known of one."""

    @property
    def kind(self) -> StrEnum:
        """`ok` with a value, else the kind of the last try."""
        return Kind.OK if self.value is not None else self.attempts[-1].kind

    @property
    def reason(self) -> str:
        """Why there is no value, or empty."""
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
    first: str | Turns
    """The message of the first try, to which later ones add."""
    message: str | Turns
    who: str
    """What its seeds are drawn for: the first message, so that equal messages get equal answers."""
    attempts: list[Attempt] = field(default_factory=list)
    answered: int = 0
    """Tries with an answer. Seeds count these only, so that a server's bad moment changes no result."""
    tokens: list[Tokens | None] = field(default_factory=list)
    """What each of them took."""
    fair: Fair[Value] | None = None
    value: Value | None = None
    over: bool = False


def ask_until_good(
    writer: Writer,
    messages: Mapping[str, str | Turns],
    check: Check[Value],
    *,
    cache: AnswerCache,
    again: Callable[[str, str], str],
    sampling: Sampling,
    seed: int,
    purpose: str,
    tries: int = 3,
    on_progress: OnProgress = unseen,
) -> dict[str, Outcome[Value]]:
    """The outcome of every job, by id, in the order given.

    Args:
        messages: id -> the first message, or a conversation that ends with it; untrusted text in it is neutralised already.
        check: says whether an answer is good.
        again: (the bad answer, shortened and neutralised; the reason) -> what is added to the first message.
        purpose: keeps the seeds of one kind of task apart from another's.
        tries: at most so many for each job; a try that the engine failed at is one.
        on_progress: called with the number of finished jobs.
    Raises:
        EngineLost: the engine failed at every message of the first wave, or is gone: see `_Silence`.
        BadInput: no tries, a server that cannot be asked or refuses every request, or a cache that cannot be used.
    """
    if tries < 1:
        raise BadInput(f"{tries} tries for each text: expected 1 or more")
    jobs: list[_Job[Value]] = [_Job(name, message, message, _digest(message)) for name, message in messages.items()]
    silence = _Silence()
    on_progress(0, len(jobs))
    for wave in range(tries):
        going = [job for job in jobs if not job.over]
        if not going:
            break
        failed: list[Failure] = []
        for some, said in _answered(writer, going, cache, sampling=sampling, seed=seed, purpose=purpose):
            silence.note(said, again=any(one.kind is Kind.ENGINE for one in some[0].attempts))
            for job in some:
                if isinstance(said, Failure) and _failure_kind(said) is Kind.ENGINE:
                    failed.append(said)
                _settle(job, said, check)
                job.over = job.over or wave == tries - 1
                if not job.over and isinstance(said, Written):
                    job.message = _next_message(writer, job, said, again, sampling)
            on_progress(sum(job.over for job in jobs), len(jobs))
        if wave == 0 and failed and len(failed) == len(going):
            if all(isinstance(one, Unwritable) for one in failed):
                raise _unfit(failed[0], len(failed))
            raise EngineLost(
                f"the engine failed at every one of {len(failed)} prompts, at the first because {failed[0].reason}; look "
                "after it; the same command continues"
            )
        silence.end()
    return {job.id: _outcome(job) for job in jobs}


@dataclass
class _Silence:
    """What has failed since the last answer: tells an engine that is gone from messages that it cannot answer.

    A message that fails again proves nothing, so that those that always do cannot end a run in its later waves. But no
    message is to blame for a connection that is refused: that counts each time.
    """

    answered: bool = False
    refused: Failure | None = None
    unreached: int = 0
    failed: int = 0

    def note(self, said: Written | Failure, *, again: bool) -> None:
        """Count one outcome; `again`: the engine failed at this message before.

        Raises:
            EngineLost: too many in a row without an answer.
            BadInput: the same from the beginning, and the server blames the requests.
        """
        if isinstance(said, Written):
            self.answered, self.refused, self.unreached, self.failed = True, None, 0, 0
            return
        blamed = isinstance(said, Unwritable)
        if blamed and (self.answered or _failure_kind(said) is Kind.TOO_LONG):
            return
        refused = isinstance(said, Unreachable) and not said.connected
        self.refused = said if refused else self.refused
        self.unreached += isinstance(said, Unreachable) and (refused or not again)
        self.failed += not again
        if self.failed >= FRUITLESS and blamed:
            raise _unfit(said, self.failed)
        if self.unreached >= UNREACHED or self.failed >= FRUITLESS:
            raise _lost(said)

    def end(self) -> None:
        """At the end of a wave a single refused connection is enough, where nothing was answered after it.

        Raises:
            EngineLost: that is so.
        """
        if self.refused:
            raise _lost(self.refused)


def _unfit(one: Failure, messages: int) -> BadInput:
    return BadInput(f"{one.reason}; none of {messages} messages was answered: change what it names, or ask another model")


def _lost(last: Failure) -> EngineLost:
    return EngineLost(f"{last.reason}, and nothing was answered since; look after the server; the same command continues")


def _answered(
    writer: Writer, jobs: list[_Job[Value]], cache: AnswerCache, *, sampling: Sampling, seed: int, purpose: str
) -> Iterator[tuple[list[_Job[Value]], Written | Failure]]:
    """Answers with the jobs that they are for: first those that were kept, then as they arrive, each kept by then."""
    asked: dict[str, tuple[str | Turns, int]] = {}
    waiting: dict[str, list[_Job[Value]]] = {}
    for job in jobs:
        number = draw(seed, job.who, f"{purpose} {job.answered}").getrandbits(63)
        key = answer_key(writer, job.message, sampling, number)
        asked[key] = (job.message, number)
        waiting.setdefault(key, []).append(job)
    known = cache.known(list(asked))
    for key, said in known.items():
        yield waiting[key], said
    rest = [key for key in asked if key not in known]

    def keep(answers: Mapping[int, Written]) -> dict[int, Written]:
        kept = cache.keep({rest[n]: said for n, said in answers.items()})
        return {n: kept[rest[n]] for n in answers}

    messages, seeds = [asked[key][0] for key in rest], [asked[key][1] for key in rest]
    for n, answer in writer.write(messages, sampling, seeds=seeds, keep=keep):
        yield waiting[rest[n]], answer


def _digest(message: str | Turns) -> str:
    return hashlib.sha256((message if isinstance(message, str) else json.dumps(message)).encode()).hexdigest()


def _settle(job: _Job[Value], said: Written | Failure, check: Check[Value]) -> None:
    """Note what came of a try, and whether it was the last."""
    if isinstance(said, Failure):
        job.attempts.append(Attempt(_failure_kind(said), said.reason))
        job.over = isinstance(said, Unwritable)  # the same message would fail the same way
        return
    job.answered += 1
    job.tokens.append(said.tokens)
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
    if was_cut(written.finish_reason):
        return Bad(Kind.TRUNCATED, "the answer was too long and was cut off; give a shorter one that is complete")
    if not written.text:
        return Bad(Kind.EMPTY, "the answer was empty")
    return check(name, written.text)


def _failure_kind(failure: Failure) -> Kind:
    return Kind.TOO_LONG if isinstance(failure, Unwritable) and failure.too_long else Kind.ENGINE


def _next_message(
    writer: Writer, job: _Job[Value], said: Written, again: Callable[[str, str], str], sampling: Sampling
) -> str | Turns:
    """The first message with the bad answer and what is wrong with it; without them where they do not fit."""
    shown = said.text if len(said.text) <= SHOWN else said.text[:SHOWN] + " ..."
    # Both hold words of the model, which it may have from the plot: as untrusted as that.
    added = again(writer.neutralise(shown), writer.neutralise(job.attempts[-1].reason))
    first = job.first
    longer = f"{first}\n{added}" if isinstance(first, str) else (*first[:-1], f"{first[-1]}\n{added}")
    return job.first if writer.excess(longer, sampling) else longer


def _outcome(job: _Job[Value]) -> Outcome[Value]:
    value = job.value if job.value is not None or job.fair is None else job.fair.value
    known = [one for one in job.tokens if one is not None]
    return Outcome(value, tuple(job.attempts), _sum(known) if known and len(known) == len(job.tokens) else None)


def _sum(tokens: Sequence[Tokens]) -> Tokens:
    prompt, cached, generated = (sum(getattr(one, part) for one in tokens) for part in ("prompt", "cached", "generated"))
    return Tokens(prompt=prompt, cached=cached, generated=generated)
