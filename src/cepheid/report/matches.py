"""Results as small lists of plain rows, which charts are drawn from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.draw.text import event_parts, events_of, is_event, shared_attributes, value_text
from cepheid.engine.data.arrays import Float64s
from cepheid.errors import CepheidError, closest
from cepheid.report.facts import unit_of_result

MOST_MATCHES = 500  # of which the timeline holds the events


@dataclass(frozen=True)
class Shown:
    """A result, and what its columns mean."""

    result: pa.Table
    time: str = "ts"
    type: str | None = "type"
    lower: str | None = None
    upper: str | None = None
    keys: tuple[str, ...] = ()  # attributes that all events of a match share
    unit: str | None = None  # what a row is, where the query is known

    @property
    def variables(self) -> list[str]:
        """The columns that hold events."""
        return [field.name for field in self.result.schema if is_event(field.type)]

    @property
    def likelihood(self) -> str | None:
        """The column that says how sure a match is, if there is one."""
        return next((name for name in ("probability", "confidence") if name in self.result.column_names), None)

    @property
    def noun(self) -> str:
        """What a row is called."""
        return self.unit or unit_of_result(self.result)

    @property
    def is_timed(self) -> bool:
        """Has each row a beginning and an end? Totals, and the rows of row patterns, have none."""
        return {"match_start", "match_end"} <= set(self.result.column_names)

    @property
    def is_timestamp(self) -> bool:
        """Are times instants of a calendar, or plain numbers?"""
        return self.is_timed and bool(pa.types.is_temporal(self.result.schema.field("match_start").type))


def numbers(column: pa.ChunkedArray) -> Float64s:
    """Times as numbers: microseconds for timestamps."""
    if pa.types.is_temporal(column.type):
        zone = column.type.tz if pa.types.is_timestamp(column.type) else None
        column = pc.cast(column, pa.timestamp("us", zone), safe=False).cast(pa.int64())
    return np.asarray(column.to_numpy(zero_copy_only=False), float)


def chart_time(value: object) -> Any:
    """A time as Vega takes it: milliseconds since 1970 for timestamps, the number itself otherwise."""
    if isinstance(value, datetime):
        naive = value.replace(tzinfo=None)
        return (naive - datetime(1970, 1, 1)).total_seconds() * 1000
    return value


def timeline_rows(shown: Shown, limit: int = MOST_MATCHES) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """A row per match (a bar from start to end), and a row per event; unseen events lie between their neighbours.

    If there are more matches than the limit, every so manieth is taken, so that all times are shown.
    """
    table = shown.result
    if table.num_rows > limit:
        table = table.take(pa.array(np.linspace(0, table.num_rows - 1, limit).astype(np.int64)))
    rows = table.to_pylist()
    variables = shown.variables
    keys = (
        list(shown.keys) or shared_attributes([events_of(row, variables) for row in rows], {shown.time, shown.type})[:1]
    )
    used: dict[str, int] = {}
    lengths = [chart_time(row["match_end"]) - chart_time(row["match_start"]) for row in rows]
    usual = float(np.median([length for length in lengths if length] or [0.0]))
    bars, marks = [], []
    for number, row in enumerate(rows):
        label = _label(row, variables, keys) or f"match {number + 1}"
        used[label] = used.get(label, 0) + 1
        name = label if used[label] == 1 else f"{label} ({used[label]})"
        likely = row[shown.likelihood] if shown.likelihood else None
        bar = {
            "match": name,
            "from": chart_time(row["match_start"]),
            "to": chart_time(row["match_end"]),
            "begins": value_text(row["match_start"]),
            "ends": value_text(row["match_end"]),
            "rank": number,
        }
        bars.append({**bar, "likely": likely} if likely is not None else bar)
        marks += _marks(row, name, number, shown, usual / 2)
    return bars, marks


def _label(row: dict[str, Any], variables: Sequence[str], keys: Sequence[str]) -> str:
    events = events_of(row, variables)
    found = {name: event[name] for name in keys for event in events[::-1] if event.get(name) is not None}
    return ", ".join(value_text(found[name]) for name in keys if name in found)


def _marks(row: dict[str, Any], name: str, rank: int, shown: Shown, apart: float) -> list[dict[str, object]]:
    """The events of one match. What is unseen at its edges is drawn a way `apart` from it."""
    groups = [(variable, events_of(row, [variable])) for variable in shown.variables]
    clock = shown.lower or shown.time
    marks = []
    for index, (variable, events) in enumerate(groups):
        for event in events:
            hidden = {shown.type, shown.lower, shown.upper}
            parts = [f"{key}: {value}" if key else value for key, value in event_parts(event, shown.time, hidden)]
            mark = {"match": name, "rank": rank, "variable": variable, "seen": True, "event": ", ".join(parts)}
            low = chart_time(event.get(clock))
            high = chart_time(event.get(shown.upper)) if shown.upper else low
            marks.append({**mark, "at": (low + high) / 2 if shown.upper else low, "from": low, "to": high})
        if not events:
            before = [event[clock] for _, some in groups[:index] for event in some]
            after = [event[clock] for _, some in groups[index + 1 :] for event in some]
            low = chart_time(before[-1]) if before else chart_time(row["match_start"]) - 2 * apart
            high = chart_time(after[0]) if after else chart_time(row["match_end"]) + 2 * apart
            mark = {
                "match": name,
                "rank": rank,
                "variable": variable,
                "seen": False,
                "event": f"{variable} was not seen",
            }
            marks.append({**mark, "at": (low + high) / 2, "from": low, "to": high})
    return marks


def counts_over_time(shown: Shown, bins: int = 40) -> list[dict[str, Any]]:
    """How many matches ended in each interval of time."""
    ends = numbers(shown.result.column("match_end"))
    if not len(ends):
        return []
    low, high = float(ends.min()), float(ends.max())
    whole = not pa.types.is_floating(shown.result.schema.field("match_end").type)
    edges = np.linspace(low, high + (1 if whole else 1e-9), bins + 1)
    counts, _ = np.histogram(ends, edges)
    scale = 1e-3 if shown.is_timestamp else 1.0
    pairs = zip(edges[:-1] * scale, edges[1:] * scale, counts, strict=True)
    return [
        {"from": float(a), "to": float(b), "begins": _text_at(a, shown), "ends": _text_at(b, shown), "matches": int(n)}
        for a, b, n in pairs
    ]


def _text_at(value: float, shown: Shown) -> str:
    """A place on the chart's axis as tables write it."""
    if not shown.is_timestamp:
        return value_text(float(value))
    return value_text(datetime(1970, 1, 1) + timedelta(milliseconds=round(float(value))))


def likelihood_counts(values: Float64s, bins: int = 20) -> list[dict[str, object]]:
    """How many matches are how likely."""
    counts, edges = np.histogram(values, np.linspace(0.0, 1.0, bins + 1))
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return [{"from": float(a), "to": float(b), "matches": int(n)} for a, b, n in pairs]


def keys_of(shown: Shown, key: str) -> list[Any]:
    """An attribute's value for each match: a column of the result, or of any of its events."""
    if key in shown.result.column_names:
        return list(shown.result.column(key).to_pylist())
    found = []
    for row in shown.result.select(shown.variables).to_pylist():
        values = [event[key] for event in events_of(row, shown.variables) if event.get(key) is not None]
        if not values:
            raise CepheidError(f"the matches have no attribute '{key}'", hint="name one that their events have")
        found.append(values[-1])
    return found


def truth_of(table: pa.Table, key: str, column: str) -> dict[object, bool]:
    """Which keys of a table of truth are real."""
    for name in (key, column):
        if name not in table.column_names:
            near = closest(name, table.column_names)
            hint = f"did you mean {near}?" if near else f"the columns are {', '.join(table.column_names)}"
            raise CepheidError(f"the truth has no column '{name}'", hint=hint)
    pairs = zip(table.column(key).to_pylist(), table.column(column).to_pylist(), strict=True)
    return {name: bool(real) for name, real in pairs}


@dataclass(frozen=True)
class Calibration:
    """Reported probabilities against what was true."""

    bins: list[dict[str, Any]]
    error: float  # mean distance between what was said and what was true, bin by bin, weighted
    brier: float  # mean squared distance, match by match


def calibration(said: Float64s, true: npt.NDArray[np.bool_], bins: int = 10) -> Calibration:
    """How well probabilities are calibrated: about 70 % of the matches with probability 70 % should be true.

    >>> calibration(np.array([0.1, 0.1, 0.9, 0.9]), np.array([False, False, True, True])).error
    0.1
    """
    place = np.minimum((said * bins).astype(int), bins - 1)
    rows, error = [], 0.0
    for each in range(bins):
        here = place == each
        if here.any():
            expected, observed = float(said[here].mean()), float(true[here].mean())
            rows.append({"said": expected, "true": observed, "matches": int(here.sum())})
            error += abs(expected - observed) * float(here.mean())
    brier = float(np.mean((said - true) ** 2)) if len(said) else 0.0
    return Calibration(rows, round(error, 6), brier)
