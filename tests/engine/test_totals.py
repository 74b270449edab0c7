"""SUMMARISE: totals equal the grouped listing, on drawn queries and streams, whether or not they are carried along."""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import cepheid
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import ordered
from cepheid.engine.find import BEGINNING
from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.reference.totals import totals
from cepheid.engine.search.runs.totals import total as add_up_buffer
from cepheid.errors import LimitError
from cepheid.language import syntax as s
from cepheid.language.sase.parse import parse
from cepheid.plan.physical import Plan
from cepheid.runners import totals as runner
from cepheid.runners.totals import find_totals, listing_needed, totals_table
from strategies.agreement import bound_to
from strategies.queries import queries, streams
from strategies.totals import assert_same_totals, summarised

LONG_AS_PYTHON = pytest.mark.skipif(not COMPILES, reason="a million matches are listed; the compiled pass has it")


def assert_totals_agree(query: s.QuerySyntax, table: pa.Table, after: int = BEGINNING, until: int = NEVER) -> None:
    bound = bound_to(query, table)
    assert bound.summary is not None
    events = ordered(table, bound.schema)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    found = find_totals(plan, bound.summary, events, after, until)
    rows = totals_table(bound, events, found, bound.summary).to_pylist()
    event("listed" if listing_needed(plan) else "carried along")
    expected = totals(Plan(bound, "reference"), bound.summary, events, after, until)
    assert_same_totals(bound.summary, rows, expected)


@given(data=st.data())
def test_totals_equal_the_grouped_listing(data: Any) -> None:
    drawn = queries(strategy=s.Strategy.SKIP_TILL_ANY, max_conditions=2, returns=False, output=False)
    query = data.draw(summarised(data.draw(drawn)))
    assert_totals_agree(query, data.draw(streams(max_size=10)))


@given(data=st.data())
def test_they_do_where_conditions_tie_neighbours(data: Any) -> None:
    drawn = queries(
        strategy=s.Strategy.SKIP_TILL_ANY,
        aggregates=False,
        disjunction=False,
        max_conditions=2,
        returns=False,
        output=False,
    )
    query = data.draw(summarised(data.draw(drawn)))
    assert_totals_agree(query, data.draw(streams(max_size=10)))


@given(data=st.data())
def test_they_do_under_every_strategy_and_output(data: Any) -> None:
    query = data.draw(summarised(data.draw(queries(returns=False))))
    assert_totals_agree(query, data.draw(streams(max_size=9)))


@given(data=st.data())
def test_intervals_add_up(data: Any) -> None:
    query = data.draw(summarised(data.draw(queries(strategy=s.Strategy.SKIP_TILL_ANY, returns=False, output=False))))
    after = data.draw(st.integers(-2, 25))
    assert_totals_agree(query, data.draw(streams(max_size=9)), after, after + data.draw(st.integers(1, 10)))


@given(data=st.data())
def test_they_do_where_few_matches_are_listed_first(data: Any) -> None:
    query = data.draw(
        summarised(data.draw(queries(strategy=s.Strategy.SKIP_TILL_ANY, kleene=False, returns=False, output=False)))
    )
    table = data.draw(streams(max_size=10))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "FEW_STEPS", 0)
        patch.setattr(runner, "LISTED", data.draw(st.sampled_from([1, 4, 1000])))
        assert_totals_agree(query, table)


TIED = [
    "PATTERN SEQ(A a, B b) WHERE a.x < b.x - 950 WITHIN 200",
    "PATTERN SEQ(A a, !(C c), B b) WHERE a.x = b.x WITHIN 200",
    "PATTERN SEQ(A a, B b, C c) WHERE a.x = c.x AND b.x = c.x WITHIN 200",
]


@pytest.mark.parametrize("text", TIED)
def test_few_matches_are_counted_with_the_work_of_listing_them(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "FEW_STEPS", 1_000)
    table = pa.table(
        {"ts": range(600), "type": list("ABCABD") * 100, "x": [number * 389 % 1_000 for number in range(600)]}
    )
    listed = cepheid.match(table, text)
    counted = cepheid.match(table, text + " SUMMARISE count(*) AS n")
    assert counted["n"].to_pylist() == [listed.num_rows]
    work = [json.loads(found.schema.metadata[b"cepheid"])["counters"]["evaluations"] for found in (counted, listed)]
    assert work[0] <= work[1]


RISING = "PATTERN SEQ(A+ a[], B b) WHERE a[i].x > a[i-1].x WITHIN 100000"


def rising(number: int) -> pa.Table:
    """So many A that rise all along, and a B."""
    kinds = ["A"] * number + ["B"]
    return pa.table({"ts": range(number + 1), "type": kinds, "x": range(number + 1)})


def test_counts_are_exact_to_38_digits() -> None:
    assert cepheid.match(rising(126), RISING, output="count") == 2**126 - 1
    found = cepheid.match(rising(100), f"{RISING} SUMMARISE count(*) AS n, sum(a.x) AS v").to_pylist()
    assert found == [{"n": Decimal(2**100 - 1), "v": Decimal(2**99 * (99 * 100 // 2))}]


def test_beyond_38_digits_the_error_names_the_approximation() -> None:
    with pytest.raises(LimitError, match="38 digits") as caught:
        cepheid.match(rising(130), RISING, output="count")
    assert "approximate_count" in str(caught.value)
    text = f"{RISING} SUMMARISE approximate_count(*) AS n"
    assert cepheid.match(rising(700), text)["n"].to_pylist() == [pytest.approx(2.0**700)]


def test_what_is_sure_to_have_more_than_38_digits_is_not_added_up_to_the_end() -> None:
    text = "PATTERN SEQ((A a | B b)+, A c) WITHIN 1000 SUMMARISE count(*) AS n"
    assert cepheid.match(rising(100), text)["n"].to_pylist() == [Decimal(2**100 - 101)]
    with pytest.raises(LimitError, match="n has more than 38 digits;"):  # of how many matches nobody knows by then
        cepheid.match(rising(700), text)


def test_no_match_is_one_row_without_groups_and_none_with() -> None:
    events = pa.table({"ts": [1], "type": ["A"], "x": [1]})
    found = cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [x] SUMMARISE count(*) AS n, sum(a.x) AS v")
    assert found.to_pylist() == [{"n": Decimal(0), "v": None}]
    assert cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [x] SUMMARISE count(*) AS n BY x").num_rows == 0


def test_buckets_of_timestamps() -> None:
    minutes = [0, 3, 9, 12, 14]
    times = pa.array([minute * 60_000_000 for minute in minutes], pa.timestamp("us"))
    events = pa.table({"ts": times, "type": list("AABAB"), "x": [1, 2, 3, 4, 5]})
    text = "PATTERN SEQ(A a, B b) WITHIN 8 minutes SUMMARISE count(*) AS n, max(b.ts) AS last EVERY 10 minutes"
    found = cepheid.match(events, text).to_pylist()
    assert [(row["bucket"].minute, row["n"], row["last"].minute) for row in found] == [(0, 1, 9), (10, 1, 14)]


def test_too_many_matches_are_counted_before_they_are_given_up() -> None:
    with pytest.raises(LimitError, match=r"there are 1,073,741,823 matches.*SUMMARISE"):
        cepheid.match(rising(30), RISING, max_matches=100)


@pytest.mark.parametrize("text", ["PATTERN SEQ(A+ a[], B b)", "PATTERN SEQ((A a){1,}, B b)"])
@pytest.mark.parametrize("limit", [100, pytest.param(1_000_000, marks=LONG_AS_PYTHON)])
def test_clauses_that_would_leave_few_are_named_with_what_they_leave(limit: int, text: str) -> None:
    """Each number is what the same events give with the clause, be the limit reached or seen to be out of reach."""
    with pytest.raises(LimitError, match="there are 1,073,741,823 matches") as caught:
        cepheid.match(rising(30), text, max_matches=limit)
    told = dict(re.findall(r"((?:skip_till|OUTPUT|WITHIN)[^,;]*?) leaves ([0-9,]+)", str(caught.value)))
    assert {"skip_till_next_match", "OUTPUT MAXIMAL", "OUTPUT NON-OVERLAP"} < told.keys()
    for clause, left in told.items():
        changed = f"{text} WHERE {clause} {{ }}" if clause.startswith("skip") else f"{text} {clause}"
        assert f"{cepheid.match(rising(30), changed).num_rows:,}" == left.rstrip(",")


def test_what_cannot_be_counted_says_why() -> None:
    text = "PATTERN SEQ(A a, A b, A c, A d) WHERE b.x < d.x"
    with pytest.raises(
        LimitError, match=r"the number of matches is not known: counting needs the list of matches \(b.x < d.x"
    ):
        cepheid.match(rising(30), text, max_matches=100)
    with pytest.raises(LimitError, match=r"there are more than 10\^38 \(about 1.1e\+301"):
        cepheid.match(rising(1_000), "PATTERN SEQ(A+ a[], B b)", max_matches=100)


@given(data=st.data())
def test_totals_along_the_buffer_of_runs_equal_the_grouped_listing(data: Any) -> None:
    query = data.draw(summarised(data.draw(queries(returns=False, output=False))))
    table = data.draw(streams(max_size=9))
    bound = bound_to(query, table)
    assert bound.summary is not None
    events = ordered(table, bound.schema)
    plan = Plan(bound, "runs", partition=bound.equivalence)
    after = data.draw(st.one_of(st.just(BEGINNING), st.integers(-2, 20)))
    found = add_up_buffer(plan, bound.summary, events, after, NEVER)
    rows = totals_table(bound, events, found, bound.summary).to_pylist()
    expected = totals(Plan(bound, "reference"), bound.summary, events, after, NEVER)
    assert_same_totals(bound.summary, rows, expected)


def test_long_groups_are_not_listed_where_conditions_read_what_is_lost() -> None:
    """2^60 matches, with an aggregate over the whole group: the runs that agree on it are one."""
    text = "PATTERN SEQ(A+ a[], B b) WHERE count(a[]) > 2 WITHIN 1000 SUMMARISE count(*) AS n, count(a) AS events"
    found = cepheid.match(rising(60), text).to_pylist()
    small = 60 + 60 * 59 // 2
    assert found == [{"n": Decimal(2**60 - 1 - small), "events": Decimal(60 * 2**59 - 60 - 60 * 59)}]


def test_without_kleene_too_many_to_list_are_not_too_many_to_add_up() -> None:
    text = "PATTERN SEQ(A a, A b, A c, A d, B e) WHERE a.x + b.x + c.x < d.x WITHIN 1000 SUMMARISE count(*) AS n"
    listed = cepheid.match(rising(14), text)
    assert cepheid.match(rising(14), text, max_matches=10) == listed
    assert listed["n"].to_pylist() == [cepheid.match(rising(14), text.partition(" SUMMARISE")[0]).num_rows]


@given(data=st.data())
def test_they_do_in_sliding_windows(data: Any) -> None:
    """Where only the window ties events together, it slides over blocks: several of them in each stream."""
    drawn = queries(
        strategy=s.Strategy.SKIP_TILL_ANY,
        negation=False,
        window=True,
        max_conditions=data.draw(st.integers(0, 1)),
        returns=False,
        output=False,
    )
    query = data.draw(summarised(data.draw(drawn)))
    assert query.within is not None
    query = replace(query, within=replace(query.within, length=data.draw(st.integers(1, 9))))
    assert_totals_agree(query, data.draw(streams(min_size=4, max_size=10)))


ORDERED = (
    "SEQ(A+ a[], B b) WHERE a[i].x {} a[i-1].x",
    "SEQ(A+ a[], B b) WHERE a[i-1].y {} a[i].x AND a[a.LEN].x {} b.x",
    "SEQ(A a, B b, A c) WHERE a.x {} b.x AND b.y {} c.x",
    "SEQ(A a, B+ b[]) WHERE b[1].x {} a.x AND b[i-1].y {} b[i].x",
    "SEQ(A a, !(B n), A b) WHERE a.x {} b.x",
    "SEQ(A a, B b, A c) WHERE a.x {} b.x",
    "SEQ(A a, B b, A c) WHERE a.x {} c.x",
    "SEQ(A a, B b, B+ c[]) WHERE a.x {} c[1].x AND c[i].y {} a.y",
    "SEQ(A+ a[], B b, A c) WHERE a[1].x {} b.x",
)


@given(data=st.data())
def test_they_do_where_one_comparison_orders_neighbours(data: Any) -> None:
    """What an event may follow is then a prefix in the order of values; NULL follows nothing, equal values are ties.

    What reads the first event alone is asked once, and events that end all matches alike are added up together.
    """
    shape = data.draw(st.sampled_from(ORDERED))
    text = "PATTERN " + shape.format(
        *data.draw(st.lists(st.sampled_from(["<", "<=", ">", ">="]), min_size=2, max_size=2))
    )
    text += data.draw(st.sampled_from(["", " WITHIN 4", " WITHIN 5 EVENTS", " WITHIN 100"]))
    text += " SUMMARISE count(*) AS n, sum(a.x) AS v, min(b.y) AS low"
    text += ", sum(c.x) AS w, avg(c.y) AS mean, max(c.y) AS high" * (" c" in shape)
    text += data.draw(st.sampled_from(["", " EVERY 3"]))
    numbers = st.one_of(st.none(), st.integers(0, 4))
    rows = data.draw(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("AB"), numbers, numbers), max_size=10))
    columns: dict[str, list[Any]] = {"ts": [], "type": [], "x": [], "y": []}
    for gap, kind, x, y in rows:
        for name, value in zip(columns, (gap + max(columns["ts"], default=0), kind, x, y), strict=True):
            columns[name].append(value)
    kinds = (pa.int64(), pa.string(), *data.draw(st.sampled_from([(pa.int64(),) * 2, (pa.float64(),) * 2])))
    table = pa.table({name: pa.array(columns[name], kind) for name, kind in zip(columns, kinds, strict=True)})
    assert_totals_agree(parse(text), table)


def test_windows_that_slide_keep_large_sums_exact() -> None:
    """Matches of 60 A in a window of 60, of which half lie in the block before; values have both signs."""
    number = 150
    kinds = ["B" if place % 30 == 29 else "A" for place in range(number)]
    values = [(-1) ** place * place * 10**6 for place in range(number)]
    events = pa.table({"ts": range(number), "type": kinds, "x": values})
    text = "PATTERN SEQ(A+ a[], B b) WITHIN 60 SUMMARISE count(*) AS n, sum(a.x) AS v, min(a.x) AS low EVERY 30"
    found = cepheid.match(events, text).to_pylist()
    expected = []
    for end in range(29, number, 30):
        inside = [values[place] for place in range(max(0, end - 59), end) if kinds[place] == "A"]
        halves = Decimal(2 ** (len(inside) - 1))
        expected.append((Decimal(2 ** len(inside) - 1), halves * sum(inside), min(inside)))
    assert [(row["n"], row["v"], row["low"]) for row in found] == expected


def test_events_that_end_matches_together_keep_large_sums_exact() -> None:
    """Sums of such events may be beyond 64 bits, before and after they are taken by each match."""
    values = [2**62, 2**62, -(2**63), 2**63 - 1, 2**62, 5]
    kinds = ["A", "A", "B", *"CCCCCC", "B", "C"]
    events = pa.table({"ts": range(len(kinds)), "type": kinds, "x": [1, 2, 0, *values, 0, 7]})
    text = "PATTERN SEQ(A a, B b, C c) WHERE a.x > b.x WITHIN 100 SUMMARISE count(*) AS n, sum(c.x) AS v, sum(a.x) AS w"
    (found,) = cepheid.match(events, text).to_pylist()
    assert found == {"n": Decimal(16), "v": Decimal(2 * sum(values) + 4 * 7), "w": Decimal(3 * (6 + 2))}


IN_SHORT_WINDOWS = (
    "SEQ(A+ a[], B? b, C c)",
    "SEQ((A a, B b)+, C c)",
    "SEQ(A a, (B b | C c)+, D d)",
    "SEQ(AND(A+ a[], B b), C? c, D d) WHERE partition_contiguity { }",
    "SEQ((A a | B b)+, C c) WHERE skip_till_next_match { }",
    "SEQ(A+ a[], B+ b[]) WHERE a.LEN < 4",
)


@pytest.mark.filterwarnings("ignore::cepheid.TiesWarning")
@pytest.mark.parametrize("window", ["5", "9", "7 EVENTS"])
@pytest.mark.parametrize("pattern", IN_SHORT_WINDOWS)
def test_paths_that_cross_from_block_to_block_are_added_up_once(pattern: str, window: str) -> None:
    draw = random.Random(pattern + window)
    times = sorted(draw.choices(range(60), k=60))
    columns = {"x": draw.choices(range(8), k=60), "y": draw.choices([0.5, 1.0, -3.0], k=60)}
    table = pa.table({"ts": times, "type": draw.choices("AABBCD", k=60), **columns})
    text = f"PATTERN {pattern} WITHIN {window}"
    listed = cepheid.match(table, text).column("a").to_pylist()
    taken = [event for group in listed for event in (group if isinstance(group, list) else [group]) if event]
    totals = "SUMMARISE count(*) AS n, count(a) AS k, sum(a.x) AS s, max(a.x) AS top, min(a.y) AS low, sum(a.y) AS part"
    (found,) = cepheid.match(table, f"{text} {totals}").to_pylist()
    x, y = [event["x"] for event in taken], [event["y"] for event in taken]
    assert found == {"n": len(listed), "k": len(x), "s": sum(x), "top": max(x), "low": min(y), "part": sum(y)}
