"""What perse raises when a person can do something about it.

Every message says what was found, what was expected and the remedy, in one sentence (DESIGN.md, promise 8). The command
line prints the message alone and exits with 2 (`ServerLost`: 3); anything else that escapes is a bug in perse and keeps its traceback.
"""

from perse.bounded import first_line
from perse.secrets import printable, redact

LONGEST = 4000
"""Characters of a message; of a longer one, which repeats what stands in a file, the middle is left out: the remedy is at its end."""
_END = 1000


class PerseError(Exception):
    """Base of all errors that name their remedy. No message repeats a key, nor a character that a terminal would obey."""

    def __init__(self, message: str = "") -> None:
        message = printable(redact(message))
        if len(message) > LONGEST:
            left_out = len(message) - LONGEST
            message = f"{message[: LONGEST - _END]} [... {left_out:,} characters left out ...] {message[-_END:]}"
        super().__init__(message)


class BadInput(PerseError):
    """A file, a row, an option or a configuration key that cannot be used as it is."""


class ModelNotFound(PerseError):
    """A model that is nowhere to be had; the message lists what was tried."""


class TooLong(PerseError):
    """A prompt that does not fit the context even with an empty profile; `numbers` says what was found and allowed."""

    def __init__(self, message: str, **numbers: int) -> None:
        super().__init__(message)
        self.numbers = numbers


class RunMismatch(PerseError):
    """A run folder that was begun with other settings than those asked for now."""


class EngineLost(PerseError):
    """The engine is gone for good: no later prompt would be answered either."""


class ServerLost(PerseError):
    """A judge server ended because its engine did: no setting is wrong, and another start may do."""


class SaveFailed(PerseError):
    """What was to be kept could not be written, or is not on the disk as it was in memory; what was there before is whole."""


def panic(error: BaseException) -> BadInput | None:
    """What a panic of the tokenizers' Rust code is about, which is no Exception and no class to import; None for anything else."""
    if type(error).__name__ != "PanicException":
        return None
    return BadInput(f"the tokenizer failed on this text: {first_line(error)}; give the tokenizer that came with the model")
