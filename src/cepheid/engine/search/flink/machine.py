"""What the kernel walks: the automaton, the events and the runs that are under way, all as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]

TAKE, IGNORE, PROCEED = 0, 1, 2
NORMAL, FINAL, STOP, PENDING = 0, 1, 2, 3
NO_SKIP, TO_NEXT, PAST_LAST, TO_FIRST, TO_LAST = range(5)
LATEST = 2**63 - 1
BITS = 62  # states that have a bit of their own; the others share the last
NOBODY = 2**62  # the first event of the run that waits for one: later than all others

# What formulas are made of, in postfix order: atoms are numbers from 0 on.
NEGATE, BOTH, EITHER, TRUE = -1, -2, -3, -4

# What atoms that look back are made of, in postfix order. NaN is NULL, and unknown.
(
    CONSTANT,
    AT_HAND,
    FIRST,
    LAST,
    EACH,
    COUNT,
    SUM,
    AVERAGE,
    LEAST,
    GREATEST,
    FIRST_VALUE,
    LAST_VALUE,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    REMAINDER,
    MINUS,
    EQUAL,
    UNEQUAL,
    LESS,
    AT_MOST,
    MORE,
    AT_LEAST,
    AND,
    OR,
    COALESCE,
    NOT,
    IS_NULL,
) = range(29)


class Machine(NamedTuple):
    """The automaton: the edges of state k are first_edge[k] to first_edge[k + 1]."""

    first_edge: Int64s
    action: Int64s
    source: Int64s
    target: Int64s
    formula: Int64s  # of each edge
    kind: Int64s  # of each state
    step: Int64s  # whose events it takes; -1: none that is reported
    gap: Int64s  # the longest time since the event before; 0: any
    start: int
    final: int
    window: int  # 0: none
    skip: int
    skip_step: int
    strict: int  # is it an error if there is nothing to skip to?
    partial: int  # are runs that are given up reported?


class Conditions(NamedTuple):
    """Formulas: those that speak of the event at hand only are judged beforehand."""

    holds: Bytes  # per event and formula
    looks_back: Bytes  # per formula: is it judged on the way?
    first_part: Int64s  # where its postfix code begins in `part`
    part: Int64s
    atom_holds: Bytes  # per event and atom
    atom_looks_back: Bytes
    first_code: Int64s  # of each atom that looks back
    code: npt.NDArray[np.int64]  # operation, step, column
    each: Int64s  # per atom: the step for each of whose events it is to hold, or -1
    own: Int64s  # per atom: the step that must have taken an event before it says anything, or -1
    constants: Floats
    values: npt.NDArray[np.float64]  # per column and event


class Events(NamedTuple):
    """Events of all partitions, one partition after the other; those before `begin` were processed earlier."""

    bounds: Int64s
    begin: Int64s
    time: Int64s
    active: Int64s  # per event a bit for each state in which a run does something else with it than to wait on
    end: int  # how far time has passed after the last one
    goes_on: int  # may more events come?


class Reported(NamedTuple):
    """Matches, and runs that were given up; or runs that go on, and complete ones that wait to be reported."""

    partition: Int64s
    first: Int64s  # where its events begin in `row`, and where the last one's end
    row: Int64s
    step: Int64s
    waiting: Int64s  # the state in which it waited, or waits; -1: a match
    given_up: Int64s  # when it was given up; of runs that go on: is it complete?


class Room(NamedTuple):
    """Room for the runs of a partition."""

    runs: npt.NDArray[np.int64]
    following: npt.NDArray[np.int64]
    arrived: npt.NDArray[np.int64]  # complete since the last event
    complete: npt.NDArray[np.int64]  # and waiting to be reported
    nodes: npt.NDArray[np.int64]
    edges: Int64s
    stack: Int64s
    values: Floats
    counts: Int64s


(
    RUNNING,
    FOLLOWING,
    ARRIVED,
    COMPLETE,
    NODES,
    NEAREST,
    NEXT_NEAREST,
    FAILURE,
    REPORTS,
    EVENTS_REPORTED,
    COLLECT_AT,
    NOW,
    PRESENT,  # a bit for each state in which a run waits
    NEXT_PRESENT,
    AT,  # the run to be extended next
) = range(15)


SUMMED = 4096  # events that a sum adds up in their order; of more, backwards


def make_room(machine: Machine, depth: int) -> Room:
    """Room to begin with; `depth` is how many values a condition holds at a time."""
    fan = 4 * len(machine.action) + 16
    runs, following, arrived, complete = (np.empty((2 * fan + 64, 3), np.int64) for _ in range(4))
    nodes = np.empty((1024 + 2 * fan, 3), np.int64)
    edges, stack = np.empty(fan, np.int64), np.empty(fan, np.int64)
    values, counts = np.empty(depth + SUMMED, np.float64), np.zeros(15, np.int64)
    return Room(runs, following, arrived, complete, nodes, edges, stack, values, counts)


BYTE_ROWS = types.uint8[:, ::1]
FLOAT_ROWS = types.float64[:, ::1]
INT = types.int64
MACHINE = types.NamedTuple((INT64S,) * 8 + (INT,) * 7, Machine)
CONDITIONS = types.NamedTuple(
    (
        BYTE_ROWS,
        types.uint8[::1],
        INT64S,
        INT64S,
        BYTE_ROWS,
        types.uint8[::1],
        INT64S,
        INT64_ROWS,
        INT64S,
        INT64S,
        types.float64[::1],
        FLOAT_ROWS,
    ),
    Conditions,
)
EVENTS = types.NamedTuple((INT64S, INT64S, INT64S, INT64S, INT, INT), Events)
REPORTED = types.NamedUniTuple(INT64S, 6, Reported)
ROOM = types.NamedTuple((INT64_ROWS,) * 5 + (INT64S, INT64S, types.float64[::1], INT64S), Room)
