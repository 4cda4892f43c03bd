"""Tokenizers of three kinds and a tiny model on disk: what most tests stand on."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, suppress
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
if "PYTEST_XDIST_WORKER" in os.environ:  # side by side, more threads than one each only get in each other's way
    os.environ["OMP_NUM_THREADS"] = "1"
# vLLM on a CPU: prompts of tests need no more than 1 GiB of keys and values, and clearing its usual 4 takes 6 seconds at each start.
# It would also bind its threads to the first core, every vLLM to the same one, whatever else is idle.
os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", "nobind")

# absl, which rouge-score brings, closes the stderr of its import when another library sets up logging while a test captures its own:
# that would be pytest's own file, and every test of the process after it would fail.
with redirect_stderr(sys.__stderr__), suppress(ModuleNotFoundError):
    import absl.logging  # noqa: F401

import hypothesis
import pytest
from builders import KINDS, save_answering_llama, tiny_llama, whole_number_tokenizer
from places import ROOT

sys.path.append(str(ROOT / "benchmarks"))  # last, since some of its modules are named as packages are

# The same examples each time, and no deadline: a busy machine must not fail a test.
hypothesis.settings.register_profile("perse", deadline=None, derandomize=True)
hypothesis.settings.load_profile("perse")


@pytest.fixture(autouse=True)
def threads_told_by_pytest() -> Iterator[None]:
    """A command line tells of threads that fail in its own way, from then on; pytest is to hear of those of other tests."""
    kept = threading.excepthook
    yield
    threading.excepthook = kept


@pytest.fixture(scope="session")
def embedded() -> Path:
    """The embedded model's folder; `make setup` pulls it."""
    from perse.models.finding import pull

    return pull("smollm2-135m")


@pytest.fixture(scope="session")
def tokenizers(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """ChatML with split digits (SmolLM2), LLaMA-2-style SentencePiece, and a byte-level BPE that knows " 10" as one token."""
    import mistral_common
    from transformers import AutoTokenizer

    folder = tmp_path_factory.mktemp("llama2")
    shutil.copy(Path(mistral_common.__file__).parent / "data" / "tokenizer.model.v1", folder / "tokenizer.model")
    return {
        "chatml": AutoTokenizer.from_pretrained(embedded),
        "llama2": AutoTokenizer.from_pretrained(folder),
        "whole_numbers": whole_number_tokenizer(),
    }


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest, tokenizers: dict[str, Any]) -> Any:
    return tokenizers[request.param]


@pytest.fixture(scope="session")
def tiny_model_folder(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random Llama with the ChatML tokenizer, saved as any model is."""
    folder = tmp_path_factory.mktemp("tiny") / "model"
    tiny_llama(tokenizers["whole_numbers"], context=8192).save_pretrained(folder)
    tokenizers["whole_numbers"].save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def answering_model(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_answering_llama(tokenizers["whole_numbers"], tmp_path_factory.mktemp("answering") / "tiny")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: pip install playwright")
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        pytest.skip("no chromium on this machine")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Any]:
    """Open a file in a context of its own; whatever it asks of a network, and whatever it complains about, fails the test."""
    contexts, wrong = [], []

    def refuse(request: Any) -> None:
        if not request.url.startswith(("file://", "data:", "blob:")):
            wrong.append(f"asked for {request.url}")

    def open_page(path: Path, **options: Any) -> Any:
        context = browser.new_context(**{"offline": True, "viewport": {"width": 1280, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        page.on("request", refuse)
        page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(path.as_uri(), wait_until="commit")
        page.wait_for_selector("html[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []
