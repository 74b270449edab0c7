"""Results as files: by the suffix of the path, or JSON lines on standard output."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.cli.outputs import replacing
from cepheid.draw.text import with_durations
from cepheid.errors import CepheidError, closest

_ROWS_AT_A_TIME = 10_000
FORMULA = r"^([=+\-@\t\r\n＝＋－＠])"  # what a spreadsheet takes for the beginning of a formula


def check_output(path: Path) -> None:
    """Refuses a name that tells no format, before any work is done; one without an ending is a directory of Parquet."""
    if path.is_dir() and not is_folder(path):
        raise CepheidError(f"--output {path} is a directory", hint="name a file in it, or another one")
    if is_folder(path) or path.suffix.lower() in WRITERS:
        return
    near = closest(path.suffix.lower(), WRITERS)
    hint = f"did you mean {path.with_suffix(near)}?" if near else f"use one of {', '.join(WRITERS)}"
    raise CepheidError(f"--output {path}: no format for '{path.suffix}'", hint=hint)


def is_folder(path: Path) -> bool:
    """Is it a directory that Parquet files are written to?

    >>> is_folder(Path("found")), is_folder(Path("found.csv"))
    (True, False)
    """
    return not path.suffix


def write_table(
    table: pa.Table, path: Path, partition_by: Sequence[str] = (), *, overwrite: bool = False, formulas: bool = True
) -> None:
    """Writes a table in the format that the suffix names, or as a directory of Parquet files; what is there stays
    until all is written. Without `formulas`, texts in CSV that a spreadsheet would compute are escaped."""
    check_output(path)
    with replacing(path, overwrite=overwrite) as beside:
        if is_folder(path):
            _write_folder(table, beside, partition_by)
        elif path.suffix.lower() == ".csv" and not formulas:
            _write_csv(without_formulas(flat(table)), beside)
        else:
            WRITERS[path.suffix.lower()](table, beside)


def _write_folder(table: pa.Table, path: Path, partition_by: Sequence[str]) -> None:
    from pyarrow import dataset

    for name in partition_by:
        if name not in table.column_names:
            near = closest(name, table.column_names)
            hint = f"did you mean {near}?" if near else f"the columns are {', '.join(table.column_names)}"
            raise CepheidError(f"--partition-by {name}: the result has no such column", hint=hint)
    by_name = dataset.partitioning(pa.schema([table.schema.field(name) for name in partition_by]), flavor="hive")
    dataset.write_dataset(
        table,
        str(path),
        format="parquet",
        partitioning=by_name if partition_by else None,
        basename_template="part-{i}.parquet",
    )


def _write_parquet(table: pa.Table, path: Path) -> None:
    from pyarrow import parquet

    parquet.write_table(table, path)


def _write_csv(table: pa.Table, path: Path) -> None:
    from pyarrow import csv

    csv.write_csv(flat(table), path)


def _write_arrow(table: pa.Table, path: Path) -> None:
    from pyarrow import feather

    feather.write_feather(table, str(path))


def _write_json_lines(table: pa.Table, path: Path) -> None:
    with path.open("w", encoding="utf-8") as stream:
        write_json_lines(table, stream)


def write_json_lines(table: pa.Table, stream: TextIO | None = None) -> None:
    """One JSON object a line."""
    for line in json_lines(table):
        print(line, file=stream or sys.stdout)


def json_lines(table: pa.Table) -> Iterator[str]:
    """Each row as JSON; times as ISO 8601, durations as hours, minutes and seconds."""
    for batch in with_durations(table).to_batches(max_chunksize=_ROWS_AT_A_TIME):
        for row in batch.to_pylist():
            yield to_json(row)


def to_json(value: object) -> str:
    """JSON text of plain values and times."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: object) -> Any:
    if isinstance(value, date):  # datetime included
        return value.isoformat()
    if isinstance(value, timedelta):
        return clock_text(value)
    if isinstance(value, Decimal) and value.is_finite():  # a number, unless it would come back as another one
        near = int(value) if value == value.to_integral_value() else float(value)
        return near if isinstance(near, int) or Decimal(repr(near)) == value else str(value)
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def clock_text(length: timedelta) -> str:
    """A duration as hours, minutes and seconds, which spreadsheets, pandas and SQL systems read.

    >>> clock_text(timedelta(hours=26, seconds=4.5)), clock_text(-timedelta(minutes=2))
    ('26:00:04.500000', '-00:02:00')
    """
    sign, rest = ("-", -length) if length < timedelta() else ("", length)
    minutes, seconds = divmod(rest, timedelta(minutes=1))
    fraction = f".{seconds.microseconds:06d}" if seconds.microseconds else ""
    return f"{sign}{minutes // 60:02d}:{minutes % 60:02d}:{seconds.seconds:02d}{fraction}"


def flat(table: pa.Table) -> pa.Table:
    """The same without nesting: `x.ts`, `x.id` for the event x, lists as JSON text, and durations as text.

    >>> events = pa.table({"x": [{"ts": 1, "id": 7}], "b": [[{"ts": 2}, {"ts": 3}]]})
    >>> flat(events).to_pylist()
    [{'x.ts': 1, 'x.id': 7, 'b': '[{"ts": 2}, {"ts": 3}]'}]
    """
    table = with_durations(table)
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for index, field in enumerate(table.schema):
        if pa.types.is_duration(field.type):
            texts = [None if value is None else clock_text(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
        elif pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            texts = [None if value is None else to_json(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table


def without_formulas(table: pa.Table) -> pa.Table:
    """The same with a quote before texts, and names of columns, that a spreadsheet would take for a formula.

    >>> without_formulas(pa.table({"=x": ["=1+1", "a", None]})).to_pydict()
    {"'=x": ["'=1+1", 'a', None]}
    """
    columns = []
    for column in table.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
            column = pc.replace_substring_regex(column, FORMULA, r"'\1")
        columns.append(column)
    return pa.table(columns, names=[re.sub(FORMULA, r"'\1", name) for name in table.column_names])


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".json": _write_json_lines,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
