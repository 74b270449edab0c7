"""SUMMARISE on Spark: each worker adds up what it holds, and Spark adds up what the workers found."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from cepheid.engine.data.table import ordered
from cepheid.engine.data.totals import total_listed
from cepheid.engine.output.overlap import Ended
from cepheid.language import syntax as s
from cepheid.language.bound import BoundSummary, BoundTotal
from cepheid.language.totals import BUCKET
from cepheid.plan.physical import Plan
from cepheid.runners.many import with_type_codes
from cepheid.runners.options import BatchOptions
from cepheid.runners.pieces import found, pieces
from cepheid.runners.spark import pushdown
from cepheid.runners.spark.batch import addressable, relevant_events, spread, spread_as_asked
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.shipment import Shipment, ship
from cepheid.runners.spark.slices import SLICE, Slices
from cepheid.runners.totals import find_totals, totals_schema, totals_table


def total_batch(df: DataFrame, plan: Plan, options: BatchOptions) -> DataFrame:
    """The totals of a plan's query in a Spark table."""
    plan = spread_as_asked(plan, options)
    summary = plan.bound.summary
    assert summary is not None
    schema = arrow_schema(df)
    shipment = ship(plan, schema)
    parts = in_parts(summary)
    result = totals_schema(shipment.plan.bound, parts, schema)
    keys = plan.exchange.keys
    columns = [name for name in df.columns if name in shipment.plan.bound.schema.names]
    events = relevant_events(df, [plan], keys).select(*[pushdown.quoted(name) for name in columns])
    parted, slices = spread(events, [plan])
    work = worker(shipment, parts, result, slices, options.memory, tuple(parted.columns))
    return added_up(addressable(parted).mapInArrow(work, spark_schema(result)), summary)


def in_parts(summary: BoundSummary) -> BoundSummary:
    """The same in totals that can be added up: an average is made of a sum and a count."""
    totals: list[BoundTotal] = []
    for number, total in enumerate(summary.totals):
        if total.function == "avg":
            totals.append(replace(total, name=f"_{number}", function="sum"))
            totals.append(replace(total, name=f"_{number}_known", function="count"))
        else:
            totals.append(replace(total, name=f"_{number}"))
    return replace(summary, totals=tuple(totals))


def added_up(parts: DataFrame, summary: BoundSummary) -> DataFrame:
    """The parts of all workers put together."""
    from pyspark.sql import functions as F

    columns = []
    for number, total in enumerate(summary.totals):
        part = F.col(f"_{number}")
        if total.function in ("min", "max"):
            value = F.min(part) if total.function == "min" else F.max(part)
        elif total.function == "avg":
            known = F.sum(F.col(f"_{number}_known")).cast("double")
            value = F.when(known > 0, F.sum(part).cast("double") / known)
        else:
            value = F.sum(part)
            if total.function == "count":
                value = F.coalesce(value, F.lit(0)).cast("decimal(38,0)")
            elif total.function == "approximate_count":
                value = F.coalesce(value, F.lit(0.0))
            elif str(parts.schema[f"_{number}"].dataType.typeName()) == "decimal":
                value = value.cast("decimal(38,0)")
        columns.append(value.alias(total.name))
    keys = [pushdown.quoted(name) for name in summary.by] + ([BUCKET] if summary.every is not None else [])
    return parts.groupBy(*keys).agg(*columns)


def worker(
    shipment: Shipment,
    parts: BoundSummary,
    result: pa.Schema,
    slices: Slices | None,
    memory: int,
    columns: tuple[str, ...],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a Python worker does with the events of one partition, whose columns go by these names."""

    def work(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = shipment.unpacked()
        keys = plan.exchange.keys
        parted = [*keys, SLICE] if slices is not None else list(keys)
        named = (batch.rename_columns(list(columns)) for batch in batches)
        looks_back = plan.bound.syntax.output.mode is s.OutputMode.NON_OVERLAP
        ended: Ended | None = None
        for piece in pieces(named, [plan], parted, memory):
            for part in slices.parts(piece) if slices is not None else [piece]:
                schema = plan.bound.schema
                events = ordered(with_type_codes(part.events, schema.type), schema)
                if looks_back:
                    matches, ended = found(plan, events, part, ended)
                    sums = total_listed(plan.bound, parts, events, lambda listed=matches: listed)  # type: ignore[misc]
                else:
                    sums = find_totals(plan, parts, events, part.after, part.until)
                yield from totals_table(plan.bound, events, sums, parts).cast(result).to_batches()

    return work
