"""A figure and the numbers it was drawn from: saved as PNG, SVG and CSV side by side, and set into the report as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from perse.files.disk import writing
from perse.files.own_files import write_own_bytes
from perse.files.path_names import PathName
from perse.formats.csv_cells import Cell as Cell
from perse.formats.csv_cells import csv_text
from perse.secrets import without_keys


@dataclass(frozen=True)
class Figure:
    """One drawn plot.

    `name` is its file name without ending; `alt` says in words what it shows, for those who cannot see it; `svg` carries the
    colours of the page as CSS variables; `rows` are the numbers, one tuple per line of the CSV, None an empty cell.
    """

    name: str
    title: str
    alt: str
    svg: str
    png: bytes
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        PathName(self.name, what="a figure's name")

    @property
    def csv(self) -> str:
        """The numbers, with a header line; a text that a spreadsheet would compute begins with an apostrophe (see `csv_cells`)."""
        return csv_text(self.header, self.rows)

    @property
    def files(self) -> dict[str, bytes]:
        """What is written of it, by file name."""
        texts = {f"{self.name}.svg": self.svg, f"{self.name}.csv": self.csv}
        return {name: without_keys(text).encode() for name, text in texts.items()} | {f"{self.name}.png": self.png}


def save_figure(figure: Figure, folder: Path) -> None:
    """Write NAME.svg, NAME.png and NAME.csv into `folder`, which is made if absent; what is not perse's there is kept, as the list in the
    folder above tells."""
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    for name, content in figure.files.items():
        write_own_bytes(folder / name, content, top=folder.parent)
