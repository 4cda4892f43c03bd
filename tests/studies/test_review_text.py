"""Review texts: shown or not, in several passes whose mean stands in the table."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from judging_builders import asking, average, point, scripted
from reading_builders import answered

from perse.errors import BadInput
from perse.judging.judge import JudgeSettings
from perse.studies.frame.arms import answers_of
from perse.studies.frame.measuring import Condition
from perse.studies.review_text import WITH, WITHOUT, _result, review_text


def test_a_judge_that_reads_scores_only_loses_nothing_without_the_words(readers: Path, tmp_path: Path) -> None:
    result = review_text(asking(readers), tmp_path, repeats=2, load=scripted(average))
    assert point(result, "script", WITH).estimate == point(result, "script", WITHOUT).estimate
    assert re.search(r"difference \+0\.000 \[-(0\.\d+), \1\], not shown", result.answer)
    assert (
        "[Review]" in (tmp_path / "arms" / "with-text-pass1" / "examples.jsonl").read_text()
        or "review" in (tmp_path / "arms" / "with-text-pass1" / "examples.jsonl").read_text().partition('"query"')[0]
    )
    without = (tmp_path / "arms" / "without-text-pass1" / "examples.jsonl").read_text().splitlines()
    assert all('"review"' not in line.partition('"query"')[0] for line in without)


@pytest.mark.slow
def test_passes_differ_by_their_seed_and_the_spread_is_theirs(readers: Path, tmp_path: Path) -> None:
    def by_seed(message: str, seed: int) -> str:
        return f"[Review] so\n[Score] {1 + seed % 10}"

    result = review_text(asking(readers), tmp_path, repeats=3, load=scripted(by_seed))
    first, second = (answers_of(tmp_path / "arms" / f"with-text-pass{n}") for n in (1, 2))
    assert [first[key].label for key in first] != [second[key].label for key in first]
    assert (point(result, "script", WITH).spread or 0) > 0
    assert "asked only: script was not trained again" in result.tables[0].title
    assert any(note.endswith("every pass asks the same judges again, with a seed of its own") for note in result.notes)


@pytest.mark.parametrize(
    ("judge", "retrained", "said"), [("script", False, "script"), ("script", True, "script"), (None, True, None)]
)
def test_a_judge_that_was_asked_only_is_named_so_beside_those_that_were_trained_too(
    judge: str | None, retrained: bool, said: str | None, readers: Path
) -> None:
    one = asking(readers, judge=judge)
    examples = one.open().shown().examples
    answers = {each.id: answered(each.id, str(1 + n % 9)) for n, each in enumerate(examples)}
    names = [*(["script"] if judge else []), *(["retrained each way"] if retrained else [])]
    conditions = [Condition(name, way, (answers,), examples) for name in names for way in (WITH, WITHOUT)]
    result = _result(one, conditions, repeats=1, retrained=retrained)
    title = "One pass" + (f" (asked only: {said} was not trained again, as in the paper's table it was)" if said else "")
    assert result.tables[0].title == title
    assert any("meets profiles unlike those it knows" in note for note in result.notes) is bool(said)
    assert any("--retrain trains one each way" in note for note in result.notes) is not retrained
    assert result.notes[-1].endswith("; here there is one pass")


def test_greedy_answers_are_asked_for_once(readers: Path, tmp_path: Path) -> None:
    one = replace(asking(readers, limit=4), settings=JudgeSettings(temperature=0))
    review_text(one, tmp_path, repeats=3, load=scripted(average))
    assert sorted(arm.name for arm in (tmp_path / "arms").iterdir()) == ["with-text-pass1", "without-text-pass1"]


def test_pairs_have_no_review_texts(couples: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="holds pairs, whose profiles have no review texts"):
        review_text(asking(couples), tmp_path, load=scripted(average))
