"""Released PerSE files -> a folder of JSON lines that every judging and training command takes.

    verbatim.jsonl     the released prompts as they are, without the marks of their turns
    examples.jsonl     the same rows with profile and query apart, where the prompt could be taken apart
    manifest.json      the files and options they come from, what was left out, warnings
    README.md          the same for a person
    skipped.jsonl      the bad rows that were left out, if any were

Both lines of a row have one id, so that judging as released and judging with our prompts compare row by row. The same files and
options give the same bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import perse
from perse.data.dataset.card import hub_header
from perse.data.examples_file import shown_query
from perse.data.options import RawOptions
from perse.data.pseudonyms import pseudonyms
from perse.data.sources.faults import Faults, OnError, skipped_lines
from perse.data.sources.release import NOT_PARSED, Released, aspect_named, merge_aspects, read_release
from perse.errors import BadInput
from perse.files.belongings import Belongings
from perse.files.replacing import Claim, claimed
from perse.files.runlog import name_and_digest
from perse.formats.plain_files import unchanged_while_read
from perse.formats.templates import templates
from perse.identity import shuffled
from perse.records import ChoiceReference, Example, example_lines
from perse.secrets import without_keys

SCHEMA = 1
"""Version of the folder's layout."""

KIND = "release"
"""What the manifest calls such a folder."""

RELEASE = Belongings(
    what="folder of released data",
    kinds=(KIND,),
    names=("verbatim.jsonl", "examples.jsonl", "skipped.jsonl", "README.md"),
)
"""The files of such a folder."""

GIVEN_AWAY = "the profile shows the query, or nearly"
"""Such rows are in verbatim.jsonl only, as they were released."""


@dataclass(frozen=True)
class ReleaseSummary:
    """The result of a build."""

    out: Path
    manifest: Mapping[str, Any]

    def lines(self) -> tuple[str, ...]:
        """For the terminal: counts, what was left out, warnings."""
        counts = self.manifest["counts"]
        written = f"{_counted(counts['prompts'], 'prompt')} of {_counted(counts['reviewers'], 'reviewer')} in verbatim.jsonl"
        return (
            f"{self.out}: {written}, {counts['examples']} of them in examples.jsonl with profile and query apart",
            *(f"left out: {_counted(count, 'row')}, {reason}" for reason, count in self.manifest["dropped"].items()),
            *(f"not taken apart: {_counted(count, 'row')}, {reason}" for reason, count in self.manifest["not_parsed"].items()),
            *_repeats(self.manifest["repeated_ids"]),
            *(f"not merged: {reason}, {count} times" for reason, count in self.manifest["conflicts"].items()),
            *(f"warning: {what} stands in {_counted(count, 'prompt')}" for what, count in self.manifest["warnings"].items()),
        )


@dataclass(frozen=True, kw_only=True)
class _Options(RawOptions):
    """See `build_release`."""

    files: tuple[Path, ...]
    aspect: str | None = None
    limit: int | None = None

    def _wrong(self) -> dict[str, bool]:
        return {
            "no file is given; name the released files": not self.files,
            f"limit is {self.limit}, expected 1 or more": self.limit is not None and self.limit < 1,
        }

    def for_manifest(self) -> dict[str, Any]:
        return super().for_manifest() | {"aspect": None if self.aspect is None else aspect_named(self.aspect)}


def build_release(
    paths: Sequence[Path],
    out: Path,
    *,
    aspect: str | None = None,
    limit: int | None = None,
    keep_names: bool = False,
    salt: str | None = None,
    seed: int = 0,
    on_error: OnError = "stop",
    overwrite: bool = False,
) -> ReleaseSummary:
    """Writes the folder `out`.

    Args:
        paths: Per-MPST files of one k, or Per-DOC files of one or more aspects.
        aspect: of Per-DOC files whose names do not tell it.
        limit: at most so many rows, drawn by the seed; for quick tries.
        keep_names: reviewers and annotators keep their names; else they become pseudonyms (`data.pseudonyms`).
        salt: of the pseudonyms; by default derived from the seed.
        on_error: `skip` leaves out, counts and lists bad rows instead of stopping at the first.
        overwrite: replace `out` if it is such a folder.
    Raises:
        BadInput: invalid options, a file or a row that cannot be used, no row left, or `out` is taken.
    """
    settings = _Options(
        files=tuple(paths), out=out, aspect=aspect, limit=limit, keep_names=keep_names, salt=salt, seed=seed, on_error=on_error
    )
    with claimed(out, RELEASE, overwrite=overwrite, inputs=paths) as place:
        faults = Faults(on_error)
        with unchanged_while_read(*paths):
            read = read_release(paths, faults, aspect=aspect)
            sources = [name_and_digest(path) for path in paths]
        return _build(place, sources, read, faults, settings.for_manifest(), salt=settings.hidden_by)


def _build(
    place: Claim,
    sources: Sequence[Mapping[str, str]],
    read: Sequence[Released],
    faults: Faults,
    options: Mapping[str, Any],
    *,
    salt: str | None,
) -> ReleaseSummary:
    """Draws, hides names and writes; without a salt names are kept."""
    limit = options["limit"]
    if not read:
        raise BadInput(f"no usable row; the first: {faults.rows[0]}")
    if len({isinstance(row.verbatim.reference, ChoiceReference) for row in read}) > 1:
        raise BadInput("Per-MPST and Per-DOC rows together; build a folder of each")
    merged = merge_aspects(read)
    kept = _drawn(merged.released, limit, seed=options["seed"])
    shown = kept if salt is None else _hidden(kept, salt=salt)
    apart = [row.example for row in shown if row.example is not None]
    examples = [example for example in apart if not shown_query(example)]
    manifest = {
        "perse": perse.__version__,
        "schema": SCHEMA,
        "kind": KIND,
        "options": dict(options),
        "sources": sources,
        "counts": counted([row.verbatim for row in shown], examples),
        "dropped": {
            **dict(sorted(faults.counts.items())),
            **({f"beyond the {limit} asked for": len(read) - len(kept)} if len(kept) < len(read) else {}),
        },
        "not_parsed": {
            reason: count
            for reason, count in ((NOT_PARSED, len(shown) - len(apart)), (GIVEN_AWAY, len(apart) - len(examples)))
            if count
        },
        "conflicts": dict(merged.conflicts),
        "repeated_ids": sum(row.repeated for row in shown),
        "warnings": _warnings(kept),
    }
    files = {
        "verbatim.jsonl": "".join(example_lines(row.verbatim for row in shown)),
        "examples.jsonl": "".join(example_lines(examples)),
        "README.md": without_keys(release_card(manifest)),
        "skipped.jsonl": without_keys(skipped_lines(faults.rows)),
    }

    def write(fresh: Path) -> None:
        for name, text in files.items():
            if text:
                (fresh / name).write_text(text, "utf-8", newline="\n")

    place.fill(write, manifest)
    return ReleaseSummary(place.out, manifest)


def _drawn(released: Sequence[Released], limit: int | None, *, seed: int) -> Sequence[Released]:
    chosen = set(shuffled((row.verbatim.id for row in released), seed=seed, purpose="released rows")[:limit])
    return [row for row in released if row.verbatim.id in chosen]


def _hidden(released: Sequence[Released], *, salt: str) -> list[Released]:
    """The rows under pseudonyms. What stands in a prompt is not changed."""
    names = pseudonyms((row.verbatim.reviewer_id or "" for row in released), salt=salt)
    hidden = []
    for row in released:
        update = {"reviewer_id": names[row.verbatim.reviewer_id or ""]}
        example = row.example and row.example.model_copy(update=update)
        hidden.append(replace(row, verbatim=row.verbatim.model_copy(update=update), example=example))
    return hidden


def counted(verbatim: Sequence[Example], examples: Sequence[Example]) -> dict[str, Any]:
    """The counts of a folder's lines, for the manifest."""
    return {
        "prompts": len(verbatim),
        "examples": len(examples),
        "reviewers": len({example.reviewer_id for example in verbatim}),
        "aspects": _aspects(examples),
    }


def _aspects(examples: Sequence[Example]) -> dict[str, int]:
    return dict(sorted(Counter(example.aspect for example in examples if example.aspect is not None).items()))


def _warnings(released: Sequence[Released]) -> dict[str, int]:
    """How many prompts still name titles or reviewers, by which a model may recall the film."""
    names: dict[str, Callable[[Released], Sequence[str | None]]] = {
        "the title of what is asked about": lambda row: (row.title,),
        "a title of the profile": lambda row: row.profile_titles,
        "the reviewer's name": lambda row: (row.verbatim.reviewer_id,),
    }
    counts = {
        what: sum(any(_named(name, row.verbatim.prompt) for name in of(row)) for row in released) for what, of in names.items()
    }
    return {what: count for what, count in counts.items() if count}


def _named(name: str | None, prompt: str) -> bool:
    """Whether a name is in a prompt as a word, written the same way: "It" is not "it"."""
    return bool(name) and re.search(rf"(?<!\w){re.escape(str(name))}(?!\w)", prompt) is not None


def _repeats(count: int) -> tuple[str, ...]:
    have = "has" if count == 1 else "have"
    return (f"{_counted(count, 'row')} {have} the idx of a row before: the id then ends in -2, -3 and so on",) if count else ()


def _counted(count: int, unit: str) -> str:
    return f"{count} {unit}" + ("" if count == 1 else "s")


def release_card(manifest: Mapping[str, Any]) -> str:
    """What the folder holds, with warnings, as Markdown under the hub's YAML header."""
    counts = manifest["counts"]
    files = {"verbatim": "verbatim.jsonl"} | ({"examples": "examples.jsonl"} if counts["examples"] else {})
    card = templates("perse.data", counted=_counted).get_template("release.md.jinja")
    before = ", of all prompts before anybody left" if manifest.get("forgotten") else ""  # names and titles are not kept
    return card.render(manifest, before=before, header=hub_header(files, rows=counts["prompts"]))
