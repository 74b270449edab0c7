"""`cepheid explain`: what would be done for a query, and why."""

from __future__ import annotations

from typing import Annotated

import typer

from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading, Search
from cepheid.cli.messages import explaining_delay
from cepheid.cli.query_argument import arguments_of, time_column
from cepheid.errors import CepheidError

_Analyze = Annotated[bool, typer.Option("--analyze", help="Also run the query, and count the events at each step.")]


def explain(
    query: o.QueryArgument,
    input: o.EventsIfAny = None,
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    search: Search,
    engine: o.EngineName = "auto",
    analyze: _Analyze = False,
) -> None:
    """Show the plan of a query: its operators, the engine that runs it, and why.

    Without --input, column types are guessed from the query, and there are no estimates.

    Example:

        cepheid explain shoplifting.cepheid --input events.parquet --analyze
    """
    if analyze and not input:
        raise CepheidError("--analyze runs the query, so it needs events", hint="add --input PATH")
    parsed, roles = settings.read(query), columns.roles()
    events = reading.events(reading.files(input), time_column(parsed, roles)) if input else None
    with explaining_delay():
        given = {"engine": engine, **search.given()}
        text = parsed.explain(events, **arguments_of(parsed, roles, given), analyze=analyze)
    print(text)
