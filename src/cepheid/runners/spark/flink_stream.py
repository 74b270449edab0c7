"""Flink patterns over Spark streams: each shard keeps a FlinkStream.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from cepheid.engine.search.flink.run import result_schema
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.runners.spark.packed_stream import Shard, found_by_shard, unpacker
from cepheid.runners.spark.session import DataFrame, spark_schema
from cepheid.runners.stream.flink import FlinkStream

if TYPE_CHECKING:
    from cepheid.runners.flink import FlinkOptions


def match_flink_stream(
    df: DataFrame, automaton: FlinkAutomaton, schema: pa.Schema, delay: str, options: FlinkOptions
) -> DataFrame:
    """The matches of a pattern in a stream."""
    shard = Shard(partial(FlinkStream, automaton, schema, 0, options.partition_by, options.partial, options.limits))
    time = automaton.schema.time
    found = found_by_shard(df, schema, time, options.partition_by, options.shards, delay, shard)
    result = result_schema(automaton, schema, options.partial)
    return found.mapInArrow(unpacker(result), spark_schema(result))
