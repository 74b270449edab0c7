"""Answers before kernels are compiled or loaded: small tables do not wait.

Kernels are plain Python as well, some hundred times slower. Where an engine is not compiled yet and there are few
events, a query runs that way; so does one over a handful of events in a process that has loaded no kernel, since the
first one costs half a second. What turns out to take long after all is stopped, and run again by the compiled engine.
Nothing is compiled for later: `cepheid warm` does that, and a platform wheel brings compiled kernels.

`CEPHEID_COMPILE=always` has every query wait for the compiler.
"""

from __future__ import annotations

import importlib
import os
import time
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import TypeVar

from cepheid.budget import within_budget
from cepheid.engine.kernels.compile import COMPILES, Kernel, interpreted, is_interpreted, names_in
from cepheid.engine.kernels.loading import kernels_in_use
from cepheid.engine.values.python_first import as_python_first
from cepheid.errors import TimeoutReached

FEW_EVENTS = 5_000  # more of them take longer as plain Python than the compiler does
PATIENCE = 2.0  # seconds that a query may take as plain Python
IN_ALL = 6.0  # seconds of this process; after that compiling is worth it
HANDFUL = 200  # so few events take less time as plain Python than loading the first kernel does
LOADING = 0.5  # seconds that this takes

Result = TypeVar("Result")


class _Spent:
    seconds = 0.0


_ready: set[str] = set()  # engines that were found compiled: a cache is read once, not with every call


def answer(module: str, events: int, run: Callable[[], Result], *, once: bool = False) -> Result:
    """What `run` returns, as plain Python if the engine's module is not compiled and there are few events.

    With `once` there may be no further calls, so a handful of events are not worth loading a kernel. If it is compiled,
    new conditions alone run as plain Python, for a while (`values/python_first.py`).
    """
    if once:
        return before_loading(events, run, lambda: answer(module, events, run))
    if not _is_cold(module, events):
        return as_python_first(events, run)
    return _within_patience(PATIENCE, IN_ALL, run, run)


def before_loading(events: int, run: Callable[[], Result], otherwise: Callable[[], Result]) -> Result:
    """What `run` returns, as plain Python if there are a handful of events and no kernel is loaded."""
    if events > HANDFUL or _Spent.seconds >= LOADING or not _may_interpret() or kernels_in_use():
        return otherwise()
    return _within_patience(LOADING, LOADING, run, otherwise)


def _within_patience(
    patience: float, spent: float, run: Callable[[], Result], otherwise: Callable[[], Result]
) -> Result:
    """What `run` returns as plain Python; what `otherwise` returns if that takes too long, and so much is spent."""
    began = time.process_time()  # a busy machine takes longer for all that it might do instead, too
    try:
        with within_budget(patience, None), interpreted():
            return run()
    except TimeoutReached:
        _Spent.seconds = max(_Spent.seconds, spent)  # the data are larger than they look
    finally:
        _Spent.seconds += time.process_time() - began
    return otherwise()


def _may_interpret() -> bool:
    return COMPILES and os.environ.get("CEPHEID_COMPILE") != "always"


def _is_cold(module: str, events: int) -> bool:
    if is_interpreted() or events > FEW_EVENTS or _Spent.seconds >= IN_ALL or not _may_interpret():
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


def named_by(function: FunctionType) -> list[object]:
    """What a function names, also as a name of a module of the engine."""
    names = list(names_in(function.__code__))
    values = [function.__globals__.get(name) for name in names]
    modules = [value for value in values if isinstance(value, ModuleType) and value.__name__.startswith("cepheid.")]
    return [*values, *(getattr(module, name, None) for module in modules for name in names)]


def module_kernels(module: str) -> list[Kernel]:
    """The kernels that Python calls in a module of the engine, and in those modules whose functions it calls."""
    seen: set[int] = set()
    found: list[Kernel] = []

    def visit(value: object) -> None:
        entry = value if isinstance(value, Kernel) else getattr(value, "__wrapped__", None)
        if id(value) in seen or not (getattr(value, "__module__", None) or "").startswith("cepheid.engine"):
            return
        seen.add(id(value))
        if isinstance(entry, Kernel):
            found.append(entry)
        elif isinstance(value, FunctionType):
            for named in named_by(value):
                visit(named)
        elif isinstance(value, type):
            for member in vars(value).values():
                visit(getattr(member, "__func__", member))

    for value in vars(importlib.import_module(f"cepheid.engine.{module}")).values():
        if not isinstance(value, Kernel):
            visit(value)
    return found
