"""The engines for imprecise time find what enumerating all possible worlds finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.engines import intervals as supported
from cepheid.engine.find import find
from cepheid.engine.limits import MAX_BRANCHES
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to
from strategies.intervals import ROLES, assert_same, described, in_order, intervals, run
from strategies.queries import queries

STRATEGIES = tuple(s.Strategy)
SHORT = {"strategy": STRATEGIES, "event_window": False, "output": False, "returns": False, "max_window": 6}
SEQUENCES = queries(kleene=False, **SHORT)
CONFIDENT = queries(kleene=False, confidence=True, **SHORT)
GROUPS = queries(max_components=3, **SHORT)
METHODS = ("query-order", "any-state", "sorted", "selectivity")
SAME_TYPE = {"types": ("A", "B"), "ids": 1}  # so that one event fits several places


def agree(query: s.QuerySyntax, table: pa.Table, odds: bool, engine: str, **options: Any) -> None:
    bound = bound_to(query, table, **ROLES)
    assume(not bound.negations or len(bound.branches) <= MAX_BRANCHES)
    assert supported(bound, False, True) is None
    events = in_order(bound, table)
    options |= {"probabilities": "odds"} if odds else {}
    assert_same(run(bound, events, engine, **options), run(bound, events, "reference", **options))


@given(SEQUENCES, intervals() | intervals(**SAME_TYPE), st.booleans(), st.sampled_from(METHODS))
def test_every_method_agrees_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, odds: bool, method: str):
    agree(query, table, odds, "intervals", method=method)


@given(SEQUENCES, intervals() | intervals(**SAME_TYPE), st.booleans())
def test_points_agree_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, odds: bool):
    agree(query, table, odds, "points")


@given(GROUPS, intervals(max_size=5), st.booleans(), st.sampled_from(["intervals", "points"]))
def test_groups_agree_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, odds: bool, engine: str):
    agree(query, table, odds, engine)


@given(
    queries(kleene=False, **{**SHORT, "strategy": (s.Strategy.SKIP_TILL_NEXT,)}),
    intervals(**SAME_TYPE),
    st.booleans(),
    st.sampled_from([0.0, 0.01, 0.3]),
)
def test_a_tolerance_is_kept(query: s.QuerySyntax, table: pa.Table, odds: bool, tolerance: float):
    bound = bound_to(query, table, **ROLES)
    assume(not bound.negations or len(bound.branches) <= MAX_BRANCHES)
    events, options = in_order(bound, table), {"probabilities": "odds"} if odds else {}
    found = run(bound, events, "intervals", tolerance=tolerance, **options)
    one, other = described(found), described(run(bound, events, "reference", **options))
    assert one.keys() == other.keys()
    within = tolerance if found.counters["within_tolerance"] > 0 else 0.0
    for group, (*known, confidence) in one.items():
        assert tuple(known) == other[group][:3]
        assert abs(confidence - other[group][3]) < within + 1e-9


@pytest.mark.parametrize(
    ("components", "window", "more"),
    [
        (2, 30, ""),
        (3, 12, ""),
        (3, 30, "AND e1.x < e2.x"),
        (4, 20, ""),
        pytest.param(4, 60, "AND e2.x < e3.x", marks=pytest.mark.slow),
    ],
)
def test_crowds_agree_with_points(components: int, window: int, more: str):
    random, size = np.random.default_rng(components + window), 14 if components < 4 else 7
    ts, width = 3 * np.arange(size) + random.integers(-1, 2, size), random.integers(2, 5, size)
    table = pa.table({"type": ["E"] * size, "x": random.random(size), "lower": ts - width, "upper": ts + width})
    names = [f"e{place + 1}" for place in range(components)]
    pattern = ", ".join(f"E {name}" for name in names)
    text = f"PATTERN SEQ({pattern}) WHERE skip_till_next_match({', '.join(names)}) {more} WITHIN {window}"
    bound = bound_to(cepheid.query(text).syntax, table, **ROLES)
    events = in_order(bound, table)
    assert_same(run(bound, events, "intervals"), run(bound, events, "points"))


@given(CONFIDENT, intervals(), st.sampled_from((*METHODS, "points")))
def test_uncertain_matches_are_left_out(query: s.QuerySyntax, table: pa.Table, method: str):
    if method == "points":
        agree(query, table, False, "points")
    else:
        agree(query, table, False, "intervals", method=method)


@given(SEQUENCES, intervals(), st.integers(1, 3))
def test_coarser_instants_agree_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, unit: int):
    if query.within is not None and query.within.length % unit:
        return  # the window must be a whole number of units
    for engine in ("intervals", "points"):
        agree(query, table, False, engine, unit=unit)


@given(SEQUENCES, intervals(), st.booleans())
def test_equivalence_may_be_compared_instead_of_split(query: s.QuerySyntax, table: pa.Table, odds: bool):
    bound = bound_to(query, table, **ROLES)
    events = in_order(bound, table)
    options = {"probabilities": "odds"} if odds else {}
    plan = Plan(bound, "intervals", compared=bound.equivalence, options=options)
    assert_same(find(plan, events), run(bound, events, "reference", **options))


@given(queries(kleene=True, max_components=3, **SHORT), intervals(max_size=5))
def test_maximal_output_agrees_with_possible_worlds(query: s.QuerySyntax, table: pa.Table):
    from dataclasses import replace

    agree(replace(query, output=s.Output(s.OutputMode.MAXIMAL)), table, False, "intervals")


@given(SEQUENCES, intervals(), st.integers(1, 2))
def test_the_most_confident_agree_with_possible_worlds(query: s.QuerySyntax, table: pa.Table, count: int):
    from dataclasses import replace

    top = replace(query, output=s.Output(s.OutputMode.TOP, count))
    for engine in ("intervals", "points"):
        agree(top, table, False, engine)


@pytest.mark.parametrize("engine", ["reference", "intervals", "points"])
def test_a_condition_on_the_first_event_of_a_group_holds_for_it_alone(engine: str):
    table = pa.table({"type": ["A", "A"], "x": [0, 1], "lower": [0, 1], "upper": [2, 3]})
    bound = cepheid.query("PATTERN A+ a[] WHERE a[1].x = 0").bind(Schema.from_arrow(table.schema, **ROLES))
    found = described(run(bound, in_order(bound, table), engine))
    assert {group: values[3] for group, values in found.items()} == pytest.approx({((0,),): 1.0, ((0, 1),): 6 / 9})


# --- TIME's own example ---------------------------------------------------------------------------------------------

FIGURE_1 = pa.table(
    {"type": ["A", "C", "B", "C"], "lower": [1, 3, 3, 4], "upper": [5, 5, 5, 8]},
    pa.schema([("type", pa.string()), ("lower", pa.int64()), ("upper", pa.int64())]),
)


@pytest.mark.parametrize("engine", ["reference", "intervals", "points"])
@pytest.mark.parametrize(("strategy", "worlds"), [("any", (25, 27)), ("next", (24, 25))])
def test_the_papers_figure_1_by_its_definitions(engine: str, strategy: str, worlds: tuple[int, int]):
    text = f"PATTERN SEQ(A a, B b, C c) WHERE skip_till_{strategy}_match(a, b, c) {{ }} WITHIN 4"
    bound = cepheid.query(text).bind(Schema.from_arrow(FIGURE_1.schema, **ROLES))
    events = in_order(bound, FIGURE_1)
    found = {
        tuple(events.table["upper"][group[0]].as_py() for group in groups): (earliest, latest, confidence * 225)
        for groups, (_, earliest, latest, confidence) in described(run(bound, events, engine)).items()
    }
    assert found[5, 5, 5][:2] == (1, 5)
    assert found[5, 5, 8][:2] == (1, 7)
    assert (found[5, 5, 5][2], found[5, 5, 8][2]) == pytest.approx(worlds)


# --- the reference's own limits -------------------------------------------------------------------------------------


def test_the_engines_go_where_enumeration_cannot():
    size = 30
    table = pa.table({"type": ["A", "B"] * (size // 2), "lower": range(size), "upper": [t + 9 for t in range(size)]})
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { } WITHIN 8"
    bound = cepheid.query(text).bind(Schema.from_arrow(table.schema, **ROLES))
    events = in_order(bound, table)
    with pytest.raises(LimitError):
        run(bound, events, "reference")
    found = run(bound, events, "intervals")
    assert len(found) > 100
    assert_same(found, run(bound, events, "points"))
