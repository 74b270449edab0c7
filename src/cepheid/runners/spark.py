"""`match` for PySpark tables: binds the query to the table's columns, plans it, and hands it to batch or stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from cepheid.engine.planning import make_plan
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from cepheid.runners import spark_batch, spark_stream
from cepheid.runners.options import Options
from cepheid.runners.spark_session import DataFrame, arrow_schema

OPTIONS = spark_batch.OPTIONS | spark_stream.OPTIONS


def match_spark(df: DataFrame, query: Any, keywords: Mapping[str, Any]) -> DataFrame:
    """The matches of a query in a Spark table, batch or stream."""
    options = Options.from_keywords(keywords, sorted(OPTIONS))
    spark_options = {name: value for name, value in options.hints.items() if name in OPTIONS}
    plan = spark_plan(query, arrow_schema(df), options)
    if df.isStreaming:
        return spark_stream.match_stream(df, plan, spark_options)
    return spark_batch.match_batch(df, plan, spark_options)


def spark_plan(query: Any, schema: pa.Schema, options: Options) -> Plan:
    """The plan for events of an Arrow schema, without having seen any."""
    bound = query.bind(Schema.from_arrow(schema, **options.roles()))
    hints = {name: value for name, value in options.hints.items() if name not in OPTIONS}
    plan, _ = make_plan(bound, engine=options.engine, model=options.model, scoring=options.scoring, hints=hints)
    return plan
