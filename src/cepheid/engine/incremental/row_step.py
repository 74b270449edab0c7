"""Single events into the search of a row pattern."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.dict_door import ROWS as LOG_ROWS
from cepheid.engine.incremental.dict_door import filled
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pattern_door import BITS as EVENT_BITS
from cepheid.engine.incremental.pattern_door import (
    EVENT,
    FRESH,
    GATHERS,
    HINDERED,
    INSIDE,
    NO_MEMORY,
    PASSES,
    READ_FROM,
    READ_TO,
    SEARCH,
    SEARCHES,
    STAGE,
    arrive,
    check_rows,
    go_on,
    logged,
    release_rows,
)
from cepheid.engine.incremental.pattern_door import KEY as EVENT_KEY
from cepheid.engine.incremental.pattern_door import TIME as EVENT_TIME
from cepheid.engine.incremental.pattern_door import UNTIL as PASSES_UNTIL
from cepheid.engine.incremental.result_rows import find, make
from cepheid.engine.incremental.row_measures import make_values, measure_dicts, measure_values
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
from cepheid.engine.kernels.compile import borrowing
from cepheid.engine.kernels.memory import int64_row


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


step = Entry(row_step)
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
    "release_rows",
    "renumber",
    "step",
]
