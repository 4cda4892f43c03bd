"""Counterfactual profiles: nobody is shown their own query, another's is another's, and dealing anew moves every verdict."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from builders import pairwise_examples, pointwise_examples
from hypothesis import given
from hypothesis import strategies as st

from perse.data.examples_file import shown_query
from perse.data.variants.counterfactual import dealt_anew, with_another_profile, without_profile
from perse.errors import BadInput
from perse.evaluation.stats.correlation import Convention, kendall, within_reviewers
from perse.records import PointwiseExample, ProfileReview


@given(st.integers(0, 10**6), st.integers(2, 6))
def test_dealing_anew_leaves_no_verdict_at_its_text_and_loses_none(seed: int, k: int) -> None:
    examples = pointwise_examples(3, 2, k=k)
    for before, after in zip(examples, dealt_anew(examples, seed=seed), strict=True):
        assert [past.text for past in after.profile] == [past.text for past in before.profile]
        verdicts = [(past.review, past.score) for past in before.profile]
        dealt = [(past.review, past.score) for past in after.profile]
        assert Counter(dealt) == Counter(verdicts), "a review keeps its score"
        assert all(new != old for new, old in zip(dealt, verdicts, strict=True))
        assert after.model_copy(update={"profile": before.profile}) == before


def test_every_derangement_of_three_is_drawn_about_as_often() -> None:
    """Of 3 there are two: 1 2 0 and 2 0 1. 400 fair draws lie within 160-240 but for one time in 17,000."""
    (example,) = pointwise_examples(1, 1, k=3)
    texts = [past.review for past in example.profile]
    counts: Counter[tuple[int, ...]] = Counter()
    for n in range(400):
        (dealt,) = dealt_anew([example.model_copy(update={"id": f"e{n}"})], seed=0)
        counts[tuple(texts.index(past.review) for past in dealt.profile)] += 1
    assert set(counts) == {(1, 2, 0), (2, 0, 1)} and min(counts.values()) > 160


def test_preferences_are_dealt_as_a_whole_and_one_alone_is_left_out() -> None:
    (example, *_) = pairwise_examples()
    assert dealt_anew([example], seed=0) == []
    other = example.profile[0].model_copy(update={"text_a": "x", "preference": {"Ending": "B"}})
    two = example.model_copy(update={"profile": (*example.profile, other)})
    (dealt,) = dealt_anew([two], seed=0)
    assert [past.preference for past in dealt.profile] == [{"Ending": "B"}, {"Ending": "A", "Surprise": "B"}]
    assert [past.text_a for past in dealt.profile] == [past.text_a for past in two.profile]


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(1, 4))
def test_anothers_profile_is_of_one_other_reader_and_never_shows_the_query(seed: int, readers: int, k: int) -> None:
    examples = pointwise_examples(readers, 3, k=k)
    owner = {past.text: example.reviewer_id for example in examples for past in example.profile}
    swapped = with_another_profile(examples, examples, seed=seed)
    assert [one.id for one in swapped] == [one.id for one in examples]
    for one in swapped:
        (shown,) = {owner[past.text] for past in one.profile}
        assert shown != one.reviewer_id and len(one.profile) == k
        assert not shown_query(one)


def test_one_donor_is_shown_for_all_of_a_readers_queries() -> None:
    examples = pointwise_examples(8, 4)
    owner = {past.text: example.reviewer_id for example in examples for past in example.profile}
    donors: dict[str, set[str]] = {}
    for one in with_another_profile(examples, examples, seed=3):
        donors.setdefault(one.reviewer_id, set()).update(owner[past.text] for past in one.profile)
    assert len(donors) == 8 and all(len(names) == 1 for names in donors.values())


def test_the_same_profile_is_exchanged_for_the_same_one() -> None:
    """Where a reader's queries share a profile, so do they in the other arm: within a reader, nothing else differs."""
    examples = pointwise_examples(8, 4)
    more = [one.model_copy(update={"id": f"{one.id}b", "profile": one.profile[1:]}) for one in examples]
    swapped = with_another_profile(examples, [*examples, *more], seed=3)
    assert len({(one.reviewer_id, one.profile) for one in swapped}) == 8


def test_a_judge_of_leniency_and_quality_gains_nothing_within_readers() -> None:
    """It adds the mean score of the profile shown to how good a text is. By a donor for each query it lost in 78% of worlds."""
    lost = []
    for seed in range(30):
        generator = np.random.default_rng(seed)
        examples = pointwise_examples(12, 6)
        quality = {one.id: generator.normal() for one in examples}
        values = []
        for shown in (examples, with_another_profile(examples, examples, seed=seed)):
            judged = [quality[one.id] + sum(past.score for past in one.profile) / len(one.profile) for one in shown]
            gold = [quality[one.id] for one in examples]
            who = np.unique([one.reviewer_id for one in examples], return_inverse=True)[1]
            within = within_reviewers(kendall, np.array(gold), predicted=np.array(judged), reviewer=who)
            values.append(within.mean(Convention.SKIP_CONSTANT))
        lost.append(values[0] - values[1])
    np.testing.assert_allclose(lost, 0, atol=1e-9)


def test_the_draw_depends_on_the_reader_and_their_queries_alone() -> None:
    examples = pointwise_examples(6, 3)
    all_of_them = {one.id: one for one in with_another_profile(examples, examples, seed=1)}
    for example in reversed(examples[::2]):
        assert with_another_profile([example], examples, seed=1) == [all_of_them[example.id]]
    backwards = with_another_profile(examples[::-1], examples[::-1], seed=1)
    assert {one.id: one for one in backwards} == all_of_them
    assert [one.profile for one in with_another_profile(examples, examples, seed=2)] != [
        one.profile for one in all_of_them.values()
    ]


def reader(name: str, query: str, *texts: str) -> PointwiseExample:
    past = tuple(ProfileReview(text=text, review="r", score=5) for text in texts)
    return PointwiseExample(id=name, reviewer_id=name, item_id=query, profile=past, query=query)


def test_a_donor_whose_profile_shows_the_query_is_passed_over() -> None:
    asked = reader("me", "the query", "mine")
    showing, other = reader("a", "qa", "The  QUERY"), reader("b", "qb", "something else")
    for seed in range(20):
        (swapped,) = with_another_profile([asked], [asked, showing, other], seed=seed)
        assert swapped.profile == other.profile
    assert with_another_profile([asked], [asked, showing], seed=0) == [], "left out where all show it"


def test_as_many_entries_are_shown_where_a_donor_has_them_else_the_most_there_are() -> None:
    asked = reader("me", "q", "m1", "m2")
    long, short = reader("a", "qa", "a1", "a2", "a3"), reader("b", "qb", "b1")
    (swapped,) = with_another_profile([asked], [asked, long, short], seed=0)
    assert [past.text for past in swapped.profile] == ["a1", "a2"]
    (swapped,) = with_another_profile([asked], [asked, short], seed=0)
    assert [past.text for past in swapped.profile] == ["b1"]


def test_one_reader_is_refused() -> None:
    (example, *more) = pointwise_examples(1, 3)
    with pytest.raises(BadInput, match="the data holds profiles of 1 reader"):
        with_another_profile([example], [example, *more], seed=0)


def test_without_profile_changes_nothing_else() -> None:
    for example in (*pointwise_examples(1, 1), *pairwise_examples(1)):
        empty = without_profile(example)
        assert empty.profile == () and empty.model_copy(update={"profile": example.profile}) == example
