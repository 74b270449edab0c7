"""Totals over all matches without listing them, under skip_till_any_match (after GRETA, VLDB 2017, and COGRA, 2019).

The matches so far are not kept but added up, by the place and the event that they have come to. An event that fills a
place takes over the sums of all events that it can follow: where no condition ties it to the one before, these are one
running sum for each place; where one comparison does, a prefix in the order of its values (data/order_index.py);
otherwise the events before are asked one by one. Windows hang on the first event, so where
one ends within a partition (or a condition reads the first event), the sums are made for one first event after the
other: time is at most quadratic in the events of a window for each first event, memory linear in the largest window.
Where only the window ties the events of a match, one pass does (kernels/sliding_sums.py).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.candidates import candidates
from cepheid.engine.data.columns import Columns, PredicateCall, fill
from cepheid.engine.data.endings import with_endings
from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, TIME, Events, lay_out
from cepheid.engine.data.order_index import NO_TREE, OFFSET, SIZE, OrderIndex, order_index
from cepheid.engine.data.table import EventTable
from cepheid.engine.data.totals import NO_RANK, GroupTotals, groups_of, lanes_of
from cepheid.engine.kernels.compile import borrowing, inlined, search_kernel
from cepheid.engine.kernels.conditions import Scratch, holds, new_scratch
from cepheid.engine.kernels.negation import BEFORE, BEHIND, FIRST_EVENT, LAST_EVENT, kills
from cepheid.engine.kernels.query import Query, find_absent, room_for_absent
from cepheid.engine.kernels.sliding_sums import Task, add_up_windows
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.sums import (
    LIMBS,
    LaneValues,
    Sums,
    add,
    add_product,
    clear,
    exact_sums,
    new_sums,
    report,
    settle,
    take_event,
)
from cepheid.engine.kernels.windows import in_window
from cepheid.engine.program.carry import NOTHING, TO_BEFORE, carrying, ties
from cepheid.engine.program.compile import compile_program
from cepheid.engine.program.tables import (
    AFTER_PLACE,
    BEFORE_PLACE,
    BEGIN,
    CLOSE,
    CURRENT_AT,
    FIRST_AT,
    KLEENE,
    LAST_AT,
    PREVIOUS_AT,
    TAKE,
    TIME_WINDOW,
    Program,
)
from cepheid.language.bound import BoundSummary
from cepheid.plan.physical import Plan

ANY_FIRST = -1  # all first events at once
# Of `counters`: conditions tested, the event that the table begins with, and how many events of the last place wait to
# be reported together, for which group.
ASKED, BASE, WAITING, GROUP = range(4)
LARGE = 2**61  # values whose sums may be beyond 64 bits


class Waiting(NamedTuple):
    """Sums over the events of the last place that wait to be reported together."""

    together: bool  # is nothing asked of the last place, so that all that ends between two changes is one sum?
    exact: Int64s
    rough: Float64s
    rank: Int64s


class Table(NamedTuple):
    """Sums by place and event, the running sums of each place, and what is reported."""

    sums: Sums  # place * capacity + event - base
    running: (
        Sums  # by place: complete groups, to go on from; places + place: open groups, to add to; one for what waits
    )
    reported: Sums  # by group
    lanes: LaneValues
    group: Int64s  # by event: where a match counts that ends here (if it is postponed: that begins here); -1: nowhere
    filled: Int64Rows  # by place the events that have sums, in order...
    sizes: Int64s  # ... and how many they are
    complete: Int64Rows  # by place and event: may something follow its group?
    tied: Int64Rows  # by place: what its first event (0) and its further ones (1) are tied to
    order: OrderIndex  # what ties them by an order of values
    trees: Sums  # of the prefixes in that order
    waiting: Waiting
    counters: Int64s
    scratch: Scratch
    entries: Int64Rows  # no match buffer: no condition walks one


@inlined
def passes(query: Query, table: Table, moment: int) -> bool:
    """Do the conditions of a moment hold for the events that are written down?"""
    return holds(query.program, query.columns, query.predicate, moment, table.scratch, table.entries, -1)


@inlined
def write_down(query: Query, table: Table, place: int, event: int, first: int) -> None:
    """Writes down the event at hand, and the first one where it is known."""
    at, places = table.scratch.at, query.program.place
    if first >= 0:
        at[places[0, FIRST_AT]] = first
    at[places[place, CURRENT_AT]] = event
    at[places[place, LAST_AT]] = event


@borrowing
def can_start(query: Query, table: Table, event: int, first: int) -> bool:
    """Can a match begin with an event?"""
    if query.events.facts[BEGINS, event] & 1 == 0 or first not in (ANY_FIRST, event):
        return False
    write_down(query, table, 0, event, event)
    return passes(query, table, BEGIN)


@inlined
def can_begin(query: Query, table: Table, place: int, before: int, event: int, first: int) -> bool:
    """Can an event be the first of a place behind an event of the place before it?"""
    program, scratch = query.program, table.scratch
    write_down(query, table, place, event, first)
    scratch.at[program.place[place, FIRST_AT]] = event
    scratch.at[program.place[place - 1, LAST_AT]] = before
    if not passes(query, table, 3 * place + BEGIN):
        return False
    for negation in range(program.negatives):
        if program.negations[negation, AFTER_PLACE] == place - 1 and program.negations[negation, BEFORE_PLACE] == place:
            scratch.between[negation, BEFORE], scratch.between[negation, BEHIND] = before, event
            if kills(query, negation, 3 * program.places + negation, scratch, table.entries, -1):
                return False
    return True


@borrowing
def can_take(query: Query, table: Table, place: int, before: int, event: int, first: int) -> bool:
    """Can an event join a group whose last event is known?"""
    write_down(query, table, place, event, first)
    table.scratch.at[query.program.place[place, PREVIOUS_AT]] = before
    return passes(query, table, 3 * place + TAKE)


@borrowing
def survives(query: Query, table: Table, event: int, first: int) -> bool:
    """Does a complete match survive the components that must not happen before it or after it?"""
    program, between = query.program, table.scratch.between
    for negation in range(program.negatives):
        after, before = program.negations[negation, AFTER_PLACE], program.negations[negation, BEFORE_PLACE]
        if after >= 0 and before >= 0:
            continue
        write_down(query, table, program.places - 1, event, first)
        between[negation, BEFORE] = event if after >= 0 else -1
        between[negation, BEHIND] = first if before >= 0 else -1
        between[negation, FIRST_EVENT], between[negation, LAST_EVENT] = first, event
        if kills(query, negation, 3 * program.places + negation, table.scratch, table.entries, -1):
            return False
    return True


@borrowing
def enter(table: Table, tree: int, event: int, row: int) -> None:
    """Enters what has come to an event into the prefixes that hold it; a row of -1 takes such an entry back."""
    order = table.order
    position, offset, size = order.enters[tree, event], order.span[tree, OFFSET], order.span[tree, SIZE]
    while 0 < position <= size:
        if row < 0:
            clear(table.trees, offset + position)
        else:
            add(table.trees, offset + position, table.sums, row)
        position += position & -position


@borrowing
def add_prefix(table: Table, tree: int, event: int, row: int) -> None:
    """Adds up what an event may follow."""
    position, offset = table.order.below[tree, event], table.order.span[tree, OFFSET]
    while position > 0:
        add(table.sums, row, table.trees, offset + position)
        position -= position & -position


@inlined
def gather(query: Query, table: Table, place: int, event: int, first: int) -> None:
    """Adds up the matches that an event can follow: as the first of a place, and as a further one of its group."""
    program, sums = query.program, table.sums
    capacity, base = table.filled.shape[1], table.counters[BASE]
    row = place * capacity + event - base
    if place > 0 and query.events.facts[BEGINS, event] & (1 << place) != 0:
        if table.tied[place, 0] != TO_BEFORE:
            if table.tied[place, 0] == NOTHING or can_begin(query, table, place, first, event, first):
                add(sums, row, table.running, place - 1)
        elif table.order.tree[place, 0] != NO_TREE:
            add_prefix(table, table.order.tree[place, 0], event, row)
        else:
            table.counters[ASKED] += table.sizes[place - 1]
            for index in range(table.sizes[place - 1]):
                before = table.filled[place - 1, index]
                if table.complete[place - 1, before - base] == 1 and can_begin(
                    query, table, place, before, event, first
                ):
                    add(sums, row, sums, (place - 1) * capacity + before - base)
    if program.place[place, KLEENE] == 1 and query.events.facts[MASK, event] & (1 << place) != 0:
        if table.tied[place, 1] != TO_BEFORE:
            if table.tied[place, 1] == NOTHING or can_take(query, table, place, first, event, first):
                add(sums, row, table.running, program.places + place)
        elif table.order.tree[place, 1] != NO_TREE:
            add_prefix(table, table.order.tree[place, 1], event, row)
        else:
            table.counters[ASKED] += table.sizes[place]
            for index in range(table.sizes[place]):
                before = table.filled[place, index]
                if can_take(query, table, place, before, event, first):
                    add(sums, row, sums, place * capacity + before - base)


@inlined
def is_out_of_reach(query: Query, table: Table, place: int, event: int, first: int) -> bool:
    """Has no match come so far that an event could follow at a place, and can none begin with it?"""
    if query.events.facts[MASK, event] & (1 << place) == 0:
        return True
    if query.program.place[place, KLEENE] == 1 and table.sizes[place] > 0:
        return False
    return first not in (ANY_FIRST, event) if place == 0 else table.sizes[place - 1] == 0


@inlined
def put_off(query: Query, table: Table, place: int, event: int) -> None:
    """Notes an event that ends every match which has come to the place before."""
    waiting, lanes, counters = table.waiting, table.lanes, table.counters
    group = table.group[event]
    if group < 0 or query.events.facts[BEGINS, event] & (1 << place) == 0:
        return
    large = False
    for lane in range(len(lanes.exact_place)):
        before, value = waiting.exact[lane], lanes.exact[lane, event]
        large = large or before < -LARGE or before > LARGE or value < -LARGE or value > LARGE
    if large or group != counters[GROUP]:
        report_together(query, table)
    counters[GROUP] = group
    counters[WAITING] += 1
    for lane in range(len(lanes.exact_place)):
        if lanes.exact_place[lane] == place:
            waiting.exact[lane] += lanes.exact[lane, event]
    for lane in range(len(lanes.rough_place)):
        if lanes.rough_place[lane] == place:
            waiting.rough[lane] += lanes.rough[lane, event]
    for lane in range(len(lanes.rank_place)):
        if lanes.rank_place[lane] == place:
            waiting.rank[lane] = min(waiting.rank[lane], lanes.rank[lane, event])


@borrowing
def report_together(query: Query, table: Table) -> None:
    """Reports what waits: each match that has come to the last place but one, with each of these events."""
    waiting, lanes, counters, sums = table.waiting, table.lanes, table.counters, table.running
    many, last = counters[WAITING], query.program.places - 1
    if many == 0:
        return
    row, exact = 2 * query.program.places, len(lanes.exact_place)
    clear(sums, row)
    add(sums, row, sums, last - 1)
    for lane in range(1 + exact):
        settle(sums, row, lane)
    for lane in range(exact):
        if lanes.exact_place[lane] == last:
            add_product(sums, row, 1 + lane, waiting.exact[lane])
        waiting.exact[lane] = 0
    for lane in range(len(lanes.rough_place)):
        if lanes.rough_place[lane] == last:
            sums.near[row, 1 + exact + lane] += waiting.rough[lane] * sums.near[row, 0]
        else:
            sums.near[row, 1 + exact + lane] *= many
        waiting.rough[lane] = 0.0
    for lane in range(len(lanes.rank_place)):
        sums.least[row, lane] = min(sums.least[row, lane], waiting.rank[lane])
        waiting.rank[lane] = NO_RANK
    for lane in range(1 + exact):
        if lane == 0 or lanes.exact_place[lane - 1] != last:
            for column in range(LIMBS * lane, LIMBS * (lane + 1)):
                sums.pieces[row, column] *= many
            sums.near[row, lane] *= many
            settle(sums, row, lane)
    report(table.reported, counters[GROUP], sums, row)
    counters[WAITING] = 0


@borrowing
def reach(query: Query, table: Table, place: int, event: int, first: int) -> None:
    """The sums of the matches that have come to an event at a place."""
    program, sums = query.program, table.sums
    row = place * table.filled.shape[1] + event - table.counters[BASE]
    clear(sums, row)
    gather(query, table, place, event, first)
    if place == 0 and can_start(query, table, event, first):
        sums.pieces[row, 0] += 1
        sums.near[row, 0] += 1.0
    if sums.near[row, 0] == 0.0:
        return
    take_event(sums, row, table.lanes, place, event)
    write_down(query, table, place, event, first)
    complete = passes(query, table, 3 * place + CLOSE)
    table.complete[place, event - table.counters[BASE]] = 1 if complete else 0
    group = table.group[first if program.postponed else event]
    if complete and group >= 0 and place == program.places - 1 and survives(query, table, event, first):
        report(table.reported, group, sums, row)


@borrowing
def settle_events(query: Query, table: Table, low: int, high: int, place: int) -> None:
    """Concurrent events do not follow each other: what they have come to counts from the next instant on."""
    places, base = query.program.places, table.counters[BASE]
    if place == places - 1 and query.program.place[place, KLEENE] == 0:
        return  # nothing follows it
    for event in range(low, high):
        row = place * table.filled.shape[1] + event - base
        if table.sums.near[row, 0] != 0.0:
            table.filled[place, table.sizes[place]] = event
            table.sizes[place] += 1
            add(table.running, places + place, table.sums, row)
            if table.order.tree[place, 1] != NO_TREE:
                enter(table, table.order.tree[place, 1], event, row)
            if table.complete[place, event - base] == 1:
                if place == places - 2:
                    report_together(query, table)
                add(table.running, place, table.sums, row)
                if place + 1 < places and table.order.tree[place + 1, 0] != NO_TREE:
                    enter(table, table.order.tree[place + 1, 0], event, row)


@borrowing
def follow(query: Query, table: Table, first: int, low: int, end: int) -> None:
    """The sums of all matches of a partition, or of those that begin with one event."""
    events, places = query.events, query.program.places
    table.counters[BASE] = low
    for place in range(places):
        table.sizes[place] = 0
        clear(table.running, place)
        clear(table.running, places + place)
    while low < end and stop_flag() == 0 and (first == ANY_FIRST or in_window(events, query.program, first, low)):
        high = low + 1
        while high < end and events.facts[INSTANT, high] == events.facts[INSTANT, low]:
            high += 1
        came = 0  # bits of the places that something has come to
        for event in range(low, high):
            for place in range(places):
                if is_out_of_reach(query, table, place, event, first):
                    table.sums.near[place * table.filled.shape[1] + event - table.counters[BASE], 0] = 0.0
                elif table.waiting.together and place == places - 1:
                    put_off(query, table, place, event)
                else:
                    reach(query, table, place, event, first)
                    came |= 1 << place
        for place in range(places):
            if came & (1 << place) != 0:
                settle_events(query, table, low, high, place)
        low = high
    report_together(query, table)
    for place in range(places):  # the trees are empty for what follows
        for index in range(table.sizes[place]):
            if table.order.tree[place, 1] != NO_TREE:
                enter(table, table.order.tree[place, 1], table.filled[place, index], -1)
            if place + 1 < places and table.order.tree[place + 1, 0] != NO_TREE:
                enter(table, table.order.tree[place + 1, 0], table.filled[place, index], -1)


@borrowing
def largest_window(events: Events, program: Program, begin: int, end: int) -> int:
    """The most events of a partition that a window holds."""
    most, low = 0, begin
    for high in range(begin, end):
        while not in_window(events, program, low, high):
            low += 1
        most = max(most, high - low + 1)
    return most


@borrowing
def may_start(events: Events, program: Program, group: Int64s, event: int, after: int) -> bool:
    """Could a match that starts here be known in the interval that is asked for?"""
    if events.facts[BEGINS, event] & 1 == 0 or (program.postponed and group[event] < 0):
        return False
    if program.window_kind == TIME_WINDOW and not program.postponed:
        return bool(events.facts[TIME, event] + (program.window - 1) > after)
    return True


@borrowing
def ends_together(program: Program, tied: Int64Rows) -> bool:
    """Does each event of the last place end all matches that have come to the place before?"""
    last = program.places - 1
    closes = program.moments[3 * last + CLOSE] < program.moments[3 * last + CLOSE + 1]
    alone = last > 0 and program.place[last, KLEENE] == 0 and tied[last, 0] == NOTHING
    return bool(alone and not closes and program.negatives == 0 and not program.postponed)


class Wanted(NamedTuple):
    """What is asked of the kernel."""

    groups: int
    after: int
    needs_first: bool
    tied: Int64Rows


@search_kernel
def add_up(
    events: Events,
    program: Program,
    columns: Columns,
    predicate: PredicateCall,
    lanes: LaneValues,
    group: Int64s,
    order: OrderIndex,
    widths: Int64s,
    wanted: Wanted,
) -> tuple[Sums, Int64s]:
    """The sums of every group, over all partitions."""
    capacity = 1
    for part in range(len(events.starts) - 1):
        begin, end = events.starts[part], events.starts[part + 1]
        capacity = max(capacity, largest_window(events, program, begin, end))
    table = Table(
        new_sums(program.places * capacity, lanes),
        new_sums(2 * program.places + 1, lanes),
        new_sums(wanted.groups, lanes),
        lanes,
        group,
        np.zeros((program.places, capacity), np.int64),
        np.zeros(program.places, np.int64),
        np.zeros((program.places, capacity), np.int64),
        wanted.tied,
        order,
        new_sums(order.span[:, SIZE].sum() + len(order.span), lanes),
        Waiting(
            ends_together(program, wanted.tied),
            np.zeros(len(lanes.exact_place), np.int64),
            np.zeros(len(lanes.rough_place)),
            np.full(len(lanes.rank_place), NO_RANK, np.int64),
        ),
        np.zeros(4, np.int64),
        new_scratch(widths[0], widths[1], widths[2], 0),
        np.zeros((0, 4), np.int64),
    )
    query = Query(events, program, columns, predicate, room_for_absent(events, program))
    for part in range(len(events.starts) - 1):
        begin, end = events.starts[part], events.starts[part + 1]
        find_absent(events, program, part, query.absent)
        if begin < end and not wanted.needs_first and in_window(events, program, begin, end - 1):
            follow(query, table, ANY_FIRST, begin, end)
            continue
        for first in range(begin, end):
            if may_start(events, program, group, first, wanted.after):
                follow(query, table, first, first, end)
    return table.reported, table.counters


def nothing_tied(program: Program) -> bool:
    """Is each event of a match judged by itself, so that only the window ties them?"""
    return program.negatives == 0 and bool((program.moments == program.moments[0]).all())


def total(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> GroupTotals | None:
    """The totals over the matches with after < completion <= until; None: they can only be had by listing."""
    plan, events = with_endings(plan, events)
    bound = plan.bound
    how = carrying(bound)
    if how.refused is not None:
        return None
    found = candidates(plan, events)
    laid_out = lay_out(bound, events, found)
    if len(found.compared) > 0 or not laid_out.ordered:
        return None  # equality is tested between all events of a match, and only some of them are at hand
    compiled = compile_program(bound)
    columns = fill(compiled.layout, events.table, found.rows, bound.schema)
    completion = found.due if bound.postponed else found.time
    wanted = ((completion > after) & (completion <= until)).astype(np.int64)
    groups = groups_of(summary, events, found.rows, completion, wanted)
    lanes = lanes_of(bound, summary, events).at(found.rows)
    values = LaneValues(lanes.exact, lanes.exact_place, lanes.rough, lanes.rough_place, lanes.rank, lanes.rank_place)
    program, asked = compiled.program, 0
    if bound.window is not None and nothing_tied(program) and not bound.postponed and not how.needs_first:
        reported = add_up_windows(Task(laid_out, program, values, groups.group), len(groups.rows))
    else:
        reported, counters = add_up(
            laid_out,
            program,
            columns,
            compiled.predicate.call,
            values,
            groups.group,
            order_index(bound, compiled.layout, columns, len(found)),
            np.array([compiled.slots, compiled.whole, compiled.number], np.int64),
            Wanted(len(groups.rows), after, how.needs_first, ties(bound, program)),
        )
        asked = int(counters[ASKED])
    has = np.flatnonzero(reported.near[:, 0] != 0)
    exact = exact_sums(Sums(reported.pieces[has], reported.near[has], reported.least[has]), 1 + len(lanes.exact))
    seen = {"scanned": found.scanned, "candidates": len(found), "evaluations": asked}
    return GroupTotals(
        lanes, groups.rows[has], groups.bucket[has], exact, reported.near[has], reported.least[has], seen
    )
