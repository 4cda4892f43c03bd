"""PerSum: a benchmark of summaries for one person, from Amazon's reviews by three filters.

A candidate is one review by a user of a product: beside it the others' reviews of the product, and the user's history, their
reviews of the category's other products (Rehearsal, section 4.1 and appendix A).

    history     more than 5 and fewer than 50 reviews in it, under 27,000 characters together
    no copy     (ours) nothing beside the review is a copy of it
    overlap     ROUGE-1 + -2 + -L of the review with the history, and with the product's reviews, is 0.45 or more
    judge       coverage and sentiment against the product's reviews, coverage alone against the history, 1 to 5 each

The cheap filters come first, so that the judge, who takes seconds a question, is asked last. What the paper leaves open: whether
both overlaps or either must suffice (`rouge`; ours: both), how a review is compared with a set (`rouge_against`), how many
other reviews a product needs (ours: 1), and "lower by one" (`group_of`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import perse
from perse.data.persum.card import Unseen
from perse.data.persum.filters import STEPS, Candidate, Funnel, filtered, hidden, limited
from perse.data.persum.folder import GROUPS, PERSUM, Group, PersumSummary, Sample, Scores, counted_samples, write_persum
from perse.data.persum.judging import ASKED, Answers, ask, failure, notes, ranges, scores_of, unseen_reviews
from perse.data.persum.options import PersumOptions
from perse.data.sources.amazon import category_of, read_amazon
from perse.data.sources.faults import Faults, skipped_lines
from perse.errors import BadInput
from perse.files.replacing import Claim, claimed
from perse.files.runlog import name_and_digest, run_of
from perse.formats.plain_files import unchanged_while_read
from perse.identity import shuffled
from perse.progress import OnProgress, unseen

if TYPE_CHECKING:
    from perse.judging.judge import Judge


def build_persum(options: PersumOptions, judge: Judge | None, *, on_progress: OnProgress = unseen) -> PersumSummary:
    """Reads, filters, asks `judge` and writes the folder; without a judge only counts what the first filters leave.

    Args:
        on_progress: told how many questions are answered, and of how many.
    Raises:
        BadInput: a file that cannot be used, a folder that may not be written, or nothing left to draw from.
        RunMismatch: the work folder has answers to other questions or by another judge.
    """
    if judge is None:
        return _build(options, None, None, on_progress)
    with claimed(options.out, PERSUM, overwrite=options.overwrite, inputs=options.reviews) as place:
        return _build(options, judge, place, on_progress)


def _build(options: PersumOptions, judge: Judge | None, place: Claim | None, on_progress: OnProgress) -> PersumSummary:
    funnels: dict[str, Funnel] = {}
    candidates: list[Candidate] = []
    sources: dict[str, Mapping[str, str]] = {}
    skipped = ""
    for path in sorted(options.reviews, key=category_of):
        faults = Faults(options.on_error)
        category = category_of(path)
        with unchanged_while_read(path):
            reviews = hidden(read_amazon(path, faults), options)
            sources[category] = name_and_digest(path)
        skipped += skipped_lines(faults.rows)
        funnel = funnels[category] = Funnel(out=faults.counts)
        candidates += limited(list(filtered(reviews, category, options, funnel)), options, funnel)
    if judge is None or place is None:
        return _summary(None, funnels, {}, (), {}, ())
    if not candidates:
        raise BadInput("no sample: the filters before the judge left no candidate; give more reviews, or wider filters")
    judged = ask(judge, candidates, options, on_progress=on_progress)
    groups = {name: dict.fromkeys(map(str, GROUPS), 0) for name in funnels}
    grouped: list[tuple[Candidate, Group, Scores]] = []
    for candidate in candidates:
        funnel = funnels[candidate.category]
        if not funnel.keeps("answered", failure(judged[candidate.id])):
            continue
        scores = scores_of(judged[candidate.id])
        group = group_of(scores, high=options.high, low=options.low)
        funnel.keeps("grouped", None if group else "neither High, Low nor HHPL")
        if group is not None:
            groups[candidate.category][group] += 1
            grouped.append((candidate, group, scores))
    samples = drawn(grouped, options)
    if not samples:
        raise BadInput(_no_sample(candidates, ranges(judged)))
    summary = _summary(options.out, funnels, groups, samples, unseen_reviews(candidates, judged), notes(judge))
    write_persum(place, samples, _manifest(options, sources, summary, judge, judged), skipped=skipped)
    return summary


def group_of(scores: Scores, *, high: float = 4.0, low: float = 3.0) -> Group | None:
    """High: every score above `high`. Low: every score above `low` and up to `high`. HHPL: the history's as in High, the
    product's as in Low. None: the product's two scores differ in this, or one is lower still, or only the product is high."""

    def level(*values: float) -> str | None:
        if all(value > high for value in values):
            return "high"
        return "low" if all(low < value <= high for value in values) else None

    both: dict[tuple[str | None, str | None], Group] = {
        ("high", "high"): "High",
        ("low", "low"): "Low",
        ("high", "low"): "HHPL",
    }
    return both.get((level(scores.history_coverage), level(scores.product_coverage, scores.product_sentiment)))


def drawn(grouped: Iterable[tuple[Candidate, Group, Scores]], options: PersumOptions) -> list[Sample]:
    """As many of each category and group as wanted, drawn by the seed; by category, group and id."""
    of: dict[tuple[str, Group], dict[str, Sample]] = defaultdict(dict)
    for one, group, scores in grouped:
        of[one.category, group][one.id] = Sample(
            id=one.id,
            category=one.category,
            group=group,
            own=one.own,
            product_reviews=one.product,
            history=one.history,
            scores=scores,
        )
    samples = []
    for category, group in sorted(of, key=lambda key: (key[0], GROUPS.index(key[1]))):
        found = of[category, group]
        ids = shuffled(found, seed=options.seed, purpose=f"persum {category} {group}")
        samples += [found[one] for one in sorted(ids[: options.counts_of(category).of(group)])]
    return samples


def _summary(
    out: Path | None,
    funnels: Mapping[str, Funnel],
    groups: Mapping[str, Mapping[str, int]],
    samples: Sequence[Sample],
    unseen: Mapping[str, Unseen],
    notes: tuple[str, ...],
) -> PersumSummary:
    steps = STEPS if out is not None else STEPS[:-2]
    return PersumSummary(
        out=out,
        funnel={name: {step: funnel.left[step] for step in steps} for name, funnel in funnels.items()},
        left_out={name: dict(sorted((+funnel.out).items())) for name, funnel in funnels.items()},
        groups={name: dict(found) for name, found in groups.items()},
        samples=counted_samples(samples, funnels) if out else {},
        unseen=dict(unseen),
        notes=notes,
    )


def _no_sample(candidates: Sequence[Candidate], found: Mapping[str, Sequence[float]]) -> str:
    said = "; ".join(f"{name} from {least:.2f} to {most:.2f}" for name, (least, _, most) in found.items())
    return (
        f"no sample: of {len(candidates)} candidates that were judged, none that is wanted is High, Low or HHPL ({said or 'no answer could be read'}); "
        "take a judge that was made for this, or other thresholds (--high, --low): the answers are kept"
    )


def _manifest(
    options: PersumOptions,
    sources: Mapping[str, Mapping[str, str]],
    summary: PersumSummary,
    judge: Judge,
    judged: Mapping[str, Answers],
) -> dict[str, Any]:
    statuses = {
        f"{against} {name}": dict(sorted(Counter(str(answers[against, name].status) for answers in judged.values()).items()))
        for against, name in ASKED
    }
    return {
        "perse": perse.__version__,
        "options": options.for_manifest(),
        "sources": sources,
        "judge": judge.for_manifest,
        "prompts_sha256": run_of(options.work)["prompts_sha256"],
        "judgements": statuses,
        "judged_scores": ranges(judged),
        **summary.model_dump(mode="json", include={"funnel", "left_out", "groups", "samples", "unseen", "notes"}),
    }
