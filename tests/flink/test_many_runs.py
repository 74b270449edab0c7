"""Streams with so many runs that the kernel's arrays grow, and nodes that no run needs are dropped."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import cepheid
from cepheid.engine.search.flink import finalized, kernel
from cepheid.flink import AfterMatchSkipStrategy, Pattern


def letters(count: int, names: str, seed: int) -> pa.Table:
    rng = random.Random(seed)
    names_of = [rng.choice(names) for _ in range(count)]
    return pa.table({"ts": range(count), "name": names_of, "price": [float(rng.randint(0, 9)) for _ in range(count)]})


PATTERNS = [
    Pattern.begin("a")
    .where("name = 'a'")
    .followed_by_any("b")
    .where("name = 'b'")
    .followed_by("c")
    .where("name = 'c'"),
    Pattern.begin("a").where("name = 'a'").one_or_more().followed_by("b").where("name = 'b'"),
    Pattern.begin("a", skip=AfterMatchSkipStrategy.skip_to_next())
    .where("name = 'a'")
    .followed_by_any("b")
    .where("name = 'b' AND price > a.price")
    .times(2)
    .followed_by("c")
    .where("name = 'c'"),
]


@pytest.mark.some(3)
@pytest.mark.parametrize("pattern", PATTERNS, ids=["any", "loop", "skip"])
@pytest.mark.parametrize("collect_at", [16, 1 << 16])
def test_arrays_grow_and_nodes_are_dropped(pattern: Pattern, collect_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "COLLECT", collect_at)  # seen by kernels that run as plain Python
    monkeypatch.setenv("CEPHEID_COMPILE", "")
    table = letters(90, "aabcx", 5)
    pattern = pattern.within(30)
    expected = cepheid.match(table, pattern, type=None, engine="reference", partial=True)
    found = cepheid.match(table, pattern, type=None, engine="automaton", partial=True)
    assert expected.num_rows > 50
    key = str
    assert sorted(found.to_pylist(), key=key) == sorted(expected.to_pylist(), key=key)
    live = cepheid.live(pattern, table.schema, type=None, partial=True)
    cut = [row for at in range(0, 90, 17) for row in live.send(table.slice(at, 17)).to_pylist()]
    assert sorted([*cut, *live.finish().to_pylist()], key=key) == sorted(expected.to_pylist(), key=key)


@pytest.mark.parametrize("pattern", PATTERNS, ids=["any", "loop", "skip"])
def test_a_stream_of_many_keys_equals_its_table(pattern: Pattern, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CEPHEID_COMPILE", "")
    monkeypatch.setattr(finalized, "UNUSED", 5)  # what is retained is laid out anew often
    monkeypatch.setattr(finalized, "CHUNKS", 4)
    table = letters(200, "aabbcx", 5)
    table = table.append_column("key", pa.array([None if at % 13 == 4 else str(at * 7 % 11) for at in range(200)]))
    pattern, options = pattern.within(60), {"type": None, "partial": True, "partition_by": "key"}
    expected = cepheid.match(table, pattern, engine="reference", **options)
    live = cepheid.live(pattern, table.schema, **options)
    cut = [row for at in range(0, 200, 3) for row in live.send(table.slice(at, 3)).to_pylist()]
    found = [*cut, *live.finish().to_pylist()]
    assert expected.num_rows > 50
    assert sorted(found, key=str) == sorted(expected.to_pylist(), key=str)


def test_more_states_than_bits() -> None:
    start = Pattern.begin("s").where("name = 'b'").followed_by("a").where("name = 'a'").times(62)
    pattern = start.followed_by("e").where("name = 'b' AND price >= s.price")
    table = letters(105, "aaaaab", 3)
    found = cepheid.match(table, pattern, type=None, engine="automaton")
    assert found.num_rows
    assert found.equals(cepheid.match(table, pattern, type=None, engine="reference"))
