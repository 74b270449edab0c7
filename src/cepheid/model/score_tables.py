"""How does an engine look up a score in nanoseconds? Tables of segment scores over [0, W] with a checked error.

A table is a piecewise linear function: its maximum over an interval lies on a knot, so the running maxima G of AYAC §4
are exact bounds. Knots lie on all kinks and as densely as the tolerance demands; a list of equal buckets leads to the
right knot without a search over the whole table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from cepheid.errors import ModelError
from cepheid.model.gap import Floats
from cepheid.model.piecewise import LOG_RATIO, NARROWEST, Function
from cepheid.model.scores import Scoring, SegmentScore, segment_score
from cepheid.model.segments import OPEN_END, Ends, SegmentItem
from cepheid.model.table_arrays import TableArrays

MOST_KNOTS = 1 << 18
MOST_WHOLE_TIMES = 1 << 16
# The running maxima are raised by four units in the last place, so that rounding never puts a score above its bound.
_ROUNDING = 1.0 + 2.0**-50


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """The score of one segment as a function of its span, on [0, window].

    `error_bound` is how far an interpolated score may be from the true one, measured when the table was made.
    `maxima` are the running maxima G at the knots, bounds of all interpolated scores up to there.
    """

    scoring: Scoring
    window: float
    error_bound: float
    arrays: TableArrays

    @property
    def knots(self) -> Floats:
        return self.arrays.knots

    @property
    def values(self) -> Floats:
        return self.arrays.values

    @property
    def maxima(self) -> Floats:
        return self.arrays.maxima

    @property
    def highest(self) -> float:
        """G(W): an edge whose highest score is below the threshold can be dropped."""
        return float(self.maxima[-1])

    @property
    def rises(self) -> bool:
        """Whether longer spans never score lower, as S^P."""
        return bool(np.all(np.diff(self.values) >= 0.0))

    @property
    def falls(self) -> bool:
        """Whether longer spans never score higher, as S^N."""
        return bool(np.all(np.diff(self.values) <= 0.0))

    def score(self, span: ArrayLike) -> Floats:
        """The interpolated score of a span, or of an array of them: the same numbers the kernels see."""
        flat = np.ravel(np.asarray(span, dtype=np.float64))
        found = np.clip(_between_knots(self.knots, self.values, self.arrays.slopes, flat), 0.0, 1.0)
        return np.asarray(_at_the_ends(self.knots, self.values, flat, found).reshape(np.shape(span)))

    def maximum(self, span: ArrayLike) -> Floats:
        """G: a bound of the scores of all spans up to this one."""
        flat = np.ravel(np.asarray(span, dtype=np.float64))
        found = _between_knots(self.knots, self.maxima, self.arrays.maxima_slopes, flat)
        return np.asarray(_at_the_ends(self.knots, self.maxima, flat, found).reshape(np.shape(span)))


def _between_knots(knots: Floats, values: Floats, slopes: Floats, spans: Floats) -> Floats:
    """Interpolated as kernels do it (engine/kernels/score_lookup.py), over a whole array."""
    at = np.clip(np.searchsorted(knots, spans, side="right") - 1, 0, max(len(knots) - 2, 0))
    return np.asarray(values[at] + slopes[np.minimum(at, len(slopes) - 1)] * (spans - knots[at]))


def _at_the_ends(knots: Floats, values: Floats, spans: Floats, between: Floats) -> Floats:
    """Spans outside the table count as its ends."""
    return np.where(spans >= knots[-1], values[-1], np.where(spans <= 0.0, values[0], between))


def score_table(
    items: Sequence[SegmentItem],
    window: float,
    scoring: Scoring = "exact",
    tolerance: float = 1e-6,
    whole_times: bool = False,
    ends: Ends = OPEN_END,
) -> ScoreTable:
    """Tabulate the score of a segment over [0, window]. A posterior also needs what stands at its `ends`.

    With `whole_times` the caller promises to ask for whole numbers only, and a window of up to 65,536 gets a knot at
    each of them: no interpolation at all.

    >>> from cepheid.model.distributions import Exponential
    >>> table = score_table([SegmentItem("missing", 0.1, Exponential(mean=60))], 300)
    >>> print(f"{float(table.score(60)):.5f}", table.rises, table.error_bound <= 1e-6)
    0.06321 True True
    """
    if not 1e-12 <= tolerance < 1.0:
        raise ModelError(f"a table cannot be made to a tolerance of {tolerance:g}", hint="use one between 1e-12 and 1")
    return _table(tuple(items), float(window), scoring, float(tolerance), bool(whole_times), ends)


def join_tables(tables: Sequence[ScoreTable]) -> TableArrays:
    """The arrays of several tables behind each other, for kernels that look up many edges."""
    if not tables:
        raise ModelError("no tables to join")
    parts = [table.arrays for table in tables]
    return TableArrays(
        knots=np.concatenate([part.knots for part in parts]),
        values=np.concatenate([part.values for part in parts]),
        slopes=np.concatenate([part.slopes for part in parts]),
        maxima=np.concatenate([part.maxima for part in parts]),
        maxima_slopes=np.concatenate([part.maxima_slopes for part in parts]),
        buckets=np.concatenate([part.buckets for part in parts]),
        first_knot=np.cumsum([0] + [len(part.knots) for part in parts], dtype=np.int64),
        first_bucket=np.cumsum([0] + [len(part.buckets) for part in parts], dtype=np.int64),
        buckets_per_time=np.concatenate([part.buckets_per_time for part in parts]),
        logs=np.concatenate([part.logs for part in parts]),
        direct=np.concatenate([part.direct for part in parts]),
    )


@lru_cache(maxsize=1024)
def _table(
    items: tuple[SegmentItem, ...], window: float, scoring: Scoring, tolerance: float, whole_times: bool, ends: Ends
) -> ScoreTable:
    segment = segment_score(items, window, scoring, tolerance / 50.0, ends)
    # A fixed seed: the driver and every worker must come to the same table.
    random = np.random.default_rng(20070521)
    if whole_times and window <= MOST_WHOLE_TIMES:
        knots, measured = np.unique(np.append(np.arange(np.floor(window) + 1.0), window)), 0.0
    else:
        knots, measured = _choose_knots(segment, tolerance, random)
    values = segment.fast(knots)
    values[0] = 0.0 if any(each.kind == "missing" for each in items) else 1.0
    checks = random.uniform(0.0, window, 64)
    fast_error = float(np.abs(segment.fast(checks) - segment.direct(checks)).max())
    bound = 1.1 * measured + max(segment.error, fast_error)
    return ScoreTable(scoring, window, bound, table_arrays(knots, values))


def _choose_knots(segment: SegmentScore, tolerance: float, random: np.random.Generator) -> tuple[Floats, float]:
    """Knots between which straight lines stay within tolerance, and the largest error that was measured."""
    knots = segment.breaks
    while True:
        errors = _line_errors(segment.fast, knots, random)
        narrow = np.diff(knots) <= NARROWEST * knots[1:]
        # Half the tolerance: the rest is for what a few points per interval did not show.
        fine = (errors <= 0.5 * tolerance) | narrow
        if fine.all() or len(knots) > MOST_KNOTS:
            break
        parts = np.where(fine, 1, np.clip(np.ceil(np.sqrt(errors / (0.4 * tolerance))), 2, 16))
        knots = _subdivide(knots, parts.astype(int))
    # A posterior jumps where a density does: between two times that doubles can hardly tell apart.
    narrow = np.diff(knots) <= 4.0 * NARROWEST * knots[1:]
    afresh = [_line_errors(segment.fast, knots, random) for _ in range(3)]
    return knots, max(float(each[~narrow].max(initial=0.0)) for each in [*afresh, errors])


def _line_errors(function: Function, knots: Floats, random: np.random.Generator) -> Floats:
    """The largest error of a straight line in each interval, at three fixed and two random points."""
    left, width = knots[:-1, None], np.diff(knots)[:, None]
    places = np.concatenate(
        [np.broadcast_to([0.25, 0.5, 0.75], (len(left), 3)), random.uniform(0.0, 1.0, (len(left), 2))], axis=1
    )
    points = left + width * places
    at_knots = function(knots)
    # The points are rounded times: measure where they really are.
    places = (points - left) / width
    lines = at_knots[:-1, None] + np.diff(at_knots)[:, None] * places
    truth = function(points.ravel()).reshape(points.shape)
    return np.asarray(np.abs(truth - lines).max(axis=1))


def _subdivide(knots: Floats, parts: np.ndarray) -> Floats:
    """Cut interval i into parts[i], evenly in t, or in log t where its ends are more than a factor two apart."""
    left, right = np.repeat(knots[:-1], parts), np.repeat(knots[1:], parts)
    steps = np.arange(len(left)) - np.repeat(np.cumsum(parts) - parts, parts)
    share = steps / np.repeat(parts, parts)
    even = left + (right - left) * share
    with np.errstate(divide="ignore", invalid="ignore"):
        geometric = np.where(
            left > 0.0, left * (right / left) ** share, right * 4.0 ** (steps - np.repeat(parts, parts))
        )
    inner = np.where(right > LOG_RATIO * left, geometric, even)
    return np.unique(np.append(np.where(steps == 0, left, inner), knots[-1]))


def table_arrays(knots: Floats, values: Floats) -> TableArrays:
    """The arrays of a single table, from its knots (rising from 0 to the window) and its scores there."""
    window = float(knots[-1])
    maxima = np.maximum.accumulate(values) * _ROUNDING
    count = 1 << max(int(np.ceil(np.log2(2 * len(knots)))), 4)
    edges = np.arange(count + 1) * (window / count)
    buckets = np.clip(np.searchsorted(knots, edges, side="right") - 1, 0, len(knots) - 2)
    widths = np.diff(knots)
    with np.errstate(divide="ignore"):
        logs = np.log(np.clip(values, 0.0, 1.0))
    return TableArrays(
        knots=np.ascontiguousarray(knots),
        values=np.ascontiguousarray(values),
        slopes=np.append(np.diff(values) / widths, 0.0),
        maxima=maxima,
        maxima_slopes=np.append(np.diff(maxima) / widths, 0.0),
        buckets=buckets.astype(np.int32),
        first_knot=np.array([0, len(knots)], dtype=np.int64),
        first_bucket=np.array([0, len(buckets)], dtype=np.int64),
        buckets_per_time=np.array([count / window]),
        logs=logs,
        direct=np.array([np.array_equal(knots, np.arange(len(knots)))], dtype=np.int64),
    )
