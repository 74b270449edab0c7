"""Flink CEP's patterns in Python's spelling: `from cepheid.flink import Pattern, AfterMatchSkipStrategy`.

The results are those of Flink 2.3. `cepheid.match(events, pattern, ...)` runs them over any kind of table.
"""

from __future__ import annotations

from typing import Any

from cepheid.language.flink.pattern import Pattern
from cepheid.language.flink.skip import AfterMatchSkipStrategy
from cepheid.pattern_query import FlinkQuery
from cepheid.plan.options import bounded

__all__ = ["AfterMatchSkipStrategy", "Pattern", "explain"]


@bounded
def explain(pattern: Pattern, events: object, **options: Any) -> str:
    """The automaton of a pattern over a table, what judges its conditions, and the engine; options are `match`'s.

    >>> import pyarrow as pa
    >>> pattern = Pattern.begin("a").where("x > 1").next("b").where("x > a.x")
    >>> print(explain(pattern, pa.table({"ts": [1], "x": [2]})))
    Pattern
      Pattern.begin('a').where('x > 1').next('b').where('x > a.x')
    <BLANKLINE>
    Automaton
      b                   take     -> $endState$      x > a.x
      a (start)           take     -> b               x > 1
    <BLANKLINE>
    Conditions
      x > a.x: during matching
      x > 1: over whole columns
    <BLANKLINE>
    Engine
      automaton: every run is extended by every event, in a compiled kernel
    """
    return FlinkQuery(pattern).explain(events, **options)
