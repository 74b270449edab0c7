"""Single events for the runs of a Flink pattern: of what kind they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from cepheid.engine.incremental.flink_core import FlinkCore
from cepheid.engine.incremental.one_event import OneEvent, plain_columns
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
        self.alone: OneEvent | None = None
        if self.tested and self.readable:
            cases = [
                Case((atom.expression,) if number in others else (), lambda reference: "0")
                for number, atom in enumerate(automaton.atoms)
            ]
            with python_first(False):
                self.alone = OneEvent(compile_cases(cases, automaton.schema, frozenset()), self.tested)
            self.readable = self.alone.is_plain(schema)

    def learn(self, name: str, value: Any) -> None:
        """Remembers which atoms hold for a text of a column."""
        if value not in self.known[name]:
            table = pa.table({name: pa.array([value], self.schema.field(name).type)})
            bits = sum(bool(simple_holds(self.atoms[each].expression, table)[0]) << each for each in self.texts[name])
            if len(self.known[name]) >= MOST_VALUES:
                self.known[name].clear()
            self.known[name][value] = bits

    def truths(self, bits: int) -> bytes:
        """Which atoms hold, one byte for each; of those that look back, nothing is said."""
        return np.array([bits >> number & 1 for number in range(len(self.atoms))], np.uint8).tobytes()


def attributes_of(core: FlinkCore) -> Any:
    """What conditions that look back read of an event."""
    return core.compiled.layout.attributes if core.compiled.program.places else ()


def reads_dicts(core: FlinkCore, kinds: DictKinds, schema: pa.Schema) -> bool:
    """Can events of a schema be read from dicts, one by one?"""
    return kinds.readable and plain_columns(attributes_of(core), schema)
