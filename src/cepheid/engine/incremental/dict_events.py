"""Single events, as dicts, for the incremental search: their key, the components they can fill, and their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numba import types

from cepheid.engine.data.candidates import first_conditions
from cepheid.engine.data.columns import INT64S, Columns, storage
from cepheid.engine.data.matches import Int64s
from cepheid.engine.incremental.core import Core
from cepheid.engine.incremental.entry import Entry
from cepheid.engine.kernels.compile import kernel
from cepheid.engine.kernels.memory import address_of, float64_rows, function_at, int64_rows, uint8_rows
from cepheid.engine.values.compiled import Case, Predicate, compile_cases
from cepheid.language.schema import DataType
from cepheid.plan.physical import Plan

_PLAIN = {DataType.INT: pa.int64(), DataType.FLOAT: pa.float64(), DataType.BOOL: pa.bool_()}
_KEYS = (pa.int64(), pa.string(), pa.bool_())  # types whose values are equal in Python as they are in a search
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


test = Entry(passing)


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
        return plain and _plain_columns(layout.attributes, schema)

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
        self.columns = _columns_of(self.layout.attributes, self.whole, self.number, self.null)
        self.call = test.direct()


def _plain_columns(attributes: Any, schema: pa.Schema) -> bool:
    return all(
        expression is None and kind in _PLAIN and schema.field(name).type == _PLAIN[kind]
        for name, kind, expression in attributes
    )


def _columns_of(attributes: Any, whole: Any, number: Any, null: Any) -> list[tuple[str, Any, Any]]:
    """For each attribute, the row of its values and that of what is NULL."""
    found, wholes, numbers = [], 0, 0
    for place, (name, kind, _) in enumerate(attributes):
        if storage(kind) == "whole":
            found.append((name, whole[wholes], null[place]))
            wholes += 1
        else:
            found.append((name, number[numbers], null[place]))
            numbers += 1
    return found


class DictEvents:
    """Puts single events into the search of a query."""

    def __init__(self, core: Core, alone: Alone) -> None:
        self.core, self.alone = core, alone
        names = core.plan.partition
        self.key = names[0] if len(names) == 1 else None
        self.keys = names if len(names) > 1 else None
        self.numbers: dict[Any, int] = {}
        self.tested = alone.tested
        self.ending = core.form.ending
        self.every_event = core.every_event
        if alone.tested:
            alone.prepare()
        self._made: Any = None  # the arrays that `columns` are rows of
        self.columns: list[tuple[str, Any, Any]] = []

    def _renew(self) -> None:
        """The arrays have grown, or events were forgotten, and keys with them."""
        core = self.core
        self.columns = _columns_of(core.form.compiled.layout.attributes, core.whole, core.number, core.null)
        self.numbers = core.reader.numbers
        self._made = core.facts

    def take(self, event: dict[str, Any], mask: int) -> tuple[int, int, int] | None:
        """The key of an event, the components that it can fill, and those it can begin; None: it is not wanted."""
        begins = mask
        if self.core.facts is not self._made:
            self._renew()
        if self.tested and mask:
            alone = self.alone
            for name, values, null in alone.columns:
                value = event.get(name)
                null[0] = value is None
                values[0] = 0 if value is None else value
            both = alone.call(alone.head, mask)
            mask, begins = both >> FIRSTS, both & ((1 << FIRSTS) - 1)
        if not mask and not self.every_event:
            return None
        number = 0
        if self.key is not None:
            value = event.get(self.key)
        elif self.keys is not None:
            value = tuple([event.get(name) for name in self.keys])
            if None in value:
                return None
        else:
            return 0, mask, begins
        if value is None:
            return None
        found = self.numbers.get(value)
        if found is None:
            number = self.numbers[value] = len(self.numbers)
            self.core.make_room_for_keys(number + 1)
        else:
            number = found
        return number, mask, begins

    def push(self, event: dict[str, Any], time: int, taken: tuple[int, int, int], row: int, until: int) -> int:
        """Takes an event in, and lets time pass; what the kernel returns."""
        core = self.core
        if core.size == core.room:
            core.make_room(1)
            self._renew()
        place = core.size
        for name, values, null in self.columns:
            value = event.get(name)
            if value is None:
                null[place], values[place] = 1, 0
            else:
                values[place] = value
        calls = core.calls
        assert calls is not None
        key, mask, begins = taken
        returned = calls.push(core.head, time, key, mask, begins, row, until)
        core.size = place + 1
        return returned


def reads_dicts(core: Core, alone: Alone, schema: pa.Schema) -> bool:
    """Can events of a schema be read from dicts, one by one?"""
    if not all(schema.field(name).type in _KEYS for name in core.plan.partition):
        return False
    return _plain_columns(core.form.compiled.layout.attributes, schema) and alone.is_plain(schema)


__all__ = ["Alone", "DictEvents", "reads_dicts"]
