"""The model card: README.md of a trained judge, for a person who finds it and for the hub that lists it.

It says what is known and that the rest is unknown: nothing in it is computed for the first time, and no licence, language or
model name is made up. It needs no torch, and a part of the run folder that is missing costs one line of the card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from perse.files.own_files import write_own
from perse.formats.yaml_text import parsed
from perse.publishing.base_model import hub_name, licence, public_name
from perse.publishing.facts import RunFacts, read_facts
from perse.publishing.markdown import plain, table, word
from perse.publishing.measured import when_scored, while_training

CARD = "README.md"
_ANSWERS = {
    "pointwise": "From a few past reviews of one reader it predicts the review and the score (1 to 10) that this reader would give a new text. "
    "The probability of every score is read exactly.",
    "pointwise_score": "From a few past reviews of one reader it predicts the score (1 to 10) that this reader would give a new text, as an exact "
    "probability of every score.",
    "pairwise": "From a few past choices of one reader it predicts which of two new texts this reader would prefer, aspect by aspect, as an exact "
    "probability of each.",
}
_LIMITS = (
    "It knows a reader from the few reviews in the prompt and from nothing else. Readers, texts and languages unlike those it was trained on "
    "are untested; the language of the data was not recorded.",
    "Judges tend to be lenient: compare its scores with each other, not with a threshold from elsewhere.",
    "A verdict of *better* means that the 95% interval of the difference leaves 0 out on the readers it was scored on. *Not shown to be better* is "
    "not *equal*. A judge may know who is lenient without knowing what anybody likes: the values within readers tell.",
    "What it does not answer is a failure and is counted: accuracy counts it as wrong, and beside correlations stand those with failures imputed.",
    "Its numbers hold for prompts rendered by perse, which also makes untrusted texts harmless; the same words sent otherwise are another question.",
    "It predicts one person's taste. It is no measure of a text's quality and no fact about the person, and no ground for decisions about people.",
    "Who leaves the data set later (`perse data forget`) is still in these weights: train again.",
)


def write_card(folder: Path, *, scored: Sequence[Path] = (), base: str | None = None) -> Path:
    """Write the card of the training run in `folder` as its README.md and return its path; a card that was edited is kept beside it.

    Args:
        scored: folders that `perse score` wrote of this judge; without any the card says that it was not scored.
        base: name of the base model on the hub, where the run was given a folder.
    Raises:
        BadInput: `folder` is no training run, or a scored run is that of another judge.
    """
    place = folder / CARD
    write_own(place, card_text(folder, scored=scored, base=base))
    return place


def card_text(folder: Path, *, scored: Sequence[Path] = (), base: str | None = None) -> str:
    """See `write_card`."""
    facts = read_facts(folder)
    on_hub = base or hub_name(facts.model)
    name = folder.resolve().name
    lines = [
        f"# {plain(name)}: a judge that answers as one reader would",
        "",
        _ANSWERS.get(facts.question, f"It answers the question {plain(facts.question)} of perse."),
        "",
        *_asking(facts, name, base=on_hub or public_name(facts.model)),
        *_data(facts),
        *_recipe(facts, on_hub),
        "## What was measured",
        "",
        "While training:",
        "",
        *while_training(facts),
        "Against readers:",
        "",
        *when_scored(facts, scored, name=name),
        "## Limits",
        "",
        *(f"- {limit}" for limit in _LIMITS),
        "",
    ]
    return _with_header("\n".join(lines), _hub_fields(on_hub, adapter=facts.has_adapter))


def _hub_fields(base: str | None, *, adapter: bool) -> dict[str, Any]:
    """What the hub reads at the top of a card; what is not known is left out.

    Args:
        base: the base model's name on the hub.
        adapter: whether the card lies beside an adapter, or a whole model.
    """
    terms = licence(base)
    return {
        **({"license": terms.lower()} if terms else {}),
        **({"base_model": base, "base_model_relation": "adapter" if adapter else "finetune"} if base else {}),
        "library_name": "peft" if adapter else "transformers",
        "pipeline_tag": "text-generation",
        "tags": ["perse", "personalization", "llm-as-a-judge", *(["lora"] if adapter else [])],
    }


def for_weights(card: str, *, adapter: bool) -> str:
    """The card with a header that says beside which weights it lies: an adapter, or a whole model. All else in it stays."""
    fields, body = _split(card)
    fields["library_name"] = "peft" if adapter else "transformers"
    if "base_model" in fields:
        fields["base_model_relation"] = "adapter" if adapter else "finetune"
    return _with_header(body, fields)


def named_base(card: str) -> str | None:
    """The base model's name on the hub, as the card's header has it."""
    found = _split(card)[0].get("base_model")
    return found if isinstance(found, str) else None


def _with_header(body: str, fields: Mapping[str, Any]) -> str:
    return f"---\n{yaml.safe_dump(dict(fields), sort_keys=False, allow_unicode=True)}---\n\n{body}"


def _split(card: str) -> tuple[dict[str, Any], str]:
    if not card.startswith("---\n"):
        return {}, card
    header, ended, body = card[4:].partition("\n---\n")
    try:
        known = parsed(header) if ended else None
    except ValueError:
        known = None
    return (known, body.lstrip("\n")) if isinstance(known, dict) else ({}, card)


def _asking(facts: RunFacts, name: str, *, base: str) -> list[str]:
    said = word(name)
    judges = [*([f"{word(base)}+{said}"] if facts.has_adapter else []), said]
    if facts.question.startswith("pointwise"):
        more = "" if facts.question == "pointwise" else f" --question {word(facts.question)}"
        commands = [f"perse ask --judge {judge} --reviews mine.jsonl --text @plot.txt{more}" for judge in judges]
    else:
        commands = [f"perse score --judge {judge} --examples examples.jsonl --out judged" for judge in judges]
    if facts.has_adapter:
        commands[1] += "    # where the merged model is here, too"
    return [
        "## How to ask it",
        "",
        f"`{said}` is the folder that this card is in (`hf download OWNER/NAME --local-dir {said}` makes one of what is on the hub).",
        "",
        "```",
        "pip install '.[serve]'    # in a checkout of perse; the name `perse` on the package index is another project",
        *commands,
        "```",
        "",
    ]


def _data(facts: RunFacts) -> list[str]:
    trained = facts.trained
    counts = {"examples to train on": trained.examples, "reviewers": trained.reviewers, "too long, left out": trained.too_long}
    rows = [
        ["data set", plain(_last_part(facts.setting("data", "path")))],
        ["sha256", plain(_known(facts.run.get("data_digest")))],
        ["sha256 of the training rows", plain(_known(facts.run.get("rows_sha256")))],
        *([name, _known(value)] for name, value in counts.items()),
    ]
    return ["## Data", "", *table(["what", "is"], rows)]


def _recipe(facts: RunFacts, base: str | None) -> list[str]:
    path = str(facts.setting("model", "path"))
    terms = licence(base)
    packages = facts.environment.get("packages")
    told = [f"{name} {version}" for name, version in packages.items() if version] if isinstance(packages, Mapping) else []
    world = facts.context.get("world_size", facts.run.get("world_size"))
    settings = {name: _shown(name, value) for name, value in facts.changed().items() if name not in ("model.path", "data.path")}
    kept = "those of the last step" if facts.kept_step is None else f"those of step {facts.kept_step}, the best judged"
    kept = "unknown" if facts.lines is None else kept
    rows = [
        ["base model", plain(base or public_name(path)) + (f" (published under {plain(terms)})" if terms else "")],
        ["sha256 of the base", plain(_known(facts.run.get("model_digest")))],
        ["trained", _trained(facts)],
        ["optimizer steps", _known(facts.steps)],
        ["weights kept", kept],
        ["processes together", plain(_known(world))],
        ["packages", plain(", ".join([f"python {_known(facts.environment.get('python'))}", *told]))],
        ["commit", plain(_known(facts.environment.get("git_commit")))],
    ]
    changed = [[plain(name), plain(value)] for name, value in settings.items()]
    return [
        *("## Recipe", "", *table(["what", "is"], rows)),
        *("Settings that differ from the defaults:", "", *table(["setting", "value"], changed)),
    ]


def _trained(facts: RunFacts) -> str:
    if not facts.has_adapter:
        return "all weights"
    kind = "a DoRA adapter" if facts.setting("lora", "dora") else "a LoRA adapter"
    bits = facts.setting("model", "quantize")
    return f"{kind} on a base held as {plain(bits)}; merged into the base's whole weights" if bits else kind


def _shown(name: str, value: Any) -> str:
    if name in ("data.path", "watch.data"):
        return _last_part(value)
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _last_part(path: Any) -> str:
    return Path(str(path)).name if path else "unknown"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
