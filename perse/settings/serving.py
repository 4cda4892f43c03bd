"""Settings of a judge server, and the packaged recipes (configs/serve)."""

from __future__ import annotations

import ipaddress
import os
import ssl
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from perse.addresses import header_key
from perse.answering.base import JudgeSettings
from perse.errors import BadInput
from perse.formats.plain_files import refuse_endless
from perse.settings.config import LOCAL, Section, load_settings, packaged_recipes
from perse.strict import Name

KEY = "PERSE_API_KEY"
"""Environment variable that holds the key clients must send; never a setting, so that it is in no file or command line."""

ADMIN_KEY = "PERSE_ADMIN_KEY"
"""The same for the key that may change the server."""

SHORTEST_KEY = 16
"""Characters."""

KEYS_HOLD = "says whose keys the server takes"
READERS_HOLD = "holds what readers wrote"
"""What is told of files that others on the machine get at."""

READERS = "PERSE_READERS"
"""Environment variable with the address of a database that keeps readers: it may hold a password, so it is no setting."""


class Limits(Section):
    """What one process takes; beyond it a request is refused with 503, or 429 where it is its caller's own limit."""

    requests: int = Field(default=256, ge=1)
    """Requests at once, waiting ones among them."""
    at_once: int | None = Field(default=None, ge=1)
    """vLLM: items in the engine at once, which others of their profile may join before the rest; by default what its memory for keys
    and values has room for."""
    items: int = Field(default=4096, ge=1)
    """Items that wait for the engine; also the longest list."""
    body_mb: float = Field(default=32, ge=8, le=4096)
    """MiB of bodies held at once; parsed, they take some twenty times as much memory. One alone may have 8."""
    per_key: int | None = Field(default=None, ge=1)
    """Requests of one key at once; by default no limit but the server's."""
    per_minute: int | None = Field(default=None, ge=1)
    """Requests of one key a minute; by default no limit."""
    batches: int = Field(default=64, ge=1)
    """Batches of one key that are kept, done ones among them."""
    deadline: float = Field(default=540, gt=0, le=86400)
    """Seconds for one request, after which it is given up with 504; below the 600 that clients wait by default."""
    drain: float = Field(default=60, ge=0, le=86400)
    """Seconds that SIGTERM leaves to what is being answered."""


class ServeConfig(Section):
    model: str = Field(min_length=1)
    """A training run, a model folder, an embedded model or a hub name."""
    name: Name | None = None
    """What clients call it; by default the last part of `model`."""
    stacking: Annotated[str | None, LOCAL] = None
    """A file of `perse fit`, which combines the model's answers with numbers; by default the stacking.json beside it, where there is one.
    Adapters have those beside them."""
    no_stacking: bool = False
    """Leave out what lies beside the model and its adapters."""
    adapters: dict[Name, str] = Field(default_factory=dict)
    """LoRA adapters served on the same model: the name clients use, and the adapter's folder or its training run's."""
    adapters_from: Annotated[str | None, LOCAL] = None
    """A folder from which an administrator's key may load further adapters while the server runs (`POST /v1/adapters`)."""
    engine: Literal["auto", "vllm", "transformers"] = "auto"
    """`auto`: vLLM when it is installed, else the embedded engine."""
    host: str = "127.0.0.1"
    """Other machines are let in by another address, such as 0.0.0.0; then PERSE_API_KEY must be set, or `keys`."""
    port: int = Field(default=8000, ge=0, le=65535)
    """0 takes a free one."""
    dtype: Literal["bfloat16", "float16", "float32"] = "bfloat16"
    """Type the model computes in; float32 makes distributions independent of what shares the batch."""
    context: int | None = Field(default=None, ge=64)
    """Longest prompt and answer in tokens; by default what the model was made for."""
    memory_gb: float | None = Field(default=None, gt=0, le=1_000_000)
    """GiB for keys and values: on vLLM by default 4 on a CPU, and on a GPU what vLLM takes; on the embedded engine what its prefix
    caches may keep, by default 2; an adapter that is loaded later keeps as much as one of those that it started with, beside them."""
    keys: Annotated[str | None, LOCAL] = None
    """A file of keys that `perse keys add` wrote; only their digests stand in it."""
    readers: Annotated[str | None, LOCAL] = None
    """A file (SQLite) that keeps readers, so that clients send the new text alone; made if it is not there. Another database: its
    SQLAlchemy URL in PERSE_READERS."""
    batches: Annotated[str | None, LOCAL] = None
    """A folder for batches (`POST /v1/judge/batches`), which are judged when nobody waits and survive a restart; made if it is not there."""
    batches_days: float = Field(default=7, gt=0, le=3650)
    """Days after which the items and answers of a batch that is done are removed."""
    limits: Limits = Limits()
    """What one process takes."""
    certificate: Annotated[str | None, LOCAL] = None
    """A PEM file, to be asked by https; with `certificate_key`."""
    certificate_key: Annotated[str | None, LOCAL] = None
    """The certificate's private key (PEM), without a password."""
    json_log: bool = False
    """One line of JSON for each request, instead of words."""
    temperature: float = Field(default=0.8, ge=0, le=2)
    """Of requests that give none; 0.8 is the paper's (PerSE, section 4.2)."""
    max_new_tokens: int = Field(default=600, ge=1)
    """Tokens of an answer at most, of requests that say nothing else."""
    seed: int = Field(default=0, ge=0)
    """Of the draws of requests that give none."""
    trust_remote_code: bool = False
    """Run code that the model brings; without it none is run, and a model that needs it is refused."""
    vllm: dict[str, Any] = Field(default_factory=dict)
    """Further options of vLLM's server by their own names, as in vllm.tensor_parallel_size=2."""

    @property
    def served_name(self) -> str:
        return self.name or Path(self.model).name or self.model

    @property
    def store(self) -> str | None:
        """Where readers are kept: a file's path, or the address in PERSE_READERS."""
        return self.readers or os.environ.get(READERS) or None

    @property
    def private_files(self) -> list[tuple[Path, str]]:
        """Files that are not for everybody on this machine, as far as they are files, and what each holds."""
        store = self.store.removeprefix("sqlite:///") if self.store else None
        known = [
            (self.keys, KEYS_HOLD),
            (self.certificate_key, "holds the private key of the certificate"),
            (store, READERS_HOLD),
            (store and f"{store}-wal", READERS_HOLD),
        ]
        return [(Path(place), holds) for place, holds in known if place]

    @property
    def stacked_by(self) -> Path | bool:
        """As in `Judge.load`."""
        return Path(self.stacking) if self.stacking else not self.no_stacking

    @property
    def batch_folder(self) -> Path | None:
        return Path(self.batches).absolute() if self.batches else None

    @property
    def more_adapters(self) -> Path | None:
        return Path(os.path.realpath(self.adapters_from)) if self.adapters_from else None

    @property
    def key_file(self) -> Path | None:
        return Path(self.keys) if self.keys else None

    @property
    def answers(self) -> JudgeSettings:
        return JudgeSettings(temperature=self.temperature, max_new_tokens=self.max_new_tokens, seed=self.seed)


def load_config(path: str | Path, overrides: Sequence[str] = ()) -> ServeConfig:
    """The recipe at `path` (or a packaged recipe's name) with `key=value` overrides.

    Raises:
        BadInput: unknown keys, wrong values, missing keys; or a server that others can reach without a key.
    """
    config = load_settings(ServeConfig, path, overrides, recipes=recipes())
    usual, _ = api_key(), admin_key()  # refused here, before a model is loaded
    if not _loopback(config.host) and not (usual or config.keys):
        raise BadInput(
            f"host={config.host} lets other machines in; set {KEY} to the key that they must send (or keys= to a file of keys), or "
            "keep host=127.0.0.1"
        )
    if bool(config.certificate) != bool(config.certificate_key):
        raise BadInput("certificate= and certificate_key= go together; give both, or neither")
    if config.certificate and config.certificate_key:
        check_certificate(config.certificate, config.certificate_key)
    if config.stacking and config.no_stacking:
        raise BadInput("stacking= and no_stacking=true cannot be given together; leave one out")
    if config.readers and os.environ.get(READERS):
        raise BadInput(f"readers= and {READERS} both say where readers are kept; give one, and leave the other out")
    if config.context is not None and config.max_new_tokens >= config.context:
        raise BadInput(
            f"max_new_tokens={config.max_new_tokens} leaves no room in context={config.context}; lower the one or raise the other"
        )
    if config.more_adapters and not config.more_adapters.is_dir():
        raise BadInput(f"adapters_from={config.adapters_from} is no folder; make it, or give one that is there")
    if config.served_name in config.adapters:
        raise BadInput(f"'{config.served_name}' names both the model and an adapter; give the model another with name=")
    return config


def check_certificate(certificate: str, key: str) -> None:
    """Check that https can be served with these files.

    Raises:
        BadInput: one is missing, or is no PEM, or they do not go together, or the key wants a password, which nobody could type.
    """
    for setting, file in (("certificate", certificate), ("certificate_key", key)):
        refuse_endless(Path(file))
        try:
            with Path(file).open("rb"):
                pass
        except OSError as error:
            raise BadInput(f"{setting}={file} cannot be read ({error.strerror}); give a PEM file") from None
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(certificate, key, password=lambda: "")
    except (ssl.SSLError, ValueError) as error:
        why = getattr(error, "reason", None) or type(error).__name__
        raise BadInput(
            f"certificate={certificate} and certificate_key={key} cannot serve https ({why.lower().replace('_', ' ')}); give a "
            "certificate and its own key as PEM, the key without a password"
        ) from None


def recipes() -> dict[str, Path]:
    """The packaged serving recipes by name."""
    return packaged_recipes("serve")


def api_key() -> str | None:
    """The key clients must send, if there is one in the environment.

    Raises:
        BadInput: too short a key to keep anyone out, or one that no header can carry.
    """
    return _key_in(KEY)


def admin_key() -> str | None:
    """The key of whoever may change the server; as `api_key` otherwise."""
    return _key_in(ADMIN_KEY)


def _key_in(variable: str) -> str | None:
    given = os.environ.get(variable)
    key = header_key(given, of=variable) if given else None  # white space alone is too short a key, not none
    if key is not None and len(key) < SHORTEST_KEY:
        raise BadInput(
            f"{variable} has {len(key)} characters; give at least {SHORTEST_KEY}, such as the output of: openssl rand -hex 24"
        )
    return key


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
