"""Curves and trackers show what the run log has, and one that is missing is said in a sentence."""

from __future__ import annotations

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from transformers import TrainerCallback
from transformers.integrations.integration_utils import INTEGRATION_TO_CALLBACK
from watching_builders import scripted, trained

from perse.errors import BadInput, SaveFailed
from perse.installing import install
from perse.rendering.prompt import Renderer
from perse.training.curves import training_figure, write_curves
from perse.training.trackers import guarded, tracker_names, trackers


def test_curves_are_drawn_into_the_run_folder(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    (tmp_path / "log.jsonl").write_text(
        '{"step": 1, "loss": 3.5}\n{"step": 2, "loss": 3.0}\n{"step": 2, "eval_kendall": 0.1}\n'
    )
    path = write_curves(tmp_path)
    assert path == tmp_path / "curves.png" and path.read_bytes()[:4] == b"\x89PNG"
    first = path.read_bytes()
    write_curves(tmp_path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("odd", ["1e308", "1e60", "-1e308", "1" + "0" * 400, "true", "NaN", "Infinity"])
def test_a_damaged_number_of_a_log_is_not_drawn_and_nothing_is_said_of_it(
    tmp_path: Path, odd: str, recwarn: pytest.WarningsRecorder
) -> None:
    lines = [
        '{"step": 1, "loss": 2.0}',
        f'{{"step": 2, "loss": {odd}}}',
        f'{{"step": {odd}, "loss": 2.0}}',
        '{"step": 3, "loss": 1.5}',
    ]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + "\n")
    assert training_figure(tmp_path / "log.jsonl").rows == ((1, 2.0, None), (3, 1.5, None))
    assert not recwarn.list


def test_a_missing_matplotlib_is_a_sentence_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "log.jsonl").write_text('{"step": 1, "loss": 3.5}\n')
    for name in ("matplotlib", "matplotlib.backends.backend_svg", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    with caplog.at_level("INFO"):
        assert write_curves(tmp_path) is None
    assert install("report") in caplog.text and not (tmp_path / "curves.png").exists()


def test_unknown_and_missing_trackers_are_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tracker_names(()) == ()
    with pytest.raises(BadInput, match=r"train.report_to names 'tensorbord'; choose from tensorboard, wandb, trackio, mlflow"):
        tracker_names(("tensorbord",))
    monkeypatch.setattr("perse.training.trackers.find_spec", lambda name: None if name == "wandb" else object())
    assert tracker_names(None) == ("tensorboard",) and tracker_names(("mlflow", "mlflow")) == ("mlflow",)
    with pytest.raises(BadInput, match="names wandb, which is not installed; pip install wandb, or leave it out"):
        tracker_names(("wandb",))


class Tracker(TrainerCallback):
    """One of the Trainer's, that cannot reach its server from an event on."""

    def __init__(self, event: str) -> None:
        self.event, self.told = event, []  # type: ignore[var-annotated]

    def on_train_begin(self, *_: Any, **__: Any) -> None:
        self._reach("on_train_begin")

    def on_log(self, *_: Any, **__: Any) -> None:
        self._reach("on_log")

    def on_save(self, *_: Any, **__: Any) -> None:
        self._reach("on_save")

    def _reach(self, event: str) -> None:
        self.told.append(event)
        if event == self.event:
            raise ConnectionError("http://me:pass-w0rd@nowhere:5000 does not answer\nand more")


@pytest.mark.slow
def test_a_tracker_that_cannot_begin_is_refused_in_a_sentence_without_its_password(renderer: Renderer, tmp_path: Path) -> None:
    with pytest.raises(BadInput) as refused:
        trained(renderer, tmp_path / "run", callbacks=[guarded("mlflow", Tracker("on_train_begin"))])
    said = str(refused.value)
    assert (
        said.startswith("mlflow cannot follow this run (ConnectionError: http://") and "take it out of train.report_to" in said
    )
    assert "pass-w0rd" not in said and "\n" not in said


@pytest.mark.slow
def test_a_tracker_that_fails_later_is_left_out_and_training_goes_on(
    renderer: Renderer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tracker = Tracker("on_log")
    trained(renderer, tmp_path / "run", callbacks=[guarded("mlflow", tracker)])
    assert tracker.told == ["on_train_begin", "on_log"]
    assert caplog.text.count("mlflow fails (ConnectionError") == 1 and "pass-w0rd" not in caplog.text


def test_a_tracker_whose_library_is_damaged_is_refused_in_a_sentence_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged() -> None:
        raise RuntimeError("http://me:pass-w0rd@nowhere:5000 is read at import\nand more")

    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "wandb", damaged)
    with pytest.raises(BadInput, match="wandb cannot be loaded .*; install it anew, or leave it out of train") as refused:
        trackers(("wandb",), tmp_path)
    assert "pass-w0rd" not in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("event", ["on_train_begin", "on_log"])
def test_a_tracker_that_exits_does_not_end_training_as_if_it_were_done(event: str, caplog: pytest.LogCaptureFixture) -> None:
    class Leaving(TrainerCallback):
        def on_train_begin(self, *_: Any, **__: Any) -> None:
            if event == "on_train_begin":
                raise SystemExit(0)

        def on_log(self, *_: Any, **__: Any) -> None:
            raise SystemExit(0)

    callback: Any = guarded("wandb", Leaving())
    if event == "on_train_begin":
        with pytest.raises(BadInput, match=r"wandb cannot follow this run \(SystemExit: 0\)"):
            callback.on_train_begin()
    else:
        callback.on_train_begin()
        callback.on_log()
        assert "wandb fails (SystemExit: 0), and is told nothing from here on" in caplog.text


def test_ctrl_c_while_a_tracker_is_told_ends_training_and_not_the_tracker() -> None:
    class Slow(TrainerCallback):
        def on_log(self, *_: Any, **__: Any) -> None:
            raise KeyboardInterrupt

    callback: Any = guarded("wandb", Slow())
    with pytest.raises(KeyboardInterrupt):
        callback.on_log()


def test_a_tracker_that_exits_when_it_is_imported_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def leaving() -> None:
        raise SystemExit("no account\nat all")

    monkeypatch.setitem(INTEGRATION_TO_CALLBACK, "trackio", leaving)
    with pytest.raises(BadInput, match=r"trackio cannot be loaded \(SystemExit: no account\); install it anew"):
        trackers(("trackio",), tmp_path)


def test_a_tensorboard_that_is_not_whole_is_refused_where_it_was_asked_for_and_left_out_where_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("perse.training.trackers.find_spec", lambda name: object())
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)  # as one made for another numpy: it cannot be imported
    assert tracker_names(None) == ()
    assert "the curves are in log.jsonl alone: tensorboard cannot be loaded" in caplog.text
    with pytest.raises(BadInput, match="tensorboard cannot be loaded .*; install it anew, or leave it out of train.report_to"):
        trackers(("tensorboard",), tmp_path)


@pytest.mark.slow
def test_tensorboard_gets_what_the_run_log_gets(renderer: Renderer, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    trained(
        renderer,
        tmp_path / "checkpoints",
        judging=scripted(0.1, 0.4, None, 0.2),
        callbacks=trackers(("tensorboard",), tmp_path),
    )
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [(one.step, round(one.value, 3)) for one in events.Scalars("eval/kendall")] == [(2, 0.1), (4, 0.4), (8, 0.2)]
    assert [one.step for one in events.Scalars("train/loss")] == list(range(1, 9))
    assert json.dumps(sorted(path.name for path in tmp_path.iterdir())) == '["checkpoints", "tensorboard"]'


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # the writer's thread ends of it
def test_tensorboard_that_cannot_write_any_more_is_left_out_and_training_goes_on(
    renderer: Renderer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("tensorboard", reason="not installed")
    writers: Any = importlib.import_module("tensorboard.summary.writer.record_writer").RecordWriter
    write, written = writers.write, []

    def full_for_a_while(self: Any, record: bytes) -> None:
        # Of a step: what is written as training begins may be late, in a thread of its own.
        if b"train/loss" in record and not written:
            written.append(record)
            raise OSError(28, "No space left on device")
        write(self, record)

    monkeypatch.setattr(writers, "write", full_for_a_while)
    trained(renderer, tmp_path / "checkpoints", callbacks=trackers(("tensorboard",), tmp_path))
    assert caplog.text.count("tensorboard fails (OSError: [Errno 28] No space left on device)") == 1
    assert (tmp_path / "checkpoints" / "checkpoint-8").is_dir()


@pytest.mark.slow
def test_tensorboard_writes_through_no_link_and_into_no_file(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "tensorboard").symlink_to(tmp_path / "mine")
    with pytest.raises(BadInput, match="tensorboard is a link to .*mine, and is not written through"):
        trackers(("tensorboard",), tmp_path)
    assert not list((tmp_path / "mine").iterdir())
    (tmp_path / "tensorboard").unlink()
    (tmp_path / "tensorboard").write_text("mine")
    with pytest.raises(SaveFailed, match="tensorboard could not be written"):
        trackers(("tensorboard",), tmp_path)


@pytest.mark.slow
def test_tensorboard_forgets_a_run_that_begins_again(renderer: Renderer, tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def steps(name: str) -> list[int]:
        events = EventAccumulator(str(tmp_path / "tensorboard"))
        events.Reload()
        return [one.step for one in events.Scalars(name)]

    with pytest.raises(KeyboardInterrupt):
        trained(renderer, tmp_path / "killed", stop_at=3, callbacks=trackers(("tensorboard",), tmp_path), save_steps=100)
    assert steps("train/loss") == [1, 2, 3]
    killed = int(time.time())
    while int(time.time()) == killed:  # files of one second are read by their names, where 10 comes before 9
        time.sleep(0.05)
    trained(renderer, tmp_path / "again", callbacks=trackers(("tensorboard",), tmp_path), logging_steps=4, save_steps=4)
    assert steps("train/loss") == [4, 8]
