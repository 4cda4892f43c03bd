"""Checks a tokenizer's files before a library reads them: JSON objects, no bombs, no dice.

A normalizer may replace one letter by many, the next step each of these by many more: six small steps fill any memory, at the
first text that has the letter.
"""

from __future__ import annotations

import math
from collections.abc import Set
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.models.model_files import read_object

MOST = 1000
"""Characters that one may become. SentencePiece replaces one by one, byte fallback one by four, Unicode's own forms one by 18."""
_FILES = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"}


def check_tokenizer_files(folder: Path, named: Set[str]) -> None:
    """Look into those of `named` that are a tokenizer's.

    Raises:
        BadInput: one is no JSON object, makes very long text of short, or splits words at random.
    """
    for name in sorted(named & _FILES):
        said = read_object(folder / name, remedy="fetch or copy it again")
        model = said.get("model")
        if isinstance(model, dict) and model.get("dropout"):
            raise BadInput(
                f"{folder / name} has dropout {shortened(model['dropout'])}, which splits words at random: no prompt would be the same twice; "
                "set it to null"
            )
        for part in ("normalizer", "decoder"):
            times = _growth(said.get(part))
            if times > MOST:
                raise BadInput(
                    f"{folder / name} has a {part} that can make {times:.2g} characters of one, expected at most {MOST}; "
                    "fetch or copy it again"
                )


def _growth(step: Any) -> float:
    """How many characters a step, or all of a sequence of them, can put in the place of one."""
    if not isinstance(step, dict):
        return 1
    if step.get("type") == "Replace":
        return max(1, len(str(step.get("content", ""))))
    steps = [step.get(name) for name in ("normalizers", "decoders")]
    try:
        return math.prod(float(_growth(each)) for some in steps if isinstance(some, list) for each in some)
    except RecursionError:
        return math.inf
