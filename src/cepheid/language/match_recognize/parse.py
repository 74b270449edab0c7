"""The text of a MATCH_RECOGNIZE clause to its tree (ISO/IEC 19075-5, section 4.2)."""

from __future__ import annotations

import re
from dataclasses import replace

from cepheid.errors import QueryError
from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.check import check_clause, exceeds, rebuilt, walk
from cepheid.language.match_recognize.dialects import known_dialect
from cepheid.language.match_recognize.functions import MATCH_FUNCTIONS, NAVIGATIONS
from cepheid.language.match_recognize.parse_expression import MAX_DEPTH, parse_direction, parse_expression, too_deep
from cepheid.language.match_recognize.parse_pattern import parse_pattern
from cepheid.language.match_recognize.reader import Reader
from cepheid.language.match_recognize.tokens import Kind, tokens
from cepheid.language.pattern import Pattern, labels_of

MAX_TEXT = 200_000
_AFTER_MEASURES = frozenset({"ONE", "ALL", "AFTER", "INITIAL", "SEEK", "PATTERN", "DEFINE"})
_BEGINNING = re.compile(r"(?>\s+|--[^\n]*\n|/\*.*?\*/)*+match_recognize\b", re.IGNORECASE | re.DOTALL)  # no going back


def is_clause(text: str) -> bool:
    """Does the text begin like a MATCH_RECOGNIZE clause? Whatever is wrong behind that is an error of the clause.

    >>> is_clause("match_recognize (PATTERN (A) DEFINE A AS true)"), is_clause("PATTERN SEQ(A a, B b)")
    (True, False)
    """
    return _BEGINNING.match(text) is not None


def parse_clause(text: str, dialect: str = "spark") -> m.Clause:
    """The clause of a text that holds nothing else.

    >>> clause = parse_clause("MATCH_RECOGNIZE (ORDER BY t PATTERN (A B+) DEFINE B AS price < PREV(price))")
    >>> clause.definitions[0].label.canonical
    'B'
    """
    dialect = known_dialect(dialect)
    if len(text) > MAX_TEXT:
        raise QueryError(f"the clause has {len(text)} characters; at most {MAX_TEXT} are read", code="too-long")
    reader = Reader(text, tokens(text), dialect=dialect)
    reader.expect_words("MATCH_RECOGNIZE")
    clause = clause_at(reader)
    if reader.token.kind is not Kind.END and not reader.take_symbol(";"):
        reader.unexpected("the end of the clause")
    return clause


def clause_at(reader: Reader) -> m.Clause:
    """The clause whose opening parenthesis comes next; the closing one is read, too."""
    try:
        return _clause(reader)
    except RecursionError:  # parentheses, CASE, calls and types inside each other
        too_deep(reader, reader.token.span)


def _clause(reader: Reader) -> m.Clause:
    reader.expect_symbol("(")
    keys: list[m.KeyExpression] = []
    partition_by = reader.listed(lambda: _key(reader, keys, shown=True)) if reader.take_words("PARTITION", "BY") else ()
    order_by = reader.listed(lambda: _order_key(reader, keys)) if reader.take_words("ORDER", "BY") else ()
    measures = reader.listed(lambda: _measure(reader)) if reader.take_words("MEASURES") else ()
    rows = _rows(reader)
    skip = _skip(reader)
    if reader.token.upper in ("INITIAL", "SEEK"):
        hint = "it belongs to row patterns in windows"
        reader.fail(f"{reader.token.upper} is not possible here", reader.token.span, "search-mode", hint)
    pattern = _pattern(reader)
    within = parse_expression(reader) if reader.take_words("WITHIN") else None
    subsets = reader.listed(lambda: _subset(reader)) if reader.take_words("SUBSET") else ()
    definitions: tuple[m.Definition, ...] = ()
    if reader.take_words("DEFINE"):
        definitions = reader.listed(lambda: _definition(reader))
    elif not reader.at_symbol(")") and not reader.at_words("OPTIONS"):
        _misplaced(reader)
        reader.unexpected("DEFINE")
    written: list[m.Expression] = [each.condition for each in definitions]
    written += [each.expression for each in measures] + [each.expression for each in keys]
    for each in written:
        if exceeds(each, MAX_DEPTH, MAX_TEXT):
            too_deep(reader, each.span)
    options = _options(reader)
    _misplaced(reader)
    reader.expect_symbol(")")
    known = {*labels_of(pattern), *(subset.name.canonical for subset in subsets)}
    clause = m.Clause(
        pattern,
        tuple(replace(each, condition=with_structs(each.condition, known)) for each in definitions),
        partition_by,
        order_by,
        tuple(replace(each, expression=with_structs(each.expression, known)) for each in measures),
        rows,
        skip,
        subsets,
        within,
        reader.text,
        reader.dialect,
        tuple(keys),
        tables=reader.tables,
        **options,
    )
    check_clause(clause)
    return clause


def with_structs(expression: m.Expression, labels: set[str]) -> m.Expression:
    """`x.y` where x is no label is the field y of a struct x; the table says later whether there is one."""
    if isinstance(expression, m.Reference) and expression.label and expression.label.canonical not in labels:
        return m.Reference(None, expression.label, expression.span, (expression.column, *expression.fields))
    return rebuilt(expression, lambda part: with_structs(part, labels))


# What OPTIONS may turn on: use_longest_match is BigQuery's.
_OPTIONS = {"USE_LONGEST_MATCH": "longest", "OUTPUT_PARTIAL": "partial"}


def _options(reader: Reader) -> dict[str, bool]:
    """OPTIONS (use_longest_match = true, output_partial = true)."""
    chosen: dict[str, bool] = {}
    if not reader.take_words("OPTIONS"):
        return chosen
    reader.expect_symbol("(")
    while not reader.take_symbol(")"):
        if reader.token.upper not in _OPTIONS:
            reader.unexpected(*_OPTIONS)
        name = _OPTIONS[reader.advance().upper]
        reader.expect_symbol("=")
        if reader.token.upper not in ("TRUE", "FALSE"):
            reader.unexpected("TRUE", "FALSE")
        chosen[name] = reader.advance().upper == "TRUE"
        reader.take_symbol(",")
    return chosen


_ORDER = ("PARTITION", "ORDER", "MEASURES", "ONE", "ALL", "AFTER", "PATTERN", "WITHIN", "SUBSET", "DEFINE")


def _misplaced(reader: Reader) -> None:
    """A part of the clause that is out of order, or given twice."""
    if reader.token.upper in _ORDER[:-1] and reader.token.kind is Kind.WORD:
        hint = (
            "the order: PARTITION BY, ORDER BY, MEASURES, ROWS PER MATCH, AFTER MATCH, PATTERN, WITHIN, SUBSET, DEFINE"
        )
        reader.fail(f"{reader.token.upper} is out of order", reader.token.span, "clause-order", hint)


def _pattern(reader: Reader) -> Pattern:
    if not reader.at_words("PATTERN"):
        _misplaced(reader)
        reader.unexpected("PATTERN")
    reader.advance()
    reader.expect_symbol("(")
    if reader.at_symbol(")"):
        reader.unexpected("a label")
    pattern = parse_pattern(reader)
    reader.expect_symbol(")")
    return pattern


def _key(reader: Reader, keys: list[m.KeyExpression], *, shown: bool) -> m.Identifier:
    """A column of the table, or what is computed from a row: a name with dots or an expression."""
    first = reader.token
    expression = with_structs(parse_expression(reader), set())
    span = (first.start, reader.ahead(-1).end)
    if isinstance(expression, m.Reference) and not expression.fields:
        return expression.column
    if isinstance(expression, m.Literal) and first.kind is Kind.QUOTED:
        return m.Identifier(first.value, True, first.span)
    calls = {part.name for part in walk(expression) if isinstance(part, m.Call)}
    if isinstance(expression, m.Literal) or calls & (NAVIGATIONS | MATCH_FUNCTIONS | AGGREGATES.keys()):
        hint = "name a column, or compute a value from the columns of one row"
        reader.fail("expected a column name", span, "not-a-column", hint)
    text = reader.text[slice(*span)]
    key = m.KeyExpression(text if shown else f"computed key {len(keys)}", text, shown, expression, span)
    keys.append(key)
    return m.Identifier(key.name, True, span)


def _order_key(reader: Reader, keys: list[m.KeyExpression]) -> m.OrderKey:
    column = _key(reader, keys, shown=False)
    direction = parse_direction(reader)
    return m.OrderKey(column, direction.descending, direction.nulls_first)


def _measure(reader: Reader) -> m.Measure:
    start = reader.token.start
    expression = parse_expression(reader)
    span = (start, reader.ahead(-1).end)
    named = reader.token.kind in (Kind.WORD, Kind.QUOTED) and reader.token.upper not in _AFTER_MEASURES
    if not reader.take_words("AS") and not (named and reader.overrides.bare_names):
        hint = "every measure needs a name: expression AS name"
        reader.fail("a measure without a name", expression.span, "measure-name", hint)
    return m.Measure(expression, reader.identifier("a name"), span)


def _rows(reader: Reader) -> m.Rows:
    if reader.take_words("ONE"):
        reader.expect_words("ROW", "PER", "MATCH")
        return m.Rows.ONE
    if not reader.take_words("ALL"):
        return m.Rows.ONE
    reader.expect_words("ROWS", "PER", "MATCH")
    if reader.take_words("SHOW"):
        reader.expect_words("EMPTY", "MATCHES")
    elif reader.take_words("OMIT"):
        reader.expect_words("EMPTY", "MATCHES")
        return m.Rows.ALL_OMIT_EMPTY
    elif reader.take_words("WITH"):
        reader.expect_words("UNMATCHED", "ROWS")
        return m.Rows.ALL_WITH_UNMATCHED
    return m.Rows.ALL_SHOW_EMPTY


def _skip(reader: Reader) -> m.Skip:
    start = reader.token.start
    if not reader.take_words("AFTER"):
        return m.Skip()
    reader.expect_words("MATCH", "SKIP")
    if reader.take_words("PAST"):
        reader.expect_words("LAST", "ROW")
        return m.Skip(m.SkipTo.PAST_LAST_ROW, None, (start, reader.ahead(-1).end))
    reader.expect_words("TO")
    if reader.take_words("NEXT", "ROW"):
        return m.Skip(m.SkipTo.NEXT_ROW, None, (start, reader.ahead(-1).end))
    # FIRST and LAST may be labels themselves: then what follows belongs to the next part of the clause.
    to = m.SkipTo.LAST
    for word, meaning in (("FIRST", m.SkipTo.FIRST), ("LAST", m.SkipTo.LAST)):
        if reader.at_words(word) and reader.ahead().upper not in ("PATTERN", "INITIAL", "SEEK"):
            reader.advance()
            to = meaning
            break
    label = reader.identifier("a label")
    return m.Skip(to, label, (start, label.span[1]))


def _subset(reader: Reader) -> m.Subset:
    name = reader.identifier("a label")
    reader.expect_symbol("=")
    reader.expect_symbol("(")
    labels = reader.listed(lambda: reader.identifier("a label"))
    reader.expect_symbol(")")
    return m.Subset(name, labels)


def _definition(reader: Reader) -> m.Definition:
    label = reader.identifier("a label")
    reader.expect_words("AS")
    start = reader.token.start
    condition: m.Expression = parse_expression(reader)
    return m.Definition(label, condition, (start, reader.ahead(-1).end))
