"""What a complete match is worth: who could be in its way, its confidence, and its tightest range."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np
import numpy.typing as npt
from numba import types

from cepheid.engine.data.columns import COLUMNS, INT64S, Columns
from cepheid.engine.data.timed import STACKS, TIMED, Stacks, Timed, between, first_beyond, first_reaching
from cepheid.engine.kernels.apart import apart
from cepheid.engine.kernels.arrays import equal_codes, grown
from cepheid.engine.search.intervals.query import SHAPE, Shape
from cepheid.engine.values.compiled import PREDICATE
from cepheid.engine.worth.confidence.shared_rivals import WEIGHING, Weighing, unweighed
from cepheid.engine.worth.confidence.undisturbed import exclusive
from cepheid.engine.worth.confidence.order import WORKSPACE, Workspace, ordered_within

Int64s = npt.NDArray[np.int64]

Judged = tuple[float, int, int, float]  # confidence, earliest, latest; above 0: the steps it would take, too many


class Rivals(NamedTuple):
    """Events that could disturb a match: event * (gaps) + gap, and the disjuncts in which they would, as bits."""

    keys: Int64s
    branches: Int64s


RIVALS = types.NamedUniTuple(INT64S, 2, Rivals)


@numba.njit(types.UniTuple(INT64S, 2)(INT64S, INT64S), cache=True)
def merged(keys: Int64s, branches: Int64s) -> tuple[Int64s, Int64s]:
    """The keys in order, each once, with the bits of all its mentions."""
    order = np.argsort(keys)
    found = 0
    one, bits = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    for index in order:
        if found and one[found - 1] == keys[index]:
            bits[found - 1] |= branches[index]
        else:
            one[found], bits[found] = keys[index], branches[index]
            found += 1
    return one[:found].copy(), bits[:found].copy()


@apart(RIVALS(TIMED, SHAPE, STACKS, COLUMNS, types.FunctionType(PREDICATE), types.int64, INT64S, INT64S, INT64S))
def rivals(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    columns: Columns,
    predicate: Any,
    part: int,
    at: Int64s,
    low: Int64s,
    high: Int64s,
) -> Rivals:
    """Everyone who could disturb the match at[:positives], whose events have the valid bounds low .. high."""
    length = shape.positives
    gaps = length + 1
    keys, branches = np.empty(16, np.int64), np.empty(16, np.int64)
    found = 0
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    first_negation = 2 * length + len(shape.mentioned)
    first_branch = first_negation + shape.negatives
    for blocking in range(1, length + shape.negatives):
        # What would have to lie in start .. stop to disturb, and which gap that is.
        if blocking < length:  # another event for the same place
            if not shape.next:
                continue
            start, stop, gap, known = low[blocking - 1] + 1, high[blocking] - 1, blocking, blocking
        else:
            after, before = shape.neg_after[blocking - length], shape.neg_before[blocking - length]
            start = low[after] + 1 if after >= 0 else low[length - 1] - shape.window + 1
            stop = high[before] - 1 if before >= 0 else high[0] + shape.window - 1
            gap, known = after + 1, length
        chosen = at[blocking]
        bottom, top = stacks.begin[blocking, part], stacks.begin[blocking, part + 1]
        top = first_beyond(stacks, timed.lower, bottom, top, stop)
        for index in range(first_reaching(stacks, bottom, top, start), top):
            event = stacks.member[index]
            if timed.upper[event] < start or between(timed, event, start, stop) == 0.0:
                continue
            taken = False
            for place in range(length):
                taken = taken or (event == at[place] if place != blocking else event == chosen)
            if taken or not equal_codes(timed.compared, at, 0, known, event):
                continue
            at[blocking] = event
            bits = 0
            if blocking < length:
                if shape.tested[blocking] == 0 or predicate(blocking, at, no_counts, no_sums, columns):
                    bits = -1
            elif shape.branches == 1:
                case = first_negation + blocking - length
                if shape.tested[case] == 0 or predicate(case, at, no_counts, no_sums, columns):
                    bits = -1
            else:
                for branch in range(shape.branches):
                    case = first_branch + branch * (1 + shape.negatives) + 1 + blocking - length
                    if shape.tested[case] == 0 or predicate(case, at, no_counts, no_sums, columns):
                        bits |= 1 << branch
            at[blocking] = chosen
            if bits == 0:
                continue
            if found == len(keys):
                keys, branches = grown(keys), grown(branches)
            keys[found], branches[found] = event * gaps + gap, bits
            found += 1
    keys, branches = merged(keys[:found], branches[:found])
    return Rivals(keys, branches)


@numba.njit(types.int64(SHAPE, COLUMNS, types.FunctionType(PREDICATE), INT64S), cache=True)
def standing_branches(shape: Shape, columns: Columns, predicate: Any, at: Int64s) -> int:
    """The disjuncts whose positive part holds, as bits."""
    no_counts, no_sums = np.empty(0, np.int64), np.empty(0, np.float64)
    first = 2 * shape.positives + len(shape.mentioned) + shape.negatives
    standing = 0
    for branch in range(shape.branches):
        case = first + branch * (1 + shape.negatives)
        if shape.tested[case] == 0 or predicate(case, at, no_counts, no_sums, columns):
            standing |= 1 << branch
    return standing


@apart(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED, INT64S, INT64S, INT64S, types.int64, RIVALS, types.int64, WEIGHING, types.float64
    )
)
def alternatives(
    timed: Timed,
    chosen: Int64s,
    low: Int64s,
    high: Int64s,
    window: int,
    found: Rivals,
    standing: int,
    weighing: Weighing,
    budget: float,
) -> Judged:
    """The probability that nobody disturbs the match in at least one of the standing disjuncts, worlds being weighed.

    By inclusion and exclusion: nobody disturbs it in all disjuncts of a set iff all that disturb it in any one of them
    stay away.
    """
    total, earliest, latest = 0.0, high[0] + 1, low[0] - 1
    most = 0.0
    subset = standing
    while subset > 0:
        members = 0
        for bit in range(63):
            members += (subset >> bit) & 1
        keys = np.empty(len(found.keys), np.int64)
        count = 0
        for index in range(len(found.keys)):
            if found.branches[index] & subset != 0:
                keys[count] = found.keys[index]
                count += 1
        share, first, last, cost = exclusive(timed, chosen, low, high, window, keys[:count].copy(), weighing, budget)
        if cost > 0.0:
            return 0.0, 0, 0, cost
        total += share if members % 2 == 1 else -share
        if members == 1 and share > 0.0:
            most = max(most, share)
            earliest, latest = min(earliest, first), max(latest, last)
        subset = (subset - 1) & standing
    return min(max(total, most), 1.0), earliest, latest, 0.0


@apart(
    types.Tuple((types.float64, types.int64, types.int64, types.float64))(
        TIMED, SHAPE, STACKS, COLUMNS, types.FunctionType(PREDICATE), types.int64, INT64S, INT64S, INT64S, WORKSPACE
    )
)
def judge(
    timed: Timed,
    shape: Shape,
    stacks: Stacks,
    columns: Columns,
    predicate: Any,
    part: int,
    at: Int64s,
    low: Int64s,
    high: Int64s,
    room: Workspace,
) -> Judged:
    """The confidence and the tightest range of the match at[:positives] with valid bounds low .. high."""
    length = shape.positives
    holes = 0
    for place in range(length):
        holes |= timed.holes[at[place]]
    total = ordered_within(timed, at, low, high, length, shape.window, room)
    if total < shape.least[0]:
        return 0.0, 0, 0, 0.0
    simple = holes == 0 and total > 0.0
    if simple and not shape.next and shape.negatives == 0:
        return min(total, 1.0), low[0], high[length - 1], 0.0
    found = rivals(timed, shape, stacks, columns, predicate, part, at, low, high)
    if simple and len(found.keys) == 0:
        return min(total, 1.0), low[0], high[length - 1], 0.0
    standing = 1
    if shape.branches > 1:
        standing = standing_branches(shape, columns, predicate, at)
    chosen = at[:length].copy()
    return alternatives(timed, chosen, low, high, shape.window, found, standing, unweighed(), shape.budget)
