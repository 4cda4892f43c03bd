"""The bound that numeric tests stand on holds for sums in any order, and is far below what a fault does."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from builders import tiny_llama
from tolerances import EPS, LOGITS, forward, gradient, logprob, rounding, share

pytestmark = pytest.mark.numeric


@pytest.mark.parametrize("length", [32, 600, 50_000])
def test_a_sum_in_any_order_stays_within_the_bound(length: int) -> None:
    """One term after the other, as no kernel is slow enough to do, of equal signs, so that the terms' size is the sum's."""
    generator = torch.Generator().manual_seed(length)
    terms = torch.rand(length, generator=generator)
    exact = float(terms.double().sum())
    for _ in range(20):
        shuffled = terms[torch.randperm(length, generator=generator)]
        one_by_one = float(shuffled.cumsum(0)[-1])
        assert abs(one_by_one - exact) / exact <= rounding(length) / 2
        assert abs(float(shuffled.sum()) - exact) / exact <= rounding(length) / 2


def test_the_bound_grows_with_the_root_of_the_number_of_additions() -> None:
    assert rounding(100) == 10 * EPS and rounding(64, 36) == rounding(100)


def test_a_pass_in_float32_is_within_the_bound_of_float64_and_one_place_off_is_far_outside(tokenizers: dict[str, Any]) -> None:
    model = tiny_llama(tokenizers["whole_numbers"])
    ids = torch.randint(0, model.config.vocab_size, (1, 200), generator=torch.Generator().manual_seed(0))
    allowed = logprob(model, 200)
    with torch.inference_mode():
        single = model(ids).logits.double()
        places = torch.arange(200)[None]
        places[0, 100:] += 1
        shifted = model(ids, position_ids=places).logits.double()
        exact = model.double()(ids).logits
    assert float(exact.abs().max()) <= LOGITS
    assert float((single - exact).abs().max()) <= allowed / 2
    assert float((shifted - exact).abs().max()) > 100 * allowed


def test_logarithms_that_move_by_the_bound_move_no_label_by_more_than_its_share(tokenizers: dict[str, Any]) -> None:
    model = tiny_llama(tokenizers["whole_numbers"])
    generator = torch.Generator().manual_seed(0)
    allowed, moved = logprob(model, 200), 0.0
    for scale in (0.0, 1.0, 4.0):
        logs = scale * torch.randn(500, 2, generator=generator, dtype=torch.float64)
        shifts = allowed * torch.randn(500, 2, generator=generator, dtype=torch.float64).sign()
        moved = max(moved, float(((logs + shifts).softmax(-1) - logs.softmax(-1)).abs().max()))
    assert 0.9 * share(model, 200) < moved <= share(model, 200) * (1 + 1e-6)


def test_a_gradient_is_allowed_more_than_a_loss_and_less_than_a_ten_thousandth(tokenizers: dict[str, Any]) -> None:
    model = tiny_llama(tokenizers["whole_numbers"])
    assert forward(model, 200) < gradient(model, 200) < 1e-4
