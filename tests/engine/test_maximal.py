"""OUTPUT MAXIMAL: the same matches as the reference's, also where only closed groups are built."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
from hypothesis import event, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import Chosen, Matches
from cepheid.engine.data.table import ordered
from cepheid.engine.find import find
from cepheid.engine.kernels.stop import STOP
from cepheid.engine.output.closed import can_close
from cepheid.engine.output.maximal import CONTAINED, KEPT, OPEN, among_holders, largest, maximal
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan
from strategies.agreement import bound_to, everything
from strategies.queries import queries, streams

MAXIMAL = s.Output(s.OutputMode.MAXIMAL)


@given(
    queries(
        returns=False,
        output=False,
        strategy=s.Strategy.SKIP_TILL_ANY,
        aggregates=False,
        disjunction=False,
        wildcard=False,
        max_conditions=1,
        min_components=2,
    ).map(lambda query: dataclasses.replace(query, output=MAXIMAL)),
    streams(max_size=9, concurrent=False),
)
def test_it_agrees_with_the_reference(query: s.QuerySyntax, events: pa.Table) -> None:
    bound = bound_to(query, events)
    event("closed groups only" if can_close(bound) else "everything")
    table = ordered(events, bound.schema)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    assert everything(find(plan, table)) == everything(find(Plan(bound, "reference"), table))


def test_thirty_events_and_one_behind_them_are_one_match() -> None:
    kinds = ["A"] * 30 + ["B"]
    events = pa.table({"ts": range(31), "type": kinds})
    found = cepheid.match(events, "PATTERN SEQ(A+ a[], B b) OUTPUT MAXIMAL").to_pylist()
    assert [len(match["a"]) for match in found] == [30]


def test_a_window_that_ends_gives_one_match_for_each_end() -> None:
    kinds = ["A"] * 40 + ["B", "B"]
    events = pa.table({"ts": range(42), "type": kinds})
    found = cepheid.match(events, "PATTERN SEQ(A+ a[], B b) WITHIN 40 OUTPUT MAXIMAL").to_pylist()
    assert [(match["match_start"], match["match_end"], len(match["a"])) for match in found] == [
        (1, 40, 39),
        (2, 41, 38),
    ]


def test_it_can_be_cut_anywhere() -> None:
    events = pa.table({"ts": [1, 2, 6, 7, 11], "type": list("AABAB")})
    bound = bound_to(cepheid.query("PATTERN SEQ(A+ a[], B b) WITHIN 6 OUTPUT MAXIMAL").syntax, events)
    table, plan = ordered(events, bound.schema), Plan(bound, "runs")
    expected = [((0, 1), (2,)), ((3,), (4,))]
    for at in range(13):
        pieces = [everything(find(plan, table, *span)) for span in ((None, at), (at, None))]
        assert [[groups for groups, _ in piece] for piece in pieces] == [
            [groups for groups, known in zip(expected, (6, 11), strict=True) if (known > at) == later]
            for later in (False, True)
        ]


@given(
    st.lists(st.tuples(st.sets(st.integers(0, 7), min_size=1), st.sets(st.integers(8, 10))), min_size=2, max_size=90)
)
def test_no_kept_match_is_part_of_another(drawn: list[tuple[set[int], set[int]]]) -> None:
    """Many matches may hold one event, so that the index of all events decides; groups may be empty, or equal."""
    offsets = [np.cumsum([0, *(len(match[place]) for match in drawn)]) for place in range(2)]
    rows = [np.array([row for match in drawn for row in sorted(match[place])], np.int64) for place in range(2)]
    chosen = tuple(Chosen(rows[place], offsets[place]) for place in range(2))
    kept = maximal(Matches(chosen, np.arange(len(drawn)))).completion.tolist()

    def contained(small: int) -> bool:
        return any(
            all(one <= two for one, two in zip(drawn[small], large, strict=True)) and drawn[small] != large
            for large in drawn
        )

    assert kept == [match for match in range(len(drawn)) if not contained(match)]


def test_holders_of_the_event_that_fewest_hold() -> None:
    """All hold event 0 in the first place; in the second, 1 and 2 are held by two each, the last match among them."""
    rows, begins = np.array([0, 2, 0, 1, 0, 1, 2], np.int64), np.array([[0, 1, 2], [2, 3, 4], [4, 5, 7]], np.int64)
    found = largest(rows, begins, np.array([2, 0, 1]), 3, np.full(3, OPEN, np.int64))
    assert found.tolist() == [False, False, True]


def test_comparing_matches_is_stopped_where_the_flag_says_so() -> None:
    """There may be millions of them with thousands of events each: the kernels look at the flag at every match."""
    rows, begins = np.array([0, 1, 2, 0, 2], np.int64), np.array([[0, 1, 3], [3, 4, 5]], np.int64)
    by_size, judged = np.array([0, 1]), np.full(2, OPEN, np.int64)
    assert among_holders(rows, begins, by_size, 0, 3).tolist() == [KEPT, CONTAINED]
    assert largest(rows, begins, by_size, 3, judged).tolist() == [True, False]
    STOP[0] = 1
    try:
        assert among_holders.__wrapped__(rows, begins, by_size, 0, 3).tolist() == [OPEN, OPEN]  # type: ignore[attr-defined]
        assert largest.__wrapped__(rows, begins, by_size, 3, judged).tolist() == [True, True]  # type: ignore[attr-defined]
    finally:
        STOP[0] = 0
