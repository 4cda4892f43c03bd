"""Judge: examples in, judgements out, whatever the engine.

Examples are ordered by reviewer, so that the engine shares the work on profiles, and answered exactly, by an engine of token
ids, or in words, by a chat: all at once (`ask`), or each as it is ready (`stream`). Failures of an example become the status of its judgement
(DESIGN.md, promise 3).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, cast, overload

from perse.answering.arriving import arriving
from perse.answering.base import Answering, JudgeSettings
from perse.answering.chat import ChatAnswering
from perse.answering.exact import ExactAnswering
from perse.engines.base import ChatEngine, Engine, Failure
from perse.engines.kind import USUAL, Hardware, Identity, LoadOptions
from perse.errors import BadInput
from perse.formats.json_text import json_kind
from perse.judgement import Judgement
from perse.judging.judged import Judgements
from perse.judging.loading import load_judge, parse_judge
from perse.judging.one import Past, example_of, scale_of
from perse.judging.rows import Rows, Table
from perse.judging.tables import as_frame, is_pandas, read_tables
from perse.judging.telling import told
from perse.judging.trained import trained_question
from perse.questions import Question, question_for
from perse.questions.base import ListedQuestion
from perse.records import Asked, SeveralAsked
from perse.rendering.prompt import Renderer, TextRenderer
from perse.scale import OwnScale
from perse.secrets import redact
from perse.stacking.beside import refuse_damaged, stacking_of
from perse.stacking.file import Stacking, for_manifest

__all__ = ["Judge", "JudgeSettings"]

log = logging.getLogger(__name__)


class Judge:
    """One model that answers questions for particular readers."""

    def __init__(
        self,
        engine: Engine | ChatEngine,
        renderer: Renderer | TextRenderer,
        *,
        name: str,
        adapter: str | None = None,
        digest: str = "",
        in_words: str = "",
        stacking: Stacking | None = None,
        learned: str | None = None,
    ) -> None:
        self.engine = engine
        self.renderer = renderer
        self.identity = Identity(name, adapter, digest)
        self.in_words = in_words
        self.stacking = stacking
        self.learned = learned
        self._answering = _answering(engine, renderer, self.identity)

    @classmethod
    def load(
        cls,
        judge: str | Path,
        *,
        dtype: str = "bfloat16",
        context: int | None = None,
        tokenizer: str | None = None,
        trust_remote_code: bool = False,
        hardware: Hardware = USUAL,
        adapters: Sequence[Path] = (),
        stacking: Path | bool = True,
    ) -> Judge:
        """The judge named as on the command line: `PATH`, `vllm:PATH`, `openai:URL#MODEL`, or another of `perse.judging.loading.ENGINES`.

        PATH is a training run's folder, a model folder, an embedded model's name, or a hub name; `PATH+ADAPTER` adds a
        LoRA adapter's folder, or the training run that made it.

        Args:
            dtype: "bfloat16", "float16" or "float32" (exact comparisons); a server has its own.
            context: tokens to use, at most what the model was made for.
            tokenizer: of a served model, where its folder is not on this machine.
            trust_remote_code: run code that a model in this process, or `tokenizer`, brings; without it none is run, and a model that needs it is refused.
            hardware: what an engine in this process takes of the machine, or how much is asked of a server at once.
            adapters: folders of LoRA adapters for which vLLM makes room, besides the judge's own.
            stacking: the `stacking.json` that combines its answers with numbers (`perse.stacking`); True: the one beside the judge, where
                there is one; False: none.
        Raises:
            ModelNotFound: not available anywhere; the message lists what was tried.
            BadInput: a name of another form, a model that cannot be used, a server that cannot be asked, or the stacking of another judge.
        """
        folders = parse_judge(str(judge)).folders
        refuse_damaged(folders, stacking)
        loaded = load_judge(str(judge), LoadOptions(dtype, context, tokenizer, trust_remote_code, hardware, tuple(adapters)))
        who = loaded.identity
        return cls(
            loaded.engine,
            loaded.renderer,
            name=who.model,
            adapter=who.adapter,
            digest=who.digest,
            in_words=loaded.in_words,
            stacking=stacking_of(who.portable, folders, stacking),
            learned=trained_question(folders),
        )

    @property
    def own_question(self) -> str | None:
        """What it is asked where nobody names a question: what its stacking was fitted on, else what it was trained on, as far as that is known
        here; None: the usual question of the examples."""
        return self.stacking.question if self.stacking else self.learned

    @property
    def without_distributions(self) -> str:
        """That the judge is asked in words and why, in a sentence; empty for one that gives exact distributions."""
        if self.engine.capabilities.exact_distribution:
            return ""
        why = redact(self.in_words or "its engine gives none")  # a gateway's address may hold a key in its path
        if most := self.engine.settings.get("likeliest"):
            return f"asked in words: distributions from the {most} likeliest tokens alone (exact: false; null where labels are missing), because {why}"
        return f"asked in words: no distributions, because {why}"

    def ask(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings | None = None) -> Judgements:
        """A judgement for every example, in the order given.

        Raises:
            BadInput: two examples with one id, or what is no question or no example.
            EngineLost: the engine is gone for good.
        """
        _refuse_others(question, examples)
        if len({example.id for example in examples}) < len(examples):
            raise BadInput("two examples have the same id; give each its own")
        ordered, chunk = _by_reviewer(examples), self.engine.capabilities.batch
        by_id: dict[str, Judgement] = {}
        for start in range(0, len(ordered), chunk):
            part = ordered[start : start + chunk]
            some = self._answering.answer(question, part, settings or JudgeSettings())
            by_id |= {judgement.id: judgement for judgement in told(self.stacking, part, some)}
        return Judgements((by_id[example.id] for example in examples), examples)

    async def aask(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings | None = None) -> Judgements:
        """As `ask`, beside other work of an event loop. Several at once wait for each other where the engine computes here, and share the
        requests that may be under way where it is a server's. One that is cancelled is computed all the same, and its answer forgotten.

        Raises:
            BadInput, EngineLost: as `ask`.
        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self.ask, question, examples, settings)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        """For `aask`; they end with the judge."""
        return ThreadPoolExecutor(self.engine.capabilities.at_once or 1, thread_name_prefix="perse-judge")

    def stream(
        self, question: Question, examples: Iterable[Asked], settings: JudgeSettings | None = None
    ) -> Iterator[list[Judgement]]:
        """Judgements as they arrive, those together that arrive together; asked in the order of reviewers.

        Raises:
            BadInput: what is no question or no example.
            EngineLost: the engine is gone for good; what it failed at since it last answered has no judgement.
        """
        examples = _listed(examples)
        _refuse_others(question, examples)

        def answer(some: Sequence[Asked], note: Callable[[Failure], None]) -> list[list[Judgement]]:
            answers = self._answering.answer(question, some, settings or JudgeSettings(), note=note)
            return [told(self.stacking, some, answers)]

        written = question.layout.text_prefix is not None
        yield from arriving(answer, _by_reviewer(examples), self.engine.capabilities, written=written)

    def ask_listed(
        self, question: ListedQuestion, examples: Sequence[SeveralAsked], settings: JudgeSettings | None = None
    ) -> list[list[Judgement]]:
        """The judgements of all that each example asks about in one prompt; of number n, from 1, the id is `ID/n`.

        Raises:
            BadInput: what is no question or no example.
            EngineLost: the engine is gone for good.
        """
        _refuse_others(question, examples)
        listed = self._listed(question, examples, settings or JudgeSettings(), {}, lambda failure: None)
        by_id = {judgement.id: judgement for some in listed for judgement in some}
        return [[by_id[one.id] for one in example.each()] for example in examples]

    def stream_listed(
        self,
        question: ListedQuestion,
        examples: Sequence[SeveralAsked],
        settings: JudgeSettings | None = None,
        *,
        known: Mapping[str, Judgement],
    ) -> Iterator[list[Judgement]]:
        """The judgements of all that the examples ask about as they arrive.

        Args:
            known: existing judgements, by id. Their lines are shown and not asked about again by an engine that
                is asked line by line; one that writes the whole answer has it all asked for again where one line is missing.
        Raises:
            BadInput, EngineLost: as `stream`.
        """
        _refuse_others(question, examples)

        def answer(some: Sequence[SeveralAsked], note: Callable[[Failure], None]) -> Iterator[list[Judgement]]:
            return self._listed(question, some, settings or JudgeSettings(), known, note)

        yield from arriving(answer, examples, self.engine.capabilities, written=question.layout.text_prefix is not None)

    def _listed(
        self,
        question: ListedQuestion,
        examples: Sequence[SeveralAsked],
        settings: JudgeSettings,
        known: Mapping[str, Judgement],
        note: Callable[[Failure], None],
    ) -> Iterator[list[Judgement]]:
        from perse.answering.listed import Listed, listed_exactly, listed_in_words

        asked = Listed(question, examples, settings, known, note)
        if isinstance(self.renderer, TextRenderer):
            return listed_in_words(cast(ChatEngine, self.engine), self.renderer, self.identity, asked)
        return listed_exactly(cast(Engine, self.engine), self.renderer, self.identity, asked)

    def ask_one(
        self,
        *,
        reviews: Iterable[Past],
        text: str,
        question: str | None = None,
        settings: JudgeSettings | None = None,
        scale: OwnScale | None = None,
    ) -> Judgement:
        """What one reader, known by a few reviews (text, review, score 1-10), would say of `text`.

        Args:
            question: None: as in `score`.
            scale: lowest and highest score of the reader's own scale, which the scores are on then; the answer is told on it, too.
        Raises:
            BadInput: no text, an empty one, what is no review, or no scale; the message says which field. Also: no question, and the
                judge's own shows evidence.
        """
        example = example_of(reviews, text, scale=scale)
        return self.ask(question_for([example], question, own=self.own_question), [example], settings)[0]

    @overload
    def score(
        self,
        reviews: Rows,
        texts: Rows,
        *,
        candidates: Table | None = None,
        question: str | None = None,
        settings: JudgeSettings | None = None,
        scale: OwnScale | None = None,
        k: int | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Judgements: ...

    @overload
    def score(
        self,
        reviews: Table,
        texts: Table,
        *,
        candidates: Table | None = None,
        question: str | None = None,
        settings: JudgeSettings | None = None,
        scale: OwnScale | None = None,
        k: int | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Any: ...

    def score(
        self,
        reviews: Table,
        texts: Table,
        *,
        candidates: Table | None = None,
        question: str | None = None,
        settings: JudgeSettings | None = None,
        scale: OwnScale | None = None,
        k: int | None = None,
        columns: Mapping[str, str] | None = None,
    ) -> Any:
        """What each reader, known by past reviews, would say of each text that they have not reviewed.

        A table is a data frame (pandas, polars, pyarrow: whatever exports Arrow), or dicts, or tuples. Columns are found by their usual names, as
        `perse data` finds them.

        Args:
            reviews: (n reviews) `reviewer_id`, `review`, `score`, and the text reviewed: in a column `text`, or by `item_id` among `texts`; `time`
                if there is one. Tuples are (reviewer_id, text, review, score).
            texts: (m texts) `item_id`, `text`; without an id a text is known by its words. Tuples are (item_id, text); bare texts are taken, too.
            candidates: `reviewer_id`, `item_id` of what is asked, where that is not every reader about every text. Tuples are (reviewer_id, item_id).
            question: of single texts; None: the judge's own (`own_question`), else `pointwise`, which writes a review before each score.
                `pointwise_score` is many times as quick.
            scale: lowest and highest score of the reviews, where that is not 1 to 10; answers are told on it, too.
            k: latest reviews of each reader to show; None: as many as fit.
            columns: field -> column, where names do not tell: `{"review": "comment", "items.text": "blurb"}`.
        Returns:
            For pandas' data frames one, with a row for each judgement (`Judgements.rows`); else `Judgements`, a list. By reader and text in the
            order given, or in that of `candidates`; ids are READER/TEXT. A text that a reader's reviews have, word for word or nearly so, is left out.
        Raises:
            BadInput: what is no table, a field without a column, what is wrong with a row; nothing to ask. The message says where. Also: no
                question, and the judge's own shows evidence.
            EngineLost: the engine is gone for good.
        """
        own = None if scale is None else scale_of(scale)
        read = read_tables(reviews, texts, candidates, columns=columns or {}, scale=own, k=k)
        if candidates is not None and read.asked.left_out:
            count = read.asked.left_out
            log.warning(
                "the reader's own reviews have the text: %d of the candidates %s left out", count, "is" if count == 1 else "are"
            )
        examples = read.asked.examples
        found = self.ask(question_for(examples, question, own=self.own_question), examples, settings)
        return as_frame(found.rows(), numbered=read.numbered) if any(map(is_pandas, (reviews, texts))) else found

    def check(self, question: Question, example: Asked, settings: JudgeSettings) -> None:
        """Raises:
        TooLong: the example does not fit, with the numbers.
        """
        self._answering.render(question, example, settings)

    @property
    def for_manifest(self) -> dict[str, Any]:
        """What its answers depend on besides what is asked; a folder by its name alone, as the weights have a digest."""
        return {
            **asdict(self.identity.portable),
            **self.engine.settings,
            "context": self.renderer.context,
            **for_manifest(self.stacking),
        }

    def prompt_digest(self, question: Question, examples: Sequence[Asked], settings: JudgeSettings) -> str:
        """A digest of everything that the prompts of these examples depend on: wording, template, tokenizer, budget."""
        return self._answering.prompt_digest(question, examples, settings)


def _listed(examples: Iterable[Asked]) -> Sequence[Asked]:
    """All of them, of any iterable; what is none is left to `_refuse_others`."""
    if isinstance(examples, Sequence) or not isinstance(examples, Iterable):
        return examples
    return list(examples)


def _refuse_others(question: object, examples: object) -> None:
    """
    Raises:
        BadInput: these are no question and examples.
    """
    if not hasattr(question, "example_type"):
        raise BadInput(
            f"the question is {json_kind(question)}, expected one of perse.questions, such as QUESTIONS['pointwise']"
        )
    if not isinstance(examples, Sequence) or isinstance(examples, str | bytes):
        raise BadInput(f"the examples are {json_kind(examples)}, expected a list of examples")
    if others := [one for one in examples if not hasattr(one, "shortened")]:
        raise BadInput(
            f"one of the examples is {json_kind(others[0])}; perse.records.parse_example makes an example of an object's fields"
        )


def _by_reviewer(examples: Iterable[Asked]) -> list[Asked]:
    return sorted(examples, key=lambda example: example.reviewer_id or "")


def _answering(engine: Engine | ChatEngine, renderer: Renderer | TextRenderer, identity: Identity) -> Answering:
    shown = identity.portable  # so that the judgements of a run name one judge, however its path was written
    if isinstance(renderer, TextRenderer):
        assert not engine.capabilities.accepts_token_ids, "a chat engine goes with a TextRenderer"
        return ChatAnswering(engine, renderer, shown)  # type: ignore[arg-type]
    assert engine.capabilities.accepts_token_ids, "an engine of token ids goes with a Renderer"
    return ExactAnswering(engine, renderer, shown)  # type: ignore[arg-type]
