"""All commands in one place."""

from __future__ import annotations

from typing import Annotated

import typer

import cepheid
from cepheid.cli import (
    bench,
    check,
    console,
    demo,
    explain,
    fit,
    forecast,
    report,
    run,
    simulate,
    sql,
    tutorial,
    warm,
    why,
)
from cepheid.cli.messages import out

app = typer.Typer(
    rich_markup_mode="markdown",  # rich's own markup would swallow the [id] of queries
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        out.print(f"cepheid {cepheid.__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Find patterns of events: sequences, absences and repetitions, also if events are missing.

    Example:

        cepheid run "PATTERN SEQ(Shelf x, !(Register y), Exit z) WHERE [tag] WITHIN 12 hours" -i events.parquet
    """


app.command("run")(run.run)
app.command("sql")(sql.sql)
app.command("check")(check.check)
app.command("explain")(explain.explain)
app.command("why")(why.why)
app.command("fit")(fit.fit)
app.command("forecast")(forecast.forecast)
app.command("report")(report.report)
app.command("console")(console.console)
app.add_typer(simulate.app, name="simulate")
app.command("tutorial")(tutorial.tutorial)
app.command("demo")(demo.demo)
app.command("warm")(warm.warm)
app.command("bench", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})(bench.bench)
