"""Anonymize: a model proposes which name becomes which, code replaces, an audit reports what was missed.

The model never rewrites the text, so it cannot add or lose anything but names (PerSE, appendix A.2). What it proposes is
checked before it is used: a proposal with a fault goes back with the fault named, because half a mapping repaired by guess
would merge or split people. Original names that are still there are reported rather than refused: no recognizer is sure
enough of what is a name to throw a text away.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from perse.data.leaks import title_in
from perse.data.names.capitals import Name
from perse.data.names.names import Renamer, check_mapping, complete
from perse.data.names.recognizing import Recognizer
from perse.data.rewriting.faults import Fault
from perse.engines.base import Sampling
from perse.identity import text_key
from perse.progress import OnProgress, unseen
from perse.prompts import macros
from perse.writing.cache import AnswerCache
from perse.writing.loop import Attempt, Bad, Fair, Good, Kind, Outcome, ask_until_good
from perse.writing.writer import Writer

SCHEMA = {"type": "object", "additionalProperties": {"type": "string"}}

SAMPLING = Sampling(max_new_tokens=1000, schema=SCHEMA)
"""Room for about 60 names; the temperature is the paper's."""

_MEANT = re.compile(r"\{\s*[\"}]")
"""How an object of names begins; other braces are ignored."""

_FAULTS = (
    ("does not occur in the text", Fault.MISSING_KEY),
    ("is itself a name to be replaced", Fault.CHAINED),
    ("all become", Fault.MERGED),
)
"""The sentences of `check_mapping` by kind; a test checks each."""


@dataclass(frozen=True)
class Anonymized:
    """One text with new names.

    `text` is None if no try gave a usable mapping; `status` is then the kind of the last try, else "ok", and
    `reason` says why. `mapping` is what was replaced, parts of names included. `survivors` are names that the recognizer
    still finds and that are not new ones, and the title if it is still there.
    """

    text: str | None
    mapping: Mapping[str, str]
    survivors: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    status: StrEnum
    reason: str


@dataclass(frozen=True)
class _Renamed:
    text: str
    mapping: dict[str, str]
    survivors: tuple[str, ...]


def anonymize(
    texts: Mapping[str, str],
    writer: Writer,
    cache: AnswerCache,
    recognizer: Recognizer,
    *,
    seed: int,
    tries: int = 3,
    titles: Mapping[str, str] | None = None,
    sampling: Sampling = SAMPLING,
    on_progress: OnProgress = unseen,
) -> dict[str, Anonymized]:
    """Every text (by item id) under new names, as `writer` proposes them.

    Args:
        recognizer: finds what is left; where it finds no name in a text, an empty mapping is right.
        tries: at most so many answers for each text; for survivors alone one more is asked.
        titles: item id -> title, which must not stay in the text.
        on_progress: called with the number of finished texts.
    Raises:
        BadInput, EngineLost: as `ask_until_good`.
    """
    named = titles or {}
    prompt: Any = macros("anonymize.jinja")

    def check(item: str, answer: str) -> Good[_Renamed] | Fair[_Renamed] | Bad:
        return _checked(texts[item], answer, recognizer, named.get(item, ""))

    outcomes = ask_until_good(
        writer,
        {item: prompt.ask(writer.neutralise(text)) for item, text in texts.items()},
        check,
        cache=cache,
        again=prompt.again,
        sampling=sampling,
        seed=seed,
        purpose="anonymize",
        tries=tries,
        on_progress=on_progress,
    )
    return {item: _anonymized(outcome) for item, outcome in outcomes.items()}


def anonymize_by_rules(
    texts: Mapping[str, str],
    recognizer: Recognizer,
    *,
    seed: int,
    titles: Mapping[str, str] | None = None,
    on_progress: OnProgress = unseen,
) -> dict[str, Anonymized]:
    """The same without a model: the recognizer finds the names, `perse.data.names.rules` invents new ones.

    Equal texts get equal names whatever their ids, as they do from a model.
    """
    from perse.data.names.rules import rule_mapping

    done: dict[str, Anonymized] = {}
    for (item, text), names in zip(texts.items(), recognizer.names(list(texts.values())), strict=True):
        on_progress(len(done), len(texts))
        mapping = rule_mapping(text, names, seed=seed, who=text_key(text))
        renamed, _ = _renamed(text, mapping, recognizer, (titles or {}).get(item, ""))
        done[item] = _anonymized(Outcome(renamed, (Attempt(Kind.OK),)))
    on_progress(len(done), len(texts))
    return done


def read_mapping(answer: str) -> dict[str, str]:
    """The JSON object of names in a model's answer; code fences and words around it are passed over.

    What is not strict JSON is not repaired: a guess at what was meant is a guess at who is who.

    Raises:
        ValueError: no object, more than one, a name given twice, or a value that is no string; the message is a sentence.
    """
    found: list[dict[str, Any]] = []
    fault = ""
    decoder = json.JSONDecoder(object_pairs_hook=_distinct)
    at = answer.find("{")
    while at >= 0:
        try:
            one, end = decoder.raw_decode(answer, at)
            found.append(one)
        except json.JSONDecodeError as error:
            fault, end = f" ({error.msg} after {answer[max(0, error.pos - 30) : error.pos]!r})", at + 1
            if _MEANT.match(answer, at):  # an object within a broken one would be half of what was meant
                break
        except RecursionError:
            raise ValueError("the JSON object is nested; give each name and its new name directly") from None
        at = answer.find("{", end)
    if not found or at >= 0:
        raise ValueError(f"there is no valid JSON object in the answer{fault}")
    if any(one != found[0] for one in found):
        raise ValueError(f"there are {len(found)} JSON objects in the answer; give one")
    if not all(isinstance(new, str) for new in found[0].values()):
        raise ValueError("a value of the JSON object is no string; give each name and its new name directly")
    mapping = {old.strip(): new.strip() for old, new in found[0].items()}
    if any("\ud800" <= char <= "\udfff" for pair in mapping.items() for name in pair for char in name):
        raise ValueError("the JSON object has an invalid escaped character; write names plainly")
    return mapping


def _distinct(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if any(found[key] != value for key, value in pairs):
        raise ValueError("a name is given twice in the JSON object; give each once")
    return found


def _checked(text: str, answer: str, recognizer: Recognizer, title: str) -> Good[_Renamed] | Fair[_Renamed] | Bad:
    """Judges an answer.

    The model saw `text` neutralised, but it is the original that is searched and replaced here: a name that neutralising
    changed (a zero-width character within, something that reads as a chat marker) is then refused as one that does not
    occur, rather than accepted and never replaced. White space makes no such difference, as a name may be broken anywhere.
    """
    try:
        mapping = read_mapping(answer)
    except ValueError as error:
        return Bad(Kind.BAD_JSON, f"{error}.")
    if not mapping and (names := [name.text for name in recognizer.names([text])[0] if name.kind != "other"]):
        return Bad(Fault.MISSING_KEY, f"the object is empty, but the plot names {_listed(names)}.")
    if reasons := check_mapping(mapping, text):
        return Bad(next((kind for said, kind in _FAULTS if said in reasons[0]), Fault.BAD_MAPPING), " ".join(reasons))
    renamed, left = _renamed(text, mapping, recognizer, title)
    if left:
        reason = (
            f"The mapping is right as far as it goes, but these names are still there: {_listed(left)}. Keep it and add them."
        )
        return Fair(renamed, Fault.SURVIVORS, reason, rank=len(left))
    return Good(renamed)


def _renamed(text: str, proposed: Mapping[str, str], recognizer: Recognizer, title: str) -> tuple[_Renamed, list[str]]:
    """The text under new names, and of the survivors those that are surely worth another try: people, places, the title."""
    mapping = complete(proposed)
    new = Renamer(mapping).replace(text)
    left = _survivors(recognizer.names([new])[0], mapping)
    titles = [title] if title_in(new, title) else []  # as the leak check will search for it
    survivors = dict.fromkeys([*(name.text for name in left), *titles])
    worth = dict.fromkeys([*(name.text for name in left if name.kind != "other"), *titles])
    return _Renamed(new, mapping, tuple(survivors)), list(worth)


def _survivors(names: Sequence[Name], mapping: Mapping[str, str]) -> list[Name]:
    """Of the names in the new text those with a word that no new name has: "Sam Thompson", if only Spade became Thompson."""
    new = {word.casefold() for name in mapping.values() for word in re.findall(r"\w+", name)}
    return [
        name
        for name in names
        if any(word.casefold() not in new for word in re.findall(r"\w+", name.text) if not word.islower())
    ]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def _anonymized(outcome: Outcome[_Renamed]) -> Anonymized:
    value = outcome.value
    if value is None:
        return Anonymized(None, {}, (), outcome.attempts, outcome.kind, outcome.reason)
    return Anonymized(value.text, value.mapping, value.survivors, outcome.attempts, outcome.kind, "")
