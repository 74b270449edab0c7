"""Expressions in Python: attributes of events, compared and combined with Python's operators.

`a["price"] * 2 > b["price"]` is a syntax tree, not a truth value, so `and`, `or`, `not`, `if` and chained
comparisons cannot work on it; they raise an error that says what to write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from typing import NoReturn, TypeAlias

from cepheid.errors import QueryError
from cepheid.language import syntax as s
from cepheid.language.library.decimals import MOST, precision_of
from cepheid.language.printing import expression_text, name_text
from cepheid.language.units import UNITS

Operation: TypeAlias = "Callable[[Expr, object], Expr]"  # an operator of Python's on an expression and something


def _compared(operator: str) -> Operation:
    def compare(self: Expr, other: object) -> Expr:
        if other is None:
            hint = "use is_null() or is_not_null()"
            raise QueryError("nothing is equal to NULL", hint=hint, code="compared-with-none")
        return Expr(s.Comparison(operator, self._node, node_of(other)))

    return compare


def _calculated(operator: str) -> tuple[Operation, Operation]:
    """The operator behind an expression, and before it."""
    return (
        lambda self, other: Expr(s.Arithmetic(operator, self._node, node_of(other))),
        lambda self, other: Expr(s.Arithmetic(operator, node_of(other), self._node)),
    )


def _joining(kind: type[s.And] | type[s.Or], sign: str) -> tuple[Operation, Operation]:
    return (
        lambda self, other: Expr(_joined(kind, self._node, _condition(other, sign))),
        lambda self, other: Expr(_joined(kind, _condition(other, sign), self._node)),
    )


@dataclass(frozen=True, eq=False, repr=False)
class Expr:
    """A value or a condition over the events of a pattern.

    >>> price = attr("a", "price")
    >>> (price * 2 > 10) & price.is_not_null()
    <Expr a.price * 2 > 10 AND a.price IS NOT NULL>
    """

    _node: s.Expression  # underscored, as the attributes of a variable's event are attributes of its object

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {expression_text(self._node)}>"

    __str__ = __repr__

    def __bool__(self) -> NoReturn:
        raise QueryError(
            f"'{expression_text(self._node)}' is a part of a query and has no truth value in Python",
            hint="write & for and, | for or, ~ for not, each comparison in parentheses; "
            "use between(low, high) for a chained comparison and is_in([...]) for in",
            code="python-boolean",
        )

    # comparisons

    __eq__ = _compared("=")  # type: ignore[assignment]
    __ne__ = _compared("!=")  # type: ignore[assignment]
    __lt__ = _compared("<")
    __le__ = _compared("<=")
    __gt__ = _compared(">")
    __ge__ = _compared(">=")

    def is_in(self, values: object) -> Expr:
        """Is it one of these values? They may be a list, or a parameter that holds them.

        >>> attr("a", "ticker").is_in(["IBM", "SAP"])
        <Expr a.ticker IN ('IBM', 'SAP')>
        >>> attr("a", "ticker").is_in(param("Finance"))
        <Expr a.ticker IN Finance>
        """
        return Expr(s.Membership(self._node, _members(values)))

    def is_not_in(self, values: object) -> Expr:
        """Is it none of these values?"""
        return Expr(s.Membership(self._node, _members(values), negated=True))

    def between(self, low: object, high: object) -> Expr:
        """Does it lie between two values, both included?"""
        return Expr(s.Between(self._node, node_of(low), node_of(high)))

    def not_between(self, low: object, high: object) -> Expr:
        """Does it lie outside two values?"""
        return Expr(s.Between(self._node, node_of(low), node_of(high), negated=True))

    def is_null(self) -> Expr:
        """Is there no value?"""
        return Expr(s.IsNull(self._node))

    def is_not_null(self) -> Expr:
        """Is there a value?"""
        return Expr(s.IsNull(self._node, negated=True))

    def like(self, pattern: str) -> Expr:
        """Does the whole text fit? `%` stands for any characters, `_` for one.

        >>> attr("a", "name").like("an%") & ~attr("a", "name").rlike("[0-9]")
        <Expr a.name LIKE 'an%' AND NOT a.name RLIKE '[0-9]'>
        """
        return call("like", self, pattern)

    def ilike(self, pattern: str) -> Expr:
        """The same without regard to case."""
        return call("ilike", self, pattern)

    def rlike(self, pattern: str) -> Expr:
        """Does a part of the text fit a regular expression (RE2)?"""
        return call("rlike", self, pattern)

    def cast(self, kind: str) -> Expr:
        """The value as another type, NULL where it cannot be.

        >>> attr("a", "text").cast("double") > 3
        <Expr CAST(a.text AS double) > 3>
        """
        return call("cast", self, checked_name(kind, "a type").lower())

    # conditions

    __and__, __rand__ = _joining(s.And, "&")
    __or__, __ror__ = _joining(s.Or, "|")

    def __invert__(self) -> Expr:
        return Expr(s.Not(self._node))

    # arithmetic

    __add__, __radd__ = _calculated("+")
    __sub__, __rsub__ = _calculated("-")
    __mul__, __rmul__ = _calculated("*")
    __truediv__, __rtruediv__ = _calculated("/")
    __mod__, __rmod__ = _calculated("%")

    def __neg__(self) -> Expr:
        if isinstance(self._node, s.Literal) and type(self._node.value) in (int, float, Decimal):
            return Expr(s.Literal(-self._node.value))  # type: ignore[operator]
        return Expr(s.Negative(self._node))

    def __pos__(self) -> Expr:
        return self

    def __abs__(self) -> Expr:
        return call("abs", self)

    # the rest

    def default(self, other: object) -> Expr:
        """What to take for this attribute when its event is missing (AYAC section 2.2).

        >>> attr("x", "id").default(attr("z", "id")) == attr("z", "id")
        <Expr x.id[z.id] = z.id>
        """
        if not isinstance(self._node, s.Attribute) or self._node.default is not None:
            message = f"'{expression_text(self._node)}' takes no default"
            raise QueryError(message, hint="only an attribute of an event does, and only one", code="bad-default")
        return Expr(replace(self._node, default=node_of(other)))

    def alias(self, name: str) -> Aliased:
        """The expression under a name of its own, for `returning`."""
        return Aliased(self._node, checked_name(name, "a column"))


@dataclass(frozen=True)
class Aliased:
    """An expression with the name of its result column."""

    node: s.Expression
    name: str

    def __repr__(self) -> str:
        return f"<Aliased {expression_text(self.node)} AS {name_text(self.name)}>"


@dataclass(frozen=True, eq=False, repr=False)
class EventExpr(Expr):
    """An event, or one element of a Kleene group: `[...]` gives its attributes.

    Attributes that Python allows as a name can also be written with a dot.

    >>> var("a").first["price"], var("a").first.price
    (<Expr a[1].price>, <Expr a[1].price>)
    """

    _node: s.Reference

    def __getitem__(self, name: str) -> Expr:
        if name == "*":
            return Expr(s.Star(self._node))
        return Expr(s.Attribute(self._node, checked_name(name, "an attribute")))

    def __getattr__(self, name: str) -> Expr:
        if name.startswith("_"):  # Python's own questions, such as those of copy and pickle
            raise AttributeError(name)
        return self[name]


class Elements:
    """The elements of a Kleene group, for everything that stands for a variable (SASE+ section 2)."""

    def element(self, element: s.Element) -> EventExpr:
        """The variable with an index."""
        raise TypeError("an element belongs to a variable")

    @property
    def first(self) -> EventExpr:
        """`a[1]`: the first event."""
        return self.element(s.Element.FIRST)

    @property
    def current(self) -> EventExpr:
        """`a[i]`: the event that is being taken."""
        return self.element(s.Element.CURRENT)

    @property
    def previous(self) -> EventExpr:
        """`a[i-1]`: the event taken before it."""
        return self.element(s.Element.PREVIOUS)

    @property
    def before(self) -> EventExpr:
        """`a[..i-1]`: all events taken before it, inside an aggregate."""
        return self.element(s.Element.BEFORE)

    @property
    def last(self) -> EventExpr:
        """`a[a.LEN]`: the last event of the closed group."""
        return self.element(s.Element.LAST)

    @property
    def all(self) -> EventExpr:
        """`a[]`: the whole closed group, inside an aggregate or in `returning`."""
        return self.element(s.Element.ALL)

    @property
    def length(self) -> Expr:
        """`a.LEN`: how many events the group holds."""
        return Expr(s.Length(self.element(s.Element.SINGLE)._node.variable))


@dataclass(frozen=True, eq=False, repr=False)
class Variable(Elements, EventExpr):
    """A variable of the pattern.

    `v["price"]` is always an attribute. `v.price` is, too, except for the names of elements (`first`, `current`,
    `previous`, `before`, `last`, `all`, `length`), of methods, and names that start with an underscore.
    """

    def element(self, element: s.Element) -> EventExpr:
        """The variable with an index."""
        return EventExpr(s.Reference(self._node.variable, element))


def var(name: str) -> Variable:
    """A variable of the pattern, by name.

    >>> var("a").price > var("b").previous["price"]
    <Expr a.price > b[i-1].price>
    """
    return Variable(s.Reference(checked_name(name, "a variable")))


def attr(variable: str, name: str) -> Expr:
    """An attribute of a variable's event, both by name.

    >>> attr("a", "unit price")
    <Expr a.`unit price`>
    """
    return var(variable)[name]


def col(name: str) -> Expr:
    """An attribute of the only event of a filter query.

    >>> col("category") == "food"
    <Expr category = 'food'>
    """
    return Expr(s.Name(checked_name(name, "an attribute")))


def param(name: str) -> Expr:
    """A value that the caller passes when the query runs: `match(..., parameters={"T": 10})`."""
    return Expr(s.Name(checked_name(name, "a parameter")))


def lit(value: object) -> Expr:
    """A constant. Seldom needed: plain Python values work beside every expression.

    >>> lit(1) / var("a").price
    <Expr 1 / a.price>
    """
    return Expr(node_of(value))


def call(function: str, *arguments: object) -> Expr:
    """A built-in or registered function.

    >>> call("Corr", var("a").history, var("b").history) > param("T")
    <Expr Corr(a.history, b.history) > T>
    """
    name = checked_name(function, "a function")
    if not name.isidentifier():
        raise QueryError(f"a function cannot be called {name!r}", code="bad-name")
    return Expr(s.Call(name, tuple(node_of(argument) for argument in arguments)))


def case(*branches: tuple[object, object], otherwise: object = None) -> Expr:
    """The value behind the first condition that holds.

    >>> case((attr("a", "x") > 1, "much"), otherwise="little") == attr("b", "size")
    <Expr CASE WHEN a.x > 1 THEN 'much' ELSE 'little' END = b.size>
    """
    if not branches or not all(isinstance(branch, tuple) and len(branch) == 2 for branch in branches):
        hint = 'for example case((a["x"] > 1, "much"), otherwise="little")'
        raise QueryError("case() takes pairs of a condition and a value", hint=hint, code="bad-value")
    return call("case", *(part for branch in branches for part in branch), otherwise)


def avg(values: object) -> Expr:
    """The mean over the events of a Kleene group, NULLs left out.

    >>> var("a").current["price"] > avg(var("a").before["price"])
    <Expr a[i].price > avg(a[..i-1].price)>
    """
    return call("avg", values)


def sum_(values: object) -> Expr:
    """The sum over the events of a Kleene group, NULLs left out."""
    return call("sum", values)


def min_(values: object) -> Expr:
    """The least over the events of a Kleene group, NULLs left out."""
    return call("min", values)


def max_(values: object) -> Expr:
    """The greatest over the events of a Kleene group, NULLs left out."""
    return call("max", values)


def count(values: object) -> Expr:
    """How many events a Kleene group has, or how many values that are not NULL."""
    return call("count", values)


def first(values: object) -> Expr:
    """The value of the first event of a Kleene group."""
    return call("first", values)


def last(values: object) -> Expr:
    """The value of the last event of a Kleene group."""
    return call("last", values)


def equivalent(*names: str, **fixed: object) -> Expr:
    """Attributes that are equal on all components, some of them fixed to a value (SASE section 2.2.1).

    >>> equivalent("id", name="John")
    <Expr [id, name = 'John']>
    """
    tests: list[tuple[str, s.Expression | None]] = [(checked_name(name, "an attribute"), None) for name in names]
    for name, value in fixed.items():
        node = node_of(value)
        if not isinstance(node, s.Literal | s.Name):
            message = f"'{name}' can be fixed to a constant or a parameter, not to '{expression_text(node)}'"
            raise QueryError(message, code="bad-value")
        tests.append((checked_name(name, "an attribute"), node))
    if not tests:
        raise QueryError("an equivalence test needs an attribute", hint='for example equivalent("id")', code="bad-name")
    return Expr(s.Equivalence(tuple(tests)))


# --- from Python values to nodes --------------------------------------------------------------------------------


def node_of(value: object) -> s.Expression:
    """The syntax of an expression, an event, or a plain Python value."""
    if isinstance(value, Expr):
        return value._node
    if isinstance(value, Elements):  # an event of a pattern
        return value.element(s.Element.SINGLE)._node
    if isinstance(value, date):  # datetime included; binding turns it into an instant
        return s.Literal(value.isoformat())
    if isinstance(value, timedelta):
        return _duration(value)
    if not isinstance(value, str) and hasattr(value, "item"):  # a numpy scalar
        value = value.item()
    if isinstance(value, Aliased):
        raise QueryError("an alias names a returned column", hint="put alias(...) last", code="bad-value")
    if value is not None and type(value) not in (bool, int, float, Decimal, str):
        hint = "numbers, strings, True, False, None, dates and expressions do"
        raise QueryError(f"a {type(value).__name__} cannot be used in a query", hint=hint, code="bad-value")
    if isinstance(value, float) and not math.isfinite(value):
        raise QueryError(
            f"{value} cannot be used in a query", hint="test for missing values with is_null()", code="bad-value"
        )
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        value = Decimal(value)
    if isinstance(value, float) and "e" not in repr(value):
        value = Decimal(repr(value))  # as in the text of a query
    if isinstance(value, Decimal) and (not value.is_finite() or precision_of(value)[0] > MOST):
        raise QueryError("a number of more than 38 digits", code="bad-number")
    assert value is None or isinstance(value, bool | int | float | Decimal | str)
    return s.Literal(value)


def _duration(length: timedelta) -> s.Expression:
    """A length of time in the largest unit that measures it without a rest."""
    microseconds = abs(length) // timedelta(microseconds=1)
    sizes = {unit: nano // 1000 for unit, nano in UNITS.items() if nano >= 1000}
    unit = max((unit for unit, size in sizes.items() if microseconds % size == 0), key=sizes.__getitem__)
    found = s.Duration(microseconds // sizes[unit], unit if microseconds else "seconds")
    return found if length >= timedelta(0) else s.Negative(found)


def checked_name(name: object, what: str) -> str:
    """A name that can be written in a query."""
    if not isinstance(name, str) or not name:
        raise QueryError(f"the name of {what} is a string, not {name!r}", code="bad-name")
    return name


def _members(values: object) -> tuple[s.Expression, ...] | s.Name:
    if isinstance(values, Expr) and isinstance(values._node, s.Name):
        return values._node
    if isinstance(values, str | Expr) or not isinstance(values, Iterable):
        raise QueryError("is_in() takes several values", hint='a list, or param("...")', code="bad-value")
    if isinstance(values, set | frozenset):
        values = sorted(values, key=lambda value: (type(value).__name__, value))
    members = tuple(node_of(value) for value in values)
    if not members:
        raise QueryError("nothing is in an empty list", hint="leave the condition out", code="bad-value")
    return members


def _condition(value: object, operator: str) -> s.Expression:
    if not isinstance(value, Expr):
        message = f"{operator} joins conditions, and {value!r} is not a condition"
        hint = f'{operator} binds tighter than comparisons: write (a["x"] > 1) {operator} (b["y"] < 2)'
        raise QueryError(message, hint=hint, code="python-precedence")
    return node_of(value)


def _joined(kind: type[s.And] | type[s.Or], left: s.Expression, right: s.Expression) -> s.Expression:
    """`a & b & c` is one conjunction of three, as it is in the text."""
    return kind((*left.operands, right)) if isinstance(left, kind) else kind((left, right))
