"""What a MATCH_RECOGNIZE clause says: the tree that its text is parsed to."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from cepheid.language.pattern import NOWHERE, Pattern, Span

Scalar: TypeAlias = object  # a value of SQL: None, bool, int, float, Decimal, str, date, datetime, timedelta, list


@dataclass(frozen=True)
class Months:
    """A length of time in months, which has no fixed length in days."""

    count: int

    def __neg__(self) -> Months:
        return Months(-self.count)

    def __add__(self, other: Months) -> Months:
        return Months(self.count + other.count)


@dataclass(frozen=True)
class Identifier:
    """A name as written. Unquoted ones are compared in capitals, quoted ones as they are (SQL:2016 part 2, 5.4)."""

    name: str
    quoted: bool = False
    span: Span = field(default=NOWHERE, compare=False)

    @property
    def canonical(self) -> str:
        return self.name if self.quoted else self.name.upper()

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Literal:
    """A value that stands in the text."""

    value: Scalar
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Reference:
    """A column, of the rows of a label or of all rows of the match; with fields, a part of a struct."""

    label: Identifier | None
    column: Identifier
    span: Span = field(default=NOWHERE, compare=False)
    fields: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class Parameter:
    """The parameter of a lambda, inside of it; with fields, a part of a struct."""

    name: str
    span: Span = field(default=NOWHERE, compare=False)
    fields: tuple[Identifier, ...] = ()


@dataclass(frozen=True)
class Star:
    """The argument of count(*) or count(A.*)."""

    label: Identifier | None = None
    span: Span = field(default=NOWHERE, compare=False)


class Mode(Enum):
    """How much of the match an expression sees."""

    RUNNING = "RUNNING"
    FINAL = "FINAL"


@dataclass(frozen=True)
class Direction:
    """How a key sorts; `nulls_first` None means as the dialect has it."""

    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Call:
    """A function by its name: an aggregate, a navigation or a function of values.

    The last arguments of an aggregate are the keys of its ORDER BY, and the condition of its FILTER.
    """

    name: str  # in lower case
    arguments: tuple[Expression, ...]
    mode: Mode | None = None
    distinct: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    name_span: Span = field(default=NOWHERE, compare=False)
    order: tuple[Direction, ...] = ()
    filtered: bool = False

    @property
    def values(self) -> tuple[Expression, ...]:
        """The arguments without those of ORDER BY and FILTER."""
        return self.arguments[: len(self.arguments) - len(self.order) - self.filtered]


@dataclass(frozen=True)
class Operation:
    """An operator, CASE, CAST or lambda: `operator` is a name of functions.OPERATORS; `target` the type of a CAST."""

    operator: str
    operands: tuple[Expression, ...]
    target: str | None = None
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = Literal | Reference | Parameter | Star | Call | Operation


@dataclass(frozen=True)
class KeyExpression:
    """An expression or a name with dots in PARTITION BY or ORDER BY: computed as a column of that name."""

    name: str
    text: str
    shown: bool  # partition keys are columns of the result
    expression: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class OrderKey:
    """A column of ORDER BY; `nulls_first` None means as the dialect has it."""

    column: Identifier
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class Measure:
    """An expression of MEASURES and its name; `span` is that of the expression, with its parentheses."""

    expression: Expression
    name: Identifier
    span: Span = field(default=NOWHERE, compare=False)


class Rows(Enum):
    """What comes out of a match."""

    ONE = "ONE ROW PER MATCH"
    ALL_SHOW_EMPTY = "ALL ROWS PER MATCH SHOW EMPTY MATCHES"
    ALL_OMIT_EMPTY = "ALL ROWS PER MATCH OMIT EMPTY MATCHES"
    ALL_WITH_UNMATCHED = "ALL ROWS PER MATCH WITH UNMATCHED ROWS"


class SkipTo(Enum):
    """Where the search goes on after a match."""

    PAST_LAST_ROW = "PAST LAST ROW"
    NEXT_ROW = "TO NEXT ROW"
    FIRST = "TO FIRST"
    LAST = "TO LAST"


@dataclass(frozen=True)
class Skip:
    """AFTER MATCH SKIP; a label with FIRST and LAST."""

    to: SkipTo = SkipTo.PAST_LAST_ROW
    label: Identifier | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Subset:
    """A label that stands for any of several."""

    name: Identifier
    labels: tuple[Identifier, ...]


@dataclass(frozen=True)
class Definition:
    """When a row may be given a label; `span` is that of the condition, with its parentheses."""

    label: Identifier
    condition: Expression
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True)
class Clause:
    """A MATCH_RECOGNIZE clause; labels of the pattern are canonical names."""

    pattern: Pattern
    definitions: tuple[Definition, ...]
    partition_by: tuple[Identifier, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    measures: tuple[Measure, ...] = ()
    rows: Rows = Rows.ONE
    skip: Skip = Skip()
    subsets: tuple[Subset, ...] = ()
    within: Expression | None = None
    text: str = field(default="", compare=False)
    dialect: str = "spark"
    keys: tuple[KeyExpression, ...] = ()
    longest: bool = False  # the longest match at a row rather than the preferred one (BigQuery)
    partial: bool = False  # also report matches whose window passes before they are complete
    tables: frozenset[str] = frozenset()  # names of the table, which may stand before its columns
