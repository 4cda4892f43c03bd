"""Our metrics load by path into `evaluate`, offline, and say what our functions say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from places import ROOT

from perse.errors import BadInput
from perse.evaluation import hub
from perse.evaluation.hub.given import distributions, finite, scale_of
from perse.evaluation.stats.correlation import COEFFICIENTS, Convention, within_reviewers
from perse.evaluation.stats.ordinal import rps_values
from perse.evaluation.stats.ties import calibrated_pairs, reviewer_halves
from perse.scale import GRADES

GENERATOR = np.random.default_rng(5)
REVIEWERS = [f"reader {n}" for n in np.repeat(np.arange(8), 5)]
REFERENCES = GENERATOR.integers(1, 6, 40).astype(float).tolist()
PREDICTIONS = GENERATOR.normal(3, 1, 40).tolist()
DISTRIBUTIONS = GENERATOR.dirichlet(np.ones(5), 40).tolist()

# In a process of its own: `evaluate` reads where its caches are when it is imported.
# Without transformers' pipelines, which it would import: seconds of work that our metrics have no use for.
SCRIPT = """
import json, sys
sys.modules["transformers.pipelines"] = None
import evaluate
from perse.evaluation.hub import path
given = json.load(sys.stdin)
scores = {name: given[name] for name in ("predictions", "references", "reviewers")}
pairs = evaluate.load(path("tie_calibrated_pairs"))
found = {
    "within": evaluate.load(path("within_reviewer")).compute(**scores),
    "pairs": pairs.compute(**scores, seed=1),
    "pairs_given": pairs.compute(**scores, epsilon=0.5),
    "rps": evaluate.load(path("ranked_probability")).compute(
        predictions=given["distributions"], references=given["references"], labels=[1, 2, 3, 4, 5]
    ),
}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, float]]:
    pytest.importorskip("evaluate")
    offline = {"HF_HOME": str(tmp_path_factory.mktemp("hf")), "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    given = {"predictions": PREDICTIONS, "references": REFERENCES, "reviewers": REVIEWERS, "distributions": DISTRIBUTIONS}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        env=os.environ | offline | {"HF_EVALUATE_OFFLINE": "1"},
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, dict[str, float]] = json.loads(done.stdout)
    return result


def arrays() -> tuple[np.ndarray, np.ndarray, np.ndarray, list[str]]:
    names, reviewer = np.unique(REVIEWERS, return_inverse=True)
    return np.array(REFERENCES), np.array(PREDICTIONS), reviewer, names.tolist()


@pytest.mark.slow
def test_within_reviewer_loads_by_path_and_equals_the_function(found: dict[str, dict[str, float]]) -> None:
    gold, predicted, reviewer, _ = arrays()
    for name, coefficient in COEFFICIENTS.items():
        within = within_reviewers(coefficient, gold, predicted=predicted, reviewer=reviewer)
        assert found["within"][f"within_{name}"] == within.mean(Convention.SKIP_CONSTANT)
        assert found["within"][f"within_zero_{name}"] == within.mean(Convention.CONSTANT_AS_ZERO)


def test_tie_calibrated_pairs_load_by_path_and_equal_the_function(found: dict[str, dict[str, float]]) -> None:
    gold, predicted, reviewer, names = arrays()
    crossed = calibrated_pairs(gold, predicted, reviewer, fold_of_reviewer=reviewer_halves(names, seed=1))
    assert found["pairs"] == {"pair_accuracy": crossed.accuracy, "pairs": 80, "epsilons": list(crossed.epsilons)}
    assert found["pairs_given"]["epsilons"] == [0.5]


def test_ranked_probability_loads_by_path_and_equals_the_function(found: dict[str, dict[str, float]]) -> None:
    values = rps_values(np.array(REFERENCES), np.array(DISTRIBUTIONS), scale=GRADES)
    assert found["rps"]["rps"] == pytest.approx(values.mean(), abs=1e-12)


@pytest.mark.parametrize("name", hub.NAMES)
def test_every_metric_is_a_folder_with_a_file_of_its_name(name: str) -> None:
    assert (Path(hub.path(name)) / f"{name}.py").is_file()


def test_a_metric_that_is_not_shipped_is_refused() -> None:
    with pytest.raises(BadInput, match="no metric 'bleu' is shipped; expected one of within_reviewer"):
        hub.path("bleu")


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, None])
def test_what_was_not_answered_is_named_by_its_place_and_leaves_no_reader_out(odd: float) -> None:
    with pytest.raises(BadInput, match=r"predictions has (nan|-?inf) at place 2, expected finite numbers"):
        finite([1.0, odd, 3.0], "predictions")
    assert finite([1, 2], "predictions").tolist() == [1.0, 2.0] and finite([], "predictions").size == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([0.5, 0.4], "sum to 1"), ([1.5, -0.5], "of 0 and more"), ([np.nan, 1.0], "sum to 1"), ([1e308, 1e308], "sum to 1"),
        ([1.0], "has 1 probabilities at place 2, expected one for each of 2 labels"), (None, "has 0 probabilities at place 2"),
    ],
)  # fmt: skip
def test_what_is_no_distribution_has_no_ranked_probability(given: list[float], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        distributions([[0.25, 0.75], given], scale_of([1, 2]), "predictions")
    assert distributions([[0.25, 0.75], [1 / 3, 0.6667]], scale_of([1, 2]), "predictions").shape == (2, 2)


@pytest.mark.parametrize("labels", [[], [1], [1, 1], [2, 1], [np.nan, 1], ["a", "b"], [1, None]])
def test_labels_that_make_no_scale_are_refused(labels: list[Any]) -> None:
    with pytest.raises(BadInput, match="expected two finite numbers or more in ascending order"):
        scale_of(labels)


def test_a_metric_takes_no_answer_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in hub.NAMES:
        monkeypatch.setattr(sys, "path", [hub.path(name), *sys.path])
    nan = float("nan")
    pytest.importorskip("evaluate")
    from ranked_probability import RankedProbability  # type: ignore[import-not-found]
    from tie_calibrated_pairs import TieCalibratedPairs  # type: ignore[import-not-found]
    from within_reviewer import WithinReviewer  # type: ignore[import-not-found]

    who = ["a", "a", "b", "b"]
    for metric in (WithinReviewer, TieCalibratedPairs):
        with pytest.raises(BadInput, match="predictions has nan at place 1"):
            metric._compute(None, [nan, 2, 3, 4], [1, 2, 3, 4], who)
    for epsilon in (-1, nan, float("inf"), "x"):
        with pytest.raises(BadInput, match="epsilon is"):
            TieCalibratedPairs._compute(None, [1, 2, 3, 4], [1, 2, 3, 4], who, epsilon=epsilon)
    with pytest.raises(BadInput, match="expected probabilities"):
        RankedProbability._compute(None, [[nan, 1.0]], [1], labels=[1, 2])
    with pytest.raises(BadInput, match="none of the labels 1, 2"):
        RankedProbability._compute(None, [[0.5, 0.5]], [3], labels=[1, 2])
