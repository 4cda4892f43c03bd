"""`perse score export`: the judgements of a run as a table for a spreadsheet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from perse.commands import options
from perse.commands.terminal import err, say
from perse.errors import BadInput
from perse.formats.csv_cells import csv_text
from perse.judgement import Judgement
from perse.records import Example


def export(
    *,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder that perse score wrote.", show_default=False)],
    out: Annotated[
        Path, typer.Option("--out", callback=options.here, help="The file to write, which ends in .csv.", show_default=False)
    ],
    overwrite: options.OverwriteFile = False,
) -> None:
    """Write the judgements of a run as CSV in UTF-8, one a row: reviewer_id, item_id, truth, what is expected, every probability.

    The column text is the review that the judge wrote. A text that a spreadsheet would compute begins with an apostrophe.

    Example:  perse score export runs/first-valid --out answers.csv
    """
    from perse.batch.scored import read_run
    from perse.files.belongings import check_file
    from perse.files.disk import no_folder, write_whole
    from perse.judging.judged import JUDGED

    if out.suffix.lower() != ".csv":
        raise BadInput(f"{out} says another format; end it with .csv (a run in shards as Parquet: perse score merge)")
    scored = read_run(run)
    check_file(out, alike=[JUDGED], overwrite=overwrite)
    place = {example.id: number for number, example in enumerate(scored.examples)}
    judgements = sorted(scored.judgements, key=lambda one: place.get(one.id, len(place)))
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{out}: cannot be written ({no_folder(out.parent, error)}); give another --out") from None
    write_whole(out, as_csv(judgements, scored.examples))
    err.print(f"written: [bold]{escape(str(out))}[/bold]  ({len(judgements):,} judgements)")
    if len(judgements) < len(scored.examples):
        say(
            f"note: {len(judgements):,} of {len(scored.examples):,} judged; the run is not finished: the same perse score goes on"
        )


def as_csv(judgements: Sequence[Judgement], asked: Sequence[Example]) -> str:
    """The judgements as CSV, with what each was asked about."""
    from perse.judging.judged import flat_rows

    rows = flat_rows(judgements, asked)
    header = [*rows[0]] if rows else ["id", "question", "status"]
    return csv_text(header, ([row[name] for name in header] for row in rows))
