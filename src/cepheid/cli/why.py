"""`cepheid why`: where the matches of a query are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

import cepheid
from cepheid.cli import options as o
from cepheid.cli.event_files import find_files, read_events
from cepheid.cli.match_table import event_text
from cepheid.cli.messages import explaining_delay, in_words_of_the_command_line, out
from cepheid.cli.query_argument import read_query
from cepheid.cli.result_files import to_json

if TYPE_CHECKING:
    from cepheid.diagnose import Closest, ComponentCount, Diagnosis, Step

_MostEvents = Annotated[int, typer.Option(metavar="N", help="Larger inputs are thinned out to about N events.", min=1)]


def why(
    query: o.QueryArgument,
    input: o.Inputs,
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
    most_events: _MostEvents = 2_000_000,
    as_json: o.AsJson = False,
) -> None:
    """Say why a query finds nothing, or too little.

    Counts how many events each component can take, how many combinations survive each step, condition and negation,
    and how many matches there would be without each of them; shows what came closest to a match, and likely causes.

    Example:

        cepheid why shoplifting.cepheid --input events.parquet
    """
    parsed = read_query(query, parameter or ())
    events = read_events(find_files(input, format), time=lower or time, time_format=time_format)
    roles = o.roles(time, type, untyped, time_unit, tiebreak, lower, upper)
    from cepheid.diagnose import why as find_why

    loaded = cepheid.load_model(model) if model is not None else None
    given = {"model": loaded, "scoring": scoring, **roles.arguments()}
    with explaining_delay():
        diagnosis = find_why(events, parsed, most_events=most_events, **given)
    if as_json:
        print(to_json(diagnosis.to_dict()))
    else:
        print_diagnosis(diagnosis, roles)


def print_diagnosis(diagnosis: Diagnosis, roles: o.Roles) -> None:
    """The diagnosis on the terminal: the verdict, the way there, and what to do."""
    out.print(diagnosis.query, style="cyan", end="\n\n")
    verdict = Text(f"{diagnosis.matches} {'match' if diagnosis.matches.number == 1 else 'matches'}", style="bold")
    where = f" among {diagnosis.sample}" if diagnosis.sample else f" in {diagnosis.events:,} events"
    out.print(verdict.append(where, style="not bold"), soft_wrap=True)
    _print("\nEvents that can fill each component", _components(diagnosis.components))
    if len(diagnosis.steps) > 1:
        _print("What survives, step by step", _steps(diagnosis.steps))
    if diagnosis.without or diagnosis.window is not None:
        _print("Matches there would be without one thing", _without(diagnosis))
    if diagnosis.closest is not None:
        _print_closest(diagnosis.closest, roles)
    if diagnosis.hints:
        out.print("Likely causes", style="bold")
        for hint in diagnosis.hints:
            text = Text("  • ").append(in_words_of_the_command_line(hint.text)).append(f"  [{hint.code}]", style="dim")
            out.print(text, soft_wrap=True)


def _print(title: str, table: Table) -> None:
    out.print(title, style="bold", end="")
    out.print(table)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for position, name in enumerate(columns):
        table.add_column(name, justify="left" if position == 0 else "right", overflow="fold")
    return table


def _components(components: tuple[ComponentCount, ...]) -> Table:
    table = _table("component", "events")
    for component in components:
        table.add_row(Text(component.text, style="bold"), f"{component.of_type:,}")
        for condition in component.conditions:
            table.add_row(f"  {condition.text}", _number(condition.passed))
        if component.without_key:
            table.add_row(Text("  key is NULL", style="dim"), f"{component.without_key:,}")
        if component.conditions or component.without_key:
            table.add_row(Text("  can fill it", style="dim"), _number(component.passed))
    return table


def _number(count: int) -> Text:
    return Text(f"{count:,}", style="" if count else "bold red")


def _steps(steps: tuple[Step, ...]) -> Table:
    table = _table("step", "survive")
    for step in steps:
        # The events of a component are no combinations yet, so they stand aside.
        aside = step.kind == "events" and step is not steps[0]
        text = Text(f"+ {step.text}" if aside else step.text if step is steps[0] else f"  {step.text}")
        number = Text(str(step.count), style="dim" if aside else "" if step.count.number else "bold red")
        table.add_row(text, number)
    return table


def _without(diagnosis: Diagnosis) -> Table:
    table = _table("without", "matches")
    for item in diagnosis.without:
        table.add_row(item.text, "too many combinations to tell" if item.matches is None else str(item.matches))
    window = diagnosis.window
    if window is not None and window.matches is not None:
        text = f"WITHIN {window.text}" if window.needed is not None else f"WITHIN {window.text}, twice as long"
        needed = f" (the closest needs {window.needed_text})" if window.needed is not None else ""
        table.add_row(f"{text}{needed}", str(window.matches))
    elif window is not None:
        table.add_row(f"WITHIN {window.text}", "0")
    return table


def _print_closest(closest: Closest, roles: o.Roles) -> None:
    out.print("What came closest", style="bold")
    for variable, event in closest.events:
        text = event_text(event, roles.lower or roles.time)
        out.print(Text(f"  {variable}  ", style="bold").append_text(text), soft_wrap=True)
    out.print(Text("  stopped by ").append(closest.stopped_by, style="bold red").append(f": {closest.detail}"))
    out.print()
