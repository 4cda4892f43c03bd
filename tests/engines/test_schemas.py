"""JSON schemas on the embedded engine: what is written follows them, and nothing else about writing changes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch
from builders import KINDS, tiny_llama, whole_number_tokenizer
from hypothesis import given, settings
from hypothesis import strategies as st
from tolerances import logprob, probability

from perse.data.rewriting.anonymize import SCHEMA as NAMES
from perse.engines.base import Failure, Generation, Sampling
from perse.engines.grammar import Grammars
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput
from perse.rendering.prompt import LabelTokens
from perse.writing.writer import Writer, Written

BOUNDED: dict[str, dict[str, Any]] = {
    "enum": {"enum": ["Yes", "No", 10, None, "é \n"]},
    "long_strings": {"type": "string", "minLength": 2, "maxLength": 7},
    "pattern": {"type": "string", "pattern": "^P[0-9]{1,3}$"},
    "items": {"type": "array", "items": {"type": "boolean"}, "minItems": 1, "maxItems": 4},
    "range": {"type": "integer", "minimum": -12, "maximum": 105},
    "objects": {
        "type": "object",
        "properties": {
            "facts": {"type": "array", "items": {"$ref": "#/$defs/fact"}, "maxItems": 2},
            "why": {"type": "string", "maxLength": 5},
        },
        "required": ["facts", "why"],
        "additionalProperties": False,
        "$defs": {
            "fact": {
                "type": "object",
                "properties": {"id": {"type": "integer", "minimum": 1, "maximum": 9}, "covered": {"type": "boolean"}},
                "required": ["id"],
                "additionalProperties": False,
            }
        },
    },
    "one_of_two": {"anyOf": [{"type": "null"}, {"type": "array", "items": {"const": "a b"}, "minItems": 2, "maxItems": 2}]},
}
"""Schemas whose texts all end within 120 tokens, however they are cut."""


@pytest.fixture(scope="module")
def folders(tokenizers: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each tokenizer."""
    found = {}
    for kind, tokenizer in tokenizers.items():
        found[kind] = tmp_path_factory.mktemp(kind)
        tokenizer.save_pretrained(found[kind])
    return found


@pytest.fixture(scope="module")
def engines(tokenizers: dict[str, Any], folders: dict[str, Path]) -> dict[str, TransformersEngine]:
    """A tiny random model for each tokenizer; what it writes freely is noise."""
    return {kind: TransformersEngine(tiny_llama(tokenizers[kind]), tokenizer=folders[kind]) for kind in KINDS}


def ends(tokenizer: Any) -> frozenset[int]:
    return frozenset({tokenizer.eos_token_id})


def said(tokenizer: Any, generation: Generation | Failure) -> str:
    assert isinstance(generation, Generation)
    return str(tokenizer.decode(list(generation.ids), skip_special_tokens=True))


def follows(text: str, schema: dict[str, Any]) -> bool:
    try:
        return jsonschema.Draft202012Validator(schema).is_valid(json.loads(text)) and not re.search(
            r"\s", outside_strings(text)
        )
    except json.JSONDecodeError:
        return False


def outside_strings(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', "", text)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", BOUNDED)
def test_what_a_random_model_writes_follows_the_schema(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], kind: str, name: str
) -> None:
    tokenizer, schema = tokenizers[kind], BOUNDED[name]
    prompts = [tuple(tokenizer.encode(f"The plot is {n}:")) for n in range(4)]
    sampling = Sampling(temperature=1.0, max_new_tokens=120, stop_ids=ends(tokenizer), schema=schema)
    for generation in engines[kind].generate(prompts, sampling, seeds=range(4)):
        text = said(tokenizer, generation)
        jsonschema.validate(json.loads(text), schema)
        assert not re.search(r"\s", outside_strings(text))
        assert isinstance(generation, Generation) and generation.finish_reason == "stop"
        assert generation.ids[-1] in sampling.stop_ids
    for generation in engines[kind].generate(prompts, Sampling(1.0, 20, ends(tokenizer)), seeds=range(4)):
        with pytest.raises(json.JSONDecodeError):  # the same model left to itself
            json.loads(said(tokenizer, generation))


def schemas() -> st.SearchStrategy[dict[str, Any]]:
    """Small schemas of bounded texts, nested in each other."""
    span = st.tuples(st.integers(0, 3), st.integers(0, 3))
    leaves = st.one_of(
        st.lists(st.text(max_size=4), min_size=1, max_size=3, unique=True).map(lambda some: {"enum": some}),
        st.integers(-300, 300).map(lambda n: {"const": n}),
        st.sampled_from([{"type": "boolean"}, {"type": "null"}]),
        span.map(lambda ab: {"type": "string", "minLength": ab[0], "maxLength": sum(ab)}),
        st.tuples(st.integers(-50, 50), st.integers(0, 200)).map(
            lambda ab: {"type": "integer", "minimum": ab[0], "maximum": sum(ab)}
        ),
    )

    def grown(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        arrays = st.tuples(span, inner).map(
            lambda one: {"type": "array", "items": one[1], "minItems": one[0][0], "maxItems": sum(one[0])}
        )
        objects = st.dictionaries(st.sampled_from("abc"), inner, max_size=3).flatmap(
            lambda of: st.lists(st.booleans(), min_size=3, max_size=3).map(lambda needed: _object(of, needed))
        )
        return arrays | objects

    return st.recursive(leaves, grown, max_leaves=4)


def _object(properties: dict[str, Any], needed: list[bool]) -> dict[str, Any]:
    required = [name for name, wanted in zip(properties, needed, strict=False) if wanted]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


@pytest.mark.slow
@settings(max_examples=40)
@given(schema=schemas(), seed=st.integers(0, 10**6))
def test_any_schema_is_followed(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], schema: dict[str, Any], seed: int
) -> None:
    tokenizer = tokenizers["whole_numbers"]
    prompt = tuple(tokenizer.encode("the plot"))
    sampling = Sampling(1.0, 400, ends(tokenizer), schema)
    for generation in engines["whole_numbers"].generate([prompt, prompt], sampling, seeds=[seed, seed + 1]):
        jsonschema.validate(json.loads(said(tokenizer, generation)), schema)


@pytest.mark.slow
def test_greedy_writing_takes_the_likeliest_token_that_keeps_to_an_allowed_text(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]
) -> None:
    """The slow twin tries tokens in the order of the model's logits, and knows the allowed texts by heart."""
    tokenizer, engine = tokenizers["whole_numbers"], engines["whole_numbers"]
    answers = ["yes", "yesterday", "no", "Nope", 10, 101, 1]
    texts = [json.dumps(answer) for answer in answers]
    stop = tokenizer.eos_token_id
    prompts = [tuple(tokenizer.encode(f"the plot is {n}")) for n in range(6)]

    def fits(ids: list[int]) -> bool:
        if ids[-1] == stop:
            return tokenizer.decode(ids[:-1]) in texts
        text = tokenizer.decode(ids)
        return text != tokenizer.decode(ids[:-1]) and any(one.startswith(text) for one in texts)

    written = engine.generate(prompts, Sampling(0, 30, ends(tokenizer), {"enum": answers}), seeds=[0] * 6)
    for prompt, generation in zip(prompts, written, strict=True):
        ids: list[int] = []
        while not ids or ids[-1] != stop:
            logits = engine.model(torch.tensor([[*prompt, *ids]])).logits[0, -1]
            ids.append(next(token for token in logits.argsort(descending=True).tolist() if fits([*ids, token])))
        assert isinstance(generation, Generation) and list(generation.ids) == ids


@pytest.mark.slow
def test_a_text_that_follows_the_schema_by_itself_is_written_as_without_one(folders: dict[str, Path]) -> None:
    tokenizer = whole_number_tokenizer()
    model = tiny_llama(tokenizer)
    asked = tokenizer.encode("the plot is")
    targets = [f'{{"a":[{n},10],"b":"of 10"}}' for n in (1, 2, 3)]
    learned = torch.tensor([[*asked, *tokenizer.encode(target), tokenizer.eos_token_id] for target in targets])
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(60):  # until they are known by heart, but for some draws
        model(input_ids=learned, labels=learned).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    engine = TransformersEngine(model.eval(), tokenizer=folders["whole_numbers"])
    loose: dict[str, Any] = {"type": "object", "properties": {"a": {"maxItems": 2}, "b": {}}}
    strict: dict[str, Any] = {"type": "object", "properties": {"a": {"maxItems": 1}}, "required": ["a"]}

    def written(temperature: float, schema: dict[str, Any] | None) -> list[str]:
        sampling = Sampling(temperature, 40, ends(tokenizer), schema)
        return [said(tokenizer, one) for one in engine.generate([tuple(asked)] * 20, sampling, seeds=range(20))]

    assert written(0, None) == written(0, loose)
    assert written(0, None)[0] in targets
    assert all(len(json.loads(text)["a"]) <= 1 for text in written(0, strict))
    pairs = list(zip(written(1.3, None), written(1.3, loose), strict=True))
    kept = [guided for free, guided in pairs if follows(free, loose)]
    assert kept == [free for free, _ in pairs if follows(free, loose)]
    assert 3 < len(kept) < 20 and len(set(kept)) > 1
    assert all(follows(guided, loose) for _, guided in pairs)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_schema_leaves_no_choice_in_is_written_in_the_tokenizers_own_tokens(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], kind: str
) -> None:
    tokenizer = tokenizers[kind]
    schema = {"const": {"answer": "the plot is 10", "review": [True, None]}}
    text = json.dumps(schema["const"], separators=(",", ":"))
    [generation] = engines[kind].generate([(5,)], Sampling(1.0, 90, ends(tokenizer), schema), seeds=[0])
    assert isinstance(generation, Generation) and said(tokenizer, generation) == text
    own = tokenizer.encode("\n" + text, add_special_tokens=False)[
        -len(generation.ids) + 1 :
    ]  # after a line break, for SentencePiece
    assert list(generation.ids[1:-1]) == own[1:]


@pytest.mark.slow
def test_a_text_under_a_schema_depends_on_seed_and_prompt_not_on_neighbours(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], folders: dict[str, Path]
) -> None:
    tokenizer = tokenizers["chatml"]
    schema = {"type": "array", "items": {"type": "string", "maxLength": 6}, "maxItems": 5}
    sampling = Sampling(0.8, 60, ends(tokenizer), schema)
    prompts = [tuple(tokenizer.encode("The plot is " + "long " * n)) for n in range(9)]
    whole = engines["chatml"].generate(prompts, sampling, seeds=range(9))
    few = TransformersEngine(engines["chatml"].model, tokenizer=folders["chatml"], max_rows=4)
    alone = [few.generate([prompt], sampling, seeds=[seed])[0] for seed, prompt in enumerate(prompts)]

    def texts(found: list[Any]) -> list[tuple[int, ...]]:
        return [one.ids for one in found]

    assert texts(whole) == texts(alone) == texts(few.generate(prompts, sampling, seeds=range(9)))
    assert len({len(ids) for ids in texts(whole)}) > 3  # rows end at different times
    assert texts(whole) != texts(few.generate(prompts, sampling, seeds=range(10, 19)))


@pytest.mark.numeric
def test_the_mean_logprob_is_the_models_own(tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]) -> None:
    tokenizer, engine = tokenizers["whole_numbers"], engines["whole_numbers"]
    prompt = tuple(tokenizer.encode("the plot is"))
    [generation] = engine.generate([prompt], Sampling(0.8, 40, ends(tokenizer), BOUNDED["objects"]), seeds=[1])
    assert isinstance(generation, Generation)
    logits = engine.model(torch.tensor([prompt + generation.ids])).logits[0, len(prompt) - 1 : -1]
    own = logits.detach().log_softmax(-1)[range(len(generation.ids)), list(generation.ids)]
    assert generation.mean_logprob == pytest.approx(float(own.mean()), abs=logprob(engine.model, 100))
    assert generation.mean_logprob < -3  # under the mask it would be near 0


@pytest.mark.numeric
def test_labels_are_read_without_a_grammar(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], folders: dict[str, Path]
) -> None:
    tokenizer = tokenizers["whole_numbers"]
    prompt = tuple(tokenizer.encode("the plot is"))
    support = LabelTokens((), ((100,), (101, 102)))
    engine = TransformersEngine(engines["whole_numbers"].model, tokenizer=folders["whole_numbers"])
    engine.generate([prompt], Sampling(0, 20, ends(tokenizer), BOUNDED["enum"]), seeds=[0])
    plain = TransformersEngine(engine.model)
    assert engine.label_distributions([prompt], support)[0].mass == pytest.approx(  # type: ignore[union-attr]
        plain.label_distributions([prompt], support)[0].mass,  # type: ignore[union-attr]
        rel=2 * probability(engine.model, len(prompt)),  # a label of two tokens; the two engines batch it differently
    )


@pytest.mark.slow
def test_ids_that_no_token_has_are_never_written(folders: dict[str, Path]) -> None:
    tokenizer = whole_number_tokenizer()
    model = tiny_llama(tokenizer)
    known = len(tokenizer)
    model.resize_token_embeddings(known + 100, mean_resizing=False)
    with torch.no_grad():
        model.lm_head.weight[known:] *= 1000
    prompts = [tuple(tokenizer.encode(f"the plot is {n}")) for n in range(4)]
    engine = TransformersEngine(model, tokenizer=folders["whole_numbers"])
    free = engine.generate(prompts, Sampling(0, 20, ends(tokenizer)), seeds=[0] * 4)
    assert all(max(one.ids) >= known for one in free if isinstance(one, Generation))
    for one in engine.generate(prompts, Sampling(0, 120, ends(tokenizer), BOUNDED["long_strings"]), seeds=[0] * 4):
        jsonschema.validate(json.loads(said(tokenizer, one)), BOUNDED["long_strings"])


def test_a_stop_id_ends_only_a_whole_text(tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]) -> None:
    """Even one that is an ordinary token of the text: 12 begins with it, so only the others can be written."""
    tokenizer = tokenizers["whole_numbers"]
    [one] = tokenizer.encode("1")
    prompts = [tuple(tokenizer.encode(f"the plot is {n}")) for n in range(8)]
    sampling = Sampling(1.0, 20, frozenset({one}), {"enum": [12, 2, 23, 24]})
    found = engines["whole_numbers"].generate(prompts, sampling, seeds=range(8))
    assert {said(tokenizer, generation) for generation in found} <= {"21", "231", "241"}  # the stop id is part of the result
    assert all(isinstance(generation, Generation) and generation.finish_reason == "stop" for generation in found)


def test_properties_come_in_the_order_of_the_schema(tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]) -> None:
    tokenizer = tokenizers["whole_numbers"]
    prompt = tuple(tokenizer.encode("the plot"))
    for names in (["why", "label"], ["label", "why"]):
        schema = {"type": "object", "properties": {name: {"type": "boolean"} for name in names}, "required": sorted(names)}
        schema["additionalProperties"] = False
        [generation] = engines["whole_numbers"].generate([prompt], Sampling(0, 40, ends(tokenizer), schema), seeds=[0])
        assert list(json.loads(said(tokenizer, generation))) == names


def test_a_text_cut_by_its_length_says_so(tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]) -> None:
    tokenizer = tokenizers["whole_numbers"]
    prompt = tuple(tokenizer.encode("the plot"))
    sampling = Sampling(0, 7, ends(tokenizer), {"type": "string", "minLength": 50})
    [generation] = engines["whole_numbers"].generate([prompt], sampling, seeds=[0])
    assert isinstance(generation, Generation) and generation.finish_reason == "length" and len(generation.ids) == 7


@pytest.mark.slow
def test_the_names_of_a_text_are_an_object_of_strings(tiny_model_folder: Path) -> None:
    """The schema that names are asked for with, through a writer; a random model rarely ends, so its strings are looked at."""
    one = Writer.load(tiny_model_folder, dtype="float32", context=1000)
    wanted = Sampling(1.0, 150, schema=NAMES)
    assert one.sampling(wanted).schema == NAMES
    answers = [answer for _, answer in one.write(["Anna."] * 12, wanted, seeds=range(12))]
    assert all(isinstance(answer, Written) for answer in answers)
    whole = [json.loads(answer.text) for answer in answers if isinstance(answer, Written) and answer.finish_reason == "stop"]
    assert whole and all(jsonschema.validate(names, NAMES) is None for names in whole)
    for answer in answers:
        assert isinstance(answer, Written)
        assert re.fullmatch(r'\{[:,}]*("[^"]*)?', outside_strings(answer.text), re.DOTALL)


REFUSED = {
    "type": ({"type": "nope"}, "Invalid type: nope"),
    "regex": ({"type": "string", "pattern": "("}, r"regex parse error: \( \^ error: unclosed group"),
    "keyword": ({"type": "array", "uniqueItems": True}, r'Unimplemented keys: \["uniqueItems"\]'),
    "reference": ({"$ref": "#/x"}, "Pointer '/x' does not exist"),
    "nothing": ({"enum": []}, "Unsatisfiable schema"),
    "itself": ({"$ref": "#"}, "a part of it refers to itself"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFUSED)
def test_a_schema_that_cannot_be_followed_is_refused_with_its_problem(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], name: str
) -> None:
    schema, problem = REFUSED[name]
    sampling = Sampling(0, 9, ends(tokenizers["chatml"]), schema)
    with pytest.raises(BadInput, match=f"^the embedded engine cannot follow this JSON schema: {problem}.*; correct") as error:
        engines["chatml"].generate([(5,)], sampling, seeds=[0])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", ["minItems", "maxItems", "minProperties"])
def test_a_schema_of_too_many_items_is_refused_before_memory_is_taken_for_them(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine], name: str
) -> None:
    schema = {"type": "object", "properties": {"a": {"anyOf": [{"type": "array", "items": {"type": "string"}, name: 10**9}]}}}
    with pytest.raises(BadInput, match=f"has {name} 1e\\+09; the embedded engine takes at most 10,000"):
        engines["chatml"].generate([(5,)], Sampling(0, 9, ends(tokenizers["chatml"]), schema), seeds=[0])


@pytest.mark.slow
def test_a_schema_that_would_take_all_memory_or_time_is_refused(
    tokenizers: dict[str, Any], engines: dict[str, TransformersEngine]
) -> None:
    many = {"allOf": [{"type": "string", "pattern": f".*a{n}.{{100}}b"} for n in range(30)]}
    for schema in (many, {"const": "x" * 3_000_000}):
        with pytest.raises(BadInput, match="it takes more than 2 s or 512 MB; ask for less|too big|too many expressions"):
            engines["chatml"].generate([(5,)], Sampling(0, 9, ends(tokenizers["chatml"]), schema), seeds=[0])


def test_a_schema_without_stop_ids_is_refused(engines: dict[str, TransformersEngine]) -> None:
    with pytest.raises(BadInput, match="needs Sampling.stop_ids"):
        engines["chatml"].generate([(5,)], Sampling(0, 9, schema={"type": "null"}), seeds=[0])


def test_an_engine_without_a_tokenizer_says_that_it_follows_no_schema(
    engines: dict[str, TransformersEngine], tiny_model_folder: Path
) -> None:
    plain = TransformersEngine(engines["whole_numbers"].model)
    assert not plain.capabilities.json_schema
    assert TransformersEngine.load(tiny_model_folder).capabilities.json_schema
    with pytest.raises(BadInput, match="made without a tokenizer, .* by TransformersEngine.load"):
        plain.generate([(5,)], Sampling(0, 9, frozenset({1}), {"type": "null"}), seeds=[0])


def test_a_tokenizer_that_is_not_fast_is_refused() -> None:
    from transformers import ByT5Tokenizer

    with pytest.raises(BadInput, match="with a ByT5Tokenizer .*fast tokenizer"):
        Grammars(ByT5Tokenizer())


def test_a_text_that_no_token_carries_on_fails_alone(tmp_path: Path) -> None:
    """The vocabulary has no é: whoever begins with 'a' is at a dead end, whoever begins with 'b' is not."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(vocab={char: n for n, char in enumerate([*'"abcdef', "</s>"])}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="</s>")
    fast.save_pretrained(tmp_path)
    engine = TransformersEngine(tiny_llama(fast), tokenizer=tmp_path)
    prompts = [(1, 2, n) for n in range(1, 7)]
    found = engine.generate(prompts, Sampling(1.0, 9, ends(fast), {"enum": ["aé", "b"]}), seeds=range(6))
    kinds = {type(one) for one in found}
    assert kinds == {Failure, Generation}
    for one in found:
        if isinstance(one, Failure):
            assert one.reason.startswith("the text cannot go on as the JSON schema says: ") and "\n" not in one.reason
        else:
            assert said(fast, one) == '"b"'


def test_without_llguidance_only_schemas_are_refused(
    engines: dict[str, TransformersEngine], folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from perse.installing import extra_for

    monkeypatch.setitem(sys.modules, "llguidance", None)
    monkeypatch.delitem(sys.modules, "perse.engines.grammar")
    engine = TransformersEngine(engines["whole_numbers"].model, tokenizer=folders["whole_numbers"])
    assert engine.generate([(5,)], Sampling(0, 3), seeds=[0])
    with pytest.raises(ModuleNotFoundError) as error:
        engine.generate([(5,)], Sampling(0, 3, frozenset({1}), {"type": "null"}), seeds=[0])
    assert extra_for(str(error.value.name)) == "serve"  # the command line then says what to install


@pytest.mark.integration
def test_the_embedded_model_writes_objects(embedded: Path) -> None:
    one = Writer.load(embedded)
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 30}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    messages = [f"Who is {name}, and how old? Answer with a JSON object." for name in ("Anna", "Tom", "Grandfather")]
    for _, answer in one.write(messages, Sampling(0.8, 60, schema=schema), seeds=range(3)):
        assert isinstance(answer, Written) and answer.finish_reason == "stop"
        jsonschema.validate(json.loads(answer.text), schema)
