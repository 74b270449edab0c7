"""Conditions inside the kernel: what a run took, as conditions that look back read it."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64Rows
from cepheid.engine.data.columns import PredicateCall
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.conditions import test_holds
from cepheid.engine.kernels.registers import Registers, absorb
from cepheid.engine.program.tables import CURRENT_AT, FIRST_AT, KEPT_FROM, LAST_AT, WALKED, WALKS_FROM
from cepheid.engine.search.flink.machine import (
    BEFORE,
    ROW,
    STEP,
    Conditions,
    Room,
)

Nodes = Int64Rows  # per node: the event's row, the node before it (-1: none), the step, the length


@inlined
def remember(conditions: Conditions, room: Room, node: int) -> None:
    """Keeps what conditions read of a run that has taken one more event, its last node."""
    program, at, counted, running = conditions.program, room.at, room.counted, room.running
    row, before, step = room.nodes[node, ROW], room.nodes[node, BEFORE], room.nodes[node, STEP]
    if before >= 0:
        for slot in range(at.shape[1]):
            at[node, slot] = at[before, slot]
        for register in range(counted.shape[1]):
            counted[node, register] = counted[before, register]
        for register in range(running.shape[1]):
            running[node, register] = running[before, register]
    else:
        for slot in range(at.shape[1]):
            at[node, slot] = conditions.absent
        for register in range(counted.shape[1]):
            counted[node, register] = 0
        for register in range(running.shape[1]):
            running[node, register] = 0.0
    if 0 <= step < program.places:
        begins = counted[node, step] == 0
        at[node, program.place[step, LAST_AT]] = row
        if begins:
            at[node, program.place[step, FIRST_AT]] = row
        if program.place[step, KEPT_FROM] == program.place[step + 1, KEPT_FROM]:
            counted[node, step] += 1
        else:
            absorb(program, conditions.columns, step, row, begins, Registers(counted, running, 0, 0), node)


@borrowing
def for_each(conditions: Conditions, predicate: PredicateCall, nodes: Nodes, atom: int, step: int, node: int) -> bool:
    """Does an atom hold for each event of one step, or once if there is none?"""
    scratch, seen = conditions.scratch, False
    while node >= 0:
        if nodes[node, STEP] == step:
            seen = True
            scratch.at[conditions.program.place[step, CURRENT_AT]] = nodes[node, ROW]
            if not predicate(atom, scratch.at, scratch.counted, scratch.running, conditions.columns):
                return False
        node = nodes[node, BEFORE]
    return seen or bool(predicate(atom, scratch.at, scratch.counted, scratch.running, conditions.columns))


@inlined
def atom_holds(conditions: Conditions, predicate: PredicateCall, room: Room, atom: int, row: int, node: int) -> bool:
    """Does an atom hold for the event at hand, after what a run took up to a node (-1: nothing)?"""
    program, scratch = conditions.program, conditions.scratch
    for slot in range(room.at.shape[1]):
        scratch.at[slot] = room.at[node, slot] if node >= 0 else conditions.absent
    for register in range(room.counted.shape[1]):
        scratch.counted[register] = room.counted[node, register] if node >= 0 else 0
    for register in range(room.running.shape[1]):
        scratch.running[register] = room.running[node, register] if node >= 0 else 0.0
    scratch.at[conditions.at_hand] = row
    first, last = program.tests[atom, WALKS_FROM], program.tests[atom + 1, WALKS_FROM]
    if first == last:
        return bool(predicate(atom, scratch.at, scratch.counted, scratch.running, conditions.columns))
    if last - first == 1:
        return for_each(conditions, predicate, room.nodes, atom, program.walks[first, WALKED], node)
    missing = 0  # of steps that took nothing there is no event to hold for
    for walk in range(first, last):
        if scratch.counted[program.walks[walk, WALKED]] == 0:
            missing |= 1 << program.walks[walk, WALKED]
    scratch.missing[0] = missing
    return bool(test_holds(program, conditions.columns, predicate, atom, scratch, room.nodes, node))
