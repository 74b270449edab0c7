"""Spark streams: pack events by shard, step each shard's state from watermark to watermark, unpack the matches."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.language.durations import milliseconds, whole_steps
from cepheid.language.schema import DataType, Schema
from cepheid.language.units import UNITS
from cepheid.metrics import NAMES, OF_EACH
from cepheid.plan.operators import Union
from cepheid.plan.options import read_options
from cepheid.plan.physical import Plan
from cepheid.runners.options import Options, StreamOptions
from cepheid.runners.spark import pushdown
from cepheid.runners.spark.batch import addressable
from cepheid.runners.spark.bounds import as_time
from cepheid.runners.spark.levels import Source, levels_of
from cepheid.runners.spark.outcome import COUNTS, OWN, RUN_POOL, outcome_columns
from cepheid.runners.spark.pack import BEAT, PACKED, Marks, packer
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema, without
from cepheid.runners.spark.shards import OPEN, shards_for
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.unpack import LATE_EVENT, unpacker
from cepheid.runners.spark.watermarks import without_watermark
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.stream.budget import Budget
from cepheid.runners.stream.composed import Level
from cepheid.runners.stream.identity import Fingerprint, fingerprint, new_record
from cepheid.runners.stream.state import StreamStep
from cepheid.runners.stream.totals import whole_here
from cepheid.runners.worker_plans import WorkerPlan, as_named, common_result


def match_stream(
    df: DataFrame,
    plans: Plan | Mapping[str, Plan],
    options: StreamOptions | Mapping[str, object] | None = None,
    read: Reading | None = None,
    composed: Mapping[str, Any] | None = None,
) -> DataFrame:
    """The matches of a plan, or of several with names, in a stream: each once, when the watermark passes it.

    The queries are bound to the stream's columns. Those that are spread alike share one pass and one state.
    """
    from cepheid.runners.spark.started import Announced, announce

    chosen = options if isinstance(options, StreamOptions) else read_options(StreamOptions, options or {})
    adopts = chosen.shards is None and chosen.state is None
    chosen = replace(chosen, shards=shards_for(df.sparkSession, chosen.shards))
    read = read or Reading()
    reading = read.options
    schema = next(iter(as_named(plans).values())).bound.schema
    clock = schema.time if read.early is not None or schema.lower is None else schema.lower
    chosen = replace(chosen, delay=delay_of(df, clock, chosen))
    df = without_watermark(df)
    events = without(arrow_schema(df), read.bad)
    union = Union(tuple((name, sharded(plan, chosen)) for name, plan in as_named(plans).items()))
    for _, plan in union.plans:
        why = plan.exchange.retention.for_ever
        if why is not None:
            raise CepheidError(f"this query cannot run on a stream: {why}", hint="add WITHIN, or match a batch")
        if plan.bound.summary is not None and plan.bound.summary.every is None:
            message = "a stream has no end, so totals without EVERY would never be returned"
            raise CepheidError(message, hint="add EVERY, for example EVERY 10 minutes, or match a batch")
    groups = [[ship(plan, events, name) for name, plan in group] for group in union.spread_alike()]
    if chosen.state is not None and len(groups) > 1:
        raise CepheidError("queries with different keys have separate states", hint="move them one by one")
    shipped = {worker_plan.name: worker_plan for group in groups for worker_plan in group}
    shipments = [shipped[name] for name, _ in union.plans]
    sources = {
        worker_plan.name or "": Source.of_plan(worker_plan, shipments.index(worker_plan), number)
        for number, group in enumerate(groups)
        for worker_plan in group
    }
    spread = [adopts or (group[0].plan.exchange.shards or 1) > 1 for group in groups]
    levels = levels_of(composed or {}, sources, spread, reading)
    shipments += [level.step.shipments[0] for of_group in levels for level in of_group]
    result = common_result(shipments)
    if chosen.late_events:
        late = [column for column in events if any(column.name in s.plan.bound.schema.names for s in shipments)]
        result = result.append(pa.field(LATE_EVENT, pa.struct(late)))
    more = {"uncertainty": reading.uncertainty}
    prints = [
        fingerprint([*group, *(each.step.shipments[0] for each in own)], group[0].plan.exchange.shards or 1, more)
        for group, own in zip(groups, levels, strict=True)
    ]
    # Totals of one shard are not parts that meet those of others.
    alone = [group for group, each in zip(groups, prints, strict=True) if each.keys and each.shards == 1]
    adopts = adopts and not any(totals_in(group) for group in alone)
    outcomes = [
        _stepped(df, group, shipments, Running(chosen, read, each, tuple(own), adopts and bool(each.keys)))
        for group, own, each in zip(groups, levels, prints, strict=True)
    ]
    outcome = reduce(lambda left, right: left.unionAll(right), outcomes)
    outcome = announce(outcome, Announced(max(each.shards for each in prints), partial(new_record, prints), adopts))
    return _results(outcome, shipments, result, metrics_name(chosen))


@dataclass(frozen=True)
class Reading:
    """How the records of a stream were read as events."""

    options: Options = field(default_factory=Options)
    early: int | None = None  # bounds made from a time column (`uncertainty`) can be this much further apart than times
    bad: str | None = None  # the column that marks what cannot be an event


@dataclass(frozen=True)
class Running:
    """How a stream is run, for one of its groups of queries."""

    options: StreamOptions
    reading: Reading
    fingerprint: Fingerprint
    levels: tuple[Level, ...] = ()
    adopts: bool = False  # does the checkpoint decide how many shards there are?


def totals_in(group: Sequence[WorkerPlan]) -> bool:
    """Does any of the queries add up its matches?"""
    return any(worker_plan.plan.bound.summary is not None for worker_plan in group)


def sharded(plan: Plan, options: StreamOptions) -> Plan:
    """The plan with an exchange that deals events to shards."""
    shards = options.shards if plan.exchange.keys else 1
    return replace(plan, exchange=replace(plan.exchange, shards=shards))


def delay_of(df: DataFrame, name: str, options: StreamOptions) -> Any:
    """The delay that was passed, or that of the stream's own withWatermark."""
    if options.delay is not None:
        return options.delay
    told = df.schema[name].metadata.get("spark.watermarkDelayMs") if name in df.columns else None
    if told is None:
        raise DataError(
            f"how much later than the newest event may others come? That decides when column '{name}' is complete",
            hint=f"pass delay='10 seconds', for example, or call withWatermark('{name}', ...) before",
        )
    return f"{told} milliseconds"


def packed_events(df: DataFrame, plans: Sequence[Plan], options: StreamOptions, running: Running) -> DataFrame:
    """The events of each task packed by shard; all plans are spread alike."""
    from pyspark.sql import functions as F

    types = {field.name: field.dataType for field in df.schema.fields}
    schema = plans[0].bound.schema
    adopts, dedupe, marks = (
        running.adopts,
        running.reading.options.dedupe,
        Marks.beside(df.columns, running.reading.bad),
    )
    keys, shards = plans[0].exchange.keys, plans[0].exchange.shards or 1
    bad = None if marks.bad is None else F.col(quoted(marks.bad))
    columns = [F.col(quoted(name)) for name in keys]
    shard = F.lit(0)
    if keys:
        hashed = F.xxhash64(*columns)
        shard = F.pmod(hashed, F.lit(OPEN)) if adopts else F.pmod(hashed, F.lit(shards)).cast("int")
    tests = [pushdown.needed_events(plan, types) for plan in plans]
    known = [test for test in tests if test is not None]
    if len(known) == len(tests):
        relevant = reduce(lambda left, right: left | right, known)
        shard = F.when(relevant, shard)
        if options.clock == "relevant":
            df = df.where(relevant if bad is None else relevant | bad.isNotNull())
    for column in columns:
        shard = F.when(column.isNotNull(), shard)
    if bad is not None:  # what is no event belongs to no shard
        shard = F.when(bad.isNull(), shard)
    names = [name for name in df.columns if name in dedupe or any(name in p.bound.schema.names for p in plans)]
    names += [] if marks.bad is None else [marks.bad]
    chosen = df.select(*[quoted(name) for name in names], shard.alias(marks.shard))
    if len(known) == len(tests):
        chosen = sent_when_needed(chosen, marks.shard, {schema.lower or schema.time, marks.bad, marks.shard})
    return packed_by_shard(chosen, schema, options, marks, (shards, adopts))


def sent_when_needed(chosen: DataFrame, shard: str, always: Collection[str | None]) -> DataFrame:
    """The rows that go to Python, with NULL in those of no shard, which only move the clock, but for some columns.

    A NULL costs Spark less than a value does. A column that cannot be NULL stays as it is, since what is
    stored of a stream has its columns, too.
    """
    from pyspark.sql import functions as F

    needed = F.col(quoted(shard)).isNotNull()
    sent = []
    for each in chosen.schema.fields:
        column = F.col(quoted(each.name))
        leaves_out = each.nullable and each.name not in always
        sent.append(F.when(needed, column).alias(each.name) if leaves_out else column)
    return chosen.select(*sent)


def packed_by_shard(
    chosen: DataFrame,
    schema: Schema,
    options: StreamOptions,
    marks: Marks,
    spread: tuple[int, bool],
    names: Mapping[str, str] | None = None,
) -> DataFrame:
    """Rows that know their shard, packed; their columns may get other names on the way.

    `spread` says how many shards there are, and whether the checkpoint decides it.
    """
    if options.heartbeat:
        chosen = _with_heartbeat(chosen, schema, marks)
    if options.shards == 1:
        # One task from source to sink: what lies in one partition need not be shuffled into one.
        chosen = chosen.coalesce(1)
    clock, known = schema.lower or schema.time, names or {}
    columns = [known.get(name, name) for name in chosen.columns]
    return addressable(chosen).mapInArrow(packer(columns, known.get(clock, clock), marks, *spread), PACKED)


def _with_heartbeat(chosen: DataFrame, schema: Schema, marks: Marks) -> DataFrame:
    """The events, and rows that belong to no shard and only say what time it is."""
    from pyspark.sql import functions as F

    if schema.time_unit is None:
        hint = f"pass time_unit='ms' (or what '{schema.time}' counts)"
        raise DataError("a heartbeat needs the unit of the time column", hint=hint)
    beats = chosen.sparkSession.readStream.format("rate").option("rowsPerSecond", 1).load()
    kind = chosen.schema[schema.lower or schema.time].dataType
    now = as_time(F.unix_micros("timestamp"), kind.typeName())
    if schema.type_of(schema.lower or schema.time) is DataType.INT:
        now = (F.unix_micros("timestamp") * (UNITS["microseconds"] / UNITS[schema.time_unit])).cast(kind)
    known = {schema.lower or schema.time: now, marks.shard: F.lit(BEAT)}
    columns = [
        known.get(field.name, F.lit(None).cast(field.dataType)).alias(field.name) for field in chosen.schema.fields
    ]
    return chosen.unionAll(beats.select(*columns))


def _stepped(
    df: DataFrame, group: Sequence[WorkerPlan], shipments: Sequence[WorkerPlan], running: Running
) -> DataFrame:
    """What the shards of some of the plans report, one state for all of these."""
    from cepheid.runners.spark.processor import PackedProcessor
    from cepheid.runners.spark.shard import Shard, Telling

    options, early = running.options, running.reading.early
    plans = [worker_plan.plan for worker_plan in group]
    schema = plans[0].bound.schema
    dedupe = running.reading.options.dedupe
    packed = packed_events(df, plans, options, running)
    idle = silence(options, schema)
    numbers = tuple(shipments.index(worker_plan) for worker_plan in group)
    delay = whole_steps(options.delay, schema, "delay") + (early or 0)
    needed = {name for plan in plans for name in plan.bound.schema.names} | set(dedupe)
    narrow = pa.schema([column for column in arrow_schema(df) if column.name in needed])
    bytes_here = options.max_state_bytes and max(1, options.max_state_bytes // running.fingerprint.shards)
    budget = Budget(bytes_here, options.max_key_events, options.when_full, options.batch_seconds())
    step = StreamStep(tuple(group), numbers, delay, schema=narrow, dedupe=dedupe, budget=budget)
    aside = str(running.reading.options.aside) if running.reading.options.aside is not None else None
    named = shipments[0].name is not None
    telling = Telling(options.late_events, idle, aside, named, running.adopts)
    shard = PackedProcessor(Shard(step, running.fingerprint, telling, running.levels))
    mode = "None" if idle is None else "ProcessingTime"
    first = None
    if options.state is not None:
        from cepheid.runners.spark.moving import first_state

        first = first_state(df, options.state, plans[0].exchange.keys, narrow, running.fingerprint).groupBy("shard")
    return packed.groupBy("shard").transformWithStateInPandas(shard, outcome_columns(named), "Append", mode, first)


METRICS = "cepheid"
# Each metric is an expression that Spark analyses, plans and compiles in every micro-batch: six for each of a hundred
# queries take longer than all the rest. The numbers of more queries than these are one text (metrics.py reads it).
MOST_NAMED = 8
_names = itertools.count(1)  # of the metrics of streams that were given none


def metrics_name(options: StreamOptions) -> str:
    """The name of a stream's observed metrics. Those of one streaming query, a union or a chain, need a name each."""
    if options.metrics is not None:
        return options.metrics
    number = next(_names)
    return METRICS if number == 1 else f"{METRICS}_{number}"


def silence(options: StreamOptions, schema: Schema) -> tuple[int, float] | None:
    """After how many milliseconds of silence time goes on, and by how many steps of the time column in each; if so."""
    if options.idle is None:
        return None
    if schema.time_unit is None:
        hint = f"pass time_unit='ms' (or what '{schema.time}' counts)"
        raise DataError("idle needs the unit of the time column", hint=hint)
    return milliseconds(options.idle, "idle"), UNITS["milliseconds"] / UNITS[schema.time_unit]


def observed_outcome(outcome: DataFrame, names: Sequence[str | None], metrics: str) -> DataFrame:
    """What shards tell, packed; the numbers, and those of queries with names, go to Spark's observed metrics."""
    from pyspark.sql import functions as F

    numbers = [F.sum(name).alias(name) for name in (*COUNTS, "retained", "state_bytes", "lost")]
    numbers += [F.max(name).alias(name) for name in ("newest", "watermark")]
    if sum(query is not None for query in names) > MOST_NAMED:
        own = F.concat_ws(",", "query", *OWN.values())
        numbers.append(F.concat_ws(";", F.collect_list(F.when(F.col("query") >= 0, own))).alias(OF_EACH))
        numbers.append(F.max(F.lit(json.dumps(names))).alias(NAMES))
    else:
        numbers += [each for number, query in enumerate(names) if query is not None for each in _own(number, query)]
    return outcome.observe(metrics, *numbers).where("packed IS NOT NULL").select("query", "packed")


def _own(number: int, query: str) -> list[Any]:
    """The numbers of one query, each in a metric of its own."""
    from pyspark.sql import functions as F

    own = F.col("query") == number
    columns = [(F.when(own, F.col(column)).otherwise(0), name) for name, column in OWN.items()]
    # The books of each query balance, too: what is left of the records that were read concerns others.
    taken = reduce(lambda left, right: left + right, [F.col(OWN[name]) for name in RUN_POOL])
    rest = F.col("read") - F.col("malformed") - F.when(own, taken).otherwise(0)
    return [F.sum(column).alias(f"{name}[{query}]") for column, name in (*columns, (rest, "irrelevant"))]


def _results(outcome: DataFrame, shipments: Sequence[WorkerPlan], result: pa.Schema, metrics: str) -> DataFrame:
    """The rows of the result; the numbers go to Spark's observed metrics."""
    from pyspark.sql import functions as F

    names = [worker_plan.name for worker_plan in shipments]
    observed = observed_outcome(outcome, names, metrics)
    parted = {number: each for number, each in enumerate(shipments) if not whole_here(each.plan)}
    if parted:
        # All shards share one clock, so that their parts of a bucket come out in the same micro-batch: to add them up
        # they only have to meet in one task.
        together = F.when(F.col("query").isin([*parted]), F.col("query").cast("long")).otherwise(F.xxhash64("packed"))
        observed = observed.repartition(together)
    return observed.mapInArrow(unpacker(names, result, parted), spark_schema(result))
