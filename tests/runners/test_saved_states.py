"""Bytes that claim to be a saved state: what is damaged is an error, and never the end of the process."""

import random

import cepheid
from cepheid.errors import CepheidError

COLUMNS = {"ts": int, "type": str, "id": int, "name": str}
QUERY = "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 9"


def test_damaged_states_are_refused():
    live = cepheid.live(QUERY, COLUMNS)
    live.send([{"ts": time, "type": "A", "id": time % 2, "name": "x" * time} for time in range(8)])
    whole, rng, refused = live.save(), random.Random(16), 0
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
