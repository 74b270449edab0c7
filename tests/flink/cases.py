"""Events in short: "c a1 a2 b3" are events c, a, a, b with prices 0, 1, 2, 3, one step of time apart."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import cepheid
from cepheid.flink import Pattern


def events(text: str) -> pa.Table:
    """A table of events; `x@9` stands at time 9, others one after the event before."""
    rows, time = [], 0
    for number, word in enumerate(text.split()):
        name, _, at = word.partition("@")
        time = int(at) if at else time + 1
        price = name.lstrip("abcdefghijklmnopqrstuvwxyz")
        rows.append({"ts": time, "name": name[: len(name) - len(price)], "price": float(price or 0), "id": number})
    kinds = {"ts": pa.int64(), "name": pa.string(), "price": pa.float64(), "id": pa.int64()}
    return pa.Table.from_pylist(rows, pa.schema(kinds))


def found(text: str, pattern: Pattern, **options: Any) -> list[str]:
    """The matches, each as the events of all its steps in the order of time, in short; sorted."""
    table = events(text)
    words = [word.partition("@")[0] for word in text.split()]
    result = cepheid.match(table, pattern, time="ts", type=None, **options)
    assert result.equals(cepheid.match(table, pattern, time="ts", type=None, **{**options, "engine": "reference"}))
    steps = [name for name in result.column_names if name not in ("match_start", "match_end")]
    matches = []
    for row in result.to_pylist():
        taken = [each for step in steps for each in (row[step] if isinstance(row[step], list) else [row[step]]) if each]
        matches.append(" ".join(words[event["id"]] for event in sorted(taken, key=lambda event: event["id"])))
    return sorted(matches)
