"""A conversation in the words of a tokenizer's chat template.

A template is a program that comes with a model. The sandbox that transformers renders it in keeps it from touching anything, but
not from going on for ever or filling the memory; nor does a tokenizer's own list of replacements stop by itself. So both are tried in
a child process that has little time and memory (`bounded`), once for every number of turns, and only the text comes back.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from perse.bounded import Exceeded, Failed, Stalled, bounded
from perse.errors import BadInput

LONGEST = 1 << 20
"""Characters of a template, and of what it renders; templates in use have up to 20,000."""
SECONDS = 2
MEGABYTES = 512
DAY = datetime(2024, 7, 26)
"""What a template that asks for the date is told, every day: a judge is asked with the prompt that it was trained with. It is the day that
Llama 3's own templates fall back to."""


def rendered_turns(tokenizer: Any, template: Any, turns: int) -> str:
    """So many turns, the user's first, whose contents are SENTINEL0X, SENTINEL1X and so on.

    Args:
        template: a chat template, or several by name.
    Raises:
        BadInput: it cannot be rendered, or takes too much.
    """
    if isinstance(template, dict):
        template = template.get("default")
    if not isinstance(template, str):
        raise BadInput(
            f"the chat template of {tokenizer.name_or_path} is no text; use an instruct (chat) model whose tokenizer has one"
        )
    return _rendered(tokenizer, template, turns)


@lru_cache(maxsize=32)
def _rendered(tokenizer: Any, template: str, turns: int) -> str:
    name = tokenizer.name_or_path
    if len(template) > LONGEST:
        raise BadInput(
            f"the chat template of {name} has {len(template):,} characters, expected at most {LONGEST:,}; use another"
        )
    said = [{"role": ("user", "assistant")[n % 2], "content": f"SENTINEL{n}X"} for n in range(turns)]

    def render() -> str:
        text = str(tokenizer.apply_chat_template(said, chat_template=template, tokenize=False, strftime_now=DAY.strftime))
        if len(text) > LONGEST:
            raise ValueError(f"{turns} short turns become {len(text):,} characters")
        tokenizer.encode(text, add_special_tokens=False)
        return text

    try:
        return str(bounded(render, seconds=SECONDS, megabytes=MEGABYTES))
    except Failed as error:
        raise BadInput(f"the chat template of {name} cannot be rendered ({error}); use one that can") from None
    except Exceeded as error:
        raise BadInput(f"the chat template of {name} does not come to an end within bounds ({error}); use another") from None
    except Stalled as error:
        raise BadInput(f"the chat template of {name} could not be rendered: {error}") from None
