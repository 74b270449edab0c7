"""`cepheid.read`: a file of events as a table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path

import pyarrow as pa

from cepheid.errors import CepheidError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import EventFiles, find_files
from cepheid.files.parsed import bad_table, first_bad, is_parsed, parse
from cepheid.files.partitions import with_partitions
from cepheid.runners.records import write_aside

_POLICIES = ("fail", "drop", "set aside")
_log = logging.getLogger("cepheid")


def read(
    path: str | PathLike[str] | Sequence[str | PathLike[str]],
    format: str | None = None,
    *,
    bad_records: str = "fail",
    aside: Path | str | Callable[[pa.Table], object] | None = None,
) -> pa.Table:
    """The events of a file, a directory, a glob or several of them, as a pyarrow table.

    The file name shows the format, or `format` names it: `parquet`, `csv`, `jsonl`, `arrow`, `delta`, `syslog`,
    `access-log`, `xes` or `ocel`. See docs/how-to/read-logs.md for the columns. `bad_records` and `aside` say how
    to handle invalid lines of logs, as in `cepheid.match`.

    >>> import tempfile
    >>> log = Path(tempfile.mkdtemp()) / "auth.log"
    >>> _ = log.write_text("2024-05-04T09:00:01Z web1 sshd[7]: Failed password for root from 10.0.0.9 port 22 ssh2\\n")
    >>> read(log).select(["ts", "type", "user", "address"]).to_pylist()[0]["user"]
    'root'
    """
    if bad_records not in _POLICIES:
        raise CepheidError(f"bad_records={bad_records!r}", hint=f"choose one of {', '.join(map(repr, _POLICIES))}")
    if (aside is not None) != (bad_records == "set aside"):
        raise CepheidError("bad_records='set aside' and aside= must be passed together", hint="pass both, or none")
    given = [path] if isinstance(path, str | PathLike) else list(path)
    try:
        files = find_files([str(each) for each in given], format)
    except CepheidError as error:
        error.args = (error.message.replace("--input ", ""),)
        error.message = error.args[0]
        error.hint = None if error.hint is None else error.hint.replace("--format", "format=")
        raise
    if not is_parsed(files.format):
        return read_events(files, parse_times=False)
    return _parsed(files, bad_records, aside)


def _parsed(files: EventFiles, policy: str, aside: Path | str | Callable[[pa.Table], object] | None) -> pa.Table:
    tables, bad = [], []
    for path in files.paths:
        found = parse(path, files.format)
        if found.bad and policy == "fail":
            raise first_bad(path, found)
        if found.bad:
            _log.warning("left out %s lines of %s, first %s", f"{len(found.bad):,}", path, found.bad[0])
            bad.append(bad_table(found.bad).add_column(0, "file", pa.array([str(path)] * len(found.bad))))
        tables.append(with_partitions(found.table, path, files.partitions))
    if bad and aside is not None:
        write_aside(pa.concat_tables(bad), aside)
    return pa.concat_tables(tables, promote_options="permissive")
