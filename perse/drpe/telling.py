"""What was invented and what is kept of it, as a `Result`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from perse.drpe.clustering import Clustering, is_dynamic
from perse.drpe.diversity import Diversity, OfDocument
from perse.drpe.inventing import PROMPTS, Invented
from perse.results.result import Result, Table
from perse.results.words import shown

DRPE_ROLES = "drpe-roles"

_WAYS = {
    "kmeans": "k-means with k = {k}",
    "dbscan": "DBSCAN (eps {eps:g}, min_samples {min_samples})",
    "none": "no clustering",
}


def roles_result(
    invented: Sequence[Invented], found: Sequence[OfDocument], diverse: Diversity, clustering: Clustering
) -> Result:
    """Counts, distances, and every role."""
    return Result(
        name=DRPE_ROLES,
        asks="Which roles were invented, how many are kept, and how different are they?",
        answer=_answer(found, diverse, clustering),
        tables=(_counts(invented, found), *_failures(invented), _distances(diverse), *map(_of_document, found)),
        notes=_notes(invented, found, clustering),
        details={
            "documents": {
                one.id: {
                    "kept": [role.model_dump() for role, votes in zip(one.roles, one.kept, strict=True) if votes],
                    "special": one.special,
                    "distance_before": one.before,
                    "distance_after": one.after,
                }
                for one in found
            },
            "clustering": vars(clustering),
        },
    )


def _answer(found: Sequence[OfDocument], diverse: Diversity, clustering: Clustering) -> str:
    roles = sum(len(one.dynamic) for one in found)
    kept = sum(votes for one in found for _, votes in one.dynamic)
    way = _WAYS[clustering.method].format(**vars(clustering))
    told = f"{_number(roles, 'role')} {'was' if roles == 1 else 'were'} invented for {_number(len(found), 'document')}, and {kept} of them vote ({way})."
    if diverse.gained.value is None:
        return told
    if kept == roles:  # as many were as far apart before, by construction
        return f"{told} None was left out; the mean cosine distance of those of a document is {shown(diverse.after, digits=2)}."
    change = (
        "farther apart than before"
        if diverse.gained.above_zero
        else "nearer to each other than before"
        if diverse.gained.below_zero
        else "not shown to be farther apart than before"
    )
    return f"{told} Those of a document are {change}: their mean cosine distance is {shown(diverse.after, digits=2)}, and was {shown(diverse.before, digits=2)}."


def _counts(invented: Sequence[Invented], found: Sequence[OfDocument]) -> Table:
    number = len(found)
    rows = []
    for prompt in PROMPTS:
        roles = [pair for one in found for pair in one.dynamic if pair[0].source == prompt]
        failed = sum(prompt in one.failed for one in invented)
        rows.append((prompt, str(len(roles)), f"{len(roles) / number:.1f}", str(failed), str(sum(v for _, v in roles))))
    static = sum(votes for one in found for role, votes in zip(one.roles, one.kept, strict=True) if role.source == "static")
    rows.append(("static", str(3 * number), "3.0", "", str(static)))
    return Table(
        title="Roles",
        header=("asked by", "roles", "a document", "documents without", "kept"),
        rows=tuple(rows),
    )


def _failures(invented: Sequence[Invented]) -> tuple[Table, ...]:
    """Nothing where every first answer was as it should be."""
    tried: Counter[str] = Counter()
    for one in invented:
        tried.update(one.tried)
    dropped: Counter[str] = Counter()
    for one in invented:
        dropped.update(one.dropped)
    without = Counter(reason.partition(":")[0] for one in invented for reason in one.failed.values())
    rows = [
        *(("answers asked for again, or given up", why, str(count)) for why, count in sorted(tried.items()) if why != "ok"),
        *(("entries of answers that are no role", why, str(count)) for why, count in sorted(dropped.items())),
        *(("prompts without any role", why, str(count)) for why, count in sorted(without.items())),
    ]
    return (Table(title="What was not as it should be", header=("what", "why", "how often"), rows=tuple(rows)),) if rows else ()


def _distances(diverse: Diversity) -> Table:
    return Table(
        title="Mean cosine distance between the invented roles of a document",
        header=("before clustering", "after", "after minus before"),
        rows=((diverse.before, diverse.after, diverse.gained),),
        notes=("as many roles drawn at random would have the distance of before, on average",),
    )


def _of_document(one: OfDocument) -> Table:
    """A table for each, since ids are long. Static roles stand in it only where they were clustered and went."""
    return Table(
        title=f"Roles of {one.id}",
        header=("votes", "asked by", "role"),
        rows=tuple(
            ("yes" if votes else "no", role.source, role.text)
            for role, votes in zip(one.roles, one.kept, strict=True)
            if is_dynamic(role) or not votes
        ),
        detail=True,
    )


def _notes(invented: Sequence[Invented], found: Sequence[OfDocument], clustering: Clustering) -> tuple[str, ...]:
    special = Counter(one.special for one in found)
    without = _listed(one.id for one in invented if not one.roles)
    return tuple(
        told
        for told, count in (
            (
                f"of {_number(special['few'], 'document')} fewer roles than k = {clustering.k} were invented: all are kept",
                special["few"],
            ),
            (
                f"of {_number(special['alike'], 'document')} roles repeat each other word for word, so that fewer than k = {clustering.k} are kept",
                special["alike"],
            ),
            (
                f"of {_number(special['noise'], 'document')} DBSCAN finds no role that has {_number(clustering.min_samples - 1, 'other')} within {clustering.eps:g} of it, only noise: all are kept",
                special["noise"],
            ),
            (f"without any invented role, so that only static ones vote: {without}", without),
            (
                "nothing was embedded, since nothing is clustered; so no distances are known (--figure embeds)",
                clustering.method == "none" and all(one.before is None for one in found),
            ),
        )
        if count
    )


def _listed(names: Iterable[str]) -> str:
    given = list(names)
    return ", ".join(given[:5]) + (f" and {len(given) - 5} more" if len(given) > 5 else "")


def _number(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
