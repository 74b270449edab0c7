"""Columns in the names of directories, as Hive, Spark and pyarrow write them: `day=2024-05-04/part-0.parquet`."""

from __future__ import annotations

import glob
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePath
from urllib.parse import unquote

import pyarrow as pa

_NULL = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class Partitions:
    """Where the directories with such names begin, and the columns that they hold."""

    base: Path
    schema: pa.Schema
    complete: bool = True  # False: some files lie in no such directory, so they have NULL there


def base_of(given: str) -> Path:
    """The directory below which names of directories are columns: what is before the first wildcard or `name=value`.

    >>> base_of("sales/day=1/part-0.parquet"), base_of("sales/day=*/*.parquet"), base_of("sales")
    (PosixPath('sales'), PosixPath('sales'), PosixPath('sales'))
    """
    kept: list[str] = []
    for part in PurePath(given).parts:
        if glob.has_magic(part) or "=" in part:
            break
        kept.append(part)
    return Path(*kept) if kept else Path()


def values_in(path: Path, base: Path) -> dict[str, str | None]:
    """The columns in the directories between a base and a file.

    >>> values_in(Path("sales/day=1/shop=A%20B/part-0.parquet"), Path("sales"))
    {'day': '1', 'shop': 'A B'}
    """
    found: dict[str, str | None] = {}
    for part in path.relative_to(base).parts[:-1]:
        name, equals, value = part.partition("=")
        if equals and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


def find_partitions(files: Sequence[Path], given: Sequence[str]) -> Partitions | None:
    """The columns in the names of the files' directories; None where there are none."""
    bases = {base if base.is_dir() else base.parent for base in map(base_of, given)}
    base = Path(*_common([base.parts for base in bases])) if bases else Path()
    try:
        values = [values_in(path, base) for path in files]
    except ValueError:  # files of two places that have nothing in common
        return None
    names = list(dict.fromkeys(name for one in values for name in one))
    if not names:
        return None
    schema = pa.schema([(name, _kind(one.get(name) for one in values)) for name in names])
    return Partitions(base, schema, complete=all(len(one) == len(names) for one in values))


def _common(paths: Iterable[tuple[str, ...]]) -> list[str]:
    found: list[str] = []
    for parts in zip(*paths, strict=False):
        if len(set(parts)) > 1:
            break
        found.append(parts[0])
    return found


def _kind(values: Iterable[str | None]) -> pa.DataType:
    """Whole numbers, dates, or texts: what all values are."""
    known = [value for value in values if value is not None]
    if known and all(_reads(int, value) and "_" not in value for value in known):
        return pa.int64()
    if known and all(_reads(date.fromisoformat, value) for value in known):
        return pa.date32()
    return pa.string()


def _reads(read: Callable[[str], object], value: str) -> bool:
    try:
        read(value)
    except ValueError:
        return False
    return True


def with_partitions(table: pa.Table, path: Path, partitions: Partitions | None) -> pa.Table:
    """A file's table with the columns that its directories hold; what the file has itself stays as it is."""
    if partitions is None:
        return table
    values = values_in(path, partitions.base)
    for field in partitions.schema:
        if field.name not in table.column_names:
            text = pa.scalar(values.get(field.name), pa.string())
            table = table.append_column(field, pa.repeat(text.cast(field.type), table.num_rows))
    return table
