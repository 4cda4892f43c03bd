"""A run in shards says whether its workers apply a stacking that lies beside the judge."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from builders import pointwise_examples

from perse.answering.base import JudgeSettings
from perse.batch.sharded import asking
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.starting import Request, Run, read, start
from perse.engines.kind import LoadOptions
from perse.errors import BadInput, RunMismatch
from perse.settings.serving import load_config


def begun(folder: Path, **changes: Any) -> Run:
    rows = [Row(one, "in", n) for n, one in enumerate(pointwise_examples(3, 1))]
    request = Request("openai:http://x/v1#m", LoadOptions(), JudgeSettings(temperature=0), {"sha256": "x"}, **changes)
    return start(folder, request, iter(rows))


@pytest.mark.parametrize("stacking", [True, False])
def test_workers_load_the_judge_with_or_without_the_stacking_as_the_run_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stacking: bool
) -> None:
    asked: list[Any] = []

    def load(*_: Any, **given: Any) -> Any:
        asked.append(given["stacking"])
        return SimpleNamespace(
            engine=SimpleNamespace(capabilities=SimpleNamespace(at_once=None)), identity=SimpleNamespace(portable=None)
        )

    monkeypatch.setattr(asking.Judge, "load", load)
    monkeypatch.setattr(asking, "agree", lambda *_: None)
    begun(tmp_path / "run", stacking=stacking)
    asking.judge_of(read(tmp_path / "run"))
    assert asked == [stacking]


def test_a_run_without_the_stacking_is_not_continued_with_it(tmp_path: Path) -> None:
    begun(tmp_path / "run", stacking=False)
    with pytest.raises(RunMismatch):
        begun(tmp_path / "run")
    begun(tmp_path / "run", stacking=False)


def test_a_server_leaves_out_what_lies_beside_its_judge_if_it_is_told_to() -> None:
    assert load_config("embedded").stacked_by is True
    assert load_config("embedded", ["no_stacking=true"]).stacked_by is False
    assert load_config("embedded", ["stacking=s.json"]).stacked_by == Path("s.json")
    with pytest.raises(BadInput, match="cannot be given together"):
        load_config("embedded", ["no_stacking=true", "stacking=s.json"])
