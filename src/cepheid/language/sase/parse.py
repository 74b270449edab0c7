"""Query text to syntax tree."""

from __future__ import annotations

import hashlib
import io
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import lark
from lark import Lark, Token, UnexpectedInput, v_args
from lark.exceptions import VisitError
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from cepheid import disk_cache
from cepheid.errors import QueryError, closest
from cepheid.language import syntax as s
from cepheid.language.library.conversions import day_of_text, moment_of_text
from cepheid.language.sase.finish import (
    aggregate_all_before,
    check_expressions,
    name_all_in_selection,
    resolve_bare_words,
    with_own_strategy,
)
from cepheid.language.sase.parse_pattern import (
    OPTIONAL,
    PLUS,
    STAR,
    Part,
    all_of,
    in_sequence,
    marked,
    one_of,
    repeated,
    single,
)
from cepheid.language.sase.parse_values import case_of, cast_type_of, duration_of, exact_number, like_of, within
from cepheid.language.sase.syntax_errors import syntax_error
from cepheid.language.units import unit_named

Parts: TypeAlias = list[Any]  # what the rules inside of a rule gave: tokens, nodes, or None for what is not there
Clause: TypeAlias = tuple[str, s.Span, dict[str, Any]]  # its name, where it is, and fields of the query

MAX_TEXT = 100_000  # characters; a longer text is surely not a query

_OPERATORS = {"==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">="}
_STRATEGIES = {strategy.value: strategy for strategy in s.Strategy}
_UNIT_FIRST = ("timestampdiff", "date_trunc")  # functions whose first argument may be a bare word
_MODES = {"all": s.OutputMode.ALL, "nonoverlap": s.OutputMode.NON_OVERLAP, "nonoverlapping": s.OutputMode.NON_OVERLAP}
_MODES |= {"maximal": s.OutputMode.MAXIMAL, "top": s.OutputMode.TOP, "partial": s.OutputMode.PARTIAL}


def parse(text: str) -> s.QuerySyntax:
    """The syntax tree of a query text.

    >>> query = parse("PATTERN SEQ(Shelf a, ~(Register b), Exit c) WHERE [tag_id] WITHIN 12 hours")
    >>> [component.variable for component in query.components if not component.negative]
    ['a', 'c']
    """
    if len(text) > MAX_TEXT:
        raise QueryError(f"the query text has {len(text)} characters; at most {MAX_TEXT} are read", code="too-long")
    if not text.strip():
        raise QueryError("the query is empty; it starts with PATTERN, for example PATTERN SEQ(A a, B b)", code="empty")
    try:
        tree = _parser().parse(text)
    except UnexpectedInput as error:
        raise syntax_error(text, error) from None
    try:
        query: s.QuerySyntax = _Builder(text).transform(tree)
    except VisitError as error:
        raise error.orig_exc from None
    check_expressions(query, text)
    query = resolve_bare_words(query)
    return aggregate_all_before(name_all_in_selection(with_own_strategy(query, text)))


@cache
def _parser() -> Lark:
    """Its tables take a quarter of a second to make, so they are kept."""
    grammar = (disk_cache.read(Path(__file__).parent / "grammar.lark") or b"").decode()
    versions = f"{lark.__version__} {sys.implementation.cache_tag}"
    digest = hashlib.sha256(f"{versions} {grammar}".encode()).hexdigest()[:24]
    for data in disk_cache.found("grammar", digest, ("parser", "parser")):
        kept: Lark = Lark.load(io.BytesIO(data))
        return kept
    made = Lark(grammar, start="query", parser="lalr", propagate_positions=True, maybe_placeholders=True)
    tables = io.BytesIO()
    made.save(tables)
    disk_cache.write("grammar", digest, "parser", tables.getvalue())
    return made


# --- building nodes ---------------------------------------------------------------------------------------------


def _with_span(method: Callable[[s.Span, Parts], object], rule: str, parts: Parts, meta: Meta) -> Any:
    return method((meta.start_pos, meta.end_pos) if not meta.empty else s.NOWHERE, parts)


def _token_span(token: Token) -> s.Span:
    assert token.start_pos is not None
    assert token.end_pos is not None
    return (token.start_pos, token.end_pos)


def _word(token: Token) -> str:
    text = str(token)
    if text[0] in "`'\"":
        quote = text[0]
        return text[1:-1].replace(quote * 2, quote)
    return "".join(text.split())


def _number(text: str) -> int | float:
    digits = text.replace("_", "")
    return int(digits) if digits.isdigit() else float(digits)


@v_args(wrapper=_with_span)
class _Builder(Transformer_NonRecursive[Token, Any]):
    """One method per grammar rule; Lark calls it bottom-up, without recursion."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.has_seq = False

    def fail(self, message: str, span: s.Span, code: str, hint: str | None = None) -> NoReturn:
        raise QueryError(message, text=self.text, start=span[0], end=span[1], hint=hint, code=code)

    # pattern

    def query(self, span: s.Span, parts: Parts) -> s.QuerySyntax:
        head, part = (parts[0], parts[1]) if isinstance(parts[0], Token) else (None, parts[0])
        rest = parts[2:] if head is not None else parts[1:]
        components, pattern = marked(part), part.pattern
        plain = pattern == s.in_order(components) and all(component.gap is None for component in components)
        sequence = len(components) > 1 or not plain or self.has_seq or str(head).lower() == "sequence"
        clauses: dict[str, Any] = {}
        for clause in rest:
            if clause is None or isinstance(clause, Token):
                continue
            name, place, values = clause
            if name in clauses:
                hint = "join the conditions with AND" if name == "where" else "leave one out"
                self.fail(f"{name.upper()} is given twice", place, "duplicate-clause", hint)
            clauses[name] = values
        fields: dict[str, Any] = {}
        for values in clauses.values():
            fields.update(values)
        return s.QuerySyntax(components, sequence, span=span, pattern=pattern, **fields)

    def component(self, span: s.Span, parts: Parts) -> Part:
        negative = isinstance(parts[0], Token) and parts[0].type == "BANG"
        (kind, types, types_span), quantifier, named = parts[1:] if negative else parts
        many = quantifier is not None and quantifier != OPTIONAL
        types_text = self.text[slice(*types_span)]
        if named is not None:
            variable, variable_span, brackets = named
            if brackets and not many:
                hint = f"write {types_text}+ {variable}[] for one or more events"
                self.fail(f"'{variable}[]' without '+'", variable_span, "kleene-without-plus", hint)
        elif many:
            hint = f"write {types_text}+ a[]"
            self.fail("a Kleene component needs a variable", types_span, "missing-variable", hint)
        elif types is None:
            self.fail("a component of any type needs a variable", types_span, "missing-variable", "write * x")
        else:
            variable = "_or_".join(types)
        found = s.Component(
            variable,
            types,
            any=kind == "any",
            negative=negative,
            kleene=many,
            named=named is not None,
            span=span,
        )
        return single(found, quantifier)

    def outer(self, span: s.Span, parts: Parts) -> Part:
        return in_sequence(parts, span)

    inner = outer

    def sequence(self, span: s.Span, parts: Parts) -> Part:
        self.has_seq = True
        return repeated(parts[1], parts[2], span)

    def group(self, span: s.Span, parts: Parts) -> Part:
        return repeated(one_of(parts[:-1], span), parts[-1], span)

    def any_order(self, span: s.Span, parts: Parts) -> Part:
        return repeated(all_of(parts[:-1], span), parts[-1], span)

    def quantifier(self, span: s.Span, parts: Parts) -> tuple[int, int | None]:
        signs = {"PLUS": PLUS, "TIMES": STAR, "QUESTION": OPTIONAL}
        if parts[0].type in signs:
            return signs[parts[0].type]
        least = self._value(parts[0])
        most = least if parts[1] is None else None if parts[2] is None else self._value(parts[2])
        whole = isinstance(least, int) and (most is None or isinstance(most, int))
        if not whole or most == 0 or (most is not None and most < least):
            self.fail("not a number of repetitions", span, "bad-quantifier", "write {3}, {2,5} or {2,}")
        return least, most

    def gapped(self, span: s.Span, parts: Parts) -> Part:
        part: Part = parts[0]
        lengths: dict[str, s.Window] = dict(item for item in parts[1:] if item is not None)
        if len(part.components) != 1 or part.components[0].negative:
            hint = "write it after one component, for example B b WITHIN 5 minutes"
            self.fail("a gap limits the time before one event", span, "gap-of-group", hint)
        gap = s.Gap(lengths.get("after"), lengths.get("within"), span=span)
        return replace(part, components=(replace(part.components[0], gap=gap),))

    def ended(self, span: s.Span, parts: Parts) -> Part:
        part: Part = parts[0]
        if len(part.components) != 1 or part.components[0].negative or not part.components[0].kleene:
            hint = "write it after one component that takes several events, for example B+ b[] UNTIL b.x = 0"
            self.fail("UNTIL ends a group of events", span, "until-of-one", hint)
        return replace(part, components=(replace(part.components[0], until=parts[1]),))

    def gap_after(self, span: s.Span, parts: Parts) -> tuple[str, s.Window]:
        return "after", self._length(parts, span)

    def gap_within(self, span: s.Span, parts: Parts) -> tuple[str, s.Window]:
        return "within", self._length(parts, span)

    def one_type(self, span: s.Span, parts: Parts) -> tuple[str, tuple[str, ...], s.Span]:
        return "one", (_word(parts[0]),), span

    def quoted_type(self, span: s.Span, parts: Parts) -> tuple[str, tuple[str, ...], s.Span]:
        return "quoted", (_word(parts[0]),), span

    def every_type(self, span: s.Span, parts: Parts) -> tuple[str, None, s.Span]:
        return "every", None, span

    def any_type(self, span: s.Span, parts: Parts) -> tuple[str, tuple[str, ...], s.Span]:
        return "any", tuple(parts), span

    def type_name(self, span: s.Span, parts: Parts) -> str:
        return _word(parts[0])

    def variable(self, span: s.Span, parts: Parts) -> tuple[str, s.Span, bool]:
        name = _word(parts[0])
        if "-" in name and parts[0].type == "WORD":
            hint = f"write it in backquotes, `{name}`, or without the hyphen"
            self.fail(f"a variable cannot contain a hyphen: '{name}'", _token_span(parts[0]), "bad-variable", hint)
        return name, _token_span(parts[0]), parts[1] is not None

    # clauses

    def where_selection(self, span: s.Span, parts: Parts) -> Clause:
        call, condition, *steps = parts
        return "where", span, self._where(condition, [self._selection(call)], steps)

    def where_plain(self, span: s.Span, parts: Parts) -> Clause:
        return "where", span, self._where(parts[0], [], parts[1:])

    def conditions(self, span: s.Span, parts: Parts) -> s.Expression:
        """Conditions separated by commas all hold (TIME section 5.1)."""
        if len(parts) == 1:
            only: s.Expression = parts[0]
            return only
        flat = [inner for part in parts for inner in (part.operands if isinstance(part, s.And) else (part,))]
        return s.And(tuple(flat), span=span)

    def _where(self, condition: s.Expression | None, own: list[s.Selection], behind: list[s.Call]) -> dict[str, object]:
        """Strategies written as conjuncts (TIME, Query 1) leave the condition.

        Which of them is the query's own, and which are for single steps, is known with the components.
        """
        conjuncts = condition.operands if isinstance(condition, s.And) else (condition,) if condition else ()
        kept: list[s.Expression] = []
        written: list[s.StepSelection] = []
        for conjunct in conjuncts:
            if isinstance(conjunct, s.Call) and conjunct.function.lower().replace("-", "_") in _STRATEGIES:
                written.append(self._steps(conjunct))
            else:
                kept.append(conjunct)
        written += [self._steps(call) for call in behind]
        clause: dict[str, Any] = {"where": None, "selection": own[0] if own else None}
        if kept:
            span = condition.span if condition else s.NOWHERE
            clause["where"] = kept[0] if len(kept) == 1 else s.And(tuple(kept), span=span)
        return {**clause, "step_selections": tuple(written)}

    def _selection(self, call: s.Call) -> s.Selection:
        written = self._steps(call)
        return s.Selection(written.strategy, tuple(step.variable for step in written.steps), span=call.span)

    def _steps(self, call: s.Call) -> s.StepSelection:
        name = call.function.lower().replace("-", "_")
        span = (call.span[0], call.span[0] + len(call.function))
        if name not in _STRATEGIES:
            guess = closest(name, _STRATEGIES)
            hint = f"did you mean {guess}?" if guess else "one of " + ", ".join(_STRATEGIES)
            self.fail(f"no event selection strategy '{call.function}'", span, "unknown-strategy", hint)
        steps: list[s.Reference] = []
        for argument in call.arguments:
            match argument:
                case s.Name(name=variable):
                    steps.append(s.Reference(variable, span=argument.span))
                case s.Reference():
                    steps.append(argument)
                case _:
                    hint = "name variables alone, such as (a, b[])"
                    self.fail("a strategy takes variables", argument.span, "bad-strategy", hint)
        return s.StepSelection(_STRATEGIES[name], tuple(steps), span=call.span)

    def from_(self, span: s.Span, parts: Parts) -> Clause:
        return "from", span, {"sources": tuple(_word(part) for part in parts)}

    def define(self, span: s.Span, parts: Parts) -> Clause:
        return "define", span, {"definitions": tuple(parts)}

    def definition(self, span: s.Span, parts: Parts) -> s.Definition:
        return s.Definition(_word(parts[0]), parts[1], span=span)

    def within(self, span: s.Span, parts: Parts) -> Clause:
        return "within", span, {"within": self._length(parts, span)}

    def _length(self, parts: Parts, span: s.Span) -> s.Window:
        amount, word = parts
        unit = None
        if word is not None:
            unit = "events" if word.lower() in ("events", "event") else unit_named(str(word))
            if unit is None:
                guess = closest(word.lower(), ["seconds", "minutes", "hours", "days", "milliseconds", "events"])
                hint = f"did you mean {guess}?" if guess else "seconds, minutes, hours, days, ... or EVENTS"
                self.fail(f"no time unit '{word}'", _token_span(word), "unknown-unit", hint)
        length: int | float | s.Name = s.Name(_word(amount), span=_token_span(amount))
        if amount.type == "NUMBER":
            number: int | float = self._value(amount)
            if number <= 0:
                hint = "for example WITHIN 1 hour"
                self.fail("a window must be longer than zero", _token_span(amount), "bad-window", hint)
            length = number
        return s.Window(length, unit, span=span)

    def threshold(self, span: s.Span, parts: Parts) -> Clause:
        if parts[0] == 0:
            hint = "write a number above 0: at 0, everything that could have happened is reported"
            self.fail("a threshold of 0 is outside (0, 1]", span, "bad-probability", hint)
        return "threshold", span, {"threshold": parts[0]}

    def confidence(self, span: s.Span, parts: Parts) -> Clause:
        return "confidence", span, {"confidence": parts[0]}

    def forecast(self, span: s.Span, parts: Parts) -> Clause:
        if parts[0] == 0:
            hint = "write a number above 0, for example FORECAST 80%"
            self.fail("a forecast of 0 is outside (0, 1]", span, "bad-probability", hint)
        return "forecast", span, {"forecast": parts[0]}

    def probability(self, span: s.Span, parts: Parts) -> float:
        minus, token = parts
        value = self._value(token) * (-1 if minus is not None else 1)
        if not 0 <= value <= 1:
            hint = "write a number from 0 to 1, or a percentage such as 5%"
            self.fail(f"a probability of {value:g} is outside [0, 1]", span, "bad-probability", hint)
        return float(value)

    def returns(self, span: s.Span, parts: Parts) -> Clause:
        return "return", span, {"returns": tuple(parts)}

    def returned(self, span: s.Span, parts: Parts) -> s.Returned:
        expression, alias = parts
        return s.Returned(expression, _word(alias) if alias is not None else None, span=span)

    def star(self, span: s.Span, parts: Parts) -> s.Returned:
        of = s.Reference(_word(parts[0]), span=_token_span(parts[0])) if len(parts) > 1 else None
        return s.Returned(s.Star(of, span=span), span=span)

    def summarise(self, span: s.Span, parts: Parts) -> Clause:
        *totals, by, every = parts
        return "summarise", span, {"summary": s.Summary(tuple(totals), by or (), every, span=span)}

    def total(self, span: s.Span, parts: Parts) -> s.Total:
        function, argument, alias = parts
        of = None if isinstance(argument, Token) else argument
        return s.Total(str(function).lower(), of, _word(alias) if alias is not None else None, span=span)

    def by(self, span: s.Span, parts: Parts) -> tuple[str, ...]:
        return tuple(parts)

    def path(self, span: s.Span, parts: Parts) -> str:
        return ".".join(_word(part) for part in parts)

    def every(self, span: s.Span, parts: Parts) -> s.Window:
        _, _, clause = self.within(span, parts)
        window: s.Window = clause["within"]
        if window.unit == "events":
            self.fail("EVERY takes a length of time", span, "bad-every", "write EVERY 10 minutes, for example")
        return window

    def output(self, span: s.Span, parts: Parts) -> Clause:
        word, count = parts
        mode = _MODES.get(str(word).lower().replace("-", "").replace("_", "").replace(" ", ""))
        if mode is None:
            hint = "one of ALL, NON-OVERLAP, MAXIMAL, PARTIAL, TOP k BY CONFIDENCE"
            self.fail(f"no output mode '{word}'", _token_span(word), "unknown-output", hint)
        if (mode is s.OutputMode.TOP) != (count is not None):
            hint = "OUTPUT TOP 5 BY CONFIDENCE"
            self.fail("only TOP takes a count, and it needs one", span, "bad-output", hint)
        number = self._value(count) if count is not None else None
        if number is not None and (not isinstance(number, int) or not 1 <= number < 2**63):
            self.fail("TOP needs a whole number above 0", _token_span(count), "bad-output", "for example TOP 10")
        return "output", span, {"output": s.Output(mode, number, span=span)}

    # expressions

    def disjunction(self, span: s.Span, parts: Parts) -> s.Or:
        return s.Or(tuple(parts), span=span)

    def conjunction(self, span: s.Span, parts: Parts) -> s.And:
        return s.And(tuple(parts), span=span)

    def not_(self, span: s.Span, parts: Parts) -> s.Not:
        return s.Not(parts[1], span=span)

    def comparison(self, span: s.Span, parts: Parts) -> s.Comparison:
        left, operator, right = parts
        return s.Comparison(_OPERATORS.get(operator, str(operator)), left, right, span=span)

    def membership(self, span: s.Span, parts: Parts) -> s.Membership:
        operand, negated, values = parts
        return s.Membership(operand, values, negated is not None, span=span)

    def non_membership(self, span: s.Span, parts: Parts) -> s.Membership:
        return s.Membership(parts[0], parts[1], True, span=span)

    def set_values(self, span: s.Span, parts: Parts) -> tuple[s.Expression, ...]:
        return tuple(parts)

    def set_name(self, span: s.Span, parts: Parts) -> s.Name:
        return s.Name(_word(parts[0]), span=span)

    def between(self, span: s.Span, parts: Parts) -> s.Between:
        operand, negated, low, high = parts
        return s.Between(operand, low, high, negated is not None, span=span)

    def is_null(self, span: s.Span, parts: Parts) -> s.IsNull:
        return s.IsNull(parts[0], parts[1] is not None, span=span)

    def like(self, span: s.Span, parts: Parts) -> s.Expression:
        return like_of(parts, span)

    def duration(self, span: s.Span, parts: Parts) -> s.Duration:
        return duration_of(str(parts[0]), span)

    def cast(self, span: s.Span, parts: Parts) -> s.Call:
        word, operand, kind, *digits = parts
        named = cast_type_of(str(kind), [str(each) for each in digits if each is not None and each.type == "NUMBER"])
        return s.Call(str(word).lower(), (operand, s.Literal(named, span=_token_span(kind))), span=span)

    def moment(self, span: s.Span, parts: Parts) -> s.Call:
        kind, text = str(parts[0]).lower(), _word(parts[1])
        if (day_of_text(text) if kind == "date" else moment_of_text(text)) is None:
            hint = "write DATE '2026-01-31' or TIMESTAMP '2026-01-31 12:00:00'"
            self.fail(f"'{text}' is not a {kind}", span, "bad-time", hint)
        return s.Call("cast", (s.Literal(text, span=_token_span(parts[1])), s.Literal(kind)), span=span)

    def case(self, span: s.Span, parts: Parts) -> s.Call:
        return case_of(parts, span)

    def when(self, span: s.Span, parts: Parts) -> tuple[s.Expression, s.Expression]:
        _, condition, _, value = parts
        return condition, value

    def arithmetic(self, span: s.Span, parts: Parts) -> s.Arithmetic:
        left, operator, right = parts
        return s.Arithmetic(str(operator), left, right, span=span)

    def minus(self, span: s.Span, parts: Parts) -> s.Expression:
        operand = parts[1]
        if isinstance(operand, s.Literal) and type(operand.value) in (int, float, Decimal):
            return s.Literal(within(-operand.value), span=span)  # type: ignore[operator,arg-type]
        return s.Negative(operand, span=span)

    def plus(self, span: s.Span, parts: Parts) -> s.Expression:
        operand: s.Expression = parts[1]
        return operand

    def literal(self, span: s.Span, parts: Parts) -> s.Literal:
        return s.Literal(self._exact(parts[0]) if parts else None, span=span)

    def signed(self, span: s.Span, parts: Parts) -> s.Literal:
        return s.Literal(within(-self._exact(parts[1])), span=span)

    def _exact(self, token: Token) -> Any:
        """The value of a constant: as in Spark, 1.5 is a decimal and 1.5e0 a double."""
        value = self._value(token)
        if token.type not in ("NUMBER", "PERCENT"):
            return value
        found = exact_number(str(token), value)
        if found is None:
            self.fail("a number has more than 38 digits", _token_span(token), "bad-number", "write it as 1.5e40")
        return found

    def _value(self, token: Token) -> Any:
        match token.type:
            case "NUMBER" | "PERCENT":
                percent = token.type == "PERCENT"
                try:
                    number = _number(token[:-1] if percent else token)
                    number = float(number) / 100 if percent else number
                except (OverflowError, ValueError):  # Python refuses to read integers of thousands of digits
                    number = math.inf
                if isinstance(number, float) and math.isinf(number):
                    self.fail("a number is too large", _token_span(token), "bad-number", "the largest are near 1.8e308")
                return number
            case "STRING":
                return _word(token)
            case _:
                return token.type == "TRUE"

    def call(self, span: s.Span, parts: Parts) -> s.Call:
        arguments = tuple(part for part in parts[1:] if part is not None)
        if str(parts[0]).lower() in _UNIT_FIRST and arguments and isinstance(arguments[0], s.Name):
            arguments = (s.Literal(arguments[0].name.lower(), span=arguments[0].span), *arguments[1:])
        return s.Call(str(parts[0]), arguments, span=span)

    def reference(self, span: s.Span, parts: Parts) -> s.Expression:
        name, element = _word(parts[0]), parts[1]
        if element is None:
            return s.Name(name, span=span)
        if isinstance(element, str):
            element = self._last(name, element, span)
        return s.Reference(name, element, span=span)

    def attribute(self, span: s.Span, parts: Parts) -> s.Expression:
        variable, element, *names, default = parts
        variable, name = _word(variable), ".".join(_word(part) for part in names)
        if name.upper() == "LEN" and parts[2].type == "NAME" and element is None and default is None:
            return s.Length(variable, span=span)
        if isinstance(element, str):
            element = self._last(variable, element, span)
        start, after = span[0], parts[2].start_pos
        dot = self.text.rindex(".", start, after)  # the one in front of the first name
        of = s.Reference(variable, element or s.Element.SINGLE, span=(start, len(self.text[:dot].rstrip())))
        return s.Attribute(of, name, default, span=span)

    def _last(self, variable: str, inner: str, span: s.Span) -> s.Element:
        if inner != variable:
            hint = f"write {variable}[{variable}.LEN]"
            self.fail(f"'{variable}[{inner}.LEN]' mixes two variables", span, "bad-index", hint)
        return s.Element.LAST

    def index_all(self, span: s.Span, parts: Parts) -> s.Element:
        return s.Element.ALL

    def index_number(self, span: s.Span, parts: Parts) -> s.Element:
        if str(parts[0]) != "1":
            hint = "a[1], a[i], a[i-1], a[..i-1], a[a.LEN] and a[] can be named"
            self.fail(f"element {parts[0]} of a Kleene group cannot be named", span, "bad-index", hint)
        return s.Element.FIRST

    def index_current(self, span: s.Span, parts: Parts) -> s.Element:
        self._counter(parts[0])
        return s.Element.CURRENT

    def index_previous(self, span: s.Span, parts: Parts) -> s.Element:
        self._counter(parts[0], parts[2])
        return s.Element.PREVIOUS

    def index_before(self, span: s.Span, parts: Parts) -> s.Element:
        self._counter(parts[1], parts[3])
        return s.Element.BEFORE

    def index_last(self, span: s.Span, parts: Parts) -> str:
        if parts[1].upper() != "LEN":
            hint = "write a[a.LEN] for the last element"
            self.fail(f"'{parts[1]}' is not an index", _token_span(parts[1]), "bad-index", hint)
        return _word(parts[0])

    def _counter(self, name: Token, back: Token | None = None) -> None:
        if str(name) != "i":
            self.fail(f"the index must be i, not {name}", _token_span(name), "bad-index", "write a[i] or a[i-1]")
        if back is not None and str(back) != "1":
            self.fail(f"a[i-{back}] is too far back", _token_span(back), "bad-index", "only a[i-1] can be named")

    def parameter(self, span: s.Span, parts: Parts) -> s.Name:
        return s.Name(_word(parts[0]), span=span)

    def equivalence(self, span: s.Span, parts: Parts) -> s.Equivalence:
        return s.Equivalence(tuple(parts), span=span)

    def test(self, span: s.Span, parts: Parts) -> tuple[str, s.Expression | None]:
        names = [_word(part) for part in parts if isinstance(part, Token) and part.type != "EQUALS"]
        value = parts[-1] if isinstance(parts[-1], s.Expression) else None
        return ".".join(names), value
