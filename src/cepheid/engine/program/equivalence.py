"""What two runs that have filled a place must agree on to be merged (SASE+ section 5.2.2)."""

from __future__ import annotations

from cepheid.engine.data.columns import storage
from cepheid.engine.program.registers import Registers, Slots
from cepheid.engine.program.tables import (
    KEY_COUNTED,
    KEY_EVENT,
    KEY_INSTANT,
    KEY_NULL,
    KEY_NUMBER,
    KEY_RUNNING,
    KEY_START,
    KEY_WHOLE,
)
from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.plan.placement import decisive_branches
from cepheid.plan.reads import Read, Which, pending_reads

Key = tuple[int, int, str | int]  # kind, slot or register, and the attribute (or nothing)


def equivalence_keys(
    bound: BoundQuery, slots: Slots, registers: Registers
) -> tuple[list[list[Key] | None], dict[str, DataType]]:
    """The keys of every place (None: runs are never merged there), and the attributes they read."""
    attributes: dict[str, DataType] = {}
    branches = decisive_branches(bound)
    keys: list[list[Key] | None] = []
    for place in range(len(bound.positives)):
        reads = pending_reads(bound, place, branches)
        if any(read.which is Which.GROUP for read in reads):
            keys.append(None)
            continue
        found = {key for read in reads for key in _read_keys(bound, slots, registers, read, attributes)}
        if any(negation.after is None or negation.before is None for negation in bound.negations):
            found.add((KEY_START, 0, 0))  # the window's edge decides, so only runs with one beginning are alike
        keys.append(sorted(found, key=repr))
    return keys, attributes


def _read_keys(
    bound: BoundQuery, slots: Slots, registers: Registers, read: Read, attributes: dict[str, DataType]
) -> list[Key]:
    if isinstance(read.aggregate, s.Call) and not isinstance(read.aggregate.arguments[0], s.Reference):
        found: list[Key] = []
        for kept in registers.kept_for(read.aggregate):
            found.append((KEY_COUNTED, kept.known, 0))
            found += [(KEY_RUNNING if kept.fractions else KEY_COUNTED, value, 0) for value in kept.values()]
        return found
    if read.aggregate is not None:
        return [(KEY_COUNTED, read.place, 0)]
    slot = slots.first[read.place] if read.which is Which.FIRST else slots.last[read.place]
    if read.attribute is None:
        return [(KEY_INSTANT, slot, 0)]
    kind = bound.schema.type_of(read.attribute)
    assert kind is not None
    if kind in (DataType.LIST, DataType.OTHER):
        return [(KEY_EVENT, slot, 0)]
    attributes[read.attribute] = kind
    value = KEY_NUMBER if storage(kind) == "number" else KEY_WHOLE
    return [(value, slot, read.attribute), (KEY_NULL, slot, read.attribute)]
