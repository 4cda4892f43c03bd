"""Which titles count, which pairs are drawn, the groups' numbers by hand, and the whole study with a scripted judge."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from reading_builders import answered, failed, scripted

from perse.errors import BadInput
from perse.judging.judge import JudgeSettings
from perse.studies.contamination.known_works import (
    Paired,
    apart,
    bias,
    correlations,
    leaning,
    mean,
    over_items,
    paired,
    share,
    singles,
)
from perse.studies.contamination.plots import better, draw_pairs, pair_id, read_means, read_plots
from perse.studies.contamination.recognition import plain_title, recognized
from perse.studies.contamination.study import Contamination, contamination
from perse.studies.frame.running import Asking


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("jaws", "Jaws"),
        ("The Godfather", "Godfather, The"),
        ('"Schindlers List"', "Schindler's List (1993)"),
        ("Amelie", "Am\u00e9lie"),
        ("Fast and Furious", "Fast & Furious"),
        ("Blade Runner: The Final Cut", "Blade Runner"),
        ("Alien (1979), Director's Cut", "Alien"),
        ("Casablanca, 1942", "Casablanca"),
        ("2001 a space odyssey", "2001: A Space Odyssey"),
        ("The Pink Phanter", "The Pink Panther"),
        ("1917", "1917"),
        ("**The Matrix**", "Matrix"),
    ],
)
def test_a_title_is_recognized_however_it_is_written(written: str, title: str) -> None:
    assert recognized(written, title)


@pytest.mark.parametrize(
    ("written", "title"),
    [
        ("N/A", "Jaws"),
        ("N/A", "N/A"),
        ("", ""),
        ("unknown", "Unknown"),
        ("Rocky II", "Rocky III"),
        ("Cars", "Cars 2"),
        ("Blade Runner", "Blade Runner 2049"),
        ("Alien", "Aliens"),
        ("Predators", "Predator"),
        ("Star Wars", "Star Wars: The Empire Strikes Back"),
        ("Heat", "Meet Me in St. Louis"),
    ],
)
def test_another_work_or_none_is_not(written: str, title: str) -> None:
    assert not recognized(written, title)


def test_an_article_alone_is_a_title() -> None:
    assert plain_title("The") == "the"


def test_pairs_are_apart_by_the_gap_and_come_once() -> None:
    truth = {f"i{n:02d}": 1 + n % 10 for n in range(40)}
    found = draw_pairs(truth, pairs=15, gap=1.0, seed=0)
    assert len(found.pairs) == 15 and all(abs(truth[a] - truth[b]) >= 1 for a, b in found.pairs)
    assert len({frozenset(pair) for pair in found.pairs}) == 15
    assert found == draw_pairs(dict(reversed(truth.items())), pairs=15, gap=1.0, seed=0)
    assert found != draw_pairs(truth, pairs=15, gap=1.0, seed=1)
    many = draw_pairs(truth, pairs=60, gap=0.0, seed=0)
    assert many.reused and len(many.pairs) == 60 and {better(truth, pair) for pair in many.pairs} == {"A", "B"}


def test_equal_means_make_no_pair_and_are_counted() -> None:
    found = draw_pairs({"a": 5.0, "b": 5.0, "c": 5.0}, pairs=3, gap=0.0, seed=0)
    assert found.pairs == () and found.too_near == 3


TITLES = {"a": "Jaws", "b": "Alien", "c": "Heat", "d": "Up"}


def test_known_and_unknown_single_plots_are_told_by_the_title() -> None:
    answers = {
        "a": answered("a", "8", text="jaws"),
        "b": answered("b", "7", text="N/A"),
        "c": answered("c", "6", text="Casino"),
        "d": failed("d"),
    }
    one = singles(answers, titles=TITLES, truth={"a": 8.5, "b": 7.0, "c": 5.0, "d": 9.0})
    assert one.known.tolist() == [True, False, False, False]
    assert one.predicted[:3].tolist() == [8, 7, 6] and one.answered.tolist() == [True, True, True, False]
    known = share(one.known, one.answered)
    assert known.value == pytest.approx(1 / 3) and known.items == 3
    assert known.interval.low is not None and 0 < known.interval.low < 1 / 3
    bootstrap = over_items(4, resamples=100, seed=0)
    assert correlations(bootstrap, one.truth, one.only(False))[2].value == pytest.approx(1.0)
    assert apart(bootstrap, one).interval.reason == "undefined (one of the two values is)"


def test_a_share_of_none_has_an_interval_that_is_not_empty() -> None:
    # Of 0 of 20 the upper end leaves 2.5%: 1 - 0.025 ** (1 / 20).
    nothing = share(np.zeros(20, dtype=bool), np.ones(20, dtype=bool))
    assert (nothing.value, nothing.interval.low) == (0.0, 0.0)
    assert nothing.interval.high == pytest.approx(1 - 0.025 ** (1 / 20), abs=1e-6)
    assert share(np.zeros(0, dtype=bool), np.zeros(0, dtype=bool)).interval.reason == "undefined (no items)"


def _with_one_known(known_is_better: list[bool], chosen: list[float]) -> Paired:
    """Of each pair the first is known, and no work is in two."""
    nothing, share_chosen = np.full(len(chosen), np.nan), np.array(chosen)
    of_known = share_chosen - np.array(known_is_better, dtype=float)
    works = np.arange(2 * len(chosen)).reshape(-1, 2)
    return Paired(np.ones(len(chosen)), nothing, nothing, nothing, of_known, share_chosen, np.zeros(len(chosen)), works)


def test_a_coin_and_a_judge_that_is_right_lean_to_no_work_for_being_known_however_often_it_is_the_better() -> None:
    drawn = np.random.default_rng(4)
    claimed = {"coin": 0, "right in nine of ten": 0, "takes it three times in four": 0}
    for _ in range(200):
        better = (drawn.random(60) < 0.75).tolist()
        for name, chance in (
            ("coin", [0.5] * 60),
            ("right in nine of ten", [0.9 if one else 0.1 for one in better]),
            ("takes it three times in four", [0.75] * 60),
        ):
            found = leaning(_with_one_known(better, (drawn.random(60) < chance).tolist()))
            claimed[name] += found.above_zero or found.below_zero
    # 5 of 100 are meant; 22 of 200 is above what chance makes of that in 1 of 10,000.
    assert claimed["coin"] <= 22 and claimed["right in nine of ten"] <= 22
    assert claimed["takes it three times in four"] > 100


@pytest.mark.parametrize(("known", "least", "most"), [(20, 0, 22), (5, 0, 0)])
def test_a_judge_that_likes_some_texts_leans_to_no_work_for_being_known_though_pairs_share_works(
    known: int, least: int, most: int
) -> None:
    """40 works in 150 pairs: as if each pair told something of its own, up to 28 of 100 such judges leaned; of five known works it cannot be told."""
    drawn, claimed = np.random.default_rng(5), 0
    truth = {f"i{n:02d}": 1 + n / 10 for n in range(40)}
    pairs = draw_pairs(truth, pairs=150, gap=0.0, seed=0).pairs
    titles = {item: f"Great {chr(97 + n % 26) * 5} {chr(97 + n // 26) * 5}" for n, item in enumerate(truth)}
    right = {pair_id(*pair): better(truth, pair) for pair in pairs}
    for _ in range(200):
        named = set(drawn.choice(sorted(truth), known, replace=False))
        likes = dict(zip(truth, drawn.normal(size=40), strict=True))
        given, swapped = {}, {}
        for a, b in pairs:
            shown = [titles[one] if one in named else "N/A" for one in (a, b)]
            first, name = likes[a] > likes[b], pair_id(a, b)
            given[name] = answered(name, "A" if first else "B", text=f"A: {shown[0]}; B: {shown[1]}")
            swapped[name] = answered(name, "B" if first else "A", text=f"A: {shown[1]}; B: {shown[0]}")
        found = leaning(paired(pairs, given=given, swapped=swapped, titles=titles, better=right))
        claimed += found.above_zero or found.below_zero
        assert known == 20 or found.interval.reason in ("undefined (few known works)", "undefined (rests on few items)")
    # 5 of 100 are meant; 22 of 200 is above what chance makes of that in 1 of 10,000.
    assert least <= claimed <= most


def test_leaning_to_the_known_work_is_half_the_sum_of_two_shares_less_one_by_hand() -> None:
    # Chosen in 3 of the 4 pairs in which it is the better, and in 1 of the 2 in which it is not: (3/4 + 1/2 - 1) / 2.
    found = leaning(_with_one_known([True] * 4 + [False] * 2, [1, 1, 1, 0, 1, 0]))
    assert found.value == pytest.approx(1 / 8) and found.interval.reason == "undefined (few items)"
    always = leaning(_with_one_known([True] * 4, [1, 1, 1, 0]))
    assert always.value is None and always.interval.reason == "undefined (the known one is always the better, or never)"


def test_accuracy_consistency_and_biases_of_pairs_are_those_computed_by_hand() -> None:
    pairs = [("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")]
    better_of = {"a|b": "A", "a|c": "B", "b|c": "A", "c|d": "B"}
    given = {
        "a|b": answered("a|b", "A", text="A: Jaws; B: Alien"),  # both known; right
        "a|c": answered("a|c", "A", text="A: Jaws; B: N/A"),  # one known, the worse, chosen
        "b|c": answered("b|c", "A", text="A: N/A; B: N/A"),  # neither known; right
        "c|d": failed("c|d"),
    }
    swapped = {
        "a|b": answered("a|b", "A", text="A: N/A; B: N/A"),  # b is first now and chosen: wrong
        "a|c": answered("a|c", "B", text="A: N/A; B: N/A"),  # a again: consistent, wrong
        "b|c": failed("b|c"),
        "c|d": failed("c|d"),
    }
    one = paired(pairs, given=given, swapped=swapped, titles=TITLES, better=better_of)  # type: ignore[arg-type]
    assert one.known[:3].tolist() == [2, 1, 0] and one.answered.tolist() == [True, True, True, False]
    assert one.right.tolist() == [0.5, 0.0, 0.5, 0.0]
    assert one.consistent.tolist() == [0, 1, 0, 0]
    # first shown: chosen in both orders and better in one of two: +1/2; chosen in one of two: 0; chosen and better: 0
    assert one.bias_first[:3].tolist() == [0.5, 0.0, 0.0] and np.isnan(one.bias_first[3])
    # the known plot is chosen in both orders and is the worse one
    assert one.bias_known[1] == 1.0 and np.isnan(one.bias_known[[0, 2, 3]]).all()
    assert one.chose_known[1] == 1.0 and one.known_is_better[1] == 0.0
    assert one.which_known[1] == 0.0 and np.isnan(one.which_known[[0, 2, 3]]).all()
    assert one.works.tolist() == [[0, 1], [0, 2], [1, 2], [2, 3]]
    everything = np.ones(4, dtype=bool)
    estimate = mean(one, one.bias_first, everything)
    assert estimate.value == pytest.approx(1 / 6) and estimate.items == 3
    assert estimate.interval.reason == "undefined (few items)"


def test_pairs_that_are_never_chosen_alike_are_no_proof_that_none_ever_is() -> None:
    pairs, everything = _with_one_known([True] * 24, [1.0] * 24), np.ones(24, dtype=bool)
    consistent = mean(pairs, np.zeros(24), everything).interval
    assert consistent.low == 0 and consistent.high is not None and 0.1 < consistent.high < 0.2
    first = bias(pairs, np.full(24, 0.5), everything).interval
    assert first.high == 0.5 and first.low is not None and 0.3 < first.low < 0.45


def test_the_swapped_order_names_the_titles_the_other_way_round() -> None:
    swapped = {"a|b": answered("a|b", "B", text="A: Alien; B: Jaws")}
    one = paired([("a", "b")], given={}, swapped=swapped, titles=TITLES, better={"a|b": "A"})
    assert one.known.tolist() == [2] and one.right.tolist() == [0.5] and one.consistent.tolist() == [0]


def _write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """30 works: raw plots carry a number by which the judge knows two thirds of them, rewritten ones do not."""
    works = range(30)
    titles = [f"Work{chr(97 + n // 26)}{chr(97 + n % 26)}ish" for n in works]
    return {
        "raw": _write(
            tmp_path / "raw.jsonl", [{"imdb": f"w{n}", "name": titles[n], "plot": f"Plot number {n}."} for n in works]
        ),
        "anonymized": _write(tmp_path / "anon.jsonl", [{"item_id": f"w{n}", "text": f"Story number {n}."} for n in works]),
        "reviews": _write(
            tmp_path / "reviews.jsonl",
            [{"item_id": f"w{n}", "score": 1 + (n + m) % 5, "reviewer_id": m} for n in works for m in range(2)],
        ),
    }


COLUMNS = {"item_id": "imdb", "title": "name"}


def test_versions_titles_and_means_are_read_and_what_is_missing_is_counted(files: dict[str, Path]) -> None:
    lines = files["anonymized"].read_text("utf-8").splitlines(keepends=True)
    files["anonymized"].write_text("".join(lines[1:]), "utf-8")
    versions = {"raw": files["raw"], "anonymized": files["anonymized"]}
    plots = read_plots(versions, files["reviews"], columns=COLUMNS, scale=(1, 5), items=20, min_reviews=2)
    assert plots.left_out == {"not in every version": 1, "not drawn": 9} and len(plots.items) == 20
    assert all(set(texts) == set(plots.items) for texts in plots.texts.values())
    # w2 has 3 and 4 of 5: 1 + 9 * 2 / 4 = 5.5 and 1 + 9 * 3 / 4 = 7.75, mean 6.625
    assert read_means(files["reviews"], columns={}, scale=(1, 5))["w2"] == (pytest.approx(6.625), 2)


def test_a_column_of_plots_is_mapped_as_the_message_for_a_missing_one_says(files: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match=r"give --map items\.item_id=COLUMN"):
        read_plots({"raw": files["raw"]}, files["reviews"], columns={"title": "name", "item_id": "item_id"}, scale=(1, 5))
    said = {"items.item_id": "imdb", "title": "name"}
    plots = read_plots({"raw": files["raw"]}, files["reviews"], columns=said, scale=(1, 5))
    assert plots.items == read_plots({"raw": files["raw"]}, files["reviews"], columns=COLUMNS, scale=(1, 5)).items
    reviews = files["reviews"].read_text("utf-8").replace('"item_id"', '"film"')
    files["reviews"].write_text(reviews.replace("item_id", "film"), "utf-8")
    both = read_plots({"raw": files["raw"]}, files["reviews"], columns={"item_id": "film", **said}, scale=(1, 5))
    assert both.items == plots.items, "of reviews and plots, each its own column"


def test_a_text_that_holds_its_title_is_counted(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"item_id": "a", "title": "The Shark", "text": "Everybody fears the shark!"},
        {"item_id": "b", "title": "Heat", "text": "He heats the theatre."},
    ]
    reviews = _write(tmp_path / "r.jsonl", [{"item_id": one, "score": 5} for one in "ab"])
    plots = read_plots({"raw": _write(tmp_path / "p.jsonl", rows)}, reviews, columns={})
    assert plots.holding_title("raw") == 1


@pytest.mark.parametrize(
    ("columns", "min_reviews", "message"),
    [
        ({"item_id": "imdb"}, 1, "no title in .* --map title=COLUMN"),
        ({**COLUMNS, "text": "nothing"}, 1, "has a column 'nothing'"),
        ({"genre": "name"}, 1, "no field 'genre'"),
        (COLUMNS, 3, "none of these has 3 or more reviews"),
    ],
)
def test_files_that_do_not_serve_are_refused(
    files: dict[str, Path], columns: dict[str, str], min_reviews: int, message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        read_plots({"raw": files["raw"]}, files["reviews"], columns=columns, scale=(1, 5), min_reviews=min_reviews)


def _remembering(message: str) -> str:
    """Names the works of raw plots whose number is no multiple of 3, and gives their number as the score; else 5."""
    numbers = [int(word.rstrip(".")) for word in message.split() if word.rstrip(".").isdigit() and word.endswith(".")]
    raw = "Plot number" in message
    titles = [f"Work{chr(97 + n // 26)}{chr(97 + n % 26)}ish" if raw and n % 3 else "N/A" for n in numbers]
    if "[Plot B]" in message:
        return f"[Titles] A: {titles[0]}; B: {titles[1]}\nPlot A"
    return f"[Title] {titles[0]}\n[Score] {1 + numbers[0] % 5 if titles[0] != 'N/A' else 5}"


def test_a_judge_that_remembers_is_found_out(files: dict[str, Path], tmp_path: Path) -> None:
    what = Contamination(
        plots={"raw": files["raw"], "anonymized": files["anonymized"]},
        reviews=files["reviews"],
        columns=COLUMNS,
        scale=(1, 5),
        min_reviews=2,
        pairs=12,
    )
    asking = Asking(examples=files["raw"], judge="scripted", settings=JudgeSettings(temperature=0), resamples=200)
    judge = scripted(_remembering)
    result = contamination(what, asking, tmp_path / "study", load=lambda _: judge)
    value = {(point.series, point.x, point.metric): point.estimate.value for point in result.points}
    assert value["share of works named", "raw", "known"] == pytest.approx(2 / 3)
    assert value["share of works named", "anonymized", "known"] == 0.0
    assert value["unknown", "raw", "kendall"] is None  # always 5
    assert value["all", "raw", "bias_first"] == pytest.approx(0.5)  # always the first
    assert value["all", "raw", "accuracy"] == pytest.approx(0.5) and value["all", "raw", "consistency"] == 0.0
    # the known plot is chosen in one of two orders: the bias is 1/2 minus the share of pairs in which it is better
    assert abs(value["one known", "raw", "bias_known"] or 0.0) < 0.5
    assert value["one known", "raw", "leaning_known"] in (None, 0.0)
    arms = sorted(folder.name for folder in (tmp_path / "study" / "arms").iterdir())
    assert arms == [f"{version}-{arm}" for version in ("anonymized", "raw") for arm in ("pair", "pair-swapped", "title")]
    known = (tmp_path / "study" / "study.json").read_bytes()
    again = contamination(what, asking, tmp_path / "study", load=lambda _: scripted(lambda message: "never asked"))
    assert again == result and (tmp_path / "study" / "study.json").read_bytes() == known


def test_a_study_that_was_killed_goes_on_and_ends_the_same(files: dict[str, Path], tmp_path: Path) -> None:
    what = Contamination(
        plots={"raw": files["raw"]}, reviews=files["reviews"], columns=COLUMNS, scale=(1, 5), min_reviews=2, pairs=6
    )
    asking = Asking(examples=files["raw"], judge="scripted", settings=JudgeSettings(temperature=0), resamples=100)
    contamination(what, asking, tmp_path / "whole", load=lambda _: scripted(_remembering))
    contamination(what, asking, tmp_path / "torn", load=lambda _: scripted(_remembering))
    torn = tmp_path / "torn" / "arms" / "raw-pair" / "judgements.jsonl"
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])
    for later in ("study.json", "table.md", "arms.jsonl", "arms/raw-pair-swapped/judgements.jsonl"):
        (tmp_path / "torn" / later).unlink()
    contamination(what, asking, tmp_path / "torn", load=lambda _: scripted(_remembering))
    ends = [(tmp_path / folder / "study.json").read_bytes() for folder in ("whole", "torn")]
    assert ends[0] == ends[1]


def test_scores_for_readers_stand_on_the_same_queries_in_every_version(
    files: dict[str, Path], readers: Path, couples: Path, tmp_path: Path
) -> None:
    what = Contamination(
        plots={"raw": files["raw"]},
        reviews=files["reviews"],
        columns=COLUMNS,
        scale=(1, 5),
        min_reviews=2,
        pairs=0,
        personalized={"raw": readers, "anonymized": readers},
        personalized_question="pointwise_score",
        readers=10,
    )
    asking = Asking(examples=files["raw"], judge="scripted", settings=JudgeSettings(temperature=0), resamples=100)

    def longest(message: str) -> str:
        return f"[Score] {1 + len(message) % 10}" if "reader" in message else _remembering(message)

    result = contamination(what, asking, tmp_path / "study", load=lambda _: scripted(longest))
    values = {point.x: point.estimate for point in result.points if point.series == "for a reader (k = 1)"}
    assert set(values) == {"raw", "anonymized"} and values["raw"] == values["anonymized"] and values["raw"].items == 10
    assert "(minus raw: +0.000 [" in result.answer and "not shown)" in result.answer, result.answer
    lines = (tmp_path / "study" / "arms" / "raw-reader" / "examples.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert len({row["reviewer_id"] for row in rows}) == 10 and all(len(row["profile"]) == 1 for row in rows)
    assert not any("pair" in point.series for point in result.points)
    with pytest.raises(BadInput, match="no query of the same reader in common"):
        contamination(replace(what, personalized={"raw": readers, "pairs": couples}), asking, tmp_path / "other")


def test_both_orders_show_the_same_pairs(files: dict[str, Path], tmp_path: Path) -> None:
    what = Contamination(
        plots={"raw": files["raw"]}, reviews=files["reviews"], columns=COLUMNS, scale=(1, 5), min_reviews=1, pairs=3
    )
    asking = Asking(examples=files["raw"], judge="scripted", settings=JudgeSettings(temperature=0), resamples=100)
    contamination(what, asking, tmp_path / "study", load=lambda _: scripted(_remembering))
    arms = tmp_path / "study" / "arms"
    read = [
        {row["id"]: row["query"] for row in map(json.loads, (arms / name / "examples.jsonl").read_text("utf-8").splitlines())}
        for name in ("raw-pair", "raw-pair-swapped")
    ]
    assert read[0].keys() == read[1].keys() and len(read[0]) == 3
    assert all(read[0][one]["text_a"] == read[1][one]["text_b"] for one in read[0])
    assert pair_id("w1", "w2") == "w1|w2"


def test_settings_that_make_no_sense_are_refused(files: dict[str, Path]) -> None:
    with pytest.raises(BadInput, match="items is 1, expected 2 or more; pairs is -1"):
        Contamination(plots={"raw": files["raw"]}, reviews=files["reviews"], items=1, pairs=-1)
