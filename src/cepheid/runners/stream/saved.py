"""A saved state as one piece: the clock, the events that a later match may need, and what queries carry.

`live.save()` writes it, and so does `read_checkpoint` of a stream on Spark (runners/spark/moving.py): a query can move
between the two, since both keep the same (docs/how-to/live.md).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.runners.arrow_bytes import decoded_from_anyone, encoded

_KINDS = ("clock", "chunk", "ended")
# What reading damaged bytes can raise.
UNREADABLE = (pa.ArrowException, KeyError, ValueError, TypeError, AttributeError, OSError, MemoryError)


@dataclass(frozen=True)
class Saved:
    """What a state is made of."""

    clock: Mapping[str, Any]  # as it is stored, in JSON
    chunks: Mapping[int, bytes] = field(default_factory=dict)  # encoded events, by the number of a chunk
    ended: Mapping[int, bytes] = field(default_factory=dict)  # what a query carries, by its place

    def packed(self) -> bytes:
        """The state as bytes: an Arrow table with a row for each part."""
        rows = [("clock", 0, json.dumps(self.clock).encode())]
        rows += [("chunk", number, chunk) for number, chunk in self.chunks.items()]
        rows += [("ended", place, ended) for place, ended in self.ended.items()]
        kinds, numbers, values = zip(*rows, strict=True)
        return encoded(pa.table({"kind": kinds, "number": numbers, "packed": pa.array(values, pa.binary())}))

    @classmethod
    def read(cls, state: object) -> Saved:
        """The parts of a state."""
        if not isinstance(state, bytes):
            raise DataError(f"state is {type(state).__name__}, not bytes", hint="pass what save() returned")
        try:
            rows = decoded_from_anyone(state).to_pylist()
            parts = {kind: {row["number"]: row["packed"] for row in rows if row["kind"] == kind} for kind in _KINDS}
            clock = json.loads(parts["clock"][0].decode())
        except UNREADABLE:
            raise _no_state() from None
        return cls(clock, parts["chunk"], parts["ended"])

    def events(self) -> list[pa.Table]:
        """The events of each chunk."""
        try:
            return [decoded_from_anyone(self.chunks[chunk["number"]]) for chunk in self.clock["chunks"]]
        except UNREADABLE:
            raise _no_state() from None


def _no_state() -> DataError:
    return DataError("these bytes are no saved state of a live query", hint="pass what save() returned")
