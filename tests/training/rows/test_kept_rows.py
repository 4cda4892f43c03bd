"""Rows that lie in a run's folder belong to the data that they were made of, and to nothing else that lies beside it."""

from __future__ import annotations

import json
from pathlib import Path

from perse.settings.training import load_config
from perse.training.rows.deal import rows_key


def test_rows_depend_on_the_data_set_and_on_no_other_file_in_its_folder(tmp_path: Path) -> None:
    data, tokenizer = tmp_path / "data", tmp_path / "model"
    data.mkdir()
    tokenizer.mkdir()
    (data / "manifest.json").write_text(json.dumps({"schema": 1, "kind": "pointwise"}))
    (data / "examples.parquet").write_bytes(b"examples")
    config = load_config("embedded_lora", [f"model.path={tokenizer}", f"data.path={data}", f"output={tmp_path / 'run'}"])
    key = rows_key(config, tokenizer)
    (data / "runs").mkdir()
    (data / "runs" / "checkpoint.bin").write_bytes(b"of another run")
    assert rows_key(config, tokenizer) == key
    (data / "examples.parquet").write_bytes(b"other examples")
    assert rows_key(config, tokenizer) != key
