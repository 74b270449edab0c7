"""Several queries in more than one language over a Spark table: one result, with a column for each query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cepheid.errors import CepheidError
from cepheid.runners.composition import in_order, sources_of
from cepheid.runners.many import QUERY, SHARED
from cepheid.runners.options import BatchOptions, spark_options
from cepheid.runners.spark.match import match_spark, matches_of_readers, united
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.session import DataFrame
from cepheid.runners.together import OtherQuery


def match_spark_together(
    df: DataFrame,
    queries: Mapping[str, Any],
    others: Mapping[str, tuple[OtherQuery, Mapping[str, Any]]],
    keywords: Mapping[str, Any],
) -> DataFrame:
    """The matches of queries with names; `others` are those in other languages than query text, with their options."""
    readers: dict[str, Any] = {}  # those that read a query in another language, or one that does
    for name in in_order(queries):
        if {*sources_of(queries[name])} & {*others, *readers}:
            readers[name] = queries[name]
    if readers and df.isStreaming:
        told = f"query '{next(iter(readers))}' reads the matches of a query in another language, which a stream cannot"
        raise CepheidError(told, hint="call cepheid.match once more, on the result of the first call")
    text = {name: query for name, query in queries.items() if name not in others and name not in readers}
    parts = {name: _named(name, query.timed().match(df, **own)) for name, (query, own) in others.items()}
    if text:
        found = match_spark(df, text, keywords)
        parts |= dict.fromkeys(text, found)
    if readers:
        options, spreading = spark_options(keywords, df.isStreaming)
        assert isinstance(spreading, BatchOptions)
        parts |= matches_of_readers(parts, readers, options, spreading)
    every = {id(part): part for part in parts.values()}
    return united(every.values(), queries)


def _named(name: str, found: DataFrame) -> DataFrame:
    """The result of one query as rows of the common one."""
    from pyspark.sql import functions as F

    ends = [each for each in SHARED if each in found.columns]
    rest = [F.col(quoted(each)) for each in found.columns if each not in ends]
    return found.select(F.lit(name).alias(QUERY), *ends, F.struct(*rest).alias(name))
