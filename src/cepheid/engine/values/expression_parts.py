"""What the parts of an expression are to the compiler: aggregates, and attributes of single events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES
from cepheid.language.functions import find_function
from cepheid.language.library.function import Function
from cepheid.language.schema import DataType, Schema
from cepheid.language.typing import type_of

PYTHON_KINDS = {DataType.INT: int, DataType.FLOAT: float, DataType.BOOL: bool, DataType.TIME: int, DataType.NULL: int}
PYTHON_KINDS[DataType.DATE] = int


def is_aggregate(node: s.Expression) -> bool:
    """Is it a value that a search keeps of several events?"""
    return isinstance(node, s.Length | s.PathValue) or (
        isinstance(node, s.Call) and node.function.lower() in AGGREGATES
    )


def outside_aggregates(node: s.Expression) -> Iterator[s.Expression]:
    """The expression and what is in it, but nothing of what is in aggregates."""
    yield node
    if not is_aggregate(node) and not isinstance(node, s.Attribute):
        for inner in s.children(node):
            yield from outside_aggregates(inner)


def nothing_to_resolve(node: s.Expression) -> Any:
    """For expressions of constants, which read nothing."""
    raise TypeError(f"{type(node).__name__} among constants")


def attributes_at_hand(node: s.Expression) -> Iterator[s.Attribute]:
    """The attributes that a condition reads of single events; aggregates pass over NULLs by themselves."""
    if isinstance(node, s.Attribute):
        yield node
    elif not (isinstance(node, s.Call) and node.function.lower() in AGGREGATES):
        for inner in s.children(node):
            yield from attributes_at_hand(inner)


def with_reference(node: s.Expression, reference: s.Reference) -> s.Expression:
    """The same of another event."""
    if isinstance(node, s.Reference):
        return reference
    return s.rebuild(node, lambda inner: with_reference(inner, reference))


def is_derived(node: s.Call, function: Function, schema: Schema) -> bool:
    """Is it computed over whole columns beforehand: no kernel has it, and it reads one event?"""
    return _is_formless(node, function, schema) and _is_of_one_event(node)


def _is_of_one_event(node: s.Expression) -> bool:
    references = {inner for inner in s.walk(node) if isinstance(inner, s.Reference)}
    return len(references) <= 1 and not any(is_aggregate(inner) for inner in s.walk(node))


def _is_formless(node: s.Call, function: Function, schema: Schema) -> bool:
    if function.columns:
        return True
    kinds = [type_of(argument, schema) for argument in node.arguments]
    if function.user:
        return not function.is_compiled(kinds) and not all(kind in PYTHON_KINDS for kind in kinds)
    if function.source is not None:
        constants = function.constants_of([getattr(each, "value", None) for each in node.arguments])
        return function.source(["0"] * (len(node.arguments) - len(constants)), constants) is None
    return any(kind in (DataType.TEXTS, DataType.MAP) for kind in kinds)


def needs_python(node: s.Expression, schema: Schema) -> bool:
    """Does it call something that neither a kernel has nor whole columns give?"""
    if not isinstance(node, s.Reference) and type_of(node, schema) is DataType.DECIMAL:
        return not _is_of_one_event(node)
    if isinstance(node, s.Call) and not is_aggregate(node):
        function = find_function(node.function)
        assert function is not None
        if _is_formless(node, function, schema):
            return not _is_of_one_event(node)
    return not is_aggregate(node) and any(needs_python(inner, schema) for inner in s.children(node))
