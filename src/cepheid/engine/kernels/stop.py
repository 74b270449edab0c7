"""How a search is stopped: a flag that kernels poll, and a guard that waits beside them.

A search runs in a thread of its own, without Python's global lock, while the caller waits: so Ctrl-C reaches the caller
as it does in any Python code (a notebook, a Spark task), and never a kernel in the middle of handing over its result.
The caller then raises the flag, the kernel returns what it has within moments, and nobody looks at that. A deadline and
a budget of memory are held in the same way.

The flag is one number at an address that compiled code knows by name, so no kernel has to be handed it.
"""

from __future__ import annotations

import _thread
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

import numpy as np

from cepheid.budget import EVERY, NO_BUDGET, Budget, check_budget, current_budget, within_budget
from cepheid.engine.kernels.loading import register, when_loaded

__all__ = ["STOP", "briefly", "guarded", "in_the_background", "stop_flag", "within_budget"]

T = TypeVar("T")

STOP = np.zeros(1, np.int64)  # not 0: kernels return at their next look
SYMBOL = "cepheid_stop"


def stop_flag() -> int:
    """Not 0 if the search is to return at once; what it has found is thrown away."""
    return int(STOP[0])


def _load_flag(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Reads the flag in compiled code, each time anew."""
    from llvmlite import ir

    known = builder.module.globals.get(SYMBOL)
    flag = known if known is not None else ir.GlobalVariable(builder.module, ir.IntType(64), SYMBOL)
    flag.linkage = "external"
    # An atomic one: the compiler would read any other once, before the loop.
    return builder.load_atomic(flag, "monotonic", 8)


def _name_flag() -> None:
    import llvmlite.binding

    llvmlite.binding.add_symbol(SYMBOL, STOP.ctypes.data)


register(stop_flag, _load_flag)
when_loaded(_name_flag)


_beside: ContextVar[bool] = ContextVar("cepheid_beside", default=False)  # does a caller wait beside this thread?
_brief: ContextVar[bool] = ContextVar("cepheid_brief", default=False)
_running = threading.Lock()  # kernels run one at a time, as they did under the global lock: the flag is theirs alone


def _renew_lock() -> None:
    global _running
    _running = threading.Lock()
    STOP[0] = 0


if hasattr(os, "register_at_fork"):  # a child must not wait for a thread that it does not have
    os.register_at_fork(after_in_child=_renew_lock)


@contextmanager
def briefly(brief: bool = True) -> Iterator[None]:
    """Searches in this block are known to take less time than starting a thread: the caller's runs them."""
    token = _brief.set(brief)
    try:
        yield
    finally:
        _brief.reset(token)


def guarded(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that Ctrl-C, a deadline and a budget of memory can stop; or a function that calls several of them."""

    def run(*arguments: Any) -> Any:
        if _beside.get():
            return function(*arguments)
        budget = current_budget()
        running, held = _running, [False]
        try:
            while not held[-1]:
                check_budget(budget)
                # One call that cannot be interrupted half way: the lock is held if and only if the list says so.
                held.extend(map(running.acquire, (True,), (EVERY,)))
            if _brief.get() and budget is NO_BUDGET:
                return function(*arguments)
            return _run_beside(function, arguments, budget)
        finally:
            if held[-1]:
                running.release()

    run.__name__, run.__doc__, run.__module__ = function.__name__, function.__doc__, function.__module__
    run.__wrapped__ = function  # type: ignore[attr-defined]
    return run


class _Sign:
    """Lives as long as the thread that it is handed to."""

    __slots__ = ("__weakref__",)


def _run_beside(function: Callable[..., Any], arguments: tuple[Any, ...], budget: Budget) -> Any:
    # All is made before the thread starts: one that is out of memory can neither append to a list nor set an Event.
    done, value, failure = range(3)
    outcome: list[Any] = [False, None, None]
    finished = _thread.allocate_lock()
    finished.acquire()
    context, release = copy_context(), finished.release
    handed = [(_Sign(),)]
    lives = weakref.ref(handed[0][0])

    def work(sign: _Sign) -> None:
        del sign  # the thread has it still
        try:
            context.run(_beside.set, True)
            outcome[value] = context.run(function, *arguments)
            outcome[done] = True
        except BaseException as error:
            outcome[failure] = error
        finally:
            release()

    started: list[int] = []
    try:
        # One call that cannot be interrupted half way: the thread runs if and only if the list says so.
        started.extend(map(_thread.start_new_thread, (work,), handed))
        handed.clear()
        while not finished.acquire(timeout=EVERY) and lives() is not None:
            check_budget(budget)
    except BaseException:
        handed.clear()
        if started:
            _stop(finished, lives)
        raise
    if outcome[failure] is not None:
        raise outcome[failure]
    if not outcome[done]:
        raise MemoryError("a search ended for want of memory")
    return outcome[value]


def _stop(finished: _thread.LockType, lives: weakref.ref[_Sign]) -> None:
    """Raises the flag until the kernel has returned; further interrupts are held back until then."""
    STOP[0] = 1
    try:
        while lives() is not None:
            with suppress(KeyboardInterrupt):
                if finished.acquire(timeout=EVERY):
                    break
    finally:
        STOP[0] = 0


def in_the_background(work: Callable[[], T]) -> T:
    """What `work` returns. It cannot be stopped; at the deadline the caller stops waiting, and it goes on alone.

    For the compiler: what it has made by then serves the next call.
    """
    if current_budget().deadline is None:
        return work()
    result: list[T] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            result.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, name="cepheid-compiler")
    thread.start()
    while thread.is_alive():
        thread.join(EVERY)
        check_budget()
    if failure:
        raise failure[0]
    if not result:
        raise MemoryError("a compilation ended for want of memory")
    return result[0]
