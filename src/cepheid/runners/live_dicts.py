"""Dicts as events of a schema: the types that their values have to be of, and their times as numbers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

FAR = 2**62  # times beyond are none
_KINDS: dict[pa.DataType, frozenset[type]] = {
    pa.int64(): frozenset({int, type(None)}),
    pa.float64(): frozenset({float, type(None)}),
    pa.string(): frozenset({str, type(None)}),
    pa.bool_(): frozenset({bool, type(None)}),
}
_NOTHING: frozenset[type] = frozenset({type(None)})
_NAIVE, _EPOCH = datetime(1970, 1, 1), datetime(1970, 1, 1, tzinfo=UTC)


def kinds_of(schema: pa.Schema, time: str) -> list[tuple[str, frozenset[type]]]:
    """For each column but the time, the types of values that a table takes as they are."""
    return [(each.name, _KINDS.get(each.type, _NOTHING)) for each in schema if each.name != time]


def instant_of(time: Any, whole: bool, zoned: bool) -> int:
    """A time in microseconds; FAR if it is not what the column holds: whole numbers, or times with or without zone."""
    if whole or type(time) is not datetime or (time.tzinfo is not None) != zoned:
        return FAR
    since = time - (_EPOCH if zoned else _NAIVE)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
