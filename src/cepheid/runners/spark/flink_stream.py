"""Flink patterns over Spark streams: events are packed by shard, and each shard keeps a FlinkStream in Spark's state.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructType

from cepheid.engine.search.flink.run import result_schema
from cepheid.errors import DataError
from cepheid.plan.flink_automaton import FlinkAutomaton
from cepheid.runners.spark.row_stream import packer, unpacker
from cepheid.runners.spark.session import DataFrame, spark_schema
from cepheid.runners.stream.flink import FlinkStream
from cepheid.runners.stream.rows import encoded

if TYPE_CHECKING:
    from cepheid.runners.flink import FlinkOptions

SHARDS = 16
_PACKED = pa.schema({"shard": pa.int32(), "at": pa.timestamp("us", "UTC"), "rows": pa.binary()})


def match_flink_stream(
    df: DataFrame, automaton: FlinkAutomaton, schema: pa.Schema, delay: str, options: FlinkOptions
) -> DataFrame:
    """The matches of a pattern in a stream."""
    time = automaton.schema.time
    if not pa.types.is_timestamp(schema.field(time).type):
        raise DataError("a stream is ordered by a timestamp", column=time, hint="cast it before")
    keys = [F.col(f"_{schema.get_field_index(name)}") for name in options.partition_by]
    count = (options.shards or SHARDS) if keys else 1
    shard = F.pmod(F.hash(*keys), F.lit(count)).cast("int") if keys else F.lit(0)
    numbered = df.toDF(*[f"_{number}" for number in range(len(schema))]).withColumn("shard", shard)
    packed = numbered.mapInArrow(packer(schema, time), spark_schema(_PACKED)).withWatermark("at", delay)
    found = packed.groupBy("shard").transformWithStateInPandas(
        statefulProcessor=FlinkShard(automaton, schema, options),
        outputStructType=StructType().add("packed", BinaryType()),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="",
    )
    result = result_schema(automaton, schema, options.partial)
    return found.mapInArrow(unpacker(result), spark_schema(result))


class FlinkShard(StatefulProcessor):
    """Spark calls it with the packed events of a shard, and when the watermark has passed what it waits for."""

    def __init__(self, automaton: FlinkAutomaton, schema: pa.Schema, options: FlinkOptions) -> None:
        self.automaton, self.schema, self.options = automaton, schema, options

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        self.handle = handle
        self.saved = handle.getValueState("stream", StructType().add("packed", BinaryType()))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Takes in what came for this shard in a micro-batch."""
        stream = self.read()
        blobs = [blob for packed in rows for blob in packed["rows"] if blob is not None]
        for blob in blobs:
            stream.keep(pa.ipc.open_stream(bytes(blob)).read_all())
        yield from self.known(stream, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has passed."""
        yield from self.known(self.read(), timerValues)

    def known(self, stream: FlinkStream, timers: Any) -> Iterator[pd.DataFrame]:
        """What is known by now; a timer for what is not."""
        watermark = int(timers.getCurrentWatermarkInMs())
        found = stream.advance(watermark * 1000)
        self.saved.update((stream.save(),))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        waits = stream.earliest_decision()
        if waits is not None:
            self.handle.registerTimer(max(-(-waits // 1000) + 1, watermark + 1))
        if found.num_rows:
            yield pd.DataFrame({"packed": [encoded(found)]})

    def read(self) -> FlinkStream:
        """The stream as it was left."""
        stream = FlinkStream(self.automaton, self.schema, 0, self.options.partition_by, self.options.partial)
        stored = self.saved.get()
        if stored is not None:
            stream.restore(bytes(stored[0]))
        return stream

    def close(self) -> None:
        """Nothing to close."""
