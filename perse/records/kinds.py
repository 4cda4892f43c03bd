"""The types of examples that lines of JSON can hold (DESIGN.md, section 3). A new type is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import ValidationError

from perse.errors import BadInput
from perse.files.exports import Fields
from perse.formats.json_text import json_kind
from perse.records.base import Example, explain
from perse.records.pairwise import PairwiseExample
from perse.records.pointwise import PointwiseExample
from perse.records.summary import SummaryExample
from perse.records.verbatim import VerbatimExample
from perse.registry import Registry

EXAMPLES: Registry[type[Example]] = Registry(
    "perse.examples",
    # In this order they are asked whether a line is theirs.
    (VerbatimExample, SummaryExample, PairwiseExample, PointwiseExample),
    key="kind",
    needs=(
        *("plural", "scale", "verdict", "limited", "shortened"),
        *("recognises", "truth", "work", "shown_query", "shown_profile", "gives_away"),
    ),
)


def parse_example(fields: object) -> Example:
    """One JSON object of section 3 of DESIGN.md as an example; its shape says of which type it is.

    Raises:
        BadInput: no example; the message names the first field that does not fit.
    """
    if not isinstance(fields, dict):
        raise BadInput(f"expected a JSON object, found {json_kind(fields)}")
    kind = next((kind for kind in EXAMPLES.values() if kind.recognises(fields)), PointwiseExample)
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise BadInput(f"{kind.kind} example, {explain(error)}") from None


def example_lines(examples: Iterable[Example]) -> Iterator[str]:
    """Each example as one line of JSON, absent optional fields left out, keys in a fixed order."""
    for example in examples:
        yield example.model_dump_json(exclude_none=True) + "\n"


def example_fields() -> list[Fields]:
    """What `example_lines` have, by the type of the examples."""
    types = [kind.model_fields for kind in EXAMPLES.values()]  # type: ignore[attr-defined]
    return [Fields(needed=[name for name, one in each.items() if one.is_required()], known=[*each]) for each in types]


def chooses(examples: Sequence[Example]) -> bool:
    """Whether these examples, all of one type, are answered by a choice, which has no order, and not by a score."""
    scale = examples[0].scale
    return scale is not None and scale.values is None
