"""Compiled kernels with conditions that stay Python: a drawn query then costs no compilation, and kernels are the real
ones.

Numba hands a condition to a kernel as the address of a compiled function. A few such functions are made once; each
calls the Python function that stands under its number, and the numbers are used in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numba

from cepheid.engine.kernels.compile import handed_over
from cepheid.engine.values import compiled

FUNCTIONS = 48  # more than the linear patterns of a drawn expression
_standing: dict[int, Any] = {}
_made: list[Any] = []
_numbers: dict[Any, int] = {}  # by source and functions, the longest unused first


def _function(number: int) -> Any:
    def predicate(case, at, counted, running, columns):  # type: ignore[no-untyped-def]
        with numba.objmode(holds="boolean"):
            holds = bool(_standing[number](case, at, counted, running, columns))
        return holds

    return handed_over(numba.njit(compiled.PREDICATE)(predicate), compiled.PREDICATE)


def _call(source: str, functions: tuple[tuple[str, Any], ...]) -> tuple[Any, bool]:
    asked = source, functions
    number = _numbers.pop(asked, None)
    if number is None:
        number = len(_numbers) if len(_numbers) < FUNCTIONS else _numbers.pop(next(iter(_numbers)))
        if number == len(_made):
            _made.append(_function(number))
        _standing[number] = compiled._plain(source, functions)[0]
    _numbers[asked] = number
    return _made[number], True


@contextmanager
def conditions_as_python() -> Iterator[None]:
    """Conditions that are compiled in this block are called as Python. Keep no plan from outside of it."""
    with patch.object(compiled, "_compiled", _call):
        yield
