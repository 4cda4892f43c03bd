"""How to answer is checked where it is said, not by whichever engine or server meets it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from perse.answering.base import JudgeSettings
from perse.errors import BadInput


@pytest.mark.parametrize(
    ("given", "said"),
    [
        *(({"temperature": odd}, "temperature is") for odd in (-0.1, math.nan, math.inf, "0", None, True)),
        *(({"max_new_tokens": odd}, "max_new_tokens is") for odd in (0, -1, 1.5, "9", None, True)),
        *(({"seed": odd}, "seed is") for odd in (1.5, "x", None, False)),
    ],
)
def test_settings_that_are_none_are_one_sentence(given: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        JudgeSettings(**given)


def test_numbers_of_arrays_will_do() -> None:
    assert JudgeSettings(np.float32(0.5), np.int64(9), np.int32(-3)).max_new_tokens == 9  # type: ignore[arg-type]
