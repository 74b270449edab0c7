"""Sums of whole numbers in kernels, exact as long as the result fits 64 bits, and a note of where it does not."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.kernels.compile import borrowing
from cepheid.language import whole
from cepheid.language.whole import GREATEST, LEAST

sum_overflows = borrowing(whole.sum_overflows)


@borrowing
def add_exactly(rows: Int64Rows, row: int, at: int, value: int) -> None:
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
