"""Access logs of web servers in the common and the combined form, as Apache, nginx and others write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from cepheid.errors import CepheidError
from cepheid.files.rows import BadLine, Parsed, Rows, numbered_lines
from cepheid.files.syslog import MONTHS

TYPES = {
    "ts": pa.timestamp("us", "UTC"),
    "type": pa.string(),
    "address": pa.string(),
    "user": pa.string(),
    "path": pa.string(),
    "query": pa.string(),
    "protocol": pa.string(),
    "status": pa.int64(),
    "bytes": pa.int64(),
    "referrer": pa.string(),
    "agent": pa.string(),
}
MALFORMED = "MALFORMED"  # the type of a request that is none, such as a TLS handshake at a port for HTTP
_QUOTED = r'"((?:[^"\\]|\\.)*)"'
_LINE = re.compile(
    r"(?:(?P<server>[\w.-]+:\d+) )?(?P<address>\S+) \S+ (?P<user>\S+|[^\[\]\"]+) "
    r"\[(?P<day>\d\d)/(?P<month>[A-Z][a-z]{2})/(?P<year>\d{4}):(?P<clock>\d\d:\d\d:\d\d) (?P<zone>[+-]\d{4})\] "
    rf"{_QUOTED.replace('(', '(?P<request>', 1)} (?P<status>\d{{3}}) (?P<bytes>\d{{1,18}}|-)"
    rf"(?: {_QUOTED.replace('(', '(?P<referrer>', 1)} {_QUOTED.replace('(', '(?P<agent>', 1)})?(?P<more> .*)?"
)
_REQUEST = re.compile(r"(?P<method>[A-Z][A-Z_-]{1,30}) (?P<path>\S.*?)(?: (?P<protocol>HTTP/[\d.]+))?")
_ESCAPED = re.compile(r'\\(["\\])')


def looks_like_access_log(line: str) -> bool:
    """Is it a line of an access log?"""
    return _LINE.fullmatch(line) is not None


def read_access_log(path: Path, detail: str = "") -> Parsed:
    """The requests of an access log; the type of each is its method."""
    if detail:
        raise CepheidError(f"format 'access-log:{detail}' takes no detail after access-log", hint="leave it out")
    rows, bad = Rows(TYPES), list[BadLine]()
    zones: dict[str, timezone] = {}
    for number, line in numbered_lines(path):
        found = _parsed(line, zones)
        if isinstance(found, str):
            bad.append(BadLine(number, found, line))
        else:
            rows.add(found)
    return Parsed(rows.table(), bad)


def _parsed(line: str, zones: dict[str, timezone]) -> dict[str, object] | str:
    """The parts of a line, or what is wrong with it."""
    form = _LINE.fullmatch(line)
    if form is None:
        return "is not a line of an access log"
    parts = form.groupdict()
    try:
        moment = _moment(parts, zones)
    except ValueError:
        return "has no such time"
    request = _REQUEST.fullmatch(parts["request"])
    kind, target, protocol = request.group("method", "path", "protocol") if request else (MALFORMED, None, None)
    where, mark, query = (target or parts["request"]).partition("?") if request else (parts["request"], "", "")
    row = {
        "ts": moment,
        "type": kind,
        "address": parts["address"],
        "user": _given(parts["user"]),
        "path": _plain(where),
        "query": _plain(query) if mark else None,
        "protocol": protocol,
        "status": int(parts["status"]),
        "bytes": None if parts["bytes"] == "-" else int(parts["bytes"]),
        "referrer": _given(parts["referrer"]),
        "agent": _given(parts["agent"]),
    }
    if parts["server"] is not None:
        row["server"] = parts["server"]
    if parts["more"] is not None:
        row["more"] = parts["more"].strip()
    return row


def _moment(parts: dict[str, str], zones: dict[str, timezone]) -> datetime:
    offset = parts["zone"]
    zone = zones.get(offset)
    if zone is None:
        apart = timedelta(hours=int(offset[1:3]), minutes=int(offset[3:]))
        zone = zones[offset] = timezone(-apart if offset[0] == "-" else apart)
    hour, minute, second = map(int, parts["clock"].split(":"))
    month = MONTHS.get(parts["month"], -1) + 1
    return datetime(int(parts["year"]), month, int(parts["day"]), hour, minute, second, tzinfo=zone).astimezone(UTC)


def _given(text: str | None) -> str | None:
    return None if text in (None, "-") else _plain(text)


def _plain(text: str | None) -> str | None:
    r"""A quoted text without the backslashes before quotes.

    >>> _plain(r'a \"b\"')
    'a "b"'
    """
    return text if text is None or "\\" not in text else _ESCAPED.sub(r"\1", text)
