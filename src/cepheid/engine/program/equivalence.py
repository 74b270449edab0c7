"""What two runs that have filled a place must agree on to be merged (SASE+ section 5.2.2)."""

from __future__ import annotations

from cepheid.engine.data.columns import storage
from cepheid.engine.program import tables as t
from cepheid.engine.program.registers import Registers, Slots
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.plan.automaton import QueryAutomaton, QueryState, Test
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
            found.add((t.KEY_START, 0, 0))  # the window's edge decides, so only runs with one beginning are alike
        keys.append(sorted(found, key=repr))
    return keys, attributes


_Event = tuple[int, bool, str]  # the place, is it the first event of a list (else the last), and the attribute


def state_keys(
    bound: BoundQuery, automaton: QueryAutomaton, slots: Slots
) -> tuple[list[list[Key] | None], dict[str, DataType]]:
    """The same for the states of an expression; None where more matters than values of single events.

    What a state reads is what its edges read, and what the states behind them read of events taken before.
    """
    start, states = automaton.start, automaton.states[: automaton.start + 1]
    judged = any(tests for _, tests in automaton.outside)  # by values that are not noted here
    reads = [None if judged else _state_reads(bound, automaton, state) for state in states]
    changed = True
    while changed:
        changed = False
        for number, state in enumerate(states):
            found = reads[number]
            for edge in state.takes:
                behind = reads[edge.target]
                if found is None or behind is None:
                    found = None
                    break
                own = bound.place_of[edge.variable]
                many = bound.positives[own].kleene
                found |= {read for read in behind if read[0] != own or (many and read[1] and not edge.first)}
            changed = changed or found != reads[number]
            reads[number] = found
    attributes: dict[str, DataType] = {}
    keys: list[list[Key] | None] = []
    for number, own_reads in enumerate(reads):
        if own_reads is None or number == start:
            keys.append(None)
            continue
        names: set[Key] = set()
        for place, first, name in own_reads:
            which = Which.FIRST if first else Which.LAST
            slot = slots.first[place] if which is Which.FIRST else slots.last[place]
            names |= set(_attribute_keys(bound, slot, name, attributes))
        if automaton.outside:
            names.add((t.KEY_START, 0, 0))  # the window's edge decides, so only runs with one beginning are alike
        keys.append(sorted(names, key=repr))
    return keys, attributes


def _state_reads(bound: BoundQuery, automaton: QueryAutomaton, state: QueryState) -> frozenset[_Event] | None:
    """What the edges of a state and its end read of events that were taken before; None: of whole groups, too."""
    found: set[_Event] = set()
    for edge in state.takes:
        if edge.forbids:  # judged by the event before, which runs that are merged need not share
            return None
        for test in edge.guard:
            if not _add_reads(bound, test, edge.variable, found):
                return None
    end = automaton.end(state)
    for test in end.guard if end is not None else ():
        if not _add_reads(bound, test, None, found):
            return None
    return frozenset(found)


def _add_reads(bound: BoundQuery, test: Test, at_hand: str | None, found: set[_Event]) -> bool:
    """Notes what a condition reads; False if that is more than values of single events."""
    if test.walked:
        return False
    pending: list[s.Expression] = [test.expression]
    while pending:
        node = pending.pop()
        if isinstance(node, s.Attribute) and node.default is None:
            variable, element = node.of.variable, node.of.element
            previous = element is s.Element.PREVIOUS
            if variable == at_hand and not previous and element is not s.Element.FIRST:
                continue
            if element not in (s.Element.SINGLE, s.Element.FIRST, s.Element.LAST, s.Element.PREVIOUS):
                return False
            found.add((bound.place_of[variable], element is s.Element.FIRST, node.name))
            continue
        is_aggregate = isinstance(node, s.Call) and node.function.lower() in AGGREGATES
        if is_aggregate or isinstance(node, s.Length | s.Reference | s.Attribute):
            return False
        pending.extend(s.children(node))
    return True


def _read_keys(
    bound: BoundQuery, slots: Slots, registers: Registers, read: Read, attributes: dict[str, DataType]
) -> list[Key]:
    if isinstance(read.aggregate, s.Call) and not isinstance(read.aggregate.arguments[0], s.Reference):
        found: list[Key] = []
        for kept in registers.kept_for(read.aggregate):
            found.append((t.KEY_COUNTED, kept.known, 0))
            found += [(t.KEY_RUNNING if kept.fractions else t.KEY_COUNTED, value, 0) for value in kept.values()]
        return found
    if read.aggregate is not None:
        return [(t.KEY_COUNTED, read.place, 0)]
    slot = slots.first[read.place] if read.which is Which.FIRST else slots.last[read.place]
    if read.attribute is None:
        return [(t.KEY_INSTANT, slot, 0)]
    return _attribute_keys(bound, slot, read.attribute, attributes)


def _attribute_keys(bound: BoundQuery, slot: int, name: str, attributes: dict[str, DataType]) -> list[Key]:
    kind = bound.schema.type_of(name)
    assert kind is not None
    if kind in (DataType.LIST, DataType.OTHER):
        return [(t.KEY_EVENT, slot, 0)]
    attributes[name] = kind
    value = t.KEY_NUMBER if storage(kind) == "number" else t.KEY_WHOLE
    return [(value, slot, name), (t.KEY_NULL, slot, name)]
