"""Does the judge judge the plot, or remember the work? (PerSE, appendix A.1: tables 6 to 8 and figure 8.)

The same plots as they are, anonymized and summarized. Of each the judge is asked a score and the title of the work; of pairs,
which is better, in both orders. A judge that scores better where it names the work, and names fewer works once the names are
gone, remembers. What people think of an item is the mean score of its reviews.

Differs from the paper, besides how answers are laid out (`perse.questions.recognition`): correlations are of the expected
score of the exact distribution, not of the one written; accuracy and biases are over both orders of a pair, so that the
better plot is first in half of them by construction; every value has an interval, over items.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from perse.data.load import LoadedExamples
from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.evaluation.predictions import only
from perse.files.path_names import path_name_of
from perse.files.runlog import file_digest
from perse.formats.plain_files import unchanged_while_read
from perse.identity import draw, shuffled
from perse.progress import OnPart, unseen_part
from perse.questions import QUESTIONS
from perse.questions.pointwise import Pointwise
from perse.questions.recognition import RECOGNITION, RECOGNITION_PAIR
from perse.records import Example, PointwiseExample
from perse.results.result import Result
from perse.studies.contamination.plots import Pairs, Plots, draw_pairs, pair_examples, read_plots, single_examples
from perse.studies.contamination.tables import of_pairs, of_readers, of_singles
from perse.studies.frame.arms import Answers, Arm, LoadJudge, Source
from perse.studies.frame.running import Asking, opened
from perse.studies.frame.unanswered import coverage

TITLE_TOKENS = 32
"""Room for one title; what is longer is cut off and not recognized."""
PERSONALIZED = tuple(
    name for name, question in QUESTIONS.items() if isinstance(question, Pointwise) and question.evidence is None
)
"""The questions that readers of the plots can be asked."""


@dataclass(frozen=True, kw_only=True)
class Contamination:
    """What is asked about."""

    plots: Mapping[str, Path]
    """Version (raw, anonymized, summarized, ...) -> items file."""
    reviews: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    """Our field (item_id, title, text, score) -> the user's column."""
    scale: tuple[float, float] = (1.0, 10.0)
    min_reviews: int = 5
    """Fewest reviews behind an item's mean score."""
    items: int = 200
    pairs: int = 200
    gap: float = 1.0
    """Least difference of the mean scores of a pair, on 1-10 (the paper's pairs differ by 1)."""
    personalized: Mapping[str, Path] = field(default_factory=dict)
    """Version -> data set folder: scores for readers known by one review (figure 8)."""
    personalized_question: str = "pointwise"
    readers: int = 400
    """Most readers, with one query each."""

    def __post_init__(self) -> None:
        wrong = {
            "no plots to ask about; give --plots raw=FILE": not self.plots,
            f"items is {self.items}, expected 2 or more": self.items < 2,
            f"pairs is {self.pairs}, expected 0 or more": self.pairs < 0,
            f"readers is {self.readers}, expected 1 or more": self.readers < 1,
            f"min-reviews is {self.min_reviews}, expected 1 or more": self.min_reviews < 1,
            f"gap is {self.gap:g}, expected 0 or more": self.gap < 0,
            f"personalized question '{self.personalized_question}': expected one of {', '.join(PERSONALIZED)}": (
                self.personalized_question not in PERSONALIZED
            ),
        }
        if problems := [message for message, holds in wrong.items() if holds]:
            raise BadInput("; ".join(problems))

    def options(self) -> dict[str, Any]:
        """The settings that tell apart two studies of the same files."""
        return {
            "versions": [path_name_of(name) for name in self.plots],
            "personalized": [path_name_of(name) for name in self.personalized],
            "personalized_question": self.personalized_question,
            "columns": dict(self.columns),
            "scale": list(self.scale),
            "min_reviews": self.min_reviews,
            "items": self.items,
            "pairs": self.pairs,
            "gap": self.gap,
            "readers": self.readers,
        }

    def digest(self) -> str:
        """Of all files and data sets."""
        known = [file_digest(path) for path in (*self.plots.values(), self.reviews)]
        known += [Source.open(path).digest for path in self.personalized.values()]
        return hashlib.sha256("\n".join(known).encode()).hexdigest()


def contamination(
    what: Contamination, asking: Asking, out: Path, *, load: LoadJudge | None = None, on_progress: OnPart = unseen_part
) -> Result:
    """Asks all versions and compares them. Of `asking`, `examples` is only named, and `max_new_tokens` is the reviews'.

    Raises:
        BadInput: files that cannot be read, no title, no item left, or personalized data sets without a query in common.
        RunMismatch: `out` holds another study.
    """
    seed = asking.settings.seed
    with unchanged_while_read(*what.plots.values(), what.reviews):
        plots = read_plots(
            what.plots,
            what.reviews,
            columns=what.columns,
            scale=what.scale,
            min_reviews=what.min_reviews,
            items=what.items,
            seed=seed,
        )
        digest = what.digest()
    pairs = draw_pairs(plots.truth, pairs=what.pairs, gap=what.gap, seed=seed)
    readers = _readers(what, seed=seed)
    arms = _arms(what, plots, pairs, readers, asking, digest=digest)
    source = Source(asking.examples, asking.split, None, None, seed, None, digest)
    with opened(
        out, "contamination", asking, source=source, options=what.options(), load=load, on_progress=on_progress
    ) as study:
        answers = study.ask(arms)
        return study.finish(_result(plots, pairs, readers, answers, asking=asking))


def _arms(
    what: Contamination,
    plots: Plots,
    pairs: Pairs,
    readers: Mapping[str, Sequence[PointwiseExample]],
    asking: Asking,
    *,
    digest: str,
) -> list[Arm]:
    def loaded(examples: Sequence[Example]) -> LoadedExamples:
        return LoadedExamples(list(examples), digest, None, None)

    judge, one = asking.judge_name(), replace(asking.settings, max_new_tokens=TITLE_TOKENS)
    two, asked = replace(asking.settings, max_new_tokens=2 * TITLE_TOKENS), QUESTIONS[what.personalized_question]
    arms = []
    for version, texts in plots.texts.items():
        single = loaded(single_examples(texts, plots.items))
        arms.append(Arm(name=_arm(version, "title"), loaded=single, judge=judge, question=RECOGNITION, settings=one))
        for swapped in (False, True) if pairs.pairs else ():
            both = loaded(pair_examples(texts, pairs.pairs, swapped=swapped))
            name = _arm(version, "pair-swapped" if swapped else "pair")
            arms.append(Arm(name=name, loaded=both, judge=judge, question=RECOGNITION_PAIR, settings=two))
    for version, examples in readers.items():
        name = _arm(version, "reader")
        arms.append(Arm(name=name, loaded=loaded(examples), judge=judge, question=asked, settings=asking.settings))
    return arms


def _arm(version: str, what: str) -> str:
    return f"{path_name_of(version)}-{what}"


def _readers(what: Contamination, *, seed: int) -> dict[str, list[PointwiseExample]]:
    """Version -> the same queries of the same readers, one each, with k = 1."""
    found: dict[str, dict[tuple[str, str], PointwiseExample]] = {}
    for version, path in what.personalized.items():
        examples = Source.open(path, seed=seed).whole(View(k=1)).examples
        found[version] = {(one.reviewer_id, one.item_id): one for one in only(PointwiseExample, examples)}
    if not found:
        return {}
    shared = set.intersection(*(set(known) for known in found.values()))
    if not shared:
        raise BadInput(
            f"{', '.join(map(str, what.personalized.values()))} have no query of the same reader in common; build them "
            "from the same reviews with the same --seed and --salt"
        )
    of_reader: dict[str, list[tuple[str, str]]] = {}
    for key in sorted(shared):
        of_reader.setdefault(key[0], []).append(key)
    drawn = shuffled(of_reader, seed=seed, purpose="contamination readers")[: what.readers]
    chosen = [draw(seed, reader, "contamination query").choice(of_reader[reader]) for reader in drawn]
    return {version: [known[key] for key in chosen] for version, known in found.items()}


def _result(
    plots: Plots,
    pairs: Pairs,
    readers: Mapping[str, Sequence[PointwiseExample]],
    answers: Mapping[str, Answers],
    *,
    asking: Asking,
) -> Result:
    resamples, seed = asking.resamples, asking.settings.seed
    titles = {version: answers[_arm(version, "title")] for version in plots.texts}
    parts = [of_singles(plots, titles, resamples=resamples, seed=seed)]
    if pairs.pairs:
        both = {version: (answers[_arm(version, "pair")], answers[_arm(version, "pair-swapped")]) for version in plots.texts}
        parts.append(of_pairs(plots, pairs, both, seed=seed))
    if readers:
        arms = {version: answers[_arm(version, "reader")] for version in readers}
        parts.append(of_readers(readers, arms, resamples=resamples, seed=seed))
    notes = [f"{len(plots.items)} items, the same in every version"]
    notes += [f"items left out: {count} {reason}" for reason, count in plots.left_out.items()]
    notes += [
        f"{version}: {count} of the texts hold their own title, so that reading is enough to name the work"
        for version in plots.texts
        if (count := plots.holding_title(version))
    ]
    if not pairs.pairs and pairs.too_near:
        notes.append(
            f"no pair was asked: of all that were drawn, {pairs.too_near}, the mean scores are equal or nearer than asked for"
        )
    return Result(
        name="contamination",
        asks="Does the judge judge the text that it is shown, or does it remember the work and what people think of it?",
        answer=" ".join(part.sentence for part in parts),
        plot="bars",
        x_label="version of the plots",
        points=tuple(point for part in parts for point in part.points),
        tables=tuple(table for part in parts for table in part.tables),
        notes=(*notes, *coverage(answers)),
    )
