"""The commands that the docs show, taken from their code blocks, so that a new one is covered as soon as it is written."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from places import ROOT

PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")))
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.S | re.M)
INLINE = re.compile(r"`((?:perse|python benchmarks/)[^`\n]* [^`\n]*)`")
SHELLS = ("", "bash", "sh", "console")
BEGINS = ("perse", "python", "accelerate", "make")


@dataclass(frozen=True)
class Command:
    """One program call; `&&`, `|` and `for` are taken apart, variables before it and redirections after it are left out."""

    place: str
    """Page and line."""
    words: tuple[str, ...]
    whole: bool
    """Of a code block. What stands in a sentence may be half a command, of which only the names are checked."""

    def __str__(self) -> str:
        return f"{self.place}: {' '.join(self.words)}"

    @property
    def shortened(self) -> bool:
        return any("..." in word or "…" in word for word in self.words)


def commands(page: str) -> list[Command]:
    text = (ROOT / page).read_text(encoding="utf-8")
    found = []
    for block in BLOCK.finditer(text):
        if block[1] in SHELLS:
            first = text[: block.start(2)].count("\n") + 1
            found += [Command(f"{page}:{first + at}", words, True) for at, line in _lines(block[2]) for words in _calls(line)]
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    for inline in INLINE.finditer(prose):
        at = prose[: inline.start()].count("\n") + 1
        found += [Command(f"{page}:{at}", words, False) for words in _calls(inline[1])]
    return found


def _lines(block: str) -> list[tuple[int, str]]:
    """Lines with those that a backslash continues; without others that are further in than their block, which are what a program wrote."""
    found: list[tuple[int, str]] = []
    joined = False
    lines = block.splitlines()
    margin = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for at, line in enumerate(lines):
        if not joined and line[margin : margin + 1].isspace():
            continue
        if joined:
            number, before = found.pop()
            found.append((number, f"{before} {line.strip().removesuffix(chr(92))}"))
        else:
            found.append((at, line.strip().removesuffix("\\")))
        joined = line.endswith("\\")
    return found


def _calls(line: str) -> list[tuple[str, ...]]:
    """The program calls of a line, without the prompt, loop, variables and folder before each; none of a line that is output."""
    line = re.sub(r"^\$ |\bfor \w+ in [^;]*; *do |; *done\b|\s#.*$", "", line)
    lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
    lexer.whitespace_split, lexer.commenters = True, ""
    try:
        pieces = list(lexer)
    except ValueError:  # a quotation mark of a sentence
        return []
    calls: list[list[str]] = [[]]
    redirected = False
    for piece in pieces:
        if piece in ("&&", "||", "|", ";", "&"):
            calls.append([])
        elif not redirected and piece not in ("<", ">", ">>"):
            calls[-1].append(piece)
        redirected = piece in ("<", ">", ">>")
    return [words for call in calls if (words := _words(call))]


def _words(call: list[str]) -> tuple[str, ...]:
    while call and re.fullmatch(r"[A-Z][A-Z0-9_]*=.*", call[0]):
        call = call[1:]
    if not call:
        return ()
    program = call[0].removeprefix(".venv/bin/")
    if program == "python" and not (len(call) > 1 and call[1].endswith(".py")):
        return ()
    shown = any(")," in word for word in call)  # what a program wrote about another
    return (program, *call[1:]) if program in BEGINS and len(call) > 1 and not shown else ()
