"""Per-MPST and Per-DOC whole: plots rewritten by a served model or by rules, killed and continued, and what the folder tells."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from places import SAMPLES
from typer.testing import CliRunner

from perse.commands.app import app
from perse.data.dataset.folder import load_folder
from perse.data.names.names import Renamer
from perse.data.rewriting import tables
from perse.data.rewriting.plots import rewrite
from perse.errors import BadInput

PLOTS = [json.loads(line) for line in (SAMPLES / "items.jsonl").read_text("utf-8").splitlines()]
MANY = 48
"""Plots: more than are asked at once."""


class Llama:
    """A served model that names people Ada, Bo, ... and retells plots in half sentences. It remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.refuses = ""
        self.delays = ""
        self.url = ""

    def answer(self, message: str) -> str:
        self.asked.append(message)
        if self.delays and self.delays in message:
            time.sleep(600)
        if self.refuses and self.refuses in message:
            return "I'm sorry, but I cannot help with that."
        if "JSON" in message:
            return json.dumps(invented(message))
        plot = max(message.splitlines(), key=len)
        parts = [" ".join(one.split()[:5]).rstrip(".,;:") + "." for one in re.split(r"(?<=\.) ", plot)]
        return " ".join(parts[:4] if len(parts) > 2 else [*parts, "That is all."])


def invented(message: str) -> dict[str, str]:
    """New names for the names that the samples' plots have, one letter's change away from nothing that occurs."""
    known = re.findall(r"(?<=[a-z,] )[A-Z][a-z]{2,}\b", max(message.splitlines(), key=len))
    return {name: f"Qu{chr(97 + place // 26)}{chr(97 + place % 26)}ro" for place, name in enumerate(dict.fromkeys(known))}


@pytest.fixture
def llama() -> Iterator[Llama]:
    yield from served(Llama())


def served(model: Llama) -> Iterator[Llama]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def say(self, value: Any) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_GET(self) -> None:
            self.say({"object": "list", "data": [{"id": "llama", "object": "model", "owned_by": "test", "created": 0}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            text = model.answer(body["messages"][-1]["content"])
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            self.say(
                {"id": "1", "object": "chat.completion", "created": 0, "model": "llama", "choices": [choice], "usage": usage}
            )

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    model.url = f"openai:http://127.0.0.1:{server.server_port}/v1#llama"
    yield model
    server.shutdown()


def many(tmp_path: Path) -> tuple[Path, Path]:
    """Plots, more than are asked at once, and reviews of all of them."""
    path = tmp_path / "many.jsonl"
    plots = [f"{PLOTS[n % len(PLOTS)]['plot']} All this was in {1700 + n}." for n in range(MANY)]
    path.write_text("".join(json.dumps({"item_id": f"m{n}", "text": plot}) + "\n" for n, plot in enumerate(plots)), "utf-8")
    rows = [
        {
            "reviewer_id": f"u{who}",
            "item_id": f"m{(who * 8 + n) % len(plots)}",
            "score": 1 + (who + n) % 10,
            "review": f"no. {n}",
        }
        for who in range(MANY)
        for n in range(8)
    ]
    (tmp_path / "reviews.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path, tmp_path / "reviews.jsonl"


def mpst(tmp_path: Path) -> Path:
    """The samples' plots as MPST has them."""
    path = tmp_path / "mpst_full_data.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["imdb_id", "title", "plot_synopsis", "tags", "split", "synopsis_source"])
        for plot in PLOTS:
            rows.writerow([plot["item_id"], f"The Affair of {plot['item_id']}", plot["plot"], "drama", "train", "imdb"])
    return path


def command(plots: Path, out: Path, *more: str, reviews: Path = SAMPLES / "reviews.jsonl") -> list[str]:
    return [
        "data", "per-mpst", "--plots", str(plots), "--reviews", str(reviews),
        "--out", str(out), "--valid", "0.3", "--words", "30", *more,
    ]  # fmt: skip


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == 0, done.output + done.stderr
    return done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.integration
def test_a_build_that_is_killed_goes_on_to_the_same_bytes_and_asks_again_only_what_was_not_answered(
    tmp_path: Path, llama: Llama
) -> None:
    plots, reviews = many(tmp_path)
    out, kept = tmp_path / "set", tmp_path / "set.work" / "answers.sqlite"
    line = [sys.executable, "-m", "perse", *command(plots, out, "--writer", llama.url, reviews=reviews)]
    environment = os.environ | {"OPENAI_API_KEY": "x"}

    def stored() -> int:
        if not kept.exists() or not kept.stat().st_size:
            return 0
        with sqlite3.connect(kept, timeout=900) as file:
            return int(file.execute("SELECT count(*) FROM answers").fetchone()[0])

    llama.delays = "All this was in 1717."
    killed = subprocess.Popen(line, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 900
    while stored() < MANY - 1 and time.monotonic() < deadline:
        time.sleep(0.02)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    seen = len(llama.asked)
    before = [message for message in llama.asked if message != "Say yes."]  # by which a judge looks what the server tells
    assert len(before) == MANY == len(set(before)) and not out.exists()
    llama.delays = ""
    subprocess.run(line, env=environment, check=True, stderr=subprocess.DEVNULL)
    again = [message for message in llama.asked[seen:] if message in before]
    assert again == [message for message in before if "All this was in 1717." in message]
    other = ["--writer", llama.url, "--cache", str(tmp_path / "other.sqlite")]
    run(*command(plots, tmp_path / "whole", *other, reviews=reviews))
    assert contents(out) == contents(tmp_path / "whole")


@pytest.mark.slow
def test_the_folder_tells_who_rewrote_what_and_no_original_name_is_in_it(tmp_path: Path, llama: Llama) -> None:
    said = run(*command(mpst(tmp_path), tmp_path / "set", "--writer", llama.url))
    assert "PerSE, table 1" in said and "plots rewritten; original names are in" in said
    data = load_folder(tmp_path / "set")
    made = data.manifest["rewriting"]
    assert made["writer"]["name"] == "llama" and made["recognizer"]["digest"] and made["tries"]["anonymize"]["ok"] > 20
    assert {source["name"] for source in data.manifest["sources"].values()} == {"mpst_full_data.csv", "reviews.jsonl"}
    names = {one["item_id"]: one["names"] for one in map(json.loads, (tmp_path / "set.work" / "names.jsonl").open())}
    assert any(names.values())
    for review in data.reviews.values():
        assert not Renamer(names[review.item_id]).spans(review.text)
    assert data.max_k == 5 and data.k == 3
    card = (tmp_path / "set" / "README.md").read_text("utf-8")
    assert (
        "How the texts were rewritten" in card and "What they wrote is unchanged" in card and "Texts are unchanged" not in card
    )
    lines = [json.loads(line) for line in (tmp_path / "set" / "rewriting.jsonl").open()]
    assert all(isinstance(line["survivors"], int) for line in lines)  # how many, not which
    assert {line["item_id"] for line in lines} == names.keys()
    assert Counter(line["status"] for line in lines)["ok"] == made["rewritten"]


@pytest.mark.slow
def test_a_plot_that_the_model_refuses_is_left_out_and_counted_with_its_reviews(tmp_path: Path, llama: Llama) -> None:
    llama.refuses = PLOTS[0]["plot"][:40]
    said = run(*command(mpst(tmp_path), tmp_path / "set", "--writer", llama.url))
    data = load_folder(tmp_path / "set")
    assert data.manifest["dropped"]["plots"]["not anonymized: refused"] == 1
    lost = data.manifest["dropped"]["reviews"]["of a plot not anonymized: refused"]
    assert lost > 0 and f"{lost} of a plot not anonymized: refused" in " ".join(said.split())
    assert PLOTS[0]["item_id"] not in {one.item_id for one in data.reviews.values()}
    assert data.manifest["rewriting"]["tries"]["anonymize"]["refused"] == 3


@pytest.mark.slow
def test_rules_build_the_same_bytes_twice_and_are_named_in_the_manifest(tmp_path: Path) -> None:
    plots = mpst(tmp_path)
    said = run(*command(plots, tmp_path / "one"))
    run(*command(plots, tmp_path / "two"))
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert load_folder(tmp_path / "one").manifest["rewriting"]["writer"]["name"] == "rules"
    assert "by rules, not by a model" in " ".join(said.split())


@pytest.mark.slow
@pytest.mark.parametrize("damaged", [None, 5, []])
def test_a_set_whose_manifest_is_damaged_is_replaced_and_what_is_not_known_to_be_its_is_kept(
    tmp_path: Path, damaged: object
) -> None:
    folder = tmp_path / "set"
    run(*command(mpst(tmp_path), folder))
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    (folder / "manifest.json").write_text(json.dumps({**manifest, "rewriting": damaged}), "utf-8")
    before = (tmp_path / "set.work" / "names.jsonl").read_bytes()
    run(*command(mpst(tmp_path), folder, "--seed", "1", "--overwrite"))
    assert load_folder(folder).manifest["rewriting"]["writer"]["name"] == "rules"
    assert (tmp_path / "set.work" / "names.kept-1.jsonl").read_bytes() == before


@pytest.mark.slow
def test_the_names_of_a_set_or_table_that_was_moved_away_are_kept(tmp_path: Path) -> None:
    items, names = tmp_path / "items.jsonl", tmp_path / "set.work" / "names.jsonl"
    run(*command(mpst(tmp_path), tmp_path / "set"))
    before = names.read_bytes()
    run(*command(mpst(tmp_path), tmp_path / "set", "--seed", "1", "--overwrite"))
    assert not list(names.parent.glob("*.kept-*")), "of a set that is replaced they are replaced, too"
    run(*command(mpst(tmp_path), tmp_path / "set", "--overwrite"))
    (tmp_path / "set").rename(tmp_path / "moved")
    run(*command(mpst(tmp_path), tmp_path / "set", "--seed", "1"))
    assert (names.parent / "names.kept-1.jsonl").read_bytes() == before != names.read_bytes()

    for name, more in (("Ann", ()), ("Bob", ()), ("Cid", ("--overwrite",))):
        items.write_text(
            json.dumps({"item_id": name, "text": f"{name} Quill sails to Brevik. She finds the lamp there."}) + "\n"
        )
        run("data", "anonymize", "--items", str(items), "--out", str(tmp_path / "a.jsonl"), *more)
        if name == "Ann":
            (tmp_path / "a.jsonl").rename(tmp_path / "moved.jsonl")
    (kept,) = (tmp_path / "a.jsonl.work").glob("rewriting.kept-*")
    assert json.loads(kept.read_text())["item_id"] == "Ann"


def test_what_is_read_never_lies_where_a_build_writes_and_what_is_in_the_way_is_said_before_a_text_is_rewritten(
    tmp_path: Path,
) -> None:
    work = tmp_path / "set.work"
    work.mkdir()
    plots = mpst(work)
    before = plots.read_bytes()
    with pytest.raises(BadInput, match=r"mpst_full_data.csv: lies in .*set\.work, where this build writes"):
        run_raising(*command(plots, tmp_path / "set"))
    assert plots.read_bytes() == before and list(work.iterdir()) == [plots]
    (work / ".perse-files.json").mkdir()
    with pytest.raises(BadInput, match=r"\.perse-files\.json: is a folder, where a file is to be written"):
        run_raising(*command(mpst(tmp_path), tmp_path / "set"))


def test_plots_as_they_are_come_with_a_warning(tmp_path: Path) -> None:
    said = run(*command(mpst(tmp_path), tmp_path / "set", "--writer", "none"))
    assert "the plots are as they were: a judge may know them" in " ".join(said.split())
    assert "rewriting" not in load_folder(tmp_path / "set").manifest


@pytest.mark.slow
def test_a_table_of_items_is_rewritten_for_any_data_set(tmp_path: Path) -> None:
    items = SAMPLES / "items.jsonl"
    run("data", "anonymize", "--items", str(items), "--out", str(tmp_path / "a.jsonl"))
    run("data", "summarize", "--items", str(tmp_path / "a.jsonl"), "--words", "30", "--out", str(tmp_path / "s.jsonl"))
    plots = {one["item_id"]: one["plot"] for one in PLOTS}
    audits = [json.loads(line) for line in (tmp_path / "a.jsonl.work" / "rewriting.jsonl").open()]
    names = {one["item_id"]: one["names"] for one in audits}
    for line in (tmp_path / "a.jsonl").open():
        one = json.loads(line)
        assert one["text"] == Renamer(names[one["item_id"]]).replace(plots[one["item_id"]])
    short = [json.loads(line) for line in (tmp_path / "s.jsonl").open()]
    assert all(len(one["text"].split()) < len(plots[one["item_id"]].split()) for one in short)


@pytest.mark.parametrize(
    ("out", "writer", "said"),
    [
        ("items.jsonl", "rules", "is the table itself"),
        ("there.jsonl", "rules", "already there; give another --out, or --overwrite"),
        ("items.csv", "rules", "give a name that ends in .jsonl"),
        ("new.jsonl", "none", "there is nothing to do"),
    ],
)
def test_a_table_is_not_rewritten_over_itself_or_another_file(tmp_path: Path, out: str, writer: str, said: str) -> None:
    items, there = tmp_path / "items.jsonl", tmp_path / "there.jsonl"
    items.write_bytes((SAMPLES / "items.jsonl").read_bytes())
    there.write_text("mine")
    line = ["data", "anonymize", "--items", str(items), "--out", str(tmp_path / out), "--writer", writer]
    with pytest.raises(BadInput, match=re.escape(said)):
        CliRunner().invoke(app, line, catch_exceptions=False)
    assert items.read_bytes() == (SAMPLES / "items.jsonl").read_bytes() and there.read_text() == "mine"


def test_a_file_that_came_to_the_place_of_a_table_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slow(*given: Any, **named: Any) -> Any:
        (tmp_path / "a.jsonl").write_text("mine")
        return rewrite(*given, **named)

    monkeypatch.setattr(tables, "rewrite", slow)
    with pytest.raises(BadInput, match="a.jsonl: already there; give another --out, or --overwrite to replace it"):
        run_raising("data", "anonymize", "--items", str(SAMPLES / "items.jsonl"), "--out", str(tmp_path / "a.jsonl"))
    assert (tmp_path / "a.jsonl").read_text() == "mine"


def test_a_summary_after_an_anonymization_is_held_to_its_names_and_titles(tmp_path: Path) -> None:
    items = tmp_path / "items.jsonl"
    plot = "Marta Quill sails to Brevik. She finds the lamp. She goes home again, and everybody is glad."
    rows = [{"item_id": "a", "text": plot, "title": "The Lamp"}, {"item_id": "b", "text": plot, "title": "Finds the Lamp"}]
    items.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = run("data", "anonymize", "--items", str(items), "--out", str(tmp_path / "a.jsonl"))
    assert "1 still holding its title or an original name" in said
    # The title comes back into the text between the two steps.
    (tmp_path / "a.jsonl").write_text(json.dumps({"item_id": "a", "text": plot + " It was The Lamp, said Marta Quill."}) + "\n")
    with pytest.raises(BadInput, match="none of 1 texts could be rewritten"):
        run_raising("data", "summarize", "--items", str(tmp_path / "a.jsonl"), "--out", str(tmp_path / "s.jsonl"))


def run_raising(*arguments: str) -> None:
    CliRunner().invoke(app, list(arguments), catch_exceptions=False)


@pytest.mark.slow
def test_columns_of_the_plots_can_be_mapped(tmp_path: Path) -> None:
    plots = tmp_path / "films.csv"
    with plots.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["filmcode", "story"])
        rows.writerows([plot["item_id"], plot["plot"]] for plot in PLOTS)
    run(*command(plots, tmp_path / "set", "--map", "items.item_id=filmcode", "--map", "items.text=story"))
    assert load_folder(tmp_path / "set").reviews
    run(
        "data",
        "anonymize",
        "--items",
        str(plots),
        "--map",
        "items.item_id=filmcode",
        "--map",
        "items.text=story",
        "--out",
        str(tmp_path / "a.jsonl"),
    )


def doc(tmp_path: Path) -> Path:
    """An annotation table as Per-DOC was made from: a row a comparison, five questions, four answers."""
    path = tmp_path / "doc.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        questions = ["interesting", "adaptable", "surprise", "character", "ending"]
        rows.writerow(["WorkerId", "premise", "plot_a", "plot_b", *questions])
        for worker in range(12):
            for pair in range(6):
                answers = ["A", "Plot B", "both", "neither", "B"]
                turn = (worker + pair) % 5
                texts = [f"Plot {side} of pair {(worker + pair) % 20} goes on." for side in "xy"]
                rows.writerow([f"w{worker}", f"premise {(worker + pair) % 20}", *texts, *answers[turn:], *answers[:turn]])
    return path


def test_per_doc_has_five_aspects_and_one_prompt_up_to_the_asked_one(tmp_path: Path) -> None:
    said = run("data", "per-doc", "--annotations", str(doc(tmp_path)), "--out", str(tmp_path / "set"), "--valid", "0.2")
    data = load_folder(tmp_path / "set")
    names = ["Adaptability", "Character Development", "Ending", "Interestingness", "Surprise"]
    assert [cell["name"] for cell in data.manifest["counts"]["parts"][0]["cells"]] == names
    assert all(name in said for name in names)
    assert data.manifest["dropped"]["answers"] == {"preference 'both'": 72, "preference 'neither'": 72}
    assert "rows" not in data.manifest["dropped"] and "left out, answers: 72 preference 'both'" in said
    by_query: dict[str, list[Any]] = {}
    for row, example in zip([row for row in data.rows if row.split == "train"], data.examples("train"), strict=True):
        by_query.setdefault(row.query_id, []).append(example)
    several = [examples for examples in by_query.values() if len(examples) > 1]
    assert several
    shared = sum(any(one.profile == examples[0].profile for one in examples[1:]) for examples in several)
    assert shared > len(several) / 2  # all aspects of one comparison draw from one order


@pytest.mark.parametrize(("given", "overlap"), [((), False), (("--profiles", "per_example"), True)])
def test_what_is_asked_is_never_shown_unless_profiles_of_all_others_are_wanted(
    tmp_path: Path, given: tuple[str, ...], overlap: bool
) -> None:
    """PerSE, section 3: prior annotations and queries do not overlap."""
    said = run(*command(mpst(tmp_path), tmp_path / "set", "--writer", "none", *given))
    rows = load_folder(tmp_path / "set").rows
    assert rows and overlap != {row.query_id for row in rows}.isdisjoint(one for row in rows for one in row.profile_ids)
    assert ("show a query of another example" in " ".join(said.split())) == overlap


def test_by_default_each_query_has_its_own_draw_from_reviews_held_apart(tmp_path: Path) -> None:
    run(*command(mpst(tmp_path), tmp_path / "set", "--writer", "none"))
    data = load_folder(tmp_path / "set")
    assert data.manifest["options"]["profiles"] == "per_example_apart"
    drawn: dict[str, set[tuple[str, ...]]] = {}
    for row in data.rows:
        drawn.setdefault(row.reviewer_id, set()).add(row.profile_ids)
    assert max(map(len, drawn.values())) > 1, "one profile for all of a reader's queries"


@pytest.mark.slow
def test_plots_that_could_not_be_rewritten_are_not_blamed_on_the_number_of_reviews(tmp_path: Path, llama: Llama) -> None:
    """All readers lose some of their reviews to plots that the writer refuses, so none has the 9 that each wrote."""
    llama.refuses = "All this was in 1717."
    kept = [
        {"item_id": one["item_id"], "text": one["plot"] + ("" if n % 2 else " All this was in 1717.")}
        for n, one in enumerate(PLOTS)
    ]
    path = tmp_path / "plots.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in kept), "utf-8")
    given = ["--writer", llama.url, "--tries", "1", "--min-reviews", "9", "--max-k", "5"]
    message = r"no reviewer has 9 reviews of plots that could be rewritten: 24 not anonymized: refused; try another --writer"
    with pytest.raises(BadInput, match=message):
        CliRunner().invoke(app, command(path, tmp_path / "set", *given), catch_exceptions=False)
