import io

import pytest
from evaluation_builders import answered, failed, noisy_judge, pair, scored, world
from rich.console import Console

from perse.evaluation.evaluate import Evaluation, Fold, evaluate, evaluate_many
from perse.evaluation.telling import evaluation_result
from perse.judgement import Judgement, Prices
from perse.records import ASPECTS
from perse.results import markdown as as_markdown
from perse.results.result import Estimate, Interval
from perse.results.terminal import hidden, print_result


def rendered(evaluation: Evaluation, *, width: int = 120, everything: bool = False) -> str:
    console = Console(width=width, file=io.StringIO())
    print_result(evaluation_result(evaluation), console, everything=everything)
    return console.file.getvalue()


def markdown(evaluation: Evaluation) -> str:
    return as_markdown.markdown(evaluation_result(evaluation))


@pytest.fixture(scope="module")
def two_judges() -> Evaluation:
    examples = world(40)
    judges = {
        "trained": noisy_judge(examples, noise=1, seed=1, failures=0.02),
        "untrained": noisy_judge(examples, noise=4, seed=2, failures=0.02),
    }
    return evaluate_many(judges, [Fold(examples, world(30, seed=7))])


def surely_a(id: str) -> Judgement:
    return answered(id, "A", distribution={"A": 0.9, "B": 0.1}, order_gap=0.1)


def pairs_of(reviewers: int, *, aspects: tuple[str, ...] = ASPECTS) -> Evaluation:
    examples = [pair(f"{r}-{a}", f"u{r}", "A", aspect=a) for r in range(reviewers) for a in aspects]
    judgements = [failed(e.id) if e.id.startswith("0-") else surely_a(e.id) for e in examples]
    return evaluate(examples, judgements, train=[pair("t", "t", "A")])


@pytest.mark.slow
def test_a_value_stands_with_its_interval_in_one_cell_on_one_line(two_judges: Evaluation) -> None:
    estimate = two_judges.rows[0].columns["pearson"]
    cell = f"{estimate.value:.2f} [{estimate.interval.low:.2f}, {estimate.interval.high:.2f}]"
    line = next(line for line in rendered(two_judges).splitlines() if line.strip().startswith("trained (expected)"))
    assert cell in line
    assert cell in markdown(two_judges)


def test_every_row_fits_a_line_of_120_columns(two_judges: Evaluation) -> None:
    for evaluation in (two_judges, pairs_of(12)):
        lines = rendered(evaluation, everything=True).splitlines()
        assert max(map(len, lines)) <= 120
        for row in evaluation.rows:
            assert any(row.name in line for line in lines), row.name


def test_coverage_statuses_and_imputed_values_are_shown(two_judges: Evaluation) -> None:
    text = rendered(two_judges)
    ok = two_judges.judges["trained"].ok
    assert f"{ok}/400" in text
    assert f"{two_judges.ok_items} items answered by every judge" in text
    assert f"all 400 items, failures = training mean {two_judges.training_means[0]:.2f}" in text
    assert "unparsed" in text and "engine_error" in text


def test_finer_sheets_are_shown_when_asked_for_and_named_where_not(two_judges: Evaluation) -> None:
    finer = ("Within reviewer (constant count 0): ", "Between reviewers (of their mean scores): ", "Tokens and cost")
    assert not any(title in rendered(two_judges) for title in finer)
    assert all(title in rendered(two_judges, everything=True) for title in finer)
    finer_too = hidden(evaluation_result(two_judges))
    assert "Tokens and cost" in finer_too and len(finer_too) == len(set(finer_too))
    assert all(f"## {title}" in markdown(two_judges) for title in finer_too)


def test_errors_stand_with_the_difference_up_to_which_predictions_tie(two_judges: Evaluation) -> None:
    line = next(line for line in rendered(two_judges).splitlines() if "/" in line and "user+item bias" in line.split("[")[0])
    errors = rendered(two_judges).partition("Errors: ")[2]
    row = next(row for row in two_judges.rows if row.name == "user+item bias")
    tied = " / ".join(f"{epsilon:.2f}" for epsilon in row.epsilons or () if epsilon is not None)
    assert tied in next(line for line in errors.splitlines() if "user+item bias" in line)
    assert tied not in line  # pooled: ok/asked instead


def test_counts_have_a_column_for_what_was_not_answered() -> None:
    text = rendered(pairs_of(12), everything=True)
    header = next(line for line in text.splitlines() if "A, said N/A" in line)
    counts = next(line for line in text[text.index(header) :].splitlines() if line.strip().startswith("Surprise"))
    assert counts.split()[1:] == ["11", "0", "1", "0", "0", "0"]


def test_cost_stands_where_prices_are_known_and_is_said_to_be_unknown_elsewhere() -> None:
    examples = [pair("1", "u", "A")]
    prices = {"judge": Prices(input=100, output=1000, cached=100)}
    parts = [Fold(examples, None)]
    known = rendered(evaluate_many({"judge": [surely_a("1")]}, parts, resamples=100, prices=prices))
    assert "0.0060" in known  # 10 prompt tokens at 100 a million and 5 written ones at 1000
    unknown = rendered(evaluate_many({"judge": [surely_a("1")]}, parts, resamples=100), everything=True)
    assert "cost: unknown without prices" in unknown


def test_a_difference_that_is_one_off_from_the_printed_values_is_explained_below(two_judges: Evaluation) -> None:
    below = " ".join(rendered(two_judges).split())
    assert ", difference " in below and "differences are taken of values before these are rounded" in below
    silent = evaluate_many({"same": [answered(one.id, "7") for one in world(12)]}, [Fold(world(12), None)])
    assert ", difference " not in rendered(silent) and "before these are rounded" not in rendered(silent)


def test_markdown_begins_with_the_verdict(two_judges: Evaluation) -> None:
    first, second = map(as_markdown.escaped, two_judges.verdict)
    assert f"\n\n- **{first}**\n- **{second}**\n\n## Judgements" in markdown(two_judges)


def test_few_reviewers_are_said_to_leave_intervals_undefined() -> None:
    few = pairs_of(9)
    assert "undefined (few reviewers)" in rendered(few)
    assert "0.89 [undefined (few reviewers)]" in markdown(few)
    assert "few reviewers" not in rendered(pairs_of(12))


def test_a_baseline_that_is_unavailable_is_listed_with_its_reason() -> None:
    examples = [scored(str(n), f"u{n}", 1 + n % 10) for n in range(12)]
    found = evaluate(examples, [answered(example.id, "5") for example in examples], train=None)
    for text in (rendered(found), markdown(found)):
        said = " ".join(text.split())
        assert "user+item bias, matrix factorization, plain matrix factorization, unpersonalized, text ridge, " in said
        assert "training median, majority: unavailable: no training data at hand" in said


def test_values_that_are_undefined_read_undefined_not_zero() -> None:
    examples = [scored(str(n), f"u{n}", 1 + n % 10, profile=(("i", 5),)) for n in range(12)]
    found = evaluate(examples, [answered(example.id, "5") for example in examples], train=None)
    line = next(line for line in rendered(found).splitlines() if "judge (label)" in line)
    assert line.count("undefined") == 4  # Pearson, Spearman and Kendall, twice


def test_resamples_in_which_a_value_is_undefined_are_marked() -> None:
    found = pairs_of(12)
    of_fewer = Estimate(value=0.75, interval=Interval(low=0.5, high=0.9, resamples=1000, undefined_resamples=13), items=60)
    first = found.rows[0].model_copy(update={"columns": {**found.rows[0].columns, "order_gap": of_fewer}})
    marked = rendered(found.model_copy(update={"rows": (first, *found.rows[1:])}))
    assert "(at most 13)" in marked and "0.75 [0.50, 0.90]*" in marked


def test_tables_of_pairs_say_that_intervals_of_shares_are_exact() -> None:
    said = "intervals of shares (such as accuracy) and of differences of shares are not resampled but exact"
    assert said in " ".join(rendered(pairs_of(12)).split()) and said in markdown(pairs_of(12))
    examples = [scored(str(n), f"u{n}", 1 + n % 10) for n in range(12)]
    assert said not in markdown(evaluate(examples, [answered(one.id, "5") for one in examples], train=None))


def test_names_from_files_are_neither_markup_nor_table_nor_html() -> None:
    nasty = "[bold]x[/bold] | <script> [31m"
    found = pairs_of(12, aspects=(nasty,))
    assert "[bold]x[/bold] | <script> [31m" in rendered(found, width=200)
    assert "\\[bold\\]x\\[/bold\\] \\| &lt;script> \\[31m" in markdown(found)


def test_a_table_of_many_judges_is_cut_into_parts_that_fit() -> None:
    examples = [pair(f"{r}", f"u{r}", "A", aspect="Ending") for r in range(12)]
    judges = {f"judge {n}": [answered(e.id, "A") for e in examples] for n in range(4)}
    found = evaluate_many(judges, [Fold(examples, [pair("t", "t", "A")])])
    text = rendered(found)
    parts = text.partition("Accuracy by aspect")[2]
    assert sum(line.startswith("Ending") for line in parts.splitlines()) > 1  # each part names its rows
    assert max(len(line.rstrip()) for line in text.splitlines()) <= 120


def test_the_order_gap_stands_once_for_each_judge() -> None:
    lines = rendered(pairs_of(12)).splitlines()
    likeliest = next(line for line in lines if line.strip().startswith("judge (likeliest) "))
    label = next(line for line in lines if line.strip().startswith("judge (label) "))
    assert likeliest.count("[") == 4 and label.count("[") == 2


def test_folds_and_their_training_means_are_told() -> None:
    parts = [Fold(world(6, seed=seed), [scored(f"t{seed}", "t", 4 + seed)]) for seed in (1, 2, 3)]
    examples = [example for part in parts for example in part.examples]
    found = evaluate_many({"judge": noisy_judge(examples, noise=1, seed=0, failures=0.1)}, parts, resamples=100)
    for text in (rendered(found), markdown(found)):
        assert "cross-fitted over 3 folds" in text
        assert "failures = their fold's training mean (5.00 to 7.00)" in text


def test_markdown_tables_have_as_many_cells_in_every_line(two_judges: Evaluation) -> None:
    for block in markdown(two_judges).split("## ")[1:]:
        counts = {line.count("|") for line in block.splitlines() if line.startswith("|")}
        assert len(counts) == 1
