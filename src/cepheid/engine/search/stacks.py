"""The sequence engine (SASE): instance stacks, built in one scan, and sequences constructed backwards from them.

A component's stack holds the events that could fill it, in order; each entry remembers how far the previous
component's stack reached when it came (the paper's RIP pointer). Construction walks these stacks depth first from
every event of the last component (sections 3.2, 4.1), testing the window, the comparisons and the conditions as soon
as their events are chosen (4.2, 4.3). Negated components have stacks of their own, searched by bisection (3.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import COLUMNS, INT64_ROWS, INT64S, Columns, fill
from cepheid.engine.data.layout import DUE, EVENTS, INSTANT, MASK, TIME, Events, Rows, lay_out
from cepheid.engine.data.matches import Chosen, Int64s, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.kernels.arrays import equal_codes, grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.conditions import FUNCTION, SCRATCH, Scratch, gather_codes, new_scratch
from cepheid.engine.kernels.negation import killed_at, killed_in_every_branch
from cepheid.engine.kernels.query import QUERY, Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.windows import in_window
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.program.tables import CASE, PROGRAM, Program
from cepheid.plan.physical import Plan

SCANNED, STACKED, EVALUATED, CONSTRUCTED, KILLED, OVERFLOW = range(6)


class Asked(NamedTuple):
    """What is asked of the kernel: which matches, how many at most, and what is tested while they are built."""

    after: int
    until: int
    limit: int
    push_window: bool
    push_conditions: bool


ASKED = types.NamedTuple((types.int64, types.int64, types.int64, types.boolean, types.boolean), Asked)


def run(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches with after < completion <= until."""
    prepared = candidates(plan, events)
    places = len(plan.bound.positives)
    # Construction walks backwards.
    compiled = compile_program(plan.bound, order=tuple(range(places - 1, -1, -1)), push=plan.push_predicates)
    laid_out = lay_out(plan.bound, events, prepared)
    chosen, completion, counters = construct(
        laid_out,
        compiled.program,
        fill(compiled.layout, events.table, prepared.rows, plan.bound.schema),
        compiled.predicate.call,
        # Positions, which count the events of one key, do not rise along a stack of many keys.
        Asked(after, until, plan.limits.max_matches, plan.push_window and laid_out.ordered, plan.push_predicates),
    )
    truncated = check_limit(plan, "max_matches", bool(counters[OVERFLOW]))
    rows = prepared.rows
    return Matches(
        tuple(Chosen(rows[chosen[:, place]]) for place in range(places)),
        completion,
        counters={
            "scanned": prepared.scanned,
            "candidates": len(prepared),
            "stacked": int(counters[STACKED]),
            "evaluations": int(counters[EVALUATED]),
            "constructed": int(counters[CONSTRUCTED]),
            "killed": int(counters[KILLED]),
        },
        truncated=truncated,
    )


class Stacks(NamedTuple):
    """The instance stacks of one partition: a row for each component."""

    events: Rows
    reach: Rows  # the RIP pointer: how many of the stack before were there
    sizes: Int64s
    settled: Int64s  # entries at instants strictly before the current one


STACKS = types.NamedTuple((INT64_ROWS, INT64_ROWS, INT64S, INT64S), Stacks)


@borrowing(types.int64(EVENTS, PROGRAM, STACKS, types.int64, types.boolean))
def fill_stacks(events: Events, program: Program, stacks: Stacks, part: int, push_window: bool) -> int:
    """Sequence scan: fills the stacks with the events of a partition; says how many there are."""
    sizes, settled = stacks.sizes, stacks.settled
    stacked = 0
    for place in range(program.places):
        sizes[place] = settled[place] = 0
    previous = np.int64(-1)
    for event in range(events.starts[part], events.starts[part + 1]):
        if events.facts[INSTANT, event] != previous:
            for place in range(program.places):
                settled[place] = sizes[place]
            previous = events.facts[INSTANT, event]
        bits = events.facts[MASK, event]
        for place in range(program.places):
            if bits & (1 << place) == 0:
                continue
            if place > 0:
                behind = settled[place - 1]
                if behind == 0:
                    continue
                if push_window and not in_window(events, program, stacks.events[place - 1, behind - 1], event):
                    continue
                stacks.reach[place, sizes[place]] = behind
            stacks.events[place, sizes[place]] = event
            sizes[place] += 1
            stacked += 1
    return stacked


@borrowing(types.boolean(EVENTS, PROGRAM, SCRATCH, types.int64, types.boolean))
def agrees_with_chosen(events: Events, program: Program, scratch: Scratch, place: int, push: bool) -> bool:
    """Does the event just chosen agree with those behind it on every compared attribute?"""
    at = scratch.at
    if push:
        return equal_codes(events.compared, at, place + 1, program.places, at[place])
    if place == 0:
        for slot in range(program.places - 1):
            if not equal_codes(events.compared, at, slot + 1, program.places, at[slot]):
                return False
    return True


@borrowing(types.boolean(QUERY, SCRATCH, types.int64, INT64_ROWS))
def unharmed(query: Query, scratch: Scratch, place: int, entries: Rows) -> bool:
    """Do the events chosen so far survive the negated components that can be judged now?"""
    program = query.program
    for slot in range(place, program.places):
        gather_codes(query.events, scratch.codes, scratch.at[slot], 1 if slot == place else 0)
    if not program.judged:
        return not killed_at(query, place, scratch, entries, -1)
    return not killed_in_every_branch(query, scratch, entries, -1)


@borrowing(types.boolean(QUERY, SCRATCH, types.int64, types.boolean, INT64_ROWS, INT64S))
def passes(query: Query, scratch: Scratch, place: int, push: bool, entries: Rows, counters: Int64s) -> bool:
    """Does the event just chosen pass all that can be tested now?"""
    program = query.program
    if query.events.compared.shape[0] > 0 and not agrees_with_chosen(query.events, program, scratch, place, push):
        return False
    test = program.moments[3 * place]
    if test < program.moments[3 * place + 1] and not query.predicate(
        program.tests[test, CASE], scratch.at, scratch.counted, scratch.running, query.columns
    ):
        return False
    if program.negatives > 0 and not program.judged and not unharmed(query, scratch, place, entries):
        counters[KILLED] += 1
        return False
    return True


class Walk(NamedTuple):
    """Where construction has come: the place it is at and the choice at each place, kept from call to call."""

    cursor: Int64s
    top: Int64s  # one number: the entry of the last component's stack that matches are built from
    place: Int64s  # one number; behind the last place: the next entry is to be begun


WALK = types.NamedUniTuple(INT64S, 3, Walk)


class Room(NamedTuple):
    """Where matches are written to; grown when it is full."""

    chosen: Rows
    completion: Int64s
    counters: Int64s


ROOM = types.NamedTuple((INT64_ROWS, INT64S, INT64S), Room)


@borrowing(types.boolean(QUERY, STACKS, WALK, ASKED))
def begin_next(query: Query, stacks: Stacks, walk: Walk, asked: Asked) -> bool:
    """Goes on to the next event of the last component whose matches are asked for; False: there is none."""
    last_place = query.program.places - 1
    walk.top[0] += 1
    while walk.top[0] < stacks.sizes[last_place]:
        ends = query.events.facts[TIME, stacks.events[last_place, walk.top[0]]]
        if query.program.postponed or (ends > asked.after and ends <= asked.until):
            walk.place[0] = last_place
            walk.cursor[last_place] = walk.top[0]
            return True
        walk.top[0] += 1
    return False


@borrowing(types.int64(QUERY, STACKS, SCRATCH, WALK, ASKED, ROOM, types.int64))
def construct_partition(
    query: Query, stacks: Stacks, scratch: Scratch, walk: Walk, asked: Asked, room: Room, found: int
) -> int:
    """Sequence construction, backwards from every event of the last component; says how many matches there are now.

    It returns when there is no room for another match, and goes on from there when called again. That way it makes no
    arrays, and numba does not count references in its loop, which took four fifths of the time.
    """
    events, program, counters, at, cursor = query.events, query.program, room.counters, scratch.at, walk.cursor
    length = program.places
    entries = query.absent.stacks[:0]  # no groups, so no entries of a buffer
    while walk.place[0] < length or begin_next(query, stacks, walk, asked):
        if found == len(room.completion) or stop_flag() != 0:
            return found
        place, top = walk.place[0], walk.top[0]
        last = stacks.events[length - 1, top]
        index = cursor[place]
        if index < (top if place == length - 1 else 0):  # the last component has one choice here
            walk.place[0] = place + 1
            if place + 1 < length:
                cursor[place + 1] -= 1
            continue
        event = stacks.events[place, index]
        if asked.push_window and not in_window(events, program, event, last):
            cursor[place] = -1  # all older ones are outside, too
            continue
        at[place] = event
        counters[EVALUATED] += 1
        if not passes(query, scratch, place, asked.push_conditions, entries, counters):
            cursor[place] -= 1
            continue
        if place > 0:
            cursor[place - 1] = stacks.reach[place, index] - 1
            walk.place[0] = place - 1
            continue
        cursor[0] -= 1
        if not asked.push_window and not in_window(events, program, event, last):
            continue
        counters[CONSTRUCTED] += 1
        known = events.facts[DUE, event] if program.postponed else events.facts[TIME, last]
        if known <= asked.after or known > asked.until:
            continue
        if program.judged and not unharmed(query, scratch, 0, entries):
            counters[KILLED] += 1
            continue
        if found == asked.limit:
            counters[OVERFLOW] = 1
            return found
        for slot in range(length):
            room.chosen[found, slot] = at[slot]
        room.completion[found] = known
        found += 1
    return found


@search_kernel(types.Tuple((INT64_ROWS, INT64S, INT64S))(EVENTS, PROGRAM, COLUMNS, FUNCTION, ASKED))
def construct(
    events: Events, program: Program, columns: Columns, predicate: Any, asked: Asked
) -> tuple[Rows, Int64s, Int64s]:
    """All sequences of all partitions: chosen events per match, completion per match, counters."""
    length = program.places
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    rows = np.empty((length, longest), np.int64)
    stacks = Stacks(rows, np.empty_like(rows), np.zeros(length, np.int64), np.zeros(length, np.int64))
    scratch = new_scratch(length + program.negatives, 2 * length, 0, events.compared.shape[0])
    walk = Walk(np.zeros(length, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    room = Room(np.empty((1024, length), np.int64), np.empty(1024, np.int64), np.zeros(6, np.int64))
    found = 0
    for part in range(len(events.starts) - 1):
        find_absent(query.events, query.program, part, query.absent)
        room.counters[STACKED] += fill_stacks(events, program, stacks, part, asked.push_window)
        walk.top[0], walk.place[0] = -1, length
        while True:
            found = construct_partition(query, stacks, scratch, walk, asked, room, found)
            if found < len(room.completion) or room.counters[OVERFLOW] != 0 or stop_flag() != 0:
                break
            room = Room(grown_rows(room.chosen), grown(room.completion), room.counters)
        if room.counters[OVERFLOW] != 0 or stop_flag() != 0:
            break
    return room.chosen[:found], room.completion[:found], room.counters
