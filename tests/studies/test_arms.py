"""Arms are asked once, by one judge at a time, and a study's folder takes no other study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from judging_builders import asking, average, scripted

from perse.batch import local
from perse.data.profiles.views import View
from perse.errors import BadInput, RunMismatch
from perse.files.path_names import path_name_of
from perse.judging.judge import Judge, JudgeSettings
from perse.records import example_lines
from perse.results.markdown import markdown
from perse.results.result import Estimate, Result, Table
from perse.studies.frame.arms import Arm, Source, ask_arms
from perse.studies.frame.running import opened, read_study
from perse.studies.frame.summarizing import undefined
from perse.studies.k_curve import k_curve


def arms(readers: Path, *names: str, judge: str = "script") -> list[Arm]:
    one = asking(readers, limit=6)
    source = one.open()
    question = one.ask(source)
    return [
        Arm(name=name, loaded=source.shown(View(k=n)), judge=judge, question=question, settings=one.settings)
        for n, name in enumerate(names)
    ]


def test_a_judge_is_loaded_once_for_all_its_arms_and_only_one_at_a_time(readers: Path, tmp_path: Path) -> None:
    loaded: list[str] = []

    def load(name: str) -> Judge:
        loaded.append(name)
        return scripted(average)(name)

    given = [*arms(readers, "a", "b", judge="one"), *arms(readers, "c", judge="two"), *arms(readers, "d", judge="one")]
    answers = ask_arms(given, tmp_path, load=load)
    assert loaded == ["one", "two"]
    assert {name: len(found) for name, found in answers.items()} == dict.fromkeys("abcd", 6)


def test_a_finished_arm_is_not_asked_again(readers: Path, tmp_path: Path) -> None:
    first = ask_arms(arms(readers, "a", "b"), tmp_path, load=scripted(average))

    def refuse(message: str, seed: int) -> str:
        raise AssertionError("asked again")

    assert ask_arms(arms(readers, "a", "b"), tmp_path, load=scripted(refuse)) == first


def test_a_study_says_once_of_a_judge_that_its_readers_chose_its_weights(
    readers: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet = k_curve(asking(readers, limit=6), tmp_path / "quiet", ks=[0, 1], load=scripted(average))
    monkeypatch.setattr(local, "chosen_by", lambda model, adapter, examples: len(examples))
    result = k_curve(asking(readers, limit=6), tmp_path / "chosen", ks=[0, 1], load=scripted(average))
    said = "script: 6 of 6 examples are of readers on whom the judge's weights were chosen while it was trained: on these it looks better than it is"
    assert result.notes == (*quiet.notes, said)
    assert read_study(tmp_path / "chosen") == result


def test_lines_of_no_arm_among_the_finished_ones_are_passed_over(readers: Path, tmp_path: Path) -> None:
    one = asking(readers, limit=6)
    result = k_curve(one, tmp_path / "study", ks=[0, 1], load=scripted(average))
    (tmp_path / "study" / "arms.jsonl").write_text('{}\n{"arm": ["k1"]}\n{"arm": null}\n')
    assert k_curve(one, tmp_path / "study", ks=[0, 1], load=scripted(average)) == result


def test_two_arms_of_one_name_are_refused(readers: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two arms have one name: a"):
        ask_arms(arms(readers, "a", "a"), tmp_path, load=scripted(average))


def test_all_views_ask_the_same_queries_in_the_same_order(readers: Path) -> None:
    source = Source.open(readers, limit=20, seed=3)
    shown = [source.shown(view).examples for view in (View(), View(k=0), View(k=4, order_seed=1), View(review_text=False))]
    assert all([one.id for one in examples] == [one.id for one in shown[0]] for examples in shown)
    assert {len(one.profile) for one in shown[1]} == {0}


def test_a_file_of_examples_is_asked_as_it_is_and_shows_no_other_view(readers: Path, tmp_path: Path) -> None:
    file = tmp_path / "examples.jsonl"
    file.write_text("".join(example_lines(Source.open(readers).shown().examples)), encoding="utf-8")
    assert Source.open(file).kind == "pointwise"
    with pytest.raises(BadInput, match=r"is a file of examples; a curve over k needs the data set folder"):
        k_curve(asking(file), tmp_path / "out", load=scripted(average))


def test_another_study_or_other_settings_in_the_folder_are_refused(readers: Path, tmp_path: Path) -> None:
    k_curve(asking(readers, limit=6), tmp_path / "out", ks=[0, 1], load=scripted(average))
    with pytest.raises(RunMismatch, match=r"holds a run with other settings \(options\.ks was \[0, 1\], is \[0, 3\]\)"):
        k_curve(asking(readers, limit=6), tmp_path / "out", ks=[0, 3], load=scripted(average))
    with pytest.raises(RunMismatch, match=r"holds a run with other settings \(limit was 6, is 7\)"):
        k_curve(asking(readers, limit=7), tmp_path / "out", ks=[0, 1], load=scripted(average))


@pytest.mark.parametrize(
    ("other", "named"),
    [
        ({"settings": JudgeSettings(temperature=0, max_new_tokens=8)}, r"settings\.temperature was 0\.8, is 0"),
        ({"settings": JudgeSettings(max_new_tokens=9)}, r"settings\.max_new_tokens was 8, is 9"),
        ({"settings": JudgeSettings(max_new_tokens=8, seed=1)}, r"settings\.seed was 0, is 1"),
        ({"judge": "another"}, 'judge was "script", is "another"'),
        ({"fold": 1}, "fold was null, is 1"),
        ({"split": "train"}, 'split was "valid", is "train"'),
        ({"question": "pointwise_score"}, 'question was null, is "pointwise_score"'),
        ({"dtype": "bfloat16"}, 'dtype was "float32", is "bfloat16"'),
        ({"context": 512}, "context was null, is 512"),
        ({"tokenizer": "elsewhere"}, 'tokenizer was null, is "elsewhere"'),
        ({"resamples": 300}, "resamples was 200, is 300"),
    ],
    ids=lambda given: "-".join(given) if isinstance(given, dict) else "",
)
def test_a_study_goes_on_only_as_it_was_begun(readers: Path, tmp_path: Path, other: dict[str, object], named: str) -> None:
    source = Source.open(readers, limit=6)
    for given in (asking(readers), asking(readers)):
        with opened(tmp_path / "out", "a study", given, source=source, options={"k": 1}):
            pass
    with (
        pytest.raises(RunMismatch, match=named),
        opened(tmp_path / "out", "a study", asking(readers, **other), source=source, options={"k": 1}),
    ):
        pass
    with (
        pytest.raises(RunMismatch, match="data_digest was"),
        opened(tmp_path / "out", "a study", asking(readers), source=replace(source, digest="other"), options={"k": 1}),
    ):
        pass
    with (
        pytest.raises(
            RunMismatch, match="holds a run of perse study a study, not of perse study another; choose another folder"
        ),
        opened(tmp_path / "out", "another", asking(readers), source=source, options={"k": 1}),
    ):
        pass


def test_a_study_is_read_back_as_it_was_written(readers: Path, tmp_path: Path) -> None:
    result = k_curve(asking(readers, limit=6), tmp_path / "out", ks=[0, 1], load=scripted(average))
    assert read_study(tmp_path / "out") == result
    assert (tmp_path / "out" / "table.md").read_text() == markdown(result)
    with pytest.raises(BadInput, match=r"holds no finished study"):
        read_study(tmp_path)


def test_what_a_cell_holds_cannot_end_its_row() -> None:
    cells = ("a|b\nc", undefined("few | readers"), None)
    result = Result(
        name="s", asks="?", answer="!", plot="bars", x_label="x", points=(),
        tables=(Table(title="t", header=("one", "two", "three"), rows=(cells,)),),
    )  # fmt: skip
    assert "| a\\|b c | undefined (few \\| readers) | - |" in markdown(result)
    assert isinstance(cells[1], Estimate)


@pytest.mark.parametrize(
    ("words", "name"), [("Character Development", "character-development"), ("a/../b", "a-..-b"), ("?", "unnamed")]
)
def test_a_folder_name_has_no_slashes(words: str, name: str) -> None:
    assert path_name_of(words) == name
