"""Answers written by hand, for every engine that takes the query.

Each of these cases notices a change of an engine that the drawn cases of `make test` are too few to notice (see
tests/verification/mutate.py). Events are `A1`: the type and x, one after another; `A1u` has the key u. An answer is the
places of the events in each match.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.engines import ENGINES
from cepheid.errors import EngineError

CASES = {
    # A negated event that is tied to the candidate kills this candidate alone, not the older ones.
    "tied to the event before": (
        "PATTERN SEQ(A a, !(C c), B b) WHERE c.x = a.x WITHIN 9",
        {"A1 A2 C2 B0": "1 4", "A1 A2 C1 B0": "2 4", "A1 A1 C1 B0 A1 B0": "5 6", "A1 A2 C3 B0": "1 4, 2 4"},
    ),
    "tied by a comparison": (
        "PATTERN SEQ(A a, !(C c), B b) WHERE c.x > a.x WITHIN 9",
        {"A3 A1 C2 B0": "1 4", "A1 A3 C2 B0": "2 4", "A3 A1 A2 C2 B0": "1 5, 3 5"},
    ),
    "tied to the event behind": (
        "PATTERN SEQ(A a, !(C c), B b, D d) WHERE c.x = d.x WITHIN 9",
        {"A0 C1 B0 D2": "1 3 4", "A0 C1 B0 D1": "", "A0 C1 A0 B0 D1": "3 4 5", "A0 C1 B0 D1 D2": "1 3 5"},
    ),
    "tied to nothing": (
        "PATTERN SEQ(A a, !(C c), B b) WITHIN 9",
        {"A1 A2 C2 B0": "", "A1 C2 A2 B0": "3 4", "A1 C1 A1 A1 B0 C1 B0": "3 5, 4 5"},
    ),
    "not beside the event": (
        "PATTERN SEQ(!(C c), A a, B b) WITHIN 4",
        {"C1 A1 A1 B0": "", "C1 A1 D0 D0 A1 B0": "5 6", "A1 C1 A1 B0": "1 4"},
    ),
}


def table_of(text: str) -> pa.Table:
    events = text.split()
    columns: dict[str, Any] = {
        "ts": range(1, len(events) + 1),
        "type": [event[0] for event in events],
        "x": [int(event[1]) for event in events],
        "k": [event[2:] for event in events],
    }
    return pa.table(columns)


def places(value: Any) -> Iterator[int]:
    if isinstance(value, list):
        for each in value:
            yield from places(each)
    elif isinstance(value, dict):
        yield value["ts"]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("engine", [name for name in ENGINES if name != "forecast"])
def test_small_answers(engine: str, name: str) -> None:
    query, answers = CASES[name]
    for events, expected in answers.items():
        try:
            found = cepheid.match(table_of(events), query, engine=engine)
        except EngineError:
            pytest.skip("not a query for this engine")
        rows = [" ".join(map(str, places(list(row.values())))) for row in found.to_pylist()]
        assert sorted(rows) == sorted(filter(None, expected.split(", "))), events
