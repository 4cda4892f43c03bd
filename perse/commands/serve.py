"""What `python serve.py` and `perse serve` do: read settings, find the model, run the server that this machine has."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from perse.commands.options.training import Overrides, ServingConfig, ShowRecipes, ShowSettings
from perse.commands.terminal import Stopped, err, list_recipes, run_app, say
from perse.errors import BadInput, EngineLost, ServerLost
from perse.secrets import printable

if TYPE_CHECKING:
    from perse.settings.serving import ServeConfig

EXAMPLES = """
Examples:

  python serve.py --config configs/serve/embedded.yaml model=runs/first

  perse serve --config embedded model=smollm2-135m adapters.first=runs/first port=8100

  PERSE_API_KEY=$(openssl rand -hex 24) perse serve --config llama2_7b model=runs/llama host=0.0.0.0
"""


def serve(
    overrides: Overrides = None,
    config: ServingConfig = "embedded",
    show_recipes: ShowRecipes = False,
    show_settings: ShowSettings = False,
) -> None:
    """Serve a judge over HTTP: on vLLM when it is installed, else on the embedded engine."""
    if show_recipes:
        from perse.settings.serving import recipes

        list_recipes(recipes())
        return
    if show_settings:
        from perse.serving.settings_page import settings_page

        typer.echo(settings_page(), nl=False)
        return
    try:
        _serve(overrides or [], config)
    except KeyboardInterrupt:
        raise Stopped("the server has ended, and the same command starts it again") from None


def _serve(overrides: list[str], config: str) -> None:
    from perse.files.privacy import within_reach
    from perse.judging.loading import require_vllm, vllm_installed
    from perse.models.finding import find, find_adapter
    from perse.models.opening import check_adapter, check_model
    from perse.serving.batches.kept import held
    from perse.serving.front.keys import OWNER, Keys
    from perse.serving.readers.store import Readers
    from perse.settings.serving import KEY, admin_key, api_key, load_config, recipes
    from perse.stacking.beside import refuse_damaged

    settings = load_config(config, overrides)
    if settings.key_file:
        usual, admin = api_key(), admin_key()
        Keys(usual, admin, settings.key_file)  # refused before a model is loaded
        if usual:
            say(f"{KEY} is in the environment, so its key is let in too, as '{OWNER}', whatever {settings.key_file} holds")
    if settings.store:
        Readers.open(settings.store).close()
    if settings.batch_folder:
        held(settings.batch_folder).close()
    for warning in within_reach(settings.private_files):
        say(warning)
    if config in recipes() and not any(given.startswith("model=") for given in overrides):
        say(f"no judge was named, so the recipe's is served, {settings.model}; name another with model=PATH")
    on_vllm = settings.engine == "vllm" or (settings.engine == "auto" and vllm_installed())
    if on_vllm:
        require_vllm()
    trust = settings.trust_remote_code
    model = find(settings.model, trust_remote_code=trust).resolve()
    check_model(model, trust_remote_code=trust)
    adapters = {name: find_adapter(path, model).resolve() for name, path in settings.adapters.items()}
    for adapter in adapters.values():
        check_adapter(adapter, base=model, trust_remote_code=trust)
        refuse_damaged([model, adapter], settings.stacked_by is not False)
    refuse_damaged([model], settings.stacked_by)
    port = _free_port(settings.host, settings.port)
    engine = "vLLM" if on_vllm else "the embedded engine"
    address, elsewhere = _addresses(settings.host, port, scheme="https" if settings.certificate else "http")
    err.print(
        f"serving [bold]{escape(printable(', '.join([settings.served_name, *adapters])))}[/bold] on {engine} at {escape(address)} "
        f"(once loaded; try it there, what can be asked: {escape(address)}/docs{escape(elsewhere)})",
        highlight=False,
        soft_wrap=True,
    )
    run = _on_vllm if on_vllm else _embedded
    try:
        run(settings, model, adapters, port)
    except EngineLost as error:  # whoever supervises the server starts another
        raise ServerLost(str(error)) from error


def _on_vllm(settings: ServeConfig, model: Path, adapters: dict[str, Path], port: int) -> None:
    from perse.engines.vllm import engine_options
    from perse.engines.vllm import serve as run
    from perse.models.finding import context_length
    from perse.serving.front.front import log_requests
    from perse.serving.front.stopping import UVICORN
    from perse.serving.plugin import Serving

    longest = context_length(model)
    options = engine_options(
        dtype=settings.dtype,
        context=min(settings.context or longest, longest),
        memory_gb=settings.memory_gb,
        trust_remote_code=settings.trust_remote_code,
    )
    serving = Serving(
        settings.served_name,
        model,
        adapters,
        settings.answers,
        limits=settings.limits,
        keys=settings.key_file,
        more_adapters=settings.more_adapters,
        readers=settings.store,
        batches=settings.batch_folder,
        batches_days=settings.batches_days,
        json_log=settings.json_log,
        certificate=settings.certificate,
        certificate_key=settings.certificate_key,
        trust_remote_code=settings.trust_remote_code,
        stacking=settings.stacked_by,
    )
    log_requests()
    run(serving, host=settings.host, port=port, options=options, extra=settings.vllm, uvicorn=UVICORN)


def _embedded(settings: ServeConfig, model: Path, adapters: dict[str, Path], port: int) -> None:
    from perse.serving.adapters import More
    from perse.serving.batches.kept import Batches
    from perse.serving.embedded import cache_share, embedded_app, embedded_loader, embedded_models, serve_embedded
    from perse.serving.front.front import log_requests
    from perse.serving.readers.store import Readers

    if settings.vllm:
        named = ", ".join(f"vllm.{name}" for name in settings.vllm)
        raise BadInput(f"{named}: vLLM's settings, and the embedded engine was chosen; leave them out")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    readers = Readers.open(settings.store) if settings.store else None
    kept = settings.batch_folder
    batches = Batches(kept, days=settings.batches_days, most=settings.limits.batches) if kept else None
    more = None
    if settings.more_adapters:
        load = embedded_loader(
            model,
            dtype=settings.dtype,
            context=settings.context,
            cache_bytes=cache_share(settings.memory_gb, adapters),
            trust_remote_code=settings.trust_remote_code,
            stacking=settings.stacked_by,
        )
        more = More(settings.more_adapters, model, lambda name, adapter: load(adapter), settings.trust_remote_code)
    models = embedded_models(
        settings.served_name,
        model,
        adapters,
        dtype=settings.dtype,
        context=settings.context,
        cache_gb=settings.memory_gb,
        trust_remote_code=settings.trust_remote_code,
        stacking=settings.stacked_by,
    )
    app = embedded_app(
        models,
        settings.answers,
        limits=settings.limits,
        keys=settings.key_file,
        readers=readers,
        more=more,
        batches=batches,
        json_log=settings.json_log,
    )
    log_requests()
    serve_embedded(
        app, host=settings.host, port=port, certificate=settings.certificate, certificate_key=settings.certificate_key
    )


def _addresses(host: str, port: int, *, scheme: str) -> tuple[str, str]:
    """Where this machine reaches the server; and, where it listens at every address (0.0.0.0, which none can be asked at), where others may."""
    here = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    address = f"{scheme}://[{here}]:{port}" if ":" in here else f"{scheme}://{here}:{port}"
    return (
        address,
        ""
        if here == host
        else f"; from other machines, if they know this one's name: {scheme}://{socket.gethostname()}:{port}",
    )


def _free_port(host: str, port: int) -> int:
    """The port itself if nothing listens there, or a free one for 0.

    Raises:
        BadInput: it is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, TypeError, UnicodeError) as error:  # the last two: a name that no network could carry
            why = error.strerror if isinstance(error, OSError) else "it is no name of a machine"
            raise BadInput(f"cannot listen at {host}:{port}: {why}; give another port= or host=") from None
        return int(probe.getsockname()[1])


def main() -> None:
    """Entry point of serve.py."""
    app = typer.Typer(add_completion=False)  # of a script, which no shell completes
    app.command(epilog=EXAMPLES)(serve)
    run_app(app)
