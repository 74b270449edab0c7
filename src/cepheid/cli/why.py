"""`cepheid why`: where the matches of a query are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading, Records, Search
from cepheid.cli.match_table import event_text
from cepheid.cli.messages import explaining_delay, in_words_of_the_command_line, out
from cepheid.cli.outputs import ASIDE, check_outputs
from cepheid.cli.query_argument import arguments_of, query_files, time_column
from cepheid.cli.result_files import to_json
from cepheid.diagnose.story import Section, sections, verdict
from cepheid.files.roles import Roles

if TYPE_CHECKING:
    from cepheid.diagnose import Closest, Diagnosis

_MostEvents = Annotated[int, typer.Option(metavar="N", help="Sample larger inputs down to about N events.", min=1)]


def why(
    query: o.QueryArgument,
    input: o.Inputs,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    search: Search,
    records: Records,
    most_events: _MostEvents = 2_000_000,
    as_json: o.AsJson = False,
) -> None:
    """Explain why a query finds nothing, or too little.

    Count the events that each component can take, the combinations that remain after each step, condition and negation,
    and the matches without each of them. Show what came closest to a match, and likely causes.

    Example:

        cepheid why shoplifting.cepheid --input events.parquet
    """
    parsed, files, roles = settings.read(query), reading.files(input), columns.roles()
    check_outputs({ASIDE: records.aside}, [*files.addresses, *query_files(query), search.model, settings.functions])
    events = reading.events(files, time_column(parsed, roles), parse_times=records.parse_times)
    from cepheid.api import why as find_why

    given = {**records.options(reading.time_format), **search.given()}
    with explaining_delay():
        diagnosis = find_why(events, parsed, most_events=most_events, **arguments_of(parsed, roles, given))
    if as_json:
        print(to_json(diagnosis.to_dict()))
    else:
        print_diagnosis(diagnosis, roles)


def print_diagnosis(diagnosis: Diagnosis, roles: Roles) -> None:
    """The diagnosis on the terminal: the verdict, the way there, and what to do."""
    out.print(diagnosis.query, style="cyan", end="\n\n")
    found, among = verdict(diagnosis)
    out.print(Text(found, style="bold").append(f" {among}\n", style="not bold"), soft_wrap=True)
    for section in sections(diagnosis):
        out.print(section.title, style="bold", end="")
        out.print(_table(section))
    if diagnosis.closest is not None:
        _print_closest(diagnosis.closest, roles)
    if diagnosis.hints:
        out.print("Likely causes", style="bold")
        for hint in diagnosis.hints:
            text = Text("  • ").append(in_words_of_the_command_line(hint.text)).append(f"  [{hint.code}]", style="dim")
            out.print(text, soft_wrap=True)


_STYLES = {"plain": ("", ""), "head": ("bold", ""), "aside": ("dim", "dim"), "none": ("", "bold red")}


def _table(section: Section) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, justify in zip(section.columns, ("left", "right"), strict=True):
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    for row in section.rows:
        first, second = _STYLES[row.look]
        table.add_row(Text("  " * row.indent + row.text, style=first), Text(row.number, style=second))
    return table


def _print_closest(closest: Closest, roles: Roles) -> None:
    out.print("Closest to a match", style="bold")
    for variable, event in closest.events:
        text = event_text(event, roles.lower or roles.time)
        out.print(Text(f"  {variable}  ", style="bold").append_text(text), soft_wrap=True)
    out.print(Text("  stopped by ").append(closest.stopped_by, style="bold red").append(f": {closest.detail}"))
    out.print()
