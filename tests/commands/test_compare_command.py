"""`perse compare` and the runs it reads: other profiles stand side by side, other data sets are refused in one sentence."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from builders import pairwise_examples, pointwise_examples
from typer.testing import CliRunner

from perse.batch.comparing import gather, judges_and_folds
from perse.commands.measuring.compare import compare
from perse.errors import BadInput
from perse.judgement import Judgement, Status, Tokens, judgement_line
from perse.records import Example, PairwiseExample, PointwiseExample, example_lines

EXAMPLES = pointwise_examples(12, 4)


def judgement(example: Example, label: str, **fields: Any) -> Judgement:
    tokens = Tokens(prompt=9, cached=0, generated=3)
    question = "pairwise" if isinstance(example, PairwiseExample) else "pointwise"
    given = {"question": question, "status": Status.OK, "label": label, "k_effective": 1, "tokens": tokens, "model": "m"}
    return Judgement(id=example.id, **{**given, **fields})


def labels(examples: Sequence[Example], *, noise: int, seed: int) -> list[Judgement]:
    """What a judge answers that is off by at most `noise`."""
    generator = random.Random(seed)
    given = []
    for example in examples:
        if isinstance(example, PairwiseExample):
            assert example.reference
            wrong = {"A": "B", "B": "A"}[example.reference.preference]
            given.append(judgement(example, wrong if generator.random() < noise / 10 else example.reference.preference))
        else:
            assert isinstance(example, PointwiseExample) and example.reference
            off = example.reference.score + generator.randint(-noise, noise)
            given.append(judgement(example, str(min(10, max(1, off)))))
    return given


def run(
    folder: Path,
    examples: Sequence[Example] = EXAMPLES,
    judgements: Sequence[Judgement] | None = None,
    *,
    noise: int = 3,
    fold: int | None = None,
    **context: object,
) -> Path:
    """A folder as `perse score` writes it."""
    folder.mkdir(parents=True)
    manifest = {"run": {"kind": "score", "fold": fold}, "context": {"data_folder": None, "data_digest": "d", **context}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "examples.jsonl").write_text("".join(example_lines(examples)))
    given = labels(examples, noise=noise, seed=noise) if judgements is None else judgements
    (folder / "judgements.jsonl").write_text("".join(map(judgement_line, given)))
    return folder


def perse_compare(*arguments: object) -> Any:
    app = typer.Typer()
    app.command()(compare)
    return CliRunner().invoke(
        app, [*map(str, arguments), "--permutations", "999", "--resamples", "100"], env={"COLUMNS": "120"}
    )


def without_profile(examples: Sequence[PointwiseExample] = EXAMPLES) -> list[PointwiseExample]:
    return [example.model_copy(update={"profile": ()}) for example in examples]


@pytest.mark.slow
def test_a_sentence_then_tables_with_the_same_numbers_as_json(tmp_path: Path) -> None:
    runs = [run(tmp_path / "before", noise=9), run(tmp_path / "after", noise=1)]
    shown = perse_compare(*runs)
    assert shown.exit_code == 0, shown.output
    text = " ".join(shown.stdout.split())
    assert text.startswith("after is better than before: Kendall tau-b +") and "Compared on 48 items of 12 reviewers" in text
    assert "after is better than profile average" in text
    result = json.loads(perse_compare(*runs, "--json").stdout)["details"]
    first = result["pairings"][0]["contrasts"][0]
    assert f"{first['difference']:+.3f} [{first['interval']['low']:.3f}, {first['interval']['high']:.3f}]" in text
    assert first["p"] <= 0.005 and result["family"] == 13
    assert "| Kendall tau-b | " in perse_compare(*runs, "--markdown").stdout
    assert perse_compare(*runs, "--json").stdout == perse_compare(*runs, "--json").stdout


def test_pairs_are_compared_by_accuracy(tmp_path: Path) -> None:
    examples = pairwise_examples(12)
    runs = [run(tmp_path / "before", examples, noise=7), run(tmp_path / "after", examples, noise=0)]
    result = json.loads(perse_compare(*runs, "--json").stdout)["details"]
    assert result["metrics"] == ["accuracy"] and result["pairings"][0]["contrasts"][0]["one"] == 1.0
    assert [each["other"] for each in result["pairings"]] == ["before", "copy the example", "copy the example"]


def test_texts_can_be_resampled_with_their_readers(tmp_path: Path) -> None:
    runs = [run(tmp_path / "before", noise=9), run(tmp_path / "after", noise=1)]
    assert json.loads(perse_compare(*runs, "--resample", "two-way", "--json").stdout)["details"]["resample"] == "two-way"


def test_one_metric_against_one_run(tmp_path: Path) -> None:
    runs = [run(tmp_path / name, noise=noise) for name, noise in (("a", 3), ("b", 4), ("c", 5))]
    result = json.loads(perse_compare(*runs, "--metric", "kendall", "--against", "b", "--json").stdout)["details"]
    assert [(each["one"], each["other"]) for each in result["pairings"]][:2] == [("a", "b"), ("c", "b")]
    assert result["metrics"] == ["kendall"]


def test_runs_that_showed_other_profiles_stand_side_by_side_and_it_is_told(tmp_path: Path) -> None:
    turned = [example.model_copy(update={"profile": example.profile[::-1]}) for example in EXAMPLES]
    runs = [run(tmp_path / "k0", without_profile()), run(tmp_path / "k3"), run(tmp_path / "turned", turned)]
    gathered = gather(runs)
    assert gathered.notes == (
        "profiles differ: k3 showed 3, k0 no profile, turned the same in another order; baselines read those of k3",
    )
    assert all(len(example.profile) == 3 for example in gathered.folds[0].examples)
    told = [
        example.model_copy(update={"profile": tuple(past.model_copy(update={"estimate": 5.0}) for past in example.profile)})
        for example in EXAMPLES
    ]
    assert gather([runs[1], run(tmp_path / "later", told)]).notes == (), "what evidence added since is no other profile"
    result = perse_compare(*runs)
    assert "profiles differ: k3 showed 3" in " ".join(result.stdout.split()) and "profile average" in result.stdout


def test_the_readers_own_profiles_are_read_by_baselines_not_those_of_others(tmp_path: Path) -> None:
    five = pointwise_examples(12, 4, k=5)
    shots = run(tmp_path / "shots", five, profile="shots")
    [note] = gather([shots, run(tmp_path / "own")]).notes
    assert note == "profiles differ: own showed 3, shots 5, not the readers' own; baselines read those of own"
    assert gather([shots]).notes == ("shots showed 5, not the readers' own; baselines read those of shots",)
    turned = run(tmp_path / "turned", profile="shuffled")
    [note] = gather([turned]).notes
    assert note == "turned showed 3, the readers' own reviews behind the wrong texts; baselines read those of turned"
    own = [
        [fold.own_scores for fold in gather(some).folds]
        for some in ([shots], [turned], [shots, tmp_path / "own"], [shots, turned])
    ]
    assert own == [[False], [True], [True], [True]]


def test_a_key_that_a_run_is_called_by_is_in_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-Zq8vT2mLw0PxR7aB9cD4eF"
    monkeypatch.setenv("OPENAI_API_KEY", key)
    runs = [run(tmp_path / key), run(tmp_path / f"{key}-again", noise=3)]
    for shown in (perse_compare(*runs), perse_compare(*runs, "--json")):
        assert key not in shown.stdout and "***-again" in shown.stdout


def test_runs_of_parts_of_a_data_set_are_compared_on_what_they_share(tmp_path: Path) -> None:
    runs = [run(tmp_path / "first", EXAMPLES[:40]), run(tmp_path / "last", EXAMPLES[8:])]
    result = json.loads(perse_compare(*runs, "--json").stdout)["details"]
    assert result["items"] == 32 and {name: each["dropped"] for name, each in result["judges"].items()} == {
        "first": 8,
        "last": 8,
    }
    judges, [part], missing = judges_and_folds(runs)
    assert len(part.examples) == 48 and {len(given) for given in judges.values()} == {40}
    assert missing == ["the scored examples came from a file; name their data set with --train-data"]


def test_folds_of_two_judges_are_two_judges(tmp_path: Path) -> None:
    halves = EXAMPLES[:24], EXAMPLES[24:]
    runs = [
        run(tmp_path / f"{name}-{fold}", halves[fold], noise=noise, fold=fold)
        for name, noise in (("x", 2), ("y", 8))
        for fold in (0, 1)
    ]
    result = json.loads(perse_compare(*runs, "--json").stdout)["details"]
    assert list(result["judges"]) == ["x", "y"] and result["items"] == 48


def changed(**fields: Any) -> list[PointwiseExample]:
    return [*EXAMPLES[:5], EXAMPLES[5].model_copy(update=fields), *EXAMPLES[6:]]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        (
            changed(query="another text"),
            "example 'r1-1' has another query in {other} than in {run}; give runs of the same data set",
        ),
        (changed(reviewer_id="r0"), "example 'r1-1' has another reviewer_id"),
        (changed(reference=EXAMPLES[0].reference), "example 'r1-1' has another reference"),
        (
            [example.model_copy(update={"id": f"x{example.id}"}) for example in EXAMPLES],
            "{other} was asked none of the examples of {run}, the first 'xr0-0'; give runs of the same data set",
        ),
    ],
)
def test_a_run_of_another_data_set_is_refused_by_its_first_differing_example(
    tmp_path: Path, examples: list[PointwiseExample], message: str
) -> None:
    first, other = run(tmp_path / "run"), run(tmp_path / "other", examples)
    with pytest.raises(BadInput) as refused:
        gather([first, other])
    assert message.format(other=other, run=first) in str(refused.value)


def test_one_run_and_a_run_given_twice_are_refused(tmp_path: Path) -> None:
    only = run(tmp_path / "only")
    refused = perse_compare(only)
    assert isinstance(refused.exception, BadInput) and "is nothing to compare; give two or more" in str(refused.exception)
    with pytest.raises(BadInput, match="is given twice; give each run once"):
        gather([only, tmp_path / "." / "only"])


def test_runs_of_one_name_go_by_their_paths(tmp_path: Path) -> None:
    runs = [run(tmp_path / "a" / "run"), run(tmp_path / "b" / "run")]
    assert list(gather(runs).judges) == [str(each) for each in runs]


def test_judges_of_folds_whose_names_begin_alike_are_all_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The common beginning of the one's folds is the name of the other's first run, from its own folder the whole path."""
    monkeypatch.chdir(tmp_path)
    runs = [run(Path(name), fold=number % 2) for number, name in enumerate(["base-0", "base-1", "base", "base-again"])]
    assert list(gather(runs).judges) == ["base", "base + base-again"]


def test_judgements_of_no_example_are_refused(tmp_path: Path) -> None:
    stray = labels(EXAMPLES, noise=1, seed=0)
    stray[0] = stray[0].model_copy(update={"id": "stray"})
    result = perse_compare(run(tmp_path / "one"), run(tmp_path / "two", judgements=stray))
    assert isinstance(result.exception, BadInput)
    assert "1 judgements of two answer none of the 48 examples, the first 'stray'" in str(result.exception)


def test_two_different_answers_to_one_example_are_refused_by_line(tmp_path: Path) -> None:
    given = labels(EXAMPLES, noise=0, seed=0)
    other = given[2].model_copy(update={"label": "1" if given[2].label != "1" else "2"})
    with pytest.raises(BadInput, match="judgements.jsonl, lines 3 and 49: example 'r0-2' has two different answers"):
        gather([run(tmp_path / "two", judgements=[*given, other])])
    assert len(gather([run(tmp_path / "same", judgements=[*given, given[2]])]).judges["same"]) == 48


@pytest.mark.parametrize("order", [1, -1])
def test_an_answer_counts_before_a_failure_of_the_engine(tmp_path: Path, order: int) -> None:
    given = labels(EXAMPLES, noise=0, seed=0)
    lost = judgement(EXAMPLES[0], "1").model_copy(update={"status": Status.ENGINE_ERROR, "label": None})
    both = [lost, given[0]][::order]
    judges = gather([run(tmp_path / "run", judgements=[both[0], *given[1:], both[1]])]).judges
    assert {each.id: each for each in judges["run"]}["r0-0"] == given[0]


def test_a_data_set_of_another_schema_is_a_missing_training_side_with_its_reason(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "pointwise"}))
    (data / "examples.parquet").write_bytes(b"")
    [reason] = gather([run(tmp_path / "run", data_folder=str(data))]).missing
    assert reason.endswith("; or name the data set with --train-data") and str(data) in reason
