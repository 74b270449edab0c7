"""`lacks` in every engine: exactly what a call names holds where it is NULL, every other NULL is SQL's."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.engine.choose import make_plan
from cepheid.engine.data.table import ordered
from cepheid.engine.engines import ENGINES
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.plan.options import PlanOptions
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to, everything
from strategies.queries import queries, streams

MAY_BE_NULL = ("id", "x", "z")


@st.composite
def lacking_streams(draw: st.DrawFn) -> tuple[pa.Table, dict[str, list[str]]]:
    """A stream some of whose values are NULL, and which types are said to lack which attributes."""
    table = draw(streams(max_size=8))
    attributes = st.lists(st.sampled_from(MAY_BE_NULL), min_size=1, max_size=2, unique=True)
    lacks = draw(st.dictionaries(st.sampled_from(["A", "B", "C"]), attributes, min_size=1, max_size=2))
    rows = table.to_pylist()
    for row in rows:
        for name in MAY_BE_NULL:
            if draw(st.integers(0, 3 if name not in lacks.get(row["type"], []) else 1)) == 0:
                row[name] = None
    return pa.Table.from_pylist(rows, pa.schema([field.with_nullable(True) for field in table.schema])), lacks


@pytest.mark.parametrize(
    "engine", [name for name in ENGINES if name in ("sequence", "runs", "lazy-chain", "lazy-tree")]
)
@settings(suppress_health_check=list(HealthCheck))
@given(query=queries(output=False, returns=False, max_components=3), drawn=lacking_streams())
def test_every_engine_agrees_with_the_reference(query: s.QuerySyntax, drawn: Any, engine: str) -> None:
    table, lacks = drawn
    bound = bound_to(query, table, lacks=lacks)
    if ENGINES[engine].refuses(bound) is not None:
        return
    events = ordered(table, bound.schema)
    expected = everything(find(Plan(bound, "reference"), events))
    assert everything(find(Plan(bound, engine, partition=bound.equivalence), events)) == expected
    plan, _ = make_plan(bound, None, PlanOptions(engine=engine))  # with all rules of the planner
    assert everything(find(plan, events)) == expected
