"""What Spark's state store holds, with a bit changed, a part cut short or two parts in each other's place."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pytest

import cepheid
from cepheid.errors import DataError
from cepheid.runners.flink import automaton_for
from cepheid.runners.options import FlinkOptions
from cepheid.runners.stream.changing import Registered, SearchRequest
from cepheid.runners.stream.clock import Clock, signed
from cepheid.runners.stream.flink import FlinkStream
from cepheid.runners.stream.identity import Fingerprint, fingerprint, new_record, recorded_shards
from cepheid.runners.stream.incremental import IncrementalStep, Stepper
from cepheid.runners.stream.rows import RowStream
from contract.steps import END_OF_TIME
from rows.row_cases import bound
from runners.test_stream_changes import APART, RISING, earlier_events, plan_of, step_of

pytest.importorskip("pyspark")

COUNTED = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 20 SUMMARISE count(*) AS n BY id EVERY 30"
CLAUSE = "PARTITION BY id ORDER BY ts MEASURES LAST(x) AS x PATTERN (A B+) WITHIN 20 DEFINE B AS x > PREV(x)"


class Values(dict[int, bytes]):
    """A map of Spark's state store."""

    def getValue(self, key: tuple[int]) -> tuple[bytes] | None:
        return (self[key[0]],) if key[0] in self else None

    def containsKey(self, key: tuple[int]) -> bool:
        return key[0] in self

    def updateValue(self, key: tuple[int], value: tuple[bytes]) -> None:
        self[key[0]] = value[0]

    def removeKey(self, key: tuple[int]) -> None:
        self.pop(key[0], None)


@dataclass
class Handle:
    """A state store in memory."""

    maps: dict[str, Values] = field(default_factory=dict)
    clock: str | None = None

    def getMapState(self, name: str, *_: Any) -> Values:
        return self.maps.setdefault(name, Values())

    def copy(self) -> Handle:
        return Handle({name: Values(values) for name, values in self.maps.items()}, self.clock)


def taken(step: Stepper, same: Fingerprint, handle: Handle, fresh: list[pa.Table], newest: int) -> list[Any]:
    """One step as a shard takes it in a worker that remembers nothing: the matches of it."""
    from cepheid.runners.spark.chunks import StateChunks, StateMap

    chunks, codes, ends = (StateMap(handle, name) for name in ("chunks", "keys", "ended"))  # type: ignore[arg-type]
    store = StateChunks(chunks, codes, ends, small=signed(handle.clock)[1])
    outcome = step.run(Clock.read(handle.clock, same), store, fresh, newest)
    handle.clock = replace(outcome.clock).text(same, "token", store.small)
    return sorted(str(row) for _, batch in outcome.results for row in batch.to_pylist())


def of_queries(table: pa.Table, **queries: str) -> tuple[Stepper, Fingerprint]:
    step = step_of({name: plan_of(query, table) for name, query in queries.items()}, table, 3)
    return step, fingerprint(step.shipments, 1)


def of_rows(table: pa.Table) -> tuple[Stepper, Fingerprint]:
    clause = bound(CLAUSE, table)
    result = RowStream(clause, table.schema).finish().schema
    unnamed = pa.schema([each.with_name(f"_{number}") for number, each in enumerate(result)])
    step = IncrementalStep(lambda: RowStream(clause, table.schema), table.schema, "ts", 3, unnamed)
    return step, Fingerprint(1, (), {"": {"text": "1"}})


def of_flink(table: pa.Table) -> tuple[Stepper, Fingerprint]:
    pattern = cepheid.flink.Pattern.begin("a").where("type = 'A'").followed_by_any("b").where("type = 'B'").within(20)
    automaton = automaton_for(pattern, table.schema, FlinkOptions.from_keywords({}).in_memory(table.schema))

    def begin() -> FlinkStream:
        return FlinkStream(automaton, table.schema, partition_by=["id"])

    result = begin().result
    unnamed = pa.schema([each.with_name(f"_{number}") for number, each in enumerate(result)])
    return IncrementalStep(begin, table.schema, "ts", 3, unnamed), Fingerprint(1, (), {"": {"text": "1"}})


KINDS: dict[str, Callable[[pa.Table], tuple[Stepper, Fingerprint]]] = {
    "asleep": lambda table: of_queries(table, rising=RISING),
    "ends": lambda table: of_queries(table, rising=RISING, apart=APART),
    "totals": lambda table: of_queries(table, counted=COUNTED),
    "rows": of_rows,
    "flink": of_flink,
}


def damaged(whole: Handle) -> Iterator[Handle]:
    """The store with one thing changed: bits that are drawn, parts cut short, and parts that changed places."""
    rng = random.Random(16)
    places = [(name, number) for name, values in whole.maps.items() for number in values]
    for name, number in places * (100 // max(1, len(places))):
        other, part = whole.copy(), bytearray(whole.maps[name][number])
        part[rng.randrange(len(part))] ^= 1 << rng.randrange(8)
        other.maps[name][number] = bytes(part) if rng.random() < 0.9 else bytes(part[: rng.randrange(len(part))])
        yield other
    for one, two in zip(places, [*places[1:], *places[:1]], strict=True):
        other = whole.copy()
        other.maps[one[0]][one[1]], other.maps[two[0]][two[1]] = whole.maps[two[0]][two[1]], whole.maps[one[0]][one[1]]
        yield other
    assert whole.clock is not None
    for _ in range(100):
        text = bytearray(whole.clock.encode())
        text[rng.randrange(len(text))] ^= 1 << rng.randrange(8)
        cut = text if rng.random() < 0.9 else text[: rng.randrange(len(text))]
        yield replace(whole.copy(), clock=bytes(cut).decode(errors="replace"))


@pytest.mark.some(4)
@pytest.mark.parametrize("most", [0, 16 << 10], ids=["in maps", "with the clock"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_store_gives_an_error_or_the_same_matches(kind, most, monkeypatch):
    monkeypatch.setattr("cepheid.runners.spark.chunks.WITH_CLOCK", most)
    table = earlier_events()
    step, same = KINDS[kind](table)
    whole = Handle()
    for start in range(0, 40, 10):
        taken(step, same, whole, [table.slice(start, 10)], start + 9)
    rest: tuple[Any, ...] = ([table.slice(40)], END_OF_TIME)
    expected, refused = taken(step, same, whole.copy(), *rest), 0
    assert bool(whole.maps["chunks"]) == (most == 0)
    for other in damaged(whole):
        try:
            assert taken(step, same, other, *rest) == expected
        except DataError as error:
            refused += bool(error.hint)
    assert refused > 80


def bare(packed: bytes) -> bytes:
    """Without checksums; what a search keeps has one of its own."""
    return bare(packed[16:]) if packed.startswith(b"CPHs") else packed


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_without_checksums_goes_on(kind, monkeypatch):
    """As earlier versions wrote it."""
    monkeypatch.setattr("cepheid.runners.spark.chunks.WITH_CLOCK", 0)
    table = earlier_events()
    step, same = KINDS[kind](table)
    whole = Handle()
    for start in range(0, 40, 10):
        taken(step, same, whole, [table.slice(start, 10)], start + 9)
    older = whole.copy()
    for values in older.maps.values():
        values.update({number: bare(packed) for number, packed in values.items()})
    assert older.clock is not None
    older.clock = older.clock[: older.clock.rindex(', "crc32"')].replace('"version": 6', '"version": 5') + "}"
    rest: tuple[Any, ...] = ([table.slice(40)], END_OF_TIME)
    assert taken(step, same, older, *rest) == taken(step, same, whole, *rest)


def flipped(text: str) -> Iterator[str]:
    for bit in range(8 * len(text.encode())):
        other = bytearray(text.encode())
        other[bit // 8] ^= 1 << bit % 8
        yield bytes(other).decode(errors="replace")


def test_a_damaged_list_of_queries_is_an_error():
    queries = Registered({"rising": SearchRequest(RISING, "{}"), "crc32": SearchRequest(APART, "{}")})
    text = queries.text()
    assert Registered.read(text) == queries
    assert Registered.read('{"rising": ["PATTERN SEQ(A a)", "{}"]}').queries.keys() == {"rising"}
    assert not Registered.read(Registered().text()).queries
    for other in flipped(text):
        with pytest.raises(DataError, match="queries in the checkpoint"):
            Registered.read(other)


def test_a_damaged_record_counts_for_nothing(caplog):
    """The states themselves know what they belong to."""
    known = Fingerprint(16, ("id",), {"": {"text": "1"}})
    text = new_record([known], None)
    assert recorded_shards(text) == 16
    assert new_record([known], text) == text
    for other in flipped(text):
        assert recorded_shards(other) in (None, 16)
        assert new_record([known], other) == text
    assert "the record of the checkpoint is damaged" in caplog.text
