"""PerSum: filters counted one by one, answers kept, groups drawn by seed, nothing given away."""

from __future__ import annotations

import csv
import itertools
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import Reworded, tiny_llama
from command_line import perse
from hypothesis import given
from hypothesis import strategies as st
from places import SHARED

from perse import Judge
from perse.data.overlap import Tokenizer, best_overlap, common_subsequence, is_copy, mean_overlap, overlap, together
from perse.data.persum.build import build_persum, group_of
from perse.data.persum.filters import Candidate, Funnel, filtered, limited
from perse.data.persum.folder import ProductReview, Scores, load_persum, persum_tables
from perse.data.persum.options import PUBLISHED, Counts, PersumOptions
from perse.engines.base import Capabilities, LabelDistribution, Reply, Sampling
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, RunMismatch
from perse.judgement import Tokens
from perse.questions import QUESTIONS
from perse.rendering.prompt import Renderer, TextRenderer

REAL = SHARED / "amazon_reviews" / "Musical_Instruments.csv"
CODES = ("555", "444", "544", "554", "355", "222")
"""History coverage, product coverage and sentiment as the judge below gives them: High, Low, HHPL, and three that are none."""

WORDS = st.lists(st.sampled_from(["run", "running", "the", "a", "cable", "cables", "x", "10"]), max_size=12).map(" ".join)
VOCABULARY = [
    a + b for a in ("bo", "ka", "li", "mu", "ne", "pa", "ro", "su") for b in ("dan", "fel", "gor", "hip", "jut", "kem")
]


def text(user: str, item: str, code: str) -> str:
    own = random.Random(f"{user} {item}").sample(VOCABULARY, 12)
    return f"Good sound and a solid build for the price by {user} scored {code} " + " ".join(own)


def review(user: str, item: str, said: str, time: str | None = "2014-01-01") -> ProductReview:
    return ProductReview(reviewer_id=user, item_id=item, review=said, score=5.0, time=time)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 users who each review 8 of 10 products: 96 reviews, each with a history of 7."""
    return write_table(tmp_path_factory.mktemp("amazon"), users=12)


def write_table(folder: Path, *, users: int) -> Path:
    """FOLDER/Toy_Pianos.csv of so many users, each with 8 reviews."""
    path = folder / "Toy_Pianos.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["reviewerID", "asin", "reviewText", "overall", "unixReviewTime"])
        for user in range(users):
            for n in range(8):
                item = (user + n) % 10
                code = CODES[(user * 8 + n) % len(CODES)]
                names = f"USER{user:02d}", f"B0000000{item:02d}"
                rows.writerow([*names, text(f"user{user}", f"item{item}", code), 1 + n % 5, 1393545600 + n * 86400 + user])
    return path


class Scoring:
    """A chat engine that scores the text by the code in it; `stop_after` so many messages, as if the process had been ended."""

    def __init__(self, *, stop_after: int | None = None, silent_at: str = "", always: str = "") -> None:
        self.capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)
        self.settings: dict[str, str] = {}
        self.asked = 0
        self._stop_after, self._silent_at, self._always = stop_after, silent_at, always

    def chat(self, messages: Sequence[str], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply]:
        if self._stop_after is not None and self.asked + len(messages) > self._stop_after:
            raise KeyboardInterrupt
        self.asked += len(messages)
        return [Reply(self._answer(message), "stop", Tokens(prompt=0, cached=0, generated=0)) for message in messages]

    def _answer(self, message: str) -> str:
        shown, _, judged = message.partition("\n[Text] ")
        writer, code = re.search(r"by (\w+) scored (\d+)", judged).groups()  # type: ignore[union-attr]
        if code == self._silent_at:
            return "I cannot say."
        of_history = set(re.findall(r"by (\w+) scored", shown)) == {writer}
        assert of_history or writer not in re.findall(r"by (\w+) scored", shown)
        return (
            f"[Score] {self._always}"
            if self._always
            else f"[Score] {code[0] if of_history else code[1 + ('sentiment' in judged)]}"
        )


def judging(engine: Scoring) -> Judge:
    return Judge(engine, TextRenderer(max_words=5000), name="scripted")  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# Overlap


@given(a=WORDS, b=WORDS)
def test_overlap_is_what_the_library_computes(a: str, b: str) -> None:
    from rouge_score.rouge_scorer import RougeScorer

    library = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True).score(a, b)
    tokens = Tokenizer()
    assert overlap(tokens(a), tokens(b)) == sum(one.fmeasure for one in library.values())


@given(own=WORDS, others=st.lists(WORDS.filter(str.strip), min_size=1, max_size=6))
def test_the_overlap_with_a_whole_set_is_that_with_its_reviews_as_one_text(own: str, others: list[str]) -> None:
    tokens = Tokenizer()
    prepared = [tokens(other) for other in others]
    assert overlap(tokens(own), together(prepared)) == overlap(tokens(own), tokens(" ".join(others)))
    assert mean_overlap(tokens(own), prepared) == pytest.approx(
        sum(overlap(tokens(own), one) for one in prepared) / len(others)
    )


@given(own=WORDS, others=st.lists(WORDS, max_size=6))
def test_the_best_overlap_is_the_largest_of_all(own: str, others: list[str]) -> None:
    tokens = Tokenizer()
    prepared = [tokens(other) for other in others]
    assert best_overlap(tokens(own), prepared) == max((overlap(tokens(own), one) for one in prepared), default=0.0)


@given(a=st.lists(st.sampled_from("abc"), max_size=80), b=st.lists(st.sampled_from("abcd"), max_size=80))
def test_the_common_subsequence_equals_the_table(a: list[str], b: list[str]) -> None:
    row = [0] * (len(b) + 1)
    for x in a:
        before = row[:]
        for at, y in enumerate(b, start=1):
            row[at] = before[at - 1] + 1 if x == y else max(before[at], row[at - 1])
    assert common_subsequence(a, b) == row[-1]


def test_an_overlap_by_hand() -> None:
    """ "the cat sat" and "the cat ran": 2 of 3 words, 1 of 2 pairs, subsequence of 2: 2/3 + 1/2 + 2/3."""
    tokens = Tokenizer()
    assert overlap(tokens("the cat sat"), tokens("The cat ran!")) == pytest.approx(2 / 3 + 1 / 2 + 2 / 3)
    assert overlap(tokens("好琴"), tokens("好琴")) == 0, "no Latin letters, no tokens"


def test_a_copy_is_known_when_it_is_equal_edited_or_contained() -> None:
    tokens = Tokenizer()
    whole = tokens(text("u", "i", "555"))
    for other in (
        whole.text.upper() + "!",
        whole.text.replace("solid", "flimsy"),
        "UPDATE after a year. " + whole.text + " Still.",
    ):
        assert is_copy(whole, tokens(other)) and is_copy(tokens(other), whole)
    assert is_copy(tokens("好琴"), tokens("好琴")) and not is_copy(tokens("好琴"), tokens("坏琴"))
    assert not is_copy(whole, tokens(text("u", "j", "555")))
    assert not is_copy(tokens("Works great, would buy"), tokens("Works great, would buy it again")), "short reviews are alike"


# Filters


def world(history: int, *, length: int = 0) -> list[ProductReview]:
    """User u with so many history reviews (of `length` characters together, if given), and one other review of product p."""
    each = [text("u", f"i{n}", "") for n in range(history)]
    if length:
        each[-1] += " " + "z" * (length - sum(map(len, each)) - 1)
    past = [review("u", f"i{n}", said) for n, said in enumerate(each)]
    return [review("u", "p", text("u", "p", "")), review("v", "p", text("v", "p", "")), *past]


def survivors(reviews: list[ProductReview], **settings: Any) -> tuple[list[str], Funnel]:
    options = PersumOptions(reviews=(Path("Toys.csv"),), out=Path("out"), **settings)
    funnel = Funnel()
    return [one.id for one in filtered(reviews, "Toys", options, funnel)], funnel


@pytest.mark.parametrize(
    ("history", "length", "why"),
    [
        (5, 0, "history of 5 reviews or fewer"),
        (6, 0, None),
        (49, 0, None),
        (50, 0, "history of 50 reviews or more"),
        (6, 26_999, None),
        (6, 27_000, "history of 27,000 characters or more"),
    ],
)
def test_a_history_has_6_to_49_reviews_and_under_27000_characters(history: int, length: int, why: str | None) -> None:
    found, funnel = survivors(world(history, length=length))
    assert found == ([] if why else ["Toys/u-p"])
    assert funnel.left["reviews"] == history + 2
    assert funnel.left["candidates"] == 2, "the others are of products that nobody else reviewed"
    assert funnel.out[why or "history of 5 reviews or fewer"] == (2 if history == 5 else 1)


@pytest.mark.parametrize(
    ("bounds", "history", "length", "why"),
    [
        ({"history_over": 3}, 4, 0, None),
        ({"history_over": 7}, 7, 0, "history of 7 reviews or fewer"),
        ({"history_under": 60}, 59, 0, None),
        ({"history_under": 9}, 9, 0, "history of 9 reviews or more"),
        ({"chars_under": 40_000}, 6, 39_999, None),
        ({"chars_under": 2_000}, 6, 2_000, "history of 2,000 characters or more"),
    ],
)
def test_other_bounds_of_a_history_hold_in_place_of_the_papers(
    bounds: dict[str, int], history: int, length: int, why: str | None
) -> None:
    found, funnel = survivors(world(history, length=length), **bounds)
    assert found == ([] if why else ["Toys/u-p"])
    assert why is None or funnel.out[why] >= 1


def test_a_product_needs_a_review_by_somebody_else() -> None:
    found, funnel = survivors(world(6), min_product_reviews=2)
    assert found == [] and funnel.out["fewer than 2 other reviews of the product"] == 8
    assert survivors([*world(6), review("w", "p", text("w", "p", ""))], min_product_reviews=2)[0] == ["Toys/u-p"]


@pytest.mark.parametrize("place", [1, 2])
def test_a_candidate_with_a_copy_of_its_review_beside_it_is_counted_out(place: int) -> None:
    reviews = world(7)
    reviews[place] = reviews[place].model_copy(update={"review": reviews[0].review + " Edited."})
    found, funnel = survivors(reviews)
    assert found == [] and funnel.out["a copy of it stands beside it"] == 1
    assert survivors(reviews, keep_repeats=True)[0] == ["Toys/u-p"], "unless they are asked for"


def test_the_overlap_must_suffice_with_both_or_with_either() -> None:
    reviews = world(7)
    reviews[1] = review("v", "p", "nothing alike")
    assert survivors(reviews)[0] == [] and survivors(reviews)[1].out["overlap below 0.45"] == 1
    assert survivors(reviews, rouge="either")[0] == ["Toys/u-p"]
    assert survivors(reviews, min_overlap=0.0)[0] == ["Toys/u-p"]


def test_what_stands_beside_a_review_is_oldest_first_and_on_its_side() -> None:
    reviews = [one.model_copy(update={"time": f"20{n:02d}-01-01"}) for n, one in enumerate(reversed(world(8)))]
    options = PersumOptions(reviews=(Path("Toys.csv"),), out=Path("out"))
    [candidate] = filtered(reviews, "Toys", options, Funnel())
    assert [one.item_id for one in candidate.history] == [f"i{n}" for n in range(7, -1, -1)]
    assert [one.reviewer_id for one in candidate.product] == ["v"]


def test_reviews_that_no_prompt_would_show_are_not_given_to_the_judge(tokenizers: dict[str, Any]) -> None:
    reviews = tuple(review(f"v{n}", "p", text(f"v{n}", "p", "")) for n in range(60))  # 24 words each
    own = review("u", "p", text("u", "p", ""))
    candidate = Candidate(id="Toys/u-p", category="Toys", own=own, product=reviews, history=())
    renderer = Renderer(tokenizers["chatml"], 800)
    whole, short = (candidate.example("product", context=context) for context in (None, 800))
    assert len(whole.reviews) == 60
    assert len(short.reviews) < 40 and short.reviews == whole.reviews[-len(short.reviews) :]
    [full], [less] = (renderer.render(QUESTIONS["coverage"], one) for one in (whole, short))
    assert full == less and less.k_effective < len(short.reviews)


@pytest.mark.parametrize("side", ["product", "history"])
def test_a_judge_of_sets_of_reviews_reads_all_of_27_000_characters(side: str, tokenizers: dict[str, Any]) -> None:
    """PerSE's 2,500 words are for its own prompts; of 779 candidate sets 322 are longer, and lost a third of their reviews."""
    reviews = tuple(review(f"v{n}", "p", text(f"v{n}", "p", "")) for n in range(205))
    assert sum(len(one.review) for one in reviews) > 26_000 and sum(len(one.review.split()) for one in reviews) > 4_000
    own = review("u", "p", text("u", "p", ""))
    example = Candidate(id="Toys/u-p", category="Toys", own=own, product=reviews, history=reviews).example(side)
    for question in ("coverage", "sentiment"):
        for renderer in (TextRenderer(), Renderer(tokenizers["chatml"], 100_000)):
            assert renderer.render(QUESTIONS[question], example)[0].k_effective == 205


def test_reviews_that_a_judges_context_leaves_out_are_counted_and_printed(
    table: Path, tmp_path: Path, tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    tokenizer = tokenizers["chatml"]
    engine = TransformersEngine(tiny_llama(tokenizer))
    read = engine.label_distributions
    sure = lambda *asked: [LabelDistribution(one.probabilities, 0.9, one.cached) for one in read(*asked)]  # type: ignore[union-attr]  # noqa: E731
    monkeypatch.setattr(engine, "label_distributions", sure)
    options = PersumOptions(reviews=(table,), out=tmp_path / "persum", limit=4, low=1.0, high=4.999)
    summary = build_persum(options, Judge(engine, Renderer(tokenizer, 600), name="judge"))
    history = summary.unseen["history"]
    assert (history.sets, history.cut) == (4, 4) and 0 < history.share <= history.largest < 1
    answers = [json.loads(line) for line in (options.work / "judgements.jsonl").read_text("utf-8").splitlines()]
    shown = [one["k_effective"] for one in answers if one["id"].endswith("/history")]
    assert history.share == pytest.approx(1 - sum(shown) / len(shown) / 7, abs=1e-4)
    said = history.told("histories")
    assert said.startswith("longer than the judge's context: 4 of 4 histories, of which ") and said.endswith("%)")
    assert "- reviews of a history that the judge's context left out: in 4 of 4, " in (options.out / "README.md").read_text(
        "utf-8"
    )


@pytest.mark.parametrize(("against", "kept"), [("best", True), ("mean", False), ("whole", False)])
def test_what_a_review_is_compared_with_is_named(against: str, kept: bool) -> None:
    reviews = [*world(7), *(review(f"w{n}", "p", "nothing alike " + " ".join(VOCABULARY[n : n + 12])) for n in range(6))]
    found, _ = survivors(reviews, rouge_against=against, min_overlap=0.9)
    assert ("Toys/u-p" in found) == kept
    with pytest.raises(BadInput, match="rouge_against is 'most', expected best, mean or whole"):
        survivors(reviews, rouge_against="most")


@pytest.mark.parametrize(
    ("beside", "kept_by"),
    [
        ([" ".join(VOCABULARY[n : n + 2]) for n in range(0, 12, 2)], {"whole"}),  # a little of it in each
        ([" ".join(VOCABULARY[:12])] * 7, {"best", "mean"}),  # all of it in each, and together seven times as long
        ([" ".join(VOCABULARY[:12]), *["nothing of this one is alike"] * 6], {"best"}),
    ],
)
def test_the_best_of_a_set_the_mean_over_it_and_the_whole_of_it_are_three_measures(
    beside: list[str], kept_by: set[str]
) -> None:
    others = [review(f"v{n}", "p", said) for n, said in enumerate(beside)]
    past = [review("u", f"i{n}", said) for n, said in enumerate([*beside, "nothing alike"])]
    reviews = [review("u", "p", " ".join(VOCABULARY[:12])), *others, *past]
    settings = {"min_overlap": 1.5, "keep_repeats": True}
    assert {one for one in ("best", "mean", "whole") if survivors(reviews, rouge_against=one, **settings)[0]} == kept_by


def test_a_larger_limit_keeps_what_a_smaller_one_asked(table: Path) -> None:
    reviews = [review(f"u{u}", f"i{i}", text(f"u{u}", f"i{i}", "")) for u in range(4) for i in range(8)]
    kept = []
    for limit in (5, 12):
        options = PersumOptions(reviews=(table,), out=Path("out"), limit=limit)
        found = list(filtered(reviews, "Toys", options, Funnel()))
        funnel = Funnel()
        kept.append({one.id for one in limited(found, options, funnel)})
        assert funnel.left["asked"] == limit and funnel.out["beyond the limit"] == len(found) - limit
    assert kept[0] < kept[1]


# Groups and counts


@pytest.mark.parametrize(
    ("history", "coverage", "sentiment", "group"),
    [
        (4.1, 4.1, 4.1, "High"),
        (4.0, 4.0, 3.01, "Low"),
        (4.1, 4.0, 3.01, "HHPL"),
        (5, 5, 4.0, None),  # the product's scores differ
        (3.5, 5, 5, None),  # only the product is high
        (5, 3.0, 3.5, None),  # lower by more than one
        (3.0, 3.5, 3.5, None),
        (1, 1, 1, None),
    ],
)
def test_groups(history: float, coverage: float, sentiment: float, group: str | None) -> None:
    scores = Scores(history_coverage=history, product_coverage=coverage, product_sentiment=sentiment)
    assert group_of(scores) == group


def test_the_published_counts_sum_to_666() -> None:
    assert sum((one.high or 0) + (one.low or 0) + (one.hhpl or 0) for one in PUBLISHED.values()) == 666


def test_categories_have_the_published_counts_or_100_high_and_all_else() -> None:
    named = PersumOptions(
        reviews=(Path("reviews_Electronics_5.json.gz"), Path("Toys.csv")),
        out=Path("out"),
        counts={"Toys": Counts.parse("7,all,0")},
    )
    assert named.counts_of("Electronics") == Counts(100, 24, 52)
    assert named.counts_of("Toys") == Counts(7, None, 0)
    assert named.counts_of("Musical Instruments") == Counts(100, None, None)
    with pytest.raises(BadInput, match=r"invalid counts '1,2'; write HIGH,LOW,HHPL"):
        Counts.parse("1,2")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"reviews": ()}, "reviews is empty"),
        ({"reviews": (Path("a/Toys.csv"), Path("b/Toys.csv"))}, "two files of Toys"),
        ({"low": 4.0}, "low is 4 and high 4, expected 1 <= low < high < 5"),
        ({"history_over": 49}, "history_over is 49 and history_under 50"),
        ({"rouge": "all"}, "rouge is 'all', expected both or either"),
        ({"min_overlap": 3.5}, "min_overlap is 3.5, expected 0 to 3"),
        ({"limit": 0, "min_product_reviews": 0}, "min_product_reviews is 0, expected 1 or more; limit is 0"),
        ({"counts": {"Dolls": Counts()}}, "counts names Dolls, expected of Toys"),
        ({"keep_names": True, "salt": "s"}, "exclude each other"),
        ({"salt": ""}, "the salt is empty, which keeps no name secret"),
        ({"on_error": "maybe"}, "on_error is 'maybe'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        PersumOptions(**({"reviews": (Path("Toys.csv"),), "out": Path("out")} | settings))


# The whole


def test_a_build_counts_every_step_and_draws_what_was_asked_for(table: Path, tmp_path: Path) -> None:
    """96 candidates, 16 of each code. A history of 7 by the same hand, 6 to 9 others: all pass the filters."""
    out = tmp_path / "persum"
    options = PersumOptions(reviews=(table,), out=out, counts={"Toy Pianos": Counts(5, None, 3)})
    seen: list[tuple[int, int]] = []
    summary = build_persum(options, judging(Scoring()), on_progress=lambda done, of: seen.append((done, of)))
    assert summary.funnel["Toy Pianos"] == {
        "reviews": 96, "candidates": 96, "history": 96, "no copy": 96, "overlap": 96, "asked": 96, "answered": 96, "grouped": 48,
    }  # fmt: skip
    assert summary.left_out["Toy Pianos"] == {"neither High, Low nor HHPL": 48}
    assert summary.groups["Toy Pianos"] == {"High": 16, "Low": 16, "HHPL": 16}
    assert summary.samples["Toy Pianos"] == {"High": 5, "Low": 16, "HHPL": 3}
    assert seen[0] == (0, 288) and seen[-1] == (288, 288)
    samples = load_persum(out)
    assert Counter(one.group for one in samples) == {"High": 5, "Low": 16, "HHPL": 3}
    for sample in samples:
        code = re.search(r"scored (\d+)", sample.own.review)[1]  # type: ignore[index]
        assert code == {"High": "555", "Low": "444", "HHPL": "544"}[sample.group]
        assert len(sample.history) == 7
        assert all(
            one.item_id == sample.own.item_id and one.reviewer_id != sample.own.reviewer_id for one in sample.product_reviews
        )
    assert [len(each.rows) for each in persum_tables(summary)] == [8, 1]


def test_the_same_command_gives_the_same_bytes_without_names_or_paths(table: Path, tmp_path: Path) -> None:
    folders = [tmp_path / side / "persum" for side in ("one", "two")]
    for out in folders:
        build_persum(PersumOptions(reviews=(table,), out=out), judging(Scoring()))
    one, two = map(contents, folders)
    assert one == two and list(one) == ["README.md", "manifest.json", "samples.jsonl"]
    for content in one.values():
        assert b"USER" not in content and str(tmp_path).encode() not in content
    manifest = json.loads(one["manifest.json"])
    assert manifest["judge"]["model"] == "scripted" and manifest["judgements"]["product sentiment"] == {"ok": 96}
    assert manifest["sources"]["Toy Pianos"]["name"] == "Toy_Pianos.csv" and len(manifest["prompts_sha256"]) == 3
    assert not [path for path in folders[0].parent.iterdir() if path.name not in ("persum", "persum.work")]


def test_without_a_judge_the_first_filters_are_counted_and_nothing_is_written(table: Path, tmp_path: Path) -> None:
    summary = build_persum(PersumOptions(reviews=(table,), out=tmp_path / "persum", limit=10), None)
    assert summary.funnel["Toy Pianos"] == {
        "reviews": 96, "candidates": 96, "history": 96, "no copy": 96, "overlap": 96, "asked": 10
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == [] and summary.out is None and len(persum_tables(summary)) == 1


def test_a_build_that_was_ended_goes_on_where_it_was_and_equals_one_that_was_not(table: Path, tmp_path: Path) -> None:
    whole, ended = (PersumOptions(reviews=(table,), out=tmp_path / name / "persum") for name in ("whole", "ended"))
    build_persum(whole, judging(Scoring()))
    with pytest.raises(KeyboardInterrupt):
        build_persum(ended, judging(Scoring(stop_after=100)))
    assert not ended.out.exists()
    with (ended.work / "judgements.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "torn')
    engine = Scoring()
    build_persum(ended, judging(engine))
    assert engine.asked == 288 - 100, "what had been answered was kept, one by one"
    assert contents(whole.out) == contents(ended.out)


def test_other_thresholds_ask_nothing_anew_and_another_seed_is_another_run(table: Path, tmp_path: Path) -> None:
    def options(**settings: Any) -> PersumOptions:
        return PersumOptions(reviews=(table,), out=tmp_path / "persum", overwrite=True, **settings)

    build_persum(options(), judging(Scoring()))
    engine = Scoring()
    summary = build_persum(options(high=3.0, low=1.0), judging(engine))
    assert engine.asked == 0
    # Above 3 is high now: 555, 444, 544 and 554; 222 is low; of 355 the history is low and the product high, so it is none.
    assert summary.groups["Toy Pianos"] == {"High": 64, "Low": 16, "HHPL": 0}
    with pytest.raises(RunMismatch, match=r"persum\.work holds a run with other settings"):
        build_persum(options(limit=10), judging(Scoring()))
    with pytest.raises(RunMismatch, match=r"settings\.seed was 0, is 1"):
        build_persum(options(seed=1), judging(Scoring()))
    with pytest.raises(RunMismatch, match=r"prompts_sha256\.\S+ \S+ was"):
        build_persum(options(), Judge(Scoring(), Reworded(max_words=5000), name="scripted"))  # type: ignore[arg-type]


def test_judgements_that_failed_are_counted_by_status(table: Path, tmp_path: Path) -> None:
    summary = build_persum(PersumOptions(reviews=(table,), out=tmp_path / "persum"), judging(Scoring(silent_at="444")))
    assert summary.funnel["Toy Pianos"]["answered"] == 80
    assert summary.left_out["Toy Pianos"]["judge: unparsed at history coverage"] == 16
    assert summary.groups["Toy Pianos"]["Low"] == 0
    assert json.loads((tmp_path / "persum" / "manifest.json").read_text())["judgements"]["history coverage"] == {
        "ok": 80,
        "unparsed": 16,
    }


def test_where_nothing_is_grouped_nothing_is_written_and_the_scores_are_told(table: Path, tmp_path: Path) -> None:
    options = PersumOptions(reviews=(table,), out=tmp_path / "persum", limit=20)
    with pytest.raises(
        BadInput, match=r"no sample: of 20 candidates .* \(history_coverage from 1.00 to 1.00; product_coverage"
    ):
        build_persum(options, judging(Scoring(always="1")))
    assert not options.out.exists() and options.work.exists()
    options = PersumOptions(reviews=(table,), out=tmp_path / "none", min_overlap=2.9)
    with pytest.raises(BadInput, match="the filters before the judge left no candidate"):
        build_persum(options, judging(Scoring()))
    assert not options.work.exists()


def test_a_folder_with_files_is_only_replaced_if_it_is_one_of_ours_and_on_request(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(table,), out=out), judging(Scoring()))
    with pytest.raises(BadInput, match="already holds a PerSum folder"):
        build_persum(PersumOptions(reviews=(table,), out=out), judging(Scoring()))
    build_persum(PersumOptions(reviews=(table,), out=out, overwrite=True), judging(Scoring()))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(BadInput, match="is no PerSum folder, so it is not overwritten"):
        build_persum(PersumOptions(reviews=(table,), out=tmp_path / "mine", overwrite=True), judging(Scoring()))


@pytest.mark.parametrize("side", ["product_reviews", "history"])
def test_a_planted_copy_is_refused_with_its_line(side: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(table,), out=out, counts={"Toy Pianos": Counts(3, 0, 0)}), judging(Scoring()))
    path = out / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[1][side][2]["review"] = lines[1]["own"]["review"].upper()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(BadInput, match=rf"samples.jsonl, line 2: sample '.*': leak: {side}\[2\] is a copy"):
        load_persum(out)


def test_a_users_review_among_those_of_others_is_refused_with_its_line(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(table,), out=out, counts={"Toy Pianos": Counts(1, 0, 0)}), judging(Scoring()))
    path = out / "samples.jsonl"
    sample = json.loads(path.read_text("utf-8"))
    sample["product_reviews"][0]["reviewer_id"] = sample["own"]["reviewer_id"]
    path.write_text(json.dumps(sample) + "\n", "utf-8")
    with pytest.raises(
        BadInput, match=r"line 1: .* product_reviews\[0\] is by 'r\w+' of .* expected another reviewer of the same"
    ):
        load_persum(out)
    with pytest.raises(BadInput, match="found no PerSum folder"):
        load_persum(tmp_path)


@pytest.mark.slow
def test_the_hubs_library_reads_the_folder(table: Path, tmp_path: Path) -> None:
    """In a process of its own, since the library reads its settings when it is imported."""
    pytest.importorskip("datasets")
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(table,), out=out), judging(Scoring()))
    program = (
        "import sys, datasets; data = datasets.load_dataset(sys.argv[1]); "
        "print(list(data), len(data['test']), data['test'][0]['group'], len(data['test'][0]['history']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['test'] 48 High 7"


def test_an_exact_judge_gives_expected_scores(
    table: Path, tmp_path: Path, tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random model hardly ever wants to answer with a label; it is made sure that it does."""
    tokenizer = tokenizers["chatml"]
    engine = TransformersEngine(tiny_llama(tokenizer))
    read = engine.label_distributions
    sure = lambda *asked: [LabelDistribution(one.probabilities, 0.9, one.cached) for one in read(*asked)]  # type: ignore[union-attr]  # noqa: E731
    monkeypatch.setattr(engine, "label_distributions", sure)
    judge = Judge(engine, Renderer(tokenizer, 2048), name="smollm2-135m")
    options = PersumOptions(reviews=(table,), out=tmp_path / "persum", limit=4, low=1.0, high=4.999)
    summary = build_persum(options, judge)
    assert summary.samples["Toy Pianos"]["Low"] == 4
    assert "never trained to judge" in summary.notes[0]
    assert "never trained to judge" in (options.out / "README.md").read_text("utf-8")
    answers = [json.loads(line) for line in (options.work / "judgements.jsonl").read_text("utf-8").splitlines()]
    expected = {(one["id"], one["question"]): one["expected"] for one in answers}
    for sample in load_persum(options.out):
        assert sample.scores.product_sentiment == pytest.approx(expected[f"{sample.id}/product", "sentiment"], abs=5e-5)
        assert 1 < sample.scores.history_coverage < 5


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="Amazon's reviews are not at ../shared/data")
def test_of_real_reviews_each_filter_leaves_some_and_some_are_copies(tmp_path: Path) -> None:
    part = tmp_path / "Musical_Instruments.csv"
    with REAL.open(encoding="utf-8", newline="") as whole, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(itertools.islice(csv.reader(whole), 2001))
    summary = build_persum(PersumOptions(reviews=(part,), out=tmp_path / "persum"), None)
    assert list(summary.funnel["Musical Instruments"].values()) == [2000, 2000, 107, 107, 80, 80]


def test_a_folder_that_keeps_repeats_is_read_with_the_copies_in_it(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    options = PersumOptions(reviews=(table,), out=out, counts={"Toy Pianos": Counts(3, 0, 0)}, keep_repeats=True)
    build_persum(options, judging(Scoring()))
    path = out / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[1]["history"][2]["review"] = lines[1]["own"]["review"].upper()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert len(load_persum(out)) == 3


# The command


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--history-over", 7), "history of 7 reviews or fewer"),
        (("--history-under", 7), "history of 7 reviews or more"),
        (("--chars-under", 500), "history of 500 characters or more"),
        (("--rouge-against", "whole", "--min-overlap", 1), "overlap below 1"),
    ],
)
def test_the_command_filters_by_the_bounds_it_is_given(
    given: tuple[object, ...], why: str, table: Path, tmp_path: Path
) -> None:
    done = perse("data", "persum", "--reviews", table, "--out", tmp_path / "persum", *given, "--json")
    assert json.loads(done.stdout)["left_out"] == {"Toy Pianos": {why: 96}}, done.stderr
    assert f"left out, Toy Pianos: 96 {why}" in done.stderr


@pytest.mark.slow
def test_the_command_says_what_the_judge_did_not_read_and_the_folder_with_what_it_was_built(
    table: Path, tmp_path: Path, answering_model: Path
) -> None:
    given = {
        "history_over": 4, "history_under": 40, "chars_under": 20_000, "rouge_against": "whole", "min_overlap": 0.2,
        "high": 4.999, "low": 1.0, "limit": 4,
    }  # fmt: skip
    out = tmp_path / "persum"
    done = perse(
        "data", "persum", "--reviews", table, "--out", out, "--judge", answering_model, "--dtype", "float32", "--context", 1500,
        *(part for name, value in given.items() for part in ("--" + name.replace("_", "-"), value)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "longer than the judge's context: 4 of 4 histories, of which " in said
    assert "longer than the judge's context: 4 of 4 products' reviews, of which " in said
    options = json.loads((out / "manifest.json").read_text("utf-8"))["options"]
    assert {name: options[name] for name in given} == given
    card = (out / "README.md").read_text("utf-8").splitlines()
    assert [
        f"- {name}: {json.dumps(value)}" for name, value in given.items() if f"- {name}: {json.dumps(value)}" not in card
    ] == []
