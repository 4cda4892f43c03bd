"""The agreement study as tables and points: how right the judge is, how sure, how steady, and what a question costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perse.answering.exact import MIN_MASS
from perse.evaluation.calibration.reliability import Promised, calibration_error, chance_errors
from perse.kgds.agreement.measures import ALWAYS_SAME, NO_ANSWERS, Answered, SampleResamples, same_answers
from perse.kgds.agreement.pairs import Pairs
from perse.kgds.agreement.rows import FACTS, LISTED, NAMES, Row, Way, rows_of
from perse.kgds.agreement.words import answer, notes
from perse.results.result import Estimate, Point, Result, Table
from perse.studies.calibration.reliability import reliability
from perse.studies.frame.unanswered import coverage

WORDS = "words in common"

Cell = Estimate | str | None


def agreement_result(judge: str, ways: Sequence[Way], drawn: Pairs, *, seed: int, resamples: int) -> Result:
    """The study's result; `ways` are those that were asked."""
    places = {number: place for place, number in enumerate(sorted({pair.sample for pair in drawn.pairs}))}
    shared = SampleResamples(len(places), resamples=resamples, seed=seed)
    rows = rows_of(ways, places=places, shared=shared)
    costs = {way.name: _Cost.of(way) for way in ways}
    tables = [_answers_table(rows), _probabilities_table(rows, seed=seed)]
    if FACTS in rows:
        tables.append(_both_ways(rows[FACTS], rows[LISTED], shared))
    tables.append(_costs(ways, costs))
    return Result(
        name="kgds-agreement",
        asks="How far can the judge's verification be trusted, where the truth is known without an annotator?",
        answer=answer(judge, rows, ratio=_ratio(costs) if all(row.given.ok.any() for row in rows.values()) else None),
        plot="bars",
        x_label="",
        points=(*_points(judge, rows), *_reliabilities(judge, rows, seed=seed, resamples=resamples)),
        tables=tuple(tables),
        notes=(*notes(drawn, rows), *coverage({NAMES[way.name]: {one.id: one for one in way.judgements} for way in ways})),
    )


def _answers_table(rows: Mapping[str, Row]) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for row in rows.values():
        counts = f"{row.given.ok.sum()}/{len(row.given.ok)}"
        lines.append((row.name, counts, *(row.estimate(name) for name in ("accuracy", "true", "false", "AUROC"))))
    for name, row in rows.items():
        if name != LISTED:  # the same pairs as one by one
            about = row.name.removesuffix(" one by one")
            lines.append((f"{WORDS}: {about}", None, *(value.estimate() for value in row.words.values())))
    return Table(
        title="Right answers",
        header=("asked", "ok / asked", "accuracy", "yes to what is so", "no to what is not", "AUROC of P(yes)"),
        rows=tuple(lines),
        notes=(
            "every claim is asked of a text that says it and of one that does not, so accuracy is balanced accuracy, and a judge "
            "that always says the same has 0.5; a question without an answer counts as wrong",
            "AUROC: the chance that a claim that follows has the higher P(yes) than one that does not; each is looked at by itself, and its interval "
            "knows the errors of these samples alone: of a judge that is nearly always sure and rarely wrong it is too high in up to 8 of 100",
            f"{WORDS}: no judge; yes if the text has more than half of the claim's names, numbers and long words. Claims that a text "
            "seems to say were left out by the same count, which is to its advantage",
        ),
    )


def _probabilities_table(rows: Mapping[str, Row], *, seed: int) -> Table:
    lines: list[tuple[Cell, ...]] = []
    for row in rows.values():
        cells = [row.estimate(name) for name in ("P(yes) of true", "P(yes) of false", "Brier")]
        lines.append((row.name, *cells, *_calibration(row, seed=seed), row.estimate("mass"), row.estimate("AUROC of any")))
    return Table(
        title="Probabilities",
        header=("asked", "P(yes) if so", "P(yes) if not", "Brier score", "ECE", "ECE if right", "mass", "AUROC, unparsed too"),
        rows=tuple(lines),
        notes=(
            "P(yes): its mean over claims that follow, and over those that do not",
            "Brier score: the mean squared distance of P(yes) from 1 or 0; always saying 0.5 has 0.25",
            "ECE: expected calibration error of P(yes) over ten bins of equal width; if right: what chance makes of right probabilities "
            "with these samples, on average, and in 95 of 100 cases at most; it has no interval, for resampled claims make it larger "
            "than it is",
            f"mass: what the model gave to yes and no together, on average; below {MIN_MASS} it would rather have said something else, and "
            "the answer is unparsed. AUROC, unparsed too: of all P(yes), as if it had had to choose",
        ),
    )


def _calibration(row: Row, *, seed: int) -> tuple[Cell, Cell]:
    promise = _promised(row.given)
    if promise is None:
        return row.undefined.reason, None
    chance = chance_errors(promise, seed=seed)
    error = calibration_error(promise)
    return f"{error:.3f}", f"{chance.mean():.3f}, at most {np.quantile(chance, 0.95):.3f}"


def _promised(given: Answered) -> Promised | None:
    """The claims with a probability, for the measures of reliability; None if there are none."""
    known = given.known
    if not known.any():
        return None
    _, who = np.unique(given.sample[known], return_inverse=True)
    p_yes = given.p_yes[known]
    return Promised(
        ("yes", "no"), np.stack([p_yes, 1 - p_yes], axis=1), (~given.truth[known]).astype(np.int64), who.astype(np.int64)
    )


def _both_ways(single: Row, listed: Row, shared: SampleResamples) -> Table:
    same = same_answers(single.given, listed.given, shared)
    known = next((row.undefined for row in (single, listed) if not row.given.known.any()), single.undefined)
    rows: tuple[tuple[Cell, ...], ...] = (
        ("equal answers", same["equal"].estimate(NO_ANSWERS)),
        ("Cohen's kappa", same["kappa"].estimate(NO_ANSWERS if not same["kappa"].items else ALWAYS_SAME)),
        ("accuracy, one by one minus in lists", same["accuracy"].estimate()),
        ("AUROC, one by one minus in lists", same["AUROC"].estimate(known)),
    )
    return Table(
        title=f"The same {len(single.given.ok)} facts and texts, one by one and in lists",
        header=("", "value"),
        rows=rows,
        notes=(f"{same['equal'].items} were answered in both ways: all but accuracy is of these; the differences are paired",),
    )


@dataclass(frozen=True)
class _Cost:
    """Of one question, on average; `seconds` None: not timed."""

    prompt: float
    computed: float
    seconds: float | None

    @classmethod
    def of(cls, way: Way) -> _Cost:
        prompt, cached = (sum(getattr(one.tokens, part) for one in way.judgements) for part in ("prompt", "cached"))
        return cls(prompt / len(way.judgements), (prompt - cached) / len(way.judgements), way.seconds)

    @property
    def cells(self) -> tuple[str, ...]:
        return (f"{self.prompt:.1f}", f"{self.computed:.1f}", "-" if self.seconds is None else f"{self.seconds:.3f}")


def _ratio(costs: Mapping[str, _Cost]) -> float | None:
    """Prompt tokens computed for a fact by itself, over those for one in a list."""
    return costs[FACTS].computed / costs[LISTED].computed if FACTS in costs and costs[LISTED].computed else None


def _costs(ways: Sequence[Way], costs: Mapping[str, _Cost]) -> Table:
    lines: list[tuple[Cell, ...]] = [(NAMES[way.name], str(len(way.judgements)), *costs[way.name].cells) for way in ways]
    if FACTS in costs:
        one, other = costs[FACTS], costs[LISTED]
        parts = ((one.prompt, other.prompt), (one.computed, other.computed), (one.seconds, other.seconds))
        lines.append(("facts, one by one / in lists", None, *(f"{a / b:.2f}" if a and b else "-" for a, b in parts)))
    return Table(
        title="What a question costs",
        header=("asked", "questions", "prompt tokens", "of these computed", "seconds"),
        rows=tuple(lines),
        notes=(
            "means over all questions, from what was really asked; tokens that the engine knew from an earlier question are not "
            "computed; seconds are of the wall, beside whatever else the machine did, loading left out",
            *(_listed_note(way) for way in ways if way.name == LISTED),
        ),
    )


def _listed_note(way: Way) -> str:
    mean = len(way.pairs) / len({pair.source for pair in way.pairs})
    return f"a list has {mean:.1f} facts on average; its prompt is counted again for every line that is read behind it"


def _points(judge: str, rows: Mapping[str, Row]) -> list[Point]:
    points = []
    for metric in ("accuracy", "AUROC"):
        for name, row in rows.items():
            points.append(Point(series=judge, x=row.name, metric=metric, estimate=row.estimate(metric)))
            if name != LISTED:
                estimate = row.words[metric].estimate()
                points.append(Point(series=WORDS, x=row.name, metric=metric, estimate=estimate, baseline=True))
    return points


def _reliabilities(judge: str, rows: Mapping[str, Row], *, seed: int, resamples: int) -> list[Point]:
    """A diagram for each way of asking."""
    points = []
    for name in NAMES:
        promise = _promised(rows[name].given) if name in rows else None
        if promise is not None:
            for point in reliability(judge, promise, seed=seed, resamples=resamples).points:
                points.append(point.model_copy(update={"metric": f"reliability, {NAMES[name]}"}))
    return points
