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
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from types import MappingProxyType

from perse.data.pseudonyms import numbered
from perse.data.sources.facts import Facts, item_facts, review_facts
from perse.data.sources.faults import Faults
from perse.data.sources.lines import first_fields, is_csv
from perse.data.sources.rows import NUL, Row, read_rows, read_score, usable
from perse.data.sources.source import Head, Seen, Source, Wanted, table_columns
from perse.data.sources.table import RATINGS
from perse.errors import BadInput
from perse.formats.json_text import shortened
from perse.records import Review
from perse.records.columns import REVIEWS, Role, check_fields, plain_name
from perse.records.dates import sortable
from perse.scale import rescale

_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "reviewer_id": ("reviewerID", "user_id", "customer_id"),
        "item_id": ("parent_asin", "asin", "product_id"),
        "review": ("reviewText", "text", "review_body"),
        "score": ("overall", "rating", "star_rating"),
        "title": ("summary", "review_headline"),
        "time": ("unixReviewTime", "timestamp", "reviewTime", "review_date"),
        "category": ("main_category", "product_category"),
        "features": ("feature",),
    }
)
"""The names of fields in the files; here `text` is the review and `title` its headline or the product's name."""

AMAZON_FIELDS = Role(("reviewer_id", "item_id", "review", "score", "title", "time", "category"), aliases=_NAMES)
PRODUCT_FIELDS = Role(("item_id", "title", "description", "features"), aliases=_NAMES)

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
    """One review of one product, the only one by this reviewer."""

    reviewer_id: str
    item_id: str
    """The product: `parent_asin` if there is one, else `asin`."""
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
    check_fields(columns or {}, AMAZON_FIELDS, with_items=False)
    header = headerless(path)
    latest: dict[tuple[str, str], AmazonReview] = {}
    told: Counter[str] = Counter()

    def read(row: Row) -> bool:
        if is_csv(path) and row.header.columns_for("review") is None and row.header.columns_for("score") is not None:
            raise _ratings_only(path)
        text = plain_text(row.optional_text("review") or "")
        if not text:
            told["no review text"] += 1
            return False
        reviewer = row.text("reviewer_id", reason="no reviewer")
        item = row.text("item_id", reason="no item")
        review = AmazonReview(
            reviewer_id=reviewer,
            item_id=item,
            review=text,
            score=read_score(row, STARS, fixed=True),
            title=plain_text(row.optional_text("title") or "") or None,
            time=iso_date(row.get("time")),
            category=row.optional_text("category"),
        )
        known = latest.pop((reviewer, item), None)
        if known is not None:
            told["an older review of the same product by the same reviewer"] += 1
        latest[reviewer, item] = known if known is not None and (known.time or "") > (review.time or "") else review
        return True

    usable(islice(read_rows(path, columns or {}, faults, role=AMAZON_FIELDS, header=header), limit), read, faults)
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
        BadInput: the file cannot be used, or holds reviews, whose headlines would be taken for the products' names; the first bad
            row, if those are to stop the reading.
    """
    texts: dict[str, str] = {}

    def read(row: Row) -> None:
        item = row.text("item_id", reason="item without id")
        if _names_reviewer(row.header.names):
            raise BadInput(
                f"{path}: holds reviews, not products (columns {', '.join(row.header.names)}); give the category's meta file"
            )
        if wanted is not None and item not in wanted:
            return
        parts = [joined_texts(row, "title"), joined_texts(row, "description") or joined_texts(row, "features")]
        text = "\n".join(part for part in parts if part)
        if not text:
            faults.left_out["product without text"] += 1
        elif texts.setdefault(item, text) is not text:
            faults.left_out["product listed twice"] += 1

    usable(read_rows(path, {}, faults, role=PRODUCT_FIELDS, literals=True), read, faults)
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
    texts = read_product_texts(products, faults, wanted={review.item_id for review in read})
    records = numbered(_records(read, texts))
    faults.left_out["product not in the meta file"] += len(read) - len(records)
    if not records:
        raise BadInput(
            f"{products}: has none of the {len({review.item_id for review in read}):,} products of {reviews}; is it its meta?"
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
    return NINE_COLUMNS if _is_review_row(fields) else None


def is_ratings_row(fields: Sequence[str]) -> bool:
    """Whether this is a row of a file of ratings alone: user and product in either order, stars, time."""
    if len(fields) != 4 or not (_STARS.fullmatch(fields[2]) and fields[3].isdigit()):
        return False
    return any(_ASIN.fullmatch(field) for field in fields[:2])


def _is_review_row(fields: Sequence[str]) -> bool:
    """Whether this is a row of a file of reviews without a header."""
    return bool(len(fields) == len(NINE_COLUMNS) and _ASIN.fullmatch(fields[1]) and _STARS.fullmatch(fields[5]))


def plain_text(text: str) -> str:
    """`text` without HTML tags, scripts, styles and entities; block tags end a line."""
    if "<" in text:
        pieces = _HIDDEN.split(text)  # text, slash or nothing, text, ...: what stands after an opening tag is hidden
        text = pieces[0] + "".join(pieces[at + 1] for at in range(1, len(pieces), 2) if pieces[at] == "/")
        text = _TAG.sub("\n", _INLINE.sub("", text))
    lines = (" ".join(line.split()) for line in html.unescape(text).split("\n"))
    return "\n".join(line for line in lines if line)


def _records(reviews: Iterable[AmazonReview], texts: Mapping[str, str]) -> Iterable[Review]:
    for review in reviews:
        if review.item_id not in texts:
            continue
        yield Review(
            review_id="",
            reviewer_id=review.reviewer_id,
            item_id=review.item_id,
            text=texts[review.item_id],
            review=review.review,
            score=rescale(review.score, *STARS),
            original_score=review.score,
            time=review.time,
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
        row.bad(field, f"found {shortened(value)}, expected a text or a list of texts", reason="not a text")
    if any("\0" in text for text in texts):
        row.bad(field, NUL, reason="a NUL character")
    return "\n".join(plain for text in texts if (plain := plain_text(text)))


def iso_date(value: object) -> str | None:
    """Seconds or milliseconds since 1970, "02 28, 2014" or an ISO date, as an ISO date."""
    text = str(value).strip()
    try:
        if re.fullmatch(r"\d+(\.0*)?", text, re.ASCII):
            seconds = float(text)
            # Milliseconds of any review are above this number, seconds below it until the year 5138.
            moment = datetime.fromtimestamp(seconds / 1000 if seconds >= 1e11 else seconds, UTC).replace(tzinfo=None)
        elif (written := sortable(text)) is not None and text[:1].isalpha():
            moment = written.replace(tzinfo=None)
        elif re.fullmatch(r"\d\d? \d\d?, \d{4}", text, re.ASCII):
            moment = datetime.strptime(text, "%m %d, %Y")
        else:
            moment = datetime.fromisoformat(text)
    except (ValueError, OverflowError, OSError):
        return None
    midnight = moment.time() == datetime.min.time()
    return moment.date().isoformat() if midnight else moment.isoformat(timespec="seconds")


def _names_reviewer(names: Iterable[str]) -> bool:
    return not {plain_name(name) for name in names}.isdisjoint(("reviewerid", "userid", "customerid"))


def _is_amazon(head: Head) -> bool:
    """Whether the file names products as Amazon does; asked only of files with a header."""
    return bool(head.plain_names & {"asin", "parentasin"})


def _is_reviews(head: Head) -> bool:
    if _is_review_row(head.fields):
        return True
    names = head.plain_names
    return _is_amazon(head) and bool(names & {"reviewerid", "userid"} and names & {"reviewtext", "text"})


def _is_products(head: Head) -> bool:
    return _is_amazon(head) and "title" in head.plain_names and not head.plain_names & {"reviewerid", "userid"}


def _rows(path: Path, faults: Faults) -> Iterator[Row]:
    return read_rows(path, {}, faults, role=AMAZON_FIELDS, header=headerless(path))


def _product_rows(path: Path, faults: Faults) -> Iterator[Row]:
    return read_rows(path, {}, faults, role=PRODUCT_FIELDS, literals=True)


def _rating_rows(path: Path, faults: Faults) -> Iterator[Row]:
    fields = first_fields(path)
    # The product's id, of ten characters, is the shorter one.
    names = ("reviewer_id", "item_id") if len(fields[0]) >= len(fields[1]) else ("item_id", "reviewer_id")
    return read_rows(path, {}, faults, header=(*names, "score", "time"))


def _facts(path: Path, faults: Faults) -> Iterator[Facts]:
    def review(row: Row) -> str | None:
        text = row.optional_text("review")
        if text is None:
            faults.left_out["no review text"] += 1
        return text

    for row in _rows(path, faults):
        yield review_facts(
            row,
            faults,
            review=review,
            score=lambda row: f"{read_score(row, STARS, fixed=True):g}",
            time=lambda row: iso_date(row.get("time")),
        )


def _product_facts(path: Path, faults: Faults) -> Iterator[Facts]:
    for row in _product_rows(path, faults):
        yield item_facts(
            row, faults, text=lambda row: "\n".join(joined_texts(row, name) for name in ("title", "description")).strip()
        )


def _rating_facts(path: Path, faults: Faults) -> Iterator[Facts]:
    for row in _rating_rows(path, faults):
        yield review_facts(row, faults, review=lambda row: None)


def _read(wanted: Wanted, faults: Faults) -> list[Review]:
    if wanted.items is None:
        raise BadInput(f"{wanted.file}: the reviews do not say what the products are; give the category's meta file")
    return amazon_reviews_as_records(wanted.file, wanted.items, faults, columns=wanted.columns, limit=wanted.limit)


def _meta(seen: Seen) -> bool:
    """Whether the products' file lies beside the reviews."""
    return seen.meta != Seen.meta


def _next(seen: Seen) -> str:
    """Reviews where it is known what the products are; else what needs the reviews alone."""
    if _meta(seen):
        return f"perse data amazon --reviews {seen.file} --meta {seen.meta}{seen.needed} --out {seen.out}"
    return f"perse data persum --reviews {seen.file} --judge {seen.judge} --out {seen.out}"


NO_META = (
    "this builds summaries of products' reviews, as in PerSum; for reviews of products put the category's meta file beside it "
    "(perse data amazon --meta META)"
)

AMAZON = Source(
    name="amazon",
    title="Amazon reviews",
    recognise=_is_reviews,
    columns=lambda path: table_columns(_rows(path, Faults("skip", keep=1)), AMAZON_FIELDS),
    kind="pointwise",
    read=_read,
    files=("reviews", "meta"),
    scale=STARS,
    facts=_facts,
    once="review",
    next=_next,
    note=lambda seen: (
        "this builds reviews of products; summaries of products' reviews, as in PerSum: perse data persum"
        if _meta(seen)
        else NO_META
    ),
)

PRODUCTS = Source(
    name="products",
    title="Amazon products",
    recognise=_is_products,
    columns=lambda path: table_columns(_product_rows(path, Faults("skip", keep=1)), PRODUCT_FIELDS),
    facts=_product_facts,
    once="item",
    next=lambda seen: "nothing by itself: it says what the products of the reviews are",
)

AMAZON_RATINGS = replace(
    RATINGS,
    name="amazon-ratings",
    recognise=lambda head: is_ratings_row(head.fields),
    columns=lambda path: table_columns(_rating_rows(path, Faults("skip", keep=1)), REVIEWS),
    facts=_rating_facts,
)
"""The same without a header: user, product, stars, time."""
