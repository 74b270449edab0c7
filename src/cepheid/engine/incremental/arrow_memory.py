"""Where the arrays of an Arrow batch lie in memory, as Arrow tells other languages (its C data interface).

An array is ten numbers: how many values it has, how many are NULL, where they begin, how many buffers and children it
has, the addresses of these, and the function that gives it back.
"""

from __future__ import annotations

import ctypes

import pyarrow as pa

from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.memory import int64_row, uint8_rows

LENGTH, NULLS, OFFSET, BUFFERS, CHILDREN, BUFFERS_AT, CHILDREN_AT, DICTIONARY_AT, RELEASE, OWNER = range(10)
ARRAY_SIZE = 10
VALID, DATA, LETTERS = range(3)  # the buffers: what is not NULL, as bits (0: everything), the values, and their letters


@borrowing
def is_set(address: int, place: int) -> bool:
    """Is a bit set in bytes at an address?"""
    return bool(uint8_rows(address + (place >> 3), 1, 1)[0, 0] >> (place & 7) & 1)


@borrowing
def column_at(batch: int, place: int) -> int:
    """The address of a column of a batch."""
    return int(int64_row(int64_row(batch, ARRAY_SIZE)[CHILDREN_AT], place + 1)[place])


@borrowing
def buffer_at(column: int, which: int) -> int:
    """The address of a buffer of a column."""
    return int(int64_row(int64_row(column, ARRAY_SIZE)[BUFFERS_AT], which + 1)[which])


@borrowing
def offset_of(column: int) -> int:
    """Where the values of a column begin in its buffers."""
    return int(int64_row(column, ARRAY_SIZE)[OFFSET])


@borrowing
def is_there(column: int, place: int) -> bool:
    """Is a value not NULL? Its place is that in the buffers."""
    valid = buffer_at(column, VALID)
    return valid == 0 or is_set(valid, place)


_api = ctypes.PyDLL("", handle=ctypes.pythonapi._handle)
_pointer_of = _api.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_ssize_t, [ctypes.py_object, ctypes.c_char_p]


class Exported:
    """The memory of a batch, which stays where it is for as long as this does.

    Arrow gives it back itself: a `__del__` would swallow a Ctrl-C that comes while it is at work.
    """

    __slots__ = ("_array", "at")

    def __init__(self, batch: pa.RecordBatch) -> None:
        _, self._array = batch.__arrow_c_array__()
        self.at: int = _pointer_of(self._array, b"arrow_array")


def exported(table: pa.Table) -> Exported | None:
    """The memory of a table that is in one piece."""
    batches = table.to_batches()
    return Exported(batches[0]) if len(batches) == 1 else None
