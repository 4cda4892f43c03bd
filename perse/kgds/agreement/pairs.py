"""Claims whose truth is known without an annotator, each with a text that states it and one that does not (the agreement study).

A key fact is asked of its own paragraph (yes) and of a nonsupporting paragraph of the same article, drawn by seed (no). A clear opinion is
asked of the list of all clear opinions of its discussion (yes) and of that list without it (no). Every claim is asked of both texts, so
that a judge that reads the claim alone, or always answers the same, is right half of the time: accuracy is balanced accuracy.

What can be wrong with the labels. A fact was written with the whole article in view, so its paragraph may say "he" where the fact has a
name, and "yes" asks for a little too much. A nonsupporting paragraph may say the same as a key fact. Three things keep such pairs out:
only key facts are used, which two people found to be about the discussion; paragraphs of which any fact was masked, for a supporting
paragraph says it too, are not drawn; and a claim that a text seems to say (`seems_said`) is left out and counted. What remains are claims
that name nothing ("The match ended in a draw") and were true of another match, too. Opinions that follow from another, as "X is good" does
from "X is good, for it is cheap", fall under the same rule, so some that are only alike in wording are left out: the trade-off is fewer
hard questions for surer labels.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from perse.identity import draw, shuffled
from perse.kgds.asking.verify import plain_opinion
from perse.kgds.benchmark import KEY, MASKED, Benchmark, Sample
from perse.records import ClaimExample, ClaimsExample

Kind = Literal["fact", "opinion"]

_WORD = re.compile(r"\w+(?:[.,:'\u2019-]\w+)*")
_LONG = 4
"""Fewest letters of a word with a meaning of its own."""
_STEM = 5
"""Words other than names are compared by so many letters: "opens" equals "opening"."""


@dataclass(frozen=True)
class Pair:
    """One labelled question: does `claim` follow from `text`?"""

    id: str
    sample: int
    kind: Kind
    source: str
    """Names the text: the pairs of one source share it, and those of one paragraph's facts are asked in one list."""
    text: str
    claim: str
    truth: bool

    @property
    def example(self) -> ClaimExample:
        """As a question of its own."""
        return ClaimExample(id=self.id, reviewer_id=self.source, text=self.text, claim=self.claim)


@dataclass(frozen=True)
class Pairs:
    """The questions, and how many claims were left out for which reason."""

    pairs: tuple[Pair, ...]
    left_out: Mapping[str, int]

    def of(self, kind: Kind) -> tuple[Pair, ...]:
        """Those of one kind."""
        return tuple(pair for pair in self.pairs if pair.kind == kind)


def draw_pairs(benchmark: Benchmark, *, limit: int | None, seed: int) -> Pairs:
    """Two pairs for each of at most `limit` claims of each kind, ordered so that pairs that share a text are adjacent.

    Facts are drawn a paragraph at a time, so that they can be asked in its list; the last paragraph's may be cut.
    """
    left_out = dict.fromkeys(("fact without a paragraph", "fact said elsewhere", "opinion alone", "opinion said elsewhere"), 0)
    kept: dict[Kind, dict[str, list[tuple[Pair, Pair]]]] = {"fact": {}, "opinion": {}}
    for sample in benchmark.samples.values():
        kept["fact"] |= _facts(sample, left_out, seed=seed)
        kept["opinion"] |= _opinions(sample, left_out)
    chosen: list[Pair] = []
    for kind, groups in kept.items():
        room = limit
        taken: dict[str, list[tuple[Pair, Pair]]] = {}
        for name in shuffled(groups, seed=seed, purpose=f"agreement {kind}"):
            taken[name] = groups[name][:room]
            room = None if room is None else room - len(taken[name])
        for which in (0, 1):
            chosen += [both[which] for name, group in groups.items() for both in taken[name]]
    return Pairs(tuple(sorted(chosen, key=lambda pair: (pair.kind, pair.source))), left_out)


def lists(pairs: Sequence[Pair]) -> tuple[list[ClaimsExample], dict[str, str]]:
    """The pairs as lists, one for each text, and by a pair's id the id of its judgement there."""
    groups: dict[str, list[Pair]] = {}
    for pair in pairs:
        groups.setdefault(pair.source, []).append(pair)
    made = [
        ClaimsExample(id=source, reviewer_id=source, text=group[0].text, claims=tuple(pair.claim for pair in group))
        for source, group in groups.items()
    ]
    return made, {pair.id: f"{source}/{n}" for source, group in groups.items() for n, pair in enumerate(group, start=1)}


def word_share(claim: str, text: str) -> float:
    """The share of the claim's names, numbers and other long words that the text has, too, 0 to 1; 1 of a claim without any."""
    names, words = _names_and_words(claim)
    shared = len(names & _whole(text)) + len(words & _beginnings(text))
    return shared / (len(names) + len(words)) if names or words else 1.0


def seems_said(claim: str, text: str) -> bool:
    """Whether a text may state a claim: it has all its names and numbers, and 4 of 5 of these and its other long words."""
    return has_names(claim, text) and word_share(claim, text) >= 0.8


def has_names(claim: str, text: str) -> bool:
    """Whether a text has all of a claim's names and numbers."""
    names, _ = _names_and_words(claim)
    return names <= _whole(text)


def _facts(sample: Sample, left_out: dict[str, int], *, seed: int) -> dict[str, list[tuple[Pair, Pair]]]:
    """By paragraph, its facts that can be asked."""
    others = [one.index for one in sample.nonsupporting_facts if all(fact.type < MASKED for fact in one.facts)]
    found: dict[str, list[tuple[Pair, Pair]]] = {}
    for one in sample.supporting_facts:
        where = f"{sample.number:03d}/fact/{one.index:03d}"
        key = [(at, fact.text) for at, fact in enumerate(one.facts, start=1) if fact.type == KEY]
        if not others:
            left_out["fact without a paragraph"] += len(key)
            continue
        own, other = sample.paragraph(one.index), sample.paragraph(draw(seed, where, "agreement paragraph").choice(others))
        sure = [(at, claim) for at, claim in key if not seems_said(claim, other)]
        left_out["fact said elsewhere"] += len(key) - len(sure)
        found[where] = [
            (
                Pair(f"{where}/{at}/own", sample.number, "fact", f"{where}/own", own, claim, True),
                Pair(f"{where}/{at}/other", sample.number, "fact", f"{where}/other", other, claim, False),
            )
            for at, claim in sure
        ]
    return found


def _opinions(sample: Sample, left_out: dict[str, int]) -> dict[str, list[tuple[Pair, Pair]]]:
    """The opinions that can be asked, each under itself."""
    opinions = [plain_opinion(opinion) for opinion in sample.opinions]
    if len(opinions) == 1:
        left_out["opinion alone"] += 1
        return {}
    found: dict[str, list[tuple[Pair, Pair]]] = {}
    for at, opinion in enumerate(opinions, start=1):
        rest = [*opinions[: at - 1], *opinions[at:]]
        if any(seems_said(opinion, other) for other in rest):
            left_out["opinion said elsewhere"] += 1
            continue
        where = f"{sample.number:03d}/opinion/{at:03d}"
        every, without = "\n".join(opinions), "\n".join(rest)
        found[where] = [
            (
                Pair(f"{where}/with", sample.number, "opinion", f"{sample.number:03d}/opinions", every, opinion, True),
                Pair(f"{where}/without", sample.number, "opinion", f"{where}/without", without, opinion, False),
            )
        ]
    return found


def _names_and_words(claim: str) -> tuple[frozenset[str], frozenset[str]]:
    """Names and numbers, whole, and the beginnings of other long words. The first word is a name only if it has a digit."""
    words = _split(claim)
    names = {
        word
        for at, word in enumerate(words)
        if any(letter.isdigit() for letter in word) or (at > 0 and any(letter.isupper() for letter in word))
    }
    rest = {_bare(word)[:_STEM] for word in words if len(word) >= _LONG and word not in names}
    return frozenset(map(_bare, names)), frozenset(rest)


def _whole(text: str) -> frozenset[str]:
    return frozenset(map(_bare, _split(text)))


def _beginnings(text: str) -> frozenset[str]:
    return frozenset(_bare(word)[:_STEM] for word in _split(text))


def _split(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text))


def _bare(word: str) -> str:
    """Without case and a genitive's ending: "Lind's" is "lind"."""
    return re.sub(r"['\u2019]s?$", "", word.casefold())
