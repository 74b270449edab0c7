"""Spark batches: drop what no component takes, bring the events of a key together, and run the engine on each part.

One shuffle by the attributes of the equivalence tests, one Arrow pass per partition; sorting happens in the worker,
which is faster than in the JVM. Queries that cannot be parted by key are parted by time, see spark_slices.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.events import ordered
from cepheid.engine.find import find
from cepheid.engine.retain import looks_at_all_events
from cepheid.errors import DataError
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan
from cepheid.runners import pushdown, spark_slices
from cepheid.runners.pieces import MEMORY, pieces
from cepheid.runners.shipment import Shipment, needed_columns, result_batches, ship
from cepheid.runners.spark_session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark_slices import SLICE, Slices

Batches = Iterator[pa.RecordBatch]
OPTIONS = frozenset({"partitions", "slices", "hot_keys", "memory"})


@dataclass(frozen=True)
class BatchOptions:
    """How a batch is spread over workers; none of it changes the result."""

    partitions: int | None = None  # of the shuffle; None: as Spark's settings say
    slices: int | None = None  # of time, for queries that no key parts; None: as many as tasks run at once
    hot_keys: Any = None  # keys to part by time, too: values, or "auto" to count first
    memory: int = MEMORY  # bytes of events that a task holds at a time


def match_batch(df: DataFrame, plan: Plan, options: Mapping[str, Any] | None = None) -> DataFrame:
    """The matches of a plan in a Spark table, as a Spark table.

    The plan's query is bound to the table's columns (`arrow_schema(df)`).
    """
    chosen = batch_options(options or {})
    shipment = ship(plan, arrow_schema(df))
    keys = distribution_keys(plan.bound)
    events = relevant_events(df, plan, keys).select(*[pushdown.quoted(name) for name in needed_columns(plan)])
    parted, slices = spread(events, plan, keys, chosen)
    work = worker(shipment, keys, slices, chosen.memory, tuple(parted.columns))
    return addressable(parted).mapInArrow(work, spark_schema(shipment.schema))


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


def relevant_events(df: DataFrame, plan: Plan, keys: Sequence[str]) -> DataFrame:
    """The events that can matter, by a filter that Spark can push down to the files."""
    from pyspark.sql import functions as F

    bound = plan.bound
    types = {field.name: field.dataType for field in df.schema.fields}
    for name in keys:  # no match holds an event without its key; a shuffle would send them all to one task
        df = df.where(F.col(pushdown.quoted(name)).isNotNull())
    if keys:
        fixed = pushdown.fixed_keys(bound, types)
        df = df if fixed is None else df.where(fixed)
    if not looks_at_all_events(bound):
        wanted = pushdown.relevant(bound, types)
        df = df if wanted is None else df.where(wanted)
    return df


def spread(
    events: DataFrame, plan: Plan, keys: Sequence[str], options: BatchOptions
) -> tuple[DataFrame, Slices | None]:
    """The events, each where its matches are found, and how time was cut if it was."""
    columns = [pushdown.quoted(name) for name in keys]
    slices = spark_slices.plan_slices(events, plan, keys, options.slices, options.hot_keys)
    if slices is not None:
        return spark_slices.spread_slices(events, plan, keys, slices, options.partitions), slices
    if not keys:
        return events.coalesce(1), None
    if options.partitions is None:
        return events.repartition(*columns), None
    return events.repartition(options.partitions, *columns), None


def worker(
    shipment: Shipment, keys: Sequence[str], slices: Slices | None, memory: int, columns: Sequence[str]
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """What a Python worker does with the events of one partition, whose columns go by these names."""

    def work(batches: Iterable[pa.RecordBatch]) -> Batches:
        plan = shipment.unpacked()
        parted = [*keys, SLICE] if slices is not None else list(keys)
        named = (batch.rename_columns(list(columns)) for batch in batches)
        for piece in pieces(named, plan, parted, memory):
            for part in slices.parts(piece) if slices is not None else [piece]:
                events = ordered(part.events, plan.bound.schema)
                matches = find(plan, events, part.after, part.until)
                yield from result_batches(plan.bound, events, matches, shipment.schema)

    return work
