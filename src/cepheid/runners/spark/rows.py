"""Row patterns on Spark: the rows of a partition go to one task, which runs the engine on all it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from cepheid.engine.search.preferred.run import needed_columns, result_schema
from cepheid.errors import DataError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.runners.rows import bound_to, run_clause
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.row_functions import with_spark_functions
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema

BATCH = 100_000  # rows of the result that go back to Spark at a time


def match_spark_rows(df: DataFrame, clause: Clause, engine: str, options: Mapping[str, Any]) -> DataFrame:
    """The rows that a clause makes of a Spark table."""
    df, clause, computed = with_spark_functions(df, clause)
    bound = bound_to(clause, arrow_schema(df))
    columns = needed_columns(bound)
    rows = df.select(*[quoted(name) for name in columns])
    bound = bound_to(clause, arrow_schema(rows))
    if df.isStreaming:
        from cepheid.runners.spark.row_stream import match_row_stream

        delay = _delay(df, bound, options.get("delay"))
        limit = options.get("max_rows")
        found = match_row_stream(rows, bound, arrow_schema(rows), delay, options.get("shards"), limit)
        return found.drop(*computed)
    partitions = options.get("partitions")
    keys = [quoted(name) for name in bound.partition_by]
    if not keys:
        rows = rows.coalesce(1)
    else:
        rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    result = result_schema(bound, arrow_schema(rows))
    unique = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(result)])
    rows = rows.toDF(*[f"_{number}" for number in range(len(columns))])  # names that mapInArrow can resolve
    matched = rows.mapInArrow(_worker(bound, columns, unique, engine), spark_schema(unique))
    shown = [f"_{number}" for number, name in enumerate(result.names) if name not in computed]
    return matched.select(*shown).toDF(*[name for name in result.names if name not in computed])


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
    bound: BoundClause, columns: tuple[str, ...], result: pa.Schema, engine: str
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with its rows."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held).rename_columns(list(columns))
        found = run_clause(bound, table, engine).rename_columns(result.names)
        yield from found.cast(result).to_batches(max_chunksize=BATCH)

    return work
