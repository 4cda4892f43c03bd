"""What `perse serve` says of where it is to be asked."""

from __future__ import annotations

import socket

import pytest

from perse.commands.serve import _addresses


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", "http://127.0.0.1:8000"), ("::1", "http://[::1]:8000"), ("judge.lan", "http://judge.lan:8000")],
)
def test_an_address_that_was_given_is_the_one_that_is_told(host: str, here: str) -> None:
    assert _addresses(host, 8000, scheme="http") == (here, "")


@pytest.mark.parametrize(("host", "here"), [("0.0.0.0", "https://127.0.0.1:8000"), ("::", "https://[::1]:8000")])
def test_of_all_addresses_one_is_told_that_can_be_opened_and_the_machines_name(host: str, here: str) -> None:
    told, elsewhere = _addresses(host, 8000, scheme="https")
    assert told == here and elsewhere.endswith(f"https://{socket.gethostname()}:8000")
