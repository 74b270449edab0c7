"""Flink's automaton, event by event: the runs of all keys stay in arrays from one call to the next.

All that stays is reached from one array, `head`, which holds numbers and the addresses of the other arrays. Each key
has the counters of the walk (`search/flink/machine.py`), and a block of runs and one of complete matches in an arena
that all keys share. They share the nodes that say what a run took, too. In row 0 of the events all is NULL. A queue
holds the keys by the time at which one of their runs is given up.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.columns import Columns
from cepheid.engine.data.flink_runs import Reported
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import borrowing, inlined, kernel
from cepheid.engine.kernels.conditions import Scratch
from cepheid.engine.kernels.heap import drop_earliest, put_entry
from cepheid.engine.kernels.memory import float64_rows, function_at, int64_row, int64_rows, uint8_rows
from cepheid.engine.program.tables import Program
from cepheid.engine.search.flink.deadlines import look_for_nearest
from cepheid.engine.search.flink.kernel import (
    SEEKING,
    find_nodes,
    keep_marked,
    mark_nodes,
    pass_time,
    resume,
    suspended,
    walk_on,
)
from cepheid.engine.search.flink.machine import (
    ARRIVED,
    AT_ROW,
    BITS,
    COLLECT_AT,
    COMPLETE,
    EVENTS_REPORTED,
    FAILURE,
    GIVEN_UP,
    HEAD,
    LATEST,
    MOST_REPORTS,
    MOST_RUNS,
    NEAREST,
    NOBODY,
    NODE,
    NODES,
    PASSED,
    PHASE,
    PRESENT,
    REPORTS,
    STATE,
    TAIL,
    Conditions,
    Events,
    Machine,
    Room,
)
from cepheid.engine.search.flink.reports import A_LOOK, COLLECTION, DONE, MORE_COMPLETE, MORE_RUNS, trimmed
from cepheid.engine.search.flink.reports import nothing as no_runs

# What is known of a key behind the counters of the walk: its blocks of runs and of complete matches, and the deadline
# under which it stands in the queue.
RUNS_AT, RUN_ROOM, DONE_AT, DONE_ROOM, QUEUED, KEY_WIDTH = range(MOST_REPORTS + 1, MOST_REPORTS + 7)

# The numbers in `head`: events, nodes, rows of the arena and keys in the queue that are used; runs and events that are
# reported; what is needed to go on; work since Python last looked; the query; the condition.
SIZE, NODES_USED, ARENA_USED, WAITING_KEYS, REPORTED_RUNS, REPORTED_EVENTS, NEEDED, WORK = range(8)
START, WINDOW, GAPPED, FAN, SKIP, SKIP_STEP, STRICT, PARTIAL, RUN_LIMIT, REPORT_LIMIT = range(8, 18)
PLACES, STRATEGY, WINDOW_KIND, PROGRAM_WINDOW, BRANCHES, WALK_WHOLE, WALK_NUMBER, AT_HAND, PREDICATE_AT = range(18, 27)
KEYS_USED, ROW_AT_WORK, KEY_AT_WORK = range(27, 30)
# Tables, three numbers for each: the address, rows and columns.
TABLES = 30
(
    DECISION,
    CHOICE,
    FIRST_MOVE,
    MOVE,
    ACTIVE,
    KIND,
    GAP,
    PLACE,
    KEPT,
    MOMENTS,
    TESTS,
    WALKS,
    NEGATIONS,
    MERGE_KEYS,
    SCRATCH_AT,
    SCRATCH_COUNTED,
    SCRATCH_CODES,
    SCRATCH_MISSING,
    SCRATCH_BETWEEN,
    SCRATCH_RUNNING,
    WHOLE,
    NUMBER,
    NULL,
    LITERAL,
    EDGE,
    BEHIND,
    ARRIVALS,
    NODE_TABLE,
    NODE_AT,
    NODE_COUNTED,
    NODE_RUNNING,
    TIMES,
    KINDS,
    KEYS,
    ARENA,
    QUEUE,
    OUT_PARTITION,
    OUT_FIRST,
    OUT_ROW,
    OUT_STEP,
    OUT_WAITING,
    OUT_GIVEN_UP,
    NEW_TIMES,
    NEW_KINDS,
    NEW_KEYS,
    NEW_WHOLE,
    NEW_NUMBER,
    NEW_NULL,
    TAKEN,
    NUMBER_OF_TABLES,
) = range(50)
HEAD_SIZE = TABLES + 3 * NUMBER_OF_TABLES

# What a call returns: the event did nothing, it did something; what hinders it.
IDLE, USED, NEEDS_ARENA, NEEDS_QUEUE, NEEDS_ROOM, FAILED, PAUSED = 0, 1, -1, -2, -3, -4, -5
UNTIL_A_PAUSE = 1 << 22  # runs to be looked at before Python looks whether the search is to stop


@kernel
def table_at(head: Int64s, number: int) -> Int64Rows:
    """One of the tables of whole numbers."""
    at = TABLES + 3 * number
    return int64_rows(head[at], head[at + 1], head[at + 2])


@kernel
def row_at(head: Int64s, number: int) -> Int64s:
    """One of the tables of one row."""
    at = TABLES + 3 * number
    return int64_row(head[at], head[at + 2])


@inlined
def machine_at(head: Int64s) -> Machine:
    """The automaton."""
    return Machine(
        table_at(head, DECISION),
        table_at(head, CHOICE),
        row_at(head, FIRST_MOVE),
        table_at(head, MOVE),
        row_at(head, ACTIVE),
        row_at(head, KIND),
        row_at(head, GAP),
        head[START],
        head[WINDOW],
        head[GAPPED],
        head[FAN],
        head[SKIP],
        head[SKIP_STEP],
        head[STRICT],
        head[PARTIAL],
    )


@inlined
def program_at(head: Int64s) -> Program:
    """What conditions that look back read."""
    return Program(
        head[PLACES],
        0,
        head[STRATEGY],
        head[WINDOW_KIND],
        head[PROGRAM_WINDOW],
        False,
        False,
        head[BRANCHES],
        head[WALK_WHOLE],
        head[WALK_NUMBER],
        table_at(head, PLACE),
        table_at(head, KEPT),
        row_at(head, MOMENTS),
        table_at(head, TESTS),
        table_at(head, WALKS),
        table_at(head, NEGATIONS),
        table_at(head, MERGE_KEYS),
    )


@inlined
def columns_at(head: Int64s) -> Columns:
    """The columns of all events."""
    number, null = TABLES + 3 * NUMBER, TABLES + 3 * NULL
    return Columns(
        table_at(head, WHOLE),
        float64_rows(head[number], head[number + 1], head[number + 2]),
        uint8_rows(head[null], head[null + 1], head[null + 2]),
        row_at(head, LITERAL),
        float64_rows(head[number], 1, 0)[0],
        table_at(head, EDGE),
    )


@inlined
def scratch_at(head: Int64s) -> Scratch:
    """Room for the values of one run."""
    running = TABLES + 3 * SCRATCH_RUNNING
    running_row = float64_rows(head[running], 1, head[running + 2])
    return Scratch(
        row_at(head, SCRATCH_AT),
        row_at(head, SCRATCH_COUNTED),
        running_row[0],
        row_at(head, SCRATCH_CODES),
        table_at(head, SCRATCH_COUNTED),
        running_row,
        row_at(head, SCRATCH_MISSING),
        table_at(head, SCRATCH_BETWEEN),
    )


@inlined
def conditions_at(head: Int64s) -> Conditions:
    """What conditions that look back need."""
    return Conditions(program_at(head), columns_at(head), scratch_at(head), head[AT_HAND], 0)


@inlined
def events_at(head: Int64s, end: int) -> Events:
    """All events; time has passed up to the end."""
    nothing = row_at(head, SCRATCH_MISSING)
    return Events(nothing, nothing, row_at(head, TIMES), row_at(head, KINDS), end, 1)


@inlined
def room_at(head: Int64s, key: int) -> Room:
    """The runs of a key."""
    keys, arena = TABLES + 3 * KEYS, TABLES + 3 * ARENA
    counts = int64_row(head[keys] + 8 * KEY_WIDTH * key, KEY_WIDTH)
    running = TABLES + 3 * NODE_RUNNING
    return Room(
        int64_rows(head[arena] + 24 * counts[RUNS_AT], counts[RUN_ROOM], 3),
        table_at(head, BEHIND),
        table_at(head, ARRIVALS),
        int64_rows(head[arena] + 24 * counts[DONE_AT], counts[DONE_ROOM], 3),
        table_at(head, NODE_TABLE),
        table_at(head, NODE_AT),
        table_at(head, NODE_COUNTED),
        float64_rows(head[running], head[running + 1], head[running + 2]),
        counts,
    )


@inlined
def reported_at(head: Int64s) -> Reported:
    """Room for what is reported."""
    return Reported(
        row_at(head, OUT_PARTITION),
        row_at(head, OUT_FIRST),
        row_at(head, OUT_ROW),
        row_at(head, OUT_STEP),
        row_at(head, OUT_WAITING),
        row_at(head, OUT_GIVEN_UP),
    )


# --- keys -----------------------------------------------------------------------------------------------------------


@borrowing
def moved_block(head: Int64s, counts: Int64s, at: int, room: int, used: int, wanted: int) -> bool:
    """Gives a key a larger block with what is in it; False: the arena is full."""
    size = max(counts[room], 4)
    while size < wanted:
        size *= 2
    place = TABLES + 3 * ARENA
    if head[ARENA_USED] + size > head[place + 1]:
        head[NEEDED] = size
        return False
    before = int64_rows(head[place] + 24 * counts[at], counts[room], 3)
    after = int64_rows(head[place] + 24 * head[ARENA_USED], size, 3)
    for number in range(used):
        for part in range(3):
            after[number, part] = before[number, part]
    counts[at], counts[room] = head[ARENA_USED], size
    head[ARENA_USED] += size
    return True


@borrowing
def made_room(head: Int64s, counts: Int64s, needed: int) -> bool:
    """Gives a key room for more runs or complete matches; False: the arena is full."""
    if needed == MORE_RUNS:
        return moved_block(head, counts, RUNS_AT, RUN_ROOM, counts[RUN_ROOM], 2 * max(counts[RUN_ROOM], head[FAN] + 2))
    wanted = 2 * (counts[COMPLETE] + counts[ARRIVED] + 1)
    return moved_block(head, counts, DONE_AT, DONE_ROOM, counts[COMPLETE], wanted)


@borrowing
def begun_key(head: Int64s, key: int) -> bool:
    """The run that waits for a first event, for a key that is new; False: the arena is full."""
    place = TABLES + 3 * KEYS
    counts = int64_row(head[place] + 8 * KEY_WIDTH * key, KEY_WIDTH)
    for number in range(KEY_WIDTH):
        counts[number] = 0
    counts[NEAREST] = counts[QUEUED] = LATEST
    counts[PASSED] = -LATEST
    if not moved_block(head, counts, RUNS_AT, RUN_ROOM, 0, head[FAN] + 3):
        return False
    arena = TABLES + 3 * ARENA
    runs = int64_rows(head[arena] + 24 * counts[RUNS_AT], counts[RUN_ROOM], 3)
    runs[0, STATE], runs[0, NODE], runs[0, 2] = head[START], -1, NOBODY
    counts[TAIL], counts[PRESENT] = 1, 1 << min(head[START], BITS)
    return True


@borrowing
def queued(head: Int64s, counts: Int64s, key: int) -> bool:
    """Puts a key into the queue if a run of it is given up earlier than is known; False: there is no room."""
    deadline = counts[NEAREST]
    if deadline >= counts[QUEUED]:
        return True
    place = TABLES + 3 * QUEUE
    at = head[WAITING_KEYS]
    if at == head[place + 1]:
        return False
    put_entry(int64_rows(head[place], head[place + 1], 2), at, deadline, key)
    head[WAITING_KEYS] += 1
    counts[QUEUED] = deadline
    return True


# --- events ---------------------------------------------------------------------------------------------------------


@borrowing
def take_over(head: Int64s, counts: Int64s) -> None:
    """Tells a key what all keys share."""
    counts[NODES], counts[COLLECT_AT], counts[FAILURE] = head[NODES_USED], LATEST, 0
    counts[REPORTS], counts[EVENTS_REPORTED] = head[REPORTED_RUNS], head[REPORTED_EVENTS]
    counts[MOST_RUNS], counts[MOST_REPORTS] = head[RUN_LIMIT], head[REPORT_LIMIT]


@borrowing
def hand_back(head: Int64s, counts: Int64s, needed: int) -> int:
    """Notes what all keys share; what hinders the key, or USED."""
    head[NODES_USED] = counts[NODES]
    head[REPORTED_RUNS], head[REPORTED_EVENTS] = counts[REPORTS], counts[EVENTS_REPORTED]
    if counts[FAILURE]:
        head[NEEDED] = counts[FAILURE]
        counts[GIVEN_UP] = 0  # they stand where other keys put theirs
        return FAILED
    if needed in (DONE, A_LOOK, COLLECTION):
        return USED
    if needed in (MORE_RUNS, MORE_COMPLETE):
        return USED if made_room(head, counts, needed) else NEEDS_ARENA
    head[NEEDED] = needed
    return NEEDS_ROOM


@borrowing
def walk_event(head: Int64s) -> int:
    """Lets the runs of the key at work do what they do with the event at work; what hinders it, or USED."""
    key, row = head[KEY_AT_WORK], head[ROW_AT_WORK]
    machine, conditions, predicate = machine_at(head), conditions_at(head), function_at(head[PREDICATE_AT])
    # Other events of this instant may come: what is due with it is given up when time passes.
    events, out = events_at(head, row_at(head, TIMES)[row] - 1), reported_at(head)
    needed = A_LOOK
    while needed != DONE:
        room = room_at(head, key)
        counts = room.counts
        if 2 * (counts[TAIL] - counts[HEAD]) + head[FAN] > len(room.behind):
            head[NEEDED] = MORE_RUNS
            return NEEDS_ROOM
        take_over(head, counts)
        needed = walk_on(machine, conditions, predicate, events, room, out, key, row + 1)
        hinders = hand_back(head, counts, needed)
        if hinders != USED:
            return hinders
        head[WORK] += 1 + counts[TAIL] - counts[HEAD]
    counts = room_at(head, key).counts
    return USED if queued(head, counts, key) else NEEDS_QUEUE


@borrowing
def is_needed(head: Int64s, time: int, kind: int, key: int) -> bool:
    """Does a run do anything with such an event?"""
    place, active = TABLES + 3 * KEYS, TABLES + 3 * ACTIVE
    counts = int64_row(head[place] + 8 * KEY_WIDTH * key, KEY_WIDTH)
    waited_for = int64_row(head[active], head[active + 2])[kind] & counts[PRESENT] != 0
    return bool(waited_for or time >= counts[NEAREST])


@borrowing
def begin_event(head: Int64s, time: int, kind: int, key: int) -> None:
    """Puts an event that is needed behind the others, whose columns are filled."""
    place = TABLES + 3 * KEYS
    counts = int64_row(head[place] + 8 * KEY_WIDTH * key, KEY_WIDTH)
    row, times, kinds = head[SIZE], TABLES + 3 * TIMES, TABLES + 3 * KINDS
    int64_row(head[times], head[times + 2])[row] = time
    int64_row(head[kinds], head[kinds + 2])[row] = kind
    head[SIZE] = row + 1
    head[ROW_AT_WORK], head[KEY_AT_WORK] = row, key
    counts[AT_ROW], counts[PHASE] = row, SEEKING


@kernel
def went_on(head: Int64s) -> int:
    """Goes on with the event at work, after room was made."""
    return walk_event(head)


@borrowing
def copy_columns(head: Int64s, event: int) -> None:
    """Fills the columns of the next row from those of an event of a table."""
    row = head[SIZE]
    whole, new = TABLES + 3 * WHOLE, TABLES + 3 * NEW_WHOLE
    for column in range(head[whole + 1]):
        value = int64_rows(head[new], head[new + 1], head[new + 2])[column, event]
        int64_rows(head[whole], head[whole + 1], head[whole + 2])[column, row] = value
    number, new = TABLES + 3 * NUMBER, TABLES + 3 * NEW_NUMBER
    for column in range(head[number + 1]):
        fraction = float64_rows(head[new], head[new + 1], head[new + 2])[column, event]
        float64_rows(head[number], head[number + 1], head[number + 2])[column, row] = fraction
    null, new = TABLES + 3 * NULL, TABLES + 3 * NEW_NULL
    for column in range(head[null + 1]):
        unknown = uint8_rows(head[new], head[new + 1], head[new + 2])[column, event]
        uint8_rows(head[null], head[null + 1], head[null + 2])[column, row] = unknown


@kernel
def pushed_events(head: Int64s, begin: int, end: int) -> int:
    """Takes in the events of a table, from one to another; how far it came, or what hinders it, less the number."""
    times, kinds, keys = row_at(head, NEW_TIMES), row_at(head, NEW_KINDS), row_at(head, NEW_KEYS)
    taken = row_at(head, TAKEN)
    head[WORK] = 0
    for event in range(begin, end):
        taken[event] = 0
        if keys[event] < 0 or not is_needed(head, times[event], kinds[event], keys[event]):
            continue
        copy_columns(head, event)
        begin_event(head, times[event], kinds[event], keys[event])
        taken[event] = 1
        hinders = walk_event(head)
        if hinders != USED:
            row_at(head, TAKEN)[end] = event
            return hinders
        if head[WORK] > UNTIL_A_PAUSE:
            row_at(head, TAKEN)[end] = event
            return PAUSED
    return USED


@borrowing
def windows_passed(head: Int64s, until: int) -> int:
    """Time has passed: runs are given up; what hinders it, or IDLE."""
    machine, place = machine_at(head), TABLES + 3 * QUEUE
    while head[WAITING_KEYS] > 0:
        queue = int64_rows(head[place], head[place + 1], 2)
        if queue[0, 0] > until:
            break
        key = queue[0, 1]
        room = room_at(head, key)
        counts = room.counts
        take_over(head, counts)
        needed = pass_time(machine, row_at(head, TIMES), room, reported_at(head), key, until)
        hinders = hand_back(head, counts, needed)
        if hinders != USED:
            return hinders
        if needed == DONE:
            drop_earliest(queue, head[WAITING_KEYS])
            head[WAITING_KEYS] -= 1
            counts[QUEUED] = LATEST
            queued(head, counts, key)  # there is room: one has just gone
    return IDLE


@kernel
def passed(head: Int64s, until: int) -> int:
    """The same, for Python."""
    return windows_passed(head, until)


@kernel
def reported_by_step(head: Int64s, number_of: Int64s, events: Int64s, sizes: Int64Rows) -> int:
    """The events of the matches that are reported, match by match and step by step, and how many each step has.

    `number_of` tells steps by places of the automaton. What is reported stays so.
    """
    first, rows, places = row_at(head, OUT_FIRST), row_at(head, OUT_ROW), row_at(head, OUT_STEP)
    begun = np.zeros(sizes.shape[1], np.int64)
    for match in range(sizes.shape[0]):
        sizes[match] = 0
        for taken in range(first[match], first[match + 1]):
            sizes[match, number_of[places[taken]]] += 1
        at = first[match]
        for step in range(sizes.shape[1]):
            begun[step] = at
            at += sizes[match, step]
        for taken in range(first[match], first[match + 1]):
            step = number_of[places[taken]]
            events[begun[step]] = rows[taken] - 1
            begun[step] += 1
    return 0


@kernel
def new_key(head: Int64s, key: int) -> int:
    """Begins with a key; what hinders it, or IDLE."""
    return IDLE if begun_key(head, key) else NEEDS_ARENA


begin_key = Entry(new_key)
go_on = Entry(went_on)
push_table = Entry(pushed_events)
let_pass = Entry(passed)
by_step = Entry(reported_by_step)


# --- the whole state ------------------------------------------------------------------------------------------------


@borrowing
def is_idle(head: Int64s, key: int, start: int) -> bool:
    """Has a key nothing but the run that waits for a first event?"""
    place, arena = TABLES + 3 * KEYS, TABLES + 3 * ARENA
    counts = int64_row(head[place] + 8 * KEY_WIDTH * key, KEY_WIDTH)
    if counts[COMPLETE] > 0 or counts[TAIL] - counts[HEAD] > 1:
        return False
    if counts[TAIL] == counts[HEAD]:
        return True
    runs = int64_rows(head[arena] + 24 * counts[RUNS_AT], counts[RUN_ROOM], 3)
    return bool(runs[counts[HEAD], NODE] < 0)


@kernel
def runs_of_all(head: Int64s) -> Reported:
    """The runs of all keys, as a later call takes them up again; the rows are those of the events."""
    kept, counts = no_runs(), np.zeros(KEY_WIDTH, np.int64)
    for key in range(head[KEYS_USED]):
        if not is_idle(head, key, head[START]):
            kept = suspended(room_at(head, key), kept, counts, key)
    return trimmed(kept, counts)


@kernel
def loaded_runs(head: Int64s, known: Reported) -> None:
    """Takes up runs of an earlier call, by key; there is room for all of them."""
    conditions, machine, low = conditions_at(head), machine_at(head), 0
    while low < len(known.partition):
        key, high = known.partition[low], low
        while high < len(known.partition) and known.partition[high] == key:
            high += 1
        begun_key(head, key)
        place = TABLES + 3 * KEYS
        counts = int64_row(head[place] + 8 * KEY_WIDTH * key, KEY_WIDTH)
        counts[TAIL] = counts[PRESENT] = 0
        moved_block(head, counts, RUNS_AT, RUN_ROOM, 0, high - low + head[FAN] + 2)
        moved_block(head, counts, DONE_AT, DONE_ROOM, 0, high - low + 1)
        take_over(head, counts)
        room = room_at(head, key)
        resume(conditions, room, known, low, high)
        look_for_nearest(machine, row_at(head, TIMES), room)
        head[NODES_USED] = counts[NODES]
        queued(head, counts, key)
        low = high


@kernel
def collected_nodes(head: Int64s) -> None:
    """Drops the nodes that no run needs."""
    if head[KEYS_USED] == 0:
        return
    place = np.full(head[NODES_USED], -1, np.int64)
    for key in range(head[KEYS_USED]):
        mark_nodes(room_at(head, key), place)
    head[NODES_USED] = keep_marked(room_at(head, 0), place)
    for key in range(head[KEYS_USED]):
        find_nodes(room_at(head, key), place)


all_runs = Entry(runs_of_all)
load_runs = Entry(loaded_runs)
collect_nodes = Entry(collected_nodes)
