"""Single dicts that a kernel reads: every kind of value, and what it leaves to the long way."""

from __future__ import annotations

import gc
import random
import signal
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError
from strategies.interrupted import sent_with_ctrl_c

QUERY = "PATTERN SEQ(A a, B b, C c) WHERE [k, name] AND a.x < c.x AND b.flag = TRUE WITHIN 200"
START = datetime(1969, 12, 1)


def stream(number: int, clock: Any) -> list[dict[str, Any]]:
    draw = random.Random(7)
    events, step = [], 0
    for _ in range(number):
        step += draw.choice([0, 1, 1, 1])
        event = {
            "ts": clock(step),
            "type": draw.choice(["A", "B", "C", "D", "Ä"]),
            "k": draw.choice([1, 1, 2**40, None]),
            "name": draw.choice(["ü", "ü", "x\0y"]),
            "x": draw.choice([0.5, 1.5, 1.5, 0.5, float("nan"), None]),
            "flag": draw.choice([True, True, False, None]),
        }
        for name in draw.sample(["k", "x", "flag"], draw.choice([0, 0, 1])):
            del event[name]  # as if it were NULL
        events.append(event)
    return events


CLOCKS: dict[str, tuple[Any, Any]] = {
    "numbers": (lambda step: step, pa.int64()),
    "times": (lambda step: START + timedelta(days=step, microseconds=123_456), pa.timestamp("us")),
    "in UTC": (lambda step: (START + timedelta(days=step)).replace(tzinfo=UTC), pa.timestamp("us", "UTC")),
    "in a zone": (
        lambda step: (START + timedelta(days=step)).replace(tzinfo=timezone(timedelta(hours=5))),
        pa.timestamp("us", "UTC"),
    ),
}
COLUMNS = [("type", pa.string()), ("k", pa.int64()), ("name", pa.string()), ("x", pa.float64()), ("flag", pa.bool_())]


@pytest.mark.some(3)
@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("delay", [0, 3])
def test_every_kind_of_value(clock: str, delay: int) -> None:
    of_step, kind = CLOCKS[clock]
    schema = pa.schema([("ts", kind), *COLUMNS])
    events = stream(600, of_step)
    query = QUERY if clock == "numbers" else f"{QUERY} days"
    live = cepheid.live(query, schema, delay=delay if clock == "numbers" else f"{delay} days")
    found = []
    for event in events:
        shown = dict(event)
        found += live.send(shown)
        shown.clear()  # a caller may use it again
    found += live.finish()
    expected = cepheid.match(pa.Table.from_pylist(events, schema), query).to_pylist()
    assert len(expected) > 5
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert live.numbers.events == len(events)


SCHEMA = {"ts": int, "type": str, "k": int, "x": float}
PAIR = "PATTERN SEQ(A a, B b) WHERE [k] WITHIN 10"


@pytest.mark.parametrize(
    "bad",
    [
        {"ts": 60, "type": "A", "k": 1, "y": 1.0},
        {"ts": 60, "type": "Z", "k": 1.5},
        {"ts": 60, "type": "Z", "k": 2**63},
        {"ts": 60, "type": 5, "k": 1},
        {"ts": None, "type": "A", "k": 1},
        {"type": "A", "k": 1},
    ],
)
def test_what_is_no_event_is_refused_and_changes_nothing(bad: dict[str, Any]) -> None:
    live = cepheid.live(PAIR, SCHEMA)
    for step in range(50):
        live.send({"ts": step, "type": "AZ"[step % 2], "k": step % 3, "x": 0.5})
    numbers = live.numbers
    for _ in range(2):
        with pytest.raises(CepheidError):
            live.send(bad)
        assert live.numbers == numbers
    live.send({"ts": 51, "type": "B", "k": 0, "x": 0.5})
    assert len(live.send({"ts": 53, "type": "Z", "k": 0})) == 2


GROUP = "PATTERN SEQ(A a, C? c, B+ b[]) WHERE skip_till_next_match(a, c, b[]) { [k] } WITHIN 10"
SHAPES: dict[str, Any] = {"sequence": PAIR, "group": GROUP, "several": {"pair": PAIR, "group": GROUP}}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers here")
@pytest.mark.parametrize("shape", SHAPES)
def test_an_event_that_ctrl_c_meets_comes_whole_or_not_at_all(shape: str) -> None:
    draw = random.Random(3)
    events = [{"ts": step, "type": draw.choice("ABCZZ"), "k": step % 2, "x": 0.5} for step in range(100)]
    calm, live = cepheid.live(SHAPES[shape], SCHEMA), cepheid.live(SHAPES[shape], SCHEMA)
    expected = [row for event in events for row in calm.send(event)]
    found = [row for rows in sent_with_ctrl_c(live, events, draw, (1e-6, 2e-5)) for row in rows]
    assert expected
    assert sorted(map(repr, found)) == sorted(map(repr, expected))
    assert (live.numbers.events, live.numbers.matches) == (len(events), len(expected))


@pytest.mark.parametrize("shape", SHAPES)
def test_rows_are_those_of_the_long_way_name_by_name(shape: str) -> None:
    draw = random.Random(5)
    events = [{"x": 0.5, "k": step % 3, "type": draw.choice("ABCZ"), "ts": step // 2} for step in range(400)]
    live, long = cepheid.live(SHAPES[shape], SCHEMA), cepheid.live(SHAPES[shape], SCHEMA)
    long._fast = None
    found = 0
    for event in events:
        rows = live.send(event)
        assert repr(rows) == repr(long.send(event))
        found += len(rows)
        for row in rows:
            row.clear()  # a caller may do with it what it likes
    assert found > 50
    assert live.numbers.matches == found
    assert gc.isenabled()
