"""Rows of tables, straight into the search of a row pattern or a Flink pattern, without an object of Python for a row.

They come through the door that dicts come through (`pattern_door`), and wait in their table until the watermark has
passed them.
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.arrow_memory import DATA, LETTERS, buffer_at, column_at, is_set, is_there, offset_of
from cepheid.engine.incremental.dict_door import BEYOND
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pattern_door import (
    ALL_BITS,
    BITS,
    EVENT,
    FRESH,
    GATHERED,
    GATHERS,
    KINDS,
    KINDS_AT,
    NEEDS_TEXT,
    NEXT_DUE,
    NO_MEMORY,
    NONE,
    OF_KIND,
    OF_TEXTS,
    ONE_AT,
    PATTERN_DOOR_SIZE,
    PAUSED,
    PUT_AT,
    SEARCHES,
    STAGE,
    STEP_AT,
    TABLE_AT,
    TEXT_COLUMNS_AT,
    TEXTS,
    TEXTS_AT,
    TEXTS_SEEN_AT,
    TIME,
    UNTIL,
    USED,
    WATERMARK,
    described_as,
    place_of_kind,
)
from cepheid.engine.incremental.table_door import (
    BATCH_AT,
    HOLDS_WHAT,
    OF_BATCH,
    OF_TABLE_COLUMN,
    TABLE_SIZE,
    TRUTHS,
    give_back_texts,
    read_numbers,
    value_at,
)
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int32_row, int64_row, int64_rows, search_at, uint8_rows
from cepheid.engine.kernels.objects import MEMORY, PythonObject, address, dict_item, give_back, whole_of

TEXTS_SEEN, SHORT = 256, 7  # of a column; letters of a short text
OF_TEXT_SEEN = 3  # its letters as a number, how many, and what it says
UNTIL_A_PAUSE, MOST_GATHERED = 1 << 12, 256  # rows
# Of rows that are handed over, behind the numbers of `table_door`: times, the next one and how many there are, where
# those are noted that are in the log, and how many these are; columns of fractions, and the column of the time; the
# first and the last time, and the addresses of the door and of these numbers.
TIMES_AT, NEXT_ROW, ROWS_GIVEN, KEPT_AT, KEPT_ROWS, FRACTIONS_AT, FRACTION_COLUMNS = range(TABLE_SIZE, TABLE_SIZE + 7)
TIME_COLUMN, FIRST_TIME, LATEST_TIME, DOOR_AT, GIVEN_AT = range(TABLE_SIZE + 7, TABLE_SIZE + 12)
GIVEN_SIZE = TABLE_SIZE + 12


@borrowing
def text_said(door: Int64s, given: Int64s, text: int, row: int) -> int:
    """Finds out what a text or a truth of a row says, and leaves it in BITS; what is lacking, or 0.

    No object is made of a short text that was seen lately.
    """
    column = int64_rows(door[TEXT_COLUMNS_AT], door[TEXTS], OF_TABLE_COLUMN)[text]
    own = column_at(given[BATCH_AT], column[OF_BATCH])
    place, letters, size = offset_of(own) + row, 0, -1
    if is_there(own, place) and column[HOLDS_WHAT] == TRUTHS:
        letters, size = int(is_set(buffer_at(own, DATA), place)), 1
    elif is_there(own, place):
        edges = int32_row(buffer_at(own, DATA) + 4 * place, 2)
        begin, size = int(edges[0]), int(edges[1]) - int(edges[0])
        if 0 < size <= SHORT:
            bytes_ = uint8_rows(buffer_at(own, LETTERS) + begin, 1, size)
            for letter in range(size):
                letters |= int(bytes_[0, letter]) << (8 * letter)
    mixed = letters ^ (letters >> 29)
    hashed = (mixed ^ (mixed >> 15) ^ (mixed >> 7)) & (TEXTS_SEEN - 1)
    seen = int64_row(door[TEXTS_SEEN_AT] + 8 * OF_TEXT_SEEN * (TEXTS_SEEN * text + hashed), OF_TEXT_SEEN)
    if size <= SHORT and seen[0] == letters and seen[1] == size + 2:
        door[BITS] = seen[2]
        return 0
    value = value_at(given, column, row)
    if value < 0:
        return NO_MEMORY
    known = dict_item(int64_rows(door[TEXTS_AT], door[TEXTS], OF_TEXTS)[text, 1], value if value != 0 else door[NONE])
    if known != 0:
        door[BITS] = whole_of(known, given[DOOR_AT] + 8 * BEYOND)
    if value != 0:
        give_back(value)
    if known == 0:
        return NEEDS_TEXT
    if size <= SHORT:
        seen[0], seen[1], seen[2] = letters, size + 2, door[BITS]
    return 0


@borrowing
def texts_said(door: Int64s, given: Int64s, row: int) -> int:
    """Finds out what all texts of a row say, and leaves it in BITS; what is lacking, or 0."""
    bits = door[ALL_BITS]
    for text in range(door[TEXTS]):
        lacks = text_said(door, given, text, row)
        if lacks != 0:
            return lacks
        bits = bits & door[BITS] if door[ALL_BITS] != 0 else bits | door[BITS]
    door[BITS] = bits
    return 0


@borrowing
def does_nothing(door: Int64s, given: Int64s, row: int, time: int) -> bool:
    """Is a row of a kind that no run can use, and does no window pass with its time?"""
    if door[KINDS] <= 0 or door[ONE_AT] != 0 or time > door[NEXT_DUE] or texts_said(door, given, row) != 0:
        return False
    kind = place_of_kind(door, door[BITS])
    return kind >= 0 and int64_rows(door[KINDS_AT], door[KINDS], OF_KIND)[kind, 3] == 0


@borrowing
def are_plain_rows(given: Int64s) -> bool:
    """Do times never fall, and are all fractions numbers? Says where the times are."""
    number, clock = given[ROWS_GIVEN], column_at(given[BATCH_AT], given[TIME_COLUMN])
    begin = offset_of(clock)
    given[TIMES_AT] = buffer_at(clock, DATA) + 8 * begin
    times = int64_row(given[TIMES_AT], number)
    given[FIRST_TIME], given[LATEST_TIME] = times[0], times[number - 1]
    for row in range(number):
        if not is_there(clock, begin + row) or (row > 0 and times[row] < times[row - 1]):
            return False
    columns = int64_rows(given[FRACTIONS_AT], given[FRACTION_COLUMNS], OF_TABLE_COLUMN)
    for place in range(given[FRACTION_COLUMNS]):
        column = column_at(given[BATCH_AT], columns[place, OF_BATCH])
        begin = offset_of(column)
        values = float64_rows(buffer_at(column, DATA) + 8 * begin, 1, number)
        for row in range(number):
            if values[0, row] != values[0, row] and is_there(column, begin + row):
                return False
    return True


@kernel
def checked_rows(numbers: PythonObject, pattern_at: int, batch_at: int, rows: int) -> int:
    """Writes down so many rows of a batch, as a pattern says; 1 if they can be taken in as they are."""
    at = int64_row(address(numbers) + MEMORY, 1)[0]
    given, pattern = int64_row(at, GIVEN_SIZE), int64_row(pattern_at, GIVEN_SIZE)
    for place in range(GIVEN_SIZE):
        given[place] = pattern[place]
    given[GIVEN_AT], given[BATCH_AT], given[ROWS_GIVEN], given[KEPT_AT] = at, batch_at, rows, at + 8 * GIVEN_SIZE
    return 1 if are_plain_rows(given) else 0


@borrowing
def row_taken(door: Int64s, given: Int64s, row: int, time: int) -> int:
    """Takes a row in, or goes on with it; what hinders it, or 0."""
    at, fresh = given[DOOR_AT], door[STAGE] == FRESH
    if fresh:
        lacks = texts_said(door, given, row)
        if lacks != 0:
            return lacks
        if not read_numbers(door, given, row):
            return NO_MEMORY
        lacks = described_as(door, at, door[BITS])
        if lacks != 0:
            give_back_texts(door, given)
            return lacks
        door[TIME] = door[UNTIL] = time
        door[USED] = 0
    found = search_at(door[STEP_AT])(door)
    if fresh:
        give_back_texts(door, given)
    return min(int(found), 0)


@borrowing
def gathered_rows_searched(door: Int64s) -> int:
    """Searches the rows that are put down; what hinders it, or 0."""
    door[STAGE] = SEARCHES
    found = search_at(door[STEP_AT])(door)
    if found >= 0:
        door[STAGE], door[GATHERED] = FRESH, 0
    return min(int(found), 0)


@kernel
def rows_released(at: int, given_at: int) -> int:
    """Takes in the rows that the watermark has passed; time passes elsewhere. What hinders it, or 0."""
    door, given = int64_row(at, PATTERN_DOOR_SIZE), int64_row(given_at, GIVEN_SIZE)
    times, kept = int64_row(given[TIMES_AT], given[ROWS_GIVEN]), int64_row(given[KEPT_AT], given[ROWS_GIVEN])
    pause, hinders = given[NEXT_ROW] + UNTIL_A_PAUSE, 0
    door[EVENT], door[TABLE_AT], given[DOOR_AT] = 0, given_at, at
    if door[STAGE] == SEARCHES:
        hinders = gathered_rows_searched(door)
    while hinders == 0 and given[NEXT_ROW] < given[ROWS_GIVEN] and times[given[NEXT_ROW]] < door[WATERMARK]:
        if given[NEXT_ROW] >= pause:
            return PAUSED
        if door[STAGE] == FRESH and door[PUT_AT] != 0 and search_at(door[PUT_AT])(door) > 0:
            if door[GATHERED] >= MOST_GATHERED:
                hinders = gathered_rows_searched(door)
            continue
        row = given[NEXT_ROW]
        if door[STAGE] == FRESH and does_nothing(door, given, row, times[row]):
            given[NEXT_ROW] = row + 1
            continue
        hinders = row_taken(door, given, row, times[row])
        if hinders != 0:
            break
        door[STAGE] = FRESH
        if door[USED] != 0:
            kept[given[KEPT_ROWS]] = row
            given[KEPT_ROWS] += 1
        given[NEXT_ROW] = row + 1
        door[GATHERED] += door[GATHERS]
        if door[GATHERED] >= MOST_GATHERED:
            hinders = gathered_rows_searched(door)
    if hinders == 0 and door[GATHERED] > 0:
        hinders = gathered_rows_searched(door)
    return int(hinders)


check_rows, release_rows = Entry(checked_rows), Entry(rows_released)
