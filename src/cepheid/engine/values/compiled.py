"""Compiles conditions into one small function per query, which kernels call as a first-class function.

The source is written from the checked syntax tree alone: numbers, array rows and names we make up; no text of the
user's ever gets into it. Each value is a pair of source fragments, the value and whether it is NULL.
"""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from cepheid.engine.data.columns import LACKING, ColumnLayout, PredicateCall, storage
from cepheid.engine.kernels.compile import COMPILES, NO_REFERENCES, borrowing, handed_over, is_interpreted
from cepheid.engine.kernels.loading import numba
from cepheid.engine.kernels.signatures import compiled_type
from cepheid.engine.kernels.stop import in_the_background
from cepheid.engine.values.columnwise import value
from cepheid.engine.values.decimal_tests import BESIDE_WHOLE, BY_HALVES
from cepheid.engine.values.expression_parts import (
    PYTHON_KINDS,
    attributes_at_hand,
    is_aggregate,
    is_derived,
    needs_python,
    nothing_to_resolve,
    outside_aggregates,
    with_reference,
)
from cepheid.engine.values.interpreted import CalledAsPython, Interpreted, Lookups
from cepheid.engine.values.predicate_files import FEW_CALLS, compiled_once, is_on_disk
from cepheid.engine.values.python_first import MOST_CALLS, PythonForm, called_by_number, is_python_first, new_form
from cepheid.errors import EngineError
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.coercion import NARROW, TURNED, precision_of
from cepheid.language.functions import find_function, in_python
from cepheid.language.library.function import Function
from cepheid.language.normal import negation_normal_form
from cepheid.language.printing import expression_text
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of
from cepheid.language.whole import LEAST, OVERFLOWS

LONGEST_SOURCE = 20_000  # characters; numba's time and memory grow faster than this does
_SHORT = 48  # a fragment of source that is used twice is repeated up to this length; else it gets a name

_CHOOSING = frozenset({"coalesce", "ifnull", "nvl", "least", "greatest", "case", "if"})

# What generated source may name.
_KNOWN: dict[str, Any] = {"nan": math.nan, "isnan": math.isnan, "fmod": np.fmod, "inf": math.inf}
_CHECKS: dict[str, Any] = {check.__name__: check for check in OVERFLOWS.values()}
_COMPILED_CHECKS: dict[str, Any] = {check.__name__: borrowing(check) for check in OVERFLOWS.values()}

_compiling = threading.RLock()  # threads that need the same function wait for one of them


def predicate_signature() -> Any:
    """Of a case, chosen events, whole and fractional running aggregates and columns: does the condition hold?"""
    return compiled_type(PredicateCall).signature


Slot = Callable[[s.Reference], str]  # which chosen event a reference means: an index into `at`, as source
Fragment = tuple[str, str]  # value, is-null


@dataclass(frozen=True)
class Case:
    """One condition that a kernel may ask for, with the events and aggregates it can see."""

    conditions: tuple[s.Expression, ...]
    slot: Slot
    aggregate: Callable[[s.Expression], Fragment] | None = None  # an aggregate or a length, as source
    opaque: tuple[Callable[[Any], bool], ...] = ()  # further conditions, as Python functions of `counted`


@dataclass(frozen=True)
class Predicate:
    """The compiled function, what it needs, and whether numba could compile it."""

    call: Any
    layout: ColumnLayout
    cases: tuple[bool, ...]  # False: nothing to test in this case
    compiled: bool = True
    source: str = field(default="", compare=False)
    as_python: tuple[str, ...] = ()  # what keeps it from being compiled
    form: PythonForm | None = field(default=None, compare=False)  # the Python function that stands for it

    @property
    def exhausted(self) -> bool:
        """Does a Python function stand for it that was called so often that it is worth compiling?"""
        return self.form is not None and self.form.exhausted


def compile_cases(
    cases: Sequence[Case],
    schema: Schema,
    any_variables: frozenset[str] = frozenset(),
    *,
    literals: Sequence[str] = (),
    also: Sequence[str] = (),
    filled: bool = False,
) -> Predicate:
    """One function for all cases of a query: `call(case, at, counted, running, columns)`.

    Its columns begin with these literals, and have those attributes that the caller reads `also`. With `filled` they
    come from `fill` and are not changed, so that a function that cannot be compiled needs no form of its own.
    """
    writer = _Writer(schema, any_variables)
    writer.literals += literals
    lines = ["def predicate(case, at, counted, running, columns):"]
    lines.append("    whole, number, null, literal, flat, edge = columns")
    for index, case in enumerate(cases):
        if case.conditions or case.opaque:
            lines.append(f"    if case == {index}:")
            lines += [f"        {line}" for line in writer.statements(case, index)]
    lines.append("    return True")
    source = "\n".join(lines)
    functions = tuple((name, call) for name, call in writer.functions.items())
    some, names = tuple(bool(case.conditions or case.opaque) for case in cases), tuple(writer.as_python)
    for name in also:
        writer.attributes.setdefault(name, (writer.schema.type_of(name) or DataType.NULL, None))
    if (is_python_first() or (filled and names)) and COMPILES and not is_interpreted():
        lookups = writer.lookups() if names else ()
        form = _python_form(source, functions, None if names else _most_calls(source, functions), lookups)
        if not form.exhausted:
            layout = replace(writer.layout(), form=form.number)
            return Predicate(called_by_number(predicate_signature()), layout, some, not names, source, names, form)
    if is_interpreted():
        call, compiled = _plain(source, functions)
    elif not cases and COMPILES:  # nobody calls it
        call, compiled = called_by_number(predicate_signature()), True
    elif names:
        call, compiled = _kept_plain(source, functions)
    elif not COMPILES:
        call, compiled = _plain(source, functions)
    else:
        with _compiling:
            call, compiled = _compiled(source, functions)
        form = _python_form(source, functions, _most_calls(source, functions), ())
        form.calls = form.most or 0
    return Predicate(call, writer.layout(), some, compiled, source, names)


def no_predicate() -> Predicate:
    """What a kernel gets that has no condition to ask for."""
    call = (
        called_by_number(predicate_signature())
        if COMPILES and not is_interpreted()
        else _plain("def predicate(): ...", ())[0]
    )
    return Predicate(call, ColumnLayout(()), ())


@lru_cache(maxsize=256)
def _most_calls(source: str, functions: tuple[tuple[str, object], ...]) -> int:
    """How often a condition runs as Python before it is compiled, or loaded, which takes little."""
    return min(FEW_CALLS, MOST_CALLS) if is_on_disk(source, functions, predicate_signature()) else MOST_CALLS


@lru_cache(maxsize=256)
def _python_form(
    source: str, functions: tuple[tuple[str, object], ...], most: int | None, lookups: tuple[Lookups, ...]
) -> PythonForm:
    return new_form(_plain(source, functions)[0], most, lookups)


@lru_cache(maxsize=256)
def _plain(source: str, functions: tuple[tuple[str, object], ...]) -> tuple[Any, bool]:
    """The same function for kernels that run as plain Python."""
    namespace = {**_KNOWN, **_CHECKS, **{name: in_python(call) for name, call in functions}}
    exec(compile(source, "<predicate>", "exec"), namespace)
    return namespace["predicate"], True


@lru_cache(maxsize=256)
def _compiled(source: str, functions: tuple[tuple[str, Any], ...]) -> tuple[object, bool]:
    """Compiled once per process; what numba refuses, or would take minutes for, runs as plain Python in a kernel."""
    if len(source) > LONGEST_SOURCE:
        refused = f"its source has {len(source):,} characters, and compiling it would take minutes"
    else:
        namespace = {**_KNOWN, **_COMPILED_CHECKS, **{name: numba().njit(call) for name, call in functions}}
        signature = predicate_signature()
        try:
            exec(compile(source, "<predicate>", "exec"), namespace)
            options = {**NO_REFERENCES, "no_cpython_wrapper": True}  # only kernels call it
            made = in_the_background(lambda: compiled_once(namespace, source, functions, signature, options))
            return handed_over(made, signature), True
        except numba().core.errors.NumbaError as error:
            refused = str(error).strip().splitlines()[0]
    names = ", ".join(function.__name__ for _, function in functions)
    warnings.warn(
        f"numba cannot compile {names or 'a condition'}; it runs as plain Python, some hundred times slower: {refused}",
        stacklevel=2,
    )
    return _called_from_kernels(_plain(source, functions)[0]), False


@lru_cache(maxsize=256)
def _kept_plain(source: str, functions: tuple[tuple[str, object], ...]) -> tuple[object, bool]:
    """The function as plain Python in a form that compiled kernels call: what it calls would differ if compiled."""
    return _called_from_kernels(_plain(source, functions)[0]), False


def _called_from_kernels(plain: Any) -> Any:
    """A function that numba could not compile, in a form that compiled kernels can still call."""
    if not COMPILES:
        return plain
    from cepheid.engine.values.in_object_mode import called_as_python

    signature = predicate_signature()
    return handed_over(numba().njit(signature)(called_as_python(plain)), signature)


class _Writer:
    """Writes source for conditions, and remembers which columns, literals and functions they need."""

    def __init__(self, schema: Schema, any_variables: frozenset[str]) -> None:
        self.schema, self.any_variables = schema, any_variables
        self.attributes: dict[str, tuple[DataType, s.Expression | None]] = {}
        self.literals: list[str] = []
        self.functions: dict[str, Any] = {}
        self.as_python: dict[str, None] = {}  # in order
        self.read: dict[str, None] = {}
        self.lines: list[str] = []
        self.known_values: dict[str, Fragment] = {}
        self.names = 0
        self.asked: dict[str, tuple[str, tuple[int, ...], int]] = {}  # by source: what it calls, slots, and the answer
        self.looked_up: list[tuple[int, bool, list[tuple[str, tuple[int, ...], int]]]] = []  # see `Lookups`

    def statements(self, case: Case, index: int) -> list[str]:
        """The lines that test all conditions of a case, one after the other."""
        self.lines, self.known_values = [], {}
        asked = []
        for condition in case.conditions:
            test = self.condition(condition, case)
            self.lines.append(f"if not ({test}):\n            return False")
            asked += [self.asked[test]] if test in self.asked else []
        if asked:
            self.looked_up.append((index, len(asked) == len(case.conditions) and not case.opaque, asked))
        for call in case.opaque:
            self.as_python[f"condition {len(self.as_python)}"] = None
            self.lines.append(f"if not {self.function_named(call)}(counted):\n            return False")
        return [*self.lines, "return True"]

    def once(self, fragment: str) -> str:
        """A fragment that is used several times: itself if it is short, else a name for its value."""
        if len(fragment) <= _SHORT:
            return fragment
        name = f"value_{self.names}"
        self.names += 1
        self.lines.append(f"{name} = {fragment}")
        return name

    def layout(self) -> ColumnLayout:
        attributes = tuple((name, kind, expression) for name, (kind, expression) in self.attributes.items())
        return ColumnLayout(attributes, tuple(self.literals), tuple(self.read))

    def lookups(self) -> tuple[Lookups, ...]:
        """What kernels may look up instead of calling Python."""
        return tuple(
            Lookups(index, alone, tuple((self.functions[made_up], slots, answer) for made_up, slots, answer in asked))
            for index, alone, asked in self.looked_up
        )

    # conditions: a single fragment, true or false

    def condition(self, node: s.Expression, case: Case) -> str:
        if not isinstance(node, s.And | s.Or | s.Not) and self.needs_python(node):
            absent = [test for inner in attributes_at_hand(node) for test in self.absent(inner, case)]
            absent = absent if isinstance(node, s.Comparison | s.Membership | s.Between) else []
            return "(" + " or ".join([*absent, f"{self.interpreted(node, case)} == 1"]) + ")"
        match node:
            case s.And(operands=operands):
                return "(" + " and ".join(self.condition(operand, case) for operand in operands) + ")"
            case s.Or(operands=operands):
                return "(" + " or ".join(self.condition(operand, case) for operand in operands) + ")"
            case s.Not(operand=operand) if self.needs_python(operand) and self.type_of(operand) is DataType.BOOL:
                return f"({self.interpreted(operand, case)} == 0)"
            case s.Not(operand=operand):
                value, null = self.value(operand, case)
                return f"(not ({null}) and not ({value}))"
            case s.Comparison() | s.Membership() | s.Between():
                absent = [test for inner in attributes_at_hand(node) for test in self.absent(inner, case)]
                return "(" + " or ".join([*absent, self.known(node, case)]) + ")"
            case s.Literal(value=truth):
                return "True" if truth is True else "False"
        value, null = self.value(node, case)
        return f"(not ({null}) and ({value}) != 0)"

    def absent(self, node: s.Attribute, case: Case) -> list[str]:
        """Where an event has no such attribute: as the call said of its type, else where it is NULL on an ANY one."""
        if not self.schema.lacks:
            return [self.value(node, case)[1]] if node.of.variable in self.any_variables else []
        if not self.schema.types_lacking(node.name):
            return []
        self.value(node, case)  # so that its column is there
        return [f"null[{self.layout().null_row(node.name)}, {case.slot(node.of)}] == {LACKING}"]

    def known(self, node: s.Expression, case: Case) -> str:
        """A comparison that holds only where both sides are known."""
        match node:
            case s.Comparison(operator=operator, left=left, right=right):
                return self.compared(operator, left, right, case)
            case s.Between(operand=operand, low=low, high=high, negated=False):
                return f"({self.compared('>=', operand, low, case)} and {self.compared('<=', operand, high, case)})"
            case s.Between(operand=operand, low=low, high=high):
                return f"({self.compared('<', operand, low, case)} or {self.compared('>', operand, high, case)})"
            case s.Membership(operand=operand, values=tuple() as values, negated=False):
                return "(" + " or ".join(self.compared("=", operand, value, case) for value in values) + ")"
            case s.Membership(operand=operand, values=tuple() as values):
                return "(" + " and ".join(self.compared("!=", operand, value, case) for value in values) + ")"
        raise TypeError(type(node).__name__)

    def compared(self, operator: str, left: s.Expression, right: s.Expression, case: Case) -> str:
        kinds = (self.type_of(left), self.type_of(right))
        if DataType.DECIMAL in kinds and DataType.FLOAT not in kinds and DataType.NULL not in kinds:
            return self.exactly_compared(operator, left, right, case)
        (a, a_null), (b, b_null) = self.value(left, case), self.value(right, case)
        # != through < and >, so that a NaN that arithmetic made stays unknown.
        number = DataType.FLOAT in (self.type_of(left), self.type_of(right))
        if operator == "!=" and number:
            test = f"({a} < {b} or {a} > {b})"
        else:
            test = f"{a} {'==' if operator == '=' else operator} {b}"
        nulls = [part for part in (a_null, b_null) if part != "False"]
        return f"(not ({' or '.join(nulls)}) and {test})" if nulls else f"({test})"

    def exactly_compared(self, operator: str, left: s.Expression, right: s.Expression, case: Case) -> str:
        """A comparison of decimals, of which each is of one event, or of a decimal and a whole number."""
        parts: list[Fragment]
        if self.type_of(left) is DataType.INT:
            return self.exactly_compared(TURNED[operator], right, left, case)
        if self.type_of(right) is DataType.INT:
            parts = [self.value(right, case), *(self.of_decimal(name, left, case) for name in ("side", "floor"))]
            test = BESIDE_WHOLE[operator]
        else:
            precisions = [precision_of(side, self.schema) for side in (left, right)]
            scale = max(scale for _, scale in precisions)
            if max(precision - own for precision, own in precisions) + scale <= NARROW:
                parts = [self.of_decimal("whole", side, case, scale) for side in (left, right)]
                test = f"{{0}} {'==' if operator == '=' else operator} {{1}}"
            else:
                halves = ("upper", "lower")
                parts = [self.of_decimal(half, side, case, scale) for side in (left, right) for half in halves]
                test = BY_HALVES[operator]
        nulls = [null for _, null in parts if null != "False"]
        test = test.format(*(self.once(value) for value, _ in parts))
        return f"(not ({' or '.join(nulls)}) and ({test}))" if nulls else f"({test})"

    def of_decimal(self, name: str, node: s.Expression, case: Case, *scale: int) -> Fragment:
        return self.value(s.Call(f"decimal {name}", (node, *map(s.Literal, scale))), case)

    # values: value and is-null

    def type_of(self, node: s.Expression) -> DataType:
        return type_of(node, self.schema)

    def value(self, node: s.Expression, case: Case) -> Fragment:
        """The value of an expression and whether it is NULL; each part of a case is computed once."""
        text = repr(node)  # not the node itself: 1, 1.0 and TRUE are equal, and not the same
        if text not in self.known_values:
            value, null = self.fresh_value(node, case)
            self.known_values[text] = self.once(value), self.once(null)
        return self.known_values[text]

    def known_value(self, node: s.Expression, case: Case) -> Fragment:
        """The same where a NaN that arithmetic made has to count as NULL; comparisons with one are never true."""
        value, null = self.value(node, case)
        computed = isinstance(node, s.Arithmetic | s.Negative) or is_aggregate(node)
        if not computed or self.type_of(node) is not DataType.FLOAT:
            return value, null
        return value, f"isnan({value})" if null == "False" else f"({null} or isnan({value}))"

    def fresh_value(self, node: s.Expression, case: Case) -> Fragment:
        if self.type_of(node) is DataType.DECIMAL:  # beside a double it is one
            kind = DataType.DECIMAL.name
            return self.value(s.Call("cast", (node, s.Literal("double"), s.Literal(kind))), case)
        if self.needs_python(node) and self.type_of(node) is DataType.BOOL:
            found = self.interpreted(node, case)
            return f"({found} == 1)", f"({found} == 2)"
        match node:
            case s.Literal(value=None):
                return "0", "True"
            case s.Literal(value=bool() as truth):
                return str(int(truth)), "False"
            case s.Literal(value=str() as text):
                if text not in self.literals:
                    self.literals.append(text)
                return f"literal[{self.literals.index(text)}]", "False"
            case s.Literal(value=number):
                return f"({number!r})", "False"
            case s.Attribute(of=of, name=name):
                return self.attribute(name, self.type_of(node), None, of, case)
            case s.Length() | s.PathValue():
                return self.aggregate(node, case)
            case s.Call(function=function) if function.lower() in AGGREGATES:
                return self.aggregate(node, case)
            case s.Call():
                return self.call(node, case)
            case s.Negative(operand=operand):
                inner, null = self.value(operand, case)
                return f"(-{inner})", self.unless_least(operand, inner, null)
            case s.Arithmetic(operator=operator, left=left, right=right):
                return self.arithmetic(operator, left, right, case)
            case s.IsNull(operand=operand, negated=negated):
                _, null = self.known_value(operand, case)
                return (f"(not ({null}))" if negated else f"({null})"), "False"
            case s.Comparison() | s.Membership() | s.Between() | s.And() | s.Or() | s.Not():
                return self.truth(node, case)
        raise TypeError(f"no source for {type(node).__name__}")

    def truth(self, node: s.Expression, case: Case) -> Fragment:
        """A condition as a value, which may be unknown: `(a.x > 1 AND a.y > 2) = FALSE`."""
        if not isinstance(node, s.And | s.Or | s.Not) and self.needs_python(node):
            return self.value(node, case)
        match node:
            case s.And(operands=operands) | s.Or(operands=operands):
                parts = [self.truth(operand, case) for operand in operands]
                # One part that is false decides AND, one that is true decides OR; else one unknown part leaves it open.
                decisive = "not " if isinstance(node, s.And) else ""
                decided = self.once(" or ".join(f"(not ({null}) and {decisive}({value}))" for value, null in parts))
                unknown = " or ".join(f"({null})" for _, null in parts)
                return (f"(not ({decided}))" if decisive else f"({decided})"), f"(not ({decided}) and ({unknown}))"
            case s.Not(operand=operand):
                value, null = self.truth(operand, case)
                return f"(not ({value}))", null
            case s.Comparison() | s.Membership() | s.Between():
                holds = self.once(self.condition(node, case))
                return holds, f"(not {holds} and not {self.condition(negation_normal_form(s.Not(node)), case)})"
        return self.value(node, case)

    def attribute(
        self, name: str, kind: DataType, derived: s.Expression | None, of: s.Reference, case: Case
    ) -> Fragment:
        self.attributes.setdefault(name, (kind, derived))
        event = case.slot(of)
        rows = self.layout()
        null = f"null[{rows.null_row(name)}, {event}] != 0"
        row = rows.value_row(name)
        match storage(kind):
            case "list":
                return f"flat[edge[{2 * row}, {event}]:edge[{2 * row + 1}, {event}]]", null
            case kept:
                return f"{kept}[{row}, {event}]", null

    def aggregate(self, node: s.Expression, case: Case) -> Fragment:
        if case.aggregate is None:
            raise EngineError(f"'{expression_text(node)}' needs an engine that keeps aggregates")
        return case.aggregate(node)

    def arithmetic(self, operator: str, left: s.Expression, right: s.Expression, case: Case) -> Fragment:
        (a, a_null), (b, b_null) = self.value(left, case), self.value(right, case)
        null = " or ".join(part for part in (a_null, b_null) if part != "False") or "False"
        whole = DataType.FLOAT not in (self.type_of(left), self.type_of(right))
        if operator in "+-*":
            if whole:
                overflow = f"{OVERFLOWS[operator].__name__}({a}, {b})"
                null = overflow if null == "False" else f"({null} or {overflow})"
            return f"({a} {operator} {b})", null
        zero = f"{b} == 0"
        null = zero if null == "False" else f"({null} or {zero})"
        if operator == "/":
            return f"({a} / {b} if {b} != 0 else nan)", null
        if not whole:
            return f"(fmod({a}, {b}) if {b} != 0 else nan)", null
        # The remainder keeps the sign of the left side, as in SQL; Python's and numba's keep that of the right.
        # By -1 nothing is left, and machines fail at the least number by -1.
        rest = self.once(f"({a} % {b} if {b} != 0 and {b} != -1 else 0)")
        if operator == "div":
            least = f"({b} == -1 and {a} == {LEAST})"
            up = f"({a} // {b} + (1 if {rest} != 0 and ({a} < 0) != ({b} < 0) else 0))"
            return f"(0 if {b} == 0 else -{a} if {b} == -1 else {up})", f"({null} or {least})"
        return f"({rest} - {b} if {rest} != 0 and ({a} < 0) != ({b} < 0) else {rest})", null

    def unless_least(self, node: s.Expression, value: str, null: str) -> str:
        """NULL as it is, and where a whole number has no counterpart on the other side of zero."""
        if self.type_of(node) is DataType.FLOAT:
            return null
        least = f"{value} == {LEAST}"
        return least if null == "False" else f"({null} or {least})"

    def call(self, node: s.Call, case: Case) -> Fragment:
        name = node.function.lower()
        function = find_function(name)
        assert function is not None
        if is_derived(node, function, self.schema):
            return self.derived(node, case)
        parts = [self.value(each, case) for place, each in enumerate(node.arguments) if place not in function.constants]
        if not function.user and name in _CHOOSING:
            return self.chosen(name, [self.known_value(each, case) for each in node.arguments])
        if name in ("abs", "floor", "ceil") and not function.user and self.type_of(node.arguments[0]) is DataType.INT:
            value, null = parts[0]
            return (f"abs({value})", self.unless_least(node.arguments[0], value, null)) if name == "abs" else parts[0]
        arguments = [
            f"float({value})" if place in function.fractions else value for place, (value, _) in enumerate(parts)
        ]
        nulls = [part for _, part in parts if part != "False"]
        if function.null is not None:
            nulls.append(function.null.format(*arguments))
        null = self.once(" or ".join(nulls) or "False")
        constants = function.constants_of([getattr(each, "value", None) for each in node.arguments])
        inline = function.inline
        if function.source is not None:
            inline = function.source([self.once(each) for each in arguments], constants)
        if inline is not None:
            return inline.format(*map(self.once, arguments)), null
        if function.user and not function.is_compiled([self.type_of(each) for each in node.arguments]):
            return self.called_as_python(node, function, arguments, null)
        return self.called(function, arguments, null)

    def called(self, function: Function, arguments: list[str], null: str) -> Fragment:
        """A compiled function. Where an argument is NULL the call is not made: its arguments would be placeholders."""
        made_up = self.function_named(function.call if is_interpreted() else function.compiled(len(arguments)))
        fallback = "nan" if function.result is DataType.FLOAT else "0"
        called = f"{made_up}({', '.join(arguments)})"
        guarded = called if null == "False" else f"({called} if not ({null}) else {fallback})"
        if function.result is DataType.FLOAT:
            guarded = self.once(guarded)
            return guarded, (f"isnan({guarded})" if null == "False" else f"({null} or isnan({guarded}))")
        return guarded, null

    def called_as_python(self, node: s.Call, function: Function, arguments: list[str], null: str) -> Fragment:
        """A function of numbers that would differ if it were compiled."""
        self.as_python[f"{function.name}()"] = None
        kinds = tuple(PYTHON_KINDS[self.type_of(argument)] for argument in node.arguments)
        made_up = self.function_named(CalledAsPython(function.apply, kinds, PYTHON_KINDS[self.type_of(node)]))
        name = f"value_{self.names}"
        self.names += 1
        self.lines.append(f"{name} = {made_up}({', '.join(arguments)}) if not ({null}) else None")
        return f"({name} if {name} is not None else 0)", f"({name} is None)"

    def function_named(self, call: object) -> str:
        made_up = next((key for key, known in self.functions.items() if known == call), None)
        made_up = made_up or f"function_{len(self.functions)}"
        self.functions[made_up] = call
        return made_up

    def chosen(self, name: str, parts: list[Fragment]) -> Fragment:
        """The functions that choose among their arguments."""
        if name in ("case", "if"):
            value, null = parts[-1]
            for place in range(len(parts) - 3, -1, -2):
                (test, unknown), (then, then_null) = parts[place], parts[place + 1]
                holds = self.once(f"(not ({unknown}) and ({test}) != 0)")
                value, null = f"({then} if {holds} else {value})", f"(({then_null}) if {holds} else ({null}))"
            return value, null
        value, null = parts[-1]
        for other, other_null in reversed(parts[:-1]):
            if name in ("least", "greatest"):
                one, two, sign = self.once(other), self.once(value), "<" if name == "least" else ">"
                first, second = self.once(other_null), self.once(null)
                better = f"({one} if {one} {sign} {two} else {two})"
                value = f"({two} if {first} else {one} if {second} else {better})"
                null = f"({first} and {second})"
            else:
                value, null = f"({other} if not ({other_null}) else {value})", f"(({other_null}) and ({null}))"
        return value, null

    # what kernels have no form of

    def needs_python(self, node: s.Expression) -> bool:
        return needs_python(node, self.schema)

    def interpreted(self, node: s.Expression, case: Case) -> str:
        """A whole condition that runs as Python over the values themselves."""
        self.as_python[expression_text(node)] = None
        outside = list(outside_aggregates(node))
        attributes = [inner for inner in outside if isinstance(inner, s.Attribute)]
        self.read |= dict.fromkeys([attribute.name for attribute in attributes] or [self.schema.time])
        references = tuple(dict.fromkeys(attribute.of for attribute in attributes))
        aggregates = tuple(dict.fromkeys(inner for inner in outside if is_aggregate(inner)))
        given = [case.slot(reference) for reference in references]
        given += [part for aggregate in aggregates for part in self.aggregate(aggregate, case)]
        kinds = tuple(self.type_of(aggregate) for aggregate in aggregates)
        made_up = self.function_named(Interpreted(node, references, aggregates, kinds, repr(node)))
        name = f"value_{self.names}"
        self.names += 1
        self.lines.append(f"{name} = {made_up}({', '.join(['literal[-1]', *given])})")
        slots = [re.fullmatch(r"at\[(\d+)\]", slot) for slot in given]
        if not aggregates and all(slots):
            places = tuple(int(slot[1]) for slot in slots if slot)
            self.asked |= {f"({name} == {answer})": (made_up, places, answer) for answer in (0, 1)}
        return name

    def derived(self, node: s.Call, case: Case) -> Fragment:
        """A function of one event, computed for whole columns beforehand: an attribute, made up."""
        of = next((inner for inner in s.walk(node) if isinstance(inner, s.Reference)), None)
        if of is None:  # of constants
            found = value(node, nothing_to_resolve)
            return self.fresh_value(s.Literal(found.as_py()), case)
        canonical = with_reference(node, s.Reference("event"))
        return self.attribute(f"={expression_text(canonical)}", self.type_of(node), canonical, of, case)
