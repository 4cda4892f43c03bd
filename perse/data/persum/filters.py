"""The filters of PerSum before the judge: who has a history of the wanted size, in whose samples no review is copied, and
whose review shares enough words with the reviews beside it.

The cheapest comes first. A candidate in which a copy stands beside the review goes (Amazon lists one review under several
products): it would give its answer away, and pass the overlap filter for that alone. The paper has no such filter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from perse.data.overlap import Tokenizer, Tokens, best_overlap, is_copy, mean_overlap, overlap, together
from perse.data.persum.folder import ProductReview
from perse.data.persum.options import PersumOptions, RougeAgainst
from perse.data.pseudonyms import pseudonyms
from perse.data.sources.amazon import AmazonReview
from perse.identity import shuffled
from perse.records import SummaryExample

STEPS = ("reviews", "candidates", "history", "no copy", "overlap", "asked", "answered", "grouped")
"""The steps of the funnel; the last two are the judge's."""


@dataclass(frozen=True)
class Candidate:
    """One review and what stands beside it, oldest first. `id` is CATEGORY/REVIEWER-PRODUCT."""

    id: str
    category: str
    own: ProductReview
    product: tuple[ProductReview, ...]
    history: tuple[ProductReview, ...]

    def beside(self, against: str) -> tuple[ProductReview, ...]:
        """The "product" reviews or the "history"."""
        return self.product if against == "product" else self.history

    def example(self, against: str, *, context: int | None = None) -> SummaryExample:
        """The own review as a text to judge against the "product" reviews or the "history".

        Args:
            context: tokens that a prompt may have, where that is known. A word takes one at least, so that older reviews than those
                that reach it with their words would never be shown; of products with thousands of reviews they need not be kept.
        """
        product = against == "product"
        shown: list[str] = []
        words = 0
        for one in reversed(self.beside(against)):
            shown.append(one.review)
            words += len(one.review.split())
            if context is not None and words > context:
                break
        return SummaryExample(
            id=f"{self.id}/{against}",
            reviewer_id=self.own.item_id if product else self.own.reviewer_id,
            reviews=tuple(reversed(shown)),
            summary=self.own.review,
        )


@dataclass
class Funnel:
    """How many of one category's reviews each step left, and why the others went."""

    left: Counter[str] = field(default_factory=Counter)
    out: Counter[str] = field(default_factory=Counter)

    def keeps(self, step: str, reason: str | None) -> bool:
        """Counts one candidate at `step`: kept (None), or why it was dropped."""
        if reason is None:
            self.left[step] += 1
        else:
            self.out[reason] += 1
        return reason is None


def hidden(reviews: Iterable[AmazonReview], options: PersumOptions) -> list[ProductReview]:
    """The reviews under pseudonyms, unless names are kept."""
    read = list(reviews)
    salt = options.hidden_by
    names = {} if salt is None else pseudonyms((one.reviewer_id for one in read), salt=salt)
    return [
        ProductReview.model_construct(
            reviewer_id=names.get(one.reviewer_id, one.reviewer_id),
            item_id=one.item_id,
            review=one.review,
            score=one.score,
            time=one.time,
        )
        for one in read
    ]


def filtered(reviews: Sequence[ProductReview], category: str, options: PersumOptions, funnel: Funnel) -> Iterator[Candidate]:
    """The candidates that pass the filters before the judge, by product; `funnel` counts all."""
    tokens = Tokenizer()
    for candidate in _with_history(reviews, category, options, funnel):
        own = tokens(candidate.own.review)
        history = [tokens(one.review) for one in candidate.history]
        product = [tokens(one.review) for one in candidate.product]
        copied = not options.keep_repeats and any(is_copy(own, other) for other in (*history, *product))
        if not funnel.keeps("no copy", "a copy of it stands beside it" if copied else None):
            continue
        enough = all if options.rouge == "both" else any
        alike = enough(set_overlap(own, others, options.rouge_against) >= options.min_overlap for others in (history, product))
        if funnel.keeps("overlap", None if alike else f"overlap below {options.min_overlap:g}"):
            yield candidate


def set_overlap(own: Tokens, others: Sequence[Tokens], against: RougeAgainst) -> float:
    """How much a review overlaps with a set of reviews, by the choice that the paper leaves open."""
    if against == "best":
        return best_overlap(own, others)
    return mean_overlap(own, others) if against == "mean" else overlap(own, together(others))


def limited(candidates: Sequence[Candidate], options: PersumOptions, funnel: Funnel) -> list[Candidate]:
    """At most `limit` of a category's candidates, in their order."""
    ids = shuffled((one.id for one in candidates), seed=options.seed, purpose="persum limit")
    kept = set(ids[: options.limit])
    return [one for one in candidates if funnel.keeps("asked", None if one.id in kept else "beyond the limit")]


def _with_history(
    reviews: Sequence[ProductReview], category: str, options: PersumOptions, funnel: Funnel
) -> Iterator[Candidate]:
    """Candidates whose history has the wanted size, product by product."""
    by_item: dict[str, list[ProductReview]] = defaultdict(list)
    by_user: dict[str, list[ProductReview]] = defaultdict(list)
    for one in sorted(reviews, key=lambda one: (one.time or "", one.reviewer_id, one.item_id)):
        by_item[one.item_id].append(one)
        by_user[one.reviewer_id].append(one)
    characters = {user: sum(len(one.review) for one in written) for user, written in by_user.items()}
    funnel.left["reviews"] = len(reviews)
    for item in sorted(by_item):
        for own in by_item[item]:
            others = len(by_item[item]) - 1
            few = f"fewer than {options.min_product_reviews} other reviews of the product"
            if not funnel.keeps("candidates", few if others < options.min_product_reviews else None):
                continue
            past, size = len(by_user[own.reviewer_id]) - 1, characters[own.reviewer_id] - len(own.review)
            reason = None
            if past <= options.history_over:
                reason = f"history of {options.history_over} reviews or fewer"
            elif past >= options.history_under:
                reason = f"history of {options.history_under} reviews or more"
            elif size >= options.chars_under:
                reason = f"history of {options.chars_under:,} characters or more"
            if funnel.keeps("history", reason):
                yield Candidate(
                    id=f"{category.replace(' ', '_')}/{own.reviewer_id}-{item}",
                    category=category,
                    own=own,
                    product=tuple(one for one in by_item[item] if one.reviewer_id != own.reviewer_id),
                    history=tuple(one for one in by_user[own.reviewer_id] if one.item_id != item),
                )
