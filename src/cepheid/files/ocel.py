"""OCEL, object-centric event logs: OCEL 2.0 as JSON and as SQLite, OCEL 1.0 as JSON.

A row for each event. For each type of objects a column holds the list of those the event is about. With the name of a
type (`ocel:order`) a row is an event of one object of this type, and the column holds its id: the log of that type.
Attributes of objects and qualifiers of relations are left out.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.errors import CepheidError, DataError, closest
from cepheid.files.json_members import top_members
from cepheid.files.rows import BadLine, Parsed, Rows

TYPES = {"ts": pa.timestamp("us", "UTC"), "type": pa.string(), "id": pa.string()}
_SQLITE = b"SQLite format 3\0"
_TRUE = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True)
class _Event:
    id: object
    type: Any
    time: Any
    attributes: Mapping[str, object]
    objects: list[str]


@dataclass(frozen=True)
class _Kinds:
    """The types of objects by id, and the types of attributes by type of event."""

    objects: dict[str, str] = field(default_factory=dict)
    attributes: dict[tuple[str, str], str] = field(default_factory=dict)


def read_ocel(path: Path, detail: str = "") -> Parsed:
    """The events of an object-centric log; `detail` is the type of objects whose log is wanted."""
    with path.open("rb") as stream:
        by_type = stream.read(16) == _SQLITE
    kinds, events = _from_sqlite(path) if by_type else _from_json(path)
    types = sorted(set(kinds.objects.values()))
    if detail and detail not in types:
        near = closest(detail, types)
        hint = f"did you mean '{near}'?" if near else f"the log has {', '.join(types)}"
        raise CepheidError(f"format 'ocel:{detail}': the log has no objects of type '{detail}'", hint=hint)
    columns = {each: f"object:{each}" if each in TYPES else each for each in types}
    lists = {columns[each]: pa.string() if each == detail else pa.list_(pa.string()) for each in types}
    rows, bad = Rows({**TYPES, **lists}), list[BadLine]()
    for number, event in enumerate(events, start=1):
        row = _row(event, kinds, columns)
        if isinstance(row, str):
            bad.append(BadLine(number, f"(counted in events) {row}", f"event {event.id}"))
            continue
        about = row[columns[detail]] if detail else None
        for one in about if detail else [None]:  # type: ignore[union-attr]
            rows.add({**row, columns[detail]: one} if detail else row)
    return Parsed(rows.table().sort_by("ts") if by_type else rows.table(), bad)


def _row(event: _Event, kinds: _Kinds, columns: Mapping[str, str]) -> dict[str, Any] | str:
    """An event as a row, or what is wrong with it."""
    try:
        moment = event.time if isinstance(event.time, datetime) else datetime.fromisoformat(str(event.time))
    except ValueError:
        return f"has the time {event.time!r}"
    row: dict[str, Any] = {name: [] for name in columns.values()}
    for each in event.objects:
        kind = kinds.objects.get(each)
        if kind is None:
            return f"is about '{each}', which is not an object of the log"
        row[columns[kind]].append(each)
    for name, value in event.attributes.items():
        own = f"event:{name}" if name in TYPES or name in columns.values() else name
        try:
            row[own] = _typed(value, kinds.attributes.get((str(event.type), name)))
        except ValueError:
            return f"has {name} = {value!r}, which is no {kinds.attributes[str(event.type), name]}"
    row["ts"] = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return {**row, "type": str(event.type), "id": str(event.id)}


def _typed(value: Any, kind: str | None) -> Any:
    """A value as the type of its attribute says: JSON has many of them as text."""
    if value is None or kind in (None, "string"):
        return value if value is None or isinstance(value, str | int | float | bool) else str(value)
    match kind:
        case "integer":
            return int(value)
        case "float":
            return float(value)
        case "boolean":
            if str(value).lower() not in _TRUE:
                raise ValueError(value)
            return _TRUE[str(value).lower()]
        case "time":
            moment = datetime.fromisoformat(str(value))
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return value


# --- JSON -----------------------------------------------------------------------------------------------------------


def _from_json(path: Path) -> tuple[_Kinds, Iterator[_Event]]:
    """The file is gone through twice, since objects may come after the events."""
    kinds, seen = _Kinds(), set[str]()
    for member, key, value in top_members(path, {"objects", "ocel:objects", "eventTypes", "ocel:global-log"}):
        seen.add(member)
        match member:
            case "objects":
                kinds.objects[_part(path, value, "id")] = _part(path, value, "type")
            case "ocel:objects":
                kinds.objects[str(key)] = _part(path, value, "ocel:type")
            case "eventTypes":
                for each in value.get("attributes", []):
                    kinds.attributes[_part(path, value, "name"), _part(path, each, "name")] = each.get("type", "string")
    if not seen:
        raise DataError(f"{path} is not an OCEL log: it has neither objects nor ocel:objects")
    return kinds, _json_events(path)


def _json_events(path: Path) -> Iterator[_Event]:
    for member, key, value in top_members(path, {"events", "ocel:events"}):
        if member == "events":
            about = [_part(path, each, "objectId") for each in value.get("relationships", [])]
            attributes = {_part(path, each, "name"): each.get("value") for each in value.get("attributes", [])}
            yield _Event(_part(path, value, "id"), _part(path, value, "type"), value.get("time"), attributes, about)
        else:
            about = [str(each) for each in value.get("ocel:omap", [])]
            kind = _part(path, value, "ocel:activity")
            yield _Event(key, kind, value.get("ocel:timestamp"), value.get("ocel:vmap", {}), about)


def _part(path: Path, value: object, name: str) -> str:
    if not isinstance(value, dict) or name not in value:
        raise DataError(f"cannot read {path} as OCEL: {str(value)[:100]} has no '{name}'")
    return str(value[name])


# --- SQLite ---------------------------------------------------------------------------------------------------------


def _from_sqlite(path: Path) -> tuple[_Kinds, Iterator[_Event]]:
    kinds = _Kinds()
    with closing(_opened(path)) as log:
        try:
            kinds.objects.update(log.execute("SELECT ocel_id, ocel_type FROM object"))
        except sqlite3.Error as error:
            raise DataError(f"{path} is not an OCEL 2.0 log: {error}") from None
    return kinds, _sqlite_events(path)


def _opened(path: Path) -> sqlite3.Connection:
    """The database, which nothing writes to."""
    return sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)


def _sqlite_events(path: Path) -> Iterator[_Event]:
    """The events, type by type: each type has a table of its own."""
    with closing(_opened(path)) as log:
        try:
            about: dict[Any, list[str]] = {}
            for key, each in log.execute("SELECT DISTINCT ocel_event_id, ocel_object_id FROM event_object"):
                about.setdefault(key, []).append(str(each))
            for kind, name in log.execute("SELECT ocel_type, ocel_type_map FROM event_map_type").fetchall():
                table = f'"event_{name.replace(chr(34), chr(34) * 2)}"'
                cursor = log.execute(f"SELECT * FROM {table}")
                columns = [each[0] for each in cursor.description]
                for values in cursor:
                    row = dict(zip(columns, values, strict=True))
                    key, time = row.pop("ocel_id", None), row.pop("ocel_time", None)
                    yield _Event(key, kind, time, row, about.get(key, []))
        except sqlite3.Error as error:
            raise DataError(f"cannot read {path} as OCEL 2.0: {error}") from None
