"""Event files as one Arrow table: Parquet, CSV, JSON lines, Arrow, Delta; single files, directories and globs."""

from __future__ import annotations

import glob
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import CepheidError, DataError, closest

SUFFIXES = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".json": "jsonl",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".arrow": "arrow",
    ".feather": "arrow",
}
UNIX = "unix"  # as --time-format: seconds since 1970
FORMATS = ("parquet", "csv", "jsonl", "arrow", "delta")
_COMPRESSED = {".gz", ".bz2", ".zst", ".lz4"}
_ELSEWHERE = re.compile(r"\w[\w+.-]+://")  # hdfs://, s3a:// and the like, which Spark knows
_LARGEST_BLOCK = 256 * 2**20  # pyarrow infers the types of CSV and JSON columns from the first block


@dataclass(frozen=True)
class EventFiles:
    """What --input stands for."""

    paths: tuple[Path, ...]
    format: str
    given: tuple[str, ...]

    @property
    def addresses(self) -> list[str]:
        """What Spark reads: the files here, or what was given where that lies elsewhere."""
        return [str(path) for path in self.paths] or list(self.given)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in self.paths if path.is_file())


def find_files(given: Sequence[str], format: str | None = None) -> EventFiles:
    """The files behind the paths, directories and globs, all of one format."""
    if format is not None and format not in FORMATS:
        near = closest(format, FORMATS)
        raise CepheidError(f"no format '{format}'", hint=f"choose {near or 'one of ' + ', '.join(FORMATS)}")
    if any(_ELSEWHERE.match(item) for item in given):
        return _elsewhere(given, format)
    paths = [path for item in given for path in _expanded(item)]
    if format == "delta" or (format is None and all((path / "_delta_log").is_dir() for path in paths)):
        return EventFiles(tuple(paths), "delta", tuple(given))
    files = [file for path in paths for file in _files_in(path, format)]
    formats = {format or format_of(file) for file in files}
    if len(formats) > 1:
        raise CepheidError(f"--input mixes {' and '.join(sorted(formats))} files", hint="give files of one format")
    full = [file for file in files if file.stat().st_size > 0]  # writers leave empty parts behind
    if not full:
        what = "is empty" if len(files) == 1 else f"and {len(files) - 1} more are empty"
        raise DataError(f"{files[0]} {what}", hint="a file of events has at least the names of its columns")
    return EventFiles(tuple(full), formats.pop(), tuple(given))


def _elsewhere(given: Sequence[str], format: str | None) -> EventFiles:
    """Files that cannot be looked at from here."""
    told = {format or SUFFIXES.get(_suffix(Path(item)), "") for item in given}
    if len(told) > 1 or "" in told:
        raise CepheidError(f"the format of {given[0]} is not clear", hint="say it with --format, as in parquet")
    return EventFiles((), told.pop(), tuple(given))


def _expanded(item: str) -> list[Path]:
    path = Path(item)
    if path.exists():
        return [path]
    if glob.has_magic(item):
        found = sorted(Path(name) for name in glob.glob(item, recursive=True))
        if found:
            return found
        raise CepheidError(f"--input {item}: no file has such a name")
    near = closest(path.name, [other.name for other in path.parent.iterdir()]) if path.parent.is_dir() else None
    hint = f"did you mean {path.parent / near}?" if near else None
    raise CepheidError(f"--input {item}: there is no such file or directory", hint=hint)


def _files_in(path: Path, format: str | None) -> list[Path]:
    if path.is_file():
        return [path]
    files = [file for file in sorted(path.rglob("*")) if file.is_file() and not _hidden(file.relative_to(path))]
    known = [file for file in files if _suffix(file) in SUFFIXES]
    chosen = files if format is not None and not known else known
    if not chosen:
        what = "is empty" if not files else f"holds no events: {files[0].name} is of no known format"
        raise CepheidError(f"--input {path}: the directory {what}", hint="say which with --format" if files else None)
    return chosen


def _hidden(path: Path) -> bool:
    """Spark's _SUCCESS and the like."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def format_of(path: Path) -> str:
    """The format that a file's name tells.

    >>> format_of(Path("day.csv.gz")), format_of(Path("part-0.parquet"))
    ('csv', 'parquet')
    """
    found = SUFFIXES.get(_suffix(path))
    if found is None:
        raise CepheidError(f"the format of {path} is not clear from its name", hint="say it with --format, as in csv")
    return found


def read_events(files: EventFiles, *, time: str = "ts", time_format: str | None = None) -> pa.Table:
    """All events in one table; times written as text are read by `time_format`."""
    if not files.paths:
        hint = "add --master, for example --master 'local[*]'"
        raise CepheidError(f"--input {files.given[0]} is not on this machine, so Spark has to read it", hint=hint)
    if files.format == "delta":
        tables = [_read_delta(path) for path in files.paths]
    elif files.format == "parquet":
        tables = [_read_parquet(files)]
    else:
        read = _READERS[files.format]
        tables = [_explained(path, read) for path in files.paths]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"the input files do not fit together: {error}", hint="give files with the same columns"
        ) from None
    if table.num_rows == 0 and files.format in ("csv", "jsonl"):  # the types of its columns are not known
        raise DataError(f"{files.paths[0]} holds no events, only the names of columns")
    return _with_time_parsed(table, time, time_format)


def _read_parquet(files: EventFiles) -> pa.Table:
    from pyarrow import dataset

    whole = [Path(item) for item in files.given]
    try:
        partitioning = "hive" if len(whole) == 1 and whole[0].is_dir() else None
        paths = [str(path) for path in files.paths]
        return dataset.dataset(paths, format="parquet", partitioning=partitioning).to_table()
    except (pa.ArrowInvalid, OSError) as error:
        text = _first_line(error)
        if "not a parquet file" in text:
            broken = re.search("input source '([^']*)'", text)
            raise DataError(f"{broken[1] if broken else files.given[0]} is not a Parquet file") from None
        raise DataError(f"cannot read {files.given[0]} as Parquet: {text}") from None


def _explained(path: Path, read: Callable[[Path], pa.Table]) -> pa.Table:
    try:
        return read(path)
    except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {_first_line(error)}") from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _read_csv(path: Path) -> pa.Table:
    from pyarrow import csv

    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=_block_size(path)),
        parse_options=csv.ParseOptions(delimiter=_delimiter(path), newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True, null_values=["", "NULL", "null", "NA", "NaN"]),
    )


def _block_size(path: Path) -> int:
    return max(2**20, min(path.stat().st_size + 1, _LARGEST_BLOCK))


def _delimiter(path: Path) -> str:
    """The one that splits the first line into most parts, a comma where none does."""
    with pa.input_stream(str(path)) as stream:  # knows .gz and the like by their names
        first = next(_lines(stream.read(2**16)), b"")
    counts = {mark: first.count(mark.encode()) for mark in (",", ";", "\t", "|")}
    return max(counts, key=lambda mark: counts[mark])


def _lines(data: bytes) -> Iterator[bytes]:
    yield from data.splitlines()


def _read_json_lines(path: Path) -> pa.Table:
    from pyarrow import json

    with pa.input_stream(str(path)) as stream:
        if stream.read(64).lstrip().startswith(b"["):
            raise DataError(f"{path} is one JSON list", hint="write one event a line, such as with jq -c '.[]'")
    options = json.ReadOptions(block_size=_block_size(path))
    with pa.input_stream(str(path)) as stream:
        return json.read_json(stream, read_options=options)


def _read_arrow(path: Path) -> pa.Table:
    from pyarrow import feather

    return feather.read_table(path)


def _read_delta(path: Path) -> pa.Table:
    try:
        from deltalake import DeltaTable  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        hint = "pip install deltalake, or read it with Spark"
        raise CepheidError(f"{path} is a Delta table, and the package deltalake is not installed", hint=hint) from None
    return DeltaTable(str(path)).to_pyarrow_table()


_READERS: dict[str, Callable[[Path], pa.Table]] = {
    "csv": _read_csv,
    "jsonl": _read_json_lines,
    "arrow": _read_arrow,
}


def _with_time_parsed(table: pa.Table, time: str, time_format: str | None) -> pa.Table:
    if time not in table.column_names:
        candidates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
        if len(candidates) == 1:
            hint = f"did you mean time='{candidates[0]}'? The columns are {', '.join(table.column_names)}"
            raise DataError(f"no column '{time}' for the time", hint=hint)
        return table
    index = table.column_names.index(time)
    column = table.column(time)
    if pa.types.is_floating(column.type) or (time_format == UNIX and pa.types.is_integer(column.type)):
        return table.set_column(index, time, _unix_times(column, time, time_format))
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return table
    if time_format is None:
        return table.set_column(index, time, _iso_times(column, time))
    try:
        parsed = pc.strptime(column, format=time_format, unit="us")
    except pa.ArrowInvalid as error:
        raise DataError(f"column '{time}' is not written as {time_format}: {_first_line(error)}") from None
    return table.set_column(index, time, parsed)


def _unix_times(column: pa.ChunkedArray, time: str, time_format: str | None) -> pa.ChunkedArray:
    """Seconds since 1970, perhaps with a fraction, as timestamps; numbers with a fraction are no time otherwise."""
    if time_format != UNIX:
        hint = f"pass --time-format {UNIX} if it counts seconds since 1970"
        raise DataError(f"column '{time}' holds the time, but it is a number with a fraction", hint=hint)
    microseconds = pc.round(pc.multiply(pc.cast(column, pa.float64()), 1e6))
    return pc.cast(microseconds, pa.int64()).cast(pa.timestamp("us"))


def _iso_times(column: pa.ChunkedArray, time: str) -> pa.ChunkedArray:
    """Times written as ISO 8601 says, all with a zone or all without."""
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return pc.cast(column, kind)
        except pa.ArrowInvalid:
            continue
    first = next((value for value in column.to_pylist() if value is not None), "")
    raise DataError(
        f"column '{time}' holds the time, but it is text such as '{first}'",
        hint="say how it is written, for example --time-format '%d/%m/%Y %H:%M'",
    )
