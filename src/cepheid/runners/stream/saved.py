"""A saved state as one piece: the clock, the events that a later match may need, and what queries carry.

All languages save the same: a clock in JSON, and tables in chunks. Of a search that goes on where it stopped (row
patterns and Flink's patterns) the clock says whose it is. Their first format, numbers in front of tables, is read, too.

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
_WHOSE = "search"  # in the clock: the kind of a search that goes on where it stopped
_SEARCH_VERSION = 2
_FIRST_FORMAT = b"\x01\0\0\0"
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
    def read(cls, state: object, whose: str | None = None) -> Saved:
        """The parts of a state: of query text, or of a search of this name."""
        packed = checked_state(state)
        with reading(whose or "a live query"):
            rows = decoded_from_anyone(packed).to_pylist()
            parts = {kind: {row["number"]: row["packed"] for row in rows if row["kind"] == kind} for kind in _KINDS}
            clock = json.loads(parts["clock"][0].decode())
            if clock.get(_WHOSE) != whose:
                raise ValueError("the state of another kind of query")
        return cls(clock, parts["chunk"], parts["ended"])

    def events(self) -> list[pa.Table]:
        """The events of each chunk."""
        with reading("a live query"):
            return [decoded_from_anyone(self.chunks[chunk["number"]]) for chunk in self.clock["chunks"]]


def packed_search(whose: str, numbers: Mapping[str, int | None], tables: Sequence[pa.Table]) -> bytes:
    """The state of a search that goes on where it stopped: numbers and tables."""
    clock = {"version": _SEARCH_VERSION, _WHOSE: whose, **numbers}
    return Saved(clock, dict(enumerate(map(encoded, tables)))).packed()


def read_search(whose: str, names: Sequence[str], state: object) -> tuple[dict[str, int | None], list[pa.Table]]:
    """The numbers of these names, and the tables, of such a state; the first of the numbers may be None."""
    if checked_state(state)[:4] == _FIRST_FORMAT:
        return _read_first_format(names, state)
    saved = Saved.read(state, whose)
    version = saved.clock["version"]
    if version != _SEARCH_VERSION:
        hint = "start from a new checkpoint"
        raise DataError(f"the state is of version {version}, and this one reads up to {_SEARCH_VERSION}", hint=hint)
    tables = [decoded_from_anyone(saved.chunks[number]) for number in range(len(saved.chunks))]
    return {name: saved.clock[name] for name in names}, tables


def _read_first_format(names: Sequence[str], state: object) -> tuple[dict[str, int | None], list[pa.Table]]:
    """The same of a state as earlier versions wrote it: numbers, the lengths of three tables, and the tables.

    After the version comes the first number, and whether it is known.
    """
    packed = checked_state(state)
    read = decoded if packed is not state else decoded_from_anyone  # without a checksum it may be anything
    head = struct.Struct(f"<iqi{len(names) - 1}q3q")
    _, first, known, *numbers = head.unpack_from(packed)
    tables, at = [], head.size
    for length in numbers[-3:]:
        tables.append(read(packed[at : at + length]))
        at += length
    return dict(zip(names, [first if known else None, *numbers[:-3]], strict=True)), tables


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
