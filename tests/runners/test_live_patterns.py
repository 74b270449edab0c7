"""Live row patterns and Flink patterns: shapes whose events kernels read and whose result rows kernels make."""

from __future__ import annotations

import random
import sys
import threading
from collections import deque
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import cepheid
from cepheid.engine.incremental import pattern_door, row_core, row_step
from cepheid.engine.kernels.compile import COMPILES
from cepheid.flink import Pattern
from cepheid.runners.live_search import SearchLive
from cepheid.runners.stream import flink, pushed, rows

KINDS = {
    "ts": pa.int64(),
    "k": pa.int64(),
    "price": pa.float64(),
    "name": pa.string(),
    "unread": pa.string(),
    "is_up": pa.bool_(),
}
SCHEMA = pa.schema(list(KINDS.items()))
V = "PATTERN (A B+ C+) WITHIN 50 DEFINE B AS price < PREV(price), C AS price > PREV(price))"
CLAUSES = {
    "v-shape": "PARTITION BY k ORDER BY ts MEASURES FIRST(A.ts) AS begins, LAST(C.ts) AS ends " + V,
    "texts": "PARTITION BY k ORDER BY ts MEASURES A.name AS one, C.name AS last, MATCH_NUMBER() AS number "
    "PATTERN (A X*? C) WITHIN 20 DEFINE A AS name = 'a', C AS name = 'c')",
    "computed": "PARTITION BY k ORDER BY ts MEASURES LAST(C.price) - A.price AS risen, COUNT(B.*) AS falls, "
    "CLASSIFIER() AS label, upper(LAST(B.name)) AS name " + V,
    "arithmetic": "PARTITION BY k ORDER BY ts MEASURES A.ts / (A.ts % 3) AS ratio, A.ts * 2 - LAST(C.ts) AS whole, "
    "-A.price * 1.1 AS decimal, A.price < LAST(C.price) AND LAST(B.name) < 'b' AS truth, "
    "COALESCE(LAST(B.name), 'none') || '!' AS text, CASE WHEN A.ts > 50 THEN A.price END AS late, 1 + 1 AS two " + V,
    "differences": "PARTITION BY k ORDER BY ts MEASURES LAST(C.price) - A.price AS risen, A.name AS name, "
    "A.price * LAST(B.price) AS product, A.price AS first, PREV(A.price) + LAST(C.price) AS total " + V,
    "differences of others": "PARTITION BY k ORDER BY ts MEASURES LAST(C.price) - A.price AS risen, "
    "(LAST(C.price) - A.price) * 2 AS twice, LAST(C.price) - A.price AS again " + V,
    "differences of all rows": "PARTITION BY k ORDER BY ts MEASURES price - FIRST(price) AS risen, "
    "LAST(C.price) - A.price AS whole ALL ROWS PER MATCH WITH UNMATCHED ROWS " + V,
    "aggregates": "PARTITION BY k ORDER BY ts MEASURES AVG(B.price) AS mean, SUM(C.price) AS total " + V,
    "no key": "ORDER BY ts MEASURES A.ts AS begins, PREV(A.ts) AS earlier, A.name AS named " + V,
    "all rows": "PARTITION BY k ORDER BY ts MEASURES CLASSIFIER() AS label, MATCH_NUMBER() AS number, "
    "COUNT(*) AS so_far, FINAL LAST(C.price) AS final_price, LAST(B.name) AS fell ALL ROWS PER MATCH " + V,
    "unmatched": "PARTITION BY k ORDER BY ts MEASURES CLASSIFIER() AS label, FIRST(ts) AS begins "
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS " + V,
    "empty": "PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS number, LAST(A.name) AS name, MATCH_NUMBER() AS which "
    "PATTERN (A*) WITHIN 20 DEFINE A AS name = 'a')",
    "running mean": "PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, LAST(B.ts) AS ends "
    "PATTERN (A B{2,5} C) WITHIN 50 DEFINE B AS AVG(B.price) < 0.6, C AS price > 0.6)",
    "truths": "PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, B.is_up AS is_up "
    "PATTERN (A B) WITHIN 20 DEFINE A AS is_up, B AS NOT is_up AND name > 'a')",
}
a, b, c = ("name = 'a'", "name = 'b'", "name = 'c'")
PATTERNS = {
    "followed by": Pattern.begin("a").where(a).followed_by("b").where(b).within(20),
    "any": Pattern.begin("a").where(a).followed_by_any("b").where(b).within(20),
    "times": Pattern.begin("a").where(a).times(2).followed_by("b").where(b).within(20),
    "optional": Pattern.begin("a").where(a).followed_by("b").where(b).optional().followed_by("c").where(c).within(20),
    "not": Pattern.begin("a").where(a).not_followed_by("b").where(b).followed_by("c").where(c).within(20),
    "one or more": Pattern.begin("a").where(a).followed_by("b").where("price > 0.5").one_or_more().within(10),
    "truths of events": Pattern.begin("a").where("is_up").followed_by("b").where("not is_up").within(20),
}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches stay in memory from the first event on."""
    monkeypatch.setattr(rows, "MANY", 0)
    monkeypatch.setattr(flink, "MANY", 0)


def events(number: int, nan: bool = False) -> pa.Table:
    """Events of few keys, one of them NULL; some have no price."""
    draw = random.Random(number)
    price = [draw.choice([None, *(draw.random() for _ in range(6))]) for _ in range(number)]
    if nan:
        price[number // 2] = float("nan")
    columns: dict[str, Any] = {
        "ts": [place // 2 for place in range(number)],
        "k": [draw.choice([1, 2, None]) for _ in range(number)],
        "price": price,
        "name": [draw.choice(["a", "b", "c", "ä", None]) for _ in range(number)],
        "unread": ["x"] * number,
        "is_up": [draw.choice([True, False, None]) for _ in range(number)],
    }
    return pa.table(columns, SCHEMA)


def pieces(table: pa.Table, how: str) -> list[Any]:
    """Dicts, tables, or both by turns."""
    if how == "dicts":
        return table.to_pylist()  # type: ignore[no-any-return]
    tables = [table.slice(start, 29) for start in range(0, table.num_rows, 29)]
    if how == "tables":
        return tables
    found: list[Any] = []
    for number, each in enumerate(tables):
        found += each.to_pylist() if number % 2 else [each]
    return found


def as_rows(found: Any) -> list[str]:
    """Rows that can be compared."""
    listed = found.to_pylist() if isinstance(found, pa.Table) else found
    return [str({name: None if value != value else value for name, value in row.items()}) for row in listed]


def check(query: Any, how: str, nan: bool = False, **options: Any) -> None:
    """What is live is what a batch has, wherever the stream is cut, and the types are those of the batch."""
    table = events(400, nan)
    expected = cepheid.match(table, query, **options)
    live = cepheid.live(query, SCHEMA, **options)
    found, opened, sent = list[str](), 0, pieces(table, how)
    for number, piece in enumerate(sent):
        if number == len(sent) // 2:
            live = cepheid.live(query, SCHEMA, state=live.save(), **options)
        told = live.send(piece)
        opened += live._opened is not None
        if isinstance(told, pa.Table):
            assert told.schema.equals(expected.schema)
        found += as_rows(told)
    assert isinstance(live, SearchLive)
    found += as_rows(live.finish())
    assert sorted(found) == sorted(as_rows(expected))
    assert len(found) > 5
    assert opened > len(sent) // 3, "most events go the short way"


@pytest.mark.some(15)
@pytest.mark.parametrize("how", ["dicts", "tables", "both"])
@pytest.mark.parametrize("name", CLAUSES)
def test_row_patterns_are_what_a_batch_has(name: str, how: str) -> None:
    """Measures of every kind, keys that are NULL, and a column that the clause does not read."""
    check(f"MATCH_RECOGNIZE ({CLAUSES[name]}", how)


@pytest.mark.parametrize("name", ["v-shape", "computed", "all rows", "differences"])
def test_what_is_not_a_number_is_null(name: str) -> None:
    """A table with such a value, and rows of it in matches."""
    check(f"MATCH_RECOGNIZE ({CLAUSES[name]}", "tables", nan=True)


@pytest.mark.parametrize("how", ["dicts", "tables", "both"])
@pytest.mark.parametrize("name", PATTERNS)
def test_flink_patterns_are_what_a_batch_has(name: str, how: str) -> None:
    """Steps with several events, without one, and with none."""
    check(PATTERNS[name], how, partition_by=["k"])


@pytest.mark.some(3)
@pytest.mark.parametrize("how", ["dicts", "tables", "both"])
@pytest.mark.parametrize("clause", ["PATTERN (A B) WITHIN 4", "PATTERN (^ A B) WITHIN 4"])
def test_partitions_that_have_no_rows_for_a_while_begin_again(
    how: str, clause: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many keys of which few are at work at a time: most partitions are forgotten, some of them are kept without rows.

    A clause that asks for the first row of a partition remembers all of them.
    """
    monkeypatch.setattr(pushed, "LEAST", 20)
    draw = random.Random(3)
    table = events(600).set_column(1, "k", pa.array([place // 60 + draw.randrange(4) for place in range(600)]))
    query = f"""MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES A.ts AS begins, B.name AS other
        {clause} DEFINE A AS name < 'b', B AS name > 'a')"""
    live, found = cepheid.live(query, SCHEMA), list[str]()
    for piece in pieces(table, how):
        found += as_rows(live.send(piece))
        assert len(live.held.stream) <= 100
    found += as_rows(live.finish())
    assert sorted(found) == sorted(as_rows(cepheid.match(table, query)))
    assert found


@pytest.mark.parametrize("how", ["dicts", "tables", "both"])
def test_keys_that_kernels_do_not_read_from_tables(how: str) -> None:
    """Python and Arrow hold such a key in different ways."""
    table, day = events(200), pa.timestamp("us")
    table = table.set_column(1, "k", pa.array([place % 3 for place in range(200)]).cast(day))
    query = f"MATCH_RECOGNIZE ({CLAUSES['v-shape']}"
    live, found = cepheid.live(query, table.schema), list[str]()
    for piece in pieces(table, how):
        found += as_rows(live.send(piece))
    found += as_rows(live.finish())
    assert sorted(found) == sorted(as_rows(cepheid.match(table, query)))


def test_a_state_is_saved_of_tables_with_columns_that_a_clause_does_not_read() -> None:
    """The log has the columns that the clause needs; tables with more of them could not be put together."""
    live = cepheid.live(f"MATCH_RECOGNIZE ({CLAUSES['v-shape']}", SCHEMA)
    for piece in pieces(events(400), "tables"):
        live.send(piece)
    assert live.save()


def test_explain_says_how_events_come_in() -> None:
    """Where a live pattern is slow, it says why."""

    def told(query: Any, **options: Any) -> str:
        return cepheid.live(query, SCHEMA, **options).explain().partition("\nLive\n")[2]

    fast = "  incremental: a call goes on where the search stopped\n  kernels read dicts and Arrow tables\n"
    made = "  kernels make the rows of the result"
    assert told(f"MATCH_RECOGNIZE ({CLAUSES['all rows']}") == fast + made
    assert told(PATTERNS["times"], partition_by=["k"]) == fast + made
    assert "a measure aggregates values" in told(f"MATCH_RECOGNIZE ({CLAUSES['aggregates']}")
    looks_ahead = V.replace("B AS price < PREV(price)", "B AS price < NEXT(price)")
    assert "a condition looks at later rows" in told(f"MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS x {looks_ahead}")
    two_texts = V.replace("B AS price < PREV(price)", "B AS name < A.name")
    assert "  replayed: a call takes up" in told(f"MATCH_RECOGNIZE (ORDER BY ts MEASURES A.ts AS x {two_texts}")
    assert "a limit of time" in told(PATTERNS["times"], timeout=5)


@pytest.mark.skipif(COMPILES, reason="compiled kernels are not counted")
def test_rows_of_tables_are_put_down_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most rows whose keys were seen before are, in one call for many of them."""
    put, plain = list[int](), row_step.rows_put
    monkeypatch.setattr(row_step, "rows_put", lambda door: put.append(plain(door)) or put[-1])
    check(f"MATCH_RECOGNIZE ({CLAUSES['texts']}", "tables")
    keyed = sum(put)
    check(f"MATCH_RECOGNIZE ({CLAUSES['no key']}", "tables")
    assert keyed > 100
    assert sum(put) > keyed + 300
    assert max(put) > 10


@pytest.fixture
def tiny_rooms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are too small at first, and what is not needed is forgotten soon."""
    monkeypatch.setattr(pushed, "LEAST", 7)
    for name, room in (("FIRST_ROOM", 2), ("SCRATCH_ROOM", 1), ("RESULT_ROOM", 1)):
        monkeypatch.setattr(row_core, name, room)


def drawn_events(draw: random.Random) -> pa.Table:
    """Events in order, some at one time, of one key, some or many."""
    number, keys = draw.choice([60, 300]), draw.choice([1, 3, 40])
    columns = {
        "ts": sorted(draw.randrange(number) for _ in range(number)),
        "k": [draw.choice([None, *range(keys)]) for _ in range(number)],
        "price": [draw.choice([None, *(draw.random() for _ in range(6))]) for _ in range(number)],
        "name": [draw.choice(["a", "b", "c", "ä", None]) for _ in range(number)],
        "unread": ["x"] * number,
        "is_up": [draw.choice([True, False, None]) for _ in range(number)],
    }
    return pa.table(columns, SCHEMA)


@pytest.mark.some(8)
@pytest.mark.parametrize("name", [*CLAUSES, *PATTERNS])
@pytest.mark.usefixtures("tiny_rooms")
def test_a_stream_that_is_cut_saved_and_searched_anew_anywhere_is_its_table(name: str) -> None:
    """Dicts, lists and tables of several sizes in turn."""
    draw, clause = random.Random(name), CLAUSES.get(name)
    query: Any = f"MATCH_RECOGNIZE ({clause}" if clause else PATTERNS[name]
    options: dict[str, Any] = {} if clause else {"partition_by": ["k"]}
    for _ in range(4):
        table, delay, most = drawn_events(draw), draw.choice([0, 0, 3]), draw.choice([3, 30, 400])
        live = cepheid.live(query, SCHEMA, delay=delay, **options)
        found, at = [], 0
        while at < table.num_rows:
            piece: Any = table.slice(at, draw.choice([1, 1, 2, most, most]))
            at += piece.num_rows
            if piece.num_rows == 1:
                piece = piece.to_pylist()[0]
            elif draw.randrange(3) == 0:
                piece = piece.to_pylist()
            found += as_rows(live.send(piece))
            chance = draw.randrange(30)
            if chance == 0:
                live = cepheid.live(query, SCHEMA, delay=delay, state=live.save(), **options)
            elif chance == 1 and live.held.stream.pushed is not None:
                live.held.stream.pushed.at = None  # the search is lost, and made again from the events
        found += as_rows(live.finish())
        assert sorted(found) == sorted(as_rows(cepheid.match(table, query, **options)))


NOTHING = dict.fromkeys(KINDS)
FALL_AND_RISE = [3.0, 2.0, 1.0, 2.0, 1.0]  # the last of them ends a match, when time has passed it


def about_to_match(name: str) -> Any:
    """A live clause that knows three keys, and reports a match as soon as time passes."""
    live = cepheid.live(f"MATCH_RECOGNIZE ({CLAUSES[name]}", SCHEMA)
    events = [NOTHING | {"ts": 0, "k": key} for key in (2, 3)]
    events += [NOTHING | {"ts": at, "k": 1, "price": price} for at, price in enumerate(FALL_AND_RISE)]
    for event in events:
        assert live.send(event) == []
    return live


@pytest.mark.skipif(not COMPILES, reason="plain kernels take the lock")
@pytest.mark.parametrize("name", ["v-shape", "computed"])
@pytest.mark.parametrize("comes", ["another event", "a list", "a table", "save"])
def test_an_event_that_another_call_overtakes_comes_after_it(name: str, comes: str) -> None:
    """A kernel may leave rows of the result to Python: until it has the lock, nothing has happened."""
    live = about_to_match(name)
    door, last = live._door, NOTHING | {"ts": 9, "k": 2}
    door.door[pattern_door.TELL_AT] = 0
    assert door.call(last, [], door.at, pattern_door.ALONE) > 0, "the match is found"
    other = NOTHING | {"ts": 9, "k": 3}
    found: list[Any] = []
    match comes:
        case "another event":
            found += live.send(other)
        case "a list":
            found += live.send([other])
        case "a table":
            found += live.send(pa.Table.from_pylist([other], SCHEMA)).to_pylist()
        case _:
            live = cepheid.live(f"MATCH_RECOGNIZE ({CLAUSES[name]}", SCHEMA, state=live.save())
    before = live.numbers.events
    assert before == {"save": 0}.get(comes, 2 + len(FALL_AND_RISE) + 1)
    found += live.send(last)
    assert live.numbers.events == before + 1
    assert len(found) == live.numbers.matches == 1


@pytest.mark.skipif(not COMPILES, reason="plain kernels take the lock")
def test_an_event_at_the_address_of_one_that_was_broken_off_is_another_one() -> None:
    """Ctrl-C may come between the kernel and the lock; Python gives the memory of the first event to the second."""
    live = about_to_match("computed")
    door, broken = live._door, NOTHING | {"ts": 9, "k": 2}
    assert door.call(broken, [], door.at, pattern_door.ALONE) > 0
    broken |= {"ts": 11, "k": 3, "price": 7.0}  # the same address
    assert len(live.send(broken)) == 1
    assert live.held.stream.waiting.to_pylist() == [broken]


@pytest.mark.skipif(not COMPILES, reason="plain kernels take the lock")
@pytest.mark.parametrize("delay", [0, 5])
@pytest.mark.parametrize("query", [f"MATCH_RECOGNIZE ({CLAUSES['v-shape']}", PATTERNS["any"]], ids=["rows", "Flink"])
def test_ctrl_c_after_an_event_was_taken_in_takes_it_back_alone(query: Any, delay: int) -> None:
    """Whatever the caller does not hear of has not happened; with a delay, events come out of order."""
    options: dict[str, Any] = {} if isinstance(query, str) else {"partition_by": ["k"]}
    table, draw, broken = events(400), random.Random(1), 0
    table = table.set_column(0, "ts", pa.array(range(400)))  # the order of events of one time is that of their arrival
    live, found = cepheid.live(query, SCHEMA, delay=delay, **options), list[str]()
    for event in sorted(table.to_pylist(), key=lambda each: each["ts"] + draw.randrange(delay + 1)):
        door = live._door
        if draw.random() < 0.3 and live._opened is live._state:
            call = door.call

            def interrupted(*given: Any, call: Any = call) -> int:
                call(*given)
                raise KeyboardInterrupt

            door.call = interrupted
            with pytest.raises(KeyboardInterrupt):
                live.send(event)
            door.call = call if door.call is interrupted else door.call
            broken += 1
        found += as_rows(live.send(event))
    found += as_rows(live.finish())
    assert broken > 50
    assert live.numbers.events == table.num_rows
    assert sorted(found) == sorted(as_rows(cepheid.match(table, query, **options)))


@pytest.mark.parametrize("query", [f"MATCH_RECOGNIZE ({CLAUSES['v-shape']}", PATTERNS["any"]], ids=["rows", "Flink"])
def test_threads_that_send_at_once_lose_nothing(query: Any) -> None:
    """Each has a part of the events, and all of these wait for the others."""
    options: dict[str, Any] = {} if isinstance(query, str) else {"partition_by": ["k"]}
    table = events(2_000).filter(pc.field("k") > 0)
    table = table.set_column(0, "ts", pa.array(range(table.num_rows)))  # as they come is one order only
    live, found = cepheid.live(query, SCHEMA, delay=table.num_rows, **options), list[str]()

    def send(first: int) -> None:
        for event in table.slice(first, table.num_rows // 4).to_pylist():
            found.extend(as_rows(live.send(event)))

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=send, args=(table.num_rows // 4 * number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    sent = table.slice(0, table.num_rows // 4 * 4)
    found += as_rows(live.finish())
    assert live.numbers.events == sent.num_rows
    assert sorted(found) == sorted(as_rows(cepheid.match(sent, query, **options)))


@pytest.mark.skipif(not COMPILES, reason="plain kernels take the lock")
def test_threads_in_order_decide_each_match_once() -> None:
    """Threads take turns event by event, so that matches are found all along."""
    query = f"MATCH_RECOGNIZE ({CLAUSES['v-shape']}"
    table = events(2_000)
    table = table.set_column(0, "ts", pa.array(range(2_000)))
    live, rows_left, found = cepheid.live(query, SCHEMA), deque(table.to_pylist()), list[str]()
    turn = threading.Lock()

    def send() -> None:
        while True:
            with turn:
                if not rows_left:
                    return
                event = rows_left.popleft()
                told = live.send(event)
            found.extend(as_rows(told))

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found += as_rows(live.finish())
    assert sorted(found) == sorted(as_rows(cepheid.match(table, query)))
