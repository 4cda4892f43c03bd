"""A run in shards says whose answers it holds, as any run does: for the card of its judge, and for the studies and reports of it."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from publishing_builders import Published, change

from perse.answering.base import JudgeSettings
from perse.batch.judged_by import answers_digest, digests, judge_places, judged_by, weights_of
from perse.batch.scored import read_run
from perse.batch.sharded.asking import judge_of
from perse.batch.sharded.claims import Claims, Holder
from perse.batch.sharded.finishing import merge
from perse.batch.sharded.inputs import Row
from perse.batch.sharded.plan import read_plan
from perse.batch.sharded.running import Places
from perse.batch.sharded.starting import JUDGE, Request, start
from perse.batch.sharded.working import work
from perse.engines.kind import LoadOptions
from perse.errors import BadInput
from perse.publishing.card import card_text
from perse.reporting.report import write_report

pytestmark = pytest.mark.slow


def in_shards(folder: Path, judge: Path, scored: Path) -> Path:
    """The answers of a scored run as a run in shards of `judge`."""
    known = read_run(scored)
    rows = [Row(one, "in", n) for n, one in enumerate(known.examples)]
    options = LoadOptions("float32")
    request = Request(
        str(judge), options, JudgeSettings(temperature=0), {"sha256": "x"}, question="pointwise_score", shard_rows=4
    )
    run = start(folder, request, iter(rows))
    asker, _ = judge_of(run)
    told = {one.id: one for one in known.judgements}
    asker = replace(asker, ask=lambda examples: [told[one.id] for one in examples])
    work(Places(folder), run.plan, asker, Claims(folder / "claims", Holder.me("w")), session="s")
    return folder


def test_the_answers_of_a_run_in_shards_enter_the_card_of_its_judge_alone(judge: Published, tmp_path: Path) -> None:
    own = in_shards(tmp_path / "own", judge.run, judge.scored)
    assert "### own" in card_text(judge.run, scored=[own])
    others = in_shards(tmp_path / "others", judge.base, judge.scored)
    for unidentified in (False, True):
        with pytest.raises(BadInput, match="was judged with other weights than those of"):
            card_text(judge.run, scored=[others], unidentified=unidentified)


def test_a_run_in_shards_that_does_not_say_which_weights_answered_enters_no_card_unless_vouched_for(
    judge: Published, tmp_path: Path
) -> None:
    own = in_shards(tmp_path / "own", judge.run, judge.scored)
    for untold in (partial(change, own, JUDGE, judge__digest=""), (own / JUDGE).unlink):
        untold()
        with pytest.raises(BadInput, match="does not say which weights answered .*, so its numbers may be another judge's"):
            card_text(judge.run, scored=[own])
        card = card_text(judge.run, scored=[own], unidentified=True)
        assert "### own" in card and "- which weights answered is not known" in card


def test_a_run_in_shards_is_reported_with_its_judge_and_its_digests(judge: Published, tmp_path: Path) -> None:
    own = in_shards(tmp_path / "own", judge.run, judge.scored)
    assert weights_of(judged_by(own)) == weights_of(judged_by(judge.scored)) and judge_places(own)
    run = read_run(own)
    merge(Places(own), read_plan(own), tmp_path / "all.jsonl")
    assert answers_digest(own) == hashlib.sha256((tmp_path / "all.jsonl").read_bytes()).hexdigest()
    assert digests(own)["judgements.jsonl"] == answers_digest(own) and len(run.judgements) == len(run.examples)
    page = write_report([own], out=tmp_path / "report", resamples=100).read_text(encoding="utf-8")
    assert f"digest {str(weights_of(judged_by(own)))[:12]}" in page
