r"""Replaces names in a text: all at once, on word boundaries, changing nothing else.

Somebody (a model, a rule, a person) says which name becomes which; this file only replaces. All names are
found in the text as it was, the longest first, so a chain (a -> b, b -> c) is never followed and a swap works. The trade-off:
no grammar and no guess about who is meant. A name is found by its letters and capitals alone, so "Rose" at the start of a
sentence is the name and "rose" never is. (PerSE, appendix A.2: a model names, code replaces.)

Each text has a mapping of its own, so no regular expression is made of it: that takes twenty times as long as all else here.
Instead the first word of each name is looked for in the text, which is fast for tens of names, slower for thousands.

What counts as the name "Glenn Holland":
    - white space between its words is any run of white space, straight and curly apostrophes are one, so are the two
      hyphens, and composed and decomposed letters are the same. "GLENN HOLLAND" gets the new name in capitals; other changes
      of case are not the name, save the first letter of an article, a particle or a lower-case key ("the Duke", "Van Horn").
    - its neighbours are not letters, digits, marks or "_". A hyphen and an apostrophe end a name, so "Spade-like" and
      "Spade's" keep their endings; only after "O'" a name is the rest of a longer one (Neil in O'Neil).
    - Han, Hiragana and Hangul are written without spaces or with endings: such a letter needs no boundary, nor does any
      name beside one. A Katakana name ends where the Katakana ends.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import pairwise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNSPACED = "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_APOSTROPHES = "'\u2019\u02bc"
_HYPHENS = "-\u2010\u2011"
_OTHERWISE = (*((other, "'") for other in _APOSTROPHES[1:]), *((other, "-") for other in _HYPHENS[1:]))

_UNSPACED_LETTER = re.compile(f"[{_UNSPACED}]")
_KATAKANA_LETTER = re.compile(f"[{_KATAKANA}]")
_WORD_LETTER = re.compile(rf"[^\W{_UNSPACED}{_KATAKANA}]")

_TITLES = _words(
    """mr mrs ms miss mister mistress mx dr doctor prof professor father mother brother sister uncle aunt auntie grandma grandpa
    captain capt lieutenant lt sergeant sgt corporal private colonel col general gen major commander admiral officer agent
    detective inspector constable sheriff deputy chief judge sir dame lord lady king queen prince princess emperor empress duke
    duchess count countess baron baroness earl pope bishop cardinal reverend rev pastor president senator governor mayor
    minister secretary coach nurse madame madam monsieur mademoiselle señor señora señorita don doña herr frau the"""
)
_SUFFIXES = _words("jr sr ii iii iv esq phd md")
_ARTICLES = _words("the a an of")
_PARTICLES = _words("de da di du des del della der den van von la le las los el bin ibn")
_LINKING = _ARTICLES | _PARTICLES
_PLACE_STARTS = _words(
    """new old north south east west northern southern eastern western upper lower great central san santa santo são saint st
    los las mount mt lake fort port cape point isle el la le the"""
)
_PLACE_ENDS = _words(  # and ends of what is neither a person nor a place
    """city town village street avenue road lane square river lake mount mountain mountains island islands isle county state
    states valley bay beach falls springs creek park bridge castle palace school college university hospital hotel prison
    station airport kingdom empire republic ocean sea desert forest world war army festival award awards academy company
    corporation theater theatre church museum club band team league bank"""
)
_COMMON = _words(
    """a about after again all also am an and any are as at be because been before both but by can could did do does down each
    even ever every few first for from had has have he her here him his how i if in into is it its just last like many me
    might more most much must my never no none nor not now of off on once one only or other our out over own said same shall
    she should so some still such than that the their them then there these they this those three through to too two under until
    up upon us very was we well were what when where which while who whom whose why with would yes yet you your man woman boy
    girl"""
)
_NAMES_OR_VERBS = _words("may will")  # accepted as a listed name, but not as a derived part
_GENERIC = _COMMON | _NAMES_OR_VERBS | _TITLES | _SUFFIXES | _ARTICLES | _PARTICLES | _PLACE_STARTS | _PLACE_ENDS
_LONGEST_NAME = 60  # characters of a new name
_MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replaced span: `old == text[start:end]` in the original text was replaced by `new`."""

    start: int
    end: int
    old: str
    new: str


class Renamer:
    """The names of one mapping (old -> new), for one text or many.

    A key that is blank or begins with a combining mark is never found. Where two keys are written alike, the first counts.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        written = [_forms(old, new) for old, new in mapping.items()]
        forms: dict[str, str] = {}
        # Names as they are given count before names in other capitals.
        for alike in (*(names[:1] for names in written), *(names[1:] for names in written)):
            for form, new in alike:
                forms.setdefault(form, new)
        self._forms = _by_first_word(forms.items())

    def spans(self, text: str) -> list[Replacement]:
        """Every replaced span from left to right; spans never overlap."""
        return [Replacement(start, end, text[start:end], new) for start, end, new in self._found(text)]

    def replace(self, text: str) -> str:
        """`text` with every name replaced; everything outside the spans is unchanged."""
        pieces: list[str] = []
        done = 0
        for start, end, new in self._found(text):
            pieces += (text[done:start], new)
            done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        composed, changes = _composed(text)
        done = 0
        for start, end, new in sorted(_standing(self._forms, composed), key=lambda found: (found[0], -found[1])):
            if start >= done:
                yield (_before(start, changes), _before(end, changes), new) if changes else (start, end, new)
                done = end


def complete(mapping: Mapping[str, str]) -> dict[str, str]:
    """`mapping` and, after it, the parts of its names that people are called by.

    "Glenn Holland" -> "William Thompson" adds "Glenn" -> "William" and "Holland" -> "Thompson"; "Dr. Glenn Holland" adds
    "Glenn Holland" too, since a title is not part of a name. Only a name of 2 to 4 capitalised words whose new name has at
    least 2 has parts, places ("New York", "Salem County") have none, and a part is left out if it is a key already, is no
    name by itself (a function word, a title, an initial), or would get two different new names: two Johns with different new
    first names leave the bare "John" as it is, for an audit to find.
    """
    found: dict[str, dict[str, None]] = {}
    for old, new in mapping.items():
        for part, new_part in _parts(old, new):
            found.setdefault(part, {})[new_part] = None
    keys = {_canonical(old).casefold() for old in mapping}
    certain = {part: next(iter(news)) for part, news in found.items() if len(news) == 1 and part.casefold() not in keys}
    return {**mapping, **certain}


def check_mapping(mapping: Mapping[str, str], text: str) -> list[str]:
    """Why `mapping` should not be used on `text`, in sentences for whoever proposed it; empty if there is no problem.

    At most 10, the gravest kind first and then in the order of the mapping. Meant for the mapping as proposed, before
    `complete`; parts added by `complete` are no fault by themselves.
    """
    usable = {old: new for old, new in mapping.items() if old.strip() and new.strip()}
    new_words = {word for new in usable.values() for word in _canonical(new).split()}
    there = _occurring({*complete(usable), *new_words}, text)
    reasons = [
        *_bad_entries(mapping),
        *_absent(usable, there),
        *_kept(usable),
        *_chains(usable),
        *_merged(usable),
        *_merged_parts(usable, text),
        *_families(usable),
        *_taken(usable, there),
    ]
    return list(dict.fromkeys(reasons))[:_MOST_REASONS]


# --- finding


def _canonical(name: str) -> str:
    if not name.isascii():
        name = _same(unicodedata.normalize("NFC", name))
    return " ".join(name.split())


def _same(text: str) -> str:
    """`text` with one kind of apostrophe and of hyphen, every character in its place."""
    for other, plain in _OTHERWISE:
        text = text.replace(other, plain)
    return text


def _forms(old: str, new: str) -> list[tuple[str, str]]:
    """The ways in which `old` may be written, first as given, each with its replacement; empty if it can never match."""
    old = _canonical(old)
    if not old or _is_mark(old[0]):
        return []
    forms = [(old, new), (_canonical(old.upper()), new.upper())]
    if old[0].islower():
        forms.insert(1, (_canonical(old[0].upper() + old[1:]), new[:1].upper() + new[1:]))
    elif " " in old and old.split(" ")[0].casefold() in _LINKING:
        linking = new.split(" ")[0].casefold() in _LINKING
        forms.insert(1, (old[0].lower() + old[1:], new[:1].lower() + new[1:] if linking else new))
    return forms


def _by_first_word(forms: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """The (form of a name, what it stands for) that begin with the same word."""
    found: dict[str, list[tuple[str, str]]] = {}
    for form, meaning in forms:
        found.setdefault(form.partition(" ")[0], []).append((form, meaning))
    return found


def _standing(forms: Mapping[str, Sequence[tuple[str, str]]], composed: str) -> Iterator[tuple[int, int, str]]:
    """Start, end and meaning of every form in the text, also within another; unordered."""
    text = _same(composed)
    for word, alike in forms.items():
        start = text.find(word)
        while start >= 0:
            if _begins(composed, start):
                for form, meaning in alike:
                    end = _end(form, text, start)
                    if end is not None and _ends(composed, end):
                        yield start, end, meaning
            start = text.find(word, start + 1)


def _end(form: str, text: str, at: int) -> int | None:
    """Where `form`, whose first word is at `at`, ends there, with any white space between its words; None if it is not there."""
    if text.startswith(form, at):
        return at + len(form)
    first, *rest = form.split(" ")
    at += len(first)
    for word in rest:
        before = at
        while text[at : at + 1].isspace():
            at += 1
        if at == before or not text.startswith(word, at):
            return None
        at += len(word)
    return at if rest else None


def _begins(text: str, at: int) -> bool:
    """Whether the text before `at` allows a name to begin there."""
    if at == 0 or (before := text[at - 1]).isspace() or _UNSPACED_LETTER.match(text, at):
        return True
    if _KATAKANA_LETTER.match(text, at):
        return not _KATAKANA_LETTER.match(before)
    return not _joins(before) and not (before in _APOSTROPHES and text[at - 2 : at - 1] == "O")


def _ends(text: str, at: int) -> bool:
    """Whether the text at `at` allows a name to end there."""
    if at == len(text) or (after := text[at]).isspace():
        return True
    if _UNSPACED_LETTER.match(text, at - 1):
        return not _is_mark(after)
    if _KATAKANA_LETTER.match(text, at - 1):
        return not _is_mark(after) and not _KATAKANA_LETTER.match(after)
    return not _joins(after)


def _joins(char: str) -> bool:
    """Whether the character belongs to one word with a letter beside it, in scripts with spaces between words."""
    return char.isalnum() or char == "_" if char.isascii() else bool(_WORD_LETTER.match(char)) or _is_mark(char)


def _is_mark(char: str) -> bool:
    """A combining mark, or a Hangul vowel or final that completes a syllable."""
    if char < "\u0300":  # most are
        return False
    return unicodedata.category(char).startswith("M") or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def _composed(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` composed (NFC), and where the two go apart: (place in the composed text, place in `text`) after each change."""
    if unicodedata.is_normalized("NFC", text):
        return text, []
    pieces: list[str] = []
    changes = [(0, 0)]
    done = length = 0
    # Only what is not ASCII, with the letter before it that a mark may change, can be written in two ways.
    for match in re.finditer(r"[\x00-\x7f]?[^\x00-\x7f]+", text):
        letters = [at for at in range(*match.span()) if at == match.start() or not _is_mark(text[at])]
        for start, end in pairwise([*letters, match.end()]):
            composed = unicodedata.normalize("NFC", text[start:end])
            if composed != text[start:end]:
                pieces += (text[done:start], composed)
                length += start - done + len(composed)
                done = end
                changes.append((length, end))
    return "".join((*pieces, text[done:])), changes


def _before(place: int, changes: Sequence[tuple[int, int]]) -> int:
    """The place in the text as written for a `place` in the composed one."""
    composed, written = changes[bisect_right(changes, place, key=lambda change: change[0]) - 1]
    return written + place - composed


# --- parts of a name


def _bare(word: str) -> str:
    return word.casefold().rstrip(".")


def _core(words: Sequence[str]) -> list[str]:
    """The words without titles before and "Jr." and the like after; never empty for a name."""
    core = list(words)
    while len(core) > 1 and _bare(core[0]) in _TITLES:
        core = core[1:]
    while len(core) > 1 and _bare(core[-1]) in _SUFFIXES:
        core = core[:-1]
    return core


def _is_name(word: str) -> bool:
    """Whether the word can name somebody by itself."""
    letters = sum(char.isalpha() for char in word)
    return letters >= 2 and word[0].isalpha() and not word[0].islower() and word[-1] != "." and _bare(word) not in _GENERIC


def _parts(old: str, new: str) -> list[tuple[str, str]]:
    words, new_words = _canonical(old).split(), new.split()
    if not 2 <= len(words) <= 4 or len(new_words) < 2 or _bare(words[0]) in _PLACE_STARTS or _bare(words[-1]) in _PLACE_ENDS:
        return []
    if not all(word[0].isupper() or _bare(word) in _PARTICLES for word in words):
        return []
    core, new_core = _core(words), _core(new_words)
    if len(core) == 1:
        # What follows a title is most often a family name.
        pairs = [(core[0], new_core[-1 if _bare(words[0]) in _TITLES else 0])]
    elif len(new_core) == 1:
        pairs = []
    else:
        pairs = [(core[0], new_core[0]), (core[-1], new_core[-1])]
    people = [(part, new_part) for part, new_part in pairs if _is_name(part) and _is_name(new_part) and part != new_part]
    whole = [(" ".join(core), " ".join(new_core))] if 1 < len(core) < len(words) and len(new_core) > 1 else []
    return whole + people


def _is_part(part: str, name: str) -> bool:
    """Whether the words of `part`, titles left out, stand together in `name`."""
    words, whole = _core(_canonical(part).split()), _canonical(name).split()
    return any(whole[at : at + len(words)] == words for at in range(len(whole) - len(words) + 1))


# --- reasons


def _shown(name: str) -> str:
    flat = " ".join(name.split())
    return f'"{flat}"' if len(flat) <= _LONGEST_NAME else f'"{flat[: _LONGEST_NAME - 3]}..."'


def _occurring(names: Iterable[str], text: str) -> set[str]:
    """Which of the names the text has, each looked for alone: also within a longer one."""
    forms = _by_first_word((form, name) for name in names for form, _ in _forms(name, name))
    return {name for _, _, name in _standing(forms, _composed(text)[0])}


def _is_ordinary(name: str) -> bool:
    return name.islower() or _bare(_canonical(name)) in _COMMON


def _bad_entries(mapping: Mapping[str, str]) -> Iterator[str]:
    for old, new in mapping.items():
        if not old.strip():
            yield f"An empty name is mapped to {_shown(new)}: leave it out."
        elif _is_ordinary(old):
            yield f"{_shown(old)} is an ordinary word, not a name: leave it out."
    for old, new in mapping.items():
        odd = sorted({char for char in new if not (char.isalnum() or char in f" .{_APOSTROPHES}-" or _is_mark(char))})
        if not any(char.isalnum() for char in new):
            yield f"The new name of {_shown(old)} is empty: give it one."
        elif len(f"{new}.".splitlines()) > 1:
            yield f"The new name of {_shown(old)} has a line break: write it on one line."
        elif len(new) > _LONGEST_NAME:
            yield f"The new name of {_shown(old)} has {len(new)} characters: give a name of at most {_LONGEST_NAME}."
        elif odd:
            yield f"The new name {_shown(new)} has the character {odd[0]!r}: use only letters, digits, spaces, . ' and -."


def _absent(mapping: Mapping[str, str], there: Set[str]) -> Iterator[str]:
    """A name is there too if a part of it is, or a longer name that it is part of."""
    names = [name for name in complete(mapping) if name in there]
    for old in mapping:
        related = old in there or any(_is_part(name, old) or _is_part(old, name) for name in names)
        if not related and not _is_ordinary(old):
            yield f"{_shown(old)} does not occur in the text: list only names in the text, spelled as they are there."


def _kept(mapping: Mapping[str, str]) -> Iterator[str]:
    for old, new in mapping.items():
        kept = {word.casefold() for word in _canonical(old).split() if _is_name(word)}
        if _canonical(old).casefold() == _canonical(new).casefold():
            yield f"{_shown(old)} is mapped to itself: give it a new name."
        elif same := [word for word in _canonical(new).split() if word.casefold() in kept]:
            yield f"{_shown(old)} keeps {_shown(same[0])} in its new name {_shown(new)}: change every part of the name."


def _chains(mapping: Mapping[str, str]) -> Iterator[str]:
    keys = {_canonical(old).casefold() for old in mapping}
    for old, new in mapping.items():
        if _canonical(new).casefold() in keys - {_canonical(old).casefold()}:
            yield f"{_shown(new)}, the new name of {_shown(old)}, is itself a name to be replaced: choose one that is not."


def _merged(mapping: Mapping[str, str]) -> Iterator[str]:
    sharing: dict[str, list[str]] = {}
    for old, new in mapping.items():
        sharing.setdefault(_canonical(new).casefold(), []).append(old)
    for olds in sharing.values():
        # A short form may share the new name of its full name; what is left are different people (or places).
        short = {old for old in olds for more in olds if _is_part(old, more) and not _is_part(more, old)}
        full = {" ".join(_core(_canonical(old).split())): old for old in olds if old not in short}
        if len(full) > 1:
            names = " and ".join(map(_shown, full.values()))
            yield f"{names} all become {_shown(mapping[olds[0]])}: give each person or place a new name of its own."


def _merged_parts(mapping: Mapping[str, str], text: str) -> Iterator[str]:
    """Short names of different people that would become one: "John" and "Kate", where John Smith becomes Tom Hill and Kate
    Brown Tom Lake. Only those that stand alone in the text; a model that likes a name may use it twice where it does no harm."""
    whole = complete(mapping)
    short: dict[str, dict[str, None]] = {}
    for span in Renamer(whole).spans(text):
        old = _canonical(span.old)
        new = whole.get(old)
        if new is not None and len(old.split()) == 1:
            short.setdefault(_canonical(new).casefold(), {})[old] = None
    for olds in short.values():
        if len(olds) > 1 and not all(old in mapping for old in olds):
            names = " and ".join(map(_shown, olds))
            yield f"{names} all become {_shown(whole[next(iter(olds))])}: give people with other names new ones that differ in every word."


def _families(mapping: Mapping[str, str]) -> Iterator[str]:
    families: dict[str, list[tuple[str, str]]] = {}
    for old, new in mapping.items():
        if len(old.split()) > 1 and _is_name(last := _core(_canonical(old).split())[-1]):
            families.setdefault(last, []).append((old, _core(new.split())[-1]))
    for last, members in families.items():
        first, new_name = members[0]
        for old, new_last in members[1:]:
            if new_last.casefold() != new_name.casefold():
                both = f"{_shown(first)} and {_shown(old)} share {_shown(last)} but become {_shown(mapping[first])} and"
                yield f"{both} {_shown(mapping[old])}: give them one new family name."
    parts = complete({old: new for old, new in mapping.items() if len(old.split()) > 1})
    for old, new in mapping.items():
        said = parts.get(_canonical(old)) if len(old.split()) == 1 else None
        if said and said.casefold() not in _canonical(new).casefold().split():
            yield f"{_shown(old)} becomes {_shown(new)} but as part of a longer name {_shown(said)}: use one of the two."


def _taken(mapping: Mapping[str, str], there: Set[str]) -> Iterator[str]:
    """Every word of a new name that the text has already, once; without what `_kept` and `_chains` report."""
    keys = {_canonical(old).casefold() for old in mapping}
    seen: set[str] = set()
    for old, new in mapping.items():
        own = {word.casefold() for word in _canonical(old).split()}
        words = [] if _canonical(new).casefold() in keys else _canonical(new).split()
        for word in words:
            if word not in seen and word.casefold() not in own and _is_name(word) and word in there:
                yield f"{_shown(word)} in {_shown(new)}, the new name of {_shown(old)}, is in the text already: choose another."
            seen.add(word)
