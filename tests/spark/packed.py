"""Many drawn cases in one Spark job: streams side by side under a `case` column, all results in one union."""

from __future__ import annotations

import os
from dataclasses import replace

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import HealthCheck, Phase, assume, settings

from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners.results import assemble
from strategies.intervals import ROLES
from strategies.queries import queries, streams

APART = 1000  # time between two cases that no key parts
CASE = s.Equivalence((("case", None),))
NUMBERS = ("probability", "confidence", "earliest", "latest")


# A Spark job takes a second, so that there are few of them, large, and none for the sake of a smaller example.
packed = settings(
    max_examples=40 if os.environ.get("CEPHEID_TEST_PROFILE") == "thorough" else 1,
    phases=[Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


PRECISE = streams(min_size=2, max_size=14, ids=3)


@st.composite
def keyed_cases(draw, *, max_queries=6, max_streams=5, of=PRECISE, **features):
    """Queries with an equivalence test on `case`, and the streams of all cases as one shuffled table."""
    drawn = draw(st.lists(queries(returns=False, **features), min_size=2, max_size=max_queries))
    assume(drawn[0] != drawn[1])  # the simplest example, always tried first, holds nothing
    found = []
    for query in drawn:
        where = CASE if query.where is None else s.And((CASE, query.where))
        found.append(replace(query, where=where))
    return found, _packed(draw, max_streams, of, apart=0)


@st.composite
def keyless_cases(draw, *, max_queries=6, max_streams=5, of=PRECISE, **features):
    """Queries without a key, with a window of time, and streams that lie so far apart that no window spans two."""
    drawn = st.lists(
        queries(returns=False, output=False, equivalence=False, window=True, event_window=False, **features),
        min_size=2,
        max_size=max_queries,
    )
    found = draw(drawn)
    assume(found[0] != found[1])
    return found, _packed(draw, max_streams, of, apart=APART)


def _packed(draw, max_streams, of, apart):
    tables = draw(st.lists(of, min_size=max_streams, max_size=max_streams))
    parts = []
    for number, table in enumerate(tables):
        for place, field in enumerate(table.schema):
            if field.name in ("ts", "lower", "upper"):
                moved = pa.array([value + number * apart for value in table[field.name].to_pylist()], pa.int64())
                table = table.set_column(place, field, moved)
        parts.append(table.append_column("case", pa.array([number] * table.num_rows, pa.int64())))
    whole = pa.concat_tables(parts)
    whole = whole.append_column("event", pa.array(range(whole.num_rows), pa.int64()))
    return whole.take(pa.array(draw(st.permutations(range(whole.num_rows))), pa.int64()))


def plan_of(query: s.QuerySyntax, table: pa.Table, engine: str = "reference", **more) -> Plan:
    """A plan; where the table has bounds, its times are imprecise."""
    bound = bind(query, Schema.from_arrow(table.schema, **(ROLES if "upper" in table.column_names else {})))
    return Plan(bound, engine, partition=bound.equivalence, **more)


def expected(plan: Plan, table: pa.Table) -> list:
    """The matches as sorted ids of events, each with its probabilities, by the local engine."""
    events = ordered(table, plan.bound.schema)
    return sorted(described(plan, assemble(plan.bound, events.table, find(plan, events)).to_pylist()))


def described(plan: Plan, rows: list[dict]) -> list:
    """The same, of rows of a result."""
    found = []
    for row in rows:
        groups = [row[component.variable] for component in plan.bound.positives]
        groups = [group if isinstance(group, list) else [group] if group is not None else [] for group in groups]
        # A dyadic fraction may lie halfway between two roundings; none does after this factor.
        numbers = [round(row[name] * 0.917, 6) for name in NUMBERS if name in row]
        found.append([[sorted(event["event"] for event in group) for group in groups], numbers])
    return found


def by_query(plans: dict[str, Plan], rows: list[dict]) -> dict[str, list]:
    """The same, of rows of the common result of several queries."""
    found: dict[str, list] = {name: [] for name in plans}
    for row in rows:
        found[row["query"]] += described(plans[row["query"]], [row[row["query"]]])
    return {name: sorted(matches) for name, matches in found.items()}


def chosen(plan: Plan):
    """What `described` needs of a result on Spark, in columns of its own; results of several plans can be united."""
    from pyspark.sql import functions as F

    bound = plan.bound
    columns = [F.col(c.variable) for c in bound.positives]
    lists = [column if c.kleene else F.array(column) for column, c in zip(columns, bound.positives, strict=True)]
    ids = [F.transform(F.array_compact(group), lambda event: event["event"]) for group in lists]
    lossy = bound.syntax.threshold is not None or plan.model is not None
    known = {"probability": lossy, "confidence": bound.schema.lower is not None}
    numbers = [F.col(name) if known.get(name, known["confidence"]) else F.lit(None) for name in NUMBERS]
    return F.array(*ids).alias("ids"), F.array_compact(F.array(*[n.cast("double") for n in numbers])).alias("numbers")


def collected(results) -> list[list]:
    """The matches of several (plan, Spark table) in one job, per plan."""
    from pyspark.sql import functions as F

    union = None
    for number, (plan, result) in enumerate(results):
        part = result.select(F.lit(number).alias("number"), *chosen(plan))
        union = part if union is None else union.unionAll(part)
    found: list[list] = [[] for _ in results]
    for row in union.collect():
        numbers = [round(value * 0.917, 6) for value in row["numbers"]]
        found[row["number"]].append([[sorted(group) for group in row["ids"]], numbers])
    return [sorted(matches) for matches in found]
