"""`cepheid check`: every error of some queries, without running them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

from cepheid.cli import options as o
from cepheid.cli.event_files import read_events
from cepheid.cli.input_files import find_files
from cepheid.cli.messages import in_words_of_the_command_line, out
from cepheid.cli.query_argument import existing_file, load_functions, parse_parameters, query_text
from cepheid.cli.result_files import to_json
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.bind import bind
from cepheid.language.check import problems, resolve
from cepheid.language.sase.parse import parse
from cepheid.language.schema import Schema

Queries = Annotated[list[str], typer.Argument(metavar="QUERY...", help="Texts or files of queries.")]


def check(
    queries: Queries,
    input: o.Inputs = [],  # noqa: B006  typer copies it
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
    functions: o.FunctionsPath = None,
    as_json: o.AsJson = False,
) -> None:
    """List all errors of queries, without running them.

    With --input, also whether the columns and event types that they name exist. Exit code 0 if all are clean.

    Example:

        cepheid check shoplifting.cepheid --input events.parquet
    """
    load_functions(functions)
    table = read_events(find_files(input, format), time=time, time_format=time_format) if input else None
    roles = o.roles(time, type, untyped, time_unit, tiebreak, lower, upper)
    found: list[dict[str, Any]] = []
    for argument in queries:
        name = argument if existing_file(argument) else "query"
        errors = list(errors_of(query_text(argument), table, roles, parse_parameters(parameter or ())))
        found += [_record(name, error) for error in errors]
        if not as_json:
            _print(name, errors)
    if as_json:
        print(to_json(found))
    raise typer.Exit(1 if found else 0)


def errors_of(
    text: str, table: pa.Table | None = None, roles: o.Roles | None = None, parameters: dict[str, Any] | None = None
) -> Iterator[QueryError]:
    """The errors of a query text: of its syntax; else all of its structure; else the first against a table."""
    try:
        syntax = parse(text)
        if any(s.deeper_than(e, s.MAX_DEPTH) is not None for e in _expressions(syntax)):
            raise QueryError(f"expressions nested more than {s.MAX_DEPTH} deep", code="too-deep")
        syntax = resolve(syntax)
    except QueryError as error:
        yield error
        return
    structural = list(problems(syntax, text))
    yield from structural
    if structural or table is None or roles is None:
        return
    try:
        schema = Schema.from_arrow(table.schema, types=_types_in(table, roles.type), **roles.arguments())
        bind(syntax, schema, parameters, text)
    except QueryError as error:
        yield error


def _expressions(query: s.QuerySyntax) -> list[s.Expression]:
    returned = [item.expression for item in query.returns or ()]
    return [query.where, *returned] if query.where is not None else returned


def _types_in(table: pa.Table, type: str | None) -> frozenset[str] | None:
    if type is None or type not in table.column_names or table.num_rows == 0:
        return None
    return frozenset(str(name) for name in table.column(type).unique().to_pylist() if name is not None)


def _record(name: str, error: QueryError) -> dict[str, Any]:
    return {
        "query": name,
        "code": error.code,
        "message": error.message,
        "hint": error.hint and in_words_of_the_command_line(error.hint),
        "line": error.line,
        "column": error.column,
        "end_column": error.end_column,
    }


def _print(name: str, errors: list[QueryError]) -> None:
    if not errors:
        out.print(Text(name).append(": clean", style="green"), soft_wrap=True)
    for error in errors:
        heading, _, rest = in_words_of_the_command_line(str(error)).partition("\n")
        text = Text(f"{name}: ").append(heading, style="bold").append(f" [{error.code}]", style="dim")
        out.print(text.append(f"\n{rest}" if rest else ""), soft_wrap=True)
