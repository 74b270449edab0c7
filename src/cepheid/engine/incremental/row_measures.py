"""What measures show of the matches of a row pattern: rows of the result, straight from the rows that were sent.

A value of the result is a column of some row, a number, or the label of a row. One kernel works out which row; others
copy the values, from Arrow's memory into a batch, or from dicts into dicts.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int32s, Int64Rows, Int64s, Uint8s
from cepheid.engine.incremental.arrow_memory import DATA, buffer_at, column_at, is_there, offset_of
from cepheid.engine.incremental.dict_door import LOG
from cepheid.engine.incremental.dict_door import ROWS as LOG_ROWS
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.pattern_door import ANSWER, OF_TELLING
from cepheid.engine.incremental.result_rows import (
    BATCH_AT,
    COLUMNS,
    COLUMNS_AT,
    OF_PART,
    PARTS,
    PARTS_AT,
    ROOM,
    USED,
    begin_batch,
    letters_of,
    new_array,
    new_column,
    new_room,
    part_of,
    row_of,
    set_bit,
    set_buffer,
    set_part,
    set_valid,
)
from cepheid.engine.incremental.result_rows import HEAD_SIZE as ROWS_SIZE
from cepheid.engine.incremental.row_push import (
    ALL_HEADS,
    BATCH_SIZE,
    FOUND,
    HEAD_SIZE,
    HIGH,
    IN_BATCH,
    NUMBERS,
    OUT,
    STEPS,
    STEPS_FOUND,
    short_row,
    whole_row,
)
from cepheid.engine.incremental.row_push import LABEL as LABELS_OF_STEPS
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int32_row, int64_row, int64_rows, uint8_rows
from cepheid.engine.kernels.objects import (
    PythonObject,
    address,
    clear_error,
    dict_item,
    dict_new,
    dict_set,
    fraction_object,
    fraction_of,
    give_back,
    list_append,
    list_item,
    list_size,
    whole_object,
)

# The numbers in `asked`: values of a row, steps of the program; for each value what it is; the steps that count; one
# row for each row of a match, those of empty matches, and steps that are not shown.
VALUES, STEPS_OF_PROGRAM, SPECS_AT, SETS_AT, EACH_ROW, OMITS_EMPTY, EXCLUDED_AT, ASKED_SIZE = range(8)
# Of a value: what it is; FIRST or LAST, how many before or after that, how many rows on; does it see the whole match?
WHAT, IS_FIRST, STEPS_ASIDE, SHIFT, FINAL, OF_SPEC = range(6)
# WHAT: the last but one three are numbers; the last one is computed of two columns that are fractions.
OWN_ROW, OTHER_ROW, LABEL, MATCH_NUMBER, ROW_NUMBER, COUNT, ARITHMETIC = range(7)
PLUS, MINUS, TIMES = range(3)
# The numbers behind those of `result_rows`: the names of labels as a batch, and as a list; the list of dicts that is
# the last part of the log, and the number of its first; names of columns, and None, by address. Where rows are noted,
# how many there are, and where their values lie; how many columns the result has, before those that others need; how
# many rows there is room for.
NAMES_AT, NAMES, DICTS, FIRST_DICT, COLUMN_NAMES_AT, NOTHING = range(ROWS_SIZE, ROWS_SIZE + 6)
ROWS_SHOWN_AT, ROWS_SHOWN, VALUES_FOUND_AT, COLUMNS_SHOWN, ROWS_ROOM = range(ROWS_SIZE + 6, ROWS_SIZE + 11)
SHOWN_SIZE = ROWS_SIZE + 11
# What single dicts need: the arrays `batch`, `asked` and `head` by address, and how much may be found.
BATCH_OF_SEARCH, ASKED_OF_RESULT, HEAD_OF_RESULT, MOST_FOUND, TELLING_SIZE = range(5)
# Of a column of the result: what it is, the column of the log and how wide that is, whether it holds fractions; what
# it is computed of and how. The names of it and of the log's column, by address.
OF_LOG, WIDTH, IS_FRACTION, LEFT, RIGHT, SIGN = range(1, 7)
OF_RESULT = 7


@borrowing
def position_seen(spec: Int64s, counts: Uint8s, steps: Int32s, first: int, end: int) -> int:
    """Where FIRST or LAST leads among the first rows of a match, whose steps begin somewhere; -1: nowhere."""
    left = spec[STEPS_ASIDE]
    for place in range(end):
        position = place if spec[IS_FIRST] else end - 1 - place
        if counts[steps[first + position]]:
            if left == 0:
                return position
            left -= 1
    return -1


@borrowing
def number_seen(counts: Uint8s, steps: Int32s, first: int, end: int) -> int:
    """How many of the first rows of a match count."""
    found = 0
    for position in range(end):
        if counts[steps[first + position]]:
            found += 1
    return found


@borrowing
def shown_row(asked: Int64s, head: Int64s, found: Int64s, steps: Int32s, first: int, at: int, row: Int64s) -> None:
    """Notes what a row of the result shows, seen from a position of a match (-1: it is empty); -1 for NULL."""
    values, start, length = asked[VALUES], found[1], found[2]
    specs = int64_rows(asked[SPECS_AT], values, OF_SPEC)
    sets = uint8_rows(asked[SETS_AT], values, asked[STEPS_OF_PROGRAM])
    numbers, labels = whole_row(head, NUMBERS), short_row(head, LABELS_OF_STEPS)
    for value in range(values):
        spec, what = specs[value], specs[value, WHAT]
        end = length if spec[FINAL] else at + 1
        row[value] = -1
        if what == OWN_ROW:
            row[value] = numbers[start + max(at, 0)] if asked[EACH_ROW] else numbers[start]
        elif length < 0 or what == ARITHMETIC:
            continue
        elif what == MATCH_NUMBER:
            row[value] = found[3]
        elif what == ROW_NUMBER:
            row[value] = at + 1 if at >= 0 else -1
        elif what == COUNT:
            row[value] = number_seen(sets[value], steps, first, end)
        else:
            position = position_seen(spec, sets[value], steps, first, end)
            target = start + position + spec[SHIFT]
            if position < 0 or target < 0 or target >= head[HIGH]:
                continue
            if what == OTHER_ROW:
                row[value] = numbers[target]
            elif start <= target < start + length:
                row[value] = labels[steps[first + target - start]]


@borrowing
def measured(batch: Int64s, asked: Int64s, shown: Int64Rows) -> int:
    """Notes for each row of the result the rows of the log, labels and numbers that it shows; how many rows it has."""
    made, taken = 0, 0
    at_out, at_steps, heads_at = IN_BATCH + 3 * OUT, IN_BATCH + 3 * STEPS, IN_BATCH + 3 * ALL_HEADS
    found = int64_rows(batch[at_out], batch[at_out + 1], batch[at_out + 2])
    steps = int32_row(batch[at_steps], batch[at_steps + 2])
    heads = int64_row(batch[heads_at], batch[heads_at + 2])
    excluded = int32_row(asked[EXCLUDED_AT], asked[STEPS_OF_PROGRAM])
    for match in range(batch[FOUND]):
        head, length = int64_row(heads[found[match, 0]], HEAD_SIZE), found[match, 2]
        if asked[EACH_ROW] == 0:
            shown_row(asked, head, found[match], steps, taken, length - 1, shown[made])
            made += 1
        elif length > 0:
            for position in range(length):
                if excluded[steps[taken + position]] == 0:
                    shown_row(asked, head, found[match], steps, taken, position, shown[made])
                    made += 1
        elif length < 0 or asked[OMITS_EMPTY] == 0:
            shown_row(asked, head, found[match], steps, taken, -1, shown[made])
            made += 1
        taken += max(length, 0)
    return made


@borrowing
def is_no_number(column: int, row: int) -> bool:
    """Is a fraction there, and no number?"""
    place = offset_of(column) + row
    value = float64_rows(buffer_at(column, DATA) + 8 * place, 1, 1)[0, 0]
    return bool(value != value and is_there(column, place))


@borrowing
def found_values(head: Int64s, shown: Int64Rows, rows: int, found: Int64Rows) -> int:
    """Finds out where values lie, and how much memory their rows take; -1: one lies elsewhere, or is no number."""
    parts = int64_rows(head[PARTS_AT], head[PARTS], OF_PART)
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], OF_RESULT)
    words = (head[COLUMNS] + 2) * 32
    for value in range(head[COLUMNS]):
        own, letters = columns[value], 0
        width = own[WIDTH]
        for row in range(rows if own[WHAT] <= LABEL else 0):
            event, place = shown[row, value], value * rows + row
            found[place, 0], found[place, 1] = head[NAMES_AT], event
            if event < 0:
                continue
            if own[WHAT] != LABEL:
                part = part_of(head, event)
                if parts[part, BATCH_AT] == 0:
                    return -1
                found[place, 0], found[place, 1] = parts[part, BATCH_AT], row_of(head, part, event)
            column = column_at(found[place, 0], own[OF_LOG])
            if own[IS_FRACTION] and is_no_number(column, found[place, 1]):
                return -1
            if width < 0:
                letters += letters_of(column, width, found[place, 1])
        words += rows // 32 + (letters + rows * max(abs(width), 8)) // 8
    return int(words)


@borrowing
def new_numbers(head: Int64s, shown: Int64Rows, value: int, rows: int) -> int:
    """A column of numbers."""
    array, valid, nulls = new_array(head, rows, 2, 0), new_room(head, (rows + 7) // 8), 0
    data = new_room(head, 8 * rows)
    numbers = int64_row(data, rows)
    for row in range(rows):
        if shown[row, value] >= 0:
            set_bit(valid, row, True)
            numbers[row] = shown[row, value]
        else:
            nulls += 1
    set_valid(array, valid, nulls)
    set_buffer(array, DATA, data)
    return array


@borrowing
def computed(sign: int, left: float, right: float) -> float:
    """A sum, a difference or a product."""
    if sign == PLUS:
        return left + right
    return left - right if sign == MINUS else left * right


@borrowing
def new_fractions(head: Int64s, shown: Int64Rows, found: Int64Rows, value: int, rows: int) -> int:
    """A column that is computed of two others; what is not a number is NULL."""
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], OF_RESULT)
    array, valid, nulls = new_array(head, rows, 2, 0), new_room(head, (rows + 7) // 8), 0
    data = new_room(head, 8 * rows)
    fractions = float64_rows(data, 1, rows)
    for row in range(rows):
        there, left, right = True, 0.0, 0.0
        for side in range(2):
            of = columns[value, LEFT + side]
            place = of * rows + row
            if there and shown[row, of] >= 0:
                column = column_at(found[place, 0], columns[of, OF_LOG])
                at = offset_of(column) + found[place, 1]
                there = is_there(column, at)
                left, right = right, float64_rows(buffer_at(column, DATA) + 8 * at, 1, 1)[0, 0]
            else:
                there = False
        made = computed(columns[value, SIGN], left, right)
        if there and made == made:
            set_bit(valid, row, True)
            fractions[0, row] = made
        else:
            nulls += 1
    set_valid(array, valid, nulls)
    set_buffer(array, DATA, data)
    return array


@kernel
def shown_rows(head: Int64s, rows: int) -> Int64Rows:
    """What is noted of so many rows."""
    return int64_rows(head[ROWS_SHOWN_AT], rows, head[COLUMNS])


@kernel
def measured_values(batch_at: int, asked_at: int, head_at: int) -> int:
    """Notes what the rows of the result show, and where that lies; what `found_values` says."""
    batch, asked, head = (
        int64_row(batch_at, BATCH_SIZE),
        int64_row(asked_at, ASKED_SIZE),
        int64_row(head_at, SHOWN_SIZE),
    )
    rows = measured(batch, asked, shown_rows(head, batch[FOUND] + batch[STEPS_FOUND]))
    batch[FOUND] = batch[STEPS_FOUND] = 0
    head[ROWS_SHOWN] = rows
    found = int64_rows(head[VALUES_FOUND_AT], rows * head[COLUMNS], 2)
    return found_values(head, shown_rows(head, rows), rows, found)


@kernel
def made_values(head_at: int) -> int:
    """Fills the memory with a batch of the rows of the result."""
    head = int64_row(head_at, SHOWN_SIZE)
    rows = head[ROWS_SHOWN]
    shown, found = shown_rows(head, rows), int64_rows(head[VALUES_FOUND_AT], rows * head[COLUMNS], 2)
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], OF_RESULT)
    parts, order = begin_batch(head, rows, head[COLUMNS_SHOWN]), np.empty(rows, np.int64)
    for value in range(head[COLUMNS_SHOWN]):
        own = columns[value]
        if own[WHAT] == ARITHMETIC:
            set_part(head, parts, value, new_fractions(head, shown, found, value, rows))
            continue
        if own[WHAT] > LABEL:
            set_part(head, parts, value, new_numbers(head, shown, value, rows))
            continue
        for row in range(rows):
            order[row] = row if shown[row, value] >= 0 else -1
        places = found[value * rows : (value + 1) * rows]
        set_part(head, parts, value, new_column(head, places, order, rows, own[OF_LOG], own[WIDTH]))
    return 1 if head[USED] <= head[ROOM] else 0


@borrowing
def put_value(head: Int64s, own: Int64s, into: int, name: int, log_name: int, event: int) -> bool:
    """Puts a value into a dict, which is a row of the result; False: there is no memory for it."""
    value = head[NOTHING]
    if own[WHAT] > LABEL and event >= 0:
        value = whole_object(event)
        if value == 0:
            return False
    elif own[WHAT] == LABEL and event >= 0:
        value = list_item(head[NAMES], event)
    elif event >= 0:
        value = dict_item(list_item(head[DICTS], event - head[FIRST_DICT]), log_name)
        if value == 0:
            value = head[NOTHING]
    done = dict_set(into, name, value) == 0
    if own[WHAT] > LABEL and event >= 0:
        give_back(value)
    return bool(done)


@borrowing
def put_computed(head: Int64s, shown: Int64s, value: int, into: int) -> bool:
    """Puts a value into a dict that is computed of two others; False: there is no memory for it."""
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], OF_RESULT)
    names = int64_rows(head[COLUMN_NAMES_AT], head[COLUMNS], 2)
    there, left, right = True, 0.0, 0.0
    for side in range(2):
        of, given = columns[value, LEFT + side], 0
        if shown[of] >= 0:
            given = dict_item(list_item(head[DICTS], shown[of] - head[FIRST_DICT]), names[of, 1])
        if given != 0 and given != head[NOTHING]:
            left, right = right, fraction_of(given)
        else:
            there = False
    made = computed(columns[value, SIGN], left, right)
    if not there or made != made:
        return bool(dict_set(into, names[value, 0], head[NOTHING]) == 0)
    fraction = fraction_object(made)
    if fraction == 0:
        return False
    done = dict_set(into, names[value, 0], fraction) == 0
    give_back(fraction)
    return bool(done)


@borrowing
def rows_of_dicts(batch: Int64s, asked: Int64s, head: Int64s, into: int) -> int:
    """Notes what the rows of the result show, and puts them into a list, as dicts; how many.

    -1: a value lies in no dict, or there is no memory.
    """
    rows = measured(batch, asked, shown_rows(head, batch[FOUND] + batch[STEPS_FOUND]))
    head[ROWS_SHOWN], shown = rows, shown_rows(head, rows)
    columns = int64_rows(head[COLUMNS_AT], head[COLUMNS], OF_RESULT)
    names = int64_rows(head[COLUMN_NAMES_AT], head[COLUMNS], 2)
    for value in range(head[COLUMNS]):
        for row in range(rows if columns[value, WHAT] < LABEL else 0):
            if 0 <= shown[row, value] < head[FIRST_DICT]:
                return -1
    for row in range(rows):
        made = dict_new()
        done = made != 0
        for value in range(head[COLUMNS_SHOWN]):
            if done and columns[value, WHAT] == ARITHMETIC:
                done = put_computed(head, shown[row], value, made)
            elif done:
                done = put_value(head, columns[value], made, names[value, 0], names[value, 1], shown[row, value])
        if done:
            done = list_append(into, made) == 0
        if made != 0:
            give_back(made)
        if not done:
            clear_error()
            return -1
    return rows


@kernel
def measured_dicts(given: PythonObject, batch_at: int, asked_at: int, head_at: int) -> int:
    """The same for Python: what is found is told by this."""
    batch = int64_row(batch_at, BATCH_SIZE)
    rows = rows_of_dicts(batch, int64_row(asked_at, ASKED_SIZE), int64_row(head_at, SHOWN_SIZE), address(given))
    batch[FOUND] = batch[STEPS_FOUND] = 0
    return rows


@kernel
def told_dicts(door: Int64s) -> int:
    """The same for a single dict that was taken in; -1: Python has to look at what is found."""
    of = int64_row(door[OF_TELLING], TELLING_SIZE)
    batch, head = int64_row(of[BATCH_OF_SEARCH], BATCH_SIZE), int64_row(of[HEAD_OF_RESULT], SHOWN_SIZE)
    if batch[FOUND] > of[MOST_FOUND] or batch[FOUND] + batch[STEPS_FOUND] > head[ROWS_ROOM]:
        return -1
    head[DICTS] = door[LOG]
    head[FIRST_DICT] = door[LOG_ROWS] - list_size(door[LOG])
    rows = rows_of_dicts(batch, int64_row(of[ASKED_OF_RESULT], ASKED_SIZE), head, door[ANSWER])
    if rows >= 0:
        batch[FOUND] = batch[STEPS_FOUND] = 0
    return rows


measure_values, make_values, measure_dicts = Entry(measured_values), Entry(made_values), Entry(measured_dicts)
tell_dicts = Entry(told_dicts)
