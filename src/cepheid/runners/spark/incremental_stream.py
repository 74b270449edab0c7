"""Row patterns and Flink patterns over Spark streams: packed, dealt to shards, timed and counted as all streams are.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from cepheid.errors import DataError
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.runners.options import StreamOptions
from cepheid.runners.spark.pack import LATE_EVENT, Marks, outcome_columns, plain_unpacker
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.shard import Shard, Telling
from cepheid.runners.spark.shards import OPEN, shards_for
from cepheid.runners.spark.started import Announced, announce
from cepheid.runners.spark.stream import delay_of, metrics_name, observed_outcome, packed_by_shard, silence
from cepheid.runners.spark.watermarks import without_watermark
from cepheid.runners.stream.identity import (
    ALONE,
    UNREADABLE_RECORD,
    Fingerprint,
    digests,
    new_record,
    recorded_states,
)
from cepheid.runners.stream.incremental import IncrementalStep, Search


@dataclass(frozen=True)
class Sought:
    """A pattern that is looked for in a stream."""

    begin: Callable[[], Search]
    schema: Schema  # of the time column at least
    keys: Sequence[str]
    result: pa.Schema
    aspects: Mapping[str, Any]  # what decides its matches, under the names a user knows
    late: Sequence[str] = ()  # the columns of late events
    functions: tuple[bytes, ...] = ()  # the user's, pickled


def match_incremental(df: DataFrame, sought: Sought, options: StreamOptions) -> DataFrame:
    """What a pattern finds in a stream, with columns of the names `_0`, `_1`, ..., and late events if asked for."""
    columns = arrow_schema(df)
    time = sought.schema.time
    delay = whole_steps(delay_of(df, time, options), sought.schema, "delay")
    df = without_watermark(df)
    adopts = bool(sought.keys) and options.shards is None
    shards = shards_for(df.sparkSession, options.shards) if sought.keys else 1
    options = replace(options, shards=shards)
    result = pa.schema([field.with_name(f"_{number}") for number, field in enumerate(sought.result)])
    late = tuple(name for name in columns.names if name in sought.late) if options.late_events else ()
    step = IncrementalStep(sought.begin, columns, time, delay, result, late, functions=sought.functions)
    known = Fingerprint(shards, tuple(sought.keys), {ALONE: digests(sought.aspects)})

    places = {name: f"_{number}" for number, name in enumerate(columns.names)}  # names that mapInArrow can resolve
    numbered = df.toDF(*places.values())
    hashed = F.xxhash64(*[F.col(places[name]) for name in sought.keys]) if sought.keys else F.lit(0)
    shard = F.pmod(hashed, F.lit(OPEN)) if adopts else F.pmod(hashed, F.lit(shards)).cast("int")
    place = columns.field(time).with_name(places[time])
    clock = Schema.from_arrow(pa.schema([place]), time=place.name, type=None, time_unit=sought.schema.time_unit)
    names = {place: name for name, place in places.items()}
    marks = Marks.beside([*places, *names], None)
    placed = numbered.select("*", shard.alias(marks.shard))
    packed = packed_by_shard(placed, clock, options, marks, (shards, adopts), names)
    idle = silence(options, sought.schema)
    processor = Shard(step, known, Telling(options.late_events, idle, adopts=adopts))
    mode = "None" if idle is None else "ProcessingTime"
    outcome = packed.groupBy("shard").transformWithStateInPandas(processor, outcome_columns(False), "Append", mode)
    outcome = announce(outcome, Announced(shards, partial(record, known), adopts))
    if options.late_events:
        if LATE_EVENT in sought.result.names:
            raise DataError(
                f"a column of the result is called '{LATE_EVENT}', as that of late events", hint="rename it"
            )
        result = result.append(pa.field(LATE_EVENT, pa.struct([columns.field(name) for name in late])))
    observed = observed_outcome(outcome, [None], metrics_name(options))
    return observed.mapInArrow(plain_unpacker(result), spark_schema(result))


def record(known: Fingerprint, old: str | None, adopted: int | None = None) -> str:
    """The record of a checkpoint; an error if it was written when these streams had another kind of state."""
    try:
        nameless = old is not None and not any(each["queries"] for each in recorded_states(old))
    except UNREADABLE_RECORD:
        nameless = False  # it is damaged; the states themselves still know
    if nameless:
        raise DataError(
            "the checkpoint was written by a version of Cepheid that kept another kind of state for row patterns and "
            "Flink patterns",
            hint="start a new checkpoint, from as far back as the window of the pattern is long",
        )
    return new_record([known], old, adopted)
