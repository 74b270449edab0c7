"""Syntax tree to canonical text, which parses back to the same tree."""

from __future__ import annotations

import re
from collections.abc import Collection
from contextvars import ContextVar
from dataclasses import replace
from decimal import Decimal

from cepheid.budget import set_to
from cepheid.language import syntax as s
from cepheid.language.pattern import AnyOrder, Choice, Pattern, Repeat, Sequence, Single
from cepheid.language.whole import within_64_bits

# How tightly each node holds its parts together; a looser part inside a tighter one needs parentheses.
_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _UNARY, _ATOM = range(8)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*\Z")
_PLAIN_TYPE = re.compile(r"[^\W\d]\w*(-\w+)*\Z")
# Words that would read as a keyword where a name stands; everything else needs no quotes.
_RESERVED = frozenset({"and", "or", "not", "in", "between", "is", "null", "true", "false", "where", "within"})
_RESERVED |= {"threshold", "confidence", "return", "output", "as", "any", "seq", "sequence", "event", "pattern"}
_RESERVED |= {"summarise", "summarize", "by", "every", "define", "when", "then", "else", "end"}
_RESERVED |= {"like", "ilike", "rlike", "regexp", "case", "until"}
_RESERVED |= {strategy.value for strategy in s.Strategy}
_stored: ContextVar[bool] = ContextVar("stored", default=False)  # "1 hours" and 1 for 100%, as checkpoints have texts


def to_text(query: s.QuerySyntax) -> str:
    """The canonical text of a query.

    >>> from cepheid.language.sase.parse import parse
    >>> print(to_text(parse("event seq(A x, ~(B y), C z) where [id] ∧ x.n ≠ z.n within 1 hr")))
    PATTERN SEQ(A x, !(B y), C z)
    WHERE [id] AND x.n != z.n
    WITHIN 1 hour
    """
    query = _without_needless_names(query)
    mentioned = s.mentioned_words(query)
    lines = [f"PATTERN {pattern_text(query, mentioned)}"]
    if query.sources:
        lines.append(f"FROM {', '.join(map(name_text, query.sources))}")
    if query.definitions:
        lines.append("DEFINE " + ", ".join(_definition_text(definition) for definition in query.definitions))
    where = _where_text(query)
    if where:
        lines.append(f"WHERE {where}")
    if query.within is not None:
        lines.append(f"WITHIN {window_text(query.within)}")
    if query.threshold is not None:
        lines.append(f"THRESHOLD {query.threshold!r}")
    if query.confidence is not None:
        lines.append(f"CONFIDENCE {query.confidence!r}")
    if query.forecast is not None:
        lines.append(f"FORECAST {query.forecast!r}")
    if query.returns is not None:
        lines.append("RETURN " + ", ".join(_returned_text(item) for item in query.returns))
    if query.summary is not None:
        lines.append(summary_text(query.summary))
    if query.output.mode is s.OutputMode.TOP:
        lines.append(f"OUTPUT TOP {query.output.count} BY CONFIDENCE")
    elif query.output.mode is not s.OutputMode.ALL:
        lines.append(f"OUTPUT {query.output.mode.value}")
    return "\n".join(lines)


def pattern_text(query: s.QuerySyntax, mentioned: Collection[str] = ()) -> str:
    """The pattern of a query, without its conditions.

    >>> from cepheid.language.sase.parse import parse
    >>> pattern_text(parse("PATTERN SEQ(A a, (B{2,} b[], C? c | AND(D d, E e))*) WITHIN 5"))
    'SEQ(A a, (B{2,} b[], C? c | AND(D d, E e))*)'
    """
    by_name: dict[str, list[s.Component]] = {}  # several under one name are an error, which must be told in their text
    for component in query.components:
        by_name.setdefault(component.variable, []).append(component)

    def text(node: Pattern, quantifier: str = "") -> str:
        match node:
            case Single(label=label):
                own = by_name[label].pop(0) if len(by_name[label]) > 1 else by_name[label][0]
                return component_text(own, mentioned, quantifier) + _gap_text(own.gap) + _until_text(own)
            case Repeat(part=Single() as part):
                return text(part, quantifier_text(node))
            case Repeat(part=part):
                return (f"({listed(part)})" if not isinstance(part, AnyOrder) else text(part)) + quantifier_text(node)
            case Choice():
                return f"({listed(node)})"
            case AnyOrder(parts=parts):
                return f"AND({', '.join(inside(part) for part in parts)})"
            case Sequence():
                return f"SEQ({listed(node)})"
        raise TypeError(f"no text for {type(node).__name__}")

    def inside(node: Pattern) -> str:
        return f"({listed(node)})" if isinstance(node, Sequence) else text(node)

    def listed(node: Pattern) -> str:
        match node:
            case Sequence(parts=parts):
                return ", ".join(text(part) for part in parts)
            case Choice(parts=parts):
                return " | ".join(listed(part) for part in parts)
        return text(node)

    written = text(query.pattern) if isinstance(query.pattern, Choice) else listed(query.pattern)
    return f"SEQ({written})" if query.sequence else written


def quantifier_text(repeat: Repeat) -> str:
    """How often a part comes.

    >>> [quantifier_text(Repeat(Single("b"), *often)) for often in ((0, 1), (1, None), (2, None), (3, 3), (2, 5))]
    ['?', '+', '{2,}', '{3}', '{2,5}']
    """
    least, most = repeat.least, repeat.most
    signs = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    if (least, most) in signs:
        return signs[least, most]
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


def _until_text(component: s.Component) -> str:
    return f" UNTIL {expression_text(component.until)}" if component.until is not None else ""


def _gap_text(gap: s.Gap | None) -> str:
    if gap is None:
        return ""
    after = f" AFTER {window_text(gap.after)}" if gap.after is not None else ""
    return after + (f" WITHIN {window_text(gap.within)}" if gap.within is not None else "")


def component_text(component: s.Component, mentioned: Collection[str] = (), quantifier: str | None = None) -> str:
    """One place of the pattern, as written in SEQ.

    An untyped variable stands alone if the query mentions it, since only then does it read back as a variable.

    >>> component_text(s.Component("x"), {"x"}), component_text(s.Component("x"))
    ('x', '* x')
    """
    if quantifier is None:
        quantifier = "+" if component.kleene else ""
    types = [type_text(name) for name in component.types or component.defined]
    name = component.variable  # behind a type, `from` would begin a clause
    variable = _quoted(name) if name.lower() == "from" else name_text(name)
    variable += "[]" if quantifier not in ("", "?") else ""
    if not types and component.variable in mentioned and not quantifier:
        text = variable
    else:
        text = f"ANY({', '.join(types)})" if component.any or len(types) > 1 else types[0] if types else "*"
        text += quantifier
        text += f" {variable}" if component.named else ""
    return f"!({text})" if component.negative else text


def stored_text(query: s.QuerySyntax) -> str:
    """The text of a query as checkpoints record it, with units in the plural.

    >>> from cepheid.language.sase.parse import parse
    >>> stored_text(parse("PATTERN SEQ(A a, B b) WITHIN 1 hour"))
    'PATTERN SEQ(A a, B b)\\nWITHIN 1 hours'
    """
    with set_to(_stored, True):
        return to_text(query)


def window_text(window: s.Window) -> str:
    """The length of a window with its unit.

    >>> window_text(s.Window(1, "hours")), window_text(s.Window(2, "hours")), window_text(s.Window(3, "events"))
    ('1 hour', '2 hours', '3 EVENTS')
    """
    length = name_text(window.length.name) if isinstance(window.length, s.Name) else repr(window.length)
    if window.unit is None:
        return length
    return f"{length} {_unit_text(window.length, 'EVENTS' if window.unit == 'events' else window.unit)}"


def _unit_text(length: object, unit: str) -> str:
    return unit if length != 1 or _stored.get() else unit[:-1]


def expression_text(node: s.Expression) -> str:
    """The canonical text of an expression.

    >>> expression_text(s.Arithmetic("*", s.Arithmetic("+", s.Literal(1), s.Literal(2)), s.Literal(3)))
    '(1 + 2) * 3'
    """
    return _text(node)[0]


def name_text(name: str) -> str:
    """A name, in backquotes if it could not be read back otherwise.

    >>> name_text("price"), name_text("unit price"), name_text("in")
    ('price', '`unit price`', '`in`')
    """
    return name if _PLAIN_NAME.match(name) and not _reserved(name) else _quoted(name)


def path_text(name: str) -> str:
    """The name of an attribute, or the way to one that is nested.

    >>> path_text("user.id"), path_text("user.first name"), path_text(".5")
    ('user.id', 'user.`first name`', '`.5`')
    """
    parts = name.split(".")
    return ".".join(map(name_text, parts)) if all(parts) else _quoted(name)


def type_text(name: str) -> str:
    """An event type, in backquotes if it could not be read back otherwise.

    >>> type_text("SHELF-READING"), type_text("shelf reading")
    ('SHELF-READING', '`shelf reading`')
    """
    return name if _PLAIN_TYPE.match(name) and not _reserved(name) else _quoted(name)


def _reserved(name: str) -> bool:
    return name.lower() in _RESERVED


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _where_text(query: s.QuerySyntax) -> str:
    condition = expression_text(query.where) if query.where is not None else ""
    steps = "".join(f" AND {_steps_text(selection)}" for selection in query.step_selections)
    block = f"{{ {condition} }}" if condition else "{ }"
    if query.selection is None:
        return f"{block}{steps}" if steps else condition
    kleene = {component.variable for component in query.components if component.kleene}
    variables = ", ".join(name_text(name) + ("[]" if name in kleene else "") for name in query.selection.variables)
    return f"{query.selection.strategy.value}{f'({variables})' if variables else ''} {block}{steps}"


def _steps_text(selection: s.StepSelection) -> str:
    return f"{selection.strategy.value}({', '.join(_reference_text(step) for step in selection.steps)})"


def _without_needless_names(query: s.QuerySyntax) -> s.QuerySyntax:
    """A strategy over all components names none of them where one has no name of its own, only a type.

    If it named that type, the text would read as if the type were an untyped variable.
    """
    every = tuple(component.variable for component in query.components)
    if query.selection is None or query.selection.variables != every or all(c.named for c in query.components):
        return query
    return replace(query, selection=replace(query.selection, variables=()))


def _definition_text(definition: s.Definition) -> str:
    return f"{type_text(definition.name)} AS {expression_text(definition.condition)}"


def _returned_text(item: s.Returned) -> str:
    text = expression_text(item.expression)
    return f"{text} AS {name_text(item.alias)}" if item.alias is not None else text


def summary_text(summary: s.Summary) -> str:
    """The clause that asks for totals."""
    items = [f"{total_text(total)}{f' AS {name_text(total.alias)}' if total.alias else ''}" for total in summary.totals]
    text = f"SUMMARISE {', '.join(items)}"
    if summary.by:
        text += f" BY {', '.join(path_text(name) for name in summary.by)}"
    return text if summary.every is None else f"{text} EVERY {window_text(summary.every)}"


def total_text(total: s.Total) -> str:
    """A total without its alias.

    >>> total_text(s.Total("count")), total_text(s.Total("sum", s.Attribute(s.Reference("a"), "x")))
    ('count(*)', 'sum(a.x)')
    """
    return f"{total.function}({'*' if total.argument is None else expression_text(total.argument)})"


def _string_text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _decimal_text(number: Decimal) -> str:
    """A decimal as text that reads back as a decimal: 7 would be a whole number.

    >>> _decimal_text(Decimal("1.50")), _decimal_text(Decimal(7)), _decimal_text(Decimal(2**63))
    ('1.50', '700%', '9223372036854775808')
    """
    written = format(number, "f")
    whole = "." not in written and within_64_bits(int(number)) is not None and not _stored.get()
    return f"{written}00%" if whole and number else "0%" if whole else written


def _text(node: s.Expression) -> tuple[str, int]:
    """The text and how tightly it holds together."""
    match node:
        case s.Literal(value=None):
            return "NULL", _ATOM
        case s.Literal(value=bool() as truth):
            return ("TRUE" if truth else "FALSE"), _ATOM
        case s.Literal(value=str() as text):
            return _string_text(text), _ATOM
        case s.Literal(value=Decimal() as number):
            return _decimal_text(number), _UNARY if number.is_signed() else _ATOM
        case s.Literal(value=number):
            return repr(number), _UNARY if str(number).startswith("-") else _ATOM
        case s.Name(name=name):
            return name_text(name), _ATOM
        case s.Reference():
            return _reference_text(node), _ATOM
        case s.Attribute(of=of, name=name, default=default):
            suffix = "" if default is None else f"[{expression_text(default)}]"
            quoted = _quoted(name) if name.upper() == "LEN" else path_text(name)
            return f"{_reference_text(of)}.{quoted}{suffix}", _ATOM
        case s.PathValue(name=name):
            return name, _ATOM
        case s.Length(variable=variable):
            return f"{name_text(variable)}.LEN", _ATOM
        case s.Duration(length=length, unit=unit):
            return f"{length!r} {_unit_text(length, unit)}", _ATOM
        case s.Star(of=of):
            return "*" if of is None else f"{_reference_text(of)}.*", _ATOM
        case s.Call(function="like" | "ilike" | "rlike" as name, arguments=(operand, pattern)):
            return f"{_inside(operand, _SUM)} {name.upper()} {_inside(pattern, _SUM)}", _PREDICATE
        case s.Call(function="cast" | "try_cast" as name, arguments=(operand, s.Literal(value=str() as kind), *_)):
            return f"{name.upper()}({expression_text(operand)} AS {kind})", _ATOM
        case s.Call(function="case", arguments=arguments) if len(arguments) > 2:
            return _case_text(arguments), _ATOM
        case s.Call(function=function, arguments=arguments):
            return f"{function}({', '.join(expression_text(argument) for argument in arguments)})", _ATOM
        case s.Equivalence(tests=tests):
            return "[" + ", ".join(_test_text(name, value) for name, value in tests) + "]", _ATOM
        case s.Negative(operand=operand):
            inner, strength = _text(operand)
            # A literal is put in parentheses, since -1 in front of nothing else reads back as a literal.
            bare = strength >= _UNARY and not isinstance(operand, s.Literal) and not inner.startswith("-")
            return (f"-{inner}" if bare else f"-({inner})"), _UNARY
        case s.Arithmetic(operator=operator, left=left, right=right):
            strength = _SUM if operator in "+-" else _PRODUCT
            return f"{_inside(left, strength)} {operator} {_inside(right, strength + 1)}", strength
        case s.Comparison(operator=operator, left=left, right=right):
            return f"{_inside(left, _SUM)} {operator} {_inside(right, _SUM)}", _PREDICATE
        case s.Membership(operand=operand, values=values, negated=negated):
            word = "NOT IN" if negated else "IN"
            inner = type_text(values.name) if isinstance(values, s.Name) else _set_text(values)
            return f"{_inside(operand, _SUM)} {word} {inner}", _PREDICATE
        case s.Between(operand=operand, low=low, high=high, negated=negated):
            word = "NOT BETWEEN" if negated else "BETWEEN"
            return f"{_inside(operand, _SUM)} {word} {_inside(low, _SUM)} AND {_inside(high, _SUM)}", _PREDICATE
        case s.IsNull(operand=operand, negated=negated):
            return f"{_inside(operand, _SUM)} {'IS NOT NULL' if negated else 'IS NULL'}", _PREDICATE
        case s.Not(operand=operand):
            return f"NOT {_inside(operand, _NOT)}", _NOT
        case s.And(operands=operands):
            return " AND ".join(_inside(operand, _NOT) for operand in operands), _AND
        case s.Or(operands=operands):
            return " OR ".join(_inside(operand, _AND) for operand in operands), _OR
    raise TypeError(f"no text for {type(node).__name__}")


def _case_text(arguments: tuple[s.Expression, ...]) -> str:
    parts = [
        f"WHEN {expression_text(arguments[place])} THEN {expression_text(arguments[place + 1])}"
        for place in range(0, len(arguments) - 1, 2)
    ]
    other = arguments[-1]
    otherwise = "" if isinstance(other, s.Literal) and other.value is None else f" ELSE {expression_text(other)}"
    return f"CASE {' '.join(parts)}{otherwise} END"


def _inside(node: s.Expression, strength: int) -> str:
    text, own = _text(node)
    return text if own >= strength else f"({text})"


def _set_text(values: tuple[s.Expression, ...]) -> str:
    return "(" + ", ".join(_inside(value, _SUM) for value in values) + ")"


def _test_text(name: str, value: s.Expression | None) -> str:
    return path_text(name) if value is None else f"{path_text(name)} = {expression_text(value)}"


def _reference_text(reference: s.Reference) -> str:
    name = name_text(reference.variable)
    if reference.element is s.Element.LAST:
        return f"{name}[{name}.LEN]"
    return f"{name}{reference.element.value}"
