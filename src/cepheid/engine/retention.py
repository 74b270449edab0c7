"""Which events a later match may still need: what a stream keeps as its state, and how far slices of time overlap.

A match is known at its completion instant. `reach` bounds how long before that instant its events can lie; all that
`find` needs for completions after an instant is the events within reach of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.engine.data.candidates import candidates, rank_within
from cepheid.engine.data.candidates import partitions as by_equivalence
from cepheid.engine.data.table import EventTable, times_of
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan

Mask = npt.NDArray[np.bool_]
BEGINNING = np.iinfo(np.int64).min


def looks_at_all_events(bound: BoundQuery) -> bool:
    """Does the result depend on events that no component could take (contiguity, windows that count events)?"""
    return bound.contiguous or (bound.window is not None and bound.window.events)


def windows_back(plan: Plan) -> int:
    """How many windows an event can lie before the completion of a match that needs it: one, or two.

    Postponed decisions come a window after the first event. What else looks back from there adds another window:
    negation at the start looks back from the last event, NON-OVERLAP waits for a window after the end, and MAXIMAL
    must know the larger matches that began earlier.
    """
    bound, mode = plan.bound, plan.bound.syntax.output.mode
    if not decides_late(plan):
        return 1
    # Where events may be missing, any negated component but one at the end may stand before the first event seen.
    unseen = plan.model is not None or bound.syntax.threshold is not None
    before_first = any(n.after is None or (unseen and n.before is not None) for n in bound.negations)
    return 2 if before_first or mode in (s.OutputMode.NON_OVERLAP, s.OutputMode.MAXIMAL) else 1


def decides_late(plan: Plan) -> bool:
    """Are matches known only when their window has passed?"""
    bound = plan.bound
    growing = bound.syntax.output.mode is s.OutputMode.MAXIMAL and bound.positives[-1].kleene
    return bound.postponed or growing or bool(plan.options.get("missing_last", False))


def reach(plan: Plan) -> int | None:
    """How long after an event matches that need it can still complete; None: for ever, or counted in events.

    >>> from cepheid.plan.examples import example
    >>> reach(Plan(example("PATTERN SEQ(A a, B b) WITHIN 10").bound, "sequence"))
    9
    >>> reach(Plan(example("PATTERN SEQ(!(A a), B b, !(C c)) WITHIN 10").bound, "sequence"))
    19
    """
    window = plan.bound.window
    if window is None or window.events:
        return None
    windows = windows_back(plan)
    # The distance of two events is strictly less than the window, that of an event and its deadline is the window.
    return windows * window.length - (0 if windows == 1 and decides_late(plan) else 1)


def never_forgets(plan: Plan) -> str | None:
    """Why no bounded number of events is enough to find later matches; None if one is."""
    bound = plan.bound
    if bound.window is None:
        return "the query has no WITHIN, so every event may be part of a later match"
    if bound.syntax.output.mode is s.OutputMode.TOP:
        return "TOP k BY CONFIDENCE is known only at the end of the stream"
    if bound.window.events and bound.schema.lower is not None:
        return "with imprecise times, WITHIN n EVENTS never passes for certain"
    if bound.window.events and bound.equivalence and any(component.any for component in bound.components):
        return "WITHIN n EVENTS counts per partition, and an event of an ANY component may belong to every partition"
    return None


def retained(plan: Plan, events: EventTable, until: int) -> Mask:
    """True for events that a match completing after `until` may need; all events up to `until` have been seen.

    Events after `until` stay, unless no component could take them.
    """
    bound = plan.bound
    if never_forgets(plan) is not None:
        return np.ones(len(events), bool)
    if bound.window is not None and bound.window.events:
        return _within_positions(plan, events, until)
    back = reach(plan)
    assert back is not None
    latest = events.time
    if bound.schema.lower is not None and bound.schema.upper is not None:
        # A match is complete at the upper bound of its last event, which may have begun its width earlier.
        latest = times_of(events.table, bound.schema.upper)
        back += int((latest - times_of(events.table, bound.schema.lower)).max(initial=0))
    keep = latest > max(until - back, BEGINNING)
    return keep if looks_at_all_events(bound) else keep & could_take_part(plan, events, keep)


def could_take_part(plan: Plan, events: EventTable, among: Mask) -> Mask:
    """True for those of some events that some component could take."""
    rows = np.flatnonzero(among)
    chosen = EventTable(events.table.take(pa.array(rows)), events.time[rows], events.instant[rows])
    taking = np.zeros(len(events), bool)
    taking[rows[candidates(plan, chosen).rows]] = True
    return taking


def _within_positions(plan: Plan, events: EventTable, until: int) -> Mask:
    """The last events of each partition: positions are differences, so earlier ones may go."""
    bound = plan.bound
    assert bound.window is not None
    order, starts = by_equivalence(bound, events)
    position = rank_within(order, starts, events.instant)[1]
    later = events.time > until
    length = windows_back(plan) * bound.window.length
    part = np.empty(len(order), np.int64)
    part[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    newest = np.full(len(starts) - 1, -1, np.int64)  # the position that each partition has reached by `until`
    np.maximum.at(newest, part[~later], position[~later])
    keep: Mask = later | (position > newest[part] - length)
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY and bool(keep.any()):
        # Contiguity looks at the instants of all partitions.
        keep |= events.instant >= events.instant[keep].min()
    return keep
