"""Matches of the keys of which one may have come to its end, by the run engine: strategies, groups, expressions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import INSTANT, Events
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AFTER,
    AGAIN,
    FACTS_AT,
    FACTS_OF_EVENT,
    KEY_WIDTH,
    KNOWN_AT,
    KNOWN_ROOM,
    MATCHED,
    MATCHES,
    MERGING,
    MORE,
    MOST_MATCHES,
    MOST_RUNS,
    NEEDS_MATCHES,
    NEGATIVES,
    NUMBERS,
    OUT_AT,
    OUT_ROOM,
    PLACES,
    PREDICATE_AT,
    ROOM,
    ROW,
    SIDE,
    SIDE_EVENTS_AT,
    SIDE_SIZE,
    SIZES_AT,
    SLOTS,
    TOO_MANY_MATCHES,
    TOO_MANY_RUNS,
    UNTIL,
    WHOLES,
    columns_at,
    events_at,
    graph_at,
    has_room,
    program_at,
)
from cepheid.engine.incremental.side_by_side import (
    ENTRIES,
    ENTRIES_NEEDED,
    EVENT_ROOM,
    KNOWN,
    LAID,
    OF_SIDE,
    RUNS,
    RUNS_NEEDED,
    STATE_AT,
    give_up,
    side_at,
    take_back,
)
from cepheid.engine.incremental.stepping import go_on, step
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel
from cepheid.engine.kernels.conditions import new_scratch
from cepheid.engine.kernels.memory import float64_rows, function_at, int64_row, int64_rows
from cepheid.engine.kernels.query import Absent, Query, add_absent
from cepheid.engine.search.runs.by_value import Waits, new_by_value
from cepheid.engine.search.runs.enumerate import EVENTS_LISTED, FOUND, Listed
from cepheid.engine.search.runs.moves import AFTER as BEGINS_AFTER
from cepheid.engine.search.runs.moves import (
    ALIVE,
    FACTS,
    FRESH,
    OVERFLOW,
    SLOTS_USED,
    STATE,
    RunPool,
    Runs,
    Widths,
    free_all,
)
from cepheid.engine.search.runs.moves import UNTIL as KNOWN_UNTIL
from cepheid.engine.search.runs.scan import (
    CROWDED,
    CURSOR,
    END,
    HORIZON,
    LOW,
    MOST_ACCEPTED,
    NOTHING_REACHED,
    OFTEN,
    OPENING,
    RUNS_REACHED,
    STAGE,
    VERBOSE,
    Lists,
    Machine,
    Progress,
    SearchRequest,
    follow_all,
    purge,
    scan,
)
from cepheid.engine.search.runs.scan import MOST_RUNS as MOST_RUNS_SEEN

MOST_LOOKS = 200_000  # at runs, before Python can be interrupted; and runs of one key that are kept
_scan = scan.__wrapped__  # type: ignore[attr-defined]
del scan  # by its name it would be one of the kernels that are called here


@kernel
def nothing_waits() -> Waits:
    """No runs are found by value."""
    return Waits(np.zeros((0, 5), np.int64), np.zeros((0, 0), np.int64), 0)


@kernel
def nothing_listed(head: Int64s) -> Listed:
    """Room for a few matches."""
    sizes = np.zeros((16, head[PLACES]), np.int64)
    return Listed(np.empty(64, np.int32), sizes, np.empty(16, np.int64), np.zeros(3, np.int64))


@borrowing
def asked_of(head: Int64s, most_runs: int) -> SearchRequest:
    """What is asked for."""
    limit = head[MOST_MATCHES] - head[MATCHES]
    return SearchRequest(VERBOSE, head[MERGING] == 1, False, head[AFTER], head[UNTIL], most_runs, limit)


@borrowing
def write_down(head: Int64s, listed: Listed) -> int:
    """Writes matches to where results are; or there is no room for them."""
    found, size, places = listed.filled[FOUND], listed.filled[EVENTS_LISTED], head[PLACES]
    if not has_room(head, found, size):
        return NEEDS_MATCHES
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    laid = int64_row(head[SIDE_EVENTS_AT], head[SIDE_SIZE])
    out, when = int64_row(head[OUT_AT], head[OUT_ROOM]), int64_row(head[KNOWN_AT], head[KNOWN_ROOM])
    sizes = int64_rows(head[SIZES_AT], head[KNOWN_ROOM], places)
    for match in range(found):
        when[head[MATCHES]] = listed.known[match]
        for place in range(places):
            sizes[head[MATCHES], place] = listed.sizes[match, place]
        head[MATCHES] += 1
    for event in range(size):
        out[head[MATCHED]] = facts[ROW, laid[listed.events[event]]]
        head[MATCHED] += 1
    return 0


class KeptRuns(NamedTuple):
    """The runs of a key that has a place for itself."""

    runs: Runs
    entries: Int64Rows
    marks: Int64Rows
    ends: Int64Rows
    chains: Int64s
    state: Int64s
    cursor: Int64s
    absent: Absent


def words_of_runs(widths: Widths, states: int, negatives: int, rooms: tuple[int, int, int]) -> int:
    """How much memory they have, with room for so many events, runs and entries."""
    events, runs, entries = rooms
    row = FACTS + widths.slots + widths.whole + widths.key + widths.number + 2
    return runs * row + 4 * entries + (2 + negatives) * events + 2 * states + STATE + CURSOR + negatives


@kernel
def kept_runs(head: Int64s, side: Int64s, states: int) -> KeptRuns:
    """The runs of the key at hand."""
    room, size, negatives = side[EVENT_ROOM], side[RUNS], head[NEGATIVES]
    key = FACTS + head[SLOTS] + head[WHOLES]
    running = side[STATE_AT] + 8 * size * (key + head[KEY_WIDTH])
    entry = running + 8 * size * head[NUMBERS]
    chains = entry + 8 * size
    entries = chains + 8 * size
    marks = entries + 8 * 4 * side[ENTRIES]
    ends = marks + 8 * 2 * room
    state = ends + 8 * 2 * states
    cursor = state + 8 * STATE
    absent = cursor + 8 * CURSOR
    return KeptRuns(
        Runs(
            int64_rows(side[STATE_AT], size, key + head[KEY_WIDTH]),
            float64_rows(running, size, head[NUMBERS]),
            int64_row(entry, size),
            FACTS,
            FACTS + head[SLOTS],
            key,
        ),
        int64_rows(entries, side[ENTRIES], 4),
        int64_rows(marks, room, 2),
        int64_rows(ends, states, 2),
        int64_row(chains, size if head[MERGING] == 1 else 0),
        int64_row(state, STATE),
        int64_row(cursor, CURSOR),
        Absent(int64_rows(absent, negatives, room), int64_row(absent + 8 * negatives * room, negatives)),
    )


@kernel
def begin_anew(kept: KeptRuns, most_runs: int) -> None:
    """There are no runs, and no event was seen."""
    kept.runs.rows[:], kept.runs.running[:], kept.runs.entry[:] = 0, 0.0, -1
    kept.marks[:], kept.ends[:], kept.chains[:] = 0, -1, -1
    kept.state[:], kept.cursor[:], kept.absent.sizes[:] = 0, 0, 0
    free_all(kept.runs, kept.state)
    kept.state[FRESH], kept.cursor[STAGE] = -1, OPENING
    kept.cursor[MOST_RUNS_SEEN], kept.cursor[MOST_ACCEPTED] = most_runs, OFTEN


@borrowing
def is_crowded(query: Query, kept: KeptRuns, pool: RunPool, lists: Lists) -> bool:
    """Is there too little room for runs though those that are over have gone?"""
    if kept.state[SLOTS_USED] <= kept.cursor[CROWDED]:
        return False
    purge(kept.runs, pool, lists, query.program, kept.cursor[HORIZON])
    return bool(kept.state[SLOTS_USED] > len(kept.runs.entry) // 2)


@borrowing
def next_end(events: Events, cursor: Int64s, alive: int, size: int) -> int:
    """Where runs that are shown the next events stop briefly: behind all events of an instant."""
    end = min(size, cursor[LOW] + max(1, MOST_LOOKS // (alive + 1)))
    while end < size and events.facts[INSTANT, end] == events.facts[INSTANT, end - 1]:
        end += 1
    return int(end)


@kernel
def search_kept_runs(head: Int64s) -> int:
    """Shows the runs of the key that has a place for itself what came since the last search."""
    side, events, program, graph = int64_row(side_at(head), OF_SIDE), events_at(head), program_at(head), graph_at(head)
    kept = kept_runs(head, side, len(graph.states) - 1)
    state, cursor, size = kept.state, kept.cursor, side[LAID]
    asked = asked_of(head, min(head[MOST_RUNS], MOST_LOOKS))
    if side[KNOWN] == 0:
        begin_anew(kept, asked.most_runs)
    add_absent(events, program, side[KNOWN], size, kept.absent)
    side[KNOWN] = size
    state[BEGINS_AFTER], state[KNOWN_UNTIL] = asked.after, asked.until
    cursor[CROWDED] = side[RUNS] - side[RUNS] // 4
    scratch = new_scratch(head[SLOTS], head[WHOLES], head[NUMBERS], 0)
    nothing = np.empty((0, 2), np.int64)
    pool = RunPool(kept.entries, np.empty((64, 4), np.int64), nothing, kept.marks, state, scratch)
    lists = Lists(kept.ends, kept.chains, new_by_value(nothing_waits(), 0))
    query = Query(events, program, columns_at(head), function_at(head[PREDICATE_AT]), kept.absent)
    if is_crowded(query, kept, pool, lists):
        side[RUNS_NEEDED] = 2 * side[RUNS]
        take_back(head)
        return AGAIN
    progress, looks = Progress(kept.runs, pool, lists, nothing_listed(head)), 0
    while cursor[LOW] < size and state[OVERFLOW] == NOTHING_REACHED and looks < MOST_LOOKS:
        cursor[END] = next_end(events, cursor, state[ALIVE], size)
        looks += (cursor[END] - cursor[LOW]) * (state[ALIVE] + 1)
        progress = follow_all(query, graph, progress, cursor, asked)
    return ended(head, side, progress, cursor[LOW] < size)


@borrowing
def ended(head: Int64s, side: Int64s, progress: Progress, more: bool) -> int:
    """Writes down what runs found, and sees whether they can go on from here."""
    reached = progress.run_pool.state[OVERFLOW]
    if reached == RUNS_REACHED and head[MOST_RUNS] > MOST_LOOKS:  # it goes where it can be stopped
        give_up(head)
        return AGAIN
    if reached != NOTHING_REACHED:
        return TOO_MANY_RUNS if reached == RUNS_REACHED else TOO_MANY_MATCHES
    side[RUNS_NEEDED] = max(side[RUNS_NEEDED], len(progress.runs.entry))
    side[ENTRIES_NEEDED] = max(side[ENTRIES_NEEDED], len(progress.run_pool.entries))
    grown = side[RUNS] < side[RUNS_NEEDED] or side[ENTRIES] < side[ENTRIES_NEEDED]
    lacking = write_down(head, progress.listed)
    if lacking != 0 or (grown and more):
        take_back(head)
        return lacking if lacking != 0 else AGAIN
    if grown:
        side[LAID] = 0  # the next search begins anew, with more room
    return MORE if more else 0


@called_by_address
def search_runs(head: Int64s) -> int:
    """The matches that runs find among the events that lie side by side."""
    if head[SIDE] > 0:
        return search_kept_runs(head)
    listed, _, _, state = _scan(
        events_at(head),
        Machine(program_at(head), graph_at(head)),
        columns_at(head),
        function_at(head[PREDICATE_AT]),
        nothing_waits(),
        Widths(0, head[SLOTS], head[WHOLES], head[NUMBERS], head[KEY_WIDTH]),
        nothing_listed(head),
        asked_of(head, head[MOST_RUNS]),
    )
    if state[OVERFLOW] != NOTHING_REACHED:
        return TOO_MANY_RUNS if state[OVERFLOW] == RUNS_REACHED else TOO_MANY_MATCHES
    return write_down(head, listed)


search = Entry(search_runs)

__all__ = ["go_on", "search", "step"]
