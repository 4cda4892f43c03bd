"""What is said of baselines that read texts where a text's words tell nothing, and whether evidence knows the scores that it stands beside.

    python benchmarks/content_worlds.py --worlds 200

Readers are more or less lenient; their scores have nothing to do with the texts (*nothing*), or follow the texts' embeddings (*told*), or the texts but not their
embeddings (*popular*: some texts are liked, whatever their words). Texts that are asked about are known to the training side or new to it (*new*).

By world: how often a row's Kendall (pooled, within readers) lies above 0 by its interval, and below (2.5 of 100 are meant of each of *nothing*; whoever knows the reader
orders pooled items rightly); how often the verdict's last sentence names a row that reads texts, and how often with an interval above 0; and how often `text ridge
+ reader` has less squared error than the training mean with the reader's shrunk offset (`user+item bias` of texts that nobody knows).
Of evidence, mean over worlds: the correlation within readers of a review's score with the estimate and with the mean of others, of validation readers and of training readers,
and how often the guard takes it for a leak. Both sides should be alike: what training readers have more of would be their own scores.
By *heart*: the same of training readers within a text, where what leaves a reader's own score out is less where that was more; and the mean squared error of a regression of the
score on the mean of others, and of one that knows each text by heart, too, on the readers that it was fitted to and on new ones.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from rich.console import Console
from rich.progress import track

from perse.data.evidence.guard import SURELY, rises_with_scores
from perse.data.evidence.making import evidence_rows
from perse.data.evidence.table import EvidenceRow
from perse.evaluation.alignment import Fold
from perse.evaluation.baselines.content import NEAREST, RIDGE, RIDGE_READER
from perse.evaluation.evaluate import evaluate_many
from perse.evaluation.stats.correlation import FloatArray
from perse.judgement import Judgement, Status, Tokens
from perse.records import PointwiseExample, ProfileReview, Review, ReviewReference

ROWS = (RIDGE, RIDGE_READER, NEAREST)
TEXTS, SIZE = 80, 8
SHOWN, ASKED = 3, 5
TRAINING, VALIDATION = 60, 40
WORLDS = ("nothing", "nothing, new", "popular", "popular, new", "told", "told, new")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="one kind of worlds, or all that begin so, such as: popular")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    if options.small:
        options.worlds, options.resamples = 2, 100
    for nth, name in enumerate(WORLDS):
        if not name.startswith(options.only or ""):
            continue
        found: defaultdict[str, list[float]] = defaultdict(list)
        for number in track(range(options.worlds), description=name, console=Console(stderr=True)):
            for key, value in _world(np.random.default_rng((options.seed, nth, number)), name, options.resamples).items():
                found[key].append(value)
        print(f"{name}, {options.worlds} worlds", flush=True)
        for key, values in found.items():
            known = np.array(values, dtype=np.float64)
            said = f"{100 * known.mean():.1f} of 100" if key[0] == "%" else f"{np.nanmean(known):+.3f}"
            print(f"  {key.removeprefix('%')}: {said}", flush=True)


def _world(generator: np.random.Generator, name: str, resamples: int) -> dict[str, float]:
    embedded = generator.normal(size=(TEXTS, SIZE))
    embedded /= np.linalg.norm(embedded, axis=1, keepdims=True)
    liked = {"told": embedded @ generator.normal(0, 1.5, SIZE), "popular": generator.normal(0, 1, TEXTS)}
    likes = liked.get(name.split(",")[0], np.zeros(TEXTS))
    new = name.endswith("new")
    train = _examples(generator, "t", TRAINING, likes, range(TEXTS // 2) if new else range(TEXTS))
    unseen = _examples(generator, "v", VALIDATION, likes, range(TEXTS // 2, TEXTS) if new else range(TEXTS))

    def vectors(texts: Sequence[str]) -> FloatArray:
        return np.stack([embedded[int(text)] for text in texts])

    return _rows(generator, train, unseen, vectors, resamples) | _evidence(train, unseen, vectors, new=new)


def _examples(
    generator: np.random.Generator, side: str, readers: int, likes: FloatArray, texts: range
) -> list[PointwiseExample]:
    found = []
    for reader in range(readers):
        mine = generator.choice(np.array(texts), SHOWN + ASKED, replace=False).tolist()
        given = 5.5 + generator.normal(0, 1) + likes[mine] + generator.normal(0, 1.5, len(mine))
        scores = np.clip(np.round(given), 1, 10).astype(int).tolist()
        profile = tuple(
            ProfileReview(text=str(text), review="r", score=score, item_id=f"i{text}")
            for text, score in zip(mine[:SHOWN], scores[:SHOWN], strict=True)
        )
        for text, score in zip(mine[SHOWN:], scores[SHOWN:], strict=True):
            found.append(
                PointwiseExample(
                    id=f"{side}{reader}-{text}",
                    reviewer_id=f"{side}{reader}",
                    item_id=f"i{text}",
                    profile=profile,
                    query=str(text),
                    reference=ReviewReference(review="r", score=score),
                )
            )
    return found


def _rows(generator: np.random.Generator, train, unseen, vectors, resamples: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    coin = [
        Judgement(
            id=one.id,
            question="pointwise",
            status=Status.OK,
            label=str(generator.integers(1, 11)),
            text="",
            model="m",
            k_effective=SHOWN,
            tokens=Tokens(prompt=1, cached=0, generated=1),
        )
        for one in unseen
    ]
    table = evaluate_many({"coin": coin}, [Fold(unseen, train)], resamples=resamples, vectors=vectors)
    by_name = {row.name: row for row in table.rows}
    found: dict[str, float] = {"%verdict: coin called better": table.conclusions[0].standing == "better"}
    for name in ROWS:
        for column in ("kendall", "within_kendall"):
            one = by_name[name].columns[column]
            found[f"%{name}, {column}: above 0"] = one.above_zero
            found[f"%{name}, {column}: below 0"] = one.below_zero
    said = table.verdict[0]
    named = next((name for name in ROWS if f"{name}, which needs no judge" in said), None)
    found["%a row that reads texts is named"] = named is not None
    found["%... with an interval above 0"] = named is not None and by_name[named].columns["kendall"].above_zero
    errors = {name: by_name[name].columns["mae"].value or 0.0 for name in (*ROWS, "user+item bias", "training mean")}
    found["%MAE: text ridge below the training mean"] = errors[RIDGE] < errors["training mean"]
    found["%MAE: text ridge + reader below user+item bias"] = errors[RIDGE_READER] < errors["user+item bias"]
    return found


def _evidence(train, unseen, vectors, *, new: bool) -> dict[str, float]:  # type: ignore[no-untyped-def]
    given = {
        (one.reviewer_id, item): (text, score)
        for one in (*train, *unseen)
        for item, text, score in (
            (one.item_id, one.query, one.reference.score),
            *((past.item_id, past.text, past.score) for past in one.profile),
        )
    }
    reviews = [
        Review(
            review_id=f"{reader}/{item}",
            reviewer_id=reader,
            item_id=item,
            text=text,
            review="r",
            score=score,
            original_score=score,
        )
        for (reader, item), (text, score) in given.items()
    ]
    readers = {one.reviewer_id for one in train}
    works = {one.review_id: one.item_id for one in reviews}
    rows, _ = evidence_rows(reviews, readers, train, works, vectors, new_texts=new)
    by_id = {one.review_id: one for one in reviews}
    sides: dict[str, tuple[FloatArray, FloatArray]] = {}
    found: dict[str, float] = {"%guard takes it for a leak": rises_with_scores(rows, by_id) > SURELY}
    for side, training in (("training", True), ("validation", False)):
        mine = [row for row in rows if (row.part is not None) == training]
        score = np.array([by_id[row.review_id].score for row in mine], dtype=np.float64)
        reader = np.array([by_id[row.review_id].reviewer_id for row in mine])
        text = np.array([by_id[row.review_id].item_id for row in mine])
        for what in ("estimate", "mean"):
            stated = np.array([np.nan if (value := getattr(row, what)) is None else value for row in mine], dtype=np.float64)
            if np.isfinite(stated).any():
                found[f"{side}, score and {what}, within readers"] = _within(score, stated, reader)
                if training:
                    found[f"{side}, score and {what}, within texts (by heart)"] = _within(score, stated, text)
        if not new:
            sides[side] = _design(score, mine, by_id)
    if not new:
        for what, columns in (("mean of others", 2), ("the same, texts by heart", None)):
            x, y = sides["training"][0][:, :columns], sides["training"][1]
            weights = np.linalg.solve(x.T @ x + np.diag(np.r_[0.0, 0.0, np.ones(x.shape[1] - 2)]), x.T @ y)
            for side, (given, score) in sides.items():
                found[f"squared error by {what}, {side}"] = float(((given[:, :columns] @ weights - score) ** 2).mean())
    return found


def _design(score: FloatArray, rows: Sequence[EvidenceRow], by_id: Mapping[str, Review]) -> tuple[FloatArray, FloatArray]:
    """One, the mean of others, and a column for each text; and the scores."""
    stated = np.array([5.5 if row.mean is None else row.mean for row in rows])
    text = np.array([int(by_id[row.review_id].text) for row in rows])
    return np.column_stack([np.ones(len(rows)), stated, np.eye(TEXTS)[text]]), score


def _within(score: FloatArray, stated: FloatArray, group: np.ndarray) -> float:
    """The correlation of both less their groups' means."""
    known = np.isfinite(stated)
    _, index = np.unique(group[known], return_inverse=True)
    sides = [side[known] - (np.bincount(index, side[known]) / np.bincount(index))[index] for side in (score, stated)]
    sides = [np.round(side, 9) for side in sides]
    return float(np.corrcoef(*sides)[0, 1]) if all(side.any() for side in sides) else float("nan")


if __name__ == "__main__":
    main()
