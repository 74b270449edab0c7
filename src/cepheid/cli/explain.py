"""`cepheid explain`: what would be done for a query, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.messages import explaining_delay
from cepheid.cli.query_argument import arguments_of, load_functions, parse_options, read_any_query, time_column
from cepheid.errors import CepheidError
from cepheid.files.event_files import read_events
from cepheid.files.input_files import find_files

_Analyze = Annotated[bool, typer.Option("--analyze", help="Also run the query, and count the events at each step.")]


def explain(
    query: o.QueryArgument,
    input: o.EventsIfAny = None,
    format: o.InputFormat = None,
    null: o.NullTexts = None,
    time_format: o.TimeFormat = None,
    time: o.Time = "ts",
    type: o.Type = "type",
    untyped: o.Untyped = False,
    ignore_case: o.IgnoreCase = False,
    time_unit: o.TimeUnit = None,
    tiebreak: o.Tiebreak = None,
    lower: o.Lower = None,
    upper: o.Upper = None,
    existence: o.Existence = None,
    parameter: o.Parameters = None,
    model: o.ModelPath = None,
    scoring: o.Scoring = "exact",
    engine: o.EngineName = "auto",
    option: o.MatchOptions = None,
    functions: o.FunctionsPath = None,
    analyze: _Analyze = False,
) -> None:
    """Show the plan of a query: its operators, the engine that runs it, and why.

    Without --input, column types are guessed from the query, and there are no estimates.

    Example:

        cepheid explain shoplifting.cepheid --input events.parquet --analyze
    """
    if analyze and not input:
        raise CepheidError("--analyze runs the query, so it needs events", hint="add --input PATH")
    load_functions(functions)
    parsed = read_any_query(query, parameter or ())
    roles = o.roles(time, type, untyped, time_unit, tiebreak, lower, upper, existence)
    roles = replace(roles, ignore_case=ignore_case)
    clock = time_column(parsed, roles)
    events = read_events(find_files(input, format, null or ()), time=clock, time_format=time_format) if input else None
    with explaining_delay():
        loaded = cepheid.load_model(model) if model is not None else None
        given = {"model": loaded, "scoring": scoring, "engine": engine, **parse_options(option or ())}
        text = parsed.explain(events, **arguments_of(parsed, roles, given), analyze=analyze)
    print(text)
