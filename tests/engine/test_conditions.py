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


@pytest.mark.parametrize(
    "value",
    ["power(b.fraction, 2)", "exp(b.fraction)", "element_at(array(b.fraction, 1), 1)", "get(array(1, b.fraction), 1)"],
)
def test_values_that_overflow_and_elements_of_mixed_arrays(value: str) -> None:
    text = f"PATTERN SEQ(A a, B b) WHERE a.whole < {value} WITHIN 5"
    found = cepheid.match(stream(), text)
    assert found.num_rows > 0
    assert found.equals(cepheid.match(stream(), text, engine="reference"))


TEXTS = [
    "a.s LIKE b.u",
    "NOT (a.s LIKE b.u)",
    "concat(a.s, b.s) = 'xy'",
    "concat(a.s, b.s, b.u) LIKE '%y%' AND a.k <= b.k",
    "concat(a.s, a.u) = concat(b.s, b.u) OR a.s IS NULL",
]


@pytest.mark.some(5)
@pytest.mark.parametrize("different", [3, 400])
@pytest.mark.parametrize("condition", TEXTS)
def test_texts_of_two_events(condition: str, different: int) -> None:
    """By a table of answers where values repeat, and one by one where there are too many different ones."""
    random = np.random.default_rng(1)
    words = [None, "x", "y", "xy", "%y", *(f"w{number}" for number in range(different))]
    most = np.where(random.random((2, 400)) < 0.5, 5, len(words))
    drawn = {name: [words[random.integers(0, each)] for each in most[row]] for row, name in enumerate("su")}
    kinds = ["A" if each else "B" for each in random.integers(0, 2, 400)]
    events = pa.table({"ts": np.arange(400), "type": kinds, "k": random.integers(0, 3, 400), **drawn})
    text = f"PATTERN SEQ(A a, B b) WHERE {condition} WITHIN 30"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such a condition runs as Python
        found, expected = (cepheid.match(events, text, engine=engine) for engine in ("auto", "reference"))
    order = [("match_start", "ascending"), ("match_end", "ascending")]
    assert found.num_rows > 0
    assert found.sort_by(order).equals(expected.sort_by(order))


TWO_TEXTS = [
    "a.s LIKE b.u",
    "NOT (a.s LIKE b.u)",
    "(a.s LIKE b.u) IS NULL",
    "a.s LIKE b.s OR a.s = b.s",
    "contains(a.s, b.s)",
    "starts_with(a.s, b.u) AND a.k <= b.k",
    "concat(a.s, b.s) < upper(b.u)",
    "a.s LIKE b.u AND concat(b.s, a.u) != 'x'",
    "concat(a.s, b.s) = concat(b.s, a.s)",
]


@pytest.mark.some(12)
@pytest.mark.parametrize("pattern", ["SEQ(A a, B b)", "SEQ(ANY(A, C) a, B b)", "SEQ(A a, !C c, B b)"])
@pytest.mark.parametrize("condition", TWO_TEXTS)
def test_tables_of_answers(condition: str, pattern: str) -> None:
    """NULL, empty texts, texts beyond ASCII and escape characters; asked for one by one, then together."""
    random = np.random.default_rng(len(condition))
    words = [None, "", "x", "X", "%", "_", "é%", "é_", "éa", "\\%", "x\\", "\\x", "%x_", "ß", "日本", "日%"]
    drawn = {name: [words[each] for each in random.integers(0, len(words), 500)] for name in "su"}
    kinds = [random.choice(["A", "B", "B", "C"]) for _ in range(500)]
    events = pa.table({"ts": np.arange(500), "type": kinds, "k": random.integers(0, 3, 500), **drawn})
    text = f"PATTERN {pattern} WHERE {condition} WITHIN 12"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found, expected = (cepheid.match(events, text, engine=engine) for engine in ("auto", "reference"))
    assert found.num_rows > 0
    assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist()))
