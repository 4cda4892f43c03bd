"""What stands in the place of a reader's own profile, from a data set folder."""

from __future__ import annotations

import pytest
from places import SAMPLES
from typer.testing import CliRunner

from perse.commands.data.build import app
from perse.data.load import LoadedExamples, load_examples
from perse.data.variants.profile_variants import ProfileShown, stand_in
from perse.errors import BadInput
from perse.records import PointwiseExample, SummaryExample


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedExamples:
    out = tmp_path_factory.mktemp("stand-ins") / "data"
    done = CliRunner().invoke(
        app, ["pointwise", "--reviews", str(SAMPLES / "reviews.jsonl"), "--items", str(SAMPLES / "items.jsonl"), "--k", "3", "--out", str(out)]
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    return load_examples(out, split="valid")


@pytest.mark.parametrize("shown", list(ProfileShown))
def test_the_queries_and_answers_stay_whatever_stands_before_them(loaded: LoadedExamples, shown: ProfileShown) -> None:
    other = stand_in(loaded, shown, shots=2, seed=1)
    assert other.profile == shown and other.digest == loaded.digest
    own = {example.id: example for example in pointwise(loaded)}
    assert len(other.examples) == len(own)
    for example in pointwise(other):
        assert (example.query, example.reference) == (own[example.id].query, own[example.id].reference)
        assert (example.profile == own[example.id].profile) == (shown is ProfileShown.OWN)


def test_shots_are_of_training_readers(loaded: LoadedExamples) -> None:
    assert loaded.folder is not None
    train = {example.query for example in pointwise(load_examples(loaded.folder, split="train"))}
    shots = stand_in(loaded, ProfileShown.SHOTS, shots=2, seed=0)
    assert all(past.text in train for example in pointwise(shots) for past in example.profile)


def test_summaries_have_no_profile_to_stand_in_for() -> None:
    summary = SummaryExample(id="s", reviewer_id="r", reviews=("good",), summary="good")
    with pytest.raises(BadInput, match="--profile empty needs texts or pairs with profiles"):
        stand_in(LoadedExamples([summary], "", None, None), ProfileShown.EMPTY)


def pointwise(loaded: LoadedExamples) -> list[PointwiseExample]:
    return [example for example in loaded.examples if isinstance(example, PointwiseExample)]
