"""What a benchmark holds, counted as in KGDS, appendix B.

Words are told apart by white space, where the paper counts a tokenizer's tokens, which are more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict
from rich.console import Group, RenderableType
from rich.table import Table

from perse.kgds.benchmark import KEY, NON_KEY, NONSUPPORTING, REPEATED, Benchmark, ParagraphFacts


class _Stats(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class FactCounts(_Stats):
    """Atomic facts of supporting, or of the other paragraphs."""

    total: int
    by_type: dict[int, int]
    """All types from 0 to 6."""

    @property
    def masked(self) -> int:
        """Types 4 to 6: a supporting paragraph says the same."""
        return sum(self.by_type[kind] for kind in (4, 5, 6))


class Stats(_Stats):
    """Counts of a whole benchmark; `_per_sample` are averages."""

    benchmark: str
    """sha256 of the benchmark's file."""
    samples: int
    paragraphs: int
    paragraphs_per_sample: float
    supporting: int
    nonsupporting: int
    article_words_per_sample: float
    participants_per_sample: float
    utterances_per_sample: float
    discussion_words_per_sample: float
    supporting_facts: FactCounts
    nonsupporting_facts: FactCounts
    opinions: int
    opinions_per_sample: float
    opinions_with_references: int
    """Opinions in which at least one reference was made clear, between `**`."""
    references: int
    """References that were made clear, in all."""


def stats(benchmark: Benchmark) -> Stats:
    """The counts of `benchmark`."""
    samples = list(benchmark.samples.values())
    paragraphs = sum(len(one.article) for one in samples)
    supporting = sum(len(one.supporting) for one in samples)
    opinions = [opinion for one in samples for opinion in one.opinions]
    references = [opinion.count("**") // 2 for opinion in opinions]

    def per_sample(total: int) -> float:
        return round(total / len(samples), 2)

    return Stats(
        benchmark=benchmark.digest,
        samples=len(samples),
        paragraphs=paragraphs,
        paragraphs_per_sample=per_sample(paragraphs),
        supporting=supporting,
        nonsupporting=paragraphs - supporting,
        article_words_per_sample=per_sample(_words(paragraph.text for one in samples for paragraph in one.article)),
        participants_per_sample=per_sample(sum(len({turn.participant for turn in one.discussion}) for one in samples)),
        utterances_per_sample=per_sample(sum(len(one.discussion) for one in samples)),
        discussion_words_per_sample=per_sample(_words(turn.utterance for one in samples for turn in one.discussion)),
        supporting_facts=_fact_counts(part for one in samples for part in one.supporting_facts),
        nonsupporting_facts=_fact_counts(part for one in samples for part in one.nonsupporting_facts),
        opinions=len(opinions),
        opinions_per_sample=per_sample(len(opinions)),
        opinions_with_references=sum(number > 0 for number in references),
        references=sum(references),
    )


def stats_view(found: Stats) -> RenderableType:
    """Tables for a terminal."""
    inside, others = found.supporting_facts, found.nonsupporting_facts
    masked = " + ".join(str(others.by_type[kind]) for kind in (4, 5, 6))
    return Group(
        _table(
            f"{found.samples} samples",
            ("paragraphs", f"{found.paragraphs}", f"{found.paragraphs_per_sample:.2f}"),
            ("  supporting", f"{found.supporting}", ""),
            ("  nonsupporting", f"{found.nonsupporting}", ""),
            ("words of the article*", "", f"{found.article_words_per_sample:.2f}"),
            ("participants", "", f"{found.participants_per_sample:.2f}"),
            ("utterances", "", f"{found.utterances_per_sample:.2f}"),
            ("words of the discussion*", "", f"{found.discussion_words_per_sample:.2f}"),
            ("opinions", f"{found.opinions}", f"{found.opinions_per_sample:.2f}"),
            ("  with clarified references", f"{found.opinions_with_references}", ""),
            ("clarified references", f"{found.references}", ""),
            header=("", "in all", "per sample"),
            note="* told apart by white space; the paper counts tokens",
        ),
        _table(
            "Atomic facts",
            ("key", f"{inside.by_type[KEY]}", ""),
            ("non-key", f"{inside.by_type[NON_KEY]}", ""),
            ("nonsupporting", "", f"{others.by_type[NONSUPPORTING]}"),
            ("repeated", f"{inside.by_type[REPEATED]}", f"{others.by_type[REPEATED]}"),
            ("masked (types 4 + 5 + 6)", f"{inside.masked}", f"{others.masked} ({masked})"),
            ("all", f"{inside.total}", f"{others.total}"),
            header=("", "supporting paragraphs", "other paragraphs"),
        ),
    )


def _words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _fact_counts(parts: Iterable[ParagraphFacts]) -> FactCounts:
    counted = Counter(fact.type for part in parts for fact in part.facts)
    return FactCounts(total=counted.total(), by_type={kind: counted[kind] for kind in range(7)})


def _table(title: str, *lines: tuple[str, ...], header: tuple[str, ...], note: str | None = None) -> Table:
    table = Table(title=title, caption=note, title_justify="left", caption_justify="left")
    for column, name in enumerate(header):
        table.add_column(name, justify="right" if column else "left")
    for line in lines:
        table.add_row(*line)
    return table
