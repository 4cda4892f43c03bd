"""The one parser of written answers: an engine that only has words is asked as any other, and what it wrote is read here.

The label stands behind its stem, at the beginning of a line or in brackets; of several the last counts. An answer that is a
label alone is one too. "10" is not "1", and none of these is a label: a part of another number ("7.5", "2024"), an end of a
range ("1-10"), one of several ("7 or 8", "Plot A and Plot B"), a share of another scale ("3/5"), one spoken against
("Plot A is worse"), a heading ("Plot A: a ferry is lost"). A missed label is counted; a wrong one would not be noticed.
"""

from __future__ import annotations

import re

from perse.scale import Scale


def read_written(answer: str, scale: Scale, *, label_stem: str, free_stem: str | None) -> tuple[str | None, str]:
    """The label, or None, and the free text before it.

    Args:
        label_stem: what the line of the label begins with, such as "[Score] ".
        free_stem: what the free line begins with, such as "[Review]"; None: there is none.
    """
    stem = re.escape(re.sub(r"\W", " ", label_stem).strip())
    labels = "|".join(sorted(scale.labels, key=len, reverse=True))
    top = scale.labels[-1] if scale.values else "(?!)"  # "7/10" is 7, "A/B" is neither
    gap = r"[^\S\n]*"
    no_label = [
        # a part of a number, a percentage, the beginning of a range
        rf"\w|[.,]\d|{gap}%|{gap}[-\u2012-\u2014]{gap}\d",
        # one of several
        rf"[^\w\n.!?;]+(?:or\b|(?:and|to|vs\.?|versus|&)\W+(?:{stem}\W+)?(?:{labels}|a half)\b)",
        # a share of another scale
        rf"{gap}(?:/|out of\b){gap}(?!{top}\b)\w",
        # spoken against
        r"[^\w\n]+(?:is|was)(?:n.t\b|\b[^\n.]*\b(?:not|worse|less|weaker)\b)",
    ]
    if not scale.values:
        no_label.append(r"[^\w\n]*:[^\w\n]*\w")  # a heading
    label = rf"(?<![\d.,-])({labels})(?!{'|'.join(no_label)})"
    found = [*re.finditer(rf"(?im)(?:^[^\w\n]*|\[){stem}[^\w\n]*?{label}", answer)]
    alone = re.fullmatch(rf"(?i)\W*?{label}(?:\s*(?:/|out of)\s*{top})?\W*", answer)
    match = found[-1] if found else alone
    free = answer[: match.start()] if match else answer
    if free_stem is not None:
        word = re.escape(free_stem.strip("[]"))
        free = re.sub(rf"(?im)\A.*?(?:^\W*{word}\b[\]*:\s]*|\[{word}\]\s*)", "", free, count=1, flags=re.DOTALL)
    canonical = {known.casefold(): known for known in scale.labels}
    return canonical[match[1].casefold()] if match else None, " ".join(free.split())
