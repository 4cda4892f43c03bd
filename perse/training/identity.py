"""What makes two training runs the same: the settings that change what is learned, and digests of all that is learned from.

A command given again goes on with a run only where these are equal; `preflight` and the trainer ask here, so that both say the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from perse.files.runlog import MANIFEST, read_manifest
from perse.models import finding as models
from perse.settings.training import TrainConfig
from perse.training.rows.prepare import Prepared


def made_of(prepared: Prepared, base: Path) -> dict[str, str]:
    """Digests that identify a run: of its data, its base model, and every token of every row."""
    mixed = {"mixed_digests": " ".join(prepared.mixed_digests)} if prepared.mixed_digests else {}
    return {
        "data_digest": prepared.data_digest,
        **mixed,
        "model_digest": models.weights_digest(base),
        "rows_sha256": prepared.digest,
    }


_LATER: tuple[tuple[str, str, object], ...] = (
    ("data", "mix", []),
    ("model", "trust_remote_code", False),
    ("lora", "rslora", False),
    ("lora", "plus", None),
    ("lora", "modules_to_save", None),
    ("train", "optimizer", "adamw"),
    ("train", "min_lr_rate", None),
    ("train", "power", None),
    ("train", "decay", None),
    ("train", "rank_weight", 0.0),
    ("train", "ordinal_smoothing", 0.0),
)
"""Settings that came later, and what runs did that were begun before: with it, they are the same runs."""


def run_identity(config: TrainConfig, prepared: Prepared, facts: Mapping[str, str]) -> dict[str, Any]:
    """The settings that identify a run; the number of devices is not one of them."""
    settings = config.model_dump(
        mode="json", exclude={"output": True, "train": {"world_size", "save_minutes"}, "watch": {"shown"}}
    )
    for section, name, before in _LATER:
        if settings[section] is not None and settings[section][name] == before:
            del settings[section][name]
    return {"kind": "train", "config": settings, "question": prepared.question.name, **facts}


def run_id_of(out: Path) -> str | None:
    """What tells a run from others of the same model and data; None before it is begun, and of one that an older perse began."""
    found = read_manifest(out).get("context", {}).get("id") if (out / MANIFEST).exists() else None
    return found if isinstance(found, str) else None
