"""Drawn queries and drawn streams for one small schema, made for comparing engines with the reference evaluator.

    @given(queries(kleene=False), streams())
    def test_it_agrees(query, events): ...

A drawn query is a checked `QuerySyntax` that binds to `SCHEMA` without parameters; a drawn stream is a pyarrow table of
that schema. Both are small, so that enumeration stays cheap, and full of edge cases: concurrent events, one type in
several places, NULLs and NaNs, windows that end exactly at an event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, TypeVar

import pyarrow as pa
from hypothesis import strategies as st

from cepheid.language import syntax as s
from cepheid.language.check import check
from cepheid.language.schema import Schema
from cepheid.language.step_strategies import with_own_strategy

ARROW_SCHEMA = pa.schema(
    [
        pa.field("ts", pa.int64(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("x", pa.int64(), nullable=False),
        pa.field("y", pa.int64(), nullable=False),
        pa.field("z", pa.int64()),
        pa.field("s", pa.string(), nullable=False),
        pa.field("f", pa.float64(), nullable=False),
    ]
)
SCHEMA = Schema.from_arrow(ARROW_SCHEMA)
TYPES = ("A", "B", "C", "D")  # the types that queries name; streams hold a further one, E, that none does
STRINGS = ("a", "b", "c")

# Weights: most drawn queries should match something in most drawn streams, or they would test little.
_TYPE_WEIGHTS = ("A", "A", "A", "B", "B", "C", "D")
_SIGNS = ("<=", ">=", "!=", "<", ">", "<=", ">=", "!=", "=")
_NUMERIC = ("x", "y", "x", "y", "z", "f", "id")
_AGGREGATES = ("avg", "sum", "min", "max", "count", "first", "last")

T = TypeVar("T")
Draw = Callable[[st.SearchStrategy[T]], T]


# --- streams --------------------------------------------------------------------------------------------------------


@st.composite
def streams(
    draw: Draw[Any],
    *,
    min_size: int = 0,
    max_size: int = 12,
    ids: int = 2,
    max_step: int = 3,
    concurrent: bool = True,
    nulls: bool = True,
    nans: bool = True,
    types: Sequence[str] = (*_TYPE_WEIGHTS, "E"),
    shuffled: bool = False,
) -> pa.Table:
    """A small event table of `ARROW_SCHEMA`, in order of time.

    - `min_size`, `max_size`: how many rows.
    - `ids`: the key column `id` holds 1 to this.
    - `max_step`: the most time that passes from one event to the next; with `concurrent`, it may be none.
    - `nulls`, `nans`: may `z` hold NULL, may `f` hold NaN (which counts as NULL)?
    - `types`: the event types that occur.
    - `shuffled`: rows in any order instead of that of time.
    """
    values = st.integers(-3, 3)
    halves = st.integers(-4, 4).map(lambda number: number / 2)
    row = st.tuples(
        st.integers(0 if concurrent else 1, max_step),
        st.sampled_from(list(types)),
        st.integers(1, ids),
        values,
        values,
        st.none() | values if nulls else values,
        st.sampled_from(STRINGS),
        halves | st.just(float("nan")) if nans else halves,
    )
    sizes = st.integers(min_size, max_size)
    size = max(draw(sizes), draw(sizes))  # long streams are the better tests, and shrink to short ones
    rows = draw(st.lists(row, min_size=size, max_size=size))
    now = draw(st.integers(-3, 3))
    events = []
    for step, *rest in rows:
        now += step
        events.append((now, *rest))
    if shuffled:
        events = draw(st.permutations(events))
    columns = zip(*events, strict=True) if events else [()] * len(ARROW_SCHEMA)
    arrays = [pa.array(list(column), field.type) for column, field in zip(columns, ARROW_SCHEMA, strict=True)]
    return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)


# --- queries --------------------------------------------------------------------------------------------------------


@st.composite
def queries(
    draw: Draw[Any],
    *,
    min_components: int = 2,
    max_components: int = 4,
    negation: bool = True,
    edge_negation: bool = True,
    kleene: bool = True,
    max_kleene: int = 2,
    wildcard: bool = True,
    untyped: bool = True,
    strategy: s.Strategy | Collection[s.Strategy] | None = None,
    equivalence: bool = True,
    disjunction: bool = True,
    arithmetic: bool = True,
    functions: bool = True,
    aggregates: bool = True,
    max_conditions: int = 3,
    window: bool | None = None,
    max_window: int = 8,
    event_window: bool = True,
    returns: bool = True,
    output: bool = True,
    threshold: bool = False,
    missing_groups: bool = False,
    missing_next: bool = False,
    tied_negations: bool = False,
    confidence: bool = False,
    until: bool = False,
    steps: bool = False,
) -> s.QuerySyntax:
    """A small, sound query over `SCHEMA`.

    Every feature can be switched off by setting it to False.

    - `min_components`, `max_components`: how many places the pattern has, negated ones included.
    - `negation`: negated components; `edge_negation`: also at the start and the end of the pattern.
    - `kleene`: components that take one or more events, at most `max_kleene` of them; `aggregates`: over their events.
    - `wildcard`: components declared with ANY; `untyped`: components without a type.
    - `strategy`: one event selection strategy or several to choose from; None means any of the four, or none written.
    - `equivalence`: tests such as [id] and [s = 'a'].
    - `disjunction`: OR and NOT; without it the condition is a conjunction.
    - `arithmetic`, `functions`: + - * / % and abs, coalesce, least, greatest inside comparisons.
    - `max_conditions`: how many conditions are joined by AND at the top, besides equivalence tests.
    - `window`: True always draws WITHIN, False never does (and so no edge negation), None decides freely.
      Lengths are 1 to `max_window`; `event_window` also allows WITHIN n EVENTS.
    - `returns`: RETURN; `output`: OUTPUT NON-OVERLAP.
    - `threshold`: a query for missing events: THRESHOLD, a window of time, skip_till_any_match, no Kleene plus, and
      sometimes defaults for missing events. `missing_groups` allows Kleene plus there (its conditions included),
      `missing_next` skip_till_next_match.
    - `tied_negations`: at least two negated components, with a condition between two of them.
    - `confidence`: a CONFIDENCE clause, for imprecise time.
    - `until`: groups that UNTIL ends; `steps`: strategies for single steps.
    """
    kleene = kleene and (not threshold or missing_groups)
    edge_negation = edge_negation and negation and window is not False
    places_for_ties = 0 if not tied_negations else 3 if edge_negation else 4
    components = _components(
        draw,
        max(min_components, places_for_ties),
        max(max_components, places_for_ties),
        negation,
        edge_negation,
        max_kleene if kleene else 0,
        wildcard,
        untyped,
        least_negated=2 if tied_negations else 0,
    )
    if until:
        components = tuple(_ended(draw, component) for component in components)
    conditions = _Conditions(draw, components, disjunction, arithmetic, functions, aggregates, defaults=threshold)
    parts: list[s.Expression] = []
    if equivalence:
        parts += draw(st.sampled_from(_EQUIVALENCES))
    count = min(draw(st.integers(0, max_conditions)), draw(st.integers(0, max_conditions)))
    parts += [conditions.condition() for _ in range(count)]
    if tied_negations:
        tied = conditions.tied()
        alone = not disjunction or draw(st.integers(0, 4)) < 4
        parts.append(tied if alone else s.Or((tied, conditions.condition(1))))
    if threshold:  # AYAC section 2.2: every component needs a condition on itself alone, or a type
        parts += [conditions.own(component) for component in components if component.types is None]

    needs_window = threshold or components[0].negative or components[-1].negative
    within = None
    if window is not False and (window or needs_window or draw(st.booleans())):
        unit = "events" if event_window and not threshold and draw(st.integers(0, 4)) == 0 else None
        within = s.Window(max_window - draw(st.integers(0, max_window - 1)), unit)

    chosen = strategy
    if threshold:
        chosen = (s.Strategy.SKIP_TILL_ANY, s.Strategy.SKIP_TILL_NEXT) if missing_next else s.Strategy.SKIP_TILL_ANY
        chosen = strategy if missing_next and strategy is not None else chosen
    query = s.QuerySyntax(
        components,
        sequence=len(components) > 1 or draw(st.booleans()),
        where=None if not parts else parts[0] if len(parts) == 1 else s.And(tuple(parts)),
        selection=_selection(draw, components, chosen),
        within=within,
        threshold=draw(st.sampled_from((0.001, 0.05, 0.5, 1.0))) if threshold else None,
        confidence=draw(st.sampled_from((0.0, 0.1, 0.5, 1.0))) if confidence else None,
        returns=conditions.returned() if returns and draw(st.integers(0, 3)) == 0 else None,
        output=s.Output(s.OutputMode.NON_OVERLAP) if output and draw(st.integers(0, 5)) == 0 else s.Output(),
        step_selections=step_selections(draw, components) if steps and draw(st.integers(0, 2)) == 2 else (),
    )
    return check(with_own_strategy(query))


def _ended(draw: Draw[Any], component: s.Component) -> s.Component:
    """A group that UNTIL ends, sometimes."""
    if not component.kleene or draw(st.integers(0, 2)) < 2:
        return component
    event = s.Reference(component.variable)
    value = s.Attribute(event, draw(st.sampled_from(("x", "y", "z", "f"))))
    ends: list[s.Expression] = [s.Comparison(draw(st.sampled_from(_SIGNS)), value, s.Literal(draw(st.integers(-2, 3))))]
    ends.append(s.Comparison("=", s.Attribute(event, "type"), s.Literal(draw(st.sampled_from((*TYPES, "E"))))))
    ends += [s.IsNull(s.Attribute(event, "z")), s.And((ends[0], ends[1])), s.Not(s.Or((ends[0], ends[1])))]
    return replace(component, until=draw(st.sampled_from(ends)))


def _is_own(steps: Sequence[s.Reference], positives: Sequence[s.Component]) -> bool:
    """Would a strategy over these be the query's own?"""
    whole = {s.Element.SINGLE, s.Element.ALL}
    names = {component.variable for component in positives}
    return {step.variable for step in steps} == names and {step.element for step in steps} <= whole


def step_selections(draw: Draw[Any], components: Sequence[s.Component]) -> tuple[s.StepSelection, ...]:
    """Strategies for some of the steps."""
    named: dict[s.Strategy, list[s.Reference]] = {}
    positives = [component for component in components if not component.negative]
    for component in positives:
        elements = [(), (), (s.Element.SINGLE,)]
        if component.kleene:
            elements += [(s.Element.CURRENT,), (s.Element.ALL,), (s.Element.FIRST, s.Element.CURRENT)]
        for element in draw(st.sampled_from(elements)):
            by = draw(st.sampled_from(list(s.Strategy)))
            named.setdefault(by, []).append(s.Reference(component.variable, element))
    return tuple(s.StepSelection(by, tuple(steps)) for by, steps in named.items() if not _is_own(steps, positives))


def _same(*names: str) -> s.Expression:
    return s.Equivalence(tuple((name, None) for name in names))


_EQUIVALENCES: tuple[list[s.Expression], ...] = (
    [],
    [],
    [_same("id")],
    [_same("id")],
    [_same("id", "y")],
    [s.Equivalence((("s", s.Literal("a")), ("id", None)))],
    [_same("z")],  # a column with NULLs
)


def _components(
    draw: Draw[Any],
    least: int,
    most: int,
    negation: bool,
    edge_negation: bool,
    max_kleene: int,
    wildcard: bool,
    untyped: bool,
    least_negated: int = 0,
) -> tuple[s.Component, ...]:
    size = min(draw(st.integers(least, most)), draw(st.integers(least, most)))
    # Rare features are drawn as the high end of a range, so that shrinking leaves them out.
    negative = [negation and draw(st.integers(0, 3)) == 3 for _ in range(size)]
    if not edge_negation:
        negative[0] = negative[-1] = False
    if all(negative):
        negative[draw(st.integers(0, size - 1))] = False
    if sum(negative) < least_negated:
        places = range(size) if edge_negation else range(1, size - 1)
        chosen = draw(st.permutations(list(places)))[: min(least_negated, size - 1)]
        negative = [place in chosen for place in range(size)]
    found: list[s.Component] = []
    groups = 0
    for place in range(size):
        kinds = ["one"] * 6 + ["any"] * wildcard + ["untyped"] * untyped
        kind = draw(st.sampled_from(kinds))
        count = {"one": 1, "any": 2, "untyped": 0}[kind]
        first = [draw(st.sampled_from(_TYPE_WEIGHTS))] if count else []
        others = [draw(st.sampled_from([name for name in TYPES if name not in first]))] if count > 1 else []
        types = (*first, *others) or None
        plus = not negative[place] and groups < max_kleene and draw(st.integers(0, 2)) == 2
        groups += plus
        found.append(s.Component("abcd"[place], types, kind == "any", negative[place], plus))
    return tuple(found)


def _selection(
    draw: Draw[Any], components: tuple[s.Component, ...], wanted: s.Strategy | Collection[s.Strategy] | None
) -> s.Selection | None:
    choices: list[s.Strategy | None]
    if wanted is None:
        choices = [None, *s.Strategy]
    else:
        choices = [wanted] if isinstance(wanted, s.Strategy) else list(wanted)
        if s.Strategy.SKIP_TILL_ANY in choices:
            choices.insert(0, None)  # the default, left unsaid
    chosen = draw(st.sampled_from(choices))
    return s.Selection(chosen, tuple(component.variable for component in components)) if chosen else None


class _Conditions:
    """Draws conditions over the components of one pattern."""

    def __init__(
        self,
        draw: Draw[Any],
        components: tuple[s.Component, ...],
        disjunction: bool,
        arithmetic: bool,
        functions: bool,
        aggregates: bool,
        defaults: bool,
    ) -> None:
        self.draw = draw
        self.components = components
        self.disjunction, self.arithmetic, self.functions = disjunction, arithmetic, functions
        self.aggregates, self.defaults = aggregates, defaults
        self.groups = [component for component in components if component.kleene]
        self.positives = [component for component in components if not component.negative]

    def condition(self, depth: int = 2) -> s.Expression:
        shape = self.draw(st.integers(0, 9)) if self.disjunction and depth > 0 else 0
        if shape == 9:
            return s.Not(self.condition(depth - 1))
        if shape in (7, 8):
            return s.Or((self.condition(depth - 1), self.condition(depth - 1)))
        if shape == 6:
            return s.And((self.condition(depth - 1), self.condition(depth - 1)))
        kinds = [self.own_drawn, self.pair, self.pair]
        if self.groups:
            kinds += [self.iterated, self.whole_group]
        return self.draw(st.sampled_from(kinds))()

    def own_drawn(self) -> s.Expression:
        return self.own(self.draw(st.sampled_from(self.components)))

    def own(self, component: s.Component) -> s.Expression:
        """A condition on one component's event alone."""
        draw, reference = self.draw, self.reference(component)
        kind = draw(st.integers(0, 6))
        if kind == 6:
            return s.IsNull(s.Attribute(reference, "z"), negated=draw(st.booleans()))
        if kind == 5:
            members = tuple(s.Literal(value) for value in draw(st.lists(st.integers(-3, 3), min_size=1, max_size=3)))
            return s.Membership(self.number(component, reference), members, negated=draw(st.booleans()))
        if kind == 4:
            low, high = draw(st.integers(-3, 3)), draw(st.integers(-3, 3))
            operand = self.number(component, reference)
            return s.Between(operand, s.Literal(low), s.Literal(high), negated=draw(st.booleans()))
        if kind == 3:
            if self.functions and draw(st.booleans()):
                like = s.Call(
                    "like", (s.Attribute(reference, "s"), s.Literal(draw(st.sampled_from(STRINGS))[:1] + "%"))
                )
                return s.Not(like) if draw(st.booleans()) else like
            sign = draw(st.sampled_from(("=", "!=", "<", ">=")))
            return s.Comparison(sign, s.Attribute(reference, "s"), s.Literal(draw(st.sampled_from(STRINGS))))
        return self.compared(self.number(component, reference), self.constant())

    def pair(self) -> s.Expression:
        """A comparison of two components, of which at most one is negated."""
        left = self.draw(st.sampled_from(self.positives))
        right = self.draw(st.sampled_from([other for other in self.components if other is not left] or [left]))
        if self.draw(st.integers(0, 4)) == 4:
            sides = (s.Attribute(self.reference(left), "s"), s.Attribute(self.reference(right), "s"))
            return s.Comparison(self.draw(st.sampled_from(("=", "!=", "<"))), *sides)
        return self.compared(self.number(left), self.number(right))

    def tied(self) -> s.Expression:
        """A comparison of two negated components, which then kill only together."""
        negated = [component for component in self.components if component.negative]
        left, right = self.draw(st.permutations(negated))[:2]
        return self.compared(self.number(left), self.number(right))

    def iterated(self) -> s.Expression:
        """A condition that compares an event of a group with earlier ones (SASE+ section 2)."""
        group = self.draw(st.sampled_from(self.groups))
        current = self.number(group, s.Reference(group.variable, s.Element.CURRENT))
        kind = self.draw(st.integers(0, 2))
        if kind == 2 and self.aggregates:
            return self.compared(current, self.aggregate(group, s.Element.BEFORE))
        element = s.Element.FIRST if kind == 1 else s.Element.PREVIOUS
        return self.compared(current, self.number(group, s.Reference(group.variable, element)))

    def whole_group(self) -> s.Expression:
        """A condition on a closed group."""
        group = self.draw(st.sampled_from(self.groups))
        kind = self.draw(st.integers(0, 2))
        if kind == 2 and self.aggregates:
            return self.compared(self.aggregate(group, s.Element.ALL), self.constant())
        if kind == 1:
            return self.compared(s.Length(group.variable), s.Literal(self.draw(st.integers(1, 3))))
        return self.compared(self.number(group, s.Reference(group.variable, s.Element.LAST)), self.constant())

    def aggregate(self, group: s.Component, element: s.Element) -> s.Expression:
        function = self.draw(st.sampled_from(_AGGREGATES))
        reference = s.Reference(group.variable, element)
        if function == "count" and self.draw(st.booleans()):
            return s.Call("count", (reference,))
        return s.Call(function, (s.Attribute(reference, self.draw(st.sampled_from(_NUMERIC))),))

    def reference(self, component: s.Component) -> s.Reference:
        elements = [s.Element.SINGLE]
        if component.kleene:
            elements += [s.Element.SINGLE, s.Element.FIRST, s.Element.CURRENT, s.Element.LAST]
        return s.Reference(component.variable, self.draw(st.sampled_from(elements)))

    def number(self, component: s.Component, reference: s.Reference | None = None) -> s.Expression:
        """A numeric value of one component's event."""
        draw = self.draw
        attribute = s.Attribute(reference or self.reference(component), draw(st.sampled_from(_NUMERIC)))
        if self.defaults and draw(st.integers(0, 3)) == 3:
            attribute = s.Attribute(attribute.of, attribute.name, self.default(component))
        kind = draw(st.integers(0, 11))
        if kind in (8, 9) and self.arithmetic:
            sign = draw(st.sampled_from(("+", "-", "*", "/", "%")))
            return s.Arithmetic(sign, attribute, s.Literal(draw(st.integers(-2, 2))))
        if kind == 10 and self.arithmetic:
            return s.Negative(attribute)
        if kind == 11 and self.functions:
            name = draw(st.sampled_from(("abs", "coalesce", "least", "greatest", "sign", "round", "case")))
            number = s.Literal(draw(st.integers(-1, 1)))
            if name == "case":
                return s.Call(name, (s.Comparison("<", attribute, number), attribute, number))
            return s.Call(name, (attribute,) if name in ("abs", "sign") else (attribute, number))
        return attribute

    def default(self, component: s.Component) -> s.Expression:
        others = [other for other in self.positives if other is not component]
        if others and self.draw(st.booleans()):
            other = self.draw(st.sampled_from(others))
            element = (
                self.draw(st.sampled_from((s.Element.FIRST, s.Element.LAST))) if other.kleene else s.Element.SINGLE
            )
            return s.Attribute(s.Reference(other.variable, element), self.draw(st.sampled_from(_NUMERIC)))
        return self.constant()

    def constant(self) -> s.Literal:
        return s.Literal(self.draw(st.integers(-3, 3) | st.integers(-3, 3).map(lambda number: Decimal(number) / 2)))

    def compared(self, left: s.Expression, right: s.Expression) -> s.Expression:
        return s.Comparison(self.draw(st.sampled_from(_SIGNS)), left, right)

    def returned(self) -> tuple[s.Returned, ...]:
        """Items of RETURN: events, attributes, values, aggregates."""
        items: list[s.Returned] = []
        for number in range(self.draw(st.integers(1, 3))):
            component = self.draw(st.sampled_from(self.positives))
            reference = s.Reference(component.variable)
            if component.kleene:
                elements = [s.Element.SINGLE, s.Element.FIRST, s.Element.LAST, s.Element.ALL]
                reference = s.Reference(component.variable, self.draw(st.sampled_from(elements)))
            one = not component.kleene or reference.element in (s.Element.FIRST, s.Element.LAST)
            choices: list[s.Expression] = [reference, s.Attribute(reference, self.draw(st.sampled_from(_NUMERIC)))]
            if one:
                choices += [s.Attribute(reference, "s"), self.number(component, reference)]
            elif self.aggregates:
                choices.append(self.aggregate(component, s.Element.ALL))
            items.append(s.Returned(self.draw(st.sampled_from(choices)), f"r{number}"))
        return tuple(items)
