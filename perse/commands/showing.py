"""What every command that measures prints: its Result on stdout, for people, as JSON or as Markdown."""

from __future__ import annotations

import sys

from rich.console import Console

from perse.results.markdown import markdown as as_markdown
from perse.results.result import Result
from perse.results.terminal import hidden, print_result


def show_result(result: Result, *, as_json: bool = False, markdown: bool = False, everything: bool = True) -> None:
    """Print a result; JSON and Markdown hold everything, a terminal leaves out details unless `everything`."""
    if as_json:
        sys.stdout.write(result.model_dump_json(indent=2) + "\n")
    elif markdown:
        sys.stdout.write(as_markdown(result))
    else:
        print_result(result, Console(), everything=everything)
        if more := [] if everything else hidden(result):
            Console(stderr=True).print(f"more with --all: {', '.join(more)}", style="dim", markup=False, soft_wrap=True)
