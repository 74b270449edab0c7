"""The run kernel (SASE+ section 5.2): all runs of a partition side by side, one instant after the other."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba import types

from cepheid.engine.columns import COLUMNS, INT64_ROWS, INT64S, Columns
from cepheid.engine.matches import Int64s
from cepheid.engine.runs.buffer import EVENT, MATCHES, Rows, collect, larger
from cepheid.engine.runs.conditions import ABSENT, EVENTS, FUNCTION, Absent, Events, in_window
from cepheid.engine.runs.enumerate import CUT, WRITTEN, Written, write_matches
from cepheid.engine.runs.merging import collect_tallies, enlist, equivalent, make_key, merge, strike
from cepheid.engine.runs.moves import (
    ACCEPTED,
    AFTER,
    ALIVE,
    BEGAN,
    BOOKS,
    BUFFERED,
    ENTRIES,
    FRESH,
    NEXT,
    OVERFLOW,
    PEAK_BUFFERED,
    PEAK_RUNS,
    PLACE,
    RUNS,
    SLOTS_USED,
    STATE,
    TALLIES,
    TOTAL,
    UNTIL,
    WIDTHS,
    Books,
    Runs,
    Widths,
    added,
    advance,
    begin_run,
    more_runs,
    new_runs,
    release,
)
from cepheid.engine.runs.program import CONTIGUOUS, PROGRAM, Program
from cepheid.engine.sequence import TIME_WINDOW

VERBOSE, COMPRESSED, COUNTING = range(3)  # write matches down, keep them in the buffer, only count them
NOTHING_REACHED, RUNS_REACHED, MATCHES_REACHED = range(3)
OFTEN = 1024  # how many accepting entries are gathered before they are written down
NO_LIMIT = np.iinfo(np.int64).max
FEW = 1024  # runs; below this, those that are over may wait until someone comes by


@numba.njit(ABSENT(EVENTS, PROGRAM, types.int64), cache=True)
def absent_events(events: Events, program: Program, part: int) -> Absent:
    """The events of a partition that could fill negated components."""
    size = events.starts[part + 1] - events.starts[part] if program.negatives > 0 else 0
    absent = Absent(np.empty((program.negatives, size), np.int64), np.zeros(program.negatives, np.int64))
    for negation in range(program.negatives):
        bit = 1 << (program.places + negation)
        for event in range(events.starts[part], events.starts[part + 1]):
            if events.mask[event] & bit != 0:
                absent.stacks[negation, absent.sizes[negation]] = event
                absent.sizes[negation] += 1
    return absent


@numba.njit(types.boolean(EVENTS, PROGRAM, INT64S, types.int64), cache=True)
def may_start(events: Events, program: Program, state: Int64s, event: int) -> bool:
    """Could a match that starts here be known in the interval that is asked for?"""
    if events.mask[event] & 1 == 0:
        return False
    if program.postponed:
        return bool(state[AFTER] < events.due[event] <= state[UNTIL])
    if program.window_kind == TIME_WINDOW:
        return bool(events.time[event] + (program.window - 1) > state[AFTER])
    return True


@numba.njit(BOOKS(types.int64, types.int64, types.int64, types.boolean), cache=True)
def new_books(events: int, after: int, until: int, counted: bool) -> Books:
    """Empty books."""
    state = np.zeros(STATE, np.int64)
    state[AFTER], state[UNTIL], state[FRESH] = after, until, -1
    return Books(
        np.empty((1024, 4), np.int64),
        np.empty((1024, 4), np.int64),
        np.empty((1024 if counted else 0, 2), np.int64),
        state,
        np.zeros(events, np.int64),
        np.zeros(events, np.int64),
    )


@numba.njit(WRITTEN(BOOKS, WRITTEN, types.int64, types.int64), cache=True)
def drain(books: Books, written: Written, mode: int, limit: int) -> Written:
    """Deals with what was accepted: writes it down, or counts it; in compressed mode it stays where it is."""
    state = books.state
    if mode == VERBOSE:
        written = write_matches(written, books.entries, books.accepted, 0, state[ACCEPTED], limit)
        if written.filled[CUT] == 1:
            state[OVERFLOW] = MATCHES_REACHED
    elif mode == COUNTING:
        for row in range(state[ACCEPTED]):
            state[TOTAL] = added(state[TOTAL], books.accepted[row, MATCHES])
    if mode != COMPRESSED:
        state[ACCEPTED] = 0
    return written


@numba.njit(types.Tuple((RUNS, BOOKS))(RUNS, BOOKS, types.int64, types.int64, types.int64, types.int64), cache=True)
def with_room(
    runs: Runs, books: Books, horizon: int, moves: int, beginnings: int, most_entries: int
) -> tuple[Runs, Books]:
    """Room for some more moves and some more beginnings: what nobody needs goes, and if that is too little, it grows.

    The buffer holds at most about `most_entries`: in compressed mode it is the result, and no number of runs or matches
    bounds it.
    """
    entries, accepted, tallies, state, began, used = books
    if len(runs.entry) - state[SLOTS_USED] < moves:
        runs = more_runs(runs, moves, state)
    if len(accepted) - state[ACCEPTED] < moves:
        accepted = larger(accepted, state[ACCEPTED] + moves)
    if len(entries) - state[ENTRIES] < moves:
        state[ENTRIES] = collect(entries, state[ENTRIES], runs.entry, accepted, state[ACCEPTED], horizon)
        if state[ENTRIES] > most_entries:
            state[OVERFLOW] = RUNS_REACHED
        if len(entries) < 2 * (state[ENTRIES] + moves):
            entries = larger(entries, 2 * (state[ENTRIES] + moves))
    if 0 < len(tallies) < state[TALLIES] + 2 * beginnings + 2:
        collect_tallies(tallies, runs, horizon, state)
        if len(tallies) < 2 * (state[TALLIES] + 2 * beginnings + 2):
            tallies = larger(tallies, 2 * (state[TALLIES] + 2 * beginnings + 2))
    return runs, Books(entries, accepted, tallies, state, began, used)


@numba.njit(types.boolean(RUNS, BOOKS, types.int64, types.int64), cache=True)
def cramped(runs: Runs, books: Books, moves: int, beginnings: int) -> bool:
    """Is there too little room for some more moves?"""
    state = books.state
    return bool(
        len(runs.entry) - state[SLOTS_USED] < moves
        or len(books.accepted) - state[ACCEPTED] < moves
        or len(books.entries) - state[ENTRIES] < moves
        or 0 < len(books.tallies) < state[TALLIES] + 2 * beginnings + 2
    )


@numba.njit(types.void(RUNS, BOOKS, INT64S, INT64S, INT64S, PROGRAM, types.int64, types.int64, types.int64), cache=True)
def unlink(
    runs: Runs,
    books: Books,
    heads: Int64s,
    tails: Int64s,
    chains: Int64s,
    program: Program,
    previous: int,
    slot: int,
    horizon: int,
) -> None:
    """Ends a run: takes it off its list, behind `previous`, and gives its slot back."""
    place = runs.facts[slot, PLACE]
    following = runs.facts[slot, NEXT]
    if previous < 0:
        heads[place] = following
    else:
        runs.facts[previous, NEXT] = following
    if following < 0:
        tails[place] = previous
    if len(chains) > 0 and program.mergeable[place] == 1:
        strike(runs, chains, slot)
    release(runs, books, slot, horizon)


@numba.njit(types.void(RUNS, BOOKS, INT64S, INT64S, INT64S, PROGRAM, types.int64), cache=True)
def purge(
    runs: Runs, books: Books, heads: Int64s, tails: Int64s, chains: Int64s, program: Program, horizon: int
) -> None:
    """Takes the runs off their lists that began before the horizon."""
    for place in range(program.places):
        previous = -1
        slot = heads[place]
        while slot >= 0:
            following = runs.facts[slot, NEXT]
            if runs.facts[slot, BEGAN] < horizon:
                unlink(runs, books, heads, tails, chains, program, previous, slot, horizon)
            else:
                previous = slot
            slot = following


@numba.njit(INT64S(RUNS, INT64S, PROGRAM), cache=True)
def longer_chains(runs: Runs, heads: Int64s, program: Program) -> Int64s:
    """Hash chains for a larger pool of runs."""
    size = 1024
    while size < len(runs.entry):
        size *= 2
    chains = np.full(size, -1, np.int64)
    for place in range(program.places):
        if program.mergeable[place] == 1:
            slot = heads[place]
            while slot >= 0:
                enlist(runs, chains, slot)
                slot = runs.facts[slot, NEXT]
    return chains


@numba.njit(
    types.Tuple((WRITTEN, INT64_ROWS, INT64_ROWS, INT64S))(
        EVENTS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        WIDTHS,
        WRITTEN,
        types.int64,
        types.boolean,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def scan(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: Any,
    widths: Widths,
    written: Written,
    mode: int,
    merging: bool,
    after: int,
    until: int,
    most_runs: int,
    most_matches: int,
) -> tuple[Written, Rows, Rows, Int64s]:
    """Every run of every partition: the matches written down, the buffer, its accepting entries, and counters."""
    books = new_books(len(events.time), after, until, merging and mode != VERBOSE)
    state = books.state
    runs = new_runs(256, widths, state)
    heads = np.full(program.places, -1, np.int64)  # for each place, the list of runs that have filled it
    tails = np.full(program.places, -1, np.int64)
    chains = longer_chains(runs, heads, program) if merging else np.empty(0, np.int64)
    crowded = FEW
    most_entries = most_runs if mode == COMPRESSED else NO_LIMIT
    for part in range(len(events.starts) - 1):
        low, end = events.starts[part], events.starts[part + 1]
        absent = absent_events(events, program, part)
        horizon = low
        while low < end and state[OVERFLOW] == NOTHING_REACHED:
            high = low + 1
            bits = events.mask[low]
            while high < end and events.instant[high] == events.instant[low]:
                bits |= events.mask[high]
                high += 1
            if not program.postponed and events.time[low] > until:
                break
            if events.ordered:
                while horizon < low and not in_window(events, program, horizon, low):
                    state[ALIVE] -= books.began[horizon]
                    state[BUFFERED] -= books.used[horizon]
                    books.began[horizon] = 0
                    horizon += 1
            if state[SLOTS_USED] > crowded:
                purge(runs, books, heads, tails, chains, program, horizon)
                crowded = max(FEW, 2 * state[SLOTS_USED])
            moves = 2 * (high - low) + 1
            beginnings = high - horizon
            for place in range(program.places):
                # Only contiguity looks at runs that no event of this instant can move.
                takes = program.kleene[place] == 1 and bits & (1 << place) != 0
                begins = place + 1 < program.places and bits & (2 << place) != 0
                if not takes and not begins and program.strategy != CONTIGUOUS:
                    continue
                previous = -1
                slot = heads[place]
                while slot >= 0:
                    following = runs.facts[slot, NEXT]
                    lives = runs.facts[slot, BEGAN] >= horizon
                    if lives:
                        if cramped(runs, books, moves, beginnings):
                            written = drain(books, written, mode, most_matches)
                            runs, books = with_room(runs, books, horizon, moves, beginnings, most_entries)
                        lives = advance(
                            events, program, columns, predicate, absent, runs, books, slot, low, high, horizon
                        )
                    if lives:
                        previous = slot
                    else:
                        unlink(runs, books, heads, tails, chains, program, previous, slot, horizon)
                    if state[ALIVE] > most_runs:
                        state[OVERFLOW] = RUNS_REACHED
                        break
                    slot = following
            if bits & 1 != 0:
                if cramped(runs, books, moves, beginnings):
                    written = drain(books, written, mode, most_matches)
                    runs, books = with_room(runs, books, horizon, moves, beginnings, most_entries)
                for event in range(low, high):
                    if may_start(events, program, state, event):
                        begin_run(events, program, columns, predicate, absent, runs, books, event, horizon)
            # Fresh runs join the others only now: concurrent events do not follow each other.
            if merging and len(chains) < len(runs.entry):
                chains = longer_chains(runs, heads, program)
            slot = state[FRESH]
            state[FRESH] = -1
            while slot >= 0:
                following = runs.facts[slot, NEXT]
                place = runs.facts[slot, PLACE]
                selected = books.entries[runs.entry[slot], EVENT]
                state[BUFFERED] += 1 - books.used[selected]
                books.used[selected] = 1
                equal = -1
                if merging and program.mergeable[place] == 1:
                    make_key(events, program, columns, runs, slot)
                    equal = equivalent(runs, chains, slot)
                    if equal < 0:
                        enlist(runs, chains, slot)
                    else:
                        if cramped(runs, books, 1, beginnings):
                            written = drain(books, written, mode, most_matches)
                            runs, books = with_room(runs, books, horizon, 1, beginnings, most_entries)
                        merge(runs, books, slot, equal, horizon)
                if equal < 0:
                    runs.facts[slot, NEXT] = -1
                    if tails[place] < 0:
                        heads[place] = slot
                    else:
                        runs.facts[tails[place], NEXT] = slot
                    tails[place] = slot
                slot = following
            state[PEAK_RUNS] = max(state[PEAK_RUNS], state[ALIVE])
            state[PEAK_BUFFERED] = max(state[PEAK_BUFFERED], state[BUFFERED])
            if state[ALIVE] > most_runs:
                state[OVERFLOW] = RUNS_REACHED
            if state[ACCEPTED] >= OFTEN and mode != COMPRESSED:
                written = drain(books, written, mode, most_matches)
            low = high
        written = drain(books, written, mode, most_matches)
        for event in range(horizon, end):
            state[BUFFERED] -= books.used[event]
        purge(runs, books, heads, tails, chains, program, 2**62)
        state[ALIVE] = 0
        if mode != COMPRESSED:
            state[ENTRIES] = 0
        state[TALLIES] = 0
        if state[OVERFLOW] != NOTHING_REACHED:
            break
    return written, books.entries, books.accepted, state
