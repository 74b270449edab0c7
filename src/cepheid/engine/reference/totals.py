"""Totals over matches (docs/semantics.md): list the matches, group them, add up."""

from __future__ import annotations

from typing import Any

from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable
from cepheid.engine.reference import find, stream_of
from cepheid.engine.reference.values import Evaluator, Row
from cepheid.language.bound import BoundSummary, BoundTotal
from cepheid.language.totals import BUCKET
from cepheid.plan.physical import Plan


def totals(plan: Plan, summary: BoundSummary, events: EventTable, after: int, until: int) -> list[dict[str, Any]]:
    """The rows that SUMMARISE reports, in no order; times are whole numbers here."""
    bound, stream = plan.bound, stream_of(plan, events)
    matches = find(plan, events, after, until)
    names = list(bound.place_of)
    evaluator = Evaluator(frozenset(c.variable for c in bound.components if c.any), bound.schema)
    grouped: dict[tuple[object, ...], list[dict[str, list[Row]]]] = {}
    if not summary.by and summary.every is None:
        grouped[()] = []  # as in SQL: without groups there is one row, whatever it counts
    for groups, completion in zip(matches.groups(), matches.completion.tolist(), strict=True):
        first = next(event for group in groups for event in group)
        key = tuple(stream.rows[first][name] for name in summary.by)
        if summary.every is not None:
            key += (None if completion == NEVER else completion // summary.every * summary.every,)
        chosen = {name: [stream.rows[event] for event in group] for name, group in zip(names, groups, strict=True)}
        grouped.setdefault(key, []).append(chosen)
    columns = [*summary.by, *([BUCKET] if summary.every is not None else [])]
    return [
        {**dict(zip(columns, key, strict=True)), **{t.name: _total(t, found, evaluator) for t in summary.totals}}
        for key, found in grouped.items()
    ]


def _total(total: BoundTotal, found: list[dict[str, list[Row]]], evaluator: Evaluator) -> Any:
    if total.variable is None:
        return float(len(found)) if total.function == "approximate_count" else len(found)
    values: list[Any] = []
    for chosen in found:
        group = chosen[total.variable]
        if total.argument is None:
            values += [True] * len(group)
            continue
        values += [evaluator.value(total.argument, chosen, {total.variable: index}) for index in range(len(group))]
    known = [value for value in values if value is not None]
    match total.function:
        case "count":
            return len(known)
        case _ if not known:
            return None
        case "sum":
            return sum(known)
        case "avg":
            return sum(known) / len(known)
        case "min":
            return min(known)
    return max(known)
