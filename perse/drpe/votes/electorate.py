"""Who votes on each document, as `--roles` names them: roles that are always there, those that were invented, and real readers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from perse.data.profiles.views import ProfileAspects
from perse.drpe.clustering import Clustering, Embed, embedding, kept_roles
from perse.drpe.documents import Document, Documents
from perse.drpe.roles import Role, each_once, manual_roles, static_roles
from perse.drpe.roles_folder import read_roles
from perse.drpe.votes.readers import PREFIX, Reader, choose_readers
from perse.errors import BadInput

NOBODY = "none"
ALWAYS = {"static": static_roles, "manual": manual_roles}


@dataclass(frozen=True)
class Electorate:
    """Who votes on which documents."""

    documents: Documents
    """Those on which somebody votes."""
    roles: dict[str, tuple[Role, ...]]
    """By document; empty for nobody in particular."""
    readers: tuple[Reader, ...]
    without_invented: tuple[str, ...] = ()
    """Documents for which no role was invented ..."""
    silent: tuple[str, ...] = ()
    """... and those on which, for this, nobody would vote: they are left out."""
    left_out: int = 0
    """Roles that clustering left out, over all documents."""


def electorate(
    names: Sequence[str],
    documents: Documents,
    clustering: Clustering,
    *,
    readers: int,
    aspect: str | None = None,
    embed: Embed | None = None,
    profile_aspects: ProfileAspects = "all",
) -> Electorate:
    """Args:
        names: "static", "manual", "none", a folder of `perse drpe roles`, or "readers:DATASET"; "none" stands alone.
        clustering: which of the invented roles vote.
        readers: how many of a data set vote.
        aspect: what they vote on, if it is a data set of pairs.
        embed: by default by the model of `clustering`.
        profile_aspects: what a comparison of theirs shows the judge: as it was trained.

    Raises:
        BadInput: a name is none of these or given twice, or a folder has no roles of some document.
    """
    if twice := next((name for name in names if list(names).count(name) > 1), None):
        raise BadInput(f"--roles {twice} is given twice")
    if NOBODY in names and len(names) > 1:
        raise BadInput(f"--roles {NOBODY} asks nobody in particular, and stands alone; leave it out, or the others")
    folders = [name for name in names if name != NOBODY and name not in ALWAYS and not name.startswith(PREFIX)]
    sets = [name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)]
    if len(folders) > 1 or len(sets) > 1:
        raise BadInput(f"--roles names {' and '.join(folders or sets)}; give one folder of roles and one data set at most")
    standing = {one.id: _standing(names, one) for one in documents.documents}
    invented = {name: found for folder in folders for name, found in read_roles(Path(folder)).items()}
    if folders and (lacking := [one.id for one in documents.documents if one.id not in invented]):
        raise BadInput(
            f"{folders[0]} has no roles for {len(lacking)} of {len(documents.documents)} documents, such as '{lacking[0]}'; give `perse drpe roles` "
            "the same file and the same --limit"
        )
    every = {name: (*of_one, *invented.get(name, ())) for name, of_one in standing.items()}
    roles = {name: kept_roles(of_one, clustering, embed=embed) if folders else of_one for name, of_one in every.items()}
    people: tuple[Reader, ...] = ()
    if aspect is not None and not sets:
        raise BadInput("--aspect is what readers of a data set of pairs vote on; name one with --roles readers:DATASET")
    if sets:
        people = choose_readers(
            Path(sets[0]),
            readers,
            embed or (lambda texts: embedding(clustering.model)(texts)),
            aspect=aspect,
            profile_aspects=profile_aspects,
        )
    silent = () if NOBODY in names or people else tuple(name for name, of_one in roles.items() if not of_one)
    heard = replace(documents, documents=tuple(one for one in documents.documents if one.id not in silent))
    if not heard.documents:
        raise BadInput(
            "nobody votes on any document, since no role was invented; add --roles static, or invent roles with another model"
        )
    left_out = sum(len(every[name]) - len(of_one) for name, of_one in roles.items())
    return Electorate(heard, roles, people, tuple(name for name in roles if folders and not invented[name]), silent, left_out)


def _standing(names: Sequence[str], document: Document) -> tuple[Role, ...]:
    """Those who vote whatever is invented; manual ones have the static ones among them."""
    always = (ALWAYS[name](summaries=document.summarized) for name in names if name in ALWAYS)
    return each_once(role for of_name in always for role in of_name)
