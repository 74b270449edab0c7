"""Event files as one Arrow table: Parquet, CSV, JSON lines, Arrow, Delta, and logs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.errors import CepheidError, DataError
from cepheid.files.input_files import EventFiles
from cepheid.files.parsed import is_parsed, read_parsed
from cepheid.files.partitions import with_partitions
from cepheid.files.scan import check_long_numbers, check_nesting, check_quotes, has_odd_numbers
from cepheid.runners.readings import read_times

UNIX = "unix"  # as --time-format: seconds since 1970
_LARGEST_BLOCK = 256 * 2**20  # pyarrow infers the types of CSV and JSON columns from the first block


def read_events(
    files: EventFiles, *, time: str = "ts", time_format: str | None = None, parse_times: bool = True
) -> pa.Table:
    """All events in one table; times written as text are read by `time_format`, unless `match` is to read them."""
    if not files.paths:
        hint = "add --master, for example --master 'local[*]'"
        raise CepheidError(f"--input {files.given[0]} is not on this machine, so Spark has to read it", hint=hint)
    if files.format == "delta":
        tables = [_read_delta(path) for path in files.paths]
    elif files.format == "parquet":
        tables = [_read_parquet(files)]
    elif is_parsed(files.format):
        logs = [(path, read_parsed(path, files.format, keep_bad=not parse_times)) for path in files.paths]
        tables = [with_partitions(table, path, files.partitions) for path, table in logs]
    else:
        read = partial(_read_csv, nulls=files.nulls) if files.format == "csv" else _READERS[files.format]
        tables = [with_partitions(_explained(path, read), path, files.partitions) for path in files.paths]
    try:
        table = pa.concat_tables(tables, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise DataError(
            f"the input files do not fit together: {error}", hint="give files with the same columns"
        ) from None
    if table.num_rows == 0 and files.format in ("csv", "jsonl"):  # the types of its columns are not known
        raise DataError(f"{files.paths[0]} holds no events, only the names of columns")
    return _with_time_parsed(table, time, time_format) if parse_times or time_format == UNIX else table


def _read_parquet(files: EventFiles) -> pa.Table:
    from pyarrow import dataset

    paths = [str(path) for path in files.paths]
    try:
        if files.partitions is None:
            return dataset.dataset(paths, format="parquet").to_table()
        by_name = dataset.partitioning(files.partitions.schema, flavor="hive")
        base = str(files.partitions.base)
        return dataset.dataset(paths, format="parquet", partitioning=by_name, partition_base_dir=base).to_table()
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
        hint = "fix that line, or check that the file has the format of its name"
        raise DataError(f"cannot read {path}: {_first_line(error)}", hint=hint) from None


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _read_csv(path: Path, nulls: Sequence[str] = ()) -> pa.Table:
    """The columns by what all of their fields hold; an empty field is NULL, and so is what `nulls` names."""
    delimiter = delimiter_of(path)
    check_quotes(path, delimiter)
    read = _arrow_csv(path, delimiter, nulls)
    for column in read.schema:
        if pa.types.is_binary(column.type):  # what Arrow makes of texts that are not UTF-8
            hint = f"convert it, for example with iconv -f latin1 -t utf-8 {path} > {path.stem}-utf8.csv"
            raise DataError(f"{path} is not written in UTF-8, in column '{column.name}'", hint=hint)
    numbers = [c.name for c in read.schema if pa.types.is_integer(c.type) or pa.types.is_floating(c.type)]
    rounded = any(pa.types.is_floating(column.type) for column in read.schema)
    if not numbers or len(set(read.column_names)) < read.num_columns:
        return read
    if not has_odd_numbers(path, delimiter, long=rounded):
        return read
    as_texts = _arrow_csv(path, delimiter, nulls, numbers)
    for name in numbers:
        if _is_text(as_texts.column(name)):
            read = read.set_column(read.column_names.index(name), name, as_texts.column(name))
    return read


def _arrow_csv(path: Path, delimiter: str, nulls: Sequence[str], texts: Sequence[str] | None = None) -> pa.Table:
    """What Arrow reads; with `texts`, these columns alone, as they are written."""
    from pyarrow import csv

    kinds = {} if texts is None else dict.fromkeys(texts, pa.string())
    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(block_size=_block_size(path)),
        parse_options=csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            strings_can_be_null=True, null_values=["", *nulls], column_types=kinds, include_columns=texts
        ),
    )


def _is_text(column: pa.ChunkedArray) -> bool:
    """Is it what looks like numbers and is none? 0815 is the name of a card, and no number of 64 bits has 20 digits."""
    if pc.any(pc.match_substring_regex(column, r"^ *[+-]?0[0-9]")).as_py():
        return True
    if not pc.all(pc.match_substring_regex(column, r"^ *[+-]?[0-9]+ *$")).as_py():
        return False
    long = column.filter(pc.match_substring_regex(column, r"[0-9]{19}"))
    return any(not -(2**63) <= int(text) < 2**63 for text in long.to_pylist())


def check_texts(files: EventFiles) -> None:
    """Refuses what Arrow refuses in files here that Spark is to read: it would take it for NULL, without a word."""
    for path in files.paths:
        if files.format == "csv":
            check_quotes(path, delimiter_of(path))
        elif files.format == "jsonl":
            check_nesting(path)


def _block_size(path: Path) -> int:
    return max(2**20, min(path.stat().st_size + 1, _LARGEST_BLOCK))


def delimiter_of(path: Path) -> str:
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
    check_nesting(path)
    options = json.ReadOptions(block_size=_block_size(path))
    with pa.input_stream(str(path)) as stream:
        read = json.read_json(stream, read_options=options)
    check_long_numbers(path, read)
    return read


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


_READERS: dict[str, Callable[[Path], pa.Table]] = {"jsonl": _read_json_lines, "arrow": _read_arrow}


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
    read = read_times(column, time_format)
    wrong = np.flatnonzero(read.bad & ~column.is_null().to_numpy().astype(bool))
    if not len(wrong):
        return table.set_column(index, time, read.column)
    row = int(wrong[0])
    if time_format is None and len(wrong) == len(column) - column.null_count:
        message = f"column '{time}' holds the time, but it is text such as '{column[row].as_py()}'"
        raise DataError(message, hint="pass its format, for example --time-format '%d/%m/%Y %H:%M'")
    many = f" ({len(wrong):,} of {len(column):,} rows are like this)" if len(wrong) > 1 else ""
    hint = "fix it, or pass --bad-records drop"
    raise DataError(f"'{column[row].as_py()}' is not {read.wanted}{many}", column=time, row=row, hint=hint)


def _unix_times(column: pa.ChunkedArray, time: str, time_format: str | None) -> pa.ChunkedArray:
    """Seconds since 1970, perhaps with a fraction, as timestamps; numbers with a fraction are no time otherwise."""
    if time_format != UNIX:
        hint = f"pass --time-format {UNIX} if it counts seconds since 1970"
        raise DataError(f"column '{time}' holds the time, but it is a number with a fraction", hint=hint)
    microseconds = pc.round(pc.multiply(pc.cast(column, pa.float64()), 1e6))
    return pc.cast(microseconds, pa.int64()).cast(pa.timestamp("us"))
