"""Time zones: what the clocks of a zone show at an instant, and at which instant they show a time.

Times are whole microseconds since 1970, of an instant in UTC or of what a clock shows as if it were in UTC. Where the
clocks are put forward, a time that they leave out is as much later as they were put; where they are put back, a time
that they show twice is the first of the two. So do Java and Spark.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cepheid.errors import DataError

Int64s = npt.NDArray[np.int64]
IN_UTC = "UTC"
_EPOCH = datetime(1970, 1, 1)
_DAY, _QUARTER = 86_400_000_000, 900_000_000  # microseconds
_LEAST, _MOST = -62_135_510_400_000_000, 253_402_214_400_000_000  # what a datetime can hold, a day inside
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?")
_UTC = frozenset({"Z", "UTC", "GMT", "UT", "Etc/UTC", "Etc/Zulu", "Zulu"})
# Names that Java knows and the time zone database does not.
_SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo", "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare", "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


@lru_cache(64)
def zone_called(name: str) -> str:
    """The name of a zone as Arrow and Python know it; an error if there is no such zone.

    >>> zone_called("America/New_York"), zone_called("Z"), zone_called("GMT+5:30"), zone_called("PST")
    ('America/New_York', 'UTC', '+05:30', 'America/Los_Angeles')
    """
    plain = name.strip()
    if plain in _UTC:
        return IN_UTC
    offset = _fixed(plain)
    if offset is not None and not offset % timedelta(minutes=1):
        minutes = abs(offset) // timedelta(minutes=1)
        sign = "+" if offset > timedelta() else "-"
        return f"{sign}{minutes // 60:02}:{minutes % 60:02}" if minutes else IN_UTC
    if offset is not None or zone_in_text(plain) is None:
        hint = "name a region, such as Europe/Berlin, or an offset, such as +05:30"
        raise DataError(f"no time zone {name!r}", hint=hint)
    return _SHORT.get(plain, plain)


def zone_in_text(name: str) -> tzinfo | None:
    """A zone as a text names it; None if there is no such zone.

    >>> zone_in_text("Z"), zone_in_text("-1:30"), zone_in_text("Mars")
    (datetime.timezone.utc, datetime.timezone(datetime.timedelta(days=-1, seconds=81000)), None)
    """
    if name in _UTC:
        return UTC
    offset = _fixed(name)
    if offset is not None:
        return timezone(offset)
    try:
        return ZoneInfo(_SHORT.get(name, name))
    except (KeyError, ValueError, OSError):
        return None


def _fixed(name: str) -> timedelta | None:
    """An offset from UTC, of at most 18 hours."""
    found = _OFFSET.fullmatch(name)
    if found is None:
        return None
    sign, hours, minutes, seconds = found.groups()
    length = timedelta(hours=int(hours), minutes=int(minutes or 0), seconds=int(seconds or 0))
    fits = int(minutes or 0) < 60 and int(seconds or 0) < 60 and length <= timedelta(hours=18)
    return (length if sign == "+" else -length) if fits else None


@lru_cache(64)
def zone_info(name: str) -> tzinfo:
    """A zone for datetimes."""
    found = zone_in_text(zone_called(name))
    assert found is not None
    return found


def name_of(zone: tzinfo) -> str:
    """The name of the zone of a datetime.

    >>> name_of(UTC), name_of(zone_info("Asia/Kolkata")), name_of(timezone(timedelta(hours=-3)))
    ('UTC', 'Asia/Kolkata', '-03:00')
    """
    return zone_called(str(getattr(zone, "key", None) or getattr(zone, "zone", None) or zone))


def to_wall(time: int, zone: str) -> int:
    """What the clocks of a zone show at an instant.

    >>> to_wall(0, "Asia/Kolkata") // 60_000_000
    330
    """
    return time + _offset(time, zone, shown=False)


def to_instant(wall: int, zone: str, near: int | None = None) -> int:
    """The instant at which the clocks of a zone show a time.

    Of a time that they show twice it is the one at which they are put as they are at an instant `near` it.

    >>> gap = 1_772_937_000_000_000  # 2026-03-08 02:30:00, which New York leaves out
    >>> to_wall(to_instant(gap, "America/New_York"), "America/New_York") - gap
    3600000000
    """
    if near is not None and to_wall(wall - _offset(near, zone, shown=False), zone) == wall:
        return wall - _offset(near, zone, shown=False)
    return wall - _offset(wall, zone, shown=True)


def to_walls(times: Int64s, zone: str) -> Int64s:
    """The same for many instants."""
    return times + _offsets(times, zone, shown=False)


def to_instants(walls: Int64s, zone: str, near: Int64s | None = None) -> Int64s:
    """The same for many times that clocks show."""
    found = walls - _offsets(walls, zone, shown=True)
    if near is None:
        return found
    same = walls - _offsets(near, zone, shown=False)
    return np.where(to_walls(same, zone) == walls, same, found)


def instants_of(column: Any, zone: str, near: Any = None) -> Any:
    """An Arrow column, or scalar, of times without a zone as instants: they are those of a zone."""
    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([instants_of(chunk, zone) for chunk in column.chunks], pa.timestamp("us", zone))
    if isinstance(column, pa.Scalar):
        return instants_of(pa.array([column.as_py()], column.type), zone, None if near is None else pa.array([near]))[0]
    whole = column.cast(pa.timestamp("us"), safe=False).cast(pa.int64())
    values = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False))
    mask = np.asarray(whole.is_null().to_numpy(zero_copy_only=False), bool) if whole.null_count else None
    beside = None if near is None else np.asarray(near.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False))
    return pa.array(to_instants(values, zone, beside), pa.int64(), mask=mask).cast(pa.timestamp("us", zone))


def _offset(time: int, zone: str, shown: bool) -> int:
    """How far the clocks of a zone are ahead, at an instant or where they show a time."""
    if zone == IN_UTC:
        return 0
    at = _EPOCH + timedelta(microseconds=min(max(time, _LEAST), _MOST))
    known = zone_info(zone)
    moment = at.replace(tzinfo=known) if shown else at.replace(tzinfo=UTC).astimezone(known)
    return (moment.utcoffset() or timedelta()) // timedelta(microseconds=1)


def _offsets(times: Int64s, zone: str, shown: bool, step: int = _DAY) -> Int64s:
    """The same for many: once for a day on which the clocks are not put, and so on for quarters of an hour."""
    if zone == IN_UTC or not len(times):
        return np.zeros(len(times), np.int64)
    if step == 1:
        return np.array([_offset(time, zone, shown) for time in times.tolist()], np.int64)
    steps, where = np.unique(times // step, return_inverse=True)
    first, last = (_offsets(steps * step + more, zone, shown, 1) for more in (0, step - 1))
    found = first[where]
    turning = np.flatnonzero((first != last)[where])
    found[turning] = _offsets(times[turning], zone, shown, _QUARTER if step == _DAY else 1)
    return found
