"""Annotation tables of story plots compared in pairs, as Per-DOC was made from (PerSE, sections 4.1 and A.2).

A row holds a premise, two plots, the worker and either one answer with its aspect (long) or an answer to each of five questions
(wide). A question's column is known by its name, or by the words of the question where those are its name; what fits two
questions is refused rather than guessed. Columns of Amazon Mechanical Turk (`Input.plotA`, `Answer.ending`) are known too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from perse.data.sources.facts import Facts, pair_facts
from perse.data.sources.faults import Faults
from perse.data.sources.lines import column_names
from perse.data.sources.merging import Merging
from perse.data.sources.rows import Row, read_choice, read_rows, usable
from perse.data.sources.source import Head, Source, table_columns
from perse.data.sources.table import read_comparisons
from perse.errors import BadInput
from perse.records import ASPECTS, Comparison
from perse.records.columns import ALIASES, Header, Role, named_columns, nearest, plain_name

DOC_FIELDS = Role(
    ("reviewer_id", "text_a", "text_b", "premise", "time"),
    aliases=MappingProxyType(
        {
            **ALIASES,
            "text_a": ("plot_a", "plot1", "story_a", "story1", "outline_a", "outline1"),
            "text_b": ("plot_b", "plot2", "story_b", "story2", "outline_b", "outline2"),
        }
    ),
)

_WORDS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        # Before Interestingness: its question asks for the more interesting book or movie.
        "Adaptability": ("adapt", "bookormovie", "movieorbook"),
        "Interestingness": ("interest",),
        "Surprise": ("surpris", "suspens"),
        "Character Development": ("character", "identify", "carefor"),
        "Ending": ("ending",),
    }
)
"""What tells the question of an aspect, in the order they are tried; compared without case, spaces and punctuation."""


def read_doc(
    path: Path, faults: Faults, *, columns: Mapping[str, str] | None = None, limit: int | None = None
) -> list[Comparison]:
    """Comparisons, one for each worker and pair of plots, with all aspects that the worker answered.

    Pairs shown again in swapped order are merged (`merging`). "Both", "neither" and nothing are left out and counted, by answer
    and not by row. A row with an answer that cannot be read is bad as a whole.

    Args:
        columns: our field or one of the five aspects -> the file's column, binding.
        limit: at most so many rows are read.
    Raises:
        BadInput: the file cannot be used, no question is found in it, or no row is left; the first bad row, if those are to
            stop the reading.
    """
    columns = columns or {}
    names = column_names(path)
    if is_long(names, columns):
        return read_comparisons(path, None, faults, columns=_long(names, columns), limit=limit)
    asked = {aspect: column for name, column in columns.items() if (aspect := _aspect(name)) is not None}
    fields = {name: column for name, column in columns.items() if _aspect(name) is None}
    if unknown := [field for field in fields if field not in DOC_FIELDS.fields]:
        known = (*DOC_FIELDS.fields, *ASPECTS)
        column = columns[unknown[0]]
        raise BadInput(
            f"--map {unknown[0]}={column}: no field '{unknown[0]}'{nearest(unknown[0], known)}; fields: {', '.join(known)}"
        )
    if absent := [column for column in asked.values() if column not in names]:
        raise BadInput(f"{path}: no column '{absent[0]}'{nearest(absent[0], names)}; columns found: {named_columns(names)}")
    questions = question_columns(path, names, asked)
    merging = Merging()

    def read(row: Row) -> None:
        texts = (row.text("text_a", reason="empty text"), row.text("text_b", reason="empty text"))
        undecided = Faults()
        said = {
            aspect: read_choice(row, row.values.get(column), undecided, field=column) for aspect, column in questions.items()
        }
        choices = {aspect: choice for aspect, choice in said.items() if choice is not None}
        if choices:
            merging.add(row, texts, choices)
        faults.answers.update(undecided.left_out)  # otherwise a bad row would be counted twice

    usable(islice(read_rows(path, fields, faults, role=DOC_FIELDS), limit), read, faults)
    return merging.comparisons()


def is_long(names: Sequence[str], columns: Mapping[str, str]) -> bool:
    """Whether each row of a table with these columns holds one answer, with its aspect beside it."""
    header = Header(names, {})
    return "aspect" in columns or header.columns_for("aspect") is not None


def question_columns(path: Path, names: Sequence[str], asked: Mapping[str, str]) -> dict[str, str]:
    """aspect -> the column with its answers, for those found, in the paper's order.

    Args:
        names: the columns of the file.
        asked: aspects whose column is known.
    Raises:
        BadInput: none is found, or two columns seem to be about one aspect.
    """
    found = dict(asked)
    header = Header(names, {}, role=DOC_FIELDS)
    texts = {column for field in DOC_FIELDS.fields for column in header.columns_for(field) or ()}
    for name in names:
        # `Input.` columns such as `Input.characters` were shown to the workers and are not questions.
        if name in texts or name in asked.values() or name.startswith("Input."):
            continue
        plain = plain_name(name)
        aspect = next((aspect for aspect, words in _WORDS.items() if any(word in plain for word in words)), None)
        if aspect is None or aspect in asked:
            continue
        if aspect in found:
            raise BadInput(
                f"{path}: columns '{found[aspect]}' and '{name}' both seem to be about {aspect}; give --map '{aspect}=COLUMN'"
            )
        found[aspect] = name
    if not found:
        raise BadInput(
            f"{path}: no question found among the columns {', '.join(names)}; expected a column aspect, or one for each of "
            f"{', '.join(ASPECTS)}: give --map Ending=COLUMN and so on"
        )
    return {aspect: found[aspect] for aspect in ASPECTS if aspect in found}


def _long(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, str]:
    """The mapping, extended by the usual names of plots in such tables where they were found."""
    header = Header(names, columns, role=DOC_FIELDS)
    plots = {field: found[0] for field in ("text_a", "text_b") if (found := header.columns_for(field)) and len(found) == 1}
    return plots | dict(columns)


def _aspect(name: str) -> str | None:
    """The aspect that the user's name means."""
    return next((aspect for aspect in ASPECTS if plain_name(aspect) == plain_name(name)), None)


def _recognise(head: Head) -> bool:
    if not head.has(DOC_FIELDS, "reviewer_id", "text_a", "text_b") or is_long(head.names, {}):
        return False
    try:
        return bool(question_columns(head.path, head.names, {}))
    except BadInput:
        return False


def _facts(path: Path, faults: Faults) -> Iterator[Facts]:
    questions = question_columns(path, column_names(path), {})
    for row in read_rows(path, {}, faults, role=DOC_FIELDS):
        yield pair_facts(row, faults, {aspect: row.values.get(column) for aspect, column in questions.items()})


DOC = Source(
    name="doc",
    title="plot comparisons, a column for each question",
    recognise=_recognise,
    columns=lambda path: table_columns(read_rows(path, {}, Faults("skip", keep=1), role=DOC_FIELDS), DOC_FIELDS),
    kind="pairwise",
    read=lambda wanted, faults: read_doc(wanted.file, faults, columns=wanted.columns, limit=wanted.limit),
    files=("annotations",),
    facts=_facts,
    next=lambda seen: f"perse data per-doc --annotations {seen.file}{seen.split} --out {seen.out}",
)
