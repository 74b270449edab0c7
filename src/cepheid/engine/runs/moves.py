"""The moves of runs: begin, take, accept; and the pool that runs live in.

A run is a slot: a row of chosen events, rows of aggregates, the codes that equivalence tests compare, its entry in the
match buffer and a few facts. Slots are reused (SASE+ section 5.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.candidates import WILD
from cepheid.engine.columns import COLUMNS, FLOAT64_ROWS, INT64_ROWS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.runs.buffer import EARLIEST, ENTRY, EVENT, KNOWN, LATEST, LEFT, MATCHES, RIGHT, Rows
from cepheid.engine.runs.conditions import (
    ABSENT,
    EVENTS,
    FUNCTION,
    Absent,
    Events,
    absorb,
    agrees,
    holds,
    in_window,
    negated,
    same_partition,
    stands,
)
from cepheid.engine.runs.program import BEGIN, CLOSE, CONTIGUOUS, PROGRAM, SKIP_NEXT, TAKE, Program

# Facts of a run: the place it has filled, the latest event it began with, whether its group may close, its counts by
# beginning, its hash and the next run of the same hash, the next run of its list, where a postponed run resumes.
PLACE, BEGAN, CLOSED, TALLY, HASH, CHAIN, NEXT, RESUME = range(8)
FACTS = 8

# What the kernels count and where their lists begin.
(
    EVALUATED,
    KILLED,
    MERGED,
    ALIVE,
    PEAK_RUNS,
    BUFFERED,
    PEAK_BUFFERED,
    FREE,
    SLOTS_USED,
    FRESH,
    ENTRIES,
    ACCEPTED,
    TALLIES,
    OVERFLOW,
    TOTAL,
    AFTER,
    UNTIL,
) = range(17)
STATE = 17
BLANK = 0  # the slot that stands for "no run yet"

BEGINNING, PATHS = range(2)  # a row of a tally
END = -1  # the beginning that ends a block
COUNTLESS = np.iinfo(np.int64).max  # more paths than 63 bits can count


class Runs(NamedTuple):
    """The pool of runs."""

    at: Rows
    counted: Rows
    running: npt.NDArray[np.float64]
    codes: Rows
    facts: Rows
    key: Rows  # what equivalent runs agree on; no columns if none are merged
    entry: Int64s  # each run's entry in the match buffer; -1: the slot is free, or the run is over


RUNS = types.NamedTuple((INT64_ROWS, INT64_ROWS, FLOAT64_ROWS, INT64_ROWS, INT64_ROWS, INT64_ROWS, INT64S), Runs)


class Widths(NamedTuple):
    """How wide the rows of a run are."""

    slots: int
    whole: int
    number: int
    codes: int
    key: int


WIDTHS = types.NamedTuple((types.int64,) * 5, Widths)


class Books(NamedTuple):
    """What all moves write into besides the runs."""

    entries: Rows
    accepted: Rows
    tallies: Rows  # blocks of (beginning, number of paths), the latest beginning first; no rows if not counted
    state: Int64s
    began: Int64s  # by event: how many live runs began with it (the latest beginning of merged ones)
    used: Int64s  # by event: 1 if a run has selected it


BOOKS = types.NamedTuple((INT64_ROWS, INT64_ROWS, INT64_ROWS, INT64S, INT64S, INT64S), Books)


@numba.njit(RUNS(types.int64, WIDTHS, INT64S), cache=True)
def new_runs(size: int, widths: Widths, state: Int64s) -> Runs:
    """A pool of free slots; the first one is blank."""
    runs = Runs(
        np.zeros((size, widths.slots), np.int64),
        np.zeros((size, widths.whole), np.int64),
        np.zeros((size, widths.number), np.float64),
        np.full((size, widths.codes), WILD, np.int64),
        np.zeros((size, FACTS), np.int64),
        np.zeros((size, widths.key), np.int64),
        np.full(size, -1, np.int64),
    )
    for slot in range(1, size):
        runs.facts[slot, NEXT] = slot + 1 if slot + 1 < size else -1
    state[FREE] = 1
    state[SLOTS_USED] = 1
    return runs


@numba.njit(RUNS(RUNS, types.int64, INT64S), cache=True)
def more_runs(runs: Runs, least: int, state: Int64s) -> Runs:
    """The same pool with at least `least` more free slots, and twice the size."""
    old = len(runs.entry)
    size = max(2 * old, old + least)
    larger = Runs(
        np.zeros((size, runs.at.shape[1]), np.int64),
        np.zeros((size, runs.counted.shape[1]), np.int64),
        np.zeros((size, runs.running.shape[1]), np.float64),
        np.zeros((size, runs.codes.shape[1]), np.int64),
        np.zeros((size, FACTS), np.int64),
        np.zeros((size, runs.key.shape[1]), np.int64),
        np.full(size, -1, np.int64),
    )
    larger.at[:old] = runs.at
    larger.counted[:old] = runs.counted
    larger.running[:old] = runs.running
    larger.codes[:old] = runs.codes
    larger.facts[:old] = runs.facts
    larger.key[:old] = runs.key
    larger.entry[:old] = runs.entry
    for slot in range(old, size):
        larger.facts[slot, NEXT] = slot + 1 if slot + 1 < size else state[FREE]
    state[FREE] = old
    return larger


@numba.njit(types.int64(types.int64, types.int64), cache=True)
def added(one: int, other: int) -> int:
    """The sum, or COUNTLESS where it does not fit."""
    return COUNTLESS if one > COUNTLESS - other else one + other


@numba.njit(types.int64(INT64_ROWS, types.int64, types.int64), cache=True)
def paths(tallies: Rows, block: int, horizon: int) -> int:
    """How many paths of a block began at the horizon or later; one if they are not counted."""
    if len(tallies) == 0:
        return 1
    total = 0
    while tallies[block, BEGINNING] >= horizon:
        total = added(total, tallies[block, PATHS])
        block += 1
    return total


@numba.njit(types.void(RUNS, BOOKS, types.int64, types.int64), cache=True)
def release(runs: Runs, books: Books, slot: int, horizon: int) -> None:
    """Gives a slot back. Runs that began before the horizon were taken off the count when it passed them."""
    began = runs.facts[slot, BEGAN]
    if began >= horizon:
        books.began[began] -= 1
        books.state[ALIVE] -= 1
    runs.entry[slot] = -1
    runs.facts[slot, NEXT] = books.state[FREE]
    books.state[FREE] = slot
    books.state[SLOTS_USED] -= 1


@numba.njit(
    types.void(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        ABSENT,
        RUNS,
        BOOKS,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
        types.int64,
    ),
    cache=True,
)
def spawn(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    runs: Runs,
    books: Books,
    parent: int,
    place: int,
    event: int,
    begins: bool,
    horizon: int,
) -> None:
    """The run that `parent` becomes by selecting an event for a place, and the match if it is complete by that."""
    state, entries = books.state, books.entries
    entry = state[ENTRIES]
    began = event if place == 0 and begins else runs.facts[parent, BEGAN]
    entries[entry, EVENT], entries[entry, LEFT] = event, runs.entry[parent]
    entries[entry, RIGHT], entries[entry, LATEST] = place, began
    final = place == program.places - 1
    single = program.kleene[place] == 0
    slot = parent
    if not (final and single):
        slot = state[FREE]
        state[FREE] = runs.facts[slot, NEXT]
        runs.at[slot] = runs.at[parent]
        runs.counted[slot] = runs.counted[parent]
        runs.running[slot] = runs.running[parent]
        runs.facts[slot] = runs.facts[parent]
        for row in range(runs.codes.shape[1]):
            own = runs.codes[parent, row]
            runs.codes[slot, row] = events.compared[row, event] if own == WILD else own
    at, counted, running = runs.at[slot], runs.counted[slot], runs.running[slot]
    codes = runs.codes[slot]
    if final and single and runs.codes.shape[1] > 0 and program.negatives > 0:
        codes = codes.copy()
        for row in range(len(codes)):
            codes[row] = events.compared[row, event] if codes[row] == WILD else codes[row]
    at[program.last[place]] = event
    if begins:
        at[program.first[place]] = event
        if place == 0 and len(books.tallies) > 0:
            runs.facts[slot, TALLY] = state[TALLIES]
            books.tallies[state[TALLIES], BEGINNING] = event
            books.tallies[state[TALLIES], PATHS] = 1
            books.tallies[state[TALLIES] + 1, BEGINNING] = END
            state[TALLIES] += 2
    if not single:
        absorb(program, columns, place, event, begins, counted, running, 0, 0)
    viable = True
    if begins and program.negatives > 0:
        for negation in range(program.negatives):
            if program.neg_place[negation] == place and negated(
                events,
                program,
                columns,
                predicate,
                absent,
                negation,
                3 * program.places + negation,
                at,
                counted,
                running,
                codes,
                entries,
                entry,
            ):
                viable = False
                break
    closed = viable and (
        single or holds(program, columns, predicate, 3 * place + CLOSE, at, counted, running, entries, entry)
    )
    kept = viable and not (final and single)
    if final and closed:
        if stands(events, program, columns, predicate, absent, at, counted, running, codes, entries, entry):
            known = events.due[began] if program.postponed else events.time[event]
            if state[AFTER] < known <= state[UNTIL]:
                row = state[ACCEPTED]
                books.accepted[row, ENTRY] = entry
                books.accepted[row, EARLIEST] = horizon
                books.accepted[row, MATCHES] = paths(books.tallies, runs.facts[slot, TALLY], horizon)
                books.accepted[row, KNOWN] = known
                state[ACCEPTED] = row + 1
                state[ENTRIES] = entry + 1
        else:
            viable = False
    if not viable:
        state[KILLED] += 1
    if kept:
        state[ENTRIES] = entry + 1
        runs.entry[slot] = entry
        runs.facts[slot, PLACE] = place
        runs.facts[slot, BEGAN] = began
        runs.facts[slot, CLOSED] = 1 if closed else 0
        runs.facts[slot, NEXT] = state[FRESH]
        state[FRESH] = slot
        state[SLOTS_USED] += 1
        state[ALIVE] += 1
        books.began[began] += 1
    elif slot != parent:
        runs.facts[slot, NEXT] = state[FREE]
        state[FREE] = slot


@numba.njit(
    types.boolean(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        ABSENT,
        RUNS,
        BOOKS,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def advance(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    runs: Runs,
    books: Books,
    slot: int,
    low: int,
    high: int,
    horizon: int,
) -> bool:
    """Shows a run the events of one instant, low : high; says whether the run itself lives on.

    What it becomes by selecting one of them is put on the list of fresh runs. Concurrent events each continue the run
    in a branch of their own, and the strategy is judged for the instant as a whole.
    """
    place = runs.facts[slot, PLACE]
    if program.strategy == CONTIGUOUS:
        chance = events.chance[runs.at[slot, program.last[place]]]
        if chance != events.instant[low]:
            return bool(chance > events.instant[low])
    at, counted, running, codes = runs.at[slot], runs.counted[slot], runs.running[slot], runs.codes[slot]
    entries, entry = books.entries, runs.entry[slot]
    following = place + 1
    may_take = program.kleene[place] == 1
    may_begin = following < program.places and runs.facts[slot, CLOSED] == 1
    taken = begun = over = False
    for event in range(low, high):
        takes = may_take and events.mask[event] & (1 << place) != 0
        begins = may_begin and events.mask[event] & (1 << following) != 0
        if not (takes or begins) or not agrees(events.compared, codes, event):
            continue
        if not events.ordered and not in_window(events, program, runs.facts[slot, BEGAN], event):
            over = over or same_partition(events.compared, codes, event)
            continue
        if takes:
            books.state[EVALUATED] += 1
            at[program.current[place]] = event
            at[program.previous[place]] = at[program.last[place]]
            if holds(program, columns, predicate, 3 * place + TAKE, at, counted, running, entries, entry):
                taken = True
                spawn(events, program, columns, predicate, absent, runs, books, slot, place, event, False, horizon)
        if begins:
            books.state[EVALUATED] += 1
            at[program.first[following]] = event
            at[program.last[following]] = event
            at[program.current[following]] = event
            if holds(program, columns, predicate, 3 * following + BEGIN, at, counted, running, entries, entry):
                begun = True
                spawn(events, program, columns, predicate, absent, runs, books, slot, following, event, True, horizon)
    if over or program.strategy == CONTIGUOUS:
        return False
    return program.strategy != SKIP_NEXT or not (taken if may_take else begun)


@numba.njit(types.void(EVENTS, PROGRAM, COLUMNS, FUNCTION, ABSENT, RUNS, BOOKS, types.int64, types.int64), cache=True)
def begin_run(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    absent: Absent,
    runs: Runs,
    books: Books,
    event: int,
    horizon: int,
) -> None:
    """A new run, if the event can be the first of the pattern."""
    at, counted, running = runs.at[BLANK], runs.counted[BLANK], runs.running[BLANK]
    at[program.first[0]] = event
    at[program.last[0]] = event
    at[program.current[0]] = event
    books.state[EVALUATED] += 1
    if holds(program, columns, predicate, BEGIN, at, counted, running, books.entries, -1):
        spawn(events, program, columns, predicate, absent, runs, books, BLANK, 0, event, True, horizon)
