"""Packing changes nothing but the time: losses and gradients of a packed row are those of separate, unpadded rows."""

from __future__ import annotations

import copy
import json
import logging
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from architectures import BRANCHES, FAMILIES, GPT, GQA, LONGEST, NO_DROPOUT, ONLY_MASK, TOKENS, model_of, segment
from builders import pointwise_examples, tiny_llama, whole_number_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from separate_rows import alone, furthest, least_cosine, loss_alone, together
from tolerances import TRAINED, TRAINED_WEIGHTS, forward, gradient, logprob

from perse.errors import BadInput
from perse.records import example_lines
from perse.settings.training import Attention, Lora, load_config
from perse.training.model.adapting import adapted
from perse.training.ready import load_model
from perse.training.rows.attention import dense_mask, set_attention
from perse.training.rows.batches import IGNORED, answer_loss, collate, filler
from perse.training.rows.branches import Branch
from perse.training.rows.packable import check_packable
from perse.training.rows.trie import packed
from perse.training.saving.checkpoints import whole_checkpoint
from perse.training.trainer import train

pytestmark = pytest.mark.numeric


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def eager(model: Any) -> Any:
    """The plainest attention there is; of the models that cannot change theirs, their own."""
    model = copy.deepcopy(model)
    if model._supports_attention_backend:
        model.set_attn_implementation("eager")
    return model


CASES = [(name, how) for name in FAMILIES for how in ("tree", "mask") if how == "mask" or name not in ONLY_MASK]


@pytest.mark.parametrize(("family", "how"), CASES, ids=["-".join(case) for case in CASES])
def test_a_packed_row_has_the_loss_and_gradients_of_separate_rows(family: str, how: Attention) -> None:
    model = model_of(family)
    loss, grads = alone(eager(model), BRANCHES)
    assert set_attention(model, how) == how
    for share in (True, False):
        found, other = together(model, BRANCHES, how, share=share)
        assert found == pytest.approx(loss, abs=forward(model, LONGEST) * max(1.0, loss))
        assert furthest(other, grads) <= gradient(model, TOKENS)


def test_an_eager_model_is_masked_as_well() -> None:
    """Eager attention adds its mask to the scores, and true or false would be added as 1 or 0."""
    model = eager(model_of("llama"))
    loss, grads = alone(model, BRANCHES)
    found, other = together(model, BRANCHES, "mask")
    assert abs(found - loss) > 0.01, "the mask is taken as it is, so nothing has to be done about it"
    set_attention(model, "mask")
    found, other = together(model, BRANCHES, "mask")
    assert found == pytest.approx(loss, rel=forward(model, LONGEST)) and furthest(other, grads) <= gradient(model, TOKENS)
    assert alone(model, BRANCHES)[0] == loss


def lora_model(family: str | Any = "llama", *, checkpointing: bool = False) -> Any:
    model = adapted(model_of(family), Lora(rank=4), checkpointing=checkpointing)
    generator = torch.Generator().manual_seed(1)
    for name, each in model.named_parameters():
        if "lora_B" in name:  # a fresh adapter's B is 0, and so would be the gradient of A
            torch.nn.init.normal_(each, std=0.1, generator=generator)
    return model.train()


@pytest.mark.parametrize("how", ["tree", "mask"])
def test_an_adapter_has_the_gradients_of_separate_rows(how: Attention) -> None:
    model = lora_model()
    loss, grads = alone(eager(model), BRANCHES)
    assert len(grads) == 2 * 2 * 7  # A and B, two layers, seven matrices each
    set_attention(model, how)
    found, other = together(model, BRANCHES, how)
    assert found == pytest.approx(loss, rel=forward(model, LONGEST)) and furthest(other, grads) <= gradient(model, TOKENS)


def test_the_name_of_a_layer_is_taken_alone_or_in_a_list_and_gpt2s_own_kind_of_linear_layer_by_its_name() -> None:
    for family, name in (("llama", "q_proj"), ("gpt2", "c_attn")):
        shapes = []
        for targets in (name, (name,)):
            model = adapted(model_of(family), Lora(rank=4, targets=targets), checkpointing=False)
            shapes.append({at: tuple(each.shape) for at, each in model.named_parameters() if each.requires_grad})
            assert len(shapes[-1]) == 2 * 2 and all(name in at for at in shapes[-1]), "A and B in each of two layers"
        assert shapes[0] == shapes[1]
        loss, grads = alone(eager(model), BRANCHES)
        set_attention(model, "tree")
        found, other = together(model, BRANCHES, "tree")
        assert found == pytest.approx(loss, rel=forward(model, LONGEST))
        assert furthest(other, grads, floor=1e-2) <= gradient(model, TOKENS)


SEGMENTS = st.sampled_from([segment(3, 20), segment(5, 21), segment(4, 22), segment(1, 23)])
TRIES = st.lists(st.tuples(st.lists(SEGMENTS, min_size=1, max_size=4), SEGMENTS), min_size=1, max_size=6)


@pytest.mark.parametrize("how", ["tree", "mask"])
@settings(max_examples=15)
@given(drawn=TRIES, share=st.booleans())
def test_random_tries_have_the_loss_and_gradients_of_separate_rows(how: Attention, drawn: Any, share: bool) -> None:
    """Examples that repeat, begin alike, end where others go on. What is 0 by itself, as the queries' gradient of a prompt of
    one token, is compared on the scale of the whole gradient."""
    branches = [Branch(str(at), tuple(path), answer, len(path) - 1, 1, 1) for at, (path, answer) in enumerate(drawn)]
    model = model_of("llama")
    loss, grads = alone(eager(model), branches)
    set_attention(model, how)
    found, other = together(model, branches, how, share=share)
    assert found == pytest.approx(loss, abs=forward(model, LONGEST) * max(1.0, loss))
    assert furthest(other, grads, floor=1e-2) <= gradient(model, TOKENS)


@pytest.mark.parametrize("how", ["tree", "mask"])
@pytest.mark.parametrize("weights", ["bf16 under LoRA", "fp32 under autocast"])
def test_in_bfloat16_gradients_point_where_those_of_separate_rows_do(weights: str, how: Attention) -> None:
    """Weights of a usual size: with those of the other tests attention is so sharp that eager and sdpa on separate rows
    are 0.998 from each other in bfloat16."""
    usual = transformers.LlamaConfig(**{**GQA, "initializer_range": 0.1})
    model = lora_model(usual) if "LoRA" in weights else model_of(usual)
    if "LoRA" in weights:
        for name, each in model.named_parameters():
            each.data = each.data if "lora" in name else each.data.bfloat16()
    with torch.autocast("cpu", torch.bfloat16, enabled="autocast" in weights):
        loss, grads = alone(model, BRANCHES)
        set_attention(model, how)
        found, other = together(model, BRANCHES, how)
    assert found == pytest.approx(loss, rel=0.01)
    assert least_cosine(other, grads) >= 0.999


# One that another equals whole stands with it in one place, so where tokens are shared any change to it moves the others.
TWICE = {
    at for at, one in enumerate(BRANCHES) if [(o.segments, o.answer) for o in BRANCHES].count((one.segments, one.answer)) > 1
}
CHANGES = [(at, share) for at in range(len(BRANCHES)) for share in (True, False) if not (share and at in TWICE)]


@pytest.mark.parametrize("how", ["tree", "mask"])
@pytest.mark.parametrize(("changed", "share"), CHANGES)
def test_other_words_in_one_branch_change_no_other_branch(changed: int, share: bool, how: Attention) -> None:
    """Bit for bit, the shared tokens before it included; and the changed ones do change. Its last question is changed with its
    answer, where that leaves the layout as it is."""
    one = BRANCHES[changed]
    asked = replace(one, segments=(*one.segments[:-1], segment(len(one.segments[-1]), 31)), answer=segment(len(one.answer), 30))
    before = packed(BRANCHES, share=share)
    rows = [
        packed([branch if other is one else other for other in BRANCHES], share=share)
        for branch in (asked, replace(one, answer=asked.answer))
    ]
    after = next(row for row in rows if row.tree == before.tree)
    new = torch.tensor(before.ids) != torch.tensor(after.ids)
    touched = dense_mask(after.tree)[0, 0][:, new].any(1)
    model = model_of("llama").eval()
    set_attention(model, how)
    logits = []
    for row in (before, after):
        batch = collate([row], attention=how)
        del batch["labels"], batch["logits_to_keep"]
        with torch.no_grad():
            logits.append(model(**batch).logits[0])
    assert new.any() and torch.equal(logits[0][~touched], logits[1][~touched])
    assert (logits[0][touched] != logits[1][touched]).any(1).all()


def test_a_branch_more_changes_no_other_branch() -> None:
    model = model_of("llama").eval()
    set_attention(model, "tree")
    learned = sum(len(branch.answer) for branch in BRANCHES[:-1])
    outputs = []
    for some in (BRANCHES[:-1], BRANCHES):
        batch = collate([packed(some)])
        del batch["labels"]
        with torch.no_grad():
            outputs.append(model(**batch).logits[0, :learned])
    assert torch.allclose(outputs[0], outputs[1], atol=logprob(model, LONGEST), rtol=0)


@pytest.mark.parametrize("how", ["tree", "mask"])
@pytest.mark.parametrize("trained", ["all", "adapter"])
def test_gradient_checkpointing_changes_no_gradient(trained: str, how: Attention) -> None:
    found = []
    for again in (False, True):
        model = model_of("llama") if trained == "all" else lora_model(checkpointing=again)
        set_attention(model, how)
        if again:
            model.gradient_checkpointing_enable()
        found.append(together(model, BRANCHES, how))
    assert found[0][0] == found[1][0]
    assert furthest(found[1][1], found[0][1]) <= 1e-6


# What cannot be packed


def test_a_window_shorter_than_an_example_is_refused_whichever_way_it_attends() -> None:
    model = model_of(transformers.MistralConfig(**GQA, sliding_window=LONGEST - 1))
    with pytest.raises(BadInput, match=f"looks back {LONGEST - 1} tokens and an example has {LONGEST}; set model.context="):
        check_packable(model, longest=LONGEST)
    check_packable(model, longest=LONGEST - 1)
    check_packable(model_of(transformers.Qwen2Config(**GQA, use_sliding_window=False, sliding_window=8)), longest=LONGEST)
    set_attention(model, "tree")
    with pytest.raises(BadInput, match="looks back"):
        together(model, BRANCHES, "tree")


def test_capped_scores_are_masked_by_default_and_refused_for_a_tree() -> None:
    model = model_of("gemma2")
    with pytest.raises(BadInput, match=r"Gemma2ForCausalLM cannot be exchanged .* set train.attention=mask"):
        set_attention(model, "tree")
    loss = alone(model, BRANCHES)[0]
    assert set_attention(model, None) == "mask"
    assert alone(model, BRANCHES)[0] != pytest.approx(loss, abs=1e-4), "the sdpa of transformers caps, so eager is not needed"


def test_attention_dropout_is_kept_by_the_mask() -> None:
    gpt2 = transformers.GPT2Config(**GPT, **{**NO_DROPOUT, "attn_pdrop": 0.1})
    assert set_attention(model_of(gpt2), None) == "mask"


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (transformers.MambaConfig(vocab_size=64, hidden_size=32, num_hidden_layers=1), "carries a state from token to token"),
        (transformers.BloomConfig(vocab_size=64, hidden_size=32, n_layer=1, n_head=4), "counts distances along the row"),
        (
            transformers.GPTNeoConfig(
                vocab_size=64, hidden_size=32, num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]]
            ),
            "counts distances along the row",
        ),
    ],
    ids=["state", "alibi", "local"],
)
def test_a_model_that_cannot_keep_examples_apart_is_refused(config: Any, said: str) -> None:
    with pytest.raises(BadInput, match=f"{said}.*set model.path to another"):
        check_packable(model_of(config), longest=LONGEST)


# Through the whole of training

FULL = ["lora=null"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Four readers with two queries each: eight examples that are one step."""
    path = tmp_path / "train.jsonl"
    path.write_text("".join(example_lines(pointwise_examples(4, 2, k=1))), encoding="utf-8")
    return path


def run(model: Path, data: Path, out: Path, *more: str) -> Path:
    given = [
        f"model.path={model}",
        "model.dtype=float32",
        "model.context=2048",
        f"data.path={data}",
        "lora.rank=4",
        "train.epochs=3",
        "train.batch_size=8",
        "train.max_shared_examples=8",
        "train.row_tokens=16384",
        "train.rows_per_step=1",
        "train.learning_rate=0.01",
        "train.max_grad_norm=100000",
        "train.log_every=1",
        "train.report_to=[]",
        f"output={out}",
    ]
    return train(load_config("embedded_lora", [*given, *more]))


def logged(folder: Path, what: str = "loss") -> list[float]:
    lines = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [line[what] for line in lines if what in line]


def weights(folder: Path) -> torch.Tensor:
    return torch.cat([each.flatten() for _, each in sorted(load_file(folder / "merged" / "model.safetensors").items())])


@pytest.mark.slow
@pytest.mark.parametrize("trained", [[], FULL], ids=["lora", "full"])
def test_accumulating_four_rows_is_one_row_of_all_and_checkpointing_is_neither(
    tiny_model_folder: Path, data: Path, tmp_path: Path, trained: list[str]
) -> None:
    """Loss and gradient of the first step are those of equal weights and agree closely. AdamW divides by sqrt(v), so a
    gradient that is all rounding moves a weight as far as any other: later losses, and weights, agree less closely."""
    given = (tiny_model_folder, data)
    whole = run(*given, tmp_path / "whole", *trained)
    parts = run(
        *given, tmp_path / "parts", "train.batch_size=2", "train.max_shared_examples=2", "train.rows_per_step=4", *trained
    )
    again = run(*given, tmp_path / "again", "train.gradient_checkpointing=true", *trained)
    assert len(logged(whole)) == 3 and logged(whole)[-1] < logged(whole)[0]
    for other in (parts, again):
        assert logged(other)[0] == pytest.approx(logged(whole)[0], rel=forward(tiny_model_folder, 300))
        assert logged(other, "grad_norm")[0] == pytest.approx(
            logged(whole, "grad_norm")[0], rel=gradient(tiny_model_folder, 2400)
        )
        assert logged(other) == pytest.approx(logged(whole), rel=TRAINED)
        assert float((weights(other) - weights(whole)).norm() / weights(whole).norm()) < TRAINED_WEIGHTS
    assert logged(again) == logged(whole)


@pytest.mark.slow
def test_examples_that_share_nothing_have_the_losses_of_rows_of_their_own(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    shared = run(tiny_model_folder, data, tmp_path / "shared", "train.epochs=1")
    side = run(tiny_model_folder, data, tmp_path / "side", "train.max_shared_examples=1", "train.epochs=1")
    each = run(tiny_model_folder, data, tmp_path / "each", "train.batch_size=1", "train.rows_per_step=8", "train.epochs=1")
    assert logged(shared, "share_ratio")[0] > 1.5
    for folder in (side, each):
        assert (logged(folder, "share_ratio"), logged(folder, "padding_share")) == ([1.0], [0.0])
        assert logged(folder)[0] == pytest.approx(logged(shared)[0], rel=forward(tiny_model_folder, 300))
        assert logged(folder, "grad_norm")[0] == pytest.approx(
            logged(shared, "grad_norm")[0], rel=gradient(tiny_model_folder, 2400)
        )


@pytest.mark.slow
def test_dropout_is_applied_where_nothing_is_shared_and_said_to_be_none_where_something_is(
    tiny_model_folder: Path, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    given = (tiny_model_folder, data)
    dropped = ["lora.dropout=0.5", "train.steps=1", "train.batch_size=2"]
    said = "(lora.dropout=0.5) is not applied: branches share"
    with caplog.at_level(logging.WARNING):
        run(*given, tmp_path / "side", "train.max_shared_examples=1", *dropped)
        assert said not in caplog.text
        run(*given, tmp_path / "shared", *dropped)
        assert said in caplog.text
    config = load_config("embedded_lora", [f"model.path={given[0]}", "model.dtype=float32", "data.path=x", *dropped])
    for some, differ in ((True, False), (False, True)):
        model = load_model(config, given[0], shared=some).train()
        for name, each in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(each)
        losses = {loss_alone(model, BRANCHES[0], 4).item() for _ in range(3)}
        assert (len(losses) > 1) == differ


@pytest.mark.parametrize("asked", ["mask", None])
def test_a_row_that_fills_up_a_step_is_computed_and_teaches_nothing(asked: Attention | None) -> None:
    model = tiny_llama(whole_number_tokenizer())
    inputs = collate([filler()], attention=set_attention(model, asked))
    loss = answer_loss(model(**{name: given for name, given in inputs.items() if name != "labels"}), inputs["labels"], 7)
    loss.backward()  # type: ignore[no-untyped-call]
    assert loss.item() == 0 and all(one.grad is None or not one.grad.any() for one in model.parameters())
    assert filler().unshared == 0 and not filler().example_ids


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_the_loss_of_16_bit_logits_is_computed_in_32(kind: torch.dtype) -> None:
    """In 16 bit a sum over 200 tokens of some 10 nats each has steps of 8 or 1; the logits themselves are what they are."""
    logits = (4 * torch.randn(1, 200, 64, generator=torch.Generator().manual_seed(0))).to(kind)
    labels = torch.cat([torch.tensor([[IGNORED]]), torch.arange(200)[None] % 64], dim=1)
    loss = answer_loss(SimpleNamespace(logits=logits), labels)
    expected = torch.nn.functional.cross_entropy(logits[0].double(), labels[0, 1:])
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.slow
def test_weights_that_are_no_numbers_stop_at_the_first_step(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    shutil.copytree(tiny_model_folder, broken)
    tensors = load_file(broken / "model.safetensors")
    tensors["model.norm.weight"][3] = float("nan")
    save_file(tensors, broken / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(BadInput, match=r"loss of examples r\d-\d, r\d-\d is nan in step 1, expected a finite number; look at"):
        run(broken, data, tmp_path / "run", "train.batch_size=2")
    assert not (tmp_path / "run" / "merged").exists()


@pytest.mark.slow
def test_a_loss_that_explodes_later_leaves_a_run_that_goes_on_from_its_last_checkpoint(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    wild = ["train.learning_rate=1e25", "train.warmup=0", "train.save_every=1"]
    with pytest.raises(
        BadInput, match=r"in step 2, expected a finite number; .* the same command resumes from the last checkp"
    ):
        run(tiny_model_folder, data, tmp_path / "run", *wild)
    before = logged(tmp_path / "run")
    assert len(before) == 1 and (found := whole_checkpoint(tmp_path / "run" / "checkpoints", facts={})) is not None
    assert found.name == "checkpoint-1"
    # What was saved may be good or, as here, spoilt by the step before; then the same sentence comes again.
    with pytest.raises(BadInput, match="in step 2"):
        run(tiny_model_folder, data, tmp_path / "run", *wild)
    assert logged(tmp_path / "run") == before


@pytest.mark.slow
def test_a_run_of_one_step_trains(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    out = run(tiny_model_folder, data, tmp_path / "run", "train.steps=1", "train.warmup=0.5")
    assert logged(out, "learning_rate") == [pytest.approx(0.01)]
    assert logged(out, "train_loss") == [], "the Trainer's is of the steps since the last resume alone"
    untrained, trained = (load_file(place / "model.safetensors") for place in (tiny_model_folder, out / "merged"))
    assert any(not torch.equal(untrained[name], trained[name]) for name in untrained)


@pytest.mark.slow
def test_many_passes_over_few_examples_are_told(
    tiny_model_folder: Path, data: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        run(tiny_model_folder, data, tmp_path / "few", "train.steps=2")
        assert "by heart" not in caplog.text
        run(tiny_model_folder, data, tmp_path / "many", "train.steps=21")
    assert "21 steps show each of the 8 examples about 21 times" in caplog.text


@pytest.mark.slow
def test_answers_longer_than_the_budget_are_left_out_or_said(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in data.read_text().splitlines()]
    lines[0]["reference"]["review"] = "ferry " * 600
    data.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown: list[Any] = []
    config = [f"model.path={tiny_model_folder}", "model.dtype=float32", "lora.rank=4", f"data.path={data}", "train.steps=1"]
    config += ["data.answer_tokens=64", "train.report_to=[]"]
    train(load_config("embedded_lora", [*config, "model.context=1024", f"output={tmp_path / 'some'}"]), show=shown.append)
    assert shown[0].branches.too_long == (lines[0]["id"],) and len(shown[0].branches.fitting) == 7
    data.write_text(json.dumps(lines[0]) + "\n")
    with pytest.raises(
        BadInput, match=r"none of the 1 examples fits 1024 tokens .* \(the longest true answer has 3609\); raise"
    ):
        train(load_config("embedded_lora", [*config, "model.context=1024", f"output={tmp_path / 'none'}"]))


def test_a_row_too_small_for_an_example_names_it_and_the_setting(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(
        BadInput, match=r"example r\d-\d takes \d+ tokens, \d+ of them its answer, and a row holds 64; raise train.row"
    ):
        run(tiny_model_folder, data, tmp_path / "run", "train.row_tokens=64")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ({"chat_template": None}, "no chat template; use an instruct"),
        ({"eos_token": None, "pad_token": None}, "followed by an end-of-turn token"),
    ],
    ids=["template", "end"],
)
def test_a_tokenizer_that_cannot_frame_or_end_an_answer_is_refused_before_anything_is_written(
    tiny_model_folder: Path, data: Path, tmp_path: Path, missing: dict[str, None], said: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model_folder, folder, ignore=shutil.ignore_patterns("token*", "*.jinja", "special*"))
    tokenizer = whole_number_tokenizer()
    for name, value in missing.items():
        setattr(tokenizer, name, value)
    tokenizer.save_pretrained(folder)
    with pytest.raises(BadInput, match=said):
        run(folder, data, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_an_adapter_on_nothing_is_refused_through_training(tiny_model_folder: Path, data: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="lora.targets has 'nowhere', which is no layer of this model"):
        run(tiny_model_folder, data, tmp_path / "run", "lora.targets=[nowhere]")


def test_a_pattern_of_targets_that_is_none_is_refused_in_one_sentence(
    tiny_model_folder: Path, data: Path, tmp_path: Path
) -> None:
    with pytest.raises(BadInput, match=r"lora.targets has '\(\(', which is no layer of this model"):
        run(tiny_model_folder, data, tmp_path / "run", "lora.targets=((")
