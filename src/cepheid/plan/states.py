"""The states of a pattern that is an expression: groups, alternatives, optional parts and any order as edges.

A state says what was taken last and what may come next: the rest of the pattern, with the round of every repeated part
that is open. Linear patterns that agree on the variables taken so far are in the same state, as skip_till_next_match
asks (docs/semantics.md, "Patterns are expressions"); since an assignment says in which order its variables were
filled, no match is found twice. Rounds that are counted are states of their own, rounds without end lead back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from cepheid.budget import checkpoint
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundQuery
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single, is_list, labels_of
from cepheid.language.transitions import Frame, Others, Rest, Round, Transition, transitions, vanishes
from cepheid.language.unchosen import TRUE, without_unchosen
from cepheid.plan import automaton as a
from cepheid.plan.ends import about_end, end_of, is_end
from cepheid.plan.placement import decisive_branches, judged_by_branch, linked_negations

MOST_STATES = 2000
MOST_BITS = 62  # components, negated ones included: an event has a bit for each
_CLOSING = (s.Element.LAST, s.Element.ALL)


class UnsuitableError(Exception):
    """Why a pattern is not run by its states."""


@dataclass(frozen=True)
class Configuration:
    """The rest of a pattern, and the variables that were taken in the open round of the part that repeats them."""

    rest: Rest
    here: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Key:
    """What makes a state: the variable taken last, what may follow, and which variables that matter were taken."""

    last: str | None
    configurations: frozenset[Configuration]
    taken: frozenset[str] = frozenset()


@dataclass(frozen=True)
class _Step:
    """An edge before its conditions are known: an event for a variable."""

    variable: str
    target: int
    first: bool
    further: bool
    passed: tuple[str, ...]  # negated components between the event before and this one
    here: frozenset[str]  # the variables of its rounds that were taken before it
    reached_by: s.Strategy


@dataclass(frozen=True)
class _Draft:
    """A state before the conditions of its edges are known; can a match end here?"""

    key: Key
    steps: tuple[_Step, ...] = ()
    final: bool = False


def lower_expression(bound: BoundQuery) -> a.QueryAutomaton:
    """The automaton of a query's pattern: the states that are reached by an event, the start, and the final state.

    Raises `UnsuitableError` for what states cannot say.

    >>> from cepheid.language.bind import bind
    >>> from cepheid.language.check import check
    >>> from cepheid.language.sase.parse import parse
    >>> from cepheid.language.schema import DataType, Schema
    >>> columns = (("ts", DataType.INT), ("type", DataType.STRING), ("x", DataType.INT))
    >>> text = "PATTERN SEQ((A a, B b)+, (C c | !(E e), D d)) WHERE a.x < b.x WITHIN 60"
    >>> found = lower_expression(bind(check(parse(text)), Schema(columns, "ts", "type")))
    >>> [[(edge.variable, found.states[edge.target].name) for edge in state.takes] for state in found.states[:3]]
    [[('b', 'b2')], [('a', 'a3'), ('c', 'c4'), ('d', 'd5')], [('b', 'b2')]]
    """
    return _Builder(bound).build()


def _surely(pattern: Pattern, negative: frozenset[str]) -> frozenset[str]:
    """The labels that are in every linear pattern."""
    match pattern:
        case Single(label=label):
            return frozenset({label})
        case Sequence(parts=parts) | AnyOrder(parts=parts):
            nothing: frozenset[str] = frozenset()
            return nothing.union(*(_surely(part, negative) for part in parts))
        case Choice(parts=(first, *others)):
            return _surely(first, negative).intersection(*(_surely(part, negative) for part in others))
        case Repeat(part=part, least=least) if least > 0 and not vanishes(part, negative):
            return _surely(part, negative)
    return frozenset()


def _without_edges(pattern: Pattern, negative: frozenset[str]) -> tuple[Pattern, frozenset[str]]:
    """The pattern without the negated components that stand before or behind all its other parts, and these."""
    if not isinstance(pattern, Sequence):
        return pattern, frozenset()
    parts = [*pattern.parts]
    outside: list[str] = []
    for at in (0, -1):
        while parts and isinstance(part := parts[at], Single) and part.label in negative:
            outside.append(part.label)
            del parts[at]
    return replace(pattern, parts=tuple(parts)), frozenset(outside)


class _Builder:
    """Makes the states of a query's pattern, then puts its conditions on the edges."""

    def __init__(self, bound: BoundQuery) -> None:
        self.bound = bound
        self.components = {component.variable: component for component in bound.components}
        self.negative = frozenset(name for name, component in self.components.items() if component.negative)
        self.pattern, self.outside = _without_edges(bound.pattern, self.negative)
        self.next_match = bound.competes
        self.repeats: dict[str, tuple[Repeat, ...]] = dict(_repeats(self.pattern, ()))
        self.gaps = dict(bound.gaps)
        self.branch = decisive_branches(bound)[0]
        self.conjuncts = [c for c in bound.conjuncts if not c.variables & self.negative]
        self.ends = {name: about_end(condition, name) for name, condition in bound.untils}
        self.noted = self.variables_that_matter()

    def variables_that_matter(self) -> frozenset[str]:
        """Those of which conditions ask whether they were taken."""
        found: set[str] = set()
        for conjunct in self.conjuncts:
            firsts = any(self.components[name].kleene for name in conjunct.variables - conjunct.every)
            if len(conjunct.variables) > 1 or not conjunct.own or firsts:
                found |= conjunct.variables
        for _, parts in self.branch.negative:
            for part in parts:
                found |= s.variables_of(part)
        for name, condition in self.ends.items():
            found |= {name} | s.variables_of(condition)
        for name, _, _ in self.bound.steps:  # the first event may be reached otherwise than the further ones
            if self.bound.reached_by(name, False) is not self.bound.reached_by(name, True):
                found.add(name)
        return frozenset(found) - self.negative

    def build(self) -> a.QueryAutomaton:
        self.check_query()
        self.check_unchosen()
        return self.with_conditions(self.skeleton())

    # what states cannot say

    def check_query(self) -> None:
        bound = self.bound
        if len(bound.components) > MOST_BITS:
            raise UnsuitableError(f"the pattern has more than {MOST_BITS} components")
        if bound.may_lack:
            raise UnsuitableError("events may lack attributes that conditions compare")
        if judged_by_branch(decisive_branches(bound)):
            raise UnsuitableError("negated components are evaluated for each alternative of the condition")
        linked = linked_negations(bound, self.branch)
        if any(linked[negation.component.variable] != number for number, negation in enumerate(bound.negations)):
            raise UnsuitableError("a condition relates negated components to each other")
        inside = self.outside | {end_of(name) for name in self.ends}
        negations = [negation for negation in bound.negations if negation.component.variable not in inside]
        if any(negation.after is None or negation.before is None for negation in negations):
            raise UnsuitableError("a negated component inside a part may be at the edge of the pattern")
        if self.outside and bound.given_up:
            raise UnsuitableError("OUTPUT PARTIAL with a negated component at the edge of the pattern")

    def check_unchosen(self) -> None:
        """Conditions that say something of variables that were not chosen are written out for each linear pattern."""
        always = _surely(self.pattern, self.negative)
        conditions = [conjunct.expression for conjunct in self.conjuncts]
        conditions += [part for _, parts in self.branch.negative for part in parts]
        for condition in conditions:
            absent = s.variables_of(condition) - always - self.negative
            for some in [*({name} for name in absent), absent]:
                if some and without_unchosen(condition, frozenset(some)) != TRUE:
                    raise UnsuitableError("a condition asks whether an event was chosen")

    # states and edges

    def skeleton(self) -> list[_Draft]:
        start = Key(None, frozenset({Configuration((self.pattern,))}))
        numbers: dict[Key, int] = {}
        pending, found = [start], [_Draft(start)]
        numbers[start] = 0
        while pending:
            checkpoint()
            key = pending.pop()
            steps: list[_Step] = []
            final = False
            by_variable: dict[str, list[tuple[Configuration, Transition]]] = {}
            for configuration in key.configurations:
                for transition in transitions(configuration.rest, self.negative):
                    if transition.variable is None:
                        final = final or key.last is not None
                    else:
                        by_variable.setdefault(transition.variable, []).append((configuration, transition))
            for variable in (name for name in self.components if name in by_variable):
                step, target = self.step(key, variable, by_variable[variable])
                if target not in numbers:
                    numbers[target] = len(found)
                    found.append(_Draft(target))
                    pending.append(target)
                    if len(found) > MOST_STATES:
                        raise UnsuitableError(f"the pattern has more than {MOST_STATES} states")
                steps.append(replace(step, target=numbers[target]))
            found[numbers[key]] = _Draft(key, tuple(steps), final)
        return found

    def step(self, key: Key, variable: str, fitting: list[tuple[Configuration, Transition]]) -> tuple[_Step, Key]:
        """The edge on which an event fills a variable, and the state that it leads to."""
        reached: set[Configuration] = set()
        seen: set[tuple[tuple[str, ...], frozenset[str]]] = set()
        for configuration, transition in fitting:
            left = {name for repeat in transition.entered for name in labels_of(repeat)}
            here = configuration.here - left
            # Between two events of a group nothing may have come that ends it; a further round around it is another.
            around = self.repeats[variable]
            goes_on = (
                variable in self.ends and key.last == variable and set(around) & transition.entered == {around[-1]}
            )
            seen.add(((*transition.passed, *([end_of(variable)] if goes_on else [])), here))
            now = here | ({variable} & self.noted if self.repeats[variable] else set())
            reached.add(Configuration(transition.rest, frozenset(now)))
        if len(seen) > 1:
            raise UnsuitableError("an event may belong to one repetition of a group or to the next")
        ((passed, before),) = seen
        # Where nobody asks for the first event of a list, all are alike.
        asked = variable in self.noted or not self.components[variable].kleene
        first = asked and variable not in key.taken
        by = self.bound.reached_by(variable, asked and not first)
        step = _Step(variable, -1, first, any(transition.further for _, transition in fitting), passed, before, by)
        return step, Key(variable, frozenset(reached), key.taken | ({variable} & self.noted))

    def with_conditions(self, drafts: list[_Draft]) -> a.QueryAutomaton:
        """The states with their conditions; the one before the first event moves behind the others."""
        future = [frozenset(step.variable for step in draft.steps) for draft in drafts]
        changed = True
        while changed:
            changed = False
            for number in range(len(drafts) - 1, -1, -1):
                more = future[number].union(*(future[step.target] for step in drafts[number].steps))
                changed = changed or more != future[number]
                future[number] = more
        states: list[a.QueryState] = []
        for number, draft in enumerate(drafts):
            edges = [self.edge(draft.key, step, drafts[step.target].key, future[step.target]) for step in draft.steps]
            if number > 0:
                for by in dict.fromkeys(step.reached_by for step in draft.steps):
                    edges += a.ignores(number - 1, by, bool(self.bound.equivalence))
            closing = self.closing_tests(draft.key)
            edges += [a.ends_match(len(drafts), closing)] if draft.final else []
            states.append(a.State(f"{draft.key.last}{number}" if number > 0 else "start", tuple(edges)))
        final: a.QueryState = a.State("F", kind=a.Kind.FINAL)
        return a.Automaton((*states[1:], states[0], final), len(drafts) - 1, self.killing_outside())

    def edge(self, key: Key, step: _Step, target: Key, future: frozenset[str]) -> a.QueryEdge:
        tests = self.edge_tests(key, step) + (self.settled_tests(key, step, target) if self.next_match else ())
        killing = ((name, self.killing(key, step, name, future)) for name in step.passed)
        forbids = tuple((name, tests) for name, tests in killing if tests is not None)
        edge: a.QueryEdge = a.Edge(a.Action.TAKE, step.target - 1, tests, step.variable, forbids)
        return replace(edge, first=step.first, further=step.further, reached_by=step.reached_by)

    def killing_outside(self) -> tuple[tuple[str, a.Tests], ...]:
        """What an event before or behind all others must pass to kill a match: it is judged when that is complete."""
        always = _surely(self.pattern, self.negative) - self.lists()
        found: list[tuple[str, a.Tests]] = []
        for name in sorted(self.outside):
            parts = self.branch.passed_by(name)
            if any(s.variables_of(part) - {name} - always for part in parts):
                raise UnsuitableError("a negated component at the edge depends on a group or on an optional part")
            found.append((name, tuple(a.Test(part) for part in parts)))
        return tuple(found)

    # conditions

    def edge_tests(self, key: Key, edge: _Step) -> a.Tests:
        """What an event must pass: the conditions of which everything is known with it."""
        found: list[a.Test] = []
        for conjunct in self.conjuncts:
            if edge.variable in conjunct.variables:
                test = self.test_at(key, edge, conjunct.expression)
                if test is not None:
                    found.append(test)
        gap = self.gaps.get(edge.variable)
        if gap is not None and key.last is not None:
            time = self.bound.schema.time
            own = s.Attribute(s.Reference(edge.variable, self.element(edge.variable, s.Element.CURRENT)), time)
            before = s.Attribute(s.Reference(key.last, self.element(key.last, s.Element.LAST)), time)
            passed = s.Arithmetic("-", own, before)
            found += [a.Test(s.Comparison(">=", passed, s.Literal(gap.after)))] if gap.after is not None else []
            found += [a.Test(s.Comparison("<", passed, s.Literal(gap.within)))] if gap.within is not None else []
        return tuple(found)

    def element(self, variable: str, wanted: s.Element) -> s.Element:
        return wanted if self.components[variable].kleene else s.Element.SINGLE

    def test_at(self, key: Key, edge: _Step, expression: s.Expression) -> a.Test | None:
        """A condition that mentions the event at hand; None if it is tested elsewhere, or says nothing here."""
        variable = edge.variable
        mentions = _elements(expression, self.lists())
        if _closes(mentions):
            return None
        own = mentions[variable]
        if own == {s.Element.FIRST} and not edge.first:
            return None
        if own & {s.Element.PREVIOUS, s.Element.BEFORE} and edge.first:
            return None
        if s.Element.FIRST in own and len(own) > 1 and edge.first:
            return None  # `a[i]` beside `a[1]` means the second one on
        walked: list[str] = []
        last: list[str] = []
        for other, elements in mentions.items():
            if other == variable:
                continue
            if other not in key.taken:
                return None
            if not self.components[other].kleene or elements == {s.Element.FIRST}:
                continue
            if elements & {s.Element.PREVIOUS, s.Element.BEFORE, s.Element.FIRST}:
                raise UnsuitableError("a condition on an earlier event of another group")
            shared = self.shared(variable, other) if s.Element.FIRST not in own or len(own) > 1 else ()
            if not shared:
                walked.append(other)
            elif other in edge.here:
                self.check_one_each_round(other, shared)
                last.append(other)
            else:
                return None
        self.check_apart(walked, last)
        return a.Test(_at_last(expression, frozenset(last)), tuple(walked))

    def lists(self) -> frozenset[str]:
        return frozenset(name for name, component in self.components.items() if component.kleene)

    def shared(self, one: str, other: str) -> tuple[Repeat, ...]:
        """The repeated parts that both are in."""
        return tuple(repeat for repeat in self.repeats[one] if repeat in self.repeats[other])

    def check_one_each_round(self, variable: str, shared: tuple[Repeat, ...]) -> None:
        if len(self.repeats[variable]) > len(shared):
            raise UnsuitableError("a condition on each event of a group in a group")

    def check_apart(self, walked: list[str], last: list[str]) -> None:
        """Are lists that a condition goes over in no common group? Else only events of one round would count."""
        for number, name in enumerate(walked):
            if any(self.shared(name, other) for other in (*walked[number + 1 :], *last)):
                raise UnsuitableError("a condition on each repetition of a group that is tested after it")

    def closing_tests(self, key: Key) -> a.Tests:
        """What holds of whole groups is tested when a match is complete."""
        found: list[a.Test] = []
        for conjunct in self.conjuncts:
            mentions = _elements(conjunct.expression, self.lists())
            if not _closes(mentions) or not conjunct.variables <= key.taken:
                continue
            walked = [name for name in conjunct.variables if name in conjunct.every]
            self.check_apart(walked, [])
            if conjunct.from_second or any(s.Element.BEFORE in elements for elements in mentions.values()):
                raise UnsuitableError("a condition on a whole group and on its earlier events")
            found.append(a.Test(conjunct.expression, tuple(walked)))
        return tuple(found)

    def settled_tests(self, key: Key, edge: _Step, target: Key) -> a.Tests:
        """Under skip_till_next_match: the conditions on whole groups that the event of an edge settles.

        A condition is settled as soon as everything is known that it mentions and its groups take no further event. An
        event that fails it is passed, since no linear pattern that agrees with the run could take it.
        """
        found: list[a.Test] = []
        for conjunct in self.conjuncts:
            mentions = _elements(conjunct.expression, self.lists())
            if not _closes(mentions) or _is_settled(mentions, key):
                continue
            settled = {
                _is_settled(mentions, replace(target, configurations=frozenset({each})))
                for each in target.configurations
            }
            if len(settled) > 1:
                raise UnsuitableError("under skip_till_next_match a condition on a group that may be complete or not")
            if settled == {True}:
                if conjunct.every:
                    raise UnsuitableError("under skip_till_next_match a condition on a whole group and on each event")
                expression = conjunct.expression
                if mentions.get(edge.variable, set()) & {*_CLOSING}:
                    expression = _with_event(expression, edge.variable)
                found.append(a.Test(expression))
        return tuple(found)

    def ending(self, key: Key, edge: _Step) -> a.Tests | None:
        """What an event must pass to end a group before an edge takes a further one; None: nothing ends it."""
        condition = self.ends[edge.variable]
        walked: list[str] = []
        last: list[str] = []
        for other, elements in _elements(condition, self.lists()).items():
            if other in (edge.variable, end_of(edge.variable)):
                continue  # what is read of the group itself is what it took so far
            if other not in key.taken:
                return None  # a condition that mentions what was not chosen says nothing
            if not self.components[other].kleene or elements <= {s.Element.FIRST}:
                continue
            shared = self.shared(edge.variable, other)
            if not shared and elements <= {s.Element.FIRST, s.Element.LAST, s.Element.ALL}:
                continue  # a group that is closed
            if not shared or elements - {s.Element.CURRENT, s.Element.SINGLE}:
                raise UnsuitableError("UNTIL looks at each event of another group")
            if other not in edge.here:
                return None
            self.check_one_each_round(other, shared)
            last.append(other)
        return (a.Test(_at_last(condition, frozenset(last)), tuple(walked)),)

    def killing(self, key: Key, edge: _Step, negated: str, future: frozenset[str]) -> a.Tests | None:
        """What an event of a negated component must pass to kill a run that takes an edge past it."""
        if is_end(negated):
            return self.ending(key, edge)
        taken = key.taken | {edge.variable}
        here = edge.here | {edge.variable}
        found: list[a.Test] = []
        for part in self.branch.passed_by(negated):
            mentions = _elements(part, self.lists())
            walked: list[str] = []
            last: list[str] = []
            unchosen = False
            for other, elements in mentions.items():
                if other == negated:
                    continue
                if other not in taken:
                    if other in future:
                        raise UnsuitableError("a negated component depends on a later event")
                    unchosen = True
                elif self.components[other].kleene and elements != {s.Element.FIRST}:
                    shared = self.shared(negated, other)
                    if shared and elements <= {s.Element.CURRENT, s.Element.SINGLE} and other in here:
                        self.check_one_each_round(other, shared)
                        last.append(other)
                        continue
                    if shared or other in future or elements - {s.Element.CURRENT, s.Element.SINGLE}:
                        raise UnsuitableError("a negated component depends on a group that is not complete")
                    walked.append(other)
            self.check_apart(walked, last)
            if not unchosen:
                found.append(a.Test(_at_last(part, frozenset(last)), tuple(walked)))
        return tuple(found)


def _repeats(pattern: Pattern, around: tuple[Repeat, ...]) -> Iterator[tuple[str, tuple[Repeat, ...]]]:
    """For each label the repeated parts that it is in, the outermost first."""
    match pattern:
        case Single(label=label):
            yield label, around
        case Sequence(parts=parts) | Choice(parts=parts) | AnyOrder(parts=parts):
            for part in parts:
                yield from _repeats(part, around)
        case Repeat(part=part):
            yield from _repeats(part, (*around, pattern) if is_list(pattern) else around)


def _elements(expression: s.Expression, lists: frozenset[str]) -> dict[str, set[s.Element]]:
    """For each variable which of its events a condition mentions; inside an aggregate a list alone means all."""
    found: dict[str, set[s.Element]] = {}
    pending = [(expression, False)]
    while pending:
        node, aggregate = pending.pop()
        match node:
            case s.Reference(variable=variable, element=element):
                whole = aggregate and element is s.Element.SINGLE and variable in lists
                found.setdefault(variable, set()).add(s.Element.ALL if whole else element)
            case s.Length(variable=variable):
                found.setdefault(variable, set()).add(s.Element.ALL)
        inside = aggregate or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
        pending.extend((child, inside) for child in s.children(node))
    return found


def _closes(mentions: dict[str, set[s.Element]]) -> bool:
    """Does a condition mention a whole group, or the last event of one?"""
    return any(element in _CLOSING for elements in mentions.values() for element in elements)


def _is_settled(mentions: dict[str, set[s.Element]], key: Key) -> bool:
    """Is everything known in a state that a condition mentions, so that no later event changes it?"""
    later = {name for each in key.configurations for frame in each.rest for name in _labels_to_come(frame)}
    return all(
        name in key.taken and not (elements & {*_CLOSING} and name in later) for name, elements in mentions.items()
    )


def _labels_to_come(frame: Frame) -> Iterator[str]:
    match frame:
        case Round(repeat=repeat, count=count):
            yield from labels_of(repeat.part) if repeat.most is None or count < repeat.most else ()
        case Others(parts=parts):
            yield from (name for part in parts for name in labels_of(part))
        case _:
            yield from labels_of(frame)


def _with_event(node: s.Expression, variable: str) -> s.Expression:
    """A condition on a whole group before its last event is taken: what was taken so far, and that event."""

    def at(inner: s.Expression, element: s.Element) -> s.Expression:
        if isinstance(inner, s.Reference) and inner.variable == variable:
            return s.Reference(variable, element, span=inner.span)
        return s.rebuild(inner, lambda each: at(each, element))

    match node:
        case s.Length(variable=name) if name == variable:
            taken = s.Call("count", (s.Reference(variable, s.Element.BEFORE),))
            return s.Arithmetic("+", taken, s.Literal(1))
        case s.Call(function=function, arguments=(argument,)) if function.lower() in AGGREGATES:
            if s.variables_of(argument) != {variable}:
                return node
            if function.lower() == "count" and isinstance(argument, s.Reference):
                return _with_event(s.Length(variable), variable)
            if function.lower() != "sum":
                raise UnsuitableError(f"under skip_till_next_match {function}() over a group that is counted")
            total, value = s.Call("sum", (at(argument, s.Element.BEFORE),)), at(argument, s.Element.CURRENT)
            added = s.Arithmetic("+", total, s.Call("coalesce", (value, s.Literal(0))))
            return s.Call("coalesce", (added, value))
        case s.Reference(variable=name, element=s.Element.LAST) if name == variable:
            return s.Reference(variable, s.Element.CURRENT, span=node.span)
    return s.rebuild(node, lambda inner: _with_event(inner, variable))


def _at_last(node: s.Expression, variables: frozenset[str]) -> s.Expression:
    """The condition with the event of the open round for the current one of a list."""
    if isinstance(node, s.Reference) and node.variable in variables:
        return s.Reference(node.variable, s.Element.LAST, span=node.span)
    return s.rebuild(node, lambda inner: _at_last(inner, variables))
