"""perse: would *this* reader like this text, and what would they say?

    from perse import Judge
    judge = Judge.load("runs/demo")
    judge.ask_one(reviews=[("a plot", "a review", 8), ...], text="a new plot")
    judge.score(reviews, texts)        # data frames, dicts or tuples: every reader about every text

Importing perse is cheap and needs no torch; the judge's engine is imported when one is loaded.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from perse.version import __version__

__all__ = ["BadInput", "Judge", "JudgeSettings", "Judgement", "Judgements", "Status", "__version__"]

if TYPE_CHECKING:
    from perse.answering.base import JudgeSettings
    from perse.errors import BadInput
    from perse.judgement import Judgement, Status
    from perse.judging.judge import Judge
    from perse.judging.judged import Judgements

_HOMES = {
    "BadInput": "perse.errors",
    "Judge": "perse.judging.judge",
    "JudgeSettings": "perse.answering.base",
    "Judgement": "perse.judgement",
    "Judgements": "perse.judging.judged",
    "Status": "perse.judgement",
}
"""Where each name is, which is imported when it is first asked for."""


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'perse' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
