"""Whatever was done to a file that perse wrote, a command that reads it ends well or in one of our sentences: never in a bug."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples
from places import SAMPLES
from typer.testing import CliRunner

from perse.batch.local import score
from perse.commands.app import app
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.errors import PerseError
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.rendering.prompt import TextRenderer

ODD: tuple[Any, ...] = (
    *(None, True, -1, 0, 1e308, 10**30, float("nan")),
    *("", "x" * 5000, "\x1b[31m", "\ud800", "../../x", "a\nb"),
    *([], {}, [[]], {"a": 1}, [1, "a", None]),
)
"""Values that no field has."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set in set/, scored runs in one/ and other/."""
    folder = tmp_path_factory.mktemp("written")
    build_pointwise(
        PointwiseOptions(
            reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=folder / "set", k=1, max_queries=1
        )
    )
    examples = pointwise_examples(12, 3, k=1)
    for name in ("one", "other"):
        engine = ScriptedEngine(lambda prompt, seed, name=name: f"[Score] {1 + (len(str(prompt)) + len(name)) % 10}")  # type: ignore[misc]
        judge = Judge(engine, TextRenderer(), name=name)
        loaded = LoadedExamples(list(examples), "d", None, None)
        score(judge, QUESTIONS["pointwise_score"], loaded, folder / name, settings=JudgeSettings())
    return folder


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a JSON value; of lists the first few."""
    yield path
    for key in value if isinstance(value, dict) else range(min(len(value), 4)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def changed(value: Any, drawn: random.Random) -> Any:
    """`value` with an odd one in a place of it, or without that place."""
    place = drawn.choice([*places(value)])
    if not place:
        return drawn.choice(ODD)
    inner = value
    for key in place[:-1]:
        inner = inner[key]
    if drawn.random() < 0.2:
        del inner[place[-1]]
    else:
        inner[place[-1]] = drawn.choice(ODD)
    return value


def damage(file: Path, drawn: random.Random) -> None:
    content = file.read_bytes()
    if file.suffix in (".json", ".jsonl") and drawn.random() < 0.8:
        lines = content.decode().splitlines() if file.suffix == ".jsonl" else [content.decode()]
        at = drawn.randrange(len(lines))
        lines[at] = json.dumps(changed(json.loads(lines[at]), drawn))
        file.write_text("\n".join(lines) + "\n")
        return
    cut = drawn.randrange(len(content) + 1)
    odd = bytes(drawn.randrange(256) for _ in range(8))
    file.write_bytes(drawn.choice([content[:cut], content[:cut] + odd + content[cut + 8 :], b"", b"null", b"{" * 300]))


COMMANDS: Sequence[tuple[str, tuple[str, ...]]] = (
    ("set", ("data", "describe", "{}")),
    ("set", ("data", "export", "{}", "--split", "train")),
    ("set", ("data", "forget", "{}", "--reviewer", "nobody")),
    ("one", ("evaluate", "{}", "--resamples", "100", "--no-text")),
    ("one", ("compare", "{}", "OTHER", "--resamples", "100", "--permutations", "100")),
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_file_ends_in_one_of_our_sentences(written: Path, tmp_path: Path, seed: int) -> None:
    drawn = random.Random(seed)
    for number in range(25):
        kind, command = drawn.choice(COMMANDS)
        folder = tmp_path / f"{number}"
        shutil.copytree(written / kind, folder)
        damage(drawn.choice([file for file in sorted(folder.rglob("*")) if file.is_file()]), drawn)
        given = [part.replace("{}", str(folder)).replace("OTHER", str(written / "other")) for part in command]
        done = CliRunner().invoke(app, given)
        assert isinstance(done.exception, PerseError | SystemExit | None), (seed, number, given, repr(done.exception))
