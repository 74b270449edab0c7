"""The automaton that the run engine walks, as text: a line for each edge, and what each state still reads."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Negation
from cepheid.language.printing import expression_text, window_text
from cepheid.plan.automaton import Action, QueryAutomaton, QueryEdge, QueryState
from cepheid.plan.ends import is_end
from cepheid.plan.placement import decisive_branches
from cepheid.plan.reads import Read, Which, pending_reads


def describe(bound: BoundQuery, automaton: QueryAutomaton) -> str:
    """The automaton as text.

    >>> from cepheid.language.bind import bind
    >>> from cepheid.language.check import check
    >>> from cepheid.language.sase.parse import parse
    >>> from cepheid.language.schema import DataType, Schema
    >>> from cepheid.plan.lowering import automaton_of
    >>> columns = (("ts", DataType.INT), ("type", DataType.STRING), ("price", DataType.INT), ("volume", DataType.INT))
    >>> def show(text):
    ...     bound = bind(check(parse(text)), Schema(columns, "ts", "type"))
    ...     print(describe(bound, automaton_of(bound)))
    >>> show('''PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match(a[], b) { a[1].volume > 1000
    ...     AND a[i].price > max(a[..i-1].price) AND b.volume < 80% * a[a.LEN].volume } WITHIN 60''')
    a[1]    begin    -> a[i]    Stock AND a[1].volume > 1000
    a[i]    take     -> a[i]    Stock AND a[i].price > max(a[..i-1].price) AND within 60
            ignore   -> a[i]    NOT take AND within 60
            proceed  -> b       the event can begin b
            keeps   a[a.LEN].volume, max(a[..i-1].price)
    b       begin    -> F       Stock AND b.volume < 0.8 * a[a.LEN].volume AND within 60
            ignore   -> b       NOT begin AND within 60
            keeps   a[a.LEN].volume

    >>> show("PATTERN SEQ((A a, B b)+, (C c | !(E e), D d)) WHERE skip_till_next_match { a.price < b.price } WITHIN 9")
    start   begin    -> a1      A
    a1      begin    -> b2      B AND a[a.LEN].price < b.price AND within 9
            ignore   -> a1      NOT begin AND within 9
    b2      take     -> a3      A AND within 9
            begin    -> c4      C AND within 9
            begin    -> d5      D AND no e since AND within 9
            ignore   -> b2      NOT take AND NOT begin AND within 9
    a3      begin    -> b2      B AND a[a.LEN].price < b.price AND within 9
            ignore   -> a3      NOT begin AND within 9
    c4      proceed  -> F       TRUE
    d5      proceed  -> F       TRUE
    """
    return "\n".join(_lines(bound, automaton))


def _lines(bound: BoundQuery, automaton: QueryAutomaton) -> Iterator[str]:
    for number in sorted(range(len(automaton.states)), key=lambda number: number != automaton.start):
        state = automaton.states[number]
        label = state.name
        for edge in state.edges:
            formula = " AND ".join(formula_of(bound, automaton, number, edge)) or "TRUE"
            yield f"{label:<8}{edge_word(edge):<8} -> {automaton.states[edge.target].name:<8}{formula}"
            label = ""
        reads = _reads(bound, state)
        if reads:
            yield f"{label:<8}keeps   {', '.join(sorted({_read_text(bound, read) for read in reads}))}"
    outside = {name for name, _ in automaton.outside}
    for negation in bound.negations:
        if bound.is_linear or negation.component.variable in outside:
            yield f"{'F':<8}unless  {_negation_text(bound, negation)}"


def edge_word(edge: QueryEdge) -> str:
    """What SASE+ calls an edge: the event that begins a group, or a further one that is taken."""
    return "begin" if edge.action is Action.TAKE and not edge.further else edge.action.value


def formula_of(bound: BoundQuery, automaton: QueryAutomaton, number: int, edge: QueryEdge) -> Iterator[str]:
    """What must hold for an edge of a state, in parts that are joined by AND."""
    begun, state = number != automaton.start, automaton.states[number]
    within = [f"within {window_text(bound.within)}"] if bound.window is not None and bound.within is not None else []
    same = f"same {', '.join(bound.equivalence)}"
    guard = [expression_text(test.expression) for test in edge.guard]
    match edge.action:
        case Action.TAKE:
            types = bound.positives[bound.place_of[edge.variable]].types
            if types is not None:
                yield types[0] if len(types) == 1 else f"one of {', '.join(types)}"
            yield from (f"{name} = {expression_text(value)}" for name, value in bound.fixed)
            yield from [same] if bound.equivalence and begun else []
            yield from (f"no {name} since" for name, _ in edge.forbids if not is_end(name))
            yield from guard
            if any(is_end(name) for name, _ in edge.forbids):
                yield f"not since {edge.variable}[1]: {expression_text(dict(bound.untils)[edge.variable])}"
            yield from within if begun else []
        case Action.IGNORE:
            if edge.reached_by is s.Strategy.PARTITION_CONTIGUITY:
                yield f"NOT {same}"
            if edge.reached_by is s.Strategy.SKIP_TILL_NEXT:
                relevant = (each for each in state.takes if each.reached_by is edge.reached_by)
                yield from dict.fromkeys(f"NOT {edge_word(each)}" for each in relevant)
            yield from within
        case Action.PROCEED:
            yield from guard
            if any(automaton.states[edge.target].takes):
                yield f"the event can begin {automaton.states[edge.target].name}"


def _reads(bound: BoundQuery, state: QueryState) -> frozenset[Read]:
    """What is still read of the events before, if the pattern is a sequence."""
    edge = next(state.takes, None)
    if edge is None or not bound.is_linear:
        return frozenset()
    place, branches = bound.place_of[edge.variable], decisive_branches(bound)
    if not edge.first:
        return pending_reads(bound, place, branches)
    return pending_reads(bound, place - 1, branches, closed=True) if place > 0 else frozenset()


def _read_text(bound: BoundQuery, read: Read) -> str:
    component = bound.positives[read.place]
    name = component.variable
    if read.which is Which.GROUP:
        return f"all of {name}[]"
    if read.aggregate is not None:
        return expression_text(read.aggregate)
    element = ""
    if component.kleene:
        element = "[1]" if read.which is Which.FIRST else f"[{name}.LEN]"
    return f"{name}{element}.{read.attribute}" if read.attribute else f"the instant of {name}{element}"


def _negation_text(bound: BoundQuery, negation: Negation) -> str:
    component = negation.component
    after = "the window opens" if negation.after is None else bound.positives[negation.after].variable
    before = "the window closes" if negation.before is None else bound.positives[negation.before].variable
    types = " or ".join(component.types) if component.types is not None else "any event"
    parts = [
        " AND ".join(expression_text(part) for part in branch.passed_by(component.variable)) or "TRUE"
        for branch in decisive_branches(bound)
    ]
    judged = f" with {' OR '.join(parts)}" if any(part != "TRUE" for part in parts) else ""
    return f"{types} {component.variable} between {after} and {before}{judged}"
