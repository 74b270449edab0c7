"""Merging of equivalent runs (SASE+ section 5.2.2).

Runs that have filled the same place and agree on every value that a later edge can read select the same events from
here on: they become one. The match buffer remembers them both, by an entry that joins theirs; a tally of how many
paths began with which event says how many matches a merged run stands for, whatever the window cuts off.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns
from cepheid.engine.data.layout import INSTANT, Events
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.program.tables import (
    KEY_COLUMN,
    KEY_COUNTED,
    KEY_EVENT,
    KEY_INSTANT,
    KEY_KIND,
    KEY_NULL,
    KEY_NUMBER,
    KEY_OF,
    KEY_RUNNING,
    KEY_WHOLE,
    KEYS_FROM,
    Program,
)
from cepheid.engine.search.runs.buffer import EVENT, JOINED, LATEST, LEFT, RIGHT
from cepheid.engine.search.runs.moves import (
    ALIVE,
    BEGAN,
    BEGUN_AT,
    BEGUN_HERE,
    CHAIN,
    CLOSED,
    END,
    ENTRIES,
    FACTS,
    HASH,
    MERGED,
    PATHS,
    REACHED,
    TALLIES,
    TALLY,
    RunPool,
    Runs,
    added,
    release,
)


@borrowing
def make_key(events: Events, program: Program, columns: Columns, runs: Runs, slot: int) -> None:
    """Writes down what the run must agree on with others to be merged, and its hash."""
    rows, at, key = runs.rows, runs.at, runs.key
    place = rows[slot, REACHED]
    rows[slot, key] = 2 * place + rows[slot, CLOSED]  # no fresh run has passed an event (LOST_NEXT)
    size = key + 1
    for code in range(FACTS, at):
        rows[slot, size] = rows[slot, code]
        size += 1
    for item in range(program.place[place, KEYS_FROM], program.place[place + 1, KEYS_FROM]):
        kind, of, column = program.keys[item, KEY_KIND], program.keys[item, KEY_OF], program.keys[item, KEY_COLUMN]
        if kind == KEY_WHOLE:
            rows[slot, size] = columns.whole[column, rows[slot, at + of]]
        elif kind == KEY_NUMBER:
            rows[slot, size] = np.float64(columns.number[column, rows[slot, at + of]]).view(np.int64)
        elif kind == KEY_NULL:
            rows[slot, size] = columns.null[column, rows[slot, at + of]]
        elif kind == KEY_EVENT:
            rows[slot, size] = rows[slot, at + of]
        elif kind == KEY_INSTANT:
            rows[slot, size] = events.facts[INSTANT, rows[slot, at + of]]
        elif kind == KEY_COUNTED:
            rows[slot, size] = rows[slot, runs.counted + of]
        elif kind == KEY_RUNNING:
            rows[slot, size] = np.float64(runs.running[slot, of]).view(np.int64)
        else:
            rows[slot, size] = rows[slot, BEGAN]
        size += 1
    for column in range(size, rows.shape[1]):
        rows[slot, column] = 0
    mixed = 17
    for column in range(key, size):  # kept below 2^31 so that no product overflows
        value = rows[slot, column]
        mixed = (mixed * 1_000_003 ^ ((value ^ (value >> 31)) & 0x7FFFFFFF)) & 0x7FFFFFFF
    runs.rows[slot, HASH] = mixed ^ (mixed >> 15)


@borrowing
def equivalent(runs: Runs, chains: Int64s, slot: int) -> int:
    """The pending run that agrees with this one, or -1."""
    other: int = chains[runs.rows[slot, HASH] & (len(chains) - 1)]
    while other >= 0:
        if runs.rows[other, HASH] == runs.rows[slot, HASH]:
            column = runs.key
            while column < runs.rows.shape[1] and runs.rows[other, column] == runs.rows[slot, column]:
                column += 1
            if column == runs.rows.shape[1]:
                return other
        other = runs.rows[other, CHAIN]
    return -1


@borrowing
def enlist(runs: Runs, chains: Int64s, slot: int) -> None:
    """Lets others find this run by its hash."""
    bucket = runs.rows[slot, HASH] & (len(chains) - 1)
    runs.rows[slot, CHAIN] = chains[bucket]
    chains[bucket] = slot


@borrowing
def strike(runs: Runs, chains: Int64s, slot: int) -> None:
    """Takes the run off its hash chain."""
    bucket = runs.rows[slot, HASH] & (len(chains) - 1)
    other = chains[bucket]
    if other == slot:
        chains[bucket] = runs.rows[slot, CHAIN]
        return
    while runs.rows[other, CHAIN] != slot:
        other = runs.rows[other, CHAIN]
    runs.rows[other, CHAIN] = runs.rows[slot, CHAIN]


@borrowing
def merged_tally(tallies: Int64Rows, one: int, other: int, horizon: int, state: Int64s) -> int:
    """A new block with the paths of both, without those that began before the horizon."""
    block: int = state[TALLIES]
    end = block
    while tallies[one, BEGUN_AT] >= horizon or tallies[other, BEGUN_AT] >= horizon:
        latest = max(tallies[one, BEGUN_AT], tallies[other, BEGUN_AT])
        count = 0
        if tallies[one, BEGUN_AT] == latest:
            count = tallies[one, PATHS]
            one += 1
        if tallies[other, BEGUN_AT] == latest:
            count = added(count, tallies[other, PATHS])
            other += 1
        tallies[end, BEGUN_AT], tallies[end, PATHS] = latest, count
        end += 1
    tallies[end, BEGUN_AT] = END
    state[TALLIES] = end + 1
    return block


@borrowing
def merge(runs: Runs, run_pool: RunPool, slot: int, into: int, horizon: int) -> None:
    """Makes one run of two equivalent ones; the fresh one gives its slot back."""
    state, rows = run_pool.state, runs.rows
    if rows[into, BEGAN] < horizon:  # the older one is over and only waits to be taken off its list
        runs.entry[into] = runs.entry[slot]
        rows[into, TALLY] = rows[slot, TALLY]
        rows[into, BEGAN] = rows[slot, BEGAN]
        run_pool.marks[rows[slot, BEGAN], BEGUN_HERE] += 1
        state[ALIVE] += 1
        release(runs, run_pool, slot, horizon)
        return
    entry = state[ENTRIES]
    state[ENTRIES] = entry + 1
    began = max(rows[slot, BEGAN], rows[into, BEGAN])
    run_pool.entries[entry, EVENT], run_pool.entries[entry, LATEST] = JOINED, began
    run_pool.entries[entry, LEFT], run_pool.entries[entry, RIGHT] = runs.entry[slot], runs.entry[into]
    runs.entry[into] = entry
    if len(run_pool.tallies) > 0:
        rows[into, TALLY] = merged_tally(run_pool.tallies, rows[slot, TALLY], rows[into, TALLY], horizon, state)
    run_pool.marks[rows[into, BEGAN], BEGUN_HERE] -= 1
    run_pool.marks[began, BEGUN_HERE] += 1
    rows[into, BEGAN] = began
    state[MERGED] += 1
    release(runs, run_pool, slot, horizon)


@kernel
def collect_tallies(tallies: Int64Rows, runs: Runs, horizon: int, state: Int64s) -> None:
    """Keeps the blocks that runs still use, without beginnings that the window has passed."""
    size = state[TALLIES]
    moved = np.full(size, -1, np.int64)
    for slot in range(len(runs.entry)):
        if runs.entry[slot] >= 0:
            moved[runs.rows[slot, TALLY]] = 0
    kept = position = 0
    while position < size:
        block = position
        if moved[block] == 0:
            moved[block] = kept
            while tallies[position, BEGUN_AT] >= horizon:
                tallies[kept] = tallies[position]
                kept += 1
                position += 1
            end = kept
            kept += 1
        else:
            end = -1
        while tallies[position, BEGUN_AT] != END:
            position += 1
        position += 1
        if end >= 0:
            tallies[end, BEGUN_AT] = END
    for slot in range(len(runs.entry)):
        if runs.entry[slot] >= 0:
            runs.rows[slot, TALLY] = moved[runs.rows[slot, TALLY]]
    state[TALLIES] = kept
