"""Scores of missing events over whole numbers of instants.

Imprecise times are whole instants, so the spans between them are, too: a score needs no interpolation, only one entry
for each span from nothing to the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple, cast

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.scoring.edges import CERTAIN, FALLS, RISES, Edges, build_edges
from cepheid.engine.scoring.losses import NEGLIGIBLE, check_missing, gap_scale
from cepheid.errors import LimitError, ModelError
from cepheid.model.score_tables import ScoreTable, table_arrays
from cepheid.model.scores import Scoring, segment_score
from cepheid.model.segments import Ends, SegmentItem
from cepheid.plan.physical import Plan

MAX_WINDOW = 200_000  # instants: an entry for each and every pair of components that may be neighbours
PRECISION = 1e-10


class Spans(NamedTuple):
    """Tables behind each other: the entry of table k for a span of d instants is first[k] + d."""

    first: Int64s
    score: Float64s
    log: Float64s  # of the score
    highest: Float64s  # log of the best score of any span up to this one


def edges_in_instants(plan: Plan, count: int, step: int) -> tuple[Edges, Spans]:
    """What may be missing between which components, scored over spans of up to `count` instants.

    An instant is `step` steps of the time column.
    """
    model = check_missing(plan.bound, plan.model)
    scale = gap_scale(plan.bound, model)
    if model.hours:
        raise ModelError(
            "with imprecise times or uncertain events, only the reference engine supports losses by the hour",
            hint="pass engine='reference' for a small table, or a model with one loss for the whole day",
        )
    if count > MAX_WINDOW:
        raise LimitError(
            f"with missing events and imprecise times a window may hold {MAX_WINDOW:,} instants, not {count:,}",
            hint="count time in larger steps, for example unit='1 s'",
        )
    scoring = cast(Scoring, plan.scoring)
    edges = build_edges(plan, partial(table_of_instants, count=count, step=step, scale=scale, scoring=scoring))
    return edges, spans_of(edges)


def table_of_instants(
    items: Sequence[SegmentItem], ends: Ends, *, count: int, step: int, scale: float, scoring: Scoring
) -> ScoreTable:
    """The score of a segment for 0, 1, 2 ... up to `count` instants."""
    return _table(tuple(items), ends, count, step, scale, scoring)


@lru_cache(maxsize=256)
def _table(
    items: tuple[SegmentItem, ...], ends: Ends, count: int, step: int, scale: float, scoring: Scoring
) -> ScoreTable:
    spans: Float64s = np.arange(count + 1) * step * np.float64(scale)
    segment = segment_score(items, float(spans[-1]), scoring, PRECISION, ends)
    values = np.asarray(segment.fast(spans), np.float64)
    values[0] = 0.0 if any(item.kind == "missing" for item in items) else 1.0
    values[values < NEGLIGIBLE] = 0.0
    return ScoreTable(scoring, float(count), segment.error, table_arrays(np.arange(count + 1.0), values))


def spans_of(edges: Edges) -> Spans:
    """The tables of all edges."""
    tables = edges.tables
    with np.errstate(divide="ignore"):
        highest = np.log(tables.maxima)
    return Spans(tables.first_knot, tables.values, tables.logs, highest)


@inlined
def score_of(spans: Spans, number: int, span: int) -> float:
    """The score of an edge over a span."""
    return 1.0 if number == CERTAIN else float(spans.score[spans.first[number] + span])


@borrowing
def best_of(spans: Spans, number: int, monotone: int, shortest: int, longest: int) -> float:
    """An upper bound of the log score over some spans; exact where the score is monotone."""
    if number == CERTAIN:
        return 0.0
    first = spans.first[number]
    if monotone == FALLS:
        return spans.log[first + shortest]  # type: ignore[no-any-return]
    if monotone == RISES:
        return spans.log[first + longest]  # type: ignore[no-any-return]
    return spans.highest[first + longest]  # type: ignore[no-any-return]
