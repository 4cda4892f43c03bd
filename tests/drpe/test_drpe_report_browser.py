"""The page of votes in a real browser, offline: every vote can be read, found and reached, and nothing in it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from vote_builders import CLERK, SAILOR, Poll, document

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.drpe.reporting.report import write_report
from perse.drpe.roles import Role

pytestmark = pytest.mark.integration

EVIL = "</script><script>window.stolen = 1</script><img src=x onerror='window.stolen = 2'>"


def told(message: str, seed: int) -> str:
    """Why, and for what; one role does not answer about ferry 2 in one prompt."""
    if "[User 2]" not in message:
        return f"Reason: {'dates' if 'Clerk' in message else 'sails'} matter {EVIL}.\nVote: Text A"
    second = "" if "Ferry 2 " in message else "\nReason 2: dates matter.\nVote 2: Text B"
    return f"Reason 1: sails matter.\nVote 1: Text A{second}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    roles = (SAILOR, CLERK, Role(type="Guest", description=EVIL, source="static"))
    run = Poll(told).vote(folder / "run", [document(n) for n in (1, 2, 3)], roles, prompting=("single", "batch"))
    return write_report([run], folder / "report", baselines=None, resamples=100, seed=0, title=f"A title {EVIL}")


def opened(page: Any, name: str) -> Any:
    page.locator("#sample-table .opens", has_text=name).first.click()
    page.wait_for_selector("dialog[open] .cards")
    return page.locator("dialog[open]")


def test_an_opened_candidate_tells_who_voted_for_it_in_which_order_and_why(visit: Any, made: Path) -> None:
    page = visit(made)
    dialog = opened(page, "d1 · M2")
    words = dialog.inner_text()
    assert "It sank." in words and "Ferry 1 sails again." in words and "coherence 2.00" in words
    assert "Sailor" in words and "invented, by occupation and intent: Asks whether the ferry sails." in words
    assert words.count("reference first: for the reference") == 3 and words.count("candidate first: for the candidate") == 3
    assert "dates matter" in words and "Votes: 6 ballots" in words
    dialog.locator("[name=shown-prompting]").select_option("1")
    page.wait_for_function("() => document.querySelector('dialog[open]').innerText.includes('without a vote')")
    assert "no vote" in dialog.inner_text()


def test_candidates_are_found_filtered_and_ordered(visit: Any, made: Path) -> None:
    page = visit(made)
    count = page.locator("#sample-count")
    count.get_by_text("6 of 6 samples").wait_for()
    page.locator("[name=system]").select_option(label="M2")
    count.get_by_text("3 of 6 samples").wait_for()
    page.locator("[name=search]").fill("Ferry 3")
    count.get_by_text("1 of 6 samples").wait_for()
    page.locator("button[type=reset]").click()
    count.get_by_text("6 of 6 samples").wait_for()
    page.locator("[name=order]").select_option("people")
    assert page.locator("#sample-table tbody .opens").first.inner_text().endswith("M2")


def test_nothing_that_roles_texts_or_reasons_say_runs(visit: Any, made: Path) -> None:
    page = visit(made)
    dialog = opened(page, "d1 · M1")
    assert EVIL in dialog.inner_text()
    assert page.evaluate("() => window.stolen === undefined") and page.locator("dialog img").count() == 0
