"""Where in the input buffer the events of a component can lie.

The input buffer of a partition is one sorted stack per component. A scope is a range of a stack: the open interval
between the nearest filled neighbours, cut to the window (LAZY section 4, scoping parameters).
"""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENT_WINDOW, EVENTS, TIME_WINDOW, Events, first_above
from cepheid.engine.search.lazy.shape import SHAPE, Shape


@numba.njit(types.int64(EVENTS, SHAPE, INT64S, types.int64, types.int64, types.int64), cache=True)
def opens(events: Events, shape: Shape, stack: Int64s, low: int, high: int, last: int) -> int:
    """The first of stack[low:high] that one window can hold together with a later event."""
    if shape.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.time, events.time[last] - shape.window)
    if shape.window_kind == EVENT_WINDOW and shape.rising:
        return first_above(stack, low, high, events.position, events.position[last] - shape.window)
    return low


@numba.njit(types.int64(EVENTS, SHAPE, INT64S, types.int64, types.int64, types.int64), cache=True)
def closes(events: Events, shape: Shape, stack: Int64s, low: int, high: int, first: int) -> int:
    """The first of stack[low:high] that no window can hold together with an earlier event."""
    if shape.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.time, events.time[first] + shape.window - 1)
    if shape.window_kind == EVENT_WINDOW and shape.rising:
        return first_above(stack, low, high, events.position, events.position[first] + shape.window - 1)
    return high


@numba.njit(
    types.UniTuple(types.int64, 2)(EVENTS, SHAPE, INT64S, types.int64, types.int64, INT64S, types.int64, types.int64),
    cache=True,
)
def scope(
    events: Events, shape: Shape, stack: Int64s, low: int, high: int, at: Int64s, filled: int, place: int
) -> tuple[int, int]:
    """The part of stack[low:high] where the event of an open place can lie, given the filled ones."""
    first, last, below, above = -1, -1, -1, -1
    for other in range(shape.positives):
        if filled & (1 << other):
            if first < 0:
                first = other
            last = other
            if other < place:
                below = other
            elif above < 0:
                above = other
    if below >= 0:
        low = first_above(stack, low, high, events.instant, events.instant[at[below]])
    else:
        low = opens(events, shape, stack, low, high, at[last])
    if above >= 0:
        high = first_above(stack, low, high, events.instant, events.instant[at[above]] - 1)
    else:
        high = closes(events, shape, stack, low, high, at[first])
    return low, high


@numba.njit(
    types.boolean(EVENTS, SHAPE, INT64_ROWS, INT64S, INT64S, types.int64, types.int64, INT64S, INT64S), cache=True
)
def reach(
    events: Events,
    shape: Shape,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    asked: Int64s,
    begin: int,
    end: int,
    low: Int64s,
    high: Int64s,
) -> bool:
    """Fills low and high: the part of each stack that matches can use which end on entries begin:end of the last one.

    `asked` holds the entries of the first and of the last component that the completion interval allows. False: no
    match can end there.
    """
    final = shape.positives - 1
    low[final], high[final] = max(begin, asked[2]), min(end, asked[3])
    if final == 0:
        low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
    if low[final] >= high[final]:
        return False
    earliest, latest = stacks[final, low[final]], stacks[final, high[final] - 1]
    for place in range(final):
        stack, size = stacks[place], sizes[place]
        high[place] = first_above(stack, 0, size, events.instant, events.instant[latest] - 1)
        low[place] = opens(events, shape, stack, 0, high[place], earliest)
        if place == 0:
            low[0], high[0] = max(low[0], asked[0]), min(high[0], asked[1])
        if low[place] >= high[place]:
            return False
    # Where the interval asks for certain first events (postponed decisions), the others lie behind them.
    for place in range(1, shape.positives):
        stack = stacks[place]
        opening, closing = stacks[0, low[0]], stacks[0, high[0] - 1]
        low[place] = first_above(stack, low[place], high[place], events.instant, events.instant[opening])
        high[place] = closes(events, shape, stack, low[place], high[place], closing)
        if low[place] >= high[place]:
            return False
    return True


@numba.njit(INT64S(EVENTS, SHAPE, INT64_ROWS, INT64S, types.int64, types.int64), cache=True)
def asked_for(
    events: Events, shape: Shape, stacks: npt.NDArray[np.int64], sizes: Int64s, after: int, until: int
) -> Int64s:
    """Which entries of the first and of the last component a completion interval allows: two ranges."""
    final = shape.positives - 1
    asked = np.array([0, sizes[0], 0, sizes[final]])
    if not shape.postponed:
        asked[2] = first_above(stacks[final], 0, sizes[final], events.time, after)
        asked[3] = first_above(stacks[final], asked[2], sizes[final], events.time, until)
    elif shape.window_kind == TIME_WINDOW or shape.rising:
        asked[0] = first_above(stacks[0], 0, sizes[0], events.due, after)
        asked[1] = first_above(stacks[0], asked[0], sizes[0], events.due, until)
    return asked


@numba.njit(types.boolean(SHAPE, INT64S, INT64S), cache=True)
def restricted(shape: Shape, sizes: Int64s, asked: Int64s) -> bool:
    """Does the completion interval leave something out?"""
    whole_first = asked[0] == 0 and asked[1] == sizes[0]
    return not (whole_first and asked[2] == 0 and asked[3] == sizes[shape.positives - 1])
