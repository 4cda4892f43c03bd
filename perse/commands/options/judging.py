"""Groups of options that commands which ask a judge take: how it is loaded, how it answers, and how profiles are shown to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from perse.commands.options import Concurrency, Context, Dtype, MaxNewTokens, Seed, Temperature, Tokenizer
from perse.commands.terminal import err, say
from perse.data.profiles.views import ProfileAspects, View
from perse.engines.kind import USUAL, Hardware
from perse.errors import BadInput
from perse.secrets import redact

if TYPE_CHECKING:
    from perse.judging.judge import Judge, JudgeSettings


@dataclass(frozen=True, kw_only=True)
class Loading:
    """How a judge is loaded, whoever it is."""

    dtype: Dtype = "bfloat16"
    context: Context = None
    tokenizer: Tokenizer = None
    concurrency: Concurrency = None

    @property
    def of_model(self) -> dict[str, Any]:
        """What answers depend on: all but how many are asked for at once."""
        return {name: value for name, value in vars(self).items() if name != "concurrency"}

    def load(
        self,
        judge: str,
        *,
        trust_remote_code: bool = False,
        writes: bool = False,
        hardware: Hardware = USUAL,
        stacking: Path | bool = True,
    ) -> Judge:
        """The judge of this name; a person sees that it is being loaded, and is told of one that gives no distributions.

        Args:
            writes: it writes texts and judges nothing, so that distributions are not missed.
            hardware: what it takes of this machine.
            stacking: as in `Judge.load`.

        Raises:
            BadInput: what `Judge.load` refuses.
        """
        from perse.judging.judge import Judge

        with err.status(f"loading {escape(redact(judge))}"):
            loaded = Judge.load(
                judge,
                **self.of_model,
                trust_remote_code=trust_remote_code,
                hardware=replace(hardware, concurrency=self.concurrency),
                stacking=False if writes else stacking,
            )
        if loaded.without_distributions and not writes:
            say(f"note: {loaded.without_distributions}")
        return loaded


@dataclass(frozen=True, kw_only=True)
class StackedBy:
    """Whether, and by what, the judge's answers are combined with numbers."""

    stacking: Annotated[
        Path | None,
        typer.Option(
            help="What `perse fit` wrote: combines the judge's distribution with numbers that need no judge.",
            show_default="stacking.json beside the judge, where there is one",
        ),
    ] = None
    no_stacking: Annotated[bool, typer.Option("--no-stacking", help="Leave out a stacking that lies beside the judge.")] = False

    @property
    def given(self) -> Path | bool:
        """As in `Judge.load`.

        Raises:
            BadInput: a stacking and none.
        """
        if self.stacking is not None and self.no_stacking:
            raise BadInput("--stacking and --no-stacking cannot be given together; leave one out")
        return self.stacking or not self.no_stacking


@dataclass(frozen=True, kw_only=True)
class Answering:
    """How a judge answers."""

    temperature: Temperature = 0.8
    max_new_tokens: MaxNewTokens = 600
    seed: Seed = 0

    def settings(self) -> JudgeSettings:
        from perse.judging.judge import JudgeSettings

        return JudgeSettings(**vars(self))


@dataclass(frozen=True, kw_only=True)
class ShownProfiles:
    """How the profiles of a data set are shown."""

    k: Annotated[
        int | None,
        typer.Option(
            "--k", min=0, help="Profile entries to show, at most what the folder keeps.", show_default="the folder's own"
        ),
    ] = None
    order_seed: Annotated[
        int | None, typer.Option(min=0, help="Shuffle every profile by this seed.", show_default="oldest first")
    ] = None
    review_text: Annotated[
        bool,
        typer.Option("--review-text/--no-review-text", help="Whether profiles show what the reader wrote, or scores alone."),
    ] = True
    profile_aspects: Annotated[
        ProfileAspects | None,
        typer.Option(
            help="Pairs: what a profile entry shows, all its preferences or, as in the paper, the asked aspect's alone.",
            show_default="as the judge was trained, where that is known; else all",
        ),
    ] = None

    def view(self, trained: ProfileAspects | None = None) -> View:
        """The view of a judge that was trained with `trained`; None where nobody knows."""
        return View(**(vars(self) | {"profile_aspects": self.profile_aspects or trained or "all"}))
