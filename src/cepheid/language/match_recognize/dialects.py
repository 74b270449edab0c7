"""The systems whose clauses and statements are read."""

from __future__ import annotations

from cepheid.errors import CepheidError, closest

DIALECTS = (
    *("spark", "databricks", "flink", "trino", "presto", "athena", "snowflake", "oracle", "bigquery", "calcite"),
    *("postgres", "redshift", "mysql", "hive", "tsql", "sqlite", "duckdb", "clickhouse", "teradata", "exasol"),
    *("starrocks", "doris", "druid", "drill", "dremio", "materialize", "risingwave", "fabric", "spark2"),
)
# Where a backslash in a string of the statement takes the next character as it is.
ESCAPING = frozenset(
    {"spark", "databricks", "spark2", "hive", "snowflake", "bigquery", "mysql", "clickhouse", "starrocks", "doris"}
)


def known_dialect(given: object) -> str:
    """The name of a dialect, whatever its case.

    >>> known_dialect("Trino")
    'trino'
    """
    name = given.lower() if isinstance(given, str) else ""
    if name in DIALECTS:
        return name
    guess = closest(name, DIALECTS)
    listed = ", ".join(DIALECTS)
    hint = f"did you mean {guess}? There are {listed}" if guess else f"there are {listed}"
    raise CepheidError(f"no dialect {given!r}", hint=hint)
