"""Servers under load and under fault, on vLLM and on the embedded engine: nothing is lost, nothing is mixed up, nothing grows."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest
from builders import pairwise_examples, pointwise_examples, tiny_llama
from served import Server, serving
from tolerances import share

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.judgement import Judgement
from perse.questions import QUESTIONS
from perse.questions.claims import VERIFY_FACTS
from perse.records import ClaimsExample, Example, ProfileReview
from perse.serving.front.keys import add_key

pytestmark = pytest.mark.integration

VLLM_HERE = pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` does it")
ENGINES = [pytest.param("vllm", marks=VLLM_HERE), "transformers"]
IN_VLLM_LONG = pytest.param("vllm", marks=[VLLM_HERE, pytest.mark.long])
ADMIN = "an administrator's key of the tests"
SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)
REQUESTS, CLIENTS = int(os.environ.get("PERSE_LOAD", "2000")), 64
GROWTH = 150 * 2**20
"""Bytes that a process may grow between the first and the second half of the requests: allocators keep what they had."""
KERNELS = {"ONEDNN_PRIMITIVE_CACHE_CAPACITY": "16"}
"""oneDNN keeps a kernel for each length of input, up to 1,024: some 900 MiB in all, which 40,000 requests fill."""


@pytest.fixture(scope="module")
def folder(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    tiny_llama(tokenizers["whole_numbers"], width=128).save_pretrained(folder)
    tokenizers["whole_numbers"].save_pretrained(folder)
    return folder


@pytest.fixture(scope="module", params=ENGINES)
def server(
    request: pytest.FixtureRequest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, str]]:
    """A server with a key, readers and limits; and the key."""
    place = tmp_path_factory.mktemp("server")
    key = add_key(place / "keys", "alice", ["judge", "readers"])
    (place / "adapters").mkdir()
    settings = ["model=" + str(folder), "dtype=float32", "temperature=0", "max_new_tokens=4", f"keys={place / 'keys'}",
                f"readers={place / 'readers.db'}", f"adapters_from={place / 'adapters'}", "limits.requests=64", "limits.deadline=60"]  # fmt: skip
    with serving(place / "log", *settings, engine=request.param, PERSE_ADMIN_KEY=ADMIN, **KERNELS) as running:
        yield running, key


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def asked_of(example: Example | ClaimsExample) -> dict[str, Any]:
    return example.model_dump(mode="json", exclude_none=True)


def mixed() -> list[tuple[str, str, list[Example]]]:
    """Requests of all kinds: (question, route, items), single ones and lists."""
    chance = random.Random(5)
    points, pairs = pointwise_examples(6, 8), pairwise_examples()
    kinds: list[tuple[str, str, list[Example]]] = []
    for n in range(REQUESTS):
        name = chance.choice(["pointwise", "pointwise_score", "pointwise_score", "pairwise"])
        pool: list[Any] = list(pairs if name == "pairwise" else points)
        some = [chance.choice(pool)] if n % 10 else chance.sample(pool, min(4, len(pool)))
        kinds.append((name, name.partition("_")[0], some))
    return kinds


def memory_of(server: Server) -> int:
    process = psutil.Process(server.process.pid)
    return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))


@pytest.mark.parametrize("server", [IN_VLLM_LONG, "transformers"], indirect=True)
def test_two_thousand_requests_of_sixty_four_clients_are_each_answered_as_offline(
    server: tuple[Server, str], folder: Path
) -> None:
    running, key = server
    requests = mixed()
    judge = Judge.load(folder, dtype="float32", context=2048)
    expected: dict[tuple[str, str], Judgement] = {}
    for name in ("pointwise", "pointwise_score", "pairwise"):
        known = {example.id: example for question, _, some in requests if question == name for example in some}
        expected |= {(name, one.id): one for one in judge.ask(QUESTIONS[name], list(known.values()), SETTINGS)}
    memory: list[int] = []

    async def run() -> list[httpx2.Response]:
        answers: list[Any] = [None] * len(requests)
        left = iter(enumerate(requests))

        async def client(http: httpx2.AsyncClient) -> None:
            for n, (name, route, some) in left:
                body = {"input": [asked_of(one) for one in some], "question": name}
                answers[n] = await http.post(f"{running.url}/v1/judge/{route}", json=body)
                if n in (REQUESTS // 2, REQUESTS - 1):
                    memory.append(memory_of(running))

        limits = httpx2.Limits(max_connections=CLIENTS)
        async with httpx2.AsyncClient(timeout=900, headers=bearer(key), limits=limits) as http:
            await asyncio.gather(*(client(http) for _ in range(CLIENTS)))
        return answers

    answers = asyncio.run(run())
    assert Counter(answer.status_code for answer in answers) == {200: REQUESTS}
    off = 0.0
    for (name, _, some), answer in zip(requests, answers, strict=True):
        results = [Judgement.model_validate(one) for one in answer.json()["results"]]
        assert [one.id for one in results] == [one.id for one in some], "each answer is that of its question"
        for one in results:
            alone = expected[name, one.id]
            assert one.question == name and one.status == alone.status
            if one.text == alone.text:  # a near tie may be written otherwise, and is then read behind other words
                shares = zip((one.distribution or {}).values(), (alone.distribution or {}).values(), strict=True)
                off = max([off, *(abs(a - b) for a, b in shares)])
    same = sum(
        one["text"] == expected[name, one["id"]].text
        for (name, _, _), answer in zip(requests, answers, strict=True)
        for one in answer.json()["results"]
    )
    total = sum(len(some) for _, _, some in requests)
    assert off <= max(2e-3, share(folder, 1000)) and same >= 0.98 * total, (off, same, total)
    assert memory[-1] - memory[0] < GROWTH, memory


def test_at_four_times_its_capacity_every_refusal_says_when_to_come_again(server: tuple[Server, str]) -> None:
    running, key = server
    body = {"input": [asked_of(one) for one in pointwise_examples(2, 2)], "max_new_tokens": 30, "temperature": 1.5}

    async def run() -> list[tuple[int, str | None, float]]:
        limits = httpx2.Limits(max_connections=256)
        async with httpx2.AsyncClient(timeout=900, headers=bearer(key), limits=limits) as http:

            async def ask() -> tuple[int, str | None, float]:
                begun = time.monotonic()
                answer = await http.post(f"{running.url}/v1/judge/pointwise", json=body)
                return answer.status_code, answer.headers.get("retry-after"), time.monotonic() - begun

            return await asyncio.gather(*(ask() for _ in range(256)))

    answers = asyncio.run(run())
    statuses = Counter(status for status, _, _ in answers)
    assert set(statuses) == {200, 503} and statuses[200] >= 64
    assert all(after and 1 <= int(after) <= 30 for status, after, _ in answers if status == 503)
    health = httpx2.get(f"{running.url}/ready")
    assert health.status_code == 200


def test_a_kept_reader_is_judged_by_name_and_leaves_the_caches(server: tuple[Server, str]) -> None:
    running, key = server
    reviews = [
        asked_of(ProfileReview(text=f"Plot {n} " + "of a long road " * 40, review="Said.", score=n)) for n in range(1, 9)
    ]  # type: ignore[arg-type]
    with httpx2.Client(base_url=running.url, headers=bearer(key), timeout=900) as http:
        sent = {"id": "q", "profile": reviews, "query": "A new plot."}
        kept = {"id": "q", "reader": "ann", "query": "A new plot."}

        def judged(item: dict[str, Any]) -> dict[str, Any]:
            answer = http.post("/v1/judge/pointwise", json={"input": item, "question": "pointwise_score"})
            assert answer.status_code == 200, answer.text
            return dict(answer.json())

        assert http.put("/v1/readers/ann", json={"reviews": reviews}).status_code == 200
        first = judged(kept)
        again = judged(sent)
        assert first["distribution"] == pytest.approx(again["distribution"], abs=2e-3)
        assert first["k_effective"] == again["k_effective"] > 2
        assert judged(kept)["tokens"]["cached"] >= 128
        assert http.delete("/v1/readers/ann").status_code == 200
        assert judged(sent)["tokens"]["cached"] == 0, "what was computed of the reader is gone"
        assert "ann" not in running.log.read_text()


def test_readers_that_leave_while_others_are_judged_change_no_answer(server: tuple[Server, str], folder: Path) -> None:
    running, key = server
    examples = pointwise_examples(4, 8)
    judge = Judge.load(folder, dtype="float32", context=2048)
    expected = {one.id: one for one in judge.ask(QUESTIONS["pointwise"], examples, SETTINGS)}

    async def run() -> list[dict[str, Any]]:
        async with httpx2.AsyncClient(base_url=running.url, timeout=900, headers=bearer(key)) as http:
            asking = [asyncio.create_task(http.post("/v1/judge/pointwise", json={"input": asked_of(one)})) for one in examples]
            while not all(one.done() for one in asking):
                await http.put("/v1/readers/goes", json={"reviews": []})
                assert (await http.delete("/v1/readers/goes")).status_code == 200
            return [(await one).json() for one in asking]

    off, same = 0.0, 0
    answers = asyncio.run(run())
    for answer in answers:
        alone = expected[answer["id"]]
        same += answer["text"] == alone.text
        if answer["text"] == alone.text:
            off = max(
                [off, *(abs(answer["distribution"][label] - share) for label, share in (alone.distribution or {}).items())]
            )
    assert off <= 2e-3 and same >= 0.95 * len(answers), (off, same)


def test_claims_in_one_prompt_are_judged_as_offline(server: tuple[Server, str], folder: Path) -> None:
    running, key = server
    lists = [
        ClaimsExample(
            id=str(n), reviewer_id="t", text=f"The bridge opened in {n}.", claims=(f"It opened in {n}.", "It did not.")
        )
        for n in range(8)
    ]
    judge = Judge.load(folder, dtype="float32", context=2048)
    expected = [claim for each in judge.ask_listed(VERIFY_FACTS, lists, SETTINGS) for claim in each]
    answer = httpx2.post(f"{running.url}/v1/judge/claims", json={"input": [asked_of(one) for one in lists]}, headers=bearer(key), timeout=900)  # fmt: skip
    found = [claim for each in answer.json()["results"] for claim in each["results"]]
    assert [one["id"] for one in found] == [one.id for one in expected]
    for one, two in zip(found, expected, strict=True):
        assert one["status"] == two.status and one["distribution"] == pytest.approx(two.distribution, abs=2e-3)


def test_every_route_of_the_server_wants_a_key_and_those_that_change_it_an_administrators(server: tuple[Server, str]) -> None:
    running, key = server
    described = httpx2.get(f"{running.url}/openapi.json").json()["paths"]
    open_to_all = {"/health", "/ready"}
    for_judges = ("/v1/judge", "/v1/chat", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/models", "/v1/readers",
                  "/tokenize", "/detokenize", "/version", "/metrics", "/load", "/ping")  # fmt: skip
    seen = Counter[str]()
    for path, methods in described.items():
        for method in methods:
            url = running.url + path.replace("{reader}", "nobody").replace("{response_id}", "x")
            without = httpx2.request(method.upper(), url)
            if path in open_to_all:
                assert without.status_code == 200
                continue
            assert without.status_code == 401, (method, path)
            if not path.startswith(for_judges):
                seen["administrators"] += 1
                assert httpx2.request(method.upper(), url, headers=bearer(key)).status_code == 403, (method, path)
    assert seen["administrators"] >= 1


def test_an_adapter_comes_while_the_server_runs_and_judges_as_offline(
    server: tuple[Server, str], folder: Path, tmp_path: Path
) -> None:
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    running, key = server
    adapters = running.log.parent / "adapters"
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(folder), LoraConfig(r=8, target_modules=["q_proj", "v_proj"], init_lora_weights=False))  # fmt: skip
    torch.manual_seed(1)
    model.save_pretrained(str(adapters / "second"))
    example = pointwise_examples(1, 1)[0]
    body = {"input": asked_of(example), "question": "pointwise_score", "model": "extra"}
    with httpx2.Client(base_url=running.url, timeout=900) as http:
        wanted = {"name": "extra", "folder": "second"}
        assert http.post("/v1/judge/pointwise", json=body, headers=bearer(key)).status_code == 404
        assert http.post("/v1/adapters", json=wanted, headers=bearer(key)).status_code == 403
        for folder_name, status in {"nowhere": 404, "../adapters/second": 404, ".": 404}.items():
            wrong = http.post("/v1/adapters", json={"name": "x", "folder": folder_name}, headers=bearer(ADMIN))
            assert wrong.status_code == status and "adapters_from has no folder" in wrong.text
        loaded = http.post("/v1/adapters", json=wanted, headers=bearer(ADMIN))
        assert loaded.status_code == 200 and loaded.json()["adapter"] is True, loaded.text
        assert http.post("/v1/adapters", json=wanted, headers=bearer(ADMIN)).status_code == 400
        served = http.post("/v1/judge/pointwise", json=body, headers=bearer(key)).json()
        listed = [one["id"] for one in http.get("/v1/models", headers=bearer(key)).json()["data"]]
        assert "extra" in listed and len(listed) == 2
        said = {"model": "extra", "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 1}
        assert http.post("/v1/chat/completions", json=said, headers=bearer(key)).json()["model"] == "extra"
        assert http.get("/version", headers=bearer(key)).json()["models"]["extra"] == loaded.json()
    alone = Judge.load(f"{folder}+{adapters / 'second'}", dtype="float32", context=2048)
    [expected] = alone.ask(QUESTIONS["pointwise_score"], [example], SETTINGS)
    [base] = Judge.load(folder, dtype="float32", context=2048).ask(QUESTIONS["pointwise_score"], [example], SETTINGS)
    assert served["adapter"] == "extra" and served["distribution"] == pytest.approx(expected.distribution, abs=2e-3)
    assert expected.distribution != pytest.approx(base.distribution, abs=4e-3), "the adapter makes a difference"


def test_what_is_counted_is_shown_beside_the_engines_own_numbers(server: tuple[Server, str]) -> None:
    running, key = server
    text = httpx2.get(f"{running.url}/metrics", headers=bearer(key)).text
    for name in ("perse_judgements_total", "perse_queue_seconds_count", "perse_shared_tokens_total", "perse_label_mass_bucket",
                 "perse_readers", 'perse_refused_total{reason="full"}'):  # fmt: skip
        assert name in text, name


@pytest.mark.parametrize("engine", [IN_VLLM_LONG, "transformers"])
def test_sigterm_under_load_loses_no_request(engine: str, folder: Path, tmp_path: Path) -> None:
    settings = [f"model={folder}", "dtype=float32", "temperature=1.5", "max_new_tokens=300"]
    items = [asked_of(one) for one in pointwise_examples(4, 2)]

    async def ask_on(http: httpx2.AsyncClient, url: str, n: int) -> tuple[int, int | str]:
        """How many answers there were, and how the last came: asked until the server refuses, or is gone."""
        for count in range(10_000):
            item = items[(n + count) % len(items)]
            try:
                answer = await http.post(f"{url}/v1/judge/pointwise", json={"input": item, "seed": count})
            except httpx2.ConnectError:
                return count, "closed"
            if answer.status_code != 200:
                return count, answer.status_code
        raise AssertionError("never refused")

    async def run(running: Server) -> list[tuple[int, int | str]]:
        async with httpx2.AsyncClient(timeout=900) as http:
            asking = [asyncio.create_task(ask_on(http, running.url, n)) for n in range(20)]
            await asyncio.sleep(2)
            running.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*asking)

    with serving(tmp_path / "log", *settings, engine=engine) as running:
        ends = asyncio.run(run(running))
        assert {end for _, end in ends} <= {503, "closed"}, ends
        assert running.process.wait(900) == 0, running.log.read_text()[-3000:]
