"""The source of compiled conditions: what is used twice is computed once, so nesting does not make it grow."""

from __future__ import annotations

import numba
import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.program.compile import compile_program
from cepheid.engine.values import python_first
from cepheid.language.bind import bind
from cepheid.language.check import check
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema

COLUMNS = (("ts", DataType.INT), ("type", DataType.STRING), ("x", DataType.INT), ("y", DataType.FLOAT))


def nested(depth: int) -> dict[str, str]:
    """Conditions that once doubled or worse with every level."""
    truth, remainder, root = "a.x > b.x", "a.x", "a.y + b.y"
    for level in range(depth):
        truth = f"({truth}) = (b.x > {level})"
        remainder = f"({remainder} % (b.x + {level}))"
        root = f"sqrt({root} + {level})"
    return {"truth": truth, "remainder": f"{remainder} >= 0", "root": f"{root} > 1"}


@pytest.mark.parametrize("kind", ["truth", "remainder", "root"])
def test_nesting_makes_the_source_longer_not_larger_by_factors(kind: str) -> None:
    def length(depth: int) -> int:
        text = f"PATTERN SEQ(A a, B b) WHERE {nested(depth)[kind]} WITHIN 10"
        bound = bind(check(parse(text)), Schema(COLUMNS, "ts", "type"))
        return len(compile_program(bound).predicate.source)

    assert length(6) < 3 * length(3)


@pytest.mark.parametrize("kind", ["truth", "remainder", "root"])
def test_nested_conditions_mean_the_same_as_in_the_reference(kind: str) -> None:
    events = pa.table(
        {
            "ts": list(range(1, 9)),
            "type": ["A", "B"] * 4,
            "x": [3, 1, None, 2, -5, 3, 7, -1],
            "y": [0.0, -1.0, 2.5, None, -9.0, 1.0, 4.0, 5.0],
        }
    )
    text = f"PATTERN SEQ(A a, B b) WHERE {nested(5)[kind]} WITHIN 20 RETURN a.ts AS a, b.ts AS b"
    rows = [cepheid.match(events, text, engine=engine).to_pylist() for engine in ("reference", "sequence", "runs")]
    assert sorted(map(str, rows[1])) == sorted(map(str, rows[0])) == sorted(map(str, rows[2]))


def test_numbers_of_different_types_are_told_apart() -> None:
    big = 2**53
    events = pa.table({"ts": [1, 2], "type": ["A", "B"], "x": [big, big + 1]})
    text = f"PATTERN SEQ(A a, B b) WHERE b.x > {big} AND b.x - a.x = 1 AND b.x > {big}.0 - 1 AND TRUE = (a.x = {big})"
    for engine in ("reference", "sequence"):
        assert cepheid.match(events, text + " WITHIN 5", engine=engine).num_rows == 1


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_would_take_minutes_to_compile_runs_as_plain_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_first, "FEW_EVENTS", 2)  # so that it is compiled at once
    events = pa.table({"ts": [1, 2, 3], "type": ["A", "B", "B"], "x": [9, 12, 2]})
    text = f"PATTERN SEQ(A a, B b) WHERE {' OR '.join(f'a.x > b.x + {n}' for n in range(300))} WITHIN 10"
    with pytest.warns(UserWarning, match="it runs as plain Python"):
        found = cepheid.match(events, text, engine="sequence")
    assert found.to_pylist() == cepheid.match(events, text, engine="reference").to_pylist()
    assert found.num_rows == 1
