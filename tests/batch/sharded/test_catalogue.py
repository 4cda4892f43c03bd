"""Readers and texts, every pair of which is judged once: whatever the sizes, without writing the pairs out, and each reader's best of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scripted_package import install

from perse.batch.sharded.catalogue import make_catalogue
from perse.batch.sharded.catalogue_inputs import (
    Candidate,
    CatalogueReader,
    CatalogueText,
    read_candidates,
    read_readers,
    read_texts,
)
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.ranking import best, write_best
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import write_answers
from perse.batch.sharded.shards import Totals
from perse.errors import BadInput
from perse.identity import catalogue_id, catalogue_names
from perse.judgement import Judgement, Status, Tokens
from perse.records import PointwiseExample, ProfileReview
from perse.records.near import near_duplicate

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)


def texts(names: list[str]) -> list[CatalogueText]:
    return [CatalogueText(name, f"A story about {name} and nobody else.", f"t, line {n}") for n, name in enumerate(names)]


def past(*items: str, text: str = "Some other story.") -> tuple[ProfileReview, ...]:
    return tuple(ProfileReview(text=f"{text} {n}", review="fine", score=7, item_id=one) for n, one in enumerate(items))


@pytest.mark.slow
@given(
    names=st.lists(NAMES, min_size=1, max_size=12, unique=True),
    wants=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 11), max_size=12)), min_size=1, max_size=8),
    reviewed=st.lists(st.integers(0, 11), max_size=5),
    size=st.integers(1, 30),
    apart=st.booleans(),
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_shards_have_every_pair_once_but_those_that_the_profile_has(
    tmp_path_factory: pytest.TempPathFactory,
    names: list[str],
    wants: list[list[int] | None],
    reviewed: list[int],
    size: int,
    apart: bool,
) -> None:
    if apart:  # candidates in a file of their own, where nobody is asked about all
        wants = [want or [] for want in wants]
    known = {names[n] for n in reviewed if n < len(names)}
    readers, expected = [], []
    for number, want in enumerate(wants):
        asked = None if want is None else tuple(names[n] for n in want if n < len(names))
        readers.append(CatalogueReader(f"r/{number}%", past(*sorted(known)), asked, f"r, line {number}"))
        expected += [catalogue_id(f"r/{number}%", name) for name in sorted(set(names if asked is None else asked) - known)]
    run = tmp_path_factory.mktemp("run")
    pairs = [Candidate(one.reader, text, "c") for one in reversed(readers) for text in one.candidates or ()] if apart else None
    given = [replace(one, candidates=None) for one in readers] if apart else readers
    if not expected:
        with pytest.raises(BadInput, match="no pair to judge"):
            make_catalogue(run, given, texts(names), pairs, identity="x", size=size)
        assert not [*run.iterdir()]
        return
    plan = make_catalogue(run, given, texts(names), pairs, identity="x", size=size)
    assert read_plan(run) == plan
    told = [id for shard in plan.shards for id in plan.ids(shard)]
    assert sorted(told) == sorted(expected)
    made = [one for shard in plan.shards for one in plan.examples(shard)]
    assert [one.id for one in made] == told
    assert all(one.query == f"A story about {catalogue_names(one.id)[1]} and nobody else." for one in made)  # type: ignore[union-attr]
    assert [(one.reviewer_id, one.item_id) for one in made] == [catalogue_names(id) for id in told]  # type: ignore[union-attr]
    assert all(len(plan.ids(shard)) == shard.rows <= size for shard in plan.shards)
    for _, shards in _by_reader(plan).items():
        assert len(shards) == 1 or all(shard.readers == 1 for shard in shards), "a reader whole in a shard, or alone in several"
    assert len({shard.id for shard in plan.shards}) == len(plan.shards)
    assert [plan.shards[n] for n in range(len(plan.shards))] == [*plan.shards] == [*plan.shards[-len(plan.shards) :]]
    assert Totals.of(plan.shards) == replace(plan.totals, readers=sum(one.readers for one in plan.shards))
    wanted = [set(names if one.candidates is None else one.candidates) for one in readers]
    assert plan.shards.left_out == sum(len(want & known) for want in wanted)  # type: ignore[attr-defined]
    assert plan.shards.idle == sum(not want - known for want in wanted)  # type: ignore[attr-defined]


def _by_reader(plan: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for shard in plan.shards:
        for reader in {catalogue_names(id)[0] for id in plan.ids(shard)}:
            found[reader].append(shard)
    return found


@pytest.mark.slow
@given(reader=st.text(max_size=8), text=st.text(max_size=8))
def test_a_pairs_id_is_split_into_the_names_that_it_was_made_of(reader: str, text: str) -> None:
    assert catalogue_names(catalogue_id(reader, text)) == (reader, text)


def test_a_text_that_stands_word_for_word_in_the_profile_is_not_asked_about(tmp_path: Path) -> None:
    some = texts(["a", "b", "c"])
    profile = (ProfileReview(text=some[1].shown.upper(), review="fine", score=7, item_id="z"),)
    plan = make_catalogue(tmp_path, [CatalogueReader("r", profile, None, "r, line 1")], some, identity="x", size=9)
    assert [catalogue_names(id)[1] for shard in plan.shards for id in plan.ids(shard)] == ["a", "c"]
    assert plan.shards.left_out == 1  # type: ignore[attr-defined]


WORDS = [f"word{n}" for n in range(30)]


@pytest.mark.slow
@given(
    shown=st.lists(st.sets(st.integers(0, 29), max_size=4), min_size=1, max_size=6),
    past=st.lists(st.sets(st.integers(0, 29), max_size=4), max_size=3),
)
@settings(max_examples=60, deadline=None)
def test_a_text_is_left_out_exactly_where_the_example_would_give_it_away(
    tmp_path_factory: pytest.TempPathFactory, shown: list[set[int]], past: list[set[int]]
) -> None:
    def text(changed: set[int]) -> str:
        return " ".join("Other" if n in changed else word for n, word in enumerate(WORDS))

    some = [CatalogueText("whole", "An altogether other story, of nobody here.", "")]
    some += [CatalogueText(f"t{n}", text(changed), "") for n, changed in enumerate(shown)]
    profile = tuple(ProfileReview(text=text(changed), review="fine", score=7) for changed in past)
    plan = make_catalogue(
        tmp_path_factory.mktemp("run"), [CatalogueReader("r", profile, None, "")], some, identity="x", size=99
    )
    slow = [
        one.text
        for one in some
        if not PointwiseExample(id="x", reviewer_id="r", item_id=one.text, profile=profile, query=one.shown).gives_away(
            near_duplicate
        )
    ]
    assert [catalogue_names(id)[1] for shard in plan.shards for id in plan.ids(shard)] == sorted(slow)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{"reviewer_id": "r", "item_id": "c"}], "c.csv, line 2: candidate 'c' is none of the texts"),
        ([{"reviewer_id": "a", "item_id": "a"}, {"reviewer_id": "r", "item_id": "a"}], "c.csv, line 2: reader 'a' is none of the readers"),
        ([{"reviewer_id": "r", "item_id": "a"}, {"reviewer_id": "z", "item_id": "a"}], "c.csv, line 3: reader 'z' is none of the readers"),
        ([{"who": "r", "item_id": "a"}], "c.csv, line 2: no column for field 'reviewer_id'; columns found: who, item_id; name one of them 'reviewer_id'"),
        ([{"reviewer_id": " ", "item_id": "a"}], "c.csv, line 2: field 'reviewer_id' has no text"),
    ],
)  # fmt: skip
def test_candidates_of_nobody_or_that_are_no_texts_are_refused_with_their_line(
    tmp_path: Path, rows: list[dict[str, str]], said: str
) -> None:
    lines = [",".join(rows[0]), *(",".join(row.values()) for row in rows)]
    (tmp_path / "c.csv").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(BadInput, match=said):
        make_catalogue(
            tmp_path / "run", [CatalogueReader("r", past("p"), None, "")], texts(["a", "b"]), read_candidates(str(tmp_path / "c.csv")),
            identity="x", size=2,
        )  # fmt: skip
    assert not (tmp_path / "run" / "plan").exists()


def test_candidates_stand_with_the_readers_or_in_a_file_and_not_in_both(tmp_path: Path) -> None:
    reader = CatalogueReader("r", past("p"), ("a",), "r.jsonl, line 1")
    with pytest.raises(BadInput, match="r.jsonl, line 1: the reader has candidates, and there is a file of candidates"):
        make_catalogue(tmp_path, [reader], texts(["a"]), [Candidate("r", "a", "")], identity="x", size=2)


def test_shards_have_other_names_when_anything_that_answers_depend_on_is_another(tmp_path: Path) -> None:
    def ids(number: int, readers: list[CatalogueReader], some: list[CatalogueText], identity: str = "x") -> list[str]:
        return [shard.id for shard in make_catalogue(tmp_path / str(number), readers, some, identity=identity, size=2).shards]

    one = CatalogueReader("r", past("p"), None, "")
    first = ids(0, [one], texts(["a", "b", "c"]))
    assert first == ids(1, [one], texts(["c", "b", "a"])), "the order of the rows is nothing that they depend on"
    others = [
        ids(2, [CatalogueReader("r", past("p", text="Another."), None, "")], texts(["a", "b", "c"])),
        ids(3, [CatalogueReader("s", past("p"), None, "")], texts(["a", "b", "c"])),
        ids(4, [one], texts(["a", "b", "d"])),
        ids(5, [one], texts(["a", "b", "c"]), "y"),
        ids(6, [CatalogueReader("r", past("p"), ("a", "b"), "")], texts(["a", "b", "c"])),
    ]
    assert not {name for names in others for name in names} & set(first)


@pytest.mark.parametrize(
    ("readers", "some", "said"),
    [
        ([{"reviewer_id": "r", "profile": []}, {"reviewer_id": "r", "profile": []}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 2: reader 'r' stands in .*r.jsonl, line 1, too"),
        ([{"reviewer_id": "r", "profile": []}], [{"item_id": "a", "text": "x"}, {"item_id": "a", "text": "y"}], "t.jsonl, line 2: text 'a' was already used in .*t.jsonl, line 1"),
        ([{"reviewer_id": "r", "profile": [], "candidates": ["b"]}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: candidate 'b' is none of the texts"),
        ([{"reviewer_id": "r", "profile": [], "candidates": "a"}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'candidates' is no list"),
        ([{"reviewer_id": "r", "profile": [{"text": "x"}]}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'profile', "),
        ([{"who": "r", "profile": []}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: no column for field 'reviewer_id'; columns found: who, profile"),
        ([{"reviewer_id": True, "profile": []}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'reviewer_id' has no text"),
        ([{"reviewer_id": "r", "profile": []}], [{"item_id": "a", "story": "x"}], "t.jsonl, line 1: no column for field 'text'; columns found: item_id, story"),
        ([{"reviewer_id": "r", "profile": []}], [{"item_id": "a", "text": ""}], "t.jsonl, line 1: field 'text' has no text"),
        ([{"reviewer_id": "r", "profiles": [{"text": "x"}]}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'profile' is missing"),
    ],
)  # fmt: skip
def test_what_is_no_catalogue_is_refused_with_its_file_and_line(
    tmp_path: Path, readers: list[dict[str, Any]], some: list[dict[str, Any]], said: str
) -> None:
    for name, rows in (("r.jsonl", readers), ("t.jsonl", some)):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(BadInput, match=said):
        given_readers, given_texts = read_readers(str(tmp_path / "r.jsonl")), read_texts(str(tmp_path / "t.jsonl"))
        make_catalogue(tmp_path / "run", given_readers, given_texts, identity="x", size=2)
    assert not (tmp_path / "run" / "plan").exists()


@pytest.mark.parametrize("names", [("reviewer_id", "item_id", "text"), ("reviewer", "item", "text"), ("user", "ID", "plot")])
def test_columns_of_a_catalogue_have_the_names_that_raw_files_have(tmp_path: Path, names: tuple[str, str, str]) -> None:
    reader, item, text = names
    (tmp_path / "r.jsonl").write_text(json.dumps({reader: 7, "profile": [], "candidates": [1, "b"]}) + "\n")
    (tmp_path / "t.jsonl").write_text(json.dumps({item: 1, text: "One."}) + "\n" + json.dumps({item: "b", text: "Two."}) + "\n")
    (tmp_path / "c.csv").write_text(f"{item},{reader}\nb,7\n")
    [one] = read_readers(str(tmp_path / "r.jsonl"))
    assert (one.reader, one.profile, one.candidates) == ("7", (), ("1", "b")), "whole numbers pass as names"
    assert [(one.text, one.shown) for one in read_texts(str(tmp_path / "t.jsonl"))] == [("1", "One."), ("b", "Two.")]
    assert [(one.reader, one.text) for one in read_candidates(str(tmp_path / "c.csv"))] == [("7", "b")]


@pytest.mark.slow
@given(
    scores=st.lists(
        st.lists(st.one_of(st.none(), st.sampled_from([1.5, 2.0, 7.25])), min_size=6, max_size=6), min_size=1, max_size=5
    ),
    number=st.integers(1, 7),
    size=st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_the_best_of_each_reader_are_those_of_a_sorted_list(
    tmp_path_factory: pytest.TempPathFactory, scores: list[list[float | None]], number: int, size: int
) -> None:
    run = tmp_path_factory.mktemp("run")
    names = [f"t{n}" for n in range(6)]
    readers = [CatalogueReader(f"r{n}", past("p"), None, "") for n in range(len(scores))]
    plan = make_catalogue(run, readers, texts(names), identity="x", size=size)
    of = {catalogue_id(f"r{r}", name): score for r, row in enumerate(scores) for name, score in zip(names, row, strict=True)}
    for shard in plan.shards:
        write_answers(Places(run).answers(shard), [_judged(id, of[id]) for id in plan.ids(shard)])
    slow = []
    for r, row in enumerate(scores):
        known = sorted((-score, name) for name, score in zip(names, row, strict=True) if score is not None)
        failed = [(0, name) for name, score in zip(names, row, strict=True) if score is None]
        slow += [
            (f"r{r}", name, rank, of[catalogue_id(f"r{r}", name)])
            for rank, (_, name) in enumerate([*known, *failed][:number], start=1)
        ]
    told = [*best(Places(run), plan, number)]
    equal = {(r, score): row.count(score) for r, row in enumerate(scores) for score in row}
    assert [one.tied for one in told] == [equal[int(one.reader[1:]), one.expected] for one in told]
    cut = {
        f"r{r}" for r, row in enumerate(scores) for known in [sorted((s for s in row if s is not None), reverse=True)]
        if 0 < number < len(known) and known[number - 1] == known[number]
    }  # fmt: skip
    assert write_best(Places(run), plan, number, run / "best.jsonl") == (len(told), len(cut))
    assert [(one.reader, one.text, one.rank, one.expected) for one in told] == slow
    assert all((one.status == "ok") == (one.expected is not None) for one in told)


def _judged(id: str, expected: float | None) -> Judgement:
    status = Status.OK if expected is not None else Status.UNPARSED
    tokens = Tokens(prompt=1, cached=0, generated=1)
    return Judgement(
        id=id, question="pointwise", status=status, label="7" if expected is not None else None, expected=expected,
        k_effective=1, tokens=tokens, model="m",
    )  # fmt: skip


@pytest.mark.slow
def test_a_catalogue_is_judged_by_the_command_and_its_best_texts_are_written(tmp_path: Path) -> None:
    env = install(tmp_path / "package")
    profile = [{"text": "Old.", "review": "fine", "score": 7, "item_id": "t3"}]
    rows = [{"reviewer_id": f"r{n}", "profile": profile, "candidates": ["t1", "t3"] if n == 2 else None} for n in range(4)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "readers.parquet")
    (tmp_path / "texts.csv").write_text("item_id,text\n" + "".join(f"t{n},{'word ' * (n + 1)}\n" for n in range(7)))

    def command(*words: object) -> subprocess.CompletedProcess[str]:
        asked = [sys.executable, "-m", "perse", "score", *map(str, words)]
        return subprocess.run(asked, env=env, capture_output=True, text=True, timeout=900)

    asked = [
        "--readers",
        tmp_path / "readers.parquet",
        "--texts",
        tmp_path / "texts.csv",
        "--judge",
        "scripted:a",
        "--temperature",
        "0",
    ]
    for name, workers in (("one", 1), ("two", 2)):
        done = command(*asked, "--out", tmp_path / name, "--driver", "local", "--workers", workers, "--shard-rows", 4)
        assert done.returncode == 0 and "(19 ok)" in " ".join(done.stderr.split()), (
            done.stderr
        )  # 3 readers with 6 texts, and one with 1
        assert "4 pairs are not judged, since the reader's own profile has the text" in done.stderr
        assert command("merge", tmp_path / name, "--out", tmp_path / f"{name}.jsonl").returncode == 0
        assert command("merge", tmp_path / name, "--top", 2, "--out", tmp_path / f"{name}.parquet").returncode == 0
    assert (tmp_path / "one.jsonl").read_bytes() == (tmp_path / "two.jsonl").read_bytes()
    best_of = parquet.read_table(tmp_path / "one.parquet").to_pylist()
    assert best_of == parquet.read_table(tmp_path / "two.parquet").to_pylist()
    assert list(best_of[0]) == ["reader", "text", "rank", "tied", "expected", "label", "status", "id"]
    assert [(row["reader"], row["rank"]) for row in best_of] == [
        (f"r{r}", n) for r in range(4) for n in ((1,) if r == 2 else (1, 2))
    ]
    (tmp_path / "pairs.csv").write_text("reviewer_id,item_id\nr1,t2\nr0,t5\nr1,t0\nr1,t2\n")
    parquet.write_table(pa.Table.from_pylist([row | {"candidates": None} for row in rows]), tmp_path / "readers.parquet")
    planned = command("plan", *asked, "--candidates", tmp_path / "pairs.csv", "--out", tmp_path / "some", "--shard-rows", 2)
    assert planned.stderr.startswith("note: 2 readers have no text to judge\n3 examples in 2 shards of at most 2\n"), (
        planned.stderr
    )
    told = command(*asked[:2], "--judge", "scripted:a", "--out", tmp_path / "x", "--driver", "local")
    assert told.returncode == 2 and "--readers and --texts belong together" in told.stderr
    forgotten = subprocess.run(
        [sys.executable, "-m", "perse", "data", "forget", "r1", str(tmp_path / "one"), "--salt", "s"],
        env=env,
        capture_output=True,
        text=True,
    )
    assert forgotten.returncode == 2 and "is a run in shards, of which nobody can be taken out" in forgotten.stderr
    evaluated = subprocess.run(
        [sys.executable, "-m", "perse", "evaluate", str(tmp_path / "one")], env=env, capture_output=True, text=True
    )
    assert evaluated.returncode == 2 and "which have no true answers to compare with" in " ".join(evaluated.stderr.split())


@pytest.mark.integration
@pytest.mark.long
def test_a_thousand_million_pairs_are_planned_and_read_in_little_memory_and_small_files(tmp_path: Path) -> None:
    script = f"""
import resource
from pathlib import Path
from perse.batch.sharded.catalogue import CatalogueReader, CatalogueText, make_catalogue
from perse.batch.sharded.plan import read_plan
from perse.records import ProfileReview
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
past = tuple(ProfileReview(text=f"Old story {{n}}.", review="fine", score=7, item_id=f"p{{n}}") for n in range(3))
readers = (CatalogueReader(f"r{{n:06}}", past, None, "") for n in range(100_000))
texts = (CatalogueText(f"t{{n:05}}", f"A story about {{n}}.", "") for n in range(10_000))
make_catalogue(Path({str(tmp_path)!r}), readers, texts, identity="x", size=256)
plan = read_plan(Path({str(tmp_path)!r}))
last = plan.shards[len(plan.shards) - 1]
# ru_maxrss would begin with what the process had that started this one.
[peak] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print(plan.rows, len(plan.shards), plan.ids(last)[-1], int(peak) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    rows, shards, last, megabytes = done.stdout.split()
    assert (rows, shards, last) == ("1000000000", "4000000", "r099999/t09999")
    assert int(megabytes) < 1500 and sum(path.stat().st_size for path in tmp_path.rglob("*.parquet")) < 300 << 20
