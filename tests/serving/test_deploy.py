"""Files that run a server for long: they name what there is, and parse where their programs read them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import Any

import pytest
import yaml
from places import ROOT

from perse.serving.metrics import Metrics
from perse.settings.serving import Limits, load_config

DEPLOY = ROOT / "deploy"


def exported() -> set[str]:
    """Names of our series, as Prometheus has them."""
    metrics = Metrics()
    metrics.request("/x", 200, 0.1, "full")
    named = re.findall(r"^(perse_\w+?)(?:_created)?[{ ]", metrics.text().decode(), re.MULTILINE)
    declared = re.findall(r"^# TYPE (perse_\w+) (\w+)", metrics.text().decode(), re.MULTILINE)
    more = {f"{name}_{end}" for name, kind in declared if kind == "histogram" for end in ("bucket", "count", "sum")}
    return {*named, *(name for name, _ in declared), *more}


def asked_for(expression: str) -> set[str]:
    return set(re.findall(r"\bperse_\w+", expression))


def test_alerts_and_dashboard_ask_for_series_that_there_are() -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    expressions = [rule["expr"] for rule in rules] + [
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    ]
    there = exported()
    for expression in expressions:
        assert asked_for(expression) <= there, (expression, asked_for(expression) - there)
        assert expression.count("(") == expression.count(")") and expression.count("{") == expression.count("}")
    asked = {name for expression in expressions for name in asked_for(expression)}
    assert {
        "perse_judgements_total",
        "perse_label_mass_bucket",
        "perse_shared_tokens_total",
        "perse_queue_seconds_bucket",
    } <= asked
    places = [tuple(panel["gridPos"].values()) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)


def settings_of(command: str) -> list[str]:
    words = shlex.split(command)
    return words[words.index("serve.py") + 1 :]


def commands() -> dict[str, str]:
    unit = (DEPLOY / "perse-serve.service").read_text()
    compose: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return {
        "unit": re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)[0],
        "compose": compose["services"]["judge"]["command"],
    }


@pytest.mark.parametrize("where", ["unit", "compose"])
def test_the_commands_are_settings_that_the_server_takes(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERSE_API_KEY", "k" * 20)
    option, recipe, *given = settings_of(commands()[where])
    assert option == "--config"
    config = load_config(ROOT / recipe, given)
    assert config.readers and config.json_log


def test_the_composes_image_is_built_with_what_its_recipe_serves_on() -> None:
    """In the same words where the file tells it and where containers are explained; the extra exists, and brings vLLM."""
    compose: Any = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    image = compose["services"]["judge"]["image"]
    config = load_config(ROOT / settings_of(commands()["compose"])[1], ["host=127.0.0.1"])
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert config.engine == "vllm"
    for place in (DEPLOY / "compose.yaml", ROOT / "containers" / "README.md"):
        told = place.read_text()
        [extra] = re.findall(rf"docker build .* --build-arg EXTRAS=(\w+) -t {image} \.", told)
        assert f"EXTRAS={extra} containers/wheelhouse.sh cuda" in told
        assert any(one.startswith("vllm==") for one in extras[extra])


def test_what_stops_the_server_waits_longer_than_it_empties() -> None:
    unit = (DEPLOY / "perse-serve.service").read_text()
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    batch = (ROOT / "slurm" / "serve.sbatch").read_text()
    seconds = [
        int(re.findall(r"TimeoutStopSec=(\d+)", unit)[0]),
        int(compose["services"]["judge"]["stop_grace_period"].removesuffix("s")),
        int(re.findall(r"--signal=B:TERM@(\d+)", batch)[0]),
    ]
    assert min(seconds) > Limits().drain + 10
    assert "KillMode=mixed" in unit and "RestartPreventExitStatus=2" in unit


def test_prometheus_brings_its_key_and_loads_the_alerts() -> None:
    config = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    [job] = config["scrape_configs"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    mounted = " ".join(compose["services"]["prometheus"]["volumes"])
    assert job["job_name"] == "perse" and job["authorization"]["credentials_file"] in mounted
    assert all(rules in mounted for rules in config["rule_files"])
    nobody = "65534"  # whom Prometheus's image runs as, and whose the key has to be
    assert f"chown {nobody} deploy/scrape.key" in (DEPLOY / "compose.yaml").read_text()


def test_the_units_server_has_a_home_that_it_may_write_to() -> None:
    """Without one vLLM's engine ends where it would keep what it compiled: `useradd --system` makes none, and /home is read-only."""
    unit = (DEPLOY / "perse-serve.service").read_text()
    [state] = re.findall(r"^StateDirectory=(\S+)$", unit, re.MULTILINE)
    assert f"/var/lib/{state}" in re.findall(r"\bHOME=(\S+)", unit)


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no git checkout here")
@pytest.mark.parametrize("page", ["docs/tutorials/server.md", "docs/operating.md"])
def test_git_passes_over_the_keys_and_readers_that_a_page_has_one_make_in_the_checkout(page: str) -> None:
    told = (ROOT / page).read_text(encoding="utf-8")
    named = sorted({*re.findall(r"\bkeys=([\w.-]+)", told), *re.findall(r"\breaders[\w-]*\.db\b", told), "readers.db-wal"})
    assert "keys.txt" in named and "readers.db" in named
    passed = subprocess.run(["git", "check-ignore", *named], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert passed == named


@pytest.mark.skipif(shutil.which("git") is None or not (ROOT / ".git").exists(), reason="no git checkout here")
def test_the_compose_file_says_where_the_judge_lies_and_git_passes_over_what_it_wants_there() -> None:
    """Its volumes are beside it, keys among them."""
    text = (DEPLOY / "compose.yaml").read_text()
    model = settings_of(commands()["compose"])[2].removeprefix("model=/models/")
    assert f"deploy/models/{model}" in text.partition("services:")[0]
    made = ["deploy/models/judge/model.safetensors", "deploy/scrape.key", "deploy/serve.env"]
    passed = subprocess.run(["git", "check-ignore", *made], cwd=ROOT, capture_output=True, text=True).stdout.split()
    assert passed == made


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_reads_the_unit(tmp_path: Any) -> None:
    unit = (DEPLOY / "perse-serve.service").read_text()
    place = tmp_path / "perse-serve.service"  # its program and user are those of the machine that it is for
    place.write_text(
        re.sub(r"ExecStart=\S+", "ExecStart=/bin/true", unit)
        .replace("User=perse\n", "")
        .replace("WorkingDirectory=/opt/perse\n", "")
    )
    done = subprocess.run(["systemd-analyze", "verify", place], capture_output=True, text=True, check=False, timeout=900)
    said = [line for line in done.stderr.splitlines() if "perse-serve" in line]
    assert said == [], done.stderr
