"""Row patterns and Flink patterns on Spark.

The events of a key go to one task, which runs the search on all it was given. Of a stream, events are packed, dealt to
shards, timed and counted as those of all streams are, and each shard keeps a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as F

from cepheid.errors import CepheidError, DataError
from cepheid.language.checked import CheckedQuery
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.language.zone_labels import labelled_schema
from cepheid.runners.languages import StepSearch
from cepheid.runners.many import common_schema
from cepheid.runners.options import Options, PatternOptions, StreamOptions
from cepheid.runners.spark.levels import Source, levels_of
from cepheid.runners.spark.outcome import outcome_columns
from cepheid.runners.spark.pack import Marks
from cepheid.runners.spark.processor import PackedProcessor
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.shard import Shard, Telling
from cepheid.runners.spark.shards import OPEN, shards_for
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.started import Announced, announce
from cepheid.runners.spark.stream import delay_of, metrics_name, observed_outcome, packed_by_shard, silence
from cepheid.runners.spark.unpack import LATE_EVENT, unpacker
from cepheid.runners.spark.watermarks import without_watermark
from cepheid.runners.stream.composed import Level
from cepheid.runners.stream.identity import (
    ALONE,
    UNREADABLE_RECORD,
    Fingerprint,
    digests,
    fingerprint,
    new_record,
    recorded_states,
)
from cepheid.runners.stream.incremental import IncrementalStep
from cepheid.runners.worker_plans import register_functions

BATCH = 100_000  # rows of the result that go back to Spark at a time

Aspects = Callable[[], Mapping[str, Any]]  # what decides the matches, under the names a user knows


@dataclass(frozen=True)
class Above:
    """The queries that read the matches of a search in a stream, and under which name (FROM)."""

    name: str
    readers: Mapping[str, CheckedQuery]
    options: Options  # of the readers


def match_search(
    df: DataFrame,
    search: StepSearch,
    options: PatternOptions,
    aspects: Aspects,
    late: Sequence[str],
    above: Above | None = None,
) -> DataFrame:
    """What a search finds in a Spark table, with columns of the names `_0`, `_1`, ...

    Of a stream, late events come in a column of their own, if they are asked for; `late` are their columns. With
    queries `above` it, the result is the common one of all these.
    """
    if df.isStreaming:
        search.check_stream()
        return match_incremental(df, search, options.part(StreamOptions), aspects(), late, above)
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
    df: DataFrame,
    search: StepSearch,
    options: StreamOptions,
    aspects: Mapping[str, object],
    late_columns: Sequence[str],
    above: Above | None = None,
) -> DataFrame:
    """What a search finds in a stream, and what queries find in its matches."""
    columns = arrow_schema(df)
    time, keys = search.clock.time, search.keys
    delay = whole_steps(delay_of(df, time, options), search.clock, "delay")
    df = without_watermark(df)
    adopts = bool(keys) and options.shards is None
    shards = shards_for(df.sparkSession, options.shards) if keys else 1
    options = replace(options, shards=shards)
    late = tuple(name for name in columns.names if name in late_columns) if options.late_events else ()
    step = IncrementalStep(
        search.begin, columns, time, delay, numbered(search.result), late, functions=search.functions
    )
    levels: tuple[Level, ...] = ()
    known = Fingerprint(shards, keys, {ALONE: digests(aspects)})
    if above is not None:
        levels = readers_of(search, above, adopts or shards > 1)
        step = replace(step, result=labelled_schema(search.result), name=above.name)
        read = fingerprint([level.step.shipments[0] for level in levels], shards)
        known = Fingerprint(shards, keys, {above.name: digests(aspects), **read.queries})

    packed = _packed(df, search, options, (shards, adopts))
    idle = silence(options, search.clock)
    telling = Telling(options.late_events, idle, named=bool(levels), adopts=adopts)
    processor = PackedProcessor(Shard(step, known, telling, levels))
    mode = "None" if idle is None else "ProcessingTime"
    shape = outcome_columns(bool(levels))
    outcome = packed.groupBy("shard").transformWithStateInPandas(processor, shape, "Append", mode)
    outcome = announce(outcome, Announced(shards, partial(record, known), adopts))
    result, names = step.result, [step.name if levels else None, *(level.name for level in levels)]
    if levels:
        schemas = {level.name: level.step.shipments[0].schema for level in levels}
        result = common_schema({step.name: step.result, **schemas})
    if options.late_events:
        if LATE_EVENT in search.result.names:
            raise DataError(
                f"a column of the result is called '{LATE_EVENT}', as that of late events", hint="rename it"
            )
        result = result.append(pa.field(LATE_EVENT, pa.struct([columns.field(name) for name in late])))
    observed = observed_outcome(outcome, names, metrics_name(options))
    return observed.mapInArrow(unpacker(names, result), spark_schema(result))


def _packed(df: DataFrame, search: StepSearch, options: StreamOptions, spread: tuple[int, bool]) -> DataFrame:
    """The events of each task packed by shard; `spread` says how many there are, and if the checkpoint decides it."""
    columns = arrow_schema(df)
    time, (shards, adopts) = search.clock.time, spread
    places = {name: f"_{number}" for number, name in enumerate(columns.names)}  # names that mapInArrow can resolve
    hashed = F.xxhash64(*[F.col(places[name]) for name in search.keys]) if search.keys else F.lit(0)
    shard = F.pmod(hashed, F.lit(OPEN)) if adopts else F.pmod(hashed, F.lit(shards)).cast("int")
    place = columns.field(time).with_name(places[time])
    clock = Schema.from_arrow(pa.schema([place]), time=place.name, type=None, time_unit=search.clock.time_unit)
    names = {place: name for name, place in places.items()}
    marks = Marks.beside([*places, *names], None)
    placed = df.toDF(*places.values()).select("*", shard.alias(marks.shard))
    return packed_by_shard(placed, clock, options, marks, spread, names)


def readers_of(search: StepSearch, above: Above, spread: bool) -> tuple[Level, ...]:
    """The queries that read the matches of a search, in order; `spread` says whether there may be several shards."""
    result = search.result
    if len(set(result.names)) < len(result.names):
        raise CepheidError(f"two columns of '{above.name}' have one name", hint="give its measures other names")
    returned = search.keys if {*search.keys} <= {*result.names} else None
    source = Source(labelled_schema(result), search.lateness(), search.keys, returned, 0)
    (levels,) = levels_of(above.readers, {above.name: source}, [spread], above.options)
    for level in levels:
        if level.step.shipments[0].plan.bound.summary is not None:
            message = f"query '{level.name}' adds up matches of a query in another language, which a stream cannot"
            raise CepheidError(message, hint="add them up with Spark, or match a batch")
    return tuple(levels)


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
