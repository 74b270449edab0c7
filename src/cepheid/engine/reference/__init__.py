"""The judge: the meaning of queries as slow, plain Python that enumerates. Every fast engine must agree with it."""

from __future__ import annotations

from cepheid.engine.events import EventTable
from cepheid.engine.matches import Matches, from_groups
from cepheid.engine.reference.precise import Stream, find_all
from cepheid.engine.vectorised import value_column
from cepheid.errors import LimitError
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

MAX_EVENTS = 5_000  # beyond this, enumeration in Python is not a judgement but a wait


def find(plan: Plan, events: EventTable, after: int, until: int) -> Matches:
    """All matches of the plan's query with after < completion <= until, by enumeration."""
    if len(events) > MAX_EVENTS:
        raise LimitError(f"the reference engine enumerates; it takes at most {MAX_EVENTS} events, not {len(events)}")
    bound = plan.bound
    found = [match for match in find_all(bound, stream_of(plan, events)) if after < match.completion <= until]
    kleene = [component.kleene for component in bound.positives]
    return from_groups([match.groups for match in found], [match.completion for match in found], kleene)


def stream_of(plan: Plan, events: EventTable) -> Stream:
    """The events as plain Python rows, with values as predicates see them."""
    schema = plan.bound.schema
    columns = {
        name: (value_column(events.table.column(name)) if kind is not DataType.OTHER else events.table.column(name))
        for name, kind in schema.columns
    }
    lists = {name: column.to_pylist() for name, column in columns.items()}
    rows = [{name: values[row] for name, values in lists.items()} for row in range(len(events))]
    return Stream(rows, events.time.tolist(), events.instant.tolist())
