"""What the training run of a judge, where it is on this machine, tells of the data that the judge is to be scored on."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from builders import pointwise_examples

from perse.batch.local import check_unseen, chosen_by, place_of, trained_aspects
from perse.data.load import LoadedExamples
from perse.errors import BadInput
from perse.identity import reader_key

DIGEST = "d" * 64


@pytest.fixture
def loaded() -> LoadedExamples:
    return LoadedExamples(pointwise_examples(1, 1), DIGEST, None, None)


def trained(folder: Path, *, context: dict[str, Any] | None = None, **run: Any) -> Path:
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps({"run": {"kind": "train"} | run, "context": context or {}}))
    return folder


@pytest.mark.parametrize("run", [{"data_digest": DIGEST}, {"data_digest": "e", "mixed_digests": f"e {DIGEST} f"}])
def test_a_judge_of_another_fold_of_the_same_data_is_refused_and_no_other(
    tmp_path: Path, loaded: LoadedExamples, run: dict[str, Any]
) -> None:
    judge = str(trained(tmp_path / "judge", config={"data": {"fold": 1}}, **run))
    with pytest.raises(
        BadInput, match="judge was trained for fold 1 of this data set and has seen the readers of fold 2; score --fold 1"
    ):
        check_unseen(judge, replace(loaded, fold=2))
    check_unseen(judge, replace(loaded, fold=1))
    check_unseen(judge, replace(loaded, fold=None))
    check_unseen(judge, replace(loaded, fold=2, digest="another"))
    whole = str(trained(tmp_path / "whole", config={"data": {}}, **run))
    with pytest.raises(BadInput, match="trained for fold None"):
        check_unseen(whole, replace(loaded, fold=0))
    other = str(trained(tmp_path / "other", config={"data": {"fold": 1}}, **run | {"kind": "score"}))
    check_unseen(other, replace(loaded, fold=2))


@pytest.mark.parametrize(("kept", "view"), [("asked", "asked"), ("all", "all"), ("zz", "all"), (None, "all")])
def test_the_view_of_aspects_that_a_judge_was_trained_on_is_its_own(tmp_path: Path, kept: str | None, view: str) -> None:
    assert trained_aspects(str(trained(tmp_path / "judge", config={"data": {"profile_aspects": kept}}))) == view
    (tmp_path / "none").mkdir()
    assert trained_aspects(str(tmp_path / "none")) is None


def test_examples_of_readers_who_chose_the_weights_are_counted(tmp_path: Path) -> None:
    examples = pointwise_examples(3, 2)
    readers = [reader_key(name) for name in sorted({one.reviewer_id for one in examples})]
    judge = trained(tmp_path / "judge", context={"choosers": [readers[0], 5, readers[2]]})
    adapter = trained(tmp_path / "adapter", context={"choosers": [readers[1]]})
    odd = trained(tmp_path / "odd", context={"choosers": "all of them"})
    assert chosen_by(str(judge), None, examples) == 4 and chosen_by(str(judge), str(adapter), examples) == 6
    assert chosen_by("a server's", None, examples) == 0 and chosen_by(str(odd), str(adapter), examples) == 2


def test_only_a_folder_of_this_machine_is_a_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert place_of(str(tmp_path)) == str(tmp_path.resolve())
    assert place_of(None) is place_of("") is place_of(str(tmp_path / "file")) is place_of(str(tmp_path / "nowhere")) is None
