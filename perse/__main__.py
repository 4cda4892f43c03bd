"""The `perse` command, and `python -m perse ...` for the Python that is named.

Kept apart from `perse.commands.app` because reading that takes a second, in which a Ctrl-C must not end in a traceback either.
"""

import os
import sys


def main() -> None:
    """Run the command line."""
    if not os.environ.get("COLUMNS", "1").strip("0"):  # a width of nothing, in which nothing would be printed
        del os.environ["COLUMNS"]
    try:
        from perse.commands.app import main as run

        run()
    except KeyboardInterrupt:  # before the command line took it over, so nothing was begun
        sys.exit(130)


if __name__ == "__main__":
    main()
