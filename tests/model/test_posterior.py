"""The posterior against enumeration of histories with nested quadrature, against drawn worlds, and at its limits."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cepheid.model import (
    Empirical,
    Ends,
    Exponential,
    Gamma,
    LogNormal,
    SegmentItem,
    Uniform,
    Weibull,
    score,
    score_table,
)
from reference.integrals import integrated

WINDOW = 100.0
GAPS = (
    Exponential(12),
    Exponential(3, 0.6),
    Exponential(25, 0.9),
    Gamma(2, 9, 0.8),
    Gamma(6, 4),
    LogNormal(2.5, 0.5, 0.95),
    Weibull(1.5, 20, 0.7),
    Uniform(0, 40, 0.9),
    Uniform(5, 25, 0.5),
)
SHARES = st.floats(0.2, 1.0)
HALVES = st.integers(0, 40).map(lambda number: number / 2.0)
DRAWN = st.one_of(
    st.sampled_from(GAPS),
    st.builds(Exponential, st.floats(2.0, 40.0), SHARES),
    st.builds(Gamma, st.floats(2.0, 6.0), st.floats(2.0, 10.0), SHARES),
    st.builds(Uniform, st.sampled_from([0.0, 1.5, 4.0, 10.0]), HALVES.map(lambda low: low + 12.0), SHARES),
    st.builds(LogNormal, st.floats(1.5, 3.5), st.floats(0.3, 0.9), SHARES),
)
MISSING = st.builds(SegmentItem, st.just("missing"), st.floats(0.01, 0.6), DRAWN)
NEGATIVE = st.builds(SegmentItem, st.just("negative"), st.floats(0.01, 0.6), DRAWN)
WAITED = st.builds(SegmentItem, st.just("negative"), st.floats(0.01, 0.6), DRAWN, DRAWN)
# An event that is waited for is one more integral, so beside it only one more is missing.
SEGMENTS = st.one_of(
    st.tuples(st.lists(NEGATIVE, max_size=1), MISSING, st.lists(NEGATIVE, max_size=1), st.just([])),
    st.tuples(st.lists(WAITED, max_size=1), MISSING, st.just([]), st.just([])),
    st.tuples(st.just([]), MISSING, st.just([]), st.lists(MISSING, min_size=1, max_size=1)),
).map(lambda parts: (*parts[0], parts[1], *parts[2], *parts[3]))
FOLLOWING = st.one_of(st.none(), DRAWN)
# Never where a density jumps: there the definition has two values.
SPANS = st.one_of(st.sampled_from([2.0, 7.25, 19.0, 31.25, 48.0]), st.integers(1, 59).map(lambda n: n + 0.37))


def by_histories(items, span, ends):
    plain = [(item.kind, item.loss, item.gap) for item in items]
    onward = {place: item.onward for place, item in enumerate(items) if item.onward is not None}
    return integrated(plain, span, "posterior", ends.following, ends.leading, onward)


@given(SEGMENTS, FOLLOWING, SPANS)
def test_it_is_the_share_of_one_history_in_all(items, following, span):
    ends = Ends(following)
    expected = by_histories(items, span, ends)
    assume(math.isfinite(expected))
    assert score(items, span, "posterior", ends) == pytest.approx(expected, abs=1e-6)
    assert float(score_table(items, WINDOW, "posterior", ends=ends).score(span)) == pytest.approx(expected, abs=3e-6)


@given(SEGMENTS, DRAWN, SPANS)
def test_in_a_leading_gap_the_first_event_of_a_trip_comes_when_trips_begin(items, following, span):
    ends = Ends(following, leading=True)
    expected = by_histories(items, span, ends)
    assume(math.isfinite(expected))  # the leading component's gap may exclude so late a beginning altogether
    assert score(items, span, "posterior", ends) == pytest.approx(expected, abs=1e-6)


def test_three_missing():
    items = [SegmentItem("missing", 0.2, gap) for gap in (Exponential(12, 0.9), Gamma(2, 9, 0.8), Exponential(5, 0.6))]
    ends = Ends(Exponential(10))
    assert score(items, 40.0, "posterior", ends) == pytest.approx(by_histories(items, 40.0, ends), abs=1e-6)


def test_it_is_the_share_of_drawn_worlds():
    # p, N, m, q: stops that are bypassed or lost, a negative that is lost; worlds in which q was seen 30 ± 1 after p.
    random = np.random.default_rng(5)
    count = 4_000_000
    m_happens, n_comes = random.random(count) < 0.8, random.exponential(30.0, count)
    m_at = np.where(m_happens, random.gamma(2.0, 6.0, count), 0.0)
    q_at = m_at + random.exponential(15.0, count)
    n_happens = n_comes < np.where(m_happens, m_at, q_at)
    unseen = (~m_happens | (random.random(count) < 0.3)) & (~n_happens | (random.random(count) < 0.2))
    here = unseen & (np.abs(q_at - 30.0) < 1.0)
    share = (m_happens & ~n_happens)[here].mean()
    items = [SegmentItem("negative", 0.2, Exponential(30)), SegmentItem("missing", 0.3, Gamma(2, 6, 0.8))]
    deviation = math.sqrt(share * (1 - share) / here.sum())
    said = score(items, 30.0, "posterior", Ends(Exponential(15)))
    assert said == pytest.approx(share, abs=4 * deviation + 0.002)


def test_one_negative_alone_is_the_papers():
    negative = SegmentItem("negative", 0.1, Exponential(50, 0.9))
    for ends in (Ends(), Ends(Exponential(3)), Ends(Exponential(3), leading=True)):
        assert score([negative], 70.0, "posterior", ends) == score([negative], 70.0)


def test_what_always_happens_has_happened():
    stop = SegmentItem("missing", 0.01, Gamma(2, 9))
    for span in (1e-3, 5.0, 90.0):
        assert score([stop], span, "posterior", Ends(Gamma(3, 2))) == 1.0
        assert score([stop, stop], span, "posterior", Ends(Uniform(1, 2))) == 1.0


def test_a_gap_too_short_for_a_stop_speaks_against_it():
    stop, ends = SegmentItem("missing", 0.3, Uniform(10, 20, 0.9)), Ends(Uniform(5, 30))
    assert score([stop], 12.0, "posterior", ends) < 1e-9  # no stop is that fast
    assert score([stop], 45.0, "posterior", ends) == pytest.approx(1.0)  # nobody comes that late without one
    assert 0.2 < score([stop], 25.0, "posterior", ends) < 0.9


def test_where_no_history_explains_the_length_the_shares_decide():
    stop, ends = SegmentItem("missing", 0.3, Uniform(10, 20, 0.8)), Ends(Uniform(5, 30))
    shares = 0.3 * 0.8 / (0.3 * 0.8 + 0.2)
    assert score([stop], 80.0, "posterior", ends) == pytest.approx(shares)
    table = score_table([stop], WINDOW, "posterior", ends=ends)
    assert float(table.score(80.0)) == pytest.approx(shares)
    assert float(table.score(40.0)) == pytest.approx(1.0)
    assert table.error_bound <= 1e-6


def test_a_lost_leading_event_is_told_from_an_absent_one_by_the_shares():
    first = SegmentItem("missing", 0.1, Uniform(0, 1000, 0.7))
    said = score([first], 900.0, "posterior", Ends(Exponential(10), leading=True))
    assert said == pytest.approx(0.1 * 0.7 / (0.1 * 0.7 + 0.3), abs=1e-6)


def test_nothing_seen_behind_it():
    last = SegmentItem("missing", 0.2, Exponential(30, 0.9))
    come = 0.9 * (1 - math.exp(-2))
    assert score([last], 60.0, "posterior", Ends()) == pytest.approx(0.2 * come / (0.2 * come + 1 - come), abs=1e-9)


def test_a_trip_of_which_nothing_more_is_seen_may_have_ended():
    # Two lost, one lost and then ended, or ended at once; the deadline is so far away that nobody is still on his way.
    two = [
        SegmentItem("missing", 0.15, Exponential(1.0, happens), goes_on=g) for happens, g in ((1.0, 0.9), (0.9, 1.0))
    ]
    both, one, none = (0.9 * 0.15) * (0.9 * 0.15), (0.9 * 0.15) * 0.1, 0.1
    assert score(two, 500.0, "posterior", Ends()) == pytest.approx(both / (both + one + none), abs=1e-6)
    # Once a later event was seen, the trip did go on.
    assert score(two[:1], 5.0, "posterior", Ends(Exponential(1.0))) == 1.0


def test_whoever_waits_for_the_payment_takes_longer():
    pays = SegmentItem("negative", 0.2, Gamma(3, 20, 0.9), onward=Exponential(10))
    ends = Ends(Gamma(2, 10))
    short, long = (score([pays], span, "posterior", ends) for span in (20.0, 90.0))
    assert short > 0.7 > 0.1 > long  # out after 20: did not pay; after 90: paid, unseen


def test_histograms_are_tabulated_in_seconds():
    histogram = Empirical(tuple(np.linspace(0, 60, 31)), tuple(np.full(30, 1 / 30)), 0.9)
    uniform = Uniform(0, 60, 0.9)
    for count in (1, 2):
        tables = [
            score_table([SegmentItem("missing", 0.2, gap)] * count, 150.0, "posterior", ends=Ends(Exponential(20)))
            for gap in (histogram, uniform)
        ]
        times = np.linspace(1.0, 149.0, 50)
        assert tables[0].score(times) == pytest.approx(tables[1].score(times), abs=1e-4)
