"""Sums of whole numbers in kernels, exact as long as the result fits 64 bits, and a note of where it does not."""

from __future__ import annotations

from numba import types

from cepheid.engine.data.columns import INT64_ROWS
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.program.tables import Rows
from cepheid.language import whole
from cepheid.language.whole import GREATEST, LEAST

sum_overflows = borrowing(types.boolean(types.int64, types.int64))(whole.sum_overflows)


@borrowing(types.void(INT64_ROWS, types.int64, types.int64, types.int64))
def add_exactly(rows: Rows, row: int, at: int, value: int) -> None:
    """Adds to a sum; behind it lies how often it has gone past 64 bits: upwards less downwards, 0 if it fits."""
    total = rows[row, at]
    if not sum_overflows(total, value):
        rows[row, at] = total + value
    elif value > 0:
        rows[row, at] = (total - GREATEST - 1) + (value - GREATEST - 1)
        rows[row, at + 1] += 1
    else:
        rows[row, at] = (total - LEAST) + (value - LEAST)
        rows[row, at + 1] -= 1
