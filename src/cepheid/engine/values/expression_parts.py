"""What the parts of an expression are to the compiler: aggregates, and attributes of single events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cepheid.language import syntax as s
from cepheid.language.aggregates import AGGREGATES


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
