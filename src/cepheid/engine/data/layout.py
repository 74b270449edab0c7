"""Candidates as every kernel reads them: a row for each fact, so that scans read only what they need."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.candidates import Candidates, first_conditions, partitions
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.values.columnwise import condition, lacking_by_type
from cepheid.engine.values.plain import value_column
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery


class Events(NamedTuple):
    """The candidates of a query: partition after partition, each in order."""

    facts: Int64Rows  # see the names of the rows; a column for each event
    starts: Int64s  # partition k is starts[k] : starts[k + 1]
    compared: Int64Rows  # codes of the attributes that a search compares, one row each
    ordered: bool  # does every window hold events side by side? Not if it counts events of several partitions at once


# Rows of `facts`: its time, the rank of its instant, its position among the events of its partition; when a match that
# starts here is decided, if decisions wait for the window to pass; under contiguity, the one instant at which a run
# that has come here can go on (-1: none); which components it can fill (positives first, then the negated ones), and
# which of the positives it can be the first event of. Where times are imprecise, TIME is the lower bound and UPPER is
# the row behind these.
TIME, INSTANT, POSITION, DUE, CHANCE, MASK, BEGINS = range(7)
PRECISE_FACTS = 7
LOWER, UPPER = TIME, 7


def lay_out(bound: BoundQuery, events: EventTable, found: Candidates) -> Events:
    """The candidates of a query, as kernels read them."""
    several = len(found.compared) > 0 and bound.window is not None and bound.window.events
    facts = np.zeros((PRECISE_FACTS, len(found)), np.int64)  # rows that nothing is written to take no memory
    known = {TIME: found.time, INSTANT: found.instant, POSITION: found.position, DUE: found.due, MASK: found.mask}
    known |= {CHANCE: chances(bound, events, found), BEGINS: beginnings(bound, events, found)}
    for row, values in known.items():
        if len(values):
            facts[row] = values
    return Events(facts, found.starts, found.compared, not several)


def beginnings(bound: BoundQuery, events: EventTable, found: Candidates) -> Int64s:
    """Which components each candidate can be the first event of: conditions on `a[1]` alone, over whole columns."""
    begins = found.mask
    for place, component in enumerate(bound.positives):
        for part in first_conditions(bound, component):
            needed = {node.name for node in s.walk(part) if isinstance(node, s.Attribute)}
            read = needed | ({bound.schema.type} if bound.schema.lacks and bound.schema.type else set())
            table = events.table.select(sorted(read)).take(pa.array(found.rows))
            columns = {name: value_column(table.column(name)) for name in needed}
            resolve = partial(_column_of, columns)
            passed = condition(part, resolve, component.any, lacking_by_type(table, bound.schema))
            if isinstance(passed, pa.Scalar):
                fits = np.full(len(found), passed.as_py())
            else:
                fits = passed.to_numpy(zero_copy_only=False)
            begins = np.where(fits, begins, begins & ~(1 << place))
    return begins


def _column_of(columns: Mapping[str, object], node: Any) -> Any:
    return columns[node.name]


# --- contiguity -------------------------------------------------------------------------------------------------


def chances(bound: BoundQuery, events: EventTable, found: Candidates) -> Int64s:
    """For each candidate, the one instant at which a run that has come there can go on; -1: never."""
    if not bound.contiguous:
        return np.zeros(0, np.int64)
    if s.Strategy.PARTITION_CONTIGUITY not in bound.strategies or not bound.equivalence:
        return found.instant + 1
    if len(found.compared) == 0:
        return next_ordinal(found.starts, found.instant, found.ordinal)
    # Candidates of several partitions lie side by side: ask all events when each partition goes on.
    order, starts = partitions(bound, events)
    return next_instant(order, starts, events.instant)[found.rows]


@kernel
def next_ordinal(starts: Int64s, instant: Int64s, ordinal: Int64s) -> Int64s:
    """The instant of the next candidate, if nothing else of its partition lies between; else -1."""
    chance = np.full(len(instant), -1, np.int64)
    for part in range(len(starts) - 1):
        following = -1  # the first candidate of the next instant
        for event in range(starts[part + 1] - 2, starts[part] - 1, -1):
            if instant[event + 1] != instant[event]:
                following = event + 1
            if following >= 0 and ordinal[following] == ordinal[event] + 1:
                chance[event] = instant[following]
    return chance


@kernel
def next_instant(order: Int64s, starts: Int64s, instant: Int64s) -> Int64s:
    """For each event, the next instant at which something of its partition happens; -1 if nothing does."""
    chance = np.full(len(instant), -1, np.int64)
    for part in range(len(starts) - 1):
        following = -1
        for index in range(starts[part + 1] - 2, starts[part] - 1, -1):
            if instant[order[index + 1]] != instant[order[index]]:
                following = instant[order[index + 1]]
            chance[order[index]] = following
    return chance
