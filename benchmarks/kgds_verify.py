"""What sharing prompts saves in verification: prompt tokens computed and CPU time of the embedded engine, with and without reuse.

    OMP_NUM_THREADS=2 python benchmarks/kgds_verify.py KGDS.json --samples 4

Of each sample one stand-in summary is verified: its supporting paragraphs as background, its clear opinions as opinions, which is longer than
most models' and shares more. The two arms ask the same questions in the same mode, one with the engine's prefix cache and one without it, and
take turns sample by sample, beginning with the other one each time; each begins a sample with an empty cache. Tokens are counted by the
engine. In float32 the answers of both arms must be the same to 1e-4; in bfloat16 rounding depends on what is computed together.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections import defaultdict
from pathlib import Path
from typing import Annotated, cast

import typer
from rich.console import Console
from rich.table import Table

from perse.engines.prefix_cache import BUDGET
from perse.engines.transformers import TransformersEngine
from perse.judgement import Judgement
from perse.judging.judge import Judge, JudgeSettings
from perse.kgds.asking.verify import FactMode, plain_opinion, questions
from perse.kgds.benchmark import Sample, read_benchmark
from perse.kgds.folder import Summary
from perse.questions.claims import VERIFY_FACT, VERIFY_FACTS, VERIFY_OPINION

MODES: tuple[FactMode, ...] = ("single", "paragraph")
ARMS = {"reuse": BUDGET, "no reuse": 0}


def main(
    benchmark: Annotated[Path, typer.Argument(help="The benchmark's JSON file.")],
    judge: Annotated[str, typer.Option(help="A local model.")] = "smollm2-135m",
    samples: Annotated[int, typer.Option(min=1, help="The first so many samples.")] = 4,
    dtype: Annotated[str, typer.Option(help="bfloat16 or float32.")] = "bfloat16",
    small: Annotated[bool, typer.Option("--small", help="Only see that it runs.")] = False,
) -> None:
    """Prints tokens and CPU seconds of both arms and their ratios, for facts asked singly and in lists."""
    read = read_benchmark(benchmark).first(1 if small else samples)
    loaded = Judge.load(judge, dtype=dtype)
    model = cast(TransformersEngine, loaded.engine).model
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    tokens: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    largest = 0.0
    for turn, sample in enumerate(read.samples.values()):
        for mode in MODES:
            found = {}
            for arm in list(ARMS)[:: 1 if turn % 2 else -1]:
                asker = Judge(TransformersEngine(model, cache_bytes=ARMS[arm]), loaded.renderer, name=judge)
                begun = time.process_time()
                found[arm] = _verify(asker, sample, mode)
                seconds[mode, arm].append(time.process_time() - begun)
                asked = [one.tokens for one in found[arm]]
                tokens[mode, arm].append((len(asked), sum(one.prompt - one.cached for one in asked)))
            largest = max(largest, _difference(found["reuse"], found["no reuse"], mode))
    _show(seconds, tokens, samples=len(read.samples), judge=f"{judge} ({dtype})")
    typer.echo(f"largest difference of P(yes) between the arms: {largest:.4f}   {platform.processor() or platform.machine()}")
    assert dtype != "float32" or largest < 1e-4, largest


def _verify(judge: Judge, sample: Sample, mode: FactMode) -> list[Judgement]:
    summary = Summary(
        sample=sample.number,
        pattern="abs-aos",
        paradigm="structured",
        model="stand-in",
        background="\n".join(paragraph.text for paragraph in sample.supporting),
        opinions="\n".join(map(plain_opinion, sample.opinions)),
    )
    asked = questions({sample.number: sample}, [summary], mode)
    settings = JudgeSettings(temperature=0)
    singles = [*judge.ask(VERIFY_FACT, asked.facts, settings), *judge.ask(VERIFY_OPINION, asked.opinions, settings)]
    return singles + [one for each in judge.ask_listed(VERIFY_FACTS, asked.lists, settings) for one in each]


def _difference(one: list[Judgement], other: list[Judgement], mode: FactMode) -> float:
    """Of P(yes); in lists only of the first line of each, since a label that falls the other way changes the lines behind it."""
    pairs = [(a, b) for a, b in zip(one, other, strict=True) if mode == "single" or a.id.endswith("/1") or "/opinion/" in a.id]
    return max(abs((a.distribution or {})["yes"] - (b.distribution or {})["yes"]) for a, b in pairs)


def _show(
    seconds: dict[tuple[str, str], list[float]],
    tokens: dict[tuple[str, str], list[tuple[int, int]]],
    *,
    samples: int,
    judge: str,
) -> None:
    table = Table(title=f"verification of {samples} summaries by {judge}", title_justify="left")
    for head in ("facts asked", "arm", "questions", "tokens computed", "CPU s", "CPU s a question (median of samples)"):
        table.add_column(head, justify="right" if head != "arm" else "left")
    for mode in MODES:
        for arm in ARMS:
            number, computed = (sum(part) for part in zip(*tokens[mode, arm], strict=True))
            each = statistics.median(s / n for s, (n, _) in zip(seconds[mode, arm], tokens[mode, arm], strict=True))
            table.add_row(mode, arm, f"{number:,}", f"{computed:,}", f"{sum(seconds[mode, arm]):.1f}", f"{each:.3f}")
        less = sum(seconds[mode, "no reuse"]) / sum(seconds[mode, "reuse"])
        fewer = sum(n for _, n in tokens[mode, "no reuse"]) / sum(n for _, n in tokens[mode, "reuse"])
        faster = [a / b for a, b in zip(seconds[mode, "no reuse"], seconds[mode, "reuse"], strict=True)]
        each_sample = f"of single samples {min(faster):.2f} to {max(faster):.2f}, median {statistics.median(faster):.2f}"
        table.add_row("", "ratio", "", f"{fewer:.2f}x fewer", f"{less:.2f}x less", each_sample, end_section=True)
    Console(width=120).print(table)


if __name__ == "__main__":
    typer.run(main)
