"""The map of roles: where their embeddings lie, in the two directions in which they differ most (PCA), before and after clustering.

Of one document each role has a number and its name below; of several all roles are points. Distances on the map are less than those that are clustered: two
directions of hundreds, and the axes say how much of the variance they show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perse.drawing.figure import Figure
from perse.drawing.marks import INK, LINE, PAPER, Style, draw, empty, legend_above, legend_height, panels, plain, style
from perse.drpe.clustering import Embed, Vectors
from perse.drpe.diversity import OfDocument
from perse.drpe.roles import Role

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

NAME = "roles-map"
_TITLE = "Roles before and after clustering"
_HEADER = ("document", "asked by", "role", "votes", "first direction", "second direction")
_LOOKS: dict[str, tuple[str, Style]] = {
    "coarse": ("by occupation and intent", style(0)),
    "fine": ("by what they know", style(1)),
    "static": ("static", style(3, baseline=True)),
}
_PANEL, _LINE = 2.5, 0.2  # inches
_NAME = 40
_LETTERS = 62


@dataclass(frozen=True)
class _Placed:
    """A role on the map; static ones, which are the same for all documents of a kind, stand once."""

    document: str
    role: Role
    votes: bool
    place: tuple[float, float]


def roles_map(found: Sequence[OfDocument], embed: Embed) -> Figure:
    """Every role of these documents.

    Raises:
        BadInput: matplotlib is not installed.
    """
    roles: list[tuple[str, Role, bool]] = []
    for one in found:
        shown = {role.text for _, role, _ in roles if role.source == "static"}
        pairs = zip(one.roles, one.kept, strict=True)
        roles += [(one.id, role, votes) for role, votes in pairs if role.source != "static" or role.text not in shown]
    if len(roles) < 3:
        return empty(NAME, title=_TITLE, reason="fewer than three roles", header=_HEADER)
    places, shares = principal(embed([role.text for _, role, _ in roles]))
    placed = [
        _Placed(document, role, votes, (float(x), float(y)))
        for (document, role, votes), (x, y) in zip(roles, places, strict=True)
    ]
    alone = len(found) == 1
    voters = [one for one in placed if one.votes]
    titles = [f"before: {len(placed)} roles, invented and static", f"after: the {len(voters)} who vote"]
    sources = [source for source in _LOOKS if any(one.role.source == source for one in placed)]

    def paint(sheet: Sheet) -> None:
        from matplotlib.lines import Line2D

        axes = panels(sheet, titles)
        for axis, shown in zip(axes, (placed, voters), strict=True):
            _points(axis, shown, small=len(placed) > 60)
            if alone:
                _numbers(axis, placed, shown)
            axis.set_ylabel(f"second direction, {shares[1]:.0%}")
            axis.grid(color=LINE)
        _limits(axes[0], places)
        axes[-1].set_xlabel(f"first direction, {shares[0]:.0%} of the variance" + (_list(placed) if alone else ""), loc="left")
        looks = [_LOOKS[source] for source in sources]
        legend_above(
            sheet,
            [
                Line2D([], [], label=name, marker=look.marker, color=look.colour, linestyle="none", markersize=6)
                for name, look in looks
            ],
        )

    height = 2 * _PANEL + legend_height([_LOOKS[source][0] for source in sources]) + (_LINE * (len(placed) + 1) if alone else 0)
    return draw(
        NAME,
        paint,
        height=height,
        title=_TITLE,
        alt=f"{_TITLE}: {len(placed)} roles of {len(found)} document{'' if alone else 's'} as points, {len(voters)} of them kept.",
        header=_HEADER,
        rows=[
            (one.document, one.role.source, one.role.text, "yes" if one.votes else "no", *(round(x, 4) for x in one.place))
            for one in placed
        ],
    )


def principal(vectors: Vectors) -> tuple[Vectors, tuple[float, float]]:
    """The two principal components, (n, 2), and the shares of the variance that they have. Directions point to the side of their largest entry.

    Args:
        vectors: (n, d), n and d at least 2.
    """
    centred = vectors - vectors.mean(axis=0)
    left, spread, right = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(right[np.arange(2), np.abs(right[:2]).argmax(axis=1)])
    signs[signs == 0] = 1
    places = np.round(left[:, :2] * spread[:2] * signs, 6)  # so that the last bits draw nothing else on another machine
    total = float((spread**2).sum()) or 1.0
    return places, (float(spread[0] ** 2) / total, float(spread[1] ** 2) / total)


def _points(axis: Axes, shown: Sequence[_Placed], *, small: bool) -> None:
    for source, (_, look) in _LOOKS.items():
        of_one = [one.place for one in shown if one.role.source == source]
        if of_one:
            xs, ys = zip(*of_one, strict=True)
            tiny = small and source != "static"
            axis.plot(
                xs, ys, look.marker, color=look.colour, markersize=3.5 if tiny else 6.5, markeredgecolor=PAPER,
                markeredgewidth=0.4 if tiny else 0.7, linestyle="none", zorder=3 if source == "static" else 2,
            )  # fmt: skip


def _numbers(axis: Axes, placed: Sequence[_Placed], shown: Sequence[_Placed]) -> None:
    """The number of each role to its right, or to its left where another mark is in the way."""
    wide, tall = np.ptp(np.array([one.place for one in placed]), axis=0)
    for one in shown:
        x, y = one.place
        crowded = any(0 < other.place[0] - x < 0.09 * wide and abs(other.place[1] - y) < 0.1 * tall for other in shown)
        axis.annotate(
            str(placed.index(one) + 1), one.place, xytext=(-5 if crowded else 5, 3), textcoords="offset points",
            ha="right" if crowded else "left", fontsize=8.5, color=INK, zorder=4,
        )  # fmt: skip


def _limits(axis: Axes, places: Vectors) -> None:
    """Room for the marks and their numbers; both panels share it."""
    (left, low), (right, high) = places.min(axis=0), places.max(axis=0)
    wide, tall = max(right - left, 0.02), max(high - low, 0.02)
    axis.set_xlim(left - 0.06 * wide, right + 0.1 * wide)
    axis.set_ylim(low - 0.12 * tall, high + 0.16 * tall)


def _list(placed: Sequence[_Placed]) -> str:
    """The names of numbered roles, a line each."""
    lines = [
        f"{at:>2}  {plain(one.role.type, _NAME)}{'' if one.votes else ', not kept'}" for at, one in enumerate(placed, start=1)
    ]
    return "\n\n" + "\n".join(plain(line, _LETTERS) for line in lines)
