"""Conditions as they read when some events are missing (AYAC section 2.2)."""

from __future__ import annotations

from cepheid.language import syntax as s
from cepheid.language.missing import TRUE, without_missing

__all__ = ["TRUE", "has_default", "without"]

without = without_missing


def has_default(node: s.Expression) -> bool:
    """Does a condition say something of an event even where that is missing?"""
    return any(isinstance(inner, s.Attribute) and inner.default is not None for inner in s.walk(node))
