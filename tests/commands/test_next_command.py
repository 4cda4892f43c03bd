"""What training says to do next can be typed as it stands, and judges readers whom it did not learn from, asked as it learned."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import typer
from places import ROOT

from perse.commands.app import app
from perse.commands.train import scoring_command
from perse.data.build import PointwiseOptions, build_pointwise
from perse.settings.training import load_config

SAMPLES = ROOT / "perse" / "samples"


def built(out: Path, *, valid: float) -> Path:
    build_pointwise(
        PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out, k=3, valid=valid)
    )
    return out


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("my data") / "set", valid=0.34)


def said(data: Path, *overrides: str) -> list[str]:
    settings = load_config("embedded_lora", [f"data.path={data}", "output=runs/first", *overrides])
    return shlex.split(scoring_command(settings, Path("runs/first")))


@pytest.mark.parametrize(
    ("overrides", "more"),
    [
        ([], []),
        (["data.question=pointwise_score", "data.k=1"], ["--question", "pointwise_score", "--k", "1"]),
        (["data.review_text=false", "data.order_seed=4"], ["--order-seed", "4", "--no-review-text"]),
    ],
)
def test_the_validation_side_is_scored_as_it_was_learned(data: Path, overrides: list[str], more: list[str]) -> None:
    command = said(data, *overrides)
    assert command == [
        *("perse", "score", "--examples", str(data), *more),
        *("--judge", "runs/first", "--out", "runs/first-valid"),
    ]
    score = typer.main.get_command(app).commands["score"]  # type: ignore[attr-defined]
    score.make_context("score", command[2:])  # every option is one of the command


def test_nothing_is_said_where_the_validation_side_was_learned_from_or_there_is_none(data: Path, tmp_path: Path) -> None:
    assert said(data, "data.split=valid") == []
    assert said(tmp_path / "exported.jsonl") == []
    whole = built(tmp_path / "whole", valid=0.34)
    manifest = json.loads((whole / "manifest.json").read_text())
    manifest["counts"]["parts"] = [part for part in manifest["counts"]["parts"] if part["name"] == "Train"]
    (whole / "manifest.json").write_text(json.dumps(manifest))
    assert said(whole) == []
