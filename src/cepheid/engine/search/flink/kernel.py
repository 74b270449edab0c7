"""The walk: every run is extended by every event, in the order in which Flink extends them.

Flink keeps runs and complete matches in binary heaps, ordered by the event they began with; where two began with the
same one, the layout decides which is reported first, and with a strategy that skips, which one wins. Runs are always in
order (see `Room`), so for them the heap is a plain array; complete matches stand in a heap laid out as Java's.
What a run took is a chain of nodes that runs share; a run is its state, its last node and its first event.

Functions that work on the runs make no arrays: where room is short they return what they need and are called again.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.columns import PredicateCall
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.kernels.arrays import grown_rows
from cepheid.engine.kernels.compile import borrowing, inlined, kernel, search_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.flink.deadlines import deadline_of, give_up, look_for_nearest, report_given_up
from cepheid.engine.search.flink.evaluate import Nodes, atom_holds, remember
from cepheid.engine.search.flink.heaps import drop_earlier, drop_first, push
from cepheid.engine.search.flink.machine import (
    AGAIN,
    ARRIVED,
    AT,
    AT_ROW,
    BEFORE,
    BEGAN,
    BITS,
    COLLECT_AT,
    COMPLETE,
    FAILURE,
    FINAL,
    GIVEN_UP,
    HEAD,
    LATEST,
    LEFT,
    LENGTH,
    MOST_REPORTS,
    MOST_RUNS,
    NEAREST,
    NEXT_PRESENT,
    NO_SKIP,
    NOBODY,
    NODE,
    NODES,
    PASSED,
    PAST_LAST,
    PHASE,
    PRESENT,
    REPORTS,
    ROW,
    STATE,
    STEP,
    TAIL,
    TAKE,
    TO_FIRST,
    TO_NEXT,
    WAIT,
    WRITTEN,
    Conditions,
    Events,
    Machine,
    Room,
)
from cepheid.engine.search.flink.reports import (
    A_LOOK,
    AT_ITS_START,
    COLLECTION,
    DONE,
    MISSED,
    MORE_ARRIVED,
    MORE_COMPLETE,
    MORE_EVENTS,
    MORE_NODES,
    MORE_REPORTS,
    MORE_RUNS,
    TOO_MANY_MATCHES,
    TOO_MANY_RUNS,
    enlarged_result,
    lacking_room,
    nothing,
    report,
    trimmed,
)

COLLECT = 1 << 16  # nodes at which those that no run needs are dropped
# What is done with an event: the next one is looked for, time passes up to it, runs are extended, matches are reported.
SEEKING, PASSING, EXTENDING, SETTLING = range(4)
UNTIL_A_LOOK = 1 << 14  # runs to be extended after which one looks whether the search is to stop


@borrowing
def skipped_before(machine: Machine, nodes: Nodes, node: int, began: int) -> int:
    """Runs that began before this row are dropped after a match; or -MISSED, -AT_ITS_START."""
    if machine.skip == NO_SKIP:
        return 0
    if machine.skip == TO_NEXT:
        return began + 1
    if machine.skip == PAST_LAST:
        return int(nodes[node, ROW]) + 1
    limit = -1
    while node >= 0:
        if nodes[node, STEP] == machine.skip_step:
            limit = nodes[node, ROW]
            if machine.skip != TO_FIRST:
                break
        node = nodes[node, BEFORE]
    if machine.strict and limit < 0:
        return -MISSED
    if machine.strict and limit == began:
        return -AT_ITS_START
    return max(limit, 0)


# --- room for runs --------------------------------------------------------------------------------------------------


@borrowing
def mark_nodes(room: Room, place: Int64s) -> None:
    """Writes 0 for the nodes that runs need, where -1 is."""
    counts, nodes = room.counts, room.nodes
    for heap, low, high in ((room.runs, counts[HEAD], counts[TAIL]), (room.complete, 0, counts[COMPLETE])):
        for number in range(low, high):
            at = heap[number, NODE]
            while at >= 0 and place[at] < 0:
                place[at] = 0
                at = nodes[at, BEFORE]


@kernel
def keep_marked(room: Room, place: Int64s) -> int:
    """Moves the nodes that are marked together, and writes where each of them is now; how many there are."""
    nodes, kept = room.nodes, 0
    for at in range(len(place)):
        if place[at] == 0:
            place[at] = kept
            before = nodes[at, BEFORE]
            for part in (ROW, STEP, LENGTH):
                nodes[kept, part] = nodes[at, part]
            nodes[kept, BEFORE] = place[before] if before >= 0 else -1
            room.at[kept], room.counted[kept], room.running[kept] = room.at[at], room.counted[at], room.running[at]
            kept += 1
    return kept


@borrowing
def find_nodes(room: Room, place: Int64s) -> None:
    """Tells runs where their nodes are now."""
    counts = room.counts
    for heap, low, high in ((room.runs, counts[HEAD], counts[TAIL]), (room.complete, 0, counts[COMPLETE])):
        for number in range(low, high):
            if heap[number, NODE] >= 0:
                heap[number, NODE] = place[heap[number, NODE]]


@kernel
def collect(room: Room) -> None:
    """Drops the nodes that no run needs."""
    counts = room.counts
    place = np.full(counts[NODES], -1, np.int64)
    mark_nodes(room, place)
    counts[NODES] = keep_marked(room, place)
    find_nodes(room, place)
    counts[COLLECT_AT] = max(COLLECT, 4 * counts[NODES])


@kernel
def enlarged(room: Room, needed: int) -> Room:
    """The same with more room."""
    runs, behind, arrived, complete, nodes = room.runs, room.behind, room.arrived, room.complete, room.nodes
    at, counted, running = room.at, room.counted, room.running
    if needed == MORE_RUNS:
        runs, behind = grown_rows(runs), grown_rows(behind)
    elif needed == MORE_NODES:
        nodes, at, counted = grown_rows(nodes), grown_rows(at), grown_rows(counted)
        running = np.empty((2 * running.shape[0], running.shape[1]), np.float64)
        running[: room.running.shape[0]] = room.running
    elif needed == MORE_ARRIVED:
        arrived = grown_rows(arrived)
    elif needed == MORE_COMPLETE:
        complete = grown_rows(complete)
    return Room(runs, behind, arrived, complete, nodes, at, counted, running, room.counts)


@borrowing
def move_to_front(runs: Nodes, counts: Int64s) -> None:
    """Uses again the room of runs that are no more."""
    head = counts[HEAD]
    for number in range(head, counts[TAIL]):
        for part in range(3):
            runs[number - head, part] = runs[number, part]
    counts[TAIL] -= head
    counts[HEAD] = 0


# --- an event -------------------------------------------------------------------------------------------------------


@inlined
def outcome_of(
    choice: Nodes, conditions: Conditions, predicate: PredicateCall, room: Room, decision: int, row: int, node: int
) -> int:
    """The outcome of a decision that looks back."""
    while decision >= 0:
        holds = atom_holds(conditions, predicate, room, choice[decision, 0], row, node)
        decision = choice[decision, 1 if holds else 2]
    return -1 - decision


@inlined
def begin_extending(machine: Machine, events: Events, room: Room) -> None:
    """Extends runs from the first one on; only the last one, if only the run that waits for a first event can move."""
    counts = room.counts
    counts[PHASE], counts[LEFT] = EXTENDING, -1
    moving = machine.active[events.kind[counts[AT_ROW]]] & counts[PRESENT]
    last = counts[TAIL] - 1
    if machine.start < BITS and moving == 1 << machine.start and room.runs[last, STATE] == machine.start:
        counts[AT], counts[NEXT_PRESENT] = last, counts[PRESENT]
    else:
        counts[AT], counts[NEXT_PRESENT] = counts[HEAD], 0
    counts[WRITTEN] = counts[AT]


@inlined
def extend(machine: Machine, conditions: Conditions, predicate: PredicateCall, events: Events, room: Room) -> int:
    """Extends the runs that are left by the event at hand; what is needed to go on, or DONE.

    What a run becomes takes its place. Where that is more than one, those behind it are put aside.
    """
    counts, runs, behind, nodes, arrived = room.counts, room.runs, room.behind, room.nodes, room.arrived
    row, at, written, left = counts[AT_ROW], counts[AT], counts[WRITTEN], counts[LEFT]
    kind = events.kind[row]
    active, present, nearest, fan = machine.active[kind], counts[NEXT_PRESENT], counts[NEAREST], machine.fan
    end, needed = counts[TAIL] if left < 0 else left, DONE
    looks_back = conditions.program.places > 0
    while at < end:
        if left < 0:
            state, node, began = runs[at, STATE], runs[at, NODE], runs[at, BEGAN]
        else:
            state, node, began = behind[at, STATE], behind[at, NODE], behind[at, BEGAN]
        bit = 1 << min(state, BITS)
        if written + fan > len(runs):
            needed = MORE_RUNS
            break
        if not active & bit:  # it waits on
            if written < at or left >= 0:
                runs[written, STATE], runs[written, NODE], runs[written, BEGAN] = state, node, began
            present |= bit
            written += 1
            at += 1
            continue
        if counts[NODES] + fan > len(nodes) or counts[ARRIVED] + fan > len(arrived):
            needed = MORE_NODES if counts[NODES] + fan > len(nodes) else MORE_ARRIVED
            break
        outcome = -1 - machine.decision[kind, state]
        if outcome < 0:
            outcome = outcome_of(machine.choice, conditions, predicate, room, -1 - outcome, row, node)
        first, last = machine.first_move[outcome], machine.first_move[outcome + 1]
        if left < 0 and written + last - first > at + 1 and at + 1 < end:
            left = end - at - 1
            for number in range(left):
                for part in range(3):
                    behind[number, part] = runs[at + 1 + number, part]
            at, end = -1, left
        taken = -1
        for move in range(first, last):
            how, target = machine.move[move, 0], machine.move[move, 2]
            held, origin = taken, row if node < 0 else began
            if how == TAKE:
                taken = held = counts[NODES]
                nodes[taken, ROW], nodes[taken, STEP], nodes[taken, BEFORE] = row, machine.move[move, 1], node
                nodes[taken, LENGTH] = 1 + (nodes[node, LENGTH] if node >= 0 else 0)
                counts[NODES] = taken + 1
                if looks_back:
                    remember(conditions, room, taken)
            elif how == WAIT:
                held = node
            elif how == AGAIN:
                held, origin = -1, NOBODY
            if machine.kind[target] == FINAL:
                place = counts[ARRIVED]
                arrived[place, STATE], arrived[place, NODE], arrived[place, BEGAN] = target, held, origin
                counts[ARRIVED] = place + 1
                continue
            runs[written, STATE], runs[written, NODE], runs[written, BEGAN] = target, held, origin
            written += 1
            present |= 1 << min(target, BITS)
            if machine.gapped:
                nearest = min(nearest, deadline_of(machine, events.time, nodes, target, held, origin))
        at += 1
    counts[AT], counts[WRITTEN], counts[LEFT], counts[NEXT_PRESENT] = at, written, left, present
    counts[NEAREST] = nearest
    if needed == DONE:
        counts[TAIL], counts[PRESENT] = written, present
    return int(needed)


@borrowing
def settle(machine: Machine, room: Room, out: Reported, partition: int) -> int:
    """Reports complete matches; a strategy that skips waits until no run that began earlier could win."""
    counts, complete, nodes = room.counts, room.complete, room.nodes
    if counts[COMPLETE] + counts[ARRIVED] > len(complete):
        return MORE_COMPLETE
    for number in range(counts[ARRIVED]):
        state, node, began = room.arrived[number, STATE], room.arrived[number, NODE], room.arrived[number, BEGAN]
        counts[COMPLETE] = push(complete, counts[COMPLETE], state, node, began)
    counts[ARRIVED] = 0
    while counts[COMPLETE]:
        node, began = complete[0, NODE], complete[0, BEGAN]
        if machine.skip != NO_SKIP and counts[HEAD] < counts[TAIL] and began > room.runs[counts[HEAD], BEGAN]:
            break
        needed = lacking_room(out, counts, 1, nodes[node, LENGTH])
        if needed != DONE:
            return needed
        counts[COMPLETE] = drop_first(complete, counts[COMPLETE])
        limit = skipped_before(machine, nodes, node, began)
        if limit < 0:
            counts[FAILURE] = -limit
            break
        if limit > 0:
            while counts[HEAD] < counts[TAIL] and room.runs[counts[HEAD], BEGAN] < limit:
                counts[HEAD] += 1
            counts[COMPLETE] = drop_earlier(complete, counts[COMPLETE], limit)
        report(out, counts, nodes, node, partition, -1, 0)
        if counts[REPORTS] > counts[MOST_REPORTS]:
            counts[FAILURE] = TOO_MANY_MATCHES
            break
    return DONE


# --- time -----------------------------------------------------------------------------------------------------------


@borrowing
def pass_time(machine: Machine, time: Int64s, room: Room, out: Reported, partition: int, until: int) -> int:
    """Time passes, from one deadline to the next; what is needed to go on, or DONE.

    Matches that only waited for runs that are given up are reported before these, as Flink does.
    """
    counts = room.counts
    while True:
        needed = settle(machine, room, out, partition) if counts[ARRIVED] or counts[COMPLETE] else DONE
        if needed == DONE and not counts[FAILURE] and counts[GIVEN_UP]:
            needed = report_given_up(machine, time, room, out, partition)
        if needed != DONE or counts[FAILURE] or counts[NEAREST] > until or counts[NEAREST] == LATEST:
            return int(needed)
        needed = give_up(machine, time, room, counts[NEAREST])
        if needed != DONE:
            return int(needed)


@inlined
def next_active(machine: Machine, events: Events, counts: Int64s, high: int) -> int:
    """The next event at which a run does something or is given up."""
    row, present, nearest = counts[AT_ROW], counts[PRESENT], counts[NEAREST]
    while row < high and not machine.active[events.kind[row]] & present and events.time[row] < nearest:
        row += 1
    return int(row)


@borrowing
def walk_on(
    machine: Machine,
    conditions: Conditions,
    predicate: PredicateCall,
    events: Events,
    room: Room,
    out: Reported,
    partition: int,
    last: int,
) -> int:
    """Walks through a partition from where it stopped; what is needed to go on, or DONE."""
    counts, time, seen, needed = room.counts, events.time, 0, DONE
    while counts[AT_ROW] < last:
        if counts[PHASE] == SEEKING:
            if counts[NODES] > counts[COLLECT_AT]:
                return COLLECTION
            if seen > UNTIL_A_LOOK:
                return A_LOOK
            if 2 * counts[HEAD] > len(room.runs):
                move_to_front(room.runs, counts)
            if not machine.gapped:
                look_for_nearest(machine, time, room)
            counts[AT_ROW] = next_active(machine, events, counts, last)
            if counts[AT_ROW] == last:
                break
            counts[PHASE] = PASSING
            seen += 1 + counts[TAIL] - counts[HEAD]
        row = counts[AT_ROW]
        if counts[PHASE] == PASSING:
            due = counts[NEAREST] <= time[row] or counts[ARRIVED] or counts[COMPLETE] or counts[GIVEN_UP]
            if due and time[row] > counts[PASSED]:  # once for all events of an instant, as Flink's operator does
                needed = pass_time(machine, time, room, out, partition, time[row])
            if needed != DONE or counts[FAILURE]:
                return int(needed)
            counts[PASSED] = time[row]
            begin_extending(machine, events, room)
        if counts[PHASE] == EXTENDING:
            needed = extend(machine, conditions, predicate, events, room)
            if needed != DONE:
                return int(needed)
            counts[PHASE] = SETTLING
        if counts[TAIL] - counts[HEAD] > counts[MOST_RUNS]:
            counts[FAILURE] = TOO_MANY_RUNS
            return DONE
        if counts[ARRIVED] or counts[COMPLETE]:
            needed = settle(machine, room, out, partition)
            if needed != DONE or counts[FAILURE]:
                return int(needed)
        counts[PHASE] = SEEKING
        counts[AT_ROW] = row + 1
    look_for_nearest(machine, time, room)
    return pass_time(machine, time, room, out, partition, events.end)


# --- all partitions -------------------------------------------------------------------------------------------------


@borrowing
def clear(counts: Int64s, row: int) -> None:
    """Begins with a partition at a row."""
    counts[HEAD] = counts[TAIL] = counts[COMPLETE] = counts[NODES] = counts[ARRIVED] = counts[GIVEN_UP] = 0
    counts[NEAREST], counts[PRESENT], counts[COLLECT_AT], counts[PASSED] = LATEST, 0, COLLECT, -LATEST
    counts[PHASE], counts[AT_ROW] = SEEKING, row


@borrowing
def resume(conditions: Conditions, room: Room, known: Reported, run: int, high: int) -> int:
    """Takes up the runs of an earlier call, from one on, in their order; which one does not fit, or the end."""
    counts, nodes = room.counts, room.nodes
    while run < high:
        first, last = known.first[run], known.first[run + 1]
        if counts[TAIL] == len(room.runs) or counts[COMPLETE] == len(room.complete):
            break
        if counts[NODES] + last - first > len(nodes):
            break
        node, began, state = -1, NOBODY, known.waiting[run]
        for at in range(first, last):
            taken = counts[NODES]
            nodes[taken, ROW], nodes[taken, STEP], nodes[taken, BEFORE] = known.row[at], known.step[at], node
            nodes[taken, LENGTH] = at - first + 1
            counts[NODES] = taken + 1
            if conditions.program.places > 0:
                remember(conditions, room, taken)
            began = known.row[at] if node < 0 else began
            node = taken
        if known.given_up[run]:
            counts[COMPLETE] = push(room.complete, counts[COMPLETE], state, node, began)
        else:
            place = counts[TAIL]
            room.runs[place, STATE], room.runs[place, NODE], room.runs[place, BEGAN] = state, node, began
            counts[TAIL] = place + 1
            counts[PRESENT] |= 1 << min(state, BITS)
        run += 1
    return run


@kernel
def resumed(
    machine: Machine, conditions: Conditions, time: Int64s, room: Room, known: Reported, low: int, high: int
) -> Room:
    """The runs low to high of an earlier call; without any, the one that waits for a first event."""
    counts = room.counts
    if low == high:
        room.runs[0, STATE], room.runs[0, NODE], room.runs[0, BEGAN] = machine.start, -1, NOBODY
        counts[TAIL], counts[PRESENT] = 1, 1 << min(machine.start, BITS)
        return room
    low = resume(conditions, room, known, low, high)
    while low < high:
        for needed in (MORE_RUNS, MORE_NODES, MORE_COMPLETE):
            room = enlarged(room, needed)
        low = resume(conditions, room, known, low, high)
    look_for_nearest(machine, time, room)
    return room


@kernel
def suspended(room: Room, kept: Reported, kept_counts: Int64s, partition: int) -> Reported:
    """Adds the runs of a partition to those that a later call goes on with."""
    counts = room.counts
    for done, heap, low, high in ((0, room.runs, counts[HEAD], counts[TAIL]), (1, room.complete, 0, counts[COMPLETE])):
        for number in range(low, high):
            state, node = heap[number, STATE], heap[number, NODE]
            length = room.nodes[node, LENGTH] if node >= 0 else 0
            needed = lacking_room(kept, kept_counts, 1, length)
            while needed != DONE:
                kept = enlarged_result(kept, needed)
                needed = lacking_room(kept, kept_counts, 1, length)
            report(kept, kept_counts, room.nodes, node, partition, state, done)
    return kept


@search_kernel
def walk(
    machine: Machine, conditions: Conditions, predicate: PredicateCall, events: Events, known: Reported, room: Room
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
        clear(counts, events.begin[partition])
        room = resumed(machine, conditions, events.time, room, known, low, high)
        low = high
        needed = A_LOOK
        while needed != DONE:
            last = events.bounds[partition + 1]
            needed = walk_on(machine, conditions, predicate, events, room, out, partition, last)
            if counts[FAILURE] or stop_flag():
                return trimmed(out, counts), trimmed(kept, kept_counts), counts[FAILURE]
            if needed == COLLECTION:
                collect(room)
            elif needed in (MORE_REPORTS, MORE_EVENTS):
                out = enlarged_result(out, needed)
            elif needed not in (DONE, A_LOOK):
                room = enlarged(room, needed)
        if events.goes_on:
            kept = suspended(room, kept, kept_counts, partition)
    return trimmed(out, counts), trimmed(kept, kept_counts), counts[FAILURE]
