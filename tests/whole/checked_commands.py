"""Whether a command that the docs show can be called so: its name, its options, their values and its settings exist. Nothing is run."""

from __future__ import annotations

import argparse
import contextlib
import functools
import importlib
import io
import re
import sys
from collections.abc import Sequence
from typing import Any, Never

import pytest
import typer
from documented import ROOT, Command

from perse.commands.app import app
from perse.errors import PerseError

SETTING = re.compile(r"[a-z_]+(\.[a-z_0-9]+)*=")
OF_TRAINING = ("train", "plan", "preflight", "retrain")


def problem(command: Command) -> str | None:
    """What is wrong with it, or None."""
    program, *words = [re.sub(r"\$\w+", "1", word) for word in command.words if word.strip(".…")]
    if program == "make":
        return (
            None if re.search(rf"^{re.escape(words[0])}:", (ROOT / "Makefile").read_text(), re.M) else f"no target {words[0]}"
        )
    if program == "accelerate":
        program, words = "python", words[words.index("train.py") :]
    if program == "python":
        script, *words = words
        if script in ("train.py", "serve.py"):
            return _perse([script.removesuffix(".py"), *words], command)
        return _benchmark(script, words, command)
    return _perse(words, command)


@functools.cache
def _cli() -> Any:
    return typer.main.get_command(app)


def _perse(words: Sequence[str], command: Command) -> str | None:
    leaf: Any = _cli()
    name = ""
    rest = list(words)
    while hasattr(leaf, "commands") and rest and not rest[0].startswith("-"):
        if rest[0] not in leaf.commands:
            return f"there is no '{rest[0]}'"
        name = rest.pop(0)
        leaf = leaf.commands[name]
    if not command.whole:
        return _names(leaf, rest)
    return _parsed(leaf, rest, lenient=command.shortened) or _settings(name, rest)


def _names(leaf: Any, words: Sequence[str]) -> str | None:
    known = {option for parameter in leaf.params for option in (*parameter.opts, *parameter.secondary_opts)}
    gone = [word for word in words if word.startswith("--") and word.partition("=")[0] not in known]
    return f"there is no {gone[0]}" if gone else None


def _parsed(leaf: Any, words: Sequence[str], *, lenient: bool) -> str | None:
    """By the program's own parser, values included, which stops short of running anything; a file need not be here."""
    try:
        leaf.make_context(leaf.name, list(words))
    except Exception as error:  # noqa: BLE001 - a usage error of whichever click typer brings
        said = str(error.format_message() if hasattr(error, "format_message") else error) or repr(error)
        return None if "does not exist" in said or (lenient and said.startswith("Missing")) else said
    return None


def _settings(name: str, words: Sequence[str]) -> str | None:
    """Of a recipe: the file is there, and every `key=value` is a setting with a right value."""
    given = [word for word in words if SETTING.match(word) and "..." not in word]
    training = name in OF_TRAINING or "--retrain" in words
    if not training and name != "serve":
        return None
    option = "--retrain" if "--retrain" in words else "--config"
    recipe = words[words.index(option) + 1] if option in words else "embedded_lora"
    if not training and option not in words:
        recipe = "embedded"
    recipe = str(ROOT / recipe) if "/" in recipe else recipe
    config: Any = importlib.import_module("perse.settings.training" if training else "perse.settings.serving")
    try:
        config.load_config(recipe, [*(["data.path=x", "output=x"] if training else ["host=127.0.0.1"]), *given])
    except PerseError as error:
        return str(error)
    return None


class Asked(Exception):
    """What a benchmark would have parsed with."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        self.parser = parser


def _benchmark(script: str, words: Sequence[str], command: Command) -> str | None:
    if not (ROOT / script).is_file():
        return f"there is no {script}"
    module = benchmark(script)
    parser = _argparse(module)
    if parser is None:
        single = typer.Typer(add_completion=False)
        single.command()(module.main)
        leaf = typer.main.get_command(single)
        return _parsed(leaf, words, lenient=command.shortened) if command.whole else _names(leaf, words)
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            argparse.ArgumentParser.parse_args(parser, list(words))
    except SystemExit:
        return said.getvalue().strip().splitlines()[-1]
    return None


def benchmark(script: str) -> Any:
    folder = str(ROOT / "benchmarks")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(script.removeprefix("benchmarks/").removesuffix(".py"))


def _argparse(module: Any) -> argparse.ArgumentParser | None:
    def caught(self: argparse.ArgumentParser, *_: Any, **__: Any) -> Never:
        raise Asked(self)

    if not hasattr(module, "argparse"):
        return None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(argparse.ArgumentParser, "parse_args", caught)
        try:
            module.main()
        except Asked as asked:
            return asked.parser
    return None
