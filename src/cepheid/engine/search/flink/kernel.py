"""The walk: every run is extended by every event, in the order in which Flink extends them.

Runs and complete matches stand in binary heaps laid out as Java's, ordered by the event they began with: where two
began with the same one, the layout decides which is reported first, and with a strategy that skips, which one wins.
What a run took is a chain of nodes that runs share; a run is its state, its last node and its first event.
"""

from __future__ import annotations

import numpy as np
from numba import types

from cepheid.engine.data.columns import INT64_ROWS, INT64S
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, kernel, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.flink.heaps import BEGAN, NODE, STATE, drop_earlier, drop_first, push
from cepheid.engine.search.flink.judge import Nodes, formula_holds
from cepheid.engine.search.flink.machine import (
    ARRIVED,
    AT,
    BITS,
    COLLECT_AT,
    COMPLETE,
    CONDITIONS,
    EVENTS,
    EVENTS_REPORTED,
    FAILURE,
    FINAL,
    FOLLOWING,
    IGNORE,
    INT,
    LATEST,
    MACHINE,
    NEAREST,
    NEXT_NEAREST,
    NEXT_PRESENT,
    NO_SKIP,
    NOBODY,
    NODES,
    NOW,
    PAST_LAST,
    PENDING,
    PRESENT,
    PROCEED,
    REPORTED,
    REPORTS,
    ROOM,
    RUNNING,
    STOP,
    TAKE,
    TO_FIRST,
    TO_NEXT,
    Conditions,
    Events,
    Machine,
    Reported,
    Room,
)

OUT_OF_ROOM = -1
MISSED, AT_ITS_START = 1, 2  # what a strict strategy may run into
COLLECT = 1 << 16  # nodes at which those that no run needs are dropped


@borrowing(INT(MACHINE, CONDITIONS, ROOM, INT, INT, INT))
def open_edges(machine: Machine, conditions: Conditions, room: Room, state: int, node: int, row: int) -> int:
    """The edges that take or ignore the event, from a state and those it proceeds to; how many, or OUT_OF_ROOM."""
    nodes, values, stack, edges = room.nodes, room.values, room.stack, room.edges
    stack[0] = state
    depth, found = 1, 0
    while depth:
        depth -= 1
        at = stack[depth]
        for edge in range(machine.first_edge[at], machine.first_edge[at + 1]):
            if formula_holds(conditions, nodes, values, machine.formula[edge], row, node):
                if machine.action[edge] == PROCEED:
                    if depth == len(stack):
                        return OUT_OF_ROOM
                    stack[depth] = machine.target[edge]
                    depth += 1
                else:
                    if found == len(edges):
                        return OUT_OF_ROOM
                    edges[found] = edge
                    found += 1
    return found


@borrowing(types.boolean(MACHINE, CONDITIONS, ROOM, INT, INT, INT))
def is_final_after(machine: Machine, conditions: Conditions, room: Room, state: int, node: int, row: int) -> bool:
    """Is the end reached from a state without a further event?"""
    nodes, values, stack = room.nodes, room.values, room.stack
    stack[0] = state
    depth = 1
    while depth:
        depth -= 1
        at = stack[depth]
        for edge in range(machine.first_edge[at], machine.first_edge[at + 1]):
            if machine.action[edge] == PROCEED and formula_holds(
                conditions, nodes, values, machine.formula[edge], row, node
            ):
                if machine.kind[machine.target[edge]] == FINAL:
                    return True
                if depth < len(stack):
                    stack[depth] = machine.target[edge]
                    depth += 1
    return False


@borrowing(INT(MACHINE, INT64S, INT64_ROWS, INT, INT, INT))
def deadline_of(machine: Machine, time: Int64s, nodes: Nodes, state: int, node: int, began: int) -> int:
    """When a run is given up; LATEST: never."""
    found = LATEST
    if node >= 0:
        if machine.window > 0:
            found = time[began] + machine.window
        if machine.gap[state] > 0:
            found = min(found, time[nodes[node, 0]] + machine.gap[state])
    return found


@borrowing(INT(MACHINE, INT64_ROWS, INT, INT))
def skipped_before(machine: Machine, nodes: Nodes, node: int, began: int) -> int:
    """Runs that began before this row are dropped after a match; or -MISSED, -AT_ITS_START."""
    if machine.skip == NO_SKIP:
        return 0
    if machine.skip == TO_NEXT:
        return began + 1
    if machine.skip == PAST_LAST:
        return int(nodes[node, 0]) + 1
    limit = -1
    while node >= 0:
        if nodes[node, 1] == machine.skip_step:
            limit = nodes[node, 0]
            if machine.skip != TO_FIRST:
                break
        node = nodes[node, 2]
    if machine.strict and limit < 0:
        return -MISSED
    if machine.strict and limit == began:
        return -AT_ITS_START
    return max(limit, 0)


@borrowing(types.boolean(REPORTED, INT64S, INT))
def has_room(out: Reported, counts: Int64s, length: int) -> bool:
    """Is there room for one more run with so many events?"""
    return bool(counts[REPORTS] + 1 < len(out.first) and counts[EVENTS_REPORTED] + length <= len(out.row))


@kernel(REPORTED(REPORTED, INT64S, INT64_ROWS, INT, INT, INT, INT))
def report(
    out: Reported, counts: Int64s, nodes: Nodes, node: int, partition: int, waiting: int, given_up: int
) -> Reported:
    """Adds what a run took to the result, which grows where it must."""
    length, at = 0, node
    while at >= 0:
        length += 1
        at = nodes[at, 2]
    while not has_room(out, counts, length):
        if counts[REPORTS] + 1 >= len(out.first):
            numbers = grown(out.partition), grown(out.first), grown(out.waiting), grown(out.given_up)
            out = Reported(numbers[0], numbers[1], out.row, out.step, numbers[2], numbers[3])
        else:
            out = Reported(out.partition, out.first, grown(out.row), grown(out.step), out.waiting, out.given_up)
    number, used = counts[REPORTS], counts[EVENTS_REPORTED]
    at, place = node, used + length
    while at >= 0:
        place -= 1
        out.row[place], out.step[place] = nodes[at, 0], nodes[at, 1]
        at = nodes[at, 2]
    out.partition[number], out.waiting[number], out.given_up[number] = partition, waiting, given_up
    out.first[number + 1] = used + length
    counts[REPORTS] = number + 1
    counts[EVENTS_REPORTED] = used + length
    return out


@kernel(types.void(ROOM))
def collect(room: Room) -> None:
    """Drops the nodes that no run needs."""
    counts, nodes = room.counts, room.nodes
    place = np.full(counts[NODES], -1, np.int64)
    for heap, length in ((room.runs, counts[RUNNING]), (room.complete, counts[COMPLETE])):
        for number in range(length):
            at = heap[number, NODE]
            while at >= 0 and place[at] < 0:
                place[at] = 0
                at = nodes[at, 2]
    kept = 0
    for at in range(counts[NODES]):
        if place[at] == 0:
            place[at] = kept
            before = nodes[at, 2]
            nodes[kept, 0], nodes[kept, 1] = nodes[at, 0], nodes[at, 1]
            nodes[kept, 2] = place[before] if before >= 0 else -1
            kept += 1
    for heap, length in ((room.runs, counts[RUNNING]), (room.complete, counts[COMPLETE])):
        for number in range(length):
            if heap[number, NODE] >= 0:
                heap[number, NODE] = place[heap[number, NODE]]
    counts[NODES] = kept
    counts[COLLECT_AT] = max(COLLECT, 4 * kept)


@kernel(ROOM(ROOM))
def enlarged(room: Room) -> Room:
    """The same with room for another run's moves."""
    counts, fan = room.counts, 2 * len(room.edges) + 2
    runs, following = room.runs, room.following
    arrived, complete, nodes = room.arrived, room.complete, room.nodes
    while counts[FOLLOWING] + fan > len(following):
        runs, following = grown_rows(runs), grown_rows(following)
    while counts[ARRIVED] + fan > len(arrived):
        arrived = grown_rows(arrived)
    while counts[NODES] + fan > len(nodes):
        nodes = grown_rows(nodes)
    while counts[COMPLETE] + counts[ARRIVED] + fan > len(complete):
        complete = grown_rows(complete)
    return Room(runs, following, arrived, complete, nodes, room.edges, room.stack, room.values, counts)


@borrowing(types.boolean(ROOM))
def is_crowded(room: Room) -> bool:
    """Might the moves of another run not fit?"""
    counts, fan = room.counts, 2 * len(room.edges) + 2
    if counts[FOLLOWING] + fan > len(room.following) or counts[NODES] + fan > len(room.nodes):
        return True
    return bool(
        counts[ARRIVED] + fan > len(room.arrived) or counts[COMPLETE] + counts[ARRIVED] + fan > len(room.complete)
    )


@borrowing(types.void(ROOM))
def turn(room: Room) -> None:
    """The runs that follow become those that run."""
    counts = room.counts
    for number in range(counts[FOLLOWING]):
        room.runs[number, 0] = room.following[number, 0]
        room.runs[number, 1] = room.following[number, 1]
        room.runs[number, 2] = room.following[number, 2]
    counts[RUNNING], counts[FOLLOWING] = counts[FOLLOWING], 0
    counts[NEAREST], counts[NEXT_NEAREST] = counts[NEXT_NEAREST], LATEST
    counts[PRESENT], counts[NEXT_PRESENT] = counts[NEXT_PRESENT], 0


# --- moves ----------------------------------------------------------------------------------------------------------


@borrowing(types.void(MACHINE, INT64S, ROOM, INT, INT, INT))
def keep(machine: Machine, time: Int64s, room: Room, state: int, node: int, began: int) -> None:
    """A run goes on, or is complete."""
    counts = room.counts
    if machine.kind[state] == FINAL:
        counts[ARRIVED] = push(room.arrived, counts[ARRIVED], state, node, began)
    else:
        counts[FOLLOWING] = push(room.following, counts[FOLLOWING], state, node, began)
        deadline = deadline_of(machine, time, room.nodes, state, node, began)
        counts[NEXT_NEAREST] = min(counts[NEXT_NEAREST], deadline)
        counts[NEXT_PRESENT] |= 1 << min(state, BITS)


@borrowing(types.void(MACHINE, CONDITIONS, INT64S, ROOM, INT, INT))
def extend(machine: Machine, conditions: Conditions, time: Int64s, room: Room, number: int, row: int) -> None:
    """All that a run becomes with an event."""
    counts, nodes = room.counts, room.nodes
    state, node, began = room.runs[number, STATE], room.runs[number, NODE], room.runs[number, BEGAN]
    is_start = node < 0
    found = open_edges(machine, conditions, room, state, node, row)
    if found < 0:
        counts[FAILURE] = OUT_OF_ROOM
        return
    stopped = False
    for at in range(found):
        stopped |= machine.kind[machine.target[room.edges[at]]] == STOP
    for at in range(found):
        edge = room.edges[at]
        target = machine.target[edge]
        # A run that may not go on can still be complete; what it took last is needed for that alone.
        passes = machine.action[edge] != TAKE or machine.kind[target] == STOP
        if stopped and passes and machine.kind[target] != FINAL:
            continue
        if machine.action[edge] == IGNORE:
            if not is_start:
                keep(machine, time, room, target, node, began)
            continue
        taken = counts[NODES]
        nodes[taken, 0], nodes[taken, 1], nodes[taken, 2] = row, machine.step[machine.source[edge]], node
        counts[NODES] = taken + 1
        first = row if is_start else began
        if not stopped or machine.kind[target] == FINAL:
            keep(machine, time, room, target, taken, first)
        if is_final_after(machine, conditions, room, target, node, row):
            keep(machine, time, room, machine.final, taken, first)
    if is_start and not stopped:
        keep(machine, time, room, state, -1, NOBODY)


@borrowing(types.boolean(MACHINE, CONDITIONS, EVENTS, ROOM, INT))
def extend_all(machine: Machine, conditions: Conditions, events: Events, room: Room, row: int) -> bool:
    """Extends the runs that are left by an event; False: the moves of the next one might not fit."""
    counts, active = room.counts, events.active[row]
    while counts[AT] < counts[RUNNING]:
        if is_crowded(room):
            return False
        state = room.runs[counts[AT], STATE]
        if (active >> min(state, BITS)) & 1:
            extend(machine, conditions, events.time, room, counts[AT], row)
        else:  # it waits on
            keep(machine, events.time, room, state, room.runs[counts[AT], NODE], room.runs[counts[AT], BEGAN])
        counts[AT] += 1
    return True


@kernel(types.Tuple((ROOM, REPORTED))(MACHINE, ROOM, REPORTED, INT))
def settle(machine: Machine, room: Room, out: Reported, partition: int) -> tuple[Room, Reported]:
    """Reports complete matches; a strategy that skips waits until no run that began earlier could win."""
    counts = room.counts
    if counts[COMPLETE] + counts[ARRIVED] > len(room.complete):
        room = enlarged(room)
    for number in range(counts[ARRIVED]):
        state, node, began = room.arrived[number, STATE], room.arrived[number, NODE], room.arrived[number, BEGAN]
        counts[COMPLETE] = push(room.complete, counts[COMPLETE], state, node, began)
    counts[ARRIVED] = 0
    while counts[COMPLETE]:
        node, began = room.complete[0, NODE], room.complete[0, BEGAN]
        if machine.skip != NO_SKIP and counts[FOLLOWING] and began > room.following[0, BEGAN]:
            break
        counts[COMPLETE] = drop_first(room.complete, counts[COMPLETE])
        limit = skipped_before(machine, room.nodes, node, began)
        if limit < 0:
            counts[FAILURE] = -limit
            break
        if limit > 0:
            counts[FOLLOWING] = drop_earlier(room.following, counts[FOLLOWING], limit)
            counts[COMPLETE] = drop_earlier(room.complete, counts[COMPLETE], limit)
        out = report(out, counts, room.nodes, node, partition, -1, 0)
    return room, out


@kernel(types.Tuple((ROOM, REPORTED))(MACHINE, INT64S, ROOM, REPORTED, INT, INT))
def give_up(
    machine: Machine, time: Int64s, room: Room, out: Reported, partition: int, now: int
) -> tuple[Room, Reported]:
    """Runs whose window has passed are given up; those that only waited for that are complete."""
    counts = room.counts
    for number in range(counts[RUNNING]):
        if is_crowded(room):
            room = enlarged(room)
        state, node, began = room.runs[number, STATE], room.runs[number, NODE], room.runs[number, BEGAN]
        deadline = deadline_of(machine, time, room.nodes, state, node, began)
        if deadline > now:
            keep(machine, time, room, state, node, began)
        elif machine.kind[state] == PENDING:
            counts[ARRIVED] = push(room.arrived, counts[ARRIVED], state, node, began)
        elif machine.partial:
            out = report(out, counts, room.nodes, node, partition, state, deadline)
    room, out = settle(machine, room, out, partition)
    turn(room)
    return room, out


@borrowing(INT(EVENTS, INT64S, INT, INT))
def next_active(events: Events, counts: Int64s, row: int, high: int) -> int:
    """The next event, from a row on, at which a run does something or is given up."""
    present, nearest = counts[PRESENT], counts[NEAREST]
    while row < high and not events.active[row] & present and events.time[row] < nearest:
        row += 1
    return row


# --- all partitions -------------------------------------------------------------------------------------------------


@kernel(ROOM(MACHINE, INT64S, ROOM, REPORTED, INT, INT))
def resumed(machine: Machine, time: Int64s, room: Room, known: Reported, low: int, high: int) -> Room:
    """The runs low to high of an earlier call, in the order of their heaps; without any, the one that waits."""
    counts = room.counts
    counts[RUNNING] = counts[COMPLETE] = counts[NODES] = counts[FOLLOWING] = counts[ARRIVED] = 0
    counts[NEXT_NEAREST], counts[NEXT_PRESENT] = LATEST, 0
    counts[NOW] = -LATEST
    counts[COLLECT_AT] = COLLECT
    if low == high:
        keep(machine, time, room, machine.start, -1, NOBODY)
    for run in range(low, high):
        while counts[NODES] + known.first[run + 1] - known.first[run] + len(room.edges) > len(room.nodes):
            room = with_nodes(room)
        if is_crowded(room):
            room = enlarged(room)
        node, began = -1, NOBODY
        for at in range(known.first[run], known.first[run + 1]):
            taken = counts[NODES]
            room.nodes[taken, 0], room.nodes[taken, 1], room.nodes[taken, 2] = known.row[at], known.step[at], node
            counts[NODES] = taken + 1
            began = known.row[at] if node < 0 else began
            node = taken
        if known.given_up[run]:
            counts[COMPLETE] = push(room.complete, counts[COMPLETE], known.waiting[run], node, began)
        else:
            keep(machine, time, room, known.waiting[run], node, began)
    turn(room)
    return room


@kernel(ROOM(ROOM))
def with_nodes(room: Room) -> Room:
    """The same with room for more nodes."""
    return Room(
        room.runs,
        room.following,
        room.arrived,
        room.complete,
        grown_rows(room.nodes),
        room.edges,
        room.stack,
        room.values,
        room.counts,
    )


@kernel(REPORTED(ROOM, REPORTED, INT64S, INT))
def suspended(room: Room, kept: Reported, kept_counts: Int64s, partition: int) -> Reported:
    """Adds the runs of a partition to those that a later call goes on with."""
    for number in range(room.counts[RUNNING]):
        state, node = room.runs[number, STATE], room.runs[number, NODE]
        kept = report(kept, kept_counts, room.nodes, node, partition, state, 0)
    for number in range(room.counts[COMPLETE]):
        state, node = room.complete[number, STATE], room.complete[number, NODE]
        kept = report(kept, kept_counts, room.nodes, node, partition, state, 1)
    return kept


@kernel(REPORTED())
def nothing() -> Reported:
    """No run."""
    first = np.zeros(64, np.int64)
    empty = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    return Reported(empty[0], first, np.empty(256, np.int64), np.empty(256, np.int64), empty[1], empty[2])


@kernel(REPORTED(REPORTED, INT64S))
def trimmed(out: Reported, counts: Int64s) -> Reported:
    """A result without its spare room."""
    number, used = counts[REPORTS], counts[EVENTS_REPORTED]
    return Reported(
        out.partition[:number].copy(),
        out.first[: number + 1].copy(),
        out.row[:used].copy(),
        out.step[:used].copy(),
        out.waiting[:number].copy(),
        out.given_up[:number].copy(),
    )


@search_kernel(types.Tuple((REPORTED, REPORTED, INT))(MACHINE, CONDITIONS, EVENTS, REPORTED, ROOM))
def walk(
    machine: Machine, conditions: Conditions, events: Events, known: Reported, room: Room
) -> tuple[Reported, Reported, int]:
    """What is reported, the runs that go on, and why it failed (0: it did not).

    `known` are the runs of an earlier call, by partition. After its last event a partition's time passes to the end.
    """
    out, kept = nothing(), nothing()
    kept_counts = np.zeros(len(room.counts), np.int64)
    counts = room.counts
    low = 0
    for partition in range(len(events.bounds) - 1):
        high = low
        while high < len(known.partition) and known.partition[high] == partition:
            high += 1
        room = resumed(machine, events.time, room, known, low, high)
        low = high
        row, last = events.begin[partition], events.bounds[partition + 1]
        row = next_active(events, counts, row, last)
        while row < last:
            is_later = events.time[row] > counts[NOW]
            counts[NOW] = events.time[row]
            while is_later and counts[NEAREST] <= counts[NOW]:
                room, out = give_up(machine, events.time, room, out, partition, counts[NEAREST])
            counts[AT] = 0
            while not extend_all(machine, conditions, events, room, row):
                room = enlarged(room)
            if counts[ARRIVED] or counts[COMPLETE]:
                room, out = settle(machine, room, out, partition)
            turn(room)
            if counts[NODES] > counts[COLLECT_AT]:
                collect(room)
            if counts[FAILURE] or stop_flag():
                return trimmed(out, counts), trimmed(kept, kept_counts), counts[FAILURE]
            row = next_active(events, counts, row + 1, last)
        while counts[NEAREST] <= events.end:
            if counts[NEAREST] == LATEST:
                break
            room, out = give_up(machine, events.time, room, out, partition, counts[NEAREST])
        if counts[FAILURE]:
            break
        if events.goes_on:
            kept = suspended(room, kept, kept_counts, partition)
    return trimmed(out, counts), trimmed(kept, kept_counts), counts[FAILURE]
