"""Records that cannot be events, in a Spark table: the same policies as for tables in memory (runners/records.py).

What is wrong is said in Spark's own expressions, so that bad records never reach a worker.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from pathlib import Path
from typing import Any

from cepheid.engine.data.table import FARTHEST
from cepheid.errors import CepheidError, DataError, closest
from cepheid.language.durations import whole_steps
from cepheid.language.free_names import free_name
from cepheid.language.schema import Schema
from cepheid.language.units import UNITS
from cepheid.language.zones import IN_UTC, zone_called
from cepheid.runners.options import Options, StreamOptions
from cepheid.runners.readings import numeric_attributes, ordered_texts
from cepheid.runners.result_folders import check_folder, clear, write_manifest
from cepheid.runners.spark.session import DataFrame, arrow_schema, session_zone
from cepheid.runners.spark.slices import instant
from cepheid.runners.spark.spelling import java_pattern, quoted

_ZONED = r"[0-9]:[0-9].*([A-Za-z]|[+-][0-9])"  # a text that says its offset, or its zone, behind the time of day


def with_spark_records(
    df: DataFrame, queries: Iterable[object], options: Options, streaming: StreamOptions | None = None
) -> tuple[DataFrame, str | None]:
    """The records of a Spark table as events, by the policy that the options give.

    Those of a stream that cannot be events stay, marked in a column of their own, whose name is given, too: they are
    counted further on.
    """
    asked = list(queries)
    if callable(options.aside):
        raise CepheidError("on Spark, aside is a path for a directory", hint="aside='bad.parquet'")
    df = _deduplicated(df, options)
    kept = options.bad_records in ("drop", "set aside")
    read = _read(df, asked, options, kept)
    problems = _problems(read, df, asked, options) if kept else []
    if streaming is not None and streaming.max_ahead is not None:
        problems.append(_ahead(read.select(*[quoted(name) for name in df.columns]), options, streaming))
    if not problems:
        return (df if read is df else read.select(*[quoted(name) for name in df.columns])), None
    from pyspark.sql import functions as F

    if streaming is not None:
        return _marked(df, read, problems, options)

    reasons = F.concat_ws("; ", *[F.when(test, F.lit(told)) for told, test in problems])
    if options.bad_records == "set aside":
        _write_aside(df, read, reasons, options)
    bad = reduce(lambda left, right: left | right, [test for _, test in problems])
    return read.where(~bad).select(*[quoted(name) for name in df.columns]), None


def _marked(df: DataFrame, read: DataFrame, problems: list[tuple[str, Any]], options: Options) -> tuple[DataFrame, str]:
    """The records with what is wrong with them, and as they came, in one more column; NULL if nothing is."""
    from pyspark.sql import functions as F

    reasons = F.concat_ws("; ", *[F.when(test, F.lit(told)) for told, test in problems])
    reason, marked = free_name("__reason", read.columns), free_name("__bad", df.columns)
    known = read.withColumn(reason, reasons)
    whole = F.to_json(F.struct(F.col(reason).alias(_reason_column(df)), *_as_they_came(df, read)))
    told = whole if options.bad_records == "set aside" else F.col(reason)
    wrong = F.when(F.col(reason) != "", told).cast("string").alias(marked)
    return known.select(*[quoted(name) for name in df.columns], wrong), marked


def _reason_column(df: DataFrame) -> str:
    """The column of bad records that says what is wrong with them."""
    taken = {name.lower() for name in df.columns}
    return next(name for name in ("reason", "bad_reason", free_name("__reason", df.columns)) if name not in taken)


def _ahead(df: DataFrame, options: Options, streaming: StreamOptions) -> tuple[str, Any]:
    """Events from the future: one of them would make all that come after it late.

    Spark writes down the clock of a micro-batch before it runs, so one that is taken again judges the same.
    """
    from pyspark.sql import functions as F

    roles = options.roles()
    roles["lacks"] = None
    schema = Schema.from_arrow(arrow_schema(df), **roles)
    clock = schema.lower or schema.time
    if schema.time_unit is None:
        hint = f"pass time_unit='ms' (or what '{clock}' counts)"
        raise DataError("max_ahead looks at the machine's clock, but the unit of the time column is unknown", hint=hint)
    steps = whole_steps(streaming.max_ahead, schema, "max_ahead")
    now = F.unix_micros(F.current_timestamp()) * F.lit(UNITS["microseconds"] / UNITS[schema.time_unit])
    return f"{clock} lies more than max_ahead={streaming.max_ahead!r} in the future", instant(df, clock).cast(
        "double"
    ) - now > steps


def _as_they_came(df: DataFrame, read: DataFrame) -> list[Any]:
    from pyspark.sql import functions as F

    kept = _kept_names(df)
    return [F.col(quoted(kept[name] if kept[name] in read.columns else name)).alias(name) for name in df.columns]


def _kept_names(df: DataFrame) -> dict[str, str]:
    """Names under which columns are kept as they came, where what was read of them takes their place."""
    prefix = free_name("__as_it_came", df.columns)
    return {name: f"{prefix}_{place}" for place, name in enumerate(df.columns)}


def _read(df: DataFrame, queries: list[Any], options: Options, kept: bool) -> DataFrame:
    """Times and numbers in text as such; NULL, where `kept` says that this is no error, for what is none."""
    from pyspark.sql import functions as F

    kinds = dict(df.dtypes)
    changed: dict[str, object] = {}
    for name in _clocks(df, options):
        column = F.col(quoted(name))
        if kinds[name] == "string":
            changed[name] = _instant(column, options, kept)
        elif kinds[name] == "timestamp_ntz" and options.tz is not None:
            changed[name] = _in_zone(column, options.tz)
        elif kinds[name] in ("double", "float") and kept:
            whole = (F.floor(column).cast("double") == column) & (F.abs(column) < 2.0**63)
            changed[name] = F.when(whole, column.cast("bigint"))
    if options.decimal is not None or options.thousands is not None:
        wanted = {n for query in queries for n in numeric_attributes(query.syntax) | ordered_texts(query.syntax)}
        for name in sorted(wanted & {name for name, kind in kinds.items() if kind == "string"} - {options.type}):
            number = _number(F.col(quoted(name)), options)
            changed[name] = number.try_cast("double") if kept else number.cast("double")
    kept_as = _kept_names(df)
    originals = {kept_as[name]: F.col(quoted(name)) for name in changed}
    return df.withColumns(originals).withColumns(changed) if changed else df


def query_zone(df: DataFrame, options: Options) -> str:
    """The zone of a query over a Spark table: as was passed; UTC, in which texts are read; else the session's."""
    if options.tz is not None:
        return options.tz
    clocks = {df.schema[name].dataType.typeName() for name in _clocks(df, options)}
    return IN_UTC if "string" in clocks else session_zone(df.sparkSession)


def _instant(column: Any, options: Options, kept: bool) -> Any:
    """A time in text as an instant; the session's zone has no part in it.

    A text without an offset is a time of the zone that was passed, or in UTC.
    """
    from pyspark.sql import functions as F

    zone = zone_called(options.tz or IN_UTC)
    read: Any = F.try_to_timestamp if kept else F.to_timestamp
    if options.time_format is None:
        wall = column.try_cast("timestamp_ntz") if kept else column.cast("timestamp_ntz")
        return F.when(F.rlike(column, F.lit(_ZONED)), read(column)).otherwise(_in_zone(wall, zone))
    pattern = java_pattern(options.time_format)
    if "%z" in options.time_format:
        return read(column, F.lit(pattern) if kept else pattern)
    pattern, column = f"{pattern} Z", F.concat(column, F.lit(" +0000"))
    return F.to_utc_timestamp(read(column, F.lit(pattern) if kept else pattern), zone)


def _in_zone(wall: Any, zone: str) -> Any:
    """A timestamp without a zone as an instant, if it is one of a zone."""
    from pyspark.sql import functions as F

    begin = F.lit("1970-01-01 00:00:00").cast("timestamp_ntz")
    return F.to_utc_timestamp(F.timestamp_micros(F.timestamp_diff("MICROSECOND", begin, wall)), zone_called(zone))


def _number(column: Any, options: Options) -> Any:
    from pyspark.sql import functions as F

    plain = F.trim(column)
    if options.thousands:
        plain = F.replace(plain, F.lit(options.thousands), F.lit(""))
    if options.decimal not in (None, "."):
        plain = F.replace(F.replace(plain, F.lit("."), F.lit("?")), F.lit(options.decimal), F.lit("."))
    return plain


def _problems(read: DataFrame, df: DataFrame, queries: list[Any], options: Options) -> list[tuple[str, Any]]:
    """What can be wrong with a record, and the test for it."""
    from pyspark.sql import functions as F

    found = [(f"{name} is NULL, or not a time", F.col(quoted(name)).isNull()) for name in _clocks(df, options)]
    for name in _clocks(df, options):
        if dict(read.dtypes)[name] in ("bigint", "timestamp", "timestamp_ntz"):
            found.append(
                (f"{name} is too far from 0", F.abs(instant(read, name).cast("double")) >= F.lit(float(FARTHEST)))
            )
    for original, name in _kept_names(df).items():
        if name in read.columns and original not in _clocks(df, options):
            lost = F.col(quoted(original)).isNull() & F.col(quoted(name)).isNotNull()
            found.append((f"{original} is not a number", lost))
    if options.type is not None and options.type in df.columns:
        found.append((f"{options.type} is NULL, and it holds the event type", F.col(quoted(options.type)).isNull()))
    return found + _null_keys(read.select(*[quoted(name) for name in df.columns]), queries, options)


def _null_keys(df: DataFrame, queries: list[Any], options: Options) -> list[tuple[str, object]]:
    """Keys that all queries have, of events of the types that they name."""
    from pyspark.sql import functions as F

    if options.uncertainty is not None or not queries:
        return []
    bounds = [query.bind(Schema.from_arrow(arrow_schema(df), **options.roles())) for query in queries]
    shared = set.intersection(*(set(bound.equivalence) for bound in bounds))
    components = [component for bound in bounds for component in bound.components]
    concerned = F.lit(True)
    if options.type is not None and all(component.types is not None for component in components):
        types = sorted({name for component in components for name in component.types or ()})
        concerned = F.col(quoted(options.type)).isin(types)
    message = "is NULL, and it is a key of the query"
    return [(f"{name} {message}", F.col(quoted(name)).isNull() & concerned) for name in sorted(shared)]


def _clocks(df: DataFrame, options: Options) -> list[str]:
    names = dict.fromkeys(name for name in (options.time, options.lower, options.upper) if name is not None)
    return [name for name in names if name in df.columns]


def _write_aside(df: DataFrame, read: DataFrame, reasons: object, options: Options) -> None:
    """The bad records as they came, with the reasons, in a directory of Parquet files."""
    from pyspark.sql import functions as F

    reason = free_name("__reason", read.columns)
    told = read.withColumn(reason, reasons).where(F.col(reason) != "")
    found = told.select(F.col(reason).alias(_reason_column(df)), *_as_they_came(df, read))
    path = Path(str(options.aside))
    if ":/" in str(options.aside) or not path.parent.is_dir():  # in a file system that only Spark knows
        _write_new(found, str(options.aside))
        return
    check_folder(path, "aside")
    if path.is_file():
        raise CepheidError(f"aside {path} is a file, and Spark writes a directory", hint="name another")
    if path.is_dir():
        clear(path)
        path.rmdir()
    _write_new(found, str(options.aside))
    if path.is_dir():
        write_manifest(path)


def _write_new(found: DataFrame, path: str) -> None:
    """Writes to a place where nothing is, so that nothing of anyone is removed."""
    from pyspark.errors import AnalysisException

    try:
        found.write.mode("errorifexists").parquet(path)
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        raise CepheidError(f"aside {path} exists already", hint="name another, or remove it") from None


def _deduplicated(df: DataFrame, options: Options) -> DataFrame:
    if not options.dedupe:
        return df
    for name in options.dedupe:
        if name not in df.columns:
            guess = closest(name, df.columns)
            hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(df.columns)}"
            raise CepheidError(f"no column '{name}' to find duplicates by", hint=hint)
    # A stream finds duplicates among the events that it keeps (runners/stream/state.py).
    return df if df.isStreaming else df.dropDuplicates(list(options.dedupe))


def syntaxes(query: object) -> list[object]:
    """One query, or several with names, as a list."""
    return list(query.values()) if isinstance(query, Mapping) else [query]
