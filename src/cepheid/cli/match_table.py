"""Matches as a table on the terminal: what all events of a match share once, the rest event by event."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from typing import Any

import pyarrow as pa
from rich import box
from rich.table import Table
from rich.text import Text

from cepheid.draw.text import event_parts, events_of, is_event, shared_attributes, value_text, with_durations, zone_text

_LONGEST_GROUP = 3  # events of a Kleene group that are shown before it is cut in the middle


def match_table(
    result: pa.Table, *, time: str = "ts", type: str | None = "type", limit: int = 20, title: str | None = None
) -> Table:
    """The first matches of a result. Where their events are shown, these tell when a match starts and ends."""
    result = with_durations(result.slice(0, limit))
    rows = result.to_pylist()
    variables = [field.name for field in result.schema if is_event(field.type)]
    shared = shared_attributes([events_of(row, variables) for row in rows], {time, type})
    fields = [field for field in result.schema if not variables or field.name not in ("match_start", "match_end")]
    day = _only_day(rows)
    caption = None if day is None else f"times of {day.date().isoformat()}{zone_text(day)}"
    shown = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
    shown.caption, shown.caption_justify = caption, "left"
    for name in shared:
        shown.add_column(name, overflow="fold", style="cyan")
    for field in fields:
        kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        number = any(kind(field.type) for kind in kinds)
        shown.add_column(field.name, overflow="fold", justify="right" if number else "left")
    for row in rows:
        events = events_of(row, variables)
        lead = [value_text(events[0][name]) if events else "" for name in shared]
        shown.add_row(*lead, *(_cell(row[field.name], field, day, time, {type, *shared}) for field in fields))
    return shown


def _only_day(rows: list[dict[str, Any]]) -> datetime | None:
    """The day of all matches, if it is one: then it need not be said in every cell."""
    edges = [row.get(name) for row in rows for name in ("match_start", "match_end")]
    days = {edge.date() if isinstance(edge, datetime) else None for edge in edges}
    return edges[0] if len(days) == 1 and isinstance(edges[0], datetime) else None


def _cell(value: Any, field: pa.Field, day: object, time: str, hidden: Collection[str | None]) -> Text:
    if value is None:
        return Text("○ not seen" if is_event(field.type) else "", style="dim italic")
    if pa.types.is_struct(field.type):
        return event_text(value, time, hidden, day)
    if is_event(field.type):
        return _group_text(value, time, hidden, day)
    if field.name in ("probability", "confidence"):
        return Text(f"{value:.3f}", style="bold")
    return Text(value_text(value, day))


def _group_text(events: list[dict[str, Any]], time: str, hidden: Collection[str | None], day: object) -> Text:
    parts = [event_text(event, time, hidden, day) for event in events]
    if len(parts) > _LONGEST_GROUP:
        parts = [*parts[: _LONGEST_GROUP - 1], Text(f"… {len(parts) - _LONGEST_GROUP} more …", "dim"), parts[-1]]
    return Text("\n").join(parts)


def event_text(event: dict[str, Any], time: str, hidden: Collection[str | None] = (), day: object = None) -> Text:
    """An event in one line: its time, then what it has of other attributes.

    >>> event_text({"ts": 3, "type": "A", "id": 7, "note": None}, "ts", {"type"}).plain
    '3 id=7'
    """
    text = Text()
    for name, value in event_parts(event, time, hidden, day):
        text.append(" " if text else "")
        text.append(f"{name}=" if name else "", style="dim").append(value)
    return text
