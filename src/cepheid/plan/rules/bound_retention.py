"""How long an event can still matter."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from cepheid.language import syntax as s
from cepheid.language.pattern import AnyOrder, Choice, Excluded, Pattern, Repeat, Sequence, Single
from cepheid.plan.operators import Retention

if TYPE_CHECKING:
    from cepheid.plan.physical import Plan


def bound_retention(plan: Plan) -> Plan:
    """A window bounds how long events are needed: what a stream keeps, and how far slices of time overlap.

    >>> from cepheid.plan.examples import example
    >>> bound_retention(example("PATTERN SEQ(A a, B b) WITHIN 10")).exchange.retention.reach
    9
    >>> bound_retention(example("PATTERN SEQ(!(A a), B b, !(C c)) WITHIN 10")).exchange.retention.reach
    19

    A match of one event needs no window:

    >>> bound_retention(example("PATTERN A a WHERE a.x > 1")).exchange.retention.reach
    0
    """
    window, windows, late = plan.bound.window, _windows_back(plan), _decides_late(plan)
    reach = events = None
    if window is not None and window.events:
        events = windows * window.length
    elif window is not None:
        # The distance of two events is strictly less than the window, that of an event and its deadline is the window.
        reach = windows * window.length - (0 if windows == 1 and late else 1)
    elif _is_one_event(plan):
        reach = 0
    retention = Retention(reach, events, windows, late, _for_ever(plan))
    return replace(plan, exchange=replace(plan.exchange, retention=retention))


def _decides_late(plan: Plan) -> bool:
    """Are matches known only when their window has passed?"""
    growing = plan.output.mode is s.OutputMode.MAXIMAL and plan.bound.may_grow
    return plan.bound.postponed or plan.bound.forecast is not None or growing or plan.options.missing_last


def _windows_back(plan: Plan) -> int:
    """How many windows an event can lie before the completion of a match that needs it: one, or two.

    Postponed decisions come a window after the first event. What else looks back from there adds another window:
    negation at the start looks back from the last event, NON-OVERLAP waits for a window after the end, and MAXIMAL
    must know the larger matches that began earlier.
    """
    if not _decides_late(plan):
        return 1
    # Where events may be missing, any negated component but one at the end may stand before the first event seen.
    lossy = plan.is_lossy
    before_first = any(n.after is None or (lossy and n.before is not None) for n in plan.bound.negations)
    return 2 if before_first or plan.output.mode in (s.OutputMode.NON_OVERLAP, s.OutputMode.MAXIMAL) else 1


def _for_ever(plan: Plan) -> str | None:
    """Why no bounded number of events is enough to find later matches; None if one is."""
    bound = plan.bound
    if bound.window is None and not _is_one_event(plan):
        return "the query has no WITHIN, so every event may be part of a later match"
    if plan.output.mode is s.OutputMode.TOP:
        return "TOP k BY CONFIDENCE is known only at the end of the stream"
    if bound.window is None:
        return None
    if bound.window.events and plan.is_imprecise:
        return "with imprecise times, WITHIN n EVENTS never passes for certain"
    if bound.window.events and bound.equivalence and bound.may_lack:
        return "WITHIN n EVENTS counts per partition, and an event of an ANY component may belong to every partition"
    return None


def _is_one_event(plan: Plan) -> bool:
    """Is every match one event, known when that comes?"""
    bound = plan.bound
    if bound.negations or bound.untils or _decides_late(plan):
        return False
    return _longest(bound.pattern) == 1


def _longest(pattern: Pattern) -> float:
    """The most events that a match can hold."""
    match pattern:
        case Single():
            return 1
        case Sequence(parts=parts) | AnyOrder(parts=parts):
            return sum(map(_longest, parts))
        case Choice(parts=parts):
            return max(map(_longest, parts))
        case Repeat(part=part, most=most):
            return _longest(part) * (math.inf if most is None else most)
        case Excluded(part=part):
            return _longest(part)
    return 0
