"""Writes docs/errors.md from the error table: `PYTHONPATH=tests .venv/bin/python -m language.error_page`."""

from __future__ import annotations

from pathlib import Path

from language.error_table.clauses import PROBABILITIES, RETURN_AND_OUTPUT, TOTALS, WINDOWS
from language.error_table.conditions import CONDITIONS, EVENT_SELECTION_STRATEGIES, KLEENE_PLUS_AND_AGGREGATES
from language.error_table.data import NAMES_AND_TYPES_OF_THE_DATA
from language.error_table.functions import DEFINITIONS_AND_FUNCTIONS
from language.error_table.kinds import COLUMNS, TYPES, Example, Kind, Section
from language.error_table.python import PATTERNS_BUILT_IN_PYTHON
from language.error_table.reading import READING_THE_TEXT, THE_PATTERN
from language.error_table.row_patterns import ROW_PATTERNS

PAGE = Path(__file__).parent.parent.parent / "docs" / "errors.md"
COMMAND = "PYTHONPATH=tests .venv/bin/python -m language.error_page"
SECTIONS = (
    READING_THE_TEXT,
    THE_PATTERN,
    CONDITIONS,
    DEFINITIONS_AND_FUNCTIONS,
    EVENT_SELECTION_STRATEGIES,
    KLEENE_PLUS_AND_AGGREGATES,
    WINDOWS,
    PROBABILITIES,
    RETURN_AND_OUTPUT,
    TOTALS,
    NAMES_AND_TYPES_OF_THE_DATA,
    PATTERNS_BUILT_IN_PYTHON,
    ROW_PATTERNS,
)


def page() -> str:
    """The whole page."""
    columns = ", ".join(f"`{name}` ({kind.value})" for name, kind in COLUMNS.items())
    types = ", ".join(sorted(TYPES))
    head = f"""# Errors in queries

<!-- Written by {COMMAND} from the table that the tests check. Do not edit. -->

Every error in a query is a `cepheid.QueryError`. It has a `message`, often a `hint`, and, where the query is a text,
the place: `line`, `column`, `end_column`, and the offsets `start` and `end`. Its `code` is one of the names below and
stays the same when messages are reworded.

The examples run over a stream with the columns {columns},
and the event types {types}.
"""
    return "\n".join([head, *(_section(section) for section in SECTIONS)])


def _section(section: Section) -> str:
    return "\n".join([f"## {section.title}\n", *(_kind(kind) for kind in section.kinds)])


def _kind(kind: Kind) -> str:
    return "\n".join([f"### `{kind.code}`\n", f"{kind.why}\n", *(_example(example) for example in kind.examples)])


def _example(example: Example) -> str:
    lines = []
    given = dict(example.options)
    if "parameters" in given:
        lines.append(f"With `parameters={given['parameters']!r}`:\n")
    if given.get("clock") == "integer":
        lines.append("With whole numbers in `ts`:\n")
    if "dialect" in given:
        lines.append(f"With `dialect={given['dialect']!r}`:\n")
    if "type" in given:
        lines.append("With `type=None`, since there is no column for it:\n")
    block = [] if example.carets is not None else [example.shown or example.source, ""]
    if example.is_python:
        block = [f">>> {example.source}"]
    return "\n".join([*lines, "```text", *block, example.rendered, "```", ""])


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
