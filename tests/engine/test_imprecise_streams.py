"""Imprecise streams: exact times as a special case, completion, cuts anywhere, streams too large to enumerate."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.errors import EngineError, LimitError, QueryError
from cepheid.language import syntax as s
from cepheid.language.schema import Schema
from cepheid.plan.physical import Limits, Plan
from cepheid.simulate.cluster import cluster_log
from cepheid.simulate.imprecise import imprecise_query, imprecise_series
from strategies.agreement import bound_to, cut, everything
from strategies.intervals import ROLES, assert_same, described, in_order, intervals, run
from strategies.queries import queries, streams

STRATEGIES = (s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT)
SHORT = {"strategy": STRATEGIES, "event_window": False, "output": False, "returns": False, "max_window": 6}
METHODS = ("query-order", "any-state", "sorted", "selectivity")
ENGINES = st.sampled_from([("intervals", method) for method in METHODS] + [("points", None)])


# --- exact times ----------------------------------------------------------------------------------------------------


@given(queries(**SHORT), streams(max_size=8), ENGINES)
def test_with_equal_bounds_it_is_the_precise_result_with_confidence_1(
    query: s.QuerySyntax, table: pa.Table, engine: tuple[str, str | None]
):
    name, method = engine
    if any(component.kleene for component in query.components):
        method = None  # groups are built in the order of the pattern
    precise = bound_to(query, table)
    expected = find(Plan(precise, "reference"), ordered(table, precise.schema))
    bounded = table.append_column("lower", table["ts"]).append_column("upper", table["ts"])
    bound = bound_to(query, bounded, **ROLES)
    found = run(bound, in_order(bound, bounded), name, method=method)
    assert everything(found) == everything(expected)
    assert (found.confidence == 1.0).all()
    first, last = found.chosen[0].first(), found.chosen[-1].last()
    times = ordered(table, precise.schema).time
    assert (found.earliest == times[first]).all()
    assert (found.latest == times[last]).all()


# --- completion -----------------------------------------------------------------------------------------------------


@given(queries(kleene=False, **SHORT), intervals(), ENGINES, st.lists(st.integers(-5, 25), max_size=4))
def test_intervals_of_completion_can_be_cut_anywhere(
    query: s.QuerySyntax, table: pa.Table, engine: tuple[str, str | None], cuts: list[int]
):
    bound = bound_to(query, table, **ROLES)
    events = in_order(bound, table)
    name, method = engine
    plan = Plan(bound, name, partition=bound.equivalence, options={"method": method})
    pieces = cut(plan, events, cuts)
    together: dict[Any, Any] = {}
    for piece in pieces:
        part = described(piece)
        assert not together.keys() & part.keys()
        together |= part
    whole = described(find(plan, events))
    assert together.keys() == whole.keys()
    for group, values in whole.items():
        assert together[group] == pytest.approx(values)


@given(queries(max_components=3, **SHORT), intervals(max_size=5), st.integers(-3, 20))
def test_what_begins_after_a_completion_changes_nothing(query: s.QuerySyntax, table: pa.Table, until: int):
    """A stream that has seen all events that begin by an instant reports all that completes by then, for good."""
    bound = bound_to(query, table, **ROLES)
    assume(not any(component.any for component in bound.components))  # concurrent rows may swap: compare by place only
    table = table.append_column("number", pa.array(range(table.num_rows)))
    bound = bound_to(query, table, **ROLES)
    seen = table.filter(pa.array(np.asarray(table["lower"]) <= until))
    assert numbered(bound, table, until) == numbered(bound, seen, until)


def numbered(bound: Any, table: pa.Table, until: int) -> dict[Any, Any]:
    events = in_order(bound, table)
    found = find(Plan(bound, "intervals", partition=bound.equivalence), events, None, until)
    numbers = events.table["number"].to_pylist()
    return {
        tuple(tuple(numbers[row] for row in group) for group in groups): (*values[:3], round(values[3], 9))
        for groups, values in described(found).items()
    }


# --- streams too large to enumerate ---------------------------------------------------------------------------------


def series(text: str, events: int, half_width: int) -> tuple[Any, Any]:
    table = imprecise_series(events, half_width=half_width).events
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    return bound, in_order(bound, table)


@pytest.mark.some(3)
@pytest.mark.parametrize("half_width", [0, 1, 4, 12])
@pytest.mark.parametrize("strategy", ["any", "next"])
def test_all_methods_agree_on_the_papers_series(strategy: str, half_width: int):
    text = imprecise_query(divisors=(32, 37, 41), window=100)
    text = text.replace("WITHIN", f"AND skip_till_{strategy}_match(e1, e2, e3) WITHIN")
    bound, events = series(text, 700, half_width)
    expected = run(bound, events, "intervals", method="query-order")
    assert len(expected) > 10
    for method in METHODS[1:]:
        assert_same(run(bound, events, "intervals", method=method), expected)
    if half_width < 12:
        assert_same(run(bound, events, "points"), expected)


@pytest.mark.some(1)
@pytest.mark.parametrize("half_width", [1, 5])
def test_all_methods_agree_where_every_event_fits_every_place(half_width: int):
    text = imprecise_query(divisors=(10, 10, 10), window=40).replace(
        "WITHIN", "AND skip_till_next_match(e1, e2, e3) WITHIN"
    )
    bound, events = series(text, 300, half_width)
    expected = run(bound, events, "intervals")
    assert len(expected) > 20
    for method in METHODS:
        assert_same(run(bound, events, "intervals", method=method), expected)
    assert_same(run(bound, events, "points"), expected)


def test_all_methods_agree_on_longer_patterns_with_a_tight_window():
    text = imprecise_query(divisors=(13, 17, 19, 23, 29), window=30)
    bound, events = series(text, 500, 9)
    expected = run(bound, events, "intervals")
    assert len(expected) > 100
    for method in METHODS:
        assert_same(run(bound, events, "intervals", method=method), expected)


def test_all_methods_agree_on_the_cluster_query():
    simulated = cluster_log(150, nodes=4, heavy=0.4)
    bound = cepheid.query(simulated.query).bind(Schema.from_arrow(simulated.events.schema, **ROLES))
    events = in_order(bound, simulated.events)
    expected = run(bound, events, "intervals")
    assert len(expected) > 10
    for method in METHODS:
        assert_same(run(bound, events, "intervals", method=method), expected)


def mixed(events: int, half_width: int, odds: bool) -> pa.Table:
    """Four types and three keys, in random order and at random times; with odds, some instants are impossible."""
    random = np.random.default_rng(7)
    times = np.sort(random.integers(0, events, events))
    before, after = random.integers(0, half_width + 1, (2, events))
    lower, upper = times - before, times + after
    weights = [random.integers(0, 3, width) + np.eye(width, dtype=int)[0] for width in upper - lower + 1]
    return pa.table(
        {
            "type": random.choice(list("ABCD"), events, p=[0.3, 0.3, 0.3, 0.1]),
            "id": random.integers(0, 3, events),
            "x": random.integers(0, 10, events),
            "lower": lower,
            "upper": upper,
            "odds": pa.array([(w / w.sum()).tolist() if odds else None for w in weights], pa.list_(pa.float64())),
        }
    )


@pytest.mark.some(4)
@pytest.mark.parametrize("odds", [False, True])
@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, !(D n), B b, C c) WHERE [id] AND a.x < c.x WITHIN 40",
        "PATTERN SEQ(A a, !(D n), B b) WHERE skip_till_next_match(a, n, b) { [id] AND n.x > a.x } WITHIN 30",
        "PATTERN SEQ(A a, B b, !(D n)) WHERE skip_till_next_match(a, b, n) { [id] AND a.x < b.x } WITHIN 25",
        "PATTERN SEQ(!(D n), A a, B b) WHERE [id] AND (n.x < a.x OR n.x = b.x) WITHIN 20",
    ],
)
def test_all_methods_agree_where_others_may_be_in_the_way(text: str, odds: bool):
    table = mixed(260, 4, odds)
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    events, options = in_order(bound, table), {"probabilities": "odds"}
    expected = run(bound, events, "intervals", **options)
    assert len(expected) > 30
    for method in METHODS:
        assert_same(run(bound, events, "intervals", method=method, **options), expected)
    assert_same(run(bound, events, "points", **options), expected)


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) { [id] AND a[i].x >= a[i-1].x } WITHIN 16",
        "PATTERN SEQ(A a, B+ b[], !(D n)) WHERE [id] AND b[i].x > a.x AND sum(b[..i-1].x) < 12 WITHIN 24",
    ],
)
def test_groups_agree_with_points_on_longer_streams(text: str):
    table = mixed(200, 2, odds=True)
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    events, options = in_order(bound, table), {"probabilities": "odds"}
    expected = run(bound, events, "intervals", **options)
    assert len(expected) > 20
    assert_same(run(bound, events, "points", **options), expected)


def test_a_confidence_prunes_early():
    text = imprecise_query(divisors=(10, 10, 10), window=40)
    bound, events = series(text, 400, 8)
    everyone, sure = run(bound, events, "intervals"), run(bound, events, "intervals", confidence=0.6)
    kept = {group: values for group, values in described(everyone).items() if values[3] >= 0.6}
    assert described(sure) == kept
    assert 0 < len(sure) < len(everyone)
    assert sure.counters["judged"] < everyone.counters["judged"]


def test_the_method_is_chosen_by_frequencies():
    kinds = ["A"] * 60 + ["B"] * 5 + ["C"] * 60
    table = pa.table({"type": kinds, "lower": range(125), "upper": [t + 3 for t in range(125)]})
    text = "PATTERN SEQ(A a, B b, C c) WITHIN 40"
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    events = in_order(bound, table)
    by_itself = run(bound, events, "intervals").counters
    assert by_itself == run(bound, events, "intervals", method="selectivity").counters
    assert by_itself["partial"] < run(bound, events, "intervals", method="query-order").counters["partial"]


@pytest.mark.parametrize("method", METHODS)
def test_events_of_another_key_are_not_in_the_way(method: str):
    """Keys are compared instead of parting the stream, and B is rarer than A."""
    kinds, ids = ["A", "B", "B", "A", "A"], [1, 2, 1, 3, 3]
    table = pa.table({"type": kinds, "lower": [1, 3, 5, 30, 31], "upper": [2, 3, 5, 30, 31], "id": ids})
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 9"
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    plan = Plan(bound, "intervals", compared=("id",), options={"method": method})
    assert [groups for groups, _ in everything(find(plan, in_order(bound, table)))] == [((0,), (2,))]


def test_points_are_counted():
    """Four instants of the first events; B is later than three of them at two instants, than the last one at one."""
    table = pa.table({"type": ["A", "A", "B"], "lower": [1, 2, 3], "upper": [2, 3, 4]})
    bound = cepheid.query("PATTERN SEQ(A a, B b) WITHIN 9").bind(Schema.from_arrow(table.schema, **ROLES))
    counters = run(bound, in_order(bound, table), "points").counters
    assert {name: counters[name] for name in ("partial", "judged", "evaluations", "peak")} == {
        "partial": 4 + 7,
        "judged": 7,
        "evaluations": 2,
        "peak": 2,
    }


# --- limits and refusals --------------------------------------------------------------------------------------------


def crowd(text: str, size: int = 12, **plan: Any) -> Matches:
    table = pa.table({"type": ["A"] * size, "lower": [0] * size, "upper": [9] * size})
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    return find(Plan(bound, "intervals", **plan), in_order(bound, table))


@pytest.mark.parametrize("method", METHODS)
def test_too_many_matches_are_an_error_or_cut(method: str):
    text = "PATTERN SEQ(A a, A b)"
    with pytest.raises(LimitError, match="max_matches=7"):
        crowd(text, limits=Limits(max_matches=7), options={"method": method})
    found = crowd(text, limits=Limits(max_matches=7, truncate=True), options={"method": method})
    assert (len(found), found.truncated) == (7, True)


@pytest.mark.parametrize("method", ["any-state", "sorted"])
def test_too_many_runs_are_an_error(method: str):
    with pytest.raises(LimitError, match="max_partial_matches=5"):
        crowd("PATTERN SEQ(A a, A b)", limits=Limits(max_partial_matches=5), options={"method": method})


def test_a_confidence_that_would_take_too_long_is_an_error():
    text = "PATTERN SEQ(A a, A b, A c) WHERE skip_till_next_match(a, b, c) { }"
    with pytest.raises(EngineError, match=r"the exact confidence of a match needs about .* steps"):
        crowd(text, options={"max_cost": 100.0})
    assert len(crowd(text, size=6)) == 120


def test_unknown_methods_are_an_error_that_proposes_one():
    with pytest.raises(EngineError, match=r"no method 'sortd' .* did you mean 'sorted'"):
        crowd("PATTERN SEQ(A a, A b)", options={"method": "sortd"})
    with pytest.raises(EngineError, match="method 'sorted' does not support Kleene plus"):
        crowd("PATTERN SEQ(A+ a[], A b)", options={"method": "sorted"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PATTERN SEQ(A a, A b) WITHIN 3 EVENTS", "WITHIN n EVENTS"),
        ("PATTERN SEQ(A a, A b) WITHIN 3 OUTPUT NON-OVERLAP", "NON-OVERLAP"),
    ],
)
def test_what_imprecise_times_cannot_say_is_refused(text: str, why: str):
    table = pa.table({"type": ["A", "A"], "lower": [0, 1], "upper": [3, 4]})
    for engine in ("auto", "intervals", "points"):
        with pytest.raises((EngineError, QueryError), match=why):
            cepheid.match(table, text, engine=engine, **ROLES)
