"""From marks on a sheet to a figure: one look for all plots, once as SVG in the colours of the page, once as PNG on white.

Whoever draws uses the colours below and nothing else; in the SVG each becomes a CSS variable of the page with the colour itself
as fallback, so that the same drawing serves light and dark mode and stands by itself. Text stays text, in the reader's fonts: what
is measured here with DejaVu Sans, a wide one, has room in others. A sheet is as wide as a phone, so that its letters are
readable there and merely larger elsewhere. Bytes depend on what is drawn alone: no date, no random ids.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from perse.drawing.figure import Cell, Figure
from perse.errors import BadInput
from perse.files.path_names import path_name_of
from perse.installing import install

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

WIDTH = 4.8
"""Inches, 346 units of the SVG: the width of a phone."""
DPI = 150
INK, DIM, LINE, PAPER = "#1a1a1a", "#555b66", "#c9ced6", "#ffffff"
_VARIABLES = {INK: "--ink", LINE: "--line", PAPER: "--paper"}
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a6f00")
"""Okabe and Ito's colours, told apart with any colour vision; the seventh is darker than theirs, which vanishes on white."""
BASELINE = DIM
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
HATCHES = ("", "////", "\\\\\\\\", "xxxx", "----", "||||", "++", "..")
DASHES: tuple[tuple[int, tuple[float, ...]], ...] = ((0, ()), (0, (6, 2)), (0, (2, 1.5)), (0, (6, 2, 1.5, 2)), (0, (9, 2)))
_LONGEST_LABEL = 46
_LETTERS = 64  # of a legend, that fit the width; a label's mark and margin take seven
_THEME = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans", "Arial", "Helvetica"],
    "font.size": 9.5,
    "axes.labelsize": 9.5,
    "axes.titlesize": 9.5,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "legend.fontsize": 9,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # a dollar sign in a name is a dollar sign
    "axes.labelcolor": INK,
    "axes.edgecolor": DIM,
    "axes.titlelocation": "left",
    "axes.unicode_minus": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "xtick.color": DIM,
    "ytick.color": DIM,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "svg.fonttype": "none",
    "svg.hashsalt": "perse",
}


@dataclass(frozen=True)
class Style:
    """How one series looks; two series differ by more than their colour."""

    colour: str
    marker: str
    hatch: str
    dash: tuple[int, tuple[float, ...]]


def style(nth: int, *, baseline: bool = False) -> Style:
    """The look of the `nth` judge, or of the `nth` baseline, which is grey and dashed.

    There are seven colours and eight markers and hatches, so that it takes 56 judges until two look alike.
    """
    colour = BASELINE if baseline else SERIES[nth % len(SERIES)]
    dash = DASHES[1 + nth % 4] if baseline else DASHES[nth % len(DASHES)]
    return Style(colour, MARKERS[nth % len(MARKERS)], HATCHES[nth % len(HATCHES)], dash)


def draw(
    name: str,
    paint: Callable[[Sheet], None],
    *,
    height: float,
    title: str,
    alt: str,
    header: Sequence[str],
    rows: Sequence[Sequence[Cell]],
) -> Figure:
    """A figure of what `paint` puts on an empty sheet.

    Args:
        name: of its files; small letters, digits and hyphens.
        paint: gets a matplotlib figure of `WIDTH` by `height` inches, which lays itself out.
        title, alt: as of `Figure`; the title is on the PNG and not on the SVG, which stands under a heading.
        header, rows: the numbers that are drawn.
    Raises:
        BadInput: matplotlib is not installed.
    """
    try:
        from matplotlib import rc_context, rcParamsDefault
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure as Sheet
    except ModuleNotFoundError:
        raise BadInput(f"matplotlib is not installed; it draws the figures: {install('report')}") from None
    heading, svg = textwrap.fill(plain(title), 52), io.StringIO()
    usual = {name: value for name, value in rcParamsDefault.items() if name != "backend"}  # whatever a matplotlibrc says
    with rc_context({**usual, **_THEME}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # the reader of the SVG may have the letter
        sheet = Sheet(figsize=(WIDTH, height), layout="constrained")
        paint(sheet)
        if sheet.axes and (engine := sheet.get_layout_engine()):
            engine.execute(sheet)
        sheet.set_layout_engine("none")  # laid out once for both, without a drawing for its own sake
        FigureCanvasSVG(sheet).print_svg(svg, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
        strip = Sheet(figsize=(WIDTH, 0.12 + 0.19 * (heading.count("\n") + 1)))
        strip.text(0.02, 0.5, heading, va="center", fontsize=10.5, fontweight="bold")
        png = _png(strip, sheet)
    cells = tuple(tuple(row) for row in rows)
    return Figure(name, title, alt, _for_pages(svg.getvalue(), name, plain(alt)), png, tuple(header), cells)


def empty(name: str, *, title: str, reason: str, header: Sequence[str]) -> Figure:
    """A figure of which nothing can be drawn; it says why."""

    def paint(sheet: Sheet) -> None:
        sheet.text(0.5, 0.5, textwrap.fill(plain(reason), 48), ha="center", va="center", color=DIM)

    return draw(name, paint, height=0.9, title=title, alt=f"Nothing to draw: {reason}.", header=header, rows=())


def plain(text: str, longest: int | None = None) -> str:
    """A text from a file as it can be drawn: no control characters, cut in the middle to `longest` characters."""
    shown = "".join(letter if letter.isprintable() else " " for letter in text)
    if longest is None or len(shown) <= longest:
        return shown
    end = (longest - 1) // 2
    return f"{shown[: longest - 1 - end]}…{shown[len(shown) - end :]}"


def file_name(*words: str) -> str:
    """Words as a file name: small ASCII letters, digits and hyphens."""
    return path_name_of("-".join(words).replace(".", "-"))


def panels(sheet: Sheet, titles: Sequence[str], *, columns: int = 1) -> list[Axes]:
    """One plot for each title, with the same axes; a single one has no title."""
    across = min(columns, len(titles))
    down = -(-len(titles) // across)
    grid = sheet.subplots(down, across, squeeze=False, sharex=True, sharey=True)
    axes: list[Axes] = list(grid.ravel())
    for spare in axes[len(titles) :]:
        spare.set_axis_off()
    for axis, title in zip(axes, titles, strict=False):
        if len(titles) > 1:
            axis.set_title(plain(title, 48 if across == 1 else 24))
    for column in range(across):  # the lowest plot of a column carries the ticks, also where the last row is not full
        axes[max(n for n in range(column, len(titles), across))].tick_params(labelbottom=True)
    return axes[: len(titles)]


def say(axis: Axes, words: str) -> None:
    """Words in the middle of a plot in which nothing can be drawn."""
    axis.text(0.5, 0.5, words, transform=axis.transAxes, ha="center", va="center", color=DIM)


def legend_above(sheet: Sheet, handles: Sequence[Artist]) -> None:
    """The legend over all plots, so that none of their marks lie under it."""
    labels = [plain(str(handle.get_label()), _LONGEST_LABEL) for handle in handles]
    columns = _columns(labels)
    sheet.legend(list(handles), labels, loc="outside upper left", ncols=columns, handlelength=1.9, columnspacing=1.2)


def legend_height(labels: Sequence[str]) -> float:
    """Inches that a legend of these labels takes."""
    return 0.1 + 0.2 * -(-len(labels) // _columns(labels))


def _columns(labels: Sequence[str]) -> int:
    """How many labels fit beside each other; a legend fills its first column first, and its first columns with one more where they are not even."""
    for columns in range(len(labels), 1, -1):
        rows, more = divmod(len(labels), columns)
        starts = [column * rows + min(column, more) for column in range(columns + 1)]
        widest = [max(map(len, labels[start:end])) for start, end in pairwise(starts)]
        if sum(min(width, _LONGEST_LABEL) + 7 for width in widest) <= _LETTERS:
            return columns
    return 1


def _png(*sheets: Sheet) -> bytes:
    """Sheets above each other, on white: a title on the plot's own sheet would lie under its legend."""
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    pictures = []
    for sheet in sheets:
        sheet.set_dpi(DPI)
        sheet.set_facecolor("white")
        canvas = FigureCanvasAgg(sheet)
        canvas.draw()
        pictures.append(np.asarray(canvas.buffer_rgba())[:, :, :3])
    out = io.BytesIO()
    Image.fromarray(np.concatenate(pictures)).save(out, format="PNG", dpi=(DPI, DPI))
    return out.getvalue()


def _for_pages(svg: str, name: str, alt: str) -> str:
    """An SVG that can stand in a page among others: variables for colours, ids of its own, no style for the whole page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", svg, count=1, flags=re.DOTALL)
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', svg))
    colours = {**_VARIABLES, **{colour: f"--series-{n}" for n, colour in enumerate(SERIES, start=1)}, DIM: "--dim"}

    def own_id(found: re.Match[str]) -> str:
        return f' id="{name}-{found[1]}"' if found[1] in used else ""

    def variable(found: re.Match[str]) -> str:
        return f"var({colours[found[0]]}, {found[0]})" if found[0] in colours else found[0]

    def tag(found: re.Match[str]) -> str:
        """One tag; what stands between tags are names, which are left as they are."""
        text = re.sub(r' id="([^"]*)"', own_id, found[0])
        text = re.sub(r'(href="#|url\(#)', rf"\g<1>{name}-", text)
        text = re.sub(r' fill="(#[0-9a-f]{6})"', r' style="fill: \1"', text)  # under a hatch, where no style is given
        return re.sub(r"#[0-9a-f]{6}(?=[;\"])", variable, text)

    svg = re.sub(r"<[^>]*>", tag, svg)
    svg = re.sub(r' width="([\d.]+)pt" height="([\d.]+)pt"', r' width="\1" height="\2"', svg, count=1)
    root = f'<svg role="img" aria-label={quoteattr(alt)} style="stroke-linejoin: round; stroke-linecap: butt"'
    return svg.replace("<svg", root, 1)
