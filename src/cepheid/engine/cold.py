"""The first answers of a fresh installation: small tables do not wait for the compiler.

Kernels are plain Python as well, some hundred times slower. Where an engine is not compiled yet and there are few
events, a query runs that way, and another process compiles the engine meanwhile, for the queries to come. What turns
out to take long after all is stopped, and run again by the compiled engine.

`CEPHEID_COMPILE=always` has every query wait for the compiler; `CEPHEID_COMPILE=later` starts no process.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FunctionType, ModuleType
from typing import TypeVar

from cepheid.budget import within_budget
from cepheid.engine.kernels.compile import COMPILES, Kernel, interpreted, names_in
from cepheid.engine.values.python_first import as_python_first
from cepheid.errors import TimeoutReached

FEW_EVENTS = 5_000  # more of them take longer as plain Python than the compiler does
PATIENCE = 2.0  # seconds that a query may take as plain Python
IN_ALL = 6.0  # seconds of this process; after that compiling is worth it

Result = TypeVar("Result")


class _Spent:
    seconds = 0.0


_started: set[str] = set()  # engines for which a process compiles
_ready: set[str] = set()  # engines that were found compiled: a cache is read once, not with every call


def answer(module: str, events: int, run: Callable[[], Result]) -> Result:
    """What `run` returns, as plain Python if the engine's module is not compiled and there are few events.

    If it is compiled, new conditions alone run as plain Python, for a while (`values/python_first.py`).
    """
    if not _is_cold(module, events):
        return as_python_first(events, run)
    compile_meanwhile(module)
    began = time.monotonic()
    try:
        with within_budget(PATIENCE, None), interpreted():
            return run()
    except TimeoutReached:
        _Spent.seconds = IN_ALL  # the data are larger than they look
    finally:
        _Spent.seconds += time.monotonic() - began
    return run()


def _is_cold(module: str, events: int) -> bool:
    if not COMPILES or os.environ.get("CEPHEID_COMPILE") == "always":
        return False
    if events > FEW_EVENTS or _Spent.seconds >= IN_ALL:
        return False
    if module not in _ready:
        searches = search_kernels(importlib.import_module(f"cepheid.engine.{module}"))
        if not all(each.is_ready() for each in searches):
            return True
        _ready.add(module)
    return False


def search_kernels(module: ModuleType) -> list[Kernel]:
    """The kernels by which an engine is entered, among the names of its module."""
    inner = (getattr(value, "__wrapped__", None) for value in vars(module).values())
    return [value for value in inner if isinstance(value, Kernel)]


def full_name(kernel: Kernel) -> str:
    """The module and the name of a kernel."""
    return f"{kernel.__module__}.{kernel.__name__}"


def module_kernels(module: str) -> list[Kernel]:
    """The kernels that Python calls in a module of the engine, and in those modules whose functions it calls."""
    seen: set[int] = set()
    found: list[Kernel] = []

    def visit(value: object) -> None:
        entry = value if isinstance(value, Kernel) else getattr(value, "__wrapped__", None)
        if id(value) in seen or not getattr(value, "__module__", "").startswith("cepheid.engine"):
            return
        seen.add(id(value))
        if isinstance(entry, Kernel):
            found.append(entry)
        elif isinstance(value, FunctionType):
            for name in names_in(value.__code__):
                visit(value.__globals__.get(name))
        elif isinstance(value, type):
            for member in vars(value).values():
                visit(getattr(member, "__func__", member))

    for value in vars(importlib.import_module(f"cepheid.engine.{module}")).values():
        if not isinstance(value, Kernel):
            visit(value)
    return found


def _search_path() -> str:
    """Where this process looks for modules; others may have put paths there that are no strings."""
    return os.pathsep.join(os.fsdecode(each) for each in sys.path if isinstance(each, str | bytes | os.PathLike))


def compile_meanwhile(module: str) -> None:
    """Starts a process that compiles an engine into the cache, unless one is at it."""
    if module in _started or os.environ.get("CEPHEID_COMPILE") == "later":
        return
    _started.add(module)
    where = zlib.crc32(str(Path(__file__).parent).encode())
    owner = os.getuid() if hasattr(os, "getuid") else "user"
    lock = Path(tempfile.gettempdir()) / f"cepheid-compiles-{owner}-{where:08x}-{module}"
    with suppress(OSError):
        if lock.exists() and time.time() - lock.stat().st_mtime < 600:
            return
        lock.touch(mode=0o600)
        subprocess.Popen(
            [sys.executable, "-m", "cepheid.engine.warm", module],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C in the terminal is not meant for it
            env={**os.environ, "CEPHEID_COMPILE": "always", "PYTHONPATH": _search_path()},
        )
