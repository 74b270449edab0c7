"""A call of a live query happens whole or not at all, whatever breaks it off, and one at a time."""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
from hypothesis import event, given

import cepheid
from cepheid.flink import Pattern
from strategies.interrupted import sent_with_ctrl_c
from strategies.queries import streams

SOURCES = str(Path(cepheid.__file__).parent)
PAIR = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 6"
READ = PAIR + " RETURN a.id AS id, b.x AS x"
FLINK = Pattern.begin("a").where("type = 'A'").followed_by_any("b").where("type = 'B'").within(6)
QUERIES: dict[str, Any] = {
    "stacks": PAIR,
    "scans": "PATTERN SEQ(A a, !(C c), B b) WHERE skip_till_next_match(a, b) { [id] } WITHIN 6",
    "runs": "PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match(a, b[], c) { [id] } WITHIN 8",
    "keys": "PATTERN SEQ(A a, (B b | C c)) WHERE [id] WITHIN 6",
    "no keys": "PATTERN SEQ(A a, B b, !(C c)) WITHIN 4",
    "apart": "PATTERN SEQ(A a, B b) WITHIN 6 OUTPUT NON-OVERLAP",
    "totals": PAIR + " SUMMARISE count(*) AS n, sum(b.x) AS x EVERY 3",
    "apart by key": "PATTERN SEQ(A a, B+ b[]) WHERE [id] WITHIN 6 OUTPUT NON-OVERLAP",
    "several": {"pair": PAIR, "total": PAIR + " SUMMARISE count(*) AS n"},
    "reading": {"read": READ, "twice": "PATTERN SEQ(read a, read b) FROM read WHERE [id] WITHIN 9 OUTPUT NON-OVERLAP"},
    "partial": PAIR + " OUTPUT PARTIAL",
    "flink": FLINK,
    "rows": "MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.x AS x, B.ts AS b PATTERN (A B) WITHIN 6 "
    "DEFINE A AS type = 'A', B AS type = 'B')",
    "queues": "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 6 THRESHOLD 0.05",
    "forecasts": PAIR + " FORECAST 60%",
    "contiguous": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [id] } WITHIN 6",
    "row order": PAIR,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "queues": {"model": cepheid.Model(loss=0.2, gaps={each: cepheid.Exponential(mean=3) for each in "abc"})},
    "forecasts": {"model": cepheid.Model(gaps={"b": cepheid.Exponential(4, happens=0.9)})},
    "row order": {"tiebreak": "row"},
}


class Broken(BaseException):
    """What breaks a call off, as Ctrl-C does."""


@contextmanager
def broken_off(lines: int) -> Iterator[None]:
    """Breaks off what runs in this thread after so many lines of ours; lines of kernels do not count."""
    left = lines

    def trace(frame: FrameType, what: str, _: Any) -> Callable[..., Any] | None:
        nonlocal left
        name = frame.f_code.co_filename
        # Python looks for signals when something is called, so never between the lines that take and release the lock.
        if not name.startswith(SOURCES) or "kernels" in name or frame.f_code.co_name == "_alone":
            return None
        if what == "line":
            left -= 1
            if left < 0:
                raise Broken
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


def opened(name: str, table: pa.Table, delay: int = 0, state: bytes | None = None) -> Any:
    return cepheid.live(QUERIES[name], table.schema, delay=delay, state=state, **OPTIONS.get(name, {}))


def rows_of(tables: list[pa.Table]) -> list[str]:
    return sorted(repr(row) for table in tables for row in table.to_pylist())


def calls_of(data: Any, table: pa.Table) -> list[Callable[[Any], Any]]:
    """The table in pieces, and calls between them."""
    cuts = [0, *sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3))), len(table)]
    pieces = [table.slice(start, end - start) for start, end in pairwise(cuts)]
    calls: list[Callable[[Any], Any]] = [lambda live, piece=piece: live.send(piece) for piece in pieces]
    newest = max(table["ts"].to_pylist(), default=0)
    return [*calls, lambda live: live.advance(newest + 2), lambda live: live.finish()]


@pytest.mark.some(8)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("name", QUERIES)
@given(st.data(), streams(max_size=14, nans=False), st.integers(0, 200) | st.integers(0, 1500))
def test_a_call_that_is_broken_off_did_not_happen(name: str, data: Any, table: pa.Table, lines: int) -> None:
    table = table.append_column("event", pa.array(range(len(table)), pa.int64()))
    calls = calls_of(data, table)
    calm, live = opened(name, table), opened(name, table)
    expected = [call(calm) for call in calls]
    broken = data.draw(st.integers(0, len(calls) - 1))
    found = []
    for place, call in enumerate(calls):
        if place == broken:
            numbers = live.numbers
            try:
                with broken_off(lines):
                    found.append(call(live))
                event("done before")
                continue
            except Broken:
                assert live.numbers == numbers
            if data.draw(st.booleans()):
                live = opened(name, table, state=live.save())
        found.append(call(live))
    assert rows_of(found) == rows_of(expected)


@pytest.mark.some(3)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # it may come in a callback of Python's
@pytest.mark.parametrize("name", ["stacks", "runs", "keys", "apart by key", "totals", "reading", "flink"])
def test_a_signal_leaves_all_or_nothing(name: str) -> None:
    """Wherever Ctrl-C comes: if a call raised, the same again gives what it would have given."""
    size = 60
    table = pa.table({"ts": range(size), "type": list("ABC" * 20), "id": [0, 1] * 30, "x": range(size)})
    calm, live = opened(name, table), opened(name, table)
    pieces = [table.slice(start, 2) for start in range(0, size, 2)]
    expected = [calm.send(piece) for piece in pieces]
    found = sent_with_ctrl_c(live, pieces, Random(1), (1e-5, 2e-3))
    assert rows_of(found) == rows_of(expected)
    assert live.numbers.late == 0


def events_of(*kinds: str) -> list[dict[str, Any]]:
    return [{"ts": time, "type": kind, "id": 7} for time, kind in enumerate(kinds)]


SCHEMA = {"ts": int, "type": str, "id": int}


def test_a_function_that_fails_once_loses_nothing() -> None:
    fails = [True]

    @cepheid.function(name="fails_once", result=bool)
    def fails_once(value: int) -> bool:
        if fails and value == 1:
            fails.clear()
            raise RuntimeError("for once")
        return True

    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] AND fails_once(b.ts) WITHIN 9", SCHEMA)
    with pytest.raises(RuntimeError, match="for once"):
        live.send(events_of("A", "B", "C"))
    assert (live.numbers.events, live.numbers.retained, live.numbers.watermark) == (0, 0, None)
    assert len(live.send(events_of("A", "B", "C"))) == 1
    assert live.numbers.late == 0


def test_a_function_that_fails_as_time_passes_or_ends_loses_nothing() -> None:
    fails = [True]

    @cepheid.function(name="fails_for_once", result=bool)
    def fails_for_once(value: int) -> bool:
        if fails:
            fails.clear()
            raise RuntimeError("for once")
        return True

    calls: list[Callable[[Any], Any]] = [lambda live: live.advance(5), lambda live: live.finish()]
    for call in calls:
        # Of two events: a condition on one of them is evaluated when that is sent.
        live = cepheid.live("PATTERN SEQ(A a, B b) WHERE fails_for_once(a.ts + b.ts) WITHIN 9", SCHEMA, delay=5)
        fails.clear()
        live.send(events_of("A", "B"))
        fails.append(True)
        with pytest.raises(RuntimeError, match="for once"):
            call(live)
        assert len(call(live)) == 1


def test_an_event_for_which_a_function_always_fails_keeps_no_other_out() -> None:
    @cepheid.function(name="fails_for_one", result=bool)
    def fails_for_one(value: int) -> bool:
        if value == 1:
            raise RuntimeError("for one")
        return True

    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] AND fails_for_one(b.ts) WITHIN 9", SCHEMA)
    first, bad, *others = events_of("A", "B", "B", "B", "C")
    assert live.send(first) == []
    with pytest.raises(RuntimeError, match="for one"):
        live.send(bad)
    found = [match for event in others for match in live.send(event)] + live.finish()
    assert [match["match_end"] for match in found] == [2, 3]


def test_one_bad_event_keeps_the_others_out_until_they_come_without_it() -> None:
    for query in (PAIR, FLINK):
        live = cepheid.live(query, SCHEMA)
        good = events_of("A", "B", "C")
        for bad in ({"ts": 1, "type": "B", "id": 1.5}, {"ts": None, "type": "B"}, {"ts": 1, "typ": "B"}, 7):
            with pytest.raises(cepheid.DataError):
                live.send([good[0], bad, *good[1:]])
            assert (live.numbers.events, live.numbers.retained) == (0, 0)
        assert len(live.send(good)) == 1
        assert live.numbers.late == 0


def test_a_source_that_fails_leaves_what_it_sent() -> None:
    async def source(kinds: str, begin: int, fails: bool) -> AsyncIterator[dict[str, Any]]:
        for time, kind in enumerate(kinds, begin):
            yield {"ts": time, "type": kind, "id": 7}
        if fails:
            raise ConnectionError("gone")

    found: list[Any] = []

    async def collect(live: Any, *sent: Any) -> None:
        async for matches in live.matches(source(*sent), finish=True):
            found.extend(matches)

    for query in (PAIR, FLINK):
        live = cepheid.live(query, SCHEMA)
        with pytest.raises(ConnectionError, match="gone"):
            asyncio.run(collect(live, "AB", 0, True))
        asyncio.run(collect(live, "CAB", 2, False))
        assert live.numbers.late == 0
    assert len(found) == 6


def test_a_limit_that_is_reached_loses_nothing() -> None:
    live = cepheid.live("PATTERN SEQ(A a, B b) WITHIN 90", SCHEMA, max_matches=3)
    live.send(events_of("A", "A", "A", "A"))
    with pytest.raises(cepheid.LimitError):
        live.send([{"ts": 10, "type": "B"}, {"ts": 11, "type": "C"}])
    assert live.numbers.matches == 0
    more = cepheid.live("PATTERN SEQ(A a, B b) WITHIN 90", SCHEMA, state=live.save())
    assert len(more.send([{"ts": 10, "type": "B"}, {"ts": 11, "type": "C"}])) == 4


def test_who_gets_late_events_may_fail_and_may_not_send() -> None:
    live = cepheid.live(PAIR, SCHEMA)
    live.send(events_of("A", "B", "C"))

    def refuse(table: pa.Table) -> None:
        raise OSError("no room")

    live.on_late = refuse
    late = [{"ts": 0, "type": "A", "id": 7}, {"ts": 9, "type": "B", "id": 7}]
    with pytest.raises(OSError, match="no room"):
        live.send(late)
    assert (live.numbers.late, live.numbers.events) == (0, 3)
    live.on_late = lambda table: live.send({"ts": 20, "type": "A"})
    with pytest.raises(cepheid.CepheidError, match="during another call"):
        live.send(late)
    got: list[pa.Table] = []
    live.on_late = got.append
    live.send(late)
    assert [table["ts"].to_pylist() for table in got] == [[0]]
    assert live.numbers.late == 1


@pytest.mark.some(3)
@pytest.mark.parametrize("name", ["stacks", "runs", "several", "totals", "flink", "rows"])
@pytest.mark.parametrize("as_table", [False, True])
def test_a_signal_handler_that_calls_it_gets_an_error(name: str, as_table: bool) -> None:
    table = pa.table({"ts": range(60), "type": ["A", "B", "C"] * 20, "id": [0] * 60, "x": range(60)})
    live, quiet = opened(name, table), opened(name, table)
    told: list[str] = []

    def save(*_: Any) -> None:
        try:
            live.save()
        except cepheid.CepheidError as error:
            told.append(str(error))

    def trace(frame: FrameType, what: str, _: Any) -> None:
        if frame.f_code.co_filename.startswith(SOURCES) and "kernels" not in frame.f_code.co_filename:
            signal.raise_signal(signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, save)
    try:
        for row in range(len(table)):
            event = table.slice(row, 1) if as_table else table.slice(row, 1).to_pylist()[0]
            sys.setprofile(trace if row % 10 == 9 else None)
            try:
                found = live.send(event)
            finally:
                sys.setprofile(None)
            assert found == quiet.send(event)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert told or not as_table
    assert all("during another call" in each for each in told)
    assert live.finish() == quiet.finish()


@pytest.mark.some(2)
@pytest.mark.parametrize("name", ["stacks", "runs", "keys", "several", "flink"])
def test_threads_take_turns(name: str) -> None:
    kinds = pa.array((["A", "B", "C"] * 100)[:240])
    table = pa.table({"ts": range(240), "type": kinds, "id": [0] * 240, "x": range(240)})
    live = opened(name, table, delay=1000)
    found: list[pa.Table] = []
    started = threading.Barrier(4)

    def send(first: int) -> None:
        started.wait()
        for row in range(first, len(table), 4):
            found.append(live.send(table.slice(row, 1)))

    threads = [threading.Thread(target=send, args=(first,)) for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found.append(live.finish())
    assert live.numbers.events == 240
    alone = opened(name, table, delay=1000)
    assert rows_of(found) == rows_of([alone.send(table), alone.finish()])


def test_a_dict_that_waits_can_be_used_again_and_is_counted() -> None:
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9", SCHEMA)
    used: dict[str, Any] = {}
    found = []
    for each in events_of(*"ACBCC"):
        used.clear()
        used |= each
        found += live.send(used)
    assert [(row["a"]["ts"], row["b"]["ts"]) for row in found] == [(0, 2)]
    assert live.numbers.events == 5
    assert live.numbers.watermark == 3
    assert live.numbers.retained == 2


def test_what_is_wrong_with_a_single_event_is_told_at_once() -> None:
    live = cepheid.live("PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9", SCHEMA)
    live.send({"ts": 3, "type": "A", "id": 7})
    for wrong in ({"ts": 4, "type": "C", "id": 1.5}, {"ts": 4, "type": "C", "idd": 1}, {"ts": None, "type": "C"}):
        with pytest.raises(cepheid.DataError):
            live.send(wrong)
    late: list[pa.Table] = []
    live.on_late = late.append
    live.send({"ts": 5, "type": "C", "id": 7})
    live.send({"ts": 3, "type": "C", "id": 7})
    assert [table.num_rows for table in late] == [1]
    assert live.send({"ts": 6, "type": "B", "id": 7}) == []
    assert len(live.send({"ts": 7, "type": "C", "id": 7})) == 1
