"""Every command in README.md and docs/ can be called as it stands: its name, options, values and settings are there."""

from __future__ import annotations

import pytest
from checked_commands import problem
from documented import PAGES, Command, commands


@pytest.mark.parametrize("page", PAGES)
def test_every_command_a_page_shows_has_names_options_and_settings_that_exist(page: str) -> None:
    wrong = [f"{command}\n    {said}" for command in commands(page) if (said := problem(command))]
    assert not wrong, "\n".join(wrong)


def test_the_commands_of_the_docs_are_found() -> None:
    """An extraction that finds nothing would pass everything."""
    shown = [command for page in PAGES for command in commands(page) if command.whole]
    assert len(shown) > 100 and {command.words[0] for command in shown} == {"perse", "python", "accelerate", "make"}
    assert {"docs/results.md", "docs/serving.md", "README.md"} <= {command.place.partition(":")[0] for command in shown}


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("perse scores --examples x", "there is no 'scores'"),
        ("perse data pointwise --reviews r --items i --out o --profiles per_reviewer", "per_reviewer"),
        ("perse score --examples x --judge j --out o --limits 4", "--limits"),
        ("perse train --config embedded_lora train.stepz=3", "train.stepz"),
        ("perse train --config embedded_lorra", "embedded_lorra"),
        ("python serve.py --config configs/serve/embedded.yaml modell=x", "modell"),
        ("python benchmarks/engines.py --exampels 3", "--exampels"),
        ("python benchmarks/data_prep.py --revues 3", "--revues"),
        ("python benchmarks/gone.py", "there is no benchmarks/gone.py"),
        ("accelerate launch train.py --config configs/train/gone.yaml", "gone.yaml"),
        ("make tests", "no target tests"),
    ],
)
def test_a_name_that_is_gone_is_told(call: str, said: str) -> None:
    assert said in (problem(Command("here:1", tuple(call.split()), True)) or "")


def test_a_line_of_the_shell_is_taken_apart() -> None:
    from documented import _calls

    line = "$ KEY=a .venv/bin/perse score --judge openai:http://h/v1#m --out x > log && perse evaluate x  # how sure?"
    assert _calls(line) == [("perse", "score", "--judge", "openai:http://h/v1#m", "--out", "x"), ("perse", "evaluate", "x")]
    loop = "for k in 0 1; do perse score --k $k; done"
    assert _calls(loop) == [("perse", "score", "--k", "$k")]
    assert _calls("perse: trained: /shared/runs/first") == [] and _calls("the reader's own") == []
