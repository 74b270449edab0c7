"""Where the events of a shard lie in Spark's state store: few small ones with the clock, all others in a map.

Whatever a task opens in the store costs some milliseconds in the JVM, used or not: encoders are made, analysed and
compiled for each variable in each micro-batch. So a shard with little state keeps it in the one variable that it
reads and writes anyway, and maps are opened only by tasks that use them.

The process that tells Spark of these variables loads this module: checksums, which need PyArrow, load where bytes do.

Imported only when a stream is matched: it needs PySpark.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle
from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorApiClient, StatefulProcessorHandleState
from pyspark.sql.types import BinaryType, LongType, StructType

from cepheid.errors import DataError

WITH_CLOCK = 16 << 10  # bytes of chunks that lie with the clock
_NUMBER = StructType().add("number", LongType())  # schemas as objects: as text, each would go to the JVM to be read
_PACKED = StructType().add("packed", BinaryType())


@dataclass
class StateMap:
    """Bytes by number in Spark's state store, opened when it is first used."""

    handle: StatefulProcessorHandle
    name: str
    opened: Any = None

    def __post_init__(self) -> None:
        client = client_of(self.handle)
        # The driver, which only wants to know what there may be, calls the same code first.
        if client is None or client.handle_state is not StatefulProcessorHandleState.CREATED:
            self.opened = self.handle.getMapState(self.name, _NUMBER, _PACKED)

    def open(self) -> Any:
        """The map; Spark opens one only while a processor starts, so to Spark it starts once more."""
        if self.opened is None:
            client = client_of(self.handle)
            assert client is not None
            before = client.handle_state
            if before is not StatefulProcessorHandleState.CREATED:
                client.set_handle_state(StatefulProcessorHandleState.CREATED)
            self.opened = self.handle.getMapState(self.name, _NUMBER, _PACKED)
            if before is not StatefulProcessorHandleState.CREATED:
                client.set_handle_state(before)
        return self.opened

    def get(self, number: int) -> bytes | None:
        """The bytes of a number, if there are any."""
        found = self.open().getValue((number,))
        return None if found is None else stored(self.name, number, bytes(found[0]))

    def has(self, number: int) -> bool:
        """Is there anything? Spark logs a warning where there is nothing to get."""
        return bool(self.open().containsKey((number,)))

    def put(self, number: int, packed: bytes) -> None:
        """Puts bytes under a number."""
        from cepheid.runners.checksums import with_checksum

        self.open().updateValue((number,), (with_checksum(packed, f"{self.name} {number}"),))

    def remove(self, number: int) -> None:
        """Forgets the bytes of a number."""
        self.open().removeKey((number,))


def stored(name: str, number: int, packed: bytes) -> bytes:
    """What lies in a map of the state store under a number; an error if it is not what was put there."""
    from cepheid.runners.checksums import CHECKPOINT, checked, is_older
    from cepheid.runners.stream.idle_keys import are_codes  # the engine, without which Spark may ask what there is

    what = f"part {number} of '{name}' in the state of the checkpoint"
    return checked(packed, what, CHECKPOINT, are_codes if name == "keys" else is_older, f"{name} {number}")


def client_of(handle: StatefulProcessorHandle) -> StatefulProcessorApiClient | None:
    """What a handle talks to the JVM with; versions of Spark name it differently."""
    found = [each for each in vars(handle).values() if isinstance(each, StatefulProcessorApiClient)]
    return found[0] if found else None


@dataclass(frozen=True)
class StateChunks:
    """Chunks, the keys of those asleep, and what NON-OVERLAP carries."""

    chunks: StateMap
    codes: StateMap | None
    ends: StateMap | None
    held: dict[int, bytes] = field(default_factory=dict)  # chunks of the state that this worker knows
    small: dict[int, bytes] = field(default_factory=dict)  # chunks that lie with the clock
    remembered: dict[int, object] = field(default_factory=dict)  # searches that have seen them

    def read(self, number: int) -> bytes:
        """The chunk of a number."""
        if number in self.small:
            return self.small[number]
        if number not in self.held:
            found = self.chunks.get(number)
            if found is None:
                raise missing_chunk()
            self.held[number] = found
        return self.held[number]

    def write(self, number: int, chunk: bytes) -> None:
        """Puts a chunk under a number."""
        if len(chunk) + sum(map(len, self.small.values())) <= WITH_CLOCK:
            self.small[number] = chunk
        else:
            self.held[number] = chunk
            self.chunks.put(number, chunk)

    def remove(self, number: int) -> None:
        """Forgets a chunk."""
        if self.small.pop(number, None) is None:
            self.held.pop(number, None)
            self.chunks.remove(number)

    def keys(self, number: int) -> bytes:
        """The codes of the keys in a chunk."""
        found = self.codes.get(number) if self.codes is not None else None
        if found is None:
            raise missing_chunk()
        return found

    def write_keys(self, number: int, keys: bytes) -> None:
        """Puts down the codes of the keys in a chunk."""
        assert self.codes is not None
        self.codes.put(number, keys)

    def remove_keys(self, number: int) -> None:
        """Forgets the codes of a chunk."""
        assert self.codes is not None
        self.codes.remove(number)

    def ended(self, query: int) -> bytes | None:
        """Where the last matches of a query ended."""
        return self.ends.get(query) if self.ends is not None and self.ends.has(query) else None

    def end(self, query: int, ended: bytes) -> None:
        """Puts down where the last matches of a query ended."""
        assert self.ends is not None
        self.ends.put(query, ended)

    def forget(self, query: int) -> None:
        """A query is no longer there."""
        if self.ends is not None:
            self.ends.remove(query)


def missing_chunk() -> DataError:
    """The clock names events that the store does not have."""
    from cepheid.runners.checksums import CHECKPOINT

    message = "the checkpoint holds a state that cannot be read: some of its events are missing"
    return DataError(message, hint=CHECKPOINT)
