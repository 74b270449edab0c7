"""The syntax tree of a query: frozen nodes that know where in the text they stand.

Two trees are equal when they mean the same text, wherever it stood: spans do not take part in comparison.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import TypeAlias

from cepheid.budget import checkpoint
from cepheid.language.pattern import Empty, Pattern, Repeat, Sequence, Single
from cepheid.language.schema import DataType

Constant: TypeAlias = bool | int | float | Decimal | str | date | timedelta | None
Span: TypeAlias = tuple[int, int]  # character offsets into the query text, half open
NOWHERE: Span = (0, 0)
MAX_DEPTH = 100  # how deep expressions may nest: many passes recurse, and Python's stack is finite


@dataclass(frozen=True)
class Node:
    """Anything that stands somewhere in the query text."""

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


# --- expressions ------------------------------------------------------------------------------------------------


class Element(Enum):
    """Which element of a variable's events is meant (SASE+ section 2)."""

    SINGLE = ""  # a          the event, or every element of a Kleene group
    FIRST = "[1]"  # a[1]
    CURRENT = "[i]"  # a[i]       the one being taken
    PREVIOUS = "[i-1]"  # a[i-1]     the one taken before it
    BEFORE = "[..i-1]"  # a[..i-1]   all taken before it
    LAST = "[LEN]"  # a[a.LEN]   the last one, once the group is closed
    ALL = "[]"  # a[]        the whole closed group


AT_HAND = (Element.SINGLE, Element.CURRENT)  # the event that is tested


@dataclass(frozen=True)
class Expression(Node):
    """A value or a condition."""


@dataclass(frozen=True)
class Literal(Expression):
    """A number, a string, TRUE, FALSE or NULL; in clauses also a date, a time or a length of time."""

    value: Constant


@dataclass(frozen=True)
class Duration(Expression):
    """`5 minutes` as a value; binding makes it a number of the steps that the times beside it count."""

    length: int | float
    unit: str  # a key of units.UNITS


@dataclass(frozen=True)
class Star(Expression):
    """`RETURN *`: every event of the match; `RETURN a.*`: every attribute of one."""

    of: Reference | None = None


@dataclass(frozen=True)
class Name(Expression):
    """A bare word: an attribute of a filter query's only component, or a parameter given by the caller."""

    name: str


@dataclass(frozen=True)
class Reference(Expression):
    """A variable of the pattern, or one element of its Kleene group: `a`, `a[1]`, `a[..i-1]`."""

    variable: str
    element: Element = Element.SINGLE


@dataclass(frozen=True)
class Attribute(Expression):
    """An attribute of an event, with an optional default for when that event is missing: `x.id[z.id]`."""

    of: Reference
    name: str
    default: Expression | None = None


@dataclass(frozen=True)
class Length(Expression):
    """`a.LEN`: how many events a Kleene group holds."""

    variable: str


@dataclass(frozen=True)
class PathValue(Expression):
    """A number or a string that a search keeps of its path: an aggregate of rows, the label of a row."""

    name: str
    kind: DataType


@dataclass(frozen=True)
class Call(Expression):
    """A function: an aggregate over a Kleene group, a built-in, or one that the user registered."""

    function: str
    arguments: tuple[Expression, ...]
    target: str | None = field(default=None, kw_only=True)  # once bound: the type of values, where these do not tell


@dataclass(frozen=True)
class Negative(Expression):
    """Arithmetic minus in front of a value."""

    operand: Expression


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`+ - * / % div` between two values; `whole /` is a division that cuts the quotient of whole numbers."""

    operator: str
    left: Expression
    right: Expression
    target: str | None = field(default=None, kw_only=True)  # once bound: the type of decimals


@dataclass(frozen=True)
class Comparison(Expression):
    """`= != < <= > >=` between two values."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Membership(Expression):
    """`x IN (1, 2)`, or `x IN Finance` with a parameter that holds the values."""

    operand: Expression
    values: tuple[Expression, ...] | Name
    negated: bool = False


@dataclass(frozen=True)
class Between(Expression):
    """`x BETWEEN low AND high`, both ends included."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False


@dataclass(frozen=True)
class IsNull(Expression):
    """`x IS NULL` and `x IS NOT NULL`."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class Equivalence(Expression):
    """`[id]`, `[name = 'John']`, `[a, b]`: equal on all components (SASE section 2.2.1)."""

    tests: tuple[tuple[str, Expression | None], ...]


@dataclass(frozen=True)
class Not(Expression):
    """Negated condition."""

    operand: Expression


@dataclass(frozen=True)
class And(Expression):
    """All hold."""

    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Or(Expression):
    """At least one holds."""

    operands: tuple[Expression, ...]


# --- the query --------------------------------------------------------------------------------------------------


class Strategy(Enum):
    """How the next event of a match is selected (SASE+ section 2)."""

    STRICT_CONTIGUITY = "strict_contiguity"
    PARTITION_CONTIGUITY = "partition_contiguity"
    SKIP_TILL_NEXT = "skip_till_next_match"
    SKIP_TILL_ANY = "skip_till_any_match"


CONTIGUOUS = frozenset({Strategy.STRICT_CONTIGUITY, Strategy.PARTITION_CONTIGUITY})  # they see every event


@dataclass(frozen=True)
class Gap(Node):
    """`AFTER 1 minute WITHIN 5 minutes`: how long after the event selected before it an event of a component comes."""

    after: Window | None = None  # at least this much
    within: Window | None = None  # and less than this


@dataclass(frozen=True)
class Component(Node):
    """One place of the pattern.

    `types` is None for an untyped place (AYAC). A bare word in SEQ is either a type or an untyped variable;
    the parser decides by whether the query mentions it as a variable.
    """

    variable: str
    types: tuple[str, ...] | None = None
    any: bool = False  # declared with ANY: comparisons with a NULL attribute count as true (SASE section 2.2.2)
    negative: bool = False
    kleene: bool = False
    named: bool = True  # False: the text gave no variable, so the name was made up
    gap: Gap | None = None
    defined: tuple[str, ...] = ()  # once bound: the definitions that stand for its types
    until: Expression | None = None  # a group takes nothing at or after the first later event that passes this

    @property
    def looks_back(self) -> bool:
        """Does what ends its group depend on what was taken, besides on when the group began?"""
        mentions = walk(self.until) if self.until is not None else ()
        return any(
            isinstance(node, Length)
            or (isinstance(node, Reference) and (node.variable != self.variable or node.element not in AT_HAND))
            for node in mentions
        )


@dataclass(frozen=True)
class Selection(Node):
    """The event selection strategy as written, with the variables it was written over."""

    strategy: Strategy
    variables: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepSelection(Node):
    """A strategy for single steps: how the named events are reached from the event selected before them.

    `b` and `b[1]` are the first event of a group, `b[i]` the further ones, `b[]` both.
    """

    strategy: Strategy
    steps: tuple[Reference, ...]


@dataclass(frozen=True)
class Window(Node):
    """`WITHIN 12 hours`, `WITHIN 500` (the time column's own unit), `WITHIN 100 EVENTS`, `WITHIN T`."""

    length: int | float | Name
    unit: str | None = None  # a key of units.UNITS, "events", or None


@dataclass(frozen=True)
class Returned(Node):
    """One item of RETURN."""

    expression: Expression
    alias: str | None = None


@dataclass(frozen=True)
class Total(Node):
    """One item of SUMMARISE: a function over the events of a variable in all matches; `count(*)` has no argument."""

    function: str
    argument: Expression | None = None
    alias: str | None = None


@dataclass(frozen=True)
class Summary(Node):
    """`SUMMARISE count(*) AS n, sum(a.volume) BY symbol EVERY 10 minutes`: totals instead of matches."""

    totals: tuple[Total, ...]
    by: tuple[str, ...] = ()
    every: Window | None = None


@dataclass(frozen=True)
class Definition(Node):
    """`DEFINE small AS amount < 10`: events that pass the condition, under a name that stands where a type does."""

    name: str
    condition: Expression


class OutputMode(Enum):
    """Which of the matches are reported."""

    ALL = "ALL"
    NON_OVERLAP = "NON-OVERLAP"
    MAXIMAL = "MAXIMAL"
    TOP = "TOP"
    PARTIAL = "PARTIAL"  # also runs whose window passed before they were complete


@dataclass(frozen=True)
class Output(Node):
    """`OUTPUT ALL | NON-OVERLAP | MAXIMAL | PARTIAL | TOP k BY CONFIDENCE`."""

    mode: OutputMode = OutputMode.ALL
    count: int | None = None
    waiting: tuple[str, ...] | None = None  # of PARTIAL, a part: no matches, only runs that waited for these variables


IN_ORDER = Empty()  # in place of a pattern: the components follow each other as they are listed


@dataclass(frozen=True)
class QuerySyntax(Node):
    """A whole query as written.

    `pattern` says how the components combine, each a `Single` with the name of its variable; if it is not given, they
    follow each other as they are listed. `components` are the leaves in the order of the text; `kleene` marks those
    whose variable is a list.
    """

    components: tuple[Component, ...]
    sequence: bool = True  # False: a single component without SEQ, a filter query
    where: Expression | None = None
    selection: Selection | None = None
    within: Window | None = None
    threshold: float | None = None
    confidence: float | None = None
    returns: tuple[Returned, ...] | None = None
    output: Output = Output()
    summary: Summary | None = None
    pattern: Pattern = IN_ORDER
    definitions: tuple[Definition, ...] = ()
    sources: tuple[str, ...] = ()  # FROM: queries whose matches are the events of this one
    step_selections: tuple[StepSelection, ...] = ()  # beside the query's own strategy
    forecast: float | None = None  # report partial matches that complete with at least this probability

    def __post_init__(self) -> None:
        if isinstance(self.pattern, Empty):
            object.__setattr__(self, "pattern", in_order(self.components))

    @cached_property
    def is_linear(self) -> bool:
        """Is it a plain sequence of events and Kleene groups, so that a match fills one component after the other?

        Gaps, ends of groups that depend on earlier events, and runs that timed out need the states of an expression.
        """
        if self.output.waiting is not None or self.pattern != in_order(self.components):
            return False
        return not any(component.gap is not None or component.looks_back for component in self.components)

    def in_order(self, components: tuple[Component, ...]) -> QuerySyntax:
        """The same with these components instead, one after the other."""
        return dataclasses.replace(self, components=components, pattern=in_order(components))

    def conditions(self) -> tuple[Expression, ...]:
        """WHERE, what DEFINE says, and where groups end."""
        where = () if self.where is None else (self.where,)
        ends = (component.until for component in self.components if component.until is not None)
        return (*where, *(definition.condition for definition in self.definitions), *ends)

    def values(self) -> tuple[Expression, ...]:
        """What RETURN and SUMMARISE compute."""
        totals = self.summary.totals if self.summary is not None else ()
        summed = (total.argument for total in totals if total.argument is not None)
        return (*(item.expression for item in self.returns or ()), *summed)

    def with_ends(self, change: Callable[[Expression], Expression]) -> QuerySyntax:
        """The same with the conditions changed that end groups."""
        if not any(component.until is not None for component in self.components):
            return self
        changed = (c if c.until is None else dataclasses.replace(c, until=change(c.until)) for c in self.components)
        return dataclasses.replace(self, components=tuple(changed))

    def with_values(self, change: Callable[[Expression], Expression]) -> QuerySyntax:
        """The same with what RETURN and SUMMARISE compute changed."""
        returns = self.returns and tuple(
            dataclasses.replace(item, expression=change(item.expression)) for item in self.returns
        )
        summary = self.summary
        if summary is not None:
            totals = tuple(
                total if total.argument is None else dataclasses.replace(total, argument=change(total.argument))
                for total in summary.totals
            )
            summary = dataclasses.replace(summary, totals=totals)
        return dataclasses.replace(self, returns=returns, summary=summary)


def in_order(components: tuple[Component, ...]) -> Pattern:
    """The pattern of a plain sequence.

    >>> in_order((Component("a"), Component("b", kleene=True))).parts[1].part
    Single(label='b')
    """
    parts: list[Pattern] = []
    for component in components:
        single = Single(component.variable, component.span)
        parts.append(Repeat(single, 1, None, span=component.span) if component.kleene else single)
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


# --- walking ----------------------------------------------------------------------------------------------------


_known_parts: dict[type, tuple[str, ...]] = {}


def _parts(node: Expression) -> tuple[str, ...]:
    """The fields that can hold other expressions. Kept by kind, since every call of `match` walks its query."""
    found = _known_parts.get(type(node))
    if found is None:
        found = tuple(item.name for item in dataclasses.fields(node) if item.name != "span")
        _known_parts[type(node)] = found
    return found


def children(node: Expression) -> tuple[Expression, ...]:
    """The expressions directly inside one, in the order of the text.

    >>> children(Comparison("<", Name("x"), Literal(3)))
    (Name(name='x'), Literal(value=3))
    """
    found: list[Expression] = []
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Expression):
            found.append(value)
        elif isinstance(value, tuple):
            for part in value:
                if isinstance(part, Expression):
                    found.append(part)
                elif isinstance(part, tuple):
                    found.extend(inner for inner in part if isinstance(inner, Expression))
    return tuple(found)


def walk(node: Expression) -> Iterator[Expression]:
    """The expression and everything inside it, outermost first; safe for any depth."""
    pending = [node]
    while pending:
        checkpoint()
        current = pending.pop()
        yield current
        pending.extend(reversed(children(current)))


def deeper_than(node: Expression, limit: int) -> Expression | None:
    """The first part found to be nested more than `limit` deep, or None; safe for any depth.

    >>> deeper_than(Not(Not(Name("x"))), 2)
    Name(name='x')
    """
    pending = [(node, 1)]
    while pending:
        current, depth = pending.pop()
        if depth > limit:
            return current
        pending.extend((child, depth + 1) for child in children(current))
    return None


def rebuild(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """A copy of the expression with `change` applied to its direct children.

    >>> rebuild(Not(Name("x")), lambda inner: Name(inner.name.upper()))
    Not(operand=Name(name='X'))
    """
    checkpoint()
    updates: dict[str, object] = {}
    for name in _parts(node):
        value = getattr(node, name)
        if isinstance(value, Expression):
            changed: object = change(value)
        elif isinstance(value, tuple):
            changed = tuple(_rebuild_part(part, change) for part in value)
        else:
            continue
        if changed is not value:
            updates[name] = changed
    return dataclasses.replace(node, **updates) if updates else node  # type: ignore[arg-type]


def _rebuild_part(part: object, change: Callable[[Expression], Expression]) -> object:
    if isinstance(part, Expression):
        return change(part)
    if isinstance(part, tuple):
        return tuple(_rebuild_part(inner, change) for inner in part)
    return part


def conjoined(node: Expression | None) -> list[Expression]:
    """The conditions of the outermost AND."""
    if isinstance(node, And):
        return [part for operand in node.operands for part in conjoined(operand)]
    return [] if node is None else [node]


def variables_of(node: Expression) -> frozenset[str]:
    """The pattern variables that an expression mentions, outside the defaults for missing events."""
    found: set[str] = set()
    pending: list[Expression] = [node]
    while pending:
        current = pending.pop()
        if isinstance(current, Reference | Length):
            found.add(current.variable)
        elif isinstance(current, Attribute):
            pending.append(current.of)
        else:
            pending.extend(children(current))
    return frozenset(found)


def mentioned_words(query: QuerySyntax) -> frozenset[str]:
    """Every word of WHERE and RETURN that is, or could be, a variable of the pattern.

    In a filter query a word alone is an attribute: `EVENT price WHERE price > 3` is about events of type price.
    """
    found = set(query.selection.variables) if query.selection else set()
    found |= {step.variable for selection in query.step_selections for step in selection.steps}
    expressions = [query.where] if query.where is not None else []
    expressions += [component.until for component in query.components if component.until is not None]
    expressions += query.values()
    for expression in expressions:
        for node in walk(expression):
            if isinstance(node, Reference | Length):
                found.add(node.variable)
            elif isinstance(node, Name) and query.sequence:
                found.add(node.name)
    return frozenset(found)
