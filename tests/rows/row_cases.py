"""What the tests of row patterns share: a clause run by the engine and by the book."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from cepheid.engine.reference.rows import match_rows
from cepheid.engine.search.row_pattern.run import match_table
from cepheid.engine.search.row_pattern.typed import typed
from cepheid.errors import DataError
from cepheid.language.match_recognize.bind import Columns, bind_clause
from cepheid.language.match_recognize.bound import BoundClause
from cepheid.language.match_recognize.parse import parse_clause


def bound(clause: str, table: pa.Table, dialect: str = "trino") -> BoundClause:
    times = {f.name for f in table.schema if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type)}
    text = clause if clause.lstrip().upper().startswith("MATCH_RECOGNIZE") else f"MATCH_RECOGNIZE ({clause})"
    clause = bind_clause(parse_clause(text, dialect), Columns(tuple(table.column_names), frozenset(times)))
    return typed(clause, table.schema)


def by_the_book(clause: str, table: pa.Table, dialect: str = "trino") -> list[tuple[Any, ...]]:
    return [tuple(row) for row in match_rows(bound(clause, table, dialect), table.to_pylist())]


def by_the_engine(clause: str, table: pa.Table, dialect: str = "trino") -> list[tuple[Any, ...]]:
    found = match_table(bound(clause, table, dialect), table)
    return list(zip(*(column.to_pylist() for column in found.columns), strict=True)) if found.num_columns else []


def outcome(run: Any, clause: str, table: pa.Table) -> Any:
    """What a run finds, unless the clause skips to a row that is not there."""
    try:
        return run(clause, table)
    except DataError:
        return "AFTER MATCH SKIP fails"


def rows_of(table: pa.Table) -> list[str]:
    """The rows of a table as text, which can be sorted."""
    return [repr(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]


def matched(clause: str, table: pa.Table, dialect: str = "trino") -> list[tuple[Any, ...]]:
    """The result, on which engine and book agree."""
    expected = by_the_book(clause, table, dialect)
    assert by_the_engine(clause, table, dialect) == expected
    return expected


def values(*numbers: Any) -> pa.Table:
    """A table of rows 1, 2, ... with one value each."""
    return pa.table({"id": list(range(1, len(numbers) + 1)), "value": list(numbers)})
