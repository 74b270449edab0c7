"""Queries that come and go, on Spark: their table is a stream beside the events, so that its rows come exactly once.

Spark's offsets say which rows of both streams make a micro-batch; one that is taken again after a crash sees the same
rows. Every shard gets every row of the table and keeps the queries of today in its state.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

from cepheid.errors import CepheidError, DataError
from cepheid.language.durations import whole_steps
from cepheid.language.schema import Schema
from cepheid.runners.arrow_bytes import decoded, encoded
from cepheid.runners.options import Options, StreamOptions
from cepheid.runners.spark.batch import addressable
from cepheid.runners.spark.chunks import StateChunks, StateMap
from cepheid.runners.spark.outcome import COUNTS, LEVELS, TOTAL, outcome_columns, told
from cepheid.runners.spark.pack import PACKED, Marks, packer
from cepheid.runners.spark.processor import PackedProcessor, Variables, text_state
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema, without
from cepheid.runners.spark.settled import settle
from cepheid.runners.spark.shard import Shard, ShardInput, Telling, came, opened, put_away, write_bad
from cepheid.runners.spark.shards import shards_for
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.started import Announced, announce
from cepheid.runners.spark.stream import metrics_name
from cepheid.runners.spark.watermarks import without_watermark
from cepheid.runners.stream.budget import Budget
from cepheid.runners.stream.changing import Registered, Serving, as_errors, as_rows, idle_step, result_columns
from cepheid.runners.stream.clock import Clock
from cepheid.runners.stream.identity import Fingerprint, new_record
from cepheid.runners.stream.remembered import run_step
from cepheid.runners.stream.state import StreamStep

QUERIES = "name string, text string, options string, enabled boolean"
_CONTROL = "control"


def match_changing(
    df: DataFrame, queries: Path | DataFrame, options: Options, running: StreamOptions, bad: str | None
) -> DataFrame:
    """The matches of the queries that a watched folder or a streaming table has at the time."""
    if running.late_events or running.idle is not None or options.uncertainty is not None:
        raise CepheidError("late_events, idle and uncertainty need a fixed set of queries", hint="leave them out")
    df = without_watermark(df)
    schema = without(arrow_schema(df), bad)
    bound = Schema.from_arrow(schema, **options.roles())
    keys = running.keys
    for key in keys:
        if key not in schema.names:
            raise DataError(f"no column '{key}' to partition the stream by", column=key)
    shards = shards_for(df.sparkSession, running.shards) if keys else 1
    budget = Budget(
        running.max_state_bytes and max(1, running.max_state_bytes // shards),
        running.max_key_events,
        running.when_full,
        running.batch_seconds(),
    )
    step = StreamStep(
        (), (), whole_steps(running.delay, bound, "delay"), schema=schema, dedupe=options.dedupe, budget=budget
    )
    serving = Serving(schema, options.roles(), keys, shards, step)
    marks = Marks.beside(df.columns, bad)
    packed = _packed(df, marks, bound.lower or bound.time, keys, shards).unionAll(_rows(df, queries, shards))
    aside = str(options.aside) if options.aside is not None else None
    shard = PackedProcessor(ChangingShard(serving, Telling(aside=aside)))
    outcome = packed.groupBy("shard").transformWithStateInPandas(shard, outcome_columns(False), "Append", "None")
    spread = Fingerprint(shards, keys)
    outcome = announce(outcome, Announced(shards, partial(new_record, [spread])))
    numbers = [F.sum(name).alias(name) for name in (*COUNTS, "state_bytes")]
    result = result_columns(schema, bound.lower or bound.time)
    observed = outcome.observe(metrics_name(running), *numbers).where("packed IS NOT NULL").select("packed")
    return observed.mapInArrow(_unpack, spark_schema(result))


def _packed(df: DataFrame, marks: Marks, clock: str, keys: tuple[str, ...], shards: int) -> DataFrame:
    """All events, packed by shard: which of them matter is known only there."""
    columns = [F.col(quoted(name)) for name in keys]
    shard = F.pmod(F.xxhash64(*columns), F.lit(shards)).cast("int") if keys else F.lit(0)
    for column in columns:
        shard = F.when(column.isNotNull(), shard)
    if marks.bad is not None:
        shard = F.when(F.col(quoted(marks.bad)).isNull(), shard)
    chosen = df.select("*", shard.alias(marks.shard))
    packed = addressable(chosen).mapInArrow(packer(chosen.columns, clock, marks, shards), PACKED)
    return packed.withColumn(_CONTROL, F.lit(None).cast("string"))


def _rows(df: DataFrame, queries: Path | DataFrame, shards: int) -> DataFrame:
    """The rows of the table of queries, for every shard."""
    at = F.lit("")
    if isinstance(queries, Path):
        if not queries.is_dir():
            raise DataError(f"there is no folder {str(queries)!r} to watch for queries", hint="make it first")
        table = df.sparkSession.readStream.schema(QUERIES).json(str(queries))
        at = F.col("_metadata.file_modification_time").cast("string")
    else:
        table = queries
        for name in ("name", "text"):
            if name not in table.columns:
                raise DataError(f"the table of queries has no column '{name}'", hint=f"it has {QUERIES}")
        if not table.isStreaming:
            raise DataError("the table of queries does not change", hint="pass {name: text}, or readStream it")
    known = [F.col(name) for name in ("name", "text", "options", "enabled") if name in table.columns]
    control = table.select(F.to_json(F.struct(at.alias("at"), *known)).alias(_CONTROL))
    nothing = [F.lit(None).cast("bigint").alias("newest"), F.lit(None).cast("binary").alias("events")]
    nothing += [F.lit(0).cast("bigint").alias(name) for name in ("read", "irrelevant", "malformed")]
    return control.select(
        F.explode(F.sequence(F.lit(0), F.lit(shards - 1))).alias("shard"),
        *nothing,
        F.lit(None).cast("string").alias("bad"),
        _CONTROL,
    )


class ChangingShard(Shard):
    """A shard whose queries come and go."""

    def __init__(self, serving: Serving, telling: Telling) -> None:
        super().__init__(serving.step, Fingerprint(serving.shards, serving.keys), telling)
        self.serving = serving

    def variables(self) -> Variables:
        """What it keeps in Spark's store."""
        return Variables(("clock", "queries"), ("chunks", "keys", "ended"))

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Opens the state."""
        settle()
        self.handle = handle
        self.clock, self.registered = text_state(handle, "clock"), text_state(handle, "queries")
        chunks, codes, ends = (StateMap(handle, name) for name in ("chunks", "keys", "ended"))
        self.store = StateChunks(chunks, codes, ends)

    @short_errors
    def handleInputRows(self, key: Any, rows: Iterator[object], timerValues: object) -> Iterator[pd.DataFrame]:
        """Takes in what came for this shard in a micro-batch: rows of the table first, then events."""
        control: list[Mapping[str, object]] = []
        come = came(_noting(rows, control))
        yield self.changed(
            int(key[0]), come, sorted(control, key=lambda row: (row.get("at") or "", str(row.get("name"))))
        )

    def changed(self, shard: int, come: ShardInput, control: list[Mapping[str, Any]]) -> pd.DataFrame:
        """One step with the queries of today."""
        stored = self.registered.get() if self.registered.exists() else None
        before = Registered.read(stored[0] if stored is not None else None)
        today = before.changed(control, self.serving)
        if today.queries != before.queries:
            self.registered.update((today.text(),))
        step, fingerprint = self.serving.ready(today.queries)
        text = self.stored()
        stream = self.stream + today.text()
        clock, store = Clock.read(text, fingerprint), opened(self.store, text, stream)
        if step.plans:
            outcome = run_step(step, clock, store, come.tables, come.newest)
        else:
            outcome = idle_step(step, clock, store, come.tables, come.newest)
        self.clock.update((outcome.clock.text(fingerprint, put_away(store, stream), store.small),))
        if come.bad and self.telling.aside is not None:
            write_bad(self.telling.aside, outcome.clock.steps, come.bad)
        frame = told(replace(outcome, results=()), come.counts, keep_late=False)
        frame.loc[frame["query"] == TOTAL, "matches"] = outcome.matches
        names = list(today.queries)
        tables = [as_rows(names[number], batch) for number, batch in outcome.results]
        if today.errors and shard == 0:
            schema = self.serving.schema
            time = self.serving.roles.get("lower") or self.serving.roles["time"]
            tables.append(as_errors(today.errors, result_columns(schema, time)))
        numbers = dict.fromkeys((*COUNTS, *LEVELS), 0)
        rows = [{"query": 0, "packed": encoded(table), "lost": 0.0, **numbers} for table in tables]
        return pd.concat([frame, pd.DataFrame(rows)], ignore_index=True) if rows else frame


def _noting(rows: Iterator[Any], control: list[Mapping[str, Any]]) -> Iterator[object]:
    """The rows as they come, with those of the table of queries put down."""
    for frame in rows:
        control += [json.loads(each) for each in frame[_CONTROL] if each is not None]
        yield frame


@short_errors
def _unpack(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    settle()
    for batch in batches:
        for packed in batch.column("packed").to_pylist():
            yield from decoded(packed).to_batches()
