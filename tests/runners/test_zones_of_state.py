"""A state holds instants: it goes on whatever the zone of the columns is called."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest

import cepheid
from cepheid.runners.arrow_bytes import decoded, encoded

BEGIN = datetime(2025, 11, 2, 3, 0, tzinfo=UTC)  # New York's clocks go back at 06:00
ZONES = ("UTC", "Etc/UTC", "America/New_York", "Asia/Kolkata")
QUERIES = {
    "pairs": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 hours",
    "stop": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 hours OUTPUT NON-OVERLAP",
    "totals": "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 2 hours SUMMARISE count(*) AS n, max(b.ts) AS last EVERY 1 hour",
}


def events(zone: str) -> pa.Table:
    times = [BEGIN + timedelta(minutes=20 * step) for step in range(18)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", zone)),
            "type": ["A", "B"] * 9,
            "id": [1, 1, 2] * 6,
            "seen": pa.array([[at] for at in times], pa.list_(pa.timestamp("us", zone))),
        }
    )


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES)
@pytest.mark.parametrize("after", ZONES)
def test_a_live_query_goes_on_in_another_zone(text, after):
    expected = cepheid.match(events("UTC"), text)
    live = cepheid.live(text, events("America/New_York").schema)
    found = [live.send(events("America/New_York").slice(0, 7))]
    state = live.save()
    live = cepheid.live(text, events(after).schema, state=state)
    found += [live.send(events(after).slice(7, 5)), live.send(events(after).slice(12)), live.finish()]
    rows = [row for table in found for row in table.to_pylist()]
    assert sorted(map(instants, rows)) == sorted(map(instants, expected.to_pylist()))
    assert len(rows) > 2


def instants(value):
    """What a result says, whatever zone it says it in."""
    if isinstance(value, dict):
        return str([(name, instants(each)) for name, each in value.items()])
    if isinstance(value, list):
        return [instants(each) for each in value]
    return value.timestamp() if isinstance(value, datetime) else value


def test_bytes_of_a_state_know_no_zone():
    table = events("Asia/Kolkata")
    assert encoded(table) == encoded(events("UTC"))
    sink = pa.BufferOutputStream()  # as earlier versions wrote it
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    assert decoded(sink.getvalue().to_pybytes()).equals(events("UTC"))
