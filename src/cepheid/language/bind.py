"""Binds a checked query to a schema: names, types, units, and every condition put where it can be tested."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import Any, NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundGap, BoundQuery, BoundSummary, BoundWindow, Branch, Conjunct, Phase
from cepheid.language.check import HALF_A_PAIR, is_text, located, returned_name
from cepheid.language.coercion import Coercion
from cepheid.language.defined import with_definitions
from cepheid.language.durations import LengthError, UnitError, in_unit, parse_length
from cepheid.language.library.conversions import instant_of_text
from cepheid.language.library.value_functions import cast
from cepheid.language.normal import conjuncts, disjuncts, negation_normal_form
from cepheid.language.printing import window_text
from cepheid.language.schema import TIMES, DataType, Schema
from cepheid.language.step_strategies import step_strategies
from cepheid.language.totals import bind_summary
from cepheid.language.typing import Fail, check_condition, type_of
from cepheid.language.whole import within_64_bits
from cepheid.language.zoned import is_wall, zoned
from cepheid.language.zones import IN_UTC, to_instant

_TRUE = s.Literal(True)
_EVENTS = re.compile(r"\s*([0-9]+)\s*events?\s*\Z", re.IGNORECASE)


def bind(
    query: s.QuerySyntax, schema: Schema, parameters: Mapping[str, object] | None = None, text: str | None = None
) -> BoundQuery:
    """The query over events of this schema, ready to be planned.

    >>> from cepheid.language.check import check
    >>> from cepheid.language.sase.parse import parse
    >>> schema = Schema((("ts", DataType.INT), ("type", DataType.STRING), ("id", DataType.INT)), "ts", "type")
    >>> bound = bind(check(parse("PATTERN SEQ(A a, B b) WHERE [id] AND a.id > 3 WITHIN 10")), schema)
    >>> bound.equivalence, bound.window, len(bound.conjuncts)
    (('id',), BoundWindow(length=10, events=False), 1)
    """
    binder = _Binder(query, schema, dict(parameters or {}), text)
    try:
        return binder.bind()
    except QueryError as error:
        raise located(error, text) from None


def rebound(bound: BoundQuery, **changes: object) -> BoundQuery:
    """The same query, written a little differently, over the same columns; its window stays."""
    return replace(bind(bound.asking(**changes).syntax, bound.schema), window=bound.window)


_PATTERNS = {"like": "like_pattern", "ilike": "ilike_pattern", "rlike": "rlike_pattern", "regexp_like": "rlike_pattern"}


class _Binder:
    """Carries the query, the schema and the text for error messages through the steps of binding."""

    def __init__(self, query: s.QuerySyntax, schema: Schema, parameters: dict[str, Any], text: str | None) -> None:
        self.schema, self.parameters, self.text = schema, parameters, text
        self.query, self.defined = with_definitions(query, schema, parameters)
        query = self.query
        self.positives = [component for component in query.components if not component.negative]
        self.by_name = {component.variable: component for component in query.components}
        self.about: str | None = None  # the group whose end is at hand

    def fail(self, message: str, node: s.Node, code: str, hint: str | None = None) -> NoReturn:
        start, end = node.span
        known = self.text if self.text is not None and end > start else None
        raise QueryError(message, text=known, start=start, end=end, hint=hint, code=code)

    def bind(self) -> BoundQuery:
        self.check_types_exist()
        where = self.condition(self.query.where) if self.query.where is not None else None
        tested = [*s.conjoined(where), *(self.condition(test) for test in self.defined)]
        span = where.span if where is not None else s.NOWHERE
        equivalence, fixed, rest = self.equivalences(s.And(tuple(tested), span=span) if self.defined else where)
        returns = self.returned()
        syntax = replace(self.query, where=where)
        return BoundQuery(
            syntax=syntax,
            schema=self.schema,
            strategy=self.query.selection.strategy if self.query.selection else s.Strategy.SKIP_TILL_ANY,
            window=self.window(self.query.within),
            equivalence=equivalence,
            fixed=fixed,
            conjuncts=tuple(place_conjunct(clause, self.positives) for clause in conjuncts(self.positive_part(rest))),
            branches=self.branches(rest),
            returns=returns,
            summary=self.summary(equivalence),
            gaps=tuple(self.gaps()),
            steps=tuple(step_strategies(self.query)),
            untils=tuple(self.untils()),
            text=self.text,
        )

    def condition(self, node: s.Expression) -> s.Expression:
        """A condition with its names, times and values resolved, and its types checked."""
        resolved = self.values(self.times(self.names(node)))
        check_condition(resolved, self.schema, self.fail)
        return resolved

    def values(self, node: s.Expression) -> s.Expression:
        """Forms that depend on types: `a.list[0]`, the type that CAST converts from, `mod(x, y)`."""
        return zoned(self.coercion.settled(self.valued(s.rebuild(node, self.values))), self.schema)

    @cached_property
    def coercion(self) -> Coercion:
        return Coercion(self.schema, self.fail)

    def valued(self, node: s.Expression) -> s.Expression:
        match node:
            case s.Duration():
                return self.steps(node, node)
            case s.Attribute(name=name, default=s.Expression() as key) if self.is_collection(name):
                return s.Call("get", (replace(node, default=None), key), span=node.span)
            case s.Call(function=function, arguments=(operand, wanted)) if function.lower() in ("cast", "try_cast"):
                kind = type_of(operand, self.schema, self.fail)
                return s.Call(function.lower(), (operand, wanted, s.Literal(kind.name)), span=node.span)
            case s.Call(function=function, arguments=(left, right)) if function.lower() == "mod":
                return s.Arithmetic("%", left, right, span=node.span)
            case s.Call(function=function, arguments=(_, pattern)) if function.lower() in _PATTERNS:
                if not isinstance(pattern, s.Literal):  # of an event: it is another for each
                    return replace(node, function=_PATTERNS[function.lower()])
        return node

    def is_collection(self, name: str) -> bool:
        return self.schema.type_of(name) in (DataType.LIST, DataType.TEXTS, DataType.MAP)

    # names

    def check_types_exist(self) -> None:
        for component in self.query.components:
            if component.types is None:
                if component.variable in (self.schema.types or ()):
                    hint = f"write {component.variable} x for events of that type, or choose another variable"
                    message = f"'{component.variable}' is an event type, but is used here as a variable"
                    self.fail(message, component, "type-as-variable", hint)
                continue
            if self.schema.type is None:
                hint = "pass type='...', the column that holds the event type"
                self.fail("the stream has no event types", component, "untyped-stream", hint)
            for name in component.types:
                if self.schema.types is not None and name not in self.schema.types:
                    guess = closest(name, self.schema.types)
                    known = f"did you mean '{guess}'?" if guess else None
                    self.fail(f"no event type '{name}'", component, "unknown-type", known)

    def names(self, node: s.Expression) -> s.Expression:
        """Bare words become attributes of a filter query's component, or the values of parameters."""
        match node:
            case s.Name(name=name):
                return self.named(name, node)
            case s.Membership(operand=operand, values=s.Name(name=name) as values):
                given = self.parameter(name, values)
                if isinstance(given, str) or not isinstance(given, Iterable):
                    self.fail(f"parameter '{name}' must hold several values", values, "bad-parameter", "pass a list")
                literals = tuple(self.literal(value, values) for value in given)
                return replace(node, operand=self.names(operand), values=literals)
        return s.rebuild(node, self.names)

    def named(self, name: str, node: s.Name) -> s.Expression:
        if name in self.parameters:
            return self.literal(self.parameters[name], node)
        if self.schema.type_of(name) is not None:
            if len(self.query.components) == 1:
                return s.Attribute(s.Reference(self.query.components[0].variable, span=node.span), name, span=node.span)
            hint = f"name the event, for example {self.about or self.query.components[0].variable}.{name}"
            self.fail(f"'{name}' alone is ambiguous", node, "bare-attribute", hint)
        return self.literal(self.parameter(name, node), node)

    def parameter(self, name: str, node: s.Node) -> Any:
        if name not in self.parameters:
            guess = closest(name, [*self.parameters, *self.by_name, *self.schema.names])
            quoted = f"write '{name}' in quotes, or pass parameters={{'{name}': ...}}"
            hint = f"did you mean {guess}? Or {quoted}" if guess else quoted
            if name.upper() == "ALL":
                hint = "WITHIN ALL is for local tables, which have an end; give the window a length here"
            self.fail(f"no value for '{name}'", node, "unknown-name", hint)
        return self.parameters[name]

    def literal(self, value: Any, node: s.Node) -> s.Literal:
        if isinstance(value, date):  # datetime included
            return s.Literal(value.isoformat(), span=node.span)
        if hasattr(value, "item") and not isinstance(value, str):  # a numpy scalar
            value = value.item()
        if value is not None and type(value) not in (bool, int, float, Decimal, str):
            hint = f"pass a number, a text, True, False or None instead of {value!r}"
            self.fail(f"a parameter cannot be a {type(value).__name__}", node, "bad-parameter", hint)
        if within_64_bits(value) is None and value is not None:
            self.fail("a whole number beyond 64 bits", node, "bad-number", "pass it as a float")
        if isinstance(value, str) and not is_text(value):
            message, code, hint = HALF_A_PAIR
            self.fail(message, node, code, hint)
        return s.Literal(value, span=node.span)

    # times

    def times(self, node: s.Expression) -> s.Expression:
        """Strings compared with timestamps become instants in microseconds."""

        def instant(other: s.Expression, value: s.Expression) -> s.Expression:
            zone = IN_UTC if not self.is_time(other) or is_wall(other, self.schema) else self.schema.zone
            match value:
                case s.Literal(value=str(text)) if self.is_time(other):
                    return s.Literal(self.microseconds(text, value, zone), span=value.span)
                case s.Call(arguments=(s.Literal(value=str(text)), s.Literal(value="date" | "timestamp" as kind), *_)):
                    if value.function == "cast" and self.is_time(other):
                        day = cast(text, "date")
                        found = (
                            instant_of_text(text, zone)
                            if kind == "timestamp"
                            else None
                            if day is None
                            else to_instant(day, zone)
                        )
                        return s.Literal(found, span=value.span)
            return value

        node = s.rebuild(node, self.times)
        match node:
            case s.Duration():
                return node  # what stands beside it says in which steps it is
            case s.Arithmetic(left=left, right=right) if _durations(left, right) and not _has_attribute(node):
                return node  # 2 * 5 minutes: what stands beside it says more
            case s.Comparison(left=left, right=right) | s.Arithmetic(left=left, right=right) if _durations(left, right):
                return replace(node, left=self.steps(left, right), right=self.steps(right, left))
            case s.Between(operand=operand, low=low, high=high) if _durations(operand, low, high):
                low, high = self.steps(low, operand), self.steps(high, operand)
                return replace(node, operand=self.steps(operand, low), low=low, high=high)
            case s.Membership(operand=operand, values=tuple() as values) if _durations(operand, *values):
                return replace(node, values=tuple(self.steps(value, operand) for value in values))
            case s.Comparison(left=left, right=right):
                return replace(node, left=instant(right, left), right=instant(left, right))
            case s.Between(operand=operand, low=low, high=high):
                return replace(node, low=instant(operand, low), high=instant(operand, high))
            case s.Membership(operand=operand, values=tuple() as values):
                return replace(node, values=tuple(instant(operand, value) for value in values))
            case s.Attribute(default=s.Expression() as default):
                return replace(node, default=instant(node, default))
            case s.Equivalence(tests=tests):
                owner = s.Reference("")
                fixed = [(name, value and instant(s.Attribute(owner, name), value)) for name, value in tests]
                return replace(node, tests=tuple(fixed))
        return node

    def steps(self, node: s.Expression, beside: s.Expression) -> s.Expression:
        """A length of time as a number: microseconds beside timestamps, else steps of the time column."""
        if not isinstance(node, s.Duration):
            return s.rebuild(node, lambda inner: self.steps(inner, beside))
        stamped = any(self.is_time(inner) for inner in s.walk(beside) if isinstance(inner, s.Attribute | s.Call))
        unit = "microseconds" if stamped else self.schema.time_unit
        if unit is None:
            hint = f"pass time_unit='ms' (or what '{self.schema.time}' counts), or write a plain number"
            message = f"{node.unit}, but it is not known what one step of column '{self.schema.time}' is"
            self.fail(message, node, "unknown-time-unit", hint)
        length = in_unit(Fraction(str(node.length)), node.unit, unit)
        value = int(length) if length.denominator == 1 else float(length)
        if within_64_bits(value) is None:
            self.fail("a length of time beyond 64 bits", node, "bad-number", None)
        return s.Literal(value, span=node.span)

    def is_time(self, node: s.Expression) -> bool:
        if isinstance(node, s.Attribute):  # quick, and its default may still be a string
            return self.schema.type_of(node.name) in TIMES
        return not isinstance(node, s.Reference) and type_of(node, self.schema, self.fail) in TIMES

    def microseconds(self, text: str, node: s.Node, zone: str) -> int:
        found = instant_of_text(text, zone)
        if found is None:
            self.fail(f"'{text}' is not a date or time", node, "bad-time", "write it like '2026-01-31 12:00:00'")
        return found

    def untils(self) -> Iterator[tuple[str, s.Expression]]:
        """The conditions that end groups."""
        for component in self.query.components:
            if component.until is not None:
                self.about = component.variable
                yield component.variable, negation_normal_form(self.condition(component.until))
        self.about = None

    # the window

    def gaps(self) -> Iterator[tuple[str, BoundGap]]:
        """How long after the event before it each component comes, where the query says so."""
        for component in self.query.components:
            if component.gap is None:
                continue
            after, within = self.window(component.gap.after), self.window(component.gap.within)
            if any(each is not None and each.events for each in (after, within)):
                self.fail("a gap is a length of time", component.gap, "bad-window", "for example WITHIN 5 minutes")
            if after is not None and within is not None and after.length >= within.length:
                hint = "AFTER is the shortest, WITHIN the longest time between the two events"
                self.fail("AFTER is longer than WITHIN, so no event matches", component.gap, "bad-window", hint)
            lengths = (None if each is None else each.length for each in (after, within))
            yield component.variable, BoundGap(*lengths)

    def window(self, within: s.Window | None) -> BoundWindow | None:
        if within is None:
            return None
        length, unit = self.length_written(within)
        if not length > 0:
            self.fail("a window must be longer than zero", within, "bad-window")
        if unit == "events":
            return self.bound_window(length, within, events=True)
        return self.bound_window(self.in_steps(length, unit, within), within)

    def time_length(self, written: s.Window) -> int:
        """The length of EVERY in steps of the time column."""
        length, unit = self.length_written(written)
        steps = self.in_steps(length, unit, written)
        if steps < 1 or steps != int(steps):
            hint = f"one step of column '{self.schema.time}' is one of its units"
            self.fail("EVERY is not a whole number of time steps", written, "bad-every", hint)
        return int(steps)

    def in_steps(self, length: Fraction, unit: str | None, within: s.Window) -> Fraction:
        is_timestamp = self.schema.type_of(self.schema.time) is DataType.TIME
        if unit is None and is_timestamp:
            hint = f"write WITHIN {window_text(within)} seconds, for example"
            message = f"column '{self.schema.time}' is a timestamp, so the window needs a unit"
            self.fail(message, within, "no-unit", hint)
        if unit is not None and self.schema.time_unit is None:
            hint = f"pass time_unit='ms' (or what '{self.schema.time}' counts), or write a plain number"
            message = f"the window is in {unit}, but it is not known what one step of column '{self.schema.time}' is"
            self.fail(message, within, "unknown-time-unit", hint)
        if unit is not None and self.schema.time_unit is not None:
            length = in_unit(length, unit, self.schema.time_unit)
        return length

    def bound_window(self, length: Fraction, within: s.Window, events: bool = False) -> BoundWindow:
        if length >= 2**62:  # times are 64-bit integers, and a window is added to them and taken from them
            self.fail("a window longer than any stream", within, "bad-window", "leave WITHIN out")
        # last - first < T over whole steps: a fraction of a step changes nothing but the rounding up.
        return BoundWindow(math.ceil(length), events)

    def length_written(self, within: s.Window) -> tuple[Fraction, str | None]:
        """The length of the window and its unit, as the text or a parameter says."""
        given = within.length
        if not isinstance(given, s.Name):
            return self.length_given(given, within.unit, within)
        value = self.parameter(given.name, given)
        events = _EVENTS.match(value) if isinstance(value, str) else None
        return self.length_given(events.group(1) if events else value, "events" if events else within.unit, within)

    def length_given(self, given: object, unit: str | None, within: s.Window) -> tuple[Fraction, str | None]:
        if isinstance(given, float) and math.isinf(given):
            self.fail("a window longer than any stream", within, "bad-window", "leave WITHIN out")
        try:
            length, own = parse_length(given)
        except LengthError as error:
            if isinstance(error, UnitError):
                self.fail(error.message, within, "unknown-unit", f"{error.hint} or EVENTS")
            hint = "pass a number, a timedelta, or a text such as '12 hours'"
            self.fail(error.message, within, "bad-window", hint)
        return length, own or unit

    # conditions

    def equivalences(
        self, where: s.Expression | None
    ) -> tuple[tuple[str, ...], tuple[tuple[str, s.Literal], ...], s.Expression | None]:
        """Takes the equivalence tests out of the top-level AND; any others become pairwise comparisons."""
        names: list[str] = []
        fixed: list[tuple[str, s.Literal]] = []
        rest: list[s.Expression] = []
        for part in s.conjoined(where):
            if isinstance(part, s.Equivalence):
                for name, value in part.tests:
                    if name not in names:
                        names.append(name)
                    if value is not None:
                        assert isinstance(value, s.Literal)
                        fixed.append((name, value))
            else:
                rest.append(self.expanded(part))
        span = where.span if where is not None else s.NOWHERE
        condition = None if not rest else rest[0] if len(rest) == 1 else s.And(tuple(rest), span=span)
        return tuple(names), tuple(fixed), condition

    def expanded(self, node: s.Expression) -> s.Expression:
        if not isinstance(node, s.Equivalence):
            return s.rebuild(node, self.expanded)
        parts: list[s.Expression] = []
        for name, value in node.tests:
            attributes = [s.Attribute(s.Reference(c.variable), name, span=node.span) for c in self.query.components]
            positive = [a for a, c in zip(attributes, self.query.components, strict=True) if not c.negative]
            negative = [a for a, c in zip(attributes, self.query.components, strict=True) if c.negative]
            for index, left in enumerate(positive):
                parts += [s.Comparison("=", left, right, span=node.span) for right in positive[index + 1 :] + negative]
            for own, component in zip(positive, self.positives, strict=True):
                # Nothing else ties the elements of the group together, or in a pattern nothing else may be there.
                if component.kleene and (len(positive) == 1 or not self.query.is_linear):
                    first = s.Attribute(s.Reference(component.variable, s.Element.FIRST), name, span=node.span)
                    parts.append(s.Comparison("=", own, first, span=node.span))
            if value is not None:
                parts += [s.Comparison("=", attribute, value) for attribute in attributes]
            if not self.schema.lacks:  # a comparison holds on a NULL of an ANY component, but an equivalence test never
                wild = [a for a, c in zip(attributes, self.query.components, strict=True) if c.any]
                parts += [s.IsNull(attribute, negated=True, span=node.span) for attribute in wild]
        return parts[0] if len(parts) == 1 else s.And(tuple(parts), span=node.span) if parts else _TRUE

    def negatives_in(self, node: s.Expression) -> list[str]:
        return sorted(name for name in s.variables_of(node) if self.by_name[name].negative)

    def positive_part(self, where: s.Expression | None) -> s.Expression | None:
        """The condition with everything about negated components taken as true."""
        if where is None:
            return None

        def strip(node: s.Expression) -> s.Expression | None:
            if isinstance(node, s.And):
                kept = [part for part in map(strip, node.operands) if part is not None]
                return None if not kept else kept[0] if len(kept) == 1 else s.And(tuple(kept), span=node.span)
            if isinstance(node, s.Or):
                parts = [strip(operand) for operand in node.operands]
                known = [part for part in parts if part is not None]
                return s.Or(tuple(known), span=node.span) if len(known) == len(parts) else None
            return None if self.negatives_in(node) else node

        return strip(negation_normal_form(where))

    def branches(self, where: s.Expression | None) -> tuple[Branch, ...]:
        """The disjuncts of what shares an OR with a negated component; all else is tested clause by clause.

        That matters for Kleene groups: `a.x = 1 OR a.y = 2` may hold for one element by its x and for another by its
        y, but a disjunct has to hold for all of them.
        """
        normal = negation_normal_form(where) if where is not None else None
        shared = tuple(part for part in s.conjoined(normal) if self.negatives_in(part))
        found = []
        for literals in disjuncts(s.And(shared) if shared else None):
            negative: dict[str, list[s.Expression]] = {}
            positive: list[s.Expression] = []
            for literal in literals:
                variables = self.negatives_in(literal)
                for variable in variables:
                    negative.setdefault(variable, []).append(literal)
                if not variables:
                    positive.append(literal)
            found.append(Branch(tuple(positive), tuple((name, tuple(parts)) for name, parts in negative.items())))
        return tuple(found)

    # results

    def returned(self) -> tuple[tuple[str, s.Expression], ...] | None:
        if self.query.returns is None:
            return None
        found: list[tuple[str, s.Expression]] = []
        for item in self.query.returns:
            if isinstance(item.expression, s.Star):
                found += self.starred(item.expression)
                continue
            expression = self.values(self.times(self.names(item.expression)))
            if not isinstance(expression, s.Reference):
                type_of(expression, self.schema, self.fail)
            if isinstance(expression, s.Attribute) and self.by_name[expression.of.variable].kleene:
                expression = self.whole_group(expression)
            found.append((returned_name(item), expression))
        names = [name for name, _ in found]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            star = next(item for item in self.query.returns if isinstance(item.expression, s.Star))
            hint = "rename it with AS"
            self.fail(f"two returned columns are called '{twice}'", star, "duplicate-column", hint)
        return tuple(found)

    def starred(self, star: s.Star) -> Iterator[tuple[str, s.Expression]]:
        """`*`: the events of all variables. `a.*`: the attributes of one, by name; of several, `a_x` and `b_x`."""
        if star.of is None:
            for component in self.positives:
                yield component.variable, s.Reference(component.variable, span=star.span)
            return
        assert self.query.returns is not None
        stars = [item.expression.of for item in self.query.returns if isinstance(item.expression, s.Star)]
        several = sum(of is not None for of in stars) > 1
        for name in self.schema.whole_names:
            attribute = s.Attribute(star.of, name, span=star.span)
            kleene = self.by_name[star.of.variable].kleene
            yield (
                f"{star.of.variable}_{name}" if several else name,
                self.whole_group(attribute) if kleene else attribute,
            )

    def summary(self, equivalence: tuple[str, ...]) -> BoundSummary | None:
        written = self.query.summary
        if written is None:
            return None
        every = self.time_length(written.every) if written.every is not None else None
        arguments = [t.argument and self.values(self.times(self.names(t.argument))) for t in written.totals]
        return bind_summary(written, arguments, every, equivalence, self.schema, self.fail)

    def whole_group(self, attribute: s.Attribute) -> s.Attribute:
        """`RETURN a.x` of a Kleene variable gives the values of all its events, as `a[].x` does."""
        if attribute.of.element is not s.Element.SINGLE:
            return attribute
        return replace(attribute, of=replace(attribute.of, element=s.Element.ALL))


class ConditionValues(_Binder):
    """The values of a condition that stands alone, as those of Flink's patterns do; its names are resolved already."""

    def __init__(self, schema: Schema, parameters: Mapping[str, object], fail: Fail) -> None:
        self.schema, self.parameters, self.text = schema, dict(parameters), None
        self._told = fail

    def fail(self, message: str, node: s.Node, code: str, hint: str | None = None) -> NoReturn:
        self._told(message, node, code, hint)

    def resolved(self, node: s.Expression) -> s.Expression:
        """Times and lengths of time as numbers, elements of lists, CAST and mod as all engines know them."""
        return self.values(self.times(node))


def _durations(*nodes: s.Expression) -> bool:
    return any(isinstance(inner, s.Duration) for node in nodes for inner in _sums(node))


def _has_attribute(node: s.Expression) -> bool:
    return any(isinstance(inner, s.Attribute) for inner in s.walk(node))


def _sums(node: s.Expression) -> Iterator[s.Expression]:
    """The value and what it is added up from: not the arguments of functions, which have a unit of their own."""
    yield node
    if isinstance(node, s.Arithmetic | s.Negative):
        for inner in s.children(node):
            yield from _sums(inner)


def place_conjunct(clause: s.Expression, positives: list[s.Component]) -> Conjunct:
    """Finds from which component, and which moment there, all that a clause mentions is known.

    >>> a = s.Component("a", ("A",), kleene=True)
    >>> later = s.Attribute(s.Reference("a", s.Element.CURRENT), "x")
    >>> earlier = s.Attribute(s.Reference("a", s.Element.PREVIOUS), "x")
    >>> conjunct = place_conjunct(s.Comparison(">", later, earlier), [a])
    >>> conjunct.phase, conjunct.from_second
    (<Phase.TAKE: 1>, frozenset({'a'}))
    """
    places = {component.variable: place for place, component in enumerate(positives)}
    kleene = {component.variable for component in positives if component.kleene}
    moments: list[tuple[int, Phase]] = [(0, Phase.BEGIN)]
    current: set[str] = set()
    earlier: set[str] = set()
    for variable, element in _mentions(clause, kleene):
        phase = Phase.BEGIN
        if variable in kleene:
            match element:
                case s.Element.CURRENT | s.Element.SINGLE:
                    phase = Phase.TAKE
                    current.add(variable)
                case s.Element.PREVIOUS | s.Element.BEFORE:
                    phase = Phase.TAKE
                    current.add(variable)
                    earlier.add(variable)
                case s.Element.FIRST:
                    earlier.add(variable)
                case s.Element.LAST | s.Element.ALL:
                    phase = Phase.CLOSE
        moments.append((places[variable], phase))
    place, phase = max(moments)
    return Conjunct(
        clause,
        variables=s.variables_of(clause),
        place=place,
        phase=phase,
        every=frozenset(current),
        from_second=frozenset(current & earlier),
    )


def _mentions(clause: s.Expression, kleene: set[str]) -> Iterable[tuple[str, s.Element]]:
    """Each mention of a variable with the element meant; inside an aggregate a plain Kleene variable means all."""
    pending: list[tuple[s.Expression, bool]] = [(clause, False)]
    while pending:
        node, aggregate = pending.pop()
        match node:
            case s.Attribute(of=of):
                pending.append((of, aggregate))
                continue
            case s.Reference(variable=variable, element=element):
                plain = element is s.Element.SINGLE and aggregate and variable in kleene
                yield variable, s.Element.ALL if plain else element
            case s.Length(variable=variable):
                yield variable, s.Element.ALL
        inside = aggregate or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES)
        pending.extend((child, inside) for child in s.children(node))
