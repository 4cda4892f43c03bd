"""Roles invented for a text: who would read it, by occupation and intent (coarse), and by how much they know of what happened (fine).

Two prompts a document, as in DRPE, section 3.1 and figure 4, all documents at once. An answer is a list of types and descriptions; too few, unusable or empty ones
are asked for again with the reason, and counted. What a model invents is as untrusted as the article that it read: whoever shows a role neutralises it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import ConfigDict, Field

from perse.drpe.documents import Document
from perse.drpe.inventions import Listed, read_listed, readers_form
from perse.drpe.roles import Role, Source
from perse.engines.base import Sampling
from perse.errors import BadInput
from perse.progress import OnPart, unseen_part
from perse.prompts import source
from perse.strict import Name, Strict
from perse.writing.cache import AnswerCache
from perse.writing.loop import Outcome, counts
from perse.writing.waves import ask_wave, worded
from perse.writing.writer import Writer

TEMPLATE = "drpe.jinja"
PROMPTS: tuple[Source, ...] = ("coarse", "fine")
NO_TEXT = "no_text: the document has neither an article nor a reference"


@dataclass(frozen=True, kw_only=True)
class Inventing:
    """How roles are asked for; temperature 0 is the paper's."""

    each: int = 4
    """Types that each of the two prompts asks for: as many as figure 4 shows at most. Clustering keeps some of them."""
    temperature: float = 0.0
    max_new_tokens: int = 512
    tries: int = 3
    """For an answer in the wrong form; ours."""
    seed: int = 0
    skip_failed: bool = False
    """Go on without what the engine failed at, instead of stopping."""

    def __post_init__(self) -> None:
        for name, least in (("each", 1), ("max_new_tokens", 16), ("tries", 1)):
            if getattr(self, name) < least:
                raise BadInput(f"{name} is {getattr(self, name)}, expected {least} or more")

    @property
    def decisive(self) -> dict[str, float]:
        """What answers depend on."""
        return {name: value for name, value in vars(self).items() if name != "skip_failed"}


class Invented(Strict):
    """What came of one document: all roles that were invented, and what was not."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: Name = Field(min_length=1)
    roles: tuple[Role, ...] = ()
    """Of the coarse prompt, then of the fine one, in the order of the answers."""
    failed: Mapping[Source, str] = {}
    """Prompts without a usable answer, and why."""
    dropped: Mapping[str, int] = {}
    """Entries of the answers that became no role, by reason."""
    tried: Mapping[str, int] = {}
    """How often each kind of try occurred, those included that a later one put right."""


def invent(
    writer: Writer,
    documents: Sequence[Document],
    *,
    cache: AnswerCache,
    settings: Inventing,
    on_progress: OnPart = unseen_part,
) -> list[Invented]:
    """Ask both prompts about every document, in its order. A document without any text, or whose prompt does not fit, has no roles, and says why.

    Raises:
        EngineLost: the engine is gone, or failed at some of the prompts, unless these may be skipped.
        BadInput: the room for an answer fills the context, or a server that cannot be asked.
    """
    shown = {document.id: text_of(document) for document in documents}
    articles = {document.id for document in documents if shown[document.id] == document.article}
    found = ask_wave(
        writer,
        {
            f"{prompt} {name}": worded(TEMPLATE, prompt, text=text, article=name in articles, number=settings.each)
            for name, text in shown.items()
            for prompt in PROMPTS
            if text is not None
        },
        partial(read_listed, number=settings.each),
        template=TEMPLATE,
        cache=cache,
        sampling=Sampling(
            settings.temperature, settings.max_new_tokens, schema=readers_form(settings.each, settings.max_new_tokens)
        ),
        seed=settings.seed,
        consumer="drpe",
        step="roles",
        tries=settings.tries,
        skip_failed=settings.skip_failed,
        on_progress=lambda done, total: on_progress("inventing roles", done, total),
    )
    return [
        _invented(name, {prompt: found[f"{prompt} {name}"] for prompt in PROMPTS})
        if text is not None
        else Invented(id=name, failed=dict.fromkeys(PROMPTS, NO_TEXT))
        for name, text in shown.items()
    ]


def text_of(document: Document) -> str | None:
    """What a model reads to invent its readers: the article, or the first reference where there is none."""
    return next((text for text in (document.article, *document.references[:1]) if text and text.strip()), None)


def wording_digest() -> str:
    """Of both prompts."""
    return hashlib.sha256(source(TEMPLATE).encode()).hexdigest()


def _invented(name: str, outcomes: Mapping[Source, Outcome[Listed]]) -> Invented:
    dropped: dict[str, int] = {}
    for outcome in outcomes.values():
        for why, count in (outcome.value.dropped if outcome.value else {}).items():
            dropped[why] = dropped.get(why, 0) + count
    return Invented(
        id=name,
        roles=tuple(
            Role(type=kind, description=description, source=prompt)
            for prompt, outcome in outcomes.items()
            if outcome.value is not None
            for kind, description in outcome.value.pairs
        ),
        failed={prompt: " ".join(f"{one.kind}: {one.reason}".split()) for prompt, one in outcomes.items() if one.value is None},
        dropped=dict(sorted(dropped.items())),
        tried=dict(sorted(counts(one.attempts for one in outcomes.values()).items())),
    )
