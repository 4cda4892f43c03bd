"""Several claims about one text in one request: a judgement for each, as the library gives them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from builders import pointwise_examples
from served import in_thread

from perse import Judge
from perse.answering.base import JudgeSettings
from perse.errors import BadInput
from perse.questions.claims import VERIFY_FACTS
from perse.records import ClaimsExample
from perse.serving.answers import Answers
from perse.serving.client import AsyncJudgeClient, JudgeClient, ServerError
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.replicas import Replicas
from perse.serving.schemas import MOST_CLAIMS
from perse.settings.serving import Limits

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)
TEXT = "The bridge opened in May, after two years of work."
CLAIMS = ("It opened in May.", "It opened in June.", "The work took two years.")


@pytest.fixture(scope="module")
def url(tiny_model_folder: Path) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as environment:
        for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
            environment.delenv(name, raising=False)
        models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)
        with in_thread(embedded_app(models, SETTINGS, limits=Limits(items=40))) as address:
            yield address


@pytest.mark.slow
@pytest.mark.numeric
def test_the_claims_of_a_text_have_the_judgements_that_the_library_gives_them(url: str, tiny_model_folder: Path) -> None:
    lists = [
        ClaimsExample(id="a", reviewer_id="t", text=TEXT, claims=CLAIMS),
        ClaimsExample(id="b", reviewer_id="t", text=TEXT, claims=CLAIMS[:1]),
    ]
    expected = Judge.load(tiny_model_folder, dtype="float32", context=2048).ask_listed(VERIFY_FACTS, lists, SETTINGS)
    with JudgeClient(url) as judge, Replicas([url]) as replicas:
        for asked in (judge, replicas):
            for example, claims in zip(lists, expected, strict=True):
                answered = asked.claims(example)
                assert [one.id for one in answered] == [one.id for one in claims]
                for one, two in zip(answered, claims, strict=True):
                    assert one.question == "verify_facts" and one.distribution == pytest.approx(two.distribution, abs=1e-5)
        [card] = [one for one in judge.questions() if one["name"] == "verify_facts"]
        assert card["route"] == "/v1/judge/claims" and card["labels"] == ["yes", "no"]

    async def same() -> list[str]:
        async with AsyncJudgeClient(url) as asking:
            return [one.id for one in await asking.claims({"id": "c", "text": TEXT, "claims": CLAIMS})]

    assert asyncio.run(same()) == ["c/1", "c/2", "c/3"]


def test_any_route_can_be_asked_by_its_name(url: str) -> None:
    claim = {"text": TEXT, "claim": CLAIMS[0]}
    with JudgeClient(url) as judge, Replicas([url]) as replicas:
        first = judge.ask("claim", claim)
        assert first.question == "verify_fact"
        assert replicas.ask("claim", claim).distribution == pytest.approx(first.distribution, abs=1e-5)
        assert judge.ask("claim", claim, question="verify_opinion").question == "verify_opinion"
        asked = [{**claim, "id": str(n), "claim": one} for n, one in enumerate(CLAIMS)]
        for many in (judge.ask_many("claim", asked), replicas.ask_many("claim", asked)):
            assert [getattr(one, "id", one) for one in many] == ["0", "1", "2"]
        assert judge.ask("summary", {"reviews": ["Warm."], "summary": "Warm."}).question == "coverage"
        assert judge.ask("pointwise", pointwise_examples(1, 1)[0]).question == "pointwise"

    async def same() -> tuple[Any, list[Any]]:
        async with AsyncJudgeClient(url) as asking:
            return await asking.ask("claim", claim), await asking.ask_many("claim", asked)

    one, some = asyncio.run(same())
    assert one.distribution == pytest.approx(first.distribution, abs=1e-5) and len(some) == 3


def test_what_is_asked_of_no_route_is_refused_before_it_is_sent() -> None:
    with JudgeClient("http://127.0.0.1:1") as judge:
        for kind in ("../readers/ann", "vote", ""):
            with pytest.raises(BadInput, match="is one of pointwise, .*; found"):
                judge.ask(kind, {"text": TEXT})
        for ask in (lambda: judge.ask("claims", {}), lambda: judge.ask_many("claims", [{}])):
            with pytest.raises(BadInput, match=r"claims\(\) asks about several claims"):
                ask()


def test_claims_about_one_text_stay_at_one_server() -> None:
    with Replicas([f"http://127.0.0.1:{n}" for n in (1, 2, 3)]) as judge:
        first = {judge.order({"text": TEXT, "claim": claim})[0] for claim in CLAIMS}
        assert first == {judge.order(ClaimsExample(id="a", reviewer_id="t", text=TEXT, claims=CLAIMS))[0]}
        assert len({judge.order({"text": f"Text {n}.", "claim": "It is."})[0] for n in range(20)}) == 3
        assert len({judge.order({"reviews": [f"Text {n}."], "summary": "It is."})[0] for n in range(20)}) == 3


def test_lists_in_a_list_keep_their_places_beside_bad_ones(url: str) -> None:
    good, long = {"id": "a", "text": TEXT, "claims": CLAIMS}, {"id": "b", "text": "word " * 3000, "claims": CLAIMS}
    answer = httpx2.post(f"{url}/v1/judge/claims", json={"input": [good, {"text": TEXT, "claims": []}, long]}, timeout=900)
    first, bad, too_long = answer.json()["results"]
    assert [one["id"] for one in first["results"]] == ["a/1", "a/2", "a/3"]
    assert bad["error"]["code"] == 400 and "claims" in bad["error"]["message"]
    assert {one["status"] for one in too_long["results"]} == {"too_long"}
    with JudgeClient(url) as judge:
        for item, code in ((long, 422), ({**good, "claims": ["x"] * (MOST_CLAIMS + 1)}, 400)):
            with pytest.raises(ServerError) as refused:
                judge.claims(item)
            assert refused.value.code == code
        with pytest.raises(ServerError, match="41 more would be above the limit of 40"):
            JudgeClient(url, tries=1).claims({"text": TEXT, "claims": ["x"] * 41})


def test_a_server_with_too_few_answers_to_claims_is_no_judge() -> None:
    answers = Answers("http://x", None)
    with pytest.raises(ServerError, match="3 results for 0 claims"):
        answers.claims({"results": [{}] * 3}, {"text": TEXT}, "verify_facts")
    for found in ({"results": []}, {"results": None}, {}):
        with pytest.raises(ServerError, match="for 3 claims"):
            answers.claims(found, {"id": "a", "claims": CLAIMS}, "verify_facts")
