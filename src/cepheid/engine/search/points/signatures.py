"""What is known of a signature, whatever the instants of its events: what ends it, who disturbs it, what it weighs.

A signature is the events of a partial match in their places. Those that begin with one event are a trie, whose nodes
are numbered as they are met; what follows from a node by an event stands in a hash table.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64Rows, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.timed import Stacks, Timed, between, first_beyond, next_by, onwards, up_to
from cepheid.engine.kernels.arrays import grown, grown_rows
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.kernels.compile import borrowing, called_by_address, kernel
from cepheid.engine.kernels.conditions import EVENT, LEFT, RIGHT
from cepheid.engine.kernels.partial_matches import Nodes, PartialMatches, joins, standing
from cepheid.engine.program.tables import CONTIGUOUS, KLEENE, SKIP_NEXT, Program
from cepheid.engine.scoring.confidence.bounds import tighten
from cepheid.engine.scoring.confidence.competing import Chain, competing_events
from cepheid.engine.scoring.edges import CERTAIN
from cepheid.engine.scoring.match_score import MatchScore, completion_of


class Question(NamedTuple):
    """The events and what is asked of a match, in all partitions. A kernel puts it together, as it holds a function."""

    timed: Timed
    match_score: MatchScore
    stacks: Stacks
    program: Program
    columns: Columns
    predicate: PredicateCall


@borrowing
def undisturbed_at(
    timed: Timed, keys: Int64s, branches: Int64s, subset: int, at: Int64s, length: int, window: int
) -> float:
    """P(no competitor disturbs events at these instants, in any disjunct of a subset)."""
    gaps, final = length + 1, length - 1
    total, index = 1.0, 0
    while index < len(keys):
        event = keys[index] // gaps
        harmless, passed, came = 0.0, False, 0  # the gaps it could disturb come in order; add up what lies between them
        while index < len(keys) and keys[index] // gaps == event:
            gap = keys[index] % gaps
            if branches[index] & subset != 0:
                start = at[gap - 1] if gap > 0 else at[final] - window
                harmless += between(timed, event, came, start) if passed else up_to(timed, event, start)
                came = at[gap] if gap < length else at[0] + window
                passed = True
            index += 1
        if passed:
            exists = timed.exists[event]
            total *= (harmless + onwards(timed, event, came)) * exists + (1.0 - exists)
    return total


@borrowing
def undisturbed(
    timed: Timed, keys: Int64s, branches: Int64s, stand: int, at: Int64s, length: int, window: int
) -> float:
    """P(nobody disturbs the events at these instants, in at least one of the standing disjuncts)."""
    total, most = 0.0, 0.0
    subset = stand
    while subset > 0:
        members = 0
        for bit in range(63):
            members += (subset >> bit) & 1
        share = undisturbed_at(timed, keys, branches, subset, at, length, window)
        total += share if members % 2 == 1 else -share
        if members == 1:
            most = max(most, share)
        subset = (subset - 1) & stand
    return max(total, most)


class Signatures(NamedTuple):
    """What is known of the signatures that begin with one event; node k of the trie is row k."""

    nearest: Int64s  # the latest time of the next event
    wanted: Int64s  # 1: it is complete and known in the interval that is asked for
    competitors: Int64Rows  # where its competitors begin and end in `keys`, and the disjuncts that stand
    confidence: Float64s
    earliest: Int64s
    latest: Int64s
    keys: Int64s  # competitors of all of them
    branches: Int64s
    size: Int64s  # [0]: how many nodes, [1]: how many keys


@kernel
def no_signatures() -> Signatures:
    """Room for some."""
    room = 64
    return Signatures(
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros((room, 3), np.int64),
        np.zeros(room),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(2, np.int64),
    )


@called_by_address
def with_room(known: Signatures, keys: int) -> Signatures:
    """The same with room for one more node and some more keys."""
    if known.size[0] == len(known.nearest):
        confidence = np.zeros(2 * len(known.confidence))
        confidence[: len(known.confidence)] = known.confidence
        known = Signatures(
            grown(known.nearest),
            grown(known.wanted),
            grown_rows(known.competitors),
            confidence,
            grown(known.earliest),
            grown(known.latest),
            known.keys,
            known.branches,
            known.size,
        )
    while known.size[1] + keys > len(known.keys):
        known = Signatures(
            known.nearest,
            known.wanted,
            known.competitors,
            known.confidence,
            known.earliest,
            known.latest,
            grown(known.keys),
            grown(known.branches),
            known.size,
        )
    return known


@kernel
def path_to(nodes: Nodes, node: int) -> tuple[Int64s, Int64s, Int64s]:
    """The nodes from the first to this one, their events and places."""
    length, each = 0, node
    while each >= 0:
        length += 1
        each = nodes.entries[each, LEFT]
    chain, chosen, places = np.empty(length, np.int64), np.empty(length, np.int64), np.empty(length, np.int64)
    for index in range(length - 1, -1, -1):
        chain[index], chosen[index], places[index] = node, nodes.entries[node, EVENT], nodes.entries[node, RIGHT]
        node = nodes.entries[node, LEFT]
    return chain, chosen, places


@borrowing
def latest_next(question: Question, nodes: Nodes, node: int, part: int) -> int:
    """When at the latest the strategy has the next event after a node: what comes later cannot follow it."""
    timed, stacks, program = question.timed, question.stacks, question.program
    event, place = nodes.entries[node, EVENT], nodes.entries[node, RIGHT]
    nearest = NEVER
    begins = program.place[place, KLEENE] == 0
    goal = place + 1 if begins else place
    if program.strategy == CONTIGUOUS:
        everyone = program.places + program.negatives
        nearest = next_by(stacks, timed.lower, part, everyone, timed.upper[event])
    if program.strategy == SKIP_NEXT and goal < program.places:
        partial = PartialMatches(program, question.columns, question.predicate, nodes)
        end = stacks.begin[goal, part + 1]
        index = first_beyond(stacks, timed.lower, stacks.begin[goal, part], end, timed.upper[event])
        while index < end and timed.lower[stacks.member[index]] <= nearest:
            other = stacks.member[index]
            if timed.exists[other] >= 1.0 and joins(
                timed.begins, timed.compared, partial, node, other, goal, begins, 0
            ):
                nearest = min(nearest, timed.upper[other])
            index += 1
    return nearest


@called_by_address
def describe(question: Question, asked: SearchRequest, nodes: Nodes, known: Signatures, part: int) -> Signatures:
    """Adds what can be said of the newest node, whatever its instants."""
    timed, match_score, stacks, program, columns, predicate = question
    node = known.size[0]
    known = with_room(known, 0)
    event, place = nodes.entries[node, EVENT], nodes.entries[node, RIGHT]
    chain, chosen, _ = path_to(nodes, node)
    length = len(chain)
    known.nearest[node], known.wanted[node] = latest_next(question, nodes, node, part), 0
    known.confidence[node], known.earliest[node], known.latest[node] = 0.0, NEVER, -NEVER
    if place == program.places - 1 and nodes.closed[node] == 1:
        when = completion_of(timed, match_score, chosen[0], event, True)
        if asked.after < when <= asked.until:
            low, high = np.empty(length, np.int64), np.empty(length, np.int64)
            for index in range(length):
                low[index], high[index] = timed.lower[chosen[index]], timed.upper[chosen[index]]
            tighten(np.arange(length), low, high, length, length, match_score.window)
            partial = PartialMatches(program, columns, predicate, nodes)
            table = np.full(length + 1, CERTAIN)
            found = competing_events(timed, match_score, stacks, partial, Chain(part, chain, low, high, table, 0))
            known = with_room(known, len(found.keys))
            start = known.size[1]
            for index in range(len(found.keys)):
                known.keys[start + index], known.branches[start + index] = found.keys[index], found.branches[index]
            known.size[1] = start + len(found.keys)
            known.wanted[node] = 1
            known.competitors[node, 0], known.competitors[node, 1] = start, known.size[1]
            known.competitors[node, 2] = standing(partial, node, 0)
    known.size[0] = node + 1
    return known


class Table(NamedTuple):
    """Which node follows from which by which event: a hash table."""

    key: Int64s  # -1: free
    node: Int64s


@borrowing
def place_of(keys: Int64s, key: int) -> int:
    """Where a key is, or where it would go."""
    mask = len(keys) - 1
    slot = (key ^ (key >> 13)) & mask
    while keys[slot] not in (key, -1):
        slot = (slot + 1) & mask
    return slot


@kernel
def with_space(table: Table, used: int) -> Table:
    """The same table, larger if more than half of it is used."""
    if 2 * used < len(table.key):
        return table
    larger = Table(np.full(2 * len(table.key), -1, np.int64), np.empty(2 * len(table.key), np.int64))
    for slot in range(len(table.key)):
        if table.key[slot] >= 0:
            new = place_of(larger.key, table.key[slot])
            larger.key[new], larger.node[new] = table.key[slot], table.node[slot]
    return larger
