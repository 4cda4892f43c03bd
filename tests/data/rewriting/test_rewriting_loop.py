"""Asking until an answer will do: the same whatever the batches, nothing asked twice, a kill costs what was in flight, answers kept."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from places import importing
from rewriting_builders import (
    RETRY,
    flaky,
    judged,
    logged,
    looped,
    stored,
    wait_for,
    writer,
)

from perse.engines.base import Failure, Reply, Sampling
from perse.engines.openai import RequestFailure
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput, EngineLost
from perse.judgement import Tokens
from perse.judging.judge import Judge
from perse.rendering.prompt import TextRenderer
from perse.writing.cache import AnswerCache, answer_key
from perse.writing.loop import Attempt, Bad, Good, Kind, ask_until_good
from perse.writing.writer import Writer, Written

MESSAGES = {f"job {n}": f"message {n}" for n in range(11)}


def test_results_do_not_depend_on_batches_or_order(tmp_path: Path) -> None:
    results = []
    for batch, ids in [(1, list(MESSAGES)), (3, list(MESSAGES)[::-1]), (32, sorted(MESSAGES, key=lambda one: one[::-1]))]:
        with AnswerCache(tmp_path / f"{batch}.sqlite") as cache:
            done = looped(flaky, {one: MESSAGES[one] for one in ids}, cache, batch=batch)
            assert list(done) == ids
            results.append(dict(sorted(done.items())))
    assert results[0] == results[1] == results[2]
    kinds = {outcome.kind for outcome in results[0].values()}
    assert kinds == {Kind.OK, Kind.BAD_JSON}, "the test should see both ends"


def test_one_more_job_changes_no_other(tmp_path: Path) -> None:
    with AnswerCache(tmp_path / "a") as one, AnswerCache(tmp_path / "b") as other:
        few = looped(flaky, MESSAGES, one)
        more = looped(flaky, {"new": "message new"} | MESSAGES, other)
    assert few == {name: outcome for name, outcome in more.items() if name != "new"}


def test_equal_messages_are_asked_once_and_get_one_answer(tmp_path: Path, cache: AnswerCache) -> None:
    done = looped(logged(tmp_path / "log", flaky), {"a": "message", "b": "message"}, cache)
    lines = (tmp_path / "log").read_text().splitlines()
    assert done["a"] == done["b"] and len(lines) == len(set(lines)) == len(done["a"].attempts)


def test_what_was_answered_is_not_asked_again(tmp_path: Path, cache: AnswerCache) -> None:
    script = logged(tmp_path / "log", flaky)
    first = looped(script, MESSAGES, cache)
    asked = (tmp_path / "log").read_text()
    assert looped(script, MESSAGES, cache, batch=1) == first
    assert (tmp_path / "log").read_text() == asked


def test_a_failure_is_not_kept_and_changes_no_result(tmp_path: Path) -> None:
    down = {"message 2", "message 7"}

    def shaky(message: str, seed: int) -> Failure | str:
        if message in down:
            down.remove(message)
            return Failure("connection lost")
        return flaky(message, seed)

    with AnswerCache(tmp_path / "a") as one, AnswerCache(tmp_path / "b") as other:
        calm, shaken = looped(flaky, MESSAGES, one, tries=9), looped(shaky, MESSAGES, other, tries=9)
        again = looped(shaky, MESSAGES, other, tries=9)
    assert {name: outcome.value for name, outcome in calm.items()} == {name: outcome.value for name, outcome in shaken.items()}
    assert shaken["job 2"].attempts == (Attempt(Kind.ENGINE, "connection lost"), *calm["job 2"].attempts)
    assert again == calm


def test_an_engine_that_answers_nothing_at_first_is_lost(cache: AnswerCache) -> None:
    with pytest.raises(EngineLost, match=r"every one of 11 prompts, .* because the plug is out; .* same command continues"):
        looped(lambda message, seed: Failure("the plug is out"), MESSAGES, cache)
    with pytest.raises(BadInput, match="0 tries for each text: expected 1 or more"):
        looped(flaky, MESSAGES, cache, tries=0)


def test_an_engine_that_is_lost_later_leaves_what_it_answered(cache: AnswerCache) -> None:
    answered, again = [], []

    def dying(message: str, seed: int) -> str:
        if len(answered) > 4:
            raise EngineLost("gone")
        answered.append((message, seed))
        return flaky(message, seed)

    def well(message: str, seed: int) -> str:
        again.append((message, seed))
        return flaky(message, seed)

    with pytest.raises(EngineLost, match="gone"):
        looped(dying, MESSAGES, cache, batch=1)
    done = looped(well, MESSAGES, cache, batch=3)
    assert len(answered) == 5 and not set(answered) & set(again)
    assert len(done) == 11


def test_an_answer_is_kept_while_another_is_waited_for_or_checked(cache: AnswerCache) -> None:
    late, all_are_asked = threading.Event(), threading.Barrier(3)

    def script(message: str, seed: int) -> str:
        all_are_asked.wait(900)  # else one might be answered, and checked, before the last is begun
        if message == "late":
            late.wait(900)
        return "value"

    def check(job: str, answer: str) -> Good[str]:
        # The first of three answers is being checked, so the loop takes none: the others are stored all the same.
        wait_for(lambda: stored(cache.path) >= 2)
        late.set()
        wait_for(lambda: stored(cache.path) == 3)
        return Good(answer)

    done = ask_until_good(
        writer(script, batch=3),
        {"a": "late", "b": "message", "c": "another"},
        check,
        cache=cache,
        again=lambda answer, reason: reason,
        sampling=Sampling(),
        seed=3,
        purpose="test",
    )
    assert {outcome.kind for outcome in done.values()} == {Kind.OK}


def test_progress_counts_every_job_once(cache: AnswerCache) -> None:
    told: list[tuple[int, int]] = []
    ask_until_good(
        writer(flaky, batch=2),
        MESSAGES,
        judged,
        cache=cache,
        again=lambda answer, reason: reason,
        sampling=Sampling(),
        seed=3,
        purpose="test",
        on_progress=lambda done, total: told.append((done, total)),
    )
    assert told[0] == (0, len(MESSAGES)) and told[-1] == (len(MESSAGES), len(MESSAGES)) and len(told) > 6
    assert told == sorted(told)


def test_a_request_that_the_server_refuses_is_not_repeated(cache: AnswerCache) -> None:
    def script(message: str, seed: int) -> Failure | str:
        return RequestFailure("400: context length exceeded", 400) if message == "message 4" else "value"

    done = looped(script, MESSAGES, cache)
    assert done["job 4"].attempts == (Attempt(Kind.ENGINE, "400: context length exceeded"),)
    assert done["job 4"].kind is Kind.ENGINE and done["job 5"].kind is Kind.OK


KILLED = """
import json, sys, time
from pathlib import Path
from rewriting_builders import EVERYONE, writer
from test_rewriting_loop import killed_jobs, killed_script, straggles
from perse.data.rewriting.anonymize import anonymize
from perse.writing.cache import AnswerCache
from perse.files.runlog import write_whole

folder, wave = Path(sys.argv[1]), int(sys.argv[2])

def script(message, seed):
    with (folder / "log").open("a") as file:
        file.write(json.dumps(message) + "\\n")
    if straggles(message, wave):
        time.sleep(600)
    return killed_script(message, seed)

with AnswerCache(folder / "answers.sqlite") as cache:
    done = anonymize(killed_jobs(), writer(script, batch=3), cache, EVERYONE, seed=5)
write_whole(folder / "done.json", json.dumps({key: [one.text, one.status, [list(vars(a).values()) for a in one.attempts]] for key, one in done.items()}))
"""


def killed_jobs() -> dict[str, str]:
    return {f"i{n}": f"Ida Venn counts {n} bees in Larkspur." for n in range(10)}


def killed_script(message: str, seed: int) -> str:
    """Four plots need a second try; the names are random."""
    if RETRY not in message and any(f"counts {n} bees" in message for n in range(4)):
        return "What?"
    first, last = random.Random(f"{message}{seed}").choices(["Olga", "Ute", "Brandt", "Zimmer"], k=2)
    return json.dumps({"Ida Venn": f"{first}a {last}i", "Larkspur": "Sundhaven"})


def straggles(message: str, wave: int) -> bool:
    return wave > 0 and "counts 1 bees" in message and (RETRY in message) == (wave == 2)


@pytest.mark.integration
@pytest.mark.parametrize(("wave", "asked"), [(1, 10), (2, 14)])
def test_a_killed_run_asks_only_what_was_in_flight_and_ends_as_if_it_had_not_been_killed(
    tmp_path: Path, wave: int, asked: int
) -> None:
    """Ten plots, three at a time, four of them twice; one in a wave is not answered until the kill, the others go past it."""
    script = tmp_path / "run.py"
    script.write_text(KILLED)

    def start(folder: Path, wave: int) -> subprocess.Popen[bytes]:
        folder.mkdir(exist_ok=True)
        return subprocess.Popen(
            [sys.executable, script, folder, str(wave)], env={**os.environ, "PYTHONPATH": importing(Path(__file__).parent)}
        )

    def log(folder: Path) -> list[str]:
        return (folder / "log").read_text().splitlines() if (folder / "log").exists() else []

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    uninterrupted, killed = start(whole, 0), start(cut, wave)
    wait_for(lambda: len(log(cut)) == asked and stored(cut / "answers.sqlite") == asked - 1)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL and not (cut / "done.json").exists()

    assert start(cut, 0).wait() == 0 and uninterrupted.wait() == 0
    again = [line for line in log(cut)[asked:] if line in log(cut)[:asked]]
    assert len(again) == 1 and straggles(json.loads(again[0]), wave), "everything else was kept"
    assert (cut / "done.json").read_bytes() == (whole / "done.json").read_bytes()
    assert sorted(log(cut)) == sorted([*log(whole), *again])


# --- the cache


def test_a_kept_answer_stands_against_a_later_one(tmp_path: Path) -> None:
    with AnswerCache(tmp_path / "deep" / "answers") as one, AnswerCache(tmp_path / "deep" / "answers") as other:
        assert one.keep({"k": Written("first", "stop")}) == {"k": Written("first", "stop")}
        assert other.keep({"k": Written("second", "length", True), "l": Written("x", "length", True)}) == {
            "k": Written("first", "stop"),
            "l": Written("x", "length", True),
        }
        assert one.known(["k", "l", "m"]) == other.known(["k", "l", "m"])
        assert one.known([]) == {} == one.keep({})


def test_answers_are_kept_with_what_they_took(tmp_path: Path) -> None:
    took = Tokens(prompt=10, cached=4, generated=3)
    with AnswerCache(tmp_path / "answers") as cache:
        assert cache.keep({"k": Written("first", "stop", tokens=took)})["k"].tokens == took
        assert cache.keep({"k": Written("second", "stop", tokens=Tokens(prompt=1, cached=0, generated=1))})["k"].tokens == took
    with AnswerCache(tmp_path / "answers") as again:
        assert again.known(["k"])["k"].tokens == took


def test_a_cache_of_an_older_perse_keeps_its_answers_and_takes_new_ones(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "answers") as old:
        old.execute(
            "CREATE TABLE answers (key TEXT PRIMARY KEY, text TEXT NOT NULL, finish_reason TEXT NOT NULL, refused INTEGER NOT NULL) "
            "WITHOUT ROWID"
        )
        old.execute("INSERT INTO answers VALUES ('k', 'first', 'stop', 0)")
    took = Tokens(prompt=10, cached=0, generated=3)
    with AnswerCache(tmp_path / "answers") as cache, AnswerCache(tmp_path / "answers") as other:
        assert cache.known(["k"]) == {"k": Written("first", "stop")} and cache.known(["k"])["k"].tokens is None
        assert other.keep({"l": Written("second", "stop", tokens=took)})["l"].tokens == took


def test_an_outcome_tells_what_all_its_tries_took_if_that_is_known(cache: AnswerCache) -> None:
    def reply(message: str, seed: int) -> Reply:
        return Reply("right" if RETRY in message else "wrong", "stop", Tokens(prompt=len(message), cached=1, generated=2))

    writer = Writer(Judge(ScriptedEngine(reply), TextRenderer(), name="scripted"))

    def check(name: str, text: str) -> Good[str] | Bad:
        return Good(text) if text == "right" else Bad(Kind.BAD_JSON, "no")

    def ask() -> Tokens | None:
        done = ask_until_good(
            writer, {"a": "m"}, check, cache=cache, again=lambda answer, reason: RETRY, sampling=Sampling(), seed=0, purpose="p"
        )
        return done["a"].tokens

    assert ask() == ask() == Tokens(prompt=1 + len(f"m\n{RETRY}"), cached=2, generated=4)


def test_more_keys_than_one_query_takes_are_found(cache: AnswerCache) -> None:
    answers = {f"{n}": Written(str(n), "stop") for n in range(1201)}
    assert cache.keep(answers) == answers


def test_what_is_no_cache_is_called_so(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("not a database, but long enough to be read as one\n" * 50)
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE answers (name TEXT)")
    for place in ("text", "other", ".", "text/below"):
        with pytest.raises(BadInput, match="cache of answers"):
            AnswerCache(tmp_path / place)


def test_an_answer_is_known_by_all_that_it_depends_on() -> None:
    def named(name: str, *, digest: str = "", adapter: str | None = None, script: str = "s", **settings: str) -> Writer:
        engine = ScriptedEngine(flaky, name=script)
        engine.settings |= settings
        return Writer(Judge(engine, TextRenderer(), name=name, adapter=adapter, digest=digest))

    base = named("m")
    keys = [
        answer_key(base, "hello", Sampling(), 0),
        answer_key(base, "hello!", Sampling(), 0),
        answer_key(base, "hello", Sampling(temperature=0), 0),
        answer_key(base, "hello", Sampling(max_new_tokens=5), 0),
        answer_key(base, "hello", Sampling(), 1),
        *(
            answer_key(other, "hello", Sampling(), 0)
            for other in (
                named("n"),
                named("m", digest="d"),
                named("m", adapter="a"),
                named("m", script="t"),
                named("m", url="u"),
            )
        ),
    ]
    assert len(set(keys)) == len(keys)
    assert keys[0] == answer_key(named("m"), "hello", Sampling(), 0)
    # With a digest the address is no matter; without one it is all that is known.
    assert named("m", digest="d", url="u").identity == named("m", digest="d", url="v").identity
    assert named("m", url="u").identity != named("m", url="v").identity


def test_a_database_of_something_else_is_not_made_a_cache_of_answers(tmp_path: Path) -> None:
    place = tmp_path / "photos.sqlite"
    with sqlite3.connect(place) as photos:
        photos.execute("CREATE TABLE photos (name TEXT)")
    photos.close()
    before = place.read_bytes()
    with pytest.raises(BadInput, match=r"photos.sqlite: is a database of something else \(it holds photos\)"):
        AnswerCache(place)
    assert place.read_bytes() == before and [path.name for path in tmp_path.iterdir()] == ["photos.sqlite"]


@pytest.mark.parametrize("ending", ["-wal", "-journal", "-shm"])
def test_a_file_that_sqlite_would_take_for_its_own_leftover_is_left_alone(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"answers.sqlite{ending}").write_text("mine")
    with pytest.raises(BadInput, match=f"answers.sqlite{ending} is there without answers.sqlite, and would be removed"):
        AnswerCache(tmp_path / "answers.sqlite")
    assert (tmp_path / f"answers.sqlite{ending}").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
