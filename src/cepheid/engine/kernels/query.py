"""All that kernels read, in one bundle that is handed from one to the next."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import MASK, Events
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.program.tables import Program


class Absent(NamedTuple):
    """The events that could fill negated components, in one partition."""

    stacks: Int64Rows  # one row for each negated component
    sizes: Int64s


class Query(NamedTuple):
    """What a search reads in one partition. Kernels put it together: numba takes no function in a tuple from Python."""

    events: Events
    program: Program
    columns: Columns
    predicate: PredicateCall
    absent: Absent


@kernel
def room_for_absent(events: Events, program: Program) -> Absent:
    """Room for the events that could fill negated components, in any of the partitions."""
    longest = 0
    if program.negatives > 0:
        for part in range(len(events.starts) - 1):
            longest = max(longest, events.starts[part + 1] - events.starts[part])
    return Absent(np.empty((program.negatives, longest), np.int64), np.zeros(program.negatives, np.int64))


@borrowing
def find_absent(events: Events, program: Program, part: int, absent: Absent) -> None:
    """Finds the events of a partition that could fill negated components."""
    for negation in range(program.negatives):
        absent.sizes[negation] = 0
    add_absent(events, program, events.starts[part], events.starts[part + 1], absent)


@borrowing
def add_absent(events: Events, program: Program, begin: int, end: int, absent: Absent) -> None:
    """Adds the events of a range that could fill negated components."""
    for negation in range(program.negatives):
        bit = 1 << (program.places + negation)
        for event in range(begin, end):
            if events.facts[MASK, event] & bit != 0:
                absent.stacks[negation, absent.sizes[negation]] = event
                absent.sizes[negation] += 1
