"""What the page asks, answered as plain data: errors, completions, matches, plans, diagnoses."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import cepheid
from cepheid.api import sase_query
from cepheid.console.completion import Names, complete
from cepheid.console.words import in_words_of_the_page
from cepheid.console.workspace import OpenTable, Workspace
from cepheid.diagnose.errors import errors_of
from cepheid.diagnose.story import closest_lines, sections, verdict
from cepheid.draw.text import counted, event_parts, events_of, is_event, value_text, with_durations
from cepheid.engine.data.table import times_of
from cepheid.errors import CepheidError, QueryError
from cepheid.pattern_query import LanguageQuery
from cepheid.report.facts import facts
from cepheid.report.matches import Shown, counts_over_time, timeline_rows

PAGE = 40  # matches that the timeline draws at a time
MOST_MATCHES = 1_000_000  # a page is no place for more
OPEN = 200  # partial matches that are shown, the most probable ones
_SAMPLE = 10_000  # events by which an example is chosen


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
        return cepheid.query(text).svg()
    except CepheidError:
        return None


def error_of(error: CepheidError) -> dict[str, object]:
    """An error in the words of the page, with its place in the text, where it has one."""
    message, hint = in_words_of_the_page(error.message), error.hint and in_words_of_the_page(error.hint)
    shown = message if isinstance(error, QueryError) else in_words_of_the_page(str(error))
    found: dict[str, Any] = {"message": message, "hint": hint, "shown": shown}
    if isinstance(error, QueryError):
        end = error.end if error.end is not None else None if error.start is None else error.start + 1
        found |= {"code": error.code, "start": error.start, "end": end, "line": error.line, "column": error.column}
    return found


def example_of(table: OpenTable) -> str:
    """A query that runs over a table, to begin with: two of its types, and a key if one is likely.

    Where columns do not tell, it is a pattern of any two events.
    """
    names, roles = table.names(), table.roles
    common = _most_common(table)
    first, second = (common * 2)[:2] if common else ("", "")
    pattern = f"SEQ({_quoted(first)} a, {_quoted(second)} b)" if common else "SEQ(a, b)"
    keys = [name for name in names.columns if name not in (roles.time, roles.type) and _may_be_key(table, name)]
    where = f"\nWHERE [{_quoted(keys[0])}]" if keys else ""
    clock = table.events.schema.field(roles.time).type if roles.time in table.events.column_names else pa.int64()
    known = pa.types.is_temporal(clock) or roles.time_unit is not None
    return f"PATTERN {pattern}{where}\nWITHIN {'1 hour' if known else '100'}"


def _most_common(table: OpenTable) -> list[str]:
    if table.roles.type is None:
        return []
    counts = pc.value_counts(table.events.column(table.roles.type).slice(0, _SAMPLE)).to_pylist()
    known = [each for each in counts if isinstance(each["values"], str)]
    return [str(each["values"]) for each in sorted(known, key=lambda each: -int(each["counts"]))]


def _may_be_key(table: OpenTable, name: str) -> bool:
    """Does it hold a few events for each of several values?"""
    column = table.events.column(name).slice(0, _SAMPLE)
    if not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)) or not len(column):
        return False
    different = int(pc.count_distinct(column).as_py())
    return 1 < different <= len(column) / 2


def _quoted(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else f"`{name}`"


def completions(workspace: Workspace, asked: dict[str, Any]) -> dict[str, object]:
    """What can be written at a position."""
    text, position = str(asked.get("text") or ""), int(asked.get("position") or 0)
    names = workspace.table(asked["table"]).names() if asked.get("table") else Names()
    return asdict(complete(text, position, names))


def run(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Runs a query on a table: how many matches, the first of them, and how they spread over time."""
    table = workspace.table(asked.get("table"))
    query: LanguageQuery = cepheid.query(str(asked.get("text") or ""))
    begin = time.perf_counter()
    more = {"max_matches": MOST_MATCHES, "truncate": True}
    result = query.match(table.events, **_given(workspace, table, query, more))
    seconds = time.perf_counter() - begin
    shown = shown_of(query, result, table)
    number = workspace.keep(shown)
    known = facts(result)
    return {
        "result": number,
        "matches": result.num_rows,
        "found": counted(result.num_rows, shown.noun),
        "ties": known.get("ties") and in_words_of_the_page(known["ties"]),
        "timed": shown.is_timed,
        "truncated": bool(known.get("truncated")),
        "engine": known.get("engine"),
        "events": table.events.num_rows,
        "seconds": seconds,
        "timestamps": shown.is_timestamp,
        "over_time": counts_over_time(shown) if result.num_rows and shown.is_timed else [],
        **matches_page(shown, 0),
    }


def shown_of(query: LanguageQuery, result: pa.Table, table: OpenTable) -> Shown:
    """A result with what its columns mean."""
    roles = table.roles
    own = (roles.time, roles.type)
    keys = tuple(name for name in query.keys if name in table.events.column_names and name not in own)
    return Shown(result, roles.time, roles.type, roles.lower, roles.upper, keys, query.unit)


def _given(
    workspace: Workspace, table: OpenTable, query: LanguageQuery, more: Mapping[str, object] | None = None
) -> dict[str, Any]:
    """Of the roles of columns and the options of the workspace those that a query's language has."""
    every = {**table.roles.arguments(), **workspace.given, **(more or {})}
    return {name: value for name, value in every.items() if query.takes(name, value)}


def more(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Further matches of a result."""
    return matches_page(workspace.result(int(asked.get("result") or 0)), max(0, int(asked.get("first") or 0)))


def matches_page(shown: Shown, first: int) -> dict[str, Any]:
    """Some matches from the `first` on, as bars and dots of a timeline and as lines of a table."""
    part = shown.result.slice(first, PAGE)
    drawn = part.num_rows > 0 and shown.is_timed
    bars, marks = timeline_rows(replace(shown, result=part)) if drawn else ([], [])
    columns = [field.name for field in part.schema]
    plain = with_durations(part)
    rows = [[_cell(row[field.name], field, shown) for field in plain.schema] for row in plain.to_pylist()]
    labels = [value_text(row) for row in part.column("match_start").to_pylist()] if drawn else []
    return {"first": first, "bars": bars, "marks": marks, "columns": columns, "rows": rows, "starts": labels}


def _cell(value: object, column: pa.Field, shown: Shown) -> str:
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


def forecast(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """The open partial matches at the end of a table: how likely each is to complete, and when.

    Where on the line of times a completion lies counts from the newest event (0) to the latest one shown (1).
    """
    table = workspace.table(asked.get("table"))
    query = sase_query(str(asked.get("text") or ""))
    found = cepheid.forecast(table.events, query, **{**table.roles.arguments(), **workspace.given})
    shown = shown_of(query, found, table)
    part = found.sort_by([("probability", "descending")]).slice(0, OPEN)
    now, low, middle, high = (
        times_of(part, name).tolist() if part.num_rows else []
        for name in ("forecast_at", "earliest", "expected", "latest")
    )
    length = max([1, *(end - at for end, at in zip(high, now, strict=True))])
    rows = [
        {
            "probability": row["probability"],
            "waiting_for": row["waiting_for"],
            "held": [
                _cell(row[field.name], field, shown)
                for field in part.schema
                if row[field.name] and is_event(field.type)
            ],
            "expected": value_text(row["expected"]),
            "between": f"{value_text(row['earliest'])} and {value_text(row['latest'])}",
            "line": [(each[place] - now[place]) / length for each in (low, middle, high)],
        }
        for place, row in enumerate(part.to_pylist())
    ]
    at = value_text(part.column("forecast_at")[0].as_py()) if part.num_rows else None
    return {"open": found.num_rows, "at": at, "rows": rows}


def explain(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """The plan of a query over a table, as text."""
    table = workspace.table(asked.get("table"))
    query: LanguageQuery = cepheid.query(str(asked.get("text") or ""))
    return {"plan": str(query.explain(table.events, **_given(workspace, table, query)))}


def why(workspace: Workspace, asked: dict[str, Any]) -> dict[str, Any]:
    """Why a query finds nothing or too little in a table."""
    table = workspace.table(asked.get("table"))
    query: LanguageQuery = cepheid.query(str(asked.get("text") or ""))
    found = query.why(table.events, **_given(workspace, table, query))
    closest = found.closest
    return {
        "verdict": verdict(found),
        "hints": [{**asdict(hint), "text": in_words_of_the_page(hint.text)} for hint in found.hints],
        "closest": None
        if closest is None
        else {"events": closest_lines(closest), "stopped_by": closest.stopped_by, "detail": closest.detail},
        "sections": [asdict(section) for section in sections(found)],
    }
