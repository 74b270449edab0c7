"""The automaton of a query, NFA^b, compiled by the steps of SASE+ section 3.2.

States and edges between any two of them: begin, take, proceed and ignore. A single component gives one state, a Kleene
component a pair: `a[1]` awaits the group's first event, `a[i]` the further ones. The event selection strategy decides
what may be ignored. Edges of a state may be ordered by preference, for dialects in which one way to go on is tried
before another. EXPLAIN prints it; kernels walk the program, in which conditions stand in the same places.
"""

from __future__ import annotations

from dataclasses import dataclass

from cepheid.language import syntax as s
from cepheid.language.bound import BoundQuery, Branch, Negation
from cepheid.language.printing import expression_text, window_text
from cepheid.plan.placement import begin_conjuncts, close_conjuncts, decisive_branches, take_conjuncts
from cepheid.plan.reads import Read, Which, pending_reads

FINAL = "F"


@dataclass(frozen=True)
class Edge:
    """A move of the automaton: what it is called, where it leads, and what must hold."""

    kind: str  # begin, take, proceed or ignore
    target: str  # the name of any state
    formula: tuple[str, ...]
    preference: int = 0  # among the edges of a state the lowest is tried first; equal ones are all followed


@dataclass(frozen=True)
class State:
    """A state with its edges, and what it or a later state may still read of events chosen before."""

    name: str
    place: int  # the positive component it awaits an event of
    edges: tuple[Edge, ...]
    reads: frozenset[Read] = frozenset()


@dataclass(frozen=True)
class Automaton:
    """States in the order of the pattern, the final one last, and the negated components to be judged at the end."""

    bound: BoundQuery
    states: tuple[State, ...]
    branches: tuple[Branch, ...]

    def describe(self) -> str:
        """The automaton as text, a line for each edge and each state's values."""
        lines = []
        for state in self.states:
            label = state.name
            for edge in state.edges:
                lines.append(f"{label:<8}{edge.kind:<8} -> {edge.target:<8}{' AND '.join(edge.formula) or 'TRUE'}")
                label = ""
            if state.reads:
                lines.append(f"{label:<8}keeps   {', '.join(sorted({_read_text(self.bound, r) for r in state.reads}))}")
        for negation in self.bound.negations:
            lines.append(f"{FINAL:<8}unless  {_negation_text(self, negation)}")
        return "\n".join(lines)


def compile_automaton(bound: BoundQuery) -> Automaton:
    """The automaton of a query.

    >>> from cepheid.language.bind import bind
    >>> from cepheid.language.check import check
    >>> from cepheid.language.sase.parse import parse
    >>> from cepheid.language.schema import DataType, Schema
    >>> columns = (("ts", DataType.INT), ("type", DataType.STRING), ("price", DataType.INT), ("volume", DataType.INT))
    >>> text = '''PATTERN SEQ(Stock+ a[], Stock b) WHERE skip_till_next_match(a[], b) { a[1].volume > 1000
    ...     AND a[i].price > max(a[..i-1].price) AND b.volume < 80% * a[a.LEN].volume } WITHIN 60'''
    >>> print(compile_automaton(bind(check(parse(text)), Schema(columns, "ts", "type"))).describe())
    a[1]    begin    -> a[i]    Stock AND a[1].volume > 1000
    a[i]    take     -> a[i]    Stock AND a[i].price > max(a[..i-1].price) AND within 60
            ignore   -> a[i]    NOT take AND within 60
            proceed  -> b       the event can begin b
            keeps   a[a.LEN].volume, max(a[..i-1].price)
    b       begin    -> F       Stock AND b.volume < 0.8 * a[a.LEN].volume AND within 60
            ignore   -> b       NOT begin AND within 60
            keeps   a[a.LEN].volume
    """
    states: list[State] = []
    branches = decisive_branches(bound)
    for place, component in enumerate(bound.positives):
        name, target = state_name(bound, place), state_name(bound, place + 1)
        inner = f"{component.variable}[i]"
        formula = _formula(bound, place, "begin")
        if place == 0 and _window_formula(bound):
            formula = formula[:-1]  # the window opens here
        waiting = [Edge("begin", inner if component.kleene else target, formula)]
        waiting += _ignore(bound, name, "begin", component.variable) if place > 0 else []
        held = pending_reads(bound, place - 1, branches, closed=True) if place else frozenset()
        states.append(State(name, place, tuple(waiting), held))
        if component.kleene:
            take = Edge("take", inner, _formula(bound, place, "take"))
            proceed = Edge("proceed", target, _proceed_formula(bound, place))
            looping = take, *_ignore(bound, inner, "take", component.variable), proceed
            states.append(State(inner, place, looping, pending_reads(bound, place, branches)))
    return Automaton(bound, (*states, State(FINAL, len(bound.positives), ())), branches)


def state_name(bound: BoundQuery, place: int) -> str:
    """The state that awaits a component's first event; the final one after the last."""
    if place == len(bound.positives):
        return FINAL
    component = bound.positives[place]
    return f"{component.variable}[1]" if component.kleene else component.variable


# --- steps 3 to 6, as text ----------------------------------------------------------------------------------------


def _formula(bound: BoundQuery, place: int, kind: str) -> tuple[str, ...]:
    component = bound.positives[place]
    parts = []
    if component.types is not None:
        parts.append(component.types[0] if len(component.types) == 1 else f"one of {', '.join(component.types)}")
    parts += [f"{name} = {expression_text(value)}" for name, value in bound.fixed]
    if bound.equivalence and (place > 0 or kind == "take"):
        parts.append(f"same {', '.join(bound.equivalence)}")
    chosen = begin_conjuncts(bound, place) if kind == "begin" else take_conjuncts(bound, place)
    parts += [expression_text(conjunct.expression) for conjunct in chosen]
    ends = dict(bound.untils).get(component.variable)
    if ends is not None and kind == "take":
        parts.append(f"not since {component.variable}[1]: {expression_text(ends)}")
    return (*parts, *_window_formula(bound))


def _window_formula(bound: BoundQuery) -> tuple[str, ...]:
    within = bound.within
    return () if bound.window is None or within is None else (f"within {window_text(within)}",)


def _ignore(bound: BoundQuery, state: str, relevant: str, variable: str) -> list[Edge]:
    """Step 3: what a run may pass over."""
    match bound.reached_by(variable, relevant == "take"):
        case s.Strategy.STRICT_CONTIGUITY:
            return []
        case s.Strategy.PARTITION_CONTIGUITY:
            if not bound.equivalence:
                return []
            passed: tuple[str, ...] = (f"NOT same {', '.join(bound.equivalence)}",)
        case s.Strategy.SKIP_TILL_NEXT:
            passed = (f"NOT {relevant}",)
        case _:
            passed = ()
    return [Edge("ignore", state, (*passed, *_window_formula(bound)))]


def _proceed_formula(bound: BoundQuery, place: int) -> tuple[str, ...]:
    """Step 6: the group closes only on an event that can begin the next component."""
    parts = [expression_text(conjunct.expression) for conjunct in close_conjuncts(bound, place)]
    if place + 1 < len(bound.positives):
        parts.append(f"the event can begin {state_name(bound, place + 1)}")
    return tuple(parts)


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


def _negation_text(automaton: Automaton, negation: Negation) -> str:
    bound, component = automaton.bound, negation.component
    after = "the window opens" if negation.after is None else bound.positives[negation.after].variable
    before = "the window closes" if negation.before is None else bound.positives[negation.before].variable
    types = " or ".join(component.types) if component.types is not None else "any event"
    parts = [
        " AND ".join(expression_text(part) for part in branch.passed_by(component.variable)) or "TRUE"
        for branch in automaton.branches
    ]
    judged = f" with {' OR '.join(parts)}" if any(part != "TRUE" for part in parts) else ""
    return f"{types} {component.variable} between {after} and {before}{judged}"
