"""A quickstart is resumed at the command that was not finished, and touches no folder that is not its own."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import IO

import pytest
from kills import killed_at

from perse.errors import BadInput
from perse.quickstart.journal import NAME, Journal, Ran, opened


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    for name in ("reviews", "texts"):
        (tmp_path / f"{name}.csv").write_text(f"{name}\n1\n")
    return {name: tmp_path / f"{name}.csv" for name in ("reviews", "texts")}


def scripted(journal: Journal, codes: dict[str, int], *, whole: bool = False) -> list[str]:
    """Commands are noted by their first word, or whole, and end with the code of it, 0 by default."""
    typed: list[str] = []

    def run(words: Sequence[str], answer: IO[bytes] | None) -> int:
        typed.append(" ".join(words) if whole else words[0])
        return codes.get(words[0], 0)

    journal.run = run
    return typed


def test_what_is_done_is_not_done_again(files: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "out", files, 10, told.append)
    typed = scripted(journal, {"score": 2})
    journal.once("train", "a b")
    with pytest.raises(
        BadInput, match=r"exit code 2; what is finished is kept in .*out: mend what it says and type the same quickstart"
    ):
        journal.once("score")
    again = opened(tmp_path / "out", files, 10, told.append)
    typed += (later := scripted(again, {}))
    again.once("train", "a b")
    again.once("score")
    assert typed == ["train", "score"] and later == ["score"]
    assert told == ["\n$ perse train 'a b'", "\n$ perse score", "done before: perse train 'a b'", "\n$ perse score"]
    assert [ran.words for ran in again.kept.ran] == [("train", "a b"), ("score",)]


def test_a_folder_of_somebody_else_stays_as_it_is(files: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "notes"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(BadInput, match="is there and holds something else; choose another --out"):
        opened(other, files, 10, print)
    with pytest.raises(BadInput, match="is there and holds something else"):
        opened(other / "mine.txt", files, 10, print)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]


def test_no_link_stands_for_the_journal(files: dict[str, Path], tmp_path: Path) -> None:
    journal = opened(tmp_path / "out", files, 10, lambda _: None)
    (tmp_path / "out" / "quickstart.json").rename(tmp_path / "journal.json")
    (tmp_path / "out" / "quickstart.json").symlink_to(tmp_path / "journal.json")
    with pytest.raises(BadInput, match="link"):
        opened(journal.folder, files, 10, lambda _: None)


def test_a_quickstart_that_was_killed_at_its_first_line_goes_on(files: dict[str, Path], tmp_path: Path) -> None:
    event = 0
    while killed_at(event, lambda: opened(tmp_path / "out", files, 10, lambda _: None), tmp_path / "out"):
        assert opened(tmp_path / "out", files, 10, lambda _: None).kept.minutes == 10
        shutil.rmtree(tmp_path / "out")
        event += 1
    assert event > 3


def test_other_files_and_another_budget_are_another_quickstart(files: dict[str, Path], tmp_path: Path) -> None:
    opened(tmp_path / "out", files, 10, print)
    with pytest.raises(BadInput, match="holds a quickstart within 10 minutes, and 20 are asked for"):
        opened(tmp_path / "out", files, 20, print)
    files["texts"].write_text("texts\n2\n")
    with pytest.raises(BadInput, match="holds a quickstart of other files"):
        opened(tmp_path / "out", files, 10, print)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files": 3}', b"\xff", b'{"files": {}, "minutes": -1}'])
def test_a_damaged_journal_is_a_sentence(files: dict[str, Path], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / NAME).write_bytes(content)
    with pytest.raises(BadInput, match=f"{NAME} is damaged .*; choose another --out"):
        opened(tmp_path / "out", files, 10, print)


def test_a_journal_holds_commands_and_digests_and_nothing_of_the_files(files: dict[str, Path], tmp_path: Path) -> None:
    journal = opened(tmp_path / "out", files, 10, print)
    scripted(journal, {})
    journal.once("score")
    kept = json.loads((tmp_path / "out" / NAME).read_text())
    assert set(kept["files"]) == {"reviews", "texts"} and all(len(digest) == 64 for digest in kept["files"].values())
    assert Ran.model_validate(kept["ran"][0]).shown == "perse score"


def test_the_password_of_an_address_is_not_repeated_on_the_terminal(files: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "out", files, 10, told.append)
    scripted(journal, {})
    for _ in range(2):
        journal.once("plan", "model.path=http://me:hunter2pass@host/m")
    assert len(told) == 2 and "hunter2pass" not in "".join(told) and "***@host/m" in told[0]


def test_what_the_others_can_do_without_may_fail(files: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "out", files, 10, told.append)
    typed = scripted(journal, {"fit": 2})
    journal.once("fit", needed=False)
    journal.once("evaluate")
    assert typed == ["fit", "evaluate"] and "it goes on without: why stands above" in told
    assert [ran.words for ran in journal.kept.ran] == [("evaluate",)]


def test_what_a_killed_quickstart_left_is_made_again_and_nothing_that_lies_there_is_replaced(
    files: dict[str, Path], tmp_path: Path
) -> None:
    """The command may have gone on and ended well, with nobody there to note it; or a person has put something of their own there since."""
    journal = opened(tmp_path / "out", files, 10, lambda _: None)

    def killed(words: Sequence[str], answer: IO[bytes] | None) -> int:
        raise SystemExit  # as if here

    journal.run = killed
    for words, makes, kept in (
        (("data", "pointwise"), "data/manifest.json", "data.kept-1/manifest.json"),
        (("train",), "judge/config.json", "judge/config.json"),  # goes on by itself
        (("fit",), "judge/stacking.json", "judge/stacking.kept-1.json"),
    ):
        with pytest.raises(SystemExit):
            journal.once(*words, makes=makes)
        place = tmp_path / "out" / makes
        place.parent.mkdir(exist_ok=True)
        place.write_text(f"mine, {makes}")
        told: list[str] = []
        journal = opened(tmp_path / "out", files, 10, told.append)
        typed: list[str] = []

        def made(words: Sequence[str], answer: IO[bytes] | None, typed: list[str] = typed, place: Path = place) -> int:
            typed.append(" ".join(words))
            assert words[0] == "train" or not place.exists()
            place.parent.mkdir(exist_ok=True)
            place.touch()
            return 0

        journal.run = made
        journal.once(*words, makes=makes)
        assert typed == [" ".join(words)]
        assert (tmp_path / "out" / kept).read_text() == f"mine, {makes}"
        assert kept == makes or "nobody noted that it was finished: it is kept as " in told[0]
        journal.run = killed


def test_what_was_done_and_is_not_there_any_more_is_done_again(files: dict[str, Path], tmp_path: Path) -> None:
    journal = opened(tmp_path / "out", files, 10, lambda _: None)
    place = tmp_path / "out" / "report.html"
    typed: list[str] = []

    def run(words: Sequence[str], answer: IO[bytes] | None) -> int:
        typed.append(words[0])
        place.write_text("page")
        return 0

    journal.run = run
    for _ in range(2):
        journal.once("report", makes="report.html")
    assert typed == ["report"]
    place.unlink()
    journal.once("report", makes="report.html")
    assert typed == ["report", "report"] and [ran.words for ran in journal.kept.ran] == [("report",)]


def test_what_is_done_again_and_killed_on_the_way_is_not_taken_for_done(files: dict[str, Path], tmp_path: Path) -> None:
    journal = opened(tmp_path / "out", files, 10, lambda _: None)
    place = tmp_path / "out" / "judgements.jsonl"

    def run(words: Sequence[str], answer: IO[bytes] | None) -> int:
        place.write_text("a first line\n")
        return codes.pop(0)

    journal.run, codes = run, [0, 130, 0]
    journal.once("score", makes=place.name)
    place.unlink()
    with pytest.raises(KeyboardInterrupt):
        journal.once("score", makes=place.name)
    journal.once("score", makes=place.name)
    assert codes == []


def test_a_command_that_was_ended_from_within_as_if_it_were_done_is_not_noted_as_done(
    files: dict[str, Path], tmp_path: Path
) -> None:
    """A tracker of training that calls `os._exit(0)`: the next command failed, and training was never gone on with."""
    journal = opened(tmp_path / "out", files, 10, lambda _: None)
    scripted(journal, {})
    with pytest.raises(
        BadInput, match=r"ended as if it were done, and .*model is not there: .* type the same quickstart again"
    ):
        journal.once("train", makes="model")
    assert journal.kept.ran == ()


@pytest.mark.parametrize("code", [2, 130])
@pytest.mark.parametrize("command", ["data", "fit"])
def test_what_a_person_made_by_hand_after_a_command_had_failed_or_was_stopped_is_not_replaced(
    files: dict[str, Path], tmp_path: Path, command: str, code: int
) -> None:
    """The sentence says to go on by hand: the same quickstart must then meet what lies there as somebody's."""
    journal = opened(tmp_path / "out", files, 10, lambda _: None)
    scripted(journal, {command: code})
    with contextlib.suppress(KeyboardInterrupt):
        journal.once(command, needed=False)
    again = opened(tmp_path / "out", files, 10, lambda _: None)
    typed = scripted(again, {}, whole=True)
    again.once(command, needed=False)
    assert typed == [command]


def answering(journal: Journal, codes: list[int], text: bytes) -> None:
    """Each command ends with the next code, and answers the text."""

    def run(words: Sequence[str], answer: IO[bytes] | None) -> int:
        assert answer is not None
        answer.write(text)
        return codes.pop(0)

    journal.run = run


def test_an_answer_goes_to_a_file_of_its_own_and_its_first_paragraph_is_said(files: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "out", files, 10, told.append)
    kept = tmp_path / "out" / "evaluation.txt"
    answering(journal, [2, 0], b"Better, by\nso much.\n\nA table of \xe9\n")
    with pytest.raises(BadInput, match="exit code 2"):
        journal.once("evaluate", into=kept.name)
    assert not kept.exists(), "what a command that failed said of it is no answer"
    journal.once("evaluate", into=kept.name)
    assert told[-1] == f"Better, by so much.\ntables: {kept}" and f"$ perse evaluate > {kept}" in told[-2]
    assert kept.read_text() == "Better, by\nso much.\n\nA table of \ufffd\n", "whatever the terminal's letters are"
    journal.once("evaluate", into=kept.name)
    assert told[-1] == f"done before: perse evaluate > {kept}"
    answering(journal, [0], b"The same with more.\n")
    journal.once("evaluate", "--embedding-model", "X", into=kept.name)
    assert kept.read_text() == "The same with more.\n" and not list(kept.parent.glob("*kept*"))


def test_a_persons_own_file_in_the_place_of_an_answer_and_an_edited_answer_get_another_name(
    files: dict[str, Path], tmp_path: Path
) -> None:
    journal = opened(tmp_path / "out", files, 10, print)
    kept = tmp_path / "out" / "fit.txt"
    for notes in ("notes", "edited"):
        kept.write_text(notes)
        answering(journal, [0], notes.encode() + b": nothing is added.")
        journal.once("fit", notes, into=kept.name, needed=False)
        assert kept.read_text() == f"{notes}: nothing is added."
    assert sorted(path.read_text() for path in kept.parent.glob("fit.kept-*")) == ["edited", "notes"]
    elsewhere = tmp_path / "elsewhere"
    kept.unlink()
    kept.symlink_to(elsewhere)
    answering(journal, [0], b"again")
    journal.once("fit", "again", into=kept.name)
    assert not elsewhere.exists() and not kept.is_symlink(), "nothing is written through a link"


@pytest.mark.parametrize(
    ("code", "outcome"), [(1, BadInput), (-9, BadInput), (-15, KeyboardInterrupt), (143, KeyboardInterrupt)]
)
def test_only_what_a_person_can_mend_is_gone_on_without(
    files: dict[str, Path], tmp_path: Path, code: int, outcome: type[BaseException]
) -> None:
    journal = opened(tmp_path / "out", files, 10, print)
    scripted(journal, {"fit": code})
    with pytest.raises(outcome):
        journal.once("fit", needed=False)


def test_ctrl_c_in_a_command_stops_the_quickstart(files: dict[str, Path], tmp_path: Path) -> None:
    journal = opened(tmp_path / "out", files, 10, print)
    scripted(journal, {"train": 130})
    with pytest.raises(KeyboardInterrupt):
        journal.once("train")
    assert journal.kept.ran == ()


def test_either_of_what_a_step_leaves_is_made_again_where_it_is_gone(files: dict[str, Path], tmp_path: Path) -> None:
    told: list[str] = []
    journal = opened(tmp_path / "out", files, 10, told.append)
    made, kept = tmp_path / "out" / "stacking.json", tmp_path / "out" / "fit.txt"
    runs: list[int] = []

    def run(words: Sequence[str], answer: IO[bytes] | None) -> int:
        assert answer is not None and not made.exists(), "perse fit replaces nothing"
        answer.write(b"Adds.\n")
        made.write_text(str(len(runs)))
        runs.append(0)
        return 0

    journal.run = run
    for _ in range(2):
        journal.once("fit", makes=made.name, into=kept.name)
    assert len(runs) == 1 and kept.read_text() == "Adds.\n"
    kept.unlink()
    journal.once("fit", makes=made.name, into=kept.name)
    assert len(runs) == 2 and kept.read_text() == "Adds.\n" and made.read_text() == "1"
    assert any("fit.txt, which tells of it, is gone: it is kept as " in one for one in told)
    made.unlink()
    journal.once("fit", makes=made.name, into=kept.name)
    assert len(runs) == 3 and made.read_text() == "2"
