"""What a resumed run takes of an optimizer's state: native code would write beyond the end of a smaller one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from transformers import Adafactor

from perse.training.optimizers import check_shapes


def stepped() -> torch.optim.Optimizer:
    weight = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return optimizer


def stepped_in_8_bits() -> torch.optim.Optimizer:
    bitsandbytes = pytest.importorskip("bitsandbytes", reason="moments of 8 bits are bitsandbytes', of the extra `cluster`")
    weight = torch.nn.Parameter(torch.ones(80, 60))
    optimizer = bitsandbytes.optim.AdamW([weight], optim_bits=8)
    weight.sum().backward()
    optimizer.step()
    return optimizer  # type: ignore[no-any-return]


def stepped_by_rows_and_columns() -> torch.optim.Optimizer:
    weight = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = Adafactor([weight], lr=0.1, relative_step=False, scale_parameter=False)
    weight.sum().backward()
    optimizer.step()
    return optimizer


@pytest.mark.parametrize("made", [stepped, stepped_in_8_bits, stepped_by_rows_and_columns])
def test_the_state_of_a_step_is_as_its_parameter(made: Callable[[], torch.optim.Optimizer]) -> None:
    check_shapes(made())


@pytest.mark.parametrize(
    ("made", "part"),
    [
        (stepped, "exp_avg"),
        (stepped_in_8_bits, "state1"),
        (stepped_in_8_bits, "absmax2"),
        (stepped_in_8_bits, "qmap1"),
        (stepped_by_rows_and_columns, "exp_avg_sq_row"),
        (stepped_by_rows_and_columns, "exp_avg_sq_col"),
    ],
)
def test_a_part_of_another_shape_is_refused(made: Callable[[], torch.optim.Optimizer], part: str) -> None:
    optimizer = made()
    ((parameter, state),) = optimizer.state.items()
    state[part] = torch.zeros(2)
    shape = str(tuple(parameter.shape)).replace("(", r"\(").replace(")", r"\)")
    with pytest.raises(ValueError, match=rf"'{part}' of the optimizer has shape \(2,\), its parameter {shape}"):
        check_shapes(optimizer)
