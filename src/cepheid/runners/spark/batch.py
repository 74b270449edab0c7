"""Spark batches: drop what no component takes, bring the events of a key together, and run the engine on each part.

One shuffle by the attributes of the equivalence tests, one Arrow pass per partition; sorting happens in the worker,
which is faster than in the JVM. Queries that cannot be parted by key are parted by time, see spark_slices.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from cepheid.engine.data.table import ordered
from cepheid.engine.output.overlap import Ended
from cepheid.engine.retention import looks_at_all_events
from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan
from cepheid.runners.many import events_of_each, with_type_codes
from cepheid.runners.pieces import MEMORY, found, pieces
from cepheid.runners.spark import pushdown
from cepheid.runners.spark import slices as spark_slices
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.shipment import Shipment, as_named, common_result, result_batches, result_rows, ship
from cepheid.runners.spark.slices import SLICE, Slices

Batches = Iterator[pa.RecordBatch]
OPTIONS = frozenset({"partitions", "slices", "hot_keys", "memory"})


@dataclass(frozen=True)
class BatchOptions:
    """How a batch is spread over workers; none of it changes the result."""

    partitions: int | None = None  # of the shuffle; None: as Spark's settings say
    slices: int | None = None  # of time, for queries that no key parts; None: as many as tasks run at once
    hot_keys: Any = None  # keys to part by time, too: values, or "auto" to count first
    memory: int = MEMORY  # bytes of events that a task holds at a time


def match_batch(df: DataFrame, plans: Plan | Mapping[str, Plan], options: Mapping[str, Any] | None = None) -> DataFrame:
    """The matches of a plan, or of several with names, in a Spark table, as a Spark table.

    The queries are bound to the table's columns (`arrow_schema(df)`). Those that are spread alike share one pass.
    """
    chosen = batch_options(options or {})
    schema = arrow_schema(df)
    shipments = [ship(plan, schema, name) for name, plan in as_named(plans).items()]
    result = common_result(shipments)
    parts = [_matched(df, group, result, chosen) for group in spread_alike(shipments)]
    return reduce(lambda left, right: left.unionAll(right), parts)


def spread_alike(shipments: Sequence[Shipment]) -> list[list[Shipment]]:
    """The plans in groups that the same spreading of events serves."""
    groups: dict[Any, list[Shipment]] = {}
    for shipment in shipments:
        keys = distribution_keys(shipment.plan.bound)
        alike = frozenset(keys) if keys else spark_slices.can_slice(shipment.plan)
        groups.setdefault(alike, []).append(shipment)
    return list(groups.values())


def _matched(df: DataFrame, shipments: Sequence[Shipment], result: pa.Schema, options: BatchOptions) -> DataFrame:
    plans = [shipment.plan for shipment in shipments]
    keys = distribution_keys(plans[0].bound)
    columns = [name for name in df.columns if any(name in plan.bound.schema.names for plan in plans)]
    events = relevant_events(df, plans, keys).select(*[pushdown.quoted(name) for name in columns])
    parted, slices = spread(events, plans, keys, options)
    work = worker(shipments, result, keys, slices, options.memory, tuple(parted.columns))
    return addressable(parted).mapInArrow(work, spark_schema(result))


def addressable(df: DataFrame) -> DataFrame:
    """The same columns under names that mapInArrow can resolve: it takes a dot for a field of a struct."""
    if not any("." in name or "`" in name for name in df.columns):
        return df
    return df.toDF(*[f"_{number}" for number in range(len(df.columns))])


def batch_options(options: Mapping[str, Any]) -> BatchOptions:
    """The options for a batch; unknown ones are an error that names the known."""
    unknown = sorted(set(options) - OPTIONS)
    if unknown:
        known = ", ".join(sorted(OPTIONS))
        raise DataError(f"no option '{unknown[0]}' for a Spark batch; there are {known}")
    return BatchOptions(**options)


def distribution_keys(bound: BoundQuery) -> tuple[str, ...]:
    """The attributes by which events can be parted without losing a match; empty if there are none.

    Strict contiguity looks across partitions, and an event of an ANY component may lack the attribute and so belong
    to every partition.
    """
    if bound.strategy is s.Strategy.STRICT_CONTIGUITY or any(component.any for component in bound.components):
        return ()
    return bound.equivalence


def relevant_events(df: DataFrame, plans: Sequence[Plan], keys: Sequence[str]) -> DataFrame:
    """The events that can matter, by a filter that Spark can push down to the files."""
    from pyspark.sql import functions as F

    types = {field.name: field.dataType for field in df.schema.fields}
    for name in keys:  # no match holds an event without its key; a shuffle would send them all to one task
        df = df.where(F.col(pushdown.quoted(name)).isNotNull())
    tests = [wanted(plan.bound, types, keys) for plan in plans]
    known = [test for test in tests if test is not None]
    return df if len(known) < len(tests) else df.where(reduce(lambda left, right: left | right, known))


def wanted(bound: BoundQuery, types: dict[str, Any], keys: Sequence[str]) -> Any:
    """True for the events that a query must see, as a column; None if that is all of them."""
    if not looks_at_all_events(bound):
        return pushdown.relevant(bound, types)
    return pushdown.fixed_keys(bound, types) if keys else None


def spread(
    events: DataFrame, plans: Sequence[Plan], keys: Sequence[str], options: BatchOptions
) -> tuple[DataFrame, Slices | None]:
    """The events, each where its matches are found, and how time was cut if it was."""
    columns = [pushdown.quoted(name) for name in keys]
    slices = spark_slices.plan_slices(events, plans, keys, options.slices, options.hot_keys)
    if slices is not None:
        return spark_slices.spread_slices(events, plans, keys, slices, options.partitions), slices
    if not keys:
        return events.coalesce(1), None
    if options.partitions is None:
        return events.repartition(*columns), None
    return events.repartition(options.partitions, *columns), None


def worker(
    shipments: Sequence[Shipment],
    result: pa.Schema,
    keys: Sequence[str],
    slices: Slices | None,
    memory: int,
    columns: Sequence[str],
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """What a Python worker does with the events of one partition, whose columns go by these names."""

    def work(batches: Iterable[pa.RecordBatch]) -> Batches:
        plans = [shipment.unpacked() for shipment in shipments]
        parted = [*keys, SLICE] if slices is not None else list(keys)
        named = (batch.rename_columns(list(columns)) for batch in batches)
        ended: list[Ended | None] = [None] * len(plans)
        for piece in pieces(named, plans, parted, memory):
            for part in slices.parts(piece) if slices is not None else [piece]:
                schema = plans[0].bound.schema
                events = ordered(with_type_codes(part.events, schema.type), schema)
                of_each = events_of_each([plan.bound for plan in plans], events)
                for number, (shipment, plan, own) in enumerate(zip(shipments, plans, of_each, strict=True)):
                    matches, ended[number] = found(plan, own, part, ended[number])
                    for batch in result_batches(plan.bound, own, matches, shipment.schema):
                        yield result_rows(shipment, batch, result)

    return work
