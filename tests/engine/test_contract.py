"""The contract of engines, for every engine in the registry: a new one is tested by being listed there.

Run as plain Python the queries are drawn, too. Compiled, they come from a list (contract/shapes.py), since each new
query costs a compilation, and the streams are drawn.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cepheid.engine import engines
from cepheid.engine.engines import ENGINES, FLINK_ENGINES, ROW_ENGINES, Engine
from contract import flink, properties, rows
from contract.cases import cases
from strategies.rows import CONDITIONS

# Forecasts have queries of their own (tests/model/test_forecast_queries.py): no other query runs on that engine.
EVERY_ENGINE = pytest.mark.parametrize("name", [name for name, engine in ENGINES.items() if not engine.forecasts])
EVERY_FLINK_ENGINE = pytest.mark.parametrize("name", FLINK_ENGINES)
EVERY_ROW_ENGINE = pytest.mark.parametrize("name", ROW_ENGINES)
CUTS = st.lists(st.integers(-5, 30), max_size=4)
# Agreement has the cases of the profile for each engine, and compiled no fewer than ten, which cost no new compilation.
# Of every other property a long run has so many over all engines together, and a short one some for each.
WANTED = settings().max_examples
drawn = settings(max_examples=max(WANTED, 10), suppress_health_check=list(HealthCheck))
shared = settings(drawn, max_examples=min(WANTED, 10) if WANTED < 100 else -(-WANTED // len(ENGINES)))


@EVERY_ENGINE
@drawn
@given(data=st.data())
def test_it_agrees_with_the_reference(name: str, data: Any) -> None:
    properties.agrees_with_the_reference(data.draw(cases(ENGINES[name])), name)


@EVERY_ENGINE
@shared
@given(data=st.data(), cuts=CUTS)
def test_it_can_be_cut_anywhere(name: str, data: Any, cuts: list[int]) -> None:
    properties.can_be_cut_anywhere(data.draw(cases(ENGINES[name])), name, cuts)


@EVERY_ENGINE
@shared
@given(data=st.data(), cuts=CUTS)
def test_retained_events_are_enough(name: str, data: Any, cuts: list[int]) -> None:
    properties.retained_events_are_enough(data.draw(cases(ENGINES[name], window=True)), name, cuts)


@EVERY_ENGINE
@shared
@given(data=st.data())
def test_it_takes_every_kind_of_table(name: str, data: Any) -> None:
    properties.takes_every_kind_of_table(data.draw(cases(ENGINES[name])), name)


@EVERY_ENGINE
@shared
@given(data=st.data())
def test_it_streams_like_a_batch(name: str, data: Any) -> None:
    properties.streams_like_a_batch(data.draw(cases(ENGINES[name], window=True)), name, data.draw)


@EVERY_FLINK_ENGINE
@drawn
@given(case=flink.flink_cases())
def test_flink_engines_agree_with_the_reference(name: str, case: flink.FlinkCase) -> None:
    flink.agrees_with_the_reference(case, name)


@EVERY_FLINK_ENGINE
@shared
@given(case=flink.flink_cases(), cuts=CUTS)
def test_flink_patterns_can_be_cut_anywhere(name: str, case: flink.FlinkCase, cuts: list[int]) -> None:
    flink.can_be_cut_anywhere(case, name, cuts)


@EVERY_FLINK_ENGINE
@shared
@given(case=flink.flink_cases())
def test_flink_engines_take_every_kind_of_table(name: str, case: flink.FlinkCase) -> None:
    flink.takes_every_kind_of_table(case, name)


@EVERY_FLINK_ENGINE
@shared
@given(case=flink.flink_cases())
def test_flink_engines_keep_their_limits(name: str, case: flink.FlinkCase) -> None:
    flink.keeps_its_limits(case, name)


@pytest.mark.parametrize("conditions", CONDITIONS)
@pytest.mark.parametrize("name", [name for name in ROW_ENGINES if name != "reference"])
@drawn
@given(data=st.data())
def test_row_engines_agree_with_the_reference(name: str, conditions: str, data: Any) -> None:
    rows.agrees_with_the_reference(data.draw(rows.row_cases(conditions)), name)


@EVERY_ROW_ENGINE
@drawn
@given(case=rows.row_cases(), cuts=st.lists(st.integers(0, 7), max_size=4), delay=st.integers(0, 2))
def test_row_patterns_can_be_cut_anywhere(name: str, case: rows.RowCase, cuts: list[int], delay: int) -> None:
    rows.can_be_cut_anywhere(case, name, cuts, delay)


@EVERY_ROW_ENGINE
@shared
@given(case=rows.row_cases())
def test_row_engines_take_every_kind_of_table(name: str, case: rows.RowCase) -> None:
    rows.takes_every_kind_of_table(case, name)


@EVERY_ROW_ENGINE
@shared
@given(case=rows.row_cases())
def test_row_engines_keep_their_limits(name: str, case: rows.RowCase) -> None:
    rows.keeps_its_limits(case, name)


def test_a_new_engine_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reference under another name, for plain sequences: listed, it is drawn for and held to the contract."""
    new = Engine("new", engines.NoOptions, engines.sequences, engines.Fixed(1.0), "reference:find")
    monkeypatch.setitem(ENGINES, "new", new)  # type: ignore[arg-type]

    @settings(drawn, max_examples=10)
    @given(data=st.data(), cuts=CUTS)
    def contract(data: Any, cuts: list[int]) -> None:
        case = data.draw(cases(new, window=True))
        properties.agrees_with_the_reference(case, "new")
        properties.can_be_cut_anywhere(case, "new", cuts)
        properties.retained_events_are_enough(case, "new", cuts)
        properties.takes_every_kind_of_table(case, "new")
        properties.streams_like_a_batch(case, "new", data.draw)

    contract()
