"""Calls of a live query that Ctrl-C meets."""

from __future__ import annotations

import signal
from collections.abc import Iterable
from random import Random
from typing import Any


def sent_with_ctrl_c(live: Any, pieces: Iterable[Any], draw: Random, seconds: tuple[float, float]) -> list[Any]:
    """What each piece gives. Ctrl-C comes after drawn seconds; a call that raised is made again, with more time."""
    found: list[Any] = []
    came = False

    def interrupt(*_: Any) -> None:
        nonlocal came
        came = True
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for piece in pieces:
            for attempt in range(100):
                now, came = None, False
                try:
                    signal.setitimer(signal.ITIMER_REAL, draw.uniform(*seconds) * 1.5**attempt)
                    now = live.send(piece)
                    signal.setitimer(signal.ITIMER_REAL, 0)
                    break
                except (KeyboardInterrupt, TypeError):  # numpy and numba may raise a TypeError in its place
                    if not came:
                        raise
                    if now is not None:  # it came after the call
                        break
            found.append(now)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found
