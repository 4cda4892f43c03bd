"""What the correlations with people rest on, in sentences."""

from __future__ import annotations

import numpy as np

from perse.drpe.correlation.baselines import Baselines
from perse.drpe.correlation.correlating import Correlations, least_p
from perse.drpe.selection import BEST, WORST, Selected
from perse.evaluation.comparing.results import LEVEL


def notes(found: Correlations, baselines: Baselines | None) -> tuple[str, ...]:
    """A sentence each; `baselines`, if they were computed."""
    selected = found.selected
    said = [
        f"people: the mean of {', '.join(selected.dimensions)}, as the file gives them; correlations keep their sign, of a method a higher score is meant to be a better "
        "candidate",
        f"|Pearson| as published has no sign, so its interval cannot go below 0, and of a metric that has nothing to do with people it is not 0: {_of_nothing(found.compared)} on "
        f"average with {found.compared} independent candidates, and those of a document are not independent. Its interval beginning at 0 says that none was shown",
        f"95% intervals: documents drawn anew with all their candidates, {found.resamples:,} resamples, seed {found.seed}; their ends also reach as far as candidates allow that a method is far off "
        "so rarely that none is here",
        "the method that agrees most was chosen by these candidates, so its correlation is flattered a little: that it agrees is said only where the highest of as many that know "
        "nothing would rarely be as high, in resamples of documents and with people's grades dealt anew (p of so many, at most 0.05); that it is higher is said only where the interval of the paired "
        "difference leaves out 0 and the adjusted p is at most 0.05",
    ]
    said += of_selection(selected)
    if found.compared < len(selected.items):
        said.append(
            f"{len(selected.items) - found.compared} of {len(selected.items)} candidates have no score of some method; all but the last column of the last table is of the "
            f"{found.compared} others"
        )
    said += of_least_p(found)
    if found.left_out:
        said.append(f"without a score for any of the candidates, and left out: {', '.join(found.left_out)}")
    return (*said, *(_of_baselines(baselines) if baselines else ()))


def of_least_p(found: Correlations) -> list[str]:
    """Whether a difference can be shown at all."""
    told = [one for one in found.differences if one.p.p is not None]
    least = least_p(found.documents, len(told))
    if not told or least <= LEVEL:
        return []
    return [
        f"with {len(told)} differences over {found.documents} documents the smallest adjusted p there can be is {min(least, 1):.3f}, so none can be shown, "
        "however large it is: more documents, or fewer methods"
    ]


def _of_nothing(candidates: int) -> str:
    """The mean absolute correlation of unrelated numbers: sqrt(2 / (pi (n - 1)))."""
    return f"{np.sqrt(2 / (np.pi * max(candidates - 1, 1))):.3f}"


def of_selection(selected: Selected) -> list[str]:
    """Which candidates were looked at."""
    said = []
    if selected.which == "extremes":
        between = (
            f"without the {selected.between:,} between, correlations are as a rule higher than over all, and systems' means are of other documents each"
            if selected.between
            else "these documents have none between"
        )
        said.append(f"candidates: the {BEST} best and {WORST} worst of each document by people's mean, as published; {between}")
        if selected.tied:
            said.append(
                f"in {selected.tied} of {selected.documents} documents candidates with the same mean were in and out: the order of the file decided"
            )
        if selected.too_few:
            said.append(
                f"{selected.too_few} of {selected.documents} documents have fewer than {BEST + WORST} candidates that people scored, and are left out"
            )
    if selected.unscored:
        said.append(
            f"{selected.unscored} candidates lack people's score of {' or '.join(selected.dimensions)}, and are left out"
        )
    return said


def _of_baselines(baselines: Baselines) -> list[str]:
    several = f"the best over a document's references (up to {baselines.most})"
    against = "a document's first reference" if baselines.references == "first" else several
    said = [f"metrics compare with {against}; length is the number of words, and needs none"]
    if baselines.equal:
        said.append(f"{baselines.equal} candidates equal a reference: metrics of words in common are 1 by rule (BLEU 100)")
    if baselines.alone:
        said.append(f"{baselines.alone} candidates have no reference: metrics give them no score")
    return [*said, *(f"left out, {reason}" for reason in baselines.skipped)]
