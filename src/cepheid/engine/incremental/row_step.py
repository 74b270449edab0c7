"""Single events into the search of a row pattern."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.arrow_memory import DATA, buffer_at, column_at, is_set, is_there, offset_of
from cepheid.engine.incremental.dict_door import (
    FILLS,
    FILLS_AT,
    IN_WHOLES,
    OF_FILL,
    ROW_OF_NULL,
    ROW_OF_VALUE,
    STORAGE,
    filled,
)
from cepheid.engine.incremental.dict_door import ROWS as LOG_ROWS
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pattern_door import BITS as EVENT_BITS
from cepheid.engine.incremental.pattern_door import (
    COLUMNS_READ_AT,
    EVENT,
    FRESH,
    GATHERS,
    HINDERED,
    INSIDE,
    KEYS_FROM,
    KEYS_TO,
    NO_MEMORY,
    PASSES,
    READ_FROM,
    READ_TO,
    SEARCH,
    SEARCHES,
    SEEN,
    STAGE,
    TABLE_AT,
    WATERMARK,
    arrive,
    go_on,
    key_entry,
    logged,
)
from cepheid.engine.incremental.pattern_door import GATHERED as GATHERED_ROWS
from cepheid.engine.incremental.pattern_door import KEY as EVENT_KEY
from cepheid.engine.incremental.pattern_door import TIME as EVENT_TIME
from cepheid.engine.incremental.pattern_door import UNTIL as PASSES_UNTIL
from cepheid.engine.incremental.pattern_rows import (
    GIVEN_SIZE,
    KEPT_AT,
    KEPT_ROWS,
    MOST_GATHERED,
    NEXT_ROW,
    ROWS_GIVEN,
    TIMES_AT,
    check_rows,
    release_rows,
    texts_said,
)
from cepheid.engine.incremental.result_rows import find, make
from cepheid.engine.incremental.row_measures import make_values, measure_dicts, measure_values, tell_dicts
from cepheid.engine.incremental.row_push import (
    AHEAD,
    ALL_DONE,
    ALL_HEADS,
    BACK,
    BATCH_SIZE,
    BEGIN,
    BEYOND_64_BITS,
    COLUMNS_OF_ROWS,
    DONE,
    FAR,
    FOUND,
    GATHERED,
    GATHERED_PARTS,
    HEAD_SIZE,
    HIGH,
    HORIZON,
    IN_BATCH,
    MOST_OPEN,
    NEEDS_ROWS,
    NULL,
    NUMBER,
    NUMBERS,
    OPEN,
    ROOM,
    SELF,
    TABLES,
    TEXTS,
    TIME,
    TO_SEARCH,
    TO_SEARCH_END,
    TOO_MANY_OPEN,
    UPCOMING,
    WAITING_PARTS,
    WHOLE,
    deadline,
    drop,
    drop_rows,
    forget,
    pass_windows,
    push_rows,
    renumber,
    searched,
    wait,
    windows_passed,
)
from cepheid.engine.incremental.table_door import BATCH_AT, HOLDS_WHAT, OF_BATCH, OF_TABLE_COLUMN, TRUTHS
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.memory import int64_row, int64_rows, uint8_rows


@borrowing
def row_put(door: Int64s, head: Int64s) -> bool:
    """Puts the event at work behind the rows of its partition, where there is room; False: the log has none."""
    row, number = head[HIGH], door[LOG_ROWS]
    if logged(door) == 0:
        return False
    rooms = int64_row(head[SELF] + 8 * COLUMNS_OF_ROWS, 3)
    for place, table in enumerate((WHOLE, NUMBER, NULL)):
        rooms[place] = head[TABLES + 3 * table]
    filled(door, rooms, door[READ_FROM : READ_TO + 1], head[ROOM], row, head[SELF] + 8 * BEYOND_64_BITS)
    values = (door[EVENT_TIME], door[EVENT_BITS], number, FAR)
    for place, table in enumerate((TIME, TEXTS, NUMBERS, UPCOMING)):
        at = TABLES + 3 * table
        if head[at + 2] > 0:
            int64_row(head[at], head[at + 2])[row] = values[place]
    head[HIGH] = row + 1
    return True


@borrowing
def part_searched(head: Int64s, batch: Int64s) -> int:
    """Searches the new rows of a partition; what hinders it."""
    hinders = searched(head, batch)
    if hinders != ALL_DONE:
        return hinders
    if batch[MOST_OPEN] > 0 and head[HIGH] - max(head[BEGIN] - batch[BACK], 0) > batch[MOST_OPEN]:
        return TOO_MANY_OPEN
    wait(head, batch, deadline(head))
    return ALL_DONE


@borrowing
def gather(head: Int64s, batch: Int64s) -> None:
    """Notes that a partition is to be searched."""
    if head[GATHERED] == 0:
        at = IN_BATCH + 3 * GATHERED_PARTS
        int64_row(batch[at], batch[at + 2])[batch[TO_SEARCH_END]] = batch[DONE]
        batch[TO_SEARCH_END] += 1
        head[GATHERED] = 1


@borrowing
def number_at(given: Int64s, column: Int64s, row: int) -> tuple[bool, int]:
    """Is a number of a row there, and which is it, as 64 bits?"""
    own = column_at(given[BATCH_AT], column[OF_BATCH])
    place = offset_of(own) + row
    if not is_there(own, place):
        return False, 0
    data = buffer_at(own, DATA)
    if column[HOLDS_WHAT] == TRUTHS:
        return True, int(is_set(data, place))
    return True, int(int64_row(data + 8 * place, 1)[0])


@borrowing
def partition_seen(door: Int64s, given: Int64s, row: int) -> int:
    """The partition of a row, if it was seen lately; -1: it was not."""
    if door[KEYS_TO] == door[KEYS_FROM]:
        return 0
    if door[SEEN] == 0:
        return -1
    columns = int64_rows(door[COLUMNS_READ_AT], door[KEYS_TO], OF_TABLE_COLUMN)
    there, key = number_at(given, columns[door[KEYS_FROM]], row)
    seen = key_entry(door, key)
    return int(seen[1] - 1 if there and seen[0] == key else -1)


@borrowing
def put_behind(door: Int64s, given: Int64s, head: Int64s, row: int, number: int) -> None:
    """Puts a row of a table behind those of a partition, where there is room; in the log it has a number."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    columns = int64_rows(door[COLUMNS_READ_AT], door[FILLS], OF_TABLE_COLUMN)
    room, place = head[ROOM], head[HIGH]
    for fill in range(door[READ_FROM], door[READ_TO]):
        there, value = number_at(given, columns[fill], row)
        uint8_rows(head[TABLES + 3 * NULL] + fills[fill, ROW_OF_NULL] * room + place, 1, 1)[0, 0] = 0 if there else 1
        table = TABLES + 3 * (WHOLE if fills[fill, STORAGE] == IN_WHOLES else NUMBER)
        int64_row(head[table] + 8 * (fills[fill, ROW_OF_VALUE] * room + place), 1)[0] = value
    int64_row(head[TABLES + 3 * TIME] + 8 * place, 1)[0] = int64_row(given[TIMES_AT] + 8 * row, 1)[0]
    int64_row(head[TABLES + 3 * NUMBERS] + 8 * place, 1)[0] = number
    if head[TABLES + 3 * TEXTS + 2] > 0:
        int64_row(head[TABLES + 3 * TEXTS] + 8 * place, 1)[0] = door[EVENT_BITS]
    if head[TABLES + 3 * UPCOMING + 2] > 0:
        int64_row(head[TABLES + 3 * UPCOMING] + 8 * place, 1)[0] = FAR
    head[HIGH] = place + 1


@borrowing
def rows_put(door: Int64s) -> int:
    """Puts down the next rows of a table, up to one that lacks something; how many. They are searched later."""
    given, batch = int64_row(door[TABLE_AT], GIVEN_SIZE), int64_row(door[SEARCH], BATCH_SIZE)
    heads_at, first = IN_BATCH + 3 * ALL_HEADS, given[NEXT_ROW]
    heads, kept = int64_row(batch[heads_at], batch[heads_at + 2]), int64_row(given[KEPT_AT], given[ROWS_GIVEN])
    times, row = int64_row(given[TIMES_AT], given[ROWS_GIVEN]), first
    end = min(given[ROWS_GIVEN], first + MOST_GATHERED - door[GATHERED_ROWS])
    while row < end and times[row] < door[WATERMARK]:
        partition = partition_seen(door, given, row)
        if partition < 0 or texts_said(door, given, row) != 0:
            break
        head = int64_row(heads[partition], HEAD_SIZE)
        if head[HIGH] + 2 > head[ROOM]:
            break
        put_behind(door, given, head, row, door[LOG_ROWS] + row - first)
        batch[DONE] = partition
        gather(head, batch)
        kept[given[KEPT_ROWS] + row - first] = row
        row += 1
    door[LOG_ROWS] += row - first
    door[GATHERED_ROWS] += row - first
    given[KEPT_ROWS] += row - first
    given[NEXT_ROW] = row
    return int(row - first)


@borrowing
def row_step(door: Int64s) -> int:
    """Takes in the event at work, and lets time pass; how many rows there are to report, or what hinders it.

    Rows of tables are only put down, and searched later, all of a partition at once.
    """
    batch = int64_row(door[SEARCH], BATCH_SIZE)
    batch[OPEN], batch[HORIZON] = 1, door[PASSES_UNTIL] - 1
    at, heads_at = IN_BATCH + 3 * GATHERED_PARTS, IN_BATCH + 3 * ALL_HEADS
    heads, hinders = int64_row(batch[heads_at], batch[heads_at + 2]), ALL_DONE
    if door[STAGE] == SEARCHES:
        while batch[TO_SEARCH] < batch[TO_SEARCH_END]:
            batch[DONE] = int64_row(batch[at], batch[at + 2])[batch[TO_SEARCH]]
            head = int64_row(heads[batch[DONE]], HEAD_SIZE)
            hinders = part_searched(head, batch)
            if hinders != ALL_DONE:
                return HINDERED - hinders
            head[GATHERED] = 0
            batch[TO_SEARCH] += 1
        batch[TO_SEARCH] = batch[TO_SEARCH_END] = 0
    elif door[STAGE] != PASSES:
        head = int64_row(heads[door[EVENT_KEY]], HEAD_SIZE)
        batch[DONE] = door[EVENT_KEY]
        if door[STAGE] == FRESH:
            if head[HIGH] + 2 > head[ROOM]:
                # What is found is told by places of rows: they stay until it is taken.
                unused = max(head[BEGIN] - batch[BACK] - head[AHEAD], 0) if batch[FOUND] == 0 else 0
                if 2 * unused < head[HIGH]:
                    return HINDERED - NEEDS_ROWS
                drop_rows(head, unused)
            if not row_put(door, head):
                return NO_MEMORY
            if door[GATHERS] != 0 and door[EVENT] == 0:
                gather(head, batch)
                return 0
            door[STAGE] = INSIDE
        hinders = part_searched(head, batch)
        if hinders != ALL_DONE:
            return HINDERED - hinders
    if door[STAGE] != SEARCHES:
        door[STAGE] = PASSES
    if batch[WAITING_PARTS] > 0:
        hinders = windows_passed(batch)
        if hinders != ALL_DONE:
            return HINDERED - hinders
    return int(batch[FOUND])


step, put = Entry(row_step), Entry(rows_put)
# All that has to be compiled before single rows are taken in.
__all__ = [
    "arrive",
    "check_rows",
    "drop",
    "find",
    "forget",
    "go_on",
    "make",
    "make_values",
    "measure_dicts",
    "measure_values",
    "pass_windows",
    "push_rows",
    "put",
    "release_rows",
    "renumber",
    "step",
    "tell_dicts",
]
