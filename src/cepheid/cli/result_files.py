"""Results as files: by the suffix of the path, or JSON lines on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any, TextIO

import pyarrow as pa

from cepheid.errors import CepheidError, closest

_ROWS_AT_A_TIME = 10_000


def check_output(path: Path) -> None:
    """Refuses a path that could not be written, before any work is done."""
    if path.suffix.lower() not in WRITERS:
        near = closest(path.suffix.lower(), WRITERS)
        hint = f"did you mean {path.with_suffix(near)}?" if near else f"use one of {', '.join(WRITERS)}"
        if not path.suffix:
            raise CepheidError(f"--output {path}: the name does not tell the format", hint=_endings(path))
        raise CepheidError(f"--output {path}: no format for '{path.suffix}'", hint=hint)
    if not path.parent.is_dir():
        raise CepheidError(f"--output {path}: there is no directory {path.parent}", hint=f"mkdir -p {path.parent}")


def _endings(path: Path) -> str:
    example = path / "found.parquet" if path.is_dir() else path.with_suffix(".parquet")
    return f"write {example}, for example; the endings are {', '.join(WRITERS)}"


def check_nothing_lost(output: Path, inputs: Sequence[str]) -> None:
    """Refuses to write over the input, or over a directory that holds anything but a result of Spark's."""
    target = output.resolve()
    for item in inputs:
        source = Path(item).resolve()
        if source == target or (output.is_dir() and target in source.parents):
            raise CepheidError(f"--output {output} is the input, which would be lost", hint="name another")
    others = [name for name in _names_in(output) if not name.startswith((".", "_", "part-"))]
    if others:
        raise CepheidError(f"--output {output} is a directory that holds {others[0]}", hint="name another")


def _names_in(path: Path) -> list[str]:
    return sorted(entry.name for entry in path.iterdir()) if path.is_dir() else []


def write_table(table: pa.Table, path: Path) -> None:
    """Writes a table in the format that the suffix names."""
    check_output(path)
    if path.is_dir():
        raise CepheidError(f"cannot write {path}: it is a directory", hint="name another file")
    try:
        WRITERS[path.suffix.lower()](table, path)
    except OSError as error:
        raise CepheidError(f"cannot write {path}: {error.strerror or error}") from None


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
    """Each row as JSON; times as ISO 8601."""
    for batch in table.to_batches(max_chunksize=_ROWS_AT_A_TIME):
        for row in batch.to_pylist():
            yield to_json(row)


def to_json(value: Any) -> str:
    """JSON text of plain values and times."""
    return json.dumps(value, ensure_ascii=False, default=_plain)


def _plain(value: Any) -> Any:
    if isinstance(value, date):  # datetime included
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    return str(value)


def flat(table: pa.Table) -> pa.Table:
    """The same without nesting: `x.ts`, `x.id` for the event x, and lists as JSON text.

    >>> events = pa.table({"x": [{"ts": 1, "id": 7}], "b": [[{"ts": 2}, {"ts": 3}]]})
    >>> flat(events).to_pylist()
    [{'x.ts': 1, 'x.id': 7, 'b': '[{"ts": 2}, {"ts": 3}]'}]
    """
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    for index, field in enumerate(table.schema):
        if pa.types.is_list(field.type) or pa.types.is_large_list(field.type):
            texts = [None if value is None else to_json(value) for value in table.column(index).to_pylist()]
            table = table.set_column(index, field.name, pa.array(texts, pa.string()))
    return table


WRITERS: dict[str, Callable[[pa.Table, Path], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_json_lines,
    ".ndjson": _write_json_lines,
    ".json": _write_json_lines,
    ".arrow": _write_arrow,
    ".feather": _write_arrow,
}
