"""The automaton of a query, NFA^b, compiled by the steps of SASE+ section 3.2.

A single component gives one state, a Kleene component a pair: `a[1]` awaits the group's first event, `a[i]` the
further ones. Conditions stand on the edge where all that they mention is known; the event selection strategy decides
what may be ignored. For each state the automaton also says which values of a run later edges can still read: runs
that agree on them are equivalent from there on (section 5.2.2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from cepheid.language import syntax as s
from cepheid.language.bind import place_conjunct
from cepheid.language.bound import BoundQuery, Branch, Conjunct, Negation, Phase
from cepheid.language.functions import AGGREGATES
from cepheid.language.normal import negation_normal_form
from cepheid.language.printing import expression_text, window_text

FINAL = "F"


class Which(Enum):
    """What of a component's events an edge reads."""

    FIRST = "first"  # the first (or only) event
    LAST = "last"  # the one taken last
    NEW = "new"  # the one at hand
    GROUP = "group"  # each of them in turn: only the whole history will do


@dataclass(frozen=True)
class Read:
    """A value that a condition reads of a component: an attribute, an aggregate or, without either, the instant."""

    place: int
    which: Which
    attribute: str | None = None
    aggregate: s.Expression | None = None  # an aggregate or a length over the events so far


@dataclass(frozen=True)
class Edge:
    """A move of the automaton: what it is called, where it leads, and what must hold."""

    kind: str  # begin, take, proceed or ignore
    target: str
    conjuncts: tuple[Conjunct, ...]
    formula: tuple[str, ...]


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
        target = state_name(bound, place + 1)
        window = _window_formula(bound)
        begin = Edge("begin", target, begin_conjuncts(bound, place), _formula(bound, place, "begin"))
        if place == 0:
            begin = Edge("begin", target, begin.conjuncts, begin.formula[:-1] if window else begin.formula)
        held = pending_reads(bound, place - 1, branches, closed=True) if place else frozenset()
        if not component.kleene:
            edges = [begin] if place == 0 else [begin, _ignore(bound, state_name(bound, place), "begin")]
            states.append(State(component.variable, place, tuple(e for e in edges if e is not None), held))
            continue
        inner = f"{component.variable}[i]"
        first = Edge("begin", inner, begin.conjuncts, begin.formula)
        waiting = [first] if place == 0 else [first, _ignore(bound, f"{component.variable}[1]", "begin")]
        states.append(State(f"{component.variable}[1]", place, tuple(e for e in waiting if e is not None), held))
        take = Edge("take", inner, take_conjuncts(bound, place), _formula(bound, place, "take"))
        proceed = Edge("proceed", target, close_conjuncts(bound, place), _proceed_formula(bound, place))
        looping = [take, _ignore(bound, inner, "take"), proceed]
        kept = pending_reads(bound, place, branches)
        states.append(State(inner, place, tuple(e for e in looping if e is not None), kept))
    return Automaton(bound, (*states, State(FINAL, len(bound.positives), ())), branches)


def state_name(bound: BoundQuery, place: int) -> str:
    """The state that awaits a component's first event; the final one after the last."""
    if place == len(bound.positives):
        return FINAL
    component = bound.positives[place]
    return f"{component.variable}[1]" if component.kleene else component.variable


# --- step 2: which condition stands on which edge -----------------------------------------------------------------


def begin_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on the first (or only) event of a component."""
    variable = bound.positives[place].variable
    return tuple(
        c
        for c in bound.conjuncts
        if c.place == place and (c.phase is Phase.BEGIN or (c.phase is Phase.TAKE and variable not in c.from_second))
    )


def take_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on every further event of a Kleene group."""
    return tuple(c for c in bound.conjuncts if c.place == place and c.phase is Phase.TAKE)


def close_conjuncts(bound: BoundQuery, place: int) -> tuple[Conjunct, ...]:
    """Tested on a Kleene group as a whole, before anything may follow it."""
    return tuple(c for c in bound.conjuncts if c.place == place and c.phase is Phase.CLOSE)


def negation_conjuncts(bound: BoundQuery, negation: Negation, branch: Branch) -> tuple[Conjunct, ...]:
    """What an event of a negated component must pass to kill a match."""
    components = [*bound.positives, *(other.component for other in bound.negations)]
    return tuple(place_conjunct(part, components) for part in branch.passed_by(negation.component.variable))


def decisive_branches(bound: BoundQuery) -> tuple[Branch, ...]:
    """The disjuncts that negation is judged by, without the conditions that no negated component is concerned with.

    Those stand on edges as clauses of the conjunctive form, which is not the same for Kleene groups: a clause such as
    `a.x = 1 OR a.y = 2` may hold for one element by its x and for another by its y, a disjunct holds for all of them.
    """
    if not bound.negations or bound.syntax.where is None:
        return (Branch((), ()),)
    negated = {negation.component.variable for negation in bound.negations}
    apart: set[s.Expression] = set()
    concerned: set[s.Expression] = set()
    for part in _operands(negation_normal_form(bound.syntax.where), s.And):
        tests = any(isinstance(node, s.Equivalence) for node in s.walk(part))
        literals = concerned if tests or s.variables_of(part) & negated else apart
        literals.update(_operands(part, s.And, s.Or))
    reduced = (
        Branch(tuple(each for each in branch.positive if each not in apart or each in concerned), branch.negative)
        for branch in bound.branches
    )
    return tuple(dict.fromkeys(reduced))


def _operands(node: s.Expression, *kinds: type[s.Expression]) -> Iterator[s.Expression]:
    if isinstance(node, kinds):
        for inner in s.children(node):
            yield from _operands(inner, *kinds)
    else:
        yield node


def judged_by_branch(branches: tuple[Branch, ...]) -> bool:
    """Does it take a complete match to say which disjuncts of the condition it satisfies?"""
    return len(branches) > 1 or bool(branches[0].positive)


def judging_place(bound: BoundQuery, negation: Negation, branches: tuple[Branch, ...]) -> int:
    """The place whose first event lets a negated component be judged; past the last one: the complete match.

    Earlier is better, since it ends runs. It needs both neighbours, every component that the conditions mention
    (Kleene groups complete), and no ANY: there a later event may still say what an absent attribute should be.
    """
    end = len(bound.positives)
    if negation.after is None or negation.before is None or any(component.any for component in bound.components):
        return end
    if judged_by_branch(branches):
        return end
    place = negation.before
    linked = linked_negations(bound, branches[0])
    for other in (
        each for each in bound.negations if linked[each.component.variable] == linked[negation.component.variable]
    ):
        if other.after is None or other.before is None:
            return end
        place = max(place, other.before)
        conjuncts = negation_conjuncts(bound, other, branches[0])
        for name in {name for c in conjuncts for name in c.variables} & set(bound.place_of):
            mentioned = bound.place_of[name]
            place = max(place, mentioned + 1 if bound.positives[mentioned].kleene else mentioned)
    return place


def linked_negations(bound: BoundQuery, branch: Branch) -> dict[str, int]:
    """For each negated component the first of those that it kills together with: conditions mention them both."""
    group = {negation.component.variable: index for index, negation in enumerate(bound.negations)}
    for _, parts in branch.negative:
        for part in parts:
            linked = {group[name] for name in s.variables_of(part) & set(group)}
            group = {name: min(linked) if own in linked else own for name, own in group.items()}
    return group


# --- section 5.2.2: what is still read of a run -------------------------------------------------------------------


def pending_reads(bound: BoundQuery, place: int, branches: tuple[Branch, ...], closed: bool = False) -> frozenset[Read]:
    """What may still be read of the events chosen so far by a run that has filled `place`.

    A Kleene group may take further events unless it is `closed`.
    """
    found: set[Read] = set()
    kleene = bound.positives[place].kleene and not closed
    own = bound.positives[place].variable
    last = len(bound.positives) - 1
    if kleene:
        for conjunct in take_conjuncts(bound, place):
            found |= set(reads_of(bound, conjunct, own))
        for conjunct in close_conjuncts(bound, place):
            # The group is judged again only after a further event, which is then its last.
            found |= {r for r in reads_of(bound, conjunct) if not (r.place == place and r.which is Which.LAST)}
    for later in range(place + 1, last + 1):
        variable = bound.positives[later].variable
        for conjunct in begin_conjuncts(bound, later) + take_conjuncts(bound, later):
            found |= set(reads_of(bound, conjunct, variable))
        for conjunct in close_conjuncts(bound, later):
            found |= set(reads_of(bound, conjunct))
    for branch in branches:
        for part in branch.positive:
            found |= set(reads_of(bound, place_conjunct(part, list(bound.positives))))
        for negation in bound.negations:
            if judging_place(bound, negation, branches) <= place:
                continue
            if negation.after is not None:
                found.add(Read(negation.after, Which.LAST))
            if negation.before is not None:
                found.add(Read(negation.before, Which.FIRST))
            for conjunct in negation_conjuncts(bound, negation, branch):
                found |= set(reads_of(bound, conjunct))
    if kleene and place == last:
        found -= {r for r in found if r.place == place and r.which is Which.LAST and not _previous(bound, place, r)}
    return frozenset(r for r in found if r.place <= place and r.which is not Which.NEW)


def _previous(bound: BoundQuery, place: int, read: Read) -> bool:
    """Is the last event of an open group read as `a[i-1]` when the next is taken?"""
    own = bound.positives[place].variable
    return any(read in reads_of(bound, conjunct, own) for conjunct in take_conjuncts(bound, place))


def reads_of(bound: BoundQuery, conjunct: Conjunct, at_hand: str | None = None) -> Iterator[Read]:
    """What a condition reads; `at_hand` is the variable whose event is being begun or taken."""

    def group(variable: str) -> bool:
        return variable in conjunct.every and variable != at_hand

    pending: list[s.Expression] = [conjunct.expression]
    while pending:
        node = pending.pop()
        match node:
            case s.Length(variable=variable):
                yield Read(bound.place_of[variable], Which.FIRST, aggregate=node)
            case s.Call(function=function, arguments=(argument,)) if function.lower() in AGGREGATES:
                (variable,) = s.variables_of(argument)
                before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
                walked = before and group(variable)
                yield Read(bound.place_of[variable], Which.GROUP if walked else Which.FIRST, aggregate=node)
            case s.Attribute(of=of, name=name) if of.variable in bound.place_of:
                yield Read(bound.place_of[of.variable], _which(bound, of, group(of.variable)), attribute=name)
            case s.Attribute():
                continue  # of the negated event itself
            case _:
                pending.extend(s.children(node))


def _which(bound: BoundQuery, of: s.Reference, walked: bool) -> Which:
    if not bound.positives[bound.place_of[of.variable]].kleene:
        return Which.FIRST
    match of.element:
        case s.Element.FIRST:
            return Which.FIRST
        case s.Element.LAST:
            return Which.LAST
        case s.Element.PREVIOUS:
            return Which.GROUP if walked else Which.LAST
        case _:
            return Which.GROUP if walked else Which.NEW


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
    return (*parts, *_window_formula(bound))


def _window_formula(bound: BoundQuery) -> tuple[str, ...]:
    within = bound.syntax.within
    return () if bound.window is None or within is None else (f"within {window_text(within)}",)


def _ignore(bound: BoundQuery, state: str, relevant: str) -> Edge | None:
    """Step 3: what a run may pass over."""
    match bound.strategy:
        case s.Strategy.STRICT_CONTIGUITY:
            return None
        case s.Strategy.PARTITION_CONTIGUITY:
            if not bound.equivalence:
                return None
            passed: tuple[str, ...] = (f"NOT same {', '.join(bound.equivalence)}",)
        case s.Strategy.SKIP_TILL_NEXT:
            passed = (f"NOT {relevant}",)
        case _:
            passed = ()
    return Edge("ignore", state, (), (*passed, *_window_formula(bound)))


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
