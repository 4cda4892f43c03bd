"""PerSum and Per-MPST, killed after every few answers or met by a full disk: the same files as without, and nothing asked twice."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from full_disks import hit_every_write
from kills import Script, check_nothing_lost
from persum_worlds import Scoring, write_table
from test_per_mpst import PLOTS, Llama

from perse.data.options import PointwiseOptions
from perse.data.per_mpst import PerMpstOptions, build_per_mpst
from perse.data.persum.build import build_persum
from perse.data.persum.options import PersumOptions
from perse.data.rewriting.plots import RewriteOptions
from perse.engines.scripted import ScriptedEngine
from perse.judging.judge import Judge
from perse.rendering.prompt import TextRenderer
from perse.writing.writer import Writer

Prepare = Callable[[Path], object]
Ask = Callable[[Path, Script], None]


def two_users(folder: Path) -> None:
    write_table(folder, users=2)


def persum(folder: Path, script: Script) -> None:
    judge = Judge(ScriptedEngine(script), TextRenderer(max_words=5000), name="scripted")
    build_persum(PersumOptions(reviews=(folder / "Toy_Pianos.csv",), out=folder / "out" / "persum", limit=5), judge)


def eight_plots(folder: Path) -> None:
    plots = [{"item_id": one["item_id"], "text": one["plot"]} for one in PLOTS[:8]]
    reviews = [
        {"reviewer_id": f"u{who}", "item_id": plot["item_id"], "score": 1 + (who + n) % 10, "review": f"no. {n} of {who}"}
        for who in range(4)
        for n, plot in enumerate(plots)
    ]
    for name, lines in (("plots", plots), ("reviews", reviews)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")


def per_mpst(folder: Path, script: Script) -> None:
    judge = Judge(ScriptedEngine(script, batch=1), TextRenderer(), name="scripted")
    build = PointwiseOptions(reviews=folder / "reviews.jsonl", out=folder / "out" / "set", valid=0.3)
    rewriting = RewriteOptions(writer="scripted", words=30, cache=folder / "out" / "set.work" / "answers.sqlite")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Writer, "load", lambda *_, **__: Writer(judge))
        build_per_mpst(PerMpstOptions(plots=folder / "plots.jsonl", build=build, rewriting=rewriting))


BUILDS = [
    pytest.param(persum, lambda message, seed: Scoring()._answer(message), two_users, id="persum"),
    pytest.param(per_mpst, lambda message, seed: Llama().answer(message), eight_plots, id="per-mpst"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("ask", "say", "prepare"), BUILDS)
def test_a_build_that_is_killed_loses_no_answer(ask: Ask, say: Script, prepare: Prepare, tmp_path: Path) -> None:
    check_nothing_lost(ask, say, tmp_path, out="out", prepare=prepare, after=3)


@pytest.mark.integration
@pytest.mark.parametrize(("ask", "say", "prepare"), BUILDS)
def test_a_build_that_meets_a_full_disk_anywhere_goes_on_to_the_same_data(
    ask: Ask, say: Script, prepare: Prepare, tmp_path: Path
) -> None:
    assert hit_every_write(lambda folder: ask(folder, say), tmp_path, out="out", sizes=8, prepare=prepare) > 10
