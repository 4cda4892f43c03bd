"""What `perse rehearsal run` says at its end: where chance stood in for an answer, and how many passed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from perse.rehearsal.folder import RATES, TRACES, Filtered, Round, RunSummary, Trace, Version, summary_of_run

PARTLY_NAMED = Filtered(removed=(1, 2, 3), drawn=(3,), history=1, history_drawn=True)
BY_CHANCE = "1 of 3 product reviews that went were drawn at random, since the filter did not name enough; 1 of 1 reviews of a history were drawn at random"


def summary(folder: Path, *traces: Trace) -> RunSummary:
    (folder / TRACES).write_text("".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in traces))
    (folder / "manifest.json").write_text(json.dumps({"run": {"kind": "rehearsal"}}))
    return summary_of_run(folder)


@pytest.mark.parametrize("method", ["rehearsal", "personal"])
def test_what_was_drawn_is_said_of_a_rewriting_and_of_the_personal_judges_rounds(tmp_path: Path, method: str) -> None:
    """The filter named two of the three reviews that went."""
    trace = (
        Trace(
            sample="s1",
            method=method,
            summary="A.",
            filtered=PARTLY_NAMED,
            versions=(Version(summary="A.", score=1.0),),
            kept=1,
        )
        if method == "rehearsal"
        else Trace(sample="s1", method=method, summary="A.", rounds=(Round(filtered=PARTLY_NAMED),))
    )
    assert summary(tmp_path, trace).chance == {method: BY_CHANCE}


def test_no_version_is_said_to_be_kept_of_a_sample_that_has_none(tmp_path: Path) -> None:
    none = Trace(
        sample="s1", method="role", summary=None, failed="rewriting: x", versions=(Version(summary=None, failed="x"),) * 2
    )
    unscored = Trace(sample="s2", method="role", summary="A.", versions=(Version(summary="A."),), kept=1)
    assert summary(tmp_path, none).chance == {}
    assert summary(tmp_path, none, unscored).chance == {
        "role": "of 1 sample the judge scored no version, and the last one was kept"
    }


@pytest.mark.parametrize(
    ("rate", "told"), [(499 / 500, "99.8%"), (1 / 500, "0.2%"), (1.0, "100%"), (0.0, "0%"), (2 / 3, "67%")]
)
def test_nearly_all_is_not_said_to_be_all(tmp_path: Path, rate: float, told: str) -> None:
    (tmp_path / RATES).write_text(json.dumps({"practice 1": [rate]}))
    assert (
        f"practice 1: {told} passed after 1 iteration"
        in summary(tmp_path, Trace(sample="s1", method="role", summary="A.")).lines()
    )
