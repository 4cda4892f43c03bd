"""What a command says to do next can be typed as it stands."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from perse.commands.train import scoring_command
from perse.settings.training import load_config


@pytest.mark.parametrize(("fold", "more"), [([], []), (["data.fold=2"], ["--fold", "2"])])
def test_after_training_the_validation_side_is_scored_by_the_command_that_is_shown(
    tmp_path: Path, fold: list[str], more: list[str]
) -> None:
    data = tmp_path / "my data"
    settings = load_config("embedded_lora", [f"data.path={data}", "output=runs/first", *fold])
    assert shlex.split(scoring_command(settings, Path("runs/first"))) == [
        *("perse", "score", "--examples", str(data), *more),
        *("--judge", "runs/first", "--out", "runs/first-valid"),
    ]
