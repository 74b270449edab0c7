"""The run kernel (SASE+ section 5.2): all runs of a partition side by side, one instant after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, TIME, Events
from cepheid.engine.kernels.compile import (
    borrowing,
    borrowing_by_address,
    called_by_address,
    inlined,
    kernel,
    search_kernel,
)
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.query import Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.windows import in_window
from cepheid.engine.program.graph import (
    BEGINNING,
    EDGES_FROM,
    EDGES_TO,
    FINAL,
    HURRIED,
    LEADS_TO,
    TAKING,
    Graph,
)
from cepheid.engine.program.tables import MERGEABLE, Program
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, KNOWN, LATEST, MATCHES, collect, larger
from cepheid.engine.search.runs.by_value import (
    ByValue,
    Waits,
    more_by_value,
    new_by_value,
    runs_to_visit,
    wait_for_values,
    wait_no_more,
)
from cepheid.engine.search.runs.enumerate import CUT, Listed, list_matches
from cepheid.engine.search.runs.merging import collect_tallies, enlist, equivalent, make_key, merge, strike
from cepheid.engine.search.runs.moves import (
    ACCEPTED,
    AFTER,
    ALIVE,
    BEGAN,
    BEGUN_HERE,
    BLANK,
    BUFFERED,
    ENTRIES,
    FRESH,
    NEXT,
    OVERFLOW,
    PEAK_BUFFERED,
    PEAK_RUNS,
    PREVIOUS,
    REACHED,
    SLOTS_USED,
    STATE,
    TALLIES,
    TOTAL,
    UNTIL,
    USED,
    RunPool,
    Runs,
    Widths,
    added,
    advance,
    more_runs,
    new_runs,
    release,
)

VERBOSE, COMPRESSED, COUNTING = range(3)  # write matches down, keep them in the buffer, only count them
NOTHING_REACHED, RUNS_REACHED, MATCHES_REACHED = range(3)
OFTEN = 1024  # how many accepting entries are gathered before they are written down
NO_LIMIT = np.iinfo(np.int64).max
AFTER_ALL = 2**62  # a horizon past every event
FEW = 1024  # runs; below this, those that are over may wait until someone comes by


@kernel
def new_books(events: int, widths: Widths, after: int, until: int, counted: bool) -> RunPool:
    """Empty books."""
    state = np.zeros(STATE, np.int64)
    state[AFTER], state[UNTIL], state[FRESH] = after, until, -1
    return RunPool(
        np.empty((1024, 4), np.int64),
        np.empty((1024, 4), np.int64),
        np.empty((1024 if counted else 0, 2), np.int64),
        np.zeros((events, 2), np.int64),
        state,
        new_scratch(widths.slots, widths.whole, widths.number, widths.codes),
    )


@called_by_address
def drain(run_pool: RunPool, listed: Listed, mode: int, limit: int) -> Listed:
    """Deals with what was accepted: writes it down, or counts it; in compressed mode it stays where it is."""
    state = run_pool.state
    if mode == VERBOSE:
        listed = list_matches(listed, run_pool.entries, run_pool.accepted, state[ACCEPTED], limit)
        if listed.filled[CUT] == 1:
            state[OVERFLOW] = MATCHES_REACHED
    elif mode == COUNTING:
        for row in range(state[ACCEPTED]):
            state[TOTAL] = added(state[TOTAL], run_pool.accepted[row, MATCHES])
    if mode != COMPRESSED:
        state[ACCEPTED] = 0
    return listed


@called_by_address
def with_room(
    runs: Runs, run_pool: RunPool, horizon: int, moves: int, beginnings: int, most_entries: int
) -> tuple[Runs, RunPool]:
    """Room for some more moves and some more beginnings: what nobody needs goes, and if that is too little, it grows.

    The buffer holds at most about `most_entries`: in compressed mode it is the result, and no number of runs or matches
    bounds it.
    """
    entries, accepted, tallies, marks, state, scratch = run_pool
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
    return runs, RunPool(entries, accepted, tallies, marks, state, scratch)


@borrowing
def cramped(runs: Runs, run_pool: RunPool, moves: int, beginnings: int) -> bool:
    """Is there too little room for some more moves?"""
    state = run_pool.state
    return bool(
        len(runs.entry) - state[SLOTS_USED] < moves
        or len(run_pool.accepted) - state[ACCEPTED] < moves
        or len(run_pool.entries) - state[ENTRIES] < moves
        or 0 < len(run_pool.tallies) < state[TALLIES] + 2 * beginnings + 2
    )


class Lists(NamedTuple):
    """Which runs wait where."""

    ends: Int64Rows  # for each state, the first and the last run of those that have reached it
    chains: Int64s  # for each hash, the first run that has it; empty if runs are not merged
    by_value: ByValue  # runs by the values of the events that they wait for


HEAD, TAIL = range(2)


@borrowing
def unlink(runs: Runs, run_pool: RunPool, lists: Lists, program: Program, slot: int, horizon: int) -> None:
    """Ends a run: takes it off its list and gives its slot back."""
    place = runs.rows[slot, REACHED]
    previous, following = runs.rows[slot, PREVIOUS], runs.rows[slot, NEXT]
    if previous < 0:
        lists.ends[place, HEAD] = following
    else:
        runs.rows[previous, NEXT] = following
    if following < 0:
        lists.ends[place, TAIL] = previous
    else:
        runs.rows[following, PREVIOUS] = previous
    if len(lists.by_value.waits) > 0:
        wait_no_more(lists.by_value, slot)
    if len(lists.chains) > 0 and program.place[place, MERGEABLE] == 1:
        strike(runs, lists.chains, slot)
    release(runs, run_pool, slot, horizon)


@borrowing
def purge(runs: Runs, run_pool: RunPool, lists: Lists, program: Program, horizon: int) -> None:
    """Takes the runs off their lists that began before the horizon."""
    for place in range(len(lists.ends)):
        slot = lists.ends[place, HEAD]
        while slot >= 0:
            following = runs.rows[slot, NEXT]
            if runs.rows[slot, BEGAN] < horizon:
                unlink(runs, run_pool, lists, program, slot, horizon)
            slot = following


@borrowing
def settle(query: Query, runs: Runs, run_pool: RunPool, lists: Lists, slot: int, horizon: int) -> None:
    """Puts a fresh run on the list of its place, or merges it with an equivalent one that is there."""
    program = query.program
    place = runs.rows[slot, REACHED]
    selected = run_pool.entries[runs.entry[slot], EVENT]
    run_pool.state[BUFFERED] += 1 - run_pool.marks[selected, USED]
    run_pool.marks[selected, USED] = 1
    if len(lists.chains) > 0 and program.place[place, MERGEABLE] == 1:
        make_key(query.events, program, query.columns, runs, slot)
        equal = equivalent(runs, lists.chains, slot)
        if equal >= 0:
            merge(runs, run_pool, slot, equal, horizon)
            return
        enlist(runs, lists.chains, slot)
    if len(lists.by_value.waits) > 0:
        wait_for_values(lists.by_value, runs, place, slot)
    last = lists.ends[place, TAIL]
    runs.rows[slot, NEXT], runs.rows[slot, PREVIOUS] = -1, last
    if last < 0:
        lists.ends[place, HEAD] = slot
    else:
        runs.rows[last, NEXT] = slot
    lists.ends[place, TAIL] = slot


@kernel
def with_chains(runs: Runs, lists: Lists, program: Program) -> Lists:
    """The same lists with hash chains for a larger pool of runs."""
    size = 1024
    while size < len(runs.entry):
        size *= 2
    chains = np.full(size, -1, np.int64)
    for place in range(len(lists.ends)):
        if program.place[place, MERGEABLE] == 1:
            slot = lists.ends[place, HEAD]
            while slot >= 0:
                enlist(runs, chains, slot)
                slot = runs.rows[slot, NEXT]
    return Lists(lists.ends, chains, lists.by_value)


@borrowing
def end_overlapping(
    events: Events, program: Program, runs: Runs, run_pool: RunPool, lists: Lists, before: int, horizon: int
) -> None:
    """NON-OVERLAP: of the matches that end now, those that began latest stand; all runs overlap them, and end.

    `before` is how many matches were accepted before this instant. Several may stand, if events are concurrent: which
    of them is reported is not for the kernel to say.
    """
    state, accepted, entries = run_pool.state, run_pool.accepted, run_pool.entries
    latest = -1
    for row in range(before, state[ACCEPTED]):
        latest = max(latest, entries[accepted[row, ENTRY], LATEST])
    first = latest
    while first > horizon and events.facts[INSTANT, first - 1] == events.facts[INSTANT, latest]:
        first -= 1
    kept = before
    for row in range(before, state[ACCEPTED]):
        if entries[accepted[row, ENTRY], LATEST] >= first:
            accepted[kept, ENTRY], accepted[kept, EARLIEST] = accepted[row, ENTRY], first
            accepted[kept, MATCHES], accepted[kept, KNOWN] = accepted[row, MATCHES], accepted[row, KNOWN]
            kept += 1
    state[ACCEPTED] = kept
    for place in range(len(lists.ends)):
        while lists.ends[place, HEAD] >= 0:
            unlink(runs, run_pool, lists, program, lists.ends[place, HEAD], horizon)


# How far the scan of a partition has come, so that it can stop for more room and go on; SEPARATE: are only matches
# wanted that do not overlap, and how many were accepted (less one) before the instant at hand. AT_VISIT: how many of
# the runs that were found by value are left; -1: all runs of the state are looked at, and AT_SLOT is the next one.
# Then where the partition ends, and how many runs and accepted matches there may be.
LOW, HORIZON, STAGE, AT_STATE, AT_VISIT, AT_SLOT, MOVES, BEGINNINGS, CROWDED, SEPARATE = range(10)
END, MOST_RUNS, MOST_ACCEPTED = range(10, 13)
CURSOR = 13
OPENING, ADVANCING, SETTLING = range(3)  # stages of an instant
FINISHED, NEEDS_ROOM = range(2)


@inlined
def expire(query: Query, run_pool: RunPool, horizon: int, event: int) -> int:
    """Moves the horizon past the events that no window holds together with this one: what began there is over."""
    while horizon < event and not in_window(query.events, query.program, horizon, event):
        run_pool.state[ALIVE] -= run_pool.marks[horizon, BEGUN_HERE]
        run_pool.state[BUFFERED] -= run_pool.marks[horizon, USED]
        run_pool.marks[horizon, BEGUN_HERE] = 0
        horizon += 1
    return horizon


@inlined
def close_instant(
    query: Query, runs: Runs, run_pool: RunPool, lists: Lists, separate: int, horizon: int, most_runs: int
) -> None:
    """What is left to do when all runs have seen the events of an instant."""
    state = run_pool.state
    if 0 < separate <= state[ACCEPTED]:
        end_overlapping(query.events, query.program, runs, run_pool, lists, separate - 1, horizon)
    state[PEAK_RUNS] = max(state[PEAK_RUNS], state[ALIVE])
    state[PEAK_BUFFERED] = max(state[PEAK_BUFFERED], state[BUFFERED])
    if state[ALIVE] > most_runs or stop_flag() != 0:
        state[OVERFLOW] = RUNS_REACHED


@inlined
def open_instant(query: Query, runs: Runs, run_pool: RunPool, lists: Lists, cursor: Int64s, low: int) -> None:
    """What there is to do before runs see the events of an instant."""
    if query.events.ordered:
        cursor[HORIZON] = expire(query, run_pool, cursor[HORIZON], low)
    if run_pool.state[SLOTS_USED] > cursor[CROWDED]:
        purge(runs, run_pool, lists, query.program, cursor[HORIZON])
        cursor[CROWDED] = max(FEW, 2 * run_pool.state[SLOTS_USED])
    cursor[AT_STATE], cursor[AT_VISIT], cursor[AT_SLOT] = -1, -1, BLANK
    cursor[STAGE] = ADVANCING
    if cursor[SEPARATE] > 0:
        cursor[SEPARATE] = run_pool.state[ACCEPTED] + 1


@inlined
def show_instant(
    query: Query, graph: Graph, runs: Runs, run_pool: RunPool, lists: Lists, cursor: Int64s, high: int
) -> bool:
    """Shows the runs of every state the events of an instant, up to `high`; False if there is no room to go on."""
    events, low, horizon, state = query.events, cursor[LOW], cursor[HORIZON], run_pool.state
    reached, visit, slot = cursor[AT_STATE], cursor[AT_VISIT], cursor[AT_SLOT]
    bits, firsts = events.facts[MASK, low], events.facts[BEGINS, low]
    for event in range(low + 1, high):
        bits |= events.facts[MASK, event]
        firsts |= events.facts[BEGINS, event]
    room = True
    while room and reached < len(lists.ends):
        # Only contiguity looks at runs that no event of this instant can move.
        wanted = (bits & graph.states[reached, TAKING]) | (firsts & graph.states[reached, BEGINNING]) != 0
        wanted = wanted or graph.states[reached, HURRIED] == 1
        while slot >= 0 and wanted:
            following = runs.rows[slot, NEXT]
            lives = slot == BLANK or runs.rows[slot, BEGAN] >= horizon
            if lives:
                room = not cramped(runs, run_pool, cursor[MOVES], cursor[BEGINNINGS])
                if not room:
                    break
                lives = advance(query, graph, runs, run_pool, slot, low, high, horizon)
            if not lives:
                unlink(runs, run_pool, lists, query.program, slot, horizon)
            if visit >= 0:
                visit -= 1
                following = lists.by_value.visits[visit - 1] if visit > 0 else -1
            slot = following
            if state[ALIVE] > cursor[MOST_RUNS] or stop_flag() != 0:
                state[OVERFLOW] = RUNS_REACHED
                return True
        if not room:
            break
        reached += 1
        if reached < len(lists.ends):
            visit, slot = -1, lists.ends[reached, HEAD]
            if len(lists.by_value.waits) > 0 and slot >= 0:
                visit = runs_to_visit(events, lists.by_value, reached, low, high)
                if visit >= 0:
                    slot = lists.by_value.visits[visit - 1] if visit > 0 else -1
    cursor[AT_STATE], cursor[AT_VISIT], cursor[AT_SLOT] = reached, visit, slot
    return room


@inlined
def settle_fresh(query: Query, runs: Runs, run_pool: RunPool, lists: Lists, cursor: Int64s) -> bool:
    """Fresh runs join the others only now: concurrent events do not follow each other. False: there is no room."""
    state = run_pool.state
    while state[FRESH] >= 0:
        fresh = state[FRESH]
        if len(lists.chains) > 0 and cramped(runs, run_pool, 1, cursor[BEGINNINGS]):
            return False
        state[FRESH] = runs.rows[fresh, NEXT]
        settle(query, runs, run_pool, lists, fresh, cursor[HORIZON])
    return True


@borrowing_by_address
def follow(query: Query, graph: Graph, runs: Runs, run_pool: RunPool, lists: Lists, cursor: Int64s) -> int:
    """Shows the runs of a partition one instant after the other, as far as there is room for what they become."""
    events, program, state, end = query.events, query.program, run_pool.state, cursor[END]
    while cursor[LOW] < end and state[OVERFLOW] == NOTHING_REACHED:
        low = cursor[LOW]
        high = low + 1
        while high < end and events.facts[INSTANT, high] == events.facts[INSTANT, low]:
            high += 1
        if cursor[STAGE] == OPENING:
            if not program.postponed and events.facts[TIME, low] > state[UNTIL]:
                break
            open_instant(query, runs, run_pool, lists, cursor, low)
        cursor[MOVES], cursor[BEGINNINGS] = graph.widest * (high - low) + 1, high - cursor[HORIZON]
        if cursor[STAGE] == ADVANCING:
            if not show_instant(query, graph, runs, run_pool, lists, cursor, high):
                return NEEDS_ROOM
            cursor[STAGE] = SETTLING
        if state[OVERFLOW] != NOTHING_REACHED:
            break
        if not settle_fresh(query, runs, run_pool, lists, cursor):
            return NEEDS_ROOM
        close_instant(query, runs, run_pool, lists, cursor[SEPARATE], cursor[HORIZON], cursor[MOST_RUNS])
        cursor[STAGE], cursor[LOW] = OPENING, high
        if state[ACCEPTED] >= cursor[MOST_ACCEPTED]:
            return NEEDS_ROOM
    return FINISHED


class Machine(NamedTuple):
    """A query's conditions and tables, and its states."""

    program: Program
    graph: Graph


class SearchRequest(NamedTuple):
    """What is asked of the run kernels: which matches, in which form, and the limits of the search."""

    mode: int
    merging: bool
    non_overlapping: bool
    after: int
    until: int
    most_runs: int
    most_matches: int


class Progress(NamedTuple):
    """The runs of a partition, how they are found, and the matches that were written down."""

    runs: Runs
    run_pool: RunPool
    lists: Lists
    listed: Listed


@kernel
def follow_all(query: Query, graph: Graph, progress: Progress, cursor: Int64s, asked: SearchRequest) -> Progress:
    """Shows the runs of a partition its events up to the end that the cursor says, making room where it is needed."""
    runs, run_pool, lists, listed = progress
    state, waits, merging = run_pool.state, len(lists.by_value.waits) > 0, len(lists.chains) > 0
    most_entries = asked.most_runs if asked.mode == COMPRESSED else NO_LIMIT
    needs = NEEDS_ROOM
    while needs == NEEDS_ROOM and state[OVERFLOW] == NOTHING_REACHED:
        needs = follow(query, graph, runs, run_pool, lists, cursor)
        if needs == FINISHED or cursor[STAGE] == OPENING or cursor[SEPARATE] == 0:  # else they still compete
            listed = drain(run_pool, listed, asked.mode, asked.most_matches)
        if needs == NEEDS_ROOM:
            runs, run_pool = with_room(runs, run_pool, cursor[HORIZON], cursor[MOVES], cursor[BEGINNINGS], most_entries)
            if waits and len(lists.by_value.visits) < len(runs.entry):
                lists = Lists(lists.ends, lists.chains, more_by_value(lists.by_value, len(runs.entry)))
            if merging and len(lists.chains) < len(runs.entry):
                lists = with_chains(runs, lists, query.program)
    return Progress(runs, run_pool, lists, listed)


@kernel
def fewest_events(graph: Graph) -> int:
    """How many events the shortest match has: a partition with fewer of them need not be looked at."""
    states = len(graph.states)
    least = np.full(states, AFTER_ALL, np.int64)
    least[states - 1] = 0
    fewest, changed = AFTER_ALL, True
    while changed:
        changed = False
        for state in range(states):
            for edge in range(graph.states[state, EDGES_FROM], graph.states[state, EDGES_TO]):
                reached = graph.edges[edge, LEADS_TO]
                if least[state] + 1 < least[reached]:
                    least[reached] = least[state] + 1
                    changed = True
                    if graph.states[reached, FINAL] > 0:
                        fewest = min(fewest, least[reached])
    return fewest


@search_kernel
def scan(
    events: Events,
    machine: Machine,
    columns: Columns,
    predicate: PredicateCall,
    waits: Waits,
    widths: Widths,
    listed: Listed,
    asked: SearchRequest,
) -> tuple[Listed, Int64Rows, Int64Rows, Int64s]:
    """Every run of every partition: the matches written down, the buffer, its accepting entries, and counters."""
    mode, merging, program, graph = asked.mode, asked.merging, machine.program, machine.graph
    run_pool = new_books(events.facts.shape[1], widths, asked.after, asked.until, merging and mode != VERBOSE)
    state = run_pool.state
    runs = new_runs(256, widths, state)
    by_value = new_by_value(waits, len(runs.entry))
    lists = Lists(np.full((len(graph.states) - 1, 2), -1, np.int64), np.empty(0, np.int64), by_value)
    if merging:
        lists = with_chains(runs, lists, program)
    cursor = np.zeros(CURSOR, np.int64)
    cursor[CROWDED], cursor[SEPARATE] = FEW, 1 if asked.non_overlapping else 0
    cursor[MOST_RUNS], cursor[MOST_ACCEPTED] = asked.most_runs, NO_LIMIT if mode == COMPRESSED else OFTEN
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    fewest = fewest_events(graph)
    for part in range(len(events.starts) - 1):
        if events.starts[part + 1] - events.starts[part] < fewest:
            continue
        find_absent(events, program, part, query.absent)
        cursor[LOW] = cursor[HORIZON] = events.starts[part]
        cursor[STAGE], cursor[END] = OPENING, events.starts[part + 1]
        progress = Progress(runs, run_pool, lists, listed)
        runs, run_pool, lists, listed = follow_all(query, graph, progress, cursor, asked)
        for event in range(cursor[HORIZON], cursor[END]):
            state[BUFFERED] -= run_pool.marks[event, USED]
        purge(runs, run_pool, lists, program, AFTER_ALL)
        state[ALIVE] = 0
        if mode != COMPRESSED:
            state[ENTRIES] = 0
        state[TALLIES] = 0
        if state[OVERFLOW] != NOTHING_REACHED:
            break
    return listed, run_pool.entries, run_pool.accepted, state
