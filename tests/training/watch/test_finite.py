"""A loss or a gradient that is no number stops a run before the optimizer, and the step and its examples are named."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import TrainerCallback, TrainerState
from watching_builders import rows_to_train, trained

from perse.errors import BadInput
from perse.rendering.prompt import Renderer
from perse.training.finite import FiniteGradients, check_loss
from perse.training.rows.batches import answer_loss


@pytest.mark.slow
def test_a_loss_that_is_no_number_stops_before_the_optimizer_and_names_step_and_examples(
    renderer: Renderer, tmp_path: Path
) -> None:
    """The second row of step 3 is spoilt: its loss is NaN, its neighbour's is not."""
    calls = []

    def loss(outputs: Any, labels: Any, num_items_in_batch: Any = None) -> Any:
        calls.append(labels)
        return answer_loss(outputs, labels, num_items_in_batch) * (math.nan if len(calls) == 6 else 1.0)

    class Weights(TrainerCallback):
        def on_step_begin(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
            self.model, self.step = model, state.global_step + 1
            self.before = [weight.detach().clone() for weight in model.parameters()]

    seen = Weights()
    named = ", ".join(rows_to_train(renderer).step_rows(3)[1].example_ids)
    with pytest.raises(
        BadInput,
        match=rf"the loss of examples? {named} is nan in step 3, expected a finite number; look at.* in a new output folder; the",
    ):
        trained(renderer, tmp_path, callbacks=[seen], loss=loss, rows=2, save_steps=100)
    assert seen.step == 3
    assert all(torch.equal(*pair) for pair in zip(seen.before, seen.model.parameters(), strict=True))


def test_a_gradient_that_is_no_number_stops_before_the_optimizer(renderer: Renderer) -> None:
    plan = rows_to_train(renderer)
    model = torch.nn.Linear(2, 1)
    callback, state = FiniteGradients(plan), TrainerState(global_step=2)
    model.weight.grad, model.bias.grad = torch.ones(1, 2), torch.ones(1)
    callback.on_pre_optimizer_step(None, state, None, model=model)  # type: ignore[arg-type]
    model.bias.grad = torch.tensor([math.inf])
    first = plan.step_rows(3)[0].example_ids[0]
    with pytest.raises(
        BadInput, match=rf"the gradient of examples {first}, .* is not finite in step 3; look at these examples"
    ):
        callback.on_pre_optimizer_step(None, state, None, model=model)  # type: ignore[arg-type]


def test_only_the_row_whose_loss_is_no_number_is_named(renderer: Renderer) -> None:
    plan = rows_to_train(renderer)
    _, row = plan.step_rows(3)
    ids = torch.tensor([row.ids])
    check_loss(torch.tensor(1.5), schedule=plan, step=3, input_ids=ids)
    named = ", ".join(row.example_ids)
    with pytest.raises(BadInput, match=rf"the loss of examples {named} is nan in step 3, expected a finite number; look at"):
        check_loss(torch.tensor(math.nan), schedule=plan, step=3, input_ids=ids)
