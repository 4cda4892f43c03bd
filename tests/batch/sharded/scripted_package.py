"""An installed package that brings the judge `scripted:NAME`, for processes of their own: it answers at once, and dies or waits where a query says so."""

from __future__ import annotations

import os
from pathlib import Path

MODULE = """
import os, re, signal, time
from pathlib import Path
from perse.engines.kind import EngineKind, Identity, Loaded
from perse.engines.scripted import ScriptedEngine
from perse.rendering.prompt import TextRenderer

def reply(message, seed):
    if "DEADLY" in message.rpartition("New plot")[2] or "DEADLY" in message[-400:]:
        os.kill(os.getpid(), signal.SIGKILL)
    if delay := os.environ.get("SCRIPTED_DELAY"):
        time.sleep(float(delay))
    if asked := os.environ.get("SCRIPTED_ASKED"):
        with open(asked, "a") as file:
            file.write("asked\\\\n")
    return f"[Review] of {len(message)}\\\\n[Score] {1 + len(message) % 10}/10"

def load(name, options):
    return Loaded(ScriptedEngine(reply, batch=8), TextRenderer(), Identity(f"scripted-{name.model}"))

ENGINE = EngineKind("scripted", "scripted:NAME", "a script", load)
"""


def install(folder: Path) -> dict[str, str]:
    """Puts the package into `folder`; the environment in which processes find it."""
    folder.mkdir(exist_ok=True)
    (folder / "outside_scripted.py").write_text(MODULE.replace("\\\\n", "\\n"), encoding="utf-8")
    info = folder / "outside_scripted-1.0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: outside-scripted\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[perse.engines]\nscripted = outside_scripted:ENGINE\n", encoding="utf-8")
    paths = [
        str(folder),
        *([known] if (known := os.environ.get("PYTHONPATH")) else []),
    ]  # an empty one is the folder that one is in
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
