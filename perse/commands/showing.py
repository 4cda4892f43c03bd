"""What every command that measures prints: its Result on stdout, for people, or as JSON, Markdown or CSV."""

from __future__ import annotations

import sys

from rich.console import Console

from perse.commands.options.medium import Medium
from perse.results.markdown import markdown
from perse.results.result import Result
from perse.results.spreadsheet import csv
from perse.results.terminal import hidden, print_result


def show_result(result: Result, medium: Medium, *, everything: bool = True) -> None:
    """Print a result; JSON, Markdown and CSV hold everything, a terminal leaves out details unless `everything`."""
    if medium.as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    elif medium.markdown:
        sys.stdout.write(markdown(result))
    elif medium.csv:
        sys.stdout.write(csv(result))
    else:
        print_result(result, Console(), everything=everything)
        if more := [] if everything else hidden(result):
            Console(stderr=True).print(f"more with --all: {', '.join(more)}", style="dim", markup=False, soft_wrap=True)
