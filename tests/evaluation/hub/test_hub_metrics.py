"""Our metrics load by path into `evaluate`, offline, and say what our functions say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from places import ROOT

from perse.errors import BadInput
from perse.evaluation import hub
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
