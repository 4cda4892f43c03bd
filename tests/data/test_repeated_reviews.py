"""A review that its writer posted on several products is never shown to a judge that is asked for it."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from perse.data.build import PointwiseOptions, Summary, build_pointwise
from perse.data.dataset.folder import DataSet, load_folder
from perse.data.dataset.parquet import write_parquet
from perse.data.leaks import check_leaks
from perse.data.per_mpst import PerMpstOptions, build_per_mpst
from perse.data.profiles.profiles import Drawing, pointwise_rows
from perse.data.rewriting.plots import RewriteOptions
from perse.data.works import repeats, works
from perse.errors import BadInput
from perse.records import Review
from perse.records.near import near_duplicate

SAID = "I gave this card to my nephew for his birthday and he bought a game with it on the very same day, so all are happy"


def said(item: int, kind: str, reader: int) -> str:
    """What a reader writes: items 0 to 2 are variants of one product, with a review that is equal but for `kind`."""
    if item > 2:
        return (
            f"reader {reader} has a view of product {item} that is like no other view in this world, word {reader * 31 + item}"
        )
    own = f"{SAID} in house {reader}"
    if kind == "own":  # once by each reader, and beside it nothing twice
        return (
            "Nice!" if item == 0 else f"variant {item} is {'a toy' if item == 1 else 'one more'} in house {reader * 7 + item}"
        )
    return {"identical": own, "near-identical": own + "!" * item + (" indeed" if item == 1 else ""), "short": "Nice!"}[kind]


def table(folder: Path, kind: str) -> dict[str, Any]:
    """Files of 12 readers with 8 reviews each, as all sources of reviews can take them."""
    folder.mkdir(exist_ok=True)
    rows = [
        {
            "reviewerID": f"R{reader}",
            "asin": f"B{item}",
            "overall": 1 + (reader + item) % 5,
            "reviewText": said(item, kind, reader),
        }
        for reader in range(12)
        for item in range(8)
    ]
    (folder / "reviews.json").write_text("".join(json.dumps(row) + "\n" for row in rows))
    names = ("amber", "beryl", "coral", "dusk", "ember", "frost", "grove", "haze")
    meta = [
        {"asin": f"B{item}", "title": f"{name} card", "description": [f"a card named {name} for those who like {name} things"]}
        for item, name in enumerate(names)
    ]
    (folder / "meta.json").write_text("".join(json.dumps(row) + "\n" for row in meta))
    with (folder / "table.csv").open("w") as file:
        writer = csv.DictWriter(file, ["reviewer", "item", "score", "review"])
        writer.writeheader()
        writer.writerows(dict(zip(writer.fieldnames, r.values(), strict=True)) for r in rows)
    items = [{"item_id": row["asin"], "text": row["description"][0]} for row in meta]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in items))
    return {"out": folder / "out", "scale": (1, 5), "k": 3, "max_queries": None, "valid": 0.25}


def built(folder: Path, build: str, kind: str, **changes: Any) -> tuple[Summary, DataSet]:
    settings = table(folder, kind) | changes
    if build == "amazon":
        settings = {name: value for name, value in settings.items() if name != "scale"}
        summary = build_pointwise(
            PointwiseOptions(source="amazon", reviews=folder / "reviews.json", items=folder / "meta.json", **settings)
        )
    elif build == "table":
        summary = build_pointwise(PointwiseOptions(reviews=folder / "table.csv", items=folder / "items.jsonl", **settings))
    else:
        summary = build_per_mpst(
            PerMpstOptions(
                plots=folder / "items.jsonl",
                build=PointwiseOptions(reviews=folder / "table.csv", **settings),
                rewriting=RewriteOptions(writer="none", cache=folder / "answers.sqlite"),
            )
        )
    return summary, load_folder(settings["out"])


def shown(data: DataSet, k: int | None = None) -> int:
    """Examples in whose profile, or its first `k`, the review asked for stands, word for word or nearly."""
    return sum(
        any(near_duplicate(data.reviews[one].review, data.reviews[row.query_id].review) for one in row.profile_ids[:k])
        for row in data.rows
    )


@pytest.mark.parametrize("kind", ["identical", "near-identical", "short"])
@pytest.mark.parametrize("build", ["amazon", "table", "per-mpst"])
def test_the_answer_never_stands_in_the_profile(tmp_path: Path, build: str, kind: str) -> None:
    summary, data = built(tmp_path, build, kind)
    assert data.rows and shown(data) == 0
    assert data.manifest["repeated_reviews"] == 36
    (note,) = (note for note in summary.notes if "say the same" in note)
    assert note.startswith("36 of 96 reviews") and "--keep-repeats" in note


def test_what_several_readers_say_alike_is_no_repeat_of_anybody(tmp_path: Path) -> None:
    summary, data = built(tmp_path, "table", "own", min_reviews=8)
    assert data.manifest["repeated_reviews"] == 0 and not any("say the same" in note for note in summary.notes)
    alike = [one for one in data.reviews.values() if one.review == "Nice!"]
    assert len(alike) == 12 == len({one.reviewer_id for one in alike})


@pytest.mark.parametrize("max_k", [None, 5], ids=["as many as are shown", "more than are shown"])
def test_repeats_may_be_kept_and_are_counted_then_too(tmp_path: Path, max_k: int | None) -> None:
    summary, data = built(tmp_path, "amazon", "identical", keep_repeats=True, max_k=max_k)
    found = shown(data, k=3)
    assert found > 0
    assert any(
        f"in {found:,} of {len(data.rows):,} examples the answer stands in the profile" in note for note in summary.notes
    )


@pytest.mark.parametrize("epoch", [0, 1, 2])
def test_no_epoch_asks_for_a_review_that_its_profile_shows(tmp_path: Path, epoch: int) -> None:
    _, data = built(tmp_path, "amazon", "identical", profiles="per_reviewer_epoch")
    asked = data.examples("train", epoch=epoch)
    assert asked
    for example in asked:
        assert example.reference.review not in [one.review for one in example.profile]  # type: ignore[union-attr]


def test_a_planted_answer_in_the_profile_is_a_leak(tmp_path: Path) -> None:
    """Of reviews of two products, so that the texts tell nothing; a folder that says it keeps repeats is read."""
    _, data = built(tmp_path, "amazon", "identical", keep_repeats=True)
    manifest = tmp_path / "out" / "manifest.json"
    whole = json.loads(manifest.read_text())
    whole["options"]["keep_repeats"] = False
    manifest.write_text(json.dumps(whole))
    write_parquet(tmp_path / "out" / "examples.parquet", data.rows)
    with pytest.raises(BadInput, match="leak: the review asked for is in the profile"):
        load_folder(tmp_path / "out")
    with pytest.raises(BadInput, match="leak: the review asked for is in the profile"):
        check_leaks(data.rows, data.reviews, {}, disjoint_items=False)
    check_leaks(data.rows, data.reviews, {}, disjoint_items=False, repeats=True)


def test_two_readers_and_reviews_without_a_word_repeat_nothing() -> None:
    def one(n: int, review: str) -> Review:
        return Review(
            review_id=f"v{n}", reviewer_id="r", item_id=f"i{n}", text=f"text {n}", review=review, score=5, original_score=5
        )

    mine = [one(0, ""), one(1, " "), one(2, "Good"), one(3, "good "), one(4, "Bad")]
    keys = repeats(mine)
    assert keys["v2"] == keys["v3"] and len(set(keys.values())) == 4
    rows = pointwise_rows({"r": mine}, works(mine), Drawing(2))
    assert all({"v2", "v3"} - {row.query_id, *row.profile_ids} for row in rows if row.query_id in ("v2", "v3"))
