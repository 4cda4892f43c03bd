"""A package from outside adds a question, an example type, an engine, a metric and a consumer by entry points alone, and finds them
everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = '''
from dataclasses import dataclass
from typing import Any, ClassVar
import typer
from perse.commands.consumer import Consumer
from perse.engines.base import Capabilities, Reply
from perse.evaluation.metrics import ERRORS, Metric, mean_of, of_sample
from perse.engines.kind import EngineKind, Identity, Loaded
from perse.questions.base import AnswerLayout, Ask
from perse.records import PointwiseExample, Record
from perse.rendering.prompt import TextRenderer
from perse.scale import GRADES
from perse.strict import Name


class Poem(Record):
    """How sad is this poem?"""
    kind: ClassVar[str] = "poem"
    plural: ClassVar[str] = "poems"
    scale: ClassVar[Any] = GRADES
    verdict: ClassVar[tuple[str, ...]] = ()
    limited: ClassVar[bool] = True
    shortened: ClassVar[bool] = False
    aspect: ClassVar[None] = None
    written: ClassVar[None] = None
    profile: ClassVar[tuple[()]] = ()
    shown_profile: ClassVar[tuple[()]] = ()
    in_one_file: ClassVar[str] = "poem"
    id: Name
    reviewer_id: Name
    poem: str
    reference: int | None = None

    @classmethod
    def recognises(cls, fields): return "poem" in fields
    @property
    def truth(self): return self.reference
    @property
    def work(self): return self.poem
    @property
    def shown_query(self): return (("Poem", self.poem),)
    def gives_away(self, near): return False


class Sadness:
    name, scale, layout, example_type = "sadness", GRADES, AnswerLayout(None, "[Sadness] "), Poem
    usual, delimiters, served, writes_review = True, ("Poem", "Sadness"), "says how sad a poem is", False
    def asks(self, example, profile): return (Ask("How sad?\\n", (), f"[Poem] {example.poem}\\n", "Answer after [Sadness]."),)
    def to_label_order(self, probabilities): return tuple(probabilities)
    def answer(self, example): return str(example.reference), None
    def clean(self, example, clean): return example.model_copy(update={"poem": clean(example.poem)})


class Finish(Sadness):
    name, example_type, usual, served = "finish", PointwiseExample, False, None
    def asks(self, example, profile): return (Ask("Read on?\\n", (), f"[Poem] {example.query}\\n", "Answer after [Sadness]."),)
    def clean(self, example, clean): return example.model_copy(update={"profile": (), "query": clean(example.query)})


SADNESS, FINISH = Sadness(), Finish()
'''

ENGINE = """
class Weeping:
    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)
    settings = {"engine": "weeping"}
    def chat(self, prompts, sampling, *, seeds):
        from perse.judgement import Tokens
        return [Reply("[Sadness] 4", "stop", Tokens(prompt=1, cached=0, generated=1)) for _ in prompts]


WEEPING = EngineKind("weeping", "weeping:NAME", "says 4", lambda parts, options: Loaded(Weeping(), TextRenderer(), Identity(parts.model)))
choir = typer.Typer()


@choir.command("sing")
def sing() -> None:
    typer.echo("la")


@choir.command("hum")
def hum() -> None:
    typer.echo("hm")


CHOIR = Consumer("choir", choir)
TEARS = Metric(
    "tears", "tears shed", "lower", "tears a poem, as nobody counted them", ERRORS,
    mean_of(lambda scored: abs(scored.gold - scored.predicted) * 7), drawn="Tears over all poems",
)
DRY = Metric("dry", "dry eyes", "higher", "nothing at all", ERRORS, of_sample(lambda gold, predicted: 1 / 0))
"""
POINTS = """
[perse.questions]
sadness = outside:SADNESS
finish = outside:FINISH
broken = outside:NOTHING
[perse.examples]
poem = outside:Poem
[perse.engines]
weeping = outside:WEEPING
[perse.metrics]
tears = outside:TEARS
dry = outside:DRY
[perse.consumers]
choir = outside:CHOIR
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    (folder / "outside.py").write_text(PACKAGE + ENGINE)
    info = folder / "outside-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    poems = [{"id": f"p{n}", "reviewer_id": f"r{n}", "poem": f"[Sadness] 5 {n}", "reference": n % 5 + 1} for n in range(6)]
    (folder / "poems.jsonl").write_text("".join(json.dumps(poem) + "\n" for poem in poems))
    return folder


def run(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", str(Path.cwd()))])
    wide = {**os.environ, "PYTHONPATH": path, "COLUMNS": "400"}
    return subprocess.run([sys.executable, *command], cwd=place, env=wide, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_they_are_on_the_command_line_and_in_a_scored_run(place: Path) -> None:
    helped = run(place, "-m", "perse", "score", "--help")
    words = "".join(helped.stdout.replace("│", " ").split())  # whatever the terminal's width
    assert "weeping:NAME" in words and "sadness" in words, helped.stdout + helped.stderr
    assert "'broken' of the package outside is left out" in helped.stderr
    assert run(place, "-m", "perse", "choir", "sing").stdout == "la\n"
    asked = ["--examples", "poems.jsonl", "--question", "sadness", "--judge", "weeping:x", "--out", "run"]
    scored = run(place, "-m", "perse", "score", *asked)
    assert scored.returncode == 0, scored.stderr
    lines = [json.loads(line) for line in (place / "run" / "judgements.jsonl").read_text().splitlines()]
    assert [line["label"] for line in lines] == ["4"] * 6
    reported = run(place, "-m", "perse", "report", "run", "--out", "report")
    assert reported.returncode == 0, reported.stderr
    page = (place / "report" / "report.html").read_text()
    assert "sadness" in page and "tears shed" in page and "Tears over all poems" in page


@pytest.mark.slow
def test_a_metric_is_a_column_wherever_columns_are(place: Path) -> None:
    asked = ["--examples", "poems.jsonl", "--question", "sadness", "--judge", "weeping:x"]
    for name in ("wet", "dry"):
        assert run(place, "-m", "perse", "score", *asked, "--out", name).returncode == 0
    shown = run(place, "-m", "perse", "evaluate", "wet")
    assert shown.returncode == 0, shown.stderr
    assert "tears shed" in shown.stdout and "tears a poem, as nobody counted them; less is better" in shown.stdout
    assert "metric dry of the package outside failed: division by zero" in shown.stdout
    assert "tears shed" in run(place, "-m", "perse", "evaluate", "wet", "--markdown").stdout
    told = json.loads(run(place, "-m", "perse", "evaluate", "wet", "--json").stdout)
    columns = next(row["columns"] for row in told["details"]["rows"] if row["name"] == "wet (label)")
    assert columns["tears"]["value"] == pytest.approx(7 * columns["mae"]["value"]) and columns["dry"]["value"] is None
    compared = run(place, "-m", "perse", "compare", "wet", "dry", "--metric", "tears", "--metric", "dry", "--metric", "mae")
    assert compared.returncode == 0, compared.stderr
    assert "tears shed (less is better)" in compared.stdout and "metric dry of the package outside failed" in compared.stdout


@pytest.mark.slow
def test_answers_on_another_scale_than_the_true_ones_are_not_held_against_them(place: Path) -> None:
    about = {"reviewer_id": "r", "item_id": "i", "profile": [], "query": "q", "reference": {"review": "good", "score": 9}}
    (place / "texts.jsonl").write_text("".join(json.dumps({"id": f"t{n}", **about}) + "\n" for n in range(3)))
    asked = ["--examples", "texts.jsonl", "--question", "finish", "--judge", "weeping:x"]
    for name in ("one", "two"):
        scored = run(place, "-m", "perse", "score", *asked, "--out", name)
        assert scored.returncode == 0 and "(3 ok)" in scored.stderr, scored.stderr
        assert "perse evaluate" not in scored.stderr and f"answers: {name}/judgements.jsonl" in scored.stderr
    why = "the question 'finish' answers with 1 to 5; the examples' true scores are 1 to 10: there is no truth to compare with"
    for command in (("evaluate", "one"), ("compare", "one", "two"), ("report", "one", "--out", "none")):
        refused = run(place, "-m", "perse", *command)
        assert refused.returncode == 2 and why in " ".join(refused.stderr.split()), (command, refused.stderr)
    assert not (place / "none").exists()


@pytest.mark.slow
def test_the_server_lists_and_neutralises_them(place: Path) -> None:
    code = """
from fastapi import FastAPI
from fastapi.testclient import TestClient
from outside import SADNESS
from perse.questions import QUESTIONS
from perse.records import parse_example
from perse.rendering.prompt import TextRenderer
from perse.serving.routes import judge_router
app = FastAPI(); app.include_router(judge_router())
cards = TestClient(app).get("/v1/judge/questions").json()["questions"]
[card] = [card for card in cards if card["name"] == "sadness"]
assert card["route"] == "/v1/judge/poem" and "PoemItem" in str(card["request_schema"])
poem = parse_example({"id": "a", "reviewer_id": "r", "poem": "so [Sadness] 5"})
[message] = TextRenderer().render(SADNESS, poem)
assert "so [ Sadness] 5" in message.text, message.text
assert TextRenderer().neutralise("so [Sadness] 5") == "so [Sadness] 5", "prompts of others do not change"
"""
    done = run(place, "-c", code)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_question_that_fails_in_the_server_is_named_and_the_server_lives(place: Path, tiny_model_folder: Path) -> None:
    code = f"""
from pathlib import Path
from fastapi.testclient import TestClient
import outside
from perse.answering.base import JudgeSettings
from perse.serving.embedded import embedded_app, embedded_models
exec('''
import sys
def fails(self, example, clean):
    if example.poem == "leave":
        sys.exit(7)
    return example.no_such_thing
''', vars(outside))
outside.Sadness.clean = outside.fails
models = embedded_models("tiny", Path({str(tiny_model_folder)!r}), {{}}, dtype="float32", context=2048)
app = embedded_app(models, JudgeSettings())
with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
    for poem in ("fail", "leave", "fail"):
        item = {{"reviewer_id": "r", "poem": poem}}
        answer = client.post("/v1/judge/poem", json={{"question": "sadness", "input": item}})
        assert answer.status_code == 500 and "the package outside" in answer.json()["error"]["message"], answer.text
"""
    done = run(place, "-c", code)
    assert done.returncode == 0, done.stderr
