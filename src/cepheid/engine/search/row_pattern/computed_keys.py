"""Keys of PARTITION BY and ORDER BY that are computed from each row, as columns of the table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from cepheid.engine.search.row_pattern.columns import read
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.operators import whole
from cepheid.language import syntax as s
from cepheid.language.match_recognize.bound import Column, ComputedKey


def with_keys(table: pa.Table, keys: Sequence[ComputedKey], text: str) -> pa.Table:
    """The table with these keys as columns; those that it has already stay as they are."""
    for key in keys:
        if key.name not in table.column_names:
            table = table.append_column(key.name, _values(key.value, table, text))
    return table


def _values(expression: s.Expression, table: pa.Table, text: str) -> pa.Array:
    def resolve(node: s.Expression) -> Any:
        assert isinstance(node, Column)
        return read(table.column(node.name))

    found = whole(value(expression, resolve, text), table.num_rows)
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found
