"""Readers and texts, every pair of which is judged once: whatever the sizes, without writing the pairs out, and each reader's best of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scripted_package import install

from perse.batch.sharded.catalogue import make_catalogue, names_of, pair_id
from perse.batch.sharded.catalogue_inputs import CatalogueReader, CatalogueText, read_readers, read_texts
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.ranking import best
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import write_answers
from perse.errors import BadInput
from perse.judgement import Judgement, Status, Tokens
from perse.records import ProfileReview, parse_example

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=5)


def texts(names: list[str]) -> list[CatalogueText]:
    return [CatalogueText(name, f"A story about {name} and nobody else.", f"t, line {n}") for n, name in enumerate(names)]


def past(*items: str, text: str = "Some other story.") -> tuple[ProfileReview, ...]:
    return tuple(ProfileReview(text=f"{text} {n}", review="fine", score=7, item_id=one) for n, one in enumerate(items))


@given(
    names=st.lists(NAMES, min_size=1, max_size=12, unique=True),
    wants=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 11), max_size=12)), min_size=1, max_size=8),
    reviewed=st.lists(st.integers(0, 11), max_size=5),
    size=st.integers(1, 30),
)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_shards_have_every_pair_once_but_those_that_the_profile_has(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], wants: list[list[int] | None], reviewed: list[int], size: int
) -> None:
    known = {names[n] for n in reviewed if n < len(names)}
    readers, expected = [], []
    for number, want in enumerate(wants):
        asked = None if want is None else tuple(names[n] for n in want if n < len(names))
        readers.append(CatalogueReader(f"r/{number}%", past(*sorted(known)), asked, f"r, line {number}"))
        expected += [pair_id(f"r/{number}%", name) for name in sorted(set(names if asked is None else asked) - known)]
    run = tmp_path_factory.mktemp("run")
    if not expected:
        with pytest.raises(BadInput, match="no pair to judge"):
            make_catalogue(run, readers, texts(names), identity="x", size=size)
        assert not [*run.iterdir()]
        return
    plan = make_catalogue(run, readers, texts(names), identity="x", size=size)
    assert read_plan(run) == plan
    told = [id for shard in plan.shards for id in plan.ids(shard)]
    assert sorted(told) == sorted(expected)
    made = [parse_example(json.loads(one)) for shard in plan.shards for one in plan.examples(shard)]
    assert [one.id for one in made] == told
    assert all(one.query == f"A story about {names_of(one.id)[1]} and nobody else." for one in made)  # type: ignore[union-attr]
    assert [(one.reviewer_id, one.item_id) for one in made] == [names_of(id) for id in told]  # type: ignore[union-attr]
    assert all(len(plan.ids(shard)) == shard.rows <= size for shard in plan.shards)
    for _, shards in _by_reader(plan).items():
        assert len(shards) == 1 or all(shard.readers == 1 for shard in shards), "a reader whole in a shard, or alone in several"
    assert len({shard.id for shard in plan.shards}) == len(plan.shards)


def _by_reader(plan: Any) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for shard in plan.shards:
        for reader in {names_of(id)[0] for id in plan.ids(shard)}:
            found[reader].append(shard)
    return found


@given(reader=st.text(max_size=8), text=st.text(max_size=8))
def test_a_pairs_id_is_split_into_the_names_that_it_was_made_of(reader: str, text: str) -> None:
    assert names_of(pair_id(reader, text)) == (reader, text)


def test_a_text_that_stands_word_for_word_in_the_profile_is_not_asked_about(tmp_path: Path) -> None:
    some = texts(["a", "b", "c"])
    profile = (ProfileReview(text=some[1].shown.upper(), review="fine", score=7, item_id="z"),)
    plan = make_catalogue(tmp_path, [CatalogueReader("r", profile, None, "r, line 1")], some, identity="x", size=9)
    assert [names_of(id)[1] for shard in plan.shards for id in plan.ids(shard)] == ["a", "c"]
    assert plan.source.left_out == 1  # type: ignore[attr-defined]


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
        ([{"reviewer_id": "r"}, {"reviewer_id": "r"}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 2: reader 'r' stands in .*r.jsonl, line 1, too"),
        ([{"reviewer_id": "r"}], [{"item_id": "a", "text": "x"}, {"item_id": "a", "text": "y"}], "t.jsonl, line 2: text 'a' was already used in .*t.jsonl, line 1"),
        ([{"reviewer_id": "r", "candidates": ["b"]}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: candidate 'b' is none of the texts"),
        ([{"reviewer_id": "r", "candidates": "a"}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'candidates' is no list"),
        ([{"reviewer_id": "r", "profile": [{"text": "x"}]}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'profile', "),
        ([{"reader": "r"}], [{"item_id": "a", "text": "x"}], "r.jsonl, line 1: field 'reviewer_id' has no text"),
        ([{"reviewer_id": "r"}], [{"item_id": "a", "plot": "x"}], "t.jsonl, line 1: field 'text' has no text"),
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
    of = {pair_id(f"r{r}", name): score for r, row in enumerate(scores) for name, score in zip(names, row, strict=True)}
    for shard in plan.shards:
        write_answers(Places(run).answers(shard), [_judged(id, of[id]) for id in plan.ids(shard)])
    slow = []
    for r, row in enumerate(scores):
        known = sorted((-score, name) for name, score in zip(names, row, strict=True) if score is not None)
        slow += [(f"r{r}", rank, name, -score) for rank, (score, name) in enumerate(known[:number], start=1)]
    assert [(one.reader, one.rank, one.text, one.score) for one in best(Places(run), plan, number)] == slow


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
        return subprocess.run(asked, env=env, capture_output=True, text=True, timeout=240)

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
    assert [(row["reader"], row["rank"]) for row in best_of] == [
        (f"r{r}", n) for r in range(4) for n in ((1,) if r == 2 else (1, 2))
    ]
    told = command(*asked[:2], "--judge", "scripted:a", "--out", tmp_path / "x", "--driver", "local")
    assert told.returncode == 2 and "--readers and --texts belong together" in told.stderr
    evaluated = subprocess.run(
        [sys.executable, "-m", "perse", "evaluate", str(tmp_path / "one")], env=env, capture_output=True, text=True
    )
    assert evaluated.returncode == 2 and "none of the 19 examples has a reference" in evaluated.stderr


@pytest.mark.slow
def test_a_thousand_million_pairs_are_planned_in_little_memory_and_small_files(tmp_path: Path) -> None:
    script = f"""
import resource
from pathlib import Path
from perse.batch.sharded.catalogue import CatalogueReader, CatalogueText, make_catalogue
from perse.records import ProfileReview
past = tuple(ProfileReview(text=f"Old story {{n}}.", review="fine", score=7, item_id=f"p{{n}}") for n in range(3))
readers = (CatalogueReader(f"r{{n:06}}", past, None, "") for n in range(20_000))
texts = (CatalogueText(f"t{{n:05}}", f"A story about {{n}}.", "") for n in range(50_000))
plan = make_catalogue(Path({str(tmp_path / "run")!r}), readers, texts, identity="x", size=50_000)
print(plan.rows, len(plan.shards), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=400)
    assert done.returncode == 0, done.stderr
    rows, shards, megabytes = map(int, done.stdout.split())
    assert (rows, shards) == (1_000_000_000, 20_000)
    assert megabytes < 1500 and sum(path.stat().st_size for path in (tmp_path / "run").rglob("*.parquet")) < 200 << 20
