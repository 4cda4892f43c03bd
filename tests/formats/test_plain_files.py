"""What never ends, in the place of a file, is refused and neither waited for nor read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import perse
from perse.batch.sharded.shard import rows_of
from perse.data.dataset.parquet import read_parquet
from perse.data.examples_file import read_examples
from perse.data.sources.lines import read_records
from perse.errors import BadInput
from perse.files.belongings import digest_of, manifest_of, written_in
from perse.files.runlog import file_digest
from perse.formats.json_text import read_json
from perse.formats.plain_files import own_bytes, own_text, refuse_endless
from perse.formats.yaml_text import read_yaml
from perse.stacking.file import read_stacking
from perse.studies.frame.running import read_study


def pipe(path: Path) -> None:
    os.mkfifo(path)


def link_to_a_pipe(path: Path) -> None:
    os.mkfifo(path.with_name("pipe"))
    path.symlink_to(path.with_name("pipe"))


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def refused_where_it_is(count: int | None) -> None:
    if count is None:
        raise BadInput("is no plain file; move it away, as who reads all of it says")


READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "bytes": ("x", own_bytes),
    "text": ("x", own_text),
    "JSON": ("x.json", lambda path: read_json(path, remedy="")),
    "YAML": ("x.yaml", read_yaml),
    "examples": ("examples.jsonl", read_examples),
    "packed examples": ("examples.jsonl.gz", read_examples),
    "a raw table": ("x.parquet", lambda path: list(read_records(path))),
    "a count of answers": ("0.parquet", lambda path: refused_where_it_is(rows_of(path))),
    "a table": ("reviews.parquet", lambda path: list(read_parquet(path))),
    "a study": ("study.json", lambda path: read_study(path.parent)),
    "a manifest": ("manifest.json", lambda path: manifest_of(path.parent)),
    "a list": (".perse-files.json", lambda path: written_in(path.parent)),
    "a digest": ("x", digest_of),
    "an input's digest": ("x", file_digest),
}


@pytest.mark.parametrize("harm", [pipe, link_to_a_pipe, device])
@pytest.mark.parametrize(("name", "read"), READERS.values(), ids=READERS)
def test_what_never_ends_is_no_plain_file(tmp_path: Path, name: str, read: Callable[[Path], object], harm: Callable) -> None:
    harm(tmp_path / name)
    with pytest.raises(BadInput, match="is no plain file; move it away"):
        read(tmp_path / name)


def test_every_file_is_read_where_pipes_are_refused() -> None:
    """A module that reads by itself names a place of the system, of the package, or looks before."""
    home = Path(next(iter(perse.__path__)))
    reading = re.compile(
        r"""\.read_bytes\(\)|\.read_text\(|\bopen\(["']rb|path\.open\(\)|pq\.read_schema|ParquetFile\(|read_metadata\(|np\.load\("""
    )
    looks = re.compile(r"refuse_endless\(|refuse_other_than_plain\(|is_file\(\)|S_ISREG\(|files\(\"perse|/proc/")
    found = {
        str(file.relative_to(home)): text
        for file in home.rglob("*.py")
        if reading.search(text := file.read_text(encoding="utf-8"))
    }
    # These read what is packaged with perse.
    assert {name for name, text in found.items() if not looks.search(text)} <= {"installation.py", "installing.py"}


def test_pipes_of_the_shell_and_dev_null_may_be_named(tmp_path: Path) -> None:
    for path in (Path("/dev/null"), tmp_path, tmp_path / "absent"):
        refuse_endless(path)
    code = "import sys; from pathlib import Path; from perse.formats.json_text import read_json; print(read_json(Path(sys.argv[1]), remedy=''))"
    done = subprocess.run([sys.executable, "-c", code, "/dev/stdin"], input="[1]", capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n"


def test_a_json_file_far_larger_than_any_of_ours_is_refused_before_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "stacking.json").touch()
    os.truncate(tmp_path / "stacking.json", 3 << 30)  # sparse: it takes no room
    with pytest.raises(BadInput, match="stacking.json has 3,221,225,472 bytes, expected at most 536,870,912; fit it again"):
        read_stacking(tmp_path / "stacking.json")


def test_settings_of_many_megabytes_are_refused_before_they_are_read(tmp_path: Path) -> None:
    huge = tmp_path / "mine.yaml"
    with huge.open("wb") as file:
        file.truncate(3 << 30)
    with pytest.raises(
        BadInput, match="mine.yaml has 3,221,225,472 bytes, expected at most 1,048,576; give a file of settings"
    ):
        read_yaml(huge)
