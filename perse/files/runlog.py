"""Append-only, resumable run folders with a manifest.

A run folder holds `manifest.json` (what was asked, of what, with what) and JSON lines that only grow. Lines are written
before the work goes on, a line torn by a kill is cut off at the next start, and the same command continues where the
last one stopped. Another command in the same folder is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from perse.errors import BadInput, RunMismatch
from perse.files.belongings import MANIFEST as MANIFEST
from perse.files.disk import GrowingFile, is_whole_line, no_folder
from perse.files.disk import write_bytes as write_bytes
from perse.files.disk import write_whole as write_whole
from perse.files.locking import lock_file
from perse.files.path_names import place_named
from perse.files.replacing import settle
from perse.formats.json_text import json_value, read_object, shortened
from perse.formats.plain_files import open_own, own_bytes, refuse_other_than_plain
from perse.secrets import redact, redact_command, redact_tree


def file_digest(path: Path) -> str:
    """sha256 of a file's bytes, in hex."""
    with open_own(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def name_and_digest(path: Path) -> dict[str, str]:
    """What a manifest says of a file that something was made from."""
    return {"name": path.name, "sha256": file_digest(path)}


def count_and_digest(lines: Iterable[bytes]) -> dict[str, Any]:
    """What a manifest says of lines that are written at once, so that a file which lost or changed some is noticed."""
    digest, count = hashlib.sha256(), 0
    for line in lines:
        digest.update(line)
        count += 1
    return {"count": count, "sha256": digest.hexdigest()}


def environment() -> dict[str, Any]:
    """The environment of a run: versions, commit, machine."""
    packages = ("perse-judge", "torch", "transformers", "peft", "accelerate", "tokenizers", "numpy", "scipy")
    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "git_commit": _git_commit(),
        "hardware": {"machine": platform.machine(), "system": platform.system(), "cpus": os.cpu_count(), "gpu": _gpu()},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": redact_command(sys.argv),
    }


class RunLog:
    """The lines of one file of a run folder, held open and locked by one process.

    Args:
        folder: created if absent.
        identity: identifies the run; JSON-able.
        lines: name of the file of lines.
        context: facts that may differ when a run is resumed, such as the place of its data.
    Raises:
        BadInput: the folder cannot be made.
        RunMismatch: the folder holds a run with another identity or something else, or another process has it open.
        SaveFailed: the disk is full, or cannot be written to.
    """

    def __init__(self, folder: Path, identity: dict[str, Any], *, lines: str, context: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.path = folder / lines
        make_folder(folder)
        refuse_strangers(folder, lines)
        identity = json.loads(json.dumps(identity))
        if (folder / MANIFEST).exists():  # before anything is made in a folder of something else
            refuse_other_run(folder, identity)
        self._file = GrowingFile(self.path)
        try:
            lock_file(self._file.fileno(), folder)
            if not (self.path.exists() and os.path.samestat(self.path.stat(), os.fstat(self._file.fileno()))):
                raise RunMismatch(f"{folder} was changed by another process just now; give the command again")
            self._check_identity(identity, context or {})
            self._file.cut_torn_line()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self._file.close()

    def read(self) -> list[dict[str, Any]]:
        """The lines so far."""
        return read_lines(self.path)

    def cut(self, wanted: Callable[[dict[str, Any]], bool]) -> None:
        """Drop the first unwanted line and all after it, which were written after the state to resume from."""
        end = 0
        for number, line in enumerate(own_bytes(self.path).splitlines(keepends=True), start=1):
            try:
                keep = wanted(_line(self.path, number, line, remedy=REJUDGE))
            except (KeyError, TypeError):
                raise BadInput(
                    f"{self.path}, line {number}: {shortened(line.decode().strip())} is no line of this run; remove it"
                ) from None
            if not keep:
                self._file.cut(end)
                return
            end += len(line)

    def append(self, lines: Iterable[str], *, sync: bool = True) -> None:
        """Add lines (each ending in a newline), on disk when this returns, or handed to the system: see `GrowingFile.append`.

        Raises:
            SaveFailed: none of them was added.
        """
        self._file.append(lines, sync=sync)

    def sync(self) -> None:
        """Wait until all lines are on disk; see `GrowingFile.sync`."""
        self._file.sync()

    def _check_identity(self, identity: dict[str, Any], context: dict[str, Any]) -> None:
        path = self.folder / MANIFEST
        if not path.exists():
            manifest = redact_tree({"run": identity, "context": context, "environment": environment()})
            write_whole(path, json.dumps(manifest, indent=2) + "\n")
            return
        refuse_other_run(self.folder, identity)


def make_folder(folder: Path) -> None:
    """Make a run folder if it is not there.

    Raises:
        BadInput: it cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"cannot make the run folder {folder}: {no_folder(folder, error)}; choose another") from None


def refuse_strangers(folder: Path, lines: str) -> None:
    """A run folder without a manifest may hold what a start that was killed left behind, and nothing else.

    Args:
        lines: name of the run's file of lines.
    Raises:
        RunMismatch: it holds something else.
    """
    others = [entry.name for entry in folder.iterdir() if entry.name != lines and not entry.name.startswith(".")]
    written = (folder / lines).exists() and (folder / lines).stat().st_size > 0
    if not (folder / MANIFEST).exists() and (others or written):
        raise RunMismatch(f"{folder} is not empty and holds no run; choose another folder")


def refuse_open_run(lines: Path) -> None:
    """Look whether another process writes the run that these lines are of.

    Raises:
        RunMismatch: one does.
    """
    with run_closed(lines):
        pass


@contextmanager
def run_closed(lines: Path) -> Iterator[None]:
    """Nobody else writes the run that these lines are of, if they are there, to the end of the block.

    Raises:
        RunMismatch: one does.
    """
    if not lines.exists():
        yield
        return
    with GrowingFile(lines) as file:
        lock_file(file.fileno(), lines.parent)
        yield


def refuse_other_run(folder: Path, identity: dict[str, Any]) -> None:
    """Compare an identity with that in the folder's manifest.

    Raises:
        RunMismatch: they differ, and the message names every setting that does; or the folder is no run's.
    """
    manifest = read_manifest(folder)
    run = manifest.get("run")
    holds, wanted = what_it_is(manifest), what_it_is({"run": identity})
    if not isinstance(run, dict) or holds != wanted:
        raise RunMismatch(f"{folder} holds {holds}, not {wanted.removeprefix('a run ')}; choose another folder")
    was, now = _dotted(run), _dotted(redact_tree(json.loads(json.dumps(identity))))
    differing = sorted(key for key in {*was, *now} if not _same(was.get(key), now.get(key)))
    if differing:
        told = [
            f"{key.removeprefix('config.')} was {json.dumps(was.get(key))}, is {json.dumps(now.get(key))}" for key in differing
        ]
        raise RunMismatch(
            f"{folder} holds a run with other settings ({'; '.join(told)}); give the same command to continue it, or choose another "
            "folder"
        )


def what_it_is(manifest: Mapping[str, Any]) -> str:
    """What the folder of a manifest holds, in a few words: the run of which command, or what else."""
    run = manifest.get("run")
    told = run if isinstance(run, dict) else manifest
    kind, study = (redact(shortened(one)).strip('"') if one else "" for one in (told.get("kind"), told.get("study")))
    if told is manifest:
        return f"a folder of another kind ({kind})" if kind else "something else than a run"
    if kind == "study" and not study:
        return "a run of a study of perse"
    if kind == "study":  # of KGDS's own one the name has the room before it
        return f"a run of perse {study.replace('-', ' ', 1) if study.startswith('kgds-') else f'study {study}'}"
    return (
        f"a run of perse {_COMMANDS.get(kind) or kind.replace('kgds-', 'kgds ', 1).replace('drpe-', 'drpe ', 1)}"
        if kind
        else "a run"
    )


_COMMANDS = {"persum": "data persum", "kgds-masking": "kgds build", "rehearsal-leniency": "rehearsal leniency"}
"""Commands that are not named as the kind of their runs."""


def _same(was: object, now: object) -> bool:
    """Whether a setting is what it was; a path may be written in another way, also one among others."""
    if isinstance(was, list) and isinstance(now, list):
        return len(was) == len(now) and all(map(_same, was, now))
    if isinstance(was, dict) and isinstance(now, dict):
        return was.keys() == now.keys() and all(_same(was[name], now[name]) for name in was)
    if was == now or not (isinstance(was, str) and isinstance(now, str)):
        return was == now
    try:
        return place_named(was).samefile(place_named(now))
    except (OSError, ValueError):  # they are no paths, or one of nothing
        return False


def _dotted(settings: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Every single value by its whole name, as in `config.train.seed`."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        whole = f"{above}{name}"
        found |= _dotted(value, f"{whole}.") if isinstance(value, dict) and value else {whole: value}
    return found


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run folder, without what an older perse may have kept of a key.

    Raises:
        BadInput: no manifest, or not a JSON object with the parts of one.
    """
    settle(folder)
    path = folder / MANIFEST
    refuse_other_than_plain(path)
    if not path.is_file():
        raise BadInput(f"{folder} is not a run folder: it has no {MANIFEST}; give the folder that a perse command wrote")
    manifest = read_object(path, remedy="the run must be made again")
    for name in _SECTIONS:
        found: Any = manifest
        for part in name.split("."):
            found = found.get(part, {}) if isinstance(found, dict) else {}
        named = name == "run.judge" and manifest.get("run", {}).get("kind") == "study"  # as on the command line, or not at all
        if not isinstance(found, dict) and not named:
            raise BadInput(f"{path}: '{name}' is {shortened(found)}, expected a JSON object; the run must be made again")
    return redact_tree(manifest)


def run_of(folder: Path) -> dict[str, Any]:
    """What identifies the run in a folder: `run` of its manifest.

    Raises:
        BadInput: as `read_manifest`, or the folder holds no run.
    """
    manifest = read_manifest(folder)
    if "run" not in manifest:
        raise BadInput(
            f"{folder} holds {what_it_is(manifest)} ({MANIFEST} has no 'run'); give the folder of a run, or make it again"
        )
    run: dict[str, Any] = manifest["run"]
    return run


_SECTIONS = (
    "run",
    "context",
    "environment",
    "run.config",
    "run.config.data",
    "run.config.model",
    "run.judge",
    "run.settings",
    "run.documents",
    "run.roles",
)
"""Parts of a manifest that are objects where they are there."""


REJUDGE = "remove the line to have its example judged again"


def read_lines(path: Path, *, remedy: str = REJUDGE) -> list[dict[str, Any]]:
    """The whole JSON lines of an append-only file; a torn last line is left out, and one that lacks its end alone, as editors write it, is not.

    Args:
        remedy: for an invalid line.
    Raises:
        BadInput: a line before the last is no JSON object; the message has its number.
    """
    if not path.exists():
        return []
    refuse_other_than_plain(path)
    rows = []
    text = path.read_bytes()
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith(b"\n") and not is_whole_line(line):
            break
        rows.append(_line(path, number, line, remedy=remedy))
    return rows


def _line(path: Path, number: int, line: bytes, *, remedy: str) -> dict[str, Any]:
    row = json_value(line, where=f"{path}, line {number}:", remedy=remedy)
    if not isinstance(row, dict):
        raise BadInput(f"{path}, line {number}: found {shortened(row)}, expected a JSON object; {remedy}")
    return row


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _git_commit() -> str | None:
    root = Path(str(files("perse"))).resolve().parent
    if not (root / ".git").exists():
        return None
    found = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _gpu() -> str | None:
    torch = sys.modules.get("torch")
    return str(torch.cuda.get_device_name()) if torch is not None and torch.cuda.is_available() else None
