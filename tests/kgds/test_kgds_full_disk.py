"""Every kgds command that asks, on a disk that fills up anywhere: one sentence, nothing half-written, the same answers in the end."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from draft_builders import fill_in, obedient, write_drafts
from draft_builders import run as build_in
from full_disks import hit_every_write
from kgds_builders import benchmark
from test_feedback import a_judge, preferring, six
from test_generate import Model
from test_kgds_agreement import scripted, yes_to_all
from test_verify import Asked, run_folder, summary, verified

from perse.kgds.agreement.study import agreement
from perse.kgds.asking.feedback import feedback
from perse.kgds.asking.generate import generate
from perse.kgds.asking.opinion_errors import detect


def generated(folder: Path) -> None:
    generate(Model().writer, benchmark(), folder / "run", patterns=["ebs-aos"])


def verified_and_classified(folder: Path) -> None:
    verified(Asked().judge, folder / "run")
    detect(Asked().judge, benchmark(), folder / "run", name="verified")


def preferred(folder: Path) -> None:
    feedback(a_judge(preferring("1, 3")), benchmark(6), folder / "run", resamples=100)


def agreed(folder: Path) -> None:
    agreement(scripted(yes_to_all), benchmark(2), folder / "run", limit=4, resamples=100)


@pytest.mark.integration
@pytest.mark.parametrize("work", [generated, verified_and_classified, preferred, agreed])
def test_a_full_disk_costs_no_answer_and_changes_none(
    tmp_path: Path, work: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Results tell seconds, and those of the answers that were kept just before the disk was full are lost.
    monkeypatch.setattr("perse.judging.loop.time", SimpleNamespace(monotonic=lambda: 0.0))
    monkeypatch.setattr("perse.kgds.agreement.study.read_timing", lambda path: (1, 0.0))
    summaries = {verified_and_classified: lambda folder: run_folder(folder, summary(1)), preferred: six}
    assert hit_every_write(work, tmp_path, sizes=5, prepare=summaries.get(work, lambda folder: folder)) > 5


@pytest.mark.slow
def test_a_build_that_meets_a_full_disk_goes_on_to_the_same_benchmark(tmp_path: Path) -> None:
    """To the sheet, and from the sheet to the end."""
    begun = tmp_path / "begun"
    begun.mkdir()

    def begin(folder: Path) -> None:
        build_in(folder, obedient, drafts=folder / "drafts.jsonl")

    assert hit_every_write(begin, tmp_path / "first", out="new", sizes=5, prepare=write_drafts) > 2
    build_in(begun, obedient)
    fill_in(begun)
    with (begun / "new" / "key-facts.csv").open(encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) > 2

    def copied(folder: Path) -> None:
        shutil.copytree(begun, folder, dirs_exist_ok=True)

    assert hit_every_write(begin, tmp_path / "second", out="new", sizes=5, prepare=copied) > 4
