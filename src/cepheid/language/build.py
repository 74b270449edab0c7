"""Patterns in Python: the same queries as the text, for programs that compose them.

>>> shelf, register, exit_ = event("Shelf").as_("a"), ~event("Register").as_("b"), event("Exit").as_("c")
>>> print(seq(shelf, register, exit_).where(equivalent("tag_id"), shelf["price"] > 100).within(hours=12))
PATTERN SEQ(Shelf a, !(Register b), Exit c)
WHERE [tag_id] AND a.price > 100
WITHIN 12 hours
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, NoReturn

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.expressions import (
    Aliased,
    Elements,
    EventExpr,
    Expr,
    attr,
    avg,
    call,
    case,
    checked_name,
    col,
    count,
    equivalent,
    first,
    last,
    lit,
    max_,
    min_,
    node_of,
    param,
    sum_,
    var,
)
from cepheid.language.pattern import Repeat, Single
from cepheid.language.printing import component_text, quantifier_text, to_text
from cepheid.language.sase.parse_pattern import PLUS, Part, in_sequence, marked, repeated, single
from cepheid.language.sase.parse_pattern import all_of as any_order
from cepheid.language.sase.parse_pattern import one_of as alternatives
from cepheid.language.step_strategies import with_own_strategy
from cepheid.language.units import UNITS

__all__ = [
    "Event",
    "Expr",
    "Pattern",
    "all_of",
    "any_of",
    "attr",
    "avg",
    "call",
    "case",
    "col",
    "count",
    "equivalent",
    "event",
    "first",
    "last",
    "lit",
    "max_",
    "min_",
    "one_of",
    "only",
    "param",
    "seq",
    "sum_",
    "var",
]


@dataclass(frozen=True, repr=False)
class Event(Elements):
    """One place of a pattern. Once it has a name, `[...]` gives its attributes.

    >>> a = event("Stock").one_or_more().as_("a")
    >>> a
    <Event Stock+ a[]>
    >>> a.current["price"] > a.previous["price"]
    <Expr a[i].price > a[i-1].price>
    """

    types: tuple[str, ...] | None
    variable: str | None = None
    any: bool = False
    negative: bool = False
    kleene: bool = False
    often: tuple[int, int | None] | None = None  # how many events, where it is not one, or one or more
    gap: s.Gap | None = None
    end: s.Expression | None = None  # the condition that ends a group

    def as_(self, variable: str) -> Event:
        """The same place under a name."""
        return replace(self, variable=checked_name(variable, "a variable"))

    def one_or_more(self) -> Event:
        """Kleene plus: one or more events (SASE+ section 2)."""
        return replace(self, kleene=True, often=None)

    def optional(self) -> Event:
        """At most one event.

        >>> event("B").as_("b").optional(), event("B").as_("b").times(2, 5)
        (<Event B? b>, <Event B{2,5} b[]>)
        """
        return replace(self, kleene=False, often=(0, 1))

    def zero_or_more(self) -> Event:
        """Any number of events."""
        return replace(self, kleene=True, often=(0, None))

    def times(self, least: int, most: int | None = None) -> Event:
        """So many events, or from so many to so many."""
        return replace(self, kleene=True, often=_rounds(least, most))

    def times_or_more(self, least: int) -> Event:
        """At least so many events."""
        return replace(self, kleene=True, often=_rounds(least, None, open_ended=True))

    def until(self, condition: Expr) -> Event:
        """Where the group ends: it takes no event at or after the first later one, of any type, that passes this.

        >>> b = event("B").one_or_more().as_("b")
        >>> print(seq(event("A").as_("a"), b.until(b["x"] > 3)))
        PATTERN SEQ(A a, B+ b[] UNTIL b.x > 3)
        """
        if not self.kleene:
            hint = "write one_or_more(), zero_or_more() or times() before it"
            raise QueryError("until() ends a group of events", hint=hint, code="until-of-one")
        if not isinstance(condition, Expr):
            hint = 'a condition is made of attributes of the event that ends it, such as b["x"] > 1'
            raise QueryError(f"{condition!r} is not a condition", hint=hint, code="bad-condition")
        return replace(self, end=node_of(condition))

    def within_gap(self, within: int | timedelta | None = None, *, after: int | timedelta | None = None) -> Event:
        """How long after the event selected before it: less than `within`, at least `after`.

        >>> print(seq(event("A").as_("a"), event("B").as_("b").within_gap(timedelta(minutes=5))))
        PATTERN SEQ(A a, B b WITHIN 5 minutes)
        """
        return replace(self, gap=s.Gap(_gap_length(after), _gap_length(within)))

    def plus(self) -> Event:
        """The same as `one_or_more`."""
        return self.one_or_more()

    def __invert__(self) -> Event:
        """Such an event must not happen here."""
        return replace(self, negative=not self.negative)

    def name(self) -> str:
        """The variable, which it must have to be mentioned."""
        if self.variable is None:
            hint = f'{self!r} has none: give it one with as_("a")'
            raise QueryError("conditions refer to an event by its variable", hint=hint, code="unnamed-event")
        return self.variable

    def element(self, element: s.Element) -> EventExpr:
        """The variable with an index."""
        return EventExpr(s.Reference(self.name(), element))

    def __getitem__(self, name: str) -> Expr:
        return self.element(s.Element.SINGLE)[name]

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"an event has no method {name!r}; write [{name!r}] for the attribute {name!r}")

    def __repr__(self) -> str:
        component = s.Component(
            self.variable or "", self.types, self.any, self.negative, self.kleene, self.variable is not None
        )
        quantifier = quantifier_text(Repeat(Single(""), *self.often)) if self.often is not None else None
        return f"<Event {component_text(component, (), quantifier)}>"

    def part(self) -> Part:
        """This place as a part of a pattern."""
        often = self.often or (PLUS if self.kleene else None)
        return single(replace(self.component(), gap=self.gap, until=self.end), often)

    def component(self, *, alone: bool = False) -> s.Component:
        """The syntax of this place; without a variable, the name of its type stands in for one."""
        if self.variable is not None:
            return s.Component(self.variable, self.types, self.any, self.negative, self.kleene)
        if self.types is None or self.kleene:
            what = "one or more events" if self.kleene else "an event of any type"
            hint = f'give {self!r} one with as_("a")'
            raise QueryError(f"{what} needs a variable", hint=hint, code="missing-variable")
        variable = "event" if alone else "_or_".join(self.types)
        return s.Component(variable, self.types, self.any, self.negative, named=False)


def event(*types: str) -> Event:
    """An event of one type, of several, or of any (without arguments).

    >>> event("Shelf").as_("a"), event("Shelf", "Exit").as_("b"), event().as_("c")
    (<Event Shelf a>, <Event ANY(Shelf, Exit) b>, <Event * c>)
    """
    names = tuple(checked_name(name, "an event type") for name in types)
    return Event(names or None, any=len(names) > 1)


def any_of(*types: str) -> Event:
    """An event of one of several types; a comparison with an attribute that its type lacks holds (SASE 2.2.2)."""
    if not types:
        raise QueryError("any_of() needs event types", hint="event() takes events of every type", code="bad-pattern")
    return replace(event(*types), any=True)


def seq(*parts: Event | Pattern) -> Pattern:
    """A pattern of events and other patterns in this order.

    >>> a, b, c = event("A").as_("a"), event("B").as_("b"), event("C").as_("c")
    >>> print(seq(seq(a, b).one_or_more(), c.optional()))
    PATTERN SEQ((A a, B b)+, C? c)
    """
    return _pattern(in_sequence([_part(one) for one in parts] or _refuse_empty(), s.NOWHERE))


def one_of(*parts: Event | Pattern) -> Pattern:
    """One of several events or patterns.

    >>> print(seq(event("A").as_("a"), one_of(event("B").as_("b"), event("C").as_("c"))))
    PATTERN SEQ(A a, (B b | C c))
    """
    return _pattern(alternatives([_part(one) for one in parts] or _refuse_empty(), s.NOWHERE))


def all_of(*parts: Event | Pattern) -> Pattern:
    """All of several events or patterns, in any order.

    >>> print(seq(all_of(event("A").as_("a"), event("B").as_("b")), event("C").as_("c")))
    PATTERN SEQ(AND(A a, B b), C c)
    """
    return _pattern(any_order([_part(one) for one in parts] or _refuse_empty(), s.NOWHERE))


def only(one: Event) -> Pattern:
    """A pattern of a single event: a filter.

    >>> print(only(event("SHELF-READING")).where(col("category") == "food"))
    PATTERN SHELF-READING
    WHERE category = 'food'
    """
    return Pattern(s.QuerySyntax((_event(one).component(alone=True),), sequence=False))


@dataclass(frozen=True, repr=False)
class Pattern:
    """A query in the making. Every method returns a new one; `cepheid.match` takes it in place of a text."""

    query: s.QuerySyntax

    def to_syntax(self) -> s.QuerySyntax:
        """The checked syntax tree, the same as that of the printed text."""
        return check(self.query)

    def __str__(self) -> str:
        return to_text(self.query)

    def __repr__(self) -> str:
        return f"<Pattern {' '.join(str(self).split())}>"

    def where(self, *conditions: Expr) -> Pattern:
        """Adds conditions; all of them must hold.

        >>> a, b = event("A").as_("a"), event("B").as_("b")
        >>> print(seq(a, b).where(a["x"] > 1).where((a["x"] < b["x"]) | b["x"].is_null()))
        PATTERN SEQ(A a, B b)
        WHERE a.x > 1 AND (a.x < b.x OR b.x IS NULL)
        """
        found = _conjuncts(self.query.where)
        for condition in conditions:
            if not isinstance(condition, Expr):  # True and False, too: Python gives them for events compared by mistake
                hint = 'a condition is made of attributes, such as a["x"] > 1'
                raise QueryError(f"{condition!r} is not a condition", hint=hint, code="bad-condition")
            found += _conjuncts(node_of(condition))
        joined = None if not found else found[0] if len(found) == 1 else s.And(tuple(found))
        return self._with(where=joined)

    def define(self, **definitions: Expr) -> Pattern:
        """Names for events that pass a condition, to stand where types do; `col("x")` is an attribute of the event.

        >>> print(seq(event("small").as_("a"), event("B").as_("b")).define(small=col("amount") < 10))
        PATTERN SEQ(small a, B b)
        DEFINE small AS amount < 10
        """
        found = [s.Definition(name, node_of(condition)) for name, condition in definitions.items()]
        return self._with(definitions=(*self.query.definitions, *found))

    # as a part of another pattern

    def optional(self) -> Pattern:
        """The whole of it at most once."""
        return self._repeated(0, 1)

    def one_or_more(self) -> Pattern:
        """At least one round; its variables are lists."""
        return self._repeated(1, None)

    def zero_or_more(self) -> Pattern:
        """Any number of rounds."""
        return self._repeated(0, None)

    def times(self, least: int, most: int | None = None) -> Pattern:
        """So many rounds, or from so many to so many."""
        return self._repeated(*_rounds(least, most))

    def _repeated(self, least: int, most: int | None) -> Pattern:
        return _pattern(repeated(_part(self), (least, most), s.NOWHERE))

    # event selection strategies

    def strict_contiguity(self, *variables: Event | EventExpr | str) -> Pattern:
        """No event of any kind lies between two selected ones."""
        return self._selecting(s.Strategy.STRICT_CONTIGUITY, variables)

    def partition_contiguity(self, *variables: Event | EventExpr | str) -> Pattern:
        """No event with the same equivalence-test values lies between two selected ones."""
        return self._selecting(s.Strategy.PARTITION_CONTIGUITY, variables)

    def skip_till_next_match(self, *variables: Event | EventExpr | str) -> Pattern:
        """Only events that do not fit may be skipped."""
        return self._selecting(s.Strategy.SKIP_TILL_NEXT, variables)

    def skip_till_any_match(self, *variables: Event | EventExpr | str) -> Pattern:
        """Any event may be skipped: every combination that fits is a match. This is the default."""
        return self._selecting(s.Strategy.SKIP_TILL_ANY, variables)

    def _selecting(self, strategy: s.Strategy, variables: tuple[Event | EventExpr | str, ...]) -> Pattern:
        """All variables, or none, name the query's own strategy; some of them, one for these steps.

        >>> a, b, c = event("A").as_("a"), event("B").one_or_more().as_("b"), event("C").as_("c")
        >>> print(seq(a, b, c).skip_till_next_match().strict_contiguity(c).skip_till_any_match(b.current))
        PATTERN SEQ(A a, B+ b[], C c)
        WHERE skip_till_next_match(a, b[], c) { } AND strict_contiguity(c) AND skip_till_any_match(b[i])
        """
        if not variables:
            names = tuple(component.variable for component in self.query.components)
            return self._with(selection=s.Selection(strategy, names))
        written = s.StepSelection(strategy, tuple(_step(one) for one in variables))
        alone = with_own_strategy(replace(self.query, selection=None, step_selections=(written,)))
        if alone.selection is not None:
            return self._with(selection=alone.selection)
        return self._with(step_selections=(*self.query.step_selections, written))

    # window and probabilities

    def within(self, length: int | float | timedelta | Expr | None = None, **unit: int | float | Expr) -> Pattern:
        """How long a match may last: a timedelta, a number of the time column's own units, `events=`, or a unit.

        >>> a_pattern = seq(event("A"), event("B"))
        >>> for windowed in (a_pattern.within(500), a_pattern.within(hours=12), a_pattern.within(events=100)):
        ...     print(str(windowed).splitlines()[-1])
        WITHIN 500
        WITHIN 12 hours
        WITHIN 100 EVENTS
        >>> print(str(a_pattern.within(timedelta(minutes=90))).splitlines()[-1])
        WITHIN 90 minutes
        """
        hint = "within(500), within(hours=12), within(events=100) or within(timedelta(...))"
        if (length is None) == (not unit) or len(unit) > 1:
            raise QueryError("a window has one length", hint=hint, code="bad-window")
        name, given = next(iter(unit.items()), (None, length))
        if name is not None and name != "events" and name not in UNITS:
            raise QueryError(f"no time unit '{name}'", hint=f"one of {', '.join(UNITS)}, events", code="unknown-unit")
        if isinstance(given, timedelta) and name is None:
            return self._with(within=_window(given))
        if isinstance(given, Expr):
            parameter = node_of(given)
            if isinstance(parameter, s.Name):
                return self._with(within=s.Window(parameter, name))
        number = _number(given)
        if number is None or not 0 < number < math.inf:
            raise QueryError(f"a window cannot last {given!r}", hint=hint, code="bad-window")
        return self._with(within=s.Window(number, name))

    def threshold(self, probability: float) -> Pattern:
        """The least probability of a match with missing events that is reported (AYAC section 2.2)."""
        if probability == 0:
            raise QueryError("a threshold of 0 is outside (0, 1]", hint="pass a number above 0", code="bad-probability")
        return self._with(threshold=_probability(probability))

    def confidence(self, probability: float) -> Pattern:
        """The least probability of a match with imprecise times that is reported."""
        return self._with(confidence=_probability(probability))

    def forecast(self, probability: float) -> Pattern:
        """Reports partial matches, each once, as soon as they complete with at least this probability."""
        if probability == 0:
            raise QueryError("a forecast of 0 is outside (0, 1]", hint="pass a number above 0", code="bad-probability")
        return self._with(forecast=_probability(probability))

    # results

    def returning(self, *items: Expr | Event | Aliased | str, **named: Expr | Event) -> Pattern:
        """The columns of the result; without it, the event of every positive variable.

        >>> a, b = event("A").as_("a"), event("B").as_("b")
        >>> print(seq(a, b).returning(a, b["x"].alias("in"), gap=b["ts"] - a["ts"]))
        PATTERN SEQ(A a, B b)
        RETURN a, b.x AS `in`, b.ts - a.ts AS gap
        """
        found = []
        for item in items:
            if isinstance(item, str) and item == "*":
                found.append(s.Returned(s.Star()))
                continue
            alias = item.name if isinstance(item, Aliased) else None
            found.append(s.Returned(item.node if isinstance(item, Aliased) else node_of(item), alias))
        found += [s.Returned(node_of(item), checked_name(name, "a column")) for name, item in named.items()]
        if not found:
            raise QueryError("nothing to return", hint="leave returning() out to get every event", code="bad-return")
        return self._with(returns=tuple(found))

    def all_matches(self) -> Pattern:
        """Reports every match. This is the default."""
        return self._with(output=s.Output())

    def non_overlap(self) -> Pattern:
        """Reports a match only if it starts after the last reported one of its partition ended."""
        return self._with(output=s.Output(s.OutputMode.NON_OVERLAP))

    def maximal(self) -> Pattern:
        """Reports, of matches with missing events, only those that no other one contains."""
        return self._with(output=s.Output(s.OutputMode.MAXIMAL))

    def partial(self) -> Pattern:
        """Also reports runs whose window passed before they were complete."""
        return self._with(output=s.Output(s.OutputMode.PARTIAL))

    def top(self, matches: int) -> Pattern:
        """Reports the matches with the highest confidence."""
        if type(matches) is not int or not 0 < matches < 2**63:
            raise QueryError(f"top() takes a whole number above 0, not {matches!r}", code="bad-output")
        return self._with(output=s.Output(s.OutputMode.TOP, matches))

    def _with(self, **changes: Any) -> Pattern:
        return Pattern(replace(self.query, **changes))


def _pattern(part: Part) -> Pattern:
    return Pattern(s.QuerySyntax(marked(part), pattern=part.pattern))


def _part(one: object) -> Part:
    """An event, or a pattern that has no clauses of its own, as a part of a pattern."""
    if not isinstance(one, Pattern):
        return _event(one).part()
    if one.query != s.QuerySyntax(one.query.components, one.query.sequence, pattern=one.query.pattern):
        hint = "put where(), within() and other clauses after the whole pattern"
        raise QueryError("a part of a pattern has no clauses of its own", hint=hint, code="bad-pattern")
    return Part(one.query.pattern, one.query.components)


def _rounds(least: int, most: int | None, *, open_ended: bool = False) -> tuple[int, int | None]:
    most = most if most is not None or open_ended else least
    if least < 0 or most == 0 or (most is not None and most < least):
        raise QueryError("not a number of repetitions", hint="write times(3) or times(2, 5)", code="bad-quantifier")
    return least, most


def _gap_length(given: int | timedelta | None) -> s.Window | None:
    if given is None:
        return None
    return _window(given) if isinstance(given, timedelta) else s.Window(given)


def _step(one: Event | EventExpr | str) -> s.Reference:
    """A variable, or an element of its group, that a strategy names."""
    if isinstance(one, str):
        return s.Reference(one)
    node = node_of(one) if isinstance(one, EventExpr) else s.Reference(_event(one).name())
    assert isinstance(node, s.Reference)
    return node


def _event(one: object) -> Event:
    if not isinstance(one, Event):
        hint = f"write event({one!r})" if isinstance(one, str) else 'for example seq(event("A"), event("B"))'
        raise QueryError(f"a pattern is made of events, not of {one!r}", hint=hint, code="bad-pattern")
    return one


def _refuse_empty() -> NoReturn:
    hint = 'for example seq(event("A"), event("B"))'
    raise QueryError("a pattern needs at least one event", hint=hint, code="bad-pattern")


def _conjuncts(condition: s.Expression | None) -> list[s.Expression]:
    if condition is None:
        return []
    return list(condition.operands) if isinstance(condition, s.And) else [condition]


def _window(length: timedelta) -> s.Window:
    """The length in the largest unit that measures it without a rest."""
    microseconds = length // timedelta(microseconds=1)
    if microseconds <= 0:
        raise QueryError("a window must be longer than zero", code="bad-window")
    fitting = {unit: nano // 1000 for unit, nano in UNITS.items() if nano >= 1000}
    unit = max((unit for unit, size in fitting.items() if microseconds % size == 0), key=fitting.__getitem__)
    return s.Window(microseconds // fitting[unit], unit)


def _number(value: object) -> int | float | None:
    if not isinstance(value, str) and hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _probability(value: object) -> float:
    number = _number(value)
    if number is None or not 0 <= number <= 1:
        raise QueryError(f"{value!r} is not a probability", hint="pass a number from 0 to 1", code="bad-probability")
    return float(number)
