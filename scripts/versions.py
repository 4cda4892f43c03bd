"""Try the lowest and the newest versions that pyproject.toml allows: `make versions`, or python scripts/versions.py [lowest|newest].

Each gets an environment of its own, resolved anew (lowest: of what perse itself asks for; newest: of all, both by uv,
which `pip install uv` brings), and runs tests of
the core and of servers, a judgement of the embedded model and a training of one step. Tests of exact figures belong to
constraints.txt and are not run. torch is that of the environment this runs in (`--torch`): other builds of it are gigabytes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TESTS = (
    "whole/test_core.py",
    "engines/servers",
    "judging/test_judge.py",
    "rendering/test_rendering.py",
    "serving/test_serving.py",
    "data/test_near.py",
)
TESTING = ("pytest", "hypothesis", "jsonschema", "mistral-common")
EXTRA = "train"


def resolved(which: str, torch: str, folder: Path) -> Path:
    """The exact versions to install."""
    pinned = folder / "torch.txt"
    pinned.write_text(f"torch=={torch}\n", encoding="utf-8")
    out = folder / f"{which}.txt"
    run(
        "uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--extra", EXTRA,
        "--resolution", "lowest-direct" if which == "lowest" else "highest", "--constraints", pinned, "--output-file", out,
        *(f"--find-links={link}" for link in os.environ.get("PIP_FIND_LINKS", "").split()), ROOT / "pyproject.toml",
    )  # fmt: skip
    return out


def attempt(which: str, torch: str, folder: Path) -> dict[str, str]:
    """What became of each step with the `which` versions; they are printed."""
    versions = resolved(which, torch, folder)
    environment = folder / which
    run(sys.executable, "-m", "venv", environment)
    python = environment / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", "-r", versions)
    run(python, "-m", "pip", "install", "--quiet", "-c", versions, *TESTING[:-1])
    run(
        python, "-m", "pip", "install", "--quiet", "--no-deps", "-c", ROOT / "constraints.txt", TESTING[-1]
    )  # a tokenizer in it
    own = {line.split("==")[0].lower(): line for line in versions.read_text(encoding="utf-8").split("\n") if "==" in line}
    print(f"{which}: " + ", ".join(own[name] for name in direct() if name in own), flush=True)
    perse = (python, "-m", "perse")
    work = folder / f"{which}-work"
    samples = ROOT / "perse" / "samples"
    steps: dict[str, tuple[object, ...]] = {
        "tests": (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not integration", *(ROOT / "tests" / name for name in TESTS)),
        "data": (*perse, "data", "pointwise", "--reviews", samples / "reviews.jsonl", "--items", samples / "items.jsonl", "--out", work / "data"),
        "training": (
            *perse, "train", "--config", "embedded_lora", "model.path=smollm2-135m", f"data.path={work / 'data'}",
            "data.max_examples=4", "train.steps=1", f"output={work / 'judge'}",
        ),
        "judging": (
            *perse, "ask", "--judge", work / "judge", "--reviews", samples / "ask" / "reviews.jsonl", "--text", "a plot",
            "--max-new-tokens", "8", "--json",
        ),
    }  # fmt: skip
    return {name: outcome(folder / f"{which}-{name}.log", *command) for name, command in steps.items()}


def direct() -> list[str]:
    """What perse itself asks for, in the extra that is tried and those it includes."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = project["dependencies"] + [
        line for part in ("remote", "serve", "train") for line in project["optional-dependencies"][part]
    ]
    return [line.partition(">")[0].lower() for line in lines if not line.startswith("perse-judge")]


def outcome(log: Path, *command: object) -> str:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1"}
    with log.open("w", encoding="utf-8") as out:
        done = subprocess.run(
            [str(part) for part in command], stdout=out, stderr=subprocess.STDOUT, cwd=ROOT, env=environment, check=False
        )
    return "works" if done.returncode == 0 else f"fails, see {log}"


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, cwd=ROOT)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("which", nargs="?", choices=["lowest", "newest"], help="by default both")
    parser.add_argument("--torch", default=metadata.version("torch"), help="version of torch, a local build's too")
    parser.add_argument(
        "--folder", type=Path, help="where environments and logs are made; by default a temporary folder that stays"
    )
    given = parser.parse_args()
    folder = given.folder or Path(tempfile.mkdtemp(prefix="perse-versions-"))
    folder.mkdir(parents=True, exist_ok=True)
    done = {which: attempt(which, given.torch, folder) for which in ([given.which] if given.which else ["lowest", "newest"])}
    for which, steps in done.items():
        for name, said in steps.items():
            print(f"{which}: {name} {said}")
    sys.exit(any(said != "works" for steps in done.values() for said in steps.values()))


if __name__ == "__main__":
    main()
