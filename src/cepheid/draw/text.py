"""Values, events and matches in words: what terminal, page and notebook have in common."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import date, datetime, timedelta
from typing import Any

import pyarrow as pa


def is_event(kind: pa.DataType) -> bool:
    """Is this the type of an event, or of a Kleene group of them?"""
    return bool(pa.types.is_struct(kind) or (pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)))


def events_of(row: dict[str, Any], variables: Collection[str]) -> list[dict[str, object]]:
    """All events of a match that were seen, Kleene groups unfolded."""
    found: list[dict[str, Any]] = []
    for name in variables:
        value = row[name]
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def shared_attributes(matches: list[list[dict[str, Any]]], besides: Collection[str | None]) -> list[str]:
    """The attributes on which the events of each match agree; showing them once keeps tables narrow.

    >>> shared_attributes([[{"ts": 1, "id": 7}, {"ts": 2, "id": 7}], [{"ts": 1, "id": 8}]], {"ts"})
    ['id']
    """
    full = [events for events in matches if events]
    if not any(len(events) > 1 for events in full):
        return []
    return [
        name
        for name in full[0][0]
        if name not in besides
        and all(event[name] is not None and event[name] == events[0][name] for events in full for event in events)
    ]


def event_parts(
    event: dict[str, Any], time: str, hidden: Collection[str | None] = (), near: object = None
) -> list[tuple[str, str]]:
    """An event as pairs of name and value, the time first and without a name; what is NULL is left out.

    >>> event_parts({"type": "A", "ts": 3, "id": 7, "note": None}, "ts", {"type"})
    [('', '3'), ('id', '7')]
    """
    found = [("", value_text(event[time], near))] if event.get(time) is not None else []
    for name, value in event.items():
        if name != time and name not in hidden and value is not None:
            found.append((name, value_text(value, near)))
    return found


def counted(number: int, one: str) -> str:
    """A number with its noun.

    >>> counted(1, "match"), counted(2500, "match"), counted(2, "total")
    ('1 match', '2,500 matches', '2 totals')
    """
    many = f"{one}es" if one.endswith("ch") else f"{one}s"
    return f"{number:,} {one if number == 1 else many}"


def zone_text(moment: datetime) -> str:
    """The zone of a time, to be put behind it; nothing if it has none.

    >>> zone_text(datetime.fromisoformat("2024-05-04T09:00:00-04:00")), zone_text(datetime(2024, 5, 4))
    (' -04:00', '')
    """
    apart = moment.utcoffset()
    if apart is None:
        return ""
    return " UTC" if not apart and "UTC" in str(moment.tzname()) else f" {moment.isoformat()[-6:]}"


def duration_text(length: timedelta) -> str:
    """A length of time, whole.

    >>> duration_text(timedelta(hours=26, seconds=4.5)), duration_text(-timedelta(minutes=2))
    ('1 d 2 h 4.5 s', '-2 min')
    """
    sign, rest = ("-", -length) if length < timedelta() else ("", length)
    parts = []
    for unit, one in (("d", timedelta(days=1)), ("h", timedelta(hours=1)), ("min", timedelta(minutes=1))):
        number, rest = divmod(rest, one)
        parts += [f"{number} {unit}"] if number else []
    seconds = f"{rest.seconds}.{rest.microseconds:06d}".rstrip("0").rstrip(".") if rest.microseconds else rest.seconds
    return sign + " ".join([*parts, f"{seconds} s"] if rest or not parts else parts)


def with_durations(result: pa.Table) -> pa.Table:
    """A result for people: numbers of microseconds that are lengths of time, by what the result says of them, as such.

    >>> result = pa.table({"took": [1_500_000]}).replace_schema_metadata({"cepheid": '{"durations": ["took"]}'})
    >>> with_durations(result)["took"].to_pylist()
    [datetime.timedelta(seconds=1, microseconds=500000)]
    """
    known = json.loads((result.schema.metadata or {}).get(b"cepheid", b"{}"))
    for name in known.get("durations", ()):
        if name in result.column_names and pa.types.is_integer(result.schema.field(name).type):
            place = result.column_names.index(name)
            result = result.set_column(place, name, result.column(place).cast(pa.duration("us")))
    return result


def value_text(value: object, near: object = None) -> str:
    """A value as people write it; a time on the same day as `near` without its date and zone.

    >>> value_text(datetime(2024, 5, 4, 9)), value_text(datetime(2024, 5, 4, 9), datetime(2024, 5, 4, 8))
    ('2024-05-04 09:00:00', '09:00:00')
    >>> value_text(datetime.fromisoformat("2024-05-04T09:00:00Z"))
    '2024-05-04 09:00:00 UTC'
    >>> value_text(0.1 + 0.2), value_text([1.0, 2.0, 3.0, 4.0])
    ('0.3', '[1, 2, … 4]')
    >>> value_text(timedelta(seconds=90))
    '1 min 30 s'
    """
    match value:
        case None:
            return ""
        case datetime():
            plain = value.replace(tzinfo=None)
            precision = "milliseconds" if plain.microsecond else "seconds"
            if isinstance(near, datetime) and near.date() == plain.date():
                return plain.time().isoformat(precision)
            return plain.isoformat(" ", precision) + zone_text(value)
        case date():
            return value.isoformat()
        case timedelta():
            return duration_text(value)
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.6g}"
        case list():
            texts = [value_text(item) for item in value]
            return f"[{', '.join(texts)}]" if len(texts) <= 3 else f"[{texts[0]}, {texts[1]}, … {texts[-1]}]"
    return str(value)
