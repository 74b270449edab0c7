"""Row patterns, row by row: the rows of each partition and its unfinished attempt stay in arrays between calls.

All that is known of a partition is reached from one array, `head`, which holds numbers and the addresses of the other
arrays. New rows are put behind those that are there, and the search goes on with the attempt that ran out of rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cepheid.engine.data.arrays import Float64Rows, Int32s, Int64Rows, Int64s, Uint8Rows, Uint8s
from cepheid.engine.data.columns import Columns
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.heap import drop_earliest, put_entry
from cepheid.engine.kernels.memory import float64_rows, function_at, int32_row, int64_row, int64_rows, uint8_rows
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.row_pattern.kernel import (
    AT_ROW,
    FAILURES,
    MARKS,
    OUT_OF_ROOM,
    RESUMES,
    UNMATCHED,
    UNSETTLED,
    Mode,
    Rows,
    Scratch,
    attempt,
    is_hopeless,
    next_start,
    settle,
)
from cepheid.engine.search.row_pattern.memory import Memory
from cepheid.engine.search.row_pattern.path_state import HIGH as HIGH_OF_PARTITION
from cepheid.engine.search.row_pattern.path_state import LOW as LOW_OF_PARTITION
from cepheid.engine.search.row_pattern.path_state import NUMBER as NUMBER_OF_MATCH
from cepheid.engine.search.row_pattern.path_state import ROW, START, Judging, PathState
from cepheid.engine.search.row_pattern.program import Program

# The numbers in `head`: the partition's rows, and where its search stands.
LOW, HIGH, BEGIN, MATCH, MATCHED, KNOWN, UNSET, LAZY, ROOM = range(9)
# The clause: a label that every match has, the window, and what it asks for; the program; the conditions.
NEEDED, WITHIN, SKIP, UNMATCHED_TOO, AHEAD, SHOWN_AHEAD, LONGEST, ALLOWANCE = range(9, 17)
REGISTER_COUNT, BITS, LASTING, ACTIVE, FIXED, PREDICATE_AT, SELF = range(17, 24)
# Where conditions on rows alone are judged here: labels, those with such conditions as bits (the last one: may a match
# begin?), and up to which row that is done.
LABELS, TESTED, JUDGED = range(24, 27)
# The partition's own number; does it wait in the queue of windows that pass, or to be searched? Room for a flag and
# three addresses.
OWN_NUMBER, QUEUED, GATHERED, BEYOND_64_BITS, COLUMNS_OF_ROWS = range(27, 32)
# Tables, three numbers for each: the address, rows and columns. First those that all partitions share.
TABLES = 34
KIND, LEFT, RIGHT, LABEL, EXIT, EXCLUDED, MEMORY_OF, ALWAYS, SKIP_LABELS = range(9)
ASKS, ENTRY, SETS, AGGREGATES, LITERAL, AT, RUNNING, EMPTY = range(9, 17)
OF_ROW_COUNTS, OF_ROW_PLACES, OF_ROW_COUNTED, OF_ROW_I, OF_ROW_F, OF_ROW_N = range(17, 23)  # in the order of COUNTS
# Then those of a partition, by row...
TIME, UPCOMING, BEGINS, NUMBERS, HOLDS, NULL, DEAD, WHOLE, NUMBER, TEXTS = range(23, 33)
# ... by position of a path, and room for an attempt.
COUNTS, PLACES, COUNTED, KEPT_I, KEPT_F, KEPT_N, PATH, BEST_PATH = range(33, 41)
CHOICES, TRAIL_AT, MARKS_AT, UNDO, REGISTERS, STATE, IS_WHOLE, NO_COUNTERS = range(41, 49)
NUMBER_OF_TABLES = 49
HEAD_SIZE = TABLES + 3 * NUMBER_OF_TABLES

# The numbers in `batch`: new rows by partition; what is found; partitions that wait for their windows to pass; how many
# rows a condition looks back, and how many of a partition may be undecided (0: any number); partitions whose new rows
# are not searched yet, from one to another.
OPEN, HORIZON, FOUND, STEPS_FOUND, DONE, WORK, WAITING_PARTS, BACK, MOST_OPEN, TO_SEARCH, TO_SEARCH_END = range(11)
HEADS, FROM, INTO, NEW_TIME, NEW_BEGINS, NEW_NUMBERS, NEW_HOLDS, NEW_NULL, NEW_WHOLE, NEW_NUMBER = range(10)
NEW_TEXTS, OUT, STEPS, ALL_HEADS, QUEUE, GATHERED_PARTS = range(10, 16)
IN_BATCH = 11
BATCH_SIZE = IN_BATCH + 48

# How a partition stands, as `forgotten` says.
HAD_ROWS, HAS_ROWS, BEGINS_AT, MATCHES, MATCHED_TO, STANDS_WHOLE, OF_STANDING = range(7)

# What a call returns: all is done; what hinders a partition; whether AFTER MATCH SKIP failed, and why, from 10 on.
ALL_DONE, NEEDS_ROWS, NEEDS_SCRATCH, NEEDS_RESULTS, NEEDS_MEMORY, STOPPED, PAUSED, TOO_MANY_OPEN = range(8)
SKIPS = 10
FAR = 2**62
SLOT_OF_ASK, SHIFT_OF_ASK = 1, 5
LONG = 32  # rows of an attempt in vain, after which the next one waits for the label that every match has
UNTIL_A_PAUSE = 1 << 20

# Copies that `searched` contains: to hand over tuples of fifty arrays takes longer than to look at a row.
attempt_here = inlined(getattr(attempt, "py_func", attempt))
is_hopeless_here = inlined(getattr(is_hopeless, "py_func", is_hopeless))


@kernel
def whole_table(head: Int64s, number: int) -> Int64Rows:
    """A table of whole numbers."""
    at = TABLES + 3 * number
    return int64_rows(head[at], head[at + 1], head[at + 2])


@kernel
def whole_row(head: Int64s, number: int) -> Int64s:
    """A row of whole numbers."""
    at = TABLES + 3 * number
    return int64_row(head[at], head[at + 2])


@kernel
def short_row(head: Int64s, number: int) -> Int32s:
    """A row of short whole numbers."""
    at = TABLES + 3 * number
    return int32_row(head[at], head[at + 2])


@kernel
def byte_table(head: Int64s, number: int) -> Uint8Rows:
    """A table of bytes."""
    at = TABLES + 3 * number
    return uint8_rows(head[at], head[at + 1], head[at + 2])


@kernel
def byte_row(head: Int64s, number: int) -> Uint8s:
    """A row of bytes."""
    at = TABLES + 3 * number
    row: npt.NDArray[np.uint8] = uint8_rows(head[at], 1, head[at + 2])[0]
    return row


@kernel
def number_table(head: Int64s, number: int) -> Float64Rows:
    """A table of fractions."""
    at = TABLES + 3 * number
    return float64_rows(head[at], head[at + 1], head[at + 2])


@inlined
def program_at(head: Int64s) -> Program:
    """The program of the pattern."""
    return Program(
        short_row(head, KIND),
        short_row(head, LEFT),
        short_row(head, RIGHT),
        short_row(head, LABEL),
        short_row(head, EXIT),
        short_row(head, EXCLUDED),
        short_row(head, MEMORY_OF),
        head[REGISTER_COUNT],
        head[BITS],
        head[LASTING],
    )


@inlined
def rows_at(head: Int64s) -> Rows:
    """The rows of the partition."""
    nothing = whole_row(head, EMPTY)
    return Rows(
        int64_row(head[SELF] + 8 * LOW, 2),
        whole_row(head, TIME),
        byte_row(head, ALWAYS),
        byte_table(head, HOLDS),
        nothing,
        nothing,
        nothing,
        byte_row(head, IS_WHOLE),
        nothing,
        whole_row(head, UPCOMING),
        byte_row(head, BEGINS),
    )


@inlined
def mode_at(head: Int64s, batch: Int64s) -> Mode:
    """What the clause asks for."""
    return Mode(
        head[WITHIN],
        head[SKIP],
        byte_row(head, SKIP_LABELS),
        head[UNMATCHED_TOO],
        batch[OPEN],
        batch[HORIZON],
        head[AHEAD],
        head[SHOWN_AHEAD],
        head[LONGEST],
        0,
        head[ALLOWANCE],
        0,
        FAR,
    )


@inlined
def columns_at(head: Int64s) -> Columns:
    """What conditions read."""
    return Columns(
        whole_table(head, WHOLE),
        number_table(head, NUMBER),
        byte_table(head, NULL),
        whole_row(head, LITERAL),
        float64_rows(head[SELF], 1, 0)[0],
        int64_rows(head[SELF], 0, 0),
    )


@inlined
def judge_at(head: Int64s, kept: int) -> PathState:
    """What is kept of a path, in six tables from one on: COUNTS, or OF_ROW_COUNTS for a path of one row."""
    counted = whole_row(head, kept + 2)
    return PathState(
        head[ACTIVE],
        whole_table(head, ASKS),
        whole_table(head, ENTRY),
        byte_table(head, SETS),
        whole_table(head, AGGREGATES),
        whole_table(head, kept),
        whole_table(head, kept + 1),
        counted[head[FIXED] :],
        whole_table(head, kept + 3),
        number_table(head, kept + 4),
        whole_table(head, kept + 5),
        whole_row(head, AT),
        counted,
        number_table(head, RUNNING)[0],
        columns_at(head),
    )


@borrowing
def judge_rows(head: Int64s) -> None:
    """Conditions on rows alone, of rows that are new: what texts say is known, the rest is judged here.

    Such a condition asks for rows before the one at hand, and for nothing else.
    """
    predicate, columns = function_at(head[PREDICATE_AT]), columns_at(head)
    holds, begins, texts = byte_table(head, HOLDS), byte_row(head, BEGINS), whole_row(head, TEXTS)
    at, counted, running = whole_row(head, AT), whole_row(head, OF_ROW_COUNTED), number_table(head, RUNNING)[0]
    asks, entry = whole_table(head, ASKS), whole_table(head, ENTRY)
    labels, tested, high = head[LABELS], head[TESTED], head[HIGH]
    counted[LOW_OF_PARTITION], counted[HIGH_OF_PARTITION], counted[NUMBER_OF_MATCH] = 0, high, 0
    for row in range(head[JUDGED], high):
        counted[START], counted[ROW] = row, row
        for label in range(labels + 1):
            held = texts[row] >> label & 1 == 1
            if held and tested >> label & 1 == 1:
                for index in range(entry[labels + label, 0], entry[labels + label, 1]):
                    asked = row + asks[index, SHIFT_OF_ASK]
                    at[asks[index, SLOT_OF_ASK]] = asked if 0 <= asked < high else -1
                held = predicate(labels + label, at, counted, running, columns)
            if label < labels:
                holds[label, row] = held
            elif len(begins) > 0:
                begins[row] = held
    head[JUDGED] = high


@inlined
def no_memory(head: Int64s) -> Memory:
    """A memory that is never used: no array is made, since that takes longer than to look at a row."""
    wholes, nothing = int64_rows(head[SELF], 0, 0), whole_row(head, EMPTY)
    bytes_ = uint8_rows(head[SELF], 0, 0)
    return Memory(wholes, bytes_, wholes, wholes, byte_row(head, EMPTY), nothing, whole_row(head, NO_COUNTERS))


@inlined
def scratch_at(head: Int64s) -> Scratch:
    """Room for an attempt, or one that is not finished."""
    return Scratch(
        short_row(head, PATH),
        whole_table(head, CHOICES),
        whole_row(head, TRAIL_AT),
        whole_row(head, MARKS_AT),
        whole_row(head, UNDO),
        whole_row(head, REGISTERS),
        whole_row(head, STATE),
        short_row(head, BEST_PATH),
        byte_table(head, DEAD),
    )


@borrowing
def look_for_needed(head: Int64s, known: int) -> None:
    """Notes for each row the next one that may have the label that every match has, as far as rows are known."""
    upcoming, holds = TABLES + 3 * UPCOMING, TABLES + 3 * HOLDS
    if head[NEEDED] < 0:
        return
    following = int64_row(head[upcoming], head[upcoming + 2])
    held = uint8_rows(head[holds], head[holds + 1], head[holds + 2])
    for row in range(head[KNOWN], known):
        if held[head[NEEDED], row]:
            for earlier in range(head[UNSET], row + 1):
                following[earlier] = row
            head[UNSET] = row + 1
    head[KNOWN] = max(head[KNOWN], known)


@borrowing
def searched(head: Int64s, batch: Int64s) -> int:
    """Goes on with the search of a partition; what hinders it, or ALL_DONE."""
    program, rows, mode, scratch = program_at(head), rows_at(head), mode_at(head, batch), scratch_at(head)
    judging, memory = Judging(judge_at(head, COUNTS), function_at(head[PREDICATE_AT])), no_memory(head)
    at_out, at_steps = IN_BATCH + 3 * OUT, IN_BATCH + 3 * STEPS
    out = int64_rows(batch[at_out], batch[at_out + 1], batch[at_out + 2])
    steps = int32_row(batch[at_steps], batch[at_steps + 2])
    high, partition = head[HIGH], head[OWN_NUMBER]
    if head[LABELS] > 0:
        judge_rows(head)
    look_for_needed(head, high - head[AHEAD] if mode.open else high)
    while head[BEGIN] < high:
        start = head[BEGIN]
        if stop_flag() != 0:
            return STOPPED
        if batch[FOUND] >= len(out) or batch[STEPS_FOUND] + high - start > len(steps):
            return NEEDS_RESULTS
        length, hopeless = UNMATCHED, is_hopeless_here(rows, mode, start, high)
        if hopeless and scratch.state[RESUMES]:
            settle(program, scratch, memory, UNSETTLED, mode.longest)
            head[LAZY] = int(scratch.state[AT_ROW] - start > LONG)
            scratch.state[RESUMES] = 0
        if not hopeless:
            waits = head[LAZY] and mode.open and mode.within > 0 and not mode.unmatched
            if waits and head[NEEDED] >= 0 and rows.upcoming[start] >= high and not scratch.state[RESUMES]:
                break
            head[LAZY] = 0
            length = attempt_here(program, rows, mode, judging, memory, scratch, 0, start, head[MATCH])
            batch[WORK] += 1 + scratch.state[MARKS]
            if length == UNSETTLED:
                break
            settle(program, scratch, memory, length, mode.longest)
        if mode.allowance > 0 and scratch.state[FAILURES] > mode.allowance:
            return NEEDS_MEMORY
        if length == OUT_OF_ROOM:
            return NEEDS_SCRATCH
        if mode.open and length > 0 and start + length + mode.shown_ahead > high:
            break
        if length == UNMATCHED:
            if mode.unmatched and start > head[MATCHED]:
                out[batch[FOUND], 0], out[batch[FOUND], 1], out[batch[FOUND], 2] = partition, start, UNMATCHED
                out[batch[FOUND], 3] = head[MATCH]
                batch[FOUND] += 1
            head[BEGIN] = start + 1
            continue
        onward = start + 1
        if length > 0:
            onward = next_start(program, mode, scratch.path, start, length)
            if onward < 0:
                return SKIPS - onward
        place = batch[FOUND]
        out[place, 0], out[place, 1], out[place, 2], out[place, 3] = partition, start, length, head[MATCH]
        batch[FOUND] = place + 1
        for position in range(length):
            steps[batch[STEPS_FOUND] + position] = scratch.path[position]
        batch[STEPS_FOUND] += length
        head[MATCH] += 1
        head[MATCHED] = max(head[MATCHED], start + length - 1)
        head[BEGIN] = onward
    scratch.state[FAILURES] = 0
    return ALL_DONE


@borrowing
def append_rows(head: Int64s, batch: Int64s, partition: int) -> None:
    """Puts the new rows of a partition where they belong; there is room for them."""
    place = IN_BATCH + 3 * FROM
    edges = int64_row(batch[place], batch[place + 2])
    place = IN_BATCH + 3 * INTO
    into = int64_row(batch[place], batch[place + 2])[partition]
    begin, end = edges[2 * partition], edges[2 * partition + 1]
    for number in range(3):
        new, own = IN_BATCH + 3 * (NEW_HOLDS + number), TABLES + 3 * (HOLDS + number if number < 2 else WHOLE)
        if number < 2:
            source = uint8_rows(batch[new], batch[new + 1], batch[new + 2])
            target = uint8_rows(head[own], head[own + 1], head[own + 2])
            for column in range(head[own + 1]):
                for row in range(begin, end):
                    target[column, into + row - begin] = source[column, row]
        else:
            wholes = int64_rows(batch[new], batch[new + 1], batch[new + 2])
            into_wholes = int64_rows(head[own], head[own + 1], head[own + 2])
            for column in range(head[own + 1]):
                for row in range(begin, end):
                    into_wholes[column, into + row - begin] = wholes[column, row]
    new, own = IN_BATCH + 3 * NEW_NUMBER, TABLES + 3 * NUMBER
    fractions = float64_rows(batch[new], batch[new + 1], batch[new + 2])
    into_fractions = float64_rows(head[own], head[own + 1], head[own + 2])
    for column in range(head[own + 1]):
        for row in range(begin, end):
            into_fractions[column, into + row - begin] = fractions[column, row]
    new, own = IN_BATCH + 3 * NEW_BEGINS, TABLES + 3 * BEGINS
    if head[own + 2] > 0:
        flags, into_flags = uint8_rows(batch[new], 1, batch[new + 2]), uint8_rows(head[own], 1, head[own + 2])
        for row in range(begin, end):
            into_flags[0, into + row - begin] = flags[0, row]
    for number in range(3 if head[LABELS] > 0 else 2):
        news, owns = (NEW_NUMBERS, NEW_TIME, NEW_TEXTS), (NUMBERS, TIME, TEXTS)
        new, own = IN_BATCH + 3 * news[number], TABLES + 3 * owns[number]
        values, into_values = int64_row(batch[new], batch[new + 2]), int64_row(head[own], head[own + 2])
        for row in range(begin, end):
            into_values[into + row - begin] = values[row]
    own = TABLES + 3 * UPCOMING
    if head[own + 2] > 0:
        following = int64_row(head[own], head[own + 2])
        for row in range(begin, end):
            following[into + row - begin] = FAR
    head[HIGH] = into + end - begin


@borrowing
def deadline(head: Int64s) -> int:
    """The time with which the window of the first row passes that is open; FAR: there is none."""
    if head[WITHIN] == 0 or head[BEGIN] >= head[HIGH]:
        return FAR
    at = TABLES + 3 * TIME
    return int(int64_row(head[at], head[at + 2])[head[BEGIN]] + head[WITHIN] - 1)


@borrowing
def wait(head: Int64s, batch: Int64s, time: int) -> None:
    """Puts a partition into the queue of windows that pass, if it has one and is not there; there is room."""
    if head[QUEUED] == 0 and time < FAR:
        at = IN_BATCH + 3 * QUEUE
        put_entry(int64_rows(batch[at], batch[at + 1], 2), batch[WAITING_PARTS], time, head[OWN_NUMBER])
        batch[WAITING_PARTS] += 1
        head[QUEUED] = 1


@borrowing
def windows_passed(batch: Int64s) -> int:
    """Goes on with the partitions whose windows have passed; what hinders it."""
    at, heads_at = IN_BATCH + 3 * QUEUE, IN_BATCH + 3 * ALL_HEADS
    queue, heads = int64_rows(batch[at], batch[at + 1], 2), int64_row(batch[heads_at], batch[heads_at + 2])
    while batch[OPEN] and batch[WAITING_PARTS] > 0 and queue[0, 0] <= batch[HORIZON]:
        head = int64_row(heads[queue[0, 1]], HEAD_SIZE)
        batch[DONE] = queue[0, 1]
        if deadline(head) <= batch[HORIZON]:
            hinders = searched(head, batch)
            if hinders != ALL_DONE:
                return hinders
        drop_earliest(queue, batch[WAITING_PARTS])
        batch[WAITING_PARTS] -= 1
        head[QUEUED] = 0
        # A match whose measures look ahead stays open: it is looked at again with time.
        wait(head, batch, max(deadline(head), batch[HORIZON] + 1))
    return ALL_DONE


@kernel
def pushed_rows(batch: Int64s, first: int) -> int:
    """Takes in the new rows of all partitions of a batch, from one on, and searches them; what hinders it."""
    place, edges_at, into_at = IN_BATCH + 3 * HEADS, IN_BATCH + 3 * FROM, IN_BATCH + 3 * INTO
    heads = int64_row(batch[place], batch[place + 2])
    for partition in range(first, len(heads)):
        batch[DONE] = partition
        head = int64_row(heads[partition], HEAD_SIZE)
        edges = int64_row(batch[edges_at], batch[edges_at + 2])
        into = int64_row(batch[into_at], batch[into_at + 2])
        number = edges[2 * partition + 1] - edges[2 * partition]
        if into[partition] + number + 1 > head[ROOM]:
            return NEEDS_ROWS
        append_rows(head, batch, partition)
        edges[2 * partition + 1], into[partition] = edges[2 * partition], head[HIGH]  # they are there now
        hinders = searched(head, batch)
        if hinders != ALL_DONE:
            return hinders
        wait(head, batch, deadline(head))
        if batch[WORK] > UNTIL_A_PAUSE:
            batch[WORK] = 0
            batch[DONE] = partition + 1
            return PAUSED
    return ALL_DONE


@kernel
def passed_windows(batch: Int64s) -> int:
    """The same as `windows_passed`, for Python."""
    return windows_passed(batch)


@borrowing
def drop_from(head: Int64s, rows: int, kept: int) -> None:
    """Moves what is kept of tables to the front, by so many rows."""
    for number in (HOLDS, NULL):
        at = TABLES + 3 * number
        flags = uint8_rows(head[at], head[at + 1], head[at + 2])
        for column in range(head[at + 1]):
            for row in range(kept):
                flags[column, row] = flags[column, row + rows]
    for number in (WHOLE, NUMBER):  # fractions are moved as they are, too
        at = TABLES + 3 * number
        values = int64_rows(head[at], head[at + 1], head[at + 2])
        for column in range(head[at + 1]):
            for row in range(kept):
                values[column, row] = values[column, row + rows]
    for number in (TIME, UPCOMING, NUMBERS, TEXTS):
        at = TABLES + 3 * number
        if head[at + 2] > 0:
            along = int64_row(head[at], head[at + 2])
            for row in range(kept):
                along[row] = along[row + rows]
                if number == UPCOMING and along[row] < FAR:
                    along[row] -= rows
    at = TABLES + 3 * BEGINS
    if head[at + 2] > 0:
        begins = uint8_rows(head[at], 1, head[at + 2])
        for row in range(kept):
            begins[0, row] = begins[0, row + rows]
    at = TABLES + 3 * DEAD
    dead = uint8_rows(head[at], head[at + 1], head[at + 2])
    for row in range(head[at + 1]):
        for byte in range(head[at + 2]):
            dead[row, byte] = dead[row + rows, byte] if row <= kept else 0


@borrowing
def drop_rows(head: Int64s, rows: int) -> None:
    """Forgets the first rows of a partition; an attempt that is not finished begins anew."""
    scratch = scratch_at(head)
    if scratch.state[RESUMES]:
        settle(program_at(head), scratch, no_memory(head), UNSETTLED, 0)
        scratch.state[RESUMES] = 0
    high = head[HIGH]
    drop_from(head, rows, high - rows)
    head[HIGH], head[BEGIN], head[MATCHED] = high - rows, head[BEGIN] - rows, max(head[MATCHED] - rows, -1)
    for place in (KNOWN, UNSET, JUDGED):
        head[place] = max(head[place] - rows, 0)
    byte_row(head, IS_WHOLE)[0] = 0


@kernel
def dropped(head: Int64s, rows: int) -> int:
    """The same, for Python."""
    drop_rows(head, rows)
    return 0


@kernel
def forgotten(batch: Int64s, which: Uint8s, stands: Int64Rows) -> int:
    """Forgets the rows of all partitions that no later match needs, and notes in `which` those that stay in the log.

    Says of each partition how many rows it had and has, and where its search stands, as `Resume` does.
    """
    place = IN_BATCH + 3 * ALL_HEADS
    heads = int64_row(batch[place], batch[place + 2])
    for partition in range(len(stands)):
        head, own = int64_row(heads[partition], HEAD_SIZE), stands[partition]
        unused, numbers = max(head[BEGIN] - batch[BACK], 0), whole_row(head, NUMBERS)
        own[HAD_ROWS], own[HAS_ROWS] = head[HIGH], head[HIGH] - unused
        if unused > 0:
            drop_rows(head, unused)
        for row in range(head[HIGH]):
            which[numbers[row]] = 1
        own[BEGINS_AT], own[MATCHES], own[MATCHED_TO] = head[BEGIN], head[MATCH], head[MATCHED]
        own[STANDS_WHOLE] = byte_row(head, IS_WHOLE)[0]
    return 0


@kernel
def renumbered(batch: Int64s, parts: int, numbers: Int64s) -> int:
    """Rows of so many partitions have other numbers in the log from here on."""
    place = IN_BATCH + 3 * ALL_HEADS
    heads = int64_row(batch[place], batch[place + 2])
    for partition in range(parts):
        head = int64_row(heads[partition], HEAD_SIZE)
        own = whole_row(head, NUMBERS)
        for row in range(head[HIGH]):
            own[row] = numbers[own[row]]
    return 0


push_rows = Entry(pushed_rows)
pass_windows = Entry(passed_windows)
drop = Entry(dropped)
forget = Entry(forgotten)
renumber = Entry(renumbered)
