"""Functions of Spark in a row pattern: Spark computes before the search what concerns one row, and after it the rest.

`date_format(A.ts, 'HH')` becomes A.f where column f holds date_format(ts, 'HH'); `date_format(LAST(ts), 'HH')` becomes
LAST(f), since a function of a row's values can be computed at that row as well. A measure such as
`slice(array_agg(x), 1, 3)` is taken apart: the search gives array_agg(x), and Spark computes slice of that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cepheid.errors import QueryError
from cepheid.language.free_names import free_name
from cepheid.language.functions import find_function
from cepheid.language.library.scalars import KNOWN_TYPES, type_parts
from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.check import labels_used, parts_of, rebuilt, walk
from cepheid.language.match_recognize.functions import CLOCKS, FUNCTIONS, MATCH_FUNCTIONS, NAVIGATIONS
from cepheid.language.match_recognize.parse import with_structs
from cepheid.language.match_recognize.parse_expression import parse_expression
from cepheid.language.match_recognize.reader import Reader
from cepheid.language.match_recognize.tokens import Kind, tokens
from cepheid.language.pattern import Span
from cepheid.runners.spark.row_expressions import ColumnWriter
from cepheid.runners.spark.row_values import values_of
from cepheid.runners.sql.translate import AS_WRITTEN, translated

_OF_ROWS = AGGREGATES.keys() | NAVIGATIONS | MATCH_FUNCTIONS
_OURS = FUNCTIONS.keys() | _OF_ROWS | CLOCKS
_SAID = ("unsafe-function", "unknown-function", "unknown-column", "ambiguous-column", "lambda")  # errors of our own
_QUERY = re.compile(r"(SELECT|WITH|EXISTS)\b", re.IGNORECASE)  # what a value stands in the place of


@dataclass(frozen=True)
class Around:
    """A measure that Spark computes after the search: its tree over the parts, and the text that its spans are of."""

    expression: m.Expression
    text: str


@dataclass(frozen=True)
class SparkParts:
    """What Spark is to compute: columns of the table before the search, measures after it."""

    df: Any
    clause: m.Clause  # reads the columns, and gives the parts of the measures
    hidden: tuple[str, ...] = ()  # columns that are no columns of the result
    measures: tuple[m.Measure, ...] = ()  # all measures as they were written
    around: dict[str, Around] = field(default_factory=dict)  # the measures that Spark computes
    matched: str | None = None  # a part that is NULL in rows without a match, which have no measures
    unsafe: bool = False  # may functions be called that are not known to be pure?


def with_spark_functions(df: Any, clause: m.Clause, *, everything: bool = False, unsafe: bool = False) -> SparkParts:
    """The table with the columns that Spark computes, the clause that reads them, and the measures for afterwards.

    Spark computes measures with decimals, whose precision it has rules for; with `everything`, all that are more than
    a navigation or an aggregate.
    """
    expressions = [*(each.expression for each in clause.measures), *(each.condition for each in clause.definitions)]
    decimals = {name.lower() for name, kind in df.dtypes if kind.startswith("decimal")}
    foreign = any(_is_foreign(part) for each in expressions for part in walk(each))
    if not (everything or clause.keys or foreign or any(_reads(each, decimals) for each in expressions)):
        return SparkParts(df, clause, measures=clause.measures, unsafe=unsafe)
    computed = Computed(df, clause, unsafe)
    definitions = tuple(replace(each, condition=computed.condition(each.condition)) for each in clause.definitions)
    measures: list[m.Measure] = []
    around: dict[str, Around] = {}
    for measure in clause.measures:
        inner = computed.replaced(measure.expression)
        by_spark = everything or _reads(inner, decimals)
        if any(_is_foreign(part) for part in walk(inner)) or (by_spark and not _is_part(inner)):
            around[measure.name.name] = computed.taken_apart(measure, measures)
        else:
            measures.append(replace(measure, expression=inner))
    matched = None
    if around and clause.rows is m.Rows.ALL_WITH_UNMATCHED:
        matched = f"{computed.part}matched"
        measures.append(m.Measure(m.Call("match_number", ()), m.Identifier(matched, True)))
    for key in clause.keys:
        computed.columns[key.name] = (*computed.in_spark(key.expression, key.span, []), key.span)
    hidden = tuple(name for name in computed.columns if not any(key.shown and key.name == name for key in clause.keys))
    written = clause.measures
    clause = replace(clause, measures=tuple(measures), definitions=definitions)
    return SparkParts(computed.with_columns(), clause, hidden, written, around, matched, unsafe)


@dataclass
class Computed:
    """The columns that Spark is to compute, by their names: the tree, the text that its spans are of, the place."""

    df: Any
    clause: m.Clause
    unsafe: bool = False
    columns: dict[str, tuple[m.Expression, str, Span]] = field(default_factory=dict)

    @cached_property
    def part(self) -> str:
        """What the names of parts of measures begin with."""
        return free_name("cepheid_part_", [*self.df.columns, *(each.name.name for each in self.clause.measures)])

    @cached_property
    def prefix(self) -> str:
        """What the names of computed columns begin with."""
        return free_name("computed ", self.df.columns)

    def replaced(self, expression: m.Expression) -> m.Expression:
        """The expression with columns in the place of functions that only Spark has."""
        if _is_foreign(expression):
            column = self.constant(expression) or self.column_for(expression)
            if column is not None:
                return column
        return rebuilt(expression, self.replaced)

    def condition(self, expression: m.Expression) -> m.Expression:
        """A condition of DEFINE, which is judged during the search: functions that only Spark has concern one row."""
        inner = self.replaced(expression)
        for part in walk(inner):
            if _is_foreign(part) and (
                isinstance(part, m.Operation)
                or (isinstance(part, m.Call) and self.df.sparkSession.catalog.functionExists(part.name))
            ):
                start, end = part.span
                hint = "register it with cepheid.function, or compute a column before"
                message = "a function of Spark's over several rows in DEFINE"
                raise QueryError(
                    message, text=self.clause.text, start=start, end=end, hint=hint, code="spark-expression"
                )
        return inner

    def constant(self, expression: m.Expression) -> m.Expression | None:
        """The value of an expression that concerns no row, which Spark computes at once."""
        if any(isinstance(part, m.Reference | m.Star | m.Parameter) or _of_rows(part) for part in walk(expression)):
            return None
        tree, text = self.in_spark(expression, expression.span, [])
        session = self.df.sparkSession
        try:
            found = session.range(1).select(ColumnWriter(self.df, text, unsafe=self.unsafe).column(tree))
            return m.Literal(values_of(found)[0], expression.span)
        except Exception as error:
            raise self.refused(expression.span, error) from None

    def column_for(self, call: m.Expression) -> m.Expression | None:
        """What reads the computed column, or None if the call concerns more than one row."""
        special = [part for part in walk(call) if isinstance(part, m.Call) and part.name in _OF_ROWS]
        labels = list(dict.fromkeys(labels_used(call)))
        if not labels or len(labels) > 1:
            return None
        if not special:
            return m.Reference(labels[0], self.add(call, []), call.span)
        around, inner = special[0], special[-1]
        nested = len(special) == 2 and inner in around.arguments
        if around.name not in NAVIGATIONS or len(special) > 2 or (len(special) == 2 and not nested):
            return None
        inside = {id(part) for part in walk(around)}  # f(ts, FIRST(ts)) reads two rows, though the names are the same
        if any(id(part) not in inside for part in walk(call) if isinstance(part, m.Reference)):
            return None
        at = m.Reference(labels[0], self.add(call, [(around, inner.arguments[0])]), call.span)
        moved = replace(inner, arguments=(at, *inner.arguments[1:]))
        return moved if inner is around else replace(around, arguments=(moved, *around.arguments[1:]))

    def add(self, call: m.Expression, instead: list[tuple[m.Expression, m.Expression]]) -> m.Identifier:
        """A new column with the call, at the row that a navigation would lead to."""
        name = f"{self.prefix}{len(self.columns)}"
        self.columns[name] = (*self.in_spark(call, call.span, instead), call.span)
        return m.Identifier(name, True, call.span)

    def taken_apart(self, measure: m.Measure, measures: list[m.Measure]) -> Around:
        """A measure over its parts, which become measures of their own."""
        instead: list[tuple[m.Expression, m.Expression]] = []
        for part in _parts(measure.expression):
            name = m.Identifier(f"{self.part}{len(measures)}", True, part.span)
            measures.append(m.Measure(self.replaced(part), name, part.span))
            instead.append((part, m.Reference(None, name, part.span)))
        return Around(*self.in_spark(measure.expression, measure.span, instead))

    def in_spark(
        self, expression: m.Expression, span: Span, instead: list[tuple[m.Expression, m.Expression]]
    ) -> tuple[m.Expression, str]:
        """The expression with Spark's functions and with some parts replaced, and the text that its spans are of.

        What was written for another system is translated as text, and what comes out is parsed again.
        """
        if self.clause.dialect in AS_WRITTEN:
            return substituted(expression, {id(old): new for old, new in instead}), self.clause.text
        values: dict[str, list[m.Expression]] = {}
        changes: list[tuple[int, int, str]] = []
        for part in walk(expression):
            if isinstance(part, m.Reference) and part.span[0] < part.column.span[0]:  # a label, or the table's name
                changes.append((part.span[0], part.column.span[0], ""))
            elif isinstance(part, m.Literal) and self.is_given(part):
                name = f"cepheid_value_{part.span[0]}"
                known = values.setdefault(name, [])
                known += [part] if not any(each is part for each in known) else []
                changes.append((*part.span, name))
        for old, new in instead:
            if isinstance(new, m.Reference) and new.column.name.startswith(self.part):
                changes.append((*old.span, new.column.name))
            else:
                changes += [(old.span[0], new.span[0], ""), (new.span[1], old.span[1], "")]
        written = translated(f"SELECT {self.text_with(span, changes)}", self.clause.dialect)
        try:
            tree = parse_select(written)
        except QueryError as error:
            raise self.refused(span, error) from None
        return with_values(tree, values), written

    def is_given(self, literal: m.Literal) -> bool:
        """Is it the value of a query, or a text that the other system would read otherwise than the clause does?"""
        written = self.clause.text[slice(*literal.span)]
        if isinstance(literal.value, str) and written.startswith("'"):
            return "\\" in literal.value or "'" in literal.value
        return _QUERY.match(written) is not None or (literal.value is False and written.lower() != "false")

    def text_with(self, span: Span, changes: list[tuple[int, int, str]]) -> str:
        """The text of a span with some pieces replaced."""
        text, position = "", span[0]
        for start, end, instead in sorted(set(changes)):
            if end > position:  # else it lies inside of a piece that was replaced
                text += self.clause.text[position : max(start, position)] + instead
                position = end
        return text + self.clause.text[position : span[1]]

    def with_columns(self) -> Any:
        """The table with all computed columns."""
        df = self.df
        for name, (tree, text, span) in self.columns.items():
            try:
                df = df.withColumn(name, ColumnWriter(df, text, unsafe=self.unsafe).column(tree))
                df.schema  # noqa: B018 - over Spark Connect only this asks the server
            except Exception as error:
                raise self.refused(span, error) from None
        return df

    def refused(self, span: Span, error: Exception) -> QueryError:
        """What Spark says of an expression, pointing at it."""
        return refused(self.clause.text, span, error)


def parse_select(text: str) -> m.Expression:
    """The expression of `SELECT expression`, in Spark's SQL with its escapes."""
    reader = Reader(text, tokens(text, escapes=True))
    reader.expect_words("SELECT")
    expression = parse_expression(reader)
    if reader.token.kind is not Kind.END:
        reader.unexpected("the end of the expression")
    return with_structs(expression, set())


def substituted(expression: m.Expression, instead: Mapping[int, m.Expression]) -> m.Expression:
    """The expression with others in the place of some of its nodes, by their identity."""
    if id(expression) in instead:
        return instead[id(expression)]
    return rebuilt(expression, lambda part: substituted(part, instead))


def with_values(expression: m.Expression, values: Mapping[str, list[m.Expression]]) -> m.Expression:
    """The expression with the values of queries in the place of the names that stood for them."""

    def spread(parts: Iterable[m.Expression]) -> tuple[m.Expression, ...]:
        return tuple(
            value
            for part in parts
            for value in (
                values[part.column.name]
                if isinstance(part, m.Reference) and part.column.name in values
                else [with_values(part, values)]
            )
        )

    match expression:
        case m.Call(arguments=arguments):
            return replace(expression, arguments=spread(arguments))
        case m.Operation(operands=operands):
            return replace(expression, operands=spread(operands))
    return spread((expression,))[0] if isinstance(expression, m.Reference) and values else expression


def refused(text: str, span: tuple[int, int], error: Exception) -> QueryError:
    """What Spark says of an expression, pointing at it."""
    if isinstance(error, QueryError) and error.code in _SAID:
        return (
            error
            if error.text == text
            else QueryError(error.message, text=text, start=span[0], end=span[1], hint=error.hint, code=error.code)
        )
    said = (error.message if isinstance(error, QueryError) else str(error)).strip().splitlines()[0][:300]
    start, end = span
    message, code = f"Spark cannot compute this: {said}", "spark-expression"
    if "UNRESOLVED_ROUTINE" in said:
        name = re.search("`([^`]+)`", said)
        message, code = f"no function '{name.group(1) if name else text[start:end]}'", "unknown-function"
    elif "MISSING_GROUP_BY" in said:
        message, code = "an aggregate of Spark's that row patterns do not have", "unknown-function"
    return QueryError(message, text=text, start=start, end=end, code=code)


def _reads(expression: m.Expression, names: set[str]) -> bool:
    """Is it an operation on one of these columns?"""
    read = any(isinstance(part, m.Reference) and part.column.name.lower() in names for part in walk(expression))
    return read and not _is_part(expression)


def _of_rows(expression: m.Expression) -> bool:
    return isinstance(expression, m.Call) and expression.name in _OF_ROWS


def _is_part(expression: m.Expression) -> bool:
    """Is it for the search to give: a column at some row, a navigation, an aggregate?"""
    return isinstance(expression, m.Reference | m.Star | m.Literal) or _of_rows(expression)


def _parts(expression: m.Expression) -> list[m.Expression]:
    """The largest pieces of an expression that are for the search to give."""
    if _is_part(expression) or isinstance(expression, m.Parameter):
        return [] if isinstance(expression, m.Literal | m.Parameter) else [expression]
    return [part for each in parts_of(expression) for part in _parts(each)]


def _is_foreign(expression: m.Expression) -> bool:
    """Is it something that only Spark has: a function or a type that is none of ours?"""
    if isinstance(expression, m.Operation):
        return expression.operator == "cast" and type_parts(str(expression.target))[0] not in KNOWN_TYPES
    if not isinstance(expression, m.Call) or expression.name in _OURS or expression.mode is not None:
        return False
    own = find_function(expression.name)
    return own is None or not own.user
