"""Run folders of strangers and damaged ones: no code is run, no key is kept, no file is lost, and no answer is taken that is none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from builders import pointwise_examples
from command_line import perse
from pyarrow import parquet
from scripted_package import install

from perse.answering.base import JudgeSettings
from perse.batch.sharded.asking import judge_of
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import audit, merge, staged_file
from perse.batch.sharded.inputs import Row, _shown, digest_of_inputs
from perse.batch.sharded.pieces import Pieces
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import read_answers, write_answers
from perse.batch.sharded.starting import Request, Run, agree_on, read, start
from perse.batch.sharded.underway import status
from perse.engines.kind import LoadOptions
from perse.errors import BadInput, RunMismatch
from perse.judgement import Judgement, Status, Tokens
from perse.records import example_lines


def begun(folder: Path, *, files: tuple[str, ...] = ()) -> Run:
    rows = [Row(one, "in", n) for n, one in enumerate(pointwise_examples(4, 4))]
    request = Request(
        "openai:http://127.0.0.1:1/v1#m",
        LoadOptions(),
        JudgeSettings(temperature=0),
        {"sha256": "x"},
        files=files,
        shard_rows=4,
    )
    return start(folder, request, iter(rows))


def answered(run: Run) -> None:
    for shard in run.plan.shards:
        found = [
            Judgement(
                id=id,
                question=run.question.name,
                status=Status.OK,
                label="7",
                text="fine",
                expected=6.5,
                distribution={str(n): 0.1 for n in range(1, 11)},
                mass=0.9,
                k_effective=1,
                tokens=Tokens(prompt=3, cached=1, generated=2),
                model="m",
            )
            for id in run.plan.ids(shard)
        ]
        write_answers(Places(run.folder).answers(shard), found)


def test_a_strangers_run_that_trusts_code_is_not_trusted(tmp_path: Path) -> None:
    run = begun(tmp_path)
    trusting = replace(run, loading=replace(run.loading, trust_remote_code=True))
    with pytest.raises(
        BadInput, match="was begun with --trust-remote-code, which runs code that came with the judge; give it again"
    ):
        judge_of(trusting)


@pytest.mark.slow
def test_what_lies_in_the_folder_that_one_is_in_is_no_module_of_the_workers(tmp_path: Path) -> None:
    env = install(tmp_path / "package")
    here = tmp_path / "here"
    here.mkdir()
    (here / "in.jsonl").write_text("".join(one.model_dump_json(exclude_none=True) + "\n" for one in pointwise_examples(2, 4)))
    for name in ("random", "typer", "duckdb"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\nraise SystemExit(9)\n")
    script = "import sys; sys.path.remove('') if '' in sys.path else None; sys.argv = ['perse', 'score', '--examples', 'in.jsonl', '--judge', 'scripted:a', '--out', 'run', '--driver', 'local']; from perse.commands.app import main; main()"  # fmt: skip
    done = subprocess.run([sys.executable, "-P", "-c", script], cwd=here, env=env, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0 and "(8 ok)" in " ".join(done.stderr.split()), done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://me:PASSWORD@host:80/a/b.jsonl", "http://host:80/a/b.jsonl"),
        ("https://host/b.jsonl?X-Amz-Signature=KEY&token=KEY#KEY", "https://host/b.jsonl"),
        ("simplecache::http://me:PASSWORD@host/b.jsonl", "simplecache::http://host/b.jsonl"),
        ("s3://bucket/b.jsonl", "s3://bucket/b.jsonl"),
    ],
)
def test_an_address_is_kept_and_told_without_keys(address: str, said: str) -> None:
    assert _shown(address) == said


def test_two_merges_to_one_file_are_each_whole_and_nothing_beside_it_is_touched(tmp_path: Path) -> None:
    out, precious = tmp_path / "all.jsonl", tmp_path / "precious.txt"
    precious.write_text("precious")
    (tmp_path / ".all.jsonl.perse-tmp").symlink_to(precious)
    with staged_file(out) as one:
        one.write_text("first")
        with staged_file(out) as other:
            other.write_text("second")
        assert out.read_text() == "second"
    assert out.read_text() == "first" and precious.read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".all.jsonl.perse-tmp", "all.jsonl", "precious.txt"]


def test_a_file_that_a_run_was_planned_from_is_not_replaced_by_its_answers(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("mine\n")
    run = begun(tmp_path / "run", files=(digest_of_inputs(str(source)),))
    answered(run)
    told = perse("score", "merge", run.folder, "--out", source, "--overwrite")
    assert told.returncode == 2 and "was planned from, which is never replaced" in " ".join(told.stderr.split())
    assert source.read_text() == "mine\n"


@pytest.mark.slow
def test_no_changed_byte_of_an_answer_is_taken_for_an_answer(tmp_path: Path) -> None:
    run = begun(tmp_path)
    answered(run)
    path = Places(run.folder).answers(run.plan.shards[1])
    whole, before = path.read_bytes(), read_answers(path)
    for place in range(4, len(whole), 41):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x10]) + whole[place + 1 :])
        found = audit(Places(run.folder), run.plan)
        if found.whole:
            assert read_answers(path) == before, f"byte {place}"
        else:
            assert found.damaged == (run.plan.shards[1].id,)
            assert not path.exists()
    path.write_bytes(whole)
    assert audit(Places(run.folder), run.plan).whole


def test_answers_of_other_examples_are_not_merged(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    answered(run)
    places = Places(run.folder)
    places.answers(run.plan.shards[0]).write_bytes(places.answers(run.plan.shards[1]).read_bytes())
    with pytest.raises(BadInput, match="has the answers of other examples; `perse score audit` sets it aside"):
        merge(places, run.plan, tmp_path / "all.jsonl")
    assert not (tmp_path / "all.jsonl").exists()


def test_strange_files_in_a_run_are_a_sentence_or_nothing(tmp_path: Path) -> None:
    run = begun(tmp_path)
    answered(run)
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "telemetry" / "x.jsonl").write_text('{}\n{"prompt": 1, "cached": 1, "ended": "x", "seconds": 1, "judged": 4}\n')
    assert status(Places(tmp_path), run.plan).judged == 16
    for content in ("", "[]", "{"):
        (tmp_path / "judge.json").write_text(content)
        with pytest.raises(BadInput, match=r"judge\.json"):
            agree_on(run, {"judge": {"model": "m"}})
    claims = Claims(tmp_path / "claims", Holder.me("w"))
    os.mkfifo(tmp_path / "claims" / run.plan.shards[0].id)
    with pytest.raises(BadInput, match="is no claim, but stands in the place of one; move it away"):
        claims.take(run.plan.shards[0].id)
    [plan_rows] = (tmp_path / "plan").glob("rows-*.parquet")
    plan_rows.write_bytes(Places(tmp_path).answers(run.plan.shards[0]).read_bytes())
    plan = read_plan(tmp_path)
    with pytest.raises(BadInput, match="rows-00000.parquet is damaged"):
        plan.examples(plan.shards[0])


@pytest.mark.parametrize("number", ["9" * 400, "NaN", "Infinity", "1e308", "-1", "true"])
@pytest.mark.parametrize("name", ["prompt", "cached", "ended", "seconds", "judged"])
def test_a_damaged_number_of_a_worker_is_passed_over(tmp_path: Path, number: str, name: str) -> None:
    whole = {"prompt": 10, "cached": 5, "ended": 100, "seconds": 2, "judged": 4}
    run = begun(tmp_path)
    (tmp_path / "telemetry").mkdir()
    damaged = json.dumps({**whole, name: "N"}).replace('"N"', number)
    (tmp_path / "telemetry" / "x.jsonl").write_text(json.dumps(whole) + "\n" + damaged + "\n")
    told = status(Places(tmp_path), run.plan, now=1000.0)
    assert (told.each, told.shared) == (2.0, 0.5)


@pytest.mark.parametrize("name", ["../../thesis.txt", "/etc/passwd", "x", "", "0123456789abcdeg", None, 7])
def test_a_plan_whose_shards_have_names_that_none_gives_is_refused_before_any_path_is_made_of_them(
    tmp_path: Path, name: object
) -> None:
    run = begun(tmp_path / "run")
    (tmp_path / "thesis.txt").write_text("mine")
    path = tmp_path / "run" / "plan" / "shards.parquet"
    rows = parquet.read_table(path).to_pylist()
    rows[0]["id"] = name
    parquet.write_table(pa.Table.from_pylist([{**row, "id": name} for row in rows]), path)
    with pytest.raises(BadInput, match="it has a shard that no plan has"):
        read_plan(run.folder)


def test_what_lies_among_the_claims_and_is_none_stays_there_however_old_it_is(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    claims = Claims(tmp_path / "run" / "claims", Holder.me("w"))
    gone = tmp_path / "run" / "claims" / run.plan.shards[0].id
    mine = [tmp_path / "run" / "claims" / name for name in ("notes.txt", "0123")]
    for path in (gone, *mine):
        path.write_text("mine")
        os.utime(path, (0, 0))
    (tmp_path / "run" / "claims" / "folder").mkdir()
    os.utime(tmp_path / "run" / "claims" / "folder", (0, 0))
    claims.sweep()
    assert not gone.exists() and all(path.read_text() == "mine" for path in mine)
    assert (tmp_path / "run" / "claims" / "folder").is_dir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="is a link to"):
        Claims(tmp_path / "linked", Holder.me("w"))


def test_a_start_that_was_killed_before_its_manifest_goes_on_and_a_strangers_plan_stays(tmp_path: Path) -> None:
    run = begun(tmp_path / "run")
    whole = {path.name: path.read_bytes() for path in (tmp_path / "run" / "plan").iterdir()}
    (tmp_path / "run" / "manifest.json").unlink()
    assert [one.id for one in begun(tmp_path / "run").plan.shards] == [one.id for one in run.plan.shards]
    assert {path.name: path.read_bytes() for path in (tmp_path / "run" / "plan").iterdir()} == whole
    (tmp_path / "own" / "plan").mkdir(parents=True)
    (tmp_path / "own" / "plan" / "thesis.txt").write_text("mine")
    (tmp_path / "own" / "plan" / "texts.parquet").write_text("mine")
    with pytest.raises(RunMismatch, match=r"plan is there already, and is not as perse left one; choose another folder"):
        begun(tmp_path / "own")
    assert sorted(path.name for path in (tmp_path / "own" / "plan").iterdir()) == ["texts.parquet", "thesis.txt"]
    (tmp_path / "run" / "manifest.json").unlink()
    (tmp_path / "run" / "plan" / "mine.txt").write_text("mine")
    with pytest.raises(RunMismatch, match="is not as perse left one"):
        begun(tmp_path / "run")
    assert (tmp_path / "run" / "plan" / "rows-00000.parquet").exists()


@pytest.mark.parametrize("name", ["shards", "telemetry", "attempts", "pieces", "logs"])
def test_a_run_writes_through_no_link(tmp_path: Path, name: str) -> None:
    begun(tmp_path / "run")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run" / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="is a link to"):
        begun(tmp_path / "run")


@pytest.mark.parametrize(
    "address", ["u:sekrit123@127.0.0.1:9", "http://h#sekrit123", "//u:sekrit123@h", "http:\\\\u:sekrit123@h"]
)
def test_a_servers_address_with_a_key_is_refused_before_anything_is_written(tmp_path: Path, address: str) -> None:
    write_examples = tmp_path / "x.jsonl"
    write_examples.write_text("".join(example_lines(pointwise_examples(1, 1))))
    asked = ["--examples", write_examples, "--judge", "m", "--out", tmp_path / "run", "--driver", "http", "--servers", address]
    said = perse("score", *asked)
    assert said.returncode == 2 and "the server's address" in said.stderr and "sekrit" not in said.stderr
    assert not (tmp_path / "run").exists()


def test_the_pace_of_a_run_is_that_of_its_workers_whatever_a_shard_takes(tmp_path: Path) -> None:
    run = begun(tmp_path)
    now = 1_800_000_000.0
    rng = np.random.default_rng(0)
    (tmp_path / "telemetry").mkdir()
    (tmp_path / "claims").mkdir()
    for number, seconds in enumerate(rng.lognormal(np.log(480), 0.1, size=(64, 8))):
        name, ended, lines = f"m-{number}", now - 3600 + rng.uniform(0, 480), []
        for took in seconds:
            if ended + took < now:
                ended += took
                lines.append(
                    {"shard": "x", "judged": 4096, "seconds": took, "ended": ended, "prompt": 10, "cached": 9, "generated": 1}
                )
        (tmp_path / "telemetry" / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        claim = tmp_path / "claims" / f"{number:016x}"
        claim.write_text(json.dumps({"worker": name, "host": "m", "pid": 1, "started": ""}))
        os.utime(claim, (now - 10, now - 10))
    fresh = tmp_path / "claims" / f"{64:016x}"
    fresh.write_text(json.dumps({"worker": "new", "host": "m", "pid": 1, "started": ""}))
    os.utime(fresh, (now - 10, now - 10))
    gone = tmp_path / "claims" / f"{65:016x}"
    gone.write_text(json.dumps({"worker": "gone", "host": "m", "pid": 1, "started": ""}))
    os.utime(gone, (now - 1000, now - 1000))
    told = status(Places(tmp_path), run.plan, now=now)
    assert told.workers == 65 and told.claimed == 65
    assert told.a_second == pytest.approx(65 * 4096 / 480, rel=0.05)


def test_a_plan_with_a_shard_twice_is_refused_and_a_count_that_is_wrong_is_named(tmp_path: Path) -> None:
    run = begun(tmp_path)
    answered(run)
    path = tmp_path / "plan" / "shards.parquet"
    rows = parquet.read_table(path).to_pylist()
    parquet.write_table(pa.Table.from_pylist([*rows, rows[0]]), path)
    with pytest.raises(BadInput, match="it has a shard twice"):
        read_plan(tmp_path)
    parquet.write_table(pa.Table.from_pylist([{**rows[0], "rows": 99}, *rows[1:]]), path)
    with pytest.raises(BadInput, match="has 4 rows, and the plan says 99"):
        audit(Places(tmp_path), read_plan(tmp_path))


@pytest.mark.parametrize(("column", "value"), [("status", "weird"), ("expected", float("nan")), ("mass", 7.0)])
def test_an_answer_that_cannot_be_is_seen_by_the_audit(tmp_path: Path, column: str, value: object) -> None:
    run = begun(tmp_path)
    answered(run)
    path = Places(tmp_path).answers(run.plan.shards[0])
    table = parquet.read_table(path)
    place = table.schema.get_field_index(column)
    changed = pa.array([value] * table.num_rows, table.schema.field(column).type)
    parquet.write_table(table.set_column(place, table.schema.field(column), changed), path)
    found = audit(Places(tmp_path), run.plan)
    assert found.damaged == (run.plan.shards[0].id,) and not found.whole


@pytest.mark.parametrize(
    ("metadata", "pairs"), [({"size": "0"}, 3), ({"size": "-3"}, 3), ({"size": "many"}, 3), ({}, -5), ({}, 2**62), (None, 3)]
)
def test_groups_of_a_catalogue_that_no_plan_has_are_damaged(
    tmp_path: Path, metadata: dict[str, str] | None, pairs: int
) -> None:
    group = {"name": "x", "pairs": 3, "readers": 1, "chars": 10, "shared": 0}
    Pieces.of([group], size=2, left_out=0, idle=0).write(tmp_path)
    assert len(Pieces.read(tmp_path)) == 2
    table = parquet.read_table(tmp_path / "groups.parquet")
    told = None if metadata is None else {**table.schema.metadata, **{key.encode(): one for key, one in metadata.items()}}
    changed = pa.Table.from_pylist([{**group, "pairs": pairs}], table.schema).replace_schema_metadata(told)
    parquet.write_table(changed, tmp_path / "groups.parquet")
    with pytest.raises(BadInput, match="it has what no plan has"):
        Pieces.read(tmp_path)


@pytest.mark.parametrize(
    ("part", "name", "value", "said"),
    [
        ("context", "question", ["pointwise"], r"question is \['pointwise'\], which is none|question is \[\"pointwise\"\], which is none"),
        ("context", "question", "weird", "question is .*weird.*, which is none of perse's"),
        ("context", "judge", ["x"], "judge is .*, expected a name"),
        ("context", "adapters", ["x"], "has settings that no run has"),
        ("run", "settings", {"weird": 1}, "has settings that no run has"),
        ("context", "question", None, "question is null|question is None"),
    ],
)  # fmt: skip
def test_a_manifest_that_was_edited_is_refused_with_what_stands_there(
    tmp_path: Path, part: str, name: str, value: object, said: str
) -> None:
    run = begun(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    manifest[part][name] = value
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match=said):
        read(run.folder)
