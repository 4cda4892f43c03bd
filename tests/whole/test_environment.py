"""Variables of the environment that libraries would stumble over: one sentence that names them, or nothing at all."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from perse.environment import clean, named_in, yield_threads
from perse.errors import BadInput

ODD = {
    "HF_ENDPOINT": "huggingface.example",
    "WORLD_SIZE": "x",
    "LOCAL_WORLD_SIZE": "0",
    "RANK": "first",
    "LOCAL_RANK": "0.5",
    "HF_HUB_DOWNLOAD_TIMEOUT": "soon",
    "ACCELERATE_MIXED_PRECISION": "nope",
    "ACCELERATE_LOG_LEVEL": "loud",
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_value_is_a_sentence_that_names_the_variable(name: str) -> None:
    with pytest.raises(BadInput, match=f"^{name} in the environment is '{ODD[name]}', expected .*; correct it, or unset it$"):
        clean({name: ODD[name]})


def test_what_libraries_take_is_left_as_it_is() -> None:
    usual = {
        "HF_ENDPOINT": "https://hub.example",
        "WORLD_SIZE": "8",
        "RANK": "0",
        "LOCAL_RANK": "-1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "30",
        "ACCELERATE_MIXED_PRECISION": "bf16",
        "ACCELERATE_LOG_LEVEL": "INFO",
    }
    found = dict(usual)
    clean(found)
    assert found == usual


@pytest.mark.parametrize("name", [*ODD, "ACCELERATE_TORCH_DEVICE"])
def test_a_variable_that_holds_nothing_is_as_if_it_were_not_there(name: str) -> None:
    found = {name: " "}
    clean(found)
    assert found == {}


def test_a_key_that_stands_in_an_address_is_not_repeated() -> None:
    with pytest.raises(BadInput) as refused:
        clean({"HF_ENDPOINT": "ftp://me:hunter22@hub.example"})
    assert "hunter22" not in str(refused.value)


def test_a_variable_that_a_library_names_is_not_called_a_bug() -> None:
    error = ValueError('Invalid log settings: nope. For more info, try TORCH_LOGS="help"')
    assert str(named_in(error, {"TORCH_LOGS": "nope"})).startswith("TORCH_LOGS in the environment cannot be used (Invalid log")
    assert named_in(error, {"HOME": "/root"}) is None


def perse(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", str(Path.cwd())), **variables}
    return subprocess.run(
        [sys.executable, "-m", "perse", *command], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.slow
def test_a_command_refuses_it_before_anything_is_done() -> None:
    done = perse("models", "list", WORLD_SIZE="x")
    assert done.returncode == 2
    assert done.stderr == "perse: WORLD_SIZE in the environment is 'x', expected a whole number; correct it, or unset it\n"


@pytest.mark.slow
def test_odd_backends_and_dates_do_not_keep_figures_from_being_drawn() -> None:
    code = (
        "import os, sys; from perse.environment import clean; clean(os.environ)\n"
        "import matplotlib.pyplot; matplotlib.pyplot.figure().savefig(sys.stdout.buffer, format='svg')"
    )
    environment = {**os.environ, "MPLBACKEND": "module://nowhere", "SOURCE_DATE_EPOCH": "yesterday"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=False)
    assert done.returncode == 0 and b"<svg" in done.stdout, done.stderr


@pytest.mark.parametrize("given", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "1000"}, {"KMP_BLOCKTIME": "1"}])
def test_waiting_threads_yield_unless_somebody_has_said_how_they_wait(given: dict[str, str]) -> None:
    environment = dict(given)
    yield_threads(environment)
    assert environment == (given or {"GOMP_SPINCOUNT": "1000"})


@pytest.mark.slow
@pytest.mark.parametrize("module", ["perse.__main__", "perse.commands.train", "perse.commands.serve"])
def test_how_threads_wait_is_said_before_what_reads_it_is_imported(module: str) -> None:
    """libgomp reads its variables once, when it is loaded."""
    code = (
        f"import sys; import {module}; import perse.commands.terminal; print('torch' in sys.modules, 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"


@pytest.mark.parametrize(
    ("given", "left"), [({}, "1000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "None")]
)
def test_a_command_runs_with_threads_that_wait_so(given: dict[str, str], left: str) -> None:
    code = (
        "import os, typer; from perse.commands.terminal import run_app; app = typer.Typer()\n"
        "@app.command()\ndef told() -> None: print(os.environ.get('GOMP_SPINCOUNT'))\nrun_app(app)"
    )
    around = {
        name: value for name, value in os.environ.items() if name not in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY", "KMP_BLOCKTIME")
    }
    done = subprocess.run([sys.executable, "-c", code], env=around | given, capture_output=True, text=True, check=True)
    assert done.stdout == f"{left}\n"
