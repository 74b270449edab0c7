"""Comparisons of decimals as source over whole numbers, for the compiler of conditions."""

from __future__ import annotations

# A decimal below, above or equal to a whole number {0}, by its side {1} and the whole number {2} below it.
BESIDE_WHOLE = {
    "=": "{1} == 0 and {2} == {0}",
    "!=": "{1} != 0 or {2} != {0}",
    "<": "{1} == -2 or ({1} != 2 and {2} < {0})",
    "<=": "{1} == -2 or ({1} != 2 and ({2} < {0} or ({1} == 0 and {2} == {0})))",
    ">": "{1} == 2 or ({1} != -2 and ({2} > {0} or ({1} == 1 and {2} == {0})))",
    ">=": "{1} == 2 or ({1} != -2 and {2} >= {0})",
}
# Two decimals by the upper and lower halves of each.
BY_HALVES = {
    "=": "{0} == {2} and {1} == {3}",
    "!=": "{0} != {2} or {1} != {3}",
    "<": "{0} < {2} or ({0} == {2} and {1} < {3})",
    "<=": "{0} < {2} or ({0} == {2} and {1} <= {3})",
    ">": "{0} > {2} or ({0} == {2} and {1} > {3})",
    ">=": "{0} > {2} or ({0} == {2} and {1} >= {3})",
}
