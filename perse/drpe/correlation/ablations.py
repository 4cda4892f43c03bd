"""What each part of DRPE brings: the same votes, counted over some of the roles (ablations of table 2, and the role curve of figure 6).

A role that is asked on its own votes as it does whoever else is asked. So one run in which all invented roles vote holds every smaller electorate, and nothing is
asked again. Roles that are asked in one prompt see each other: that variant is a run of its own, and stands beside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from statistics import fmean

from perse.drpe.clustering import PUBLISHED_BEST, PUBLISHED_K, Clustering, Embed, Method, is_dynamic, kept_roles
from perse.drpe.roles import Role
from perse.drpe.selection import Key
from perse.drpe.votes.ballots import Ballot
from perse.drpe.votes.run_folder import Run
from perse.drpe.votes.scoring import decisions
from perse.errors import BadInput
from perse.identity import draw

Keep = Callable[[Sequence[Role]], Sequence[Role]]

WHOLE = "DRPE"
"""Static roles and `k` clustered ones, each in a prompt of its own: the paper's "w/o Batch Inferring"."""
AT_RANDOM = ": as many at random"
"""Ends the name of a control: as many roles of the whole as the variant has, drawn at random for each document."""
EVERYBODY = "`perse drpe vote DOCS --roles static --roles ROLES --clusterer none`"
"""What makes the run that variants are counted from."""
CURVES = ("with static roles", "without")
"""The two lines of figure 6."""


@dataclass(frozen=True)
class Variant:
    """The votes of some of a run's roles."""

    name: str
    roles: float
    """Of a document, on average ..."""
    even: bool
    """... and whether all documents have as many."""
    scores: Mapping[Key, float | None]
    turned: float | None
    """The share of the roles that choose the same place in both orders."""


@dataclass(frozen=True)
class Ablations:
    """Variants by name, and which of them lie on the role curve: (line, k) -> name."""

    variants: Mapping[str, Variant]
    curve: Mapping[tuple[str, int], str]
    turned: float | None
    """Of the whole: the share of its roles that choose the same place in both orders."""
    uneven: bool
    """Whether some variant has more roles on one document than on another."""
    as_published: bool
    """Whether the whole is of k-means with the published k."""


def ablations(run: Run, clustering: Clustering, embed: Embed, *, by: str, seed: int = 0) -> Ablations:
    """All variants that the run's roles allow, the whole first.

    Args:
        run: in which static roles and all invented ones vote, a role a prompt; manual roles, if they vote too, are one more variant.
        clustering: of the whole; the curve has its own k.
        by: a field of a decision: "score", "expected" or "votes".
        seed: of the roles that are drawn at random.
    Raises:
        BadInput: the run has no votes of a role a prompt, or no static or no invented role, or clustering left some out before they voted, or no vote has what `by` names.
    """
    alone = [one for one in run.ballots if one.prompting == "single" and one.role is not None and one.role.source != "reader"]
    there = roles_of(alone)
    sources = {role.source for of_one in there.values() for role in of_one}
    if not alone or "static" not in sources or not sources & {"coarse", "fine"}:
        kinds = ", ".join(sorted(sources)) or "none that is asked on its own"
        raise BadInput(
            f"the run has roles of these kinds: {kinds}; ablations need static and invented ones, each in a prompt of its own: {EVERYBODY}"
        )
    if run.roles_left_out:
        raise BadInput(
            f"clustering left out {run.roles_left_out:,} of the run's roles before they voted; ablations need the votes of all: {EVERYBODY}"
        )
    keeps, curve = _keeps(clustering, embed, manual="manual" in sources, seed=seed)
    found = {name: _variant(name, keep, run, alone, there, by=by) for name, keep in keeps.items()}
    if not any(score is not None for score in found[WHOLE].scores.values()):
        raise BadInput(
            f"--by {by}: no candidate of the run has that; a judge that gives no distributions, or no reasons, has votes alone: --by votes"
        )
    uneven = not all(one.even for one in found.values())
    usual = clustering.method == "kmeans" and clustering.k == PUBLISHED_BEST
    return Ablations(found, curve, found[WHOLE].turned, uneven, usual)


def roles_of(ballots: Sequence[Ballot]) -> dict[str, tuple[Role, ...]]:
    """The roles that vote on each document, in their order; two may be equal, and both vote."""
    found: dict[str, list[Role]] = {}
    for (document, *_), of_round in groupby(ballots, key=_round):
        roles = [one.role for one in of_round if one.role is not None]
        found.setdefault(document, roles)
    return {name: tuple(roles) for name, roles in found.items()}


def _round(ballot: Ballot) -> tuple[str, str, int, int, str]:
    """All roles on one candidate, asked in one way."""
    return ballot.document, ballot.system, ballot.wording, ballot.reference, ballot.candidate


def _keeps(
    clustering: Clustering, embed: Embed, *, manual: bool, seed: int
) -> tuple[dict[str, Keep], dict[tuple[str, int], str]]:
    """Which roles each variant keeps, by its name, and the names on the curve."""

    def thinned(how: Clustering, *, static: bool) -> Keep:
        return lambda roles: kept_roles(
            [role for role in roles if is_dynamic(role) or (static and role.source == "static")], how, embed=embed
        )

    def without(source: str) -> Keep:
        whole = thinned(clustering, static=True)
        return lambda roles: whole([role for role in roles if role.source != source])

    def only(*sources: str) -> Keep:
        return lambda roles: [role for role in roles if role.source in sources]

    def as_many(keep: Keep) -> Keep:
        """As many of the whole's roles as `keep` leaves of a document, drawn at random: what fewer voters come to, whoever they are."""
        whole = thinned(clustering, static=True)

        def drawn(roles: Sequence[Role]) -> Sequence[Role]:
            of_whole, number = whole(roles), len(keep(roles))
            chance = draw(seed, "\n".join(role.text for role in roles), "roles at random")
            return [of_whole[at] for at in sorted(chance.sample(range(len(of_whole)), min(number, len(of_whole))))]

        return drawn

    other: Method = "dbscan" if clustering.method == "kmeans" else "kmeans"
    keeps: dict[str, Keep] = {
        WHOLE: thinned(clustering, static=True),
        "w/o clustering": only("static", "coarse", "fine"),
        "w/o dynamic roles": only("static"),
        f"w/o dynamic roles{AT_RANDOM}": as_many(only("static")),
        "w/o static roles": thinned(clustering, static=False),
        f"w/o static roles{AT_RANDOM}": as_many(thinned(clustering, static=False)),
        f"{other} instead": thinned(replace(clustering, method=other), static=True),
        "w/o coarse roles": without("coarse"),
        "w/o fine roles": without("fine"),
    }
    if manual:
        keeps["manual roles"] = only("manual", "static")  # the first version's six, three of which are the static ones
    curve: dict[tuple[str, int], str] = {(CURVES[0], 0): "w/o dynamic roles"}
    for line, k in ((line, k) for line in CURVES for k in PUBLISHED_K if k):
        static = line == CURVES[0]
        same = clustering.method == "kmeans" and clustering.k == k
        usual = WHOLE if static else "w/o static roles"
        curve[line, k] = usual if same else f"k = {k}" if static else f"k = {k}, w/o static roles"
        if not same:
            keeps[curve[line, k]] = thinned(replace(clustering, method="kmeans", k=k), static=static)
    return keeps, curve


def _variant(
    name: str, keep: Keep, run: Run, alone: Sequence[Ballot], there: Mapping[str, Sequence[Role]], *, by: str
) -> Variant:
    kept = {document: _places(roles, keep(roles)) for document, roles in there.items()}
    counted = [one for _, of_round in groupby(alone, key=_round) for at, one in enumerate(of_round) if at in kept[one.document]]
    decided = decisions(counted, run.answers)
    turned = [one.turned for one in decided if one.turned is not None]
    numbers = [len(of_one) for of_one in kept.values()]
    return Variant(
        name,
        fmean(numbers),
        len(set(numbers)) == 1,
        {one.key: getattr(one, by) for one in decided},
        fmean(turned) if turned else None,
    )


def _places(roles: Sequence[Role], kept: Sequence[Role]) -> set[int]:
    """Where the kept ones stand, which are in the order of all."""
    found, left = set(), list(kept)
    for at, role in enumerate(roles):
        if left and left[0] == role:
            found.add(at)
            left = left[1:]
    return found
