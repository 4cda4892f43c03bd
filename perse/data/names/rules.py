"""Anonymizing and summarizing by rules: new names for old without a model, and a summary of the text's own sentences.

A fallback for the two rewriting steps (PerSE, appendix A.2 and A.3) without a model. It never invents a
fact and costs milliseconds; the price is that names which the recognizer misses stay, that a woman may get a man's name, and
that a summary reads like excerpts.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from perse.data.names.capitals import PARTICLES, Name
from perse.data.names.fictional import FIRST_NAMES, people, places
from perse.data.names.names import Renamer, check_mapping
from perse.data.names.recognizing import rules_files, splitter, version_of
from perse.errors import BadInput
from perse.files.runlog import file_digest

if TYPE_CHECKING:
    from spacy.language import Language

Role = Literal["first", "family", "place"]

_SUFFIXES = frozenset(["Jr", "Jr.", "Sr", "Sr.", "II", "III", "IV"])  # they stay: father and son remain two people
_LONGEST = 60  # characters of a new name; `check_mapping` refuses longer ones
_FIRST = frozenset(FIRST_NAMES)


def rule_mapping(text: str, names: Sequence[Name], *, seed: int, who: str) -> dict[str, str]:
    """Old name -> new name for the people and places of `text`, in the order of `names`; passes `check_mapping`.

    People are renamed word by word, and one word always becomes the same word: so a family keeps one (new) family name, and
    "Glenn" alone becomes what it becomes in "Glenn Holland". Places get a new name as a whole. Of the other names only single
    words that occur twice or more are renamed, which are mostly characters and places that the rules could not tell; the
    names of organisations and works, and abbreviations, are left, and so are keys that `check_mapping` would refuse. An audit of the renamed text finds what was left.

    Args:
        names: what a recognizer found; names that are not in `text` are ignored.
        who: the text that the new names are for; another one's come from another draw (`identity.draw`).
    """
    chosen = [name for name in names if name.kind != "other" or _is_likely_character(name.text, text)]
    avoid = re.findall(r"[A-Za-z]+", " ".join([text, *(name.text for name in names)]))
    words, wholes = _new_names(chosen, avoid, seed=seed, who=who)
    mapping: dict[str, str] = {}
    for name in chosen:
        new = wholes.get(name.text) or _word_by_word(name.text, words)
        if new not in mapping.values():
            mapping[name.text] = new
    if check_mapping(mapping, text):
        return {old: new for old, new in mapping.items() if not check_mapping({old: new}, text)}
    return mapping


def extractive_summary(text: str, *, words: int) -> str:
    """The most central sentences of `text` (LexRank), in its order, about `words` words (of `str.split`); `text` itself if
    it has no more.

    A sentence is taken if it brings the length nearer to `words`. LexRank tells nothing of one or two sentences, nor of
    sentences of which none shares a word with another: then the first ones are taken. Equal sentences are taken once. Where
    every sentence is longer than twice `words` (a text without punctuation), it is the first `words` words. The time grows
    with the square of the number of sentences.

    Raises:
        BadInput: `words` is not positive, or a library of the data extra is missing.
    """
    if words < 1:
        raise BadInput(f"a summary of {words} words: expected 1 or more")
    if len(text.split()) <= words:
        return text
    sentences = _sentences(text, _splitter())
    chosen = _nearest(sentences, _by_centrality(sentences, _splitter()), words=words)
    return " ".join(sentences[at] for at in sorted(chosen)) if chosen else " ".join(text.split()[:words])


def rules_digest() -> str:
    """sha256 of what decides what this file does: the versions of spaCy and sumy, and the source files of the rules."""
    files = [*rules_files(), *(Path(__file__).with_name(name) for name in ("names.py", "rules.py"))]
    parts = [version_of("spacy"), version_of("sumy"), *map(file_digest, files)]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


# --- new names


def _is_likely_character(name: str, text: str) -> bool:
    return " " not in name and not name.isupper() and len(Renamer({name: name}).spans(text)) > 1


def _core(name: str) -> list[str]:
    """The words of a name that are renamed: without particles ("of") and suffixes ("Jr.")."""
    first, *rest = name.split()
    return [first, *(word for word in rest if word not in PARTICLES and word not in _SUFFIXES)]


def _new_names(names: Sequence[Name], avoid: Sequence[str], *, seed: int, who: str) -> tuple[dict[str, str], dict[str, str]]:
    """New names by word, and new names of places that are renamed as a whole.

    A place is, unless it shares its last word with another name: "Hope Ferry" and "Ash Ferry" must go on sharing one.
    """
    ends = Counter(_core(name.text)[-1] for name in names if len(name.text.split()) > 1)
    roles: dict[str, Role] = {}
    wholes: dict[str, None] = {}
    for name in names:
        core = _core(name.text)
        if name.kind == "place" and (len(core) == 1 or ends[core[-1]] < 2):
            wholes[name.text] = None
            continue
        for at, word in enumerate(core):
            is_family = 0 < at == len(core) - 1 and word not in _FIRST
            role: Role = "place" if name.kind == "place" else "family" if is_family else "first"
            if roles.get(word) in (None, "first"):
                roles[word] = role
    pairs = [one.split() for one in people(seed, who, len(roles), avoid)]
    invented = places(seed, who, len(roles) + len(wholes), avoid)
    words = {
        word: {"first": first, "family": family, "place": place}[roles[word]]
        for word, (first, family), place in zip(roles, pairs, invented, strict=False)
    }
    alone = [place for place in wholes if place not in words]  # a place and a person of one name: one new name
    return words, dict(zip(alone, invented[len(roles) :], strict=False))


def _word_by_word(name: str, words: Mapping[str, str]) -> str:
    core = [words[word] for word in _core(name)]
    new = " ".join([*core, *(word for word in name.split()[1:] if word in _SUFFIXES)])
    return new if len(new) <= _LONGEST else f"{core[0]} {core[-1]}"


# --- sentences


@dataclass(frozen=True)
class _Words:
    """What sumy calls a tokenizer; its own one wants data from the network."""

    nlp: Language

    def to_words(self, sentence: str) -> tuple[str, ...]:
        found = (token.lower_ for token in self.nlp.tokenizer(sentence) if token.is_alpha or token.like_num)
        return tuple(word for word in found if word not in self.nlp.Defaults.stop_words)


@cache
def _splitter() -> Language:
    return splitter()  # takes a third of a second to make


def _sentences(text: str, nlp: Language) -> list[str]:
    """The sentences of `text`, their white space made single; an empty line ends one too."""
    paragraphs = re.split(r"\n\s*\n", text)
    found = (" ".join(sentence.text.split()) for doc in nlp.pipe(paragraphs) for sentence in doc.sents)
    return [sentence for sentence in found if sentence]


def _by_centrality(sentences: Sequence[str], nlp: Language) -> list[int]:
    """The places of `sentences`, the most central first, of equal ones the first one first."""
    if len(sentences) < 3:
        return list(range(len(sentences)))
    version_of("sumy")
    import numpy as np
    from sumy.models.dom import ObjectDocumentModel, Paragraph, Sentence
    from sumy.summarizers.lex_rank import LexRankSummarizer

    document = ObjectDocumentModel([Paragraph([Sentence(one, _Words(nlp)) for one in sentences])])
    ranked: list[int] = []

    def order(rated: Iterable[Any]) -> Iterable[Any]:
        # NaN where no two sentences share a word. Rounded, since the last digits differ between machines.
        ratings = [(0.0 if math.isnan(one.rating) else -round(float(one.rating), 9), one.order) for one in rated]
        ranked.extend(at for _, at in sorted(ratings))
        return ()

    with np.errstate(all="ignore"):
        LexRankSummarizer()(document, order)
    return ranked


def _nearest(sentences: Sequence[str], ranked: Iterable[int], *, words: int) -> list[int]:
    """The places of the sentences that are taken, in the order of their rank."""
    chosen: list[int] = []
    taken: set[str] = set()
    total = 0
    for at in ranked:
        length = len(sentences[at].split())
        nearer = abs(total + length - words) < abs(total - words)
        if nearer and length <= 2 * words and sentences[at].casefold() not in taken:
            chosen.append(at)
            taken.add(sentences[at].casefold())
            total += length
    return chosen
