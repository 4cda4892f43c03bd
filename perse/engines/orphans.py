"""vLLM's engine process ends with the process that started it, however that ends.

Of kill -9, and of the system's own when memory runs out, the engine hears nothing: it would go on waiting for requests, or loading its
model, and keep the memory that the same command needs when it is given again. vLLM loads plugins (`vllm.general_plugins`) in each process
of its own before the model, so the engine itself can look out for its parent. One that is forked, as vLLM does on a GPU where no
server runs, has its parent's plugins and does not load ours; see `perse.engines.vllm` for these.
"""

from __future__ import annotations

import multiprocessing
import os
import select
import signal
import sys
import threading

STARTED_BY = "PERSE_ENGINE_STARTED_BY"
"""Environment variable with the id of the process whose engines end with it: vLLM that others start is left alone."""


def end_engines_with_us() -> None:
    """Have the engines that vLLM starts from now on end with this process."""
    os.environ[STARTED_BY] = str(os.getpid())


def end_with_parent() -> None:
    """What vLLM calls in each of its processes: where `end_engines_with_us` was called in the parent, a thread waits for its end, and then
    ends this process at once. Linux alone has what it waits with."""
    parent = multiprocessing.parent_process()
    if sys.platform != "linux" or parent is None or str(parent.pid) != os.environ.get(STARTED_BY):
        return
    threading.Thread(target=_end_after, args=(parent.pid,), name="perse-parent", daemon=True).start()


def _end_after(process: int) -> None:
    try:
        ending = select.poll()
        ending.register(os.pidfd_open(process), select.POLLIN)
        ending.poll()
    except ProcessLookupError:  # it had ended before
        pass
    os.kill(os.getpid(), signal.SIGKILL)
