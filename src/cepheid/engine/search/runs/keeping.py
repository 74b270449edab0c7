"""Runs that stay: events are shown to them as they come, and they wait for more. For live queries.

`scan` follows the runs of one partition after the other, and ends with them. Here runs of all keys live side by side in
one pool and one match buffer, each key with lists of its own, so that events can be shown in the order of time, and
what a call costs depends on the events that are new. Windows of time are the same for all keys: one horizon serves all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s, Int64Tables
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import INSTANT, PRECISE_FACTS, TIME, Events
from cepheid.engine.kernels.compile import kernel, search_kernel
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.query import Query, room_for_absent
from cepheid.engine.program.tables import MERGEABLE, Program
from cepheid.engine.search.runs.by_value import Waits, new_by_value
from cepheid.engine.search.runs.enumerate import Listed
from cepheid.engine.search.runs.merging import enlist
from cepheid.engine.search.runs.moves import (
    ACCEPTED,
    AFTER,
    FRESH,
    NEXT,
    OVERFLOW,
    STATE,
    UNTIL,
    RunPool,
    Runs,
    Widths,
    new_runs,
)
from cepheid.engine.search.runs.scan import (
    BEGINNINGS,
    CROWDED,
    CURSOR,
    END,
    FEW,
    HEAD,
    HORIZON,
    LOW,
    MOST_ACCEPTED,
    MOST_RUNS,
    MOVES,
    NEEDS_ROOM,
    NO_LIMIT,
    NOTHING_REACHED,
    OFTEN,
    OPENING,
    STAGE,
    VERBOSE,
    Lists,
    Machine,
    drain,
    follow,
    with_room,
)

KEY, ROW = PRECISE_FACTS, PRECISE_FACTS + 1  # further facts of an event: the number of its key, and where it is kept
KEPT_FACTS = PRECISE_FACTS + 2


class KeptState(NamedTuple):
    """What stays from call to call."""

    runs: Runs
    entries: Int64Rows  # the match buffer
    marks: Int64Rows  # by event
    state: Int64s
    cursor: Int64s
    chains: Int64s  # empty if runs are not merged
    ends: Int64Tables  # by key and state, the first and the last run of those that have reached it


class Shown(NamedTuple):
    """Which events are shown, first : last, and what is asked of them."""

    first: int
    last: int
    after: int
    until: int
    most_runs: int
    most_matches: int


def no_runs(widths: Widths, merging: bool) -> KeptState:
    """No run yet, no event and no key."""
    state, cursor = np.zeros(STATE, np.int64), np.zeros(CURSOR, np.int64)
    state[FRESH] = -1
    cursor[CROWDED] = FEW
    runs: Runs = new_runs(256, widths, state)
    chains = np.full(1024 if merging else 0, -1, np.int64)
    return KeptState(
        runs,
        np.empty((256, 4), np.int64),
        np.zeros((0, 2), np.int64),
        state,
        cursor,
        chains,
        np.empty((0, 0, 2), np.int64),
    )


@kernel
def chains_of_all(runs: Runs, ends: Int64Tables, program: Program) -> Int64s:
    """The hash chains by which runs that can be merged are found, for a larger pool of runs."""
    size = 1024
    while size < len(runs.entry):
        size *= 2
    chains = np.full(size, -1, np.int64)
    for key in range(len(ends)):
        for place in range(program.places):
            if program.place[place, MERGEABLE] == 1:
                slot = ends[key, place, HEAD]
                while slot >= 0:
                    enlist(runs, chains, slot)
                    slot = runs.rows[slot, NEXT]
    return chains


@search_kernel
def show(
    events: Events,
    machine: Machine,
    columns: Columns,
    predicate: PredicateCall,
    waits: Waits,
    widths: Widths,
    kept: KeptState,
    listed: Listed,
    shown: Shown,
) -> tuple[Listed, KeptState]:
    """Shows events, which lie in order of time and of key, to the runs of their keys; and writes matches down."""
    runs, entries, marks, state, cursor, chains, ends = kept
    facts, program, graph = events.facts, machine.program, machine.graph
    scratch = new_scratch(widths.slots, widths.whole, widths.number, widths.codes)
    run_pool = RunPool(entries, np.empty((64, 4), np.int64), np.empty((0, 2), np.int64), marks, state, scratch)
    by_value = new_by_value(waits, 0)
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    state[AFTER], state[UNTIL], state[ACCEPTED], state[OVERFLOW] = shown.after, shown.until, 0, NOTHING_REACHED
    cursor[MOST_RUNS], cursor[MOST_ACCEPTED] = shown.most_runs, OFTEN
    low = shown.first
    while low < shown.last and state[OVERFLOW] == NOTHING_REACHED:
        if low > 0:
            rank = facts[INSTANT, low - 1]
            facts[INSTANT, low] = rank if facts[TIME, low] == facts[TIME, low - 1] else rank + 1
        high = low + 1
        while high < shown.last and facts[TIME, high] == facts[TIME, low] and facts[KEY, high] == facts[KEY, low]:
            facts[INSTANT, high] = facts[INSTANT, low]
            high += 1
        lists = Lists(ends[facts[KEY, low]], chains, by_value)
        cursor[LOW], cursor[END], cursor[STAGE] = low, high, OPENING
        needs = NEEDS_ROOM
        while needs == NEEDS_ROOM and state[OVERFLOW] == NOTHING_REACHED:
            needs = follow(query, graph, runs, run_pool, lists, cursor)
            if state[ACCEPTED] > 0:
                listed = drain(run_pool, listed, VERBOSE, shown.most_matches)
            if needs == NEEDS_ROOM:
                runs, run_pool = with_room(runs, run_pool, cursor[HORIZON], cursor[MOVES], cursor[BEGINNINGS], NO_LIMIT)
                if 0 < len(chains) < len(runs.entry):
                    chains = chains_of_all(runs, ends, program)
                    lists = Lists(lists.ends, chains, by_value)
        low = high
    return listed, KeptState(runs, run_pool.entries, marks, state, cursor, chains, ends)
