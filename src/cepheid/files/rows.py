"""Rows that a parser finds one after another as an Arrow table, and the records that it could not read."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import DataError

UNREAD = "unread"  # the column that holds records as they are written, where some could not be read
LONGEST_LINE = 2**20
_AT_A_TIME = 20_000
_SHOWN = 200  # characters of a line in a message


@dataclass(frozen=True)
class BadLine:
    """A record that is no event, and why."""

    line: int
    reason: str
    text: str

    def __str__(self) -> str:
        text = self.text if len(self.text) <= _SHOWN else self.text[: _SHOWN - 1] + "…"
        return f"line {self.line} {self.reason}: {text}" if text else f"line {self.line} {self.reason}"


@dataclass(frozen=True)
class Parsed:
    """What a file holds: its events, and the lines that are none."""

    table: pa.Table
    bad: list[BadLine] = field(default_factory=list)


class Rows:
    """Collects rows into columns, a batch at a time, so that few of them are Python objects at once.

    Columns of `types` are always there; the types of others follow from what they hold.

    >>> rows = Rows({"ts": pa.int64()})
    >>> for row in ({"ts": 1, "x": 1}, {"ts": 2, "x": 2.5}, {"ts": 3, "y": "a"}):
    ...     rows.add(row)
    >>> rows.table().to_pydict()
    {'ts': [1, 2, 3], 'x': [1.0, 2.5, None], 'y': [None, None, 'a']}
    """

    def __init__(self, types: Mapping[str, pa.DataType]) -> None:
        self._types = types
        self._rows: list[Mapping[str, Any]] = []
        self._batches: list[pa.Table] = []

    def add(self, row: Mapping[str, object]) -> None:
        """Takes a row; what it lacks is NULL."""
        self._rows.append(row)
        if len(self._rows) == _AT_A_TIME:
            self._flush()

    def table(self) -> pa.Table:
        """All rows so far."""
        self._flush()
        names = dict.fromkeys([*self._types, *(name for batch in self._batches for name in batch.column_names)])
        columns = {name: self._column(name) for name in names}
        return pa.table(columns)

    def _flush(self) -> None:
        names = dict.fromkeys([*self._types, *(name for row in self._rows for name in row)])
        arrays = {name: _array([row.get(name) for row in self._rows], self._types.get(name)) for name in names}
        self._batches.append(pa.table(arrays))
        self._rows = []

    def _column(self, name: str) -> pa.ChunkedArray:
        parts = [
            batch.column(name) if name in batch.column_names else pa.nulls(batch.num_rows) for batch in self._batches
        ]
        kinds = {part.type for part in parts if not pa.types.is_null(part.type)}
        for kind in _candidates(kinds):
            try:
                arrays = [part.cast(kind) for part in parts]
            except pa.ArrowInvalid:  # a whole number that no double holds
                continue
            chunks = [chunk for each in arrays for chunk in (each.chunks if hasattr(each, "chunks") else [each])]
            return pa.chunked_array(chunks, kind)
        raise AssertionError("every value can be a text")


def _candidates(kinds: set[pa.DataType]) -> list[pa.DataType]:
    if len(kinds) <= 1:
        return [*kinds, pa.string()]
    return [pa.float64(), pa.string()] if kinds == {pa.int64(), pa.float64()} else [pa.string()]


def _array(values: list[Any], kind: pa.DataType | None) -> pa.Array:
    if kind is not None:
        return pa.array(values, kind)
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return pa.array([None if value is None else str(value) for value in values], pa.string())


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a text file that hold something, with their numbers; compressed files are told by their names.

    Bytes that are not UTF-8 are written as \\xNN: what an attacker sends is part of a log.
    """
    with io.BufferedReader(pa.input_stream(str(path))) as stream:
        number = 0
        while line := stream.readline(LONGEST_LINE):
            number += 1
            if not line.endswith(b"\n") and len(line) == LONGEST_LINE:
                raise DataError(f"cannot read {path}: line {number} is longer than {LONGEST_LINE:,} bytes")
            text = line.decode("utf-8", "backslashreplace").rstrip("\r\n")
            if text.strip():
                yield number, text
