"""Reviewer names -> stable pseudonyms: "r" and 12 hex digits, a keyed hash of the name.

What this protects: readers of the folder, its exports or a prompt, and the model that is trained on them, see no names. What it
does not: whoever knows the salt can compute anybody's pseudonym from the name. That is wanted, since it is how a person's
rows are found when they ask to be forgotten, but it means that a list of likely names can be tried, too. The default salt is
derived from the seed, which the manifest tells: it only keeps names out of sight. Give a salt of your own, and keep it
apart from the folder, where the folder leaves your hands; it is never written into it. Review texts are not changed: a person
may still be known by what they wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Any, TypeVar

from perse.errors import BadInput
from perse.records import Comparison, Review

Record = TypeVar("Record", Review, Comparison)


def salt_from_seed(seed: int) -> str:
    """The salt of builds that name none: no secret, but different from data set to data set."""
    return f"perse seed {seed}"


def pseudonym(name: str, *, salt: str) -> str:
    """The pseudonym of a reviewer of this name; the same name and salt give the same one everywhere."""
    # blake2b keys have at most 64 bytes, salts may have more.
    key = blake2b(salt.encode(), digest_size=32).digest()
    return "r" + blake2b(name.encode(), key=key, digest_size=6).hexdigest()


def pseudonyms(names: Iterable[str], *, salt: str) -> dict[str, str]:
    """name -> pseudonym for all names.

    Raises:
        BadInput: two names have one pseudonym (about one chance in 560 million for a thousand names); they would become one
            reviewer.
    """
    names_of: dict[str, str] = {}
    for name in dict.fromkeys(names):
        hidden = pseudonym(name, salt=salt)
        if names_of.setdefault(hidden, name) != name:
            raise BadInput(f"reviewers '{names_of[hidden]}' and '{name}' get one pseudonym, {hidden}; give another --salt")
    return {name: hidden for hidden, name in names_of.items()}


def numbered(records: Iterable[Record]) -> list[Record]:
    """The records with their ids: the reviewer's name and the count of their records so far (ann-r001; of comparisons ann-c001)."""
    counts: Counter[str] = Counter()
    made = []
    for record in records:
        counts[record.reviewer_id] += 1
        letter = "r" if isinstance(record, Review) else "c"
        made.append(_identified(record, record.reviewer_id, f"{record.reviewer_id}-{letter}{counts[record.reviewer_id]:03d}"))
    return made


def hidden(records: Sequence[Record], *, salt: str) -> list[Record]:
    """The records under pseudonyms; their ids, which begin with the name (`numbered`), change with it. Raises as `pseudonyms`."""
    names = pseudonyms((record.reviewer_id for record in records), salt=salt)
    return [
        _identified(record, name, name + _id(record)[len(record.reviewer_id) :])
        for record in records
        for name in (names[record.reviewer_id],)
    ]


def _id(record: Review | Comparison) -> str:
    return record.review_id if isinstance(record, Review) else record.comparison_id


def _identified(record: Record, reviewer: str, own: str) -> Record:
    changes: dict[str, Any] = {"reviewer_id": reviewer, "review_id" if isinstance(record, Review) else "comparison_id": own}
    return record if (record.reviewer_id, _id(record)) == (reviewer, own) else replace(record, **changes)


def is_pseudonym(person: str) -> bool:
    """Whether this is what `pseudonym` makes of a name."""
    return len(person) == 13 and person[0] == "r" and all(char in "0123456789abcdef" for char in person[1:])
