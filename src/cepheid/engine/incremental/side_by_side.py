"""Events of a key lie side by side where the engine of the query searches them.

A key with few events is laid out anew for each search, together with others. One with many keeps a place for itself:
only what came since is added, and the search goes on from where it was (`by_stacks`, `by_runs`), so that an event costs
what it causes and not what the window holds. Such a place is a cache like all of this. It is made anew when it is full,
and dropped whenever events get other numbers.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.layout import CHANCE, INSTANT, MASK, PRECISE_FACTS, TIME
from cepheid.engine.incremental.linking import (
    AFTER,
    BRIEF,
    BUSY,
    BUSY_AT,
    BY_QUEUES,
    BY_RUNS,
    CHAINS,
    CONTIGUOUS,
    DEADLINE,
    DONE,
    FACTS_AT,
    FACTS_OF_EVENT,
    FEW_EVENTS,
    IN_ORDER,
    IN_PARTITION,
    KEY_ROOM,
    KEYS_AT,
    LATEST,
    LINK,
    MANY,
    MATCHED,
    MATCHES,
    NEEDED,
    NEEDS_OWN_SIDE,
    NEEDS_SIDE,
    NOT_BRIEF,
    NULL_AT,
    NULL_ROWS,
    NUMBER_AT,
    NUMBER_ROWS,
    ORDINAL,
    OWN_SIDE,
    PLACES,
    ROOM,
    SEARCH,
    SIDE,
    SIDE_AT,
    SIDE_EVENTS_AT,
    SIDE_KEYS,
    SIDE_NULL_AT,
    SIDE_NUMBER_AT,
    SIDE_ROOM,
    SIDE_SIZE,
    SIDE_STARTS_AT,
    SIDE_WHOLE_AT,
    SIDES,
    SIDES_AT,
    STAGES,
    STOPPED,
    WHOLE_AT,
    WHOLE_ROWS,
    in_reach,
)
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.kernels.memory import float64_rows, int64_row, int64_rows, uint8_rows
from cepheid.engine.kernels.stop import stop_flag

FEW = 12  # events of a key with groups of any combination

# What is known of a place: its arrays, as in `head`; how many events lie there, and how many of them the search knows;
# the memory of the search, how many runs and entries it has room for, and how many it has to have; and in which search
# how many matches, with how many events, there were before those of this key. The first place is that of all keys that
# have none for themselves.
AT, EVENT_ROOM, WHOLES, FRACTIONS, NULLS, EVENTS, STARTS, LAID, KNOWN, STATE_AT = range(10)
RUNS, ENTRIES, RUNS_NEEDED, ENTRIES_NEEDED, OF_SEARCH, MATCHES_BEFORE, MATCHED_BEFORE = range(10, 17)
OF_SIDE = 17


@borrowing
def side_at(head: Int64s) -> int:
    """Where the row of the place at hand is."""
    return int(head[SIDES_AT] + 8 * OF_SIDE * head[SIDE])


@borrowing
def use_side(head: Int64s, number: int) -> None:
    """Goes to a place."""
    head[SIDE] = number
    side = int64_row(side_at(head), OF_SIDE)
    head[SIDE_AT], head[SIDE_ROOM], head[SIDE_EVENTS_AT] = side[AT], side[EVENT_ROOM], side[EVENTS]
    head[SIDE_WHOLE_AT], head[SIDE_NUMBER_AT], head[SIDE_NULL_AT] = side[WHOLES], side[FRACTIONS], side[NULLS]
    head[SIDE_STARTS_AT] = side[STARTS]


@borrowing
def key_at(head: Int64s) -> int:
    """Where the row of the key is that is searched next."""
    key = int64_row(head[BUSY_AT], head[KEY_ROOM])[head[DONE]]
    return int(head[KEYS_AT] + 8 * (CHAINS + head[STAGES]) * key)


@borrowing
def take_back(head: Int64s) -> None:
    """The matches that the key at hand has in this search are found again: its place is begun anew."""
    side = int64_row(side_at(head), OF_SIDE)
    side[LAID] = 0
    if side[OF_SEARCH] == head[SEARCH]:
        head[MATCHES], head[MATCHED] = side[MATCHES_BEFORE], side[MATCHED_BEFORE]


@borrowing
def give_up(head: Int64s) -> None:
    """The key at hand has no place for itself any more, and is searched as others are."""
    take_back(head)
    int64_row(key_at(head), CHAINS)[OWN_SIDE] = -1


@borrowing
def drop_sides(head: Int64s) -> None:
    """Events get other numbers: no key has a place for itself."""
    keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], CHAINS + head[STAGES])
    if head[FEW_EVENTS] > 0:
        for key in range(head[KEY_ROOM]):
            keys[key, OWN_SIDE] = 0
    head[SIDES] = 1


@borrowing
def lay_down(head: Int64s, latest: int, begin: int, number: int) -> None:
    """Copies so many of the latest events of a key, in order of time, to a place; what lies there is not of it, or
    earlier."""
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    side = int64_rows(head[SIDE_AT], PRECISE_FACTS, head[SIDE_ROOM])
    chosen = int64_row(head[SIDE_EVENTS_AT], head[SIDE_ROOM])
    event, end = latest, begin + number
    for place in range(end - 1, begin - 1, -1):
        chosen[place] = event
        event = facts[LINK, event]
    first = 0 if head[SIDE] > 0 else begin  # of the events of this key
    for place in range(begin, end):
        event = chosen[place]
        for fact in range(PRECISE_FACTS):
            side[fact, place] = facts[fact, event]
        side[CHANCE, place] = side[INSTANT, place] + 1 if head[CONTIGUOUS] == IN_ORDER else np.int64(-1)
        if head[CONTIGUOUS] == IN_PARTITION and place > first:
            adjacent = facts[ORDINAL, event] == facts[ORDINAL, chosen[place - 1]] + 1
            note_chance(side, adjacent, first, place)
    copy_columns(head, chosen, begin, end)


@borrowing
def note_chance(side: Int64Rows, adjacent: bool, first: int, place: int) -> None:
    """The events of the instant before can be followed at this one, if nothing else of their key lies between."""
    before = place - 1
    while adjacent and before >= first and side[INSTANT, before] == side[INSTANT, place - 1]:
        side[CHANCE, before] = side[INSTANT, place]
        before -= 1


@borrowing
def copy_columns(head: Int64s, chosen: Int64s, begin: int, end: int) -> None:
    """Copies what conditions read of some events."""
    whole = int64_rows(head[WHOLE_AT], head[WHOLE_ROWS], head[ROOM])
    numbers = float64_rows(head[NUMBER_AT], head[NUMBER_ROWS], head[ROOM])
    null = uint8_rows(head[NULL_AT], head[NULL_ROWS], head[ROOM])
    side_whole = int64_rows(head[SIDE_WHOLE_AT], head[WHOLE_ROWS], head[SIDE_ROOM])
    side_number = float64_rows(head[SIDE_NUMBER_AT], head[NUMBER_ROWS], head[SIDE_ROOM])
    side_null = uint8_rows(head[SIDE_NULL_AT], head[NULL_ROWS], head[SIDE_ROOM])
    for place in range(begin, end):
        for row in range(head[WHOLE_ROWS]):
            side_whole[row, place] = whole[row, chosen[place]]
        for row in range(head[NUMBER_ROWS]):
            side_number[row, place] = numbers[row, chosen[place]]
        for row in range(head[NULL_ROWS]):
            side_null[row, place] = null[row, chosen[place]]


@borrowing
def combinations(head: Int64s, begin: int, end: int) -> float:
    """How many combinations or pairs of events a search of those that lie in a place may have to look at."""
    number = float(end - begin)
    if head[MANY] == 1:
        return 0.0 if number <= FEW else 2 * BRIEF
    if head[BY_RUNS] == 1:
        return number * number
    side = int64_rows(head[SIDE_AT], PRECISE_FACTS, head[SIDE_ROOM])
    found = 1.0
    for place in range(head[PLACES]):
        fitting = head[BY_QUEUES]
        for event in range(begin, end):
            fits = side[MASK, event] & (1 << place) != 0
            if fits and (place + 1 < head[PLACES] or head[DEADLINE] > 0 or side[TIME, event] > head[AFTER]):
                fitting += 1
        found *= fitting
    return found


@borrowing
def since(head: Int64s, side: Int64s, latest: int) -> int:
    """How many events of a key came since those that lie at its own place."""
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    known = int64_row(side[EVENTS], side[EVENT_ROOM])[side[LAID] - 1]
    event, number = latest, 0
    while event > known:
        number += 1
        event = facts[LINK, event]
    return number


@borrowing
def lay_at_own_place(head: Int64s) -> int:
    """Lays the events of the next key at a place of its own; 0: it has too few of them, or what is lacking."""
    key = int64_row(key_at(head), CHAINS)
    if head[FEW_EVENTS] == 0 or key[OWN_SIDE] < 0:
        return 0
    if key[OWN_SIDE] > 0:
        use_side(head, key[OWN_SIDE])
        side = int64_row(side_at(head), OF_SIDE)
        if side[LAID] > 0:
            number = since(head, side, key[LATEST])
            if side[LAID] + number <= side[EVENT_ROOM]:
                return laid_at_own_place(head, side, key[LATEST], number)
            side[LAID] = 0
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    number = in_reach(head, facts, key[LATEST])
    if number <= head[FEW_EVENTS]:
        return 0
    if key[OWN_SIDE] > 0:
        side = int64_row(side_at(head), OF_SIDE)
        grown = side[RUNS] < side[RUNS_NEEDED] or side[ENTRIES] < side[ENTRIES_NEEDED]
        if not grown and number + number // 2 <= side[EVENT_ROOM]:
            return laid_at_own_place(head, side, key[LATEST], number)
    head[NEEDED] = number
    return NEEDS_OWN_SIDE


@borrowing
def laid_at_own_place(head: Int64s, side: Int64s, latest: int, number: int) -> int:
    """Lays so many events behind those that lie there."""
    if side[LAID] == 0:
        side[KNOWN] = 0
    lay_down(head, latest, side[LAID], number)
    side[LAID] += number
    starts = int64_row(side[STARTS], 2)
    starts[0], starts[1] = 0, side[LAID]
    head[SIDE_SIZE], head[SIDE_KEYS] = side[LAID], 1
    if side[OF_SEARCH] != head[SEARCH]:
        side[OF_SEARCH], side[MATCHES_BEFORE], side[MATCHED_BEFORE] = head[SEARCH], head[MATCHES], head[MATCHED]
    return 1


@kernel
def prepare(head: Int64s) -> int:
    """Lays the events of the next keys side by side, as many as can be searched briefly; what hinders that, or 0."""
    own = lay_at_own_place(head)
    if own != 0:
        return 0 if own > 0 else own
    use_side(head, 0)
    facts = int64_rows(head[FACTS_AT], FACTS_OF_EVENT, head[ROOM])
    keys = int64_rows(head[KEYS_AT], head[KEY_ROOM], CHAINS + head[STAGES])
    busy = int64_row(head[BUSY_AT], head[KEY_ROOM])
    starts = int64_row(head[SIDE_STARTS_AT], head[SIDE_ROOM] + 1)
    head[SIDE_KEYS], begin, work = 0, 0, 0.0
    while head[DONE] + head[SIDE_KEYS] < head[BUSY]:
        key = busy[head[DONE] + head[SIDE_KEYS]]
        if begin > 0 and keys[key, OWN_SIDE] > 0:
            break
        number = in_reach(head, facts, keys[key, LATEST])
        if begin > 0 and 0 < head[FEW_EVENTS] < number and keys[key, OWN_SIDE] == 0:
            break  # it gets a place for itself
        if begin + number > head[SIDE_ROOM]:
            head[NEEDED] = begin + number
            if begin == 0:
                return NEEDS_SIDE
            break
        lay_down(head, keys[key, LATEST], begin, number)
        work += combinations(head, begin, begin + number)
        if work > BRIEF and begin > 0:
            break
        starts[head[SIDE_KEYS]] = begin
        begin += number
        head[SIDE_KEYS] += 1
        starts[head[SIDE_KEYS]] = head[SIDE_SIZE] = begin
        if work > BRIEF:
            return NOT_BRIEF
    return STOPPED if stop_flag() != 0 else 0
