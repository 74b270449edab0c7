"""Limits of Flink's patterns: the same options as everywhere, on tables, live and in the reference."""

from __future__ import annotations

from typing import Any

import numba
import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError
from cepheid.flink import Pattern

SUBSETS = Pattern.begin("a").where("type = 'A'").one_or_more().allow_combinations().followed_by("b").where("type = 'B'")


def events(count: int) -> pa.Table:
    return pa.table({"ts": range(count + 1), "type": ["A"] * count + ["B"]})


@pytest.mark.parametrize("engine", ["automaton", "reference"])
@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_partial_matches": 1000}, "the pattern reached max_partial_matches=1000"),
        ({"timeout": 0.5}, r"timeout=0\.5"),
    ],
)
def test_runs_that_multiply_are_stopped(engine: str, options: dict[str, Any], told: str) -> None:
    with pytest.raises(cepheid.LimitError, match=told):
        cepheid.match(events(60), SUBSETS, engine=engine, **options)


@pytest.mark.parametrize("engine", ["automaton", "reference"])
def test_matches_are_counted(engine: str) -> None:
    assert cepheid.match(events(6), SUBSETS, engine=engine, max_matches=63).num_rows == 63
    with pytest.raises(cepheid.LimitError, match="the pattern reached max_matches=62") as caught:
        cepheid.match(events(6), SUBSETS, engine=engine, max_matches=62)
    assert "allow_combinations" in str(caught.value)


def test_runs_that_are_given_up_count_as_matches() -> None:
    pattern = SUBSETS.within(3)
    table = events(20)
    found = cepheid.match(table, pattern, partial=True).num_rows
    with pytest.raises(cepheid.LimitError, match="max_matches"):
        cepheid.match(table, pattern, partial=True, max_matches=found - 1)


def test_partitions_share_the_limit() -> None:
    both = pa.concat_tables([events(4).append_column("k", pa.array([key] * 5)) for key in (1, 2)])
    assert cepheid.match(both, SUBSETS, partition_by="k", max_matches=30).num_rows == 30
    for engine in ("automaton", "reference"):
        with pytest.raises(cepheid.LimitError, match="max_matches=29"):
            cepheid.match(both, SUBSETS, partition_by="k", max_matches=29, engine=engine)


def test_a_live_pattern_holds_to_them() -> None:
    live = cepheid.live(SUBSETS, {"ts": int, "type": str}, max_partial_matches=1000)
    sent = ([{"ts": number, "type": "A"}] for number in range(60))
    with pytest.raises(cepheid.LimitError, match="max_partial_matches=1000"):
        list(map(live.send, sent))


@pytest.mark.parametrize("pattern", [SUBSETS.times(10**9), Pattern.begin(Pattern.begin("a").times(10**5)).times(10**5)])
def test_too_many_rounds_are_refused(pattern: Pattern) -> None:
    with pytest.raises(CepheidError, match=r"more than 20,000 states"):
        cepheid.match(events(3), pattern)


def test_many_rounds_are_run() -> None:
    rounds = 300 if numba.config.DISABLE_JIT else 3000  # the work grows with their square
    pattern = Pattern.begin("a").where("type = 'A'").times(rounds).followed_by("b").where("type = 'B'")
    assert cepheid.match(events(rounds), pattern).num_rows == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"max_matches": 0}, "max_matches=0 is not a whole number of at least 1"),
        ({"timeout": "soon"}, "timeout='soon' is not a number of at least 0"),
        ({"truncate": True}, "no option 'truncate' for a Flink pattern"),
    ],
)
def test_values_that_are_no_limits(options: dict[str, Any], told: str) -> None:
    with pytest.raises(CepheidError, match=told):
        cepheid.match(events(3), SUBSETS, **options)
