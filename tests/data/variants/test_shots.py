"""Few-shot without a person: the same answers of other readers for every query."""

from __future__ import annotations

import pytest
from builders import pairwise_examples, pointwise_examples, words

from perse.data.examples_file import shown_query
from perse.data.variants.shots import with_shots
from perse.errors import BadInput
from perse.records import PointwiseExample


def test_every_query_is_shown_the_same_answers_of_as_many_other_readers() -> None:
    examples, train = _two_sides()
    shown = with_shots(examples, train, shots=2, seed=0)
    assert [example.query for example in shown] == [example.query for example in examples]
    assert len({example.profile for example in shown}) == 1
    answers = {(one.query, one.reference and one.reference.score): one.reviewer_id for one in train}
    assert len({answers[past.text, past.score] for past in shown[0].profile}) == 2
    assert shown == with_shots(examples, train[::-1], shots=2, seed=0), "the order of the training side does not matter"


def test_a_shot_that_shows_the_query_gives_its_place_to_the_next() -> None:
    examples, train = _two_sides()
    first = with_shots(examples, train, shots=1, seed=0)[0].profile[0]
    asked = examples[0].model_copy(update={"query": first.text})
    (shown,) = with_shots([asked], train, shots=1, seed=0)
    assert shown.profile[0] != first and not shown_query(shown)


def test_pairs_are_shown_answers_on_their_own_aspect() -> None:
    every = pairwise_examples(8)
    train = [one.model_copy(update={"reviewer_id": f"other {n}"}) for n, one in enumerate(every)]
    asked = every[0].model_copy(
        update={"query": every[0].query.model_copy(update={"text_a": "a new text", "text_b": "another"})}
    )
    (shown,) = with_shots([asked], train, shots=1, seed=0)
    assert list(shown.profile[0].preference) == [asked.aspect]


def test_too_few_readers_are_refused_with_the_number_there_is() -> None:
    examples, train = _two_sides()
    with pytest.raises(BadInput, match="can be shown 3 answers of other readers, not 4; ask for fewer shots"):
        with_shots(examples, train[:3], shots=4, seed=0)


def _two_sides() -> tuple[list[PointwiseExample], list[PointwiseExample]]:
    every = pointwise_examples(2, 8)
    train = [
        one.model_copy(update={"reviewer_id": f"other {n}", "item_id": f"other {n}", "query": words(30, ("other", n))})
        for n, one in enumerate(every)
    ]
    return every, train
