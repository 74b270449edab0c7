"""Partial matches that may hold Kleene groups and miss events: a node adds one event to the node before it.

The conditions are those of the program: a node keeps the registers that they read, and the rows that conditions on
every element of a group walk along. Which event may join is decided here for every search at imprecise times.

Where events may be missing, a condition has a variant for each choice of missing events. While a match grows, it is
not known which events behind it will be missing; conditions whose defaults speak of these wait until it is complete.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.compile import borrowing, borrowing_by_address, called_by_address, inlined, kernel
from cepheid.engine.kernels.conditions import (
    EVENT,
    LEFT,
    RIGHT,
    Scratch,
    agrees,
    holds,
    test_holds,
)
from cepheid.engine.kernels.registers import Registers, absorb
from cepheid.engine.program.tables import (
    BEGIN,
    CLOSE,
    CURRENT_AT,
    FIRST_AT,
    KLEENE,
    LAST_AT,
    NEEDS,
    PREVIOUS_AT,
    TAKE,
    Program,
)


class Nodes(NamedTuple):
    """Partial matches, a row each."""

    entries: Int64Rows  # event, node before (-1: none), place, and a spare column
    at: Int64Rows  # chosen events
    counted: Int64Rows  # lengths and aggregates
    running: Float64Rows
    codes: Int64Rows  # values of compared equivalence attributes; WILD: not yet known
    closed: Int64s  # 1: the component at hand may be left
    scratch: Scratch


class PartialMatches(NamedTuple):
    """Nodes and the conditions that they are tested by; kernels put it together, since it holds a function."""

    program: Program
    columns: Columns
    predicate: PredicateCall
    nodes: Nodes


@kernel
def new_nodes(size: int, slots: int, whole: int, number: int, codes: int, scratch: Scratch) -> Nodes:
    """Room for some nodes."""
    return Nodes(
        np.zeros((size, 4), np.int64),
        np.zeros((size, slots), np.int64),
        np.zeros((size, whole), np.int64),
        np.zeros((size, number), np.float64),
        np.zeros((size, codes), np.int64),
        np.zeros(size, np.int64),
        scratch,
    )


@called_by_address
def more_nodes(nodes: Nodes) -> Nodes:
    """The same nodes with room for as many again."""
    running = np.zeros((2 * nodes.running.shape[0], nodes.running.shape[1]), np.float64)
    running[: nodes.running.shape[0]] = nodes.running
    return Nodes(
        grown_rows(nodes.entries),
        grown_rows(nodes.at),
        grown_rows(nodes.counted),
        running,
        grown_rows(nodes.codes),
        grown(nodes.closed),
        nodes.scratch,
    )


@borrowing
def load(nodes: Nodes, node: int) -> None:
    """Copies a node's registers to where conditions read them; -1: those of no match yet."""
    scratch = nodes.scratch
    if node < 0:
        scratch.at[:] = 0
        scratch.counted[:] = 0
        scratch.running[:] = 0.0
        return
    for column in range(nodes.at.shape[1]):
        scratch.at[column] = nodes.at[node, column]
    for column in range(nodes.counted.shape[1]):
        scratch.counted[column] = nodes.counted[node, column]
    for column in range(nodes.running.shape[1]):
        scratch.running[column] = nodes.running[node, column]


@inlined
def put_event(program: Program, at: Int64s, event: int, place: int, begins: bool) -> None:
    """Puts an event where conditions on an event that joins look for it."""
    if begins:
        at[program.place[place, FIRST_AT]] = event
        at[program.place[place, LAST_AT]] = event
    else:
        at[program.place[place, PREVIOUS_AT]] = at[program.place[place, LAST_AT]]
    at[program.place[place, CURRENT_AT]] = event


@inlined
def waits(program: Program, test: int, place: int, missing: int) -> bool:
    """Does a test of a place say something of later events, in the stead of missing ones?"""
    needs = program.tests[test, NEEDS]
    return bool(needs & missing != 0 and (needs & ~missing) >> (place + 1) != 0)


@borrowing_by_address
def joins(
    begins_groups: Int64s,
    compared: Int64Rows,
    partial: PartialMatches,
    node: int,
    event: int,
    place: int,
    begins: bool,
    missing: int,
) -> bool:
    """May the event begin a place after this node, or be taken into the group that the node is in?

    `missing` has the bits of missing components: those before the place, or all if they are known. `begins_groups`
    says of all events which groups they can be the first event of.
    """
    program, columns, predicate, nodes = partial
    if node >= 0:
        for row in range(nodes.codes.shape[1]):
            if not agrees(compared[row, event], nodes.codes[node, row]):
                return False
    # By conditions on the first event of a group alone, tested beforehand.
    if begins and program.place[place, KLEENE] == 1 and (begins_groups[event] >> place) & 1 == 0:
        return False
    moment = 3 * place + (BEGIN if begins else TAKE)
    if program.moments[moment] == program.moments[moment + 1]:
        return True
    load(nodes, node)
    put_event(program, nodes.scratch.at, event, place, begins)
    nodes.scratch.missing[0] = missing
    if missing == 0:
        return holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node)
    for test in range(program.moments[moment], program.moments[moment + 1]):
        if not waits(program, test, place, missing) and not test_holds(
            program, columns, predicate, test, nodes.scratch, nodes.entries, node
        ):
            return False
    return True


@borrowing_by_address
def add_node(
    compared: Int64Rows,
    partial: PartialMatches,
    parent: int,
    node: int,
    event: int,
    place: int,
    begins: bool,
    missing: int,
) -> None:
    """Writes the node that adds an event to its parent."""
    program, columns, predicate, nodes = partial
    nodes.entries[node, EVENT], nodes.entries[node, LEFT], nodes.entries[node, RIGHT] = event, parent, place
    for column in range(nodes.at.shape[1]):
        nodes.at[node, column] = nodes.at[parent, column] if parent >= 0 else 0
    for column in range(nodes.counted.shape[1]):
        nodes.counted[node, column] = nodes.counted[parent, column] if parent >= 0 else 0
    for column in range(nodes.running.shape[1]):
        nodes.running[node, column] = nodes.running[parent, column] if parent >= 0 else 0.0
    for row in range(nodes.codes.shape[1]):
        code = nodes.codes[parent, row] if parent >= 0 else WILD
        nodes.codes[node, row] = compared[row, event] if code == WILD else code
    nodes.at[node, program.place[place, LAST_AT]] = event
    if begins:
        nodes.at[node, program.place[place, FIRST_AT]] = event
    nodes.closed[node] = 1
    if program.place[place, KLEENE] == 1:
        absorb(program, columns, place, event, begins, Registers(nodes.counted, nodes.running, 0, 0), node)
        moment = 3 * place + CLOSE
        if program.moments[moment] < program.moments[moment + 1]:
            load(nodes, node)
            nodes.scratch.missing[0] = missing
            for test in range(program.moments[moment], program.moments[moment + 1]):
                if not waits(program, test, place, missing) and not test_holds(
                    program, columns, predicate, test, nodes.scratch, nodes.entries, node
                ):
                    nodes.closed[node] = 0
                    return


@borrowing
def see_later(program: Program, nodes: Nodes, last: int, place: int) -> None:
    """Lets conditions see the events behind a place, as they stand in a complete match."""
    for later in range(place + 1, program.places):
        for slot in (FIRST_AT, LAST_AT, CURRENT_AT, PREVIOUS_AT):
            column = program.place[later, slot]
            nodes.scratch.at[column] = nodes.at[last, column]


@borrowing_by_address
def complete_holds(partial: PartialMatches, last: int, missing: int) -> bool:
    """Do the conditions hold for a complete match that had to wait until it was known which events are missing?"""
    program, columns, predicate, nodes = partial
    nodes.scratch.missing[0] = missing
    for place in range(program.places):
        if (missing >> place) & 1 == 1:  # what its defaults say, once for the whole component
            load(nodes, last)
            for kind in (BEGIN, TAKE, CLOSE):
                if not holds(program, columns, predicate, 3 * place + kind, nodes.scratch, nodes.entries, last):
                    return False
    node = last
    while node >= 0:
        event, parent, place = nodes.entries[node, EVENT], nodes.entries[node, LEFT], nodes.entries[node, RIGHT]
        begins = parent < 0 or nodes.entries[parent, RIGHT] != place
        closes = node == last or nodes.at[last, program.place[place, LAST_AT]] == event
        for kind in (BEGIN if begins else TAKE, CLOSE):
            if kind == CLOSE and not closes:
                continue
            moment = 3 * place + kind
            for test in range(program.moments[moment], program.moments[moment + 1]):
                if not waits(program, test, place, missing):
                    continue
                load(nodes, last if kind == CLOSE else parent)
                if kind != CLOSE:
                    see_later(program, nodes, last, place)
                    put_event(program, nodes.scratch.at, event, place, begins)
                if not test_holds(program, columns, predicate, test, nodes.scratch, nodes.entries, last):
                    return False
        node = parent
    return True


@borrowing
def holds_event(chosen: Int64s, length: int, event: int) -> bool:
    """Is the event among the first few chosen?"""
    for index in range(length):
        if chosen[index] == event:
            return True
    return False


@borrowing_by_address
def standing(partial: PartialMatches, node: int, missing: int) -> int:
    """The disjuncts whose positive part a complete match satisfies, as bits."""
    program, columns, predicate, nodes = partial
    if not program.judged:
        return 1
    bits = 0
    nodes.scratch.missing[0] = missing
    for branch in range(program.branches):
        load(nodes, node)
        moment = 3 * program.places + program.negatives + branch * (1 + program.negatives)
        if holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node):
            bits |= 1 << branch
    return bits
