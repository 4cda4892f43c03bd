"""Soft labels as data: four answers of one prompt weigh the neighbours of a score, and the prompt is computed once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from builders import pairwise_examples, pointwise_examples
from soft_labels import softened

from perse.errors import BadInput
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer
from perse.training.rows.branches import training_branches
from perse.training.rows.trie import packed

EXAMPLE = pointwise_examples(1, 1)[0]


def scored(score: int) -> Any:
    assert EXAMPLE.reference
    return EXAMPLE.model_copy(update={"reference": EXAMPLE.reference.model_copy(update={"score": score})})


@pytest.mark.parametrize(("score", "weights"), [(6, {5: 1, 6: 2, 7: 1}), (1, {1: 3, 2: 1}), (10, {9: 1, 10: 3})])
def test_a_score_and_its_neighbours_weigh_a_half_and_a_quarter_each(score: int, weights: dict[int, int]) -> None:
    found = list(softened([scored(score)]))
    assert Counter(one.reference.score for one in found if one.reference) == weights
    assert len({one.id for one in found}) == 4
    assert {one.model_copy(update={"id": "", "reference": None}) for one in found} == {
        EXAMPLE.model_copy(update={"id": "", "reference": None})
    }


def test_packing_computes_the_prompt_of_the_four_once(tokenizers: dict[str, Any]) -> None:
    renderer = Renderer(tokenizers["whole_numbers"], 2048)
    branches = training_branches(renderer, QUESTIONS["pointwise_score"], softened([scored(6)])).fitting
    row = packed(branches)
    assert len(row.ids) == len(branches[0].prompt) + sum(len(answer) for answer in {branch.answer for branch in branches})
    assert len(row.targets) == sum(len(branch.answer) for branch in branches)


def test_examples_without_a_score_are_refused_by_name() -> None:
    for example in (pairwise_examples()[0], EXAMPLE.model_copy(update={"reference": None})):
        with pytest.raises(BadInput, match=f"example {example.id} has no true score"):
            list(softened([example]))
