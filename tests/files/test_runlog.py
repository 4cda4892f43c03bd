"""Run folders: append-only, whole lines, one writer, one identity."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perse.errors import BadInput, RunMismatch
from perse.files import runlog
from perse.files.locking import lock_file
from perse.files.runlog import RunLog, count_and_digest, file_digest, read_lines, read_manifest, run_of, what_it_is, write_whole


def test_lines_are_read_back_and_a_run_is_continued(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {"judge": {"model": "a"}}, lines="x.jsonl") as log:
        log.append(['{"id": 1}\n', '{"id": 2}\n'])
    with RunLog(tmp_path / "run", {"judge": {"model": "a"}}, lines="x.jsonl") as log:
        assert [row["id"] for row in log.read()] == [1, 2]
        log.append(['{"id": 3}\n'])
        assert [row["id"] for row in log.read()] == [1, 2, 3]


def test_a_line_torn_by_a_kill_is_cut_off(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append(['{"id": 1}\n', '{"id": "to'])
    assert [row["id"] for row in read_lines(tmp_path / "run" / "x.jsonl")] == [1]
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append(['{"id": 2}\n'])
    assert (tmp_path / "run" / "x.jsonl").read_text() == '{"id": 1}\n{"id": 2}\n'


def test_a_last_line_that_lacks_its_end_alone_is_read_and_kept(tmp_path: Path) -> None:
    """As an editor leaves a file that was written by hand; whoever goes on gives it its end."""
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append(['{"id": 1}\n', '{"id": 2}'])
    assert [row["id"] for row in read_lines(tmp_path / "run" / "x.jsonl")] == [1, 2]
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        assert [row["id"] for row in log.read()] == [1, 2]
        log.append(['{"id": 3}\n'])
    assert [row["id"] for row in read_lines(tmp_path / "run" / "x.jsonl")] == [1, 2, 3]


def test_a_damaged_line_in_the_middle_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"id": 1}\nnot json\n{"id": 2}\n')
    with pytest.raises(BadInput, match=r"x\.jsonl, line 2: not JSON"):
        read_lines(path)


def test_another_identity_is_refused_naming_what_differs(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {"judge": {"model": "a"}, "seed": 0}, lines="x.jsonl"):
        pass
    with pytest.raises(RunMismatch, match=r"other settings \(seed was 0, is 1\)"):
        RunLog(tmp_path / "run", {"judge": {"model": "a"}, "seed": 1}, lines="x.jsonl")


def test_a_path_among_others_may_be_written_in_another_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("books", "films"):
        (tmp_path / name).touch()
    for path in ("books", "./books", str(tmp_path / "books")):
        with RunLog(tmp_path / "run", {"mix": [{"path": path, "weight": 0.5}]}, lines="x.jsonl"):
            pass
    for other in ([{"path": "films", "weight": 0.5}], [{"path": "books", "weight": 0.6}], [{"path": "books"}], []):
        with pytest.raises(RunMismatch, match="mix was"):
            RunLog(tmp_path / "run", {"mix": other}, lines="x.jsonl")


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunMismatch, match="is not empty and holds no run"):
        RunLog(tmp_path, {}, lines="x.jsonl")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_lines_without_a_manifest_are_nobodys_run_unless_there_are_none(tmp_path: Path) -> None:
    lines = tmp_path / "x.jsonl"
    lines.write_text("{}\n")
    with pytest.raises(RunMismatch, match="is not empty and holds no run"):
        RunLog(tmp_path, {}, lines="x.jsonl")
    assert lines.read_text() == "{}\n"
    lines.write_text("")
    (tmp_path / ".hidden").touch()
    with RunLog(tmp_path, {}, lines="x.jsonl") as log:
        assert log.read() == []


def test_a_start_that_was_killed_does_not_block_the_folder(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").touch()
    (tmp_path / ".manifest.json.123.tmp").write_text('{"half')
    with RunLog(tmp_path, {"seed": 0}, lines="x.jsonl") as log:
        assert log.read() == []


def test_what_was_written_after_a_checkpoint_is_cut_off(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append([f'{{"step": {step}}}\n' for step in (1, 2, 3, 4)])
        log.cut(lambda row: row["step"] <= 2)
        log.append(['{"step": 3, "again": true}\n'])
        assert log.read() == [{"step": 1}, {"step": 2}, {"step": 3, "again": True}]


def test_a_file_in_the_way_of_a_run_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "run").touch()
    with pytest.raises(BadInput, match="cannot make the run folder"):
        RunLog(tmp_path / "run", {}, lines="x.jsonl")
    with pytest.raises(BadInput, match="is not a run folder"):
        read_manifest(tmp_path / "run")


def test_lines_are_written_through_no_link_and_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    run, outside = tmp_path / "run", tmp_path / "outside.jsonl"
    with RunLog(run, {}, lines="x.jsonl"):
        pass
    outside.write_text("")
    (run / "x.jsonl").unlink()
    (run / "x.jsonl").symlink_to(outside)
    with pytest.raises(BadInput, match="is a link to .*outside.jsonl, and is not written through"):
        RunLog(run, {}, lines="x.jsonl")
    for harm in (os.mkfifo, os.mkdir):
        run = tmp_path / harm.__name__
        with RunLog(run, {}, lines="x.jsonl"):
            pass
        for name in ("x.jsonl", "manifest.json"):
            (run / name).unlink()
            harm(run / name)
        with pytest.raises(BadInput, match="is no plain file; move it away"):
            RunLog(run, {}, lines="x.jsonl")
        with pytest.raises(BadInput, match="is no plain file; move it away"):
            read_lines(run / "x.jsonl")
        with pytest.raises(BadInput, match="is no plain file; move it away"):
            read_manifest(run)


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with (
        RunLog(tmp_path / "run", {}, lines="x.jsonl"),
        pytest.raises(RunMismatch, match="is being written by another process"),
    ):
        RunLog(tmp_path / "run", {}, lines="x.jsonl")


def test_the_manifest_says_what_a_run_depends_on(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {"seed": 3}, lines="x.jsonl"):
        pass
    manifest = read_manifest(tmp_path / "run")
    assert manifest["run"] == {"seed": 3}
    assert manifest["environment"]["packages"]["numpy"]
    with pytest.raises(BadInput, match="is not a run folder"):
        read_manifest(tmp_path)


def test_a_run_whose_lines_were_replaced_while_it_was_opened_adds_nothing_to_the_old_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append(["1\n", "2\n"])

    def late(file: Any, target: Path) -> None:  # as `perse data forget` does it between the two
        write_whole(tmp_path / "run" / "x.jsonl", "2\n")
        lock_file(file, target)

    monkeypatch.setattr(runlog, "lock_file", late)
    with pytest.raises(RunMismatch, match="was changed by another process just now; give the command again"):
        RunLog(tmp_path / "run", {}, lines="x.jsonl")


def test_a_manifest_that_tells_of_no_run_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match="holds something else than a run .*; give the folder of a run, or make it again"):
        run_of(tmp_path)
    (tmp_path / "manifest.json").write_text('{"run": {"kind": "score"}}')
    assert run_of(tmp_path) == {"kind": "score"}


@pytest.mark.parametrize(
    ("manifest", "told"),
    [
        ({"run": {"kind": "judge"}}, "a run of perse judge"),
        ({"run": {"kind": "persum"}}, "a run of perse data persum"),
        ({"run": {"kind": "kgds-masking"}}, "a run of perse kgds build"),
        ({"run": {"kind": "kgds-verify"}}, "a run of perse kgds verify"),
        ({"run": {"kind": "study", "study": "order"}}, "a run of perse study order"),
        ({"run": {"kind": "study", "study": "kgds-agreement-more"}}, "a run of perse kgds agreement-more"),
        ({"run": {}}, "a run"),
        ({"kind": "pointwise"}, "a folder of another kind (pointwise)"),
        ({"run": 5}, "something else than a run"),
        ({}, "something else than a run"),
    ],
)
def test_what_lies_in_a_folder_is_told_by_the_command_that_wrote_it(manifest: dict[str, Any], told: str) -> None:
    assert what_it_is(manifest) == told


def test_a_file_of_lines_is_counted_and_known_by_its_bytes(tmp_path: Path) -> None:
    lines = [b"one\n", b"two\n", b"three\n"]
    (tmp_path / "x.jsonl").write_bytes(b"".join(lines))
    assert count_and_digest(iter(lines)) == {"count": 3, "sha256": file_digest(tmp_path / "x.jsonl")}
    assert count_and_digest([])["count"] == 0 and count_and_digest(lines[:2])["sha256"] != file_digest(tmp_path / "x.jsonl")


def test_a_line_that_is_none_of_the_run_is_named_when_it_resumes(tmp_path: Path) -> None:
    with RunLog(tmp_path / "run", {}, lines="x.jsonl") as log:
        log.append(['{"step": 1}\n', '{"other": 2}\n'])
        with pytest.raises(BadInput, match=r"x.jsonl, line 2: .*other.* is no line of this run; remove it"):
            log.cut(lambda row: bool(row["step"] <= 1))
        log.cut(lambda row: True)
        assert len(log.read()) == 2
        log.cut(lambda row: False)
        assert log.read() == []


@pytest.mark.parametrize(
    ("manifest", "named"),
    [
        ({"run": 5}, "'run' is 5"),
        ({"run": {"kind": "score", "judge": "x"}}, "'run.judge' is \"x\""),
        ({"run": {"kind": "study", "judge": "x"}}, None),
    ],
)
def test_a_part_of_a_manifest_that_is_none_is_named(tmp_path: Path, manifest: dict[str, Any], named: str | None) -> None:
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    if named is None:
        assert read_manifest(tmp_path) == manifest
    else:
        with pytest.raises(BadInput, match=f"{named}, expected a JSON object; the run must be made again"):
            read_manifest(tmp_path)


def test_a_study_without_a_name_is_still_told_from_other_runs() -> None:
    assert what_it_is({"run": {"kind": "study"}}) == "a run of a study of perse"
    assert what_it_is({"run": {"kind": "drpe-roles"}}) == "a run of perse drpe roles"


def test_a_manifest_says_of_which_commit_the_code_is_where_it_is_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runlog, "files", lambda package: tmp_path / "checkout" / package)
    assert runlog.environment()["git_commit"] is None, "installed, not checked out"
    (tmp_path / "checkout").mkdir()
    git = ["git", "-C", str(tmp_path / "checkout"), "-c", "user.name=n", "-c", "user.email=e"]
    subprocess.run([*git, "init", "--quiet"], check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "m"], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    found = runlog.environment()
    assert found["git_commit"] == head and len(head) == 40
    assert found["packages"]["numpy"] and "python" in found


def test_a_package_that_is_not_there_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(package: str) -> str:
        raise runlog.metadata.PackageNotFoundError(package)

    monkeypatch.setattr(runlog.metadata, "version", nowhere)
    assert not any(runlog.environment()["packages"].values())
