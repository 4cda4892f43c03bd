"""A newcomer's files: 1,504 book reviews and 61 blurbs as people have them, with what goes wrong in such tables.

    python tests/quickstart/messy_files.py FOLDER        writes reviews.csv and texts.csv

Readers have a leniency and a word that they love; the scores follow from both, so that there is something to learn.
"""

from __future__ import annotations

import csv
import datetime
import random
import sys
from pathlib import Path

WORDS = [
    "quiet",
    "river",
    "captain",
    "mystery",
    "winter",
    "letter",
    "garden",
    "machine",
    "lonely",
    "doctor",
    "bridge",
    "war",
    "love",
    "city",
    "storm",
    "island",
    "memory",
    "mother",
    "debt",
    "promise",
    "ghost",
    "horse",
    "secret",
    "school",
    "train",
    "harbour",
    "violin",
    "desert",
    "market",
    "twin",
]
READERS, BOOKS, EACH = 50, 60, 30


def write(folder: Path) -> tuple[Path, Path]:
    """The two files, the same each time."""
    draw = random.Random(5)
    blurbs = {f"Book {number}": " ".join(draw.choices(WORDS, k=40)).capitalize() + "." for number in range(BOOKS)}
    rows: list[list[object]] = []
    for reader in range(READERS):
        loved, leniency = draw.choice(WORDS), draw.gauss(3.3, 0.6)
        for title in draw.sample(sorted(blurbs), EACH):
            stars = min(5, max(1, round(leniency + 1.2 * (loved in blurbs[title]) + draw.gauss(0, 0.7))))
            said = f"I {'loved' if stars > 3 else 'did not care for'} the {loved} in it; " + " ".join(draw.choices(WORDS, k=12))
            day = datetime.date(2019, 1, 1) + datetime.timedelta(days=draw.randrange(1500))
            rows.append([f"user{reader}", title, stars, said, f"{day:%B} {day.day}, {day.year}"])
    for place in draw.sample(range(len(rows)), 18):
        rows[place][2] = ""  # never rated
    rows += [
        ["user1", "Book 3", "five", "great", "n/a"],
        ["", "Book 3", 4, "great", ""],
        ["user2", "Book 99", 4, "Of a book that the blurbs lack.", "May 1, 2020"],
        ["user3", "Book 7", 2, "", "May 2, 2020"],
    ]
    reviews, texts = folder / "reviews.csv", folder / "texts.csv"
    with reviews.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["user_id", "book_title", "stars", "text", "date"], *rows])
    with texts.open("w", newline="", encoding="utf-8-sig") as file:
        csv.writer(file, delimiter=";").writerows([["book_title", "blurb"], *blurbs.items(), ["Book 98", ""]])
    return reviews, texts


if __name__ == "__main__":
    write(Path(sys.argv[1]))
