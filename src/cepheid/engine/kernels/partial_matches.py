"""Partial matches that may hold Kleene groups: a node adds one event to the node before it.

The conditions are those of the run engine's program (SASE+): a node keeps the registers that they read, and the rows
that conditions on every element of a group walk along. Which event may join, and who could be in the way of a match, is
decided here for both engines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.candidates import WILD
from cepheid.engine.data.columns import COLUMNS, FLOAT64_ROWS, INT64_ROWS, INT64S, Columns
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, between, first_beyond, first_reaching
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.lean import lean
from cepheid.engine.program.tables import (
    BEGIN,
    CLOSE,
    CURRENT_AT,
    FIRST_AT,
    KLEENE,
    LAST_AT,
    PREVIOUS_AT,
    PROGRAM,
    TAKE,
    Program,
)
from cepheid.engine.search.intervals.query import SHAPE, Shape
from cepheid.engine.search.runs.buffer import EVENT, LEFT, RIGHT
from cepheid.engine.search.runs.conditions import SCRATCH, Scratch, absorb, agrees, holds
from cepheid.engine.values.compiled import PREDICATE
from cepheid.engine.worth.confidence.confidence import RIVALS, Rivals, merged

Int64s = npt.NDArray[np.int64]
Int64Rows = npt.NDArray[np.int64]

FUNCTION = types.FunctionType(PREDICATE)


class Nodes(NamedTuple):
    """Partial matches, a row each."""

    entries: Int64Rows  # event, node before (-1: none), place, and a spare
    at: Int64Rows  # chosen events
    counted: Int64Rows  # lengths and aggregates
    running: npt.NDArray[np.float64]
    codes: Int64Rows  # values of compared equivalence attributes; WILD: not yet known
    closed: Int64s  # 1: the component at hand may be left
    scratch: Scratch


NODES = types.NamedTuple((INT64_ROWS, INT64_ROWS, INT64_ROWS, FLOAT64_ROWS, INT64_ROWS, INT64S, SCRATCH), Nodes)


@numba.njit(NODES(types.int64, types.int64, types.int64, types.int64, types.int64, SCRATCH), cache=True)
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


@apart(NODES(NODES))
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


@lean(types.void(NODES, types.int64))
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


@apart(
    types.boolean(
        TIMED,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
    )
)
def joins(
    timed: Timed,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    node: int,
    event: int,
    place: int,
    begins: bool,
) -> bool:
    """May the event begin a place after this node, or be taken into the group that the node is in?"""
    if node >= 0:
        for row in range(nodes.codes.shape[1]):
            if not agrees(timed.compared[row, event], nodes.codes[node, row]):
                return False
    if begins and program.place[place, KLEENE] == 1:
        can_be_first = timed.mask[event] >> (program.places + program.negatives + place)
        if can_be_first & 1 == 0:  # by conditions on the first event alone, tested beforehand
            return False
    moment = 3 * place + (BEGIN if begins else TAKE)
    if program.moments[moment] == program.moments[moment + 1]:
        return True
    load(nodes, node)
    at = nodes.scratch.at
    if begins:
        at[program.place[place, FIRST_AT]] = event
        at[program.place[place, LAST_AT]] = event
    else:
        at[program.place[place, PREVIOUS_AT]] = at[program.place[place, LAST_AT]]
    at[program.place[place, CURRENT_AT]] = event
    return bool(holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node))


@apart(
    types.void(
        TIMED,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        types.int64,
        types.int64,
        types.int64,
        types.boolean,
    )
)
def add_node(
    timed: Timed,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    parent: int,
    node: int,
    event: int,
    place: int,
    begins: bool,
) -> None:
    """Writes the node that adds an event to its parent."""
    nodes.entries[node, EVENT], nodes.entries[node, LEFT], nodes.entries[node, RIGHT] = event, parent, place
    for column in range(nodes.at.shape[1]):
        nodes.at[node, column] = nodes.at[parent, column] if parent >= 0 else 0
    for column in range(nodes.counted.shape[1]):
        nodes.counted[node, column] = nodes.counted[parent, column] if parent >= 0 else 0
    for column in range(nodes.running.shape[1]):
        nodes.running[node, column] = nodes.running[parent, column] if parent >= 0 else 0.0
    for row in range(nodes.codes.shape[1]):
        code = nodes.codes[parent, row] if parent >= 0 else WILD
        nodes.codes[node, row] = timed.compared[row, event] if code == WILD else code
    nodes.at[node, program.place[place, LAST_AT]] = event
    if begins:
        nodes.at[node, program.place[place, FIRST_AT]] = event
    nodes.closed[node] = 1
    if program.place[place, KLEENE] == 1:
        absorb(program, columns, place, event, begins, nodes.counted, nodes.running, node, 0, 0)
        moment = 3 * place + CLOSE
        if program.moments[moment] < program.moments[moment + 1]:
            load(nodes, node)
            if not holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node):
                nodes.closed[node] = 0


@lean(types.boolean(INT64S, types.int64, types.int64))
def holds_event(chosen: Int64s, length: int, event: int) -> bool:
    """Is the event among the first few chosen?"""
    for index in range(length):
        if chosen[index] == event:
            return True
    return False


@numba.njit(
    types.int64(
        TIMED,
        SHAPE,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        types.int64,
        types.int64,
    ),
    cache=True,
)
def killing(
    timed: Timed,
    shape: Shape,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    node: int,
    negation: int,
    event: int,
) -> int:
    """The disjuncts in which an event of a negated component would kill a complete match, as bits (-1: in all)."""
    for row in range(nodes.codes.shape[1]):
        if not agrees(timed.compared[row, event], nodes.codes[node, row]):
            return 0
    load(nodes, node)
    nodes.scratch.at[nodes.at.shape[1] - shape.negatives + negation] = event
    base = 3 * program.places
    if not program.judged:
        killed = holds(program, columns, predicate, base + negation, nodes.scratch, nodes.entries, node)
        return -1 if killed else 0
    bits = 0
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives) + 1 + negation
        if holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node):
            bits |= 1 << branch
    return bits


@apart(
    RIVALS(
        TIMED,
        SHAPE,
        STACKS,
        PROGRAM,
        COLUMNS,
        FUNCTION,
        NODES,
        types.int64,
        INT64S,
        INT64S,
        INT64S,
        INT64S,
    )
)
def rivals_of(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    program: Program,
    columns: Columns,
    predicate: Any,
    nodes: Nodes,
    part: int,
    chain: Int64s,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
) -> Rivals:
    """Everyone who could disturb the match along a chain of nodes, whose events have the valid bounds low .. high."""
    length = len(chain)
    gaps, last = length + 1, chain[length - 1]
    keys, branches = np.empty(16, np.int64), np.empty(16, np.int64)
    found = 0
    for blocking in range(1, length + shape.negatives):
        negation = blocking - length
        node, begins = last, True
        if blocking < length:  # what could have been selected in this gap
            if not shape.next:
                continue
            node = chain[blocking - 1]
            place = nodes.entries[node, RIGHT]
            begins = program.place[place, KLEENE] == 0  # an open group is only held up by what it could take
            stack = place + 1 if begins else place
            start, stop, gap = low[blocking - 1] + 1, high[blocking] - 1, blocking
        else:
            stack = shape.positives + negation
            start, gap = low[length - 1] - shape.window + 1, 0
            stop = high[0] + shape.window - 1
            for index in range(length):
                place = nodes.entries[chain[index], RIGHT]
                if place == shape.neg_after[negation]:
                    start, gap = low[index] + 1, index + 1  # the last of a group counts
                if place == shape.neg_before[negation]:
                    stop = high[index] - 1
                    break  # the first of a group counts
        bottom, top = stacks.begin[stack, part], stacks.begin[stack, part + 1]
        top = first_beyond(stacks, timed.lower, bottom, top, stop)
        for index in range(first_reaching(stacks, bottom, top, start), top):
            event = stacks.member[index]
            if timed.upper[event] < start or between(timed, event, start, stop) == 0.0:
                continue
            if holds_event(chosen, length, event):
                continue
            bits = 0
            if blocking < length:
                if joins(timed, program, columns, predicate, nodes, node, event, stack, begins):
                    bits = -1
            else:
                bits = killing(timed, shape, program, columns, predicate, nodes, last, negation, event)
            if bits == 0:
                continue
            if found == len(keys):
                keys, branches = grown(keys), grown(branches)
            keys[found], branches[found] = event * gaps + gap, bits
            found += 1
    keys, branches = merged(keys[:found], branches[:found])
    return Rivals(keys, branches)


@apart(types.int64(PROGRAM, COLUMNS, FUNCTION, NODES, types.int64))
def standing(program: Program, columns: Columns, predicate: Any, nodes: Nodes, node: int) -> int:
    """The disjuncts whose positive part a complete match satisfies, as bits."""
    if not program.judged:
        return 1
    bits = 0
    for branch in range(program.branches):
        load(nodes, node)
        moment = 3 * program.places + program.negatives + branch * (1 + program.negatives)
        if holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node):
            bits |= 1 << branch
    return bits
