"""Drawn streams with imprecise times: lower and upper bounds, and for some events a probability of each instant."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import find
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan
from strategies.queries import streams

ROLES = {"lower": "lower", "upper": "upper"}
WITHIN = 1e-9


@st.composite
def intervals(draw: Any, *, max_size: int = 6, most: int = 3, **more: Any) -> pa.Table:
    """A small stream whose events may have happened up to `most` steps later than they say."""
    table = draw(streams(max_size=max_size, **more))
    widths = [draw(st.sampled_from([0, 0, *range(1, most + 1)])) for _ in range(table.num_rows)]
    lower = np.asarray(table.column("ts"), dtype=np.int64)
    given = [draw(st.none() | weights(width + 1)) for width in widths]
    return (
        table.append_column("lower", pa.array(lower))
        .append_column("upper", pa.array(lower + np.array(widths, np.int64)))
        .append_column("odds", pa.array(given, pa.list_(pa.float64())))
    )


def weights(size: int) -> st.SearchStrategy[list[float]]:
    """Probabilities of some instants; some of them may be impossible."""
    parts = st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any)
    return parts.map(lambda numbers: [number / sum(numbers) for number in numbers])


def run(bound: BoundQuery, events: EventTable, engine: str, **options: Any) -> Matches:
    """What an engine finds, with its equivalence tests as partitions."""
    return find(Plan(bound, engine, partition=bound.equivalence, options=options), events)


def described(matches: Matches) -> dict[Any, tuple[int, int, int, float]]:
    """For each match its completion, tightest range and confidence; nothing may be there twice."""
    assert matches.confidence is not None
    assert matches.earliest is not None
    assert matches.latest is not None
    values = zip(matches.completion, matches.earliest, matches.latest, matches.confidence, strict=True)
    groups = matches.groups()
    assert len(set(groups)) == len(groups)
    return {group: (int(c), int(e), int(late), float(p)) for group, (c, e, late, p) in zip(groups, values, strict=True)}


def assert_same(found: Matches, expected: Matches) -> None:
    """The same matches, known at the same time, with the same range, and confidences that differ by rounding only."""
    one, other = described(found), described(expected)
    assert one.keys() == other.keys()
    for group, (completion, earliest, latest, confidence) in one.items():
        assert (completion, earliest, latest) == other[group][:3], group
        assert abs(confidence - other[group][3]) < WITHIN, group


def in_order(bound: BoundQuery, table: pa.Table) -> EventTable:
    """The table in order, as runners hand it to engines."""
    return ordered(table, bound.schema)
