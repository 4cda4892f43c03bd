"""What a command replaces is its own and whole; strangers stay where they are at every moment, also if it is killed at any."""

import hashlib
import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from kills import killed_at

from perse.data.dataset.folder import DATA_SET
from perse.data.persum.folder import PERSUM
from perse.data.release import RELEASE
from perse.errors import BadInput, RunMismatch, SaveFailed
from perse.files.belongings import GOES, LIST, Belongings, check_file, kind_of, own_files, resolved
from perse.files.exports import Fields
from perse.files.locking import locked
from perse.files.own_files import write_together
from perse.files.replacing import COMMIT, PLAN, STAGING, claimed, reading, settle, update_files
from perse.kgds.building.build import ANSWERS, BENCHMARK, KIND, SHEET
from perse.writing.cache import AnswerCache

SORT = Belongings(what="album", kinds=("album",), names=("a.txt", "b.txt", "c.txt", "pictures/*.svg", "README.md"))
MANIFEST = {"schema": 1, "kind": "album"}
ALIKE = (Fields(needed=("id",), known=("id",)),)


@pytest.fixture(autouse=True)
def albums(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an album lists may go, as tables of data may."""
    monkeypatch.setattr("perse.files.replacing.GOES", GOES | {"a.txt", "b.txt", "c.txt", "pictures/x.svg", "pictures/y.svg"})


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kill loses nothing that the kernel has; waiting makes hundreds of kills slow."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def fill(out: Path, files: dict[str, str], *, overwrite: bool = True, inputs: tuple[Path, ...] = ()) -> None:
    def write(fresh: Path) -> None:
        for name, text in files.items():
            (fresh / name).parent.mkdir(exist_ok=True)
            (fresh / name).write_text(text)

    with claimed(out, SORT, overwrite=overwrite, inputs=inputs) as place:
        place.fill(write, MANIFEST)


def own(out: Path) -> dict[str, str]:
    """The folder's own files as whoever reads them finds them."""
    with reading(out):
        listed = json.loads((out / "manifest.json").read_text())["files"]
        return {name: (out / name).read_text() for name in listed}


def strangers(out: Path) -> Path:
    """Notes, a raw file and a run with names like our own, in a folder of ours."""
    (out / "run").mkdir(parents=True, exist_ok=True)
    for name in ("notes.md", "raw.csv", ".hidden", "run/a.txt", "run/manifest.json"):
        (out / name).write_text(f"mine: {name}")
    return out


def assert_strangers(out: Path) -> None:
    for name in ("notes.md", "raw.csv", ".hidden", "run/a.txt", "run/manifest.json"):
        assert (out / name).read_text() == f"mine: {name}"


def names(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


OLD = {"a.txt": "old a", "b.txt": "old b", "README.md": "old card", "pictures/x.svg": "old x"}
NEW = {"a.txt": "new a", "c.txt": "new c", "README.md": "new card", "pictures/y.svg": "new y"}


@pytest.mark.slow
def test_a_kill_at_any_moment_leaves_the_old_folder_or_the_new_one_and_every_stranger(tmp_path: Path) -> None:
    found = []
    died = True
    while died:
        out = tmp_path / str(len(found)) / "album"
        fill(out, OLD)
        strangers(out)
        died = killed_at(len(found), lambda out=out: fill(out, NEW), out.parent)  # type: ignore[misc]
        assert_strangers(out)
        found.append(own(out))
        assert found[-1] in (OLD, NEW)
        fill(out, NEW)
        assert own(out) == NEW
        assert_strangers(out)
        assert [name for name in names(out.parent) if ".perse" in name] == []
        assert not (out / "b.txt").exists() and not (out / "pictures" / "x.svg").exists()
    assert OLD in found and found[-1] == NEW and found.index(NEW) == found.count(OLD), "once new, it stays new"
    assert len(found) > 20


@pytest.mark.slow
def test_a_kill_at_any_moment_of_a_first_build_leaves_a_whole_folder_or_none(tmp_path: Path) -> None:
    found = []
    died = True
    while died:
        out = tmp_path / str(len(found)) / "above" / "album"
        out.parent.parent.mkdir()
        died = killed_at(len(found), lambda out=out: fill(out, NEW), out.parent.parent)  # type: ignore[misc]
        found.append(own(out) if out.exists() else None)
        assert found[-1] in (None, NEW)
        fill(out, NEW)
        assert own(out) == NEW and sorted(path.name for path in out.parent.iterdir()) == ["album"]
    assert None in found and found[-1] == NEW


@pytest.mark.slow
def test_some_files_of_a_folder_are_updated_all_or_none(tmp_path: Path) -> None:
    def update(out: Path) -> None:
        with locked(out):
            update_files(out, {"a.txt": b"1", "b.txt": b"1"})

    found = []
    died = True
    while died:
        out = tmp_path / str(len(found))
        out.mkdir()
        for name in ("a.txt", "b.txt", "notes.md"):
            (out / name).write_text("0")
        died = killed_at(len(found), lambda out=out: update(out), out)  # type: ignore[misc]
        settle(out)
        found.append((out / "a.txt").read_text() + (out / "b.txt").read_text())
        assert (out / "notes.md").read_text() == "0"
        update(out)
        assert names(out) == ["a.txt", "b.txt", "notes.md"], "the next removes what the kill left"
    assert set(found) == {"00", "11"}


def test_a_folder_is_replaced_only_on_request_and_only_by_its_like(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    with pytest.raises(BadInput, match="already holds a album; give another --out, or --overwrite"):
        fill(out, NEW, overwrite=False)
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.md").write_text("mine")
    with pytest.raises(BadInput, match="holds files and is no album, so it is not overwritten"):
        fill(other, NEW)
    assert own(out) == OLD and names(other) == ["notes.md"]


@pytest.mark.parametrize(
    ("out", "why"), [("nosuch/../set", "there is no folder .*nosuch to go up from"), ("n" * 300, "at most 200 bytes")]
)
def test_a_path_that_cannot_be_is_refused_before_anything_is_written(tmp_path: Path, out: str, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        fill(tmp_path / out, OLD)
    assert not list(tmp_path.iterdir())


def test_an_input_in_the_folder_to_be_written_is_refused_however_it_is_named(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (out / "raw.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to(out / "raw.csv")
    (tmp_path / "linked").symlink_to(out)
    os.link(out / "a.txt", tmp_path / "hard.txt")
    for one in (out / "raw.csv", tmp_path / "link.csv", tmp_path / "linked" / "raw.csv", out / "run" / ".." / "raw.csv"):
        with pytest.raises(BadInput, match="is an input and lies in .*album, which is to be written"):
            fill(out, NEW, inputs=(one,))
    with pytest.raises(BadInput, match="is an input and lies in"):
        fill(tmp_path / "linked", NEW, inputs=(out / "raw.csv",))
    assert own(out) == OLD and (out / "raw.csv").read_text() == "mine"


def test_a_file_of_the_users_under_one_of_our_names_is_never_replaced(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (out / "c.txt").write_text("mine")
    with pytest.raises(BadInput, match="c.txt: is no file of the album and stands in its way; move it"):
        fill(out, NEW)
    assert (out / "c.txt").read_text() == "mine" and own(out) == OLD


def test_a_link_under_one_of_our_names_is_neither_written_through_nor_lost(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (out / "a.txt").rename(tmp_path / "far.txt")
    (out / "a.txt").symlink_to(tmp_path / "far.txt")
    with pytest.raises(BadInput, match="a.txt: is a link to .*far.txt, and is not written through"):
        fill(out, NEW)
    assert (tmp_path / "far.txt").read_text() == "old a" and (out / "a.txt").is_symlink()


def test_a_folder_behind_a_link_is_replaced_where_it_is(tmp_path: Path) -> None:
    real, link = tmp_path / "disk" / "album", tmp_path / "album"
    fill(real, OLD)
    link.symlink_to(real)
    fill(link, NEW)
    assert link.is_symlink() and own(real) == NEW


def test_a_folder_of_pictures_that_is_a_link_is_refused_before_anything_is_replaced(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, {"a.txt": "old a"})
    (tmp_path / "pictures").mkdir()
    (out / "pictures").symlink_to(tmp_path / "pictures")
    with pytest.raises(BadInput, match="pictures/y.svg: stands in the way"):
        fill(out, NEW)
    assert own(out) == {"a.txt": "old a"} and names(tmp_path / "pictures") == []


def test_a_card_that_somebody_wrote_into_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "album"
    for licence in ("mine", "mine too"):
        fill(out, OLD)
        (out / "README.md").write_text(licence)
    fill(out, {"a.txt": "new a"})
    assert [(out / f"README.kept-{n}.md").read_text() for n in (1, 2)] == ["mine", "mine too"]
    fill(out, OLD)
    fill(out, NEW)
    assert not (out / "README.kept-3.md").exists(), "a card that is as perse wrote it is replaced"


def test_a_file_of_the_folder_that_somebody_edited_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    for name in ("a.txt", "b.txt"):  # of which the new folder has only the first
        (out / name).write_text("mine")
    fill(out, NEW)
    assert own(out) == NEW
    assert [(out / f"{name}.kept-1.txt").read_text() for name in "ab"] == ["mine", "mine"]


def test_a_folder_whose_manifest_lists_no_files_owns_none_of_them(tmp_path: Path) -> None:
    out = strangers(tmp_path / "album")
    (out / "manifest.json").write_text(json.dumps(MANIFEST))
    (out / "a.txt").write_text("mine")
    with pytest.raises(BadInput, match="a.txt: is no file of the album and stands in its way"):
        fill(out, NEW)
    assert (out / "a.txt").read_text() == "mine"
    assert_strangers(out)


@pytest.mark.parametrize("planted", [{"remove": ["notes.md"], "ours": {}}, {"remove": [], "ours": {}}])
def test_a_plan_that_came_with_a_folder_costs_nobody_a_file(tmp_path: Path, planted: dict[str, Any]) -> None:
    out = strangers(tmp_path / "album")
    (out / "notes.md").write_text("mine")
    (out / COMMIT).mkdir()
    (out / COMMIT / ".plan.json").write_text(json.dumps(planted))
    if not planted["remove"]:
        (out / COMMIT / "notes.md").write_text("evil")
    settle(out)
    kept = [path.read_text() for path in out.iterdir() if path.name.startswith("notes")]
    assert "mine" in kept


@pytest.mark.parametrize("plan", ["[]", "null", "7", '{"remove": 3, "ours": {}}'])
def test_a_plan_that_is_none_is_one_sentence(tmp_path: Path, plan: str) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (out / COMMIT).mkdir()
    (out / COMMIT / ".plan.json").write_text(plan)
    with pytest.raises(BadInput, match="its replacement was interrupted and cannot be finished"):
        settle(out)


def test_a_list_that_names_what_no_such_folder_has_gives_nothing_away(tmp_path: Path) -> None:
    out = strangers(tmp_path / "album")
    (tmp_path / "outside.txt").write_text("mine")
    (out / "manifest.json").write_text(json.dumps({**MANIFEST, "files": ["notes.md", "../outside.txt", "run/a.txt", 7]}))
    fill(out, NEW)
    assert_strangers(out)
    assert (tmp_path / "outside.txt").read_text() == "mine"


def test_a_plan_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (tmp_path / "outside.txt").write_text("mine")
    (out / COMMIT).mkdir()
    (out / COMMIT / ".plan.json").write_text(json.dumps({"remove": ["../outside.txt"], "ours": {}}))
    with pytest.raises(BadInput, match="its replacement was interrupted and cannot be finished"):
        own(out)
    assert (tmp_path / "outside.txt").read_text() == "mine"


def test_what_killed_builds_left_is_removed_by_the_next_but_not_what_somebody_put_there(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    for left in (tmp_path / ".album.perse-new-0123abcd", tmp_path / ".album.perse-new-4567abcd", out / STAGING):
        left.mkdir()
        (left / "a.txt").write_text("of people")
    (tmp_path / ".album.perse-new-4567abcd" / "notes.md").write_text("mine")
    (tmp_path / ".album.perse-new-mine").mkdir()
    (tmp_path / ".other.perse-new-0123abcd").mkdir()
    fill(out, NEW)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        ".album.perse-new-4567abcd",
        ".album.perse-new-mine",
        ".other.perse-new-0123abcd",
        "album",
    ]
    assert names(tmp_path / ".album.perse-new-4567abcd") == ["notes.md"] and not (out / STAGING).exists()


def test_two_builds_of_one_folder_exclude_each_other_and_leave_no_lock(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "album"
    with claimed(out, SORT, overwrite=False):
        with pytest.raises(RunMismatch, match="album is being written by another process; wait for it"):
            fill(out, NEW)
        with pytest.raises(RunMismatch), claimed(tmp_path / "deep" / ".." / "deep" / "album", SORT, overwrite=True):
            pass
    assert names(tmp_path) == []
    fill(out, NEW)
    assert own(out) == NEW


def test_a_lock_file_that_a_kill_left_is_no_lock_and_one_with_something_in_it_stays(tmp_path: Path) -> None:
    lock = tmp_path / ".album.perse-lock"
    lock.touch()
    fill(tmp_path / "album", NEW)
    assert not lock.exists()
    lock.write_text("mine")
    fill(tmp_path / "album", OLD)
    assert lock.read_text() == "mine"


@pytest.mark.parametrize(
    ("number", "kind", "said"),
    [
        (28, SaveFailed, "could not be written .* what was finished before is kept whole: make room"),
        (5, SaveFailed, "could not be written .* what was finished before is kept whole: look after the disk"),
        (13, BadInput, "cannot be written .*, and what was there before is as it was"),
    ],
)
def test_a_build_that_fails_leaves_the_folder_as_it_was_and_says_so(
    tmp_path: Path, number: int, kind: type[Exception], said: str
) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    strangers(out)

    def full(fresh: Path) -> None:
        (fresh / "a.txt").write_text("new a")
        raise OSError(number, os.strerror(number))

    with pytest.raises(kind, match=said), claimed(out, SORT, overwrite=True) as place:
        place.fill(full, MANIFEST)
    assert own(out) == OLD and not (out / STAGING).exists()
    assert_strangers(out)


def test_a_folder_that_is_replaced_while_it_is_read_is_not_taken_for_whole(tmp_path: Path) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    with (
        pytest.raises(BadInput, match="was replaced by another process while it was read; give the command again"),
        reading(out),
    ):
        fill(out, NEW)


def test_the_same_files_make_the_same_folder(tmp_path: Path) -> None:
    fill(tmp_path / "one", NEW)
    fill(tmp_path / "two", OLD)
    fill(tmp_path / "two", NEW)
    one, two = (
        {p: (tmp_path / o / p).read_bytes() for p in names(tmp_path / o) if (tmp_path / o / p).is_file()}
        for o in ("one", "two")
    )
    assert one == two and kind_of(tmp_path / "one") == "album"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_to_write_is_never_one_of_a_folders_own_whatever_way_it_is_named(tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "album"
    fill(out, OLD)
    (tmp_path / "link").symlink_to(out)
    (tmp_path / "a.txt").symlink_to(out / "a.txt")
    run = tmp_path / "run"
    run.mkdir()
    (run / "manifest.json").write_text(json.dumps({"run": {}}))
    (run / "judgements.jsonl").write_text("{}")
    for taken in (
        out / "a.txt",
        out / "pictures" / "x.svg",
        out / "README.md",
        out / "c.txt",
        tmp_path / "link" / "b.txt",
        tmp_path / "a.txt",
        run / "judgements.jsonl",
    ):
        with pytest.raises(BadInput, match="belongs to the folder .*, which perse wrote|is a link to"):
            check_file(taken, alike=(), overwrite=overwrite, never=("c.txt",))
    check_file(out / "export.txt", alike=(), overwrite=overwrite)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_to_write_is_none_that_perse_wrote_in_a_folder_without_a_list_in_its_manifest(
    tmp_path: Path, overwrite: bool
) -> None:
    report, waiting, built, work = (tmp_path / name for name in ("report", "waiting", "built", "plots.jsonl.work"))
    write_together(report, {"report.html": b"<html>"})
    for folder in (waiting, built, work):
        folder.mkdir()
        sqlite3.connect(folder / ANSWERS).execute("CREATE TABLE answers (key TEXT)").connection.close()
    (waiting / SHEET).write_text("sample,paragraph")
    for name in (SHEET, BENCHMARK):
        (built / name).write_text("[]")
    (built / "manifest.json").write_text(json.dumps({"kind": KIND, "perse": "0.1.0"}))
    (work / "manifest.json").write_text(json.dumps({"perse": "0.1.0", "rewriting": {}}))
    (work / "rewriting.jsonl").write_text("{}")
    for taken in (
        report / "report.html",
        report / LIST,
        *(folder / ANSWERS for folder in (waiting, built, work)),
        waiting / SHEET,
        built / SHEET,
        built / BENCHMARK,
        work / "manifest.json",
        work / "rewriting.jsonl",
    ):
        with pytest.raises(BadInput, match="belongs to the folder .*, which perse wrote"):
            check_file(taken, alike=(), overwrite=overwrite)
    for free in (report / "valid.jsonl", waiting / "valid.jsonl", tmp_path / "valid.jsonl"):
        check_file(free, alike=(), overwrite=overwrite)


def test_a_database_is_never_replaced_by_a_file_of_lines(tmp_path: Path) -> None:
    kept = tmp_path / "cache.db"
    AnswerCache(kept).close()
    with pytest.raises(BadInput, match="cache.db: is no file that this command writes"):
        check_file(kept, alike=ALIKE, overwrite=True)


def test_a_file_that_is_there_is_replaced_only_on_request_and_never_an_input(tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.write_text('{"id": 1}\n')
    with pytest.raises(BadInput, match="there.txt: already there; give another --out, or --overwrite to replace it"):
        check_file(there, alike=ALIKE, overwrite=False)
    check_file(there, alike=ALIKE, overwrite=True)
    os.link(there, tmp_path / "again.txt")
    with pytest.raises(BadInput, match="is an input and cannot be the output too"):
        check_file(there, alike=ALIKE, overwrite=True, inputs=(tmp_path / "again.txt",))
    os.mkfifo(tmp_path / "pipe")
    for odd, said in ((tmp_path, "is a folder"), (tmp_path / "pipe", "is no plain file")):
        with pytest.raises(BadInput, match=said):
            check_file(odd, alike=(), overwrite=True)


def test_what_cannot_be_read_is_not_replaced_and_a_sentence_says_so() -> None:
    with pytest.raises(BadInput, match=r"^/proc/self/mem: cannot be looked into"):
        check_file(Path("/proc/self/mem"), alike=(), overwrite=True)


def test_a_folder_is_one_of_ours_by_its_manifest_with_a_schema_and_a_known_kind(tmp_path: Path) -> None:
    ours = Belongings(what="data set", kinds=frozenset({"pointwise"}), names=("*.parquet",))
    for manifest in ({"schema": 1}, {"schema": 1, "kind": "persum"}, {"kind": "pointwise"}, {"schema": 1, "kind": 5}):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(BadInput, match="holds files and is no data set, so it is not overwritten"):
            own_files(tmp_path, ours, overwrite=True)
    (tmp_path / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "pointwise"}))
    assert own_files(tmp_path, ours, overwrite=True) == {"manifest.json"}


def test_a_name_of_ours_in_a_folder_below_is_not_ours() -> None:
    ours = Belongings(what="data set", kinds=frozenset(), names=("*.parquet", "figures/*.png"))
    owned = {name: ours.may_own(name) for name in ("a.parquet", "below/a.parquet", "a.parquet/below", "figures/a.png", "a.png")}
    assert owned == {
        "a.parquet": True,
        "below/a.parquet": False,
        "a.parquet/below": False,
        "figures/a.png": True,
        "a.png": False,
    }


def test_a_file_beside_a_manifest_of_some_other_program_may_be_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    out.write_text('{"id": 1}')
    for manifest in ({}, {"name": "a web page's"}, {"schema": 1}, {"kind": "x", "perse_like": 1}):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        check_file(out, alike=ALIKE, overwrite=True)
    for manifest in ({"schema": 1, "kind": "pointwise"}, {"run": {"kind": "judge"}}, {"perse": "0.1.0"}):
        (tmp_path / "manifest.json").write_text(json.dumps(manifest))
        with pytest.raises(BadInput, match="belongs to the folder .*, which perse wrote, and is not overwritten"):
            check_file(out, alike=ALIKE, overwrite=True)


def test_a_figure_of_mine_that_a_strangers_list_names_is_put_aside_and_not_removed(tmp_path: Path) -> None:
    write_together(tmp_path, {"report.html": b"a page"})
    listed = json.loads((tmp_path / LIST).read_text())
    (tmp_path / "figures").mkdir()
    for content in (b"mine", b"another of mine", b"mine"):
        (tmp_path / "figures" / "mine.svg").write_bytes(content)
        (tmp_path / LIST).write_text(json.dumps({**listed, "figures/mine.svg": [hashlib.sha256(content).hexdigest()]}))
        write_together(tmp_path, {"report.html": b"another page"})
        assert not (tmp_path / "figures" / "mine.svg").exists()
    aside = {path.name: path.read_bytes() for path in (tmp_path / "figures" / "earlier").iterdir()}
    assert aside == {"mine.svg": b"mine", "mine-2.svg": b"another of mine"}


def test_a_plan_of_a_strangers_removes_nothing_but_tables_of_data(tmp_path: Path) -> None:
    mine = {name: f"{name}, mine" for name in ("notes.txt", "thesis.pdf", "figures/a.svg", "figures/b.txt")}
    for name, content in mine.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    digests = {name: [hashlib.sha256(content.encode()).hexdigest()] for name, content in mine.items()}
    (tmp_path / COMMIT).mkdir()
    (tmp_path / COMMIT / PLAN).write_text(json.dumps({"remove": [*mine], "ours": digests}))
    settle(tmp_path)
    found = {path.relative_to(tmp_path).as_posix(): path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert found == {name.replace("figures/a", "figures/earlier/a"): content for name, content in mine.items()}


@pytest.mark.parametrize("one", [DATA_SET, RELEASE, PERSUM], ids=lambda one: one.what)
def test_every_table_of_data_that_has_no_successor_may_go(one: Belongings) -> None:
    assert set(one.names) <= GOES


def test_what_may_not_be_written_over_is_said_for_what_it_is(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text('{"id": 1}')
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    for out, said in (
        (tmp_path / "folder", "is a folder; give another --out, such as"),
        (tmp_path / "pipe", "is no plain file; give another --out"),
        (tmp_path / "a", "is a link to b, and is not written through"),
        (tmp_path / "file" / "x.jsonl", "file is no folder; give another --out"),
        (tmp_path / "file", "already there; give another --out, or --overwrite to replace it"),
    ):
        with pytest.raises(BadInput, match=said):
            check_file(out, alike=ALIKE, overwrite=False)
    check_file(tmp_path / "file", alike=ALIKE, overwrite=True)
    check_file(tmp_path / "new" / "x.jsonl", alike=ALIKE, overwrite=False)
    with pytest.raises(BadInput, match="its links cannot be followed; give another path"):
        resolved(tmp_path / "a" / "x")
