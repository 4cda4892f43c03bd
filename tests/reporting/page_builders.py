"""Made reports: any number of samples, and texts that try to break out of the page."""

from __future__ import annotations

import base64
import gzip
import json
import random
from html.parser import HTMLParser
from typing import Any

from perse.drawing.figure import Figure
from perse.judgement import Judgement, Status, Tokens
from perse.records import (
    ChoiceReference,
    Example,
    Pair,
    PairwiseExample,
    PointwiseExample,
    ProfileComparison,
    ProfileReview,
    ReviewReference,
)
from perse.reporting.page import PageData, Section, StudySection, Verdict
from perse.reporting.samples import pack_samples
from perse.results.result import Estimate, Interval, Point, Result, Table

SCRIPT = "<script>window.hacked=1</script>"
BREAKOUT = f'</script><!--"\'>\u2028<img src=x onerror="window.hacked=1">{SCRIPT}'
LABELS = tuple(str(n) for n in range(1, 11))
WORDS = [
    "a",
    "quiet",
    "harbour",
    "town",
    "loses",
    "its",
    "ferry",
    "and",
    "gains",
    "the",
    "ghost",
    "who",
    "sells",
    "tickets",
    "at",
    "dusk",
    "to",
    "nobody",
    "in",
    "particular",
]


class Elements(HTMLParser):
    """Every element of a page, and the text of its inert blocks."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def unpacked(chunks: tuple[str, ...]) -> list[Any]:
    """What the page's script finds in chunks of texts or details."""
    return [row for chunk in chunks for row in json.loads(gzip.decompress(base64.b64decode(chunk)))]


def sentence(generator: random.Random, words: int) -> str:
    """Words that compress about as well as prose."""
    return " ".join(f"{generator.choice(WORDS)}{generator.randrange(90) or ''}" for _ in range(words))


def score_examples(count: int, *, spice: str = "") -> list[Example]:
    """`count` examples of readers with eight each, three past reviews, plots of 120 words."""
    generator = random.Random(7)
    made: list[Example] = []
    for reader in range(-(-count // 8)):
        profile = tuple(
            ProfileReview(
                text=spice + sentence(generator, 120),
                review=spice + sentence(generator, 40),
                score=generator.randint(1, 10),
                time=spice or "2003",
            )
            for _ in range(3)
        )
        made += [
            PointwiseExample(
                id=f"{spice}r{reader}-{n}",
                reviewer_id=f"{spice}r{reader}",
                item_id=f"{spice}i{n}",
                profile=profile,
                query=spice + sentence(generator, 120),
                reference=ReviewReference(review=spice + sentence(generator, 40), score=generator.randint(1, 10)),
            )
            for n in range(8)
        ]
    return made[:count]


def score_answers(examples: list[Example], *, seed: int = 0, spice: str = "") -> dict[str, Judgement]:
    """An answer to each; every fiftieth could not be read."""
    generator = random.Random(seed)
    made = {}
    for place, example in enumerate(examples):
        weights = [generator.random() ** 4 for _ in LABELS]
        shares = dict(zip(LABELS, (weight / sum(weights) for weight in weights), strict=True))
        read = place % 50 != 3
        made[example.id] = Judgement(
            id=example.id,
            question="pointwise",
            status=Status.OK if read else Status.UNPARSED,
            label=max(shares, key=lambda label: shares[label]) if read else None,
            expected=sum(float(label) * share for label, share in shares.items()) if read else None,
            distribution=shares if read else None,
            mass=0.99,
            text=spice + sentence(generator, 40),
            k_effective=3,
            finish_reason="stop",
            tokens=Tokens(prompt=700, cached=90, generated=40),
            model=spice + "made",
            error=None if read else spice + "no score in what it wrote",
        )
    return made


def pair_examples(spice: str = "") -> list[Example]:
    """Two readers, two aspects."""
    past = ProfileComparison(text_a=spice + "a1", text_b=spice + "b1", premise=spice + "p", preference={spice + "Ending": "A"})
    return [
        PairwiseExample(
            id=f"{spice}p{n}",
            reviewer_id=f"{spice}r{n % 2}",
            aspect=spice + ("Ending", "Surprise")[n % 2],
            profile=(past,),
            query=Pair(text_a=f"{spice}first {n}", text_b=f"{spice}second {n}", premise=spice + "premise"),
            reference=ChoiceReference(preference="A"),
        )
        for n in range(4)
    ]


def pair_answers(examples: list[Example], spice: str = "") -> dict[str, Judgement]:
    """P(A) of 0.9, 0.6, 0.3, and one refusal."""
    made = {}
    for example, share in zip(examples, (0.9, 0.6, 0.3, None), strict=True):
        made[example.id] = Judgement(
            id=example.id,
            question="pairwise",
            status=Status.REFUSED if share is None else Status.OK,
            label=None if share is None else "A",
            distribution=None if share is None else {"A": share, "B": 1 - share},
            order_gap=None if share is None else 0.1,
            k_effective=1,
            tokens=Tokens(prompt=10, cached=0, generated=1),
            model="made",
            error=spice + "it would not" if share is None else None,
        )
    return made


def value(number: float | None, low: float | None = None, high: float | None = None, reason: str | None = None) -> Estimate:
    return Estimate(value=number, interval=Interval(low=low, high=high, reason=reason), items=10)


def figure(name: str = "scores", spice: str = "") -> Figure:
    svg = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 4"><rect width="3" height="3"/></svg>'
    return Figure(name, spice + "Scores", spice + "A square.", svg, b"png", ("x", "y"), ((spice + "one", 1.0), ("two", None)))


def made_page(count: int = 24, *, judges: int = 2, spice: str = "", pairs: bool = False) -> PageData:
    """A whole page; `spice` stands in every text of it."""
    examples = pair_examples(spice) if pairs else score_examples(count, spice=spice)
    names = [f"{spice}judge {n}" for n in range(judges)]
    if pairs:
        answers = {name: pair_answers(examples, spice) for name in names}
    else:
        answers = {name: score_answers(examples, seed=n, spice=spice) for n, name in enumerate(names)}
    table = Table(
        title=spice + "Pooled",
        header=("", spice + "Kendall", "MAE"),
        rows=(
            (names[0], value(0.2, 0.1, 0.3), value(1.5, reason=spice + "few reviewers")),
            (spice + "random", value(None, reason=spice + "constant"), None),
        ),
        notes=(spice + "a note",),
    )
    study = Result(
        name=spice + "k-curve",
        asks=spice + "Do more reviews help?",
        answer=spice + "Not shown.",
        plot="lines",
        x_label=spice + "k",
        points=(Point(series=spice + "one", x="1", metric="kendall", estimate=value(0.1, 0.0, 0.2)),),
        tables=(replace_title(table, spice + "By k"),),
        notes=(spice + "not as in the paper",),
    )
    return PageData(
        title=spice + "A made report",
        facts=((spice + "Data set", spice + "made"),),
        verdicts=tuple(Verdict(name, "better", "better than the reader's own average", (spice + "By 0.1.",)) for name in names),
        cautions=(spice + "There are few readers.",),
        sections=(
            Section("numbers", "Numbers", lead=spice + "On the same items.", tables=(table,), figures=(figure(spice=spice),)),
            Section("coverage", "Coverage and failures", notes=(spice + "Some failed.",)),
        ),
        samples=pack_samples(examples, answers, labels=("A", "B") if pairs else LABELS, most=10_000, seed=0),
        studies=(StudySection(study, (figure("k_curve", spice),)),),
        manifests=((spice + "run", '{"a": "' + spice + '"}'),),
        pairs=pairs,
    )


def replace_title(table: Table, title: str) -> Table:
    return table.model_copy(update={"title": title})
