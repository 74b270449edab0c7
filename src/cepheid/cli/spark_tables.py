"""Event files, directories and Kafka topics as Spark tables, and results as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from cepheid.cli.result_files import check_output, is_folder
from cepheid.errors import CepheidError
from cepheid.files.event_files import UNIX
from cepheid.files.input_files import EventFiles
from cepheid.runners.spark.records import java_pattern

_SPARK_FORMATS = {"parquet": "parquet", "csv": "csv", "jsonl": "json", "delta": "delta"}
_OUTPUT_FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".jsonl": "json", ".ndjson": "json"}


def read_table(session: Any, files: EventFiles, time: str, time_format: str | None, parse_times: bool = True) -> Any:
    """The files as a table."""
    reader = _with_options(session.read.format(_spark_format(files.format)), files.format)
    if files.base is not None:
        reader = reader.option("basePath", files.base)
    return with_time(reader.load(files.addresses), time, time_format, parse_times)


def read_stream(session: Any, files: EventFiles, files_per_batch: int | None) -> Any:
    """A directory as a stream of the files that come into it; those that are there tell the columns."""
    folder = files.given[0]
    if len(files.given) > 1 or (files.paths and not Path(folder).is_dir()):
        raise CepheidError(f"--stream watches one directory, not {', '.join(files.given)}", hint="give its path")
    schema = _with_options(session.read.format(_spark_format(files.format)), files.format).load(folder).schema
    reader = _with_options(session.readStream.format(_spark_format(files.format)).schema(schema), files.format)
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    return reader.load(folder)


def _spark_format(format: str) -> str:
    if format not in _SPARK_FORMATS:
        raise CepheidError(f"Spark does not read {format} files", hint="convert them to Parquet")
    return _SPARK_FORMATS[format]


def _with_options(reader: Any, format: str) -> Any:
    if format == "csv":
        return reader.option("header", "true").option("inferSchema", "true")
    return reader


def with_time(table: Any, time: str, time_format: str | None, parse_times: bool = True) -> Any:
    """The table with times in text as timestamps, unless `match` is to read them."""
    if time not in table.columns or not (parse_times or time_format == UNIX):
        return table
    from pyspark.sql import functions as F

    kind = dict(table.dtypes)[time]
    if time_format == UNIX:
        return table.withColumn(time, F.col(f"`{time}`").cast("double").cast("timestamp"))
    if time_format is None:
        return table.withColumn(time, F.to_timestamp(time)) if kind == "string" else table
    return table.withColumn(time, F.to_timestamp(time, java_pattern(time_format)))


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
        hint = "say which, for example --schema 'ts timestamp, type string, id long'"
        raise CepheidError("the values of a Kafka topic are JSON, and their columns are not known", hint=hint)
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
            raise CepheidError(f"--kafka {item}: a name and a value are needed", hint="security.protocol=SASL_SSL")
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


def flat_columns(result: Any) -> Any:
    """The same without nesting, for CSV: `x.ts`, `x.id` for the event x, lists as JSON text."""
    from pyspark.sql import functions as F
    from pyspark.sql.types import ArrayType, StructType

    columns = []
    for field in result.schema.fields:
        if isinstance(field.dataType, StructType):
            columns += [F.col(f"`{field.name}`.`{n}`").alias(f"{field.name}.{n}") for n in field.dataType.names]
        elif isinstance(field.dataType, ArrayType):
            columns.append(F.to_json(F.col(f"`{field.name}`")).alias(field.name))
        else:
            columns.append(F.col(f"`{field.name}`"))
    return result.select(*columns)
