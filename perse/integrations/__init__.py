"""The judge in other people's programs: a scorer of inspect_ai, and a module of Hugging Face's `evaluate`. Neither is needed by anything of perse."""

from __future__ import annotations

from pathlib import Path

from perse.errors import BadInput


def path(name: str) -> str:
    """Where the module of `evaluate` of this name is, for `evaluate.load(path(name))`.

    Raises:
        BadInput: there is none of this name.
    """
    found = Path(__file__).parent / name
    if not (found / f"{name}.py").is_file():
        raise BadInput(f"there is no module '{name}' of evaluate here; there is reader_score")
    return str(found)
