"""Real vLLM on a CPU, offline and serving: the same judge as the embedded engine. .ci/run runs this; `make vllm` installs it.

Not among the numeric tests: vLLM's kernels are its own, and the variables that hold torch to AVX2 do not hold them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest
from builders import pairwise_examples, pointwise_examples, tiny_llama
from places import ROOT, SAMPLES
from served import ENVIRONMENT, Server, serving
from tolerances import EMBEDDED_LOGITS, WIDE_LOGITS, logprob, share

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.data.examples_file import read_examples
from perse.engines.sixteen_bit import slow_in_16_bit
from perse.evaluation.stats.correlation import FloatArray
from perse.judgement import Judgement, Status
from perse.prompts import source
from perse.questions import QUESTIONS
from perse.questions.votes import VOTES
from perse.records import Example, Pair, Voter, VotesExample, example_lines
from perse.rendering.prompt import Renderer, TextRenderer
from perse.serving.client import JudgeClient, ServerError
from perse.training.rows.branches import training_branches

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it"),
]

ITEMS = 24
"""Examples in all; so many for statistics of bfloat16's rounding."""

EXACT = 12
"""Of them, those of which float32 is held to its rounding: two readers, whose profiles are shared."""

KEY = "a key of at least sixteen characters"


def perse(*arguments: object) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "perse", *map(str, arguments)], capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=900
    )  # fmt: skip
    assert done.returncode == 0, f"{arguments}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@dataclass(frozen=True)
class Trained:
    """A judge that `perse train` made of the embedded model, and examples of readers it has not seen."""

    run: Path
    data: Path
    examples: Path

    def score(self, judge: object, out: str, *options: object) -> list[Judgement]:
        folder = self.run.parent / out
        perse("score", "--examples", self.examples, "--judge", judge, "--out", folder, "--context", 2048, *options)
        lines = (folder / "judgements.jsonl").read_text().splitlines()
        by_id = {judgement.id: judgement for judgement in map(Judgement.model_validate_json, lines)}
        assert all(judgement.status is Status.OK for judgement in by_id.values()), by_id
        return [by_id[example.id] for example in read_examples(self.examples)]

    def first(self, count: int) -> Trained:
        """The same judge with the first examples alone."""
        few = self.run.parent / f"first-{count}.jsonl"
        few.write_text("".join(self.examples.read_text().splitlines(keepends=True)[:count]))
        return replace(self, examples=few)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    folder = tmp_path_factory.mktemp("trained")
    run, data, examples = folder / "run", folder / "data", folder / "examples.jsonl"
    perse("data", "pointwise", "--reviews", SAMPLES / "reviews.jsonl", "--items", SAMPLES / "items.jsonl", "--profiles", "per_reviewer_epoch", "--valid", "0.34", "--out", data)  # fmt: skip
    perse(
        "train",
        "--config",
        "embedded_lora",
        f"data.path={data}",
        "data.max_examples=16",
        "model.dtype=float32",
        f"output={run}",
    )
    lines = perse("data", "export", data).splitlines(keepends=True)
    examples.write_text("".join(lines[:ITEMS]))
    assert len(read_examples(examples)) == ITEMS
    return Trained(run, data, examples)


@pytest.fixture(scope="module")
def server(trained: Trained, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The trained judge in float32."""
    log = tmp_path_factory.mktemp("server") / "log"
    with serving(log, f"model={trained.run}", "dtype=float32") as running:
        yield running


@pytest.fixture(scope="module")
def embedded32(trained: Trained) -> list[Judgement]:
    return trained.score(trained.run, "embedded-32", "--dtype", "float32", "--question", "pointwise_score")


@pytest.fixture
def say(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Prints a measured difference also when the test passes."""

    def print_through(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")

    return print_through


def largest_difference(one: list[Judgement], two: list[Judgement]) -> float:
    assert one and [a.id for a in one] == [b.id for b in two]
    found = [(a.distribution or {}, b.distribution or {}) for a, b in zip(one, two, strict=True)]
    assert all(a and a.keys() == b.keys() for a, b in found), "an item without a distribution compares nothing"
    return max(abs(a[label] - b[label]) for a, b in found for label in a)


def rounding_of(trained: Trained) -> float:
    """Of a label's probability in float32, from a prompt of about 1,000 tokens."""
    return share(trained.run / "merged", 1000, logits=EMBEDDED_LOGITS)


def expected_of(judgements: list[Judgement]) -> FloatArray:
    found = np.array([judgement.expected for judgement in judgements], dtype=float)
    assert found.shape == (ITEMS,) and np.isfinite(found).all(), "an item without an expected score compares nothing"
    return found


def rms(differences: FloatArray) -> float:
    return float(np.sqrt(np.mean(differences**2)))


def served(server: Server, trained: Trained, **asked: Any) -> list[Judgement]:
    with JudgeClient(server.url, model=asked.pop("model", None)) as client:
        results = client.pointwise_many(read_examples(trained.examples), question="pointwise_score", **asked)
    return [result for result in results if isinstance(result, Judgement)]


def test_vllm_offline_gives_the_embedded_engines_distributions(
    trained: Trained, embedded32: list[Judgement], say: Callable[[str], None]
) -> None:
    some = trained.first(EXACT)
    offline = some.score(f"vllm:{trained.run}", "offline-32", "--dtype", "float32", "--question", "pointwise_score")
    difference = largest_difference(offline, embedded32[:EXACT])
    say(f"offline vLLM, float32, {len(offline)} items: largest difference of a label's probability {difference:.1e}")
    assert difference <= rounding_of(trained)
    assert sum(judgement.tokens.cached for judgement in offline) > 0, "profiles are shared"


def test_the_server_gives_the_embedded_engines_distributions(
    trained: Trained, server: Server, embedded32: list[Judgement], say: Callable[[str], None]
) -> None:
    answers = served(server, trained.first(EXACT))
    difference = largest_difference(answers, embedded32[:EXACT])
    say(f"server, float32, {len(answers)} items: largest difference of a label's probability {difference:.1e}")
    assert difference <= rounding_of(trained)


def test_the_openai_engine_gives_the_embedded_engines_distributions(
    trained: Trained, server: Server, embedded32: list[Judgement], say: Callable[[str], None]
) -> None:
    answers = trained.first(EXACT).score(f"openai:{server.url}/v1#run", "openai-32", "--question", "pointwise_score")
    difference = largest_difference(answers, embedded32[:EXACT])
    say(f"openai engine, float32, {len(answers)} items: largest difference of a label's probability {difference:.1e}")
    assert difference <= rounding_of(trained)
    assert sum(judgement.tokens.cached for judgement in answers) > 0, "the server says what it had cached"


def test_pairs_in_both_orders_are_the_same_on_the_server(trained: Trained, server: Server) -> None:
    examples = pairwise_examples()
    judge = Judge.load(trained.run, dtype="float32", context=2048)
    expected = judge.ask(QUESTIONS["pairwise"], examples, JudgeSettings(temperature=0))
    with JudgeClient(server.url) as client:
        answers = client.pairwise_many(examples, temperature=0)
    both = [answer for answer in answers if isinstance(answer, Judgement)]
    most = rounding_of(trained)
    assert largest_difference(both, expected) <= most
    assert [one.order_gap for one in both] == pytest.approx([two.order_gap for two in expected], abs=2 * most, rel=0)


def test_reviews_written_greedily_are_the_same_on_every_engine(trained: Trained, server: Server) -> None:
    """Float32, so that near ties fall alike; the chat route of the same server only has words to tell."""
    examples: list[Example] = [*read_examples(trained.examples)[:6]]
    settings = JudgeSettings(temperature=0, max_new_tokens=24)
    embedded = Judge.load(trained.run, dtype="float32", context=2048).ask(QUESTIONS["pointwise"], examples, settings)
    with JudgeClient(server.url) as client:
        on_server = client.pointwise_many(examples, temperature=0, max_new_tokens=24)
    by_api = Judge.load(f"openai:{server.url}/v1#run").ask(QUESTIONS["pointwise"], examples, settings)
    most = logprob(trained.run / "merged", 1100, logits=EMBEDDED_LOGITS)
    for one, two, three in zip(embedded, on_server, by_api, strict=True):
        assert isinstance(two, Judgement)
        assert one.text == two.text == three.text and one.finish_reason == two.finish_reason == three.finish_reason
        assert two.mean_logprob == pytest.approx(one.mean_logprob, abs=most, rel=0)
        assert three.mean_logprob == pytest.approx(one.mean_logprob, abs=most, rel=0)
    assert largest_difference(by_api, embedded) <= rounding_of(trained)


def test_reasons_and_votes_of_several_roles_in_one_prompt_are_the_embedded_engines(trained: Trained, server: Server) -> None:
    """The lines around each reason are ours, and what was written goes on being read (DRPE's batch prompting)."""
    roles = (("Sailor", "Asks whether the ferry sails."), ("Clerk", "Wants every date."), ("Child", "Likes ships."))
    examples = [
        VotesExample(
            id=name, reviewer_id=name, article="The ferry sails again from Monday, says the harbour.",
            query=Pair(text_a="The ferry sails again.", text_b="The harbour speaks of Monday."),
            voters=tuple(Voter(type=kind, description=description) for kind, description in chosen),
        )
        for name, chosen in (("three", roles), ("two", roles[::-2]))
    ]  # fmt: skip
    settings = JudgeSettings(temperature=0, max_new_tokens=12)
    judges = (Judge.load(trained.run, dtype="float32", context=2048), Judge.load(f"openai:{server.url}/v1#run"))
    embedded, by_api = ([one for each in judge.ask_listed(VOTES, examples, settings) for one in each] for judge in judges)
    assert [one.id for one in by_api] == ["three/1", "three/2", "three/3", "two/1", "two/2"]
    assert [one.text for one in by_api] == [one.text for one in embedded] and all(one.text for one in by_api)
    assert largest_difference(by_api, embedded) <= rounding_of(trained)
    most = logprob(trained.run / "merged", 400, logits=EMBEDDED_LOGITS)
    assert [one.mean_logprob for one in by_api] == pytest.approx([one.mean_logprob for one in embedded], abs=most, rel=0)


@pytest.mark.long
def test_adapters_differ_from_their_base_as_they_do_in_hugging_face(
    trained: Trained, tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Short items: on a CPU, vLLM gathers an adapter's weights for every token of a prompt."""
    few = Trained(trained.run, trained.data, tmp_path / "few.jsonl")
    few.examples.write_text("".join(example_lines(pointwise_examples(2, 2, k=1))))
    examples, question, adapted = read_examples(few.examples), QUESTIONS["pointwise_score"], f"smollm2-135m+{trained.run}"

    def here(judge: str) -> list[Judgement]:
        return Judge.load(judge, dtype="float32", context=2048).ask(question, examples)

    plain, hugging_face = here("smollm2-135m"), here(adapted)
    offline = few.score(f"vllm:{adapted}", "few-offline", "--dtype", "float32", "--question", "pointwise_score")
    kept = f"batches={tmp_path / 'batches'}"
    with serving(tmp_path / "log", "dtype=float32", f"adapters.first={trained.run}", kept) as running:
        base, first = served(running, few), served(running, few, model="first")
        listed = httpx2.get(f"{running.url}/v1/models").json()["data"]
        by_api = here(f"openai:{running.url}/v1#first")
        with JudgeClient(running.url, model="first") as judge:
            name = judge.submit("pointwise", examples, question=question.name)
            while judge.batch(name)["status"] != "done":
                time.sleep(0.2)
            later = [one for one in judge.batch_results(name) if isinstance(one, Judgement)]
    assert {judgement.adapter for judgement in base} == {None} and {judgement.adapter for judgement in first} == {"first"}
    assert [entry["id"] for entry in listed] == ["smollm2-135m", "first"]
    moved = largest_difference(plain, hugging_face)
    apart = [largest_difference(other, hugging_face) for other in (offline, first, by_api, later)]
    say(
        f"the adapter moves a label by up to {moved:.3f}; from Hugging Face's differ by up to: vLLM offline {apart[0]:.1e}, "
        f"the server {apart[1]:.1e}, the openai engine {apart[2]:.1e}, a batch {apart[3]:.1e}"
    )
    assert moved > 0.01, "an adapter that changes nothing would prove nothing"
    assert max(*apart, largest_difference(base, plain)) <= rounding_of(trained)


@pytest.mark.long
@pytest.mark.skipif(
    slow_in_16_bit(), reason="without AVX-512 a model of 135M answers in bfloat16 some 5 times slower than in float32"
)
def test_bfloat16_expected_scores_agree_within_rounding(
    trained: Trained, embedded32: list[Judgement], tmp_path: Path, say: Callable[[str], None]
) -> None:
    """Against the embedded engine 9 of 10 items within 0.15, and no farther from float32 than twice what its own rounding is.

    How much bfloat16 moves an expected score depends on the judge: the largest difference of 50 items was 0.115 with one, 0.161
    with another. So the largest is printed, and what is asserted holds for every judge.
    """
    exact = expected_of(embedded32)
    embedded = trained.score(trained.run, "embedded-16", "--question", "pointwise_score")
    offline = trained.score(f"vllm:{trained.run}", "offline-16", "--question", "pointwise_score")
    with serving(tmp_path / "log", f"model={trained.run}") as running:
        on_server = served(running, trained)
    here = expected_of(embedded)
    rounding = rms(here - exact)
    for name, others in (("vLLM offline", offline), ("the server", on_server)):
        there = expected_of(others)
        gaps = np.abs(there - here)
        say(
            f"bfloat16, expected scores of {len(gaps)} items, {name} against the embedded engine: median difference "
            f"{np.median(gaps):.3f}, 90% {np.quantile(gaps, 0.9):.3f}, largest {gaps.max():.3f}; root mean square from float32: "
            f"{name} {rms(there - exact):.3f}, the embedded engine {rounding:.3f}"
        )
        assert np.quantile(gaps, 0.9) < 0.15
        assert 0 < rms(there - exact) < 2 * rounding


def trained_on(renderer: Renderer) -> list[tuple[tuple[int, ...], str]]:
    """The prompts of training rows, and the same as a user's message in words."""
    found = []
    for name, examples in (("pointwise", pointwise_examples(2, 2)), ("pairwise", pairwise_examples(2))):
        question = QUESTIONS[name]
        rows = training_branches(renderer, question, examples).fitting
        words = [TextRenderer().render(question, example)[0].text for example in examples]
        found += [(row.prompt, text) for row, text in zip(rows, words, strict=True)]
    return found


def same_ids(url: str, model: str, renderer: Renderer, key: str | None = None) -> None:
    """The ids rendered for training are what vLLM says it was given, and what it makes of the same words by itself."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    for ids, words in trained_on(renderer):
        asked = {"model": model, "max_tokens": 1, "return_token_ids": True}
        given = httpx2.post(f"{url}/v1/completions", json={**asked, "prompt": list(ids)}, headers=headers, timeout=900).json()
        assert tuple(given["choices"][0]["prompt_token_ids"]) == ids
        messages = [{"role": "user", "content": words}]
        chatted = httpx2.post(
            f"{url}/v1/chat/completions", json={**asked, "messages": messages}, headers=headers, timeout=900
        ).json()
        assert tuple(chatted["prompt_token_ids"]) == ids


def test_ids_trained_on_are_the_ids_vllm_reports_for_chatml(server: Server, trained: Trained) -> None:
    from transformers import AutoTokenizer

    same_ids(server.url, "run", Renderer(AutoTokenizer.from_pretrained(trained.run / "merged"), 2048))


@pytest.fixture(scope="module")
def llama2(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with LLaMA-2's tokenizer: split digits, a dummy prefix, [INST]."""
    folder = tmp_path_factory.mktemp("small") / "llama2"
    tiny_llama(tokenizers["llama2"], width=128).save_pretrained(folder)
    tokenizers["llama2"].save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def small(llama2: Path) -> Iterator[Server]:
    """That model on every address of this machine, with a key."""
    template = llama2.parent / "llama2_chat.jinja"
    template.write_text(source("llama2_chat.jinja"))
    settings = (f"model={llama2}", "host=0.0.0.0", "dtype=float32", f"vllm.chat_template={template}")
    with serving(llama2.parent / "log", *settings, PERSE_API_KEY=KEY) as running:
        yield replace(running, url=running.url.replace("0.0.0.0", "127.0.0.1"))


def test_ids_trained_on_are_the_ids_vllm_reports_for_llama2(small: Server, llama2: Path, tokenizers: dict[str, Any]) -> None:
    same_ids(small.url, "llama2", Renderer(tokenizers["llama2"], 2048), KEY)


def test_a_llama2_tokenizers_distributions_are_the_embedded_engines(small: Server, llama2: Path) -> None:
    examples = pointwise_examples(2, 3)
    with JudgeClient(small.url, key=KEY) as client:
        answers = client.pointwise_many(examples, question="pointwise_score", temperature=0)
    judge = Judge.load(llama2, dtype="float32", context=2048)
    expected = judge.ask(QUESTIONS["pointwise_score"], examples, JudgeSettings(temperature=0))
    assert largest_difference([a for a in answers if isinstance(a, Judgement)], expected) <= share(
        llama2, 1000, logits=WIDE_LOGITS
    )


def test_drawn_reviews_depend_on_the_seed_alone(small: Server, tokenizers: dict[str, Any]) -> None:
    """More prompt tokens than vLLM computes in a step: on a CPU, a seeded prompt cut in two would kill its engine."""
    examples = pointwise_examples(12, 1, k=4)
    renderer = Renderer(tokenizers["llama2"], 2048)
    prompts = [renderer.render(QUESTIONS["pointwise"], example)[0].ids for example in examples]
    assert sum(map(len, prompts)) > 4096

    def texts(seed: int) -> list[str]:
        with JudgeClient(small.url, key=KEY) as client:
            answers = client.pointwise_many(examples, temperature=0.8, max_new_tokens=12, seed=seed)
        return [answer.text for answer in answers if isinstance(answer, Judgement)]

    first = texts(1)
    assert len(first) == 12 and len(set(first)) > 3
    assert texts(1) == first != texts(2)


def test_with_a_key_every_route_of_vllms_server_wants_it(small: Server) -> None:
    for path in ("/version", "/v1/models", "/metrics", "/v1/judge/questions", "/tokenize", "/nowhere"):
        answer = httpx2.get(f"{small.url}{path}")
        assert answer.status_code == 401 and answer.json()["error"]["code"] == 401, path
    assert httpx2.get(f"{small.url}/health").status_code == 200
    with JudgeClient(small.url, key=KEY) as client:
        assert client.pointwise(pointwise_examples(1, 1)[0], question="pointwise_score").distribution
        assert set(client.version()["models"]) == {"llama2"}


def test_a_server_whose_engine_is_gone_says_so_and_ends_with_a_code_to_start_another_after(small: Server) -> None:
    """Requests get 503 in our shape, or no answer from a server that is gone already; supervisors start another after a code that
    is neither 0 nor 2. The last test of this server, which nobody can ask afterwards."""
    children = subprocess.run(
        ["ps", "--ppid", str(small.process.pid), "-o", "pid=,args="], capture_output=True, text=True, check=True
    )
    [engine] = [line.split()[0] for line in children.stdout.splitlines() if "EngineCore" in line]
    os.kill(int(engine), signal.SIGKILL)
    with JudgeClient(small.url, key=KEY, tries=1) as client, pytest.raises(ServerError) as raised:
        client.pointwise(pointwise_examples(1, 1)[0], question="pointwise_score")
    assert raised.value.code in (0, 503), raised.value
    assert small.process.wait(900) == 3


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("vllm.host=0.0.0.0", "vllm.host is perse's to set; use host="),
        ("vllm.max_num_sequences=8", "vLLM has no option 'max_num_sequences'; did you mean 'vllm.max_num_seqs'?"),
    ],
)
def test_options_that_would_make_ours_untrue_are_refused(
    setting: str, message: str, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    tiny_llama(tokenizers["whole_numbers"], width=128).save_pretrained(tmp_path)
    tokenizers["whole_numbers"].save_pretrained(tmp_path)
    done = subprocess.run(
        [sys.executable, ROOT / "serve.py", "--config", "embedded", "engine=vllm", "port=0", f"model={tmp_path}", setting],
        cwd=ROOT, capture_output=True, text=True, check=False, env=ENVIRONMENT, timeout=900,
    )  # fmt: skip
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr, done.stderr[-2000:]


def test_refusals_have_the_embedded_servers_shape(server: Server) -> None:
    url = f"{server.url}/v1/judge/pointwise"
    json_header = {"Content-Type": "application/json"}
    asked: list[tuple[bytes, int, str]] = [
        (b'{"input": {', 400, "the body is not JSON"),
        (
            b'{"input": {"profile": [], "query": "x"}, "model": "other"}',
            404,
            "there is no model 'other' here; served are run",
        ),
        (
            json.dumps({"input": {"profile": [], "query": "word " * 3000}}).encode(),
            422,
            "words with an empty profile; the budget is",
        ),
    ]
    for content, code, message in asked:
        answer = httpx2.post(url, content=content, headers=json_header)
        error = answer.json()["error"]
        assert answer.status_code == code == error["code"] and message in error["message"]
        assert set(error) == {"message", "type", "param", "code", "details"}
        if code == 422:
            assert error["details"]["tokens"] > error["details"]["token_budget"] and error["details"]["word_budget"] == 2500
    assert httpx2.get(f"{server.url}/nowhere").json()["error"]["code"] == 404
    paths = httpx2.get(f"{server.url}/openapi.json").json()["paths"]
    assert {"/v1/judge/pointwise", "/v1/judge/pairwise", "/v1/judge/questions", "/health", "/ready", "/version"} <= set(paths)


def test_a_client_that_leaves_stops_its_requests(server: Server) -> None:
    """It leaves once vLLM is seen at work: how long a machine takes to begin is no business of this test."""
    asked = {"input": [json.loads(line) for line in example_lines(pointwise_examples(4, 8))]}

    async def ask_and_leave() -> None:
        async with httpx2.AsyncClient(timeout=None) as client:
            asking = asyncio.create_task(
                client.post(f"{server.url}/v1/judge/pointwise", json=asked | {"temperature": 2, "max_new_tokens": 1500})
            )
            end = time.monotonic() + 900
            while not await asyncio.to_thread(running, server):
                assert not asking.done(), asking.result().text
                assert time.monotonic() < end, "vLLM never began"
                await asyncio.sleep(0.1)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking

    asyncio.run(ask_and_leave())
    end = time.monotonic() + 30  # the whole answer of 4 * 1500 tokens takes this vLLM minutes
    while running(server):
        assert time.monotonic() < end, "vLLM still works on what nobody waits for"
        time.sleep(0.2)


def test_a_client_that_waits_too_briefly_is_told_so(server: Server) -> None:
    with (
        JudgeClient(server.url, timeout=0.5) as client,
        pytest.raises(ServerError, match="took longer than the client waits"),
    ):
        client.pointwise_many(pointwise_examples(1, 8), temperature=2, max_new_tokens=1500)


def running(server: Server) -> float:
    metrics = httpx2.get(f"{server.url}/metrics").text
    return sum(float(n) for n in re.findall(r"^vllm:num_requests_(?:running|waiting)\{[^}]*\} (\S+)", metrics, re.MULTILINE))


def test_json_schemas_are_obeyed_and_nothing_is_read_under_them(server: Server) -> None:
    from perse.engines.base import Generation, Sampling

    schema = {
        "type": "object",
        "properties": {"liked": {"type": "boolean"}, "score": {"type": "integer", "minimum": 1, "maximum": 10}},
        "required": ["liked", "score"],
        "additionalProperties": False,
    }
    judge = Judge.load(f"openai:{server.url}/v1#run")
    assert isinstance(judge.renderer, Renderer)
    prompts = [judge.renderer.render(QUESTIONS["pointwise"], example)[0].ids for example in pointwise_examples(1, 3)]
    answers = judge.engine.generate(prompts, Sampling(0.8, 60, schema=schema), seeds=[1, 2, 3])  # type: ignore[union-attr]
    for answer in answers:
        assert isinstance(answer, Generation) and answer.mean_logprob is None
        read = json.loads(judge.renderer.decode(answer.ids))
        assert set(read) == {"liked", "score"} and isinstance(read["liked"], bool) and 1 <= read["score"] <= 10


def test_examples_files_are_sent_as_they_stand(server: Server, trained: Trained) -> None:
    """A line of `perse data export` is an item."""
    lines = trained.examples.read_text().splitlines()[:3]
    assert [json.loads(line) for line in lines] == [
        json.loads(line) for line in example_lines(read_examples(trained.examples)[:3])
    ]
    answer = httpx2.post(
        f"{server.url}/v1/judge/pointwise", json={"input": [json.loads(line) for line in lines], "question": "pointwise_score"}, timeout=900
    )  # fmt: skip
    assert [result["id"] for result in answer.json()["results"]] == [json.loads(line)["id"] for line in lines]
