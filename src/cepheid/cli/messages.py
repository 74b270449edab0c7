"""What the commands say besides their results: on stderr, coloured on a terminal, plain elsewhere."""

from __future__ import annotations

import re
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.text import Text

from cepheid.errors import CepheidError, QueryError

# Rich writes no colours where NO_COLOR is set or the stream is no terminal.
# Its markup would swallow the [id] of queries.
out = Console(highlight=False, markup=False)
err = Console(stderr=True, highlight=False, markup=False)

_MODEL_IN_PYTHON = "pass model=cepheid.Model(loss=..., gaps=...), or fit one with cepheid.fit"
_OPTIONS = (
    "time|type|lower|upper|time_unit|tiebreak|engine|scoring|model|delay|bad_records|aside|decimal|thousands|dedupe"
    "|format"
)


def print_user_error(error: CepheidError) -> None:
    """The error as a sentence; for a query, with the line and the place in it."""
    text = in_words_of_the_command_line(str(error))
    message = Text("error: ", style="bold red")
    first, _, rest = text.partition("\n")
    message.append(first, style="bold" if isinstance(error, QueryError) else "not bold default")
    if rest:
        message.append("\n" + rest, style="not bold default")
    err.print(message, soft_wrap=True)


def print_internal_error(error: Exception) -> None:
    """A defect: everything a report of it needs."""
    err.print(Text("".join(traceback.format_exception(error)).rstrip()), soft_wrap=True)
    message = Text("internal error: ", style="bold red")
    message.append("this is a bug in Cepheid, not in your query or data; please report it with the lines above")
    err.print(message, soft_wrap=True)


@contextmanager
def explaining_delay() -> Iterator[None]:
    """Says why it takes so long, should engines be compiled inside: that happens once on a machine."""
    from cepheid.engine.kernels.progress import tell_with

    said = False

    def tell(_: str) -> None:
        nonlocal said
        if not said:  # one line is enough
            said = True
            note("compiling the engine for this machine; this takes a minute or two, once ...")

    tell_with(tell)
    try:
        yield
    finally:
        tell_with(None)


@contextmanager
def warnings_as_remarks() -> Iterator[None]:
    """Prints warnings as one line each, in the words of the command line, without a place in the code."""
    with warnings.catch_warnings():
        usual, reported = warnings.showwarning, set[str]()

        def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
            if not issubclass(category, UserWarning):
                usual(message, category, *place, **more)
            elif str(message) not in reported:
                reported.add(str(message))
                line = Text("warning: ", style="bold yellow")
                line.append(in_words_of_the_command_line(str(message)), style="not bold default")
                err.print(line, soft_wrap=True)

        warnings.showwarning = show
        yield


def note(text: str) -> None:
    """A remark that is no result."""
    err.print(Text(text, style="dim"), soft_wrap=True)


def warning(text: str) -> None:
    """Something that does not stop the command, and that one must not overlook."""
    message = Text("warning: ", style="bold yellow")
    err.print(message.append(text, style="not bold default"), soft_wrap=True)


def in_words_of_the_command_line(message: str) -> str:
    """Proposals speak of Python arguments; here they are options.

    >>> in_words_of_the_command_line("no column 'ts' for the time; did you mean time='when'?")
    "no column 'ts' for the time; did you mean --time when?"
    >>> in_words_of_the_command_line("pass time_unit='ms' (or what 'ts' counts); pass type=None for an untyped stream")
    "pass --time-unit ms (or what 'ts' counts); pass --untyped for an untyped stream"
    """
    message = message.replace(_MODEL_IN_PYTHON, "learn one with `cepheid fit` and pass it with --model")
    message = message.replace("cepheid.sql.query(spark, statement)", "`cepheid sql`")
    message = message.replace("write models with Model.save", "`cepheid fit` writes models")
    message = re.sub(r"\btype=None\b", "--untyped", message)
    message = re.sub(r"\bparameters=\{'(\w+)': \.\.\.\}", r"--parameter \1=...", message)
    message = re.sub(r"\btruncate=True\b", "--truncate", message)
    message = re.sub(
        r"\b(max_matches|max_partial_matches|timeout)=", lambda found: f"--{found[1].replace('_', '-')} ", message
    )

    def option(found: re.Match[str]) -> str:
        value = f"'{found[2]}'" if " " in found[2] else found[2]
        return f"--{found[1].replace('_', '-')} {value}"

    return re.sub(rf"\b({_OPTIONS})='([^']*)'", option, message)
