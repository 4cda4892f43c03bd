"""A source of another package: one file and one entry point, and every command about data knows it."""

import gzip
import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.describing.facts import describe
from perse.data.sources import SOURCES, recognised
from perse.data.sources.lines import read_text_lines
from perse.data.sources.source import Seen
from perse.errors import BadInput
from perse.records import Kind

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "contributing-source.md").read_text("utf-8")
TOY = PAGE.partition("```python\n")[2].partition("```")[0]
"""The module that the page shows, whose files have lines "reader | film | stars | opinion"."""


@pytest.fixture(autouse=True)
def nobody_has_asked_yet() -> Iterator[None]:
    """Installed packages are looked at once in a process: before each test as at its start, and after it again."""
    vars(SOURCES).pop("_all", None)
    yield
    vars(SOURCES).pop("_all", None)


def install(place: Path, monkeypatch: pytest.MonkeyPatch, point: str, *, module: str = TOY) -> None:
    """A package with the module `toy_films`, as a wheel would have been unpacked."""
    place.mkdir()
    (place / "toy_films.py").write_text(module, "utf-8")
    about = place / "toy_films-1.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-films\nVersion: 1\n", "utf-8")
    (about / "entry_points.txt").write_text(f"[perse.sources]\n{point}\n", "utf-8")
    monkeypatch.syspath_prepend(place)
    monkeypatch.delitem(sys.modules, "toy_films", raising=False)
    importlib.invalidate_caches()


@pytest.fixture
def films(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of the added source."""
    install(tmp_path / "site", monkeypatch, "films = toy_films:FILMS")
    path = tmp_path / "diary.films"
    lines = [f"reader{who} | film{film} | {1 + (who + film) % 5} | Fine, {film}." for who in range(6) for film in range(8)]
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def test_an_added_source_is_described_from_the_records_it_reads(films: Path) -> None:
    found = describe(films)
    assert (found.format, found.rows, found.reviewers, found.items) == ("film diaries", 48, 6, 8)
    assert found.columns == ("reader", "film", "stars", "opinion")
    assert list(found.scores) == ["1", "2", "3", "4", "5"]
    assert found.next == f"perse data pointwise --source films --reviews {films} --out work/{films.stem}"


def test_the_command_that_a_description_shows_builds_a_data_set(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    typed = str(describe(films).next).split()[1:]
    done = CliRunner().invoke(app, typed)
    assert done.exit_code == 0, done.output
    made = load_folder(Path(typed[-1]))
    assert len(made.reviews) == 48 and made.examples("train")
    assert made.manifest["options"]["source"] == "films"
    assert made.manifest["options"]["scale"] == [1, 5]
    assert list(made.manifest["sources"]) == ["diary"]


def test_a_line_that_is_none_is_a_problem_and_stops_or_is_skipped(films: Path, tmp_path: Path) -> None:
    films.write_text(films.read_text("utf-8") + "no line\n", "utf-8")
    found = describe(films)
    assert (found.rows, found.problems.counts) == (48, {"no diary line": 1})
    assert found.problems.first == ("line 49: expected reader | film | stars 1 to 5 | opinion",)
    with pytest.raises(BadInput, match="line 49: expected reader"):
        build_pointwise(PointwiseOptions(reviews=films, source="films", out=tmp_path / "out"))
    made = build_pointwise(PointwiseOptions(reviews=films, source="films", out=tmp_path / "out", on_error="skip"))
    assert made.records == 48


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty; expected at least one line"),
        (b" \r\n\n", "the file is empty; expected at least one line"),
        (None, "no such file"),
    ],
)
def test_a_file_without_lines_is_one_sentence(films: Path, data: bytes | None, message: str) -> None:
    films.unlink() if data is None else films.write_bytes(data)
    with pytest.raises(BadInput, match=message):
        describe(films)
    with pytest.raises(BadInput, match=message):
        build_pointwise(PointwiseOptions(reviews=films, source="films", out=films.parent / "out", on_error="skip"))


def test_a_byte_that_is_not_utf_8_is_a_problem_of_its_line(films: Path, tmp_path: Path) -> None:
    films.write_bytes(films.read_bytes() + b"ann | caf\xe9 | 4 | good\n")
    assert describe(films).problems.first == ("line 49: byte 0xe9 at position 10 is not UTF-8; save the file as UTF-8",)
    with pytest.raises(BadInput, match="line 49: byte 0xe9"):
        build_pointwise(PointwiseOptions(reviews=films, source="films", out=tmp_path / "out"))


def test_a_packed_file_with_other_line_ends_is_the_same(films: Path, tmp_path: Path) -> None:
    plain = describe(films)
    packed = tmp_path / "diary.films.gz"
    packed.write_bytes(gzip.compress("\ufeff".encode() + films.read_bytes().replace(b"\n", b"\r\n\r\n")))
    found = describe(packed)
    assert (found.format, found.rows, found.scores, found.problems) == (plain.format, 48, plain.scores, plain.problems)


def test_only_line_ends_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "x.films"
    path.write_bytes("a\u2028b\x0bc\x85d\n\ne".encode())
    assert list(read_text_lines(path)) == [(1, "a\u2028b\x0bc\x85d"), (3, "e")]


def test_a_source_with_an_ending_of_its_own_may_stand_anywhere(films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, added = dict(SOURCES.own), SOURCES["films"]
    for place in range(len(own)):  # UNKNOWN, which takes everything, stays last
        items = [*own.items()]
        ordered = dict([*items[:place], ("films", added), *items[place:]])
        monkeypatch.setitem(vars(SOURCES), "own", ordered)
        monkeypatch.setitem(vars(SOURCES), "_all", ordered)
        assert recognised(films) is added, place


def test_an_ending_that_nobody_knows_is_told(tmp_path: Path) -> None:
    path = tmp_path / "diary.odd"
    path.write_text("x\n")
    with pytest.raises(BadInput, match=r"diary.odd: cannot tell the format from '.odd'; expected .jsonl, .json, .csv or .tsv"):
        describe(path)
    with pytest.raises(BadInput, match="no such file"):
        describe(tmp_path / "none.odd")


def test_the_list_of_sources_has_it_and_the_refusal_of_another_names_it(films: Path, tmp_path: Path) -> None:
    assert list(SOURCES) == [*SOURCES.own, "films"]
    known = {kind: [source.name for source in SOURCES.own.values() if source.kind == kind] for kind in get_args(Kind)}
    pointwise, pairwise = ", ".join([*known["pointwise"], "films"]), ", ".join(known["pairwise"])
    with pytest.raises(BadInput, match=f"--source film: no source of pointwise data; expected one of {pointwise}$"):
        build_pointwise(PointwiseOptions(reviews=films, source="film", out=tmp_path / "out"))
    with pytest.raises(BadInput, match=f"--source films: no source of pairwise data; expected one of {pairwise}$"):
        build_pairwise(PairwiseOptions(pairs=films, source="films", out=tmp_path / "out"))


def test_a_file_of_texts_beside_a_source_that_has_none_is_refused(films: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="films has no file of texts beside it; leave --items out"):
        build_pointwise(PointwiseOptions(reviews=films, items=films, source="films", out=tmp_path / "out"))


@pytest.mark.parametrize(
    ("point", "module"),
    [
        ("films = toy_films:NOTHING", TOY),
        ("films = toy_films:FILMS", "import no_such_module"),
        ("films = toy_films:read", TOY),
        ("amazon = toy_films:FILMS", TOY.replace('name="films"', 'name="amazon"')),
    ],
    ids=["no such object", "broken", "no source", "our name"],
)
def test_an_added_source_that_cannot_be_used_is_left_out_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, point: str, module: str
) -> None:
    install(tmp_path / "site", monkeypatch, point, module=module)
    path = tmp_path / "r.jsonl"
    path.write_text(json.dumps({"colour": "red"}) + "\n", "utf-8")
    assert describe(path).format == "unknown"
    assert "of the package toy-films is left out" in caplog.text


def test_the_page_about_data_lists_every_source_with_what_is_built_of_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "data.md").read_text("utf-8")
    rows = []
    for source in SOURCES.own.values():
        command = source.next_command(Seen("FILE", {}, {}))
        shown = f"`{command}`" if command.startswith("perse ") else command
        rows.append(f"| {source.title} | {f'`{source.name}` ' if source.kind else ''}| {shown} |")
    missing = [row for row in rows[:-1] if row not in page]  # the last is what nobody knows
    assert not missing, "docs/data.md, the table of what perse reads, lacks:\n" + "\n".join(missing)
