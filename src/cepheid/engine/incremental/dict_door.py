"""One event as a dict, straight into the searches of the queries that mention its type: a kernel reads it.

All that it needs is reached from one array, `door`, whose address Python hands over with the event. An event is taken
in by that one call, whole or not at all, and no lock is needed: Python's own holds meanwhile. Where there is no room,
nothing has happened, and the caller comes again with the lock of the live query.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import alone, linking, one_event
from cepheid.engine.incremental.alone import FIRSTS, passing
from cepheid.engine.incremental.linking import append, may_end, next_deadline, release
from cepheid.engine.incremental.stepping import searched
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int64_row, int64_rows, uint8_rows
from cepheid.engine.kernels.objects import (
    HAS_ZONE,
    KIND,
    PARTS_OF_TIME,
    ZONE,
    PythonObject,
    address,
    clear_error,
    dict_copy,
    dict_item,
    dict_set,
    dict_size,
    fraction_of,
    give_back,
    hold,
    letters_of,
    list_append,
    tuple_of,
    tuple_set,
    whole_object,
    whole_of,
)

FAR = 2**62  # times beyond are none
# The numbers in `door`. May events come without the lock? How many calls there were, the newest time, that of events
# that were only looked at, the time from which a match may be known, how late events may be, what had passed before.
OPEN, CALLS, NEWEST, CHECKED, DUE, DELAY, PASSED = range(7)
# Events that came; the event that was taken in last, by its address; the list that events are kept in (0: none), how
# many there are, and how many there may be; do ties count, the time of the latest event that was kept and its row (-1:
# it is told elsewhere); a time that the caller worked out; room for a flag.
EVENTS, TAKEN, LOG, ROWS, MOST_ROWS, TIES, RECENT_TIME, RECENT_ROW, GIVEN, BEYOND = range(7, 17)
# Matches that were told; what rows of matches are made of (`dict_answers`; 0: Python makes them); the searches that
# Python goes on with after an event was taken in, and before anything else happens (0: none).
TOLD, ANSWERS_AT, HALF = range(17, 20)
# The columns: how many, and their table; the values of this event; the dict of types, and what takes all others.
COLUMNS, COLUMNS_AT, VALUES_AT, CODES, OTHERS, UTC_AT, NONE_KIND = range(20, 27)
# Who takes events of a type, from where to where in the table of takers; queries; what columns are filled from; who
# takes this event; searches that Python goes on with; possible last events of matches, a queue of times and queries.
RANGES_AT, CODES_KNOWN, TAKERS_AT, TAKERS, QUERIES_AT, QUERIES, FILLS_AT, FILLS, CHOSEN_AT, PENDING_AT = range(27, 37)
# ... and how often the kernel was entered; do queries wait for windows to pass?
ENDS_AT, ENDS_ROOM, ENDS_FIRST, ENDS_LAST, ENTERED, LATE = range(37, 43)
# Where the numbers of a row of a table are, by column: then of these its values say only whether they are there. 0: all
# values are objects.
RAWS_AT = 43
# What some of these were before the last call: newest time, events, rows, the latest event's time and number, matches.
BEFORE = 44
CLOSES = 50  # the time from which a bucket of totals is over
DOOR_SIZE = 51

# Of a column: its name and the type of its values, by address; is it the time, the type, a whole number, a text?
NAME, VALUE_KIND, ROLE, STORED = range(4)
PLAIN, IS_TIME, IS_TYPE = range(3)
IN_WHOLES, IN_NUMBERS, IN_TEXTS, NOWHERE = range(4)
OF_COLUMN = 4
# Of a query: its search, the dict of its keys and their columns, conditions on one event, and what they and the search
# are filled from; the call in which it was last searched; where keys that are whole numbers were seen last with their
# own numbers (0: keys are others), and how many there is room for.
HEAD_AT, KEYS, KEY_FROM, KEY_TO, ALONE_AT, ALONE_FROM, ALONE_TO, FILL_FROM, FILL_TO, EVERY, STEPPED = range(11)
SEEN_AT, SEEN = 11, 12
OF_QUERY = 13
# Of what is filled: the column, where its values go and in which row, and the row of what is NULL.
COLUMN, STORAGE, ROW_OF_VALUE, ROW_OF_NULL = range(4)
OF_FILL = 4
# Of a taker that takes an event: its query, the components, those that the event can begin, and the key.
QUERY, MASK, BEGINS, NUMBER_OF_KEY = range(4)
OF_CHOSEN = 4

QUIET, LOCKED, CHECKS, HOLDS = range(4)  # how an event is taken in: HOLDS lets no time pass
LONG_WAY, NEEDS_LOCK, NEEDS_ROOM, NO_KEY = (
    -1,
    -2,
    -3,
    -4,
)  # what a call returns, if not how many searches Python goes on with


@borrowing
def instant_of(door: Int64s, value: int) -> int:
    """The microseconds of a datetime, without a zone or in UTC; FAR: it is another one."""
    has_zone = uint8_rows(value + HAS_ZONE, 1, 1)[0, 0] != 0
    if has_zone != (door[UTC_AT] != 0):
        return FAR
    if has_zone and int64_row(value + ZONE, 1)[0] != door[UTC_AT]:
        return FAR
    parts = uint8_rows(value + PARTS_OF_TIME, 1, 10)
    year, month = np.int64(parts[0, 0]) * 256 + np.int64(parts[0, 1]), np.int64(parts[0, 2])
    if month <= 2:  # days by the civil calendar, in years that begin in March
        year -= 1
        month += 12
    days = 365 * year + year // 4 - year // 100 + year // 400 + (153 * (month - 3) + 2) // 5
    days += np.int64(parts[0, 3]) - 719469
    seconds = (np.int64(parts[0, 4]) * 60 + np.int64(parts[0, 5])) * 60 + np.int64(parts[0, 6])
    micros = (np.int64(parts[0, 7]) * 256 + np.int64(parts[0, 8])) * 256 + np.int64(parts[0, 9])
    return int((days * 86_400 + seconds) * 1_000_000 + micros)


@borrowing
def time_of(door: Int64s, at: int, event: int, how: int) -> int:
    """Reads the values of an event, as addresses, and its time; FAR: it is not as the schema has it."""
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    time, found = FAR, 0
    for column in range(door[COLUMNS]):
        value = dict_item(event, columns[column, NAME])
        values[column] = 0
        if value == 0:
            continue
        found += 1
        kind = int64_row(value + KIND, 1)[0]
        if kind == door[NONE_KIND]:
            continue
        if kind != columns[column, VALUE_KIND]:
            return FAR
        values[column] = value
        if columns[column, STORED] == IN_WHOLES:
            whole = whole_of(value, at + 8 * BEYOND)
            if int64_row(at + 8 * BEYOND, 1)[0] != 0:
                return FAR
            if columns[column, ROLE] == IS_TIME:
                time = whole
        elif columns[column, ROLE] == IS_TIME:
            time = instant_of(door, value) if how == QUIET else door[GIVEN]
    return time if found == dict_size(event) else FAR


@borrowing
def code_of(door: Int64s, at: int) -> int:
    """Who takes the event, as a row of the table of ranges; -1: nobody."""
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for column in range(door[COLUMNS]):
        if columns[column, ROLE] == IS_TYPE and values[column] != 0:
            code = dict_item(door[CODES], values[column])
            if code != 0:
                return whole_of(code, at + 8 * BEYOND)
    return int(door[OTHERS])


@borrowing
def are_texts(door: Int64s) -> bool:
    """Are its texts such that Arrow takes them?"""
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for column in range(door[COLUMNS]):
        if columns[column, STORED] == IN_TEXTS and values[column] != 0 and letters_of(values[column], 0) == 0:
            clear_error()
            return False
    return True


@borrowing
def filled(door: Int64s, rooms: Int64s, span: Int64s, length: int, place: int, beyond: int) -> None:
    """Writes what conditions read of the event to a place in columns of a length, which lie at three addresses."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for fill in range(span[0], span[1]):
        column, row = fills[fill, COLUMN], fills[fill, ROW_OF_VALUE]
        value = values[column]
        null = uint8_rows(rooms[2] + fills[fill, ROW_OF_NULL] * length, 1, length)
        null[0, place] = 1 if value == 0 else 0
        if fills[fill, STORAGE] == IN_WHOLES:
            wholes = int64_row(rooms[0] + 8 * row * length, length)
            if value != 0 and door[RAWS_AT] != 0:
                wholes[place] = int64_row(door[RAWS_AT], door[COLUMNS])[column]
            else:
                wholes[place] = 0 if value == 0 else whole_of(value, beyond)
        else:
            numbers = float64_rows(rooms[1] + 8 * row * length, 1, length)
            if value != 0 and door[RAWS_AT] != 0:
                numbers[0, place] = float64_rows(door[RAWS_AT], 1, door[COLUMNS])[0, column]
            else:
                numbers[0, place] = 0.0 if value == 0 else fraction_of(value)


@kernel
def passed_alone(door: Int64s, at: int, query: Int64s, mask: int) -> int:
    """The components that an event can fill by conditions on it alone, and those it can begin, as `passing` tells."""
    head = int64_row(query[ALONE_AT], alone.COMPONENTS + 1)
    rooms, span = head[one_event.WHOLE_AT : one_event.NULL_AT + 1], query[ALONE_FROM : ALONE_TO + 1]
    filled(door, rooms, span, 1, 0, at + 8 * BEYOND)
    return passing(head, mask)


@borrowing
def new_key(query: Int64s, value: int) -> int:
    """Gives a key the next number."""
    number = dict_size(query[KEYS])
    made = whole_object(number)
    if made == 0 or dict_set(query[KEYS], value, made) != 0:
        clear_error()
        number = LONG_WAY
    if made != 0:
        give_back(made)
    return number


@borrowing
def key_of(door: Int64s, query: Int64s) -> int:
    """The key of the event as an object, to be given back; 0: a part of it is NULL; -1: it cannot be told here."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for part in range(query[KEY_FROM], query[KEY_TO]):
        if values[fills[part, COLUMN]] == 0:
            return 0
    parts = query[KEY_TO] - query[KEY_FROM]
    if parts == 1:
        return held_value(door, fills[query[KEY_FROM], COLUMN])
    entered = door[ENTERED]
    made = tuple_of(parts)  # Python may collect garbage here, and so call code that sends something
    if made == 0 or door[ENTERED] != entered:
        clear_error()
        return -1
    for part in range(parts):
        value = held_value(door, fills[query[KEY_FROM] + part, COLUMN])
        if value < 0:
            give_back(made)
            return -1
        tuple_set(made, part, value)
    return made


@borrowing
def held_value(door: Int64s, column: int) -> int:
    """A value that is there as an object, to be given back; -1: there is no memory for it."""
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    if door[RAWS_AT] == 0 or columns[column, STORED] != IN_WHOLES:
        value = int64_row(door[VALUES_AT], door[COLUMNS])[column]
        hold(value)
        return int(value)
    made = whole_object(int64_row(door[RAWS_AT], door[COLUMNS])[column])
    if made == 0:
        clear_error()
        return -1
    return made


@borrowing
def number_seen(door: Int64s, query: Int64s, number: int) -> int:
    """The number of a key that is one whole number, if it was seen lately; or notes it (from 0 on). -1: it was not."""
    if door[RAWS_AT] == 0 or query[SEEN_AT] == 0:
        return -1
    column = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)[query[KEY_FROM], COLUMN]
    if int64_row(door[VALUES_AT], door[COLUMNS])[column] == 0:
        return -1
    key = int64_row(door[RAWS_AT], door[COLUMNS])[column]
    seen = int64_row(query[SEEN_AT] + 16 * ((key ^ (key >> 16)) & (query[SEEN] - 1)), 2)
    if number >= 0:
        seen[0], seen[1] = key, number + 1
    return int(seen[1] - 1 if seen[0] == key else -1)


@borrowing
def number_of(door: Int64s, query: Int64s, head: Int64s, beyond: int) -> int:
    """The number of the event's key, a new one gets the next; NO_KEY: it has none, or what is lacking."""
    number = number_seen(door, query, -1)
    if number >= 0:
        return number
    key = key_of(door, query)
    if key <= 0:
        return NO_KEY if key == 0 else LONG_WAY
    known = dict_item(query[KEYS], key)
    if known != 0:
        number = whole_of(known, beyond)
    elif dict_size(query[KEYS]) >= head[linking.KEY_ROOM]:
        number = NEEDS_ROOM
    else:
        number = new_key(query, key)  # it stays, should nothing come of the event: that does no harm
    give_back(key)
    if number >= 0:
        number_seen(door, query, number)
    return number


@kernel
def choose(door: Int64s, at: int, code: int) -> int:
    """Puts down which queries take the event, with its key and components, and says how many; or what is lacking."""
    ranges = int64_rows(door[RANGES_AT], door[CODES_KNOWN], 2)
    takers = int64_rows(door[TAKERS_AT], door[TAKERS], 2)
    queries = int64_rows(door[QUERIES_AT], door[QUERIES], OF_QUERY)
    chosen = int64_rows(door[CHOSEN_AT], door[QUERIES], OF_CHOSEN)
    found = 0
    for taker in range(ranges[code, 0], ranges[code, 1]):
        number, mask = takers[taker, 0], takers[taker, 1]
        query = queries[number]
        head = int64_row(query[HEAD_AT], linking.HEAD_SIZE)
        begins = mask
        if query[ALONE_AT] != 0 and mask != 0:
            both = passed_alone(door, at, query, mask)
            mask, begins = both >> FIRSTS, both & ((1 << FIRSTS) - 1)
        if mask == 0 and query[EVERY] == 0:
            continue
        key = 0
        if query[KEY_TO] > query[KEY_FROM]:
            key = number_of(door, query, head, at + 8 * BEYOND)
            if key == NO_KEY and head[linking.STRICT] == 0:
                continue
            if key == NO_KEY:
                key, mask, begins = 0, linking.OF_NO_KEY, 0
            if key < 0:
                return key
        if head[linking.SIZE] >= head[linking.ROOM]:
            return NEEDS_ROOM
        row = chosen[found]
        row[QUERY], row[MASK], row[BEGINS], row[NUMBER_OF_KEY] = number, mask, begins, key
        found += 1
    if door[ENDS_LAST] + found > door[ENDS_ROOM]:
        return NEEDS_ROOM
    return found


@borrowing
def keep(door: Int64s, event: int) -> int:
    """Puts a copy of the event into the list; 0: that did not happen."""
    entered, rows = door[ENTERED], door[LOG]
    copied = dict_copy(event)  # Python may collect garbage here, and so call code that sends something
    if copied == 0:
        clear_error()
        return 0
    kept = 0
    if door[ENTERED] == entered and door[LOG] == rows:
        if list_append(rows, copied) == 0:
            kept = 1
        else:
            clear_error()
    give_back(copied)
    return kept


@borrowing
def add_end(door: Int64s, time: int, query: int) -> None:
    """An event may be the last one of a match: it is searched when time has passed it."""
    ends = int64_rows(door[ENDS_AT], door[ENDS_ROOM], 2)
    ends[door[ENDS_LAST], 0], ends[door[ENDS_LAST], 1] = time, query
    door[ENDS_LAST] += 1
    door[DUE] = min(door[DUE], time + door[DELAY])  # the window of another query's first event may pass before


@kernel
def search(door: Int64s, query: Int64s, number: int, until: int, pending: int) -> int:
    """Lets time pass for a query; how many searches there are now that Python goes on with."""
    head = int64_row(query[HEAD_AT], linking.HEAD_SIZE)
    query[STEPPED] = door[CALLS]
    if head[linking.AFTER] >= until:
        return pending
    release(head, until, False)
    returned = np.int64(searched(head))
    if returned != 0:
        told = int64_rows(door[PENDING_AT], door[QUERIES], 2)
        told[pending, 0], told[pending, 1] = number, returned
        pending += 1
    return pending


@kernel
def pass_windows(door: Int64s, until: int, pending: int) -> int:
    """Searches the queries of which the window of a first event has passed."""
    queries = int64_rows(door[QUERIES_AT], door[QUERIES], OF_QUERY)
    for number in range(door[QUERIES]):
        query = queries[number]
        head = int64_row(query[HEAD_AT], linking.HEAD_SIZE)
        if next_deadline(head) <= until and query[STEPPED] != door[CALLS]:
            pending = search(door, query, number, until, pending)
        door[DUE] = min(door[DUE], next_deadline(head) + door[DELAY])
    return pending


@kernel
def pass_time(door: Int64s, until: int, pending: int) -> int:
    """Searches the queries of which an event up to a time may be the last one of a match, unless this call did so."""
    ends = int64_rows(door[ENDS_AT], door[ENDS_ROOM], 2)
    queries = int64_rows(door[QUERIES_AT], door[QUERIES], OF_QUERY)
    while door[ENDS_FIRST] < door[ENDS_LAST] and ends[door[ENDS_FIRST], 0] <= until:
        number = ends[door[ENDS_FIRST], 1]
        door[ENDS_FIRST] += 1
        if queries[number, STEPPED] != door[CALLS]:
            pending = search(door, queries[number], number, until, pending)
    if door[ENDS_FIRST] == door[ENDS_LAST]:
        door[ENDS_FIRST] = door[ENDS_LAST] = 0
        door[DUE] = FAR
    else:
        door[DUE] = ends[door[ENDS_FIRST], 0] + door[DELAY]
    return pass_windows(door, until, pending) if door[LATE] == 1 else pending


@borrowing
def note(door: Int64s, event: int, time: int) -> None:
    """Says that an event has come, and what was before."""
    for place, field in enumerate((NEWEST, EVENTS, ROWS, RECENT_TIME, RECENT_ROW, TOLD)):
        door[BEFORE + place] = door[field]
    door[CALLS] += 1
    door[EVENTS] += 1
    door[NEWEST], door[TAKEN] = time, event


@kernel
def push(door: Int64s, at: int, number: int, time: int, until: int) -> int:
    """Takes the event in for the queries that were chosen; `until` -FAR: no time passes."""
    queries = int64_rows(door[QUERIES_AT], door[QUERIES], OF_QUERY)
    chosen = int64_rows(door[CHOSEN_AT], door[QUERIES], OF_CHOSEN)
    pending = 0
    for taken in range(number):
        row = chosen[taken]
        query = queries[row[QUERY]]
        head = int64_row(query[HEAD_AT], linking.HEAD_SIZE)
        rooms, span = head[linking.WHOLE_AT : linking.NULL_AT + 1], query[FILL_FROM : FILL_TO + 1]
        filled(door, rooms, span, head[linking.ROOM], head[linking.SIZE], at + 8 * BEYOND)
        append(head, time, row[NUMBER_OF_KEY], row[MASK], row[BEGINS], door[ROWS])
        if until > -FAR:
            pending = search(door, query, row[QUERY], until, pending)
        if may_end(head):
            add_end(door, time, row[QUERY])
        if door[LATE] == 1:
            door[DUE] = min(door[DUE], next_deadline(head) + door[DELAY])
    door[ROWS] += 1
    return pending


@kernel
def taken(given: PythonObject, at: int, how: int) -> int:
    """Takes an event in; how many searches Python goes on with, or why nothing has happened."""
    door, event = int64_row(at, DOOR_SIZE), address(given)
    door[ENTERED] += 1
    door[TAKEN] = door[RAWS_AT] = 0
    if how == QUIET and door[OPEN] == 0:
        return LONG_WAY
    time = time_of(door, at, event, how)
    if time < (door[CHECKED] if how == CHECKS else door[NEWEST]) or time >= FAR:
        return LONG_WAY
    if how == QUIET and time >= door[CLOSES]:
        return NEEDS_LOCK
    code = code_of(door, at)
    if how == CHECKS:
        door[CHECKED] = time
        return 0 if are_texts(door) else LONG_WAY
    due = time > door[DUE] and how != HOLDS
    number = 0
    if code >= 0:
        number = choose(door, at, code)
        if number < 0:
            return number
    if number > 0:
        if door[LOG] == 0:
            return NEEDS_ROOM
        if how == QUIET and (door[ROWS] >= door[MOST_ROWS] or (door[TIES] == 1 and time <= door[RECENT_TIME])):
            return NEEDS_LOCK
        if not are_texts(door) or keep(door, event) == 0:
            return LONG_WAY
    note(door, event, time)
    until = -FAR if how == HOLDS else max(time - door[DELAY] - 1, door[PASSED])
    pending = 0
    if number > 0:
        if door[TIES] == 1 and how == QUIET:
            door[RECENT_TIME], door[RECENT_ROW] = time, door[ROWS]
        pending = push(door, at, number, time, until)
    return pass_time(door, until, pending) if due else pending
