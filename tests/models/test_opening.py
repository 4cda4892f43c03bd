"""What comes with a model is data: none of its code runs, and a damaged or hostile folder is one sentence."""

from __future__ import annotations

import ast
import io
import json
import logging
import math
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import adapter_on
from places import ROOT

from perse import Judge
from perse.commands.app import app
from perse.commands.terminal import run_app
from perse.errors import BadInput
from perse.judging.connecting import _tokenizer
from perse.models import opening
from perse.models.model_files import tensors
from perse.models.opening import causal_lm, check_adapter, check_model
from perse.publishing.merging import merge_adapter
from perse.secrets import HARMLESS

Harm = Callable[[Path], object]


@pytest.mark.slow
def test_models_are_opened_in_one_place() -> None:
    opens = {"from_pretrained"}
    found = []
    for file in [*(ROOT / "perse").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and (
                node.attr in opens or (node.attr, ast.unparse(node)) == ("load", "torch.load")
            ):
                found.append(str(file.relative_to(ROOT)))
    assert set(found) == {"perse/models/opening.py"}


def changed(**values: Any) -> Harm:
    def harm(folder: Path) -> None:
        file = folder / "config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **values}))

    return harm


def written(name: str, text: str | bytes) -> Harm:
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def replaced(name: str, make: Callable[[Path], object]) -> Harm:
    def harm(folder: Path) -> None:
        (folder / name).unlink()
        make(folder / name)

    return harm


def cut(folder: Path) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def rewritten(change: Callable[[dict[str, Any]], object], *, name: str = "model.safetensors") -> Harm:
    def harm(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        found = load_file(folder / name)
        change(found)
        save_file(found, folder / name, metadata={"format": "pt"})

    return harm


def normalized(*steps: dict[str, Any]) -> Harm:
    def harm(folder: Path) -> None:
        path = folder / "tokenizer.json"
        said = json.loads(path.read_text(encoding="utf-8"))
        said["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "Sequence", "normalizers": steps}]}
        path.write_text(json.dumps(said), encoding="utf-8")

    return harm


def tokens_added(*words: str, special: bool = False) -> Harm:
    def harm(folder: Path) -> None:
        path = folder / "tokenizer.json"
        said = json.loads(path.read_text(encoding="utf-8"))
        known = max(said["model"]["vocab"].values())
        plain = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False) | {"special": special}
        said["added_tokens"] += [{"id": known + at, "content": word, **plain} for at, word in enumerate(words, start=1)]
        path.write_text(json.dumps(said), encoding="utf-8")

    return harm


def split_at_random(folder: Path) -> None:
    path = folder / "tokenizer.json"
    said = json.loads(path.read_text(encoding="utf-8"))
    said["model"]["dropout"] = 0.5
    path.write_text(json.dumps(said), encoding="utf-8")


def sharded(weight_map: dict[str, str]) -> Harm:
    def harm(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder / "one.safetensors")
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))

    return harm


def pickled(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def template(text: str) -> Harm:
    return written("chat_template.jinja", text)


DAMAGES: dict[str, tuple[Harm, str]] = {
    "weights cut off": (cut, "model.safetensors is damaged .* its tensors take"),
    "a header of 2**60 bytes": (written("model.safetensors", struct.pack("<Q", 1 << 60) + b"{}"), "its header would have 1,152"),
    "no header": (written("model.safetensors", b""), "is damaged or no safetensors file"),
    "a header that is no JSON": (written("model.safetensors", struct.pack("<Q", 2) + b"{["), "its header is no JSON"),
    "GGUF for weights": (written("model.safetensors", b"GGUF" + bytes(60)), "is damaged or no safetensors file"),
    "weights of another width": (changed(hidden_size=16, head_dim=4), r"do not fit its config.json: .* has shape \[.*, expected"),
    "a tensor missing": (rewritten(lambda found: found.pop("lm_head.weight")), r"lacks the weights lm_head.weight \(1 in all\)"),
    "a layer too many": (changed(num_hidden_layers=1), "has weights that its config.json leaves out, such as model.layers.1"),
    "a layer too few": (changed(num_hidden_layers=3), "lacks the weights model.layers.2"),
    "no numbers": (rewritten(lambda found: found["model.norm.weight"].fill_(float("nan"))), r"not finite \(model.norm.weight\)"),
    "no number in attention": (
        rewritten(lambda found: found["model.layers.0.self_attn.q_proj.weight"][0].fill_(float("nan"))),
        r"weights that are not finite \(model.layers.0.self_attn.q_proj.weight\)",
    ),
    "pickles": (pickled, "pytorch_model.bin, a pickle, which can run code"),
    "a shard outside": (sharded({"a": "../../one.safetensors"}), r"points to '../../one.safetensors', expected"),
    "a shard missing": (sharded({"a": "one.safetensors", "b": "two.safetensors"}), "lacks 1 of its 2 files of weights"),
    "an index of nothing": (sharded({}), "has no weight_map"),
    "a configuration that is no JSON": (written("config.json", "{"), "config.json is not JSON"),
    "a configuration that is a list": (written("config.json", "[]"), "holds no JSON object but a list"),
    "brackets without end": (written("config.json", '{"a":' + "[" * 100_000), "config.json is not JSON"),
    "no architecture": (changed(model_type=None), "has model_type None"),
    "an unknown architecture": (changed(model_type="nope"), "model type `nope`"),
    "text for a number": (changed(hidden_size="32"), "expected int, got str"),
    "a negative number": (changed(max_position_embeddings=-5), "max_position_embeddings -5, expected a whole number above 0"),
    "a width of 10**9": (changed(hidden_size=10**9), "has hidden_size 1000000000, which its weights cannot have"),
    "layers without end": (changed(num_hidden_layers=10**7), "has num_hidden_layers 10000000, which its weights cannot have"),
    "an activation that is none": (changed(hidden_act="evil"), "cannot be used .*evil"),
    "attention from the hub": (changed(attn_implementation="owner/kernel"), "'owner/kernel', code from the hub, which is not run"),
    "another model's tokenizer": (changed(vocab_size=100), "is that of another model|do not fit"),
    "a word that the tokenizer alone knows": (tokens_added("harbour"), "is that of another model: it has tokens up to 292, and .* has 292"),
    "words split at random": (split_at_random, "dropout 0.5, which splits words at random"),
    "a tokenizer that is no JSON": (written("tokenizer.json", "{"), "tokenizer.json is not JSON"),
    "a tokenizer of nothing": (written("tokenizer.json", "{}"), "the tokenizer of .* cannot be used"),
    "tokenizer settings of a wrong type": (written("tokenizer_config.json", "[1]"), "holds no JSON object but a list"),
    "generation settings of a wrong type": (written("generation_config.json", '{"max_new_tokens": "x"}'), "cannot be used"),
    "a template without end": (template("{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"), "does not come to an end"),
    "a template that fills the memory": (template("{{ 'a'|center(10**11) }}"), "does not come to an end within bounds"),
    "a template of much text": (template("{{ 'a' * 3000000 }}"), "short turns become 3,000,000 characters"),
    "a template that calls itself": (template("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"), "RecursionError"),
    "a template that is none": (template("{% for %}"), "cannot be rendered .TemplateSyntaxError"),
    "a pipe for a file": (replaced("tokenizer.json", os.mkfifo), "is a pipe, a device or a socket, expected a file"),
    "a pipe for weights": (replaced("model.safetensors", os.mkfifo), "is a pipe, a device or a socket, expected a file"),
    "weights of its own choice": (changed(transformers_weights="sub/w.safetensors"), "transformers_weights 'sub/w.safetensors', other"),
    "a pickle of its own choice": (changed(transformers_weights="w.bin"), "transformers_weights 'w.bin', other weights"),
    "a letter that becomes a library": (normalized(*[{"type": "Replace", "pattern": {"String": "e"}, "content": "ee" * 9}] * 6), r"can make 3.4e\+07 characters of one"),
    "a device for a file": (replaced("tokenizer.json", lambda path: path.symlink_to("/dev/zero")), "is a pipe, a device"),
    "a folder for a file": (replaced("model.safetensors", Path.mkdir), "is a folder, expected a file"),
    "a link to nowhere": (replaced("model.safetensors", lambda path: path.symlink_to("gone")), "cannot be read .No such file"),
    "an adapter beside the model": (written("adapter_config.json", "{}"), "holds a model and an adapter"),
}  # fmt: skip


def said(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    """What a command that is refused says, which is one line."""
    monkeypatch.setattr(sys, "argv", ["perse", *arguments])
    monkeypatch.setenv("COLUMNS", "200")
    capfd.readouterr()
    with pytest.raises(SystemExit) as left:
        run_app(app)
    heard = capfd.readouterr().err.strip()
    assert left.value.code == 2, heard
    assert "Traceback" not in heard
    lines = [line for line in heard.splitlines() if line.startswith("perse: ")]
    assert len(lines) == 1, heard
    return lines[0]


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    reviews = tmp_path / "reviews.jsonl"
    reviews.write_text('{"text": "A ferry is lost.", "review": "Dull.", "score": 3}\n')
    return ["ask", "--reviews", str(reviews), "--text", "A harbour town.", "--question", "pointwise_score", "--judge"]


@pytest.mark.slow
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_hostile_model_is_one_sentence(
    damage: str,
    asked: list[str],
    tiny_model_folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    harm, sentence = DAMAGES[damage]
    model = tmp_path / "model"
    shutil.copytree(tiny_model_folder, model)
    harm(model)
    heard = said([*asked, str(model)], monkeypatch, capfd)
    assert re.search(sentence, heard), heard


def test_a_special_token_that_only_the_tokenizer_knows_is_in_no_prompt_and_refused_nowhere(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_model_folder, tmp_path / "model")
    tokens_added("[PAD]", "<image_soft_token>", special=True)(tmp_path / "model")
    assert opening.tokenizer(tmp_path / "model").get_added_vocab()["<image_soft_token>"] == 293


@pytest.mark.parametrize("key", ["_attn_implementation", "attn_implementation"])
@pytest.mark.parametrize("way", ["flash_attention_2", "flex_attention", "none of them"])
def test_how_attention_is_computed_is_not_the_models_choice(
    key: str, way: str, tiny_model_folder: Path, tmp_path: Path
) -> None:
    shutil.copytree(tiny_model_folder, tmp_path / "model")
    changed(**{key: way})(tmp_path / "model")
    assert causal_lm(tmp_path / "model").config._attn_implementation == "sdpa"


@pytest.mark.slow
@pytest.mark.parametrize("command", ["train", "serve", "plan"])
def test_every_command_that_opens_a_model_refuses_it(
    command: str, tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model_folder, model)
    changed(hidden_size="32")(model)
    key = "model" if command == "serve" else "model.path"
    given = ["--config", "embedded" if command == "serve" else "embedded_lora", f"{key}={model}"]
    if command == "serve":
        given += ["engine=transformers", "port=0"]
    else:
        given += [f"data.path={ROOT / 'perse' / 'samples'}", f"output={tmp_path / 'run'}"]
    assert "expected int, got str" in said([command, *given], monkeypatch, capfd)
    assert not (tmp_path / "run").exists()


ADAPTER_DAMAGES: dict[str, tuple[Harm, str]] = {
    "weights cut off": (lambda folder: (folder / "adapter_model.safetensors").write_bytes(b"torn"), "is damaged"),
    "pickles": (lambda folder: (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin"), "a pickle, which can"),
    "settings that are no JSON": (written("adapter_config.json", "{"), "is not JSON"),
    "settings of nothing": (written("adapter_config.json", "{}"), "has peft_type None, expected 'LORA'"),
    "no numbers": (
        rewritten(lambda found: next(iter(found.values())).fill_(float("nan")), name="adapter_model.safetensors"),
        "has weights that are not finite",
    ),
}  # fmt: skip
SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "another rank": ({"r": 3}, r"does not fit the model .* has shape \[4, \d+\], expected \[3, \d+\]"),
    "a rank of 10**9": ({"r": 10**9}, r"does not fit the model"),
    "a rank that is text": ({"r": "many"}, "has r 'many', expected a whole number above 0"),
    "modules that are not there": ({"target_modules": ["nothing"]}, "cannot be used .*nothing"),
    "fewer modules": ({"target_modules": ["q_proj"]}, "has weights for .* which its settings or the model leave out"),
    "a pattern without end": ({"target_modules": "(.*)*(.*)*(.*)*(.*)*!"}, "cannot be used"),
    "another kind": ({"peft_type": "PROMPT_TUNING"}, "has peft_type 'PROMPT_TUNING', expected 'LORA'"),
    "an activated LoRA": ({"alora_invocation_tokens": [1, 2]}, "is of an activated LoRA"),
    "a module to import": ({"megatron_config": {}, "megatron_core": "evil"}, "Megatron"),
    "an alpha that is no number": (
        {"lora_alpha": math.nan},
        "adapter_config.json has lora_alpha NaN, expected a finite number",
    ),
    "an alpha beyond all numbers": (
        {"lora_alpha": 10**400},
        "adapter_config.json has lora_alpha 1000.*, expected a finite number",
    ),
    "an infinite alpha of a module": (
        {"alpha_pattern": {"a": [-math.inf]}},
        "has alpha_pattern.a.0 -Infinity, expected a finite",
    ),
    "layers without end": ({"layer_replication": [[0, 10**9]]}, "cannot be used"),
}


@pytest.mark.slow
@pytest.mark.parametrize("damage", [*ADAPTER_DAMAGES, *SETTINGS])
def test_a_damaged_or_hostile_adapter_is_one_sentence(
    damage: str, tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perse.models.opening.SECONDS", 2)
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    check_adapter(adapter, base=tiny_model_folder)
    if damage in ADAPTER_DAMAGES:
        harm, sentence = ADAPTER_DAMAGES[damage]
        harm(adapter)
    else:
        settings, sentence = SETTINGS[damage]
        file = adapter / "adapter_config.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), **settings}))
    with pytest.raises(BadInput, match=sentence) as raised:
        Judge.load(f"{tiny_model_folder}+{adapter}")
    assert "\n" not in str(raised.value)


EVIL = """from pathlib import Path
Path({marker!r}).touch()
from transformers import LlamaConfig, LlamaForCausalLM
class EvilConfig(LlamaConfig):
    model_type = "evil"
class Evil(LlamaForCausalLM):
    config_class = EvilConfig
"""


@pytest.fixture
def evil(tiny_model_folder: Path, tmp_path: Path) -> Path:
    """A model whose code leaves the file `ran` beside it."""
    model = tmp_path / "evil"
    shutil.copytree(tiny_model_folder, model)
    (model / "modeling_evil.py").write_text(EVIL.format(marker=str(tmp_path / "ran")))
    maps = {"AutoConfig": "modeling_evil.EvilConfig", "AutoModelForCausalLM": "modeling_evil.Evil"}
    changed(model_type="evil", architectures=["Evil"], auto_map=maps)(model)
    file = model / "tokenizer_config.json"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({**told, "auto_map": {"AutoTokenizer": ["modeling_evil.Tokens", None]}}))
    (model / "custom_generate").mkdir()
    (model / "custom_generate" / "generate.py").write_text(EVIL.format(marker=str(tmp_path / "ran")))
    return model


@pytest.mark.slow
def test_code_that_comes_with_a_model_is_not_run_though_a_person_says_yes(evil: Path, asked: list[str], tmp_path: Path) -> None:
    """On a terminal, where transformers would ask."""
    person, terminal = pty.openpty()
    os.write(person, b"y\ny\ny\n")
    done = subprocess.run(
        [sys.executable, "-m", "perse", *asked, str(evil)], stdin=terminal, capture_output=True, text=True, timeout=900, check=False
    )  # fmt: skip
    os.close(person)
    os.close(terminal)
    assert done.returncode == 2, done.stderr
    assert "brings code of its own, which is not run" in done.stderr and "--trust-remote-code" in done.stderr
    assert "[y/N]" not in done.stdout + done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "ran").exists()


def test_code_that_comes_with_a_model_is_run_for_those_who_mean_it(
    evil: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = evil / "tokenizer_config.json"
    told = json.loads(file.read_text())
    file.write_text(json.dumps({name: value for name, value in told.items() if name != "auto_map"}))
    shutil.rmtree(evil / "custom_generate")
    with pytest.raises(BadInput, match="brings code of its own"):
        Judge.load(evil)
    assert not (tmp_path / "ran").exists()
    judge = Judge.load(evil, trust_remote_code=True)
    assert (tmp_path / "ran").exists()
    assert judge.engine.settings["trust_remote_code"] == "true", "which the manifest of a run keeps"


def test_nothing_is_fetched_because_a_server_or_an_adapter_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[str] = []

    def download(name: str, *, allow_patterns: object, local_files_only: bool) -> str:
        fetched.extend([] if local_files_only else [name])
        raise OSError("not here")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    with pytest.raises(BadInput, match="'owner/evil' does not give one on this machine"):
        _tokenizer("owner/evil", given=False, url="http://host/v1")
    (tmp_path / "adapter_config.json").write_text('{"peft_type": "LORA", "base_model_name_or_path": "owner/evil"}')
    with pytest.raises(BadInput, match="the base model of .* is not here .*name its folder with --base"):
        merge_adapter(str(tmp_path), tmp_path / "merged")
    assert not fetched
    with pytest.raises(BadInput):
        merge_adapter(str(tmp_path), tmp_path / "merged", base="owner/evil")
    assert fetched == ["owner/evil"], "by the user's own word"


def test_headers_of_every_kind_of_tensor_are_read_without_their_weights(tmp_path: Path, embedded: Path) -> None:
    import torch
    from safetensors.torch import save_file

    kinds = [
        torch.float32,
        torch.bfloat16,
        torch.float16,
        torch.int8,
        torch.uint8,
        torch.int64,
        torch.bool,
        torch.float8_e4m3fn,
    ]
    save_file(
        {str(kind): torch.zeros(3, 2).to(kind) for kind in kinds} | {"empty": torch.zeros(0, 4)}, tmp_path / "all.safetensors"
    )
    assert tensors(tmp_path / "all.safetensors") == {str(kind): (3, 2) for kind in kinds} | {"empty": (0, 4)}
    assert len(tensors(embedded / "model.safetensors")) == 272


def test_a_tensors_name_moves_no_cursor_in_the_librarys_own_log(tiny_model_folder: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers.utils import logging as transformers_logging

    folder = shutil.copytree(tiny_model_folder, tmp_path / "m")
    named = {**load_file(folder / "model.safetensors"), "extra\x1b[2J\u202e": torch.zeros(2)}
    save_file(named, folder / "model.safetensors", metadata={"format": "pt"})
    [handler] = [each for each in logging.getLogger("transformers").handlers if type(each) is logging.StreamHandler]
    verbosity, stream = transformers_logging.get_verbosity(), handler.setStream(shown := io.StringIO())  # type: ignore[no-untyped-call]
    transformers_logging.set_verbosity_warning()  # type: ignore[no-untyped-call]
    try:
        for _ in range(2):
            causal_lm(folder)
    finally:
        transformers_logging.set_verbosity(verbosity)  # type: ignore[no-untyped-call]
        handler.setStream(stream)
    assert "LOAD REPORT" in shown.getvalue() and "extra\\x1b[2J\\u202e" in shown.getvalue()
    assert "\x1b" not in shown.getvalue() and "[1m" not in shown.getvalue()
    assert len([each for each in handler.filters if each is HARMLESS]) == 1


@pytest.mark.slow
def test_a_model_larger_than_the_memory_it_is_looked_at_with_is_opened(tmp_path: Path) -> None:
    """A shard of LLaMA-2 7B has 10 GB; the file here is as large, and nearly all of it a hole that takes no disk."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        vocab_size=2_600_000,
        hidden_size=1024,
        intermediate_size=1024,
        num_hidden_layers=1,
        num_attention_heads=16,
        dtype="bfloat16",
    )
    config.architectures = ["LlamaForCausalLM"]
    config.save_pretrained(tmp_path)
    with torch.device("meta"):
        weights = LlamaForCausalLM(config).state_dict()
    header, end = {}, 0
    for name, tensor in weights.items():
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [end, end + 2 * tensor.numel()]}
        end += 2 * tensor.numel()
    said = json.dumps(header).encode()
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(said)) + said)
        file.truncate(8 + len(said) + end)
    assert end > 2 * opening.MEGABYTES << 20
    check_model(tmp_path)


@pytest.mark.slow
def test_of_a_model_of_pictures_the_part_for_texts_is_opened(tmp_path: Path) -> None:
    from transformers import Qwen3_5Config, Qwen3_5ForConditionalGeneration

    heads = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "linear_key_head_dim": 8,
        "linear_value_head_dim": 8,
    }
    kinds = {"layer_types": ["linear_attention", "full_attention"], "linear_num_key_heads": 2, "linear_num_value_heads": 4}
    text = {"vocab_size": 90, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, **heads, **kinds}
    seen = {"depth": 1, "hidden_size": 32, "intermediate_size": 32, "num_heads": 2, "out_hidden_size": 32}
    Qwen3_5ForConditionalGeneration(Qwen3_5Config(text_config=text, vision_config=seen)).save_pretrained(tmp_path)
    check_model(tmp_path)
    assert type(causal_lm(tmp_path)).__name__ == "Qwen3_5ForCausalLM"


def test_a_model_that_writes_no_text_is_named(tmp_path: Path) -> None:
    from transformers import T5Config, T5Model

    T5Model(T5Config(vocab_size=90, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2)).save_pretrained(tmp_path)
    with pytest.raises(BadInput, match="Unrecognized configuration class T5Config for a causal language model"):
        check_model(tmp_path)
