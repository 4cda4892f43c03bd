"""Settings of a training run, and the packaged recipes (configs/train)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.rendering.prompt import ANSWER_TOKENS, MAX_WORDS
from perse.settings.config import LOCAL, Section, load_settings, packaged_recipes
from perse.settings.watching import Watch

Attention = Literal["flex", "tree", "mask"]
"""How a row's tokens are kept to their own paths: `tree` computes nothing else; `mask` works for any attention."""

MIN_LR_RATE, POWER, WSD_DECAY = 0.1, 2.0, 0.1
"""What the schedulers with a value of their own take where none is given."""
Optimizer = Literal["adamw", "adamw_8bit", "paged_adamw_8bit", "adafactor"]
"""What makes a step of a gradient; `perse.training.optimizers` says what each keeps."""


class Model(Section):
    path: str
    """Folder, embedded name or hub name of the model to start from."""
    dtype: Literal["float32", "bfloat16", "float16"] = "bfloat16"
    """Type the weights are held in. Full fine-tuning wants float32 here and `train.precision: bf16`; float16 is refused."""
    quantize: Literal["nf4"] | None = None
    """Hold the frozen linear layers in 4 bits (QLoRA), computed in `dtype`; the merged model is made of the whole weights."""
    context: int | None = Field(default=None, ge=64, le=1_000_000_000)
    """Longest prompt and answer in tokens; by default what the model was made for."""
    trust_remote_code: bool = False
    """Run code that the model brings; without it none is run, and a model that needs it is refused."""


class Mixed(Section):
    path: Annotated[str, LOCAL] = Field(min_length=1)
    """As `data.path`."""
    weight: float = Field(default=1.0, gt=0, le=100)
    """How often its examples are seen in a pass over `data.path`."""


class Data(Section):
    path: Annotated[str, LOCAL] = Field(min_length=1)
    """A data set folder, or a file of exported JSON lines."""
    mix: tuple[Mixed, ...] = ()
    """More data sets to learn from, each with the weight of its examples: `[{path: work/books, weight: 0.5}]`. Of 2, each is seen twice in a
    pass over `path`; of 0.5, half of them, and the other half in the next. What is said here of `path` (split, question, view) goes for all; only readers of
    `path` are watched."""
    split: Literal["train", "valid"] = "train"
    """Side of a data set folder to train on."""
    fold: int | None = Field(default=None, ge=0)
    """Of a cross-fitted data set: train on all folds but this one."""
    question: str | None = None
    """What to learn to answer; by default `pointwise` or `pairwise` after the data."""
    max_examples: int | None = Field(default=None, ge=1)
    """Train on a seeded sample of this many examples; of a data set drawn by epoch, and of a mixture that shows parts of a set
    in turn, on another sample in every epoch."""
    k: int | None = Field(default=None, ge=0)
    """Profile entries to show, at most what the folder keeps; by default its own k. PerSE retrains for each (figure 3)."""
    order_seed: int | None = Field(default=None, ge=0)
    """Shuffle every profile by this seed; by default oldest first."""
    review_text: bool = True
    """False leaves the review texts out of the profiles (PerSE, table 5)."""
    profile_aspects: Literal["all", "asked"] = "all"
    """Pairs: show all preferences of a profile entry, or only the aspect that is asked."""
    aspect: str | None = None
    """Pairs: learn the examples of this aspect alone; by default of all (PerSE, figure 5, compares the two)."""
    answer_tokens: int = Field(default=ANSWER_TOKENS, ge=1)
    """Room kept for the answer, so that a prompt has the same profile here as when judging (PerSE, section 4.2)."""
    max_words: int = Field(default=MAX_WORDS, ge=1)
    """Longest prompt in words (PerSE, section 4.1)."""

    @property
    def view(self) -> View:
        """How the profiles are shown."""
        return View(k=self.k, order_seed=self.order_seed, review_text=self.review_text, profile_aspects=self.profile_aspects)


class Lora(Section):
    rank: int = Field(default=16, ge=1, le=65_536)
    """Inner width of an adapter: what it can learn, and what it takes of memory, grows with it."""
    alpha: int = Field(default=32, ge=1, le=1_000_000)
    """The adapter's output is multiplied by `alpha / rank`; with `rslora` by `alpha` over the root of `rank`."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of an adapter's inputs left out while training; none where branches share tokens (`train.max_shared_examples` above 1)."""
    targets: str | tuple[str, ...] = "all-linear"
    """Modules that get an adapter, as peft names them."""
    dora: bool = False
    """DoRA: learn the length of every row of weights apart from its direction. Slower; vLLM serves it merged only."""
    rslora: bool = False
    """Rank-stabilized LoRA: large ranks learn as fast as small ones. See `alpha`."""
    plus: float | None = Field(default=None, ge=1)
    """LoRA+: the learning rate of an adapter's second matrix (B, which begins at 0) by that of the first; null: the same."""
    modules_to_save: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Modules that are trained whole beside the adapter, such as `[embed_tokens, lm_head]` where these are not tied; wants
    `model.dtype: float32`. vLLM serves it merged only."""

    @model_validator(mode="after")
    def _trained_in_one_way(self) -> Self:
        targets = (self.targets,) if isinstance(self.targets, str) else self.targets
        if both := sorted({*targets} & {*(self.modules_to_save or ())}):
            raise ValueError(
                f"'{both[0]}' is in targets and in modules_to_save, and would be trained whole alone; name it in one of them"
            )
        return self


class Train(Section):
    epochs: float = Field(default=1.0, gt=0, le=10_000)
    """Passes over the data. A data set drawn per reviewer and epoch has other profiles in each."""
    steps: int | None = Field(default=None, ge=1, le=1_000_000)
    """Optimizer steps; when given, `epochs` does not count."""
    batch_size: int = Field(default=4, ge=1, le=1_000_000)
    """Examples per device and forward pass at most: they stand in one packed row."""
    row_tokens: int | None = Field(default=None, ge=64, le=1_000_000_000)
    """Tokens of a row at most; by default as many as `batch_size` examples of the longest kind could take."""
    max_shared_examples: int = Field(default=8, ge=1, le=1_000_000)
    """Examples of one group (the same profile) that share its tokens in a row, at most; 1 shares nothing. Where `batch_size` is
    more, the rest of a row is for other profiles."""
    attention: Attention | None = None
    """How a row's examples are kept apart; all are exact. By default the first that the model and the device take: `flex` (one kernel,
    compiled for GPUs), `tree` (computes the same piece by piece), `mask` (for models whose attention cannot be exchanged)."""
    rows_per_step: int = Field(default=1, ge=1, le=1_000_000)
    """Rows of an optimizer step, over all devices; the world size must divide it, so a step is the same on any number of them."""
    world_size: int | None = Field(default=None, ge=1)
    """Processes that must train together; another number, which launchers fall back to in silence, is refused. Null: any."""
    rank_weight: float = Field(default=0.0, ge=0, le=1000)
    """Weight of a second loss beside that of the answers: of every two texts of a row that one reader scored differently, the logistic loss
    of the difference of their expected scores (RankNet), averaged over a step's pairs. 0: none."""
    ordinal_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Soft labels: the share of a score's target that goes to the two scores beside it, half to each (0.5: 1/4, 1/2, 1/4); what has no
    place beyond an end of the scale stays on the true score. 0: the true score alone."""
    learning_rate: float = Field(gt=0)
    """The highest that the schedule reaches. LoRA wants ten times and more what full fine-tuning does."""
    optimizer: Optimizer = "adamw"
    """What makes a step of a gradient. In 8 bits (bitsandbytes) AdamW's state takes a quarter, `paged_` moves it to the machine's
    memory while a GPU needs the room, and `adafactor` keeps next to nothing; all but `adamw` want every device to hold the whole."""
    scheduler: Literal[
        "constant", "constant_with_warmup", "linear", "cosine", "cosine_with_min_lr", "polynomial", "inverse_sqrt", "wsd"
    ] = "cosine"
    """How the learning rate goes on after the warm-up; linear, cosine, polynomial and wsd (which falls at the end alone) end at 0."""
    min_lr_rate: float | None = Field(default=None, gt=0, lt=1)
    """Of `cosine_with_min_lr`: the share of the learning rate at which it ends; by default 0.1."""
    power: float | None = Field(default=None, gt=0)
    """Of `polynomial`: it falls as what is left of the steps to this power; by default 2."""
    decay: float | None = Field(default=None, gt=0, lt=1)
    """Of `wsd`: the share of the steps, the last ones, in which it falls as half a cosine; by default 0.1."""
    warmup: float = Field(default=0.03, ge=0, lt=1)
    """Share of the steps in which the learning rate rises, from 0 in the first; a run of one step has none."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Share of a trained weight, times the learning rate, that the optimizer takes off in a step; biases and norms are spared."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """A step whose gradient is longer than this is shortened to it."""
    precision: Literal["as_loaded", "bf16"] = "as_loaded"
    """`bf16` computes in bfloat16 over weights held in `model.dtype`."""
    gradient_checkpointing: bool = False
    """Compute the layers again on the way back instead of keeping what they made: less memory, a third to half more work."""
    liger: bool | None = None
    """Fused norms and MLPs of liger-kernel: null uses them on CUDA where they are installed, true refuses to train without."""
    seed: int = Field(default=0, ge=0, lt=2**32)
    """What the order of the data, the adapter's first weights and every sample are drawn by."""
    save_every: int = Field(default=50, ge=1)
    """Steps between checkpoints: the most that a kill can lose."""
    save_minutes: float | None = Field(default=None, gt=0)
    """A checkpoint, too, after the first step that ends so many minutes after the last one, whatever a step takes; null: by steps alone."""
    keep_checkpoints: int = Field(default=2, ge=1)
    """The last so many checkpoints stay, and the best judged."""
    log_every: int = Field(default=5, ge=1)
    """Steps between lines of log.jsonl."""
    report_to: tuple[Literal["tensorboard", "wandb", "trackio", "mlflow"], ...] | None = None
    """Where the log's numbers go besides log.jsonl; by default to TensorBoard, if it is installed."""

    @model_validator(mode="after")
    def _schedule_is_one(self) -> Self:
        for name, scheduler in (("min_lr_rate", "cosine_with_min_lr"), ("power", "polynomial"), ("decay", "wsd")):
            given = getattr(self, name)
            if given is not None and self.scheduler != scheduler:
                raise ValueError(
                    f"{name} is {given:g}, which only scheduler={scheduler} reads, and it is {self.scheduler}; leave one out"
                )
        if self.rank_weight and self.batch_size == 1:
            raise ValueError(
                f"rank_weight is {self.rank_weight:g}, which compares the texts of a row, and batch_size is 1, one text in each; raise batch_size and "
                "max_shared_examples, or leave rank_weight out"
            )
        if self.scheduler == "inverse_sqrt" and not self.warmup:
            raise ValueError("scheduler is inverse_sqrt, which falls from the warm-up on, and warmup is 0; set it above")
        if self.scheduler == "wsd" and self.warmup + (self.decay or WSD_DECAY) > 1:
            raise ValueError(
                f"warmup and decay of scheduler=wsd are more than all steps ({self.warmup:g} + {self.decay or WSD_DECAY:g}); lower one"
            )
        return self

    @property
    def reads_labels(self) -> str:
        """The setting for which the distribution of every example's label is computed; empty where none wants it."""
        names = ("rank_weight", "ordinal_smoothing")
        return next((f"train.{name}={getattr(self, name):g}" for name in names if getattr(self, name)), "")

    def accumulation(self, world_size: int) -> int:
        """Rows of a step that each of `world_size` devices computes, one after the other.

        Raises:
            BadInput: they cannot be divided.
        """
        rows, left = divmod(self.rows_per_step, world_size)
        if left:
            below, above = self.rows_per_step - left, self.rows_per_step + world_size - left
            near = f"{below} or {above}" if below else str(above)
            fewer = self.batch_size * self.rows_per_step // world_size
            alike = f" and train.batch_size={fewer}, for about as many examples a step" if not below and fewer else ""
            raise BadInput(
                f"train.rows_per_step is {self.rows_per_step}, which {world_size} devices cannot divide; set it to {near}{alike}, or train "
                "on a number of devices that divides it"
            )
        return rows


class TrainConfig(Section):
    model: Model
    """What to start from."""
    data: Data
    """What to learn from."""
    lora: Lora | None = None
    """Train a small adapter on frozen weights; null trains all weights."""
    train: Train
    """How to train."""
    watch: Watch | None = Watch()
    """Judging readers who are not trained on, while training; null: none."""
    output: Annotated[str, LOCAL] = Field(min_length=1)
    """The run folder. The same command continues what it finds there."""

    @model_validator(mode="after")
    def _weights_can_be_trained(self) -> Self:
        if self.model.dtype == "float16":
            raise ValueError(
                "model.dtype is float16, whose small gradients vanish without a loss scaler, and there is none here; set "
                "model.dtype=bfloat16, or float32"
            )
        if self.lora is None and self.model.quantize is not None:
            raise ValueError(
                f"model.quantize is {self.model.quantize}, and weights of 4 bits are frozen, so that nothing would be trained; give a "
                "lora section, or set model.quantize=null"
            )
        if self.lora is not None and self.lora.modules_to_save:
            if self.model.quantize is not None:
                raise ValueError(
                    "lora.modules_to_save are trained whole, beside weights that model.quantize rounds; leave one of the two out"
                )
            if self.model.dtype != "float32":
                raise ValueError(
                    f"lora.modules_to_save are trained whole, and {self.model.dtype} weights lose small updates; set model.dtype=float32 "
                    "and train.precision=bf16, or leave them out"
                )
        if self.lora is None and self.model.dtype != "float32":
            raise ValueError(
                f"full fine-tuning of {self.model.dtype} weights loses small updates; set model.dtype=float32 and "
                "train.precision=bf16, or give a lora section"
            )
        return self


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> TrainConfig:
    """The recipe at `path` (or a packaged recipe's name) with `key=value` overrides.

    Raises:
        BadInput: every problem at once: unknown keys with the nearest right name, wrong values, missing keys.
    """
    return load_settings(TrainConfig, path, overrides, recipes=recipes())


def recipes() -> dict[str, Path]:
    """The packaged training recipes by name."""
    return packaged_recipes("train")
