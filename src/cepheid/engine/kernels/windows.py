"""Windows and open intervals, by bisection: which part of a stack of events lies in them."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import POSITION, TIME, Events
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.program.tables import EVENT_WINDOW, TIME_WINDOW, Program


@borrowing
def first_above(stack: Int64s, low: int, high: int, facts: Int64Rows, fact: int, bound: int) -> int:
    """The first index in stack[low:high] whose fact exceeds the bound; facts rise along the stack."""
    while low < high:
        middle = (low + high) // 2
        if facts[fact, stack[middle]] > bound:
            high = middle
        else:
            low = middle + 1
    return low


@borrowing
def in_window(events: Events, program: Program, first: int, last: int) -> bool:
    """Do the two events fit one window?"""
    if program.window_kind == TIME_WINDOW:
        return bool(events.facts[TIME, last] - events.facts[TIME, first] < program.window)
    if program.window_kind == EVENT_WINDOW:
        return bool(events.facts[POSITION, last] - events.facts[POSITION, first] < program.window)
    return True


@borrowing
def opens(events: Events, program: Program, stack: Int64s, low: int, high: int, last: int) -> int:
    """The first of stack[low:high] that one window can hold together with a later event."""
    if program.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.facts, TIME, events.facts[TIME, last] - program.window)
    if program.window_kind == EVENT_WINDOW and events.ordered:
        return first_above(stack, low, high, events.facts, POSITION, events.facts[POSITION, last] - program.window)
    return low


@borrowing
def closes(events: Events, program: Program, stack: Int64s, low: int, high: int, first: int) -> int:
    """The first of stack[low:high] that no window can hold together with an earlier event."""
    if program.window_kind == TIME_WINDOW:
        return first_above(stack, low, high, events.facts, TIME, events.facts[TIME, first] + program.window - 1)
    if program.window_kind == EVENT_WINDOW and events.ordered:
        bound = events.facts[POSITION, first] + program.window - 1
        return first_above(stack, low, high, events.facts, POSITION, bound)
    return high
