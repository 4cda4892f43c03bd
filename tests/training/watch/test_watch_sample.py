"""Which examples are watched: of other readers, the same every time, in rows as long as those that are trained on."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import pointwise_examples, tiny_llama
from places import SAMPLES
from watching_builders import TRAIN, sample

from perse.data.build import PointwiseOptions, build_pointwise
from perse.errors import BadInput
from perse.questions import QUESTIONS
from perse.records import example_lines
from perse.rendering.prompt import Renderer
from perse.settings.training import Data
from perse.settings.watching import Watch
from perse.training.watch.judging import judged_now
from perse.training.watch.sample import unseen_examples, watched


def test_a_question_that_writes_first_is_judged_on_a_few_and_its_loss_is_of_all(renderer: Renderer) -> None:
    what = sample(renderer, "pointwise", generated=3)
    assert len(what.judged) == 3 and sum(len(row.example_ids) for row in what.rows) == 8
    assert what.cost.written == 15 and what.best == "kendall_imputed"
    short = sample(renderer, "pointwise_score")
    assert len(short.judged) == 8 and short.cost.written == 0
    assert sample(renderer, "pairwise").best == "accuracy"
    found = judged_now(tiny_llama(renderer.tokenizer), what, renderer, attention="mask")
    assert found["asked"] == 3


def test_the_sample_is_the_same_every_time_and_moves_with_the_seed(renderer: Renderer) -> None:
    assert sample(renderer) == sample(renderer)
    examples = pointwise_examples(4, 3)
    drawn = []
    for few, seed in ((examples, 0), (examples[::-1], 0), (examples, 1)):
        train = TRAIN.model_copy(update={"seed": seed})
        what = watched(few, renderer, QUESTIONS["pointwise_score"], watch=Watch(examples=6), train=train, answer_tokens=64)
        drawn.append([one.id for one in what.judged])
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_best_that_pairs_do_not_have_is_refused(renderer: Renderer) -> None:
    with pytest.raises(BadInput, match="watch.best is kendall, and the labels A, B have no order; choose accuracy or loss"):
        sample(renderer, "pairwise", best="kendall")


def test_watched_rows_keep_the_limit_of_rows_that_are_trained_on(renderer: Renderer) -> None:
    def lengths(row_tokens: int | None) -> list[int]:
        train = TRAIN.model_copy(update={"row_tokens": row_tokens, "max_shared_examples": 1})
        some = pointwise_examples(2, 3, k=2)
        what = watched(some, renderer, QUESTIONS["pointwise_score"], watch=Watch(), train=train, answer_tokens=64)
        return [len(row.ids) for row in what.rows]

    alone = lengths(64)  # every example is longer, so each stands alone
    assert len(alone) == 6 and len(lengths(None)) == 2
    assert len(lengths(2 * max(alone))) == 3 and max(lengths(2 * max(alone))) <= 2 * max(alone)


def test_that_no_watched_example_fits_is_said_of_the_watched_ones(renderer: Renderer) -> None:
    narrow = Renderer(renderer.tokenizer, 80)
    with pytest.raises(
        BadInput, match=r"^examples of others.jsonl were to be judged while training: none of .*, or set watch="
    ):
        watched(
            pointwise_examples(1, 2),
            narrow,
            QUESTIONS["pointwise_score"],
            watch=Watch(data="others.jsonl"),
            train=TRAIN,
            answer_tokens=64,
        )


def test_others_are_watched_where_they_are_named(tmp_path: Path) -> None:
    build_pointwise(
        PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=tmp_path / "set", k=2)
    )
    valid = Watch(data=str(tmp_path / "set"))
    found = unseen_examples(Data(path=str(tmp_path / "set")), valid, trained=(), apart=())
    assert found and all(len(getattr(one, "profile", ())) <= 2 for one in found)
    with pytest.raises(BadInput, match="would be watched and is trained on; expected examples of other reviewers"):
        unseen_examples(Data(path=str(tmp_path / "set")), valid, trained={found[0].reviewer_id}, apart=())
    file = tmp_path / "some.jsonl"
    file.write_text("".join(example_lines(pointwise_examples(2, 2))), encoding="utf-8")
    elsewhere = Data(path="elsewhere.jsonl", k=1)
    assert len(unseen_examples(elsewhere, Watch(data=str(file)), trained={"x"}, apart=())) == 4
    named = unseen_examples(elsewhere, valid, trained=(), apart=())
    assert {one.id for one in named} == {one.id for one in found} and max(len(one.profile) for one in named) == 1
