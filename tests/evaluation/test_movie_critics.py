"""Real critics: the sampling that the data's README describes gives the figures that it prints.

One `random.Random(0)` for all critics in the order of their names, each critic's reviews in the order of the file; a new one
for each k. The figures move by 0.03 with the seed, so the sample is fixed: a digest of its ids is compared first.
"""

import gzip
import hashlib
import json
import random
from collections import defaultdict

import numpy as np
import pytest
from places import SHARED

from perse.evaluation.baselines.ratings import pointwise_baselines
from perse.evaluation.stats.correlation import kendall, pearson
from perse.records import PointwiseExample, ProfileReview, ReviewReference

FOLDER = SHARED / "movie_critics"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the movie critics' reviews are not at ../shared/data")

FEWEST_REVIEWS, SHORTEST_REVIEW, MOST_QUERIES = 6, 20, 10

# k, queries, Pearson and Kendall as printed, and the first digits of sha256 over "critic item" of every query in its order.
FIGURES = [
    (1, 7113, 0.11, 0.10, "f9f48c22b88da0fa"),
    (3, 6519, 0.18, 0.14, "dedcc4661635f917"),
    (5, 5813, 0.20, 0.16, "bda5a20f118e28f3"),
]

Row = dict[str, str | int]


def read(name: str) -> list[Row]:
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


@pytest.fixture(scope="module")
def critics() -> dict[str, list[Row]]:
    """Usable reviews of each critic with enough of them, critics by name: a plot, a review long enough, each item once."""
    plots = {item["item_id"] for item in read("items.jsonl.gz") if str(item["plot"] or "").strip()}
    found: defaultdict[str, dict[str | int, Row]] = defaultdict(dict)
    for review in read("reviews.jsonl.gz"):
        if review["item_id"] in plots and len(str(review["review"]).strip()) >= SHORTEST_REVIEW:
            found[str(review["reviewer_id"])].setdefault(review["item_id"], review)
    return {name: list(found[name].values()) for name in sorted(found) if len(found[name]) >= FEWEST_REVIEWS}


def sample(critics: dict[str, list[Row]], k: int) -> list[PointwiseExample]:
    generator = random.Random(0)
    examples = []
    for critic, usable in critics.items():
        order = list(usable)
        generator.shuffle(order)
        profile = tuple(
            ProfileReview(text="t", review=str(past["review"]), score=int(past["score"]), item_id=str(past["item_id"]))
            for past in order[:k]
        )
        for query in order[k : k + MOST_QUERIES]:
            examples.append(
                PointwiseExample(
                    id=f"{critic} {query['item_id']}",
                    reviewer_id=critic,
                    item_id=str(query["item_id"]),
                    profile=profile,
                    query="q",
                    reference=ReviewReference(review=str(query["review"]), score=int(query["score"])),
                )
            )
    return examples


def gold_of(examples: list[PointwiseExample]) -> np.ndarray:
    return np.array([example.reference.score for example in examples if example.reference], dtype=np.float64)


def test_there_are_as_many_critics_as_written_down(critics: dict[str, list[Row]]) -> None:
    assert len(critics) == 794


@pytest.mark.parametrize(("k", "queries", "as_pearson", "as_kendall", "digest"), FIGURES, ids=["k=1", "k=3", "k=5"])
def test_the_profile_average_gives_the_figures_written_down(
    critics: dict[str, list[Row]], k: int, queries: int, as_pearson: float, as_kendall: float, digest: str
) -> None:
    examples = sample(critics, k)
    ids = "\n".join(example.id for example in examples)
    assert (len(examples), hashlib.sha256(ids.encode()).hexdigest()[:16]) == (queries, digest)
    baselines = {baseline.name: baseline.predictions for baseline in pointwise_baselines(examples, None)}
    predicted = np.array(baselines["profile average"], dtype=np.float64)
    gold = gold_of(examples)
    assert round(pearson(gold, predicted) or 0, 2) == as_pearson
    assert round(kendall(gold, predicted) or 0, 2) == as_kendall


def test_the_items_mean_over_other_critics_is_a_strong_oracle(critics: dict[str, list[Row]]) -> None:
    scores: defaultdict[str | int, list[int]] = defaultdict(list)
    for usable in critics.values():
        for review in usable:
            scores[review["item_id"]].append(int(review["score"]))
    pairs = [
        (int(review["score"]), (sum(known) - int(review["score"])) / (len(known) - 1))
        for usable in critics.values()
        for review in usable
        if len(known := scores[review["item_id"]]) > 1
    ]
    gold, predicted = np.array(pairs, dtype=np.float64).T
    assert round(pearson(gold, predicted) or 0, 2) == 0.63
