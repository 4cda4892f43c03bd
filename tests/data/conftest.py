"""A small invented world of reviewers and annotators, written as raw files."""

import json
from pathlib import Path

import pytest
from persum_worlds import write_table


@pytest.fixture(scope="session")
def raw(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`reviews.jsonl`, `items.jsonl` (24 reviewers, 40 items, 12 reviews each) and `pairs.jsonl` (12 annotators, 60 pairs)."""
    folder = tmp_path_factory.mktemp("raw")
    items = [{"item_id": f"i{n}", "text": f"Plot number {n} about a {'sea' if n % 2 else 'hill'}."} for n in range(40)]
    reviews = [
        {
            "reviewer_id": f"Reviewer {who}",
            "item_id": f"i{(who * 7 + n * 3) % 40}",
            "score": 1 + (who + n) % 10,
            "review": f"Reviewer {who} thinks {n} things about it.",
            "date": f"20{10 + (n * 5) % 12}-01-0{1 + who % 9}",
        }
        for who in range(24)
        for n in range(12)
    ]
    pairs = [
        {
            "annotator": f"Annotator {who}",
            "aspect": aspect,
            "text_a": f"Story {(who * 5 + n) % 60} goes left.",
            "text_b": f"Story {(who * 5 + n) % 60} goes right.",
            "preference": "AB"[(who + n + len(aspect)) % 2],
        }
        for who in range(12)
        for n in range(8)
        for aspect in (("Ending", "Surprise") if n % 3 else ("Ending",))
    ]
    for name, rows in (("items", items), ("reviews", reviews), ("pairs", pairs)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return folder


@pytest.fixture(scope="session")
def chained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 12 annotators and 30 pairs in which every text stands in two pairs, once as A and once as B."""
    path = tmp_path_factory.mktemp("chained") / "pairs.jsonl"
    rows = [
        {
            "annotator": f"Annotator {who}",
            "aspect": "Ending",
            "text_a": f"Story {(who * 5 + n) % 30}.",
            "text_b": f"STORY  {(who * 5 + n + 1) % 30}.",
            "preference": "AB"[(who + n) % 2],
        }
        for who in range(12)
        for n in range(8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def toy_pianos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of 12 users who each review 8 of 10 products: 96 reviews, each with a history of 7."""
    return write_table(tmp_path_factory.mktemp("amazon"), users=12)
