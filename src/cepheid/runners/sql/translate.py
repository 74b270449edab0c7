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
        raise _unread(text, error) from None
    except RecursionError:
        hint = "name parts of it in a query before"
        raise QueryError("the statement is nested too deeply", hint=hint, code="too-deep") from None
    except sqlglot.errors.SqlglotError as error:
        raise _unread(text, error) from None


def _unread(text: str, error: Exception) -> QueryError:
    """What sqlglot says of a statement, pointing at the word it stopped at if it names one."""
    told = getattr(error, "errors", None) or [{}]
    start = max((told[0].get("line") or 1) - 1, 0)
    word = told[0].get("highlight") or ""
    begin = sum(len(line) + 1 for line in text.split("\n")[:start])
    at = text.find(word, max(begin + (told[0].get("col") or 1) - len(word), 0)) if word else -1
    said = told[0].get("description") or str(error).splitlines()[0]
    message = f"the statement around MATCH_RECOGNIZE cannot be read: {said}"
    if at < 0:
        return QueryError(message, code="syntax")
    return QueryError(message, text=text, start=at, end=at + len(word), code="syntax")
