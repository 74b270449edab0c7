"""SUMMARISE on Spark: each worker adds up what it holds, and Spark adds up what the workers found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

import pyarrow as pa

from cepheid.engine.data.table import ordered
from cepheid.engine.data.totals import COUNT_ALL
from cepheid.engine.output.overlap import Ended
from cepheid.language import syntax as s
from cepheid.language.bound import BoundSummary
from cepheid.plan.physical import Plan
from cepheid.runners.events_of_each import with_type_codes
from cepheid.runners.many import QUERY, common_schema
from cepheid.runners.options import BatchOptions
from cepheid.runners.pieces import Piece, found, pieces
from cepheid.runners.spark.batch import addressable, match_batch, relevant_events, spread, spread_as_asked
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.slices import Slices
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.total_parts import find_parts, group_columns, part_names, parts_of, parts_schema
from cepheid.runners.totals import MORE_DIGITS, check_countable
from cepheid.runners.worker_plans import WorkerPlan


def match_and_total(df: DataFrame, plans: Mapping[str, Plan], options: BatchOptions) -> DataFrame:
    """The results of several queries with names, some of which ask for totals, as one Spark table."""
    from pyspark.sql import functions as F

    schema = arrow_schema(df)
    result = spark_schema(common_schema({name: ship(plan, schema, name).schema for name, plan in plans.items()}))
    listing = {name: plan for name, plan in plans.items() if plan.bound.summary is None}
    frames = [match_batch(df, listing, options)] if listing else []
    for name, plan in plans.items():
        if plan.bound.summary is not None:
            own = total_batch(df, plan, options)
            struct = F.struct(*[F.col(quoted(column)) for column in own.columns]).alias(name)
            frames.append(own.select(F.lit(name).alias(QUERY), struct))
    widened = [
        frame.select(
            *[
                (F.col(quoted(field.name)) if field.name in frame.columns else F.lit(None))
                .cast(field.dataType)
                .alias(field.name)
                for field in result.fields
            ]
        )
        for frame in frames
    ]
    return reduce(lambda left, right: left.unionAll(right), widened)


def count_batch(df: DataFrame, plan: Plan, options: BatchOptions) -> int:
    """How many matches there are in a Spark table; starts a job."""
    check_countable(plan)
    counting = replace(plan, match=replace(plan.match, bound=replace(plan.bound, summary=COUNT_ALL)))
    return int(total_batch(df, counting, options).collect()[0][0])


def total_batch(df: DataFrame, plan: Plan, options: BatchOptions) -> DataFrame:
    """The totals of a plan's query in a Spark table."""
    plan = spread_as_asked(plan, options)
    summary = plan.bound.summary
    assert summary is not None
    schema = arrow_schema(df)
    worker_plan = ship(plan, schema)
    assert worker_plan.events is not None
    result = parts_schema(worker_plan.plan.bound, worker_plan.events)
    keys = plan.exchange.keys
    columns = [name for name in df.columns if name in worker_plan.plan.bound.schema.names]
    events = relevant_events(df, [plan], keys).select(*[quoted(name) for name in columns])
    parted, slices = spread(events, [plan])
    work = worker(worker_plan, result, slices, options.memory, tuple(parted.columns))
    return added_up(addressable(parted).mapInArrow(work, spark_schema(result)), summary)


def added_up(parts: DataFrame, summary: BoundSummary) -> DataFrame:
    """The parts of all workers put together."""
    from pyspark.sql import functions as F

    columns = []
    for number, total in enumerate(summary.totals):
        name, known_as = part_names(summary, number)
        part = F.col(name)
        if total.function in ("min", "max"):
            value = F.min(part) if total.function == "min" else F.max(part)
        elif total.function == "avg":
            known = F.sum(F.col(known_as).cast("double"))
            value = F.when(known > 0, F.sum(part.cast("double")) / known)
        elif parts.schema[name].dataType.typeName() == "decimal":
            value = exact_sum(part, total.name)
            value = F.coalesce(value, F.lit(0).cast("decimal(38,0)")) if total.function == "count" else value
        else:
            value = F.sum(part)
            value = F.coalesce(value, F.lit(0.0)) if total.function == "approximate_count" else value
        columns.append(value.alias(total.name))
    return parts.groupBy(*[quoted(name) for name in group_columns(summary)]).agg(*columns)


def exact_sum(part: Any, name: str) -> Any:
    """A sum of whole numbers, or an error if it has more digits than Spark's widest type."""
    from pyspark.sql import functions as F

    # try_sum is NULL where the sum does not fit, whatever the session says about overflow.
    added = F.try_sum(part)
    too_large = F.raise_error(F.lit(f"{name} has more than 38 digits: {MORE_DIGITS}")).cast("decimal(38,0)")
    return F.when(added.isNull() & (F.count(part) > 0), too_large).otherwise(added.cast("decimal(38,0)"))


def worker(
    worker_plan: WorkerPlan, result: pa.Schema, slices: Slices | None, memory: int, columns: tuple[str, ...]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with the events of one partition, whose columns go by these names."""

    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = worker_plan.unpacked()
        keys = plan.exchange.keys
        parted = [*keys, slices.column] if slices is not None else list(keys)
        named = (batch.rename_columns(list(columns)) for batch in batches)
        within = (
            part
            for piece in pieces(named, [plan], parted, memory)
            for part in (slices.parts(piece) if slices is not None else [piece])
        )
        for table in parts_of_pieces(plan, within):
            yield from table.cast(result).to_batches()

    return work


def parts_of_pieces(plan: Plan, cut: Iterable[Piece]) -> Iterator[pa.Table]:
    """What each piece of some events adds to the totals."""
    schema = plan.bound.schema
    looks_back = plan.bound.output.mode is s.OutputMode.NON_OVERLAP
    ended: Ended | None = None
    for piece in cut:
        events = ordered(with_type_codes(piece.events, schema.type), schema)
        if looks_back:
            matches, ended = found(plan, events, piece, ended)
            yield parts_of(plan.bound, events, matches)
        else:
            yield find_parts(plan, events, piece.after, piece.until)
