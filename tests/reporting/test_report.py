"""The report as a whole: what it reads from runs and studies, what it writes, and what it leaves alone."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest
from page_builders import BREAKOUT, Elements, made_page, score_answers, score_examples, unpacked

from perse.batch.local import score
from perse.data.load import LoadedExamples
from perse.engines.scripted import ScriptedEngine
from perse.errors import BadInput
from perse.files.own_files import LIST, write_together
from perse.judgement import judgement_line
from perse.judging.judge import Judge, JudgeSettings
from perse.questions import QUESTIONS
from perse.records import example_lines
from perse.rendering.prompt import TextRenderer
from perse.reporting.report import write_report


def scored_run(folder: Path, *, seed: int, spice: str = "", profiles: bool = True, data_folder: Path | None = None) -> Path:
    """A run as `perse score` leaves it, of a file of examples."""
    examples = score_examples(96, spice=spice)
    if not profiles:
        examples = [example.model_copy(update={"profile": ()}) for example in examples]
    folder.mkdir(parents=True)
    (folder / "examples.jsonl").write_text("".join(example_lines(examples)))
    (folder / "judgements.jsonl").write_text(
        "".join(map(judgement_line, score_answers(examples, seed=seed, spice=spice).values()))
    )
    manifest = {
        "run": {
            "kind": "score",
            "fold": None,
            "judge": {"model": "made", "adapter": None, "digest": "0" * 64},
            "settings": {"temperature": 0.8},
        },
        "context": {"data_folder": data_folder and str(data_folder), "data_digest": "d" * 64},
        "environment": {"started": "2026-01-02T03:04:05+00:00"},
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def known(report: Path) -> list[str]:
    return list(json.loads((report / LIST).read_text()))


@pytest.mark.integration
def test_a_report_is_whole_and_the_same_when_made_again(tmp_path: Path) -> None:
    runs = [scored_run(tmp_path / "before", seed=1), scored_run(tmp_path / "after", seed=2)]
    told: list[tuple[str, int, int]] = []
    page = write_report(runs, out=tmp_path / "report", resamples=100, on_part=lambda *how: told.append(how))
    assert {part for part, done, total in told if done == total} >= {"evaluating", "drawing"}
    files = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert {"report.html", "evaluation.json", "manifest.json"} <= {path.name for path in files}
    stems = {path.stem for path in files if path.parent.name == "figures"}
    assert all(
        tmp_path.joinpath("report", "figures", stem + end).exists() for stem in stems for end in (".svg", ".png", ".csv")
    )
    words = page.read_text()
    assert "2026-01-02" in words
    assert "not shown to be better than" in words or "worse than" in words or "better than" in words
    report = tmp_path / "report"
    write_together(
        report, {name: (report / name).read_bytes() for name in known(report)} | {"figures/stale.svg": b"of an earlier one"}
    )
    write_report(runs, out=report, resamples=100)
    again = {path.relative_to(tmp_path): path.read_bytes() for path in (tmp_path / "report").rglob("*") if path.is_file()}
    assert again.pop(Path("report/figures/earlier/stale.svg")) == b"of an earlier one"
    assert again == files


@pytest.mark.integration
def test_the_intervals_of_a_report_s_plots_draw_what_those_of_its_tables_draw(tmp_path: Path) -> None:
    """Twelve readers share eight texts: of both the interval is another than of readers alone."""
    run, drawn = scored_run(tmp_path / "run", seed=1), {}
    for resample in ("reviewers", "two-way"):
        report = tmp_path / resample
        write_report([run], out=report, resamples=100, resample=resample)  # type: ignore[arg-type]
        drawn[resample] = (report / "figures" / "reliability.csv").read_text()
    assert drawn["reviewers"] != drawn["two-way"]


@pytest.mark.integration
def test_names_that_are_scripts_stay_names_in_tables_and_plots(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "<script>window.hacked=1", seed=1, spice=BREAKOUT)
    page = write_report([run], out=tmp_path / "out", resamples=100, title=BREAKOUT).read_text()
    elements = Elements(page).found
    assert [given.get("type") for tag, given in elements if tag == "script" and not given.get("class")] == [
        "application/json",
        None,
    ]
    assert not [tag for tag, _ in elements if tag == "img"]
    assert not [name for _, given in elements for name in given if name.startswith("on")]
    assert "&lt;script&gt;window.hacked=1" in page


@pytest.mark.slow
def test_a_key_in_a_title_is_in_no_file_of_the_report(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    title = "see http://me:hunter2pass@h.com/x?api_key=ABCDEFGH12345"
    page = write_report([run], out=tmp_path / "report", resamples=100, title=title)
    assert "see http://***@h.com/x?api_key=***" in page.read_text()
    for file in page.parent.rglob("*"):
        assert not file.is_file() or not re.search(b"hunter2pass|ABCDEFGH12345", file.read_bytes()), file


def test_a_report_at_a_link_to_nothing_says_so(tmp_path: Path) -> None:
    (tmp_path / "report").symlink_to("nowhere")
    with pytest.raises(BadInput, match="it is a link to nowhere, where nothing is; choose another with --out"):
        write_together(tmp_path / "report", {"page": b""})


@pytest.mark.slow
def test_a_report_replaces_its_own_files_and_no_others(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "one" / "study.json").write_text(made_page().studies[0].result.model_dump_json())
    report = tmp_path / "report"
    write_report([run], studies=[tmp_path / "one"], out=report, resamples=100)
    edited, stale = [name for name in sorted(known(report)) if name.startswith("figures/k-curve")][:2]
    mine = {"notes.md": "mine", "figures/mine.png": "mine", edited: "edited by me", "runs/x/notes.md": "mine"}
    for name, content in mine.items():
        (report / name).parent.mkdir(parents=True, exist_ok=True)
        (report / name).write_text(content)
    page = (report / "report.html").read_bytes()
    (report / "report.html").write_bytes(page + b"<!-- my remarks -->")
    write_report([run], out=report, resamples=100)
    assert {name: (report / name).read_text() for name in mine} == mine
    assert not (report / stale).exists() and (report / "figures" / "earlier" / Path(stale).name).exists(), (
        "of the earlier report"
    )
    assert (report / "report.kept-1.html").read_bytes() == page + b"<!-- my remarks -->"
    with pytest.raises(BadInput, match="is an input and lies in .*report, which is to be written"):
        write_report([scored_run(report / "inside", seed=1)], out=report)


def test_a_report_does_not_overwrite_a_run(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    with pytest.raises(BadInput, match="holds a run of perse score"):
        write_report([run], out=run)
    assert json.loads((run / "manifest.json").read_text())["run"]["kind"] == "score"


def test_a_folder_of_other_things_is_left_alone(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    with pytest.raises(BadInput, match="is not empty and holds no report"):
        write_report([run], out=tmp_path)


def test_a_folder_without_a_study_is_named(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    (tmp_path / "study").mkdir()
    with pytest.raises(BadInput, match="study holds no finished study"):
        write_report([run], studies=[tmp_path / "study"], out=tmp_path / "out")
    (tmp_path / "study" / "study.json").write_text("{}")
    with pytest.raises(BadInput, match="is no study result, field"):
        write_report([run], studies=[tmp_path / "study"], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.integration
def test_two_studies_of_one_kind_keep_their_plots_apart(tmp_path: Path) -> None:
    run = scored_run(tmp_path / "run", seed=1)
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "study.json").write_text(made_page().studies[0].result.model_dump_json())
    page = write_report([run], studies=[tmp_path / "one", tmp_path / "two"], out=tmp_path / "out", resamples=100)
    assert (tmp_path / "out" / "figures" / "k-curve-kendall-2.csv").exists()
    own_ids = re.findall(r' id="([^"]+)"', page.read_text())
    assert len(own_ids) == len(set(own_ids))


def of_an_older_perse(run: Path, name: str) -> None:
    """Its manifest as it was written when a judge had one name for model and adapter."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["run"]["judge"] = {"name": name, "sha256": "cd" * 32, "engine": "scripted"}
    del manifest["context"]["judge"]
    (run / "manifest.json").write_text(json.dumps(manifest))


def training_run(folder: Path) -> Path:
    (folder / "merged").mkdir(parents=True)
    (folder / "log.jsonl").write_text('{"step": 1, "loss": 3.5}\n{"step": 5, "loss": 2.25}\n')
    return folder


def really_scored(out: Path, model: str, adapter: str | None = None) -> Path:
    """A run that `perse.batch.local.score` wrote, of a judge that answers 1 to 10 by the letters it is shown."""
    engine = ScriptedEngine(lambda message, seed: f"Review: fine\nScore: {1 + len(message) % 10}")
    judge = Judge(engine, TextRenderer(), name=model, adapter=adapter, digest="ab" * 32)
    loaded = LoadedExamples(score_examples(24), digest="d" * 64, folder=None, fold=None)
    return score(judge, QUESTIONS["pointwise"], loaded, out, settings=JudgeSettings())


@pytest.mark.integration
def test_judges_are_named_and_their_trainings_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("merging", "adapting", "earlier"):
        training_run(tmp_path / name)
    runs = [really_scored(tmp_path / "one", "merging/merged"), really_scored(tmp_path / "two", "base", "adapting")]
    runs.append(really_scored(tmp_path / "three", "base", "earlier/adapter"))
    of_an_older_perse(runs[-1], "base+earlier")
    page = unescape(write_report(runs, out=tmp_path / "out", resamples=100).read_text())
    assert "<dd>merging/merged, digest abababababab, scripted" in page
    assert "<dd>base + adapting, digest abababababab, scripted" in page
    assert "<dd>base + earlier, digest cdcdcdcdcdcd, scripted" in page
    section = page[page.index('<section id="training"') :].partition("</section>")[0]
    assert section.count("<figure>") == 3 and "from 3.50 at step 1 to 2.25 at step 5" in section
    for name in ("merging", "adapting", "earlier"):
        assert f": {name}</strong>" in section


@pytest.mark.integration
def test_runs_that_showed_other_profiles_are_told_apart_and_notes_stand_once_without_paths(tmp_path: Path) -> None:
    data_folder = tmp_path / "private" / "critics"
    runs = [scored_run(tmp_path / "bare", seed=1, profiles=False, data_folder=data_folder)]
    runs.append(scored_run(tmp_path / "full", seed=2, data_folder=data_folder))
    page = write_report(runs, out=tmp_path / "out", resamples=100).read_text()
    packed = re.findall(r'class="items-chunk">([^<]+)<', page)
    assert [detail["same"] for detail in unpacked(tuple(packed))] == [[False, True]] * 96
    read = page[: page.index('<section id="manifest"')]  # what it was made of is written there in full
    assert read.count("rofiles differ: full showed 3, bare no profile") == 1
    assert read.count("critics is no longer there; name the data set with --train-data") == 1
    assert str(tmp_path / "private") not in read
    assert (
        "8 of 8 texts were judged by several readers (at most 12), and the texts are too few (fewer than 10 of like size)"
        in read
    )
    assert "`" not in re.sub(r"<(style|script).*?</\1>", "", read, flags=re.DOTALL)
