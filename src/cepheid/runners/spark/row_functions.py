"""Functions of Spark in a row pattern: Spark computes before the search what concerns one row, and after it the rest.

`date_format(A.ts, 'HH')` becomes A.f where column f holds date_format(ts, 'HH'); `date_format(LAST(ts), 'HH')` becomes
LAST(f), since a function of a row's values can be computed at that row as well. A measure such as
`slice(array_agg(x), 1, 3)` is taken apart: the search gives array_agg(x), and Spark computes slice of that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from cepheid.errors import QueryError
from cepheid.language.free_names import free_name
from cepheid.language.functions import find_function
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.check import labels_used, parts_of, walk
from cepheid.language.match_recognize.functions import CLOCKS, FUNCTIONS, MATCH_FUNCTIONS, NAVIGATIONS
from cepheid.language.match_recognize.scalars import KNOWN_TYPES, type_parts
from cepheid.language.match_recognize.syntax import (
    Call,
    Clause,
    Expression,
    Identifier,
    Literal,
    Measure,
    Operation,
    Parameter,
    Reference,
    Rows,
    Star,
)
from cepheid.runners.sql.translate import translated

_OF_ROWS = AGGREGATES.keys() | NAVIGATIONS | MATCH_FUNCTIONS
_OURS = FUNCTIONS.keys() | _OF_ROWS | CLOCKS


@dataclass(frozen=True)
class SparkParts:
    """What Spark is to compute: columns of the table before the search, measures after it."""

    df: Any
    clause: Clause  # reads the columns, and gives the parts of the measures
    hidden: tuple[str, ...] = ()  # columns that are no columns of the result
    measures: tuple[Measure, ...] = ()  # all measures as they were written
    around: dict[str, str] = field(default_factory=dict)  # the measures that Spark computes, over the parts' columns


def with_spark_functions(df: Any, clause: Clause, *, everything: bool = False) -> SparkParts:
    """The table with the columns that Spark computes, the clause that reads them, and the measures for afterwards.

    Spark computes measures with decimals, whose precision it has rules for; with `everything`, all that are more than
    a navigation or an aggregate.
    """
    expressions = [*(each.expression for each in clause.measures), *(each.condition for each in clause.definitions)]
    decimals = {name.lower() for name, kind in df.dtypes if kind.startswith("decimal")}
    foreign = any(_is_foreign(part) for each in expressions for part in walk(each))
    if not (everything or clause.keys or foreign or any(_reads(each, decimals) for each in expressions)):
        return SparkParts(df, clause, measures=clause.measures)
    computed = Computed(df, clause)
    definitions = tuple(replace(each, condition=computed.condition(each.condition)) for each in clause.definitions)
    measures: list[Measure] = []
    around: dict[str, str] = {}
    for measure in clause.measures:
        inner = computed.replaced(measure.expression)
        by_spark = everything or _reads(inner, decimals)
        if any(_is_foreign(part) for part in walk(inner)) or (by_spark and not _is_part(inner)):
            around[measure.name.name] = computed.taken_apart(measure, measures)
        else:
            measures.append(replace(measure, expression=inner))
    if around and clause.rows is Rows.ALL_WITH_UNMATCHED:  # rows without a match have no measures
        matched = f"{computed.part}matched"
        measures.append(Measure(Call("match_number", ()), Identifier(matched, True)))
        around = {name: f"CASE WHEN {matched} IS NOT NULL THEN {text} END" for name, text in around.items()}
    for key in clause.keys:
        computed.columns[key.name] = (key.text, (0, 0))
    hidden = tuple(name for name in computed.columns if not any(key.shown and key.name == name for key in clause.keys))
    written = clause.measures
    clause = replace(clause, measures=tuple(measures), definitions=definitions)
    return SparkParts(computed.with_columns(), clause, hidden, written, around)


@dataclass
class Computed:
    """The columns that Spark is to compute: their expressions and where they stand, by their names."""

    df: Any
    clause: Clause
    columns: dict[str, tuple[str, tuple[int, int]]] = field(default_factory=dict)

    @cached_property
    def part(self) -> str:
        """What the names of parts of measures begin with."""
        return free_name("cepheid_part_", [*self.df.columns, *(each.name.name for each in self.clause.measures)])

    @cached_property
    def prefix(self) -> str:
        """What the names of computed columns begin with."""
        return free_name("computed ", self.df.columns)

    def replaced(self, expression: Expression) -> Expression:
        """The expression with columns in the place of functions that only Spark has."""
        if _is_foreign(expression):
            column = self.constant(expression) or self.column_for(expression)
            if column is not None:
                return column
        match expression:
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(self.replaced(part) for part in arguments))
            case Operation(operands=operands):
                return replace(expression, operands=tuple(self.replaced(part) for part in operands))
        return expression

    def condition(self, expression: Expression) -> Expression:
        """A condition of DEFINE, which is judged during the search: functions that only Spark has concern one row."""
        inner = self.replaced(expression)
        for part in walk(inner):
            if _is_foreign(part) and (
                isinstance(part, Operation)
                or (isinstance(part, Call) and self.df.sparkSession.catalog.functionExists(part.name))
            ):
                start, end = part.span
                hint = "register it with cepheid.function, or compute a column before"
                message = "a function of Spark's over several rows in DEFINE"
                raise QueryError(
                    message, text=self.clause.text, start=start, end=end, hint=hint, code="spark-expression"
                )
        return inner

    def constant(self, expression: Expression) -> Expression | None:
        """The value of an expression that concerns no row, which Spark computes at once."""
        if any(isinstance(part, Reference | Star) or _of_rows(part) for part in walk(expression)):
            return None
        select = f"SELECT {self.clause.text[slice(*expression.span)]}"
        try:
            value = self.df.sparkSession.sql(translated(select, self.clause.dialect)).collect()[0][0]
        except Exception as error:
            raise self.refused(expression.span, error) from None
        return Literal(value, expression.span)

    def column_for(self, call: Expression) -> Expression | None:
        """What reads the computed column, or None if the call concerns more than one row."""
        special = [part for part in walk(call) if isinstance(part, Call) and part.name in _OF_ROWS]
        labels = list(dict.fromkeys(labels_used(call)))
        if not labels or len(labels) > 1:
            return None
        if not special:
            return Reference(labels[0], self.add(call, None), call.span)
        around, inner = special[0], special[-1]
        nested = len(special) == 2 and inner in around.arguments
        if around.name not in NAVIGATIONS or len(special) > 2 or (len(special) == 2 and not nested):
            return None
        inside = {id(part) for part in walk(around)}  # f(ts, FIRST(ts)) reads two rows, though the names are the same
        if any(id(part) not in inside for part in walk(call) if isinstance(part, Reference)):
            return None
        at = Reference(labels[0], self.add(call, (around, inner.arguments[0])), call.span)
        moved = replace(inner, arguments=(at, *inner.arguments[1:]))
        return moved if inner is around else replace(around, arguments=(moved, *around.arguments[1:]))

    def add(self, call: Expression, navigation: tuple[Call, Expression] | None) -> Identifier:
        """A new column with the call, at the row that the navigation would lead to."""
        named = [part for part in walk(call) if isinstance(part, Reference)]
        cuts = [(part.label.span[0], part.column.span[0]) for part in named if part.label is not None]
        if navigation is not None:
            around, inner = navigation
            cuts += [(around.span[0], inner.span[0]), (inner.span[1], around.span[1])]
        name = f"{self.prefix}{len(self.columns)}"
        self.columns[name] = (self.text_with(call.span, [(*cut, "") for cut in cuts]), call.span)
        return Identifier(name, True, call.span)

    def text_with(self, span: tuple[int, int], changes: list[tuple[int, int, str]]) -> str:
        """The text of a span with some pieces replaced."""
        text, position = "", span[0]
        for start, end, instead in sorted(changes):
            text += self.clause.text[position : max(start, position)] + instead
            position = max(end, position)
        return text + self.clause.text[position : span[1]]

    def taken_apart(self, measure: Measure, measures: list[Measure]) -> str:
        """The text that computes a measure from its parts, which become measures of their own."""
        changes = []
        for part in _parts(measure.expression):
            name = f"{self.part}{len(measures)}"
            measures.append(Measure(self.replaced(part), Identifier(name, True, part.span), part.span))
            changes.append((*part.span, name))
        select = translated(f"SELECT {self.text_with(measure.span, changes)}", self.clause.dialect)
        return select.removeprefix("SELECT ")

    def with_columns(self) -> Any:
        """The table with all computed columns."""
        from pyspark.sql import functions as F

        df = self.df
        for name, (text, span) in self.columns.items():
            try:
                select = translated(f"SELECT {text}", self.clause.dialect)
                df = df.withColumn(name, F.expr(select.removeprefix("SELECT ")))
                df.schema  # noqa: B018 - over Spark Connect only this asks the server
            except QueryError:
                raise
            except Exception as error:
                raise self.refused(span, error) from None
        return df

    def refused(self, span: tuple[int, int], error: Exception) -> QueryError:
        """What Spark says of an expression, pointing at it."""
        return refused(self.clause.text, span, error)


def refused(text: str, span: tuple[int, int], error: Exception) -> QueryError:
    """What Spark says of an expression, pointing at it."""
    said = str(error).strip().splitlines()[0][:300]
    start, end = span
    message, code = f"Spark cannot compute this: {said}", "spark-expression"
    if "UNRESOLVED_ROUTINE" in said:
        name = re.search("`([^`]+)`", said)
        message, code = f"no function '{name.group(1) if name else text[start:end]}'", "unknown-function"
    elif "MISSING_GROUP_BY" in said:
        message, code = "an aggregate of Spark's that row patterns do not have", "unknown-function"
    return QueryError(message, text=text, start=start, end=end, code=code)


def _reads(expression: Expression, names: set[str]) -> bool:
    """Is it an operation on one of these columns?"""
    read = any(isinstance(part, Reference) and part.column.name.lower() in names for part in walk(expression))
    return read and not _is_part(expression)


def _of_rows(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.name in _OF_ROWS


def _is_part(expression: Expression) -> bool:
    """Is it for the search to give: a column at some row, a navigation, an aggregate?"""
    return isinstance(expression, Reference | Star | Literal) or _of_rows(expression)


def _parts(expression: Expression) -> list[Expression]:
    """The largest pieces of an expression that are for the search to give."""
    if _is_part(expression) or isinstance(expression, Parameter):
        return [] if isinstance(expression, Literal | Parameter) else [expression]
    return [part for each in parts_of(expression) for part in _parts(each)]


def _is_foreign(expression: Expression) -> bool:
    """Is it something that only Spark has: a function or a type that is none of ours?"""
    if isinstance(expression, Operation):
        return expression.operator == "cast" and type_parts(str(expression.target))[0] not in KNOWN_TYPES
    if not isinstance(expression, Call) or expression.name in _OURS or expression.mode is not None:
        return False
    own = find_function(expression.name)
    return own is None or not own.user
