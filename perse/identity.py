"""When two texts or two pairs of texts count as the same, and where every random choice comes from.

The single source of truth for both, with `perse.records.near` and `perse.data.works` for texts and works that are the same but for a
word: readers, profiles, splits and the leak check all decide by these functions, so that what one of them keeps apart, the
others cannot bring together.
"""

from __future__ import annotations

import random
import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b
from urllib.parse import unquote


def draw(seed: int, who: str, purpose: str) -> random.Random:
    """A generator of its own for one choice about one person or thing.

    Nobody shares a stream, so adding a reviewer or an item changes no other's draw. A string seeds it, which Python hashes
    with SHA-512: equal on every machine and in every process, unlike `hash`.
    """
    return random.Random(f"{seed}\x1f{purpose}\x1f{who}")


def shuffled(ids: Iterable[str], *, seed: int, purpose: str) -> list[str]:
    """`ids` in a random order in which each id's place comes from its own draw: one more id moves no two others."""
    return sorted(ids, key=lambda one: (draw(seed, one, purpose).random(), one))


_UNSEEN = re.compile(
    "[\u2800\ufff9-\ufffb\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that nothing is drawn for: soft hyphens, zero-width spaces and the like (Unicode's Default_Ignorable_Code_Point), blanks of Braille."""


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
"""Shown to a judge as blanks (`perse.rendering.neutralising`)."""


def normalised(text: str) -> str:
    """`text` without differences of case, spacing and Unicode form, and without what nobody sees: what "the same text" compares."""
    seen = text if text.isascii() and text.isprintable() else _UNSEEN.sub("", _CONTROL.sub(" ", text))
    return " ".join(unicodedata.normalize("NFKC", seen).casefold().split())


def text_key(text: str) -> str:
    """12 hex digits, equal for texts that are the same when `normalised`."""
    return blake2b(normalised(text).encode(), digest_size=6).hexdigest()


def item_of(text: str) -> str:
    """The id of an item that has none of its own."""
    return "t" + text_key(text)


def reader_key(reader: str) -> str:
    """12 hex digits that stand for a reader where the name must not be told."""
    return blake2b(reader.encode(), digest_size=6).hexdigest()


def catalogue_id(reader: str, text: str) -> str:
    """The id of a reader and a text of a catalogue: READER/TEXT, in which % and / of a name are %25 and %2F."""
    return "/".join(name.replace("%", "%25").replace("/", "%2F") for name in (reader, text))


def catalogue_names(id: str) -> tuple[str, str]:
    """Reader and text of a `catalogue_id`."""
    reader, text = id.split("/")
    return unquote(reader), unquote(text)


def pair_key(text_a: str, text_b: str) -> str:
    """A pair's id: 'p' and 12 hex digits, equal for the same two texts in either order."""
    both = "\x1f".join(sorted((normalised(text_a), normalised(text_b))))
    return "p" + blake2b(both.encode(), digest_size=6).hexdigest()
