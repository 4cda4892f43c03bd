"""What is no document is named by line and field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from perse.drpe.documents import read_documents
from perse.errors import BadInput

WHOLE: dict[str, Any] = {"id": "a", "article": "Ferry 1.", "references": ["It sails."]}


def read(tmp_path: Path, candidate: dict[str, Any], **fields: Any) -> None:
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps({**WHOLE, **fields, "candidates": [{"system": "M1", "text": "It sank.", **candidate}]}) + "\n")
    read_documents(path)


@pytest.mark.parametrize(
    ("given", "found"),
    [("4", 'found "4", expected a number'), (True, "found true, expected a number"), (1e300, "less than or equal to 1000000")],
)
def test_people_s_scores_are_numbers_of_a_size_that_can_be_squared(tmp_path: Path, given: object, found: str) -> None:
    with pytest.raises(BadInput, match=f"line 1: field 'candidates.0.scores.coherence': .*{found}"):
        read(tmp_path, {"scores": {"coherence": given}})


def test_what_people_looked_at_has_a_name_that_can_be_printed(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="control character U\\+001B"):
        read(tmp_path, {"scores": {"\x1b[31mred": 3}})


def test_nothing_is_compared_with_an_empty_text(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="field 'references.0': found an empty text"):
        read(tmp_path, {}, references=["  "])
    with pytest.raises(BadInput, match="field 'candidates.0.text': found an empty text"):
        read(tmp_path, {"text": "\n"})
