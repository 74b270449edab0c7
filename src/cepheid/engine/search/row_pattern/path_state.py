"""Conditions that look at the path: what the search keeps of the path, and what it hands to a compiled condition.

For every position of the path the search keeps how often each set of labels has occurred, and the running aggregates.
Going back and on again overwrites them, so nothing has to be undone, and every row that a condition names and every
aggregate takes constant time. The condition itself is a case of the clause's predicate (`values/compiled.py`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Float64s, Int64Rows, Int64s, Uint8Rows
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.kernels.compile import inlined

# Running aggregates that are kept; a spread follows the mean of the same values, and a set has a bit for each value.
KEEP_SUM, KEEP_MIN, KEEP_MAX, KEEP_ROWS, KEEP_MEAN, KEEP_SPREAD, KEEP_SET = range(7)
MOST_IN_SET = 62  # values whose set is a number
# What a condition asks for: a row, the label of a row, a sum or a count, the row of the least or greatest value.
ASK_ROW, ASK_LABEL, ASK_KEPT, ASK_BEST = range(4)
# At the beginning of `counted`: where the path begins and ends, its partition, the number of the match. The labels of
# the path are at the end of it.
START, ROW, LOW, HIGH, NUMBER, FIXED = range(6)


class PathState(NamedTuple):
    """What conditions ask for, the columns they read, and room for what is kept of the path."""

    active: int
    asks: Int64Rows  # what, where it goes; for rows and labels: set, is it the first?, offset, shift;
    # else the aggregate, and whether the number of its values counts
    entry: Int64Rows  # per label: its first row of `asks`, and the one after its last
    sets: Uint8Rows  # per set of labels and label: is it in the set?
    aggregates: Int64Rows  # per aggregate: what is kept, set, is it a float?, the rows of its values and of its NULLs
    counts: Int64Rows  # per position and set: rows with such a label so far
    places: Int64Rows  # per set: their positions
    labels: Int64s  # per position: the label
    kept_i: Int64Rows  # per position and aggregate: a sum, or the row of the least or greatest value
    kept_f: Float64Rows
    kept_n: Int64Rows
    at: Int64s  # what the predicate is called with: rows, ...
    counted: Int64s  # ... whole numbers...
    running: Float64s  # ... and others
    columns: Columns  # one row more than the table, of NULLs, which -1 means


def with_own_room(judge: PathState, longest: int) -> PathState:
    """The same conditions with room of their own, for another thread; paths are at most so long."""
    slots = len(judge.counted) - len(judge.labels)
    counted = np.zeros(slots + longest, np.int64)
    counted[:slots] = judge.counted[:slots]
    return judge._replace(
        counts=np.zeros((longest, judge.counts.shape[1]), np.int64),
        places=np.zeros((judge.places.shape[0], longest), np.int64),
        labels=counted[slots:],
        kept_i=np.zeros((longest, judge.kept_i.shape[1]), np.int64),
        kept_f=np.zeros((longest, judge.kept_f.shape[1]), np.float64),
        kept_n=np.zeros((longest, judge.kept_n.shape[1]), np.int64),
        at=np.zeros_like(judge.at),
        counted=counted,
        running=np.zeros_like(judge.running),
    )


class Judging(NamedTuple):
    """What is kept and handed over, and the function that judges it."""

    judge: PathState
    predicate: PredicateCall


@inlined
def is_better(columns: Columns, real: int, values: int, row: int, other: int, least: bool) -> bool:
    """Is the value of a row less, or greater, than that of another one?"""
    if real:
        one, two = columns.number[values, row], columns.number[values, other]
        return bool(one < two if least else one > two)
    first, second = columns.whole[values, row], columns.whole[values, other]
    return bool(first < second if least else first > second)


@inlined
def extend(judge: PathState, label: int, start: int, row: int) -> None:
    """The path grows by a row: what is kept of it, at its new position."""
    position = row - start
    judge.labels[position] = label
    for group in range(judge.sets.shape[0]):
        count = judge.counts[position - 1, group] if position > 0 else 0
        if judge.sets[group, label]:
            judge.places[group, count] = position
            count += 1
        judge.counts[position, group] = count
    for index in range(judge.aggregates.shape[0]):
        row_of = judge.aggregates[index]
        keep, group, real, values, nulls = row_of[0], row_of[1], row_of[2], row_of[3], row_of[4]
        known, whole, fraction = 0, 0, 0.0
        if position > 0:
            known = judge.kept_n[position - 1, index]
            whole = judge.kept_i[position - 1, index]
            fraction = judge.kept_f[position - 1, index]
        if judge.sets[group, label]:
            if keep == KEEP_ROWS:
                known += 1
            elif not judge.columns.null[nulls, row]:
                if keep == KEEP_SET:
                    bit = 1 << judge.columns.whole[values, row]
                    known -= 1 if whole & bit else 0
                    whole |= bit
                elif keep in (KEEP_MEAN, KEEP_SPREAD):
                    value = judge.columns.number[values, row]
                    if keep == KEEP_MEAN:  # Welford's recurrence, in the steps of `language/aggregates.py`
                        fraction = value if known == 0 else fraction + (value - fraction) / (known + 1)
                    elif known > 0:
                        mean = judge.kept_f[position - 1, index - 1]
                        fraction += (value - mean) * (value - judge.kept_f[position, index - 1])
                elif keep != KEEP_SUM:
                    if known == 0 or is_better(judge.columns, real, values, row, whole, keep == KEEP_MIN):
                        whole = row
                elif real:
                    fraction += judge.columns.number[values, row]
                else:
                    whole += judge.columns.whole[values, row]
                known += 1
        judge.kept_n[position, index] = known
        judge.kept_i[position, index] = whole
        judge.kept_f[position, index] = fraction


@inlined
def place_of(judge: PathState, position: int, group: int, first: int, offset: int) -> int:
    """The position that FIRST or LAST means, -1 if there is none."""
    count = judge.counts[position, group]
    if offset >= count:
        return -1
    place: int = judge.places[group, offset] if first else judge.places[group, count - 1 - offset]
    return place


@inlined
def hand_over(judge: PathState, label: int, start: int, row: int, low: int, high: int) -> None:
    """Puts what the condition of a label asks for where the predicate finds it; -1 for a row that is not there."""
    position = row - start
    for index in range(judge.entry[label, 0], judge.entry[label, 1]):
        ask = judge.asks[index]
        what, slot = ask[0], ask[1]
        if what == ASK_KEPT:
            judge.counted[slot] = judge.kept_n[position, ask[2]]
            judge.counted[slot + 1] = judge.kept_i[position, ask[2]]
            judge.running[ask[2]] = judge.kept_f[position, ask[2]]
            continue
        if what == ASK_BEST:
            judge.at[slot] = judge.kept_i[position, ask[2]] if judge.kept_n[position, ask[2]] > 0 else -1
            continue
        place = place_of(judge, position, ask[2], ask[3], ask[4])
        target = start + place + ask[5]
        if place < 0 or target < low or target >= high:
            target = -1
        if what == ASK_ROW:
            judge.at[slot] = target
        else:
            judge.counted[slot] = judge.labels[target - start] if start <= target <= row else -1


@inlined
def holds_here(
    judge: PathState, predicate: PredicateCall, label: int, start: int, row: int, low: int, high: int, number: int
) -> bool:
    """May the row at hand have the label, after the path that led to it?"""
    extend(judge, label, start, row)
    hand_over(judge, label, start, row, low, high)
    counted = judge.counted
    counted[START], counted[ROW], counted[LOW], counted[HIGH], counted[NUMBER] = start, row, low, high, number
    return bool(predicate(label, judge.at, counted, judge.running, judge.columns))
