"""Several queries over a Spark table, pass by pass: one result, with a column for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cepheid.errors import CepheidError
from cepheid.language.checked import CheckedQuery
from cepheid.runners.many import QUERY, SHARED
from cepheid.runners.options import BatchOptions, check_alone, spark_options
from cepheid.runners.spark.match import matches_of_readers, united
from cepheid.runners.spark.searches import Above
from cepheid.runners.spark.session import DataFrame
from cepheid.runners.spark.spelling import quoted
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
    readers = next((each for each in passes if each.reads), None)
    above = above_each(passes, readers) if readers is not None and df.isStreaming else {}
    for each in passes:
        if not each.reads:
            own = above.get(next(iter(each.queries)))
            results.append(each.first.match_spark_each(each.queries, df, each.keywords, own))
            parts |= dict.fromkeys(each.queries, results[-1])
    if readers is not None and not df.isStreaming:
        options, spreading = spark_options(readers.keywords, streaming=False)
        assert isinstance(spreading, BatchOptions)
        results += matches_of_readers(parts, checked(readers), options, spreading).values()
    return united(results, names)


def checked(readers: Pass) -> dict[str, CheckedQuery]:
    """The queries of a pass that reads others."""
    return {name: language.query for name, language in readers.queries.items()}


def above_each(passes: Sequence[Pass], readers: Pass) -> dict[str, Above]:
    """The queries that run in the shards of each pass, over its matches; by the name of the pass's first query.

    The matches that one reads must lie in one state.
    """
    options, _ = spark_options(readers.keywords, streaming=True)
    where = {name: next(iter(each.queries)) for each in passes if not each.reads for name in each.queries}
    found: dict[str, dict[str, CheckedQuery]] = {}
    for name, query in checked(readers).items():
        roots = sorted({where[source] for source in query.sources})
        if len(roots) > 1:
            message = f"query '{name}' reads the matches of {' and '.join(query.sources)}, which a stream finds apart"
            hint = "match a batch, or read the result of this call with a second one"
            raise CepheidError(f"{message}: each language keeps a state of its own", hint=hint)
        where[name] = roots[0]
        found.setdefault(roots[0], {})[name] = query
    return {root: Above(root, of_root, options) for root, of_root in found.items()}


def named(name: str, found: DataFrame) -> DataFrame:
    """The result of one query as rows of the common one."""
    from pyspark.sql import functions as F

    ends = [each for each in SHARED if each in found.columns]
    rest = [F.col(quoted(each)) for each in found.columns if each not in ends]
    return found.select(F.lit(name).alias(QUERY), *ends, F.struct(*rest).alias(name))
