"""`cepheid sql`: SELECT statements with MATCH_RECOGNIZE over files, and a prompt for them."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.table import Table

from cepheid.cli import options as o
from cepheid.cli.messages import note, out, print_user_error
from cepheid.cli.outputs import check_outputs
from cepheid.cli.query_argument import query_text
from cepheid.cli.result_files import check_output, flat, without_formulas, write_json_lines, write_table
from cepheid.cli.run import Shown
from cepheid.cli.spark_session import LOCAL, in_our_words, spark_session
from cepheid.cli.spark_tables import read_table
from cepheid.cli.stages import Stages
from cepheid.errors import CepheidError
from cepheid.files.input_files import find_files
from cepheid.language.match_recognize.dialects import known_dialect

_Statement = Annotated[str | None, typer.Argument(metavar="STATEMENT", help="A SELECT, a file, or - for stdin.")]
_Tables = Annotated[
    list[str] | None,
    typer.Option("--table", "-t", metavar="NAME=PATH", help="A table of the statement. May be repeated."),
]
_Dialect = Annotated[str, typer.Option(metavar="NAME", help="The SQL dialect of the statement.")]
_Limit = Annotated[int, typer.Option(metavar="N", help="Number of rows to print.", min=0)]
_Shown = Annotated[Shown | None, typer.Option(help="Output format without --output.")]
_Master = Annotated[str, typer.Option(metavar="URL", help="Where Spark runs: local[*], spark://host:7077, ...")]
_Conf = Annotated[list[str] | None, typer.Option("--conf", metavar="NAME=VALUE", help="A Spark setting.")]
_Unsafe = Annotated[
    bool, typer.Option("--unsafe-functions", help="Let clauses call every function of Spark, not only pure ones.")
]

HISTORY = 1000  # statements' lines that the prompt remembers
_WORDS: tuple[str, ...] = (
    "SELECT",
    "FROM",
    "MATCH_RECOGNIZE",
    "PARTITION BY",
    "ORDER BY",
    "MEASURES",
    "ONE ROW PER MATCH",
)
_WORDS += ("ALL ROWS PER MATCH", "AFTER MATCH SKIP PAST LAST ROW", "PATTERN", "WITHIN", "SUBSET", "DEFINE")
_WORDS += ("PREV", "NEXT", "FIRST", "LAST", "CLASSIFIER()", "MATCH_NUMBER()")


def sql(
    statement: _Statement = None,
    table: _Tables = None,
    dialect: _Dialect = "spark",
    output: o.OutputPath = None,
    overwrite: o.Overwrite = False,
    escape_formulas: o.EscapeFormulas = False,
    null: o.NullTexts = None,
    show: _Shown = None,
    limit: _Limit = 20,
    master: _Master = LOCAL,
    conf: _Conf = None,
    unsafe_functions: _Unsafe = False,
) -> None:
    """Run a SELECT with MATCH_RECOGNIZE over files. Without a statement, open a prompt.

    Example:

        cepheid sql "SELECT * FROM ticks MATCH_RECOGNIZE (ORDER BY ts PATTERN (A B+) DEFINE B AS price < PREV(price))"
        -t ticks=ticks.parquet
    """
    dialect = known_dialect(dialect)
    named = [named_files(each) for each in table or ()]
    if output is not None:
        check_output(output)
        check_outputs({"--output": output}, [path for _, path in named], overwrite=overwrite)
    text = None if statement is None else query_text(statement)
    with spark_session(master, list(conf or ()), Stages()) as session:
        for name, path in named:
            read_table(session, find_files([path], None, null or ()), "ts", None).createOrReplaceTempView(name)

        def run(wanted: str) -> None:
            from cepheid.runners.sql.statement import query

            found = query(session, wanted, dialect, unsafe_functions=unsafe_functions)
            rows = found.toArrow()
            as_csv = show is Shown.csv if output is None else output.suffix.lower() == ".csv"
            rows = without_formulas(flat(rows)) if escape_formulas and as_csv else rows
            print_rows(rows, output, show, limit, overwrite)

        if text is not None:
            run(text)
        else:
            prompt(session, [name for name, _ in named], run)


def named_files(given: str) -> tuple[str, str]:
    """The name and the path of a table.

    >>> named_files("ticks=data/ticks.parquet")
    ('ticks', 'data/ticks.parquet')
    """
    name, found, path = given.partition("=")
    if not found or not name.isidentifier() or not path:
        raise CepheidError(f"--table {given} has no table name", hint="write --table name=path")
    return name, path


def print_rows(table: pa.Table, output: Path | None, show: Shown | None, limit: int, overwrite: bool = False) -> None:
    """The result to a file, or to the terminal."""
    if output is not None:
        write_table(table, output, overwrite=overwrite)
        note(f"{table.num_rows:,} rows -> {output}")
        return
    show = show or (Shown.table if sys.stdout.isatty() else Shown.jsonl)
    if show is Shown.jsonl:
        write_json_lines(table)
    elif show is Shown.csv:
        out.print(flat(table).to_pandas().to_csv(index=False), end="")
    else:
        shown = Table(*table.column_names)
        for row in table.slice(0, limit).to_pylist():
            shown.add_row(*("" if value is None else str(value) for value in row.values()))
        out.print(shown)
        if table.num_rows > limit:
            note(f"{table.num_rows - limit:,} more rows; --limit shows more, --output keeps all")


def prompt(session: object, tables: Sequence[str], run: Callable[[str], None]) -> None:
    """Reads statements that end with a semicolon until there are no more."""
    _edit_lines(session, tables)
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)  # what it logs is said as a sentence below
    note(f"tables: {', '.join(tables) or 'none; give them with --table name=path'}. End a statement with ; or quit.")
    lines: list[str] = []
    while True:
        try:
            line = input("sql> " if not lines else "  -> ")
        except EOFError:
            return
        except KeyboardInterrupt:
            lines = []
            continue
        if not lines and line.strip().lower().rstrip(";") in ("quit", "exit", r"\q"):
            return
        lines.append(line)
        if line.rstrip().endswith(";"):
            text, lines = "\n".join(lines), []
            try:
                run(text)
            except CepheidError as error:
                print_user_error(error)
            except Exception as error:  # Spark's own complaints: said in a sentence, and the prompt goes on
                print_user_error(in_our_words(error))


def _edit_lines(session: object, tables: Sequence[str]) -> None:
    """History over sessions, and completion of words with the Tab key, where the terminal has it."""
    try:
        import readline
    except ModuleNotFoundError:
        return
    readline.set_completer(completer([*_WORDS, *tables, *_columns(session, tables)]))
    readline.set_completer_delims(" \t\n,;()=<>.")
    readline.parse_and_bind("tab: complete")
    readline.set_history_length(HISTORY)
    path = history_file()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            readline.read_history_file(path)
    except OSError:  # a home that cannot be written to: the prompt works without a history
        return
    atexit.register(readline.write_history_file, path)


def history_file() -> Path:
    """Where statements are kept from one session to the next."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "cepheid" / "sql_history"


def _columns(session: Any, tables: Sequence[str]) -> list[str]:
    return sorted({column for name in tables for column in session.table(name).columns})


def completer(known: Sequence[str]) -> Callable[[str, int], str | None]:
    """What completes the beginning of a word: the first, the second, ... of the words that fit.

    >>> complete = completer(["SELECT", "symbol", "ts"])
    >>> complete("s", 0), complete("s", 1), complete("s", 2)
    ('SELECT', 'symbol', None)
    """

    def complete(beginning: str, state: int) -> str | None:
        fitting = [word for word in known if word.lower().startswith(beginning.lower())]
        return fitting[state] if state < len(fitting) else None

    return complete
