"""Searches that go on where they stopped find what a batch finds: cut, dropped, saved and restored anywhere.

Call by call they tell what the long way tells, which reads every event as a table and looks at no short cut.
"""

from __future__ import annotations

import itertools
import random
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import given

import cepheid
from cepheid.engine.incremental import by_runs, by_stacks, linking, own_sides, queries, side_by_side, stepping
from cepheid.engine.incremental.arrow_memory import Exported
from cepheid.engine.incremental.arrow_rows import TypeNumbers
from cepheid.engine.incremental.queries import refusal
from cepheid.engine.kernels.compile import COMPILES
from cepheid.runners.stream import carrying, incremental_shard
from cepheid.runners.stream.event_log import EventLog
from contract.steps import in_batches

SHAPES = {
    "any match": "PATTERN SEQ(A a, B b, C c) WHERE [id] AND a.x <= b.x WITHIN 7",
    "one type": "PATTERN SEQ(A a, A b) WHERE [id] AND a.x < b.x WITHIN 5",
    "conditions on one": "PATTERN SEQ(A a, B b) WHERE [id] AND a.x > 0 AND b.y < 1.5 WITHIN 6",
    "any type": "PATTERN SEQ(A a, C c) WHERE [id, k] AND a.x IS NOT NULL WITHIN 6",
    "next match": "PATTERN SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) { [id] AND a.x <= c.x } WITHIN 7",
    "negation": "PATTERN SEQ(A a, !(C c), B b) WHERE [id] AND c.x > a.x WITHIN 6",
    "negation first": "PATTERN SEQ(!(C c), A a, B b) WHERE [id] WITHIN 4",
    "group": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] AND b[i].x >= a.x } WITHIN 8",
    "first of a group": "PATTERN SEQ(A a, B+ b[]) WHERE skip_till_next_match(a, b[]) { [id] AND b[1].x > 0 } WITHIN 8",
    "any group": "PATTERN SEQ(A a, B+ b[]) WHERE [id] AND avg(b[].x) > 0 WITHIN 5",
    "partition contiguity": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [id] } WITHIN 6",
    "strict contiguity": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { a.x <= b.x } WITHIN 6",
    "optional part": "PATTERN SEQ(A a, B? b, C c) WHERE [id] WITHIN 6",
    "alternatives": "PATTERN SEQ(A a, (B b | C c)) WHERE [id] WITHIN 6",
    "optional end": "PATTERN SEQ(A a, B b, C? c) WHERE [id] WITHIN 6",
    "any order": "PATTERN AND(A a, B b) WHERE [id] WITHIN 5",
    "no key": "PATTERN SEQ(A a, B b, C c) WHERE a.x <= b.x AND b.y <= c.y WITHIN 5",
    "count window": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 4 EVENTS",
    "count window, no key": "PATTERN SEQ(A a, B b) WHERE a.x < b.x WITHIN 5 EVENTS",
    "returned": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5 RETURN a.x + b.x AS total, b.k AS k",
    "next match, no key": "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) { a.x <= b.x } WITHIN 6",
    "negation last": "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] AND c.x > a.x WITHIN 5",
    "negation last, no key": "PATTERN SEQ(A a, !(B b)) WITHIN 4",
    "negation first and last": "PATTERN SEQ(!(C c), A a, B b, !(C d)) WHERE [id] WITHIN 4",
    "negation behind a group": "PATTERN SEQ(A a, B+ b[], !(C c)) WHERE skip_till_next_match(a, b[]) { [id] } WITHIN 5",
    "negation behind an optional part": "PATTERN SEQ(A a, B? b, !(C c)) WHERE [id] WITHIN 5",
    "until": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1, C c) WHERE skip_till_next_match(a, b[], c) { [id] } WITHIN 8",
    "until, contiguity": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1) WHERE partition_contiguity(a, b[]) { [id] } WITHIN 8",
    "strict contiguity and a key": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [id] } WITHIN 6",
    "until a type": "PATTERN SEQ(A a, B+ b[] UNTIL b.type = 'C') WHERE skip_till_next_match(a, b[]) { [id] } WITHIN 8",
    "until, any match": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1 AND b.y < 2) WHERE [id] AND b[i].x >= a.x WITHIN 6",
    "until, no key": "PATTERN SEQ(B+ b[] UNTIL b.x > 1, C c) WHERE skip_till_next_match(b[], c) { } WITHIN 5",
    "until, counted": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > 1) WHERE skip_till_next_match(a, b[]) { [id] } "
    "WITHIN 5 EVENTS",
    "until, by what was taken": "PATTERN SEQ(A a, B+ b[] UNTIL b.x > a.x, C c) "
    "WHERE skip_till_next_match(a, b[], c) { [id] } WITHIN 8",
    "until, two groups": "PATTERN SEQ(A+ a[] UNTIL a.x > 1, B+ b[] UNTIL b.type = 'A') "
    "WHERE skip_till_next_match(a[], b[]) { [id] } WITHIN 7",
    "strict contiguity of three": "PATTERN SEQ(A a, B b, C c) WHERE strict_contiguity(a, b, c) { [id] } WITHIN 8",
    "strict group": "PATTERN SEQ(A a, B+ b[]) WHERE strict_contiguity(a, b[]) { [id] AND b[i].x >= a.x } WITHIN 6",
}
PAIR = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"
# Of the matches that are found, some are reported, or all of them count.
OUTPUTS = {
    "non-overlap": PAIR + " OUTPUT NON-OVERLAP",
    "non-overlap, three": "PATTERN SEQ(A a, B b, C c) WHERE [id, k] AND a.x <= c.x WITHIN 7 OUTPUT NON-OVERLAP",
    "non-overlap, group": "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 6 OUTPUT NON-OVERLAP",
    "non-overlap, next match": SHAPES["group"] + " OUTPUT NON-OVERLAP",
    "non-overlap, optional end": SHAPES["optional end"] + " OUTPUT NON-OVERLAP",
    "non-overlap, any order": "PATTERN AND(A a, B b) WHERE [k] WITHIN 5 OUTPUT NON-OVERLAP",
    "non-overlap, no key": "PATTERN SEQ(A a, B b, C c) WITHIN 5 OUTPUT NON-OVERLAP RETURN a.x + b.x AS total, c.k AS k",
    "non-overlap, negation first": SHAPES["negation first"] + " OUTPUT NON-OVERLAP",
    "non-overlap, contiguity": SHAPES["partition contiguity"] + " OUTPUT NON-OVERLAP",
    "non-overlap, count window": SHAPES["count window"] + " OUTPUT NON-OVERLAP",
    "maximal, one event last": "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] WITHIN 5 OUTPUT MAXIMAL",
    "totals": PAIR + " SUMMARISE count(*) AS n, sum(b.x) AS total BY id EVERY 4",
    "totals of texts": "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 5 SUMMARISE count(*) AS n, min(b.k) AS least",
    "totals of all": "PATTERN SEQ(A a, B b) WITHIN 4 SUMMARISE count(*) AS n, sum(a.x) AS total, max(b.x) AS most",
    "totals, negation last": SHAPES["negation last"] + " SUMMARISE count(*) AS n, max(a.x) AS most EVERY 2",
    "totals of alternatives": SHAPES["alternatives"] + " SUMMARISE count(*) AS n BY id",
    "totals, contiguity": SHAPES["partition contiguity"] + " SUMMARISE count(*) AS n, count(b.x) AS known EVERY 3",
    "totals, count window": SHAPES["count window"] + " SUMMARISE count(*) AS n EVERY 5",
    "totals without overlaps": PAIR + " OUTPUT NON-OVERLAP SUMMARISE count(*) AS n, sum(a.x) AS total EVERY 4",
    "totals of the largest": "PATTERN SEQ(A a, B+ b[], C c) WHERE [id] WITHIN 6 OUTPUT MAXIMAL SUMMARISE count(b) AS n",
}
# Queries of which a table of the events of a key is searched, or of all events.
REPLAYED = {
    "texts": "PATTERN SEQ(A a, B b) WHERE [id] AND a.k < b.k WITHIN 5",
    "texts, negation last": "PATTERN SEQ(A a, !(B b)) WHERE [id] AND a.k < b.k WITHIN 5",
    "strict, counted": "PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [id] } WITHIN 3 EVENTS",
    "counted texts": "PATTERN SEQ(A a, B b) WHERE [id] AND a.k <= b.k WITHIN 3 EVENTS",
    "counted negation last": "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 3 EVENTS",
    "non-overlap, negation last": "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 5 OUTPUT NON-OVERLAP",
    "maximal, optional part": SHAPES["optional part"] + " OUTPUT MAXIMAL",
    "maximal": "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 5 OUTPUT MAXIMAL",
    "partial": "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5 OUTPUT PARTIAL",
    "two keys, one by one": "PATTERN SEQ(A a, B b) WHERE a.id = b.id AND a.k <> b.k WITHIN 5",
    "one event": "PATTERN A a WHERE a.x > 0",
    "non-overlap, texts": "PATTERN SEQ(A a, B b) WHERE [id] AND a.k < b.k WITHIN 5 OUTPUT NON-OVERLAP",
    "totals, texts": "PATTERN SEQ(A a, B b) WHERE [id] AND a.k < b.k WITHIN 5 SUMMARISE count(*) AS n EVERY 4",
}
EVERY = SHAPES | OUTPUTS | REPLAYED
SEVERAL = [shape for shape in EVERY if shape != "partial"]  # OUTPUT PARTIAL runs one query at a time
# What orders events of one time: nothing, columns (with NULL and equal values), or how they came; and limits.
OPTIONS: list[dict[str, Any]] = [
    {},
    {"tiebreak": "x"},
    {"tiebreak": "event"},
    {"tiebreak": ["x", "event"]},
    {"tiebreak": "row"},
    {"tiebreak": ["x", "row"]},
    {"tiebreak": "k"},
    {"timeout": 60.0},
]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Events in order of time, with NULL here and there."""
    row = st.tuples(
        st.integers(0, 2),
        st.sampled_from(["A", "A", "B", "B", "C", "Ä", None]),
        st.sampled_from([1, 1, 2, None]),
        st.sampled_from(["s", "t", "ü", None]),
        st.sampled_from([None, -1, 0, 1, 2]),
        st.sampled_from([None, 0.5, 1.0, 2.5]),
    )
    rows = draw(st.lists(row, min_size=draw(st.integers(0, 24)), max_size=30))
    now, times = 0, []
    for step, *_ in rows:
        now += step
        times.append(now)
    columns = list(zip(*rows, strict=True)) or [()] * 6
    kinds = [pa.string(), pa.int64(), pa.string(), pa.int64(), pa.float64()]
    names = ["type", "id", "k", "x", "y"]
    made = {name: pa.array(column, kind) for name, column, kind in zip(names, columns[1:], kinds, strict=True)}
    return pa.table({"ts": pa.array(times, pa.int64()), **made, "event": pa.array(range(len(rows)), pa.int64())})


def rows_of(found: Any) -> list[str]:
    rows = found.to_pylist() if isinstance(found, pa.Table) else found
    return sorted(map(repr, rows))


class Both:
    """A live query by the short way, and the same by the long one."""

    def __init__(self, queries: Any, schema: pa.Schema, options: Any, saved: bytes | None = None) -> None:
        self.arguments = queries, schema, options
        self.live = cepheid.live(queries, schema, state=saved, **options)
        self.long = cepheid.live(queries, schema, state=saved, **options)
        self.long._fast = None
        self.found: list[str] = []

    def call(self, call: Any) -> None:
        told = rows_of(call(self.live))
        assert told == rows_of(call(self.long))
        self.found += told

    def drop(self) -> None:
        """Makes all that the search knows again."""
        live = self.live
        live.resident.go_back(live._latest().held)
        live.resident._at = live._state.held

    def restored(self) -> Both:
        after = Both(*self.arguments, self.live.save())
        after.found = self.found
        return after


def draw_places(data: Any) -> None:
    """How soon a key keeps its search, how much room it has first, and how long a call searches at a time."""
    queries.FEW_EVENTS = data.draw(st.sampled_from([1, 3, 48]))
    queries.FEW = data.draw(st.sampled_from([1, 12]))
    queries.MOST_LISTED = data.draw(st.sampled_from([1, 3, 10_000]))  # else the events of keys are searched again
    carrying.FEW = data.draw(st.sampled_from([0, 64]))
    carrying.MOST_WAITING = data.draw(st.sampled_from([0, 2, 10_000]))
    own_sides.MOST_SIDES = data.draw(st.sampled_from([1, 1000]))
    own_sides.FIRST_RUNS, own_sides.FIRST_ENTRIES = data.draw(st.sampled_from([(2, 4), (64, 256)]))
    if not COMPILES:  # compiled kernels keep what they were compiled with
        by_runs.MOST_LOOKS = data.draw(st.sampled_from([4, 200_000]))
        by_stacks.BRIEF = data.draw(st.sampled_from([3.0, 1e6]))


def followed(data: Any, asked: Any, batches: list[pa.Table], delay: int, **options: Any) -> list[str]:
    """What is found in some pieces, sent in drawn ways."""
    both = Both(asked, batches[0].schema, {"delay": delay, **options})
    for batch in batches:
        match data.draw(st.integers(0, 7)):
            case 0:
                both = both.restored()
            case 1:
                both.drop()
            case 2:
                seen, same = both.live.numbers, both.long.numbers
                assert (seen.events, seen.matches, seen.watermark) == (same.events, same.matches, same.watermark)
                assert seen.ties == same.ties
        match data.draw(st.integers(0, 2)):
            case 0:
                both.call(lambda live, sent=batch: live.send(sent))
            case 1:
                listed = batch.to_pylist()
                both.call(lambda live, sent=listed: live.send(sent))
            case 2:
                for row in batch.to_pylist():
                    both.call(lambda live, sent=row: live.send(dict(sent)))
        if batch.num_rows and data.draw(st.integers(0, 5)) == 0:
            passed = max(batch["ts"].to_pylist()) - delay - 1
            both.call(lambda live, time=passed: live.advance(time))
    assert both.live.numbers.late == 0
    both.call(lambda live: live.finish())
    return both.found


@pytest.mark.parametrize("sent", [pa.Table.to_pylist, lambda table: table])
def test_a_bucket_is_reported_by_the_call_that_closes_it(sent: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """So many matches complete in one call that they are added up without a list of them."""
    monkeypatch.setattr(queries, "MOST_LISTED", 1)
    query = "PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 5 SUMMARISE count(*) AS n EVERY 2"
    events = pa.table({"ts": [5, 6, 7, 9, 20], "type": list("AAABA"), "id": [1] * 5})
    live = cepheid.live(query, events.schema)
    found = live.send(sent(events))
    rows = found.to_pylist() if isinstance(found, pa.Table) else found
    assert [(row["bucket"], int(row["n"])) for row in rows] == [(10, 2), (12, 1)]


@pytest.mark.some(35)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("shape", EVERY)
@given(st.data(), tables(), st.integers(0, 3))
def test_a_stream_cut_anywhere_finds_what_a_batch_finds(shape: str, data: Any, table: pa.Table, delay: int) -> None:
    incremental_shard.LEAST = data.draw(st.sampled_from([1, 4, 2000]))  # how soon it is looked what has expired
    draw_places(data)
    options = data.draw(st.sampled_from(OPTIONS))
    batches = in_batches(data.draw, table, delay, most=6)
    engine, came = "auto" if "totals" in shape else "reference", pa.concat_tables(batches)
    expected = cepheid.match(came, EVERY[shape], engine=engine, **options)
    assert sorted(followed(data, EVERY[shape], batches, delay, **options)) == rows_of(expected)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@given(st.data(), st.lists(st.sampled_from(SEVERAL), min_size=2, max_size=4, unique=True), tables())
def test_several_queries_find_what_a_batch_finds(data: Any, shapes: list[str], table: pa.Table) -> None:
    queries = {f"q{place}": EVERY[shape] for place, shape in enumerate(shapes)}
    options, delay = data.draw(st.sampled_from(OPTIONS)), data.draw(st.integers(0, 2))
    batches = in_batches(data.draw, table, delay, most=6)
    expected = cepheid.match(pa.concat_tables(batches), queries, **options)
    assert sorted(followed(data, queries, batches, delay, **options)) == rows_of(expected)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("key", ["", "WHERE [id] "])
def test_a_window_of_events_counts_those_that_a_tiebreak_puts_first(key: str) -> None:
    """By a column that kernels do not compare: the engine counts the events that precede another at one time."""
    rows = [(12, "A", 2.5), (12, "A", 1.0), (12, "B", 1.0), (17, "C", None), (17, "B", None), (17, "B", 1.0)]
    events = [{"ts": time, "type": kind, "id": 1, "y": y, "event": n} for n, (time, kind, y) in enumerate(rows)]
    schema = {"ts": int, "type": str, "id": int, "y": float, "event": int}
    live = cepheid.live(f"PATTERN SEQ(A a, B b) {key}WITHIN 2 EVENTS", schema, tiebreak="y")
    found = [match for event in events for match in live.send(event)] + live.finish()
    assert [(match["a"]["event"], match["b"]["event"]) for match in found] == [(0, 4)]


@pytest.mark.parametrize("shape", SHAPES | OUTPUTS)
def test_these_shapes_are_incremental(shape: str) -> None:
    schema = {"ts": int, "type": str, "id": int, "k": str, "x": int, "y": float}
    live = cepheid.live(EVERY[shape], schema)
    assert not live.resident.cores[0].form.replays
    assert live._fast is not None


def test_a_search_that_may_take_long_can_be_stopped_and_finds_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [{"ts": time, "type": "ABC"[time % 3], "id": 1, "x": time % 5} for time in range(60)]
    schema = {"ts": int, "type": str, "id": int, "x": int}
    for shape in ("any match", "group", "any group"):
        query = SHAPES[shape]
        found = []
        for brief in (linking.BRIEF, -1.0):
            monkeypatch.setattr(side_by_side, "BRIEF", brief)
            monkeypatch.setattr(side_by_side, "FEW", int(brief))
            live = cepheid.live(query, schema)
            found.append([live.send(event) for event in events] + [live.finish()])
        assert found[0] == found[1]
        assert sum(map(len, found[0])) > 10


@pytest.mark.some(16)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_key_with_many_events_keeps_its_search(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that comes later is searched with what came since, and not with all that the window holds."""
    draws = random.Random(shape)
    events = [
        {"ts": time, "type": draws.choice("ABC"), "id": 1, "k": "s", "x": draws.randrange(3), "y": draws.random()}
        for time in range(150)
    ]
    schema = {"ts": int, "type": str, "id": int, "k": str, "x": int, "y": float}
    kept, anew = [], []
    for few, found in ((1, kept), (10_000, anew)):
        monkeypatch.setattr(queries, "FEW_EVENTS", few)
        monkeypatch.setattr(queries, "FEW", few)
        monkeypatch.setattr(own_sides, "FIRST_RUNS", 4)
        monkeypatch.setattr(incremental_shard, "LEAST", 2000)
        live = cepheid.live(SHAPES[shape], schema)
        for event in events:
            found += live.send(event)
        (core,) = live.resident.cores
        later = "negation last" in shape or "negation behind" in shape or "and last" in shape
        assert (core.head[linking.SIDES] > 1) == (few == 1 and not later)
        found += live.finish()
    assert rows_of(kept) == rows_of(anew)


@pytest.mark.skipif(COMPILES, reason="compiled kernels read the flag itself")
@pytest.mark.parametrize("few", [1, 10_000])
@pytest.mark.parametrize("shape", ["any match", "next match", "group"])
def test_a_search_that_is_stopped_begins_again(shape: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another thread's search is stopped, and this one with it: what it has found until then is not reported twice."""
    monkeypatch.setattr(queries, "FEW_EVENTS", few)
    events = [{"ts": time, "type": "ABC"[time % 3], "id": 1, "x": time % 5} for time in range(40)]
    found = []
    for stopped in (False, True):
        flags = itertools.cycle([1, 0, 0] if stopped else [0])
        monkeypatch.setattr(stepping, "stop_flag", lambda flags=flags: next(flags))
        live = cepheid.live(SHAPES[shape], {"ts": int, "type": str, "id": int, "x": int})
        found.append([live.send(event) for event in events] + [live.finish()])
    assert found[0] == found[1]


@pytest.mark.some(8)
@pytest.mark.parametrize("shape", [each for each in OUTPUTS if "negation last" not in each])
def test_many_matches_of_a_key_are_not_listed(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a step has more matches than may be listed, the events of the keys that are left are searched again."""
    draws = random.Random(shape)
    events = [
        {"ts": time, "type": draws.choice("ABC"), "id": time % 2, "k": "s", "x": draws.randrange(3), "y": 0.5}
        for time in range(120)
    ]
    schema = {"ts": int, "type": str, "id": int, "k": str, "x": int, "y": float}
    found, replayed, again = [], incremental_shard.Resident._replayed, 0

    def counted(*arguments: Any) -> Any:
        nonlocal again
        again += 1
        return replayed(*arguments)

    monkeypatch.setattr(incremental_shard, "LEAST", 20)
    monkeypatch.setattr(incremental_shard.Resident, "_replayed", counted)
    for most in (10_000, 0):
        monkeypatch.setattr(queries, "MOST_LISTED", most)
        again, live = 0, cepheid.live(EVERY[shape], schema)
        rows = [row for start in range(0, 120, 12) for row in live.send(events[start : start + 12])]
        found.append(rows_of(rows + live.finish()))
        assert (again > 0) == (most == 0)
    assert found[0] == found[1]


def test_types_are_told_apart_to_the_letter() -> None:
    names = ["A", "AB", "B", "", "Ä", "a" * 40]
    numbers = TypeNumbers(names, every=False, time=0, kind=1)
    sent = ["B", "X", "a" * 40, "", "Ä", "AB", "BA", "A", "a" * 39]
    batch = pa.record_batch({"ts": pa.array(range(10), pa.int64()), "type": pa.array(["-", *sent])}).slice(1)
    rows = numbers.found(numbers.rows(Exported(batch), len(batch)))
    assert [sent[row] for row in rows] == [name for name in sent if name in names]


def test_events_of_a_log_come_in_any_kind() -> None:
    schema = pa.schema([("ts", pa.int64())])
    log = EventLog(schema, lambda events: pa.Table.from_pylist(events, schema))
    log.add_events().append({"ts": 0})
    log.add_table(pa.table({"ts": range(10, 20)}), pa.array([1, 3]).to_numpy())
    mark = log.mark()
    log.add_events().append({"ts": 2})
    assert log.table()["ts"].to_pylist() == [0, 11, 13, 2]
    assert log.take(pa.array([3, 1, 0]).to_numpy())["ts"].to_pylist() == [2, 11, 0]
    assert [table["ts"].to_pylist() for table in log.tables(mark)] == [[0], [11, 13]]
    log.keep(pa.array([False, True, False, True]).to_numpy(zero_copy_only=False))
    assert log.table()["ts"].to_pylist() == [11, 2]
    assert [table["ts"].to_pylist() for table in log.tables(mark)] == [[0], [11, 13]]


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 4 EVENTS", "so many events"),
        ("PATTERN SEQ(A a, B b, !(C c)) WHERE [id] WITHIN 4 OUTPUT NON-OVERLAP", "windows have passed"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 4 OUTPUT MAXIMAL", "windows have passed"),
        ("PATTERN SEQ(A a, B b) WHERE strict_contiguity(a, b) { [id] } WITHIN 5 EVENTS", "all keys"),
        ("PATTERN SEQ(A a, B b) WHERE [id] AND a.k < b.k WITHIN 4", "texts"),
    ],
)
def test_it_is_said_why_a_query_is_searched_anew(query: str, why: str) -> None:
    schema = {"ts": int, "type": str, "id": int, "k": str}
    live = cepheid.live(query, schema)
    (plan,) = live.resident.step.plans
    told = refusal(plan, live.resident.schema)
    assert told is not None
    assert why in told


def test_a_live_query_explains_how_it_is_searched() -> None:
    schema = {"ts": int, "type": str, "k": int, "name": str}
    pair = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"
    assert "incremental: a call searches the keys" in cepheid.live(pair, schema).explain()
    late = cepheid.live("PATTERN SEQ(A a, !(B b)) WHERE [k] WITHIN 10", schema).explain()
    assert "incremental: a call searches the keys with a first event whose window has passed" in late
    apart = cepheid.live("PATTERN SEQ(A a, B+ b[]) WHERE [k] WITHIN 10 OUTPUT MAXIMAL", schema).explain()
    assert "replayed: every call searches again events that some component can take" in apart
    both = {"plain": pair, "texts": "PATTERN SEQ(A a, B b) WHERE a.name < b.name WITHIN 9"}
    plain, texts = cepheid.live(both, schema).explain().split("texts\n\n")
    assert "incremental: a call searches the keys" in plain
    assert "of the keys for which an event came that may end a match" in texts
    assert "because its conditions compare texts" in texts
    read = {**both, "above": "PATTERN SEQ(plain a, plain b) FROM plain WITHIN 20"}
    assert cepheid.live(read, schema).explain().count("incremental: a call searches the keys") == 2


def test_what_overlaps_the_last_match_hides_no_other_that_any_component_may_begin() -> None:
    rows = [(7, "A"), (8, "B"), (9, "A"), (9, "B"), (11, "A")]
    events = [{"ts": time, "type": kind, "event": n} for n, (time, kind) in enumerate(rows)]
    schema, text = {"ts": int, "type": str, "event": int}, "PATTERN AND(A a, B b) WITHIN 5 OUTPUT NON-OVERLAP"
    live = cepheid.live(text, schema, tiebreak="event")
    found = [match for event in events for match in live.send(event)] + live.finish()
    assert [(match["a"]["event"], match["b"]["event"]) for match in found] == [(0, 1), (2, 3)]
