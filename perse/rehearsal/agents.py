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
from perse.progress import OnPart, unseen_part
from perse.prompts import source
from perse.rehearsal.settings import Settings
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Good, Outcome
from perse.writing.waves import Wording, ask_wave, fits, worded
from perse.writing.writer import Writer

Role = Literal["writer", "user", "supervisor", "filter"]
ROLES: tuple[Role, ...] = get_args(Role)

TEMPLATE = "rehearsal.jinja"

Value = TypeVar("Value")


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
        return ask_wave(
            self.writers[role], wordings, read,
            template=TEMPLATE, cache=self.cache, sampling=Sampling(self.settings.temperature, self.settings.max_new_tokens, schema=form),
            seed=self.settings.seed, consumer="rehearsal", step=step, tries=tries or self.settings.tries, skip_failed=self.settings.skip_failed,
            on_progress=lambda done, total: self.on_progress(step, done, total),
        )  # fmt: skip

    def fits(self, role: Role, prompt: Wording) -> bool:
        return fits(self.writers[role], prompt, Sampling(self.settings.temperature, self.settings.max_new_tokens))


def said(prompt: str, **texts: Any) -> Wording:
    """The prompt of this name; every text in `texts`, also in lists, is made safe, and numbers are left as they are."""
    return worded(TEMPLATE, prompt, **texts)
