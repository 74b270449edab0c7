"""A stream of the console finds what a batch finds, however it is cut, and counts what comes too late."""

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.console.live import LiveQuery, replayed
from cepheid.console.workspace import Workspace

TIMES = np.arange(60)
EVENTS = pa.table(
    {
        "ts": TIMES,
        "type": [("A", "B", "C")[t % 3] if t % 7 else "N" for t in TIMES.tolist()],
        "id": (TIMES // 2 % 4),
    }
)
QUERIES = [
    "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20",
    "PATTERN SEQ(A a, !(N n), C c) WITHIN 9",
    "PATTERN SEQ(A a, B b, !(N n)) WITHIN 9",
    "PATTERN SEQ(A a, B b) WITHIN 9 OUTPUT NON-OVERLAP",
]


@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("size", [1, 7, 60])
def test_the_same_as_a_batch(text: str, size: int) -> None:
    table = Workspace().add("events", EVENTS)
    live = LiveQuery(cepheid.query(text), table)
    parts = [live.send(EVENTS.slice(start, size)) for start in range(0, len(EVENTS), size)]
    parts.append(live.finish())
    found = pa.concat_tables(parts).to_pylist()
    assert sorted(found, key=str) == sorted(cepheid.match(EVENTS, text).to_pylist(), key=str)
    assert live.numbers.matches == len(found) > 0
    assert live.numbers.late == 0


def test_missing_events_with_a_model() -> None:
    model = cepheid.Model(loss=0.2, gaps={"n": cepheid.Exponential(mean=20), "c": cepheid.Exponential(mean=3)})
    text = "PATTERN SEQ(A a, !(N n), C c) WHERE [id] WITHIN 9 THRESHOLD 0.05"
    table = Workspace().add("events", EVENTS)
    live = LiveQuery(cepheid.query(text), table, model=model)
    parts = [live.send(EVENTS.slice(start, 11)) for start in range(0, len(EVENTS), 11)]
    found = pa.concat_tables([*parts, live.finish()]).to_pylist()
    assert sorted(found, key=str) == sorted(cepheid.match(EVENTS, text, model=model).to_pylist(), key=str)
    assert any(row["a"] is None for row in found)


def test_late_events_are_counted_and_old_ones_forgotten() -> None:
    table = Workspace().add("events", EVENTS)
    live = LiveQuery(cepheid.query(QUERIES[0]), table, delay=5)
    live.send(EVENTS.slice(30, 20))
    live.send(EVENTS.slice(0, 10))
    assert live.numbers.late == 10
    live.send(EVENTS.slice(50, 10))
    assert 0 < live.numbers.retained < 30
    assert live.numbers.state_bytes > 0


def test_a_table_is_replayed_in_order() -> None:
    table = Workspace().add("events", EVENTS.take(pa.array(np.roll(TIMES, 13))))
    parts = list(replayed(table, per_second=40, steps_per_second=4))
    assert [len(part) for part in parts] == [10] * 6
    assert pa.concat_tables(parts)["ts"].to_pylist() == TIMES.tolist()
