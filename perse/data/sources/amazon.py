"""Amazon's published reviews and products, in every shape they were published in, as one kind of record.

Reviews: JSON lines of 2014 and 2018 (`reviewerID`, `asin`, `reviewText`, `overall`) and of 2023 (`user_id`, `parent_asin`,
`text`, `rating`), the same as CSV, and CSV of nine columns without a header. Products (`meta_*`): JSON lines, those of 2014 being
Python literals, which are built and never run. All reviews are held at once, since the latest of several by one reviewer about
one product stays: a million reviews of a hundred words take 1.3 GB.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path

from perse.data.sources.columns import Role, check_fields
from perse.data.sources.faults import Faults
from perse.data.sources.lines import first_fields, is_csv, shown
from perse.data.sources.rows import Row, read_rows, read_score, usable
from perse.errors import BadInput
from perse.records import Review
from perse.scale import rescale

NINE_COLUMNS = (
    "reviewerID",
    "asin",
    "reviewerName",
    "helpful",
    "reviewText",
    "overall",
    "summary",
    "unixReviewTime",
    "reviewTime",
)
"""The columns of the CSV files that come without a header."""

STARS = (1.0, 5.0)
"""Lowest and highest score."""

_ASIN = re.compile(r"[0-9A-Z]{10}")
_STARS = re.compile(r"[1-5](\.0*)?")
_HIDDEN = re.compile(r"<(/?)(?:script|style)\b[^<>]*>", re.IGNORECASE)
_INLINE = re.compile(r"</?(?:a|b|i|u|em|strong|span|font|sup|sub)(?:\s[^<>]*)?>", re.IGNORECASE)
_TAG = re.compile(r"</?[a-z][^<>]*>|<!--[^<>]*-->", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class AmazonReview:
    """One review of one product. Nobody else has one by the same reviewer of the same product."""

    reviewer_id: str
    item_id: str
    """The product: `parent_asin` where there is one, else `asin`."""
    review: str
    score: float
    """Stars, 1 to 5; `perse.scale.rescale` takes them to 1-10."""
    title: str | None = None
    """The review's headline (`summary`)."""
    time: str | None = None
    """ISO date, with the time of day where it is known (UTC); None where there is none or it cannot be read."""
    category: str | None = None
    """As the row says; most files hold one category and say it in their name (`category_of`)."""


def read_amazon(
    path: Path, faults: Faults, *, columns: Mapping[str, str] | None = None, limit: int | None = None
) -> list[AmazonReview]:
    """The reviews of one file, in its order.

    A review without text is left out and counted, as is every review but the latest by one reviewer of one product (the later
    line where the times are equal or absent): Amazon's files list both often, so neither is a bad row.

    Args:
        faults: takes the bad rows; `left_out` counts those above.
        columns: our field -> the file's column, binding, for files with columns of other names.
        limit: at most so many rows are read.
    Raises:
        BadInput: the file cannot be used, holds ratings without review texts, or no row is left; the first bad row, if those
            are to stop the reading.
    """
    check_fields(columns or {}, Role.AMAZON, with_items=False)
    header = headerless(path)
    latest: dict[tuple[str, str], AmazonReview] = {}
    told: Counter[str] = Counter()

    def read(row: Row) -> bool:
        if is_csv(path) and row.header.columns_for("review") is None and row.header.columns_for("score") is not None:
            raise _ratings_only(path)
        review = plain_text(row.optional_text("review") or "")
        if not review:
            told["no review text"] += 1
            return False
        reviewer = row.text("reviewer_id", reason="no reviewer")
        item = row.text("item_id", reason="no item")
        one = AmazonReview(
            reviewer_id=reviewer,
            item_id=item,
            review=review,
            score=read_score(row, STARS, fixed=True),
            title=plain_text(row.optional_text("title") or "") or None,
            time=iso_date(row.get("time")),
            category=row.optional_text("category"),
        )
        known = latest.pop((reviewer, item), None)
        if known is not None:
            told["an older review of the same product by the same reviewer"] += 1
        latest[reviewer, item] = known if known is not None and (known.time or "") > (one.time or "") else one
        return True

    usable(islice(read_rows(path, columns or {}, faults, role=Role.AMAZON, header=header), limit), read, faults)
    faults.left_out.update(told)
    if not latest:
        raise _ratings_only(path)
    return list(latest.values())


def read_product_texts(path: Path, faults: Faults, *, wanted: Container[str] | None = None) -> dict[str, str]:
    """Product id -> title and description (features where it has no description), without HTML, of a `meta_*` file.

    A product without either, and every further row of one already read, is left out and counted.

    Args:
        faults: takes the bad rows: no id, or a line that is neither JSON nor a Python literal.
        wanted: keep these products alone, if given.
    Raises:
        BadInput: the file cannot be used; the first bad row, if those are to stop the reading.
    """
    texts: dict[str, str] = {}

    def read(row: Row) -> None:
        item = row.text("item_id", reason="item without id")
        if wanted is not None and item not in wanted:
            return
        parts = [joined_texts(row, "title"), joined_texts(row, "description") or joined_texts(row, "features")]
        text = "\n".join(part for part in parts if part)
        if not text:
            faults.left_out["product without text"] += 1
        elif texts.setdefault(item, text) is not text:
            faults.left_out["product listed twice"] += 1

    usable(read_rows(path, {}, faults, role=Role.PRODUCTS, literals=True), read, faults)
    return texts


def amazon_reviews_as_records(
    reviews: Path,
    products: Path,
    faults: Faults,
    *,
    columns: Mapping[str, str] | None = None,
    limit: int | None = None,
) -> list[Review]:
    """The reviews of `reviews` joined with the texts of the products they are about, scores rescaled from 1-5 to 1-10.

    Reviews of a product that has no text are left out and counted. `columns` and `limit` as in `read_amazon`.

    Raises:
        BadInput: as `read_amazon`; no review left.
    """
    read = read_amazon(reviews, faults, columns=columns, limit=limit)
    texts = read_product_texts(products, faults, wanted={one.item_id for one in read})
    records = list(_records(read, texts))
    faults.left_out["product not in the meta file"] += len(read) - len(records)
    if not records:
        raise BadInput(
            f"{products}: has none of the {len({one.item_id for one in read}):,} products of {reviews}; is it its meta?"
        )
    return records


def category_of(path: Path) -> str:
    """The category that a file's name says: "Musical Instruments" for reviews_Musical_Instruments_5.json.gz."""
    stem = path.name.split(".")[0]
    return re.sub(r"^(?:reviews|meta)_|_\d+$", "", stem).replace("_", " ")


def headerless(path: Path) -> Sequence[str] | None:
    """The columns of a CSV file that has no header line; None where the file has one, or is JSON.

    Raises:
        BadInput: the file is one of Amazon's ratings without texts, or cannot be read.
    """
    fields = first_fields(path) if is_csv(path) else []
    if is_ratings_row(fields):
        raise _ratings_only(path)
    nine = len(fields) == len(NINE_COLUMNS) and _ASIN.fullmatch(fields[1]) and _STARS.fullmatch(fields[5])
    return NINE_COLUMNS if nine else None


def is_ratings_row(fields: Sequence[str]) -> bool:
    """Whether this is a row of a file of ratings alone: user and product in either order, stars, time."""
    if len(fields) != 4 or not (_STARS.fullmatch(fields[2]) and fields[3].isdigit()):
        return False
    return any(_ASIN.fullmatch(field) for field in fields[:2])


def plain_text(text: str) -> str:
    """`text` without HTML tags, scripts, styles and entities; block tags end a line."""
    if "<" in text:
        pieces = _HIDDEN.split(text)  # text, slash or nothing, text, ...: what stands after an opening tag is hidden
        text = pieces[0] + "".join(pieces[at + 1] for at in range(1, len(pieces), 2) if pieces[at] == "/")
        text = _TAG.sub("\n", _INLINE.sub("", text))
    lines = (" ".join(line.split()) for line in html.unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _records(reviews: Iterable[AmazonReview], texts: Mapping[str, str]) -> Iterable[Review]:
    counts: Counter[str] = Counter()
    for one in reviews:
        if one.item_id not in texts:
            continue
        counts[one.reviewer_id] += 1
        yield Review(
            review_id=f"{one.reviewer_id}-r{counts[one.reviewer_id]:03d}",
            reviewer_id=one.reviewer_id,
            item_id=one.item_id,
            text=texts[one.item_id],
            review=one.review,
            score=rescale(one.score, *STARS),
            original_score=one.score,
            time=one.time,
        )


def _ratings_only(path: Path) -> BadInput:
    return BadInput(
        f"{path}: holds ratings without review texts; take the reviews file of the category (such as its 5-core), which has a "
        "column reviewText or text"
    )


def joined_texts(row: Row, field: str) -> str:
    """A text, or a list of texts on lines of their own; nothing where the field is absent."""
    value = row.get(field)
    parts: list[object] = [part for part in (value if isinstance(value, list) else [value]) if part is not None]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) < len(parts):
        row.bad(field, f"found {shown(value)}, expected a text or a list of texts", reason="not a text")
    return "\n".join(plain for text in texts if (plain := plain_text(text)))


def iso_date(value: object) -> str | None:
    """Seconds or milliseconds since 1970, "02 28, 2014" or an ISO date, as an ISO date."""
    text = str(value).strip()
    try:
        if re.fullmatch(r"\d+(\.0*)?", text, re.ASCII):
            seconds = float(text)
            # Milliseconds of any review are above this number, seconds below it until the year 5138.
            moment = datetime.fromtimestamp(seconds / 1000 if seconds >= 1e11 else seconds, UTC).replace(tzinfo=None)
        elif re.fullmatch(r"\d\d? \d\d?, \d{4}", text, re.ASCII):
            moment = datetime.strptime(text, "%m %d, %Y")
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    midnight = moment.time() == datetime.min.time()
    return moment.date().isoformat() if midnight else moment.isoformat(timespec="seconds")
