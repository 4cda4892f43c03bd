"""The same question with a profile that the reader did not write: empty, another reader's, or their own re-drawn.

A judge that has learned the reader must get worse with each; one that has learned text quality does not. Each removes
something else: `without_profile` all that is known, `with_another_profile` the reader, `dealt_anew` the reader's taste but not
their leniency, since the same reviews and scores are attached to the wrong texts. Every choice is drawn by (seed, example
id), so it depends neither on the order of the examples nor, but for the donors, on which others there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from perse.data.examples_file import shown_query
from perse.errors import BadInput
from perse.identity import draw
from perse.records import PersonalExample

Shown = TypeVar("Shown", bound=PersonalExample)


def without_profile(example: Shown) -> Shown:
    """The example with an empty profile."""
    return example.model_copy(update={"profile": ()})


def with_another_profile(examples: Iterable[Shown], donors: Sequence[Shown], *, seed: int) -> list[Shown]:
    """Each example with the profile of another reader, of as many entries if there is one.

    Where every donor has fewer entries, or shows the query with as many, the longest that does not show it is taken. An example
    whose query all donors show is left out.

    Args:
        donors: whose profiles are dealt out; their own queries are not used.
    Raises:
        BadInput: all donors with a profile are one reader.
    """
    profiles = {(donor.reviewer_id, repr(donor.profile)): donor for donor in donors if donor.profile}
    readers = {reader for reader, _ in profiles}
    if len(readers) < 2:
        raise BadInput(
            f"another reader's profile cannot be shown: the data holds profiles of {len(readers)} reader; "
            "give data of two or more readers"
        )
    ordered = [profiles[key] for key in sorted(profiles)]
    found = []
    for example in examples:
        swapped = _swapped(example, ordered, seed=seed)
        if swapped is not None:
            found.append(swapped)
    return found


def _swapped(example: Shown, donors: Sequence[Shown], *, seed: int) -> Shown | None:
    others = [donor for donor in donors if donor.reviewer_id != example.reviewer_id]
    # Readers are drawn before profiles, so that one with many profiles is not shown more often.
    generator = draw(seed, example.id, "another reader's profile")
    rank = {reader: generator.random() for reader in sorted({donor.reviewer_id for donor in others})}
    generator.shuffle(others)
    k = len(example.profile)
    others.sort(key=lambda donor: (-min(len(donor.profile), k), rank[donor.reviewer_id]))
    for donor in others:
        swapped = example.model_copy(update={"profile": donor.profile[:k]})
        if not shown_query(swapped):
            return swapped
    return None


def dealt_anew(examples: Iterable[Shown], *, seed: int) -> list[Shown]:
    """Each example with its own verdicts on the wrong texts: no text keeps its own, and a review keeps its score.

    The verdict on a text is its review and score, of a pair its preferences. An example with fewer than two entries, whose one
    verdict has no wrong text to go to, is left out.
    """
    return [_dealt(example, seed=seed) for example in examples if len(example.profile) > 1]


def _dealt(example: Shown, *, seed: int) -> Shown:
    order = _derangement(len(example.profile), seed=seed, who=example.id)
    verdicts = [{field: getattr(past, field) for field in example.verdict} for past in example.profile]
    profile = tuple(past.model_copy(update=verdicts[at]) for past, at in zip(example.profile, order, strict=True))
    return example.model_copy(update={"profile": profile})


def _derangement(n: int, *, seed: int, who: str) -> list[int]:
    """A uniformly random derangement of 0 to n - 1, in e draws on average."""
    generator = draw(seed, who, "verdicts dealt anew")
    order = list(range(n))
    while any(at == place for place, at in enumerate(order)):
        generator.shuffle(order)
    return order
