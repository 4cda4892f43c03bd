"""Rows that name adapters: one run judges each with its own, shard by shard."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from builders import adapter_on, pointwise_examples, tiny_llama, whole_number_tokenizer

from perse.answering.base import JudgeSettings
from perse.batch.scored import read_run
from perse.batch.sharded.asking import judge_of
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import answers, audit
from perse.batch.sharded.inputs import read_inputs
from perse.batch.sharded.plan import cut, make_plan
from perse.batch.sharded.ranking import best
from perse.batch.sharded.running import Places
from perse.batch.sharded.shard import write_answers
from perse.batch.sharded.shards import Plan
from perse.batch.sharded.starting import Request, Run, start
from perse.batch.sharded.working import work
from perse.engines.kind import LoadOptions
from perse.errors import BadInput, RunMismatch
from perse.identity import reader_key
from perse.judgement import Judgement, Status, Tokens
from perse.judging.judge import Judge

SETTINGS = JudgeSettings(temperature=0.0, max_new_tokens=8, seed=0)
NAMES = ("", "one", "two")


def test_a_shard_has_one_adapter_even_where_a_reader_has_several() -> None:
    rows = [{"adapter": adapter, "reader": "r", "n": n} for adapter in NAMES for n in range(3)]
    shards = [*cut(rows, 4)]
    assert [row for shard in shards for row in shard] == rows
    assert [{row["adapter"] for row in shard} for shard in shards] == [{""}, {"one"}, {"two"}]


def lines(path: Path, names: tuple[str, ...] = NAMES) -> Path:
    some = pointwise_examples(2, 3)
    told = [one.model_dump(exclude_none=True) | {"adapter": names[n % len(names)]} for n, one in enumerate(some)]
    path.write_text("".join(json.dumps(one) + "\n" for one in told))
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model and two adapters of it."""
    folder = tmp_path_factory.mktemp("adapters")
    tokenizer = whole_number_tokenizer()
    tokenizer.save_pretrained(folder / "base")
    tiny_llama(tokenizer).save_pretrained(folder / "base")
    adapter_on(folder / "base", folder / "own" / "one")
    adapter_on(folder / "base", folder / "own" / "two" / "adapter", r=8)  # as a training run leaves it
    return folder


def test_the_best_texts_of_a_reader_whom_several_adapters_judged_are_not_told(tmp_path: Path) -> None:
    def planned(name: str, names: tuple[str, ...]) -> tuple[Places, Plan]:
        plan = make_plan(tmp_path / name, read_inputs(str(lines(tmp_path / f"{name}.jsonl", names))), identity="x", size=9)
        places = Places(tmp_path / name)
        for shard in plan.shards:
            write_answers(places.answers(shard), [answer(id, shard.adapter) for id in plan.ids(shard)])
        return places, plan

    with pytest.raises(
        BadInput, match="reader 'r0' were judged with several adapters, which are several judges; merge without"
    ):
        [*best(*planned("mixed", ("one", "two")), 2)]
    each_their_own = best(*planned("whole", ("one", "one", "one", "two", "two", "two")), 2)
    assert [(one.reader, one.rank) for one in each_their_own] == [("r0", 1), ("r0", 2), ("r1", 1), ("r1", 2)]


def answer(id: str, adapter: str) -> Judgement:
    return Judgement(
        id=id, question="pointwise_score", status=Status.OK, label="7", k_effective=1, model="m", adapter=adapter or None,
        tokens=Tokens(prompt=1, cached=0, generated=1),
    )  # fmt: skip


def begun(out: Path, place: Path, source: Path, *, adapters: Path | None) -> Run:
    request = Request(
        str(place / "base"), LoadOptions("float32"), SETTINGS, {"sha256": "x"}, question="pointwise_score", shard_rows=2,
        adapters=adapters,
    )  # fmt: skip
    return start(out, request, read_inputs(str(source)))


@pytest.mark.slow
def test_readers_who_chose_an_adapters_weights_are_counted_of_what_it_judged(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place, tmp_path / "p")
    told = {"run": {"kind": "train"}, "context": {"choosers": [reader_key("r0")]}}
    (tmp_path / "p" / "own" / "one" / "manifest.json").write_text(json.dumps(told))
    run = begun(tmp_path / "run", tmp_path / "p", lines(tmp_path / "in.jsonl"), adapters=tmp_path / "p" / "own")
    for shard in run.plan.shards:
        write_answers(Places(run.folder).answers(shard), [answer(id, shard.adapter) for id in run.plan.ids(shard)])
    assert read_run(run.folder).chosen_by == 1  # of three of this reader, each judged otherwise


@pytest.mark.slow
def test_each_row_is_judged_with_the_adapter_that_it_names(place: Path, tmp_path: Path) -> None:
    run = begun(tmp_path / "run", place, lines(tmp_path / "in.jsonl"), adapters=place / "own")
    assert [shard.adapter for shard in run.plan.shards] == ["", "one", "two"]
    asker, at_once = judge_of(run)
    work(Places(run.folder), run.plan, asker, Claims(run.folder / "claims", Holder.me("w")), session="s", at_once=at_once)
    assert audit(Places(run.folder), run.plan).whole
    told = {one.id: one for some in answers(Places(run.folder), run.plan) for one in some}
    folders = {"one": "one", "two": "two/adapter"}
    for n, name in enumerate(NAMES):
        judge = str(place / "base") + (f"+{place / 'own' / folders[name]}" if name else "")
        alone = Judge.load(judge, dtype="float32").ask(run.question, pointwise_examples(2, 3)[n::3], SETTINGS)
        assert [told[one.id].distribution for one in alone] == [one.distribution for one in alone], name
        assert {told[one.id].adapter for one in alone} == {name or None}
    assert len({json.dumps(one.distribution) for one in told.values()}) == 6, "the adapters make a difference"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "adapters", "said"),
    [
        (("one", "three"), "own", "in.jsonl, line 2: .*own has no adapter 'three'; there are one, two"),
        (("", "../base"), "own", "in.jsonl, line 2: .*own has no adapter '../base'"),
        (("", "one"), None, "in.jsonl, line 2: the adapter 'one' is named; say with --adapters where it is"),
        (("", "one"), "none", "none: no such folder; --adapters is a folder of adapters"),
        (("", "base"), ".", "in.jsonl, line 2: there is no adapter .*base"),
    ],
)
def test_an_adapter_that_is_not_there_is_named_with_its_line(
    place: Path, tmp_path: Path, names: tuple[str, ...], adapters: str | None, said: str
) -> None:
    with pytest.raises(BadInput, match=said):
        begun(tmp_path / "run", place, lines(tmp_path / "in.jsonl", names), adapters=place / adapters if adapters else None)
    assert not (tmp_path / "run" / "plan").exists()


@pytest.mark.slow
def test_an_adapter_that_was_trained_on_since_is_no_longer_the_runs(place: Path, tmp_path: Path) -> None:
    shutil.copytree(place / "own", tmp_path / "own")
    run = begun(tmp_path / "run", place, lines(tmp_path / "in.jsonl", ("one",)), adapters=tmp_path / "own")
    adapter_on(place / "base", tmp_path / "own" / "one", r=2)
    asker, _ = judge_of(run)
    assert asker.adapted is not None
    with pytest.raises(RunMismatch, match="the adapter 'one' in .* is not the one that the run was begun with"):
        asker.adapted("one")


def test_an_adapter_that_is_no_name_is_refused(tmp_path: Path) -> None:
    [one, *_] = pointwise_examples(1, 1)
    (tmp_path / "in.jsonl").write_text(json.dumps(one.model_dump(exclude_none=True) | {"adapter": 3}) + "\n")
    with pytest.raises(BadInput, match="in.jsonl, line 1: field 'adapter' is no name"):
        [*read_inputs(str(tmp_path / "in.jsonl"))]
