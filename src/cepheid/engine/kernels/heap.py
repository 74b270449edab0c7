"""A queue of times in an array, the earliest one first: each entry is a time and whom it concerns."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64_ROWS
from cepheid.engine.kernels.compile import borrowing

Queue = npt.NDArray[np.int64]


@borrowing(types.void(INT64_ROWS, types.int64, types.int64, types.int64))
def put_entry(queue: Queue, size: int, time: int, whom: int) -> None:
    """Puts an entry into a queue of a size; there is room."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if time >= queue[parent, 0]:
            break
        queue[at, 0], queue[at, 1] = queue[parent, 0], queue[parent, 1]
        at = parent
    queue[at, 0], queue[at, 1] = time, whom


@borrowing(types.void(INT64_ROWS, types.int64))
def drop_earliest(queue: Queue, size: int) -> None:
    """Takes the first entry out of a queue of a size, which it has no longer."""
    size -= 1
    time, whom, at = queue[size, 0], queue[size, 1], 0
    while at < size >> 1:
        child = 2 * at + 1
        if child + 1 < size and queue[child, 0] > queue[child + 1, 0]:
            child += 1
        if time <= queue[child, 0]:
            break
        queue[at, 0], queue[at, 1] = queue[child, 0], queue[child, 1]
        at = child
    queue[at, 0], queue[at, 1] = time, whom
