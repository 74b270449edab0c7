"""The automaton of a row pattern (plan/row_lowering.py) as arrays: a step for each state, for backtracking."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.budget import checkpoint
from cepheid.engine.data.arrays import Int32s
from cepheid.language import pattern as p
from cepheid.plan.automaton import Action, Kind, State
from cepheid.plan.row_lowering import Asks, RowGuard, lower_rows

TAKE, SPLIT, JUMP, AT_START, AT_END, REMEMBER, LOOP, DONE = range(8)
_ASKING = {Asks.AT_START: AT_START, Asks.AT_END: AT_END, Asks.ITERATION: REMEMBER}
PASSES = -2  # Program.label of a LOOP over one label that leaves to a TAKE: rows that this cannot take are passed
KEYED = -2  # Program.memory from here downwards: splits whose failures are remembered under keys (memory.py)


class Program(NamedTuple):
    """The steps as arrays.

    TAKE takes a row with label `label`; SPLIT goes on at `left` or, failing that, at `right`; JUMP at `left`;
    REMEMBER keeps the row in register `label`; LOOP is a SPLIT that only leaves (to `exit`) after an empty iteration.
    """

    kind: Int32s
    left: Int32s
    right: Int32s
    label: Int32s  # of TAKE; the register of REMEMBER and LOOP, -1 for none, or PASSES
    exit: Int32s  # where LOOP leaves to
    excluded: Int32s  # of TAKE: is the row left out of the output?
    memory: (
        Int32s  # of SPLIT and LOOP: the number of the bit that says "nothing is found from here", or KEYED and below
    )
    registers: int
    bits: int
    lasting: int  # bits below this one hold for every start, the others only for the one they were set at


def compile_pattern(
    pattern: p.Pattern,
    labels: tuple[str, ...],
    path_labels: frozenset[str],
    start_labels: frozenset[str] = frozenset(),
    number_labels: frozenset[str] = frozenset(),
) -> Program:
    """The program of a pattern; `path_labels` are those whose condition looks at the path that led to a row.

    The conditions of `start_labels`, which are among them, look at nothing of the path but where it began, and at the
    number of the match; those of `number_labels` at this number alone.

    >>> compile_pattern(p.Repeat(p.Single("A"), 1, None), ("A",), frozenset()).kind.tolist()
    [0, 6, 7]
    """
    place = {label: number for number, label in enumerate(labels)}
    steps = [_step(state, place) for state in lower_rows(pattern).states]
    for number, step in enumerate(steps):
        if step[0] == LOOP and step[3] == -1 and min(step[1:3]) == number - 1 and steps[step[4]][0] == TAKE:
            step[3] = PASSES
    table = np.array(steps, np.int32).T
    lasting, numbered, brief = (
        _forgetful(steps, {place[label] for label in looks_back})
        for looks_back in (path_labels, path_labels - number_labels, path_labels - start_labels)
    )
    memory = np.full(len(steps), -1, np.int32)
    memory[lasting] = np.arange(len(lasting))
    known = {*lasting, *numbered}
    others = [number for number in brief if number not in known]
    memory[others] = np.arange(len(lasting), len(lasting) + len(others))
    keyed = [number for number, row in enumerate(steps) if row[0] in (SPLIT, LOOP) and memory[number] < 0]
    memory[keyed] = KEYED - np.arange(len(keyed))
    kind, left, right, label, exits, excluded = (np.ascontiguousarray(row) for row in table)
    bits = len(lasting) + len(others)
    registers = int(label[kind == REMEMBER].max(initial=-1)) + 1
    return Program(kind, left, right, label, exits, excluded, memory, registers, bits, len(lasting))


def _step(state: State[RowGuard], labels: dict[str, int]) -> list[int]:
    """The step of a state: its kind, left, right, label or register, exit, and is its row left out?"""
    if state.kind is Kind.FINAL:
        return [DONE, 0, 0, -1, 0, 0]
    edge, *others = state.edges
    if edge.action is Action.TAKE:
        return [TAKE, 0, 0, labels[edge.variable], 0, int(edge.guard.asks is Asks.LEFT_OUT)]
    if others:
        again = next((each.guard for each in state.edges if each.guard.asks is Asks.AGAIN), None)
        kind, register = (SPLIT, -1) if again is None else (LOOP, again.register)
        targets = edge.target, others[0].target
        return [kind, *targets, register, max(targets), 0]  # what it leaves to lies behind what is inside
    if edge.guard.asks is Asks.NOTHING:
        return [JUMP, edge.target, 0, -1, 0, 0]
    return [_ASKING[edge.guard.asks], 0, 0, edge.guard.register, 0, 0]


def _forgetful(steps: list[list[int]], path_labels: set[int]) -> list[int]:
    """The splits from which no step is reached whose condition looks at the path.

    What is found from there does not depend on the path, so a second arrival at the same row need not be tried.
    """
    count = len(steps)
    onward: list[tuple[int, ...]] = []
    looks_back = np.zeros(count, bool)
    for number, (kind, left, right, label, *_) in enumerate(steps):
        looks_back[number] = kind == TAKE and label in path_labels
        onward.append((left, right) if kind in (SPLIT, LOOP) else (left,) if kind == JUMP else (number + 1,))
    onward[-1] = ()
    changed = bool(looks_back.any())
    while changed:
        checkpoint()
        before = int(looks_back.sum())
        for number in range(count - 1, -1, -1):
            looks_back[number] |= any(looks_back[target] for target in onward[number])
        changed = int(looks_back.sum()) > before
    return [number for number, row in enumerate(steps) if row[0] in (SPLIT, LOOP) and not looks_back[number]]
