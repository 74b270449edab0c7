"""Expressions of SQL, as MEASURES and DEFINE hold them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import NoReturn

from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.check import labels_used
from cepheid.language.match_recognize.functions import WITH_UNITS
from cepheid.language.match_recognize.parse_literal import number_of, parse_interval, parse_moment, parse_type, within
from cepheid.language.match_recognize.reader import RESERVED, Reader
from cepheid.language.match_recognize.tokens import Kind
from cepheid.language.pattern import Span
from cepheid.language.units import unit_named

MAX_DEPTH = 200  # of expressions: many passes recurse, and Python's stack is finite
_COMPARISONS = {"=": "=", "==": "=", "<>": "!=", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">=", "<=>": "<=>"}
_PATTERNS = {"LIKE": "like", "ILIKE": "ilike", "RLIKE": "rlike", "REGEXP": "rlike"}
_LISTED = frozenset({"IN", "BETWEEN"}) | _PATTERNS.keys()
_SUMS = {"+": "+", "-": "-", "||": "||"}
_PRODUCTS = {"*": "*", "/": "/", "%": "%"}
_TYPED = frozenset({"VARCHAR", "CHAR", "STRING", "BIGINT", "INT", "INTEGER", "SMALLINT", "TINYINT", "DOUBLE", "REAL"})
_QUERIES = ("SELECT", "WITH", "VALUES", "TABLE")
UNITS_FIRST = frozenset({"timestampadd", "dateadd", "date_add"})  # Spark's, with a bare unit before two arguments
_NOW = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "LOCALTIMESTAMP"})  # written without parentheses


def parse_expression(reader: Reader, depth: int = 0) -> m.Expression:
    """An expression; what comes after it is left unread."""
    if depth > MAX_DEPTH:
        too_deep(reader, reader.token.span)
    return _or(reader, depth + 1)


def too_deep(reader: Reader, span: Span) -> NoReturn:
    """Refuses an expression with more levels than all passes can take."""
    hint = "compute parts of it as columns before, or join lists of conditions with AND and OR instead of nesting them"
    reader.fail("the expression is nested too deeply", span, "too-deep", hint)


def _operation(
    reader: Reader, operator: str, operands: tuple[m.Expression, ...], target: str | None = None
) -> m.Operation:
    return m.Operation(operator, operands, target, (operands[0].span[0], reader.ahead(-1).end))


def _or(reader: Reader, depth: int) -> m.Expression:
    operands = [_and(reader, depth)]
    while reader.take_words("OR"):
        operands.append(_and(reader, depth))
    return _joined("or", operands)


def _and(reader: Reader, depth: int) -> m.Expression:
    operands = [_not(reader, depth)]
    while reader.take_words("AND"):
        operands.append(_not(reader, depth))
    return _joined("and", operands)


def _joined(operator: str, operands: list[m.Expression]) -> m.Expression:
    """A tree as flat as can be: thousands of conditions are common where a program writes them."""
    while len(operands) > 1:
        pairs = [operands[at : at + 2] for at in range(0, len(operands), 2)]
        operands = [
            m.Operation(operator, tuple(pair), None, (pair[0].span[0], pair[1].span[1])) if len(pair) == 2 else pair[0]
            for pair in pairs
        ]
    return operands[0]


def _not(reader: Reader, depth: int) -> m.Expression:
    if reader.at_words("NOT") or (reader.at_symbol("!") and not reader.ahead().text.startswith("=")):
        start = reader.advance().start
        operand = _not(reader, depth + 1) if depth < MAX_DEPTH else parse_expression(reader, depth)
        return m.Operation("not", (operand,), None, (start, operand.span[1]))
    return _predicate(reader, depth)


def _predicate(reader: Reader, depth: int) -> m.Expression:
    left = _sum(reader, depth)
    while True:
        if reader.token.kind is Kind.SYMBOL and reader.token.text in _COMPARISONS:
            operator = _COMPARISONS[reader.advance().text]
            left = _operation(reader, operator, (left, _sum(reader, depth)))
        elif reader.take_words("IS"):
            left = _is(reader, left, depth)
        elif reader.token.upper in _LISTED:
            left = _listed(reader, left, depth)
        elif reader.at_words("NOT") and reader.ahead().upper in _LISTED:
            reader.advance()
            left = _operation(reader, "not", (_listed(reader, left, depth),))
        else:
            return left


def _is(reader: Reader, left: m.Expression, depth: int) -> m.Expression:
    negated = reader.take_words("NOT")
    if reader.take_words("NULL"):
        result = _operation(reader, "is null", (left,))
    elif reader.token.upper in ("TRUE", "FALSE"):
        value = m.Literal(reader.token.upper == "TRUE", reader.advance().span)
        result = _operation(reader, "<=>", (left, value))
    elif reader.take_words("DISTINCT"):
        reader.expect_words("FROM")
        same = _operation(reader, "<=>", (left, _sum(reader, depth)))
        result = m.Operation("not", (same,), None, same.span)
    else:
        reader.unexpected("NULL", "TRUE", "FALSE", "DISTINCT")
    return m.Operation("not", (result,), None, result.span) if negated else result


def _listed(reader: Reader, left: m.Expression, depth: int) -> m.Expression:
    word = reader.advance().upper
    if word == "BETWEEN":
        low = _sum(reader, depth)
        reader.expect_words("AND")
        high = _sum(reader, depth)
        above = _operation(reader, ">=", (left, low))
        return _operation(reader, "and", (above, _operation(reader, "<=", (left, high))))
    if word in _PATTERNS:
        pattern = _sum(reader, depth)
        operands: tuple[m.Expression, ...] = (left, pattern)
        if word == "LIKE" and reader.take_words("ESCAPE"):
            operands = (left, pattern, _sum(reader, depth))
        return _operation(reader, _PATTERNS[word], operands)
    reader.expect_symbol("(")
    values = _subquery(reader, "IN")
    items: tuple[m.Expression, ...] = reader.listed(lambda: _argument(reader, depth)) if values is None else values
    end = reader.expect_symbol(")").end
    if values == ():  # nothing is among no values, NULL included, so that NOT IN holds for all
        return m.Literal(False, (left.span[0], end))
    return _operation(reader, "in", (left, *items))


def _sum(reader: Reader, depth: int) -> m.Expression:
    left = _product(reader, depth)
    while reader.token.kind is Kind.SYMBOL and reader.token.text in _SUMS:
        operator = _SUMS[reader.advance().text]
        right = _product(reader, depth)
        for moved, time in ((right, left), (left, right)):
            if isinstance(moved, m.Literal) and isinstance(moved.value, m.Months) and (operator, moved) != ("-", left):
                months = moved.value.count if operator == "+" else -moved.value.count
                left = _operation(reader, "add months", (time, m.Literal(months, moved.span)))
                break
        else:
            left = _operation(reader, operator, (left, right))
    return left


def _product(reader: Reader, depth: int) -> m.Expression:
    left = _unary(reader, depth)
    products = {**_PRODUCTS, **reader.overrides.products}
    while (reader.token.kind is Kind.SYMBOL and reader.token.text in products) or reader.at_words("DIV"):
        written = reader.advance().text.upper()
        operator = "div" if written == "DIV" else products[written]
        if operator == "/" and reader.overrides.whole_division:
            operator = "whole /"
        left = _operation(reader, operator, (left, _unary(reader, depth)))
    return left


def _unary(reader: Reader, depth: int) -> m.Expression:
    if reader.at_symbol("-") or reader.at_symbol("+"):
        token = reader.advance()
        operand = _unary(reader, depth + 1) if depth < MAX_DEPTH else parse_expression(reader, depth)
        if token.text == "+":
            return operand
        if isinstance(operand, m.Literal) and isinstance(operand.value, int | float | Decimal | timedelta | m.Months):
            return m.Literal(within(-operand.value), (token.start, operand.span[1]))
        return m.Operation("negative", (operand,), None, (token.start, operand.span[1]))
    return _postfix(reader, depth)


def _postfix(reader: Reader, depth: int) -> m.Expression:
    left = _primary(reader, depth)
    while True:
        if reader.take_symbol("::"):
            target = parse_type(reader)
            left = _operation(reader, "cast", (left,), target)
        elif reader.at_symbol("["):
            reader.advance()
            index = parse_expression(reader, depth)
            reader.expect_symbol("]")
            if reader.overrides.first_index:
                span = (left.span[0], reader.ahead(-1).end)
                left = m.Call("element_at", (left, index), None, False, span, index.span)
            else:
                left = _operation(reader, "get", (left, index))
        elif reader.at_symbol("->") or reader.at_symbol("->>"):
            left = _json_part(reader, left)
        else:
            return left


def _primary(reader: Reader, depth: int) -> m.Expression:
    token = reader.token
    if token.kind is Kind.NUMBER:
        return m.Literal(number_of(reader.advance().text, reader.overrides.double_literals), token.span)
    if token.kind is Kind.STRING:
        return m.Literal(reader.advance().value, token.span)
    if reader.take_symbol("("):
        values = _subquery(reader, "")
        inner = parse_expression(reader, depth) if values is None else values[0]
        reader.expect_symbol(")")
        return inner
    if token.kind is Kind.QUOTED:
        return _quoted(reader)
    if token.text == "{" and reader.overrides.brackets:
        return _struct(reader, depth, "}", ":")
    if token.text == "[" and reader.overrides.brackets:
        return _array(reader, depth)
    if token.kind is Kind.WORD:
        return _word(reader, depth)
    reader.unexpected("an expression")


def _quoted(reader: Reader) -> m.Expression:
    token = reader.token
    if token.text[0] == '"' and reader.overrides.double_quoted_strings and reader.ahead().text != ".":
        return m.Literal(reader.advance().value, token.span)
    return _reference(reader)


def _word(reader: Reader, depth: int) -> m.Expression:
    token, following = reader.token, reader.ahead()
    word = token.upper
    if word in ("TRUE", "FALSE", "NULL"):
        reader.advance()
        return m.Literal({"TRUE": True, "FALSE": False, "NULL": None}[word], token.span)
    if word in ("RUNNING", "FINAL") and following.kind is Kind.WORD and reader.ahead(2).text == "(":
        reader.advance()
        return _call(reader, depth, m.Mode(word), token.start)
    if word == "CASE":
        return _case(reader, depth)
    if word in ("CAST", "TRY_CAST") and following.text == "(":
        return _cast(reader, depth)
    if word == "EXTRACT" and following.text == "(":
        return _extract(reader, depth)
    if word == "EXISTS" and following.text == "(":
        reader.position += 2
        values = _subquery(reader, "EXISTS")
        if values is not None:
            return m.Literal(bool(values), (token.start, reader.expect_symbol(")").end))
        reader.position -= 2
    if word == "INTERVAL" and (following.kind in (Kind.STRING, Kind.NUMBER) or following.text in ("-", "+")):
        return parse_interval(reader)
    if word in ("DATE", "TIMESTAMP") and following.kind is Kind.STRING:
        return parse_moment(reader)
    if word in _TYPED and following.kind is Kind.STRING:
        reader.advance()
        inner = m.Literal(reader.advance().value, following.span)
        return m.Operation("cast", (inner,), word.lower(), (token.start, following.end))
    if word == "ARRAY" and following.text == "[":
        reader.advance()
        return _array(reader, depth)
    if following.text == "(":
        return _call(reader, depth, None, token.start)
    if word in RESERVED:
        reader.unexpected("an expression")
    if word in _NOW and following.text != ".":
        reader.advance()
        return m.Call(word.lower(), (), None, False, token.span, token.span)
    return _reference(reader)


def _reference(reader: Reader) -> m.Expression:
    first = reader.identifier("a column")
    if not first.quoted and first.name.lower() in reader.parameters:
        inside = []
        while reader.take_symbol("."):
            inside.append(reader.identifier("a field"))
        return m.Parameter(first.name.lower(), (first.span[0], reader.ahead(-1).end), tuple(inside))
    if not reader.take_symbol("."):
        return m.Reference(None, first, first.span)
    if reader.at_symbol("*"):
        return m.Star(first, (first.span[0], reader.advance().end))
    column = reader.identifier("a column")
    fields = []
    while reader.take_symbol("."):
        fields.append(reader.identifier("a field"))
    return m.Reference(first, column, (first.span[0], reader.ahead(-1).end), tuple(fields))


def _call(reader: Reader, depth: int, mode: m.Mode | None, start: int) -> m.Expression:
    name = reader.identifier("a function")
    written = name.name.lower()
    if written in reader.overrides.other_meaning:
        hint = f"use {reader.overrides.other_meaning[written]}"
        reader.fail(f"{written} means something else in {reader.dialect}", name.span, "unknown-function", hint)
    called = reader.overrides.functions.get(written, written)
    if called in _STRUCTS:
        return _struct(reader, depth, ")", _STRUCTS[called])
    reader.expect_symbol("(")
    distinct = reader.take_words("DISTINCT")
    arguments: tuple[m.Expression, ...] = ()
    if reader.at_symbol("*"):
        arguments = (m.Star(None, reader.advance().span),)
    elif not reader.at_symbol(")") and not reader.at_words("ORDER", "BY"):
        if reader.token.upper in _QUERIES:
            _refuse_query(reader)
        arguments = reader.listed(lambda: _argument(reader, depth))
        if (called in WITH_UNITS and len(arguments) > 1) or (called in UNITS_FIRST and len(arguments) > 2):
            arguments = (_as_unit(arguments[0]), *arguments[1:])
    keys, order = _aggregate_order(reader, called, depth) if reader.at_words("ORDER") else ((), ())
    target = _json_target(reader) if called == "json_value" else None
    reader.expect_symbol(")")
    if reader.take_words("WITHIN", "GROUP"):
        reader.expect_symbol("(")
        keys, order = _aggregate_order(reader, called, depth)
        reader.expect_symbol(")")
        if called in _ORDERED_SETS:
            arguments, keys, order = _ordered_set(reader, called, arguments, keys, order), (), ()
    filtered = False
    if reader.at_words("FILTER") and reader.ahead().text == "(":
        word = reader.token.span
        condition = _filter(reader, called, depth)
        if called in _FILTERED and len(arguments) < 2 and not order:
            arguments = _filtered(reader, arguments, condition, word)
        else:
            keys, filtered = (*keys, condition), True
    if reader.at_words("OVER") and reader.ahead().text == "(":
        hint = "leave it out: an aggregate is of the rows of the match"
        reader.fail("OVER is not possible in a row pattern", reader.token.span, "window-function", hint)
    span = (start, reader.ahead(-1).end)
    call = m.Call(called, (*arguments, *keys), mode, distinct, span, name.span, order, filtered)
    return call if target is None else m.Operation("cast", (call,), target, span)


def parse_direction(reader: Reader) -> m.Direction:
    """ASC or DESC, and NULLS FIRST or LAST, behind a key."""
    descending = reader.take_words("DESC")
    if not descending:
        reader.take_words("ASC")
    if not reader.take_words("NULLS"):
        return m.Direction(descending)
    nulls_first = reader.take_words("FIRST")
    if not nulls_first:
        reader.expect_words("LAST")
    return m.Direction(descending, nulls_first)


def _aggregate_order(
    reader: Reader, called: str, depth: int
) -> tuple[tuple[m.Expression, ...], tuple[m.Direction, ...]]:
    """The keys of ORDER BY inside an aggregate, and how they sort."""
    if called not in AGGREGATES:
        hint = "rows come in their order; first_value, max_by and array_agg take ORDER BY"
        reader.fail(f"ORDER BY inside {called.upper()}", reader.token.span, "aggregate-order", hint)
    reader.expect_words("ORDER", "BY")
    keys, order = [], []
    while True:
        keys.append(parse_expression(reader, depth))
        order.append(parse_direction(reader))
        if not reader.take_symbol(","):
            return tuple(keys), tuple(order)


# Aggregates that are written `percentile_cont(0.5) WITHIN GROUP (ORDER BY x)`.
_ORDERED_SETS = frozenset({"percentile_cont", "percentile_disc", "mode"})


def _ordered_set(
    reader: Reader,
    called: str,
    arguments: tuple[m.Expression, ...],
    keys: tuple[m.Expression, ...],
    order: tuple[m.Direction, ...],
) -> tuple[m.Expression, ...]:
    """The arguments of an aggregate that WITHIN GROUP gives its values."""
    if len(keys) > 1 or order[0].descending:
        hint = f"write {called.upper()}(...) WITHIN GROUP (ORDER BY x)"
        reader.fail("WITHIN GROUP sorts by one ascending value here", keys[-1].span, "aggregate-order", hint)
    return (*keys, *arguments)


# Structs as functions: what stands between the name and the value of a field.
_STRUCTS = {"struct": "AS", "named_struct": ",", "struct_pack": ":="}


def _struct(reader: Reader, depth: int, closing: str, between: str) -> m.Expression:
    """A struct: struct(x AS a), named_struct('a', x), {'a': x} or struct_pack(a := x)."""
    start = reader.ahead(-1).start if closing == ")" else reader.token.start
    reader.advance()
    operands: list[m.Expression] = []
    while not reader.take_symbol(closing):
        if operands:
            reader.expect_symbol(",")
        if between == "AS":
            value = parse_expression(reader, depth)
            name = reader.identifier("a name") if reader.take_words("AS") else _field_name(value, len(operands) // 2)
        else:
            text = reader.token.kind is Kind.STRING
            name = m.Identifier(reader.advance().value, True) if text else reader.identifier("a name")
            for symbol in between:
                reader.expect_symbol(symbol)
            value = parse_expression(reader, depth)
        if any(isinstance(each, m.Literal) and each.value == name.name for each in operands[::2]):
            reader.fail(f"a second field '{name}'", value.span, "duplicate-column", "rename one")
        operands += [m.Literal(name.name, name.span), value]
    if not operands:
        reader.fail("a struct without a field", (start, reader.ahead(-1).end), "arguments")
    return m.Operation("named_struct", tuple(operands), None, (start, reader.ahead(-1).end))


def _field_name(value: m.Expression, place: int) -> m.Identifier:
    """The name of a field that has none: that of its column, as in Spark."""
    if isinstance(value, m.Reference):
        return (value.column, *value.fields)[-1]
    return m.Identifier(f"col{place + 1}", True, value.span)


def _json_part(reader: Reader, left: m.Expression) -> m.Expression:
    """`->` and `->>`: the text of a part of a JSON text; several in a row are one path."""
    path = "$"
    while True:
        arrow = reader.advance()
        token = reader.advance()
        if token.kind is Kind.NUMBER and token.text.isdigit():
            path += f"[{token.text}]"
        elif token.kind is not Kind.STRING or token.value.startswith("/") or "'" in token.value:
            hint = "write a name or a path: ->> 'name', ->> '$.list[0].name'"
            reader.fail(f"unexpected '{token.text[:40]}' behind {arrow.text}", token.span, "json-path", hint)
        else:
            path += token.value[1:] if token.value.startswith("$") else f"['{token.value}']"
        if arrow.text == "->>":
            span = (left.span[0], token.end)
            return m.Call("get_json_object", (left, m.Literal(path, span)), None, False, span, arrow.span)
        if not (reader.at_symbol("->") or reader.at_symbol("->>")):
            reader.fail("-> gives JSON, which is no value here", arrow.span, "json-path", "use ->>, which gives a text")


def _json_target(reader: Reader) -> str | None:
    """The type of JSON_VALUE(... RETURNING type); what it does without a value is what it does anyway."""
    target = parse_type(reader) if reader.take_words("RETURNING") else None
    while reader.take_words("NULL", "ON", "EMPTY") or reader.take_words("NULL", "ON", "ERROR"):
        pass
    return target


# Aggregates that leave NULL out: under FILTER they see NULL in place of the rows that it drops.
_FILTERED = frozenset({"count", "sum", "avg", "mean", "min", "max", "stddev", "stddev_samp", "stddev_pop"})
_FILTERED |= {"variance", "var_samp", "var_pop"}


def _filter(reader: Reader, called: str, depth: int) -> m.Expression:
    """The condition of FILTER (WHERE condition) behind an aggregate."""
    word = reader.advance()
    if not reader.overrides.filters:
        hint = "put the condition inside: sum(CASE WHEN condition THEN x END)"
        reader.fail(f"{reader.dialect} has no FILTER in row patterns", word.span, "aggregate-filter", hint)
    reader.expect_symbol("(")
    reader.expect_words("WHERE")
    condition = parse_expression(reader, depth + 1)
    reader.expect_symbol(")")
    if called not in AGGREGATES:
        hint = "put the condition inside: CASE WHEN condition THEN x END"
        reader.fail(f"FILTER is not possible with {called}", word.span, "aggregate-filter", hint)
    return condition


def _filtered(
    reader: Reader, arguments: tuple[m.Expression, ...], condition: m.Expression, word: Span
) -> tuple[m.Expression, ...]:
    """The arguments of an aggregate that leaves NULL out, under FILTER: `CASE WHEN condition THEN argument END`."""
    counted = arguments[0] if arguments else m.Star(None, condition.span)
    value: m.Expression = counted
    if isinstance(counted, m.Star):
        value = m.Literal(1, counted.span)
        of = {each and each.canonical for each in labels_used(condition)}
        if of - {counted.label and counted.label.canonical}:
            hint = "write the label before the columns of the condition, too: count(A.*) FILTER (WHERE A.x > 1)"
            reader.fail("FILTER is about other rows than the aggregate", word, "aggregate-filter", hint)
    return (_operation(reader, "case", (condition, value, m.Literal(None, condition.span))),)


def _as_unit(argument: m.Expression) -> m.Expression:
    """MINUTE in TIMESTAMPDIFF(MINUTE, a, b) is no column."""
    if isinstance(argument, m.Reference) and argument.label is None and not argument.column.quoted:
        word = argument.column.name.lower()
        if unit_named(word) is not None or word.rstrip("s") in ("month", "quarter", "year"):
            return m.Literal(word, argument.span)
    return argument


def _argument(reader: Reader, depth: int) -> m.Expression:
    """An expression, or a lambda: x -> x + 1, (x, y) -> x + y."""
    names, arrow = [], 1
    if reader.token.kind is Kind.WORD:
        names = [reader.token.text.lower()]
    elif reader.at_symbol("("):
        while reader.ahead(arrow).kind is Kind.WORD:
            names.append(reader.ahead(arrow).text.lower())
            arrow += 2 if reader.ahead(arrow + 1).text == "," else 1
        arrow += 1
    if not names or reader.ahead(arrow).text != "->" or reader.ahead(arrow + 1).kind is Kind.STRING:
        return parse_expression(reader, depth)
    start, outer = reader.token.start, reader.parameters
    reader.position += arrow + 1
    reader.parameters = outer | set(names)
    body = parse_expression(reader, depth)
    reader.parameters = outer
    return m.Operation("lambda", (body,), ",".join(names), (start, body.span[1]))


def _case(reader: Reader, depth: int) -> m.Expression:
    start = reader.advance().start
    subject = None if reader.at_words("WHEN") else parse_expression(reader, depth)
    operands: list[m.Expression] = []
    if not reader.at_words("WHEN"):
        reader.unexpected("WHEN")
    while reader.take_words("WHEN"):
        test = parse_expression(reader, depth)
        if subject is not None:
            test = m.Operation("=", (subject, test), None, test.span)
        reader.expect_words("THEN")
        operands += [test, parse_expression(reader, depth)]
    otherwise = parse_expression(reader, depth) if reader.take_words("ELSE") else m.Literal(None, reader.token.span)
    reader.expect_words("END")
    return m.Operation("case", (*operands, otherwise), None, (start, reader.ahead(-1).end))


def _cast(reader: Reader, depth: int) -> m.Expression:
    start = reader.advance().start
    reader.expect_symbol("(")
    operand = parse_expression(reader, depth)
    reader.expect_words("AS")
    target = parse_type(reader)
    return m.Operation("cast", (operand,), target, (start, reader.expect_symbol(")").end))


def _extract(reader: Reader, depth: int) -> m.Expression:
    start = reader.advance().start
    reader.expect_symbol("(")
    part = reader.identifier("a part of a date")
    reader.expect_words("FROM")
    operand = parse_expression(reader, depth)
    end = reader.expect_symbol(")").end
    return m.Call(part.name.lower(), (operand,), None, False, (start, end), part.span)


def _array(reader: Reader, depth: int) -> m.Expression:
    token = reader.advance()
    items = () if reader.at_symbol("]") else reader.listed(lambda: _argument(reader, depth))
    end = reader.expect_symbol("]").end
    return m.Call("array", items, None, False, (token.start, end), token.span)


def _subquery(reader: Reader, word: str) -> tuple[m.Literal, ...] | None:
    """The values of the query that comes next, up to its closing parenthesis; None if none comes."""
    if reader.token.upper not in _QUERIES:
        return None
    if reader.subquery is None or reader.token.upper not in ("SELECT", "WITH"):
        _refuse_query(reader)
    first, depth = reader.token, 1
    while depth:
        if reader.token.upper == "MATCH_RECOGNIZE":
            hint = "run the inner clause in a query before"
            reader.fail("MATCH_RECOGNIZE inside MATCH_RECOGNIZE", reader.token.span, "nested-clause", hint)
        if reader.token.kind is Kind.END:
            reader.unexpected("')'")
        depth += reader.at_symbol("(") - reader.at_symbol(")")
        reader.position += depth > 0
    span = (first.start, reader.token.start)
    return tuple(m.Literal(value, span) for value in reader.subquery(word, span))


def _refuse_query(reader: Reader) -> NoReturn:
    hint = "cepheid.sql.query runs (SELECT ...) in a statement; elsewhere compute it before and join it to the table"
    reader.fail("a query inside MATCH_RECOGNIZE", reader.token.span, "subquery", hint)
