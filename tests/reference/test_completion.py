"""When a match is known, and that `find` over the pieces of a cut is `find` over the whole: docs/semantics.md,
"When a match is known"."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cepheid.engine import reference
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.model import Exponential, Model
from cepheid.plan.physical import Plan
from reference.written_streams import found_between, named, planned, stream

MODEL = Model(loss=0.3, gaps={"b": Exponential(mean=2.0), "n": Exponential(mean=3.0)})
BOUNDS = {"lower": "lower", "upper": "upper"}


def known_at(text: str, query: str, **options: Any) -> dict[str, int]:
    plan, events = planned(stream(text), query, **options)
    found = found_between(plan, events)
    return dict(zip(named(events, found), found.completion.tolist(), strict=True))


def test_with_its_last_event() -> None:
    assert known_at("a1 b3 b5", "PATTERN SEQ(A a, B b)") == {"a1 b3": 3, "a1 b5": 5}


def test_with_a_negated_end_when_the_window_has_passed() -> None:
    assert known_at("a1 b3", "PATTERN SEQ(A a, B b, !(N n)) WITHIN 10") == {"a1 b3": 11}


def test_in_a_window_of_events_when_that_many_have_come() -> None:
    query = "PATTERN SEQ(A a, B b, !(N n)) WITHIN 3 EVENTS"
    assert known_at("a1 b3 x4 x6", query) == {"a1 b3": 6}
    assert known_at("a1 b3 x4", query) == {"a1 b3": NEVER}


def test_the_end_of_the_table_is_only_reached_without_a_limit() -> None:
    plan, events = planned(stream("a1 b3 x4"), "PATTERN SEQ(A a, B b, !(N n)) WITHIN 3 EVENTS")
    assert len(found_between(plan, events, until=NEVER - 1)) == 0
    assert len(found_between(plan, events)) == 1


def test_after_is_excluded_and_until_included() -> None:
    plan, events = planned(stream("a1 b3 b5"), "PATTERN SEQ(A a, B b)")
    assert named(events, found_between(plan, events, after=3, until=5)) == ["a1 b5"]
    assert named(events, found_between(plan, events, after=2, until=4)) == ["a1 b3"]


QUERIES: list[tuple[str, dict[str, Any]]] = [
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5", {}),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 5 OUTPUT NON-OVERLAP", {}),
    ("PATTERN SEQ(A a, !(N n), B b) WHERE strict_contiguity { }", {}),
    ("PATTERN SEQ(!(N n), A a, B b, !(N m)) WHERE [id] WITHIN 4", {}),
    ("PATTERN SEQ(A a, B b, !(N n)) WHERE [id] WITHIN 4 OUTPUT NON-OVERLAP", {}),
    ("PATTERN SEQ(A a, B b, !(N n)) WHERE [id] WITHIN 3 EVENTS OUTPUT NON-OVERLAP", {}),
    ("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [id] } WITHIN 5", {}),
    ("PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 5 OUTPUT MAXIMAL", {}),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 3 EVENTS", {}),
    ("PATTERN SEQ(A a, B b, !(N n)) WHERE [id] WITHIN 3 EVENTS", {}),
    ("PATTERN SEQ(A a, !(N n), B b) WHERE [id] WITHIN 5 THRESHOLD 0.05", {"model": MODEL}),
    ("PATTERN SEQ(A a, B b, !(N n)) WHERE [id] WITHIN 5 THRESHOLD 0.05", {"model": MODEL}),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 OUTPUT MAXIMAL", {"model": MODEL, "missing_last": True}),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 OUTPUT NON-OVERLAP", {"model": MODEL, "missing_last": True}),
]
IMPRECISE: list[tuple[str, dict[str, Any]]] = [
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4", BOUNDS),
    ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 4 CONFIDENCE 0.2", BOUNDS),
    ("PATTERN SEQ(A a, !(N n), B b) WHERE [id] WITHIN 4", BOUNDS),
    ("PATTERN SEQ(!(N n), A a, !(N m)) WHERE [id] WITHIN 3", BOUNDS),
    ("PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match { [id] } WITHIN 4", BOUNDS),
    ("PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 4 OUTPUT MAXIMAL", BOUNDS),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4 OUTPUT TOP 1 BY CONFIDENCE", BOUNDS),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4 THRESHOLD 0.05", BOUNDS | {"model": MODEL}),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4", BOUNDS | {"model": MODEL, "missing_last": True}),
    ("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4 OUTPUT MAXIMAL", BOUNDS | {"model": MODEL}),
]
EVENTS = st.lists(
    st.tuples(st.sampled_from("AABBNX"), st.integers(0, 12), st.integers(0, 2), st.integers(1, 2)), max_size=8
)


def details(events: EventTable, found: Matches) -> list[tuple[Any, ...]]:
    """Everything that a result says, to be compared to the last digit."""
    columns = [found.completion, found.probability, found.confidence, found.earliest, found.latest]
    lists = [column.tolist() if column is not None else [None] * len(found) for column in columns]
    return sorted(zip(named(events, found), *lists, strict=True), key=repr)


def seen_by(plan: Plan, table: pa.Table, until: int) -> EventTable:
    """The events that have arrived when time has passed `until`; with imprecise time, those that begin by then."""
    clock = table.column(plan.bound.schema.lower or "ts").to_pylist()
    return ordered(
        table.take(pa.array([n for n, time in enumerate(clock) if time <= until], pa.int64())), plan.bound.schema
    )


@pytest.mark.parametrize(("query", "options"), QUERIES + IMPRECISE)
@settings(max_examples=settings().max_examples // 2)
@given(EVENTS, st.lists(st.integers(-1, 20), max_size=4))
def test_pieces_of_a_cut_make_the_whole(
    query: str, options: dict[str, Any], drawn: list[tuple[str, int, int, int]], cuts: list[int]
) -> None:
    # The row that keeps the columns' types is of no partition that matters.
    tokens = [f"{kind.lower()}{t}'{n}[{t},{t + width}]:id={id}" for n, (kind, t, width, id) in enumerate(drawn)]
    table = stream(" ".join([*tokens, "x99[99,99]:id=0"]))
    plan, events = planned(table, query, **options)
    whole = details(events, found_between(plan, events))

    edges = sorted(cuts)
    pieces: list[tuple[Any, ...]] = []
    carried: list[tuple[Any, ...]] = []
    ended: dict[Any, Any] = {}
    low = None
    for high in [*edges, None]:
        limits = ({"after": low} if low is not None else {}) | ({"until": high} if high is not None else {})
        arrived = events if high is None else seen_by(plan, table, high)
        pieces += details(arrived, found_between(plan, arrived, **limits))
        piece = found_between(plan, arrived, **limits, ended=ended)
        carried += details(arrived, piece)
        ended |= reference.ends(plan, arrived, piece)
        low = high
    assert sorted(pieces, key=repr) == whole
    assert sorted(carried, key=repr) == whole


@pytest.mark.parametrize(("query", "options"), QUERIES + IMPRECISE)
def test_these_queries_find_something(query: str, options: dict[str, Any]) -> None:
    table = stream("a1[1,2]:id=1 x2[2,2]:id=2 b3[3,4]:id=1 b5[5,5]:id=1 a8[8,9]:id=2 b9[9,9]:id=2 x30[30,30]:id=0")
    assert known_at_table(table, query, options)


def known_at_table(table: pa.Table, query: str, options: dict[str, Any]) -> list[str]:
    plan, events = planned(table, query, **options)
    return named(events, found_between(plan, events))
