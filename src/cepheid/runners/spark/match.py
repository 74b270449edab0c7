"""`match` for PySpark tables: binds the query to the table's columns, plans it, and hands it to batch or stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.budget import within_budget
from cepheid.engine.choose import make_plan
from cepheid.engine.find import automaton_text
from cepheid.errors import DataError
from cepheid.language.schema import Schema
from cepheid.plan.explain import explain
from cepheid.plan.operators import Spread
from cepheid.plan.options import given_options
from cepheid.plan.physical import Plan
from cepheid.runners.composition import check_columns, in_order, options_of_matches
from cepheid.runners.many import QUERY, SHARED, check_names
from cepheid.runners.options import BatchOptions, Options, StreamOptions, check_alone, spark_options
from cepheid.runners.spark import batch, stream
from cepheid.runners.spark.bounds import with_spark_bounds
from cepheid.runners.spark.compressed import compress_batch
from cepheid.runners.spark.pushdown import needed_events
from cepheid.runners.spark.records import query_zone, syntaxes, with_spark_records
from cepheid.runners.spark.session import DataFrame, arrow_schema, is_spark_frame, with_nested_columns, without
from cepheid.runners.spark.shards import shards_for
from cepheid.runners.spark.spelling import quoted
from cepheid.runners.spark.totals import count_batch, match_and_total, total_batch
from cepheid.runners.spark.workers import with_workers


@with_workers
def match_spark(df: DataFrame, query: Any, keywords: Mapping[str, object]) -> Any:
    """The matches of a query, or of several with names, in a Spark table, batch or stream; or how many they are."""
    options, spreading = spark_options(keywords, df.isStreaming)
    if isinstance(query, Path) or is_spark_frame(query):
        return _match_changing(df, query, options, spreading)
    streaming = spreading if isinstance(spreading, StreamOptions) else None
    df = with_nested_columns(df, syntaxes(query))
    zone = query_zone(df, options)
    df, bad = with_spark_records(df, syntaxes(query), options, streaming)
    given = options = replace(options, tz=zone)
    df, options, early = with_spark_bounds(df, options)
    schema = without(arrow_schema(df), bad)
    plans: Plan | dict[str, Plan]
    reading: dict[str, object] = {}
    if isinstance(query, Mapping):
        check_names(query)
        reading = {name: query[name] for name in in_order(query) if query[name].sources}
        plans = {name: spark_plan(one, schema, options) for name, one in query.items() if name not in reading}
    else:
        plans = spark_plan(query, schema, options)
    check_used(plans.values() if isinstance(plans, dict) else [plans], spreading)
    if isinstance(spreading, StreamOptions):
        return stream.match_stream(df, plans, spreading, stream.Reading(given, early, bad), reading)
    if options.output != "rows":
        check_alone(options.output, query)
        assert isinstance(plans, Plan)
        return (count_batch if options.output == "count" else compress_batch)(df, plans, spreading)
    if isinstance(plans, Plan):
        return (batch.match_batch if plans.bound.summary is None else total_batch)(df, plans, spreading)
    totals = any(plan.bound.summary is not None for plan in plans.values())
    result = match_and_total(df, plans, spreading) if totals else batch.match_batch(df, plans, spreading)
    return _composed(result, reading, given, spreading, list(query)) if reading else result


def _composed(
    result: DataFrame, reading: Mapping[str, object], options: Options, spreading: BatchOptions, names: list[str]
) -> DataFrame:
    """The matches of queries, and of those that read them."""
    parts = {name: result for name in names if name not in reading}
    read = matches_of_readers(parts, reading, options, spreading)
    return united([result, *read.values()], names)


def matches_of_readers(
    parts: Mapping[str, DataFrame], reading: Mapping[str, Any], options: Options, spreading: BatchOptions
) -> dict[str, DataFrame]:
    """The matches of queries that read others, each over the matches of what it reads: `parts`, and earlier ones."""
    from pyspark.sql import functions as F

    known, own = dict(parts), options_of_matches(options)
    for name, query in reading.items():
        events = []
        for source in query.sources:
            told = known[source].where(F.col(QUERY) == source)
            inside = [F.col(f"{quoted(source)}.{quoted(each)}") for each in told.schema[source].dataType.names]
            ends = [each for each in SHARED if each in told.columns]
            chosen = told.select(*ends, *inside)
            check_columns(source, arrow_schema(chosen), options)
            kind = [] if options.type is None else [F.lit(source).alias(options.type)]
            events.append(chosen.select(F.col("match_end").alias(options.time), *kind, "*"))
        read = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), events)
        plan = spark_plan(query, arrow_schema(read), own)
        known[name] = batch.match_batch(read.where(F.col("match_end").isNotNull()), {name: plan}, spreading)
    return {name: known[name] for name in reading}


def united(parts: Iterable[DataFrame], names: Iterable[str]) -> DataFrame:
    """Several results as one, with a column for each query."""
    whole = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), parts)
    ends = [each for each in SHARED if each in whole.columns]
    return whole.select(QUERY, *ends, *[quoted(name) for name in names])


def _match_changing(
    df: DataFrame, queries: object, options: Options, running: BatchOptions | StreamOptions
) -> DataFrame:
    """The matches of queries that come and go."""
    if not isinstance(running, StreamOptions):
        raise DataError(
            "queries that are added and removed while running need a stream", hint="pass a text, or {name: text}"
        )
    from cepheid.runners.spark.changing import match_changing

    zone = query_zone(df, options)
    df, bad = with_spark_records(df, [], options, running)
    options = replace(options, tz=zone)
    delay = stream.delay_of(df, options.lower or options.time, running)
    return match_changing(df, queries, options, replace(running, delay=delay), bad)


def spark_plan(query: Any, schema: pa.Schema, options: Options) -> Plan:
    """The plan for events of an Arrow schema, without having seen any: what depends on them, workers decide."""
    bound = query.bind(Schema.from_arrow(schema, **options.roles()))
    with within_budget(options.timeout, options.max_bytes):
        return make_plan(bound, None, options, decide_later=True)[0]


def check_used(plans: Iterable[Plan], options: BatchOptions | StreamOptions) -> None:
    """An error for an option of spreading that no plan has a use for."""
    exchanges, given = [plan.exchange for plan in plans], given_options(options)
    spreads = {exchange.spread for exchange in exchanges}
    hot = any(exchange.keys and exchange.sliceable for exchange in exchanges)
    keyed = f"events go by their key [{', '.join(exchanges[0].keys)}]"
    if "hot_keys" in given and not hot:
        why = "matches are compared over the whole table" if Spread.KEYS in spreads else "no key partitions the events"
        raise DataError("hot_keys splits keys by time, which this query does not support", hint=f"leave it out: {why}")
    if "slices" in given and Spread.TIME not in spreads and "hot_keys" not in given:
        why = keyed if Spread.KEYS in spreads else "neither a key nor a window partitions the events"
        raise DataError("slices splits time, which this query does not support", hint=f"leave it out: {why}")
    if "partitions" in given and spreads == {Spread.NOTHING}:
        raise DataError(
            "partitions needs a key or a window that partitions the events", hint="leave it out, or add WITHIN"
        )
    if "shards" in given and Spread.KEYS not in spreads:
        raise DataError("shards needs a key that partitions the events", hint="leave it out")
    if "keys" in given:
        message = "keys is for queries that are added and removed while running; others partition by their own keys"
        raise DataError(message, hint="leave it out")


def explain_spark(df: DataFrame, query: Any, keywords: Mapping[str, object]) -> str:
    """What would be done for a query over a Spark table, and how it would be spread over workers."""
    options, spreading = spark_options(keywords, df.isStreaming)
    df = with_nested_columns(df, [query])
    zone = query_zone(df, options)
    df, _ = with_spark_records(df, [query], replace(options, bad_records=options.bad_records and "drop"))
    options = replace(options, tz=zone)
    df, options, _ = with_spark_bounds(df, options)
    schema = arrow_schema(df)
    plan = spark_plan(query, schema, options)
    check_used([plan], spreading)
    if isinstance(spreading, StreamOptions):
        plan = stream.sharded(plan, replace(spreading, shards=shards_for(df.sparkSession, spreading.shards)))
    else:
        plan = batch.spread_as_asked(plan, spreading)
    original = query.bind(Schema.from_arrow(schema, **options.roles()))
    return explain(plan, original, automaton=automaton_text(plan), more={"On Spark": spark_lines(df, plan)})


def spark_lines(df: DataFrame, plan: Plan) -> list[str]:
    """What Spark does before events reach a worker, line by line."""
    types = {field.name: field.dataType for field in df.schema.fields}
    wanted = needed_events(plan, types)
    if wanted is not None:
        kept = str(wanted).removeprefix("Column<'").removesuffix("'>")
    elif plan.scan.every_event:
        kept = "every event: contiguity and windows that count events look at all of them"
    else:
        kept = "every event: some component takes any"
    columns = plan.scan.columns
    return [f"filter      {kept}", f"columns     {len(columns)} of {len(df.columns)}: {', '.join(columns)}"]
