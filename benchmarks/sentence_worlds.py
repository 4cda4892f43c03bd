"""How often the sentences of four smaller reports claim something in worlds where there is nothing of it, and where there is.

    python benchmarks/sentence_worlds.py --worlds 300
    python benchmarks/sentence_worlds.py --worlds 100 --only contamination

*Who votes for which text* (`perse drpe vote`): readers vote on a text in both orders, with or without a taste of their own; some lean to one place, and so do all at some texts.
*The same, unequal leans*: three readers lean to no place and two by 3 logits, so that these follow the texts less.
*Highest of KGDS* (`perse kgds metrics`): four models that are the same, or one that is better by 15 points, on shared samples; the highest is held against the next.
*All aspects, one aspect* (`perse study aspects`): a judge of all aspects and judges of each, right as often, or more often by 20 points.
*Known minus unknown* (`perse study contamination`): a judge that scores the works it names as well as the others, or knows only those.
*First place* (the same): a judge that throws a coin, or chooses the first three times in four.
*Leaning to the known* (the same), where known works are liked more: the same of the known one of two works.
*Bias known* (the paper's, the same).
*Pairs that share works* (the same): a judge that likes some texts, whatever it knows, or knows half of the works and likes these more; of more pairs than works as many as it has.
*As if each pair told its own*: the same intervals without what pairs of one work have in common.
Printed: of 100 worlds, those in which the sentence claims it, either way for differences (where there is nothing 5 are meant; 2.5 of taste and of the highest; of five
aspects, each looked at by itself, up to 22.6).
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.drpe.votes.readership import Readership
from perse.evaluation.stats.resamples import Resamples, times_drawn
from perse.judgement import Judgement, Status, Tokens
from perse.kgds.reporting.tables import highest
from perse.kgds.scoring.between import differences
from perse.kgds.scoring.results import Results, SampleScores, Scores
from perse.kgds.scoring.sides import Side, percent
from perse.records import ChoiceReference, Pair, PairwiseExample
from perse.results.result import Estimate, Interval
from perse.studies.contamination.known_works import leaning, paired
from perse.studies.contamination.plots import Pairs, Plots, better, draw_pairs, pair_id
from perse.studies.contamination.tables import of_pairs, of_singles
from perse.studies.frame.summarizing import SharedResamples, shown_apart

RESAMPLES = 300
ASPECTS = 5
MEAN_OP = 0.6
NAME = 3
"""How many letters of the alphabet name a work."""


def taste(draw: np.random.Generator, size: int, *, there: bool) -> dict[str, bool]:
    """`size` documents of four texts each, five readers."""
    texts, readers = 4 * size, 5
    worth = 0.5 + draw.normal(0, 0.15, (texts, 1)) + there * draw.normal(0, 0.05, (texts, readers))
    place = draw.normal(0, 0.1, (1, readers)) + draw.normal(0, 0.05, (texts, 1))
    first, second = (np.clip(worth + sign * place + draw.normal(0, 0.1, (texts, readers)), 0, 1) for sign in (1, -1))
    names = tuple(f"r{n}" for n in range(readers))

    def cells(table: np.ndarray) -> dict[tuple[str, str], dict[str, float]]:
        return {(f"d{n // 4}", f"M{n % 4}"): dict(zip(names, row, strict=True)) for n, row in enumerate(table.tolist())}

    found = Readership(names, cells((first + second) / 2), cells(first - second), {}, incomplete=0)
    return {"who votes for which text": bool(found.taste_shown), "the same, unequal leans": _unequal(draw, texts, there=there)}


def _unequal(draw: np.random.Generator, texts: int, *, there: bool) -> bool:
    """Whether it is shown of readers who lean to a place to different degrees, with or without a taste."""
    names = tuple(f"r{n}" for n in range(5))
    logits = draw.normal(0, 1, (texts, 1)) + there * draw.normal(0, 0.5, (texts, 5))
    lean = np.array([[0.0, 0.0, 0.0, 3.0, 3.0]])
    first, second = (1 / (1 + np.exp(-(logits + sign * lean + draw.normal(0, 0.1, (texts, 5))))) for sign in (1, -1))
    means, gaps = (
        {(f"d{n // 4}", f"M{n % 4}"): dict(zip(names, row, strict=True)) for n, row in enumerate(table.tolist())}
        for table in ((first + second) / 2, first - second)
    )
    return bool(Readership(names, means, gaps, {}, incomplete=0).taste_shown)


def kgds(draw: np.random.Generator, size: int, *, there: bool) -> dict[str, bool]:
    draws = Resamples(np.arange(size), times_drawn(size, resamples=RESAMPLES, seed=0))
    hard = draw.normal(0, 0.15, size)
    sides = []
    for n in range(4):
        values = np.clip(MEAN_OP + 0.15 * (there and n == 0) + hard + draw.normal(0, 0.15, size), 0.01, 1)
        scores = Scores(
            model=f"m{n}",
            pattern="ebs-aos",
            paradigm="structured",
            values={"op": Estimate(value=percent(float(values.mean())), interval=Interval(), items=size)},
            failed=0,
            unanswered=0,
            strange=0,
            samples=tuple(SampleScores(sample=at, values={"op": value}) for at, value in enumerate(values.tolist())),
        )
        sides.append(Side(scores, {"op": draws.sums(values[None])[0] / size}, draws))
    found = Results(
        benchmark="", samples=tuple(range(size)), left_out={}, supporting_share=0, scores=tuple(side.scores for side in sides), deltas=(), across=(),
        correlations=(), differences=tuple(differences(sides)), resamples=RESAMPLES, seed=0,
    )  # fmt: skip
    [told] = highest(found, "ebs-aos")
    return {"highest of KGDS above the next": "minus the next" in told and "not shown" not in told}


def aspects(draw: np.random.Generator, size: int, *, there: bool) -> dict[str, bool]:
    """Three pairs of each reader; half of the pairs are as hard for one judge as for the other."""
    number = 3 * size
    pairs = [
        PairwiseExample(id=f"e{n}", reviewer_id=f"r{n // 3}", aspect=f"a{n % ASPECTS}", profile=(), query=Pair(text_a="x", text_b="y"), reference=ChoiceReference(preference="A"))
        for n in range(number)
    ]  # fmt: skip
    alike, shared = draw.random(number) < 0.5, draw.random(number)
    unified, single = (
        (np.where(alike, shared, draw.random(number)) < share).astype(np.float64) for share in (0.6 + 0.2 * there, 0.6)
    )
    places = [np.array([pair.aspect == f"a{n}" for pair in pairs]) for n in range(ASPECTS)]
    resamples = SharedResamples.over(pairs, resamples=RESAMPLES, seed=0)
    both = ((1.0, unified), (-1.0, single))
    each = [resamples.value("accuracy", both, chosen=chosen) for chosen in places]
    return {"all aspects apart": shown_apart(resamples.macro(both, places)), "one aspect of five apart": any(map(shown_apart, each))}  # fmt: skip


def contamination(draw: np.random.Generator, size: int, *, there: bool) -> dict[str, bool]:
    items = [f"i{n}" for n in range(size)]
    titles = {item: "Great " + "".join(chr(97 + n // 26**at % 26) * 2 for at in range(NAME)) for n, item in enumerate(items)}
    truth = dict(zip(items, np.clip(5.5 + 1.5 * draw.normal(size=size), 1, 10).tolist(), strict=True))
    plots = Plots({"raw": dict.fromkeys(items, "text")}, titles, truth, {})
    known = dict(zip(items, (draw.random(size) < 0.5).tolist(), strict=True))
    single = {}
    for item in items:
        sees = (1.0 if known[item] else 0.1) if there else 0.5
        score = int(np.clip(round(5.5 + sees * (truth[item] - 5.5) + draw.normal()), 1, 10))
        single[item] = _answer(item, str(score), titles[item] if known[item] else "Nothing that is known")
    couples = Pairs(tuple(zip(items[::2], items[1::2], strict=True)), 0, False)
    orders: list[dict[str, Judgement]] = [
        {pair_id(*pair): _answer(pair_id(*pair), "A" if draw.random() < 0.5 + 0.25 * there else "B", "") for pair in couples.pairs}
        for _ in range(2)
    ]  # fmt: skip
    of_plots = of_singles(plots, {"raw": single}, resamples=RESAMPLES, seed=0)
    of_couples = of_pairs(plots, couples, {"raw": (orders[0], orders[1])}, seed=0)
    assert all(better(truth, pair) in ("A", "B") for pair in couples.pairs)
    first = next(one.estimate for one in of_couples.points if one.series == "all" and one.metric == "bias_first")
    liked = {item: float(np.clip(mean + 1.5 * known[item], 1, 10)) for item, mean in truth.items()}
    lean, published = _for_the_known(draw, replace(plots, truth=liked), known, couples, there=there)
    told = of_plots.sentence.rpartition(": ")[2]
    return {
        "known minus unknown": "not shown" not in told and "undefined" not in told,
        "first place": shown_apart(first),
        "leaning to the known": shown_apart(lean),
        "bias known, as in the paper": shown_apart(published),
    }


def _for_the_known(
    draw: np.random.Generator, plots: Plots, known: dict[str, bool], couples: Pairs, *, there: bool
) -> tuple[Estimate, Estimate]:
    """How a judge that names what it knows leans to it: a coin, or three times in four."""
    orders: list[dict[str, Judgement]] = [{}, {}]
    for turned, of_order in enumerate(orders):
        for pair in couples.pairs:
            shown = pair[::-1] if turned else pair
            titles = [plots.titles[item] if known[item] else "N/A" for item in shown]
            lean = 0.25 * there * (known[shown[0]] - known[shown[1]])
            label = "A" if draw.random() < 0.5 + lean else "B"
            of_order[pair_id(*pair)] = _answer(pair_id(*pair), label, f"A: {titles[0]}; B: {titles[1]}")
    found = of_pairs(plots, couples, {"raw": (orders[0], orders[1])}, seed=0)
    by = {one.metric: one.estimate for one in found.points if one.series == "one known"}
    return by["leaning_known"], by["bias_known"]


def sharing(draw: np.random.Generator, size: int, *, there: bool) -> dict[str, bool]:
    """A judge that always chooses the text that it likes more, which it draws once."""
    items = [f"i{n:03d}" for n in range(size)]
    titles = {item: "Great " + "".join(chr(97 + n // 26**at % 26) * 2 for at in range(NAME)) for n, item in enumerate(items)}
    truth = dict(zip(items, (1 + 9 * draw.random(size)).tolist(), strict=True))
    couples = draw_pairs(truth, pairs=SHARING[size], gap=0.0, seed=int(draw.integers(2**31)))
    assert couples.reused
    known = dict(zip(items, (draw.random(size) < 0.5).tolist(), strict=True))
    likes = {item: draw.normal() + 1.0 * there * known[item] for item in items}
    orders: list[dict[str, Judgement]] = [{}, {}]
    for turned, of_order in enumerate(orders):
        for pair in couples.pairs:
            shown = pair[::-1] if turned else pair
            named = [titles[item] if known[item] else "N/A" for item in shown]
            label = "A" if likes[shown[0]] > likes[shown[1]] else "B"
            of_order[pair_id(*pair)] = _answer(pair_id(*pair), label, f"A: {named[0]}; B: {named[1]}")
    right = {pair_id(*pair): better(truth, pair) for pair in couples.pairs}
    one = paired(couples.pairs, given=orders[0], swapped=orders[1], titles=titles, better=right)
    alone = replace(one, works=np.arange(2 * len(couples.pairs)).reshape(-1, 2))
    return {
        "leaning to the known one, pairs that share works": shown_apart(leaning(one)),
        "the same, as if each pair told its own": shown_apart(leaning(alone)),
    }


def _answer(name: str, label: str, text: str) -> Judgement:
    return Judgement(
        id=name, question="q", status=Status.OK, label=label, text=text, k_effective=0, tokens=Tokens(prompt=1, cached=0, generated=1), model="m"
    )  # fmt: skip


World = Callable[..., dict[str, bool]]
SHARING = {40: 150, 172: 200}
"""Works, and pairs of them."""
SIZES: dict[World, tuple[int, ...]] = {
    taste: (12, 40),
    kgds: (12, 60),
    aspects: (20, 60),
    contamination: (40, 120, 400),
    sharing: (*SHARING,),
}
"""Documents, samples, readers and works."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=300)
    parser.add_argument("--only", default="", help="the worlds of one report: taste, kgds, aspects, contamination or sharing")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    worlds = 2 if options.small else options.worlds
    print("| sentence | of | claimed where there is nothing | where there is |\n|---|---:|---:|---:|")
    for world, sizes in SIZES.items():
        for size in sizes if options.only in ("", world.__name__) else ():
            rows: dict[bool, list[dict[str, bool]]] = {}
            for there in (False, True):
                seen = track(range(worlds), description=f"{world.__name__} {size}", console=Console(stderr=True))
                rows[there] = [world(np.random.default_rng((options.seed, size, there, n)), size, there=there) for n in seen]
            for name in rows[False][0]:
                nothing, something = (f"{100 * np.mean([row[name] for row in rows[there]]):.1f}" for there in (False, True))
                print(f"| {name} | {size} | {nothing} | {something} |", flush=True)


if __name__ == "__main__":
    main()
