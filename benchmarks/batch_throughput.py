"""Judgements per second of offline scoring: the original way, vLLM's and Ray's batch tools, and shards of perse, on the same examples.

    OMP_NUM_THREADS=2 python benchmarks/batch_throughput.py --readers 8 --queries 8 --rounds 3

- *generate*: transformers' `generate`, one prompt at a time, its text parsed, as the original PerSE code does
- *run-batch*: `vllm run-batch`, requests of the chat route in shuffled order
- *ray-llm*: Ray Data LLM (`ray.data.llm`) as its pages show it, in the same order
- *shards*: a worker of `perse score --driver`, on vLLM and on the embedded engine

Each is asked for a review and a score, then for the score alone, with one model, dtype, prompts, temperature and limit of tokens. The first three write the
score and are parsed; the last two read its distribution, too. Every way is a process of its own that keeps its model, and stands still while others work; they are asked in turns, each round about
readers that none has met, and the median over rounds is compared. Loading is left out: of Ray, which loads for every job, the time in its engine counts, all examples being one batch.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from serve_throughput import _examples as drawn

from perse.answering.base import JudgeSettings
from perse.judgement import Status
from perse.questions import QUESTIONS
from perse.records import Example
from perse.rendering.prompt import LABEL_TOKENS, TextRenderer

MODES = {"review, then score": "pointwise", "score alone": "pointwise_score"}
FIRST = "generate"


@dataclass(frozen=True)
class Done:
    """What a job came to. `computed`: prompt tokens that came from no cache; None where the way does not tell."""

    seconds: float
    labels: int
    prompt: int | None = None
    computed: int | None = None


Way = Callable[[Sequence[Example], str], Done]
"""Judges examples by the name of a question."""


def main() -> None:
    options = _options()
    if options.serve:
        _serve(WAYS[options.serve](options))
        return
    rng = random.Random(options.seed)
    found: dict[tuple[str, str], list[Done]] = {}
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        ways = {name: held.enter_context(_worker(name, options, folder)) for name in options.ways}
        for turn in range(options.rounds + 1):
            for mode, question in MODES.items():
                examples = drawn(options, rng, readers=options.readers if turn else 1)
                job = folder / f"{turn}.jsonl"
                job.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in examples))
                for name, ask in ways.items():
                    done = ask(job, question)
                    if turn:  # the first warms up
                        found.setdefault((mode, name), []).append(done)
                    rate = len(examples) / done.seconds
                    print(f"round {turn}/{options.rounds}  {mode}, {name}: {rate:.2f}/s, {done.labels} labels", file=sys.stderr)
    _show(options, found)


@contextmanager
def _worker(name: str, options: argparse.Namespace, folder: Path) -> Iterator[Callable[[Path, str], Done]]:
    """A process that keeps the model of a way, and does one job after the other."""
    given = [
        f"--{key.replace('_', '-')}={value}" for key, value in vars(options).items() if key not in ("ways", "serve", "small")
    ]
    log = folder / f"{name}.log"
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__, "--serve", name, *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
            start_new_session=True,
        )  # fmt: skip
    assert process.stdin and process.stdout

    def ask(job: Path, question: str) -> Done:
        assert process.stdin and process.stdout
        os.killpg(process.pid, signal.SIGCONT)
        process.stdin.write(json.dumps([str(job), question]).encode() + b"\n")
        process.stdin.flush()
        for line in process.stdout:
            if line.startswith(b"done "):
                os.killpg(process.pid, signal.SIGSTOP)  # vLLM on a CPU waits by spinning
                return Done(**json.loads(line[5:]))
        raise SystemExit(f"{name} ended:\n{log.read_text()[-3000:]}")

    try:
        yield ask
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _serve(way: Way) -> None:
    from perse.records import parse_example

    for line in sys.stdin:
        job, question = json.loads(line)
        examples = [parse_example(json.loads(one)) for one in Path(job).read_text().splitlines()]
        print("done", json.dumps(vars(way(examples, question))), flush=True)


def _limit(options: argparse.Namespace, question: str) -> int:
    return LABEL_TOKENS + (options.new_tokens if QUESTIONS[question].layout.text_prefix else 0)


def _prompts(examples: Sequence[Example], question: str) -> list[str]:
    words = TextRenderer()
    return [words.render(QUESTIONS[question], one)[0].text for one in examples]


def _labels(texts: Sequence[str], question: str) -> int:
    asked = QUESTIONS[question]
    return sum(asked.layout.read(text, asked.scale)[0] is not None for text in texts)


def _model(options: argparse.Namespace) -> str:
    from perse.models.finding import find

    return str(find(options.model))


def _generate(options: argparse.Namespace) -> Way:
    import torch

    from perse.models import finding, opening

    model, tokenizer = (
        finding.load(finding.find(options.model), dtype=options.dtype).eval(),
        opening.tokenizer(finding.find(options.model)),
    )

    @torch.inference_mode()
    def way(examples: Sequence[Example], question: str) -> Done:
        begun, texts, prompt = time.perf_counter(), [], 0
        for told in _prompts(examples, question):
            turns = [{"role": "user", "content": told}]
            asked: Any = tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_tensors="pt", return_dict=True)
            size = asked["input_ids"].shape[1]
            written = model.generate(
                **asked, do_sample=True, temperature=options.temperature, top_k=0, top_p=1.0,
                max_new_tokens=_limit(options, question), pad_token_id=tokenizer.eos_token_id,
            )  # fmt: skip
            texts.append(tokenizer.decode(written[0, size:], skip_special_tokens=True))
            prompt += size
        return Done(time.perf_counter() - begun, _labels(texts, question), prompt, prompt)

    return way


def _run_batch(options: argparse.Namespace) -> Way:
    os.environ["VLLM_CPU_KVCACHE_SPACE"] = str(options.memory_gb)
    from vllm.entrypoints.launchers.api_server.entry import build_async_engine_client
    from vllm.entrypoints.launchers.run_batch import make_arg_parser, run_batch
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    folder = Path(tempfile.mkdtemp())
    given, said = folder / "in.jsonl", folder / "out.jsonl"
    arguments = make_arg_parser(FlexibleArgumentParser()).parse_args(
        ["-i", str(given), "-o", str(said), "--model", _model(options), "--served-model-name", "judge", "--dtype", options.dtype,
         "--max-model-len", str(options.context), "--enable-prompt-tokens-details", "--no-enable-chunked-prefill",
         "--max-num-batched-tokens", "8192"]
    )  # fmt: skip
    loop = asyncio.new_event_loop()
    held = build_async_engine_client(arguments)  # as long as this is referred to, the engine lives
    engine = loop.run_until_complete(held.__aenter__())

    def way(examples: Sequence[Example], question: str, held: object = held) -> Done:
        begun = time.perf_counter()
        with given.open("w") as lines:
            for number, told in enumerate(_prompts(examples, question)):
                body = {"model": "judge", "messages": [{"role": "user", "content": told}], "temperature": options.temperature,
                        "max_tokens": _limit(options, question)}  # fmt: skip
                line = {"custom_id": str(number), "method": "POST", "url": "/v1/chat/completions", "body": body}
                lines.write(json.dumps(line) + "\n")
        loop.run_until_complete(run_batch(engine, arguments))
        answers = [json.loads(line)["response"]["body"] for line in said.read_text().splitlines()]
        texts = [one["choices"][0]["message"]["content"] or "" for one in answers]
        seconds = time.perf_counter() - begun
        prompt = sum(one["usage"]["prompt_tokens"] for one in answers)
        cached = sum((one["usage"].get("prompt_tokens_details") or {}).get("cached_tokens") or 0 for one in answers)
        return Done(seconds, _labels(texts, question), prompt, prompt - cached)

    return way


def _ray_llm(options: argparse.Namespace) -> Way:
    os.environ.update(VLLM_CPU_KVCACHE_SPACE=str(options.memory_gb), RAY_USAGE_STATS_ENABLED="0")
    import ray
    from ray.data.llm import build_processor, vLLMEngineProcessorConfig

    ray.init(address="local", include_dashboard=False, log_to_driver=False, logging_level="ERROR", num_cpus=4)
    ray.data.DataContext.get_current().enable_progress_bars = False
    config = vLLMEngineProcessorConfig(
        model_source=_model(options),
        log_engine_metrics=False, concurrency=1, batch_size=options.readers * options.queries,
        engine_kwargs={"dtype": options.dtype, "max_model_len": options.context, "enable_chunked_prefill": False, "max_num_batched_tokens": 8192},
        placement_group_config={"bundle_per_worker": {"CPU": 1}},
    )  # fmt: skip

    def way(examples: Sequence[Example], question: str) -> Done:
        limit = _limit(options, question)
        processor = build_processor(
            config,
            preprocess=lambda row: {
                "messages": [{"role": "user", "content": row["told"]}],
                "sampling_params": {"temperature": options.temperature, "max_tokens": limit},
            },
            postprocess=lambda row: {
                "text": row["generated_text"],
                "prompt": row.get("num_input_tokens") or 0,
                "took": row["time_taken_llm"],
            },
        )
        rows = processor(ray.data.from_items([{"told": one} for one in _prompts(examples, question)])).take_all()
        seconds = max(row["took"] for row in rows)  # all are in the engine at once
        return Done(seconds, _labels([row["text"] for row in rows], question), sum(row["prompt"] for row in rows) or None)

    return way


def _shards(options: argparse.Namespace, *, engine: str) -> Way:
    from perse.batch.sharded.asking import asker_of
    from perse.batch.sharded.claims import Claims, Holder
    from perse.batch.sharded.finishing import answers
    from perse.batch.sharded.inputs import Row
    from perse.batch.sharded.running import Places
    from perse.batch.sharded.starting import Request, start
    from perse.batch.sharded.working import work
    from perse.engines.kind import LoadOptions
    from perse.judging.judge import Judge

    folder, loading = Path(tempfile.mkdtemp()), LoadOptions(dtype=options.dtype, context=options.context)
    settings = JudgeSettings(temperature=options.temperature, max_new_tokens=options.new_tokens)
    judge = Judge.load(f"{engine}{options.model}", **vars(loading))

    def way(examples: Sequence[Example], question: str) -> Done:
        out = folder / "run"
        shutil.rmtree(out, ignore_errors=True)
        begun = time.perf_counter()
        rows = (Row(one, "examples", number) for number, one in enumerate(examples))
        run = start(out, Request(f"{engine}{options.model}", loading, settings, {"drawn": begun}, question), rows)
        places, claims = Places(out), Claims(out / "claims", Holder.me("bench"))
        at_once = 2 if judge.engine.capabilities.at_once else 1
        work(places, run.plan, asker_of(judge, run), claims, session="s", at_once=at_once)
        found = [one for some in answers(places, run.plan) for one in some]
        prompt, cached = (sum(getattr(one.tokens, part) for one in found) for part in ("prompt", "cached"))
        return Done(time.perf_counter() - begun, sum(one.status is Status.OK for one in found), prompt, prompt - cached)

    return way


WAYS: dict[str, Callable[[argparse.Namespace], Way]] = {
    FIRST: _generate,
    "run-batch": _run_batch,
    "ray-llm": _ray_llm,
    "shards on vllm": partial(_shards, engine="vllm:"),
    "shards, embedded": partial(_shards, engine=""),
}


def _show(options: argparse.Namespace, found: dict[tuple[str, str], list[Done]]) -> None:
    asked = options.readers * options.queries
    table = Table(title=f"{options.readers} readers x {options.queries} queries, {options.profile} reviews of {options.words} words, {options.new_tokens} tokens of review, {options.model}, {options.dtype}")  # fmt: skip
    for column in (
        "asked for",
        "way",
        "judgements/s, median",
        "rounds",
        f"x {FIRST}",
        "prompt tokens computed",
        "with a label",
    ):
        table.add_column(column, justify="left" if column in ("asked for", "way") else "right")
    middle = {where: statistics.median(asked / one.seconds for one in each) for where, each in found.items()}
    for (mode, name), each in found.items():
        first = middle.get((mode, FIRST))
        computed = [one.computed for one in each if one.computed is not None]
        prompt = [one.prompt for one in each if one.prompt is not None]
        table.add_row(
            mode,
            name,
            f"{middle[mode, name]:.2f}",
            " ".join(f"{asked / one.seconds:.2f}" for one in each),
            f"{middle[mode, name] / first:.1f}" if first else "",
            f"{sum(computed) / sum(prompt):.0%}" if computed and sum(prompt) else "not told",
            f"{sum(one.labels for one in each)}/{asked * len(each)}",
        )
    Console(width=170).print(table)
    told = {f"{mode}, {name}": [vars(one) for one in each] for (mode, name), each in found.items()}
    print(json.dumps({"options": {name: str(value) for name, value in vars(options).items()}, "found": told}))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--context", type=int, default=2048)
    parser.add_argument("--readers", type=int, default=8)
    parser.add_argument("--queries", type=int, default=8, help="Of each reader.")
    parser.add_argument("--profile", type=int, default=6, help="Reviews in a profile.")
    parser.add_argument("--words", type=int, default=60, help="Of each text; a review has a third of it.")
    parser.add_argument("--new-tokens", type=int, default=32, help="Of a written review.")
    parser.add_argument("--temperature", type=float, default=0.8)
    parser.add_argument("--memory-gb", type=int, default=1, help="For keys and values of vLLM.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--serve", choices=list(WAYS), help=argparse.SUPPRESS)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.readers, options.queries, options.rounds, options.new_tokens = 1, 2, 1, 2
    return options


if __name__ == "__main__":
    main()
