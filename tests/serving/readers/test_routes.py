"""Readers over HTTP: kept, judged by name, each caller's own, and gone when deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from builders import pairwise_examples
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.front.keys import add_key
from perse.serving.readers.store import Reader, Readers
from perse.serving.service import Model

SETTINGS = JudgeSettings(temperature=0, max_new_tokens=4)
PROFILE: list[dict[str, Any]] = [
    {"text": f"Plot number {n} of a keeper who waits.", "review": f"review {n}", "score": n} for n in range(1, 6)
]
QUERY = "A retired postman walks his old round one last time."


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def models(tiny_model_folder: Path) -> dict[str, Model]:
    return embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)


@pytest.fixture
def http(models: dict[str, Model], tmp_path: Path) -> Iterator[TestClient]:
    app = embedded_app(models, SETTINGS, readers=Readers.open(str(tmp_path / "readers.db")))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client


def judged(http: TestClient, item: dict[str, Any], **settings: Any) -> dict[str, Any]:
    question = "pointwise_score" if isinstance(item.get("query"), str) else "pairwise"
    answer = http.post(f"/v1/judge/{question.partition('_')[0]}", json={"input": item, "question": question, **settings})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_kept_reader_is_judged_as_with_the_profile_sent(http: TestClient) -> None:
    put = http.put("/v1/readers/ann", json={"reviews": PROFILE})
    assert put.status_code == 200 and (put.json()["reviews"], put.json()["comparisons"]) == (5, 0)
    sent = judged(http, {"id": "q", "profile": PROFILE, "query": QUERY})
    kept = judged(http, {"id": "q", "reader": "ann", "query": QUERY})
    assert kept["distribution"] == pytest.approx(sent["distribution"], abs=1e-6) and kept["k_effective"] == 5
    two = judged(http, {"id": "q", "reader": "ann", "query": QUERY}, k=2)
    assert two["distribution"] == pytest.approx(
        judged(http, {"id": "q", "profile": PROFILE[-2:], "query": QUERY})["distribution"], abs=1e-6
    ), "the last two"


def test_pairs_are_asked_with_kept_comparisons(http: TestClient) -> None:
    example = pairwise_examples()[0].model_dump(mode="json", exclude_none=True)
    http.put("/v1/readers/ann", json={"comparisons": example["profile"]})
    sent = judged(http, example)
    example.pop("profile")
    kept = judged(http, {**example, "reader": "ann"})
    assert kept["distribution"] == pytest.approx(sent["distribution"], abs=1e-6) and kept["k_effective"] == sent["k_effective"]


def test_a_judge_of_pairs_that_was_trained_on_the_asked_aspect_alone_is_shown_no_other_here(
    tiny_model_folder: Path, models: dict[str, Model], tmp_path: Path
) -> None:
    """Whether an entry is sent or kept; of a judge that was not trained so all of it is shown."""
    shutil.copytree(tiny_model_folder, tmp_path / "run" / "merged")
    trained = {"kind": "train", "config": {"data": {"profile_aspects": "asked"}}}
    (tmp_path / "run" / "manifest.json").write_text(json.dumps({"run": trained}))
    mine = embedded_models("mine", tmp_path / "run" / "merged", {}, dtype="float32", context=2048)
    texts = [{"text_a": f"Story {n} of a ferry.", "text_b": f"Story {n} of a tram."} for n in range(3)]
    both = [one | {"preference": {"Ending": "A", "Surprise": "B"}} for one in texts[:2]]
    both.append(texts[2] | {"preference": {"Ending": "A"}})  # which says nothing of what is asked
    alone = [one | {"preference": {"Surprise": "B"}} for one in texts[:2]]
    query = {"query": {"text_a": "A postman walks.", "text_b": "A postman sits."}, "aspect": "Surprise"}
    app = embedded_app({**mine, **models}, SETTINGS, readers=Readers.open(str(tmp_path / "readers.db")))
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as http:
        assert http.put("/v1/readers/ann", json={"comparisons": both}).status_code == 200
        sent, kept = (judged(http, query | {"id": "q"} | more) for more in ({"profile": both}, {"reader": "ann"}))
        asked = judged(http, query | {"id": "q", "profile": alone})
        for one in (sent, kept):
            assert one["distribution"] == pytest.approx(asked["distribution"], abs=1e-6)
            assert (one["k_effective"], one["tokens"]["prompt"]) == (2, asked["tokens"]["prompt"])
        whole = judged(http, query | {"id": "q", "profile": both}, model="tiny")
        assert whole["k_effective"] == 3 and whole["tokens"]["prompt"] > asked["tokens"]["prompt"]


@pytest.mark.slow
@pytest.mark.parametrize("pick", ["recent", "random", "bm25", "diverse"])
def test_each_way_to_pick_shows_k_entries_and_the_same_each_time(http: TestClient, pick: str) -> None:
    http.put("/v1/readers/ann", json={"reviews": PROFILE})
    answers = [judged(http, {"id": "q", "reader": "ann", "query": QUERY}, k=3, pick=pick) for _ in range(2)]
    assert answers[0]["k_effective"] == 3
    assert answers[0]["distribution"] == pytest.approx(answers[1]["distribution"], abs=1e-6)


def test_a_choice_of_entries_where_no_reader_is_named_is_refused(http: TestClient) -> None:
    for choice in ({"k": 1}, {"pick": "random"}):
        answer = http.post("/v1/judge/pointwise", json={"input": {"profile": PROFILE, "query": QUERY}, **choice})
        assert answer.status_code == 400 and "no item names a 'reader'" in answer.json()["error"]["message"]


def test_what_is_asked_about_is_never_shown(http: TestClient) -> None:
    near = "A retired postman walks his old round one last time, slowly and in the rain, until dusk falls on the town."
    entries = [
        *PROFILE,
        {"text": near, "review": "THE ANSWER", "score": 9},
        {**PROFILE[0], "item_id": "i7", "text": "other words"},
    ]
    http.put("/v1/readers/ann", json={"reviews": entries})
    assert judged(http, {"reader": "ann", "query": near.replace("slowly", "Slowly")})["k_effective"] == 6
    assert judged(http, {"reader": "ann", "query": QUERY, "item_id": "i7"})["k_effective"] == 6
    assert judged(http, {"reader": "ann", "query": QUERY})["k_effective"] == 7


def test_a_bad_name_in_a_list_has_its_error_and_the_others_their_answers(http: TestClient) -> None:
    http.put("/v1/readers/ann", json={"reviews": PROFILE})
    items = [{"reader": "bob", "query": QUERY}, {"reader": "ann", "query": QUERY}, {"query": QUERY}, {"reader": "ann", "profile": [], "query": QUERY}]  # fmt: skip
    results = http.post("/v1/judge/pointwise", json={"input": items, "question": "pointwise_score"}).json()["results"]
    assert [results[n]["error"]["code"] for n in (0, 2, 3)] == [404, 400, 400] and results[1]["k_effective"] == 5
    assert "no reader 'bob' of yours here" in results[0]["error"]["message"]
    assert "found neither profile nor reader" in results[2]["error"]["message"]
    assert "found both profile and reader" in results[3]["error"]["message"]
    alone = http.post("/v1/judge/pointwise", json={"input": items[0]})
    assert alone.status_code == 404


def test_a_deleted_reader_is_gone_also_from_what_the_engine_keeps(http: TestClient, models: dict[str, Model]) -> None:
    http.put("/v1/readers/ann", json={"reviews": PROFILE})
    judged(http, {"id": "q", "reader": "ann", "query": QUERY})
    assert judged(http, {"id": "q", "reader": "ann", "query": QUERY})["tokens"]["cached"] > 50
    assert http.delete("/v1/readers/ann").json() == {"reader": "ann", "deleted": True}
    for answer in (http.get("/v1/readers/ann"), http.delete("/v1/readers/ann")):
        assert answer.status_code == 404 and "no reader 'ann' of yours" in answer.json()["error"]["message"]
    assert http.get("/v1/readers").json() == {"readers": []}
    assert judged(http, {"id": "q", "profile": PROFILE, "query": QUERY})["tokens"]["cached"] == 0


def test_one_key_never_reaches_anothers_readers(models: dict[str, Model], tmp_path: Path) -> None:
    file = tmp_path / "keys"
    bearer = {
        name: {"Authorization": f"Bearer {add_key(file, name, scopes)}"}
        for name, scopes in {
            "alice": ["judge", "readers"],
            "bob": ["judge", "readers"],
            "carl": ["judge"],
            "root": ["admin"],
        }.items()
    }
    app = embedded_app(models, SETTINGS, keys=file, readers=Readers.open(str(tmp_path / "readers.db")))
    with TestClient(app, base_url="http://127.0.0.1") as http:
        assert http.put("/v1/readers/ann", json={"reviews": PROFILE}, headers=bearer["alice"]).status_code == 200
        asked = {"input": {"reader": "ann", "query": QUERY}, "question": "pointwise_score"}
        for who, status in {"alice": 200, "bob": 404, "carl": 403, "root": 404}.items():
            assert http.post("/v1/judge/pointwise", json=asked, headers=bearer[who]).status_code == status, who
        listed = {**asked, "input": [asked["input"], {"profile": PROFILE, "query": QUERY}]}
        refused, judgement = http.post("/v1/judge/pointwise", json=listed, headers=bearer["carl"]).json()["results"]
        assert refused["error"]["code"] == 403 and "needs the scope 'readers'" in refused["error"]["message"]
        assert judgement["distribution"]
        for who in ("bob", "root"):
            assert http.get("/v1/readers/ann", headers=bearer[who]).status_code == 404
            assert http.delete("/v1/readers/ann", headers=bearer[who]).status_code == 404
            assert http.get("/v1/readers", headers=bearer[who]).json() == {"readers": []}
        assert http.get("/v1/readers/ann", headers=bearer["carl"]).status_code == 403
        whole = http.get("/v1/readers/ann", headers=bearer["alice"]).json()["record"]
        assert Reader.model_validate(whole) == Reader.model_validate({"reviews": PROFILE})


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b/c", "ä ö ü 🎭", "x" * 200, "'; DROP TABLE perse_readers; --"])
def test_a_readers_name_is_a_name_and_nothing_else(http: TestClient, name: str, tmp_path: Path) -> None:
    from urllib.parse import quote

    path = f"/v1/readers/{quote(name, safe='')}"
    assert http.put(path, json={"reviews": PROFILE}).json()["reader"] == name
    assert http.get("/v1/readers").json()["readers"] == [name]
    assert judged(http, {"reader": name, "query": QUERY})["k_effective"] == 5
    assert sorted(each.name for each in tmp_path.iterdir() if not each.name.startswith("readers.db")) == []
    assert http.delete(path).status_code == 200


def test_bad_readers_are_refused_by_their_field(http: TestClient) -> None:
    for record, said in (
        ({"reviews": [{"text": "t", "review": "r", "score": 11}]}, "reviews.0.score"),
        ({"reviews": "no list"}, "reviews"),
        ({"surprise": 1}, "surprise"),
        ([], "expected a JSON object"),
    ):
        answer = http.put("/v1/readers/ann", json=record)
        assert answer.status_code == 400 and said in answer.json()["error"]["message"], answer.text
    assert http.put("/v1/readers/" + "x" * 201, json={"reviews": []}).status_code == 400
    assert http.put("/v1/readers/ann%00", json={"reviews": []}).status_code == 400
    assert http.put("/v1/readers/", json={"reviews": []}).status_code == 400
    assert http.put("/v1/readers/ann", content=b"{}").status_code == 415
    for query in ("count=abc", "count=0", "count=1001", "after=%00"):
        answer = http.get(f"/v1/readers?{query}")
        assert answer.status_code == 400 and answer.json()["error"]["message"], query
    assert http.get("/v1/readers").json() == {"readers": []}


def test_a_server_that_keeps_none_says_how_to_have_some(models: dict[str, Model]) -> None:
    with TestClient(embedded_app(models, SETTINGS), base_url="http://127.0.0.1") as http:
        for answer in (
            http.put("/v1/readers/ann", json={"reviews": PROFILE}),
            http.post("/v1/judge/pointwise", json={"input": {"reader": "ann", "query": QUERY}}),
        ):
            assert answer.status_code == 404 and "start it with readers=FILE" in answer.json()["error"]["message"]
