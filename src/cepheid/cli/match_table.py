"""Matches as a table on the terminal: what all events of a match share once, the rest event by event."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date, datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

_LONGEST_GROUP = 3  # events of a Kleene group that are shown before it is cut in the middle


def match_table(
    result: pa.Table, *, time: str = "ts", type: str | None = "type", limit: int = 20, title: str | None = None
) -> Table:
    """The first matches of a result."""
    rows = result.slice(0, limit).to_pylist()
    variables = [field.name for field in result.schema if is_event(field.type)]
    shared = shared_attributes([events_of(row, variables) for row in rows], {time, type})
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    for name in shared:
        shown.add_column(name, overflow="fold", style="cyan")
    for field in result.schema:
        number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        shown.add_column(field.name, overflow="fold", justify="right" if number else "left")
    for row in rows:
        events = events_of(row, variables)
        lead = [value_text(events[0][name]) if events else "" for name in shared]
        cells = [_cell(row[field.name], field, row["match_start"], time, {type, *shared}) for field in result.schema]
        shown.add_row(*lead, *cells)
    return shown


def is_event(kind: pa.DataType) -> bool:
    """Is this the type of an event, or of a Kleene group of them?"""
    return bool(pa.types.is_struct(kind) or (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)))


def events_of(row: dict[str, Any], variables: list[str]) -> list[dict[str, Any]]:
    """All events of a match that were seen, Kleene groups unfolded."""
    found: list[dict[str, Any]] = []
    for name in variables:
        value = row[name]
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def shared_attributes(matches: list[list[dict[str, Any]]], besides: Collection[str | None]) -> list[str]:
    """The attributes on which the events of each match agree; showing them once keeps the table narrow."""
    full = [events for events in matches if events]
    if not any(len(events) > 1 for events in full):
        return []
    return [
        name
        for name in full[0][0]
        if name not in besides
        and all(event[name] is not None and event[name] == events[0][name] for events in full for event in events)
    ]


def _cell(value: Any, field: pa.Field, start: Any, time: str, hidden: Collection[str | None]) -> Text:
    if value is None:
        return Text("○ not seen" if is_event(field.type) else "", style="dim italic")
    if pa.types.is_struct(field.type):
        return event_text(value, time, hidden, start)
    if is_event(field.type):
        return _group_text(value, time, hidden, start)
    if field.name in ("probability", "confidence"):
        return Text(f"{value:.3f}", style="bold")
    return Text(value_text(value, None if field.name == "match_start" else start))


def _group_text(events: list[dict[str, Any]], time: str, hidden: Collection[str | None], start: Any) -> Text:
    parts = [event_text(event, time, hidden, start) for event in events]
    if len(parts) > _LONGEST_GROUP:
        parts = [*parts[: _LONGEST_GROUP - 1], Text(f"… {len(parts) - _LONGEST_GROUP} more …", "dim"), parts[-1]]
    return Text("\n").join(parts)


def event_text(event: dict[str, Any], time: str, hidden: Collection[str | None] = (), start: Any = None) -> Text:
    """An event in one line: its time, then what it has of other attributes.

    >>> event_text({"ts": 3, "type": "A", "id": 7, "note": None}, "ts", {"type"}).plain
    '3 id=7'
    """
    text = Text(value_text(event[time], start)) if event.get(time) is not None else Text()
    for name, value in event.items():
        if name != time and name not in hidden and value is not None:
            text.append(" " if text else "")
            text.append(f"{name}=", style="dim").append(value_text(value, start))
    return text


def value_text(value: Any, near: Any = None) -> str:
    """A value as people write it; a time on the same day as `near` without its date.

    >>> value_text(datetime(2024, 5, 4, 9)), value_text(datetime(2024, 5, 4, 9), datetime(2024, 5, 4, 8))
    ('2024-05-04 09:00:00', '09:00:00')
    >>> value_text(0.1 + 0.2), value_text([1.0, 2.0, 3.0, 4.0])
    ('0.3', '[1, 2, … 4]')
    """
    match value:
        case None:
            return ""
        case datetime():
            plain = value.replace(tzinfo=None)
            precision = "milliseconds" if plain.microsecond else "seconds"
            if isinstance(near, datetime) and near.date() == plain.date():
                return plain.time().isoformat(precision)
            return plain.isoformat(" ", precision)
        case date():
            return value.isoformat()
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case list():
            texts = [value_text(item) for item in value]
            return f"[{', '.join(texts)}]" if len(texts) <= 3 else f"[{texts[0]}, {texts[1]}, … {texts[-1]}]"
    return str(value)
