"""What the tests of judging studies stand on: a tiny model that answers, a data set of texts and one of pairs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import words

from perse.data.build import PairwiseOptions, PointwiseOptions, build_pairwise, build_pointwise


@pytest.fixture(scope="session")
def readers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set folder of 24 readers, half of them for validation, that keeps profiles of 4 and shows 3."""
    folder = tmp_path_factory.mktemp("readers")
    items = [{"item_id": f"i{n}", "text": words(20, ("item", n))} for n in range(40)]
    reviews = [
        {
            "reviewer_id": f"Reviewer {who}",
            "item_id": f"i{(who * 7 + n * 3) % 40}",
            "score": 1 + (who % 5) + (who * 3 + n * 7) % 6,
            "review": words(5, ("review", who, n)),
        }
        for who in range(24)
        for n in range(9)
    ]
    for name, rows in (("items", items), ("reviews", reviews)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = folder / "data"
    options = PointwiseOptions(
        reviews=folder / "reviews.jsonl", items=folder / "items.jsonl", out=out, k=3, max_k=4, valid=0.5, max_queries=5
    )
    build_pointwise(options)
    return out


@pytest.fixture(scope="session")
def couples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set folder of pairs of two aspects, by 24 annotators, half of them for validation; k = 1."""
    folder = tmp_path_factory.mktemp("couples")
    rows = [
        {
            "annotator": f"Annotator {who}",
            "aspect": aspect,
            "text_a": words(12, ("left", who, n)),
            "text_b": words(12, ("right", who, n)),
            "preference": "AB"[(who + n + len(aspect)) % 2],
        }
        for who in range(24)
        for n in range(5)
        for aspect in ("Ending", "Surprise")
    ]
    (folder / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    out = folder / "data"
    build_pairwise(
        PairwiseOptions(pairs=folder / "pairs.jsonl", out=out, k=1, max_k=2, min_comparisons=3, split="reviewer", valid=0.5)
    )
    return out
