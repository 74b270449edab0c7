"""Row patterns and Flink patterns step by step, without Spark: cut anywhere, they find what a batch finds."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.search.row_pattern.run import match_table, result_schema
from cepheid.errors import DataError, QueryError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.runners.flink import automaton_for
from cepheid.runners.options import FlinkOptions
from cepheid.runners.results import steps_schema as flink_result
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.flink import FlinkStream
from cepheid.runners.stream.identity import Fingerprint
from cepheid.runners.stream.incremental import IncrementalStep
from cepheid.runners.stream.rows import RowStream
from cepheid.runners.stream.state import Outcome
from contract.steps import END_OF_TIME, Memory
from flink.test_streams import SCHEMA
from rows.row_cases import bound, rows_of
from strategies.flink import draw_task, to_pattern
from strategies.rows import ON_PATHS, ON_ROWS, clauses, tables

SAME = Fingerprint(1, (), {"": {"text": "1"}})


def outcomes(step: IncrementalStep, parts: Sequence[pa.Table]) -> list[Outcome]:
    """What the steps over some tables say, and one after the end of time; the state is read back between them.

    They say the same whether the search is remembered, forgotten after each step or after every second one.
    """
    always, never, sometimes = (said(step, parts, forgets) for forgets in (len(parts) + 1, 1, 2))
    for each in (never, sometimes):
        assert [one.results for one in each] == [one.results for one in always]
        # A search that goes on may still hold events that it does not need any more.
        assert [replace(one.clock, chunks=()) for one in each] == [replace(one.clock, chunks=()) for one in always]
    return never


def said(step: IncrementalStep, parts: Sequence[pa.Table], forgets: int) -> list[Outcome]:
    """The same where the search is forgotten after so many steps."""
    clock, store, found = Clock.read(None, SAME), Memory(), []
    for number, part in enumerate([*parts, None], 1):
        newest = END_OF_TIME if part is None else max(part[step.time].to_pylist(), default=None)
        outcome = step.run(clock, store, [part] if part is not None and part.num_rows else [], newest)
        if number % forgets == 0:
            store.remembered.clear()
        clock = Clock.read(outcome.clock.text(SAME), SAME)
        assert [chunk.number for chunk in clock.chunks] == list(store.chunks)
        assert outcome.events == outcome.used + (0 if outcome.late is None else outcome.late.num_rows)
        found.append(outcome)
    return found


def of_rows(query: BoundClause, table: pa.Table, delay: int = 0) -> IncrementalStep:
    result = result_schema(query, table.schema)
    unique = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(result)])
    search = partial(RowStream, query, table.schema)
    return IncrementalStep(search, table.schema, "id", delay, unique, tuple(table.column_names))


def cut(table: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    edges = [0, *sorted(min(each, table.num_rows) for each in cuts), table.num_rows]
    return [table.slice(low, high - low) for low, high in pairwise(edges)]


@given(clauses(ON_ROWS + ON_PATHS), tables(), st.lists(st.integers(0, 7), max_size=4), st.integers(0, 2))
def test_rows_cut_anywhere(clause: str, table: pa.Table, cuts: list[int], delay: int) -> None:
    query = bound(clause.replace("$", "()"), table)
    if query.within is None:
        return
    try:
        expected = sorted(rows_of(match_table(query, table)))
    except DataError:
        return
    parts = cut(table.sort_by("id"), cuts)
    found = [line for each in outcomes(of_rows(query, table, delay), parts) for line in results_of(each)]
    assert sorted(found) == expected


def results_of(outcome: Outcome) -> list[str]:
    return [line for _, batch in outcome.results for line in rows_of(pa.Table.from_batches([batch]))]


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_flink_patterns_cut_anywhere(seed: int) -> None:
    for number in range(seed, seed + 6):
        rng = random.Random(number)
        task = draw_task(rng)
        rows = [{**event, "key": rng.randint(0, 2), "id": at} for at, event in enumerate(task["events"])]
        table = pa.Table.from_pylist(rows, SCHEMA)
        options = FlinkOptions(type=None, partition_by=("key",))
        try:
            automaton = automaton_for(to_pattern(task), SCHEMA, options)
            whole = cepheid.match(table, to_pattern(task), type=None, partition_by="key")
        except QueryError:
            continue
        search = partial(FlinkStream, automaton, SCHEMA, 0, ("key",))
        step = IncrementalStep(search, SCHEMA, "ts", rng.choice([0, 2]), flink_result(automaton, SCHEMA, False))
        parts = cut(table, [rng.randint(0, len(rows)) for _ in range(3)])
        found = [line for each in outcomes(step, parts) for line in results_of(each)]
        assert sorted(found) == sorted(rows_of(whole))


def test_late_rows_come_out_and_what_a_window_decides_does_not_wait_for_the_next_row() -> None:
    """One key falls silent; the other moves the time on."""
    schema = pa.schema({"id": pa.int64(), "key": pa.int64()})
    clause = "PARTITION BY key ORDER BY id MEASURES LAST(id) AS ended PATTERN (A+) WITHIN 5 DEFINE A AS true"
    sent = [[(1, 1), (2, 1)], [(10, 2)], [(3, 1), (11, 2), (30, 2)]]
    parts = [pa.table(list(zip(*rows, strict=True)), schema=schema) for rows in sent]
    first, second, third, last = outcomes(of_rows(bound(clause, schema.empty_table()), parts[0]), parts)
    assert (results_of(first), results_of(second)) == ([], ["(1, 2)"])
    assert third.late is not None
    assert third.late.to_pylist() == [{"id": 3, "key": 1}]
    assert (third.events, third.used, third.clock.until, results_of(third)) == (3, 2, 29, ["(2, 11)"])
    assert (last.retained, last.clock.used, last.clock.found) == (0, 5, 3)
