"""PerSum and Per-MPST, killed after every few answers: the same files as of a build that never was, and nothing asked twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from killed import Script, check_nothing_lost
from test_per_mpst import PLOTS, Llama
from test_persum import Scoring, write_table

from perse.data.options import PointwiseOptions
from perse.data.per_mpst import PerMpstOptions, build_per_mpst
from perse.data.persum import build_persum
from perse.data.persum_options import PersumOptions
from perse.data.rewriting.plots import RewriteOptions
from perse.engines.scripted import ScriptedEngine
from perse.judge import Judge
from perse.rendering import TextRenderer
from perse.writing.writer import Writer


def test_a_persum_build_that_is_killed_loses_no_answer(tmp_path: Path) -> None:
    def ask(folder: Path, script: Script) -> None:
        judge = Judge(ScriptedEngine(script), TextRenderer(max_words=5000), name="scripted")
        build_persum(PersumOptions(reviews=(folder / "Toy_Pianos.csv",), out=folder / "out" / "persum", limit=5), judge)

    check_nothing_lost(
        ask,
        lambda message, seed: Scoring()._answer(message),
        tmp_path,
        out="out",
        prepare=lambda folder: write_table(folder, users=2),
        after=4,
    )


def test_a_per_mpst_build_that_is_killed_loses_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def prepare(folder: Path) -> None:
        rows = [
            {"reviewer_id": f"u{who}", "item_id": plot["item_id"], "score": 1 + (who + n) % 10, "review": f"no. {n} of {who}"}
            for who in range(4)
            for n, plot in enumerate(PLOTS[:8])
        ]
        for name, lines in (
            ("plots", [{"item_id": one["item_id"], "text": one["plot"]} for one in PLOTS[:8]]),
            ("reviews", rows),
        ):
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    def ask(folder: Path, script: Script) -> None:
        judge = Judge(ScriptedEngine(script, batch=1), TextRenderer(), name="scripted")
        monkeypatch.setattr(Writer, "load", lambda *_, **__: Writer(judge))
        build = PointwiseOptions(reviews=folder / "reviews.jsonl", out=folder / "out" / "set", valid=0.3)
        rewriting = RewriteOptions(writer="scripted", words=30, cache=folder / "out" / "set.work" / "answers.sqlite")
        build_per_mpst(PerMpstOptions(plots=folder / "plots.jsonl", build=build, rewriting=rewriting))

    check_nothing_lost(ask, lambda message, seed: Llama().answer(message), tmp_path, out="out", prepare=prepare, after=3)
