"""A sheet to draw on, written as SVG by hand: the same text whatever is installed, so that a test can compare it.

It has a ground of its own, which makes it readable on light and on dark pages.
"""

from __future__ import annotations

from html import escape
from textwrap import wrap

PAPER, INK, DIM, LINE = "#fbfaf7", "#1d2430", "#5b6472", "#c9ccd3"
SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"

WIDEST = 0.53
"""Mean width of a letter in sizes of its font, in the wider of the fonts above: lines are broken so that none runs over."""


class Sheet:
    def __init__(self, width: int, *, says: str) -> None:
        """`says`: what it shows, in words, for those who cannot see it."""
        self._width = width
        self._says = says
        self._parts: list[str] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        *,
        fill: str = "none",
        edge: str = LINE,
        dashed: bool = False,
        radius: float = 6,
    ) -> None:
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius:g}" '
            f'fill="{fill}" stroke="{edge}"{dashes}/>'
        )

    def path(self, points: str, *, fill: str = "none", edge: str = LINE, thick: float = 1) -> None:
        self._parts.append(f'<path d="{points}" fill="{fill}" stroke="{edge}" stroke-width="{thick:g}"/>')

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 13,
        colour: str = INK,
        bold: bool = False,
        mono: bool = False,
        italic: bool = False,
        at: str = "start",
    ) -> None:
        style = f'font-family="{MONO if mono else SANS}" font-size="{size:g}" fill="{colour}"'
        style += ' font-weight="600"' if bold else ""
        style += ' font-style="italic"' if italic else ""
        style += f' text-anchor="{at}"' if at != "start" else ""
        self._parts.append(f'<text x="{x:g}" y="{y:g}" {style}>{escape(words, quote=False)}</text>')

    def paragraph(
        self, x: float, y: float, width: float, words: str, *, size: float = 13, colour: str = INK, italic: bool = False
    ) -> float:
        """Lines no wider than `width`, the first at `y`; where the next would stand."""
        for line in broken(words, width, size):
            self.text(x, y, line, size=size, colour=colour, italic=italic)
            y += size * 1.4
        return y

    def arrow(self, x: float, y: float, to_x: float) -> None:
        self.path(f"M{x:g} {y:g}H{to_x - 6:g}", edge=DIM, thick=2)
        self.path(f"M{to_x - 8:g} {y - 6:g}L{to_x:g} {y:g}L{to_x - 8:g} {y + 6:g}Z", fill=DIM, edge=DIM)

    def svg(self, height: float) -> str:
        """The picture, as high as was drawn on."""
        size = f"{self._width} {height:g}"
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{self._width}" role="img">'
        title = f"<title>{escape(self._says, quote=False)}</title>"
        ground = f'<rect width="{self._width}" height="{height:g}" rx="10" fill="{PAPER}"/>'
        return "\n".join([head, title, ground, *self._parts, "</svg>"]) + "\n"


def broken(words: str, width: float, size: float) -> list[str]:
    return wrap(words, int(width / (size * WIDEST)))
