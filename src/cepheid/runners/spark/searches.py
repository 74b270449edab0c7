"""Row patterns and Flink patterns on Spark.

The events of a key go to one task, which runs the search on all it was given. Of a stream, events are packed, dealt to
shards, timed and counted as those of all streams are, and each shard keeps a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from cepheid.errors import DataError
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.language.zone_labels import labelled_schema
from cepheid.runners.languages import StepSearch
from cepheid.runners.options import PatternOptions, StreamOptions
from cepheid.runners.spark.pack import LATE_EVENT, Marks, outcome_columns, plain_unpacker
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.shard import Shard, Telling
from cepheid.runners.spark.shards import OPEN, shards_for
from cepheid.runners.spark.short_errors import short_errors
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
from cepheid.runners.stream.incremental import IncrementalStep
from cepheid.runners.worker_plans import register_functions

BATCH = 100_000  # rows of the result that go back to Spark at a time

Aspects = Callable[[], Mapping[str, Any]]  # what decides the matches, under the names a user knows


def match_search(
    df: DataFrame, search: StepSearch, options: PatternOptions, aspects: Aspects, late: Sequence[str]
) -> DataFrame:
    """What a search finds in a Spark table, with columns of the names `_0`, `_1`, ...

    Of a stream, late events come in a column of their own, if they are asked for; `late` are their columns.
    """
    if df.isStreaming:
        search.check_stream()
        return match_incremental(df, search, options.part(StreamOptions), aspects(), late)
    keys = [quoted(name) for name in search.keys]
    if not keys:
        rows = df.coalesce(1)
    else:
        rows = df.repartition(*keys) if options.partitions is None else df.repartition(options.partitions, *keys)
    result = numbered(labelled_schema(search.result))
    named = rows.toDF(*numbered(search.columns).names)  # names that mapInArrow can resolve
    return named.mapInArrow(_worker(search, result), spark_schema(result))


def numbered(schema: pa.Schema) -> pa.Schema:
    """Columns under names that are unique and need no quotes."""
    return pa.schema([field.with_name(f"_{number}") for number, field in enumerate(schema)])


def _worker(search: StepSearch, result: pa.Schema) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with its events."""

    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        register_functions(search.functions)
        held = list(batches)
        if not held:
            return
        events = pa.Table.from_batches(held).rename_columns(search.columns.names).cast(search.columns)
        found = search.run(events, threads=1).rename_columns(result.names)
        yield from found.cast(result).to_batches(max_chunksize=BATCH)

    return work


def match_incremental(
    df: DataFrame, search: StepSearch, options: StreamOptions, aspects: Mapping[str, Any], late_columns: Sequence[str]
) -> DataFrame:
    """What a search finds in a stream."""
    columns = arrow_schema(df)
    time, keys = search.clock.time, search.keys
    delay = whole_steps(delay_of(df, time, options), search.clock, "delay")
    df = without_watermark(df)
    adopts = bool(keys) and options.shards is None
    shards = shards_for(df.sparkSession, options.shards) if keys else 1
    options = replace(options, shards=shards)
    result = numbered(search.result)
    late = tuple(name for name in columns.names if name in late_columns) if options.late_events else ()
    step = IncrementalStep(search.begin, columns, time, delay, result, late, functions=search.functions)
    known = Fingerprint(shards, keys, {ALONE: digests(aspects)})

    places = {name: f"_{number}" for number, name in enumerate(columns.names)}  # names that mapInArrow can resolve
    hashed = F.xxhash64(*[F.col(places[name]) for name in keys]) if keys else F.lit(0)
    shard = F.pmod(hashed, F.lit(OPEN)) if adopts else F.pmod(hashed, F.lit(shards)).cast("int")
    place = columns.field(time).with_name(places[time])
    clock = Schema.from_arrow(pa.schema([place]), time=place.name, type=None, time_unit=search.clock.time_unit)
    names = {place: name for name, place in places.items()}
    marks = Marks.beside([*places, *names], None)
    placed = df.toDF(*places.values()).select("*", shard.alias(marks.shard))
    packed = packed_by_shard(placed, clock, options, marks, (shards, adopts), names)
    idle = silence(options, search.clock)
    processor = Shard(step, known, Telling(options.late_events, idle, adopts=adopts))
    mode = "None" if idle is None else "ProcessingTime"
    outcome = packed.groupBy("shard").transformWithStateInPandas(processor, outcome_columns(False), "Append", mode)
    outcome = announce(outcome, Announced(shards, partial(record, known), adopts))
    if options.late_events:
        if LATE_EVENT in search.result.names:
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
