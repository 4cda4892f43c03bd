"""The card of a PerSum folder, its README.md: what it is, how it was made, what it is not.

It is written anew when a person leaves the folder, whose manifest may be made by hand. So each part of a manifest is told of alone: one that
is not there, or is of another shape, is left out, since a person's leaving must not wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, Any

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from perse.formats.templates import table, templates
from perse.strict import Strict


class Unseen(Strict):
    """Of the judged sets of reviews (all histories, or those of all products), which were longer than the judge's context."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    sets: int
    cut: int
    """How many lost their oldest reviews."""
    share: float
    """Of the reviews of these, the mean share that went unseen ..."""
    largest: float
    """... and the largest."""

    def told(self, name: str) -> str:
        """In words."""
        lost = f", of which {self.share:.0%} of the reviews went unseen (at most {self.largest:.0%})" if self.cut else ""
        return f"longer than the judge's context: {self.cut:,} of {self.sets:,} {name}{lost}"


class _Source(Strict):
    name: str
    sha256: str


class _Judge(Strict):
    model: str
    adapter: str | None
    digest: str


_Counts = dict[str, dict[str, int]]
_PARTS: Mapping[str, Any] = {
    "perse": str,
    "samples": _Counts,
    "notes": tuple[Annotated[str, Field(min_length=1)], ...],
    "sources": dict[str, _Source],
    "funnel": _Counts,
    "judge": _Judge,
    "judgements": _Counts,
    "unseen": dict[str, Unseen],
    "options": dict[str, Any],
}
"""What is told of a manifest, and its shape."""
_NOTHING: Mapping[str, Any] = {"samples": {}, "notes": (), "judgements": {}, "unseen": {}, "options": {}}
"""For parts that the template goes through; of others None."""


def persum_card(manifest: Mapping[str, Any], *, groups: Sequence[str]) -> str:
    """The card, as far as the manifest tells it.

    Args:
        groups: of samples, the columns of its table.
    """
    told = {name: _told(manifest.get(name), shape, _NOTHING.get(name)) for name, shape in _PARTS.items()}
    options = told["options"]
    names = options.get("keep_names")
    environment = templates("perse.data.persum", json=partial(json.dumps, ensure_ascii=False), by_category=_markdown)
    return environment.get_template("card.md.jinja").render(
        told,
        groups=groups,
        total=sum(sum(row.values()) for row in told["samples"].values()),
        thresholds=all(type(options.get(name)) in (int, float) for name in ("high", "low")),
        keep_names=names if isinstance(names, bool) else None,
    )


def _told(value: object, shape: Any, nothing: object) -> Any:
    try:
        return TypeAdapter(shape).validate_json(json.dumps(value), strict=True)
    except ValidationError:
        return nothing


def _markdown(rows: Mapping[str, Mapping[str, int]], columns: Sequence[str]) -> str:
    return table(["", *columns], [[name, *(counts.get(column, 0) for column in columns)] for name, counts in rows.items()])
