"""How every command line of perse runs and ends: what is said goes to stderr, every failure is a sentence, and no traceback is an answer.

`run_app` is the only place that knows exit codes: 2 for what a person can mend, a wrong option among it, 3 for a server whose engine
died, which is to be started again, 130 for Ctrl-C, 1 for a bug of ours.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import re
import sys
import threading
import traceback
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import typer
from rich.console import Console
from rich.logging import RichHandler

from perse import environment
from perse.errors import BadInput, PerseError, ServerLost, panic
from perse.files.disk import save_failed, write_failed
from perse.installing import extra_for, install
from perse.registry import fault_of_addition
from perse.secrets import HARMLESS, printable, redact
from perse.strict import is_half

err = Console(stderr=True)

USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
"""What typer raises for a command line that it cannot read; which click it is of depends on typer's version."""


CONTINUED = "what was written is kept, and the same command resumes from here, or begins anew where nothing was"


class Stopped(SystemExit):
    """Ctrl-C in a command that has nothing to resume; `means` is what was told instead of `CONTINUED`."""

    def __init__(self, means: str) -> None:
        super().__init__(130)
        self.means = means


def say(words: str) -> None:
    """Words to a person; paths and names in them are no markup, and move no cursor."""
    err.print(printable(words), markup=False, highlight=False, soft_wrap=True)


def run_app(typer_app: typer.Typer) -> None:
    """Run a command line: our errors, and a disk that is full, become one line and exit code 2; Ctrl-C says that the work can be
    continued."""
    _open_standard_streams()
    handler = RichHandler(console=err, show_path=False, show_time=False)
    handler.addFilter(HARMLESS)
    logging.basicConfig(level=logging.WARNING, format="%(message)s", handlers=[handler])
    logging.captureWarnings(True)
    threading.excepthook = _say_of_thread
    logging.getLogger("perse").setLevel(logging.INFO)
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)  # peft imports it, and on a CPU it warns of a kernel it lacks
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    try:
        environment.clean(os.environ)
        environment.yield_threads(os.environ)
        _refuse_half_characters(sys.argv[1:])
        _refuse_named_pipes(sys.argv[1:])
        _refuse_no_place(sys.argv[1:])
        _refuse_lost_folder()
        try:
            code = _called(typer_app)
        finally:
            _flush_output()
        sys.exit(code if isinstance(code, int) else 0)
    except PerseError as error:
        _say(error)
        sys.exit(3 if isinstance(error, ServerLost) else 2)  # supervisors do not start again what ended with 2
    except USAGE_ERROR as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # its help is printed by now
            _say(BadInput(usage(error)))
        sys.exit(2)
    except typer.Abort:
        err.print("aborted")
        sys.exit(1)
    except RecursionError as error:
        _say(
            BadInput(
                f"a file or a text is nested too deeply to be read ({_last_place(error)}); give one without so many brackets"
            )
        )
        sys.exit(2)
    except SystemExit as left:
        if left.code == 130:  # Ctrl-C, as typer reports it
            err.print(f"\nstopped; {left.means if isinstance(left, Stopped) else CONTINUED}")
        if isinstance(left.code, str):  # Python would print it as it is
            say(printable(redact(left.code)))
            sys.exit(1)
        raise
    except Exception as error:  # noqa: BLE001
        if isinstance(error, OSError) and write_failed(error):
            _say(save_failed(error.filename or "the output", error))
            sys.exit(2)
        if isinstance(error, OSError) and error.filename is not None:  # the system's word about a path is about that path
            _say(
                BadInput(
                    f"{os.fsdecode(error.filename)} cannot be used ({error.strerror}); give another path, or see to this one"
                )
            )
            sys.exit(2)
        if isinstance(error, ModuleNotFoundError) and (extra := extra_for(error.name or "")):
            _say(BadInput(f"this needs {error.name}, which is not installed; run: {install(extra)}"))
            sys.exit(2)
        if named := environment.named_in(error, os.environ):
            _say(named)
            sys.exit(2)
        _say_bug(error)
        sys.exit(1)
    except BaseException as error:
        panicked = panic(error)
        if panicked is None:
            raise
        _say(panicked)
        sys.exit(2)


def _called(typer_app: typer.Typer) -> object:
    """What the command line returns.

    Raises:
        BadInput: a package that adds to perse failed; whatever else is raised in it, raised on.
    """
    try:
        return typer_app(standalone_mode=False)  # so that it raises what it would show in a box of its own
    except (PerseError, USAGE_ERROR, typer.Abort, OSError, KeyboardInterrupt):  # they say themselves what to do
        raise
    except BaseException as error:
        missing = isinstance(error, ModuleNotFoundError) and extra_for(error.name or "")
        fault = None if missing else fault_of_addition(error)
        if fault is None:
            raise
        if os.environ.get(TRACEBACK):
            say(printable(redact(traceback.format_exc())))
        raise fault from error


TRACEBACK = "PERSE_TRACEBACK"
"""Set to anything, this variable of the environment has a bug's traceback printed, for a report."""


def _say_bug(error: Exception) -> None:
    """A bug of ours in a sentence; its traceback for those who ask, without a key that may stand in it."""
    told = redact(traceback.format_exc())
    if os.environ.get(TRACEBACK):
        err.print(told, markup=False, highlight=False, soft_wrap=True)
        return
    what = redact(" ".join(f"{type(error).__name__}: {error}".split()))[:300]  # cut afterwards: half a key is not known as one
    err.print(
        printable(
            redact(
                f"perse: a bug of perse, {_last_place(error)}: {what}. What was finished is kept. Please report it, with what the same command "
                f"prints with {TRACEBACK}=1 before it"
            )
        ),
        style="bold red",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


def _say_of_thread(failed: threading.ExceptHookArgs) -> None:
    """A thread that failed, as TensorBoard's where it may not write, in a line: whoever waits for it is told for himself."""
    if failed.exc_value is None or issubclass(failed.exc_type, SystemExit):  # as Python has it
        return
    if os.environ.get(TRACEBACK):
        say(redact("".join(traceback.format_exception(failed.exc_value))))
        return
    what = redact(" ".join(f"{failed.exc_type.__name__}: {failed.exc_value}".split()))[:300]
    logging.getLogger("perse").warning("a thread of %s failed (%s)", type(failed.thread).__module__.partition(".")[0], what)


def usage(error: Exception) -> str:
    """A usage error of typer as one sentence: what was found, what was expected, where to look it up."""
    told: Any = error
    said = " ".join(told.format_message().split()).replace("Value error, ", "").removesuffix(".")
    if wrong := re.fullmatch(r"Invalid value for '(?P<name>[^:]*?)': '(?P<found>.*)' is not one of (?P<choices>.+)", said):
        *others, last = re.findall(r"'([^']*)'", wrong["choices"])
        said = f"{wrong['name']} is '{wrong['found']}'; choose {' or '.join([', '.join(others), last] if others else [last])}"
    elif wrong := re.fullmatch(r"Invalid value for '(?P<name>[^:]*?)': (?P<why>.+)", said):
        said = f"{wrong['name']}{_found(error)}: {wrong['why'][0].lower()}{wrong['why'][1:]}"
    else:
        said = said[0].lower() + said[1:]
    where = f" (see {told.ctx.command_path} --help)" if getattr(told, "ctx", None) else ""
    return said + where


def _found(error: Exception) -> str:
    """What was given, where typer's check (pydantic's) kept it and does not say it itself."""
    errors = getattr(error.__cause__, "errors", None)
    return f" is '{errors()[0]['input']}'" if errors else ""


def _last_place(error: BaseException) -> str:
    """The module of perse that was at it last: it says what was read."""
    home = Path(str(files("perse")))
    frames = traceback.extract_tb(error.__traceback__)
    ours = [place for frame in frames if (place := Path(frame.filename)).is_relative_to(home)]
    return f"in {'.'.join(ours[-1].relative_to(home.parent).with_suffix('').parts)}" if ours else "outside of perse"


def _open_standard_streams() -> None:
    """One that was closed (`>&-`) leads nowhere: Python has None there, and the next file that is opened would get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)
            setattr(sys, name, open(number, "r" if number == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115
            if nowhere > 2:
                os.close(nowhere)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")  # an encoding without our bars, as stderr has it anyway


def _refuse_lost_folder() -> None:
    """Libraries look for themselves from the working folder, and fail in words of their own where it was removed."""
    try:
        Path.cwd()
    except FileNotFoundError:
        raise BadInput("the folder that you are in was removed, or made anew; cd to one that is there") from None


def _say(error: PerseError) -> None:
    try:
        err.print(f"perse: {error}", style="bold red", markup=False, highlight=False, soft_wrap=True)
    except OSError:  # the disk that stderr goes to is full: the exit code has to say it
        _to_nowhere(sys.stderr)


def _flush_output() -> None:
    """What was printed is out, or it is said here why not: the interpreter would do it after everything, with an exit code of its own.

    Raises:
        OSError: the disk that stdout goes to is full.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        _to_nowhere(sys.stdout)
        if error.errno != errno.EPIPE:  # a reader that has seen enough, as in `perse ... | head`
            raise


def _to_nowhere(stream: IO[str]) -> None:
    """What could not be written is not tried again at the interpreter's end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _refuse_half_characters(arguments: Sequence[str]) -> None:
    """Bytes that are not UTF-8 reach Python as half characters, which no manifest and no file of JSON takes."""
    for number, argument in enumerate(arguments, start=1):
        if is_half(argument):
            raise BadInput(f"argument {number}, '{argument}', is not UTF-8; give the text as UTF-8, or rename the file")


def _refuse_named_pipes(arguments: Sequence[str]) -> None:
    """One that nobody writes to would be waited for without end. The pipes of a shell, as /dev/stdin and `<(...)`, have no name of
    their own in a folder."""
    for path in (part for argument in arguments for part in (argument, argument.partition("=")[2])):
        with suppress(OSError, ValueError):
            if Path(path).is_fifo() and Path(path).resolve().is_fifo():
                raise BadInput(
                    f"{path} is a named pipe, for which a command could wait without end; give a file that holds the same"
                )


def _refuse_no_place(arguments: Sequence[str]) -> None:
    """An empty --out, as of a variable of the shell that is not set, would be the folder that one is in: files would be strewn there."""
    for argument, following in pairwise((*arguments, None)):
        if argument == "--":  # no option comes after it
            return
        if argument == "--out=" or (argument == "--out" and following == ""):
            raise BadInput("--out is empty; give the file or folder to write (. is the folder that you are in)")


def list_recipes(recipes: dict[str, Path]) -> None:
    """Every packaged recipe with the first line of its file, which says what it is for."""
    for name, path in recipes.items():
        first = path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ")
        typer.echo(f"{name:<18} {first}")
