"""Packaged Jinja templates: prompts, cards and pages. Undefined names are refused, and templates run in Jinja's sandbox.

Only HTML is escaped here. What Markdown and prompts show of files is neutralised by the room that fills the template.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from jinja2 import PackageLoader, StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment


def templates(
    package: str, folder: str = ".", *, html: bool = False, **filters: Callable[..., object]
) -> ImmutableSandboxedEnvironment:
    """The templates in `folder` of `package`; Markdown templates can call `table`."""
    environment = ImmutableSandboxedEnvironment(
        loader=PackageLoader(package, folder),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
    )
    environment.filters.update(filters)
    environment.globals["table"] = table
    return environment


def table(header: Sequence[object], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table, without the newline at its end; cells are Markdown already."""
    head = "|" + "".join(f" {name} |" if name else " |" for name in header)
    body = [f"| {' | '.join(map(str, cells))} |" for cells in rows]
    return "\n".join([head, "|---" * len(header) + "|", *body])
