"""Single events into the search of a row pattern, and what the measures of a match show of them."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.dict_door import ROWS as LOG_ROWS
from cepheid.engine.incremental.dict_door import filled
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pattern_door import BITS as EVENT_BITS
from cepheid.engine.incremental.pattern_door import (
    FRESH,
    HINDERED,
    INSIDE,
    NO_MEMORY,
    PASSES,
    READ_FROM,
    READ_TO,
    SEARCH,
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
    OUT,
    ROOM,
    SELF,
    STEPS,
    STEPS_FOUND,
    TABLES,
    TEXTS,
    TIME,
    TOO_MANY_OPEN,
    UPCOMING,
    WAITING_PARTS,
    WHOLE,
    deadline,
    drop,
    drop_rows,
    pass_windows,
    push_rows,
    searched,
    wait,
    whole_row,
    windows_passed,
)
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import int32_row, int64_row, int64_rows, uint8_rows

# The numbers that `measured` gets: measures, steps of the program; for each measure whether it is the number of the
# match, whether the first or the last row is meant, and how many before that; the steps that count; where it goes.
MEASURES, STEPS_OF_PROGRAM, SPECS_AT, SETS_AT, SHOWN_AT, ASKED_SIZE = range(6)


@kernel
def measured(batch: Int64s, asked: Int64s) -> int:
    """For each match its partition, its number, and for each measure the row of the log that it shows, or -1."""
    measures, steps_of_program = asked[MEASURES], asked[STEPS_OF_PROGRAM]
    specs, sets = int64_rows(asked[SPECS_AT], measures, 3), uint8_rows(asked[SETS_AT], measures, steps_of_program)
    at_out, at_steps = IN_BATCH + 3 * OUT, IN_BATCH + 3 * STEPS
    found = int64_rows(batch[at_out], batch[at_out + 1], batch[at_out + 2])
    steps = int32_row(batch[at_steps], batch[at_steps + 2])
    shown = int64_rows(asked[SHOWN_AT], batch[FOUND], measures + 2)
    heads_at, taken = IN_BATCH + 3 * ALL_HEADS, 0
    heads = int64_row(batch[heads_at], batch[heads_at + 2])
    for match in range(batch[FOUND]):
        start, length = found[match, 1], found[match, 2]
        numbers = whole_row(int64_row(heads[found[match, 0]], HEAD_SIZE), NUMBERS)
        shown[match, 0], shown[match, 1] = found[match, 0], found[match, 3]
        for measure in range(measures):
            is_number, first, left = specs[measure, 0], specs[measure, 1], specs[measure, 2]
            shown[match, measure + 2] = found[match, 3] if is_number else -1
            for place in range(0 if is_number else length):
                position = place if first else length - 1 - place
                if sets[measure, steps[taken + position]]:
                    if left == 0:
                        shown[match, measure + 2] = numbers[start + position]
                        break
                    left -= 1
        taken += max(length, 0)
    batch[FOUND] = batch[STEPS_FOUND] = 0
    return 0


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
def row_step(door: Int64s) -> int:
    """Takes in the event at work, and lets time pass; how many rows there are to report, or what hinders it."""
    batch = int64_row(door[SEARCH], BATCH_SIZE)
    batch[OPEN], batch[HORIZON] = 1, door[PASSES_UNTIL] - 1
    if door[STAGE] != PASSES:
        heads_at = IN_BATCH + 3 * ALL_HEADS
        head = int64_row(int64_row(batch[heads_at], batch[heads_at + 2])[door[EVENT_KEY]], HEAD_SIZE)
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
            door[STAGE] = INSIDE
        hinders = searched(head, batch)
        if hinders != ALL_DONE:
            return HINDERED - hinders
        if batch[MOST_OPEN] > 0 and head[HIGH] - max(head[BEGIN] - batch[BACK], 0) > batch[MOST_OPEN]:
            return HINDERED - TOO_MANY_OPEN
        wait(head, batch, deadline(head))
        door[STAGE] = PASSES
    if batch[WAITING_PARTS] > 0:
        hinders = windows_passed(batch)
        if hinders != ALL_DONE:
            return HINDERED - hinders
    return int(batch[FOUND])


measure, step = Entry(measured), Entry(row_step)
# All that has to be compiled before single rows are taken in.
__all__ = ["arrive", "check_rows", "drop", "go_on", "measure", "pass_windows", "push_rows", "release_rows", "step"]
