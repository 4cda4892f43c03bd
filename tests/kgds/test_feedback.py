"""`perse kgds feedback`: only what differs is asked about, in both orders, and what was not answered is neither won nor lost."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from kgds_builders import benchmark, write_benchmark_file
from typer.testing import CliRunner, Result

from perse.commands.kgds.app import app
from perse.engines.base import Failure, Reply
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, RunMismatch
from perse.judgement import Status
from perse.judging.judge import Judge
from perse.kgds.asking.feedback import difference, feedback
from perse.kgds.asking.generate import prompt
from perse.kgds.benchmark import read_benchmark
from perse.kgds.folder import Summary
from perse.kgds.loading import load_feedback
from perse.kgds.scoring.feedback import mean_win_rates
from perse.questions.feedback import SecondTurn
from perse.records import Pair, PairwiseExample
from perse.rendering.prompt import Renderer, TextRenderer
from perse.results.result import Result as Numbers
from perse.writing.writer import Writer

Script = Callable[[str, int], Reply | Failure | str]

SELECTED = re.compile(r"\[Selection ([AB])\] paragraphs? (.*)")


def summary(number: int, paragraphs: Sequence[int] | None, **fields: Any) -> Summary:
    given = {"pattern": "ebs-aos", "paradigm": "structured", "model": "M", "paragraphs": paragraphs, "opinions": "They differ."}
    return Summary.model_validate({"sample": number, **given, **fields})


def write_run(folder: Path, summaries: Sequence[Summary]) -> Path:
    run = folder / "run"
    run.mkdir(exist_ok=True)
    (run / "summaries.jsonl").write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in summaries))
    return run


def six(folder: Path) -> Path:
    """Of 6 samples, whose experts say 1 3 | 2 | 1 3 | 2 | 1 3 | 2: two differ, two are
    the same but for order and a paragraph 9, one is empty and one failed."""
    failed = {"status": "bad_json", "opinions": None, "error": "no JSON"}
    return write_run(
        folder,
        [
            summary(1, [1, 2]),
            summary(2, [1]),
            summary(3, [3, 1]),
            summary(4, [2, 9]),
            summary(5, []),
            summary(6, None, **failed),
            summary(1, [4], paradigm="reflection"),
        ],
    )


def a_judge(script: Script, *, name: str = "scripted") -> Judge:
    return Judge(ScriptedEngine(script, name=name), TextRenderer(), name=name)


def preferring(selection: str) -> Script:
    """Whoever likes these paragraphs wherever they stand, else the first."""

    def reply(message: str, seed: int) -> str:
        return f"Selection {next((place for place, named in SELECTED.findall(message) if named == selection), 'A')}"

    return reply


def test_selections_are_told_apart_by_what_exists_of_them() -> None:
    samples = benchmark(6).samples
    found = [difference(samples[1], summary(1, cited)) for cited in ([1, 3], [3, 1, 1], [1, 3, 7], [1], [1, 2, 3], [], [7])]
    assert found == ["same", "same", "same", "differs", "differs", "empty", "empty"]
    assert difference(samples[1], summary(1, [1, 3], status="refused")) == "failed"


def test_a_judge_in_words_is_asked_in_both_orders_about_what_differs(tmp_path: Path) -> None:
    asked: list[str] = []

    def listening(message: str, seed: int) -> str:
        asked.append(message)
        return preferring("1, 3")(message, seed)

    result = feedback(a_judge(listening), benchmark(6), six(tmp_path))
    assert [SELECTED.findall(message) for message in asked] == [
        [("A", "1, 3"), ("B", "1, 2")],
        [("A", "1, 2"), ("B", "1, 3")],
        [("A", "2"), ("B", "1")],
        [("A", "1"), ("B", "2")],
    ]
    assert "4. On weekdays the doors open at nine." in asked[0] and "Person1: At last!" in asked[0]
    assert result.selections == {"differs": 2, "same": 2, "empty": 1, "failed": 1}
    # Sample 1: the experts' in both orders, 1. Sample 2: whatever stands first, a draw, 0.5. Mean 75%, order gaps 0 and 1.
    assert [one.won for one in result.samples] == [1, 0.5]
    assert (result.share.value, result.share.items, result.order_gap) == (75, 2, 0.5)
    assert result.share.interval.reason == "undefined (few samples)"
    assert result.probability.value is None, "words have no probability"
    assert (result.model, result.judge, result.answered) == ("M", "scripted", 2)


def test_what_was_not_answered_is_neither_won_nor_lost(tmp_path: Path) -> None:
    def torn(message: str, seed: int) -> Failure | str:
        return Failure("lost") if "ferry" in message else preferring("1, 2")(message, seed)

    run = six(tmp_path)
    result = feedback(a_judge(torn), benchmark(6), run)
    assert [(one.status, one.won) for one in result.samples] == [(Status.OK, 0), (Status.ENGINE_ERROR, None)]
    assert (result.answered, result.share.value, result.share.items) == (1, 0, 1)
    healed = feedback(a_judge(preferring("2")), benchmark(6), run)
    assert [one.won for one in healed.samples] == [0, 1], "what the engine failed at is asked again, and nothing else"


def test_the_same_command_again_asks_nothing_and_gives_the_same_bytes(tmp_path: Path) -> None:
    asked: list[str] = []

    def listening(message: str, seed: int) -> str:
        asked.append(message)
        return "Selection B"

    run = six(tmp_path)
    first = feedback(a_judge(listening), benchmark(6), run)
    numbers = (run / "feedback" / "feedback.json").read_bytes()
    assert feedback(a_judge(listening), benchmark(6), run) == first and len(asked) == 4
    assert (run / "feedback" / "feedback.json").read_bytes() == numbers

    more = [summary(1, [1, 2]), summary(2, [1]), summary(3, [2])]
    feedback(a_judge(listening), benchmark(6), write_run(tmp_path, more))
    assert len(asked) == 6, "a run may grow"
    changed = [summary(1, [4]), *more[1:]]
    result = feedback(a_judge(listening), benchmark(6), write_run(tmp_path, changed))
    assert len(asked) == 8 and result.samples[0].own == (4,), "an answer about another selection is not taken for this one's"
    with pytest.raises(RunMismatch):
        feedback(a_judge(listening, name="another"), benchmark(6), run)
    with pytest.raises(RunMismatch, match="seed was 0, is 1"):
        feedback(a_judge(listening), benchmark(6), run, seed=1)


def test_another_wording_of_the_question_is_another_feedback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = six(tmp_path)
    feedback(a_judge(preferring("1, 3")), benchmark(6), run)
    monkeypatch.setattr("perse.kgds.asking.feedback.source", lambda name: "Which selection is better?")
    with pytest.raises(RunMismatch, match="prompts was"):
        feedback(a_judge(preferring("1, 3")), benchmark(6), run)


def test_a_run_that_is_right_everywhere_has_no_win_rate(tmp_path: Path) -> None:
    result = feedback(a_judge(preferring("")), benchmark(), write_run(tmp_path, [summary(1, [1, 3]), summary(2, [2])]))
    assert (result.answered, result.share.value, result.order_gap) == (0, None, None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"paradigm": "reflection"}, "no structured ebs-aos summaries"),
        ({"sample": 7}, "a summary of sample 7; .* has 2 samples"),
    ],
)
def test_a_run_that_does_not_fit_is_refused(tmp_path: Path, fields: dict[str, Any], said: str) -> None:
    run = write_run(tmp_path, [summary(1, [1]).model_copy(update=fields)])
    with pytest.raises(BadInput, match=said):
        feedback(a_judge(preferring("")), benchmark(), run)
    assert not (run / "feedback").exists()


def test_the_second_turn_goes_on_in_the_conversation_in_which_the_model_chose(tmp_path: Path) -> None:
    asked: list[str] = []

    def listening(message: str, seed: int) -> str:
        asked.append(message)
        return preferring("1, 3")(message, seed)

    run = six(tmp_path)
    result = feedback(a_judge(listening, name="M"), benchmark(6), run, second_turn=True)
    assert len(asked) == 4 and all("Extractive_Background_Summary" in message for message in asked)
    first, answer, question = asked[0].rsplit("\n\n", 2)  # the scripted engine joins turns by an empty line
    assert first == prompt(Writer(a_judge(listening)), benchmark(6).samples[1], "ebs-aos")
    assert json.loads(answer) == {
        "Extractive_Background_Summary": ["<Paragraph_1>", "<Paragraph_2>"],
        "Abstractive_Opinion_Summary": "They differ.",
    }
    assert SELECTED.findall(question) == [("A", "1, 3"), ("B", "1, 2")] and "At last!" not in question
    assert SELECTED.findall(asked[1]) == [("A", "1, 2"), ("B", "1, 3")], "in both orders"
    assert result.second_turn and [one.won for one in result.samples] == [1, 0.5]


def test_both_ways_of_asking_stand_side_by_side_and_each_continues(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = six(tmp_path)
    by_itself = feedback(a_judge(preferring("1, 3"), name="M"), benchmark(6), run)
    second = feedback(a_judge(preferring("2"), name="M"), benchmark(6), run, second_turn=True)
    assert not caplog.text, "the model itself is asked"
    assert (by_itself.share.value, second.share.value) == (75, 75) and by_itself.samples != second.samples
    found = load_feedback(benchmark(6), [run])
    assert [(one.second_turn, one.share.value) for one in found] == [(True, 75), (False, 75)]

    def never(message: str, seed: int) -> str:
        raise AssertionError(message)

    assert feedback(a_judge(never, name="M"), benchmark(6), run, second_turn=True) == second


def test_a_judge_in_anothers_place_in_the_conversation_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    feedback(a_judge(preferring("2"), name="N"), benchmark(6), six(tmp_path), second_turn=True)
    assert "the selections are by M, and N is asked as if they were its own" in caplog.text


def test_the_mean_win_rate_weighs_each_model_the_same(tmp_path: Path) -> None:
    def run(name: str, selections: dict[int, list[int]]) -> Path:
        (tmp_path / name).mkdir()
        return write_run(tmp_path / name, [summary(number, own, model=name) for number, own in selections.items()])

    # Of M both selections lose, of N one of four wins.
    runs = [run("M", {1: [1, 2], 2: [1]}), run("N", {1: [1, 2], 2: [1], 3: [2, 3], 4: [1]})]
    wins = ("1, 3", "2")

    def experts(message: str, seed: int) -> str:
        places = {named: place for place, named in SELECTED.findall(message)}
        return f"Selection {places.get('2, 3') or next(places[named] for named in wins if named in places)}"

    for folder in runs:
        feedback(a_judge(experts), benchmark(6), folder)
    found = load_feedback(benchmark(6), runs)
    assert [one.share.value for one in found] == [100, 75]
    [mean] = mean_win_rates(found)
    assert (mean.models, mean.second_turn, mean.share.value, mean.share.items) == (2, False, 87.5, 4)
    assert mean_win_rates(found[:1]) == ()
    assert [one.model for one in load_feedback(benchmark(6), runs, models=["N"])] == ["N"]


def test_a_win_rate_of_every_sample_has_an_exact_interval(tmp_path: Path) -> None:
    samples = 48
    run = write_run(tmp_path, [summary(number, [2, 3]) for number in range(1, samples + 1)])
    found = feedback(a_judge(preferring("1, 3")), benchmark(samples), run)
    known = found.share.items
    # Clopper and Pearson: of n samples that are all won, at least the n-th root of 2.5%.
    assert (found.share.value, found.share.interval.high) == (100, 100)
    assert found.share.interval.low == pytest.approx(100 * 0.025 ** (1 / known), abs=0.005)
    [mean] = mean_win_rates([found, found.model_copy(update={"model": "twin"})])
    low = mean.share.interval.low
    assert low is not None and low < 100 * 0.025 ** (1 / (2 * known)), "answers about one sample are not independent"


@pytest.mark.parametrize("damage", ["{", "[]", "{}", '{"benchmark": 1}'])
def test_a_damaged_feedback_file_is_one_sentence_that_names_it(tmp_path: Path, damage: str) -> None:
    run = six(tmp_path)
    feedback(a_judge(preferring("1, 3")), benchmark(6), run)
    path = run / "feedback" / "feedback.json"
    path.write_text(damage)
    with pytest.raises(BadInput, match=f"{path}.* again$"):
        load_feedback(benchmark(6), [run])


@pytest.mark.slow
def test_an_exact_judge_in_the_second_turn_reads_the_conversations_own_ids(tmp_path: Path, embedded: Path) -> None:
    judge = Judge.load(str(embedded), dtype="float32")
    run = write_run(tmp_path, [summary(1, [2])])
    result = feedback(judge, benchmark(), run, second_turn=True)
    [line] = [json.loads(text) for text in (run / "feedback-second-turn" / "judgements.jsonl").read_text().splitlines()]
    assert line["question"] == "feedback_second_turn" and result.samples[0].probability == line["distribution"]["A"]
    turns = ("Summarize.", '{"a": 1}')
    question = SecondTurn({"x": turns})
    pair = Pair(text_a="paragraph 1", text_b="paragraph 2", premise="p")
    example = PairwiseExample(id="x", reviewer_id="x", aspect="background", profile=(), query=pair)
    assert isinstance(judge.renderer, Renderer)
    rendered = judge.renderer.render(question, example)
    asked = question.asks(example, ())
    assert [one.ids for one in rendered] == [judge.renderer.conversation((*turns, ask.text)) for ask in asked]


@pytest.mark.slow
def test_an_exact_judge_gives_the_mean_probability_of_both_orders(tmp_path: Path, embedded: Path) -> None:
    judge = Judge.load(str(embedded), dtype="float32")
    run = write_run(tmp_path, [summary(1, [2]), summary(2, [1])])
    result = feedback(judge, benchmark(), run)
    lines = [json.loads(line) for line in (run / "feedback" / "judgements.jsonl").read_text().splitlines()]
    shares = [line["distribution"]["A"] for line in lines]
    assert [line["status"] for line in lines] == ["ok", "ok"] and all(line["order_gap"] is not None for line in lines)
    assert [one.probability for one in result.samples] == shares
    assert result.probability.value == pytest.approx(100 * sum(shares) / 2, abs=0.005)
    assert result.share.value == 50 * sum(share > 0.5 for share in shares)
    assert result.order_gap == pytest.approx(sum(line["order_gap"] for line in lines) / 2, abs=1e-4)


def called(*given: object) -> Result:
    """`perse kgds ...`."""
    return CliRunner().invoke(app, [str(one) for one in given], catch_exceptions=False)


def test_the_command_prints_json_or_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Judge, "load", classmethod(lambda cls, name, **settings: a_judge(preferring("1, 3"))))
    run = write_run(tmp_path, [summary(1, [1, 2]), summary(2, [2])])
    given = ["feedback", write_benchmark_file(tmp_path), run, "--judge", "J"]
    words = called(*given)
    assert words.exit_code == 0 and words.stdout == ""
    assert "experts' selection preferred: 100.00% [undefined (one sample)]" in words.stderr
    machine = called(*given, "--json")
    assert json.loads(machine.stdout)["share"]["value"] == 100


def test_the_command_asks_in_the_models_own_conversation_where_a_second_turn_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def listening(message: str, seed: int) -> str:
        asked.append(message)
        return preferring("1, 3")(message, seed)

    monkeypatch.setattr(Judge, "load", classmethod(lambda cls, name, **settings: a_judge(listening, name="M")))
    run = write_run(tmp_path, [summary(1, [1, 2])])
    done = called("feedback", write_benchmark_file(tmp_path), run, "--judge", "J", "--second-turn", "--json")
    assert json.loads(done.stdout)["second_turn"] is True and not (run / "feedback").exists()
    assert len(asked) == 2 and all("Extractive_Background_Summary" in message for message in asked)


@pytest.mark.slow
def test_what_a_run_keeps_of_its_feedback_stands_in_its_metrics_and_in_its_report(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="figures need the extra 'report'")
    path = write_benchmark_file(tmp_path)
    run = write_run(tmp_path, [summary(1, [1, 2]), summary(2, [1])])
    for way, judge in ((False, "J"), (True, "M")):
        feedback(a_judge(preferring("1, 3"), name=judge), read_benchmark(path), run, second_turn=way)
    printed = called("metrics", path, run, "--json", "--resamples", 100).stdout
    called("report", path, run, "--out", tmp_path / "report", "--resamples", 100)
    # As in words: of sample 1 the experts' in both orders, of sample 2 whatever stands first.
    for told in (printed, (tmp_path / "report" / "results.json").read_text()):
        found = Numbers.model_validate_json(told)
        assert [(one["judge"], one["second_turn"], one["share"]["value"]) for one in found.details["win_rates"]] == [
            ("M", True, 75),
            ("J", False, 75),
        ]
        (table,) = (one for one in found.tables if "Experts' selection" in one.title)
        assert [row[:4] for row in table.rows] == [("M", "M", "second turn", "2 of 2"), ("M", "J", "by itself", "2 of 2")]
    assert "selection of paragraphs preferred to the model&#39;s own" in (tmp_path / "report" / "report.html").read_text()
