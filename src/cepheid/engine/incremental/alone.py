"""Conditions on single events, compiled: which components can an event fill, and which can it begin?"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from cepheid.engine.data.arrays import Int64s
from cepheid.engine.data.candidates import first_conditions
from cepheid.engine.incremental.one_event import HEAD_SIZE, PREDICATE_AT, ROW, columns_at, plain_columns, room_for_one
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import function_at
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.plan.physical import Plan

# The numbers in `head` behind those of one event: the bits of components with conditions on an event, and on an event
# that is the first one of its group.
TESTED, FIRST_TESTED, COMPONENTS = range(HEAD_SIZE, HEAD_SIZE + 3)
FIRSTS = 32  # bits that an event's mask is shifted by, where it is told with the components that it can begin


@kernel
def passing(head: Int64s, mask: int) -> int:
    """The components that an event can fill by conditions on it alone, and those it can be the first event of."""
    columns, predicate = columns_at(head), function_at(head[PREDICATE_AT])
    at, nothing = head[ROW : ROW + 1], columns.flat
    for place in range(head[COMPONENTS]):
        bit = 1 << place
        if mask & head[TESTED] & bit != 0 and not predicate(place, at, at, nothing, columns):
            mask &= ~bit
    begins = mask
    for place in range(head[COMPONENTS]):
        bit = 1 << place
        case = head[COMPONENTS] + place
        if begins & head[FIRST_TESTED] & bit != 0 and not predicate(case, at, at, nothing, columns):
            begins &= ~bit
    return mask << FIRSTS | begins


class Alone:
    """The conditions of a query on single events, compiled."""

    def __init__(self, plan: Plan) -> None:
        bound = plan.bound
        components = [*bound.positives, *(negation.component for negation in bound.negations)]
        own = [tuple(plan.scan.conditions_of(each.variable)) for each in components]
        first = [tuple(first_conditions(bound, each)) for each in bound.positives]
        first += [()] * (len(components) - len(first))
        self.tested = any(own) or any(first)
        self.predicate: Predicate | None = None
        if not self.tested:
            return
        cases = [Case(parts, lambda reference: "0") for parts in (*own, *first)]
        any_variables = frozenset(each.variable for each in components if each.any)
        self.predicate = compile_cases(cases, bound.schema, any_variables)
        self.layout = self.predicate.layout
        self.head = np.zeros(COMPONENTS + 1, np.int64)
        self.head[COMPONENTS] = len(components)
        self.head[TESTED] = sum(1 << place for place, parts in enumerate(own) if parts)
        self.head[FIRST_TESTED] = sum(1 << place for place, parts in enumerate(first) if parts)

    def is_plain(self, schema: pa.Schema) -> bool:
        """Can its columns be filled from dicts?"""
        if self.predicate is None:
            return True
        layout = self.layout
        plain = self.predicate.compiled and not layout.read and not layout.literals
        return plain and plain_columns(layout.attributes, schema)

    def prepare(self) -> None:
        """Makes room for the values of one event."""
        assert self.predicate is not None
        self._kept = room_for_one(self.head, self.predicate)
