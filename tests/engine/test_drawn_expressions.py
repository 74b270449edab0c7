"""Drawn expressions, nested up to three deep, under all strategies: every way to run them finds what the reference
finds. A long run draws thousands of each (docs/reliability.md says how many were run), compiled and as plain Python.

Compiled, the conditions stay Python (values/python_first.py), so that queries are drawn there, too.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st

import cepheid
from cepheid.engine.choose import make_plan
from cepheid.engine.data.matches import NEVER
from cepheid.engine.engines import ENGINES
from cepheid.engine.find import BEGINNING, find
from cepheid.engine.search import runs
from cepheid.engine.values.python_first import python_first
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from contract import properties
from contract.cases import COMPILED, Case, bound_to, stands_for_few
from contract.steps import found_in_steps, in_batches
from strategies.expressions import expression_queries
from strategies.queries import ARROW_SCHEMA, streams

WANTED = int(os.environ.get("CEPHEID_TEST_CASES", settings().max_examples))
SEED = int(os.environ.get("CEPHEID_TEST_SEED", "14"))
STREAMS = 5  # over which each drawn expression is run: most drawn texts are no query that an engine runs
drawn = settings(
    max_examples=WANTED // STREAMS if WANTED >= 100 else 1,
    derandomize=False,
    database=None,
    suppress_health_check=list(HealthCheck),
)
ENGINES_OF_EXPRESSIONS = pytest.mark.parametrize("engine", ["states", "expansion", "auto"])


@pytest.fixture(autouse=True, scope="module")
def quick_conditions() -> Iterator[None]:
    """A drawn condition is not worth a compilation."""
    with python_first() if COMPILED else nullcontext(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@st.composite
def cases(draw: st.DrawFn, engine: str, window: bool | None = None) -> list[Case]:
    """A query that the engine runs, over several short streams."""
    unbounded = engine != "expansion" or draw(st.booleans())
    query = draw(expression_queries(window=window, depth=3, unbounded=unbounded))
    bound = bound_to("certain", query, ARROW_SCHEMA)
    able = [name for name in ("states", "expansion") if ENGINES[name].refuses(bound) is None]
    assume(bool(able) if engine == "auto" else engine in able)
    assume(stands_for_few(bound))
    found = []
    for _ in range(STREAMS):
        table = draw(streams(max_size=draw(st.sampled_from((6, 8)))))
        numbers = pa.array(range(table.num_rows), pa.int64())
        found.append(Case("certain", query, table.append_column("event", numbers), {}))
    return found


def plan_of(case: Case, engine: str) -> Plan:
    return make_plan(case.bound())[0] if engine == "auto" else case.plan(engine)


@ENGINES_OF_EXPRESSIONS
@seed(SEED)
@drawn
@given(data=st.data())
def test_a_batch(engine: str, data: Any) -> None:
    for case in data.draw(cases(engine)):
        name = make_plan(case.bound())[0].engine if engine == "auto" else engine
        properties.agrees_with_the_reference(case, name)


@ENGINES_OF_EXPRESSIONS
@seed(SEED + 1)
@drawn
@given(data=st.data())
def test_a_stream(engine: str, data: Any) -> None:
    """The streaming step without Spark, events in any order that the delay allows, cut at drawn places."""
    for case in data.draw(cases(engine, window=True)):
        plan, delay = plan_of(case, engine), data.draw(st.integers(0, 6))
        assume(plan.exchange.retention.for_ever is None)
        window = plan.bound.window
        assert window is not None
        # Of events a window is only known to have passed by later ones, and time alone does not say so.
        waits = plan.bound.postponed or case.query.output.mode is s.OutputMode.MAXIMAL
        assume(not (window.events and waits))
        events = case.events()
        expected = properties.signatures_of(case.plan("reference"), events)
        assert found_in_steps(plan, in_batches(data.draw, case.table, delay), delay) == sorted(expected)


@seed(SEED + 3)
@drawn
@given(data=st.data())
def test_counted_and_compressed(data: Any) -> None:
    """Runs that go on alike are one: what they stand for is counted, and can be listed."""
    for case in data.draw(cases("states")):
        assume(case.query.output.mode is s.OutputMode.ALL)
        plan, events = case.plan("states"), case.events()
        expected = properties.described(find(case.plan("reference"), events))
        assert runs.count(plan, events, BEGINNING, NEVER) == len(expected)
        shared = runs.find_compressed(plan, events, BEGINNING, NEVER)
        assert shared.count() == len(expected)
        assert properties.described(shared.enumerate()) == expected


@seed(SEED + 2)
@drawn
@given(data=st.data())
def test_live(data: Any) -> None:
    """Sent in drawn pieces, the state saved and restored in between."""
    for case in data.draw(cases("auto", window=True)):
        delay, query = data.draw(st.integers(0, 6)), cepheid.Query(case.query)
        try:
            found = found_live(data, case, query, delay)
        except EngineError:  # a window of events that has no end without more of them, for example
            assume(False)
            raise
        assert rows_of(found) == rows_of(query.match(case.table, engine="reference"))


def found_live(data: Any, case: Case, query: cepheid.Query, delay: int) -> pa.Table:
    at_work = query.live(case.table.schema, delay=delay)
    found = []
    for batch in in_batches(data.draw, case.table, delay):
        found.append(at_work.send(batch))
        if data.draw(st.booleans()):
            at_work = query.live(case.table.schema, delay=delay, state=at_work.save())
    found.append(at_work.finish())
    return pa.concat_tables(found)


def rows_of(table: pa.Table) -> list[str]:
    return sorted(map(repr, table.to_pylist()))
