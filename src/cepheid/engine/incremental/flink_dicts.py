"""Single events, as dicts, for the runs of a Flink pattern: their key, their kind, and what conditions read of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.incremental import flink_push as f
from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.incremental.one_event import OneEvent, plain_columns, rows_of
from cepheid.engine.search.flink.kinds import simple_holds
from cepheid.engine.search.flink.run import Search
from cepheid.engine.values.compiled import Case, compile_cases
from cepheid.engine.values.python_first import python_first
from cepheid.language import syntax as s

MOST_ATOMS, MOST_VALUES = 30, 10_000
_TEXTS = (pa.string(), pa.bool_())


class DictKinds:
    """The kinds of single events: what speaks of one column with texts is remembered by text, the rest is compiled."""

    def __init__(self, search: Search, schema: pa.Schema) -> None:
        automaton = search.automaton
        self.schema, self.atoms = schema, automaton.atoms
        self.texts: dict[str, list[int]] = {}  # the atoms about a column with texts
        others: list[int] = []
        for number, atom in enumerate(automaton.atoms):
            if not atom.is_simple:
                continue
            names = {node.name for node in s.walk(atom.expression) if isinstance(node, s.Attribute)}
            if len(names) == 1 and schema.field(next(iter(names))).type in _TEXTS:
                self.texts.setdefault(next(iter(names)), []).append(number)
            else:
                others.append(number)
        self.known: dict[str, dict[Any, int]] = {name: {} for name in self.texts}
        self.readable = len(automaton.atoms) <= MOST_ATOMS
        self.tested = sum(1 << number for number in others)
        if self.tested and self.readable:
            cases = [
                Case((atom.expression,) if number in others else (), lambda reference: "0")
                for number, atom in enumerate(automaton.atoms)
            ]
            with python_first(False):
                self.alone = OneEvent(compile_cases(cases, automaton.schema, frozenset()), self.tested)
            self.readable = self.alone.is_plain(schema)

    def bits(self, event: dict[str, Any]) -> int:
        """The atoms that hold for an event, as bits; of those that look back, nothing is said."""
        bits = 0
        for name, known in self.known.items():
            value = event.get(name)
            found = known.get(value)
            bits |= found if found is not None else self._of_value(name, value)
        if self.tested:
            bits |= self.alone.holding(event)
        return bits

    def _of_value(self, name: str, value: Any) -> int:
        table = pa.table({name: pa.array([value], self.schema.field(name).type)})
        bits = sum(bool(simple_holds(self.atoms[each].expression, table)[0]) << each for each in self.texts[name])
        if len(self.known[name]) >= MOST_VALUES:
            self.known[name].clear()
        self.known[name][value] = bits
        return bits


class FlinkDicts:
    """Puts single events into the runs of a pattern."""

    def __init__(self, core: FlinkCore, kinds: DictKinds) -> None:
        self.core, self.kinds = core, kinds
        names = core.key_names
        self.key = names[0] if len(names) == 1 else None
        self.keys = names if len(names) > 1 else None
        self.by_bits: dict[int, int] = {}
        self.attributes = core.compiled.layout.attributes if core.compiled.program.places else ()
        self._made: Any = None
        self.columns: list[tuple[str, Any, Any]] = []
        if not names:
            core.kind_number(bytes(len(core.automaton.atoms)))
            core.key_number(())

    def step(self, event: dict[str, Any], time: int, until: int) -> int:
        """Takes an event in, and lets time pass: what `stepped_event` returns."""
        core = self.core
        bits = self.kinds.bits(event)
        kind = self.by_bits.get(bits)
        if kind is None:
            kind = self._new_kind(bits)
        if self.key is not None:
            value: Any = event.get(self.key)
            key = core.numbers.get(value, -1)
        elif self.keys is not None:
            value = tuple([event.get(name) for name in self.keys])
            key = core.numbers.get(value, -1)
        else:
            value, key = (), 0
        if key < 0 and core.begins[kind]:
            key = core.key_number(value)
        if key >= 0:
            self._fill(event)
        return core.step(time, kind, key, until)

    def _fill(self, event: dict[str, Any]) -> None:
        """Puts what conditions read where the event will lie."""
        core = self.core
        core.make_room(1)
        if not self.attributes:
            return
        if core.tables[f.NULL] is not self._made:
            whole, number, null = (core.tables[place] for place in (f.WHOLE, f.NUMBER, f.NULL))
            self.columns, self._made = rows_of(self.attributes, whole, number, null), null
        place = int(core.head[f.SIZE])
        for name, values, nulls in self.columns:
            value = event.get(name)
            nulls[place], values[place] = value is None, 0 if value is None else value

    def _new_kind(self, bits: int) -> int:
        truths = np.array([bits >> number & 1 for number in range(len(self.kinds.atoms))], np.uint8)
        kind = self.by_bits[bits] = self.core.kind_number(truths.tobytes())
        return kind


def reads_dicts(core: FlinkCore, kinds: DictKinds, schema: pa.Schema) -> bool:
    """Can events of a schema be read from dicts, one by one?"""
    attributes = core.compiled.layout.attributes if core.compiled.program.places else ()
    return kinds.readable and plain_columns(attributes, schema)
