"""What the kernels of several engines share: codes to compare, arrays that grow."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.kernels.compile import borrowing, kernel


@borrowing
def equal_codes(compared: Int64Rows, at: Int64s, low: int, high: int, event: int) -> bool:
    """Does the event agree with at[low:high] on every compared attribute? A wild code agrees with all."""
    for row in range(compared.shape[0]):
        own = compared[row, event]
        if own == WILD:
            continue
        for place in range(low, high):
            other = compared[row, at[place]]
            if other not in (own, WILD):
                return False
    return True


@kernel
def grown(values: Int64s) -> Int64s:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values), np.int64)
    larger[: len(values)] = values
    return larger


@kernel
def grown_numbers(values: Float64s) -> Float64s:
    """The same numbers with room for as many again."""
    larger = np.empty(2 * len(values), np.float64)
    larger[: len(values)] = values
    return larger


@kernel
def grown_rows(values: Int64Rows) -> Int64Rows:
    """The same rows with room for as many again."""
    larger = np.empty((2 * values.shape[0], values.shape[1]), np.int64)
    larger[: values.shape[0]] = values
    return larger
