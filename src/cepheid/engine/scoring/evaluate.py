"""What a complete match at imprecise times is worth: its confidence and its tightest range, and its expected score.

The same judgement for every search, whatever order it fills places in, and whether events may be missing or not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cepheid.engine.data.timed import Stacks, Timed
from cepheid.engine.kernels.compile import borrowing, called_by_address, inlined
from cepheid.engine.kernels.conditions import EVENT
from cepheid.engine.kernels.partial_matches import PartialMatches, standing
from cepheid.engine.scoring.confidence.alternatives import alternatives
from cepheid.engine.scoring.confidence.competing import (
    NO_SPACE,
    Chain,
    CompetingEvents,
    competing_events,
    has_competing_events,
    merge_in_place,
    write_competing_events,
)
from cepheid.engine.scoring.confidence.memory import (
    ASKED,
    BOUNDED,
    BOUNDED_ONES,
    CONFIDENCE,
    EARLIEST,
    KNOWN,
    LATEST,
    Memory,
    fits_decide,
    is_known,
    is_worth_asking,
    place_in_memory,
    remember,
    shape_with_competitors,
)
from cepheid.engine.scoring.confidence.order import Workspace, ordered_within
from cepheid.engine.scoring.confidence.shared_competing import Weighing, unweighed
from cepheid.engine.scoring.confidence.undisturbed import WITHIN, Effort, by_sums
from cepheid.engine.scoring.expected import expected, expected_cost
from cepheid.engine.scoring.match_score import MatchScore

Judged = tuple[float, float, int, int, float]  # probability, confidence, earliest, latest; above 0: too many steps


class Known(NamedTuple):
    """What is known of a match before its competing events are."""

    exist: float  # the probability that all its events happened
    ordered: float  # that they come in order and within the window; 0: this is found out instant by instant
    size: int  # that of its shape if it was looked up in vain, else 0


@called_by_address
def score(
    timed: Timed,
    match_score: MatchScore,
    chain: Chain,
    found: CompetingEvents,
    stand: int,
    ordered: float,
    room: Workspace,
) -> Judged:
    """The expected score of a match and the probability of the worlds that contain it, whatever it scores there.

    One that scores 0 in every world is none: its confidence is 0.
    """
    window, spans, length = match_score.window, match_score.spans, len(chain.nodes)
    chosen, low, high, table = room.chosen[:length], chain.low, chain.high, chain.table
    if ordered > 0.0 and len(found.keys) == 0:
        cost = expected_cost(low, high, table, window)
        if cost > match_score.budget:
            return 0.0, 0.0, 0, 0, cost
        probability = expected(timed, spans, chosen, low, high, table, window, room)
        confidence = min(ordered, 1.0) if probability > 0.0 else 0.0
        return probability, confidence, low[0], high[length - 1], 0.0
    scores, effort = Weighing(spans.score, spans.first, table), Effort(match_score.budget, 0.0, 0.0, 1.0)
    probability, earliest, latest, cost = alternatives(timed, chosen, low, high, window, found, stand, scores, effort)
    if cost > 0.0 or probability <= 0.0:
        return 0.0, 0.0, 0, 0, cost
    confidence, earliest, latest, cost = alternatives(
        timed, chosen, low, high, window, found, stand, unweighed(), effort
    )
    return probability, confidence, earliest, latest, cost


@borrowing
def recalled(match_score: MatchScore, memory: Memory, size: int, start: int) -> tuple[bool, float, int, int]:
    """Is the shape at hand known? Then its confidence and its range, from the match's first valid instant on."""
    if size == 0:
        return False, 0.0, 0, 0
    memory.tally[ASKED] += 1
    slot = place_in_memory(memory, size)
    if not is_known(memory, slot, size):
        return False, 0.0, 0, 0
    memory.tally[KNOWN] += 1
    values = memory.values[slot]
    if values[BOUNDED] != 0.0 and values[CONFIDENCE] >= match_score.least[0]:
        memory.tally[BOUNDED_ONES] += 1
    return True, values[CONFIDENCE], start + int(values[EARLIEST]), start + int(values[LATEST])


@inlined
def judge(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    partial: PartialMatches,
    chain: Chain,
    size: int,
    room: Workspace,
) -> Judged:
    """The worth of a match.

    `size` is that of its shape if it was looked up in vain. What makes arrays is left to `judge_with_arrays`.
    """
    program, low, high = partial.program, chain.low, chain.high
    length, holes, exist, memory = len(chain.nodes), 0, 1.0, room.memory
    chosen = room.chosen[:length]
    for index in range(length):
        chosen[index] = partial.nodes.entries[chain.nodes[index], EVENT]
        holes |= timed.holes[chosen[index]]
        exist *= timed.exists[chosen[index]]  # independently of all else
    if exist == 0.0:
        return 0.0, 0.0, 0, 0, 0.0
    ordered, asked, found = -1.0, match_score.least[0] > 0.0, NO_SPACE
    if asked:
        ordered = ordered_within(timed, chosen, low, high, length, match_score.window, room)
        if ordered * exist < match_score.least[0]:
            return 0.0, 0.0, 0, 0, 0.0
    budget, tolerance, least = match_score.budget, match_score.tolerance, match_score.least[0] / exist
    if chain.missing == 0 and not match_score.scored and not program.judged:
        found, keys, branches = 0, room.found[0], room.found[1]
        if has_competing_events(program):
            into = CompetingEvents(keys, branches)
            found = write_competing_events(timed, match_score, stacks, partial, chain, into)
        if found > 0:
            keys = keys[: merge_in_place(keys, branches, found, room.found[2:])]
            if size == 0 and not fits_decide(program, timed.compared) and is_worth_asking(memory):
                size = shape_with_competitors(timed, memory, chosen, low, high, keys)
                known, confidence, earliest, latest = recalled(match_score, memory, size, low[0])
                if known:
                    return 1.0, confidence * exist, earliest, latest, 0.0
            effort = Effort(budget, tolerance, least, ordered if asked and holes == 0 else 1.0)
            confidence, earliest, latest, cost = by_sums(
                timed, chosen, low, high, match_score.window, keys, effort, room.buffers
            )
            if cost == 0.0:
                confidence = min(confidence, 1.0)
                if size > 0 and confidence > 0.0:
                    slot = place_in_memory(memory, size)
                    remember(memory, slot, size, low[0], confidence, earliest, latest, False)
                return 1.0, confidence * exist, earliest, latest, 0.0
    if not asked:  # what competing events decide anyway is not worth knowing before
        ordered = ordered_within(timed, chosen, low, high, length, match_score.window, room)
        if ordered * exist < match_score.least[0]:
            return 0.0, 0.0, 0, 0, 0.0
    simple = ordered if holes == 0 else 0.0
    if found == 0 and simple > 0.0:
        return 1.0, min(ordered, 1.0) * exist, low[0], high[length - 1], 0.0
    effort = Effort(budget, tolerance, least, ordered if holes == 0 else 1.0)
    return judge_with_arrays(timed, match_score, stacks, partial, chain, Known(exist, simple, size), effort, room)


@called_by_address
def judge_with_arrays(
    timed: Timed,
    match_score: MatchScore,
    stacks: Stacks,
    partial: PartialMatches,
    chain: Chain,
    known: Known,
    effort: Effort,
    room: Workspace,
) -> Judged:
    """The same for matches that need more than running sums."""
    length, memory, low, high = len(chain.nodes), room.memory, chain.low, chain.high
    exist, simple, size = known
    found, stand = CompetingEvents(np.empty(0, np.int64), np.empty(0, np.int64)), 1
    if has_competing_events(partial.program):
        found = competing_events(timed, match_score, stacks, partial, chain)
    if len(found.keys) > 0 or partial.program.judged:
        stand = standing(partial, chain.nodes[length - 1], chain.missing)
    if stand == 0:
        return 0.0, 0.0, 0, 0, 0.0
    if match_score.scored:
        probability, confidence, earliest, latest, cost = score(timed, match_score, chain, found, stand, simple, room)
        return probability * exist, confidence * exist, earliest, latest, max(cost, 0.0)
    if simple > 0.0 and len(found.keys) == 0:
        return 1.0, min(simple, 1.0) * exist, low[0], high[length - 1], 0.0
    chosen = room.chosen[:length]
    confidence, earliest, latest, cost = alternatives(
        timed, chosen, low, high, match_score.window, found, stand, unweighed(), effort
    )
    if cost == WITHIN and confidence * exist >= match_score.least[0]:
        memory.tally[BOUNDED_ONES] += 1
    if size > 0 and cost <= 0.0 and confidence > 0.0:
        slot = place_in_memory(memory, size)
        remember(memory, slot, size, low[0], confidence, earliest, latest, cost == WITHIN)
    return 1.0, confidence * exist, earliest, latest, max(cost, 0.0)
