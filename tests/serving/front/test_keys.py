"""Keys: digests at rest, scopes, more than one, changed while the server runs."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from command_line import perse
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from perse.commands.app import app
from perse.errors import BadInput, RunMismatch, SaveFailed
from perse.files.locking import locked
from perse.serving.front import keys
from perse.serving.front.keys import Keys, Scope, add_key, read_keys, remove_keys
from perse.serving.readers.store import Readers


def keys_of(file: Path | None, *, usual: str | None = None, admin: str | None = None) -> Keys:
    ticks = iter(range(0, 100_000, 10))
    return Keys(usual, admin, file, clock=lambda: float(next(ticks)))  # every look is long after the last


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "keys.txt"


def test_the_file_holds_no_key_and_is_its_owners_alone(file: Path) -> None:
    key = add_key(file, "alice", ["judge"])
    assert key not in file.read_text() and key.removeprefix("perse_") not in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    add_key(file, "bob", ["judge", "readers"])
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_root_changes_a_file_of_keys_and_it_stays_its_owners(file: Path) -> None:
    add_key(file, "alice", ["judge"])
    os.chown(file, 65534, 65533)
    add_key(file, "bob", ["judge"])
    remove_keys(file, "alice")
    found = file.stat()
    assert (found.st_uid, found.st_gid, found.st_mode & 0o777) == (65534, 65533, 0o600)
    assert [one.caller.name for one in read_keys(file)] == ["bob"]


def test_a_key_of_the_file_is_not_the_caller_of_the_environment(file: Path) -> None:
    with pytest.raises(BadInput, match="'default' is the caller of PERSE_API_KEY, whose readers such a key would see"):
        add_key(file, "default", ["readers"])
    assert not file.exists()


@pytest.mark.parametrize(("variable", "place"), [("PERSE_API_KEY", "usual"), ("PERSE_ADMIN_KEY", "admin")])
def test_a_key_of_the_file_that_the_servers_environment_holds_too_is_refused(file: Path, variable: str, place: str) -> None:
    """Taken out of the file it would go on being let in, as another caller: who tries a client in the server's terminal has it there."""
    key = add_key(file, "alice", ["judge"])
    with pytest.raises(BadInput, match=f"{variable} holds the key of 'alice' in .*{file.name}, .*unset {variable}"):
        keys_of(file, **{place: key})


@pytest.mark.slow
def test_a_server_says_at_its_start_that_the_environments_key_is_let_in_beside_the_files(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PERSE_ADMIN_KEY", raising=False)
    start = ["serve", "--config", "embedded", "model=nowhere", f"keys={file}"]
    monkeypatch.setenv("PERSE_API_KEY", add_key(file, "alice", ["judge"]))
    doubled = perse(*start)
    assert doubled.returncode == 2 and "PERSE_API_KEY holds the key of 'alice'" in " ".join(doubled.stderr.split())
    remove_keys(file, "alice")
    told = " ".join(perse(*start).stderr.split())
    assert "PERSE_API_KEY is in the environment, so its key is let in too, as 'default', whatever" in told
    monkeypatch.delenv("PERSE_API_KEY")
    assert "let in too" not in perse(*start).stderr


def test_each_key_is_its_callers_with_its_scopes(file: Path) -> None:
    alice, bob = add_key(file, "alice", ["judge"]), add_key(file, "bob", ["judge", "readers"])
    keys = keys_of(file, usual="u" * 20, admin="a" * 20)
    found = {name: keys.caller(key) for name, key in {"alice": alice, "bob": bob, "usual": "u" * 20, "admin": "a" * 20}.items()}
    assert {name: caller and caller.name for name, caller in found.items()} == {
        "alice": "alice", "bob": "bob", "usual": "default", "admin": "default",
    }  # fmt: skip
    may = {name: {scope for scope in Scope if caller and caller.may(scope)} for name, caller in found.items()}
    assert may == {
        "alice": {"judge"}, "bob": {"judge", "readers"}, "usual": {"judge", "readers"}, "admin": {"judge", "readers", "admin"},
    }  # fmt: skip


@given(st.text(max_size=60))
def test_no_other_text_is_a_key(text: str) -> None:
    keys = Keys("a key of enough letters", None, None)
    assert (keys.caller(text) is not None) == (text == "a key of enough letters")


def test_keys_come_and_go_while_the_server_runs(file: Path) -> None:
    first = add_key(file, "alice", ["judge"])
    keys = keys_of(file)
    second = add_key(file, "alice", ["judge"])
    assert keys.caller(first) == keys.caller(second) is not None, "two keys of one name are one caller"
    digest = read_keys(file)[0].digest
    assert remove_keys(file, "alice", digest=digest[:12]) == 1
    assert keys.caller(first) is None and keys.caller(second) is not None
    assert remove_keys(file, "alice") == 1
    assert keys.caller(second) is None and keys.wanted, "a server whose last key went lets nobody in"


def test_a_file_that_breaks_while_the_server_runs_changes_nothing(file: Path) -> None:
    key = add_key(file, "alice", ["judge"])
    keys = keys_of(file)
    file.write_text("half a li")
    assert keys.caller(key) is not None
    file.unlink()
    assert keys.caller(key) is not None


@pytest.mark.parametrize("line", ["alice judge", "alice owner 2026-01-01 " + "0" * 64, "a b 2026-01-01 " + "0" * 63, "\x00"])
def test_a_file_of_something_else_is_refused_by_its_line_and_kept(file: Path, line: str) -> None:
    file.write_text(f"# ours\n{line}\n")
    for use in (lambda: read_keys(file), lambda: add_key(file, "carl", ["judge"]), lambda: keys_of(file)):
        with pytest.raises(BadInput):
            use()
    assert file.read_text() == f"# ours\n{line}\n"


def test_the_commands_make_list_and_remove_keys(file: Path) -> None:
    made = perse("keys", "add", file, "alice", "--scope", "judge", "--scope", "readers")
    key = made.stdout.strip()
    assert made.returncode == 0 and keys_of(file).caller(key) is not None and key not in made.stderr
    listed = perse("keys", "list", file)
    assert listed.stdout.split("\t")[:2] == ["alice", "judge,readers"] and key not in listed.stdout
    assert perse("keys", "remove", file, "alice").returncode == 0 and keys_of(file).caller(key) is None
    for wrong in (["remove", file, "alice"], ["add", file, "../x"], ["add", file, "x", "--scope", "root"], ["list", "nowhere"]):
        done = perse("keys", *wrong)
        assert done.returncode == 2 and "Traceback" not in done.stderr, done.stderr


def test_where_the_disk_is_full_no_file_is_left_that_would_let_nobody_in(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise SaveFailed(f"{path} was not written: no space left")

    monkeypatch.setattr("perse.serving.front.keys.write_bytes", full)
    with pytest.raises(SaveFailed):
        add_key(file, "anna", ["judge"])
    assert not file.exists()


def test_a_name_in_the_place_of_the_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="the file comes first: perse keys add keys.txt anna"):
        add_key(Path("anna"), "keys.txt", ["judge"])
    Path("ours").write_text(f"{keys.ABOUT}\n")
    with pytest.raises(BadInput, match="found no file anna, and ours in the place of a name"):
        add_key(Path("anna"), "ours", ["judge"])
    assert [path.name for path in tmp_path.iterdir()] == ["ours"]
    add_key(Path("ours"), "anna.smith", ["judge"])
    add_key(Path("new"), "anna.smith", ["judge"])


def test_two_who_add_keys_at_once_are_told_to_wait(file: Path) -> None:
    with (
        locked(file),
        pytest.raises(RunMismatch, match="is being written by another process; wait for it, or choose another place"),
    ):
        add_key(file, "anna", ["judge"])


def test_keys_are_not_written_through_a_link_nor_into_a_folder(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "keys.txt"
    add_key(real, "alice", ["judge"])
    link.symlink_to(real)
    before = real.read_bytes()
    for act in (lambda place: add_key(place, "bob", ["judge"]), lambda place: remove_keys(place, "alice")):
        with pytest.raises(BadInput, match="is a link to .*real.txt, and is not written through"):
            act(link)
        for folder in (Path(), Path("/"), tmp_path):
            with pytest.raises(BadInput, match="is a folder; name a file of keys"):
                act(folder)
    assert link.is_symlink() and real.read_bytes() == before


def test_a_key_that_somebody_called_default_by_hand_is_refused_by_its_line(file: Path) -> None:
    add_key(file, "alice", ["readers"])
    good = file.read_text()
    file.write_text(good.replace("alice", "default"))
    for use in (lambda: read_keys(file), lambda: add_key(file, "carl", ["judge"]), lambda: keys_of(file)):
        with pytest.raises(BadInput, match=r"keys.txt:2: 'default' is the caller of PERSE_API_KEY, .* remove the line"):
            use()
    done = perse("serve", "--config", "embedded", "model=nowhere", f"keys={file}")
    assert done.returncode == 2 and "keys.txt:2: 'default' is the caller" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (0o644, "can be read by everybody on this machine (mode 0644)"),
        (0o640, "can be read by its group (mode 0640)"),
        (0o666, "can be read and changed by everybody on this machine (mode 0666)"),
        (0o620, "can be changed by its group (mode 0620)"),
        (0o600, ""),
    ],
)
def test_a_file_of_keys_that_others_get_at_is_named_and_left_as_it_is(file: Path, mode: int, said: str) -> None:
    add_key(file, "alice", ["judge"])
    file.chmod(mode)
    for command in (["keys", "list", file], ["keys", "add", file, "bob"]):
        told = " ".join(perse(*command).stderr.split())
        assert (f"{said}, as far as its folder lets them, and says whose keys" in told) if said else "can be" not in told
        assert ("chmod go= " in told) == bool(said)
    assert file.stat().st_mode & 0o777 == mode


@pytest.mark.slow
def test_a_server_says_at_its_start_which_private_files_others_get_at(file: Path) -> None:
    readers = file.with_name("readers.db")
    add_key(file, "alice", ["judge"])
    Readers.open(str(readers)).close()
    start = ["serve", "--config", "embedded", "model=nowhere", f"keys={file}", f"readers={readers}"]
    assert "can be" not in perse(*start).stderr
    for each in (file, readers):
        each.chmod(0o644)
    told = " ".join(perse(*start).stderr.split())
    assert told.count("can be read by everybody on this machine") == 2
    assert "and holds what readers wrote; if that is not meant, run: chmod go= " in told


def test_what_somebody_wrote_between_the_keys_stays(file: Path) -> None:
    add_key(file, "alice", ["judge"])
    with file.open("a") as more:
        more.write("\n# bob left in May\n")
    add_key(file, "cy", ["judge"])
    remove_keys(file, "alice")
    about, *rest = file.read_text().splitlines()
    assert about.startswith("# Keys of a perse server") and rest[:2] == ["", "# bob left in May"] and rest[2].startswith("cy ")
    assert [one.caller.name for one in read_keys(file)] == ["cy"]


@pytest.mark.parametrize(
    "written",
    ["# hi\r\n# there\r\n\r\n", "# hi\u2028# there\x0b\x85\n", "\ufeff# hi\n", "\ufeff# hi\r\n  \r\n", "# hi\r# there\r"],
)
def test_comments_keep_their_bytes_when_keys_come_and_go(file: Path, written: str) -> None:
    file.write_bytes(written.encode())
    add_key(file, "alice", ["judge"])
    assert file.read_bytes().startswith(written.encode()) and [one.caller.name for one in read_keys(file)] == ["alice"]
    remove_keys(file, "alice")
    assert file.read_bytes() == written.encode()


def test_a_mark_before_the_first_key_is_read_over(file: Path) -> None:
    add_key(file, "alice", ["judge"])
    line = file.read_text().splitlines()[-1]
    file.write_bytes(f"\ufeff{line}\r\n".encode())
    assert [one.caller.name for one in read_keys(file)] == ["alice"]


def test_the_other_name_of_a_file_of_keys_is_told_of(file: Path) -> None:
    add_key(file, "alice", ["judge"])
    for change in (["add", str(file), "bob"], ["remove", str(file), "alice"]):
        other = file.with_name(f"of-{change[0]}")
        assert "hard link" not in CliRunner().invoke(app, ["keys", "add", str(file), "cem"]).output
        os.link(file, other)
        done = CliRunner().invoke(app, ["keys", *change])
        assert done.exit_code == 0 and "keeps the keys that were in it" in " ".join(done.output.split()), done.output


def test_a_disk_that_fails_while_keys_are_read_is_one_sentence(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_key(file, "alice", ["judge"])

    def failing(path: Path) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(keys, "own_bytes", failing)
    with pytest.raises(BadInput, match=r"cannot be read \(Input/output error\); look after its disk"):
        read_keys(file)


def test_a_file_of_keys_that_became_huge_is_not_read_into_a_running_server(
    file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = add_key(file, "alice", ["judge"])
    served = keys_of(file)
    os.truncate(file, 3 << 30)  # sparse: it takes no room
    assert served.caller(key) is not None
    assert "has 3,221,225,472 bytes, expected at most 16,777,216" in caplog.text and "the keys stay as they were" in caplog.text
