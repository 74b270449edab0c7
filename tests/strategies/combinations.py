"""Drawn cases for what can be combined: missing events with groups and the next match, imprecise times with contiguity,
negated components that a condition ties together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.model import Model
from strategies.intervals import intervals
from strategies.models import models
from strategies.queries import queries, streams

SCORINGS = ("exact", "paper", "posterior")
CONTIGUOUS = tuple(sorted(s.CONTIGUOUS, key=lambda strategy: strategy.value))


class MissingCase(NamedTuple):
    """A query with THRESHOLD, its stream and model, how it is scored, and whether the last event may be missing."""

    query: s.QuerySyntax
    events: pa.Table
    model: Model
    scoring: str
    missing_last: bool


class ImpreciseCase(NamedTuple):
    """A query and a stream with lower and upper bounds."""

    query: s.QuerySyntax
    events: pa.Table


@st.composite
def missing_cases(
    draw: st.DrawFn,
    *,
    groups: bool = True,
    aggregates: bool = True,
    following: bool = True,
    strategy: s.Strategy | Collection[s.Strategy] | None = None,
    imprecise: bool = False,
    max_size: int = 7,
    scorings: Collection[str] = SCORINGS,
    **more: Any,
) -> MissingCase:
    """Missing events: with Kleene `groups`, `aggregates` over them and LEN, and the `following` (next) match.

    With `imprecise` the stream has bounds instead of points of time; further options are those of `queries`.
    """
    drawn = {"returns": False, "output": False, "max_components": 4} | more
    query = draw(
        queries(
            threshold=True,
            missing_groups=groups,
            missing_next=following,
            aggregates=aggregates,
            strategy=strategy,
            **drawn,
        )
    )
    events = draw(intervals(max_size=min(max_size, 4), most=2) if imprecise else streams(max_size=max_size))
    model = draw(models(component.variable for component in query.components))
    return MissingCase(query, events, model, draw(st.sampled_from(list(scorings))), draw(st.booleans()))


@st.composite
def contiguous_cases(draw: st.DrawFn, *, max_size: int = 5, **more: Any) -> ImpreciseCase:
    """Strict and partition contiguity at imprecise times."""
    drawn = {"strategy": CONTIGUOUS, "event_window": False, "output": False, "returns": False} | more
    query = draw(queries(**drawn))
    return ImpreciseCase(query, draw(intervals(max_size=max_size, most=2)))


def tied_queries(**more: Any) -> st.SearchStrategy[s.QuerySyntax]:
    """Queries with two negated components or more, of which a condition ties some together."""
    return queries(tied_negations=True, **more)
