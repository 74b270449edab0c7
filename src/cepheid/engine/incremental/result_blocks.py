"""Small results as slices of a larger table, whose rows a kernel fills as matches come.

Arrow takes a quarter of a microsecond for every array that it takes over, and a row of a result has dozens. So a block
of rows is made at once, empty, and a result is the next rows of it. A row is written once, before anybody sees it, so
results share memory, but nothing in it changes. The block stays in memory for as long as one of them does, so it is
not larger than MOST_WORDS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.incremental import linking
from cepheid.engine.incremental.arrow_memory import (
    ARRAY_SIZE,
    BUFFERS,
    BUFFERS_AT,
    CHILDREN,
    CHILDREN_AT,
    DATA,
    LENGTH,
    LETTERS,
    NULLS,
    OFFSET,
    RELEASE,
    VALID,
    buffer_at,
    column_at,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.result_rows import (
    BATCH_AT,
    BITS,
    CLOCK,
    COLUMNS,
    COLUMNS_AT,
    GROUPS_AT,
    HEAD_SIZE,
    OF_PART,
    PARTS,
    PARTS_AT,
    PLACES,
    RELEASE_OF_PART,
    ROOM_AT,
    SHORT_TEXTS,
    ResultRows,
    fill_column,
    fill_edges,
    fill_events,
    fill_lists,
    letters_of,
    made_batch,
    ordered,
    part_of,
    row_of,
    set_bit,
    width_of,
)
from cepheid.engine.incremental.result_rows import load as load_rows
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int32_row, int64_row, int64_rows

# The numbers in `block`: its memory; how many rows, events of each group and letters of each column there is room for;
# how many are used; and what the last call would have needed.
BLOCK_AT, ROWS, EVENTS, TEXTS, ROWS_USED, EVENTS_USED, TEXTS_USED, SIZED = range(8)
ROWS_NEEDED, EVENTS_NEEDED, TEXTS_NEEDED = 8, 9, 10
BLOCK_SIZE = 11
ELSEWHERE, NO_ROOM = -1, -2  # what a call returns, if not the number of rows
MOST_ROWS, MOST_EVENTS, MOST_TEXTS = 64, 256, 2048  # of a result that is a part of a block
UNIT_ROWS, UNIT_EVENTS, UNIT_TEXTS = 4, 16, 64  # the size of a block is a number of units of so much
RESULTS = 16  # of the size of the last one, that a block has room for, unless it becomes too large
LEAST_RESULTS = 2  # for which a block is made at all
MOST_WORDS = 1 << 14  # in a block
GUARDS = 2  # rows behind those of a block, see `Layout`


@borrowing
def place_events(head: Int64s, events: Int64s, found: Int64Rows) -> int:
    """Finds out where events lie, and the most letters of a column of them; ELSEWHERE: not in Arrow's memory."""
    parts, columns = int64_rows(head[PARTS_AT], head[PARTS], OF_PART), int64_rows(head[COLUMNS_AT], head[COLUMNS], 2)
    for event in range(len(events)):
        part = part_of(head, events[event])
        batch = parts[part, BATCH_AT]
        if batch == 0:
            return ELSEWHERE
        found[event, 0], found[event, 1] = batch, row_of(head, part, events[event])
    most = 0
    for column in range(head[COLUMNS]):
        letters = 0
        if columns[column, 1] < 0:
            for event in range(len(events)):
                own = column_at(found[event, 0], columns[column, 0])
                letters += letters_of(own, columns[column, 1], found[event, 1])
        most = max(most, letters)
    return most


@borrowing
def use(block: Int64s, rows: int, events: int, letters: int) -> bool:
    """Notes what a result needs of a block; is there as much?"""
    block[ROWS_NEEDED], block[EVENTS_NEEDED], block[TEXTS_NEEDED] = rows, events, letters
    if block[ROWS_USED] + rows > block[ROWS] or block[EVENTS_USED] + events > block[EVENTS]:
        return False
    return bool(block[TEXTS_USED] + letters <= block[TEXTS])


@borrowing
def set_bits(array: int, first: int, number: int) -> None:
    """Says that some values of an array are not NULL."""
    for row in range(first, first + number):
        set_bit(buffer_at(array, VALID), row, True)


@kernel
def written_rows(head: Int64s, block: Int64s, search_at: int, chances: Float64s) -> int:
    """Writes the matches that a search has found behind the rows of a block, and says how many; or why it cannot."""
    search = int64_row(search_at, linking.HEAD_SIZE)
    matches, events = search[linking.MATCHES], int64_row(search[linking.OUT_AT], search[linking.MATCHED])
    sizes = int64_row(search[linking.SIZES_AT], matches * head[PLACES] * block[SIZED])
    if matches > MOST_ROWS or len(events) > MOST_EVENTS:
        return ELSEWHERE
    found, order = np.empty((len(events), 2), np.int64), np.empty(len(events) + matches, np.int64)
    letters = place_events(head, events, found)
    if letters < 0 or letters > MOST_TEXTS:
        return ELSEWHERE
    if not use(block, matches, len(events), letters):
        return NO_ROOM
    columns, groups = int64_rows(head[COLUMNS_AT], head[COLUMNS], 2), int64_row(head[GROUPS_AT], head[PLACES])
    batch, row, edges = block[BLOCK_AT], block[ROWS_USED], 2 if head[CLOCK] >= 0 else 0
    for edge in range(edges):
        array = column_at(batch, edge)
        fill_edges(head, int64_row(buffer_at(array, DATA) + 8 * row, matches), found, sizes, matches, edge == 1)
        set_bits(array, row, matches)
    for place in range(head[PLACES]):
        number, array, first = ordered(head, sizes, place, matches, order), column_at(batch, edges + place), row
        if groups[place] == 1:
            first = np.int64(int32_row(buffer_at(array, DATA), row + 1)[row])
            fill_lists(head, array, sizes, place, matches, row)
            array = column_at(array, 0)
        fill_events(buffer_at(array, VALID), order, number, first)
        for column in range(head[COLUMNS]):
            own = column_at(array, column)
            fill_column(own, found, order, number, columns[column, 0], columns[column, 1], first)
    if len(chances) > 0:
        array = column_at(batch, edges + head[PLACES])
        set_bits(array, row, matches)
        values = float64_rows(buffer_at(array, DATA) + 8 * row, 1, matches)
        for match in range(matches):
            values[0, match] = chances[match]
    block[ROWS_USED] += matches
    block[EVENTS_USED] += len(events)
    block[TEXTS_USED] += letters
    search[linking.MATCHES] = search[linking.MATCHED] = 0
    return int(matches)


write = Entry(written_rows)


def load() -> None:
    """Loads or compiles the kernels now: what Ctrl-C meets later should not be numba."""
    write.direct()
    load_rows()


_NO_CHANCES = np.zeros(0, np.float64)


class Layout:
    """Where the arrays of an empty batch lie in one piece of memory, as numbers from its beginning on.

    The columns have room for `rows`, lists for `events` of them, and texts for `letters`. Behind these stand two rows
    that nobody gets: a value that is there, and one that is NULL. So Arrow never takes it for granted that all values
    of an array are there, or none, and looks at the rows of a slice.
    """

    def __init__(self, schema: pa.Schema, rows: int, events: int, letters: int) -> None:
        self.room = rows, events, letters
        self._events, self._letters = events + GUARDS, letters
        self._words: list[int] = [0] * (ARRAY_SIZE + 1 + (ARRAY_SIZE + 1) * len(schema))
        self._moved: list[int] = []  # which of the words are addresses
        self._ends: list[tuple[int, int, int, int]] = []  # where texts and lists end, how many, how wide, and the last
        self._describe(0, rows + GUARDS, ARRAY_SIZE, 1, len(schema))
        self._words[NULLS] = 0
        first = ARRAY_SIZE + 1 + len(schema)
        for place, field in enumerate(schema):
            self._point(ARRAY_SIZE + 1 + place, first + ARRAY_SIZE * place)
            self._array(first + ARRAY_SIZE * place, field.type, rows + GUARDS)
        self._template, self._addresses = np.array(self._words, np.int64), np.array(self._moved, np.int64)
        # Rows to come hold all that is left, which is nothing yet: so what is there is valid at any time.
        self.words = len(self._template)
        for word, length, width, last in self._ends:
            self._template[word:].view(np.int32 if width == SHORT_TEXTS else np.int64)[1 : length + 1] = last

    def _new(self, words: int) -> int:
        self._words += [0] * words
        return len(self._words) - words

    def _point(self, word: int, target: int) -> None:
        self._words[word] = 8 * target
        self._moved.append(word)

    def _describe(self, at: int, length: int, buffers_at: int, buffers: int, children: int) -> None:
        words = {LENGTH: length, NULLS: -1, OFFSET: 0, BUFFERS: buffers, CHILDREN: children, RELEASE: RELEASE_OF_PART}
        for field, word in words.items():
            self._words[at + field] = word
        self._point(at + BUFFERS_AT, buffers_at)
        self._point(at + CHILDREN_AT, buffers_at + buffers)

    def _array(self, at: int, kind: Any, length: int) -> None:
        """An array at a place; nobody knows yet how many of its values are NULL."""
        is_struct, is_list = pa.types.is_struct(kind), pa.types.is_list(kind)
        width = None if is_struct else SHORT_TEXTS if is_list else width_of(kind)  # lists end where texts do
        children = list(kind) if is_struct else [kind.value_field] if is_list else []
        buffers = 1 if width is None else 2 if width >= 0 or is_list else 3
        first = self._new(buffers + len(children))
        self._describe(at, length, first, buffers, len(children))
        valid = self._new((length + 63) // 64)
        self._point(first + VALID, valid)
        there = length - GUARDS
        self._words[valid + there // 64] = int(np.uint64(1 << there % 64).view(np.int64))
        if width is not None:
            size = -width * (length + 1) if width < 0 else width * length
            data = self._new(((length if width == BITS else 8 * size) + 63) // 64)
            self._point(first + DATA, data)
            if width < 0:
                self._ends.append((data, length, width, self._events - GUARDS if is_list else self._letters))
        if buffers == 3:
            self._point(first + LETTERS, self._new((self._letters + 7) // 8))
        for place, child in enumerate(children):
            own = self._new(ARRAY_SIZE)
            self._point(first + buffers + place, own)
            self._array(own, child.type, length if is_struct else self._events)

    def made(self, schema: pa.Schema) -> tuple[pa.Table, int]:
        """A table of this layout, and where it lies in memory."""
        head, template = np.zeros(HEAD_SIZE, np.int64), self._template

        def fill() -> int:
            room = int64_row(head[ROOM_AT], len(template))
            room[:RELEASE], room[ARRAY_SIZE:] = template[:RELEASE], template[ARRAY_SIZE:]
            room[self._addresses] += head[ROOM_AT]
            return 1

        batch = made_batch(head, len(template), schema, fill)
        return pa.Table.from_batches([batch], schema), int(head[ROOM_AT])


class BlockRows:
    """Makes small results of one query, whose `rows` are those of `ResultRows`."""

    def __init__(self, rows: ResultRows, sized: bool) -> None:
        self._rows = rows
        self._block = np.zeros(BLOCK_SIZE, np.int64)
        self._numbers = self._block.data  # which Python reads in half the time
        self._numbers[SIZED] = int(sized)
        self._table: pa.Table | None = None
        self._layouts: dict[int, Layout | None] = {}  # by the number of units
        self._write = write.direct()

    def table(self, parts: tuple[int, int], search_at: int, chances: Float64s = _NO_CHANCES) -> pa.Table | None:
        """What a search has found, as a table; None: it is more than a block holds, or lies elsewhere.

        `parts` are the number and the address of the parts of the log, `search_at` is the address of the search.
        """
        head, block = self._rows.head, self._numbers
        self._rows.numbers[PARTS], self._rows.numbers[PARTS_AT] = parts
        rows = self._write(head, self._block, search_at, chances)
        if rows == NO_ROOM and self._make():
            rows = self._write(head, self._block, search_at, chances)
        if rows < 0 or self._table is None:
            return None
        return self._table.slice(block[ROWS_USED] - rows, rows)

    def _make(self) -> bool:
        """A new block, for some results of the size of the one that did not fit into the last; False: it were large."""
        block, schema = self._numbers, self._rows.schema
        layout = self._layout(units_for(block[ROWS_NEEDED], block[EVENTS_NEEDED], block[TEXTS_NEEDED]))
        if layout is None:
            return False
        table, at = layout.made(schema)
        block[ROWS] = 0  # until all is said: Ctrl-C may come while the old block is no longer there
        self._table = table
        block[BLOCK_AT] = at
        rows, block[EVENTS], block[TEXTS] = layout.room
        block[ROWS_USED] = block[EVENTS_USED] = block[TEXTS_USED] = 0
        block[ROWS] = rows
        return True

    def _layout(self, units: int) -> Layout | None:
        """That of a block for some results of so many units; None: two of them take too much memory."""
        results = LEAST_RESULTS
        layout = self._laid_out(results * units)
        while layout is not None and results < RESULTS and 2 * layout.words <= MOST_WORDS:
            results *= 2
            layout = self._laid_out(results * units)
        return layout

    def _laid_out(self, units: int) -> Layout | None:
        if units not in self._layouts:
            made = Layout(self._rows.schema, *sizes_of(units))
            self._layouts[units] = made if made.words <= MOST_WORDS else None
        return self._layouts[units]


def units_for(rows: int, events: int, letters: int) -> int:
    """The least power of two of units that a result fits into."""
    units = max(-(-rows // UNIT_ROWS), -(-events // UNIT_EVENTS), -(-letters // UNIT_TEXTS), 1)
    return int(1 << (units - 1).bit_length())


def sizes_of(units: int) -> tuple[int, int, int]:
    """The room for rows, events and letters in so many units; rows and their guards fill whole words."""
    return UNIT_ROWS * units - GUARDS, UNIT_EVENTS * units - GUARDS, UNIT_TEXTS * units
