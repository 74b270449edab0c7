"""Who could be in the way of a match: the one place where that is decided for searches at imprecise times.

Gaps are numbered: gap g lies between the events g - 1 and g of the match, gap 0 before the first one (back to a window
before the last), gap n after the last one (up to a window after the first). Negated components look at the gap between
the nearest events that were seen. Under skip_till_next_match whatever could have been selected instead is a competitor,
under contiguity every other event (of the partition).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Int64Rows, Int64s
from cepheid.engine.data.timed import Stacks, Timed, between, first_beyond, first_reaching
from cepheid.engine.kernels.compile import borrowing, borrowing_by_address, called_by_address, inlined, kernel
from cepheid.engine.kernels.conditions import EVENT, RIGHT, agrees, holds, test_holds
from cepheid.engine.kernels.partial_matches import Nodes, PartialMatches, joins, load, put_event
from cepheid.engine.program.tables import (
    AFTER_PLACE,
    BEGIN,
    CLOSE,
    CONTIGUOUS,
    KLEENE,
    NEEDS,
    SKIP_ANY,
    Program,
)
from cepheid.engine.scoring.match_score import MatchScore


class CompetingEvents(NamedTuple):
    """Events that could disturb a match: event * (gaps) + gap, and the disjuncts in which they would, as bits."""

    keys: Int64s
    branches: Int64s


class Chain(NamedTuple):
    """A complete match: the nodes along it, and what is known of their events."""

    part: int  # the partition
    nodes: Int64s
    low: Int64s  # the valid bounds of each event
    high: Int64s
    table: Int64s  # of each gap the table of its scores
    missing: int  # bits of the components that were not seen


NO_SPACE = -1


@kernel
def merged(keys: Int64s, branches: Int64s) -> tuple[Int64s, Int64s]:
    """The keys in order, each once, with the bits of all its mentions."""
    order = np.argsort(keys)
    found = 0
    one, bits = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    for index in order:
        if found and one[found - 1] == keys[index]:
            bits[found - 1] |= branches[index]
        else:
            one[found], bits[found] = keys[index], branches[index]
            found += 1
    return one[:found].copy(), bits[:found].copy()


@borrowing
def has_competing_events(program: Program) -> bool:
    """Can anybody be in the way of a match of this query?"""
    return bool(program.strategy != SKIP_ANY or program.negatives > 0)


@borrowing_by_address
def killing(
    compared: Int64Rows,
    partial: PartialMatches,
    node: int,
    negation: int,
    event: int,
    missing: int,
) -> int:
    """The disjuncts in which an event of a negated component would kill a complete match, as bits (-1: in all)."""
    program, columns, predicate, nodes = partial
    for row in range(nodes.codes.shape[1]):
        if not agrees(compared[row, event], nodes.codes[node, row]):
            return 0
    load(nodes, node)
    nodes.scratch.missing[0] = missing
    nodes.scratch.at[nodes.at.shape[1] - program.negatives + negation] = event
    base = 3 * program.places
    if not program.judged:
        killed = holds(program, columns, predicate, base + negation, nodes.scratch, nodes.entries, node)
        return -1 if killed else 0
    bits = 0
    for branch in range(program.branches):
        moment = base + program.negatives + branch * (1 + program.negatives) + 1 + negation
        if holds(program, columns, predicate, moment, nodes.scratch, nodes.entries, node):
            bits |= 1 << branch
    return bits


@borrowing_by_address
def could_join(
    begins_groups: Int64s,
    compared: Int64Rows,
    partial: PartialMatches,
    node: int,
    event: int,
    place: int,
    missing: int,
) -> bool:
    """Could an event have been selected after a node, in a pattern that knows nothing of the missing components?

    What defaults say of this place in the stead of missing events then is a condition of this place, too.
    """
    program, columns, predicate, nodes = partial
    begins = nodes.entries[node, RIGHT] != place
    if not joins(begins_groups, compared, partial, node, event, place, begins, missing):
        return False
    if missing == 0:
        return True
    for other in range(program.places):
        if other == place or (program.place[other, KLEENE] == 1 and (missing >> other) & 1 == 0):
            continue
        for kind in (BEGIN, CLOSE):
            for test in range(program.moments[3 * other + kind], program.moments[3 * other + kind + 1]):
                needs = program.tests[test, NEEDS]
                if needs & missing == 0 or (needs & ~missing) >> place != 1:
                    continue  # it is not this place that decides it
                load(nodes, node)
                nodes.scratch.missing[0] = missing
                put_event(program, nodes.scratch.at, event, place, begins)
                if not test_holds(program, columns, predicate, test, nodes.scratch, nodes.entries, node):
                    return False
    return True


@called_by_address
def competing_events(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    partial: PartialMatches,
    chain: Chain,
) -> CompetingEvents:
    """Everyone who could disturb a match."""
    size, found = 16, NO_SPACE
    room = CompetingEvents(np.empty(0, np.int64), np.empty(0, np.int64))
    while found == NO_SPACE:
        size *= 2
        room = CompetingEvents(np.empty(size, np.int64), np.empty(size, np.int64))
        found = write_competing_events(timed, match_score, stacks, partial, chain, room)
    keys, branches = merged(room.keys[:found], room.branches[:found])
    return CompetingEvents(keys, branches)


@borrowing_by_address
def write_competing_events(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    partial: PartialMatches,
    chain: Chain,
    room: CompetingEvents,
) -> int:
    """Writes them, as they are found: some several times; returns how many, or NO_SPACE."""
    program, nodes, part, missing = partial.program, partial.nodes, chain.part, chain.missing
    low, high, keys, branches = chain.low, chain.high, room.keys, room.branches
    length = len(chain.nodes)
    gaps, last = length + 1, chain.nodes[length - 1]
    found = 0
    untied = missing == 0 and nodes.codes.shape[1] == 0
    first = 1 if program.strategy != SKIP_ANY else length
    for blocking in range(first, length + program.negatives):
        negation, node, selected = blocking - length, last, program.strategy == CONTIGUOUS
        if blocking < length:  # what could have been selected in this gap
            node = chain.nodes[blocking - 1]
            stack = nodes.entries[node, RIGHT]
            if program.place[stack, KLEENE] == 0:  # else an open group is only held up by what it could take
                stack = nodes.entries[chain.nodes[blocking], RIGHT]
            if program.strategy == CONTIGUOUS:
                stack = program.places + program.negatives  # everyone
            else:  # nothing to test: whatever lies in the stack could have been selected
                untested = program.moments[3 * stack] == program.moments[3 * stack + 1]
                selected = untied and untested and program.place[stack, KLEENE] == 0
            start, stop, gap = low[blocking - 1] + 1, high[blocking] - 1, blocking
        else:
            stack, gap = program.places + negation, length
            for index in range(length - 1, -1, -1):  # the first event behind it that was seen
                if nodes.entries[chain.nodes[index], RIGHT] > program.negations[negation, AFTER_PLACE]:
                    gap = index
            start = low[gap - 1] + 1 if gap > 0 else low[length - 1] - match_score.window + 1
            stop = high[gap] - 1 if gap < length else high[0] + match_score.window - 1
        bottom, top = stacks.begin[stack, part], stacks.begin[stack, part + 1]
        top = first_beyond(stacks, timed.lower, bottom, top, stop)
        for index in range(first_reaching(stacks, bottom, top, start), top):
            event = stacks.member[index]
            if timed.upper[event] < start or between(timed, event, start, stop) == 0.0:
                continue
            if is_in_chain(nodes, chain.nodes, event):
                continue
            bits = 0
            if blocking >= length:
                bits = killing(timed.compared, partial, last, negation, event, missing)
            elif selected or could_join(timed.begins, timed.compared, partial, node, event, stack, missing):
                bits = -1
            if bits == 0:
                continue
            if found == len(keys):
                return NO_SPACE
            keys[found], branches[found] = event * gaps + gap, bits
            found += 1
    return found


@inlined
def is_in_chain(nodes: Nodes, chain: Int64s, event: int) -> bool:
    """Is it an event of the match?"""
    for node in chain:
        if nodes.entries[node, EVENT] == event:
            return True
    return False


@borrowing
def merge_in_place(keys: Int64s, branches: Int64s, found: int, spare: Int64Rows) -> int:
    """Some few keys in order, each once, with the bits of all its mentions; returns how many are left.

    They were found gap by gap, in order there: so two rows that rise are merged at a time. `spare` is room for that.
    """
    count = rising(keys, 0, found)
    begin = count
    while begin < found:
        end, left, right, size = rising(keys, begin, found), 0, begin, 0
        while left < count or right < end:
            second = left == count or (right < end and keys[right] < keys[left])
            one = right if second else left
            key, bits = keys[one], branches[one]
            if not second and right < end and keys[right] == key:
                bits |= branches[right]
                right += 1
            right, left = (right + 1, left) if second else (right, left + 1)
            spare[0, size], spare[1, size] = key, bits
            size += 1
        for index in range(size):
            keys[index], branches[index] = spare[0, index], spare[1, index]
        count, begin = size, end
    return count


@inlined
def rising(keys: Int64s, begin: int, end: int) -> int:
    """Where a row of rising keys ends."""
    begin += 1
    while begin < end and keys[begin - 1] < keys[begin]:
        begin += 1
    return min(begin, end)
