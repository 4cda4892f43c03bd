"""Summarize: a model retells a text; a bad summary is asked for again with the reason.

The checks see what can be seen without another model: a text that is cut off, copied, declined, about itself, or that
has a name that is not in the text (PerSE, appendix A.2). They cannot see whether it is true to the plot. They
err on the side of asking again: a good summary refused costs one more answer, a bad one stays in the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from typing import Any

from perse.data.leaks import title_in
from perse.data.names.names import Renamer
from perse.data.rewriting.faults import Fault
from perse.engines.base import Sampling
from perse.progress import OnProgress, unseen
from perse.prompts import macros
from perse.writing.cache import AnswerCache
from perse.writing.loop import Attempt, Bad, Good, Kind, ask_until_good
from perse.writing.writer import Writer

WORDS = 100
"""Length to ask for; for a short text, half of its own."""

COPIED_RUN = 0.6
"""A summary is copied if more of its words than this are one run of the source's."""

COPIED_LENGTH = 0.8
"""Also if it has more than this share of the source's words, for sources of over `LONG` words; short ones can lose little."""

LONG = 120

ECHO = 5
"""Consecutive words copied from the instruction, not from the source, by which a summary is refused."""

FEWEST = 5
"""Fewest words of a summary."""

_ENDED = re.compile(r"""[.!?\u2026]["'\u201d\u2019\xbb)\]*]*$""")
_INSIDE = re.compile(r"(?<=[a-z,;] )\w{2,}")
_REMARK = re.compile(
    r"^(?:(?:sure|certainly|of course|okay|ok)\b[,!.:]|here(?:'s| is| are)\b[^.!?\n]{0,80}:|(?:the )?(?:plot |story )?(?:title:|summary|retelling|answer)\b[^.!?\n]{0,40}:|[#*]|\[)"
    r"|\[(?:answer|plot|what must change)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Summarized:
    """One summary. `text` is None if no try gave a usable one; `status` is then the kind of the last try, else
    "ok", and `reason` says why."""

    text: str | None
    attempts: tuple[Attempt, ...]
    status: StrEnum
    reason: str


def summarize(
    texts: Mapping[str, str],
    writer: Writer,
    cache: AnswerCache,
    *,
    seed: int,
    tries: int = 3,
    words: int = WORDS,
    mappings: Mapping[str, Mapping[str, str]] | None = None,
    titles: Mapping[str, str] | None = None,
    sampling: Sampling | None = None,
    on_progress: OnProgress = unseen,
) -> dict[str, Summarized]:
    """A summary of every text (by item id).

    Args:
        words: length to ask for, at most half of the text.
        mappings: item id -> the mapping (old -> new) of the anonymization; no old name may come back.
        titles: item id -> title, which must not be in the summary.
        sampling: the paper's (temperature 0.8, at most 600 new tokens) if None.
        on_progress: called with the number of finished texts.
    Raises:
        BadInput, EngineLost: as `ask_until_good`.
    """
    renamers = {item: Renamer(mapping) for item, mapping in (mappings or {}).items()}
    prompt: Any = macros("summarize.jinja")

    def check(item: str, answer: str) -> Good[str] | Bad:
        return check_summary(answer, texts[item], original=renamers.get(item), title=(titles or {}).get(item, ""))

    outcomes = ask_until_good(
        writer,
        {item: prompt.ask(writer.neutralise(text), _target(text, words)) for item, text in texts.items()},
        check,
        cache=cache,
        again=prompt.again,
        sampling=sampling or Sampling(),
        seed=seed,
        purpose="summarize",
        tries=tries,
        on_progress=on_progress,
    )
    return {item: Summarized(one.value, one.attempts, one.kind, one.reason) for item, one in outcomes.items()}


def summarize_by_rules(
    texts: Mapping[str, str], *, words: int = WORDS, on_progress: OnProgress = unseen
) -> dict[str, Summarized]:
    """The same without a model: the most central sentences of each text, as they stand. They are copied by nature, so no
    check applies, and a text that is already short enough stays whole."""
    from perse.data.names.rules import extractive_summary

    done: dict[str, Summarized] = {}
    for item, text in texts.items():
        on_progress(len(done), len(texts))
        done[item] = Summarized(extractive_summary(text, words=words), (Attempt(Kind.OK),), Kind.OK, "")
    on_progress(len(done), len(texts))
    return done


def check_summary(answer: str, source: str, *, original: Renamer | None = None, title: str = "") -> Good[str] | Bad:
    """Whether `answer` is a summary of `source`; the good one has single spaces.

    Args:
        original: of the mapping of the anonymization, to find original names.
    """
    summary = " ".join(answer.split())
    said, given = _words(summary), _words(source)
    remark = _REMARK.search(summary.replace("\u2019", "'"))
    if len(said) < min(FEWEST, len(given)):
        return Bad(Kind.EMPTY, f"The answer has {len(said)} words; retell the plot.")
    if remark:
        return Bad(Fault.ECHOED, f'"{remark[0]}" is no part of the story; begin with the story itself and add no remark.')
    if echo := _echo(said, given):
        return Bad(Fault.ECHOED, f'"{echo}" is from the instruction, not from the plot; write the story only.')
    if not _ENDED.search(summary):
        return Bad(Kind.TRUNCATED, "The last sentence is not finished; end with a whole sentence.")
    run = _run(given, said)
    if len(run) > COPIED_RUN * len(said):
        return Bad(Fault.COPIED, f"{len(run)} of its {len(said)} words are copied in one piece; use your own words.")
    if len(given) > LONG and len(said) > COPIED_LENGTH * len(given):
        return Bad(Fault.COPIED, f"The answer has {len(said)} words, the plot {len(given)}; make it much shorter.")
    old = [span.old for span in original.spans(summary)] if original else []
    names = dict.fromkeys([*old, *([title] if title_in(summary, title) else []), *_new_names(summary, given)])
    if names:
        return Bad(Fault.NAMED, f"These names are not in the plot: {', '.join(names)}. Use the names that the plot has.")
    return Good(summary)


def _target(text: str, words: int) -> int:
    return min(words, max(FEWEST, len(text.split()) // 2))


def _new_names(summary: str, source: Sequence[str]) -> list[str]:
    """Words with a capital inside a sentence that the source has in no form: a model that knows the work may well add its
    author, or a name that was taken out."""
    known = set(source)
    inside = [word for word in _INSIDE.findall(summary) if word[0].isupper() and word.lower() not in known]
    return [name for name in inside if not any(_same_stem(name.lower(), word) for word in known)]


def _same_stem(name: str, word: str) -> bool:
    """Whether one is the other with an ending: "Brandts" and "Brandt"."""
    return min(len(name), len(word)) >= 4 and (name.startswith(word) or word.startswith(name))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _run(source: Sequence[str], said: Sequence[str]) -> Sequence[str]:
    """The longest run of words that both have."""
    match = SequenceMatcher(None, source, said, autojunk=False).find_longest_match()
    return said[match.b : match.b + match.size]


def _echo(said: Sequence[str], source: Sequence[str]) -> str:
    prompt: Any = macros("summarize.jinja")
    run = _run(_words(f"{prompt.ask('', 0)} {prompt.again('', '')}"), said)
    copied = len(_run(source, run)) == len(run)
    return " ".join(run) if len(run) >= ECHO and not copied else ""
