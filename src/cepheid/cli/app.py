"""All commands in one place, each loaded when it is called: a call waits for no module that it does not need."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import cepheid
from cepheid.cli.messages import out

# With the first sentence of their help, which lists them: it takes three times as long to load them all.
COMMANDS = {
    "run": "Find the matches of a query, or of several, in files of events.",
    "sql": "Run a SELECT with MATCH_RECOGNIZE over files. Without a statement, open a prompt.",
    "check": "List all errors of queries, without running them.",
    "explain": "Show the plan of a query: its operators, the engine that runs it, and why.",
    "why": "Explain why a query finds nothing, or too little.",
    "fit": "Learn from past events how often readers miss events, and how long events take to follow each other.",
    "forecast": "List the open partial matches, with their probability to complete and the expected time.",
    "report": "Run a query and write its matches as one HTML page that works offline.",
    "console": "Serve a local web page to write queries, see their errors, run them on tables and streams,"
    " and ask why.",
    "simulate": "Generate a stream with known truth, to try queries on.",
    "tutorial": "Show the first steps: four queries over tables of the package, each with its result.",
    "demo": "Simulate a day in a store, learn how much its readers miss, and find the thefts of the afternoon.",
    "warm": "Compile all engines for this machine in advance, for example when an image is built.",
    "bench": "Run the benchmarks of a source checkout. The installed package does not contain them.",
}
OTHER_WORDS = {"match": "run", "query": "run", "find": "run", "validate": "check", "plan": "explain", "train": "fit"}
_SETTINGS = {"bench": {"allow_extra_args": True, "ignore_unknown_options": True}}


class _Commands(TyperGroup):
    """The commands by name: `cepheid.cli.NAME` holds a function NAME, or an app of its own."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = dict.fromkeys(COMMANDS)  # their names, for "Did you mean ...?"
        self.listed = False  # is the help about to list them?

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help, for which no command is loaded."""
        self.listed = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listed = False

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
        if self.listed:
            return TyperCommand(cmd_name, help=COMMANDS[cmd_name])
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
