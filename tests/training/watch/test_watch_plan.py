"""Training is judged as often as the cost of judging allows; a run is told when to judge, and says when that takes too long."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from places import SAMPLES
from watching_builders import TRAIN, rows_to_train, trained

from perse.data.build import PointwiseOptions, build_pointwise
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer
from perse.settings.training import load_config
from perse.settings.watching import Watch
from perse.training.rows.branches import Branches
from perse.training.rows.prepare import Prepared
from perse.training.watch import trainer as watched
from perse.training.watch.plan import FORWARD, WRITING, WatchCost, tokens_once, watch_plan
from perse.training.watch.run import Watching, watching_for


def test_judging_is_as_often_as_five_percent_of_the_time_allows() -> None:
    """A judging costs (600 + 400) / 2 = 500 training tokens; 1000 steps of 100 tokens are 100,000; 5% of all the time is
    100,000 x 5 / 95 = 5,263 tokens, so 10 judgings: the first, and 9 intervals of ceil(1000 / 9) = 112 steps.
    Their share is 5,000 / 105,000."""
    plan = watch_plan(WatchCost(600, 400, 0), steps=1000, tokens_per_step=100)
    assert plan is not None and (plan.every, plan.first, plan.count(1000)) == (112, True, 10)
    assert plan.share == pytest.approx(5 / 105)


def test_a_short_run_is_judged_once_at_its_end_or_not_at_all_and_a_given_interval_is_kept() -> None:
    cost = WatchCost(600, 400, 0)  # 500 training tokens
    plan = watch_plan(cost, steps=100, tokens_per_step=100)
    assert plan is not None and (plan.every, plan.first, plan.count(100)) == (100, False, 1)
    assert plan.share == pytest.approx(500 / 10500)
    assert watch_plan(cost, steps=10, tokens_per_step=100) is None
    given = watch_plan(cost, steps=10, tokens_per_step=100, every=4)
    assert given is not None and (given.every, given.first, given.count(10)) == (4, True, 4)  # before, after 4, 8 and 10
    long = watch_plan(cost, steps=10**6, tokens_per_step=10**4)
    assert long is not None and long.count(10**6) == 50


def test_written_tokens_are_dear_and_shared_prompts_count_once() -> None:
    assert WatchCost(0, 0, 10).training_tokens == FORWARD * WRITING * 10
    assert tokens_once([((1, 2), (3,)), ((1, 2), (4, 5)), ((9,), (3,))]) == 2 + 1 + 2 + 1 + 1


def test_a_run_is_told_when_to_judge_and_what_is_best(renderer: Renderer, tmp_path: Path) -> None:
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set"))
    rows = rows_to_train(renderer)
    prepared = Prepared(
        question=QUESTIONS["pointwise_score"], renderer=Renderer(renderer.tokenizer, 8192), schedule=rows,
        data_digest="", branches=Branches((), ()), reviewers=frozenset(), digest="", longest=0, examples=8, times=1.0,
    )  # fmt: skip

    def watching(watch: Watch | None) -> Watching | None:
        config = load_config("embedded_lora", [f"data.path={tmp_path / 'set'}", "output=run"])
        return watching_for(config.model_copy(update={"watch": watch, "train": TRAIN}), prepared)

    valid = str(tmp_path / "set")
    found = watching(Watch(data=valid, examples=3, every=3, best="loss"))
    assert found is not None and len(found.what.judged) == 3 and found.plan.count(rows.steps) == 4  # before, after 3, 6 and 8
    assert found.arguments(begun=False) == {
        "eval_strategy": "steps",
        "eval_steps": 3,
        "eval_on_start": True,
        "metric_for_best_model": "loss",
    }
    by_default = watching(Watch(data=valid, examples=3, every=3))
    assert by_default is not None and by_default.arguments(begun=False)["metric_for_best_model"] == "kendall_imputed"
    assert not found.arguments(begun=True)["eval_on_start"]
    assert watching(None) is None


@pytest.mark.slow
def test_judging_that_takes_too_long_is_said_once_with_the_remedy(
    renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [0.0]

    def now() -> float:
        clock[0] += 0.01
        return clock[0]

    def slow(model: Any) -> dict[str, float | None]:
        clock[0] += 100
        return {"loss": 1.0, "kendall": 0.1}

    monkeypatch.setattr(watched, "time", SimpleNamespace(monotonic=now))
    _, lines = trained(renderer, tmp_path, judging=slow)
    said = [record.getMessage() for record in caplog.records if "judging takes" in record.getMessage()]
    assert len(said) == 1 and "set watch=null to have it under 5%" in said[0]
    assert all(line["eval_share"] > 0.05 for line in lines if "eval_seconds" in line)
