"""What a person is told before a judge is asked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from perse.commands.terminal import say
from perse.data.variants.profile_variants import ProfileShown
from perse.errors import BadInput
from perse.records import Example, PairwiseExample

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


_NO_STAND_IN = {
    ProfileShown.SHUFFLED: "a profile of fewer than two entries cannot be shuffled",
    ProfileShown.ANOTHER: "the other reader's profile shows what is asked about",
}


def tell_stand_in(asked: LoadedExamples, shown: LoadedExamples, profile: ProfileShown) -> None:
    """Which examples have nothing to stand in the place of their profile, and so are not judged.

    Raises:
        BadInput: none has.
    """
    left = len(asked.examples) - len(shown.examples)
    if not left:
        return
    why = _NO_STAND_IN[profile]
    if not shown.examples:
        raise BadInput(f"--profile {profile} leaves no example to judge: {why}; give other examples, or another --profile")
    say(f"note: {left:,} of {len(asked.examples):,} examples left out: {why}")


def comparable(question: str, examples: Iterable[Example]) -> bool:
    """Whether `perse evaluate` has something to hold the answers against: an example with a true answer, on the question's scale."""
    from perse.questions import why_no_truth

    known = next((one for one in examples if one.truth is not None), None)
    return known is not None and why_no_truth(question, type(known)) is None


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
