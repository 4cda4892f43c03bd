"""Recipes of `perse score`: a file of options, beside what is typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from command_line import perse

from perse.commands.options.recipe import recipes
from perse.commands.scoring.app import app
from perse.errors import BadInput

NEEDED = ["--examples", "x.jsonl", "--judge", "runs/first", "--out", "run"]


def asked(*words: str) -> dict[str, Any]:
    """The options of `perse score` as they are understood, without anything being done."""
    command = typer.main.get_command(app)
    return command.make_context("score", [*words, *NEEDED]).params


@pytest.mark.parametrize("name", sorted(recipes()))
def test_each_recipe_says_what_its_file_says(name: str) -> None:
    told = yaml.safe_load(recipes()[name].read_text())
    found = asked("--config", name)
    assert told and {key: found[key] for key in told} == told
    assert f"perse score --config {name} " in recipes()[name].read_text()


def test_what_is_typed_counts_and_the_rest_is_of_the_recipe() -> None:
    found = asked("--shard-rows", "7", "--config", "node")
    assert (found["shard_rows"], found["dtype"], found["driver"]) == (7, "bfloat16", "local")


def test_a_file_of_ones_own_is_a_recipe_for_the_commands_that_have_its_options(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text("shard-rows: 5\nworkers: 3\ndriver: ray\nquestion: pointwise_score\n")
    assert asked("--config", str(file))["shard_rows"] == 5
    work = typer.main.get_command(app).commands["work"]  # type: ignore[attr-defined]
    file.write_text(file.read_text() + "rate: 3.5\n")
    assert asked("--config", str(file))["shard_rows"] == 5
    with typer.main.get_command(app).make_context("score", ["work"]) as score:
        plan = typer.main.get_command(app).commands["plan"]  # type: ignore[attr-defined]
        assert plan.make_context("plan", ["--config", str(file), *NEEDED], parent=score).params["rate"] == 3.5
        assert work.make_context("work", ["--config", str(file), "run"], parent=score).params["workers"] == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("shard_row: 5\n", "there is no option 'shard_row'; did you mean 'shard_rows'?"),
        ("config: other\n", "there is no option 'config'"),
        ("- 1\n", "holds no options"),
        ("workers: [1]\n", "option 'workers': found list, expected a text or a number"),
        ("workers:\n", "option 'workers': found NoneType"),
    ],
)
def test_what_is_no_recipe_is_one_sentence(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(BadInput) as refused:
        asked("--config", str(file))
    assert why in str(refused.value)


def test_a_value_that_does_not_fit_is_refused_as_if_it_were_typed(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    for text, why in (("driver: teleport", "teleport"), ("shard_rows: true", "True"), ("workers: 0", "0")):
        file.write_text(text + "\n")
        said = perse("score", "--config", file, *NEEDED)
        assert said.returncode == 2 and why in said.stderr and not Path("run").exists()
    missing = perse("score", "--config", "nod", *NEEDED)
    assert missing.returncode == 2 and "packaged recipes are catalogue, laptop, node, node_split, spot" in missing.stderr
