"""Flink patterns in streams: events are released in order, and runs go on from where they stopped.

What stays is the runs of each key, in the order of their heaps, and the events that they took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from cepheid.engine.data.matches import Int64s
from cepheid.engine.search.flink.machine import LATEST, Reported
from cepheid.engine.search.flink.moves import Moves
from cepheid.engine.search.flink.run import Arranged, arranged, assemble, find_matches
from cepheid.plan.flink_automaton import FlinkAutomaton

_PLACE = "cepheid: place"  # a column that is there for a moment: which row of the retained events it was


@dataclass(frozen=True)
class Retained:
    """What a stream keeps: events, and runs that took them; `partition` only says which runs are of one key."""

    events: pa.Table
    runs: Reported
    nearest: int = LATEST  # when the next run is given up


def nothing_retained(schema: pa.Schema) -> Retained:
    """The state before the first event."""
    return Retained(schema.empty_table(), _runs([np.zeros(length, np.int64) for length in (0, 1, 0, 0, 0, 0)]))


def step(
    moves: Moves,
    state: Retained,
    released: pa.Table,
    end: int | None,
    keys: Sequence[str] = (),
    partial: bool = False,
) -> tuple[pa.Table, Retained]:
    """What is known now, and what stays. Time has passed up to the end; None: no more events come."""
    places = np.concatenate([np.arange(state.events.num_rows), np.full(released.num_rows, -1)])
    table = pa.concat_tables([state.events, released.select(state.events.column_names)])
    automaton = moves.automaton
    events = arranged(automaton, table.append_column(_PLACE, pa.array(places)), keys)
    was = events.table.column(_PLACE).to_numpy()
    events = Arranged(events.table.drop_columns([_PLACE]), events.bounds, events.time)
    known = _placed(state.runs, was, events.bounds)
    processed = np.add.reduceat(was >= 0, events.bounds[:-1]) if len(was) else np.zeros(0, np.int64)
    begin = events.bounds[:-1] + processed
    reported, kept = find_matches(moves, events, partial, known, begin, end)
    result = assemble(automaton, events, reported, partial)
    return result, _retained(automaton, events, kept) if end is not None else nothing_retained(state.events.schema)


def _runs(parts: Sequence[Int64s]) -> Reported:
    return Reported(*(np.ascontiguousarray(part, np.int64) for part in parts))


def _placed(runs: Reported, was: Int64s, bounds: Int64s) -> Reported:
    """The runs over the rows as they lie now, by partition."""
    if not len(runs.partition):
        return runs
    old = np.flatnonzero(was >= 0)
    now = np.empty(len(old), np.int64)
    now[was[old]] = old
    row = now[runs.row]
    sizes = np.diff(runs.first)
    # The run that waits for a first event took none: it belongs where the others of its key do.
    own = np.full(int(runs.partition.max()) + 1, -1, np.int64)
    some = sizes > 0
    own[runs.partition[some]] = np.searchsorted(bounds, row[runs.first[:-1][some]], "right") - 1
    partition = own[runs.partition]
    return _taken(
        Reported(partition, runs.first, row, runs.step, runs.waiting, runs.given_up),
        np.argsort(partition, kind="stable"),
    )


def _taken(runs: Reported, which: Int64s) -> Reported:
    """Some of the runs, in an order."""
    sizes = np.diff(runs.first)[which]
    first = np.concatenate([[0], np.cumsum(sizes)])
    spread = np.arange(first[-1]) - np.repeat(first[:-1], sizes) + np.repeat(runs.first[:-1][which], sizes)
    return _runs(
        (runs.partition[which], first, runs.row[spread], runs.step[spread], runs.waiting[which], runs.given_up[which])
    )


def _retained(automaton: FlinkAutomaton, events: Arranged, kept: Reported) -> Retained:
    """The runs of keys that have more than the one that waits for a first event, and their events."""
    counts = np.bincount(kept.partition, minlength=1)
    kept = _taken(kept, np.flatnonzero(counts[kept.partition] > 1))
    used, row = np.unique(kept.row, return_inverse=True)
    runs = _runs((kept.partition, kept.first, row.reshape(-1), kept.step, kept.waiting, kept.given_up))
    return Retained(events.table.take(pa.array(used)), runs, _nearest(automaton, events.time[used], runs))


def _nearest(automaton: FlinkAutomaton, time: Int64s, runs: Reported) -> int:
    """When the next run is given up."""
    some = np.flatnonzero((np.diff(runs.first) > 0) & (runs.given_up == 0))
    found = [LATEST]
    if len(some) and automaton.window > 0:
        found.append(int(time[runs.row[runs.first[:-1][some]]].min()) + automaton.window)
    gaps = np.array([state.window or 0 for state in automaton.states], np.int64)[runs.waiting[some]]
    if len(some) and gaps.any():
        deadlines = time[runs.row[runs.first[1:][some] - 1]] + gaps
        found.append(int(deadlines[gaps > 0].min()))
    return min(found)
