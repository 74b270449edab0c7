"""Conditions as plain Python inside compiled kernels: those that numba cannot compile, and new ones over few events.

To compile a condition takes some tenths of a second, and to call it as Python some microseconds. So a condition that is
new in this process runs as Python first. When it has been called `MOST_CALLS` times, the search stops, and runs again
with the condition compiled. This holds for every language.

Kernels get one and the same compiled function for all of them. The last literal of the columns that it is called with
is their number, which says which condition is meant. The literals before it are tables of answers to conditions on
texts of several events, where there are few different texts: kernels look these up, and Python fills them.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from cepheid.budget import set_to
from cepheid.engine.kernels.compile import handed_over
from cepheid.engine.kernels.loading import Contents, cached
from cepheid.engine.kernels.stop import in_the_background
from cepheid.engine.values.interpreted import Lookups, lookup_tables

FEW_EVENTS = 20_000  # more of them ask so often that a new condition is compiled at once
MOST_CALLS = 30_000  # they take about as long as to compile a condition

T = TypeVar("T")

_numbers = itertools.count()
_first: ContextVar[bool] = ContextVar("cepheid_python_first", default=False)


class TooManyCallsError(Exception):
    """A condition that runs as Python is called so often that it is worth compiling."""


@dataclass(eq=False)
class PythonForm:
    """A condition as a Python function, and how often it was called."""

    call: Callable[..., bool]
    number: int
    most: int | None  # None: it cannot be compiled, and runs as Python for good
    lookups: tuple[Lookups, ...] = ()
    calls: int = 0

    @property
    def exhausted(self) -> bool:
        """Is it time to compile it?"""
        return self.most is not None and self.calls >= self.most


_forms: weakref.WeakValueDictionary[int, PythonForm] = weakref.WeakValueDictionary()
_filled: dict[int, tuple[PythonForm, Any]] = {}  # the condition and the columns, by the number of the columns


def python_first(first: bool = True) -> AbstractContextManager[None]:
    """Conditions that are new run as Python in this block; their columns come from `fill`, and none outlives it."""
    return set_to(_first, first)


def is_python_first() -> bool:
    """Do new conditions run as Python here?"""
    return _first.get()


def as_python_first(events: int, run: Callable[[], T]) -> T:
    """What `run` returns, with new conditions as Python if there are few events; compiled once that takes too long."""
    if events > FEW_EVENTS:
        return run()
    try:
        with python_first():
            return run()
    except TooManyCallsError:
        with python_first(False):
            return run()


def new_form(call: Callable[..., bool], most: int | None, lookups: tuple[Lookups, ...] = ()) -> PythonForm:
    """A Python function under a number of its own, as long as somebody holds it."""
    form = PythonForm(call, next(_numbers), most, lookups)
    _forms[form.number] = form
    return form


def numbered(form: int, columns: Any) -> Any:
    """The same columns with a number of their own as the last literal; it goes when these literals do."""
    number, lookups = next(_numbers), _forms[form].lookups
    tables = lookup_tables(lookups, int(columns.literal[-1])) if lookups else np.zeros(2, np.int64)
    tables[-1] = number
    literals = tables[:]  # an array of its own, which the tables of answers do not hold
    _filled[number] = _forms[form], columns
    weakref.finalize(literals, _filled.pop, number, None)
    return columns._replace(literal=literals)


def evaluate_by_number(number: int, case: int, at: object, counted: object, running: object) -> bool:
    form, columns = _filled[number]
    if form.most is not None:
        form.calls += 1
        if form.calls > form.most:
            raise TooManyCallsError
    return bool(form.call(case, at, counted, running, columns))


@lru_cache(maxsize=1)
def called_by_number(signature: object) -> Any:
    """The function that kernels call for all conditions that run as Python: compiled, or from the cache."""
    import cepheid.engine.values.in_object_mode as forms

    compiled = in_the_background(lambda: cached(forms.judged_by_number, signature, {}, Contents({forms.__file__})))
    return handed_over(compiled, signature)
