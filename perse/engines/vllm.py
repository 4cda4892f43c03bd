"""vLLM, in this process and inside its own server: the only module of perse that imports it.

Exact label distributions take one request of at most two steps a prompt (see `labels`), read from raw log-probabilities, so
that neither a temperature nor a mask touches them; that vLLM was started so is checked. Every request of ours asks for its
log-probabilities by token id: vLLM 0.32 gives -inf to others that share a batch with such a request. Written for 0.32.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import multiprocessing
import multiprocessing.connection
import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from importlib.metadata import distributions
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # its warnings concern its own developers; set it to INFO to see all

from vllm import LLM, SamplingParams, __version__
from vllm.config import StructuredOutputsConfig
from vllm.engine.protocol import EngineClient
from vllm.entrypoints.openai.models.protocol import LoRAModulePath
from vllm.exceptions import VLLMError
from vllm.inputs import TokensPrompt
from vllm.lora.request import LoRARequest
from vllm.outputs import RequestOutput
from vllm.platforms import current_platform
from vllm.sampling_params import RequestOutputKind, StructuredOutputsParams
from vllm.v1.engine.exceptions import EngineDeadError
from vllm.v1.engine.llm_engine import LLMEngine

from perse.engines.base import Capabilities, Failure, Generation, LabelDistribution, Sampling
from perse.engines.calls import Calls
from perse.engines.completions import Completion, distribution_of, generation_of
from perse.engines.labels import Read, reads
from perse.engines.orphans import end_engines_with_us
from perse.errors import BadInput, EngineLost
from perse.formats.json_text import read_object
from perse.rendering.prompt import Ids, LabelTokens
from perse.secrets import redact

BATCH = 256
"""Prompts given at once: enough to keep vLLM's continuous batching full."""

RANKS = (8, 16, 32, 64, 128, 256, 320, 512)
"""Adapter ranks that vLLM makes room for; it takes the next larger one."""

LORAS = 2
"""Adapters whose prompts vLLM works on together, of those that it has room for: as many shards are under way."""

VERSION = str(__version__)
OURS = {
    "model": "model=",
    "tokenizer": "model=",
    "served_model_name": "name=",
    "host": "host=",
    "port": "port=",
    "uds": "host= and port=",
    "dtype": "dtype=",
    "max_model_len": "context=",
    "enable_lora": "adapters.NAME=",
    "lora_modules": "adapters.NAME=",
    "trust_remote_code": "trust_remote_code=true",
    "api_key": "PERSE_API_KEY in the environment",
    "hf_token": "HF_TOKEN in the environment",
    "middleware": "nothing: the guard stands there",
    "allowed_origins": "nothing: no page of elsewhere may ask",
    "ssl_certfile": "certificate=",
    "ssl_keyfile": "certificate_key=",
    "disable_uvicorn_access_log": "json_log=",
    "logprobs_mode": "nothing: distributions are read from raw log-probabilities",
}
"""Options of vLLM's server that would make ours untrue, and what to use instead."""

PLUGINS = "vllm.endpoint_plugins"
RAW = "raw_logprobs"
REFUSALS = (VLLMError, ValueError)
"""Errors of vLLM for one prompt, after which its engine lives on. But `EngineDeadError` is one of them by its class: it is looked for first."""


@dataclass(frozen=True)
class Request:
    """One prompt for vLLM."""

    ids: Ids
    params: SamplingParams
    lora: LoRARequest | None = None


Answered = Future[Completion | Failure]

Run = Callable[[Sequence[Request]], list[Completion | Failure]]
"""Answers requests in their order."""


class VLLMEngine:
    """Exact judging with a model that vLLM runs; `run` is how it is reached.

    Raises:
        BadInput: vLLM was started with processed log-probabilities, from which nothing can be read exactly.
    """

    capabilities = Capabilities(accepts_token_ids=True, exact_distribution=True, json_schema=True, batch=BATCH)

    def __init__(self, run: Run, vllm_config: Any, *, at_once: int = 0, lora: LoRARequest | None = None) -> None:
        mode = vllm_config.model_config.logprobs_mode
        if mode != RAW:
            raise BadInput(f"vLLM runs with --logprobs-mode {mode}; exact distributions need {RAW}, its default")
        self._run = run
        self._config = vllm_config
        self._lora = lora
        self.capabilities = replace(self.capabilities, at_once=at_once)
        self._trust = bool(getattr(vllm_config.model_config, "trust_remote_code", False))
        self._dtype, self._head = (
            str(kind).removeprefix("torch.") for kind in (vllm_config.model_config.dtype, vllm_config.model_config.head_dtype)
        )

    @classmethod
    def load(
        cls,
        path: Path,
        *,
        adapter: Path | None,
        dtype: str,
        context: int,
        memory_gb: float | None = None,
        tensor_parallel: int = 1,
        others: Sequence[Path] = (),
        trust_remote_code: bool = False,
    ) -> VLLMEngine:
        """The model in folder `path`, with a LoRA adapter where one is given, in an engine of its own.

        Args:
            memory_gb: GiB for keys and values; by default 4 on a CPU (or VLLM_CPU_KVCACHE_SPACE), and on a GPU what vLLM takes.
            tensor_parallel: GPUs over which the model is split.
            others: adapters that `with_adapter` will be called for.
        Raises:
            BadInput: there are fewer, or vLLM cannot start with the model.
        """
        seen = current_platform.device_count() if current_platform.is_cuda_alike() else tensor_parallel
        if seen < tensor_parallel:
            raise BadInput(
                f"the model is to be split over {tensor_parallel} GPUs, and this process sees {seen}; split it over fewer"
            )
        options: dict[str, Any] = engine_options(
            dtype=dtype, context=context, memory_gb=memory_gb, trust_remote_code=trust_remote_code
        )
        options["tensor_parallel_size"] = tensor_parallel
        lora = lora_request(adapter) if adapter else None
        if given := [*([adapter] if adapter else []), *others]:
            options |= {"enable_lora": True, "max_lora_rank": rank_room(given), "max_loras": min(len(given), LORAS)}
        end_engines_with_us()
        ours = set(multiprocessing.active_children())
        try:
            llm = LLM(str(path), **options, disable_log_stats=True)
        except (RuntimeError, ValueError) as error:  # what its own process has said stands above
            why = " ".join(redact(str(error)).split())[:300]
            raise BadInput(
                f"vLLM could not start with {path} ({why}); see what it says above, or load the model without vLLM"
            ) from None
        theirs = [process for process in multiprocessing.active_children() if process not in ours]
        return cls(Offline(llm, theirs), llm.llm_engine.vllm_config, at_once=BATCH, lora=lora)

    def with_adapter(self, adapter: Path) -> VLLMEngine:
        """The same engine, asked with an adapter of `others`."""
        return VLLMEngine(self._run, self._config, at_once=self.capabilities.at_once, lora=lora_request(adapter))

    @property
    def settings(self) -> dict[str, str]:
        return {
            "engine": "vllm",
            "version": VERSION,
            "dtype": self._dtype,
            "head_dtype": self._head,
            "device": current_platform.device_type,
            **({"trust_remote_code": "true"} if self._trust else {}),
        }

    def label_distributions(self, prefixes: Sequence[Ids], support: LabelTokens) -> list[LabelDistribution | Failure]:
        plan = reads(support)
        asked = [Request(prefix + support.stem + read.node, _reading(read), self._lora) for prefix in prefixes for read in plan]
        outputs = iter(self._run(asked))
        return [distribution_of(support, plan, [next(outputs) for _ in plan]) for _ in prefixes]

    def generate(self, prompts: Sequence[Ids], sampling: Sampling, *, seeds: Sequence[int]) -> list[Generation | Failure]:
        asked = [Request(ids, _writing(sampling, seed), self._lora) for ids, seed in zip(prompts, seeds, strict=True)]
        return [generation_of(answer, sampling) for answer in self._run(asked)]


def engine_options(*, dtype: str, context: int, memory_gb: float | None, trust_remote_code: bool) -> dict[str, Any]:
    """The options of every vLLM that we start."""
    options: dict[str, Any] = {
        "dtype": dtype,
        "max_model_len": context,
        "trust_remote_code": trust_remote_code,
        "enable_prefix_caching": True,
        "logprobs_mode": RAW,
        "max_logprobs": 20,
        # Free white space lets a small model write nothing else; vLLM ignores this wish in a request.
        "structured_outputs_config": StructuredOutputsConfig(backend="xgrammar", disable_any_whitespace=True),
    }
    if dtype != "float32":
        options["hf_overrides"] = {"head_dtype": "float32"}  # as the embedded engine has it, and why
    if current_platform.is_cpu():
        options["enforce_eager"] = True  # compiling costs a minute and gains nothing on a CPU
        # A seeded request whose prompt is computed in chunks kills vLLM 0.32's engine on a CPU: its generators have no offset.
        options |= {"enable_chunked_prefill": False, "max_num_batched_tokens": max(4096, context)}
        if "VLLM_CPU_KVCACHE_SPACE" not in os.environ:
            memory_gb = memory_gb or 4  # without a bound vLLM would take half of all memory
    if memory_gb:
        options["kv_cache_memory_bytes"] = int(memory_gb * 1024**3)
    return options


def lora_request(adapter: Path) -> LoRARequest:
    """An adapter for an engine of our own, named by its weights: vLLM keeps prefixes by adapter name, also over a change of weights."""
    from perse.models.finding import weights_digest

    digest = weights_digest(adapter)
    return LoRARequest(digest[:16], 1 + int(digest[:7], 16), str(adapter))


def served_lora(name: str, adapter: Path, *, number: int, most: int) -> LoRARequest:
    """An adapter for vLLM's server, under the name that clients ask for and `/v1/models` lists. vLLM keeps prefixes by that name, so
    it must not have been another adapter's in this server's life.

    Args:
        number: of no other adapter of the server.
        most: the largest rank for which the engine has made room.
    Raises:
        BadInput: it is of a larger one.
    """
    if (rank := rank_room([adapter])) > most:
        raise BadInput(
            f"the adapter {adapter.name} needs room for rank {rank}, and this server has some for {most}; start it with "
            f"vllm.max_lora_rank={rank}"
        )
    return LoRARequest(name, number, str(adapter))


def rank_room(adapters: Sequence[Path]) -> int:
    """The smallest rank vLLM makes room for that holds every adapter.

    Raises:
        BadInput: an adapter that vLLM cannot serve: DoRA, or a rank beyond the largest.
    """
    largest = 0
    for adapter in adapters:
        config = read_object(adapter / "adapter_config.json", remedy="give an adapter that peft wrote")
        if config.get("use_dora"):
            raise BadInput(
                f"{adapter} is a DoRA adapter, which vLLM does not serve; serve the training run, whose merged model holds it"
            )
        largest = max(largest, config["r"])
    room = next((rank for rank in RANKS if rank >= largest), None)
    if room is None:
        raise BadInput(f"an adapter has rank {largest}; vLLM serves at most {RANKS[-1]}; serve the merged model")
    return room


def _reading(read: Read) -> SamplingParams:
    forced = {} if read.force is None else {"allowed_token_ids": [read.force], "ignore_eos": True}
    return SamplingParams(
        temperature=0,
        max_tokens=len(read.nodes),
        logprob_token_ids=list(read.tokens),
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
        **forced,
    )


def _writing(sampling: Sampling, seed: int) -> SamplingParams:
    return SamplingParams(
        temperature=sampling.temperature,
        max_tokens=sampling.max_new_tokens,
        stop_token_ids=sorted(sampling.stop_ids),
        seed=seed,
        logprob_token_ids=[0],  # the token that was written comes with it
        detokenize=False,
        output_kind=RequestOutputKind.FINAL_ONLY,
        structured_outputs=StructuredOutputsParams(json=dict(sampling.schema)) if sampling.schema else None,
    )


def _completion(output: RequestOutput) -> Completion:
    written = output.outputs[0]
    steps = tuple({token: told.logprob for token, told in step.items()} for step in written.logprobs or ())
    ids = tuple(written.token_ids)
    logprobs = tuple(step[token] for token, step in zip(ids, steps, strict=True))
    return Completion(ids, logprobs, steps, str(written.finish_reason), output.num_cached_tokens or 0)


_WATCH = """
import contextlib, os, signal, sys
engines = [os.pidfd_open(int(number)) for number in sys.argv[1:]]
sys.stdin.read()
for engine in engines:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(engine, signal.SIGKILL)
"""


def _end_with_us(processes: Sequence[int | None]) -> subprocess.Popen[bytes] | None:
    """Have these processes end when this one does, however (see `orphans`), where vLLM forked them.

    Returns:
        The read end of a pipe that closes with this process, or once the returned object is dropped; None if impossible.
    """
    if sys.platform != "linux" or not processes:
        return None
    watch = [sys.executable, "-ISc", _WATCH, *map(str, processes)]
    nowhere, pipe = subprocess.DEVNULL, subprocess.PIPE
    return subprocess.Popen(watch, stdin=pipe, stdout=nowhere, stderr=nowhere, start_new_session=True)


def _wake_when_gone(engine: LLMEngine, processes: Sequence[BaseProcess]) -> None:
    """Have whoever waits for this engine's output told when one of its processes ends.

    Of an engine that fails by itself vLLM says so; for the output of one that was killed from outside, by the system that is out of memory for one, it waits
    for ever (0.32.0: its monitor ends the thread that would bring the error).
    """
    outputs = getattr(engine.engine_core, "outputs_queue", None)
    if outputs is None or not processes:
        return
    sentinels = [process.sentinel for process in processes]

    def wait() -> None:
        multiprocessing.connection.wait(sentinels)
        outputs.put_nowait(EngineDeadError())

    threading.Thread(target=wait, daemon=True).start()


class Offline:
    """vLLM's engine in this process, for calls from several threads: an answer is back when it is ready, whatever else is still
    written. One thread steps the engine, while there is something to answer."""

    def __init__(self, llm: LLM, processes: Sequence[BaseProcess]) -> None:
        self._engine = llm.llm_engine
        self._watch = _end_with_us([process.pid for process in processes])  # held, for the pipe
        _wake_when_gone(self._engine, processes)
        self._gone: EngineDeadError | None = None
        self._lock = threading.Lock()
        self._new: list[tuple[Request, Answered]] = []
        self._stepping = False

    def __call__(self, requests: Sequence[Request]) -> list[Completion | Failure]:
        asked = [(request, Answered()) for request in requests]
        with self._lock:
            if self._gone is not None:
                raise _lost(self._gone)
            self._new += asked
            if not self._stepping:
                self._stepping = True
                threading.Thread(target=self._answer, daemon=True).start()
        return [answered.result() for _, answered in asked]

    def _answer(self) -> None:
        running: dict[str, tuple[Request, Answered]] = {}
        while True:
            with self._lock:
                new, self._new = self._new, []
                if not new and not running:
                    self._stepping = False
                    return
            try:
                if self._gone is not None:
                    raise self._gone
                for one in new:
                    self._add(one, running)
                self._step(running)
            except BaseException as error:  # noqa: BLE001  # raised again by `result`, for each that waits
                begun = [*running.values()]
                if _of_one_prompt(error):  # but raised for all
                    with contextlib.suppress(EngineDeadError):  # each is then told so
                        self._engine.abort_request([*running])
                    running.clear()
                    for one in begun:
                        self._alone(one)
                    continue
                with self._lock:
                    self._gone = error if isinstance(error, EngineDeadError) else self._gone
                for _, answered in (*begun, *(one for one in new if not one[1].done())):
                    if not answered.done():
                        answered.set_exception(_lost(error))
                running.clear()

    def _add(self, one: tuple[Request, Answered], running: dict[str, tuple[Request, Answered]]) -> None:
        request, answered = one
        name = f"perse-{uuid.uuid4().hex}"
        try:
            prompt = TokensPrompt(prompt_token_ids=list(request.ids))
            self._engine.add_request(name, prompt, request.params, lora_request=request.lora)
        except REFUSALS as error:
            if not _of_one_prompt(error):
                raise
            answered.set_result(Failure(f"vLLM refused the prompt: {error}"))
        else:
            running[name] = one

    def _step(self, running: dict[str, tuple[Request, Answered]]) -> None:
        if not running:
            return
        for output in self._engine.step():
            if output.finished and output.request_id in running:
                assert isinstance(output, RequestOutput)
                running.pop(output.request_id)[1].set_result(_completion(output))

    def _alone(self, one: tuple[Request, Answered]) -> None:
        running: dict[str, tuple[Request, Answered]] = {}
        try:
            self._add(one, running)
            while running:
                self._step(running)
        except BaseException as error:  # noqa: BLE001  # raised again by `result`
            if not _of_one_prompt(error):
                one[1].set_exception(_lost(error))
                return
            with contextlib.suppress(EngineDeadError):  # the next prompt is told so
                self._engine.abort_request([*running])
            one[1].set_result(Failure(f"vLLM refused the prompt: {error}"))


def _of_one_prompt(error: BaseException) -> bool:
    """Whether vLLM refused a prompt and lives on."""
    return isinstance(error, REFUSALS) and not isinstance(error, EngineDeadError)


def _lost(error: BaseException) -> BaseException:
    if not isinstance(error, EngineDeadError):
        return error
    lost = EngineLost(f"vLLM's engine stopped ({error}); its log above says why; the same command continues")
    lost.__cause__ = error
    return lost


class Served:
    """vLLM's engine inside its own server, for code that runs in other threads than the server's event loop."""

    def __init__(self, client: EngineClient, loop: asyncio.AbstractEventLoop) -> None:
        self._client = client
        self._loop = loop
        self._died = False
        self.told_to_end = False

    def engine(self, lora: LoRARequest | None, calls: Calls) -> VLLMEngine:
        """An engine for one request; cancelling its `calls` aborts them in vLLM."""

        def run(requests: Sequence[Request]) -> list[Completion | Failure]:
            return calls.run(self._all(requests, lora), self._loop)

        return VLLMEngine(run, self._client.vllm_config)

    @property
    def lost(self) -> bool:
        """Whether the engine process died; one that was told to end did not."""
        return self._died or (bool(self._client.errored) and not self.told_to_end)

    async def alive(self) -> None:
        """Raises:
        EngineLost: vLLM's engine process is gone.
        """
        try:
            await self._client.check_health()
        except EngineDeadError as error:
            self._died = True
            raise EngineLost("vLLM's engine stopped; restart the server") from error

    @property
    def room(self) -> int:
        """Prompts that the engine has memory for at once, if they have a quarter of the context each; at least 4, at most what it
        works on at the same time. More of them would push each other's profiles out of the prefix cache."""
        config = self._client.vllm_config
        tokens = (config.cache_config.num_gpu_blocks or 0) * config.cache_config.block_size
        fitting = 4 * tokens // config.model_config.max_model_len
        return int(min(config.scheduler_config.max_num_seqs, max(4, fitting)))

    def forget(self) -> None:
        """Drop the keys and values of all prompts; those being worked on are computed again."""
        asyncio.run_coroutine_threadsafe(self._client.reset_prefix_cache(reset_running_requests=True), self._loop).result()

    async def _all(self, requests: Sequence[Request], lora: LoRARequest | None) -> list[Completion | Failure]:
        return list(await asyncio.gather(*(self._one(request, lora) for request in requests)))

    async def _one(self, request: Request, lora: LoRARequest | None) -> Completion | Failure:
        prompt = TokensPrompt(prompt_token_ids=list(request.ids))
        last: RequestOutput | None = None
        try:
            async for output in self._client.generate(prompt, request.params, f"perse-{uuid.uuid4().hex}", lora_request=lora):
                last = output
        except EngineDeadError as error:
            self._died = True
            raise EngineLost(f"vLLM's engine stopped ({error}); restart the server") from error
        except REFUSALS as error:
            return Failure(f"vLLM refused the prompt: {error}")
        return _completion(last) if last is not None else Failure("vLLM ended without an answer")


def serve(
    serving: Any, *, host: str, port: int, options: dict[str, Any], extra: dict[str, Any], uvicorn: Mapping[str, Any]
) -> None:
    """Run vLLM's server with the judge in it, until it is told to stop.

    Args:
        serving: what `perse.serving.plugin` is told.
        options: of the engine, by vLLM's names, as `engine_options` gives them.
        extra: further options of vLLM's server that the user gave; they win.
        uvicorn: settings of the HTTP server under it.
    Raises:
        BadInput: an option that vLLM does not have, or that is perse's to set.
        EngineLost: the engine died, so that whoever supervises the server starts another.
    """
    import uvloop
    from vllm.entrypoints.launchers.api_server.entry import run_server
    from vllm.entrypoints.launchers.cli_args import make_arg_parser, validate_parsed_serve_args
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    args = make_arg_parser(FlexibleArgumentParser()).parse_args([])
    given = options | {
        "model": str(serving.model),
        "served_model_name": [serving.name],
        "host": host,
        "port": port,
        "disable_uvicorn_access_log": True,  # the guard writes a line for each request
        "enable_offline_docs": True,  # /docs without scripts from elsewhere
        "ssl_certfile": serving.certificate,
        "ssl_keyfile": serving.certificate_key,
        "enable_prompt_tokens_details": True,
        "allowed_origins": [],  # no web page of elsewhere may ask a server on this machine
        "middleware": ["perse.serving.front.guard.Guard"],  # by vLLM, so that it stands whatever becomes of the plugin
    }
    if serving.more_adapters:
        given |= {"enable_lora": True, "max_lora_rank": 64}
    if serving.adapters:
        modules = [LoRAModulePath(name=name, path=str(path)) for name, path in serving.adapters.items()]
        room = max(rank_room(list(serving.adapters.values())), given.get("max_lora_rank", 0))
        given |= {"enable_lora": True, "max_lora_rank": room, "lora_modules": modules}
    for name, value in (given | extra).items():
        if name in OURS and name in extra:
            raise BadInput(f"vllm.{name} is perse's to set; use {OURS[name]}")
        if not hasattr(args, name):
            near = difflib.get_close_matches(name, vars(args), n=1)
            hint = f"did you mean 'vllm.{near[0]}'?" if near else "its documentation lists them under `vllm serve`"
            raise BadInput(f"vLLM has no option '{name}'; {hint}")
        setattr(args, name, value)
    args.perse, args.perse_served = serving, None
    # Naming one plugin switches off all that are not named; those that are installed would have run. Two of ours have this name.
    named = os.environ.get("VLLM_PLUGINS")
    points = [point for package in distributions() for point in package.entry_points]
    installed = {point.name for point in points if point.group.startswith("vllm.") and point.group != PLUGINS}
    os.environ["VLLM_PLUGINS"] = ",".join([*(sorted(installed) if named is None else named.split(",")), "perse"])
    validate_parsed_serve_args(args)
    os.environ.setdefault(
        "VLLM_WORKER_MULTIPROC_METHOD", "spawn"
    )  # as vLLM's own command does; a forked engine loads no plugins
    end_engines_with_us()
    uvloop.run(run_server(args, **uvicorn))
    if args.perse_served and args.perse_served.lost:
        raise EngineLost(
            "vLLM's engine stopped, and the server with it; its log above says why"
        )  # vLLM itself would exit with 0
