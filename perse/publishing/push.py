"""Pushes a judge to the Hugging Face hub: only files that are named here, without what they tell of this machine.

What to send is decided and shown before anything goes out. Checkpoints, optimizer state, logs and pickles have no name in the
list, so that they cannot be sent by mistake; weights are read from where they lie, cleaned settings are sent from memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perse.errors import BadInput
from perse.files.runlog import MANIFEST, read_manifest
from perse.formats.json_text import read_object
from perse.formats.plain_files import own_text
from perse.licences import terms_in
from perse.models.model_files import tensors
from perse.publishing.base_model import public_name
from perse.publishing.card import CARD, card_text, for_weights, named_base
from perse.publishing.facts import ADAPTER, MERGED, read_facts
from perse.publishing.hub_client import pushing, refuse_missing_xet
from perse.secrets import redact, redact_tree

_TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("tokenizer.model", "vocab.json", "merges.txt", "chat_template.jinja"),
)
_OF_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
_OF_MODEL = ("config.json", "generation_config.json", "model.safetensors", "model.safetensors.index.json")
_SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
_SETTINGS = ("adapter_config.json", "config.json", "generation_config.json", "tokenizer_config.json")
_FOLDER = re.compile(r"[/~\\]|\.\.?[/\\]|[A-Za-z]:[/\\]|(file|s3|gs|gcs|abfss?|az|hdfs|dbfs|nfs)://?")
_TEMPLATE = "[More Information Needed]"
"""Marks the empty card that peft writes beside every adapter."""


@dataclass(frozen=True)
class Parcel:
    """What is sent: by its name in the repository a file, or the bytes themselves."""

    files: dict[str, Path | bytes]
    adapter: bool

    def sizes(self) -> dict[str, int]:
        """Bytes of every file, in order."""
        return {name: len(file) if isinstance(file, bytes) else file.stat().st_size for name, file in self.files.items()}


def pack(
    folder: Path, *, merged: bool = False, scored: Sequence[Path] = (), base: str | None = None, unidentified: bool = False
) -> Parcel:
    """The files that `push` sends of a training run, or of a folder that `perse models merge` wrote.

    Args:
        merged: the merged model; by default the adapter, or the whole model where there is no adapter.
        scored: rewrite the card with these runs of `perse score`; otherwise the card in the folder is sent.
        base: name of the base model on the hub, where it was trained from a folder.
        unidentified: see `write_card`.
    Raises:
        BadInput: the run is not finished, there are no weights or no card, or it is a checkpoint.
    """
    if folder.name in (ADAPTER, MERGED) and _is_run(folder.parent):
        return pack(folder.parent, merged=folder.name == MERGED, scored=scored, base=base, unidentified=unidentified)
    if _is_run(folder):
        return _of_run(folder, merged=merged, scored=scored, base=base, unidentified=unidentified)
    if scored:
        raise BadInput(f"{folder} is no training run, so --scored has no card to go into; give the training run's folder")
    if not folder.is_dir():
        raise BadInput(f"there is no folder {folder}; give a training run, or a folder that `perse models merge` wrote")
    if (folder / "trainer_state.json").exists():
        raise BadInput(f"{folder} is a checkpoint, to go on training from; give the training run's folder")
    adapter = next((each for each in (folder, folder / ADAPTER) if (each / "adapter_config.json").exists()), None)
    whole = (folder / "config.json").exists()
    if (merged or adapter is None) and not whole:
        raise BadInput(f"{folder} holds no {'merged ' if merged else ''}model: there is no config.json; give a training run")
    card = _card_in(folder)
    if merged or adapter is None:
        return _parcel(folder, folder, folder, for_weights(card, adapter=False), base=base or named_base(card))
    return _parcel(folder, adapter, adapter, for_weights(card, adapter=True), base=base or named_base(card))


def push(parcel: Parcel, to: str, *, private: bool = False) -> str:
    """Send a parcel to the model repository `to`, which is made if it is not there, in one commit; returns its address.

    Files that an earlier push sent and this one has not are removed.

    Raises:
        BadInput: a name that the hub does not take, no token, a repository that is public though `private` is asked, or the hub
            did not take it; the message has the hub's reason.
    """
    check_name(to)
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token
    from huggingface_hub.utils.tqdm import disable_progress_bars

    if get_token() is None:
        raise BadInput("there is no Hugging Face token here; run `hf auth login`, or set HF_TOKEN to one that may write")
    disable_progress_bars()
    api = HfApi()
    with pushing(to, api.endpoint):
        api.create_repo(to, private=private or None, exist_ok=True)
        known = api.model_info(to)
        if private and known.private is not True:
            raise BadInput(
                f"the repository {to} is there already and is public; make it private on the hub first, or choose another"
            )
        refuse_missing_xet(to, api.endpoint)
        old = [file.rfilename for file in known.siblings or () if _ours(file.rfilename) and file.rfilename not in parcel.files]
        operations: list[Any] = [CommitOperationDelete(path_in_repo=name) for name in old]
        operations += [CommitOperationAdd(path_in_repo=name, path_or_fileobj=file) for name, file in parcel.files.items()]
        done = api.create_commit(
            to, operations, commit_message=f"{'Adapter' if parcel.adapter else 'Model'}, tokenizer and card"
        )
        return redact(str(done.repo_url))


def check_name(to: str) -> None:
    """Raises:
    BadInput: `to` is no OWNER/NAME that the hub takes.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils._validators import validate_repo_id

    try:
        validate_repo_id(to)
    except HFValidationError:
        owner = ""
    else:
        owner = to.partition("/")[0] if "/" in to else ""
    if not owner:
        raise BadInput(
            f"'{to}' is no name on the hub; expected OWNER/NAME of letters, digits, '-', '_' and '.', at most 96, neither beginning "
            "nor ending in '-' or '.'"
        )


def _of_run(folder: Path, *, merged: bool, scored: Sequence[Path], base: str | None, unidentified: bool) -> Parcel:
    facts = read_facts(folder)
    if not (folder / MERGED / "config.json").exists():
        raise BadInput(f"the training run {folder} is not finished; run the same `perse train` command again to its end")
    adapter = facts.has_adapter and not merged
    card = folder / CARD
    _refuse_outside(card, folder)
    kept = card.exists() and not scored and base is None
    text = own_text(card) if kept else card_text(folder, scored=scored, base=base, unidentified=unidentified)
    called = base or named_base(text) or public_name(facts.model)
    place = folder / (ADAPTER if adapter else MERGED)
    return _parcel(folder, place, folder / MERGED, for_weights(text, adapter=adapter), base=called)


def _parcel(within: Path, weights: Path, tokenizer: Path, card: str, *, base: str | None) -> Parcel:
    adapter = (weights / "adapter_config.json").exists()
    named = (
        (*_OF_ADAPTER,)
        if adapter
        else (*_OF_MODEL, *sorted(each.name for each in weights.iterdir() if _SHARD.fullmatch(each.name)))
    )
    terms = terms_in(file.name for file in tokenizer.iterdir())  # those of the base model, which merging carried here
    found = {name: weights / name for name in named} | {name: tokenizer / name for name in (*_TOKENIZER, *terms)}
    files: dict[str, Path | bytes] = {CARD: card.encode()}
    for name, file in found.items():
        if file.is_file():
            _refuse_outside(file, within)
            if file.suffix == ".safetensors":
                tensors(file)  # refuses one that is damaged or empty
            files[name] = _cleaned(file, base)
    if not any(name.endswith(".safetensors") for name in files):
        raise BadInput(f"{weights} holds no weights as safetensors, the only kind that is sent; train or merge again")
    if "tokenizer_config.json" not in files:
        raise BadInput(f"{tokenizer} holds no tokenizer (tokenizer_config.json); merge again with `perse models merge`")
    return Parcel(files, adapter)


def _refuse_outside(file: Path, folder: Path) -> None:
    """A link that somebody put into a folder could send any file of this machine under a harmless name."""
    if not file.resolve().is_relative_to(folder.resolve()):
        raise BadInput(f"{file} leads out of {folder}, to {file.resolve()}, and is not sent; put the file itself there")


def _cleaned(file: Path, base: str | None) -> Path | bytes:
    """The file itself; settings that name folders of this machine get public names."""
    if file.name not in _SETTINGS:
        return file
    settings = read_object(file, remedy="merge or train again")
    cleaned: dict[str, Any] = redact_tree(_public(settings))
    if cleaned.get("base_model_name_or_path"):
        cleaned["base_model_name_or_path"] = base or public_name(cleaned["base_model_name_or_path"])
    return file if cleaned == settings else (json.dumps(cleaned, indent=2, sort_keys=True) + "\n").encode()


def _public(value: Any) -> Any:
    """Settings with a public name in the place of each folder of this machine, however deep it stands."""
    if isinstance(value, dict):
        return {_public(key): _public(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_public(one) for one in value]
    return public_name(value) if isinstance(value, str) and _FOLDER.match(value) else value


def _card_in(folder: Path) -> str:
    place = folder / CARD
    _refuse_outside(place, folder)
    text = own_text(place) if place.exists() else _TEMPLATE
    if _TEMPLATE in text:
        raise BadInput(f"{folder} has no card; write one as {place}, or push the training run's folder, which has its own")
    return text


def _is_run(folder: Path) -> bool:
    return (folder / MANIFEST).exists() and read_manifest(folder).get("run", {}).get("kind") == "train"


def _ours(name: str) -> bool:
    """Whether `name` is one that a push may send, and a later push remove; terms may have been put there by hand, and stay."""
    return name in (*_TOKENIZER, *_OF_ADAPTER, *_OF_MODEL) or _SHARD.fullmatch(name) is not None
