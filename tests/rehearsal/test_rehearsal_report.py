"""The report of a scripted run: its files, its numbers, its stories, and nothing that breaks out."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from command_line import perse
from rehearsal_builders import Cast, Said, step_of, usual
from report_builders import BREAKOUT, scored_run, talkative, told_samples

pytest.importorskip("matplotlib", reason="figures need the extra 'report'")

from perse.errors import BadInput
from perse.rehearsal.folder import read_traces
from perse.rehearsal.reporting.report import write_report
from perse.rehearsal.reporting.traces import Stories, pack_traces
from perse.rehearsal.samples import Samples
from perse.rehearsal.scoring.asking import read_scores
from perse.rehearsal.scoring.results import results
from perse.rehearsal.scoring.telling import rehearsal_result
from perse.results.result import Result
from perse.results.words import value_and_interval

pytestmark = pytest.mark.slow

FEW = ("onlysum", "sum-perchan", "rehearsal")


class Elements(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Samples, Path]:
    return scored_run(tmp_path_factory.mktemp("made"), told_samples(5), methods=FEW)


def report(made: tuple[Samples, Path], out: Path, **options: Any) -> Path:
    given, run = made
    return write_report(given, run, out, **{"name": "scored", "resamples": 100, "seed": 0, **options})


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def stories(made: tuple[Samples, Path], **options: Any) -> Stories:
    given, run = made
    scored = read_scores(given.samples, run, digest=given.digest, name="scored")
    return pack_traces(given.samples, scored, **{"chain": True, "most": 100, "seed": 0, **options})


def unpacked(chunks: tuple[str, ...]) -> list[Any]:
    return [row for chunk in chunks for row in json.loads(gzip.decompress(base64.b64decode(chunk)))]


def test_a_report_holds_page_tables_numbers_and_figures_and_is_the_same_again(
    made: tuple[Samples, Path], tmp_path: Path
) -> None:
    page = report(made, tmp_path / "deep" / "report", title="Two & more", manifest={"name": "scored"})
    first = files_of(page.parent)
    assert {"report.html", "results.json", "tables.md", "manifest.json", "figures/figure-3-pass-rates.svg"} < set(first)
    assert len([name for name in first if name.startswith("figures")]) == 9
    assert "<h1>Two &amp; more</h1>" in page.read_text(encoding="utf-8")
    assert report(made, page.parent, title="Two & more", manifest={"name": "scored"}) == page
    assert files_of(page.parent) == first


def test_page_tables_and_numbers_are_those_of_the_scores(made: tuple[Samples, Path], tmp_path: Path) -> None:
    page = report(made, tmp_path / "report")
    given, run = made
    scored = read_scores(given.samples, run, digest=given.digest, name="scored")
    told = rehearsal_result(results(given.samples, scored, resamples=100, seed=0))
    written = Result.model_validate_json((page.parent / "results.json").read_bytes())
    assert written.answer == told.answer and written.tables[: len(told.tables)] == told.tables
    html, tables = page.read_text(encoding="utf-8"), (page.parent / "tables.md").read_text(encoding="utf-8")
    words = unescape(html.replace("<code>", "`").replace("</code>", "`"))
    assert all(line in words for line in (*told.answer.splitlines(), *told.notes))
    for table in written.tables:
        assert table.title in html and table.title in tables
        for estimate in table.estimates():
            value, interval = value_and_interval(estimate, digits=table.digits)
            assert f"{value}<small>{interval}</small>" in html and f"{value} {interval}" in tables


def test_the_page_says_who_played_and_who_judged(made: tuple[Samples, Path], tmp_path: Path) -> None:
    html = report(made, tmp_path / "report").read_text(encoding="utf-8")
    assert "<dt>Writer, user, supervisor, filter</dt><dd>talkative</dd>" in html
    assert "<dd>5 of 5 samples, of 5 readers</dd>" in html and "3 practice rounds" in html
    assert html.count("passed in practice, or where none did the last of each round") == 1, "nothing need have passed"
    assert "and the responses that passed, or where none did the last of each round, are shown as demonstrations" in html


def test_a_story_is_found_again_whole(made: tuple[Samples, Path]) -> None:
    packed = stories(made).packed
    texts, details = unpacked(packed.texts), unpacked(packed.items)
    assert len(texts) == len(set(texts))
    traces = read_traces(made[1])
    assert [one["name"] for one in packed.head["methods"]] == ["OnlySum", "Sum+PerChan", "Rehearsal"]
    for sample, name, detail in zip(made[0].samples, packed.head["id"], details, strict=True):
        assert name == sample.id
        assert [texts[one["text"]] for one in detail["product"]] == [one.review for one in sample.product_reviews]
        for of_one, found in zip(traces.values(), detail["traces"], strict=True):
            trace = of_one[name]
            assert texts[found["summary"]] == trace.summary and found["kept"] == trace.kept
            assert [texts[one["summary"]] for one in found["versions"]] == [one.summary for one in trace.versions]
            rounds = [*trace.practice, *([trace.suggestions] if trace.suggestions else [])]
            shown = [*found["practice"], *([found["suggestions"]] if found["suggestions"] else [])]
            for played, one in zip(rounds, shown, strict=True):
                assert one["passed"] == played.passed
                said = [tuple(texts[part[0]] for part in turn["response"]) for turn in one["turns"]]
                assert said == [(t.response.analysis, t.response.suggestions) for t in played.turns if t.response]


def test_a_page_of_fewer_samples_keeps_those_without_a_scored_summary_first(made: tuple[Samples, Path], tmp_path: Path) -> None:
    kept = made[1] / "traces.jsonl"
    before = kept.read_text(encoding="utf-8")
    rows = [json.loads(line) for line in before.splitlines()]
    for row in rows:
        if (row["sample"], row["method"]) == ("s4", "rehearsal"):
            row.update({"summary": None, "failed": "rewriting: too_long"})
    kept.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    try:
        few = stories(made, most=2)
        assert (few.shown, few.there) == (2, 5) and "s4" in few.packed.head["id"]
        html = report(made, tmp_path / "report", max_samples=2).read_text(encoding="utf-8")
        assert "2 of 5 samples are in this file" in html and "scores 0 under it" in html
    finally:
        kept.write_text(before, encoding="utf-8")


def test_what_is_known_of_the_judges_leniency_stands_before_any_number(made: tuple[Samples, Path], tmp_path: Path) -> None:
    plain = report(made, tmp_path / "plain").read_text(encoding="utf-8")
    assert plain.index("How lenient talkative is with summaries is not known") < plain.index("Rehearsal scores")
    found = Result(
        name="rehearsal-leniency", asks="?", answer="!", tables=(), details={"finding": "It is lenient by 9 <points>."}
    )
    kept = made[1] / "scores" / "scored" / "leniency.json"
    kept.write_text(found.model_dump_json(), encoding="utf-8")
    try:
        html = report(made, tmp_path / "report").read_text(encoding="utf-8")
    finally:
        kept.unlink()
    assert '<p class="answer">It is lenient by 9 &lt;points&gt;.</p>' in html and "with summaries is not known" not in html


def test_a_run_in_which_nothing_can_be_compared_has_a_report_that_says_so_and_tells_its_stories(tmp_path: Path) -> None:
    def silent(message: str) -> Said:
        return "no" if step_of(message).startswith("scores") else usual(message)

    made = scored_run(tmp_path, told_samples(2), methods=FEW, cast=Cast(silent))
    page = report(made, tmp_path / "report")
    html = page.read_text(encoding="utf-8")
    assert (
        "No sample has scores under every method: the judge gave some of 2 of 2 summaries of" in html
        and "All 2 samples" in html
    )
    found = Result.model_validate_json((page.parent / "results.json").read_bytes())
    rows = {row[0]: row[1:] for row in found.tables[0].rows}
    assert rows == dict.fromkeys(("OnlySum", "Sum+PerChan", "Rehearsal"), ("2 of 2", "0 of 2"))
    assert (tmp_path / "report" / "figures" / "scores-average.csv").read_text(encoding="utf-8").count("\n") == 1


def test_a_key_in_a_title_is_in_no_file_of_the_report(made: tuple[Samples, Path], tmp_path: Path) -> None:
    title = "see http://me:hunter2pass@h.com/x?api_key=ABCDEFGH12345"
    page = report(made, tmp_path / "report", title=title, manifest={"title": title})
    assert "see http://***@h.com/x?api_key=***" in page.read_text(encoding="utf-8")
    for name, content in files_of(page.parent).items():
        assert b"hunter2pass" not in content and b"ABCDEFGH12345" not in content, name


def test_a_page_fetches_nothing_and_runs_its_own_script_alone(made: tuple[Samples, Path], tmp_path: Path) -> None:
    elements = Elements(report(made, tmp_path / "report").read_text(encoding="utf-8")).found
    assert not [tag for tag, _ in elements if tag in ("link", "img", "iframe", "object", "embed", "base")]
    addresses = [value for _, given in elements for name, value in given.items() if name in ("src", "href", "xlink:href")]
    assert addresses and all(value and value.startswith(("#", "data:text/csv")) for value in addresses)


def test_reviews_answers_and_names_make_no_elements(made: tuple[Samples, Path], tmp_path: Path) -> None:
    hostile = scored_run(tmp_path, told_samples(5, spice=BREAKOUT), methods=FEW, cast=talkative(spice=BREAKOUT))
    counts = []
    for given, name in ((made, "plain"), (hostile, "hostile")):
        page = report(given, tmp_path / name, title="A title" if given is made else f"A title {BREAKOUT}")
        found = Elements(page.read_text(encoding="utf-8")).found
        assert "onerror" not in {name for _, attributes in found for name in attributes}
        drawn = ("g", "text", "use", "path", "defs", "clippath", "td", "th")  # as many as there are iterations, which differ
        tags = [tag for tag, _ in found if tag not in drawn]
        counts.append({tag: tags.count(tag) for tag in sorted(set(tags))})
    assert counts[0] == counts[1]


def test_a_report_replaces_a_report_and_nothing_else(made: tuple[Samples, Path], tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    with pytest.raises(BadInput, match="holds no Rehearsal report"):
        report(made, tmp_path / "letters")
    with pytest.raises(BadInput, match="holds no Rehearsal report"):
        report(made, made[1])
    assert [path.name for path in (tmp_path / "letters").iterdir()] == ["one.txt"]


def test_the_command_writes_a_report_and_refuses_what_it_cannot_read(made: tuple[Samples, Path], tmp_path: Path) -> None:
    run = made[1]
    data = run.parent / "data"
    done = perse("rehearsal", "report", data, run, "--out", tmp_path / "report", "--resamples", 100, "--title", "Ours")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "report" / "report.html")
    manifest = json.loads((tmp_path / "report" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["title"] == "Ours" and manifest["samples"]["sha256"] == made[0].digest
    for given, told in (
        ((data, run, "--name", "others"), "has no scores 'others'; make them with `perse rehearsal score`"),
        ((data, run, "--limit", 2), "was made of other samples"),
        ((data, data), "traces.jsonl"),
    ):
        refused = perse("rehearsal", "report", *given, "--out", tmp_path / "none")
        assert refused.returncode == 2 and told in " ".join(refused.stderr.split()), refused.stderr
    inside = perse("rehearsal", "report", data, run, "--out", run.parent)
    assert inside.returncode == 2 and not (tmp_path / "none").exists()


@pytest.mark.parametrize("emptied", ["scores/scored", "personal"])
def test_a_room_of_a_run_whose_manifest_tells_nothing_is_named(
    made: tuple[Samples, Path], tmp_path: Path, emptied: str
) -> None:
    samples, run = made
    copy = shutil.copytree(run, tmp_path / "run")
    (copy / emptied).mkdir(exist_ok=True)
    (copy / emptied / "manifest.json").write_text("{}")
    with pytest.raises(BadInput, match=f"{copy / emptied} holds something else than a run"):
        read_scores(samples.samples, copy, digest=samples.digest, name="scored")
