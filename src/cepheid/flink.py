"""Flink CEP's patterns in Python's spelling: `from cepheid.flink import Pattern, AfterMatchSkipStrategy`.

The results are those of Flink 2.3. `cepheid.match(events, pattern, ...)` runs them over any kind of table.
"""

from __future__ import annotations

from cepheid.language.flink.pattern import Pattern
from cepheid.language.flink.skip import AfterMatchSkipStrategy

__all__ = ["AfterMatchSkipStrategy", "Pattern"]
