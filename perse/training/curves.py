"""The curves of a training run, from its log: loss and the results of judging; also drawn into its folder."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perse.drawing.figure import Figure
from perse.drawing.marks import DIM, LINE, draw, empty, style
from perse.errors import BadInput
from perse.evaluation.metrics import METRICS
from perse.files.own_files import write_own_bytes
from perse.files.runlog import read_lines
from perse.formats.json_text import is_amount

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Sheet

log = logging.getLogger(__name__)

CURVES = "curves.png"
LARGEST = 1e30
"""Numbers beyond it are not drawn: losses are hundreds of nats at most, and an axis cannot be scaled to them."""
_LOSSES = {"loss": "loss", "eval_loss": "validation loss"}
_JUDGED = {
    "eval_kendall": METRICS["kendall"].title,
    "eval_accuracy": METRICS["accuracy"].title,
    "eval_within_one": "within one label",
    "eval_parse_rate": "parse rate",
}
"""The numbers judged while training, by their names in the log, with their headings."""


def write_curves(run: Path, *, lines: str = "log.jsonl") -> Path | None:
    """Draw the run's log as `CURVES`; without matplotlib the log says so and nothing is drawn."""
    try:
        figure = training_figure(run / lines)
    except BadInput as error:
        log.info("no %s: %s", CURVES, error)
        return None
    write_own_bytes(run / CURVES, figure.png)
    return run / CURVES


def training_figure(path: Path, *, name: str = "training") -> Figure:
    """The loss over the steps of a training, from its log.jsonl, and below it the results of judging, if there were any.

    Raises:
        BadInput: a line of the log is damaged.
    """
    lines = read_lines(path)
    steps: dict[int, dict[str, float]] = {}
    for line in lines:
        drawn = {key: float(line[key]) for key in (*_LOSSES, *_JUDGED) if _can_be_drawn(line.get(key))}
        if _is_step(line.get("step")) and drawn:
            steps[line["step"]] = steps.get(line["step"], {}) | drawn
    curves = {
        key: [(step, values[key]) for step, values in sorted(steps.items()) if key in values] for key in (*_LOSSES, *_JUDGED)
    }
    judged = [key for key in _JUDGED if curves[key]]
    title = "Loss and judgements during training" if judged else "Loss during training"
    header = ("step", *_LOSSES.values(), *(_JUDGED[key] for key in judged))
    if not any(curves.values()):
        return empty(name, title=title, reason="the log holds no losses", header=header)
    kept = next((line["step"] for line in reversed(lines) if "best" in line and _is_step(line.get("step"))), None)

    def paint(sheet: Sheet) -> None:
        upper, *lower = sheet.subplots(2 if judged else 1, 1, squeeze=False, sharex=True).ravel()
        _curves(upper, {label: curves[key] for key, label in _LOSSES.items()}, kept)
        upper.set(ylabel="loss", ylim=(0, None))
        for axis in lower:
            _curves(axis, {_JUDGED[key]: curves[key] for key in judged}, kept)
            least = min(value for key in judged for _, value in curves[key])
            axis.set(ylabel="judged", ylim=(min(0.0, least) - 0.03, 1.03))
        (lower or [upper])[-1].set_xlabel("step")

    courses = [
        _course(f"{word} loss", curves[key]) for key, word in (("loss", "training"), ("eval_loss", "validation")) if curves[key]
    ]
    courses += [_course(_JUDGED[key], curves[key]) for key in judged]
    words = "; ".join(courses)
    return draw(
        name,
        paint,
        height=5.0 if judged else 2.6,
        title=title,
        alt=f"{words[:1].upper()}{words[1:]}." + ("" if kept is None else f" The weights of step {kept} were kept."),
        header=header,
        rows=[(step, *(values.get(key) for key in (*_LOSSES, *judged))) for step, values in sorted(steps.items())],
    )


def _can_be_drawn(value: object) -> bool:
    """Whether it is a number that fits on an axis; a log that was damaged may have others."""
    return type(value) in (int, float) and abs(value) < LARGEST  # type: ignore[arg-type]


def _is_step(value: object) -> bool:
    return type(value) is int and is_amount(value)


def _curves(axis: Axes, curves: Mapping[str, Sequence[tuple[int, float]]], kept: int | None) -> None:
    """A line for each label that has points; `kept`: the step whose weights were kept."""
    drawn = {label: points for label, points in curves.items() if points}
    for nth, (label, points) in enumerate(drawn.items()):
        look = style(nth)
        mark = look.marker if len(points) < 60 else ""
        word = {"loss": "training", "validation loss": "validation"}.get(label, label)
        axis.plot(*zip(*points, strict=True), color=look.colour, marker=mark, markersize=3.5, linestyle=look.dash, label=word)
    if kept is not None:
        axis.axvline(kept, color=DIM, linewidth=1, linestyle=(0, (1, 2)), label="kept")
    axis.grid(color=LINE)
    if len(drawn) > 1 or kept is not None:
        axis.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=3, borderaxespad=0.2, handlelength=1.9, columnspacing=1.2)


def _course(label: str, points: Sequence[tuple[int, float]]) -> str:
    (first, start), (last, end) = points[0], points[-1]
    if len(points) == 1:
        return f"the {label} was {start:.2f} at step {first}"
    return f"the {label} went from {start:.2f} at step {first} to {end:.2f} at step {last}"
