"""What is told while kernels are compiled: a line that changes on a terminal, one line in a notebook, else nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

PATIENCE = 1.0  # seconds of compilation before anything is said


class Named(Protocol):
    """A kernel, as far as this module knows it."""

    __name__: str
    __module__: str

    def is_ready(self) -> bool:
        """Is it in the cache?"""


def _write_line(text: str) -> None:
    sys.stderr.write(f"\r{text}\r" if text else "\r\033[K")
    sys.stderr.flush()


def _write_once(_: str) -> None:
    """In a notebook every line stays, in red: one for the whole process is enough."""
    if not _Told.noted:
        _Told.noted = True
        sys.stderr.write("cepheid: compiling the engine for this machine; this takes a minute or two, once\n")
        sys.stderr.flush()


class _Told:
    tell: Callable[[str], None] | None = None  # None: a line on a terminal or in a notebook
    depth = 0
    begun = 0.0
    compiled = 0
    said = False
    noted = False  # in a notebook


def tell_with(tell: Callable[[str], None] | None) -> None:
    """Who hears what is compiled, instead of the terminal or the notebook."""
    _Told.tell = tell


def _listener() -> Callable[[str], None] | None:
    if _Told.tell is not None:
        return _Told.tell
    if sys.stderr.isatty():
        return _write_line
    return _write_once if "ipykernel" in sys.modules else None


@contextmanager
def compiling(kernel: Named) -> Iterator[None]:
    """Counts a kernel that is compiled in this block; kernels that it calls are compiled inside."""
    if _Told.depth == 0:
        _Told.begun, _Told.compiled, _Told.said = time.monotonic(), 0, False
    _Told.depth += 1
    tell = _listener()
    try:
        if tell is not None and time.monotonic() - _Told.begun > PATIENCE and not kernel.is_ready():
            seconds = time.monotonic() - _Told.begun
            tell(
                f"cepheid: compiling for this machine, once: {kernel.__module__.rpartition('.')[2]}.{kernel.__name__} "
                f"({_Told.compiled} done, {seconds:.0f} s)"
            )
            _Told.said = True
        yield
    finally:
        _Told.depth -= 1
        _Told.compiled += 1
        if _Told.depth == 0 and _Told.said and tell is not None:
            tell("")
