"""What a run would ask, before it begins: calls, tokens and hours (`perse rehearsal plan`).

The run itself is played through (`perse.rehearsal.process`), with stand-ins for the agents that count what they are asked and answer in the right form, in
words of a stated length. So a plan has the stages of a run, and follows from the same code; what it cannot know, it is told: how long answers are, and in
which iteration a supervisor passes a response. A personal judge is assumed to prefer every rewriting, so that no round is left out.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from perse.data.persum.folder import Sample
from perse.errors import BadInput
from perse.questions.summary_pair import SUMMARY_PAIR
from perse.rehearsal.agents import Role
from perse.rehearsal.judging import QUESTIONS, SIDES, VISIBLE, Side, Wanted
from perse.rehearsal.methods import METHODS
from perse.rehearsal.personal import Preference, Supervision
from perse.rehearsal.preferring import pair_of
from perse.rehearsal.process import Process
from perse.rehearsal.settings import Settings
from perse.writing.load import Count, Load, Prompts, quarter, total_of
from perse.writing.loop import Attempt, Bad, Good, Kind, Outcome
from perse.writing.waves import Wording

Value = TypeVar("Value")

_WORDS = [
    "the",
    "strings",
    "sound",
    "warm",
    "and",
    "last",
    "long",
    "but",
    "tuning",
    "takes",
    "time",
    "while",
    "price",
    "seems",
    "fair",
    "for",
    "what",
    "you",
    "get",
    "in",
    "the",
    "box",
]


@dataclass(frozen=True)
class Assumed:
    """What a plan cannot know."""

    answer_tokens: int = 200
    """Of a summary, a response or a verdict."""
    iterations: int = 2
    """In which the supervisor passes a response."""
    context: int | None = None
    """Tokens that a prompt and its answer may have; None: anything fits."""
    cache: int | None = None
    """Tokens of prompts that the engine remembers, the oldest forgotten first; None: all of them."""


@dataclass(frozen=True)
class Plan:
    """By role, "judge" and "personal judge" among them, in the order in which they are asked first. `none`: prompts that do not fit, by step."""

    samples: int
    methods: tuple[str, ...]
    loads: Mapping[str, Load]
    none: Mapping[str, int]
    assumed: Assumed

    @property
    def total(self) -> Load:
        return total_of(dict(self.loads))


def plan(
    samples: Sequence[Sample],
    methods: Sequence[str],
    settings: Settings,
    *,
    assumed: Assumed,
    count: Count | None = None,
    scored: bool = True,
) -> Plan:
    """Play a run through without a model.

    Args:
        count: of a text's tokens; by default a quarter of its characters.
        scored: whether `perse rehearsal score` is counted, too.
    Raises:
        BadInput: an unknown method, or no samples.
    """
    if not samples:
        raise BadInput("there are no samples to plan for")
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise BadInput(f"unknown method '{unknown[0]}'; there are {', '.join(METHODS)}")
    standing_in = StandIns(settings, assumed, Prompts(count or quarter, assumed.cache))
    by_id = {sample.id: sample for sample in samples}
    sides = SIDES if settings.best == "all" else VISIBLE
    of_versions: set[tuple[str, str]] = set()
    of_summaries: set[tuple[str, str]] = set()

    def judged(wanted: Wanted, of: Sequence[Side], asked: set[tuple[str, str]]) -> None:
        for side in of:
            example = wanted.example(side)
            for question in QUESTIONS[settings.scale].values():
                if (question.name, example.id) not in asked:
                    [ask] = question.asks(example, example.reviews)
                    standing_in.note("judge", ask.text, generated=4)
                    asked.add((question.name, example.id))

    def rate(versions: Mapping[str, Sequence[str]]) -> dict[tuple[str, str], float | None]:
        found = {(name, text): Wanted(by_id[name], text) for name, of_one in versions.items() for text in of_one}
        if settings.best != "last":
            for one in found.values():
                judged(one, sides, of_versions)
        return dict.fromkeys(found, 50.0)

    def prefer(changed: Mapping[str, tuple[str, str]], step: str) -> dict[str, Preference]:
        for name, (before, after) in changed.items():
            pair = pair_of(by_id[name], before, after)
            for ask in SUMMARY_PAIR.asks(pair, pair.profile):
                standing_in.note("personal judge", ask.text, generated=1)
        return dict.fromkeys(changed, Preference(1.0))

    process = Process(standing_in, by_id, rate, Supervision(prefer, gain=0.0))
    for name in methods:
        for trace in process.traces(METHODS[name]):
            if scored and trace.summary is not None:
                judged(Wanted(by_id[trace.sample], trace.summary), SIDES, of_summaries)
    return Plan(len(samples), tuple(methods), standing_in.prompts.loads, standing_in.none, assumed)


@dataclass
class StandIns:
    """Answer as agents would (`perse.rehearsal.agents.Asking`), and count."""

    settings: Settings
    assumed: Assumed
    prompts: Prompts
    none: dict[str, int] = field(default_factory=dict)

    def ask(
        self,
        role: Role,
        step: str,
        wordings: Mapping[str, Wording],
        read: Callable[[str], Good[Value] | Bad],
        *,
        form: Mapping[str, Any] | None = None,
        tries: int | None = None,
    ) -> dict[str, Outcome[Value]]:
        found: dict[str, Outcome[Value]] = {}
        for name, wording in wordings.items():
            prompt = wording(_safe)
            if not self._fits(prompt):
                self.none[step] = self.none.get(step, 0) + 1
                found[name] = Outcome(None, (Attempt(Kind.TOO_LONG, "it would not fit"),))
                continue
            answer = self._answer(prompt, step, name, form)
            said = read(answer)
            assert isinstance(said, Good), answer
            self.note(role, prompt, generated=self.prompts.count(answer))
            found[name] = Outcome(said.value, (Attempt(Kind.OK),))
        return found

    def fits(self, role: Role, prompt: Wording) -> bool:
        return self._fits(prompt(_safe))

    def note(self, role: str, prompt: str, *, generated: int) -> None:
        """Count one call."""
        self.prompts.note(role, prompt, generated=generated)

    def _fits(self, prompt: str) -> bool:
        return self.assumed.context is None or self.prompts.count(prompt) + self.settings.max_new_tokens <= self.assumed.context

    def _answer(self, prompt: str, step: str, name: str, form: Mapping[str, Any] | None) -> str:
        """In the form that was asked for; its words differ by step and sample, as answers do."""
        words = self._words(f"{step} {name}")
        if form is None:  # the supervisor's, which is no JSON
            iteration = int(re.findall(r"\d+", step)[-1])
            return f"Thought: {words}\nSuggestions: {'No suggestions' if iteration >= self.assumed.iterations else words}"
        fields = form["properties"]
        if "Numbers" in fields:
            return json.dumps({"Numbers": list(range(1, fields["Numbers"]["minItems"] + 1))})
        return json.dumps(dict.fromkeys(fields, self._words(f"{step} {name}", share=len(fields))))

    def _words(self, who: str, share: int = 1) -> str:
        chance = random.Random(who)
        wanted = max(1, self.assumed.answer_tokens // share)
        words = [who]
        while self.prompts.count(" ".join(words)) < wanted:
            words += chance.choices(_WORDS, k=max(1, wanted // 8))
        return " ".join(words)


def _safe(text: str) -> str:
    return " ".join(text.split())
