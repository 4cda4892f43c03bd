"""What plans of prompts are told of the engine: its memory, how it counts tokens, and how fast it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from perse.errors import BadInput

if TYPE_CHECKING:
    from perse.writing.load import Count


@dataclass(frozen=True, kw_only=True)
class Rates:
    """Of the engine that would be asked."""

    cache_tokens: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Tokens of prompts that the engine remembers; vLLM says at its start how many.",
            show_default="all of them",
        ),
    ] = None
    tokenizer: Annotated[
        str | None, typer.Option(help="Counts tokens: a model's folder or name.", show_default="4 characters a token")
    ] = None
    prefill: Annotated[float | None, typer.Option(min=0.001, help="Tokens that the engine reads in a second.")] = None
    decode: Annotated[
        float | None, typer.Option(min=0.001, help="Tokens that the engine writes in a second, all together.")
    ] = None

    def check(self) -> None:
        """Raises:
        BadInput: one of two rates is not given.
        """
        if (self.prefill is None) != (self.decode is None):
            raise BadInput("hours need both rates: give --prefill and --decode")

    def count(self) -> Count | None:
        """What counts the tokens of a text; None: by its characters.

        Raises:
            ModelNotFound: there is no such tokenizer.
        """
        if self.tokenizer is None:
            return None
        from perse.models.finding import find_tokenizer
        from perse.models.opening import tokenizer as opened

        counting = opened(find_tokenizer(self.tokenizer))
        return lambda text: len(counting.encode(text, add_special_tokens=False))
