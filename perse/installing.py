"""How what is missing is installed: which extra brings which module, and the command that fits how this copy of perse came here.

perse-judge is not on the package index (the `perse` there is another project), so a hint names a checkout, a wheel or a
repository.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

from perse.errors import BadInput

DISTRIBUTION = "perse-judge"

EXTRAS: Mapping[str, tuple[str, ...]] = {
    "remote": ("transformers", "tokenizers", "huggingface_hub", "sentencepiece", "google"),
    "serve": (
        "torch",
        "fastapi",
        "gguf",
        "llguidance",
        "peft",
        "prometheus_client",
        "safetensors",
        "sqlalchemy",
        "starlette",
        "uvicorn",
    ),
    "train": ("accelerate", "tensorboard"),
    "cluster": ("bitsandbytes", "deepspeed", "liger_kernel"),
    "vllm": ("vllm",),
    "report": ("bert_score", "matplotlib", "nltk", "sacrebleu"),
    "data": ("bm25s", "rouge_score", "sentence_transformers", "sklearn", "spacy", "sumy"),
    "batch": ("duckdb", "fsspec"),
    "ray": ("ray",),
    "integrations": ("datasets", "evaluate", "inspect_ai"),
}
"""The modules that each extra brings and those before it do not; `report` brings rouge_score, too."""

ENABLES: Mapping[str, str] = {
    "remote": "perse ask and perse score with a vLLM server, from here without torch",
    "serve": "perse ask, perse score and perse serve with a model in this process; perse models",
    "train": "perse train",
    "cluster": "ZeRO, 4-bit bases and fused kernels of perse train",
    "vllm": "judges named vllm:... and perse serve on vLLM, on a GPU",
    "report": "plots of perse report, perse study and perse train; BLEU and BERTScore",
    "data": "perse data per-mpst, persum, evidence and rewriting: names, summaries and relevance in texts; baselines that read texts; roles of perse drpe",
    "batch": "perse score --driver: shards, object stores, more examples than memory holds",
    "ray": "perse score --driver ray",
    "integrations": "the judge as a scorer of inspect_ai, and as a module of evaluate",
}
"""What each extra is for."""


def extra_for(module: str) -> str | None:
    """The smallest extra that brings a module; None for one that no extra brings."""
    top = module.partition(".")[0]
    return next((extra for extra, modules in EXTRAS.items() if top in modules), None)


def install(*extras: str) -> str:
    """The command that adds extras to this copy of perse."""
    wanted = f"[{','.join(extras)}]" if extras else ""
    if root := checkout():
        where = "." if root == Path.cwd() else str(root)
        return f"pip install -e {_quoted(where + wanted)}"
    return f"pip install {_quoted(_source(wanted))}"


@contextmanager
def needing(extra: str) -> Iterator[None]:
    """A module that is missing inside is asked for with `extra`, which the work there needs as a whole.

    Raises:
        BadInput: a module of an extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if extra_for(error.name or "") is None:
            raise
        raise BadInput(f"this needs {error.name}, which is not installed; run: {install(extra)}") from None


def checkout() -> Path | None:
    """The repository that this perse runs from, if it does."""
    root = Path(__file__).resolve().parent.parent
    try:
        told = (root / "pyproject.toml").read_text(encoding="utf-8")
    except OSError:
        return None
    return root if f'name = "{DISTRIBUTION}"' in told else None


def _source(wanted: str) -> str:
    """What pip installed this perse from, by its direct_url.json; without one, the wheel's name."""
    try:
        own = metadata.distribution(DISTRIBUTION)
        told = json.loads(own.read_text("direct_url.json") or "{}")
        version = own.version
    except (metadata.PackageNotFoundError, ValueError):
        from perse.version import __version__ as version

        told = {}
    url = urlsplit(str(told.get("url", "")))
    if url.scheme == "file" and Path(unquote(url.path)).exists():
        return unquote(url.path) + wanted
    if "vcs_info" in told:
        at = told["vcs_info"].get("commit_id", "")
        host = url.netloc.rpartition("@")[2]  # a name or a key before the host is not repeated
        return f"{DISTRIBUTION}{wanted} @ {told['vcs_info'].get('vcs', 'git')}+{url.scheme}://{host}{url.path}" + (
            f"@{at}" if at else ""
        )
    return f"perse_judge-{version}-py3-none-any.whl{wanted}"


def _quoted(text: str) -> str:
    return shlex.quote(text) if os.name == "posix" else f'"{text}"'
