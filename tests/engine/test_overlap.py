"""OUTPUT NON-OVERLAP in fast engines against the reference, whole and cut, with and without what was carried on."""

from __future__ import annotations

import dataclasses
import itertools
import warnings

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import ENGINES, find, last_ends
from cepheid.engine.output.overlap import _rank
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to, everything
from strategies.queries import queries, streams

APART = s.Output(s.OutputMode.NON_OVERLAP)


def apart(query: s.QuerySyntax) -> s.QuerySyntax:
    """The same query with OUTPUT NON-OVERLAP."""
    return dataclasses.replace(query, output=APART)


@given(queries(returns=False, output=False).map(apart), streams(), st.sampled_from(["runs", "sequence", "lazy-tree"]))
def test_it_agrees_with_the_reference(query: s.QuerySyntax, events: pa.Table, engine: str) -> None:
    bound = bound_to(query, events)
    engine = engine if ENGINES[engine].refuses(bound) is None else "runs"
    table = ordered(events, bound.schema)
    plan = Plan(bound, engine, partition=bound.equivalence)
    assert by_content(table, find(plan, table)) == by_content(table, find(Plan(bound, "reference"), table))


def by_content(table: EventTable, matches: Matches) -> list[str]:
    """Matches by what their events hold: of two equal concurrent events, either may be reported."""
    rows = table.table.to_pylist()
    found = [([[rows[row] for row in group] for group in groups], known) for groups, known in everything(matches)]
    return sorted(map(repr, found))


@given(queries(returns=False, output=False).map(apart), streams(), st.lists(st.integers(-5, 40), max_size=4))
def test_it_can_be_cut_anywhere(query: s.QuerySyntax, events: pa.Table, cuts: list[int]) -> None:
    bound = bound_to(query, events)
    table = ordered(events, bound.schema)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    whole = everything(find(plan, table))
    edges: list[int | None] = [None, *sorted(set(cuts)), None]
    carried: dict[tuple[object, ...], tuple[object, ...]] = {}
    alone, together = [], []
    for after, until in itertools.pairwise(edges):
        alone += everything(find(plan, table, after, until))
        found = find(plan, table, after, until, carried)
        carried |= last_ends(plan, table, found)
        together += everything(found)
    assert sorted(alone) == whole
    assert sorted(together) == whole


def test_the_shortest_wins_and_then_the_next_one_may_start() -> None:
    events = pa.table({"ts": [1, 2, 3, 4, 5], "type": list("AABAB"), "id": [1] * 5})
    text = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9 OUTPUT NON-OVERLAP"
    found = cepheid.match(events, text).to_pylist()
    assert [(match["match_start"], match["match_end"]) for match in found] == [(2, 3), (4, 5)]


def test_pruning_goes_on_from_what_was_carried() -> None:
    """30 A have 2**30 matches with the B behind them: found in pieces, only the reported ones may be built."""
    kinds = ["A"] * 30 + ["B"] + ["A"] * 8 + ["B"]
    events = pa.table({"ts": range(len(kinds)), "type": kinds})
    query = check(parse("PATTERN SEQ(A+ a[], B b) WITHIN 100 OUTPUT NON-OVERLAP"))
    bound = bound_to(query, events)
    table = ordered(events, bound.schema)
    plan = Plan(bound, "runs")
    carried: dict[tuple[object, ...], tuple[object, ...]] = {}
    together = []
    for after, until in itertools.pairwise([None, 14, 35, None]):
        found = find(plan, table, after, until, carried)
        carried |= last_ends(plan, table, found)
        together += everything(found)
    assert together == everything(find(plan, table))
    assert [groups for groups, _ in together] == [((29,), (30,)), ((38,), (39,))]


@pytest.mark.parametrize("engine", ["runs", "sequence", "reference"])
def test_of_matches_that_begin_at_one_time_the_order_of_values_decides(engine: str) -> None:
    for values, expected in (([1, 2, 3], 1), ([2, 1, 3], 1), ([3, 2, 1], 1), ([2, 3, 2], 2)):
        events = pa.table({"ts": [0, 5, 5, 5, 6], "type": list("AAAAB"), "x": [0, *values, 9]})
        query = "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON-OVERLAP"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cepheid.TiesWarning)
            found = cepheid.match(events, query, engine=engine).to_pylist()
        assert [match["a"]["x"] for match in found] == [expected]


@pytest.mark.parametrize("engine", ["runs", "sequence", "reference"])
def test_in_the_order_of_values_nan_is_null(engine: str) -> None:
    nan = float("nan")
    for values, expected in (([1.0, nan], nan), ([nan, 1.0], nan), ([nan, nan, 1.0], nan), ([2.0, 1.0], 1.0)):
        events = pa.table({"ts": [0] + [1] * len(values), "type": ["A"] + ["B"] * len(values), "x": [0.0, *values]})
        query = "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON-OVERLAP"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cepheid.TiesWarning)
            found = cepheid.match(events, query, engine=engine).to_pylist()
        assert [repr(match["b"]["x"]) for match in found] == [repr(expected)]


def test_what_began_before_the_carried_end_does_not_hinder_what_began_after_it() -> None:
    events = pa.table({"ts": [4, 7, 8, 9], "type": list("AABB"), "x": [1, 2, 1, 2]})
    bound = bound_to(check(parse("PATTERN SEQ(A a, B b) WHERE a.x = b.x WITHIN 10 OUTPUT NON-OVERLAP")), events)
    found = find(Plan(bound, "runs"), ordered(events, bound.schema), 5, None, {(): (5,)})
    assert [groups for groups, _ in everything(found)] == [((1,), (3,))]


def test_where_a_carried_end_lies_among_events_of_its_time() -> None:
    events = pa.table({"ts": [1, 2, 2, 2, 3], "type": ["A"] * 5, "seq": range(5)})
    bound = bound_to(check(parse("PATTERN SEQ(A a, A b) WITHIN 9")), events, tiebreak=("seq",))
    table = ordered(events, bound.schema)
    keys = [(0, 9), (1, 0), (2, 0), (2, 1), (2, 2), (2, 9), (3, 0), (3, 4)]
    assert [_rank(bound, table, key) for key in keys] == [-1, 0, 0, 1, 2, 3, 3, 4]


@given(
    queries(returns=False, output=False, strategy=s.Strategy.SKIP_TILL_ANY, negation=False).map(apart),
    streams(),
    st.lists(st.integers(-5, 40), max_size=4),
)
def test_pruning_finds_the_same_wherever_time_is_cut(query: s.QuerySyntax, events: pa.Table, cuts: list[int]) -> None:
    test_it_can_be_cut_anywhere.hypothesis.inner_test(query, events, cuts)


@pytest.mark.parametrize("kinds", ["A" * 30 + "B" * 30 + "C" * 30, "ABC" * 45])
def test_many_overlapping_sequences_are_not_listed_to_choose_few(kinds: str) -> None:
    """More combinations than are compared: the engine of runs, which ends them with the first match, finds the same."""
    events = pa.table({"ts": range(len(kinds)), "type": list(kinds)})
    text = "PATTERN SEQ(A a, B b, C c) OUTPUT NON-OVERLAP"
    found = cepheid.match(events, text, engine="sequence")
    assert found == cepheid.match(events, text, engine="runs")
    assert found.num_rows == kinds.count("CA") + 1


@pytest.mark.parametrize("options", [{}, {"merge": False}])
def test_matches_of_an_instant_compete_even_if_room_for_runs_is_made_in_between(options: dict[str, bool]) -> None:
    """128 runs become 256 and 128 matches with one event; a run that overlaps them must not end later ones."""
    rows = [("A", 0, 0), ("B", 1, 0)] * 5 + [("A", 0, 1)] + [("B", 0, 1)] * 7 + [("B", 1, 1)]
    rows += [("A", 0, 2), ("B", 1, 1), ("B", 1, 2)]
    kinds, x, keys = (list(column) for column in zip(*rows, strict=True))
    events = pa.table({"ts": range(len(rows)), "type": kinds, "x": x, "id": keys})
    text = "PATTERN SEQ(A a, B+ b[]) WHERE b[b.LEN].x = 1 AND b[b.LEN].id = a.id WITHIN 100 OUTPUT NON-OVERLAP"
    found = cepheid.match(events, text, engine="runs", **options)
    assert found.column("match_start").to_pylist() == [0, 2, 4, 6, 8, 10, 19]
