"""The judge as a scorer of inspect_ai and as a module of `evaluate`: the score of each text, and none for what was not answered."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import logging
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from perse import Judge
from perse.engines.base import Capabilities, Failure, Reply, Sampling, Turns
from perse.errors import BadInput
from perse.integrations import path
from perse.judgement import Tokens
from perse.rendering.prompt import TextRenderer

REVIEWS = [{"text": "A quiet plot", "review": "Warm.", "score": 9}]


class Reading:
    """A chat engine that scores a new text by what stands in it."""

    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.asked: list[str] = []

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        self.asked += map(str, messages)
        said = ["[Score] 9" if "the new plot is quiet" in str(one) else "I cannot say." for one in messages]
        return [Reply(text, "stop", Tokens(prompt=1, cached=0, generated=4)) for text in said]


@pytest.fixture(autouse=True)
def own_logging() -> Iterator[None]:
    """inspect_ai gives the whole process a log of its own, which would take what later tests log."""
    yield
    root = logging.getLogger()
    for handler in root.handlers[:]:
        if type(handler).__module__.startswith("inspect_ai"):
            root.removeHandler(handler)


@pytest.fixture
def judge() -> Judge:
    return Judge(Reading(), TextRenderer(), name="m")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reviews": "abc"}, "the past reviews are a text"),
        ({"reviews": [("a", "b", 11)]}, "past review 1, field 'score'"),
        ({"question": "pointwize"}, "there is no question 'pointwize'"),
        ({"question": "pairwise"}, "does not fit"),
        ({"question": "pointwise_evidence"}, "has no evidence"),
        ({"temperature": -1}, "temperature is -1"),
        ({"max_new_tokens": 0}, "max_new_tokens is 0"),
    ],
)
def test_a_scorer_that_could_score_nothing_is_refused_before_a_model_writes(given: dict[str, Any], said: str) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (the extra integrations)")
    from perse.integrations.inspect_scorer import reader_score

    with pytest.raises(BadInput, match=said):
        reader_score("m", **given)


def test_every_sample_is_shown_to_the_reader_whatever_gives_the_reviews_and_the_metadata(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (the extra integrations)")
    from perse.integrations import inspect_scorer

    monkeypatch.setattr(inspect_scorer, "_judge", lambda name: judge)
    score = inspect_scorer.reader_score("m", reviews=iter(REVIEWS))  # type: ignore[arg-type]
    for metadata in (None, {}, 5, ["x"]):
        wrote = SimpleNamespace(metadata=metadata, output=SimpleNamespace(completion="quiet"), sample_id=1, epoch=1)
        asyncio.run(score(wrote, None))
    engine = judge.engine
    assert len(engine.asked) == 4 and all("Warm." in one for one in engine.asked)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_inspect_ai_scores_what_a_model_wrote_for_the_reader_of_each_sample(
    judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed (the extra integrations)")
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import ModelOutput
    from inspect_ai.solver import Generate, TaskState, solver

    from perse.integrations import inspect_scorer

    monkeypatch.setattr(inspect_scorer, "_judge", lambda name: judge)

    @solver
    def writing() -> Any:
        """As a model would; inspect_ai's own stand-in for one fetches a tokenizer."""

        async def written(state: TaskState, generate: Generate) -> TaskState:
            state.output = ModelOutput.from_content("m", f"the new plot is {state.input_text}")
            return state

        return written

    samples = [Sample(input=word, id=word, metadata={"reviews": REVIEWS}) for word in ("quiet", "loud")]
    task = Task(dataset=samples, solver=writing(), scorer=inspect_scorer.reader_score("m"))
    [log] = eval(task, model="mockllm/model", log_dir=str(tmp_path), display="none", max_samples=1)
    assert log.status == "success", log.error
    scores = {sample.id: (sample.scores or {})["reader_score"] for sample in log.samples or []}
    first, second = scores["quiet"], scores["loud"]
    assert first.value == 9 and first.answer == "9"
    assert second.value != second.value and "unparsed" in (second.explanation or "")  # not scored, and not 0
    assert log.results is not None and log.results.scores[0].metrics["mean"].value == 9
    assert "Warm." in judge.engine.asked[0]  # type: ignore[union-attr]


@pytest.mark.slow
def test_evaluate_scores_texts_for_the_reader_of_each(judge: Judge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed (the extra integrations)")
    metric = evaluate.load(path("reader_score"), cache_dir=str(tmp_path))
    texts = ["the new plot is quiet", "the new plot is loud"]
    found = metric.compute(predictions=texts, reviews=[REVIEWS, REVIEWS], judge=judge)
    assert found == {"scores": [9.0, None], "mean_score": 9.0, "answered": 1}


@pytest.mark.parametrize(("module", "lacks"), [("inspect_scorer", "inspect_ai"), ("reader_score.reader_score", "evaluate")])
def test_a_library_that_is_not_here_is_asked_for_with_its_extra(
    module: str, lacks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [one for one in sys.modules if one.partition(".")[0] == lacks or one.startswith("perse.integrations.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, lacks, None)
    with pytest.raises(BadInput, match=rf"this needs {lacks}\S*, which is not installed; run: .*integrations"):
        importlib.import_module(f"perse.integrations.{module}")


def test_perse_needs_neither() -> None:
    assert importlib.util.find_spec("perse.integrations.inspect_scorer") is not None
    with pytest.raises(BadInput, match="no module 'nothing' of evaluate here; there is reader_score"):
        path("nothing")


def test_a_past_score_that_is_no_whole_number_is_refused_and_not_cut(judge: Judge) -> None:
    evaluate = pytest.importorskip("evaluate", reason="evaluate is not installed (the extra integrations)")
    metric = evaluate.load(path("reader_score"))
    with pytest.raises(BadInput, match="got a number with a fractional part"):
        metric.compute(predictions=["a new plot"], reviews=[[{**REVIEWS[0], "score": 9.9}]], judge=judge)
