"""A pattern as a program for backtracking: a few kinds of steps, the preferred way on first.

`A*` becomes: split to the body or past it; the body; split back or on. An iteration that takes no row is the last one,
as in Trino: where a body may be empty, a register keeps the row at which its iteration began.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cepheid.budget import checkpoint, paced
from cepheid.engine.data.arrays import Int32s
from cepheid.errors import QueryError
from cepheid.language import pattern as p

MAX_STEPS = 30_000
TAKE, SPLIT, JUMP, AT_START, AT_END, REMEMBER, LOOP, DONE = range(8)
KEYED = -2  # Program.memory from here downwards: splits whose failures are remembered under keys (memory.py)


class Program(NamedTuple):
    """The steps as arrays.

    TAKE takes a row with label `label`; SPLIT goes on at `left` or, failing that, at `right`; JUMP at `left`;
    REMEMBER keeps the row in register `label`; LOOP is a SPLIT that only leaves (to `exit`) after an empty iteration.
    """

    kind: Int32s
    left: Int32s
    right: Int32s
    label: Int32s  # of TAKE; the register of REMEMBER and LOOP, -1 for none
    exit: Int32s  # where LOOP leaves to
    excluded: Int32s  # of TAKE: is the row left out of the output?
    memory: (
        Int32s  # of SPLIT and LOOP: the number of the bit that says "nothing is found from here", or KEYED and below
    )
    registers: int
    bits: int
    lasting: int  # bits below this one hold for every start, the others only for the one they were set at


@dataclass
class _Steps:
    """The program while it is made: one row per step."""

    labels: dict[str, int]
    rows: list[list[int]] = field(default_factory=list)
    registers: int = 0

    def add(self, kind: int, left: int = 0, right: int = 0, label: int = -1, excluded: int = 0) -> int:
        if len(self.rows) >= MAX_STEPS:
            hint = "use fewer repetitions, or fewer parts of PERMUTE"
            raise QueryError("the pattern is too large", hint=hint, code="too-large")
        self.rows.append([kind, left, right, label, right, excluded])
        return len(self.rows) - 1

    def branch(self, at: int, preferred: int, other: int, greedy: bool = True) -> None:
        self.rows[at][1:3] = [preferred, other] if greedy else [other, preferred]
        self.rows[at][4] = other


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
    steps = _Steps({label: number for number, label in enumerate(labels)})
    _compile(p.joined_repeats(pattern), steps, 0)
    steps.add(DONE)
    table = np.array(steps.rows, np.int32).T
    lasting = _forgetful(steps, {steps.labels[label] for label in path_labels})
    numbered = _forgetful(steps, {steps.labels[label] for label in path_labels - number_labels})
    brief = _forgetful(steps, {steps.labels[label] for label in path_labels - start_labels})
    memory = np.full(len(steps.rows), -1, np.int32)
    memory[lasting] = np.arange(len(lasting))
    known = {*lasting, *numbered}
    others = [number for number in brief if number not in known]
    memory[others] = np.arange(len(lasting), len(lasting) + len(others))
    keyed = [number for number, row in enumerate(steps.rows) if row[0] in (SPLIT, LOOP) and memory[number] < 0]
    memory[keyed] = KEYED - np.arange(len(keyed))
    kind, left, right, label, exits, excluded = (np.ascontiguousarray(row) for row in table)
    bits = len(lasting) + len(others)
    return Program(kind, left, right, label, exits, excluded, memory, steps.registers, bits, len(lasting))


def _compile(pattern: p.Pattern, steps: _Steps, excluded: int) -> None:
    match pattern:
        case p.Single(label=label):
            steps.add(TAKE, label=steps.labels[label], excluded=excluded)
        case p.Sequence(parts=parts):
            for part in parts:
                _compile(part, steps, excluded)
        case p.Choice(parts=parts):
            _choice(parts, steps, excluded)
        case p.AnyOrder():
            _choice(p.orders(pattern).parts, steps, excluded)
        case p.Excluded(part=part):
            _compile(part, steps, 1)
        case p.Repeat(most=None):
            _unbounded(pattern, steps, excluded)
        case p.Repeat():
            _bounded(pattern, steps, excluded)
        case p.Start():
            steps.add(AT_START)
        case p.End():
            steps.add(AT_END)


def _choice(parts: tuple[p.Pattern, ...], steps: _Steps, excluded: int) -> None:
    jumps = []
    for part in parts[:-1]:
        split = steps.add(SPLIT)
        _compile(part, steps, excluded)
        jumps.append(steps.add(JUMP))
        steps.branch(split, split + 1, len(steps.rows))
    _compile(parts[-1], steps, excluded)
    for jump in jumps:
        steps.rows[jump][1] = len(steps.rows)


def _several(part: p.Pattern, count: int, steps: _Steps, excluded: int) -> None:
    """A part so many times; one without steps, such as `()`, is the same however often it stands there."""
    for _ in paced(range(count)):
        before = len(steps.rows)
        _compile(part, steps, excluded)
        if len(steps.rows) == before:
            return


def _unbounded(repeat: p.Repeat, steps: _Steps, excluded: int) -> None:
    entry = steps.add(SPLIT) if repeat.least == 0 else None
    _several(repeat.part, repeat.least - 1, steps, excluded)
    register = -1
    if p.may_be_empty(repeat.part):
        register = steps.registers
        steps.registers += 1
    body = len(steps.rows)
    if register >= 0:
        steps.add(REMEMBER, label=register)
    _compile(repeat.part, steps, excluded)
    loop = steps.add(LOOP, label=register)
    steps.branch(loop, body, len(steps.rows), repeat.greedy)
    if entry is not None:
        steps.branch(entry, body, len(steps.rows), repeat.greedy)


def _bounded(repeat: p.Repeat, steps: _Steps, excluded: int) -> None:
    assert repeat.most is not None
    _several(repeat.part, repeat.least, steps, excluded)
    splits = []
    for _ in range(repeat.most - repeat.least):
        splits.append(steps.add(SPLIT))
        _compile(repeat.part, steps, excluded)
    for split in splits:
        steps.branch(split, split + 1, len(steps.rows), repeat.greedy)


def _forgetful(steps: _Steps, path_labels: set[int]) -> list[int]:
    """The splits from which no step is reached whose condition looks at the path.

    What is found from there does not depend on the path, so a second arrival at the same row need not be tried.
    """
    count = len(steps.rows)
    onward: list[tuple[int, ...]] = []
    looks_back = np.zeros(count, bool)
    for number, (kind, left, right, label, *_) in enumerate(steps.rows):
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
    return [number for number, row in enumerate(steps.rows) if row[0] in (SPLIT, LOOP) and not looks_back[number]]
