"""`cepheid run` on Spark: a batch, or a stream with its progress."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.cli.outputs import ASIDE, check_outputs, replacing
from cepheid.cli.progress import StreamNumbers, StreamWatch, batch_progress
from cepheid.cli.query_argument import OneQuery, arguments_of, time_column
from cepheid.cli.spark_session import LOCAL, spark_session
from cepheid.cli.spark_tables import (
    flat_columns,
    kafka_topic,
    output_format,
    read_stream,
    read_table,
    read_topic,
    with_time,
)
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError, DataError
from cepheid.files.input_files import EventFiles, find_files
from cepheid.files.roles import Roles

AVAILABLE_NOW = "available-now"
_QUERY = "cepheid.json"  # in a checkpoint: the query that it belongs to
_MOST_ROWS = 1_000_000  # that are brought to this process to be printed


@dataclass(frozen=True)
class SparkOptions:
    """Where and how Spark runs."""

    master: str = LOCAL
    settings: list[str] = field(default_factory=list)  # Spark's own, NAME=VALUE
    format: str | None = None  # of the input
    time_format: str | None = None
    schema: str | None = None  # of a Kafka topic
    checkpoint: Path | None = None
    trigger: str | None = None  # AVAILABLE_NOW, or how long to wait between batches; None: not at all
    delay: str | None = None
    files_per_batch: int | None = None
    kafka: list[str] = field(default_factory=list)  # settings of a topic, NAME=VALUE


@dataclass(frozen=True)
class Task:
    """What is to be found where."""

    query: OneQuery | dict[str, OneQuery]
    inputs: list[str]
    roles: Roles
    given: dict[str, Any]  # model, engine and other options of `match`
    output: Path | None = None
    partition_by: tuple[str, ...] = ()
    reads: tuple[Path | None, ...] = ()  # other files that are read: the query's, the model, functions
    overwrite: bool = False  # may a directory with other files be written to?
    formulas: bool = True  # may texts in CSV be what a spreadsheet computes?
    nulls: tuple[str, ...] = ()  # texts in CSV that mean NULL, beside the empty one

    @property
    def arguments(self) -> dict[str, Any]:
        """What `match` takes besides the events and the query."""
        return arguments_of(self.query, self.roles, self.given)

    @property
    def writes(self) -> dict[str, Path | None]:
        """What is written, by the options that name it."""
        return {"--output": self.output, ASIDE: self.given.get("aside")}

    @property
    def time(self) -> str:
        """The column that holds the time."""
        return time_column(self.query, self.roles)

    @property
    def parse_times(self) -> bool:
        """Are times in text read before the query sees them? With a policy for bad records it reads them itself."""
        return "bad_records" not in self.given

    def told(self) -> str:
        """What must stay the same for a stream to go on from a checkpoint. Queries with names may come and go."""
        queries = {} if isinstance(self.query, dict) else {"": self.query}
        return json.dumps({"queries": {name: str(each) for name, each in queries.items()}, "roles": vars(self.roles)})


@dataclass(frozen=True)
class Ran:
    """What a run gave: the matches, unless they went elsewhere, and how many there were."""

    result: pa.Table | None
    matches: int
    events: int | None = None
    late: int = 0
    unknown: str | None = None  # a name of the query that nothing in the events has


def run_batch(task: Task, options: SparkOptions, stages: Stages) -> Ran:
    """All matches in files, found by Spark."""
    kind = output_format(task.output) if task.output is not None else None
    files = find_files(task.inputs, options.format, task.nulls)
    check_outputs(task.writes, [*task.inputs, *files.addresses, *task.reads], overwrite=task.overwrite)
    with spark_session(options.master, options.settings, stages) as session:
        from pyspark.sql import Observation
        from pyspark.sql import functions as F

        events = read_table(session, files, task.time, options.time_format, task.parse_times)
        counted = Observation()
        matches = cepheid.match(events, task.query, **task.arguments)
        matches = matches.observe(counted, F.count(F.lit(1)).alias("matches"))
        with stages.timed("match"), batch_progress(session):
            if task.output is None:
                result = matches.limit(_MOST_ROWS).toArrow()
                return Ran(result, result.num_rows, rows_in(files))
            written = flat_columns(matches, task.formulas) if kind == "csv" else matches
            writer = written.write.mode("errorifexists").format(kind).options(header="true")
            writer = writer.partitionBy(*task.partition_by) if task.partition_by else writer
            with replacing(task.output, overwrite=task.overwrite) as beside:
                _save(writer, beside)
        return Ran(None, int(counted.get["matches"]), rows_in(files))


def _save(writer: Any, path: Path) -> None:
    """Spark's files in a directory that is not there yet: nothing of anyone is removed, here or elsewhere."""
    from pyspark.errors import AnalysisException

    try:
        writer.save(str(path))
    except AnalysisException as error:
        if error.getCondition() != "PATH_ALREADY_EXISTS":
            raise
        hint = "name another, or remove it: only directories of this machine are replaced"
        raise CepheidError(f"--output {path} exists already", hint=hint) from None


def rows_in(files: EventFiles) -> int | None:
    """How many events there are, where the files tell without being read."""
    from pyarrow import parquet

    if files.format != "parquet" or not files.paths:
        return None
    return sum(int(parquet.read_metadata(path).num_rows) for path in files.paths)


def run_stream(
    task: Task,
    options: SparkOptions,
    show: Callable[[pa.Table], None],
    stages: Stages,
    tell: Callable[[StreamNumbers], None] = lambda _: None,
) -> Ran:
    """The matches in a directory that files come into, or in a Kafka topic, until it ends or is stopped.

    Without an output `show` gets the matches of each batch; `tell` hears how far the stream is.
    """
    kind = output_format(task.output) if task.output is not None else None
    if task.output is not None and options.checkpoint is None:
        hint = "for example --checkpoint state; a later run with the same checkpoint resumes where this one stopped"
        raise CepheidError("--stream with --output needs a checkpoint", hint=hint)
    if task.output is not None and options.checkpoint is not None:
        begun = (task.output / "_spark_metadata").is_dir()  # the stream goes on there, and removes nothing
        check_outputs(task.writes, [*task.inputs, *task.reads], overwrite=begun or task.overwrite)
        _check_other_place(task.output, task.inputs)
        _check_same_stream(task.output, options.checkpoint)
    if options.checkpoint is not None:
        _check_same_query(options.checkpoint, task)
    with spark_session(options.master, options.settings, stages) as session, _checkpoint(options) as folder:
        events = _source(session, task, options)
        given = {**task.given, **({"delay": options.delay} if options.delay is not None else {})}
        matches = cepheid.match(events, task.query, **arguments_of(task.query, task.roles, given))
        if task.output is None:

            def print_batch(batch: Any, _: int) -> None:
                found = batch.toArrow()
                if found.num_rows:
                    show(found)

            writer = matches.writeStream.foreachBatch(print_batch)
        else:
            written = flat_columns(matches, task.formulas) if kind == "csv" else matches
            writer = written.writeStream.format(kind).option("path", str(task.output)).option("header", "true")
            writer = writer.partitionBy(*task.partition_by) if task.partition_by else writer
        writer = writer.option("checkpointLocation", str(folder)).outputMode("append")
        with stages.timed("match"):
            started = _triggered(writer, options.trigger).start()
            (folder / _QUERY).write_text(task.told(), encoding="utf-8")
            watch = StreamWatch(started)
            watch.wait(tell)
        numbers = watch.numbers
        return Ran(None, numbers.matches, numbers.events, numbers.late)


def _check_other_place(output: Path, inputs: list[str]) -> None:
    if any(Path(item).resolve() in output.resolve().parents for item in inputs):
        hint = "name a place outside it"
        raise CepheidError(f"--output {output} lies in the directory that is read as a stream", hint=hint)


def _check_same_stream(output: Path, checkpoint: Path) -> None:
    """Spark's file sink counts batches; those of a new checkpoint it would take for old ones, and drop them."""
    if (output / "_spark_metadata").is_dir() and not checkpoint.exists():
        hint = "pass that checkpoint to resume, or another --output to start over"
        raise CepheidError(f"--output {output} was written by a stream with another checkpoint", hint=hint)


def _check_same_query(folder: Path, task: Task) -> None:
    """Shards notice another query when events come; without any, the stream would end as if all were well."""
    kept = folder / _QUERY
    if kept.is_file() and kept.read_text(encoding="utf-8") != task.told():
        hint = "go back to it, or start a new checkpoint"
        raise DataError(f"the checkpoint {folder} belongs to another query or other columns", hint=hint)


def _source(session: object, task: Task, options: SparkOptions) -> Any:
    topic = kafka_topic(task.inputs[0]) if len(task.inputs) == 1 else None
    if topic is not None:
        return read_topic(session, topic, options.schema, options.kafka)
    files = find_files(task.inputs, options.format, task.nulls)
    events = read_stream(session, files, options.files_per_batch)
    return with_time(events, task.time, options.time_format, task.parse_times)


@contextmanager
def _checkpoint(options: SparkOptions) -> Iterator[Path]:
    """The folder that was asked for, or one that is thrown away."""
    if options.checkpoint is not None:
        yield options.checkpoint
        return
    folder = Path(tempfile.mkdtemp(prefix="cepheid-checkpoint-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _triggered(writer: Any, trigger: str | None) -> Any:
    if trigger is None:
        return writer
    return writer.trigger(availableNow=True) if trigger == AVAILABLE_NOW else writer.trigger(processingTime=trigger)
