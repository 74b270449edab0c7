"""Events are linked to those of their key, and a key is searched when a match of it may have come to its end.

All that stays from call to call is reached from one array, `head`, which holds numbers and the addresses of the other
arrays. An event that time has passed is linked to the event of its key before it. For every key and stage of a pattern
the latest first event of a chain that has come as far is known, so that most events that could be the last ones of a
match cost a look. Where a chain is complete, the events of the key that the window holds are laid side by side, key
after key, and the engine of the query searches them at once (`by_stacks`, `by_runs`, `by_queues`).
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns
from cepheid.engine.data.layout import (
    BEGINS,
    DUE,
    INSTANT,
    MASK,
    POSITION,
    PRECISE_FACTS,
    TIME,
    Events,
)
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int64_row, int64_rows, uint8_rows
from cepheid.engine.program.graph import Graph
from cepheid.engine.program.tables import Program

# What is known of an event besides what engines read: its key, its number among the events that are kept, the event of
# its key before it (-1: none), and the rank of its instant among those of its key.
KEY, ROW, LINK, ORDINAL = range(PRECISE_FACTS, PRECISE_FACTS + 4)
FACTS_OF_EVENT = PRECISE_FACTS + 4

# What is known of a key: its latest event, the search that it was last asked for, and, where all events count, the
# instant of its latest event, the rank of that instant, how many events came before that instant, and how many there
# are. The number of the place that its events have for themselves (`side_by_side`; 0: none, -1: it gets none). Then the
# latest first event of a chain, by stage.
LATEST, ASKED_FOR, LAST_INSTANT, LAST_ORDINAL, BEFORE, NUMBER, OWN_SIDE, CHAINS = range(8)
OF_NO_KEY = 1 << 61  # the mask of an event whose key is NULL, where it counts though it is in no match
NEVER_BEFORE, NEVER_DUE = -(2**62), 2**62

# The numbers in `head`. Events that are kept, room for them, those that are linked; up to when all is searched, and the
# number of this search; keys to search, and those that are done; matches found, and their events; the least room that
# is needed.
SIZE, ROOM, LINKED, AFTER, UNTIL, SEARCH, BUSY, DONE, MATCHES, MATCHED, NEEDED = range(11)
# The query: stages of its chains, how long a chain may last, how far back events are needed (steps, or events), do all
# events count, are runs contiguous, is it for the run engine, can its search take long, how many matches and runs there
# may be; what stacks are told, what runs are told, and widths of a run.
STAGES, LASTS, REACH, REACHED_EVENTS, COUNTS, CONTIGUOUS, BY_RUNS, MANY, MOST_MATCHES, MOST_RUNS = range(11, 21)
PUSH_WINDOW, PUSH_CONDITIONS, MERGING, SLOTS, WHOLES, NUMBERS, KEY_WIDTH = range(21, 28)
PLACES, NEGATIVES, STRATEGY, WINDOW_KIND, WINDOW, POSTPONED, JUDGED, BRANCHES, WALK_WHOLE, WALK_NUMBER = range(28, 38)
WIDEST, PREDICATE_AT, LITERALS_AT, LITERALS = range(38, 42)
# Rooms: facts of events and columns, by event; keys; keys to search; events side by side, and their columns; matches.
FACTS_AT, WHOLE_AT, NUMBER_AT, NULL_AT, WHOLE_ROWS, NUMBER_ROWS, NULL_ROWS = range(42, 49)
KEYS_AT, KEY_ROOM, BUSY_AT, STAGES_AT = range(49, 53)
SIDE_AT, SIDE_ROOM, SIDE_SIZE, SIDE_WHOLE_AT, SIDE_NUMBER_AT, SIDE_NULL_AT, SIDE_EVENTS_AT = range(53, 60)
OUT_AT, OUT_ROOM, SIZES_AT, KNOWN_AT, KNOWN_ROOM = range(60, 65)
SEARCH_AT = 65  # the search of the engine
SIDE_KEYS, SIDE_STARTS_AT = 66, 67  # keys whose events lie side by side, and where those of each begin
# When a key is searched: at events that may be the last ones of a match, when so much time has passed after one of the
# components that a match can begin with (0: not by that), or whenever time passes; how many events are past that time;
# and are its events searched by Python, and so linked though they fill no component?
AT_ENDS, DEADLINE, FIRSTS, ALWAYS, DECIDED, REPLAYS = range(68, 74)
BY_QUEUES, SCORES_AT = 74, 75  # may events be missing? Then every match has a score
# Places that events of single keys have for themselves: their table, how many there are, and the one at hand; and how
# many events a key has at most that has none (0: no key has one).
SIDES_AT, SIDES, SIDE, FEW_EVENTS = range(76, 80)
# Instants: that of the event that was linked last; which columns order the events of one time (where the numbers of
# their rows are, and how many these are), and is each event at an instant of its own? Do events count whose key is
# NULL? And does Python look at what the call has spent, between the searches of keys?
INSTANTS, TIES_AT, TIES, APART, STRICT, LIMITED = range(80, 86)
TABLES = 86  # three numbers for each table of the program and the graph: its address, rows and columns
NUMBER_OF_TABLES = 10
SCORING = 7  # where events may be missing, there is no graph: this table says the same of arrays of scores
HEAD_SIZE = TABLES + 3 * NUMBER_OF_TABLES

# What a call returns, if not the number of matches.
NEEDS_MATCHES, NEEDS_SIDE, NOT_BRIEF, TOO_MANY_MATCHES, TOO_MANY_RUNS, STOPPED, WAITS = -1, -2, -3, -4, -5, -6, -7
REPLAY, NEEDS_OWN_SIDE, MORE, AGAIN = -8, -9, -10, -11
IN_PARTITION, IN_ORDER = 1, 2  # CONTIGUOUS: the next event of the key, or the next one of all
BRIEF = 1_000_000.0  # sequences or pairs that could be looked at; more are searched where the search can be stopped


@borrowing
def compare_ties(head: Int64s, event: int, other: int) -> int:
    """Does an event of the same time come before another by its columns (below 0), or behind it? 0: neither."""
    ties = int64_rows(head[TIES_AT], head[TIES], 2)
    whole = int64_rows(head[WHOLE_AT], head[WHOLE_ROWS], head[ROOM])
    null = uint8_rows(head[NULL_AT], head[NULL_ROWS], head[ROOM])
    for tie in range(head[TIES]):
        unknown, other_unknown = null[ties[tie, 1], event], null[ties[tie, 1], other]
        if unknown != other_unknown:
            return -1 if unknown != 0 else 1  # NULL comes first
        value, other_value = whole[ties[tie, 0], event], whole[ties[tie, 0], other]
        if unknown == 0 and value != other_value:
            return -1 if value < other_value else 1
    return 0


@borrowing
def exchange(head: Int64s, facts: Int64Rows, event: int, other: int) -> None:
    """Two events change places."""
    for fact in range(FACTS_OF_EVENT):
        facts[fact, event], facts[fact, other] = facts[fact, other], facts[fact, event]
    whole = int64_rows(head[WHOLE_AT], head[WHOLE_ROWS], head[ROOM])
    for row in range(head[WHOLE_ROWS]):
        whole[row, event], whole[row, other] = whole[row, other], whole[row, event]
    numbers = float64_rows(head[NUMBER_AT], head[NUMBER_ROWS], head[ROOM])
    for row in range(head[NUMBER_ROWS]):
        numbers[row, event], numbers[row, other] = numbers[row, other], numbers[row, event]
    null = uint8_rows(head[NULL_AT], head[NULL_ROWS], head[ROOM])
    for row in range(head[NULL_ROWS]):
        null[row, event], null[row, other] = null[row, other], null[row, event]


@borrowing
def order_ties(head: Int64s, facts: Int64Rows, begin: int) -> None:
    """The events of one time, of which this is the first, in the order of their columns, and else as they came."""
    end = begin + 1
    while end < head[SIZE] and facts[TIME, end] == facts[TIME, begin]:
        end += 1
    gap = (end - begin) // 2
    while gap > 0:  # Shell's sort: most events lie as they should
        for place in range(begin + gap, end):
            event = place
            while event - gap >= begin:
                order = compare_ties(head, event - gap, event)
                if order < 0 or (order == 0 and facts[ROW, event - gap] < facts[ROW, event]):
                    break
                exchange(head, facts, event - gap, event)
                event -= gap
        gap //= 2


@borrowing
def note_instant(head: Int64s, facts: Int64Rows, event: int) -> None:
    """Gives an event that is linked the number of its instant: those of one time are complete, and in order."""
    later = event == 0 or facts[TIME, event] != facts[TIME, event - 1]
    if later and head[TIES] > 0:
        order_ties(head, facts, event)
    if later or head[APART] == 1 or (head[TIES] > 0 and compare_ties(head, event - 1, event) != 0):
        head[INSTANTS] += 1
    facts[INSTANT, event] = head[INSTANTS]


@borrowing
def count_event(head: Int64s, facts: Int64Rows, keys: Int64Rows, event: int) -> None:
    """Where all events count: the rank of the event's instant among those of its key, and how many came before."""
    key, instant = facts[KEY, event], facts[INSTANT, event]
    if keys[key, NUMBER] == 0 or keys[key, LAST_INSTANT] != instant:
        keys[key, LAST_ORDINAL] += 1
        keys[key, LAST_INSTANT], keys[key, BEFORE] = instant, keys[key, NUMBER]
    keys[key, NUMBER] += 1
    facts[ORDINAL, event], facts[POSITION, event] = keys[key, LAST_ORDINAL], keys[key, BEFORE]


@borrowing
def link(head: Int64s, facts: Int64Rows, keys: Int64Rows, event: int) -> bool:
    """Puts an event behind those of its key; may it be the last one of a match?"""
    mask = facts[MASK, event]
    if mask == OF_NO_KEY:
        return False
    if head[COUNTS] == 1:
        count_event(head, facts, keys, event)
    if mask == 0 and head[REPLAYS] == 0:
        return False
    key, time = facts[KEY, event], facts[TIME, event]
    facts[DUE, event] = time + head[DEADLINE]
    facts[LINK, event] = keys[key, LATEST]
    keys[key, LATEST] = event
    stages = int64_row(head[STAGES_AT], head[STAGES])
    last = head[STAGES] - 1
    ends = False
    for stage in range(last, -1, -1):
        if mask & stages[stage] == 0:
            continue
        first = time
        if stage > 0:
            first = keys[key, CHAINS + stage - 1]
            if first == NEVER_BEFORE or time - first > head[LASTS]:
                continue
        if stage == last:
            ends = True
            keys[key, CHAINS + last] = time
        else:
            keys[key, CHAINS + stage] = first
    return ends


@borrowing
def ask_for(head: Int64s, keys: Int64Rows, key: int) -> None:
    """Puts a key down to be searched."""
    if keys[key, ASKED_FOR] != head[SEARCH]:
        keys[key, ASKED_FOR] = head[SEARCH]
        int64_row(head[BUSY_AT], head[KEY_ROOM])[head[BUSY]] = key
        head[BUSY] += 1


@borrowing
def pass_deadlines(head: Int64s, facts: Int64Rows, keys: Int64Rows, searched: bool) -> None:
    """Puts down the keys with a first event whose window has passed, if there was a last one behind it."""
    last = CHAINS + head[STAGES] - 1
    while head[DECIDED] < head[LINKED]:
        event = head[DECIDED]
        key, begins = facts[KEY, event], facts[MASK, event] & head[FIRSTS] != 0
        if begins and facts[DUE, event] > head[UNTIL]:
            break
        head[DECIDED] += 1
        if begins and not searched and keys[key, last] >= facts[TIME, event]:
            ask_for(head, keys, key)


@borrowing
def release(head: Int64s, until: int, searched: bool) -> None:
    """Links the events that time has passed, and puts down the keys to search, unless they were searched before."""
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], CHAINS + head[STAGES])
    head[SEARCH] += 1
    head[BUSY] = head[DONE] = head[MATCHES] = head[MATCHED] = 0
    head[UNTIL] = until
    while head[LINKED] < head[SIZE] and facts[TIME, head[LINKED]] <= until:
        event = head[LINKED]
        head[LINKED] += 1
        note_instant(head, facts, event)
        if link(head, facts, keys, event) and head[AT_ENDS] == 1 and not searched:
            ask_for(head, keys, facts[KEY, event])
    if head[DEADLINE] > 0:
        pass_deadlines(head, facts, keys, searched)
    if head[ALWAYS] == 1 and head[LINKED] > 0 and not searched:
        ask_for(head, keys, 0)


@borrowing
def in_reach(head: Int64s, facts: Int64Rows, latest: int) -> int:
    """How many of the latest events of a key a match that is not known yet can need."""
    event, number = latest, 0
    time, position = facts[TIME, latest], facts[POSITION, latest]
    while event >= 0:
        if facts[TIME, event] > head[AFTER]:
            time, position = facts[TIME, event], facts[POSITION, event]  # the first one that is new
        elif head[REACHED_EVENTS] > 0:
            if facts[POSITION, event] < position - head[REACHED_EVENTS]:
                break
        elif facts[TIME, event] < (head[AFTER] + 1 if head[DEADLINE] > 0 else time) - head[REACH]:
            break
        number += 1
        event = facts[LINK, event]
    return number


@kernel
def table_at(head: Int64s, number: int) -> Int64Rows:
    """One of the tables of the program and the graph."""
    at = TABLES + 3 * number
    return int64_rows(head[at], head[at + 1], head[at + 2])


@kernel
def program_at(head: Int64s) -> Program:
    """The program of the query."""
    return Program(
        head[PLACES],
        head[NEGATIVES],
        head[STRATEGY],
        head[WINDOW_KIND],
        head[WINDOW],
        head[POSTPONED] == 1,
        head[JUDGED] == 1,
        head[BRANCHES],
        head[WALK_WHOLE],
        head[WALK_NUMBER],
        table_at(head, 0),
        table_at(head, 1),
        int64_row(head[TABLES + 6], head[TABLES + 8]),
        table_at(head, 3),
        table_at(head, 4),
        table_at(head, 5),
        table_at(head, 6),
    )


@kernel
def graph_at(head: Int64s) -> Graph:
    """The states of the query."""
    return Graph(table_at(head, 7), table_at(head, 8), table_at(head, 9), head[WIDEST])


@kernel
def columns_at(head: Int64s) -> Columns:
    """What conditions read of the events that lie side by side."""
    room = head[SIDE_ROOM]
    return Columns(
        int64_rows(head[SIDE_WHOLE_AT], head[WHOLE_ROWS], room),
        float64_rows(head[SIDE_NUMBER_AT], head[NUMBER_ROWS], room),
        uint8_rows(head[SIDE_NULL_AT], head[NULL_ROWS], room),
        int64_row(head[LITERALS_AT], head[LITERALS]),
        np.empty(0, np.float64),
        np.zeros((0, 0), np.int64),
    )


@borrowing
def has_room(head: Int64s, found: int, events: int) -> bool:
    """Is there room for so many matches more, with so many events?"""
    if head[MATCHES] + found <= head[KNOWN_ROOM] and head[MATCHED] + events <= head[OUT_ROOM]:
        return True
    head[NEEDED] = max(head[MATCHES] + found, head[MATCHED] + events)
    return False


@borrowing
def append(head: Int64s, time: int, key: int, mask: int, begins: int, row: int) -> None:
    """Puts an event behind those that are kept; there is room for it, and its columns are filled."""
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    event = head[SIZE]
    facts[TIME, event], facts[KEY, event], facts[MASK, event] = time, key, mask
    facts[BEGINS, event], facts[ROW, event] = begins, row
    head[SIZE] = event + 1


@borrowing
def may_end(head: Int64s) -> bool:
    """May the event that came last be the last one of a match, when time passes it?"""
    if head[AT_ENDS] == 0:
        return False
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    event = head[SIZE] - 1
    stages = int64_row(head[STAGES_AT], head[STAGES])
    last = head[STAGES] - 1
    if facts[MASK, event] & stages[last] == 0:
        return False
    time = facts[TIME, event]
    if last == 0 or facts[TIME, head[LINKED]] != time or head[TIES] > 0 or head[APART] == 1:
        return True  # events that wait may come before it
    keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], CHAINS + head[STAGES])
    first = keys[facts[KEY, event], CHAINS + last - 1]
    return bool(first != NEVER_BEFORE and time - first <= head[LASTS])


@borrowing
def next_deadline(head: Int64s) -> int:
    """When the next window of a first event has passed; NEVER_DUE: there is none."""
    if head[DEADLINE] > 0:
        facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
        for event in range(head[DECIDED], head[SIZE]):
            if facts[MASK, event] & head[FIRSTS] != 0:
                return int(facts[TIME, event] + head[DEADLINE])
    return NEVER_DUE


@borrowing
def is_done(head: Int64s) -> bool:
    """Are all keys searched?"""
    if head[DONE] < head[BUSY]:
        return False
    head[AFTER] = head[UNTIL]
    return True


@borrowing
def gather(head: Int64s) -> int:
    """Puts down the events of all keys to search; what Python has to do then, or 0: there are none."""
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], CHAINS + head[STAGES])
    busy, laid = int64_row(head[BUSY_AT], head[KEY_ROOM]), int64_row(head[SIDE_EVENTS_AT], head[SIDE_ROOM])
    found = 0
    for place in range(head[DONE], head[BUSY]):
        event = keys[busy[place], LATEST]
        number = in_reach(head, facts, event)
        for _ in range(number):
            if found < head[SIDE_ROOM]:
                laid[found] = event
            found += 1
            event = facts[LINK, event]
    head[SIDE_SIZE] = head[NEEDED] = found
    if found > head[SIDE_ROOM]:
        return NEEDS_SIDE
    return 0 if is_done(head) else REPLAY


@kernel
def events_at(head: Int64s) -> Events:
    """The events that lie side by side."""
    room = head[SIDE_ROOM]
    starts = int64_row(head[SIDE_STARTS_AT], head[SIDE_KEYS] + 1)
    return Events(int64_rows(head[SIDE_AT], PRECISE_FACTS, room), starts, np.zeros((0, room), np.int64), True)


@kernel
def linked_again(head: Int64s, until: int) -> int:
    """Links the events up to a time, whose matches are known."""
    release(head, until, True)
    head[AFTER] = until
    return int(head[LINKED])


relink = Entry(linked_again)
