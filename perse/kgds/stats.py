"""The counts of a benchmark, as in KGDS, appendix B.

Words are told apart by white space, where the paper counts a tokenizer's tokens, which are more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

from perse.kgds.benchmark import KEY, NON_KEY, NONSUPPORTING, REPEATED, Benchmark, ParagraphFacts
from perse.results.result import Result, Table


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


def stats_result(found: Stats) -> Result:
    """The counts as two tables."""
    inside, others = found.supporting_facts, found.nonsupporting_facts
    masked = " + ".join(str(others.by_type[kind]) for kind in (4, 5, 6))
    samples = Table(
        title=f"{found.samples} samples",
        header=("", "in all", "per sample"),
        rows=(
            ("paragraphs", f"{found.paragraphs}", f"{found.paragraphs_per_sample:.2f}"),
            ("- supporting", f"{found.supporting}", None),
            ("- nonsupporting", f"{found.nonsupporting}", None),
            ("words of the article*", None, f"{found.article_words_per_sample:.2f}"),
            ("participants", None, f"{found.participants_per_sample:.2f}"),
            ("utterances", None, f"{found.utterances_per_sample:.2f}"),
            ("words of the discussion*", None, f"{found.discussion_words_per_sample:.2f}"),
            ("opinions", f"{found.opinions}", f"{found.opinions_per_sample:.2f}"),
            ("- with clarified references", f"{found.opinions_with_references}", None),
            ("clarified references", f"{found.references}", None),
        ),
        notes=("* told apart by white space; the paper counts tokens",),
    )
    facts = Table(
        title="Atomic facts",
        header=("", "supporting paragraphs", "other paragraphs"),
        rows=(
            ("key", f"{inside.by_type[KEY]}", None),
            ("non-key", f"{inside.by_type[NON_KEY]}", None),
            ("nonsupporting", None, f"{others.by_type[NONSUPPORTING]}"),
            ("repeated", f"{inside.by_type[REPEATED]}", f"{others.by_type[REPEATED]}"),
            ("masked (types 4 + 5 + 6)", f"{inside.masked}", f"{others.masked} ({masked})"),
            ("all", f"{inside.total}", f"{others.total}"),
        ),
    )
    return Result(
        name="kgds stats",
        asks="What does the benchmark hold?",
        answer=f"{found.samples} samples: {found.paragraphs} paragraphs, of which {found.supporting} support the discussion, "
        f"and {found.opinions} opinions.",
        tables=(samples, facts),
        details=found.model_dump(mode="json"),
    )


def _words(texts: Iterable[str]) -> int:
    return sum(len(text.split()) for text in texts)


def _fact_counts(parts: Iterable[ParagraphFacts]) -> FactCounts:
    counted = Counter(fact.type for part in parts for fact in part.facts)
    return FactCounts(total=counted.total(), by_type={kind: counted[kind] for kind in range(7)})
