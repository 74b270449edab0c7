"""Rules of the standard that need no table: labels, subsets, nesting of navigation, what aggregates are over.

ISO/IEC 19075-5 sections 4.14 to 4.18 and 5; where it leaves a choice, as Trino has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NoReturn

from cepheid.errors import QueryError, closest
from cepheid.language import pattern as p
from cepheid.language.match_recognize import syntax as m
from cepheid.language.match_recognize.aggregates import AGGREGATES
from cepheid.language.match_recognize.dialects import DIALECTS
from cepheid.language.match_recognize.functions import FUNCTIONS, MATCH_FUNCTIONS, NAVIGATIONS, is_built_in

_LOGICAL = frozenset({"first", "last"})


def check_clause(clause: m.Clause) -> None:
    """Raises a QueryError that points at the first thing the standard forbids."""
    primary = p.labels_of(clause.pattern)
    if not primary:
        _fail(clause, "the pattern has no label", clause.pattern.span, "no-label", "write at least one: PATTERN (A)")
    _check_subsets(clause, primary)
    known = [*primary, *(subset.name.canonical for subset in clause.subsets)]
    _check_definitions(clause, primary)
    if clause.skip.label is not None:
        check_label(clause, clause.skip.label, known)
    if clause.rows is m.Rows.ALL_WITH_UNMATCHED:
        for node in p.walk(clause.pattern):
            if isinstance(node, p.Excluded):
                hint = "leave out {- -}, or WITH UNMATCHED ROWS"
                _fail(clause, "an exclusion in a clause that shows all rows", node.span, "exclusion", hint)
    if clause.partial and (clause.within is None or clause.rows is m.Rows.ALL_WITH_UNMATCHED):
        at = clause.text.upper().rfind("OUTPUT_PARTIAL")
        message, hint = "output_partial without WITHIN", "add a window: PATTERN (...) WITHIN INTERVAL '1' HOUR"
        if clause.within is not None:
            message, hint = "output_partial with all unmatched rows", "leave out WITH UNMATCHED ROWS"
        _fail(clause, message, (at, at + len("output_partial")), "clause-option", hint)
    names: set[str] = set()
    for measure in clause.measures:
        if measure.name.canonical in names:
            _fail(clause, f"a second measure '{measure.name}'", measure.name.span, "duplicate-measure", "rename one")
        names.add(measure.name.canonical)
        check_expression(clause, measure.expression, known, define=False)
    for definition in clause.definitions:
        check_expression(clause, definition.condition, known, define=True)


def _check_subsets(clause: m.Clause, primary: Sequence[str]) -> None:
    seen: set[str] = set()
    for subset in clause.subsets:
        name = subset.name
        if name.canonical in primary:
            hint = "give the subset another name"
            _fail(clause, f"'{name}' is a label of the pattern", name.span, "duplicate-label", hint)
        if name.canonical in seen:
            _fail(clause, f"a second subset '{name}'", name.span, "duplicate-label")
        seen.add(name.canonical)
        for label in subset.labels:
            check_label(clause, label, primary)


def _check_definitions(clause: m.Clause, primary: Sequence[str]) -> None:
    seen: set[str] = set()
    for definition in clause.definitions:
        label = definition.label
        if any(subset.name.canonical == label.canonical for subset in clause.subsets):
            hint = "define the labels it stands for"
            _fail(clause, f"'{label}' is a subset and cannot be defined", label.span, "unknown-label", hint)
        check_label(clause, label, primary)
        if label.canonical in seen:
            _fail(clause, f"a second definition of '{label}'", label.span, "label-defined-twice", "join them with AND")
        seen.add(label.canonical)


def check_label(clause: m.Clause, label: m.Identifier, known: Sequence[str]) -> None:
    """Is it a label of the pattern?"""
    if label.canonical in known:
        return
    guess = closest(label.canonical, known)
    hint = f"did you mean {guess}?" if guess else f"the labels are {', '.join(known)}"
    _fail(clause, f"no label '{label}'", label.span, "unknown-label", hint)


def parts_of(expression: m.Expression) -> tuple[m.Expression, ...]:
    """What an expression is directly made of."""
    match expression:
        case m.Call(arguments=parts) | m.Operation(operands=parts):
            return parts
    return ()


def rebuilt(expression: m.Expression, change: Callable[[m.Expression], m.Expression]) -> m.Expression:
    """The expression with each of its direct parts changed."""
    match expression:
        case m.Call(arguments=parts):
            return replace(expression, arguments=tuple(map(change, parts)))
        case m.Operation(operands=parts):
            return replace(expression, operands=tuple(map(change, parts)))
    return expression


def exceeds(expression: m.Expression, depth: int, parts: int) -> bool:
    """Has the tree more levels or parts than that? BETWEEN and CASE repeat an operand, which doubles at every level.

    Asked level by level, since one too many must not end the stack.
    """
    level: list[m.Expression] = [expression]
    for _ in range(depth):
        level = list(islice((part for each in level for part in parts_of(each)), parts + 1))
        parts -= len(level)
        if not level or parts < 0:
            return parts < 0
    return True


def walk(expression: m.Expression) -> Iterator[m.Expression]:
    """The expression and everything in it."""
    yield expression
    for part in parts_of(expression):
        yield from walk(part)


def check_expression(clause: m.Clause, expression: m.Expression, known: Sequence[str], *, define: bool) -> None:
    """Is it an expression that a row pattern may hold?"""
    match expression:
        case m.Reference(label=label) if label is not None:
            check_label(clause, label, known)
        case m.Literal(value=m.Months()):
            hint = "add it to a time, or write it in days"
            _fail(clause, "months and years have no fixed length", expression.span, "interval", hint)
        case m.Star():
            _fail(clause, "'*' can only be counted", expression.span, "star", "write count(*) or count(A.*)")
        case m.Operation(operands=operands):
            for operand in operands:
                check_expression(clause, operand, known, define=define)
        case m.Call():
            _check_call(clause, expression, known, define)


def _check_call(clause: m.Clause, call: m.Call, known: Sequence[str], define: bool) -> None:
    if call.mode is m.Mode.FINAL and define:
        hint = "a condition sees the match up to its row"
        _fail(clause, "FINAL in DEFINE", (call.span[0], call.name_span[1]), "final-in-define", hint)
    if call.mode is not None and call.name not in AGGREGATES and call.name not in _LOGICAL:
        hint = "RUNNING and FINAL are only allowed before FIRST, LAST and aggregates"
        _fail(clause, f"{call.mode.value} before {call.name.upper()}", call.name_span, "processing-mode", hint)
    if call.name in NAVIGATIONS:
        _check_navigation(clause, call, known, define)
    elif call.name in AGGREGATES:
        _check_aggregate(clause, call, known)
    elif call.name in MATCH_FUNCTIONS:
        _check_match_function(clause, call, known)
    else:
        if call.distinct:
            _fail(clause, "DISTINCT in a function that is not an aggregate", call.name_span, "distinct")
        check_arity(clause, call)
        for argument in call.arguments:
            check_expression(clause, argument, known, define=define)


def check_arity(clause: m.Clause, call: m.Call) -> None:
    """Does a function that is known take as many arguments?"""
    known = FUNCTIONS[call.name] if is_built_in(call.name) else None
    if known is not None and not known.least <= len(call.arguments) <= known.most:
        wanted = f"{known.least}" if known.least == known.most else f"{known.least} to {known.most}"
        _fail(clause, f"{call.name.upper()} takes {wanted} arguments", call.span, "arguments")


def _check_match_function(clause: m.Clause, call: m.Call, known: Sequence[str]) -> None:
    if call.name == "match_rowtime" and len(call.arguments) == 1:
        argument = call.arguments[0]
        if not isinstance(argument, m.Reference) or argument.label is not None:
            _fail(clause, "MATCH_ROWTIME takes the column of ORDER BY", argument.span, "arguments")
        return
    if call.name != "classifier":
        if call.arguments:
            _fail(clause, f"{call.name.upper()} takes no argument", call.span, "arguments")
        return
    if len(call.arguments) > 1:
        _fail(
            clause, "CLASSIFIER takes at most one label", call.span, "arguments", "write CLASSIFIER() or CLASSIFIER(A)"
        )
    for argument in call.arguments:
        label = label_argument(argument)
        if label is None:
            _fail(clause, "CLASSIFIER takes a label", argument.span, "arguments")
        check_label(clause, label, known)


def label_argument(argument: m.Expression) -> m.Identifier | None:
    """The label that an argument of CLASSIFIER names."""
    if isinstance(argument, m.Reference) and argument.label is None:
        return argument.column
    if isinstance(argument, m.Literal) and isinstance(argument.value, str):
        return m.Identifier(argument.value, True, argument.span)  # "b" in systems where that is a string
    return None


def _check_navigation(clause: m.Clause, call: m.Call, known: Sequence[str], define: bool) -> None:
    name = call.name.upper()
    if call.distinct:
        _fail(clause, f"DISTINCT in {name}", call.name_span, "distinct", "leave DISTINCT out")
    if not 1 <= len(call.arguments) <= 2:
        _fail(clause, f"{name} takes an expression and optionally an offset", call.span, "arguments")
    if len(call.arguments) == 2:
        offset = call.arguments[1]
        if not isinstance(offset, m.Literal) or not isinstance(offset.value, int) or isinstance(offset.value, bool):
            _fail(clause, "the offset is a whole number", offset.span, "navigation-offset")
        if offset.value < 0:
            hint = "use " + {"PREV": "NEXT", "NEXT": "PREV"}.get(name, "PREV or NEXT")
            _fail(clause, "the offset is negative", offset.span, "navigation-offset", hint)
        if offset.value >= 2**31:
            _fail(clause, "the offset is too large", offset.span, "navigation-offset")
    inner = call.arguments[0]
    physical = call.name not in _LOGICAL
    if physical and isinstance(inner, m.Call) and inner.name in _LOGICAL:
        check_expression(clause, inner, known, define=define)
        return
    for part in walk(inner):
        if isinstance(part, m.Call) and part.name in NAVIGATIONS:
            hint = "PREV and NEXT may hold FIRST or LAST directly, nothing else"
            _fail(clause, f"{part.name.upper()} inside {name}", part.span, "navigation-nesting", hint)
        if isinstance(part, m.Call) and part.name in AGGREGATES:
            _fail(clause, f"{part.name.upper()} inside {name}", part.span, "navigation-nesting", "aggregate outside it")
    _one_label(clause, call, (inner,), name, needed=True)
    check_expression(clause, inner, known, define=define)


def _check_aggregate(clause: m.Clause, call: m.Call, known: Sequence[str]) -> None:
    name = call.name.upper()
    aggregate = AGGREGATES[call.name]
    if call.distinct and not DIALECTS[clause.dialect].distinct:
        hint = f"{clause.dialect} has no DISTINCT in row patterns"
        _fail(clause, f"DISTINCT in {name}", call.name_span, "distinct", hint)
    stars = [argument for argument in call.arguments if isinstance(argument, m.Star)]
    if stars or (not call.arguments and call.name == "count"):
        if call.name != "count" or len(call.arguments) > 1:
            _fail(clause, f"'*' in {name}", stars[0].span, "star", "only COUNT takes '*'")
        if call.distinct:
            _fail(clause, "DISTINCT with '*'", call.span, "distinct")
        if stars and stars[0].label is not None:
            check_label(clause, stars[0].label, known)
        return
    if not aggregate.least <= len(call.values) <= aggregate.most:
        wanted = f"{aggregate.least}" if aggregate.least == aggregate.most else f"{aggregate.least} to {aggregate.most}"
        _fail(clause, f"{name} takes {wanted} arguments", call.span, "arguments")
    keys = call.arguments[len(call.values) : len(call.arguments) - call.filtered]
    if call.distinct and any(key not in call.values for key in keys):
        hint = "sort by what is aggregated"
        _fail(clause, f"ORDER BY of other values in {name} with DISTINCT", call.span, "aggregate-order", hint)
    for argument in call.arguments:
        for part in walk(argument):
            if isinstance(part, m.Call) and part.name in NAVIGATIONS | AGGREGATES.keys():
                hint = "an aggregate is over columns of the match's rows"
                _fail(clause, f"{part.name.upper()} inside {name}", part.span, "aggregate-nesting", hint)
        check_expression(clause, argument, known, define=False)
    _one_label(clause, call, call.arguments, name, needed=False)


def _one_label(clause: m.Clause, call: m.Call, parts: Sequence[m.Expression], name: str, *, needed: bool) -> None:
    """All columns of a navigation or aggregate are of the same label (or all of none)."""
    labels = [label for part in parts for label in labels_used(part)]
    if not labels and needed:
        hint = f"for example {name}(price)"
        _fail(clause, f"{name} needs a column or CLASSIFIER", call.span, "navigation-argument", hint)
    if len({label and label.canonical for label in labels}) > 1:
        shown = " and ".join(str(label) if label else "no label" for label in dict.fromkeys(labels))
        _fail(clause, f"{name} over {shown}", call.span, "two-labels", "use one label, or a SUBSET of both")


def labels_used(expression: m.Expression) -> Iterator[m.Identifier | None]:
    """The label of every column and CLASSIFIER in an expression; None where none is written."""
    match expression:
        case m.Reference(label=label) | m.Star(label=label):
            yield label
        case m.Call(name="classifier", arguments=arguments):
            yield label_argument(arguments[0]) if arguments else None
        case m.Call() | m.Operation():
            for part in parts_of(expression):
                yield from labels_used(part)


def _fail(clause: m.Clause, message: str, span: p.Span, code: str, hint: str | None = None) -> NoReturn:
    raise QueryError(message, text=clause.text, start=span[0], end=span[1], hint=hint, code=code)
