"""`perse kgds ...`: knowledge-grounded discussion summaries, from the benchmark to the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from perse.commands.kgds.agreement import agreement
from perse.commands.kgds.build import build, feedback
from perse.commands.kgds.numbers import metrics, stats
from perse.commands.kgds.options import (
    BenchmarkFile,
    Context,
    Dtype,
    JudgeName,
    Name,
    Run,
    Samples,
    Seed,
    Tokenizer,
    load_judge,
)
from perse.commands.kgds.report import report

err = Console(stderr=True)
app = typer.Typer(no_args_is_help=True, help="Discussion summaries for outsiders: generate, verify and score them (KGDS).")


def generate(
    benchmark: BenchmarkFile,
    writer: Annotated[str, typer.Option(help="The model that summarizes, named as a judge is.", show_default=False)],
    out: Annotated[Path, typer.Option(help="The run folder to write or to continue.", show_default=False)],
    pattern: Annotated[
        list[str] | None, typer.Option(help="ebs-aos (chosen paragraphs) or abs-aos (own words); by default both.")
    ] = None,
    paradigm: Annotated[
        list[str] | None, typer.Option(help="structured (one prompt) or reflection (and a second turn); by default both.")
    ] = None,
    samples: Samples = None,
    max_new_tokens: Annotated[int, typer.Option(min=128, help="Longest answer, in tokens; 4096 is the paper's.")] = 4096,
    temperature: Annotated[float, typer.Option(min=0.0, max=2.0, help="0 is greedy, and the paper's.")] = 0.0,
    tries: Annotated[int, typer.Option(min=1, help="Answers asked for at most, until one can be read.")] = 3,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
) -> None:
    """Let a model summarize every discussion; the same command continues after a stop, and adds what is not there yet.

    Example:  perse kgds generate KGDS.json --writer smollm2-135m --max-new-tokens 192 --out runs/kgds

    Server:   perse kgds generate KGDS.json --writer openai:http://127.0.0.1:8000/v1#llama --pattern ebs-aos --out runs/llama
    """
    from perse.kgds.asking.generate import generate as run_generate
    from perse.kgds.benchmark import PARADIGMS, PATTERNS, Paradigm, Pattern, read_benchmark
    from perse.kgds.folder import read_summaries
    from perse.kgds.scoring.formulas import strange
    from perse.writing.writer import Writer

    patterns = cast(list[Pattern], _chosen("--pattern", pattern, PATTERNS))
    paradigms = cast(list[Paradigm], _chosen("--paradigm", paradigm, PARADIGMS))
    given = read_benchmark(benchmark).first(samples)
    loaded = Writer(load_judge(writer, dtype=dtype, context=context, tokenizer=tokenizer))
    with bars() as tell:
        run_generate(
            loaded,
            given,
            out,
            patterns=patterns,
            paradigms=paradigms,
            max_new_tokens=max_new_tokens,
            temperature=temperature,
            tries=tries,
            seed=seed,
            progress=lambda of, how, done, total: tell(f"{of} {how}", done, total),
        )
    for (of, how), summaries in read_summaries(out).items():
        counts = Counter(one.status for one in summaries.values())
        cited = [(one.paragraphs, given.samples[one.sample]) for one in summaries.values() if one.sample in given.samples]
        odd = sum(strange(paragraphs or (), sample) > 0 for paragraphs, sample in cited)
        told = ", ".join(f"{count} {status}" for status, count in counts.most_common())
        err.print(f"{of} {how}: {told}" + (f"; {odd} cite paragraphs that do not exist" if odd else ""))
    asked = len(patterns) * len(paradigms) * len(given.samples)
    have = sum(
        one.sample in given.samples and one.pattern in patterns and one.paradigm in paradigms
        for summaries in read_summaries(out).values()
        for one in summaries.values()
    )
    if have < asked:
        err.print(f"{asked - have} summaries are missing, because the engine failed; the same command asks for them again")
    _say(f"summaries: {out}  next: perse kgds verify {benchmark} {out} --judge JUDGE")


def verify(
    benchmark: BenchmarkFile,
    run: Run,
    judge: JudgeName,
    facts: Annotated[
        str, typer.Option(help="single (an exact probability each, sharing the summary) or paragraph (in lists, as the paper).")
    ] = "single",
    name: Name = "verified",
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
) -> None:
    """Ask a judge which facts and opinions each summary tells; the same command continues after a stop.

    Example:  perse kgds verify KGDS.json runs/kgds --judge smollm2-135m

    As the paper:  perse kgds verify KGDS.json runs/kgds --judge openai:https://api.openai.com/v1#gpt-4o --facts paragraph --name gpt-4o
    """
    from perse.errors import BadInput
    from perse.kgds.asking.verify import FactMode
    from perse.kgds.asking.verify import verify as run_verify
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import JUDGEMENTS, read_judgements, summaries_of, verification

    if facts not in get_args(FactMode):
        raise BadInput(f"--facts is '{facts}'; choose single or paragraph")
    samples = read_benchmark(benchmark)
    summaries_of(run, samples)
    verification(run, name)  # before a judge is loaded
    loaded = load_judge(judge, dtype=dtype, context=context, tokenizer=tokenizer)
    with bars() as tell:
        folder = run_verify(
            loaded, samples, run, name=name, facts=cast(FactMode, facts),
            tick=lambda done, total: tell("verifying", done, total),
        )  # fmt: skip
    _told(folder, read_judgements(folder / JUDGEMENTS))
    _say(
        f"verified: {folder}  next: perse kgds errors {benchmark} {run} --judge {judge}"
        + ("" if name == "verified" else f" --name {name}")
    )


def errors(
    benchmark: BenchmarkFile,
    run: Run,
    judge: JudgeName,
    name: Name = "verified",
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
) -> None:
    """Ask a judge which of five errors keeps each opinion that is not covered from being so.

    Example:  perse kgds errors KGDS.json runs/kgds --judge smollm2-135m
    """
    from perse.kgds.asking.errors import detect, uncovered
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import JUDGEMENTS, read_judgements
    from perse.kgds.outcomes import NUMBERED

    samples = read_benchmark(benchmark)
    for _ in uncovered(samples, run, name):  # whatever is wrong with the run is said before a judge is loaded
        pass
    loaded = load_judge(judge, dtype=dtype, context=context, tokenizer=tokenizer)
    with bars() as tell:
        folder = detect(loaded, samples, run, name=name, tick=lambda done, total: tell("classifying", done, total))
    found = read_judgements(folder / JUDGEMENTS)
    _told(folder, found)
    types = Counter(NUMBERED[one.label] for one in found.values() if one.label)
    err.print("errors: " + (", ".join(f"{count} {kind}" for kind, count in types.most_common()) or "none classified"))
    _say(f"next: perse kgds metrics {benchmark} {run}" + ("" if name == "verified" else f" --name {name}"))


def _told(folder: Path, judgements: dict[str, Any]) -> None:
    """How many were answered, what it cost, and what the first failure was."""
    statuses = Counter(str(one.status) for one in judgements.values())
    prompt, cached = (sum(getattr(one.tokens, part) for one in judgements.values()) for part in ("prompt", "cached"))
    counts = ", ".join(f"{count:,} {status}" for status, count in statuses.most_common()) or "nothing to ask"
    _say(f"{folder}: {counts}; {prompt:,} prompt tokens, {prompt - cached:,} computed")
    failed = next((one for one in judgements.values() if one.status != "ok"), None)
    if failed:
        _say(f"the first without an answer is {failed.id}: {failed.error}")


def _say(words: str) -> None:
    """Words to a person; paths and model names in them are no markup."""
    err.print(words, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def bars() -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each thing that is told of: name, done, total."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err) as progress:
        tasks: dict[str, Any] = {}

        def tell(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(escape(name), total=total)
            progress.update(tasks[name], completed=done, total=total)

        yield tell


def _chosen(option: str, given: list[str] | None, allowed: tuple[str, ...]) -> list[str]:
    from perse.errors import BadInput

    if wrong := [one for one in given or () if one not in allowed]:
        raise BadInput(f"{option} is '{wrong[0]}'; choose {' or '.join(allowed)}")
    return list(given or allowed)


for command in (stats, generate, verify, errors, metrics, report, build, feedback, agreement):
    app.command(command.__name__)(command)
