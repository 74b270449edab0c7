"""Conditions between events: each operator and built-in function compiles, and means what it means to the judge."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pyarrow as pa
import pytest

import cepheid

VALUES = [-7.5, -1.0, 0.0, 2.0, 2.5, 1e300, float("inf"), None]
COLUMNS = {"whole": pa.int64(), "fraction": pa.float64()}


def stream() -> pa.Table:
    """Each value of A with each value of B, as an instant of their own."""
    pairs = list(itertools.product(VALUES, VALUES))
    values = [value for pair in pairs for value in pair]
    whole = [None if value is None or abs(value) > 1e9 else int(value) for value in values]
    return pa.table(
        {
            "ts": np.arange(len(values)) + 10 * (np.arange(len(values)) // 2),
            "type": ["A", "B"] * len(pairs),
            "whole": pa.array(whole, pa.int64()),
            "fraction": pa.array(values, pa.float64()),
        }
    )


@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "%"])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(COLUMNS, COLUMNS)))
def test_arithmetic(operator: str, left: str, right: str) -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE a.{left} {operator} b.{right} >= b.fraction WITHIN 5"
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # a condition that cannot be compiled is said with one
        warnings.simplefilter("ignore", RuntimeWarning)  # overflow, where conditions run as plain Python
        found = cepheid.match(stream(), text)
    assert 0 < found.num_rows < len(VALUES) ** 2
    assert found.equals(cepheid.match(stream(), text, engine="reference"))
