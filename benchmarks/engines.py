"""Judgements per second: the original way, the embedded engine and vLLM, on the same examples.

    OMP_NUM_THREADS=2 python benchmarks/engines.py --examples 200 --max-new-tokens 64

The original way is transformers' `generate` with one prompt at a time, which writes the review and the score and is then
parsed (PerSE, section 4.2). Ours write the review and read the score's distribution behind it, with the profile shared.
All have the same model, dtype, prompts, temperature and token limit (the LM head of ours computes in float32). The examples (of the sample corpus, one profile a
reader) are cut into blocks; the ways take turns at each block, and the median over blocks is compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.judgement import Status
from perse.models import opening
from perse.questions import QUESTIONS
from perse.records import Example
from perse.rendering.prompt import LABEL_TOKENS, TextRenderer

Way = Callable[[Sequence[Example]], int]
"""Judges examples; how many of them got a label."""


def main() -> None:
    options = _options()
    examples = _examples(options.examples + options.blocks)
    warm, examples = examples[: options.blocks], examples[options.blocks :]
    settings = JudgeSettings(temperature=0.8, max_new_tokens=options.max_new_tokens)
    ways: dict[str, Way] = {}
    if "original" in options.ways:
        ways["transformers generate, batch 1"] = _original(options, settings)
    if "embedded" in options.ways:
        ways["embedded engine"] = _judge(options.model, options, settings)
    if "vllm" in options.ways:
        ways["vLLM (offline)"] = _judge(f"vllm:{options.model}", options, settings)
    for way in ways.values():
        way(warm)
    rates: dict[str, list[float]] = {name: [] for name in ways}
    labelled = dict.fromkeys(ways, 0)
    size = len(examples) // options.blocks
    for block in range(options.blocks):
        part = examples[block * size : (block + 1) * size]
        for name, way in ways.items():
            begun = time.perf_counter()
            labelled[name] += way(part)
            rates[name].append(len(part) / (time.perf_counter() - begun))
            print(f"block {block + 1}/{options.blocks}  {name}: {rates[name][-1]:.3f} judgements/s", file=sys.stderr)
    _show(options, rates, labelled, size)


def _original(options: argparse.Namespace, settings: JudgeSettings) -> Way:
    import torch

    from perse.models import finding as models

    path = models.find(options.model)
    model = models.load(path, dtype=options.dtype).eval()
    tokenizer = opening.tokenizer(path)
    question, words = QUESTIONS[options.question], TextRenderer()
    limit = LABEL_TOKENS + (settings.max_new_tokens if question.layout.text_prefix else 0)

    @torch.inference_mode()
    def judge(examples: Sequence[Example]) -> int:
        found = 0
        for example in examples:
            turns = [{"role": "user", "content": words.render(question, example)[0].text}]
            asked: Any = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
            written = model.generate(
                **asked, do_sample=True, temperature=settings.temperature, top_k=0, top_p=1.0, max_new_tokens=limit,
                pad_token_id=tokenizer.eos_token_id,
            )  # fmt: skip
            answer = tokenizer.decode(written[0, asked["input_ids"].shape[1] :], skip_special_tokens=True)
            found += question.layout.read(answer, question.scale)[0] is not None
        return found

    return judge


def _judge(name: str, options: argparse.Namespace, settings: JudgeSettings) -> Way:
    judge = Judge.load(name, dtype=options.dtype, context=4096)
    question = QUESTIONS[options.question]
    return lambda examples: sum(j.status is Status.OK for j in judge.ask(question, list(examples), settings))


def _examples(count: int) -> list[Example]:
    """Examples of the sample corpus, one profile a reader, readers together."""
    from perse.commands.data.build import app
    from perse.data.load import load_examples

    samples = Path(__file__).resolve().parent.parent / "perse" / "samples"
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        given = ["--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--profiles", "per_reviewer_epoch"]
        app(["pointwise", *map(str, given), "--valid", "0.34", "--out", str(data)], standalone_mode=False)
        found = [e for side in ("train", "valid") for e in load_examples(data, split=side).examples]  # type: ignore[arg-type]
    found.sort(key=lambda example: example.reviewer_id)
    if len(found) < count:
        sys.exit(f"the sample corpus gives {len(found)} examples, {count} are asked for (warm-up included); ask for fewer")
    return found[:count]


def _show(options: argparse.Namespace, rates: dict[str, list[float]], labelled: dict[str, int], size: int) -> None:
    middle = {name: statistics.median(own) for name, own in rates.items()}
    first = next(iter(middle))
    table = Table(title=f"{options.question}, at most {options.max_new_tokens} new tokens, {options.model}, {options.dtype}")
    for column in ("", "judgements/s (median)", "slowest block", "fastest block", f"x {first}", "with a label"):
        table.add_column(column, justify="left" if not column else "right")
    for name, own in rates.items():
        share = f"{labelled[name]}/{size * options.blocks}"
        table.add_row(
            name, f"{middle[name]:.3f}", f"{min(own):.3f}", f"{max(own):.3f}", f"{middle[name] / middle[first]:.2f}", share
        )
    console = Console(width=140)
    console.print(table)
    console.print(
        f"{options.blocks} blocks of {size} examples, ways in turn; OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS', 'unset')}"
    )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--blocks", type=int, default=4)
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--question", default="pointwise", choices=["pointwise", "pointwise_score"])
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float32"])
    parser.add_argument("--ways", nargs="+", default=["original", "embedded", "vllm"], choices=["original", "embedded", "vllm"])
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.examples, options.blocks, options.max_new_tokens = 2, 1, 2
    return options


if __name__ == "__main__":
    main()
