"""The four baselines: one or two prompts each (Rehearsal, section 4.2). What one of them cannot be asked for is None, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from perse.data.persum.folder import Sample
from perse.rehearsal.agents import Asking, said
from perse.rehearsal.answers import ANALYSIS, SUMMARY, read_text
from perse.writing.loop import Outcome
from perse.writing.objects import texts_form
from perse.writing.waves import Wording


@dataclass(frozen=True)
class Text:
    """A text, or the reason why there is none."""

    text: str | None
    failed: str | None = None

    @property
    def found(self) -> str:
        assert self.text is not None, self.failed
        return self.text


Texts = dict[str, Text]
"""By sample."""


def product_of(sample: Sample) -> tuple[str, ...]:
    return tuple(one.review for one in sample.product_reviews)


def history_of(sample: Sample) -> tuple[str, ...]:
    return tuple(one.review for one in sample.history)


def general(agents: Asking, samples: Mapping[str, Sample]) -> Texts:
    """OnlySum: what the product's reviews say, for nobody in particular."""
    prompts = {name: said("general", reviews=product_of(sample)) for name, sample in samples.items()}
    return _asked(agents, "general summary", prompts)


def personal(agents: Asking, samples: Mapping[str, Sample]) -> Texts:
    """PerSum: one prompt with both sets of reviews."""
    prompts = {name: said("personal", reviews=product_of(sample), past=history_of(sample)) for name, sample in samples.items()}
    return _asked(agents, "personal summary", prompts)


def analysis(agents: Asking, samples: Mapping[str, Sample]) -> Texts:
    """What each user cares about, for Ana+PerSum."""
    prompts = {name: said("analysis", past=history_of(sample)) for name, sample in samples.items()}
    return _asked(agents, "analysis", prompts, key=ANALYSIS)


def personal_from(agents: Asking, samples: Mapping[str, Sample], analyses: Texts) -> Texts:
    """Ana+PerSum: a summary for a user with these interests."""
    return _built(
        agents,
        "summary from the analysis",
        analyses,
        lambda name, text: said("personal_from", reviews=product_of(samples[name]), interests=text),
        before="analysis",
    )


def adapted(agents: Asking, samples: Mapping[str, Sample], generals: Texts) -> Texts:
    """Sum+PerChan: the general summary, changed to suit the history."""
    return _built(
        agents,
        "changed summary",
        generals,
        lambda name, text: said("adapted", past=history_of(samples[name]), summary=text),
        before="general summary",
    )


def _built(agents: Asking, step: str, texts: Texts, prompt: Callable[[str, str], Wording], *, before: str) -> Texts:
    """What comes of a text that was had before; without that there is nothing to ask."""
    prompts = {name: prompt(name, one.text) for name, one in texts.items() if one.text is not None}
    found = _asked(agents, step, prompts)
    return {name: found[name] if name in found else Text(None, f"{before}: {one.failed}") for name, one in texts.items()}


def _asked(agents: Asking, step: str, prompts: Mapping[str, Wording], key: str = SUMMARY) -> Texts:
    form = texts_form([key], max_new_tokens=agents.settings.max_new_tokens)
    outcomes = agents.ask("writer", step, prompts, lambda answer: read_text(answer, key), form=form)
    return {name: Text(outcome.value, why_not(outcome)) for name, outcome in outcomes.items()}


def why_not(outcome: Outcome[str]) -> str | None:
    return None if outcome.value is not None else f"{outcome.kind}: {outcome.reason}"
