"""The page and tables of a KGDS report, of Results made by hand: the paper's cells, what is marked, and nothing that breaks out."""

from __future__ import annotations

import os
import shutil
import stat
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest
from kgds_builders import two_samples, write_benchmark_file
from results_builders import delta, estimate, many, results, scores, shares
from typer import Typer
from typer.testing import CliRunner

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.commands.kgds.report import report
from perse.errors import BadInput
from perse.kgds.reporting.finer import cost_table, count_tables, difference_tables, interval_tables, win_rate_table
from perse.kgds.reporting.report import write_report
from perse.kgds.reporting.tables import PaperCell, markdown, probable_errors, table_1, table_2
from perse.kgds.reporting.telling import kgds_result
from perse.kgds.scoring.results import Average, Cost, Delta, Difference, Errors, MeanWinRate, Refused, Results, SampleScores
from perse.results.result import Estimate, Interval, Result

BREAKOUT = '</script><!--"\'>\u2028<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_a_report_holds_page_tables_numbers_and_figures_and_is_the_same_again(tmp_path: Path) -> None:
    given = many(["a", "b"], paradigms=["structured"])
    page = write_report(given, tmp_path / "deep" / "report", title="Two & more")
    first = files_of(page.parent)
    assert page.name == "report.html" and {"report.html", "results.json", "tables.md"} < set(first)
    assert len([name for name in first if name.startswith("figures")]) == 30
    assert Results.model_validate(Result.model_validate_json(first["results.json"]).details) == given
    assert "<h1>Two &amp; more</h1>" in page.read_text(encoding="utf-8")
    assert write_report(given, page.parent, title="Two & more") == page
    assert files_of(page.parent) == first


@pytest.mark.slow
def test_a_key_in_a_title_is_in_no_file_of_the_report(tmp_path: Path) -> None:
    title = "see http://me:hunter2pass@h.com/x?api_key=ABCDEFGH12345"
    page = write_report(many(["a"]), tmp_path / "report", title=title, manifest={"title": title})
    assert "see http://***@h.com/x?api_key=***" in page.read_text(encoding="utf-8")
    for name, content in files_of(page.parent).items():
        assert b"hunter2pass" not in content and b"ABCDEFGH12345" not in content, name


@pytest.mark.slow
def test_a_page_fetches_nothing_and_runs_its_own_script_alone(tmp_path: Path) -> None:
    elements = Elements(write_report(many(["a", "b"]), tmp_path / "report").read_text(encoding="utf-8")).found
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed", "base", "form")]
    addresses = [value for _, given in elements for name, value in given.items() if name in ("src", "href", "xlink:href")]
    assert addresses and all(value and value.startswith(("#", "data:text/csv")) for value in addresses)
    policy = next(given["content"] for _, given in elements if given.get("http-equiv") == "Content-Security-Policy") or ""
    assert "default-src 'none'" in policy and "unsafe" not in policy.partition("script-src")[2].partition(";")[0]


@pytest.mark.slow
def test_names_notes_and_reasons_make_no_elements(tmp_path: Path) -> None:
    def counted(spice: str) -> dict[str, int]:
        failed = (SampleScores(sample=1, values={}, failed=f"no JSON {spice}"),)
        given = results(
            scores(f"a{spice}", samples=failed, failed=1),
            scores("b"),
            notes=(f"left out {spice}",),
            left_out={f"a{spice}": (3,)},
        )
        page = write_report(given, tmp_path / str(len(spice)), title=f"title {spice}").read_text(encoding="utf-8")
        tags = [tag for tag, _ in Elements(page).found]
        assert "onerror" not in {name for _, attributes in Elements(page).found for name in attributes}
        return {
            tag: tags.count(tag) for tag in sorted(set(tags)) if tag not in ("g", "text", "use", "path", "defs", "clippath")
        }

    assert counted(BREAKOUT) == counted("")


def test_table_1_sets_reflection_beside_the_structured_value() -> None:
    given = results(
        scores("up"),
        scores("up", paradigm="reflection"),
        scores("down"),
        scores("same"),
        deltas=(delta("up", "ebs-aos", 1.56),),
    )
    given = given.model_copy(
        update={"deltas": (*given.deltas, delta("down", "ebs-aos", -7.72), delta("same", "ebs-aos", -0.001))}
    )
    table = table_1(given)
    assert table.groups == (("EBS-AOS", ("BSP R", "BSP P", "BSP F1", "CAO R", "OP")),)
    assert {name: cells[0] for name, cells in table.rows} == {
        "up": PaperCell("80.00", "↑1.56"),
        "down": PaperCell("80.00", "↓7.72"),
        "same": PaperCell("80.00", "→0.00"),
    }


def test_reflection_alone_is_a_value_of_its_own_and_no_change() -> None:
    table = table_1(results(scores("a", "ebs-aos", "reflection"), scores("a", "abs-aos", start=60), scores("b", start=70)))
    names = [name for name, _ in table.rows]
    assert names == ["a, reflection alone", "a", "b"]
    reflected, structured, _ = (cells for _, cells in table.rows)
    assert reflected[0] == PaperCell("80.00") and reflected[5] is None
    assert structured[0] is None and structured[5] == PaperCell("60.00")


def test_the_best_three_are_marked_in_f1_cao_and_op_alone() -> None:
    # Starts 90, 80, 70, 70, 60: the third place is shared, so four are marked.
    rows = [scores(name, start=start) for name, start in (("a", 70), ("b", 90), ("c", 60), ("d", 80), ("e", 70))]
    marked = {name: [cell.best for cell in cells if cell] for name, cells in table_1(results(*rows)).rows}
    assert marked.pop("c") == [False] * 5
    assert set(map(tuple, marked.values())) == {(False, False, True, True, True)}


def test_of_three_models_none_is_marked_and_a_missing_value_has_no_place() -> None:
    rows = [scores(name, start=start) for name, start in (("a", 70), ("b", 90), ("c", 60))]
    table = table_1(results(*rows, scores("d", values={"op": estimate(None)})))
    assert not any(cell.best for _, cells in table.rows for cell in cells if cell)
    assert table.rows[3][1][3:] == (None, PaperCell("undefined"))


def test_reflection_is_not_placed_among_structured_prompts() -> None:
    rows = [scores(name, start=start) for name, start in (("a", 70), ("b", 65), ("c", 60), ("d", 55))]
    table = table_1(results(*rows, scores("e", paradigm="reflection", start=99)))
    assert [name for name, cells in table.rows if cells[4] and cells[4].best] == ["a", "b", "c"]


def test_table_2_has_shares_and_their_changes_in_the_papers_order() -> None:
    changes = Delta(model="a", pattern="ebs-aos", values={}, errors=shares(1.09, -0.88, 2.8, -2.09, -0.92))
    table = table_2(results(scores("a"), scores("a", paradigm="reflection"), scores("b", errors=None), deltas=(changes,)))
    assert table.groups == (("EBS-AOS", ("OFI", "OSD", "IRU", "IRIC", "OM")),)
    cells = [(cell.value, cell.beside) for cell in table.rows[0][1] if cell]
    assert cells == [("8.57", "↑1.09"), ("6.19", "↓0.88"), ("26.67", "↑2.80"), ("55.71", "↓2.09"), ("2.86", "↓0.92")]
    assert table.rows[1] == ("b", (None,) * 5)


def test_beside_how_opinions_went_wrong_it_is_said_under_which_type_those_left_out_count() -> None:
    given = results(scores("a"), scores("a", "abs-aos"))
    errors = [table for table in kgds_result(given).tables if "why opinions are not covered" in table.title]
    assert len(errors) == 2
    for table in (*errors, table_2(given)):
        (said,) = (note for note in table.notes if "leaves out" in note)
        assert "`perse kgds errors` counts under IRU those that the summary leaves out altogether." in said


def test_errors_by_probability_are_shown_where_they_are_known() -> None:
    assert probable_errors(results(scores("a"))) is None
    sure = Errors(classified=2, uncovered=2, shares=shares(100, 0, 0, 0, 0), probable=shares(60, 10, 10, 10, 10))
    table = probable_errors(results(scores("a", errors=sure), scores("b"), scores("a", "abs-aos")))
    assert table is not None and [name for name, _ in table.rows] == ["a, structured"]
    assert table.rows[0][1] == (PaperCell("60.00"), *[PaperCell("10.00")] * 4, *[None] * 5)


def test_markdown_keeps_names_harmless_and_the_best_bold() -> None:
    rows = [scores(name, start=start) for name, start in (("a|b\n*c*<i>", 90), ("b", 80), ("c", 70), ("d", 60))]
    text = markdown([table_1(results(*rows, deltas=(delta("b", "ebs-aos", 1.5),)))])
    assert "| a\\|b \\*c\\*&lt;i\\> | 90.00 | 89.00 | **88.00** | **87.00** | **86.00** |" in text
    assert "| b | 80.00 ↑1.50 | 79.00 ↑1.50 | **78.00** ↑1.50 | **77.00** ↑1.50 | **76.00** ↑1.50 |" in text
    assert "| d | 60.00 | 59.00 | 58.00 | 57.00 | 56.00 |" in text


@pytest.mark.slow
def test_counts_and_failures_are_told(tmp_path: Path) -> None:
    bad = (SampleScores(sample=2, values={}, failed="not JSON"), SampleScores(sample=5, values={}))
    given = results(
        scores("a", failed=1, unanswered=4, strange=7, samples=bad),
        scores("a", "abs-aos"),
        left_out={"a": (61, 62, 63, 70), "": (99,)},
        notes=("left out: see `below`",),
    )
    counted, left = count_tables(given)
    share = counted.rows[0][5]
    assert counted.rows[0] == ("a", "EBS-AOS", "structured", "2", "1", share, "4", "7", "0", "211", "210")
    assert isinstance(share, Estimate) and share.value == 50
    assert share.interval.low == pytest.approx(100 * (1 - 0.975**0.5))  # 0.025 = 1 - (1 - p)^2
    assert counted.rows[1][7] is None  # nothing is cited under ABS-AOS
    assert left.rows == (("a", "4", "samples 61 to 63, 70"), ("everybody", "1", "sample 99"))
    page = write_report(given, tmp_path / "report").read_text(encoding="utf-8")
    assert "What failed, and what is left out" in page and "<td>not JSON</td>" in page
    assert "<dd>60 of 65 samples</dd>" in page and "<li>left out: see <code>below</code></li>" in page


@pytest.mark.slow
def test_many_notes_are_folded_away_and_stay_escaped(tmp_path: Path) -> None:
    given = results(scores("a"), notes=tuple(f"note <b>{n}</b>" for n in range(7)))
    page = write_report(given, tmp_path / "report").read_text(encoding="utf-8")
    assert "<summary>7 notes on what is left out or missing</summary>" in page
    assert "<li>note &lt;b&gt;6&lt;/b&gt;</li>" in page


def test_the_highest_of_structured_prompts_is_said_to_be_that_where_reflection_may_be_higher() -> None:
    by = "under EBS-AOS, by the structured prompt where a model has one, whatever reflection makes of it: a, "
    answer = kgds_result(many(["a", "b"])).answer
    assert by in answer and "none of the 60 summaries of a so asked failed" in answer
    assert "structured prompt" not in kgds_result(many(["a", "b"], paradigms=["structured"])).answer


def test_no_failure_in_so_many_samples_is_said_to_leave_some_possible() -> None:
    # Of none in 60 the exact interval ends where 0.025 = (1 - p)^60: 6.0%. With a failure seen, resamples know of it.
    failing = scores("b", failed=1, start=60.0)
    told = kgds_result(results(scores("a"), failing))
    assert told.answer == (
        "Highest overall performance (OP) under EBS-AOS: a, 76.00 [73.50, 78.50] (picked as the highest of 2, which flatters it); none of the 60 summaries of a failed, up to 6.0% of others may."
    )
    tables = {table.title: table for table in told.tables}
    assert (
        tables["EBS-AOS with intervals"]
        .notes[0]
        .startswith("No summary failed of a, structured: in other samples up to 6.0% may")
    )
    counted = tables["What was counted"]
    share = counted.rows[0][counted.header.index("in percent")]
    assert isinstance(share, Estimate) and share.value == 0 and share.interval.high == pytest.approx(100 * (1 - 0.025**0.5))
    only = kgds_result(results(failing))
    assert "failed" not in only.answer and not {t.title: t for t in only.tables}["EBS-AOS with intervals"].notes


@pytest.mark.parametrize(("low", "told"), [(1.0, ""), (-1.0, ", not shown to be higher")])
def test_the_highest_stands_beside_the_next_with_their_difference(low: float, told: str) -> None:
    def minus(one: str, other: str, value: float, *ends: float) -> Difference:
        apart = Estimate(value=value, interval=Interval(low=ends[0], high=ends[1], resamples=100), items=60, difference=True)
        return Difference(model=one, minus=other, pattern="ebs-aos", paradigm="structured", values={"op": apart})

    rows = scores("low", start=60.0), scores("next", start=78.0), scores("high", start=80.0)
    apart = (
        minus("low", "next", -18.0, -20.0, -16.0),
        minus("low", "high", -20.0, -22.0, -18.0),
        minus("next", "high", -2.0, -5.0, -low),
    )
    answer = kgds_result(results(*rows, differences=apart)).answer
    assert (
        f"OP) under EBS-AOS: high, 76.00 [73.50, 78.50] (picked as the highest of 3, which flatters it); minus the next, next, +2.00 [{low:.2f}, 5.00]{told}; none of"
        in answer
    )
    assert "minus the next" not in kgds_result(results(*rows)).answer


def test_the_mean_size_of_changes_is_said_to_be_above_0_by_chance_too() -> None:
    [table] = [one for one in interval_tables(many(["a", "b"])) if one.title == "Reflection minus structured"]
    assert "The mean size is above 0 of changes that are chance, too." in table.notes
    [alone] = [one for one in interval_tables(many(["a"])) if one.title == "Reflection minus structured"]
    assert len(alone.notes) == 1


def test_intervals_stand_in_tables_of_their_own() -> None:
    found = {table.title: table for table in interval_tables(many(["a"]))}
    assert list(found) == ["EBS-AOS with intervals", "ABS-AOS with intervals", "Both patterns", "Reflection minus structured"]
    assert found["EBS-AOS with intervals"].header[-1] == "retrieved" != found["ABS-AOS with intervals"].header[-1]
    assert found["Both patterns"].rows[0] == ("a", "structured", estimate(21.0), estimate(70.5))


@pytest.mark.slow
def test_the_lead_prints_values_and_concludes_nothing(tmp_path: Path) -> None:
    page = write_report(many(["a", "b"], paradigms=["structured"]), tmp_path / "two").read_text(encoding="utf-8")
    assert (
        "Highest overall performance (OP) under EBS-AOS: a, 81.00 [78.50, 83.50] (picked as the highest of 2, which flatters it); none of the 60 summaries of a failed, up to 6.0% of others may."
        in page
    )
    assert (
        "<strong>b</strong>: overall performance 78.50 [76.00, 81.00] under EBS-AOS, 58.00 [55.50, 60.50] under ABS-AOS, "
        "68.25 [65.75, 70.75] on average." in page
    )
    assert "cannot be read from whether they overlap" in page and "significant" not in page
    alone = write_report(results(scores("a", values={})), tmp_path / "one").read_text(encoding="utf-8")
    assert "overall performance not known under EBS-AOS." in alone and "Highest" not in alone


def test_a_report_replaces_a_report_and_nothing_else(tmp_path: Path) -> None:
    given = results(scores("a"))
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "results.json").write_text('{"mine": 1}')
    (tmp_path / "file").write_text("")
    for name, words in (("letters", "holds no KGDS report"), ("other", "holds no KGDS report"), ("file", "is a file")):
        with pytest.raises(BadInput, match=f"{name} .*{words}"):
            write_report(given, tmp_path / name)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "letters", "one.txt", "other", "results.json"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(BadInput, match="cannot make the report folder"):
        write_report(results(scores("a")), tmp_path / "report")


def test_the_command_writes_a_report_of_runs(tmp_path: Path) -> None:
    """Of the authors' layout: extracted paragraphs alone, so that nothing but the background is known."""
    app = Typer()
    app.command("report")(report)
    folder = tmp_path / "outputs" / "paradigms" / "ebs-aos" / "structured-prompt" / "somebody"
    folder.mkdir(parents=True)
    for number, _ in enumerate(two_samples(), start=1):
        (folder / f"{number}.result.json").write_text('{"Extractive_Background_Summary": ["<Paragraph_1>"]}')
    given = [str(write_benchmark_file(tmp_path)), str(tmp_path / "outputs"), "--out", str(tmp_path / "report")]
    result = CliRunner().invoke(app, [*given, "--resamples", "100"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert result.stdout.strip() == str(tmp_path / "report" / "report.html")
    found = Results.model_validate(Result.model_validate_json((tmp_path / "report" / "results.json").read_bytes()).details)
    assert [one.model for one in found.scores] == ["somebody"] and found.resamples == 100


def averaged(value: float, change: float) -> Results:
    rows = [scores("a", start=80), scores("b", start=70)]
    return results(
        *rows,
        averages=(Average(pattern="ebs-aos", paradigm="structured", models=2, values={"f1": estimate(value)}),),
        deltas=(delta("a", "ebs-aos", change), delta("b", "ebs-aos", -2 * change)),
    )


def test_table_1_ends_with_the_mean_over_models_and_the_mean_size_of_the_changes() -> None:
    table = table_1(averaged(75.5, 1.0))
    assert [name for name, _ in table.rows] == ["a", "b", "mean of 2 models"]
    # Changes of +1 and -2 are 1.5 points in size on average, though -0.5 in the mean.
    assert table.rows[2][1] == (None, None, PaperCell("75.50", "↕1.50"), None, None)
    assert any("mean size of these changes, over the models that were asked both ways." in note for note in table.notes)
    intervals, changes = interval_tables(averaged(75.5, 1.0))
    assert intervals.rows[2][:2] == ("mean of 2 models", "structured") and intervals.breaks == (2,)
    assert changes.rows[2][:5] == ("mean size, up or down", "EBS-AOS", "1.50", "1.50", "1.50")


def test_no_change_does_not_look_like_a_margin_of_error() -> None:
    text = markdown([table_1(averaged(25, 0.0))])
    assert "→0.00" in text and "±" not in text


def test_differences_of_many_models_are_a_finer_table_and_of_few_are_shown() -> None:
    def between(names: str) -> Results:
        pairs = [
            Difference(model=one, minus=other, pattern="ebs-aos", paradigm="structured", values={"op": estimate(1.0)})
            for one, other in combinations(names, 2)
        ]
        return results(*map(scores, names), differences=tuple(pairs))

    [few], [many_rows] = difference_tables(between("abcd")), difference_tables(between("abcde"))
    assert (len(few.rows), few.detail) == (6, False) and (len(many_rows.rows), many_rows.detail) == (10, True)


def test_costs_of_many_runs_are_summed_by_model_and_over_all() -> None:
    def cost(model: str, what: str, *, price: float | None) -> Cost:
        return Cost(
            model=model, pattern="ebs-aos", paradigm="structured", what=what, asked="gpt", questions=10, prompt=1000, cached=250,
            generated=20, cost=price,
        )  # fmt: skip

    costs = [cost("a", "opinions", price=0.5), cost("a", "opinions", price=0.25), cost("b", "errors", price=0.25)]
    table = cost_table(results(scores("a"), scores("b"), costs=tuple(costs)))
    assert table is not None and table.rows == (
        ("a", "opinions", "gpt", "20", "2,000", "1,500", "40", "0.7500"),
        ("b", "errors", "gpt", "10", "1,000", "750", "20", "0.2500"),
        ("all", "", "", "30", "3,000", "2,250", "60", "1.0000"),
    )
    unknown = cost_table(results(scores("a"), costs=(cost("a", "opinions", price=None),)))
    assert unknown is not None and unknown.rows[0][-1] is None and "unknown without prices" in unknown.notes[1]
    assert cost_table(results(scores("a"))) is None


def test_win_rates_stand_beside_how_far_the_two_orders_are_apart() -> None:
    by_place = many(["a"]).win_rates[0].model_copy(update={"order_gap": 1.0})
    table = win_rate_table(results(scores("a"), win_rates=(by_place,)))
    assert table is not None and table.header[-1] == "orders apart" and table.rows[0][-1] == "1.00"
    assert any("near 1 the judge goes by the place" in note for note in table.notes)


@pytest.mark.slow
def test_a_report_has_win_rates_averages_costs_and_what_is_left_out(tmp_path: Path) -> None:
    given = many(["a", "b"]).model_copy(
        update={
            "mean_win_rates": (MeanWinRate(second_turn=True, models=2, share=estimate(94.5)),),
            "costs": (
                Cost(
                    model="a",
                    pattern="ebs-aos",
                    paradigm="structured",
                    what="facts",
                    asked="gpt",
                    questions=7,
                    prompt=9,
                    cached=0,
                    generated=0,
                ),
            ),
            "refused": (Refused(model="c", pattern="ebs-aos", paradigm="structured", why="a file is missing"),),
        }
    )
    page = write_report(given, tmp_path / "report").read_text(encoding="utf-8")
    for words in (
        "94.50",
        "mean of 2 models",
        "second turn",
        "What it took",
        "a file is missing",
        "figure-3-experts-preferred",
    ):
        assert words in page


@pytest.mark.integration
@pytest.mark.parametrize(("width", "colours"), [(360, "light"), (1280, "dark")])
def test_the_page_works_in_a_browser_offline(tmp_path: Path, width: int, colours: str) -> None:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium on this machine")
    path = write_report(many([f"a{BREAKOUT}" + "long" * 60, "b", "c", "d"]), tmp_path / "report", title=BREAKOUT)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": width, "height": 740}, color_scheme=colours, offline=True)
        wrong: list[str] = []
        page.on("request", lambda request: None if request.url.startswith(("file://", "data:")) else wrong.append(request.url))
        page.on("console", lambda message: wrong.append(message.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        assert page.evaluate("window.hacked") is None and page.locator("img").count() == 0
        assert page.locator("h1").text_content() == BREAKOUT
        dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
        assert dark == (colours == "dark")
        page.locator("#theme").click()
        assert page.locator("#theme").inner_text() == "Colours: light"
        browser.close()
    assert wrong == []


def test_the_experts_share_is_told_as_an_average_over_samples() -> None:
    """`perse kgds stats` of the same file tells another share: of all paragraphs, where a long article counts more."""
    (note,) = [note for note in kgds_result(results(scores("a"))).notes if "supporting" in note]
    assert note.endswith("of a sample's paragraphs 32.50% are supporting on average")
