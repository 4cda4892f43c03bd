"""Names by their capitals: rules that find the names of an English text without a trained model.

A run of words with capitals is a name, except where the capital is not evidence (the start of a sentence, a headline) and nothing
else speaks for it; titles, first names, a gazetteer and the words around it say what kind. One text is read at a time, so
its names do not depend on what else is read. Texts all in capitals, or without any, have no names to these rules.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from perse.data.names.fictional import (
    FIRST_NAMES,
    NO_NAMES,
    OPENERS,
    ORGANISATIONS,
    PLACE_ENDS,
    PLACE_STARTS,
    REAL_PLACES,
    RELATIONS,
    TITLES,
    WORDS_TOO,
)

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token

Kind = Literal["person", "place", "other"]


@dataclass(frozen=True)
class Name:
    """A name as it stands in the text, without title ("Dr.") and possessive, its words one space apart."""

    text: str
    kind: Kind


_TITLES, _RELATIONS, _ORGANISATIONS = frozenset(TITLES), frozenset(RELATIONS), frozenset(ORGANISATIONS)
_PLACE_STARTS, _PLACE_ENDS = frozenset(PLACE_STARTS), frozenset(PLACE_ENDS)
_NO_NAMES, _WORDS_TOO, _OPENERS = frozenset(NO_NAMES), frozenset(WORDS_TOO), frozenset(OPENERS)
PARTICLES = frozenset(
    ["of", "the", "de", "del", "della", "da", "di", "du", "des", "der", "den", "van", "von", "la", "le", "al", "bin", "y"]
)
_NOBLE = PARTICLES - {"of", "the", "al", "la", "le", "y"}
_DESCRIBES = re.compile(r".{3,}(man|woman|er|or|ist|ian|ess|ant|ent|eer|ing|ly|ed|ic|al|ous|ive|less|ary)")
_VERB = re.compile(r"is|was|has|had|does|did|will|would|could|can|must|who|and|.{2,}[^s]s|.{2,}ed|gets|goes|takes|finds|meets")
_NATIONAL = re.compile(r"(.{4,})(ese|ians?|ans|ically)")
_OPENING = frozenset(["'", '"', "\u201c", "\u2018", "\xab", ":", "*", "\u2022", "\u2013", "\u2014", "\u2026"])
_HYPHENS = ("-", "\u2010", "\u2011")
_WORD = re.compile(r"[^\W_][^()\[\]/_]*")
_CAST = re.compile(r" \([A-Z]")  # "Ash (Jane Doe)": a character and who plays it
_INITIALS = re.compile(r"([A-Z]\.){2,}")
_ROMAN = re.compile(r"[IVXL]+")
_PLACES = frozenset(place.casefold() for place in REAL_PLACES)
_PLACE_STEMS = frozenset(place[:4] for place in _PLACES)
_LONGEST_PLACE = max(len(place.split()) for place in _PLACES)
_FIRST = frozenset(FIRST_NAMES)


def distinct(names: Iterable[Name]) -> list[Name]:
    """The first of equal names, whatever their capitals; a form that is not all in capitals goes before one that is."""
    found: dict[str, Name] = {}
    for name in names:
        key = name.text.casefold()
        if key not in found or (found[key].text.isupper() and not name.text.isupper()):
            found[key] = name
    return list(found.values())


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of a text, from character `start` to `end`, without a possessive ending."""

    text: str
    start: int
    end: int
    opens: bool  # its capital is not evidence: it opens a sentence, a line or a quotation, or is in a headline
    joined: bool  # only white space stands between it and the word before
    owns: bool  # "'s" follows

    @property
    def key(self) -> str:
        return self.text.rstrip(".").casefold()


def by_rules(nlp: Language, texts: Sequence[str]) -> list[list[Name]]:
    """The names of each text; `nlp` splits it into words and sentences."""
    return [_named(doc, frozenset(nlp.Defaults.stop_words)) for doc in nlp.pipe(texts)]


def _named(doc: Doc, function_words: frozenset[str]) -> list[Name]:
    words = [word for line in _lines(doc) for word in _words(line)]
    lower = frozenset(word.text for word in words if word.text.islower())
    inside = frozenset(word.text for word in words if not word.opens or _CAST.match(doc.text, word.end))
    votes: dict[str, Counter[Kind]] = {}
    found: list[str] = []
    for first, last in _runs(words, function_words):
        begin, titled = _beginning(words, first, last, function_words=function_words, lower=lower, inside=inside)
        rest = words[begin:last]
        if not any(len(word.key) > 1 and word.key not in _PLACE_STARTS | _PLACE_ENDS | _TITLES for word in rest):
            continue
        name = " ".join(word.text for word in rest)
        found.append(name)
        votes.setdefault(name.casefold(), Counter()).update(_votes(words, begin, last, text=doc.text, titled=titled))
    kinds = {
        name: _elected(counts)
        for name, counts in votes.items()
        if max(counts.values()) > 2 or not lower.issuperset(name.split())  # "the Serial Killer" of a text on a serial killer
    }
    people = {part for name, kind in kinds.items() if kind == "person" for part in name.split()}
    keyed = ((name, name.casefold()) for name in found)
    return distinct(Name(name, "person" if key in people else kinds[key]) for name, key in keyed if key in kinds)


def _lines(doc: Doc) -> Iterator[list[Token]]:
    """The sentences, cut at line breaks too: lists and headlines have no full stops."""
    for sentence in doc.sents:
        line: list[Token] = []
        for token in sentence:
            if token.is_space and "\n" in token.text:
                yield line
                line = []
            else:
                line.append(token)
        yield line


def _words(line: Sequence[Token]) -> Iterator[_Word]:
    """The words of a line; "Wei-Wei" is one, "Paris-based" two."""
    alphabetic = [token for token in line if token.is_alpha]
    big = [token for token in alphabetic if len(token) > 3]
    # A headline: everything in capitals, or every word of weight with one and no full stop or comma.
    headline = len(alphabetic) > 2 and (
        all(token.is_upper for token in alphabetic)
        or (
            len(big) > 3
            and all(token.text[0].isupper() for token in big)
            and not any(token.text in ".,!?;()" for token in line)
        )
    )
    opens, joined, hyphen = True, False, False
    waiting: _Word | None = None
    for token in line:
        text = token.text
        close = waiting is not None and waiting.end == token.idx
        if (
            waiting is not None
            and close
            and (text.casefold() in ("'s", "\u2019s") or (text in ("'", "\u2019") and waiting.text.endswith("s")))
        ):
            waiting, opens, joined = replace(waiting, owns=True), False, True
        elif (found := _WORD.search(text)) is None:
            hyphen = close and text in _HYPHENS
            opens = opens or text in _OPENING
            joined = joined and token.is_space
        else:
            start, stem = token.idx + found.start(), re.sub(r"['\u2019]s$", "", found[0])
            if waiting is not None and hyphen and waiting.end + 1 == start and waiting.text[0].isupper() and stem[0].isupper():
                end = start + len(stem)
                waiting = replace(waiting, text=token.doc.text[waiting.start : end], end=end, owns=stem != found[0])
            else:
                if waiting is not None:
                    yield waiting
                waiting = _Word(stem, start, start + len(stem), headline or opens, joined, stem != found[0])
            opens, joined, hyphen = False, True, False
    if waiting is not None:
        yield waiting


def _is_name_word(word: _Word, function_words: frozenset[str]) -> bool:
    """Whether the word can be part of a name: it has a capital, and is not a word that always has one."""
    text, key = word.text, word.key
    if not text[0].isupper() or _ROMAN.fullmatch(text):
        return False
    if text in _FIRST or key in _PLACES or (text.isupper() and len(text) > 1 and key not in _NO_NAMES):
        return True
    if any(part in _NO_NAMES for part in (key, *key.split("-"))) or key in function_words:
        return False
    national = _NATIONAL.fullmatch(key)
    return national is None or (national[2] != "ically" and national[1][:4] not in _PLACE_STEMS)


def _runs(words: Sequence[_Word], function_words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """Runs of words with capitals and the particles between them ("Joan of Arc"), as start and end."""
    at = 0
    while at < len(words):
        end = at + _place_at(words, at)
        alone = (
            end == at
            and words[at].key in _NO_NAMES
            and not any(word.joined and word.text[0].isupper() for word in words[at + 1 : at + 2])
        )
        if alone or (end == at and not _is_name_word(words[at], function_words)):  # "Christian Bale", "a Christian"
            at += 1
            continue
        end = max(end, at + 1)
        while end < len(words) and words[end].joined and not words[end - 1].owns:
            if _is_name_word(words[end], function_words) or _is_number(words, end):
                end += 1
            elif skipped := _particles(words, at, end, function_words):
                end += skipped + 1
            else:
                break
        place = _place_at(words, at)
        if 0 < place < end - at and words[end - 1].key in _ORGANISATIONS:  # "Toronto" of the "Toronto Film Festival"
            end = at + place
        yield at, end
        at = end


def _place_at(words: Sequence[_Word], at: int) -> int:
    """The number of words of the longest gazetteer place that begins here."""
    for count in range(min(_LONGEST_PLACE, len(words) - at), 0, -1):
        here = words[at : at + count]
        if (
            here[0].text[0].isupper()
            and " ".join(word.text for word in here).casefold() in _PLACES
            and all(w.joined for w in here[1:])
        ):
            return count
    return 0


def _is_number(words: Sequence[_Word], at: int) -> bool:
    """Roman, after a name; "I" only where a sentence about oneself cannot begin."""
    ends = at + 1 == len(words) or not words[at + 1].joined
    return _ROMAN.fullmatch(words[at].text) is not None and (words[at].text != "I" or ends)


def _particles(words: Sequence[_Word], first: int, at: int, function_words: frozenset[str]) -> int:
    """How many particles (one or two) join the name before `at` with a name after them; 0 if none do."""
    for count in (1, 2):
        between, after = words[at : at + count], words[at + count : at + count + 2]
        if not after or not after[0].joined or not all(word.joined and word.text in PARTICLES for word in between):
            return 0
        if _is_name_word(after[0], function_words) and after[0].key not in _TITLES:
            # "Ivan the Terrible", but not "told Ivan the Terrible Twins ...".
            longer = len(after) > 1 and after[1].joined and after[1].text[0].isupper()
            epithet = between[0].text == "the" and (at - first > 1 or longer)
            return 0 if epithet or [word.text for word in between] == ["of", "the"] else count
    return 0


def _beginning(
    words: Sequence[_Word],
    first: int,
    last: int,
    *,
    function_words: frozenset[str],
    lower: frozenset[str],
    inside: frozenset[str],
) -> tuple[int, bool]:
    """Where the name of a run begins, and whether a title precedes it."""
    titled = False
    for at in range(first, last):
        word, after = words[at], words[at + 1 : last][:1]
        if at > first and word.text in PARTICLES:
            titled = False
        elif word.key in _TITLES and word.text not in _FIRST:
            titled = True
        elif word.opens and not _is_meant(word, after, function_words=function_words, lower=lower, inside=inside):
            titled = False
        else:
            return at, titled
    return last, False


def _is_meant(
    word: _Word, after: Sequence[_Word], *, function_words: frozenset[str], lower: frozenset[str], inside: frozenset[str]
) -> bool:
    """Whether a word is a name although its capital is not evidence."""
    followed = bool(after) and after[0].text not in PARTICLES and not after[0].opens
    if word.text in inside:
        return True
    if word.key in _WORDS_TOO:
        return followed or word.owns
    if word.key in function_words or word.key in _OPENERS or word.key in lower:
        return False
    if word.text in _FIRST or word.key in _PLACES:
        return True
    describes = _DESCRIBES.fullmatch(word.key) is not None and after and after[0].key not in _PLACE_ENDS
    return followed and after[0].text not in _FIRST and not describes


def _votes(words: Sequence[_Word], first: int, last: int, *, text: str, titled: bool) -> Counter[Kind]:
    """The evidence of one occurrence for the kind of a name; the weights are by judgement, not by training."""
    name = words[first:last]
    spelled = " ".join(word.text for word in name)
    several = len(name) > 1
    before = words[first - 1].text.casefold() if first and words[first].joined else ""
    after = words[last].text if last < len(words) and words[last].joined else ""
    trail = text[name[-1].end : name[-1].end + 6]
    votes: Counter[Kind] = Counter()
    votes["person"] += 6 * titled + (4 if several else 3) * (name[0].text in _FIRST) + 3 * (before in _RELATIONS)
    votes["person"] += (_VERB.fullmatch(after) is not None) + name[-1].owns + 2 * (trail.startswith((", who", " who ")))
    votes["person"] += 2 * (_CAST.match(trail) is not None) + several * (
        len(name) < 4 and all(word.text[0].isupper() for word in name)
    )
    votes["person"] += (3 if several else 2) * (text[name[0].start - 1 : name[0].start] == "(" and trail.startswith(")"))
    votes["person"] += 4 * (not several and _INITIALS.fullmatch(spelled) is not None)
    votes["person"] += 2 * any(word.text in _NOBLE for word in name)
    votes["place"] += 5 * (spelled.casefold() in _PLACES)
    votes["place"] += 6 * (several and (name[-1].key in _PLACE_ENDS or name[0].key in _PLACE_STARTS))
    votes["place"] += 2 * (before in ("in", "near", "across", "throughout", "outside", "around", "within"))
    votes["place"] += before in ("at", "into", "from")
    votes["place"] += 4 * (trail.startswith(", ") and _place_at(words, last) > 0)
    votes["other"] += 8 * any(word.key in _ORGANISATIONS for word in name)
    votes["other"] += 4 * (not several and spelled.isupper() and len(spelled) < 6)
    return votes


def _elected(votes: Counter[Kind]) -> Kind:
    """The kind with most votes; on a tie person before place; other without votes."""
    order: tuple[Kind, ...] = ("person", "place", "other")
    best = max(order, key=lambda kind: votes[kind])
    return best if votes[best] else "other"
