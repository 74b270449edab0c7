"""Answers written by hand, for every engine that takes the query.

Each of these cases notices a change of an engine that the drawn cases of `make test` are too few to notice (see
tests/verification/mutate.py). Events are `A1`: the type and x, one after another; `A1u` has the key u. An answer is the
places of the events in each match.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.engines import ENGINES
from cepheid.errors import EngineError
from cepheid.model import Exponential, Model

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
    "negated in either way": (
        "PATTERN SEQ(A a, !(N n), B b) WHERE n.x = 1 AND a.x = 1 OR n.x = 2 AND a.x = 2 WITHIN 9",
        {"A1 N1 B0": "", "A1 N2 B0": "1 3", "A2 N2 B0": "", "A2 N1 B0": "1 3", "A3 N1 B0": "", "A1 B0": "1 2"},
    ),
    "a condition on no event": ("PATTERN SEQ(A a) WHERE 1 = 2 WITHIN 9", {"A1 A1": ""}),
}
# Each event of a group matters to what follows: no two groups are the same. An answer is the number of matches.
COUNTS = {
    "PATTERN SEQ(A+ a[], B b) WHERE a[i].x < b.x WITHIN 9": {"A3 A1 B2 A0 B4": 8, "A1 A1 B1": 0, "A1 A0 B2": 3},
    "PATTERN SEQ(A+ a[], B+ b[]) WHERE a[i].x < b[1].x AND b[i].x > 0 WITHIN 9": {"A3 A1 B2 B4": 5, "A1 B0 B2": 1},
}

NEXT = "WHERE skip_till_next_match {{ {} }}"
# Where events may be missing; `-` is one that is. Each is lost with probability 0.1, so with THRESHOLD 0.3 none is.
MISSING = {
    "conditions on later events": (
        "PATTERN SEQ(A a, B b, C c) WHERE b.x < c.x WITHIN 9 THRESHOLD 0.3",
        {"A0 B1 C2": "1 2 3", "A0 B2 C1": ""},
    ),
    "conditions on the last of four": (
        "PATTERN SEQ(A a, B b, C c, D d) WHERE c.x < d.x WITHIN 9 THRESHOLD 0.3",
        {"A0 B1 C1 D2": "1 2 3 4", "A0 B2 C1 D1": ""},
    ),
    "negated in either way": (
        "PATTERN SEQ(A a, !(N n), B b) WHERE n.x = 1 AND a.x = 1 OR n.x = 2 AND a.x = 2 WITHIN 9 THRESHOLD 0.3",
        {"A1 N1 B0": "", "A1 N2 B0": "1 3", "A2 N2 B0": "", "A2 N1 B0": "1 3", "A3 B0": "", "A1 B0": "1 2"},
    ),
    "the next of a group": (
        f"PATTERN SEQ(A a, B+ b[], C c) {NEXT.format('b[i].x >= a.x')} WITHIN 9 THRESHOLD 0.3",
        {"A1 B1 B1 C0": "1 2 3 4", "A1 B0 B1 C0": "1 3 4", "A1 A1 B1 C0": "1 3 4, 2 3 4"},
    ),
    "the next that rises": (
        f"PATTERN SEQ(A a, B+ b[], C c) {NEXT.format('b[i].x > b[i-1].x')} WITHIN 9 THRESHOLD 0.3",
        {"A0 B1 B2 C0": "1 2 3 4", "A0 B2 B1 C0": "1 2 4", "A0 B2 B1 B3 C0": "1 2 4 5"},
    ),
    "the next as high as the first": (
        f"PATTERN SEQ(A a, B+ b[], C c) {NEXT.format('b[i].x >= b[1].x')} WITHIN 9 THRESHOLD 0.3",
        {"A0 B2 B3 B2 C0": "1 2 3 4 5", "A0 B2 B3 B1 C0": "1 2 3 5"},
    ),
    "the next of each": (
        f"PATTERN SEQ(A a, B b, C c) {NEXT.format('a.x <= b.x')} WITHIN 9 THRESHOLD 0.3",
        {"A1 B1 B1 C0 C0": "1 2 4", "A1 B0 B1 C0": "1 3 4", "A1 A0 B0 C0": "2 3 4"},
    ),
    "a chain of equal values": (  # without b, a and c are tied to nothing
        "PATTERN SEQ(A a, B b, C c) WHERE a.x = b.x AND b.x = c.x WITHIN 9 THRESHOLD 0.01",
        {"A1 B1 C1": "- 2 3, 1 - 3, 1 2 3", "A1 B1 C2": "1 - 3", "A1 C2": "1 - 2", "A1 B2 C1": "1 - 3"},
    ),
    "a gap that is too short": (  # for b to be in it: 0.039 after one step, 0.063 after two
        "PATTERN SEQ(A a, B b, C c) WITHIN 9 THRESHOLD 0.05",
        {"A1 C1": "", "A1 D0 C1": "1 - 3", "A1 A1 C1": "1 - 3", "A1 A1 B1 C1": "- 3 4, 1 - 4, 1 3 4, 2 - 4, 2 3 4"},
    ),
    "equal values of any type": (
        "PATTERN SEQ(ANY(A, B) a, C c, D d) WHERE [k] WITHIN 9 THRESHOLD 0.3",
        {"A1u C1u D1u": "1 2 3", "A1u C1v D1v": "", "A1u B1v C1v D1v": "2 3 4", "A1u C1u C1v D1u": "1 2 4"},
    ),
    "between what was seen": (
        "PATTERN SEQ(A a, !(N n), B b, C c) WITHIN 9 THRESHOLD 0.01",
        {"A1 N1 C0": "", "A1 C0": "1 - 2", "N1 A1 C1": "2 - 3", "A1 C1 N1": "1 - 2"},
    ),
    "and behind it": (
        "PATTERN SEQ(A a, B b, !(N n), C c) WITHIN 9 THRESHOLD 0.01",
        {"A1 N1 C0": "", "A1 C0": "1 - 2", "A1 B1 N1 C1": "", "A1 N1 B1 C1": "- 3 4, 1 3 4"},
    ),
}
MODEL = Model(loss=0.1, gaps={name: Exponential(mean=2.0) for name in "abcdn"})

# Where an event is known to have happened at an instant of an interval, `A1-3`, each equally likely. An answer is the
# places and the confidence of each match.
IMPRECISE = {
    "what follows a group": (
        "PATTERN SEQ(A+ a[], B b) WITHIN 20",
        {"A1-1 B2-2": "1 2: 1.0", "A1-1 A2-3 B3-3": "1 2 3: 0.5, 1 3: 1.0, 2 3: 0.5"},
    ),
    "negated before the window or in it": (
        "PATTERN SEQ(!(C c), A a, B b) WITHIN 4",
        {"C0-4 A5-5 B7-7": "2 3: 0.8", "C0-3 A5-5 B7-7": "2 3: 1.0", "C4-4 A5-5 B7-7": ""},
    ),
    "an event that comes before the one that it follows": (
        "PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 9",
        {"B1-1 B5-9 A6-7": "2 3: 0.5", "B5-9 A6-7": "1 2: 0.5"},
    ),
    "the best of few": (  # the first is the fourth best, and is found before the others
        "PATTERN SEQ(A a, B b) WITHIN 20 OUTPUT TOP 3 BY CONFIDENCE",
        {"A10-10 B3-12 A50-50 B50-59 A90-90 B86-95 A130-130 B124-133": "3 4: 0.9, 5 6: 0.5, 7 8: 0.3"},
    ),
}
METHODS = ("query-order", "any-state", "sorted", "selectivity")


def table_of(text: str, begin: int = 1) -> pa.Table:
    events = text.split()
    columns: dict[str, Any] = {
        "ts": range(begin, begin + len(events)),
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


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("engine", ["auto", "reference", "queues"])
def test_small_answers_of_missing_events(engine: str, name: str) -> None:
    query, answers = MISSING[name]
    for events, expected in answers.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = cepheid.match(table_of(events, 101), query, engine=engine, model=MODEL)
        rows = []
        for row in found.to_pylist():
            taken = [[place - 100 for place in places(row[name])] for name in "abcd" if name in row]
            rows.append(" ".join(" ".join(map(str, each)) or "-" for each in taken))
        assert sorted(rows) == sorted(filter(None, expected.split(", "))), events


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


@pytest.mark.parametrize("query", COUNTS)
@pytest.mark.parametrize("engine", ["auto", "reference", "runs", "states"])
def test_small_counts(engine: str, query: str) -> None:
    for events, expected in COUNTS[query].items():
        try:
            found = cepheid.match(table_of(events), query, engine=engine, output="count")
        except EngineError:
            pytest.skip("not a query for this engine")
        assert found == expected, events


@pytest.mark.parametrize("name", IMPRECISE)
@pytest.mark.parametrize("engine", ["auto", "reference", "points", *METHODS])
def test_small_answers_of_imprecise_times(engine: str, name: str) -> None:
    query, answers = IMPRECISE[name]
    chosen: dict[str, Any] = {"engine": "intervals", "method": engine} if engine in METHODS else {"engine": engine}
    for text, expected in answers.items():
        events = text.split()
        bounds = [[int(bound) for bound in event[1:].split("-")] for event in events]
        table = pa.table(
            {
                "ts": range(1, len(events) + 1),
                "type": [event[0] for event in events],
                "lower": [lower for lower, _ in bounds],
                "upper": [upper for _, upper in bounds],
            }
        )
        try:
            found = cepheid.match(table, query, lower="lower", upper="upper", **chosen)
        except EngineError:
            pytest.skip("not a query for this method")
        rows = [(sorted(places(list(row.values()))), round(row["confidence"], 9)) for row in found.to_pylist()]
        told = [f"{' '.join(map(str, taken))}: {confidence}" for taken, confidence in rows]
        assert sorted(told) == sorted(filter(None, expected.split(", "))), text
