"""The best weights are kept, patience ends a run, and a killed run goes on to the same best and the same stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerCallback, TrainerState
from watching_builders import judged_lines, losses, scripted, trained

from perse.rendering.prompt import Renderer
from perse.training.watch.trainer import Patience, WatchedTrainer, best_checkpoint, take_weights


def told(*lines: dict[str, float | None]) -> Any:
    left = iter(lines)
    return lambda model: next(left)


@pytest.mark.slow
def test_the_best_is_saved_when_it_is_found_and_outlives_newer_checkpoints(renderer: Renderer, tmp_path: Path) -> None:
    trainer, lines = trained(renderer, tmp_path, judging=scripted(0.1, 0.4, None, 0.2), save_steps=1)
    assert judged_lines(lines) == [(2, 0.1), (4, 0.4), (6, None), (8, 0.2)]
    assert sorted(path.name for path in tmp_path.glob("checkpoint-*")) == ["checkpoint-4", "checkpoint-8"]
    best = best_checkpoint(trainer.state, tmp_path)
    assert best == tmp_path / "checkpoint-4" and trainer.state.best_metric == 0.4
    take_weights(best, tmp_path / "trained")
    trainer.save_model(str(tmp_path / "last"))
    files = {path.name for path in (tmp_path / "last").iterdir()}
    assert {path.name for path in (tmp_path / "trained").iterdir()} == files
    weights = [(tmp_path / folder / "adapter_model.safetensors").read_bytes() for folder in ("trained", "checkpoint-4", "last")]
    assert weights[0] == weights[1] != weights[2]


@pytest.mark.slow
def test_a_best_between_two_saves_is_saved_too_and_a_loss_is_best_when_small(renderer: Renderer, tmp_path: Path) -> None:
    values = iter((0.5, 0.2, 0.3, 0.4))
    trainer, _ = trained(renderer, tmp_path, judging=lambda model: {"loss": next(values)}, best="loss", save_steps=100)
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4"


@pytest.mark.slow
def test_nothing_judged_or_never_with_a_number_keeps_the_last_weights(renderer: Renderer, tmp_path: Path) -> None:
    trainer, lines = trained(renderer, tmp_path, judging=scripted(None, None, None, None))
    assert judged_lines(lines) == [(2, None), (4, None), (6, None), (8, None)]
    assert best_checkpoint(trainer.state, tmp_path) is None and best_checkpoint(TrainerState(), tmp_path) is None


@pytest.mark.slow
def test_of_equal_judgings_the_one_with_the_lower_loss_is_best_else_the_first(renderer: Renderer, tmp_path: Path) -> None:
    numbers = [{"loss": loss, "accuracy": 0.5} for loss in (1.0, 0.9, 0.9, 0.95)]
    trainer, _ = trained(renderer, tmp_path, judging=told(*numbers), best="accuracy", save_steps=100, callbacks=[Patience(2)])
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4" and trainer.state.best_metric == 0.5
    assert trainer.state.global_step == 8 and trainer.control.should_training_stop


@pytest.mark.slow
def test_nothing_is_best_and_patience_waits_while_nothing_is_answered(renderer: Renderer, tmp_path: Path) -> None:
    numbers = [
        {"loss": 1.0, "accuracy": accuracy, "parse_rate": rate}
        for accuracy, rate in ((0.0, 0), (0.1, 0.5), (0.0, 0), (0.9, 0), (0.05, 0.5), (0.0, 0), (0.05, 0.5), (0.2, 0.5))
    ]
    trainer, _ = trained(
        renderer, tmp_path, judging=told(*numbers), every=1, best="accuracy", callbacks=[Patience(2)], save_steps=100
    )
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-2" and trainer.state.global_step == 7


@pytest.mark.slow
def test_the_loss_decides_whether_or_not_anything_is_answered(renderer: Renderer, tmp_path: Path) -> None:
    numbers = [{"loss": loss, "accuracy": 0.0, "parse_rate": 0} for loss in (6.91, 4.97, 4.80, 4.90)]
    trainer, _ = trained(renderer, tmp_path, judging=told(*numbers), best="loss", callbacks=[Patience(2)], save_steps=100)
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-6" and trainer.state.global_step == 8


@pytest.mark.slow
def test_a_run_that_goes_on_between_two_logged_steps_has_the_same_losses(renderer: Renderer, tmp_path: Path) -> None:
    """Logged every 3 steps, saved after 4 and 8, judged, and saved as the best, after 5."""
    settings: dict[str, Any] = {"logging_steps": 3, "save_steps": 4, "every": 5, "keep": 5}
    judging = lambda model: {"loss": 1.0, "kendall": 0.5}  # noqa: E731
    whole = losses(trained(renderer, tmp_path / "whole", judging=judging, **settings)[1])
    assert [step for step, _ in whole] == [3, 4, 5, 6, 8]
    for step in (4, 5):
        checkpoint = tmp_path / "whole" / f"checkpoint-{step}"
        _, rest = trained(renderer, tmp_path / f"from-{step}", judging=judging, resume=checkpoint, **settings)
        assert losses(rest) == [line for line in whole if line[0] > step]


@pytest.mark.slow
def test_training_ends_when_patience_does(renderer: Renderer, tmp_path: Path) -> None:
    values = (0.3, 0.1, 0.2, 0.9)
    trainer, lines = trained(renderer, tmp_path, judging=scripted(*values), callbacks=[Patience(2)], save_steps=1)
    assert judged_lines(lines) == [(2, 0.3), (4, 0.1), (6, 0.2)] and trainer.state.global_step == 6
    assert not (tmp_path / "checkpoint-6").exists(), "a kill right after the stop would go on from there"
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-2"


@pytest.mark.slow
def test_what_came_before_training_is_neither_best_nor_counted_by_patience(renderer: Renderer, tmp_path: Path) -> None:
    values = (0.9, 0.3, 0.4, 0.1, 0.2)
    trainer, lines = trained(
        renderer, tmp_path, judging=scripted(*values), callbacks=[Patience(2)], eval_on_start=True, save_steps=100
    )
    assert [step for step, _ in judged_lines(lines)] == [0, 2, 4, 6, 8]
    assert best_checkpoint(trainer.state, tmp_path) == tmp_path / "checkpoint-4"


@pytest.mark.slow
@pytest.mark.numeric
def test_a_killed_run_goes_on_to_the_same_best_and_the_same_stop(renderer: Renderer, tmp_path: Path) -> None:
    """Judged after steps 2, 4, 6, 8 with the best after 2; patience 3 would end at 8. Killed within step 6 (the checkpoint is
    of step 3): a history kept in memory would start again and know neither the best nor how long it has been."""
    script = {2: 0.5, 4: 0.1, 6: 0.2, 8: 0.3}

    class At(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            self.step = state.global_step

    def run(out: Path, **more: Any) -> tuple[WatchedTrainer, list[dict[str, Any]]]:
        at = At()
        judging = lambda model: {"loss": 1.0, "kendall": script[at.step]}  # noqa: E731
        return trained(renderer, out, judging=judging, callbacks=[at, Patience(3)], **more)

    whole, lines = run(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", stop_at=5)
    resumed, rest = run(tmp_path / "killed", resume=tmp_path / "killed" / "checkpoint-3")
    assert [line for line in losses(lines) if line[0] > 3] == losses(rest)
    assert judged_lines(rest) == [(4, 0.1), (6, 0.2), (8, 0.3)]
    assert best_checkpoint(resumed.state, tmp_path / "killed") == tmp_path / "killed" / "checkpoint-2"
    files = [tmp_path / run / "checkpoint-2" / "adapter_model.safetensors" for run in ("whole", "killed")]
    assert files[0].read_bytes() == files[1].read_bytes()
    assert whole.state.best_metric == resumed.state.best_metric == 0.5
    assert not (tmp_path / "whole" / "checkpoint-8").exists() and not (tmp_path / "killed" / "checkpoint-8").exists()
