"""A file of kept answers that is damaged, or is not where it seems, is one sentence."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from perse.errors import BadInput
from perse.writing.cache import AnswerCache, check_cache
from perse.writing.writer import Written


def kept(path: Path) -> Path:
    with AnswerCache(path) as cache:
        cache.keep({"a": Written("good", "stop", False, None), "b": Written("well", "stop", False, None)})
    return path


@pytest.mark.parametrize("column", ["text", "finish_reason"])
@pytest.mark.parametrize("value", ["x'fffe'", "CAST(x'fffe' AS TEXT)"])
def test_an_answer_that_is_no_text_is_named_with_what_to_do(tmp_path: Path, column: str, value: str) -> None:
    path = kept(tmp_path / "answers.sqlite")
    file = sqlite3.connect(path)
    file.execute(f"UPDATE answers SET {column} = {value} WHERE key = 'b'")
    file.commit()
    file.close()
    with AnswerCache(path) as cache:
        assert cache.known(["a"])["a"].text == "good"
        with pytest.raises(
            BadInput, match=r"the cache of answers is damaged \(the answer under b is no text\); move it away, and answers"
        ):
            cache.known(["a", "b"])


@pytest.mark.parametrize("there", [True, False])
def test_answers_are_not_kept_through_a_link(tmp_path: Path, there: bool) -> None:
    if there:
        kept(tmp_path / "theirs.sqlite")
    link = tmp_path / "answers.sqlite"
    link.symlink_to(tmp_path / "theirs.sqlite")
    before = (tmp_path / "theirs.sqlite").read_bytes() if there else None
    for use in (check_cache, AnswerCache):
        with pytest.raises(BadInput, match="is a link to .*theirs.sqlite, and is not written through; move it away"):
            use(link)
    assert (tmp_path / "theirs.sqlite").exists() == there
    assert not there or (tmp_path / "theirs.sqlite").read_bytes() == before
