"""`cepheid check`: every error of some queries, without running them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

import cepheid
from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading
from cepheid.cli.messages import in_words_of_the_command_line, out
from cepheid.cli.query_argument import existing_file, load_functions, parse_parameters, query_arguments, query_object
from cepheid.cli.result_files import to_json
from cepheid.diagnose.errors import errors_of
from cepheid.errors import QueryError
from cepheid.pattern_query import LanguageQuery

Queries = Annotated[list[str], typer.Argument(metavar="QUERY...", help="Texts, files or directories of queries.")]


def check(
    queries: Queries,
    input: o.Inputs = [],  # noqa: B006  typer copies it
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    as_json: o.AsJson = False,
) -> None:
    """List all errors of queries, without running them.

    With --input, check also that columns and event types exist. The exit code is 0 if there are no errors.

    Example:

        cepheid check shoplifting.cepheid --input events.parquet
    """
    load_functions(settings.functions)
    table = reading.events(reading.files(input), columns.time) if input else None
    roles = columns.roles()
    found: list[dict[str, Any]] = []
    for argument in [each for given in queries for each in query_arguments(given)]:
        name = argument if existing_file(argument) else "query"
        given = roles.arguments(), parse_parameters(settings.parameter or ())
        asked = query_object(argument)
        every = errors_of(asked, table, *given) if isinstance(asked, str) else _errors_of_object(asked, table, *given)
        errors = sorted(every, key=lambda error: error.start or 0)
        found += [_record(name, error) for error in errors]
        if not as_json:
            _print(name, errors)
    if as_json:
        print(to_json(found))
    raise typer.Exit(1 if found else 0)


def _errors_of_object(
    asked: Any, table: pa.Table | None, roles: Mapping[str, Any], parameters: Mapping[str, object]
) -> Iterator[QueryError]:
    """The first error of a query or a pattern of a Python file."""
    try:
        query: LanguageQuery = cepheid.query(asked, parameters)
        query.explain(table, **{name: value for name, value in roles.items() if query.takes(name, value)})
    except QueryError as error:
        yield error


def _record(name: str, error: QueryError) -> dict[str, object]:
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
