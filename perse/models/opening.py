"""The one place where models, tokenizers and adapters are opened: no code of theirs is run, and what cannot be used is said at once.

What comes with a model is data: weights are read from safetensors files alone, never from pickles, and code that a folder
brings (`auto_map`, `custom_generate/`) is not run unless the user says `trust_remote_code`. The configuration decides what is built and
computed, so it is first tried in a child process of little time and memory, on the meta device: there the library itself says which
tensors it wants and which the files have. Costs a few hundredths of a second for a small model, about one for a large one.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perse.bounded import Exceeded, Failed, Stalled, bounded, first_line
from perse.errors import BadInput, PerseError
from perse.formats import json_text
from perse.models import model_files as files
from perse.models.model_files import Stamp
from perse.models.tokenizer_files import check_tokenizer_files
from perse.secrets import HARMLESS

log = logging.getLogger(__name__)

SECONDS = 20
"""Of one processor, for building the largest models on the meta device."""
MEGABYTES = 4096
_COPY = "fetch or copy it again"
_LAYER = re.compile(r"\.(?:layers|h|blocks?)\.\d+\.")


@dataclass(frozen=True)
class Told:
    """Facts of a model's configuration, such as the rows of its embeddings."""

    vocabulary: int | None


def check_model(folder: Path, *, trust_remote_code: bool = False) -> None:
    """Look whether the causal language model in `folder` can be loaded as it is.

    Raises:
        BadInput: a file is damaged or no data, the configuration is of another model than the weights, or code would be run.
    """
    seen = files.stamp(folder)
    files.model_config(folder)
    files.model_tensors(folder)
    if not trust_remote_code:
        _fits(seen)


def config(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The configuration of the model in `folder`.

    Raises:
        BadInput: it cannot be used.
    """
    if not trust_remote_code:
        _told(files.stamp(folder))
    with one_sentence(f"the configuration of {folder}"):
        return _read(folder, trust_remote_code=trust_remote_code)


def buildable(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The configuration of the model in `folder`, of which a model can be built; its weights need not be there.

    Raises:
        BadInput: it cannot be used.
    """
    found = config(folder, trust_remote_code=trust_remote_code)
    if not trust_remote_code:
        _builds(files.stamp(folder))
    return found


def tokenizer(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The tokenizer in `folder`.

    Raises:
        BadInput: it cannot be used, or is that of another model than the one in the folder.
    """
    from transformers import AutoTokenizer

    seen = files.stamp(folder)
    named = {name for name, _, _ in seen.files}
    check_tokenizer_files(folder, named)
    told = _told(seen) if files.CONFIG in named and not trust_remote_code else Told(None)
    with one_sentence(f"the tokenizer of {folder}"):
        opened: Any = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=trust_remote_code, local_files_only=True)
        _check_vocabulary(opened, told.vocabulary, folder)
    return opened


def causal_lm(folder: Path, *, trust_remote_code: bool = False, **options: Any) -> Any:
    """The causal language model in `folder`.

    Args:
        options: of transformers' `from_pretrained`, as `dtype`.
    Raises:
        BadInput: it cannot be used.
    """
    from transformers import AutoModelForCausalLM
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # loading takes a second
    check_model(folder, trust_remote_code=trust_remote_code)
    with one_sentence(f"the model {folder}"):
        read = _read(folder, trust_remote_code=trust_remote_code)
        return AutoModelForCausalLM.from_pretrained(folder, config=read, **_safe(trust_remote_code), **options)


def from_gguf(file: Path, **options: Any) -> tuple[Any, Any]:
    """Model and tokenizer of a GGUF file whose digest is known; what it holds is not looked at."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    place = {"gguf_file": file.name, "trust_remote_code": False}
    return AutoModelForCausalLM.from_pretrained(file.parent, **place, **options), AutoTokenizer.from_pretrained(
        file.parent, **place
    )


def with_adapter(model: Any, folder: Path, *, base: Path, trust_remote_code: bool = False) -> Any:
    """`model`, opened from the folder `base`, with the LoRA adapter in `folder` on it, not merged.

    Raises:
        BadInput: it cannot be used, or was made for another model.
    """
    from peft import PeftModel

    check_adapter(folder, base=base, trust_remote_code=trust_remote_code)
    with one_sentence(f"the adapter {folder}"):
        return PeftModel.from_pretrained(model, str(folder))


def check_adapter(folder: Path, *, base: Path, trust_remote_code: bool = False) -> None:
    """Look whether the LoRA adapter in `folder` fits the model in `base`.

    Raises:
        BadInput: it is damaged, or its tensors are not those that its settings ask for on this model.
    """
    seen = files.stamp(folder)
    files.adapter_config(folder)
    files.adapter_tensors(folder)
    if not trust_remote_code:
        _adapter_fits(seen, files.stamp(base))
    _adapter_is_finite(seen)


def check_for_others(folder: Path) -> None:
    """Look whether a library that opens models in its own way can be given the one in `folder`: it brings no code and no pickles.

    Raises:
        BadInput: it does, or is damaged.
    """
    seen = files.stamp(folder)
    files.model_tensors(folder)
    _told(seen)
    for name in ("config.json", "tokenizer_config.json"):
        if (folder / name).exists() and "auto_map" in files.read_object(folder / name, remedy=_COPY):
            raise _unusable(f"the model {folder}", "custom code")


def sequence_to_sequence(folder: Path, **options: Any) -> tuple[Any, Any]:
    """Tokenizer and encoder-decoder in `folder`, such as BARTScore asks.

    Raises:
        BadInput: they cannot be used.
    """
    from transformers import AutoModelForSeq2SeqLM

    files.model_tensors(folder)
    read = tokenizer(folder)
    with one_sentence(f"the model {folder}"):
        return read, AutoModelForSeq2SeqLM.from_pretrained(folder, **_safe(False), **options)


def sentence_embeddings(name: str) -> Any:
    """A sentence-transformers model, by folder or hub name, on the CPU.

    Raises:
        BadInput: it cannot be used.
    """
    if not name.strip():
        raise BadInput("the embedding model has no name; give --embedding-model a folder or a hub name")
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

    if Path(name).is_dir():
        check_embedding_model(Path(name))
    with one_sentence(f"the embedding model '{name}'", remedy="give --embedding-model FOLDER"):
        opened = SentenceTransformer(name, device="cpu", trust_remote_code=False, model_kwargs={"use_safetensors": True})
        read = getattr(opened, "tokenizer", None)
    if isinstance(read, PreTrainedTokenizerBase) and {*read.get_vocab()} <= {*read.all_special_tokens}:
        raise BadInput(f"the tokenizer of the embedding model '{name}' knows no words, as where its files are missing; {_COPY}")
    return opened


def check_embedding_model(folder: Path) -> None:
    """Look whether a sentence-transformers model in a folder is made of the library's own modules, in it and in safetensors files.

    Its `modules.json` names classes to import, and some versions of the library (5) import those of a local folder unasked.

    Raises:
        BadInput: a file cannot be read, or a module is something else.
    """
    files.stamp(folder)
    listing = folder / "modules.json"
    if not listing.exists():
        _refuse_larger(folder)
        return
    modules = json_text.read_json(listing, remedy=_COPY)
    if not isinstance(modules, list) or not all(isinstance(one, dict) for one in modules):
        raise BadInput(f"{listing} is no list of modules; {_COPY}")
    for one in modules:
        kind, place = one.get("type"), one.get("path", "")
        if not isinstance(kind, str) or not kind.startswith("sentence_transformers."):
            raise BadInput(
                f"{listing} names the module {json_text.shortened(kind)}, code of its own, which is not run; take a model of "
                "sentence_transformers' own modules"
            )
        if not isinstance(place, str) or Path(place).is_absolute() or ".." in Path(place).parts:
            raise BadInput(f"{listing} names the path {json_text.shortened(place)}, which leads out of the folder; {_COPY}")
        if (pickle := folder / place / "pytorch_model.bin").exists() and not (folder / place / files.WEIGHTS).exists():
            raise BadInput(
                f"{pickle} is a pickle, which can hold code, and no {files.WEIGHTS} is beside it; take a version in safetensors files"
            )
        if kind.endswith(".Transformer"):
            _refuse_larger(folder / place)


def _refuse_larger(folder: Path) -> None:
    """Refuse a model that is configured to be larger than its weights, if both are there: of a billion layers it would be built without end."""
    if (folder / files.CONFIG).is_file() and (folder / files.WEIGHTS).is_file():
        _refuse_excess(files.model_config(folder), files.model_tensors(folder), folder)


def _safe(trust_remote_code: bool) -> dict[str, Any]:
    return {"trust_remote_code": trust_remote_code, "use_safetensors": True, "local_files_only": True}


@lru_cache(maxsize=64)
def _told(seen: Stamp) -> Told:
    """A folder's config.json, after transformers has read it within bounds."""
    folder = seen.folder
    found = files.model_config(folder)
    for section in (found, found.get("text_config")):
        if isinstance(section, dict):
            _refuse_kernels(section, folder)
    return Told(_tried(lambda: _vocabulary_of(folder), f"the configuration of {folder}"))


def _read(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """A folder's configuration but for how attention is computed: that is of the machine, and some name a package that this one lacks."""
    from transformers import AutoConfig

    found: Any = AutoConfig.from_pretrained(folder, trust_remote_code=trust_remote_code, local_files_only=True)
    found._attn_implementation = None
    return found


def _vocabulary_of(folder: Path) -> int | None:
    rows = getattr(_read(folder).get_text_config(), "vocab_size", None)
    return rows if isinstance(rows, int) else None


@lru_cache(maxsize=64)
def _fits(seen: Stamp) -> None:
    """Compare the tensors of a folder's configuration with those that are there."""
    _told(seen)
    folder = seen.folder
    shapes = files.model_tensors(folder)
    config = files.model_config(folder)
    for section in (config, config.get("text_config")):
        if isinstance(section, dict):
            _refuse_excess(section, shapes, folder)
    told = _tried(lambda: _compared(folder), f"the model {folder}", prepare=config["model_type"])
    if told["parameters"] > 32 * sum(map(math.prod, shapes.values())):  # even of 1 bit, packed in words
        raise BadInput(f"{folder} is configured for {told['parameters']:,} parameters, many more than its files hold; {_COPY}")
    for name, found, wanted in told["mismatched"]:
        raise BadInput(
            f"the weights of {folder} do not fit its {files.CONFIG}: {name} has shape {found}, expected {wanted} "
            f"({len(told['mismatched'])} in all); {_COPY}"
        )
    for name in told["missing"]:
        raise BadInput(f"{folder} lacks the weights {name} ({len(told['missing'])} in all); {_COPY}")
    for name in filter(_LAYER.search, told["unexpected"]):
        raise BadInput(f"{folder} has weights that its {files.CONFIG} leaves out, such as {name}; {_COPY}")
    if told["unexpected"]:
        log.warning("%s has weights that the model does not use, such as %s", folder, told["unexpected"][0])


@lru_cache(maxsize=64)
def _builds(seen: Stamp) -> None:
    """Build the model that a folder's configuration asks for, without weights."""
    folder = seen.folder
    _tried(lambda: _built(folder), f"the configuration of {folder}", prepare=files.model_config(folder)["model_type"])


def _built(folder: Path) -> int:
    import torch
    from transformers import AutoModelForCausalLM

    make: Any = AutoModelForCausalLM.from_config
    with torch.device("meta"):
        return _parameters(make(_read(folder), trust_remote_code=False))


def _refuse_excess(config: dict[str, Any], shapes: files.Shapes, folder: Path) -> None:
    """Refuse, before it is built, a configuration that cannot fit the number and size of the tensors."""
    widest = max((size for shape in shapes.values() for size in shape), default=0)
    most = dict.fromkeys(("num_hidden_layers", "num_layers", "n_layer", "n_layers"), len(shapes))
    most |= dict.fromkeys(("head_dim", "hidden_size", "intermediate_size", "vocab_size"), widest)
    for key, limit in most.items():
        value = config.get(key)
        if isinstance(value, int) and value > limit:
            raise BadInput(
                f"{folder / files.CONFIG} has {key} {value}, which its weights cannot have ({len(shapes)} tensors, the widest {widest}); {_COPY}"
            )


def _compared(folder: Path) -> dict[str, Any]:
    """The tensors that the library would load, by name and shape; of a quantized model only the number of parameters."""
    import torch
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    config = _read(folder)
    if getattr(config, "quantization_config", None) is not None:
        return {"parameters": _built(folder), "mismatched": [], "missing": [], "unexpected": []}
    if type(config) not in MODEL_FOR_CAUSAL_LM_MAPPING:
        raise ValueError(f"Unrecognized configuration class {type(config).__name__} for a causal language model")
    kind: Any = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)]
    if kind.config_class is config.sub_configs.get("text_config"):  # of a model of pictures, the text's part
        config = config.get_text_config()
    # By name and shape alone: mapping the files, which hold more than the memory that there is here, would be refused.
    named = {name: torch.empty(shape, device="meta") for name, shape in files.model_tensors(folder).items()}
    _, told = kind.from_pretrained(
        None,
        config=config,
        state_dict=named,
        device_map={"": "meta"},
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    if told["error_msgs"]:
        raise ValueError(str(told["error_msgs"][0]))
    return {
        "parameters": 0,
        "mismatched": sorted((str(name), list(found), list(wanted)) for name, found, wanted in told["mismatched_keys"]),
        "missing": sorted(map(str, told["missing_keys"])),
        "unexpected": sorted(map(str, told["unexpected_keys"])),
    }


def _parameters(model: Any) -> int:
    return sum(each.numel() for each in model.parameters())


@lru_cache(maxsize=64)
def _adapter_fits(seen: Stamp, base: Stamp) -> None:
    _told(base)
    folder = seen.folder
    shapes = files.adapter_tensors(folder)
    kind = files.model_config(base.folder)["model_type"]
    told = _tried(lambda: _adapter_shapes(folder, base.folder), f"the adapter {folder}", prepare=kind)
    wanted = {name: tuple(shape) for name, shape in told.items()}
    fault = f"the adapter {folder} does not fit the model {base.folder}"
    remedy = "give the model that it was trained on"
    for name in sorted(shapes.keys() & wanted.keys()):
        if shapes[name] != wanted[name]:
            raise BadInput(f"{fault}: {name} has shape {[*shapes[name]]}, expected {[*wanted[name]]}; {remedy}")
    for name in sorted(wanted.keys() - shapes.keys()):
        raise BadInput(f"{fault}: it lacks the weights {name} ({len(wanted.keys() - shapes.keys())} in all); {remedy}")
    extra = sorted(name for name in shapes.keys() - wanted.keys() if "embed_tokens" not in name and "lm_head" not in name)
    for name in extra:
        raise BadInput(
            f"{fault}: it has weights for {name} ({len(extra)} in all), which its settings or the model leave out; {remedy}"
        )


@lru_cache(maxsize=16)
def _adapter_is_finite(seen: Stamp) -> None:
    from safetensors.torch import load_file

    for name, held in load_file(seen.folder / files.ADAPTER_WEIGHTS).items():
        if held.is_floating_point() and not bool(held.isfinite().all()):
            raise BadInput(f"the adapter {seen.folder} has weights that are not finite ({name}); {_COPY}")


def _adapter_shapes(folder: Path, base: Path) -> dict[str, list[int]]:
    """The tensors that an adapter's settings ask for on a model."""
    import torch
    from peft import PeftConfig, PeftModel, get_peft_model_state_dict
    from transformers import AutoModelForCausalLM

    make: Any = AutoModelForCausalLM.from_config
    with torch.device("meta"):
        model = make(_read(base), trust_remote_code=False)
        settings = PeftConfig.from_pretrained(str(folder))
        settings.inference_mode = True
        adapted = PeftModel(model, settings, low_cpu_mem_usage=True)
    return {name: list(each.shape) for name, each in get_peft_model_state_dict(adapted, save_embedding_layers=False).items()}


def _tried(work: Callable[[], Any], what: str, *, prepare: str | None = None) -> Any:
    """What `work` finds, which reads a stranger's settings, in a child process.

    Args:
        prepare: a kind of model whose code is imported before, so that every child finds it.
    Raises:
        BadInput: it fails, takes too much, or comes to no end.
    """
    if prepare is not None:
        _import_code_of(prepare)
    else:  # what reads any configuration: imported by the child alone, seconds would be spent a second time here
        import transformers.models.auto.auto_factory  # noqa: F401
    try:
        return bounded(work, seconds=SECONDS, megabytes=MEGABYTES)
    except Failed as error:
        raise _unusable(what, str(error)) from None
    except Exceeded as error:
        raise BadInput(f"{what} cannot be used: to build what it asks for, {error}; {_COPY}") from None
    except Stalled as error:
        raise BadInput(f"{what} could not be looked at: {error}") from None


def _import_code_of(kind: str) -> None:
    import accelerate  # noqa: F401
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

    if kind in CONFIG_MAPPING:
        MODEL_FOR_CAUSAL_LM_MAPPING.get(CONFIG_MAPPING[kind], None)


def _refuse_kernels(config: dict[str, Any], folder: Path) -> None:
    """Attention, or experts, named by a repository would be fetched from the hub and run."""
    for key in ("attn_implementation", "_attn_implementation", "experts_implementation", "_experts_implementation"):
        for value in _leaves(config.get(key)):
            if isinstance(value, str) and "/" in value:
                raise BadInput(
                    f"{folder / files.CONFIG} has {key} {value!r}, code from the hub, which is not run; remove that line"
                )


def _leaves(value: Any) -> Iterator[Any]:
    yield from value.values() if isinstance(value, dict) else [value]


def _check_vocabulary(opened: Any, rows: int | None, folder: Path) -> None:
    """Refuse a tokenizer with words, or ends, that the model's embeddings do not have. Other special tokens, such as for padding or a picture, are
    in no prompt, and some published models have no rows for them."""
    if rows is None:
        return
    words = [number for number, token in opened.added_tokens_decoder.items() if not token.special]
    ends = [each for each in (opened.eos_token_id, opened.bos_token_id) if each is not None]
    highest = max([opened.vocab_size - 1, *ends, *words])
    if highest >= rows:
        raise BadInput(
            f"the tokenizer of {folder} is that of another model: it has tokens up to {highest}, and the model's vocabulary has {rows}; "
            "put the model's own tokenizer files beside its weights"
        )


_OURS = ("torch", "transformers", "peft", "accelerate", "safetensors", "tokenizers", "perse")


@contextmanager
def one_sentence(what: str, *, remedy: str = _COPY) -> Iterator[None]:
    """Whatever a library raises at a stranger's file is about that file; what it logs of it moves no cursor.

    Raises:
        BadInput: its first line.
    """
    for handler in logging.getLogger("transformers").handlers:  # its log does not reach ours
        handler.addFilter(HARMLESS)
    try:
        yield
    except (PerseError, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package in _OURS or not package:  # the extra that brings it is told elsewhere
            raise
        raise BadInput(
            f"{what} asks for the package '{package}', which is not installed; install it, or take another model"
        ) from error
    except BaseException as error:  # among them the panics of tokenizers, which are no Exception
        raise _unusable(what, first_line(error), remedy=remedy) from error


def _unusable(what: str, why: str, *, remedy: str = _COPY) -> BadInput:
    if "custom code" in why or "trust_remote_code" in why:
        return BadInput(
            f"{what} brings code of its own, which is not run; if you have read it and trust it, say so (--trust-remote-code, or "
            "trust_remote_code=true in a recipe), else take a model that transformers knows"
        )
    if "weights_only" in why:  # torch goes on to advise reading it all the same
        why = "a pickle in it holds more than tensors, which could be code, and is not read"
    return BadInput(f"{what} cannot be used ({why}); {remedy}")
