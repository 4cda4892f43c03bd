"""The methods of Rehearsal's tables 1 and 2: which parts each of them has.

The four baselines are prompts of their own; the others rewrite the general summary by a role-played user's suggestions, and differ in how these are
had (`supervised`, `practised`) and in whether reviews are retrieved for the rewriting (`retrieved`).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Method:
    """One row of the tables; `plays` is False of the baselines."""

    name: str
    published: str
    """Its name in the paper's tables."""
    what: str
    plays: bool = True
    supervised: bool = False
    practised: bool = False
    retrieved: bool = False


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
)

METHODS: dict[str, Method] = {method.name: method for method in _ALL}

TABLE_1 = ("persum", "ana-persum", "onlysum", "sum-perchan", "rehearsal")
TABLE_2 = ("sum-perchan", "role", "role-retriever", "role-supervisor", "role-icl", "rehearsal")
"""In the paper, the last row is called ALL there."""
