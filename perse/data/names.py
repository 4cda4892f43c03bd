r"""New names for old in a text: every name at once, on word boundaries, and nothing else touched.

Somebody (a model, a rule, a person) says which name becomes which; this file only replaces. One regular expression finds
all names in one pass, longest first, so a chain (a -> b, b -> c) is never followed and a swap works. The trade-off: no
grammar and no guess at who is meant. A name is found by its letters and capitals alone, so "Rose" at the start of a sentence
is the name and "rose" never is. (PerSE, appendix A.2: a model names, code replaces.)

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNSPACED = "\u3041-\u309f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_KATAKANA = "\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_APOSTROPHES = "'\u2019\u02bc"
_HYPHENS = "-\u2010\u2011"
_SAME = str.maketrans(_APOSTROPHES + _HYPHENS, "'" * 3 + "-" * 3)
_WRITTEN = {" ": r"\s+", "'": f"[{_APOSTROPHES}]", "-": f"[{_HYPHENS}]"}

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
_NAMES_OR_VERBS = _words("may will")  # fine as a name that somebody lists, not as a part that nobody did
_GENERIC = _COMMON | _NAMES_OR_VERBS | _TITLES | _SUFFIXES | _ARTICLES | _PARTICLES | _PLACE_STARTS | _PLACE_ENDS
_LONGEST_NAME = 60  # characters of a new name
_MOST_REASONS = 10


@dataclass(frozen=True, slots=True)
class Replacement:
    """One replaced span: `old == text[start:end]` in the original text, `new` stands there now."""

    start: int
    end: int
    old: str
    new: str


class Renamer:
    """The names of one mapping (old -> new), compiled once for many texts.

    A key that is blank or begins with a combining mark is never found. Where two keys are written alike, the first counts.
    """

    def __init__(self, mapping: Mapping[str, str]) -> None:
        names: dict[str, str] = {}
        for old, new in mapping.items():
            if (name := _canonical(old)) and not _is_mark(name[0]):
                names.setdefault(name, new)
        self._new = dict(names)
        for old, new in names.items():
            for form, its_new in _other_forms(old, new):
                self._new.setdefault(form, its_new)
        self._plain = re.compile(_expression(self._new, all_scripts=False))
        self._full: re.Pattern[str] | None = None

    def spans(self, text: str) -> list[Replacement]:
        """Every replaced span from left to right; spans never overlap."""
        return [Replacement(start, end, text[start:end], new) for start, end, new in self._found(text)]

    def replace(self, text: str) -> str:
        """`text` with every name replaced; all outside the spans stays as it is, character for character."""
        pieces: list[str] = []
        done = 0
        for start, end, new in self._found(text):
            pieces += (text[done:start], new)
            done = end
        return "".join((*pieces, text[done:])) if pieces else text

    def _found(self, text: str) -> Iterator[tuple[int, int, str]]:
        composed, changes = (text, []) if unicodedata.is_normalized("NFC", text) else _composed(text)
        for match in self._pattern_for(composed).finditer(composed):
            written = match.group()
            new = self._new.get(written)
            if new is None:
                new = self._new[_canonical(written)]
            start, end = match.span()
            yield (_before(start, changes), _before(end, changes), new) if changes else (start, end, new)

    def _pattern_for(self, text: str) -> re.Pattern[str]:
        # Boundaries in all scripts take 25 ms to compile and are slower to look for; few texts need them.
        if text.isascii() or not _special().search(text):
            return self._plain
        if self._full is None:
            self._full = re.compile(_expression(self._new, all_scripts=True))
        return self._full


def complete(mapping: Mapping[str, str]) -> dict[str, str]:
    """`mapping` and, after it, the parts of its names that people are called by.

    "Glenn Holland" -> "William Thompson" adds "Glenn" -> "William" and "Holland" -> "Thompson"; "Dr. Glenn Holland" adds
    "Glenn Holland" too, since a title is not part of a name. Only a name of 2 to 4 capitalised words whose new name has at
    least 2 has parts, places ("New York", "Salem County") have none, and a part is left out if it is a key already, is no
    name by itself (a function word, a title, an initial), or would become two different names: two Johns with different new
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
    """Why `mapping` should not be used on `text`, in sentences for whoever proposed it; empty if it is fine.

    At most 10, the gravest kind first and then in the order of the mapping. Meant for the mapping as proposed, before
    `complete`; parts added by `complete` are no fault by themselves.
    """
    usable = {old: new for old, new in mapping.items() if old.strip() and new.strip()}
    reasons = [
        *_bad_entries(mapping),
        *_absent(usable, text),
        *_kept(usable),
        *_chains(usable),
        *_merged(usable),
        *_families(usable),
        *_taken(usable, text),
    ]
    return list(dict.fromkeys(reasons))[:_MOST_REASONS]


# --- finding


def _canonical(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", name).translate(_SAME).split())


def _other_forms(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The other ways in which `old` may be written, each with what stands there then."""
    first, *rest = old.split()
    if old[0].islower():
        yield old[0].upper() + old[1:], new[:1].upper() + new[1:]
    elif rest and _is_linking(first):
        yield old[0].lower() + old[1:], new[:1].lower() + new[1:] if _is_linking(new.split(" ")[0]) else new
    yield _canonical(old.upper()), new.upper()


def _is_linking(word: str) -> bool:
    return word.casefold() in _ARTICLES | _PARTICLES


def _expression(forms: Mapping[str, str], *, all_scripts: bool) -> str:
    """One expression for all `forms`, the longest first."""
    if not forms:
        return r"(?!)"
    by_first: dict[str, list[str]] = {}
    for form in sorted(forms, key=lambda form: (-len(form), form)):
        by_first.setdefault(_written(form[0]), []).append("".join(map(_written, form[1:])))
    rests = {first: f"(?:{'|'.join(rests)})" for first, rests in by_first.items()}
    in_o = f"(?<!O[{_APOSTROPHES}]"
    if not all_scripts:
        # The first letter stands before its boundary check, so that `re` skips to the letters that can begin a name.
        names = [rf"{first}(?<!\w{first}){in_o}{first}){rest}" for first, rest in rests.items()]
        return rf"(?:{'|'.join(names)})(?!\w)"
    word = rf"[^\W{_UNSPACED}{_KATAKANA}]|[{_marks()}]"
    start = f"(?:(?=[{_UNSPACED}])|(?=[{_KATAKANA}])(?<![{_KATAKANA}])|(?![{_UNSPACED}{_KATAKANA}])(?<!{word}){in_o}))"
    end = f"(?:(?<=[{_UNSPACED}])|(?<=[{_KATAKANA}])(?![{_KATAKANA}])|(?<![{_UNSPACED}{_KATAKANA}])(?!{word}))(?![{_marks()}])"
    return f"(?={'|'.join(rests)}){start}(?:{'|'.join(first + rest for first, rest in rests.items())}){end}"


def _written(char: str) -> str:
    return _WRITTEN.get(char) or re.escape(char)


@cache
def _special() -> re.Pattern[str]:
    """Where letters and digits may not tell the boundaries of a name."""
    # One range for all beyond the 16 bits: `re` tries such ranges one by one, which is ten times slower.
    return re.compile(f"[{_UNSPACED}{_KATAKANA}{_marks(0xFFFF)}\U00010000-\U0010ffff]")


@cache
def _marks(last: int = 0xE01EF) -> str:
    """What belongs to the letter before it, as ranges for a class; `re` has no name for combining marks."""
    marks = [code for code in (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0)) if code <= last and _is_mark(chr(code))]
    starts = [code for code, before in zip(marks, [0, *marks], strict=False) if code != before + 1]
    ends = [code for code, after in zip(marks, [*marks[1:], 0], strict=True) if after != code + 1]
    return "".join(f"{chr(start)}-{chr(end)}" for start, end in zip(starts, ends, strict=True))


def _is_mark(char: str) -> bool:
    """A combining mark, or a Hangul vowel or final that completes a syllable."""
    return unicodedata.category(char).startswith("M") or "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb"


def _composed(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` composed (NFC), and where the two go apart: (place in the composed text, place in `text`) after each change."""
    pieces: list[str] = []
    changes = [(0, 0)]
    done = length = 0
    # Only what is not ASCII, with the letter before it that a mark may change, can be written in two ways.
    for match in re.finditer(r"[\x00-\x7f]?[^\x00-\x7f]+", text):
        for letter in re.finditer(f".[{_marks()}]*", match.group(), re.DOTALL):
            composed = unicodedata.normalize("NFC", letter.group())
            if composed != letter.group():
                start, end = match.start() + letter.start(), match.start() + letter.end()
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
    """Whether the word can stand for somebody by itself."""
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


def _occurs(name: str, text: str) -> bool:
    return bool(Renamer({name: name}).spans(text))


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


def _absent(mapping: Mapping[str, str], text: str) -> Iterator[str]:
    """A name is there too if a part of it is, or a longer name that it is part of."""
    there = {name for name in complete(mapping) if _occurs(name, text)}
    for old in mapping:
        related = any(_is_part(name, old) or _is_part(old, name) for name in there)
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


def _taken(mapping: Mapping[str, str], text: str) -> Iterator[str]:
    """Every word of a new name that the text has already, once; what `_kept` and `_chains` say is not said again."""
    keys = {_canonical(old).casefold() for old in mapping}
    seen: set[str] = set()
    for old, new in mapping.items():
        own = {word.casefold() for word in _canonical(old).split()}
        words = [] if _canonical(new).casefold() in keys else _canonical(new).split()
        for word in words:
            if word not in seen and word.casefold() not in own and _is_name(word) and _occurs(word, text):
                yield f"{_shown(word)} in {_shown(new)}, the new name of {_shown(old)}, is in the text already: choose another."
            seen.add(word)
