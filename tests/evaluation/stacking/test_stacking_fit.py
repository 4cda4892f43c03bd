"""A stacking knows what its sources know, on readers that it was not fitted on; and says so only where it does."""

from dataclasses import replace

import numpy as np
import pytest
from stacking_credit import coverage, rows_of
from stacking_worlds import world

from perse.errors import BadInput
from perse.evaluation.alignment import Fold
from perse.evaluation.baselines.bias import fit_bias_model
from perse.evaluation.stacking.adding import ALL, WITHOUT_JUDGE, Measured, Told, gains, levels
from perse.evaluation.stacking.crossing import CrossFitted, Models, Rows, subsets
from perse.evaluation.stacking.known import known_of
from perse.evaluation.stacking.making import Fitted, fit, material
from perse.evaluation.stacking.renamed import under_other_names
from perse.evaluation.stacking.telling import fit_result
from perse.evaluation.stats.correlation import kendall
from perse.evaluation.stats.estimates import Bootstrap
from perse.records import Evidence, PointwiseExample
from perse.results.result import Estimate, Interval
from perse.stacking.applying import stacked, with_stacked
from perse.stacking.file import StackedData, StackedJudge
from perse.stacking.sources import IN_WORDS, JUDGE, Known, features


@pytest.fixture(scope="module")
def train() -> list[PointwiseExample]:
    return world(60, seed=1, knows=0)[0]


@pytest.mark.slow
def test_a_judge_that_knows_something_is_credited(train: list[PointwiseExample]) -> None:
    examples, judgements = world(40, seed=2, knows=0.9)
    found = fit([Fold(examples, train)], judgements, resamples=200, resample="reviewers")
    assert found.measured.added["judge"]["kendall"].above_zero and found.measured.added["judge"]["rps"].above_zero
    told = fit_result(found, judged=True, written=None)
    assert told.answer.startswith("The language model adds +") and "user+item bias" in told.answer


@pytest.mark.parametrize(("low", "high"), [(-0.02, 0.02), (-0.02, -0.01)])
def test_what_is_said_of_the_order_of_texts_does_not_deny_what_errors_gain(low: float, high: float) -> None:
    def one(value: float, low: float, high: float) -> Estimate:
        return Estimate(value=value, interval=Interval(low=low, high=high, resamples=100), items=40)

    levels = {name: {"kendall": one(0.3, 0.2, 0.4)} for name in (ALL, WITHOUT_JUDGE, IN_WORDS[JUDGE])}
    added = {"judge": {"kendall": one((low + high) / 2, low, high), "mae": one(0.2, 0.1, 0.3)}}
    rows = Rows.of([], np.empty(0), np.empty(0, dtype=np.int64))
    found = Fitted(rows, Measured(levels, added, {}, {}, {}), (), (), (), 100, 0)
    said = fit_result(found, judged=True, written=None).answer
    assert "to the order of texts" in said and "to the numbers that need no judge:" not in said


@pytest.mark.slow
def test_a_judge_of_noise_is_not_credited_and_it_is_said(train: list[PointwiseExample]) -> None:
    examples, judgements = world(40, seed=3, knows=0)
    found = fit([Fold(examples, train)], judgements, resamples=200, resample="reviewers")
    gain = found.measured.added["judge"]["kendall"]
    assert not gain.above_zero and gain.value is not None and abs(gain.value) < 0.02
    assert "adds nothing" in (said := fit_result(found, judged=True, written=None).answer) or "is not shown to add" in said


@pytest.mark.slow
@pytest.mark.numeric
def test_noise_is_credited_no_more_often_than_an_interval_may_miss() -> None:
    """20 worlds: at a rate of 2.5% more than 3 happen less than once in 500."""
    credited = 0
    for seed in range(20):
        rows = rows_of(30, 12, seed=seed, knows=0)
        cross, bootstrap = CrossFitted.of(rows, seed=seed), Bootstrap.over(rows.reader, resamples=200, seed=seed)
        without = Told.of("w", cross.tell([one for one in rows.sources if one != "judge"]))
        credited += gains(rows.gold, Told.of("a", cross.tell(rows.sources)), without, bootstrap)["rps"].above_zero
    assert credited <= 3


@pytest.mark.slow
@pytest.mark.numeric
def test_a_source_that_knows_nothing_is_not_below_chance_for_being_told_by_several_models() -> None:
    """A model that left out lenient readers expects less of them: of predictions as they are tau-b is some -0.06 here."""
    found = []
    for seed in range(30):
        rows = rows_of(20, 12, seed=seed, knows=0)
        told = Told.by(CrossFitted.of(rows, seed=seed), ["judge"])
        found.append([kendall(rows.gold, values) or 0.0 for values in (told.order, told.values)])
    levelled, as_they_are = np.mean(found, axis=0)
    assert as_they_are < -0.04 < -0.025 < levelled < 0.025


@pytest.mark.numeric
def test_levels_change_the_order_of_texts_and_no_error() -> None:
    rows = rows_of(20, 12, seed=1, knows=0.5)
    cross, bootstrap = CrossFitted.of(rows, seed=0), Bootstrap.over(rows.reader, resamples=100, seed=0)
    told, plain = Told.by(cross, rows.sources), Told.of("", cross.tell(rows.sources))
    found, before = (levels(rows.gold, one, bootstrap) for one in (told, plain))
    assert found["mae"] == before["mae"] and found["rps"] == before["rps"]
    assert found["within_kendall"] == before["within_kendall"] and found["kendall"] != before["kendall"]


@pytest.mark.slow
def test_no_reader_s_level_knows_their_own_scores() -> None:
    rows = rows_of(12, 10, seed=1, knows=1)
    before = CrossFitted.of(rows, seed=0).levels(rows.sources)
    for reader in range(12):
        mine = rows.reader == reader
        turned = Rows(rows.features, np.where(mine, 11 - rows.gold, rows.gold), rows.reader)
        assert CrossFitted.of(turned, seed=0).levels(rows.sources)[mine] == pytest.approx(before[mine], abs=1e-9)


@pytest.mark.slow
@pytest.mark.numeric
def test_a_judge_that_says_what_another_source_says_adds_nothing() -> None:
    """20 worlds: at a rate of 2.5% more than 3 happen less than once in 500."""
    credited = 0
    for seed in range(20):
        rows = rows_of(30, 12, seed=seed, knows="bias")
        cross, bootstrap = CrossFitted.of(rows, seed=seed), Bootstrap.over(rows.reader, resamples=200, seed=seed)
        without = Told.by(cross, [one for one in rows.sources if one != "judge"])
        gain = gains(rows.gold, Told.by(cross, rows.sources), without, bootstrap)["kendall"]
        assert gain.value is not None and abs(gain.value) < 0.02
        credited += gain.above_zero
    assert credited <= 3


@pytest.mark.numeric
def test_as_many_true_scores_lie_in_an_interval_as_it_holds() -> None:
    rows = rows_of(80, 15, seed=1, knows=0.5)
    held, covered = coverage(rows.gold, CrossFitted.of(rows, seed=0).tell(rows.sources))
    assert covered == pytest.approx(held, abs=0.03)


@pytest.mark.slow
def test_no_reader_is_told_by_a_model_that_saw_them() -> None:
    rows = rows_of(12, 10, seed=1, knows=1)
    cross = CrossFitted.of(rows, seed=0)
    before = cross.tell(rows.sources)
    for reader in range(12):
        mine = rows.reader == reader
        turned = Rows(rows.features, np.where(mine, 11 - rows.gold, rows.gold), rows.reader)
        assert CrossFitted.of(turned, seed=0).tell(rows.sources)[mine] == pytest.approx(before[mine], abs=1e-9)


def test_what_is_absent_is_told_by_the_model_that_never_had_it() -> None:
    rows = rows_of(40, 20, seed=1, knows=1)
    lacking = ~rows.have(["content"])
    without = [one for one in rows.sources if one != "content"]
    models = Models(rows)
    assert (models.tell(rows, rows.sources)[lacking] == models.tell(rows, without)[lacking]).all()
    assert not np.allclose(models.tell(rows, rows.sources)[~lacking], models.tell(rows, without)[~lacking])


def test_a_source_that_too_few_have_is_left_out() -> None:
    rows = rows_of(40, 20, seed=1, knows=1)
    table = rows.features.copy()
    table[10:, -1] = np.nan
    few = Rows(table, rows.gold, rows.reader)
    assert Models(few).of(few.sources) is None
    told = Models(few).tell(few, few.sources)
    assert not np.isnan(told).any()


def test_subsets_stand_in_the_order_of_what_they_know() -> None:
    assert subsets(["bias", "judge"]) == [("judge", "bias"), ("judge",), ("bias",), ()]


def test_the_bias_of_a_stacking_is_the_baseline(train: list[PointwiseExample]) -> None:
    examples, _ = world(10, seed=4, knows=0)
    predicted = fit_bias_model(train).predict(examples)
    known = known_of(train)
    assert [features(one, None, known)["bias"] for one in examples] == pytest.approx(predicted.tolist(), abs=1e-9)


def test_the_reader_s_own_answer_is_no_feature(train: list[PointwiseExample]) -> None:
    examples, judgements = world(10, seed=5, knows=1)
    known = known_of(train)
    for example, judgement in zip(examples, judgements, strict=True):
        assert example.reference
        other = example.reference.model_copy(update={"score": 11 - example.reference.score})
        assert features(example, judgement, known) == features(
            example.model_copy(update={"reference": other}), judgement, known
        )


@pytest.mark.slow
def test_no_training_reader_s_own_score_is_in_what_they_are_told(train: list[PointwiseExample]) -> None:
    """Of each training reader about each text that they scored: nothing is stacked, so that nothing can move with the score."""
    examples, judgements = world(20, seed=6, knows=1)
    stacking = fit([Fold(examples, train)], judgements, resamples=100).stacking(
        question="pointwise", judge=StackedJudge(model="m"), data=StackedData(sha256="d")
    )
    by_id = {one.id: one for one in world(60, seed=1, knows=0)[1]}
    assert {with_stacked(stacking, one, by_id[one.id]).stacked for one in train} == {None}
    assert all(with_stacked(stacking, one, said).stacked for one, said in zip(examples, judgements, strict=True))


@pytest.mark.slow
def test_readers_of_the_training_side_are_left_out_and_it_is_said(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=6, knows=1)
    _, of_train = world(60, seed=1, knows=0)
    found = fit([Fold([*examples, *train[:16]], train)], [*judgements, *of_train[:16]], resamples=100)
    assert len(found.readers) == 20 and any(note.startswith("2 readers of the training side") for note in found.notes)


@pytest.mark.slow
def test_what_is_written_says_of_a_judged_text_what_the_models_do(train: list[PointwiseExample]) -> None:
    examples, judgements = world(30, seed=7, knows=1)
    found = fit([Fold(examples, train)], judgements, resamples=100)
    stacking = found.stacking(question="pointwise", judge=StackedJudge(model="m"), data=StackedData(sha256="d"))
    assert stacking.sources == ("judge", "reader", "others", "bias") and stacking.models[-1].sources in (("bias",), ())
    told = Models(found.rows).tell(found.rows, found.rows.sources)
    for row in (0, 17, 100):
        one = stacked(stacking, examples[row], judgements[row])
        assert list(one.distribution.values()) == pytest.approx(told[row].tolist(), abs=1e-9) and not one.without


@pytest.mark.slow
def test_the_profile_average_is_told_of_those_who_have_a_profile_and_it_is_said(train: list[PointwiseExample]) -> None:
    examples, _ = world(20, seed=8, knows=0)
    bare = [one.model_copy(update={"profile": ()}) for one in examples[:8]]
    found = fit([Fold([*bare, *examples[8:]], train)], None, resamples=100)
    level = found.measured.levels["profile average"]["kendall"]
    assert level.value is not None and level.items == 152 and found.measured.levels["stacked"]["kendall"].items == 160
    assert "the row 'profile average' is of 152 of 160 examples, those that have it" in found.notes
    none = fit([Fold([one.model_copy(update={"profile": ()}) for one in examples], train)], None, resamples=100)
    assert "profile average" not in none.measured.levels


@pytest.mark.slow
def test_numbers_alone_are_measured_without_a_judge(train: list[PointwiseExample]) -> None:
    examples, _ = world(20, seed=8, knows=0)
    found = fit([Fold(examples, train)], None, resamples=100)
    assert "judge" not in found.rows.sources
    assert fit_result(found, judged=False, written=None).answer.startswith("The numbers that need no judge reach a tau-b of")


@pytest.mark.parametrize("readers, said", [(5, "5 readers are too few"), (9, "9 readers are too few")])
def test_too_few_judged_readers_are_refused(train: list, readers: int, said: str) -> None:
    examples, judgements = world(readers, seed=9, knows=1)
    with pytest.raises(BadInput, match=said):
        fit([Fold(examples, train)], judgements)


@pytest.mark.slow
def test_a_training_side_of_five_readers_is_enough() -> None:
    few, _ = world(5, seed=1, knows=0)
    examples, judgements = world(20, seed=2, knows=1)
    found = fit([Fold(examples, few)], judgements, resamples=100)
    assert found.measured.levels["stacked"]["kendall"].value is not None


def test_constant_scores_are_refused(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=2, knows=1)
    alike = [
        one.model_copy(update={"reference": one.reference.model_copy(update={"score": 7})}) for one in examples if one.reference
    ]
    with pytest.raises(BadInput, match="all 160 true scores are 7"):
        fit([Fold(alike, train)], judgements)


@pytest.mark.slow
def test_constant_training_scores_are_no_error() -> None:
    few, _ = world(12, seed=1, knows=0)
    alike = [
        one.model_copy(
            update={
                "reference": one.reference.model_copy(update={"score": 7}),
                "profile": tuple(past.model_copy(update={"score": 7}) for past in one.profile),
            }
        )
        for one in few
        if one.reference
    ]
    examples, judgements = world(20, seed=2, knows=1)
    found = fit([Fold(examples, alike)], judgements, resamples=100)
    assert found.measured.added["judge"]["kendall"].value is not None


def test_answers_without_distributions_are_refused(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=2, knows=1)
    bare = [one.model_copy(update={"distribution": None, "expected": None}) for one in judgements]
    with pytest.raises(BadInput, match="every answer lacks a distribution"):
        fit([Fold(examples, train)], bare)


@pytest.mark.slow
def test_distributions_from_the_likeliest_tokens_are_none(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=2, knows=1)
    read = [one.model_copy(update={"exact": False}) for one in judgements]
    with pytest.raises(BadInput, match="from the likeliest tokens alone \\(exact: false\\)"):
        fit([Fold(examples, train)], read)
    some = fit([Fold(examples, train)], [*read[:40], *judgements[40:]], resamples=100)
    assert "the language model: absent for 40 of 160 examples" in some.notes


@pytest.mark.slow
def test_of_texts_that_training_scored_words_are_said_to_be_as_good_as_a_name(train: list[PointwiseExample]) -> None:
    examples, _ = world(20, seed=2, knows=1)
    drawn = np.random.default_rng(3)
    with_words = [
        one.model_copy(
            update={
                "evidence": Evidence(others=0, estimate=float(drawn.normal(5.5, 1)), shrinkage=2.0),
                "profile": tuple(past.model_copy(update={"estimate": 5.5}) for past in one.profile),
                **({} if n < 80 else {"query": f"new {n}"}),
            }
        )
        for n, one in enumerate(examples)
    ]
    named = "80 of 160 examples are of texts that training readers scored: of these the words are as good as a name"
    assert any(note.startswith(named) for note in material([Fold(with_words, train)], None).notes)
    for silent in (examples, with_words[80:]):
        assert not any("as good as a name" in note for note in material([Fold(silent, train)], None).notes)


@pytest.mark.slow
def test_readers_of_the_training_side_under_other_names_are_left_out_and_it_is_said(train: list[PointwiseExample]) -> None:
    examples, judgements = world(20, seed=6, knows=1)
    _, of_train = world(60, seed=1, knows=0)
    again = [one.model_copy(update={"reviewer_id": f"pseudonym of {one.reviewer_id}"}) for one in train[:80]]
    found = fit([Fold([*examples, *again], train)], [*judgements, *of_train[:80]], resamples=100)
    assert {*found.readers} == {one.reviewer_id for one in examples}
    assert any(note.startswith("10 of them stand here under other names") for note in found.notes)


@pytest.mark.slow
def test_strangers_are_hardly_taken_for_readers_of_the_training_side(train: list[PointwiseExample]) -> None:
    """Also where they have many texts in common with many, and where readers give one score to all."""
    for seed in range(8):
        assert not under_other_names(train, world(60, seed=100 + seed, knows=0, each=60)[0])
    tens = [
        one.model_copy(update={"profile": (), "reference": one.reference.model_copy(update={"score": 10})})
        for one in train
        if one.reference
    ]
    strangers = [one.model_copy(update={"reviewer_id": f"another {one.reviewer_id}"}) for one in tens]
    assert not under_other_names(tens, strangers)


@pytest.mark.slow
@pytest.mark.parametrize(
    "low, high, said",
    [
        (0.01, 0.03, "+0.020 [0.010, 0.030] more than user+item bias"),
        (-0.01, 0.05, "not shown to be more than"),
        (
            -0.05,
            -0.01,
            "not more than",
        ),  # models of other readers lean away from one's own scores: noise is "less" in a third of worlds
    ],
)
@pytest.mark.parametrize("judged", [True, False])
def test_more_than_user_and_item_bias_is_said_only_where_it_is_shown(
    train: list[PointwiseExample], low: float, high: float, said: str, judged: bool
) -> None:
    examples, judgements = world(20, seed=8, knows=0)
    found = fit([Fold(examples, train)], judgements if judged else None, resamples=100)
    (best,) = {one for one, _ in found.measured.over}
    gain = Estimate(value=(low + high) / 2, interval=Interval(low=low, high=high), items=160, difference=True)
    over = {(best, "user+item bias"): dict.fromkeys(("kendall", "within_kendall", "mae", "rps"), gain)}
    told = fit_result(replace(found, measured=replace(found.measured, over=over)), judged=judged, written=None)
    assert said in told.answer
    assert (" more than user+item bias;" in told.answer or " more than user+item bias." in told.answer) == (low > 0)


def test_no_training_side_is_refused() -> None:
    examples, judgements = world(20, seed=2, knows=1)
    with pytest.raises(BadInput, match="name its folder with --train-data"):
        fit([Fold(examples, None)], judgements)


def test_the_table_of_texts_is_refused_where_it_is_impossible() -> None:
    with pytest.raises(ValueError, match="expected scores from 1 to 10"):
        Known(mean=5, item_penalty=1, reader_penalty=1, texts={"a": (40.0, 2)}, readers=())
