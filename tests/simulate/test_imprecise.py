"""TIME's series with uncertain timestamps."""

from collections import Counter

import pytest

from cepheid.errors import DataError
from cepheid.simulate.imprecise import imprecise_query, imprecise_series


def test_values_wrap_and_intervals_surround() -> None:
    rows = imprecise_series(25, half_width=3, series=10, seed=1).events.to_pylist()
    assert [row["value"] for row in rows] == [*range(1, 11), *range(1, 11), *range(1, 6)]
    assert all((row["lower"], row["upper"]) == (row["ts"] - 3, row["ts"] + 3) for row in rows)
    assert {row["type"] for row in rows} == {"E"}


def test_the_true_time_is_uniform_in_the_interval() -> None:
    simulation = imprecise_series(22_000, half_width=5, seed=2)
    assert simulation.truth is not None
    assert simulation.truth["ts"].equals(simulation.events["ts"])
    shifts = Counter(row["true_ts"] - row["ts"] for row in simulation.truth.to_pylist())
    assert sorted(shifts) == list(range(-5, 6))
    assert all(count == pytest.approx(2_000, rel=0.1) for count in shifts.values())


def test_without_uncertainty_the_truth_is_the_series() -> None:
    simulation = imprecise_series(10, half_width=0)
    assert simulation.truth is not None
    assert simulation.truth["true_ts"].equals(simulation.events["ts"])
    assert simulation.events["lower"].equals(simulation.events["upper"])


def test_a_negative_half_width_is_refused() -> None:
    with pytest.raises(DataError, match="half_width is -1"):
        imprecise_series(10, half_width=-1)
    with pytest.raises(DataError, match="divisors"):
        imprecise_query(divisors=())
