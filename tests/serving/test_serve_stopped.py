"""How `perse serve` ends before it serves: by Ctrl-C, and where no machine has the name that it should listen at."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import perse


def test_ctrl_c_says_that_a_server_is_started_again_and_not_that_it_resumes(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("perse.settings.serving.load_config", interrupted)
    done = perse("serve")
    assert done.returncode == 130 and "the same command starts it again" in done.stderr
    assert "resumes" not in done.stderr and "kept" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("host", ["\u00e9" * 70, "nosuch..name", "a\0b"])
def test_a_host_that_no_network_could_carry_is_a_sentence(host: str, tiny_model_folder: Path, tmp_path: Path) -> None:
    config = tmp_path / "server.yaml"
    config.write_text(
        f'model: {tiny_model_folder}\nhost: "{host}"\nengine: transformers\nkeys: {tmp_path / "keys.txt"}\n'.replace(
            "\0", "\\0"
        )
    )
    perse("keys", "add", tmp_path / "keys.txt", "alice")
    done = perse("serve", "--config", config)
    assert done.returncode == 2, done.stderr
    assert "cannot listen at" in done.stderr and "give another port= or host=" in done.stderr and "bug" not in done.stderr
