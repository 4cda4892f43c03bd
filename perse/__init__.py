"""perse: would *this* reader like this text, and what would they say?

    from perse import Judge
    judge = Judge.load("runs/demo")
    judge.ask_one(reviews=[("a plot", "a review", 8), ...], text="a new plot")

Importing perse is cheap and needs no torch; the judge's engine is imported when one is loaded.
"""

from typing import TYPE_CHECKING, Any

from perse.version import __version__

__all__ = ["Judge", "__version__"]

if TYPE_CHECKING:
    from perse.judging.judge import Judge


def __getattr__(name: str) -> Any:
    if name == "Judge":
        from perse.judging.judge import Judge

        return Judge
    raise AttributeError(f"module 'perse' has no attribute '{name}'")
