"""Atomic checkpoints: written aside, listed with digests, renamed; every byte is verified before reading.

The Trainer and the engines below it write their own files into a folder aside. Then `checkpoint.json` is added, which says what
run the checkpoint is of and has size and sha256 of every other file, everything is brought to the disk, and one rename puts it
in its place. So a kill, a full disk or a lost machine leaves the checkpoint before it as it was. The trade-off is reading
what was written once more: seconds for an adapter, a minute for the optimizer's state of 13B parameters.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from perse.errors import BadInput, PerseError, SaveFailed
from perse.files.belongings import keep_changed, leads_within, unchanged
from perse.files.disk import write_failed, write_whole
from perse.files.own_files import put_back, remove_own, replace_folder
from perse.files.runlog import file_digest
from perse.formats.json_text import parsed
from perse.formats.plain_files import own_bytes
from perse.training.saving.saved_state import state_problem

log = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"
"""In the run folder."""
LIST = "checkpoint.json"
FOR_ANY = "for-any-"
"""Begins the name of the folder that was converted for DeepSpeed on another number of devices."""
_CONVERTED = ".pt"
"""Ends the names of all that DeepSpeed's converter writes there."""
LATEST = "latest_universal"
"""Names that folder."""
ASIDE = ".saving.perse-tmp"
"""Where a checkpoint is written; whatever is found there was cut off by a kill."""
WITH_STATE = "weights_with_state"
"""In what a list says of its maker: of how many weights the optimizer kept something."""
READERS = 8
"""Files whose digests are computed at once."""

_READ = (
    "*.bin", "*.pt", "*.pth", "*.safetensors", "*.index.json", "config.json", "adapter_config.json", "*optimizer*", "*pytorch_model*",
    "global_step*", "latest",
)  # fmt: skip
"""Names that the Trainer, or an engine below it, looks for in a checkpoint."""
_PICKLED_WEIGHTS = ("adapter_model.bin", "pytorch_model.bin")
_NAME = re.compile(r"checkpoint-\d+")
_LEAST = 1 << 20
"""With fewer free bytes a failed write is blamed on the disk: torch's writer does not say why."""


def step_of(checkpoint: Path) -> int:
    """The optimizer step after which it was saved."""
    return int(checkpoint.name.rpartition("-")[2])


def checkpoints_in(folder: Path) -> list[Path]:
    """The checkpoints there, the newest last; other names, which a person gave, are ignored."""
    return sorted((path for path in folder.glob("checkpoint-*") if _NAME.fullmatch(path.name)), key=step_of)


def recover(folder: Path) -> None:
    """Put checkpoints that a kill caught while they were replaced back in their places. The caller is the only one who writes there."""
    for old in folder.glob(".checkpoint-*.perse-old"):
        if _NAME.fullmatch(name := old.name[1:].removesuffix(".perse-old")):
            put_back(folder / name)


def seal(written: Path, into: Path, *, facts: Mapping[str, Any], made_by: Mapping[str, Any], run_id: str | None = None) -> Path:
    """Put a checkpoint that was written aside in its place among the others.

    Args:
        facts: what run it is of, JSON-able; `whole_checkpoint` compares them.
        made_by: who wrote it, JSON-able; see `made_by`.
        run_id: tells the run from others of the same facts; None for one that an older perse began.
    """
    write_list(written, {"facts": dict(facts), "run_id": run_id, "made_by": dict(made_by)})
    place = into / written.name
    # There may be one: a run that went back behind this step and has come here again. A person's, or another run's, is kept as a
    # whole, since files of theirs beside the new ones would be taken for parts of the checkpoint.
    if not _as_sealed(place, facts=facts, run_id=run_id):
        keep_changed(place, ())
    replace_folder(written, place)
    to_disk(into)
    return place


def write_list(written: Path, about: Mapping[str, Any]) -> None:
    """List every file of a folder with size, sha256 and time, and bring all to the disk.

    Args:
        about: what else the list says, JSON-able.
    """
    files = sorted(path for path in written.rglob("*") if path.is_file())
    with ThreadPoolExecutor(READERS) as readers:
        digests = list(readers.map(file_digest, files))
        list(readers.map(to_disk, files))
    listed = {
        str(path.relative_to(written)): [path.stat().st_size, digest] for path, digest in zip(files, digests, strict=True)
    }
    times = {str(path.relative_to(written)): path.stat().st_mtime_ns for path in files}
    write_whole(written / LIST, json.dumps({**about, "files": listed, "times": times}, indent=1) + "\n")
    for folder in {path.parent for path in files} | {written}:
        to_disk(folder)


def whole_checkpoint(folder: Path, *, facts: Mapping[str, Any], run_id: str | None = None) -> Path | None:
    """The newest checkpoint in `folder` of which every byte is as it was written; None if there are none.

    Args:
        facts, run_id: of the run, as its checkpoints were sealed with; None where it has no id yet.

    Raises:
        BadInput: one is of another model or other data, or there are some but all are damaged or of another run of these.
    """
    broken: list[str] = []
    for path in reversed(checkpoints_in(folder)):
        problem = problem_of(path, facts=facts, run_id=run_id)
        if problem is None:
            return path
        log.warning("%s is left out: %s", path, problem)
        broken.append(f"{path.name}: {problem}")
    if broken:
        raise BadInput(
            f"none of the {len(broken)} checkpoints in {folder} can be gone on from ({'; '.join(broken)}); bring one back from a copy, or "
            "move the folder away to begin at the first step"
        )
    return None


def problem_of(checkpoint: Path, *, facts: Mapping[str, Any], run_id: str | None = None) -> str | None:
    """What is wrong with a checkpoint's files, in a few words, or None.

    Raises:
        BadInput: it is of another run: its `facts` are others.
    """
    try:
        found = _sealed(checkpoint)
    except ValueError as error:
        return f"{LIST} cannot be read ({error})"
    made_of, listed = found["facts"], found["files"]
    if other := _other_facts(found, facts):
        raise BadInput(
            f"{checkpoint} is of another run: its {other[0]} is {made_of.get(other[0])!r}, expected {facts[other[0]]!r}; give the "
            "model and the data it was trained on, or choose another output folder"
        )
    if run_id is not None and not _of_run(found, facts, run_id):
        return "it is of another run of the same model and data, perhaps with other settings"
    return (
        _first_difference(checkpoint, listed) or _planted(checkpoint, listed) or state_problem(checkpoint, step_of(checkpoint))
    )


def made_by(checkpoint: Path) -> dict[str, Any]:
    """How many processes wrote it, and how they held the model.

    Raises:
        BadInput: its list cannot be read.
    """
    return dict(_listing(checkpoint)["made_by"])


def sealed_files(checkpoint: Path) -> dict[str, tuple[int, str]]:
    """Size and sha256 of every file that it was sealed with, by path in it.

    Raises:
        BadInput: its list cannot be read.
    """
    return dict(_listing(checkpoint)["files"])


def _listing(checkpoint: Path) -> dict[str, Any]:
    try:
        return _sealed(checkpoint)
    except ValueError as error:
        raise BadInput(f"{checkpoint / LIST} cannot be read ({error}); move that checkpoint away") from None


def _sealed(checkpoint: Path) -> dict[str, Any]:
    """The files in its list, none of them outside the checkpoint.

    Raises:
        ValueError: it cannot be read, or is not as `seal` writes it; the message is a few words.
    """
    found = _read_list(checkpoint, ("facts", "made_by", "files"))
    made = found["made_by"]
    if type(made.get("world_size")) is not int or not isinstance(made.get("sharding"), str):
        raise ValueError("'made_by' does not say how many processes wrote it, and how")
    return found


def _read_list(folder: Path, objects: Sequence[str]) -> dict[str, Any]:
    """What `write_list` wrote in a folder, with these objects in it.

    Raises:
        ValueError: it is not so; the message is a few words.
    """
    try:
        found = parsed(own_bytes(folder / LIST))
    except OSError as error:
        raise ValueError(error.strerror or "no file") from None
    if not (isinstance(found, dict) and all(isinstance(found.get(part), dict) for part in objects)):
        raise ValueError(f"expected objects {' and '.join(f'{part!r}' for part in objects)}")
    for name, told in found["files"].items():
        if not (isinstance(told, list) and len(told) == 2 and type(told[0]) is int and isinstance(told[1], str)):
            raise ValueError(f"'{name[:40]}' has no size and sha256")
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ValueError(f"'{name[:40]}' lies elsewhere")
    return dict(found)


def _other_facts(sealed: Mapping[str, Any], facts: Mapping[str, Any]) -> list[str]:
    """The names of the facts that differ from those which a checkpoint was sealed with."""
    return sorted(name for name in facts if sealed["facts"].get(name) != facts[name])


def _of_run(sealed: Mapping[str, Any], facts: Mapping[str, Any], run_id: str | None) -> bool:
    """Whether a checkpoint is of this run and not of another that was moved here; one of an older perse goes by its facts."""
    return not _other_facts(sealed, facts) and sealed.get("run_id") in (None, run_id)


def _planted(checkpoint: Path, listed: Mapping[str, object]) -> str | None:
    """A file that the Trainer would read as part of the checkpoint, but perse did not write."""
    own = {Path(name).parts[0] for name in listed}
    for path in sorted(checkpoint.iterdir()):
        adapter = path.is_dir() and any((path / f"adapter_model.{kind}").exists() for kind in ("bin", "safetensors"))
        if path.name not in own and (adapter or any(fnmatch(path.name, pattern) for pattern in _READ)):
            return f"{path.name} is in it, and was not saved with it"
    pickled = next((name for name in listed if name in _PICKLED_WEIGHTS), None)
    return f"{pickled} is a pickle, which is never written here" if pickled else None


def _first_difference(checkpoint: Path, listed: Mapping[str, tuple[int, str]]) -> str | None:
    for name, (size, _) in listed.items():
        path = checkpoint / name
        if not leads_within(checkpoint, name):
            return f"{name} is a link, or lies behind one, and was saved as a file"
        if not path.is_file():
            return f"{name} is missing"
        if path.stat().st_size != size:
            return f"{name} has {path.stat().st_size} bytes, expected {size}"
    with ThreadPoolExecutor(READERS) as readers:
        digests = readers.map(file_digest, [checkpoint / name for name in listed])
        for (name, (_, known)), digest in zip(listed.items(), digests, strict=True):
            if digest != known:
                return f"{name} has sha256 {digest[:12]}..., expected {known[:12]}..."
    return None


def check_copied(checkpoint: Path, into: Path) -> None:
    """Compare the files in `into` with what the checkpoint that they were copied from was sealed with; bring them to the disk.

    Raises:
        SaveFailed: one differs.
    """
    listed = sealed_files(checkpoint)
    for path in sorted(path for path in into.rglob("*") if path.is_file()):
        name = str(path.relative_to(into))
        if name not in listed or file_digest(path) != listed[name][1]:
            raise SaveFailed(
                f"{path} is not what was saved in {checkpoint}; remove that checkpoint, and the same command resumes from another"
            )
        to_disk(path)
    to_disk(into)


def remove_others(
    folder: Path, *, newest: int, keep: int, best: int | None, facts: Mapping[str, Any], run_id: str | None = None
) -> None:
    """Delete all of a run's but the `keep` checkpoints up to step `newest`, which is just saved, and that of step `best`.

    Those of later steps go, too: a run that resumed from an earlier step found them damaged. What a person put into one or changed
    there stays, and of a link to one only the link goes. Another run's stay, and do not count. A list came with its folder and may be
    a stranger's: of the files that it names those go which the one just saved has, too.

    Args:
        facts, run_id: of the run, as its checkpoints were sealed with.
    """
    found = [path for path in checkpoints_in(folder) if (path / LIST).exists() and _may_go(path, facts, run_id)]
    kept = [path for path in found if step_of(path) <= newest][-keep:]
    written = frozenset(map(_of_any_step, sealed_files(folder / f"checkpoint-{newest}")))
    for path in found:
        if path in kept or step_of(path) == best:
            continue
        if path.is_symlink():
            log.warning("%s is a link to %s: the link is removed, and what it leads to stays", path, path.readlink())
            path.unlink()
        else:
            remove_own(path, _own_names(path, written))


def _may_go(checkpoint: Path, facts: Mapping[str, Any], run_id: str | None) -> bool:
    """Whether it is known to be this run's."""
    try:
        if _of_run(_sealed(checkpoint), facts, run_id):
            return True
        _say_that_it_stays(checkpoint, "it is of another run")
    except ValueError as error:
        _say_that_it_stays(checkpoint, f"its list of files, {LIST}, cannot be read ({error})")
    return False


@cache  # once, not at every checkpoint that is saved
def _say_that_it_stays(checkpoint: Path, why: str) -> None:
    log.warning("%s stays: %s", checkpoint, why)


def _own_names(checkpoint: Path, written: Collection[str]) -> list[str]:
    """The files of a checkpoint that perse writes and that are as they were sealed, and what was made of them for other devices."""
    found = []
    for name in _unchanged(checkpoint, _sealed(checkpoint)):
        if _of_any_step(name) in written:
            found.append(name)
        else:
            log.warning("%s stays: the newest checkpoint has no such file", checkpoint / name)
    together = converted(checkpoint)
    if (together / LIST).exists():
        try:
            names = _unchanged(together, _read_list(together, ("files",)))
            found += [f"{together.name}/{name}" for name in names if name.endswith(_CONVERTED)] + [f"{together.name}/{LIST}"]
        except ValueError as error:
            log.warning("%s stays: its list of files, %s, cannot be read (%s)", together, LIST, error)
    if unchanged(checkpoint / LATEST, [_named(checkpoint)]):
        found.append(LATEST)
    return [*found, LIST]  # the list last: what a kill leaves is still known


def _of_any_step(name: str) -> str:
    """A file's name without the numbers of step, process and part: what `rng_state_3.pth` and `rng_state.pth` have in common."""
    return re.sub(r"_?\d+", "", name)


def _unchanged(folder: Path, listing: Mapping[str, Any]) -> list[str]:
    """The listed files that are as they were written; of the others it is said that they stay."""
    changed = set(_changed(folder, listing))
    for name in sorted(changed):
        log.warning("%s is not as perse wrote it, and stays", folder / name)
    return [name for name in listing["files"] if name not in changed]


def converted(checkpoint: Path) -> Path:
    """The folder in it that has what was put together for DeepSpeed on another number of devices."""
    return checkpoint / f"{FOR_ANY}{step_of(checkpoint)}"


def is_converted(checkpoint: Path) -> bool:
    """Whether that folder is there, whole and as perse wrote it."""
    together = converted(checkpoint)
    try:
        listing = _read_list(together, ("files",))
    except ValueError:
        return False
    whole = all((together / name).is_file() for name in listing["files"]) and not any(_changed(together, listing))
    return whole and not together.is_symlink()


def name_converted(checkpoint: Path) -> None:
    """Write the file by which DeepSpeed finds that folder."""
    keep_changed(checkpoint / LATEST, [_named(checkpoint)])
    write_whole(checkpoint / LATEST, converted(checkpoint).name)


def _named(checkpoint: Path) -> str:
    """The sha256 of that file: it has the folder's name, and nothing else."""
    return hashlib.sha256(converted(checkpoint).name.encode()).hexdigest()


def _as_sealed(checkpoint: Path, *, facts: Mapping[str, Any], run_id: str | None) -> bool:
    """Whether nothing was changed in a checkpoint of this run, and nothing is in it that would be read as a part of it."""
    try:
        sealed = _sealed(checkpoint)
        as_it_was = not any(_changed(checkpoint, sealed)) and _planted(checkpoint, sealed["files"]) is None
        return as_it_was and _of_run(sealed, facts, run_id)
    except (OSError, ValueError):
        return False


def _changed(checkpoint: Path, sealed: Mapping[str, Any]) -> Iterator[str]:
    """The listed files that are there and not as they were sealed.

    A file of the listed size and time is not read again: the weights and states of a large model take minutes. Of another time, as in a
    copy, its digest decides. So what a disk damaged counts as perse's, and what somebody wrote does not.
    """
    times = sealed.get("times")
    for name, (size, digest) in sealed["files"].items():
        path = checkpoint / name
        if not os.path.lexists(path):
            continue
        if not leads_within(checkpoint, name) or not path.is_file():
            yield name
            continue
        found = path.stat()
        in_time = isinstance(times, dict) and times.get(name) == found.st_mtime_ns
        if found.st_size != size or not (in_time or file_digest(path) == digest):
            yield name


@contextmanager
def saving(what: str, folder: Path) -> Iterator[None]:
    """Turn a full disk into one sentence while `what` is written below `folder`.

    Raises:
        SaveFailed: the disk is full; other errors pass through.
    """
    try:
        yield
    except Exception as error:  # torch raises RuntimeError, safetensors and tokenizers have errors of their own
        free = shutil.disk_usage(_nearest(folder)).free
        if isinstance(error, PerseError) or not (write_failed(error) or free <= _LEAST):
            raise
        raise SaveFailed(
            f"no room for {what} in {folder} ({_first_words(error)}; {size(free)} are free): make room (or raise the quota or `ulimit "
            "-f`), and the same command resumes from what was finished before, such as a checkpoint, which is whole"
        ) from None


def check_room(folder: Path, needed: int, *, what: str) -> None:
    """Check that `needed` bytes are free where `folder` is, or will be.

    Raises:
        BadInput: there are fewer.
    """
    free = shutil.disk_usage(_nearest(folder)).free
    if free < needed:
        raise BadInput(
            f"{what} takes about {size(needed)} in {folder}, and {size(free)} are free there; make room, choose another output, or "
            "lower train.keep_checkpoints"
        )


def size(number: int) -> str:
    """Bytes, as a person reads them."""
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"


def _first_words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:200]


def _nearest(folder: Path) -> Path:
    """The folder, or its nearest existing parent."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def to_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, would outlast a loss of power."""
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
