"""Everything an event must pass to join a partial match, whatever its place in the order of evaluation."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import EVENT_WINDOW, EVENTS, Events, first_above
from cepheid.engine.search.lazy.shape import SHAPE, Shape
from cepheid.engine.values.compiled import PREDICATE

FAILED, KILLED, PASSED = 0, 1, 2


@numba.njit(types.boolean(INT64_ROWS, INT64S, types.int64, types.int64), cache=True)
def agrees(compared: npt.NDArray[np.int64], at: Int64s, filled: int, event: int) -> bool:
    """Does the event agree with all filled places on every compared attribute? A wild code agrees with all."""
    for row in range(compared.shape[0]):
        own = compared[row, event]
        if own == WILD:
            continue
        place, rest = 0, filled
        while rest != 0:
            if rest & 1:
                other = compared[row, at[place]]
                if other not in (own, WILD):
                    return False
            rest >>= 1
            place += 1
    return True


@numba.njit(types.boolean(EVENTS, SHAPE, INT64S, types.int64), cache=True)
def within(events: Events, shape: Shape, at: Int64s, filled: int) -> bool:
    """Do the filled places fit one window of events? Asked where scopes could not bisect the positions."""
    if filled & 1:
        opening = events.position[at[0]]
        for place in range(1, shape.positives):
            if filled & (1 << place) and events.position[at[place]] - opening >= shape.window:
                return False
    return True


@numba.njit(
    types.boolean(
        EVENTS,
        SHAPE,
        COLUMNS,
        types.FunctionType(PREDICATE),
        types.int64,
        types.int64,
        INT64S,
        types.int64,
        INT64S,
        types.int64,
    ),
    cache=True,
)
def negated(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    negation: int,
    case: int,
    at: Int64s,
    filled: int,
    stack: Int64s,
    size: int,
) -> bool:
    """Does an event of a negated component lie in its open interval and pass its conditions?"""
    first, last = at[0], at[shape.positives - 1]
    after, before = shape.neg_after[negation], shape.neg_before[negation]
    in_events = shape.window_kind == EVENT_WINDOW
    low, high = 0, size
    if after >= 0:
        low = first_above(stack, low, high, events.instant, events.instant[at[after]])
    elif not in_events:
        low = first_above(stack, low, high, events.time, events.time[last] - shape.window)
    elif shape.rising:
        low = first_above(stack, low, high, events.position, events.position[last] - shape.window)
    if before >= 0:
        high = first_above(stack, low, high, events.instant, events.instant[at[before]] - 1)
    elif not in_events:
        high = first_above(stack, low, high, events.time, events.time[first] + shape.window - 1)
    elif shape.rising:
        high = first_above(stack, low, high, events.position, events.position[first] + shape.window - 1)
    if low < high and shape.tested[case] == 0 and events.compared.shape[0] == 0:
        return True
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    for index in range(low, high):
        event = stack[index]
        if in_events and after < 0 and events.position[event] <= events.position[last] - shape.window:
            continue
        if in_events and before < 0 and events.position[event] >= events.position[first] + shape.window:
            continue
        if not agrees(events.compared, at, filled, event):
            continue
        at[shape.positives + negation] = event
        if shape.tested[case] == 0 or predicate(case, at, no_counts, no_sums, columns):
            return True
    return False


@numba.njit(
    types.boolean(EVENTS, SHAPE, COLUMNS, types.FunctionType(PREDICATE), INT64S, INT64_ROWS, INT64S, types.int64),
    cache=True,
)
def stands(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    filled: int,
) -> bool:
    """Does a complete match stand for some disjunct of the condition (SASE section 2.2.2)?"""
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    base = len(shape.needs) + shape.negatives
    for branch in range(shape.branches):
        case = base + branch * (1 + shape.negatives)
        if shape.tested[case] == 1 and not predicate(case, at, no_counts, no_sums, columns):
            continue
        killed = False
        for negation in range(shape.negatives):
            row = shape.positives + negation
            if negated(
                events,
                shape,
                columns,
                predicate,
                negation,
                case + 1 + negation,
                at,
                filled,
                stacks[row],
                sizes[row],
            ):
                killed = True
                break
        if not killed:
            return True
    return False


@numba.njit(types.boolean(types.int64, types.int64, types.int64), cache=True)
def newly(needed: int, before: int, filled: int) -> bool:
    """Are all needed places filled, one of them just now? What needs none is judged with the first."""
    return needed & filled == needed and (needed & before != needed or before == 0)


@numba.njit(
    types.int64(
        EVENTS,
        SHAPE,
        COLUMNS,
        types.FunctionType(PREDICATE),
        INT64S,
        INT64_ROWS,
        INT64S,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def judged(
    events: Events,
    shape: Shape,
    columns: Columns,
    predicate: Any,
    at: Int64s,
    stacks: npt.NDArray[np.int64],
    sizes: Int64s,
    before: int,
    place: int,
) -> int:
    """PASSED, if the event at[place] may join the places filled before: it agrees with them, and every condition and
    negated component that can be judged now, and could not before, is content; FAILED or KILLED otherwise."""
    if not agrees(events.compared, at, before, at[place]):
        return FAILED
    filled = before | (1 << place)
    if shape.window_kind == EVENT_WINDOW and not shape.rising and not within(events, shape, at, filled):
        return FAILED
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    for case in range(len(shape.needs)):
        if newly(shape.needs[case], before, filled) and not predicate(case, at, no_counts, no_sums, columns):
            return FAILED
    if shape.branches > 1:
        if filled == (1 << shape.positives) - 1 and not stands(
            events, shape, columns, predicate, at, stacks, sizes, filled
        ):
            return KILLED
        return PASSED
    for negation in range(shape.negatives):
        row = shape.positives + negation
        if newly(shape.neg_needs[negation], before, filled) and negated(
            events,
            shape,
            columns,
            predicate,
            negation,
            len(shape.needs) + negation,
            at,
            filled,
            stacks[row],
            sizes[row],
        ):
            return KILLED
    return PASSED
