"""Which runner a table needs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cepheid.budget import unbounded
from cepheid.errors import DataError
from cepheid.runners.composition import check_sources
from cepheid.runners.local import explain_query, explain_table, prepare, run_table, run_tables
from cepheid.runners.options import Options, check_alone
from cepheid.runners.tables import as_local, no_table
from cepheid.runners.ties import ties_of, warn_of_ties, with_ties
from cepheid.runners.totals import count_matches


def run(events: Any, query: Any, **keywords: Any) -> Any:
    """The matches of a query, or of several with names, in any kind of table."""
    if hasattr(query, "syntax"):
        check_sources(query)
    if is_spark(events):
        from cepheid.runners.spark.match import match_spark

        with unbounded():
            return match_spark(events, query, keywords)
    local = as_local(events)
    if local is None:
        raise no_table(events)
    if may_change(query):
        raise DataError(
            "queries that are added and removed while running need a stream", hint="pass a text, or {name: text}"
        )
    options = Options.from_keywords(keywords)
    if isinstance(query, Mapping):
        check_alone(options.output, query)
        return local.back(run_tables(query, local.arrow, options))
    if options.output == "count":
        prepared = prepare(query, local.arrow, options)
        plan, counted = prepared.plan, prepared.events
        number, ties = with_ties(plan, counted, lambda: count_matches(plan, counted))
        warn_of_ties([ties])
        return number
    if options.output == "compressed":
        from cepheid.runners.compressed import run_compressed

        prepared = prepare(query, local.arrow, options)
        warn_of_ties([ties_of(prepared.plan, prepared.events)])
        return run_compressed(prepared)
    return local.back(run_table(query, local.arrow, options))


def explain(query: Any, events: Any = None, *, analyze: bool = False, **keywords: Any) -> str:
    """What would be done for a query and, with `analyze`, how many events each step saw."""
    if events is None:
        return explain_query(query, Options.from_keywords(keywords))
    local = as_local(events)
    if local is None and is_spark(events):
        from cepheid.runners.spark.match import explain_spark

        if analyze:
            raise DataError(
                "analyze=True counts what a run saw, and this would start one on Spark", hint="leave it out"
            )
        with unbounded():
            return explain_spark(events, query, keywords)
    if local is None:
        raise no_table(events)
    return explain_table(query, local.arrow, Options.from_keywords(keywords), analyze)


def is_spark(events: Any) -> bool:
    """Is it a PySpark DataFrame, classic or through Connect? Asks without importing PySpark."""
    return type(events).__module__.startswith("pyspark.sql") and hasattr(events, "isStreaming")


def may_change(query: Any) -> bool:
    """Is it a folder or a table of queries that come and go?"""
    return isinstance(query, Path) or is_spark(query)
