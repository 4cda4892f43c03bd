"""Plots -> plots that a model does not know: anonymized, then summarized (PerSE, appendix A.2), with an account of each.

Plots that cannot be rewritten are left out and counted, never used unchanged: a judge may know the answers of a
famous plot by heart. The same goes for a text that still holds its title or a name that was to go. `rules` in place of a model
needs nothing but libraries and is weaker: names are found by rules, and the summary is the plot's most central sentences.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from perse.data.leaks import check_names
from perse.data.names.recognizing import Recognizer
from perse.data.rewriting.anonymize import Anonymized, anonymize, anonymize_by_rules
from perse.data.rewriting.faults import Fault
from perse.data.rewriting.summarize import Summarized, summarize, summarize_by_rules
from perse.errors import BadInput
from perse.progress import OnPart, unseen_part
from perse.writing.cache import AnswerCache, check_cache
from perse.writing.loop import counts
from perse.writing.writer import Writer

RULES = "rules"
NONE = "none"

WORDS = 300
"""Of a summary: a prompt of Per-MPST grows by some 360 words with each plot and its review (PerSE, table 1)."""


@dataclass(frozen=True, kw_only=True)
class RewriteOptions:
    """How plots are rewritten. Raises BadInput for invalid settings."""

    writer: str = RULES
    """Who writes: a judge's name (`PATH`, `vllm:PATH`, `openai:URL#MODEL`), `rules`, or `none` to leave the texts as they are."""
    ner: str = RULES
    """Who finds names, for the audit and for `rules`: `rules`, or a spaCy pipeline such as en_core_web_sm."""
    steps: tuple[Literal["anonymize", "summarize"], ...] = ("anonymize", "summarize")
    """What is done, in this order."""
    words: int = WORDS
    """Length of a summary to ask for."""
    tries: int = 3
    """At most so many answers for each text and step."""
    cache: Path
    """The file that keeps the writer's answers."""
    dtype: str = "bfloat16"
    context: int | None = None
    tokenizer: str | None = None
    concurrency: int | None = None

    def __post_init__(self) -> None:
        wrong = {
            f"words is {self.words}, expected 20 or more": self.words < 20,
            f"tries is {self.tries}, expected 1 or more": self.tries < 1,
        }
        if problems := [message for message, holds in wrong.items() if holds]:
            raise BadInput("; ".join(problems))


@dataclass(frozen=True)
class Rewritten:
    """The rewritten plots, and those left out."""

    texts: Mapping[str, str]
    """item_id -> the new text of each rewritten plot."""
    failed: Mapping[str, str]
    """item_id -> why it was left out."""
    lines: tuple[Mapping[str, Any], ...]
    """What was done to each, for `rewriting.jsonl`; no name is in it."""
    mappings: Mapping[str, Mapping[str, str]]
    """item_id -> old name -> new name. Whoever has it can undo the anonymization."""
    survivors: Mapping[str, tuple[str, ...]]
    """item_id -> the names that the recognizer still found."""
    reasons: Mapping[str, tuple[str, ...]]
    """item_id -> the fault of each failed try, in a sentence; original names can be among its words."""
    manifest: Mapping[str, Any]
    """Who did it and how often each kind of try occurred."""


def rewrite(
    texts: Mapping[str, str],
    options: RewriteOptions,
    *,
    titles: Mapping[str, str],
    names: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    seed: int,
    on_progress: OnPart = unseen_part,
) -> Rewritten:
    """Anonymizes the texts (by item id) and summarizes what came of it, as `options` say.

    Args:
        titles: item_id -> title, which must not be in the new text.
        names: item_id -> old name -> new name, of texts that were anonymized before: no old one may come back.
        on_progress: told what is being done, to how many of how many texts.
    Raises:
        BadInput: a library or the recognizer is absent, the writer cannot be asked, or its answers cannot be kept.
        EngineLost: it failed at everything; the same command continues.
    """
    if options.writer != RULES:
        check_cache(options.cache)
    recognizer = Recognizer.load(options.ner)
    anonymizing, summarizing = partial(on_progress, "anonymizing"), partial(on_progress, "summarizing")
    named: Mapping[str, Anonymized] = {}
    short: Mapping[str, Summarized] = {}
    if options.writer == RULES:
        from perse.data.names.rules import rules_digest

        identity: dict[str, Any] = {"name": RULES, "digest": rules_digest()}
        if "anonymize" in options.steps:
            named = anonymize_by_rules(texts, recognizer, seed=seed, titles=titles, on_progress=anonymizing)
        if "summarize" in options.steps:
            left = _left(texts, named)
            short = summarize_by_rules(left, words=options.words, on_progress=summarizing)
        return _account(texts, named, short, options, titles=titles, names=names, writer=identity, recognizer=recognizer)
    writer = Writer.load(
        options.writer,
        dtype=options.dtype,
        context=options.context,
        tokenizer=options.tokenizer,
        concurrency=options.concurrency,
    )
    with AnswerCache(options.cache) as cache:
        if "anonymize" in options.steps:
            named = anonymize(
                texts, writer, cache, recognizer,
                seed=seed, tries=options.tries, titles=titles, on_progress=anonymizing,
            )  # fmt: skip
        if "summarize" in options.steps:
            left = _left(texts, named)
            mappings = {item: one.mapping for item, one in named.items()} or names
            short = summarize(
                left, writer, cache,
                seed=seed, tries=options.tries, words=options.words, mappings=mappings, titles=titles,
                on_progress=summarizing,
            )  # fmt: skip
    return _account(texts, named, short, options, titles=titles, names=names, writer=writer.identity, recognizer=recognizer)


def _left(texts: Mapping[str, str], named: Mapping[str, Anonymized]) -> dict[str, str]:
    """The texts to summarize: the anonymized ones, or the originals if there is no anonymizing."""
    return {item: one.text for item, one in named.items() if one.text is not None} if named else dict(texts)


def _account(
    texts: Mapping[str, str],
    named: Mapping[str, Anonymized],
    short: Mapping[str, Summarized],
    options: RewriteOptions,
    *,
    titles: Mapping[str, str],
    names: Mapping[str, Mapping[str, str]],
    writer: Mapping[str, Any],
    recognizer: Recognizer,
) -> Rewritten:
    """The rewritten plots, those left out and why, and the writer."""
    done: dict[str, str] = {}
    failed: dict[str, str] = {}
    lines = []
    for item in texts:
        anonymized, summarized = named.get(item), short.get(item)
        last = summarized or anonymized
        assert last is not None, item
        status, text = str(last.status), last.text
        mapping = anonymized.mapping if anonymized else names.get(item, {})
        if text is None:
            failed[item] = f"not {'summarized' if summarized else 'anonymized'}: {status}"
        elif check_names({item: text}, {item: tuple(mapping)}, titles, warn=True):
            status = str(Fault.NAMED)
            failed[item] = "still holding its title or an original name"
        else:
            done[item] = text
        lines.append(
            {
                "item_id": item,
                "status": status,
                "names_replaced": len(anonymized.mapping) if anonymized else 0,
                "survivors": len(anonymized.survivors) if anonymized else 0,
                "words": {"before": len(texts[item].split()), "after": len((text or "").split())},
                "anonymize": [str(attempt.kind) for attempt in anonymized.attempts] if anonymized else [],
                "summarize": [str(attempt.kind) for attempt in summarized.attempts] if summarized else [],
            }
        )
    manifest = {
        "writer": dict(writer),
        "recognizer": {"name": recognizer.name, "digest": recognizer.digest},
        "options": {"steps": list(options.steps), "words": options.words, "tries": options.tries},
        "texts": len(texts),
        "rewritten": len(done),
        "with_survivors": sum(bool(one.survivors) for item, one in named.items() if item in done),
        "left_whole": sum(
            short[item].text == left for item, left in _left(texts, named).items() if item in done and item in short
        ),
        "tries": {
            "anonymize": dict(sorted(counts(one.attempts for one in named.values()).items())),
            "summarize": dict(sorted(counts(one.attempts for one in short.values()).items())),
        },
        "failed": dict(sorted(Counter(failed.values()).items())),
    }
    return Rewritten(
        texts=done,
        failed=failed,
        lines=tuple(lines),
        mappings={item: one.mapping for item, one in named.items()},
        survivors={item: one.survivors for item, one in named.items()},
        reasons={item: _faults(named.get(item), short.get(item)) for item in texts},
        manifest=manifest,
    )


def _faults(*results: Anonymized | Summarized | None) -> tuple[str, ...]:
    tries = [attempt for one in results if one is not None for attempt in one.attempts]
    return tuple(f"{attempt.kind}: {attempt.reason}" for attempt in tries if attempt.reason)


def json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Each as one line of JSON."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
