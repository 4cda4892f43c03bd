"""Every paragraph of the drafts as atomic facts, by a model that writes (KGDS, section 4.4).

Answers are checked, asked for again with what was wrong, and kept the moment they arrive. A paragraph without facts would silently
count for nothing in every metric, so one that cannot be decomposed ends the build.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from perse.engines.base import Sampling
from perse.errors import BadInput
from perse.identity import normalised
from perse.kgds.building.drafts import Agreed
from perse.progress import OnProgress, unseen
from perse.questions.decompose import REFUSED, SCHEMA, again, ask, problems, read_facts
from perse.writing.cache import AnswerCache
from perse.writing.loop import Bad, Fair, Good, Kind, ask_until_good, counts
from perse.writing.writer import Writer

MAX_NEW_TOKENS = 4096
"""The paper's room for every answer (KGDS, appendix D.1); its temperature is 0."""

Place = tuple[int, int, int]
"""Sample, paragraph of the sample, and which of its facts, each from 1."""

Facts = Mapping[tuple[int, int], tuple[str, ...]]
"""(sample, paragraph of the sample) -> its facts."""


def decompose(
    drafts: Sequence[Agreed],
    writer: Writer,
    cache: AnswerCache,
    *,
    max_new_tokens: int = MAX_NEW_TOKENS,
    seed: int = 0,
    tries: int = 3,
    on_progress: OnProgress = unseen,
) -> tuple[dict[tuple[int, int], tuple[str, ...]], Counter[str]]:
    """The facts of every paragraph that stays, and how often each kind of try occurred.

    Raises:
        BadInput: a paragraph that could not be decomposed; or as `ask_until_good`.
        EngineLost: as `ask_until_good`.
    """
    places = {f"{one.number}/{paragraph}": (one, paragraph) for one in drafts for paragraph in range(1, len(one.kept) + 1)}
    articles = {one.number: [writer.neutralise(text) for text in one.article] for one in drafts}

    def check(name: str, answer: str) -> Good[tuple[str, ...]] | Fair[tuple[str, ...]] | Bad:
        one, paragraph = places[name]
        return checked(answer, one.article[paragraph - 1], article=one.article)

    outcomes = ask_until_good(
        writer,
        {name: ask(articles[one.number], paragraph) for name, (one, paragraph) in places.items()},
        check,
        cache=cache,
        again=again,
        sampling=Sampling(temperature=0, max_new_tokens=max_new_tokens, schema=SCHEMA),
        seed=seed,
        purpose="kgds decompose",
        tries=tries,
        on_progress=on_progress,
    )
    failed = [name for name, outcome in outcomes.items() if outcome.value is None]
    if failed:
        one, paragraph = places[failed[0]]
        raise BadInput(
            f"{len(failed)} of {len(places)} paragraphs could not be taken apart, first paragraph {one.kept[paragraph - 1]} of draft "
            f"{one.number} ({outcomes[failed[0]].kind}: {outcomes[failed[0]].reason.rstrip('.')}); what was answered is kept: "
            "give more --tries or --max-new-tokens, or another --writer"
        )
    facts = {(one.number, paragraph): outcomes[name].value or () for name, (one, paragraph) in places.items()}
    return facts, counts(outcome.attempts for outcome in outcomes.values())


def checked(answer: str, paragraph: str, *, article: Sequence[str] = ()) -> Good[tuple[str, ...]] | Fair[tuple[str, ...]] | Bad:
    """Judges an answer about `paragraph` of `article` by the rules of `perse.questions.decompose`."""
    try:
        facts = read_facts(answer)
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")
    found = problems(facts, paragraph, article=article)
    if refused := [problem for problem in found if problem.kind in REFUSED]:
        return Bad(refused[0].kind, refused[0].reason)
    if found:
        return Fair(facts, found[0].kind, " ".join(problem.reason for problem in found[:5]), rank=len(found))
    return Good(facts)


def repetitions(drafts: Sequence[Agreed], facts: Facts) -> set[Place]:
    """Facts that an earlier supporting paragraph's, or an earlier other paragraph's, says in the same words; or their own paragraph.

    Supporting and other paragraphs are looked at apart, as in the published benchmark: there each type-3 fact that repeats another
    word by word repeats one of its own kind of paragraph, and no fact that does has another type.
    """
    found = set()
    for one in drafts:
        seen: dict[bool, set[str]] = {True: set(), False: set()}
        for paragraph in range(1, len(one.kept) + 1):
            said = seen[paragraph in one.supporting]
            for at, fact in enumerate(facts[one.number, paragraph], start=1):
                if normalised(fact) in said:
                    found.add((one.number, paragraph, at))
                said.add(normalised(fact))
    return found
