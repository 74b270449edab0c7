"""Where chunks of a state lie: small ones with the clock, others in a map that is opened when it is used."""

import numpy as np
import pytest

from cepheid.errors import DataError
from cepheid.runners.spark.chunks import WITH_CLOCK, StateChunks, client_of
from cepheid.runners.stream.clock import Clock, signed
from cepheid.runners.stream.identity import Fingerprint

pytest.importorskip("pyspark")


class Map(dict):
    """A map of the state store."""

    def put(self, number, packed):
        self[number] = packed

    def remove(self, number):
        del self[number]

    def has(self, number):
        return number in self


@pytest.mark.parametrize("seed", range(20))
def test_chunks_are_found_where_they_were_put(seed):
    rng = np.random.default_rng(seed)
    chunks, known, text = Map(), {}, None
    clock, fingerprint = Clock(), Fingerprint(1, ())
    for number in range(60):
        store = StateChunks(chunks, Map(), None, small=signed(text)[1])
        assert {each: store.read(each) for each in known} == known
        if known and rng.random() < 0.4:
            gone = int(rng.choice(list(known)))
            store.remove(gone)
            del known[gone]
        known[number] = rng.bytes(int(rng.integers(1, WITH_CLOCK // 2)))
        store.write(number, known[number])
        assert sum(map(len, store.small.values())) <= WITH_CLOCK
        assert not store.small.keys() & chunks.keys()
        text = clock.text(fingerprint, "token", store.small)
        assert Clock.read(text, fingerprint) == clock
    assert chunks
    assert signed(text)[1]


def test_a_little_state_opens_no_map():
    store = StateChunks(None, None, None)
    store.write(0, b"events")
    assert store.read(0) == b"events"
    store.remove(0)
    assert not store.small


@pytest.mark.parametrize("small", ['{"0": "?"}', '{"x": "aGVsbG8="}', '["aGVsbG8="]', '{"0": 5}', "3"])
def test_damaged_chunks_are_an_error(small):
    with pytest.raises(DataError, match="cannot be read"):
        signed(f'{{"version": 5, "small": {small}}}')


def test_the_client_of_a_handle_is_found_by_its_kind():
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient

    client = StatefulProcessorApiClient.__new__(StatefulProcessorApiClient)
    assert client_of(StatefulProcessorHandle(client)) is client
