"""The moves of runs: begin, take, accept; and the pool that runs live in.

A run is a slot of the pool: a row of facts, codes that equivalence tests compare, chosen events and aggregates, and its
entry in the match buffer. Slots are reused (SASE+ section 5.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.layout import BEGINS, CHANCE, DUE, INSTANT, MASK, TIME, Events
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.conditions import Scratch, agrees, agrees_on_codes, holds, holds_for_every
from cepheid.engine.kernels.negation import (
    BEFORE,
    BEHIND,
    FIRST_EVENT,
    LAST_EVENT,
    killed_at,
    killed_in_every_branch,
    killed_outside,
    kills,
)
from cepheid.engine.kernels.query import Query
from cepheid.engine.kernels.registers import Registers, absorb
from cepheid.engine.kernels.windows import first_above, in_window
from cepheid.engine.program.graph import (
    BEGINNING,
    CLOSED_FIRST,
    CLOSING,
    DEPENDS,
    EDGES_FROM,
    EDGES_TO,
    ENDS,
    FILLED,
    FILLS,
    FINAL,
    FIRST,
    FURTHER,
    KILLS_AT,
    LEADS_TO,
    LOOPS,
    MOMENT,
    NEGATED,
    PASSED_FROM,
    PASSED_TO,
    REACHED_BY,
    TAKING,
    UNENDED,
    Graph,
)
from cepheid.engine.program.tables import (
    CASE,
    CONTIGUOUS,
    CURRENT_AT,
    FIRST_AT,
    KLEENE,
    LAST_AT,
    MIXED,
    PREVIOUS_AT,
    SKIP_ANY,
    SKIP_NEXT,
    STRICT,
    TIME_WINDOW,
    WALKS_FROM,
    Program,
)
from cepheid.engine.search.runs.buffer import EARLIEST, ENTRY, EVENT, KNOWN, LATEST, LEFT, MATCHES, RIGHT

# Facts of a run: the state it has reached, the latest event it began with, whether its group may close, its counts by
# beginning, its hash and the next run of the same hash, the next run of its list and the one before. Runs that are
# followed one at a time have no list, and note where they resume instead.
REACHED, BEGAN, CLOSED, TALLY, HASH, CHAIN, NEXT, PREVIOUS = range(8)
RESUME = PREVIOUS
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
LOST_NEXT = 2  # beside CLOSED: it passed an event that no step by skip_till_next_match may pass
BLANK = 0  # the slot that stands for "no run yet"

BEGUN_AT, PATHS = range(2)  # a row of a tally
END = -1  # the beginning that ends a block
COUNTLESS = np.iinfo(np.int64).max  # more paths than 63 bits can count

BEGUN_HERE, USED = range(2)  # marks of an event: how many live runs began with it (latest), and was it ever selected


class Runs(NamedTuple):
    """The pool of runs. The row of a run: facts, codes, chosen events, whole aggregates, and the key for merging."""

    rows: Int64Rows
    running: Float64Rows  # aggregates that are fractions
    entry: Int64s  # each run's entry in the match buffer; -1: the slot is free, or the run is over
    at: int  # where in a row the chosen events begin...
    counted: int  # ... and the aggregates...
    key: int  # ... and the key


class Widths(NamedTuple):
    """How wide the parts of a run's row are."""

    codes: int
    slots: int
    whole: int
    number: int
    key: int


class RunPool(NamedTuple):
    """What all moves write into besides the runs."""

    entries: Int64Rows
    accepted: Int64Rows
    tallies: Int64Rows  # blocks of (beginning, number of paths), the latest beginning first; no rows if not counted
    marks: Int64Rows  # by event
    state: Int64s
    scratch: Scratch


@kernel
def new_runs(size: int, widths: Widths, state: Int64s) -> Runs:
    """A pool of free slots; the first one is blank."""
    at = FACTS + widths.codes
    counted = at + widths.slots
    key = counted + widths.whole
    runs = Runs(
        np.zeros((size, key + widths.key), np.int64),
        np.zeros((size, widths.number), np.float64),
        np.full(size, -1, np.int64),
        at,
        counted,
        key,
    )
    free_all(runs, state)
    return runs


@borrowing
def free_all(runs: Runs, state: Int64s) -> None:
    """Makes all slots of a pool free; the first one is blank."""
    size = len(runs.entry)
    for code in range(FACTS, runs.at):
        runs.rows[BLANK, code] = WILD
    runs.rows[BLANK, REACHED], runs.rows[BLANK, CLOSED], runs.rows[BLANK, NEXT] = -1, 1, -1
    for slot in range(1, size):
        runs.rows[slot, NEXT] = slot + 1 if slot + 1 < size else -1
    state[FREE] = 1
    state[SLOTS_USED] = 1


@kernel
def more_runs(runs: Runs, least: int, state: Int64s) -> Runs:
    """The same pool with at least `least` more free slots, and twice the size."""
    old = len(runs.entry)
    size = max(2 * old, old + least)
    rows = np.zeros((size, runs.rows.shape[1]), np.int64)
    running = np.zeros((size, runs.running.shape[1]), np.float64)
    entry = np.full(size, -1, np.int64)
    rows[:old] = runs.rows
    running[:old] = runs.running
    entry[:old] = runs.entry
    for slot in range(old, size):
        rows[slot, NEXT] = slot + 1 if slot + 1 < size else state[FREE]
    state[FREE] = old
    return Runs(rows, running, entry, runs.at, runs.counted, runs.key)


@borrowing
def added(one: int, other: int) -> int:
    """The sum, or COUNTLESS where it does not fit."""
    return COUNTLESS if one > COUNTLESS - other else one + other


@borrowing
def paths(tallies: Int64Rows, block: int, horizon: int) -> int:
    """How many paths of a block began at the horizon or later; one if they are not counted."""
    if len(tallies) == 0:
        return 1
    total = 0
    while tallies[block, BEGUN_AT] >= horizon:
        total = added(total, tallies[block, PATHS])
        block += 1
    return total


@borrowing
def release(runs: Runs, run_pool: RunPool, slot: int, horizon: int) -> None:
    """Gives a slot back. Runs that began before the horizon were taken off the count when it passed them."""
    began = runs.rows[slot, BEGAN]
    if began >= horizon:
        run_pool.marks[began, BEGUN_HERE] -= 1
        run_pool.state[ALIVE] -= 1
    runs.entry[slot] = -1
    runs.rows[slot, NEXT] = run_pool.state[FREE]
    run_pool.state[FREE] = slot
    run_pool.state[SLOTS_USED] -= 1


@borrowing
def may_start(events: Events, program: Program, state: Int64s, event: int) -> bool:
    """Could a match that starts here be known in the interval that is asked for?"""
    if program.postponed:
        return bool(state[AFTER] < events.facts[DUE, event] <= state[UNTIL])
    if program.window_kind == TIME_WINDOW:
        return bool(events.facts[TIME, event] + (program.window - 1) > state[AFTER])
    return True


@borrowing
def load(runs: Runs, slot: int, scratch: Scratch) -> None:
    """Copies a run's values to where conditions read them."""
    for column in range(runs.counted - runs.at):
        scratch.at[column] = runs.rows[slot, runs.at + column]
    for column in range(runs.key - runs.counted):
        scratch.counted[column] = runs.rows[slot, runs.counted + column]
    for column in range(runs.running.shape[1]):
        scratch.running[column] = runs.running[slot, column]


@inlined
def passes(query: Query, moment: int, runs: Runs, slot: int, run_pool: RunPool, entry: int) -> bool:
    """Do all conditions of a moment hold for a run?"""
    program, columns, predicate = query.program, query.columns, query.predicate
    begin, end = program.moments[moment], program.moments[moment + 1]
    if begin < end:
        load(runs, slot, run_pool.scratch)
    for test in range(begin, end):
        if program.tests[test, WALKS_FROM] < program.tests[test + 1, WALKS_FROM]:
            if not holds_for_every(program, columns, predicate, test, run_pool.scratch, run_pool.entries, entry):
                return False
        elif not predicate(
            program.tests[test, CASE], run_pool.scratch.at, run_pool.scratch.counted, run_pool.scratch.running, columns
        ):
            return False
    return True


@borrowing
def unharmed(query: Query, runs: Runs, slot: int, run_pool: RunPool, entry: int, event: int, complete: bool) -> bool:
    """Does a complete match, or a run that has just begun a component, survive what must not happen?"""
    program, scratch, entries = query.program, run_pool.scratch, run_pool.entries
    load(runs, slot, scratch)
    for row in range(len(scratch.codes)):
        code = runs.rows[slot, FACTS + row]
        scratch.codes[row] = query.events.compared[row, event] if code == WILD else code
    if not complete:
        return not killed_at(query, entries[entry, RIGHT], scratch, entries, entry)
    if program.judged:
        return not killed_in_every_branch(query, scratch, entries, entry)
    if killed_at(query, program.places, scratch, entries, entry):
        return False
    return not killed_outside(query, entries[entry, LATEST], event, scratch, entries, entry)


@borrowing
def last_of(query: Query, graph: Graph, runs: Runs, slot: int) -> int:
    """The event that a run took last; of the runs that were merged into it, one of the same instant if that matters."""
    filled = graph.states[runs.rows[slot, REACHED], FILLED]
    return int(runs.rows[slot, runs.at + query.program.place[filled, LAST_AT]])


@borrowing
def harmed_on_edge(
    query: Query, graph: Graph, runs: Runs, slot: int, run_pool: RunPool, entry: int, edge: int, before: int
) -> bool:
    """Does something that must not happen lie between the event of an edge and the one before it?"""
    scratch, entries = run_pool.scratch, run_pool.entries
    first, last = graph.edges[edge, PASSED_FROM], graph.edges[edge, PASSED_TO]
    if first < last:
        load(runs, slot, scratch)
        for row in range(len(scratch.codes)):
            scratch.codes[row] = runs.rows[slot, FACTS + row]
    for passed in range(first, last):
        negation = graph.passed[passed, NEGATED]
        if graph.passed[passed, ENDS] == 1:
            continue  # it was judged before the event was taken
        scratch.between[negation, BEFORE] = before
        scratch.between[negation, BEHIND] = entries[entry, EVENT]
        if kills(query, negation, graph.passed[passed, KILLS_AT], scratch, entries, entry):
            return True
    return False


@borrowing
def is_unended(query: Query, graph: Graph, runs: Runs, slot: int, run_pool: RunPool, entry: int, state: int) -> bool:
    """Has a run an edge before which nothing must not happen, or nothing of it does until its window has passed?"""
    scratch, entries = run_pool.scratch, run_pool.entries
    load(runs, slot, scratch)
    for row in range(len(scratch.codes)):
        scratch.codes[row] = runs.rows[slot, FACTS + row]
    for edge in range(graph.states[state, EDGES_FROM], graph.states[state, EDGES_TO]):
        is_left = True
        for passed in range(graph.edges[edge, PASSED_FROM], graph.edges[edge, PASSED_TO]):
            if graph.passed[passed, ENDS] == 1 or graph.passed[passed, DEPENDS] == 1:
                continue
            negation = graph.passed[passed, NEGATED]
            between = scratch.between[negation]
            between[BEFORE], between[BEHIND] = entries[entry, EVENT], -1
            between[FIRST_EVENT], between[LAST_EVENT] = entries[entry, LATEST], entries[entry, EVENT]
            is_left = is_left and not kills(query, negation, graph.passed[passed, KILLS_AT], scratch, entries, entry)
        if is_left:
            return True
    return False


@borrowing
def ended(query: Query, graph: Graph, runs: Runs, run_pool: RunPool, slot: int, edge: int, event: int) -> bool:
    """Has something come since the last event of a run, or with this one, that ends its group (UNTIL)?"""
    events, program, scratch, entry = query.events, query.program, run_pool.scratch, runs.entry[slot]
    facts = events.facts
    for passed in range(graph.edges[edge, PASSED_FROM], graph.edges[edge, PASSED_TO]):
        if graph.passed[passed, ENDS] == 0:
            continue
        load(runs, slot, scratch)
        for row in range(len(scratch.codes)):
            scratch.codes[row] = runs.rows[slot, FACTS + row]
        negation = graph.passed[passed, NEGATED]
        stack, size = query.absent.stacks[negation], query.absent.sizes[negation]
        low = first_above(stack, 0, size, facts, INSTANT, facts[INSTANT, last_of(query, graph, runs, slot)])
        high = first_above(stack, low, size, facts, INSTANT, facts[INSTANT, event])
        for index in range(low, high):
            other = stack[index]
            if not agrees_on_codes(events, scratch.codes, other):
                continue
            scratch.at[len(scratch.at) - program.negatives + negation] = other
            moment = graph.passed[passed, KILLS_AT]
            if holds(program, query.columns, query.predicate, moment, scratch, run_pool.entries, entry):
                return True
    return False


@borrowing
def accept(
    query: Query, runs: Runs, run_pool: RunPool, slot: int, entry: int, began: int, event: int, horizon: int
) -> None:
    """Notes that a match is complete, if it is known in the interval that is asked for."""
    state, events = run_pool.state, query.events
    known = events.facts[DUE, began] if query.program.postponed else events.facts[TIME, event]
    if state[AFTER] < known <= state[UNTIL]:
        row = state[ACCEPTED]
        run_pool.accepted[row, ENTRY] = entry
        run_pool.accepted[row, EARLIEST] = horizon
        run_pool.accepted[row, MATCHES] = paths(run_pool.tallies, runs.rows[slot, TALLY], horizon)
        run_pool.accepted[row, KNOWN] = known
        state[ACCEPTED] = row + 1
        state[ENTRIES] = entry + 1


@inlined
def spawn(
    query: Query, graph: Graph, runs: Runs, run_pool: RunPool, parent: int, edge: int, event: int, horizon: int
) -> None:
    """The run that `parent` becomes by selecting an event on an edge, and the match if it is complete by that."""
    events, program = query.events, query.program
    state, entries, rows = run_pool.state, run_pool.entries, runs.rows
    entry = state[ENTRIES]
    place, reached, begins = graph.edges[edge, FILLS], graph.edges[edge, LEADS_TO], graph.edges[edge, FIRST] == 1
    start = parent == BLANK
    began = event if start else rows[parent, BEGAN]
    entries[entry, EVENT], entries[entry, LEFT] = event, runs.entry[parent]
    entries[entry, RIGHT], entries[entry, LATEST] = place, began
    single = program.place[place, KLEENE] == 0
    over = graph.states[reached, EDGES_FROM] == graph.states[reached, EDGES_TO]
    slot = parent  # a match that ends with a single event needs no run of its own
    if not (over and single):
        slot = state[FREE]
        state[FREE] = rows[slot, NEXT]
        for column in range(runs.key):
            rows[slot, column] = rows[parent, column]
        for column in range(runs.running.shape[1]):
            runs.running[slot, column] = runs.running[parent, column]
        for row in range(runs.at - FACTS):
            if rows[slot, FACTS + row] == WILD:
                rows[slot, FACTS + row] = events.compared[row, event]
    rows[slot, runs.at + program.place[place, LAST_AT]] = event
    if begins:
        rows[slot, runs.at + program.place[place, FIRST_AT]] = event
    if start and len(run_pool.tallies) > 0:
        block = state[TALLIES]
        rows[slot, TALLY] = block
        run_pool.tallies[block, BEGUN_AT], run_pool.tallies[block, PATHS] = event, 1
        run_pool.tallies[block + 1, BEGUN_AT] = END
        state[TALLIES] = block + 2
    if not single:
        absorb(program, query.columns, place, event, begins, Registers(rows, runs.running, runs.counted, 0), slot)
    closing = graph.states[reached, CLOSING]
    closed = closing < 0 or passes(query, closing, runs, slot, run_pool, entry)
    complete = closed and graph.states[reached, FINAL] > 0
    viable = True
    if program.negatives > 0:
        # A run that is not complete goes on even if what it is now does not stand: it may be judged anew.
        viable = not begins or unharmed(query, runs, slot, run_pool, entry, event, False)
        before = last_of(query, graph, runs, parent)
        viable = viable and not harmed_on_edge(query, graph, runs, slot, run_pool, entry, edge, before)
        stood = complete
        complete = complete and viable and unharmed(query, runs, slot, run_pool, entry, event, True)
        if complete and graph.states[reached, FINAL] == UNENDED:
            complete = is_unended(query, graph, runs, slot, run_pool, entry, reached)
        if not viable or (stood and not complete):
            state[KILLED] += 1
    if complete:
        accept(query, runs, run_pool, slot, entry, began, event, horizon)
    if over and single:
        return
    if viable and not over:
        state[ENTRIES] = entry + 1
        runs.entry[slot] = entry
        rows[slot, REACHED] = reached
        rows[slot, BEGAN] = began
        rows[slot, CLOSED] = 1 if closed else 0
        rows[slot, NEXT] = state[FRESH]
        state[FRESH] = slot
        state[SLOTS_USED] += 1
        state[ALIVE] += 1
        run_pool.marks[began, BEGUN_HERE] += 1
    else:
        rows[slot, NEXT] = state[FREE]
        state[FREE] = slot


@borrowing
def chance_of(events: Events, strategy: int, last: int) -> int:
    """Under contiguity the one instant at which a run can go on."""
    return int(events.facts[INSTANT, last] + 1 if strategy == STRICT else events.facts[CHANCE, last])


@borrowing
def may_reach(events: Events, strategy: int, last: int, instant: int, lost: bool) -> bool:
    """May a step that a strategy governs be made at an instant, from the last event?"""
    if strategy >= CONTIGUOUS:
        return chance_of(events, strategy, last) == instant
    return strategy == SKIP_ANY or not lost


@borrowing
def stays_possible(events: Events, strategy: int, last: int, instant: int, relevant: bool) -> bool:
    """May the step still be made after an instant, which held an event that is `relevant`?"""
    if strategy >= CONTIGUOUS:
        return chance_of(events, strategy, last) > instant
    return strategy == SKIP_ANY or not relevant


@borrowing
def could_repeat(query: Query, graph: Graph, runs: Runs, slot: int, last: int, instant: int) -> bool:
    """Could a run, where steps are reached by different strategies, begin a further round at an instant or later?"""
    reached, lost = runs.rows[slot, REACHED], runs.rows[slot, CLOSED] & LOST_NEXT != 0
    for edge in range(graph.states[reached, EDGES_FROM], graph.states[reached, EDGES_TO]):
        strategy = graph.edges[edge, REACHED_BY]
        if graph.edges[edge, FURTHER] == 1 and stays_possible(query.events, strategy, last, instant - 1, lost):
            return True
    return False


@borrowing
def may_go_on(query: Query, graph: Graph, runs: Runs, slot: int, last: int, instant: int, relevant: bool) -> bool:
    """Notes what a run can still do after an instant, which held an event that is `relevant`; can it do anything?"""
    reached, rows = runs.rows[slot, REACHED], runs.rows
    if relevant:
        rows[slot, CLOSED] |= LOST_NEXT
    lost = rows[slot, CLOSED] & LOST_NEXT != 0
    for edge in range(graph.states[reached, EDGES_FROM], graph.states[reached, EDGES_TO]):
        if rows[slot, CLOSED] & 1 == 0 and graph.edges[edge, CLOSED_FIRST] == 1:
            continue
        if stays_possible(query.events, graph.edges[edge, REACHED_BY], last, instant, lost):
            return True
    return False


@inlined
def advance(
    query: Query, graph: Graph, runs: Runs, run_pool: RunPool, slot: int, low: int, high: int, horizon: int
) -> bool:
    """Shows a run the events of one instant, low : high; says whether the run itself lives on.

    The blank run stands for those that begin here. What a run becomes by selecting an event is put on the list of
    fresh runs. Concurrent events each continue the run in a branch of their own, and the strategy is judged for the
    instant as a whole.
    """
    events, program = query.events, query.program
    rows, at, entry = runs.rows, runs.at, runs.entry[slot]
    reached = rows[slot, REACHED]
    blank = slot == BLANK
    if program.strategy == CONTIGUOUS and not blank:
        chance = events.facts[CHANCE, rows[slot, at + program.place[graph.states[reached, FILLED], LAST_AT]]]
        if chance != events.facts[INSTANT, low]:
            return bool(chance > events.facts[INSTANT, low])
    mixed = program.strategy == MIXED and not blank
    instant, last, lost, repeats = events.facts[INSTANT, low], -1, False, False
    if mixed:
        last = rows[slot, at + program.place[graph.states[reached, FILLED], LAST_AT]]
        lost, repeats = rows[slot, CLOSED] & LOST_NEXT != 0, could_repeat(query, graph, runs, slot, last, instant)
    begun = continued = over = False
    for event in range(low, high):
        firsts = events.facts[BEGINS, event] & graph.states[reached, BEGINNING]
        others = events.facts[MASK, event] & graph.states[reached, TAKING]
        if firsts | others == 0 or (blank and not may_start(events, program, run_pool.state, event)):
            continue
        agree = same = True  # with the run's codes, and are none of them wild?
        for row in range(at - FACTS):
            own, code = events.compared[row, event], rows[slot, FACTS + row]
            agree = agree and agrees(own, code)
            same = same and own == code != WILD
        if not agree:
            continue
        if not events.ordered and not blank and not in_window(events, program, rows[slot, BEGAN], event):
            over = over or same  # later events of this partition will be further away still
            continue
        for edge in range(graph.states[reached, EDGES_FROM], graph.states[reached, EDGES_TO]):
            place, begins = graph.edges[edge, FILLS], graph.edges[edge, FIRST] == 1
            further = graph.edges[edge, FURTHER] == 1
            if (firsts if begins else others) & (1 << place) == 0:
                continue
            if mixed and not may_reach(events, graph.edges[edge, REACHED_BY], last, instant, lost):
                continue
            if rows[slot, CLOSED] & 1 == 0 and graph.edges[edge, CLOSED_FIRST] == 1:
                continue
            run_pool.state[EVALUATED] += 1
            rows[slot, at + program.place[place, CURRENT_AT]] = event
            if begins:
                rows[slot, at + program.place[place, FIRST_AT]] = event
                rows[slot, at + program.place[place, LAST_AT]] = event
            else:
                rows[slot, at + program.place[place, PREVIOUS_AT]] = rows[slot, at + program.place[place, LAST_AT]]
            if passes(query, graph.edges[edge, MOMENT], runs, slot, run_pool, entry):
                if program.negatives > 0 and ended(query, graph, runs, run_pool, slot, edge, event):
                    continue
                begun, continued = begun or not further, continued or further
                spawn(query, graph, runs, run_pool, slot, edge, event, horizon)
    if mixed:
        return may_go_on(query, graph, runs, slot, last, instant, continued if repeats else begun) and not over
    if blank or program.strategy == SKIP_ANY:
        return not over
    # A repeated part that is open goes on until an event fills a further round of it.
    ends = continued if graph.states[reached, LOOPS] == 1 else begun
    return program.strategy == SKIP_NEXT and not over and not ends
