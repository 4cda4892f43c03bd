"""The order of a reader's scores and soft labels, trained in packed rows: what they are alone, and what the judge reads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from builders import KINDS, pointwise_examples, tiny_llama
from hypothesis import given, settings
from hypothesis import strategies as st
from separate_rows import Gradients, furthest, gradients, loss_alone
from tolerances import LARGEST, forward, gradient, share

from perse.engines.base import LabelDistribution
from perse.engines.labels import label_probabilities
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.questions import QUESTIONS
from perse.rendering.prompt import Ids, LabelTokens, Renderer
from perse.settings.training import Attention, Train, load_config
from perse.training.rows.attention import dense_mask, plain_attention, set_attention
from perse.training.rows.batches import collate, filler
from perse.training.rows.branches import Branch, training_branches
from perse.training.rows.label_tree import LabelTree, TrueLabel, label_tree
from perse.training.rows.row_loss import RowLoss, expected_scores, log_labels, soft_targets
from perse.training.rows.trie import PackedRow, packed

pytestmark = pytest.mark.numeric

QUESTIONS_OF_SCORES = ("pointwise_score", "pointwise")


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def scored(*scores: int, readers: int = 2) -> list[Any]:
    """Examples of `readers` readers, each with these scores."""
    examples = pointwise_examples(readers, len(scores), k=1)
    return [
        one.model_copy(
            update={"reference": one.reference and one.reference.model_copy(update={"score": scores[at % len(scores)]})}
        )
        for at, one in enumerate(examples)
    ]


def made(tokenizer: Any, name: str, *scores: int) -> tuple[Renderer, LabelTree, list[Branch]]:
    renderer, question = Renderer(tokenizer, 2048), QUESTIONS[name]
    tree = label_tree(renderer, question, asked_by="train.rank_weight=1")
    branches = training_branches(renderer, question, scored(*scores), answer_tokens=64, tree=tree).fitting
    return renderer, tree, list(branches)


def batch_of(row: PackedRow, attention: Attention) -> tuple[dict[str, Any], torch.Tensor, Any]:
    batch = collate([row], attention=attention)
    return batch, batch.pop("labels"), batch.pop("reading")


def answers(labels: tuple[Ids, ...], after: dict[Ids, torch.Tensor]) -> torch.Tensor:
    """The slow twin of `log_labels`: P of each label's tokens, less that of every longer label that begins with it."""
    whole = [torch.stack([after[label[:n]][token] for n, token in enumerate(label)]).sum().exp() for label in labels]
    own = [
        p - sum(whole[at] for at, other in enumerate(labels) if other != label and other[: len(label)] == label)
        for label, p in zip(labels, whole, strict=True)
    ]
    return torch.stack(own)


def labels_alone(model: Any, branch: Branch) -> torch.Tensor:
    """Probabilities of the labels of one example: a plain forward pass, unpadded, for each node of the tree."""
    assert branch.label is not None
    tree, before = branch.label.tree, branch.prompt + branch.answer[: branch.label.begins(branch.answer)]
    after = {
        node: torch.log_softmax(model(input_ids=torch.tensor([before + node]), use_cache=False).logits[0, -1].float(), -1)
        for node in {label[:n] for label in tree.labels for n in range(len(label))}
    }
    return answers(tree.labels, after)


def alone(model: Any, branches: Sequence[Branch], *, rank_weight: float, smoothing: float) -> tuple[float, Gradients]:
    """Loss and gradients by the definition, each example alone."""
    model.zero_grad()
    learned = sum(len(branch.answer) for branch in branches)
    loss = torch.zeros(())
    expected = []
    for branch in branches:
        assert branch.label is not None
        own = labels_alone(model, branch)
        values = torch.tensor(branch.label.tree.values)
        expected.append((own / own.sum() * values).sum())
        loss = loss + loss_alone(model, branch, learned)
        if smoothing:
            true = branch.label.index
            at, label = branch.label.begins(branch.answer), branch.label.tree.labels[true]
            ids = torch.tensor([branch.prompt + branch.answer])
            logprobs = torch.log_softmax(model(input_ids=ids, use_cache=False).logits[0].float(), -1)
            first = len(branch.prompt) + at
            loss = loss + sum(logprobs[first + n - 1, token] for n, token in enumerate(label)) / learned
            weights = [0.0] * len(own)
            for near, part in ((true, 1 - smoothing), (true - 1, smoothing / 2), (true + 1, smoothing / 2)):
                weights[near if 0 <= near < len(own) else true] += part
            loss = loss - sum(w * torch.log(p) for w, p in zip(weights, own, strict=True) if w) / learned
    pairs = [
        torch.nn.functional.softplus(expected[j] - expected[i])
        for i, one in enumerate(branches)
        for j, other in enumerate(branches)
        if one.label and other.label and one.label.reader == other.label.reader and one.label.index > other.label.index
    ]
    loss = loss + rank_weight * torch.stack(pairs).mean()
    loss.backward()  # type: ignore[no-untyped-call]
    return float(loss.detach()), gradients(model)


def together(
    model: Any, rows: Sequence[Sequence[Branch]], attention: Attention, loss: RowLoss, *, share: bool = True
) -> tuple[float, Gradients]:
    """Of rows of one optimizer step."""
    model.zero_grad()
    laid = [packed(row, share=share) for row in rows]
    learned = sum(len(row.targets) for row in laid)
    of_step = sum(len(row.reading.pairs) for row in laid if row.reading)
    total = 0.0
    for row in laid:
        batch, labels, reading = batch_of(row, attention)
        found = loss(model(**batch), labels, learned, reading=replace(reading, of_step=of_step))
        found.backward()  # type: ignore[no-untyped-call]
        total += float(found.detach())
    return total, gradients(model)


# What is read


@pytest.mark.parametrize("name", QUESTIONS_OF_SCORES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("how", ["tree", "mask"])
def test_the_expected_score_of_a_row_is_the_judges(tokenizers: dict[str, Any], kind: str, name: str, how: Attention) -> None:
    """Of every example of a row, whether its answer passes the node of "10" or not."""
    renderer, tree, branches = made(tokenizers[kind], name, 1, 10, 7, 9)
    assert len(tree.nodes) == (1 if kind == "whole_numbers" else 2), "where 10 is one token, one node tells all labels"
    question, model = QUESTIONS[name], tiny_llama(tokenizers[kind])
    set_attention(model, how)
    batch, _, reading = batch_of(packed(branches), how)
    with torch.no_grad():
        told = log_labels(model(**batch).logits[0].float(), reading)
        found = expected_scores(told, tree)
    with plain_attention(model):
        engine = TransformersEngine(model)
        support = renderer.label_tokens(question)
        prefixes = [
            one.prompt + one.answer[: one.label.begins(one.answer) - len(support.stem)] for one in branches if one.label
        ]
        judged = engine.label_distributions(prefixes, support)
    longest = max(branch.tokens for branch in branches)
    for at, one in enumerate(judged):
        assert isinstance(one, LabelDistribution)
        assert found[at].item() == pytest.approx(question.scale.expected(one.probabilities), abs=45 * share(model, longest))
        assert told[at].exp().sum().item() == pytest.approx(one.mass, rel=10 * share(model, longest))
        assert told[at].softmax(0).tolist() == pytest.approx(one.probabilities, abs=share(model, longest))


LABELS = st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=3).map(tuple), min_size=2, max_size=6, unique=True)


@settings(max_examples=60)
@given(LABELS, st.integers(0, 10**6))
def test_labels_of_any_tree_have_the_probabilities_that_the_house_computes(labels: list[Ids], seed: int) -> None:
    """Labels that begin with others, to any depth, each of four tokens."""
    tree = LabelTree(tuple(labels), tuple(map(float, range(len(labels)))), tail=1)
    answer_labels = [TrueLabel(tree, at, 0) for at in range(len(labels))]
    branches = [Branch(str(at), ((5, 6),), (*labels[at], 4), 0, 0, 0, label) for at, label in enumerate(answer_labels)]
    row = packed(branches)
    assert row.reading is not None
    generator = torch.Generator().manual_seed(seed)
    after: dict[Ids, torch.Tensor] = {}
    for place, ids in enumerate(row.ids):  # the same logits for the same path, drawn for each
        path = tuple(row.ids[at] for at in dense_mask(row.tree)[0, 0, place].nonzero()[:, 0])
        assert path[-1] == ids
        after.setdefault(path, torch.randn(7, generator=generator))
    shown = [tuple(row.ids[at] for at in dense_mask(row.tree)[0, 0, place].nonzero()[:, 0]) for place in row.sources]
    told = log_labels(torch.stack([after[path] for path in shown]), row.reading)
    logprobs = {path[2:]: torch.log_softmax(logits, 0) for path, logits in after.items() if len(path) > 1}
    whole = [math.exp(sum(float(logprobs[label[:n]][token]) for n, token in enumerate(label))) for label in labels]
    judged = label_probabilities(whole, LabelTokens((), tuple(labels)))
    for one in told:
        assert one.softmax(0).tolist() == pytest.approx(judged.probabilities, abs=1e-5)
        assert float(one.exp().sum()) == pytest.approx(judged.mass, rel=1e-5)


def test_ten_is_neither_one_nor_nought() -> None:
    """By hand: P(1) = 0.6 of which 0 follows in 0.75, and P(2) = 0.2: 10 has 0.45, 1 has 0.15, 2 has 0.2."""
    tree = LabelTree(((1,), (2,), (1, 0)), (1.0, 2.0, 10.0), tail=1)
    branches = [Branch("a", ((5,),), (2, 4), 0, 0, 0, TrueLabel(tree, 1, 0))]
    row = packed(branches)
    assert row.ids == (5, 2, 4, 1) and row.positions == (0, 1, 2, 1), "the node behind 1 is a branch of its own"
    assert row.sources == (0, 1, 3) and row.targets == (2, 4)
    logits = torch.tensor([[0.1, 0.6, 0.2, 0.05, 0.05], [0.2] * 5, [0.75, 0.1, 0.05, 0.05, 0.05]]).log()
    told = log_labels(logits, row.reading)  # type: ignore[arg-type]
    assert told.exp()[0].tolist() == pytest.approx([0.15, 0.2, 0.45])
    assert expected_scores(told, tree)[0].item() == pytest.approx((0.15 + 0.4 + 4.5) / 0.8)


# Loss and gradients


CASES = [(0.5, 0.0), (0.0, 0.4), (2.0, 0.5)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["chatml", "whole_numbers"])
@pytest.mark.parametrize("how", ["tree", "mask"])
@pytest.mark.parametrize(("weight", "smoothing"), CASES)
def test_a_packed_row_has_the_loss_and_gradients_of_separate_rows(
    tokenizers: dict[str, Any], kind: str, how: Attention, weight: float, smoothing: float
) -> None:
    """And two rows of a step those of one, whose examples are shared or stand side by side."""
    branches = made(tokenizers[kind], "pointwise_score", 1, 10, 7, 2)[2]
    model = tiny_llama(tokenizers[kind]).train()
    loss, grads = alone(model, branches, rank_weight=weight, smoothing=smoothing)
    set_attention(model, how)
    within = forward(model, max(branch.tokens for branch in branches)) * LARGEST
    tokens = sum(branch.tokens for branch in branches)
    for rows, shared in (([branches], True), ([branches], False), ([branches[:4], branches[4:]], True)):
        found, other = together(model, rows, how, RowLoss(rank_weight=weight, ordinal_smoothing=smoothing), share=shared)
        assert found == pytest.approx(loss, rel=within)
        assert furthest(other, grads, floor=1e-2) <= LARGEST * gradient(model, tokens)


@pytest.mark.slow
def test_a_review_is_written_before_its_score_and_the_score_is_found_behind_it(tokenizers: dict[str, Any]) -> None:
    _, _, branches = made(tokenizers["chatml"], "pointwise", 10, 3)
    model = tiny_llama(tokenizers["chatml"]).train()
    loss, grads = alone(model, branches, rank_weight=1.0, smoothing=0.3)
    set_attention(model, "tree")
    found, other = together(model, [branches], "tree", RowLoss(rank_weight=1.0, ordinal_smoothing=0.3))
    assert found == pytest.approx(loss, rel=LARGEST * forward(model, max(branch.tokens for branch in branches)))
    assert furthest(other, grads, floor=1e-2) <= LARGEST * gradient(model, sum(branch.tokens for branch in branches))


def test_the_order_alone_pulls_the_expected_scores_of_a_reader_apart_and_no_two_readers() -> None:
    tree = LabelTree(((1,), (2,), (3,)), (1.0, 2.0, 3.0), tail=1)
    branches = [
        Branch(name, ((5,), (6 + at,)), (tree.labels[label][0], 4), 1, 1, 1, TrueLabel(tree, label, reader))
        for at, (name, label, reader) in enumerate(
            [("a", 0, 0), ("b", 2, 0), ("c", 1, 1), ("d", 2, None), ("e", 0, None), ("f", 2, 0)]
        )
    ]
    row = packed(branches)
    assert row.reading is not None
    assert row.reading.pairs == ((1, 0), (5, 0)), "equal scores, other readers and readers without a name make no pair"
    logits = torch.zeros(len(row.sources), 16, requires_grad=True)
    batch = collate([row])
    loss = RowLoss(rank_weight=1.0, ordinal_smoothing=0.0)
    reading = replace(row.reading, of_step=2)
    both = loss(SimpleNamespace(logits=logits[None]), batch["labels"], reading=reading)
    assert float(both.detach()) == pytest.approx(math.log(16) + math.log(2)), "every token is as likely, every pair undecided"
    [rank] = torch.autograd.grad(both - torch.nn.functional.cross_entropy(logits[:12], torch.tensor(row.targets)), [logits])
    touched = [at for at, one in enumerate(rank.abs().sum(1).tolist()) if one > 1e-8]
    assert touched == [0, 2, 10], "the places before the labels of a, b and f"
    assert rank[0, 3] > 0 > rank[0, 1] and rank[2, 3] < 0 < rank[2, 1], (
        "a step down the gradient lowers a's score and raises b's"
    )


def test_what_is_logged_of_the_order_is_of_whole_steps_and_of_all_pairs() -> None:
    """Two rows a step, three pairs of which one is in order and one undecided; then nothing until there is more."""
    tree = LabelTree(((1,), (2,), (3,)), (1.0, 2.0, 3.0), tail=1)
    loss = RowLoss(rank_weight=0.5, ordinal_smoothing=0.0)

    def learn(*told: tuple[int, float]) -> float:
        """Examples of one reader with the label at this place, of which the highest is so much likelier than the lowest."""
        row = packed(
            [
                Branch(str(at), ((5,), (6 + at,)), (1 + one, 4), 1, 1, 1, TrueLabel(tree, one, 0))
                for at, (one, _) in enumerate(told)
            ]
        )
        assert row.reading is not None
        logits = torch.zeros(1, len(row.sources), 12)
        for at, (_, likelier) in enumerate(told):
            logits[0, row.reading.nodes[at][0], 3] = likelier
        return float(loss(SimpleNamespace(logits=logits), collate([row])["labels"], reading=replace(row.reading, of_step=3)))

    assert loss.numbers(2, lambda sums: sums) == {}
    one, other = learn((0, 0.0), (2, 3.0)), learn((0, 0.0), (1, 0.0), (0, 9.0))
    found = loss.numbers(2, lambda sums: sums)
    assert found["rank_pairs"] == 3 and found["rank_ordered"] == pytest.approx(1 / 3)
    assert found["answer_loss"] + 0.5 * found["rank_loss"] == pytest.approx(one + other)
    # Expected scores, in steps of 1: 2 and (1 + 2 + 3 e^3) / (2 + e^3) = 2.864; then 2 and 2, and (3 + 3 e^9) / (2 + e^9) = 3.000 above 2.
    undecided, right, wrong = (math.log1p(math.exp(-above)) for above in (0.0, 0.8643, -0.9998))
    assert found["rank_loss"] == pytest.approx((undecided + right + wrong) / 3, abs=1e-3)
    assert loss.numbers(2, lambda sums: sums) == {}
    learn((1, 0.0))
    learn((1, 0.0))
    assert "rank_ordered" not in loss.numbers(2, lambda sums: sums), "no two scores of a reader"
    plain = RowLoss(rank_weight=0.0, ordinal_smoothing=0.5)
    plain(SimpleNamespace(logits=torch.zeros(1, 1, 8)), collate([filler()])["labels"], 7)
    assert plain.numbers(1, lambda sums: 2 * sums) == {"answer_loss": 0.0}


def test_the_targets_of_soft_labels_are_those_of_four_answers_and_end_with_the_scale() -> None:
    tree = LabelTree(tuple((n,) for n in range(10)), tuple(map(float, range(1, 11))), tail=1)
    found = soft_targets(tree, [5, 0, 9], 0.5)
    assert found[0].tolist() == [0, 0, 0, 0, 0.25, 0.5, 0.25, 0, 0, 0]
    assert found[1].tolist()[:3] == [0.75, 0.25, 0.0] and found[2].tolist()[-3:] == [0.0, 0.25, 0.75]
    assert found.sum(1).tolist() == [1.0] * 3


def test_without_neighbours_the_loss_of_a_label_is_that_of_its_tokens(tokenizers: dict[str, Any]) -> None:
    """A smoothing near nothing: labels that no other goes on from are learned as they were."""
    _, _, branches = made(tokenizers["chatml"], "pointwise_score", 10, 7)
    model = tiny_llama(tokenizers["chatml"])
    set_attention(model, "tree")
    batch, labels, reading = batch_of(packed(branches), "tree")
    outputs = model(**batch)
    plain, soft = (
        RowLoss(rank_weight=0.0, ordinal_smoothing=smoothing)(outputs, labels, reading=reading).item()
        for smoothing in (0.0, 1e-7)
    )
    assert soft == pytest.approx(plain, rel=1e-5)


def test_an_extension_that_takes_all_leaves_a_finite_loss() -> None:
    tree = LabelTree(((1,), (1, 0)), (1.0, 10.0), tail=1)
    row = packed([Branch("a", ((5,),), (1, 4), 0, 0, 0, TrueLabel(tree, 0, 0))])
    logits = torch.tensor([[0.0, 90.0, 0, 0, 0], [90.0, 0, 0, 0, 0], [0.0] * 5])[: len(row.sources)].requires_grad_()
    told = log_labels(logits, row.reading)  # type: ignore[arg-type]
    assert torch.isfinite(told).all() and told[0, 0] < -15
    told.sum().backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None and torch.isfinite(logits.grad).all()


def test_an_empty_row_costs_nothing_and_has_a_gradient() -> None:
    batch = collate([filler()])
    logits = torch.randn(1, 1, 8, requires_grad=True)
    loss = RowLoss(rank_weight=1.0, ordinal_smoothing=0.5)(SimpleNamespace(logits=logits), batch["labels"], 7)
    assert float(loss.detach()) == 0.0 and "reading" not in batch
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None and not logits.grad.any()


# Rows


def test_where_every_label_is_one_token_rows_are_what_they_are_without(tokenizers: dict[str, Any]) -> None:
    renderer, _, branches = made(tokenizers["whole_numbers"], "pointwise", 1, 10, 7)
    plain = training_branches(renderer, QUESTIONS["pointwise"], scored(1, 10, 7), answer_tokens=64).fitting
    one, other = packed(branches), packed(plain)
    assert (one.ids, one.tree, one.sources, one.targets) == (other.ids, other.tree, other.sources, other.targets)
    assert one.reading is not None and other.reading is None and "reading" not in collate([other])


# What is refused


@pytest.mark.parametrize("setting", ["rank_weight", "ordinal_smoothing"])
def test_labels_without_an_order_are_refused(tokenizers: dict[str, Any], setting: str) -> None:
    with pytest.raises(
        BadInput, match=rf"train.{setting}=0.5 orders scores, and the labels A, B of the question pairwise have no order"
    ):
        label_tree(Renderer(tokenizers["chatml"], 2048), QUESTIONS["pairwise"], asked_by=f"train.{setting}=0.5")


def test_prompts_that_are_used_as_they_are_are_refused(tokenizers: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"prompts that are used as they are \(verbatim_pointwise\) share none"):
        label_tree(Renderer(tokenizers["chatml"], 2048), QUESTIONS["verbatim_pointwise"], asked_by="train.rank_weight=1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("train.rank_weight=-1", "train.rank_weight"),
        ("train.rank_weight=.inf", "train.rank_weight"),
        ("train.ordinal_smoothing=-0.1", "train.ordinal_smoothing"),
        ("train.ordinal_smoothing=1", "train.ordinal_smoothing"),
    ],
)
def test_other_values_are_refused_by_name(given: str, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        load_config("embedded_lora", ["data.path=x", given])


def test_an_order_in_rows_of_one_text_is_refused() -> None:
    with pytest.raises(BadInput, match="rank_weight is 1, which compares the texts of a row, and batch_size is 1"):
        load_config("embedded_lora", ["data.path=x", "train.rank_weight=1", "train.batch_size=1"])
    assert Train(learning_rate=1.0, ordinal_smoothing=0.5, batch_size=1).reads_labels == "train.ordinal_smoothing=0.5"
