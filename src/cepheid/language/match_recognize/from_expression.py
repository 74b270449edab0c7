"""Conditions and values of a query as SQL inside of MATCH_RECOGNIZE."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.printing import expression_text
from cepheid.language.units import UNITS

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SQL_UNITS = (("DAY", "days"), ("HOUR", "hours"), ("MINUTE", "minutes"), ("SECOND", "seconds"))
Refuse = Callable[[str, s.Node, str], NoReturn]


@dataclass(frozen=True)
class Sql:
    """How a system writes names, lengths of time and divisions."""

    name: str
    quote: str = '"'
    whole_division: bool = False  # 1 / 2 is 0
    own_functions: bool = False  # has the functions of the query language, with their names
    choices: bool = True  # has | in patterns
    window: bool = False  # WITHIN behind the pattern, where FIRST without a variable is not known

    def quoted(self, name: str) -> str:
        """A name of a column or a variable; always in quotes, since no two systems agree on what else is safe."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def interval(self, length: int | float, unit: str) -> str:
        """A length of time in the largest unit that holds it as a whole number.

        >>> Sql("oracle").interval(90, "minutes"), Sql("oracle").interval(200, "days"), Sql("trino").interval(0.5, "s")
        ("INTERVAL '90' MINUTE", "INTERVAL '200' DAY(3)", "INTERVAL '0.5' SECOND")
        """
        nanoseconds = round(length * UNITS[{"s": "seconds"}.get(unit, unit)])
        for word, one in _SQL_UNITS:
            if nanoseconds % UNITS[one] == 0:
                number = nanoseconds // UNITS[one]
                digits = f"({len(str(number))})" if self.name == "oracle" and number > 99 else ""
                return f"INTERVAL '{number}' {word}{digits}"
        text = f"{Decimal(nanoseconds) / UNITS['seconds']:f}"
        return f"INTERVAL '{text}' SECOND"


DIALECTS = {
    "spark": Sql("spark", quote="`", own_functions=True),
    "trino": Sql("trino", whole_division=True),
    "oracle": Sql("oracle"),
    "flink": Sql("flink", quote="`", whole_division=True, choices=False, window=True),
}


@dataclass(frozen=True)
class Written:
    """Writes expressions of one query in one dialect."""

    sql: Sql
    groups: frozenset[str]  # variables that hold several events
    parameters: Mapping[str, object]
    only: str | None  # the variable of a filter query, whose attributes are bare words
    refuse: Refuse
    passing: bool = False  # the row that is judged is not yet one of the variable's

    def __call__(self, node: s.Expression, at: str | None = None) -> str:
        """The text; `at` is the variable that the row at hand is judged for, None for measures.

        A column without a variable is that of the row at hand, whichever variable it is taken for.
        """

        def inside(inner: s.Expression) -> str:
            return self(inner, at) if isinstance(inner, s.Literal | s.Attribute | s.Name) else f"({self(inner, at)})"

        match node:
            case s.Literal(value=value):
                return _literal(value)
            case s.Name(name=name):
                return self._named(name, node)
            case s.Duration(length=length, unit=unit):
                return self.sql.interval(length, unit)
            case s.Attribute(of=of, name=name, default=None):
                return self._attribute(of, name, node, at)
            case s.Length(variable=variable) if at is None:
                return f"COUNT({self.sql.quoted(variable)}.*)"
            case s.Negative(operand=operand):
                return f"-{inside(operand)}"
            case s.Arithmetic(operator=operator, left=left, right=right):
                first = inside(left)
                if operator == "/" and self.sql.whole_division:
                    first = f"CAST({first} AS DOUBLE)"
                if operator == "%" and self.sql.name == "oracle":
                    return f"MOD({self(left, at)}, {self(right, at)})"
                return f"{first} {operator} {inside(right)}"
            case s.Comparison(operator=operator, left=left, right=right):
                return f"{inside(left)} {'<>' if operator == '!=' else operator} {inside(right)}"
            case s.Membership(operand=operand, values=tuple() as values, negated=negated):
                word = "NOT IN" if negated else "IN"
                return f"{inside(operand)} {word} ({', '.join(self(each, at) for each in values)})"
            case s.Between(operand=operand, low=low, high=high, negated=negated):
                word = "NOT BETWEEN" if negated else "BETWEEN"
                return f"{inside(operand)} {word} {inside(low)} AND {inside(high)}"
            case s.IsNull(operand=operand, negated=negated):
                return f"{inside(operand)} IS {'NOT ' if negated else ''}NULL"
            case s.Not(operand=operand):
                return f"NOT {inside(operand)}"
            case s.And(operands=operands):
                return " AND ".join(map(inside, operands))
            case s.Or(operands=operands):
                return " OR ".join(map(inside, operands))
            case s.Call(function=function, arguments=arguments):
                return self._call(function.lower(), arguments, node, at)
        self.refuse(f"'{expression_text(node)}' has no counterpart in SQL", node, "leave it out, or rewrite it")

    def _named(self, name: str, node: s.Name) -> str:
        if name in self.parameters:
            value = self.parameters[name]
            if isinstance(value, bool | int | float | str | Decimal):
                return _literal(value)
            self.refuse(f"the parameter {name} is neither a number nor a text", node, "write its values into the query")
        if self.only is not None:
            return self._column(name, node)
        self.refuse(f"'{name}' has no value", node, f"pass parameters={{'{name}': ...}} to cepheid.query")

    def _column(self, name: str, node: s.Node) -> str:
        if "." in name:
            self.refuse(f"'{name}' is a field of a struct", node, "make it a column of its own")
        return self.sql.quoted(name)

    def _attribute(self, of: s.Reference, name: str, node: s.Node, at: str | None) -> str:
        own = self._column(name, node)
        text = f"{self.sql.quoted(of.variable)}.{own}"
        if of.variable not in self.groups:
            return own if at == of.variable else text
        match of.element:
            case s.Element.SINGLE | s.Element.CURRENT if at == of.variable:
                return own
            case s.Element.PREVIOUS if at == of.variable:
                return f"LAST({text})" if self.passing else f"LAST({text}, 1)"
            case s.Element.FIRST if at != of.variable:
                return f"FIRST({text})"
            case s.Element.LAST if at != of.variable:
                return f"LAST({text})"
        message = f"'{expression_text(of)}.{name}' is about several events"
        self.refuse(message, node, "compare single elements, such as b[1].x, b[i-1].x or b[b.LEN].x")

    def _call(self, function: str, arguments: tuple[s.Expression, ...], node: s.Call, at: str | None) -> str:
        if function in AGGREGATES:
            if at is not None:
                self.refuse(f"{function}() in a condition has another meaning in SQL", node, "leave it out")
            (argument,) = arguments
            match argument:
                case s.Reference(variable=variable):
                    return f"COUNT({self.sql.quoted(variable)}.*)"
                case s.Attribute(of=of, name=name, default=None):
                    return f"{function.upper()}({self.sql.quoted(of.variable)}.{self._column(name, node)})"
            self.refuse(f"'{expression_text(node)}' is more than an aggregate of a column", node, "name a column")
        if not self.sql.own_functions:
            hint = "use dialect='spark', or compute it as a column first"
            self.refuse(f"{function}() may have another meaning in {self.sql.name}", node, hint)
        if function in ("cast", "try_cast", "like", "ilike", "rlike", "case", "get", "element_at"):
            self.refuse(f"'{expression_text(node)}' is not translated", node, "compute it as a column first")
        return f"{function}({', '.join(self(argument, at) for argument in arguments)})"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return format(value, "f") if isinstance(value, Decimal) else repr(value)
