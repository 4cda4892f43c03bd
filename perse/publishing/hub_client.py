"""The client with which a judge is pushed: huggingface_hub's own, whose answers are bounded as those of every server are.

As it is, it waits without end, reads answers of any size, sleeps as long as a hub says, and follows redirects with the request's
body. And it takes the shape of an answer for granted, so whatever fails in it after an answer is told by that answer.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from perse.errors import BadInput, PerseError
from perse.models.incoming import ACCEPTED, Body, Deadline, Unfit, asked_to_wait, not_followed
from perse.secrets import redact, without_keys

CONNECT = 10
SILENCE = 120
"""Seconds that are waited for the next bytes of an answer; a hub takes about one for the commit of a large model."""

LONGEST_WAIT = 300
"""Seconds that a hub may ask to wait before another try: the window in which the public one counts requests."""

_STRANGE = (TypeError, AttributeError, LookupError, ValueError, ArithmeticError, AssertionError, RecursionError)
"""What huggingface_hub raises at an answer of another shape than it expects."""


@contextmanager
def pushing(to: str, hub: str) -> Iterator[None]:
    """huggingface_hub asks `hub` through a client of ours until the end of the block.

    Args:
        to: the repository, for messages.
    Raises:
        BadInput: the hub refused, could not be reached, or answered what cannot be read; the message says what it was asked.
    """
    from huggingface_hub import get_token, set_client_factory
    from huggingface_hub.errors import HfHubHTTPError
    from huggingface_hub.utils._http import default_client_factory

    network: Any = HfHubHTTPError.__mro__[1]  # of httpx or httpx2, whichever this version stands on: lost connections are one
    http: Any = importlib.import_module(network.__module__.partition(".")[0])
    answers: list[str] = []
    hooks = default_client_factory().event_hooks
    set_client_factory(lambda: _bounded(http, hub, hooks, answers))
    try:
        yield
    except PerseError:
        raise
    except (network, http.InvalidURL, OSError, RuntimeError, *_STRANGE) as error:
        # Of a thread's error it says which file it was about, and is raised from it.
        whole = error.__cause__ if type(error) is RuntimeError and error.__cause__ else error
        if isinstance(whole, PerseError):
            raise whole from None
        if isinstance(whole, Unfit):
            why = f"{hub} was asked {answers[-1]}, and {whole}; see whether HF_ENDPOINT names the hub that you mean"
        elif isinstance(whole, _STRANGE) and not isinstance(whole, (network, OSError)):
            why = (
                f"{hub} answered {answers[-1]}, as no Hugging Face hub does; see whether HF_ENDPOINT names the hub that you mean"
                if answers
                else f"nothing was asked ({whole!r}); see whether HF_HOME is a folder of huggingface_hub's, as it wrote it"
            )
        else:
            why = f"{_reason(whole)}; check the name, the token's right to write and the network, and push again"
        raise BadInput(f"{to} was not pushed: {without_keys(why, get_token() or '')}") from None
    finally:
        set_client_factory(default_client_factory)


def _bounded(http: Any, hub: str, hooks: Any, answers: list[str]) -> Any:
    class Bounded(http.Client):  # type: ignore[misc]
        def send(self, request: Any, **named: Any) -> Any:
            """Raises Unfit, or BadInput of a redirect. `answers` gets what was asked, and what was said to it."""
            asked = f"{request.method} {request.url.path}"
            if request.url.path.endswith(_ASIDE):
                raise Unfit("it is not asked")
            answers.append(asked)
            response = super().send(request, **{**named, "stream": True, "follow_redirects": False})
            try:
                if response.has_redirect_location:
                    raise BadInput(not_followed(hub, response.headers["location"]))
                body = Body(response.headers, Deadline(SILENCE))
                for part in response.iter_bytes():
                    body.add(part)
            finally:
                response.close()
            if response.is_error and (wait := asked_to_wait(response.headers)) > LONGEST_WAIT:
                raise Unfit(f"it asks to wait {wait:g} s before another try")
            said = " ".join(body.content[:200].decode("utf-8", "replace").split())[:80]
            answers.append(f"{asked} with {said or 'nothing'}")
            kept = http.Headers([one for one in response.headers.multi_items() if one[0] not in _PACKING])
            return http.Response(
                response.status_code, headers=kept, content=body.content, request=request, extensions=response.extensions
            )

    return Bounded(event_hooks=hooks, headers=ACCEPTED, timeout=http.Timeout(SILENCE, connect=CONNECT))


_ASIDE = "/api/agent-harnesses"
"""What huggingface_hub asks for its statistics, and keeps for a day, whatever the answer is: one of another shape breaks every call."""

_PACKING = ("content-encoding", "content-length", "transfer-encoding", "ratelimit")
"""Headers that are no longer true of an answer that was unpacked; and one that would have huggingface_hub sleep."""


def refuse_missing_xet(to: str, hub: str) -> None:
    """huggingface_hub sends large files by a program of its own, which asks for a token again and again for minutes where there is
    none; so it is asked for here, once.

    Raises:
        BadInput: the hub has none.
    """
    from huggingface_hub import get_session, hf_raise_for_status
    from huggingface_hub.utils._headers import build_hf_headers
    from huggingface_hub.utils._runtime import is_xet_available

    if not is_xet_available():
        return
    answer = get_session().get(f"{hub}/api/models/{to}/xet-write-token/main", headers=build_hf_headers())
    if answer.status_code == 404 or (answer.is_success and "x-xet-access-token" not in answer.headers):
        raise BadInput(
            f"{to} was not pushed: {hub} gives no token for Xet storage (HTTP {answer.status_code} to GET {answer.request.url.path}); set "
            "HF_HUB_DISABLE_XET=1 to send large files without it, and push again"
        )
    hf_raise_for_status(answer)


def _reason(error: BaseException) -> str:
    """The message of the hub or the network, on one line."""
    said = redact(getattr(error, "server_message", None) or " ".join(str(error).split()))
    status = getattr(getattr(error, "response", None), "status_code", None)
    return f"{'' if status is None else f'HTTP {status}, '}{said[:300] or type(error).__name__}"
