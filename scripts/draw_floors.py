"""Draws the floors of the house from the contract that keeps them: `[tool.importlinter]` in pyproject.toml.

A room is a folder of perse/, and its words are the heading of its page, docs/rooms/NAME.md; what stands beside the rooms of a
floor is a single module. A room in brackets in the contract is one to come.

    python scripts/draw_floors.py        writes docs/floors.svg
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from sheet import DIM, LINE, Sheet, broken

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "floors.svg"

WIDTH, MARGIN, GAP = 880, 40, 8
ROOM, WALL = "#dcebf7", "#4d7fa8"
MODULE = "#f1efe8"
WORDY = 2.8
ROOF, TILE = "#b5543c", "#8f3f2b"


@dataclass(frozen=True)
class Room:
    name: str
    to_come: bool = False

    @property
    def page(self) -> Path:
        return ROOT / "docs" / "rooms" / f"{self.name}.md"

    @property
    def folder(self) -> bool:
        return (ROOT / "perse" / self.name).is_dir()

    @property
    def idea(self) -> str:
        """What its page says in the heading; nothing of a single module."""
        if not self.page.is_file():
            return ""
        heading = self.page.read_text(encoding="utf-8").partition("\n")[0]
        return heading.partition(": ")[2].replace("`", "")


def floors() -> list[list[Room]]:
    """From the roof down. Raises StopIteration where there is no contract of layers."""
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    contract = next(one for one in tool["importlinter"]["contracts"] if one["type"] == "layers")
    return [[_room(name) for name in re.split(r"\s*[:|]\s*", layer)] for layer in contract["layers"]]


def _room(name: str) -> Room:
    bare = name.strip("()")
    return Room(bare, to_come=bare != name and not (ROOT / "perse" / bare).exists())


def drawing() -> str:
    sheet = Sheet(WIDTH, says="The floors of perse: each room may use what is drawn below it, and nothing above.")
    y = 92.0
    left, inside = MARGIN + 12, WIDTH - 2 * MARGIN - 24
    sheet.path(f"M{MARGIN - 22} {y}L{WIDTH / 2:g} 18L{WIDTH - MARGIN + 22} {y}Z", fill=ROOF, edge=TILE)
    sheet.text(WIDTH / 2, 62, "perse", size=20, colour="#ffffff", bold=True, at="middle")
    sheet.text(WIDTH / 2, 82, "a room uses what is below it and nothing above", size=12, colour="#ffffff", at="middle")
    body = []
    y += 10
    for floor in floors():
        high = _height(floor, inside)
        body.append((y, high, floor))
        y += high + GAP
    sheet.box(MARGIN, 92, WIDTH - 2 * MARGIN, y - 92 + 4, fill="#ffffff", edge=WALL, radius=0)
    for top, high, floor in body:
        _draw(sheet, floor, left, top, inside, high)
    y += 4
    sheet.path(f"M{MARGIN - 28} {y + 1:g}H{WIDTH - MARGIN + 28}", edge="#6d7a55", thick=4)
    return sheet.svg(_legend(sheet, y + 28) + 14)


def _widths(floor: list[Room], inside: float) -> list[float]:
    """A room that has words gets more of a floor than a module that has none."""
    weights = [WORDY if room.idea else 1 for room in floor]
    free = inside - GAP * (len(floor) - 1)
    return [free * weight / sum(weights) for weight in weights]


def _beside(floor: list[Room]) -> bool:
    """Words beside the name where a room has the floor to itself, else below it."""
    return len(floor) == 1


def _height(floor: list[Room], inside: float) -> float:
    if _beside(floor) or not any(room.idea for room in floor):
        return 30
    most = max(len(broken(room.idea, width - 24, 11.5)) for room, width in zip(floor, _widths(floor, inside), strict=True))
    return 28 + 16.1 * most


def _draw(sheet: Sheet, floor: list[Room], x: float, y: float, inside: float, high: float) -> None:
    for room, width in zip(floor, _widths(floor, inside), strict=True):
        fill, edge = (ROOM, WALL) if room.folder else ("none" if room.to_come else MODULE, LINE)
        sheet.box(x, y, width, high, fill=fill, edge=edge, dashed=room.to_come)
        if not room.idea:
            sheet.text(x + width / 2, y + high / 2 + 4, room.name, size=12, mono=True, colour=DIM, at="middle")
        else:
            sheet.text(x + 12, y + 20, room.name, mono=True, bold=True)
            if _beside(floor):
                sheet.text(x + 124, y + 20, room.idea, size=12.5)
            else:
                sheet.paragraph(x + 12, y + 37, width - 24, room.idea, size=11.5)
        x += width + GAP


def _legend(sheet: Sheet, y: float) -> float:
    x = float(MARGIN)
    for fill, edge, dashed, words in (
        (ROOM, WALL, False, "a room: a folder of perse/, with a page in docs/rooms"),
        (MODULE, LINE, False, "a single module"),
        ("none", LINE, True, "to come"),
    ):
        sheet.box(x, y - 11, 22, 14, fill=fill, edge=edge, dashed=dashed, radius=3)
        sheet.text(x + 30, y, words, size=12, colour=DIM)
        x += 60 + len(words) * 6.6
    return y


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(f"written: {PICTURE.relative_to(ROOT)}")
