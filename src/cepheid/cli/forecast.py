"""`cepheid forecast`: which partial matches are open, how likely they are to complete, and when."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table

import cepheid
from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading
from cepheid.cli.match_table import event_text
from cepheid.cli.messages import explaining_delay, out
from cepheid.cli.query_argument import load_functions, read_query
from cepheid.cli.result_files import to_json
from cepheid.errors import CepheidError
from cepheid.files.roles import Roles

_At = Annotated[str | None, typer.Option(metavar="TIME", help="The time to forecast at; default: the newest event's.")]
_Limit = Annotated[int, typer.Option(metavar="N", help="Show the N most probable partial matches; 0 shows all.", min=0)]
_BAR = 10


def forecast(
    query: o.QueryArgument,
    input: o.Inputs,
    model: o.ModelPath = None,
    at: _At = None,
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
    limit: _Limit = 20,
    as_json: o.AsJson = False,
) -> None:
    """List the open partial matches, with their probability to complete and the expected time.

    Example:

        cepheid forecast unpaid.cepheid --input orders.parquet --model model.json
    """
    if model is None:
        raise CepheidError("a forecast needs a loss and gap model", hint="pass --model PATH; `cepheid fit` makes one")
    load_functions(settings.functions)
    parsed, roles = read_query(query, settings.parameter or (), "forecast"), columns.roles()
    events = reading.events(reading.files(input), columns.time, parse_times=True)
    moment = int(at) if at is not None and at.lstrip("-").isdigit() else at
    with explaining_delay():
        found = cepheid.forecast(events, parsed, model=cepheid.load_model(model), at=moment, **roles.arguments())
    rows = found.sort_by([("probability", "descending")]).to_pylist()
    if as_json:
        for row in rows[: limit or None]:
            print(to_json(row))
    else:
        _print(rows, limit, roles)


def _print(rows: list[dict[str, Any]], limit: int, roles: Roles) -> None:
    """The most probable ones as a table, each with a bar for its probability."""
    out.print(f"{len(rows):,} open partial {'match' if len(rows) == 1 else 'matches'}", style="bold")
    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("probability", "waiting for", "expected", "90% between", "held"):
        table.add_column(name, overflow="fold")
    for row in rows[: limit or None]:
        chance = row["probability"]
        held = [value for name, value in row.items() if isinstance(value, dict)]
        filled = round(chance * _BAR)
        table.add_row(
            f"{chance:4.0%} {'█' * filled}{'░' * (_BAR - filled)}",
            row["waiting_for"],
            str(row["expected"]),
            f"{row['earliest']} and {row['latest']}",
            event_text(held[-1], roles.time) if held else "",
        )
    out.print(table)
    if limit and len(rows) > limit:
        out.print(f"{len(rows) - limit:,} more; --limit 0 shows all", style="dim")
