"""Exact label probabilities: equal to brute-force enumeration, whatever the tokenizer and however prefixes are shared."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from builders import KINDS, pairwise_examples, pointwise_examples, tiny_llama
from hypothesis import given
from hypothesis import strategies as st
from tolerances import logprob, probability

from perse.engines.base import Sampling
from perse.engines.labels import distribution, label_probabilities, reads
from perse.engines.prefix_cache import PrefixCache
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.questions import QUESTIONS
from perse.rendering.prompt import LabelTokens, Renderer
from perse.scale import SCORES

pytestmark = pytest.mark.numeric


def next_probabilities(model: Any, ids: tuple[int, ...]) -> torch.Tensor:
    """One plain forward pass: no cache, no padding, no batch."""
    with torch.inference_mode():
        return torch.softmax(model(input_ids=torch.tensor([ids])).logits[0, -1].double(), dim=-1)


def enumerated(model: Any, prefix: tuple[int, ...], support: LabelTokens) -> list[float]:
    """P(label) by going through every next token: those that would make it a longer label do not count."""
    found = []
    for label in support.labels:
        path, probability = prefix + support.stem, 1.0
        for token in label:
            probability *= float(next_probabilities(model, path)[token])
            path = (*path, token)
        longer = {other[len(label)] for other in support.labels if len(other) > len(label) and other[: len(label)] == label}
        after = next_probabilities(model, path)
        ends = sum(float(p) for token, p in enumerate(after.tolist()) if token not in longer)
        found.append(probability * ends)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["pointwise_score", "pairwise"])
def test_probabilities_equal_brute_force_enumeration(tokenizers: dict[str, Any], kind: str, name: str) -> None:
    tokenizer, question = tokenizers[kind], QUESTIONS[name]
    model = tiny_llama(tokenizer, seed=3)
    renderer = Renderer(tokenizer, 2048)
    example = (pairwise_examples() if name == "pairwise" else pointwise_examples())[1]
    prompt, support = renderer.render(question, example)[0].ids, renderer.label_tokens(question)
    [read] = TransformersEngine(model).label_distributions([prompt], support)
    expected = enumerated(model, prompt, support)
    allowed = 2 * probability(model, len(prompt))  # of a label of two tokens
    assert read.mass == pytest.approx(sum(expected), rel=allowed)
    assert read.probabilities == pytest.approx([p / sum(expected) for p in expected], rel=allowed)


def test_ten_is_not_one(tokenizers: dict[str, Any]) -> None:
    """A model that always writes "10" gives 10 all and 1 nothing, for split digits and for whole numbers."""

    class Always:
        """Next-token logits that follow one path."""

        def __init__(self, path: tuple[int, ...], size: int) -> None:
            self.path, self.size = path, size

        def logprob(self, written: tuple[int, ...], token: int) -> float:
            return 0.0 if self.path[: len(written)] == written and self.path[len(written)] == token else float("-inf")

    for kind in KINDS:
        renderer = Renderer(tokenizers[kind], 2048)
        support = renderer.label_tokens(QUESTIONS["pointwise_score"])
        ten = support.labels[SCORES.labels.index("10")]
        model = Always((*ten, -1), 0)
        whole = [
            float(torch.tensor([model.logprob(label[:n], token) for n, token in enumerate(label)]).sum().exp())
            for label in support.labels
        ]
        read = label_probabilities(whole, support)
        assert read.probabilities == (0.0,) * 9 + (1.0,)


def test_split_and_whole_number_tokenizers_have_the_supports_we_think(tokenizers: dict[str, Any]) -> None:
    split = Renderer(tokenizers["chatml"], 2048).label_tokens(QUESTIONS["pointwise"])
    whole = Renderer(tokenizers["whole_numbers"], 2048).label_tokens(QUESTIONS["pointwise"])
    assert [len(label) for label in split.labels] == [1] * 9 + [2]
    assert split.labels[9][0] == split.labels[0][0]
    assert [len(label) for label in whole.labels] == [1] * 10


@given(st.lists(st.floats(0.001, 1), min_size=4, max_size=4))
def test_a_label_two_extensions_away_is_taken_off_once(parts: list[float]) -> None:
    """Labels 1, 10, 100, 2 as digits. With a = P(ends at 1), b at 10, c at 100: P(1..) = a + b + c, P(10..) = b + c, P(100) = c."""
    a, b, c, d = (part / sum(parts) for part in parts)
    support = LabelTokens((), ((1,), (1, 0), (1, 0, 0), (2,)))
    read = label_probabilities([a + b + c, b + c, c, d], support)
    assert read.probabilities == pytest.approx((a, b, c, d))


def test_no_label_has_a_negative_probability() -> None:
    """What is read of "1" and of "10", which goes on from it, comes from two sums: rounding can make the longer one the larger."""
    support = LabelTokens((), ((1,), (1, 0), (2,)))
    read = label_probabilities([0.1, 0.1 + 1e-7, 0.3], support)
    assert read.probabilities == pytest.approx((0, 0.25, 0.75), abs=1e-6) and min(read.probabilities) >= 0
    assert read.mass == pytest.approx(0.4)


def test_no_mass_at_all_is_uniform_with_mass_zero() -> None:
    read = label_probabilities([0.0, 0.0], LabelTokens((), ((1,), (2,))))
    assert read.mass == 0 and read.probabilities == (0.5, 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_prefix_reuse_changes_no_distribution(tokenizers: dict[str, Any], kind: str) -> None:
    tokenizer = tokenizers[kind]
    model, renderer, question = tiny_llama(tokenizer), Renderer(tokenizer, 2048), QUESTIONS["pointwise_score"]
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(4, 5)]
    support = renderer.label_tokens(question)
    reused = TransformersEngine(model)
    fast = reused.label_distributions(prompts, support)
    again = reused.label_distributions(prompts[::-1], support)[::-1]
    slow = TransformersEngine(model, cache_bytes=0).label_distributions(prompts, support)
    allowed = 2 * probability(model, max(map(len, prompts)))  # of a label of two tokens
    for one, two, three in zip(fast, again, slow, strict=True):
        assert one.probabilities == pytest.approx(three.probabilities, rel=allowed)
        assert two.probabilities == pytest.approx(three.probabilities, rel=allowed)
        assert one.mass == pytest.approx(three.mass, rel=allowed)
    assert sum(read.cached for read in fast) > 0.5 * sum(map(len, prompts))
    assert all(read.cached == 0 for read in slow)


def test_the_prefix_cache_keeps_to_its_budget_and_forgets_the_least_recently_used(tokenizers: dict[str, Any]) -> None:
    model = tiny_llama(tokenizers["whole_numbers"])

    def computed(ids: tuple[int, ...]) -> Any:
        return model(input_ids=torch.tensor([ids]), use_cache=True).past_key_values

    bytes_each = 2 * 2 * 2 * 8 * 4 * 50  # layers, keys and values, heads, width, float32, tokens
    cache = PrefixCache(3 * bytes_each)
    paths = [(n, *range(100, 149)) for n in range(4)]
    for path in paths[:3]:
        cache.keep(path, computed(path))
    assert cache.longest((*paths[0], 7))[1] == 50  # now the most recently used
    cache.keep(paths[3], computed(paths[3]))
    assert [cache.longest((*path, 7))[1] for path in paths] == [50, 0, 50, 50]
    assert cache.longest(paths[0])[1] == 49  # one token is left to predict from


@pytest.mark.slow
def test_generated_text_depends_on_seed_and_prompt_not_on_neighbours(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    model, renderer, question = tiny_llama(tokenizer), Renderer(tokenizer, 2048), QUESTIONS["pointwise"]
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(2, 3)]
    sampling = Sampling(temperature=0.8, max_new_tokens=12, stop_ids=renderer.newline_ids | renderer.end_ids)
    together = TransformersEngine(model).generate(prompts, sampling, seeds=range(6))
    alone = [TransformersEngine(model).generate([prompt], sampling, seeds=[seed])[0] for seed, prompt in enumerate(prompts)]
    assert [g.ids for g in together] == [g.ids for g in alone]
    other = TransformersEngine(model).generate(prompts, sampling, seeds=range(10, 16))
    assert [g.ids for g in together] != [g.ids for g in other]


def test_greedy_generation_equals_hugging_faces(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    model, renderer, question = tiny_llama(tokenizer), Renderer(tokenizer, 2048), QUESTIONS["pointwise"]
    prompts = [renderer.render(question, example)[0].ids for example in pointwise_examples(2, 2)]
    ours = TransformersEngine(model).generate(prompts, Sampling(0, 10), seeds=[0] * 4)
    for prompt, generation in zip(prompts, ours, strict=True):
        ids = torch.tensor([prompt])
        theirs = model.generate(
            input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=10, do_sample=False, eos_token_id=None
        )
        assert list(generation.ids) == theirs[0, len(prompt) :].tolist()
        assert generation.finish_reason == "length"


def test_mean_logprob_is_that_of_the_written_tokens(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["whole_numbers"]
    model = tiny_llama(tokenizer)
    prompt = tuple(tokenizer.encode("the plot is"))
    [generation] = TransformersEngine(model).generate([prompt], Sampling(0.8, 6), seeds=[1])
    logprobs = [
        float(next_probabilities(model, prompt + generation.ids[:n]).log()[token]) for n, token in enumerate(generation.ids)
    ]
    assert generation.mean_logprob == pytest.approx(sum(logprobs) / len(logprobs), abs=logprob(model, len(prompt) + 6))


LABELS = st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple), min_size=2, max_size=8, unique=True)


@given(LABELS, st.integers(0, 10_000))
def test_reading_by_requests_equals_summing_whole_paths(labels: list[tuple[int, ...]], seed: int) -> None:
    """The slow twin multiplies along every label; requests read each inner node once, two of them where one can be forced."""
    support = LabelTokens((), tuple(labels))

    def after(node: tuple[int, ...]) -> list[float]:
        drawn = random.Random(f"{seed}:{node}")
        weights = [drawn.random() + 0.01 for _ in range(5)]
        return [w / sum(weights) for w in weights]

    plan = reads(support)
    nodes = [node for read in plan for node in read.nodes]
    assert len(nodes) == len(set(nodes)) == len({label[:n] for label in labels for n in range(len(label))})
    told = {node: {token: math.log(after(node)[token]) for token in read.tokens} for read in plan for node in read.nodes}
    whole = [math.prod(after(label[:n])[token] for n, token in enumerate(label)) for label in labels]
    slow = label_probabilities(whole, support)
    fast = distribution(support, told, cached=0)
    assert fast.mass == pytest.approx(slow.mass) and fast.probabilities == pytest.approx(slow.probabilities)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["pointwise", "pointwise_score", "pairwise"])
def test_our_questions_take_one_request_of_at_most_two_steps(tokenizers: dict[str, Any], kind: str, name: str) -> None:
    support = Renderer(tokenizers[kind], 2048).label_tokens(QUESTIONS[name])
    [read] = reads(support)
    split = any(len(label) > 1 for label in support.labels)
    assert (read.force == support.labels[0][0]) if split else (read.force is None)


def test_more_labels_than_vllm_tells_are_refused() -> None:
    with pytest.raises(BadInput, match="129 different tokens begin the labels; vLLM tells at most 128"):
        reads(LabelTokens((), tuple((n,) for n in range(129))))
