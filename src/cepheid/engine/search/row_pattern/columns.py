"""Columns of a table as the expressions of a clause see them, with Arrow's own types."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.values.operators import Column, truth, whole, without_nan
from cepheid.errors import QueryError


def plain(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column in one piece, no dictionary, one type of strings."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # more than two billion characters
        raise QueryError("a string column is too large", hint="cut the table", code="too-large")
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        column = column.cast(pa.string())
    return column


def read(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """A table's column as expressions see it: what is not a number is NULL."""
    column = plain(column)
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return without_nan(column)
    return column


def flags(values: Column, length: int) -> npt.NDArray[np.uint8]:
    """1 where a condition is true: neither false nor unknown."""
    filled = pc.fill_null(whole(truth(values), length), False)
    result: npt.NDArray[np.uint8] = filled.to_numpy(zero_copy_only=False).astype(np.uint8)
    return result
