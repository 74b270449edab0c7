"""Drawn cases that an engine supports. What it supports is asked of the engine, so that a new one is tested by being
listed: a few simple queries find out which kinds of streams and which features it knows, and drawn queries have those.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, NamedTuple

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.engines import Engine
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.linear import TooManyError, linear_patterns
from cepheid.language.schema import Schema
from cepheid.model import Exponential, Model
from cepheid.plan.physical import Plan
from contract.shapes import shapes
from strategies.expressions import expression_queries
from strategies.intervals import ROLES, intervals
from strategies.models import models
from strategies.queries import ARROW_SCHEMA, queries, streams

# What may be unsure of a stream: which events are missing, when they happened, and whether they happened at all.
KINDS = (
    "certain",
    "missing",
    "imprecise",
    "both",
    "existence",
    "existence missing",
    "existence imprecise",
    "existence both",
)
CHANCES = st.sampled_from([0.0, 0.25, 0.5, 0.9, 1.0, 1.0])
COMPILED = os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0")
ANY_MODEL = Model(loss=0.1, gaps=dict.fromkeys("abcd", Exponential(mean=3.0)))

# A query for each feature that an engine may not know.
FEATURES = {
    "kleene": "PATTERN SEQ(A a, B+ b[]) WITHIN 5",
    "aggregates": "PATTERN SEQ(A a, B+ b[]) WHERE sum(b[].x) > 1 AND b.LEN < 3 WITHIN 5",
    "tied_negations": "PATTERN SEQ(A a, !(B b), !(B c), B d) WHERE b.x = c.x WITHIN 5",
    "event_window": "PATTERN SEQ(A a, B b) WITHIN 5 EVENTS",
    "output": "PATTERN SEQ(A a, B b) WITHIN 5 OUTPUT NON-OVERLAP",
    "until": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 2) WITHIN 5",
    "steps": "PATTERN SEQ(A a, B b, C c) WHERE strict_contiguity(c) WITHIN 5",
}
MOST_LINEAR = 16  # of a drawn expression: each of them is planned and run
EXPANDED = tuple(s.Strategy)
BASE = "PATTERN SEQ(A a, B b) WITHIN 5"


class Case(NamedTuple):
    """A query over a stream, and the rest of the plan."""

    kind: str
    query: s.QuerySyntax
    table: pa.Table  # with a column `event` that tells its rows apart, whatever order they get into
    parts: dict[str, Any]

    def bound(self) -> BoundQuery:
        return bound_to(self.kind, self.query, self.table.schema)

    def plan(self, engine: str) -> Plan:
        bound = self.bound()
        return Plan(bound, engine, partition=bound.equivalence, **self.parts)

    def events(self) -> EventTable:
        return ordered(self.table, self.bound().schema)


def is_imprecise(kind: str) -> bool:
    return kind.endswith(("imprecise", "both"))


def is_lossy(kind: str) -> bool:
    return kind.endswith(("missing", "both"))


def may_be_untrue(kind: str) -> bool:
    return kind.startswith("existence")


def bound_to(kind: str, query: s.QuerySyntax | str, schema: pa.Schema) -> BoundQuery:
    roles = {**(ROLES if is_imprecise(kind) else {}), **({"existence": "chance"} if may_be_untrue(kind) else {})}
    return cepheid.Query(cepheid.query(query).syntax if isinstance(query, str) else query).bind(
        Schema.from_arrow(schema, **roles)
    )


@cache
def features_of(engine: Engine, kind: str) -> dict[str, Any] | None:
    """The features of drawn queries that the engine supports on streams of this kind; None: it supports none."""
    fields = [("lower", pa.int64()), ("upper", pa.int64())] if is_imprecise(kind) else []
    fields += [("chance", pa.float64())] if may_be_untrue(kind) else []
    schema = pa.schema([*ARROW_SCHEMA, *(pa.field(*each) for each in fields)])
    model = ANY_MODEL if is_lossy(kind) else None

    def supports(text: str) -> bool:
        return engine.refuses(bound_to(kind, text, schema), model) is None

    if not supports(BASE):
        return None
    known: dict[str, Any] = {name: supports(text) for name, text in FEATURES.items()}
    known["aggregates"] = known["aggregates"] and known["kleene"]
    where = "PATTERN SEQ(A a, B b) WHERE {} {{ }} WITHIN 5"
    able = [strategy for strategy in s.Strategy if supports(where.format(strategy.value))]
    return known | {"strategy": tuple(able)}


@st.composite
def cases(draw: st.DrawFn, engine: Engine, window: bool | None = None) -> Case:
    """A case that the engine supports; `window=True` for those that a stream can run."""
    if all(features_of(engine, kind) is None for kind in KINDS):
        return draw(expression_cases(engine, window))
    kind = draw(st.sampled_from([kind for kind in KINDS if features_of(engine, kind) is not None]))
    query = draw(_queries(engine, kind, window))
    if is_imprecise(kind):
        table = draw(intervals(max_size=4 if query_is_large(query) else 5, most=1 if may_be_untrue(kind) else 2))
    else:
        table = draw(streams(max_size=6 if may_be_untrue(kind) else 8 if is_lossy(kind) else 10))
    if may_be_untrue(kind):
        chances = [draw(CHANCES) for _ in range(table.num_rows)]
        table = table.append_column("chance", pa.array(chances, pa.float64()))
    table = table.append_column("event", pa.array(range(table.num_rows), pa.int64()))
    parts: dict[str, Any] = {}
    if is_lossy(kind):
        parts["model"] = draw(models(component.variable for component in query.components))
        parts["scoring"] = draw(st.sampled_from(("exact", "paper")))
        parts["options"] = {"missing_last": draw(st.booleans())}
    case = Case(kind, query, table, parts)
    assume(window is None or case.bound().window is not None)
    assume(engine.refuses(case.bound(), parts.get("model")) is None)
    return case


@st.composite
def expression_cases(draw: st.DrawFn, engine: Engine, window: bool | None) -> Case:
    """A case of an engine for patterns that are more than a sequence."""
    drawn = expression_queries(window=window, strategies=EXPANDED, unbounded=engine.name != "expansion")
    query = draw(st.sampled_from(shapes("expression")) if COMPILED else drawn)
    table = draw(streams(max_size=6))
    case = Case("certain", query, table.append_column("event", pa.array(range(table.num_rows), pa.int64())), {})
    assume(window is None or case.bound().window is not None)
    assume(engine.refuses(case.bound()) is None)
    assume(stands_for_few(case.bound()))
    return case


def stands_for_few(bound: BoundQuery) -> bool:
    """The reference follows each linear pattern by itself, and so does the engine that expands them."""
    try:
        return len(linear_patterns(bound, 2)) <= MOST_LINEAR
    except TooManyError:
        return False


def query_is_large(query: s.QuerySyntax) -> bool:
    """Does enumerating its worlds take long?"""
    return len(query.components) > 3 or any(component.kleene for component in query.components)


def _queries(engine: Engine, kind: str, window: bool | None) -> st.SearchStrategy[s.QuerySyntax]:
    if COMPILED:
        return st.sampled_from(shapes(kind))
    known = dict(features_of(engine, kind) or {})
    tied = known.pop("tied_negations")
    features: dict[str, Any] = {**known, "returns": False, "window": window}
    if is_lossy(kind) or is_imprecise(kind) or may_be_untrue(kind):
        features |= {"until": False, "steps": False}
    if is_lossy(kind):
        strategies = [each for each in known["strategy"] if each not in s.CONTIGUOUS]
        features |= {"threshold": True, "missing_groups": known["kleene"], "strategy": tuple(strategies)}
        features |= {"missing_next": s.Strategy.SKIP_TILL_NEXT in strategies, "output": False, "window": None}
        tied = False
    if is_imprecise(kind) or may_be_untrue(kind):
        features |= {"max_components": 3, "max_window": 6, "output": False, "event_window": False}
    drawn = queries(**features)
    return drawn | queries(**features, tied_negations=True) if tied else drawn
