"""The one parser of written answers: an engine that only has words is asked as any other, and what it wrote is read here.

The label stands behind its stem, at the beginning of a line or, where the stem has them, in brackets; of several scores the
last counts, of two choices neither. An answer that is a label alone is one too. What follows a label on its line says whether it is one: nothing, the scale's top ("7/10"), a reason
("Plot A because ..."), or a mark and words without another label ("7, gladly"). Before anything else it is not a label: part of a
number, an end of a range, one of two, of another scale, compared, a heading. A missed label is counted; a wrong one would
not be noticed.

An answer in JSON is brought into that form, and read as any other. Models write JSON with quotes inside strings, commas too
many, on one line or in a fence; what stands behind the keys is found all the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from perse.scale import Scale


def read_written(answer: str, scale: Scale, *, label_prefix: str, text_prefix: str | None) -> tuple[str | None, str]:
    """The label, or None, and the free text before it.

    Args:
        label_prefix: what the line of the label begins with, such as "[Score] ".
        text_prefix: what the free line begins with, such as "[Review]"; None: without one.
    """
    match = _label(answer, scale, label_prefix)
    free = answer[: match.start()] if match else answer
    if text_prefix is not None:
        word = re.escape(text_prefix.strip("[]"))
        free = re.sub(rf"(?im)\A.*?(?:^\W*{word}\b[\]*:\s]*|\[{word}\]\s*)", "", free, count=1, flags=re.DOTALL)
    canonical = {known.casefold(): known for known in scale.labels}
    return canonical[match[1].casefold()] if match else None, " ".join(free.split())


def label_place(answer: str, scale: Scale, *, label_prefix: str) -> int | None:
    """Where the label that `read_written` reads begins in the answer."""
    match = _label(answer, scale, label_prefix)
    return match.start(1) if match else None


def _label(answer: str, scale: Scale, label_prefix: str) -> re.Match[str] | None:
    """The line of the label, up to the label, which is the first group."""
    stem = r"[^\w\n]+".join(re.findall(r"\w+", label_prefix))
    labels = "|".join(sorted(scale.labels, key=len, reverse=True))
    top = scale.labels[-1] if scale.values else "(?!)"  # "7/10" is 7, "A/B" is neither
    closing = r"""[*_\])"'\s]*"""
    of_top = rf"(?:{closing}(?:/|out of) *{top})?"
    no_other = r"[^\d\n]*" if scale.values else rf"(?:(?!\b{stem}\W*(?!\1\b)(?:{labels})\b)[^\n])*"
    follows = rf"{of_top}{closing}(?:$|\b(?:because|since)\b|[.,;!)(\u2014\u2013-]{no_other}$)"
    label = rf"(?<![\d.,\u2212-])({labels})(?={follows})"
    inline = r"|\[" if label_prefix.startswith("[") else ""  # "I like [Plot B] less" chooses nothing
    found = [*re.finditer(rf"(?im)(?:^[^\w\n]*{inline}){stem}[^\w\n]*?{label}", answer)]
    if not scale.values and len({match[1].casefold() for match in found}) > 1:
        found = []  # headings, or a change of mind
    alone = re.fullmatch(rf"(?im)\W*?{label}{of_top}\W*", answer)
    return found[-1] if found else alone


def read_json(answer: str, scale: Scale, *, label_prefix: str, keys: Sequence[str]) -> tuple[str | None, str]:
    """`read_written` for an answer that is a JSON object, or should be one.

    Args:
        label_prefix: what stands before the label, such as '"Score": ' or '{"Choice": "Plot '.
        keys: of the free text, if there is one, and of the label.
    """
    *free, key = keys
    worded = label_prefix.rpartition('":')[2].strip(' "')  # "Plot", or nothing
    lines = [
        (value if worded else f"[{name}] {value}") if name == key else f"[{name}] {' '.join(value.split())}"
        for name, value in json_fields(answer, keys)
    ]
    return read_written(
        "\n".join(lines) or answer,
        scale,
        label_prefix=f"{worded} " if worded else f"[{key}] ",
        text_prefix=f"[{free[0]}]" if free else None,
    )


def json_fields(answer: str, keys: Sequence[str]) -> list[tuple[str, str]]:
    """(key, value in words) wherever one of `keys` stands in an answer that is JSON or nearly so; none if none does."""
    canonical = {key.casefold(): key for key in keys}
    names = "|".join(map(re.escape, keys))
    found = [*re.finditer(rf"""(?i)(?:^|[{{,\n])[^\S\n]*["']({names})["']\s*:\s*""", answer)]
    ends = [*(match.start() for match in found[1:]), len(answer)]
    return [
        (canonical[match[1].casefold()], _value(answer[match.end() : end])) for match, end in zip(found, ends, strict=False)
    ]


def _value(text: str) -> str:
    """The value that `text` begins with. A string ends where JSON says so if the object goes on from there, else at the end."""
    if not text.startswith('"'):
        bare = re.split(r"""\n|\}|`|,\s*["']""", text, maxsplit=1)[0]
        return bare.strip(" \t\r,'")
    try:
        value, end = json.JSONDecoder(strict=False).raw_decode(text)
        if re.match(r"""\s*,?\s*(?:$|\}|```|"[^"\n]*"\s*:)""", text[end:]):
            return _whole_characters(value)
    except json.JSONDecodeError:
        pass
    body = text[1:].rstrip(" \t\r\n,}`").removesuffix('"')
    try:
        return _whole_characters(json.loads('"' + re.sub(r'(?<!\\)((?:\\\\)*)"', r'\1\\"', body) + '"', strict=False))
    except json.JSONDecodeError:  # a backslash that escapes nothing
        return body


def _whole_characters(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can escape and nothing can write."""
    return text.encode("utf-8", "replace").decode("utf-8")
