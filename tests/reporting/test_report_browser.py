"""The page in a real browser, offline: quick to open, usable by keyboard, readable anywhere, deaf to what texts say."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from page_builders import BREAKOUT, LABELS, made_page, pair_answers, pair_examples, score_answers, score_examples

from perse.reporting.page import render_page
from perse.reporting.samples import pack_samples

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(made_page(200)), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def spiced(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("spiced")
    made = {}
    for kind in ("scores", "pairs"):
        made[kind] = folder / f"{kind}.html"
        made[kind].write_text(render_page(made_page(spice=BREAKOUT, pairs=kind == "pairs")), encoding="utf-8")
    return made


def count(page: Any) -> str:
    return str(page.locator("#sample-count").inner_text())


def wait_for_count(page: Any, words: str) -> None:
    page.locator("#sample-count", has_text=words).wait_for()


def test_ten_thousand_samples_show_one_page_and_can_be_searched(visit: Any, tmp_path: Path) -> None:
    path = tmp_path / "large.html"
    path.write_text(render_page(made_page(10_000, judges=1)), encoding="utf-8")
    page = visit(path)
    assert page.locator("#sample-table tbody tr").count() == 50
    assert count(page) == "10,000 of 10,000 samples"
    page.fill("[name=search]", "r77-3")
    wait_for_count(page, "1 of 10,000 samples")


def test_everything_can_be_done_by_keyboard(visit: Any, made: Path) -> None:
    page = visit(made)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    for _ in range(100):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.name") == "search":
            break
    page.keyboard.type("r3-4")
    wait_for_count(page, "1 of 200 samples")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.className") == "opens":
            break
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open] .cards")
    assert page.locator("#opened-title").inner_text() == "Sample r3-4"
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog:not([open])", state="attached")
    page.locator(".opens:focus", has_text="r3-4").wait_for()


def test_arrows_go_from_row_to_row_and_next_from_sample_to_sample(visit: Any, made: Path) -> None:
    page = visit(made)
    page.locator(".opens").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    assert page.locator("#opened-title").inner_text() == "Sample r0-1"
    page.get_by_role("button", name="Next", exact=True).click()
    page.locator("#opened-title", has_text="r0-2").wait_for()
    page.keyboard.press("Escape")
    page.locator(".opens:focus", has_text="r0-2").wait_for()


def test_an_opened_sample_shows_what_was_asked_and_answered(visit: Any, made: Path) -> None:
    page = visit(made)
    page.locator(".opens").first.click()
    opened = page.locator("dialog[open]")
    opened.wait_for()
    words = opened.inner_text()
    for part in (
        "New text",
        "What the reader wrote",
        "What it wrote",
        "Profile: 3 for the judge; the cards say how many fitted",
        "prompt tokens",
    ):
        assert part in words
    assert opened.locator(".bars").count() == 2
    assert opened.locator(".bars").first.locator("tbody tr").count() == 10
    assert opened.locator(".bars").first.locator("tr", has_text="reader").count() == 1


def test_a_profile_is_shown_to_whom_it_was_shown(visit: Any, tmp_path: Path) -> None:
    examples = score_examples(8)
    bare = {example.id: example.model_copy(update={"profile": ()}) for example in examples}
    answers = {"full": score_answers(examples), "bare": score_answers(examples, seed=1)}
    samples = pack_samples(examples, answers, asked={"bare": bare}, labels=LABELS, most=10, seed=0)
    path = tmp_path / "report.html"
    path.write_text(render_page(replace(made_page(), samples=samples)), encoding="utf-8")
    page = visit(path)
    page.locator(".opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    assert page.locator("dialog summary").inner_text() == "Profile: 3 for full; the cards say how many fitted"
    _, full, bare_card = page.locator("dialog .card").all_inner_texts()
    assert "· 3 profile entries fitted" in full and "other profile" not in full
    assert "other profile, of which 3 entries fitted" in bare_card


def test_a_pair_of_which_neither_text_is_likelier_is_neither_right_nor_wrong(visit: Any, tmp_path: Path) -> None:
    examples = pair_examples()
    answers = pair_answers(examples)
    for example, shares in zip(examples[:2], ({"A": 0.5, "B": 0.5}, None), strict=True):
        answers[example.id] = answers[example.id].model_copy(update={"distribution": shares, "order_gap": 1.0})
    samples = pack_samples(examples, {"ours": answers}, labels=("A", "B"), most=10, seed=0)
    path = tmp_path / "report.html"
    path.write_text(render_page(replace(made_page(pairs=True), samples=samples)), encoding="utf-8")
    page = visit(path)
    for came, number in (("even", 2), ("wrong", 1), ("right", 0), ("none", 1)):
        page.select_option("#sample-filters [name=right]", came)
        wait_for_count(page, f"{number} of 4 samples")
    page.select_option("#sample-filters [name=right]", "even")
    assert page.locator("#sample-table tbody td:nth-of-type(4)").all_inner_texts() == ["neither", "neither"]
    page.locator(".opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    assert "· neither text likelier ·" in page.locator("dialog .card").nth(1).inner_text()


def test_the_words_of_a_search_are_marked_in_what_is_opened(visit: Any, made: Path) -> None:
    page = visit(made)
    page.fill("[name=search]", "harbour")
    page.locator("#search-progress").wait_for(state="hidden")
    page.locator("#sample-table .opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    marked = page.locator("dialog mark").all_inner_texts()
    assert marked and all(words.lower() == "harbour" for words in marked)
    whole = page.locator("dialog .text").evaluate_all("all => all.map((one) => one.textContent).join(' ')")
    assert len(marked) == whole.lower().count("harbour")


def test_filters_narrow_and_reset_shows_all(visit: Any, made: Path) -> None:
    page = visit(made)
    page.select_option("#sample-filters [name=status]", label="unparsed")
    assert count(page) == "4 of 200 samples"
    page.get_by_role("button", name="Show all").click()
    wait_for_count(page, "200 of 200 samples")
    page.fill("[name=error-from]", "2")
    page.fill("[name=gold-to]", "3")
    shown = page.locator("#sample-table tbody tr").all_inner_texts()
    assert shown
    for row in shown:
        _, _, gold, _, _, error, status = row.split("\t")
        assert int(gold) <= 3
        assert float(error) >= 2
        assert status == "ok"
    page.select_option("[name=order]", "worst")
    errors = [float(row.split("\t")[5]) for row in page.locator("#sample-table tbody tr").all_inner_texts()]
    assert errors == sorted(errors, reverse=True)
    page.fill("[name=reviewer]", "nobody")
    assert count(page) == "0 of 200 samples"


def test_pages_of_fifty_follow_each_other(visit: Any, made: Path) -> None:
    page = visit(made)
    page.locator("#sample-pages button", has_text="Next page").click()
    assert page.locator(".opens").first.inner_text() == "r6-2"
    assert "Page 2 of 4" in page.locator("#sample-pages").inner_text()


def test_failures_show_what_was_written(visit: Any, made: Path) -> None:
    page = visit(made)
    page.locator("#failures li").first.wait_for()
    assert page.locator("#failure-count").inner_text() == "8 of 8 failures"
    assert "no score in what it wrote" in page.locator("#failures li").first.inner_text()
    page.select_option("#failure-filters [name=judge]", label="judge 1")
    page.locator("#failure-count", has_text="4 of 8 failures").wait_for()


@pytest.mark.parametrize("kind", ["scores", "pairs"])
def test_a_planted_script_shows_as_text(visit: Any, spiced: dict[str, Path], kind: str) -> None:
    page = visit(spiced[kind])
    planted = "<script>window.hacked=1</script>"
    for place in ("h1", ".verdict", "#numbers table", ".study", "#sample-table", "#manifest"):
        assert planted in page.locator(place).first.text_content()
    page.locator("#failures li").first.wait_for()
    assert planted in page.locator("#failures").inner_text()
    page.locator(".opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    opened = page.locator("dialog[open]").inner_text()
    assert opened.count(planted) >= 5
    page.keyboard.press("Escape")
    page.fill("[name=search]", planted)
    page.locator("#search-progress").wait_for(state="hidden")
    assert page.locator(".opens").count() > 0
    assert page.evaluate("window.hacked") is None
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_is_as_wide_as_the_screen(visit: Any, made: Path, width: int, colours: str, tmp_path: Path) -> None:
    page = visit(made, viewport={"width": width, "height": 740}, color_scheme=colours)
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")
    page.locator(".opens").first.click()
    page.wait_for_selector("dialog[open] .cards")
    page.screenshot(path=tmp_path / "opened.png")
    assert page.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (colours == "dark")


def test_long_names_do_not_widen_a_phone(visit: Any, spiced: dict[str, Path]) -> None:
    page = visit(spiced["pairs"], viewport={"width": 360, "height": 740})
    assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


def test_the_toggle_goes_from_system_to_light_to_dark(visit: Any, made: Path) -> None:
    page = visit(made)
    seen = []
    for _ in range(3):
        page.locator("#theme").click()
        seen.append((page.locator("#theme").inner_text(), page.evaluate("document.documentElement.dataset.theme || ''")))
    assert seen == [("Colours: light", "light"), ("Colours: dark", "dark"), ("Colours: as the system", "")]


def test_on_paper_the_guide_is_open_and_controls_are_gone(visit: Any, made: Path) -> None:
    page = visit(made, color_scheme="dark")
    page.emulate_media(media="print")
    assert not page.locator("#sample-filters").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
