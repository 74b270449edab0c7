"""What a call may spend: until when it may run, and how much memory the process may take for it.

A public call opens a budget (`within_budget`), and every phase holds to it: parsing, planning, compiling, searching,
diagnosing. Kernels are stopped from beside them (`engine/kernels/stop.py`). Loops in Python call `checkpoint`, which
costs a look at the clock; what would take much memory at once says so before it is built (`reserve`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from cepheid.errors import LimitError, TimeoutReached

T = TypeVar("T")

EVERY = 0.05  # seconds between two looks at the memory: it takes some microseconds
_LARGE = 2**20  # bytes; less is not looked at before it is built


@dataclass
class Budget:
    """Until when a query may run, and how much memory the process may take for it."""

    deadline: float | None = None  # of time.monotonic()
    timeout: float | None = None  # what the deadline came from, in seconds
    max_bytes: int | None = None
    bytes_before: int = 0
    next_look: float = 0.0  # when the memory is looked at again


NO_BUDGET = Budget()
_budget: ContextVar[Budget] = ContextVar("cepheid_budget", default=NO_BUDGET)


def current_budget() -> Budget:
    """The budget that holds here."""
    return _budget.get()


@contextmanager
def set_to(variable: ContextVar[T], value: T) -> Iterator[None]:
    """A block in which a variable has a value."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


@contextmanager
def within_budget(timeout: float | None, max_bytes: int | None) -> Iterator[None]:
    """What this block may spend; a budget further out goes on to hold."""
    outer = _budget.get()
    if timeout is None and max_bytes is None:
        yield
        return
    deadline, limit = outer.deadline, outer.timeout
    if timeout is not None and (deadline is None or time.monotonic() + timeout < deadline):
        deadline, limit = time.monotonic() + timeout, timeout
    most, before = outer.max_bytes, outer.bytes_before
    if max_bytes is not None:
        taken = resident_bytes()
        if most is None or taken + max_bytes < before + most:
            most, before = max_bytes, taken
    with set_to(_budget, Budget(deadline, limit, most, before)):
        yield


def unbounded() -> AbstractContextManager[None]:
    """A block that waits for others, such as Spark and its jobs: their tasks have budgets of their own."""
    return set_to(_budget, NO_BUDGET)


def resident_bytes() -> int:
    """The memory that the process takes at this moment; 0 where the system does not say."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


def check_budget(budget: Budget | None = None) -> None:
    """An error if the time is over, or more memory is taken than the query may."""
    budget = _budget.get() if budget is None else budget
    if budget.deadline is not None and time.monotonic() > budget.deadline:
        raise TimeoutReached(
            f"the query did not finish within timeout={budget.timeout:g} seconds",
            hint="make the window shorter or the conditions tighter, or allow more time",
        )
    if budget.max_bytes is not None and resident_bytes() - budget.bytes_before > budget.max_bytes:
        raise _too_large(budget)


def _too_large(budget: Budget) -> LimitError:
    return LimitError(
        f"the query took more than max_bytes={budget.max_bytes} of memory",
        hint="lower max_matches, or use output='count', which lists no matches",
    )


def checkpoint() -> None:
    """The same in a loop of Python: the clock each time, the memory now and then."""
    budget = _budget.get()
    if budget is NO_BUDGET:
        return
    now = time.monotonic()
    if (budget.deadline is not None and now > budget.deadline) or now > budget.next_look:
        budget.next_look = now + EVERY
        check_budget(budget)


def paced(items: Iterable[T]) -> Iterator[T]:
    """The items, with a checkpoint before each."""
    for item in items:
        checkpoint()
        yield item


def reserve(size: int) -> None:
    """An error if something of so many bytes is more than may still be taken."""
    budget = _budget.get()
    if budget.max_bytes is None or size < _LARGE:
        return
    if resident_bytes() + size - budget.bytes_before > budget.max_bytes:
        raise _too_large(budget)


def available_threads() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
