"""Functions of Spark in a row pattern: what concerns one row is computed by Spark, as a column, before the search.

`date_format(A.ts, 'HH')` becomes A.f where column f holds date_format(ts, 'HH'); `date_format(LAST(ts), 'HH')` becomes
LAST(f), since a function of a row's values can be computed at that row as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from cepheid.language.functions import find_function
from cepheid.language.match_recognize.check import labels_used, walk
from cepheid.language.match_recognize.functions import AGGREGATES, FUNCTIONS, MATCH_FUNCTIONS, NAVIGATIONS
from cepheid.language.match_recognize.syntax import (
    Call,
    Clause,
    Definition,
    Expression,
    Identifier,
    Measure,
    Operation,
    Reference,
)

_OURS = FUNCTIONS.keys() | AGGREGATES.keys() | NAVIGATIONS | MATCH_FUNCTIONS


@dataclass
class Computed:
    """The columns that Spark is to compute: their expressions by their names."""

    text: str
    columns: dict[str, str] = field(default_factory=dict)

    def replaced(self, expression: Expression) -> Expression:
        """The expression with columns in the place of functions that only Spark has."""
        if isinstance(expression, Call) and _is_foreign(expression):
            column = self.column_for(expression)
            if column is not None:
                return column
        match expression:
            case Call(arguments=arguments):
                return replace(expression, arguments=tuple(self.replaced(part) for part in arguments))
            case Operation(operands=operands):
                return replace(expression, operands=tuple(self.replaced(part) for part in operands))
        return expression

    def column_for(self, call: Call) -> Expression | None:
        """What reads the computed column, or None if the call concerns more than one row."""
        special = [part for part in walk(call) if isinstance(part, Call) and part.name in _OURS - FUNCTIONS.keys()]
        labels = list(dict.fromkeys(labels_used(call)))
        if not labels or len(labels) > 1:
            return None
        if not special:
            return Reference(labels[0], self.add(call, None), call.span)
        around, inner = special[0], special[-1]
        nested = len(special) == 2 and inner in around.arguments
        if around.name not in NAVIGATIONS or len(special) > 2 or (len(special) == 2 and not nested):
            return None
        if any(reference not in list(walk(around)) for reference in walk(call) if isinstance(reference, Reference)):
            return None
        at = Reference(labels[0], self.add(call, (around, inner.arguments[0])), call.span)
        moved = replace(inner, arguments=(at, *inner.arguments[1:]))
        return moved if inner is around else replace(around, arguments=(moved, *around.arguments[1:]))

    def add(self, call: Call, navigation: tuple[Call, Expression] | None) -> Identifier:
        """A new column with the call, at the row that the navigation would lead to."""
        named = [part for part in walk(call) if isinstance(part, Reference)]
        cuts = [(part.label.span[0], part.column.span[0]) for part in named if part.label is not None]
        if navigation is not None:
            around, inner = navigation
            cuts += [(around.span[0], inner.span[0]), (inner.span[1], around.span[1])]
        text, position = "", call.span[0]
        for start, end in sorted(cuts):
            text += self.text[position : max(start, position)]
            position = max(end, position)
        text += self.text[position : call.span[1]]
        name = f"computed {len(self.columns)}"
        self.columns[name] = text
        return Identifier(name, True, call.span)


def _is_foreign(call: Call) -> bool:
    if call.name in _OURS or call.mode is not None or call.distinct:
        return False
    own = find_function(call.name)
    return own is None or not own.user


def with_spark_functions(df: Any, clause: Clause) -> tuple[Any, Clause, tuple[str, ...]]:
    """The table with the columns that Spark computes, the clause that reads them, and their names."""
    if not any(_is_foreign(part) for each in _expressions(clause) for part in walk(each) if isinstance(part, Call)):
        return df, clause, ()
    from pyspark.sql import functions as F

    from cepheid.runners.sql.statement import translated

    computed = Computed(clause.text)
    measures = tuple(Measure(computed.replaced(each.expression), each.name) for each in clause.measures)
    definitions = tuple(Definition(each.label, computed.replaced(each.condition)) for each in clause.definitions)
    for name, text in computed.columns.items():
        select = translated(f"SELECT {text}", clause.dialect)
        df = df.withColumn(name, F.expr(select.removeprefix("SELECT ")))
    return df, replace(clause, measures=measures, definitions=definitions), tuple(computed.columns)


def _expressions(clause: Clause) -> list[Expression]:
    return [*(each.expression for each in clause.measures), *(each.condition for each in clause.definitions)]
