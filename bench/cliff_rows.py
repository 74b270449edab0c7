"""Rows of `bench cliffs`: a query beside the road and a smooth one over the same events, at several sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import cepheid

Call = Callable[[], Any]


@dataclass(frozen=True)
class Point:
    """One size of a row: the query beside the road and the smooth one over the same events."""

    axis: str
    size: float
    events: int
    cliff: Call
    smooth: Call | None


@dataclass(frozen=True)
class Row:
    """One row of the table: its points from light to heavy."""

    name: str
    points: Sequence[Point]


def keyed_events(events: int, keys: int, seed: int = 1) -> pa.Table:
    """Events of three types with two attributes that have as many values as there are keys."""
    random = np.random.default_rng(seed)
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(["A", "B", "C"])[random.integers(0, 3, events)],
            "id": random.integers(0, keys, events),
            "ref": random.integers(0, keys, events),
            "x": random.random(events),
        }
    )


def match(table: pa.Table, text: str, **options: Any) -> Call:
    """A call of the public interface."""
    query = cepheid.query(text)
    return lambda: query.match(table, **options)


def mixed_events(events: int, seed: int = 1) -> pa.Table:
    """Events of four types, one a step, with numbers, keys and texts."""
    random = np.random.default_rng(seed)
    names = np.array([f"name{number}" for number in range(50)])
    return pa.table(
        {
            "ts": np.arange(events),
            "type": np.array(list("ABCD"))[random.integers(0, 4, events)],
            "id": random.integers(0, 100, events),
            "x": random.random(events),
            "y": random.integers(0, 1_000, events),
            "s": names[random.integers(0, 50, events)],
            "u": np.char.add(names, "%")[random.integers(0, 50, events)],
        }
    )


def row_of(name: str, sizes: Sequence[int], cliff: str, smooth: str, **options: Any) -> Row:
    """A query beside another one over the same events; `options` are of the first."""
    points = []
    for events in sizes:
        table = mixed_events(events)
        calls = match(table, f"PATTERN {cliff}", **options), match(table, f"PATTERN {smooth}")
        points.append(Point("events", events, events, *calls))
    return Row(name, points)
