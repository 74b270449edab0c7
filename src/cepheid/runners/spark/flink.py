"""Flink patterns on Spark: the events of a key go to one task; a stream keeps a FlinkStream per shard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.search.flink.run import result_schema
from cepheid.language.flink.pattern import Pattern
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.runners.flink import automaton_for, run_pattern
from cepheid.runners.options import BATCHES, STREAMS
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.session import DataFrame, arrow_schema, session_zone, spark_schema
from cepheid.runners.spark.shipment import called, user_functions
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.workers import with_workers
from cepheid.runners.worker_plans import register_functions

if TYPE_CHECKING:
    from cepheid.runners.options import FlinkOptions

BATCH = 100_000  # rows of the result that go back to Spark at a time


@with_workers
def match_spark_flink(df: DataFrame, pattern: Pattern, options: FlinkOptions) -> DataFrame:
    """The matches of a pattern in a Spark table. Spark keeps no order of arrival: `tiebreak` orders equal times."""
    columns = arrow_schema(df)
    options = replace(options, tz=options.tz or session_zone(df.sparkSession))
    automaton = automaton_for(pattern, columns, options)
    functions = tuple(user_functions(called(atom.expression for atom in automaton.atoms)))
    options.check_place(STREAMS if df.isStreaming else BATCHES)
    if df.isStreaming:
        from cepheid.runners.spark.flink_stream import match_flink_stream

        return match_flink_stream(df, pattern, automaton, columns, options, functions)
    keys = [quoted(name) for name in options.partition_by]
    if not keys:
        rows = df.coalesce(1)
    else:
        rows = df.repartition(*keys) if options.partitions is None else df.repartition(options.partitions, *keys)
    result = result_schema(automaton, columns, options.partial)
    numbered = rows.toDF(*[f"_{number}" for number in range(len(columns))])  # names that mapInArrow can resolve
    return numbered.mapInArrow(_worker(automaton, columns, result, options, functions), spark_schema(result))


def _worker(
    automaton: FlinkAutomaton,
    columns: pa.Schema,
    result: pa.Schema,
    options: FlinkOptions,
    functions: tuple[bytes, ...],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with its events."""

    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        register_functions(functions)
        held = list(batches)
        if not held:
            return
        table = pa.Table.from_batches(held).rename_columns(columns.names).cast(columns)
        yield from run_pattern(automaton, table, options).cast(result).to_batches(max_chunksize=BATCH)

    return work
