"""Names and content of the files that the authors of KGDS released: running numbers, samples, JSON."""

from __future__ import annotations

import re
from pathlib import Path

from perse.errors import BadInput
from perse.kgds.benchmark import Benchmark

AGAIN = "download it again"
"""What helps where a file is damaged."""


def numbered(folder: Path, pattern: str = "*.json") -> list[tuple[int, Path]]:
    """The files of `folder` by the number before the first dot of their names, as numbers: 10 comes after 9.

    Raises:
        BadInput: a name that does not begin with a number.
    """
    found = []
    for path in sorted(folder.glob(pattern)):
        if path.name.startswith("."):  # what file systems leave in archives
            continue
        number = path.name.split(".", maxsplit=1)[0]
        if not (number.isascii() and number.isdigit()):
            raise BadInput(f"{path}: the name begins with '{number}'; expected a number before the first dot")
        found.append((int(number), path))
    return sorted(found)


def by_sample(folder: Path, marker: str, *, benchmark: Benchmark) -> dict[int, list[Path]]:
    """The files of each sample, in the order of their running numbers.

    Args:
        marker: the sample's number stands in a name between this and the next `_`.
    Raises:
        BadInput: a name without such a number, or with one that is no sample.
    """
    found: dict[int, list[Path]] = {}
    for _, path in numbered(folder):
        number = sample_of(path, marker)
        if number is None:
            raise BadInput(f"{path}: the name tells no sample; expected its number between '{marker}' and '_'")
        check_sample(number, benchmark, path=path)
        found.setdefault(number, []).append(path)
    return found


def sample_of(path: Path, marker: str) -> int | None:
    """The sample's number in a file's name, between `marker` and the next `_`; None if there is none."""
    match = re.search(rf"{re.escape(marker)}([0-9]+)_", path.name)
    return int(match[1]) if match else None


def check_sample(number: int, benchmark: Benchmark, *, path: Path) -> None:
    """Refuse a sample that the benchmark does not have."""
    if number not in benchmark.samples:
        raise BadInput(
            f"{path}: there is no sample {number} in {benchmark.path}, which has {len(benchmark.samples)}; give the benchmark that the "
            "files were made from"
        )
