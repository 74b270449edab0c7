"""Row patterns over Spark streams: rows are packed by shard, and each shard keeps a RowStream in Spark's state store.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructType

from cepheid.engine.search.preferred.released import check_stream
from cepheid.engine.search.preferred.run import result_schema
from cepheid.errors import DataError
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.runners.spark.session import DataFrame, spark_schema
from cepheid.runners.spark.started import Announced, announce
from cepheid.runners.stream.rows import RowStream, encoded

SHARDS = 16
_PACKED = pa.schema({"shard": pa.int32(), "at": pa.timestamp("us", "UTC"), "rows": pa.binary()})


def match_row_stream(
    rows: DataFrame, clause: BoundClause, schema: pa.Schema, delay: str, shards: int | None, max_rows: int | None
) -> DataFrame:
    """The rows that a clause makes of a stream; its columns are those of the schema, in this order."""
    check_stream(clause, max_rows)
    time = clause.order_by[0].column
    if not pa.types.is_timestamp(schema.field(time).type):
        raise DataError("a stream is ordered by a timestamp", column=time, hint="cast it before")
    keys = [F.col(f"_{schema.get_field_index(name)}") for name in clause.partition_by]
    count = (shards or SHARDS) if keys else 1
    shard = F.pmod(F.hash(*keys), F.lit(count)).cast("int") if keys else F.lit(0)
    numbered = rows.toDF(*[f"_{number}" for number in range(len(schema))]).withColumn("shard", shard)
    packed = numbered.mapInArrow(packer(schema, time), spark_schema(_PACKED)).withWatermark("at", delay)
    result = result_schema(clause, schema)
    found = packed.groupBy("shard").transformWithStateInPandas(
        statefulProcessor=RowShard(clause, schema, max_rows),
        outputStructType=StructType().add("packed", BinaryType()),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="",
    )
    found = announce(found, Announced(count, lambda old: old or "{}"))
    unique = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(result)])
    return found.mapInArrow(unpacker(unique), spark_schema(unique)).toDF(*result.names)


def packer(schema: pa.Schema, time: str) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """One row per shard and batch, stamped with the newest time: an older stamp could fall behind the watermark."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if not batch.num_rows:
                continue
            shards = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False)
            table = pa.Table.from_batches([batch]).select(range(len(schema))).rename_columns(schema.names).cast(schema)
            newest = pa.compute.max(table.column(time)).cast(pa.timestamp("us", "UTC"))
            present = np.unique(shards)
            blobs = [encoded(table.filter(pa.array(shards == shard))) for shard in present]
            columns = [pa.array(present, pa.int32()), pa.array([newest.as_py()] * len(present), _PACKED.field(1).type)]
            yield pa.RecordBatch.from_arrays([*columns, pa.array(blobs, pa.binary())], schema=_PACKED)

    return pack


def unpacker(result: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The decided rows of all shards."""

    def unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                table = pa.ipc.open_stream(blob).read_all()
                yield from table.rename_columns(result.names).cast(result).to_batches()

    return unpack


class RowShard(StatefulProcessor):
    """Spark calls it with the packed rows of a shard, and when the watermark has passed what it waits for."""

    def __init__(self, clause: BoundClause, schema: pa.Schema, max_rows: int | None) -> None:
        self.clause, self.schema, self.max_rows = clause, schema, max_rows

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
        yield from self.decided(stream, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has passed."""
        yield from self.decided(self.read(), timerValues)

    def decided(self, stream: RowStream, timers: Any) -> Iterator[pd.DataFrame]:
        """What is decided by now; a timer for what is not."""
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

    def read(self) -> RowStream:
        """The stream as it was left."""
        stream = RowStream(self.clause, self.schema, 0, self.max_rows)
        stored = self.saved.get() if self.saved.exists() else None  # Spark logs a warning where there is nothing to get
        if stored is not None:
            stream.restore(bytes(stored[0]))
        return stream

    def close(self) -> None:
        """Nothing to close."""
