"""Spark streams: pack events by shard, step each shard's state from watermark to watermark, unpack the matches."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.retain import looks_at_all_events, never_forgets
from cepheid.errors import CepheidError, DataError
from cepheid.language.printing import to_text
from cepheid.language.schema import Schema
from cepheid.language.units import UNITS
from cepheid.plan.physical import Plan
from cepheid.runners import pushdown
from cepheid.runners.durations import milliseconds, steps
from cepheid.runners.shipment import needed_columns, ship
from cepheid.runners.spark_batch import addressable, distribution_keys
from cepheid.runners.spark_pack import LATE_EVENT, OUTCOME, PACKED, SHARD, packer, unpacker
from cepheid.runners.spark_session import SETTINGS, DataFrame, arrow_schema, spark_schema
from cepheid.runners.stream_state import VERSION, Step

OPTIONS = frozenset({"delay", "shards", "late_events", "idle", "clock"})
SHARDS = 16
METRICS = "cepheid"  # the name under which a StreamingQueryListener finds the numbers


@dataclass(frozen=True)
class StreamOptions:
    """How a stream is run; `delay` decides which events count as late, the others change no result."""

    delay: Any = None  # how much older than the newest event others may be when they come
    shards: int = SHARDS  # pieces of state; fixed for a checkpoint
    late_events: bool = False  # True: late events come out, too, in a column of their own
    idle: Any = None  # after this much silence of the source, time goes on as the machine's clock does
    clock: str = "all"  # which events move time on: "all", or only those "relevant" to the query


def match_stream(df: DataFrame, plan: Plan, options: Mapping[str, Any] | None = None) -> DataFrame:
    """The matches of a plan in a stream, each once, when the watermark passes its completion."""
    chosen = stream_options(options or {})
    why = never_forgets(plan)
    if why is not None:
        raise CepheidError(f"a stream cannot run this query: {why}", hint="add WITHIN, or match a batch")
    schema = plan.bound.schema
    shipment = ship(plan, arrow_schema(df))
    keys = distribution_keys(plan.bound)
    shards = chosen.shards if keys else 1
    step = Step((shipment,), steps(_delay(df, schema, chosen), schema, "delay"))
    packed = _packed(df, plan, keys, shards, chosen)
    outcome = _stepped(packed, step, fingerprint((plan,), shipment.schema, shards), schema, chosen)
    return _results(outcome, shipment.schema, _late_schema(df, plan) if chosen.late_events else None)


def stream_options(options: Mapping[str, Any]) -> StreamOptions:
    """The options for a stream; unknown or impossible ones are an error."""
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        raise DataError(f"no option '{unknown[0]}' for a Spark stream; there are {', '.join(sorted(OPTIONS))}")
    chosen = StreamOptions(**options)
    if not isinstance(chosen.shards, int) or chosen.shards < 1:
        raise DataError(f"shards={chosen.shards!r} must be a whole number of at least 1")
    if chosen.clock not in ("all", "relevant"):
        raise DataError(f"clock={chosen.clock!r} is neither 'all' nor 'relevant'")
    return chosen


def fingerprint(plans: tuple[Plan, ...], schema: pa.Schema, shards: int) -> str:
    """What must stay the same for a checkpoint to make sense."""
    told = [str(VERSION), str(shards), *(to_text(plan.bound.syntax) for plan in plans)]
    told += [f"{plan.bound.schema.columns}{plan.bound.window}" for plan in plans]
    return hashlib.sha256("\n".join([*told, str(schema)]).encode()).hexdigest()


def _delay(df: DataFrame, schema: Schema, options: StreamOptions) -> Any:
    """The delay that was passed, or that of the stream's own withWatermark."""
    if options.delay is not None:
        return options.delay
    name = schema.lower or schema.time
    told = df.schema[name].metadata.get("spark.watermarkDelayMs") if name in df.columns else None
    if told is None:
        raise DataError(
            f"how much later than the newest event may others come? That decides when column '{name}' is complete",
            hint=f"pass delay='10 seconds', for example, or call withWatermark('{name}', ...) before",
        )
    return f"{told} milliseconds"


def _packed(df: DataFrame, plan: Plan, keys: tuple[str, ...], shards: int, options: StreamOptions) -> DataFrame:
    from pyspark.sql import functions as F

    bound = plan.bound
    types = {field.name: field.dataType for field in df.schema.fields}
    columns = [F.col(pushdown.quoted(name)) for name in keys]
    shard = F.pmod(F.xxhash64(*columns), F.lit(shards)).cast("int") if keys else F.lit(0)
    tests = [column.isNotNull() for column in columns]
    wanted = None if looks_at_all_events(bound) else pushdown.relevant(bound, types)
    for test in tests if wanted is None else [*tests, wanted]:
        shard = F.when(test, shard)
    if options.clock == "relevant" and wanted is not None:
        df = df.where(wanted)
    chosen = df.select(*[pushdown.quoted(name) for name in needed_columns(plan)], shard.alias(SHARD))
    pack = packer(chosen.columns, bound.schema.lower or bound.schema.time, shards)
    return addressable(chosen).mapInArrow(pack, PACKED)


def _stepped(packed: DataFrame, step: Step, known_as: str, schema: Schema, options: StreamOptions) -> DataFrame:
    from cepheid.runners.spark_shard import Shard

    session = packed.sparkSession
    provider = "spark.sql.streaming.stateStore.providerClass"
    if "RocksDB" not in (session.conf.get(provider, "") or ""):
        session.conf.set(provider, SETTINGS[provider])  # the only one that keeps the kinds of state used here
    idle = None
    if options.idle is not None:
        if schema.time_unit is None:
            hint = f"pass time_unit='ms' (or what '{schema.time}' counts)"
            raise DataError("idle lets time go on, but one step of the time column may be anything", hint=hint)
        idle = milliseconds(options.idle, "idle"), UNITS["milliseconds"] / UNITS[schema.time_unit]
    shard = Shard(step, known_as, options.late_events, idle)
    mode = "None" if idle is None else "ProcessingTime"
    return packed.groupBy("shard").transformWithStateInPandas(shard, OUTCOME, "Append", mode)


def _results(outcome: DataFrame, schema: pa.Schema, late: pa.Schema | None) -> DataFrame:
    """The rows of the result; the numbers go to Spark's observed metrics."""
    from pyspark.sql import functions as F

    numbers = [F.sum(name).alias(name) for name in ("events", "late", "retained", "matches", "state_bytes")]
    observed = outcome.observe(METRICS, *numbers).where("packed IS NOT NULL").select("query", "packed")
    if late is not None:
        schema = schema.append(pa.field(LATE_EVENT, pa.struct(list(late))))
    return observed.mapInArrow(unpacker(schema), spark_schema(schema))


def _late_schema(df: DataFrame, plan: Plan) -> pa.Schema:
    names = needed_columns(plan)
    return pa.schema([column for column in arrow_schema(df) if column.name in names])
