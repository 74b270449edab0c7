"""Totals in sliding windows, where no condition ties events of a match together: one pass, whatever the window holds.

Time is cut into blocks that a window spans. A match ends in the block that it began in, or in the next one. Those of
one block are added up as they are met. For those that cross over, two things are known for each place j: what the
matches have come to that began at some instant or later and stood at j when their block ended (`begun`, made
backwards), and what goes on from j to the event at hand (`onward`, made forwards). Their product, summed over j, is
what ends here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import BEGINS, INSTANT, MASK, Events
from cepheid.engine.kernels.compile import borrowing, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.sum_products import add_pairs, carry_over
from cepheid.engine.kernels.sums import (
    LIMBS,
    LaneValues,
    Sums,
    add,
    clear,
    new_sums,
    report,
    take_event,
)
from cepheid.engine.kernels.windows import in_window
from cepheid.engine.program.tables import KLEENE, Program


class Task(NamedTuple):
    """What is added up, of which events."""

    events: Events
    program: Program
    lanes: LaneValues
    group: Int64s  # by event: where a match counts that ends here; -1: nowhere


class Blocks(NamedTuple):
    """What is known of the block at hand and of the one before it."""

    onward: Sums  # from * places + to; the last `from` is a beginning in this block
    fresh: Sums  # the same of the instant at hand, which counts from the next one on
    ends: Sums  # by `from`: what ends with the event at hand
    begun: Sums  # (event - its block's first) * places + place
    back: Sums  # from * places + to, up to the end of the block
    step: Sums  # one row to work on...
    pieces: Int64Rows  # ... and pieces of products


@borrowing
def next_instant(events: Events, event: int, end: int) -> int:
    """The first event after those at the time of this one."""
    later = event + 1
    while later < end and events.facts[INSTANT, later] == events.facts[INSTANT, event]:
        later += 1
    return later


@borrowing
def block_end(events: Events, program: Program, begin: int, end: int) -> int:
    """Where the block ends that begins here: behind the last event that shares a window with its first one."""
    event = begin
    while event < end and in_window(events, program, begin, event):
        event += 1
    return event


@borrowing
def clear_all(sums: Sums) -> None:
    """Makes every row nothing."""
    for row in range(len(sums.near)):
        clear(sums, row)


@borrowing
def one_match(sums: Sums, row: int) -> None:
    """Makes a row one match without events."""
    clear(sums, row)
    sums.pieces[row, 0] = 1
    sums.near[row, 0] = 1.0


@borrowing
def advance(task: Task, blocks: Blocks, event: int, origin: int) -> None:
    """What an event adds to the matches that come from a place of the block before, or that began in this one."""
    events, program, lanes, _ = task
    places, step = program.places, blocks.step
    for place in range(places):
        begins = events.facts[BEGINS, event] & (1 << place) != 0
        clear(step, 0)
        if begins and place == 0 and origin == places:
            one_match(step, 0)
        elif begins and place > 0:
            add(step, 0, blocks.onward, origin * places + place - 1)
        if program.place[place, KLEENE] == 1 and events.facts[MASK, event] & (1 << place) != 0:
            add(step, 0, blocks.onward, origin * places + place)
        if step.near[0, 0] == 0.0:
            continue
        take_event(step, 0, lanes, place, event)
        add(blocks.fresh, origin * places + place, step, 0)
        if place == places - 1:
            add(blocks.ends, origin, step, 0)


@borrowing
def settle_all(sums: Sums, fresh: Sums) -> None:
    """Adds what is new to what there was, and makes it nothing."""
    for row in range(len(sums.near)):
        if fresh.near[row, 0] != 0.0:
            add(sums, row, fresh, row)
            carry_over(sums, row)
            clear(fresh, row)


@borrowing
def go_forward(task: Task, blocks: Blocks, reported: Sums, before: int, begin: int, end: int) -> None:
    """Reports the matches that end in a block; `before` is where the block before it begins, or this one if none."""
    events, program, _, group = task
    places = program.places
    least = 0 if before < begin else places  # without a block before there is one origin
    clear_all(blocks.onward)
    clear_all(blocks.fresh)
    for place in range(places):
        one_match(blocks.onward, place * places + place)
    first, low = before, begin
    while low < end and stop_flag() == 0:
        high = next_instant(events, low, end)
        while first < begin and not in_window(events, program, first, low):
            first = next_instant(events, first, begin)
        for event in range(low, high):
            clear_all(blocks.ends)
            for origin in range(least, places + 1):
                advance(task, blocks, event, origin)
            if group[event] < 0:
                continue
            report(reported, group[event], blocks.ends, places)
            if first < begin:
                clear(blocks.step, 0)
                for origin in range(places):
                    carry_over(blocks.ends, origin)
                    row = (first - before) * places + origin
                    add_pairs(blocks.step, 0, blocks.ends, origin, blocks.begun, row, blocks.pieces)
                report(reported, group[event], blocks.step, 0)
        settle_all(blocks.onward, blocks.fresh)
        low = high


@borrowing
def retreat(task: Task, blocks: Blocks, event: int, row: int) -> None:
    """What an event adds to the ways to the end of its block: from the places it can follow, and from itself."""
    events, program, lanes, _ = task
    places, back, step = program.places, blocks.back, blocks.step
    for place in range(places):
        begins = events.facts[BEGINS, event] & (1 << place) != 0
        takes = program.place[place, KLEENE] == 1 and events.facts[MASK, event] & (1 << place) != 0
        if not begins and not takes:
            continue
        for to in range(place, places):
            if back.near[place * places + to, 0] == 0.0:
                continue
            clear(step, 0)
            add(step, 0, back, place * places + to)
            take_event(step, 0, lanes, place, event)
            if begins and place == 0:
                add(blocks.begun, row + to, step, 0)
            elif begins:
                add(blocks.fresh, (place - 1) * places + to, step, 0)
            if takes:
                add(blocks.fresh, place * places + to, step, 0)


@borrowing
def go_back(task: Task, blocks: Blocks, begin: int, end: int) -> None:
    """For each instant of a block: what began there or later has come to when the block ends."""
    events, program, _, _ = task
    places = program.places
    clear_all(blocks.back)
    clear_all(blocks.fresh)
    for place in range(places):
        one_match(blocks.back, place * places + place)
    high = end
    while high > begin and stop_flag() == 0:
        low = high - 1
        while low > begin and events.facts[INSTANT, low - 1] == events.facts[INSTANT, low]:
            low -= 1
        row = (low - begin) * places
        for place in range(places):
            clear(blocks.begun, row + place)
            if high < end:
                add(blocks.begun, row + place, blocks.begun, (high - begin) * places + place)
        for event in range(low, high):
            retreat(task, blocks, event, row)
        for place in range(places):
            carry_over(blocks.begun, row + place)
        settle_all(blocks.back, blocks.fresh)
        high = low


@search_kernel
def add_up_windows(task: Task, groups: int) -> Sums:
    """The sums of every group, over all partitions."""
    events, program, lanes, _ = task
    places, longest = program.places, 1
    for part in range(len(events.starts) - 1):
        begin, end = events.starts[part], events.starts[part + 1]
        while begin < end:
            stop = block_end(events, program, begin, end)
            longest = max(longest, stop - begin)
            begin = stop
    blocks = Blocks(
        new_sums((places + 1) * places, lanes),
        new_sums((places + 1) * places, lanes),
        new_sums(places + 1, lanes),
        new_sums(longest * places, lanes),
        new_sums(places * places, lanes),
        new_sums(1, lanes),
        np.zeros((3, LIMBS), np.int64),
    )
    reported = new_sums(groups, lanes)
    for part in range(len(events.starts) - 1):
        begin, end = events.starts[part], events.starts[part + 1]
        before = begin
        while begin < end and stop_flag() == 0:
            stop = block_end(events, program, begin, end)
            go_forward(task, blocks, reported, before, begin, stop)
            if stop < end:
                go_back(task, blocks, begin, stop)
            before, begin = begin, stop
    return reported
