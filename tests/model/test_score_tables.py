"""Tables: the error bound holds where nobody looked, G bounds every score, and the lookup finds the right interval."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from cepheid.engine.kernels.score_lookup import find_knot, log_score_at, maximum_at, score_at
from cepheid.errors import ModelError
from cepheid.model import (
    Empirical,
    Exponential,
    Gamma,
    LogNormal,
    SegmentItem,
    Uniform,
    Weibull,
    join_tables,
    score,
    score_table,
)
from cepheid.model.score_tables import table_arrays
from cepheid.model.scores import segment_score

WINDOW = 120.0
GAPS = st.sampled_from(
    [
        Exponential(40),
        Exponential(3, 0.6),
        Gamma(0.3, 60),
        Gamma(6, 9),
        LogNormal(3, 0.8),
        Weibull(0.7, 30, 0.9),
        Uniform(0, 80),
        Uniform(30, 45),
        Empirical((0, 5, 9, 60, 100), (0.1, 0.5, 0.3, 0.1)),
        Empirical((2, 10, 11, 40), (0.3, 0.3, 0.4), 0.5),
    ]
)
SEGMENTS = st.lists(
    st.builds(SegmentItem, st.sampled_from(["missing", "negative"]), st.sampled_from([0.001, 0.1, 0.6]), GAPS),
    min_size=1,
    max_size=4,
).filter(lambda items: sum(item.kind == "missing" for item in items) <= 2)
SCORINGS = st.sampled_from(["exact", "paper", "posterior"])
SHARES = st.lists(st.floats(0.0, 1.0), min_size=1, max_size=20)


@given(SEGMENTS, SCORINGS, SHARES)
def test_the_error_bound_holds(items, scoring, shares):
    table = score_table(items, WINDOW, scoring)
    assert table.error_bound <= 1e-6
    spans = WINDOW * np.array(shares)
    # More exactly computed than for the table, and without its polynomials.
    truth = segment_score(items, WINDOW, scoring, 1e-9).direct(np.maximum(spans, 1e-300))
    assert np.abs(table.score(spans) - truth).max() <= table.error_bound


@given(SEGMENTS, SCORINGS, st.lists(st.floats(0.0, WINDOW), min_size=2, max_size=20))
def test_running_maxima_rise_and_bound_every_score(items, scoring, spans):
    table = score_table(items, WINDOW, scoring)
    assert np.all(np.diff(table.maxima) >= 0.0)
    assert np.all(table.maxima >= table.values)
    ordered = np.sort(np.array(spans))
    bounds, scores = table.maximum(ordered), table.score(ordered)
    assert np.all(bounds >= np.maximum.accumulate(scores))
    assert np.all(bounds <= np.maximum.accumulate(table.values)[-1] * (1 + 1e-15))
    assert table.highest >= scores.max()


@given(SEGMENTS, SCORINGS, st.lists(st.floats(-5.0, WINDOW + 5.0), min_size=1, max_size=30))
def test_lookup_is_linear_interpolation_between_knots(items, scoring, spans):
    table = score_table(items, WINDOW, scoring)
    at_knots = table.score(table.knots)
    np.testing.assert_array_equal(at_knots, table.values)
    expected = np.interp(spans, table.knots, table.values)
    np.testing.assert_allclose(table.score(spans), expected, rtol=0, atol=1e-13)
    assert np.all((table.values >= 0.0) & (table.values <= 1.0))


@pytest.mark.parametrize("count", [8, 16, 21])
def test_the_right_interval_is_found_next_to_knots_on_bucket_edges(count):
    for window in np.arange(3, 40) * 0.1:
        knots = np.unique(np.append(np.arange(count) * (window / count), window))
        arrays = table_arrays(knots, np.linspace(0.0, 1.0, len(knots)))
        for spans in (knots[1:-1], np.nextafter(knots[1:-1], 0.0), np.nextafter(knots[1:-1], 1e9)):
            found = [find_knot(arrays, 0, span) for span in spans]
            assert found == list(np.searchsorted(knots, spans, side="right") - 1)


def test_rounding_never_puts_a_score_above_its_bound():
    for window in np.arange(3, 60) / 7.0:
        items = [SegmentItem("missing", 0.37, Exponential(17.3)), SegmentItem("negative", 0.1, Gamma(0.5, 30))]
        table = score_table(items, window)
        spans = np.sort(np.concatenate([table.knots, np.nextafter(table.knots, 0.0)]))
        assert np.all(table.maximum(spans) >= np.maximum.accumulate(table.score(spans)))


def test_kinks_are_knots():
    table = score_table([SegmentItem("missing", 0.1, Uniform(30, 45))], WINDOW)
    assert {30.0, 45.0} <= set(table.knots)
    assert len(table.knots) < 20  # straight pieces need no more


def test_one_table_serves_equal_segments():
    items = [SegmentItem("missing", 0.1, Exponential(40)), SegmentItem("negative", 0.1, Gamma(0.5, 20))]
    assert score_table(items, WINDOW) is score_table(list(items), 120)


def test_tables_survive_pickling():
    table = score_table([SegmentItem("missing", 0.1, Exponential(40))], WINDOW)
    copy = pickle.loads(pickle.dumps(table))
    assert copy.score(33.3) == table.score(33.3)
    assert copy.error_bound == table.error_bound


def test_a_density_that_is_infinite_at_zero_is_followed_to_tiny_spans():
    table = score_table([SegmentItem("missing", 0.5, Gamma(0.3, 60))], WINDOW)
    for span in np.geomspace(1e-25, 100.0, 40):
        assert float(table.score(span)) == pytest.approx(0.5 * float(Gamma(0.3, 60).cdf(span)), abs=1e-6)


def test_a_tighter_tolerance_is_kept():
    items = [SegmentItem("missing", 0.5, Exponential(40)), SegmentItem("negative", 0.1, Exponential(20))]
    table = score_table(items, WINDOW, tolerance=1e-8)
    assert table.error_bound <= 1e-8
    for span in (3.3, 33.3, 99.9):
        assert float(table.score(span)) == pytest.approx(score(items, span), abs=1e-8)


def test_whole_times_get_a_knot_each():
    items = [SegmentItem("missing", 0.5, Uniform(2.5, 40)), SegmentItem("negative", 0.1, Exponential(20))]
    table = score_table(items, 100, whole_times=True)
    np.testing.assert_array_equal(table.knots, np.arange(101.0))
    for span in (1, 3, 50, 99):
        assert float(table.score(span)) == pytest.approx(score(items, span), abs=3e-8)
    assert score_table(items, 1e9, whole_times=True).error_bound <= 1e-6


@njit
def best_edge(tables, edges, t):
    best, found = -np.inf, -1
    for k in range(edges):
        value = log_score_at(tables, k, t)
        if value > best:
            best, found = value, k
    return found, best


def test_joined_tables_are_the_tables():
    tables = [
        score_table([SegmentItem("missing", 0.1, Exponential(40))], WINDOW),
        score_table([SegmentItem("negative", 0.3, Gamma(0.3, 10))], 50.0),
        score_table([SegmentItem("missing", 0.9, Uniform(30, 45))], WINDOW, "posterior"),
    ]
    joined = join_tables(tables)
    for t in np.linspace(-1.0, 130.0, 400):
        for k, table in enumerate(tables):
            assert score_at(joined, k, t) == table.score(t)
            assert maximum_at(joined, k, t) == table.maximum(t)
    found, best = best_edge(joined, 3, 44.9)
    assert found == 2
    assert best == np.log(score_at(joined, 2, 44.9))
    assert log_score_at(joined, 0, 0.0) == -np.inf
    np.testing.assert_array_equal(np.exp(tables[0].arrays.logs[1:]).round(12), tables[0].values[1:].round(12))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: score_table([], 10.0, tolerance=0.0), "tolerance"),
        (lambda: score_table([], 0.0), "WITHIN"),
        (lambda: score_table([], float("inf")), "finite"),
        (lambda: join_tables([]), "no tables"),
    ],
)
def test_bad_input(make, message):
    with pytest.raises(ModelError, match=message):
        make()
