"""`cepheid run`: the matches of a query in files of events."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.event_files import find_files, read_events
from cepheid.cli.match_table import match_table
from cepheid.cli.messages import explaining_delay, note, out
from cepheid.cli.query_argument import read_query
from cepheid.cli.result_files import check_output, flat, write_json_lines, write_table
from cepheid.cli.stages import Stages
from cepheid.report.facts import facts


class Shown(StrEnum):
    """How matches are printed."""

    table = "table"
    jsonl = "jsonl"
    csv = "csv"


_Limit = Annotated[int, typer.Option(metavar="N", help="How many matches the table shows.", min=0)]
_Shown = Annotated[
    Shown | None, typer.Option(help="How matches are printed without --output: a table, or jsonl when piped.")
]
_MaxMatches = Annotated[int | None, typer.Option(metavar="N", help="Stop with an error at more matches.", min=1)]
_Truncate = Annotated[bool, typer.Option("--truncate", help="At a limit, give the matches so far, not an error.")]
_Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No summary.")]


def run(
    query: o.QueryArgument,
    input: o.Inputs,
    output: o.OutputPath = None,
    format: o.InputFormat = None,
    time_format: o.TimeFormat = None,
    time: o.Time = "ts",
    type: o.Type = "type",
    untyped: o.Untyped = False,
    time_unit: o.TimeUnit = None,
    tiebreak: o.Tiebreak = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    parameter: o.Parameters = None,
    model: o.ModelPath = None,
    scoring: o.Scoring = "exact",
    engine: o.EngineName = "auto",
    max_matches: _MaxMatches = None,
    truncate: _Truncate = False,
    show: _Shown = None,
    limit: _Limit = 20,
    quiet: _Quiet = False,
) -> None:
    """Find the matches of a query in files of events.

    Matches go to --output, or to standard output: as a table on a terminal, as JSON lines when piped.

    Examples:

        cepheid run shoplifting.cepheid --input events.parquet --output thefts.parquet

        cepheid run "PATTERN SEQ(Login a, Payment b) WHERE [user] WITHIN 5 minutes" -i day.csv --time when
    """
    if output is not None:
        check_output(output)
    parsed = read_query(query, parameter or ())
    stages = Stages()
    with stages.timed("read"):
        events = read_events(find_files(input, format), time=lower or time, time_format=time_format)
    roles = o.roles(time, type, untyped, time_unit, tiebreak, lower, upper)
    given: dict[str, Any] = {"engine": engine, "scoring": scoring, **({"truncate": True} if truncate else {})}
    if model is not None:
        given["model"] = cepheid.load_model(model)
    if max_matches is not None:
        given["max_matches"] = max_matches
    with stages.timed("match"), explaining_delay():
        result = cepheid.match(events, parsed, **roles.arguments(), **given)
    with stages.timed("write"):
        deliver(result, output, show, roles, limit)
    if not quiet:
        stages.print_summary(events=events.num_rows, matches=result.num_rows, output=output)
        if facts(result).get("truncated"):
            note("the result was cut short at a limit: there are more matches")
        if result.num_rows == 0:
            note("no matches: `cepheid why` with the same arguments says where they were lost")


def deliver(result: pa.Table, output: Path | None, show: Shown | None, roles: o.Roles, limit: int) -> None:
    """The matches to a file or to standard output."""
    if output is not None:
        write_table(result, output)
        return
    match show or (Shown.table if out.is_terminal else Shown.jsonl):
        case Shown.jsonl:
            write_json_lines(result)
        case Shown.csv:
            from pyarrow import csv

            sys.stdout.flush()
            csv.write_csv(flat(result), sys.stdout.buffer)
        case Shown.table:
            out.print(match_table(result, time=roles.lower or roles.time, type=roles.type, limit=limit))
            if result.num_rows > limit:
                note(f"... {result.num_rows - limit} more; --limit shows more, --output keeps all")
