"""The server's own pages are files of its own: typed, fenced in, asking nothing of anybody else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from perse.answering.base import JudgeSettings
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.page.routes import FILES


@pytest.fixture(scope="module")
def http(tiny_model_folder: Path) -> Iterator[TestClient]:
    models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=2048)
    with TestClient(embedded_app(models, JudgeSettings()), base_url="http://127.0.0.1") as client:
        yield client


@pytest.mark.parametrize("path", FILES)
def test_each_page_is_served_with_its_type_and_may_ask_this_server_alone(http: TestClient, path: str) -> None:
    answer = http.get(path)
    assert answer.status_code == 200 and answer.headers["content-type"] == FILES[path][1]
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert http.head(path).status_code == 200


def test_nothing_on_a_page_comes_from_elsewhere_or_is_made_of_markup() -> None:
    for name, _ in FILES.values():
        text = files("perse.serving.page").joinpath(name).read_text()
        outside = [url for url in re.findall(r"https?://[^\s\"'<>]+", text) if url != "http://www.w3.org/2000/svg"]
        assert outside == [], name
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|localStorage|sessionStorage|cookie", text
        ), name
        assert not re.search(r"<script(?![^>]*src=)|\son\w+=|style=", text), f"{name}: what the policy forbids"


def test_no_file_beside_them_is_served(http: TestClient) -> None:
    for path in ("/page/routes.py", "/page/__init__.py", "/page/..%2froutes.py", "/page/"):
        assert http.get(path).status_code == 404


def test_the_frameworks_own_pages_which_load_scripts_from_elsewhere_are_not_there(http: TestClient) -> None:
    assert "cdn" not in http.get("/docs").text and http.get("/redoc").status_code == 404
