"""Many drawn cases in one Spark job: streams side by side under a `case` column, all results in one union."""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import HealthCheck, Phase, assume, settings

from cepheid.engine.events import ordered
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from strategies.queries import queries, streams

APART = 1000  # time between two cases that no key parts
CASE = s.Equivalence((("case", None),))


# A Spark job takes a second, so that there are few of them, large, and none for the sake of a smaller example.
packed = settings(
    max_examples=40 if os.environ.get("CEPHEID_TEST_PROFILE") == "thorough" else 1,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@st.composite
def keyed_cases(draw, *, max_queries=6, max_streams=5, **features):
    """Queries with an equivalence test on `case`, and the streams of all cases as one shuffled table."""
    drawn = draw(st.lists(queries(returns=False, **features), min_size=2, max_size=max_queries))
    assume(drawn[0] != drawn[1])  # the simplest example, always tried first, holds nothing
    found = []
    for query in drawn:
        where = CASE if query.where is None else s.And((CASE, query.where))
        found.append(replace(query, where=where))
    return found, _packed(draw, max_streams, apart=0)


@st.composite
def keyless_cases(draw, *, max_queries=6, max_streams=5, **features):
    """Queries without a key, with a window of time, and streams that lie so far apart that no window spans two."""
    drawn = st.lists(
        queries(returns=False, output=False, equivalence=False, window=True, event_window=False, **features),
        min_size=2,
        max_size=max_queries,
    )
    found = draw(drawn)
    assume(found[0] != found[1])
    return found, _packed(draw, max_streams, apart=APART)


def _packed(draw, max_streams, apart):
    tables = draw(st.lists(streams(min_size=2, max_size=14, ids=3), min_size=max_streams, max_size=max_streams))
    parts = []
    for number, table in enumerate(tables):
        moved = pa.array([value + number * apart for value in table["ts"].to_pylist()], pa.int64())
        table = table.set_column(0, pa.field("ts", pa.int64(), nullable=False), moved)
        parts.append(table.append_column("case", pa.array([number] * table.num_rows, pa.int64())))
    whole = pa.concat_tables(parts)
    whole = whole.append_column("event", pa.array(range(whole.num_rows), pa.int64()))
    return whole.take(pa.array(draw(st.permutations(range(whole.num_rows))), pa.int64()))


def plan_of(query: s.QuerySyntax, table: pa.Table, engine: str = "reference") -> Plan:
    bound = bind(query, Schema.from_arrow(table.schema))
    return Plan(bound, engine, partition=bound.equivalence)


def expected(plan: Plan, table: pa.Table) -> list:
    """The matches as sorted ids of events, by the local engine."""
    events = ordered(table, plan.bound.schema)
    ids = events.table["event"].to_pylist()
    found = find(plan, events).groups()
    return sorted([sorted(ids[row] for row in group) for group in match] for match in found)


def signature(plan: Plan):
    """The same, of a result on Spark, as a column."""
    from pyspark.sql import functions as F

    parts = [
        F.array_sort(F.col(f"{c.variable}.event")) if c.kleene else F.array(F.col(f"{c.variable}.event"))
        for c in plan.bound.positives
    ]
    return F.array(*parts).alias("signature")


def collected(results) -> list[list]:
    """The matches of several (plan, Spark table) in one job, per plan."""
    from pyspark.sql import functions as F

    union = None
    for number, (plan, result) in enumerate(results):
        part = result.select(F.lit(number).alias("number"), signature(plan))
        union = part if union is None else union.unionAll(part)
    found: list[list] = [[] for _ in results]
    for row in union.collect():
        found[row["number"]].append([list(group) for group in row["signature"]])
    return [sorted(matches) for matches in found]
