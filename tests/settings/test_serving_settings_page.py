"""Every setting of a server is told with its default and meaning, by the command and in the docs."""

from __future__ import annotations

import yaml
from places import ROOT
from typer.testing import CliRunner

from perse.serving.settings_page import COMMAND, settings_page
from perse.settings.config import described, known_keys
from perse.settings.serving import Limits, ServeConfig


def test_every_setting_of_a_server_is_described_with_its_default() -> None:
    found = {each.name: each for each in described(ServeConfig)}
    assert tuple(sorted(found)) == tuple(sorted(known_keys(ServeConfig)))
    assert [name for name, each in found.items() if not each.meaning or not each.takes] == []
    assert found["name"].takes == "text or null" and found["adapters"].takes == "a mapping"
    assert yaml.safe_load(found["limits.deadline"].default) == Limits().deadline and found["model"].default == ""


def test_the_page_of_a_servers_settings_is_what_the_command_prints() -> None:
    from perse.commands.app import app

    printed = CliRunner().invoke(app, ["serve", "--settings"])
    assert printed.exit_code == 0 and printed.stdout == settings_page()
    page = (ROOT / "docs" / "serving-settings.md").read_text(encoding="utf-8")
    assert page == settings_page(), f"the settings have changed; run: {COMMAND}"
