"""Training steps per second, and their memory: TRL's SFTTrainer by default and at its best, and ours, on the same examples.

    OMP_NUM_THREADS=2 python benchmarks/train_speed.py --layers 8 --dtype bfloat16
    OMP_NUM_THREADS=2 python benchmarks/train_speed.py --layers 8 --dtype bfloat16 --scenarios 4-branches --memory

Examples are random token ids, of which the last are learned; their first losses must be equal in all arms. TRL's arms: as it
comes (padded, gradient checkpointing); the same without checkpointing; one example a forward, which needs no padding; and
`padding_free`, whose documents do not see each other with SDPA either. Its best is the fastest of the last three; the arms
with "+head" are explained in train_arms.py, and left out on CUDA, where they are what TRL does anyway.

The arms take turns step by step in one process, each round begun by the next one; the first 2 rounds are discarded and
medians compared; `mfu` is what an arm's own rows need, by what the device could do. `--memory` then runs 3 steps of each arm in a process of its own, and reads the peak of resident memory (on
CUDA of allocated memory) above the loaded model, which is compared with TRL's least and with what was its best in time.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from train_arms import DEFAULT, OURS, SCENARIOS, WAYS, Arm, Settings, Step, begin, examples_of, peak, step

from perse.models import finding as models
from perse.training.planning.flops import passed, training_flops
from perse.training.rows.branches import Branch
from perse.training.rows.trie import packed, row_size
from perse.training.throughput import device_peak

DISCARDED = 2
"""Steps of every arm before those that count."""
MEMORY_STEPS = 3
MALLOC = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
"""With these glibc gives freed tensors back at once, so that a peak is of what was in use."""


def main() -> None:
    options = parse(sys.argv[1:])
    torch.set_num_threads(options.threads)
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    base = base_model(options)
    settings = Settings(None if options.lora == "full" else int(options.lora), options.autocast, options.attention)
    rounds = MEMORY_STEPS if options.one else DISCARDED + options.steps
    for name in options.scenarios:
        scenario = SCENARIOS[name]
        longer = {key: round(options.scale * getattr(scenario, key)) for key in ("shortest", "longest")}
        examples = examples_of(
            dataclasses.replace(scenario, **longer),
            rounds + 1,  # the loaders look one batch ahead
            vocabulary=base.config.vocab_size,
            answer=options.answer,
        )
        with tempfile.TemporaryDirectory() as folder:
            arms = {arm: begin(arm, base, settings, examples, Path(folder)) for arm in options.arms}
            if options.one:
                print(json.dumps(peak(arms[options.one], rounds)))
            else:
                steps = take_turns(arms, rounds)
                same_loss(steps, 0.02 if options.autocast or options.dtype == "bfloat16" else 1e-4)
                counted = {arm: own[DISCARDED:] for arm, own in steps.items()}
                _show_speed(options, name, examples[:rounds], counted, needs=partial(operations, arms))
            arms.clear()
        if options.memory and not options.one:
            _show_memory(options, name, {arm: _peak_apart(options, name, arm) for arm in options.arms}, _rivals(counted))


def base_model(options: argparse.Namespace) -> Any:
    """The model that all arms begin with, on the device, in memory of its own rather than a mapped file's."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if options.config_only_7b:
        from transformers import LlamaConfig, LlamaForCausalLM

        config = LlamaConfig(num_hidden_layers=options.layers or 32, max_position_embeddings=4096, dtype="bfloat16")
        torch.manual_seed(0)
        torch.set_default_dtype(torch.bfloat16)
        with torch.device(device):
            model: Any = LlamaForCausalLM(config)  # the other defaults are LLaMA-2 7B's
        torch.set_default_dtype(torch.float32)
        return model
    model = models.load(models.find(options.model), dtype=options.dtype)
    if options.layers:
        model.model.layers = model.model.layers[: options.layers]
        model.config.num_hidden_layers = options.layers
    for weights in model.parameters():
        weights.data = weights.data.clone()
    return model.to(device)


def take_turns(arms: Mapping[str, Arm], rounds: int) -> dict[str, list[Step]]:
    """`rounds` steps of every arm."""
    names = list(arms)
    found: dict[str, list[Step]] = {name: [] for name in names}
    for at in range(rounds):
        first = at % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(step(arms[name]))
            print(f"step {at + 1}/{rounds}  {name}: {found[name][-1].seconds:.2f} s", file=sys.stderr)
    return found


def same_loss(steps: Mapping[str, Sequence[Step]], tolerance: float) -> None:
    """Stop unless all arms began with the same loss: otherwise they did not do the same work."""
    first = {name: own[0].loss for name, own in steps.items()}
    if max(first.values()) - min(first.values()) > tolerance * min(first.values()):
        sys.exit(f"the arms do not learn the same examples; their first losses: {first}")


def operations(arms: Mapping[str, Arm], arm: str, branches: Sequence[Branch]) -> float | None:
    """What training on these examples needs by the way of `arm`, padding and what is computed twice left out; None if it is not known."""
    weights = passed(arms[arm].model)
    if weights is None:
        return None
    size = row_size(branches, share=not WAYS[arm].trl)
    return training_flops(weights, tokens=size.tokens, pairs=size.pairs, learned=size.learned)


def _peak_apart(options: argparse.Namespace, scenario: str, arm: str) -> int:
    command = [sys.executable, __file__, *(word for word in sys.argv[1:] if word != "--memory")]
    command += ["--one", arm, "--arms", arm, "--scenarios", scenario]
    done = subprocess.run(command, env={**os.environ, **MALLOC}, stdout=subprocess.PIPE, check=True)
    found = int(json.loads(done.stdout.splitlines()[-1]))
    print(f"{scenario}  {arm}: {found / 2**20:.0f} MiB", file=sys.stderr)
    return found


def _show_speed(
    options: argparse.Namespace,
    name: str,
    examples: Sequence[tuple[Branch, ...]],
    steps: Mapping[str, Sequence[Step]],
    *,
    needs: Callable[[str, Sequence[Branch]], float | None],
) -> None:
    middle = {arm: statistics.median(one.seconds for one in own) for arm, own in steps.items()}
    lengths = [[branch.tokens for branch in one] for one in examples]
    alone, row = sum(map(sum, lengths)), sum(len(packed(one).ids) for one in examples)
    padded = sum(len(one) * max(one) for one in lengths)
    title = (
        f"{name}: {len(examples[0])} examples a step, {alone / sum(map(len, lengths)):.0f} tokens each; "
        f"sharing saves {1 - row / alone:.0%} of them, padding adds {padded / alone - 1:.0%}"
    )
    lines = []
    peak = device_peak(torch.bfloat16 if options.autocast or options.dtype == "bfloat16" else torch.float32)
    for arm, own in steps.items():
        seconds = [one.seconds for one in own]
        counted = [needs(arm, one) for one in examples[DISCARDED : DISCARDED + len(own)]]
        used = [flops / one / peak for flops, one in zip(counted, seconds, strict=True) if flops and peak]
        lines.append([arm, f"{middle[arm]:.3f}", f"{min(seconds):.3f}", f"{max(seconds):.3f}"])
        lines[-1] += [f"{len(examples[0]) / middle[arm]:.2f}", *_faster(steps, arm)]
        lines[-1].append(f"{statistics.median(used):.0%}" if used else "")
    columns = ("arm", "s a step (median)", "fastest", "slowest", "examples/s", "this / ours", "in single rounds", "mfu")
    notes = [
        f"{label} ({arm}): ours is {middle[arm] / middle[OURS]:.2f} times as fast"
        for label, arm in _rivals(steps).items()
        if OURS in steps
    ]
    _show(options, title, columns, lines, [*notes, _conditions(options, f"{options.steps} steps each")])


def _rivals(steps: Mapping[str, Sequence[Step]]) -> dict[str, str]:
    """The arms of TRL that ours is held against, of those that were run; the best are the fastest."""
    found = {}
    for label, some in (
        ("TRL by default", [DEFAULT]),
        ("TRL by default, head at learned tokens only", [f"{DEFAULT}+head"]),
        ("TRL's best", [arm for arm, way in WAYS.items() if way.trl and not way.checkpointing and not way.head]),
        ("TRL's best, head at learned tokens only", [arm for arm, way in WAYS.items() if way.head and not way.checkpointing]),
    ):
        if run := [arm for arm in some if arm in steps]:
            found[label] = min(run, key=lambda arm: statistics.median(one.seconds for one in steps[arm]))
    return found


def _faster(steps: Mapping[str, Sequence[Step]], arm: str) -> tuple[str, str]:
    """How many times as fast ours is as `arm`: by the medians, and in the least and the most favourable round."""
    if OURS not in steps:
        return "", ""
    own, ours = ([one.seconds for one in steps[name]] for name in (arm, OURS))
    rounds = [one / two for one, two in zip(own, ours, strict=True)]
    return f"{statistics.median(own) / statistics.median(ours):.2f}", f"{min(rounds):.2f} to {max(rounds):.2f}"


def _show_memory(options: argparse.Namespace, name: str, peaks: Mapping[str, int], rivals: Mapping[str, str]) -> None:
    title = f"{name}: peak memory above the loaded model in {MEMORY_STEPS} steps, each arm in a process of its own"
    lines = [[arm, f"{own / 2**20:.0f}", f"{peaks[OURS] / own:.2f}" if OURS in peaks else ""] for arm, own in peaks.items()]
    held_against = dict(rivals)
    if alike := [arm for arm in peaks if WAYS[arm].trl and not WAYS[arm].checkpointing and not WAYS[arm].single]:
        least = min(alike, key=peaks.__getitem__)
        held_against["TRL's least with all examples in one forward, without checkpointing"] = least
    notes = [
        f"{label} ({arm}): ours takes {peaks[OURS] / peaks[arm]:.2f} times as much memory"
        for label, arm in held_against.items()
        if OURS in peaks
    ]
    malloc = " ".join(f"{key}={value}" for key, value in MALLOC.items())
    _show(options, title, ("arm", "MiB", "ours / this"), lines, [*notes, _conditions(options, malloc)])


def _show(
    options: argparse.Namespace, title: str, columns: Sequence[str], lines: Sequence[Sequence[str]], notes: Sequence[str]
) -> None:
    if options.markdown:
        print(f"\n{title}\n")
        for line in (columns, ["---", *["---:"] * (len(columns) - 1)], *lines):
            print(f"| {' | '.join(line)} |")
        print()
    else:
        table = Table(title=title)
        for column in columns:
            table.add_column(column, justify="left" if column == "arm" else "right")
        for line in lines:
            table.add_row(*line)
        Console(width=140).print(table)
    for note in notes:
        print(f"{note}\n" if options.markdown else note)


def _conditions(options: argparse.Namespace, counted: str) -> str:
    import transformers
    import trl

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {options.threads} threads"
    return "; ".join(
        (
            ("LLaMA-2 7B config, random weights" if options.config_only_7b else options.model)
            + (f", first {options.layers} layers" if options.layers else ""),
            options.dtype + (", bf16 autocast" if options.autocast else ""),
            "all weights" if options.lora == "full" else f"LoRA r={options.lora}",
            f"TRL's attention {options.attention}",
            f"{options.answer} learned tokens an example",
            counted,
            device,
            f"torch {torch.__version__}, transformers {transformers.__version__}, TRL {trl.__version__}",
        )
    )


def parse(given: Sequence[str]) -> argparse.Namespace:
    """The command line, checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS), choices=list(SCENARIOS))
    parser.add_argument("--arms", nargs="+", choices=list(WAYS), help="by default all that differ on this device")
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--layers", type=int, help="take the first so many layers")
    parser.add_argument("--config-only-7b", action="store_true", help="LLaMA-2 7B with random weights, bfloat16, on a GPU")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"], help="of the weights")
    parser.add_argument("--autocast", action="store_true", help="compute in bfloat16 in all arms")
    parser.add_argument("--attention", default="sdpa", help="of TRL's arms, such as flash_attention_2 where it is installed")
    parser.add_argument("--lora", default="16", help="rank, or 'full' to train all weights")
    parser.add_argument("--steps", type=int, default=7, help="steps of each arm that count, at least 7")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--scale", type=float, default=1.0, help="all lengths times this")
    parser.add_argument("--answer", type=int, default=24, help="learned tokens of an example")
    parser.add_argument("--memory", action="store_true", help="the peak of memory, too")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--one", choices=list(WAYS), help=argparse.SUPPRESS)  # the memory of one arm, in this process
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args(given)
    if options.small:
        options.steps, options.layers, options.scale, options.answer = 7, 1, 0.2, 2
    if options.lora != "full" and not (options.lora.isdecimal() and int(options.lora) > 0):
        parser.error(f"--lora is '{options.lora}'; give a rank of 1 or more, or 'full'")
    if options.config_only_7b and not torch.cuda.is_available():
        parser.error("--config-only-7b wants a GPU, and torch sees none")
    if options.config_only_7b:
        options.dtype = "bfloat16"
    if options.lora == "full" and options.dtype != "float32":
        parser.error("--lora full wants --dtype float32 (and --autocast to compute in bfloat16)")
    for name, least in (("steps", 7), ("threads", 1), ("answer", 1), ("layers", 1)):
        if (found := getattr(options, name)) is not None and found < least:
            parser.error(f"--{name} is {found}; it must be {least} or more")
    for name in options.scenarios:
        scenario = SCENARIOS[name]
        own = round(options.scale * scenario.shortest) - round(scenario.shared * round(options.scale * scenario.longest))
        if own <= options.answer:
            parser.error(f"--answer is {options.answer}, and an example of {name} has {own} tokens of its own; give fewer")
    if options.arms is None:
        gpu = torch.cuda.is_available()  # where ours has one kernel instead of `tree`'s many
        options.arms = [arm for arm, way in WAYS.items() if not (way.head if gpu else way.attention)]
    return options


if __name__ == "__main__":
    main()
