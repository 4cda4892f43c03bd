"""`perse ...` as a person types it, without a process of its own, which takes seconds to import torch.

What concerns a process (signals, a first import, what the interpreter says when it ends, log lines) is tested with one.
"""

from __future__ import annotations

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from unittest.mock import patch

from perse.commands import app as cli
from perse.commands import terminal


def perse(*arguments: object, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """Exit code, stdout and stderr of `perse ARGUMENTS` on a terminal of 120 columns."""
    command = ["perse", *map(str, arguments)]
    out, err, code = io.StringIO(), io.StringIO(), 0
    with (
        patch.object(sys, "argv", command),
        patch.object(sys, "stdin", io.StringIO(stdin or "")),
        patch.object(terminal.err, "_width", 120),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as left:
            code = left.code if isinstance(left.code, int) else int(left.code is not None)
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())
