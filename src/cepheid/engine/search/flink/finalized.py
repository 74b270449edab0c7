"""Flink patterns in streams: events are released in order, and runs go on from where they stopped.

What stays is the runs of each key, in the order of their heaps, and the events that they took.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import NOBODY, Arranged, Reported, arranged, matches_of
from cepheid.engine.data.keys import codes, combined
from cepheid.engine.data.matches import Matches, some_lists
from cepheid.engine.data.table import times_of
from cepheid.engine.search.flink.machine import LATEST
from cepheid.engine.search.flink.run import Search, find_matches
from cepheid.language.free_names import free_name
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.plan.flink_limits import LIMITS
from cepheid.plan.options import Limits

Known: TypeAlias = tuple[pa.Table, Matches]  # events, and the matches in them
UNUSED, CHUNKS = 1000, 64  # events that no run needs, and pieces of tables, before what is retained is laid out anew


@dataclass(frozen=True)
class Retained:
    """What a stream keeps: events, and runs that took them; `partition` only says which runs are of one key."""

    events: pa.Table
    runs: Reported
    nearest: int = LATEST  # when the next run is given up


def nothing_retained(schema: pa.Schema) -> Retained:
    """The state before the first event."""
    return Retained(schema.empty_table(), NOBODY)


def step(
    search: Search,
    state: Retained,
    released: pa.Table,
    end: int | None,
    keys: Sequence[str] = (),
    partial: bool = False,
    limits: Limits = LIMITS,
) -> tuple[Known, Retained]:
    """What is known now, and what stays. Time has passed up to the end; None: no more events come."""
    if not keys or end is None or not state.events.num_rows:
        return _walked(search, state, released, end, keys, partial, limits)
    concerned, others = _divided(search.automaton, state, released, end, keys)
    result, after = _walked(search, concerned, released, end, keys, partial, limits)
    return result, _joined(others, after)


def _walked(
    search: Search,
    state: Retained,
    released: pa.Table,
    end: int | None,
    keys: Sequence[str],
    partial: bool,
    limits: Limits,
) -> tuple[Known, Retained]:
    """A step over all keys that are retained."""
    automaton = search.automaton
    places = np.concatenate([np.arange(state.events.num_rows), np.full(released.num_rows, -1)])
    table = pa.concat_tables([state.events, released.select(state.events.column_names)])
    place = free_name("__place", table.column_names)  # which row of the retained events it was
    events = arranged(automaton, table.append_column(place, pa.array(places)), keys)
    was = events.table.column(place).to_numpy()
    events = Arranged(events.table.drop_columns([place]), events.bounds, events.time)
    known = _placed(state.runs, was, events.bounds)
    processed = np.add.reduceat(was >= 0, events.bounds[:-1]) if len(was) else np.zeros(0, np.int64)
    begin = events.bounds[:-1] + processed
    reported, kept = find_matches(search, events, partial, known, begin, end, limits)
    after = _retained(automaton, events, kept) if end is not None else nothing_retained(state.events.schema)
    return (events.table, matches_of(reported, events.time)), after


# --- keys that a step does not concern ------------------------------------------------------------------------------


def _divided(
    automaton: FlinkAutomaton, state: Retained, released: pa.Table, end: int, keys: Sequence[str]
) -> tuple[Retained, Retained]:
    """The runs of keys of which an event comes or whose time is up, and all others, which stay as they are."""
    events, runs, held = state.events, state.runs, state.events.num_rows
    columns = [pa.chunked_array([*events.column(name).chunks, *released.column(name).chunks]) for name in keys]
    key = combined([codes(column) for column in columns], held + released.num_rows)
    of_key = np.full(int(runs.partition.max(initial=-1)) + 1, -1, np.int64)
    some = np.diff(runs.first) > 0
    of_key[runs.partition[some]] = key[runs.row[runs.first[:-1][some]]]
    concerned = np.zeros(int(key.max(initial=0)) + 1, bool)
    concerned[key[held:]] = True
    deadlines = _deadlines(automaton, times_of(events, automaton.schema.time), runs)
    concerned[of_key[runs.partition[deadlines <= end]]] = True
    chosen = concerned[of_key[runs.partition]]
    others = Retained(events, _taken(runs, np.flatnonzero(~chosen)), int(deadlines[~chosen].min(initial=LATEST)))
    return compacted(Retained(events, _taken(runs, np.flatnonzero(chosen)))), others


def _joined(others: Retained, after: Retained) -> Retained:
    """All runs together; events that no run needs stay until there are many of them."""
    one, two = others.runs, after.runs
    first = np.concatenate([one.first, one.first[-1] + two.first[1:]])
    row = np.concatenate([one.row, two.row + others.events.num_rows])
    numbers = _numbered(one.partition), _numbered(two.partition)
    partition = np.concatenate([numbers[0], numbers[1] + int(numbers[0].max(initial=-1)) + 1])
    runs = _runs(
        (
            partition,
            first,
            row,
            *(np.concatenate(pair) for pair in ((one.step, two.step), (one.waiting, two.waiting))),
            np.concatenate([one.given_up, two.given_up]),
        )
    )
    events = pa.concat_tables([others.events, after.events])
    joined = Retained(events, runs, min(others.nearest, after.nearest))
    if events.num_rows > 2 * len(row) + UNUSED or events.column(0).num_chunks > CHUNKS:
        return compacted(joined)
    return joined


def _numbered(partition: Int64s) -> Int64s:
    """Partitions counted from 0: only which runs are of one partition matters."""
    return np.cumsum(np.diff(partition, prepend=partition[:1]) != 0)


def compacted(state: Retained) -> Retained:
    """The same without events that no run took."""
    taken = np.zeros(state.events.num_rows, bool)
    taken[state.runs.row] = True
    row = (np.cumsum(taken) - 1)[state.runs.row]
    events = state.events.take(pa.array(np.flatnonzero(taken))).combine_chunks()
    return Retained(events, state.runs._replace(row=np.ascontiguousarray(row, np.int64)), state.nearest)


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
    first, places = some_lists(runs.first, which)
    return _runs(
        (runs.partition[which], first, runs.row[places], runs.step[places], runs.waiting[which], runs.given_up[which])
    )


def _retained(automaton: FlinkAutomaton, events: Arranged, kept: Reported) -> Retained:
    """The runs of keys that have more than the one that waits for a first event, and their events."""
    counts = np.bincount(kept.partition, minlength=1)
    kept = _taken(kept, np.flatnonzero(counts[kept.partition] > 1))
    used, row = np.unique(kept.row, return_inverse=True)
    runs = _runs((kept.partition, kept.first, row.reshape(-1), kept.step, kept.waiting, kept.given_up))
    return Retained(events.table.take(pa.array(used)), runs, _nearest(automaton, events.time[used], runs))


def nearest_deadline(automaton: FlinkAutomaton, state: Retained) -> int:
    """When the next run is given up."""
    return _nearest(automaton, times_of(state.events, automaton.schema.time), state.runs)


def _nearest(automaton: FlinkAutomaton, time: Int64s, runs: Reported) -> int:
    """When the next run is given up."""
    return int(_deadlines(automaton, time, runs).min(initial=LATEST))


def _deadlines(automaton: FlinkAutomaton, time: Int64s, runs: Reported) -> Int64s:
    """When each run is given up; LATEST: never."""
    found = np.full(len(runs.partition), LATEST, np.int64)
    some = np.flatnonzero((np.diff(runs.first) > 0) & (runs.given_up == 0))
    if len(some) and automaton.window > 0:
        found[some] = time[runs.row[runs.first[:-1][some]]] + automaton.window
    gaps = np.array(automaton.gaps, np.int64)[runs.waiting[some]]
    if gaps.any():
        gapped = some[gaps > 0]
        latest = time[runs.row[runs.first[1:][gapped] - 1]]
        found[gapped] = np.minimum(found[gapped], latest + gaps[gaps > 0])
    return found
