"""Table functions for Spark SQL: the result's schema follows from query and table when the statement is analysed.

Imported only when they are registered: it needs PySpark.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType
from pyspark.sql.udtf import AnalyzeArgument, AnalyzeResult, PartitioningColumn, SelectedColumn
from pyspark.util import PythonEvalType

from cepheid.engine.data.table import ordered
from cepheid.errors import DataError, QueryError
from cepheid.language.checked import checked_query
from cepheid.language.match_recognize.parse import is_clause
from cepheid.language.syntax import OutputMode
from cepheid.plan.options import options_from_text
from cepheid.runners.local import with_intervals
from cepheid.runners.options import Options, refuse_output
from cepheid.runners.pieces import found, pieces
from cepheid.runners.spark.arrow_types import to_arrow_schema
from cepheid.runners.spark.match import spark_plan
from cepheid.runners.spark.session import Session, session_zone, spark_schema
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.totals import parts_of_pieces
from cepheid.runners.spark.worker_plan import ship, user_functions
from cepheid.runners.total_parts import added_up, finished, parts_schema
from cepheid.runners.worker_plans import WorkerPlan, as_batches, register_functions, result_batches

SHARDS = 64  # parts that match_table makes: one call of Python each, where a call per key would cost a millisecond


@dataclass
class Analysed(AnalyzeResult):
    """What the analysis of a statement found out, and workers need to know."""

    worker_plan: WorkerPlan | None = field(default=None)
    events: pa.Schema | None = field(default=None)
    given: Options = field(default_factory=Options)


def table_functions(session: Session, arrow: bool = True) -> tuple[object, object]:
    """`match_events`, which leaves PARTITION BY to the statement, and `match_table`, which partitions by itself.

    Spark's public functions refuse a schema that depends on the arguments for functions over Arrow batches; its
    private factory does not. Without it, or with arrow=False, rows go through Python one by one.
    """
    shipped, zone = tuple(user_functions()), session_zone(session)
    arrow = arrow and hasattr(PythonEvalType, "SQL_ARROW_UDTF")  # not in PySpark 4.0
    factory = _private_factory(session) if arrow else None
    classes = [_table_function(shipped, zone, itself, by_rows=factory is None) for itself in (False, True)]
    if factory is None:
        from pyspark.sql.functions import udtf

        return udtf(classes[0], useArrow=False), udtf(classes[1], useArrow=False)
    made = [factory(cls=one, returnType=None, evalType=PythonEvalType.SQL_ARROW_UDTF) for one in classes]
    return made[0], made[1]


def _private_factory(session: Session) -> Any:
    remote = type(session).__module__.startswith("pyspark.sql.connect")
    module = importlib.import_module("pyspark.sql.connect.udtf" if remote else "pyspark.sql.udtf")
    return getattr(module, "_create_udtf", None)


def _table_function(shipped: tuple[bytes, ...], zone: str, itself: bool, by_rows: bool) -> type:
    """A class that Spark hands Arrow batches or rows. Made here, it travels to workers by value, with what it needs."""

    class Match:
        """All matches in the events of one partition."""

        @staticmethod
        def analyze(table: AnalyzeArgument, query: AnalyzeArgument, **options: AnalyzeArgument) -> Analysed:
            register_functions(shipped)
            return analysed(table, query, options, zone, itself)

        def __init__(self, told: Analysed) -> None:
            self.told, self.given = told, []  # type: ignore[var-annotated]
            self.parted = itself or has_partition_by()

        def eval(self, batch: object, query: object, **options: object) -> Iterator[object]:
            self.given.append(batch)
            return iter(())

        @short_errors
        def terminate(self) -> Iterator[object]:
            check_parted(self.parted, bool(self.given))
            assert self.told.events is not None
            batches = [_batch_of_rows(self.given, self.told.events)] if by_rows else self.given
            for batch in matched(self.told, batches):
                yield from (
                    map(tuple, map(dict.values, batch.to_pylist())) if by_rows else [pa.Table.from_batches([batch])]
                )

    return Match


def _batch_of_rows(rows: list[Any], events: pa.Schema) -> pa.RecordBatch:
    columns = [[row[place] for row in rows] for place in range(len(events))]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, events, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=events)


# --- analysis -------------------------------------------------------------------------------------------------------


def analysed(
    table: AnalyzeArgument, query: AnalyzeArgument, options: Mapping[str, AnalyzeArgument], zone: str, itself: bool
) -> Analysed:
    """The schema of the result, and how Spark is to prepare the table; errors in the query point into it.

    A worker cannot ask for the session's time zone: `zone` is what it was when the functions were registered.
    """
    if not table.isTable or not isinstance(table.dataType, StructType):
        raise DataError("the first argument must be a table", hint="write TABLE(my_view) or TABLE(SELECT ...)")
    text = constant("query", query)
    if not isinstance(text, str):
        raise DataError("the query must be a text", hint="write TABLE(...) ORDER BY (ts), 'PATTERN ...'")
    keywords = {name: constant(name, value) for name, value in options.items()}
    given = Options.from_keywords({"tz": zone, **options_from_text(keywords, Options)})
    refuse_output(given, "a table function")
    schema = to_arrow_schema(table.dataType)
    # The bounds that `uncertainty` asks for are made by workers; here only their names and types matter.
    bounded, chosen = with_intervals(schema.empty_table(), given)
    if is_clause(text):
        hint = "cepheid.sql.query(spark, statement) runs statements with MATCH_RECOGNIZE in them"
        raise QueryError("a MATCH_RECOGNIZE clause cannot be used here", hint=hint, code="row-pattern")
    asked = checked_query(text)
    if asked.syntax.output.mode is OutputMode.PARTIAL:
        hint = "cepheid.match(spark.table(...), query) returns partial matches"
        raise QueryError("OUTPUT PARTIAL cannot be used in a table function", hint=hint, code="bad-partial")
    plan = spark_plan(asked, bounded.schema, chosen)
    needed = plan.scan.columns
    worker_plan = ship(plan, bounded.schema)
    keys = plan.exchange.keys if itself else ()
    if plan.bound.summary is not None:  # no one adds up what two parts of a group found
        keys = tuple(name for name in keys if name in plan.bound.summary.by)
    columns = ", ".join(quoted(name) for name in keys)
    return Analysed(
        schema=spark_schema(worker_plan.schema),
        withSinglePartition=itself and not keys,
        partitionBy=[PartitioningColumn(f"pmod(xxhash64({columns}), {SHARDS})")] if keys else [],
        select=[SelectedColumn(quoted(name)) for name in needed if name in schema.names],
        worker_plan=worker_plan,
        events=pa.schema([column for column in schema if column.name in needed]),
        given=replace(given, model=None),
    )


def constant(name: str, argument: AnalyzeArgument) -> Any:
    """The value of an argument that must be known before any event is."""
    if not argument.isConstantExpression:
        raise DataError(f"'{name}' must be a constant")
    return argument.value


# --- in workers -----------------------------------------------------------------------------------------------------


def matched(told: Analysed, batches: Sequence[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The matches in the events of one partition."""
    assert told.worker_plan is not None
    assert told.events is not None
    worker_plan = told.worker_plan
    plan = worker_plan.unpacked()
    named = bounded_batches([batch.rename_columns(told.events.names) for batch in batches], told.given)
    if plan.bound.summary is not None:
        assert worker_plan.events is not None
        parts = [parts_schema(plan.bound, worker_plan.events).empty_table()]
        parts += [part.cast(parts[0].schema) for part in parts_of_pieces(plan, pieces(named, [plan], ()))]
        totals = finished(plan.bound, added_up(parts, plan.bound.summary), worker_plan.events)
        yield from as_batches(totals, worker_plan.schema)
        return
    for piece in pieces(named, [plan], ()):
        events = ordered(piece.events, plan.bound.schema)
        matches, _ = found(plan, events, piece, None)
        yield from result_batches(plan.bound, events, matches, worker_plan.schema)


def bounded_batches(batches: Sequence[pa.RecordBatch], given: Options) -> Sequence[pa.RecordBatch]:
    """The events with the bounds that `uncertainty` asks for, if it does."""
    if given.uncertainty is None:
        return batches
    parts = [with_intervals(pa.Table.from_batches([batch]), given)[0].to_batches() for batch in batches]
    return [batch for part in parts for batch in part]


def has_partition_by() -> bool:
    """Did the statement say PARTITION BY? Then Spark makes instances from inside a class for partitions."""
    frame = sys._getframe()
    while frame is not None:
        if "WithPartition" in type(frame.f_locals.get("self")).__name__:
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


def check_parted(parted: bool, any_events: bool) -> None:
    """Refuses events that Spark has spread at random: matches across tasks would be lost, or come up that are none.

    A worker cannot tell one of several tasks from the only one: under LIMIT, Spark runs the first task alone. So WITH
    SINGLE PARTITION is refused, too; match_table does the same by itself.
    """
    if any_events and not parted:
        raise DataError(
            "match_events was called without PARTITION BY, so Spark may have distributed the events at random",
            hint="write TABLE(...) PARTITION BY ..., or call match_table, which partitions by itself",
        )
