"""Which architectures train in shared rows exactly as one by one, and which are refused: the table of docs/training.md.

    python benchmarks/architectures.py

Every kind of causal language model that transformers knows is made tiny, with random weights, and goes the way of a training run:
checked by its configuration, given its attention, proven on two examples. Seven examples that begin alike in every way examples do
are then computed in one row, shared and unshared, and by the plain way: each alone, by the model's own attention. How far apart
they are is the difference of the loss, and the largest of any parameter's gradient as a share of its norm (of at least a hundredth of
the whole gradient's). What cannot be made tiny from its configuration's usual names is counted and not judged.
"""

from __future__ import annotations

import argparse
import copy
import json
import logging
import math
import signal
import sys
import warnings
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from rich.console import Console
from rich.progress import track
from transformers import CONFIG_MAPPING, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from perse.errors import BadInput
from perse.settings.training import Attention
from perse.training.model.dropout import switch_off_dropout
from perse.training.rows.attention import set_attention
from perse.training.rows.packable import check_packable
from perse.training.rows.proof import proven_attention

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training" / "rows"))  # the slow twin is the tests'
from architectures import BRANCHES, GQA, LONGEST
from separate_rows import alone, furthest, together

TINY: dict[str, Any] = {
    **GQA,
    **{"head_dim": 8, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "d_model": 32, "n_layers": 2, "n_heads": 4},
    **{"num_layers": 2, "num_heads": 4, "ffn_dim": 48, "rotary_dim": 4, "word_embed_proj_dim": 32, "max_seq_len": 128},
    **{"moe_intermediate_size": 24, "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "num_experts_per_tok": 2},
    **{"n_group": 1, "topk_group": 1, "shared_expert_intermediate_size": 24, "kv_lora_rank": 8, "q_lora_rank": 8},
    **{"qk_rope_head_dim": 4, "qk_nope_head_dim": 8, "v_head_dim": 8, "first_k_dense_replace": 1},
}
"""What configurations call their sizes; each is given those that it has."""
OTHERWISE: tuple[dict[str, Any], ...] = (
    {},
    {"head_dim": None},
    {"head_dim": None, "v_head_dim": None},
    {"head_dim": 4, "num_key_value_heads": 4},  # latent attention
    {"mamba_n_heads": 4, "mamba_d_head": 16, "head_dim": 16},
)
"""Tried in this order; None leaves a size to the configuration."""
OF_KIND: dict[str, dict[str, Any]] = {
    "lfm2": {"layer_types": ["conv", "full_attention"]},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"]},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "dots1": {"n_shared_experts": 1},
    "gemma3n_text": {
        "layer_types": ["sliding_attention", "full_attention"],
        "num_kv_shared_layers": 0,
        "vocab_size_per_layer_input": 64,
    },
    "gemma4_text": {"vocab_size_per_layer_input": 64, "hidden_size_per_layer_input": 8, "global_head_dim": 8},
    "hrm_text": {"initializer_range": 0.1},  # what is rounded in one cycle grows in the next
    "kimi_linear": {"linear_num_heads": 4},
    "longcat_flash": {"expert_ffn_hidden_size": 24},
    "zaya": {"num_experts_per_tok": 1},
}
"""What a kind is known for, that two layers would leave out, or calls by names of its own."""
PARAMETERS = 3_000_000
"""More is not tiny: a size has a name that is not among these."""
SECONDS = 120
EXACT = 1e-4
"""What the table calls equal, of the loss in nats and of the gradient's share."""
REFUSALS = {
    "carries a state": "carries a state from token to token",
    "has layers of the kind": "has layers beside attention",
    "counts distances": "counts distances along the row",
    "from what they are alone": "the proof fails",
    "does not compute": "takes no row of several",
}
"""What a message says, and the table."""
SMALL = ("llama", "mamba", "bloom")


@dataclass(frozen=True)
class Outcome:
    """What became of one kind of model; `loss` and `gradient` where it was computed, `why` in words where it was not, or how."""

    kind: str
    outcome: str
    """`equal`, `differs`, `refused`, `fails` or `not tried`."""
    attention: str = ""
    loss: float = math.nan
    gradient: float = math.nan
    why: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help="as transformers names them (model_type); all by default")
    parser.add_argument("--json", action="store_true", help="one JSON line a kind on stdout instead of the table")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    transformers.logging.set_verbosity_error()
    warnings.simplefilter("ignore")
    kinds = options.kinds or (SMALL if options.small else sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES))
    console = Console(stderr=True)
    found = [tried(kind) for kind in track(kinds, "architectures", console=console, disable=not console.is_terminal)]
    print("\n".join(json.dumps(asdict(each)) for each in found) if options.json else "\n".join(table(found)))


def tried(kind: str) -> Outcome:
    """One kind of model, from its configuration to both ways of computing a row."""
    try:
        with within(SECONDS):
            model = tiny(kind)
    except Exception as error:  # noqa: BLE001 - whatever a strange configuration raises, it is not made tiny
        return Outcome(kind, "not tried", why=said(error))
    try:
        with within(SECONDS):
            return compared(kind, model)
    except BadInput as error:
        return Outcome(kind, "refused", why=str(error))
    except Exception as error:  # noqa: BLE001 - a training run would end so, too
        return Outcome(kind, "fails", why=said(error))


def said(error: Exception) -> str:
    """Its first line, and no more than a cell of a table holds."""
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"[:100]


def tiny(kind: str) -> Any:
    """
    Raises:
        Exception: anything, where sizes have other names or do not go together.
    """
    failed: Exception | None = None
    for otherwise in OTHERWISE:
        sizes = TINY | OF_KIND.get(kind, {}) | otherwise
        try:
            return made(kind, {name: size for name, size in sizes.items() if size is not None})
        except Exception as error:  # noqa: BLE001 - as said above
            failed = failed or error
    assert failed is not None
    raise failed


def made(kind: str, sizes: dict[str, Any]) -> Any:
    """
    Raises:
        Exception: anything, as above.
    """
    usual = CONFIG_MAPPING[kind]()
    config = CONFIG_MAPPING[kind](**{name: size for name, size in sizes.items() if hasattr(usual, name)})
    with torch.device("meta"):
        parameters = sum(each.numel() for each in AutoModelForCausalLM.from_config(config).parameters())
    if parameters > PARAMETERS:
        raise ValueError(f"{parameters:,} parameters")
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config).train()
    switch_off_dropout(model)
    model(input_ids=torch.tensor([BRANCHES[0].prompt]), use_cache=False)  # it works by itself
    return model


def compared(kind: str, model: Any) -> Outcome:
    """
    Raises:
        BadInput: the model is refused, as a training run would.
    """
    check_packable(model, longest=LONGEST)
    attention = set_attention(model, None)
    attention = proven_attention(model, BRANCHES[:2], attention, share=True, asked=None, dtype=model.dtype)
    loss, gradient = apart(model, attention)
    note = ""
    if max(loss, gradient) > EXACT:
        loss, gradient = apart(model.eval(), attention)
        note = "draws at random while it trains, compared without"
    return Outcome(kind, "equal" if max(loss, gradient) <= EXACT else "differs", attention, loss, gradient, note)


def apart(model: Any, attention: Attention) -> tuple[float, float]:
    """The larger difference of a shared and an unshared row: of the loss, and of a parameter's gradient by its norm."""
    plain = copy.deepcopy(model)
    if plain._supports_attention_backend:
        plain.set_attn_implementation("eager")
    loss, gradient = alone(plain, BRANCHES)
    rows = [together(model, BRANCHES, attention, share=share) for share in (True, False)]
    return max(abs(each - loss) for each, _ in rows), max(furthest(each, gradient, floor=1e-2) for _, each in rows)


def table(found: list[Outcome]) -> Iterator[str]:
    """Lines of Markdown: kinds that came to the same end, in one line."""
    yield from ("| outcome | kinds (`model_type`) | how far apart at most |", "|---|---|---|")
    ends: dict[str, list[Outcome]] = defaultdict(list)
    for each in found:
        ends[end(each)].append(each)
    for name in sorted(ends):
        some = ends[name]
        apart = f"loss {max(each.loss for each in some):.0e}, gradient {max(each.gradient for each in some):.0e}"
        yield f"| {name} ({len(some)}) | {', '.join(each.kind for each in some)} | {'' if math.isnan(some[0].loss) else apart} |"


def end(one: Outcome) -> str:
    """The outcome in the words of the table."""
    if one.outcome != "refused":
        return ", ".join(word for word in (one.outcome, one.attention, one.why if one.attention else "") if word)
    return f"refused: {next((short for said, short in REFUSALS.items() if said in one.why), one.why)}"


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """
    Raises:
        TimeoutError: it took longer.
    """

    def over(*_: object) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


if __name__ == "__main__":
    main()
