"""Adapters that come while a server runs: what may name one, and that a name is one adapter's."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.commands import serve
from perse.serving import embedded
from perse.serving.adapters import More, Wanted
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.problems import NotThere
from perse.serving.service import Model
from perse.settings.serving import load_config

ADMIN = "an administrator's key"


@dataclass(frozen=True)
class Slow(More):
    """Loads when it is let, and counts."""

    go: threading.Event = field(default_factory=threading.Event)
    loaded: list[str] = field(default_factory=list)

    def load(self, wanted: Wanted) -> Model:
        assert self.go.wait(900)
        self.loaded.append(wanted.folder)
        return self.model(wanted.name, self.folder)


@pytest.fixture
def served(tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client with an administrator's key, and what loads adapters."""
    monkeypatch.setenv("PERSE_ADMIN_KEY", ADMIN)
    models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=None)
    [base] = models.values()
    more = Slow(tmp_path, tiny_model_folder, lambda name, adapter: base)
    app = embedded_app(models, JudgeSettings(), more=more)
    return TestClient(app, base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {ADMIN}"}), more


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["../x", "a\nb", "a\tb", "   ", "", "a b", "/a", "a/", "a//b", "a/../b", "-a", "ä", "x" * 101, "a\x1b[0m"]
)
def test_what_cannot_be_typed_as_a_models_name_names_no_adapter(served: Any, name: str) -> None:
    http, more = served
    more.go.set()
    answer = http.post("/v1/adapters", json={"name": name, "folder": "x"})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "name"
    assert more.loaded == []


@pytest.mark.parametrize("name", ["second", "team-a/judge_2.1", "7b"])
def test_a_plain_name_names_an_adapter_once(served: Any, name: str) -> None:
    http, more = served
    more.go.set()
    assert http.post("/v1/adapters", json={"name": name, "folder": "x"}).status_code == 200
    again = http.post("/v1/adapters", json={"name": name, "folder": "y"})
    assert again.status_code == 400 and f"'{name}' is served already" in again.text
    assert more.loaded == ["x"]
    assert [one["id"] for one in http.get("/v1/models").json()["data"]] == ["tiny", name]


@pytest.mark.parametrize("gone", [True, False])
def test_where_the_folder_of_adapters_is_gone_or_another_file_it_is_said(
    gone: bool, tiny_model_folder: Path, tmp_path: Path
) -> None:
    place = tmp_path / "adapters"
    if not gone:
        place.write_text("no folder", encoding="utf-8")
    more = More(place, tiny_model_folder, lambda name, adapter: pytest.fail("nothing is to be loaded"))
    with pytest.raises(NotThere, match=r"adapters_from=.*/adapters cannot be read any more \(.*\); put it back"):
        more.load(Wanted(name="second", folder="x"))


def test_of_two_administrators_who_give_one_name_at_once_one_is_refused_before_anything_is_loaded(served: Any) -> None:
    http, more = served
    with http, ThreadPoolExecutor(2) as threads:
        asked = [threads.submit(http.post, "/v1/adapters", json={"name": "second", "folder": one}) for one in "xy"]
        while not any(one.done() for one in asked):
            pass
        more.go.set()
        assert sorted(one.result().status_code for one in asked) == [200, 400]
    assert len(more.loaded) == 1


def test_an_adapter_that_comes_later_keeps_as_much_as_one_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[int] = []

    def loader(*_: Any, cache_bytes: int, **__: Any) -> None:
        given.append(cache_bytes)
        raise KeyboardInterrupt

    monkeypatch.setattr(embedded, "embedded_loader", loader)
    settings = load_config("embedded", [f"adapters_from={tmp_path}", "memory_gb=1"])
    with pytest.raises(KeyboardInterrupt):
        serve._embedded(settings, tmp_path, {"one": tmp_path}, 0)
    assert given == [2**29] == [embedded.cache_share(1, {"one": tmp_path})]
