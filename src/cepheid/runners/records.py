"""Invalid records: what is wrong with each, and how it is handled.

A record is bad if its time is NULL, not finite or not written as a time, if its type or a key of the query is NULL, or
if a text should be a number and is none. `bad_records` says what to do: nothing is matched ("fail"), they are left out
("drop"), or left out and kept in a table of their own, each with its row and the reason ("set aside").
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cepheid.engine.data.arrays import Bools, Int64s
from cepheid.errors import CepheidError, DataError, closest, warn
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.free_names import free_name
from cepheid.language.guess import guessed_schema
from cepheid.language.schema import DataType, data_type
from cepheid.runners import readings
from cepheid.runners.nested import with_nested
from cepheid.runners.options import Options

REASON = "reason"
ROW = "row"
_LONGEST = 40  # characters of a value that an error shows
_log = logging.getLogger("cepheid")


@dataclass(frozen=True)
class Problem:
    """What is wrong with some rows of a column."""

    column: str
    rows: Bools
    told: str  # such as "is NULL"


@dataclass(frozen=True)
class Records:
    """The events that can be matched, and what was wrong with the others."""

    table: pa.Table
    kept: Int64s | None = None  # where each of them stood in the table as it came; None: all are there, in place
    bad: pa.Table | None = None  # `row`, `reason` and the columns as they came
    counts: dict[str, int] = field(default_factory=dict)  # of bad records, by reason; and of duplicates

    @property
    def rows(self) -> Int64s:
        return np.arange(self.table.num_rows) if self.kept is None else self.kept


def read_records(query: Any, table: pa.Table, options: Options) -> Records:
    """The records of a table as events of a query, by the policy that the options give."""
    table = known_types(query.syntax, with_nested(table, [query.syntax]), options)
    read, problems = _read(query.syntax, table, options)
    if options.bad_records is not None:
        problems += _null_types(read, options)
    records = by_policy(Records(read), problems, options, table)
    return _without_duplicates(records, options)


def without_null_keys(bound: BoundQuery, records: Records, options: Options) -> Records:
    """The same for keys, which are known once the query is bound: an event without one can be part of no match."""
    if options.bad_records is None or not bound.equivalence:
        return records
    types = {name for component in bound.components for name in component.types or ()}
    every = bound.schema.type is None or any(component.types is None for component in bound.components)
    concerned = np.ones(records.table.num_rows, bool)
    if not every and bound.schema.type is not None:
        named = pc.is_in(records.table.column(bound.schema.type), value_set=pa.array(sorted(types)))
        concerned = named.to_numpy().astype(bool)
    problems = []
    for name in bound.equivalence:
        nulls = records.table.column(name).is_null().to_numpy().astype(bool) & concerned
        problems.append(Problem(name, nulls, "is NULL, and it is a key of the query"))
    clean = by_policy(records, problems, options, records.table)
    if clean is records:
        return records
    bad = [part for part in (records.bad, clean.bad) if part is not None]
    return replace(clean, bad=pa.concat_tables(map(as_text, bad), promote_options="permissive") if bad else None)


def known_types(query: s.QuerySyntax, table: pa.Table, options: Options) -> pa.Table:
    """The table with types for columns that hold nothing, as the query uses them."""
    guessed = guessed_schema(query)
    roles = {options.type: DataType.STRING} if options.type is not None else {}
    clock = guessed.type_of(guessed.time) or DataType.INT

    def kind_of(name: str) -> DataType | None:
        if name in (options.time, options.lower, options.upper):
            return clock
        return roles.get(name) or guessed.type_of(name)

    return readings.typed_nothing(table, kind_of)


# --- what is wrong --------------------------------------------------------------------------------------------------


def _read(query: s.QuerySyntax, table: pa.Table, options: Options) -> tuple[pa.Table, list[Problem]]:
    problems: list[Problem] = []
    for name in dict.fromkeys(filter(None, (options.time, options.lower, options.upper))):
        if name not in table.column_names:
            continue
        if options.tz is not None:
            table = table.set_column(
                table.column_names.index(name), name, readings.placed(table.column(name), options.tz)
            )
        column = table.column(name)
        text = data_type(column.type) is DataType.STRING
        if not text and not pa.types.is_floating(column.type) and not column.null_count:
            continue
        if pa.types.is_floating(column.type) and options.bad_records in (None, "fail"):
            reading = readings.read_times(column)
            if not reading.bad.any():
                continue  # binding says that it must be cast
        reading = readings.read_times(column, options.time_format, options.tz)
        unread = text and (reading.bad.all() or (pa.types.is_integer(reading.column.type) and not reading.bad.any()))
        if unread and len(reading.bad) and options.bad_records in (None, "fail"):
            first = _shown(column, 0)
            message = (
                f"column '{name}' holds the time and must be a whole number or a timestamp, but it is {column.type}"
            )
            hint = f"row 0 holds {first}; cast it, or pass its format, such as time_format='%d/%m/%Y %H:%M'"
            if options.time_format is not None:
                hint = f"row 0 holds {first}, which time_format={options.time_format!r} does not read"
            raise DataError(message, hint=hint)
        table = table.set_column(table.column_names.index(name), name, reading.column)
        nulls = column.is_null().to_numpy().astype(bool)
        problems += [Problem(name, nulls, "is NULL, and it holds the time")]
        problems += [Problem(name, reading.bad & ~nulls, f"is not {reading.wanted}")]
    for name in sorted(_to_numbers(query, table, options)):
        numbers = readings.read_numbers(table.column(name), options.decimal or ".", options.thousands)
        table = table.set_column(table.column_names.index(name), name, numbers.column)
        problems.append(Problem(name, numbers.bad, f"is not {numbers.wanted}"))
    return table, problems


def _to_numbers(query: s.QuerySyntax, table: pa.Table, options: Options) -> set[str]:
    """The columns of text to read as numbers, if that was asked for; a warning where it should perhaps have been."""
    texts = {
        each.name
        for each in table.schema
        if data_type(each.type) is DataType.STRING and each.name not in (options.time, options.type)
    }
    if options.decimal is not None or options.thousands is not None:
        return texts & (readings.numeric_attributes(query) | readings.ordered_texts(query))
    for name in sorted(texts & readings.ordered_texts(query)):
        first = readings.looks_like_numbers(table.column(name))
        if first is not None:
            warn(
                f"column '{name}' holds texts that look like numbers, such as '{first}', and the query orders them as "
                "texts; pass decimal='.' (and thousands=',') to read them as numbers"
            )
    return set()


def _null_types(table: pa.Table, options: Options) -> list[Problem]:
    if options.type is None or options.type not in table.column_names:
        return []
    nulls = table.column(options.type).is_null().to_numpy().astype(bool)
    return [Problem(options.type, nulls, "is NULL, and it holds the event type")]


# --- what becomes of it ---------------------------------------------------------------------------------------------


def by_policy(records: Records, problems: Sequence[Problem], options: Options, given: pa.Table) -> Records:
    """The records without bad ones; an error if there are any and nothing says that they may be left out."""
    wrong = [problem for problem in problems if problem.rows.any()]
    if not wrong:
        return records
    if options.bad_records in (None, "fail"):
        _fail(given, wrong[0], records.rows)
    bad = np.logical_or.reduce([problem.rows for problem in wrong])
    counts = {f"{problem.column} {problem.told}": int(problem.rows.sum()) for problem in wrong}
    _log.warning("left out %s of %s records: %s", f"{bad.sum():,}", f"{len(bad):,}", counts)
    aside = None
    if options.bad_records == "set aside":
        places = np.flatnonzero(bad)
        reasons = ["; ".join(f"{p.column} {p.told}" for p in wrong if p.rows[place]) for place in places]
        aside = given.take(pa.array(places))
        aside = aside.add_column(0, _free(REASON, given), pa.array(reasons, pa.string()))
        aside = aside.add_column(0, _free(ROW, given), pa.array(records.rows[places]))
    return Records(records.table.filter(pa.array(~bad)), records.rows[~bad], aside, {**records.counts, **counts})


def _fail(given: pa.Table, problem: Problem, rows: Int64s) -> None:
    place = int(np.flatnonzero(problem.rows)[0])
    row = int(rows[place])
    count, name = int(problem.rows.sum()), problem.column
    hint = "fix it, or pass bad_records='drop' or 'set aside'"
    if problem.told.startswith("is NULL, and it holds the time"):
        message = f"column '{name}' holds the time, but it is NULL in {count} of {len(problem.rows)} rows, first in row"
        raise DataError(f"{message} {row}", column=name, row=row, hint=hint)
    many = f" ({count:,} of {len(problem.rows):,} rows are like this)" if count > 1 else ""
    raise DataError(f"{_shown(given.column(name), place)} {problem.told}{many}", column=name, row=row, hint=hint)


def _shown(column: pa.ChunkedArray, row: int) -> str:
    value = column[row].as_py()
    text = repr(value) if value is not None else "it"
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def as_text(bad: pa.Table) -> pa.Table:
    """Times as text: those that came as text may have been read by then."""
    for place, column in enumerate(bad.schema):
        if pa.types.is_timestamp(column.type):
            bad = bad.set_column(place, column.name, bad.column(column.name).cast(pa.string()))
    return bad


def _free(name: str, table: pa.Table) -> str:
    while name in table.column_names:
        name = f"bad_{name}"
    return name


def _without_duplicates(records: Records, options: Options) -> Records:
    """The first of records that agree in some columns (`dedupe`)."""
    names = options.dedupe
    if not names:
        return records
    for name in names:
        if name not in records.table.column_names:
            guess = closest(name, records.table.column_names)
            hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(records.table.column_names)}"
            raise DataError(f"no column '{name}' to find duplicates by", hint=hint)
    keep = _first_rows(records.table, names)
    twice = records.table.num_rows - len(keep)
    if not twice:
        return records
    counts = {**records.counts, "duplicates": twice}
    return Records(records.table.take(pa.array(keep)), records.rows[keep], records.bad, counts)


def _first_rows(table: pa.Table, names: Sequence[str]) -> Int64s:
    """The first of the rows that agree in some columns, in order."""
    row = free_name("__row", names)
    numbered = table.select(list(names)).append_column(row, pa.array(np.arange(table.num_rows)))
    first = numbered.group_by(list(names), use_threads=False).aggregate([(row, "min")]).column(f"{row}_min")
    kept: Int64s = np.sort(first.to_numpy())
    return kept


# --- setting aside --------------------------------------------------------------------------------------------------


def write_each_once(parts: Sequence[pa.Table], where: Path | str | Callable[[pa.Table], object] | None) -> None:
    """The bad records of several queries over one table, each once."""
    if not parts or where is None:
        return
    bad = pa.concat_tables(map(as_text, parts), promote_options="permissive")
    write_aside(bad.take(pa.array(_first_rows(bad, bad.column_names[:2]))), where)


def write_aside(bad: pa.Table | None, where: Path | str | Callable[[pa.Table], object] | None) -> None:
    """Gives bad records to a function, or writes them to a .parquet, .csv or .jsonl file; nothing if there are none."""
    if bad is None or where is None:
        return
    if callable(where):
        where(bad)
        return
    try:
        _write_aside(bad, Path(where))
    except OSError as error:
        raise CepheidError(
            f"cannot write invalid records to {where}: {error.strerror or error}", hint="name another file"
        ) from None


def _write_aside(bad: pa.Table, path: Path) -> None:
    match path.suffix.lower():
        case ".csv":
            from pyarrow import csv

            csv.write_csv(bad, path)
        case ".json" | ".jsonl" | ".ndjson":
            path.write_text("".join(json.dumps(row, default=str) + "\n" for row in bad.to_pylist()), encoding="utf-8")
        case _:
            from pyarrow import parquet

            parquet.write_table(bad, path)
