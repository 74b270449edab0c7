"""A clause over the columns of a table: every reference to rows is a navigation or an aggregate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from cepheid.language import syntax as s
from cepheid.language.match_recognize.syntax import Rows, SkipTo
from cepheid.language.pattern import NOWHERE, Pattern, Span

Labels: TypeAlias = frozenset[str] | None  # None: all labels


@dataclass(frozen=True)
class Column(s.Expression):
    """A column of the row at hand: the one a navigation arrived at, or one that is aggregated."""

    name: str


@dataclass(frozen=True)
class RowLabel(s.Expression):
    """The label of the row at hand; NULL outside of the match."""


@dataclass(frozen=True)
class MatchNumber(s.Expression):
    """The number of the match in its partition, from 1."""


@dataclass(frozen=True)
class SequenceNumber(s.Expression):
    """The number of the row in its match, from 1 (Snowflake)."""


@dataclass(frozen=True)
class Navigate(s.Expression):
    """An expression at another row: the offset-th first or last one with such a label, then so many rows on.

    It sees the rows up to the row at hand or, if final, the whole match. LAST counts back from the last of these rows,
    FIRST from the first one: it is NULL until as many rows with the label have been reached.
    """

    inner: s.Expression
    labels: Labels = None
    first: bool = False
    offset: int = 0
    shift: int = 0  # PREV is negative
    final: bool = False


@dataclass(frozen=True)
class Aggregated(s.Expression):
    """An aggregate over the rows with such a label, up to the row at hand or, if final, of the whole match.

    No argument means to count rows. The last arguments are the keys that sort the rows, and the condition that selects
    them.
    """

    function: str
    arguments: tuple[s.Expression, ...]
    labels: Labels = None
    final: bool = False
    distinct: bool = False
    order: tuple[tuple[bool, bool], ...] = ()  # per key: descending, NULLs first
    filtered: bool = False


def applied(function: str, arguments: tuple[s.Expression, ...], target: str | None, span: Span) -> s.Expression:
    """An operator or a function of values; `target` is the type of a CAST.

    >>> applied("in", (Column("x"), s.Literal(1)), None, NOWHERE)
    Membership(operand=Column(name='x'), values=(Literal(value=1),), negated=False)
    """
    match function:
        case "and":
            return s.And(arguments, span=span)
        case "or":
            return s.Or(arguments, span=span)
        case "not":
            return s.Not(*arguments, span=span)
        case "negative":
            return s.Negative(*arguments, span=span)
        case "is null":
            return s.IsNull(arguments[0], span=span)
        case "in":
            return s.Membership(arguments[0], arguments[1:], span=span)
        case "+" | "-" | "*" | "/" | "%" | "div" | "whole /":
            return s.Arithmetic(function, *arguments, span=span)
        case "=" | "!=" | "<" | "<=" | ">" | ">=":
            return s.Comparison(function, *arguments, span=span)
    named = () if target is None else (s.Literal(target),)
    return s.Call(function, (*arguments, *named), span=span)


@dataclass(frozen=True)
class SortKey:
    """A column that rows are sorted by."""

    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class ComputedKey:
    """A column that is computed from each row before the rows are partitioned and sorted."""

    name: str
    value: s.Expression  # its columns are those of the row
    shown: bool  # partition keys are columns of the result


@dataclass(frozen=True)
class BoundClause:
    """What to do with a table: `conditions` has a label only if it is defined."""

    pattern: Pattern
    labels: tuple[str, ...]
    conditions: dict[str, s.Expression]
    columns: tuple[str, ...]
    partition_by: tuple[str, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    measures: tuple[tuple[str, s.Expression], ...] = ()
    rows: Rows = Rows.ONE
    skip: SkipTo = SkipTo.PAST_LAST_ROW
    skip_labels: Labels = None
    zone: str | None = None  # in which times with a zone are read and shown
    within: int | None = None  # in the unit of the first sort key: microseconds for times
    text: str = ""
    skip_span: Span = NOWHERE
    dialect: str = "spark"
    longest: bool = False  # the longest match at a row, the preferred one of equally long ones
    partial: bool = False  # also report matches whose window passes before they are complete
    keys: tuple[ComputedKey, ...] = ()  # columns that the table itself does not have

    @property
    def output_columns(self) -> tuple[str, ...]:
        """The names of the result's columns, as the standard orders them, each once."""
        measured = tuple(name for name, _ in self.measures)
        if self.rows is Rows.ONE:
            return (*self.partition_by, *measured)
        hidden = {key.name for key in self.keys if not key.shown}
        first = tuple(dict.fromkeys((*self.partition_by, *(key.column for key in self.order_by))))
        rest = (name for name in self.columns if name not in first)
        return tuple(name for name in (*first, *measured, *rest) if name not in hidden)


def columns_of(expression: s.Expression) -> set[str]:
    """The columns an expression reads."""
    return {node.name for node in s.walk(expression) if isinstance(node, Column)}
