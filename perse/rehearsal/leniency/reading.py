"""SummEval-OP: summaries of products' reviews that people graded from 1 to 5, in the two forms in which it is published.

summeval-op-detailed.jsonl   {"reviews": [...], "summaries": [...], "ac": [[4, 5, 5], ...], "sc": [...]}: three people's grades of each summary
summeval-op.jsonl            {"reviews": {...}, "summaries": {system: {"summary": ..., "dimensions": {"Aspect Coverage": 3.67, ...}}}}: means
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

from perse.data.sources.lines import read_json_lines
from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.records.scores import number_in
from perse.rehearsal.judging import Aspect

LOWEST, HIGHEST = 1.0, 5.0

DIMENSIONS: dict[Aspect, tuple[str, str]] = {
    "coverage": ("ac", "Aspect Coverage"),
    "sentiment": ("sc", "Sentiment Consistency"),
}
"""The field of the grades of three people, and the name of their mean."""

REMEDY = "give summeval-op-detailed.jsonl or summeval-op.jsonl of SummEval-OP, or a file of that form"


@dataclass(frozen=True)
class Summary:
    """A summary, and what people gave it on average, 1 to 5."""

    text: str
    people: dict[Aspect, float]


@dataclass(frozen=True)
class Product:
    """A product's reviews, and the summaries of them that people graded."""

    id: str
    reviews: tuple[str, ...]
    summaries: tuple[Summary, ...]


@dataclass(frozen=True)
class Shown:
    """The summary of a product at this place among its summaries, from 0, with the reviews of that product or of another."""

    reviews_of: Product
    product: Product
    place: int

    @property
    def summary(self) -> Summary:
        return self.product.summaries[self.place]


@dataclass(frozen=True)
class Graded:
    """Products in the order of the file; `digest` is of these alone."""

    products: tuple[Product, ...]

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps([asdict(one) for one in self.products]).encode()).hexdigest()


def read_graded(path: Path, *, limit: int | None = None) -> Graded:
    """The graded summaries of a file, or of its first so many products.

    Raises:
        BadInput: a file that cannot be read, or a line that is not of either form; the message names line and field.
    """
    products = [_product(fields, str(line), f"{path}, line {line}") for line, fields in read_json_lines(path)][:limit]
    if not products:
        raise BadInput(f"{path} has no products; {REMEDY}")
    return Graded(tuple(products))


def _product(fields: object, name: str, where: str) -> Product:
    if not isinstance(fields, dict):
        raise BadInput(f"{where}: found {shortened(fields)}, expected a JSON object; {REMEDY}")
    reviews = _texts(fields.get("reviews"), f"{where}, field 'reviews'")
    summaries = fields.get("summaries")
    read = _means if isinstance(summaries, dict) else _detailed
    return Product(name, reviews, tuple(read(fields, where)))


def _texts(value: object, where: str) -> tuple[str, ...]:
    listed = list(value.values()) if isinstance(value, dict) else value
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str) and one.strip() for one in listed):
        raise BadInput(f"{where}: found {shortened(value)}, expected texts; {REMEDY}")
    return tuple(listed)


def _detailed(fields: dict[str, object], where: str) -> list[Summary]:
    texts = _texts(fields.get("summaries"), f"{where}, field 'summaries'")
    people: dict[Aspect, list[float]] = {}
    for aspect, (field, _) in DIMENSIONS.items():
        given = fields.get(field)
        if not isinstance(given, list) or len(given) != len(texts):
            raise BadInput(
                f"{where}, field '{field}': found {shortened(given)}, expected a list of grades for each of {len(texts)} summaries"
            )
        people[aspect] = [_mean(one, f"{where}, field '{field}', summary {at}") for at, one in enumerate(given, start=1)]
    return [Summary(text, {aspect: of_all[at] for aspect, of_all in people.items()}) for at, text in enumerate(texts)]


def _mean(given: object, where: str) -> float:
    if not isinstance(given, list) or not given:
        raise BadInput(f"{where}: found {shortened(given)}, expected a list of grades")
    return fmean(_grade(one, where) for one in given)


def _means(fields: dict[str, object], where: str) -> list[Summary]:
    summaries = fields["summaries"]
    assert isinstance(summaries, dict)
    found = []
    for system, one in summaries.items():
        here = f"{where}, summary '{system}'"
        graded = one.get("dimensions") if isinstance(one, dict) else None
        if not isinstance(graded, dict):
            raise BadInput(f"{here}: found {shortened(one)}, expected an object with 'summary' and 'dimensions'; {REMEDY}")
        [text] = _texts([one.get("summary")], f"{here}, field 'summary'")
        people = {aspect: _grade(graded.get(name), f"{here}, '{name}'") for aspect, (_, name) in DIMENSIONS.items()}
        found.append(Summary(text, people))
    if not found:
        raise BadInput(f"{where}, field 'summaries': found none; {REMEDY}")
    return found


def _grade(value: object, where: str) -> float:
    grade = number_in(value)
    if grade is None or not LOWEST <= grade <= HIGHEST:
        raise BadInput(f"{where}: found {shortened(value)}, expected a grade from 1 to 5")
    return grade


def hundred(grade: float) -> float:
    """A grade from 1 to 5 on the judge's scale: 1 is 0, and 5 is 100."""
    return (grade - LOWEST) / (HIGHEST - LOWEST) * 100


def related(products: Sequence[Product]) -> list[Shown]:
    """Each graded summary with the reviews of its own product."""
    return [Shown(product, product, place) for product in products for place in range(len(product.summaries))]


def unrelated(products: Sequence[Product], each: int) -> list[Shown]:
    """Each product's reviews with so many summaries of others, which follow it in the file: no two of one product, and none twice about one."""
    found = []
    for at, product in enumerate(products):
        for step in range(1, min(each, len(products) - 1) + 1):
            other = products[(at + step) % len(products)]
            found.append(Shown(product, other, at % len(other.summaries)))
    return found
