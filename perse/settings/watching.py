"""Settings of judging while training (perse/training/watch)."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from perse.settings.config import LOCAL, Section


class Watch(Section):
    data: Annotated[str | None, LOCAL] = None
    """A .jsonl of examples of reviewers who are not trained on, or a data set folder, whose valid split is shown as `data` says;
    by default, readers of the training side who are held apart. Whoever is watched chooses the weights: score others."""
    held_apart: float = Field(default=0.05, gt=0, lt=1)
    """Share of the readers of the training side who are not trained on but watched, where `data` names nobody else."""
    examples: int = Field(default=64, ge=2)
    """Examples of the fixed, seeded sample. Kendall of 64 is uncertain by about 0.08; of 256 by 0.04."""
    generated: int = Field(default=32, ge=2)
    """Of a question that writes first: how many of the sample are judged fully; the others enter the validation loss alone."""
    new_tokens: int = Field(default=160, ge=1)
    """Longest review that is written while training; a longer one is cut there and scored as it stands."""
    shown: int = Field(default=2, ge=0)
    """How many of the judged answers are written to shown.jsonl beside the reader's own, at every judging."""
    every: int | None = Field(default=None, ge=1)
    """Optimizer steps between two judgings; by default as many as keep judging under 5% of the time."""
    best: Literal["kendall", "accuracy", "within_one", "loss"] | None = None
    """What decides which weights are kept at the end; by default kendall of scores and accuracy of pairs. What is not answered
    counts: as wrong, and for kendall as the mean of the true scores."""
    patience: int | None = Field(default=None, ge=1)
    """Stop after so many judgings without a better one by what decides; by default never."""

    def number_apart(self, readers: int) -> int:
        """How many of `readers` are held apart, rounded; at least one is trained on."""
        return max(0, min(int(self.held_apart * readers + 0.5), readers - 1))
