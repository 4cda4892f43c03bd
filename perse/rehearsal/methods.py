"""The methods of Rehearsal's tables 1 and 2, and ours: which parts each of them has.

The four baselines are prompts of their own; the others rewrite the general summary by a role-played user's suggestions, and differ in how these are
had (`supervised`, `practised`) and in whether reviews are retrieved for the rewriting (`retrieved`). Under `personal` the reader's judge says after each
rewriting whether it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from perse.errors import BadInput


@dataclass(frozen=True)
class Method:
    """One row of the tables; `plays` is False of the baselines."""

    name: str
    published: str
    """Its name in the paper's tables; ours is marked."""
    what: str
    plays: bool = True
    supervised: bool = False
    practised: bool = False
    retrieved: bool = False
    judged: bool = False
    """Whether the personal judge says what stands, so that no version is kept by its score."""


_ALL = (
    Method("persum", "PerSum", "one prompt with the product's and the user's reviews", plays=False),
    Method("ana-persum", "Ana+PerSum", "first the user's interests, then a summary for these", plays=False),
    Method("onlysum", "OnlySum", "the general summary, for nobody", plays=False),
    Method("sum-perchan", "Sum+PerChan", "the general summary, changed to suit the user's reviews", plays=False),
    Method("role", "+RoleChange", "the general summary, rewritten by a role-played user's suggestions"),
    Method("role-retriever", "+Retriever", "the same with retrieved reviews", retrieved=True),
    Method("role-supervisor", "+Supervisor", "the same with a supervised user", supervised=True),
    Method("role-icl", "+ICL-Super", "the same with a supervised user who has practised", supervised=True, practised=True),
    Method("rehearsal", "Rehearsal", "all of these", supervised=True, practised=True, retrieved=True),
    Method(
        "personal", "Personal judge (ours)", "+Retriever, in rounds that this reader's judge ends", retrieved=True, judged=True
    ),
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}

PAPER = tuple(name for name, method in METHODS.items() if not method.judged)
"""The paper's own."""

TABLE_1 = ("persum", "ana-persum", "onlysum", "sum-perchan", "rehearsal")
TABLE_2 = ("sum-perchan", "role", "role-retriever", "role-supervisor", "role-icl", "rehearsal")
"""In the paper, the last row is called ALL there."""
BESIDE = ("role-retriever", "rehearsal", "personal")
"""The personal judge and what it is to be held against: nobody, and the paper's supervisor."""


def told_of(methods: Iterable[str]) -> tuple[str, ...]:
    """Of these methods, in the order of the tables, those whose worth is told first: Rehearsal and the personal judge; the last one where neither is."""
    given = tuple(methods)
    return tuple(name for name in BESIDE[1:] if name in given) or given[-1:]


def check_judged(names: Collection[str], *, personal: bool) -> None:
    """Raises:
    BadInput: one of these methods needs the personal judge, and there is none; or there is one, and nobody asks it.
    """
    wanting = [name for name in names if METHODS[name].judged]
    if wanting and not personal:
        raise BadInput(
            f"the method {wanting[0]} needs the judge that says what this reader would rather have; give --supervisor personal:JUDGE"
        )
    if personal and not wanting:
        raise BadInput(
            f"none of these methods asks the personal judge: add --method {BESIDE[-1]}, or leave --supervisor personal:JUDGE out"
        )
