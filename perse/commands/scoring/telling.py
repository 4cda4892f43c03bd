"""What a person is told before a judge is asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perse.commands.terminal import say
from perse.records import PairwiseExample

if TYPE_CHECKING:
    from perse.data.load import LoadedExamples
    from perse.data.profiles.views import ProfileAspects


def tell_length(loaded: LoadedExamples, trained: int | None) -> None:
    """Where readers have more reviews than a profile had when the judge was trained, and all are shown, its scores are other ones."""
    most = max(len(one.profile) for one in loaded.examples)
    if trained is not None and most > trained:
        reviews = "1 review" if trained == 1 else f"{trained} reviews"
        say(
            f"note: the judge was trained on profiles of {reviews}, and readers here have up to {most}; --k {trained} shows the latest {trained}"
        )


def tell_view(loaded: LoadedExamples, trained: ProfileAspects | None, *, asked: ProfileAspects | None) -> None:
    """Where the profiles of pairs may not be as those that the judge was trained on, it answers prompts of a kind that it never saw."""
    pairs = [one for one in loaded.examples if isinstance(one, PairwiseExample)]
    if not pairs:
        return
    others = any(past.preference.keys() - {one.aspect} for one in pairs for past in one.profile)
    shows = asked or ("all" if others else "asked")
    if trained is None and others and asked is None:
        say(
            "note: profiles show all preferences; a judge that was trained with data.profile_aspects=asked needs --profile-aspects asked"
        )
    elif trained is not None and trained != shows and (others or asked is not None):
        say(f"note: the judge was trained with profile_aspects={trained} and is asked with {shows}")
