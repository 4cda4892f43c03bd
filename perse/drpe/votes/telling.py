"""A vote as a `Result`: how candidates fare, how much hangs on the order, what it cost, and whether both ways of prompting agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from perse.drpe.votes.ballots import NAMES, Prompting
from perse.drpe.votes.readership import Readership, readership
from perse.drpe.votes.run_folder import Run
from perse.drpe.votes.scoring import Decision, confidence, decisions
from perse.evaluation.stats.correlation import kendall
from perse.judgement import Judgement
from perse.results.result import Cell, Result, Table
from perse.results.words import in_percent

DRPE_VOTE = "drpe-vote"
FEWEST_TEXTS = 10
"""Of fewer it is not said what differs between readers."""


def vote_result(run: Run) -> Result:
    """Everything that a run says so far; means are of votes that were asked for, none of those that are taken for granted."""
    asked = decisions([one for one in run.ballots if one.judgement is not None], run.answers)
    by = {prompting: [one for one in asked if one.prompting == prompting] for prompting in run.answers}
    readers = readership(run.ballots, run.answers, tuple(run.readers)) if run.readers else None
    return Result(
        name=DRPE_VOTE,
        asks="How often do the roles vote for a candidate, and not for the reference?",
        answer="\n".join(
            (*(_answer(prompting, found) for prompting, found in by.items()), *([_of_readers(readers)] if readers else ()))
        ),
        tables=(
            Table(
                title="Votes",
                header=(
                    "prompting",
                    "decisions",
                    "votes",
                    "for the candidate",
                    "P(candidate)",
                    "score",
                    "order gap",
                    "same place",
                ),
                rows=tuple(_votes(prompting, found) for prompting, found in by.items()),
                notes=(
                    "score: the sum over roles that vote for the candidate of their confidence, averaged over orders and references (formula 4); order gap: by how "
                    "much P(candidate) differs between the orders; same place: roles that choose the same place in both orders, whatever stands there.",
                ),
            ),
            Table(
                title="Cost of a decision",
                header=("prompting", "prompt tokens", "remembered", "written", "seconds"),
                rows=tuple(_cost(prompting, found, run) for prompting, found in by.items()),
                notes=(
                    "remembered: prompt tokens that the engine had read before, as it tells. Each prompt of a reason, and of its vote, is counted once.",
                ),
            ),
            *(_readers(run, readers) if readers else ()),
            *_agreement(by),
            _systems(by),
        ),
        notes=_notes(run, by),
        details={"judge": run.judge, "settings": dict(run.settings)},
    )


def _answer(prompting: Prompting, found: Sequence[Decision]) -> str:
    votes = [one.votes for one in found if one.votes is not None]
    asked = sum(one.asked for one in found)
    answered = sum(one.answered for one in found)
    if not asked:
        return f"With {NAMES[prompting]} nobody was asked, since every candidate is a reference itself."
    if not votes:
        return f"With {NAMES[prompting]} none of {asked:,} votes came back."
    turned = [one.turned for one in found if one.turned is not None]
    place = f", and {in_percent(fmean(turned))} of its roles choose the same place in both orders" if turned else ""
    return f"With {NAMES[prompting]} {answered:,} of {asked:,} votes came back. Of a candidate's votes {in_percent(fmean(votes))} are for it on average{place}."


def _shown(values: Sequence[float | None], form: str) -> str:
    known = [value for value in values if value is not None]
    return format(fmean(known), form) if known else "-"


def _share(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return in_percent(fmean(known)) if known else "-"


def _votes(prompting: Prompting, found: Sequence[Decision]) -> tuple[Cell, ...]:
    return (
        NAMES[prompting],
        f"{len(found):,}",
        f"{sum(one.answered for one in found):,} of {sum(one.asked for one in found):,}",
        _share([one.votes for one in found]),
        _shown([one.expected for one in found], ".3f"),
        _shown([one.score for one in found], ".3f"),
        _shown([one.order_gap for one in found], ".3f"),
        _share([one.turned for one in found]),
    )


def _cost(prompting: Prompting, found: Sequence[Decision], run: Run) -> tuple[Cell, ...]:
    said: list[Judgement] = list(run.answers[prompting].values())
    decided, (timed, seconds) = len(found), run.seconds[prompting]

    def each(part: str) -> str:
        return f"{sum(getattr(one.tokens, part) for one in said) / decided:,.0f}" if decided else "-"

    whole = f"{seconds / timed * len(said) / decided:.2f}" if timed and decided else "-"
    return NAMES[prompting], each("prompt"), each("cached"), each("generated"), whole


def _agreement(by: dict[Prompting, list[Decision]]) -> list[Table]:
    """Of the two ways of prompting, where both were asked."""
    if len(by) < 2:
        return []
    one, other = ({each.key: each for each in found} for found in by.values())
    rows: list[tuple[Cell, ...]] = []
    for name in ("score", "expected", "votes"):
        pairs = [
            (a, b) for key in one if (a := getattr(one[key], name)) is not None and (b := getattr(other[key], name)) is not None
        ]
        gap = f"{fmean(abs(a - b) for a, b in pairs):.3f}" if pairs else "-"
        tau = kendall(np.array([a for a, _ in pairs]), np.array([b for _, b in pairs])) if len(pairs) > 1 else None
        rows.append((name, f"{len(pairs):,}", gap, "-" if tau is None else f"{tau:.3f}"))
    return [
        Table(
            title="Both ways of prompting beside each other",
            header=("of a decision", "decisions", "mean distance", "Kendall"),
            rows=tuple(rows),
        )
    ]


def _of_readers(found: Readership) -> str:
    """What differs between real readers, in words."""
    texts = len(found.chances)
    shares = found.shares if texts >= FEWEST_TEXTS else None
    if shares is None and texts >= FEWEST_TEXTS and len(found.readers) > 1:
        alike = found.of_reader(found.readers[0])
        return f"All {len(found.readers)} real readers vote for all {texts:,} texts alike ({alike:.2f}, the mean over orders): there is nothing to divide between texts and readers."
    if shares is None:
        return f"Of real readers {texts:,} texts have all votes: too little to say what differs between readers."
    if shares.chance is None:
        rest = f"and {in_percent(shares.taste)} who votes for which text and chance, which one order cannot tell apart"
    else:
        more = "" if found.taste_shown else " (not shown to be more than chance)"
        rest = f"{in_percent(shares.taste)} who votes for which text{more}, and {in_percent(shares.chance)} chance, by how the two orders differ"
    of = "P(candidate)" if found.probable else "votes for the candidate"
    return (
        f"Of the variance of {of} over {texts:,} texts and {len(found.readers)} real readers (standard deviation {found.spread:.3f}) "
        f"{in_percent(shares.texts)} is between texts, {in_percent(shares.readers)} between readers, {rest}; these shares are estimates without an interval.{_not_taste(found)}"
    )


def _not_taste(found: Readership) -> str:
    """What else than taste makes readers vote for other texts, where that is shown."""
    if not found.taste_shown:
        return ""
    leans = [lean for name in found.readers if (lean := found.lean(name)) is not None]
    if not leans:
        return ""
    what = "a vote for it" if found.probable else "the share of votes for it"
    low, high = (f"{end:+.2f}" for end in (min(leans), max(leans)))
    higher = f"{low} for every reader" if low == high else f"{low} to {high}, by reader"
    return (
        " Who votes for which text may come of taste, or of readers being sure of their votes, or leaning to a place, to different degrees: where a text stands first, "
        f"{what} is higher by {higher}."
    )


def _readers(run: Run, found: Readership) -> list[Table]:
    """Whom texts win and lose."""
    if not found.chances:
        return []
    whole = sum(run.readers.values())
    return [
        Table(
            title="Real readers",
            header=("reader", "stands for", "P(candidate)", "votes for the candidate"),
            rows=tuple(
                (
                    name,
                    f"{run.readers[name]} of {whole}",
                    f"{found.of_reader(name):.3f}" if found.probable else None,
                    in_percent(fmean(of_one[name] for of_one in found.votes.values())),
                )
                for name in found.readers
            ),
            notes=(
                f"over {len(found.chances):,} texts that all of these readers voted on ({found.incomplete:,} more have not all votes).",
            ),
        ),
        Table(
            title="Whom each text wins",
            header=(
                "document",
                "system",
                "readers won",
                f"{'P(candidate)' if found.probable else 'votes for it'}, lowest",
                "of",
                "highest",
                "of",
            ),
            rows=tuple(
                (document, system, in_percent(found.won((document, system), run.readers)), *_ends(of_one))
                for (document, system), of_one in found.chances.items()
            ),
            detail=True,
        ),
    ]


def _ends(chances: Mapping[str, float]) -> tuple[Cell, Cell, Cell, Cell]:
    low, high = min(chances.values()), max(chances.values())
    return f"{low:.3f}", _whose(low, chances), f"{high:.3f}", _whose(high, chances)


def _whose(chance: float, chances: Mapping[str, float]) -> str:
    """Who has it: a name, or how many where no single reader has it."""
    names = [name for name, of_one in chances.items() if of_one == chance]
    return names[0] if len(names) == 1 else f"{len(names)} of {len(chances)} readers"


def _systems(by: dict[Prompting, list[Decision]]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for prompting, found in by.items():
        for system in dict.fromkeys(one.system for one in found):
            mine = [one for one in found if one.system == system]
            rows.append(
                (
                    system,
                    NAMES[prompting],
                    f"{len(mine):,}",
                    _share([one.votes for one in mine]),
                    _shown([one.expected for one in mine], ".3f"),
                    _shown([one.score for one in mine], ".3f"),
                )
            )
    return Table(
        title="By system",
        header=("system", "prompting", "decisions", "for the candidate", "P(candidate)", "score"),
        rows=tuple(rows),
        detail=True,
    )


def _notes(run: Run, by: dict[Prompting, list[Decision]]) -> tuple[str, ...]:
    said = []
    for prompting, of_one in run.answers.items():
        wanted = {ballot.judgement for ballot in run.ballots if ballot.prompting == prompting and ballot.judgement}
        counts = Counter(str(each.status) for name, each in of_one.items() if name in wanted and each.label is None)
        counts["not asked yet"] = len(wanted - of_one.keys())
        told = ", ".join(f"{count:,} {why}" for why, count in counts.items() if count)
        if told:
            said.append(f"{NAMES[prompting]}: without a vote: {told}; they are counted, and no vote is guessed for them")
    if same := {(one.document, one.system) for one in run.ballots if one.judgement is None}:
        are = "candidate is a reference itself" if len(same) == 1 else "candidates are references themselves"
        said.append(
            f"{len(same):,} {are}, beside which nobody was asked about them: in scores that are held against people's half of the roles are taken to vote for them, with the "
            "run's mean confidence; what is told of votes is of those that were asked for"
        )
    if len(wordings := {one.wording for one in run.ballots}) > 1:
        of_readers = "; real readers are asked in one" if run.readers else ""
        said.append(f"asked in {len(wordings)} wordings: a decision is the mean over them{of_readers}")
    if run.unreferenced:
        said.append(f"{len(run.unreferenced):,} documents have no reference, and were left out")
    if run.settings.get("orders") == 1:
        said.append(
            "asked in one order, as published, with the reference first: a lean towards a place stays in the votes, and cannot be seen"
        )
    lacking = sum(one.score is None and one.votes is not None for found in by.values() for one in found)
    if lacking and any(_unsure(one) for of_one in run.answers.values() for one in of_one.values()):
        said.append(
            "there is no score where no reason is written (readers known by comparisons) or it is not known how probable the judge's words were (of a server that is asked in words it is not read)"
        )
    elif lacking:
        said.append(
            f"{lacking:,} {'decision has' if lacking == 1 else 'decisions have'} no score: in some order or wording, or beside some reference, no vote came back"
        )
    return tuple(said)


def _unsure(vote: Judgement) -> bool:
    """Whether it is a vote of which the confidence is not known."""
    return vote.label is not None and confidence(vote) is None
