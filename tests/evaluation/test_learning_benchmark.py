"""The comparison of ways to train: hand-derived errors over readers and seeds, and tables of what all judges answered."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from evaluation_builders import failed, noisy_judge, world
from learning import DETECTED, Arm, table
from scipy import stats

from perse.judgement import Judgement, judgement_line
from perse.records import example_lines

EXAMPLES = world(12)
JUDGES = {name: noisy_judge(EXAMPLES, noise=noise, seed=seed) for name, noise, seed in (("a", 5, 1), ("b", 1, 2), ("c", 1, 3))}
TRUE = {example.id: example.reference.score for example in EXAMPLES if example.reference}


def runs(folder: Path, judges: Mapping[str, list[Judgement]] = JUDGES) -> dict[str, Path]:
    """Folders as `perse score` writes them."""
    for name, judgements in judges.items():
        (folder / name).mkdir()
        (folder / name / "manifest.json").write_text(json.dumps({"run": {"kind": "score", "fold": None}, "context": {}}))
        (folder / name / "examples.jsonl").write_text("".join(example_lines(EXAMPLES)))
        (folder / name / "judgements.jsonl").write_text("".join(map(judgement_line, judgements)))
    return {name: folder / name for name in judges}


def kendall_by_scipy(judgements: list[Judgement], ids: set[str]) -> float:
    chosen = [one for one in judgements if one.id in ids]
    return float(stats.kendalltau([TRUE[one.id] for one in chosen], [one.expected for one in chosen])[0])


def test_the_error_of_one_judge_is_that_over_readers_alone() -> None:
    arm = Arm(np.array([0.3]), np.array([[0.2, 0.4, np.nan, 0.3]]))
    assert arm.value == 0.3 and arm.between_seeds == 0
    assert arm.error() == pytest.approx(0.1)  # the standard deviation of 0.2, 0.4, 0.3


def test_the_error_of_several_judges_adds_what_differs_between_their_seeds() -> None:
    arm = Arm(np.array([0.1, 0.2, 0.3]), np.array([[0.1, 0.3], [0.1, 0.3], [0.1, 0.3]]))
    assert arm.value == pytest.approx(0.2)
    assert arm.error() == pytest.approx(math.sqrt(0.02 + 0.01 / 3))


def test_a_difference_on_the_same_readers_has_the_error_of_the_seeds_alone() -> None:
    resampled = np.array([[0.1, 0.5, 0.3]])
    one, other = Arm(np.array([0.3]), resampled), Arm(np.array([0.5, 0.3]), np.vstack([resampled + 0.1] * 2))
    assert other.error(less=one) == pytest.approx(math.sqrt(0.02 / 2))
    assert other.error() > other.error(less=one)


def test_a_detectable_difference_is_found_in_four_of_five_repetitions() -> None:
    assert stats.norm.sf(stats.norm.ppf(0.975) - DETECTED) == pytest.approx(0.8)


def test_the_table_has_each_arms_kendall_and_the_difference_from_the_first(tmp_path: Path) -> None:
    folders = runs(tmp_path)
    lines = table({"noisy": [folders["a"]], "good": [folders["b"], folders["c"]]}, seen=set(), resamples=50, seed=0)
    a, b, c = (kendall_by_scipy(judgements, set(TRUE)) for judgements in JUDGES.values())
    assert lines[0] == "all: 120 items of 12 readers"
    assert any(line.startswith(f"| noisy | 1 | {a:.3f} | {a:.3f} |") for line in lines)
    assert any(line.startswith(f"| good | 2 | {b:.3f}, {c:.3f} | {(b + c) / 2:.3f} |") for line in lines)
    (difference,) = (
        line for line in lines[: lines.index("film seen in training: 0 items")] if line.startswith("good less noisy")
    )
    assert f"{(b + c) / 2 - a:+.3f} [" in difference
    low, high = (float(end) for end in re.findall(r"[\[ ](-?\d\.\d{3})[,\]]", difference)[:2])
    detected = float(difference.partition("a difference of ")[2].split()[0])
    assert detected == pytest.approx((high - low) / 2 / 1.96 * DETECTED, abs=2e-3)


def test_films_that_were_trained_on_stand_apart_from_the_others(tmp_path: Path) -> None:
    folders = runs(tmp_path)
    seen = {f"i{n}" for n in range(20)}
    lines = table({"b": [folders["b"]]}, seen=seen, resamples=20, seed=0)
    ids = {example.id for example in EXAMPLES if example.item_id in seen}
    for words, chosen in (("film seen in training", ids), ("film not seen", set(TRUE) - ids)):
        at = next(n for n, line in enumerate(lines) if line.startswith(f"{words}: {len(chosen)} items"))
        of_b = next(line for line in lines[at:] if line.startswith("| b |"))
        assert of_b.startswith(f"| b | 1 | {kendall_by_scipy(JUDGES['b'], chosen):.3f} |")


def test_what_one_judge_did_not_answer_counts_for_none(tmp_path: Path) -> None:
    left_out = EXAMPLES[0].id
    judges = {"a": [failed(left_out), *JUDGES["a"][1:]], "b": JUDGES["b"]}
    folders = runs(tmp_path, judges)
    lines = table({"a": [folders["a"]], "b": [folders["b"]]}, seen=set(), resamples=20, seed=0)
    assert lines[0] == "all: 119 items of 12 readers"
    assert any(line.startswith(f"| b | 1 | {kendall_by_scipy(judges['b'], set(TRUE) - {left_out}):.3f} |") for line in lines)
