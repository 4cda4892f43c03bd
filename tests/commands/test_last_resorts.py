"""What escapes every reader is a sentence all the same: a panic of the tokenizers' Rust code, a value nested too deeply; and an
embedding model that names code of its own."""

from __future__ import annotations

import errno
import io
import json
import os
import threading
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import typer

from perse.commands import terminal
from perse.commands.app import app
from perse.errors import BadInput
from perse.models.opening import check_embedding_model, sentence_embeddings
from perse.secrets import redact_tree


def said(raised: BaseException | None, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command prints in which `raised` is raised, or which calls itself without end."""
    app = typer.Typer()

    def deeper(level: int) -> int:
        return deeper(level + 1) + 1

    @app.command()
    def command() -> None:
        if raised is not None:
            raise raised
        deeper(0)

    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as left:
        patch.setattr("sys.argv", ["perse"])
        terminal.run_app(app)
    assert left.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    return line


def test_a_panic_of_the_tokenizer_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    panic = type("PanicException", (BaseException,), {"__module__": "pyo3_runtime"})
    line = said(panic("regex exploded\nat src/lib.rs"), capsys)
    assert line.startswith("perse: the tokenizer failed on this text: PanicException: regex exploded;")


@pytest.mark.filterwarnings("default")
def test_a_thread_that_fails_prints_no_traceback_and_no_key(
    capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise PermissionError("http://me:pass-w0rd@nowhere/x may not be written\nat all")

    app = typer.Typer()

    @app.command()
    def command() -> None:
        thread = threading.Thread(target=fail)
        thread.start()
        thread.join()

    monkeypatch.setattr("sys.argv", ["perse"])
    with pytest.raises(SystemExit) as left:
        terminal.run_app(app)
    assert left.value.code == 0 and "Traceback" not in capfd.readouterr().err
    [line] = caplog.messages
    assert line.startswith("a thread of threading failed (PermissionError: http://") and "pass-w0rd" not in line


def test_a_recursion_without_end_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert "is nested too deeply to be read" in said(None, capsys)


def test_a_recursion_is_said_of_the_module_that_read_and_not_of_the_command() -> None:
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(RecursionError) as caught:
        redact_tree(deep)
    assert terminal._last_place(caught.value) == "in perse.secrets"


def test_a_prompt_whose_input_ends_is_one_sentence(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a plot\ntheir review\n7\n"))
    monkeypatch.setattr("sys.argv", ["perse", "ask"])
    with pytest.raises(SystemExit) as left:
        terminal.run_app(app)
    assert left.value.code == 2
    assert (
        "perse: the input ended where something was to be typed; give --reviews FILE and --text TEXT" in capsys.readouterr().err
    )


def test_a_path_that_the_system_refuses_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    line = said(IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), "runs/first"), capsys)
    assert line == "perse: runs/first cannot be used (Is a directory); give another path, or see to this one"


def test_another_exception_that_is_none_is_not_swallowed() -> None:
    app = typer.Typer()

    @app.command()
    def command() -> None:
        raise GeneratorExit

    with pytest.MonkeyPatch.context() as patch, pytest.raises(GeneratorExit):
        patch.setattr("sys.argv", ["perse"])
        terminal.run_app(app)


OWN = {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}


@pytest.mark.parametrize(
    ("modules", "sentence"),
    [
        (
            [OWN, {**OWN, "type": "modeling_evil.Evil"}],
            r'names the module "modeling_evil.Evil", code of its own, which is not run',
        ),
        ([{**OWN, "type": "sentence_transformersevil.X"}], "code of its own"),
        ([{"idx": 0, "path": ""}], "names the module null"),
        ([{**OWN, "path": "../elsewhere"}], 'names the path "../elsewhere", which leads out of the folder'),
        ([5], "is no list of modules"),
        ({"a": 1}, "is no list of modules"),
    ],
    ids=["foreign", "alike", "none", "path", "numbers", "object"],
)
def test_an_embedding_model_that_names_code_of_its_own_is_refused(tmp_path: Path, modules: object, sentence: str) -> None:
    (tmp_path / "modeling_evil.py").write_text("raise SystemExit('it was run')")
    (tmp_path / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(BadInput, match=sentence):
        check_embedding_model(tmp_path)


def test_an_embedding_model_with_a_pickle_for_weights_is_refused(tmp_path: Path) -> None:
    (tmp_path / "1_Dense").mkdir()
    (tmp_path / "1_Dense" / "pytorch_model.bin").write_bytes(b"")
    (tmp_path / "modules.json").write_text(json.dumps([OWN, {**OWN, "path": "1_Dense"}]))
    with pytest.raises(BadInput, match="1_Dense/pytorch_model.bin is a pickle"):
        check_embedding_model(tmp_path)
    (tmp_path / "1_Dense" / "model.safetensors").write_bytes(b"")
    check_embedding_model(tmp_path)


def test_an_embedding_model_of_the_librarys_modules_is_taken(tmp_path: Path) -> None:
    (tmp_path / "modules.json").write_text(
        json.dumps([OWN, {**OWN, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}])
    )
    check_embedding_model(tmp_path)


def test_an_embedding_model_without_a_name_is_refused_whatever_the_folder() -> None:
    with pytest.raises(BadInput, match="the embedding model has no name; give --embedding-model"):
        sentence_embeddings("")


@pytest.mark.parametrize("listed", [True, False])
def test_an_embedding_model_of_more_layers_than_weights_is_refused_before_it_is_built(tmp_path: Path, listed: bool) -> None:
    from safetensors.numpy import save_file

    if listed:
        kinds = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
        (tmp_path / "modules.json").write_text(json.dumps(kinds))
    save_file({"embeddings.word_embeddings.weight": np.zeros((8, 4), "f4")}, tmp_path / "model.safetensors")
    for layers, fits in ((1, True), (10**9, False)):
        settings = {
            "model_type": "bert",
            "num_hidden_layers": layers,
            "hidden_size": 4,
            "intermediate_size": 4,
            "vocab_size": 8,
        }
        (tmp_path / "config.json").write_text(json.dumps(settings))
        with nullcontext() if fits else pytest.raises(BadInput, match="num_hidden_layers 1000000000, which its weights cannot"):
            check_embedding_model(tmp_path)


@pytest.mark.slow
def test_an_embedding_model_whose_tokenizer_files_are_missing_is_refused(tmp_path: Path) -> None:
    """transformers makes one of five special tokens, to which every text of a length is the same."""
    pytest.importorskip("sentence_transformers")
    from transformers import BertConfig, BertModel

    small = BertConfig(
        vocab_size=9, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, max_position_embeddings=16
    )
    BertModel(small).save_pretrained(tmp_path)  # type: ignore[no-untyped-call]
    with pytest.raises(
        BadInput, match="the tokenizer of the embedding model '.*' knows no words, as where its files are missing"
    ):
        sentence_embeddings(str(tmp_path))
