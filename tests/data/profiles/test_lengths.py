"""Table 1: prompt lengths counted without rendering equal those of the renderer."""

from itertools import pairwise

import pytest
from places import SAMPLES

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import DataSet, load_folder
from perse.data.profiles.lengths import Lengths, pairwise_cells, pointwise_cells
from perse.data.profiles.views import View
from perse.errors import TooLong
from perse.questions import QUESTIONS
from perse.records import Example
from perse.rendering.prompt import TextRenderer


@pytest.fixture(scope="module")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("lengths") / "set"
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out, k=3, max_k=5))
    return load_folder(out)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("lengths") / "pairs"
    build_pairwise(PairwiseOptions(pairs=SAMPLES / "pairs.jsonl", items=SAMPLES / "items.jsonl", out=out))
    return load_folder(out)


def rendered(example: Example, question: str, max_words: int) -> tuple[int, int | None]:
    try:
        message = TextRenderer(max_words=max_words).render(QUESTIONS[question], example)[0]
    except TooLong as error:
        assert error.numbers["words"] > max_words
        return error.numbers["words"], None
    return len(message.text.split()), message.k_effective


@pytest.mark.parametrize("max_words", [2500, 500, 300])
def test_counted_lengths_of_reviews_equal_rendered_ones(reviews: DataSet, max_words: int) -> None:
    lengths = Lengths(max_words=max_words)
    rows = {row.example_id: row for row in reviews.rows}
    kept = set()
    for k in range(6):
        view = View(k=k)
        for example in reviews.examples("valid", view=view)[:20]:
            row = rows[example.id]
            chosen = [reviews.reviews[one] for one in row.profile_ids]
            found = lengths.pointwise(reviews.reviews[row.query_id], view.shown(chosen, k=k, example_id=row.example_id))
            assert (found.words, found.kept) == rendered(example, "pointwise", max_words)
            kept.add(found.kept)
    assert kept == ({0, 1, 2, 3, 4, 5} if max_words == 2500 else kept) and len(kept) > 1


@pytest.mark.parametrize("max_words", [2500, 400, 100])
def test_counted_lengths_of_pairs_equal_rendered_ones(pairs: DataSet, max_words: int) -> None:
    lengths = Lengths(max_words=max_words)
    rows = {row.example_id: row for row in pairs.rows}
    for example in pairs.examples("train")[:60]:
        row = rows[example.id]
        chosen = [pairs.comparisons[one] for one in row.profile_ids]
        assert row.aspect is not None
        shown = View().shown(chosen, k=pairs.k, example_id=row.example_id)
        found = lengths.pairwise(pairs.comparisons[row.query_id], row.aspect, shown)
        assert (found.words, found.kept) == rendered(example, "pairwise", max_words)


def test_the_columns_of_table_1_count_reviewers_examples_and_words(reviews: DataSet, pairs: DataSet) -> None:
    valid = [row for row in reviews.rows if row.split == "valid"]
    cells = pointwise_cells(valid, reviews.reviews, range(6), Lengths())
    assert [cell.name for cell in cells] == [f"k={k}" for k in range(6)]
    assert {(cell.reviewers, cell.examples) for cell in cells} == {(len({row.reviewer_id for row in valid}), len(valid))}
    assert all(less.words < more.words for less, more in pairwise(cells))
    examples = reviews.examples("valid")
    assert cells[3].words == pytest.approx(sum(rendered(one, "pointwise", 2500)[0] for one in examples) / len(examples))
    short = pointwise_cells(valid, reviews.reviews, [5], Lengths(max_words=500))[0]
    assert short.shortened > 0 and short.words <= 500
    train = [row for row in pairs.rows if row.split == "train"]
    assert sum(cell.examples for cell in pairwise_cells(train, pairs.comparisons, 1, Lengths())) == len(train)
