"""All figures of one run of scores and of one of pairs, drawn once."""

from __future__ import annotations

import pytest
from figure_builders import GOLD, NEAR, by_name, choices, evaluation, scores

from perse.drawing.figure import Figure


@pytest.fixture(scope="session")
def pointwise() -> dict[str, Figure]:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    from perse.reporting.run_figures import run_figures

    run = scores("ours", GOLD, NEAR)
    return by_name(run_figures({"ours": run}, evaluation(run)))


@pytest.fixture(scope="session")
def pairwise() -> dict[str, Figure]:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    from perse.reporting.run_figures import run_figures

    run = choices("ours")
    return by_name(run_figures({"ours": run}, evaluation(run)))
