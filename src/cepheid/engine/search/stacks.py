"""The sequence engine (SASE): instance stacks, built in one scan, and sequences constructed backwards from them.

A component's stack holds the events that could fill it, in order; each entry remembers how far the previous
component's stack reached when it came (the paper's RIP pointer). Construction walks these stacks depth first from
every event of the last component (sections 3.2, 4.1), testing the window, the comparisons and the conditions as soon
as their events are chosen (4.2, 4.3). Where an equality ties a component to one that is filled before it, its events
are found by value instead of one by one. Negated components have stacks of their own, searched by bisection (3.3).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import Columns, PredicateCall, fill
from cepheid.engine.data.layout import DUE, INSTANT, MASK, TIME, Events, lay_out
from cepheid.engine.data.matches import NEVER, Chosen, Matches
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.value_index import KNOWN, ValueIndex, agreeing, value_index
from cepheid.engine.kernels.arrays import equal_codes, grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.conditions import Scratch, gather_codes, new_scratch
from cepheid.engine.kernels.negation import killed_at, killed_in_every_branch
from cepheid.engine.kernels.query import Query, find_absent, room_for_absent
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.windows import first_above, in_window
from cepheid.engine.limits import check_limit
from cepheid.engine.program.compile import compile_program
from cepheid.engine.program.tables import AFTER_PLACE, BEFORE_PLACE, CASE, JUDGED_AT, LINKED, Program
from cepheid.plan.physical import Plan

SCANNED, STACKED, EVALUATED, CONSTRUCTED, KILLED, OVERFLOW, FOUND = range(7)


class SearchRequest(NamedTuple):
    """What is asked of the kernel: which matches, how many at most, and what is tested while they are built."""

    after: int
    until: int
    limit: int
    push_window: bool
    push_conditions: bool
    evaluations: int  # events to be tested at most


def run(plan: Plan, events: EventTable, after: int, until: int, evaluations: int = NEVER) -> Matches:
    """All matches with after < completion <= until; an error if more than so many events have to be tested."""
    prepared = candidates(plan, events)
    places = len(plan.bound.positives)
    # Construction walks backwards.
    compiled = compile_program(plan.bound, order=tuple(range(places - 1, -1, -1)), push=plan.push_predicates)
    laid_out = lay_out(plan.bound, events, prepared)
    columns = fill(compiled.layout, events.table, prepared.rows, plan.bound.schema)
    index = value_index(plan.bound, plan.match.indexed, compiled.layout, columns, prepared.mask)
    chosen, completion, counters = construct(
        laid_out,
        compiled.program,
        columns,
        compiled.predicate.call,
        index,
        # Positions, which count the events of one key, do not rise along a stack of many keys.
        SearchRequest(
            after,
            until,
            plan.limits.max_matches,
            plan.push_window and laid_out.ordered,
            plan.push_predicates,
            evaluations,
        ),
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

    events: Int64Rows
    reach: Int64Rows  # the RIP pointer: how many of the stack before were there
    sizes: Int64s
    settled: Int64s  # entries at instants strictly before the current one


@borrowing
def fill_stacks(events: Events, program: Program, stacks: Stacks, part: int, push_window: bool) -> int:
    """Sequence scan: fills the stacks with the events of a partition; says how many there are."""
    for place in range(program.places):
        stacks.sizes[place] = stacks.settled[place] = 0
    return push_events(events, program, stacks, events.starts[part], events.starts[part + 1], push_window)


@borrowing
def push_events(events: Events, program: Program, stacks: Stacks, begin: int, end: int, push_window: bool) -> int:
    """Puts events on the stacks, of which the first ones are later than all that lie there; says how many there are."""
    sizes, settled = stacks.sizes, stacks.settled
    stacked = 0
    previous = np.int64(-1)
    for event in range(begin, end):
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


@borrowing
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


@borrowing
def unharmed(query: Query, scratch: Scratch, place: int, entries: Int64Rows) -> bool:
    """Do the events chosen so far survive the negated components that can be judged now?"""
    program = query.program
    for slot in range(place, program.places):
        gather_codes(query.events, scratch.codes, scratch.at[slot], 1 if slot == place else 0)
    if not program.judged:
        return not killed_at(query, place, scratch, entries, -1)
    return not killed_in_every_branch(query, scratch, entries, -1)


@borrowing
def passes(query: Query, scratch: Scratch, place: int, push: bool, entries: Int64Rows, counters: Int64s) -> bool:
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
    """Where construction has come, kept from call to call: at each place the entry it looks at, the last one it will,
    and what they lie in."""

    cursor: Int64s
    floor: Int64s
    link: Int64s  # the index whose runs are walked; -1: the stack
    top: Int64s  # one number: the entry of the last component's stack that matches are built from
    place: Int64s  # one number; behind the last place: the next entry is to be begun
    shut: Int64s  # by place, 1: what must not happen between it and the next one is tied to nothing


@borrowing
def shuts(events: Events, program: Program, place: int) -> int:
    """Is an event killed here only by what lies between it and the next one, so that all older ones are, too?"""
    found = 0
    for negation in range(program.negatives):
        if program.negations[negation, JUDGED_AT] == place:
            moment = 3 * program.places + negation
            between = program.negations[negation, AFTER_PLACE] == place
            between = between and program.negations[negation, BEFORE_PLACE] == place + 1
            tied = program.moments[moment] != program.moments[moment + 1] or program.negations[negation, LINKED] != 0
            if tied or not between:
                return 0
            found = 1
    return found if events.ordered and events.compared.shape[0] == 0 and not program.judged else 0


@kernel
def new_walk(events: Events, program: Program, index: ValueIndex) -> Walk:
    """A walk that uses, at each place, the most selective index whose other event lies behind it in the pattern."""
    places = program.places
    links = np.full(places, -1, np.int64)
    numbers = np.zeros((3, places), np.int64)
    walk = Walk(numbers[0], numbers[1], links, np.zeros(1, np.int64), np.zeros(1, np.int64), numbers[2])
    for place in range(places):
        walk.shut[place] = shuts(events, program, place)
    for place in range(places):
        for link in range(index.of_place[place, 1] - 1, index.of_place[place, 0] - 1, -1):
            if index.links[link, KNOWN] > place:
                walk.link[place] = link
    return walk


@borrowing
def enter(events: Events, stacks: Stacks, index: ValueIndex, walk: Walk, at: Int64s, place: int, opening: int) -> None:
    """Begins with the candidates of a place, those that lie before the event of the place behind it."""
    if walk.link[place + 1] < 0:
        behind = stacks.reach[place + 1, walk.cursor[place + 1]]
    else:
        instant = events.facts[INSTANT, at[place + 1]]
        behind = first_above(stacks.events[place], 0, stacks.sizes[place], events.facts, INSTANT, instant - 1)
    walk.floor[place], walk.cursor[place] = 0, behind - 1
    link = walk.link[place]
    if link >= 0 and behind > 0:
        known = at[index.links[link, KNOWN]]
        low, high = agreeing(index, link, known, opening, stacks.events[place, behind - 1])
        walk.floor[place], walk.cursor[place] = low, high - 1


class Room(NamedTuple):
    """Where matches are written to; grown when it is full."""

    chosen: Int64Rows
    completion: Int64s
    counters: Int64s


@borrowing
def begin_next(query: Query, stacks: Stacks, walk: Walk, asked: SearchRequest) -> bool:
    """Goes on to the next event of the last component whose matches are asked for; False: there is none."""
    last_place = query.program.places - 1
    walk.top[0] += 1
    while walk.top[0] < stacks.sizes[last_place]:
        ends = query.events.facts[TIME, stacks.events[last_place, walk.top[0]]]
        if query.program.postponed or (ends > asked.after and ends <= asked.until):
            walk.place[0] = last_place
            walk.cursor[last_place] = walk.floor[last_place] = walk.top[0]  # the last component has one choice here
            return True
        walk.top[0] += 1
    return False


@borrowing
def construct_partition(
    query: Query,
    stacks: Stacks,
    index: ValueIndex,
    scratch: Scratch,
    walk: Walk,
    asked: SearchRequest,
    room: Room,
    part: int,
) -> bool:
    """Sequence construction, backwards from every event of the last component; False: there is no room for more.

    Then it goes on from there when it is called again. That way it makes no arrays, and numba does not count references
    in its loop, which took four fifths of the time.
    """
    events, program, counters, at = query.events, query.program, room.counters, scratch.at
    length, cursor = program.places, walk.cursor
    entries = query.absent.stacks[:0]  # no groups, so no entries of a buffer
    while walk.place[0] < length or begin_next(query, stacks, walk, asked):
        if counters[FOUND] == len(room.completion):
            return False
        if stop_flag() != 0:
            return True
        place, last = walk.place[0], stacks.events[length - 1, walk.top[0]]
        entry = cursor[place]
        if entry < walk.floor[place]:
            walk.place[0] = place + 1
            if place + 1 < length:
                cursor[place + 1] -= 1
            continue
        event = stacks.events[place, entry] if walk.link[place] < 0 else index.events[entry]
        if asked.push_window and not in_window(events, program, event, last):
            cursor[place] = walk.floor[place] - 1  # all older ones are outside, too
            continue
        at[place] = event
        if counters[EVALUATED] == asked.evaluations:
            counters[OVERFLOW] = 1
            return True
        counters[EVALUATED] += 1
        dead = counters[KILLED]
        if not passes(query, scratch, place, asked.push_conditions, entries, counters):
            all_older = walk.shut[place] == 1 and counters[KILLED] > dead
            cursor[place] = walk.floor[place] - 1 if all_older else cursor[place] - 1
            continue
        if place > 0:
            walk.place[0] = place - 1
            enter(events, stacks, index, walk, at, place - 1, events.starts[part])
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
        if counters[FOUND] == asked.limit:
            counters[OVERFLOW] = 1
            return True
        for slot in range(length):
            room.chosen[counters[FOUND], slot] = at[slot]
        room.completion[counters[FOUND]] = known
        counters[FOUND] += 1
    return True


@kernel
def construct_all(
    query: Query,
    stacks: Stacks,
    index: ValueIndex,
    scratch: Scratch,
    walk: Walk,
    asked: SearchRequest,
    room: Room,
    part: int,
) -> Room:
    """The same, making room where it is needed."""
    while not construct_partition(query, stacks, index, scratch, walk, asked, room, part):
        room = Room(grown_rows(room.chosen), grown(room.completion), room.counters)
    return room


@search_kernel
def construct(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    index: ValueIndex,
    asked: SearchRequest,
) -> tuple[Int64Rows, Int64s, Int64s]:
    """All sequences of all partitions: chosen events per match, completion per match, counters."""
    length = program.places
    longest = 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    rows = np.empty((length, longest), np.int64)
    stacks = Stacks(rows, np.empty_like(rows), np.zeros(length, np.int64), np.zeros(length, np.int64))
    scratch = new_scratch(length + program.negatives, 2 * length, 0, events.compared.shape[0])
    walk = new_walk(events, program, index)
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    room = Room(np.empty((1024, length), np.int64), np.empty(1024, np.int64), np.zeros(7, np.int64))
    counters = room.counters
    for part in range(len(events.starts) - 1):
        counters[STACKED] += fill_stacks(events, program, stacks, part, asked.push_window)
        if stacks.sizes[length - 1] == 0:
            continue  # of many small partitions, most: references are counted for what follows
        find_absent(events, program, part, query.absent)
        walk.top[0], walk.place[0] = -1, length
        room = construct_all(query, stacks, index, scratch, walk, asked, room, part)
        if counters[OVERFLOW] != 0 or stop_flag() != 0:
            break
    return room.chosen[: counters[FOUND]], room.completion[: counters[FOUND]], counters
