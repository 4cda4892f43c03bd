"""What a person's files hold, and the command that builds a data set of them.

`perse data describe` knows the formats and the usual names of columns. Where names do not tell, values do: the texts' file is joined by the
pair of columns that have most values in common, its text is the column with most words, and so is a review. Where two columns could be meant, or
none, nothing is guessed: a sentence names them, and the option that settles it.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from perse.data.describing.facts import ENOUGH, Description, describe
from perse.data.sources.faults import Faults
from perse.data.sources.lines import read_records
from perse.data.sources.source import Head
from perse.errors import BadInput
from perse.records.columns import ITEMS, REVIEWS, Header, mapping_for, named_columns, plain_name

LOOKED_AT = 5000
"""Rows of a file whose values are compared."""
ENOUGH_JOINED = 0.5
"""Share of the reviews whose text must be found for two columns to be taken for its name."""
FEWEST_WORDS = 3
"""On average, of a column that is taken for texts or reviews."""
MOST_WORDS = 20
"""On average, of a column that could name texts."""
NEARLY = 0.05
"""Two pairs of columns that join so alike could both be meant."""
HALF = 0.5
"""Another column with this share of the words could be meant, too."""
PLACEHOLDERS = frozenset({"ITEMS", "META", "REVIEWS", "JUDGE", "OUT"})
"""What a description writes where it does not know a file (`perse.data.sources.source.Seen`)."""
READERS = 20
"""Who are judged, where so many can be spared: an interval of fewer is wide."""
MOST_HELD_OUT = 0.34

Rows = Sequence[Mapping[str, object]]


@dataclass(frozen=True)
class Joined:
    """The file of texts: its columns, and of how many of the first reviews it has a text, `found` of those `looked` at."""

    file: Path
    rows: int
    item_id: str
    text: str
    words: float
    by: str
    """The column of the reviews that names the text."""
    found: int
    looked: int


@dataclass(frozen=True)
class Understood:
    """What two files were taken for. `build` are the words behind `perse`, without `--out`."""

    description: Description
    texts: Joined | None
    build: tuple[str, ...]

    @property
    def scale(self) -> str:
        """The scale that is taken for that of the scores, such as "1-5"."""
        return self.build[self.build.index("--scale") + 1] if "--scale" in self.build else "1-10"

    @property
    def fewest(self) -> int:
        """How many reviews a reader must have to be kept."""
        return _fewest(self.build)


def understand(reviews: Path, texts: Path | None, columns: Mapping[str, str]) -> Understood:
    """What the files hold.

    Args:
        columns: our field -> column, of what the user says (`--map`); `items.FIELD` for the file of texts.
    Raises:
        BadInput: a file that cannot be read, or a field for which no column, or more than one, could stand.
    """
    own = {field: column for field, column in columns.items() if not field.startswith("items.")}
    plain = describe(reviews) if not own else None
    if plain is not None and plain.next is not None and texts is None and _is_whole(plain.next):
        return Understood(plain, None, _build(plain, None))
    names = _columns(reviews)
    rows = _rows(reviews)
    header = Header(names, own)
    found = {field: column for field in REVIEWS.fields if (column := _one(header, field)) is not None}
    joined = None
    if texts is not None:
        _leave_to_review(found, own)
        joined = _joined(texts, rows, names, columns, own, found)
        found["item_id"] = joined.by
    if "score" not in found and (score := _scores(reviews, rows, names, found)):
        found["score"] = score
    if "review" not in found and (review := _review(reviews, rows, names, found, joined)):
        found["review"] = review
    if texts is None and "review" not in found and "text" in found and "text" not in own:
        raise BadInput(
            f"{reviews}: '{found['text']}' is either what the reviewers wrote or the text that they wrote of, and nothing else is the other; "
            "give the file of the texts behind it, or --map review=COLUMN"
        )
    for field, what in (("reviewer_id", "who wrote a review"), ("score", "its score"), ("review", "what they wrote")):
        if field not in found:
            raise BadInput(
                f"{reviews}: no column was recognised that says {what}; columns found: {named_columns(names)}; give --map "
                f"{field}=COLUMN"
            )
    if joined is None and "text" not in found:
        raise BadInput(
            f"{reviews} holds reviews, and no texts that they are about; give the file of the texts behind it, or --map text=COLUMN "
            f"where a column has them (columns found: {named_columns(names)})"
        )
    mapped = {field: column for field, column in found.items() if _must_be_said(header, own, field, column)}
    described = describe(reviews, columns=mapped) if mapped else plain or describe(reviews)
    return Understood(described, joined, _build(described, joined, columns))


def _is_whole(command: str) -> bool:
    """Whether nothing in it is left to be filled in, and it builds a data set of single texts."""
    words = shlex.split(command)
    return words[:3] == ["perse", "data", "pointwise"] and not any(map(_is_open, words))


def _is_open(word: str) -> bool:
    return word in PLACEHOLDERS or word.endswith("=COLUMN")


def _build(description: Description, joined: Joined | None, columns: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """The command that builds, from the one that a description shows.

    Raises:
        BadInput: none could be built.
    """
    if description.next is None or not description.next.startswith("perse data pointwise"):
        why = description.note or description.next or "it is no table of reviews"
        raise BadInput(f"{description.file} ({description.format}): {why}")
    words = shlex.split(description.next)[1:]
    del words[words.index("--out") : words.index("--out") + 2]
    if joined is not None:
        if "--items" not in words:
            words += ["--items", ""]
        words[words.index("--items") + 1] = str(joined.file)
        told = Header(_columns(joined.file), {}, role=ITEMS, hints={"item_id": joined.by})
        for field, column in (("item_id", joined.item_id), ("text", joined.text)):
            if f"items.{field}" in (columns or {}) or told.columns_for(field) != (column,):
                words += ["--map", f"items.{field}={column}"]
    if unknown := [word for word in words if _is_open(word)]:
        raise BadInput(
            f"{description.file} ({description.format}) wants another file, {', '.join(unknown)}; type: {description.next}"
        )
    if "--on-error" not in words:
        words += ["--on-error", "skip"]  # the build counts what it leaves out, of texts, too
    readers = (
        description.per_reviewer.enough if description.per_reviewer and _fewest(words) == ENOUGH else description.reviewers
    )
    share = min(MOST_HELD_OUT, max(0.1, READERS / readers)) if readers else 0.1
    return (*words, "--valid", f"{share:.2g}", "--profiles", "per_reviewer_epoch")


def _fewest(words: Sequence[str]) -> int:
    return int(words[words.index("--min-reviews") + 1]) if "--min-reviews" in words else ENOUGH


def _joined(
    texts: Path,
    reviews: Rows,
    names: Sequence[str],
    columns: Mapping[str, str],
    own: Mapping[str, str],
    found: Mapping[str, str],
) -> Joined:
    """The texts, by the columns that the user or their names say, else by those whose values are the same.

    Args:
        found: what is known of the reviews' columns, none of which can name the texts but `item_id`.
    Raises:
        BadInput: no two columns name the same texts, or more than two could; no column holds texts, or more than one could.
    """
    rows, theirs = _rows(texts), _columns(texts)
    told = Header(theirs, mapping_for(ITEMS, columns, with_items=True), role=ITEMS)
    taken = {column for field, column in found.items() if field != "item_id"}
    ours = [own["item_id"]] if "item_id" in own else [name for name in names if name not in taken]
    able = [name for name in theirs if 0 < _words(rows, name) <= MOST_WORDS]
    able = [columns["items.item_id"]] if "items.item_id" in columns else able
    count, values = _values(texts, able)
    shares = {
        (mine, other): sum(_shown(row.get(mine)) in values[other] for row in reviews) / max(1, len(reviews))
        for mine in ours
        for other in able
        if len(values[other]) >= 0.9 * count or told.is_mapped("item_id")  # a name of texts is another in each row
    }
    by, item_id = _pair(
        texts, shares, named=(found.get("item_id"), _one(told, "item_id")), names=names, theirs=theirs, looked=len(reviews)
    )
    words = {name: _words(rows, name) for name in theirs if name != item_id}
    text = _one(told, "text") or _most(words, what=f"{texts}: two columns could hold the texts", option="items.text")
    if text is None or text not in theirs:
        raise BadInput(f"{texts}: no column holds texts; columns found: {named_columns(theirs)}; give --map items.text=COLUMN")
    with_text = _with_text(texts, item_id, text)
    able_to = sum(_shown(row.get(by)) in with_text for row in reviews)
    return Joined(texts, count, item_id, text, words.get(text, 0.0), by, able_to, len(reviews))


def _pair(
    texts: Path,
    shares: Mapping[tuple[str, str], float],
    *,
    named: tuple[str | None, str | None],
    names: Sequence[str],
    theirs: Sequence[str],
    looked: int,
) -> tuple[str, str]:
    """The two columns that name the texts: those that are called so if they join, else those that join best, and alone so well.

    Raises:
        BadInput: there are none, or others that join nearly as well.
    """
    remedy = "give --map item_id=COLUMN --map items.item_id=COLUMN"
    mine, other = named
    if mine is not None and other is not None and shares.get((mine, other), 0) >= ENOUGH_JOINED:
        return mine, other
    best = max(shares, key=lambda pair: (shares[pair], plain_name(pair[0]) == plain_name(pair[1])), default=None)
    if best is None or shares[best] < ENOUGH_JOINED:
        closest = (
            ""
            if best is None
            else f"; the nearest are {best[0]} and {best[1]}, for {shares[best]:.0%} of the first {looked:,} reviews"
        )
        raise BadInput(
            f"{texts}: no column names the texts that the reviews are about{closest}; columns found: {named_columns(theirs)}, and in "
            f"the reviews {named_columns(names)}; {remedy}"
        )
    others = [pair for pair in shares if pair != best and shares[pair] >= shares[best] - NEARLY]
    if others and plain_name(best[0]) != plain_name(best[1]):
        raise BadInput(
            f"{texts}: the texts that the reviews are about could be named by {best[0]} = {best[1]} ({shares[best]:.0%} of the first {looked:,} reviews) or "
            f"{others[0][0]} = {others[0][1]} ({shares[others[0]]:.0%}); {remedy}"
        )
    return best


def _values(path: Path, names: Sequence[str]) -> tuple[int, dict[str, set[str]]]:
    """How many rows a file has, and the values of some columns in all of them."""
    count, values = 0, {name: set[str]() for name in names}
    for _, row in read_records(path, Faults("skip", keep=1), literals=True):
        count += 1
        for name in names:
            if value := _shown(row.get(name)):
                values[name].add(value)
    return count, values


def _with_text(path: Path, name: str, text: str) -> set[str]:
    """The values of a column in the rows that have a text."""
    return {
        _shown(row.get(name)) for _, row in read_records(path, Faults("skip", keep=1), literals=True) if _shown(row.get(text))
    }


def _most(words: Mapping[str, float], *, what: str, option: str) -> str | None:
    """The column with most words, if it has some.

    Raises:
        BadInput: another has nearly as many.
    """
    first, second = [*sorted(words, key=lambda name: -words[name]), "", ""][:2]
    if not first or words[first] < FEWEST_WORDS:
        return None
    if second and words[second] >= max(FEWEST_WORDS, HALF * words[first]):
        raise BadInput(
            f"{what}: {first} ({words[first]:.0f} words on average) or {second} ({words[second]:.0f}); give --map {option}=COLUMN"
        )
    return first


def _leave_to_review(found: dict[str, str], own: Mapping[str, str]) -> None:
    """Beside a file of texts, a column called text is what the reviewer wrote, where no other is."""
    text = found.pop("text", None) if "text" not in own else None
    if text is not None:
        found.setdefault("review", text)


def _scores(path: Path, rows: Rows, names: Sequence[str], found: Mapping[str, str]) -> str | None:
    """The one column that is numbers, few of them different; None where there is none.

    Raises:
        BadInput: there are several.
    """
    able = []
    for name in names:
        values = [value for row in rows if (value := _shown(row.get(name)))]
        numbers = [value for value in values if _is_number(value)]
        if name not in found.values() and len(numbers) >= 0.9 * max(1, len(values)) and 1 < len(set(numbers)) <= 101:
            able.append(name)
    if len(able) > 1:
        raise BadInput(f"{path}: several columns could be the score: {named_columns(able)}; give --map score=COLUMN")
    return able[0] if able else None


def _review(path: Path, rows: Rows, names: Sequence[str], found: Mapping[str, str], joined: Joined | None) -> str | None:
    """The column with most words, but for those that say the same of a text whoever reviews it.

    Raises:
        BadInput: another has nearly as many.
    """
    item = found.get("item_id")
    words = {
        name: _words(rows, name)
        for name in names
        if name not in found.values()
        and not (joined is not None and name == joined.text)
        and not (item is not None and _follows(rows, name, item))
    }
    return _most(words, what=f"{path}: two columns could be what the reviewers wrote", option="review")


def _follows(rows: Rows, name: str, item: str) -> bool:
    """Whether a column has one value for each text, of which some have several rows."""
    seen: dict[str, set[str]] = {}
    for row in rows:
        if value := _shown(row.get(name)):
            seen.setdefault(_shown(row.get(item)), set()).add(value)
    return len(rows) > len(seen) and all(len(values) == 1 for values in seen.values())


def _must_be_said(header: Header, own: Mapping[str, str], field: str, column: str) -> bool:
    return field in own or _one(header, field) != column


def _one(header: Header, field: str) -> str | None:
    found = header.columns_for(field)
    return "+".join(found) if found is not None else None


def _columns(path: Path) -> tuple[str, ...]:
    """Those that have a name.

    Raises:
        BadInput: there are none.
    """
    names = tuple(name for name in Head(path).names if name)
    if not names:
        raise BadInput(f"{path}: no columns were found in it; give a table of CSV, TSV, JSON lines or Parquet with a header")
    return names


def _rows(path: Path) -> Rows:
    records: Iterator[tuple[int, dict[str, object]]] = read_records(path, Faults("skip", keep=1), literals=True)
    return [values for _, values in islice(records, LOOKED_AT)]


def _words(rows: Rows, name: str) -> float:
    """Per value, on average."""
    counts = Counter(len(value.split()) for row in rows if (value := _shown(row.get(name))))
    return sum(words * times for words, times in counts.items()) / max(1, counts.total())


def _shown(value: object) -> str:
    return "" if value is None or isinstance(value, bool | list | dict) else str(value).strip()


def _is_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True
