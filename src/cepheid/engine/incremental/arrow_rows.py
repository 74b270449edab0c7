"""Which rows of an Arrow table a live query wants, read from Arrow's own memory: times and names of types.

Types are looked up by a hash of their bytes, and compared to the letter. The numbers of types hold for as long as the
query does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s, Uint8Rows
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import int32_row, int64_row, uint8_rows

# The numbers in `head`: how many slots there are for hashes, less one; their addresses; the bytes of all names; where
# rows, numbers of types and times are written to; are rows of other types wanted?
SLOTS, HASHES_AT, CODES_AT, STARTS_AT, NAMES_AT, LETTERS, ROWS_AT, TYPES_AT, TIMES_AT, ROOM, EVERY = range(11)
# What a call says besides the number of rows: the first time, the last one, and do times rise, always or at times?
FIRST, LAST, RISES, SOME_RISE = range(11, 15)
HEAD_SIZE = 15
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
            names = uint8_rows(head[NAMES_AT], 1, head[LETTERS])
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
def wanted_rows(head: Int64s, times_at: int, offsets_at: int, letters_at: int, first: int, number: int) -> int:
    """Finds the rows of types that are wanted, and how time goes."""
    times, offsets = int64_row(times_at, first + number), int32_row(offsets_at, first + number + 1)
    letters = uint8_rows(letters_at, 1, offsets[first + number])
    rows, codes = int64_row(head[ROWS_AT], head[ROOM]), int64_row(head[TYPES_AT], head[ROOM])
    when = int64_row(head[TIMES_AT], head[ROOM])
    head[FIRST], head[LAST], head[RISES], head[SOME_RISE] = times[first], times[first + number - 1], 1, 1
    found, before = 0, times[first]
    for row in range(number):
        time = times[first + row]
        if row > 0 and time <= before:
            head[RISES] = 0
            if time < before:
                head[SOME_RISE] = 0
        before = time
        code = type_number(head, letters, offsets[first + row], offsets[first + row + 1])
        if code >= 0 or head[EVERY] == 1:
            rows[found], codes[found], when[found] = row, code, time
            found += 1
    return found


wanted = Entry(wanted_rows)


class TypeNumbers:
    """Numbers the types that queries mention, and finds their rows."""

    def __init__(self, names: Sequence[str], every: bool) -> None:
        self.head = np.zeros(HEAD_SIZE, np.int64)
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
        self.head[SLOTS], self.head[EVERY], self.head[LETTERS] = slots - 1, int(every), len(text)
        array: Any
        for field, array in zip((HASHES_AT, CODES_AT, STARTS_AT, NAMES_AT), self._kept, strict=True):
            self.head[field] = array.ctypes.data
        self._room = np.zeros((3, 0), np.int64)
        self._call = wanted.direct()

    def rows(self, times: pa.Array, kinds: pa.Array) -> int:
        """How many rows of a batch are wanted."""
        number, head = len(kinds), self.head
        if number > self._room.shape[1]:
            room = np.zeros((3, 2 * number), np.int64)
            places = np.array([*(room[row].ctypes.data for row in range(3)), 2 * number], np.int64)
            self._room = room  # nothing is called from here on, so that Ctrl-C cannot come in between
            head[ROWS_AT : ROOM + 1] = places
        _, offsets, letters = kinds.buffers()
        moved = times.offset - kinds.offset  # both are told by the first row of the types
        return self._call(  # type: ignore[no-any-return]
            head,
            times.buffers()[1].address + 8 * moved,
            offsets.address,
            letters.address if letters is not None else offsets.address,
            kinds.offset,
            number,
        )

    def found(self, number: int) -> tuple[Int64s, Int64s, Int64s]:
        """The first of the rows that were found last, the numbers of their types, and their times, until the next."""
        rows, codes, when = self._room
        return rows[:number], codes[:number], when[:number]
