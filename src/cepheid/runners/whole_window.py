"""`WITHIN ALL`: the window of a table that has an end is longer than the table (docs/semantics.md, "Windows")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.runners.options import Options

WHOLE = "ALL"


def whole_window(query: Any, table: pa.Table, options: Options) -> Mapping[str, object]:
    """The length of a window that holds the whole table, as a parameter, if the query asks for one."""
    window: s.Window | None = query.syntax.within
    name = window.length.name if window is not None and isinstance(window.length, s.Name) else ""
    if name.upper() != WHOLE or name in query.parameters:
        return {}
    if query.syntax.threshold is not None or query.syntax.forecast is not None or options.model is not None:
        message = "missing events need a window with a length, not WITHIN ALL"
        raise QueryError(message, hint="give the window a length", code="threshold-without-within")
    columns = [name for name in (options.lower, options.upper) if name is not None] or [options.time]
    if not set(columns) <= set(table.column_names):
        return {name: 1}  # binding names the column that is not there
    ends = [pc.min_max(table.column(each)).as_py() for each in columns]
    values = [value for end in ends for value in end.values() if value is not None]
    stamped = pa.types.is_temporal(table.schema.field(columns[0]).type)
    if not values:
        return {name: "1 microsecond" if stamped else 1}
    if not stamped:
        return {name: max(values) - min(values) + 1}
    kind = pa.timestamp("us")
    steps = [pa.scalar(value).cast(kind, safe=False).cast(pa.int64()).as_py() for value in (max(values), min(values))]
    return {name: f"{steps[0] - steps[1] + 1} microseconds"}
