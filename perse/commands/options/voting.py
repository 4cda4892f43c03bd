"""What `perse drpe vote` and `plan` have in common: who votes, on what, and how they are asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Literal

import typer

from perse.batch.local import trained_aspects
from perse.commands.options import Seed
from perse.commands.options.drpe import Thinning
from perse.commands.terminal import say
from perse.drpe.documents import Documents
from perse.drpe.selection import Which, select
from perse.drpe.votes.ballots import PROMPTINGS, Voting
from perse.drpe.votes.electorate import Electorate, electorate

Asked = Literal["single", "batch", "both"]


@dataclass(frozen=True, kw_only=True)
class Ballot:
    """Who votes, on what, and how they are asked."""

    roles: Annotated[
        list[str] | None,
        typer.Option(
            help="Who votes; may be repeated: static, manual, none (nobody in particular), a folder of `perse drpe roles`, or readers:DATASET.",
            show_default="static",
        ),
    ] = None
    readers: Annotated[
        int,
        typer.Option(min=1, help="Of readers:DATASET: how many of its validation readers vote, chosen so that tastes differ."),
    ] = 5
    aspect: Annotated[
        str | None,
        typer.Option(
            help="Of readers:DATASET of pairs: what they vote on; they are asked as judges of pairs are.",
            show_default="the first by name",
        ),
    ] = None
    candidates: Annotated[
        Which | None,
        typer.Option(
            help="Vote on the two best and two worst of each document by people's mean, as published, or on all.",
            show_default="extremes where people's scores are there, else all",
        ),
    ] = None
    prompting: Annotated[
        Asked, typer.Option(help="A role a prompt; all roles in one prompt, as published; or both, side by side.")
    ] = "single"
    orders: Annotated[
        int, typer.Option(min=1, max=2, help="2: both orders of the texts; 1: the reference first, as published.")
    ] = 2
    references: Annotated[
        int, typer.Option(min=1, help="Hold candidates against the first so many references of a document.")
    ] = 1
    wording: Annotated[
        list[int] | None,
        typer.Option(
            min=0,
            max=4,
            help="Which of five wordings of the task is shown; may be repeated, and scores are means over them.",
            show_default="0",
        ),
    ] = None
    reason_tokens: Annotated[
        int, typer.Option(min=4, help="Most tokens of one reason; all of them are written before the vote is read.")
    ] = 64
    vote_temperature: Annotated[float, typer.Option("--temperature", min=0, help="Of reasons and votes; the paper has 0.")] = (
        0.0
    )
    seed: Seed = 0

    def voting(self) -> Voting:
        return Voting(
            prompting=PROMPTINGS if self.prompting == "both" else (self.prompting,),
            orders=self.orders,
            references=self.references,
            wordings=tuple(self.wording or (0,)),
            max_new_tokens=self.reason_tokens,
            temperature=self.vote_temperature,
            seed=self.seed,
        )

    def chosen(self, documents: Documents) -> Documents:
        """The documents with the candidates that are voted on.

        Raises:
            BadInput: extremes are wanted, and people's scores are not there.
        """
        scored = any(candidate.scores for one in documents.documents for candidate in one.candidates)
        if (self.candidates or ("extremes" if scored else "all")) == "all":
            return documents
        keys = {item.key for item in select(documents, which="extremes").items}
        narrowed = [
            one.model_copy(update={"candidates": tuple(each for each in one.candidates if (one.id, each.system) in keys)})
            for one in documents.documents
        ]
        left = Documents(tuple(one for one in narrowed if one.candidates))
        before, after = (sum(len(one.candidates) for one in each.documents) for each in (documents, left))
        left = replace(left, left_out=before - after)
        if after < before:
            gone = len(documents.documents) - len(left.documents)
            lacking = (
                f"; {gone} of {len(documents.documents)} documents have too few with scores, and are left out" if gone else ""
            )
            say(
                f"note: {after} of {before} candidates are voted on, the two best and two worst of each document by people's scores{lacking} (--candidates all takes all)"
            )
        return left

    def electorate(self, documents: Documents, thinning: Thinning, judge: str | None = None) -> Electorate:
        """Who votes, shown to this judge as it was trained, as far as that is known here.

        Raises:
        BadInput: as `perse.drpe.votes.electorate.electorate`.
        """
        trained = trained_aspects(judge) if judge else None
        found = electorate(
            self.roles or ["static"],
            documents,
            thinning.clustering(),
            readers=self.readers,
            aspect=self.aspect,
            profile_aspects=trained or "all",
        )
        if judge and trained is None and any(one.shows_others for one in found.readers):
            say(
                "note: readers' comparisons show the judge all their preferences; one that was trained with data.profile_aspects=asked has seen "
                "no such profile, and how this one was trained is not known here"
            )
        if 0 < len(found.readers) < self.readers:
            say(f"note: the data set has {len(found.readers)} validation readers with a profile, and all of them vote")
        return found
