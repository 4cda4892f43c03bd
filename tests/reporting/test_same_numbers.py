"""The report and the studies look at one run and tell one number."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from perse.batch.comparing import gather
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stats.results import Evaluation
from perse.files.runlog import write_whole
from perse.judgement import Judgement, Status, Tokens, judgement_line
from perse.records import (
    ChoiceReference,
    Example,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ReviewReference,
    example_lines,
)
from perse.reporting.report_data import RunData, report_data
from perse.reporting.trust_figures import reliability, risk_coverage
from perse.studies.calibration.risk_coverage import answers_of
from perse.studies.calibration.risk_coverage import risk_coverage as risk_coverage_study
from perse.studies.calibration.study import calibration
from perse.studies.frame.reading_runs import read_runs

TOKENS = Tokens(prompt=10, cached=0, generated=5)


def judged(id: str, question: str, distribution: dict[str, float]) -> Judgement:
    label = max(distribution, key=distribution.__getitem__)
    expected = None if "A" in distribution else sum(int(one) * p for one, p in distribution.items())
    return Judgement(
        id=id, question=question, status=Status.OK, label=label, expected=expected, distribution=distribution,
        text="", k_effective=0, tokens=TOKENS, model="m",
    )  # fmt: skip


def pairs(size: int = 60) -> tuple[list[Example], list[Judgement]]:
    """Probabilities on the edges of the bins too, where P(A) and P(B) fall apart, and draws that are none but for rounding."""
    examples: list[Example] = []
    judgements = []
    for n in range(size):
        a = (n % 11) / 10
        told = {"A": a, "B": 1 - a} if n % 11 != 5 else {"A": 0.5 + 1e-16, "B": 0.5 - 1e-16}
        reference = ChoiceReference(preference="A" if n % 3 else "B")
        query = Pair(text_a=f"x {n}", text_b=f"y {n}")
        examples.append(
            PairwiseExample(id=f"e{n}", reviewer_id=f"r{n % 9}", aspect="Ending", profile=(), query=query, reference=reference)
        )
        judgements.append(judged(f"e{n}", "pairwise", told))
    return examples, judgements


def texts(size: int = 60) -> tuple[list[Example], list[Judgement]]:
    generator = np.random.default_rng(0)
    examples: list[Example] = []
    judgements = []
    for n in range(size):
        p = generator.dirichlet(np.ones(10) / 3)
        reference = ReviewReference(review="r", score=1 + n % 10)
        examples.append(
            PointwiseExample(
                id=f"e{n}", reviewer_id=f"r{n % 9}", item_id=f"i{n}", profile=(), query=f"q {n}", reference=reference
            )
        )
        judgements.append(judged(f"e{n}", "pointwise_score", {str(at): float(one) for at, one in enumerate(p, start=1)}))
    return examples, judgements


@pytest.fixture(params=[pairs, texts])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A scoring run of pairs, then one of texts."""
    examples, judgements = request.param()
    out = tmp_path / "run"
    out.mkdir()
    settings = '{"temperature": 0, "max_new_tokens": 9, "seed": 0}'
    identity = f'{{"kind": "score", "question": "q", "fold": null, "judge": {{"model": "m"}}, "settings": {settings}}}'
    write_whole(out / "examples.jsonl", "".join(example_lines(examples)))
    write_whole(out / "judgements.jsonl", "".join(map(judgement_line, judgements)))
    write_whole(out / "timing.jsonl", "")
    write_whole(out / "manifest.json", f'{{"run": {identity}, "context": {{}}, "environment": {{}}}}')
    return out


def reported(run: Path) -> tuple[dict[str, RunData], Evaluation]:
    gathered = gather([run])
    return report_data(read_runs([run]).items), evaluate_many(gathered.judges, gathered.folds, resamples=100)


def test_the_calibration_error_of_a_run_is_one_number(run: Path, tmp_path: Path) -> None:
    study = calibration(run, tmp_path / "study", resamples=100)
    figure = reliability(*reported(run))
    [ours] = re.findall(r"is off by (\d\.\d{3}) on average", figure.alt)
    [theirs] = re.findall(r"is off by (\d\.\d{3}) on average", study.answer)
    assert ours == theirs
    # so are the bins, with their intervals
    came = [point.estimate for point in study.points if point.metric == "reliability" and not point.baseline]
    drawn = [(row[2], row[3], row[4], row[5]) for row in figure.rows]
    assert drawn == [(one.value, one.interval.low, one.interval.high, one.items) for one in came]


def test_the_risk_of_every_share_of_a_run_is_one_number(run: Path) -> None:
    items = read_runs([run]).items
    judges = {name: answers_of(items.examples, judgements) for name, judgements in items.judgements.items()}
    study = risk_coverage_study(judges, resamples=100)
    figure = risk_coverage(reported(run)[0])
    found = {
        order: [point.estimate.value for point in study.points if point.series == f"run, {order}"]
        for order in ("entropy", "oracle order", "random order")
    }
    drawn = np.array([[row[2], row[4], row[3]] for row in figure.rows], dtype=np.float64).T
    assert drawn == pytest.approx(np.array(list(found.values()), dtype=np.float64))
