"""`match` for PySpark tables: binds the query to the table's columns, plans it, and hands it to batch or stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cepheid.engine.find import automaton_text
from cepheid.engine.planning import make_plan
from cepheid.engine.retention import looks_at_all_events, reach, windows_back
from cepheid.errors import DataError
from cepheid.language.schema import Schema
from cepheid.plan.explain import explain
from cepheid.plan.physical import Plan
from cepheid.runners.many import check_names
from cepheid.runners.options import Options
from cepheid.runners.spark import batch as spark_batch
from cepheid.runners.spark import slices as spark_slices
from cepheid.runners.spark import stream as spark_stream
from cepheid.runners.spark.bounds import with_spark_bounds
from cepheid.runners.spark.session import DataFrame, arrow_schema
from cepheid.runners.spark.shipment import needed_columns

OPTIONS = spark_batch.OPTIONS | spark_stream.OPTIONS


def match_spark(df: DataFrame, query: Any, keywords: Mapping[str, Any]) -> DataFrame:
    """The matches of a query, or of several with names, in a Spark table, batch or stream."""
    options = Options.from_keywords(keywords, sorted(OPTIONS))
    spark_options = {name: value for name, value in options.hints.items() if name in OPTIONS}
    df, options, early = with_spark_bounds(df, options)
    schema = arrow_schema(df)
    plans: Plan | dict[str, Plan]
    if isinstance(query, Mapping):
        check_names(query)
        plans = {name: spark_plan(one, schema, options) for name, one in query.items()}
    else:
        plans = spark_plan(query, schema, options)
    if df.isStreaming:
        return spark_stream.match_stream(df, plans, spark_options, early)
    return spark_batch.match_batch(df, plans, spark_options)


def spark_plan(query: Any, schema: pa.Schema, options: Options) -> Plan:
    """The plan for events of an Arrow schema, without having seen any."""
    if "output" in options.hints:
        raise DataError("output= is for tables in memory, not for Spark", hint="count the rows of the result")
    bound = query.bind(Schema.from_arrow(schema, **options.roles()))
    hints = {name: value for name, value in options.hints.items() if name not in OPTIONS}
    plan, _ = make_plan(bound, engine=options.engine, model=options.model, scoring=options.scoring, hints=hints)
    return plan


def explain_spark(df: DataFrame, query: Any, keywords: Mapping[str, Any]) -> str:
    """What would be done for a query over a Spark table, and how it would be spread over workers."""
    df, options, _ = with_spark_bounds(df, Options.from_keywords(keywords, sorted(OPTIONS)))
    schema = arrow_schema(df)
    plan = spark_plan(query, schema, options)
    original = query.bind(Schema.from_arrow(schema, **options.roles()))
    hints = {name: value for name, value in options.hints.items() if name not in OPTIONS}
    text = explain(plan, original, hints=hints, automaton=automaton_text(plan))
    return "\n".join([text, "", "On Spark", *(f"  {line}" for line in spreading(df, plan))])


def spreading(df: DataFrame, plan: Plan) -> list[str]:
    """How events get to workers, line by line."""
    bound = plan.bound
    keys = spark_batch.distribution_keys(bound)
    types = {field.name: field.dataType for field in df.schema.fields}
    wanted = spark_batch.wanted(bound, types, keys)
    kept = "every event: contiguity and windows that count events look at all of them"
    if wanted is not None:
        kept = str(wanted).removeprefix("Column<'").removesuffix("'>")
    elif not looks_at_all_events(bound):
        kept = "every event: some component takes any"
    columns = needed_columns(plan)
    lines = [f"filter      {kept}", f"columns     {len(columns)} of {len(df.columns)}: {', '.join(columns)}"]
    if df.isStreaming:
        where = f"shards by {', '.join(keys)}" if keys else "one shard, since no key parts the events"
        return [*lines, f"state       {where}", f"retained    {_retention(plan)}"]
    if keys:
        return [*lines, f"shuffle     by {', '.join(keys)}"]
    if spark_slices.can_slice(plan):
        return [*lines, f"slices      of time, each with the events of {reach(plan)} steps before it"]
    return [*lines, "shuffle     none: all events go through one task, since neither key nor window parts them"]


def _retention(plan: Plan) -> str:
    back = reach(plan)
    if back is not None:
        return f"events that could be taken, for {back} steps of time"
    window = plan.bound.window
    return "everything" if window is None else f"the last {windows_back(plan) * window.length} events of each key"
