"""Imprecise times as they come in: bounds, half-widths, units, probabilities, and what makes no sense."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.data.instants import instants_of, with_bounds
from cepheid.engine.data.table import late_arrivals
from cepheid.engine.find import find
from cepheid.errors import CepheidError, DataError, QueryError
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan
from strategies.intervals import ROLES, described, in_order

NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)


def table_of(lower: list[Any], upper: list[Any], **more: Any) -> pa.Table:
    kinds = pa.array(["A"] * len(lower), pa.string())
    return pa.table({"type": kinds, "lower": pa.array(lower), "upper": pa.array(upper), **more})


def read(table: pa.Table, **options: Any) -> Any:
    return instants_of(table, Schema.from_arrow(table.schema, **ROLES), options)


# --- what makes no sense --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("table", "options", "column", "row", "told"),
    [
        (table_of([1, 5], [2, 4]), {}, "lower", 1, "the lower bound 5 is above the upper bound 4"),
        (table_of([1, None], [2, 4]), {}, "lower", 1, "NULL"),
        (table_of([1, 2], [None, 4]), {}, "upper", 0, "NULL"),
        (table_of([1, 2], [2, 20_000]), {}, "upper", 1, "19,999 instants is too long; the limit is 10,000"),
        (table_of([1, 2], [2, 9]), {"max_width": 5}, "upper", 1, "8 instants is too long; the limit is 5"),
        (table_of([0], [1], odds=[[0.5, 0.4]]), {"probabilities": "odds"}, "odds", 0, "sum to 0.9"),
        (table_of([0], [1], odds=[[0.5, 0.500002]]), {"probabilities": "odds"}, "odds", 0, "sum to 1.000002"),
        (table_of([0, 2**62], [1, 2**62]), {}, "lower", 1, "out of range"),
        (table_of([-(2**63)], [2**63 - 1]), {}, "lower", 0, "the time -9223372036854775808 is out of range"),
        (
            table_of([0, 0], [1, 1], odds=[None, [1.5, -0.5]]),
            {"probabilities": "odds"},
            "odds",
            1,
            "probability of -0.5",
        ),
        (table_of([0], [1], odds=[[1.0]]), {"probabilities": "odds"}, "odds", 0, "1 probabilities for 2 instants"),
        (table_of([0], [1], odds=[[0.5, None]]), {"probabilities": "odds"}, "odds", 0, "NULL"),
        (table_of([0], [1], odds=[7]), {"probabilities": "odds"}, "odds", None, "must list the probability"),
    ],
)
def test_bad_input_names_column_and_row(table: pa.Table, options: Any, column: str, row: int | None, told: str):
    with pytest.raises(DataError) as raised:
        read(table, **options)
    assert (raised.value.column, raised.value.row) == (column, row)
    assert told in str(raised.value)


@pytest.mark.parametrize(
    ("lower", "upper", "odds", "told"),
    [
        ([4, 5, 1], [4, 4, 2], [None] * 3, "column 'lower', row 1: the lower bound 5 is above the upper bound 4"),
        ([4, None, 1], [4, 4, 2], [None] * 3, "column 'lower', row 1: .*NULL in 1 of 3 rows"),
        ([4, 3, 1], [4, None, 2], [None] * 3, "column 'upper', row 1: .*NULL in 1 of 3 rows"),
        ([4, 3, 1], [4, 90_000, 2], [None] * 3, "column 'upper', row 1: an interval of 89,998 instants is too long"),
        ([4, 3, 1], [4, 4, 2], [None, [0.6, 0.5], None], "column 'odds', row 1: the probabilities sum to 1.1"),
        ([4, 3, 1], [4, 4, 2], [None, [0.6], None], "column 'odds', row 1: 1 probabilities for 2 instants"),
        ([4, 3, 1], [4, 4, 2], [None, [0.6, None], None], "column 'odds', row 1: a probability that is NULL"),
    ],
)
@pytest.mark.parametrize("engine", ["auto", "points", "reference"])
def test_a_call_with_bad_input_names_the_row_as_the_caller_counts_it(
    lower: list[Any], upper: list[Any], odds: list[Any], told: str, engine: str
):
    table = table_of(lower, upper, odds=pa.array(odds, pa.list_(pa.float64())))
    with pytest.raises(DataError, match=told):
        cepheid.match(table, "PATTERN SEQ(A a, A b) WITHIN 7", engine=engine, probabilities="odds", **ROLES)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"confidence": 2}, "confidence=2 is not a number from 0 to 1"),
        ({"confidence": "sure"}, "confidence='sure' is not a number from 0 to 1"),
        ({"max_width": 0}, "max_width=0 is not a number of at least 1"),
        ({"max_cost": "much"}, "max_cost='much' is not a number of at least 1"),
        ({"tolerance": -1}, "tolerance=-1 is not a number from 0 to 1"),
        ({"unit": 0}, "unit=0 is not a whole number of steps"),
        ({"lower": None, "upper": None, "confidence": 0.5}, "confidence is for imprecise times; pass lower="),
        ({"lower": None, "upper": None, "probabilities": "odds"}, "probabilities is for imprecise times"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], told: str):
    table = pa.table({"ts": [1, 2], "type": ["A", "A"], "lower": [1, 2], "upper": [1, 2]})
    with pytest.raises(CepheidError, match=told):
        cepheid.match(table, "PATTERN SEQ(A a, A b) WITHIN 7", **{**ROLES, **options})


def test_the_bounds_are_of_one_kind():
    table = table_of([1], [NOON])
    with pytest.raises(
        DataError, match="the bounds have two types: column 'lower' is int64, column 'upper' is timestamp"
    ):
        cepheid.match(table, "PATTERN SEQ(A a, A b)", **ROLES)


@pytest.mark.parametrize("engine", ["auto", "sequence", "reference"])
def test_the_most_confident_are_asked_for_at_imprecise_times_only(engine: str):
    table = pa.table({"ts": [1, 2], "type": ["A", "A"]})
    with pytest.raises(QueryError, match="TOP k BY CONFIDENCE needs imprecise times"):
        cepheid.match(table, "PATTERN SEQ(A a, A b) WITHIN 7 OUTPUT TOP 1 BY CONFIDENCE", engine=engine)


def test_an_uncertainty_for_an_unknown_type_is_an_error():
    table = pa.table({"ts": [1, 2], "type": ["CPU", "Start"]})
    text = "PATTERN SEQ(Start a, Stop b) WITHIN 7"
    assert cepheid.match(table, text, uncertainty={"CPU": 2, "Stop": 1}).num_rows == 0
    with pytest.raises(DataError, match=r"uncertainty names the type 'Strat', .* did you mean 'Start'"):
        cepheid.match(table, text, uncertainty={"Strat": 2})
    with pytest.raises(DataError, match=r"uncertainty names the type 7, .* the types are CPU, Start, Stop"):
        cepheid.match(table, text, uncertainty={7: 2})


def test_times_at_the_edge_of_64_bits_are_an_error_where_they_would_not_fit():
    with pytest.raises(DataError, match=r"column 'ts', row 1: the time .* is out of range"):
        with_bounds(pa.table({"ts": [0, 2**63 - 1]}), 3)
    with pytest.raises(DataError, match="is too long"):
        with_bounds(pa.table({"ts": [0]}), 2**63)


def test_probabilities_may_be_off_by_rounding():
    odds = [[0.3333333, 0.3333333, 0.3333333]]
    found = read(table_of([0], [2], odds=odds), probabilities="odds")
    assert found.weights.tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)


def test_roles_that_are_missing_or_do_not_fit():
    with pytest.raises(DataError, match="no column 'odd' for the probabilities"):
        read(table_of([0], [1]), probabilities="odd")
    table = table_of([0], [1])
    with pytest.raises(DataError, match="needs both bounds"):
        instants_of(table, Schema.from_arrow(table.schema, lower="lower"), {})
    with pytest.raises(DataError, match="tiebreak"):
        instants_of(table, Schema.from_arrow(table.schema, tiebreak=("type",), **ROLES), {})


def test_a_window_must_be_a_whole_number_of_units():
    table = table_of([0], [1])
    bound = cepheid.query("PATTERN SEQ(A a, A b) WITHIN 7").bind(Schema.from_arrow(table.schema, **ROLES))
    for engine in ("intervals", "points"):
        with pytest.raises(DataError, match="not a whole number of units of 2"):
            find(Plan(bound, engine, options={"unit": 2}), in_order(bound, table))


# --- one time and how far it may be off -----------------------------------------------------------------------------


def test_half_widths_by_type():
    times = [NOON, NOON + timedelta(seconds=1.04), NOON + timedelta(seconds=1.06)]
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "type": ["CPU", "CompetingTables", "Login"]})
    bounded = with_bounds(table, {"CPU": "7.5 s", "CompetingTables": timedelta(seconds=0.5)}, unit="0.1 s")
    seconds = [
        [(row[name] - NOON).total_seconds() for name in (bounded.lower, bounded.upper)]
        for row in bounded.table.to_pylist()
    ]
    assert seconds == [[-7.5, 7.5], [0.5, 1.5], [1.1, 1.1]]
    assert (bounded.lower, bounded.upper, bounded.step) == ("ts_lower", "ts_upper", 100_000)


def test_a_half_width_for_all_events_is_rounded_up():
    bounded = with_bounds(pa.table({"t": [14, 16]}), 7, time="t", type=None, unit=5)
    assert bounded.table["t_lower"].to_pylist() == [5, 5]
    assert bounded.table["t_upper"].to_pylist() == [25, 25]


@pytest.mark.parametrize(
    ("uncertainty", "unit", "told"),
    [
        ("7.5 s", None, "not known what one step"),
        ("soon", None, "neither a length of time nor a column"),
        ("3 fortnights", None, "no time unit 'fortnights'"),
        (-1, None, "is negative"),
        (float("nan"), None, "not a length of time"),
        ([1], None, "not a length of time"),
        (1, 0.5, "not a whole number of steps"),
        ({"A": 1}, None, "needs a column of types"),
    ],
)
def test_lengths_that_make_no_sense(uncertainty: Any, unit: Any, told: str):
    with pytest.raises(DataError, match=told):
        with_bounds(pa.table({"ts": [1, 2]}), uncertainty, unit=unit)


def test_a_timestamp_needs_a_unit_with_its_uncertainty():
    table = pa.table({"ts": pa.array([NOON], pa.timestamp("us"))})
    with pytest.raises(DataError, match="needs a unit, because the time is a timestamp"):
        with_bounds(table, 3)
    with pytest.raises(DataError, match="no column 'when'"):
        with_bounds(table, "3 s", time="when")
    with pytest.raises(DataError, match="makes a column 'ts_lower'"):
        with_bounds(table.append_column("ts_lower", table["ts"]), "3 s")


def test_instants_far_apart_are_found_as_in_units():
    """The same story in microseconds with a unit of a second, and in seconds."""
    text = "PATTERN SEQ(A a, B b) WHERE skip_till_next_match(a, b) {{ }} WITHIN {}"
    kinds, lower, upper = ["A", "B", "B", "A"], [0, 2, 1, 4], [3, 5, 4, 6]
    found = []
    for scale, window in ((1, "4"), (1_000_000, "4000000")):
        table = pa.table(
            {"type": kinds, "lower": [t * scale for t in lower], "upper": [t * scale + scale // 2 for t in upper]}
        )
        bound = cepheid.query(text.format(window)).bind(Schema.from_arrow(table.schema, **ROLES))
        plan = Plan(bound, "intervals", options={"unit": scale})
        result = described(find(plan, in_order(bound, table)))
        found.append({key: (e // scale, t // scale, round(p, 12)) for key, (_, e, t, p) in result.items()})
    assert found[0] == found[1]
    assert len(found[0]) >= 2


# --- arrival --------------------------------------------------------------------------------------------------------


def test_late_arrivals_are_those_surely_before_something_seen():
    table = table_of([0, 10, 4, 9, 3], [5, 12, 9, 30, 10])
    schema = Schema.from_arrow(table.schema, **ROLES)
    assert late_arrivals(table, schema).tolist() == [False, False, True, False, False]
    assert late_arrivals(table.slice(0, 0), schema).tolist() == []


def test_late_arrivals_are_counted_and_still_used():
    table = pa.table({"type": ["B", "A"], "lower": [5, 1], "upper": [7, 3]})
    bound = cepheid.query("PATTERN SEQ(A a, B b)").bind(Schema.from_arrow(table.schema, **ROLES))
    for engine in ("intervals", "points"):
        found = find(Plan(bound, engine), in_order(bound, table))
        assert (len(found), found.counters["late"]) == (1, 1)
