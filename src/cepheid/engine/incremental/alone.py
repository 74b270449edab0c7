"""Conditions on single events, compiled: which components can an event fill, and which can it begin?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from cepheid.engine.data.candidates import first_conditions
from cepheid.engine.data.columns import INT64S, Columns, storage
from cepheid.engine.data.matches import Int64s
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import address_of, float64_rows, function_at, int64_rows, uint8_rows
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

_PLAIN = {DataType.INT: pa.int64(), DataType.FLOAT: pa.float64(), DataType.BOOL: pa.bool_()}
# The numbers in the array that a test gets: the condition, the columns, and the bits of components with conditions on
# an event, and on an event that is the first one of its group.
PREDICATE_AT, WHOLE_AT, WHOLES, NUMBER_AT, NUMBERS, NULL_AT, NULLS, TESTED, FIRST_TESTED, COMPONENTS = range(10)
FIRSTS = 32  # bits that an event's mask is shifted by, where it is told with the components that it can begin


@kernel(types.int64(INT64S, types.int64))
def passing(head: Int64s, mask: int) -> int:
    """The components that an event can fill by conditions on it alone, and those it can be the first event of."""
    columns = Columns(
        int64_rows(head[WHOLE_AT], head[WHOLES], 1),
        float64_rows(head[NUMBER_AT], head[NUMBERS], 1),
        uint8_rows(head[NULL_AT], head[NULLS], 1),
        np.empty(0, np.int64),
        np.empty(0, np.float64),
        np.zeros((0, 0), np.int64),
    )
    predicate = function_at(head[PREDICATE_AT])
    at, nothing = np.zeros(1, np.int64), np.zeros(0, np.float64)
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
        stored = [storage(kind) for _, kind, _ in self.layout.attributes]
        self.whole = np.zeros((max(1, stored.count("whole")), 1), np.int64)
        self.number = np.zeros((max(1, stored.count("number")), 1), np.float64)
        self.null = np.zeros((max(1, len(stored)), 1), np.uint8)
        head = self.head
        head[WHOLE_AT], head[WHOLES] = self.whole.ctypes.data, stored.count("whole")
        head[NUMBER_AT], head[NUMBERS] = self.number.ctypes.data, stored.count("number")
        head[NULL_AT], head[NULLS] = self.null.ctypes.data, len(stored)
        head[PREDICATE_AT] = address_of(self.predicate.call)


def plain_columns(attributes: Any, schema: pa.Schema) -> bool:
    """Can columns of these attributes be filled from values of dicts?"""
    return all(
        expression is None and kind in _PLAIN and schema.field(name).type == _PLAIN[kind]
        for name, kind, expression in attributes
    )


__all__ = ["Alone", "passing", "plain_columns"]
