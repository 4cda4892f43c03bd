"""Written reviews beside the readers' own, and what a run took."""

import pytest
from evaluation_builders import answered, failed, pair, scored
from sacrebleu import corpus_bleu

from perse.evaluation.costs import spent
from perse.evaluation.evaluate import Evaluation, Fold, Row, Texts, evaluate_many
from perse.evaluation.telling import evaluation_result
from perse.evaluation.text_rows import PAST_REVIEW
from perse.installing import install
from perse.judgement import Judgement, Prices, Status
from perse.records import PointwiseExample, ReviewReference
from perse.results.markdown import markdown

OWN = ["a quiet film about a harbour", "too loud for my taste", "the ghost was a fine idea", "nothing happens at all"]
WRITTEN = ["a quiet film about a ghost", "too loud by far for me", "a fine idea", "nothing at all happens here"]


def reviewed(n: int, own: str, *, past: str | None = "a film about a harbour") -> PointwiseExample:
    example = scored(str(n), f"u{n}", 5, profile=(("i1", 5),))
    profile = tuple(one.model_copy(update={"review": past}) for one in example.profile)
    return example.model_copy(update={"reference": ReviewReference(review=own, score=1 + n % 10), "profile": profile})


EXAMPLES = [reviewed(n, own) for n, own in enumerate(OWN)]


def table(judgements: list[Judgement], examples: list[PointwiseExample] = EXAMPLES, **options: object) -> Evaluation:
    return evaluate_many({"judge": judgements}, [Fold(examples, None)], resamples=100, **options)  # type: ignore[arg-type]


def row(evaluation: Evaluation, name: str) -> Row:
    return {row.name: row for row in evaluation.rows}[name]


def written(question: str = "pointwise") -> list[Judgement]:
    return [answered(str(n), "5", text=text, question=question) for n, text in enumerate(WRITTEN)]


def test_reviews_stand_in_the_label_row_and_a_past_review_beside_them() -> None:
    found = table(written())
    assert row(found, "judge (expected)").text == {}
    text = row(found, "judge (label)").text
    assert set(text) == {"bleu", "rouge1", "rouge2", "rougeL"}
    assert text["bleu"].value == pytest.approx(corpus_bleu(WRITTEN, [OWN]).score)
    # Words in common, of written and own: 5 of 6 and 6; 3 of 6 and 5; 3 of 3 and 6; 4 of 5 and 4. F1 is 2 c / (w + o).
    assert text["rouge1"].value == pytest.approx((10 / 12 + 6 / 11 + 6 / 9 + 8 / 9) / 4)
    past = row(found, PAST_REVIEW)
    assert past.columns == {} and past.judge is None
    assert past.text["bleu"].value == pytest.approx(corpus_bleu(["a film about a harbour"] * 4, [OWN]).score)


def test_what_was_not_answered_is_an_empty_text() -> None:
    judgements = [*written()[:3], failed("3").model_copy(update={"text": "nothing happens at all"})]
    text = row(table(judgements), "judge (label)").text["rouge1"]
    assert (text.items, text.value) == (4, pytest.approx((10 / 12 + 6 / 11 + 6 / 9 + 0) / 4))


def test_items_whose_reader_wrote_nothing_are_left_out() -> None:
    examples = [*EXAMPLES[:3], reviewed(3, " ")]
    assert row(table(written(), examples), "judge (label)").text["rouge1"].items == 3


def test_bleu_has_an_interval_over_the_reviewers() -> None:
    examples = [reviewed(n, OWN[n % 4]) for n in range(24)]
    judgements = [answered(str(n), "5", text=WRITTEN[n % 4]) for n in range(24)]
    bleu = row(table(judgements, examples), "judge (label)").text["bleu"]
    assert bleu.interval.low is not None and bleu.interval.low < bleu.value < bleu.interval.high


def test_models_that_are_not_there_are_footnotes() -> None:
    found = table(written())
    assert found.text_skipped == {
        "bertscore": "BERTScore: no model given (--bertscore-model FOLDER)",
        "bartscore": "BARTScore: no model given (--bartscore-model FOLDER)",
    }
    assert "- skipped: BERTScore: no model given" in markdown(evaluation_result(found))


def test_a_package_that_is_not_there_is_a_footnote(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu.metrics", None)
    found = table(written())
    assert install("report") in found.text_skipped["bleu"]
    assert "rouge1" in row(found, "judge (label)").text


def test_texts_are_left_out_when_asked_and_where_no_review_was_asked_for() -> None:
    left_out = table(written(), texts=Texts(compared=False))
    assert not any(row.text for row in left_out.rows)
    assert "the written reviews were not compared with the readers' own, as asked" in left_out.notes
    titles = table(written("recognition"))  # what it writes is a title
    assert not any(row.text for row in titles.rows) and titles.text_skipped == {}


def test_a_judge_that_was_asked_for_a_score_alone_has_no_review_that_is_compared() -> None:
    examples = [reviewed(n, own) for n, own in enumerate(OWN)]
    scores = [one.model_copy(update={"question": "pointwise_score", "text": "7"}) for one in written()]
    found = evaluate_many({"writes": written(), "scores": scores}, [Fold(examples, None)], resamples=100)
    assert {row.judge for row in found.rows if row.text and row.judge} == {"writes"}
    assert "no review was asked for of scores" in found.notes


def test_no_past_review_is_invented_where_profiles_show_none() -> None:
    found = table(written(), [reviewed(n, own, past=None) for n, own in enumerate(OWN)])
    assert PAST_REVIEW not in [row.name for row in found.rows]
    assert "no past review stands beside the written ones: the profiles show none" in found.notes


def test_tokens_and_cost_are_of_the_whole_run() -> None:
    judgements = [*written()[:3], failed("3")]
    prices = Prices(input=2, output=10, cached=1)
    spent = table(judgements, prices={"judge": prices}, seconds={"judge": 5.0}).judges["judge"].spent
    assert spent is not None
    assert (spent.judgements, spent.prompt, spent.cached, spent.generated, spent.k_effective) == (4, 40, 0, 20, 1)
    assert spent.cost == pytest.approx((40 * 2 + 20 * 10) / 1e6)
    assert spent.tokens_per_second == pytest.approx(60 / 5)


def test_the_reviews_shown_are_those_of_prompts_that_were_read() -> None:
    unread = failed("1", Status.ENGINE_ERROR).model_copy(update={"k_effective": 0})
    assert spent([failed("0").model_copy(update={"k_effective": 3}), unread]).k_effective == 3
    assert spent([unread]).k_effective is spent([]).k_effective is None


def test_cost_and_time_that_nobody_kept_are_absent() -> None:
    found = evaluate_many({"judge": [answered("0", "A")]}, [Fold([pair("0", "u", "A")], None)], resamples=100)
    spent = found.judges["judge"].spent
    assert spent is not None and (spent.cost, spent.seconds, spent.tokens_per_second) == (None, None, None)


def test_how_many_profiles_hold_a_past_review_is_said_where_not_all_do() -> None:
    examples = [reviewed(n, own) if n else reviewed(n, own, past=None) for n, own in enumerate(OWN)]
    assert "a past review: 3 of 4 profiles hold one; of the others it is an empty text" in table(written(), examples).notes
    assert not any(note.startswith("a past review") for note in table(written()).notes)
