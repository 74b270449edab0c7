"""A queue of times in an array, the earliest one first: each entry is a time and whom it concerns."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.kernels.compile import borrowing


@borrowing
def put_entry(queue: Int64Rows, size: int, time: int, whom: int) -> None:
    """Puts an entry into a queue of a size; there is room."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if time >= queue[parent, 0]:
            break
        queue[at, 0], queue[at, 1] = queue[parent, 0], queue[parent, 1]
        at = parent
    queue[at, 0], queue[at, 1] = time, whom


@borrowing
def drop_earliest(queue: Int64Rows, size: int) -> None:
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
