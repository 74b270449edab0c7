"""Row patterns over tables: pyarrow, pandas and polars in memory, and PySpark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.budget import unbounded, within_budget
from cepheid.engine.cold import answer
from cepheid.engine.search.preferred.conditions import path_labels, prepare
from cepheid.engine.search.preferred.parallel import available_threads
from cepheid.engine.search.preferred.run import arranged, count_matches, match_table, needed_columns, result_schema
from cepheid.engine.search.preferred.typed import typed
from cepheid.errors import CepheidError, DataError, LimitError, QueryError
from cepheid.language.match_recognize.bind import Columns, bind_clause
from cepheid.language.match_recognize.bound import Aggregated, BoundClause
from cepheid.language.match_recognize.syntax import Call, Clause, Identifier, Measure, Mode, Reference, Rows, Star
from cepheid.language.zone_labels import labelled_table
from cepheid.language.zones import zone_called
from cepheid.plan.options import Limits
from cepheid.runners.dispatch import is_spark
from cepheid.runners.options import RowOptions
from cepheid.runners.tables import as_local

FEWER_ROWS = "use engine='auto', or fewer rows"
KERNEL = "search.preferred.run"  # what is compiled
SIZE = "rows_of_match"


def match_clause(events: Any, clause: Clause, keywords: Mapping[str, Any]) -> Any:
    """The rows that a clause makes of a table, as a table of the same kind."""
    options = RowOptions.from_keywords(keywords)
    if is_spark(events):
        from cepheid.runners.spark.rows import match_spark_rows

        with unbounded():
            if not options.counts:
                return match_spark_rows(events, clause, options)
            if events.isStreaming:
                raise CepheidError("output='count' is for tables, and a stream returns rows", hint="leave it out")
            sizes = match_spark_rows(events, sizes_alone(clause), options)
            return sizes.filter(f"{SIZE} >= {least_rows(clause)}").count()
    options.check_place()
    local = as_local(events)
    if local is None:
        raise DataError(f"the table must be pyarrow, pandas, polars or PySpark, not {type(events).__name__}")
    bound = bound_to(clause, local.arrow.schema, options.tz)
    if options.counts:
        return count_clause(bound, local.arrow, options.limits, options.engine)
    return local.back(run_clause(bound, local.arrow, options.engine, available_threads(), options.limits))


def sizes_alone(clause: Clause) -> Clause:
    """The same matches with nothing but their sizes: one row for each."""
    size = Measure(Call("count", (Star(),), Mode.FINAL), Identifier(SIZE))
    return replace(clause, rows=Rows.ONE, measures=(size,))


def least_rows(clause: Clause | BoundClause) -> int:
    """How many rows a match has at least that counts: empty ones do unless they are omitted."""
    return 1 if clause.rows is Rows.ALL_OMIT_EMPTY else 0


def bound_to(clause: Clause, schema: pa.Schema, tz: str | None = None) -> BoundClause:
    """The clause over the columns of a table; `tz` is the query's zone, if it was given or is the session's."""
    for key in clause.keys:
        if key.name not in schema.names:
            start = clause.text.find(key.text)
            hint = "compute the column before, or use a Spark table"
            end = start + len(key.text)
            raise QueryError(
                "an expression as a key", text=clause.text, start=start, end=end, hint=hint, code="not-a-column"
            )
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise DataError("two columns have this name", column=twice, hint="rename one of them")
    times = {field.name for field in schema if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)}
    zones = {field.name: field.type.tz for field in schema if getattr(field.type, "tz", None) is not None}
    first = next((zones[name] for name in (key.column.name for key in clause.order_by) if name in zones), None)
    zone = zone_called(tz or first or next(iter(zones.values()))) if zones else None
    return typed(bind_clause(clause, Columns(tuple(schema.names), frozenset(times), zone)), schema)


def count_clause(clause: BoundClause, table: pa.Table, limits: Limits, engine: str = "auto") -> int:
    """How many matches a clause reports over a table in memory."""
    with within_budget(limits.timeout, limits.max_bytes):
        if engine != "reference":
            return answer(
                KERNEL, table.num_rows, lambda: count_matches(clause, table, available_threads(), limits.max_matches)
            )
        sizes = Aggregated("count", (), final=True)
        alone = replace(clause, rows=Rows.ONE, measures=((SIZE, sizes),))
        found = _run(alone, table, engine, 1, limits.max_matches).column(SIZE).to_pylist()
        return sum(size >= least_rows(clause) for size in found)


def with_times(clause: Clause) -> Clause:
    """The same with the times of a match's first and last row as measures, where rows have an order."""
    taken = {measure.name.name.lower() for measure in clause.measures}
    if not clause.order_by:
        return clause
    time = Reference(None, clause.order_by[0].column)
    ends = {"match_start": Call("first", (time,), Mode.FINAL), "match_end": Call("last", (time,), Mode.FINAL)}
    more = tuple(Measure(end, Identifier(name)) for name, end in ends.items() if name not in taken)
    return replace(clause, measures=(*clause.measures, *more))


def run_clause(
    clause: BoundClause, table: pa.Table, engine: str = "auto", threads: int = 1, limits: Limits | None = None
) -> pa.Table:
    """The result of a clause over a table in memory."""
    limits = limits or Limits()
    with within_budget(limits.timeout, limits.max_bytes):
        return _run(clause, table, engine, threads, limits.max_matches)


def _run(clause: BoundClause, table: pa.Table, engine: str, threads: int, most: int) -> pa.Table:
    if engine != "reference":
        return answer(KERNEL, table.num_rows, lambda: match_table(clause, table, threads, most), once=True)
    schema = result_schema(clause, table.schema)
    shown = table if clause.zone is None else labelled_table(table, clause.zone)
    try:
        from cepheid.engine.reference.rows import match_rows  # it brings the model along

        rows = match_rows(clause, shown.to_pylist(), most)
    except RecursionError:
        raise LimitError("the reference engine recurses once for each row of a match", hint=FEWER_ROWS) from None
    columns = [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def explain_clause(clause: Clause, events: Any = None) -> str:
    """What would be done for a clause."""
    lines = ["Row pattern", *(f"  {line.strip()}" for line in clause.text.strip().splitlines()), "", "Search"]
    lines.append("  preferred match at each row, by backtracking")
    local = None if events is None else as_local(events)
    schema = None
    if local is not None:
        schema = local.arrow.schema
    elif events is not None:
        from cepheid.runners.spark.session import arrow_schema

        schema = arrow_schema(events)
    if schema is None:
        return "\n".join(lines)
    bound = bound_to(clause, schema)
    on_paths = path_labels(bound)
    empty = arranged(bound, schema.empty_table())
    interpreted = bool(prepare(bound, empty).predicate.as_python)
    for label in bound.labels:
        if label not in bound.conditions:
            how = "every row"
        elif label not in on_paths:
            how = "evaluated over whole columns"
        else:
            how = "evaluated during matching, in Python: slow" if interpreted else "evaluated during matching, compiled"
        lines.append(f"  {label:<10}{how}")
    memory = "of every step and row that failed" + (
        ", unless a label evaluated during matching follows" if on_paths else ""
    )
    lines += [f"  memory    {memory}", f"  columns   {', '.join(needed_columns(bound))}"]
    return "\n".join(lines)
