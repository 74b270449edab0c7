"""Spark batches: drop what no component takes, bring the events of a key together, and run the engine on each part.

One shuffle by the attributes of the equivalence tests, one Arrow pass per partition; sorting happens in the worker,
which is faster than in the JVM. Queries that cannot be parted by key are parted by time, see slices.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import reduce

import pyarrow as pa

from cepheid.engine.data.table import ordered
from cepheid.engine.output.overlap import Ended
from cepheid.plan.operators import Union
from cepheid.plan.options import read_options
from cepheid.plan.physical import Plan
from cepheid.runners.events_of_each import events_of_each, with_type_codes
from cepheid.runners.options import BatchOptions
from cepheid.runners.pieces import found, pieces
from cepheid.runners.spark import pushdown
from cepheid.runners.spark.session import DataFrame, arrow_schema, spark_schema
from cepheid.runners.spark.short_errors import short_errors
from cepheid.runners.spark.slices import Slices, plan_slices, spread_slices
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.worker_plan import ship
from cepheid.runners.worker_plans import WorkerPlan, as_named, common_result, result_batches, result_rows

Batches = Iterator[pa.RecordBatch]


def match_batch(
    df: DataFrame, plans: Plan | Mapping[str, Plan], options: BatchOptions | Mapping[str, object] | None = None
) -> DataFrame:
    """The matches of a plan, or of several with names, in a Spark table, as a Spark table.

    The queries are bound to the table's columns (`arrow_schema(df)`). Those that are spread alike share one pass.
    """
    asked = options if isinstance(options, BatchOptions) else read_options(BatchOptions, options or {})
    schema = arrow_schema(df)
    union = Union(tuple((name, spread_as_asked(plan, asked)) for name, plan in as_named(plans).items()))
    groups = [[ship(plan, schema, name) for name, plan in group] for group in union.spread_alike()]
    shipped = {worker_plan.name: worker_plan for group in groups for worker_plan in group}
    result = common_result(shipped[name] for name, _ in union.plans)
    parts = [_matched(df, group, result, asked.memory) for group in groups]
    return reduce(lambda left, right: left.unionAll(right), parts)


def spread_as_asked(plan: Plan, options: BatchOptions) -> Plan:
    """The plan with an exchange that does what the options say."""
    exchange = replace(plan.exchange, partitions=options.partitions, slices=options.slices, hot_keys=options.hot_keys)
    return replace(plan, exchange=exchange)


def _matched(df: DataFrame, shipments: Sequence[WorkerPlan], result: pa.Schema, memory: int) -> DataFrame:
    plans = [worker_plan.plan for worker_plan in shipments]
    keys = plans[0].exchange.keys
    columns = [name for name in df.columns if any(name in plan.bound.schema.names for plan in plans)]
    events = relevant_events(df, plans, keys).select(*[quoted(name) for name in columns])
    parted, slices = spread(events, plans)
    work = worker(shipments, result, keys, slices, memory, tuple(parted.columns))
    return addressable(parted).mapInArrow(work, spark_schema(result))


def addressable(df: DataFrame) -> DataFrame:
    """The same columns under names that mapInArrow can resolve: it takes a dot for a field of a struct."""
    if not any("." in name or "`" in name for name in df.columns):
        return df
    return df.toDF(*[f"_{number}" for number in range(len(df.columns))])


def relevant_events(df: DataFrame, plans: Sequence[Plan], keys: Sequence[str]) -> DataFrame:
    """The events that can matter, by a filter that Spark can push down to the files."""
    from pyspark.sql import functions as F

    types = {field.name: field.dataType for field in df.schema.fields}
    for name in keys:  # no match holds an event without its key; a shuffle would send them all to one task
        df = df.where(F.col(quoted(name)).isNotNull())
    tests = [pushdown.needed_events(plan, types) for plan in plans]
    known = [test for test in tests if test is not None]
    return df if len(known) < len(tests) else df.where(reduce(lambda left, right: left | right, known))


def spread(events: DataFrame, plans: Sequence[Plan]) -> tuple[DataFrame, Slices | None]:
    """The events, each where its matches are found, and how time was cut if it was; all plans are spread alike."""
    exchange = plans[0].exchange
    columns = [quoted(name) for name in exchange.keys]
    slices = plan_slices(events, plans)
    if slices is not None:
        return spread_slices(events, plans, slices), slices
    if not columns:
        return events.coalesce(1), None
    if exchange.partitions is None:
        return events.repartition(*columns), None
    return events.repartition(exchange.partitions, *columns), None


def worker(
    shipments: Sequence[WorkerPlan],
    result: pa.Schema,
    keys: Sequence[str],
    slices: Slices | None,
    memory: int,
    columns: Sequence[str],
) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """What a Python worker does with the events of one partition, whose columns go by these names."""

    @short_errors
    def work(batches: Iterable[pa.RecordBatch]) -> Batches:
        plans = [worker_plan.unpacked() for worker_plan in shipments]
        parted = [*keys, slices.column] if slices is not None else list(keys)
        named = (batch.rename_columns(list(columns)) for batch in batches)
        ended: list[Ended | None] = [None] * len(plans)
        for piece in pieces(named, plans, parted, memory):
            for part in slices.parts(piece) if slices is not None else [piece]:
                schema = plans[0].bound.schema
                events = ordered(with_type_codes(part.events, schema.type), schema)
                of_each = events_of_each([plan.bound for plan in plans], events)
                for number, (worker_plan, plan, own) in enumerate(zip(shipments, plans, of_each, strict=True)):
                    matches, ended[number] = found(plan, own, part, ended[number])
                    for batch in result_batches(plan.bound, own, matches, worker_plan.schema):
                        yield result_rows(worker_plan, batch, result)

    return work
