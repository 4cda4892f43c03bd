"""An engine whose answers are a function of the message and the seed: for tests, and to try a pipeline without a model.

It computes nothing, so it proves that the code around an engine holds, never that a prompt is good.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from perse.engines.base import Capabilities, Failure, Reply, Sampling, Turns
from perse.judgement import Tokens


class ScriptedEngine:
    """A `ChatEngine` that asks `reply(message, seed)`.

    Args:
        reply: the answer to one message (of a conversation, its turns joined by empty lines); a plain string is one that
            ended by itself. A writer calls it from `batch` threads at once.
        batch: how many messages it says it likes at once.
        name: tells scripts apart, in `settings` and so in whatever is kept by them.
    """

    def __init__(self, reply: Callable[[str, int], Reply | Failure | str], *, batch: int = 32, name: str = "scripted") -> None:
        self.capabilities = Capabilities(accepts_token_ids=False, exact_distribution=False, batch=batch)
        self.settings = {"engine": "scripted", "script": name}
        self._reply = reply

    def chat(self, messages: Sequence[str | Turns], sampling: Sampling, *, seeds: Sequence[int]) -> list[Reply | Failure]:
        whole = [message if isinstance(message, str) else "\n\n".join(message) for message in messages]
        return [_whole(self._reply(message, seed)) for message, seed in zip(whole, seeds, strict=True)]


def _whole(said: Reply | Failure | str) -> Reply | Failure:
    return Reply(said, "stop", Tokens(prompt=0, cached=0, generated=0)) if isinstance(said, str) else said
