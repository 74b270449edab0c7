"""The command line: `cepheid run | check | explain | why | simulate | demo | report | fit | warm | bench`.

Exit codes: 0 the command did what was asked, 1 an error that the user can fix, 2 a bug in Cepheid.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

FINE, USER_ERROR, INTERNAL_ERROR, INTERRUPTED = 0, 1, 2, 130


class Process:
    """What is known of the process that a command runs in."""

    ours = False  # does it run this one command and nothing else?


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs a command and ends the process with its exit code."""
    Process.ours = True
    gc.set_threshold(50_000)  # nothing of what imports make is garbage, and looking takes a tenth of a small command
    _end_in_order()
    sys.exit(exit_code(sys.argv[1:] if arguments is None else arguments))


def _end_in_order() -> None:
    """Who is told to end (by `kill`, `timeout`, a closed terminal) removes what it has half written."""

    def end(number: int, _: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for name in ("SIGTERM", "SIGHUP"):
        with suppress(AttributeError, ValueError, OSError):  # Windows has no SIGHUP; only the main thread may ask
            if signal.getsignal(getattr(signal, name)) is signal.SIG_DFL:  # not under nohup
                signal.signal(getattr(signal, name), end)


def exit_code(arguments: Sequence[str]) -> int:
    """Runs a command; every way it can end becomes one of the exit codes, and every error a message on stderr."""
    from cepheid.cli.app import app
    from cepheid.cli.messages import print_internal_error, print_user_error, warnings_as_remarks
    from cepheid.errors import CepheidError

    try:
        with warnings_as_remarks():
            app(args=list(arguments), prog_name="cepheid")
    except SystemExit as end:
        # The only 2 that comes from here is a command line that cannot be understood, which the user can fix.
        return USER_ERROR if end.code == 2 else int(end.code or FINE)
    except CepheidError as error:
        print_user_error(error)
        return USER_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `cepheid run ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FINE
    except Exception as error:
        print_internal_error(error)
        return INTERNAL_ERROR
    return FINE
