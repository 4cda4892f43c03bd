"""What the agreement study found, in sentences: the answer with its numbers, and the notes that readers need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perse.evaluation.stats.shares import share_note
from perse.kgds.agreement.pairs import Pairs, has_names
from perse.kgds.agreement.rows import ALL, FACTS, OPINIONS, Row
from perse.results.result import FINEST
from perse.studies.frame.summarizing import words

_NOTHING = 0.5
CONSTANT = 0.95
"""From this share of equal answers on, the judge is reported to answer always the same."""


def answer(judge: str, rows: Mapping[str, Row], *, ratio: float | None) -> str:
    """The findings; `ratio`: prompt tokens computed for a fact by itself, over those for one in a list."""
    asked = [row for name, row in rows.items() if name != ALL]
    right = _listed([_right(row) for row in asked])
    told = [f"{judge} is right about {right}, where always saying the same is right about 0.500."]
    if judged := [_auroc(row) for row in asked if row.given.known.any()]:
        counted = [
            f"{words(row.words['AUROC'].estimate())} for {row.name.split()[0]}"
            for name, row in rows.items()
            if name in (FACTS, OPINIONS)
        ]
        told.append(
            f"The AUROC of its P(yes) is {_listed(judged)}; of counting the words in common, without any judge, {_listed(counted)}."
        )
    told += [sentence for row in asked if (sentence := _constant(row))]
    if ratio is not None:
        told.append(f"A fact asked by itself takes {ratio:.2f} times the prompt tokens to compute of one in a list.")
    return " ".join(told)


def _auroc(row: Row) -> str:
    """With what it says: 0.5 is what an answer has that tells nothing."""
    found = row.estimate("AUROC")
    low, high = found.interval.low, found.interval.high
    if low is None or high is None:
        told = "from which nothing is concluded without an interval"
    elif round(low, FINEST) > _NOTHING:
        told = "it tells what follows from what does not"
    else:
        told = (
            "it is higher for what does not follow"
            if round(high, FINEST) < _NOTHING
            else "not shown to tell what follows from what does not"
        )
    known, asked = int(row.given.known.sum()), len(row.given.known)
    of = "" if known == asked else f", {known} of {asked}"
    return f"{words(found)} for {row.name}{of} ({told})"


def _right(row: Row) -> str:
    if not row.given.ok.any():
        return f"none of {row.name}, of which it answered none of {len(row.given.ok)}"
    return f"{words(row.estimate('accuracy'))} of {row.name}{_answered(row)}"


def _answered(row: Row) -> str:
    ok, asked = int(row.given.ok.sum()), len(row.given.ok)
    return "" if ok == asked else f" ({ok} of {asked} answered)"


def _constant(row: Row) -> str | None:
    """The warning about a judge that nearly always gives the same answer."""
    said = row.values["said yes"].value
    if np.isnan(said) or 1 - CONSTANT < said < CONSTANT:
        return None
    answered, asked, yes = int(row.given.ok.sum()), len(row.given.ok), int(row.given.yes.sum())
    label, given, right = ("yes", yes, "follow") if said >= CONSTANT else ("no", answered - yes, "do not follow")
    share = f"all {answered}" if given == answered else f"{given} of {answered}"
    if answered < asked:
        return f"It says {label} to {share} of the {row.name} that it answered; what it did not answer counts as wrong."
    return f"It says {label} to {share} {row.name}: its accuracy there is little but the share of claims that {right}."


def _listed(said: Sequence[str]) -> str:
    return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def notes(drawn: Pairs, rows: Mapping[str, Row]) -> list[str]:
    """What was asked, what was left out, and what may be wrong with it."""
    samples = len({pair.sample for pair in drawn.pairs})
    claims = [f"{len(drawn.of(kind)) // 2} {kind}s" for kind in ("fact", "opinion") if drawn.of(kind)]
    out = drawn.left_out
    reasons = {
        "fact said elsewhere": "facts that the other paragraph seems to say, too",
        "fact without a paragraph": "facts of articles without a paragraph that says nothing of what the supporting ones say",
        "opinion said elsewhere": "opinions that another one seems to say, too",
        "opinion alone": "opinions that are the only one of their discussion",
    }
    left = [f"{what}: {out[reason]}" for reason, what in reasons.items() if out[reason]]
    told = [
        f"{' and '.join(claims)} of {samples} samples, each asked of two texts; intervals are over resampled samples",
        share_note("sample"),
    ]
    if left:
        told.append(f"left out of the whole benchmark before the claims were drawn: {'; '.join(left)}")
    own = [pair for pair in drawn.of("fact") if pair.truth]
    nameless = sum(not has_names(pair.claim, pair.text) for pair in own)
    told.append(
        "a label may be wrong: a paragraph may leave open what its fact makes explicit"
        + (f" ({nameless} of the {len(own)} facts have a name or number that their own paragraph lacks)" if own else "")
        + ", and a claim that names nothing may hold of another text, too; claims about summaries, which say things half, are harder "
        "than these"
    )
    if any(row.given.ok.any() for row in rows.values()) and not any(row.given.known.any() for row in rows.values()):
        told.append("the judge answers in words and gives no probabilities: AUROC, Brier score and calibration are undefined")
    return told
