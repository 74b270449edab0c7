"""The shared match buffer (SASE+ section 5.1): what runs have selected, each event stored once for all that share it.

An entry either adds an event to what its predecessor stands for, or joins two entries: then it stands for all that
either of them stands for. So a run is one entry, merged runs are one entry too, and a match is a path back to a
beginning. Where the paper labels pointers with version numbers so that a traversal meets compatible ones only, here no
wrong path exists: entries never change, and a run that splits shares its past as it is. What the paper leaves to the
cached start times of merged runs, the latest beginning of each entry does: a path that began too early is not followed.
"""

from __future__ import annotations

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.kernels.compile import kernel

# An entry: its event, or JOINED; its predecessor (-1: none), or the first joined one; the place its event fills, or
# the second joined one; and the latest event that a path from here can begin with.
EVENT, LEFT, RIGHT, LATEST = range(4)
JOINED = -1

# An accepting entry: the entry, the earliest event its matches may begin with, how many they are, when they are known.
ENTRY, EARLIEST, MATCHES, KNOWN = range(4)

UNNEEDED = np.iinfo(np.int64).max


@kernel
def larger(rows: Int64Rows, least: int) -> Int64Rows:
    """The same rows with room for at least as many as asked for, and twice as many as before."""
    grown = np.empty((max(2 * rows.shape[0], least), rows.shape[1]), np.int64)
    grown[: rows.shape[0]] = rows
    return grown


@kernel
def collect(entries: Int64Rows, size: int, held: Int64s, accepted: Int64Rows, accepting: int, horizon: int) -> int:
    """Keeps the entries that runs (`held`) or accepted matches still need, in their order; says how many.

    What began before the horizon is over for every run; an accepted match remembers its own earliest beginning.
    """
    needed = np.full(size, UNNEEDED, np.int64)  # for each entry, the earliest beginning that anyone asks it for
    for entry in held:
        if entry >= 0:
            needed[entry] = min(needed[entry], horizon)
    for row in range(accepting):
        entry = accepted[row, ENTRY]
        needed[entry] = min(needed[entry], accepted[row, EARLIEST])
    for entry in range(size - 1, -1, -1):
        if needed[entry] == UNNEEDED:
            continue
        if entries[entry, LATEST] < needed[entry]:
            needed[entry] = UNNEEDED
            continue
        before = entries[entry, LEFT]
        if before >= 0:
            needed[before] = min(needed[before], needed[entry])
        if entries[entry, EVENT] == JOINED:
            other = entries[entry, RIGHT]
            needed[other] = min(needed[other], needed[entry])
    moved = needed  # from here on: where each entry went
    kept = 0
    for entry in range(size):
        if needed[entry] == UNNEEDED:
            moved[entry] = -1
            continue
        before = entries[entry, LEFT]
        left = moved[before] if before >= 0 else -1
        right = entries[entry, RIGHT]
        if entries[entry, EVENT] == JOINED:
            right = moved[right]
            if left < 0 or right < 0:  # one side is over: the other one stands for both
                moved[entry] = max(left, right)
                continue
        entries[kept, EVENT], entries[kept, LEFT] = entries[entry, EVENT], left
        entries[kept, RIGHT], entries[kept, LATEST] = right, entries[entry, LATEST]
        moved[entry] = kept
        kept += 1
    for run in range(len(held)):
        if held[run] >= 0:
            held[run] = moved[held[run]]
    for row in range(accepting):
        accepted[row, ENTRY] = moved[accepted[row, ENTRY]]
    return kept
