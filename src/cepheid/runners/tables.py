"""Kinds of tables in memory: pyarrow, pandas and polars to Arrow, and results back to the kind that came."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from cepheid.errors import DataError
from cepheid.language.schema import INDEX

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LocalTable:
    """A table in memory and the way back to the kind it came from."""

    arrow: pa.Table
    back: Callable[[pa.Table], Any]


def as_local(events: Any) -> LocalTable | None:
    """The events as an Arrow table, or None if they are not a table in memory."""
    if isinstance(events, pa.Table):
        return LocalTable(events, lambda table: table)
    if isinstance(events, pa.RecordBatch):
        return LocalTable(pa.Table.from_batches([events]), lambda table: table)
    module = type(events).__module__.partition(".")[0]
    if module == "pandas" and hasattr(events, "columns"):
        return LocalTable(from_pandas(events), to_pandas)
    if module == "polars":
        import polars

        collected = events.collect() if hasattr(events, "collect") else events
        if not hasattr(collected, "to_arrow") or not hasattr(collected, "columns"):
            raise DataError("a polars DataFrame is needed, not a Series")
        return LocalTable(collected.to_arrow(), polars.from_arrow)
    return None


def is_spark(events: object) -> bool:
    """Is it a PySpark DataFrame, classic or through Connect? Asks without importing PySpark."""
    return type(events).__module__.startswith("pyspark.sql") and hasattr(events, "isStreaming")


def in_memory(events: object) -> pa.Table:
    """The Arrow table of events that are looked at here; an error for those on Spark."""
    local = as_local(events)
    if local is not None:
        return local.arrow
    if hasattr(events, "isStreaming"):
        hint = "bring a part of it here first, for example with .limit(1_000_000).toArrow()"
        raise DataError(f"events must be a pyarrow, pandas or polars table, not {type(events).__name__}", hint=hint)
    raise no_table(events, "pyarrow, pandas or polars")


def columns_of(events: object) -> pa.Schema:
    """The columns of a table of any kind, as Arrow has them."""
    local = as_local(events)
    if local is not None:
        return local.arrow.schema
    if not hasattr(events, "isStreaming"):
        raise no_table(events)
    from cepheid.runners.spark.session import arrow_schema

    return arrow_schema(events)


def no_table(events: object, kinds: str = "pyarrow, pandas, polars or PySpark") -> DataError:
    """What is wrong with something that is no table, and how to make one of it."""
    message = f"events must be a {kinds} table, not {type(events).__name__}"
    if isinstance(events, str | Path):
        reader = "pl.read_ndjson" if str(events).endswith((".jsonl", ".ndjson")) else "pd.read_csv"
        reader = "pd.read_parquet" if str(events).endswith(".parquet") else reader
        if str(events).lstrip()[:7].upper() == "PATTERN":
            return DataError(message, hint="the events come first: cepheid.match(events, query)")
        return DataError(message, hint=f"read the file first, for example with {reader}({str(events)!r})")
    if isinstance(events, Mapping):
        return DataError(message, hint="convert it, for example with pa.table(events)")
    if isinstance(events, Sequence):
        return DataError(message, hint="convert it, for example with pa.Table.from_pylist(events)")
    if type(events).__module__.partition(".")[0] == "pandas":
        return DataError(message, hint="convert it with .to_frame()")
    if isinstance(events, pa.RecordBatchReader):
        return DataError(message, hint="read it with events.read_all()")
    return DataError(message, hint="convert it, for example with pd.DataFrame(events)")


# --- pandas ---------------------------------------------------------------------------------------------------------


def from_pandas(frame: pd.DataFrame) -> pa.Table:
    """A pandas frame as an Arrow table, without its index; errors name the column, the row and the value."""
    names = [str(name) for name in frame.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"two columns are called '{twice[0]}'", hint="rename one of them")
    try:
        table = pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):  # values of several kinds, or odd ones
        columns = [_column(frame.iloc[:, place]) for place in range(len(names))]
        table = pa.table(dict(zip(names, columns, strict=True)))
    index = ["" if name is None else str(name) for name in frame.index.names]
    if index == [""] and type(frame.index).__name__ != "DatetimeIndex":
        return table
    # Whoever looks for one of these in vain can be told where it is.
    return table.replace_schema_metadata({**(table.schema.metadata or {}), INDEX: json.dumps(index)})


def _column(series: pd.Series[Any]) -> pa.Array:
    """A column; one of several kinds of values becomes text, as in a file, so that what is wrong can be named."""
    try:
        return pa.Array.from_pandas(series)
    except pa.ArrowNotImplementedError:
        message = f"it holds values of {series.dtype}, which no query can use"
        raise DataError(message, column=str(series.name), hint="drop it or cast it first") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        missing = series.isna()
        texts = [None if absent else str(value) for value, absent in zip(series, missing, strict=True)]
        return pa.array(texts, pa.string())


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """A result as a pandas frame that keeps what Arrow's own way loses: whole numbers beside NULL, times in events.

    >>> event = {"ts": pa.array([2**60 + 1, None]), "when": pa.array([1, None], pa.timestamp("ns"))}
    >>> table = pa.table({"a": pa.table(event).to_struct_array(), "n": [2**60 + 1, None]})
    >>> to_pandas(table)["n"].tolist()
    [1152921504606846977, <NA>]
    >>> to_pandas(table)["a"][0]
    {'ts': 1152921504606846977, 'when': Timestamp('1970-01-01 00:00:00.000000001')}
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_nested(column.type):
            columns[name] = pd.Series(column.to_pylist(), dtype=object)
        elif pa.types.is_integer(column.type) and column.null_count:
            columns[name] = pd.Series(pd.array(column.to_pylist(), dtype="Int64"))
        else:
            columns[name] = column.to_pandas()
    frame = pd.DataFrame(columns)
    facts = (table.schema.metadata or {}).get(b"cepheid")
    if facts is not None:
        frame.attrs["cepheid"] = json.loads(facts)
    return frame
