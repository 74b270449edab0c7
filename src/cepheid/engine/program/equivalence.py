"""What two runs that have filled a place must agree on to be merged (SASE+ section 5.2.2)."""

from __future__ import annotations

from cepheid.engine.data.columns import storage
from cepheid.engine.program import tables as t
from cepheid.engine.program.registers import Registers, Slots
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundQuery
from cepheid.language.schema import DataType
from cepheid.plan.automaton import QueryAutomaton, QueryEdge, QueryState, Test
from cepheid.plan.ends import is_end
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
        if _last_counts(bound):
            found.add((t.KEY_INSTANT, slots.last[place], 0))
        keys.append(sorted(found, key=repr))
    return keys, attributes


def state_keys(
    bound: BoundQuery, automaton: QueryAutomaton, slots: Slots, registers: Registers, *, every_end: bool = False
) -> tuple[list[list[Key] | None], dict[str, DataType]]:
    """The same for the states of an expression; None where each event of a group matters.

    What a state reads is what its edges read, and what the states behind them read of events taken before. Where every
    state ends a run (`every_end`), what must not happen before an edge is sought up to the window's edge.
    """
    start, states = automaton.start, automaton.states[: automaton.start + 1]
    filled = {edge.target: bound.place_of[edge.variable] for state in states for edge in state.takes}
    reads = [_edge_reads(bound, state, filled.get(number)) for number, state in enumerate(states)]
    ends = [_end_reads(bound, automaton, state) for state in states]
    changed = True
    while changed:
        changed = False
        for number, state in enumerate(states):
            found = reads[number]
            for edge in state.takes:
                behind, at_end = reads[edge.target], ends[edge.target]
                if found is None or behind is None or at_end is None:
                    found = None
                    break
                found |= {read for read in behind | at_end if _survives(bound, read, edge)}
            changed = changed or found != reads[number]
            reads[number] = found
    attributes: dict[str, DataType] = {}
    keys: list[list[Key] | None] = []
    by_edge = automaton.outside or (every_end and any(edge.forbids for state in states for edge in state.takes))
    for number, own_reads in enumerate(reads):
        if own_reads is None or number == start:
            keys.append(None)
            continue
        names = {key for read in own_reads for key in _read_keys(bound, slots, registers, read, attributes)}
        if by_edge:
            names.add((t.KEY_START, 0, 0))  # the window's edge decides, so only runs with one beginning are alike
        keys.append(sorted(names, key=repr))
    return keys, attributes


def _survives(bound: BoundQuery, read: Read, edge: QueryEdge) -> bool:
    """Is what is read behind an edge something that was known before it? Aggregates go on from what they were."""
    own = bound.place_of[edge.variable]
    return read.place != own or (bound.positives[own].kleene and read.which is Which.FIRST and not edge.first)


def _edge_reads(bound: BoundQuery, state: QueryState, filled: int | None) -> frozenset[Read] | None:
    """What the edges of a state read of events that were taken before; None: of each event of a group."""
    found: set[Read] = set()
    for edge in state.takes:
        if filled is not None and (edge.forbids or _last_counts(bound)):
            found.add(Read(filled, Which.LAST))
        tests: list[tuple[Test, str | None, str]] = [(test, edge.variable, "") for test in edge.guard]
        for name, killing in edge.forbids:  # what ends a group is judged before the event is taken
            tests += [(test, None if is_end(name) else edge.variable, name) for test in killing]
        if not all(_add_reads(bound, *test, found) for test in tests):
            return None
    return frozenset(found)


def _end_reads(bound: BoundQuery, automaton: QueryAutomaton, state: QueryState) -> frozenset[Read] | None:
    """The same for what must hold for a match to end in a state."""
    found: set[Read] = set()
    end = automaton.end(state)
    if end is None:
        return frozenset()
    tests = [(test, "") for test in end.guard]
    tests += [(test, name) for name, killing in automaton.outside for test in killing]
    return frozenset(found) if all(_add_reads(bound, test, None, name, found) for test, name in tests) else None


def _last_counts(bound: BoundQuery) -> bool:
    """Does the last event say where a run can go on, or is there more to know of a run that has passed events?"""
    return bound.mixed or bound.contiguous


def _add_reads(bound: BoundQuery, test: Test, at_hand: str | None, negated: str, found: set[Read]) -> bool:
    """Notes what a condition reads; False if that is more than aggregates and values of single events."""
    if test.walked:
        return False
    pending: list[s.Expression] = [test.expression]
    while pending:
        node = pending.pop()
        if isinstance(node, s.Attribute) and node.default is None:
            variable, element = node.of.variable, node.of.element
            if variable == negated or (variable == at_hand and element in s.AT_HAND):
                continue
            if element not in (s.Element.SINGLE, s.Element.FIRST, s.Element.LAST, s.Element.PREVIOUS):
                return False
            which = Which.FIRST if element is s.Element.FIRST else Which.LAST
            found.add(Read(bound.place_of[variable], which, node.name))
        elif isinstance(node, s.Length) or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES):
            (variable,) = s.variables_of(node)
            if variable not in bound.place_of:
                return False
            found.add(Read(bound.place_of[variable], Which.FIRST, aggregate=node))
        elif isinstance(node, s.Reference | s.Attribute):
            return False
        else:
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
