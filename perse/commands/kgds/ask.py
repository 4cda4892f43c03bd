"""`perse kgds generate | verify | errors`: let a model summarize discussions, and ask a judge what the summaries tell."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.kgds import BenchmarkFile, Name, ParadigmName, PatternName, Run, Samples, WriterName
from perse.commands.terminal import err, say
from perse.kgds.benchmark import FactMode
from perse.progress import shown_on


@grouped
def generate(
    *,
    benchmark: BenchmarkFile,
    writer: WriterName,
    out: options.Out,
    pattern: Annotated[
        list[PatternName] | None,
        typer.Option(help="ebs-aos (chosen paragraphs) or abs-aos (own words).", show_default="both"),
    ] = None,
    paradigm: Annotated[
        list[ParadigmName] | None,
        typer.Option(help="structured (one prompt) or reflection (and a second turn).", show_default="both"),
    ] = None,
    samples: Samples = None,
    max_new_tokens: Annotated[int, typer.Option(min=128, help="Longest summary, in tokens; 4096 is the paper's.")] = 4096,
    temperature: options.Temperature = 0.0,
    tries: options.Tries = 3,
    loading: Loading,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Let a model summarize every discussion; the same command continues after a stop, and adds what is not there yet.

    Example:  perse kgds generate KGDS.json --writer smollm2-135m --max-new-tokens 192 --out runs/kgds

    Server:   perse kgds generate KGDS.json --writer openai:http://127.0.0.1:8000/v1#llama --pattern ebs-aos --out runs/llama
    """
    from perse.kgds.asking.generate import generate as write
    from perse.kgds.asking.generated import generated
    from perse.kgds.benchmark import read_benchmark
    from perse.writing.writer import Writer

    patterns = [one.as_pattern for one in pattern or PatternName]
    paradigms = [one.as_paradigm for one in paradigm or ParadigmName]
    given = read_benchmark(benchmark).first(samples)
    loaded = Writer(loading.load(writer, writes=True))
    with shown_on(err) as on_part:
        write(
            loaded, given, out,
            patterns=patterns, paradigms=paradigms, max_new_tokens=max_new_tokens, temperature=temperature, tries=tries, seed=seed,
            on_progress=on_part,
        )  # fmt: skip
    made = generated(out, given, patterns=patterns, paradigms=paradigms)
    for one in made.combinations:
        told = ", ".join(f"{count} {status}" for status, count in one.statuses.items())
        odd = f"; {one.strange} cite paragraphs that do not exist" if one.strange else ""
        say(f"{one.pattern} {one.paradigm}: {told}{odd}")
    if made.missing:
        say(f"{made.missing} summaries are missing, because the engine failed; the same command asks for them again")
    say(f"summaries: {out}  next: perse kgds verify {benchmark} {out} --judge JUDGE")
    if as_json:
        typer.echo(json.dumps({"run": str(out), **asdict(made)}, indent=2))


@grouped
def verify(
    *,
    benchmark: BenchmarkFile,
    run: Run,
    judge: options.JudgeName,
    facts: Annotated[
        FactMode,
        typer.Option(help="single (an exact probability each, sharing the summary) or paragraph (in lists, as the paper)."),
    ] = "single",
    name: Name = "verified",
    loading: Loading,
    as_json: options.AsJson = False,
) -> None:
    """Ask a judge which facts and opinions each summary tells; the same command continues after a stop.

    Example:  perse kgds verify KGDS.json runs/kgds --judge smollm2-135m

    As the paper:  perse kgds verify KGDS.json runs/kgds --judge openai:https://api.openai.com/v1#gpt-4o --facts paragraph --name gpt-4o
    """
    from perse.kgds.asking.verify import verify as ask
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import JUDGEMENTS, read_judgements, summaries_of, verification

    samples = read_benchmark(benchmark)
    summaries_of(run, samples)
    verification(run, name)  # before a judge is loaded
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        folder = ask(loaded, samples, run, name=name, facts=facts, on_progress=partial(on_part, "verifying"))
    found = read_judgements(folder / JUDGEMENTS)
    _show(folder, found)
    say(f"verified: {folder}  next: perse kgds errors {benchmark} {run} --judge {judge}{_named(name)}")
    if as_json:
        typer.echo(json.dumps(_numbers(folder, found), indent=2))


@grouped
def errors(
    *,
    benchmark: BenchmarkFile,
    run: Run,
    judge: options.JudgeName,
    name: Name = "verified",
    loading: Loading,
    as_json: options.AsJson = False,
) -> None:
    """Ask a judge which of five errors keeps each opinion that is not covered from being so.

    Example:  perse kgds errors KGDS.json runs/kgds --judge smollm2-135m
    """
    from perse.kgds.asking.opinion_errors import detect, uncovered
    from perse.kgds.benchmark import read_benchmark
    from perse.kgds.folder import JUDGEMENTS, read_judgements
    from perse.kgds.outcomes import NUMBERED

    samples = read_benchmark(benchmark)
    for _ in uncovered(samples, run, name):  # whatever is wrong with the run is said before a judge is loaded
        pass
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        folder = detect(loaded, samples, run, name=name, on_progress=partial(on_part, "classifying"))
    found = read_judgements(folder / JUDGEMENTS)
    types = Counter(NUMBERED[one.label] for one in found.values() if one.label)
    _show(folder, found)
    say("errors: " + (", ".join(f"{count} {kind}" for kind, count in types.most_common()) or "none classified"))
    say(f"next: perse kgds metrics {benchmark} {run}{_named(name)}")
    if as_json:
        typer.echo(json.dumps({**_numbers(folder, found), "errors": dict(types)}, indent=2))


def _numbers(folder: Path, judgements: Mapping[str, Any]) -> dict[str, Any]:
    """How many were answered, and what it cost."""
    statuses = Counter(str(one.status) for one in judgements.values())
    tokens = {part: sum(getattr(one.tokens, part) for one in judgements.values()) for part in ("prompt", "cached", "generated")}
    return {"folder": str(folder), "statuses": dict(statuses.most_common()), "tokens": tokens}


def _show(folder: Path, judgements: Mapping[str, Any]) -> None:
    numbers = _numbers(folder, judgements)
    counts = ", ".join(f"{count:,} {status}" for status, count in numbers["statuses"].items()) or "nothing to ask"
    prompt, cached = numbers["tokens"]["prompt"], numbers["tokens"]["cached"]
    say(f"{folder}: {counts}; {prompt:,} prompt tokens, {prompt - cached:,} computed")
    failed = next((one for one in judgements.values() if one.status != "ok"), None)
    if failed:
        say(f"the first without an answer is {failed.id}: {failed.error}")


def _named(name: str) -> str:
    """The option that the next command needs if the verification has another name."""
    return "" if name == "verified" else f" --name {name}"
