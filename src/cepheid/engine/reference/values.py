"""What an expression is worth for a given choice of events, with SQL's NULL (None here, and NaN counts as NULL)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from cepheid.budget import checkpoint
from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import Conjunct
from cepheid.language.coercion import precision_of
from cepheid.language.evaluate import function_of
from cepheid.language.functions import find_function
from cepheid.language.library.decimals import as_decimal, fitted
from cepheid.language.library.operators import calculate, known
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of

Row = Mapping[str, Any]
Binding = Mapping[str, Sequence[Row]]  # variable -> its events so far


class Evaluator:
    """Evaluates expressions over events that were seen; conditions on missing ones are rewritten before.

    It knows which NULLs stand for attributes that an event's type does not have (SASE section 2.2.2): those of
    variables declared with ANY, or, if the call said which types lack what, exactly those.
    """

    def __init__(self, any_variables: frozenset[str], schema: Schema) -> None:
        self.any_variables = any_variables
        self.schema = schema
        self.kinds: dict[int, tuple[s.Expression, DataType]] = {}  # by the identity of a node: 1 equals 1.0

    def is_lacking(self, row: Row, name: str) -> bool:
        """Does the event have no such attribute, as the call said of its type?"""
        column = self.schema.type
        return row[name] is None and column is not None and self.schema.is_lacking(row[column], name)

    def holds(self, conjunct: Conjunct, binding: Binding, at: Mapping[str, int] | None = None) -> bool:
        """Does a clause hold, for every element of the Kleene groups it quantifies over?

        `at` fixes the element of the group that is being taken.
        """
        at = at or {}
        ranges: list[list[tuple[str, int]]] = []
        for variable in sorted(conjunct.every):
            group = binding[variable]
            first = 1 if variable in conjunct.from_second else 0
            indices = [at[variable]] if variable in at else list(range(len(group)))
            ranges.append([(variable, index) for index in indices if index >= first])
        return all(self.condition(conjunct.expression, binding, dict(choice)) for choice in product(*ranges))

    def condition(self, node: s.Expression, binding: Binding, at: Mapping[str, int]) -> bool:
        """Is a condition true? Unknown is not."""
        checkpoint()
        match node:
            case s.And(operands=operands):
                return all(self.condition(operand, binding, at) for operand in operands)
            case s.Or(operands=operands):
                return any(self.condition(operand, binding, at) for operand in operands)
        return self.value(node, binding, at) is True

    def _absent(self, node: s.Expression, binding: Binding, at: Mapping[str, int]) -> bool:
        """Does it need an attribute that an event does not have? Aggregates pass over NULLs by themselves."""
        match node:
            case s.Call(function=function) if function.lower() in AGGREGATES:
                return False
            case s.Attribute(of=of, name=name):
                row = self._element(of, binding[of.variable], at)
                if self.schema.lacks:
                    return self.is_lacking(row, name)
                return of.variable in self.any_variables and known(row[name]) is None
        return any(self._absent(inner, binding, at) for inner in s.children(node))

    def value(self, node: s.Expression, binding: Binding, at: Mapping[str, int]) -> Any:
        """The value of an expression, None for NULL."""
        match node:
            case s.Literal(value=value):
                return value
            case s.Attribute(of=of, name=name):  # its default is for an event that is missing
                return known(self._element(of, binding[of.variable], at)[name])
            case s.Length(variable=variable):
                return len(binding[variable])
            case s.Arithmetic(operator=sign, left=left, right=right):
                wanted = precision_of(node, self.schema) if self.kind(node) is DataType.DECIMAL else None
                return calculate(sign, self.value(left, binding, at), self.value(right, binding, at), wanted)
            case s.Call(function=function, arguments=arguments) if function.lower() in AGGREGATES:
                return self._aggregate(function.lower(), arguments[0], binding, at)
            case s.Call(function=function, arguments=arguments):
                found = self._call(function, [self.value(argument, binding, at) for argument in arguments])
                if found is None:
                    return None
                if self.kind(node) is DataType.DECIMAL:
                    return fitted(as_decimal(found), precision_of(node, self.schema))
                return float(found) if self.kind(node) is DataType.FLOAT else found
            case s.Comparison() | s.Membership() | s.Between() if self._absent(node, binding, at):
                return True
        # Conditions compared like values, as in (a.x > 1 AND a.y > 2) = FALSE: unknown stays unknown.
        return function_of(node)(*(self.value(part, binding, at) for part in s.children(node)))

    def kind(self, node: s.Expression) -> DataType:
        """The type of its values."""
        if id(node) not in self.kinds:
            try:
                kind = type_of(node, self.schema)
            except QueryError:  # NULL beside a time: it stands for an event that is not there
                kind = DataType.NULL
            self.kinds[id(node)] = node, kind
        return self.kinds[id(node)][1]

    def _element(self, of: s.Reference, group: Sequence[Row], at: Mapping[str, int]) -> Row:
        match of.element:
            case s.Element.FIRST:
                return group[0]
            case s.Element.LAST:
                return group[-1]
            case s.Element.PREVIOUS:
                return group[at[of.variable] - 1]
            case _:
                return group[at.get(of.variable, 0)]

    def _aggregate(self, function: str, argument: s.Expression, binding: Binding, at: Mapping[str, int]) -> Any:
        (variable,) = s.variables_of(argument)
        group = binding[variable]
        before = any(isinstance(n, s.Reference) and n.element is s.Element.BEFORE for n in s.walk(argument))
        indices = range(at[variable]) if before else range(len(group))
        if isinstance(argument, s.Reference):
            return len(indices)
        # Within the aggregate, a[].x and a[..i-1].x mean the element that is being counted.
        single = _each(argument)
        values = [self.value(single, binding, {**at, variable: index}) for index in indices]
        return AGGREGATES[function].over(values)

    def _call(self, name: str, arguments: list[Any]) -> Any:
        function = find_function(name)
        assert function is not None
        if function.strict and any(argument is None for argument in arguments):
            return None
        result = function.apply(*arguments)
        return known(result.item() if hasattr(result, "item") else result)


def _each(node: s.Expression) -> s.Expression:
    if isinstance(node, s.Reference):
        return s.Reference(node.variable, s.Element.CURRENT)
    return s.rebuild(node, _each)
