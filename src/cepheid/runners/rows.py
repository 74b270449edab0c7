"""Row patterns over tables: pyarrow, pandas and polars in memory, and PySpark."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.budget import available_threads
from cepheid.engine.engines import ROW_ENGINES, RowEngine
from cepheid.engine.jit_fallback import answer
from cepheid.engine.search.row_pattern.computed_keys import with_keys
from cepheid.engine.search.row_pattern.conditions import path_labels, prepare
from cepheid.engine.search.row_pattern.finalized import check_stream
from cepheid.engine.search.row_pattern.run import arranged, needed_columns, result_schema
from cepheid.engine.search.row_pattern.typed import typed
from cepheid.errors import DataError
from cepheid.language.match_recognize.bind import Columns, bind_clause, bind_keys
from cepheid.language.match_recognize.bound import Aggregated, BoundClause
from cepheid.language.match_recognize.keys import with_columns
from cepheid.language.match_recognize.syntax import Call, Clause, Identifier, Measure, Mode, Reference, Rows, Star
from cepheid.language.schema import Schema
from cepheid.language.zones import zone_called
from cepheid.plan.automaton import edge_lines
from cepheid.plan.row_lowering import lower_rows
from cepheid.runners.languages import PatternLanguage, StepSearch
from cepheid.runners.options import RowOptions

if TYPE_CHECKING:  # all of the live search comes with it, which a match of a table does not need
    from cepheid.runners.stream.rows import RowStream

SIZE = "rows_of_match"
MOST_EDGES = 60  # that EXPLAIN prints


@dataclass(frozen=True)
class RowSearch(StepSearch):
    """A clause over the columns of a table."""

    clause: BoundClause
    columns: pa.Schema
    options: RowOptions
    functions: tuple[bytes, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of PARTITION BY."""
        return tuple(self.clause.partition_by)

    @property
    def clock(self) -> Schema:
        """The first column of ORDER BY."""
        time = self.clause.order_by[0].column
        columns = with_keys(self.columns.empty_table(), self.clause.keys, self.clause.text).schema
        return Schema.from_arrow(pa.schema([columns.field(time)]), time=time, type=None)

    @property
    def result(self) -> pa.Schema:
        """The columns of the result."""
        return result_schema(self.clause, self.columns)

    def found(self, events: pa.Table, threads: int) -> pa.Table:
        """The result over a table in memory."""
        chosen, most = engine_called(self.options.engine), self.options.max_matches
        run = chosen.load()
        found = answer(chosen.module, events.num_rows, lambda: run(self.clause, events, threads, most), once=True)
        if isinstance(found, pa.Table):
            return found
        schema = result_schema(self.clause, events.schema)
        columns = [pa.array([row[at] for row in found], field.type) for at, field in enumerate(schema)]
        return pa.Table.from_arrays(columns, schema=schema)

    def counted(self, events: pa.Table) -> int:
        """How many matches there are; the engine that cannot count lists the size of each."""
        chosen, most = engine_called(self.options.engine), self.options.max_matches
        count = chosen.load_count()
        if count is not None:
            counting = partial(count, self.clause, events, available_threads(), most)
            return answer(chosen.module, events.num_rows, counting, once=True)
        sizes = ((SIZE, Aggregated("count", (), final=True)),)
        alone = replace(self, clause=replace(self.clause, rows=Rows.ONE, measures=sizes)).found(events, 1)
        return sum(size >= least_rows(self.clause) for size in alone.column(SIZE).to_pylist())

    def check_stream(self) -> None:
        """An error for a clause that would keep every row, or that no time orders."""
        check_stream(self.clause, self.options.max_rows)

    def lateness(self) -> int | None:
        """A match is known at the end of its window at the latest."""
        return self.clause.within

    def begin(self, delay: int = 0) -> RowStream:
        """The clause over rows as they come."""
        from cepheid.runners.stream.rows import RowStream

        return RowStream(self.clause, self.columns, delay, self.options.max_rows, self.options.limits)


@dataclass(frozen=True)
class RowLanguage(PatternLanguage):
    """A MATCH_RECOGNIZE clause."""

    clause: Clause
    options = RowOptions

    @property
    def subject(self) -> Clause:
        """The clause."""
        return self.clause

    def bind(self, columns: pa.Schema, options: RowOptions) -> RowSearch:
        """The clause over the columns of a table."""
        return RowSearch(bound_to(self.clause, columns, options.tz), columns, options)

    def times(self, options: RowOptions) -> tuple[str, ...]:
        """The first column of ORDER BY."""
        first = {key.column.name for key in self.clause.order_by[:1]}
        keys = [key.expression for key in self.clause.keys if key.name in first]
        named = {(each.column, *each.fields)[-1].name for each in keys if isinstance(each, Reference)}
        return tuple(named or first)

    def described(self, columns: pa.Schema | None, options: RowOptions) -> str:
        """Which conditions are evaluated over whole columns, and which during the search."""
        return explain_clause(self.clause, columns, options.tz)

    def timed(self) -> RowLanguage:
        """The clause with the times of a match's first and last row as measures."""
        return RowLanguage(with_times(self.clause))

    def rows_spark(self, df: object, options: RowOptions, above: Any = None) -> Any:
        """The rows that the clause makes of a Spark table."""
        from cepheid.runners.spark.rows import match_spark_rows

        return match_spark_rows(df, self.clause, options, above)

    def count_spark(self, df: object, options: RowOptions) -> int:
        """How many matches there are in a Spark table."""
        sizes = RowLanguage(sizes_alone(self.clause)).rows_spark(df, options)
        return int(sizes.filter(f"{SIZE} >= {least_rows(self.clause)}").count())


def sizes_alone(clause: Clause) -> Clause:
    """The same matches with nothing but their sizes: one row for each."""
    size = Measure(Call("count", (Star(),), Mode.FINAL), Identifier(SIZE))
    return replace(clause, rows=Rows.ONE, measures=(size,))


def least_rows(clause: Clause | BoundClause) -> int:
    """How many rows a match has at least that counts: empty ones do unless they are omitted."""
    return 1 if clause.rows is Rows.ALL_OMIT_EMPTY else 0


def bound_to(clause: Clause, schema: pa.Schema, tz: str | None = None) -> BoundClause:
    """The clause over the columns of a table; `tz` is the query's zone, if it was given or is the session's."""
    clause = with_columns(clause, schema.names)
    if len(set(schema.names)) < len(schema.names):
        twice = next(name for name in schema.names if schema.names.count(name) > 1)
        raise DataError("two columns have this name", column=twice, hint="rename one of them")
    zones = {field.name: field.type.tz for field in schema if getattr(field.type, "tz", None) is not None}
    first = next((zones[name] for name in (key.column.name for key in clause.order_by) if name in zones), None)
    zone = zone_called(tz or first or next(iter(zones.values()))) if zones else None
    keys = bind_keys(clause, Columns(tuple(schema.names), zone=zone))
    shown = with_keys(schema.empty_table(), keys, clause.text).schema
    times = {field.name for field in shown if pa.types.is_timestamp(field.type) or pa.types.is_date(field.type)}
    return typed(bind_clause(clause, Columns(tuple(shown.names), frozenset(times), zone), keys), schema)


def with_times(clause: Clause) -> Clause:
    """The same with the times of a match's first and last row as measures, where rows have an order."""
    taken = {measure.name.name.lower() for measure in clause.measures}
    if not clause.order_by:
        return clause
    time = Reference(None, clause.order_by[0].column)
    ends = {"match_start": Call("first", (time,), Mode.FINAL), "match_end": Call("last", (time,), Mode.FINAL)}
    more = tuple(Measure(end, Identifier(name)) for name, end in ends.items() if name not in taken)
    return replace(clause, measures=(*clause.measures, *more))


def engine_called(name: str) -> RowEngine:
    """The engine of this name, or for `auto` the first one."""
    return next(iter(ROW_ENGINES.values())) if name == "auto" else ROW_ENGINES[name]


def explain_clause(clause: Clause, schema: pa.Schema | None = None, tz: str | None = None) -> str:
    """What would be done for a clause."""
    lines = ["Row pattern", *(f"  {line.strip()}" for line in clause.text.strip().splitlines()), "", "Automaton"]
    edges = list(edge_lines(lower_rows(clause.pattern), str))
    lines += [f"  {line}" for line in edges[:MOST_EDGES]]
    lines += [f"  and {len(edges) - MOST_EDGES:,} edges more"] if len(edges) > MOST_EDGES else []
    lines += ["", "Search", "  preferred match at each row, by backtracking: the first edge of a state first"]
    if schema is None:
        return "\n".join(lines)
    bound = bound_to(clause, schema, tz)
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
    memory = "of every step and row that failed"
    if on_paths:
        memory += (
            ", unless a label evaluated in Python follows"
            if interpreted
            else ", with the values that later conditions read"
        )
    lines += [f"  memory    {memory}", f"  columns   {', '.join(needed_columns(bound))}"]
    return "\n".join(lines)
