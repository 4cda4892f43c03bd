"""The page of a report: everything in it, one HTML file that needs no network.

Texts come from files and models and are not trusted: the template escapes everything, the script sets texts as texts, and the
page's own policy lets no other script run and no address be fetched. Only our own drawings are inserted unescaped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from jinja2 import Environment
from markupsafe import Markup, escape

from perse.drawing.figure import Figure
from perse.formats.templates import templates
from perse.reporting.samples import Samples
from perse.results.result import Estimate, Result, Table
from perse.results.words import footnotes, value_and_interval

Standing = Literal["better", "unclear", "worse", "undefined", "collapsed", "silent"]
SIGNS: Mapping[Standing, str] = {
    "better": "✓",
    "unclear": "≈",
    "worse": "✗",
    "undefined": "?",
    "collapsed": "=",
    "silent": "∅",
}

SCRIPTS = ("page.js", "packed.js", "judged.js", "opened.js", "dialog.js", "found.js", "listing.js", "samples.js", "start.js")


@dataclass(frozen=True)
class Verdict:
    """The verdict on one judge. `standing` is against the best simple rule of the readers' own past; "collapsed" gave one answer
    to everything, "silent" none."""

    judge: str
    standing: Standing
    headline: str
    sentences: tuple[str, ...]


@dataclass(frozen=True)
class Section:
    """A part of the page under one heading. `name` is its anchor."""

    name: str
    title: str
    lead: str = ""
    tables: tuple[Table, ...] = ()
    finer: tuple[Table, ...] = ()
    """Folded away at first."""
    figures: tuple[Figure, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class StudySection:
    """A study and its plots."""

    result: Result
    figures: tuple[Figure, ...] = ()


@dataclass(frozen=True)
class PageData:
    """Everything that the page shows."""

    title: str
    facts: tuple[tuple[str, str], ...]
    """What was judged, by which judge and when: name and value."""
    verdicts: tuple[Verdict, ...]
    cautions: tuple[str, ...]
    """Limits of the numbers."""
    sections: tuple[Section, ...]
    samples: Samples
    studies: tuple[StudySection, ...] = ()
    manifests: tuple[tuple[str, str], ...] = field(default=())
    """Name and JSON text."""
    pairs: bool = False
    summaries: bool = False


def render_page(page: PageData) -> str:
    """The whole HTML file, the same for the same data. Half surrogate pairs, which no file can hold, become "?"."""
    return fill("page.html.jinja", SCRIPTS, page=page, signs=SIGNS, head=embedded(page.samples.packed.head))


def fill(template: str, scripts: Sequence[str], **values: object) -> str:
    """A template of the folder `page` as a whole HTML file.

    Args:
        scripts: files of the same folder, of which the page's one script is made; its own policy lets no other run.
        values: what the template shows, besides `policy`, `style` and `script`, which it gets from here.
    """
    script = "\n(() => {\n'use strict';\n" + "".join(map(_source, scripts)) + "})();\n"
    policy = (
        f"default-src 'none'; script-src 'sha256-{_sha256(script)}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    look = {"policy": policy, "style": Markup(_source("page.css")), "script": Markup(script)}
    html = _environment().get_template(template).render(**look, **values)
    return html.encode("utf-8", "replace").decode()


@cache
def _environment() -> Environment:
    environment = templates(
        "perse.reporting",
        "page",
        html=True,
        beside=value_and_interval,
        csv_address=_csv_address,
        drawing=_drawing,
        footnotes=footnotes,
        typed=_typed,
    )
    environment.tests["estimate"] = lambda value: isinstance(value, Estimate)
    return environment


def _source(name: str) -> str:
    return (files("perse.reporting") / "page" / name).read_text(encoding="utf-8")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def embedded(value: Any) -> Markup:
    """JSON that cannot end its element: ASCII without <, > and &."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)


def _typed(text: str) -> Markup:
    """Escaped, with text in backticks as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _csv_address(figure: Figure) -> str:
    return "data:text/csv;charset=utf-8;base64," + base64.b64encode(figure.csv.encode("utf-8", "replace")).decode()


def _drawing(figure: Figure) -> Markup:
    """The SVG as part of the page: without the lines before its root, hidden from screen readers, which are read `alt`."""
    root = re.search(r"<svg\b", figure.svg)
    if root is None:
        return Markup("")
    return Markup('<svg aria-hidden="true" focusable="false"' + figure.svg[root.end() :])
