"""What is told of rewritten plots is of those that came through, by whoever rewrote them."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import SAMPLES

from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.dataset.card import data_card
from perse.data.dataset.folder import load_folder
from perse.data.per_mpst import PerMpstOptions, build_per_mpst
from perse.data.rewriting.plots import RewriteOptions, rewrite
from perse.errors import BadInput


def test_a_plot_that_is_left_out_is_not_among_those_short_enough_to_stay(tmp_path: Path) -> None:
    texts = {"a": "The Ferry sails away at night.", "b": "A king walks home through the snow."}
    options = RewriteOptions(steps=("summarize",), cache=tmp_path / "answers")
    found = rewrite(texts, options, titles={"a": "The Ferry"}, seed=0)
    assert found.texts.keys() == {"b"} and found.manifest["left_whole"] == found.manifest["rewritten"] == 1


def test_reviewers_with_too_few_reviews_are_not_blamed_on_the_writer(tmp_path: Path) -> None:
    build = PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", out=tmp_path / "set", min_reviews=1000)
    options = PerMpstOptions(
        plots=SAMPLES / "items.jsonl", build=build, rewriting=RewriteOptions(cache=tmp_path / "set.work" / "answers")
    )
    with pytest.raises(BadInput, match="no reviewer has 1000 usable reviews"):
        build_per_mpst(options)


@pytest.mark.parametrize(
    ("writer", "said"),
    [
        ("rules", "names found by spacy, replaced by code"),
        ("llama", "names told by the writer and looked for by spacy afterwards, replaced by code"),
    ],
)
def test_the_card_says_who_named_the_names(tmp_path: Path, writer: str, said: str) -> None:
    out = tmp_path / "set"
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out))
    rewriting = {"rewritten": 3, "texts": 4, "with_survivors": 0, "tries": {"anonymize": {"ok": 3}}}
    rewriting |= {"writer": {"name": writer}, "recognizer": {"name": "spacy"}}
    assert said in data_card({**load_folder(out).manifest, "rewriting": rewriting})
