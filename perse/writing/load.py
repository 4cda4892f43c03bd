"""What prompts ask of an engine that remembers how prompts begin: calls, tokens, the shared part, and hours at a stated rate. For plans, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from perse.results.result import Cell

Count = Callable[[str], int]
"""The tokens of a text."""

CHARACTERS = 4
"""Of an English token, where no tokenizer is given."""

BLOCK = 64
"""Characters, about the 16 tokens by which engines share prompts."""


@dataclass
class Load:
    """What one kind of agent is asked. `shared`: tokens at the beginning of prompts that an earlier prompt began with, too."""

    calls: int = 0
    prompt: int = 0
    shared: int = 0
    generated: int = 0

    def add(self, other: Load) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    @property
    def share(self) -> float:
        """Of the prompt tokens, those that are shared."""
        return self.shared / self.prompt if self.prompt else 0.0

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Calls, prompt tokens, the shared share, and tokens written."""
        return f"{self.calls:,}", f"{self.prompt:,}", f"{self.share:.0%}", f"{self.generated:,}"

    def time(self, prefill: float | None, decode: float | None) -> str | None:
        """At so many tokens read and written a second, in words; None if a rate is not known."""
        if not (prefill and decode):
            return None
        hours = ((self.prompt - self.shared) / prefill + self.generated / decode) / 3600
        return f"{hours:.1f} hours" if hours >= 0.1 else f"{60 * hours:.1f} minutes"


def total_of(loads: dict[str, Load]) -> Load:
    """Of all kinds together."""
    whole = Load()
    for load in loads.values():
        whole.add(load)
    return whole


def quarter(text: str) -> int:
    """Tokens of a text by its characters."""
    return -(-len(text) // CHARACTERS)


@dataclass
class Prompts:
    """Counts prompts in the order in which they are asked.

    Args:
        count: of a text's tokens.
        cache: tokens of prompts that the engine remembers, the oldest forgotten first; None: all of them.
    """

    count: Count = quarter
    cache: int | None = None
    loads: dict[str, Load] = field(default_factory=dict)
    _begun: dict[int, None] = field(default_factory=dict)
    """Blocks with all before them, the longest unused first."""

    def note(self, kind: str, prompt: str, *, generated: int) -> None:
        """One call."""
        tokens, shared = self.count(prompt), self._shared(prompt)
        part = round(tokens * shared / max(1, len(prompt)))
        self.loads.setdefault(kind, Load()).add(Load(calls=1, prompt=tokens, shared=part, generated=generated))

    def _shared(self, prompt: str) -> int:
        """Characters of whole blocks at the beginning that were seen before; those of this prompt are seen from now on."""
        keys, shared, known = [0], 0, True
        for start in range(0, len(prompt) - BLOCK + 1, BLOCK):
            keys.append(hash((keys[-1], prompt[start : start + BLOCK])))
            known = known and keys[-1] in self._begun
            shared += BLOCK if known else 0
        for key in reversed(keys[1:]):  # the end of a prompt is forgotten before its beginning
            self._begun.pop(key, None)
            self._begun[key] = None
        room = len(self._begun) if self.cache is None else self.cache * CHARACTERS // BLOCK
        while len(self._begun) > room:
            del self._begun[next(iter(self._begun))]
        return shared
