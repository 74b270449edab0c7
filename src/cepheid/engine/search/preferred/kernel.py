"""The search itself: backtracking over a program, partition by partition, with a memory of what led to nothing."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.search.preferred.judge import JUDGE, Judge, extend, holds_here
from cepheid.engine.search.preferred.program import (
    AT_END,
    AT_START,
    JUMP,
    LOOP,
    REMEMBER,
    SPLIT,
    TAKE,
    Int32s,
    Int64s,
    Program,
)

Bytes = npt.NDArray[np.uint8]

INT32S = types.int32[::1]
INT64S = types.int64[::1]
BYTE_ROWS = types.uint8[:, ::1]
PROGRAM = types.NamedTuple((INT32S,) * 7 + (types.int64, types.int64), Program)

UNMATCHED = -1  # the length of a match that is none
SKIP_PAST_LAST, SKIP_NEXT, SKIP_FIRST, SKIP_LAST = range(4)
NO_SUCH_LABEL, NO_PROGRESS = 1, 2  # what AFTER MATCH SKIP may run into


class Rows(NamedTuple):
    """The rows of all partitions, one partition after the other."""

    bounds: Int64s  # where each partition begins, and the end of the last
    time: Int64s  # the first sort key, if there is a window
    always: Bytes  # per label: 0 judged by a column of `holds`, 1 holds everywhere, 2 judged by the path
    holds: npt.NDArray[np.uint8]  # per label and row: may the row have the label?


class Mode(NamedTuple):
    """What the clause asks for."""

    within: int  # 0: no window
    skip: int
    skip_labels: Bytes  # per label
    unmatched: int  # also report rows that no match has taken


ROWS = types.NamedTuple((INT64S, INT64S, types.uint8[::1], BYTE_ROWS), Rows)
MODE = types.NamedTuple((types.int64, types.int64, types.uint8[::1], types.int64), Mode)
RESULT = types.Tuple((INT64S, INT64S, INT32S, types.int64, types.int64))


@numba.njit(INT64S(INT64S), cache=True)
def grown(values: Int64s) -> Int64s:
    """The same values with room for as many again."""
    larger = np.empty(2 * len(values), np.int64)
    larger[: len(values)] = values
    return larger


@numba.njit(INT32S(INT32S, types.int64), cache=True)
def grown_path(values: Int32s, needed: int) -> Int32s:
    """The same values with room for at least so many."""
    larger = np.empty(max(2 * len(values), needed), np.int32)
    larger[: len(values)] = values
    return larger


@numba.njit(types.int64(PROGRAM, MODE, INT32S, types.int64, types.int64), cache=True)
def next_start(program: Program, mode: Mode, path: Int32s, start: int, length: int) -> int:
    """Where the search goes on after a match; -1 or -2 where AFTER MATCH SKIP cannot."""
    if mode.skip == SKIP_PAST_LAST:
        return start + length
    if mode.skip == SKIP_NEXT:
        return start + 1
    place = -1
    for position in range(length):
        if mode.skip_labels[program.label[path[position]]]:
            place = position
            if mode.skip == SKIP_FIRST:
                break
    if place < 0:
        return -NO_SUCH_LABEL
    return start + place if place > 0 else -NO_PROGRESS


@numba.njit(RESULT(PROGRAM, ROWS, MODE, JUDGE), cache=True)
def search(program: Program, rows: Rows, mode: Mode, judge: Judge) -> tuple[Int64s, Int64s, Int32s, int, int]:
    """All matches: where each begins, how many rows it takes, and the step that took each of its rows.

    A length of 0 is an empty match, UNMATCHED a row that is in no match. The last two numbers say whether AFTER MATCH
    SKIP failed, and at which row.
    """
    starts, lengths = np.empty(64, np.int64), np.empty(64, np.int64)
    taken = np.empty(256, np.int32)
    found = used = 0
    partitions = len(rows.bounds) - 1
    total = rows.bounds[partitions]
    width = (program.bits + 7) // 8
    dead = np.zeros((total + partitions, max(width, 1)), np.uint8)
    path = np.empty(64, np.int32)
    stack = np.empty(256, np.int64)
    trail = np.empty(128, np.int64)  # marks on the way that is being tried: they are no failures if it succeeds
    marked = np.empty(128, np.int64)  # marks of this attempt
    undo = np.empty(64, np.int64)
    registers = np.full(max(program.registers, 1), -1, np.int64)
    for partition in range(partitions):
        low, high = rows.bounds[partition], rows.bounds[partition + 1]
        start, matched, number = low, low - 1, 1
        while start < high:
            pc, row, depth = 0, start, 0
            trail_end = marks = undone = 0
            cut = False
            length = UNMATCHED
            while True:
                kind = program.kind[pc]
                failed = False
                if kind == TAKE:
                    if row >= high:
                        failed = True
                    elif mode.within > 0 and rows.time[row] - rows.time[start] >= mode.within:
                        failed = True
                        cut = True
                    else:
                        label = program.label[pc]
                        how = rows.always[label]
                        position = row - start
                        if position >= len(path):
                            path = grown_path(path, position + 1)
                        path[position] = pc
                        if how == 0:
                            failed = rows.holds[label, row] == 0
                        elif how == 2:
                            failed = rows.holds[label, row] == 0 or not holds_here(
                                judge, label, start, row, low, high, number
                            )
                        if not failed:
                            if judge.active and how != 2:
                                extend(judge, label, start, row, number)
                            row += 1
                            pc += 1
                elif kind == SPLIT or kind == LOOP:
                    only_out = kind == LOOP and program.label[pc] >= 0 and registers[program.label[pc]] == row
                    if only_out:
                        pc = program.exit[pc]
                    else:
                        bit = program.memory[pc]
                        if bit >= 0:
                            place = row + partition
                            mask = np.uint8(1 << (bit & 7))
                            if dead[place, bit >> 3] & mask:
                                failed = True
                            else:
                                dead[place, bit >> 3] |= mask
                                if trail_end >= len(trail):
                                    trail = grown(trail)
                                trail[trail_end] = place * program.bits + bit
                                trail_end += 1
                                if mode.within > 0:
                                    if marks >= len(marked):
                                        marked = grown(marked)
                                    marked[marks] = place * program.bits + bit
                                    marks += 1
                        if not failed:
                            if 4 * depth + 4 > len(stack):
                                stack = grown(stack)
                            stack[4 * depth] = program.right[pc]
                            stack[4 * depth + 1] = row
                            stack[4 * depth + 2] = trail_end
                            stack[4 * depth + 3] = undone
                            depth += 1
                            pc = program.left[pc]
                elif kind == JUMP:
                    pc = program.left[pc]
                elif kind == AT_START:
                    failed = row != low
                    pc += 1
                elif kind == AT_END:
                    failed = row != high
                    pc += 1
                elif kind == REMEMBER:
                    register = program.label[pc]
                    if 2 * undone + 2 > len(undo):
                        undo = grown(undo)
                    undo[2 * undone], undo[2 * undone + 1] = register, registers[register]
                    undone += 1
                    registers[register] = row
                    pc += 1
                else:  # DONE
                    length = row - start
                    break
                if failed:
                    if depth == 0:
                        break
                    depth -= 1
                    pc, row = stack[4 * depth], stack[4 * depth + 1]
                    trail_end = stack[4 * depth + 2]
                    while undone > stack[4 * depth + 3]:
                        undone -= 1
                        registers[undo[2 * undone]] = undo[2 * undone + 1]
            # What the window cut off may be found from a later start; what succeeded is no failure.
            count = marks if cut else trail_end if length >= 0 else 0
            for index in range(count):
                entry = marked[index] if cut else trail[index]
                bit = entry % program.bits
                dead[entry // program.bits, bit >> 3] &= np.uint8(255 - (1 << (bit & 7)))
            if found >= len(starts):
                starts, lengths = grown(starts), grown(lengths)
            if length < 0:
                if mode.unmatched and start > matched:
                    starts[found], lengths[found] = start, UNMATCHED
                    found += 1
                start += 1
                continue
            starts[found], lengths[found] = start, length
            found += 1
            number += 1
            if length == 0:
                start += 1
                continue
            if used + length > len(taken):
                taken = grown_path(taken, used + length)
            taken[used : used + length] = path[:length]
            used += length
            matched = max(matched, start + length - 1)
            onward = next_start(program, mode, path, start, length)
            if onward < 0:
                return starts[:found].copy(), lengths[:found].copy(), taken[:used].copy(), -onward, start
            start = onward
    return starts[:found].copy(), lengths[:found].copy(), taken[:used].copy(), 0, -1
