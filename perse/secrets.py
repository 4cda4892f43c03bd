"""Keys and passwords are taken out of whatever perse writes or prints; this is the only place that does it.

Keys come from the environment. Where one stands in an address or a command line all the same, that is refused
(`perse.addresses`), and what is known of it is still taken out here: of messages, manifests, judgements, reports and logs. A
value that is too short or too common to be a secret is left alone, or words of the data would vanish.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import escape
from typing import Any, TypeVar
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "***"

_SECRET_WORD = (
    r"(?:api[-_.]?key|key|token|secret|passw(?:or)?d|passwd|pwd|pat|salt|auth|authorization|credentials?|signature|sig)"
)
_VARIABLE = re.compile(r"(?:^|_)(?:API_?KEY|ACCESS_KEY|KEY|TOKEN|SECRET|PASSWORD|PASSWD|PAT|CREDENTIALS?)$", re.IGNORECASE)
_OF_SERVERS = frozenset({"PERSE_API_KEY", "PERSE_ADMIN_KEY"})
"""Keys that a person may think up, of 16 letters at least; others give theirs out, with digits in them."""
_HEADERS = re.compile(r"(?:^|_)HEADERS?$", re.IGNORECASE)
_OPTION = re.compile(rf"-*(?:[\w-]*[-_.])?{_SECRET_WORD}", re.IGNORECASE)

_PLACEHOLDERS = frozenset(
    {"ollama", "lm-studio", "lmstudio", "not-needed", "no-key-required", "sk-no-key-required", "token-abc123", "placeholder"}
)
"""What people put into OPENAI_API_KEY for a server that wants none."""

_WORDS = re.compile(r"(?:[A-Za-z]?[a-z]*|[A-Z]+)(?:[_.-](?:[A-Za-z]?[a-z]*|[A-Z]+))*")
"""A word, or a name made of words; of up to 27 letters, which the longest names of fields have not."""

_USERINFO = re.compile(
    r"""(?P<scheme>\b[a-z][a-z0-9+.-]*:/{1,3})
    (?: [^\s/?#'"<>@:]*:(?!\d{1,5}(?:[/?#\s'"]|$))[^\s'"<>]*@  # user:password@host; a password, unlike a port, may hold / ? #
      | [^\s/?#'"<>]*@ )                                        # user@host""",
    re.IGNORECASE | re.VERBOSE,
)
_PARAMETER = re.compile(rf"((?:[?&;]|%3f|%26|%3b)(?:[\w.-]*[-_.])?{_SECRET_WORD}(?:=|%3d))[^&;#\s'\"<>]+", re.IGNORECASE)
_HEADER = re.compile(r"(\bbearer\s+|\bauthorization['\"]?\s*[:=]\s*['\"]?(?:basic\s+)?)[\w+/.~=-]{12,}", re.IGNORECASE)
_SHAPES = re.compile(
    r"\b(?:sk-(?=\S*\d)[\w*-]{16,}|hf_\w{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|AIza[\w-]{30,}|AKIA[A-Z0-9]{16}|xox[abp]-[\w-]{10,})"
)
_OURS = re.compile(r"\bperse_[\w-]{40,}")

_OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")

Tree = TypeVar("Tree")


def redact(text: str) -> str:
    """A message or a command without keys: known values, user names and passwords of addresses, parameters that are named as
    a key is, and what has the shape of a well-known service's key."""
    text = _USERINFO.sub(rf"\g<scheme>{HIDDEN}@", without_keys(text))
    text = _PARAMETER.sub(rf"\g<1>{HIDDEN}", text)
    return _SHAPES.sub(HIDDEN, _HEADER.sub(rf"\g<1>{HIDDEN}", text))


def without_keys(text: str, *more: str) -> str:
    """Any text without the values of the keys that this process knows (and `more`), and without any key that perse gave somebody (a
    server knows of those of its file what they digest to): what a server wrote, and files.

    Letters of either case are one, since the host of an address, for instance, is written in small ones.
    """
    values = (*filter(None, more), *sorted(_known(), key=len, reverse=True))  # one may hold another
    lower = text.lower() if values else ""  # looking in it is far faster than a pattern, and most texts hold no key
    for value in values:
        if value.lower() in lower:
            text = re.sub(re.escape(value), HIDDEN, text, flags=re.IGNORECASE)
    return _OURS.sub(HIDDEN, text) if "perse_" in text else text


def redact_tree(value: Tree) -> Tree:
    """`redact` in every string of what JSON can hold."""
    found: Any = value
    if isinstance(found, str):
        found = redact(found)
    elif isinstance(found, dict):
        found = {redact_tree(key): redact_tree(each) for key, each in found.items()}
    elif isinstance(found, list | tuple):
        found = [redact_tree(each) for each in found]
    return found  # type: ignore[no-any-return]


def redact_command(arguments: Sequence[str]) -> list[str]:
    """A command line as a manifest may keep it: what is given to an option or a setting that is named as a key is goes too."""
    kept: list[str] = []
    names_secret = False
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if names_secret:
            kept.append(HIDDEN)
        elif equals and value and _OPTION.fullmatch(name):
            kept.append(f"{name}={HIDDEN}")
        else:
            kept.append(redact(argument))
        names_secret = not names_secret and not equals and argument.startswith("-") and _OPTION.fullmatch(argument) is not None
    return kept


def printable(text: str) -> str:
    """A message that any terminal, log and JSON takes: lone surrogates, control characters and those that turn the direction of a
    whole line as escapes; line ends are kept, and so are the joiners and marks (LRM, RLM) that texts need."""
    if text.isprintable():
        return text
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return _OBEYED.sub(lambda found: f"\\x{ord(found[0]):02x}" if found[0] <= "\x9f" else f"\\u{ord(found[0]):04x}", text)


class Harmless(logging.Filter):
    """Takes keys, and what a terminal would obey, out of every record of the handler that it is added to; colours go without a trace."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _harmless(record.getMessage()), None
        if record.exc_info:
            record.exc_text = _harmless(record.exc_text or logging.Formatter().formatException(record.exc_info))
        return True


HARMLESS = Harmless()
"""One for all handlers: adding it again changes nothing."""


def _harmless(text: str) -> str:
    return printable(redact(_COLOUR.sub("", text)))


class WithoutQuery(logging.Filter):
    """Takes the query out of the addresses in a server's log, where some clients put their key; of a WebSocket's the whole path, which
    no route has declared: it may be a reader's name, or a key, too."""

    def filter(self, record: logging.LogRecord) -> bool:
        if "WebSocket" in str(record.msg):
            record.msg, record.args = re.sub(r"WebSocket /[^\"]*", f"WebSocket {HIDDEN}", record.getMessage()), None
        elif record.args and isinstance(record.args, tuple):
            record.args = tuple(_without_query(each) if isinstance(each, str) else each for each in record.args)
        else:
            record.msg, record.args = _without_query(record.getMessage()), None
        return True


def _without_query(text: str) -> str:
    if text.startswith("/"):  # a path alone, whose query may hold quotes
        return text.partition("?")[0]
    return re.sub(r"(/[^\s?]*)\?[^\s\"']*", r"\1", text)


def _known() -> frozenset[str]:
    """Every spelling of the secrets in the environment."""
    return _known_in(tuple(os.environ.items()))


@lru_cache(maxsize=4)
def _known_in(environment: tuple[tuple[str, str], ...]) -> frozenset[str]:
    found: set[str] = set()
    for name, value in environment:
        if _VARIABLE.search(name):
            found |= _spellings(value, words=name in _OF_SERVERS)
        elif _HEADERS.search(name):
            found |= set(_in_headers(value))
        elif "@" in value and "://" in value:  # a proxy's or an index's address
            found |= set(_in_address(value))
    return frozenset(found)


def _in_headers(value: str) -> Iterator[str]:
    """What is secret in `Name: value` lines or a `name=value,name=value` list; of "Bearer X" the X too.

    A plain word counts only where the header's name says so: data sets and teams are named in headers too ("production").
    """
    for header in {*value.splitlines(), *re.split(r"[,\n]", value)}:
        name, _, said = re.sub("[:=]", "\n", header, count=1).partition("\n")
        for spelled in {said, unquote(said)}:
            for secret in {spelled, spelled.split()[-1] if len(spelled.split()) == 2 else spelled}:
                if _OPTION.fullmatch(name.strip()) or not secret.strip().isalpha():
                    yield from _spellings(secret, words=True)


def _in_address(value: str) -> Iterator[str]:
    try:
        parts = urlsplit(value)
    except ValueError:
        return
    if secret := parts.password or parts.username:
        yield from _spellings(secret) | _spellings(unquote(secret))
        user = unquote(parts.username or "")
        yield base64.b64encode(f"{user}:{unquote(parts.password or '')}".encode("utf-8", "replace")).decode()


def _is_secret(value: str, *, words: bool) -> bool:
    """Whether a value is taken out of files: not what stands there anyway. `SORT_KEY=reviewer_id` or `POSTGRES_PASSWORD=postgres` would take
    names of fields, words of reviews and callers out, and six digits parts of numbers. `words`: a word is one, too, of which somebody said that it is a key."""
    if value.lower() in _PLACEHOLDERS or (not words and len(value) < 28 and _WORDS.fullmatch(value)):
        return False
    if not any(each.isalpha() for each in value):  # numbers, dates, addresses of machines
        return len(value) >= 16
    return len(value) >= 8 or (len(value) >= 6 and any(each.isdigit() for each in value))


def _spellings(value: str, *, words: bool = False) -> set[str]:
    value = value.strip()
    if not _is_secret(value, words=words):
        return set()
    encoded = (quote(value.encode("utf-8", "replace"), safe=safe) for safe in ("", "/"))  # some leave the slash of a base64 key
    return {value, json.dumps(value)[1:-1], *encoded, escape(value)}
