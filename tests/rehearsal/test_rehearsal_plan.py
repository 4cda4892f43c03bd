"""A plan is the run, counted: it says what a run of the same settings asks."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest
from rehearsal_builders import Cast, Said, sample, step_of, usual

from perse.errors import BadInput
from perse.rehearsal.methods import PAPER
from perse.rehearsal.planning import Assumed, plan
from perse.rehearsal.settings import Settings
from perse.rehearsal.telling import plan_result

SAMPLES = [sample(1, product=[f"{n} is loud. " * 9 for n in range(9)]), sample(2)]


ANSWERS = count()


def passing_at_second(message: str) -> Said:
    """As a plan assumes by default; every answer differs from every other."""
    step = step_of(message)
    mark = f"{step} {next(ANSWERS)}"
    if step == "supervises":
        return f"Thought: {mark}\nSuggestions: {'No suggestions' if 'said again' in message else 'Say it again.'}"
    if step == "revises":
        return json.dumps({"Analysis": "I", "Suggestions": f"said again {mark}"})
    if step == "suggests":
        return json.dumps({"Analysis": "I", "Suggestions": mark})
    return json.dumps({"Summary": mark}) if '"Summary"' in message else usual(message)


ROLE_OF = {
    "wants the least relevant": "filter",
    "wants the nearest": "filter",
    "supervises": "supervisor",
    "revises": "user",
    "suggests": "user",
    "scores coverage": "judge",
    "scores sentiment": "judge",
}


@pytest.mark.parametrize(
    "settings", [{}, {"rewrites": 2, "practice_rounds": 1}, {"best": "last"}, {"best": "all", "max_iterations": 1}]
)
def test_a_plan_has_the_calls_of_the_run(tmp_path: Path, settings: dict[str, object]) -> None:
    cast = Cast(passing_at_second)
    cast.rehearse(tmp_path / "run", SAMPLES, list(PAPER), product_characters=600, **settings)
    asked = [ROLE_OF.get(step, "writer") for step in cast.steps()]
    found = plan(
        SAMPLES,
        list(PAPER),
        Settings(product_characters=600, **settings),
        assumed=Assumed(),
        scored=False,  # type: ignore[arg-type]
    )
    assert {role: load.calls for role, load in found.loads.items()} == {role: asked.count(role) for role in set(asked)}


def test_the_shared_part_is_what_prompts_begin_with() -> None:
    """Two questions about one product and its one review: all but the asks is shared by the second."""
    [one] = [sample(1, product=["x" * 6400])]
    found = plan([one], ["onlysum", "persum"], Settings(), assumed=Assumed(answer_tokens=10), scored=False).loads["writer"]
    assert found.calls == 2 and 1600 <= found.shared <= 1640  # 6,400 characters, a quarter of them tokens, and the words before


def test_an_engine_that_remembers_little_shares_little() -> None:
    """Two methods ask about one product after the other, of 30 products: what the second begins with is known only if all 30 are remembered."""
    samples = [sample(n, product=[f"{n} " + "x" * 640]) for n in range(30)]  # some 170 tokens each
    shared = [
        plan(samples, ["onlysum", "persum"], Settings(), assumed=Assumed(answer_tokens=10, cache=cache), scored=False)
        .loads["writer"]
        .shared
        for cache in (None, 30 * 400, 300)
    ]
    assert shared[0] == shared[1] >= 30 * 160 and shared[2] <= 60 * 24  # but for the words that all prompts begin with


def test_scores_are_counted_if_they_are_wanted() -> None:
    loads = [plan(SAMPLES, ["onlysum"], Settings(), assumed=Assumed(), scored=scored).loads for scored in (False, True)]
    assert "judge" not in loads[0] and loads[1]["judge"].calls == 2 * 6


def test_what_would_not_fit_is_told_by_step() -> None:
    long = sample(1, product=["word " * 4000])
    found = plan([long, sample(2)], ["onlysum"], Settings(max_new_tokens=100), assumed=Assumed(context=2000))
    assert found.none == {"general summary": 1}
    assert "1 prompts of 'general summary' would not fit" in " ".join(plan_result(found, prefill=None, decode=None).notes)


def test_hours_follow_from_the_rates() -> None:
    found = plan(SAMPLES, ["onlysum"], Settings(), assumed=Assumed(), scored=False)
    total = found.total
    told = plan_result(found, prefill=1.0, decode=0.5)
    hours = ((total.prompt - total.shared) / 1.0 + total.generated / 0.5) / 3600
    assert f"it takes {hours:.1f} hours." in told.answer
    assert not re.search("hour", plan_result(found, prefill=None, decode=None).answer)


def test_an_unknown_method_and_no_samples_are_refused() -> None:
    with pytest.raises(BadInput, match="unknown method 'magic'; there are persum"):
        plan(SAMPLES, ["magic"], Settings(), assumed=Assumed())
    with pytest.raises(BadInput, match="no samples"):
        plan([], ["onlysum"], Settings(), assumed=Assumed())


@pytest.mark.parametrize("name", ["rewrites", "practice_rounds", "max_iterations", "tries", "max_new_tokens"])
def test_a_number_that_no_run_could_end_with_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match=f"{name} is {10**30}, expected .* or less"):
        Settings(**{name: 10**30})  # type: ignore[arg-type]
