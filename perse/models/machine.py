"""This machine's resources for judging and training: processor, memory, GPUs, and room for models.

Quick and without torch but for the GPUs, which only torch can tell; importing it takes a second or more.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from perse.models.finding import cache_folder

FEATURES = ("avx2", "avx512f", "avx512_bf16", "avx512_vnni", "amx_tile", "amx_bf16", "amx_int8", "asimd", "sve", "bf16", "i8mm")
"""CPU features that affect the speed and rounding of matrix products, by their Linux names."""


def machine() -> dict[str, Any]:
    """Processor, cores, memory, threads and system; unknown ones are None."""
    told = _cpuinfo()
    flags = set((told.get("flags") or told.get("Features") or "").split())
    return {
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "python": platform.python_version(),
        "cpu": told.get("model name") or platform.processor() or None,
        "cpu_features": [name for name in FEATURES if name in flags] if told else None,
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": _memory(),
        "omp_num_threads": os.environ.get("OMP_NUM_THREADS"),
    }


def gpus() -> dict[str, Any]:
    """The GPUs that torch sees, and the threads it takes; `error` where torch is installed and cannot be imported."""
    if find_spec("torch") is None:
        return {"torch": None, "gpus": []}
    start = time.monotonic()
    try:
        import torch
    except Exception as error:  # noqa: BLE001  a broken installation raises whatever its libraries do
        return {"torch": None, "gpus": [], "error": f"torch cannot be imported: {type(error).__name__}: {error}"}
    seen = [torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count())] if torch.cuda.is_available() else []
    return {
        "torch": torch.__version__,
        "gpus": seen,
        "threads": torch.get_num_threads(),
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "import_seconds": round(time.monotonic() - start, 1),
    }


def model_cache() -> dict[str, Any]:
    """Where pulled models lie, which are there, and how much room is left."""
    folder = cache_folder().absolute()
    there = next(path for path in (folder, *folder.parents) if path.exists())
    models = sorted(path for path in folder.iterdir() if (path / "config.json").exists()) if folder.is_dir() else []
    sizes = {
        path.name: round(sum(part.stat().st_size for part in path.rglob("*") if part.is_file()) / 1e9, 2) for path in models
    }
    return {
        "folder": str(folder),
        "perse_home": os.environ.get("PERSE_HOME"),
        "models_gb": sizes,
        "free_gb": round(shutil.disk_usage(there).free / 1e9, 1),
        "writable": there.is_dir() and os.access(there, os.W_OK),
    }


def _cpuinfo() -> dict[str, str]:
    """The first processor of Linux's list; empty elsewhere."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def _memory() -> float | None:
    if sys.platform == "win32":
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1)
