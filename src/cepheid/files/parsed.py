"""Formats that are parsed here, record by record: system logs, access logs, XES and OCEL."""

from __future__ import annotations

import logging
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.files.access_log import looks_like_access_log, read_access_log
from cepheid.files.ocel import read_ocel
from cepheid.files.rows import UNREAD, BadLine, Parsed, numbered_lines
from cepheid.files.syslog import looks_like_syslog, read_syslog
from cepheid.files.xes import read_xes

PARSERS: dict[str, Callable[[Path, str], Parsed]] = {
    "syslog": read_syslog,
    "access-log": read_access_log,
    "xes": read_xes,
    "ocel": read_ocel,
}
_FIRST_LINES = 20
_log = logging.getLogger("cepheid")


def is_parsed(format: str) -> bool:
    """Is it a format of this module, perhaps with a detail, as in syslog:2024?"""
    return format.partition(":")[0] in PARSERS


def parse(path: Path, format: str) -> Parsed:
    """What a file holds, and which of its records are no events. A file without any event is refused."""
    name, _, detail = format.partition(":")
    try:
        found = PARSERS[name](path, detail)
    except (OSError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    if not found.table.num_rows:
        message = f": {found.bad[0]}" if found.bad else ""
        hint = "every event needs a time" if "no time" in message else "name its format, as in format='csv'"
        raise DataError(f"{path} holds no events of format {name}{message}", hint=hint)
    return found


def read_parsed(path: Path, format: str, keep_bad: bool) -> pa.Table:
    """The events of a file. Records that are none stop it, or are kept, without a time and as they are written."""
    found = parse(path, format)
    if not found.bad:
        return found.table
    if not keep_bad:
        raise first_bad(path, found)
    unread = pa.table({UNREAD: pa.array([str(each) for each in found.bad], pa.string())})
    return pa.concat_tables([found.table, unread], promote_options="default")


def first_bad(path: Path, found: Parsed) -> DataError:
    """The error for records that are no events."""
    count = len(found.bad)
    many = f" ({count:,} lines are like this)" if count > 1 else ""
    hint = "correct it, or pass bad_records='drop' or 'set aside'"
    return DataError(f"{path}, {found.bad[0]}{many}", hint=hint)


def bad_table(bad: list[BadLine]) -> pa.Table:
    """Records that are no events, as a table to set aside."""
    kinds = {"line": pa.int64(), "reason": pa.string(), "text": pa.string()}
    return pa.table({name: pa.array([getattr(each, name) for each in bad], kind) for name, kind in kinds.items()})


def log_format(path: Path) -> str | None:
    """The format of a log by its first lines, if they tell."""
    if not path.is_file():
        return None
    try:
        lines = [line for _, line in islice(numbered_lines(path), _FIRST_LINES)]
    except (OSError, pa.ArrowInvalid, DataError):
        return None
    for name, looks_like in (("access-log", looks_like_access_log), ("syslog", looks_like_syslog)):
        if 2 * sum(map(looks_like, lines)) > len(lines):
            return name
    return None
