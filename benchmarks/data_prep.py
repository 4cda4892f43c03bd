"""Data preparation at size: wall time and peak memory of building and loading a data set, and names replaced per second.

    OMP_NUM_THREADS=1 python benchmarks/data_prep.py --reviews 1000000 --reviewers 100000 --words 100

The corpus is invented from a seed: every reviewer reviews as many items, drawn at random, in words of a made-up vocabulary, so
that nothing compresses or repeats as well as real texts do (real texts make smaller files). Build and load each run in a
process of their own, whose peak memory the operating system tells. Names are replaced in this process, in texts of the same
words, each with a mapping of its own as in anonymizing, so that making a Renamer of the mapping counts; beside it stand the
replacing alone and all that anonymizing does with a proposed mapping (check it, complete it, replace).
"""

from __future__ import annotations

import json
import os
import platform
import random
import statistics
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

_BUILD = "from perse.commands.app import main; main()"
_PLANTED = ((100, 10), (700, 25))  # words of a text (650 bytes and 4.5 kB), and names in it
_PLANTED_BYTES = 13_000_000  # of text of each kind
_LOAD = (
    "import sys; from pathlib import Path; from perse.data.dataset.folder import load_folder; load_folder(Path(sys.argv[1]))"
)


@dataclass(frozen=True)
class Cost:
    """What a child process took."""

    seconds: float
    cpu_seconds: float
    """Of all its threads."""
    peak_bytes: int
    """Resident."""


def main(
    reviews: Annotated[int, typer.Option(help="How many reviews.")] = 100_000,
    reviewers: Annotated[int, typer.Option(help="By how many reviewers.")] = 10_000,
    items: Annotated[int, typer.Option(help="Of how many items.")] = 20_000,
    words: Annotated[int, typer.Option(help="Words of a review and of an item's text.")] = 100,
    repeats: Annotated[int, typer.Option(help="How often the names are replaced; the median counts.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the corpus.")] = 0,
    build: Annotated[list[str] | None, typer.Option(help="One more argument for perse data pointwise; repeat it.")] = None,
    small: Annotated[bool, typer.Option("--small", help="Only see that it runs.")] = False,
) -> None:
    """Prints how long it took and how much memory, on what."""
    if small:
        reviews, reviewers, items, words, repeats = 300, 30, 60, 10, 1
    each = reviews // reviewers
    if each < 6 or each > items:
        sys.exit(
            f"{reviews} reviews by {reviewers} reviewers of {items} items: expected 6 or more for each, of different items"
        )
    vocabulary = _vocabulary(seed)
    with tempfile.TemporaryDirectory() as folder:
        raw, texts = Path(folder), _texts(items, words, vocabulary, seed)
        _write(raw / "items.jsonl", ({"item_id": f"m{n}", "text": text} for n, text in enumerate(texts)))
        _write(raw / "reviews.jsonl", _reviews(reviewers, each, items, words, vocabulary, seed))
        size = sum((raw / name).stat().st_size for name in ("items.jsonl", "reviews.jsonl"))
        given = ["--reviews", raw / "reviews.jsonl", "--items", raw / "items.jsonl", "--out", raw / "set", *(build or [])]
        costs = {"build": _run(_BUILD, "data", "pointwise", *map(str, given)), "load": _run(_LOAD, str(raw / "set"))}
        written = sum(file.stat().st_size for file in (raw / "set").iterdir())
    _show(costs, reviewers * each, what=f"{words} words each, by {reviewers:,} reviewers of {items:,} items, seed {seed}")
    console = Console(width=140)
    console.print(f"read {size / 1e6:,.0f} MB of JSON lines, wrote {written / 1e6:,.0f} MB; once each")
    console.print(_names(vocabulary, repeats=repeats, seed=seed, size_of_each=100_000 if small else _PLANTED_BYTES))
    console.print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}", highlight=False)


def _vocabulary(seed: int) -> list[str]:
    made = random.Random(f"{seed} vocabulary")
    return ["".join(made.choices(string.ascii_lowercase, k=made.randint(2, 9))) for _ in range(20_000)]


def _texts(count: int, words: int, vocabulary: list[str], seed: int) -> list[str]:
    made = random.Random(f"{seed} items")
    return [" ".join(made.choices(vocabulary, k=words)) for _ in range(count)]


def _reviews(
    reviewers: int, each: int, items: int, words: int, vocabulary: list[str], seed: int
) -> Iterator[dict[str, object]]:
    made = random.Random(f"{seed} reviews")
    for reviewer in range(reviewers):
        for item in made.sample(range(items), each):
            yield {
                "reviewer_id": f"user{reviewer}",
                "item_id": f"m{item}",
                "score": made.randint(1, 10),
                "review": " ".join(made.choices(vocabulary, k=words)),
                "date": f"20{made.randint(10, 23)}-{made.randint(1, 12):02d}-{made.randint(1, 28):02d}",
            }


def _write(path: Path, rows: Iterator[dict[str, object]]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


def _run(program: str, *arguments: str) -> Cost:
    """Runs Python code in a process of its own. It must succeed."""
    begun = time.perf_counter()
    child = subprocess.Popen([sys.executable, "-c", program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    said = child.stderr.read().decode()
    # wait4 tells the peak of this child; RUSAGE_CHILDREN would tell the largest of all so far.
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        sys.exit(f"{' '.join(arguments)}: exit status {child.returncode}\n{said}")
    unit = 1 if sys.platform == "darwin" else 1024
    return Cost(time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * unit)


def _names(vocabulary: list[str], *, repeats: int, seed: int, size_of_each: int = _PLANTED_BYTES) -> Table:
    """How fast names are replaced on one core, medians of `repeats`."""
    from perse.data.names.names import Renamer, check_mapping, complete

    title = f"names replaced, a mapping for each text, CPU time of one core, median of {repeats}"
    table = Table("texts", "names each", title=title, title_justify="left")
    for column in ("MB/s", "MB/s, Renamer made before", "check, complete, replace: ms a text"):
        table.add_column(column, justify="right")
    for words, names in _PLANTED:
        planted = _planted(words, names, vocabulary, seed=seed, of_bytes=size_of_each)
        size = sum(len(text) for _, text in planted) / 1e6
        both, alone, all_steps = [], [], []
        for _ in range(repeats):
            begun = time.process_time()
            renamers = [Renamer(mapping) for mapping, _ in planted]
            made = time.process_time()
            changed = sum(renamer.replace(text) != text for renamer, (_, text) in zip(renamers, planted, strict=True))
            both.append(time.process_time() - begun)
            alone.append(time.process_time() - made)
            assert changed == len(planted), (changed, len(planted))
            few = planted[: len(planted) // 10]
            begun = time.process_time()
            for mapping, text in few:
                check_mapping(mapping, text)
                Renamer(complete(mapping)).replace(text)
            all_steps.append((time.process_time() - begun) / len(few) * 1e3)
        rates = (f"{size / statistics.median(both):.1f}", f"{size / statistics.median(alone):.1f}")
        what = f"{len(planted):,} of {size / len(planted) * 1e6:,.0f} bytes"
        table.add_row(what, str(names), *rates, f"{statistics.median(all_steps):.2f}")
    return table


def _planted(words: int, names: int, vocabulary: list[str], *, seed: int, of_bytes: int) -> list[tuple[dict[str, str], str]]:
    """Texts with names, each with its mapping; every second name is of two words."""
    made = random.Random(f"{seed} names")
    planted: list[tuple[dict[str, str], str]] = []
    for text in _texts(of_bytes // (words * 13 // 2), words, vocabulary, seed):
        said = text.split(" ")
        mapping: dict[str, str] = {}
        for number, place in enumerate(made.sample(range(0, words - 1, 2), names)):
            name = said[place : place + 1 + number % 2]
            said[place : place + len(name)] = [word.capitalize() for word in name]
            mapping[" ".join(said[place : place + len(name)])] = f"Person{number}" + f" Family{number}" * (number % 2)
        planted.append((mapping, " ".join(said)))
    return planted


def _show(costs: dict[str, Cost], reviews: int, *, what: str) -> None:
    table = Table(title=f"{reviews:,} reviews of {what}", title_justify="left")
    for column in ("", "wall s", "CPU s", "peak GB", "reviews/s (wall)"):
        table.add_column(column, justify="left" if not column else "right")
    for name, cost in costs.items():
        rate = f"{reviews / cost.seconds:,.0f}"
        table.add_row(name, f"{cost.seconds:.1f}", f"{cost.cpu_seconds:.1f}", f"{cost.peak_bytes / 1e9:.2f}", rate)
    Console(width=140).print(table)


if __name__ == "__main__":
    typer.run(main)
