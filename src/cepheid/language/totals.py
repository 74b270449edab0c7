"""SUMMARISE: what may be totalled, and the totals bound to columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NoReturn

from cepheid.errors import closest
from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.bound import BoundSummary, BoundTotal
from cepheid.language.printing import total_text
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of

FUNCTIONS = ("count", "sum", "avg", "min", "max", "approximate_count")
BUCKET = "bucket"  # the column that says where the bucket of EVERY begins
_OF_MATCHES = frozenset({"count", "approximate_count"})
_EVERY_ELEMENT = frozenset({s.Element.SINGLE, s.Element.CURRENT, s.Element.ALL})
_Problem = tuple[str, s.Node, str, str | None]


def total_name(total: s.Total) -> str:
    """The result column of a total: its alias, or the text itself.

    >>> total_name(s.Total("count")), total_name(s.Total("count", alias="n"))
    ('count(*)', 'n')
    """
    return total.alias if total.alias is not None else total_text(total)


def total_problems(query: s.QuerySyntax) -> Iterator[_Problem]:
    """What is wrong with SUMMARISE, as far as can be said without data."""
    summary = query.summary
    if summary is None:
        return
    if query.returns is not None:
        yield "SUMMARISE returns totals, and RETURN returns matches", summary, "summarise-and-return", "leave one out"
    seen = {BUCKET, *summary.by}
    for total in summary.totals:
        name = total_name(total)
        if name in seen:
            yield f"two columns are called '{name}'", total, "duplicate-column", "rename one with AS"
        seen.add(name)
        yield from _function_problems(query, total)


def _function_problems(query: s.QuerySyntax, total: s.Total) -> Iterator[_Problem]:
    if total.function not in FUNCTIONS:
        guess = closest(total.function, FUNCTIONS)
        hint = f"did you mean {guess}?" if guess else f"one of {', '.join(FUNCTIONS)}"
        yield f"no total '{total.function}'", total, "unknown-total", hint
        return
    if total.argument is None:
        if total.function not in _OF_MATCHES:
            hint = f"name an attribute, for example {total.function}({query.components[0].variable}.x)"
            yield f"{total.function}(*) is not defined: * only counts matches", total, "bad-total", hint
        return
    if total.function == "approximate_count":
        yield "approximate_count counts matches only", total, "bad-total", "write approximate_count(*)"
        return
    negated = {component.variable for component in query.components if component.negative}
    mentioned = s.variables_of(total.argument)
    for node in s.walk(total.argument):
        if isinstance(node, s.Length) or (isinstance(node, s.Call) and node.function.lower() in AGGREGATES):
            yield "a total aggregates single events", node, "bad-total", "leave the inner aggregate out"
            return
        if isinstance(node, s.Reference) and node.element not in _EVERY_ELEMENT:
            yield "a total aggregates every element of a group", node, "bad-total", f"write {node.variable}"
            return
        if isinstance(node, s.Reference) and node.variable in negated:
            yield f"'{node.variable}' is negated, so no match has it", node, "bad-total", None
            return
    known = {component.variable for component in query.components}
    for name in sorted(mentioned - known):
        guess = closest(name, known)
        yield f"no variable '{name}'", total, "unknown-variable", f"did you mean {guess}?" if guess else None
    words = any(isinstance(node, s.Name) for node in s.walk(total.argument)) and not query.sequence
    if len(mentioned) != 1 and not words:
        yield "a total aggregates the events of one variable", total, "bad-total", "name one variable in it"


def bind_summary(
    written: s.Summary,
    arguments: Sequence[s.Expression | None],
    every: int | None,
    equivalence: tuple[str, ...],
    schema: Schema,
    fail: Callable[..., NoReturn],
) -> BoundSummary:
    """The totals over events of a schema; `arguments` are those written, with names resolved."""
    for name in written.by:
        if name not in equivalence:
            hint = f"add [{name}] to WHERE, or choose among {', '.join(equivalence)}" if equivalence else None
            fail(f"'{name}' is not an equivalence test", written, "by-without-test", hint or f"add [{name}] to WHERE")
    totals = []
    for total, argument in zip(written.totals, arguments, strict=True):
        name = total_name(total)
        if argument is None:
            totals.append(BoundTotal(name, total.function))
            continue
        mentioned = s.variables_of(argument)
        if len(mentioned) != 1:
            fail("a total aggregates the events of one variable", total, "bad-total", "name one variable in it")
        (variable,) = mentioned
        if isinstance(argument, s.Reference):
            if total.function != "count":
                fail(f"{total.function} of whole events", total, "bad-total", f"name an attribute: {variable}.x")
            totals.append(BoundTotal(name, total.function, variable))
            continue
        kind = type_of(argument, schema, fail)
        numbers = (DataType.INT, DataType.FLOAT)
        sortable = (*numbers, DataType.STRING, DataType.TIME)
        if total.function in ("sum", "avg") and kind not in numbers:
            fail(f"{total.function} needs numbers", total, "bad-total", "name an attribute that is a number")
        if total.function in ("min", "max") and kind not in sortable:
            fail(f"{total.function} needs numbers, strings or times", total, "bad-total", "name another attribute")
        totals.append(BoundTotal(name, total.function, variable, argument))
    return BoundSummary(tuple(totals), written.by, every)
