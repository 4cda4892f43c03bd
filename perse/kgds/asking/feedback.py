"""Whose selection of paragraphs is the better background, the experts' or the model's own? (KGDS, section 6.1 and figure 3).

Asked about every sample in which the two differ, in both orders, because judges like one place better than the other. Any judge can be
asked by itself; or, as in the paper, the model that made the selection, in a second turn of the conversation in which it did. A win
rate is the mean over samples of the probability that the experts' is better, and, beside it, how often it is the likelier one; what was
not answered is neither won nor lost, and counted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from perse.errors import BadInput
from perse.files.own_files import write_own
from perse.files.runlog import RunLog
from perse.judgement import Judgement, Status
from perse.judging.judge import Judge, JudgeSettings
from perse.judging.loop import answer_all
from perse.kgds.asking.generate import TEMPLATE, prompt
from perse.kgds.asking.reading import EXTRACTIVE, OPINIONS
from perse.kgds.benchmark import Benchmark, Sample
from perse.kgds.folder import JUDGEMENTS, Summary, identity_of, read_judgements, summaries_of
from perse.kgds.outcomes import tag
from perse.kgds.preferences import NUMBERS, Difference, FeedbackResult, Preference, feedback_folder
from perse.progress import OnProgress, unseen
from perse.prompts import source
from perse.questions.feedback import FEEDBACK, Feedback, SecondTurn
from perse.records import Pair, PairwiseExample
from perse.results.result import Estimate
from perse.writing.writer import Writer

log = logging.getLogger(__name__)


def feedback(
    judge: Judge,
    benchmark: Benchmark,
    run: Path,
    *,
    second_turn: bool = False,
    resamples: int = 1000,
    seed: int = 0,
    on_progress: OnProgress = unseen,
) -> FeedbackResult:
    """Ask about every structured ebs-aos summary of `run` that selects other paragraphs than the experts; kept in RUN/feedback.

    Args:
        second_turn: ask in the conversation in which the selection was made (the structured prompt, and the summary as the answer to
            it); kept in RUN/feedback-second-turn. A judge that is not the summaries' model is warned of.
        on_progress: told how many of all questions have an answer.
    Raises:
        BadInput: no such summary, one of a sample that the benchmark does not have, or too few resamples.
        RunMismatch: the folder holds answers by another judge, or about another benchmark.
        EngineLost: the engine is gone for good.
    """
    if resamples < 100:
        raise BadInput(f"{resamples} resamples say little about an interval; use 100 or more")
    summaries = summaries_of(run, benchmark).get(("ebs-aos", "structured"), {})
    if not summaries:
        raise BadInput(f"{run} has no structured ebs-aos summaries; write them with `perse kgds generate --pattern ebs-aos`")
    kinds = {number: difference(benchmark.samples[number], summary) for number, summary in summaries.items()}
    asked = {
        number: _example(benchmark.samples[number], summaries[number]) for number, kind in kinds.items() if kind == "differs"
    }
    models = sorted({summary.model for summary in summaries.values()})
    folder = feedback_folder(run, second_turn=second_turn)
    question: Feedback = FEEDBACK
    if second_turn:
        _warn_of_another(judge, models)
        question = SecondTurn(
            {
                example.id: _conversation(Writer(judge), benchmark.samples[number], summaries[number])
                for number, example in asked.items()
            }
        )
    judgements = _answers(judge, benchmark, question, list(asked.values()), folder, seed=seed, on_progress=on_progress)
    preferences = [
        _preference(benchmark.samples[number], summaries[number], judgements[example.id]) for number, example in asked.items()
    ]
    result = FeedbackResult(
        benchmark=benchmark.digest,
        model=" and ".join(models),
        judge=judge.identity.portable.model,
        second_turn=second_turn,
        selections={kind: sum(each == kind for each in kinds.values()) for kind in ("differs", "same", "empty", "failed")},
        answered=sum(preference.status is Status.OK for preference in preferences),
        probability=_rate([preference.probability for preference in preferences], resamples=resamples, seed=seed),
        share=_share([preference.won for preference in preferences]),
        order_gap=_mean(preference.order_gap for preference in preferences),
        samples=tuple(preferences),
        resamples=resamples,
        seed=seed,
    )
    write_own(folder / NUMBERS, result.model_dump_json(indent=2) + "\n")
    return result


def difference(sample: Sample, summary: Summary) -> Difference:
    """How the model's selection compares to the experts'. Citations of missing paragraphs are ignored."""
    if summary.status != "ok":
        return "failed"
    own = set(_own(sample, summary))
    return "same" if own == sample.supporting_indices else "differs" if own else "empty"


def _own(sample: Sample, summary: Summary) -> tuple[int, ...]:
    return tuple(sorted({number for number in summary.paragraphs or () if 1 <= number <= len(sample.article)}))


def _example(sample: Sample, summary: Summary) -> PairwiseExample:
    """A is the experts' selection, B the model's; the question decides which comes first in a prompt."""
    own = _own(sample, summary)
    who = f"{sample.number:05d}"
    pair = Pair(text_a=_named(sorted(sample.supporting_indices)), text_b=_named(own), premise=_premise(sample))
    # With the selection in its id, an answer cannot be mistaken for one about another selection, and a run may grow.
    key = f"{who}/{'-'.join(map(str, own))}"
    return PairwiseExample(id=key, reviewer_id=who, aspect="background", profile=(), query=pair)


def _conversation(writer: Writer, sample: Sample, summary: Summary) -> tuple[str, str]:
    """The structured prompt, and the summary as it was given."""
    tags = [tag(number) for number in summary.paragraphs or ()]
    answer = json.dumps({EXTRACTIVE: [*tags, *summary.odd], OPINIONS: summary.opinions}, ensure_ascii=False)
    safe = re.sub(r"< (Paragraph_[0-9]+>)", r"<\1", writer.neutralise(answer))  # its own tags are as the prompt's
    return prompt(writer, sample, "ebs-aos"), safe


def _warn_of_another(judge: Judge, models: Sequence[str]) -> None:
    who = judge.identity.portable
    name = "+".join(filter(None, (who.model, who.adapter)))
    if models != [name]:
        log.warning("the selections are by %s, and %s is asked as if they were its own", " and ".join(models), name)


def _named(numbers: Sequence[int]) -> str:
    """Numbers in words: `<Paragraph_3>` would read as a template's marker."""
    return f"paragraph{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def _premise(sample: Sample) -> str:
    article = [f"{paragraph.index}. {' '.join(paragraph.text.split())}" for paragraph in sample.article]
    discussion = [f"{turn.participant}: {' '.join(turn.utterance.split())}" for turn in sample.discussion]
    return "\n".join(["[Article]", *article, "[Discussion]", *discussion])


def _answers(
    judge: Judge,
    benchmark: Benchmark,
    question: Feedback,
    examples: Sequence[PairwiseExample],
    folder: Path,
    *,
    seed: int,
    on_progress: OnProgress,
) -> Mapping[str, Judgement]:
    """By id, from the folder as far as it has them; what the engine failed at is asked again."""
    settings = JudgeSettings(temperature=0, seed=seed)
    templates = ["feedback.jinja", *([TEMPLATE] if isinstance(question, SecondTurn) else [])]
    identity = {
        "kind": "kgds-feedback",
        **identity_of(judge, benchmark),
        "prompts": hashlib.sha256("".join(map(source, templates)).encode()).hexdigest(),
        "seed": seed,
        **({"second_turn": True} if isinstance(question, SecondTurn) else {}),
    }
    with RunLog(folder, identity, lines=JUDGEMENTS) as log:
        answer_all(judge, [(question, examples)], log, settings=settings, on_progress=on_progress)
        return read_judgements(log.path)


def _preference(sample: Sample, summary: Summary, judgement: Judgement) -> Preference:
    ok = judgement.status is Status.OK
    return Preference(
        sample=sample.number,
        experts=tuple(sorted(sample.supporting_indices)),
        own=_own(sample, summary),
        status=judgement.status,
        probability=judgement.distribution["A"] if ok and judgement.distribution else None,
        won=_won(judgement) if ok else None,
        order_gap=judgement.order_gap if ok else None,
    )


def _won(judgement: Judgement) -> float:
    """Without a distribution, two orders that name different selections are a tie."""
    from perse.evaluation.stats.accuracy import likeliest_correct

    if judgement.distribution is None and judgement.order_gap == 1:
        return 0.5
    return float(likeliest_correct(["A"], [judgement])[0])


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 4) if known else None


def _share(won: Sequence[float | None]) -> Estimate:
    """The share of samples that were won, in percent, with its exact interval; undefined without any."""
    import numpy as np

    from perse.evaluation.stats.estimates import NO_ITEMS
    from perse.kgds.scoring.feedback import share_in_percent

    known = np.array([one for one in won if one is not None], dtype=np.float64)
    if not len(known):
        return Estimate(value=None, interval=NO_ITEMS, items=0)
    interval = share_in_percent(known, np.ones(len(known)), np.arange(len(known)))
    return Estimate(value=round(100 * float(known.mean()), 2), interval=interval, items=len(known))


def _rate(values: Sequence[float | None], *, resamples: int, seed: int) -> Estimate:
    """The mean of the known values in percent, with its interval; undefined without any."""
    import numpy as np

    from perse.evaluation.stats.estimates import NO_ITEMS
    from perse.evaluation.stats.intervals import bootstrap_interval, unless_alike
    from perse.evaluation.stats.resamples import Resamples, times_drawn
    from perse.evaluation.stats.unseen import of_bounded

    known = np.array([value for value in values if value is not None], dtype=np.float64)
    if not len(known):
        return Estimate(value=None, interval=NO_ITEMS, items=0)
    draws = Resamples(np.arange(len(known)), times_drawn(len(known), resamples=resamples, seed=seed))
    means = 100 * draws.sums(known[None])[0] / len(known)
    value = 100 * float(known.mean())
    interval = unless_alike(bootstrap_interval(means, reviewers=len(known), of="sample"), means)
    interval = of_bounded(value, interval, items=len(known), least=0.0, most=100.0)
    ends = {end: round(at, 2) for end, at in (("low", interval.low), ("high", interval.high)) if at is not None}
    return Estimate(value=round(value, 2), interval=interval.model_copy(update=ends), items=len(known))
