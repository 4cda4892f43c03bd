"""The page of stories in a real browser, offline: everything of a story can be read, found and reached, and nothing in it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from report_builders import BREAKOUT, SCRIPT, scored_run, talkative, told_samples

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.rehearsal.folder import Filtered, Response, Round, Trace, read_traces
from perse.rehearsal.reporting.report import write_report

pytestmark = pytest.mark.integration

FEW = ("onlysum", "sum-perchan", "rehearsal")
SAMPLES = 6


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scored_run(tmp_path_factory.mktemp("run"), told_samples(SAMPLES), methods=FEW)[1]


@pytest.fixture(scope="module")
def made(run: Path) -> Path:
    from perse.rehearsal.samples import read_samples

    given = read_samples(run.parent / "data")
    return write_report(given, run, run.parent / "report", name="scored", resamples=100, seed=0)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    given, run = scored_run(folder, told_samples(3, spice=BREAKOUT), methods=FEW, cast=talkative(spice=BREAKOUT))
    return write_report(given, run, folder / "report", name="scored", resamples=100, seed=0, title=f"A title {BREAKOUT}")


def wait_for_count(page: Any, words: str) -> None:
    page.locator("#sample-count", has_text=words).wait_for()


def opened(page: Any, name: str) -> Any:
    page.locator("#sample-table .opens", has_text=name).first.click()
    page.wait_for_selector("dialog[open] .cards")
    return page.locator("dialog[open]")


def unfold(dialog: Any) -> None:
    for one in dialog.locator("details").all():
        one.evaluate("element => { element.open = true; }")


def revised(run: Path) -> Trace:
    """One whose suggestions were sent back once at least."""
    return next(
        trace
        for trace in read_traces(run)["rehearsal"].values()
        if trace.suggestions is not None and len(trace.suggestions.turns) > 1
    )


def test_an_opened_story_tells_every_step(visit: Any, made: Path, run: Path) -> None:
    trace = revised(run)
    page = visit(made)
    dialog = opened(page, trace.sample)
    unfold(dialog)
    words = dialog.inner_text()
    assert trace.general is not None and trace.summary is not None and trace.general in words and trace.summary in words
    assert f"Practice: {len(trace.practice)} rounds" in words
    assert trace.suggestions is not None
    for turn in trace.suggestions.turns:
        assert turn.verdict is not None and turn.verdict.thought in words and turn.verdict.recommendations in words
    for number, version in enumerate(trace.versions, start=1):
        assert version.score is not None
        assert f"Version {number}: score {version.score:.1f}" in words
    assert f"version {trace.kept} kept" in words and "removed" in words and "chosen for the rewriting" in words
    assert dialog.locator(".past.away").count() == len(trace.filtered.removed if trace.filtered else ()) + 6


def test_differences_are_marked_and_both_texts_can_be_read_from_them(visit: Any, made: Path, run: Path) -> None:
    trace = revised(run)
    page = visit(made)
    dialog = opened(page, trace.sample)
    rewritings = dialog.locator("details", has_text="Rewritings").locator("article")
    before = trace.general
    for number, version in enumerate(trace.versions):
        text = rewritings.nth(number).locator("p.text")
        parts = text.evaluate("element => [...element.childNodes].map((one) => [one.nodeName, one.textContent])")
        assert "".join(words for name, words in parts if name != "DEL") == version.summary
        if "a new text" not in rewritings.nth(number).locator("h5").inner_text():
            assert "".join(words for name, words in parts if name != "INS") == before
        before = version.summary
    assert dialog.locator("ins").count() and dialog.locator("del").count()


def test_another_method_of_the_same_sample_is_one_choice_away(visit: Any, made: Path, run: Path) -> None:
    page = visit(made)
    dialog = opened(page, "s2")
    dialog.locator("[name=story-method]").select_option(label="OnlySum")
    dialog.locator("h4", has_text="The summary: OnlySum").wait_for()
    assert dialog.locator("summary", has_text="Practice").count() == 0
    summary = read_traces(run)["onlysum"]["s2"].summary
    assert summary is not None and summary in dialog.inner_text()
    page.get_by_role("button", name="Next", exact=True).click()
    page.locator("#opened-title", has_text="s3").wait_for()
    assert dialog.locator("h4", has_text="The summary: OnlySum").count() == 1
    unfold(dialog)
    dialog.locator("article", has_text=read_traces(run)["rehearsal"]["s3"].summary or "").last.wait_for()
    dialog.get_by_role("button", name="Rehearsal", exact=True).click()
    dialog.locator("h4", has_text="The summary: Rehearsal").wait_for()
    assert page.evaluate("document.activeElement.id") == "opened-title"


def test_a_search_looks_where_it_is_told_and_in_the_method_that_is_shown(visit: Any, made: Path, run: Path) -> None:
    page = visit(made)
    traces = read_traces(run)["rehearsal"].values()
    page.fill("[name=search]", "never speaks of that")
    sent_back = [t for t in traces if "never speaks of that" in t.model_dump_json()]
    wait_for_count(page, f"{len(sent_back)} of {SAMPLES} samples")
    page.select_option("[name=where]", "reviews")
    wait_for_count(page, f"0 of {SAMPLES} samples")
    page.select_option("[name=where]", "supervisor")
    wait_for_count(page, f"{len(sent_back)} of {SAMPLES} samples")
    page.select_option("#sample-filters [name=method]", label="OnlySum")
    wait_for_count(page, f"0 of {SAMPLES} samples")
    page.get_by_role("button", name="Show all").click()
    wait_for_count(page, f"{SAMPLES} of {SAMPLES} samples")
    assert page.locator("#sample-filters [name=method]").evaluate("one => one.selectedOptions[0].textContent") == "Rehearsal"
    page.fill("[name=search]", "u4")
    wait_for_count(page, f"1 of {SAMPLES} samples")


def test_what_was_found_is_marked_and_unfolded_in_the_story(visit: Any, made: Path, run: Path) -> None:
    page = visit(made)
    words = "NEVER speaks of"
    page.fill("[name=search]", words)
    page.locator("#search-progress").wait_for(state="hidden")
    sent_back = next(t for t in read_traces(run)["rehearsal"].values() if any(len(one.turns) > 1 for one in t.practice))
    dialog = opened(page, sent_back.sample)
    assert dialog.locator("mark").count() == sent_back.model_dump_json().count("never speaks of")
    assert dialog.locator("mark").first.inner_text() == "never speaks of" and dialog.locator("mark").first.is_visible()
    assert dialog.locator("details:not([open]) mark").count() == 0


def test_samples_can_be_filtered_and_put_in_order_by_the_difference_to_another_method(visit: Any, made: Path) -> None:
    page = visit(made)
    page.select_option("#sample-filters [name=category]", label="Picks")
    wait_for_count(page, f"{SAMPLES // 2} of {SAMPLES} samples")
    page.select_option("#sample-filters [name=category]", "")
    page.select_option("#sample-filters [name=passed]", "no")
    assert all("not passed" in row for row in page.locator("#sample-table tbody tr:has(.opens)").all_inner_texts())
    page.select_option("#sample-filters [name=passed]", "")
    assert page.locator("option[value=less]").is_disabled()
    page.select_option("[name=minus]", label="OnlySum")
    page.select_option("[name=order]", "less")
    differences = [float(row.split("\t")[5]) for row in page.locator("#sample-table tbody tr").all_inner_texts()]
    assert len(differences) == SAMPLES and differences == sorted(differences)


def test_rounds_under_the_personal_judge_are_told(visit: Any, tmp_path: Path) -> None:
    given, run = scored_run(tmp_path, told_samples(2), methods=("onlysum",))
    traces = read_traces(run)["onlysum"]
    said = Response(analysis="I like quiet", suggestions="say more of noise")
    with (run / "traces.jsonl").open("a", encoding="utf-8") as file:
        for name, one in traces.items():
            rounds = (
                Round(
                    suggestions=said,
                    filtered=Filtered(removed=(2,), history=1),
                    summary=f"Well. {one.summary}",
                    preferred=0.62,
                    stands=True,
                ),
                Round(suggestions=said, summary=f"Well. {one.summary} Indeed.", preferred=0.4, order_gap=0.1),
                Round(suggestions=said, summary=f"Well. {one.summary}", preferred=0.5),
            )
            ours = Trace(sample=name, method="personal", summary=one.summary, general=one.general, rounds=rounds)
            file.write(ours.model_dump_json(exclude_defaults=True) + "\n")
    page = visit(write_report(given, run, tmp_path / "report", name="scored", resamples=100, seed=0))
    assert "1 of 3 rounds stood" in page.locator("#sample-table").inner_text()
    words = opened(page, "s1").inner_text()
    assert "The personal judge: 3 rounds, 1 stood" in words
    assert "Round 1: the reader would rather have it with 62%, stands" in words
    assert "Round 2: the reader would rather have it with 40%, does not stand" in words and "order gap 0.10" in words
    assert "Round 3: the rewriting changes nothing" in words
    assert page.locator("dialog ins").all_inner_texts() == ["Well. ", " Indeed."]


def test_everything_of_a_story_can_be_done_by_keyboard(visit: Any, made: Path) -> None:
    page = visit(made)
    page.locator(".opens").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .cards")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    folded = page.evaluate("document.activeElement.parentElement.open")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") != folded
    page.keyboard.press("Escape")
    page.locator(".opens:focus", has_text="s2").wait_for()


def test_hostile_reviews_and_answers_show_as_text(visit: Any, hostile: Path) -> None:
    page = visit(hostile)
    for place in ("h1", "#sample-table", "#lead", "#manifest"):
        assert SCRIPT in page.locator(place).first.text_content()
    page.locator("#sample-table .opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    dialog = page.locator("dialog[open]")
    unfold(dialog)
    assert dialog.inner_text().count(SCRIPT) > 20
    for method in ("OnlySum", "Sum+PerChan"):
        dialog.locator("[name=story-method]").select_option(label=method)
        dialog.locator("h4", has_text=f"The summary: {method}").wait_for()
    page.keyboard.press("Escape")
    page.fill("[name=search]", SCRIPT)
    page.locator("#search-progress").wait_for(state="hidden")
    wait_for_count(page, "3 of 3 samples")
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0 and page.locator("script").count() == page.locator("body > script").count()


def test_a_mark_that_turns_letters_round_turns_nothing_but_its_own_text(visit: Any, hostile: Path) -> None:
    """The names that a line is made of stand each by itself, so that what is behind them is not written backwards."""
    page = visit(hostile)
    page.locator("#sample-table .opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    about = page.locator("dialog .about").first
    names = about.evaluate("one => [...one.childNodes].map((node) => [node.nodeName, node.textContent.includes('\\u202e')])")
    assert any(turns for _, turns in names)
    assert all(name == "BDI" for name, turns in names if turns)
    title = page.locator("#opened-title").evaluate("one => [...one.childNodes].map((node) => node.nodeName)")
    assert title == ["#text", "BDI"]


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_page_and_story_are_as_wide_as_the_screen(visit: Any, made: Path, hostile: Path, width: int, colours: str) -> None:
    for path in (made, hostile):
        page = visit(path, viewport={"width": width, "height": 740}, color_scheme=colours)
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
        page.locator("#sample-table .opens").first.click()
        page.wait_for_selector("dialog[open] .cards")
        unfold(page.locator("dialog"))
        assert page.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
