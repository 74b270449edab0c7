"""Conditions of Flink patterns: our own expressions, over the event at hand and what each step took before it.

A bare attribute is that of the event at hand, as are those of the step's own name. Of other steps, `a.price` is the
price of its event (of each of them, if there are several), `a[1]` its first, `a[a.LEN]` its last, and `a[]` inside of
aggregates all that it took. Of the step's own, `a[i-1]` is the last that it took, and `a[]` and `a[..i-1]` all of them.
As in Flink's loops over `getEventsForPattern`, the sum of no events is 0. What else speaks of earlier events of the
step says nothing about its first one, as in our own language; what speaks of another step that took nothing is NULL.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bind import ConditionValues
from cepheid.language.functions import find_function
from cepheid.language.sase.parse import parse
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import check_condition

HERE = ""  # the variable of the event at hand
_PREFIX = "PATTERN SEQ(* e) WHERE "
_COLLECTIONS = (DataType.LIST, DataType.TEXTS, DataType.MAP)
_COUNTED = frozenset({"sum", "count"})  # of no events they are 0


@dataclass(frozen=True)
class Atom:
    """A condition that is judged at once, for one event at hand.

    `expression` names the event at hand with the variable HERE; elements of steps are SINGLE (each of its events),
    FIRST, LAST and, inside of aggregates, ALL.
    """

    expression: s.Expression
    own: str | None  # the step whose condition it is; None: of a group
    from_second: bool = False  # says nothing as long as the step itself took no event
    text: str = ""

    @cached_property
    def is_simple(self) -> bool:
        """Does it speak of nothing but the event at hand?"""
        return not self.steps()

    def steps(self) -> frozenset[str]:
        """The steps that it looks back at."""
        found = {node.variable for node in s.walk(self.expression) if isinstance(node, s.Reference | s.Length)}
        return frozenset(found - {HERE})


@dataclass(frozen=True)
class Steps:
    """The steps of a pattern that hold events."""

    all: frozenset[str]
    before: frozenset[str]  # those that may hold some when the condition is judged


@dataclass(frozen=True)
class _Scope:
    """What the names in a condition can mean."""

    text: str
    own: str | None
    steps: frozenset[str]
    before: frozenset[str]
    schema: Schema
    parameters: Mapping[str, object]

    def fail(self, message: str, node: s.Node, code: str, hint: str | None = None) -> NoReturn:
        """Raises an error that points into the condition."""
        start, end = (place - len(_PREFIX) for place in node.span)
        raise QueryError(message, text=self.text, start=start, end=end, hint=hint, code=code)

    def literal(self, value: object, node: s.Node) -> s.Literal:
        """The value of a parameter."""
        return ConditionValues(self.schema, self.parameters, self.fail).literal(value, node)


def bind_condition(
    text: str, own: str | None, steps: Steps, schema: Schema, parameters: Mapping[str, object]
) -> tuple[Atom, ...]:
    """A condition over the columns of a table, as parts that all have to hold."""
    scope = _Scope(text, own, steps.all, steps.before, schema, parameters)
    values = ConditionValues(schema, parameters, scope.fail)
    expression = parse_condition(text)
    found = []
    for part in expression.operands if isinstance(expression, s.And) else (expression,):
        resolved = values.resolved(_resolved(part, scope, aggregate=False))
        check_condition(resolved, schema, scope.fail)
        start, end = (place - len(_PREFIX) for place in part.span)
        found.append(Atom(resolved, own, _from_second(part, scope), text[start:end] or text))
    return tuple(found)


def type_condition(type: str, schema: Schema) -> Atom:
    """`subtype`: the event is of a type."""
    if schema.type is None:
        hint = "pass type='...', the column that holds the event type"
        raise QueryError(f"subtype('{type}') needs the types of events", hint=hint, code="flink-pattern")
    event_type = s.Attribute(s.Reference(HERE), schema.type)
    return Atom(s.Comparison("=", event_type, s.Literal(type)), None, text=f"{schema.type} = '{type}'")


@lru_cache(maxsize=1024)
def parse_condition(text: str) -> s.Expression:
    """The syntax tree of a condition alone; its spans are those of a query that has it as its WHERE."""
    try:
        query = parse(_PREFIX + text)
    except QueryError as error:
        start = max((error.start or 0) - len(_PREFIX), 0)
        end = max((error.end or 0) - len(_PREFIX), start + 1)
        raise QueryError(error.message, text=text, start=start, end=end, hint=error.hint, code=error.code) from None
    only_where = s.QuerySyntax(query.components, query.sequence, query.where)
    if query.where is None or query != only_where:
        hint = "clauses such as WITHIN are methods of the pattern"
        raise QueryError("this is more than a condition", text=text, start=0, end=len(text), hint=hint, code="syntax")
    return query.where


def _resolved(node: s.Expression, scope: _Scope, aggregate: bool) -> s.Expression:
    match node:
        case s.Name(name=name):
            return _word(node, name, scope, aggregate)
        case s.Attribute(of=of, name=name, default=default):
            key = None if default is None else _resolved(default, scope, aggregate)
            if key is not None and scope.schema.type_of(name) not in _COLLECTIONS:
                scope.fail("a default is for an event that is missing", node, "flink-pattern", "write coalesce(...)")
            if of.variable != scope.own:
                at_hand = name if scope.schema.type_of(name) is not None else None
                _known(of.variable, of, scope, at_hand)
            return replace(node, of=_element(of, scope, aggregate), default=key)
        case s.Reference():
            if not aggregate:
                scope.fail("an event is not a value", node, "event-as-value", f"name an attribute: {node.variable}.x")
            return _element(node, scope, aggregate)
        case s.Length(variable=variable):
            _known(variable, node, scope)
            return node
        case s.Equivalence():
            hint = "write name = a.name, or pass partition_by=['name'] to match each name by itself"
            scope.fail("an equivalence test cannot be used in one step", node, "flink-pattern", hint)
        case s.Membership(values=s.Name() as values):
            members = scope.parameters.get(values.name)
            if not isinstance(members, list | tuple | set | frozenset):
                scope.fail(f"no list '{values.name}'", values, "unknown-parameter", "pass parameters={...}")
            literals = tuple(scope.literal(member, values) for member in members)
            return replace(node, operand=_resolved(node.operand, scope, aggregate), values=literals)
        case s.Call(function=function) if function.lower() in AGGREGATES:
            return _aggregated(node, scope)
        case s.Call(function=function) if find_function(function) is None and function.lower() != "coalesce":
            guess = closest(function, AGGREGATES)
            scope.fail(
                f"no function '{function}'", node, "unknown-function", f"did you mean {guess}?" if guess else None
            )
    return s.rebuild(node, lambda inner: _resolved(inner, scope, aggregate))


def _word(node: s.Name, name: str, scope: _Scope, aggregate: bool) -> s.Expression:
    """A bare word: an attribute of the event at hand, a parameter, or a step whose events are counted."""
    if aggregate and name in scope.steps:
        return s.Reference(name, s.Element.ALL, span=node.span)
    if scope.schema.type_of(name) is not None:
        return s.Attribute(s.Reference(HERE, span=node.span), name, span=node.span)
    if name in scope.parameters:
        return scope.literal(scope.parameters[name], node)
    guess = closest(name, [*scope.schema.names, *scope.steps])
    hint = f"did you mean '{guess}'?" if guess else f"the columns are {', '.join(scope.schema.names)}"
    quoted = [step for step in sorted(scope.steps) if step.startswith(name) and not step.isidentifier()]
    if quoted:
        hint = f"the step is written `{quoted[0]}`, in backticks"
    scope.fail(f"no attribute '{name}'", node, "unknown-attribute", hint)


def _known(step: str, node: s.Node, scope: _Scope, at_hand: str | None = None) -> None:
    """Raises where there is no such step; `at_hand` is the attribute asked for, if the event at hand has it."""
    if step not in scope.steps:
        guess = closest(step, scope.steps)
        hint = f"did you mean '{guess}'?" if guess else f"the steps are {', '.join(sorted(scope.steps))}"
        if at_hand is not None and guess is None:
            hint = f"for the current event, write {at_hand} alone; {hint}"
        if step in scope.schema.names:
            hint = f"'{step}' is a column; a field of a struct needs a column of its own"
        scope.fail(f"no step '{step}'", node, "unknown-variable", hint)


def _element(of: s.Reference, scope: _Scope, aggregate: bool) -> s.Reference:
    own = of.variable == scope.own
    if not own:
        _known(of.variable, of, scope)
    if aggregate:
        if own and of.element in (s.Element.SINGLE, s.Element.CURRENT):
            hint = f"write {of.variable}[] for the events that it took before"
            scope.fail("an aggregate is over several events", of, "flink-pattern", hint)
        return replace(of, element=s.Element.ALL)
    match of.element:
        case s.Element.SINGLE | s.Element.CURRENT if own:
            return replace(of, variable=HERE, element=s.Element.SINGLE)
        case s.Element.PREVIOUS if own:
            return replace(of, element=s.Element.LAST)
        case s.Element.SINGLE | s.Element.FIRST | s.Element.LAST:
            if of.variable not in scope.before:
                hint = f"compare them in the condition of '{of.variable}', which knows both"
                scope.fail(f"step '{of.variable}' comes later and has no event yet", of, "flink-pattern", hint)
            return of
        case s.Element.ALL | s.Element.BEFORE:
            scope.fail("an event list is not a value", of, "flink-pattern", "write sum(...), count(...), max(...), ...")
    hint = f"write {of.variable}[1] or {of.variable}[{of.variable}.LEN]"
    scope.fail(f"[i] counts the events of the step itself, not those of '{of.variable}'", of, "bad-index", hint)


def _aggregated(node: s.Call, scope: _Scope) -> s.Expression:
    if len(node.arguments) != 1:
        scope.fail(f"{node.function} takes one argument", node, "arguments")
    argument = _resolved(node.arguments[0], scope, aggregate=True)
    steps = {inner.variable for inner in s.walk(argument) if isinstance(inner, s.Reference)}
    if len(steps) != 1 or HERE in steps:
        hint = f"write {node.function}(a[].x), with the events of one step"
        scope.fail("an aggregate is over the events of one step", node, "flink-pattern", hint)
    return replace(node, arguments=(argument,))


def _from_second(part: s.Expression, scope: _Scope) -> bool:
    """Does it need an earlier event of the step itself? Sums and counts of none are 0 and need none."""

    def visit(node: s.Expression) -> bool:
        if isinstance(node, s.Call) and node.function.lower() in _COUNTED:
            return False
        if isinstance(node, s.Reference) and node.variable == scope.own:
            return node.element not in (s.Element.SINGLE, s.Element.CURRENT)
        return any(visit(inner) for inner in s.children(node))

    return scope.own is not None and visit(part)
