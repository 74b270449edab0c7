"""Options that several commands share, so that they are spelt and explained once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from cepheid.cli.query_argument import READ_ONCE, STANDARD_INPUT_READ
from cepheid.errors import CepheidError
from cepheid.files.input_files import FORMATS, keep_piped
from cepheid.plan.options import SCORINGS
from cepheid.runners.options import BAD_RECORDS, help_of

REPEATED = "May be repeated."


def declared(name: str, more: str = "", **settings: Any) -> Any:
    """An option of a command that is one of `match`; its declaration gives the help."""
    return typer.Option(help=" ".join(filter(None, [help_of(name), more])), **settings)


def _with_standard_input(context: typer.Context, given: list[str] | None) -> list[str] | None:
    """`-i -`: what comes through the pipe is kept in a file while the command runs."""
    if not given or "-" not in given or context.resilient_parsing:
        return given
    if given.count("-") > 1:
        raise CepheidError(READ_ONCE, hint="give one of them as a file")
    kept = keep_piped()
    read = STANDARD_INPUT_READ.set(True)

    def close() -> None:
        STANDARD_INPUT_READ.reset(read)
        shutil.rmtree(kept.parent, ignore_errors=True)

    context.call_on_close(close)
    return [str(kept) if item == "-" else item for item in given]


QueryArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="QUERY", help="The text of a query, a file that holds it, FILE.py:NAME, or - for standard input."
    ),
]
Inputs: TypeAlias = Annotated[
    list[str],
    typer.Option(
        "--input",
        "-i",
        metavar="PATH",
        help="Events: Parquet, CSV, JSON lines, Arrow, a log (syslog, access log, XES, OCEL), a directory, a glob, "
        "a Delta table, or - for standard input. May be repeated.",
        callback=_with_standard_input,
    ),
]
EventsIfAny: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--input", "-i", metavar="PATH", help="Events to plan for. May be repeated.", callback=_with_standard_input
    ),
]
FunctionsPath: TypeAlias = Annotated[
    Path | None,
    typer.Option("--functions", metavar="FILE", help="A Python file with @cepheid.function definitions to call."),
]
InputFormat: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--format",
        metavar="FORMAT",
        help="parquet, csv, jsonl, arrow, delta, syslog, access-log, xes or ocel, where the name does not show it; "
        "syslog:2024 gives the year of the first line, ocel:order the type of object whose log is read.",
        autocompletion=lambda: list(FORMATS),
    ),
]
TimeFormat: TypeAlias = Annotated[
    str | None, declared("time_format", "For example %d/%m/%Y, or unix: seconds since 1970.", metavar="FORMAT")
]
Time: TypeAlias = Annotated[str, declared("time", metavar="COLUMN")]
Type: TypeAlias = Annotated[str, typer.Option(metavar="COLUMN", help="The column of event types.")]
Untyped: TypeAlias = Annotated[bool, typer.Option("--untyped", help="The events have no type column.")]
IgnoreCase: TypeAlias = Annotated[
    bool, typer.Option("--ignore-case", help="Compare event types without regard to case.")
]
TimeUnit: TypeAlias = Annotated[str | None, declared("time_unit", metavar="UNIT")]
Tiebreak: TypeAlias = Annotated[list[str] | None, declared("tiebreak", REPEATED, metavar="COLUMN")]
Lower: TypeAlias = Annotated[str | None, declared("lower", metavar="COLUMN")]
Upper: TypeAlias = Annotated[str | None, declared("upper", metavar="COLUMN")]
Existence: TypeAlias = Annotated[str | None, declared("existence", metavar="COLUMN")]
Parameters: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--parameter", "-p", metavar="NAME=VALUE", help="A value for a bare word of the query. May be repeated."
    ),
]
EngineName: TypeAlias = Annotated[str, declared("engine", metavar="ENGINE")]
ModelPath: TypeAlias = Annotated[
    Path | None, typer.Option("--model", metavar="PATH", help="A loss and gap model, as `cepheid fit` writes it.")
]
Scoring: TypeAlias = Annotated[str, declared("scoring", metavar="NAME", autocompletion=lambda: list(SCORINGS))]
MatchOptions: TypeAlias = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="Any other option of cepheid.match. May be repeated."),
]
_RECORDS = "Records"
BadRecords: TypeAlias = Annotated[
    str | None,
    declared("bad_records", metavar="POLICY", rich_help_panel=_RECORDS, autocompletion=lambda: list(BAD_RECORDS)),
]
Aside: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="PATH", help="Output path of invalid records, with reasons: .parquet, .csv.", rich_help_panel=_RECORDS
    ),
]
Dedupe: TypeAlias = Annotated[
    list[str] | None, declared("dedupe", REPEATED, metavar="COLUMN", rich_help_panel=_RECORDS)
]
Decimal: TypeAlias = Annotated[str | None, declared("decimal", metavar="MARK", rich_help_panel=_RECORDS)]
Thousands: TypeAlias = Annotated[str | None, declared("thousands", metavar="MARK", rich_help_panel=_RECORDS)]
OutputPath: TypeAlias = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="PATH", help="Output path: .parquet, .csv, .jsonl, .arrow, or a directory."),
]
Overwrite: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--overwrite",
        help="Write into a directory even if it holds files. Only files of an earlier result are removed.",
    ),
]
EscapeFormulas: TypeAlias = Annotated[
    bool, typer.Option("--escape-formulas", help="In CSV, put a quote before text that a spreadsheet would evaluate.")
]
NullTexts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--null",
        metavar="TEXT",
        help="Text that means NULL in CSV, in addition to an empty field, such as NA. May be repeated.",
        rich_help_panel=_RECORDS,
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
