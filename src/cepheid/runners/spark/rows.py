"""Row patterns on Spark: the rows of a partition go to one task, which runs the engine on all it was given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa

from cepheid.engine.search.preferred.run import needed_columns, result_schema
from cepheid.errors import DataError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.syntax import Clause
from cepheid.runners.rows import bound_to, run_clause
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema

BATCH = 100_000  # rows of the result that go back to Spark at a time


def match_spark_rows(df: DataFrame, clause: Clause, engine: str, partitions: int | None) -> DataFrame:
    """The rows that a clause makes of a Spark table."""
    if df.isStreaming:
        hint = "run it over a table, or write the pattern as PATTERN SEQ(...) for streams"
        raise DataError("MATCH_RECOGNIZE over a stream is not possible yet", hint=hint)
    bound = bound_to(clause, arrow_schema(df))
    columns = needed_columns(bound)
    rows = df.select(*[quoted(name) for name in columns])
    bound = bound_to(clause, arrow_schema(rows))
    keys = [quoted(name) for name in bound.partition_by]
    if not keys:
        rows = rows.coalesce(1)
    else:
        rows = rows.repartition(*keys) if partitions is None else rows.repartition(partitions, *keys)
    result = result_schema(bound, arrow_schema(rows))
    unique = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(result)])
    rows = rows.toDF(*[f"_{number}" for number in range(len(columns))])  # names that mapInArrow can resolve
    matched = rows.mapInArrow(_worker(bound, columns, unique, engine), spark_schema(unique))
    return matched.toDF(*result.names)


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
