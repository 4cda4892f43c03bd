"""How large the page of a Rehearsal report is, and how long a browser takes for it: every sample of PerSum under all methods.

    python benchmarks/rehearsal_page.py

666 samples of 20 product reviews and 15 of the history, of 40 to 150 made words each; three rounds of practice, five rewritings that change three words
of ten. Words are drawn from 6,000 by Zipf's law, which a packer finds harder than language. Without playwright and Chromium only the page is made.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from perse.data.persum.folder import ProductReview, Sample, Scores
from perse.rehearsal.folder import Filtered, Played, Response, Trace, Turn, Verdict, Version
from perse.rehearsal.judging import MEASURES
from perse.rehearsal.methods import METHODS
from perse.rehearsal.reporting.report import SCRIPTS, RehearsalPage
from perse.rehearsal.reporting.traces import pack_traces
from perse.rehearsal.scoring.asking import Scored
from perse.reporting.page import embedded, fill

WORDS = 6000
NOTHING = re.compile("^0 of")


@dataclass
class Made:
    """Draws texts."""

    drawn: random.Random
    words: list[str] = field(init=False)
    weights: list[float] = field(init=False)

    def __post_init__(self) -> None:
        lengths = (2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9)
        self.words = ["".join(self.drawn.choices("etaoinshrdlucmfwypvbgk", k=self.drawn.choice(lengths))) for _ in range(WORDS)]
        self.weights = list(itertools.accumulate(1 / (rank + 2) for rank in range(WORDS)))

    def prose(self, least: int, most: int) -> str:
        return " ".join(self.drawn.choices(self.words, cum_weights=self.weights, k=self.drawn.randint(least, most))) + "."

    def revised(self, text: str) -> str:
        return " ".join(word if self.drawn.random() > 0.3 else self.drawn.choice(self.words) for word in text.split(" "))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=666)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--small", action="store_true", help="only see that it runs")
    options = parser.parse_args()
    made = Made(random.Random(options.seed))
    samples = [_sample(made, number) for number in range(4 if options.small else options.samples)]
    scored = _scored(made, samples)
    before, cpu = time.perf_counter(), time.process_time()
    stories = pack_traces(samples, scored, chain=True, most=len(samples), seed=0)
    told: dict[str, object] = {
        "samples": len(samples),
        "packing_seconds": round(time.perf_counter() - before, 1),
        "packing_cpu_seconds": round(time.process_time() - cpu, 1),
    }
    page = RehearsalPage("Made", "Nothing was found.", (), (), (), (), stories, ())
    html = fill("rehearsal.html.jinja", SCRIPTS, page=page, head=embedded(stories.packed.head))
    told["megabytes"] = round(len(html.encode()) / 1e6, 1)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        path.write_text(html, encoding="utf-8")
        told |= _in_browser(path)
    print(json.dumps(told, indent=2) if options.json else "\n".join(f"{name}: {value}" for name, value in told.items()))


def _sample(made: Made, number: int) -> Sample:
    def review(reviewer: str, item: str) -> ProductReview:
        return ProductReview(reviewer_id=reviewer, item_id=item, review=made.prose(40, 150), score=4.0, time=None)

    return Sample(
        id=f"s{number}",
        category="Made",
        group="High",
        own=review(f"u{number}", f"p{number}"),
        product_reviews=tuple(review(f"other{n}", f"p{number}") for n in range(20)),
        history=tuple(review(f"u{number}", f"h{n}") for n in range(15)),
        scores=Scores(history_coverage=4.5, product_coverage=4.5, product_sentiment=4.5),
    )


def _scored(made: Made, samples: list[Sample]) -> Scored:
    traces: dict[str, dict[str, Trace]] = {name: {} for name in METHODS}
    for sample in samples:
        general, practice = made.prose(130, 130), tuple(_played(made) for _ in range(3))
        suggestions = {(method.supervised, method.practised): _played(made) for method in METHODS.values()}
        for name, method in METHODS.items():
            if not method.plays:
                traces[name][sample.id] = Trace(sample=sample.id, method=name, summary=made.revised(general), general=general)
                continue
            texts = list(itertools.accumulate(range(5), lambda text, _: made.revised(text), initial=general))[1:]
            traces[name][sample.id] = Trace(
                sample=sample.id,
                method=name,
                summary=texts[2],
                general=general,
                practice=practice if method.practised else (),
                suggestions=suggestions[method.supervised, method.practised],
                filtered=Filtered(removed=(1, 2, 3, 4), history=2) if method.retrieved else None,
                versions=tuple(Version(summary=text, score=made.drawn.random() * 100) for text in texts),
                kept=3,
            )
    values = {
        name: {one.id: {measure: made.drawn.random() * 100 for measure in MEASURES} for one in samples} for name in METHODS
    }
    return Scored(traces, values, "made")


def _played(made: Made) -> Played:
    """One to three responses that were sent back, and one that passed."""
    response, turns = Response(analysis=made.prose(120, 120), suggestions=made.prose(60, 60)), []
    for _ in range(made.drawn.choice([1, 1, 2, 3])):
        sent_back = Verdict(thought=made.prose(150, 150), recommendations=made.prose(80, 80), passed=False)
        turns.append(Turn(response=response, verdict=sent_back))
        response = Response(analysis=made.revised(response.analysis), suggestions=made.revised(response.suggestions))
    passed = Verdict(thought=made.prose(150, 150), recommendations="", passed=True)
    return Played(turns=(*turns, Turn(response=response, verdict=passed)))


def _in_browser(path: Path) -> dict[str, object]:
    """Seconds until the page is ready, a story open, the first search and the second done; nothing without a browser."""
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        return {}
    if found is None:
        return {}
    told: dict[str, object] = {}

    def timed(name: str, done: Callable[[], object]) -> None:
        before = time.perf_counter()
        done()
        told[f"{name}_seconds"] = round(time.perf_counter() - before, 1)

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        page = browser.new_page()

        def ready() -> None:
            page.goto(path.as_uri(), wait_until="commit")
            page.wait_for_selector("html[data-ready]")

        def opened() -> None:
            page.locator(".opens").nth(1).click()
            page.wait_for_selector("dialog[open] .cards")

        def searched(words: str) -> None:
            page.fill("[name=search]", words)
            page.locator("#sample-count", has_text=NOTHING).wait_for()

        timed("ready", ready)
        timed("story", opened)
        page.keyboard.press("Escape")
        timed("first_search", lambda: searched("no such words"))
        page.fill("[name=search]", "")
        page.locator("#sample-count", has_text=NOTHING).wait_for(state="detached")
        timed("second_search", lambda: searched("nor these"))
        browser.close()
    return told


if __name__ == "__main__":
    main()
