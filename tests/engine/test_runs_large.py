"""The run engine on streams so long that its pools grow and are tidied up: against what can be counted by hand."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import BEGINNING, find
from cepheid.engine.search import runs
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from strategies.agreement import everything

WINDOW = 25


def bound(text: str, events: pa.Table) -> tuple[BoundQuery, EventTable]:
    """A query over a table."""
    found = cepheid.query(text).bind(Schema.from_arrow(events.schema))
    return found, ordered(events, found.schema)


def letters(seed: int, length: int, share_of_b: float) -> pa.Table:
    """As and Bs at times that never stand still."""
    chance = random.Random(seed)
    kinds = ["B" if chance.random() < share_of_b else "A" for _ in range(length)]
    return pa.table({"ts": range(length), "type": kinds, "x": [chance.randint(0, 3) for _ in range(length)]})


def windows(events: pa.Table) -> Iterator[tuple[int, list[int]]]:
    """Each B with the As before it in its window."""
    kinds = events["type"].to_pylist()
    for end, kind in enumerate(kinds):
        if kind == "B":
            yield end, [at for at in range(max(0, end - WINDOW + 1), end) if kinds[at] == "A"]


def groups_of(matches: Matches) -> Counter[tuple[tuple[int, ...], int]]:
    """Each match as its As and its B."""
    return Counter((chosen[0], chosen[1][0]) for chosen in matches.groups())


@pytest.mark.parametrize("merge", [True, False])
def test_the_next_match_over_a_long_stream(merge: bool) -> None:
    events = letters(1, 1500, 0.05)
    text = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_next_match(a[], b) {{ }} WITHIN {WINDOW}"
    query, table = bound(text, events)
    expected = Counter((tuple(group[at:]), end) for end, group in windows(events) for at in range(len(group)))
    plan = Plan(query, "runs", options={"merge": merge})
    found = find(plan, table)
    assert groups_of(found) == expected
    assert found.counters["peak_buffered_events"] <= WINDOW
    assert found.counters["peak_partial_matches"] <= (1 if merge else WINDOW)
    packed = runs.find_compressed(plan, table, BEGINNING, NEVER)
    assert groups_of(packed.enumerate()) == expected
    assert runs.count(plan, table, BEGINNING, NEVER) == sum(expected.values())
    assert groups_of(find(Plan(query, "backtrack"), table)) == expected


def test_every_subset_over_a_long_stream_is_counted() -> None:
    events = letters(2, 1200, 0.04)
    text = f"PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) {{ }} WITHIN {WINDOW}"
    query, table = bound(text, events)
    expected = {end: 2 ** len(group) - 1 for end, group in windows(events) if group}
    plan = Plan(query, "runs")
    assert runs.count(plan, table, BEGINNING, NEVER) == sum(expected.values())
    packed = runs.find_compressed(plan, table, BEGINNING, NEVER)
    rows, counts = packed.counts()
    assert dict(zip(rows.tolist(), counts, strict=True)) == expected
    assert len(packed.entries) < 3 * len(events)
    some = groups_of(packed.enumerate(500))
    assert sum(some.values()) == len(some) == 500
    assert all(set(group) <= set(dict(windows(events))[end]) for group, end in some)


def test_more_matches_than_fit_64_bits_in_a_window_that_moves() -> None:
    length, window = 200, 90
    events = pa.table({"ts": range(length), "type": ["A"] * 149 + ["B"] * 51})
    query, table = bound(f"PATTERN SEQ(A+ a[], B b) WITHIN {window}", events)
    expected = sum(2 ** max(0, 149 - max(0, end - window + 1)) - 1 for end in range(149, length))
    assert runs.count(Plan(query, "runs"), table, BEGINNING, NEVER) == expected


@pytest.mark.parametrize("engine", ["runs", "backtrack"])
def test_many_runs_at_once(engine: str) -> None:
    waiting = 700
    events = pa.table(
        {"ts": range(waiting + 5), "type": ["A"] * waiting + ["B"] * 5, "x": [*range(waiting), 3, 690, 3, -1, 44]}
    )
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_any_match(a, b) { a.x = b.x }"
    query, table = bound(text, events)
    found = find(Plan(query, engine, options={"merge": False}), table)
    assert everything(found) == [(((at,), (end,)), end) for at, end in [(3, 700), (3, 702), (44, 704), (690, 701)]]
    assert found.counters["peak_partial_matches"] == (waiting if engine == "runs" else 1)


def test_as_many_as_the_sequence_engine_finds() -> None:
    chance = random.Random(5)
    events = pa.table(
        {
            "ts": sorted(chance.randint(0, 400) for _ in range(600)),
            "type": [chance.choice("ABCN") for _ in range(600)],
            "id": [chance.randint(1, 3) for _ in range(600)],
            "x": [chance.randint(0, 9) for _ in range(600)],
        }
    )
    text = "PATTERN SEQ(A a, B b, !(N n), C c) WHERE [id] AND a.x < c.x AND n.x > b.x WITHIN 40"
    query, table = bound(text, events)
    expected = everything(find(Plan(query, "sequence", partition=("id",)), table))
    assert len(expected) > 200
    for merge in (True, False):
        for split in (("id",), ()):
            compared = () if split else ("id",)
            plan = Plan(query, "runs", partition=split, compared=compared, options={"merge": merge})
            assert everything(find(plan, table)) == expected


def test_non_overlap_ends_runs_early() -> None:
    events = letters(7, 600, 0.5)
    text = "PATTERN SEQ(A+ a[], B b) WHERE skip_till_any_match(a[], b) { a[1].x = 0 } OUTPUT NON-OVERLAP"
    query, table = bound(text, events)
    found = find(Plan(query, "runs", options={"merge": False}), table)
    assert found.counters["peak_partial_matches"] < 2**12
    ended = -1
    expected = []
    rows = events.to_pylist()
    for end, event in enumerate(rows):
        if event["type"] == "B":
            starts = [at for at in range(ended + 1, end) if rows[at]["type"] == "A" and rows[at]["x"] == 0]
            if starts:
                expected.append((starts[-1], end))
                ended = end
    assert sorted((groups[0][0], groups[1][0]) for groups in found.groups()) == expected
