"""What was judged before: matches that look alike, wherever in the stream they lie, have the same confidence.

Confidence depends on nothing but how the intervals of a match and of its competitors lie to each other. Readings that
come at regular distances repeat the same few shapes for ever, so that a shape is judged once and looked up from then
on: exactly the same numbers. Where every event that fits a place is a competitor, whatever was chosen before, the shape
is known before the competitors are; then even those need not be looked for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64Rows, Int64Rows, Int64s
from cepheid.engine.data.timed import Stacks, Timed, first_beyond, first_reaching
from cepheid.engine.kernels.compile import borrowing, kernel
from cepheid.engine.program.tables import KLEENE, SKIP_NEXT, Program

SHAPES = 4096  # that are remembered; a new one may take the place of one that hashes alike...
WAYS = 4  # ... and has so many places to choose from
LONGEST = 320  # numbers that describe a shape; what needs more is judged every time
ASKED_AGAIN = 16  # where next to nothing is known, every so many-th match is looked up to see whether that has changed
ENOUGH = 256  # questions that show how much is known
BOUNDED_ONES, ASKED, KNOWN, TURN = range(4)  # what is counted: `bounded`, questions, answers, and matches
CONFIDENCE, EARLIEST, LATEST, BOUNDED = range(4)  # two are counted from the first valid instant; the last is a flag


class Memory(NamedTuple):
    """Shapes and what they are worth."""

    shapes: Int64Rows  # a row for each: its numbers
    sizes: Int64s  # how many numbers; 0: nothing is remembered here
    values: Float64Rows
    shape: Int64s  # room for the shape at hand
    tally: Int64s  # first: how many confidences that are asked for came of bounds, remembered ones included


@kernel
def new_memory() -> Memory:
    """Nothing is remembered yet."""
    return Memory(
        np.empty((SHAPES, LONGEST), np.int64),
        np.zeros(SHAPES, np.int64),
        np.empty((SHAPES, 4)),
        np.empty(LONGEST, np.int64),
        np.zeros(4, np.int64),
    )


@borrowing
def is_worth_asking(memory: Memory) -> bool:
    """Is so much known that looking a shape up pays? At irregular distances hardly two matches look alike."""
    tally = memory.tally
    if tally[ASKED] >= 4 * ENOUGH:  # the past counts less and less
        tally[ASKED], tally[KNOWN] = tally[ASKED] // 2, tally[KNOWN] // 2
    tally[TURN] += 1
    return tally[ASKED] < ENOUGH or 4 * tally[KNOWN] > tally[ASKED] or tally[TURN] % ASKED_AGAIN == 0  # type: ignore[no-any-return]


@borrowing
def fits_decide(program: Program, compared: Int64Rows) -> bool:
    """Is whoever fits a place a competitor there, whatever was chosen before?"""
    if program.strategy != SKIP_NEXT or program.negatives > 0 or compared.shape[0] > 0 or program.judged:
        return False
    for place in range(program.places):
        if program.place[place, KLEENE] == 1 or program.moments[3 * place] < program.moments[3 * place + 1]:
            return False
    return True


@borrowing
def shape_of_match(timed: Timed, memory: Memory, chosen: Int64s, low: Int64s, high: Int64s) -> int:
    """Writes down how the events of a match lie to each other; how many numbers that are, 0: too many.

    Only for times that are uniform in their intervals.
    """
    shape, start, size = memory.shape, low[0], 0
    if len(timed.point) > 0 or 6 * len(chosen) > LONGEST:
        return 0
    for place in range(len(chosen)):
        event = chosen[place]
        shape[size], shape[size + 1] = timed.lower[event] - start, timed.upper[event] - start
        shape[size + 2], shape[size + 3] = low[place] - start, high[place] - start
        size += 4
    return size


@borrowing
def shape_with_competitors(
    timed: Timed, memory: Memory, chosen: Int64s, low: Int64s, high: Int64s, keys: Int64s
) -> int:
    """The same with its competitors, who surely happened; their keys as `Competitors` has them."""
    size, gaps, start = shape_of_match(timed, memory, chosen, low, high), len(chosen) + 1, low[0]
    if size == 0 or size + 3 * len(keys) > LONGEST:
        return 0
    for key in keys:
        event = key // gaps
        if timed.exists[event] < 1.0:
            return 0
        # Who can disturb one gap only and who several is told apart by the event's number.
        memory.shape[size], memory.shape[size + 1] = timed.lower[event] - start, timed.upper[event] - start
        memory.shape[size + 2] = key - chosen[0] * gaps
        size += 3
    return size


@borrowing
def shape_of(timed: Timed, stacks: Stacks, memory: Memory, part: int, chosen: Int64s, low: Int64s, high: Int64s) -> int:
    """The same with all that fits its places, for queries where these are its competitors."""
    shape, start, size = memory.shape, low[0], shape_of_match(timed, memory, chosen, low, high)
    if size == 0:
        return 0
    for place in range(1, len(chosen)):
        after, before = low[place - 1] + 1, high[place] - 1
        end = first_beyond(stacks, timed.lower, stacks.begin[place, part], stacks.begin[place, part + 1], before)
        for index in range(first_reaching(stacks, stacks.begin[place, part], end, after), end):
            event = stacks.member[index]
            if timed.upper[event] < after:
                continue
            taken = 0
            for other in range(len(chosen)):
                if chosen[other] == event:
                    taken = 1
            if taken == 1:
                continue
            if timed.exists[event] < 1.0 or size + 4 > LONGEST:
                return 0
            # Who can disturb one gap only and who either is told apart by where the event stands in the stack.
            shape[size], shape[size + 1] = timed.lower[event] - start, timed.upper[event] - start
            shape[size + 2] = event - chosen[0]
            size += 3
        shape[size] = -1 - place
        size += 1
    return size


@borrowing
def place_in_memory(memory: Memory, size: int) -> int:
    """Where the shape at hand is remembered, or would be."""
    mixed = np.int64(size)
    for index in range(size):
        mixed = (mixed * 31 + memory.shape[index]) & 0x3FFFFFFFFFFFFF
        mixed ^= mixed >> 17
    first = int(mixed & (SHAPES - 1))
    for way in range(WAYS):
        if memory.sizes[first ^ way] == 0 or is_known(memory, first ^ way, size):
            return first ^ way
    return first ^ int((mixed >> 20) & (WAYS - 1))


@borrowing
def is_known(memory: Memory, slot: int, size: int) -> bool:
    """Is it the shape at hand that is remembered there?"""
    if memory.sizes[slot] != size:
        return False
    for index in range(size):
        if memory.shapes[slot, index] != memory.shape[index]:
            return False
    return True


@borrowing
def remember(
    memory: Memory, slot: int, size: int, start: int, confidence: float, earliest: int, latest: int, bounded: bool
) -> None:
    """Remembers what the shape at hand is worth."""
    memory.sizes[slot] = size
    for index in range(size):
        memory.shapes[slot, index] = memory.shape[index]
    memory.values[slot, CONFIDENCE], memory.values[slot, BOUNDED] = confidence, bounded
    memory.values[slot, EARLIEST], memory.values[slot, LATEST] = earliest - start, latest - start
