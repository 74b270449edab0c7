"""The lookup that kernels call: the score of edge k at span t, from the arrays of joined tables.

Kernels contain a copy of it; the first query of a fresh installation runs it as plain Python.
"""

from __future__ import annotations

import math

from cepheid.engine.kernels.compile import inlined
from cepheid.model.table_arrays import TableArrays


@inlined
def find_knot(tables: TableArrays, k: int, t: float) -> int:
    """The knot (in the joined arrays) at which the interval that holds t begins; t is within [0, window]."""
    first, last = tables.first_knot[k], tables.first_knot[k + 1] - 2
    bucket = tables.first_bucket[k] + int(t * tables.buckets_per_time[k])
    if bucket > tables.first_bucket[k + 1] - 2:
        bucket = tables.first_bucket[k + 1] - 2
    low, high = first + tables.buckets[bucket], first + tables.buckets[bucket + 1] + 1
    while high - low > 1:
        middle = (low + high) // 2
        if tables.knots[middle] <= t:
            low = middle
        else:
            high = middle
    # Rounding may have put t into the bucket next to its own.
    while low > first and tables.knots[low] > t:
        low -= 1
    while low < last and tables.knots[low + 1] <= t:
        low += 1
    return int(min(low, last))


@inlined
def score_at(tables: TableArrays, k: int, t: float) -> float:
    """The score of table k at span t; spans outside [0, window] count as its ends."""
    end = tables.first_knot[k + 1] - 1
    if t >= tables.knots[end]:
        return float(tables.values[end])
    if t <= 0.0:
        return float(tables.values[tables.first_knot[k]])
    i = find_knot(tables, k, t)
    return float(min(max(tables.values[i] + tables.slopes[i] * (t - tables.knots[i]), 0.0), 1.0))


@inlined
def log_score_at(tables: TableArrays, k: int, t: float) -> float:
    """log(score_at), minus infinity for zero."""
    if tables.direct[k] == 1 and 0.0 <= t < tables.first_knot[k + 1] - tables.first_knot[k]:
        whole = int(t)
        if whole == t:
            return float(tables.logs[tables.first_knot[k] + whole])
    score = score_at(tables, k, t)
    return math.log(score) if score > 0.0 else -math.inf


@inlined
def maximum_at(tables: TableArrays, k: int, t: float) -> float:
    """G: at least every score_at(tables, k, u) with u <= t."""
    end = tables.first_knot[k + 1] - 1
    if t >= tables.knots[end]:
        return float(tables.maxima[end])
    if t <= 0.0:
        return float(tables.maxima[tables.first_knot[k]])
    i = find_knot(tables, k, t)
    return float(tables.maxima[i] + tables.maxima_slopes[i] * (t - tables.knots[i]))
