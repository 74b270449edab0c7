"""System logs: the lines of syslog, auth.log and the like, in the forms of RFC 3164, RFC 5424 and rsyslog.

Messages of sshd, PAM and sudo are told apart by `type`, with `user`, `address` and `port`; the type of any other
message is the program that wrote it. Times of RFC 3164 have no year: see `_years`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.errors import CepheidError, DataError
from cepheid.files.rows import BadLine, Parsed, Rows, numbered_lines

TYPES = {
    "ts": pa.int64(),
    "type": pa.string(),
    "user": pa.string(),
    "address": pa.string(),
    "port": pa.int64(),
    "host": pa.string(),
    "program": pa.string(),
    "pid": pa.int64(),
    "message": pa.string(),
}
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTHS = {name: number for number, name in enumerate(_NAMES)}
_DAYS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_MICROSECONDS = 1_000_000
_MONTH = 32 * 86_400 * _MICROSECONDS  # room for any month in the code of a time without a year
_MOST_REPEATED = 10_000

_PRIORITY = r"(?:<(?P<priority>\d{1,3})>)?"
_CLOCK = r"(?P<hour>[01]\d|2[0-3]):(?P<minute>[0-5]\d):(?P<second>[0-5]\d)(?:\.(?P<part>\d{1,6})\d*)?"
_YEARLESS = re.compile(rf"{_PRIORITY}(?P<month>[A-Z][a-z]{{2}}) {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK} (?P<rest>.*)", re.S)
_ISO = re.compile(rf"{_PRIORITY}(?P<time>\d{{4}}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:?\d\d)) (?P<rest>.*)", re.S)
_STRUCTURED = re.compile(
    r"<(?P<priority>\d{1,3})>1 (?P<time>\S+) (?P<host>\S+) (?P<program>\S+) (?P<pid>\S+) (?P<id>\S+) "
    r'(?P<data>-|(?:\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])+)(?: \ufeff?(?P<message>.*))?',
    re.S,
)
_TAGGED = re.compile(r"(?P<program>[^\s:\[]+?)(?:\[(?P<pid>\d{1,9})\])?: ?(?P<message>.*)", re.S)
_REPEATED = re.compile(r"message repeated (\d+) times: \[ ?(.*)\]", re.S)
_LAST_REPEATED = re.compile(r"(?:.*: )?last message repeated (\d+) times?")

# The user is what a client sends, and may itself hold " from ... port ...": the last one is sshd's own.
_FROM = r"(?P<user>.*) from (?P<address>\S+) port (?P<port>\d+)"
_UNKNOWN = "(?:invalid user |illegal user )?"
_MESSAGES = tuple(
    (kind, re.compile(pattern, re.S))
    for kind, pattern in (
        ("Failed", rf"Failed \S+ for {_UNKNOWN}{_FROM}"),
        ("Accepted", rf"Accepted \S+ for {_FROM}"),
        ("InvalidUser", r"(?:Invalid|Illegal) user (?P<user>.*) from (?P<address>\S+)(?: port (?P<port>\d+))?"),
        ("TooManyFailures", rf"(?:error: )?maximum authentication attempts exceeded for {_UNKNOWN}{_FROM}"),
        (
            "AuthenticationFailure",
            r"(?:pam_\w+\(\S+\): )?authentication failure; .*\brhost=(?P<address>\S*)(?:\s+user=(?P<user>.*))?",
        ),
        ("SessionOpened", r"(?:pam_\w+\(\S+\): )?session opened for user (?P<user>[^\s(]+)"),
        ("SessionClosed", r"(?:pam_\w+\(\S+\): )?session closed for user (?P<user>[^\s(]+)"),
        (
            "Disconnected",
            r"(?:Connection (?:closed|reset) by|Received disconnect from|Disconnected from) "
            r"(?:(?:(?:invalid|authenticating) )?user (?P<user>.*) )?(?P<address>[\da-fA-F.:]+)"
            r"(?: port (?P<port>\d+))?(?=[\s:]|$)",
        ),
        ("Sudo", r"\s*(?P<user>\S+) : .*\bCOMMAND="),
    )
)
_WORDS = re.compile("Failed|Accepted|nvalid|llegal|maximum|authentication|session|onnect|COMMAND=")


def looks_like_syslog(line: str) -> bool:
    """Is it a line of a system log?"""
    return any(form.match(line) is not None for form in (_YEARLESS, _ISO, _STRUCTURED))


def read_syslog(path: Path, detail: str = "") -> Parsed:
    """The events of a system log; `detail` is the year of its first line, where times have none."""
    if detail and not re.fullmatch(r"\d{4}", detail):
        raise CepheidError(f"format 'syslog:{detail}': '{detail}' is not a year", hint="write it as in syslog:2024")
    rows, bad = Rows(TYPES), list[BadLine]()
    clock = _Clock()
    last: dict[str, Any] | None = None
    for number, line in numbered_lines(path):
        found = _parsed(line, clock)
        if isinstance(found, str):
            bad.append(BadLine(number, found, line))
            continue
        repeated, row = _unfolded(found, last)
        if row is None:
            bad.append(BadLine(number, "repeats a message that is not there", line))
            continue
        for _ in range(repeated):
            rows.add(row)
        last = row
    table = rows.table()
    return Parsed(_with_times(table, clock, path, int(detail) if detail else None), bad)


class _Clock:
    """Which form of time a file has, and at which line of it a new year begins."""

    def __init__(self) -> None:
        self.has_zone: bool | None = None  # not known before the first line
        self._year = 0
        self._month = -1

    def take(self, has_zone: bool) -> bool:
        """Has it the form of the lines before it? A time without a zone has no place among others that have one."""
        if self.has_zone is None:
            self.has_zone = has_zone
        return self.has_zone == has_zone

    def code(self, month: int, day: int, microseconds: int) -> int:
        """A time without a year as a number; the years are counted from that of the first line."""
        if self._month >= 0 and month <= self._month - 2:
            self._year += 1
        elif month == self._month + 11:  # a line of December that was written in January
            self._year -= 1
        self._month = month
        return (12 * self._year + month) * _MONTH + (day - 1) * 86_400 * _MICROSECONDS + microseconds


def _parsed(line: str, clock: _Clock) -> dict[str, object] | str:
    """The parts of a line, or what is wrong with it."""
    form = _STRUCTURED.match(line) or _YEARLESS.match(line) or _ISO.match(line)
    if form is None:
        return "is not a line of syslog"
    parts = form.groupdict()
    time = _zoneless_time(parts, clock) if "month" in parts else _zoned_time(parts["time"], clock)
    if isinstance(time, str):
        return time
    row: dict[str, Any] = {"ts": time}
    if parts["priority"] is not None:
        row["priority"] = int(parts["priority"])
    if "data" in parts:
        named = {name: None if parts[name] == "-" else parts[name] for name in ("host", "program", "pid", "data")}
        row |= named | {"message": parts["message"] or ""}
        row["pid"] = int(row["pid"]) if row["pid"] and row["pid"].isdecimal() and len(row["pid"]) < 10 else None
    else:
        host, _, rest = parts["rest"].partition(" ")
        tagged = _TAGGED.match(rest)
        row |= {"host": host, "message": rest}
        if tagged is not None:
            pid = tagged["pid"]
            row |= {"program": tagged["program"], "pid": int(pid) if pid else None, "message": tagged["message"]}
    return row


def _zoneless_time(parts: dict[str, str], clock: _Clock) -> int | str:
    month, day = MONTHS.get(parts["month"], -1), int(parts["day"])
    if month < 0 or not 1 <= day <= _DAYS[month]:
        return "has an invalid day"
    if not clock.take(has_zone=False):
        return "has a time without a zone, among times that have one"
    seconds = (int(parts["hour"]) * 60 + int(parts["minute"])) * 60 + int(parts["second"])
    part = int((parts["part"] or "0").ljust(6, "0"))
    return clock.code(month, day, seconds * _MICROSECONDS + part)


def _zoned_time(text: str, clock: _Clock) -> int | str:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return "has no time"
    if moment.tzinfo is None:
        return "has a time without a zone"
    if not clock.take(has_zone=True):
        return "has a time with a zone, among times without one"
    return microseconds(moment)


def microseconds(moment: datetime) -> int:
    """A time with a zone as microseconds since 1970."""
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _unfolded(row: dict[str, Any], last: dict[str, Any] | None) -> tuple[int, dict[str, object] | None]:
    """How often the event happened, and what it is: daemons write `message repeated 5 times` for equal ones."""
    message = row["message"]
    if "repeated" in message:
        again = _LAST_REPEATED.fullmatch(message)
        if again is not None and int(again[1]) <= _MOST_REPEATED:
            same = last is not None and last["host"] == row["host"]
            return int(again[1]), {**last, "ts": row["ts"]} if same and last is not None else None
        repeated = _REPEATED.fullmatch(message)
        if repeated is not None and int(repeated[1]) <= _MOST_REPEATED:
            return int(repeated[1]), _described({**row, "message": repeated[2]})
    return 1, _described(row)


def _described(row: dict[str, Any]) -> dict[str, object]:
    """The row with its type, and with what the message says of a user."""
    message = row["message"]
    if _WORDS.search(message):
        for kind, pattern in _MESSAGES:
            found = pattern.match(message)
            if found is not None:
                parts = found.groupdict()
                port = int(parts["port"]) if parts.get("port") and len(parts["port"]) < 6 else None
                user, address = parts.get("user"), parts.get("address")
                return {**row, "type": kind, "user": user or None, "address": address or None, "port": port}
    return {**row, "type": row.get("program") or "message"}


def _with_times(table: pa.Table, clock: _Clock, path: Path, year: int | None) -> pa.Table:
    if clock.has_zone is None:
        return table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us")))
    if clock.has_zone:
        return table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    codes = table["ts"].to_numpy()
    changed = datetime.fromtimestamp(path.stat().st_mtime)
    for first in _years(codes, changed, year):
        months, rest = np.divmod(codes, _MONTH)
        begin = (np.int64(12 * (first - 1970)) + months).astype("datetime64[M]")
        times = begin.astype("datetime64[us]") + rest.astype("timedelta64[us]")
        if year is not None or times[-1] <= np.datetime64(changed + timedelta(days=1)):
            break
    if (times.astype("datetime64[M]") != begin).any():
        hint = "give the year of the first line, as in format='syslog:2024'"
        raise DataError(f"{path} has a 29th of February, which its year does not have: it begins in {first}", hint=hint)
    return table.set_column(0, "ts", pa.array(times, pa.timestamp("us")))


def _years(codes: Any, changed: datetime, year: int | None) -> Iterator[int]:
    """Years that the first line may be of, the latest first: the last line is not later than the file."""
    if year is not None:
        yield year
        return
    latest = changed.year + 1 - int(codes[-1] // _MONTH // 12)
    yield from (latest, latest - 1, latest - 2)
