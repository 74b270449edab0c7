"""A drawn clause over many small partitions of one table: each is a case, and costs little more than a row."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.rows import RowCase, agrees_with_the_reference
from strategies.rows import CONDITIONS, clauses

PARTITIONS = 60
KINDS = {"part": pa.string(), "id": pa.int64(), "value": pa.int64(), "kind": pa.string()}


def table_of(seed: int) -> pa.Table:
    rng = random.Random(seed)
    rows = [
        (f"p{part}" if part else None, rng.randint(1, 9), rng.choice([None, 0, 1, 2, 3]), rng.choice(["x", "y", None]))
        for part in range(PARTITIONS)
        for _ in range(rng.randint(1, 7))
    ]
    rng.shuffle(rows)
    return pa.table({name: pa.array([row[at] for row in rows], kind) for at, (name, kind) in enumerate(KINDS.items())})


@pytest.mark.slow
@given(st.sampled_from(list(CONDITIONS)).flatmap(lambda name: clauses(CONDITIONS[name])), st.integers(0, 2**20))
def test_row_patterns_over_many_partitions(clause: str, seed: int) -> None:
    if not clause.lstrip().startswith("PARTITION BY"):
        clause = f"PARTITION BY part {clause}"
    agrees_with_the_reference(RowCase(clause, table_of(seed)), "preferred")


test_row_patterns_over_many_partitions.cases_each = PARTITIONS  # type: ignore[attr-defined]
