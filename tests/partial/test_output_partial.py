"""OUTPUT PARTIAL: runs that began and whose window passed before they were complete."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.build import event, seq
from cepheid.engine.data.matches import Matches
from cepheid.engine.search.runs.timed_out import followed
from cepheid.errors import QueryError

ORDERED = "PATTERN SEQ(Ordered a, Paid b, Shipped c) WHERE skip_till_next_match { [id] } WITHIN 10 OUTPUT PARTIAL"


def table(words: str) -> pa.Table:
    rows = [word.split(":") for word in words.split()]
    return pa.table(
        {
            "ts": [int(ts) for _, ts, _ in rows],
            "type": [kind for kind, _, _ in rows],
            "id": [int(key) for *_, key in rows],
        }
    )


def test_ordered_paid_never_shipped() -> None:
    events = table("Ordered:1:1 Ordered:2:2 Ordered:3:3 Paid:4:1 Paid:5:2 Shipped:6:1 Ordered:40:9")
    rows = cepheid.match(events, ORDERED).to_pylist()
    told = [
        (row["a"]["id"], row["b"] is not None, row["timed_out"], row["waiting_for"], row["given_up"]) for row in rows
    ]
    assert sorted(told, key=str) == [
        (1, True, False, None, None),
        (2, True, True, "c", 12),
        (3, False, True, "b", 13),
        (9, False, True, "b", 50),
    ]


def runs(events: list[dict[str, Any]], window: int) -> list[tuple[Any, ...]]:
    """By definition, for SEQ(A a, B b, C c) with any match: what could not be extended within its window."""
    by_type = {kind: [each for each in events if each["type"] == kind] for kind in "ABC"}
    found: list[tuple[Any, ...]] = []
    for length in (1, 2, 3):
        for chosen in product(*(by_type[kind] for kind in "ABC"[:length])):
            times = [each["ts"] for each in chosen]
            if (
                times != sorted(set(times))
                or times[-1] - times[0] >= window
                or len({each["id"] for each in chosen}) > 1
            ):
                continue
            awaited = by_type["ABC"[length]] if length < 3 else []
            extended = any(
                times[-1] < each["ts"] < times[0] + window and each["id"] == chosen[0]["id"] for each in awaited
            )
            if not extended:
                found.append((*times, *[None] * (3 - length), length < 3))
    return found


@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_it_is_what_could_not_be_extended(engine: str) -> None:
    for seed in range(30):
        rng = random.Random(seed)
        events = [{"ts": ts, "type": rng.choice("ABCX"), "id": rng.randint(0, 1)} for ts in range(rng.randint(1, 12))]
        query = "PATTERN SEQ(A a, B b, C c) WHERE [id] WITHIN 5 OUTPUT PARTIAL"
        found = cepheid.match(pa.Table.from_pylist(events), query, engine=engine).to_pylist()
        told = [(*(row[name] and row[name]["ts"] for name in "abc"), row["timed_out"]) for row in found]
        assert sorted(told, key=str) == sorted(runs(events, 5), key=str)


def expression_runs(events: list[dict[str, Any]], window: int, competes: bool) -> set[tuple[Any, ...]]:
    """By definition, for SEQ(A a, (B b | C c)?, D d): runs, one event at a time, and those that waited to the end."""
    ways = {"": "a", "a": "bcd", "ab": "d", "ac": "d"}
    found: set[tuple[Any, ...]] = set()

    def follow(names: str, times: list[int], key: int) -> None:
        if names.endswith("d"):
            found.add((*(dict(zip(names, times, strict=True)).get(name) for name in "abcd"), False))
            return
        later = [e for e in events if times[-1] < e["ts"] < times[0] + window and e["id"] == key]
        fitting = [e for e in later if e["type"].lower() in ways[names]]
        if not fitting:
            found.add((*(dict(zip(names, times, strict=True)).get(name) for name in "abcd"), True))
        for each in fitting:
            if not competes or each["ts"] == fitting[0]["ts"]:
                follow(names + each["type"].lower(), [*times, each["ts"]], key)

    for each in events:
        if each["type"] == "A":
            follow("a", [each["ts"]], each["id"])
    return found


@pytest.mark.parametrize("strategy", ["skip_till_any_match", "skip_till_next_match"])
def test_expressions_by_definition(strategy: str) -> None:
    query = f"PATTERN SEQ(A a, (B b | C c)?, D d) WHERE {strategy} {{ [id] }} WITHIN 5 OUTPUT PARTIAL"
    for seed in range(12):
        rng = random.Random(seed)
        events = [{"ts": ts, "type": rng.choice("ABCDX"), "id": rng.randint(0, 1)} for ts in range(rng.randint(6, 14))]
        found = cepheid.match(pa.Table.from_pylist(events), query).to_pylist()
        told = [(*(row[name] and row[name]["ts"] for name in "abcd"), row["timed_out"]) for row in found]
        assert len(set(told)) == len(told)
        assert set(told) == expression_runs(events, 5, strategy == "skip_till_next_match")
        if seed > 1:
            continue
        live = cepheid.live(query, pa.Table.from_pylist(events).schema)
        sent = [row for row in events for row in live.send(pa.Table.from_pylist([row])).to_pylist()]
        sent += live.finish().to_pylist()
        assert sorted(map(str, sent)) == sorted(map(str, found))


def test_what_an_expression_waits_for() -> None:
    query = "PATTERN SEQ(A a, (B b | C c), D d) WHERE b.id = a.id WITHIN 5 OUTPUT PARTIAL"
    told = [(row["a"]["ts"], row["waiting_for"]) for row in cepheid.match(table("A:1:1 B:2:9"), query).to_pylist()]
    assert told == [(1, "b or c")]  # this b is not the one


def test_groups_and_negations() -> None:
    where = "WHERE skip_till_next_match { [id] AND b.LEN = 2 }"
    query = f"PATTERN SEQ(A a, B+ b[], !(N n), C c) {where} WITHIN 9 OUTPUT PARTIAL"
    rows = cepheid.match(table("A:1:1 B:2:1 B:3:1 A:20:1 B:21:1 N:22:1"), query).to_pylist()
    told = sorted((row["a"]["ts"], len(row["b"] or []), row["waiting_for"]) for row in rows)
    assert told == [(1, 1, "c"), (1, 2, "c")]  # the other run met an N


def beginnings_of(words: list[str]) -> set[str]:
    return {word[:length] for word in words for length in range(1, len(word))} - set(words)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        ("SEQ(A a, (B b, C c)+, D d)", ["abcd", "abcbcd", "abcbcbcd"]),
        ("SEQ(A a, B{2,3} b[], D d)", ["abbd", "abbbd"]),
        ("SEQ(A a, (B b | C c){2}, (D d)?, A e)", ["abbE", "abcE", "acbE", "accE", "abbdE", "abcdE", "acbdE", "accdE"]),
    ],
)
def test_rounds_by_definition(pattern: str, words: list[str]) -> None:
    """Any events in order whose variables begin a linear pattern, and that no later event could extend."""
    kinds = {**{name: name.upper() for name in "abcd"}, "E": "A"}
    begun = beginnings_of(words)
    for seed in range(8):
        rng = random.Random(seed)
        events = [{"ts": ts, "type": rng.choice("ABBCCD")} for ts in range(8)]
        expected = []
        pending = [("a", (each["ts"],)) for each in events if each["type"] == "A"]
        while pending:
            word, times = pending.pop()
            longer = [
                (word + name, (*times, each["ts"]))
                for each in events
                for name in kinds
                if times[-1] < each["ts"] < times[0] + 6 and each["type"] == kinds[name]
                if word + name in begun or word + name in words
            ]
            pending += longer
            if not longer and word not in words:
                expected.append((sorted(times), "".join(sorted(word))))
        query = f"PATTERN {pattern} WITHIN 6 OUTPUT PARTIAL"
        found = []
        for row in cepheid.match(pa.Table.from_pylist(events), query).to_pylist():
            if row["timed_out"]:
                taken = [(name, row[name]) for name in "abcde" if row.get(name)]
                each = [(name, one) for name, own in taken for one in (own if isinstance(own, list) else [own])]
                letters = "".join(sorted("E" if name == "e" else name for name, _ in each))
                found.append((sorted(one["ts"] for _, one in each), letters))
        assert sorted(found) == sorted(expected)


RUNS = [
    "PATTERN SEQ(A a, (B b, C c)+, D d) WHERE {} {{ [id] }} WITHIN 7 OUTPUT PARTIAL",
    "PATTERN SEQ(A a, B{{2,3}} b[], D d) WHERE {} {{ b[i].ts > a.ts + 1 }} WITHIN 7 OUTPUT PARTIAL",
    "PATTERN SEQ(A a, B+ b[], D d) WHERE {} {{ [id] }} WITHIN 6 OUTPUT PARTIAL",
    "PATTERN SEQ(A a, (B b | C c){{2}}, !(X n), D d) WHERE {} {{ }} WITHIN 7 OUTPUT PARTIAL",
    "PATTERN SEQ(A a, B b AFTER 1 WITHIN 3, D d) WHERE {} {{ a.id <= b.id }} WITHIN 6 OUTPUT PARTIAL",
]


@pytest.mark.some(8)
@pytest.mark.parametrize("query", RUNS)
@pytest.mark.parametrize(
    "strategy", ["skip_till_any_match", "skip_till_next_match", "strict_contiguity", "partition_contiguity"]
)
def test_runs_with_rounds_agree_with_the_reference(query: str, strategy: str) -> None:
    query = query.format(strategy)
    for seed in range(3):
        rng = random.Random(seed)
        times = sorted(rng.sample(range(14), 10)) if seed else sorted(rng.choices(range(9), k=10))
        events = [{"ts": ts, "type": rng.choice("ABBCDX"), "id": rng.randint(0, 1)} for ts in times]
        events[0]["type"] = "A"
        table = pa.Table.from_pylist(events)
        found = sorted(map(repr, cepheid.match(table, query).to_pylist()))
        assert found == sorted(map(repr, cepheid.match(table, query, engine="reference").to_pylist()))
        if seed < 2:
            live = cepheid.live(query, table.schema)
            sent = [row for at in range(0, 10, 2) for row in live.send(table.slice(at, 2)).to_pylist()]
            assert sorted(map(repr, [*sent, *live.finish().to_pylist()])) == found


# A pattern, and by definition its ways: what was taken, then what may come next and what must not come before that.
WAYS: dict[str, dict[str, list[tuple[str, str]]]] = {
    "SEQ(A a, !(N n), B b)": {"a": [("b", "n")]},
    "SEQ(A a, !(N n), B b, !(M m), C c)": {"a": [("b", "n")], "ab": [("c", "m")]},
    "SEQ(A a, (B b | !(N n), C c), D d)": {"a": [("b", ""), ("c", "n")], "ab": [("d", "")], "ac": [("d", "")]},
    "SEQ(A a, (!(M m), B b | !(N n), C c), D d)": {"a": [("b", "m"), ("c", "n")], "ab": [("d", "")], "ac": [("d", "")]},
    "SEQ(A a, (!(N n), B b | !(N o), C c), D d)": {"a": [("b", "n"), ("c", "n")], "ab": [("d", "")], "ac": [("d", "")]},
    "SEQ(A a, B? b, !(N n), D d)": {"a": [("b", ""), ("d", "n")], "ab": [("d", "n")]},
    "SEQ(A a, B{2} b[], !(N n), D d)": {"a": [("b", "")], "ab": [("b", "")], "abb": [("d", "n")]},
}


def waited(events: list[dict[str, Any]], ways: dict[str, list[tuple[str, str]]], window: int) -> set[tuple[int, ...]]:
    """Runs that took nothing more, with a way on that no negated event ended before the window had passed."""
    found: set[tuple[int, ...]] = set()
    pending = [("a", (each["ts"],)) for each in events if each["type"] == "A"]
    while pending:
        word, times = pending.pop()
        later = [each for each in events if times[-1] < each["ts"] < times[0] + window]
        if word not in ways:
            continue
        taken = [(each, name, ended) for each in later for name, ended in ways[word] if each["type"] == name.upper()]
        for each, name, ended in taken:
            if not any(other["type"] == ended.upper() and other["ts"] < each["ts"] for other in later):
                pending.append((word + name, (*times, each["ts"])))
        left = [ended for _, ended in ways[word] if not any(each["type"] == ended.upper() for each in later)]
        if not taken and left:
            found.add(times)
    return found


@pytest.mark.some(7)
@pytest.mark.parametrize("pattern", WAYS)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_negated_events_end_the_wait(pattern: str, engine: str) -> None:
    for seed in range(12):
        rng = random.Random(seed)
        events = [{"ts": ts, "type": rng.choice("AABBCDNMX")} for ts in range(10)]
        table = pa.Table.from_pylist(events)
        query = f"PATTERN {pattern} WITHIN 6 OUTPUT PARTIAL"
        found = [row for row in cepheid.match(table, query, engine=engine).to_pylist() if row["timed_out"]]
        held = [[row.get(name) or [] for name in "abcd"] for row in found]
        each = [[one for own in row for one in (own if isinstance(own, list) else [own])] for row in held]
        told = [tuple(sorted(one["ts"] for one in row)) for row in each]
        assert len(set(told)) == len(told)
        assert set(told) == waited(events, WAYS[pattern], 6)


def test_a_negated_event_that_depends_on_what_is_awaited_ends_no_wait() -> None:
    for pattern in ("SEQ(A a, !(N n), B b)", "SEQ(A a, !(N n), B b, C? c)"):
        query = f"PATTERN {pattern} WHERE n.id = b.id WITHIN 6 OUTPUT PARTIAL"
        rows = cepheid.match(table("A:1:1 N:2:1 A:20:1 B:21:2"), query).to_pylist()
        assert [(row["a"]["ts"], row["waiting_for"]) for row in rows if row["timed_out"]] == [(1, "b")]


def test_contiguity_that_is_broken_is_not_given_up() -> None:
    query = "PATTERN SEQ(A a, B b) WHERE strict_contiguity { } WITHIN 5 OUTPUT PARTIAL"
    rows = cepheid.match(table("A:1:1 X:2:1 A:10:1 A:20:1 B:21:1"), query).to_pylist()
    assert [(row["a"]["ts"], row["waiting_for"]) for row in rows] == [(20, None), (10, "b")]


def test_in_the_builder_and_in_print() -> None:
    pattern = seq(event("A"), event("B")).within(5).partial()
    assert str(cepheid.query(pattern)).endswith("OUTPUT PARTIAL")
    assert cepheid.query(str(cepheid.query(pattern))) == cepheid.query(pattern)
    assert cepheid.match(table("A:1:1"), pattern)["waiting_for"].to_pylist() == ["B"]


def test_times_and_parameters() -> None:
    noon = datetime(2026, 5, 1, 12)
    events = pa.table({"ts": [noon], "type": ["A"]})
    query = "PATTERN SEQ(A a, B b) WITHIN T minutes OUTPUT PARTIAL"
    (row,) = cepheid.match(events, query, parameters={"T": 3}).to_pylist()
    assert row["given_up"] == noon + timedelta(minutes=3)


def test_live() -> None:
    events = table("Ordered:1:1 Ordered:2:2 Ordered:3:3 Paid:4:1 Paid:5:2 Shipped:6:1 Ordered:40:9")
    live = cepheid.live(ORDERED, events.schema)
    found = [row for at in range(len(events)) for row in live.send(events.slice(at, 1)).to_pylist()]
    found += live.finish().to_pylist()
    assert sorted(map(str, found)) == sorted(map(str, cepheid.match(events, ORDERED).to_pylist()))
    assert live.schema == cepheid.match(events, ORDERED).schema
    mapping = cepheid.live(ORDERED, events.schema)
    assert mapping.send({"ts": 1, "type": "Ordered", "id": 1}) == []
    assert [row["waiting_for"] for row in mapping.advance(30)] == ["b"]


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("PATTERN SEQ(A a, B b) OUTPUT PARTIAL", "needs a window"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 EVENTS OUTPUT PARTIAL", "needs a window of time"),
        ("PATTERN SEQ(A a, B b, C c) WHERE skip_till_any_match(c) WITHIN 5 OUTPUT PARTIAL", "single steps"),
        ("PATTERN SEQ(A a, B b) WITHIN 5 RETURN a.id OUTPUT PARTIAL", "returns events"),
        ("PATTERN SEQ(A timed_out, B b) WITHIN 5 OUTPUT PARTIAL", "choose another variable"),
    ],
)
def test_what_it_cannot_mean(query: str, told: str) -> None:
    with pytest.raises(QueryError, match=told):
        cepheid.match(table("A:1:1"), query)


def test_optional_and_counted_parts_are_compared_as_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    events = pa.table({"ts": range(60), "type": list("ABCCDE") * 10})
    text = "PATTERN SEQ(A a, B? b, C{2,3} c[], E e) WITHIN 9 OUTPUT PARTIAL"
    expected = sorted(map(repr, cepheid.match(events, text, engine="reference").to_pylist()))

    def made(matches: Matches) -> None:
        raise AssertionError(f"{len(matches)} matches as Python tuples")

    monkeypatch.setattr(Matches, "groups", made)
    assert sorted(map(repr, cepheid.match(events, text).to_pylist())) == expected


def test_ways_that_no_run_ends_with_need_more_room() -> None:
    rows, edges, targets = np.array([0, 2, 1, 3]), np.array([[0, 1, 2], [2, 3, 4]]), np.array([[1, 0], [0, 2], [0, 0]])
    own, *_ = followed(rows, edges, targets, 0, 2)  # two runs of two events each, which share none: four ways
    assert len(own) == 0
    own, before, ends, last = followed(rows, edges, targets, 0, 4)
    assert (own.tolist(), before.tolist(), ends.tolist(), last.tolist()) == ([2, 4], [1, 3], [2, 2], [1, 3])
