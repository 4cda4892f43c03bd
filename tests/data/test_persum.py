"""PerSum, built whole: answers kept, nothing given away, what was ended goes on."""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from builders import Reworded, tiny_llama
from command_line import perse
from persum_worlds import Scoring, contents, judging
from places import SHARED

from perse import Judge
from perse.data.persum.build import build_persum
from perse.data.persum.folder import load_persum, persum_tables
from perse.data.persum.options import Counts, PersumOptions
from perse.engines.base import LabelDistribution
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, RunMismatch
from perse.rendering.prompt import Renderer

REAL = SHARED / "amazon_reviews" / "Musical_Instruments.csv"


def test_a_build_counts_every_step_and_draws_what_was_asked_for(toy_pianos: Path, tmp_path: Path) -> None:
    """96 candidates, 16 of each code. A history of 7 by the same hand, 6 to 9 others: all pass the filters."""
    out = tmp_path / "persum"
    options = PersumOptions(reviews=(toy_pianos,), out=out, counts={"Toy Pianos": Counts(5, None, 3)})
    seen: list[tuple[int, int]] = []
    summary = build_persum(options, judging(Scoring()), on_progress=lambda done, of: seen.append((done, of)))
    assert summary.funnel["Toy Pianos"] == {
        "reviews": 96, "candidates": 96, "history": 96, "no copy": 96, "overlap": 96, "asked": 96, "answered": 96, "grouped": 48,
    }  # fmt: skip
    assert summary.left_out["Toy Pianos"] == {"neither High, Low nor HHPL": 48}
    assert summary.groups["Toy Pianos"] == {"High": 16, "Low": 16, "HHPL": 16}
    assert summary.samples["Toy Pianos"] == {"High": 5, "Low": 16, "HHPL": 3}
    assert seen[0] == (0, 288) and seen[-1] == (288, 288)
    samples = load_persum(out)
    assert Counter(one.group for one in samples) == {"High": 5, "Low": 16, "HHPL": 3}
    for sample in samples:
        code = re.search(r"scored (\d+)", sample.own.review)[1]  # type: ignore[index]
        assert code == {"High": "555", "Low": "444", "HHPL": "544"}[sample.group]
        assert len(sample.history) == 7
        assert all(
            one.item_id == sample.own.item_id and one.reviewer_id != sample.own.reviewer_id for one in sample.product_reviews
        )
    assert [len(each.rows) for each in persum_tables(summary)] == [8, 1]


def test_the_same_command_gives_the_same_bytes_without_names_or_paths(toy_pianos: Path, tmp_path: Path) -> None:
    folders = [tmp_path / side / "persum" for side in ("one", "two")]
    for out in folders:
        build_persum(PersumOptions(reviews=(toy_pianos,), out=out), judging(Scoring()))
    one, two = map(contents, folders)
    assert one == two and list(one) == ["README.md", "manifest.json", "samples.jsonl"]
    for content in one.values():
        assert b"USER" not in content and str(tmp_path).encode() not in content
    manifest = json.loads(one["manifest.json"])
    assert manifest["judge"]["model"] == "scripted" and manifest["judgements"]["product sentiment"] == {"ok": 96}
    assert manifest["sources"]["Toy Pianos"]["name"] == "Toy_Pianos.csv" and len(manifest["prompts_sha256"]) == 3
    assert not [path for path in folders[0].parent.iterdir() if path.name not in ("persum", "persum.work")]


def test_without_a_judge_the_first_filters_are_counted_and_nothing_is_written(toy_pianos: Path, tmp_path: Path) -> None:
    summary = build_persum(PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum", limit=10), None)
    assert summary.funnel["Toy Pianos"] == {
        "reviews": 96, "candidates": 96, "history": 96, "no copy": 96, "overlap": 96, "asked": 10
    }  # fmt: skip
    assert list(tmp_path.iterdir()) == [] and summary.out is None and len(persum_tables(summary)) == 1


def test_a_build_that_was_ended_goes_on_where_it_was_and_equals_one_that_was_not(toy_pianos: Path, tmp_path: Path) -> None:
    whole, ended = (PersumOptions(reviews=(toy_pianos,), out=tmp_path / name / "persum") for name in ("whole", "ended"))
    build_persum(whole, judging(Scoring()))
    with pytest.raises(KeyboardInterrupt):
        build_persum(ended, judging(Scoring(stop_after=100)))
    assert not ended.out.exists()
    with (ended.work / "judgements.jsonl").open("a", encoding="utf-8") as file:
        file.write('{"id": "torn')
    engine = Scoring()
    build_persum(ended, judging(engine))
    assert engine.asked == 288 - 100, "what had been answered was kept, one by one"
    assert contents(whole.out) == contents(ended.out)


def test_other_thresholds_ask_nothing_anew_and_another_seed_is_another_run(toy_pianos: Path, tmp_path: Path) -> None:
    def options(**settings: Any) -> PersumOptions:
        return PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum", overwrite=True, **settings)

    build_persum(options(), judging(Scoring()))
    engine = Scoring()
    summary = build_persum(options(high=3.0, low=1.0), judging(engine))
    assert engine.asked == 0
    # Above 3 is high now: 555, 444, 544 and 554; 222 is low; of 355 the history is low and the product high, so it is none.
    assert summary.groups["Toy Pianos"] == {"High": 64, "Low": 16, "HHPL": 0}
    with pytest.raises(RunMismatch, match=r"persum\.work holds a run with other settings"):
        build_persum(options(limit=10), judging(Scoring()))
    with pytest.raises(RunMismatch, match=r"settings\.seed was 0, is 1"):
        build_persum(options(seed=1), judging(Scoring()))
    with pytest.raises(RunMismatch, match=r"prompts_sha256\.\S+ \S+ was"):
        build_persum(options(), Judge(Scoring(), Reworded(max_words=5000), name="scripted"))  # type: ignore[arg-type]


def test_judgements_that_failed_are_counted_by_status(toy_pianos: Path, tmp_path: Path) -> None:
    summary = build_persum(PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum"), judging(Scoring(silent_at="444")))
    assert summary.funnel["Toy Pianos"]["answered"] == 80
    assert summary.left_out["Toy Pianos"]["judge: unparsed at history coverage"] == 16
    assert summary.groups["Toy Pianos"]["Low"] == 0
    assert json.loads((tmp_path / "persum" / "manifest.json").read_text())["judgements"]["history coverage"] == {
        "ok": 80,
        "unparsed": 16,
    }


def test_where_nothing_is_grouped_nothing_is_written_and_the_scores_are_told(toy_pianos: Path, tmp_path: Path) -> None:
    options = PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum", limit=20)
    with pytest.raises(
        BadInput, match=r"no sample: of 20 candidates .* \(history_coverage from 1.00 to 1.00; product_coverage"
    ):
        build_persum(options, judging(Scoring(always="1")))
    assert not options.out.exists() and options.work.exists()
    options = PersumOptions(reviews=(toy_pianos,), out=tmp_path / "none", min_overlap=2.9)
    with pytest.raises(BadInput, match="the filters before the judge left no candidate"):
        build_persum(options, judging(Scoring()))
    assert not options.work.exists()


def test_a_folder_with_files_is_only_replaced_if_it_is_one_of_ours_and_on_request(toy_pianos: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(toy_pianos,), out=out), judging(Scoring()))
    with pytest.raises(BadInput, match="already holds a PerSum folder"):
        build_persum(PersumOptions(reviews=(toy_pianos,), out=out), judging(Scoring()))
    build_persum(PersumOptions(reviews=(toy_pianos,), out=out, overwrite=True), judging(Scoring()))
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(BadInput, match="is no PerSum folder, so it is not overwritten"):
        build_persum(PersumOptions(reviews=(toy_pianos,), out=tmp_path / "mine", overwrite=True), judging(Scoring()))


@pytest.mark.parametrize("side", ["product_reviews", "history"])
def test_a_planted_copy_is_refused_with_its_line(side: str, toy_pianos: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(toy_pianos,), out=out, counts={"Toy Pianos": Counts(3, 0, 0)}), judging(Scoring()))
    path = out / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[1][side][2]["review"] = lines[1]["own"]["review"].upper()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    with pytest.raises(BadInput, match=rf"samples.jsonl, line 2: sample '.*': leak: {side}\[2\] is a copy"):
        load_persum(out)


def test_a_users_review_among_those_of_others_is_refused_with_its_line(toy_pianos: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(toy_pianos,), out=out, counts={"Toy Pianos": Counts(1, 0, 0)}), judging(Scoring()))
    path = out / "samples.jsonl"
    sample = json.loads(path.read_text("utf-8"))
    sample["product_reviews"][0]["reviewer_id"] = sample["own"]["reviewer_id"]
    path.write_text(json.dumps(sample) + "\n", "utf-8")
    with pytest.raises(
        BadInput, match=r"line 1: .* product_reviews\[0\] is by 'r\w+' of .* expected another reviewer of the same"
    ):
        load_persum(out)
    with pytest.raises(BadInput, match="found no PerSum folder"):
        load_persum(tmp_path)


@pytest.mark.slow
def test_the_hubs_library_reads_the_folder(toy_pianos: Path, tmp_path: Path) -> None:
    """In a process of its own, since the library reads its settings when it is imported."""
    pytest.importorskip("datasets")
    out = tmp_path / "persum"
    build_persum(PersumOptions(reviews=(toy_pianos,), out=out), judging(Scoring()))
    program = (
        "import sys, datasets; data = datasets.load_dataset(sys.argv[1]); "
        "print(list(data), len(data['test']), data['test'][0]['group'], len(data['test'][0]['history']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(out)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['test'] 48 High 7"


def test_an_exact_judge_gives_expected_scores(
    toy_pianos: Path, tmp_path: Path, tokenizers: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A random model hardly ever wants to answer with a label; it is made sure that it does."""
    tokenizer = tokenizers["chatml"]
    engine = TransformersEngine(tiny_llama(tokenizer))
    read = engine.label_distributions
    sure = lambda *asked: [LabelDistribution(one.probabilities, 0.9, one.cached) for one in read(*asked)]  # type: ignore[union-attr]  # noqa: E731
    monkeypatch.setattr(engine, "label_distributions", sure)
    judge = Judge(engine, Renderer(tokenizer, 2048), name="smollm2-135m")
    options = PersumOptions(reviews=(toy_pianos,), out=tmp_path / "persum", limit=4, low=1.0, high=4.999)
    summary = build_persum(options, judge)
    assert summary.samples["Toy Pianos"]["Low"] == 4
    assert "never trained to judge" in summary.notes[0]
    assert "never trained to judge" in (options.out / "README.md").read_text("utf-8")
    answers = [json.loads(line) for line in (options.work / "judgements.jsonl").read_text("utf-8").splitlines()]
    expected = {(one["id"], one["question"]): one["expected"] for one in answers}
    for sample in load_persum(options.out):
        assert sample.scores.product_sentiment == pytest.approx(expected[f"{sample.id}/product", "sentiment"], abs=5e-5)
        assert 1 < sample.scores.history_coverage < 5


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason="Amazon's reviews are not at ../shared/data")
def test_of_real_reviews_each_filter_leaves_some_and_some_are_copies(tmp_path: Path) -> None:
    part = tmp_path / "Musical_Instruments.csv"
    with REAL.open(encoding="utf-8", newline="") as whole, part.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(itertools.islice(csv.reader(whole), 2001))
    summary = build_persum(PersumOptions(reviews=(part,), out=tmp_path / "persum"), None)
    assert list(summary.funnel["Musical Instruments"].values()) == [2000, 2000, 107, 107, 80, 80]


def test_a_folder_that_keeps_repeats_is_read_with_the_copies_in_it(toy_pianos: Path, tmp_path: Path) -> None:
    out = tmp_path / "persum"
    options = PersumOptions(reviews=(toy_pianos,), out=out, counts={"Toy Pianos": Counts(3, 0, 0)}, keep_repeats=True)
    build_persum(options, judging(Scoring()))
    path = out / "samples.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[1]["history"][2]["review"] = lines[1]["own"]["review"].upper()
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert len(load_persum(out)) == 3


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--history-over", 7), "history of 7 reviews or fewer"),
        (("--history-under", 7), "history of 7 reviews or more"),
        (("--chars-under", 500), "history of 500 characters or more"),
        (("--rouge-against", "whole", "--min-overlap", 1), "overlap below 1"),
    ],
)
def test_the_command_filters_by_the_bounds_it_is_given(
    given: tuple[object, ...], why: str, toy_pianos: Path, tmp_path: Path
) -> None:
    done = perse("data", "persum", "--reviews", toy_pianos, "--out", tmp_path / "persum", *given, "--json")
    assert json.loads(done.stdout)["left_out"] == {"Toy Pianos": {why: 96}}, done.stderr
    assert f"left out, Toy Pianos: 96 {why}" in done.stderr


@pytest.mark.slow
def test_the_command_says_what_the_judge_did_not_read_and_the_folder_with_what_it_was_built(
    toy_pianos: Path, tmp_path: Path, answering_model: Path
) -> None:
    given = {
        "history_over": 4, "history_under": 40, "chars_under": 20_000, "rouge_against": "whole", "min_overlap": 0.2,
        "high": 4.999, "low": 1.0, "limit": 4,
    }  # fmt: skip
    out = tmp_path / "persum"
    done = perse(
        "data", "persum", "--reviews", toy_pianos, "--out", out, "--judge", answering_model, "--dtype", "float32", "--context", 1500,
        *(part for name, value in given.items() for part in ("--" + name.replace("_", "-"), value)),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "longer than the judge's context: 4 of 4 histories, of which " in said
    assert "longer than the judge's context: 4 of 4 products' reviews, of which " in said
    options = json.loads((out / "manifest.json").read_text("utf-8"))["options"]
    assert {name: options[name] for name in given} == given
    card = (out / "README.md").read_text("utf-8").splitlines()
    assert [
        f"- {name}: {json.dumps(value)}" for name, value in given.items() if f"- {name}: {json.dumps(value)}" not in card
    ] == []
