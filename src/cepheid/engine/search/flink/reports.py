"""What runs took, written down where there is room for it; what a walk needs to go on where there is none."""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.kernels.arrays import grown
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.search.flink.evaluate import Nodes
from cepheid.engine.search.flink.machine import BEFORE, EVENTS_REPORTED, LENGTH, REPORTS, ROW, STEP

# What is needed to go on, if anything.
DONE, MORE_RUNS, MORE_NODES, MORE_ARRIVED, MORE_COMPLETE, MORE_REPORTS, MORE_EVENTS, COLLECTION, A_LOOK = range(9)
# Why a walk fails: what a strict strategy runs into, and limits that are reached.
MISSED, AT_ITS_START, TOO_MANY_RUNS, TOO_MANY_MATCHES = range(1, 5)


@borrowing
def lacking_room(out: Reported, counts: Int64s, number: int, length: int) -> int:
    """What the result needs for some more runs with so many events in all; DONE: nothing."""
    if counts[REPORTS] + number >= len(out.first):
        return MORE_REPORTS
    return MORE_EVENTS if counts[EVENTS_REPORTED] + length > len(out.row) else DONE


@borrowing
def report(out: Reported, counts: Int64s, nodes: Nodes, node: int, partition: int, waiting: int, given_up: int) -> None:
    """Adds what a run took to the result, which has room for it."""
    number = counts[REPORTS]
    place = counts[EVENTS_REPORTED] + (nodes[node, LENGTH] if node >= 0 else 0)
    out.partition[number], out.waiting[number], out.given_up[number] = partition, waiting, given_up
    out.first[number + 1] = place
    counts[REPORTS], counts[EVENTS_REPORTED] = number + 1, place
    while node >= 0:
        place -= 1
        out.row[place], out.step[place] = nodes[node, ROW], nodes[node, STEP]
        node = nodes[node, BEFORE]


@kernel
def enlarged_result(out: Reported, needed: int) -> Reported:
    """The same with more room."""
    if needed == MORE_REPORTS:
        numbers = grown(out.partition), grown(out.first), grown(out.waiting), grown(out.given_up)
        return Reported(numbers[0], numbers[1], out.row, out.step, numbers[2], numbers[3])
    return Reported(out.partition, out.first, grown(out.row), grown(out.step), out.waiting, out.given_up)


@kernel
def nothing() -> Reported:
    """No run."""
    first = np.zeros(64, np.int64)
    empty = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    return Reported(empty[0], first, np.empty(256, np.int64), np.empty(256, np.int64), empty[1], empty[2])


@kernel
def trimmed(out: Reported, counts: Int64s) -> Reported:
    """A result without its spare room."""
    number, used = counts[REPORTS], counts[EVENTS_REPORTED]
    return Reported(
        out.partition[:number].copy(),
        out.first[: number + 1].copy(),
        out.row[:used].copy(),
        out.step[:used].copy(),
        out.waiting[:number].copy(),
        out.given_up[:number].copy(),
    )
