"""What the page asks, answered as plain data: errors, completions, matches, plans, diagnoses."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.api import sase_query
from cepheid.console.completion import Names, complete
from cepheid.console.workspace import OpenTable, Workspace
from cepheid.diagnose.errors import errors_of
from cepheid.diagnose.story import closest_lines, sections, verdict
from cepheid.draw.automaton import conditions_of
from cepheid.draw.text import event_parts, events_of, is_event, value_text
from cepheid.errors import CepheidError, QueryError
from cepheid.language import syntax as s
from cepheid.report.facts import facts
from cepheid.report.matches import Shown, counts_over_time, timeline_rows

PAGE = 40  # matches that the timeline draws at a time
MOST_MATCHES = 1_000_000  # a page is no place for more


def check(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """The errors of a text with their places, and the automaton where it can be drawn."""
    text = str(asked.get("text") or "")
    table = workspace.table(asked["table"]) if asked.get("table") else None
    if not text.strip():
        return {"errors": [], "svg": None}
    try:
        given = None if table is None else table.roles.arguments()
        errors = list(errors_of(text, None if table is None else table.events, given))
    except CepheidError as error:
        return {"errors": [error_of(error)], "svg": None}
    return {"errors": [error_of(error) for error in errors], "svg": _drawing(text)}


def _drawing(text: str) -> str | None:
    try:
        return sase_query(text).svg()
    except CepheidError:
        return None


def error_of(error: CepheidError) -> dict[str, Any]:
    """An error with its place in the text, where it has one, and as the lines with carets that a terminal shows."""
    found: dict[str, Any] = {"message": error.message, "hint": error.hint, "shown": str(error)}
    if isinstance(error, QueryError):
        end = error.end if error.end is not None else None if error.start is None else error.start + 1
        found |= {"code": error.code, "start": error.start, "end": end, "line": error.line, "column": error.column}
    return found


def completions(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """What can be written at a position."""
    text, position = str(asked.get("text") or ""), int(asked.get("position") or 0)
    names = workspace.table(asked["table"]).names() if asked.get("table") else Names()
    return asdict(complete(text, position, names))


def run(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Runs a query on a table: how many matches, the first of them, and how they spread over time."""
    table = workspace.table(asked.get("table"))
    query = sase_query(str(asked.get("text") or ""))
    begin = time.perf_counter()
    given = {**table.roles.arguments(), **workspace.given}
    result = query.match(table.events, max_matches=MOST_MATCHES, truncate=True, **given)
    seconds = time.perf_counter() - begin
    shown = shown_of(query, result, table)
    number = workspace.keep(shown)
    known = facts(result)
    return {
        "result": number,
        "matches": result.num_rows,
        "truncated": bool(known.get("truncated")),
        "engine": known.get("engine"),
        "events": table.events.num_rows,
        "seconds": seconds,
        "timestamps": shown.is_timestamp,
        "over_time": counts_over_time(shown) if result.num_rows else [],
        **matches_page(shown, 0),
    }


def shown_of(query: cepheid.Query, result: pa.Table, table: OpenTable) -> Shown:
    """A result with what its columns mean."""
    roles = table.roles
    keys = tuple(
        name
        for part in _equivalences(query)
        for name, _ in part.tests
        if name in table.events.column_names and name not in (roles.time, roles.type)
    )
    return Shown(result, roles.time, roles.type, roles.lower, roles.upper, tuple(dict.fromkeys(keys)))


def _equivalences(query: cepheid.Query) -> list[s.Equivalence]:
    return [part for part in conditions_of(query.syntax) if isinstance(part, s.Equivalence)]


def more(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Further matches of a result."""
    return matches_page(workspace.result(int(asked.get("result") or 0)), max(0, int(asked.get("first") or 0)))


def matches_page(shown: Shown, first: int) -> dict[str, Any]:
    """Some matches from the `first` on, as bars and dots of a timeline and as lines of a table."""
    part = shown.result.slice(first, PAGE)
    some = Shown(part, shown.time, shown.type, shown.lower, shown.upper, shown.keys)
    bars, marks = timeline_rows(some) if part.num_rows else ([], [])
    columns = [field.name for field in part.schema]
    rows = [[_cell(row[field.name], field, shown) for field in part.schema] for row in part.to_pylist()]
    labels = [value_text(row) for row in part.column("match_start").to_pylist()] if part.num_rows else []
    return {"first": first, "bars": bars, "marks": marks, "columns": columns, "rows": rows, "starts": labels}


def _cell(value: Any, column: pa.Field, shown: Shown) -> str:
    if not is_event(column.type):
        return f"{value:.3f}" if column.name in ("probability", "confidence") else value_text(value)
    events = events_of({"": value}, [""])
    texts = [
        " ".join(f"{name}={text}" if name else text for name, text in event_parts(event, shown.time, {shown.type}))
        for event in events
    ]
    if len(texts) > 4:
        texts = [*texts[:2], f"… {len(texts) - 3} more …", texts[-1]]
    return "\n".join(texts) if texts else "○ not seen"


def explain(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """The plan of a query over a table, as text."""
    table = workspace.table(asked.get("table"))
    query = sase_query(str(asked.get("text") or ""))
    return {"plan": str(query.explain(table.events, **table.roles.arguments(), **workspace.given))}


def why(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Why a query finds nothing or too little in a table."""
    table = workspace.table(asked.get("table"))
    given = {**table.roles.arguments(), **workspace.given}
    found = cepheid.why(table.events, str(asked.get("text") or ""), **given)
    closest = found.closest
    return {
        "verdict": verdict(found),
        "hints": [asdict(hint) for hint in found.hints],
        "closest": None
        if closest is None
        else {"events": closest_lines(closest), "stopped_by": closest.stopped_by, "detail": closest.detail},
        "sections": [asdict(section) for section in sections(found)],
    }
