"""Requests made from the server's own description, and broken in every way a generator knows: none is answered with a 5xx.

`PERSE_FUZZ=10000` has the generator make as many for each route.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from served import in_thread

from perse.answering.base import JudgeSettings
from perse.serving.batches.kept import Batches
from perse.serving.embedded import embedded_app, embedded_models
from perse.serving.readers.store import Readers
from perse.settings.serving import Limits

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install -e '.[dev]'")

pytestmark = pytest.mark.integration

EXAMPLES = int(os.environ.get("PERSE_FUZZ", "120"))


@pytest.fixture(scope="module")
def described(tiny_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("PERSE_API_KEY", "PERSE_ADMIN_KEY"):
            patch.delenv(name, raising=False)
        models = embedded_models("tiny", tiny_model_folder, {}, dtype="float32", context=512)
        store = Readers.open(str(tmp_path_factory.mktemp("store") / "readers.db"))
        batches = Batches(tmp_path_factory.mktemp("batches"), days=1, most=8)
        app = embedded_app(models, JudgeSettings(max_new_tokens=4), readers=store, batches=batches, limits=Limits(deadline=30))
    with in_thread(app, http="h11") as url:
        yield schemathesis.openapi.from_url(f"{url}/openapi.json")


@pytest.mark.parametrize("mode", ["positive", "negative"])
def test_no_request_is_answered_with_a_5xx(described: Any, mode: str) -> None:
    operations = [found.ok() for found in described.get_all_operations()]
    assert {"/v1/judge/pointwise", "/v1/judge/batches", "/v1/readers/{reader}", "/v1/chat/completions"} <= {
        one.path for one in operations
    }
    for operation in operations:
        if mode == "negative" and not list(operation.body) and not list(operation.query):
            continue  # nothing of it can be wrong

        @settings(
            max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy(generation_mode=schemathesis.GenerationMode(mode)))
        def holds(case: Any) -> None:
            answer = case.call()
            assert answer.status_code < 500, (case.as_curl_command(), answer.text)
            if answer.status_code >= 400 and case.method != "HEAD":
                error = answer.json()["error"]
                assert set(error) == {"message", "type", "param", "code", "details"} and error["code"] == answer.status_code
                assert len(error["message"]) <= 1000 and "Traceback" not in error["message"]

        holds()
