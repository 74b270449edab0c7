"""Tables in memory: pyarrow, pandas and polars in, the same kind out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from cepheid.engine.events import ordered
from cepheid.engine.find import find
from cepheid.errors import DataError
from cepheid.language.bound import BoundQuery
from cepheid.plan.physical import Plan
from cepheid.runners.results import assemble


@dataclass(frozen=True)
class LocalTable:
    """A table in memory and the way back to the kind it came from."""

    arrow: pa.Table
    back: Callable[[pa.Table], Any]


def as_local(events: Any) -> LocalTable | None:
    """The events as an Arrow table, or None if they are not a table in memory."""
    if isinstance(events, pa.Table):
        return LocalTable(events, lambda table: table)
    if isinstance(events, pa.RecordBatch):
        return LocalTable(pa.Table.from_batches([events]), lambda table: table)
    module = type(events).__module__.partition(".")[0]
    if module == "pandas" and hasattr(events, "columns"):
        return LocalTable(pa.Table.from_pandas(events, preserve_index=False), lambda table: table.to_pandas())
    if module == "polars":
        import polars

        collected = events.collect() if hasattr(events, "collect") else events
        if not hasattr(collected, "to_arrow") or not hasattr(collected, "columns"):
            raise DataError("a polars DataFrame is needed, not a Series")
        return LocalTable(collected.to_arrow(), polars.from_arrow)
    return None


def run_plan(plan: Plan, table: pa.Table, options: Mapping[str, Any] | None = None) -> pa.Table:
    """The whole table through the plan: the end of the table counts as time having passed."""
    events = ordered(table, plan.bound.schema)
    return assemble(plan.bound, events.table, find(plan, events))


def bound_for(query: Any, table: pa.Table, roles: Mapping[str, Any]) -> BoundQuery:
    """The query bound to the columns of a table."""
    from cepheid.language.schema import Schema

    bound: BoundQuery = query.bind(Schema.from_arrow(table.schema, **roles))
    return bound
