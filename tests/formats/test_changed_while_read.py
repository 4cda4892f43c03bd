"""What is built from a file, or judged of it, is of one state of that file, or is refused."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from builders import pointwise_examples
from places import SAMPLES
from pyarrow import parquet

import perse.data.build
import perse.data.load
from perse.answering.base import JudgeSettings
from perse.batch.sharded.inputs import Row, digest_of_inputs, files_here, read_inputs
from perse.batch.sharded.starting import Request, start
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.load import load_examples
from perse.data.sources.lines import read_records
from perse.engines.kind import LoadOptions
from perse.errors import BadInput
from perse.formats.plain_files import states, unchanged_while_read
from perse.records import example_lines

CHANGED = "was changed while it was read; give the command again once nothing writes to it"


def appended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"\n")


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def replaced(path: Path) -> None:
    shutil.copy(path, path.with_name("another"))
    path.with_name("another").replace(path)


def same_size_and_time(path: Path) -> None:
    """As a program writes that means to leave no trace."""
    found = path.stat()
    with path.open("r+b") as file:
        file.write(b" ")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


def removed(path: Path) -> None:
    path.unlink()


HARMS = [appended, truncated, replaced, same_size_and_time, removed]


@pytest.fixture
def settled() -> Callable[[Path], None]:
    """Waits until the system's clock, by which it notes changes, has gone on since a file was written: some milliseconds."""

    def wait(path: Path) -> None:
        probe = path.with_name("probe")
        while not probe.exists() or probe.stat().st_ctime_ns <= path.stat().st_ctime_ns:
            probe.unlink(missing_ok=True)
            probe.touch()
        probe.unlink()

    return wait


@pytest.mark.parametrize("harm", HARMS)
def test_a_file_that_is_written_to_while_it_is_read_is_refused(
    tmp_path: Path, harm: Callable[[Path], None], settled: Callable[[Path], None]
) -> None:
    file = tmp_path / "reviews.csv"
    file.write_text("a,b\n1,2\n")
    settled(file)
    with pytest.raises(BadInput, match=CHANGED), unchanged_while_read(file):
        harm(file)
    if file.exists():
        with unchanged_while_read(file):
            file.read_bytes()
            file.stat()


def test_pipes_folders_and_what_is_absent_are_not_watched(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    places = (tmp_path, tmp_path / "pipe", tmp_path / "absent", Path("/dev/null"))
    with unchanged_while_read(*places):
        (tmp_path / "new").touch()
    assert states(places) == dict.fromkeys(places)


def table(path: Path) -> None:
    parquet.write_table(pa.table({"a": list(range(3000))}), path)


def lines(path: Path) -> None:
    path.write_text('{"a": 1}\n' * 3000)


def packed(path: Path) -> None:
    path.write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * 3000, mtime=0))


@pytest.mark.parametrize(("name", "write"), [("x.parquet", table), ("x.jsonl", lines), ("x.csv.gz", packed)])
def test_every_reader_of_rows_notices_another_file_in_its_place(
    tmp_path: Path, name: str, write: Callable[[Path], None], settled: Callable[[Path], None]
) -> None:
    file = tmp_path / name
    write(file)
    settled(file)
    with pytest.raises(BadInput, match=CHANGED):
        for line, _ in read_records(file):
            if line == 10:
                replaced(file)
    assert len(list(read_records(file))) == 3000


def changing(read: Callable[..., Any], file: Path) -> Callable[..., Any]:
    """`read`, and then somebody else's write, before what was read is digested."""

    def reading(*args: Any, **kwargs: Any) -> Any:
        found = read(*args, **kwargs)
        appended(file)
        return found

    return reading


@pytest.mark.parametrize("which", ["reviews.jsonl", "items.jsonl"])
def test_no_data_set_names_another_state_of_its_file_than_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str, settled: Callable[[Path], None]
) -> None:
    for name in ("reviews.jsonl", "items.jsonl"):
        shutil.copy(SAMPLES / name, tmp_path / name)
    settled(tmp_path / which)
    options = PointwiseOptions(reviews=tmp_path / "reviews.jsonl", items=tmp_path / "items.jsonl", out=tmp_path / "set")
    source = perse.data.build.source_named("reviews", "pointwise")
    assert source.read is not None
    hasty = replace(source, read=changing(source.read, tmp_path / which))
    with monkeypatch.context() as patched:
        patched.setattr(perse.data.build, "source_named", lambda *_: hasty)
        with pytest.raises(BadInput, match=f"{which} {CHANGED}"):
            build_pointwise(options)
    assert not (tmp_path / "set").exists()
    build_pointwise(options)


def test_no_run_names_another_state_of_its_examples_than_it_asks_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settled: Callable[[Path], None]
) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text("".join(example_lines(pointwise_examples(4, 4))))
    settled(file)
    monkeypatch.setattr(perse.data.load, "read_examples", changing(perse.data.load.read_examples, file))
    with pytest.raises(BadInput, match=CHANGED):
        load_examples(file, split="valid")


def test_a_run_in_shards_of_files_that_were_written_to_is_not_begun(tmp_path: Path, settled: Callable[[Path], None]) -> None:
    file = tmp_path / "in" / "examples.jsonl"
    file.parent.mkdir()
    file.write_text("".join(example_lines(pointwise_examples(4, 4))))
    settled(file)
    place = str(file.parent)

    def request() -> Request:
        watched = states(files_here(place))
        return Request(
            "openai:http://127.0.0.1:1/v1#m",
            LoadOptions(),
            JudgeSettings(temperature=0),
            {"sha256": digest_of_inputs(place)},
            watched=watched,
            shard_rows=4,
        )

    def read_and_written() -> Iterator[Row]:
        yield from read_inputs(place)
        appended(file)

    with pytest.raises(BadInput, match=CHANGED):
        start(tmp_path / "run", request(), read_and_written())
    run = start(tmp_path / "run", request(), read_inputs(place))
    assert run.plan.rows == 16
