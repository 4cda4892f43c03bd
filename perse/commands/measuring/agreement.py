"""`perse agreement`: how far the annotators of a file agree, before a judge is measured against them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from perse.commands import options
from perse.commands.options.grouping import grouped
from perse.commands.options.medium import Medium
from perse.commands.options.reading import read_columns
from perse.commands.showing import show_result
from perse.commands.terminal import err
from perse.progress import shown_on


@grouped
def agreement(
    *,
    file: Annotated[Path, typer.Argument(help="Ratings: .jsonl, .csv or .tsv, each also as .gz.", show_default=False)],
    columns: options.Map = None,
    resamples: options.Resamples = 1000,
    seed: options.Seed = 0,
    medium: Medium,
) -> None:
    """How far annotators agree: each two of them, each with the mean of the others, and Krippendorff's alpha.

    One rating a row, dimension and group may be missing:  {"item": "s1", "annotator": "ann", "dimension": "fluency", "score": 4}

    Or one group of items a row, as SummEval-OP has it:  {"fl": [[4, 4, 5], [5, 5, 5]], "co": [[3, 4, 4], [5, 4, 5]]}: for
    each dimension a list over items of lists over annotators.

    Example:  perse agreement summeval-op-detailed.jsonl

    Columns:  perse agreement ratings.csv --map annotator=worker --map item=summary_id --map group=product --json
    """
    from perse.evaluation.annotators.file import read_ratings
    from perse.evaluation.annotators.measuring import annotator_agreement
    from perse.evaluation.annotators.telling import agreement_result

    ratings = read_ratings(file, read_columns(columns))
    with shown_on(err) as on_progress:
        found = annotator_agreement(ratings, resamples=resamples, seed=seed, on_progress=on_progress)
    show_result(agreement_result(found), medium)
