"""The metrics of one summary: how much it covers, and how much else it says (KGDS, sections 4.3-4.6, appendix C).

All are fractions, 0 to 1, and defined for every summary that can be read: where nothing is extracted or covered the authors' 0
replaces 0/0. Only facts of types 1 (key) and 0 (nonsupporting) count; the others are asked about, and left out.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from perse.errors import BadInput
from perse.kgds.benchmark import KEY, NONSUPPORTING, Pattern, Sample
from perse.kgds.outcomes import Outcome, tag
from perse.kgds.scoring.results import Metric


@dataclass(frozen=True)
class Background:
    """How well a summary gives the background."""

    recall: float
    precision: float
    f1: float


def bsp(cited: Collection[int], sample: Sample) -> Background:
    """Back-supporting paragraphs (equations 11-14).

    R = extracted supporting / supporting; P = extracted supporting / extracted; F1 = 2 P R / (P + R). An empty extraction scores 0;
    missing paragraphs are ignored.
    """
    extracted = set(cited) & {paragraph.index for paragraph in sample.article}
    return _background(len(extracted & sample.supporting_indices), all_right=len(sample.supporting), found=len(extracted))


def bsp_of_tags(tags: Collection[str], sample: Sample) -> Background:
    """`bsp` as the authors' script counts: whatever is written is extracted, and right if it is a supporting paragraph's tag letter by
    letter. A paragraph that does not exist lowers the precision, and so does a tag that names none."""
    extracted = set(tags)
    right = extracted & {tag(index) for index in sample.supporting_indices}
    return _background(len(right), all_right=len(sample.supporting), found=len(extracted))


def kbsaf(facts: Sequence[bool], sample: Sample) -> Background:
    """Key back-supporting atomic facts (equations 4-6).

    R = covered key facts / key facts; P = covered key facts / covered key and nonsupporting facts; F1 = 2 P R / (P + R).

    Args:
        facts: whether each of `sample.facts` is covered.
    Raises:
        BadInput: more or fewer of them.
    """
    expected = sample.facts
    if len(facts) < len(expected):
        first = expected[len(facts)]
        raise BadInput(
            f"sample {sample.number}: {len(facts)} facts are verified of {len(expected)}; the first without a verification is "
            f"fact {first.at} of paragraph {first.paragraph}, '{first.text}': verify it, too"
        )
    if len(facts) > len(expected):
        raise BadInput(f"sample {sample.number}: {len(facts)} facts are verified, but the benchmark has {len(expected)}")
    covered = {
        kind: sum(is_covered and fact.type == kind for fact, is_covered in zip(expected, facts, strict=True)) for kind in (0, 1)
    }
    keys = sum(fact.type == KEY for fact in expected)
    return _background(covered[KEY], all_right=keys, found=covered[KEY] + covered[NONSUPPORTING])


def cao(opinions: Sequence[bool], sample: Sample) -> float:
    """Clear atomic opinions (equation 8): R = covered / all.

    Args:
        opinions: whether each of `sample.opinions` is covered.
    Raises:
        BadInput: more or fewer of them.
    """
    expected = sample.opinions
    if len(opinions) < len(expected):
        raise BadInput(
            f"sample {sample.number}: {len(opinions)} opinions are verified of {len(expected)}; the first without a verification "
            f"is '{expected[len(opinions)]}': verify it, too"
        )
    if len(opinions) > len(expected):
        raise BadInput(f"sample {sample.number}: {len(opinions)} opinions are verified, but the benchmark has {len(expected)}")
    return sum(opinions) / len(expected)


def overall(f1: float, cao: float) -> float:
    """Overall performance (equations 9 and 10): OP = sqrt(F1 * R of opinions), 0 when either is 0."""
    return math.sqrt(f1 * cao)


def retrieved(cited: Collection[int], sample: Sample) -> float:
    """Paragraph retrieval ratio (figure 2): extracted paragraphs that exist / paragraphs of the article."""
    return (len(set(cited)) - strange(cited, sample)) / len(sample.article)


def strange(cited: Collection[int], sample: Sample) -> int:
    """How many extracted paragraphs are not in the article."""
    return len(set(cited) - {paragraph.index for paragraph in sample.article})


def sample_values(outcome: Outcome, sample: Sample, *, pattern: Pattern, as_published: bool = False) -> dict[Metric, float]:
    """Every known metric of a summary; unverified ones are left out. A failed summary scores 0 in all.

    Args:
        as_published: count extracted paragraphs by `bsp_of_tags`.
    Raises:
        BadInput: verifications that are not as many as the sample's facts or opinions.
    """
    if outcome.failed is not None:
        zeros: dict[Metric, float] = {"recall": 0.0, "precision": 0.0, "f1": 0.0, "cao": 0.0, "op": 0.0}
        return {**zeros, "retrieved": 0.0} if pattern == "ebs-aos" else zeros
    values: dict[Metric, float] = {}
    background = None
    if pattern == "ebs-aos" and outcome.cited is not None:
        tags = {tag(index) for index in outcome.cited} if outcome.tags is None else outcome.tags
        background = bsp_of_tags(tags, sample) if as_published else bsp(outcome.cited, sample)
        values["retrieved"] = retrieved(outcome.cited, sample)
    if pattern == "abs-aos" and outcome.facts is not None:
        background = kbsaf(outcome.facts, sample)
    if background is not None:
        values |= {"recall": background.recall, "precision": background.precision, "f1": background.f1}
    if outcome.opinions is not None:
        values["cao"] = cao(outcome.opinions, sample)
    if background is not None and "cao" in values:
        values["op"] = overall(background.f1, values["cao"])
    return values


def _background(right: int, *, all_right: int, found: int) -> Background:
    recall = right / all_right
    precision = right / found if found else 0.0
    # 2 P R / (P + R) with both written out, which is 0 also where both are.
    return Background(recall, precision, 2 * right / (all_right + found))
