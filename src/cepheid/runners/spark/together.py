"""Several queries over a Spark table, pass by pass: one result, with a column for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cepheid.errors import CepheidError
from cepheid.runners.many import QUERY, SHARED
from cepheid.runners.options import BatchOptions, check_alone, spark_options
from cepheid.runners.spark.match import matches_of_readers, united
from cepheid.runners.spark.pushdown import quoted
from cepheid.runners.spark.session import DataFrame
from cepheid.runners.together import Pass


def match_spark_together(
    df: DataFrame, passes: Sequence[Pass], names: Sequence[str], keywords: Mapping[str, Any]
) -> DataFrame:
    """The matches of queries with names."""
    if len(passes) == 1:
        found: DataFrame = passes[0].first.match_spark_each(passes[0].queries, df, keywords)
        return found
    check_alone(keywords.get("output", "rows"), dict.fromkeys(names))
    parts: dict[str, DataFrame] = {}  # by query; those of one pass share a table
    results: list[DataFrame] = []
    for each in passes:
        if not each.reads:
            results.append(each.first.match_spark_each(each.queries, df, each.keywords))
            parts |= dict.fromkeys(each.queries, results[-1])
        elif df.isStreaming:
            told = f"query '{next(iter(each.queries))}' reads the matches of a query in another language, "
            hint = "call cepheid.match once more, on the result of the first call"
            raise CepheidError(f"{told}which a stream cannot", hint=hint)
        else:
            options, spreading = spark_options(each.keywords, df.isStreaming)
            assert isinstance(spreading, BatchOptions)
            readers = {name: language.query for name, language in each.queries.items()}
            results += matches_of_readers(parts, readers, options, spreading).values()
    return united(results, names)


def named(name: str, found: DataFrame) -> DataFrame:
    """The result of one query as rows of the common one."""
    from pyspark.sql import functions as F

    ends = [each for each in SHARED if each in found.columns]
    rest = [F.col(quoted(each)) for each in found.columns if each not in ends]
    return found.select(F.lit(name).alias(QUERY), *ends, F.struct(*rest).alias(name))
