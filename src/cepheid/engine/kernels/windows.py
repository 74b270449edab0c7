"""Windows and open intervals, by bisection: which part of a stack of events lies in them."""

from __future__ import annotations

from numba import types

from cepheid.engine.data.columns import INT64_ROWS, INT64S
from cepheid.engine.data.layout import EVENTS, POSITION, TIME, Events, Rows
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.program.tables import EVENT_WINDOW, PROGRAM, TIME_WINDOW, Program


@borrowing(types.int64(INT64S, types.int64, types.int64, INT64_ROWS, types.int64, types.int64))
def first_above(stack: Int64s, low: int, high: int, facts: Rows, fact: int, bound: int) -> int:
    """The first index in stack[low:high] whose fact exceeds the bound; facts rise along the stack."""
    while low < high:
        middle = (low + high) // 2
        if facts[fact, stack[middle]] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing(types.boolean(EVENTS, PROGRAM, types.int64, types.int64))
def in_window(events: Events, program: Program, first: int, last: int) -> bool:
    """Do the two events fit one window?"""
    if program.window_kind == TIME_WINDOW:
        return bool(events.facts[TIME, last] - events.facts[TIME, first] < program.window)
    if program.window_kind == EVENT_WINDOW:
        return bool(events.facts[POSITION, last] - events.facts[POSITION, first] < program.window)
    return True


@borrowing(types.int64(EVENTS, PROGRAM, INT64S, types.int64, types.int64, types.int64))
def opens(events: Events, program: Program, stack: Int64s, low: int, high: int, last: int) -> int:
    """The first of stack[low:high] that one window can hold together with a later event."""
    if program.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.facts, TIME, events.facts[TIME, last] - program.window)
    if program.window_kind == EVENT_WINDOW and events.ordered:
        return first_above(stack, low, high, events.facts, POSITION, events.facts[POSITION, last] - program.window)
    return low


@borrowing(types.int64(EVENTS, PROGRAM, INT64S, types.int64, types.int64, types.int64))
def closes(events: Events, program: Program, stack: Int64s, low: int, high: int, first: int) -> int:
    """The first of stack[low:high] that no window can hold together with an earlier event."""
    if program.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.facts, TIME, events.facts[TIME, first] + program.window - 1)
    if program.window_kind == EVENT_WINDOW and events.ordered:
        bound = events.facts[POSITION, first] + program.window - 1
        return first_above(stack, low, high, events.facts, POSITION, bound)
    return high
