"""Which rows of an Arrow table a live query wants, read from Arrow's own memory: times and names of types.

Types are looked up by a hash of their bytes, and compared to the letter. The numbers of types hold for as long as the
query does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepheid.engine.data.arrays import Int64s, Uint8Rows
from cepheid.engine.incremental.arrow_memory import (
    ARRAY_SIZE,
    DATA,
    LENGTH,
    LETTERS,
    Exported,
    buffer_at,
    column_at,
    is_there,
    offset_of,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import int32_row, int64_row, uint8_rows

# The numbers in `head`: how many slots there are for hashes, less one; their addresses; the bytes of all names; where
# rows, numbers of types and times are written to; are rows of other types wanted? The columns of times and types.
SLOTS, HASHES_AT, CODES_AT, STARTS_AT, NAMES_AT, NAMES_SIZE, ROWS_AT, TYPES_AT, TIMES_AT, ROOM, EVERY = range(11)
TIME_COLUMN, TYPE_COLUMN = 11, 12
# What a call says besides the number of rows: the first time, the last one, do times rise, always or at times, and the
# last row that is wanted, with its time.
FIRST, LAST, RISES, SOME_RISE, LAST_ROW, LAST_TIME = range(13, 19)
HEAD_SIZE = 19
OFFSET_BASIS, PRIME = 0x4BF29CE484222325, 1099511628211  # FNV, within 63 bits
LOW = (1 << 62) - 1


@borrowing
def hashed(letters: Uint8Rows, begin: int, end: int) -> int:
    """A number for some bytes."""
    found = np.int64(OFFSET_BASIS & LOW)
    for place in range(begin, end):
        found = ((found ^ np.int64(letters[0, place])) & 0xFFFFFFFFFF) * 4099 + (found >> 40)
    return int(found & LOW)


@borrowing
def type_number(head: Int64s, letters: Uint8Rows, begin: int, end: int) -> int:
    """The number of a type; -1: no query mentions it."""
    hashes = int64_row(head[HASHES_AT], head[SLOTS] + 1)
    codes = int64_row(head[CODES_AT], head[SLOTS] + 1)
    sought = hashed(letters, begin, end)
    slot = sought & head[SLOTS]
    while codes[slot] >= 0:
        if hashes[slot] == sought:
            code = codes[slot]
            starts = int64_row(head[STARTS_AT], code + 2)
            names = uint8_rows(head[NAMES_AT], 1, head[NAMES_SIZE])
            same = starts[code + 1] - starts[code] == end - begin
            for place in range(end - begin):
                if not same or names[0, starts[code] + place] != letters[0, begin + place]:
                    same = False
                    break
            if same:
                return int(code)
        slot = (slot + 1) & head[SLOTS]
    return -1


@kernel
def wanted_rows(head: Int64s, batch: int) -> int:
    """Finds the rows of types that are wanted, and how time goes; -1: a time or a type is NULL."""
    clock, kinds = column_at(batch, head[TIME_COLUMN]), column_at(batch, head[TYPE_COLUMN])
    number, begin, first = int64_row(batch, ARRAY_SIZE)[LENGTH], offset_of(clock), offset_of(kinds)
    times = int64_row(buffer_at(clock, DATA) + 8 * begin, number)
    offsets = int32_row(buffer_at(kinds, DATA) + 4 * first, number + 1)
    letters = uint8_rows(buffer_at(kinds, LETTERS), 1, offsets[number])
    rows, codes = int64_row(head[ROWS_AT], head[ROOM]), int64_row(head[TYPES_AT], head[ROOM])
    when = int64_row(head[TIMES_AT], head[ROOM])
    head[FIRST], head[LAST], head[RISES], head[SOME_RISE] = times[0], times[number - 1], 1, 1
    found, before = 0, times[0]
    for row in range(number):
        if not is_there(clock, begin + row) or not is_there(kinds, first + row):
            return -1
        time = times[row]
        if row > 0 and time <= before:
            head[RISES] = 0
            if time < before:
                head[SOME_RISE] = 0
        before = time
        code = type_number(head, letters, offsets[row], offsets[row + 1])
        if code >= 0 or head[EVERY] == 1:
            rows[found], codes[found], when[found] = row, code, time
            head[LAST_ROW], head[LAST_TIME] = row, time
            found += 1
    return found


wanted = Entry(wanted_rows)


class TypeNumbers:
    """Numbers the types that queries mention, and finds their rows."""

    def __init__(self, names: Sequence[str], every: bool, time: int, kind: int) -> None:
        self._head = np.zeros(HEAD_SIZE, np.int64)
        self.head, self.at = self._head.data, int(self._head.ctypes.data)
        self.head[TIME_COLUMN], self.head[TYPE_COLUMN] = time, kind
        letters = [name.encode() for name in names]
        starts = np.cumsum([0, *map(len, letters)])
        text = np.frombuffer(b"".join(letters) + b"\0", np.uint8).copy()
        slots = 8
        while slots < 4 * len(names):
            slots *= 2
        hashes, codes = np.zeros(slots, np.int64), np.full(slots, -1, np.int64)
        python = getattr(hashed, "py_func", hashed)
        for code in range(len(names)):
            number = int(python(text.reshape(1, -1), int(starts[code]), int(starts[code + 1])))
            slot = number & (slots - 1)
            while codes[slot] >= 0:
                slot = (slot + 1) & (slots - 1)
            hashes[slot], codes[slot] = number, code
        self._kept: list[Any] = [hashes, codes, starts.astype(np.int64), text]
        self.head[SLOTS], self.head[EVERY], self.head[NAMES_SIZE] = slots - 1, int(every), len(text)
        array: Any
        for field, array in zip((HASHES_AT, CODES_AT, STARTS_AT, NAMES_AT), self._kept, strict=True):
            self.head[field] = array.ctypes.data
        self._room = np.zeros((3, 0), np.int64)
        self._call = wanted.direct()

    def rows(self, batch: Exported, number: int) -> int:
        """How many of so many rows of a batch are wanted; -1: a time or a type is NULL."""
        head = self.head
        if number > self._room.shape[1]:
            room = np.zeros((3, 2 * number), np.int64)
            places = np.array([*(room[row].ctypes.data for row in range(3)), 2 * number], np.int64).data
            self._room = room  # nothing is called from here on, so that Ctrl-C cannot come in between
            head[ROWS_AT : ROOM + 1] = places
        return self._call(self._head, batch.at)  # type: ignore[no-any-return]

    def found(self, number: int) -> Int64s:
        """The first of the rows that were found last."""
        return self._room[0, :number].copy()
