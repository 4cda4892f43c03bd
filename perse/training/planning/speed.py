"""How fast this machine trains, by the clock: a few examples of the run itself, forward and back.

No data sheet says what a CPU reaches, or a GPU that is not listed. Operations a second are much the same for longer rows, so a
short one tells the hours of a run, and whatever stands in the weights: they are drawn at random, and none are fetched. The optimizer's
step, a small part of one, is not timed.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import torch

from perse.settings.training import TrainConfig
from perse.training.model.architecture import Architecture, drawn_model
from perse.training.planning.flops import passed, training_flops
from perse.training.planning.hardware import CPU, Device, device, reported
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import Branch
from perse.training.rows.schedule import Schedule
from perse.training.rows.trie import packed, row_size

TOKENS = 512
"""Of the row that is timed, where the run's rows are longer; its first example is timed whole."""
SECONDS = 4.0
"""For so long it is timed again and again; the median counts."""
MOST = 20


def device_here() -> Device:
    """What training takes on this machine; of a GPU whose data sheet is not known the memory alone is."""
    if not torch.cuda.is_available():
        return device(CPU)
    found = torch.cuda.get_device_properties(0)
    return reported(found.name) or Device(found.name, found.total_memory, None, None)


def reached(config: TrainConfig, described: Architecture, schedule: Schedule) -> float:
    """Operations a second that training reaches on this machine, counted as by `training_flops`."""
    settings = config.train
    place = "cuda" if torch.cuda.is_available() else CPU
    model = drawn_model(config, described, checkpointing=settings.gradient_checkpointing, place=place)
    weights = passed(model)
    assert weights is not None, "a mixture of experts is not planned"
    bf16 = settings.precision == "bf16"
    attention = set_attention(model, settings.attention, computed=torch.bfloat16 if bf16 else model.dtype)
    branches = short_row(schedule)
    batch = collate([packed(branches, share=schedule.share)], attention=attention)
    batch = {name: each.to(model.device) if isinstance(each, torch.Tensor) else each for name, each in batch.items()}
    labels, _ = batch.pop("labels"), batch.pop("reading", None)

    def timed() -> float:
        began = time.perf_counter()
        with torch.autocast(model.device.type, torch.bfloat16, enabled=bf16):
            outputs = model(**batch)
        answer_loss(outputs, labels).backward()  # type: ignore[no-untyped-call]
        model.zero_grad(set_to_none=True)
        if model.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter() - began

    model.train()
    times = [timed()]  # kernels are compiled in it, and memory is found: it counts where it takes all the time
    while sum(times) < SECONDS and len(times) < MOST:
        times.append(timed())
    size = row_size(branches, share=schedule.share)
    again = settings.gradient_checkpointing
    done = training_flops(weights, tokens=size.tokens, pairs=size.pairs, learned=size.read, recomputed=again)
    return done / statistics.median(times[1:] or times)


def short_row(schedule: Schedule) -> Sequence[Branch]:
    """The first row of a run, its examples up to `TOKENS` tokens, and one at least."""
    row = next(row for row in schedule.rows if row)
    taken = 1
    while taken < len(row) and row_size(row[: taken + 1], share=schedule.share).tokens <= TOKENS:
        taken += 1
    return row[:taken]
