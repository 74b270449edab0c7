"""Confidence by recurrences is confidence by enumeration of instants, to the last competitor."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cepheid.engine.data.timed import Timed, accumulate, between, onwards, up_to
from cepheid.engine.scoring.confidence.bounds import NO_WINDOW, tighten
from cepheid.engine.scoring.confidence.by_intervals import by_intervals, has_intervals, intervals, widened
from cepheid.engine.scoring.confidence.chain_bounds import at_most, bounds_of
from cepheid.engine.scoring.confidence.competing_tables import task
from cepheid.engine.scoring.confidence.happened import by_who_happened, sums_for
from cepheid.engine.scoring.confidence.independent_competing import by_pairs_of_instants
from cepheid.engine.scoring.confidence.order import (
    counted,
    ordered_within,
    pairs_before,
    precedes,
    triples_before,
    workspace,
)
from cepheid.engine.scoring.confidence.shared_competing import Weighing, enumerate_instants, swept, unweighed
from cepheid.engine.scoring.confidence.undecided import Undecided, new_buffers, undecided
from cepheid.engine.scoring.confidence.undisturbed import WITHIN, Effort, exclusive
from strategies.intervals import weights

Interval = tuple[int, list[float]]  # the first instant, and the probability of each
EFFORT = Effort(1e9, 0.0, 0.0, 1.0)  # exact, whatever it takes
WINDOWS = st.sampled_from([1, 2, 3, 4, 6, 9, NO_WINDOW])


@st.composite
def imprecise(draw: Any, alike: bool = False) -> Interval:
    """When one event may have happened; no impossible instants at the ends."""
    start, size = draw(st.integers(0, 7)), draw(st.integers(1, 4))
    if alike or draw(st.booleans()):
        return start, [1.0 / size] * size
    return start, draw(weights(size).filter(lambda odds: odds[0] > 0 and odds[-1] > 0))


def timed_of(events: list[Interval], alike: bool) -> Timed:
    lower = np.array([start for start, _ in events], np.int64)
    sizes = np.array([len(odds) for _, odds in events], np.int64)
    holes, base = np.zeros(len(events), np.int64), np.full(len(events), -1, np.int64)
    point, below, above, possible = np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0, np.int64)
    if not alike:
        base = np.cumsum(sizes) - sizes
        point = np.array([odd for _, odds in events for odd in odds])
        below, above, possible = accumulate(point, base, sizes, holes)
    upper, nothing = lower + sizes - 1, np.zeros((0, len(events)), np.int64)
    return Timed(
        lower,
        upper,
        1.0 / sizes,
        base,
        point,
        below,
        above,
        possible,
        holes,
        holes,
        holes,
        nothing,
        upper,
        np.ones(len(lower)),
    )


def worlds(events: list[Interval]) -> Any:
    """All choices of instants with their probability."""
    choices = [[(start + step, odd) for step, odd in enumerate(odds) if odd > 0] for start, odds in events]
    for world in itertools.product(*choices):
        yield [instant for instant, _ in world], math.prod(odd for _, odd in world)


def by_enumeration(
    events: list[Interval],
    length: int,
    window: int,
    disturbing: list[tuple[int, int]],
    scores: list[list[float] | None] | None = None,
) -> tuple[float, int, int]:
    total, earliest, latest = [], 99, -99
    for at, weight in worlds(events):
        first, last = at[0], at[length - 1]
        if any(one >= other for one, other in itertools.pairwise(at[:length])) or last - first >= window:
            continue
        edges = [last - window, *at[:length], first + window]
        if any(edges[gap] < at[competitor] < edges[gap + 1] for competitor, gap in disturbing):
            continue
        for gap, score in enumerate(scores or ()):
            weight *= 1.0 if score is None else score[edges[gap + 1] - edges[gap]]
        if weight == 0.0:
            continue
        total.append(weight)
        earliest, latest = min(earliest, first), max(latest, last)
    return math.fsum(total), earliest, latest


def bounds(timed: Timed, length: int, window: int) -> tuple[Any, Any] | None:
    low, high = timed.lower[:length].copy(), timed.upper[:length].copy()
    places = np.arange(length)
    return (low, high) if tighten(places, low, high, length, length, window) else None


@given(st.lists(imprecise(), min_size=1, max_size=5) | st.lists(imprecise(True), min_size=1, max_size=5), WINDOWS)
def test_order_and_window(events: list[Interval], window: int):
    alike = all(len(set(odds)) == 1 for _, odds in events)
    timed, length = timed_of(events, alike), len(events)
    expected, earliest, latest = by_enumeration(events, length, window, [])
    valid = bounds(timed, length, window)
    if valid is None:
        assert expected == 0.0
        return
    low, high = valid
    chosen = np.arange(length)
    assert ordered_within(timed, chosen, low, high, length, window, workspace(4, length)) == pytest.approx(expected)
    if alike:  # then bounds are exactly what is possible
        assert (expected > 0.0, low[0], high[-1]) == (True, earliest, latest)
        rows = [np.tile(values, (length, 1)) for values in (low, high)]
        quick = counted(timed.lower, timed.upper, timed.share, timed.base, chosen, *rows, length, window)
        assert quick == pytest.approx(expected) or (quick == -1.0 and length > 3)


def from_event_to_event(
    timed: Timed, chosen: Any, low: Any, high: Any, window: int, keys: Any
) -> list[tuple[float, int, int]]:
    """The answer of running sums, if they are for such competitors."""
    room = new_buffers(len(keys), len(low), 0)
    count, bits = undecided(timed.lower, timed.upper, timed.exists, low, high, keys, room.competing)
    competing = Undecided(*(row[:count] for row in room.competing[1:5]), bits)
    if bits < 0:
        return []
    needed = sums_for(competing, low, high, window)
    room = room._replace(sums=np.full(needed, np.nan), ramp=new_buffers(0, 0, needed).ramp)
    return [by_who_happened(timed, competing, chosen, low, high, window, room)]


@st.composite
def disturbed(draw: Any) -> tuple[list[Interval], int, int, list[tuple[int, int]]]:
    """The events of a match, its competitors, and who disturbs which gaps."""
    length, competitors = draw(st.integers(1, 3)), draw(st.integers(0, 3))
    events = [draw(imprecise()) for _ in range(length + competitors)]
    window = draw(WINDOWS)
    inner = range(1, length)
    gaps = list(inner) if window == NO_WINDOW else list(range(length + 1))
    pairs = []
    for competitor in range(length, length + competitors):
        if gaps:
            pairs += [(competitor, gap) for gap in sorted(draw(st.sets(st.sampled_from(gaps))))]
    return events, length, window, pairs


@given(disturbed())
def test_competitors(case: tuple[list[Interval], int, int, list[tuple[int, int]]]):
    events, length, window, pairs = case
    timed = timed_of(events, False)
    expected, earliest, latest = by_enumeration(events, length, window, pairs)
    valid = bounds(timed, length, window)
    if valid is None:
        assert expected == 0.0
        return
    low, high = valid
    chosen, keys = np.arange(length), np.array([competitor * (length + 1) + gap for competitor, gap in pairs], np.int64)
    total, first, last, cost = exclusive(timed, chosen, low, high, window, keys, unweighed(), EFFORT)
    assert cost == 0.0
    assert total == pytest.approx(expected, abs=1e-12)
    assert (total > 0.0) == (expected > 0.0)
    if expected > 0.0:
        assert (first, last) == (earliest, latest)
    job = task(timed, chosen, low, high, window, keys)
    ways = [swept, enumerate_instants] + ([by_pairs_of_instants] if job.disturbs.shape[0] == 0 else [])
    results = [way(job) if way is by_pairs_of_instants else way(job, unweighed()) for way in ways]
    results += from_event_to_event(timed, chosen, low, high, window, keys)
    for found, first, last in results:
        assert found == pytest.approx(expected, abs=1e-12)
        assert (found > 0.0) == (expected > 0.0)
        assert expected == 0.0 or (first, last) == (earliest, latest)


@st.composite
def crowded(draw: Any) -> tuple[list[Interval], int, int, list[tuple[int, int]]]:
    """The same with longer matches, times uniform in wider intervals, and competitors of most gaps inside the match."""
    length = draw(st.integers(3, 5))
    competitors = draw(st.integers(1, 3 if length < 5 else 2))
    events = []
    for event in range(length + competitors):
        around = 2 * event if event < length else draw(st.integers(0, 2 * length))
        start, size = around + draw(st.integers(-2, 2)), draw(st.integers(1, 6 if length < 5 else 4))
        events.append((start, [1.0 / size] * size))
    pairs = []
    for competitor in range(length, length + competitors):
        some = draw(st.just(set(range(1, length))) | st.sets(st.integers(1, length - 1)))
        pairs += [(competitor, gap) for gap in sorted(some)]
    return events, length, draw(st.sampled_from([6, 9, NO_WINDOW])), pairs


@given(crowded(), st.sampled_from([0.0, 1e-9, 0.01, 0.2]), st.sampled_from([0.0, 0.01, 0.1]))
def test_intervals_and_bounds(
    case: tuple[list[Interval], int, int, list[tuple[int, int]]], tolerance: float, least: float
):
    events, length, window, pairs = case
    timed = timed_of(events, True)
    valid = bounds(timed, length, window)
    expected, earliest, latest = by_enumeration(events, length, window, pairs)
    if valid is None:
        assert expected == 0.0
        return
    low, high = valid
    chosen, keys = np.arange(length), np.array([competitor * (length + 1) + gap for competitor, gap in pairs], np.int64)
    wide = np.empty(len(keys) * (length + 1), np.int64)
    wide = wide[: widened(timed.lower, timed.upper, low, high, keys, wide)]
    for given_keys in (keys, wide):
        job = task(timed, chosen, low, high, window, given_keys)
        results = from_event_to_event(timed, chosen, low, high, window, given_keys)
        if has_intervals(job):
            results.append(by_intervals(job, intervals(job)))
        for found, first, last in results:
            assert found == pytest.approx(expected, abs=1e-12)
            assert (found > 0.0) == (expected > 0.0)
            assert expected == 0.0 or (first, last) == (earliest, latest)
        fewest, most, first, last = bounds_of(timed, chosen, low, high, window, given_keys)
        assert fewest - 1e-12 <= expected <= most + 1e-12
        assert (most > 0.0) == (expected > 0.0)
        assert expected == 0.0 or (first, last) == (earliest, latest)
        ordered = ordered_within(timed, chosen, low, high, length, window, workspace(6, length))
        assert expected <= ordered * at_most(timed, low, high, given_keys) + 1e-12
    total, first, last, cost = exclusive(
        timed, chosen, low, high, window, keys, unweighed(), Effort(1e9, tolerance, least, ordered)
    )
    if expected < least - 1e-12:
        assert total < least
    else:
        assert total == pytest.approx(expected, abs=1e-12 + (tolerance if cost == WITHIN else 0.0))
        assert expected == 0.0 or (first, last) == (earliest, latest)


def test_bounds_are_enough_where_they_agree():
    # All of the competitor's instants but one lie in the first gap, which it then hardly ever leaves unharmed.
    events: list[Interval] = [(0, [1.0]), (8, [0.5, 0.5]), (20, [1.0]), (1, [1 / 8] * 8)]
    timed, keys = timed_of(events, True), np.array([3 * 4 + 1, 3 * 4 + 2])
    low, high = bounds(timed, 3, NO_WINDOW) or ([], [])
    # The sums take three steps, the bounds two: with a budget between these, the bounds must do.
    for tolerance, budget, state in ((0.0, 1e9, 0.0), (0.2, 2.5, WITHIN)):
        effort = Effort(budget, tolerance, 0.0, 1.0)
        total, *_, cost = exclusive(timed, np.arange(3), low, high, NO_WINDOW, keys, unweighed(), effort)
        assert cost == state
        assert total == pytest.approx(1 / 16, abs=tolerance)


@given(disturbed(), st.data())
def test_worlds_are_weighed_by_the_spans_of_their_gaps(
    case: tuple[list[Interval], int, int, list[tuple[int, int]]], data: st.DataObject
):
    events, length, window, pairs = case
    assume(window < NO_WINDOW)
    values = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=window + 1, max_size=window + 1)
    scores = [data.draw(st.none() | values) for _ in range(length + 1)]
    timed = timed_of(events, False)
    expected, earliest, latest = by_enumeration(events, length, window, pairs, scores)
    valid = bounds(timed, length, window)
    if valid is None:
        assert expected == 0.0
        return
    chosen, keys = np.arange(length), np.array([competitor * (length + 1) + gap for competitor, gap in pairs], np.int64)
    weighing = weighing_of(scores)
    total, first, last, _ = exclusive(timed, chosen, *valid, window, keys, weighing, EFFORT)
    assert total == pytest.approx(expected, abs=1e-12)
    assert expected == 0.0 or (first, last) == (earliest, latest)
    job = task(timed, chosen, *valid, window, keys)
    for way in (swept, enumerate_instants):
        found, first, last = way(job, weighing)
        assert found == pytest.approx(expected, abs=1e-12)
        assert expected == 0.0 or (first, last) == (earliest, latest)


def weighing_of(scores: list[list[float] | None]) -> Weighing:
    given = [score for score in scores if score is not None]
    numbers = iter(range(len(given)))
    table = [-1 if score is None else next(numbers) for score in scores]
    first, values = np.cumsum([0, *map(len, given)]), list(itertools.chain(*given))
    return Weighing(np.array(values, np.float64), first.astype(np.int64), np.array(table, np.int64))


def test_a_budget_is_kept():
    events: list[Interval] = [(0, [0.1] * 10), (5, [0.1] * 10), (3, [0.1] * 10)]
    timed = timed_of(events, True)
    low, high = bounds(timed, 2, NO_WINDOW) or ([], [])
    keys = np.array([2 * 3 + 1])
    assert (
        exclusive(timed, np.arange(2), low, high, NO_WINDOW, keys, unweighed(), Effort(10.0, 0.0, 0.0, 1.0))[3] > 10.0
    )
    assert exclusive(timed, np.arange(2), low, high, NO_WINDOW, keys, unweighed(), EFFORT)[3] == 0.0


@given(imprecise(), imprecise(), st.integers(-2, 12), st.integers(-2, 12))
def test_questions_about_one_event(one: Interval, other: Interval, first: int, last: int):
    alike = all(len(set(odds)) == 1 for _, odds in (one, other))
    timed = timed_of([one, other], alike)
    odds = {one[0] + step: odd for step, odd in enumerate(one[1])}
    assert up_to(timed, 0, last) == pytest.approx(sum(odd for t, odd in odds.items() if t <= last))
    assert onwards(timed, 0, first) == pytest.approx(sum(odd for t, odd in odds.items() if t >= first))
    inside = [odd for t, odd in odds.items() if first <= t <= last]
    assert between(timed, 0, first, last) == pytest.approx(sum(inside))
    assert (between(timed, 0, first, last) > 0.0) == any(odd > 0.0 for odd in inside)
    expected = sum(weight for (a, b), weight in worlds([one, other]) if a < b)
    assert precedes(timed, 0, 1) == pytest.approx(expected)


@given(*[st.integers(0, 8)] * 6, WINDOWS)
def test_counting(a: int, b: int, c: int, d: int, e: int, f: int, window: int):
    one, two, three = range(a, b + 1), range(c, d + 1), range(e, f + 1)
    assert pairs_before(a, b, c, d) == sum(s < t for s, t in itertools.product(one, two))
    if a <= b and c <= d and e <= f:
        triples = sum(s < t < u < s + window for s, t, u in itertools.product(one, two, three))
        assert triples_before(a, b, c, d, e, f, window) == triples
