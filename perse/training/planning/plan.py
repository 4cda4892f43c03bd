"""Will it fit, and how long: what a training run needs, before anything is trained.

Everything comes from the code that trains: rows from `rows_apart`, the model from its own code, the loss from `batches`.
What is exact, what is predicted and what is assumed stands apart in a `Plan`: parameters, tokens, steps, weights, gradients
and optimizer state are exact; activations follow from the model's code; hours assume a utilisation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from torch import Tensor

from perse.errors import BadInput
from perse.rendering.prompt import Renderer
from perse.settings.training import TrainConfig
from perse.training.launched import Launched, Sharding
from perse.training.model.adapting import without_adapter
from perse.training.model.architecture import Architecture, architecture, meta_model
from perse.training.planning.disk import Disk, disk
from perse.training.planning.flops import passed, training_flops
from perse.training.planning.hardware import Device
from perse.training.planning.memory import Activations, activations, gathered, static_memory
from perse.training.planning.placement import ROW_STEP, Needs, Placement, chosen, placements, remedies
from perse.training.planning.speed import device_here, reached
from perse.training.rows.batches import answer_loss
from perse.training.rows.packable import check_packable
from perse.training.rows.prepare import Prepared, renderer_for
from perse.training.rows.row_loss import row_loss_for
from perse.training.watch.apart import rows_apart
from perse.training.watch.plan import WatchPlan
from perse.training.watch.run import watched_as_planned

MFU = 0.4
"""Assumed share of the peak that training reaches, what checkpointing computes twice counted twice."""
MEASURED = {"all weights": (0.28, 0.32), "adapters": (0.21, 0.24), "adapters on packed weights": (0.16, 0.18)}
"""What is trained -> least and largest share that short runs of such recipes reached on one H100, counted in the same way (docs/results.md, "Training: how fast?")."""


@dataclass(frozen=True)
class Work:
    """What a whole run computes: `tokens` of packed rows, what their branches would take one by one, query-key `pairs`,
    `learned` tokens, and `read`: places at which the next token is predicted, the learned ones and those that labels are read at."""

    tokens: int
    unshared: int
    pairs: int
    learned: int
    read: int


@dataclass(frozen=True)
class Plan:
    """What a run needs. Bytes, tokens and operations are whole numbers of each; `epochs` passes over the data.

    `row_off`, `row_on`: (tokens, places at which the next is predicted) of the row that takes the most without and with gradient checkpointing.
    `ways`: how it could be placed on the devices, the preferred first; `way`: the one to choose, None where none fits, and
    then `remedies` would help. `disk` is what that way writes, `flops` what it computes (`flops_off`, `flops_on`: without and with gradient
    checkpointing), and `hours` how long, judgings by `watch` included; None where the device's peak is not known.
    """

    parameters: int
    trainable: int
    examples: int
    too_long: int
    epochs: float
    steps: int
    rows: int
    work: Work
    row_off: tuple[int, int]
    row_on: tuple[int, int]
    needs: Needs
    device: Device
    devices: int
    ways: tuple[Placement, ...]
    way: Placement | None
    remedies: tuple[str, ...]
    flops: float
    flops_off: float
    flops_on: float
    mfu: float
    peak: float | None
    reached: float | None
    hours: float | None
    watch: WatchPlan | None
    disk: Disk
    notes: tuple[str, ...]
    trains: str
    """A name of `MEASURED`."""

    @property
    def shared(self) -> float:
        """Tokens one by one, for each token that is computed."""
        return self.work.unshared / self.work.tokens

    def hours_with(self, *, checkpointing: bool) -> float | None:
        """As `hours`, with gradient checkpointing or without, whichever way was chosen."""
        return None if self.hours is None else self.hours * (self.flops_on if checkpointing else self.flops_off) / self.flops


def plan(
    config: TrainConfig,
    *,
    device: Device,
    devices: int = 1,
    mfu: float = MFU,
    peak: float | None = None,
    quiet: bool = True,
    prepared: Prepared | None = None,
    measure: bool = False,
) -> Plan:
    """What the run of `config` would need on `devices` devices, each with rows of its own.

    Args:
        mfu: share of the peak that is assumed to be reached, by all that is computed: with checkpointing more than the log's `mfu`.
        peak: operations a second of one device, instead of its data sheet's.
        quiet: draw no progress bar.
        prepared: the rows, where they are made already.
        measure: time a short row where `device` is this machine's, the run fits it, and its peak is not known: some ten seconds.
    Raises:
        BadInput, ModelNotFound: as training would, and for a mixture of experts.
    """
    if devices < 1 or not 0 < mfu <= 1 or (peak is not None and peak <= 0):
        raise BadInput(f"found {devices} devices, utilisation {mfu} and peak {peak}; expected 1 or more, 0 to 1, and above 0")
    config.train.accumulation(devices)
    described = architecture(config.model.path, trust_remote_code=config.model.trust_remote_code)
    model = meta_model(config, described, checkpointing=False)
    weights, held = passed(model), static_memory(model, optimizer=config.train.optimizer)
    if weights is None:
        raise BadInput(
            f"model.path={config.model.path} is a mixture of experts, and what a row takes depends on the experts its tokens are "
            "sent to, which nobody knows beforehand; train with train.steps=1 to see"
        )
    prepared = prepared or rows_apart(config, _renderer(config, described), quiet=quiet)
    check_packable(without_adapter(model), longest=prepared.longest)
    sizes, work = _rows(prepared)
    low_precision = config.train.precision == "bf16"
    computed_in_16 = low_precision or config.model.dtype != "float32"
    whole = gathered(model, itemsize=2 if computed_in_16 else 4)
    parameters = list(model.parameters())
    counts = sum(each.numel() for each in parameters), sum(each.numel() for each in parameters if each.requires_grad)
    largest = {again: _heaviest(sizes, described.config, checkpointing=again) for again in (False, True)}

    def row_pass(again: bool, tokens: int) -> Activations:
        return activations(
            meta_model(config, described, checkpointing=again),
            tokens=tokens,
            learned=largest[again][1],
            loss=_loss(config, prepared, sizes.index(largest[again])),
            bf16=low_precision,
            checkpointing=again,
            attention=config.train.attention,
        )

    undivided = config.model.quantize is not None or config.train.optimizer != "adamw"
    off, on = (row_pass(again, largest[again][0]) for again in (False, True))
    needs = Needs(held, off, on, whole, whole=undivided)
    ways = placements(needs, devices=devices)
    way = chosen(ways, device.usable)

    def remedied() -> tuple[str, ...]:
        least = max(ROW_STEP, *(learned for _, learned in largest.values()))
        return remedies(
            needs,
            devices=devices,
            usable=device.usable,
            row=largest[True][0],
            shortest_row=prepared.longest + max(branch.beside for branch in prepared.schedule.rows[0]),
            least=(least, replace(needs, off=row_pass(False, least), on=row_pass(True, least))),
            rows_per_step=config.train.rows_per_step,
            lora_weights=2 * counts[0] if config.lora is None else None,
        )

    counted = partial(training_flops, weights, tokens=work.tokens, pairs=work.pairs, learned=work.read)
    flops_off, flops_on = counted(), counted(recomputed=True)
    flops = flops_on if way is None or way.checkpointing else flops_off
    sharding: Sharding = "fsdp2" if devices > 1 and (way or ways[-1]).sharded else "none"
    _, judged = watched_as_planned(config, prepared, process=Launched(devices, 0, sharding))
    peak = peak or (device.bfloat16 if computed_in_16 else device.float32)
    timed = measure and peak is None and way is not None and config.model.quantize is None and device.name == device_here().name
    speed = reached(config, described, prepared.schedule) if timed else None
    rate = peak * mfu if peak else speed
    return Plan(
        parameters=counts[0],
        trainable=counts[1],
        examples=prepared.examples,
        too_long=prepared.left_out,
        epochs=prepared.schedule.epochs,
        steps=prepared.schedule.steps,
        rows=len(sizes),
        work=work,
        row_off=largest[False],
        row_on=largest[True],
        needs=needs,
        device=device,
        devices=devices,
        ways=ways,
        way=way,
        remedies=() if way else remedied(),
        flops=flops,
        flops_off=flops_off,
        flops_on=flops_on,
        mfu=mfu,
        peak=peak,
        reached=speed,
        hours=flops / (rate * devices) / 3600 / (1 - (judged.share if judged else 0)) if rate else None,
        watch=judged,
        disk=disk(config, model, sharding),
        notes=(*described.notes, *filter(None, [prepared.unwatched])),
        trains="all weights" if config.lora is None else "adapters on packed weights" if config.model.quantize else "adapters",
    )


def _renderer(config: TrainConfig, described: Architecture) -> Renderer:
    from perse.models.opening import tokenizer as opened

    tokenizer = opened(described.tokenizer, trust_remote_code=config.model.trust_remote_code)
    if not described.notes:
        return renderer_for(config, described.tokenizer, tokenizer)
    context = min(config.model.context or described.context, described.context)
    return Renderer(tokenizer, context, max_words=config.data.max_words)


def _rows(prepared: Prepared) -> tuple[list[tuple[int, int]], Work]:
    """(tokens, places at which the next is predicted) of every row of the run that teaches something, and their sums."""
    rows = [size for size in map(prepared.schedule.size, range(len(prepared.schedule.rows))) if size.tokens]
    return [(size.tokens, size.read) for size in rows], Work(
        tokens=sum(size.tokens for size in rows),
        unshared=sum(size.unshared for size in rows),
        pairs=sum(size.pairs for size in rows),
        learned=sum(size.learned for size in rows),
        read=sum(size.read for size in rows),
    )


def _loss(config: TrainConfig, prepared: Prepared, at: int) -> Callable[[Any, Tensor], Tensor]:
    """Of row `at`, as training computes it. Rows that teach nothing come last, so that the place is the same without them."""
    loss = row_loss_for(config.train)
    return answer_loss if loss is None else partial(loss, reading=prepared.schedule.row(at).reading)


def _heaviest(sizes: Sequence[tuple[int, int]], config: Any, *, checkpointing: bool) -> tuple[int, int]:
    """The row whose pass takes the most memory, by a rule of thumb: a layer keeps some eight widths and four of its inner ones
    a token (its input alone with checkpointing), the loss three times the vocabulary a learned token."""
    text = config.get_text_config()
    a_layer = text.hidden_size if checkpointing else 8 * text.hidden_size + 4 * text.intermediate_size
    return max(sizes, key=lambda size: (size[0] * text.num_hidden_layers * a_layer + 3 * size[1] * text.vocab_size, size))
