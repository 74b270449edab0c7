"""Queries inside Spark SQL.

    cepheid.sql.register(spark)
    spark.sql("SELECT * FROM match_events(TABLE(SELECT ...) PARTITION BY tag ORDER BY (ts), 'PATTERN SEQ(...) ...')")
    spark.sql("SELECT * FROM match_table(TABLE(readings), 'PATTERN SEQ(...) ...')")

`match_events` finds matches within each partition that the statement makes; `match_table` takes a table or view by its
name and partitions by itself, by the attributes of the query's equivalence tests.
"""

from __future__ import annotations

from typing import Any

__all__ = ["query", "register"]


def query(
    spark: object, statement: str, dialect: str = "spark", *, unsafe_functions: bool = False, **limits: object
) -> Any:
    """The result of a SELECT with any number of MATCH_RECOGNIZE clauses in it, as a Spark table.

        cepheid.sql.query(spark, "SELECT * FROM ticks MATCH_RECOGNIZE (... PATTERN (A B+) DEFINE ...) AS m")

    `dialect` is the system the statement was written for: "trino", "snowflake", "oracle", "flink", ...
    `max_matches=`, `timeout=` and `max_bytes=` bound each clause, in each task of Spark's. In clauses, pure functions
    of Spark's can be called; `unsafe_functions=True` allows all others, such as those of the session.
    """
    from cepheid.runners.sql.statement import query as run

    return run(spark, statement, dialect, unsafe_functions=unsafe_functions, **limits)


def register(spark: Any, *, match_events: str = "match_events", match_table: str = "match_table") -> None:
    """Makes the table functions known to a Spark session, under these names.

    Functions that queries call must have been registered (`cepheid.function`) before.
    """
    from cepheid.runners.spark.workers import prepare_workers
    from cepheid.runners.sql.table_functions import table_functions

    prepare_workers(spark)
    for name, function in zip((match_events, match_table), table_functions(spark), strict=True):
        spark.udtf.register(name, function)
