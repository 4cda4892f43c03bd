"""`perse kgds build | feedback`: make new benchmark samples, and ask whose selection of paragraphs is the better one."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.judging import Loading
from perse.commands.options.kgds import BenchmarkFile, WriterName
from perse.commands.terminal import err, say
from perse.progress import shown_on

if TYPE_CHECKING:
    from perse.judging.judge import Judge
    from perse.kgds.building.build import BuildReport
    from perse.kgds.building.consistency import Consistency
    from perse.kgds.preferences import FeedbackResult
    from perse.results.result import Estimate


@grouped
def build(
    *,
    drafts: Annotated[
        Path,
        typer.Argument(help="JSON lines or a JSON list: article, discussion, supporting (two annotators), opinions."),
    ],
    out: options.Out,
    writer: WriterName,
    judge: Annotated[
        str | None, typer.Option(help="Who masks facts that supporting paragraphs tell, too.", show_default="the writer")
    ] = None,
    max_new_tokens: options.MaxNewTokens = 4096,
    tries: options.Tries = 3,
    loading: Loading,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """New samples of the benchmark from drafts (KGDS, section 4): atomic facts, key facts by two annotators, masking.

    Give it twice: it stops at OUT/key-facts.csv, and goes on where the annotators have filled that in. After a kill, the same
    command continues.

    Example:  perse kgds build drafts.jsonl --out work/new --writer openai:http://127.0.0.1:8000/v1#llama
    """
    from perse.kgds.building.build import BuildOptions
    from perse.kgds.building.build import build as built
    from perse.writing.writer import Writer

    settings = BuildOptions(drafts=drafts, out=out, max_new_tokens=max_new_tokens, tries=tries, seed=seed)
    written_by = loading.load(writer, writes=True)

    def masker() -> Judge:
        if judge is None or judge == writer:
            return written_by
        return loading.load(judge)

    with shown_on(err) as on_part:
        report = built(settings, Writer(written_by), masker, on_progress=on_part)
    for line in _build_lines(report, out):
        say(line)
    if as_json:
        typer.echo(report.model_dump_json(indent=2))


@grouped
def feedback(
    *,
    benchmark: BenchmarkFile,
    run: Annotated[Path, typer.Argument(help="A folder that `perse kgds generate` wrote, with structured ebs-aos summaries.")],
    judge: options.JudgeName,
    second_turn: Annotated[
        bool,
        typer.Option(
            "--second-turn",
            help="As the paper: in the conversation in which the model chose, whose name --judge then has to be.",
        ),
    ] = False,
    resamples: options.Resamples = 1000,
    loading: Loading,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
) -> None:
    """Whose paragraphs are the better background, the experts' or the model's own? (KGDS, section 6.1, figure 3).

    Asked wherever the two differ, in both orders; the answers are kept in RUN/feedback (or feedback-second-turn), and the same command
    continues.

    Example:  perse kgds feedback KGDS.json runs/llama --judge openai:http://127.0.0.1:8000/v1#llama

    Paper:    perse kgds feedback KGDS.json runs/llama --judge openai:http://127.0.0.1:8000/v1#llama --second-turn
    """
    from perse.kgds.asking.feedback import feedback as asked
    from perse.kgds.benchmark import read_benchmark

    samples = read_benchmark(benchmark)
    loaded = loading.load(judge)
    with shown_on(err) as on_part:
        result = asked(
            loaded, samples, run,
            second_turn=second_turn, resamples=resamples, seed=seed, on_progress=partial(on_part, "judging"),
        )  # fmt: skip
    if as_json:
        typer.echo(result.model_dump_json(indent=2))
        return
    for line in _feedback_lines(result):
        say(line)


def _build_lines(report: BuildReport, out: Path) -> list[str]:
    """The state of a build, and the next step."""
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
        f"mean probability of the experts' selection: {_rate(result.probability, none='no answer has probabilities')}",
    ]
    if result.order_gap is not None:
        lines.append(f"mean difference between the two orders: {result.order_gap:.2f}")
    return lines


def _agreement(found: Consistency) -> str:
    percent = "undefined" if found.percent is None else f"{found.percent:.1f}%"
    kappa = "undefined" if found.kappa is None else f"{found.kappa:.2f}"
    return f"{found.agreed:,} of {found.asked:,}, {percent}, kappa {kappa}"


def _rate(estimate: Estimate, *, none: str = "no answer") -> str:
    if estimate.value is None:
        return f"undefined ({none})"
    inside = estimate.interval
    between = f"{inside.low:.2f} to {inside.high:.2f}" if inside.low is not None and inside.high is not None else inside.reason
    return f"{estimate.value:.2f}% [{between}]"


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
