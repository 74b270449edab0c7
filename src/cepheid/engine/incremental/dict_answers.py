"""One event as a dict in, and the rows of what it decides out, as dicts: in one call of a kernel.

A row of a match is a dict of dicts, and Python takes microseconds to make one. The kernel makes it of the dicts that
were sent, with the same functions that Python uses. Where it cannot, it says how many searches Python has to go on
with: the event has been taken in then, and whoever comes first with the lock goes on, or takes it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import linking
from cepheid.engine.incremental.dict_door import (
    ANSWERS_AT,
    DOOR_SIZE,
    HALF,
    HEAD_AT,
    LOG,
    OF_QUERY,
    OPEN,
    PENDING_AT,
    QUERIES,
    QUERIES_AT,
    QUIET,
    TOLD,
    instant_of,
    taken,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import KNOWN_ROOM, MATCHED, MATCHES, OUT_AT, PLACES, SIZES_AT
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import int64_row, int64_rows
from cepheid.engine.kernels.objects import (
    PythonObject,
    address,
    clear_error,
    collect_again,
    collect_nothing,
    dict_copy,
    dict_item,
    dict_set,
    give_back,
    list_append,
    list_item,
    list_new,
    whole_of,
)

# The numbers in `answers`. The dicts that rows and events are copies of, with None for all that they can have; names of
# variables, each with: is it a group? Names of columns, and among them the time; the names of the two times of a match;
# do matches say how many events fill each place? Are times whole numbers? Room for a flag.
ROW, EVENT, VARIABLES_AT, NAMES_AT, NAMES, CLOCK, START, END, SIZED, WHOLE, BEYOND = range(11)
ANSWERS_SIZE = 11


@borrowing
def shown(answers: Int64s, event: int) -> int:
    """The columns of an event as a dict of its own, to be given back; 0: there is no memory for it."""
    made = dict_copy(answers[EVENT])
    names = int64_row(answers[NAMES_AT], answers[NAMES])
    for place in range(answers[NAMES] if made != 0 else 0):
        value = dict_item(event, names[place])
        if value != 0 and dict_set(made, names[place], value) != 0:
            give_back(made)
            return 0
    return made


@borrowing
def put(into: int, name: int, made: int) -> bool:
    """Puts what was made under a name into a dict, which holds it from then on; False: it was not made."""
    if made == 0:
        return False
    done = dict_set(into, name, made) == 0
    give_back(made)
    return bool(done)


@borrowing
def group_of(door: Int64s, answers: Int64s, rows: Int64s) -> int:
    """A group of events as a list, to be given back; 0: there is no memory for it."""
    made = list_new(0)
    for row in rows if made != 0 else rows[:0]:
        event = shown(answers, list_item(door[LOG], row))
        done = event != 0 and list_append(made, event) == 0
        if event != 0:
            give_back(event)
        if not done:
            give_back(made)
            return 0
    return made


@borrowing
def put_times(door: Int64s, answers: Int64s, at: int, into: int, rows: Int64s) -> bool:
    """Puts the times of the first and the last event of a match into its row."""
    first, last, least, most = 0, 0, np.int64(0), np.int64(0)
    for row in rows:
        value = dict_item(list_item(door[LOG], row), answers[CLOCK])
        time = np.int64(whole_of(value, at) if answers[WHOLE] == 1 else instant_of(door, value))
        if first == 0 or time < least:
            first, least = value, time
        if last == 0 or time > most:
            last, most = value, time
    return bool(dict_set(into, answers[START], first) == 0 and dict_set(into, answers[END], last) == 0)


@borrowing
def put_match(door: Int64s, answers: Int64s, at: int, into: int, rows: Int64s, sizes: Int64s) -> bool:
    """Puts the events of a match into its row; False: there is no memory for them, or a group is empty."""
    variables = int64_rows(answers[VARIABLES_AT], len(sizes), 2)
    done, begin = put_times(door, answers, at, into, rows), 0
    for place in range(len(sizes)):
        end = begin + sizes[place]
        if done and variables[place, 1] == 1:
            done = end > begin and put(into, variables[place, 0], group_of(door, answers, rows[begin:end]))
        elif done and end > begin:
            done = put(into, variables[place, 0], shown(answers, list_item(door[LOG], rows[begin])))
        begin = end
    return done


@kernel
def put_rows(door: Int64s, head: Int64s, found: int) -> bool:
    """Puts the rows of the matches that a search found into a list; False: Python has to make them."""
    answers = int64_row(door[ANSWERS_AT], ANSWERS_SIZE)
    places, begin = head[PLACES], 0
    events, ones = int64_row(head[OUT_AT], head[MATCHED]), np.ones(places, np.int64)
    of_each = int64_rows(head[SIZES_AT], head[KNOWN_ROOM], places)
    for match in range(head[MATCHES]):
        sizes = of_each[match] if answers[SIZED] == 1 else ones
        end = begin
        for place in range(places):
            end += sizes[place]
        row = dict_copy(answers[ROW])
        done = row != 0 and put_match(door, answers, door[ANSWERS_AT] + 8 * BEYOND, row, events[begin:end], sizes)
        if done:
            done = list_append(found, row) == 0
        if row != 0:
            give_back(row)
        if not done:
            clear_error()
            return False
        begin = end
    return True


@kernel
def answered(given: PythonObject, found: PythonObject, at: int, how: int) -> int:
    """Takes an event in, and puts the rows of what it decides into a list: 0.

    Below 0: nothing has happened. Above: the event is taken in, so many searches are left to Python, and what is in the
    list does not count. With the lock, all of them are left to Python.
    """
    door = int64_row(at, DOOR_SIZE)
    pending = taken(given, at, how)
    if pending <= 0 or how != QUIET:
        return pending
    told = int64_rows(door[PENDING_AT], door[QUERIES], 2)
    if pending == 1 and door[ANSWERS_AT] != 0 and told[0, 1] > 0:
        query = int64_rows(door[QUERIES_AT], door[QUERIES], OF_QUERY)[told[0, 0]]
        head = int64_row(query[HEAD_AT], linking.HEAD_SIZE)
        collects = collect_nothing()  # or code of the user could run, and send something, before the rows are made
        done = put_rows(door, head, address(found))
        if collects != 0:
            collect_again()
        if done:
            door[TOLD] += head[MATCHES]
            head[MATCHES] = head[MATCHED] = 0
            return 0
    door[HALF], door[OPEN] = pending, 0
    return pending


take = Entry(answered)


class Answers:
    """What the kernel makes rows of, for one query without a name that shows the events of its matches."""

    def __init__(
        self,
        names: Sequence[str],
        variables: Sequence[tuple[str, bool]],
        columns: Sequence[str],
        time: str,
        whole: bool,
        sized: bool,
    ) -> None:
        own = [dict.fromkeys(names), dict.fromkeys(columns), "match_start", "match_end"]
        of_variables = np.array([(id(name), group) for name, group in variables], np.int64)
        of_columns = np.array([id(name) for name in columns], np.int64)
        clock = next(name for name in columns if name == time)
        numbers = np.zeros(ANSWERS_SIZE, np.int64)
        numbers[[ROW, EVENT, START, END]] = [id(each) for each in own]
        numbers[VARIABLES_AT], numbers[NAMES_AT] = of_variables.ctypes.data, of_columns.ctypes.data
        numbers[NAMES], numbers[CLOCK] = len(of_columns), id(clock)
        numbers[SIZED], numbers[WHOLE] = int(sized), int(whole)
        self.at = int(numbers.ctypes.data)
        self._kept: list[Any] = [*own, of_variables, of_columns, numbers, variables, columns]
