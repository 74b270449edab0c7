"""Statements of other systems in Spark's SQL, by sqlglot."""

from __future__ import annotations

from cepheid.errors import CepheidError, QueryError

# sqlglot does not know Flink's dialect; what surrounds a clause there is standard.
AS_WRITTEN = frozenset({"spark", "databricks", "flink"})


def translated(text: str, dialect: str) -> str:
    """A statement in Spark's SQL."""
    if dialect in AS_WRITTEN:
        return text
    try:
        import sqlglot
    except ModuleNotFoundError:
        raise CepheidError(
            f"a statement of {dialect} needs sqlglot", hint="install it: pip install 'cepheid[sql]'"
        ) from None
    read = {"calcite": "trino"}.get(dialect, dialect)
    try:
        return str(sqlglot.transpile(text, read=read, write="spark")[0])
    except ValueError as error:
        if "dialect" in str(error).lower():
            raise CepheidError(f"no dialect '{dialect}'", hint="spark, trino, snowflake, oracle, flink ...") from None
        raise QueryError(f"the statement around MATCH_RECOGNIZE cannot be read: {error}", code="syntax") from None
    except sqlglot.errors.SqlglotError as error:
        raise QueryError(f"the statement around MATCH_RECOGNIZE cannot be read: {error}", code="syntax") from None
