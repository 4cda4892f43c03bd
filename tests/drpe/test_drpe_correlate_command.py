"""`perse drpe correlate`, as it is called."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from command_line import perse
from drpe_correlate_builders import documents, graded
from vote_builders import Poll, texts_of

from perse.drpe.correlation import published
from perse.drpe.correlation.correlating import Correlations, correlate, least_p
from perse.drpe.correlation.of_many import of_many
from perse.drpe.correlation.said import of_least_p, of_selection
from perse.drpe.correlation.telling import answer, best_of
from perse.drpe.documents import read_documents
from perse.drpe.selection import select
from perse.drpe.votes.run_folder import read_run
from perse.drpe.votes.telling import vote_result
from perse.evaluation.stats.estimates import Bootstrap
from perse.results.result import Estimate, Interval, Result

pytest.importorskip("sacrebleu")

WORDS = [
    "a",
    "cat",
    "dog",
    "road",
    "rain",
    "city",
    "mayor",
    "vote",
    "child",
    "school",
    "river",
    "bridge",
    "fire",
    "crew",
    "late",
    "night",
    "found",
    "said",
]


def lines(number: int = 14, **changed: Any) -> list[dict[str, Any]]:
    """SummEval's form: the better a system, the more words of the reference its summary has."""
    made = []
    for n in range(number):
        generator = random.Random(n)
        reference = generator.choices(WORDS, k=12)
        systems = []
        for at in range(6):
            kept = [word if generator.random() < (at + 1) / 9 else generator.choice(WORDS) for word in reference]
            score = round(1 + 4 * sum(a == b for a, b in zip(kept, reference, strict=True)) / 12 + generator.random(), 1)
            scores = {"coherence": score, "relevance": round(generator.uniform(1, 5), 1)}
            summary = " ".join(kept + ["so"] * generator.randint(0, 3))
            systems.append({"system": f"M{at}", "summary": summary, "scores": scores})
        other = " ".join(generator.choices(WORDS, k=12))
        made.append(
            {"doc_id": f"d{n}", "src": "An article.", "refs": [" ".join(reference), other], "systems": systems, **changed}
        )
    return made


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return written(tmp_path / "docs.jsonl", lines())


def result_of(*words: Any) -> Result:
    ran = perse("drpe", "correlate", *words, "--resamples", 100, "--json")
    assert ran.returncode == 0, ran.stderr
    return Result.model_validate_json(ran.stdout)


def column(result: Result, title: str, header: str) -> dict[str, Any]:
    table = next(one for one in result.tables if one.title == title)
    at = table.header.index(header)
    return {str(row[0]): row[at] for row in table.rows}


def test_the_answer_names_the_metric_that_agrees_most_in_two_sentences(docs: Path) -> None:
    result = result_of(docs)
    pearson = column(result, "Pooled", "Pearson")
    best = max(pearson, key=lambda name: pearson[name].value)
    assert result.answer.startswith(f"{best} agrees most with people over 56 candidates of 14 documents, with a pooled Pearson")
    assert result.answer.count(". ") == 1 and result.answer.endswith(".")
    assert "length" in result.answer and pearson["ROUGE-1"].value > 0.3
    shown = next(one for one in result.tables if one.title == "The highest beside the others")
    assert {row[0] for row in shown.rows} == {best} and len(shown.rows) == len(pearson) - 1


def test_published_numbers_stand_beside_and_are_marked(docs: Path) -> None:
    result = result_of(docs)
    beside = column(result, "Pooled", "SummEval, published")
    assert (beside["ROUGE-1"], beside["BLEU"], beside["length"]) == ("0.431", "0.372", "-")
    titles = [table.title for table in result.tables if table.title.endswith("as published")]
    assert titles == ["Table 1 as published", "Table 2 as published", "Table 1 of the first version as published"]
    assert all("not comparable" in "".join(table.notes) for table in result.tables if table.title in titles)


def test_the_published_averages_are_those_of_their_rows() -> None:
    """But for ROUGE-1's, which the paper prints as 0.461."""
    for name, (*values, average) in {**published.TABLE_1, **published.TABLE_2}.items():
        assert (round(sum(values) / 3, 3) == pytest.approx(average, abs=0.0011)) is (name != "ROUGE-1")


def test_the_absolute_value_is_told_apart_from_agreement(docs: Path) -> None:
    result = result_of(docs)
    absolute = column(result, "Pooled", "|Pearson|")
    signed = column(result, "Pooled", "Pearson")
    for name, one in absolute.items():
        assert (
            isinstance(one, Estimate) and one.value == pytest.approx(abs(signed[name].value)) and (one.interval.low or 0) >= 0
        )
    assert any("cannot go below 0" in note and "on average" in note for note in result.notes)


def test_documents_in_which_a_metric_is_constant_are_counted_beside_what_is_over_the_others(tmp_path: Path) -> None:
    rows = lines()
    for system in rows[0]["systems"]:
        system["summary"] = "so so"
    within = next(one for one in result_of(written(tmp_path / "docs.jsonl", rows)).tables if one.title == "Within documents")
    (said,) = [note for note in within.notes if note.startswith("documents left out, of 14: ")]
    assert "ROUGE-1 1" in said and "length 2" in said and said.endswith("over those in which neither side is constant")


@pytest.mark.slow
def test_all_candidates_and_the_best_of_all_references_can_be_asked_for(docs: Path) -> None:
    extremes, every = result_of(docs), result_of(docs, "--candidates", "all", "--references", "best")
    assert (extremes.details["compared"], every.details["compared"]) == (56, 84)
    assert any("the best over a document's references (up to 2)" in note for note in every.notes)
    assert any("a document's first reference" in note for note in extremes.notes)


def test_a_dimension_is_the_mean_that_candidates_are_chosen_and_compared_by(docs: Path) -> None:
    result = result_of(docs, "--dimension", "coherence")
    assert result.details["dimensions"] == ["coherence"]
    pooled, alone = column(result, "Pooled", "Pearson"), column(result, "Pooled Pearson by dimension", "coherence")
    assert {name: one.value for name, one in pooled.items()} == {name: one.value for name, one in alone.items()}


def test_a_limit_takes_the_first_documents(docs: Path) -> None:
    assert result_of(docs, "--limit", 10).details["documents"] == 10


def test_a_candidate_that_equals_its_reference_is_said(tmp_path: Path) -> None:
    rows = lines()
    rows[0]["systems"][5] |= {"summary": rows[0]["refs"][0], "scores": {"coherence": 5.0, "relevance": 5.0}}
    result = result_of(written(tmp_path / "equal.jsonl", rows))
    assert result.details["equal"] == 1 and any("1 candidates equal a reference" in note for note in result.notes)


def test_documents_without_references_leave_the_length_alone(tmp_path: Path) -> None:
    result = result_of(written(tmp_path / "bare.jsonl", lines(refs=[])))
    assert list(column(result, "Pooled", "Pearson")) == ["length"]
    assert result.answer.startswith(
        "length is not shown to agree with people over 56 candidates of 14 documents: its pooled Pearson"
    )
    assert any("no document has a reference" in note for note in result.notes)


def test_bad_input_is_one_sentence(docs: Path, tmp_path: Path) -> None:
    def refused(*words: Any) -> str:
        ran = perse("drpe", "correlate", *words)
        assert ran.returncode == 2 and not ran.stdout
        return str(ran.stderr)

    assert "nothing to correlate" in refused(docs, "--no-baselines")
    assert "give a folder that `perse drpe vote` wrote" in refused(docs, tmp_path)
    unscored = lines()
    for row in unscored:
        for system in row["systems"]:
            del system["scores"]
    assert "no candidate has people's scores" in refused(written(tmp_path / "unscored.jsonl", unscored))


def longer(message: str, seed: int = 0) -> str:
    """Votes for the longer text, and errs by how many letters "a" it reads, so that wordings differ."""
    one, other = texts_of(message)
    return f"Reason: so it is.\nVote: Text {'AB'[(len(one) < len(other)) ^ (message.count('a') % 3 == 0)]}"


def run_of(docs: Path, out: Path, **settings: Any) -> Path:
    return Poll(longer).vote(out, read_documents(docs).documents, **settings)


@pytest.mark.slow
def test_runs_stand_above_the_metrics_and_by_their_folders_names(docs: Path, tmp_path: Path) -> None:
    result = result_of(docs, run_of(docs, tmp_path / "mine"), run_of(docs, tmp_path / "plain", roles=()))
    pooled = next(one for one in result.tables if one.title == "Pooled")
    assert [row[0] for row in pooled.rows][:2] == ["mine votes, single", "plain votes, single"] and pooled.breaks == (2,)
    assert not any(table.title.startswith("By wording") for table in result.tables)


@pytest.mark.slow
def test_candidates_that_a_run_voted_on_for_peoples_scores_are_not_called_all(docs: Path, tmp_path: Path) -> None:
    extremes = {item.key for item in select(read_documents(docs)).items}
    voted = [
        one.model_copy(update={"candidates": tuple(each for each in one.candidates if (one.id, each.system) in extremes)})
        for one in read_documents(docs).documents
    ]
    run = Poll().vote(tmp_path / "mine", voted, (), left_out=28)
    every, few = (result_of(docs, run, "--candidates", which) for which in ("all", "extremes"))
    assert every.details["compared"] == few.details["compared"] == 56
    assert "Candidates of mine are the 2 best and 2 worst of each document by people's own scores" in every.answer
    assert "Candidates of" not in few.answer and any("without the 28 between" in note for note in few.notes)
    own = result_of(run / "documents.jsonl", run)
    assert "Candidates of mine are" in own.answer and any("these documents have none between" in note for note in own.notes)


@pytest.mark.parametrize(
    ("number", "said"), [(4, "as published; these documents have none between"), (6, "without the 4 between, ")]
)
def test_those_between_are_missed_only_where_there_are_some(number: int, said: str) -> None:
    grades = {f"M{n}": float(n) for n in range(number)}
    assert said in of_selection(select(documents(graded("a", grades), graded("b", grades))))[0]


@pytest.mark.slow
def test_of_several_wordings_each_and_their_mean_as_published_stand_beside_the_mean_score(docs: Path, tmp_path: Path) -> None:
    result = result_of(docs, run_of(docs, tmp_path / "five", roles=(), wordings=(0, 2, 4)))
    table = next(one for one in result.tables if one.title.startswith("By wording"))
    assert table.header[1:] == ("wording 0", "wording 2", "wording 4", "mean of these", "of the mean score")
    [(name, *cells)] = table.rows
    values = [cell.value for cell in cells if isinstance(cell, Estimate)]
    assert name == "five votes, single" and len(values) == 5 and len(set(values[:3])) > 1
    assert values[3] == pytest.approx(sum(values[:3]) / 3)
    for at, wording in enumerate((0, 2, 4)):  # as a run in this wording alone
        alone = result_of(docs, run_of(docs, tmp_path / f"w{wording}", roles=(), wordings=(wording,)))
        assert column(alone, "Pooled", "Pearson")[f"w{wording} votes, single"].value == pytest.approx(values[at])
    assert column(result, "Pooled", "Pearson")[name] == cells[4]  # the same value, and the same interval
    assert [cell.interval for cell in cells if isinstance(cell, Estimate) and cell.interval.low is None] == []


def test_two_runs_of_one_name_are_refused(docs: Path, tmp_path: Path) -> None:
    runs = [run_of(docs, tmp_path / name / "votes", roles=()) for name in ("a", "b")]
    ran = perse("drpe", "correlate", docs, *runs)
    assert ran.returncode == 2 and "two runs are called votes; rename a folder" in ran.stderr


@pytest.mark.slow
def test_a_candidate_that_is_the_reference_takes_no_other_away_from_a_judge_without_probabilities(
    docs: Path, tmp_path: Path
) -> None:
    rows = lines()
    rows[0]["systems"][5]["summary"] = rows[0]["refs"][0]
    same = written(tmp_path / "same.jsonl", rows)
    run = run_of(same, tmp_path / "run", roles=())
    result = result_of(same, run, "--candidates", "all")
    assert result.details["compared"] == 84
    [pooled] = [one for one in result.tables if one.title == "Pooled"]
    assert pooled.rows[0][0] == "run votes, single"
    told = vote_result(read_run(run))
    assert "166 of 166 votes came back" in told.answer


def test_votes_on_other_texts_are_refused_by_name(docs: Path, tmp_path: Path) -> None:
    run = run_of(docs, tmp_path / "run", roles=())
    rows = lines()
    rows[3]["systems"][0]["summary"], rows[3]["systems"][5]["summary"] = (
        rows[3]["systems"][5]["summary"],
        rows[3]["systems"][0]["summary"],
    )
    ran = perse("drpe", "correlate", written(tmp_path / "changed.jsonl", rows), run)
    assert ran.returncode == 2 and "voted on other texts: of document 'd3'" in ran.stderr


def test_scores_that_go_against_people_agree_with_nobody(tmp_path: Path) -> None:
    rows = lines(12)
    for row in rows:
        for one in row["systems"]:
            one["scores"] = {"coherence": 5 - 0.1 * len(one["summary"].split())}
        row["refs"] = []
    alone = result_of(written(tmp_path / "bare.jsonl", rows), "--candidates", "all")
    assert alone.answer.startswith("length is not shown to agree with people")


def test_where_no_difference_can_be_shown_a_note_says_so(docs: Path) -> None:
    few, enough = result_of(docs, "--limit", 10), result_of(docs)
    assert (
        least_p(10, 30) == pytest.approx(30 / 512) and least_p(14, 30) == pytest.approx(30 / 8192) and least_p(78, 600) > 0.05
    )
    number = 2 * sum(range(len(column(few, "Pooled", "Pearson"))))
    assert any("so none can be shown" in note for note in few.notes) is (least_p(10, number) > 0.05)
    assert not any("so none can be shown" in note for note in enough.notes)


def correlations(rows: Any, of_many: dict[tuple[str, str], float]) -> Correlations:
    nothing: Any = None
    return Correlations(
        selected=nothing, compared=40, documents=10, systems=0, rows=rows, differences=(), left_out=(), of_many=of_many, resamples=0, seed=0
    )  # fmt: skip


def agreeing(value: float, low: float) -> SimpleNamespace:
    interval = Interval(low=low, high=0.9)
    return SimpleNamespace(mean={"pooled": {"pearson": Estimate(value=value, interval=interval, items=40)}})


def test_a_lower_correlation_that_is_shown_is_named_where_the_highest_is_not() -> None:
    rows = {"wide": agreeing(0.4, -0.1), "narrow": agreeing(0.3, 0.1)}
    found = correlations(rows, {("narrow", "pooled"): 0.01})
    assert answer(found) == (
        "Of 40 candidates of 10 documents the highest pooled Pearson correlation, that of wide, is 0.400 [-0.100, 0.900] and not shown to be "
        "above 0; that of narrow is."
    )
    del rows["narrow"]
    rows["low"] = agreeing(0.1, -0.3)
    assert answer(found).startswith(
        "Pooled, no method is shown to agree with people over 40 candidates of 10 documents: the highest"
    )
    rows["low"].mean["within"] = agreeing(0.9, 0.8).mean["pooled"]
    assert "within documents" not in answer(found)
    assert answer(replace(found, of_many={("low", "within"): 0.02})).endswith(
        " But within documents that of low is above 0 (below)."
    )


def test_of_a_single_method_p_stands_beside_an_interval_that_leaves_out_0_where_it_is_not_shown_to_agree() -> None:
    found = correlations({"only": agreeing(0.2, 0.05)}, {("only", "pooled"): 0.084})
    assert answer(found) == (
        "only is not shown to agree with people over 40 candidates of 10 documents: its pooled Pearson correlation is 0.200 [0.050, 0.900] "
        "(p of so many = 0.084: one that has nothing to do with people may come to as much)."
    )


def test_the_highest_of_eight_that_know_nothing_is_not_said_to_agree_most() -> None:
    # Chosen of eight methods of noise, of which one has an interval above 0: as the highest of so many it is nothing much.
    people, document = np.random.default_rng(3).normal(size=80), np.repeat(np.arange(20), 4)
    draws = Bootstrap.over(document, resamples=300, seed=0)
    noise = {f"m{n}": np.random.default_rng((100, n)).normal(size=80) for n in range(200)}
    known = {name: draws.one("pearson", people, values) for name, values in noise.items()}
    lucky = next(name for name, one in known.items() if one.above_zero)
    eight = {lucky: noise[lucky]} | dict(list(noise.items())[:7])
    assert of_many(people, {lucky: noise[lucky]}, draws)[lucky, "pooled"] < of_many(people, eight, draws)[lucky, "pooled"]
    assert of_many(people, eight, draws)[lucky, "pooled"] > 0.05
    found = correlations({name: SimpleNamespace(mean={"pooled": {"pearson": known[name]}}) for name in eight}, {})
    best = best_of(found)
    assert best is not None and "no method is shown to agree" in answer(replace(found, of_many=of_many(people, eight, draws)))
    assert answer(replace(found, of_many={(best, "pooled"): 0.01})).startswith(f"{best} agrees most")
    true = {"knows": people + np.random.default_rng(0).normal(size=80), **eight}
    assert of_many(people, true, draws)["knows", "pooled"] < 0.05


def of_scores(scores: Mapping[str, Sequence[float]], people: Sequence[float]) -> str:
    """What is said of methods that gave so much; four candidates a document."""
    keys = [(f"d{n // 4}", f"s{n % 4}") for n in range(len(people))]
    grades = {document: {s: people[n] for n, (d, s) in enumerate(keys) if d == document} for document, _ in keys}
    given = documents(*(graded(name, of_one) for name, of_one in grades.items()))
    columns = {name: dict(zip(keys, values, strict=True)) for name, values in scores.items()}
    return answer(correlate(select(given, which="all"), columns, resamples=100, seed=0))


def test_methods_of_one_correlation_agree_alike_and_one_that_is_constant_has_none_to_differ_from() -> None:
    people = [float(score) for score in np.random.default_rng(0).normal(size=80)]
    first = [score + noise for score, noise in zip(people, np.random.default_rng(1).normal(size=80).tolist(), strict=True)]
    told = of_scores({"one": first, "twin": [7 + 100 * score for score in first], "flat": [3.0] * 80}, people)
    assert told.startswith("one and twin, alike, agree most with people over 80 candidates of 20 documents")
    assert told.endswith("]; flat, whose scores do not vary, has none.")
    assert "there is no other method beside them." in of_scores({"one": first, "twin": first}, people)


def test_what_knows_documents_and_none_of_their_candidates_is_said_not_to_agree_within_them() -> None:
    generator = np.random.default_rng(0)
    level, own = np.repeat(generator.normal(0, 3, 20), 4), generator.normal(size=80)
    said = of_scores({"level": (level + generator.normal(size=80)).tolist()}, (level + own).tolist())
    assert said.startswith("level agrees most") and " Within documents level is not shown to agree with people: " in said
    assert "Within documents" not in of_scores(
        {"knows": (own + generator.normal(size=80) / 9).tolist()}, (level + own).tolist()
    )
    both = of_scores({"level": level.tolist(), "again": level.tolist()}, (level + own).tolist())
    assert " Within documents level and again are not shown to agree with people: undefined" in both


def test_the_smallest_p_is_of_the_differences_that_have_one() -> None:
    people = [float(score) for score in np.random.default_rng(0).normal(size=24)]
    keys = [(f"d{n // 4}", f"s{n % 4}") for n in range(24)]
    grades = {document: {s: people[n] for n, (d, s) in enumerate(keys) if d == document} for document, _ in keys}
    given = documents(*(graded(name, of_one) for name, of_one in grades.items()))
    columns = {"one": people, "two": [-score for score in people], "flat": [3.0] * 24}
    scores = {name: dict(zip(keys, values, strict=True)) for name, values in columns.items()}
    found = correlate(select(given, which="all"), scores, resamples=100, seed=0)
    # Pooled and within documents, of one pair of methods: 2 exchanges of 2^6 are as far apart.
    assert of_least_p(found) == [
        "with 2 differences over 6 documents the smallest adjusted p there can be is 0.062, so none can be shown, however large it is: more documents, or fewer methods"
    ]


def test_a_p_that_is_above_the_level_is_not_rounded_to_it() -> None:
    rows = {"low": agreeing(0.3, 0.1), "lower": agreeing(0.1, -0.3)}
    found = replace(correlations(rows, {}), of_many={("low", "pooled"): 0.0504})
    assert "not shown" in answer(found) or "no method is shown" in answer(found)
    assert "p = 0.0504:" in answer(found)
