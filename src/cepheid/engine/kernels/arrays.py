"""What the kernels of several engines share: codes to compare, arrays that grow."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import FLOAT64S, INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.compile import borrowing, kernel


@borrowing(types.boolean(INT64_ROWS, INT64S, types.int64, types.int64, types.int64))
def equal_codes(compared: npt.NDArray[np.int64], at: Int64s, low: int, high: int, event: int) -> bool:
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


@kernel(INT64S(INT64S))
def grown(values: Int64s) -> Int64s:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values), np.int64)
    larger[: len(values)] = values
    return larger


@kernel(FLOAT64S(FLOAT64S))
def grown_numbers(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same numbers with room for as many again."""
    larger = np.empty(2 * len(values), np.float64)
    larger[: len(values)] = values
    return larger


@kernel(INT64_ROWS(INT64_ROWS))
def grown_rows(values: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The same rows with room for as many again."""
    larger = np.empty((2 * values.shape[0], values.shape[1]), np.int64)
    larger[: values.shape[0]] = values
    return larger
