"""Streams whose state is one object: rows are packed by shard, and each shard keeps the object in Spark's state store.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import BinaryType, StructType

from cepheid.errors import DataError
from cepheid.runners.spark.session import DataFrame, parallelism, spark_schema
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.shards import OPEN, even_shards, shards_here
from cepheid.runners.spark.started import Announced, announce
from cepheid.runners.stream.identity import Fingerprint, new_record
from cepheid.runners.stream.rows import encoded

_PACKED = pa.schema({"shard": pa.int32(), "at": pa.timestamp("us", "UTC"), "rows": pa.binary()})


class Kept(Protocol):
    """What a shard keeps: it takes in rows, and says what is decided by a time."""

    def keep(self, rows: pa.Table, /) -> object: ...
    def advance(self, until: int, /) -> pa.Table: ...
    def earliest_decision(self) -> int | None: ...
    def save(self) -> bytes: ...
    def restore(self, state: bytes, /) -> None: ...


def found_by_shard(
    rows: DataFrame, schema: pa.Schema, time: str, keys: Sequence[str], shards: int | None, delay: str, shard: Shard
) -> DataFrame:
    """What all shards decide, packed; the columns of the rows are those of the schema, in this order."""
    if not pa.types.is_timestamp(schema.field(time).type):
        raise DataError("a stream is ordered by a timestamp", column=time, hint="cast it before")
    columns = [F.col(f"_{schema.get_field_index(name)}") for name in keys]
    # Checkpoints of earlier versions do not tell how many shards they have, so that the default must not change.
    count = (shards or even_shards(parallelism(rows.sparkSession))) if keys else 1
    adopts = bool(keys) and shards is None
    number = F.pmod(F.hash(*columns).cast("long"), F.lit(OPEN if adopts else count)) if keys else F.lit(0)
    numbered = rows.toDF(*[f"_{place}" for place in range(len(schema))]).withColumn("shard", number)
    packed = numbered.mapInArrow(packer(schema, time, count, adopts), spark_schema(_PACKED)).withWatermark("at", delay)
    found = packed.groupBy("shard").transformWithStateInPandas(
        statefulProcessor=shard,
        outputStructType=StructType().add("packed", BinaryType()),
        outputMode="Append",
        timeMode="EventTime",
        eventTimeColumnName="",
    )
    return announce(found, Announced(count, partial(new_record, [Fingerprint(count, tuple(keys))]), adopts))


def packer(
    schema: pa.Schema, time: str, planned: int, adopts: bool
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """One row per shard and batch, stamped with the newest time: an older stamp could fall behind the watermark."""

    def pack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        count = shards_here(planned) if adopts else planned
        for batch in batches:
            if not batch.num_rows:
                continue
            shards = batch.column(batch.num_columns - 1).to_numpy(zero_copy_only=False) % count
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
        settle()
        for batch in batches:
            for blob in batch.column(0).to_pylist():
                table = pa.ipc.open_stream(blob).read_all()
                yield from table.rename_columns(result.names).cast(result).to_batches()

    return unpack


class Shard(StatefulProcessor):
    """Spark calls it with the packed rows of a shard, and when the watermark has passed what it waits for."""

    def __init__(self, begin: Callable[[], Kept]) -> None:
        self.begin = begin

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        settle()
        self.handle = handle
        self.saved = handle.getValueState("stream", StructType().add("packed", BinaryType()))

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[pd.DataFrame]:
        """Takes in what came for this shard in a micro-batch."""
        kept = self.read()
        blobs = [blob for packed in rows for blob in packed["rows"] if blob is not None]
        for blob in blobs:
            kept.keep(pa.ipc.open_stream(bytes(blob)).read_all())
        yield from self.decided(kept, timerValues)

    def handleExpiredTimer(self, key: Any, timerValues: Any, expiredTimerInfo: Any) -> Iterator[pd.DataFrame]:
        """The watermark has passed."""
        yield from self.decided(self.read(), timerValues)

    def decided(self, kept: Kept, timers: Any) -> Iterator[pd.DataFrame]:
        """What is decided by now; a timer for what is not."""
        watermark = int(timers.getCurrentWatermarkInMs())
        found = kept.advance(watermark * 1000)
        self.saved.update((kept.save(),))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        waits = kept.earliest_decision()
        if waits is not None:
            self.handle.registerTimer(max(-(-waits // 1000) + 1, watermark + 1))
        if found.num_rows:
            yield pd.DataFrame({"packed": [encoded(found)]})

    def read(self) -> Kept:
        """What the shard kept, as it was left."""
        kept = self.begin()
        stored = self.saved.get() if self.saved.exists() else None  # Spark logs a warning where there is nothing to get
        if stored is not None:
            kept.restore(bytes(stored[0]))
        return kept

    def close(self) -> None:
        """Nothing to close."""
