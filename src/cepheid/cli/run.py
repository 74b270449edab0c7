"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import pyarrow.compute as pc
import typer

import cepheid
from cepheid.cli import Process
from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading, Records, Search
from cepheid.cli.match_table import match_table
from cepheid.cli.messages import explaining_delay, in_words_of_the_command_line, note, out
from cepheid.cli.outputs import check_outputs
from cepheid.cli.query_argument import load_functions, query_files, read_queries
from cepheid.cli.result_files import check_output, flat, is_folder, without_formulas, write_json_lines, write_table
from cepheid.cli.spark_run import Ran, SparkOptions, Task, run_batch, run_stream
from cepheid.cli.spark_session import LOCAL
from cepheid.cli.spark_tables import kafka_topic
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files
from cepheid.files.parsed import is_parsed
from cepheid.files.roles import Roles
from cepheid.report.facts import facts, unit_of
from cepheid.runners.many import QUERY, SHARED


class Shown(StrEnum):
    """How matches are printed."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


_Limit = Annotated[
    int | None, typer.Option(metavar="N", help="Return only the first N matches of each query; tables show 20.", min=0)
]
_IN_A_TABLE = 20  # matches that a terminal shows
_Shown = Annotated[
    Shown | None, typer.Option(help="Output format without --output: table on a terminal, jsonl when piped.")
]
_MaxMatches = Annotated[int | None, o.declared("max_matches", metavar="N", min=1)]
_Timeout = Annotated[float | None, o.declared("timeout", metavar="SECONDS", min=0)]
_Truncate = Annotated[bool, typer.Option("--truncate", help="At a limit, return the matches so far, no error.")]
_Quiet = Annotated[bool, typer.Option("--quiet", help="Print no summary.")]
_Query = Annotated[
    str | None,
    typer.Argument(
        metavar="[QUERY]",
        help="A query: its text, a file with it, FILE.py:NAME, a directory of .cepheid files, or - for standard input.",
        show_default=False,
    ),
]
_Queries = Annotated[
    list[str] | None,
    typer.Option(
        "--query", "-q", metavar="NAME=QUERY", help="One of several queries that run in one pass. May be repeated."
    ),
]
_PartitionBy = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Partition the output directory by a column of the result. May be repeated."),
]
_SPARK = "Spark"
_Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Run on Spark: local[*], spark://host:7077, yarn, ...", rich_help_panel=_SPARK),
]
_Conf = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting. May be repeated.", rich_help_panel=_SPARK),
]
_Stream = Annotated[
    bool,
    typer.Option("--stream", help="Read a directory or kafka://broker:9092/topic as a stream.", rich_help_panel=_SPARK),
]
_Checkpoint = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The checkpoint directory of a stream.", rich_help_panel=_SPARK)
]
_Trigger = Annotated[
    str | None,
    typer.Option(
        metavar="WHEN",
        help="available-now: process all available data and end; or an interval, such as '10 seconds'.",
        rich_help_panel=_SPARK,
    ),
]
_Delay = Annotated[
    str | None, o.declared("delay", "For example '10 seconds'.", metavar="LENGTH", rich_help_panel=_SPARK)
]
_FilesPerBatch = Annotated[
    int | None,
    typer.Option(metavar="N", help="Maximum number of files per micro-batch.", min=1, rich_help_panel=_SPARK),
]
_TopicSchema = Annotated[
    str | None,
    typer.Option(
        "--schema", metavar="COLUMNS", help="Columns of a topic: 'ts timestamp, id long'.", rich_help_panel=_SPARK
    ),
]
_Kafka = Annotated[
    list[str] | None,
    typer.Option(
        "--kafka",
        metavar="NAME=VALUE",
        help="A Kafka setting, such as security.protocol=SASL_SSL. May be repeated.",
        rich_help_panel=_SPARK,
    ),
]
_Console = Annotated[
    bool, typer.Option("--console", help="Show the stream in a local web page.", rich_help_panel=_SPARK)
]
_LARGE = 2 * 2**30  # bytes of input from which Spark is the better choice


def run(
    input: o.Inputs,
    query: _Query = None,
    queries: _Queries = None,
    output: o.OutputPath = None,
    partition_by: _PartitionBy = None,
    overwrite: o.Overwrite = False,
    escape_formulas: o.EscapeFormulas = False,
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    search: Search,
    engine: o.EngineName = "auto",
    records: Records,
    max_matches: _MaxMatches = None,
    timeout: _Timeout = None,
    truncate: _Truncate = False,
    show: _Shown = None,
    limit: _Limit = None,
    quiet: _Quiet = False,
    master: _Master = None,
    conf: _Conf = None,
    stream: _Stream = False,
    checkpoint: _Checkpoint = None,
    trigger: _Trigger = None,
    delay: _Delay = None,
    files_per_batch: _FilesPerBatch = None,
    schema: _TopicSchema = None,
    kafka: _Kafka = None,
    console: _Console = False,
) -> None:
    """Find the matches of a query, or of several, in files of events.

    Matches go to --output, or to standard output: a table on a terminal, JSON lines in a pipe.
    The query runs in this process. It runs on Spark with --master, with --stream, or if the input exceeds 2 GiB.

    Examples:

        cepheid run shoplifting.cepheid --input events.parquet --output thefts.parquet

        cepheid run "PATTERN SEQ(Login a, Payment b) WHERE [user] WITHIN 5 minutes" -i day.csv --time when

        cepheid run -q theft=shoplifting.cepheid -q idle="PATTERN ..." -i events/ -o found --partition-by query

        cepheid run shoplifting.cepheid -i incoming/ --stream --delay "10 seconds" -o thefts.parquet --checkpoint state
    """
    load_functions(settings.functions)
    task = Task(
        read_queries(query, queries or (), settings.parameter or ()),
        list(input),
        columns.roles(),
        {
            **_options_of_match(search, engine, max_matches=max_matches, timeout=timeout, truncate=truncate or None),
            **records.options(reading.time_format),
        },
        output,
        tuple(partition_by or ()),
        (*query_files(query, queries or ()), search.model, settings.functions),
        overwrite,
        not escape_formulas,
        tuple(reading.null or ()),
    )
    if Process.ours and settings.functions is None:
        without_pandas()
    where = SparkOptions(master or LOCAL, conf or [], reading.format, reading.time_format, schema, kafka=kafka or [])
    where = replace(where, checkpoint=checkpoint, trigger=trigger, delay=delay, files_per_batch=files_per_batch)
    _run_task(task, where, SearchRequest(show, limit, quiet, stream, console, master is not None))


class _NoPandas:
    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError(name)


def without_pandas() -> None:
    """Has PyArrow not load pandas, which takes a third of the processor time of a small command.

    PyArrow looks for pandas when it is first handed Python values, in case these are pandas'. It looks once; whoever
    asks it for a DataFrame later still gets one.
    """
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _NoPandas)
        try:
            pa.array([])
        finally:
            sys.meta_path.remove(_NoPandas)


@dataclass(frozen=True)
class SearchRequest:
    """How a task runs, and what it reports."""

    show: Shown | None
    limit: int | None
    quiet: bool
    stream: bool
    console: bool
    on_spark: bool


def _options_of_match(search: Search, engine: str, **limits: Any) -> dict[str, object]:
    """What was given, as `match` takes it."""
    given = {"engine": engine, **search.given()}
    limits["model"] = given.pop("model")
    for each in limits["model"].notes if limits["model"] is not None else ():
        if each.startswith("the model does not fit"):
            note(f"{search.model}: {each}")
    return given | {name: value for name, value in limits.items() if value is not None}


def _run_task(task: Task, options: SparkOptions, asked: SearchRequest) -> None:
    """Runs it where it is best run, and delivers what it finds."""
    _check_places(task, options, asked)
    stages = Stages()
    if asked.stream:

        def show(found: pa.Table) -> None:
            deliver(found, None, asked.show, task.roles, _shown_of(asked), task)

        ran = _streamed(task, options, stages, show, asked.console)
    elif asked.on_spark or _is_large(task.inputs, options.format):
        ran = run_batch(task, options, stages)
    else:
        ran = run_here(task, options, stages)
    if ran.result is not None:
        result = ran.result if asked.limit is None else _first(ran.result, asked.limit)
        with stages.timed("write"):
            deliver(result, task.output, asked.show, task.roles, _shown_of(asked), task)
        if result.num_rows < ran.result.num_rows and not asked.quiet:
            note(f"--limit {asked.limit}: {result.num_rows:,} of {ran.result.num_rows:,} matches are returned")
    if not asked.quiet:
        late = {"late": ran.late} if ran.late else {}
        stages.print_summary(
            events=ran.events, matches=ran.matches, output=task.output, unit=unit_of(task.query), **late
        )
        if ran.result is not None and facts(ran.result).get("truncated"):
            number = facts(ran.result).get("counters", {}).get("matches_in_all")
            many = "more" if number is None else f"{number:,}"
            note(f"the result was cut short at a limit: there are {many} matches")
        if ran.matches == 0 and not asked.stream:
            say_why(ran)


def _check_places(task: Task, options: SparkOptions, asked: SearchRequest) -> None:
    """An error for options that do not go together, before anything is read."""
    if task.partition_by and (task.output is None or not is_folder(task.output)):
        raise CepheidError("--partition-by needs an output directory", hint="for example --output found")
    if asked.stream:
        return
    if asked.limit is not None and asked.on_spark and task.output is not None:
        raise CepheidError("--limit does not apply to files that Spark writes", hint="leave out --output, or --limit")
    if asked.console:
        raise CepheidError("--console watches a stream", hint="add --stream, or use `cepheid console` for tables")
    refuse_stream_options(options)
    topic = next((item for item in task.inputs if kafka_topic(item) is not None), None)
    if topic is not None:
        raise CepheidError(f"--input {topic} is a stream", hint="add --stream and --delay")


def refuse_stream_options(options: SparkOptions) -> None:
    """An error for an option that only a stream reads."""
    given = {
        "--delay": options.delay,
        "--checkpoint": options.checkpoint,
        "--trigger": options.trigger,
        "--files-per-batch": options.files_per_batch,
        "--schema": options.schema,
        "--kafka": options.kafka or None,
    }
    for name, value in given.items():
        if value is not None:
            raise CepheidError(f"{name} is an option of streams", hint="add --stream, or leave it out")


def _streamed(
    task: Task, options: SparkOptions, stages: Stages, show: Callable[[pa.Table], None], console: bool
) -> Ran:
    """A stream, watched in the console if that is wanted."""
    if not console:
        return run_stream(task, options, show, stages)
    from cepheid.cli.stream_console import console_watch

    queries = task.query.values() if isinstance(task.query, dict) else [task.query]
    watch = console_watch(task.roles, "\n\n".join(getattr(query, "text", None) or str(query) for query in queries))
    note(f"the stream can be watched at {watch.server.address}")

    def show_and_draw(found: pa.Table) -> None:
        watch.matches(found)
        show(found)

    try:
        return run_stream(task, options, show_and_draw, stages, watch.numbers)
    finally:
        watch.end()


def say_why(ran: Ran) -> None:
    """A way on for who found nothing."""
    if ran.events == 0:
        note("no matches: the input holds no events")
        return
    if ran.unknown is not None:
        note(ran.unknown)
    note("no matches: `cepheid why` with the same arguments shows which step excluded them")


def _is_large(inputs: list[str], format: str | None) -> bool:
    files = find_files(inputs, format)
    if files.size < _LARGE or is_parsed(files.format):
        return False
    from cepheid.runners.spark.session import java_problem

    if java_problem() is not None:
        return False
    note(f"a large input: it runs on Spark, {LOCAL}")
    return True


def run_here(task: Task, options: SparkOptions, stages: Stages) -> Ran:
    """All matches in files, found in this process, or how many there are."""
    if task.given.get("output") == "compressed":
        raise CepheidError("output=compressed is for Python", hint="output=count returns the number of matches")
    if task.output is not None:
        check_output(task.output)
    files = find_files(task.inputs, options.format, task.nulls)
    check_outputs(task.writes, [*files.addresses, *task.reads], overwrite=task.overwrite)
    with stages.timed("read"):
        events = read_events(files, time=task.time, time_format=options.time_format, parse_times=task.parse_times)
    with stages.timed("match"), explaining_delay():
        result = cepheid.match(events, task.query, **task.arguments)
    if isinstance(result, int):
        out.print(f"{result}")
        return Ran(None, result, events.num_rows)
    unknown = unknown_name(task, events) if result.num_rows == 0 else None
    return Ran(result, result.num_rows, events.num_rows, unknown=unknown)


def unknown_name(task: Task, events: pa.Table) -> str | None:
    """What the query names and the events do not have: a type, since anything else is an error."""
    if events.num_rows == 0 or not isinstance(task.query, cepheid.Query):
        return None
    from cepheid.diagnose.errors import errors_of

    error = next(
        errors_of(task.query.text or str(task.query), events, task.roles.arguments(), task.query.parameters), None
    )
    return None if error is None else in_words_of_the_command_line(str(error))


def deliver(
    result: pa.Table, output: Path | None, show: Shown | None, roles: Roles, limit: int, task: Task | None = None
) -> None:
    """The matches to a file or to standard output."""
    formulas = task is None or task.formulas
    if output is not None:
        partition_by, overwrite = ((), False) if task is None else (task.partition_by, task.overwrite)
        write_table(result, output, partition_by, overwrite=overwrite, formulas=formulas)
        return
    match show or (Shown.table if out.is_terminal else Shown.jsonl):
        case Shown.jsonl:
            write_json_lines(result)
        case Shown.csv:
            from pyarrow import csv

            sys.stdout.flush()
            csv.write_csv(flat(result) if formulas else without_formulas(flat(result)), sys.stdout.buffer)
        case Shown.table:
            for title, part in _by_query(result) if result.num_rows else ():
                out.print(match_table(part, time=roles.lower or roles.time, type=roles.type, limit=limit, title=title))
                if part.num_rows > limit:
                    note(f"... {part.num_rows - limit} more; --limit shows more, --output keeps all")


def _shown_of(asked: SearchRequest) -> int:
    """How many matches a table shows of each query."""
    return _IN_A_TABLE if asked.limit is None else asked.limit


def _first(result: pa.Table, limit: int) -> pa.Table:
    """The first matches of each query."""
    if result.column_names[:1] != [QUERY]:
        return result.slice(0, limit)
    names = pc.unique(result.column(QUERY)).to_pylist()
    parts = [result.filter(pc.equal(result.column(QUERY), name)).slice(0, limit) for name in names]
    return pa.concat_tables(parts) if parts else result


def _by_query(result: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """The result of each query, where there are several, with the columns that it has alone."""
    names = result.column_names[3:] if result.column_names[:1] == [QUERY] else []
    if not names:
        yield None, result
    for name in names:
        rows = result.filter(pc.equal(result.column(QUERY), name))
        own = pa.table({"": rows.column(name)}).flatten()
        own = own.rename_columns([column.removeprefix(".") for column in own.column_names])
        for place, shared in enumerate(SHARED):
            own = own.add_column(place, shared, rows.column(shared))
        yield name, own
