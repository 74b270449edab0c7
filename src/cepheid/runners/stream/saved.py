"""A saved state as one piece: the clock, the events that a later match may need, and what queries carry.

`live.save()` writes it, and so does `read_checkpoint` of a stream on Spark (runners/spark/moving.py): a query can move
between the two, since both keep the same (docs/how-to/live.md).
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.runners.arrow_bytes import decoded, decoded_from_anyone, encoded
from cepheid.runners.checksums import UNREADABLE, checked, is_older, with_checksum

_KINDS = ("clock", "chunk", "ended")
DAMAGED = "pass the bytes as save() returned them, or start without a state"


@dataclass(frozen=True)
class Saved:
    """What a state is made of."""

    clock: Mapping[str, Any]  # as it is stored, in JSON
    chunks: Mapping[int, bytes] = field(default_factory=dict)  # encoded events, by the number of a chunk
    ended: Mapping[int, bytes] = field(default_factory=dict)  # what a query carries, by its place

    def packed(self) -> bytes:
        """The state as bytes: an Arrow table with a row for each part, behind a checksum."""
        rows = [("clock", 0, json.dumps(self.clock).encode())]
        rows += [("chunk", number, chunk) for number, chunk in self.chunks.items()]
        rows += [("ended", place, ended) for place, ended in self.ended.items()]
        kinds, numbers, values = zip(*rows, strict=True)
        table = pa.table({"kind": kinds, "number": numbers, "packed": pa.array(values, pa.binary())})
        return with_checksum(encoded(table))

    @classmethod
    def read(cls, state: object) -> Saved:
        """The parts of a state."""
        packed = checked_state(state)
        with reading("a live query"):
            rows = decoded_from_anyone(packed).to_pylist()
            parts = {kind: {row["number"]: row["packed"] for row in rows if row["kind"] == kind} for kind in _KINDS}
            clock = json.loads(parts["clock"][0].decode())
        return cls(clock, parts["chunk"], parts["ended"])

    def events(self) -> list[pa.Table]:
        """The events of each chunk."""
        with reading("a live query"):
            return [decoded_from_anyone(self.chunks[chunk["number"]]) for chunk in self.clock["chunks"]]


def packed_search(head: str, numbers: Sequence[int], tables: Sequence[pa.Table]) -> bytes:
    """The state of a search that goes on where it stopped: numbers, the lengths of tables, and the tables."""
    parts = [encoded(table) for table in tables]
    return with_checksum(struct.pack(head, *numbers, *map(len, parts)) + b"".join(parts))


def read_search(head: str, version: int, count: int, state: object) -> tuple[Sequence[int], list[pa.Table]]:
    """The numbers after the version, and the tables, of a state that is made of so many tables."""
    packed = checked_state(state)
    read = decoded if packed is not state else decoded_from_anyone  # without a checksum it may be anything
    written, *numbers = struct.unpack_from(head, packed)
    if written != version:
        raise DataError(f"the state is of version {written}, not {version}", hint="start from a new checkpoint")
    tables, at = [], struct.calcsize(head)
    for length in numbers[-count:]:
        tables.append(read(packed[at : at + length]))
        at += length
    return numbers[:-count], tables


def checked_state(state: object) -> bytes:
    """A saved state without its checksum, which fits; earlier versions wrote none."""
    if not isinstance(state, bytes):
        raise DataError(f"state is {type(state).__name__}, not bytes", hint="pass what save() returned")
    return checked(state, "the saved state", DAMAGED, is_older)


@contextmanager
def reading(what: str) -> Iterator[None]:
    """Whatever goes wrong while bytes are read: they are something else."""
    try:
        yield
    except UNREADABLE:
        raise DataError(f"these bytes are not a saved state of {what}", hint="pass what save() returned") from None
