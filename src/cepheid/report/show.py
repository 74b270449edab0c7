"""`cepheid.show`: the matches of a local result for people, in a notebook or a terminal."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import Any

import pyarrow as pa

from cepheid.draw.text import counted, event_parts, is_event, value_text, with_durations
from cepheid.errors import DataError
from cepheid.report.facts import facts
from cepheid.report.matches import Shown
from cepheid.report.report import matches_html

_STYLE = (
    "<style>.cepheid .scroll { overflow-x: auto } .cepheid td { text-align: left; vertical-align: top; "
    "white-space: nowrap } .cepheid .unseen { opacity: .6; font-style: italic }</style>"
)


@dataclass(frozen=True)
class MatchView:
    """A result that shows its first matches as a table; the result itself is unchanged in `shown.result`."""

    shown: Shown
    limit: int = 20

    def _repr_html_(self) -> str:
        return f'<div class="cepheid">{_STYLE}{matches_html(self.shown, self.limit)}<p>{escape(self._rest())}</p></div>'

    def __repr__(self) -> str:
        lines = []
        result = with_durations(self.shown.result.slice(0, self.limit))
        for row in result.to_pylist():
            cells = [self._cell(row[field.name], field) for field in result.schema]
            lines.append("   ".join(cells))
        return "\n".join(["   ".join(self.shown.result.column_names), *lines, self._rest()])

    def _cell(self, value: Any, column: pa.Field) -> str:
        if not is_event(column.type):
            return value_text(value)
        events = value if isinstance(value, list) else [] if value is None else [value]
        parts = [event_parts(event, self.shown.time, {self.shown.type}) for event in events]
        texts = [" ".join(f"{name}={text}" if name else text for name, text in event) for event in parts]
        return "{" + "; ".join(texts) + "}" if texts else "○ not seen"

    def _rest(self) -> str:
        found = self.shown.result.num_rows
        reported = counted(found, self.shown.noun)
        return reported if found <= self.limit else f"{reported}, the first {self.limit} of them shown"


def show(result: object, *, limit: int = 20, time: str = "ts", type: str | None = "type") -> MatchView:
    """A view of a result of `match` that notebooks draw as a table, unseen events marked.

    `time` and `type` are the names of these columns, as they were passed to `match`.

    >>> import cepheid
    >>> events = pa.table({"ts": [1, 2], "type": ["A", "B"], "id": [7, 7]})
    >>> cepheid.show(cepheid.match(events, "PATTERN SEQ(A a, B b) WHERE [id] WITHIN 5"))
    match_start   match_end   a   b
    1   2   {1 id=7}   {2 id=7}
    1 match
    """
    from cepheid.runners.tables import as_local

    local = as_local(result)
    if local is None:
        hint = "bring a part of it here first, for example with .limit(100).toArrow()"
        raise DataError(f"show() takes a pyarrow, pandas or polars table, not a {_kind(result)}", hint=hint)
    shown = _with_facts(local.arrow, result)
    if {time, type} <= set(shown.column_names) and "match_start" not in shown.column_names and not facts(shown):
        hint = "show(match(events, query))"
        raise DataError(f"this table is not a result of match(): it has events, in '{time}' and '{type}'", hint=hint)
    return MatchView(Shown(_events_as_such(shown), time, type), limit)


def _with_facts(table: pa.Table, result: object) -> pa.Table:
    """The table with what a pandas result carries about its making."""
    known = getattr(result, "attrs", {}).get("cepheid")
    return table if known is None else table.replace_schema_metadata({"cepheid": json.dumps(known)})


def _events_as_such(result: pa.Table) -> pa.Table:
    """pandas forgets what a column holds of which no value is there: beside events it is an event that nobody saw."""
    if not any(is_event(field.type) for field in result.schema):
        return result
    for index, field in enumerate(result.schema):
        if pa.types.is_null(field.type):
            event = pa.struct([pa.field("ts", pa.int64())])
            result = result.set_column(index, field.name, pa.nulls(result.num_rows, event))
    return result


def _kind(value: object) -> str:
    return f"{value.__class__.__module__.partition('.')[0]} {value.__class__.__name__}"
