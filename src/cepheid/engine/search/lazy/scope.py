"""Where in the input buffer the events of a component can lie.

The input buffer of a partition is one sorted stack per component. A scope is a range of a stack: the open interval
between the nearest filled neighbours, cut to the window (LAZY section 4, scoping parameters).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import DUE, INSTANT, TIME, Events
from cepheid.engine.data.value_index import KNOWN, ValueIndex, agreeing
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.windows import closes, first_above, opens
from cepheid.engine.program.tables import Program


class Buffer(NamedTuple):
    """The input buffer of one partition: for each component, in order, the events that can fill it."""

    stacks: Int64Rows
    sizes: Int64s
    low: Int64s  # the part of each stack that is in use
    high: Int64s


@borrowing
def scope(events: Events, program: Program, buffer: Buffer, at: Int64s, filled: int, place: int) -> tuple[int, int]:
    """The part of its stack where the event of an open place can lie, given the filled ones."""
    stack, low, high = buffer.stacks[place], buffer.low[place], buffer.high[place]
    first, last, below, above = -1, -1, -1, -1
    for other in range(program.places):
        if filled & (1 << other):
            if first < 0:
                first = other
            last = other
            if other < place:
                below = other
            elif above < 0:
                above = other
    if below >= 0:
        low = first_above(stack, low, high, events.facts, INSTANT, events.facts[INSTANT, at[below]])
    else:
        low = opens(events, program, stack, low, high, at[last])
    if above >= 0:
        high = first_above(stack, low, high, events.facts, INSTANT, events.facts[INSTANT, at[above]] - 1)
    else:
        high = closes(events, program, stack, low, high, at[first])
    return low, high


@borrowing
def narrowed(
    buffer: Buffer, index: ValueIndex, at: Int64s, filled: int, place: int, low: int, high: int
) -> tuple[int, int, int]:
    """The same scope by value, where an equality ties the place to a filled one: its part of an index, and which.

    Index -1: it is the part of the stack that was given.
    """
    found = -1
    if low < high:
        first, last = buffer.stacks[place, low], buffer.stacks[place, high - 1]
        for link in range(index.of_place[place, 0], index.of_place[place, 1]):
            known = index.links[link, KNOWN]
            if filled & (1 << known):
                begin, end = agreeing(index, link, at[known], first, last)
                if end - begin < high - low:
                    low, high, found = begin, end, link
    return low, high, found


@borrowing
def reach(events: Events, program: Program, buffer: Buffer, asked: Int64s, begin: int, end: int) -> bool:
    """Puts in use the part of each stack that matches need which end on entries begin:end of the last one.

    `asked` holds the entries of the first and of the last component that the completion interval allows. False: no
    match can end there.
    """
    stacks, sizes, low, high = buffer
    final = program.places - 1
    low[final], high[final] = max(begin, asked[2]), min(end, asked[3])
    if final == 0:
        low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
    if low[final] >= high[final]:
        return False
    earliest, latest = stacks[final, low[final]], stacks[final, high[final] - 1]
    for place in range(final):
        stack = stacks[place]
        high[place] = first_above(stack, 0, sizes[place], events.facts, INSTANT, events.facts[INSTANT, latest] - 1)
        low[place] = opens(events, program, stack, 0, high[place], earliest)
        if place == 0:
            low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
        if low[place] >= high[place]:
            return False
    # Where the interval asks for certain first events (postponed decisions), the others lie behind them.
    for place in range(1, program.places):
        stack = stacks[place]
        opening, closing = stacks[0, low[0]], stacks[0, high[0] - 1]
        bound = events.facts[INSTANT, opening]
        low[place] = first_above(stack, low[place], high[place], events.facts, INSTANT, bound)
        high[place] = closes(events, program, stack, low[place], high[place], closing)
        if low[place] >= high[place]:
            return False
    return True


@kernel
def asked_for(events: Events, program: Program, buffer: Buffer, after: int, until: int) -> Int64s:
    """Which entries of the first and of the last component a completion interval allows: two ranges."""
    stacks, sizes, facts = buffer.stacks, buffer.sizes, events.facts
    final = program.places - 1
    asked = np.array([0, sizes[0], 0, sizes[final]])
    if not program.postponed:
        asked[2] = first_above(stacks[final], 0, sizes[final], facts, TIME, after)
        asked[3] = first_above(stacks[final], asked[2], sizes[final], facts, TIME, until)
    elif events.ordered:
        asked[0] = first_above(stacks[0], 0, sizes[0], facts, DUE, after)
        asked[1] = first_above(stacks[0], asked[0], sizes[0], facts, DUE, until)
    return asked


@borrowing
def restricted(program: Program, buffer: Buffer, asked: Int64s) -> bool:
    """Does the completion interval leave something out?"""
    whole_first = asked[0] == 0 and asked[1] == buffer.sizes[0]
    return not (whole_first and asked[2] == 0 and asked[3] == buffer.sizes[program.places - 1])
