"""UNTIL as a condition between two events of a group: `B+ b[] UNTIL b.x > 3`.

A group takes no event at or after the first one, of any type, that comes after b[1] and passes the condition. Which
instant that is depends on b[1] alone, so it is a column: for each event, the instant of the first later event of its
partition that passes. Then UNTIL says that b[i] comes before what b[1] has there, a condition like any other, which
every engine for groups tests when an event is taken, under every strategy.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.keys import codes, combined
from cepheid.engine.data.matches import NEVER
from cepheid.engine.data.table import EventTable
from cepheid.engine.values.columnwise import condition, lacking_by_type
from cepheid.engine.values.plain import columns_of
from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery
from cepheid.language.free_names import free_name
from cepheid.language.kept import kept_with_query
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan


def with_endings(plan: Plan, events: EventTable) -> tuple[Plan, EventTable]:
    """The plan with UNTIL as conditions on columns, and the events with these columns."""
    bound = plan.bound
    if not bound.untils:
        return plan, events
    table = events.table.append_column(_instant(bound), pa.array(events.instant))
    for variable, ending in bound.untils:
        table = table.append_column(_column(bound, variable), pa.array(_endings(bound, ending, events)))
    compared = replace(plan.match, bound=_compared(bound))
    return replace(plan, match=compared), EventTable(table, events.time, events.instant)


def _instant(bound: BoundQuery) -> str:
    return free_name("instant, for UNTIL", bound.schema.names)


def _column(bound: BoundQuery, variable: str) -> str:
    return free_name(f"end of {variable}, for UNTIL", bound.schema.names)


@kept_with_query
def _compared(bound: BoundQuery) -> BoundQuery:
    """The query with UNTIL as conditions on columns; the same object for the same query, since programs hang on it."""
    tests: list[s.Expression] = []
    columns = [*bound.schema.columns, (_instant(bound), DataType.INT)]
    for variable, _ in bound.untils:
        here = s.Attribute(s.Reference(variable, s.Element.CURRENT), _instant(bound))
        end = s.Attribute(s.Reference(variable, s.Element.FIRST), _column(bound, variable))
        tests.append(s.Comparison("<", here, end))
        columns.append((_column(bound, variable), DataType.INT))
    where = bound.where
    conjuncts = (*bound.conjuncts, *(place_conjunct(test, list(bound.positives)) for test in tests))
    components = tuple(replace(component, until=None) for component in bound.components)
    asked = bound.asking(components=components, where=s.And((*([where] if where else []), *tests)))
    return replace(asked, schema=replace(bound.schema, columns=tuple(columns)), conjuncts=conjuncts, untils=())


def _endings(bound: BoundQuery, ending: s.Expression, events: EventTable) -> Int64s:
    """For each event the instant of the first later one of its partition that passes a condition, or NEVER."""
    table = events.table
    passed = condition(ending, columns_of(table), False, lacking_by_type(table, bound.schema))
    if isinstance(passed, pa.Scalar):
        passes = np.full(len(events), bool(passed.as_py()))
    else:
        passes = passed.to_numpy(zero_copy_only=False)
    # NULL is a value of its own here: a partition that no match is in.
    parts = [codes(table.column(name)) for name in bound.equivalence]
    of_part = combined(parts, len(events))
    width = int(events.instant[-1]) + 2 if len(events) else 1
    places = of_part * width + events.instant
    enders = np.sort(places[passes])
    found = np.searchsorted(enders, places, side="right")
    ends = np.full(len(events), NEVER, np.int64)
    known = found < len(enders)
    known[known] = enders[found[known]] // width == of_part[known]
    ends[known] = enders[found[known]] % width
    return ends
