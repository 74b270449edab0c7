"""Conditions that kernels have Python evaluate: functions in which numba goes back to Python for a moment.

They name numba, so this module is imported when one of them is compiled (`kernels.loading`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

from cepheid.engine.values.python_first import evaluate_by_number


def judged_by_number(case, at, counted, running, columns):  # type: ignore[no-untyped-def]
    """The function that kernels call for all conditions that run as Python; tables are as `lookup_tables` says."""
    literal = columns.literal
    number = literal[-1]
    if case < literal[-2] and literal[case] > 0:
        answers = literal.view(np.uint8)
        place = literal[case]
        more = literal[place] != 0
        conditions = literal[place + 1]
        place += 2
        for _ in range(conditions):
            byte, rows, wanted, reads = literal[place], literal[place + 1], literal[place + 2], literal[place + 3]
            place += 4
            inside = True
            for _ in range(reads):
                row = at[literal[place]]
                if 0 <= row < rows:
                    byte += literal[literal[place + 1] + row]
                else:
                    inside = False
                place += 2
            if not inside or answers[byte] == 255:  # to ask for
                more = True
            elif answers[byte] != wanted:
                return False
        if not more:
            return True
    with numba.objmode(holds="boolean"):
        holds = evaluate_by_number(number, case, at, counted, running)
    return holds


def called_as_python(plain: Any) -> Callable[..., bool]:
    """A function that numba cannot compile, in one that it can."""

    def predicate(case, at, counted, running, columns):  # type: ignore[no-untyped-def]
        with numba.objmode(holds="boolean"):
            holds = bool(plain(case, at, counted, running, columns))
        return holds

    return predicate
