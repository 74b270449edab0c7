"""Calls of a live query that Ctrl-C meets."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from random import Random
from typing import Any


def sent_with_ctrl_c(live: Any, pieces: Iterable[Any], draw: Random, seconds: tuple[float, float]) -> list[Any]:
    """What each piece gives. Ctrl-C comes after drawn seconds; a call that raised is made again, with more time."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    found: list[Any] = []
    try:
        for piece in pieces:
            for attempt in range(100):
                now = None
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(*seconds) * 1.5**attempt)
                    now = live.send(piece)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    break
                except KeyboardInterrupt:
                    if now is not None:  # it came after the call
                        break
            found.append(now)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found
