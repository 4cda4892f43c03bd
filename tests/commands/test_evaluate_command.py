"""`perse evaluate` on run folders: what is printed where, and bad input in one clear sentence."""

import json
from pathlib import Path

import pytest
import typer
from evaluation_builders import answered, graded, noisy_judge, pair, world
from places import SAMPLES
from typer.testing import CliRunner
from typer.testing import Result as Ran

from perse.commands.measuring.evaluate import evaluate
from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.errors import BadInput
from perse.evaluation.stats.results import Evaluation
from perse.judgement import Judgement, judgement_line
from perse.records import Example, example_lines
from perse.results.result import Result


def told(printed: str) -> Evaluation:
    return Evaluation.model_validate(Result.model_validate_json(printed).details)


def run_folder(
    folder: Path,
    examples: list,
    judgements: list[Judgement],
    *,
    fold: int | None = None,
    context: dict[str, object] | None = None,
) -> Path:
    folder.mkdir()
    manifest = {"run": {"kind": "score", "fold": fold}, "context": context or {}, "environment": {}}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "examples.jsonl").write_text("".join(example_lines(examples)))
    (folder / "judgements.jsonl").write_text("".join(map(judgement_line, judgements)))
    return folder


def invoke(*arguments: object) -> Ran:
    app = typer.Typer()
    app.command()(evaluate)
    return CliRunner().invoke(app, ["--resamples", "100", *map(str, arguments)])


def good(*arguments: object) -> str:
    result = invoke(*arguments)
    assert result.exception is None, result.exception
    return result.stdout


def bad(*arguments: object) -> str:
    error = invoke(*arguments).exception
    assert isinstance(error, BadInput)
    assert "\n" not in str(error)
    return str(error)


@pytest.fixture
def before(tmp_path: Path) -> Path:
    examples = world(12)
    prices = {"input": 1.0, "output": 2.0, "cached": 1.0}
    judgements = noisy_judge(examples, noise=3, seed=1, failures=0.05)
    return run_folder(tmp_path / "before", examples, judgements, context={"prices": prices})


@pytest.fixture
def after(tmp_path: Path) -> Path:
    examples: list[Example] = [*world(12)]
    return run_folder(tmp_path / "after", examples, noisy_judge(world(12), noise=1, seed=2))


def test_the_verdict_comes_first_then_the_tables_that_matter(before: Path, after: Path) -> None:
    text = good(before, after)
    assert " ".join(text.split()).startswith("before: not shown to be better than the reader's own average: Kendall tau-b ")
    assert [title in text for title in ("\nJudgements: ", "Pooled: ", "Within reviewer (constant skipped)", "Errors: ")] == [
        True
    ] * 4
    assert "Between reviewers" not in text and "constant count 0" not in text
    finer = good(before, after, "--all")
    assert "Between reviewers" in finer and "constant count 0" in finer and "Tokens and cost" in finer


def test_json_and_markdown_have_everything(before: Path, after: Path) -> None:
    found = told(good(before, after, "--json"))
    assert [*found.judges] == ["before", "after"] and len(found.verdict) == 2
    assert any(
        "baselines that need training data are unavailable: the scored examples came from a file" in n for n in found.notes
    )
    text = good(before, after, "--markdown")
    assert "- **before: not shown" in text
    assert all(f"## {title}" in text for title in ("Between reviewers", "Tokens and cost", "Errors"))


def test_two_runs_of_the_command_print_the_same_bytes(before: Path) -> None:
    assert good(before, "--json") == good(before, "--json")


def test_prices_come_from_the_manifest_or_from_the_command_line(before: Path, after: Path) -> None:
    found = told(good(before, after, "--json", "--prices", "after=10,10"))
    cost = {name: one.spent.cost for name, one in found.judges.items() if one.spent}
    # 120 judgements of 10 prompt and 5 written tokens.
    assert cost == {"before": pytest.approx(120 * 20 / 1e6), "after": pytest.approx(120 * 150 / 1e6)}


def test_p_values_are_printed_where_they_are_asked_for(before: Path) -> None:
    said = "p of the pooled correlations, two-sided: "
    assert said not in good(before, "--all") and said in " ".join(good(before, "--p-values", "--all").split())
    found, asked = (told(good(before, "--json", *given)) for given in ((), ("--p-values",)))
    assert not any(row.p_values for row in found.rows)
    assert {name for row in asked.rows if row.judge for name in row.p_values} == {"pearson", "spearman", "kendall"}


def test_matrix_factorization_takes_the_settings_that_are_given_and_says_them(tmp_path: Path) -> None:
    sources = {"reviews": SAMPLES / "reviews.jsonl", "items": SAMPLES / "items.jsonl", "out": tmp_path / "data"}
    build_pointwise(PointwiseOptions(**sources, split="reviewer", max_queries=2))  # type: ignore[arg-type]
    examples = load_folder(tmp_path / "data").examples("valid")
    run = run_folder(tmp_path / "run", [*examples], [answered(one.id, "7") for one in examples])
    given = ("--train-data", tmp_path / "data", "--factors", 3, "--factor-penalty", 7.5)
    said = [note for note in told(good(run, "--json", *given)).notes if "factorization" in note]
    assert [note.partition(": knows ")[0] for note in said] == [
        "matrix factorization (factors: 3, penalty 7.5)",
        "plain matrix factorization (factors: 3, penalty 7.5): without such means",
    ]
    assert all(note in " ".join(good(run, *given).split()) for note in said)


def test_summaries_are_evaluated_on_their_questions_scale(tmp_path: Path) -> None:
    examples = [graded(str(n), f"p{n // 4}", 1 + n % 5 / 2) for n in range(48)]
    judgements = [answered(str(n), str(1 + n % 5), question="sentiment") for n in range(48)]
    found = told(good(run_folder(tmp_path / "run", examples, judgements), "--json"))
    assert found.labels == ("1", "2", "3", "4", "5") and found.verdict[0].startswith("run: better than chance: ")


def test_a_validation_run_calibrates_ties(tmp_path: Path, before: Path) -> None:
    others = world(9, seed=4)
    validation = run_folder(tmp_path / "validation", others, noisy_judge(others, noise=3, seed=1))
    found = told(good(before, "--json", "--validation-run", validation))
    assert all(len(row.epsilons or ()) == 1 for row in found.rows if row.columns)


def test_runs_over_different_parts_of_a_data_set_are_compared_on_what_they_share(tmp_path: Path, before: Path) -> None:
    some = world(12)[:90]
    part = run_folder(tmp_path / "part", some, noisy_judge(some, noise=1, seed=3))
    found = told(good(before, part, "--json"))
    assert found.items == 90 and "part has judged 90 of 120 examples; all rows are of the common ones" in found.notes


def test_another_profile_is_told_of(tmp_path: Path, before: Path) -> None:
    bare = [example.model_copy(update={"profile": ()}) for example in world(12)]
    nobody = run_folder(tmp_path / "nobody", bare, noisy_judge(bare, noise=1, seed=3))
    assert any(note.startswith("profiles differ: ") for note in told(good(before, nobody, "--json")).notes)


def test_folds_are_one_judge_with_the_time_of_both(tmp_path: Path) -> None:
    halves = []
    for fold in (0, 1):
        examples = world(6, seed=fold)
        folder = run_folder(tmp_path / f"f{fold}", examples, noisy_judge(examples, noise=1, seed=3), fold=fold)
        (folder / "timing.jsonl").write_text(json.dumps({"judged": 60, "seconds": 1.5}) + "\n")
        halves.append(folder)
    found = told(good(*halves, "--json"))
    assert [*found.judges] == ["f"] and "of 2 folds, none with a training side at hand" in found.notes
    assert found.judges["f"].spent is not None and found.judges["f"].spent.seconds == 3.0


def test_a_validation_run_that_does_not_fit_is_refused(tmp_path: Path, before: Path) -> None:
    pairs = run_folder(tmp_path / "pairs", [pair("1", "u", "A")], [answered("1", "A")])
    assert "is of another kind of examples" in bad(before, "--validation-run", pairs)
    assert "these are pairs; leave it out" in bad(pairs, "--validation-run", before)


def test_bad_input_is_one_sentence(tmp_path: Path, before: Path, after: Path) -> None:
    examples = world(12)
    judgements = noisy_judge(examples, noise=1, seed=3)
    stranger = run_folder(tmp_path / "stranger", examples, [*judgements, answered("nobody", "5")])
    assert "answer none of the 120 examples, the first 'nobody'" in bad(stranger)
    twice = run_folder(tmp_path / "twice", examples, [*judgements, judgements[0].model_copy(update={"text": "other"})])
    assert f"'{examples[0].id}'" in bad(twice) and "lines 1 and 121" in bad(twice)
    other = run_folder(tmp_path / "other", world(12, seed=9), noisy_judge(world(12, seed=9), noise=1, seed=3))
    assert "other" in bad(before, other)
    assert "--prices names 'nobody', but the judges are before" in bad(before, "--prices", "nobody=1,2")
    assert "names no judge" in bad(before, "--prices", "1,2")
    assert "1 validation runs for 2 judges" in bad(before, after, "--validation-run", other)
    assert "12 reviewers are in the evaluated run and in the validation run" in bad(before, "--validation-run", after)
