"""The rows of matches as an Arrow batch, which a kernel makes of the events in Arrow's own memory.

Arrow takes a microsecond or two for every array that Python makes, and a small result has dozens. So a kernel copies
the values of all columns into one piece of memory, describes them there as Arrow's C data interface has it, and Arrow
takes all of it over in one call.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import partial
from operator import call
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.incremental.arrow_memory import (
    ARRAY_SIZE,
    BUFFERS,
    BUFFERS_AT,
    CHILDREN,
    CHILDREN_AT,
    DATA,
    DICTIONARY_AT,
    LENGTH,
    LETTERS,
    NULLS,
    OFFSET,
    RELEASE,
    VALID,
    buffer_at,
    column_at,
    is_set,
    is_there,
    offset_of,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pushed_matches import PushedMatches
from cepheid.engine.jit_fallback import FEW_EVENTS
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int32_row, int64_row, int64_rows, uint8_rows

# The numbers in `head`: parts of the log, and where they are told; components, of which some are groups; columns, with
# their numbers in the log and how wide their values are; the column of the time; is a group without events NULL? What
# gives back an array that is part of another; the memory that is filled, how much there is, and how much is used.
PARTS, PARTS_AT, PLACES, GROUPS_AT, COLUMNS, COLUMNS_AT, CLOCK, NULL_GROUPS = range(8)
PART_RELEASE, ROOM_AT, ROOM, USED = range(8, 12)
HEAD_SIZE = 12
START, BATCH_AT, ROWS_AT = range(3)  # of a part: the number of its first event, its memory (0: it has none), its rows
OF_PART = 3
BITS, SHORT_TEXTS, LONG_TEXTS = 0, -4, -8  # how wide values are, if not so many bytes
MOST_LETTERS = 2**31 - 1


@borrowing
def part_of(head: Int64s, event: int) -> int:
    """The part of the log that an event lies in."""
    parts = int64_rows(head[PARTS_AT], head[PARTS], OF_PART)
    first, end = 0, head[PARTS]
    while end - first > 1:
        middle = (first + end) // 2
        if parts[middle, START] <= event:
            first = middle
        else:
            end = middle
    return first


@borrowing
def row_of(head: Int64s, part: int, event: int) -> int:
    """The row of an event in the memory of a part."""
    own = int64_rows(head[PARTS_AT], head[PARTS], OF_PART)[part]
    row = event - own[START]
    return int(row if own[ROWS_AT] == 0 else int64_row(own[ROWS_AT], row + 1)[row])


@kernel
def found_events(head: Int64s, events: Int64s, matches: int, found: Int64Rows) -> int:
    """Finds out where events lie, and says how much memory their rows take; -1: one lies elsewhere, or it is much."""
    parts, columns = int64_rows(head[PARTS_AT], head[PARTS], OF_PART), int64_rows(head[COLUMNS_AT], head[COLUMNS], 2)
    letters = 0
    for event in range(len(events)):
        part = part_of(head, events[event])
        batch = parts[part, BATCH_AT]
        if batch == 0:
            return -1
        row = row_of(head, part, events[event])
        found[event, 0], found[event, 1] = batch, row
        for column in range(head[COLUMNS]):
            if columns[column, 1] < 0:
                letters += letters_of(column_at(batch, columns[column, 0]), columns[column, 1], row)
    if letters > MOST_LETTERS:
        return -1
    entries, arrays = len(events) + matches * head[PLACES], head[PLACES] * (head[COLUMNS] + 2) + 4
    words = arrays * (ARRAY_SIZE + 8) + letters // 8 + 2 * entries + 4 * matches
    for column in range(head[COLUMNS]):
        words += entries * (max(columns[column, 1], 8) + 7) // 8 + entries // 32 + 4 * head[PLACES]
    return int(words)


@borrowing
def letters_of(column: int, width: int, row: int) -> int:
    """How long a text is."""
    place = offset_of(column) + row
    if not is_there(column, place):
        return 0
    return int(edge_of(column, width, place + 1) - edge_of(column, width, place))


@borrowing
def edge_of(column: int, width: int, place: int) -> int:
    """Where a text begins among all letters."""
    data = buffer_at(column, DATA)
    if width == SHORT_TEXTS:
        return int(int32_row(data + 4 * place, 1)[0])
    return int(int64_row(data + 8 * place, 1)[0])


@borrowing
def set_bit(address: int, place: int, value: bool) -> None:
    """Sets a bit in bytes at an address, or clears it."""
    own = uint8_rows(address + (place >> 3), 1, 1)
    bit = np.uint8(1 << (place & 7))
    own[0, 0] = (own[0, 0] & ~bit) | (bit if value else np.uint8(0))


@borrowing
def new_room(head: Int64s, size: int) -> int:
    """The address of so many bytes, all of them 0."""
    at = head[ROOM_AT] + 8 * head[USED]
    words = (size + 7) // 8
    head[USED] += words
    own = int64_row(at, words)
    for word in range(words):
        own[word] = 0
    return int(at)


@borrowing
def new_array(head: Int64s, length: int, buffers: int, children: int) -> int:
    """The address of an array whose buffers and children are to be set."""
    at = new_room(head, 8 * (ARRAY_SIZE + buffers + children))
    array = int64_row(at, ARRAY_SIZE)
    array[LENGTH], array[BUFFERS], array[CHILDREN], array[RELEASE] = length, buffers, children, head[PART_RELEASE]
    array[BUFFERS_AT], array[CHILDREN_AT] = at + 8 * ARRAY_SIZE, at + 8 * (ARRAY_SIZE + buffers)
    return at


@borrowing
def set_buffer(array: int, which: int, address: int) -> None:
    """Says where a buffer of an array lies."""
    int64_row(int64_row(array, ARRAY_SIZE)[BUFFERS_AT], which + 1)[which] = address


@borrowing
def set_child(array: int, which: int, child: int) -> None:
    """Says where a child of an array lies."""
    int64_row(int64_row(array, ARRAY_SIZE)[CHILDREN_AT], which + 1)[which] = child


@borrowing
def set_part(head: Int64s, parts: int, which: int, made: int) -> None:
    """Puts an array among those of the batch, which lie side by side."""
    part, array = int64_row(parts + 8 * ARRAY_SIZE * which, ARRAY_SIZE), int64_row(made, ARRAY_SIZE)
    for field in range(ARRAY_SIZE):
        part[field] = array[field]
    set_child(head[ROOM_AT], which, parts + 8 * ARRAY_SIZE * which)


@borrowing
def set_valid(array: int, valid: int, nulls: int) -> None:
    """Says which values are NULL, and how many."""
    int64_row(array, ARRAY_SIZE)[NULLS] = nulls
    set_buffer(array, VALID, valid if nulls > 0 else 0)


@borrowing
def copy_text(letters_at: int, column: int, width: int, place: int, length: int) -> None:
    """Copies the letters of a text to an address."""
    letters = uint8_rows(buffer_at(column, LETTERS) + edge_of(column, width, place), 1, length)
    own = uint8_rows(letters_at, 1, length)
    for letter in range(length):
        own[0, letter] = letters[0, letter]


@borrowing
def copy_value(column: int, width: int, place: int, data: int, row: int) -> None:
    """Copies a value of a fixed width."""
    given = buffer_at(column, DATA)
    if width == BITS:
        set_bit(data, row, is_set(given, place))
    elif width == 8:
        int64_row(data + 8 * row, 1)[0] = int64_row(given + 8 * place, 1)[0]
    else:
        values, own = uint8_rows(given + width * place, 1, width), uint8_rows(data + width * row, 1, width)
        for byte in range(width):
            own[0, byte] = values[0, byte]


@borrowing
def fill_column(array: int, found: Int64Rows, order: Int64s, number: int, column: int, width: int, first: int) -> int:
    """Fills an array, from a row on, with a column of some events, in an order that says -1 where there is none.

    It says how many of the values are NULL.
    """
    valid, data, nulls = buffer_at(array, VALID), buffer_at(array, DATA), 0
    for row in range(first, first + number):
        own, place, event, length = 0, 0, order[row - first], 0
        there = event >= 0
        if there:
            own = column_at(found[event, 0], column)
            place = offset_of(own) + found[event, 1]
            there = is_there(own, place)
        set_bit(valid, row, there)
        if not there:
            nulls += 1
        elif width >= 0:
            copy_value(own, width, place, data, row)
        else:
            length = edge_of(own, width, place + 1) - edge_of(own, width, place)
            copy_text(buffer_at(array, LETTERS) + edge_of(array, width, row), own, width, place, length)
        if width == SHORT_TEXTS:
            int32_row(data + 4 * (row + 1), 1)[0] = np.int32(edge_of(array, width, row) + length)
        elif width == LONG_TEXTS:
            int64_row(data + 8 * (row + 1), 1)[0] = edge_of(array, width, row) + length
    return nulls


@borrowing
def new_column(head: Int64s, found: Int64Rows, order: Int64s, number: int, column: int, width: int) -> int:
    """A column of some events, in an order that says -1 where there is none."""
    array = new_array(head, number, 2 if width >= 0 else 3, 0)
    valid = new_room(head, (number + 7) // 8)
    size = -width * (number + 1) if width < 0 else width * number
    set_buffer(array, VALID, valid)
    set_buffer(array, DATA, new_room(head, (number + 7) // 8 if width == BITS else size))
    if width < 0:
        set_buffer(array, LETTERS, head[ROOM_AT] + 8 * head[USED])
    set_valid(array, valid, fill_column(array, found, order, number, column, width, 0))
    if width < 0:
        head[USED] += (edge_of(array, width, number) + 7) // 8
    return array


@borrowing
def fill_events(valid: int, order: Int64s, number: int, first: int) -> int:
    """Says from a row on which events are there, in an order that says -1 where there is none, and how many are not."""
    nulls = 0
    for row in range(number):
        set_bit(valid, first + row, order[row] >= 0)
        nulls += 1 if order[row] < 0 else 0
    return nulls


@borrowing
def new_events(head: Int64s, found: Int64Rows, order: Int64s, number: int) -> int:
    """Events as structs."""
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], 2)
    array = new_array(head, number, 1, head[COLUMNS])
    valid = new_room(head, (number + 7) // 8)
    set_valid(array, valid, fill_events(valid, order, number, 0))
    for column in range(head[COLUMNS]):
        set_child(array, column, new_column(head, found, order, number, columns[column, 0], columns[column, 1]))
    return array


@borrowing
def fill_lists(head: Int64s, array: int, sizes: Int64s, place: int, matches: int, first: int) -> int:
    """Fills an array, from a row on, with groups of events as lists of them; how many of these are NULL."""
    offsets, nulls = int32_row(buffer_at(array, DATA), first + matches + 1), 0
    for match in range(matches):
        size = sizes[match * head[PLACES] + place]
        offsets[first + match + 1] = offsets[first + match] + np.int32(size)
        there = size > 0 or head[NULL_GROUPS] == 0
        set_bit(buffer_at(array, VALID), first + match, there)
        nulls += 0 if there else 1
    return nulls


@borrowing
def new_lists(head: Int64s, sizes: Int64s, place: int, matches: int, events: int) -> int:
    """Groups of events as lists of them."""
    array = new_array(head, matches, 2, 1)
    valid = new_room(head, (matches + 7) // 8)
    set_buffer(array, VALID, valid)
    set_buffer(array, DATA, new_room(head, 4 * (matches + 1)))
    set_valid(array, valid, fill_lists(head, array, sizes, place, matches, 0))
    set_child(array, 0, events)
    return array


@borrowing
def time_of(head: Int64s, found: Int64Rows, event: int) -> int:
    """The time of an event."""
    column = column_at(found[event, 0], head[CLOCK])
    return int(int64_row(buffer_at(column, DATA) + 8 * (offset_of(column) + found[event, 1]), 1)[0])


@borrowing
def fill_edges(head: Int64s, times: Int64s, found: Int64Rows, sizes: Int64s, matches: int, last: bool) -> None:
    """The time of the first or the last event of each match."""
    event = 0
    for match in range(matches):
        number = head[PLACES]
        if len(sizes) > 0:
            number = 0
            for place in range(head[PLACES]):
                number += sizes[match * head[PLACES] + place]
        times[match] = time_of(head, found, event)
        for each in range(event + 1, event + number):
            time = time_of(head, found, each)
            times[match] = max(times[match], time) if last else min(times[match], time)
        event += number


@borrowing
def new_edges(head: Int64s, found: Int64Rows, sizes: Int64s, matches: int, last: bool) -> int:
    """The times of the first or the last events of matches as an array."""
    array, data = new_array(head, matches, 2, 0), new_room(head, 8 * matches)
    fill_edges(head, int64_row(data, matches), found, sizes, matches, last)
    set_buffer(array, DATA, data)
    return array


@borrowing
def ordered(head: Int64s, sizes: Int64s, place: int, matches: int, order: Int64s) -> int:
    """The events of a component, match by match: -1 where there is none, unless it is a group; and how many."""
    places, group = head[PLACES], int64_row(head[GROUPS_AT], head[PLACES])[place] == 1
    number, event = 0, 0
    for match in range(matches):
        if len(sizes) == 0:
            order[match] = match * places + place
            continue
        for each in range(places):
            size = sizes[match * places + each]
            if each == place:
                for own in range(event, event + size):
                    order[number] = own
                    number += 1
                if size == 0 and not group:
                    order[number] = -1
                    number += 1
            event += size
    return matches if len(sizes) == 0 else number


@borrowing
def begin_batch(head: Int64s, rows: int, children: int) -> int:
    """Begins with a batch of so many columns, whose own array is the first thing in memory: where they are put."""
    batch = int64_row(head[ROOM_AT], ARRAY_SIZE)  # what gives it back is known
    batch[LENGTH], batch[NULLS], batch[OFFSET], batch[BUFFERS], batch[CHILDREN] = rows, 0, 0, 1, children
    batch[DICTIONARY_AT] = 0
    head[USED] = ARRAY_SIZE
    batch[BUFFERS_AT] = new_room(head, 8)
    batch[CHILDREN_AT] = new_room(head, 8 * children)
    return new_room(head, 8 * ARRAY_SIZE * children)


@kernel
def made_rows(head: Int64s, found: Int64Rows, sizes: Int64s, chances: Float64s, matches: int) -> int:
    """Fills the memory with a batch of the rows of matches."""
    places, groups = head[PLACES], int64_row(head[GROUPS_AT], head[PLACES])
    edges = 2 if head[CLOCK] >= 0 else 0
    children = edges + places + (1 if len(chances) > 0 else 0)
    parts = begin_batch(head, matches, children)
    for edge in range(edges):
        set_part(head, parts, edge, new_edges(head, found, sizes, matches, edge == 1))
    order = np.empty(len(found) + matches, np.int64)
    for place in range(places):
        number = ordered(head, sizes, place, matches, order)
        events = new_events(head, found, order, number)
        shown = new_lists(head, sizes, place, matches, events) if groups[place] == 1 else events
        set_part(head, parts, edges + place, shown)
    if len(chances) > 0:
        array, data = new_array(head, matches, 2, 0), new_room(head, 8 * matches)
        values = float64_rows(data, 1, matches)
        for match in range(matches):
            values[0, match] = chances[match]
        set_buffer(array, DATA, data)
        set_part(head, parts, edges + places, array)
    return 1 if head[USED] <= head[ROOM] else 0


find, make = Entry(found_events), Entry(made_rows)


def is_ready(events: int) -> bool:
    """Are the kernels compiled, or in the cache, or are there events enough to wait for them?"""
    return events > FEW_EVENTS or (find.is_ready() and make.is_ready())


def load() -> None:
    """Loads or compiles the kernels now: what Ctrl-C meets later should not be numba."""
    find.direct()
    make.direct()


def width_of(kind: pa.DataType) -> int | None:
    """How wide the values of a column are; None: they lie in memory in a way that is not read here."""
    if pa.types.is_boolean(kind):
        return BITS
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return SHORT_TEXTS
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        return LONG_TEXTS
    plain = pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    return kind.bit_width // 8 if plain and kind.bit_width >= 8 else None


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _release_part(at: int) -> None:
    """Gives back a part of a batch that Arrow did not take over; Python runs it with no exception on its way."""
    ctypes.c_int64.from_address(at + 8 * RELEASE).value = 0


RELEASE_OF_PART = ctypes.cast(_release_part, ctypes.c_void_p).value or 0
_BYTES = pa.uint8()
_NO_SIZES, _NO_CHANCES = np.zeros(0, np.int64), np.zeros(0, np.float64)


class ResultRows:
    """Makes the rows of the result of a query that shows the events of its matches.

    `groups` says which components are groups, `names` which columns of the log are shown, and `schema` what the result
    is to look like. Without a column of times it does not tell when a match begins and ends.
    """

    def __init__(
        self,
        log: pa.Schema,
        schema: pa.Schema,
        time: str | None,
        names: Sequence[str],
        groups: Sequence[bool],
        linear: bool,
    ) -> None:
        widths = [width_of(log.field(name).type) for name in names]
        clocks = [] if time is None else [log.field(time).type]
        shown = pa.struct([(name, log.field(name).type) for name in names])
        kinds = [*clocks, *clocks, *(pa.list_(shown) if group else shown for group in groups)]
        self.schema = schema
        timed = all(clock == pa.int64() or pa.types.is_timestamp(clock) for clock in clocks)
        self.fits = timed and None not in widths and schema.types in (kinds, [*kinds, pa.float64()])
        if not self.fits:
            return
        columns = [(log.get_field_index(name), width) for name, width in zip(names, widths, strict=True)]
        self._kept: list[Any] = [np.array(columns, np.int64), np.array(groups, np.int64)]
        self.head = np.zeros(HEAD_SIZE, np.int64)
        self.head[PLACES], self.head[COLUMNS] = len(groups), len(names)
        self.head[CLOCK] = -1 if time is None else log.get_field_index(time)
        self.head[COLUMNS_AT], self.head[GROUPS_AT] = (each.ctypes.data for each in self._kept)
        self.head[NULL_GROUPS], self.head[PART_RELEASE] = int(linear), RELEASE_OF_PART
        self.numbers = self.head.data  # which Python writes in half the time

    def batch(self, parts: tuple[int, int], pushed: PushedMatches) -> pa.RecordBatch | None:
        """The rows of some matches; None: some of their events do not lie in Arrow's memory.

        `parts` are the number and the address of the parts of the log.
        """
        head, matches = self.head, len(pushed.known)
        self.numbers[PARTS], self.numbers[PARTS_AT] = parts
        found = np.empty((len(pushed.events), 2), np.int64)
        words = find.direct()(head, pushed.events, matches, found)
        if words < 0:
            return None
        sizes = _NO_SIZES if pushed.sizes is None else pushed.sizes.reshape(-1)
        chances = _NO_CHANCES if pushed.scores is None else np.exp(pushed.scores)
        return made_batch(head, words, self.schema, partial(make.direct(), head, found, sizes, chances, matches))


def made_batch(head: Int64s, words: int, schema: pa.Schema, fill: Callable[[], int]) -> pa.RecordBatch:
    """The batch that a kernel puts into so much memory."""
    room = pa.allocate_buffer(8 * words)
    at, arrays = room.address, len(schema)
    numbers = np.frombuffer(room, np.int64)
    head[ROOM_AT], head[ROOM] = at, words
    pa.Array.from_buffers(_BYTES, 0, [None, room])._export_to_c(at)  # it holds the memory, and gives it back
    filled = fill()
    assert filled == 1, "the memory is as large as was said"
    # Arrow takes the batch over, and gives its memory back at once: nothing is left to do for its arrays, and they
    # say so before Python can be broken off.
    begin = ARRAY_SIZE + 1 + arrays
    releases = numbers[begin + RELEASE : begin + ARRAY_SIZE * arrays : ARRAY_SIZE]
    take_over = partial(pa.RecordBatch._import_from_c, at, schema), partial(releases.fill, 0)
    made, _ = map(call, take_over)
    return made
