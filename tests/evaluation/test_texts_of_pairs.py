"""Pairs that have a text in common are drawn together, since how good that text is moves all of them."""

import numpy as np
import pytest
from evaluation_builders import answered, row
from hypothesis import given
from hypothesis import strategies as st

from perse.evaluation.evaluate import evaluate
from perse.evaluation.shared_texts import OF_THESE_TEXTS, to_draw, works
from perse.evaluation.stats.estimates import Bootstrap
from perse.records import ChoiceReference, Pair, PairwiseExample


def compared(one: str, other: str, *, reader: str = "r", id: str | None = None, choice: str = "A") -> PairwiseExample:
    return PairwiseExample(
        id=id or f"{reader}: {one}, {other}",
        reviewer_id=reader,
        aspect="Ending",
        profile=(),
        query=Pair(text_a=one, text_b=other),
        reference=ChoiceReference(preference=choice),  # type: ignore[arg-type]
    )


def stories(number: int, *, readers: int = 12) -> list[PairwiseExample]:
    """Each story has three endings, which all readers compare with one another."""
    return [
        compared(f"{story}.{one}", f"{story}.{other}", reader=f"r{reader:02}", choice="AB"[(reader + story) % 5 == 0])
        for reader in range(readers)
        for story in range(number)
        for one, other in ((0, 1), (1, 2), (2, 0))
    ]


def test_pairs_of_one_story_are_one_text_and_others_are_others() -> None:
    first, second = np.split(works(stories(2, readers=1)), 2)
    assert len(set(first)) == len(set(second)) == 1 and first[0] != second[0]
    assert len(set(works([compared("a", "b"), compared("b", "a", id="2"), compared("c", "d")]).tolist())) == 2


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda two: two[0] != two[1]), min_size=1, max_size=12))
def test_two_pairs_are_one_text_where_a_chain_of_pairs_leads_from_one_to_the_other(edges: list[tuple[int, int]]) -> None:
    found = works([compared(f"t{one}", f"t{other}", id=str(number)) for number, (one, other) in enumerate(edges)])
    reached = [set(edge) for edge in edges]
    for _ in edges:  # the slow twin: take in whatever touches, until nothing does
        reached = [set().union(*(other for other in reached if other & mine)) for mine in reached]
    for first in range(len(edges)):
        for second in range(len(edges)):
            assert (found[first] == found[second]) == (reached[first] == reached[second])


def test_pairs_of_many_stories_get_an_interval_that_holds_for_other_stories() -> None:
    examples = stories(20)
    right = [answered(one.id, one.reference.preference if one.query.text_a < "3" else "B") for one in examples if one.reference]
    found = evaluate(examples, right, train=None, resamples=300)
    assert found.resample == "two-way"
    [note] = [note for note in found.notes if "two-way" in note]
    assert "answers of one reviewer, and answers about one of 20 groups of pairs that have texts in common, go together" in note
    assert "resampled" not in note and "between reviewers" not in note, "an interval of a share is exact"
    assert "60 of 60 texts stand in several pairs (at most 2)" in note
    assert not any("these texts alone" in said for said in (*found.notes, *found.verdict))
    # As if each pair were the story that it belongs to.
    reviewer = np.array([int((one.reviewer_id or "")[1:]) for one in examples])
    story = np.array([int(one.query.text_a.split(".")[0]) for one in examples])
    hits = np.array([float(judged.label == one.reference.preference) for judged, one in zip(right, examples, strict=True) if one.reference])  # fmt: skip
    by_story = Bootstrap.over(reviewer, resamples=300, seed=0, item=story)
    alone = Bootstrap.over(reviewer, resamples=300, seed=0)
    every = np.ones(len(hits), dtype=bool)
    interval = row(found, "judge (label)").columns["accuracy"].interval
    wide, narrow = by_story.mean(hits, every).interval, alone.mean(hits, every).interval
    assert interval.low is not None and interval.high is not None and narrow.low is not None and narrow.high is not None
    assert wide.low is not None and wide.high is not None
    assert interval.high - interval.low == pytest.approx(wide.high - wide.low, rel=0.25)  # other draws of the same stories
    assert interval.high - interval.low > 2 * (narrow.high - narrow.low)


def test_pairs_that_all_hang_together_are_said_to_be_of_these_texts_alone() -> None:
    chain = [compared(f"t{n}", f"t{n + 1}", reader=f"r{reader:02}") for reader in range(12) for n in range(20)]
    found = evaluate(chain, [answered(one.id, "A") for one in chain], train=None)
    assert found.resample == "reviewers"
    assert any(
        note.startswith(OF_THESE_TEXTS) and "groups of pairs that have texts in common are too few" in note
        for note in found.notes
    )


def test_a_web_of_pairs_beside_a_few_single_ones_is_still_too_few() -> None:
    chain = [compared(f"t{n}", f"t{n + 1}", reader=f"r{reader:02}") for reader in range(12) for n in range(40)]
    single = [compared(f"a{n}", f"b{n}", reader=f"r{reader:02}") for reader in range(12) for n in range(12)]
    assert len(set(works([*chain, *single]).tolist())) == 13
    assert to_draw([*chain, *single], "auto") == "reviewers" and to_draw(single, "auto") == "two-way"


def test_pairs_that_are_judged_as_whole_prompts_have_no_text_in_common() -> None:
    prompts = [compared(f"prompt {n}", "", reader=f"r{n % 12}") for n in range(36)]
    assert len(set(works(prompts).tolist())) == 36
    found = evaluate(prompts, [answered(one.id, "A") for one in prompts], train=None, resamples=100)
    assert not any("texts stand in several pairs" in note for note in found.notes)
