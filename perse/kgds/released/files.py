"""Names and content of the files that the authors of KGDS released: running numbers, samples, JSON.

What they read is `*result.json`, in the order of the number before the first dot. Of a verification's name only the part between a
marker and the next `_` matters: files that have it in common are about one summary. Mostly it is the sample's number; where it is
not, the groups are matched with the summaries in their order, as the authors' script always does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from perse.errors import BadInput
from perse.kgds.benchmark import Benchmark

AGAIN = "download it again"
"""What helps where a file is damaged."""


class WrongBenchmark(BadInput):
    """Files about samples that the benchmark does not have: no single model's fault."""


@dataclass(frozen=True)
class Grouped:
    """A folder of verifications by sample.

    `names`: the sample that a part of a name stands for. `in_order`: whether it is no sample's number, so that groups were matched in order.
    """

    files: Mapping[int, list[Path]]
    names: Mapping[str, int] = field(default_factory=dict)
    in_order: bool = False


def numbered(folder: Path) -> list[tuple[int, Path]]:
    """The results in `folder` by the number before the first dot of their names, as numbers: 10 comes after 9.

    Raises:
        BadInput: there are none, or a name does not begin with a number.
    """
    found = []
    for path in sorted(folder.glob("*result.json")):
        if path.name.startswith("."):  # what file systems leave in archives
            continue
        number = path.name.split(".", maxsplit=1)[0]
        if not (number.isascii() and number.isdigit()):
            raise BadInput(f"{path}: the name begins with '{number}'; expected a number before the first dot")
        found.append((int(number), path))
    if not found:
        raise BadInput(f"{folder} has no files *result.json; {AGAIN}")
    return sorted(found)


def by_sample(folder: Path, marker: str, *, benchmark: Benchmark, summarized: Collection[int] | None) -> Grouped:
    """The files of each sample, in the order of their running numbers.

    Args:
        marker: what tells summaries apart stands in a name between this and the next `_`.
        summarized: the samples that have a summary, where summaries were released.
    Raises:
        BadInput: a name without such a part, or names that can be matched with no samples.
    """
    groups: dict[str, list[Path]] = {}
    for _, path in numbered(folder):
        key = part_of(path, marker)
        if key is None:
            raise BadInput(f"{path}: the name tells no sample; expected its number between '{marker}' and '_'")
        groups.setdefault(key, []).append(path)
    numbers = {key: int(key) for key in groups if key.isascii() and key.isdigit()}
    wanted = set(benchmark.samples if summarized is None else summarized)
    as_many = summarized is not None and len(groups) == len(summarized)
    told = len(numbers) == len(groups) and set(numbers.values()) <= set(benchmark.samples)
    if told and (set(numbers.values()) <= wanted or not as_many):  # a sample without summary is none of ours
        files: dict[int, list[Path]] = {}
        for key, paths in groups.items():
            files.setdefault(numbers[key], []).extend(paths)
        return Grouped(files, numbers)
    if as_many:
        names = dict(zip(groups, sorted(wanted), strict=True))
        return Grouped({names[key]: paths for key, paths in groups.items()}, names, in_order=True)
    key = next(key for key in groups if numbers.get(key) not in benchmark.samples)
    first = groups[key][0]
    if key not in numbers:
        raise BadInput(
            f"{first}: the name tells no sample; expected its number between '{marker}' and '_', or as many of such names as there are "
            "summaries"
        )
    raise (WrongBenchmark if summarized is None else BadInput)(no_sample(numbers[key], benchmark, path=first))


def part_of(path: Path, marker: str) -> str | None:
    """The part of a file's name that tells summaries apart, between `marker` and the next `_`; None if there is none."""
    match = re.search(rf"{re.escape(marker)}([^_]+)_", path.name)
    return match[1] if match else None


def no_sample(number: int, benchmark: Benchmark, *, path: Path) -> str:
    """What is said of a sample that the benchmark does not have."""
    return (
        f"{path}: there is no sample {number} in {benchmark.path}, which has {len(benchmark.samples)}; give the benchmark that the "
        "files were made from"
    )
