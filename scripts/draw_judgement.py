"""Draws one judgement, from a reader's reviews to what is predicted: the last step of `make demo`, as docs/demo.md shows it.

The reviews and the new text are those of the sample corpus; score, probabilities and review are read from the page, so that the
picture says what was printed and nothing else.

    python scripts/draw_judgement.py        writes docs/one-judgement.svg
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from sheet import DIM, INK, LINE, Sheet, broken

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "one-judgement.svg"
ASKED = ROOT / "perse" / "samples" / "ask"

WIDTH, TOP = 880, 62
LEFT, CARD = 24, 416
RIGHT, ANSWER = 604, 252
BAR, BEST = "#4d7fa8", "#b5543c"


@dataclass(frozen=True)
class Judgement:
    label: str
    expected: str
    review: str
    probabilities: dict[str, float]


def judgement() -> Judgement:
    """What `perse ask` printed. Raises SystemExit where the page no longer shows it."""
    page = (ROOT / "docs" / "demo.md").read_text(encoding="utf-8")
    asked = page[page.index("perse ask ") :]
    score = re.search(r"expected ([\d.]+) of \d+, likeliest (\d+)", asked)
    if score is None:
        raise SystemExit("docs/demo.md shows no answer of perse ask")
    return Judgement(
        score[2],
        score[1],
        " ".join(re.findall(r"^│ (.*?) *│$", asked, re.M)),
        {label: float(share) for label, share in re.findall(r"^ ?(\d+)  (0\.\d+) #", asked, re.M)},
    )


def drawing() -> str:
    said = judgement()
    sheet = Sheet(
        WIDTH, says="Three reviews of one reader and a new text go to the judge, which predicts the reader's score and review."
    )
    sheet.text(LEFT, 38, "What one reader wrote before", size=15, bold=True)
    y = float(TOP)
    for line in (ASKED / "reviews.jsonl").read_text(encoding="utf-8").splitlines():
        y = _review(sheet, y, **json.loads(line)) + 10
    y += 26
    sheet.text(LEFT, y, "A new text", size=15, bold=True)
    low = _new(sheet, y + 14, (ASKED / "plot.txt").read_text(encoding="utf-8").strip())
    middle = (TOP + low) / 2
    sheet.arrow(LEFT + CARD + 8, middle, 472)
    sheet.box(476, middle - 30, 90, 60, fill=INK, edge=INK)
    sheet.text(521, middle - 2, "judge", size=16, colour="#ffffff", bold=True, at="middle")
    sheet.text(521, middle + 17, "a 135M Llama", size=10.5, colour="#d7dbe2", at="middle")
    sheet.arrow(570, middle, RIGHT - 8)
    _answer(sheet, said, middle)
    return sheet.svg(low + 22)


def _review(sheet: Sheet, y: float, text: str, review: str, score: int) -> float:
    about, wrote = _cut(text, 1, 11.5), broken(f"“{review}”", CARD - 84, 12.5)
    high = 16 + 17 + 17.5 * len(wrote) + 8
    sheet.box(LEFT, y, CARD, high, fill="#ffffff")
    sheet.box(LEFT + 12, y + 14, 40, 34, fill="#e4edf5", edge="#e4edf5")
    sheet.text(LEFT + 32, y + 37, str(score), size=17, bold=True, at="middle")
    sheet.text(LEFT + 64, y + 22, about, size=11.5, colour=DIM)
    sheet.paragraph(LEFT + 64, y + 41, CARD - 84, f"“{review}”", size=12.5, italic=True)
    return y + high


def _new(sheet: Sheet, y: float, text: str) -> float:
    lines = broken(text, CARD - 28, 12.5)
    sheet.box(LEFT, y, CARD, 20 + 17.5 * len(lines), fill="#ffffff")
    sheet.paragraph(LEFT + 14, y + 23, CARD - 28, text, size=12.5)
    return y + 20 + 17.5 * len(lines)


def _cut(text: str, lines: int, size: float) -> str:
    """The beginning, as a reader of the picture needs no more to know which text it was."""
    kept = broken(text, CARD - 100, size)
    return " ".join(kept[:lines]).rstrip(" .,") + ("…" if len(kept) > lines else "")


def _answer(sheet: Sheet, said: Judgement, middle: float) -> None:
    by = "by the embedded model after the 26 training steps of make demo"
    wide = ANSWER - 32
    written = 17.5 * len(broken(f"“{said.review}”", wide, 12.5))
    high = 74 + 20 * len(said.probabilities) + 22 + written + 10 + 15.4 * len(broken(by, wide, 11))
    top = middle - high / 2
    sheet.text(RIGHT, top - 14, "What they would say of it", size=15, bold=True)
    sheet.box(RIGHT, top, ANSWER, high, fill="#ffffff")
    x, y = RIGHT + 16, top + 28
    sheet.text(x, y, f"expected {said.expected}, likeliest {said.label}", size=15, bold=True)
    sheet.text(x, y + 20, "the exact probability of each score:", size=11.5, colour=DIM)
    y += 46
    most = max(said.probabilities.values())
    for label, share in said.probabilities.items():
        sheet.text(x + 16, y, label, size=12, mono=True, at="end")
        sheet.box(x + 26, y - 11, 150 * share / most, 14, fill=BEST if label == said.label else BAR, edge="none", radius=2)
        sheet.text(x + 34 + 150 * share / most, y, f"{share:.2f}", size=11.5, colour=DIM)
        y += 20
    sheet.path(f"M{x} {y - 2:g}H{RIGHT + ANSWER - 16}", edge=LINE)
    y = sheet.paragraph(x, y + 22, wide, f"“{said.review}”", size=12.5, italic=True)
    sheet.paragraph(x, y + 10, wide, by, size=11, colour=DIM)


if __name__ == "__main__":
    PICTURE.write_text(drawing(), encoding="utf-8")
    print(f"written: {PICTURE.relative_to(ROOT)}")
