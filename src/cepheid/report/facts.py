"""What a result carries about its making, and what its rows are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa


def facts(result: pa.Table) -> dict[str, Any]:
    """The engine, its counters, and whether the result was cut short.

    >>> facts(pa.table({"match_start": [1]}))
    {}
    """
    kept = (result.schema.metadata or {}).get(b"cepheid")
    found: dict[str, Any] = json.loads(kept) if kept else {}
    return found


def unit_of(query: Any) -> str:
    """What a row of a query's result is: a match, a total (SUMMARISE), or a row of one (MATCH_RECOGNIZE)."""
    if isinstance(query, Mapping):
        units = {unit_of(each) for each in query.values()}
        return units.pop() if len(units) == 1 else "row"
    unit: str = query.unit
    return unit


def unit_of_result(result: pa.Table) -> str:
    """The same, as far as a result itself tells.

    >>> unit_of_result(pa.table({"match_start": [1]})), unit_of_result(pa.table({"n": [1]}))
    ('match', 'row')
    """
    if "match_start" in result.column_names:
        return "match"
    return "total" if facts(result).get("engine") == "totals" else "row"
