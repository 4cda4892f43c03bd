"""`perse kgds build | feedback`: make new benchmark samples, and ask whose selection of paragraphs is the better one.

Thin: everything is in `build` and `feedback`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from perse.commands.kgds.options import AsJson, BenchmarkFile, Context, Dtype, Resamples, Seed, Tokenizer, load_judge

if TYPE_CHECKING:
    from perse.judging.judge import Judge
    from perse.kgds.asking.feedback import FeedbackResult
    from perse.kgds.building.build import BuildReport
    from perse.kgds.building.consistency import Consistency
    from perse.results.result import Estimate

err = Console(stderr=True, highlight=False, soft_wrap=True)


def build(
    drafts: Annotated[
        Path,
        typer.Argument(help="JSON lines or a JSON list: article, discussion, supporting (two annotators), opinions."),
    ],
    out: Annotated[Path, typer.Option(help="The folder of the build; the same one to go on.", show_default=False)],
    writer: Annotated[
        str,
        typer.Option(
            help="Who takes paragraphs apart: PATH, vllm:PATH or openai:URL#MODEL; the paper's is GPT-4o.", show_default=False
        ),
    ],
    judge: Annotated[
        str | None, typer.Option(help="Who masks facts that supporting paragraphs tell, too.", show_default="the writer")
    ] = None,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest list of a paragraph's facts, in tokens.")] = 4096,
    tries: Annotated[int, typer.Option(min=1, help="At most so many answers for each paragraph.")] = 3,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """New samples of the benchmark from drafts (KGDS, section 4): atomic facts, key facts by two annotators, masking.

    Give it twice: it stops at OUT/key-facts.csv, and goes on where the annotators have filled that in. After a kill, the same
    command continues.

    Example:  perse kgds build drafts.jsonl --out work/new --writer openai:http://127.0.0.1:8000/v1#llama
    """
    from perse.commands.data.paper import step_in, steps
    from perse.kgds.building.build import BuildOptions
    from perse.kgds.building.build import build as built
    from perse.writing.writer import Writer

    options = BuildOptions(drafts=drafts, out=out, max_new_tokens=max_new_tokens, tries=tries, seed=seed)
    written_by = load_judge(writer, dtype=dtype, context=context, tokenizer=tokenizer)

    def masker() -> Judge:
        if judge is None or judge == writer:
            return written_by
        return load_judge(judge, dtype=dtype, context=context, tokenizer=tokenizer)

    with steps() as progress:
        report = built(options, Writer(written_by), masker, step=step_in(progress))
    for line in _build_lines(report, out):
        err.print(line, markup=False)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))


def feedback(
    benchmark: BenchmarkFile,
    run: Annotated[Path, typer.Argument(help="A folder that `perse kgds generate` wrote, with structured ebs-aos summaries.")],
    judge: Annotated[
        str,
        typer.Option(
            help="Who decides: PATH, vllm:PATH or openai:URL#MODEL. The paper asks the model that wrote the summaries.",
            show_default=False,
        ),
    ],
    resamples: Resamples = 1000,
    dtype: Dtype = "bfloat16",
    context: Context = None,
    tokenizer: Tokenizer = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Whose paragraphs are the better background, the experts' or the model's own? (KGDS, section 6.1, figure 3).

    Asked wherever the two differ, in both orders; the answers are kept in RUN/feedback, and the same command continues.

    Example:  perse kgds feedback KGDS.json runs/llama --judge openai:http://127.0.0.1:8000/v1#llama
    """
    from perse.commands.data.paper import steps
    from perse.kgds.asking.feedback import feedback as asked
    from perse.kgds.benchmark import read_benchmark

    samples = read_benchmark(benchmark)
    loaded = load_judge(judge, dtype=dtype, context=context, tokenizer=tokenizer)
    with steps() as progress:
        task = progress.add_task("judging", total=None)
        result = asked(
            loaded,
            samples,
            run,
            resamples=resamples,
            seed=seed,
            tick=lambda done, total: progress.update(task, completed=done, total=total),
        )
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
        return
    for line in _feedback_lines(result):
        err.print(line, markup=False)


def _build_lines(report: BuildReport, out: Path) -> list[str]:
    """What a person is told of a build, and what there is to do."""
    paragraphs = report.paragraphs
    tries = ", ".join(f"{count:,} {kind}" for kind, count in report.tries.items())
    removed = paragraphs.asked - paragraphs.agreed
    lines = [
        f"{report.samples:,} drafts with {paragraphs.asked:,} paragraphs; annotators agree on {_agreement(paragraphs)} (paper: 84.7%)",
        f"{removed:,} boundary paragraphs removed; of {paragraphs.agreed:,} left {report.supporting:,} are supporting",
        f"{report.facts:,} atomic facts; tries: {tries}",
    ]
    if report.key_facts is None or report.masking is None:
        return [
            *lines,
            f"now it is the annotators' turn: {report.sheet:,} facts of supporting paragraphs are in {out / 'key-facts.csv'}",
            f"fill in yes or no for {_listed(report.annotators)}: can the discussion not be understood without this fact?",
            "then give the same command again",
        ]
    masking, types = report.masking, report.types
    lines += [
        f"key facts: annotators agree on {_agreement(report.key_facts)}",
        f"facts: {types.get(1, 0):,} key, {types.get(2, 0):,} non-key, {types.get(0, 0):,} nonsupporting, {types.get(3, 0):,} repeated, "
        f"{types.get(4, 0):,} masked",
    ]
    if masking.unanswered:
        why = ", ".join(f"{count:,} {status}" for status, count in masking.unanswered.items())
        lines.append(
            f"masked because the judge did not answer: {why}; what the engine failed at is asked by the same command again"
        )
    if masking.in_doubt:
        lines.append(
            f"no fact was answered of sample {', '.join(map(str, masking.in_doubt))}: take another --judge before you use it"
        )
    return [*lines, f"written: {out / 'benchmark.json'}"]


def _feedback_lines(result: FeedbackResult) -> list[str]:
    kinds = result.selections
    lines = [
        f"{result.model}: {kinds['differs']:,} selections differ from the experts', {kinds['same']:,} are the same; left out: "
        f"{kinds['empty']:,} empty, {kinds['failed']:,} failed",
        f"{result.judge} answered {result.answered:,} of {kinds['differs']:,}",
        f"experts' selection preferred: {_rate(result.share)} (paper: 88.89% on average over its models)",
        f"mean probability of the experts' selection: {_rate(result.probability)}",
    ]
    if result.order_gap is not None:
        lines.append(f"mean difference between the two orders: {result.order_gap:.2f}")
    return lines


def _agreement(found: Consistency) -> str:
    percent = "undefined" if found.percent is None else f"{found.percent:.1f}%"
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
    return f"{found.agreed:,} of {found.asked:,}, {percent}, kappa {kappa}"


def _rate(estimate: Estimate) -> str:
    if estimate.value is None:
        return "undefined (no answer)"
    inside = estimate.interval
    between = f"{inside.low:.2f} to {inside.high:.2f}" if inside.low is not None and inside.high is not None else inside.reason
    return f"{estimate.value:.2f}% [{between}]"


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
