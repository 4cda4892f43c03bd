"""Verification: every fact and opinion is asked about once, whatever was killed in between, and read back as outcomes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import Reworded
from kgds_builders import benchmark, many_samples, sample, write_benchmark_file
from kills import signalled

from perse.engines.base import Failure
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.judging.judge import Judge
from perse.kgds.asking.opinion_errors import detect
from perse.kgds.asking.verify import FactMode, verify
from perse.kgds.benchmark import Benchmark
from perse.kgds.folder import ERRORS, JUDGEMENTS, Summary, read_summaries
from perse.kgds.loading import unverified
from perse.kgds.outcomes import ErrorType
from perse.kgds.run_outcomes import read_outcomes
from perse.kgds.scoring.metrics import results
from perse.rendering.prompt import TextRenderer

LIBRARY = "The library of Harlow opens on Sundays from May."
GLAD = "Person1 thinks that the Sunday opening was overdue."

TRUE = {"The library of Harlow will open on Sundays.", "The Sunday opening begins in May."}
OVERDUE = "Person1 thinks that the Sunday opening of the library was overdue."


def says(message: str) -> str:
    """Yes to what stands above and no to everything else, in single questions and in lists."""
    if "[Statements]" in message:
        asked = [line.split(". ", 1) for line in message.split("[Statements]\n")[1].splitlines()]
        return "\n".join(f"{number}: {'yes' if claim in TRUE else 'no'}" for number, claim in asked)
    if "[Type] 1" in message:
        return "[Type] 3"
    claim = message.rpartition("] ")[2]
    return f"[Answer] {'yes' if claim in TRUE | {OVERDUE} else 'no'}"


class Asked:
    """A judge of words that notes what it is asked."""

    def __init__(self, reply: Callable[[str], Failure | str] = says, *, name: str = "scripted") -> None:
        self.messages: list[str] = []

        def note(message: str, seed: int) -> Failure | str:
            self.messages.append(message)
            return reply(message)

        self.judge = Judge(ScriptedEngine(note, batch=2, name=name), TextRenderer(), name=name)


def summary(number: int, pattern: str = "abs-aos", **fields: Any) -> dict[str, Any]:
    own = {"background": LIBRARY} if pattern == "abs-aos" else {"paragraphs": [1]}
    return {"sample": number, "pattern": pattern, "paradigm": "structured", "model": "m", "opinions": GLAD, **own, **fields}


def run_folder(folder: Path, *rows: dict[str, Any]) -> Path:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "summaries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def verified(
    judge: Judge, run: Path, *, of: Benchmark | None = None, facts: FactMode = "single", name: str = "verified"
) -> Path:
    return verify(judge, of or benchmark(), run, name=name, facts=facts)


def ids(folder: Path) -> list[str]:
    return [json.loads(line)["id"] for line in (folder / JUDGEMENTS).read_text().splitlines()]


@pytest.mark.parametrize("facts", ["single", "paragraph"])
def test_facts_and_opinions_of_a_summary_become_what_it_covers(tmp_path: Path, facts: FactMode) -> None:
    run = run_folder(tmp_path, summary(1), summary(1, "ebs-aos"))
    verified(Asked().judge, run, facts=facts)
    ebs, abs_ = read_outcomes(run, benchmark())
    # types 1 1 2 | 1 1 3 | 0 0 | 0 4: the first two facts are those that the scripted judge finds
    assert abs_.samples[1].facts == (True, True, *(False,) * 8) and abs_.samples[1].cited is None
    assert abs_.samples[1].opinions == ebs.samples[1].opinions == (True, False, False)
    assert ebs.samples[1].facts is None and ebs.samples[1].cited == {1}
    assert abs_.samples[1].unanswered == 0 and (abs_.model, abs_.pattern, abs_.paradigm) == ("m", "abs-aos", "structured")


def test_a_list_asks_once_a_paragraph_and_single_questions_once_a_fact(tmp_path: Path) -> None:
    for facts, number in (("single", 10 + 3), ("paragraph", 4 + 3)):
        asked = Asked()
        run = run_folder(tmp_path, summary(1))
        verified(asked.judge, run, facts=facts, name=facts)  # type: ignore[arg-type]
        assert len(asked.messages) == number
    assert sorted(ids(tmp_path / "run" / "single")) == sorted(ids(tmp_path / "run" / "paragraph"))


def test_the_annotators_marks_are_not_shown_to_the_verifier_but_to_whoever_names_the_error(tmp_path: Path) -> None:
    asked = Asked()
    run = run_folder(tmp_path, summary(1))
    verified(asked.judge, run)
    assert not any("**" in message for message in asked.messages)
    before = len(asked.messages)
    detect(asked.judge, benchmark(), run, name="verified")
    named = asked.messages[before:]
    assert len(named) == 2 and any("**Mara Lind**" in message for message in named)


def test_a_summary_that_failed_is_asked_nothing_about_and_covers_nothing(tmp_path: Path) -> None:
    asked = Asked()
    failed = {
        "sample": 1,
        "pattern": "abs-aos",
        "paradigm": "structured",
        "model": "m",
        "status": "bad_json",
        "error": "no JSON",
    }
    run = run_folder(tmp_path, failed, summary(2))
    verified(asked.judge, run)
    [found] = read_outcomes(run, benchmark())
    assert found.samples[1].failed == "no JSON" and found.samples[1].opinions == (False,) * 3
    assert found.samples[1].facts == (False,) * 10 and found.samples[2].failed is None
    assert len(asked.messages) == 3 + 2  # sample 2 alone


def test_the_same_command_again_asks_nothing(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1), summary(2))
    first, again = Asked(), Asked()
    verified(first.judge, run)
    verified(again.judge, run)
    assert first.messages and not again.messages


def test_summaries_that_came_later_are_verified_by_the_same_command(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    run_folder(tmp_path, summary(1), summary(2))
    more = Asked()
    verified(more.judge, run)
    assert len(more.messages) == 3 + 2
    assert set(read_outcomes(run, benchmark())[0].samples) == {1, 2}


def test_what_the_engine_failed_at_is_asked_again_and_the_later_answer_counts(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    broken = Asked(lambda message: Failure("a bad moment") if "overdue" in message.rpartition("] ")[2] else says(message))
    verified(broken.judge, run)
    assert read_outcomes(run, benchmark())[0].samples[1].unanswered == 1
    healed = Asked()
    verified(healed.judge, run)
    outcome = read_outcomes(run, benchmark())[0].samples[1]
    assert len(healed.messages) == 1 and outcome.unanswered == 0 and outcome.opinions == (True, False, False)


def test_an_answer_that_cannot_be_read_covers_nothing_and_is_counted(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    answered = ("overdue.", "begins in May.")
    verified(Asked(lambda message: says(message) if message.endswith(answered) else "Hard to say.").judge, run)
    outcome = read_outcomes(run, benchmark())[0].samples[1]
    assert outcome.unanswered == 11 and outcome.opinions == (True, False, False)
    assert outcome.facts == (False, True, *(False,) * 8)
    asked = Asked()
    detect(asked.judge, benchmark(), run, name="verified")
    assert not asked.messages  # whether they are covered is not known


NO_FACTS, NO_OPINIONS = "none of 10 questions about facts", "none of 3 questions about opinions"


@pytest.mark.parametrize(
    ("answered", "facts", "opinions", "told"),
    [
        ("no such claim", None, None, (NO_FACTS, NO_OPINIONS)),  # and not 0 of 10, 0 of 3
        ("overdue.", None, (True, False, False), (NO_FACTS,)),
        ("begins in May.", (False, True, *(False,) * 8), None, (NO_OPINIONS,)),
    ],
)
def test_of_facts_or_opinions_about_which_no_question_was_answered_nothing_is_known(
    tmp_path: Path, answered: str, facts: tuple[bool, ...] | None, opinions: tuple[bool, ...] | None, told: tuple[str, ...]
) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked(lambda message: says(message) if message.endswith(answered) else "Hard to say.").judge, run)
    [outcomes] = read_outcomes(run, benchmark())
    assert (outcomes.samples[1].facts, outcomes.samples[1].opinions) == (facts, opinions)
    assert outcomes.notes == tuple(f"the judge answered {one}" for one in told)
    assert not unverified([run], [outcomes])  # who was asked need not be asked to be asked


def test_errors_are_asked_of_the_opinions_that_were_not_found(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    assert read_outcomes(run, benchmark())[0].samples[1].errors is None
    asked = Asked()
    folder = detect(asked.judge, benchmark(), run, name="verified")
    assert folder == run / "verified" / ERRORS
    assert ids(folder) == ["abs-aos/structured/001/opinion/2", "abs-aos/structured/001/opinion/3"]
    assert read_outcomes(run, benchmark())[0].samples[1].errors == (ErrorType.IRU, ErrorType.IRU)
    again = Asked()
    detect(again.judge, benchmark(), run, name="verified")
    assert not again.messages


def test_an_opinion_that_is_left_out_is_asked_for_as_iru_and_not_as_ofi(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    asked = Asked()
    detect(asked.judge, benchmark(), run, name="verified")
    types = {line[:6]: line for line in asked.messages[0].splitlines() if line.startswith("Type ")}
    assert "does not have the opinion at all" in types["Type 3"] and "not have" not in types["Type 5"]
    assert [kind for kind, line in types.items() if "at all" in line] == ["Type 3"]


def test_errors_without_a_verification_say_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="run `perse kgds verify` first"):
        detect(Asked().judge, benchmark(), run_folder(tmp_path, summary(1)), name="verified")


def test_another_judge_or_another_way_of_asking_is_refused_under_the_same_name(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    with pytest.raises(RunMismatch, match="judge.script"):
        verified(Asked(name="other").judge, run)
    with pytest.raises(RunMismatch, match='facts was "single", is "paragraph"'):
        verified(Asked().judge, run, facts="paragraph")
    verified(Asked(name="other").judge, run, name="other")


def test_other_words_of_the_question_are_another_verification(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    detect(Asked().judge, benchmark(), run, name="verified")
    reworded = Judge(Asked().judge.engine, Reworded(), name="scripted")
    with pytest.raises(RunMismatch, match=r"prompts_sha256\.\S+ was"):
        verified(reworded, run)
    with pytest.raises(RunMismatch, match=r"prompts_sha256\.\S+ was"):
        detect(reworded, benchmark(), run, name="verified")


def test_a_summary_that_changed_since_it_was_verified_is_refused_by_name(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1), summary(2))
    verified(Asked().judge, run)
    run_folder(tmp_path, summary(1), summary(2, opinions="Nobody thinks anything."))
    for use in (
        lambda: verified(Asked().judge, run),
        lambda: read_outcomes(run, benchmark()),
        lambda: detect(Asked().judge, benchmark(), run, name="verified"),
    ):
        with pytest.raises(BadInput, match="abs-aos structured summary of sample 2 has changed"):
            use()


def test_one_fact_too_few_is_named(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    path = verified(Asked().judge, run) / JUDGEMENTS
    path.write_text("".join(line for line in path.read_text().splitlines(keepends=True) if "/fact/3/2" not in line))
    with pytest.raises(BadInput, match="fact 2 of paragraph 3 of sample 1 \\(abs-aos structured\\)"):
        read_outcomes(run, benchmark())


def test_what_was_asked_about_is_written_again_only_where_more_is_asked(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    file = verified(Asked().judge, run) / "asked.json"
    noted = json.dumps(json.loads(file.read_text()) | {"a person's note": "x"})
    file.write_text(noted)
    verified(Asked().judge, run)
    assert file.read_text() == noted


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("asked.json", "{"),
        ("asked.json", "[]"),
        ("asked.json", '{"abs-aos/structured/001": 1}'),
        ("asked.json", '{"abs-aos/structured/001": ["a"]}'),
        ("manifest.json", "{"),
        ("manifest.json", "[1]"),
        ("manifest.json", '{"run": 7}'),
        ("manifest.json", '{"run": {"kind": "kgds-verify", "judge": []}}'),
        ("manifest.json", '{"run": {"kind": "kgds-verify", "judge": {"model": ["a"]}}}'),
        ("manifest.json", '{"run": {"kind": "kgds-verify", "judge": {"model": "a", "adapter": 7}}}'),
        ("manifest.json", '{"run": {"benchmark": {"a": 1}}}'),
    ],
)
def test_a_damaged_file_of_a_verification_is_one_sentence_that_names_it(tmp_path: Path, name: str, damage: str) -> None:
    run = run_folder(tmp_path, summary(1))
    folder = verified(Asked().judge, run)
    (folder / name).write_text(damage)
    with pytest.raises(BadInput) as refused:
        read_outcomes(run, benchmark())
    assert str(folder) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("folder", "label"), [("verified", "maybe"), ("verified", "Yes"), ("verified/errors", "7")])
def test_an_unknown_label_of_a_verification_is_refused_and_not_taken_for_no(tmp_path: Path, folder: str, label: str) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    detect(Asked().judge, benchmark(), run, name="verified")
    path = run / folder / JUDGEMENTS
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**row, "label": label, "distribution": None}) + "\n" for row in rows))
    with pytest.raises(BadInput, match=f'{path}: the answer .* is "{label}", expected one of'):
        read_outcomes(run, benchmark())


def test_without_a_verification_only_what_was_extracted_is_known(tmp_path: Path) -> None:
    [ebs, abs_] = read_outcomes(run_folder(tmp_path, summary(1), summary(1, "ebs-aos")), benchmark())
    assert ebs.samples[1].cited == {1} and ebs.samples[1].opinions is None
    assert abs_.samples[1].facts is None and abs_.samples[1].opinions is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([summary(1), summary(1)], "line 2: sample 1 has a second abs-aos structured summary"),
        ([{**summary(1), "pattern": "both"}], "line 1: field 'pattern'"),
        ([summary(1, background=None)], "line 1: a summary under abs-aos has 'background' and 'opinions'"),
        ([summary(1, opinions="")], "'background' and 'opinions'"),
        ([summary(1, opinions=" \n")], "'background' and 'opinions'"),
        ([], "is empty"),
    ],
)
def test_summaries_that_are_none_are_refused_with_their_line(tmp_path: Path, rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        read_summaries(run_folder(tmp_path, *rows))


def test_a_summary_of_a_sample_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(3))
    for use in (lambda: verified(Asked().judge, run), lambda: read_outcomes(run, benchmark())):
        with pytest.raises(BadInput, match="sample 3"):
            use()


def test_summaries_of_two_models_in_one_folder_are_refused(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1), summary(2, model="n"))
    with pytest.raises(BadInput, match="m and n; give each model a folder"):
        read_outcomes(run, benchmark())


def test_places_sort_by_sample() -> None:
    def place(number: int) -> str:
        return Summary(sample=number, pattern="ebs-aos", paradigm="structured", model="m").place

    assert sorted([place(10), place(9), place(100)]) == [place(9), place(10), place(100)]


@pytest.mark.integration
@pytest.mark.numeric
def test_a_verification_that_is_killed_goes_on_and_asks_nothing_twice(tmp_path: Path, tiny_model_folder: Path) -> None:
    """kill -9 on the real command; then every question has one answer, and what was kept is as it was."""
    path = write_benchmark_file(tmp_path, many_samples(30))
    run = run_folder(tmp_path, *(summary(number) for number in range(1, 31)))
    wanted = 15 * (10 + 3) + 15 * (3 + 2)
    arguments = ["kgds", "verify", str(path), str(run), "--judge", str(tiny_model_folder)]
    log = run / "verified" / JUDGEMENTS
    assert signalled(signal.SIGKILL, log, 32, *arguments).returncode == -signal.SIGKILL
    kept = log.read_text().splitlines(keepends=True)
    command = [sys.executable, "-m", "perse", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, check=False)
    assert done.returncode == 0, done.stderr
    assert Counter(ids(run / "verified")).most_common(1)[0][1] == 1 and len(ids(run / "verified")) == wanted
    whole = [line for line in kept if line.endswith("\n")]
    assert 32 <= len(whole) < wanted, "it was not killed in the middle"
    assert log.read_text().startswith("".join(whole))


def test_a_list_that_was_cut_in_the_middle_has_one_answer_a_fact(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    path = verified(Asked().judge, run, facts="paragraph") / JUDGEMENTS
    whole = path.read_text().splitlines(keepends=True)
    cut = next(n for n, line in enumerate(whole) if "/fact/3/2" in line)
    path.write_text("".join(whole[:cut]))
    again = Asked()
    verified(again.judge, run, facts="paragraph")
    assert Counter(ids(run / "verified")).most_common(1)[0][1] == 1 and len(ids(run / "verified")) == 13
    assert len(again.messages) < 7


def test_a_run_is_read_with_the_benchmark_that_it_was_made_from(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    verified(Asked().judge, run)
    other = Benchmark(Path("other.json"), benchmark().samples, "another digest")
    for use in (lambda: read_outcomes(run, other), lambda: detect(Asked().judge, other, run, name="verified")):
        with pytest.raises(BadInput, match="made from another benchmark than other.json"):
            use()
    with pytest.raises(RunMismatch, match="benchmark"):
        verified(Asked().judge, run, of=other)


def test_errors_of_a_benchmark_without_the_sample_are_refused_by_name(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1), summary(2))
    verified(Asked().judge, run)
    with pytest.raises(BadInput, match="sample 2"):
        detect(Asked().judge, benchmark().first(1), run, name="verified")


def test_who_verified_is_told_and_told_apart(tmp_path: Path) -> None:
    one = run_folder(tmp_path, summary(1))
    verified(Asked().judge, one)
    (tmp_path / "b").mkdir()
    other = run_folder(tmp_path / "b", summary(1, model="n"))
    verified(Asked(name="strict").judge, other, facts="paragraph")
    outcomes = [*read_outcomes(one, benchmark()), *read_outcomes(other, benchmark())]
    assert [(found.verified_by, found.facts_asked) for found in outcomes] == [
        ("scripted", "one by one"),
        ("strict", "in lists"),
    ]
    [note] = [note for note in results(benchmark(), outcomes).notes if "cannot be compared" in note]
    assert "scripted (facts one by one) verified m; strict (facts in lists) verified n" in note
    alone = results(benchmark(), outcomes[:1])
    assert "verified by scripted (facts one by one)" in alone.notes and alone.scores[0].verified_by == outcomes[0].verified_by


def test_every_type_of_fact_is_asked_about(tmp_path: Path) -> None:
    run = run_folder(tmp_path, summary(1))
    folder = verified(Asked().judge, run)
    asked = {tuple(map(int, one.split("/")[-2:])) for one in ids(folder) if "/fact/" in one}
    assert asked == {(fact.paragraph, fact.at) for fact in sample().facts}


@pytest.mark.parametrize("name", ["../../x", "../run", ".", "", "/tmp/x", "feedback", "Manifest.json", "summaries.jsonl"])
def test_a_verifications_name_stays_in_its_run_and_is_none_of_the_runs_own(tmp_path: Path, name: str) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    run = run_folder(tmp_path / "a" / "b", summary(1))
    before = sorted(tmp_path.rglob("*"))
    asked = Asked()
    attempts: list[Callable[[], object]] = [
        lambda: verified(asked.judge, run, name=name),
        lambda: detect(asked.judge, benchmark(), run, name=name),
        lambda: read_outcomes(run, benchmark(), name=name),
    ]
    for work in attempts:
        with pytest.raises(BadInput, match="--name is "):
            work()
    assert asked.messages == [] and sorted(tmp_path.rglob("*")) == before
