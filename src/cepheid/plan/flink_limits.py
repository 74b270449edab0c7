"""How much a Flink pattern may produce before it is stopped."""

from __future__ import annotations

from cepheid.errors import LimitError
from cepheid.plan.options import Limits

MOST_STATES = 20_000  # of a pattern: each round that is counted is one
LIMITS = Limits(max_partial_matches=10_000_000)  # a run takes some hundred bytes


def limit_reached(name: str, limits: Limits) -> LimitError:
    """What a search says that has more runs, or more matches, than it may."""
    hint = "raise it, add within(...), or leave out allow_combinations() and followed_by_any(), which keep all of them"
    return LimitError(f"the pattern reached {name}={getattr(limits, name)}", hint=hint)
