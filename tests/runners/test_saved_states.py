"""Bytes that claim to be a saved state: damage is an error, and never other matches or the end of the process."""

import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pytest

import cepheid
from cepheid import flink
from cepheid.errors import CepheidError, DataError
from cepheid.runners.stream.saved import checked_state

COLUMNS = {"ts": int, "type": str, "id": int, "name": str}
QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"
OTHER = "PATTERN SEQ(A a, A+ b[], B c) WHERE [id] WITHIN 9 OUTPUT NON-OVERLAP"
COUNTED = "PATTERN SEQ(A a, A b) WHERE [id] WITHIN 9 SUMMARISE count(*) AS n BY id EVERY 4"
READS = "PATTERN SEQ(p a, p b) FROM p WITHIN 9"
CLAUSE = """MATCH_RECOGNIZE (PARTITION BY id ORDER BY ts MEASURES LAST(ts) AS till
PATTERN (A B+) WITHIN 9 DEFINE B AS ts > PREV(ts))"""
EVENTS = [{"ts": time, "type": "AAB"[time % 3], "id": time % 2, "name": "x" * time} for time in range(8)]
LATER = [{"ts": time, "type": "AAB"[time % 3], "id": time % 2, "name": "y"} for time in range(8, 14)]
STATES = Path(__file__).parent / "states"


PATTERN = flink.Pattern.begin("a").where("type = 'A'").followed_by_any("b").where("type = 'B'").within(9)
# Each kind of state, with what takes it up again.
KINDS: dict[str, Callable[..., cepheid.Live]] = {
    "pattern": partial(cepheid.live, QUERY, COLUMNS),
    "non-overlap": partial(cepheid.live, {"p": QUERY, "q": OTHER}, COLUMNS),
    "totals": partial(cepheid.live, COUNTED, COLUMNS),
    "levels": partial(cepheid.live, {"p": QUERY, "q": READS}, COLUMNS),
    "partial": partial(cepheid.live, f"{QUERY} OUTPUT PARTIAL", COLUMNS),
    "flink": partial(cepheid.live, PATTERN, COLUMNS, partition_by=["id"]),
    "rows": partial(cepheid.live, CLAUSE, COLUMNS),
    "languages": partial(cepheid.live, {"p": QUERY, "r": CLAUSE}, COLUMNS),
}
VERSIONS = ("without-checksum", "with-checksum", "one-codec")


def flipped(whole: bytes) -> Iterator[bytes]:
    """The state with one bit that is another, for each bit of its first and last kilobyte and 2,000 in between."""
    rng, bits = random.Random(16), 8 * len(whole)
    edges = {*range(min(8192, bits)), *range(max(0, bits - 8192), bits)}
    for bit in sorted({*edges, *rng.choices(range(bits), k=2000)}):
        some = bytearray(whole)
        some[bit // 8] ^= 1 << bit % 8
        yield bytes(some)


def harmed(whole: bytes) -> Iterator[bytes]:
    """The state with something gone, twice, or in another place."""
    rng, size = random.Random(17), len(whole)
    for _ in range(200):
        low, middle, high = sorted(rng.choices(range(size + 1), k=3))
        yield whole[:low] + whole[high:]
        yield whole[:high] + whole[low:]
        yield whole[:low] + whole[middle:high] + whole[low:middle] + whole[high:]
    yield from (whole[:size] for size in range(40))
    yield whole + b"\0"


@pytest.mark.some(4)
@pytest.mark.parametrize("kind", KINDS)
def test_every_damage_of_a_state_is_an_error(kind):
    first = KINDS[kind]()
    first.send(EVENTS)
    whole = first.save()
    for number, some in enumerate([*flipped(whole), *harmed(whole)]):
        if some != whole:
            with pytest.raises(DataError, match="damaged"):
                checked_state(some)  # what every kind is read by
            if number % 400 == 0:
                with pytest.raises(DataError, match="damaged"):
                    KINDS[kind](state=some)
    assert KINDS[kind](state=whole).send(LATER) == first.send(LATER)


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_of_another_kind_is_no_damage(kind):
    """Its checksum fits, and the error says what it is not."""
    for other, made in KINDS.items():
        if other in ("flink", "rows") and other != kind:
            live = made()
            live.send(EVENTS)
            with pytest.raises(DataError, match=r"not a saved state|version"):
                KINDS[kind](state=live.save())


def test_damaged_states_without_a_checksum_are_read_or_refused():
    live = cepheid.live(QUERY, COLUMNS)
    live.send(EVENTS)
    whole, rng, refused = live.save()[16:], random.Random(16), 0
    assert cepheid.live(QUERY, COLUMNS, state=whole).numbers.retained == 8
    for _ in range(300):
        some = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            some[rng.randrange(len(some))] = rng.randrange(256)
        try:
            cepheid.live(QUERY, COLUMNS, state=bytes(some[: rng.choice([len(some), rng.randrange(len(some))])]))
        except CepheidError:
            refused += 1
    assert refused > 200


def stored(version: str) -> dict[str, bytes]:
    """The states of these kinds as a version wrote them after the first events."""
    table = pa.ipc.open_file(STATES / f"live-{version}.arrow").read_all()
    return dict(zip(table["kind"].to_pylist(), table["state"].to_pylist(), strict=True))


@pytest.mark.parametrize(("version", "kind"), [(version, kind) for version in VERSIONS for kind in stored(version)])
def test_saved_states_of_earlier_versions_go_on(kind, version):
    first, second = KINDS[kind](), KINDS[kind](state=stored(version)[kind])
    first.send(EVENTS)
    assert second.send(LATER) == first.send(LATER)
