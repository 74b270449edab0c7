"""A step of an incremental search: time passes, and the keys of which a match may have come to its end are searched.

The search itself is that of the query's engine (`by_stacks`, `by_runs`, `by_queues`), and is called by its address.
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.incremental.linking import (
    AGAIN,
    BUSY,
    DONE,
    HEAD_SIZE,
    LIMITED,
    MATCHED,
    MATCHES,
    MORE,
    REPLAYS,
    SEARCH_AT,
    SIDE,
    SIDE_KEYS,
    STOPPED,
    gather,
    is_done,
    release,
)
from cepheid.engine.incremental.side_by_side import give_up, prepare
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import int64_row, search_at
from cepheid.engine.kernels.stop import stop_flag


@kernel
def searched(head: Int64s) -> int:
    """Searches the keys that are left, and says how many matches there are, or what hinders it."""
    if head[REPLAYS] == 1:
        return gather(head)
    while not is_done(head):
        hinders = prepare(head)
        if hinders == 0:
            matches, matched = head[MATCHES], head[MATCHED]
            hinders = search_at(head[SEARCH_AT])(head)
            if stop_flag() != 0:  # what it found is not all
                head[MATCHES], head[MATCHED] = matches, matched
                if head[SIDE] == 0:
                    return STOPPED
                give_up(head)
                continue
        if hinders == AGAIN:
            continue
        if hinders != 0:
            return int(hinders)
        head[DONE] += head[SIDE_KEYS]
        if head[LIMITED] == 1 and head[DONE] < head[BUSY]:
            return MORE
    return int(head[MATCHES])


@kernel
def gone_on(head: Int64s) -> int:
    """Goes on after what hindered it is out of the way."""
    return searched(head)


@kernel
def stepped(head: Int64s, until: int) -> int:
    """Time has passed: searches the keys of which a match may have come to its end."""
    release(head, until, False)
    return searched(head)


@kernel
def all_stepped(heads: Int64s, until: int, returned: Int64s) -> int:
    """The same of several queries, whose arrays lie at these addresses."""
    for number in range(len(heads)):
        returned[number] = stepped(int64_row(heads[number], HEAD_SIZE), until)
    return 0


go_on, step, step_all = Entry(gone_on), Entry(stepped), Entry(all_stepped)
