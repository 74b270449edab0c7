"""Keys that nothing comes for: which events of a stream can be left unread, and how to tell.

Where an equivalence test parts the events of all queries, and matches are known as soon as their last event is, a step
can find nothing new for a key without a new event. Events of such keys lie in chunks of their own, each with the codes
of its keys beside it; a step reads a code for each of them and leaves the events alone. So keys that were busy once
and are waited for cost next to nothing until they wake up, or their window has passed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.engine.data.keys import Codes
from cepheid.language import syntax as s
from cepheid.plan.physical import Plan


def parting_attributes(plans: Sequence[Plan]) -> tuple[str, ...]:
    """The attributes by which keys can sleep; none if an event of one key may matter to another, or time alone may."""
    found = {frozenset(plan.bound.equivalence) for plan in plans}
    if len(found) != 1 or not all(can_sleep(plan) for plan in plans):
        return ()
    return tuple(sorted(*found))


def can_sleep(plan: Plan) -> bool:
    """Does nothing become of a key's events, but that they expire, unless another event of that key comes?"""
    bound = plan.bound
    if bound.schema.is_imprecise or bound.may_lack:
        return False
    if bound.output.mode in (s.OutputMode.NON_OVERLAP, s.OutputMode.TOP):
        return False
    retention = plan.exchange.retention
    return not (retention.for_ever or retention.decides_late or plan.scan.every_event)


def packed_codes(codes: Codes) -> bytes:
    """The codes of a chunk, each once, in order."""
    return np.unique(codes).tobytes()


def are_codes(packed: bytes) -> bool:
    """Can bytes be packed codes? They have no checksum where an earlier version wrote them, but they are in order."""
    if len(packed) % 8:
        return False
    codes = np.frombuffer(packed, np.uint64)
    return bool((codes[1:] > codes[:-1]).all())


def any_awake(packed: bytes, awake: Codes) -> bool:
    """Is one of the codes among those of keys that something came for?

    >>> packed = packed_codes(np.array([7, 3, 7], np.uint64))
    >>> any_awake(packed, np.array([5, 7], np.uint64)), any_awake(packed, np.array([1, 5, 9], np.uint64))
    (True, False)
    """
    codes = np.frombuffer(packed, np.uint64)
    at = np.searchsorted(codes, awake)  # few are awake, many asleep
    return bool((codes[np.minimum(at, len(codes) - 1)] == awake).any())
