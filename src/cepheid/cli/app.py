"""All commands in one place, each loaded when it is called: a call waits for no module that it does not need."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import cepheid
from cepheid.cli.messages import out

COMMANDS = (
    "run",
    "sql",
    "check",
    "explain",
    "why",
    "fit",
    "forecast",
    "report",
    "console",
    "simulate",
    "tutorial",
    "demo",
    "warm",
    "bench",
)
OTHER_WORDS = {"match": "run", "query": "run", "find": "run", "validate": "check", "plan": "explain", "train": "fit"}
_SETTINGS = {"bench": {"allow_extra_args": True, "ignore_unknown_options": True}}


class _Commands(TyperGroup):
    """The commands by name: `cepheid.cli.NAME` holds a function NAME, or an app of its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # their names, for "Did you mean ...?"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of some arguments; a word that looks like none of ours may still mean one, as `match` does."""
        meant = OTHER_WORDS.get(args[0]) if args else None
        if meant is not None:
            ctx.fail(f"No such command '{args[0]}'. Did you mean '{meant}'?")
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: object) -> list[str]:
        """In the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: object, cmd_name: str) -> Any:
        """Loads one."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"cepheid.cli.{cmd_name}")
        one = getattr(module, "app", None)
        if one is None:
            from cepheid.cli.groups import with_options

            one = typer.Typer(rich_markup_mode="markdown", add_completion=False)
            one.command(cmd_name, context_settings=_SETTINGS.get(cmd_name))(with_options(getattr(module, cmd_name)))
        command = typer.main.get_command(one)
        command.name = cmd_name
        return command


app = typer.Typer(
    cls=_Commands,
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
