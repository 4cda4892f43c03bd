"""The data: reviews and comparisons as built, examples as judged and exported.

`Review` and `Comparison` are rows of a data set folder. An example is self-contained: one line of `perse data export`, read
directly by every judging command (DESIGN.md, section 3); it knows its own query, texts and true answer, and `EXAMPLES` lists the types
that there are.
"""

from perse.records.base import Asked, Choice, Example, Parts, PersonalExample, Record, Served, SeveralAsked, explain
from perse.records.claims import ClaimExample, ClaimsExample
from perse.records.kinds import EXAMPLES, chooses, example_lines, parse_example
from perse.records.pairwise import ChoiceReference, Pair, PairwiseExample, ProfileComparison
from perse.records.pointwise import Evidence, PointwiseExample, ProfileReview, ReviewReference, from_own_scale
from perse.records.reviews import ASPECTS, Comparison, Kind, Review, Split
from perse.records.summary import SummaryExample, SummaryReference
from perse.records.summary_pair import PastReview, SummaryPairExample
from perse.records.verbatim import VerbatimExample
from perse.records.votes import ReaderVoteExample, VoteExample, Voter, VotesExample

__all__ = [
    "ASPECTS",
    "EXAMPLES",
    "Asked",
    "Choice",
    "ChoiceReference",
    "ClaimExample",
    "ClaimsExample",
    "Comparison",
    "Evidence",
    "Example",
    "Kind",
    "Pair",
    "PairwiseExample",
    "Parts",
    "PastReview",
    "PersonalExample",
    "PointwiseExample",
    "ProfileComparison",
    "ProfileReview",
    "ReaderVoteExample",
    "Record",
    "Review",
    "ReviewReference",
    "Served",
    "SeveralAsked",
    "Split",
    "SummaryExample",
    "SummaryPairExample",
    "SummaryReference",
    "VerbatimExample",
    "VoteExample",
    "Voter",
    "VotesExample",
    "chooses",
    "example_lines",
    "explain",
    "from_own_scale",
    "parse_example",
]
