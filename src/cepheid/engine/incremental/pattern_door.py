"""Dicts, straight into the search of a row pattern or a Flink pattern: a kernel reads them.

An event waits until the watermark has passed it. Then the kernel hands its key, what its texts say and its columns to
the search, which it calls by its address. All that it needs is reached from one array, the `door` of `dict_door`, which
is longer here. Whatever hinders a step is told to Python, which makes way and calls again: the step goes on. Rows of
tables come through the same door (`pattern_rows`).
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental import one_event
from cepheid.engine.incremental.dict_door import (
    BEYOND,
    COLUMN,
    COLUMNS,
    COLUMNS_AT,
    DELAY,
    DOOR_SIZE,
    EVENTS,
    FAR,
    FILLS,
    FILLS_AT,
    HALF,
    IN_TEXTS,
    LOG,
    LONG_WAY,
    MOST_ROWS,
    NAME,
    NEEDS_ROOM,
    NONE_KIND,
    OF_COLUMN,
    OF_FILL,
    OPEN,
    QUIET,
    RAWS_AT,
    ROWS,
    STORED,
    TAKEN,
    TOLD,
    VALUE_KIND,
    VALUES_AT,
    filled,
    held_value,
    time_of,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.one_event import holding_cases
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import int64_row, int64_rows, search_at
from cepheid.engine.kernels.objects import (
    KIND,
    PythonObject,
    address,
    clear_error,
    collect_again,
    collect_nothing,
    dict_copy,
    dict_item,
    dict_set,
    dict_size,
    fraction_of,
    give_back,
    hold,
    letters_of,
    list_append,
    list_item,
    tuple_of,
    tuple_set,
    whole_object,
    whole_of,
)

# The numbers behind those of `dict_door`: the watermark; the list of dicts that wait, and for each its time, its key
# and what is known of it, from a first to a last one.
WATERMARK, WAITING, RING_AT, RING_ROOM, RING_FIRST, RING_LAST = range(DOOR_SIZE, DOOR_SIZE + 6)
# The array of the search, and the kernel that takes a step in it; the dict of keys, and their columns. (Behind ROOMS:
# IDLE_AT, a kernel that says whether the event at work does nothing; 0: there is none.)
SEARCH, STEP_AT, KEYS_OF, KEYS_FROM, KEYS_TO = range(DOOR_SIZE + 6, DOOR_SIZE + 11)
# Dicts of what texts say, as bits, which are and-ed (-1) or or-ed (0); conditions on one event; kinds by bits.
TEXTS_AT, TEXTS, ALL_BITS, ONE_AT, ONE_ASKED, ONE_FROM, ONE_TO, KINDS_AT, KINDS = range(DOOR_SIZE + 11, DOOR_SIZE + 20)
# The columns that the search reads; None, and the type of fractions.
READ_FROM, READ_TO, NONE, FRACTION = range(DOOR_SIZE + 20, DOOR_SIZE + 24)
# The event at work: its dict (0: a row), time, key, bits; how far it is; up to where time passes; is it in the log?
EVENT, TIME, KEY, BITS, STAGE, UNTIL, USED = range(DOOR_SIZE + 24, DOOR_SIZE + 31)
# What some of these were before the last call: watermark, first and last that waits, events, rows, matches.
NOTED = DOOR_SIZE + 31
ROOMS, IDLE_AT = NOTED + 6, NOTED + 9  # three addresses, and one
# Are rows of tables put down first, and then searched, several at once? How many are put down and not searched.
GATHERS, GATHERED = NOTED + 10, NOTED + 11
# Keys that are one whole number and were seen lately, with their numbers, and how many there is room for (0: none).
SEEN_AT, SEEN = NOTED + 12, NOTED + 13
# Rows of tables: the kernel that puts down several (0: there is none), and the rows at work; the columns of a batch
# that are read, in the order of the columns above, and those of texts; what short texts said lately.
PUT_AT, TABLE_AT, COLUMNS_READ_AT, TEXT_COLUMNS_AT, TEXTS_SEEN_AT = range(NOTED + 14, NOTED + 19)
# The kernel that makes the rows of the result (0: Python makes them), what it needs, and the list that they go into.
TELL_AT, OF_TELLING, ANSWER = range(NOTED + 19, NOTED + 22)
# The kernel that begins with a new key (0: Python does); no window passes before this time, as far as is known.
BEGIN_KEY_AT, NEXT_DUE = NOTED + 22, NOTED + 23
RING_WIDTH = NOTED + 24  # numbers of a dict that waits
PATTERN_DOOR_SIZE = RING_WIDTH + 1
# A text column and its dict; the bits of a kind, its number, can it begin, can any run do anything with it? Of a dict
# that waits what comes before the values that the search reads, by address: its time, key and bits.
OF_TEXTS, OF_KIND, OF_RING = 2, 4, 3

# STAGE: the event is not in yet, it is, or only time passes; rows that are put down are searched.
FRESH, INSIDE, PASSES, SEARCHES = range(4)
# How an event is taken in: HOLDS releases nothing, and may be out of order; ALONE needs no lock.
RELEASES, HOLDS, ALONE = range(3)
# What a call returns besides how much there is to report, and what `dict_door` has.
NEEDS_TEXT, NEEDS_OWN_KIND, NEEDS_KEY, OUT_OF_ORDER, NO_MEMORY, PAUSED, HINDERED = -5, -6, -7, -8, -9, -10, -20


@borrowing
def is_plain(door: Int64s) -> bool:
    """Are its texts such that Arrow takes them, and its fractions numbers? What is not a number is NULL elsewhere."""
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for column in range(door[COLUMNS]):
        value = values[column]
        if value == 0:
            continue
        if columns[column, VALUE_KIND] == door[FRACTION]:
            fraction = fraction_of(value)
            if fraction != fraction:
                return False
        elif columns[column, STORED] == IN_TEXTS and letters_of(value, 0) == 0:
            clear_error()
            return False
    return True


@borrowing
def key_object(door: Int64s) -> int:
    """The key of the event as an object, to be given back; 0: there is no memory for it."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    parts = door[KEYS_TO] - door[KEYS_FROM]
    made = 0
    if parts != 1:
        made = tuple_of(parts)
        if made == 0:
            clear_error()
            return 0
    for part in range(parts):
        column = fills[door[KEYS_FROM] + part, COLUMN]
        if values[column] == 0:
            value = door[NONE]
            hold(value)
        else:
            value = held_value(door, column)
        if value < 0:
            if made != 0:
                give_back(made)
            return 0
        if parts == 1:
            return int(value)
        tuple_set(made, part, value)
    return made


@kernel
def key_entry(door: Int64s, key: int) -> Int64s:
    """Where a key that is a whole number is noted with its number, which is one more there."""
    return int64_row(door[SEEN_AT] + 16 * ((key ^ (key >> 16)) & (door[SEEN] - 1)), 2)


@borrowing
def number_seen(door: Int64s, number: int) -> int:
    """The number of a row's key, if it is one whole number and was seen lately; notes it, from 0 on. -1: it was not."""
    if door[RAWS_AT] == 0 or door[SEEN] == 0:
        return -1
    column = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)[door[KEYS_FROM], COLUMN]
    if int64_row(door[VALUES_AT], door[COLUMNS])[column] == 0:
        return -1
    key = int64_row(door[RAWS_AT], door[COLUMNS])[column]
    seen = key_entry(door, key)
    if number >= 0:
        seen[0], seen[1] = key, number + 1
    return int(seen[1] - 1 if seen[0] == key else -1)


@borrowing
def number_of_key(door: Int64s, at: int) -> int:
    """The number of the event's key; -1: it has none yet, NO_MEMORY: there is none for it."""
    number = number_seen(door, -1)
    if number >= 0:
        return number
    key = key_object(door)
    if key == 0:
        return NO_MEMORY
    known = dict_item(door[KEYS_OF], key)
    number = -1 if known == 0 else whole_of(known, at + 8 * BEYOND)
    give_back(key)
    if number >= 0:
        number_seen(door, number)
    return number


@borrowing
def key_noted(door: Int64s) -> int:
    """Notes the event's key under its number; -1: there is no memory for it."""
    key, number = key_object(door), whole_object(door[KEY])
    known = key != 0 and number != 0 and dict_set(door[KEYS_OF], key, number) == 0
    if key != 0:
        give_back(key)
    if number != 0:
        give_back(number)
    if not known:
        clear_error()
    return int(door[KEY]) if known else -1


@borrowing
def new_key(door: Int64s) -> int:
    """Begins with the event's key, which gets the next number; -1: Python has to."""
    door[KEY] = dict_size(door[KEYS_OF])
    if door[BEGIN_KEY_AT] == 0 or search_at(door[BEGIN_KEY_AT])(door) == 0:
        return -1
    return key_noted(door)


@borrowing
def place_of_kind(door: Int64s, bits: int) -> int:
    """Where a kind of events is among those that are known; -1: it is not."""
    kinds = int64_rows(door[KINDS_AT], door[KINDS], OF_KIND)
    for kind in range(door[KINDS]):
        if kinds[kind, 0] == bits:
            return kind
    return -1


@kernel
def described_as(door: Int64s, at: int, bits: int) -> int:
    """The same, where it is known what texts say."""
    if door[ONE_AT] != 0:
        head, rooms = int64_row(door[ONE_AT], one_event.HEAD_SIZE), int64_row(at + 8 * ROOMS, 3)
        rooms[0], rooms[1], rooms[2] = head[one_event.WHOLE_AT], head[one_event.NUMBER_AT], head[one_event.NULL_AT]
        filled(door, rooms, door[ONE_FROM : ONE_TO + 1], 1, 0, at + 8 * BEYOND)
        bits |= holding_cases(head, door[ONE_ASKED])
    begins = matters = True
    if door[KINDS] >= 0:
        kinds, kind = int64_rows(door[KINDS_AT], door[KINDS], OF_KIND), place_of_kind(door, bits)
        if kind < 0:
            door[BITS] = bits
            return NEEDS_OWN_KIND
        bits, begins, matters = kinds[kind, 1], kinds[kind, 2] != 0, kinds[kind, 3] != 0
    door[BITS], door[KEY] = bits, 0 if matters else -1
    if matters and door[KEYS_TO] > door[KEYS_FROM]:
        door[KEY] = number_of_key(door, at)
        if door[KEY] == NO_MEMORY:
            return NO_MEMORY
        if door[KEY] < 0 and begins:
            door[KEY] = new_key(door)
            if door[KEY] < 0:
                return NEEDS_KEY
    return 0


@kernel
def described(door: Int64s, at: int) -> int:
    """Works out the key of the event and what is known of it; what is lacking, or 0."""
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    texts, bits = int64_rows(door[TEXTS_AT], door[TEXTS], OF_TEXTS), door[ALL_BITS]
    for text in range(door[TEXTS]):
        value = values[texts[text, 0]]
        known = dict_item(texts[text, 1], value if value != 0 else door[NONE])
        if known == 0:
            return NEEDS_TEXT
        said = whole_of(known, at + 8 * BEYOND)
        bits = bits & said if door[ALL_BITS] != 0 else bits | said
    return described_as(door, at, bits)


@borrowing
def logged(door: Int64s) -> int:
    """Puts the event into the log; 0: there is no memory for it."""
    if door[EVENT] != 0 and list_append(door[LOG], door[EVENT]) != 0:
        clear_error()
        return 0
    door[ROWS] += 1
    door[USED] = 1
    return 1


@borrowing
def read_columns(door: Int64s, event: int) -> None:
    """Reads the columns of a dict that the search reads; they are known to be plain."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    columns = int64_rows(door[COLUMNS_AT], door[COLUMNS], OF_COLUMN)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for fill in range(door[READ_FROM], door[READ_TO]):
        column = fills[fill, COLUMN]
        value = dict_item(event, columns[column, NAME])
        values[column] = value
        if value != 0 and int64_row(value + KIND, 1)[0] == door[NONE_KIND]:
            values[column] = 0


@borrowing
def read_again(door: Int64s, first: Int64s) -> None:
    """Says where the values of a dict are that waited and that the search reads."""
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for fill in range(door[READ_FROM], door[READ_TO]):
        values[fills[fill, COLUMN]] = first[OF_RING + fill - door[READ_FROM]]


@kernel
def released(door: Int64s) -> int:
    """Takes in the dicts that the watermark has passed, and lets time pass; how much there is to report, or a hint."""
    ring, mark = int64_rows(door[RING_AT], door[RING_ROOM], door[RING_WIDTH]), door[WATERMARK]
    step, door[RAWS_AT] = search_at(door[STEP_AT]), 0
    while door[RING_FIRST] < door[RING_LAST] and ring[door[RING_FIRST], 0] < mark:
        first = door[RING_FIRST]
        if door[STAGE] == FRESH:
            door[EVENT] = list_item(door[WAITING], first)
            door[TIME], door[KEY], door[BITS] = ring[first, 0], ring[first, 1], ring[first, 2]
            door[UNTIL] = ring[first, 0]
            read_again(door, ring[first])
        found = step(door)
        if found < 0:
            return int(found)
        door[STAGE] = FRESH
        door[RING_FIRST] = first + 1
    door[STAGE], door[UNTIL] = PASSES, mark
    found = step(door)
    if found >= 0:
        door[STAGE] = FRESH
    return int(found)


@borrowing
def held(door: Int64s, event: int, time: int, key: int, bits: int) -> int:
    """Lets a copy of a dict wait, for which there is room; 0 if there is memory, too."""
    ring, last = int64_rows(door[RING_AT], door[RING_ROOM], door[RING_WIDTH]), door[RING_LAST]
    copied = dict_copy(event)  # the caller may use it again
    if copied == 0 or list_append(door[WAITING], copied) != 0:
        clear_error()
        return NO_MEMORY
    give_back(copied)
    ring[last, 0], ring[last, 1], ring[last, 2] = time, key, bits
    fills = int64_rows(door[FILLS_AT], door[FILLS], OF_FILL)
    values = int64_row(door[VALUES_AT], door[COLUMNS])
    for fill in range(door[READ_FROM], door[READ_TO]):
        ring[last, OF_RING + fill - door[READ_FROM]] = values[fills[fill, COLUMN]]
    door[RING_LAST] = last + 1
    return 0


@kernel
def taken_in(door: Int64s, at: int, event: int, how: int) -> int:
    """Takes a dict in; how much there is to report, or why nothing has happened, or what hinders it."""
    door[TAKEN] = door[RAWS_AT] = 0
    time = time_of(door, at, event, QUIET)
    if time >= FAR or time < door[WATERMARK] or not is_plain(door):
        return LONG_WAY
    ring, last = int64_rows(door[RING_AT], door[RING_ROOM], door[RING_WIDTH]), door[RING_LAST]
    if how != HOLDS and last > door[RING_FIRST] and time < ring[last - 1, 0]:
        return OUT_OF_ORDER
    if last >= door[RING_ROOM] or (how != HOLDS and (door[ROWS] > door[MOST_ROWS] or door[LOG] == 0)):
        return NEEDS_ROOM
    lacks = described(door, at)
    if lacks != 0:
        return lacks
    if how == HOLDS:
        return held(door, event, time, door[KEY], door[BITS])
    for place, field in enumerate((WATERMARK, RING_FIRST, RING_LAST, EVENTS, ROWS, TOLD)):
        door[NOTED + place] = door[field]
    door[TAKEN] = event
    door[EVENTS] += 1
    mark, key, bits = max(time - door[DELAY], door[WATERMARK]), door[KEY], door[BITS]
    passes = mark > door[WATERMARK]
    door[WATERMARK] = mark
    # If nothing waits that could change what the event does, it is known now whether it does anything.
    if passes and door[IDLE_AT] != 0 and (last == door[RING_FIRST] or ring[last - 1, 0] < mark) and time == mark:
        found = released(door)
        door[TIME], door[KEY], door[BITS] = time, key, bits
        if found >= 0 and search_at(door[IDLE_AT])(door) != 0:
            return found
        read_columns(door, event)  # others were released meanwhile
        lacks = held(door, event, time, key, bits)
        return lacks if lacks != 0 else found
    lacks = held(door, event, time, key, bits)
    if lacks != 0:
        return lacks
    return released(door) if passes else 0


@kernel
def arrived(given: PythonObject, answer: PythonObject, at: int, how: int) -> int:
    """Takes a dict in, and puts the rows of what it decides into a list: 0. Otherwise what `taken_in` says.

    With ALONE, HALF says the same if it has begun: whoever comes first with the lock goes on, or takes it back.
    """
    door = int64_row(at, PATTERN_DOOR_SIZE)
    if how == ALONE and door[OPEN] == 0:
        return LONG_WAY
    collects = collect_nothing()  # or code of the user could run, and send something, in the midst of this
    found = taken_in(door, at, address(given), how)
    if how == ALONE and found > 0 and door[TELL_AT] != 0:
        door[ANSWER] = address(answer)
        made = search_at(door[TELL_AT])(door)
        if made >= 0:
            door[TOLD] += made
            found = 0
    if how == ALONE and found != 0:
        door[OPEN], door[HALF] = 0, found if door[TAKEN] != 0 else 0
    if collects != 0:
        collect_again()
    return found


@kernel
def gone_on(at: int) -> int:
    """Releases dicts, or goes on after what hindered it is out of the way."""
    return released(int64_row(at, PATTERN_DOOR_SIZE))


arrive, go_on = Entry(arrived), Entry(gone_on)
