"""What ZeRO-3 does to groups of weights as it reads a checkpoint of other devices is undone."""

from __future__ import annotations

import torch

from perse.training.saving.reshard import give_groups_their_own


def two_groups() -> torch.optim.AdamW:
    weights = [torch.nn.Parameter(torch.ones(2)) for _ in range(2)]
    groups = [{"params": [weights[0]], "weight_decay": 0.1}, {"params": [weights[1]], "weight_decay": 0.0, "lr": 0.4}]
    optimizer = torch.optim.AdamW(groups, lr=0.1, fused=True)
    step(optimizer)
    return optimizer


def step(optimizer: torch.optim.Optimizer) -> None:
    sum((weight**2).sum() for group in optimizer.param_groups for weight in group["params"]).backward()  # type: ignore[union-attr]
    optimizer.step()
    optimizer.zero_grad()


def test_each_group_has_its_settings_and_counts_its_own_steps_again() -> None:
    whole, read = two_groups(), two_groups()
    one = next(iter(read.state.values()))["step"]
    for kept in read.state.values():  # as DeepSpeed leaves them
        kept["step"] = one
    for group in read.param_groups:
        group |= {"lr": 0.1, "weight_decay": 0.1}
    give_groups_their_own(read, rates=[0.1, 0.4], decays=[0.1, 0.0])
    for optimizer in (whole, read):
        step(optimizer)
    assert [kept["step"].item() for kept in read.state.values()] == [2, 2]
    for ours, theirs in zip(read.param_groups, whole.param_groups, strict=True):
        assert torch.equal(ours["params"][0], theirs["params"][0])
