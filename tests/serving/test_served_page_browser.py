"""The page to try the judge with, in a real browser, against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.keys import add_key
from perse.serving.service import Model
from perse.settings.serving import Limits

pytestmark = pytest.mark.integration

HOSTILE = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>'
CONTRAST = """
() => {
  const light = (rgb) => rgb.match(/[\\d.]+/g).slice(0, 3).map((x) => { x /= 255; return x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4; })
    .reduce((sum, x, at) => sum + x * [0.2126, 0.7152, 0.0722][at], 0);
  const paper = (one) => { for (; one; one = one.parentElement) { const found = getComputedStyle(one).backgroundColor; if (!/, 0\\)$|transparent/.test(found)) return found; } return "rgb(255,255,255)"; };
  return [...document.querySelectorAll("h1,h2,p,label,button,th,td,textarea,summary,a")].filter((one) => one.offsetParent && one.textContent.trim() + one.value).map((one) => {
    const [a, b] = [light(getComputedStyle(one).color), light(paper(one))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), one.tagName + " " + one.textContent.slice(0, 20)];
  }).sort((x, y) => x[0] - y[0])[0];
}
"""


@pytest.fixture(scope="module")
def models(answering_model: Path) -> dict[str, Model]:
    return embedded_models("tiny", answering_model, {}, dtype="float32", context=2048)


@pytest.fixture
def serve(models: dict[str, Model], monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with ExitStack() as running:

        def start(**settings: Any) -> str:
            app = embedded_app(models, JudgeSettings(temperature=0, max_new_tokens=16), **settings)
            return running.enter_context(in_thread(app))

        yield start


@pytest.fixture
def visit(browser: Any, serve: Any) -> Iterator[Any]:
    """Open the page of a server; whatever it asks of others, or complains about, fails the test."""
    contexts, wrong = [], []

    def open_page(path: str = "/", *, served: dict[str, Any] | None = None, quiet: bool = False, **options: Any) -> Any:
        url = serve(**(served or {}))
        context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: None if request.url.startswith(url) else wrong.append(f"asked {request.url}"))
        # A refused request is a line in the console too, which a test of refusals expects.
        page.on("console", lambda said: wrong.append(said.text) if said.type in ("error", "warning") and not quiet else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(url + path)
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def bars(page: Any) -> dict[str, float]:
    page.wait_for_selector("#answer table")
    rows = page.locator("#answer tbody tr")
    return {row.locator("th").inner_text(): float(row.locator("td.share").inner_text().rstrip("%")) for row in rows.all()}


def test_a_sample_reader_is_judged_and_the_answer_stays_in_the_history(visit: Any) -> None:
    page = visit()
    page.select_option("#sample", index=1)
    page.click("#go")
    shares = bars(page)
    assert list(shares) == [str(n) for n in range(1, 11)] and abs(sum(shares.values()) - 100) < 1
    assert "Expected score" in page.inner_text("#answer") and "3 of the reader's past entries shown" in page.inner_text(
        "#answer"
    )
    page.fill("#query", "Another text.")
    page.click("#go")
    page.wait_for_selector("#history li:nth-child(2)")
    page.click("#history li:nth-child(2) button")
    assert bars(page) == shares, "the first answer again"


def test_what_is_no_answer_has_no_score(visit: Any) -> None:
    page = visit()
    shares = {str(n): 0.1 for n in range(1, 11)}
    told = {"status": "unparsed", "error": "no label", "distribution": shares, "expected": 5.5, "mass": 0.1, "k_effective": 3}
    told |= {"model": "tiny", "adapter": None, "question": "pointwise", "label": None, "text": "fine"}
    page.route("**/v1/judge/*", lambda route: route.fulfill(json=told))
    page.select_option("#sample", index=1)
    page.click("#go")
    page.wait_for_selector("#history li")
    assert "unparsed: no label" in page.inner_text("#answer") and "Expected score" not in page.inner_text("#answer")
    assert page.locator("#answer table").count() == 0 and page.inner_text("#history").startswith("unparsed: ")


def test_two_texts_are_shown_side_by_side_with_the_order_gap(visit: Any) -> None:
    page = visit()

    def answered(route: Any) -> None:  # as of a model that means A or B
        response = route.fetch()
        route.fulfill(response=response, json=response.json() | {"status": "ok"})

    page.route("**/v1/judge/*", answered)
    page.click("#tab-two")
    page.select_option("#sample", index=1)
    page.click("#go")
    assert set(bars(page)) == {"A", "B"} and "Order gap" in page.inner_text("#answer")
    boxes = [page.locator(f"#text-{one}").bounding_box() for one in "ab"]
    assert boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] < boxes[1]["x"]


def test_a_csv_of_ones_own_is_read_and_a_bad_one_says_its_line(visit: Any, tmp_path: Path) -> None:
    page = visit()

    def load(text: str) -> None:
        (tmp_path / "mine.csv").write_text(text)
        page.set_input_files("#csv", tmp_path / "mine.csv")

    load('score;review;text\n9;"Said ""so"";\nand more";"A plot; with marks"\n2;short;Another\n')
    page.wait_for_selector("#entries li:nth-child(2)")
    assert page.locator("#entries textarea").first.input_value() == "A plot; with marks"
    assert page.locator("#entries textarea").nth(1).input_value() == 'Said "so";\nand more'
    for text, said in {
        "text,review,score\na,b,3\nc,d,eleven\n": "line 3: the score is 'eleven'",
        "text,review\na,b\n": "line 1: no column score",
        'text,review,score\n"a,b,3\n': "line 2: a quoted field that does not end",
        "text,review,score\na,b\n": "line 2: 2 fields, expected 3",
        "": "the file is empty",
    }.items():
        load(text)
        page.wait_for_function("said => document.querySelector('#csv-problem').textContent.includes(said)", arg=said)
        assert page.locator("#entries li").count() == 2, "what was there stays"
    load("text,review,score\n" + "".join(f"plot {n},said {n},{1 + n % 10}\n" for n in range(1500)))
    page.wait_for_function("() => document.querySelector('#more-entries').textContent.includes('1460 more')")


def test_texts_are_texts_whatever_they_hold(visit: Any) -> None:
    page = visit()
    page.click("#add")
    for place in page.locator("#entries textarea").all():
        place.fill(HOSTILE)
    page.fill("#query", HOSTILE + " about a ferry")
    page.click("#go")
    bars(page)
    assert page.evaluate("window.harmed") is None and page.locator("#history img, #answer img").count() == 0


def test_a_server_that_wants_a_key_is_asked_with_the_one_typed_which_is_kept_nowhere(visit: Any, tmp_path: Path) -> None:
    key = add_key(tmp_path / "keys", "alice", ["judge"])
    page = visit(served={"keys": tmp_path / "keys"}, quiet=True)
    page.fill("#query", "A ferry sinks.")
    page.click("#go")
    page.wait_for_function("() => document.activeElement.id === 'key'")
    assert "wants an API key" in page.inner_text("#answer")
    page.fill("#key", key)
    page.click("#go")
    assert len(bars(page)) == 10
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
    assert key not in kept


def test_a_refusal_says_when_to_try_again(visit: Any) -> None:
    page = visit(served={"limits": Limits(per_minute=1)}, quiet=True)
    page.fill("#query", "A ferry sinks.")
    page.click("#go")
    bars(page)
    page.click("#go")
    page.wait_for_selector("#answer .problem")
    assert "Try again in" in page.inner_text("#answer")
    page.fill("#query", " ")
    page.click("#go")
    assert "Give a text to judge." in page.inner_text("#answer")


def test_it_is_used_by_keyboard_alone(visit: Any) -> None:
    page = visit()
    page.focus("#query")
    page.keyboard.type("A ferry sinks.")
    page.keyboard.press("Control+Enter")
    bars(page)
    reached = set()
    page.evaluate("document.body.focus()")
    for _ in range(40):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))
        if page.evaluate("document.activeElement !== document.body"):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") != "none"
    assert {"tab-two", "sample", "csv", "add", "query", "go", "Settings and key"} <= reached


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 1280])
def test_it_is_readable_anywhere(visit: Any, scheme: str, width: int) -> None:
    page = visit(color_scheme=scheme, viewport={"width": width, "height": 700})
    page.select_option("#sample", index=1)
    page.click("summary")
    page.click("#go")
    bars(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    worst, where = page.evaluate(CONTRAST)
    assert worst >= 4.5, where
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, textarea, select')].filter((one) => !one.labels.length && !one.ariaLabel).map((one) => one.id)"
    )
    assert unnamed == [], "a screen reader says what each field is"


def test_the_page_for_programs_shows_each_route(visit: Any) -> None:
    page = visit("/docs")
    titles = page.locator("article h3").all_inner_texts()
    assert {"POST /v1/judge/pointwise", "PUT /v1/readers/{reader}", "GET /ready"} <= set(titles)
    assert "lighthouse" in page.inner_text("#routes")
