"""The model card: README.md of a trained judge, for a person who finds it and for the hub that lists it.

It shows what is known and calls the rest unknown: nothing is computed for it, and no licence, language or
model name is made up. It needs no torch, and a missing part of the run folder costs one line of the card.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from perse.evaluation.metrics import METRICS
from perse.files.own_files import write_own
from perse.formats.templates import templates
from perse.formats.yaml_text import parsed
from perse.publishing.base_model import hub_name, licence, public_name
from perse.publishing.facts import RunFacts, read_facts
from perse.publishing.markdown import plain, word
from perse.publishing.measured import Scored, when_scored, while_training

CARD = "README.md"


def write_card(folder: Path, *, scored: Sequence[Path] = (), base: str | None = None, unidentified: bool = False) -> Path:
    """Write the card of the training run in `folder` as its README.md and return its path; a card that was edited is kept beside it.

    Args:
        scored: folders that `perse score` wrote of this judge; without any the card says that it was not scored.
        base: name of the base model on the hub, where the run was given a folder.
        unidentified: take scored runs of which nobody knows the weights, and say so.
    Raises:
        BadInput: `folder` is no training run, or a scored run is that of another judge, or may be.
    """
    place = folder / CARD
    write_own(place, card_text(folder, scored=scored, base=base, unidentified=unidentified))
    return place


def card_text(folder: Path, *, scored: Sequence[Path] = (), base: str | None = None, unidentified: bool = False) -> str:
    """See `write_card`."""
    facts = read_facts(folder)
    on_hub = base or hub_name(facts.model)
    name = folder.resolve().name
    measured = [when_scored(facts, run, unidentified=unidentified) for run in scored]
    environment = templates("perse.publishing", plain=plain, word=word, known=_known, last_part=_last_part)
    body = environment.get_template("card.md.jinja").render(
        facts=facts,
        name=name,
        judges=[*([f"{word(on_hub or public_name(facts.model))}+{word(name)}"] if facts.has_adapter else []), word(name)],
        **_recipe(facts, on_hub),
        watched=while_training(facts),
        scored=measured,
    )
    return _with_header(body, _hub_fields(on_hub, adapter=facts.has_adapter) | _model_index(name, measured))


def _model_index(name: str, measured: Sequence[Scored]) -> dict[str, Any]:
    """What the hub lists of a model's results, by the run that they are of; nothing where it was not scored."""
    results = [
        {
            "task": {"type": "text-generation", "name": "personalized judging"},
            "dataset": {"type": "perse", "name": word(run.name)},
            "metrics": [
                {"type": kind, "name": METRICS[kind].alone, "value": round(value, 4)} for kind, value in run.index.items()
            ],
        }
        for run in measured
        if run.index
    ]
    return {"model-index": [{"name": word(name), "results": results}]} if results else {}


def _hub_fields(base: str | None, *, adapter: bool) -> dict[str, Any]:
    """The header that the hub reads; unknown fields are left out.

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
    """The card with a header that says which weights it is for: an adapter, or a whole model. The rest is unchanged."""
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


def _recipe(facts: RunFacts, base: str | None) -> dict[str, Any]:
    """What was trained and how, as the template names it."""
    packages = facts.environment.get("packages")
    versions = [f"{name} {version}" for name, version in packages.items() if version] if isinstance(packages, Mapping) else []
    judged = "the best judged" if facts.chosen else "the only one judged after training began"
    kept = "those of the last step" if facts.kept_step is None else f"those of step {facts.kept_step}, {judged}"
    return {
        "base": base or public_name(str(facts.setting("model", "path"))),
        "terms": licence(base),
        "trained": _trained(facts),
        "kept": "unknown" if facts.lines is None else kept,
        "packages": [f"python {_known(facts.environment.get('python'))}", *versions],
        "changed": [
            [plain(name), plain(_shown(name, value))]
            for name, value in facts.changed().items()
            if name not in ("model.path", "data.path")
        ],
    }


def _trained(facts: RunFacts) -> str:
    if not facts.has_adapter:
        return "all weights"
    kind = "a DoRA adapter" if facts.setting("lora", "dora") else "a LoRA adapter"
    bits = facts.setting("model", "quantize")
    return f"{kind} on a base held as {plain(bits)}; merged into the base's whole weights" if bits else kind


def _shown(name: str, value: Any) -> str:
    if name in ("data.path", "watch.data"):
        return _last_part(value)
    if name == "data.mix" and isinstance(value, list):
        value = [f"{_last_part(one.get('path'))} x {one.get('weight')}" for one in value if isinstance(one, dict)]
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def _last_part(path: Any) -> str:
    return Path(str(path)).name if path else "unknown"


def _known(value: Any) -> str:
    return "unknown" if value is None else str(value)
