"""Hubs that answer what no hub does, or without end: a push is refused in one sentence that says what was asked and what came."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from hostile_server import BODY, dripping, hostile

import perse.models.incoming
from perse.environment import clean
from perse.errors import BadInput
from perse.publishing import hub_client
from perse.publishing.push import Parcel, push

TOKEN = "hf_planted_token_1234"
INFO = {"id": "me/x", "private": True, "sha": "c" * 40, "siblings": []}


@pytest.fixture(autouse=True)
def online(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    for name, value in {
        "HF_HUB_OFFLINE": False,
        "HF_HUB_DISABLE_XET": True,
        "AGENT_HARNESSES_PATH": str(tmp_path / "x"),
    }.items():
        monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)


def pushed(url: str, folder: Path) -> str:
    weights = folder / "adapter_model.safetensors"
    weights.write_bytes(b"weights")
    with pytest.MonkeyPatch.context() as at:
        at.setattr("huggingface_hub.constants.ENDPOINT", url)
        return push(Parcel({"README.md": b"a card", weights.name: weights}, adapter=True), "me/x")


def refused(url: str, folder: Path) -> str:
    with pytest.raises(BadInput) as error:
        pushed(url, folder)
    said = str(error.value)
    assert "\n" not in said and TOKEN not in said
    return said


def well(url: str, route: str, body: Any) -> Any:
    """What a hub answers."""
    if route.endswith("repos/create"):
        return {"url": f"{url}/me/x"}
    if "validate-yaml" in route:
        return {"errors": [], "warnings": []}
    if "preupload" in route:
        return {"files": [{"path": one["path"], "uploadMode": "regular", "shouldIgnore": False} for one in body["files"]]}
    if "/commit/" in route:
        return {"success": True, "commitOid": "a" * 40, "commitUrl": f"{url}/me/x/commit/{'a' * 40}"}
    return INFO


ODD: dict[str, tuple[str, Any]] = {
    "a list": ("POST /api/repos/create", [1, 2, 3]),
    "null": ("POST /api/repos/create", None),
    "a page": ("POST /api/repos/create", b"<html>hi</html>"),
    "brackets": ("POST /api/repos/create", b"[" * 200_000 + b"]" * 200_000),
    "a conflict without an address": ("POST /api/repos/create", (409, {}, b'{"error": "exists"}')),
    "a number for an address": ("POST /api/repos/create", {"url": 5}),
    "numbers for files": ("GET /api/models/me/x", {**INFO, "siblings": [{"rfilename": 5}]}),
    "a word for the errors of a card": ("POST /api/validate-yaml", {"errors": "oops", "warnings": [1]}),
    "other files": (
        "POST /api/models/me/x/preupload/main",
        {"files": [{"path": "../x", "uploadMode": "regular", "shouldIgnore": False}]},
    ),
    "no files": ("POST /api/models/me/x/preupload/main", {"files": None}),
    "another commit": ("POST /api/models/me/x/commit/main", {"a": 1}),
}


@pytest.mark.parametrize(("where", "what"), ODD.values(), ids=ODD)
def test_an_answer_of_another_shape_is_one_sentence_that_says_what_was_asked(tmp_path: Path, where: str, what: Any) -> None:
    with hostile(lambda route, body: what if route == where else well(server.url, route, body)) as server:
        said = refused(server.url, tmp_path)
    assert said.startswith(f"me/x was not pushed: {server.url} answered {where} with ")
    assert said.endswith(", as no Hugging Face hub does; see whether HF_ENDPOINT names the hub that you mean")


def test_a_hub_that_answers_well_gets_it_and_the_client_is_huggingface_hubs_again(tmp_path: Path) -> None:
    with hostile(lambda route, body: well(server.url, route, body)) as server:
        assert pushed(server.url, tmp_path) == f"{server.url}/me/x"
    assert huggingface_hub.get_session().follow_redirects


def test_an_answer_without_end_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.models.incoming, "LARGEST", 1 << 20)
    with hostile(lambda *_: b" " * (1 << 21)) as server:
        assert "was asked POST /api/repos/create, and the answer is larger than 1 MiB" in refused(server.url, tmp_path)


def test_an_answer_that_drips_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(perse.models.incoming, "PATIENCE", 0.1)
    monkeypatch.setattr(hub_client, "SILENCE", 0.3)
    with dripping(BODY, b" ") as url:
        assert "and the answer was not whole after 0.4 s" in refused(url, tmp_path)
    with dripping(b"", b"") as url:
        assert "timed out" in refused(url, tmp_path)


def test_a_hub_cannot_ask_to_wait_for_a_day(tmp_path: Path) -> None:
    began = time.monotonic()
    for headers in ({"Retry-After": "100000"}, {"ratelimit": '"api";r=0;t=100000', "Retry-After": "100000"}):
        with hostile(lambda *_, headers=headers: (429, headers, b"{}")) as server:
            assert "it asks to wait 100000 s before another try" in refused(server.url, tmp_path)
    assert time.monotonic() - began < 10


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    with hostile(lambda *_: INFO) as other, hostile(lambda *_: (307, {"Location": f"{other.url}/x"}, b"")) as server:
        said = refused(server.url, tmp_path)
    assert said.startswith(f"{server.url} points to {other.url}, and no redirect is followed") and not other.asked


def test_pages_of_files_are_not_asked_for(tmp_path: Path) -> None:
    """Each could point to another, without end."""
    with hostile(lambda route, body: well(server.url, route, body)) as server:
        pushed(server.url, tmp_path)
    assert not [route for route, _ in server.asked if "/tree/" in route or "agent" in route]


def test_a_hub_without_xet_storage_is_one_sentence_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", False)
    monkeypatch.setattr("huggingface_hub.utils._runtime.is_package_available", lambda _: True)
    for answer in ((404, {}, b"{}"), (200, {}, b"{}")):
        with hostile(lambda route, body, answer=answer: answer if "xet" in route else well(server.url, route, body)) as server:
            said = refused(server.url, tmp_path)
        where = f"(HTTP {answer[0]} to GET /api/models/me/x/xet-write-token/main)"
        assert f"{server.url} gives no token for Xet storage {where}; set HF_HUB_DISABLE_XET=1" in said


@pytest.mark.parametrize("address", ["http://[::1", "http://host:port", "http://:80", "https://host:99999"])
def test_an_endpoint_that_is_no_address_is_a_sentence(address: str) -> None:
    with pytest.raises(
        BadInput, match="^HF_ENDPOINT in the environment is .*, expected an address that begins with https:// or"
    ):
        clean({"HF_ENDPOINT": address})
