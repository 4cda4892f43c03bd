"""A merged model is W + BA, whole on the disk or not there; beside it the adapter as vLLM takes it."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from builders import adapter_on, pointwise_examples, tiny_llama
from full_disks import failing_sync, files_of_at_most, syncs
from publishing_builders import Published
from safetensors.torch import load_file, save_file
from tolerances import LARGEST, logprob, rounding, share
from transformers import AutoModelForCausalLM, AutoTokenizer

from perse.errors import BadInput, ModelNotFound, SaveFailed
from perse.models import finding as models
from perse.publishing import merging
from perse.publishing.for_vllm import refused_by_vllm
from perse.publishing.merging import Merged, made_whole, merge_adapter, write_merged
from perse.publishing.push import pack
from perse.publishing.sample_prompts import sample_prompts

RANK = 4  # of `adapter_on`


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


@pytest.mark.slow
@pytest.mark.numeric
def test_the_merged_weights_are_w_plus_ba(tiny_model_folder: Path, tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder), dtype="float32")
    before, after, low = weights(tiny_model_folder), weights(made.folder), load_file(adapter / "adapter_model.safetensors")
    changed = 0
    for name, weight in before.items():
        key = "base_model.model." + name.removesuffix(".weight")
        if f"{key}.lora_A.weight" in low:
            weight = weight + 8 / RANK * low[f"{key}.lora_B.weight"] @ low[f"{key}.lora_A.weight"]  # alpha 8
            changed += 1
        most = LARGEST * rounding(RANK + 2) * float(weight.abs().max())  # the sum of B's row and A's column, its scale, and W
        assert torch.allclose(after[name], weight, atol=most, rtol=0), name
    assert changed == 14 and after.keys() == before.keys()  # seven matrices in each of two layers


def allowed(made: Merged) -> float:
    """How far the logits of two ways to the same weights may be apart."""
    longest = max(map(len, sample_prompts(made.folder)))
    return logprob(made.folder, longest, logits=made.difference.largest_logit)


@pytest.mark.slow
@pytest.mark.numeric
def test_the_stored_model_answers_as_base_and_adapter_do(tiny_model_folder: Path, tmp_path: Path) -> None:
    """What is told is measured again here, and rounding to bfloat16 is seen."""
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    made = merge_adapter(str(adapter), tmp_path / "exact", base=str(tiny_model_folder), dtype="float32")
    exact = made.difference
    rounded = merge_adapter(str(adapter), tmp_path / "rounded", base=str(tiny_model_folder)).difference
    assert exact.stored == exact.in_float32 <= allowed(made) and exact.largest_logit > 1
    assert rounded.in_float32 == exact.in_float32 and exact.stored < rounded.stored < rounded.largest_logit
    assert (rounded.prompts, rounded.positions) == (3, 3 * merging.KEPT)

    unmerged = models.load(tiny_model_folder, dtype="float32", adapter=adapter).eval()
    opened = AutoModelForCausalLM.from_pretrained(tmp_path / "rounded", dtype=torch.float32).eval()
    assert AutoModelForCausalLM.from_pretrained(tmp_path / "rounded").dtype is torch.bfloat16
    with torch.inference_mode():
        apart = [
            (unmerged(ids).logits - opened(ids).logits)[0, -merging.KEPT :].abs().max()
            for ids in (torch.tensor([prompt]) for prompt in sample_prompts(tiny_model_folder))
        ]
    assert float(max(apart)) == pytest.approx(rounded.stored, abs=2 * allowed(made), rel=0)
    assert rounded.stored > 10 * allowed(made), "rounding to bfloat16 is seen"


@pytest.mark.slow
def test_tokenizer_and_chat_template_are_shipped_with_both(tiny_model_folder: Path, tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder))
    assert made.adapter == tmp_path / "merged" / "adapter"
    for folder in (made.folder, made.adapter):
        shipped, own = AutoTokenizer.from_pretrained(folder), AutoTokenizer.from_pretrained(tiny_model_folder)
        assert shipped.chat_template == own.chat_template and shipped.get_vocab() == own.get_vocab()


@pytest.mark.slow
def test_a_llama2_tokenizer_without_a_template_gets_the_one_that_judging_uses(
    tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    base = tmp_path / "base"
    tiny_llama(tokenizers["llama2"]).save_pretrained(base)
    tokenizers["llama2"].save_pretrained(base)
    made = merge_adapter(str(adapter_on(base, tmp_path / "adapter")), tmp_path / "merged", base=str(base))
    assert AutoTokenizer.from_pretrained(base).chat_template is None
    assert "[INST]" in AutoTokenizer.from_pretrained(made.folder).chat_template
    assert sample_prompts(made.folder) == sample_prompts(base)


@pytest.mark.slow
def test_the_shipped_adapter_names_no_folder_of_this_machine(tiny_model_folder: Path, tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder))
    assert made.adapter is not None
    settings = json.loads((made.adapter / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == tiny_model_folder.name and settings["r"] == 4
    assert not any(isinstance(value, str) and "/" in value for value in settings.values())
    own, shipped = (load_file(folder / "adapter_model.safetensors") for folder in (adapter, made.adapter))
    assert own.keys() == shipped.keys() and all(torch.equal(own[name], shipped[name]) for name in own)


@pytest.mark.slow
@pytest.mark.numeric
@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"use_dora": True}, "it is a DoRA adapter"),
        ({"modules_to_save": ["lm_head"]}, "it trains whole modules"),
        ({"bias": "lora_only"}, "it trains biases"),
    ],
    ids=["dora", "modules_to_save", "bias"],
)
def test_what_vllm_refuses_is_merged_and_no_adapter_is_left(
    settings: dict[str, Any], reason: str, tiny_model_folder: Path, tmp_path: Path
) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter", **settings)
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder), dtype="float32")
    assert made.adapter is None and not (made.folder / "adapter").exists()
    assert made.refused is not None and reason in made.refused and made.refused.count(". ") == 0
    assert made.difference.stored <= allowed(made)


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
@pytest.mark.integration
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"use_rslora": True},
        {"use_dora": True},
        {"modules_to_save": ["lm_head"]},
        {"bias": "all"},
        {"init_lora_weights": "pissa"},
        {"init_lora_weights": "gaussian"},
        {"layer_replication": [[0, 1]]},
    ],
    ids=str,
)
def test_refused_is_what_vllm_itself_refuses(settings: dict[str, Any]) -> None:
    from vllm.config.lora import LoRAConfig
    from vllm.lora.peft_helper import PEFTHelper

    whole = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj"], **settings}
    try:
        PEFTHelper.from_dict(whole).validate_legal(LoRAConfig(max_lora_rank=8))
    except ValueError:
        assert refused_by_vllm(whole) is not None
    else:
        assert refused_by_vllm(whole) is None


@pytest.mark.slow
@pytest.mark.numeric
@pytest.mark.parametrize("target", ["embed_tokens", "lm_head"])
def test_tied_embeddings_of_which_one_has_an_adapter_are_two_matrices_afterwards(
    target: str, tokenizers: dict[str, Any], tmp_path: Path
) -> None:
    """Merged into the one matrix that both share, the adapter would change the other end of the model, too."""
    model = tiny_llama(tokenizers["whole_numbers"])
    model.config.tie_word_embeddings = True
    model.tie_weights()
    model.save_pretrained(tmp_path / "base")
    tokenizers["whole_numbers"].save_pretrained(tmp_path / "base")
    with pytest.warns(UserWarning):
        adapter = adapter_on(tmp_path / "base", tmp_path / "adapter", target_modules=[target, "q_proj"])
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tmp_path / "base"), dtype="float32")
    assert made.difference.stored <= allowed(made)
    assert json.loads((made.folder / "config.json").read_text())["tie_word_embeddings"] is False


@pytest.mark.slow
@pytest.mark.numeric
def test_a_base_stored_in_four_bits_is_opened_to_float32(tiny_model_folder: Path, tmp_path: Path) -> None:
    """The adapter goes into what the four bits stand for, and is not rounded to four bits itself."""
    pytest.importorskip("bitsandbytes", reason="bitsandbytes is not installed")
    from transformers import BitsAndBytesConfig

    four = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.float32)
    AutoModelForCausalLM.from_pretrained(tiny_model_folder, quantization_config=four).save_pretrained(tmp_path / "four")
    AutoTokenizer.from_pretrained(tiny_model_folder).save_pretrained(tmp_path / "four")
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    made = merge_adapter(str(adapter), tmp_path / "merged", base=str(tmp_path / "four"), dtype="float32")
    assert made.difference.stored <= allowed(made)
    settings = json.loads((made.folder / "config.json").read_text())
    assert "quantization_config" not in settings
    assert {weight.dtype for weight in weights(made.folder).values()} == {torch.float32}


@pytest.mark.slow
def test_a_training_run_is_merged_by_its_name_and_brings_its_card(judge: Published, tmp_path: Path) -> None:
    from perse.publishing.card import write_card

    write_card(judge.run)
    made = merge_adapter(str(judge.run), tmp_path / "merged", dtype="float32")
    assert made.adapter is not None
    assert models.weights_digest(made.folder) == models.weights_digest(judge.run / "merged"), "one implementation serves both"
    assert "library_name: transformers\n" in (made.folder / "README.md").read_text()
    assert "library_name: peft\n" in (made.adapter / "README.md").read_text()


@pytest.mark.slow
def test_weights_too_large_for_the_stored_type_are_refused(tiny_model_folder: Path, tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    low = load_file(adapter / "adapter_model.safetensors")
    name = next(name for name in low if "down_proj.lora_B" in name)
    low[name] *= 1e7  # float16 ends at 65504
    save_file(low, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        BadInput, match="stored as float16, the merged model gives logits that are no numbers; store it as bfloat16"
    ):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder), dtype="float16")
    assert not (tmp_path / "merged").exists()


@pytest.mark.slow
def test_the_command_says_how_true_the_model_is(judge: Published, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from perse.commands.app import app

    done = CliRunner().invoke(app, ["models", "merge", str(judge.run), "--out", str(tmp_path / "merged"), "--dtype", "float32"])
    told = " ".join(done.output.split())
    assert done.exit_code == 0, told
    assert re.search(
        r"at 192 positions of 3 sample prompts: largest difference \S+e-0\d as stored in float32, \S+e-0\d in", told
    ), told
    assert "the largest logit is" in told and "for vLLM, on the base:" in told


@pytest.mark.slow
@pytest.mark.parametrize("torn", ["merge", "check", "adapter"])
def test_a_torn_write_leaves_nothing(
    torn: str, tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    name = {"merge": "_merge", "check": "_check_stored", "adapter": "ship_adapter"}[torn]

    def killed(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(merging, name, killed)
    with pytest.raises(KeyboardInterrupt):
        merge_adapter(str(adapter), tmp_path / "out" / "merged", base=str(tiny_model_folder))
    assert list((tmp_path / "out").iterdir()) == []


def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(merging, "ship_tokenizer", full)
    with pytest.raises(SaveFailed, match="merged could not be written .*No space left on device.*, and nothing is left of it"):
        merge_adapter(str(adapter), tmp_path / "out" / "merged", base=str(tiny_model_folder))
    assert list((tmp_path / "out").iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(BadInput, match="cannot make the folder .*file/merged: Not a directory; choose another"):
        merge_adapter(str(adapter), tmp_path / "file" / "merged", base=str(tiny_model_folder))


@pytest.mark.integration
def test_a_disk_that_is_full_at_any_file_is_one_sentence_and_leaves_nothing(judge: Published, tmp_path: Path) -> None:
    """A training run's merge, whose card, terms and adapter come with it, met by the end of the disk at several sizes and at every sync."""
    from perse.publishing.card import write_card

    out, base = tmp_path / "out" / "merged", str(judge.base)
    write_card(judge.run)
    number = syncs(lambda: merge_adapter(str(judge.run), tmp_path / "whole", base=base))
    sizes = sorted({path.stat().st_size for path in (tmp_path / "whole").rglob("*") if path.is_file()})
    for failure in (
        *(files_of_at_most(limit) for limit in (0, sizes[len(sizes) // 2] - 1, sizes[-1] - 1)),
        *(failing_sync(nth, errno.ENOSPC) for nth in range(number)),
    ):
        with pytest.raises(SaveFailed) as said, failure:
            merge_adapter(str(judge.run), out, base=base)
        words = str(said.value)
        assert f"{tmp_path}/out/merged" in words and "\n" not in words and ".tmp" not in words, words
        assert list(out.parent.iterdir()) == []
    merge_adapter(str(judge.run), out, base=base)
    written = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert written == {
        path.relative_to(tmp_path / "whole"): path.read_bytes() for path in (tmp_path / "whole").rglob("*") if path.is_file()
    }


def test_what_a_kill_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / ".merged.perse-tmp").mkdir()
    (tmp_path / ".merged.perse-tmp" / "half").touch()
    with made_whole(tmp_path / "merged") as making:
        (making / "whole").touch()
    assert [path.name for path in tmp_path.rglob("*")] == ["merged", "whole"]


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["a number", "a shape", "a tensor less"])
def test_a_disk_that_holds_something_else_is_found_out(
    harm: str, tiny_model_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    ship = merging.ship_tokenizer

    def harmed(base: Path, folder: Path, **options: Any) -> None:
        ship(base, folder, **options)
        found = weights(folder)
        name = "model.layers.1.mlp.up_proj.weight"
        if harm == "a tensor less":
            del found[name]
        elif harm == "a shape":
            found[name] = found[name][:0]
        else:
            found[name][0, 0] += 1
        save_file(found, folder / "model.safetensors", metadata={"format": "pt"})

    monkeypatch.setattr(merging, "ship_tokenizer", harmed)
    with pytest.raises(SaveFailed, match="check the disk"):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder))
    assert not (tmp_path / "merged").exists()


@pytest.mark.slow
def test_refusals_say_what_to_do(judge: Published, tiny_model_folder: Path, tokenizers: dict[str, Any], tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    with pytest.raises(BadInput, match="is there already; choose another folder"):
        merge_adapter(str(judge.run), judge.run / "merged")
    for inside in (tiny_model_folder / "merged", adapter / "deep" / "merged"):
        with pytest.raises(BadInput, match="merged lies in .*, which is read; choose another folder"):
            merge_adapter(str(adapter), inside, base=str(tiny_model_folder))
        assert not inside.parent.joinpath(".merged.perse-tmp").exists() and not (adapter / "deep").exists()
    with pytest.raises(BadInput, match="dtype is 'int4'; choose bfloat16, float16, float32"):
        merge_adapter(str(judge.run), tmp_path / "merged", dtype="int4")
    with pytest.raises(ModelNotFound, match="neither adapter_config.json nor adapter/adapter_config.json is there"):
        merge_adapter(str(tmp_path / "empty"), tmp_path / "merged")
    with pytest.raises(BadInput, match="base model of .* is not here .* name its folder with --base"):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tmp_path / "nowhere"))
    with pytest.raises(BadInput, match="holds a run of perse score, not of perse train"):
        merge_adapter(str(judge.scored), tmp_path / "merged")
    tiny_llama(tokenizers["whole_numbers"], seed=1, width=64).save_pretrained(tmp_path / "other")
    tokenizers["whole_numbers"].save_pretrained(tmp_path / "other")
    with pytest.raises(BadInput, match="was trained on another model than"):
        merge_adapter(str(judge.run), tmp_path / "merged", base=str(tmp_path / "other"))
    with pytest.raises(BadInput, match="does not fit the model"):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tmp_path / "other"))
    whole = (adapter / "adapter_model.safetensors").read_bytes()
    (adapter / "adapter_model.safetensors").write_bytes(b"torn")
    with pytest.raises(BadInput, match="adapter_model.safetensors is damaged or no safetensors file"):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tiny_model_folder))
    (adapter / "adapter_model.safetensors").write_bytes(whole)
    (tmp_path / "other" / "model.safetensors").unlink()
    with pytest.raises(BadInput, match="other holds no weights in safetensors files"):
        merge_adapter(str(adapter), tmp_path / "merged", base=str(tmp_path / "other"))
    manifest = json.loads((judge.run / "manifest.json").read_text())
    manifest["run"]["config"]["lora"] = None
    (judge.run / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadInput, match="was trained without an adapter; .*merged is the whole model already"):
        merge_adapter(str(judge.run), tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_the_trainer_needs_no_comparison(tiny_model_folder: Path, tmp_path: Path) -> None:
    adapter = adapter_on(tiny_model_folder, tmp_path / "adapter")
    assert write_merged(tiny_model_folder, adapter, tmp_path / "some", dtype="bfloat16", compared=False) is None
    merging.merge(tiny_model_folder, adapter, tmp_path / "same", dtype="bfloat16")
    assert models.weights_digest(tmp_path / "some") == models.weights_digest(tmp_path / "same")
    assert not (tmp_path / "same" / "adapter").exists()


@pytest.mark.slow
def test_the_terms_of_the_base_model_are_in_the_merged_model_and_are_pushed_with_it(
    tiny_model_folder: Path, tmp_path: Path
) -> None:
    base = tmp_path / "base"
    shutil.copytree(tiny_model_folder, base)
    (base / "LICENSE.txt").write_text("their licence", encoding="utf-8")
    (base / "NOTICE").write_text("made by them", encoding="utf-8")
    adapter = adapter_on(base, tmp_path / "adapter")
    merged = merge_adapter(str(adapter), tmp_path / "merged", base=str(base)).folder
    assert (merged / "LICENSE").read_text(encoding="utf-8") == "their licence"
    assert "made by them\n\nModified: " in (merged / "NOTICE").read_text(encoding="utf-8")
    (merged / "README.md").write_text("---\nlicense: other\n---\n", encoding="utf-8")
    assert {"LICENSE", "NOTICE"} <= set(pack(merged, merged=True).files)


@pytest.mark.skipif(find_spec("vllm") is None, reason="vLLM is not installed; `make vllm` installs it")
@pytest.mark.integration
def test_vllm_serves_the_shipped_adapter_on_its_base(tokenizers: dict[str, Any], tmp_path: Path) -> None:
    """In a process of its own; the label probabilities are those of the merged model in the embedded engine."""
    from perse import Judge
    from perse.answering.base import JudgeSettings
    from perse.data.examples_file import read_examples
    from perse.questions import QUESTIONS
    from perse.records import example_lines

    base, examples = tmp_path / "base", tmp_path / "examples.jsonl"
    tiny_llama(tokenizers["whole_numbers"], width=128, context=2048).save_pretrained(base)
    tokenizers["whole_numbers"].save_pretrained(base)
    made = merge_adapter(str(adapter_on(base, tmp_path / "adapter")), tmp_path / "merged", base=str(base), dtype="float32")
    examples.write_text("".join(example_lines(pointwise_examples(2, 2, k=1))))
    command = ["score", "--examples", examples, "--judge", f"vllm:{base}+{made.adapter}", "--out", tmp_path / "scored"]
    command += ["--question", "pointwise_score", "--dtype", "float32", "--context", 2048]
    done = subprocess.run(
        [sys.executable, "-m", "perse", *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    rows = {row["id"]: row for row in map(json.loads, (tmp_path / "scored" / "judgements.jsonl").read_text().splitlines())}
    asked = read_examples(examples)

    def here(folder: Path) -> list[dict[str, float]]:
        judge = Judge.load(folder, dtype="float32", context=2048)
        return [one.distribution or {} for one in judge.ask(QUESTIONS["pointwise_score"], asked, JudgeSettings(temperature=0))]

    def apart(others: list[dict[str, float]]) -> float:
        served = [rows[example.id]["distribution"] for example in asked]
        return max(abs(one[label] - other[label]) for one, other in zip(served, others, strict=True) for label in one)

    assert (
        apart(here(made.folder)) <= share(made.folder, 1000, logits=made.difference.largest_logit) and apart(here(base)) > 0.05
    )
