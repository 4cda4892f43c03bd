"""Verbatim prompts: used as they are, answered in JSON, judged and learned by the commands that take any examples."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from builders import KINDS, joining_tokenizer, tiny_llama
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from perse import Judge
from perse.batch.comparing import judges_and_folds
from perse.batch.local import score
from perse.data.examples_file import read_examples
from perse.data.load import load_examples
from perse.engines.base import Capabilities, Generation, LabelDistribution, Reply, Sampling
from perse.engines.transformers import TransformersEngine
from perse.errors import BadInput, TooLong
from perse.evaluation.evaluate import evaluate_many
from perse.judgement import Status, Tokens
from perse.judging.judge import JudgeSettings
from perse.questions import QUESTIONS, question_for
from perse.records import ChoiceReference, PointwiseExample, ReviewReference, VerbatimExample, example_lines, parse_example
from perse.rendering.prompt import LabelTokens, Renderer, TextRenderer
from perse.settings.training import load_config
from perse.training.rows.branches import training_branches
from perse.training.trainer import train

POINTWISE, PAIRWISE = QUESTIONS["verbatim_pointwise"], QUESTIONS["verbatim_pairwise"]
GREEDY = JudgeSettings(temperature=0, max_new_tokens=12)
PROMPT = 'Two reviews of one reader.\n\n[Plot]\nA ferry sinks.\n\nAnswer with\n{\n  "Review": ...,\n  "Score": 1-10\n}\n[Review] In Json: '


def prompts(count: int = 4, *, reader: str | None = "r1") -> list[VerbatimExample]:
    return [
        VerbatimExample(
            id=f"v{n}",
            reviewer_id=reader,
            prompt=f"{n}. {PROMPT}",
            reference=ReviewReference(review=f'A "wet" film {n}.', score=1 + n % 10),
        )
        for n in range(count)
    ]


def choices(count: int = 4) -> list[VerbatimExample]:
    return [
        VerbatimExample(
            id=f"c{n}",
            reviewer_id=f"r{n % 2}",
            prompt=f'{n}. Plot A or Plot B? As {{"Choice": ...}}',
            reference=ChoiceReference(preference="AB"[n % 2]),
        )
        for n in range(count)
    ]


def write(path: Path, examples: Sequence[Any]) -> Path:
    path.write_text("".join(example_lines(examples)), "utf-8")
    return path


def test_a_line_with_a_prompt_is_a_verbatim_example(tmp_path: Path) -> None:
    line = {"id": "a", "prompt": " as it is\n", "reference": {"preference": "B"}}
    example = parse_example(line)
    assert example == VerbatimExample(id="a", prompt=" as it is\n", reference=ChoiceReference(preference="B"))
    assert [json.loads(text) for text in example_lines([example])] == [line]
    written = [*prompts(), VerbatimExample(id="without", prompt="x")]
    assert read_examples(write(tmp_path / "v.jsonl", written)) == written


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"prompt": "x"}, "line 1: verbatim example, field 'id': field required"),
        ({"id": "a", "prompt": ""}, "field 'prompt': found an empty text; give one that is not empty"),
        ({"id": "a", "prompt": "x", "profile": []}, "field 'profile': extra inputs are not permitted"),
        (
            {"id": "a", "prompt": "x", "reference": {"review": "r", "score": 11}},
            "field 'reference.review.score': input should be",
        ),
        ({"id": "a", "prompt": "x", "reference": {"preference": "C"}}, "field 'reference.choice.preference': input should be"),
        ({"id": "a", "prompt": "x", "reference": 7}, "field 'reference"),
    ],
)
def test_a_bad_line_is_named_by_field(tmp_path: Path, line: dict[str, Any], message: str) -> None:
    path = tmp_path / "v.jsonl"
    path.write_text(json.dumps(line), "utf-8")
    with pytest.raises(BadInput, match=message):
        read_examples(path)


def test_prompts_of_two_kinds_do_not_share_a_file(tmp_path: Path) -> None:
    for examples in ([*prompts(1), *choices(1)], [VerbatimExample(id="x", prompt="x"), *prompts(1), *choices(1)]):
        with pytest.raises(BadInput, match="verbatim pointwise and verbatim pairwise examples in one file"):
            read_examples(write(tmp_path / "v.jsonl", examples))
    told = PointwiseExample(id="p", reviewer_id="r", item_id="i", profile=(), query="q")
    with pytest.raises(BadInput, match="verbatim pointwise and pointwise examples in one file"):
        read_examples(write(tmp_path / "v.jsonl", [*prompts(1), told]))


@pytest.mark.parametrize("joined", ["0\n", "5\n", "0\n}"])
def test_a_tokenizer_that_joins_a_label_with_what_ends_it_cannot_be_read(joined: str) -> None:
    with pytest.raises(BadInput, match="joins a label with what ends the answer; such a tokenizer cannot be read exactly"):
        Renderer(joining_tokenizer(joined), 2048).label_tokens(POINTWISE)
    support = Renderer(joining_tokenizer("10"), 2048).label_tokens(POINTWISE)
    assert [len(label) for label in support.labels] == [1] * 10, "joined with each other they are a label like any other"


def test_the_question_is_told_by_a_reference_else_by_the_prompts() -> None:
    assert question_for(prompts()) is POINTWISE and question_for(choices()) is PAIRWISE
    unanswered = [example.model_copy(update={"reference": None}) for example in (*prompts(), *choices())]
    assert question_for(unanswered[:4]) is POINTWISE and question_for(unanswered[4:]) is PAIRWISE
    for untold in (unanswered, [VerbatimExample(id="x", prompt="Well?")]):
        with pytest.raises(BadInput, match="give the question: verbatim_pointwise or verbatim_pairwise"):
            question_for(untold)
    assert question_for([VerbatimExample(id="x", prompt="Well?")], "verbatim_pairwise") is PAIRWISE


def test_a_question_that_does_not_fit_the_prompts_is_refused() -> None:
    with pytest.raises(BadInput, match="'pointwise' does not fit: the examples are prompts"):
        question_for(prompts(), "pointwise")
    with pytest.raises(BadInput, match="'verbatim_pairwise' does not fit: example v0 has a reference of another kind"):
        question_for(prompts(), "verbatim_pairwise")


@pytest.mark.parametrize("example", [prompts(1)[0], choices(1)[0]], ids=["review", "choice"])
def test_prompt_and_answer_are_the_whole_encoded_in_one_segment(tokenizer: Any, example: VerbatimExample) -> None:
    renderer, question = Renderer(tokenizer, 4096), question_for([example])
    [rendered] = renderer.render(question, example)
    assert len(rendered.segments) == 1 and rendered.k_effective == 0
    answer = renderer.completion(question, example)
    frame = renderer.frame
    said = "".join(question.layout.completion(*question.answer(example)))
    whole = frame.head + example.prompt + frame.middle + frame.lead + said + frame.tail
    ids = rendered.ids + tuple(token for segment in answer for token in segment)
    assert list(ids) == tokenizer.encode(whole, add_special_tokens=False)


@pytest.mark.parametrize("question", [POINTWISE, PAIRWISE], ids=["review", "choice"])
def test_what_is_learned_of_a_label_is_what_is_read(tokenizer: Any, question: Any) -> None:
    renderer = Renderer(tokenizer, 4096)
    support = renderer.label_tokens(question)
    for n, label in enumerate(question.scale.labels):
        reference = (
            ReviewReference(review="x", score=int(label)) if question is POINTWISE else ChoiceReference(preference=label)
        )
        last = renderer.completion(question, VerbatimExample(id="a", prompt="x", reference=reference))[-1]
        assert last == support.stem + support.labels[n] + renderer.encode_tail(question.layout.closing)
    stem = renderer.decode(support.stem)
    assert stem.rstrip().endswith('"Score":' if question is POINTWISE else '"Choice": "Plot')


def test_the_review_that_is_written_ends_up_as_it_would_be_learned(tokenizer: Any) -> None:
    renderer = Renderer(tokenizer, 4096)
    [example] = prompts(1)
    learned = renderer.completion(POINTWISE, example)[0]
    assert renderer.free_line(POINTWISE, 'A "wet" film 0.') == learned
    assert learned[: len(renderer.text_prefix(POINTWISE))] == renderer.text_prefix(POINTWISE)


def test_special_tokens_in_a_prompt_are_let_through(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    judge = Judge(TransformersEngine(tiny_llama(tokenizer)), Renderer(tokenizer, 2048), name="tiny")
    example = VerbatimExample(id="a", prompt="<|im_end|>\n<|im_start|>user\n</s>[INST] \x00\u2028 x", reference=None)
    [judgement] = judge.ask(POINTWISE, [example], GREEDY)
    assert judgement.status in (Status.OK, Status.UNPARSED) and judgement.distribution is not None


def test_a_prompt_that_is_too_long_is_never_cut(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    judge = Judge(TransformersEngine(tiny_llama(tokenizer)), Renderer(tokenizer, 256), name="tiny")
    long = prompts(1)[0].model_copy(update={"id": "long", "prompt": "word " * 300})
    statuses = {one.id: one for one in judge.ask(POINTWISE, [*prompts(1), long], GREEDY)}
    assert statuses["v0"].status is not Status.TOO_LONG and statuses["long"].status is Status.TOO_LONG
    assert re.match(r"example long: \d+ tokens and 300 words; the budget is", statuses["long"].error or "")
    with pytest.raises(TooLong, match=r"example v0: \d+ words; the budget is 9 words"):
        TextRenderer(max_words=9).render(POINTWISE, prompts(1)[0])


class Writing:
    """An engine that writes what it is told to, and is sure of the third label."""

    capabilities = Capabilities(accepts_token_ids=True, exact_distribution=True)
    settings: dict[str, str] = {}  # noqa: RUF012 (the same for all)

    def __init__(self, tokenizer: Any, text: str) -> None:
        self.tokenizer, self.text = tokenizer, text
        self.read: list[str] = []

    def generate(self, prefixes: Sequence[Any], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation]:
        ids = tuple(self.tokenizer.encode(self.text, add_special_tokens=False))
        return [Generation(ids, "stop", -1.0, 0) for _ in prefixes]

    def label_distributions(self, prefixes: Sequence[Any], support: LabelTokens) -> list[LabelDistribution]:
        self.read = [self.tokenizer.decode(list(prefix + support.stem)) for prefix in prefixes]
        n = len(support.labels)
        return [LabelDistribution((0.0, 0.0, 1.0) + (0.0,) * (n - 3), 1.0, 0) for _ in prefixes]


@pytest.mark.parametrize(
    ("written", "review"),
    [
        (' "A wet film.",\n', "A wet film."),
        (' "A \\"wet\\" film.",\n', 'A "wet" film.'),
        (' "A "wet" film.",\n', 'A "wet" film.'),
        (' "A wet film.",  "Score": 7}```', "A wet film."),  # on one line, as the released answers are
        (" A wet film.\n", "A wet film."),
        (' "A wet fi', "A wet fi"),  # the limit was met
        ("", ""),
    ],
)
def test_the_score_is_read_behind_the_review_whatever_json_was_written(
    tokenizers: dict[str, Any], written: str, review: str
) -> None:
    tokenizer = tokenizers["chatml"]
    engine = Writing(tokenizer, written)
    [judgement] = Judge(engine, Renderer(tokenizer, 4096), name="m").ask(POINTWISE, prompts(1), GREEDY)  # type: ignore[arg-type]
    assert (judgement.status, judgement.text, judgement.label) == (Status.OK, review, "3")
    assert engine.read[0].rstrip().endswith(f'```json\n{{\n"Review": {json.dumps(review)},\n"Score":')


class Saying:
    """A chat engine that says one thing, and remembers what it was asked."""

    capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False)
    settings: dict[str, str] = {}  # noqa: RUF012 (the same for all)

    def __init__(self, text: str) -> None:
        self.text = text
        self.heard: list[str] = []
        self.limit = 0

    def chat(self, messages: Sequence[str], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply]:
        self.heard, self.limit = list(messages), sampling.max_new_tokens
        return [Reply(self.text, "stop", Tokens(prompt=0, cached=0, generated=0)) for _ in messages]


REVIEWS = {
    '```json\n{\n  "Review": "Fine, \\"really\\".",\n  "Score": 7\n}\n```': ("7", 'Fine, "really".'),
    '```json{  "Review": "Fine, "really".",  "Score": 10}```': ("10", 'Fine, "really".'),
    'Here it is:\n{"Review": "Fine.", "Score": "8/10",}\nAnything else?': ("8", "Fine."),
    '{"Score": 4, "Review": "Dull."}': ("4", ""),
    "[Review] Fine.\n[Score] 6": ("6", "Fine."),
    '{"Review": "Fine.", "Score": 7.5}': (None, ""),
    '{"Review": "Fine.", "Score": 7,5}': (None, ""),
    '{"Review": "Fine.", "Score": null}': (None, ""),
    '{"Review": "Fine."}': (None, ""),
    "": (None, ""),
}

SAID = {
    '```json\n{\n  "Choice": "Plot B",\n}\n```': "B",
    '{"Choice": "Plot A"}': "A",
    '{"choice": "b"}': "B",
    "Plot A": "A",
    '{"Choice": "Plot A"}\n{"Choice": "Plot B"}': None,
    '{"Choice": "Plot A or Plot B"}': None,
    '{"Choice": <"Plot A" or "Plot B">}': None,
    '{"Choice": "Neither"}': None,
}


@pytest.mark.parametrize(("answer", "read"), REVIEWS.items())
def test_a_chat_models_json_is_read_or_nothing_is(answer: str, read: tuple[str | None, str]) -> None:
    engine = Saying(answer)
    [judgement] = Judge(engine, TextRenderer(), name="m").ask(POINTWISE, prompts(1), GREEDY)  # type: ignore[arg-type]
    assert judgement.label == read[0] and (read[0] is None or judgement.text == read[1])
    assert judgement.status is (Status.OK if read[0] else Status.UNPARSED)
    assert engine.heard == [prompts(1)[0].prompt]


@pytest.mark.parametrize(("answer", "label"), SAID.items())
def test_a_chat_models_choice_in_json_is_read_or_nothing_is(answer: str, label: str | None) -> None:
    engine = Saying(answer)
    [judgement] = Judge(engine, TextRenderer(), name="m").ask(PAIRWISE, choices(1), GREEDY)  # type: ignore[arg-type]
    assert judgement.label == label and judgement.order_gap is None
    assert engine.limit >= 40, "JSON around a choice takes more room than the choice"


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(review=st.text(max_size=60), number=st.integers(1, 10))
def test_any_review_is_laid_out_and_read_back(tokenizers: dict[str, Any], kind: str, review: str, number: int) -> None:
    renderer = Renderer(tokenizers[kind], 4096)
    example = VerbatimExample(id="a", prompt="x", reference=ReviewReference(review=renderer.clean(review), score=number))
    answer = "".join(POINTWISE.layout.completion(*POINTWISE.answer(example)))
    assert json.loads(answer.removeprefix("```json").removesuffix("```"))["Score"] == number
    label, free = POINTWISE.layout.read(answer, POINTWISE.scale)
    assert label == str(number)
    assert free.strip(" :*]") == renderer.clean(review).strip(" :*]")
    written = answer.partition('"Review":')[2].partition("\n")[0]
    assert renderer.neutralise(POINTWISE.layout.free_text(written)) == renderer.clean(review)


def test_prompts_without_reviewer_are_judged_beside_others(tokenizers: dict[str, Any]) -> None:
    tokenizer = tokenizers["chatml"]
    judge = Judge(TransformersEngine(tiny_llama(tokenizer)), Renderer(tokenizer, 2048), name="tiny")
    nobody = [example.model_copy(update={"id": f"n-{example.id}"}) for example in prompts(2, reader=None)]
    examples = [*prompts(2), *nobody]
    assert [one.id for one in judge.ask(POINTWISE, examples, GREEDY)] == [example.id for example in examples]


@pytest.mark.parametrize("kind", ["pointwise", "pairwise"])
def test_a_run_on_prompts_is_resumed_and_evaluated(tiny_model_folder: Path, tmp_path: Path, kind: str) -> None:
    examples = prompts(12, reader=None) if kind == "pointwise" else choices(12)
    loaded = load_examples(write(tmp_path / "v.jsonl", examples), split="valid")
    judge, question = Judge.load(tiny_model_folder, dtype="float32"), question_for(loaded.examples)
    for _ in range(2):
        score(judge, question, loaded, tmp_path / "run", settings=GREEDY)
    assert len((tmp_path / "run" / "judgements.jsonl").read_text().splitlines()) == 12
    judges, parts, missing = judges_and_folds([tmp_path / "run"])
    result = evaluate_many(judges, parts, resamples=100)
    assert (result.kind, result.items, result.reviewers) == (kind, 12, 12 if kind == "pointwise" else 2)
    assert missing == ["the scored examples came from a file; name their data set with --train-data"]
    other = write(tmp_path / "t.jsonl", [one.model_copy(update={"id": f"t{one.id}"}) for one in examples])
    judges, parts, _ = judges_and_folds([tmp_path / "run"], other)
    with_training = evaluate_many(judges, parts, resamples=100)
    name = "user+item bias" if kind == "pointwise" else "majority"
    assert next(row for row in with_training.rows if row.name == name).unavailable is None


def test_answers_to_prompts_are_learned_in_json(tokenizer: Any) -> None:
    [review] = training_branches(Renderer(tokenizer, 2048), POINTWISE, prompts(1)).fitting
    [choice] = training_branches(Renderer(tokenizer, 2048), PAIRWISE, choices(1)).fitting
    texts = [tokenizer.decode(list(row.answer), skip_special_tokens=True).strip() for row in (review, choice)]
    assert texts == [
        '```json\n{\n"Review": "A \\"wet\\" film 0.",\n"Score": 1\n}\n```',
        '```json\n{\n"Choice": "Plot A",\n}\n```',
    ]
    assert (review.k, review.k_effective) == (0, 0)


@pytest.mark.slow
def test_training_on_prompts_ends_in_a_model(tiny_model_folder: Path, tmp_path: Path) -> None:
    data = write(tmp_path / "v.jsonl", prompts(4))
    given = [
        f"model.path={tiny_model_folder}", "model.dtype=float32", "model.context=2048", f"data.path={data}", "lora.rank=4",
        "train.steps=2", "train.batch_size=2", f"output={tmp_path / 'run'}",
    ]  # fmt: skip
    run = train(load_config("embedded_lora", given))
    assert (run / "merged" / "config.json").exists()
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["run"]["question"] == "verbatim_pointwise"
