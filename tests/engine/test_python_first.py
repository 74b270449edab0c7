"""Conditions that are new run as Python over few events, and compiled once they were called often."""

from __future__ import annotations

import itertools
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.kernels.compile import COMPILES
from cepheid.engine.values import compiled, python_first

pytestmark = pytest.mark.skipif(not COMPILES, reason="nothing is compiled")
ROWS = 200
_fresh = itertools.count(1)


def events() -> pa.Table:
    kinds = np.array(["a", "b"])[np.arange(ROWS) % 2]
    return pa.table({"ts": np.arange(ROWS), "type": kinds, "x": np.arange(ROWS) % 17})


def listed(found: pa.Table) -> list[str]:
    return sorted(map(str, found.to_pylist()))


def query() -> cepheid.Query:
    return cepheid.query(f"PATTERN SEQ(a x, b y) WHERE x.x + {next(_fresh)} - y.x > 3 WITHIN 20")


def test_a_new_condition_over_few_events_is_not_compiled() -> None:
    asked = query()
    with patch.object(compiled, "_compiled", side_effect=AssertionError):
        found = asked.match(events())
    assert listed(found) == listed(asked.match(events(), engine="reference"))


def test_a_condition_that_is_called_often_is_compiled_with_the_same_result() -> None:
    asked = query()
    with (
        patch.object(compiled, "MOST_CALLS", 50),
        patch.object(compiled, "_compiled", wraps=compiled._compiled) as made,
    ):
        found = asked.match(events())
        again = asked.match(events())
    assert made.called
    assert listed(found) == listed(again)
    assert listed(found) == listed(asked.match(events(), engine="reference"))


def test_a_condition_over_many_events_is_compiled_at_once() -> None:
    asked = query()
    with (
        patch.object(python_first, "FEW_EVENTS", 10),
        patch.object(compiled, "called_by_number", side_effect=AssertionError),
    ):
        found = asked.match(events())
    assert listed(found) == listed(asked.match(events(), engine="reference"))
