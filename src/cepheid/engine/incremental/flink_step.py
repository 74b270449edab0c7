"""Single events into the runs of a Flink pattern."""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.dict_door import FAR, filled
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.flink_push import (
    HEAD_SIZE,
    IDLE,
    KEYS,
    KEYS_USED,
    NEEDED,
    NULL,
    QUEUE,
    REPORTED_RUNS,
    SIZE,
    TABLES,
    TIMES,
    USED,
    WAITING_KEYS,
    WHOLE,
    all_runs,
    begin_event,
    begin_key,
    begun_key,
    by_step,
    collect_nodes,
    is_needed,
    let_pass,
    load_runs,
    push_table,
    walk_event,
    windows_passed,
)
from cepheid.engine.incremental.flink_push import go_on as go_on_with
from cepheid.engine.incremental.pattern_door import BITS as EVENT_BITS
from cepheid.engine.incremental.pattern_door import (
    FRESH,
    HINDERED,
    INSIDE,
    NEXT_DUE,
    NO_MEMORY,
    PASSES,
    READ_FROM,
    READ_TO,
    ROOMS,
    SEARCH,
    STAGE,
    WATERMARK,
    arrive,
    go_on,
    logged,
)
from cepheid.engine.incremental.pattern_door import KEY as EVENT_KEY
from cepheid.engine.incremental.pattern_door import TIME as EVENT_TIME
from cepheid.engine.incremental.pattern_door import UNTIL as PASSES_UNTIL
from cepheid.engine.incremental.pattern_rows import (
    check_rows,
    release_rows,
)
from cepheid.engine.incremental.result_rows import find, make
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import int64_row, int64_rows


@kernel
def event_is_idle(door: Int64s) -> int:
    """1 if the event at work does nothing."""
    head, key = int64_row(door[SEARCH], HEAD_SIZE), door[EVENT_KEY]
    return 0 if key >= 0 and is_needed(head, door[EVENT_TIME], door[EVENT_BITS], key) else 1


@kernel
def event_step(door: Int64s) -> int:
    """Takes in the event at work, and lets time pass; how many runs there are to report, or what hinders it."""
    head = int64_row(door[SEARCH], HEAD_SIZE)
    key = door[EVENT_KEY]
    if door[STAGE] == FRESH and key >= 0 and is_needed(head, door[EVENT_TIME], door[EVENT_BITS], key):
        place, rooms = head[SIZE], door[ROOMS : ROOMS + 3]
        room = head[TABLES + 3 * NULL + 2]
        if place + 1 > min(room, head[TABLES + 3 * TIMES + 2]):
            return HINDERED
        for number in range(3):
            rooms[number] = head[TABLES + 3 * (WHOLE + number)]
        filled(door, rooms, door[READ_FROM : READ_TO + 1], room, place, door[SEARCH] + 8 * NEEDED)
        begin_event(head, door[EVENT_TIME], door[EVENT_BITS], key)
        if logged(door) == 0:
            return NO_MEMORY
        door[STAGE] = INSIDE
    if door[STAGE] == INSIDE:
        hinders = walk_event(head)
        if hinders != USED:
            return HINDERED + hinders
    door[STAGE] = PASSES
    queue, until = TABLES + 3 * QUEUE, door[PASSES_UNTIL]
    if until < door[WATERMARK]:
        until -= 1  # an event's time: others of its instant may come behind it
    if head[WAITING_KEYS] > 0 and int64_rows(head[queue], 1, 2)[0, 0] <= until:
        hinders = windows_passed(head, until)
        if hinders != IDLE:
            return HINDERED + hinders
    door[NEXT_DUE] = int64_rows(head[queue], 1, 2)[0, 0] if head[WAITING_KEYS] > 0 else FAR
    return int(head[REPORTED_RUNS])


@kernel
def event_key_begun(door: Int64s) -> int:
    """1 if there is room for the key at work, which is new, and the run that waits for its first event."""
    head, key = int64_row(door[SEARCH], HEAD_SIZE), door[EVENT_KEY]
    if key >= head[TABLES + 3 * KEYS + 1] or not begun_key(head, key):
        return 0
    head[KEYS_USED] = key + 1
    return 1


step, is_idle = Entry(event_step), Entry(event_is_idle)
key_begun = Entry(event_key_begun)
# All that has to be compiled before single events are taken in.
__all__ = [
    "all_runs",
    "arrive",
    "begin_key",
    "by_step",
    "check_rows",
    "collect_nodes",
    "find",
    "go_on",
    "go_on_with",
    "is_idle",
    "key_begun",
    "let_pass",
    "load_runs",
    "make",
    "push_table",
    "release_rows",
    "step",
]
