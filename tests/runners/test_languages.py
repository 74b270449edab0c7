"""What one can do with a query works alike in every language."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError, LimitError
from cepheid.flink import Pattern

EVENTS = pa.table(
    {
        "ts": [1, 2, 3, 4, 5, 6, 7],
        "type": ["A", "B", "A", "B", "A", "C", "B"],
        "id": [1, 1, 1, 1, 2, 2, 2],
        "v": [1, 2, 3, 4, 5, 6, 7],
    }
)
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.v AS av, B.v AS bv PATTERN (A B) WITHIN 10
DEFINE A AS type = 'A', B AS type = 'B')"""
QUERIES: dict[str, Any] = {
    "text": "PATTERN SEQ(A a, B b) WHERE partition_contiguity(a, b) { [id] } WITHIN 10 RETURN a.v AS av, b.v AS bv",
    "rows": CLAUSE,
    "flink": Pattern.begin("a").where("type = 'A'").next("b").where("type = 'B'").within(10),
}
OPTIONS: dict[str, dict[str, Any]] = {"text": {}, "rows": {}, "flink": {"partition_by": "id"}}
LANGUAGES = pytest.mark.parametrize("language", list(QUERIES))
FOUND = [(1, 2), (3, 4)]


def pairs(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    """The values of the two events of each match."""
    return sorted((row["av"], row["bv"]) if "av" in row else (row["a"]["v"], row["b"]["v"]) for row in rows)


@LANGUAGES
def test_an_object_matches_counts_and_explains(language: str) -> None:
    query, options = cepheid.query(QUERIES[language]), OPTIONS[language]
    assert pairs(query.match(EVENTS, **options).to_pylist()) == FOUND
    assert cepheid.match(EVENTS, query, output="count", **options) == 2
    assert query.match(EVENTS, output="count", engine="reference", **options) == 2
    assert isinstance(query.match(EVENTS.to_pandas(), **options), pd.DataFrame)
    assert isinstance(query.match(pl.from_arrow(EVENTS), **options), pl.DataFrame)
    assert query.explain(EVENTS, **options)
    assert query.explain()
    assert str(query)
    with pytest.raises(LimitError):
        query.match(EVENTS, max_matches=1, **options)


@LANGUAGES
def test_why_says_how_far_the_pattern_gets(language: str) -> None:
    told = cepheid.why(EVENTS, QUERIES[language], **OPTIONS[language])
    assert told.matches.number == 2
    assert [component.passed for component in told.components] == [3, 3]
    assert told.steps[-1].count.number == 2
    assert "2 matches in 7 events" in str(told)
    assert told.to_dict()["matches"]["number"] == 2


@LANGUAGES
def test_several_at_once_and_a_query_over_their_matches(language: str) -> None:
    queries = {
        "pair": QUERIES[language],
        "c": "PATTERN SEQ(C c) WITHIN 5",
        "two": "PATTERN SEQ(pair p, pair q) WITHIN 10 FROM pair RETURN p.match_end AS one, q.match_end AS other",
    }
    found = cepheid.match(EVENTS, queries, **OPTIONS[language])
    assert found.column_names == ["query", "match_start", "match_end", "pair", "c", "two"]
    rows = found.to_pylist()
    assert pairs([row["pair"] for row in rows if row["query"] == "pair"]) == FOUND
    assert [(row["match_start"], row["match_end"]) for row in rows if row["query"] == "pair"] == [(1, 2), (3, 4)]
    assert [row["two"] for row in rows if row["query"] == "two"] == [{"one": 2, "other": 4}]


def test_all_languages_at_once() -> None:
    found = cepheid.match(EVENTS, QUERIES, partition_by="id").to_pylist()
    assert {name: sum(row["query"] == name for row in found) for name in QUERIES} == dict.fromkeys(QUERIES, 2)


def test_options_go_to_the_languages_that_have_them() -> None:
    with pytest.raises(CepheidError, match="no option 'partition_by' for any of these queries"):
        cepheid.match(EVENTS, {"text": QUERIES["text"], "rows": QUERIES["rows"]}, partition_by="id")
    with pytest.raises(CepheidError, match="no language of this call has an engine 'sequenze'"):
        cepheid.match(EVENTS, QUERIES, engine="sequenze")
    assert cepheid.match(EVENTS, QUERIES, engine="reference", partition_by="id").num_rows == 6


def test_matches_without_a_time_are_not_read() -> None:
    unordered = "MATCH_RECOGNIZE (MEASURES A.v AS av PATTERN (A) DEFINE A AS type = 'A')"
    reader = "PATTERN SEQ(x p) WITHIN 10 FROM x"
    with pytest.raises(CepheidError, match="the matches of 'x' have no time"):
        cepheid.match(EVENTS, {"x": unordered, "y": reader})


@pytest.mark.parametrize(
    ("rows", "number"),
    [
        ("ONE ROW PER MATCH", 7),
        ("ALL ROWS PER MATCH SHOW EMPTY MATCHES", 7),
        ("ALL ROWS PER MATCH OMIT EMPTY MATCHES", 3),
        ("ALL ROWS PER MATCH WITH UNMATCHED ROWS", 7),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "reference"])
def test_a_clause_counts_the_matches_that_it_reports(rows: str, number: int, engine: str) -> None:
    clause = f"MATCH_RECOGNIZE (ORDER BY ts MEASURES count(*) AS n {rows} PATTERN (A?) DEFINE A AS type = 'A')"
    assert cepheid.match(EVENTS, clause, output="count", engine=engine) == number
    one = clause.replace(rows, "ONE ROW PER MATCH")
    shown = cepheid.match(EVENTS, one, engine=engine).num_rows
    assert shown == 7


@LANGUAGES
def test_live_saved_and_restored_anywhere(language: str) -> None:
    query, options = QUERIES[language], OPTIONS[language]
    for cut in range(EVENTS.num_rows + 1):
        live = cepheid.live(query, EVENTS.schema, delay=1, **options)
        found = live.send(EVENTS.slice(0, cut)).to_pylist()
        live = cepheid.live(query, EVENTS.schema, delay=1, state=live.save(), **options)
        found += live.send(EVENTS.slice(cut).to_pylist())
        found += live.finish()
        assert pairs(found) == FOUND, cut


def test_live_in_all_languages_at_once() -> None:
    queries = {**QUERIES, "c": "PATTERN SEQ(C c)"}
    whole = cepheid.match(EVENTS, queries, partition_by="id")
    for cut in range(EVENTS.num_rows + 1):
        live = cepheid.live(queries, EVENTS.schema, partition_by="id")
        assert live.schema.names == whole.column_names
        found = live.send(EVENTS.slice(0, cut)).to_pylist()
        live = cepheid.live(queries, EVENTS.schema, state=live.save(), partition_by="id")
        found += [row for event in EVENTS.slice(cut).to_pylist() for row in live.send(event)]
        found += live.finish() if cut < EVENTS.num_rows else live.finish().to_pylist()
        assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist())), cut


def test_live_in_all_languages_has_one_clock_and_happens_whole() -> None:
    late: list[pa.Table] = []
    live = cepheid.live(QUERIES, EVENTS.schema, partition_by="id")
    live.on_late = late.append
    live.send(EVENTS.slice(0, 4))
    before = live.save()
    with pytest.raises(CepheidError, match="does not fit"):
        live.send({"ts": "soon", "type": "A", "id": 1, "v": 1})
    assert live.save() == before
    live.send({"ts": 1, "type": "A", "id": 1, "v": 1})
    assert live.numbers.late == 1
    assert [table.num_rows for table in late] == [1]
    assert len(live.advance(20)) == 3
    assert live.numbers.watermark == 20


def drawn(number: int, times: bool) -> pa.Table:
    """Events of a few keys, some of one time; their times are whole numbers or timestamps."""
    rng = random.Random(number)
    at = np.cumsum([rng.choice([0, 1, 1, 1, 3]) for _ in range(60)])
    columns: dict[str, Any] = {"ts": pa.array(at), "type": [rng.choice("AABBC") for _ in at]}
    columns["id"] = [rng.randrange(2) for _ in at]
    columns["v"] = list(range(len(at)))
    if times:
        columns["ts"] = pa.array(at * 1_000_000, pa.timestamp("us"))
    return pa.table(columns)


READERS: dict[str, Any] = {
    "two": "PATTERN SEQ(pair p, pair q) WITHIN 20 {unit} FROM pair RETURN p.match_end AS one, q.v AS v",
    "none": "PATTERN SEQ(pair p, !(other x), pair q) WITHIN 8 {unit} FROM pair, other RETURN p.k AS k, q.k AS other_k",
    "last": "PATTERN SEQ(other x, !(pair p)) WITHIN 6 {unit} FROM pair, other RETURN x.match_end AS at",
}
NESTED = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES A.id AS k, B.v AS v PATTERN (A C* B) WITHIN {}
DEFINE A AS type = 'A', B AS type = 'B', C AS type = 'C')"""


@pytest.mark.parametrize("times", [False, True])
@pytest.mark.some(1)
@pytest.mark.parametrize("number", range(4))
def test_live_queries_read_the_matches_of_other_languages(number: int, times: bool) -> None:
    """As the table has them, wherever the stream is cut and taken up again."""
    events = drawn(number, times)
    window = "INTERVAL '7' SECOND" if times else "7"
    absent = Pattern.begin("a").where("type = 'C'").not_followed_by("b").where("type = 'B'")
    sources = {"pair": NESTED.format(window), "other": absent.within("4 seconds" if times else 4)}
    queries = {**sources, **{name: text.format(unit="seconds" if times else "") for name, text in READERS.items()}}
    whole = cepheid.match(events, queries, partition_by="id")
    for reader in READERS:
        assert reader in whole["query"].to_pylist() or number, "the first table has matches of each"
    rng = random.Random(number)
    for delay in ("0 seconds", "3 seconds") if times else (0, 3):
        live = cepheid.live(queries, events.schema, delay=delay, partition_by="id")
        assert live.schema.names == whole.column_names
        found, at = [], 0
        while at < events.num_rows:
            size = rng.randint(1, 9)
            found += live.send(events.slice(at, size)).to_pylist()
            at += size
            live = cepheid.live(queries, events.schema, delay=delay, partition_by="id", state=live.save())
        assert len(found) < whole.num_rows
        found += rows_of(live.finish())
        assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist()))


def rows_of(found: Any) -> list[dict[str, Any]]:
    """What a live query returned, as mappings."""
    rows: list[dict[str, Any]] = found if isinstance(found, list) else found.to_pylist()
    return rows


@pytest.mark.some(2)
@pytest.mark.parametrize("number", range(3))
def test_live_queries_read_all_languages_and_each_other(number: int) -> None:
    """A query over matches of three languages, one over matches of that, and one over both."""
    events = drawn(number, times=False)
    queries = {
        "last": "PATTERN SEQ(both p, step q) WITHIN 30 FROM both, step RETURN q.match_end AS at",
        "step": "PATTERN SEQ(text p, text q) WITHIN 9 FROM text RETURN p.av AS one, q.av AS other",
        "both": "PATTERN SEQ(rows p, !(flink x), step q) WITHIN 12 FROM rows, flink, step RETURN p.av AS v, q.one AS w",
        **QUERIES,
    }
    whole = cepheid.match(events, queries, partition_by="id")
    assert {*queries} == {*whole["query"].to_pylist()} or number, "the first table has matches of each"
    rng = random.Random(number)
    for delay in (0, 2):
        live = cepheid.live(queries, events.schema, delay=delay, partition_by="id")
        found, at = [], 0
        while at < events.num_rows:
            size = rng.randint(1, 15)
            found += live.send(events.slice(at, size)).to_pylist()
            at += size
            live = cepheid.live(queries, events.schema, delay=delay, partition_by="id", state=live.save())
        found += rows_of(live.finish())
        assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist()))


@pytest.mark.some(2)
@pytest.mark.parametrize("number", range(6))
def test_live_queries_read_matches_that_become_known_at_different_times(number: int) -> None:
    """Those of `step` are known long after those of `text`: what came early does not make the others late."""
    events = drawn(number, times=False)
    queries = {
        "text": QUERIES["text"],
        "late": "PATTERN SEQ(A a, !(C c)) WHERE [id] WITHIN 6 RETURN a.v AS v",
        "step": "PATTERN SEQ(late p, !(late q)) WITHIN 5 FROM late RETURN p.v AS v",
        "last": "PATTERN SEQ(step p, text q) WITHIN 30 FROM step, text RETURN q.match_end AS at",
    }
    whole = cepheid.match(events, queries)
    live, found = cepheid.live(queries, events.schema), []
    for at in range(0, events.num_rows, 5):
        found += live.send(events.slice(at, 5)).to_pylist()
        live = cepheid.live(queries, events.schema, state=live.save())
    found += rows_of(live.finish())
    assert sorted(map(str, found)) == sorted(map(str, whole.to_pylist()))


def test_a_live_query_hears_of_time_without_matches() -> None:
    queries = {"pair": CLAUSE, "alone": "PATTERN SEQ(pair p, !(pair q)) WITHIN 5 FROM pair RETURN p.bv AS bv"}
    live = cepheid.live(queries, EVENTS.schema)
    found = rows_of(live.send(EVENTS))
    assert [row["query"] for row in found] == ["pair", "pair"]
    assert [row["alone"] for row in rows_of(live.advance(18))] == []
    assert [row["alone"] for row in rows_of(live.advance(30))] == [{"bv": 4}]


def test_live_refuses_what_it_cannot_do() -> None:
    unbounded = CLAUSE.replace("WITHIN 10", "")
    one = "PATTERN SEQ(rows p) WITHIN 10 FROM rows"
    with pytest.raises(CepheidError, match="'y' reads 'rows', whose matches become known at no certain time"):
        cepheid.live({"rows": unbounded, "y": one}, EVENTS.schema, max_rows=100)
    with pytest.raises(CepheidError, match="keep every row"):
        cepheid.live(CLAUSE.replace("WITHIN 10", ""), EVENTS.schema)
    assert len(cepheid.live(unbounded, EVENTS.schema, max_rows=100).send(EVENTS)) == 2
    with pytest.raises(CepheidError, match="a live query returns rows"):
        cepheid.live(CLAUSE, EVENTS.schema, output="count")
    state = cepheid.live(QUERIES, EVENTS.schema, partition_by="id").save()
    with pytest.raises(CepheidError, match="other queries than these"):
        cepheid.live({"x": CLAUSE, "y": "PATTERN SEQ(A a) WITHIN 3"}, EVENTS.schema, state=state)
