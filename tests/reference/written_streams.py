"""Streams written as one line of text, and matches read back the same way, so that tests can be read at a glance.

stream("a1 b2:x=3 b2'")   an A at time 1, two concurrent B at time 2, the first with x = 3
matches(...)              {"a1 b2", "a1 b2'"}; a Kleene group is joined with +, a missing event is -
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

import cepheid
from cepheid.engine import reference
from cepheid.engine.data.matches import NEVER, Matches
from cepheid.engine.data.table import EventTable, ordered
from cepheid.engine.find import BEGINNING
from cepheid.language.schema import Schema
from cepheid.plan.physical import Plan

_TOKEN = re.compile(r"(?P<name>(?P<type>[A-Za-z]+)(?P<time>-?\d+)(?P<mark>[^:@\[]*))(\[(?P<low>\d+),(?P<high>\d+)\])?")


def stream(text: str, **columns: Any) -> pa.Table:
    """A table from tokens such as `a1`, `b2:x=3,id=NULL` or, for imprecise time, `c2[3,5]`."""
    rows = []
    for token in text.split():
        name, _, values = token.partition(":")
        found = _TOKEN.fullmatch(name)
        assert found, f"no event: {token}"
        row: dict[str, Any] = {"name": found["name"], "ts": int(found["time"]), "type": found["type"].upper()}
        if found["low"] is not None:
            row |= {"lower": int(found["low"]), "upper": int(found["high"])}
        for pair in filter(None, values.split(",")):
            key, _, value = pair.partition("=")
            row[key] = _value(value)
        rows.append(row)
    names = list(dict.fromkeys(key for row in rows for key in row)) or ["name", "ts", "type"]
    kinds: dict[str, Any] = {"name": pa.string(), "ts": pa.int64(), "type": pa.string()}
    table = pa.table({name: pa.array([row.get(name) for row in rows], kinds.get(name)) for name in names})
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    return table


def _value(text: str) -> Any:
    if text == "NULL":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def matches(events: pa.Table, query: str, **options: Any) -> set[str]:
    """The matches as text; no match may come twice."""
    found = cepheid.match(events, query, engine="reference", **options).to_pylist()
    columns = [name for name in found[0] if found and name not in RESULT] if found else []
    shown = [" ".join(_shown(row[name]) for name in columns) for row in found]
    assert len(set(shown)) == len(shown)
    return set(shown)


ROLES = ("type", "tiebreak", "lower", "upper", "time_unit", "lacks")
RESULT = ("match_start", "match_end", "probability", "confidence", "earliest", "latest")


def by_match(events: pa.Table, query: str, column: str = "probability", **options: Any) -> dict[str, Any]:
    """A result column for each match."""
    found = cepheid.match(events, query, engine="reference", **options).to_pylist()
    return {" ".join(_shown(value) for name, value in row.items() if name not in RESULT): row[column] for row in found}


def _shown(value: Any) -> str:
    if value is None:
        return "-"
    return "+".join(each["name"] for each in value) if isinstance(value, list) else value["name"]


def planned(events: pa.Table, query: str, **options: Any) -> tuple[Plan, EventTable]:
    """A plan for the reference engine and the events in order, to call `find` with."""
    roles = {name: options.pop(name) for name in ROLES if name in options}
    schema = Schema.from_arrow(events.schema, **roles)
    model, scoring = options.pop("model", None), options.pop("scoring", "exact")
    bound = cepheid.query(query).bind(schema)
    return Plan(bound, "reference", model=model, scoring=scoring, options=options), ordered(events, schema)


def found_between(plan: Plan, events: EventTable, after: int = BEGINNING, until: int = NEVER, **more: Any) -> Matches:
    """What the reference engine's `find` returns for one interval."""
    return reference.find(plan, events, after, until, **more)


def judged(events: pa.Table, query: str, **options: Any) -> set[str]:
    """The matches as text, straight from the reference engine."""
    plan, ready = planned(events, query, **options)
    return set(named(ready, found_between(plan, ready)))


def named(events: EventTable, found: Matches) -> list[str]:
    """The matches as text, from row numbers."""
    names = events.table.column("name").to_pylist()
    return [" ".join("+".join(names[row] for row in group) or "-" for group in groups) for groups in found.groups()]
