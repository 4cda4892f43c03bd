"""A person leaves folders whose manifest was made by hand; one that is damaged is one sentence, and nothing changes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from places import SAMPLES

from perse.data.build import PointwiseOptions, build_pointwise
from perse.data.dataset.folder import load_folder
from perse.data.forgetting.leaving import leave
from perse.data.persum.folder import load_persum
from perse.errors import BadInput

PERSUM = {"schema": 1, "kind": "persum"}


def review(who: str, item: str) -> dict[str, object]:
    return {"reviewer_id": who, "item_id": item, "review": f"{who} of {item}", "score": 5.0, "time": None}


def sample(name: str, who: str, *others: str) -> dict[str, Any]:
    scores = {"history_coverage": 5, "product_coverage": 5, "product_sentiment": 5}
    return {
        "id": name, "category": "C", "group": "High", "own": review(who, "p"), "scores": scores,
        "product_reviews": [review(other, "p") for other in others], "history": [review(who, "q")],
    }  # fmt: skip


def persum(folder: Path, manifest: dict[str, Any], *more: dict[str, Any]) -> Path:
    folder.mkdir()
    samples = [sample("a", "ann", "bob"), sample("b", "bob", "ann", "cy"), *more]
    (folder / "samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
    (folder / "manifest.json").write_text(json.dumps(manifest))
    (folder / "README.md").write_text("Ours.")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in sorted(folder.iterdir())}


def refused(person: str, folder: Path, *needed: str) -> None:
    before = contents(folder)
    with pytest.raises(BadInput) as told:
        leave(person, [folder])
    assert all(one in str(told.value) for one in needed), told.value
    assert contents(folder) == before


@pytest.mark.parametrize(
    "options",
    [
        {"salt": "from seed"},
        {"salt": "from seed", "seed": "a"},
        {"salt": "from seed", "seed": 0},
        {"salt": None, "high": "much", "low": 3},
        {"salt": None, "high": 4, "low": 3, "keep_names": True},
    ],
)
@pytest.mark.parametrize(
    "others",
    [
        {},
        {"samples": {"C": {"High": 2}}},
        {"samples": {"C": {"High": "x"}}, "funnel": 5, "judge": [1], "sources": {"C": 1}, "notes": "n"},
    ],
)
def test_a_person_leaves_samples_whose_manifest_tells_only_some_of_it(
    tmp_path: Path, options: dict[str, Any], others: dict[str, Any]
) -> None:
    folder = persum(tmp_path / "mine", {**PERSUM, **others, "options": options})
    person = "r0123456789ab" if options.get("seed") == 0 else "ann"
    if person != "ann":  # by pseudonym, as such a folder has it
        for file in ("samples.jsonl",):
            (folder / file).write_text((folder / file).read_text().replace("ann", person))
    assert leave(person, [folder]).found
    (left,) = load_persum(folder)
    assert left.id == "b" and [one.reviewer_id for one in left.product_reviews] == ["cy"]
    card = (folder / "README.md").read_text()
    assert "1 samples. " in card and "| C | 1 | 0 | 0 |" in card and (folder / "README.kept-1.md").read_text() == "Ours."
    assert ("agrees with the product's reviews" in card) == (options.get("high") == 4)


def test_a_name_that_only_a_lost_seed_could_turn_into_a_pseudonym_is_asked_for_otherwise(tmp_path: Path) -> None:
    folder = persum(tmp_path / "mine", {**PERSUM, "options": {"salt": "from seed"}})
    refused("dora", folder, f"{folder}/manifest.json", "'options.seed' is null", "give --salt, or the person's pseudonym")


@pytest.mark.parametrize("more", [{}, {"seed": None}, {"seed": 7}])
def test_a_salt_that_was_given_is_asked_for_whatever_is_said_of_a_seed(tmp_path: Path, more: dict[str, Any]) -> None:
    folder = persum(tmp_path / "mine", {**PERSUM, "options": {"salt": "given"} | more})
    refused("dora", folder, "a data set here was built with a salt of its own; give it with --salt")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"options": "x"}, "'options' is \"x\""),
        ({"options": [1]}, "'options' is [1]"),
        ({"forgotten": "x"}, "'forgotten' is \"x\""),
        ({"forgotten": None}, "'forgotten' is null"),
        ({"forgotten": 10**30}, "'forgotten' is 1000"),
        ({"context": {"data_folder": 5}}, "'context.data_folder' is 5"),
        ({"note": "\ud800"}, "'note' has half a surrogate pair"),
        ({"notes": [{"a": "\ud800"}]}, "'notes.0.a' has half a surrogate pair"),
    ],
)
@pytest.mark.parametrize("person", ["ann", "r0123456789ab"])
def test_a_damaged_manifest_of_samples_is_named_by_file_and_field(
    tmp_path: Path, changes: dict[str, Any], field: str, person: str
) -> None:
    folder = persum(tmp_path / "mine", {**PERSUM, **changes})
    refused(person, folder, f"{folder}/manifest.json: field {field}")


@pytest.mark.parametrize("name", [["ann"], {"ann": 1}, None, 5])
def test_a_review_that_names_its_reviewer_otherwise_is_named_by_line(tmp_path: Path, name: object) -> None:
    strange = sample("c", "cy", "bob")
    strange["product_reviews"][0]["reviewer_id"] = name
    folder = persum(tmp_path / "mine", PERSUM, strange)
    refused("ann", folder, "samples.jsonl, line 3", "product_reviews.0.reviewer_id")


@pytest.fixture(scope="module")
def data_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "set"
    build_pointwise(PointwiseOptions(reviews=SAMPLES / "reviews.jsonl", items=SAMPLES / "items.jsonl", out=out))
    return out


@pytest.mark.parametrize("dropped", [True, "x", 10**30, {"rows": 5}, {"rows": {"short": "x"}}])
def test_a_damaged_manifest_of_a_data_set_is_named_by_file_and_field(tmp_path: Path, data_set: Path, dropped: object) -> None:
    folder = shutil.copytree(data_set, tmp_path / "set")
    person = load_folder(folder).rows[0].reviewer_id
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "dropped": dropped}))
    refused(person, folder, f"{folder}/manifest.json: field 'dropped' is ")
