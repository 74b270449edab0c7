"""Queries as MATCH_RECOGNIZE clauses: the clause of a drawn query has its matches, or the query is refused."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cepheid
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.match_recognize.from_expression import DIALECTS
from strategies.queries import queries, streams

ONE_EACH = (s.Strategy.SKIP_TILL_NEXT, s.Strategy.PARTITION_CONTIGUITY, s.Strategy.STRICT_CONTIGUITY)
PARTS = (
    "B b",
    "B? b",
    "(B b | C c)",
    "(SEQ(B b, C c) | D d)",
    "AND(B b, C c)",
    "B{2} b[]",
    "B+ b[]",
    "B{1,2} b[]",
    "B* b[]",
    "(B b, C c)+",
    "(B b, C c)?",
    "!(C n)",
    "!(B n), C? c",
    "(B b | B c)",
)
CONDITIONS = (
    "b.x > 1",
    "b.x >= a.x",
    "e.x > b.x",
    "b[i].x >= b[i-1].x",
    "n.x > a.x",
    "c.y < 2",
    "e.x != a.x",
    "b.z IS NULL",
)


def same(query: cepheid.Query, events: pa.Table) -> int:
    """Has the clause the query's matches? Gives their number."""
    found = cepheid.match(events, query, engine="reference")
    rows = cepheid.match(events, query.to_match_recognize())
    expected = edges(query, found)
    if expected:
        rows = rows.select(list(expected[0]))  # the clause gives its partition, too
    assert sorted(map(repr, expected)) == sorted(map(repr, rows.to_pylist()))
    return int(found.num_rows)


def edges(query: cepheid.Query, found: pa.Table) -> list[dict[str, Any]]:
    """Matches as the clause measures them: the times of their events."""
    if query.syntax.returns is not None:
        return list(found.to_pylist())
    lists = []
    for row in found.to_pylist():
        shown = {"match_start": row["match_start"], "match_end": row["match_end"]}
        for component in query.syntax.components:
            event = None if component.negative else row[component.variable]
            if component.kleene and not component.negative:
                shown[f"{component.variable}_first"] = event[0]["ts"] if event else None
                shown[f"{component.variable}_last"] = event[-1]["ts"] if event else None
            elif not component.negative:
                shown[f"{component.variable}_ts"] = event and event["ts"]
        lists.append(shown)
    return lists


def translated(query: cepheid.Query) -> bool:
    """Is there a clause? A refusal says what is in the way."""
    try:
        query.to_match_recognize()
    except QueryError as error:
        return not (error.code == "no-translation" and error.hint)
    return True


@given(
    queries(strategy=ONE_EACH, wildcard=False, event_window=False, output=False, aggregates=False, window=True),
    streams(concurrent=False, min_size=6, ids=1),
)
def test_drawn_queries(syntax: s.QuerySyntax, events: pa.Table) -> None:
    query = cepheid.query(str(cepheid.Query(syntax)))
    if translated(query):
        same(query, events)


@given(
    st.sampled_from(PARTS),
    st.lists(st.sampled_from(CONDITIONS), max_size=2),
    st.sampled_from(ONE_EACH),
    st.booleans(),
    streams(concurrent=False, min_size=8, max_step=1, types=("A", "B", "B", "C", "D")),
)
def test_every_kind_of_part(
    part: str, conditions: list[str], strategy: s.Strategy, keyed: bool, events: pa.Table
) -> None:
    parts = [*(["[id]"] if keyed else []), *conditions]
    text = f"PATTERN SEQ(A a, {part}, D e) WHERE {strategy.value} {{ {' AND '.join(parts)} }} WITHIN 9"
    try:
        query = cepheid.query(text)
        cepheid.match(events, query, engine="reference")
    except QueryError:  # a condition about a variable that the part does not have
        return
    if translated(query):
        same(query, events)


EVENTS = pa.table(
    {
        "ts": list(range(12)),
        "type": list("ABBDABDABCDD"),
        "id": [1] * 12,
        "x": [1, 2, 3, 4, 1, None, 2, 1, 2, 5, 6, 7],
    }
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { [id] } WITHIN 6", 3),
        ("PATTERN SEQ(A a, B b, D d) WHERE skip_till_next_match { [id] AND b.x > a.x } WITHIN 6", 2),
        ("PATTERN SEQ(A a, !(C n), D d) WHERE skip_till_next_match { [id] } WITHIN 9", 2),
        (
            "PATTERN SEQ(A a, (B b | C c), D d) WHERE skip_till_next_match { [id] } WITHIN 9 RETURN b.x AS x, d.x AS y",
            3,
        ),
        ("PATTERN SEQ(A a, AND(B b, C c), D d) WHERE skip_till_next_match { [id] } WITHIN 12", 3),
        ("PATTERN SEQ(A a, B{2} b[], D d) WHERE skip_till_next_match { [id] } WITHIN 6 RETURN sum(b[].x) AS s", 1),
        ("PATTERN SEQ(A a, B+ b[], D d) WHERE partition_contiguity { [id] } WITHIN 6 RETURN b.LEN AS n", 2),
        ("PATTERN A WHERE x = 1", 3),
    ],
)
def test_the_translation_finds_the_same(text: str, matches: int) -> None:
    assert same(cepheid.query(text), EVENTS) == matches


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("PATTERN SEQ(A a, B b) WITHIN 5", "skip_till_any_match reports every combination"),
        ("PATTERN SEQ(A a, B+ b[], C c) WHERE skip_till_next_match { } WITHIN 5", "each time it closes"),
        ("PATTERN SEQ(A a, B+ b[]) WHERE partition_contiguity { } WITHIN 5", "end before b"),
        ("PATTERN SEQ(A a, B+ b[], B c) WHERE partition_contiguity { } WITHIN 5", "as well as"),
        ("PATTERN SEQ(A a, !(B b)) WHERE skip_till_next_match { } WITHIN 5", "the absence of b at the end"),
        ("PATTERN SEQ(!(B b), A a) WHERE skip_till_next_match { } WITHIN 5", "absence at the start"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 5 EVENTS", "window"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 5 OUTPUT NON-OVERLAP", "OUTPUT NON-OVERLAP"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 5 SUMMARISE count(*)", "SUMMARISE"),
        ("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { } WITHIN 5 RETURN a", "whole event"),
        ("PATTERN SEQ(A a, B b AFTER 1) WHERE skip_till_next_match { } WITHIN 5", "AFTER ... WITHIN"),
        ("PATTERN SEQ(A a, ANY(B, C) b) WHERE skip_till_next_match { b.x > 1 } WITHIN 5", "declared with ANY"),
    ],
)
def test_refusals_name_what_is_in_the_way(text: str, told: str) -> None:
    with pytest.raises(QueryError, match="no MATCH_RECOGNIZE clause has these matches") as error:
        cepheid.query(text).to_match_recognize()
    assert told in str(error.value)


def test_dialects() -> None:
    query = cepheid.query("PATTERN SEQ(A a, B b) WHERE skip_till_next_match { b.x / a.x > 2 } WITHIN 200 days")
    texts = {dialect: query.to_match_recognize(dialect, time="at", type="kind") for dialect in DIALECTS}
    assert "`at` - FIRST(`at`) < INTERVAL '200' DAY" in texts["spark"]
    assert 'CAST("x" AS DOUBLE) / "a"."x"' in texts["trino"]
    assert "INTERVAL '200' DAY(3)" in texts["oracle"]
    assert "PATTERN (`a` `skip1`* `b`) WITHIN INTERVAL '200' DAY" in texts["flink"]
    with pytest.raises(QueryError, match="no dialect 'trin'; choose trino"):
        query.to_match_recognize("trin")
