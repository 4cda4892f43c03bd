"""Judgements per second over HTTP: a general server asked naively, and perse's server; and whose items go next where memory is short.

    OMP_NUM_THREADS=2 python benchmarks/serve_throughput.py --readers 12 --queries 8 --rounds 3

The naive way asks vLLM's chat route for a JSON object (review, score), in shuffled order, without prefix caching. All ways have the same
model, prompts, dtype, token limit of the review and number of requests under way; the same readers' profiles are asked about again and
again, as a judge is used. Servers run side by side and are asked in turns; the median over rounds is compared. The last two ways ask
for the score alone of a server whose memory for keys and values holds a few profiles: in shuffled order by vLLM's own route, and by
the judge's, whose front puts items of one profile together.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx2
from rich.console import Console
from rich.table import Table

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.judgement import Judgement, Status
from perse.questions import QUESTIONS
from perse.records import PointwiseExample, ProfileReview
from perse.rendering.prompt import Renderer, TextRenderer
from perse.serving.client import AsyncJudgeClient

ROOT = Path(__file__).resolve().parents[1]
WORDS = (ROOT / "perse" / "samples" / "items.jsonl").read_text().split()
SCHEMA = {
    "type": "object",
    "properties": {"review": {"type": "string"}, "score": {"type": "integer", "minimum": 1, "maximum": 10}},
    "required": ["review", "score"],
    "additionalProperties": False,
}

Way = Callable[[Sequence[PointwiseExample]], int]
"""Judges examples; how many of them got an answer."""


def main() -> None:
    options = _options()
    rng = random.Random(1)
    with ExitStack() as held:
        place = Path(held.enter_context(tempfile.TemporaryDirectory()))
        plain = held.enter_context(_server(options, place / "plain", "vllm.enable_prefix_caching=false"))
        cached = held.enter_context(_server(options, place / "cached"))
        tight = held.enter_context(_server(options, place / "tight", memory_gb=options.tight_gb))
        ways: dict[str, Way] = {
            "chat route, JSON, no prefix cache": _chat(options, plain),
            "chat route, JSON, prefix cache": _chat(options, cached),
            "judge route": _judged(options, cached, "pointwise"),
            "judge route, lists": _lists(options, cached),
            "offline (perse score's engine)": _offline(options),
            "short memory: vLLM's route, shuffled": _shuffled(options, tight),
            "short memory: judge route, shuffled": _judged(options, tight, "pointwise_score"),
        }
        rates: dict[str, list[float]] = {name: [] for name in ways}
        answered = dict.fromkeys(ways, 0)
        for turn in range(options.rounds + 1):
            for name, way in ways.items():
                # New readers each time: nothing is known from before. The first round warms up, with one reader.
                examples = _examples(options, rng, readers=options.readers if turn else 1)
                begun = time.perf_counter()
                done = way(examples)
                rate = len(examples) / (time.perf_counter() - begun)
                if turn:
                    rates[name].append(rate)
                    answered[name] += done
                print(f"round {turn}/{options.rounds}  {name}: {rate:.2f}/s, {done} answered", file=sys.stderr)
    _show(options, rates, answered)


def _examples(options: argparse.Namespace, rng: random.Random, *, readers: int) -> list[PointwiseExample]:
    """Readers with a profile each, and several queries for each of them; shuffled."""

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS).strip('{}",:') for _ in range(words))

    found = []
    for reader in range(readers):
        name = f"{rng.getrandbits(40):010x}"
        profile = tuple(
            ProfileReview(text=text(options.words), review=text(options.words // 3), score=rng.randint(1, 10))
            for _ in range(options.profile)
        )
        found += [
            PointwiseExample(
                id=f"{name}-{n}", reviewer_id=name, item_id=f"{reader}-{n}", profile=profile, query=text(options.words)
            )
            for n in range(options.queries)
        ]
    rng.shuffle(found)
    return found


def _chat(options: argparse.Namespace, url: str) -> Way:
    words, question = TextRenderer(), QUESTIONS["pointwise"]

    def way(examples: Sequence[PointwiseExample]) -> int:
        async def run() -> int:
            async with httpx2.AsyncClient(
                base_url=url, timeout=600, limits=httpx2.Limits(max_connections=options.at_once)
            ) as http:

                async def ask(example: PointwiseExample) -> bool:
                    told = f"{words.render(question, example)[0].text}\nAnswer with a JSON object: review, score."
                    body = {
                        "model": "judge",
                        "messages": [{"role": "user", "content": told}],
                        "temperature": 0.8,
                        "seed": 1,
                        "max_tokens": options.new_tokens + 16,  # for the names, the quotes and the score
                        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}},
                    }
                    answer = await http.post("/v1/chat/completions", json=body)
                    return answer.status_code == 200

                room = asyncio.Semaphore(options.at_once)

                async def one(example: PointwiseExample) -> bool:
                    async with room:
                        return await ask(example)

                return sum(await asyncio.gather(*map(one, examples)))

        return asyncio.run(run())

    return way


def _judged(options: argparse.Namespace, url: str, question: str) -> Way:
    def way(examples: Sequence[PointwiseExample]) -> int:
        async def run() -> int:
            async with AsyncJudgeClient(url, at_once=options.at_once) as judge:
                asked = (judge.pointwise(one, question=question, max_new_tokens=options.new_tokens) for one in examples)
                return sum(found.status in (Status.OK, Status.UNPARSED) for found in await asyncio.gather(*asked))

        return asyncio.run(run())

    return way


def _lists(options: argparse.Namespace, url: str) -> Way:
    def way(examples: Sequence[PointwiseExample]) -> int:
        async def run() -> int:
            async with AsyncJudgeClient(url) as judge:
                found = await judge.pointwise_many(examples, max_new_tokens=options.new_tokens)
                return sum(isinstance(one, Judgement) for one in found)

        return asyncio.run(run())

    return way


def _offline(options: argparse.Namespace) -> Way:
    judge = Judge.load(f"vllm:{options.model}", dtype=options.dtype, context=options.context)
    settings = JudgeSettings(temperature=0.8, max_new_tokens=options.new_tokens)

    def way(examples: Sequence[PointwiseExample]) -> int:
        return len(judge.ask(QUESTIONS["pointwise"], examples, settings))

    return way


def _shuffled(options: argparse.Namespace, url: str) -> Way:
    """The same prompts and reads as the judge's, sent to vLLM's own route in the order given."""
    judge = Judge.load(f"openai:{url}/v1#judge")
    assert isinstance(judge.renderer, Renderer)
    renderer, engine, question = judge.renderer, judge.engine, QUESTIONS["pointwise_score"]

    def way(examples: Sequence[PointwiseExample]) -> int:
        prompts = [renderer.render(question, one)[0].ids for one in examples]
        return len(engine.label_distributions(prompts, renderer.label_tokens(question)))  # type: ignore[union-attr]

    return way


@contextmanager
def _server(options: argparse.Namespace, log: Path, *settings: str, memory_gb: float = 1.0) -> Iterator[str]:
    command = [sys.executable, str(ROOT / "serve.py"), "--config", "embedded", "engine=vllm", "port=0", f"model={options.model}",
               "name=judge", f"dtype={options.dtype}", f"context={options.context}", f"memory_gb={memory_gb}", *settings]  # fmt: skip
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PERSE_")} | {"COLUMNS": "200"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=environment)
    try:
        end, url = time.monotonic() + 300, ""
        while True:
            if process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"the server did not start:\n{log.read_text()[-3000:]}")
            time.sleep(0.5)
            found = re.search(r"at (http://\S+)", log.read_text())
            url = found[1] if found else url
            try:
                if url and httpx2.get(f"{url}/ready").status_code == 200:
                    break
            except httpx2.TransportError:
                continue
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _show(options: argparse.Namespace, rates: dict[str, list[float]], answered: dict[str, int]) -> None:
    medians = {name: statistics.median(each) for name, each in rates.items()}
    table = Table(title=f"{options.readers} readers x {options.queries} queries, {options.profile} reviews of {options.words} words, {options.new_tokens} new tokens, {options.at_once} at once")  # fmt: skip
    for column in ("way", "judgements/s, median", "rounds", "answered"):
        table.add_column(column, justify="left" if column == "way" else "right")
    asked = options.readers * options.queries * options.rounds
    for name, each in rates.items():
        table.add_row(name, f"{medians[name]:.2f}", " ".join(f"{rate:.2f}" for rate in each), f"{answered[name]}/{asked}")
    Console(width=160).print(table)
    names = list(medians)
    ratios = {
        "judge route / naive": (names[2], names[0]),
        "judge route / chat route with prefix cache": (names[2], names[1]),
        "lists / offline": (names[3], names[4]),
        "judge route / offline": (names[2], names[4]),
        "short memory: judge route / shuffled": (names[6], names[5]),
    }
    for said, (one, other) in ratios.items():
        print(f"{said}: {medians[one] / medians[other]:.2f}")
    print(json.dumps({"options": {name: str(value) for name, value in vars(options).items()}, "rates": rates}))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--dtype", default="float32", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--readers", type=int, default=12)
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--profile", type=int, default=6, help="Reviews in a profile.")
    parser.add_argument("--words", type=int, default=60, help="Of each text; a review has a third of it.")
    parser.add_argument("--new-tokens", type=int, default=16)
    parser.add_argument("--at-once", type=int, default=32, help="Requests under way.")
    parser.add_argument(
        "--tight-gb", type=float, default=0.15, help="GiB for keys and values of the server that is short of it."
    )
    parser.add_argument("--rounds", type=int, default=3)
    return parser.parse_args()


if __name__ == "__main__":
    main()
