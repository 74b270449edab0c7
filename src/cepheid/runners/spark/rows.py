"""Row patterns on Spark: the rows of a partition go to one task, which runs the engine on all it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from cepheid.engine.search.preferred.run import needed_columns, result_schema
from cepheid.errors import CepheidError, DataError, QueryError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.plan.options import Limits
from cepheid.runners.rows import bound_to, run_clause
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.row_conditions import with_flags
from cepheid.runners.spark.row_functions import SparkParts, refused, with_spark_functions
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.workers import with_workers

BATCH = 100_000  # rows of the result that go back to Spark at a time


@with_workers
def match_spark_rows(df: DataFrame, clause: Clause, engine: str, options: Mapping[str, Any]) -> DataFrame:
    """The rows that a clause makes of a Spark table."""
    parts = with_spark_functions(df, clause)
    try:
        return _match(parts, engine, options)
    except QueryError as error:
        if error.code != "types" or parts.around:
            raise
        return _match_with_all_by_spark(df, clause, engine, options, error)


def _match_with_all_by_spark(
    df: DataFrame, clause: Clause, engine: str, options: Mapping[str, Any], error: QueryError
) -> DataFrame:
    """The same with Spark's own operators in the measures, where ours know no such types."""
    try:
        return _match(with_spark_functions(df, clause, everything=True), engine, options)
    except CepheidError:
        raise error from None


def _match(parts: SparkParts, engine: str, options: Mapping[str, Any]) -> DataFrame:
    df, clause = with_flags(parts.df, parts.clause)
    bound = bound_to(clause, arrow_schema(df))
    columns = needed_columns(bound)
    rows = df.select(*[quoted(name) for name in columns])
    bound = bound_to(clause, arrow_schema(rows))
    if df.isStreaming:
        from cepheid.runners.spark.row_stream import match_row_stream

        delay = _delay(df, bound, options.get("delay"))
        most, shards, limits = options.get("max_rows"), options.get("shards"), options.get("limits")
        found = match_row_stream(rows, bound, arrow_schema(rows), delay, shards, most, limits)
        return finished(found.toDF(*_numbered(found.columns)), parts, bound)
    partitions = options.get("partitions")
    keys = [quoted(name) for name in bound.partition_by]
    if not keys:
        rows = rows.coalesce(1)
    else:
        rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    result = result_schema(bound, arrow_schema(rows))
    unique = pa.schema([field.with_name(name) for name, field in zip(_numbered(result.names), result, strict=True)])
    rows = rows.toDF(*_numbered(columns))  # names that mapInArrow can resolve
    work = _worker(bound, columns, unique, engine, options.get("limits"))
    matched = rows.mapInArrow(work, spark_schema(unique))
    return finished(matched, parts, bound)


def _numbered(names: Sequence[str]) -> list[str]:
    return [f"_{number}" for number in range(len(names))]


def finished(matched: DataFrame, parts: SparkParts, bound: BoundClause) -> DataFrame:
    """The result's columns with their names; the measures that Spark computes are computed."""
    from pyspark.sql import functions as F

    names = bound.output_columns
    if not parts.around:
        shown = [number for number, name in enumerate(names) if name not in parts.hidden]
        return matched.select(*[f"_{number}" for number in shown]).toDF(*[names[number] for number in shown])
    given = {name for name, _ in bound.measures}
    renamed = matched.toDF(*[name if name in given else f"_{number}" for number, name in enumerate(names)])
    first = next(number for number, name in enumerate(names) if name in given) if given else len(bound.partition_by)
    before = [F.col(f"_{at}") for at, name in enumerate(names[:first]) if name not in parts.hidden]
    after = [at for at in range(first, len(names)) if names[at] not in given and names[at] not in parts.hidden]
    measured = []
    for measure in parts.measures:
        text = parts.around.get(measure.name.name, quoted(measure.name.name))
        try:
            measured.append(F.expr(text))
            renamed.select(measured[-1]).schema  # noqa: B018 - asks Spark whether it can be computed
        except Exception as error:
            raise refused(parts.clause.text, measure.span, error) from None
    named = [*(name for name in names[:first] if name not in parts.hidden), *(m.name.name for m in parts.measures)]
    found = renamed.select(*before, *measured, *[F.col(f"_{at}") for at in after])
    return found.toDF(*named, *[names[at] for at in after])


def _delay(df: DataFrame, clause: BoundClause, given: str | None) -> str:
    """How late rows may come: as was passed, or as the stream's own withWatermark says."""
    if given is not None:
        return given
    name = clause.order_by[0].column if clause.order_by else ""
    told = df.schema[name].metadata.get("spark.watermarkDelayMs") if name in df.columns else None
    if told is None:
        hint = f"pass delay='10 seconds', for example, or call withWatermark('{name}', ...) before"
        raise DataError("how much later than the newest row may others come?", hint=hint)
    return f"{told} milliseconds"


def _worker(
    bound: BoundClause, columns: tuple[str, ...], result: pa.Schema, engine: str, limits: Limits | None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with its rows."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held).rename_columns(list(columns))
        found = run_clause(bound, table, engine, limits=limits).rename_columns(result.names)
        yield from found.cast(result).to_batches(max_chunksize=BATCH)

    return work
