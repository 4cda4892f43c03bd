"""Addresses of servers, a host and a path, with no secret in them; and the keys that go beside them.

What stands in an address is recorded: in manifests, reports, caches, and in the logs of every machine on the way. So a user
name, a password or a query is refused, in a sentence that repeats nothing of it.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from perse.errors import BadInput

_IN_PATH = re.compile(r"\w://|(?:^|/)[a-z][\w+.-]+:/", re.IGNORECASE)
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(?:%[\w.-]+)?", re.IGNORECASE)


def header_key(key: str, *, of: str) -> str:
    """`key` without the white space around it, which files and shells leave there.

    Args:
        of: where it was found, as the message says: "OPENAI_API_KEY".
    Raises:
        BadInput: it has a character that no header can carry.
    """
    _text(key, f"the key in {of}")
    key = key.strip()
    if not (key.isascii() and key.isprintable()):
        raise BadInput(
            f"the key in {of} has a character that no header can carry (a line end, a control character, or one that is not "
            "ASCII); put the key alone there, as its server gave it"
        )
    return key


def plain_address(url: str, *, of: str, keys: str) -> str:
    """`url` without a slash at its end.

    Args:
        of: whose address it is, as the message begins: "the judge's address".
        keys: where its key belongs: "into the environment variable OPENAI_API_KEY".
    Raises:
        BadInput: not http or https, no host, a wrong port; or a user name, a password, a query or a fragment.
    """
    _text(url, of)
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:  # of a port, which may be the first half of a password
        raise BadInput(f"{of} cannot be read as one; write http://HOST:PORT/v1, and a key {keys}") from None
    # A password may hold '/', '?' or '#', which end the part of an address where an @ is looked for; encoded they hide a key as well.
    if set("@?#;\\") & set(url + unquote(unquote(url))):
        raise BadInput(
            f"{of} holds a user name, a password, a query or parameters, and addresses are written to files; leave them out "
            f"(http://HOST:PORT/v1), and put a key {keys}"
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not _HOST.fullmatch(parts.hostname) or not port_fits:
        raise BadInput(f"{of} cannot be read as one; write http://HOST:PORT/v1, and a key {keys}")
    return url.rstrip("/")


def is_address(path: str | Path) -> bool:
    """Whether what is given as a path on this machine is an address; a `Path` has lost one of its slashes."""
    return _IN_PATH.search(str(path)) is not None


def _text(value: object, of: str) -> None:
    """What programs give is not checked by anybody before."""
    if not isinstance(value, str):
        raise BadInput(f"{of} is of type {type(value).__name__}, expected text")
