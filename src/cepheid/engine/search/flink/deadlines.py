"""When runs are given up, and how that is reported."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.search.flink.evaluate import Nodes
from cepheid.engine.search.flink.machine import (
    ARRIVED,
    BEGAN,
    FAILURE,
    GIVEN_UP,
    HEAD,
    LATEST,
    LENGTH,
    MOST_REPORTS,
    NEAREST,
    NODE,
    PENDING,
    REPORTS,
    ROW,
    STATE,
    TAIL,
    Machine,
    Room,
)
from cepheid.engine.search.flink.reports import DONE, MORE_ARRIVED, TOO_MANY_MATCHES, lacking_room, report


@inlined
def deadline_of(machine: Machine, time: Int64s, nodes: Nodes, state: int, node: int, began: int) -> int:
    """When a run is given up; LATEST: never."""
    found = LATEST
    if node >= 0:
        if machine.window > 0:
            found = time[began] + machine.window
        if machine.gapped and machine.gap[state] > 0:
            found = min(found, time[nodes[node, ROW]] + machine.gap[state])
    return found


@inlined
def look_for_nearest(machine: Machine, time: Int64s, room: Room) -> None:
    """When the next run may be given up: the first one, unless states have a longest time of their own."""
    counts, runs = room.counts, room.runs
    nearest = LATEST
    for number in range(counts[HEAD], counts[TAIL]):
        state, node, began = runs[number, STATE], runs[number, NODE], runs[number, BEGAN]
        nearest = min(nearest, deadline_of(machine, time, room.nodes, state, node, began))
        if not machine.gapped:
            break
    counts[NEAREST] = nearest


@borrowing
def give_up(machine: Machine, time: Int64s, room: Room, now: int) -> int:
    """Takes out the runs whose window has passed: complete ones, which only waited for that, and those to report."""
    counts, runs, nodes, arrived = room.counts, room.runs, room.nodes, room.arrived
    number, high = 0, counts[HEAD]
    for at in range(counts[HEAD], counts[TAIL]):
        if deadline_of(machine, time, nodes, runs[at, STATE], runs[at, NODE], runs[at, BEGAN]) <= now:
            number, high = number + 1, at + 1
        elif not machine.gapped:
            break
    if counts[ARRIVED] + number > len(arrived):
        return MORE_ARRIVED
    for at in range(counts[HEAD], high):
        state, node, began = runs[at, STATE], runs[at, NODE], runs[at, BEGAN]
        if deadline_of(machine, time, nodes, state, node, began) > now:
            continue
        if machine.kind[state] == PENDING:
            place = counts[ARRIVED]
            counts[ARRIVED] = place + 1
        elif machine.partial:
            counts[GIVEN_UP] += 1
            place = len(arrived) - counts[GIVEN_UP]
        else:
            continue
        arrived[place, STATE], arrived[place, NODE], arrived[place, BEGAN] = state, node, began
    # Those that stay before the last one that goes move up to it.
    place = high
    for at in range(high - 1, counts[HEAD] - 1, -1):
        if deadline_of(machine, time, nodes, runs[at, STATE], runs[at, NODE], runs[at, BEGAN]) > now:
            place -= 1
            for part in range(3):
                runs[place, part] = runs[at, part]
    counts[HEAD] = place
    look_for_nearest(machine, time, room)
    return DONE


@borrowing
def report_given_up(machine: Machine, time: Int64s, room: Room, out: Reported, partition: int) -> int:
    """Reports the runs that were given up; what is needed to do so, or DONE."""
    counts, nodes, arrived = room.counts, room.nodes, room.arrived
    length, end = 0, len(arrived)
    for number in range(counts[GIVEN_UP]):
        length += nodes[arrived[end - 1 - number, NODE], LENGTH]
    needed = lacking_room(out, counts, counts[GIVEN_UP], length)
    if needed != DONE:
        return int(needed)
    for number in range(counts[GIVEN_UP]):
        place = end - 1 - number
        state, node, began = arrived[place, STATE], arrived[place, NODE], arrived[place, BEGAN]
        report(out, counts, nodes, node, partition, state, deadline_of(machine, time, nodes, state, node, began))
    counts[GIVEN_UP] = 0
    if counts[REPORTS] > counts[MOST_REPORTS]:
        counts[FAILURE] = TOO_MANY_MATCHES
    return DONE
