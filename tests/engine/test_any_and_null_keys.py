"""Equivalence tests with ANY, events without a key, contiguity, windows of events and NON-OVERLAP, all at once."""

import os
import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import CepheidError

CASES = 40 if os.environ.get("NUMBA_DISABLE_JIT") == "1" else 4  # compiled, each query costs a compilation


def drawn(rng: random.Random) -> tuple[pa.Table, str]:
    """Few events with few values, many of them NULL, and a query with a bit of everything."""
    count = rng.randint(3, 9)
    table = pa.table(
        {
            "ts": sorted(rng.choices(range(12), k=count)),
            "type": rng.choices(["A", "B", "C"], k=count),
            "k": pa.array([rng.choice([1, 2, None]) for _ in range(count)], pa.int64()),
            "x": pa.array([rng.choice([1, 2, None]) for _ in range(count)], pa.int64()),
        }
    )
    first = rng.choice(["A a", "ANY(A, B) a", "ANY(A, B, C) a"])
    second = rng.choice(["B b", "ANY(B, C) b", "ANY(A, C) b"])
    third = rng.choice(["", ", ANY(A, B) c", ", C c"])
    variables = "a, b, c" if third else "a, b"
    strategies = ["strict_contiguity", "partition_contiguity", "skip_till_next_match", "skip_till_any_match"]
    keys = rng.choice(["[k]", "[k] AND a.x <= b.x", "[k, x]"])
    within = rng.choice(["", "WITHIN 6", "WITHIN 3 EVENTS", "WITHIN 2 EVENTS"])
    output = rng.choice(["", "OUTPUT NON-OVERLAP"])
    where = f"{rng.choice(strategies)}({variables}) {{ {keys} }}"
    return table, f"PATTERN SEQ({first}, {second}{third}) WHERE {where} {within} {output}"


@pytest.mark.some(3)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lacks", [None, {"A": ["k"]}])
def test_what_is_chosen_finds_what_the_reference_finds(seed, lacks):
    rng, compared = random.Random(seed), 0
    for _ in range(CASES):
        table, text = drawn(rng)
        try:
            expected = cepheid.match(table, text, engine="reference", lacks=lacks)
        except CepheidError:
            continue
        compared += 1
        found = cepheid.match(table, text, lacks=lacks)
        assert sorted(map(str, found.to_pylist())) == sorted(map(str, expected.to_pylist())), text
    assert compared > 0
