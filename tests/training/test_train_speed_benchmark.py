"""The training benchmark compares equal work: on the same examples every arm has the same loss and gradient."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from builders import tiny_llama, whole_number_tokenizer

pytest.importorskip("trl", reason="TRL, which the benchmark compares with, is not installed")

import train_speed
from tolerances import forward, gradient
from train_arms import DEFAULT, OURS, WAYS, Scenario, Settings, Step, begin, examples_of, step

SCENARIOS = {
    "shared": Scenario(examples=4, shared=0.8, shortest=40, longest=40),
    "ragged": Scenario(examples=4, shared=0.0, shortest=9, longest=40),
}


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_llama(whole_number_tokenizer())


@pytest.fixture(scope="module", params=SCENARIOS)
def first_steps(request: pytest.FixtureRequest, model: Any, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Step]:
    examples = examples_of(SCENARIOS[request.param], 2, vocabulary=model.config.vocab_size, answer=3)
    folder = tmp_path_factory.mktemp("arms")
    return {name: step(begin(name, model, Settings(lora=4), examples, folder)) for name in WAYS}


@pytest.mark.slow
@pytest.mark.numeric
@pytest.mark.parametrize("name", [name for name in WAYS if name != OURS])
def test_an_arm_has_the_loss_and_gradient_of_ours(first_steps: dict[str, Step], model: Any, name: str) -> None:
    assert first_steps[name].loss == pytest.approx(first_steps[OURS].loss, rel=forward(model, 40))
    assert first_steps[name].norm == pytest.approx(first_steps[OURS].norm, rel=gradient(model, 160))


@pytest.mark.numeric
def test_all_weights_are_trained_alike_and_no_arm_changes_what_another_begins_with(tmp_path: Path) -> None:
    model = tiny_llama(whole_number_tokenizer())
    examples = examples_of(SCENARIOS["shared"], 2, vocabulary=model.config.vocab_size, answer=3)
    before = [weights.detach().clone() for weights in model.parameters()]
    found = [step(begin(name, model, Settings(lora=None), examples, tmp_path)) for name in (DEFAULT, OURS)]
    assert found[0].loss == pytest.approx(found[1].loss, rel=forward(model, 40))
    assert found[0].norm == pytest.approx(found[1].norm, rel=gradient(model, 160))
    assert all((one == two).all() for one, two in zip(before, model.parameters(), strict=True))


def test_arms_take_turns_and_each_is_first_once() -> None:
    order: list[str] = []

    def noted(arm: Any) -> Step:
        order.append(arm)
        return Step(1.0, 2.0, 3.0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(train_speed, "step", noted)
        train_speed.take_turns({"a": "a", "b": "b", "c": "c"}, 3)  # type: ignore[dict-item]
    assert order == ["a", "b", "c", "b", "c", "a", "c", "a", "b"]


def test_arms_that_learn_other_examples_are_not_compared() -> None:
    with pytest.raises(SystemExit, match="do not learn the same examples"):
        train_speed.same_loss({"a": [Step(1.0, 2.0, 1.0)], "b": [Step(1.0, 2.1, 1.0)]}, 1e-4)


def test_examples_share_what_their_scenario_says_and_are_drawn_anew_each_step() -> None:
    steps = examples_of(Scenario(4, 0.8, 40, 40), 2, vocabulary=500, answer=3)
    assert {branch.tokens for one in steps for branch in one} == {40}
    assert [{len(branch.segments[0]) for branch in one} for one in steps] == [{32}, {32}]
    assert [len({branch.segments[0] for branch in one}) for one in steps] == [1, 1]
    assert steps[0][0].segments[0] != steps[1][0].segments[0]
    assert steps == examples_of(Scenario(4, 0.8, 40, 40), 2, vocabulary=500, answer=3)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--steps", "6"], "--steps is 6; it must be 7 or more"),
        (["--layers", "0"], "--layers is 0; it must be 1 or more"),
        (["--lora", "none"], "--lora is 'none'; give a rank of 1 or more, or 'full'"),
        (["--lora", "full", "--dtype", "bfloat16"], "--lora full wants --dtype float32"),
        (["--answer", "60"], "--answer is 60, and an example of ragged has 60 tokens of its own; give fewer"),
    ],
)
def test_a_setting_that_compares_nothing_is_refused(given: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        train_speed.parse(["--scenarios", "ragged", *given])
    assert said in capsys.readouterr().err
