"""Match generation (AYAC section 4.2): from every event that can be the last one seen, backwards through the queues.

A partial path is given up when its score times the bound of the entry it would continue with is below the threshold,
when a condition whose events are all decided fails, or when a negated event was seen in between. Scores are kept as
logarithms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.arrays import Float64s, Int64s
from cepheid.engine.data.columns import Columns, PredicateCall
from cepheid.engine.data.layout import BEGINS, INSTANT, TIME, Events
from cepheid.engine.kernels.arrays import grown, grown_numbers
from cepheid.engine.kernels.asked import SearchRequest
from cepheid.engine.kernels.compile import borrowing_by_address, inlined, kernel, search_kernel
from cepheid.engine.kernels.conditions import EVENT, LEFT, RIGHT, Scratch
from cepheid.engine.kernels.partial_matches import Nodes
from cepheid.engine.kernels.query import Absent, Query
from cepheid.engine.kernels.score_lookup import log_score_at
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.kernels.windows import first_above
from cepheid.engine.program.tables import (
    CURRENT_AT,
    FIRST_AT,
    KLEENE,
    LAST_AT,
    SKIP_NEXT,
    Program,
)
from cepheid.engine.scoring.edges import CERTAIN, CLOSED
from cepheid.engine.search.queues.conditions import agrees_with_path, must_test, passes
from cepheid.engine.search.queues.query import (
    CONDITION,
    EVALUATED,
    KILLED,
    NOTHING,
    OVERFLOW,
    Path,
    Queues,
    Score,
)
from cepheid.engine.search.queues.scan import fill_queues
from cepheid.engine.search.queues.selection import selects_next
from cepheid.model.table_arrays import TableArrays

STOP_FIRST, UNKNOWN = -2, -1  # what a path entry looks at next: whether to stop here; the queue's end, not yet found
PART, FINAL, TOP, DEPTH, ENTRIES, MATCHES = range(6)  # where the search stands
NOT_SCANNED, NO_PATH = -1, -1
NOT_A_MATCH = np.iinfo(np.int64).min
ROOM = 1024  # for matches, at first


class Found(NamedTuple):
    """The matches: their (place, event) entries, where each one's entries begin, log score and completion."""

    place: Int64s
    event: Int64s
    begins: Int64s
    score: Float64s
    completion: Int64s


class Backward(NamedTuple):
    """The query as the search goes, from the last event backwards; its predicate is handed over beside it."""

    program: Program
    columns: Columns
    scratch: Scratch


class Forward(NamedTuple):
    """The query in the order of the pattern, which skip_till_next_match selects by; its predicate beside it."""

    program: Program
    columns: Columns
    nodes: Nodes


class Scoring(NamedTuple):
    """What matches are scored by."""

    score: Score
    tables: TableArrays


class Generation(NamedTuple):
    """What the search works with."""

    query: Query
    forward: Query
    nodes: Nodes
    score: Score
    tables: TableArrays
    queues: Queues
    path: Path
    asked: SearchRequest


@inlined
def bind_slots(program: Program, path: Path, entry: int) -> None:
    """Puts the event of a path entry where conditions look for it."""
    event, place, at = path.entries[entry, EVENT], path.entries[entry, RIGHT], path.scratch.at
    at[program.place[place, FIRST_AT]] = event  # backwards, the latest choice is the first event of the group
    if program.place[place, KLEENE] == 1:
        if entry == 0 or path.entries[entry - 1, RIGHT] != place:
            at[program.place[place, LAST_AT]] = event
        at[program.place[place, CURRENT_AT]] = event


@inlined
def extend(program: Program, path: Path, depth: int, place: int, event: int, reached: float, missing: int) -> None:
    """Puts an event at the path's beginning; what to look at next is whether the match begins with it."""
    path.entries[depth, EVENT], path.entries[depth, LEFT], path.entries[depth, RIGHT] = event, depth + 1, place
    path.reached[depth], path.missing[depth] = reached, missing
    path.place[depth] = place if program.place[place, KLEENE] == 1 else place - 1
    path.tried[depth] = STOP_FIRST
    bind_slots(program, path, depth)


@inlined
def can_be_first(query: Query, event: int, place: int) -> bool:
    """May the event be the first of its component? For groups by conditions on it alone, tested beforehand."""
    if query.program.place[place, KLEENE] == 0:
        return True
    return bool((query.events.facts[BEGINS, event] >> place) & 1 == 1)


@inlined
def between(low: int, high: int) -> int:
    """The bits of the places strictly between two."""
    return ((1 << high) - 1) & ~((1 << (low + 1)) - 1)


@inlined
def hour_shift(score: Score, time: int) -> int:
    """How far behind an edge's table the one of this hour lies; 0 where losses do not depend on it."""
    if len(score.hours) == 0:
        return 0
    return score.hours[time % score.day * len(score.hours) // score.day]  # type: ignore[no-any-return]


@inlined
def score_of(query: Query, score: Score, tables: TableArrays, path: Path, depth: int) -> float:
    """The log score of the path as a whole match: the window opens before its first event, and passes."""
    program, facts = query.program, query.events.facts
    event, place, last = path.entries[depth, EVENT], path.entries[depth, RIGHT], path.entries[0, EVENT]
    span = (facts[TIME, event] - facts[TIME, last] + program.window) * score.scale
    total, before = path.reached[depth], score.number[0, place]
    behind = score.number[path.entries[0, RIGHT] + 1, program.places]
    if before != CERTAIN:
        total += log_score_at(tables, before + hour_shift(score, facts[TIME, event]), span)
    if behind != CERTAIN:
        total += log_score_at(tables, behind + hour_shift(score, facts[TIME, last]), span)
    return float(total)


@inlined
def grows(generation: Generation, depth: int, source: int, counters: Int64s) -> bool:
    """Takes the queue entry that was found last as a new beginning of the path, if that may lead to a match."""
    query, score, queues, path = generation.query, generation.score, generation.queues, generation.path
    program, facts, tables = query.program, query.events.facts, generation.tables
    event, place, entry = path.entries[depth, EVENT], path.entries[depth, RIGHT], path.tried[depth]
    candidate = queues.stacks[source, entry]
    counters[EVALUATED] += 1
    reached, edge = path.reached[depth], score.number[source + 1, place]
    if source != place and edge != CERTAIN:
        early, late = facts[TIME, candidate], facts[TIME, event]
        shift = hour_shift(score, (early + late) // 2)
        reached += log_score_at(tables, edge + shift, (late - early) * score.scale)
    if reached + queues.bounds[source, entry] < score.threshold or reached == -np.inf:
        return False
    if query.events.compared.shape[0] > 0 and not agrees_with_path(query, path, depth, candidate):
        return False
    missing = path.missing[depth] | between(source, place)
    extend(program, path, depth + 1, source, candidate, reached, missing)
    if (
        source != place
        and score.decides[source + 1, place] != NOTHING
        and must_test(query, score, path, place, source, depth + 1)
        and not passes(query, score, path, missing, 2 * place, 2 * source, depth + 1)
    ):
        counters[KILLED] += 1
        bind_slots(program, path, depth)
        return False
    return True


@inlined
def finds_entry(query: Query, score: Score, queues: Queues, path: Path, depth: int, source: int) -> bool:
    """The next queue entry of a component before the path's first event, in its window; False: there is none."""
    facts, event, place = query.events.facts, path.entries[depth, EVENT], path.entries[depth, RIGHT]
    if source != place and (score.number[source + 1, place] == CLOSED or not can_be_first(query, event, place)):
        return False
    if len(score.allowed) > 0 and score.allowed[source + 1, path.missing[depth] | between(source, place)] == 0:
        return False
    entry = path.tried[depth]
    if entry == UNKNOWN:
        bound = facts[INSTANT, event] - 1
        entry = first_above(queues.stacks[source], 0, queues.sizes[source], facts, INSTANT, bound)
    entry -= 1
    path.tried[depth] = entry
    if entry < 0:
        return False
    first, last = queues.stacks[source, entry], path.entries[0, EVENT]
    return bool(facts[TIME, last] - facts[TIME, first] < query.program.window)


@inlined
def completed(generation: Generation, depth: int, total: Float64s, counters: Int64s) -> int:
    """When the path is known as a match that begins with its first event; NOT_A_MATCH if it is none.

    Leaves its log score in total[0].
    """
    query, score, path = generation.query, generation.score, generation.path
    program, facts, asked = query.program, query.events.facts, generation.asked
    event, place, last = path.entries[depth, EVENT], path.entries[depth, RIGHT], path.entries[0, EVENT]
    ends_here = path.entries[0, RIGHT] == program.places - 1
    if score.number[0, place] == CLOSED or (not ends_here and place > 0):
        return NOT_A_MATCH  # with an open end, the first component must have been seen
    if not can_be_first(query, event, place):
        return NOT_A_MATCH
    if len(score.allowed) > 0 and score.allowed[0, path.missing[depth] | ((1 << place) - 1)] == 0:
        return NOT_A_MATCH
    counters[EVALUATED] += 1
    total[0] = score_of(query, score, generation.tables, path, depth)
    known = facts[TIME, event] + program.window
    if ends_here and not program.postponed:
        known = facts[TIME, last]
    if total[0] < score.threshold or total[0] == -np.inf or known <= asked.after or known > asked.until:
        return NOT_A_MATCH
    if score.decides[0, place] != NOTHING and must_test(query, score, path, place, -1, depth):
        missing = path.missing[depth] | ((1 << place) - 1)
        if not passes(query, score, path, missing, 2 * place, -1, depth):
            counters[KILLED] += 1
            return NOT_A_MATCH
    return known  # type: ignore[no-any-return]


@inlined
def begins(generation: Generation, final: int, top: int) -> bool:
    """Begins a path with an entry of a queue as its last event, if that may lead to a match."""
    query, score, queues, path = generation.query, generation.score, generation.queues, generation.path
    program, facts, asked, length = query.program, query.events.facts, generation.asked, query.program.places
    last = queues.stacks[final, top]
    immediate = final == length - 1 and not program.postponed  # known with its last event
    if immediate and (facts[TIME, last] <= asked.after or facts[TIME, last] > asked.until):
        return False
    if queues.bounds[final, top] + score.highest[final + 1, length] < score.threshold:
        return False
    missing = between(final, length)
    if len(score.allowed) > 0 and score.allowed[final + 1, missing] == 0:
        return False
    extend(program, path, 0, final, last, 0.0, missing)
    return score.decides[final + 1, length] != CONDITION or passes(
        query, score, path, missing, 2 * length + 1, 2 * final, 0
    )


@inlined
def is_selected(generation: Generation, depth: int) -> bool:
    """Would the strategy select the events of a complete path?"""
    if generation.query.program.strategy != SKIP_NEXT:
        return True
    path = generation.path
    missing = path.missing[depth] | ((1 << path.entries[depth, RIGHT]) - 1)
    return selects_next(generation.forward, generation.nodes, generation.queues, path, depth, missing)


@inlined
def write_events(path: Path, depth: int, found: Found, at: int) -> None:
    """Writes the events of a path, first to last."""
    for entry in range(depth, -1, -1):
        found.place[at], found.event[at] = path.entries[entry, RIGHT], path.entries[entry, EVENT]
        at += 1


@borrowing_by_address
def search(generation: Generation, found: Found, state: Int64s, total: Float64s, counters: Int64s) -> bool:
    """Goes on from where `state` stands until all is found, or until there is no room for another match (False)."""
    query, score, queues, path = generation.query, generation.score, generation.queues, generation.path
    program, events, tables = query.program, query.events, generation.tables
    starts, length = events.starts, program.places
    part, final, top, depth = state[PART], state[FINAL], state[TOP], state[DEPTH]
    entries, matches, over = state[ENTRIES], state[MATCHES], False
    while part < len(starts) - 1 and not over:
        if final == NOT_SCANNED:
            fill_queues(events, program, score, tables, starts[part], starts[part + 1], queues, counters)
            final, top, depth = length - 1, 0, NO_PATH
        if depth == NO_PATH:
            if score.number[final + 1, length] == CLOSED or top == queues.sizes[final]:
                # Next the paths that end earlier: the components behind are missing.
                final, top = final - 1, 0
                if final < 0:
                    part, final = part + 1, NOT_SCANNED
                continue
            top += 1
            depth = 0 if begins(generation, final, top - 1) else NO_PATH
        while depth >= 0:
            if stop_flag() != 0:
                over = True
                break
            if path.tried[depth] == STOP_FIRST:
                if matches + 2 > len(found.begins) or entries + depth + 1 > len(found.place):
                    state[PART], state[FINAL], state[TOP], state[DEPTH] = part, final, top, depth
                    state[ENTRIES], state[MATCHES] = entries, matches
                    return False
                path.tried[depth] = UNKNOWN
                # Could this be the first event that was seen? Then the window's opening comes before it.
                known = completed(generation, depth, total, counters)
                if known == NOT_A_MATCH or not is_selected(generation, depth):
                    continue
                if matches == generation.asked.limit:
                    counters[OVERFLOW] = 1
                    over = True
                    break
                found.begins[matches], found.score[matches], found.completion[matches] = entries, total[0], known
                write_events(path, depth, found, entries)
                entries, matches = entries + depth + 1, matches + 1
                continue
            source = path.place[depth]
            if source < 0:
                depth -= 1
                if depth >= 0:
                    bind_slots(program, path, depth)
            elif not finds_entry(query, score, queues, path, depth, source):
                path.place[depth], path.tried[depth] = source - 1, UNKNOWN
            elif grows(generation, depth, source, counters):
                depth += 1
    state[ENTRIES], state[MATCHES] = entries, matches
    return True


@kernel
def new_queues(events: Events, program: Program, scratch: Scratch) -> tuple[Queues, Path]:
    """Room for the queues of any partition, and for the longest path through them."""
    length, rows, longest = program.places, program.places + program.negatives, 0
    for part in range(len(events.starts) - 1):
        longest = max(longest, events.starts[part + 1] - events.starts[part])
    queues = Queues(
        np.empty((rows, longest), np.int64),
        np.empty((length, longest), np.float64),
        np.zeros(rows, np.int64),
        np.empty((length, longest), np.int64),
        np.zeros((length, 4), np.int64),
    )
    deepest = min(length, longest)
    for place in range(length):
        if program.place[place, KLEENE] == 1:
            deepest = longest
    path = Path(
        np.empty((deepest, 4), np.int64),
        scratch,
        np.empty(deepest, np.float64),
        np.empty(deepest, np.int64),
        np.empty(deepest, np.int64),
        np.empty(deepest, np.int64),
    )
    return queues, path


@search_kernel
def generate(
    events: Events,
    backward: Backward,
    predicate: PredicateCall,
    forward: Forward,
    forward_predicate: PredicateCall,
    scoring: Scoring,
    asked: SearchRequest,
) -> tuple[Found, Int64s]:
    """All matches that are probable enough, and what was counted on the way."""
    program, length = backward.program, backward.program.places
    queues, path = new_queues(events, program, backward.scratch)
    absent = Absent(queues.stacks[length:], queues.sizes[length:])
    query = Query(events, program, backward.columns, predicate, absent)
    in_pattern_order = Query(events, forward.program, forward.columns, forward_predicate, absent)
    generation = Generation(query, in_pattern_order, forward.nodes, scoring.score, scoring.tables, queues, path, asked)
    state, counters, total = np.array([0, NOT_SCANNED, 0, NO_PATH, 0, 0]), np.zeros(5, np.int64), np.zeros(1)
    place_of, event, firsts = np.empty(ROOM, np.int64), np.empty(ROOM, np.int64), np.empty(ROOM, np.int64)
    scores, completion = np.empty(ROOM, np.float64), np.empty(ROOM, np.int64)
    while not search(generation, Found(place_of, event, firsts, scores, completion), state, total, counters):
        place_of, event = grown(place_of), grown(event)
        if 2 * state[MATCHES] > len(firsts):
            firsts, scores, completion = grown(firsts), grown_numbers(scores), grown(completion)
    entries, matches = state[ENTRIES], state[MATCHES]
    firsts[matches] = entries
    return Found(
        place_of[:entries], event[:entries], firsts[: matches + 1], scores[:matches], completion[:matches]
    ), counters
