"""What the rewriting reads: the product's reviews but for the least relevant ones, and the one of the history that is nearest (Rehearsal, 3.4 and B).

Product reviews go until fewer than 10,000 characters are left, `(length - 10,000) / average length` at a time. A filter that does not name as many
as were asked for is asked again: up to 5 times all over; then, up to the 8th time, the numbers of its answers are gathered; what is still missing
is drawn by the seed. A set that does not fit the filter's context is split at random, and each part asked about alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from perse.identity import draw
from perse.rehearsal.agents import Asking, said
from perse.rehearsal.answers import Numbers, numbers_form, read_numbers
from perse.rehearsal.folder import Filtered
from perse.writing.loop import Kind, Outcome
from perse.writing.waves import Wording

EXACT_RETRIES = 5
RETRIES = 8


@dataclass(frozen=True)
class Sets:
    """What one sample has to filter, and by which suggestions."""

    product: tuple[str, ...]
    history: tuple[str, ...]
    suggestions: str


@dataclass
class _Part:
    """Reviews among which `wanted` are to be named: places in the sample's reviews, from 0."""

    sample: str
    places: tuple[int, ...]
    wanted: int
    named: list[int] = field(default_factory=list)
    over: bool = False


def to_remove(lengths: Sequence[int], limit: int) -> int:
    """How many reviews of these lengths must go so that fewer than `limit` characters may be left; never all of them."""
    total = sum(lengths)
    if total < limit or len(lengths) < 2:
        return 0
    return min(len(lengths) - 1, max(1, ceil((total - limit) * len(lengths) / total)))


def filter_reviews(agents: Asking, sets: Mapping[str, Sets], *, step: str) -> dict[str, Filtered]:
    """What is kept of each sample's reviews."""
    removed: dict[str, list[int]] = {name: [] for name in sets}
    drawn: dict[str, list[int]] = {name: [] for name in sets}
    number = 0
    while parts := [part for name, one in sets.items() for part in _parts(agents, name, one, removed[name])]:
        number += 1
        _name_least(agents, sets, parts, step=f"{step}: product filter, round {number}")
        for part in parts:
            missing = part.wanted - len(part.named)
            left = [place for place in part.places if place not in part.named]
            who = f"{part.sample} {number} {part.places[0]}"
            chance = draw(agents.settings.seed, who, "rehearsal product filter").sample(left, missing)
            removed[part.sample] += [*part.named, *chance]
            drawn[part.sample] += chance
    nearest = _nearest(agents, sets, step=f"{step}: history filter")
    return {
        name: nearest[name].model_copy(
            update={"removed": tuple(place + 1 for place in removed[name]), "drawn": tuple(place + 1 for place in drawn[name])}
        )
        for name in sets
    }


def kept(reviews: Sequence[str], filtered: Filtered) -> tuple[str, ...]:
    """The product's reviews without those that were removed."""
    return tuple(review for number, review in enumerate(reviews, start=1) if number not in filtered.removed)


def _parts(agents: Asking, name: str, sets: Sets, removed: Sequence[int]) -> list[_Part]:
    """The next round of a sample: its reviews in one part or, where these are too many for the filter, in several."""
    places = tuple(place for place in range(len(sets.product)) if place not in removed)
    wanted = to_remove([len(sets.product[place]) for place in places], agents.settings.product_characters)
    return _fitting(agents, sets, _Part(name, places, wanted)) if wanted else []


def _fitting(agents: Asking, sets: Sets, part: _Part) -> list[_Part]:
    """The part, or random halves of it until each fits, which share what is wanted by their sizes; one review that does not fit is not asked about."""
    if not part.wanted:
        return []
    if agents.fits("filter", _prompt(sets, part)):
        return [part]
    if len(part.places) == 1:
        part.over = True  # nobody can look at it, so it goes
        part.named = list(part.places)
        return [part]
    order = draw(agents.settings.seed, f"{part.sample} {part.places}", "rehearsal halves").sample(part.places, len(part.places))
    first = tuple(sorted(order[: len(order) // 2]))
    second = tuple(sorted(order[len(order) // 2 :]))
    of_first = part.wanted * len(first) // len(part.places)
    halves = (_Part(part.sample, first, of_first), _Part(part.sample, second, part.wanted - of_first))
    return [one for half in halves for one in _fitting(agents, sets, half)]


def _prompt(sets: Sets, part: _Part) -> Wording:
    reviews = [sets.product[place] for place in part.places]
    return said("irrelevant", reviews=reviews, suggestions=sets.suggestions, number=part.wanted)


def _name_least(agents: Asking, sets: Mapping[str, Sets], parts: Sequence[_Part], *, step: str) -> None:
    """Ask until each part names as many as it should, or the retries are used up."""
    for retry in range(RETRIES + 1):
        asked = {f"{part.sample}/{n}": part for n, part in enumerate(parts) if not part.over}
        if not asked:
            return
        for wanted in sorted({part.wanted for part in asked.values()}):  # the form of an answer says how many
            same = {name: part for name, part in asked.items() if part.wanted == wanted}
            prompts = {name: _prompt(sets[part.sample], part) for name, part in same.items()}
            told = f"{step}, retry {retry}" if retry else step
            outcomes = agents.ask("filter", told, prompts, read_numbers, form=numbers_form(wanted), tries=1)
            for name, outcome in outcomes.items():
                _take(same[name], outcome, gather=retry > EXACT_RETRIES)


def _take(part: _Part, outcome: Outcome[Numbers], *, gather: bool) -> None:
    """Note the numbers of an answer: all of them if they are what was asked for, or, once numbers are gathered, those that are valid."""
    part.over = outcome.kind == Kind.TOO_LONG
    if outcome.value is None:
        return
    valid = [part.places[number - 1] for number in outcome.value.valid(len(part.places))]
    if len(valid) == len(outcome.value.given) == part.wanted:
        part.named, part.over = valid, True
    elif gather:
        part.named = [*part.named, *(place for place in valid if place not in part.named)][: part.wanted]
        part.over = len(part.named) == part.wanted


def _nearest(agents: Asking, sets: Mapping[str, Sets], *, step: str) -> dict[str, Filtered]:
    """The number of the one review of each history. Asked again up to 5 times where there is not one number; then the first of the next answer counts."""
    found = {name: Filtered(history=1) for name, one in sets.items() if len(one.history) == 1}
    for retry in range(EXACT_RETRIES + 2):
        prompts = {
            name: said("nearest", past=one.history, suggestions=one.suggestions)
            for name, one in sets.items()
            if name not in found
        }
        told = f"{step}, retry {retry}" if retry else step
        for name, outcome in agents.ask("filter", told, prompts, read_numbers, form=numbers_form(1), tries=1).items():
            if outcome.kind == Kind.TOO_LONG:
                found[name] = Filtered(failed=f"{outcome.kind}: {outcome.reason}")
            elif outcome.value is not None:
                valid = outcome.value.valid(len(sets[name].history))
                if valid and (len(outcome.value.given) == 1 or retry > EXACT_RETRIES):
                    found[name] = Filtered(history=valid[0])
    for name in sets.keys() - found.keys():
        number = draw(agents.settings.seed, name, "rehearsal history filter").randint(1, len(sets[name].history))
        found[name] = Filtered(history=number, history_drawn=True)
    return found
