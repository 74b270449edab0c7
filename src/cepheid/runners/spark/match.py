"""`match` for PySpark tables: binds the query to the table's columns, plans it, and hands it to batch or stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cepheid.engine.choose import make_plan
from cepheid.engine.find import automaton_text
from cepheid.errors import DataError
from cepheid.language.schema import Schema
from cepheid.plan.explain import explain
from cepheid.plan.operators import Spread
from cepheid.plan.options import given_options
from cepheid.plan.physical import Plan
from cepheid.runners.many import check_names
from cepheid.runners.options import BatchOptions, Options, StreamOptions, spark_options
from cepheid.runners.spark import batch, stream
from cepheid.runners.spark.bounds import with_spark_bounds
from cepheid.runners.spark.pack import BAD
from cepheid.runners.spark.pushdown import needed_events
from cepheid.runners.spark.records import syntaxes, with_spark_records
from cepheid.runners.spark.session import DataFrame, arrow_schema
from cepheid.runners.spark.totals import total_batch


def match_spark(df: DataFrame, query: Any, keywords: Mapping[str, Any]) -> DataFrame:
    """The matches of a query, or of several with names, in a Spark table, batch or stream."""
    options, spreading = spark_options(keywords, df.isStreaming)
    streaming = spreading if isinstance(spreading, StreamOptions) else None
    df = with_spark_records(df, syntaxes(query), options, streaming)
    given = options
    df, options, early = with_spark_bounds(df, options)
    schema = arrow_schema(df.drop(BAD))
    plans: Plan | dict[str, Plan]
    if isinstance(query, Mapping):
        check_names(query)
        plans = {name: spark_plan(one, schema, options) for name, one in query.items()}
    else:
        plans = spark_plan(query, schema, options)
    summaries = [plan for plan in (plans.values() if isinstance(plans, dict) else [plans]) if plan.bound.summary]
    if summaries and (isinstance(plans, dict) or df.isStreaming):
        kind = "one query at a time" if isinstance(plans, dict) else "tables, not streams"
        raise DataError(f"SUMMARISE on Spark is for {kind}", hint="match without it and aggregate the rows")
    check_used(plans.values() if isinstance(plans, dict) else [plans], spreading)
    if isinstance(spreading, StreamOptions):
        return stream.match_stream(df, plans, spreading, early, given)
    if summaries:
        return total_batch(df, summaries[0], spreading)
    return batch.match_batch(df, plans, spreading)


def spark_plan(query: Any, schema: pa.Schema, options: Options) -> Plan:
    """The plan for events of an Arrow schema, without having seen any: what depends on them, workers decide."""
    bound = query.bind(Schema.from_arrow(schema, **options.roles()))
    return make_plan(bound, None, options, decide_later=True)[0]


def check_used(plans: Iterable[Plan], options: BatchOptions | StreamOptions) -> None:
    """An error for an option of spreading that no plan has a use for."""
    exchanges, given = [plan.exchange for plan in plans], given_options(options)
    spreads = {exchange.spread for exchange in exchanges}
    hot = any(exchange.keys and exchange.sliceable for exchange in exchanges)
    keyed = f"events go by their key [{', '.join(exchanges[0].keys)}]"
    if "hot_keys" in given and not hot:
        why = "matches have to be compared over all time" if Spread.KEYS in spreads else "no key parts the events"
        raise DataError("hot_keys cuts keys by time, which this query cannot use", hint=f"leave it out: {why}")
    if "slices" in given and Spread.TIME not in spreads and "hot_keys" not in given:
        why = keyed if Spread.KEYS in spreads else "neither key nor window parts the events"
        raise DataError("slices cuts time, which this query cannot use", hint=f"leave it out: {why}")
    if "partitions" in given and spreads == {Spread.NOTHING}:
        raise DataError("partitions parts events, but neither key nor window does", hint="leave it out, or add WITHIN")
    if "shards" in given and Spread.KEYS not in spreads:
        raise DataError("shards parts a stream by key, but no key parts the events", hint="leave it out")


def explain_spark(df: DataFrame, query: Any, keywords: Mapping[str, Any]) -> str:
    """What would be done for a query over a Spark table, and how it would be spread over workers."""
    options, spreading = spark_options(keywords, df.isStreaming)
    df = with_spark_records(df, [query], replace(options, bad_records=options.bad_records and "drop"))
    df, options, _ = with_spark_bounds(df, options)
    schema = arrow_schema(df)
    plan = spark_plan(query, schema, options)
    check_used([plan], spreading)
    if isinstance(spreading, StreamOptions):
        plan = stream.sharded(plan, spreading)
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
