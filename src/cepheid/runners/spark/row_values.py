"""Values that Spark computes for a clause: the column of a small table as Python values that keep their meaning."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from cepheid.errors import QueryError

MOST_VALUES = 100_000  # that a query after IN may give


def values_of(df: Any) -> list[object]:
    """The values of a table's only column. Instants come as times in UTC, whatever the zones of machine and session."""
    if len(df.columns) != 1:
        raise QueryError(f"a query inside MATCH_RECOGNIZE gives {len(df.columns)} columns", code="subquery")
    is_instant = df.schema[0].dataType.typeName() == "timestamp"
    values = [row[0] for row in df.collect()]
    return [_instant(value) for value in values] if is_instant else values


def _instant(value: datetime | None) -> datetime | None:
    """PySpark gives instants in the zone of this machine, without saying so."""
    return None if value is None else value.astimezone(UTC)
