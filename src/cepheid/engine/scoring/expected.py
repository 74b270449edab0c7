"""What a match with missing events is worth at imprecise times: the expectation of its score over possible worlds.

The score is a product over the gaps between events that were seen, and each factor depends on one span only (AYAC
section 3). So no world is enumerated: sums go from one event's instants to the next one's, as for confidence, with the
score of the span between them. The gaps before the first and behind the last event both span what the match leaves of
the window; where they count, each first instant is followed on its own.
"""

from __future__ import annotations

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.timed import Timed
from cepheid.engine.kernels.compile import borrowing, inlined
from cepheid.engine.kernels.stop import stop_flag
from cepheid.engine.scoring.confidence.order import Workspace
from cepheid.engine.scoring.edges import CERTAIN
from cepheid.engine.scoring.spans import Spans, score_of


@borrowing
def reaches_around(low: Int64s, high: Int64s, table: Int64s, window: int) -> bool:
    """Does it matter how far the first event is from the last?"""
    final = len(low) - 1
    return table[0] != CERTAIN or table[final + 1] != CERTAIN or high[final] - low[0] >= window  # type: ignore[no-any-return]


@borrowing
def expected_cost(low: Int64s, high: Int64s, table: Int64s, window: int) -> float:
    """About how many steps the expectation takes."""
    total, width = 0.0, high[0] - low[0] + 1.0
    tied = reaches_around(low, high, table, window)
    for step in range(1, len(low)):
        before, here = high[step - 1] - low[step - 1] + 1.0, high[step] - low[step] + 1.0
        steps = before + here if table[step] == CERTAIN else before * here
        total += steps * width if tied and step > 1 else steps
    return total


@inlined
def chance(timed: Timed, event: int, instant: int) -> float:
    """P(T = instant), for an instant within the event's bounds."""
    base = timed.base[event]
    return float(timed.share[event] if base < 0 else timed.point[base + instant - timed.lower[event]])


@borrowing
def expected_pair(
    timed: Timed, spans: Spans, chosen: Int64s, low: Int64s, high: Int64s, table: Int64s, window: int
) -> float:
    """The same for two events with all instants alike: how many pairs of instants have each span."""
    total = 0.0
    for span in range(max(1, low[1] - high[0]), min(high[1] - low[0], window - 1) + 1):
        pairs = min(high[1], high[0] + span) - max(low[1], low[0] + span) + 1
        around = score_of(spans, table[0], window - span) * score_of(spans, table[2], window - span)
        total += pairs * score_of(spans, table[1], span) * around
    return total * timed.share[chosen[0]] * timed.share[chosen[1]]  # type: ignore[no-any-return]


@borrowing
def expected(
    timed: Timed, spans: Spans, chosen: Int64s, low: Int64s, high: Int64s, table: Int64s, window: int, room: Workspace
) -> float:
    """The expectation of the score, where nobody can disturb the match; `table` has the table of each gap."""
    length = len(chosen)
    if length == 1:
        return float(score_of(spans, table[0], window) * score_of(spans, table[1], window))
    if length == 2 and timed.base[chosen[0]] < 0 and timed.base[chosen[1]] < 0:
        return float(expected_pair(timed, spans, chosen, low, high, table, window))
    tied = reaches_around(low, high, table, window)
    now, then = room.one, room.two
    total = 0.0
    for opening in range(low[0], (high[0] if tied else low[0]) + 1):
        if stop_flag() != 0:
            break
        first, last = opening, opening if tied else high[0]
        for instant in range(first, last + 1):
            now[instant - first] = chance(timed, chosen[0], instant)
        for step in range(1, length):
            bottom, top = max(low[step], first + 1), high[step]
            if tied:
                top = min(top, opening + window - 1)
            running, reached = 0.0, first - 1
            for instant in range(bottom, top + 1):
                if table[step] == CERTAIN:
                    while reached < min(instant - 1, last):
                        reached += 1
                        running += now[reached - first]
                else:
                    running, base = 0.0, spans.first[table[step]] + instant
                    for previous in range(first, min(instant - 1, last) + 1):
                        running += now[previous - first] * spans.score[base - previous]
                then[instant - bottom] = running * chance(timed, chosen[step], instant)
            first, last = bottom, top
            now, then = then, now
        for instant in range(first, last + 1):
            part = now[instant - first]
            if tied:
                rest = window - (instant - opening)
                part *= score_of(spans, table[0], rest) * score_of(spans, table[length], rest)
            total += part
    return total
