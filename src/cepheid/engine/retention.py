"""Which events a later match may still need: what a stream keeps as its state, and how far slices of time overlap.

A match is known at its completion instant. The plan bounds how long before that instant its events can lie (the rule
`bound_retention`); all that `find` needs for completions after an instant is the events within reach of it.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Bools
from cepheid.engine.data.candidates import candidates, rank_within, signature
from cepheid.engine.data.candidates import partitions as by_equivalence
from cepheid.engine.data.shared import is_shared, once
from cepheid.engine.data.table import EventTable, times_of
from cepheid.plan.physical import Plan

BEGINNING = np.iinfo(np.int64).min


def reach(plan: Plan) -> int | None:
    """How long after an event matches that need it can still complete; None: for ever, or counted in events."""
    return plan.exchange.retention.reach


def retained(plan: Plan, events: EventTable, until: int) -> Bools:
    """True for events that a match completing after `until` may need; all events up to `until` have been seen.

    Events after `until` stay, unless no component could take them.
    """
    bound = plan.bound
    if plan.exchange.retention.for_ever is not None:
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
    return keep if plan.scan.every_event else keep & could_take_part(plan, events, keep)


def could_take_part(plan: Plan, events: EventTable, among: Bools) -> Bools:
    """True for those of some events that some component could take."""
    if is_shared():  # for queries of any window at once
        return once(events, ("takes part", signature(plan)), lambda: _could_take_part(plan, events, among | True))
    return _could_take_part(plan, events, among)


def _could_take_part(plan: Plan, events: EventTable, among: Bools) -> Bools:
    rows = np.flatnonzero(among)
    chosen = EventTable(events.table.take(pa.array(rows)), events.time[rows], events.instant[rows])
    taking = np.zeros(len(events), bool)
    taking[rows[candidates(plan, chosen).rows]] = True
    return taking


def _within_positions(plan: Plan, events: EventTable, until: int) -> Bools:
    """The last events of each partition: positions are differences, so earlier ones may go."""
    bound = plan.bound
    order, starts = by_equivalence(bound, events)
    position = rank_within(order, starts, events.instant)[1]
    later = events.time > until
    length = plan.exchange.retention.events
    assert length is not None
    part = np.empty(len(order), np.int64)
    part[order] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    newest = np.full(len(starts) - 1, -1, np.int64)  # the position that each partition has reached by `until`
    np.maximum.at(newest, part[~later], position[~later])
    keep: Bools = later | (position > newest[part] - length)
    if bound.strict and bool(keep.any()):
        # Contiguity looks at the instants of all partitions.
        keep |= events.instant >= events.instant[keep].min()
    return keep
