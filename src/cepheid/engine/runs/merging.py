"""Merging of equivalent runs (SASE+ section 5.2.2).

Runs that have filled the same place and agree on every value that a later edge can read select the same events from
here on: they become one. The match buffer remembers them both, by an entry that joins theirs; a tally of how many
paths began with which event says how many matches a merged run stands for, whatever the window cuts off.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types

from cepheid.engine.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.runs.buffer import EVENT, JOINED, LATEST, LEFT, RIGHT, Rows
from cepheid.engine.runs.conditions import EVENTS, Events
from cepheid.engine.runs.moves import (
    ALIVE,
    BEGAN,
    BEGINNING,
    BOOKS,
    CHAIN,
    CLOSED,
    END,
    ENTRIES,
    HASH,
    MERGED,
    PATHS,
    PLACE,
    RUNS,
    TALLIES,
    TALLY,
    Books,
    Runs,
    added,
    release,
)
from cepheid.engine.runs.program import (
    CONTIGUOUS,
    KEY_COUNTED,
    KEY_EVENT,
    KEY_INSTANT,
    KEY_NULL,
    KEY_NUMBER,
    KEY_RUNNING,
    KEY_WHOLE,
    PROGRAM,
    Program,
)


@numba.njit(types.void(EVENTS, PROGRAM, COLUMNS, RUNS, types.int64), cache=True)
def make_key(events: Events, program: Program, columns: Columns, runs: Runs, slot: int) -> None:
    """Writes down what the run must agree on with others to be merged, and its hash."""
    place = runs.facts[slot, PLACE]
    key, at = runs.key[slot], runs.at[slot]
    key[0] = 2 * place + runs.facts[slot, CLOSED]
    key[1] = events.chance[at[program.last[place]]] if program.strategy == CONTIGUOUS else 0
    size = 2
    for row in range(runs.codes.shape[1]):
        key[size] = runs.codes[slot, row]
        size += 1
    for item in range(program.key_start[place], program.key_start[place + 1]):
        kind, source, row = program.key_kind[item], program.key_slot[item], program.key_row[item]
        if kind == KEY_WHOLE:
            key[size] = columns.whole[row, at[source]]
        elif kind == KEY_NUMBER:
            key[size] = np.float64(columns.number[row, at[source]]).view(np.int64)
        elif kind == KEY_NULL:
            key[size] = columns.null[row, at[source]]
        elif kind == KEY_EVENT:
            key[size] = at[source]
        elif kind == KEY_INSTANT:
            key[size] = events.instant[at[source]]
        elif kind == KEY_COUNTED:
            key[size] = runs.counted[slot, source]
        elif kind == KEY_RUNNING:
            key[size] = np.float64(runs.running[slot, source]).view(np.int64)
        else:
            key[size] = runs.facts[slot, BEGAN]
        size += 1
    key[size:] = 0
    mixed = 17
    for index in range(size):  # kept below 2^31 so that no product overflows
        mixed = (mixed * 1_000_003 ^ ((key[index] ^ (key[index] >> 31)) & 0x7FFFFFFF)) & 0x7FFFFFFF
    runs.facts[slot, HASH] = mixed ^ (mixed >> 15)


@numba.njit(types.int64(RUNS, INT64S, types.int64), cache=True)
def equivalent(runs: Runs, chains: Int64s, slot: int) -> int:
    """The pending run that agrees with this one, or -1."""
    other: int = chains[runs.facts[slot, HASH] & (len(chains) - 1)]
    while other >= 0:
        if runs.facts[other, HASH] == runs.facts[slot, HASH] and np.array_equal(runs.key[other], runs.key[slot]):
            return other
        other = runs.facts[other, CHAIN]
    return -1


@numba.njit(types.void(RUNS, INT64S, types.int64), cache=True)
def enlist(runs: Runs, chains: Int64s, slot: int) -> None:
    """Lets others find this run by its hash."""
    bucket = runs.facts[slot, HASH] & (len(chains) - 1)
    runs.facts[slot, CHAIN] = chains[bucket]
    chains[bucket] = slot


@numba.njit(types.void(RUNS, INT64S, types.int64), cache=True)
def strike(runs: Runs, chains: Int64s, slot: int) -> None:
    """Takes the run off its hash chain."""
    bucket = runs.facts[slot, HASH] & (len(chains) - 1)
    other = chains[bucket]
    if other == slot:
        chains[bucket] = runs.facts[slot, CHAIN]
        return
    while runs.facts[other, CHAIN] != slot:
        other = runs.facts[other, CHAIN]
    runs.facts[other, CHAIN] = runs.facts[slot, CHAIN]


@numba.njit(types.int64(INT64_ROWS, types.int64, types.int64, types.int64, INT64S), cache=True)
def merged_tally(tallies: Rows, one: int, other: int, horizon: int, state: Int64s) -> int:
    """A new block with the paths of both, without those that began before the horizon."""
    block: int = state[TALLIES]
    end = block
    while tallies[one, BEGINNING] >= horizon or tallies[other, BEGINNING] >= horizon:
        latest = max(tallies[one, BEGINNING], tallies[other, BEGINNING])
        count = 0
        if tallies[one, BEGINNING] == latest:
            count = tallies[one, PATHS]
            one += 1
        if tallies[other, BEGINNING] == latest:
            count = added(count, tallies[other, PATHS])
            other += 1
        tallies[end, BEGINNING], tallies[end, PATHS] = latest, count
        end += 1
    tallies[end, BEGINNING] = END
    state[TALLIES] = end + 1
    return block


@numba.njit(types.void(RUNS, BOOKS, types.int64, types.int64, types.int64), cache=True)
def merge(runs: Runs, books: Books, slot: int, into: int, horizon: int) -> None:
    """Makes one run of two equivalent ones; the fresh one gives its slot back."""
    state, facts = books.state, runs.facts
    if facts[into, BEGAN] < horizon:  # the older one is over and only waits to be taken off its list
        runs.entry[into] = runs.entry[slot]
        facts[into, TALLY] = facts[slot, TALLY]
        facts[into, BEGAN] = facts[slot, BEGAN]
        books.began[facts[slot, BEGAN]] += 1
        state[ALIVE] += 1
        release(runs, books, slot, horizon)
        return
    entry = state[ENTRIES]
    state[ENTRIES] = entry + 1
    began = max(facts[slot, BEGAN], facts[into, BEGAN])
    books.entries[entry, EVENT], books.entries[entry, LATEST] = JOINED, began
    books.entries[entry, LEFT], books.entries[entry, RIGHT] = runs.entry[slot], runs.entry[into]
    runs.entry[into] = entry
    if len(books.tallies) > 0:
        facts[into, TALLY] = merged_tally(books.tallies, facts[slot, TALLY], facts[into, TALLY], horizon, state)
    books.began[facts[into, BEGAN]] -= 1
    books.began[began] += 1
    facts[into, BEGAN] = began
    state[MERGED] += 1
    release(runs, books, slot, horizon)


@numba.njit(types.void(INT64_ROWS, RUNS, types.int64, INT64S), cache=True)
def collect_tallies(tallies: Rows, runs: Runs, horizon: int, state: Int64s) -> None:
    """Keeps the blocks that runs still use, without beginnings that the window has passed."""
    size = state[TALLIES]
    moved = np.full(size, -1, np.int64)
    for slot in range(len(runs.entry)):
        if runs.entry[slot] >= 0:
            moved[runs.facts[slot, TALLY]] = 0
    kept = position = 0
    while position < size:
        block = position
        if moved[block] == 0:
            moved[block] = kept
            while tallies[position, BEGINNING] >= horizon:
                tallies[kept] = tallies[position]
                kept += 1
                position += 1
            end = kept
            kept += 1
        else:
            end = -1
        while tallies[position, BEGINNING] != END:
            position += 1
        position += 1
        if end >= 0:
            tallies[end, BEGINNING] = END
    for slot in range(len(runs.entry)):
        if runs.entry[slot] >= 0:
            runs.facts[slot, TALLY] = moved[runs.facts[slot, TALLY]]
    state[TALLIES] = kept
