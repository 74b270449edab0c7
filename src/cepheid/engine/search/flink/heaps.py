"""java.util.PriorityQueue over rows of an array: where two runs began with the same event, its layout decides."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.search.flink.machine import BEGAN, NODE, STATE

Heap = Int64Rows  # per run: its state, its last node (-1: none), the row of its first event


@borrowing
def push(heap: Heap, size: int, state: int, node: int, began: int) -> int:
    """Adds a run; the new size. There must be room."""
    at = size
    while at > 0:
        parent = (at - 1) >> 1
        if began >= heap[parent, BEGAN]:
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[parent, 0], heap[parent, 1], heap[parent, 2]
        at = parent
    heap[at, STATE], heap[at, NODE], heap[at, BEGAN] = state, node, began
    return size + 1


@borrowing
def sift_down(heap: Heap, size: int, at: int, state: int, node: int, began: int) -> None:
    """Puts a run in its place at or below another."""
    while at < size >> 1:
        child = 2 * at + 1
        if child + 1 < size and heap[child, BEGAN] > heap[child + 1, BEGAN]:
            child += 1
        if began <= heap[child, BEGAN]:
            break
        heap[at, 0], heap[at, 1], heap[at, 2] = heap[child, 0], heap[child, 1], heap[child, 2]
        at = child
    heap[at, STATE], heap[at, NODE], heap[at, BEGAN] = state, node, began


@borrowing
def drop_first(heap: Heap, size: int) -> int:
    """Removes the first run; the new size."""
    size -= 1
    if size:
        sift_down(heap, size, 0, heap[size, STATE], heap[size, NODE], heap[size, BEGAN])
    return size


@borrowing
def drop_earlier(heap: Heap, size: int, limit: int) -> int:
    """Removes all runs that began before a row, and makes a heap of the rest; the new size."""
    kept = 0
    for at in range(size):
        if heap[at, BEGAN] >= limit:
            heap[kept, 0], heap[kept, 1], heap[kept, 2] = heap[at, 0], heap[at, 1], heap[at, 2]
            kept += 1
    if kept < size:
        for at in range((kept >> 1) - 1, -1, -1):
            sift_down(heap, kept, at, heap[at, STATE], heap[at, NODE], heap[at, BEGAN])
    return kept
