"""`cepheid fit`: loss and gaps of a query's components, learned from past events."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated
from warnings import catch_warnings, simplefilter

import typer

import cepheid
from cepheid.cli import options as o
from cepheid.cli.groups import Columns, QuerySettings, Reading
from cepheid.cli.messages import explaining_delay, out, warning
from cepheid.cli.outputs import check_outputs, replacing
from cepheid.cli.query_argument import load_functions, query_files, read_query
from cepheid.errors import CepheidError

_Target = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="Output path of the model, as JSON.")
]
_Loss = Annotated[
    str | None, typer.Option(metavar="P or NAME=P,...", help="Known losses: one number, or one per variable.")
]
_Happens = Annotated[
    str | None, typer.Option(metavar="NAME=P,...", help="Known shares of components that happen at all.")
]


_LossBy = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="Components with the same value of this attribute share one loss.")
]
_LossByHour = Annotated[bool, typer.Option("--loss-by-hour", help="Fit a loss for each hour of the day.")]


class Negatives(StrEnum):
    """How the loss of negated components is found."""

    pooled = "pooled"
    em = "em"


_Negatives = Annotated[
    Negatives,
    typer.Option(
        help="How to estimate the loss of negated components: from the other components, or from the lengths of trips."
    ),
]


def fit(
    query: o.QueryArgument,
    input: o.Inputs,
    output: _Target = None,
    loss: _Loss = None,
    happens: _Happens = None,
    negatives: _Negatives = Negatives.pooled,
    loss_by: _LossBy = None,
    loss_by_hour: _LossByHour = False,
    *,
    reading: Reading,
    columns: Columns,
    settings: QuerySettings,
) -> None:
    """Learn from past events how often readers miss events, and how long events take to follow each other.

    A model that does not fit its history is saved with a note. A warning goes to stderr.

    Example:

        cepheid fit shoplifting.cepheid -i last-month.parquet -o store.json
    """
    load_functions(settings.functions)
    parsed, roles = read_query(query, settings.parameter or (), "fit"), columns.roles()
    files = reading.files(input)
    check_outputs({"--output": output}, [*files.addresses, *query_files(query), settings.functions])
    events = reading.events(files, columns.time)
    with explaining_delay(), catch_warnings():
        simplefilter("ignore", cepheid.ModelWarning)  # the notes of the model say the same
        shares = parse_loss(happens)
        if isinstance(shares, float):
            raise CepheidError(f"--happens {happens}: expected a share per variable", hint="as in x=0.95,y=1")
        model = cepheid.fit(
            events,
            parsed,
            loss=parse_loss(loss),
            happens=shares,
            negatives=negatives.value,
            loss_by=loss_by,
            loss_by_hour=loss_by_hour,
            **roles.arguments(),
        )
        check = model.check(events, parsed, **roles.arguments())
    out.print(str(model), soft_wrap=True)
    if check.fits:
        out.print(str(check), soft_wrap=True)
    if output is not None:
        with replacing(output) as beside:
            model.save(beside)
        out.print(f"the model is in {output}", soft_wrap=True)
    if not check.fits:
        saved = f"; {output} is written anyway, with a note about this" if output is not None else ""
        warning(f"the model does not fit its own history, so its probabilities may be off{saved}")


def parse_loss(text: str | None) -> float | dict[str, float] | None:
    """Losses as written on the command line.

    >>> parse_loss("0.05"), parse_loss("x=0.1,y=0.2")
    (0.05, {'x': 0.1, 'y': 0.2})
    """
    if text is None:
        return None
    try:
        if "=" not in text:
            return float(text)
        return {name.strip(): float(value) for name, _, value in (part.partition("=") for part in text.split(","))}
    except ValueError:
        raise CepheidError(f"--loss {text}: not a loss", hint="write it like 0.05 or x=0.1,y=0.2") from None
