"""Runs in shards: whatever the workers and the interruptions, each example has one answer, and the merged file is the same."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from builders import pairwise_examples, pointwise_examples
from hypothesis import given, settings
from hypothesis import strategies as st
from kills import killed_at
from scripted_package import install

from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import answers, audit, merge, set_aside
from perse.batch.sharded.inputs import Row, read_inputs
from perse.batch.sharded.plan import Plan, cut, make_plan, read_plan
from perse.batch.sharded.running import Asker, Places, run_shard
from perse.batch.sharded.shards import Shard
from perse.batch.sharded.working import LOOKS, Share, free, work
from perse.engines.kind import Identity
from perse.errors import BadInput, EngineLost
from perse.judgement import Judgement, Status, Tokens, parse_judgement
from perse.questions import QUESTIONS
from perse.records import Example, PointwiseExample, ProfileReview

QUESTION = QUESTIONS["pointwise"]
JUDGE = Identity("scripted")


def examples(readers: int, each: int) -> list[PointwiseExample]:
    return pointwise_examples(readers, each)


def planned(run: Path, some: Sequence[Example], *, size: int = 4) -> Plan:
    return make_plan(run, [Row(one, "in", n) for n, one in enumerate(some)], identity="x", size=size)


def judged(example: Example) -> Judgement:
    return Judgement(
        id=example.id, question=QUESTION.name, status=Status.OK, label="7", text="fine", k_effective=1,
        tokens=Tokens(prompt=3, cached=1, generated=2), model="scripted", distribution=None,
    )  # fmt: skip


def asker(*, deadly: frozenset[str] = frozenset()) -> Asker:
    def ask(some: Sequence[Example]) -> list[Judgement]:
        if deadly & {one.id for one in some}:
            os._exit(9)
        return [judged(one) for one in some]

    return Asker(QUESTION, JUDGE, ask)


def worked(run: Path, plan: Plan, asked: Asker, *, name: str = "w", session: str = "s", part: tuple[int, int] = (0, 1)) -> int:
    claims = Claims(run / "claims", Holder.me(name))
    return work(Places(run), plan, asked, claims, session=session, share=Share(*part))


@given(
    counts=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    size=st.integers(1, 8),
)
@settings(max_examples=80, deadline=None)
def test_shards_end_between_readers_unless_a_reader_alone_is_more_than_a_shard(counts: list[int], size: int) -> None:
    rows = [{"reader": f"r{reader}", "n": n} for reader, count in enumerate(counts) for n in range(count)]
    shards = [*cut(rows, size)]
    assert [row for shard in shards for row in shard] == rows
    assert all(0 < len(shard) <= size for shard in shards)
    for reader, count in enumerate(counts):
        holding = sum(any(row["reader"] == f"r{reader}" for row in shard) for shard in shards)
        assert holding == -(-count // size), "no reader is in more shards than it must be"


def test_the_plan_is_the_same_whatever_the_order_of_the_rows(tmp_path: Path) -> None:
    some = examples(5, 3)
    one = planned(tmp_path / "a", some)
    other = planned(tmp_path / "b", random.Random(1).sample(some, len(some)))
    assert [shard.id for shard in one.shards] == [shard.id for shard in other.shards] and one.rows == 15
    assert read_plan(tmp_path / "a") == one
    assert {name for shard in one.shards for name in one.ids(shard)} == {example.id for example in some}


def test_the_characters_that_profiles_share_are_those_of_the_examples(tmp_path: Path) -> None:
    past = tuple(ProfileReview(text=f"A short plot {n}.", review="Good.", score=5 + n) for n in range(4))
    some = [PointwiseExample(id=f"e{n}", reviewer_id="r", item_id=f"t{n}", profile=past, query="New.") for n in range(20)]
    plan = planned(tmp_path, some, size=20)
    profile = json.dumps([one.model_dump(exclude_none=True) for one in past], separators=(",", ":"))
    assert plan.totals.shared == 19 * len(profile) < plan.totals.chars


def test_an_id_that_stands_twice_is_refused_with_both_places_and_nothing_is_left(tmp_path: Path) -> None:
    [one, *_] = examples(1, 2)
    twice = [Row(one, "a.jsonl", 1), Row(one.model_copy(update={"reviewer_id": "other"}), "b.jsonl", 7)]
    with pytest.raises(BadInput, match=f"b.jsonl, line 7: id '{one.id}' was already used in a.jsonl, line 1"):
        make_plan(tmp_path, twice, identity="x", size=4)
    assert not [*tmp_path.iterdir()]


def test_what_stops_the_reading_stops_the_plan_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text(examples(1, 1)[0].model_dump_json() + "\n{}\n")
    with pytest.raises(BadInput, match="in.jsonl, line 2: pointwise example, field '"):
        make_plan(tmp_path / "run", read_inputs(str(tmp_path / "in.jsonl")), identity="x", size=4)


def test_the_same_examples_are_read_from_every_format(tmp_path: Path) -> None:
    import csv

    import pyarrow as pa
    from pyarrow import parquet

    some = examples(2, 2)
    fields = [one.model_dump(mode="json", exclude_none=True) for one in some]
    for number, one in enumerate(fields):
        (tmp_path / "lines").mkdir(exist_ok=True)
        (tmp_path / "lines" / f"{number}.jsonl").write_text(json.dumps(one) + "\n")
    parquet.write_table(pa.Table.from_pylist(fields), tmp_path / "rows.parquet")
    with (tmp_path / "rows.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(fields[0]))
        table.writeheader()
        for one in fields:
            table.writerow(
                {name: json.dumps(value) if isinstance(value, list | dict) else value for name, value in one.items()}
            )
    for place in ("lines", "lines/*.jsonl", "rows.parquet", "rows.csv"):
        assert [row.example for row in read_inputs(str(tmp_path / place))] == some, place
    assert [row.example for row in read_inputs(f"file://{tmp_path}/lines/*.jsonl")] == some
    for place, said in (
        ("none*.jsonl", "no file has such a name"),
        ("no.jsonl", "no such file"),
        (".", "lines, not|has no file|"),
    ):
        with pytest.raises(BadInput, match=said):
            [*read_inputs(str(tmp_path / "empty" / place if place == "." else tmp_path / place))]


def test_two_kinds_of_examples_are_not_one_run(tmp_path: Path) -> None:
    pair = {"id": "p", "reviewer_id": "r", "aspect": "Ending", "profile": [], "query": {"text_a": "a", "text_b": "b"}}
    (tmp_path / "in.jsonl").write_text(examples(1, 1)[0].model_dump_json() + "\n" + json.dumps(pair) + "\n")
    with pytest.raises(
        BadInput, match="line 2: pairwise examples, where .* line 1 has pointwise ones; a run asks one question"
    ):
        [*read_inputs(str(tmp_path / "in.jsonl"))]


@pytest.mark.slow
def test_workers_beside_each_other_judge_every_shard_once_and_the_merged_file_has_the_plans_order(tmp_path: Path) -> None:
    some = examples(6, 4)
    plan = planned(tmp_path, some)
    children = []
    for number in range(3):
        child = os.fork()
        if not child:
            code = 1
            try:
                worked(tmp_path, plan, asker(), name=f"w{number}", part=(number, 3))
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in children)
    found = audit(Places(tmp_path), plan)
    assert found.whole and found.statuses == {"ok": 24}
    lines = [json.loads(line) for path in (tmp_path / "telemetry").glob("*.jsonl") for line in path.read_text().splitlines()]
    assert sorted(line["shard"] for line in lines) == sorted(shard.id for shard in plan.shards), "none twice"
    for name in ("all.jsonl", "all.parquet"):
        assert merge(Places(tmp_path), plan, tmp_path / name) == 24
    told = [json.loads(line)["id"] for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert told == [name for shard in plan.shards for name in plan.ids(shard)]


def test_what_a_pair_was_answered_in_each_order_stands_in_the_shards_and_in_the_merged_file(tmp_path: Path) -> None:
    known = {
        pair.id: judged(pair).model_copy(
            update={"label": "A", "distribution": {"A": 0.75, "B": 0.25}, "order_gap": 0.5, "order_probabilities": gaps}
        )
        for pair, gaps in zip(pairwise_examples(4), [(1.0, 0.5), (0.5, 1.0)] * 4, strict=True)
    }
    plan = planned(tmp_path, pairwise_examples(4))
    worked(tmp_path, plan, Asker(QUESTIONS["pairwise"], JUDGE, lambda some: [known[one.id] for one in some]))
    kept = {one.id: one for some in answers(Places(tmp_path), plan) for one in some}
    assert kept == known and len(kept) == plan.rows
    merge(Places(tmp_path), plan, tmp_path / "all.jsonl")
    merged = (parse_judgement(json.loads(line), "all.jsonl") for line in (tmp_path / "all.jsonl").read_text().splitlines())
    assert {one.id: one for one in merged} == known


@pytest.mark.slow
@pytest.mark.parametrize("event", range(0, 40, 3))
def test_a_worker_killed_at_any_change_of_a_file_leaves_what_the_next_one_finishes(tmp_path: Path, event: int) -> None:
    plan = planned(tmp_path, examples(3, 4))
    before = [judged(example) for example in examples(3, 4)]
    killed_at(event, lambda: worked(tmp_path, plan, asker(), session="first"), tmp_path)
    worked(tmp_path, plan, asker(), session="second")
    found = audit(Places(tmp_path), plan)
    assert found.whole and found.statuses == {"ok": 12}
    merge(Places(tmp_path), plan, tmp_path / "all.jsonl")
    kept = {line["id"]: line for line in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines())}
    assert kept == {one.id: one.model_dump(mode="json") for one in before}
    # A claim that a killed worker had not finished writing goes; what it moved away, or asked the clock by, is hidden and no claim.
    left = [one.name for one in (tmp_path / "claims").iterdir()]
    assert all(name.startswith(".") and (name.startswith(".now.") or name.endswith(".left")) for name in left), left
    assert not [*(tmp_path / "attempts").iterdir()]


def test_a_row_that_kills_workers_is_found_by_halves_and_all_others_are_judged(tmp_path: Path) -> None:
    some = examples(1, 16)
    plan = planned(tmp_path, some, size=16)
    deadly = asker(deadly=frozenset([some[5].id]))
    deaths = 0
    while True:
        child = os.fork()
        if not child:
            worked(tmp_path, plan, deadly)
            os._exit(0)
        if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
            break
        deaths += 1
        assert deaths <= 12, "two for each of 16, 8, 4, 2 and 1 rows"
    found = audit(Places(tmp_path), plan)
    assert deaths == 10 and found.whole and found.statuses == {"ok": 15, "engine_error": 1}
    [shard] = plan.shards
    merge(Places(tmp_path), plan, tmp_path / "all.jsonl")
    [bad] = [line for line in map(json.loads, (tmp_path / "all.jsonl").read_text().splitlines()) if line["status"] != "ok"]
    assert bad["id"] == some[5].id and bad["error"] == "2 workers died while they were asked about this example alone"
    assert not (tmp_path / "pieces" / shard.id).exists()


def test_what_a_person_put_among_the_parts_of_a_shard_stays(tmp_path: Path) -> None:
    plan = planned(tmp_path, examples(1, 4))
    places, [shard] = Places(tmp_path), plan.shards
    worked(tmp_path, plan, asker())
    piece = places.piece(shard, 0, 2)
    piece.parent.mkdir(parents=True)
    shutil.copy(places.answers(shard), piece)
    notes = [piece.with_name(name) for name in ("thesis.txt", "my-own.parquet")]
    for note in notes:
        note.write_text("mine")
    places.answers(shard).unlink()
    worked(tmp_path, plan, asker())
    assert places.done(shard) and [note.read_text() for note in notes] == ["mine", "mine"] and not piece.exists()


def test_what_ends_a_worker_for_another_reason_is_no_death_over_its_rows(tmp_path: Path) -> None:
    plan = planned(tmp_path, examples(1, 4))

    def stopped(error: BaseException) -> Asker:
        def ask(some: Sequence[Example]) -> list[Judgement]:
            raise error

        return Asker(QUESTION, JUDGE, ask)

    for error in (KeyboardInterrupt(), BadInput("x"), KeyboardInterrupt(), BadInput("x")):
        with pytest.raises(type(error)):
            run_shard(Places(tmp_path), plan, plan.shards[0], stopped(error), session="s")
    run_shard(Places(tmp_path), plan, plan.shards[0], asker(), session="s")
    assert audit(Places(tmp_path), plan).whole
    with pytest.raises(EngineLost):
        run_shard(Places(tmp_path), plan, plan.shards[0], stopped(EngineLost("gone")), session="s")


def test_a_damaged_file_of_answers_is_set_aside_and_judged_again(tmp_path: Path) -> None:
    plan = planned(tmp_path, examples(4, 4))
    worked(tmp_path, plan, asker())
    path = Places(tmp_path).answers(plan.shards[1])
    whole = path.read_bytes()
    path.write_bytes(whole[:100] + bytes([whole[100] ^ 255]) + whole[101:])
    other = Places(tmp_path).answers(plan.shards[2])
    other.write_bytes(whole)  # of other examples
    found = audit(Places(tmp_path), plan)
    assert not found.whole and found.missing_rows == 8 and len(found.damaged) == 2
    assert path.with_name(path.name + ".damaged").exists()
    with pytest.raises(BadInput, match="lacks the answers of shard"):
        merge(Places(tmp_path), plan, tmp_path / "all.jsonl")
    assert not (tmp_path / "all.jsonl").exists()
    worked(tmp_path, plan, asker())
    assert audit(Places(tmp_path), plan).whole


@pytest.mark.parametrize("put_aside", [audit, set_aside])
def test_what_was_set_aside_before_stays_when_a_shard_is_damaged_again(
    tmp_path: Path, put_aside: Callable[[Places, Plan], object]
) -> None:
    plan = planned(tmp_path, examples(4, 4))
    worked(tmp_path, plan, asker())
    path = Places(tmp_path).answers(plan.shards[0])
    for content in (b"first", b"second", b"third"):
        path.write_bytes(content)
        put_aside(Places(tmp_path), plan)
    assert not path.exists()
    aside = [path.with_name(path.name + ending).read_bytes() for ending in (".damaged", ".damaged-1", ".damaged-2")]
    assert aside == [b"first", b"second", b"third"]


def test_of_two_workers_one_has_a_shard_until_it_is_gone_or_silent(tmp_path: Path) -> None:
    mine, other = (Claims(tmp_path / "claims", Holder("w", "elsewhere", n, "0"), lease=0.5) for n in (1, 2))
    assert mine.take("a") and not other.take("a") and other.take("b")
    mine.give_back("a")
    assert other.take("a")
    time.sleep(0.7)
    assert mine.take("a"), "its holder gave no sign of life"
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, text=True, check=True)
    here = Holder.me("w")
    gone = Claims(tmp_path / "claims", Holder("x", here.host, int(dead.stdout), "1"), lease=999)
    assert gone.take("c") and Claims(tmp_path / "claims", here, lease=999).take("c"), "a process that is gone holds nothing"


def test_a_worker_that_gives_signs_of_life_keeps_what_it_has(tmp_path: Path) -> None:
    mine = Claims(tmp_path / "claims", Holder("w", "elsewhere", 1, "0"), lease=0.6, touch=0.1)
    other = Claims(tmp_path / "claims", Holder("v", "elsewhere", 2, "0"), lease=0.6)
    with mine.working():
        assert mine.take("a")
        time.sleep(1.0)
        assert not other.take("a")
    assert other.take("a"), "given back at the end"


# By the command line, with a judge of an installed package.


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return install(tmp_path / "package")


def lines(path: Path, count: int, *, deadly: Sequence[int] = ()) -> Path:
    some = pointwise_examples(max(1, count // 8), 8)[:count]
    changed = [one.model_copy(update={"query": f"{one.query} DEADLY"}) if n in deadly else one for n, one in enumerate(some)]
    path.write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in changed))
    return path


def command(*words: object, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    asked = [sys.executable, "-m", "perse", "score", *map(str, words)]
    return subprocess.run(asked, env=env, capture_output=True, text=True, timeout=900)


@pytest.mark.slow
def test_a_run_in_shards_is_read_as_a_simple_one_and_refused_for_other_examples(tmp_path: Path, env: dict[str, str]) -> None:
    source = lines(tmp_path / "in.jsonl", 48)
    asked = ("--examples", source, "--judge", "scripted:a", "--temperature", "0")
    done = command(*asked, "--out", tmp_path / "run", "--driver", "local", "--workers", 2, "--shard-rows", 8, env=env)
    assert done.returncode == 0, done.stderr
    simple = command(*asked, "--out", tmp_path / "simple", env=env)
    assert simple.returncode == 0, simple.stderr
    assert command("merge", tmp_path / "run", "--out", tmp_path / "all.jsonl", env=env).returncode == 0
    merged, whole = (
        sorted(path.read_text().splitlines()) for path in (tmp_path / "all.jsonl", tmp_path / "simple" / "judgements.jsonl")
    )
    assert merged == whole
    for run in ("run", "simple"):
        asked_of = [sys.executable, "-m", "perse", "evaluate", str(tmp_path / run), "--resamples", "100", "--json"]
        told = subprocess.run(asked_of, env=env, capture_output=True, text=True)
        assert told.returncode == 0, told.stderr
        (tmp_path / f"{run}.json").write_text(told.stdout.replace(f'"{run}', '"NAME'))
    values = [json.loads((tmp_path / f"{run}.json").read_text())["tables"][1] for run in ("run", "simple")]
    assert len(values[0]["rows"]) == len(values[1]["rows"]) > 1
    source.write_text(source.read_text().replace("Plot", "plot") + "\n")
    other = command(*asked, "--out", tmp_path / "run", "--driver", "local", "--shard-rows", 8, env=env)
    assert other.returncode == 2 and "inputs.sha256 was" in other.stderr
    assert command("status", tmp_path / "run", env=env).stderr.startswith("48 of 48 examples judged, 6 of 6 shards")
    assert command("audit", tmp_path / "run", env=env).returncode == 0
    assert command("work", tmp_path / "simple", env=env).returncode == 2
    forgotten = [sys.executable, "-m", "perse", "data", "forget", "r0", str(tmp_path / "run"), "--salt", "s"]
    told = subprocess.run(forgotten, env=env, capture_output=True, text=True)
    assert told.returncode == 2 and "is a run in shards, of which nobody can be taken out" in told.stderr


@pytest.mark.slow
def test_a_worker_that_dies_is_told_of_where_the_run_was_started(tmp_path: Path, env: dict[str, str]) -> None:
    source = lines(tmp_path / "in.jsonl", 2, deadly=[0])
    asked = ("--examples", source, "--judge", "scripted:a", "--out", tmp_path / "run", "--driver", "local", "--shard-rows", 2)
    done = command(*asked, env=env)
    assert done.returncode == 0 and "1 engine_error" in done.stderr, done.stderr
    said = re.findall(r"worker \S+ died \(exit code -9: it said nothing\) and begins again", " ".join(done.stderr.split()))
    assert len(said) == 4, done.stderr  # twice over both, twice over the one


@pytest.mark.slow
def test_a_run_that_is_interrupted_ten_times_at_random_ends_whole(tmp_path: Path, env: dict[str, str]) -> None:
    source = lines(tmp_path / "in.jsonl", 10_000)
    words = ["--examples", source, "--judge", "scripted:a", "--out", tmp_path / "run", "--driver", "local", "--workers", 2]
    asked = [sys.executable, "-m", "perse", "score", *map(str, words), "--shard-rows", "64"]
    slow = {**env, "SCRIPTED_DELAY": "0.002"}
    chance = random.Random(7)
    for number in range(10):
        process = subprocess.Popen(asked, env=slow, stderr=subprocess.PIPE, text=True, start_new_session=True)
        time.sleep(4 + 4 * chance.random())
        if number % 3 == 0:
            os.killpg(process.pid, signal.SIGINT)
        elif number % 3 == 1:
            process.kill()
        else:
            for one in children(process.pid):
                os.kill(one, signal.SIGKILL)
            time.sleep(1)
            os.killpg(process.pid, signal.SIGKILL)
        _, said = process.communicate(timeout=900)
        assert "Traceback" not in said, said
    ended = subprocess.run(asked, env=env, capture_output=True, text=True, timeout=900)
    assert ended.returncode == 0, ended.stderr
    assert "(10,000 ok)" in ended.stderr
    command("merge", tmp_path / "run", "--out", tmp_path / "all.jsonl", env=env)
    clean = [sys.executable, "-m", "perse", "score", *map(str, words), "--shard-rows", "64"]
    clean[clean.index(str(tmp_path / "run"))] = str(tmp_path / "clean")
    assert subprocess.run(clean, env=env, capture_output=True, timeout=900).returncode == 0
    command("merge", tmp_path / "clean", "--out", tmp_path / "clean.jsonl", env=env)
    assert (tmp_path / "all.jsonl").read_bytes() == (tmp_path / "clean.jsonl").read_bytes()


def children(parent: int) -> Iterator[int]:
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True)
    yield from map(int, found.stdout.split())


@given(held=st.integers(0, 300), dying=st.integers(0, 300), seed=st.integers(0, 9))
def test_a_worker_that_waits_takes_what_holders_leave_and_looks_at_few_at_a_time(held: int, dying: int, seed: int) -> None:
    rng = random.Random(seed)
    shards = [Shard(f"{n:016x}", 0, 0, 1, 1, 1, 0) for n in range(held)]
    lost = {one.id for one in shards[:dying]}
    done: set[str] = set()
    gone: set[str] = set()
    in_vain: list[str] = []

    def take(name: str) -> bool:
        if name not in gone:
            in_vain.append(name)
        return name in gone

    mine: list[str] = []
    waited = 0
    for shard in free(shards, lambda: set(done), lambda one: one.id in done, take):
        if shard is not None:
            mine.append(shard.id)
            done.add(shard.id)
            continue
        assert len(in_vain) <= (LOOKS if waited else held)
        in_vain.clear()
        waited += 1
        for one in rng.sample(shards, min(held, 5)):
            (gone if one.id in lost else done).add(one.id)
    assert set(mine) == lost and len(mine) == len(lost) and done == {one.id for one in shards}
