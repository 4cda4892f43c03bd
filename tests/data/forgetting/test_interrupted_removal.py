"""A removal that was killed once it was decided is finished by the same command, which says so."""

import json
import os
from pathlib import Path

import pytest
from kills import killed_at
from places import SAMPLES
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.forgetting.forget import forget
from perse.files.replacing import COMMIT


def built(out: Path, **changes: object) -> Path:
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": out} | changes
    build_pointwise(PointwiseOptions(**options))  # type: ignore[arg-type]
    return out


@pytest.mark.slow
def test_a_removal_that_was_killed_after_its_decision_is_finished_with_exit_code_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    event = caught = 0
    died = True
    while died:
        data = built(tmp_path / str(event) / "set")
        person = load_folder(data).rows[0].reviewer_id
        died = killed_at(event, lambda data=data, person=person: forget(person, [data]), data.parent)  # type: ignore[misc]
        event += 1
        if not (data / COMMIT).is_dir():
            continue
        caught += 1
        done = CliRunner().invoke(app, ["data", "forget", person, str(data)])
        assert done.exit_code == 0, done.output
        assert f"{data}: a removal that was interrupted here is finished" in done.stderr
        assert not any(row.reviewer_id == person for row in load_folder(data).rows)
    assert caught > 3


@pytest.mark.slow
def test_a_build_that_was_killed_after_its_decision_is_no_removal(tmp_path: Path) -> None:
    data = built(tmp_path / "set")
    for event in range(200):
        killed_at(event, lambda: built(data, overwrite=True, seed=1), data)
        if (data / COMMIT).is_dir():
            break
    assert (data / COMMIT).is_dir()
    done = CliRunner().invoke(app, ["data", "forget", "Nobody", str(data), "--json"])
    assert "nobody was forgotten" in str(done.exception) and json.loads(done.stdout)["finished"] == []
