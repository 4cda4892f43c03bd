"""Baselines that read texts: what they know, what they choose, and what is said where they have nothing to read with."""

from collections.abc import Sequence

import numpy as np
import pytest
from evaluation_builders import answered, scored
from numpy.typing import NDArray

from perse.errors import BadInput
from perse.evaluation.baselines.content import content_baselines
from perse.evaluation.baselines.ratings import Baseline
from perse.evaluation.comparing.comparison import compare
from perse.evaluation.evaluate import Fold, evaluate, evaluate_many
from perse.records import PointwiseExample, ProfileReview

TEXTS = 60
_DRAWN = np.random.default_rng(7)
_OF_TEXTS = _DRAWN.normal(size=(TEXTS, 5))
_OF_TEXTS /= np.linalg.norm(_OF_TEXTS, axis=1, keepdims=True)
PLEASES = _OF_TEXTS @ np.array([2.0, -2.0, 1.0, 0.0, 0.5])


def vectors(texts: Sequence[str]) -> NDArray[np.float64]:
    """Each text is the number of its vector."""
    return np.stack([_OF_TEXTS[int(text)] for text in texts])


def critics(readers: int, *, seed: int, texts: Sequence[int] = range(TEXTS), lenient: float = 1.0) -> list[PointwiseExample]:
    """Readers who like what the vectors say, each more or less lenient; four reviews shown and six asked for."""
    generator = np.random.default_rng(seed)
    examples = []
    for r in range(readers):
        mine = generator.choice(np.array(texts), 10, replace=False)
        given = 5.5 + PLEASES[mine] + generator.normal(0, lenient) + generator.normal(0, 0.4, 10)
        scores = np.clip(np.round(given), 1, 10).astype(int).tolist()
        profile = tuple(
            ProfileReview(text=str(text), score=score, item_id=f"i{text}")
            for text, score in zip(mine[:4], scores[:4], strict=True)
        )
        for text, score in zip(mine[4:].tolist(), scores[4:], strict=True):
            one = scored(f"s{seed}-{r}-{text}", f"s{seed}-{r}", score, item=f"i{text}")
            examples.append(one.model_copy(update={"profile": profile, "query": str(text)}))
    return examples


def error(baseline: Baseline[float], examples: Sequence[PointwiseExample]) -> float:
    gold = np.array([one.reference.score for one in examples if one.reference])
    return float(((np.array(baseline.predictions) - gold) ** 2).mean())


def test_the_reader_counts_where_readers_differ() -> None:
    train, unseen = critics(40, seed=1), critics(20, seed=2)
    ridge, with_reader, nearest = content_baselines(unseen, train, vectors)
    assert error(with_reader, unseen) < 0.6 * error(ridge, unseen) < error(nearest, unseen)
    assert ridge.note and ridge.note.startswith("text ridge (penalty ") and "reader's offset" not in ridge.note
    assert with_reader.note and "of the reader's offset" in with_reader.note
    for one in (ridge, with_reader, nearest):
        assert one.distributions is not None and [sum(row) for row in one.distributions] == pytest.approx([1.0] * len(unseen))


def test_texts_that_training_does_not_know_are_predicted_by_their_words() -> None:
    train, unseen = critics(60, seed=1, texts=range(40)), critics(20, seed=2, texts=range(40, 60))
    ridge, with_reader, _ = content_baselines(unseen, train, vectors)
    mean = float(np.mean([one.reference.score for one in train if one.reference]))
    flat = Baseline[float]("mean", (mean,) * len(unseen))
    assert error(with_reader, unseen) < error(ridge, unseen) < 0.8 * error(flat, unseen)


def test_of_texts_that_training_scored_an_embedding_is_said_to_be_as_good_as_a_name() -> None:
    train = critics(20, seed=1, texts=range(40))
    for texts, said in (
        (range(40), "a name where training readers scored it: in 18 of 18 examples"),
        (range(40, 60), "embedding alone"),
    ):
        for one in content_baselines(critics(3, seed=2, texts=texts), train, vectors)[:2]:
            assert one.note and one.note.endswith(said)


def test_the_nearest_of_the_profile_weigh_most() -> None:
    train, unseen = critics(40, seed=1, lenient=0.1), critics(20, seed=2, lenient=0.1)
    *_, nearest = content_baselines(unseen, train, vectors)
    average = Baseline[float]("average", tuple(float(np.mean([past.score for past in one.profile])) for one in unseen))
    assert error(nearest, unseen) < 0.8 * error(average, unseen)
    assert nearest.note and "sharpness 0" not in nearest.note


def test_predictions_depend_on_no_order() -> None:
    train, unseen = critics(20, seed=1), critics(5, seed=2)
    for one, other in zip(
        content_baselines(unseen, train, vectors), content_baselines(unseen[::-1], train[::-1], vectors), strict=True
    ):
        assert one.predictions == pytest.approx((other.predictions or ())[::-1])


def test_a_readers_profile_is_what_is_known_of_them() -> None:
    train, [first, *_] = critics(20, seed=1), critics(1, seed=2)
    nobody = first.model_copy(update={"profile": ()})
    ridge, with_reader, nearest = content_baselines([first, nobody], train, vectors)
    assert ridge.predictions and ridge.predictions[0] == ridge.predictions[1]
    for one in (with_reader, nearest):
        assert one.predictions and one.predictions[0] != one.predictions[1]


def test_why_there_are_none_is_said_in_their_rows() -> None:
    train, unseen = critics(20, seed=1), critics(12, seed=2)

    def absent(texts: Sequence[str]) -> NDArray[np.float64]:
        raise BadInput("sentence embeddings need sentence_transformers, which is not installed")

    for given, side, reason in (
        (None, train, "no embedding model was given"),
        (absent, train, "sentence embeddings need sentence_transformers, which is not installed"),
        (absent, None, "no training data at hand"),
        (absent, [], "no training data at hand"),
    ):
        found = content_baselines(unseen, side, given)
        assert {one.unavailable for one in found} == {reason} and not any(one.predictions for one in found)
    judgements = [answered(one.id, "5") for one in unseen]
    table = evaluate_many({"judge": judgements}, [Fold(unseen, train)], resamples=100, vectors=absent)
    assert sum("sentence_transformers" in (row.unavailable or "") for row in table.rows) == 3


def test_one_training_reader_is_enough_to_say_something() -> None:
    train, unseen = critics(1, seed=1), critics(5, seed=2)
    assert all(one.predictions for one in content_baselines(unseen, train, vectors))


@pytest.mark.slow
def test_a_judge_is_told_which_baseline_knows_more() -> None:
    """Also where the texts are new, so that what others gave them is not known."""
    train, unseen = critics(60, seed=1, texts=range(40)), critics(20, seed=2, texts=range(40, 60))
    judge = [answered(one.id, str(1 + n % 10)) for n, one in enumerate(unseen)]
    table = evaluate_many({"judge": judge}, [Fold(unseen, train)], resamples=100, vectors=vectors)
    assert "text ridge + reader, which needs no judge, has Kendall tau-b" in table.verdict[0]
    beside = compare(
        {"judge": judge, "other": judge[::-1]}, [Fold(unseen, train)], resamples=100, permutations=199, vectors=vectors
    )
    values = {one.name: one.values["kendall"].value for one in beside.baselines if one.values}
    row = next(row for row in table.rows if row.name == "text ridge + reader")
    assert values[row.name] == row.columns["kendall"].value


@pytest.mark.slow
def test_folds_have_each_their_own() -> None:
    folds = [Fold(critics(6, seed=n), critics(20, seed=10 + n)) for n in range(2)]
    judge = [answered(one.id, "5") for fold in folds for one in fold.examples]
    table = evaluate_many({"judge": judge}, folds, resamples=100, vectors=vectors)
    row = next(row for row in table.rows if row.name == "text ridge")
    assert row.columns["mae"].items == len(judge)
    assert all(not row.unavailable for row in evaluate(folds[0].examples, judge[:36], train=folds[0].train).rows[:4])


@pytest.mark.slow
def test_baselines_that_know_the_answers_are_not_held_against_a_judge() -> None:
    """`perse score --split train`, evaluated on its own training side: these rows read the answers, of pure noise too."""
    train = critics(12, seed=1)
    judge = [answered(one.id, str(1 + n % 10)) for n, one in enumerate(train)]
    table = evaluate_many({"judge": judge}, [Fold(train, train)], resamples=100, vectors=vectors)
    assert "which needs no judge" not in table.verdict[0]
    assert (
        "12 of 12 reviewers are also in the training data, and the answers to 72 of 72 items: rows that are fitted to it know these; this is no test on "
        "unseen readers"
    ) in table.notes
    beside = compare(
        {"judge": judge, "other": judge[::-1]}, [Fold(train, train)], resamples=100, permutations=199, vectors=vectors
    )
    assert [note for note in table.notes if "the answers to" in note] == [
        note for note in beside.notes if "the answers to" in note
    ]
    shown = [
        one.model_copy(update={"query": one.profile[0].text, "item_id": one.profile[0].item_id or ""}) for one in train[::6]
    ]
    asked = evaluate_many({"judge": judge[::6]}, [Fold(shown, train)], resamples=100, vectors=vectors)
    assert any("the answers to 12 of 12 items" in note for note in asked.notes)
    others = evaluate_many({"judge": judge}, [Fold(train, critics(12, seed=2))], resamples=100, vectors=vectors)
    assert "which needs no judge" in others.verdict[0] and not any("the answers to" in note for note in others.notes)
