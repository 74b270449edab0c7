"""The search itself: backtracking over a program, partition by partition, with a memory of what led to nothing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int32s, Int64Rows, Int64s, Uint8Rows, Uint8s
from cepheid.engine.data.columns import PredicateCall
from cepheid.engine.kernels.compile import borrowing, inlined, kernel, search_kernel, unlocked_kernel
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.search.row_pattern.memory import (
    FULL,
    LASTING,
    MOST,
    USED,
    Memory,
    forget,
    new_entry,
    with_more_entries,
)
from cepheid.engine.search.row_pattern.path_state import (
    Judging,
    PathState,
    extend,
    holds_here,
)
from cepheid.engine.search.row_pattern.program import (
    AT_START,
    DONE,
    JUMP,
    KEYED,
    LOOP,
    PASSES,
    REMEMBER,
    SPLIT,
    TAKE,
    Program,
)

UNMATCHED = -1  # the length of a match that is none
SKIP_PAST_LAST, SKIP_NEXT, SKIP_FIRST, SKIP_LAST = range(4)
OUT_OF_ROOM = -2  # the attempt needs larger arrays
UNSETTLED = -3  # rows that are still to come may decide
NO_SUCH_LABEL, NO_PROGRESS = 1, 2  # what AFTER MATCH SKIP may run into
NEEDS_MEMORY = 3  # the search failed so often that it had better begin again with a memory under keys
TOO_MANY_ROWS = 4  # the matches have more rows in all than there is room for
NEEDS_ROOM, NEEDS_RESULTS = 5, 6  # the search goes on with larger arrays
# In Scratch.state: lengths, failures, and where an attempt that ran out of rows goes on, if it does.
TRAIL, MARKS, CUT, FAILURES, PARTIAL, RESUMES, AT_STEP, AT_ROW, DEPTH, UNDONE, BEST = range(11)
AT_PARTITION, FOUND, FOUND_ROWS = range(3)  # in Results.state
MOST_TAKEN = 1 << 27
ROOM = 1024  # choices and marks to begin with
BIT_OF = 1 << 15  # a mark is a place times this, and a bit: a program has fewer steps


class Rows(NamedTuple):
    """The rows of all partitions, one partition after the other."""

    bounds: Int64s  # where each partition begins, and the end of the last
    time: Int64s  # the first sort key, if there is a window
    always: Uint8s  # per label: 0 judged by a column of `holds`, 1 holds everywhere, 2 judged by the path
    holds: Uint8Rows  # per label and row: may the row have the label?
    # Per partition, where the search begins, and after it where it stopped: these are written.
    begin: Int64s
    number: Int64s  # of the next match
    matched: Int64s  # the last row that a match has taken
    whole: Uint8s  # is its first row there?
    until: Int64s  # per partition: matches begin before this row
    upcoming: Int64s  # per row: the next row that may have a label every match has; empty if there is no such label
    begins: Uint8s  # per row: may a match begin there? Empty: at every row


class Mode(NamedTuple):
    """What the clause asks for."""

    within: int  # 0: no window
    skip: int
    skip_labels: Uint8s  # per label
    unmatched: int  # also report rows that no match has taken
    # Streams: more rows may come. What depends on them is left for later.
    open: int
    horizon: int  # all rows up to this time are there
    ahead: int  # how many rows a condition looks ahead
    shown_ahead: int  # how many rows a measure does
    longest: int = 0  # the longest match at a row, the preferred one of equally long ones (BigQuery)
    base: int = 0  # the first row that `dead` knows
    allowance: int = 0  # failures after which the search stops with NEEDS_MEMORY; 0: it never does
    partial: int = 0  # also report paths that the window cuts off where no match begins
    most_taken: int = MOST_TAKEN  # rows of all matches after which it stops with TOO_MANY_ROWS


class Scratch(NamedTuple):
    """Room for one attempt; the next one overwrites it, except for what is known to lead to nothing."""

    path: Int32s  # the step that took each row
    choices: Int64Rows  # ways that were not tried yet: step, row, length of the trail and of `undo`
    trail: Int64s  # marks on the way that is being tried: they are no failures if it succeeds
    marks: Int64s  # all marks of this attempt
    undo: Int64s  # registers and what they held
    registers: Int64s
    state: Int64s  # the lengths of trail and marks, whether the window cut something off, failures in all, ...
    best: Int32s  # the longest path so far, if that is what is wanted, or the first one that the window cut off
    dead: Uint8Rows  # per row (and the end of each partition) and bit of the program: leads to nothing


class Results(NamedTuple):
    """What a search has found so far, and where it is."""

    starts: Int64s
    lengths: Int64s
    taken: Int32s  # the step that took each row of all matches
    state: Int64s  # the partition at hand, and how much of the arrays is filled


@inlined
def next_start(program: Program, mode: Mode, path: Int32s, start: int, length: int) -> int:
    """Where the search goes on after a match; -1 or -2 where AFTER MATCH SKIP cannot."""
    if mode.skip == SKIP_PAST_LAST:
        return start + length
    if mode.skip == SKIP_NEXT:
        return start + 1
    place = -1
    for position in range(length):
        if mode.skip_labels[program.label[path[position]]]:
            place = position
            if mode.skip == SKIP_FIRST:
                break
    if place < 0:
        return -NO_SUCH_LABEL
    return start + place if place > 0 else -NO_PROGRESS


@borrowing
def first_time(scratch: Scratch, place: int, bit: int) -> bool:
    """Is a split reached at a row for the first time? If so, it is marked."""
    mask = np.uint8(1 << (bit & 7))
    if scratch.dead[place, bit >> 3] & mask:
        return False
    scratch.dead[place, bit >> 3] |= mask
    entry = place * BIT_OF + bit
    scratch.trail[scratch.state[TRAIL]] = entry
    scratch.state[TRAIL] += 1
    scratch.marks[scratch.state[MARKS]] = entry
    scratch.state[MARKS] += 1
    return True


@borrowing
def first_time_so(
    scratch: Scratch, judge: PathState, memory: Memory, split: int, start: int, row: int, number: int
) -> bool:
    """Is a split that has keys reached at a row for the first time after such a path? If so, it is remembered."""
    entry = new_entry(judge, memory, split, start, row, number)
    if entry >= 0:
        scratch.trail[scratch.state[TRAIL]] = -1 - entry
        scratch.state[TRAIL] += 1
        scratch.marks[scratch.state[MARKS]] = -1 - entry
        scratch.state[MARKS] += 1
    return entry != -1


@borrowing
def take_back(scratch: Scratch, memory: Memory, entry: int) -> None:
    """A mark is no failure: it is taken back."""
    if entry < 0:
        memory.alive[-1 - entry] = 0
    else:
        bit = entry & (BIT_OF - 1)
        scratch.dead[entry // BIT_OF, bit >> 3] &= np.uint8(255 - (1 << (bit & 7)))


@inlined
def settle(program: Program, scratch: Scratch, memory: Memory, length: int, longest: int) -> None:
    """Takes back marks that are no failures, or none from another start.

    Those of the way that succeeded; all of them if the window cut a way off, or if all ways were tried for the longest;
    those that concern this start alone.
    """
    everything = scratch.state[CUT] or length in (OUT_OF_ROOM, UNSETTLED) or (longest and length >= 0)
    if everything or program.lasting < program.bits:
        for index in range(scratch.state[MARKS]):
            entry = scratch.marks[index]
            if everything or (entry >= 0 and entry & (BIT_OF - 1) >= program.lasting):
                take_back(scratch, memory, entry)
    if length >= 0 and not everything:
        for index in range(scratch.state[TRAIL]):
            take_back(scratch, memory, scratch.trail[index])
    if memory.counters[USED] > LASTING:
        forget(memory)


@borrowing
def is_open_ended(rows: Rows, mode: Mode, start: int) -> bool:
    """May rows still come that a match could take? None if its window has passed."""
    return mode.open != 0 and (mode.within == 0 or mode.horizon < rows.time[start] + mode.within - 1)


@borrowing
def longer(scratch: Scratch, best: int, length: int) -> int:
    """The length of the longest path so far; the path is kept if it is longer."""
    if length <= best:
        return best
    for position in range(length):
        scratch.best[position] = scratch.path[position]
    return length


@borrowing
def longest_path(scratch: Scratch, best: int) -> int:
    """Puts the longest path where paths are expected; its length."""
    for position in range(best):
        scratch.path[position] = scratch.best[position]
    return best


@borrowing
def remember(scratch: Scratch, register: int, row: int, undone: int) -> int:
    """Writes a row into a register, and what was there among what can be undone; how much that is now."""
    scratch.undo[2 * undone], scratch.undo[2 * undone + 1] = register, scratch.registers[register]
    scratch.registers[register] = row
    return undone + 1


@borrowing
def restore(scratch: Scratch, undone: int, until: int) -> int:
    """Gives registers back what they held, down to where there was less to undo."""
    while undone > until:
        undone -= 1
        scratch.registers[scratch.undo[2 * undone]] = scratch.undo[2 * undone + 1]
    return undone


@borrowing
def begin_attempt(scratch: Scratch, start: int) -> tuple[int, int, int, int, int]:
    """Where an attempt begins, or goes on: step, row, choices that are left, what can be undone, the longest path."""
    state = scratch.state
    if state[RESUMES]:
        state[RESUMES] = 0
        return state[AT_STEP], state[AT_ROW], state[DEPTH], state[UNDONE], state[BEST]
    state[TRAIL], state[MARKS], state[CUT], state[PARTIAL] = 0, 0, 0, 0
    return 0, start, 0, 0, UNMATCHED


@borrowing
def unsettled(scratch: Scratch, step: int, row: int, depth: int, undone: int, best: int) -> int:
    """Notes where an attempt goes on when more rows have come."""
    state = scratch.state
    state[RESUMES], state[AT_STEP], state[AT_ROW] = 1, step, row
    state[DEPTH], state[UNDONE], state[BEST] = depth, undone, best
    return UNSETTLED


@borrowing
def keep_partial(scratch: Scratch, length: int) -> None:
    """Keeps the first path that the window or the end of the partition cuts off."""
    if scratch.state[PARTIAL] == 0 and length > 0:
        longer(scratch, 0, length)
        scratch.state[PARTIAL] = length


@inlined
def passed(
    program: Program, rows: Rows, memory: Memory, scratch: Scratch, step: int, row: int, place: int
) -> tuple[bool, int]:
    """Where a loop over one label goes on: at this label again if what comes after the loop cannot take the row.

    Such rows need no choice, only the mark of the loop; the first value says that the mark was there.
    """
    if rows.holds[program.label[program.exit[step]], row] or scratch.state[MARKS] >= len(scratch.marks):
        return False, step
    bit = program.memory[step]
    if bit >= 0:
        return not first_time(scratch, place, bit), step - 1
    return False, step if len(memory.relevant) else step - 1


@inlined
def attempt(
    program: Program,
    rows: Rows,
    mode: Mode,
    judging: Judging,
    memory: Memory,
    scratch: Scratch,
    partition: int,
    start: int,
    number: int,
) -> int:
    """The length of the preferred match at a row; its steps are left in the path."""
    judge = judging.judge
    low, high = rows.bounds[partition], rows.bounds[partition + 1]
    known = high - mode.ahead if mode.open else high
    step, row, depth, undone, best = begin_attempt(scratch, start)
    while True:
        kind = program.kind[step]
        failed = False
        if kind == TAKE:
            if row >= high:
                if is_open_ended(rows, mode, start):
                    return unsettled(scratch, step, row, depth, undone, best)
                scratch.state[CUT] |= mode.open | mode.partial
                failed = True
                if mode.partial and best < 0:
                    keep_partial(scratch, row - start)
            elif mode.within > 0 and rows.time[row] - rows.time[start] >= mode.within:
                failed = True
                scratch.state[CUT] = 1
                if mode.partial and best < 0:
                    keep_partial(scratch, row - start)
            elif mode.open and row >= high - mode.ahead:
                return unsettled(scratch, step, row, depth, undone, best)
            else:
                label = program.label[step]
                how = rows.always[label]
                scratch.path[row - start] = step
                if how != 1:
                    failed = rows.holds[label, row] == 0
                if how == 2 and not failed:
                    failed = not holds_here(judge, judging.predicate, label, start, row, low, high, number)
                if not failed:
                    if judge.active and how != 2:
                        extend(judge, label, start, row)
                    row += 1
                    step += 1
                    if program.label[step] == PASSES and row < known:
                        failed, step = passed(program, rows, memory, scratch, step, row, row - mode.base + partition)
        elif kind == JUMP:
            step = program.left[step]
        elif kind in (SPLIT, LOOP):
            bit = program.memory[step]
            left = kind == LOOP and program.label[step] >= 0 and scratch.registers[program.label[step]] == row
            if left:
                step = program.exit[step]
            elif depth >= len(scratch.choices) or scratch.state[MARKS] >= len(scratch.marks):
                return OUT_OF_ROOM
            elif bit >= 0 and not first_time(scratch, row - mode.base + partition, bit):
                failed = True
            elif bit <= KEYED and len(memory.relevant):
                failed = not first_time_so(scratch, judge, memory, KEYED - bit, start, row, number)
                if memory.counters[FULL] and len(memory.keys) < MOST:
                    return OUT_OF_ROOM
            if not failed and not left:
                scratch.choices[depth, 0], scratch.choices[depth, 1] = program.right[step], row
                scratch.choices[depth, 2], scratch.choices[depth, 3] = scratch.state[TRAIL], undone
                depth += 1
                step = program.left[step]
        elif kind == REMEMBER:
            if 2 * undone + 2 > len(scratch.undo):
                return OUT_OF_ROOM
            undone = remember(scratch, program.label[step], row, undone)
            step += 1
        elif kind == DONE:
            if not mode.longest:
                return row - start
            best, failed = longer(scratch, best, row - start), True
        else:
            failed = row != (low if kind == AT_START else high) or (kind == AT_START and not rows.whole[partition])
            step += 1
        if failed:
            if depth == 0:
                return longest_path(scratch, best)
            scratch.state[FAILURES] += 1
            if stop_flag() != 0 or (mode.allowance > 0 and scratch.state[FAILURES] > mode.allowance):
                return UNMATCHED
            depth -= 1
            step, row = scratch.choices[depth, 0], scratch.choices[depth, 1]
            scratch.state[TRAIL] = scratch.choices[depth, 2]
            undone = restore(scratch, undone, scratch.choices[depth, 3])


@kernel
def with_more_room(scratch: Scratch) -> Scratch:
    """The same, with twice the room for choices and marks."""
    room = 2 * len(scratch.marks)
    return Scratch(
        scratch.path,
        np.empty((room, 4), np.int64),
        np.empty(room, np.int64),
        np.empty(room, np.int64),
        np.empty(2 * room, np.int64),
        scratch.registers,
        scratch.state,
        scratch.best,
        scratch.dead,
    )


@kernel
def with_more_results(results: Results, path: int) -> Results:
    """The same, with room for twice as many matches if they fill it, or else for as many rows again and a path."""
    starts, lengths, taken = results.starts, results.lengths, results.taken
    if results.state[FOUND] >= len(starts):
        starts, lengths = np.empty(2 * len(starts), np.int64), np.empty(2 * len(starts), np.int64)
        starts[: len(results.starts)], lengths[: len(results.starts)] = results.starts, results.lengths
    else:
        taken = np.empty(2 * len(taken) + path, np.int32)
        taken[: len(results.taken)] = results.taken
    return Results(starts, lengths, taken, results.state)


@inlined
def next_beginning(rows: Rows, mode: Mode, start: int, until: int, high: int) -> int:
    """The next row, up to some row, at which a match may begin, with a row in reach for the label every match has.

    (The filter of "Row Pattern Recognition Using Joins", VLDB 2023, for one label.)
    """
    begins, upcoming = rows.begins, rows.upcoming
    known = (
        high - mode.ahead if mode.open else high
    )  # of later rows it is not known yet whether a match may begin there
    while start < min(until, known):
        if len(begins) == 0 or begins[start]:
            if len(upcoming) == 0:
                break
            needed = upcoming[start]
            if needed >= high:
                if mode.open:
                    break
            elif mode.within == 0 or rows.time[needed] - rows.time[start] < mode.within:
                break
        start += 1
    return start


@inlined
def is_hopeless(rows: Rows, mode: Mode, start: int, high: int) -> bool:
    """Does no match begin at a row?"""
    return next_beginning(rows, mode, start, start + 1, high) > start


@inlined
def add(results: Results, start: int, length: int, path: Int32s, rows: int) -> None:
    """Notes a match, or a row without one; so many rows of a path are its own."""
    found, used = results.state[FOUND], results.state[FOUND_ROWS]
    results.starts[found], results.lengths[found] = start, length
    for position in range(rows):
        results.taken[used + position] = path[position]
    results.state[FOUND] = found + 1
    results.state[FOUND_ROWS] = used + rows


@borrowing
def searched(
    program: Program, rows: Rows, mode: Mode, judging: Judging, memory: Memory, scratch: Scratch, results: Results
) -> int:
    """Goes on with the search until it is done, or something hinders it; what that is.

    No array is made here, so that no references are counted, and no tuple is copied for each start.
    """
    partition = results.state[AT_PARTITION]
    high, number = rows.bounds[partition + 1], rows.number[partition]
    last = min(high, rows.until[partition])
    while rows.begin[partition] < last and stop_flag() == 0:
        start = rows.begin[partition]
        if not mode.unmatched:
            start = next_beginning(rows, mode, start, last, high)
            rows.begin[partition] = start
            if start >= last:
                break
        length = UNMATCHED
        scratch.state[PARTIAL] = 0
        if not mode.unmatched or not is_hopeless(rows, mode, start, high):
            length = attempt(program, rows, mode, judging, memory, scratch, partition, start, number)
            settle(program, scratch, memory, length, mode.longest)
            scratch.state[RESUMES] = 0  # all marks of what is not settled are taken back
        if mode.allowance > 0 and scratch.state[FAILURES] > mode.allowance:
            return NEEDS_MEMORY
        if length == OUT_OF_ROOM:
            return NEEDS_ROOM
        partial = scratch.state[PARTIAL] if mode.partial and length == UNMATCHED else 0
        taking = max(length, partial)
        if length == UNSETTLED or (mode.open and taking > 0 and start + taking + mode.shown_ahead > high):
            break
        used = results.state[FOUND_ROWS] + max(taking, 0)
        if used > mode.most_taken:
            return TOO_MANY_ROWS
        if results.state[FOUND] >= len(results.starts) or used > len(results.taken):
            return NEEDS_RESULTS
        onward = start + 1
        if length == UNMATCHED:
            if partial or (mode.unmatched and start > rows.matched[partition]):
                add(results, start, UNMATCHED - partial, scratch.best, partial)
        else:
            if length > 0:
                onward = next_start(program, mode, scratch.path, start, length)
                rows.matched[partition] = max(rows.matched[partition], start + length - 1)
            add(results, start, length, scratch.path, length)
            if onward < 0:
                return int(-onward)
            number += 1
            rows.number[partition] = number
        rows.begin[partition] = onward
    results.state[AT_PARTITION] = partition + 1
    return 0


@search_kernel
def search(
    program: Program,
    rows: Rows,
    mode: Mode,
    judge: PathState,
    predicate: PredicateCall,
    memory: Memory,
    scratch: Scratch,
) -> tuple[Int64s, Int64s, Int32s, int]:
    """All matches: where each begins, how many rows it takes, and the step that took each of its rows.

    A length of 0 is an empty match, UNMATCHED a row that is in no match, UNMATCHED - n a partial match of n
    rows. The last number says whether AFTER MATCH SKIP failed, and why, or that the search NEEDS_MEMORY.
    """
    results = Results(
        np.empty(64, np.int64), np.empty(64, np.int64), np.empty(256, np.int32), np.zeros(FOUND_ROWS + 1, np.int64)
    )
    judging = Judging(judge, predicate)
    state = results.state
    hinders = 0
    while state[AT_PARTITION] < len(rows.bounds) - 1:
        hinders = searched(program, rows, mode, judging, memory, scratch, results)
        if hinders == NEEDS_ROOM:
            if memory.counters[FULL] and len(memory.keys) < MOST:
                memory = with_more_entries(memory)
            else:
                scratch = with_more_room(scratch)
        elif hinders == NEEDS_RESULTS:
            results = with_more_results(results, len(scratch.path))
        elif hinders:
            break
    found, used = (0, 0) if hinders in (NEEDS_MEMORY, TOO_MANY_ROWS) else (state[FOUND], state[FOUND_ROWS])
    return results.starts[:found].copy(), results.lengths[:found].copy(), results.taken[:used].copy(), hinders


@unlocked_kernel
def upcoming_rows(holds: Uint8s, bounds: Int64s) -> Int64s:
    """For each row the next one, itself included, of which a condition may hold; the end of the partition if none."""
    found = np.empty(len(holds), np.int64)
    for partition in range(len(bounds) - 1):
        coming = bounds[partition + 1]
        for row in range(bounds[partition + 1] - 1, bounds[partition] - 1, -1):
            if holds[row]:
                coming = row
            found[row] = coming
    return found


def scratch_for(program: Program, rows: int, partitions: int, longest_path: int, longest: bool = False) -> Scratch:
    """Room for a search over so many rows of so many partitions, with paths of at most such a length."""
    return Scratch(
        np.empty(longest_path, np.int32),
        np.empty((ROOM, 4), np.int64),
        np.empty(ROOM, np.int64),
        np.empty(ROOM, np.int64),
        np.empty(2 * ROOM, np.int64),
        np.full(max(program.registers, 1), -1, np.int64),
        np.zeros(BEST + 1, np.int64),
        np.empty(longest_path if longest else 0, np.int32),
        np.zeros((rows + partitions + 1, max((program.bits + 7) // 8, 1)), np.uint8),
    )
