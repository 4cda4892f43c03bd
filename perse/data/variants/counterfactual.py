"""The same question with a profile that the reader did not write: empty, another reader's, or their own re-drawn.

A judge that has learned the reader must get worse with each; one that has learned text quality does not. Each removes
something else: `without_profile` all that is known, `with_another_profile` the reader, `dealt_anew` the reader's taste but not
their leniency, since the same reviews and scores are attached to the wrong texts. Every choice is drawn by the seed and the
example's or the reader's id, so it does not depend on the order of the examples.

All queries of a reader are shown the profiles of one other reader. With a donor for each query a judge that goes by leniency alone
would order a reader's texts by who happened to be the donor, and lose within readers what it has never known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from perse.data.examples_file import shown_query
from perse.errors import BadInput
from perse.identity import draw, shuffled
from perse.records import PersonalExample

Shown = TypeVar("Shown", bound=PersonalExample)


def without_profile(example: Shown) -> Shown:
    """The example with an empty profile."""
    return example.model_copy(update={"profile": ()})


def with_another_profile(examples: Iterable[Shown], donors: Sequence[Shown], *, seed: int) -> list[Shown]:
    """Each example with a profile of another reader, the same one for all of a reader's examples.

    A donor is drawn for each reader, of those that leave out none of their queries and have as many entries, if there are any, else
    of those that leave out fewest and show most. Examples that show the same profile are given the same one, as long as it does
    not show the query; an example whose query all profiles of the donor show is left out.

    Args:
        donors: whose profiles are dealt out; their own queries are not used.
    Raises:
        BadInput: all donors with a profile are one reader.
    """
    profiles: dict[str, dict[str, Shown]] = {}
    for donor in donors:
        if donor.profile:
            profiles.setdefault(donor.reviewer_id, {})[repr(donor.profile)] = donor
    if len(profiles) < 2:
        raise BadInput(
            f"another reader's profile cannot be shown: the data holds profiles of {len(profiles)} reader; "
            "give data of two or more readers"
        )
    of_donor = {name: [given[key] for key in sorted(given)] for name, given in sorted(profiles.items())}
    given = list(examples)
    swapped: dict[str, Shown] = {}
    for reader in dict.fromkeys(example.reviewer_id for example in given):
        swapped |= _swapped([example for example in given if example.reviewer_id == reader], of_donor, seed=seed)
    return [swapped[example.id] for example in given if example.id in swapped]


def _swapped(examples: Sequence[Shown], of_donor: Mapping[str, Sequence[Shown]], *, seed: int) -> dict[str, Shown]:
    """The examples of one reader, by id."""
    reader = examples[0].reviewer_id
    names = shuffled((name for name in of_donor if name != reader), seed=seed, purpose=f"another reader for {reader}")
    wanted = sum(len(example.profile) for example in examples)
    best: dict[str, Shown] = {}
    most = (0, 0)
    for name in names:
        found = {example.id: one for example in examples if (one := _given(example, of_donor[name], seed=seed)) is not None}
        shown = (len(found), sum(len(one.profile) for one in found.values()))
        if shown > most:
            best, most = found, shown
        if most == (len(examples), wanted):
            break
    return best


def _given(example: Shown, profiles: Sequence[Shown], *, seed: int) -> Shown | None:
    """The example with one of the donor's profiles, of as many entries if there is one; None if all show the query."""
    k = len(example.profile)
    ordered = list(profiles)
    draw(seed, f"{example.reviewer_id}\x1f{example.profile!r}", "another reader's profile").shuffle(ordered)
    ordered.sort(key=lambda donor: -min(len(donor.profile), k))
    swapped = (example.model_copy(update={"profile": donor.profile[:k]}) for donor in ordered)
    return next((one for one in swapped if not shown_query(one)), None)


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
