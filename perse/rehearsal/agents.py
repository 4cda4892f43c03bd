"""The agents: who plays which role, and how all samples ask one of them at the same time.

One wave asks one agent about every sample that has come so far, so the engine always has a full batch. Every answer is kept the moment it
arrives, under all that it depends on: a run that was killed goes through the same waves again, and asks only what it has no answer to.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeVar, get_args

from perse.engines.base import Sampling
from perse.errors import EngineLost
from perse.progress import OnPart, unseen_part
from perse.prompts import macros, source
from perse.rehearsal.settings import Settings
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Good, Kind, Outcome, ask_until_good
from perse.writing.writer import Writer

Role = Literal["writer", "user", "supervisor", "filter"]
ROLES: tuple[Role, ...] = get_args(Role)

TEMPLATE = "rehearsal.jinja"

Value = TypeVar("Value")

Wording = Callable[[Callable[[str], str]], str]
"""A prompt, given what makes a text from outside safe."""


def wording_digest() -> str:
    """Of all prompts."""
    return hashlib.sha256(source(TEMPLATE).encode()).hexdigest()


class Asking(Protocol):
    """Whoever answers for the agents: models (`Agents`), or a plan that counts what they would be asked."""

    settings: Settings

    def ask(
        self,
        role: Role,
        step: str,
        wordings: Mapping[str, Wording],
        read: Callable[[str], Good[Value] | Bad],
        *,
        form: Mapping[str, Any] | None = None,
        tries: int | None = None,
    ) -> dict[str, Outcome[Value]]:
        """One wave: what the agent answers to each sample's prompt, by the sample's id, in that order.

        Args:
            step: names the wave, for people and for the seeds.
            form: JSON Schema of an answer, for engines that obey one.
            tries: by default the settings'.
        """

    def fits(self, role: Role, prompt: Wording) -> bool:
        """Whether the agent's context has room for the prompt and its answer."""


@dataclass
class Agents:
    """Models that play the roles; `cache` has their answers."""

    writers: Mapping[Role, Writer]
    cache: AnswerCache
    settings: Settings
    on_progress: OnPart = unseen_part

    def ask(
        self,
        role: Role,
        step: str,
        wordings: Mapping[str, Wording],
        read: Callable[[str], Good[Value] | Bad],
        *,
        form: Mapping[str, Any] | None = None,
        tries: int | None = None,
    ) -> dict[str, Outcome[Value]]:
        """See `Asking`.

        Raises:
            EngineLost: the engine is gone, or failed at some of the prompts, unless these may be skipped.
        """
        if not wordings:
            return {}
        writer = self.writers[role]
        wording: Any = macros(TEMPLATE)
        found = ask_until_good(
            writer,
            _neighbours({name: prompt(self._safe(writer)) for name, prompt in wordings.items()}),
            lambda _, answer: read(answer),
            cache=self.cache,
            again=wording.again,
            sampling=Sampling(self.settings.temperature, self.settings.max_new_tokens, schema=form),
            seed=self.settings.seed,
            purpose=f"rehearsal {step}",
            tries=tries or self.settings.tries,
            on_progress=lambda done, total: self.on_progress(step, done, total),
        )
        failed = [outcome for outcome in found.values() if outcome.kind == Kind.ENGINE]
        if failed and not self.settings.skip_failed:
            raise EngineLost(
                f"the engine failed at {len(failed)} of {len(found)} answers of '{step}' ({failed[0].reason}); the same command asks for "
                "these again, and with --skip-failed goes on without them"
            )
        return {name: found[name] for name in wordings}

    def fits(self, role: Role, prompt: Wording) -> bool:
        writer = self.writers[role]
        wanted = Sampling(self.settings.temperature, self.settings.max_new_tokens)
        return writer.excess(prompt(self._safe(writer)), wanted) is None

    @staticmethod
    def _safe(writer: Writer) -> Callable[[str], str]:
        return lambda text: " ".join(writer.neutralise(text).split())


def _neighbours(prompts: Mapping[str, str]) -> dict[str, str]:
    """The prompts in the order of their words: those that begin alike stand side by side, and the engine shares what they begin with."""
    return dict(sorted(prompts.items(), key=lambda one: one[1]))


def said(prompt: str, **texts: Any) -> Wording:
    """The prompt of this name; every text in `texts`, also in lists, is made safe, and numbers are left as they are."""

    def made(safe: Callable[[str], str]) -> str:
        def clean(value: Any) -> Any:
            return (
                safe(value)
                if isinstance(value, str)
                else [clean(one) for one in value]
                if isinstance(value, list | tuple)
                else value
            )

        wording: Any = getattr(macros(TEMPLATE), prompt)
        whole: str = wording(**{name: clean(value) for name, value in texts.items()})
        return whole

    return made
