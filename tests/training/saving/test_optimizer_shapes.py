"""What a resumed run takes of an optimizer's state: native code would write beyond the end of a smaller one."""

from __future__ import annotations

import pytest
import torch

from perse.training.watch.trainer import _check_shapes


def stepped() -> torch.optim.AdamW:
    weight = torch.nn.Parameter(torch.ones(4, 3))
    optimizer = torch.optim.AdamW([weight])
    weight.sum().backward()
    optimizer.step()
    return optimizer


def test_the_state_of_a_step_is_as_its_parameter() -> None:
    _check_shapes(stepped())


def test_a_moment_of_another_shape_is_refused() -> None:
    optimizer = stepped()
    next(iter(optimizer.state.values()))["exp_avg"] = torch.zeros(3)
    with pytest.raises(ValueError, match=r"'exp_avg' of the optimizer has shape \(3,\), its parameter \(4, 3\)"):
        _check_shapes(optimizer)
