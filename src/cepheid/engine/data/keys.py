"""Numbers for keys: small codes for the values of a column, dense numbers for combinations of several.

NULL has a code of its own, NaN counts as NULL (`value_column` sees to it), and 0.0 and -0.0 are one value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.values.plain import microseconds, value_column

NULL_CODE = -1
Codes = npt.NDArray[np.uint64]

_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads the bits of one attribute's code before the next is added
_NULL = np.uint64(0x6E756C6C)


def codes(column: pa.ChunkedArray, null: int = NULL_CODE) -> Int64s:
    """A small whole number for each distinct value; numbers in a narrow range are their own codes.

    >>> codes(pa.chunked_array([[0.0, None, -0.0, 2.5]])).tolist()
    [0, -1, 0, 1]
    """
    column = value_column(column)
    if pa.types.is_integer(column.type) and not column.null_count and len(column):
        values = column.to_numpy()
        low, high = int(values.min()), int(values.max())
        if high - low <= _roomy(len(values)):
            return values - low  # type: ignore[no-any-return]
    if pa.types.is_floating(column.type):
        column = pc.add(column, 0.0)  # -0.0 becomes 0.0
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.string())  # Arrow joins no dictionaries of decimals; all of a column have one scale
    encoded = pc.dictionary_encode(column)
    indices = encoded.combine_chunks().indices if isinstance(encoded, pa.ChunkedArray) else encoded.indices
    found: Int64s = pc.fill_null(indices, null).to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def combined(parts: Sequence[Int64s], rows: int) -> Int64s:
    """A number for each combination of codes, NULL's included; not much larger than the number of rows.

    >>> combined([np.array([0, 1, 0, -1]), np.array([5, 5, 5, -1])], 4).tolist()
    [13, 20, 13, 0]
    """
    key = parts[0] + 1 if parts else np.zeros(rows, np.int64)
    for code in parts[1:]:
        key = key * (int(code.max(initial=NULL_CODE)) + 2) + code + 1
        if key.max(initial=0) > _roomy(rows):
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
    return key


def partition_numbers(
    table: pa.Table, names: Sequence[str], relevant: npt.NDArray[np.bool_]
) -> tuple[Int64s, npt.NDArray[np.bool_]]:
    """A number for the partition of each row, and which rows stay: relevant ones whose key is known."""
    parts = [codes(table.column(name)) for name in names]
    for part in parts:
        relevant = relevant & (part != NULL_CODE)
    return combined(parts, len(relevant)), relevant


def grouped(key: Int64s) -> tuple[Int64s, Int64s]:
    """The order that puts equal keys side by side, and where each key starts."""
    return group_by_code(key, int(key.max(initial=-1)) + 1)


@kernel
def group_by_code(codes: Int64s, number: int) -> tuple[Int64s, Int64s]:
    """A stable counting sort: the order that puts equal codes side by side, and where each code starts."""
    starts = np.zeros(number + 1, np.int64)
    for code in codes:
        starts[code + 1] += 1
    for code in range(number):
        starts[code + 1] += starts[code]
    order = np.empty(len(codes), np.int64)
    free = starts.copy()
    for index in range(len(codes)):
        order[free[codes[index]]] = index
        free[codes[index]] += 1
    return order, starts


def _roomy(rows: int) -> int:
    """How large numbers may be that are used as indices: a few times as many as there are rows."""
    return 4 * rows + 1024


def key_codes(table: pa.Table, attributes: Sequence[str]) -> Codes:
    """A number for each event, equal where all the attributes are. (And rarely elsewhere: then one is read in vain.)

    It depends on the values and the declared types alone, never on what else a table holds: it is compared from step
    to step. NULL has a code of its own, though an event without a key is of no partition.

    >>> codes = key_codes(pa.table({"id": [0.0, 1.0, -0.0, 1.0], "shop": ["a", "a", "a", "b"]}), ["id", "shop"])
    >>> [int(np.flatnonzero(codes == code)[0]) for code in codes]
    [0, 1, 0, 3]
    >>> bool(key_codes(pa.table({"id": [7]}), ["id"])[0] == key_codes(pa.table({"id": [None, 7]}), ["id"])[1])
    True
    """
    import pandas as pd  # half of the time that a small command takes

    codes = np.zeros(table.num_rows, np.uint64)
    for name in attributes:
        column = table.column(name)
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)  # a dictionary may hold NULL, or a value twice
        if pa.types.is_timestamp(column.type) and column.type.unit == "ns":
            column = microseconds(column)  # queries see no more of it
        coded = pc.dictionary_encode(column.combine_chunks())
        # Without NULL among them, values have the same type in every table.
        values = coded.dictionary.to_numpy(zero_copy_only=False)
        if values.dtype.kind == "f":
            values = values + 0.0  # -0.0 equals 0.0
        if values.dtype.kind == "M":
            values = values.astype(np.int64)
        hashed = np.append(pd.util.hash_array(values, categorize=False), _NULL)
        codes = codes * _MIX + hashed[coded.indices.fill_null(len(values)).to_numpy()]
    return codes
