"""What `train_speed.py` compares: one optimizer step of TRL's SFTTrainer, set in several ways, and of ours.

Every arm trains a copy of one model on the same token ids in the same order, with the same dtype, optimizer and number of
examples a step. A step is done as `Trainer.train` does it: collation, forward and backward passes, clipping, optimizer; the
arms' own loops are not run, so that they can take turns. Ours is the trainer of `perse train` with what it checks in every
step, and its arguments; TRL is told the same.

Off CUDA, TRL 1.16 puts every token of a prompt through the LM head. "+head" are the same arms with the head at the learned
tokens only, as TRL itself has it on CUDA: better than what can be had from it there, and what ours should be held against.
"""

from __future__ import annotations

import copy
import gc
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from perse.identity import draw
from perse.settings.training import Attention, Data, Lora, Model, Train, TrainConfig
from perse.training.finite import FiniteGradients
from perse.training.launched import ALONE
from perse.training.model.adapting import adapted
from perse.training.planning.flops import passed
from perse.training.rows.attention import set_attention
from perse.training.rows.batches import answer_loss, collate
from perse.training.rows.branches import Branch
from perse.training.rows.schedule import RowDataset, Schedule
from perse.training.throughput import Throughput
from perse.training.trainer import training_arguments
from perse.training.watch.trainer import Kept, WatchedTrainer

TOLD = (
    "output_dir",
    "max_steps",
    "learning_rate",
    "weight_decay",
    "max_grad_norm",
    "bf16",
    "seed",
    "train_sampling_strategy",
    "dataloader_pin_memory",
    "use_cpu",
    "report_to",
    "disable_tqdm",
)
"""Arguments of ours that TRL is given; the rest, such as the optimizer, is the Trainer's default in both."""


@dataclass(frozen=True)
class Scenario:
    """`examples` a step, `shortest` to `longest` tokens each (evenly drawn); the share `shared` of the longest is common."""

    examples: int
    shared: float
    shortest: int
    longest: int


SCENARIOS = {
    "4-branches": Scenario(4, 0.8, 360, 360),
    "8-branches": Scenario(8, 0.8, 360, 360),
    "equal": Scenario(4, 0.0, 360, 360),
    "ragged": Scenario(4, 0.0, 60, 340),
}


@dataclass(frozen=True)
class Way:
    """How an arm trains; `single`: one example a forward; `head`: the LM head at the learned tokens only; `attention`: of ours, the
    default's where it is None."""

    trl: bool = True
    checkpointing: bool = False
    single: bool = False
    padding_free: bool = False
    head: bool = False
    attention: Attention | None = None


OURS = "ours"
DEFAULT = "trl-default"
WAYS = {
    DEFAULT: Way(checkpointing=True),
    "trl-padded": Way(),
    "trl-single": Way(single=True),
    "trl-padding-free": Way(padding_free=True),
    f"{DEFAULT}+head": Way(checkpointing=True, head=True),
    "trl-padded+head": Way(head=True),
    "trl-single+head": Way(single=True, head=True),
    "trl-padding-free+head": Way(padding_free=True, head=True),
    OURS: Way(trl=False),
    f"{OURS}-tree": Way(trl=False, attention="tree"),
}


@dataclass(frozen=True)
class Settings:
    """What all arms have in common. `lora`: rank, or None to train all weights; `autocast`: compute in bfloat16;
    `attention`: TRL's, ours has its own."""

    lora: int | None
    autocast: bool = False
    attention: str = "sdpa"


@dataclass(frozen=True)
class Arm:
    """A trainer in the middle of its run."""

    way: Way
    trainer: Any
    model: Any
    batches: Iterator[Any]


@dataclass(frozen=True)
class Step:
    """Wall time, mean loss of a learned token before the step, and the gradient's norm before it is clipped."""

    seconds: float
    loss: float
    norm: float


def examples_of(scenario: Scenario, steps: int, *, vocabulary: int, answer: int) -> list[tuple[Branch, ...]]:
    """Random examples for each step; the last `answer` tokens of each are learned."""
    made = []
    for at in range(steps):
        rng = draw(0, str(at), "train speed")
        known = range(min(100, vocabulary // 2), vocabulary)  # special tokens come first
        profile = tuple(rng.choices(known, k=round(scenario.shared * scenario.longest)))
        branches = []
        for n in range(scenario.examples):
            own = tuple(rng.choices(known, k=rng.randint(scenario.shortest, scenario.longest) - len(profile)))
            prompt = (profile, own[:-answer]) if profile else (own[:-answer],)
            branches.append(Branch(f"{at}-{n}", prompt, own[-answer:], len(prompt) - 1, 1, 1))
        made.append(tuple(branches))
    return made


def begin(name: str, base: Any, settings: Settings, examples: Sequence[tuple[Branch, ...]], folder: Path) -> Arm:
    """The arm `name` with its copy of `base`, ready for its first step. LoRA arms share the frozen weights."""
    way = WAYS[name]
    frozen = {} if settings.lora is None else {id(weights): weights for weights in base.parameters()}
    model = copy.deepcopy(base, frozen)
    model.config.use_cache = False
    if way.trl:
        model.set_attn_implementation(settings.attention)
    config = _config(settings, base)
    torch.manual_seed(config.train.seed)  # the adapter's first weights
    model = adapted(model, config.lora, checkpointing=False)
    arguments = training_arguments(config, folder, steps=len(examples), watching=None, begun=False, process=ALONE)
    trainer = _trl(way, model, arguments, examples) if way.trl else _ours(way, model, arguments, examples)
    if way.checkpointing:
        trainer.model.gradient_checkpointing_enable()  # as Trainer.train does first
    trainer.create_optimizer()
    model, trainer.optimizer = trainer.accelerator.prepare(trainer.model, trainer.optimizer)
    return Arm(way, trainer, model, iter(trainer.get_train_dataloader()))


def _config(settings: Settings, base: Any) -> TrainConfig:
    """The settings as `perse train` would be given them."""
    rank = settings.lora
    return TrainConfig(
        model=Model(path="benchmark", dtype=str(base.dtype).removeprefix("torch.")),
        data=Data(path="benchmark"),
        lora=None if rank is None else Lora(rank=rank, alpha=2 * rank),
        train=Train(learning_rate=1e-4, precision="bf16" if settings.autocast else "as_loaded"),
        watch=None,
        output="benchmark",
    )


def _trl(way: Way, model: Any, ours: Any, examples: Sequence[tuple[Branch, ...]]) -> Any:
    import datasets
    from trl import SFTConfig, SFTTrainer

    datasets.disable_progress_bars()
    branches = [branch for step in examples for branch in step]
    data = {
        "input_ids": [[*branch.prompt, *branch.answer] for branch in branches],
        "completion_mask": [[0] * len(branch.prompt) + [1] * len(branch.answer) for branch in branches],
    }
    a_step = len(examples[0])
    arguments = SFTConfig(
        per_device_train_batch_size=1 if way.single else a_step,
        gradient_accumulation_steps=a_step if way.single else 1,
        gradient_checkpointing=way.checkpointing,
        padding_free=way.padding_free,
        max_length=None,  # no example is cut short
        completion_only_loss=True,
        **{name: getattr(ours, name) for name in TOLD},
    )
    return SFTTrainer(model, arguments, train_dataset=datasets.Dataset.from_dict(data), processing_class=_tokenizer())


def _ours(way: Way, model: Any, arguments: Any, examples: Sequence[tuple[Branch, ...]]) -> Any:
    """As perse.training.trainer has it, with rows that are given instead of drawn, and nobody watched."""
    rows = Schedule(tuple(examples), rows_per_step=1, epochs=1, share=True)
    throughput = Throughput(rows, passed(model), peak=None)
    return WatchedTrainer(
        model=model,
        args=arguments,
        train_dataset=RowDataset(rows),
        data_collator=partial(collate, attention=set_attention(model, way.attention)),
        compute_loss_func=answer_loss,
        callbacks=[FiniteGradients(rows), throughput],
        speed=throughput.numbers,
        kept=Kept(Path(arguments.output_dir), 1, ALONE, {}),
    )


def _tokenizer() -> Any:
    """TRL wants one for its padding token; the examples are token ids already."""
    from tokenizers import Tokenizer, models
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({"[UNK]": 0, "[END]": 1, "[PAD]": 2}, unk_token="[UNK]"))
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", eos_token="[END]", pad_token="[PAD]")


def step(arm: Arm) -> Step:
    """One optimizer step, callbacks included."""
    trainer, count = arm.trainer, arm.trainer.args.gradient_accumulation_steps
    told, called = (trainer.args, trainer.state, trainer.control), trainer.callback_handler
    _settle()
    begun = time.perf_counter()
    called.on_step_begin(*told)
    with mock.patch("trl.trainer.utils._use_triton", lambda _: True) if arm.way.head else nullcontext():
        batches, learned = trainer.get_batch_samples(arm.batches, count, trainer.args.device)
        trainer.current_gradient_accumulation_steps = count
        losses = [trainer.training_step(arm.model, batch, learned) for batch in batches]
    norm = trainer.accelerator.clip_grad_norm_(arm.model.parameters(), trainer.args.max_grad_norm)
    called.on_pre_optimizer_step(*told)
    trainer.optimizer.step()
    arm.model.zero_grad()
    trainer.state.global_step += 1
    called.on_step_end(*told)
    _settle()
    return Step(time.perf_counter() - begun, float(torch.stack(losses).sum()), float(norm))


def _settle() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def peak(arm: Arm, steps: int) -> int:
    """Bytes in use at the most while `steps` steps are made, above those in use before (CPU: resident, Linux only)."""
    gc.collect()
    if torch.cuda.is_available():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
    else:
        before = _resident("VmRSS")
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # VmHWM, the highest resident size, begins anew
    for _ in range(steps):
        step(arm)
    return (torch.cuda.max_memory_allocated() if torch.cuda.is_available() else _resident("VmHWM")) - before


def _resident(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))
