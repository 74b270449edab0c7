"""Event files, directories and Kafka topics as Spark tables, and results as files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cepheid.cli.result_files import FORMULA, check_output, is_folder
from cepheid.errors import CepheidError
from cepheid.files.event_files import UNIX, check_texts, delimiter_of
from cepheid.files.input_files import EventFiles
from cepheid.runners.spark.spelling import java_pattern, quoted

_SPARK_FORMATS = {"parquet": "parquet", "csv": "csv", "jsonl": "json", "delta": "delta"}
_OUTPUT_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def read_table(session: Any, files: EventFiles, time: str, time_format: str | None, parse_times: bool = True) -> Any:
    """The files as a table."""
    check_texts(files)
    reader = _with_options(session.read.format(_spark_format(files.format)), files)
    if files.base is not None:
        reader = reader.option("basePath", files.base)
    table = reader.load(files.addresses)
    if files.format == "csv":
        schema = _schema_with_texts(table, reader.option("inferSchema", "false").load(files.addresses))
        table = _without_empty_texts(reader.schema(schema).load(files.addresses), files)
    return with_time(table, time, time_format, parse_times)


def _schema_with_texts(table: Any, texts: Any) -> Any:
    """The columns of CSV as Spark finds them, but for those with a number that is none: 0815 is the name of a card."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import NumericType, StringType, StructField, StructType

    numbers = [field.name for field in table.schema if isinstance(field.dataType, NumericType)]
    if not numbers:
        return table.schema
    tests = [F.max(F.rlike(F.col(quoted(name)), F.lit(r"^ *[+-]?0[0-9]"))) for name in numbers]
    odd = {name for name, found in zip(numbers, texts.select(*tests).first(), strict=True) if found}
    fields = [StructField(field.name, StringType()) if field.name in odd else field for field in table.schema]
    return StructType(fields)


def _without_empty_texts(table: Any, files: EventFiles) -> Any:
    """Where another text means NULL, Spark takes an empty field for an empty text."""
    from pyspark.sql import functions as F

    if not files.nulls:
        return table
    texts = {name: F.nullif(F.col(quoted(name)), F.lit("")) for name, kind in table.dtypes if kind == "string"}
    return table.withColumns(texts)


def read_stream(session: Any, files: EventFiles, files_per_batch: int | None) -> Any:
    """A directory as a stream of the files that come into it; those that are there tell the columns."""
    folder = files.given[0]
    if len(files.given) > 1 or (files.paths and not Path(folder).is_dir()):
        raise CepheidError(f"--stream reads one directory, not {', '.join(files.given)}", hint="give its path")
    check_texts(files)
    first = _with_options(session.read.format(_spark_format(files.format)), files)
    schema = first.load(folder).schema
    if files.format == "csv":
        schema = _schema_with_texts(first.load(folder), first.option("inferSchema", "false").load(folder))
    reader = _with_options(session.readStream.format(_spark_format(files.format)).schema(schema), files)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return _without_empty_texts(reader.load(folder), files)


def _spark_format(format: str) -> str:
    if format not in _SPARK_FORMATS:
        raise CepheidError(f"Spark does not read {format} files", hint="convert them to Parquet")
    return _SPARK_FORMATS[format]


def _with_options(reader: Any, files: EventFiles) -> Any:
    if files.format != "csv":
        return reader
    if len(files.nulls) > 1:
        raise CepheidError("Spark supports one text for NULL", hint=f"give one --null, such as {files.nulls[0]}")
    reader = reader.option("nullValue", files.nulls[0]) if files.nulls else reader
    reader = reader.option("sep", delimiter_of(files.paths[0])) if files.paths else reader
    return reader.option("header", "true").option("inferSchema", "true")


def with_time(table: Any, time: str, time_format: str | None, parse_times: bool = True) -> Any:
    """The table with times in text as timestamps, unless `match` is to read them."""
    if time not in table.columns or not (parse_times or time_format == UNIX):
        return table
    from pyspark.sql import functions as F

    kind = dict(table.dtypes)[time]
    if time_format == UNIX:
        return table.withColumn(time, F.col(quoted(time)).cast("double").cast("timestamp"))
    if time_format is None:
        return table.withColumn(time, F.to_timestamp(F.col(quoted(time)))) if kind == "string" else table
    return table.withColumn(time, F.to_timestamp(F.col(quoted(time)), java_pattern(time_format)))


@dataclass(frozen=True)
class Topic:
    """A Kafka topic."""

    servers: str
    name: str


def kafka_topic(given: str) -> Topic | None:
    """The topic that an input names, as in kafka://broker:9092/readings.

    >>> kafka_topic("kafka://broker:9092/readings"), kafka_topic("events.parquet")
    (Topic(servers='broker:9092', name='readings'), None)
    """
    if not given.startswith("kafka://"):
        return None
    parts = urlsplit(given)
    name = parts.path.strip("/")
    if not parts.netloc or not name:
        raise CepheidError(f"--input {given}: no topic", hint="write kafka://broker:9092/topic")
    return Topic(parts.netloc, name)


def read_topic(session: Any, topic: Topic, schema: str | None, settings: Sequence[str] = ()) -> Any:
    """The events of a topic, whose values are JSON objects with the columns of `schema`.

    `settings` are Kafka's own, NAME=VALUE, such as security.protocol=SASL_SSL, or options of Spark's reader, such as
    startingOffsets=earliest.
    """
    from pyspark.sql import functions as F

    if schema is None:
        hint = "pass them, for example --schema 'ts timestamp, type string, id long'"
        raise CepheidError("the values of a Kafka topic are JSON, and their columns are unknown", hint=hint)
    source = session.readStream.format("kafka").option("kafka.bootstrap.servers", topic.servers)
    for name, value in kafka_settings(settings).items():
        source = source.option(name, value)
    rows = source.option("subscribe", topic.name).load()
    return rows.select(F.from_json(F.col("value").cast("string"), schema).alias("event")).select("event.*")


def kafka_settings(given: Sequence[str]) -> dict[str, str]:
    """Settings as Spark's reader takes them: Kafka's own, which have a dot in their names, behind `kafka.`.

    >>> kafka_settings(["security.protocol=SASL_SSL", "startingOffsets=earliest"])
    {'kafka.security.protocol': 'SASL_SSL', 'startingOffsets': 'earliest'}
    """
    found = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name.strip():
            raise CepheidError(f"--kafka {item}: expected a name and a value", hint="security.protocol=SASL_SSL")
        name = name.strip()
        found[f"kafka.{name}" if "." in name and not name.startswith("kafka.") else name] = value
    return found


def output_format(path: Path) -> str:
    """The format of a result that Spark writes, as a directory of files."""
    found = "parquet" if is_folder(path) else _OUTPUT_FORMATS.get(path.suffix.lower())
    if found is None:
        check_output(path)
        raise CepheidError(f"--output {path}: Spark does not write {path.suffix}", hint="use .parquet, .csv or .jsonl")
    return found


def flat_columns(result: Any, formulas: bool = True) -> Any:
    """The same without nesting, for CSV: `x.ts`, `x.id` for the event x, lists as JSON text.

    Without `formulas`, a quote stands before texts that a spreadsheet would compute.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructType

    columns = []
    for field in result.schema.fields:
        if isinstance(field.dataType, StructType):
            inside = field.dataType.names
            columns += [F.col(quoted(field.name))[name].alias(f"{field.name}.{name}") for name in inside]
        elif isinstance(field.dataType, ArrayType):
            columns.append(F.to_json(F.col(quoted(field.name))).alias(field.name))
        else:
            columns.append(F.col(quoted(field.name)))
    flat = result.select(*columns)
    if formulas:
        return flat
    escaped = [
        F.regexp_replace(F.col(quoted(name)), FORMULA, "'$1").alias(name) if kind == "string" else F.col(quoted(name))
        for name, kind in flat.dtypes
    ]
    return flat.select(*escaped).toDF(*[re.sub(FORMULA, r"'\1", name) for name in flat.columns])
