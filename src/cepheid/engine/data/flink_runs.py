"""What the engines of Flink patterns get: events by key, in order; and runs over these, as kernels hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.keys import codes, combined, grouped
from cepheid.engine.data.matches import Chosen, Matches
from cepheid.engine.data.table import ordered
from cepheid.plan.flink_automaton import FlinkAutomaton


class Reported(NamedTuple):
    """Matches, and runs that were given up; or runs that go on, and complete ones that wait to be reported."""

    partition: Int64s
    first: Int64s  # where its events begin in `row`, and where the last one's end
    row: Int64s
    step: Int64s
    waiting: Int64s  # the state in which it waited, or waits; -1: a match
    given_up: Int64s  # when it was given up; of runs that go on: is it complete?


def matches_of(runs: Reported, time: Int64s) -> Matches:
    """What was reported, as matches; a run that was given up is a partial match, known from then on."""
    last = time[runs.row[runs.first[1:] - 1]]
    completion = np.where(runs.waiting < 0, last, runs.given_up)
    return Matches((Chosen(runs.row, runs.first),), completion, labels=runs.step, waiting=runs.waiting)


NOBODY = Reported(*(np.zeros(length, np.int64) for length in (0, 1, 0, 0, 0, 0)))  # no run


@dataclass(frozen=True)
class Arranged:
    """Events by key, in order: partition k holds the rows bounds[k] to bounds[k + 1]."""

    table: pa.Table
    bounds: Int64s
    time: Int64s


def arranged(automaton: FlinkAutomaton, table: pa.Table, keys: Sequence[str]) -> Arranged:
    """The events of each key together, in the order of time; those of one instant as they came."""
    events = ordered(table, automaton.schema)
    if not keys:
        bounds = np.array([0, len(events)] if len(events) else [0], np.int64)
        return Arranged(events.table, bounds, np.require(events.time, requirements=["C", "W"]))
    key = combined([codes(events.table.column(name)) for name in keys], len(events))
    order, starts = grouped(key)
    bounds = np.unique(starts)
    return Arranged(events.table.take(pa.array(order)), bounds, np.ascontiguousarray(events.time[order]))
